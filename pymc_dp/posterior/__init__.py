"""Draws from the posterior itself, and its mode, each private by itself.

What leaves is drawn by the exponential mechanism, or from a posterior that is flattened so that no record can change the probability of
anything by more than is paid for (DNMR14; FGWC16, section 2; ZRD16, section 4; docs/theory.md). The modules: ``price`` (what is asked
for and what it costs), ``result`` (what leaves), ``tables`` (Bayesian networks, by splits), ``grid`` (any likelihood of a few unknowns),
``ball_regression`` (linear regression), ``markov`` (anything else, by Markov chains), ``sweeps`` (Gibbs sampling that pays at every
update: ``kernel``, ``sensitivity``, ``updates`` and ``schedule`` are its parts), ``sample`` (which of them), ``ask`` and ``advice``.
"""

from pymc_dp.posterior.advice import Advice, advise
from pymc_dp.posterior.draws import find_MAP, sample_posterior, schedule
from pymc_dp.posterior.questions import ask

__all__ = ["Advice", "advise", "ask", "find_MAP", "sample_posterior", "schedule"]
