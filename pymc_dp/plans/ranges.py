"""The range of the log-likelihood of a record, by interval arithmetic and branch-and-bound over the box of the unknowns.

Nothing here reads a record. Where records are discrete, all that can occur are listed; otherwise the box of a record is cut into pieces.
A draw from the posterior clips every record's part to these bounds, so that what one record can do is certain even where floating point
is not exact.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import prod

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.models.elementwise_intervals import Interval
from pymc_dp.models.intervals import RepeatedInterval, ends_of
from pymc_dp.models.structure import Unreduced
from pymc_dp.plans.rowwise import Entry, Rowwise
from pymc_dp.privacy.accounting import Refusal

PIECES = 4096
"""Into so many pieces the box of a record is cut where records cannot be listed."""
MOST_POINTS = 2049
"""The most points of a grid that are looked at one by one."""
SHRUNK = (0.01, 0.05, 0.2, 0.35, 0.45)
"""By such shares supports are made shorter at both ends until a log-likelihood is bounded, to say what would do."""
SEARCHED, WAITS, CLOSE = 512, 64, 0.01
"""So many boxes of unknowns are halved by branch-and-bound at most; it stops where so many lowered the bound by a smaller share."""


@dataclass(frozen=True)
class Ranges:
    """Between which values the log-likelihood of a record lies, less that at a point of reference.

    Attributes
    ----------
    lower, upper : (B, P) ndarray
        Boxes of unknowns, which cover their support.
    least, most : (B,) ndarray
        The log-likelihood's least and largest value in each of them, over all records.
    reference : (P,) ndarray or None
        The unknowns whose log-likelihood is taken away from every record's: the posterior is the same.
    """

    lower: np.ndarray
    upper: np.ndarray
    least: np.ndarray
    most: np.ndarray
    reference: np.ndarray | None

    @property
    def sensitivity(self) -> float:
        """The largest distance between two records' log-likelihoods at the same unknowns, in nats: C in the papers."""
        return float((self.most - self.least).max())

    def at(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest values at unknowns (G, P), from the narrowest of the boxes that each lies in."""
        least, most = np.full(len(numbers), -np.inf), np.full(len(numbers), np.inf)
        for low, high, a, b in zip(self.lower, self.upper, self.least, self.most, strict=True):
            inside = ((numbers >= low) & (numbers <= high)).all(axis=1)
            least[inside], most[inside] = np.maximum(least[inside], a), np.minimum(most[inside], b)
        return least, most


@dataclass
class Pieces:
    """The box of a record cut into pieces.

    Attributes
    ----------
    given : dict of Variable to (ndarray, ndarray)
        Lower and upper ends of every placeholder, with the pieces along the axis of records.
    norms : dict of Variable to float
        The largest Euclidean norm of a record's entries, where one was declared.
    listed : bool
        Whether every piece is a single record.
    """

    given: dict[Variable, Interval]
    norms: dict[Variable, float] = field(default_factory=dict)
    listed: bool = False


def pieces(entries: Sequence[Entry], shared: Mapping[Variable, np.ndarray], norms: Mapping[Variable, float]) -> Pieces:
    """The box of a record cut into pieces: levels one by one, as far as they are few, and real numbers in equal parts."""
    parts, complete = _parts(entries)
    size = prod(len(low) for low, _ in parts)
    grid = np.indices([len(low) for low, _ in parts]).reshape(len(parts), size) if parts else np.zeros((0, 1), dtype=int)
    by_variable: dict[Variable, list[int]] = {}
    for k, entry in enumerate(entries):
        by_variable.setdefault(entry.variable, []).append(k)
    intervals: dict[Variable, Interval] = {variable: (array, array) for variable, array in shared.items()}
    for variable, places in by_variable.items():
        axis = entries[places[0]].axis
        lower, upper = (np.stack([parts[k][end][grid[k]] for k in places], axis=-1) for end in range(2))
        intervals[variable] = (laid_out(lower, variable, axis), laid_out(upper, variable, axis))
    return Pieces(intervals, dict(norms), complete)


def _parts(entries: Sequence[Entry]) -> tuple[list[tuple[np.ndarray, np.ndarray]], bool]:
    """The ends of the parts of every entry, and whether every part is a single value."""
    real = [entry for entry in entries if entry.levels is None]
    left, listed = PIECES, set()
    for k, entry in sorted(enumerate(entries), key=lambda pair: len(pair[1].levels or ())):
        if entry.levels is not None and len(entry.levels) <= left:
            listed.add(k)
            left //= len(entry.levels)
    parts_of_real = max(int(left ** (1 / len(real))), 1) if real else 1
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    for k, entry in enumerate(entries):
        if k in listed:
            levels = np.array(entry.levels)
            parts.append((levels, levels))
        else:
            cuts = np.linspace(entry.lower, entry.upper, (parts_of_real if entry.levels is None else 1) + 1)
            parts.append((cuts[:-1], cuts[1:]))
    return parts, not real and len(listed) == len(entries)


def laid_out(columns: np.ndarray, variable: Variable, axis: int) -> np.ndarray:
    """Columns (N, entries) as an array like a placeholder's, in its type."""
    lengths = [length or 1 for place, length in enumerate(variable.type.shape) if place != axis]
    full = columns.reshape(-1, *lengths)
    if "int" in variable.type.dtype:  # no record is beyond what its kind can hold
        full = np.clip(full, np.iinfo(variable.type.dtype).min, np.iinfo(variable.type.dtype).max)
    return np.moveaxis(full, 0, axis).astype(variable.type.dtype)


def ranges(rows: Rowwise, cut: Pieces, points: np.ndarray | None = None, *, referred: bool = True) -> Ranges:
    """Certified bounds of the log-likelihood over all records, at points or in boxes that cover the support.

    They are computed with and without a reference at the middle of the support, and the tighter ones are kept. Without points, or with
    more than are looked at one by one, they come from branch-and-bound: the box of unknowns in which the log-likelihood varies most is
    halved along its relatively widest side, until that no longer helps.

    Parameters
    ----------
    rows : Rowwise
    cut : Pieces
        All records that there can be.
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

    repeated = RepeatedInterval(rows.density, cut.given, rows.stand_ins, norms)

    def density(low: np.ndarray, high: np.ndarray) -> Interval:
        return repeated({v: (a, b) for v, a, b in zip(rows.stand_ins, rows.split(low), rows.split(high), strict=True)})

    middle = (lower + upper) / 2
    try:
        at_middle, _ = density(middle, middle), density(lower, upper)
    except Unreduced as reason:
        raise Refusal(_unbounded(rows, cut, density, str(reason))) from None
    results = []
    for reference in (middle, None) if referred else (None,):
        taken = (np.zeros(1), np.zeros(1)) if reference is None else at_middle

        def less(low: np.ndarray, high: np.ndarray, taken: Interval = taken) -> tuple[float, float]:
            least, most = density(low, high)
            return float((least - taken[1]).min()), float((most - taken[0]).max())

        if points is not None and len(points) <= MOST_POINTS:
            ends = np.array([less(point, point) for point in points])
            results.append(Ranges(points, points, ends[:, 0], ends[:, 1], reference))
        else:
            results.append(Ranges(*_halved(lower, upper, less, SEARCHED if len(lower) <= 4 else SEARCHED // 16), reference))
    return min(results, key=lambda result: result.sensitivity)


def _halved(
    lower: np.ndarray, upper: np.ndarray, less: Callable[[np.ndarray, np.ndarray], tuple[float, float]], most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Boxes that together cover a box, with bounds in each: the box of the widest bounds is halved again and again."""
    a, b = less(lower, upper)
    heap, ticket, before = [(a - b, 0, lower, upper, a, b)], count(1), b - a
    for halved in range(most):
        _, _, low, high, a, b = heapq.heappop(heap)
        side = np.arange(len(low)) == np.argmax((high - low) / (upper - lower))
        centre = np.where(side, (low + high) / 2, low), np.where(side, (low + high) / 2, high)
        for start, stop in ((low, centre[1]), (centre[0], high)):
            least, greatest = less(start, stop)
            least, greatest = max(a, least), min(b, greatest)
            heapq.heappush(heap, (least - greatest, next(ticket), start, stop, least, greatest))
        if halved % WAITS == WAITS - 1:
            if -heap[0][0] > (1 - CLOSE) * before:
                break
            before = -heap[0][0]
    _, _, lows, highs, leasts, mosts = zip(*heap, strict=True)
    return np.array(lows), np.array(highs), np.array(leasts), np.array(mosts)


def _unbounded(rows: Rowwise, cut: Pieces, density: Callable[[np.ndarray, np.ndarray], Interval], reason: str) -> str:
    """What to write where a log-likelihood has no bound: narrower bounds of values, or a narrower support, that would do, if there are."""
    names = " and ".join(likelihood.name for likelihood in rows.likelihoods)
    middle, width = (rows.lower + rows.upper) / 2, rows.upper - rows.lower
    if narrower := _possible(rows, cut, dict(zip(rows.stand_ins, rows.split(middle), strict=True))):
        name, low, high = narrower
        return f"Some values of {name} within its bounds have no density at all. Write bounds={{{name!r}: ({low:.3g}, {high:.3g})}}."
    for share in SHRUNK:
        low, high = rows.lower + share * width, rows.upper - share * width
        try:
            density(low, high)
        except Unreduced:
            continue
        ends = {
            unknown.name: (_three_digits(a.min(), 1), _three_digits(b.max(), -1))
            for unknown, a, b in zip(rows.unknowns, rows.split(low), rows.split(high), strict=True)
        }
        written = ", ".join(f"{name!r}: ({a:g}, {b:g})" for name, (a, b) in ends.items())
        name, (a, b) = next(iter(ends.items()))
        return (
            f"One record can move the posterior without limit, because the log-likelihood of {names} has no bound at the ends of the"
            f" priors. Truncate them: for example PosteriorSample(truncate={{{written}}}), or pm.Truncated({name!r}, ..., lower={a:g},"
            f" upper={b:g}) and so on."
        )
    return f"No bound of the log-likelihood of {names} is known: {reason}."


def _possible(rows: Rowwise, cut: Pieces, middle: Mapping[Variable, np.ndarray]) -> tuple[str, float, float] | None:
    """Between which values what is observed, or a private covariate, has a density where the unknowns are in the middle of their supports,
    if not everywhere.
    """
    try:
        low, high = ends_of(rows.density, {**cut.given, **{variable: (at, at) for variable, at in middle.items()}}, cut.norms)
    except Unreduced:
        return None
    finite = np.isfinite(low) & np.isfinite(high)
    observed = [(value, k.name) for value, k in zip(rows.values, rows.likelihoods, strict=True) if k.natural is None]
    covariates = [
        (placeholder.variable, placeholder.name)
        for placeholder, _ in rows.inputs
        if placeholder.private and not placeholder.index and placeholder.axis == 0
    ]
    for variable, name in [*observed, *covariates]:
        least, most = cut.given[variable]
        if np.shape(least) != finite.shape or finite.all() or not finite.any():
            continue
        a, b = _three_digits(float(least[finite].min()), 1), _three_digits(float(most[finite].max()), -1)
        if finite[(least >= a) & (most <= b)].all():
            return name, a, b
    return None


def _three_digits(number: float, side: int) -> float:
    """A number rounded to three digits, up (1) or down (-1)."""
    if number == 0:
        return 0.0
    unit = 10.0 ** (np.floor(np.log10(abs(number))) - 2)
    return float(f"{side * np.ceil(side * number / unit - 1e-9) * unit:.3g}")
