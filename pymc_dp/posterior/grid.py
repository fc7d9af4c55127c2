"""Draws of one to three unknown numbers by the exponential mechanism on a public grid, for any likelihood of single records.

Every record adds integers to the scores of the grid's points. Where all records that can occur are few they are listed, and the
sensitivity is the largest range over all pairs of them; where they are not, every record's part is clipped to bounds that
interval arithmetic found without looking at records. Either way what one record can do is known in integers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from pymc_dp.plans.ranges import Ranges, pieces, ranges
from pymc_dp.plans.rowwise import Entry, Rowwise, check_finite, entries_of, norms_of
from pymc_dp.posterior.densities import MOST_PAIRS, NEVER, integer_log_likelihoods, log_prior
from pymc_dp.posterior.price import CERTIFIED, NAT, Task, cutting_off, priced
from pymc_dp.posterior.records import AT_ONCE, Reading, codes_of, log_likelihood
from pymc_dp.posterior.result import Drawn, Prepared, drawn_for
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.mechanisms import LARGEST_SUM, exponential_mechanism
from pymc_dp.privacy.receipts import Receipt
from pymc_dp.privacy.requests import MOST_POINTS

POINTS = {1: 2001, 2: 151, 3: 41}
"""Points of a grid in every direction, by the number of unknowns."""
ENOUGH, WITHIN = 10, 2 / 3
"""Of so many draws or more it is said if more than this share lies at two neighbouring points: their spread is then that of the grid.

If a posterior is normal, and its standard deviation is once the distance of points, these two hold .68 of it; if it is twice that, .38.
"""
TRIES = 16
"""So often a draw is spread over the cell of its point where the prior has no density at some of it; then it stays at the point."""


def on_grid(task: Task) -> Prepared:
    """Draws of all unknowns together from the posterior on a grid of equally far apart points, ends included.

    What was drawn is a point, and what comes back lies anywhere in its cell: where a posterior is narrower than points are apart, draws
    would otherwise agree in all digits and be half a cell off. A mode stays at its point.
    """
    reading = task.rowwise
    rows = reading.rows
    check_finite(rows, cutting_off(task))
    many = task.mechanism.points or POINTS[rows.size]
    if many**rows.size > MOST_POINTS:
        raise Refusal(f"{many:,} points in {rows.size} directions are more than {MOST_POINTS:,}. Write fewer points, or leave points out.")
    for unknown in rows.unknowns:
        if unknown.variable.owner.inputs[0].owner.op.ndim_supp and not np.isfinite(unknown.radius):
            raise Refusal(
                f"The entries of {unknown.name} depend on each other, so they have no grid. Write pm.Dirichlet in a Bayesian network."
            )
    axes = [np.linspace(low, high, many) for low, high in zip(rows.lower, rows.upper, strict=True)]
    numbers = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, rows.size)
    prior = reading.prior
    density = log_prior(prior, rows)
    weights = density(numbers)
    numbers, weights = numbers[np.isfinite(weights)], weights[np.isfinite(weights)]
    if not len(numbers):
        raise Refusal("The prior has no density anywhere on the grid. Write priors whose supports have ends.")
    scored = [_scored(part, numbers, task.neighbours) for part in reading.parts]
    sensitivity = sum(part.sensitivity for part in scored)
    if sensitivity == 0:
        raise Refusal("The likelihood is the same at all points of the grid. Write more points, or wider priors.")
    price = priced(task, [(", ".join(unknown.name for unknown in rows.unknowns), sensitivity, len(numbers))])
    temper = 1.0 if task.mode else price.temperature
    if any(part.largest >= 2**52 for part in scored) or sum(part.sum for part in scored) + NEVER * temper * NAT > LARGEST_SUM / 2:
        raise Refusal("epsilon is so small, or a log-likelihood so large, that scores do not fit 64-bit integers. Narrow the priors.")
    prior_scores = np.rint(temper * NAT * np.maximum(weights - weights.max(), -NEVER)).astype(np.int64)

    def draw(receipt: Receipt) -> Drawn:
        scores = sum((part.of() for part in scored), np.zeros(len(numbers), dtype=np.int64))
        drawn = numbers[[exponential_mechanism([scores + prior_scores], price.scale, receipt)[0] for _ in range(task.mechanism.draws)]]
        warning = _unresolved(drawn, axes, [unknown.name for unknown in rows.unknowns for _ in range(unknown.size)])
        drawn = drawn if task.mode else _spread(drawn, axes, density)
        return drawn_for(
            task, reading.spec, prior, reading.values(drawn), price, CERTIFIED, intervals=rows.intervals, facts={"points": len(numbers)},
            warning=warning,
        )  # fmt: skip

    return Prepared(reading.spec, price, CERTIFIED, draw, reading.shown, intervals=rows.intervals)


@dataclass(frozen=True)
class _Scored:
    """The scores that records of one length add to points of a grid.

    Attributes
    ----------
    sensitivity : int
        The range over points of the difference of neighbours' scores.
    largest : int
        The largest absolute score of one record.
    sum : int
        What all of them add up to at most.
    of : callable
        Reads the records, and gives the sums (G,) of their scores.
    """

    sensitivity: int
    largest: int
    sum: int
    of: Callable[[], np.ndarray]


def _scored(reading: Reading, numbers: np.ndarray, neighbours: str) -> _Scored:
    """How records are scored at points (G, P): listed where all that can occur are few, and clipped to bounds elsewhere."""
    rows, public = reading.rows, reading.public
    records = 2**31 if neighbours == "add_remove" else public.many
    entries = entries_of(rows, public.arrays)
    cut = pieces(entries, public.shared, norms_of(rows))
    if cut.listed:
        listed = {variable: low for variable, (low, _) in cut.given.items()}
        table = integer_log_likelihoods(log_likelihood(rows, listed), numbers, prod(len(entry.levels or ()) for entry in entries))
        open_codes = _open_codes(entries, {placeholder.variable for placeholder, _ in rows.inputs if not placeholder.private})
        largest = int(np.abs(table).max())

        def counted() -> np.ndarray:
            counts = np.bincount(codes_of(entries, reading.exact(), public.many), minlength=len(table))
            return np.clip(counts, 0, 2**31) @ table

        return _Scored(_sensitivity_of_pairs(table, open_codes, neighbours), largest, 2 * records * largest, counted)
    bounds = ranges(rows, cut, numbers)
    ends = [np.rint(NAT * end) for end in bounds.at(numbers)]
    assert np.isfinite(ends).all()
    least, most = (np.clip(end, -(2.0**53), 2.0**53).astype(np.int64) for end in ends)
    largest = int(max(np.abs(least).max(), np.abs(most).max()))

    def clipped() -> np.ndarray:
        return _clipped(rows, reading.exact(), public.many, numbers, bounds, least, most)

    return _Scored(_sensitivity_of_clipped(least, most, neighbours), largest, records * largest, clipped)


def _unresolved(drawn: np.ndarray, axes: Sequence[np.ndarray], names: Sequence[str]) -> str:
    """What to write where points (D, P) that were drawn are too far apart to show how wide a posterior is; "" where they are not.

    It rests on what was drawn and on nothing else.
    """
    if len(drawn) < ENOUGH:
        return ""
    for values, axis, name in zip(drawn.T, axes, names, strict=True):
        apart = axis[1] - axis[0]
        counts = np.bincount(np.rint((values - axis[0]) / apart).astype(int), minlength=len(axis))
        if (counts[1:] + counts[:-1]).max() > WITHIN * len(drawn):
            more = min(2 * len(axis), int(MOST_POINTS ** (1 / len(axes))))
            return (
                f"Draws of {name} lie at one or two of {len(axis):,} points of the grid, {apart:.3g} apart, and records do not tell what is"
                " between points: intervals may be too narrow, or off. Before you pay for others, write narrower priors"
                f"{f' or points={more}' if more > len(axis) else ''}, or release the model where that is possible."
            )
    return ""


def _spread(drawn: np.ndarray, axes: Sequence[np.ndarray], density: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Points (D, P) moved uniformly within their cells, where the prior has a density. It rests on the points and on nothing else.

    The cell of a point at an end is half as wide, and lies inside.
    """
    low, high, apart = (np.array([of(axis) for axis in axes]) for of in (np.min, np.max, lambda axis: axis[1] - axis[0]))
    result, left = drawn.copy(), np.arange(len(drawn))
    for _ in range(TRIES):
        moved = drawn[left] + apart * (np.random.default_rng().random((len(left), len(axes))) - 0.5)
        moved = np.clip(high - np.abs(high - (low + np.abs(moved - low))), low, high)
        inside = np.isfinite(density(moved))
        result[left[inside]], left = moved[inside], left[~inside]
        if not len(left):
            break
    return result


def _open_codes(entries: Sequence[Entry], public: set) -> np.ndarray:
    """For every record that can occur, which public part it has: neighbours have the same."""
    codes = np.zeros(1, dtype=np.int64)
    for entry in entries:
        length = len(entry.levels or ())
        levels = np.arange(length) if entry.variable in public else np.zeros(length, dtype=np.int64)
        codes = (codes[:, None] * (length if entry.variable in public else 1) + levels).ravel()
    return codes


def _sensitivity_of_pairs(table: np.ndarray, open_codes: np.ndarray, neighbours: str) -> int:
    """The range over points of the difference of neighbours' scores: the largest over all records that can occur.

    add_remove: of a record by itself. replace: of pairs with the same public part; where there are many, twice the largest difference
    of two records at a point, which is no less.
    """
    if neighbours == "add_remove":
        return int(np.ptp(table, axis=1).max())
    largest = 0
    for code in np.unique(open_codes):
        records = table[open_codes == code]
        if len(records) > MOST_PAIRS:
            centred = records - records[:, [records.shape[1] // 2]]
            moved = 2 * min(int(np.ptp(scores, axis=0).max()) for scores in (records, centred))
        else:
            moved = max(int(np.ptp(records - record, axis=1).max()) for record in records)
        largest = max(largest, moved)
    return largest


def _sensitivity_of_clipped(least: np.ndarray, most: np.ndarray, neighbours: str) -> int:
    """The range over points of the difference of neighbours' scores, where a record's part is clipped to lie between ``least``
    and ``most`` (G,) at every point.

    replace: a difference of two records lies within most - least at a point, of either sign, so its range is at most the sum of the
    two largest. add_remove: no less than the least of all and no more than the most.
    """
    if neighbours == "add_remove":
        return int(most.max() - least.min())
    return int(np.sort(most - least)[-2:].sum())


def _clipped(
    rows: Rowwise, exact: Mapping, many: int, numbers: np.ndarray, bounds: Ranges, least: np.ndarray, most: np.ndarray
) -> np.ndarray:
    """Sums (G,) over records of integer log-likelihoods, each clipped to its bounds: what is no number becomes the least."""
    of = log_likelihood(rows, exact)
    reference = np.zeros((1, 1)) if bounds.reference is None else of(bounds.reference[None])
    at_once, scores = max(AT_ONCE // max(many, 1), 1), []
    for start in range(0, len(numbers), at_once):
        part = slice(start, start + at_once)
        low, high = least[part, None], most[part, None]
        computed = np.rint(np.nan_to_num(NAT * (of(numbers[part]) - reference), nan=-np.inf, posinf=np.inf, neginf=-np.inf))
        scores.append(np.clip(computed, low, high).astype(np.int64).sum(axis=1))
    return np.concatenate(scores)
