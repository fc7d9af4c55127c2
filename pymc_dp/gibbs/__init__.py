"""Exact conditional draws: PyMC step methods, and what they are made of. Free on a private model, which holds no record.

``chains`` draws states of latent chains and sums them out; ``hmm`` is the hidden Markov model of released counts. ``conditional``
compiles the factors of a model in which a variable stands; ``sites`` finds out which sites they rest on, ``blocks`` how they are read,
and ``states`` draws all of these at once, ``collapsed`` with transitions summed out. ``conjugate_forms`` draws from conjugate
conditionals and ``conjugate`` reads them off a model, if need be given the counts that ``latents`` draws; ``steps`` assigns all of this.
"""

from pymc_dp.gibbs.chains import forward_backward, marginal_likelihood
from pymc_dp.gibbs.collapsed import CollapsedForwardBackward, collapsed_transitions
from pymc_dp.gibbs.conjugate import Conjugate
from pymc_dp.gibbs.hmm import hidden_markov
from pymc_dp.gibbs.states import ForwardBackward
from pymc_dp.gibbs.steps import gibbs_steps

__all__ = [
    "CollapsedForwardBackward",
    "Conjugate",
    "ForwardBackward",
    "collapsed_transitions",
    "forward_backward",
    "gibbs_steps",
    "hidden_markov",
    "marginal_likelihood",
]
