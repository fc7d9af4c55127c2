"""What must be known of a model to draw some of its discrete variables together, however the model is written.

``sites`` says which sites each number of the model rests on; here it is laid down how the numbers are read off the user's own graph, with
the same state put everywhere. Numbers that rest on two sites are tables of transitions: where many of them are the same table, one
evaluation with states put at random tells all its entries. What rests on states alone is read once.

Shapes: S sites, K states, M tables, G groups of numbers that are the same table, E numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.random import Generator
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors

from pymc_dp.gibbs.conditional import PROBE, Compiled, Point, compiled, factors, fixed_generator, jittered
from pymc_dp.gibbs.sites import NOBODY, Trial, dependencies, forest, split_further, total
from pymc_dp.gibbs.supports import Support, support
from pymc_dp.privacy.accounting import Refusal

TRIALS = 2
"""Made-up points at which it is looked at which numbers are alike."""


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
        arrays, start = [], 0
        for shape, dtype in zip(self.shapes, self.dtypes, strict=True):
            stop = start + prod(shape)
            arrays.append(values[start:stop].reshape(shape).astype(dtype, copy=False))
            start = stop
        return arrays


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
    rng = fixed_generator()
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

    pieces, of, first, second = _pieces(model, values, factors(model).depending_on(values, without), layout, start, trial)
    order, parent = forest(np.stack([first, second], axis=1)[second != NOBODY], S)
    place = np.append(np.empty(S, dtype=np.int64), NOBODY)  # that of nobody is nobody
    place[order] = np.arange(S)
    lower, upper = np.sort([place[first], place[second]], axis=0)  # parents come first
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
    return Block(
        layout, order, parent,
        _joined(model, values, singles, settings), place[first[is_single]],
        _fixed(compiled(model, values, [total(piece) for piece in fixed], mode=PROBE), place[first[is_fixed]], everywhere, many),
        everywhere,
        _joined(model, values, doubles, settings), of_double,
        tuple(layout.arrays(design[place[:-1]]) for design in designs),
        group, read, np.stack([of_double[:, 1], group], axis=1)[is_lone], *_tables(of_double[is_pair, 1], group[is_pair], S),
    )  # fmt: skip


def _pieces(
    model: pm.Model, values: Sequence[Variable], pieces: list[Variable], layout: Layout, start: Point, trial: Callable[[Compiled], Trial]
) -> tuple[list[Variable], np.ndarray, np.ndarray, np.ndarray]:
    """Factors, taken apart until each number rests on two sites at most: which factor each number (E,) is of, and its sites (E,) twice."""
    while True:
        probe = compiled(model, values, [total(piece) for piece in pieces], mode=PROBE)
        lengths = [len(numbers) for numbers in probe(start, *layout.arrays(np.zeros(len(layout.many), dtype=np.int64)))]
        first, second, more = dependencies(partial(trial, probe), sum(lengths), len(layout.many))
        of = np.repeat(np.arange(len(pieces)), lengths)
        if not more.any():
            return pieces, of, first, second
        settled = split_further(pieces, [bool(more[of == k].any()) for k in range(len(pieces))], set(values))
        if settled is None:
            names = ", ".join(str(model.values_to_rvs[value].name) for value in values)
            raise Refusal(
                f"A factor of the model rests on three or more states of {names} at once, so they are not drawn together."
                " Leave them to another step of PyMC."
            )
        pieces = settled


def _tables(sites: np.ndarray, groups: np.ndarray, S: int) -> tuple[np.ndarray, int, np.ndarray]:
    """Which groups of numbers add up to one table, ``Block.sums``, how many tables there are, and which stands above a site."""
    above: list[list[int]] = [[] for _ in range(S)]
    for site, group in zip(sites.tolist(), groups.tolist(), strict=True):
        above[site].append(group)
    stands = sorted({tuple(sorted(together)) for together in above})
    sums = np.array([(m, group) for m, together in enumerate(stands) for group in together], dtype=np.int64).reshape(-1, 2)
    return sums, len(stands), np.array([stands.index(tuple(sorted(together))) for together in above], dtype=np.int64)


def _layout(supports: Sequence[Support], start: Mapping[str, np.ndarray]) -> Layout:
    sizes = [np.size(value) for value in start.values()]
    lowest, many = (
        np.repeat([getattr(of_variable, what) for of_variable in supports], sizes).astype(np.int64) for what in ("lowest", "many")
    )
    shapes, dtypes = tuple(np.shape(value) for value in start.values()), tuple(np.asarray(value).dtype for value in start.values())
    return Layout(tuple(start), shapes, dtypes, lowest, many)


def _in_order(numbers: Callable[[np.ndarray], np.ndarray], order: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Numbers of states listed by site, as a function of states listed by place in the order."""

    def ordered(states: np.ndarray) -> np.ndarray:
        sites = np.empty_like(states)
        sites[order] = states
        return numbers(sites)

    return ordered


KINDS = "fixed", "single", "double"
"""Kinds of factors: of one site and nothing else, of one site and something else, of pairs of sites."""


def _kind(piece: Variable, values: Sequence[Variable], second: np.ndarray) -> str:
    if (second != NOBODY).any():
        return "double"
    inputs = {variable for variable in ancestors([piece]) if variable.owner is None and not isinstance(variable, Constant)}
    return "fixed" if inputs <= set(values) else "single"


def _fixed(numbers: Compiled, of: np.ndarray, everywhere: Sequence[list[np.ndarray]], many: np.ndarray) -> np.ndarray:
    """Numbers that rest on one site and on nothing else, added up by places (S, K)."""
    sums = np.where(np.arange(len(everywhere)) < many[:, None], 0.0, -np.inf)
    if len(of):
        for k, values in enumerate(everywhere):
            np.add.at(sums[:, k], of[of != NOBODY], np.concatenate(numbers({}, *values))[of != NOBODY])
    return sums


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
