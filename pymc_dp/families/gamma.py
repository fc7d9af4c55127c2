"""Gamma, InverseGamma and HalfNormal: sums of a statistic whose own law is Gamma, and of log y where alpha is unknown.

Without log y the moments of a clamped Gamma variable are closed; with it they are integrals over log y.
"""

from collections.abc import Sequence
from math import log

import numpy as np
import pytensor.tensor as pt

from pymc_dp.families.family import Domain, Example, Scaled
from pymc_dp.families.quadrature import expectations, inside_hull, panels
from pymc_dp.laws.kernel import Tensor

LONGEST = np.float64(1e50)
"""Scales of more than so many upper bounds, or less than its inverse, are not told apart."""
NARROWEST = 1e12
"""The largest alpha, where it is unknown, that is told from larger ones: the logarithms of values hardly differ by 1e-6 there."""


class Gamma(Scaled):
    """Gamma(alpha, scale)."""

    DISTRIBUTION = "Gamma"
    BOUNDS = "positive"
    EXAMPLES = (
        Example(Domain(0.1, 8, unknown=(True, True)), ((0.4, 2.0, 20.0), (2.0, 3.0, 0.1))),
        Example(Domain(0.1, 8, unknown=(False, True)), ((0.4, 2.0, 20.0), (2.0, 3.0, 0.1))),
    )

    def ranges(self, domain: Domain) -> tuple[tuple[str, float, float], ...]:
        """The value and its logarithm, which both grow with it."""
        y, log_y = ("y", domain.lower, domain.upper), ("log y", log(domain.lower), log(domain.upper))
        return (y, log_y) if domain.unknown[0] else (y,)

    def raw(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """The value and its logarithm."""
        return (values, np.log(values)) if domain.unknown[0] else (values,)

    def moments(self, domain: Domain, alpha: Tensor, scale: Tensor) -> tuple[tuple[Tensor, ...], tuple[tuple[Tensor, ...], ...]]:
        """Means and covariances of a clamped Gamma variable and, where alpha is unknown, of its logarithm."""
        if domain.unknown[0]:
            return clamped_with_log(alpha, scale, domain.lower, domain.upper)
        mean, variance = clamped_gamma(alpha, scale, domain.lower, domain.upper)
        return (mean,), ((variance,),)

    def project(self, noisy: np.ndarray, n: np.ndarray, spread: float, domain: Domain) -> np.ndarray:
        """Move sums, where alpha is unknown, to a mean of log y short of the log of the mean: there alpha has no bound."""
        return _inside_hull(noisy, n, spread, self.ranges(domain), 1) if domain.unknown[0] else super().project(noisy, n, spread, domain)

    def from_sums(self, sums: Sequence[Tensor], n: Tensor, domain: Domain, alpha: Tensor, scale: Tensor) -> Tensor:
        """-n alpha log scale - sum y / scale, and alpha sum log y - n log Gamma(alpha)."""
        linear = -n * alpha * pt.log(scale) - sums[0] / scale
        return linear + alpha * sums[1] - n * pt.gammaln(alpha) if domain.unknown[0] else linear


class InverseGamma(Scaled):
    """InverseGamma(alpha, beta)."""

    DISTRIBUTION = "InverseGamma"
    BOUNDS = "positive"
    EXAMPLES = (
        Example(Domain(0.1, 8, unknown=(True, True)), ((0.4, 2.0, 20.0), (0.3, 3.0, 15.0))),
        Example(Domain(0.1, 8, unknown=(False, True)), ((0.4, 2.0, 20.0), (0.3, 3.0, 15.0))),
    )

    def ranges(self, domain: Domain) -> tuple[tuple[str, float, float], ...]:
        """1/y and log y: one falls where the other grows."""
        inverse, log_y = ("1/y", 1 / domain.upper, 1 / domain.lower), ("log y", log(domain.lower), log(domain.upper))
        return (inverse, log_y) if domain.unknown[0] else (inverse,)

    def raw(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """1/y and log y."""
        return (1 / values, np.log(values)) if domain.unknown[0] else (1 / values,)

    def moments(self, domain: Domain, alpha: Tensor, beta: Tensor) -> tuple[tuple[Tensor, ...], tuple[tuple[Tensor, ...], ...]]:
        """1/y is Gamma(alpha, 1 / beta), clamped to the inverses of the bounds."""
        lower, upper = 1 / domain.upper, 1 / domain.lower
        if domain.unknown[0]:
            (mean, of_log), ((variance,), (covariance, variance_of_log)) = clamped_with_log(alpha, 1 / beta, lower, upper)
            return (mean, -of_log), ((variance,), (-covariance, variance_of_log))
        mean, variance = clamped_gamma(alpha, 1 / beta, lower, upper)
        return (mean,), ((variance,),)

    def project(self, noisy: np.ndarray, n: np.ndarray, spread: float, domain: Domain) -> np.ndarray:
        """Move sums, where alpha is unknown, to a mean of log y above that of the mean of 1/y: there alpha has no bound."""
        return _inside_hull(noisy, n, spread, self.ranges(domain), -1) if domain.unknown[0] else super().project(noisy, n, spread, domain)

    def from_sums(self, sums: Sequence[Tensor], n: Tensor, domain: Domain, alpha: Tensor, beta: Tensor) -> Tensor:
        """N alpha log beta - beta sum 1/y, and -alpha sum log y - n log Gamma(alpha)."""
        linear = n * alpha * pt.log(beta) - beta * sums[0]
        return linear - alpha * sums[1] - n * pt.gammaln(alpha) if domain.unknown[0] else linear


class HalfNormal(Scaled):
    """HalfNormal(loc, sigma), loc being a plain number, 0 unless it is written otherwise."""

    DISTRIBUTION = "HalfNormal"
    BOUNDS = "real"
    KNOWN = ((0, "loc"),)
    EXAMPLES = (
        Example(Domain(0, 6, unknown=(False, True), known=(0.0, None)), ((0.0, 0.0, 0.0), (0.5, 3.0, 40.0))),
        Example(Domain(-1, 6, unknown=(False, True), known=(1.0, None)), ((1.0, 1.0), (1.0, 5.0))),
        Example(Domain(2, 6, unknown=(False, True), known=(1.0, None)), ((1.0, 1.0), (1.0, 5.0))),
    )

    def ranges(self, domain: Domain) -> tuple[tuple[str, float, float], ...]:
        """(y - loc)², from the lower bound or from loc, below which no value lies."""
        loc = _loc(domain)
        lower = max(domain.lower, loc) if loc < domain.upper else domain.lower
        least, largest = sorted(((lower - loc) ** 2, (domain.upper - loc) ** 2))
        return (("(y - loc)²", least, largest),)

    def raw(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """(y - loc)², and 0 below loc."""
        loc = _loc(domain)
        return ((np.maximum(values, loc) - loc) ** 2 if loc < domain.upper else (values - loc) ** 2,)

    def moments(self, domain: Domain, loc: Tensor, sigma: Tensor) -> tuple[tuple[Tensor, ...], tuple[tuple[Tensor, ...], ...]]:
        """(y - loc)² is Gamma(1/2, 2 sigma²). From loc > upper on, all values are at the upper bound."""
        [(_, lower, upper)] = self.ranges(domain)
        if _loc(domain) >= domain.upper:
            return (lower + pt.zeros_like(sigma),), ((pt.zeros_like(sigma),),)
        mean, variance = clamped_gamma(0.5, 2 * sigma**2, lower, upper)
        return (mean,), ((variance,),)

    def from_sums(self, sums: Sequence[Tensor], n: Tensor, domain: Domain, loc: Tensor, sigma: Tensor) -> Tensor:
        """-n log sigma - sum (y - loc)² / (2 sigma²)."""
        return -n * pt.log(sigma) - sums[0] / (2 * sigma**2)


def _loc(domain: Domain) -> float:
    loc = domain.known[0]
    assert loc is not None  # KNOWN names it
    return loc


def _inside_hull(noisy: np.ndarray, n: np.ndarray, spread: float, ranges: tuple, sign: int) -> np.ndarray:
    """Onto means of a first statistic and of the logarithm, which is ``sign`` times that of the first."""
    (_, lower, upper), (_, bottom, top) = ranges

    def curve(u: np.ndarray) -> np.ndarray:
        return (sign * np.log((lower + upper) / 2 + u * (upper - lower) / 2) - (bottom + top) / 2) / ((top - bottom) / 2)

    return inside_hull(noisy, n, spread, curve)


def clamped_gamma(alpha: Tensor | float, scale: Tensor, lower: float, upper: float) -> tuple[Tensor, Tensor]:
    """Mean and variance of a Gamma(alpha, scale) variable X clamped to its bounds.

    With P_a the distribution function of Gamma(a, scale) and m = alpha scale, E[X; X < x] = m P_{alpha+1}(x) and
    E[X^2; X < x] = m (m + scale) P_{alpha+2}(x). Moments are taken about the lower bound: less cancels.
    """
    scale = pt.clip(scale, upper / LONGEST, upper * LONGEST)
    m = alpha * scale

    def distribution(more: int, x: float) -> Tensor:
        return pt.gammainc(alpha + more, x / scale) if x > 0 else pt.zeros_like(m)

    above = pt.gammaincc(alpha, upper / scale)
    inside, first, second = (distribution(k, upper) - distribution(k, lower) for k in range(3))
    mean = m * first - lower * inside + (upper - lower) * above
    square = m * (m + scale) * second - 2 * lower * m * first + lower**2 * inside + (upper - lower) ** 2 * above
    return lower + mean, pt.maximum(square - mean**2, 0.0)


def clamped_with_log(alpha: Tensor, scale: Tensor, lower: float, upper: float) -> tuple[tuple[Tensor, ...], tuple[tuple[Tensor, ...], ...]]:
    """Means and covariance of X and log X for a Gamma(alpha, scale) variable X clamped to its bounds.

    The density of s = log X is proportional to exp(-alpha (e^d - 1 - d)), d = s - log(alpha scale): curvature alpha at its
    top, slope alpha far to the left, ever steeper to the right.
    """
    alpha = pt.clip(alpha, 1 / LONGEST, NARROWEST)
    scale = pt.clip(scale, upper / LONGEST, upper * LONGEST)
    top = pt.log(alpha) + pt.log(scale)
    low, high = log(lower), log(upper)
    s, weights = panels(top, alpha, alpha, np.inf, (low, high))
    d = s - top[..., None, None]
    clamped = pt.clip(s, low, high)
    return expectations((pt.exp(clamped), clamped), weights * pt.exp(-alpha[..., None, None] * (pt.expm1(d) - d)))


FAMILIES = (Gamma(), InverseGamma(), HalfNormal())
