"""NegativeBinomial: the sum of the counts, each clamped to its bounds, alpha being a plain number."""

import pytensor.tensor as pt

from pymc_dp.families.family import Domain, Example, Summed, clamped_counts
from pymc_dp.laws.kernel import Tensor
from pymc_dp.laws.law import Moments

RAREST = 1e-12
"""The smallest p that is told from smaller ones."""


class NegativeBinomial(Summed):
    """NegativeBinomial(alpha, p), whether written with ``p`` or with ``mu``."""

    DISTRIBUTION = "NegativeBinomial"
    KNOWN = ((0, "alpha"),)
    EXAMPLES = (
        Example(Domain(0, 8, unknown=(False, True), known=(3.0, None)), ((3.0, 3.0, 3.0), (0.8, 0.4, 0.1))),
        Example(Domain(2, 40, unknown=(False, True), known=(0.7, None)), ((0.7, 0.7), (0.5, 0.04))),
    )

    def law(self, domain: Domain, n: Tensor, alpha: Tensor, p: Tensor) -> Moments:
        """Mean and variance of a clamped count, in closed form.

        With mu = alpha (1 - p) / p and F_a the distribution function of NegativeBinomial(a, p), which is I_p(a, k + 1):
        sum_{k<h} k pmf = mu F_{alpha+1}(h-2) and sum_{k<h} k(k-1) pmf = mu^2 (1 + 1/alpha) F_{alpha+2}(h-3).
        """
        known = domain.known[0]
        assert known is not None  # KNOWN names it
        p = pt.clip(p, RAREST, 1 - 1e-16)
        mu = known * (1 - p) / p

        def distribution(more: int, k: float) -> Tensor:
            return pt.betainc(known + more, k + 1.0, p) if k >= 0 else pt.zeros_like(p)

        lower, upper = domain.lower, domain.upper
        below, above = distribution(0, lower), pt.betainc(upper, known, 1 - p)
        first = mu * (distribution(1, upper - 2) - distribution(1, lower - 1))
        second = mu**2 * (1 + 1 / known) * (distribution(2, upper - 3) - distribution(2, lower - 2)) + first
        inside = distribution(0, upper - 1) - below
        return clamped_counts(domain, n, first, second, inside, above)

    def log_likelihood(self, sums: Tensor, n: Tensor, domain: Domain, alpha: Tensor, p: Tensor) -> Tensor:
        """N alpha log p + s log(1 - p)."""
        p = pt.clip(p, 1e-300, 1 - 1e-16)
        return n * domain.known[0] * pt.log(p) + sums[..., 0] * pt.log1p(-p)


FAMILIES = (NegativeBinomial(),)
