"""Whether a density was seen on either side of where a comparison in it changes what it says, as ``pt.switch(t >= 24, ...)`` does.

An integral tells a density from what is none, and it is taken at a few values of the unknowns. Where all of these leave next to nothing
beyond the number that a value is compared with, what is said there goes unseen: a probability of being censored at 24 months is as good as
0 where times are 2 months long. So the unknowns are tried in units of that number, too. Shapes: R rows of K parameters, P points.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import log, prod

import numpy as np
import pytensor.tensor as pt

from pymc_dp.models.interval_nodes import nodes_between
from pymc_dp.models.likelihood_rv import Written
from pymc_dp.models.single_points import Values, plain_numbers_in, rests_on
from pymc_dp.models.structure import above, scalar_name, substitute

ORDERS = ("GE", "GT", "LE", "LT")
"""Comparisons that hold on one side."""
ENOUGH = 0.01
"""The share of a density that lies on a side where it was seen there."""
SOME = 1e-9
"""The share of it that is more than none."""
ALIKE = 1e-3
"""Integrals that differ by less, relatively, are one."""
EQUAL = 1e-6
"""What a formula says on both sides of a comparison differs by less, relatively, where it is only computed in another way."""
UNITS = (1e-6, 1e9)
"""Numbers between which units are; those beyond keep formulas from overflowing."""
MOST_UNITS = 6
"""So many units are tried of one comparison."""
MOST_ROWS = 1000
"""So many rows of parameters are tried of one unit."""
MOST_VARIED = 6
"""Of more unknowns the rest keep one value."""
HALVINGS = 60
"""Of the distance between two points, until a comparison changes between neighbouring doubles or nearly."""
EDGES = np.array([-20, -10, -5, -3, -2, -1.5, -1, -0.5, -0.1, 0, 0.01, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 4, 5, 7, 10, 20])
"""In units of that number: between these a density is integrated by a rule each. It may jump at any of them."""
UNSEEN = (
    "it is no density on one side of a number that values are compared with, as above 24 in pt.switch(t >= 24, ...): where the unknowns"
    " make such values likely, it integrates to another number. Where it stands for what was censored there, write"
    " pm.Censored(..., lower, upper), or flags of events, e * pm.logp(dist, t) + (1 - e) * pm.logccdf(dist, t)"
)
"""What is to be said of such a formula."""


def says_something_unseen(written: Written, values: Values, rows: np.ndarray, unknown: np.ndarray) -> bool:
    """Whether a density is above 0 on a side of a comparison of which no integral has a share that is the same as those of most rows.

    Arguments are those of ``tells_points_apart``, and which of the parameters are ``unknown`` (K,): these are tried in other units.
    """
    written = written.unchecked()
    orders = list(_orders(written))
    if not orders:
        return False
    base = _Tried(written, values, rows, 1.0)
    constant = _most_frequent(base.integrals)
    for if_true, if_false, difference in orders:
        units = _units(difference, values, rows)
        several = [base, *(_Tried(written, values, in_units(rows, unknown, unit), abs(unit)) for unit in units)]
        for side in (-1, 1):
            if any(tried.is_seen(difference, constant, side) for tried in several):
                continue
            if any(tried.is_above_0(difference, side) for tried in several) and any(
                _matters(tried, if_true, if_false, difference) for tried in several
            ):
                return True
    return False


class _Tried:
    """A density at all points, in some unit, for each of several rows of parameters."""

    def __init__(self, written: Written, values: Values, rows: np.ndarray, unit: float) -> None:
        nodes, log_weights, _ = nodes_between(EDGES, -np.inf, np.inf, (0.0, 1.0))
        self.values, self.rows = values, rows
        self.points = np.broadcast_to(nodes * unit, (len(rows), len(nodes)))
        self.logs = values(written, self.points, rows)
        with np.errstate(all="ignore"):
            self.masses = np.nan_to_num(np.exp(self.logs + log_weights + log(unit)), nan=0.0, posinf=np.inf)
            self.integrals = self.masses.sum(axis=1)

    def sign(self, difference: Written) -> np.ndarray:
        """On which side of a comparison points are (R, P)."""
        with np.errstate(all="ignore"):
            return np.sign(self.values(difference, self.points, self.rows))

    def is_seen(self, difference: Written, constant: float, side: int) -> bool:
        """Whether a row that integrates to this has some of it on this side."""
        there = np.where(self.sign(difference) == side, self.masses, 0.0).sum(axis=1)
        with np.errstate(all="ignore"):
            alike = np.abs(self.integrals - constant) <= ALIKE * constant
            return bool((alike & (there >= ENOUGH * constant)).any())

    def is_above_0(self, difference: Written, side: int) -> bool:
        """Whether some of the density lies on this side, however little."""
        there = np.where(self.sign(difference) == side, self.masses, 0.0).sum(axis=1)
        return bool(((there > SOME * self.integrals) | np.isinf(there)).any())


def _most_frequent(integrals: np.ndarray) -> float:
    """The number that most integrals are."""
    found = integrals[np.isfinite(integrals) & (integrals > 0)]
    if not len(found):
        return np.nan
    alike = (np.abs(found - found[:, None]) <= ALIKE * found).sum(axis=1)
    return float(found[alike.argmax()])


def _orders(written: Written) -> Iterator[tuple[Written, Written, Written]]:
    """For every comparison of the value: the formula as if it held everywhere, and nowhere, and the difference of what is compared."""
    value, graph = written.vectors[0], written.graph
    for variable in above([graph]):
        if variable.owner is None or scalar_name(variable.owner.op) not in ORDERS or not rests_on(variable, value):
            continue
        one, other = variable.owner.inputs
        graphs = [substitute(graph, {variable: told(variable)}) for told in (pt.ones_like, pt.zeros_like)]
        difference = one.astype("float64") - other.astype("float64")
        yield Written(written.vectors, graphs[0]), Written(written.vectors, graphs[1]), Written(written.vectors, difference)


def _matters(tried: _Tried, if_true: Written, if_false: Written, difference: Written) -> bool:
    """Whether a formula says something else on one side than on the other of where the comparison changes, at any row."""
    sign = tried.sign(difference)
    changes = (sign[:, :-1] * sign[:, 1:] < 0) | ((sign[:, :-1] == 0) & (sign[:, 1:] != 0))
    here = changes.any(axis=1)
    if not here.any():
        return False
    rows, place = tried.rows[here], changes[here].argmax(axis=1)
    picked = tried.points[here]
    low, high = (np.take_along_axis(picked, (place + k)[:, None], axis=1) for k in (0, 1))
    start = np.sign(tried.values(difference, low, rows))
    for _ in range(HALVINGS):
        middle = low / 2 + high / 2
        same = np.sign(tried.values(difference, middle, rows)) == start
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    one, other = (tried.values(of, high, rows) for of in (if_true, if_false))
    with np.errstate(all="ignore"):
        alike = (np.abs(one - other) <= EQUAL * np.maximum(1, np.abs(one))) | (~np.isfinite(one) & ~np.isfinite(other))
    return bool((~alike).any())


def rows_in_units(differences: Iterable[Written], values: Values, rows: np.ndarray, unknown: np.ndarray) -> list[np.ndarray]:
    """Rows of parameters in units of the numbers that values are compared with."""
    units = {unit for difference in differences for unit in _units(difference, values, rows)}
    return [in_units(rows, unknown, unit) for unit in sorted(units)[:MOST_UNITS]]


def _units(difference: Written, values: Values, rows: np.ndarray) -> Sequence[float]:
    """Plain numbers that are compared, and where a difference that is linear in the value is 0."""
    at_0, at_1 = values(difference, np.broadcast_to([0.25, 1.25], (len(rows), 2)), rows).T
    with np.errstate(all="ignore"):
        places = 0.25 - at_0 / (at_1 - at_0)
    places = places[np.isfinite(places)]
    several = {*plain_numbers_in(difference.graph), *([] if not len(places) or np.ptp(places) else [float(places[0])])}
    return sorted((unit for unit in several if UNITS[0] <= abs(unit) <= UNITS[1]), key=abs, reverse=True)[:MOST_UNITS]


def in_units(rows: np.ndarray, unknown: np.ndarray, unit: float) -> np.ndarray:
    """Rows in which every unknown may be about 1, about the unit, about 1 over it, or about the logarithm of either."""
    size = abs(unit)
    each = [factor * scale for scale in (1.0, size, 1 / size) for factor in (0.5, 2.5)] + [log(size), -log(size)]
    each += [-0.5 * size, -2.5 * size] if unit < 0 else []
    beside = np.unique(rows[:, ~unknown], axis=0)[:2]
    among = (len(each),) * min(int(unknown.sum()), MOST_VARIED)
    picked = np.unique(np.linspace(0, prod(among) - 1, MOST_ROWS).astype(np.int64))
    several = np.full((len(picked), int(unknown.sum())), 0.5)
    several[:, : len(among)] = np.array(each)[np.stack(np.unravel_index(picked, among), axis=1)] if among else 0.5
    whole = np.zeros((len(beside) * len(several), len(unknown)))
    whole[:, unknown], whole[:, ~unknown] = np.tile(several, (len(beside), 1)), np.repeat(beside, len(several), axis=0)
    return whole
