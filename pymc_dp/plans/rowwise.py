"""The log-likelihood of one record as a function of the unknowns, and how far it can vary.

Nothing here reads a record. Where records are discrete, all that can occur are listed; where they are not, interval arithmetic and
branch-and-bound over the box of the unknowns say between which values the log-likelihood lies. A draw from the posterior clips every
record's part to these, so that what one record can do is certain even where floating point is not exact.
"""

import heapq
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import count
from math import prod
from operator import add

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.model.fgraph import ModelDeterministic, ModelFreeRV, ModelNamed
from pytensor.graph.basic import Variable
from pytensor.raise_op import CheckAndRaise

from pymc_dp.families.family import Domain
from pymc_dp.models.intervals import Interval, by_entry, interval
from pymc_dp.models.spec import Likelihood, ModelSpec, Placeholder
from pymc_dp.models.structure import Unreduced, above, substitute
from pymc_dp.models.unknowns import Unknown, by_name, unknown_of
from pymc_dp.plans.bounds import Bounded, covariate_bounds
from pymc_dp.plans.missing import LEFT_OUT
from pymc_dp.plans.plan import declared
from pymc_dp.plans.protection import Protection
from pymc_dp.privacy.accounting import Refusal

MOST_RECORDS = 4096
"""The most different records that are listed."""
PIECES = 4096
"""Into so many pieces the box of a record is cut where records cannot be listed."""
MOST_POINTS = 2049
"""The most points of a grid that are looked at one by one."""
SEARCHED, WAITS, CLOSE = 512, 64, 0.01
"""So many boxes of unknowns are halved by branch-and-bound at most; it stops where so many lowered the bound by a smaller share."""
SKIPPED = (ModelDeterministic, ModelNamed, CheckAndRaise)
"""Operations without a value of their own: names, and checks of parameters."""


# ---------- what a record is
@dataclass(frozen=True)
class Entry:
    """One number of a record: of an observed variable, or of an array its likelihood rests on.

    Attributes
    ----------
    variable : Variable
        A placeholder.
    axis : int
        Of the records.
    place : int
        Which of the numbers that it has for every record.
    lower, upper : float
    levels : tuple of float or None
        All values it can have, if they are few.
    """

    variable: Variable
    axis: int
    place: int
    lower: float
    upper: float
    levels: tuple[float, ...] | None


@dataclass(frozen=True)
class Rowwise:
    """The log-likelihood of a record, and all that is publicly known about records.

    Attributes
    ----------
    likelihoods : tuple of Likelihood
    parameters : tuple of tuples of Variable
        Of every likelihood, on placeholders and stand-ins.
    values : tuple of Variable
        A placeholder for every observed variable, records along axis 0.
    domains : tuple of Domain
    bounds : dict of str to Bounded
        Of private covariates, by name.
    unknowns : tuple of Unknown
    stand_ins : tuple of Variable
        One for every unknown, in the graph.
    density : Variable
        (N,): of every record, on placeholders and stand-ins.
    each : tuple of Variable
        The same of every likelihood, whose sum ``density`` is.
    kept : tuple of (Variable or None)
        For every likelihood, a placeholder (N, columns) that is 0 where a record brings nothing because something is missing; None where
        nothing is left out.
    left_out : tuple of str
        The names that this is about.
    fills : dict of str to float
        Which level a missing value of these counts as.
    """

    likelihoods: tuple[Likelihood, ...]
    parameters: tuple[tuple[Variable, ...], ...]
    values: tuple[Variable, ...]
    domains: tuple[Domain, ...]
    bounds: Mapping[str, Bounded]
    unknowns: tuple[Unknown, ...]
    stand_ins: tuple[Variable, ...]
    density: Variable
    each: tuple[Variable, ...] = ()
    kept: tuple[Variable | None, ...] = ()
    left_out: tuple[str, ...] = ()
    fills: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def by_entry(self) -> Variable:
        """``density`` with every product of arrays as a sum of products: entry by entry, so that no record's part depends on where it
        stands or how many others there are, not even by rounding.
        """
        return by_entry(self.density)

    @cached_property
    def inputs(self) -> list[tuple[Placeholder, int]]:
        """Every input of every likelihood, once, with the likelihood it belongs to."""
        return [(given, k) for k, one in enumerate(self.likelihoods) for given in one.inputs]

    @property
    def size(self) -> int:
        """How many unknown numbers there are."""
        return sum(one.size for one in self.unknowns)

    @property
    def lower(self) -> np.ndarray:
        """(P,): of all unknown numbers."""
        return np.concatenate([one.lower for one in self.unknowns])

    @property
    def upper(self) -> np.ndarray:
        """(P,)."""
        return np.concatenate([one.upper for one in self.unknowns])

    def split(self, numbers: np.ndarray) -> list[np.ndarray]:
        """Numbers (..., P) as one array per unknown, in its own shape."""
        return list(by_name(self.unknowns, numbers).values())


def rowwise(found: ModelSpec, protection: Protection, latents: Collection[str] = ()) -> Rowwise:
    """The log-likelihood of a record of this model, or a refusal; ``latents`` are free variables that are no numbers."""
    checked, rules = declared(found, protection)
    left_out = tuple(name for name, rule in rules.items() if rule == LEFT_OUT)
    fills = {name: float(rule) for name, rule in rules.items() if rule != LEFT_OUT}
    kept: list[Variable | None] = []
    values: list[Variable] = []
    domains: list[Domain] = []
    parameters: list[tuple[Variable, ...]] = []
    limits: dict[str, Bounded] = {}
    densities: list[Variable] = []
    numbers = [v for v in found.kept if isinstance(v.owner.op, ModelFreeRV) and v.owner.op.name not in latents]
    unknowns = tuple(unknown_of(v) for v in numbers)
    stand_ins = tuple(pt.tensor(f"unknown_{k}", dtype=one.variable.type.dtype, shape=one.shape) for k, one in enumerate(unknowns))
    replaced = {one.variable: stand_in for one, stand_in in zip(unknowns, stand_ins, strict=True)}
    for one in found.likelihoods:
        if not protection.sized and any(not given.private for given in one.inputs):
            public = next(given.name for given in one.inputs if not given.private)
            raise Refusal(
                f'{public} is public along the records, which reveals how many there are. Write neighbours="replace", or leave it private.'
            )
        value, domain = _value(one, checked)
        values.append(value)
        domains.append(domain)
        try:
            limits |= covariate_bounds(one, checked)
        except Unreduced as reason:
            raise Refusal(f"{one.name} cannot be drawn from: {reason}.") from None
        given = tuple(substitute(parameter, dict(replaced), SKIPPED) for parameter in one.parameters)
        parameters.append(given)
        some = {one.name, *(i.name for i in one.inputs if i.private)} & set(left_out)
        kept.append(pt.tensor(f"{one.name}_kept", dtype="float64", shape=(None, prod(one.columns))) if some else None)
        densities.append(_density(one, value, given, kept[-1]))
    _check_fills(found, domains, limits, fills)
    total = reduce(add, densities)
    if not set(stand_ins) & set(above([total])):
        raise Refusal("The likelihood rests on no unknown, so the prior is the posterior. Draw from the prior.")
    return Rowwise(
        found.likelihoods, tuple(parameters), tuple(values), tuple(domains), limits, unknowns, stand_ins, total, tuple(densities),
        tuple(kept), left_out, fills,
    )  # fmt: skip


def _check_fills(found: ModelSpec, domains: Sequence[Domain], bounds: Mapping[str, Bounded], fills: Mapping[str, float]) -> None:
    """What stands for missing values is a value that the variable can have."""
    ends = {one.name: (domain.lower, domain.upper) for one, domain in zip(found.likelihoods, domains, strict=True)}
    ends |= {i.name: (0.0, (i.levels or 1) - 1.0) for one in found.likelihoods for i in one.inputs if i.private and i.index}
    ends |= {name: (float(bounded.lower.max()), float(bounded.upper.min())) for name, bounded in bounds.items()}
    for name, fill in fills.items():
        levels = bounds[name].levels if name in bounds else None
        if not ends[name][0] <= fill <= ends[name][1] or (levels is not None and fill not in levels):
            raise Refusal(f"A missing {name} cannot count as {fill:g}, which is no value of {name}. Write one that it can have.")


def _value(one: Likelihood, bounds: Mapping[str, object]) -> tuple[Variable, Domain]:
    """A placeholder for the observed values, and their domain."""
    pair = bounds.get(one.name)
    if pair is not None:
        try:
            lower, upper = np.asarray(pair, dtype=float)
        except (TypeError, ValueError):
            raise Refusal(f"bounds of {one.name} must be a pair of numbers. Write bounds={{{one.name!r}: (lower, upper)}}.") from None
        if not (np.isfinite([lower, upper]).all() and lower < upper):
            raise Refusal(f"bounds of {one.name} must be finite, the lower one first. Write bounds={{{one.name!r}: (lower, upper)}}.")
        pair = float(lower), float(upper)
    whole = "int" in _dtype(one)
    value = pt.tensor(f"{one.name}_value", dtype="int64" if whole else "float64", shape=(None, *one.columns))
    return value, one.domain(pair)


def _dtype(one: Likelihood) -> str:
    assert one.make is not None
    return str(one.make(*[parameter.type() for parameter in one.parameters]).type.dtype)


def _density(one: Likelihood, value: Variable, parameters: Sequence[Variable], kept: Variable | None) -> Variable:
    """(N,): the log-density of every record under one likelihood, summed over its columns; 0 where it brings nothing."""
    assert one.make is not None
    # Distributions made of others do not broadcast against their values, so every parameter is as long as they are.
    like = pt.zeros_like(value, dtype="float64")
    full = [
        pt.shape_padleft(p, value.type.ndim + core - p.type.ndim) + pt.shape_padright(like, core)
        for p, core in zip(parameters, one.core_ndims, strict=True)
    ]
    # PyMC clones what is above a distribution where it derives its density, so it sees stand-ins for all that is there.
    standing_in = [parameter.type() for parameter in full]
    log_p = pm.logp(one.make(*standing_in), value)
    # Whether parameters are allowed may depend on records, so nothing is raised; what is not a number is clipped where records are read.
    each = substitute(log_p, dict(zip(standing_in, full, strict=True)), SKIPPED)
    by_column = each.reshape((value.shape[0], prod(one.columns)))
    return (by_column if kept is None else pt.switch(kept, by_column, 0.0)).sum(axis=1)


# ---------- how far it varies
@dataclass(frozen=True)
class Ranges:
    """Between which values the log-likelihood of a record lies, less that at a point of reference.

    Attributes
    ----------
    lower, upper : (B, P) ndarray
        Boxes of unknowns, which cover their support.
    least, most : (B,) ndarray
        In each of them, over all records.
    reference : (P,) ndarray or None
        The unknowns whose log-likelihood is taken away from every record's: the posterior is the same.
    """

    lower: np.ndarray
    upper: np.ndarray
    least: np.ndarray
    most: np.ndarray
    reference: np.ndarray | None

    @property
    def C(self) -> float:  # noqa: N802 - its name in the papers
        """The largest distance between two records' log-likelihoods at the same unknowns, in nats."""
        return float((self.most - self.least).max())

    def at(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """At given unknowns (G, P): the narrowest of the boxes each lies in."""
        least, most = np.full(len(numbers), -np.inf), np.full(len(numbers), np.inf)
        for low, high, a, b in zip(self.lower, self.upper, self.least, self.most, strict=True):
            inside = ((numbers >= low) & (numbers <= high)).all(axis=1)
            least[inside], most[inside] = np.maximum(least[inside], a), np.minimum(most[inside], b)
        return least, most


@dataclass
class Pieces:
    """The box of a record cut into pieces: bounds of every placeholder, pieces along the axis of records."""

    given: dict[Variable, Interval]
    norms: dict[Variable, float] = field(default_factory=dict)
    listed: bool = False


def entries_of(rows: Rowwise, known: Mapping[Variable, np.ndarray]) -> list[Entry]:
    """All numbers of a record. ``known`` has the public arrays, whose values may be listed."""
    result = []
    for value, domain, one in zip(rows.values, rows.domains, rows.likelihoods, strict=True):
        whole = value.type.dtype == "int64"
        levels = _levels(domain.lower, domain.upper) if whole else None
        result += [Entry(value, 0, place, domain.lower, domain.upper, levels) for place in range(prod(one.columns))]
    for kept, one in zip(rows.kept, rows.likelihoods):
        result += [Entry(kept, 0, place, 0.0, 1.0, (0.0, 1.0)) for place in range(prod(one.columns)) if kept is not None]
    for given, _ in rows.inputs:
        if given.axis is None:
            continue
        if not given.private:
            by_row = np.moveaxis(known[given.variable], given.axis, 0)
            for place, column in enumerate(by_row.reshape(len(by_row), -1).T):
                distinct = np.unique(column)
                levels = tuple(map(float, distinct)) if len(distinct) <= MOST_RECORDS else None
                result.append(Entry(given.variable, given.axis, place, float(distinct[0]), float(distinct[-1]), levels))
            continue
        shape = [1 if k == given.axis else length or 1 for k, length in enumerate(given.variable.type.shape)]
        if given.index:
            lower, upper = np.zeros(shape), np.full(shape, (given.levels or 1) - 1.0)
            listed = None
        else:
            bounded = rows.bounds[given.name]
            lower, upper, listed = bounded.lower, bounded.upper, bounded.levels
        flat = zip(np.moveaxis(lower, given.axis, 0).ravel(), np.moveaxis(upper, given.axis, 0).ravel(), strict=True)
        for place, (low, high) in enumerate(flat):
            levels = listed if listed is not None else _levels(low, high) if given.whole or given.index else None
            result.append(Entry(given.variable, given.axis, place, float(low), float(high), levels))
    return result


def norms_of(rows: Rowwise) -> dict[Variable, float]:
    """The largest Euclidean norm of a record's entries, of the placeholders for which it was declared."""
    private = [given for given, _ in rows.inputs if given.private and given.name in rows.bounds]
    return {given.variable: rows.bounds[given.name].norm for given in private if np.isfinite(rows.bounds[given.name].norm)}


def _levels(lower: float, upper: float) -> tuple[float, ...] | None:
    return tuple(map(float, range(int(lower), int(upper) + 1))) if upper - lower < MOST_RECORDS else None


def pieces(rows: Rowwise, entries: Sequence[Entry], shared: Mapping[Variable, np.ndarray], norms: Mapping[Variable, float]) -> Pieces:
    """The box of a record cut into pieces: levels one by one, as far as they are few, and real numbers in equal parts."""
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    left = PIECES
    real = [entry for entry in entries if entry.levels is None]
    listed = {}
    for k, entry in sorted(enumerate(entries), key=lambda pair: len(pair[1].levels or ())):
        if entry.levels is not None and len(entry.levels) <= left:
            listed[k] = True
            left //= len(entry.levels)
    each = max(int(left ** (1 / len(real))), 1) if real else 1
    for k, entry in enumerate(entries):
        if k in listed:
            at = np.array(entry.levels)
            parts.append((at, at))
        else:
            cuts = np.linspace(entry.lower, entry.upper, (each if entry.levels is None else 1) + 1)
            parts.append((cuts[:-1], cuts[1:]))
    many = prod(len(low) for low, _ in parts)
    grid = np.indices([len(low) for low, _ in parts]).reshape(len(parts), many) if parts else np.zeros((0, 1), dtype=int)
    given: dict[Variable, Interval] = {variable: (array, array) for variable, array in shared.items()}
    by_variable: dict[Variable, list[int]] = {}
    for k, entry in enumerate(entries):
        by_variable.setdefault(entry.variable, []).append(k)
    for variable, several in by_variable.items():
        ends = []
        for end in range(2):
            columns = np.stack([parts[k][end][grid[k]] for k in several], axis=-1)
            axis = entries[several[0]].axis
            shape = [length for place, length in enumerate(variable.type.shape) if place != axis]
            full = columns.reshape(-1, *[length or 1 for length in shape])
            if "int" in variable.type.dtype:  # no record is beyond what its kind can hold
                full = np.clip(full, np.iinfo(variable.type.dtype).min, np.iinfo(variable.type.dtype).max)
            ends.append(np.moveaxis(full, 0, axis).astype(variable.type.dtype))
        given[variable] = (ends[0], ends[1])
    return Pieces(given, dict(norms), not real and len(listed) == len(entries))


def ranges(rows: Rowwise, cut: Pieces, points: np.ndarray | None = None, *, referred: bool = True) -> Ranges:
    """Certified bounds of the log-likelihood over all records, at points or in boxes that cover the support.

    With and without a reference at the middle of the support; the tighter is kept. Where there are more points than are looked at
    one by one: branch-and-bound. The box of unknowns in which the log-likelihood varies most is halved along its relatively
    widest side, until that no longer helps.

    Parameters
    ----------
    rows : Rowwise
    cut : Pieces
    points : (G, P) ndarray, optional
        The only unknowns that matter.
    referred : bool
        Whether a reference may be taken away.

    Raises
    ------
    Refusal
        Where it has no bound, with what to write instead.
    """
    lower, upper = rows.lower, rows.upper
    norms = {**cut.norms, **{s: u.radius for s, u in zip(rows.stand_ins, rows.unknowns, strict=True) if np.isfinite(u.radius)}}

    def of(low: np.ndarray, high: np.ndarray) -> Interval:
        box = zip(rows.stand_ins, rows.split(low), rows.split(high), strict=True)
        return interval(rows.density, {**cut.given, **{stand_in: (a, b) for stand_in, a, b in box}}, norms)

    middle = (lower + upper) / 2
    try:
        at_middle, _ = of(middle, middle), of(lower, upper)
    except Unreduced as reason:
        raise Refusal(_unbounded(rows, of, str(reason))) from None
    results = []
    for reference in (middle, None) if referred else (None,):
        taken = (np.zeros(1), np.zeros(1)) if reference is None else at_middle

        def less(low: np.ndarray, high: np.ndarray, taken: Interval = taken) -> tuple[float, float]:
            least, most = of(low, high)
            return float((least - taken[1]).min()), float((most - taken[0]).max())

        if points is not None and len(points) <= MOST_POINTS:
            found = np.array([less(point, point) for point in points])
            results.append(Ranges(points, points, found[:, 0], found[:, 1], reference))
        else:
            results.append(Ranges(*_halved(lower, upper, less, SEARCHED if len(lower) <= 4 else SEARCHED // 16), reference))
    return min(results, key=lambda one: one.C)


def _halved(
    lower: np.ndarray, upper: np.ndarray, less: Callable[[np.ndarray, np.ndarray], tuple[float, float]], most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Boxes that cover one, with bounds in each: the box of the widest bounds is halved again and again."""
    a, b = less(lower, upper)
    heap, ticket, before = [(a - b, 0, lower, upper, a, b)], count(1), b - a
    for halved in range(most):
        _, _, low, high, a, b = heapq.heappop(heap)
        side = np.arange(len(low)) == np.argmax((high - low) / (upper - lower))
        centre = np.where(side, (low + high) / 2, low), np.where(side, (low + high) / 2, high)
        for start, stop in ((low, centre[1]), (centre[0], high)):
            one, other = less(start, stop)
            one, other = max(a, one), min(b, other)
            heapq.heappush(heap, (one - other, next(ticket), start, stop, one, other))
        if halved % WAITS == WAITS - 1:
            if -heap[0][0] > (1 - CLOSE) * before:
                break
            before = -heap[0][0]
    _, _, lows, highs, leasts, mosts = zip(*heap, strict=True)
    return np.array(lows), np.array(highs), np.array(leasts), np.array(mosts)


def _unbounded(rows: Rowwise, of, reason: str) -> str:
    """What to write where a log-likelihood has no bound: a narrower support that would do, if there is one."""
    names = " and ".join(one.name for one in rows.likelihoods)
    width = rows.upper - rows.lower
    for share in (0.01, 0.05, 0.2):
        try:
            of(rows.lower + share * width, rows.upper - share * width)
        except Unreduced:
            continue
        one = rows.unknowns[0]
        low, high = (end[0] for end in (rows.lower + share * width, rows.upper - share * width))
        return (
            f"One record can move the posterior without limit, because the log-likelihood of {names} has no bound at the ends of the"
            f" priors. Truncate them: for example pm.Truncated({one.name!r}, ..., lower={low:.3g}, upper={high:.3g})."
        )
    return f"No bound of the log-likelihood of {names} is known: {reason}."


def check_finite(rows: Rowwise) -> None:
    """Refuse unknowns without ends: a posterior draw would have no bound."""
    for one in rows.unknowns:
        if not one.finite:
            low, high = ("0.1" if one.lower[0] == 0 else "-5"), "5"
            several = f", or for coefficients pymc_dp.BallNormal({one.name!r}, precision=1.0, radius=3.0, shape={one.size})"
            raise Refusal(
                f"{one.name} has no largest value, so one record could move the posterior without limit. Truncate its prior:"
                f" pm.Truncated({one.name!r}, ..., lower={low}, upper={high}), or pm.Uniform{several if len(one.shape) == 1 else ''}."
            )
