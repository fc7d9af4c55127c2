"""VonMises: sums of cos y and sin y, the values being angles between -pi and pi."""

from collections.abc import Sequence
from math import isqrt, pi

import numpy as np
import pytensor.tensor as pt

from pymc_dp.families.family import CellSensitivity, Domain, Example, Scaled, Sensitivity
from pymc_dp.families.grid import POINTS
from pymc_dp.laws.kernel import Tensor

LARGEST = 1e9
"""The largest kappa of which SciPy knows the Bessel functions; larger ones are not told apart."""


class VonMises(Scaled):
    """VonMises(mu, kappa)."""

    DISTRIBUTION = "VonMises"
    BOUNDS = "none"
    NATURAL = (-pi, pi)
    EXAMPLES = (Example(Domain(-pi, pi, unknown=(True, True)), ((0.3, 2.0, 1.5), (0.2, 3.0, 40.0))),)

    def ranges(self, domain: Domain) -> tuple[tuple[str, float, float], ...]:
        """The names of cosine and sine, which both lie in [-1, 1]."""
        return ("cos y", -1.0, 1.0), ("sin y", -1.0, 1.0)

    def raw(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """The point on the unit circle."""
        return np.cos(values), np.sin(values)

    def sensitivity(self, domain: Domain) -> Sensitivity:
        """Two points of a circle are at most its diameter apart: 2 in L2, so 2 sqrt(2) in L1, and the L1 norm is at most sqrt(2).

        Each coordinate is rounded by at most 1/2 lattice unit, a point by sqrt(1/2) and a difference by sqrt(2) in L2. The L1
        distance of integer points grows by at most 2 then, their L1 norm by 1.
        """
        difference = isqrt(8 * POINTS**2) + 3
        square = 4 * POINTS**2 + isqrt(32 * POINTS**2) + 1 + 2
        return Sensitivity(difference, square, POINTS, "opposite points of a circle: 2 sqrt(2) apart in L1, and 2 in L2")

    def cell_sensitivity(self, domain: Domain) -> CellSensitivity:
        """(1 - cos, 1 + cos, 1 - sin, 1 + sin), whose squares add up to 4 + 2 (cos² + sin²) = 6, and rounding."""
        box = super().cell_sensitivity(domain)
        # A rounded point is within P + sqrt(1/2) of the middle: its square is at most P² + sqrt(2) P + 1/2.
        return CellSensitivity(box.names, box.matrix, box.total, 6 * POINTS**2 + isqrt(8 * POINTS**2) + 1 + 1)

    def moments(self, domain: Domain, mu: Tensor, kappa: Tensor) -> tuple[tuple[Tensor, ...], tuple[tuple[Tensor, ...], ...]]:
        """With A_k = I_k(kappa) / I_0(kappa), the mean is A_1 along mu; nothing is clamped.

        The variance is (1 + A_2) / 2 - A_1^2 along mu and (1 - A_2) / 2 across it.
        """
        kappa = pt.clip(kappa, np.float64(1e-100), LARGEST)
        first, second = pt.ive(1, kappa) / pt.ive(0, kappa), pt.ive(2, kappa) / pt.ive(0, kappa)
        along = pt.maximum((1 + second) / 2 - first**2, 0.0)
        across = (1 - second) / 2
        cos, sin = pt.cos(mu), pt.sin(mu)
        covariance = ((cos**2 * along + sin**2 * across,), (cos * sin * (along - across), sin**2 * along + cos**2 * across))
        return (first * cos, first * sin), covariance

    def project(self, noisy: np.ndarray, n: np.ndarray, spread: float, domain: Domain) -> np.ndarray:
        """Move sums into the disc of radius n, short of its rim by what the noise could tell: there kappa has no bound."""
        rim = n - np.minimum(spread, n)
        radius = np.sqrt((noisy**2).sum(axis=-1, keepdims=True))
        return noisy * np.where(radius > rim, rim / np.where(radius > 0, radius, 1), 1.0)

    def from_sums(self, sums: Sequence[Tensor], n: Tensor, domain: Domain, mu: Tensor, kappa: Tensor) -> Tensor:
        """Kappa (cos mu sum cos y + sin mu sum sin y) - n log I_0(kappa)."""
        return kappa * (pt.cos(mu) * sums[0] + pt.sin(mu) * sums[1]) - n * (pt.log(pt.ive(0, pt.minimum(kappa, LARGEST))) + kappa)


FAMILIES = (VonMises(),)
