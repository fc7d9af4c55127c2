"""Exponential, Weibull, Pareto and Laplace: one sum of a statistic whose own law is exponential, once the public parameter is known.

They share one closed form, the mean and variance of an exponential variable clamped to its bounds. Of censored exponential times the
number of events is a second sum.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import log

import numpy as np
import pytensor.tensor as pt

from pymc_dp.families.family import CellSensitivity, Domain, Example, Scaled, Sensitivity
from pymc_dp.families.grid import POINTS
from pymc_dp.families.own_sums import Rows, plain
from pymc_dp.laws.events import Events
from pymc_dp.laws.kernel import Tensor
from pymc_dp.laws.law import Law, Moments

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


class CensoredExponential(Scaled):
    """``pm.Censored`` of an Exponential(scale) that ends at a plain number: how many times are events, and the sum of these.

    What the data say is -events log scale - sum y / scale, and what is not an event is at the end, so the likelihood needs no more. Where
    a bound lies below the limit, times are censored at that bound.
    """

    DISTRIBUTION = "CensoredExponential"
    BOUNDS = "nonnegative"
    KNOWN = ((1, "upper"),)
    EXAMPLES = (
        Example(Domain(0, 5, unknown=(True, False), known=(None, 5.0)), ((0.3, 2.0, 30.0), (5.0, 5.0, 5.0))),
        Example(Domain(1, 4, unknown=(True, False), known=(None, 9.0)), ((0.8, 5.0), (9.0, 9.0))),
        Example(Domain(0, 9, unknown=(True, False), known=(None, 4.0)), ((0.8, 5.0), (4.0, 4.0))),
        Example(Domain(3, 9, unknown=(True, False), known=(None, 2.0)), ((0.8, 5.0), (2.0, 2.0))),
    )

    def ranges(self, domain: Domain) -> tuple[tuple[str, float, float], ...]:
        """How far events are above the middle of the lower bound and the end, and events; what is not an event is 0 in both."""
        half = (_end(domain) - domain.lower) / 2
        return (("(y - middle) if event", -half, half), ("event", -1.0, 1.0))

    def statistics(self, domain: Domain) -> tuple[str, ...]:
        """Of events only."""
        return ("sum u(y) of events", "number of events")

    def own_sums(self, domain: Domain) -> Rows:
        """The sum of all times, besides."""
        end = _end(domain)
        half = (end - domain.lower) / 2
        return (("sum y", (end, half, -half)), *plain(self.statistics(domain)))

    def raw(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """An event is below the end. Clipping to the range does what rounding might not."""
        end = _end(domain)
        event = values < end
        return np.where(event, values - (domain.lower + end) / 2, 0.0), event.astype(float)

    def sensitivity(self, domain: Domain) -> Sensitivity:
        """In lattice units an event is (u, POINTS) with abs(u) <= POINTS, and any other time (0, 0).

        Two events differ in u only, by at most 2 POINTS; an event and another time by abs(u) + POINTS, which is no more, and in L2 by
        at most the root of 2 POINTS², which is less.
        """
        why = "of an event u(y) in [-1, 1] and 1, of any other time 0 and 0: both together move by at most 2"
        return Sensitivity(2 * POINTS, 4 * POINTS**2, POINTS, why)

    def cell_sensitivity(self, domain: Domain) -> CellSensitivity:
        """Three parts that add up to 2: 1 - u and 1 + u of an event, and 2 of any other time."""
        names = ("sum 1 - u(y) of events", "sum 1 + u(y) of events", "twice the others")
        return CellSensitivity(names, ((0, -1, 1), (0, 1, 1), (2 * POINTS, 0, -2)), 2 * POINTS, 4 * POINTS**2)

    def moments(self, domain: Domain, scale: Tensor, upper: Tensor) -> tuple[tuple[Tensor, ...], tuple[tuple[Tensor, ...], ...]]:
        """Means and covariance, from those of the clamped exponential variable y that is at the end where there is no event.

        Let x be y in widths above the lower bound, and q = exp(-end / scale) the probability of no event. There x = 1, so x and an event
        have covariance -q E(1 - x), and the first statistic is x - 1 + event / 2, in widths. With a limit at the lower bound or
        below, all values are at that bound, and count as events.
        """
        if _known(domain, 1) <= domain.lower:
            none = pt.zeros_like(scale)
            return (none - (domain.upper - domain.lower) / 2, none + 1), ((none,), (none, none))
        width = _end(domain) - domain.lower
        rate, start = _rate(width, scale, domain), domain.lower / width
        _, variance = clamped_exponential(rate, start)
        short = _short_of_the_end(rate, start)
        q, event = pt.exp(-(1 + start) * rate), -pt.expm1(-(1 + start) * rate)
        covariance = -q * short
        first = variance + covariance + q * event / 4
        return (width * (event / 2 - short), event), ((width * (width * first),), (width * (covariance + q * event / 2), q * event))

    def law(self, domain: Domain, n: Tensor, *parameters: Tensor) -> Law:
        """The central limit, but for the number of events, which is binomial; given that one is, u has a mean and a variance."""
        of_records = super().law(domain, n, *parameters)
        end = _end(domain)
        if _known(domain, 1) <= domain.lower or not isinstance(of_records, Moments):
            return of_records
        rate = end / (end - domain.lower) * _rate(end - domain.lower, parameters[0], domain)
        (added, event), ((square,), _) = of_records.mean, of_records.covariance
        mean = added / event
        variance = pt.maximum(square / event - pt.exp(-rate) * mean**2, 0.0)
        return replace(of_records, events=Events(pt.log(event), -rate, mean, variance))

    def from_sums(self, sums: Sequence[Tensor], n: Tensor, domain: Domain, scale: Tensor, upper: Tensor) -> Tensor:
        """-events log scale - sum y / scale."""
        above, events = sums
        end = _end(domain)
        return -events * pt.log(scale) - (above + events * (domain.lower + end) / 2 + (n - events) * end) / scale

    def project(self, noisy: np.ndarray, n: np.ndarray, spread: float, domain: Domain) -> np.ndarray:
        """Events between 0 and n, and u of each in [-1, 1], all short of the ends by the noise, where a likelihood may have no bound."""
        whole = np.broadcast_to(n, noisy.shape)[..., 1]
        least = np.minimum(spread, whole)
        events = np.clip(noisy[..., 1], least, np.maximum(whole - spread, least))
        most = events - np.minimum(spread, events)
        return np.stack([np.clip(noisy[..., 0], -most, most), events], axis=-1)


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


def _end(domain: Domain) -> float:
    """Where censored times end: at the limit, or at a bound before it. A limit that no value between the bounds is below ends none."""
    limit = _known(domain, 1)
    return limit if domain.lower < limit < domain.upper else domain.upper


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


def _short_of_the_end(rate: Tensor, start: float) -> Tensor:
    """By how much the mean in ``clamped_exponential`` is below 1: a (1 - m) + (1 - a), without cancelling where the rate is small."""
    rate = pt.clip(rate, 1 / LONGEST, LONGEST)
    small, large = pt.minimum(rate, 1.0), pt.maximum(rate, 1.0)
    series = pt.ones_like(small)
    for k in range(18, 2, -1):
        series = 1 - small / k * series
    short = pt.switch(pt.lt(rate, 1.0), small / 2 * series, 1 + pt.expm1(-large) / large)
    return pt.exp(-start * rate) * short - pt.expm1(-start * rate)


FAMILIES = (Exponential(), CensoredExponential(), Weibull(), Pareto(), Laplace())
