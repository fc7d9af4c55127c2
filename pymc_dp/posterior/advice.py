"""Which is expected to be nearer to the truth: a release with noise, or draws from the posterior. It is free, because no record is read.

The comparison is that of FGWC16, section 3, made finite: asymptotically a draw from the posterior after a noisy release has the
squared error 2 / (n I), and a draw from a posterior at temperature T has (1 + T) / (n I); with few records noise outweighs the
release and the prior both. Records and unknowns are imagined, from the prior.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dp.families.family import complete
from pymc_dp.models.spec import Likelihood
from pymc_dp.plans.network import network_of
from pymc_dp.plans.person import Person
from pymc_dp.plans.protection import protection_of
from pymc_dp.plans.statistic import PlannedStatistic
from pymc_dp.posterior.draws import task_of
from pymc_dp.posterior.price import NAT, Task
from pymc_dp.posterior.result import Prepared
from pymc_dp.posterior.routes import prepared
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.guard import boundary
from pymc_dp.privacy.layout import aligned, wrapped
from pymc_dp.privacy.mechanisms import Gaussian, Laplace
from pymc_dp.privacy.requests import PosteriorSample
from pymc_dp.private_models.rewrite import without_likelihoods

IMAGINED = 400, 100
"""So many values of the unknowns are imagined, and records for each."""
SEED = 20160207
"""The seed of what is imagined, so that the same advice is given every time."""
MOST_RECORDS = 10**9
"""Crossovers beyond so many records are not told."""


@dataclass(frozen=True)
class Statistic:
    """One released number, as the comparison sees it, in lattice units.

    Attributes
    ----------
    name : str
    within, between : float
        Variance of one record's statistic, averaged over the prior; and of its mean, over the prior.
    noise : float
        Variance of the noise.
    share : float
        The share of the records that it is about.
    smallest : float
        Draws keep probabilities this far from 0 and 1, where the prior does not.
    """

    name: str
    within: float
    between: float
    noise: float
    share: float = 1.0
    smallest: float = 0.0

    def release(self, n: float) -> float:
        """Expected squared error of a draw from the noise-aware posterior of n records, beside that of a draw from the prior."""
        n = n * self.share
        after = 1 / (1 / self.between + 1 / (self.within / n + self.noise / n**2))
        return after / self.between

    def draw(self, n: float, temperature: float) -> float:
        """Expected squared error of a draw from the posterior at a temperature, beside that of a draw from the prior.

        It comes from the draw's own variance, and from how far the mean is off.

        Of a uniform probability that draws keep away from 0 and 1 by w, a share (1 - 2 w)^2 of the variance is left, and what lies
        beyond is off by 2 w^3 / 3 on average, squared.
        """
        n, w = n * self.share, self.smallest
        between = self.between * (1 - 2 * w) ** 2
        flat = 1 / (1 / between + n / (self.within * temperature))
        off = flat**2 * (1 / between + n / (self.within * temperature**2))
        return (flat + off + 2 * w**3 / 3) / (2 * self.between)


@dataclass(frozen=True)
class Advice:
    """The expected errors of a release and of draws from the posterior, as ``advise`` compares them.

    Attributes
    ----------
    epsilon, delta : float
    draws : int
    range, temperature : float
        By how much one record moves the scores of a draw, in nats, and the temperature of its posterior; 0 and 1 where draws are refused.
    promise : str
        What kind of promise a draw has; "" where draws are refused.
    refusals : tuple of (str, str)
        For every mechanism that is not offered, its name and the reason.
    statistics : tuple of Statistic
        Empty where no comparison is known.
    records : int or None
        How many there are, where that is public.
    intervals : dict of str to (lower, upper)
        Where priors are cut off, by unknown.

    Examples
    --------
    >>> advice = pmdp.advise(model, epsilon=1.0)
    >>> advice.better
    'laplace'
    """

    epsilon: float
    delta: float
    draws: int
    range: float
    temperature: float
    promise: str
    refusals: tuple[tuple[str, str], ...]
    statistics: tuple[Statistic, ...]
    records: int | None
    intervals: Mapping[str, tuple[object, object]] = field(default_factory=dict)

    def release_error(self, n: float) -> float | None:
        """Expected squared error of a draw after a release, relative to one from the prior, averaged over statistics."""
        return float(np.mean([statistic.release(n) for statistic in self.statistics])) if self.statistics else None

    def draw_error(self, n: float) -> float | None:
        """Expected squared error of a draw from the posterior itself, relative to one from the prior, averaged over statistics."""
        if not self.statistics or not self.promise:
            return None
        return float(np.mean([statistic.draw(n, self.temperature) for statistic in self.statistics]))

    @property
    def crossover(self) -> float | None:
        """The number of records from which on a release is nearer to the truth; None if it is not known, or beyond all that is told."""
        if not self.statistics or not self.promise:
            return None
        grid = np.geomspace(1, MOST_RECORDS, 1801)
        better = [(self.release_error(n) or 0) < (self.draw_error(n) or 0) for n in grid]
        return float(grid[len(better) - better[::-1].index(False)]) if not all(better) and better[-1] else 1.0 if all(better) else None

    @property
    def better(self) -> str:
        """The mechanism to write: of a release, or of draws from the posterior; "" where that is not known."""
        refused = dict(self.refusals)
        if len(refused) == 1:
            return next(route for route in ("laplace", PosteriorSample.name) if route not in refused)
        if self.records is None or not self.statistics:
            return ""
        return "laplace" if (self.release_error(self.records) or 0) < (self.draw_error(self.records) or 0) else PosteriorSample.name

    def __repr__(self) -> str:
        refused = dict(self.refusals)
        several = [10**k for k in range(1, 7)] if self.records is None else sorted({self.records, *(10**k for k in range(1, 7))})
        lines = [
            f"at epsilon {self.epsilon:g}, delta {self.delta:g}, {self.draws:,} draw{'s' if self.draws > 1 else ''} from the posterior:"
        ]
        if self.promise:
            lines.append(
                f"  one draw moves by {self.range:.4g} nats, so the likelihood is flattened to T = {self.temperature:.4g} ({self.promise});"
                f" with many records its variance is {(1 + self.temperature) / 2:.4g} times that after a release"
            )
        if self.intervals:
            lines.append("  priors are cut off: " + "; ".join(f"{name} to {in_words(pair)}" for name, pair in self.intervals.items()))
        lines += [f"  {route} is not offered: {reason}" for route, reason in refused.items()]
        if self.statistics and self.promise:
            body = [
                (f"{n:,}" + (" (yours)" if n == self.records else ""), f"{self.release_error(n):.3g}", f"{self.draw_error(n):.3g}")
                for n in several
            ]
            lines.append(aligned(("records", "laplace", "posterior_sample"), body))
            lines.append("expected squared error of one draw, beside that of a draw from the prior")
        elif not refused:
            lines.append("  the errors can be compared for models whose records are alike, and for Bayesian networks")
        if self.better:
            crossover = f"; from {self.crossover:,.0f} records on a release is nearer" if self.crossover else ""
            lines.append(f"write mechanism={self.better!r}{crossover}")
        return "\n".join(line if "\n" in line else wrapped(line, rest="    ") for line in lines)


def in_words(pair: tuple[object, object]) -> str:
    """An interval; of several entries that of all together."""
    low, high = np.min(pair[0]), np.max(pair[1])  # type: ignore[call-overload]
    return f"[{low:.4g}, {high:.4g}]"


@boundary
def advise(
    model: pm.Model | None = None,
    *,
    epsilon: object,
    delta: float = 0,
    draws: int = 1,
    smallest: float | None = None,
    method: str = "exact",
    truncate: str | Mapping[str, tuple[float, float]] | None = None,
    bounds: Mapping[str, object] | None = None,
    public: Iterable[object] = (),
    unit: str = "row",
    neighbours: str = "replace",
    missing: Mapping[str, object] | Iterable[str] | None = None,
) -> Advice:
    """Compare a release with draws from the posterior at this budget. It costs nothing, and no record is read.

    Expected errors come from the normal approximation of both posteriors, with variances of records and of their means imagined
    from the prior (FGWC16, Theorems 3.1 and 3.2, with the prior and the noise that they let go to 0; docs/theory.md). For a coin
    they are within a third of the exact errors. Read them as orders of magnitude.

    Parameters
    ----------
    epsilon, delta
        What may be spent in all.
    draws : int
        How many draws from the posterior are wanted; after a release they cost nothing.
    smallest, method, truncate
        See ``PosteriorSample``.
    model, bounds, public, unit, neighbours, missing
        See ``release``.

    Returns
    -------
    Advice

    Raises
    ------
    Refusal
        When neither is offered.

    Examples
    --------
    >>> advice = pmdp.advise(model, epsilon=1.0)
    >>> advice.release_error(200) < advice.draw_error(200)
    True
    """
    if isinstance(unit, Person):
        raise Refusal(
            f"advise compares errors for single rows. Write unit='row' and epsilon / {unit.at_most}, since {unit.at_most} rows of one"
            f" {unit.name} move the likelihood {unit.at_most} times as far as one row does; pymc_dp.plan takes this unit, and says what a"
            " release is worth."
        )
    protection = protection_of(bounds=bounds, public=public, unit=unit, neighbours=neighbours, missing=missing)
    task = task_of(model, epsilon, delta, PosteriorSample(draws, smallest, method, truncate=truncate), protection)
    refusals: dict[str, str] = {}
    prepared_draw = _or_refusal(lambda: prepared(task), PosteriorSample.name, refusals)
    plan = _or_refusal(lambda: task.plan, "laplace", refusals)
    if len(refusals) == 2:
        raise Refusal("\n".join(f"{route} is not offered: {reason}" for route, reason in refusals.items()))
    costs, reasons = (float(task.total.epsilon), float(task.total.delta), draws), tuple(refusals.items())
    if prepared_draw is None:
        return Advice(*costs, 0.0, 1.0, "", reasons, (), None)
    statistics = _compared(task, plan.statistics, prepared_draw) if plan is not None and plan.statistics else ()
    moved = sum(draw.difference for draw in prepared_draw.price.draws) / NAT / draws
    temperature, intervals = prepared_draw.price.temperature, prepared_draw.intervals
    return Advice(*costs, moved, temperature, prepared_draw.promise, reasons, statistics, prepared_draw.records, intervals)


def _or_refusal[T](make: Callable[[], T], route: str, refusals: dict[str, str]) -> T | None:
    """What is offered; or nothing, and why it is refused beside its route."""
    try:
        return make()
    except Refusal as reason:
        refusals[route] = str(reason)
        return None


def _compared(task: Task, plans: Sequence[PlannedStatistic], prepared_draw: Prepared) -> tuple[Statistic, ...]:
    """The released numbers of models whose records are alike, and of networks; nothing for others."""
    noise, share = (Gaussian() if task.total.delta else Laplace()), Fraction(1, len(plans))
    scales = [noise.calibrate(p.sensitivity.difference, p.sensitivity.square, noise.share(task.total, share)) for p in plans]
    variances = [scale**2 * (1 if task.total.delta else 2) for scale in scales]
    if network_of(plans, alone=True)[0] is not None:
        return tuple(_of_table(planned, variance, prepared_draw.smallest) for planned, variance in zip(plans, variances, strict=True))
    if any(p.structure != "shared" or p.family is None or p.sizes != "public" or prod(p.likelihood.columns) > 1 for p in plans):
        return ()
    spec = task.rowwise.spec
    _, parameters = without_likelihoods(spec, {likelihood.name: list(likelihood.parameters) for likelihood in spec.likelihoods})
    result: list[Statistic] = []
    for planned, likelihood, variance in zip(plans, spec.likelihoods, variances, strict=True):
        result += _imagined(planned, likelihood, parameters[likelihood.name], variance)
    return tuple(result)


def _of_table(planned: PlannedStatistic, noise: float, smallest: float) -> Statistic:
    """A network's table, of which every row has as many records, and uniform probabilities."""
    K = max(planned.likelihood.levels, 2)
    within, between = (K - 1) / (K * (K + 1)), (K - 1) / (K**2 * (K + 1))
    return Statistic(planned.likelihood.name, within, between, noise, 1 / planned.grid.size, smallest)


def _imagined(planned: PlannedStatistic, likelihood: Likelihood, parameters: Sequence, noise: float) -> list[Statistic]:
    """Variances of every statistic of one likelihood, from unknowns and records drawn from the prior."""
    unknowns, records = IMAGINED
    assert likelihood.make is not None
    assert planned.family is not None
    like = np.zeros(records)
    full = [
        pt.shape_padleft(p, 1 + core - p.type.ndim) + like.reshape(-1, *[1] * core)
        for p, core in zip(parameters, likelihood.core_ndims, strict=True)
    ]
    values = pm.draw(likelihood.make(*full), draws=unknowns, random_seed=SEED, mode="FAST_COMPILE")
    statistics = planned.family.exact(complete(values.ravel(), planned.domain), planned.domain)
    result = []
    for name, statistic in zip(planned.statistics, statistics, strict=True):
        table = np.asarray(statistic, dtype=float).reshape(unknowns, records)
        within = float(table.var(axis=1, ddof=1).mean())
        between = float(table.mean(axis=1).var(ddof=1)) - within / records
        if within > 0 and between > 0:
            result.append(Statistic(f"{planned.likelihood.name}: {name}", within, between, noise))
    return result
