"""Normal and LogNormal: sums of u and, unless sigma is known, of u squared, u being the clamped value, or its logarithm, scaled.

Values are quantised to 2**16 + 1 points; the squares are exact integer products on the same lattice, so that no rounding
has to be paid for.
"""

from dataclasses import replace
from math import log

import numpy as np
import pytensor.tensor as pt

from pymc_dp.families.family import CellSensitivity, Domain, Example, Family, Sensitivity
from pymc_dp.families.grid import POINTS, clamps, onto_grid
from pymc_dp.families.own_sums import Rows, plain
from pymc_dp.laws.kernel import Kernel, Tensor, by_cell
from pymc_dp.laws.law import Moments
from pymc_dp.laws.sums import clamped_moments

WIDEST = 300.0
"""The largest sigma, in half-widths of the bounds, that is told from larger ones."""


class Normal(Family):
    """Normal(mu, sigma)."""

    DISTRIBUTION = "Normal"
    VALUE = "y"
    """What is scaled."""
    BOUNDS = "real"
    UNCLAMPED = True
    EXAMPLES = (
        Example(Domain(-2, 6, unknown=(True, True)), ((2.0, 5.0, 0.5), (1.0, 2.0, 0.7))),
        Example(Domain(-2, 6, unknown=(True, False)), ((2.0, 5.5, 0.5), (1.0, 2.0, 0.7))),
    )

    def alone(self, domain: Domain) -> bool:
        """Whether u is released without its square: sigma is known then."""
        return not domain.unknown[1]

    def lattice(self, domain: Domain) -> float:
        """1/POINTS for u alone; 1/POINTS**2 for u and its square together."""
        return 1.0 / POINTS if self.alone(domain) else 1.0 / POINTS**2

    def statistics(self, domain: Domain) -> tuple[str, ...]:
        """U = (y - middle) / half-width of the bounds."""
        return ("sum u",) if self.alone(domain) else ("sum u", "sum u²")

    def own_sums(self, domain: Domain) -> Rows:
        """With y = c + h u: sum y = c n + h sum u, and sum y² = c² n + 2 c h sum u + h² sum u²; and the sums of u."""
        c, h = self._scaling(domain)
        first, square = f"sum {self.VALUE}", f"sum ({self.VALUE})²" if " " in self.VALUE else f"sum {self.VALUE}²"
        sums = plain(self.statistics(domain))
        if self.alone(domain):
            return ((first, (c, h)), *sums)
        return ((first, (c, h, 0.0)), (square, (c**2, 2 * c * h, h**2)), *sums)

    def _scaling(self, domain: Domain) -> tuple[float, float]:
        """Middle and half-width of what is scaled."""
        return domain.lower / 2 + domain.upper / 2, domain.half_width

    def exact(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """U on its grid; beside its square it is multiplied by POINTS, so that both share one lattice."""
        return tuple(statistic.astype(np.int64) for statistic in self.doubles(values, domain))

    def doubles(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """U on its grid, or POINTS u and its square: whole numbers up to POINTS**2, and so exact."""
        u = onto_grid(values, domain.middle, domain.half_width)
        return (u,) if self.alone(domain) else (u * POINTS, u * u)

    def completes(self, domain: Domain) -> bool:
        """Whether the grid of u does what completing does."""
        return domain.fill is None and clamps(domain.lower, domain.upper)

    def sensitivity(self, domain: Domain) -> Sensitivity:
        """The value u moves by at most 2. With its square, at most 9/4, not 3 (docs/theory.md).

        For a > b in [-1, 1] the distance is (a - b) + abs(a^2 - b^2) = (a - b)(1 + abs(a + b)). With a + b = s >= 0, a <= 1 gives
        a - b <= 2 - s, and (2 - s)(1 + s) is largest at s = 1/2: 9/4, attained by 1 and -1/2. On the grid both are points, so the
        bound is exact: 9/4 POINTS**2 lattice units.
        """
        if self.alone(domain):
            return Sensitivity(2 * POINTS, 4 * POINTS**2, POINTS, "u, a value scaled to [-1, 1], moves by at most 2")
        return Sensitivity(9 * POINTS**2 // 4, 4 * POINTS**4, POINTS**2, "(u, u²), u being a value scaled to [-1, 1], moves by at most 9/4")

    def cell_sensitivity(self, domain: Domain) -> CellSensitivity:
        """(1 - u, 1 + u) where sigma is known; else the quadratic Bernstein basis (1 - u)², 2 (1 - u)(1 + u), (1 + u)².

        Both are never negative and add up to a constant, 2 and 4, so a value's L1 norm is that constant whatever it is. The
        L2 norm is largest where one entry holds everything, at either bound.
        """
        if self.alone(domain):
            return CellSensitivity(("sum of 1 - u", "sum of 1 + u"), ((POINTS, -1), (POINTS, 1)), 2 * POINTS, 4 * POINTS**2)
        unit = POINTS**2
        names = ("sum of (1 - u)²", "sum of 2 (1 - u²)", "sum of (1 + u)²")
        return CellSensitivity(names, ((unit, -2, 1), (2 * unit, 0, -2), (unit, 2, 1)), 4 * unit, 16 * unit**2)

    def law(self, domain: Domain, n: Tensor, mu: Tensor, sigma: Tensor) -> Moments:
        """Mean and covariance of u and u squared, for the clamped value unless none lies outside."""
        mu = (mu - domain.middle) / domain.half_width
        sigma = sigma / domain.half_width
        if not domain.clamps:
            variance, square = sigma**2, mu**2
            if self.alone(domain):
                return Moments(n, (mu,), ((variance,),))
            return Moments(
                n, (mu, square + variance), ((variance,), (2 * mu * variance, 2 * variance * (2 * square + variance))), squares=True
            )
        # So wide a law is at either bound but for 1/WIDEST, whatever its exact width; the recurrence below would cancel.
        narrowed = pt.minimum(sigma, WIDEST) / sigma
        mu, sigma = mu * narrowed, sigma * narrowed
        first, second, variance, covariance, of_square = by_cell(Kernel(clamped_moments, (0, 1), 5), mu.type.shape, (mu, sigma))
        if self.alone(domain):
            return Moments(n, (first,), ((variance,),))
        return Moments(n, (first, second), ((variance,), (covariance, of_square)), squares=True)

    def project(self, noisy: np.ndarray, n: np.ndarray, spread: float, domain: Domain) -> np.ndarray:
        """Move sums to moments that values in [-1, 1] can have, their variance no smaller than the noise could tell from 0.

        A variance of 0 would give an unbounded likelihood, so the floor is spread / n, the noise scale of the mean square.
        """
        first = np.clip(noisy[..., :1], -n, n)
        if self.alone(domain):
            return first
        floor = np.minimum(spread / n, 1.0)
        mean = np.clip(first / n, -np.sqrt(1 - floor), np.sqrt(1 - floor))
        square = np.clip(noisy[..., 1:] / n, mean**2 + floor, np.maximum(mean**2 + floor, 1.0))
        return np.concatenate([mean * n, square * n], axis=-1)

    def log_likelihood(self, sums: Tensor, n: Tensor, domain: Domain, mu: Tensor, sigma: Tensor) -> Tensor:
        """-n log sigma - (S2 - 2 mu S1 + n mu^2) / (2 sigma^2), in units of u; S2 is left out where sigma is known."""
        mu = (mu - domain.middle) / domain.half_width
        sigma = sigma / domain.half_width
        if self.alone(domain):
            return (2 * mu * sums[..., 0] - n * mu**2) / (2 * sigma**2)
        return -n * pt.log(sigma) - (sums[..., 1] - 2 * mu * sums[..., 0] + n * mu**2) / (2 * sigma**2)


class LogNormal(Normal):
    """LogNormal(mu, sigma): everything is that of a Normal log y, between the logarithms of the bounds."""

    DISTRIBUTION = "LogNormal"
    VALUE = "log y"
    BOUNDS = "positive"
    EXAMPLES = (
        Example(Domain(0.2, 30, unknown=(True, True)), ((1.0, 3.0, 0.5), (1.0, 2.0, 0.7))),
        Example(Domain(0.2, 30, unknown=(True, False)), ((1.0, 3.0, 0.5), (1.0, 2.0, 0.7))),
    )

    def doubles(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """The doubles of log y, as a Normal has them of y."""
        return super().doubles(np.log(values), _of_logarithm(domain))

    def completes(self, domain: Domain) -> bool:
        """No: logarithms are taken of what was clamped."""
        return False

    def statistics(self, domain: Domain) -> tuple[str, ...]:
        """U = (log y - middle) / half-width of the logarithms of the bounds."""
        return ("sum u of log y",) if self.alone(domain) else ("sum u of log y", "sum u² of log y")

    def _scaling(self, domain: Domain) -> tuple[float, float]:
        """The scaling of log y, as a Normal has it of y."""
        return super()._scaling(_of_logarithm(domain))

    def law(self, domain: Domain, n: Tensor, mu: Tensor, sigma: Tensor) -> Moments:
        """The law of the statistics of log y."""
        return super().law(_of_logarithm(domain), n, mu, sigma)

    def log_likelihood(self, sums: Tensor, n: Tensor, domain: Domain, mu: Tensor, sigma: Tensor) -> Tensor:
        """The log-likelihood of log y, which differs by -sum log y, a constant."""
        return super().log_likelihood(sums, n, _of_logarithm(domain), mu, sigma)


def _of_logarithm(domain: Domain) -> Domain:
    return replace(domain, lower=log(domain.lower), upper=log(domain.upper))


class RowValues(Normal):
    """The value of every row by itself, u, where rows are of individuals. Of one value its square says nothing more.

    ``law`` is that of Normal rows. Of another distribution the values are unknowns of the private model.
    """

    DISTRIBUTION = "value of a row"

    def alone(self, domain: Domain) -> bool:
        """Yes, whatever is known."""
        return True


FAMILIES = (Normal(), LogNormal())
ROW_VALUES = RowValues()
