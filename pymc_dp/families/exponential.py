"""Exponential, Weibull, Pareto and Laplace: one sum of a statistic whose own law is exponential, once the public parameter is known.

They share one closed form, the mean and variance of an exponential variable clamped to its bounds.
"""

from collections.abc import Sequence
from math import log

import numpy as np
import pytensor.tensor as pt

from pymc_dp.families.family import Domain, Example, Scaled
from pymc_dp.laws.kernel import Tensor

LONGEST = np.float64(1e50)
"""Ratios of bounds and scale beyond this, or below its inverse, are not told apart."""


class Exponential(Scaled):
    """Exponential(scale)."""

    DISTRIBUTION = "Exponential"
    BOUNDS = "nonnegative"
    EXAMPLES = (
        Example(Domain(0, 8, unknown=(True,)), ((0.3, 2.0, 30.0),)),
        Example(Domain(1, 4, unknown=(True,)), ((0.8, 5.0),)),
    )

    def ranges(self, domain: Domain) -> tuple[tuple[str, float, float], ...]:
        """The value itself, between the bounds."""
        return (("y", domain.lower, domain.upper),)

    def raw(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """The value itself."""
        return (values,)

    def moments(self, domain: Domain, scale: Tensor) -> tuple[tuple[Tensor, ...], tuple[tuple[Tensor, ...], ...]]:
        """Mean and variance of one clamped value, an exponential variable."""
        width = domain.upper - domain.lower
        mean, variance = clamped_exponential(_rate(width, scale, domain), domain.lower / width)
        return (domain.lower + width * mean,), ((width * (width * variance),),)

    def from_sums(self, sums: Sequence[Tensor], n: Tensor, domain: Domain, scale: Tensor) -> Tensor:
        """-n log scale - sum y / scale."""
        return -n * pt.log(scale) - sums[0] / scale


class Weibull(Scaled):
    """Weibull(alpha, beta), alpha being a plain number; with alpha = 2 it is the Rayleigh distribution."""

    DISTRIBUTION = "Weibull"
    BOUNDS = "nonnegative"
    KNOWN = ((0, "alpha"),)
    EXAMPLES = (
        Example(Domain(0, 5, unknown=(False, True), known=(2.0, None)), ((2.0, 2.0, 2.0), (0.5, 2.0, 9.0))),
        Example(Domain(0.5, 9, unknown=(False, True), known=(0.7, None)), ((0.7, 0.7), (1.0, 6.0))),
    )

    def ranges(self, domain: Domain) -> tuple[tuple[str, float, float], ...]:
        """(y / upper)**alpha, which cannot overflow however large alpha is."""
        return (("(y / upper)**alpha", (domain.lower / domain.upper) ** _known(domain, 0), 1.0),)

    def raw(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """(y / upper)**alpha."""
        return ((values / domain.upper) ** _known(domain, 0),)

    def moments(self, domain: Domain, alpha: Tensor, beta: Tensor) -> tuple[tuple[Tensor, ...], tuple[tuple[Tensor, ...], ...]]:
        """Mean and variance of a clamped (y / beta)**alpha, which is a standard exponential variable."""
        [(_, lower, upper)] = self.ranges(domain)
        width = upper - lower
        mean, variance = clamped_exponential(width * _inverse_scale(domain, beta), lower / width)
        return (lower + width * mean,), ((width * (width * variance),),)

    def from_sums(self, sums: Sequence[Tensor], n: Tensor, domain: Domain, alpha: Tensor, beta: Tensor) -> Tensor:
        """-n alpha log beta - sum (y / upper)**alpha (upper / beta)**alpha."""
        return -n * _known(domain, 0) * pt.log(beta) - sums[0] * _inverse_scale(domain, beta)


class Pareto(Scaled):
    """Pareto(alpha, m), m being a plain number."""

    DISTRIBUTION = "Pareto"
    BOUNDS = "positive"
    KNOWN = ((1, "m"),)
    EXAMPLES = (
        Example(Domain(1, 50, unknown=(True, False), known=(None, 1.0)), ((0.2, 1.0, 4.0), (1.0, 1.0, 1.0))),
        Example(Domain(0.5, 20, unknown=(True, False), known=(None, 2.0)), ((0.5, 3.0), (2.0, 2.0))),
        Example(Domain(3, 20, unknown=(True, False), known=(None, 2.0)), ((0.5, 3.0), (2.0, 2.0))),
    )

    def ranges(self, domain: Domain) -> tuple[tuple[str, float, float], ...]:
        """Log y, from the lower bound or from m, below which no value lies."""
        m = _known(domain, 1)
        return (("log y", log(m if domain.lower < m < domain.upper else domain.lower), log(domain.upper)),)

    def raw(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """Log y; clipping to the range takes what is below m to m."""
        return (np.log(values),)

    def moments(self, domain: Domain, alpha: Tensor, m: Tensor) -> tuple[tuple[Tensor, ...], tuple[tuple[Tensor, ...], ...]]:
        """Mean and variance of a clamped log(y / m), exponential of rate alpha. From m > upper on, all are at the upper bound."""
        [(_, lower, upper)] = self.ranges(domain)
        width = upper - lower
        start = log(_known(domain, 1))
        if start >= upper:
            return (upper + pt.zeros_like(alpha),), ((pt.zeros_like(alpha),),)
        mean, variance = clamped_exponential(width * alpha, (lower - start) / width)
        return (lower + width * mean,), ((width * (width * variance),),)

    def from_sums(self, sums: Sequence[Tensor], n: Tensor, domain: Domain, alpha: Tensor, m: Tensor) -> Tensor:
        """N log alpha - alpha sum log(y / m)."""
        return n * pt.log(alpha) - alpha * (sums[0] - n * log(_known(domain, 1)))


class Laplace(Scaled):
    """Laplace(mu, b), mu being a plain number."""

    DISTRIBUTION = "Laplace"
    BOUNDS = "real"
    KNOWN = ((0, "mu"),)
    EXAMPLES = (
        Example(Domain(-3, 5, unknown=(False, True), known=(1.0, None)), ((1.0, 1.0, 1.0), (0.3, 2.0, 20.0))),
        Example(Domain(-3, 5, unknown=(False, True), known=(-2.0, None)), ((-2.0, -2.0, -2.0), (0.3, 2.0, 20.0))),
        Example(Domain(1, 5, unknown=(False, True), known=(0.5, None)), ((0.5, 0.5), (1.0, 6.0))),
        Example(Domain(1, 5, unknown=(False, True), known=(7.0, None)), ((7.0, 7.0), (1.0, 6.0))),
    )

    def ranges(self, domain: Domain) -> tuple[tuple[str, float, float], ...]:
        """abs(y - mu), largest at the farther bound and least at mu, or at the nearer bound where mu lies outside."""
        mu = _known(domain, 0)
        nearest = abs(mu - min(max(mu, domain.lower), domain.upper))
        return (("abs(y - mu)", nearest, max(domain.upper - mu, mu - domain.lower)),)

    def raw(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """abs(y - mu)."""
        return (np.abs(values - _known(domain, 0)),)

    def moments(self, domain: Domain, mu: Tensor, b: Tensor) -> tuple[tuple[Tensor, ...], tuple[tuple[Tensor, ...], ...]]:
        """Half of the values are an exponential distance above mu, half below; only one half can move where mu lies outside.

        With mu inside the bounds, the variance is that within the halves plus that between their means.
        """
        [(_, lower, upper)] = self.ranges(domain)
        if lower > 0:
            width = upper - lower
            mean, variance = clamped_exponential(_rate(width, b, domain), lower / width, 0.5)
            return (lower + width * mean,), ((width * (width * variance),),)
        halves = []
        for width in (domain.upper - _known(domain, 0), _known(domain, 0) - domain.lower):
            mean, variance = clamped_exponential(_rate(width, b, domain), 0.0)
            halves.append((width * mean, width * (width * variance)))
        (above, spread_above), (below, spread_below) = halves
        return ((above + below) / 2,), (((spread_above + spread_below) / 2 + (above - below) ** 2 / 4,),)

    def from_sums(self, sums: Sequence[Tensor], n: Tensor, domain: Domain, mu: Tensor, b: Tensor) -> Tensor:
        """-n log b - sum abs(y - mu) / b."""
        return -n * pt.log(b) - sums[0] / b


def _known(domain: Domain, position: int) -> float:
    value = domain.known[position]
    assert value is not None  # KNOWN names it
    return value


def _rate(width: float, scale: Tensor, domain: Domain) -> Tensor:
    """How many scales fit into a width."""
    whole = domain.upper - domain.lower
    return width / pt.clip(scale, whole / LONGEST, whole * LONGEST)


def _inverse_scale(domain: Domain, beta: Tensor) -> Tensor:
    """(upper / beta)**alpha, the rate of a Weibull value's statistic."""
    return pt.exp(pt.clip(_known(domain, 0) * (log(domain.upper) - pt.log(beta)), -log(LONGEST), log(LONGEST)))


def clamped_exponential(rate: Tensor, start: float, share: float = 1.0) -> tuple[Tensor, Tensor]:
    """Mean and variance of how far above the lower bound a clamped exponential variable is, in widths of the bounds.

    A value is above the lower bound with probability a = share exp(-start rate). How far it then is, clamped to 1, has mean
    m = (1 - exp(-rate)) / rate and variance v = (1 - 2 rate exp(-rate) - exp(-2 rate)) / rate^2, which is
    2 exp(-rate) (sinh rate - rate) / rate^2, taken by its series where it cancels. So the mean is a m, and the variance
    a v + a (1 - a) m^2: no term is negative and nothing cancels.

    Parameters
    ----------
    rate : Tensor
        Width of the bounds / scale.
    start : float
        How far the lower bound is above the point where the exponential starts, in widths of the bounds.
    share : float
        Probability that a value is above that point.
    """
    rate = pt.clip(rate, 1 / LONGEST, LONGEST)
    above = share * pt.exp(-start * rate)
    below = (1 - share) - share * pt.expm1(-start * rate)
    mean = -pt.expm1(-rate) / rate
    small, large = pt.minimum(rate, 1.0), pt.maximum(rate, 1.0)
    series = pt.ones_like(small)
    for k in (156, 110, 72, 42, 20):
        series = 1 + small**2 / k * series
    variance = pt.switch(
        pt.lt(rate, 1.0),
        small * pt.exp(-small) / 3 * series,
        (1 - 2 * large * pt.exp(-large) - pt.exp(-2 * large)) / large**2,
    )
    return above * mean, above * (variance + below * mean**2)


FAMILIES = (Exponential(), Weibull(), Pareto(), Laplace())
