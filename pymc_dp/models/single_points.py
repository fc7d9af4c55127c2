"""Whether a density that a user wrote says something of a single value that it does not say nearby, as a ``pt.eq(t, 5)`` in it may.

An integral does not see it: a single value has no length. So a formula that has another meaning there would be read without it.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable

from pymc_dp.models.likelihood_rv import Written
from pymc_dp.models.structure import above, constant_value, parents, scalar_name, substitute

EQUALITIES = {"EQ": False, "NEQ": True}
"""Comparisons that hold, or do not, at single values; and what they are at all others."""
BESIDE = 0.01
"""So far from a value it is looked for a jump of the density on either side, in units of the value where that is above 1."""
HALVINGS = 64
"""Of the doubles between two numbers, until none is left between them."""
APART = 0.1
"""By so much the logarithm of a density differs from one double to the next where it jumps."""
MOST_NUMBERS = 64
"""So many plain numbers of a formula are looked at."""
HEAPED = (
    "it says something else of a single value than of those beside it, which has no weight in a density. Where it stands for what was"
    " censored there, write pm.Censored(..., lower, upper), or flags of events, e * pm.logp(dist, t) + (1 - e) * pm.logccdf(dist, t)"
)
"""What is to be said of such a formula."""


type Values = Callable[[Written, np.ndarray, np.ndarray], np.ndarray]
"""Of a function of a value and parameters, its values (R, P) at points (R, P) and at rows of parameters (R, K)."""


def tells_points_apart(written: Written, values: Values, rows: np.ndarray) -> bool:
    """Whether a log-density jumps on both sides of a single value, or is another where two things are equal than it is beside.

    Looked at are all plain numbers of the formula and the middles between them, and all values of parameters that are tried; on which
    sides a density of any scale jumps, halving says. Where two things are said to be equal or not is worked out.

    Parameters
    ----------
    written : Written
        The logarithm of a density.
    values : callable
        Of such a function, its values (R, P) at points (R, P) and at rows of parameters (R, K).
    rows : np.ndarray
        (R, K): parameters that are tried.
    """
    if written.vectors[0] not in set(above([written.graph])):
        return False
    for at_equal, never, difference in equalities(written):
        place = _root(difference, values, rows)
        if place is None or _often(_apart(values(at_equal, place, rows), never, values, place, rows)):
            return True
    points = [np.broadcast_to(c, len(rows)) for c in _numbers(written.graph)] + list(rows.T)
    if not points:
        return False
    at = np.stack(points, axis=1)
    found = values(written, at, rows)
    both = np.isfinite(found)
    for side in (-1, 1):
        both &= _jumps(written, values, at, at + side * BESIDE * np.maximum(1, np.abs(at)), rows)
    return _often(np.where(np.isfinite(found), both, np.nan))


def _often(apart: np.ndarray) -> bool:
    """Whether one of several values (R, P) is told apart at most rows; NaN where nothing is said."""
    counts = np.isfinite(apart).sum(axis=0)
    return bool((2 * np.nansum(apart, axis=0) > np.maximum(counts, 1)).any())


def _apart(found: np.ndarray, never: Written, values: Values, at: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Whether what is said where two things are equal differs from what is said beside; NaN where it is no number."""
    tiny = np.spacing(at)
    there, below, beyond = (values(never, at + step, rows) for step in (0 * tiny, -tiny, tiny))
    with np.errstate(all="ignore"):
        alike = (np.abs(found - there) <= APART) | (np.abs(found - below) <= APART) | (np.abs(found - beyond) <= APART)
    return np.where(np.isfinite(found), ~alike, np.nan)


def _jumps(written: Written, values: Values, start: np.ndarray, end: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Whether a function jumps between points (R, P): halving the doubles between keeps the half in which it changes more."""
    one, other = _ordered(start), _ordered(end)
    at_one, at_other = values(written, start, rows), values(written, end, rows)
    for _ in range(HALVINGS):
        middle = one // 2 + other // 2 + (one % 2 + other % 2) // 2
        at_middle = values(written, _double(middle), rows)
        nearer = _change(at_one, at_middle) >= _change(at_middle, at_other)
        one, at_one = np.where(nearer, one, middle), np.where(nearer, at_one, at_middle)
        other, at_other = np.where(nearer, middle, other), np.where(nearer, at_middle, at_other)
    return _change(at_one, at_other) > APART


def _change(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """By how much two logarithms differ, none being as far as can be from a number."""
    with np.errstate(all="ignore"):
        change = np.abs(one - other)
    neither = ~np.isfinite(one) & ~np.isfinite(other)
    return np.where(neither, 0.0, np.where(np.isnan(change), np.inf, change))


def _ordered(values: np.ndarray) -> np.ndarray:
    """Integers in the order of doubles, one for each."""
    bits = np.ascontiguousarray(values + 0.0).view(np.int64)
    return np.where(bits >= 0, bits, np.int64(-(2**63)) - bits)


def _double(ordered: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.where(ordered >= 0, ordered, np.int64(-(2**63)) - ordered)).view(np.float64)


def equalities(written: Written) -> Iterator[tuple[Written, Written, Written]]:
    """For every comparison that holds, or does not, at single values: the formula there, that in which none ever does, the difference."""
    value, graph = written.vectors[0], written.graph
    compared = [
        v for v in above([graph])
        if v.owner is not None and scalar_name(v.owner.op) in EQUALITIES and rests_on(v, value)
        and not any(map(_is_infinite, v.owner.inputs))
    ]  # fmt: skip
    beside = {v: _told(v, EQUALITIES[scalar_name(v.owner.op)]) for v in compared}
    for variable in compared:
        one, other = variable.owner.inputs
        there = beside | {variable: _told(variable, not EQUALITIES[scalar_name(variable.owner.op)])}
        graphs = substitute(graph, dict(there)), substitute(graph, dict(beside)), one.astype("float64") - other.astype("float64")
        at_equal, never, difference = (Written(written.vectors, of) for of in graphs)
        yield at_equal, never, difference


def rests_on(variable: Variable, value: Variable) -> bool:
    """Whether a number is computed from the value: where it has the shape of the value alone, as a parameter of all records, it is not."""
    stack, seen = [variable], set()
    while stack:
        one = stack.pop()
        if one not in seen:
            seen.add(one)
            shape_first = one.owner is not None and scalar_name(one.owner.op) == "Second"
            stack.extend(one.owner.inputs[1:] if shape_first else parents(one))
    return value in seen


def _told(variable: Variable, holds: bool) -> Variable:
    return pt.ones_like(variable) if holds else pt.zeros_like(variable)


def _root(difference: Written, values: Values, rows: np.ndarray) -> np.ndarray | None:
    """Where a difference that is linear in the values is 0, at each row (R, 1); None of one that is not linear."""
    at_0, at_1, at_3 = values(difference, np.broadcast_to([0.25, 1.25, 3.25], (len(rows), 3)), rows).T
    slope = at_1 - at_0
    with np.errstate(all="ignore"):
        linear = np.isfinite(slope) & (slope != 0) & np.isclose(at_3, at_0 + 3 * slope)
        place = 0.25 - at_0 / slope
    return place[:, None] if linear.all() else None


def plain_numbers_in(graph: Variable) -> set[float]:
    """The plain numbers in a formula that are finite."""
    plain = [float(np.ravel(v.data)[0]) for v in above([graph]) if isinstance(v, Constant) and np.size(v.data) == 1]
    return {number for number in plain if np.isfinite(number)}


def _numbers(graph: Variable) -> list[float]:
    """The plain numbers in a formula that are finite, at most ``MOST_NUMBERS`` of them, and the middles between neighbours."""
    found = sorted(sorted(plain_numbers_in(graph), key=abs)[:MOST_NUMBERS])
    return [*found, *((one + other) / 2 for one, other in pairwise(found))]


def _is_infinite(variable: Variable) -> bool:
    number = constant_value(variable)
    return number is not None and bool(np.isinf(np.asarray(number, dtype=float)).all())
