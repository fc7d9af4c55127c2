"""The second door: draws from the posterior itself, and its mode, of Bayesian networks whose tables have Beta and Dirichlet priors.

Release stands before. What leaves is drawn by the exponential mechanism, whose distribution over a public grid *is* the
posterior there: a draw is private because no table holds a probability near 0 or 1, so that no record can make any table much
likelier than another (ZRD16, section 4; docs/theory.md).

A table's row of K levels is written as ceil(log2 K) splits of levels in two, each a Beta variable on a public grid of G points, equally
far apart in logits; a Dirichlet prior is Beta priors of its splits. The log-probabilities at grid points are integers in units of 2^-20
nats, so that scores, sensitivities and draws are exact. With two levels that is one split: the trimmed Beta of the paper.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from math import ceil, floor, log, prod, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.model.fgraph import ModelDeterministic, ModelFreeRV, ModelNamed, ModelPotential
from pymc.pytensorf import constant_fold
from pytensor.graph.basic import Variable
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_dp.accounting import Cost, Refusal, check_neighbours, exact_epsilon
from pymc_dp.anatomy import dissect
from pymc_dp.annotation import spent_on
from pymc_dp.blank import Blank, Likelihood
from pymc_dp.boundary import boundary
from pymc_dp.inspection import check_unit, in_context
from pymc_dp.ledger import Ledger, Part, check_ledger, paid
from pymc_dp.likely import TABLES
from pymc_dp.mechanisms import LARGEST_SUM, UNACCOUNTED, Draw, Laplace, PosteriorSample, check_smallest, chosen
from pymc_dp.networks import Network, Node, network_of, record_splits
from pymc_dp.planning import Grid, Individual, plan
from pymc_dp.release import opened_of, warn_that_nothing_remembers
from pymc_dp.statistics import family_tables
from pymc_dp.structure import above, is_cast, substitute

if TYPE_CHECKING:
    import xarray as xr

NAT = 2**20
"""Scores are integers in units of 1 / NAT nats."""
WIDEST = 27.0
"""No logit lies beyond this."""
FEWEST, MOST = 257, 8193
"""Points of a grid."""


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
    dims : tuple of str or None
    concentration : (R, K) ndarray
        Of every row: of level 0 and of level 1 for a Beta prior, of all levels for a Dirichlet one.
    beta : bool
    """

    variable: Variable
    name: str
    shape: tuple[int, ...]
    dims: tuple[str | None, ...]
    concentration: np.ndarray
    beta: bool


def _prior(variable: Variable) -> Prior:
    """The prior of one free variable, or a refusal."""
    name, random = variable.owner.op.name, variable.owner.inputs[0]
    operation = random.owner.op
    kinds = {pm.Beta.rv_type: "Beta", pm.Dirichlet.rv_type: "Dirichlet", pm.Uniform.rv_type: "Uniform"}
    kind = kinds.get(type(operation))
    if kind is None:
        raise Refusal(f"{name} has no Beta or Dirichlet prior, so its posterior cannot be drawn exactly. Write pm.Beta or pm.Dirichlet.")
    given = constant_fold([*operation.dist_params(random.owner), random.shape], raise_not_constant=False)
    if any(isinstance(one, Variable) for one in given):
        raise Refusal(f"The prior of {name} rests on other variables, so its posterior cannot be drawn exactly. Write numbers in it.")
    *parameters, shape = (np.asarray(one) for one in given)
    full = tuple(map(int, shape))
    if kind == "Dirichlet":
        concentration = np.broadcast_to(parameters[0], full).reshape(-1, full[-1])
    else:
        first, second = (np.broadcast_to(one, full).ravel() for one in parameters)
        if kind == "Uniform" and not ((first == 0).all() and (second == 1).all()):
            raise Refusal(f"{name} must be uniform from 0 to 1. Write pm.Beta({name!r}, 1, 1).")
        concentration = np.stack([second, first] if kind == "Beta" else [np.ones(first.size)] * 2, axis=-1)
    if not (np.isfinite(concentration).all() and (concentration > 0).all()):
        raise Refusal(f"The prior of {name} has parameters that are not positive. Write positive numbers.")
    return Prior(variable, name, full, tuple(variable.owner.op.dims), concentration.astype(float), kind != "Dirichlet")


def _rows(likelihood: Likelihood, grid: Grid, priors: Mapping[Variable, Prior]) -> tuple[Prior, np.ndarray]:
    """The table of a likelihood, and for every cell and column its row there: (V, *C) of int."""
    name, parameter = likelihood.name, likelihood.parameters[-1]
    used = [v for v in above([parameter], through_unknowns=False) if v.owner is not None and isinstance(v.owner.op, ModelFreeRV)]
    plainer = f"Write {name} with one table of probabilities, indexed by its parents"
    if len(used) != 1:
        raise Refusal(f"The probabilities of {name} are computed from several variables or none. {plainer}.")
    prior = priors[used[0]]
    if not _only_moved(parameter, prior.variable):
        raise Refusal(f"The probabilities of {name} are not entries of {prior.name} itself. {plainer}.")
    values = dict(zip(grid.inputs, grid.values(), strict=True))
    given = {}
    for k, one in enumerate(likelihood.inputs):
        if k not in values:
            raise Refusal(f"{name} rests on {one.name} as well as on its parents. {plainer}.")
        given[one.variable] = pt.constant(values[k].reshape(-1).astype(one.variable.type.dtype))
    stand_in = pt.tensor("table", dtype="float64", shape=prior.shape)
    with pytensor.config.change_flags(numba__cache=False):
        full = substitute(parameter, {prior.variable: stand_in, **given})
        function = pytensor.function([stand_in], full, mode="FAST_COMPILE", on_unused_input="ignore")
    rows = np.arange(prod(prior.shape)).reshape(prior.shape)
    core = () if prior.beta else (prior.shape[-1],)
    batch = (grid.size, *likelihood.columns)
    place = np.broadcast_to(np.rint(function(rows.astype(float))).astype(np.int64), (*batch, *core))
    inside = place.min() >= 0 and place.max() < rows.size
    for turned in (1 / (3.7 + rows), np.sqrt(rows + 0.3)):  # a table's entries, at other values, are those at the same places
        if not (inside and np.array_equal(np.broadcast_to(function(turned), place.shape), turned.ravel()[place])):
            raise Refusal(f"The probabilities of {name} are not entries of {prior.name} itself. {plainer}.")
    if not prior.beta:
        if not np.array_equal(place, place[..., :1] // prior.shape[-1] * prior.shape[-1] + np.arange(prior.shape[-1])):
            raise Refusal(f"The levels of {name} are not those of {prior.name} in order. {plainer}.")
        place = place[..., 0] // prior.shape[-1]
    if len(np.unique(place)) != place.size:
        raise Refusal(f"Several parents' levels share a row of {prior.name}. {plainer}.")
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
def splits(levels: int) -> list[tuple[range, range]]:
    """Halves of all levels, of the halves, and so on: levels - 1 splits, of which a level is in at most ceil(log2 levels)."""

    def halved(start: int, stop: int) -> list[tuple[range, range]]:
        if stop - start < 2:
            return []
        middle = start + 2 ** ((stop - start - 1).bit_length() - 1)
        return [(range(start, middle), range(middle, stop)), *halved(start, middle), *halved(middle, stop)]

    return halved(0, levels)


@dataclass(frozen=True)
class Points:
    """A public grid of probabilities, equally far apart in logits, with integer logarithms.

    Attributes
    ----------
    probability : (G,) ndarray
        Of the second half.
    first, second : (G,) int64 ndarray
        Logarithms of the probabilities of either half, in units of 1 / NAT.
    """

    probability: np.ndarray
    first: np.ndarray
    second: np.ndarray

    @property
    def range(self) -> int:
        """By how much a logarithm varies over the grid: what one record more or less in a split moves the scores by."""
        return int(max(np.ptp(self.first), np.ptp(self.second)))


def points(width: float, many: int) -> Points:
    """The grid of logits from -width to width."""
    logits = np.linspace(-width, width, many)
    logs = [np.rint(-NAT * np.logaddexp(0.0, sign * logits)).astype(np.int64) for sign in (1, -1)]
    return Points(1 / (1 + np.exp(-logits)), *logs)


# ---------- the door
@dataclass(frozen=True)
class _Plan:
    """What is decided before a record is read."""

    grid: Points
    scale: float
    temperature: float
    draws: list[Draw]


def _widest(total: Fraction, moved: int) -> float:
    """The widest logits at which moving so many splits by their range costs no more."""
    width = floor(total / moved * NAT) - 2
    if width < 1:
        raise Refusal("epsilon is so small that every probability would be 1/2. Write a larger epsilon, or fewer draws.")
    return min(width / NAT, WIDEST)


def _points_for(width: float, records: int | None) -> int:
    """So many that a posterior of this many records is several points wide."""
    return MOST if records is None else min(max(ceil(8 * width * sqrt(records)), FEWEST), MOST) | 1


def _planned(network: Network, neighbours: str, cost: Cost, draws: int, smallest: float | None, mode: bool, records: int | None) -> _Plan:
    moved = record_splits(network, neighbours)
    width = _widest(cost.epsilon / draws, moved) if smallest is None else log((1 - smallest) / smallest)
    grid = points(width, _points_for(width, records))
    eta = moved * grid.range
    least = Laplace().calibrate(eta * draws, (eta * draws) ** 2, cost)
    scale = least if mode else max(least, float(NAT))
    several = []
    for node in network.nodes:
        own = (2 if neighbours == "replace" else 1) * node.bits * grid.range
        rows = prod(network.shape(node)[:-1])
        several.append(Draw(node.name, "choice", own, own**2, scale, rows * (node.levels - 1) * len(grid.probability)))
    return _Plan(grid, scale, scale / NAT, several * draws)


@dataclass(frozen=True)
class _Drawn:
    """What left: values of the model's tables, and what is public about how."""

    network: Network
    found: Blank
    priors: tuple[Prior, ...]
    values: dict[str, np.ndarray]
    tables: dict[str, np.ndarray]
    plan: _Plan
    cost: Cost
    unit: str
    neighbours: str
    head: str


@boundary
def _drawn(model: object, epsilon: object, draws: int, smallest: float | None, mode: bool, arguments: Mapping[str, Any]) -> _Drawn:
    ledger = check_ledger(arguments["ledger"])
    unit, neighbours, cost = check_unit(arguments["unit"]), check_neighbours(arguments["neighbours"]), Cost(exact_epsilon(epsilon))
    if isinstance(unit, Individual):
        raise Refusal('Draws from the posterior protect rows. Write unit="row".')
    found, leaves = dissect(in_context(model), arguments["public"], sized=neighbours == "replace")
    steps = plan(found, arguments["bounds"], neighbours, unit)
    network, unlike = network_of(steps)
    if network is None:
        raise Refusal(f'Draws from the posterior are offered for Bayesian networks, and {unlike}. Write mechanism="laplace".')
    if any(isinstance(v.owner.op, ModelPotential) for v in found.kept):
        raise Refusal("A Potential is part of the prior, so the posterior cannot be drawn exactly. Leave it out.")
    free = [v for v in found.kept if isinstance(v.owner.op, ModelFreeRV)]
    priors = {variable: _prior(variable) for variable in free}
    where = {step.likelihood.name: _rows(step.likelihood, step.grid, priors) for step in steps}
    used = [prior.name for prior, _ in where.values()]
    if len(set(used)) < len(used):
        raise Refusal("Two observed variables share a table of probabilities. Give each a table of its own.")
    for prior, places in where.values():
        if places.size < len(prior.concentration):
            raise Refusal(f"Some rows of {prior.name} belong to no level of a parent. Give it as many rows as the parents have levels.")
    opened = [opened_of(step, leaves[step.likelihood.name]) for step in steps]
    records = len(opened[0].cells.codes) if neighbours == "replace" else None
    planned = _planned(network, neighbours, cost, draws, smallest, mode, records)
    heaviest = max(float(prior.concentration.sum(axis=-1).max()) for prior, _ in where.values())
    if heaviest * max(planned.temperature, 1.0) * WIDEST * NAT > LARGEST_SUM / 4:
        raise Refusal("epsilon is so small, or a prior so strong, that scores do not fit 64-bit integers. Write a larger epsilon.")
    cost = Cost(cost.epsilon, rho=sum((one.rho for one in planned.draws), Fraction(0)))  # of bounded range: less than epsilon^2 / 2
    receipt = paid(ledger, cost, planned.draws, neighbours=neighbours, unit=unit, public=found.public)
    exact = family_tables(steps, {name: several.observed for name, several in leaves.items()}, network)
    rows: dict[str, list[np.ndarray]] = {}
    for node in network.nodes:
        prior, places = where[node.variable]
        own = places.reshape(len(places), -1)[:, node.column]
        counts = np.clip(exact[node.name].reshape(-1, node.levels), 0, 2**31)
        scores = list(_scores(counts, prior.concentration[own], planned, mode))
        choices = [chosen(scores, planned.scale, receipt) for _ in range(draws)]
        rows[node.name] = [_probabilities(one, node.levels, planned.grid, len(counts)) for one in choices]
    tables = {name: np.stack(several).reshape(draws, *network.shape(network.nodes[network.place[name]])) for name, several in rows.items()}
    values = {prior.name: _values(prior, network, where, tables, draws) for prior, _ in where.values()}
    kept = tuple(prior for prior in priors.values() if prior.name in values)
    return _Drawn(network, found, kept, values, tables, planned, cost, str(unit), neighbours, receipt.head)


def _scores(counts: np.ndarray, concentration: np.ndarray, planned: _Plan, mode: bool) -> Iterable[np.ndarray]:
    """For every row and split, integer log-posteriors at the grid's points: (G,) int64.

    The prior is public: its part is rounded as a whole. A grid equally far apart in logits has the spacing p (1 - p), so that a
    Beta(a, b) prior has the mass p^a (1 - p)^b there; the mode is that of the density of the levels' probabilities, in which every level
    has an exponent less by 1.
    """
    grid = planned.grid
    for row, alpha in zip(counts, concentration, strict=True):
        for first, second in splits(counts.shape[1]):
            a, b = (alpha[list(half)].sum() - mode * len(half) for half in (first, second))
            prior = np.rint((1.0 if mode else planned.temperature) * (a * grid.first + b * grid.second)).astype(np.int64)
            yield int(row[list(first)].sum()) * grid.first + int(row[list(second)].sum()) * grid.second + prior


def _probabilities(choices: list[int], levels: int, grid: Points, rows: int) -> np.ndarray:
    """Rows of probabilities (R, K) from the chosen points of their splits."""
    shares = grid.probability[np.array(choices)].reshape(rows, levels - 1)
    result = np.ones((rows, levels))
    for k, (first, second) in enumerate(splits(levels)):
        result[:, list(first)] *= 1 - shares[:, [k]]
        result[:, list(second)] *= shares[:, [k]]
    return result


type Where = Mapping[str, tuple[Prior, np.ndarray]]
"""By observed variable, its table and the rows of its cells."""


def _values(prior: Prior, network: Network, where: Where, tables: Mapping[str, np.ndarray], draws: int) -> np.ndarray:
    """A model's table of probabilities (draws, *shape), from those of its nodes."""
    full = np.full((draws, *prior.concentration.shape), np.nan)
    for node in network.nodes:
        own, places = where[node.variable]
        if own is prior:
            full[:, places.reshape(len(places), -1)[:, node.column]] = tables[node.name].reshape(draws, -1, node.levels)
    return (full[..., 1] if prior.beta else full).reshape(draws, *prior.shape)


# ---------- what users call
def sample_posterior(model: pm.Model | None, mechanism: PosteriorSample, epsilon: object, **arguments: Any) -> "xr.DataTree":
    """Draws from a network's posterior, each private by itself: see ``sample``, which calls this."""
    import xarray as xr

    if arguments["ledger"] is None:
        warn_that_nothing_remembers()
    drawn = _drawn(in_context(model), epsilon, mechanism.draws, mechanism.smallest, False, arguments)
    spent = spent_on(drawn.cost, drawn.unit, drawn.neighbours)
    groups = {"posterior": _dataset(drawn), "network": _tables(drawn), "privacy": _privacy(drawn, mechanism)}
    tree = xr.DataTree.from_dict({name: group.assign_attrs({**group.attrs, **spent}) for name, group in groups.items()})
    tree.attrs = spent
    return tree


def find_MAP(  # noqa: N802 - PyMC's own name
    *,
    epsilon: object,
    model: pm.Model | None = None,
    smallest: float = 0.01,
    bounds: Mapping[str, object] | None = None,
    public: Iterable[object] = (),
    unit: str = "row",
    neighbours: str = "replace",
    ledger: Ledger | Part | None = None,
) -> dict[str, np.ndarray]:
    """A private maximum a posteriori estimate of a Bayesian network, by the exponential mechanism.

    The score of a table is its log posterior density, which one record moves by a range of at most C; the table is drawn with
    probability in proportion to exp(epsilon score / C) on the grid (ZRD16, Algorithm 3, corrected: theirs scores probabilities of
    sets, which promises nothing for densities; docs/theory.md). So it is the mode of the posterior at an epsilon that is large,
    and a draw from a flattened posterior at one that is small: where S_t are the tables whose score is within t of the best, the
    probability of leaving S_2t is at most exp(-epsilon t / C) / (share of the grid in S_t).

    Parameters
    ----------
    epsilon : int, float, Decimal or Fraction
        Total cost in nats.
    model : pm.Model, optional
        The model in context if left out: a Bayesian network of Bernoulli and Categorical variables, with Beta or Dirichlet priors on its
        tables.
    smallest : float
        The least probability of a split of levels: C grows as it gets smaller.
    bounds, public, unit, neighbours, ledger
        See ``release``.

    Returns
    -------
    dict of str to ndarray
        The value of every table of probabilities, by name, as ``pm.find_MAP`` gives it.

    Raises
    ------
    Refusal
        When the model is not of this kind: before any record is read, with what to write instead.
    """
    if ledger is None:
        warn_that_nothing_remembers()
    check_smallest(smallest)
    arguments = {"bounds": bounds, "public": public, "unit": unit, "neighbours": neighbours, "ledger": ledger}
    drawn = _drawn(in_context(model), epsilon, 1, smallest, True, arguments)
    return {name: values[0] for name, values in drawn.values.items()}


def _dataset(drawn: _Drawn) -> "xr.Dataset":
    """One chain of draws of the model's own tables, with its dims and labels."""
    import xarray as xr

    data, coords = {}, {}
    for prior in drawn.priors:
        dims = [dim or f"{prior.name}_dim_{axis}" for axis, dim in enumerate(prior.dims or (None,) * len(prior.shape))]
        data[prior.name] = (("chain", "draw", *dims), drawn.values[prior.name][None])
        for dim, length in zip(dims, prior.shape, strict=True):
            labels = drawn.found.coords.get(dim)
            coords[dim] = np.arange(length) if labels is None else np.asarray(labels)
    many = len(next(iter(drawn.values.values())))
    return xr.Dataset(data, coords={"chain": [0], "draw": np.arange(many), **coords})


def _tables(drawn: _Drawn) -> "xr.Dataset":
    """The conditional probability tables, as ``sample`` gives them: (chain, draw, cell, *columns, level)."""
    import xarray as xr

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


def _privacy(drawn: _Drawn, mechanism: PosteriorSample) -> "xr.Dataset":
    """What was drawn, one entry per node."""
    import xarray as xr

    several = drawn.plan.draws[: len(drawn.network.nodes)]
    shares = [float(one.pure) * mechanism.draws for one in several if one.pure is not None]
    columns: dict[str, list[object]] = {
        "variable": [node.name for node in drawn.network.nodes],
        "statistic": ["draw from the posterior"] * len(several),
        "mechanism": [mechanism.name] * len(several),
        "sensitivity": [one.difference / NAT for one in several],
        "scale": [drawn.plan.temperature] * len(several),
        "epsilon": list(shares),
        "delta": [0.0] * len(several),
    }
    return xr.Dataset(
        {name: (("release",), np.asarray(values)) for name, values in columns.items()},
        coords={"release": np.arange(len(several))},
        attrs={
            "mechanism": mechanism.name,
            "draws": mechanism.draws,
            "smallest": float(drawn.plan.grid.probability.min()),
            "temperature": drawn.plan.temperature,
            "public": json.dumps(list(drawn.found.public)),
            "ledger_head": drawn.head or UNACCOUNTED,
            "versions": json.dumps({package: version(package) for package in ("pymc_dp", "pymc", "opendp")}),
            "network": json.dumps(drawn.network.facts()),
        },
    )
