"""Draws from the posterior itself, and its mode, each private by itself.

Draws come from the exponential mechanism, or from a posterior that is flattened so that no record can change the probability of anything
by more than is paid for (DNMR14; FGWC16, section 2; ZRD16, section 4; docs/theory.md).

What users call is in ``draws`` (``sample``, ``find_MAP``), ``questions`` (``ask``) and ``advice`` (``advise``). ``routes`` decides how a
model is drawn: ``tables`` (Bayesian networks, by splits), ``grid`` (any likelihood of a few unknowns), ``ball_regression`` (linear
regression), ``concave`` (regressions whose log-posterior is concave), ``markov`` (anything else, by Markov chains) or ``paid_gibbs``
(chains that pay at every update). All of these take a ``Task`` and price it (``price``), read records in one way (``records``,
``densities``), and give a ``Prepared`` draw (``result``), which has a ``Schedule`` (``schedules``) where it pays on its way.
"""

from pymc_dp.posterior.advice import Advice, advise
from pymc_dp.posterior.draws import find_MAP, sample_posterior, schedule
from pymc_dp.posterior.questions import ask

__all__ = ["Advice", "advise", "ask", "find_MAP", "sample_posterior", "schedule"]
