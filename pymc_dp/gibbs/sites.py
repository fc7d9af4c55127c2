"""Which entries of discrete variables each term of a model depends on, found by changing states and looking at what changes.

Each entry of a discrete variable is a site. log2(S) questions tell which site, or which two, every number rests on: sites are
numbered in binary, and all sites with the same digit are changed at once. Nothing is matched by pattern, so any spelling of a
latent chain, tree or mixture goes through. ``states`` draws the sites.

Shapes: S sites, E numbers, B binary digits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Join, MakeVector
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Sum
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.shape import Reshape, SpecifyShape

from pymc_dp.models.structure import scalar_name
from pymc_dp.privacy.accounting import Refusal

NOBODY = -1
"""Where a number rests on no site, or on no second one."""
NOISE = 1e-12
"""A relative change of a number below this is rounding."""
MOST = 200
"""Made-up points at which one looks whether a number changes."""
QUIET = 12
"""After so many points that tell nothing new, nothing new is expected."""


# ---------- graphs
def parts(graph: Variable, on: set[Variable]) -> list[Variable] | None:
    """Expressions with the same total as this one, one step less added up, without those that do not rest on these values.

    None where there is no such step. A check of parameters is left out, if it does not rest on the values: what is held fixed in a
    step has passed it.
    """

    def rests(term: Variable) -> bool:
        return bool(on & set(ancestors([term])))

    node = graph.owner
    if node is None:
        return None
    inputs, operation = node.inputs, node.op
    if isinstance(operation, CheckAndRaise):
        return None if any(map(rests, inputs[1:])) else inputs[:1]
    if isinstance(operation, Sum | DimShuffle | Reshape | SpecifyShape | JoinDims | SplitDims):
        return inputs[:1]
    if isinstance(operation, MakeVector):
        return [term for term in inputs if rests(term)]
    if isinstance(operation, Join):
        return [term for term in inputs[1:] if rests(term)]
    if not isinstance(operation, Elemwise):
        return None
    kind = scalar_name(operation)
    if kind == "Neg":
        return [-term for term in parts(inputs[0], on) or ()] or None
    if kind == "Add":
        return [_as_often(term, graph) for term in inputs if rests(term)]
    if kind == "Sub":
        first, second = (_as_often(term, graph) for term in inputs)
        return [term for term in (first, -second) if rests(term)]
    if kind in ("Mul", "TrueDiv"):
        [number, *more] = [term for term in inputs if not rests(term)] or [None]
        if number is None or more or not all(number.type.broadcastable) or (kind == "TrueDiv" and number is inputs[0]):
            return None
        [summed] = [term for term in inputs if rests(term)] or [None]
        inner = None if summed is None else parts(summed, on)
        if inner is None:
            return None
        scalar = number.flatten()[0]
        return [term * scalar if kind == "Mul" else term / scalar for term in inner]
    return None


def _as_often(term: Variable, whole: Variable) -> Variable:
    """A term with the shape of the sum in which it stands, so that it is counted as often."""
    return term if term.type.broadcastable == whole.type.broadcastable else pt.broadcast_to(term, whole.shape)


def total(graph: Variable) -> Variable:
    """All its numbers, as a vector."""
    return graph.astype("float64").flatten()


# ---------- questions
@dataclass(frozen=True)
class Trial:
    """A made-up point: what the numbers are as a function of the sites (S,), and two states of each site."""

    numbers: Callable[[np.ndarray], np.ndarray]
    states: np.ndarray
    others: np.ndarray


def differ(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Where numbers differ by more than rounding; infinities of one sign and missing numbers are alike."""
    with np.errstate(invalid="ignore"):
        close = np.abs(first - second) <= NOISE * np.maximum(np.abs(first), np.abs(second))
    return ~(close | (first == second) | (np.isnan(first) & np.isnan(second)))


def dependencies(trial: Callable[[], Trial], E: int, S: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The site each number rests on (E,), the second one (E,), and whether there are more (E,).

    A number that rests on one site alone changes with the sites that have its digits, and with no others; one that rests on two changes
    with both values of the digits in which the two differ. Then the sites are told apart by the first such digit.

    Parameters
    ----------
    trial : function
        Makes a new made-up point at each call.
    """
    B = max(1, int(S - 1).bit_length())
    digits = np.arange(S)[None] >> np.arange(B)[:, None] & 1  # (B, S)
    hit = _answers(trial, digits, np.ones(S, dtype=bool), np.arange(E), resting=False)
    both_values, none = hit[:, 0] & hit[:, 1], ~hit[:, 0] & ~hit[:, 1]  # (B, E)
    nobody = none.all(axis=0)
    unclear = none.any(axis=0) & ~nobody
    first, second = np.where(nobody, NOBODY, _number(hit)), np.full(E, NOBODY)
    two = both_values.any(axis=0) & ~unclear
    told_by = both_values.argmax(axis=0)
    for digit in np.unique(told_by[two]):
        several = np.flatnonzero(two & (told_by == digit))
        for place, which in ((first, 0), (second, 1)):
            half = _answers(trial, digits, digits[digit] == which, several, resting=True)
            half[digit] = [[which == value] * len(several) for value in (0, 1)]
            unclear[several] |= (half[:, 0] == half[:, 1]).any(axis=0)
            place[several] = _number(half)
    more = unclear | (first >= S) | (second >= S)
    return first, second, more


def _number(hit: np.ndarray) -> np.ndarray:
    """Numbers (E,) from their digits (B, 2, E)."""
    return (hit[:, 1] << np.arange(len(hit))[:, None]).sum(axis=0)


def _answers(trial: Callable[[], Trial], digits: np.ndarray, of: np.ndarray, numbers: np.ndarray, *, resting: bool) -> np.ndarray:
    """Whether numbers change with those of some sites whose digit has a value: (B, 2, numbers).

    At more and more points, because a change may be invisible at some: where a transition is impossible anyway. ``resting`` says
    that all these numbers are known to rest on some of these sites.
    """
    hit = np.zeros((len(digits), 2, len(numbers)), dtype=bool)
    quiet = 0
    for _ in range(MOST):
        point, before = trial(), hit.copy()
        start = point.numbers(point.states)[numbers]
        for digit in range(len(digits)):
            for value in (0, 1):
                moved = of & (digits[digit] == value)
                if moved.any():
                    hit[digit, value] |= differ(start, point.numbers(np.where(moved, point.others, point.states))[numbers])
        quiet = quiet + 1 if (hit == before).all() else 0
        either = hit.any(axis=1)
        # A digit of a site has one value or the other; of a number that never changes nothing is known.
        if quiet >= QUIET and (either.all(axis=0) | (not resting) & ~either.any(axis=0)).all():
            break
    return hit


# ---------- forests
def forest(pairs: np.ndarray, S: int) -> tuple[np.ndarray, np.ndarray]:
    """An order of the sites in which each comes after its parent (S,), and the places of the parents in it (S,).

    Parameters
    ----------
    pairs : (P, 2) ndarray of int
        Sites that stand in one number.

    Raises
    ------
    Refusal
        Where they form a circle.
    """
    beside: list[list[int]] = [[] for _ in range(S)]
    for left, right in {(min(pair), max(pair)) for pair in pairs.tolist()}:
        beside[left].append(right)
        beside[right].append(left)
    order: list[int] = []
    parent: list[int] = []
    place = np.full(S, NOBODY)
    for root in range(S):
        if place[root] != NOBODY:
            continue
        waiting = [(root, NOBODY)]
        while waiting:
            site, above = waiting.pop()
            if place[site] != NOBODY:
                raise Refusal(CIRCLE)
            place[site] = len(order)
            order.append(site)
            parent.append(NOBODY if above == NOBODY else int(place[above]))
            waiting += [(other, site) for other in reversed(beside[site]) if other != above]
    return np.array(order, dtype=np.int64), np.array(parent, dtype=np.int64)


CIRCLE = (
    "The states stand in pairs that form a circle, so no sweep along a chain draws them all at once."
    " Give each chain a variable of its own, and a step of its own: gibbs_steps does that where it can."
)


def split_further(pieces: Sequence[Variable], more: Sequence[bool], on: set[Variable]) -> list[Variable] | None:
    """Pieces with those that rest on too many sites taken apart by one step; None where that cannot be done."""
    settled: list[Variable] = []
    for piece, mixed in zip(pieces, more, strict=True):
        apart = parts(piece, on) if mixed else [piece]
        if apart is None:
            return None
        settled += apart
    return settled
