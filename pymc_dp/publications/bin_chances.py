"""The probability that a record is in the bins of its randomised answer, by the user's own likelihood.

The density of a covariate is integrated over its bin by nodes, and summed where it is whole; an outcome has the probability of its bin
given these. Shapes: N records, P patterns (a node of each covariate), E points of an outcome, B bins of one value.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.discrete import DiscreteUniformRV
from pymc.distributions.distribution import SymbolicRandomVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor.basic import Alloc
from pytensor.tensor.random.op import RandomVariable

from pymc_dp.laws.kernel import LEAST
from pymc_dp.models.alternatives import has_distribution
from pymc_dp.models.binned import numeric, support_of
from pymc_dp.models.interval_nodes import nodes_between
from pymc_dp.models.structure import constant_value
from pymc_dp.models.tabulated import MOST_VALUES
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.publications.counts import MOST_TERMS
from pymc_dp.publications.covariates import log_probability
from pymc_dp.publications.patterns import Mixed, Patterns, is_alike
from pymc_dp.publications.rows import is_whole
from pymc_dp.publications.truths import largest_of
from pymc_dp.releases.answers import RandomisedAnswers

COVARIATES = tuple(
    getattr(pm, name).rv_type
    for name in (
        "Beta", "Cauchy", "ExGaussian", "Exponential", "Gamma", "Gumbel", "HalfCauchy", "HalfNormal", "HalfStudentT", "InverseGamma",
        "Laplace", "Logistic", "LogNormal", "Moyal", "Normal", "Rice", "SkewNormal", "StudentT", "Wald", "Weibull",
    )
)  # fmt: skip
"""Real covariates, whose density has no jump but at ends of their support that are known."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """What stands for one bin of a covariate.

    Attributes
    ----------
    values, logs : array
        (J,) values at which its density or probability is summed, and the logarithms of their weights.
    near : array
        (J,) the same values for what rests on them, none of which is further from the bounds than these are wide.
    """

    values: np.ndarray
    logs: np.ndarray
    near: np.ndarray


@dataclass(frozen=True, eq=False)
class Covariate:
    """A private value on which others rest: its distribution, and the nodes of each of its bins."""

    name: str
    random: Variable
    bins: list[Nodes]


@dataclass(frozen=True, eq=False)
class Outcome:
    """A private value on which nothing rests: bin b has the probability ``constant[b] + sum over e of signs[b, e] exp(of(points[e]))``.

    Attributes
    ----------
    name : str
    random : Variable
    points, signs, constant : array
        (E,), (B, E) and (B,).
    of : callable
        ``pm.logcdf``, or ``pm.logp`` where the value has few levels.
    """

    name: str
    random: Variable
    points: np.ndarray
    signs: np.ndarray
    constant: np.ndarray
    of: Callable[..., Variable]


def binned_value(name: str, random: Variable, edges: tuple[float, ...], covariate: bool) -> Covariate | Outcome:
    """A private value in bins, by its distribution; or a refusal where the bins have no probability that is known how to compute."""
    ends = [-np.inf, *edges[1:-1], np.inf]
    if is_whole(random) and isinstance(random.owner.op, DiscreteUniformRV) and not _counts(random):
        raise Refusal(f"{name} may be negative. Write a distribution of whole numbers from 0 on.")
    if is_whole(random) and (most := largest_of(random)) is not None and most < MOST_VALUES:
        levels = np.arange(most + 1)
        inside = [(levels > low) & (levels <= high) for low, high in pairwise(ends)]
        if not covariate:
            return Outcome(name, random, levels, np.array(inside, dtype=float), np.zeros(len(inside)), pm.logp)
        return Covariate(name, random, [Nodes(levels[here], np.zeros(here.sum()), levels[here]) for here in inside])
    if covariate:
        return Covariate(name, random, _nodes_of(name, random, edges))
    _check_distribution(name, random)
    points, bins = np.array(edges[1:-1]), len(edges) - 1
    signs = np.eye(bins, bins - 1) - np.eye(bins, bins - 1, k=-1)
    return Outcome(name, random, np.floor(points) if is_whole(random) else points, signs, (np.arange(bins) == bins - 1) * 1.0, pm.logcdf)


def _nodes_of(name: str, random: Variable, edges: tuple[float, ...]) -> list[Nodes]:
    """Nodes of every bin of a real covariate; a bin where it cannot lie has none."""
    if not isinstance(random.owner.op, COVARIATES):
        raise Refusal(
            f"{name} is a private covariate, and its distribution is not one that can be integrated over a bin. Write pm.Normal, or another"
            " density without jumps, or Bernoulli, Categorical or Binomial."
        )
    lower, upper = support_of(random)
    inside = [edge for edge in edges[1:-1] if lower < edge < upper]
    nodes, logs, pieces = nodes_between(np.array(inside), lower, upper)
    places = np.cumsum([0, *pieces]) * (len(nodes) // sum(pieces))
    before, wide = sum(edge <= lower for edge in edges[1:-1]), edges[-1] - edges[0]
    near = np.clip(nodes, edges[0] - wide, edges[-1] + wide)
    bins = [Nodes(nodes[start:end], logs[start:end], near[start:end]) for start, end in pairwise(places)]
    nothing = Nodes(*(np.zeros(0) for _ in range(3)))
    return [nothing] * before + bins + [nothing] * (len(edges) - 1 - before - len(bins))


def _counts(random: Variable) -> bool:
    """Whether a uniform distribution of whole numbers begins at 0 or above, as far as is known."""
    least = constant_value(random.owner.op.dist_params(random.owner)[0])
    return least is not None and bool(np.min(least) >= 0)


def _check_distribution(name: str, random: Variable) -> None:
    """Refuse an outcome whose bins have no probability that PyMC knows how to compute."""
    if not has_distribution(random):
        raise Refusal(
            f"PyMC knows no distribution function of {name}, by which a bin has a probability. Write a distribution that has pm.logcdf."
        )


# ---------- derivatives


def with_finite_derivatives(random: Variable, others: Sequence[Variable]) -> Variable:
    """A distribution equal to this one, with parameters, also of the distributions that it is made of, whose derivatives are all finite.

    Where a probability is 0, its logarithm has none. Nothing is lost, because what is told at random is added to the probability of a bin.
    ``others`` are the model's variables, which stay what they are.
    """
    others = [variable for variable in others if variable is not random]
    made_of = [variable for variable in ancestors([random], blockers=others) if is_distribution(variable) and variable not in others]
    parameters = {
        parameter
        for distribution in made_of
        for parameter in distribution.owner.inputs
        if getattr(parameter.type, "dtype", "").startswith("float")
    } - set(others)
    stand_ins = {
        parameter: parameter.type() for parameter in parameters if not isinstance(parameter, Constant) and not is_distribution(parameter)
    }
    [bare] = graph_replace([random], stand_ins, strict=False)
    [result] = graph_replace([bare], {stand_in: numeric(parameter) for parameter, stand_in in stand_ins.items()}, strict=False)
    return result


def is_distribution(variable: Variable) -> bool:
    """Whether this is drawn from a distribution."""
    return variable.owner is not None and isinstance(variable.owner.op, RandomVariable | SymbolicRandomVariable)


# ---------- the probability of a record's bins


def chances_of(values: Sequence[Covariate | Outcome], answers: RandomisedAnswers, released: Variable) -> Variable:
    """The probability (N,) of the bins that every record was told as; of a record that was told as incomplete, that of any.

    What is refused here rests on the number of records and of levels, and not on what was told. The model is that in context.
    ``released`` is what was told, as data of the model: where the probabilities are the same for all records they are looked up in a table
    by it, so that a compiled model can be given other answers.
    """
    covariates = [value for value in values if isinstance(value, Covariate)]
    outcomes = [value for value in values if isinstance(value, Outcome)]
    names = [covariate.name for covariate in covariates] + [outcome.name for outcome in outcomes]
    graphs = _Graphs(covariates, outcomes, answers.told.shape)
    try:
        if (table := graphs.table()) is not None:
            whole = table.dimshuffle([names.index(name) for name in answers.edges]).reshape((answers.levels - 1,))
            return pt.clip(whole, 0.0, 1.0)[pt.minimum(released, answers.levels - 2)]
        places = np.unravel_index(np.minimum(answers.told, answers.levels - 2), answers.shape)
        return pt.clip(graphs.by_record(dict(zip(answers.edges, places, strict=True))), 0.0, 1.0)
    except Mixed as mixed:
        raise Refusal(
            f"{' and '.join(answers.edges)} cannot be read record by record: {mixed}. Let every row rest on values of the same record only,"
            " in arithmetic, as an index of a table, or as a column of a matrix."
        ) from None


class _Graphs:
    """The densities of covariates and the probabilities of outcomes, as graphs of all records, which patterns are put into."""

    def __init__(self, covariates: Sequence[Covariate], outcomes: Sequence[Outcome], shape: tuple[int, ...]) -> None:
        self.covariates, self.outcomes = covariates, outcomes
        randoms = [covariate.random for covariate in covariates]
        model = [*pm.modelcontext(None).basic_RVs, *randoms]
        self.at = {covariate.name: covariate.random.type.clone(shape=shape)() for covariate in covariates}
        self.at |= {outcome.name: pt.TensorType("int64" if outcome.of is pm.logp else "float64", shape)() for outcome in outcomes}
        self.logs = {covariate.name: log_probability(covariate.random, self.at[covariate.name], randoms) for covariate in covariates}
        for outcome in outcomes:
            random = with_finite_derivatives(outcome.random, model)
            self.logs[outcome.name] = log_probability(random, self.at[outcome.name], randoms, outcome.of)
        self.logs = {name: _one_by_one(graph) for name, graph in self.logs.items()}

    def table(self) -> Variable | None:
        """The probability of every bin of each covariate and then of each outcome; None where it differs between records."""
        if not is_alike(list(self.logs.values()), [*self.at.values(), *(covariate.random for covariate in self.covariates)]):
            return None
        cells = self._cells()
        numbers = {name: np.concatenate([values[name] for values, _, _ in cells])[:, None] for name in self._names}
        near = {name: np.concatenate([values[name] for _, values, _ in cells])[:, None] for name in self._names}
        joint = self._density(numbers, near, np.concatenate([logs for _, _, logs in cells])[:, None])
        many = len(joint_nodes := np.repeat(np.arange(len(cells)), [len(logs) for _, _, logs in cells]))
        for outcome in self.outcomes:
            rows = self._outcome(outcome, near, np.tile(outcome.points, many)[:, None], len(outcome.points))
            if rows.type.shape[1] != 1:
                return None
            chance = pt.maximum(pt.dot(rows.reshape((many, len(outcome.points))), outcome.signs.T) + outcome.constant, 0.0)
            joint = (joint[:, :, None] * chance[:, None, :]).reshape((many, -1))
        if joint.type.shape[1] not in (1, None) and not self.outcomes:
            return None
        whole = pt.dot((joint_nodes == np.arange(len(cells))[:, None]) * 1.0, joint)
        return whole.reshape(
            (*(len(covariate.bins) for covariate in self.covariates), *(len(outcome.constant) for outcome in self.outcomes))
        )

    def by_record(self, places: Mapping[str, np.ndarray]) -> Variable:
        """The probability (N,) of the bin of each value, of which these are the places."""
        cells, sizes = self._cells(), [len(covariate.bins) for covariate in self.covariates]
        records = len(next(iter(places.values())))
        cell = np.ravel_multi_index([places[name] for name in self._names], sizes) if sizes else np.zeros(records, dtype=int)
        longest = max(len(logs) for _, _, logs in cells)
        used = {outcome.name: int((outcome.signs != 0).sum(axis=1).max()) for outcome in self.outcomes}
        if (terms := longest * records * max(used.values(), default=1)) > MOST_TERMS:
            raise Refusal(f"These are {terms:,} terms, more than {MOST_TERMS:,}. Write fewer private covariates, or fewer records.")
        numbers = {name: np.stack([_padded(values[name], longest) for values, _, _ in cells], axis=1)[:, cell] for name in self._names}
        near = {name: np.stack([_padded(values[name], longest) for _, values, _ in cells], axis=1)[:, cell] for name in self._names}
        joint = self._density(numbers, near, np.stack([_padded(logs, longest, -np.inf) for _, _, logs in cells], axis=1)[:, cell])
        for outcome in self.outcomes:
            place, few = places[outcome.name], used[outcome.name]
            first = np.argsort(outcome.signs == 0, axis=1, kind="stable")[:, :few]  # the points that count, before others
            signs = np.take_along_axis(outcome.signs, first, axis=1)
            rows = self._outcome(outcome, near, np.tile(outcome.points[first][place].T, (longest, 1)), few)
            chance = (rows.reshape((longest, few, records)) * signs[place].T).sum(axis=1) + outcome.constant[place]
            joint = joint * pt.maximum(chance, 0.0)
        return joint.sum(axis=0)

    @property
    def _names(self) -> list[str]:
        return [covariate.name for covariate in self.covariates]

    def _cells(self) -> list[tuple[dict[str, np.ndarray], dict[str, np.ndarray], np.ndarray]]:
        """For every combination of the covariates' bins: values at nodes (P,), the same moved near the bins, and logarithms of weights."""
        result = []
        for several in product(*(covariate.bins for covariate in self.covariates)):
            places: np.ndarray | list[np.ndarray] = (
                np.indices([len(nodes.values) for nodes in several]).reshape(len(several), -1) if several else []
            )
            pairs = list(zip(several, places, strict=True))
            logs = np.sum([nodes.logs[place] for nodes, place in pairs], axis=0) if pairs else np.zeros(1)
            named = list(zip(self._names, pairs, strict=True))
            numbers, near = ({name: getattr(nodes, kind)[place] for name, (nodes, place) in named} for kind in ("values", "near"))
            result.append((numbers, near, logs))
        return result

    def _density(self, numbers: Mapping[str, np.ndarray], near: Mapping[str, np.ndarray], logs: np.ndarray) -> Variable:
        """Weight times the density of all covariates: (P, N), or (P, 1) where it is the same for all."""
        patterns = Patterns(self._seeds(near) | {self.at[name]: _like(self.at[name], values) for name, values in numbers.items()})
        total: Variable = pt.constant(np.maximum(logs, np.log(LEAST)))
        for name in self._names:
            total = total + patterns.rows(self.logs[name])
        return pt.exp(total)

    def _outcome(self, outcome: Outcome, near: Mapping[str, np.ndarray], points: np.ndarray, many: int) -> Variable:
        """What an outcome is at points (P E, N), with the patterns of covariates that they go with: of each, ``many`` points."""
        seeds = self._seeds({name: np.repeat(values, many, axis=0) for name, values in near.items()})
        rows = Patterns(seeds | {self.at[outcome.name]: _like(self.at[outcome.name], points)}).rows(self.logs[outcome.name])
        return pt.exp(pt.minimum(rows, 0.0))

    def _seeds(self, near: Mapping[str, np.ndarray]) -> dict[Variable, Variable]:
        return {covariate.random: _like(covariate.random, near[covariate.name]) for covariate in self.covariates}


def _one_by_one(graph: Variable) -> Variable:
    """A graph without the repetition for all records that PyMC ends with: it has a row for each record without that, too."""
    repeated = graph.owner is not None and isinstance(graph.owner.op, Alloc) and graph.owner.inputs[0].type.ndim == graph.type.ndim
    return graph.owner.inputs[0] if repeated else graph


def _like(variable: Variable, numbers: np.ndarray) -> Variable:
    return pt.constant(numbers.astype(variable.type.dtype))


def _padded(numbers: np.ndarray, length: int, fill: float | None = None) -> np.ndarray:
    """Numbers of one bin, filled up at the end so that all bins have as many: what is added has no weight."""
    fill = fill if fill is not None else numbers[0] if len(numbers) else 0.0
    return np.concatenate([numbers, np.full(length - len(numbers), fill)])
