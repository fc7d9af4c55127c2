"""Exact conditional draws: PyMC step methods, and what they are made of. Free on a private model, which holds no record.

``chains`` draws states of latent chains and sums them out; ``hidden`` is the hidden Markov model of released counts.
"""

from pymc_dp.gibbs.chains import forward_backward, marginal_likelihood
from pymc_dp.gibbs.hidden import hidden_markov

__all__ = ["forward_backward", "hidden_markov", "marginal_likelihood"]
