"""Draws of a Bayesian network's tables, which have Beta and Dirichlet priors, by the exponential mechanism.

Its distribution over a public grid *is* the posterior there: a draw is private because no table holds a probability near 0 or 1, so
that no record can make any table much likelier than another (ZRD16, section 4; docs/theory.md).

A table's row of K levels is written as ceil(log2 K) splits of levels in two, each a Beta variable on a public grid of G points, equally
far apart in logits; a Dirichlet prior is Beta priors of its splits. The log-probabilities at grid points are integers in units of 2^-20
nats, so that scores, sensitivities and draws are exact. With two levels that is one split: the trimmed Beta of the paper.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, log, prod, sqrt
from typing import TYPE_CHECKING

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.model.fgraph import ModelDeterministic, ModelFreeRV, ModelNamed, ModelPotential
from pymc.pytensorf import constant_fold
from pytensor.graph.basic import Variable
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_dp.models.bounded_priors import TrimmedBetaRV
from pymc_dp.models.spec import Likelihood, ModelSpec
from pymc_dp.models.structure import above, is_cast, substitute
from pymc_dp.models.truncated_priors import is_constrained
from pymc_dp.plans.network import Network, Node, splits, splits_of
from pymc_dp.plans.person import key_of
from pymc_dp.plans.statistic import Grid, PlannedStatistic
from pymc_dp.posterior.price import CERTIFIED, NAT, Price, Task, priced
from pymc_dp.posterior.result import Drawn, Prepared, drawn_for
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.mechanisms import LARGEST_SUM, exponential_mechanism
from pymc_dp.privacy.receipts import Receipt
from pymc_dp.privacy.requests import SMALLEST
from pymc_dp.private_models.likelihood import TABLES
from pymc_dp.private_models.rewrite import without_likelihoods
from pymc_dp.releases.cells import public_cells_of
from pymc_dp.releases.from_data import tables_over, with_records_of
from pymc_dp.releases.headers import alone
from pymc_dp.releases.persons import rows_that_count
from pymc_dp.releases.statistics import family_tables, records_of

if TYPE_CHECKING:
    import xarray as xr

WIDEST = 27.0
"""No logit lies beyond this."""
MUCH, SEVERAL = 0.05, 10
"""From so many draws on, of which an interval could be made, it is said where more than this share of a prior is cut off."""
CAUTION = (
    "Probabilities are drawn between {:.3g} and {:.3g} only, which cuts off {:.0%} of a prior: intervals of {} draws do not hold what lies"
    ' beyond. Write mechanism=pymc_dp.PosteriorSample({}, smallest={:.1g}), which flattens the likelihood more; or mechanism="laplace".'
)
FEWEST, MOST = 257, 8193
"""The fewest and the most points of a grid."""


class Unlike(Exception):
    """A model whose tables cannot be drawn by splits, and why."""


# ---------- the tables' priors, read from the graph
@dataclass(frozen=True)
class Prior:
    """One table of probabilities, as the model has it.

    Attributes
    ----------
    variable : Variable
        The model's.
    name : str
    shape : tuple of int
    concentration : (R, K) ndarray
        Parameters of every row: of level 0 and of level 1 for a Beta prior, of all levels for a Dirichlet one.
    beta : bool
    smallest : float or None
        Where the prior is truncated in the model itself.
    """

    variable: Variable
    name: str
    shape: tuple[int, ...]
    concentration: np.ndarray
    beta: bool
    smallest: float | None = None


def _prior(variable: Variable) -> Prior:
    """The prior of one free variable, or a refusal."""
    name, random = variable.owner.op.name, variable.owner.inputs[0]
    operation = random.owner.op
    kinds = {
        pm.Beta.rv_type: "Beta", pm.Dirichlet.rv_type: "Dirichlet", pm.Uniform.rv_type: "Uniform", TrimmedBetaRV: "Beta",
    }  # fmt: skip
    kind = kinds.get(type(operation))
    if kind is None:
        raise Unlike(f"{name} has no Beta or Dirichlet prior, so its posterior cannot be drawn exactly. Write pm.Beta or pm.Dirichlet.")
    if is_constrained(variable):
        raise Unlike(f"The transform of {name} says more of it than its prior does. Leave it out.")
    numbers = constant_fold([*operation.dist_params(random.owner), random.shape], raise_not_constant=False)
    if any(isinstance(number, Variable) for number in numbers):
        raise Unlike(f"The prior of {name} rests on other variables, so its posterior cannot be drawn exactly. Write numbers in it.")
    *parameters, shape = (np.asarray(number) for number in numbers)
    full = tuple(map(int, shape))
    if kind == "Dirichlet":
        concentration = np.broadcast_to(parameters[0], full).reshape(-1, full[-1])
    else:
        first, second = (np.broadcast_to(parameter, full).ravel() for parameter in parameters)
        if kind == "Uniform" and not ((first == 0).all() and (second == 1).all()):
            raise Unlike(f"{name} must be uniform from 0 to 1. Write pm.Beta({name!r}, 1, 1).")
        concentration = np.stack([second, first] if kind == "Beta" else [np.ones(first.size)] * 2, axis=-1)
    if not (np.isfinite(concentration).all() and (concentration > 0).all()):
        raise Unlike(f"The prior of {name} has parameters that are not positive. Write positive numbers.")
    return Prior(variable, name, full, concentration.astype(float), kind != "Dirichlet", getattr(operation, "smallest", None))


type Where = Mapping[str, tuple[Prior, np.ndarray]]
"""By observed variable, its table and the rows of its cells."""


def _rows(likelihood: Likelihood, grid: Grid, priors: Mapping[Variable, Prior]) -> tuple[Prior, np.ndarray]:
    """The table of a likelihood, and for every cell and column its row there: (V, *C) of int."""
    name, parameter = likelihood.name, likelihood.parameters[-1]
    used = [v for v in above([parameter], through_unknowns=False) if v.owner is not None and isinstance(v.owner.op, ModelFreeRV)]
    plainer = f"Write {name} with one table of probabilities, indexed by its parents"
    if len(used) != 1:
        raise Unlike(f"The probabilities of {name} are computed from several variables or none. {plainer}.")
    prior = priors[used[0]]
    if not _only_moved(parameter, prior.variable):
        raise Unlike(f"The probabilities of {name} are not entries of {prior.name} itself. {plainer}.")
    values = dict(zip(grid.inputs, grid.values(), strict=True))
    levels = {}
    for k, placeholder in enumerate(likelihood.inputs):
        if k not in values:
            raise Unlike(f"{name} rests on {placeholder.name} as well as on its parents. {plainer}.")
        levels[placeholder.variable] = pt.constant(values[k].reshape(-1).astype(placeholder.variable.type.dtype))
    stand_in = pt.tensor("table", dtype="float64", shape=prior.shape)
    with pytensor.config.change_flags(numba__cache=False):
        full = substitute(parameter, {prior.variable: stand_in, **levels})
        function = pytensor.function([stand_in], full, mode="FAST_COMPILE", on_unused_input="ignore")
    rows = np.arange(prod(prior.shape)).reshape(prior.shape)
    core = () if prior.beta else (prior.shape[-1],)
    batch = (grid.size, *likelihood.columns)
    place = np.broadcast_to(np.rint(function(rows.astype(float))).astype(np.int64), (*batch, *core))
    inside = place.min() >= 0 and place.max() < rows.size
    for turned in (1 / (3.7 + rows), np.sqrt(rows + 0.3)):  # a table's entries, at other values, are those at the same places
        if not (inside and np.array_equal(np.broadcast_to(function(turned), place.shape), turned.ravel()[place])):
            raise Unlike(f"The probabilities of {name} are not entries of {prior.name} itself. {plainer}.")
    if not prior.beta:
        if not np.array_equal(place, place[..., :1] // prior.shape[-1] * prior.shape[-1] + np.arange(prior.shape[-1])):
            raise Unlike(f"The levels of {name} are not those of {prior.name} in order. {plainer}.")
        place = place[..., 0] // prior.shape[-1]
    if len(np.unique(place)) != place.size:
        raise Unlike(f"Several parents' levels share a row of {prior.name}. {plainer}.")
    return prior, place


def _only_moved(parameter: Variable, table: Variable) -> bool:
    """Whether a parameter is a table's entries, picked and laid out anew: nothing is computed from them."""
    while parameter is not table:
        node = parameter.owner
        moves = AdvancedSubtensor | Subtensor | DimShuffle | ModelDeterministic | ModelNamed
        if node is None or not (isinstance(node.op, moves) or is_cast(parameter)):
            return False
        parameter = node.inputs[0]
    return True


# ---------- splits and grids
@dataclass(frozen=True)
class Points:
    """A public grid of probabilities, equally far apart in logits, with integer logarithms.

    Attributes
    ----------
    probability : (G,) ndarray
        Probability of the second half of the levels.
    first, second : (G,) int64 ndarray
        Logarithms of the probabilities of either half, in units of 1 / NAT.
    """

    probability: np.ndarray
    first: np.ndarray
    second: np.ndarray

    @property
    def range(self) -> int:
        """The range of a logarithm over the grid: as far as one record more or less in a split moves the scores."""
        return int(max(np.ptp(self.first), np.ptp(self.second)))


def points(width: float, many: int) -> Points:
    """The grid of logits from -width to width."""
    logits = np.linspace(-width, width, many)
    logs = [np.rint(-NAT * np.logaddexp(0.0, sign * logits)).astype(np.int64) for sign in (1, -1)]
    return Points(1 / (1 + np.exp(-logits)), *logs)


# ---------- the plan
def _points_for(width: float, records: float | None) -> int:
    """How many points a grid needs for a posterior of this many records to be several points wide."""
    return MOST if records is None else min(max(ceil(8 * width * sqrt(records)), FEWEST), MOST) | 1


def _planned(network: Network, task: Task, records: int | None, smallest: float) -> tuple[Points, Price]:
    """The grid, decided before a record is read, and what a draw costs.

    What it costs rests on the ends of the grid alone. So the price comes first, with how flat it makes the posterior, and then the points.
    """
    width = log((1 - smallest) / smallest)
    grid = points(width, task.mechanism.points or FEWEST)
    price = _priced(network, task, grid)
    if task.mechanism.points is None:
        grid = points(width, _points_for(width, None if records is None else records / price.temperature))
        price = _priced(network, task, grid)
    return grid, price


def _priced(network: Network, task: Task, grid: Points) -> Price:
    """What a draw on this grid costs.

    A person is as many places as rows count at most, in each of which a row comes, goes or is exchanged, so that the scores of a split move
    by the sum of what these move them by, whose range is at most the sum of the ranges. An exchange moves at least as many splits as a row
    that comes or goes.
    """
    rows = 1 if task.protection.person is None else task.protection.person.at_most
    choices = []
    for node in network.nodes:
        sensitivity = rows * splits_of(node, task.neighbours) * grid.range
        choices.append((node.name, sensitivity, prod(network.shape(node)[:-1]) * (node.levels - 1) * len(grid.probability)))
    return priced(task, choices)


def _matched(spec: ModelSpec, plans: Sequence[PlannedStatistic]) -> Where:
    """The table of probabilities of every observed variable, by name, and the rows of its cells, each in one place."""
    if any(isinstance(v.owner.op, ModelPotential) for v in spec.kept):
        raise Unlike("a Potential is part of the prior")
    priors = {variable: _prior(variable) for variable in spec.kept if isinstance(variable.owner.op, ModelFreeRV)}
    where = {planned.likelihood.name: _rows(planned.likelihood, planned.grid, priors) for planned in plans}
    used = [prior.name for prior, _ in where.values()]
    if len(set(used)) < len(used):
        raise Unlike("two observed variables share a table of probabilities. Give each a table of its own")
    unused = sorted({prior.name for prior in priors.values()} - set(used))
    if unused:
        raise Unlike(f"{unused[0]} is no table of an observed variable. Leave it out")
    for prior, places in where.values():
        if places.size < len(prior.concentration):
            raise Unlike(f"some rows of {prior.name} belong to no level of a parent. Give it as many rows as the parents have levels")
    if len({prior.smallest for prior in priors.values()}) > 1:
        raise Unlike("some tables are truncated and some are not, or elsewhere. Give all the same smallest")
    return where


def of_tables(task: Task, network: Network) -> Prepared:
    """Draws of a network's tables of probabilities.

    Raises
    ------
    Unlike
        Where they cannot be drawn by splits, and another way may do it.
    """
    (spec, paths), plans, request = task.statistics, task.plan.statistics, task.mechanism
    where = _matched(spec, plans)
    (truncated,) = {prior.smallest for prior, _ in where.values()}
    if truncated is not None and request.smallest not in (None, truncated):
        raise Refusal("smallest was given twice, differently. Leave it out of PosteriorSample: the priors have it.")
    smallest = truncated or request.smallest or SMALLEST
    opened, source = [public_cells_of(planned, paths[planned.likelihood.name]) for planned in plans], task.source
    if source is not None:
        opened = [with_records_of(cells, source) for cells in opened]
    records = int(opened[0].cells.n.sum()) if task.protection.sized else None
    if (person := task.protection.person) is not None and source is None:
        key = key_of(task.model, spec, person)
        paths = {name: replace(path, key=key) for name, path in paths.items()}
    grid, price = _planned(network, task, records, smallest)
    heaviest = max(float(prior.concentration.sum(axis=-1).max()) for prior, _ in where.values())
    if heaviest * max(price.temperature, 1.0) * WIDEST * NAT > LARGEST_SUM / 4:
        raise Refusal("epsilon is so small, or a prior so strong, that scores do not fit 64-bit integers. Write a larger epsilon.")
    least = float(grid.probability.min())

    def draw(receipt: Receipt) -> Drawn:
        if source is None:
            counted = rows_that_count(spec.likelihoods, paths, person)
            values = {name: records_of(path.observed) for name, path in paths.items()}
            exact = family_tables(plans, values, network, counted, alike=False)
        else:
            at_most = None if person is None else person.at_most
            with alone(source.table):
                exact = tables_over(opened, network, source, at_most, sized=task.protection.sized)
        tables: dict[str, np.ndarray] = {}
        for node in network.nodes:
            prior, places = where[node.variable]
            concentration = prior.concentration[places.reshape(len(places), -1)[:, node.column]]
            counts = np.clip(exact[node.name].reshape(-1, node.levels), 0, 2**31)
            scores = list(_scores(counts, concentration, grid, 1.0 if task.mode else price.temperature, task.mode))
            choices = [exponential_mechanism(scores, price.scale, receipt) for _ in range(request.draws)]
            rows = np.stack([_probabilities(choice, node.levels, grid, len(counts)) for choice in choices])
            tables[node.name] = rows.reshape(request.draws, *network.shape(node))
        priors = {prior.name: prior for prior, _ in where.values()}
        free = [v.owner.op.name for v in spec.kept if isinstance(v.owner.op, ModelFreeRV)]
        values = {name: _values(priors[name], network, where, tables, request.draws) for name in free}
        facts = {"smallest": least, "network": json.dumps(network.facts())}
        shown = network if any(node.parents for node in network.nodes) else None
        return drawn_for(task, spec, without_likelihoods(spec, {})[0], values, price, CERTIFIED, facts=facts, network=shown, tables=tables)

    cut = 0.0 if truncated is not None or task.mode else _cut_off([prior for prior, _ in where.values()], least)
    many = request.draws
    caution = "" if cut < MUCH or many < SEVERAL else CAUTION.format(least, 1 - least, cut, many, many, least / 10)
    return Prepared(spec, price, CERTIFIED, draw, records, 0.0 if truncated is not None else least, caution=caution)


def _cut_off(priors: Sequence[Prior], least: float) -> float:
    """The largest share of a split's prior that lies beyond the probabilities that draws may have. It is public."""
    from scipy.special import betainc, betaincc

    ends = set()
    for prior in priors:
        for first, second in splits(prior.concentration.shape[-1]):
            ends |= set(zip(*(prior.concentration[:, list(half)].sum(axis=1).tolist() for half in (second, first)), strict=True))
    return max(float(betainc(a, b, least) + betaincc(a, b, 1 - least)) for a, b in ends)


def _scores(counts: np.ndarray, concentration: np.ndarray, grid: Points, temper: float, mode: bool) -> Iterable[np.ndarray]:
    """For every row and split, integer log-posteriors at the grid's points: (G,) int64.

    The prior is public: its part is rounded as a whole. A grid equally far apart in logits has the spacing p (1 - p), so that a
    Beta(a, b) prior has the mass p^a (1 - p)^b there; the mode is that of the density of the levels' probabilities, in which every level
    has an exponent less by 1.
    """
    for row, alpha in zip(counts, concentration, strict=True):
        for first, second in splits(counts.shape[1]):
            a, b = (alpha[list(half)].sum() - mode * len(half) for half in (first, second))
            prior = np.rint(temper * (a * grid.first + b * grid.second)).astype(np.int64)
            yield int(row[list(first)].sum()) * grid.first + int(row[list(second)].sum()) * grid.second + prior


def _probabilities(choices: list[int], levels: int, grid: Points, rows: int) -> np.ndarray:
    """Rows of probabilities (R, K) from the chosen points of their splits."""
    shares = grid.probability[np.array(choices)].reshape(rows, levels - 1)
    result = np.ones((rows, levels))
    for k, (first, second) in enumerate(splits(levels)):
        result[:, list(first)] *= 1 - shares[:, [k]]
        result[:, list(second)] *= shares[:, [k]]
    return result


def _values(prior: Prior, network: Network, where: Where, tables: Mapping[str, np.ndarray], draws: int) -> np.ndarray:
    """A model's table of probabilities (draws, *shape), from those of its nodes."""
    full = np.full((draws, *prior.concentration.shape), np.nan)
    for node in network.nodes:
        table, places = where[node.variable]
        if table is prior:
            full[:, places.reshape(len(places), -1)[:, node.column]] = tables[node.name].reshape(draws, -1, node.levels)
    return (full[..., 1] if prior.beta else full).reshape(draws, *prior.shape)


def network_group(drawn: Drawn) -> "xr.Dataset":
    """The conditional probability tables, as ``sample`` gives them: (chain, draw, cell, *columns, level)."""
    import xarray as xr

    assert drawn.network is not None
    by_variable: dict[str, list[Node]] = {}
    for node in drawn.network.nodes:
        by_variable.setdefault(node.variable, []).append(node)
    data = {}
    for name, nodes in by_variable.items():
        several = [drawn.tables[node.name].reshape(len(drawn.tables[node.name]), -1, node.levels) for node in nodes]
        columns = [f"{name}_column"] if len(nodes) > 1 else []
        table = np.stack(several, axis=2) if columns else several[0]
        data[f"{name}{TABLES}"] = (("chain", "draw", f"{name}_cell", *columns, f"{name}_level"), table[None])
    many = len(next(iter(drawn.tables.values())))
    return xr.Dataset(data, coords={"chain": [0], "draw": np.arange(many)})
