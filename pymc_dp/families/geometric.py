"""Geometric: the sum of the numbers of trials, each clamped to its bounds."""

import numpy as np
import pytensor.tensor as pt

from pymc_dp.families.family import Domain, Example, Summed
from pymc_dp.laws.kernel import Tensor
from pymc_dp.laws.law import Moments


class Geometric(Summed):
    """Geometric(p), the number of trials up to the first success."""

    DISTRIBUTION = "Geometric"
    UNIT = "number of trials"
    EXAMPLES = (
        Example(Domain(1, 12, unknown=(True,)), ((0.1, 0.5, 0.95),)),
        Example(Domain(2, 60, unknown=(True,)), ((0.03, 0.3),)),
    )

    def law(self, domain: Domain, n: Tensor, p: Tensor) -> Moments:
        """Mean and variance of a clamped Geometric number, in closed form.

        With r = 1 - p, P(Y > k) = r^k for k >= 0. Over the bounds l to u, with w = u - l and a = r^l, the excess c over l has
        E c = sum_{j<w} a r^j = a (1 - r^w) / p and E c^2 = sum_{j<w} (2j+1) a r^j, where
        sum_{j<w} j r^j = (r - w r^w + (w-1) r^(w+1)) / p^2, which cancels for p below one in a million. A lower bound of 0 is
        one of 1: there is always a first trial.
        """
        p = pt.maximum(p, 1e-6)
        lower = max(domain.lower, 1.0)
        width = domain.upper - lower
        r = 1 - p
        kept, tail = r**lower, r**width
        mean = kept * (1 - tail) / p
        weighted = (r - width * tail + (width - 1) * tail * r) / p**2
        square = 2 * kept * weighted + mean
        return Moments(n, (lower + mean,), ((pt.maximum(square - mean**2, 0.0),),))

    def project(self, noisy: np.ndarray, n: np.ndarray, spread: float, domain: Domain) -> np.ndarray:
        """Move noisy sums into [n lower, n upper], lower being 1 or more."""
        return np.clip(noisy, n * max(domain.lower, 1.0), n * domain.upper)

    def log_likelihood(self, sums: Tensor, n: Tensor, domain: Domain, p: Tensor) -> Tensor:
        """N log p + (s - n) log(1 - p)."""
        p = pt.clip(p, 1e-300, 1 - 1e-16)
        return n * pt.log(p) + (sums[..., 0] - n) * pt.log1p(-p)


FAMILIES = (Geometric(),)
