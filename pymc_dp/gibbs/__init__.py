"""Exact conditional draws: PyMC step methods, and what they are made of. Free on a private model, which holds no record.

``chains`` draws states of latent chains and sums them out.
"""

from pymc_dp.gibbs.chains import forward_backward, marginal_likelihood

__all__ = ["forward_backward", "marginal_likelihood"]
