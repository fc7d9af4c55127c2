"""Discrete observed variables that depend on each other, as a Bayesian network: families, Fourier coefficients, sensitivities and bounds.

A node is a discrete observed variable, or one column of it; its *family* is the node with its parents, and the counts of all
combinations of a family's levels are what a conditional probability table is learned from (ZRD16, section 3). Nothing here reads a
record: ``release`` hands tables over and gets tables back.

A level of a variable with K levels is written in b = ceil(log2 K) bits, so that the coefficient of a pattern of bits g is the sum over
records of (-1)^(number of bits in common with g), an integer: the Fourier coefficient of ZRD16 times 2^(d/2). With two levels it is
the paper's own. Shapes: a family's table has one axis per parent, in order, and the node's own as the last.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import product
from math import prod, sqrt

import numpy as np

from pymc_dp.plans.statistic import PlannedStatistic
from pymc_dp.plans.walsh import bits_of, largest_sum, variance_of, walsh, weight_of
from pymc_dp.privacy.accounting import shares

MOST_COEFFICIENTS = 2**20
"""The most coefficients that are released: more are noise and nothing else."""

Pattern = tuple[tuple[int, int], ...]
"""A coefficient: (node, bits of that node) for every node that has a part in it, in order of nodes."""


@dataclass(frozen=True)
class Node:
    """One discrete variable of a record, given its parents.

    Attributes
    ----------
    name : str
        The observed variable's, with the column where it has several.
    variable : str
        The name of the observed variable.
    column : int
        Which of its columns, flattened.
    levels : int
    parents : tuple of str
        Names of nodes, in the order of the axes of its table.
    """

    name: str
    variable: str
    column: int
    levels: int
    parents: tuple[str, ...] = ()

    @property
    def bits(self) -> int:
        """How many bits tell its levels apart."""
        return bits_of([self.levels])


@dataclass(frozen=True)
class Network:
    """A Bayesian network over the discrete variables of a record.

    Attributes
    ----------
    nodes : tuple of Node
        In the order of the model.
    """

    nodes: tuple[Node, ...]

    @cached_property
    def place(self) -> dict[str, int]:
        """The places of the nodes, by name."""
        return {node.name: k for k, node in enumerate(self.nodes)}

    def family(self, node: Node) -> tuple[int, ...]:
        """The parents, in the order of the table's axes, and the node itself."""
        return (*(self.place[parent] for parent in node.parents), self.place[node.name])

    def shape(self, node: Node) -> tuple[int, ...]:
        """The shape of a family's table."""
        return tuple(self.nodes[k].levels for k in self.family(node))

    def facts(self) -> list[dict[str, object]]:
        """The nodes as plain values, to be written down."""
        return [asdict(node) for node in self.nodes]

    @staticmethod
    def of_facts(facts: list[dict[str, object]] | None) -> "Network | None":
        """The inverse of ``facts``."""
        return None if facts is None else Network(tuple(Node(**fact | {"parents": tuple(fact["parents"])}) for fact in facts))  # type: ignore

    def order(self) -> list[Node]:
        """Parents before their children."""
        ordered: dict[str, Node] = {}
        while len(ordered) < len(self.nodes):
            ordered |= {node.name: node for node in self.nodes if node.name not in ordered and set(node.parents) <= set(ordered)}
        return list(ordered.values())

    def covered(self) -> dict[str, Node]:
        """Observed variables whose counts another's table holds: by name, the child whose parents are the variable and its parents.

        A child that is itself covered does not count; the one of fewest levels is taken.
        """
        single = {node.variable for node in self.nodes if sum(other.variable == node.variable for other in self.nodes) == 1}
        children_of: dict[str, Node] = {}
        for node in reversed(self.order()):
            parents = {node.name, *node.parents}
            children = [child for child in self.nodes if set(child.parents) == parents and child.variable not in children_of]
            if children and node.variable in single:
                children_of[node.variable] = min(children, key=lambda child: child.levels)
        return children_of

    # ---------- Fourier coefficients
    @cached_property
    def coefficients(self) -> dict[Pattern, int]:
        """The downward closure of the families: every pattern that some family holds, and its place. The empty one is first."""
        places: dict[Pattern, int] = {(): 0}
        for node in self.nodes:
            for pattern in self._patterns(node):
                places.setdefault(pattern, len(places))
        return places

    def size(self) -> int:
        """The number of coefficients, without listing more than are offered."""
        if max(bits_of(self.shape(node)) for node in self.nodes) > 20:
            return MOST_COEFFICIENTS + 1
        return len(self.coefficients)

    def _patterns(self, node: Node) -> Iterable[Pattern]:
        """The patterns of a family, in the order of its table of bits."""
        family = self.family(node)
        for bits in product(*(range(2 ** self.nodes[k].bits) for k in family)):
            yield tuple(sorted((k, b) for k, b in zip(family, bits, strict=True) if b))

    def _places(self, node: Node) -> np.ndarray:
        """The places of a family's coefficients, as an array of the shape of its table of bits."""
        shape = [2 ** self.nodes[k].bits for k in self.family(node)]
        return np.array([self.coefficients[pattern] for pattern in self._patterns(node)]).reshape(shape)

    def transformed(self, tables: Mapping[str, np.ndarray]) -> np.ndarray:
        """The coefficients (N,) of tables of counts by node name, as integers; a coefficient of several families is read from one."""
        result = np.zeros(len(self.coefficients), dtype=np.int64)
        for node in self.nodes:
            table = tables[node.name]
            padded = np.pad(
                table, [(0, 2 ** self.nodes[k].bits - length) for k, length in zip(self.family(node), table.shape, strict=True)]
            )
            result[self._places(node)] = walsh(padded)
        return result

    def tables(self, coefficients: np.ndarray) -> dict[str, np.ndarray]:
        """For every node, the table nearest to these coefficients (N,), in units of 1 / ``divisor_of`` its shape: integers.

        Where levels leave codes unused their counts are known to be 0, so what noise puts there goes to the used ones in equal
        parts: least squares, because noise is alike everywhere. All tables have the same margins wherever families overlap,
        because they share coefficients. Coefficients beyond what 64 bits can add up are clipped, which noise alone can bring about.
        """
        result = {}
        for node in self.nodes:
            shape = self.shape(node)
            most = 2 ** (62 - 2 * bits_of(shape))
            table = walsh(np.clip(coefficients[self._places(node)], -most, most))
            for axis, length in enumerate(shape):
                if table.shape[axis] > length:
                    used, unused = np.split(table, [length], axis=axis)
                    table = length * used + unused.sum(axis=axis, keepdims=True)
            result[node.name] = table
        return result

    # ---------- how far one record moves them
    @cached_property
    def odd(self) -> int:
        """The most coefficients that one record, replaced by another, can turn around: max over u of #{g: |g and u| odd}.

        Two records that differ in the bits u have contributions (-1)^|g and x| that differ, by 2, where g and u have an odd number
        of bits in common. Every u occurs: of K levels in b bits, 2^(b-1) < K <= 2^b, any u below 2^(b-1) is the difference of the
        levels 0 and u, and any other that of the level 2^(b-1) and one below it. Each coefficient is counted in one family, and
        the sum of these counts is maximised by eliminating one node after another; where that takes too much memory, families are
        maximised apart, which can only be more (ZRD16, Corollary 2; docs/theory.md).
        """
        factors: list[tuple[tuple[int, ...], np.ndarray]] = []
        counted: set[Pattern] = {()}
        for node in self.nodes:
            family = self.family(node)
            new = np.array([pattern not in counted for pattern in self._patterns(node)])
            counted |= set(self._patterns(node))
            indicator = new.reshape([2 ** self.nodes[k].bits for k in family]).astype(np.int64)
            order = sorted(range(len(family)), key=lambda axis: family[axis])
            factors.append((tuple(sorted(family)), ((new.sum() - walsh(indicator)) // 2).transpose(order)))
        apart = sum(int(table.max()) for _, table in factors)
        together = largest_sum(factors, {k: 2**node.bits for k, node in enumerate(self.nodes)})
        return min(apart if together is None else together, len(self.coefficients) - 1)

    def fourier_sensitivity(self, neighbours: str) -> int:
        """L1 distance between the coefficients of neighbours: 2 for each that turns around; or 1 for all where a record comes or goes."""
        return 2 * self.odd if neighbours == "replace" else len(self.coefficients)

    def fourier_square(self, neighbours: str) -> int:
        """Squared L2 distance: 4 for each that turns around; or 1 for all."""
        return 4 * self.odd if neighbours == "replace" else len(self.coefficients)

    def needed_shift(self, tables: Mapping[str, np.ndarray]) -> int:
        """What must be added to the empty coefficient so that no entry of these tables, as ``tables`` gives them, is negative.

        Computed from noisy tables it costs nothing (docs/theory.md).
        """
        return max(0, *(-(int(tables[node.name].min()) // weight_of(self.shape(node))) for node in self.nodes))

    def stealth(self, epsilon: float, neighbours: str = "replace") -> float:
        """The paper's t at which no entry is negative with probability 0.9, had there been no record: so it costs nothing.

        By simulation of the noise on empty tables, always the same; in units of 4 N^2 / epsilon (ZRD16, Algorithm 2, line 6).
        """
        scale, N = self.fourier_sensitivity(neighbours) / epsilon, len(self.coefficients)
        rng, shifts = np.random.default_rng(0), []
        for _ in range(2000):
            noise = np.rint(rng.laplace(0.0, 1024 * scale, N)).astype(np.int64)
            noise[0] *= neighbours != "replace"
            shifts.append(self.needed_shift(self.tables(noise)) / 1024)
        return float(np.quantile(shifts, 0.9)) * epsilon / (4 * N**2)

    def paper_shift(self, t: float, epsilon: float) -> float:
        """4 t N^2 / epsilon, in units of the empty coefficient: no entry is negative with probability 1 - exp(-t) for t >= 1.

        ZRD16, Corollary 3, which claims it for every t and is wrong for small ones in dense graphs (docs/theory.md).
        """
        return 4 * t * len(self.coefficients) ** 2 / epsilon


def splits(levels: int) -> list[tuple[range, range]]:
    """Halves of all levels, of the halves, and so on: levels - 1 splits, of which a level is in at most ceil(log2 levels)."""

    def halved(start: int, stop: int) -> list[tuple[range, range]]:
        if stop - start < 2:
            return []
        middle = start + 2 ** ((stop - start - 1).bit_length() - 1)
        return [(range(start, middle), range(middle, stop)), *halved(start, middle), *halved(middle, stop)]

    return halved(0, levels)


def splits_of(node: Node, neighbours: str) -> int:
    """How many splits of one family a record moves. A posterior draw pays for each.

    A record is in one row of its family's table, and there in one half of every split that its level is in. One record more or less adds
    its log-probabilities to the scores of those. One in another's place adds its own and takes the other's away. Where the variable has
    parents it may be in another row: both move all their splits. Where it has none both are in the one row there is: splits in which they
    are in the same half stay as they are; one in which they part moves by log p - log(1 - p), which varies by no more than twice what
    either does; and those below are moved by one of them (docs/theory.md).
    """
    halves = [
        {(k, half) for k, pair in enumerate(splits(node.levels)) for half in (0, 1) if level in pair[half]} for level in range(node.levels)
    ]
    most = max(map(len, halves))
    if neighbours == "add_remove":
        return most
    return 2 * most if node.parents else max(len(some ^ other) for some in halves for other in halves)


def record_splits(network: Network, neighbours: str) -> int:
    """How many splits one record moves, added up over families: see ``splits_of``."""
    return sum(splits_of(node, neighbours) for node in network.nodes)


@dataclass(frozen=True)
class FamilyCost:
    """What the counts of one family cost.

    Attributes
    ----------
    node : Node
    cells : int
        Entries of its table.
    laplace, fourier : float
        Standard deviation of the noise on a count at epsilon 1 for the whole network; at another epsilon, divided by that.
    """

    node: Node
    cells: int
    laplace: float
    fourier: float


def family_costs(
    network: Network, statistics: Sequence[PlannedStatistic], neighbours: str, disjoint: Sequence[Sequence[str]]
) -> tuple[FamilyCost, ...]:
    """What every family's counts cost by either mechanism, at equal shares of epsilon."""
    parts = shares([planned.likelihood.name for planned in statistics], disjoint=disjoint)
    laplace = {
        planned.likelihood.name: sqrt(2) / float(parts[planned.likelihood.name]) * planned.sensitivity.difference for planned in statistics
    }
    fourier = sqrt(2) * network.fourier_sensitivity(neighbours)
    known = neighbours == "replace"  # the empty coefficient is the number of records, and has no noise
    return tuple(
        FamilyCost(node, prod(shape), laplace[node.variable], fourier * sqrt(variance_of(shape, known)))
        for node in network.nodes
        if (shape := network.shape(node))
    )


def network_of(statistics: Sequence[PlannedStatistic], *, alone: bool = False) -> tuple[Network | None, str]:
    """The network that planned likelihoods make, or None and the reason why they do not; ``alone`` if it needs no arrow."""
    levels = {planned.likelihood.name: _levels(planned) for planned in statistics}
    nodes: list[Node] = []
    for planned in statistics:
        name, columns = planned.likelihood.name, planned.likelihood.columns
        if not levels[name]:
            return None, f"{name} is {planned.likelihood.distribution} and {planned.structure}, not Bernoulli or Categorical with parents"
        parents = []
        for k, placeholder in enumerate(planned.likelihood.inputs):
            if placeholder.axis is not None and not placeholder.private:
                return None, f"{name} depends on the public {placeholder.name}"
            if not placeholder.private:
                continue
            if not placeholder.parent:
                return None, f"{name} depends on {placeholder.name}, which is not an observed variable"
            axis = planned.grid.inputs.index(k)
            if planned.grid.levels[axis] != (tuple(map(float, range(levels.get(placeholder.name, 0)))),):
                return None, f"{name} has a table of another length than {placeholder.name} has levels"
            parents.append((axis, placeholder.name))
        names = tuple(parent for _, parent in sorted(parents))
        for column in range(prod(columns)):
            place = "" if prod(columns) == 1 else f"[{', '.join(map(str, np.unravel_index(column, columns)))}]"
            nodes.append(Node(f"{name}{place}", name, column, levels[name], names))
    if not alone and not any(node.parents for node in nodes):
        return None, "no observed variable depends on another"
    if not set().union(*(node.parents for node in nodes)) <= {node.name for node in nodes}:
        return None, "a parent has several columns"
    if any(len(node.parents) > len(set(node.parents)) for node in nodes):
        return None, "a parent is used twice"
    if len({node.name for node in nodes}) < len(nodes):
        return None, "an observed variable has the name of another's column"
    return Network(tuple(nodes)), ""


def _levels(planned: PlannedStatistic) -> int:
    """How many levels an observed variable has, 0 if it is no node."""
    if planned.regression is not None or planned.structure == "aggregate" or planned.likelihood.make is not None:
        return 0
    return {"Bernoulli": 2, "Categorical": planned.likelihood.levels}.get(planned.likelihood.distribution, 0)
