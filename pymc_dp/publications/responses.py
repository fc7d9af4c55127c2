"""A private model of randomised answers: of every record only a level of joint bins is known, told truly with a known probability.

With K levels a record is told as a level with probability q + (p - q) P(level), where p is the probability of the truth and q = (1 - p) /
(K - 1). P(level) is what the model says of the bins together: the density of covariates is integrated over their bin by nodes, and outcomes
have the probability of theirs given each node. Shapes: N records, B bins of all values together, P patterns: a node of each covariate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TYPE_CHECKING

import numpy as np
import pymc as pm
import pytensor.scalar as scalar
import pytensor.tensor as pt
from pymc.distributions.discrete import DiscreteUniformRV
from pymc.distributions.distribution import SymbolicRandomVariable
from pymc.distributions.mixture import MixtureRV
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors
from pytensor.scalar import Identity
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.op import RandomVariable

from pymc_dp.laws.kernel import LEAST
from pymc_dp.models.binned import COUNTED, nodes_between, support_of
from pymc_dp.models.structure import arrays_above, folded
from pymc_dp.models.tabulated import MOST_VALUES
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.publications.candidates import largest_of
from pymc_dp.publications.covariates import log_probability
from pymc_dp.publications.patterns import Mixed, Patterns, is_alike
from pymc_dp.publications.publication import Noted, terms_of
from pymc_dp.publications.rows import is_whole, taken_out
from pymc_dp.releases.answers import Answers

if TYPE_CHECKING:
    import xarray as xr

COVARIATES = tuple(
    getattr(pm, name).rv_type
    for name in (
        "Beta", "Cauchy", "ExGaussian", "Exponential", "Gamma", "Gumbel", "HalfCauchy", "HalfNormal", "HalfStudentT", "InverseGamma",
        "Laplace", "Logistic", "LogNormal", "Moyal", "Normal", "Rice", "SkewNormal", "StudentT", "Wald", "Weibull",
    )
)  # fmt: skip
"""Real covariates, whose density has no jump but at ends of their support that are known."""
MOST_TERMS = 5_000_000
"""The most terms that are evaluated for all records together."""


class _Finite(Identity):
    """The same number, whose derivative counts as 0 where it is none: where a probability is 0, logarithms of it have none.

    The probability of a bin is added to that of being told at random, so that nothing is lost. Each pattern has an entry of its own.
    """

    def pullback(self, inputs: Sequence[Variable], outputs: Sequence[Variable], gradients: Sequence[Variable]) -> tuple[Variable, ...]:
        """Of the only input."""
        (gradient,) = gradients
        return (scalar.switch(scalar.isnan(gradient), 0.0, scalar.switch(scalar.isinf(gradient), 0.0, gradient)),)


FINITE = Elemwise(_Finite(scalar.same_out, name="finite"))


def with_finite_derivatives(random: Variable, others: Sequence[Variable]) -> Variable:
    """The same distribution, through whose parameters, and those of what it is made of, only finite derivatives go.

    ``others`` are the model's variables, which stay what they are.
    """
    others = [each for each in others if each is not random]
    made_of = [each for each in ancestors([random], blockers=others) if is_distribution(each) and each not in others]
    given = {each for one in made_of for each in one.owner.inputs if getattr(each.type, "dtype", "").startswith("float")} - set(others)
    stand_ins = {each: each.type() for each in given if not isinstance(each, Constant) and not is_distribution(each)}
    [bare] = graph_replace([random], stand_ins, strict=False)
    [result] = graph_replace([bare], {stand_in: FINITE(each) for each, stand_in in stand_ins.items()}, strict=False)
    return result


def is_distribution(variable: Variable) -> bool:
    """Whether this is drawn from a distribution."""
    return variable.owner is not None and isinstance(variable.owner.op, RandomVariable | SymbolicRandomVariable)


@dataclass(frozen=True, eq=False)
class Bin:
    """What stands for one bin of a value.

    Attributes
    ----------
    values, logs : array
        (J,) values at which the density or probability is summed, and the logarithms of their weights. Where a distribution function is
        used, one value, which is not, and 0.
    near : array
        (J,) the same values for what rests on them, none of which is further from the bounds than these are wide.
    low, high : float
        The ends of the bin, which may be infinite.
    """

    values: np.ndarray
    logs: np.ndarray
    near: np.ndarray
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Value:
    """A private value of a record: its distribution, and what stands for each of its bins."""

    name: str
    random: Variable
    bins: list[Bin]
    summed: bool


def observe_answers(clone: pm.Model, answers: Answers) -> None:
    """Put the law of randomised answers in the place of all that a copy of the model observes."""
    check_observed(clone, answers)
    order = [name for name in clone.named_vars if name in answers.edges]
    below = {name: [other for other in order if other != name and clone[name] in set(ancestors([clone[other]]))] for name in order}
    randoms = {name: taken_out(clone, name) for name in order}
    for name in order:
        _check_unknowns(clone, name, randoms[name])
    _check_arrays(clone, list(randoms.values()), answers)
    values = [_value(name, randoms[name], answers.edges[name], bool(below[name])) for name in answers.edges]
    with clone:
        chances = _chances(values, answers)
        incomplete = pm.Beta(f"{answers.name}_incomplete", 1, 1)
        others = (1 - answers.truth) / (answers.levels - 1)
        gain = answers.truth - others
        is_incomplete = answers.told == answers.levels - 1
        level = pt.switch(is_incomplete, incomplete, (1 - incomplete) * chances)
        pm.CustomDist(answers.name, pt.log(others + gain * level), logp=_as_computed, observed=answers.told, shape=answers.told.shape)
    clone.publication = Told(answers, terms_of(clone))


@dataclass(frozen=True, eq=False)
class Told(Noted):
    """What is known of a model of randomised answers: who was told as what, and what that cost.

    Attributes
    ----------
    answers : Answers
    terms : frozenset of str
        See ``Noted``.
    """

    answers: Answers
    terms: frozenset[str]

    def __str__(self) -> str:
        """The answers, in lines."""
        return repr(self.answers)

    def group(self) -> "xr.DataTree":
        """The group ``privacy`` of a tree: how records were told, and what it cost."""
        import xarray as xr

        facts = self.answers.facts()
        return xr.DataTree(xr.Dataset(attrs={name: value for name, value in facts.items() if isinstance(value, str | float)}))

    @property
    def promise(self) -> str:
        """Whose promise it is."""
        cost = float(self.answers.cost.epsilon)
        return f"epsilon {cost:g}, delta 0: every record was randomised once, by pymc_dp, before anything was computed from it"

    def remedy(self, added: str) -> str:
        """What to write where something was added to the model."""
        return "Add it to the model before published(model, answers)."


def _as_computed(value: Variable, row: Variable) -> Variable:
    """The log-probability of a record, which was computed from its answer beforehand."""
    return row


def check_observed(model: pm.Model, answers: Answers) -> None:
    """Refuse a model that does not observe these values, of so many records."""
    names = [str(rv.name) for rv in model.observed_RVs]
    if missing := [name for name in answers.edges if name not in names]:
        raise Refusal(f"{missing[0]!r} is not observed in this model. Give it observed= zeros, one for every record.")
    if missing := [name for name in names if name not in answers.edges]:
        raise Refusal(f"{missing[0]!r} is observed, and no bounds are given for it. Add it to bounds: all that is observed is private.")
    for rv in model.observed_RVs:
        if model.rvs_to_values[rv].eval().shape != answers.told.shape:
            raise Refusal(
                f"{rv.name} must have one number of every record. Write observed=np.zeros({answers.told.size}), and a variable a column."
            )
    if f"{answers.name}_incomplete" in model.named_vars or answers.name in model.named_vars:
        raise Refusal(f"The private model calls its answers {answers.name}. Give what has that name another one.")


def _check_unknowns(clone: pm.Model, name: str, random: Variable) -> None:
    """Refuse what rests on a private value and is not observed: the value is summed out, so it has none."""
    for other in (*clone.free_RVs, *clone.deterministics, *clone.potentials):
        if random in set(ancestors([other])):
            raise Refusal(
                f"{other.name} rests on {name}, whose true values are summed out. Let only what is observed rest on it, and leave out"
                " pm.Deterministic and pm.Potential of it."
            )


def _check_arrays(clone: pm.Model, randoms: Sequence[Variable], answers: Answers) -> None:
    """Refuse arrays by record that were not declared public; take those that nothing needs out of the copy, and labels of records.

    What is left of the copy is published with it.
    """
    terms = [*clone.free_RVs, *clone.deterministics, *clone.potentials, *randoms]
    needed = set(arrays_above(terms, through_unknowns=True))
    dropped = {str(array.name) for array in clone.data_vars if array not in needed}
    for array in list(clone.data_vars):
        name = str(array.name)
        if array in needed and name not in answers.public:
            raise Refusal(
                f"{name} is pm.Data and not said to be public. Write public=[{name!r}], or observe it, with a distribution and bounds."
            )
        if array not in needed:
            clone.data_vars.remove(array)
            clone.named_vars.pop(name)
            clone.named_vars_to_dims.pop(name, None)
    for name in set(vars(clone)) & {*(str(random.name) for random in randoms), *dropped}:
        delattr(clone, name)  # PyMC keeps what a model names as its attributes, too
    for array in needed - {*clone.data_vars, *clone.dim_lengths.values()}:
        if not isinstance(array, Constant) or answers.told.size in array.data.shape:
            raise Refusal("The model holds an array as long as the records. Write it as pm.Data, with its name in public= if it is public.")
    used = {dim for dims in clone.named_vars_to_dims.values() for dim in dims}
    for dim, length in list(clone.dim_lengths.items()):
        if dim not in used:
            clone._coords.pop(dim, None)
            clone._dim_lengths.pop(dim, None)
        elif int(length.eval()) == answers.told.size:
            clone._coords[dim] = None
    for rv in clone.free_RVs:
        if isinstance(start := clone.rvs_to_initial_values.get(rv), np.ndarray | Variable) and answers.told.size in _shape(start):
            clone.rvs_to_initial_values[rv] = None


def _shape(start: np.ndarray | Variable) -> tuple[int | None, ...]:
    """Of an initial value, as far as it is known."""
    return tuple(start.type.shape if isinstance(start, Variable) else start.shape)


def _value(name: str, random: Variable, edges: tuple[float, ...], covariate: bool) -> Value:
    """A private value, and what stands for each of its bins."""
    ends = [-np.inf, *edges[1:-1], np.inf]
    pairs = list(pairwise(ends))
    if is_whole(random) and isinstance(random.owner.op, DiscreteUniformRV) and not _counts(random):
        raise Refusal(f"{name} may be negative. Write a distribution of whole numbers from 0 on.")
    if is_whole(random) and (most := largest_of(random)) is not None and most < MOST_VALUES:
        levels = np.arange(most + 1)
        inside = [levels[(levels > low) & (levels <= high)] for low, high in pairs]
        return Value(name, random, [Bin(v, np.zeros(len(v)), v, *pair) for v, pair in zip(inside, pairs, strict=True)], True)
    if not covariate:
        _check_distribution(name, random)
        ends = [np.floor(end) for end in ends] if is_whole(random) else ends
        bins = [Bin(np.zeros(1), np.zeros(1), np.zeros(1), low, high) for low, high in pairwise(ends)]
        return Value(name, random, bins, False)
    if not isinstance(random.owner.op, COVARIATES):
        raise Refusal(
            f"{name} is a private covariate, and its distribution is not one that can be integrated over a bin. Write pm.Normal, or another"
            " density without jumps, or Bernoulli, Categorical or Binomial."
        )
    lower, upper = support_of(random)
    points = np.array([edge for edge in edges[1:-1] if lower < edge < upper])
    nodes, logs, pieces = nodes_between(points, lower, upper)
    places = np.cumsum([0, *pieces]) * (len(nodes) // sum(pieces))
    found = [slice(*pair) for pair in pairwise(places)]
    wide = edges[-1] - edges[0]
    before = sum(edge <= lower for edge in edges[1:-1])
    bins = []
    for k, pair in enumerate(pairs):
        part = found[k - before] if 0 <= k - before < len(found) else slice(0, 0)
        bins.append(Bin(nodes[part], logs[part], np.clip(nodes[part], edges[0] - wide, edges[-1] + wide), *pair))
    return Value(name, random, bins, True)


def _counts(random: Variable) -> bool:
    """Whether a uniform distribution of whole numbers begins at 0 or above, as far as is known."""
    least = folded(random.owner.op.dist_params(random.owner)[0])
    return least is not None and bool(np.min(least) >= 0)


def _check_distribution(name: str, random: Variable) -> None:
    """Refuse an outcome whose bins have no probability that PyMC knows how to compute."""
    known = not is_whole(random) or isinstance(random.owner.op, (*COUNTED, MixtureRV))
    try:
        pm.logcdf(random, 0.0)
    except NotImplementedError:
        known = False
    if not known:
        raise Refusal(
            f"PyMC knows no distribution function of {name}, by which a bin has a probability. Write a distribution that has pm.logcdf."
        )


# ---------- the probability of a record's bins


def _chances(values: Sequence[Value], answers: Answers) -> Variable:
    """The probability (N,) of the bins that every record was told as; of a record that was told as incomplete, that of the first."""
    told = np.where(answers.told < answers.levels - 1, answers.told, 0)
    summed = {each.name: (each.random, each.random.type.clone(shape=told.shape)()) for each in values if each.summed}
    graphs, seeds = _graphs(values, summed, told.shape)
    cells = [[each.bins[k] for each, k in zip(values, cell, strict=True)] for cell in product(*map(range, answers.shape))]
    tables = [_patterns(values, cell) for cell in cells]
    try:
        if is_alike([graph for graph, _ in graphs], [seed for several in seeds.values() for seed in several]):
            starts = np.cumsum([0, *(len(logs) for _, logs in tables)])
            columns = {name: np.concatenate([numbers[name] for numbers, _ in tables])[:, None] for name in tables[0][0]}
            rows = _product(graphs, seeds, columns, np.concatenate([logs for _, logs in tables])[:, None])
            if rows.type.shape[1] == 1:
                parts = [rows[start:end, 0].sum() for start, end in pairwise(starts)]
                return pt.clip(pt.stack(parts), 0.0, 1.0)[told]
        longest = max(len(logs) for _, logs in tables)
        if longest * told.size > MOST_TERMS:
            raise Refusal(
                f"These are {longest * told.size:,} terms, more than {MOST_TERMS:,}. Write fewer private covariates, or fewer records."
            )
        whole = {name: np.stack([_padded(numbers[name], longest) for numbers, _ in tables], axis=1)[:, told] for name in tables[0][0]}
        weights = np.stack([_padded(logs, longest, -np.inf) for _, logs in tables], axis=1)[:, told]
        return pt.clip(_product(graphs, seeds, whole, weights).sum(axis=0), 0.0, 1.0)
    except Mixed as mixed:
        raise Refusal(
            f"{' and '.join(answers.edges)} cannot be read record by record: {mixed}. Let every row rest on values of the same record only,"
            " in arithmetic, as an index of a table, or as a column of a matrix."
        ) from None


def _padded(numbers: np.ndarray, length: int, fill: float | None = None) -> np.ndarray:
    """As long as the longest; what is added has no weight. A bin without a value gets any."""
    fill = fill if fill is not None else numbers[0] if len(numbers) else 0.0
    return np.concatenate([numbers, np.full(length - len(numbers), fill)])


def _patterns(values: Sequence[Value], cell: Sequence[Bin]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Numbers (P,) of every seed in the bins of one cell, and the logarithms of their weights."""
    places = np.indices([len(each.values) for each in cell]).reshape(len(cell), -1)
    logs = np.sum([each.logs[place] for each, place in zip(cell, places, strict=True)], axis=0)
    numbers = {}
    for value, each, place in zip(values, cell, places, strict=True):
        if value.summed:
            numbers[value.name], numbers[f"{value.name} near"] = each.values[place], each.near[place]
            continue
        for end, limit in (("low", each.low), ("high", each.high)):
            finite = np.isfinite(limit)
            numbers[f"{value.name} {end}"] = np.full(len(logs), limit if finite else each.high if end == "low" else each.low)
            numbers[f"{value.name} {end} there"] = np.full(len(logs), float(finite))
    return numbers, logs


Graph = tuple[Variable, bool]
"""A graph of every record, and whether it is the logarithm of a density or a probability itself."""


def _graphs(
    values: Sequence[Value], summed: Mapping[str, tuple[Variable, Variable]], shape: tuple[int, ...]
) -> tuple[list[Graph], dict[str, list[Variable]]]:
    """Of every value its log-density, or the probability of its bin; and by name the seeds that numbers are put in the place of."""
    covariates = [random for random, _ in summed.values()]
    graphs: list[Graph] = []
    seeds: dict[str, list[Variable]] = {}
    for name, (random, at) in summed.items():
        seeds[name], seeds[f"{name} near"] = [at], [random]
    for each in values:
        if each.summed:
            graphs.append((log_probability(each.random, summed[each.name][1], covariates), True))
            continue
        random = with_finite_derivatives(each.random, [*pm.modelcontext(None).basic_RVs, *covariates])
        ends = []
        for end in ("low", "high"):
            at, there = (pt.TensorType("float64", shape)(f"{each.name} {end}{word}") for word in ("", " there"))
            seeds[f"{each.name} {end}"], seeds[f"{each.name} {end} there"] = [at], [there]
            below = pt.exp(pt.minimum(log_probability(random, at, covariates, pm.logcdf), 0.0))
            ends.append(pt.switch(pt.gt(there, 0.5), below, 0.0 if end == "low" else 1.0))
        graphs.append((pt.maximum(ends[1] - ends[0], 0.0), False))
    return graphs, seeds


def _product(
    graphs: Sequence[Graph], seeds: Mapping[str, Sequence[Variable]], numbers: Mapping[str, np.ndarray], logs: np.ndarray
) -> Variable:
    """Weight times density times probability at all patterns of every record: (P, N), or (P, 1) where it is the same for all."""
    replaced = {seed: pt.constant(numbers[name].astype(seed.type.dtype)) for name, several in seeds.items() for seed in several}
    patterns = Patterns(replaced)
    rows = [(patterns.rows(graph), is_log) for graph, is_log in graphs]
    density = sum((row for row, is_log in rows if is_log), pt.constant(np.maximum(logs, np.log(LEAST))))
    result = pt.exp(density)
    for row, is_log in rows:
        result = result if is_log else result * row
    return result
