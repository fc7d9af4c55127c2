"""A step that draws all states of latent chains, trees or mixtures at once, whatever the spelling of the model.

``sites`` stands before and says which sites each number of the model rests on; here the numbers are read off the user's own
graph, with the same state put everywhere, and ``chains`` draws. Numbers that rest on two sites are tables of transitions: where
many of them are the same table, one evaluation with states put at random tells all its entries. In every sweep what was read is
compared with the graph at the states that were drawn, so a table that is the same no longer is an error, not a wrong draw.

Shapes: S sites, K states, M tables, G groups of numbers that are the same table, E numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.random import Generator
from pymc.blocking import PointType, StatsType
from pymc.pytensorf import constant_fold
from pymc.util import RandomGenerator, get_random_generator
from pytensor.graph.basic import Variable

from pymc_dp.accounting import Refusal
from pymc_dp.gibbs.conditional import PROBE, Compiled, Point, compiled, factors, imagination, initial, jittered
from pymc_dp.gibbs.exact import ExactStep
from pymc_dp.gibbs.sites import NOBODY, Trial, dependencies, forest, settle, total

TOLERANCE = 1e-9
"""How well what was read must agree with the graph, beside the largest number of it."""
TRIALS = 2
"""Sweeps at made-up points before a step is handed out."""


# ---------- how many states
@dataclass(frozen=True)
class Support:
    """The states of a discrete variable: so many, from the lowest on."""

    many: int
    lowest: int = 0


def support(random: Variable, states: Mapping[str, int]) -> Support:
    """The states of a discrete variable, read from its distribution, or as they are declared.

    Raises
    ------
    Refusal
        Where they are not known, or there is no last one.
    """
    name, operation = random.name, random.owner.op
    if name in states:
        return Support(int(states[name]))
    parameters = getattr(operation, "dist_params", lambda node: node.inputs)(random.owner)
    kind = getattr(operation, "_print_name", ("",))[0]
    if isinstance(operation, pm.Bernoulli.rv_type):
        return Support(2)
    if isinstance(operation, pm.Categorical.rv_type) or kind == "DiscreteMC":
        many = _known(parameters[0].shape[-1])
        if many is not None:
            return Support(int(many))
    if isinstance(operation, pm.Binomial.rv_type):
        trials = _known(parameters[0])
        if trials is not None and trials.min() == trials.max():
            return Support(int(trials.max()) + 1)
    if isinstance(operation, pm.DiscreteUniform.rv_type):
        ends = [_known(end) for end in parameters]
        if all(end is not None and end.min() == end.max() for end in ends):
            lowest, highest = (int(end.max()) for end in ends if end is not None)
            return Support(highest - lowest + 1, lowest)
    raise Refusal(f"How many states {name} has is not known. Write for example states={{{name!r}: 3}} for the states 0, 1 and 2.")


def _known(graph: Variable) -> np.ndarray | None:
    [value] = constant_fold([graph], raise_not_constant=False)
    return None if isinstance(value, Variable) else np.asarray(value)


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
        found, start = [], 0
        moved = states + self.lowest
        for shape, dtype in zip(self.shapes, self.dtypes, strict=True):
            stop = start + prod(shape)
            found.append(moved[start:stop].reshape(shape).astype(dtype, copy=False))
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
    single : Compiled or None
        The numbers that rest on one site.
    of_single : (E,) ndarray
        Its place.
    everywhere : tuple
        Values with the same state at all sites: K of them.
    double : Compiled or None
        The numbers of factors of which some rest on two sites.
    of_double : (E, 2) ndarray
        Their places, the parent's first; NOBODY where there is none.
    designs : tuple
        Values at which they are read: D of them.
    group : (E,) ndarray
        To which group of numbers that are one table each belongs.
    read : (G, K, K) ndarray of int
        Where in the (D, E) numbers each entry stands; NOBODY for states that do not exist.
    lone : (A, 2) ndarray
        Places and groups of numbers of ``double`` that rest on one site.
    stands : tuple of tuple
        Which groups are added up to each of the M tables between a site and its parent.
    table : (S,) ndarray of int
        Which of them stands above a site.
    """

    layout: Layout
    order: np.ndarray
    parent: np.ndarray
    single: Compiled | None
    of_single: np.ndarray
    everywhere: tuple[list[np.ndarray], ...]
    double: Compiled | None
    of_double: np.ndarray
    designs: tuple[list[np.ndarray], ...]
    group: np.ndarray
    read: np.ndarray
    lone: np.ndarray
    stands: tuple[tuple[int, ...], ...]
    table: np.ndarray


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
    paired = [bool((second[of == k] != NOBODY).any()) for k in range(len(pieces))]
    in_double = np.array(paired, dtype=bool)[of]
    singles, doubles = ([piece for piece, one in zip(pieces, paired, strict=True) if one is wanted] for wanted in (False, True))
    of_double, many = np.stack([lower, upper], axis=1)[in_double], layout.many[order]
    depth = np.zeros(S, dtype=np.int64)
    for s in range(S):
        depth[s] = 0 if parent[s] == NOBODY else depth[parent[s]] + 1
    designs, group, read = np.zeros((0, S), np.int64), np.zeros(0, np.int64), np.zeros((0, 1, 1), np.int64)
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
        _joined(model, values, singles, settings), place[first[~in_double]],
        tuple(layout.arrays(np.minimum(k, layout.many - 1)) for k in range(int(layout.many.max()))),
        _joined(model, values, doubles, settings), of_double,
        tuple(layout.arrays(one[place[:-1]]) for one in designs),
        group, read, np.stack([of_double[:, 1], group], axis=1)[is_lone],
        tuple(stands), np.array([stands.index(tuple(sorted(several))) for several in above], dtype=np.int64),
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


def _joined(model: pm.Model, values: Sequence[Variable], pieces: Sequence[Variable], settings: dict[str, object]) -> Compiled | None:
    """One function of all these pieces."""
    if not pieces:
        return None
    graph = pt.concatenate([total(piece) for piece in pieces]) if len(pieces) > 1 else total(pieces[0])
    return compiled(model, values, [graph], **settings)


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
@dataclass(frozen=True)
class Potentials:
    """What was read of a model at a point: its log-density, but for a constant, is the sum of these at the states.

    Attributes
    ----------
    numbers : (K, E) ndarray
        Those that rest on one site, were it in each state.
    groups : (G, K, K) ndarray
        The tables of those of ``Block.double``.
    lone : (S, K) ndarray
        Those of ``Block.double`` that rest on one site, by places.
    tables : (M, K, K) ndarray
        Between a parent's state and a site's: see ``Block.table``.
    """

    numbers: np.ndarray
    groups: np.ndarray
    lone: np.ndarray
    tables: np.ndarray


def potentials(block: Block, point: Point) -> Potentials:
    """Read them off the model's own graph."""
    S, K = len(block.order), len(block.everywhere)
    numbers, groups = np.empty((K, len(block.of_single))), np.zeros((1, K, K))
    lone, tables = np.zeros((S, K)), np.zeros((1, K, K))
    if block.single is not None:
        single = block.single.at(point)
        for k, values in enumerate(block.everywhere):
            [numbers[k]] = single(*values)
    if block.double is not None:
        double = block.double.at(point)
        seen = np.concatenate([double(*values)[0] for values in block.designs])
        groups = np.where(block.read == NOBODY, -np.inf, seen[block.read])
        if len(block.lone):
            np.add.at(lone, block.lone[:, 0], groups[block.lone[:, 1], 0])
        tables = np.array([groups[several[0]] if len(several) == 1 else groups[list(several)].sum(axis=0) for several in block.stands])
        if np.isnan(groups).any():
            raise ArithmeticError("The log-density of the model is no number at some state.")
    return Potentials(numbers, groups, lone, tables)


def sweep(block: Block, point: Point, rng: Generator) -> tuple[list[np.ndarray], float]:
    """Values of the variables, their states drawn from their joint conditional given everything else, and how far the model was off.

    Raises
    ------
    ArithmeticError
        Where no state is possible, or the numbers are no longer what they were when the step was made: data of another pattern, say.
    """
    from pymc_dp.gibbs import loops  # which imports numba, in half a second

    read, many = potentials(block, point), block.layout.many[block.order]
    uniforms = rng.random(len(block.order))
    drawn = loops.sweep(read.numbers, block.of_single, read.lone, read.tables, block.table, block.parent, many, uniforms)
    if not len(drawn):
        raise ArithmeticError("No state is possible at some site, given the other variables.")
    states = np.empty_like(drawn)
    states[block.order] = drawn
    found = block.layout.arrays(states)
    return found, misfit(block, point, read, found, drawn)


def misfit(block: Block, point: Point, read: Potentials, found: list[np.ndarray], states: np.ndarray) -> float:
    """How far what was read is off the model's own graph at values with these states (S,), by places.

    Raises
    ------
    ArithmeticError
        Where the model no longer has the form that it had.
    """
    from pymc_dp.gibbs import loops

    off = 0.0
    if block.single is not None:
        off = loops.misfit_of_singles(block.single(point, *found)[0], read.numbers, block.of_single, states)
    if block.double is not None:
        off = max(off, loops.misfit_of_doubles(block.double(point, *found)[0], read.groups, block.group, block.of_double, states))
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
