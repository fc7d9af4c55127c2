"""Whether a density that a user wrote says something of a single value that it does not say nearby, as a ``pt.eq(t, 5)`` in it may.

An integral does not see it: a single value has no length. So a formula that has another meaning there would be read without it.
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable

from pymc_dp.models.likelihood_rv import Written
from pymc_dp.models.structure import above, constant_value, scalar_name, substitute

EQUALITIES = {"EQ": False, "NEQ": True}
"""Comparisons that hold, or do not, at single values; and what they are at all others."""
STEPS = (1e-6, 1e-4, 1e-2)
"""How far from a value its neighbours are looked at."""
APART = 0.1
"""By so much the logarithm of a density differs from that of its neighbours where it jumps."""
MOST_NUMBERS = 64
"""So many plain numbers of a formula are looked at."""
HEAPED = (
    "it says something else of a single value than of those beside it, which has no weight in a density. Where it stands for what was"
    " censored there, write pm.Censored(..., lower, upper), or flags of events, e * pm.logp(dist, t) + (1 - e) * pm.logccdf(dist, t)"
)
"""What is to be said of such a formula."""


def tells_points_apart(written: Written, values: Callable[[Written, np.ndarray, np.ndarray], np.ndarray], rows: np.ndarray) -> bool:
    """Whether a log-density at a single value differs from what it is at its neighbours on both sides.

    Looked at are all plain numbers of the formula and the middles between them, all values of parameters that are tried, and the values at
    which two things are said to be equal or not. There it must not differ from its neighbours in the formula in which they never are.

    Parameters
    ----------
    written : Written
        The logarithm of a density.
    values : callable
        Of such a function, its values (R, P) at points (R, P) and at rows of parameters (R, K).
    rows : np.ndarray
        (R, K): parameters that are tried.
    """
    value, *_ = written.vectors
    never, differences = _without_equalities(written)
    points = [np.broadcast_to(c, len(rows)) for c in _numbers(written.graph)] + list(rows.T)
    for difference in differences:
        place = _root(Written(written.vectors, difference), values, rows)
        if place is None:
            return True
        points.append(place)
    if not points or value not in set(above([written.graph])):
        return False
    at = np.stack(points, axis=1)
    found, nearby = values(written, at, rows), Written(written.vectors, never)
    apart = np.ones((*at.shape, len(STEPS)), dtype=bool)
    for k, step in enumerate(STEPS):
        far = step * np.maximum(1, np.abs(at))
        below, beyond = values(nearby, at - far, rows), values(nearby, at + far, rows)
        with np.errstate(all="ignore"):
            between = (below + beyond) / 2
            for neighbour in (below, beyond, between):
                apart[..., k] &= ~(np.abs(found - neighbour) <= APART)
    counts = np.isfinite(found)
    often = 2 * (apart & counts[..., None]).sum(axis=0) > np.maximum(counts.sum(axis=0), 1)[:, None]
    return bool(often.any())


def _without_equalities(written: Written) -> tuple[Variable, list[Variable]]:
    """A formula in which nothing that rests on its values equals anything else, and the differences that would be 0."""
    value = written.vectors[0]
    never, differences = {}, []
    for variable in above([written.graph]):
        if variable.owner is None or scalar_name(variable.owner.op) not in EQUALITIES or value not in set(above([variable])):
            continue
        one, other = variable.owner.inputs
        if any(_is_infinite(side) for side in (one, other)):
            continue
        never[variable] = pt.zeros_like(variable) if not EQUALITIES[scalar_name(variable.owner.op)] else pt.ones_like(variable)
        differences.append(one.astype("float64") - other.astype("float64"))
    return substitute(written.graph, never), differences


def _root(difference: Written, values: Callable[[Written, np.ndarray, np.ndarray], np.ndarray], rows: np.ndarray) -> np.ndarray | None:
    """Where a difference that is linear in the values is 0, at each row (R,); None of one that is not linear."""
    at_0, at_1, at_3 = values(difference, np.broadcast_to([0.25, 1.25, 3.25], (len(rows), 3)), rows).T
    slope = at_1 - at_0
    with np.errstate(all="ignore"):
        linear = np.isfinite(slope) & (slope != 0) & np.isclose(at_3, at_0 + 3 * slope)
        place = 0.25 - at_0 / slope
    return place if linear.all() else None


def _numbers(graph: Variable) -> list[float]:
    """The plain numbers in a formula that are finite, at most ``MOST_NUMBERS`` of them, and the middles between neighbours.

    Those that only keep others from being 0 are not looked at: they are nearer to 0 than anything is looked at.
    """
    plain = [float(np.ravel(v.data)[0]) for v in above([graph]) if isinstance(v, Constant) and np.size(v.data) == 1]
    finite = {number for number in plain if np.isfinite(number) and not 0 < abs(number) < STEPS[0]}
    found = sorted(sorted(finite, key=abs)[:MOST_NUMBERS])
    return [*found, *((one + other) / 2 for one, other in pairwise(found))]


def _is_infinite(variable: Variable) -> bool:
    number = constant_value(variable)
    return number is not None and bool(np.isinf(np.asarray(number, dtype=float)).all())
