"""A step that draws all states of latent chains, trees or mixtures at once, whatever the spelling of the model.

``sites`` says which sites each number of the model rests on; here the numbers are read off the user's own
graph, with the same state put everywhere, and ``chains`` draws. Numbers that rest on two sites are tables of transitions: where
many of them are the same table, one evaluation with states put at random tells all its entries. What rests on states alone is read
once, when the step is made. In every sweep what was read is compared with the graph at the states that were drawn, so a table that is
the same no longer is an error, not a wrong draw.

Shapes: S sites, K states, M tables, G groups of numbers that are the same table, E numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.random import Generator
from pymc.blocking import PointType, StatsType
from pymc.util import RandomGenerator, get_random_generator
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors

from pymc_dp.gibbs.conditional import PROBE, Compiled, Point, compiled, factors, imagination, initial, jittered
from pymc_dp.gibbs.exact import ExactStep
from pymc_dp.gibbs.sites import NOBODY, Trial, dependencies, forest, settle, total
from pymc_dp.gibbs.supports import Support, support
from pymc_dp.privacy.accounting import Refusal

TOLERANCE = 1e-9
"""How well what was read must agree with the graph, beside the largest number of it."""
TRIALS = 2
"""Sweeps at made-up points before a step is handed out."""


# ---------- what is known of a model
@dataclass(frozen=True)
class Layout:
    """Where the sites stand in the variables.

    Attributes
    ----------
    names, shapes, dtypes : tuple
        Of the values.
    lowest, many : (S,) ndarray
        The lowest state of each site, and its number of states.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype, ...]
    lowest: np.ndarray
    many: np.ndarray

    def arrays(self, states: np.ndarray) -> list[np.ndarray]:
        """States (S,), counted from 0, as values of the variables."""
        return self.split(states + self.lowest)

    def split(self, values: np.ndarray) -> list[np.ndarray]:
        """Values (S,) of all sites as values of the variables."""
        if len(self.shapes) == 1:
            return [values.reshape(self.shapes[0]).astype(self.dtypes[0], copy=False)]
        found, start = [], 0
        for shape, dtype in zip(self.shapes, self.dtypes, strict=True):
            stop = start + prod(shape)
            found.append(values[start:stop].reshape(shape).astype(dtype, copy=False))
            start = stop
        return found


@dataclass(frozen=True)
class Block:
    """Discrete variables whose entries are drawn together, and how the numbers of the model are read.

    Sites are counted by their places in an order in which each comes after its parent.

    Attributes
    ----------
    layout : Layout
    order : (S,) ndarray
        The sites by their places.
    parent : (S,) ndarray
        Places of the parents.
    single : Compiled
        The numbers that rest on one site, and on anything else.
    of_single : (E,) ndarray
        Its place.
    fixed : (S, K) ndarray
        Those that rest on a site and on nothing else, added up by places; minus infinity for states that do not exist.
    everywhere : tuple
        Values with the same state at all sites: K of them.
    double : Compiled
        The numbers of factors of which some rest on two sites.
    of_double : (E, 2) ndarray
        Their places, the parent's first; NOBODY where there is none.
    designs : tuple
        Values at which they are read: D of them.
    group : (E,) ndarray
        To which group of numbers that are one table each belongs.
    read : (G, K, K) ndarray of int
        Where in the (D E) numbers each entry stands; NOBODY for states that do not exist.
    lone : (A, 2) ndarray
        Places and groups of numbers of ``double`` that rest on one site.
    sums : (L, 2) ndarray of int
        Tables between a site and its parent, and groups that are added up to them.
    tables : int
        How many tables: M.
    table : (S,) ndarray of int
        Which table stands above a site.
    """

    layout: Layout
    order: np.ndarray
    parent: np.ndarray
    single: Compiled
    of_single: np.ndarray
    fixed: np.ndarray
    everywhere: tuple[list[np.ndarray], ...]
    double: Compiled
    of_double: np.ndarray
    designs: tuple[list[np.ndarray], ...]
    group: np.ndarray
    read: np.ndarray
    lone: np.ndarray
    sums: np.ndarray
    tables: int
    table: np.ndarray

    @property
    def sources(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]:
        """Where potentials come from: see ``loops.assembled``."""
        return self.of_single, self.fixed, self.read, self.lone, self.sums, self.tables


def block(
    model: pm.Model,
    randoms: Sequence[Variable],
    states: Mapping[str, int],
    start: Point,
    without: Sequence[Variable] = (),
    near: Callable[[Point, Generator], Point] = jittered,
    **settings: object,
) -> Block:
    """What has to be known of a model to draw some of its discrete variables together; some of its potentials may be left out.

    ``near`` makes up another point at which the model can be evaluated.

    Raises
    ------
    Refusal
        Where a number of the model rests on three or more sites, or pairs of sites form a circle.
    """
    rng = imagination()
    values = [model.rvs_to_values[random] for random in randoms]
    layout = _layout([support(random, states) for random in randoms], {str(value.name): start[value.name] for value in values})
    S = len(layout.many)

    def trial(numbers: Compiled) -> Trial:
        point = near(start, rng)
        first = rng.integers(layout.many)
        others = (first + 1 + rng.integers(np.maximum(layout.many - 1, 1))) % layout.many
        # Whether two states are alike does not change when both do: half of the time, half of them stay.
        others = np.where(rng.random(S) < rng.choice([0.5, 1.0]), others, first)
        return Trial(lambda sites: np.concatenate(numbers(point, *layout.arrays(sites))), first, others)

    pieces = factors(model).depending_on(values, without)
    while True:
        probe = compiled(model, values, [total(piece) for piece in pieces], mode=PROBE)
        lengths = [len(each) for each in probe(start, *layout.arrays(np.zeros(S, dtype=np.int64)))]
        first, second, more = dependencies(partial(trial, probe), sum(lengths), S)
        if not more.any():
            break
        of = np.repeat(np.arange(len(pieces)), lengths)
        settled = settle(pieces, [bool(more[of == k].any()) for k in range(len(pieces))], set(values))
        if settled is None:
            names = ", ".join(str(random.name) for random in randoms)
            raise Refusal(
                f"A factor of the model rests on three or more states of {names} at once, so they are not drawn together."
                " Leave them to another step of PyMC."
            )
        pieces = settled

    order, parent = forest(np.stack([first, second], axis=1)[second != NOBODY], S)
    place = np.append(np.empty(S, dtype=np.int64), NOBODY)  # that of nobody is nobody
    place[order] = np.arange(S)
    lower, upper = np.sort([place[first], place[second]], axis=0)  # parents come first
    of = np.repeat(np.arange(len(pieces)), lengths)
    kinds = np.array([_kind(piece, values, second[of == k]) for k, piece in enumerate(pieces)], dtype=object)
    fixed, singles, doubles = ([pieces[k] for k in np.flatnonzero(kinds == kind)] for kind in KINDS)
    is_fixed, is_single, is_double = (kinds[of] == kind for kind in KINDS)
    of_double, many, K = np.stack([lower, upper], axis=1)[is_double], layout.many[order], int(layout.many.max())
    everywhere = tuple(layout.arrays(np.minimum(k, layout.many - 1)) for k in range(K))
    depth = np.zeros(S, dtype=np.int64)
    for s in range(S):
        depth[s] = 0 if parent[s] == NOBODY else depth[parent[s]] + 1
    designs, group, read = np.zeros((0, S), np.int64), np.zeros(0, np.int64), np.zeros((0, K, K), np.int64)
    if doubles:
        probe = compiled(model, values, [total(piece) for piece in doubles], mode=PROBE)
        numbers = [_in_order(trial(probe).numbers, order) for _ in range(TRIALS)]
        group = _groups(numbers, of_double, depth % 2, many)
        designs, read = _design(group, of_double, depth % 2, many, rng)
    is_pair, is_lone = of_double[:, 0] != NOBODY, (of_double[:, 0] == NOBODY) & (of_double[:, 1] != NOBODY)
    above: list[list[int]] = [[] for _ in range(S)]
    for site, one in zip(of_double[is_pair, 1].tolist(), group[is_pair].tolist(), strict=True):
        above[site].append(one)
    stands = sorted({tuple(sorted(several)) for several in above})
    return Block(
        layout, order, parent,
        _joined(model, values, singles, settings), place[first[is_single]],
        _fixed(compiled(model, values, [total(piece) for piece in fixed], mode=PROBE), place[first[is_fixed]], everywhere, many),
        everywhere,
        _joined(model, values, doubles, settings), of_double,
        tuple(layout.arrays(one[place[:-1]]) for one in designs),
        group, read, np.stack([of_double[:, 1], group], axis=1)[is_lone],
        np.array([(m, one) for m, several in enumerate(stands) for one in several], dtype=np.int64).reshape(-1, 2), len(stands),
        np.array([stands.index(tuple(sorted(several))) for several in above], dtype=np.int64),
    )  # fmt: skip


def _layout(supports: Sequence[Support], start: Mapping[str, np.ndarray]) -> Layout:
    sizes = [np.size(value) for value in start.values()]
    lowest, many = (np.repeat([getattr(one, what) for one in supports], sizes).astype(np.int64) for what in ("lowest", "many"))
    shapes, dtypes = tuple(np.shape(value) for value in start.values()), tuple(np.asarray(value).dtype for value in start.values())
    return Layout(tuple(start), shapes, dtypes, lowest, many)


def _in_order(numbers: Callable[[np.ndarray], np.ndarray], order: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The same function of states by places."""

    def ordered(states: np.ndarray) -> np.ndarray:
        sites = np.empty_like(states)
        sites[order] = states
        return numbers(sites)

    return ordered


KINDS = "fixed", "single", "double"
"""Of factors: of one site and nothing else, of one site and something else, of pairs of sites."""


def _kind(piece: Variable, values: Sequence[Variable], second: np.ndarray) -> str:
    if (second != NOBODY).any():
        return "double"
    leaves = {one for one in ancestors([piece]) if one.owner is None and not isinstance(one, Constant)}
    return "fixed" if leaves <= set(values) else "single"


def _fixed(numbers: Compiled, of: np.ndarray, everywhere: Sequence[list[np.ndarray]], many: np.ndarray) -> np.ndarray:
    """Numbers that rest on one site and on nothing else, added up by places (S, K)."""
    found = np.where(np.arange(len(everywhere)) < many[:, None], 0.0, -np.inf)
    if len(of):
        for k, values in enumerate(everywhere):
            np.add.at(found[:, k], of[of != NOBODY], np.concatenate(numbers({}, *values))[of != NOBODY])
    return found


def _joined(model: pm.Model, values: Sequence[Variable], pieces: Sequence[Variable], settings: dict[str, object]) -> Compiled:
    """One function of all these pieces."""
    if not pieces:
        return Compiled(len(values), (), _none)
    graph = pt.concatenate([total(piece) for piece in pieces]) if len(pieces) > 1 else total(pieces[0])
    return compiled(model, values, [graph], **settings)


def _none(*values: np.ndarray) -> list[np.ndarray]:
    return [np.empty(0)]


def _groups(trials: Sequence[Callable], of: np.ndarray, parity: np.ndarray, many: np.ndarray) -> np.ndarray:
    """Which numbers (E,) are entries of one table, at made-up points: those whose tables are alike to the last digit."""
    K, seen = int(many.max()), []
    for numbers in trials:
        for j in range(K):
            for k in range(K):
                # The parent has state j, be it at even or at odd depth.
                below_even, below_odd = (numbers(np.minimum(np.where(parity == side, j, k), many - 1)) for side in (0, 1))
                seen.append(np.where(parity[of[:, 1]] == 1, below_even, below_odd))
    lone = of[:, 0] == NOBODY
    rows = np.column_stack([np.where(of == NOBODY, 0, many[of]), np.nan_to_num(np.array(seen).T, nan=7e300)])
    rows = np.where(lone[:, None], 0.0, rows)  # a number that rests on one site is like no other
    return np.unique(np.column_stack([np.where(lone, np.arange(len(of)), NOBODY), rows]), axis=0, return_inverse=True)[1].reshape(-1)


def _design(group: np.ndarray, of: np.ndarray, parity: np.ndarray, many: np.ndarray, rng: Generator) -> tuple[np.ndarray, np.ndarray]:
    """States (D, S) at which every entry of every table is seen, and where each entry then stands (G, K, K).

    States put at random show a table that stands at many places in one or two evaluations. Where this takes more than K² the states
    of parents and children are gone through.
    """
    S, K, G, E = len(many), int(many.max()), int(group.max()) + 1, len(group)
    of_parent, of_child = np.where(of[:, 0] == NOBODY, 1, many[of[:, 0]]), np.where(of[:, 1] == NOBODY, 1, many[of[:, 1]])
    wanted = np.zeros((G, K, K), dtype=bool)
    for j in range(K):
        for k in range(K):
            wanted[group, j, k] |= (j < of_parent) & (k < of_child)

    def seen(designs: list[np.ndarray]) -> np.ndarray:
        read = np.full((G, K, K), NOBODY)
        for d, states in enumerate(designs):
            j, k = (np.where(of[:, side] == NOBODY, 0, states[of[:, side]]) for side in (0, 1))
            new = read[group, j, k] == NOBODY
            read[group[new], j[new], k[new]] = d * E + np.flatnonzero(new)
        return read

    designs: list[np.ndarray] = []
    for _ in range(K * K // 2):
        designs.append(rng.integers(many))
        read = seen(designs)
        if not (wanted & (read == NOBODY)).any():
            return np.array(designs), read
    gone_through = [np.minimum(np.where(parity == 0, j, k), many - 1) for j in range(K) for k in range(K)]
    return np.array(gone_through).reshape(-1, S), seen(gone_through)


# ---------- a sweep
class Reading(NamedTuple):
    """Numbers of a model at a point.

    Attributes
    ----------
    single, double : Callable
        ``Block.single`` and ``Block.double`` at the point.
    numbers : (K, E) ndarray
        Those of ``single``, were its site in each state.
    seen : (D E,) ndarray
        Those of ``double``, at ``Block.designs``.
    """

    single: Callable[..., Sequence[np.ndarray]]
    double: Callable[..., Sequence[np.ndarray]]
    numbers: np.ndarray
    seen: np.ndarray


def reading(block: Block, point: Point) -> Reading:
    """Read them off the model's own graph."""
    single, double = block.single.at(point), block.double.at(point)
    numbers = np.array([single(*values)[0] for values in block.everywhere])
    seen = [double(*values)[0] for values in block.designs]
    return Reading(single, double, numbers, seen[0] if len(seen) == 1 else np.concatenate([np.zeros(0), *seen]))


def potentials(block: Block, read: Reading) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What was read, added up: the log-density of the model is the sum of these at the states, but for a constant.

    Returns
    -------
    unary : (S, K) ndarray
        Of each site, by places.
    tables : (M, K, K) ndarray
        Between a parent's state and a site's: see ``Block.table``.
    groups : (G, K, K) ndarray
        The tables of the numbers of ``Block.double``.

    Raises
    ------
    ArithmeticError
        Where one of a pair of states is no number.
    """
    from pymc_dp.gibbs import loops  # which imports numba, in half a second

    return loops.assembled(read.numbers, read.seen, *block.sources)


def sweep(block: Block, point: Point, rng: Generator) -> tuple[list[np.ndarray], float]:
    """Values of the variables, their states drawn from their joint conditional given everything else, and how far the model was off.

    Raises
    ------
    ArithmeticError
        Where no state is possible, or the numbers are no longer what they were when the step was made: data of another pattern, say.
    """
    from pymc_dp.gibbs import loops

    read, uniforms = reading(block, point), rng.random(len(block.order))
    where = (block.table, block.parent, block.order, block.layout.lowest)
    states, values, groups = loops.sweep(read.numbers, read.seen, uniforms, *block.sources, *where)
    if not len(states):
        raise ArithmeticError("No state is possible at some site, given the other variables.")
    found = block.layout.split(values)
    return found, misfit(block, read, groups, found, states)


def misfit(block: Block, read: Reading, groups: np.ndarray, found: list[np.ndarray], states: np.ndarray) -> float:
    """How far what was read is off the model's own graph at values with these states (S,), by places.

    Raises
    ------
    ArithmeticError
        Where the model no longer has the form that it had.
    """
    from pymc_dp.gibbs import loops

    [ones], [pairs] = read.single(*found), read.double(*found)
    off = loops.misfit(ones, pairs, states, read.numbers, block.of_single, groups, block.group, block.of_double)
    if off > TOLERANCE:
        raise ArithmeticError("The model no longer has the form that it had when the step was made. Make the step after pm.set_data.")
    return off


# ---------- the step
class ForwardBackward(ExactStep):
    """Draws all states of latent chains, trees or mixtures from their exact joint conditional.

    Forward filtering and backward sampling, on any discrete variables of a model whose log-density is a sum of numbers of one or two of
    their entries: independent mixtures; Markov chains by ``pymc_extras.DiscreteMarkovChain``, by one ``pm.Categorical`` a step, by a
    ``pm.CustomDist``, or by a ``pm.Potential`` on transitions; hidden Markov trees. Emissions are any likelihood that has one factor a
    step, or one an observation.

    Parameters
    ----------
    vars : list of Variable
        Discrete variables of the model, or their values.
    model : pm.Model, optional
    states : mapping, optional
        From names to numbers of states, where PyMC does not know them: of a ``pm.CustomDist``.
    rng, initial_point, compile_kwargs, blocked
        As for PyMC's own steps.

    Raises
    ------
    Refusal
        Where the variables cannot be drawn together.
    """

    name = "forward_backward"

    def __init__(
        self,
        vars: Sequence[Variable],
        *,
        model: pm.Model | None = None,
        states: Mapping[str, int] | None = None,
        rng: RandomGenerator = None,
        initial_point: PointType | None = None,
        compile_kwargs: Mapping[str, Any] | None = None,
        blocked: bool = True,
    ) -> None:
        model = pm.modelcontext(model)
        self.vars = [model.rvs_to_values.get(one, one) for one in vars]
        randoms = [model.values_to_rvs[value] for value in self.vars]
        start = initial(model) if initial_point is None else initial_point
        self.block = block(model, randoms, states or {}, start, **(compile_kwargs or {}))
        tried = imagination()
        for _ in range(TRIALS):
            try:
                sweep(self.block, jittered(start, tried), tried)
            except ArithmeticError as reason:
                names = ", ".join(str(random.name) for random in randoms)
                raise Refusal(f"{names} cannot be drawn together: {reason} Leave them to another step of PyMC.") from None
        self.rng = get_random_generator(rng)

    def step(self, point: PointType) -> tuple[PointType, StatsType]:
        """One draw of all states."""
        drawn, off = sweep(self.block, point, self.rng)
        return {**point, **dict(zip(self.block.layout.names, drawn, strict=True))}, [{"misfit": off}]
