"""Poisson: the sum of the counts, each clamped to its bounds."""

import pytensor.tensor as pt

from pymc_dp.families.family import Domain, Example, Summed, clamped_counts
from pymc_dp.laws.kernel import Tensor
from pymc_dp.laws.law import Moments


class Poisson(Summed):
    """Poisson(mu)."""

    DISTRIBUTION = "Poisson"
    EXAMPLES = (
        Example(Domain(0, 5, unknown=(True,)), ((0.7, 3.0, 8.0),)),
        Example(Domain(2, 40, unknown=(True,)), ((1.0, 20.0),)),
        Example(Domain(2, 9, unknown=(True,)), ((2.0, 8.0, 15.0),)),
    )

    def law(self, domain: Domain, n: Tensor, mu: Tensor) -> Moments:
        """Mean and variance of a clamped Poisson count, in closed form.

        With F the distribution function, sum_{k<h} k pmf = mu F(h-2) and sum_{k<h} k(k-1) pmf = mu^2 F(h-3). The law of the
        unclamped count would give intervals that are far too narrow wherever the bounds cut.
        """

        def distribution(k: float) -> Tensor:
            return pt.gammaincc(k + 1.0, mu) if k >= 0 else pt.zeros_like(mu)

        lower, upper = domain.lower, domain.upper
        below, above = distribution(lower), 1 - distribution(upper - 1)
        first = mu * (distribution(upper - 2) - distribution(lower - 1))
        second = mu**2 * (distribution(upper - 3) - distribution(lower - 2)) + first
        inside = distribution(upper - 1) - below
        return clamped_counts(domain, n, first, second, inside, above)

    def log_likelihood(self, sums: Tensor, n: Tensor, domain: Domain, mu: Tensor) -> Tensor:
        """S log mu - n mu."""
        return sums[..., 0] * pt.log(pt.maximum(mu, 1e-300)) - n * mu


FAMILIES = (Poisson(),)
