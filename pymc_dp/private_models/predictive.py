"""A labelled tree + a model's shape -> draws of records, for cells of the old ones or for new ones. They cost nothing.

A private model draws noisy statistics; people want records. The parameters of the user's own likelihoods stand on placeholders in the
spec, so they are evaluated at every posterior draw on rows that hold no record: those of released cells, or those that are given.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.model.fgraph import ModelDeterministic, ModelFreeRV, ModelNamed
from pymc.pytensorf import compile as compiled
from pytensor.graph.basic import Variable

from pymc_dp.models.reader import read_spec
from pymc_dp.models.spec import Likelihood, ModelSpec, Placeholder
from pymc_dp.models.structure import above, substitute
from pymc_dp.plans.plan import refuse_problems
from pymc_dp.plans.protection import in_context
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.guard import boundary
from pymc_dp.private_models.labels import covered, extended, intact
from pymc_dp.private_models.rewrite import ANOTHER_SHAPE, labels_of_cells
from pymc_dp.releases.noisy_statistic import NoisyStatistic
from pymc_dp.releases.release import SAVED, Release

if TYPE_CHECKING:
    import xarray as xr

RECORD = "record"
"""The dim of new records."""


@dataclass(frozen=True)
class Rows:
    """The rows that one observed variable is drawn for.

    Attributes
    ----------
    likelihood : Likelihood
    values : dict of Variable to ndarray
        Every placeholder but those of parents that are drawn themselves, with its values.
    many : int
        How many rows there are.
    dim : str
    coords : dict
        What is known of the rows, as coordinates.
    """

    likelihood: Likelihood
    values: Mapping[Variable, np.ndarray]
    many: int
    dim: str
    coords: Mapping[str, Any]


@boundary
def posterior_predictive(
    tree: "xr.DataTree",
    *,
    model: pm.Model | None = None,
    given: Mapping[str, object] | None = None,
    records: int | None = None,
    var_names: Iterable[str] | None = None,
    random_seed: object = None,
) -> "xr.DataTree":
    """Draws of records from the posterior predictive distribution: one for every released cell, or for new records.

    The likelihoods are those of the model, at every draw in the tree, and what they rest on is never a record: without ``given`` it is
    each cell that was released, with ``given`` what is given. So the draws follow from what was released and cost nothing. Values
    are in the model's units and are not clamped.

    Parameters
    ----------
    tree : xarray.DataTree
        A tree from ``sample`` or from ``annotate``.
    model : pm.Model, optional
        Your model, not the private one; the model in context if left out. It is taken for its shape: no value is read, and
        dummy rows of any number give the same draws.
    given : mapping, optional
        Arrays of new records by name, as ``inspect`` lists them: every array that a likelihood rests on, indices as numbers
        from 0 or as labels of their dim that are text (under the array's name or the dim's), and observed variables above others,
        which are drawn where they are not given. They are taken to be yours to publish: whoever gives private rows publishes what the
        posterior says of them.
    records : int, optional
        How many new records, where no array says it; then ``given`` may be left out.
    var_names : list of str, optional
        The observed variables to draw; all that are not given if left out.
    random_seed : int, optional
        The seed of these draws; it has nothing to do with the noise.

    Returns
    -------
    xarray.DataTree
        A copy of the tree with a group ``posterior_predictive``, of dims (chain, draw, <variable>_cell, ...), one row for every released
        cell, and as coordinates ``<variable>_at_<array>`` what the cell says of its records; or with ``given`` or ``records`` a group
        ``predictions``, of dims (chain, draw, record, ...). Where draws have weights (``Annealing``), so have these. The promise covers the
        group where it covers the posterior as it stands.

    Raises
    ------
    Refusal
        When the tree, the model and what is given do not belong together, and where there are no cells to draw for: the message says
        what to give.

    Examples
    --------
    >>> checked = pmdp.posterior_predictive(idata, model=model, random_seed=1)
    >>> checked["posterior_predictive"]["vote"].dims
    ('chain', 'draw', 'vote_cell')
    >>> pmdp.posterior_predictive(idata, model=model, records=3)["predictions"].sizes["record"]
    3
    """
    known = covered(tree)
    model = in_context(model)
    if hasattr(model, "privacy"):
        raise Refusal("The private model holds noisy statistics, not likelihoods of records. Write model=..., naming your own model.")
    if "posterior" not in tree.children:
        raise Refusal("This tree has no posterior. Use the whole tree that pymc_dp.sample returned.")
    saved = SAVED in tree["privacy"].children
    released = Release.from_datatree(tree) if saved else None
    new = given is not None or records is not None
    several = _asked(_spec_of(tree, model, released), var_names, given or {})
    if new:
        rows = _new_rows(tree, model, released, [one.name for one in several], dict(given or {}), records)
    else:
        rows = _cells(_spec_of(tree, model, released), released, [one.name for one in several])
    group = _drawn(tree["posterior"].to_dataset(), rows, random_seed)
    name = "predictions" if new else "posterior_predictive"
    return extended(tree, name, group, covers="posterior" in known and intact(tree, "posterior"))


# ---------- the model's shape


def _spec_of(tree: "xr.DataTree", model: pm.Model, released: Release | None, without: Iterable[str] = ()) -> ModelSpec:
    """The model without records; of arrays ``without``, also what the graph computes from them is seen."""
    public = json.loads(tree["privacy"].attrs["public"])
    public = [name for name in public if name not in set(without)]
    sized = tree.attrs["neighbours"] == "replace"
    try:
        if released is None:
            spec = read_spec(model, public, sized=sized, rowwise=True)
            refuse_problems(spec)
            return spec
        numbers = {int(one.n.sum()) for one in released.statistics}
        aggregate = any(one.structure == "aggregate" for one in released.statistics)
        spec = read_spec(model, public, numbers, aggregate=aggregate, sized=sized)
        refuse_problems(spec)
    except Refusal as reason:
        if without:
            raise Refusal(
                f"{', '.join(sorted(without))} cannot be given, because the model computes with it: {reason} Compute outside the model what"
                " the likelihood takes."
            ) from None
        raise Refusal(f"{reason} The tree was drawn from a model without that: write model=..., naming one of its shape.") from None
    if {likelihood.name for likelihood in spec.likelihoods} != {noisy.variable for noisy in released.statistics}:
        raise Refusal(ANOTHER_SHAPE)
    return spec


def _asked(found: ModelSpec, var_names: Iterable[str] | None, given: Mapping[str, object]) -> list[Likelihood]:
    """The likelihoods to draw from."""
    names = [one.name for one in found.likelihoods]
    if var_names is None:
        wanted = [name for name in names if name not in given]
    else:
        wanted = [var_names] if isinstance(var_names, str) else list(var_names)
    for name in wanted:
        if name not in names or name in given:
            raise Refusal(f"var_names names {name!r}, which is not drawn. Write names of {', '.join(map(repr, names))} that are not given.")
    if not wanted:
        raise Refusal("Every observed variable is given, so there is nothing to draw. Leave one out of given.")
    several = [one for one in found.likelihoods if one.name in wanted]
    for one in several:
        if one.again is None:
            raise Refusal(f"{one.name} is {one.distribution}, which cannot be drawn from its parameters. Leave it out of var_names.")
    return several


# ---------- rows


def _cells(found: ModelSpec, released: Release | None, names: list[str]) -> list[Rows]:
    """One row for every released cell."""
    if released is None:
        raise Refusal("These draws rest on no cells: they were paid for one by one. Write given={...}, or records=1 for a new record.")
    result = []
    for likelihood in found.likelihoods:
        if likelihood.name not in names:
            continue
        noisy = released[likelihood.name]
        _check_same(likelihood, noisy)
        if noisy.regression is not None:
            features = sorted({given.name for given in likelihood.inputs if given.axis is not None and not given.index})
            raise Refusal(
                f"{noisy.variable} rests on {', '.join(features)}, of which second moments were released and no values. Write"
                f" given={{{features[0]!r}: ...}} with the values to draw for."
            )
        dim = f"{noisy.variable}_cell"
        coords: dict[str, Any] = {}
        if (labels := labels_of_cells(found, likelihood, noisy)) is not None:
            coords[dim] = np.asarray(labels)
        values = {at.variable: one for at, one in zip(likelihood.inputs, noisy.inputs, strict=True)}
        for at in likelihood.inputs:
            if at.axis == 0 and at.variable.type.ndim == 1 and at.plain:
                coords[f"{noisy.variable}_at_{at.name}"] = ((dim,), values[at.variable])
        result.append(Rows(likelihood, values, len(noisy.noisy), dim, coords))
    return result


def _check_same(likelihood: Likelihood, noisy: NoisyStatistic) -> None:
    same = noisy.distribution == likelihood.distribution and noisy.noisy.shape[1:-1] == likelihood.columns
    inputs = [value.ndim for value in noisy.inputs] == [given.variable.type.ndim for given in likelihood.inputs]
    if not (same and inputs):
        raise Refusal(ANOTHER_SHAPE)


def _new_rows(
    tree: "xr.DataTree", model: pm.Model, released: Release | None, names: list[str], given: dict[str, object], records: int | None
) -> list[Rows]:
    """The rows of new records, those of parents that have to be drawn for them included."""
    if released is not None and any(one.structure == "aggregate" for one in released.statistics):
        raise Refusal("Rows are totals here, each with inputs of its own, so there are no new ones. Leave given and records out.")
    first = found = _spec_of(tree, model, released)
    without: set[str] = set()
    while composed := {at.name for one in found.likelihoods for at in one.inputs if at.axis is not None and not at.plain} - without:
        without |= composed
        found = _spec_of(tree, model, released, without)
    tables = {} if released is None else _tables(first, released)
    needed = _with_parents(found, names, given)
    _check_names(needed, given)
    told = {at.variable: _given(found, at, given) for one in needed for at in one.inputs}
    arrays = {variable: one for variable, one in told.items() if one is not None}
    by_record = [at for one in needed for at in one.inputs if at.axis is not None and at.variable in arrays]
    lengths = {arrays[at.variable].shape[at.axis] for at in by_record if at.axis is not None}
    many = _how_many(lengths, records)
    result = []
    for one in needed:
        values: dict[Variable, np.ndarray] = {}
        for at in one.inputs:
            if at.variable in arrays:
                values[at.variable] = arrays[at.variable]
            elif at.axis is None and (at.name, at.variable.type.ndim) in tables:
                values[at.variable] = tables[at.name, at.variable.type.ndim]
            elif not at.parent:
                raise Refusal(
                    f"{one.name} rests on {at.name}, which is not given. Write given={{{at.name!r}: ...}}, one entry per new record."
                )
        result.append(Rows(one, values, many, RECORD, {}))
    return result


def _tables(found: ModelSpec, released: Release) -> dict[tuple[str, int], np.ndarray]:
    """Public arrays without an axis of records, as they were when the release was made."""
    result = {}
    for likelihood in found.likelihoods:
        noisy = released[likelihood.name]
        _check_same(likelihood, noisy)
        for at, values in zip(likelihood.inputs, noisy.inputs, strict=True):
            if at.axis is None:
                result[at.name, values.ndim] = values
    return result


def _with_parents(found: ModelSpec, names: list[str], given: Mapping[str, object]) -> list[Likelihood]:
    """These likelihoods and those of observed variables above them that are not given, parents first."""
    by_name = {one.name: one for one in found.likelihoods}
    order: list[Likelihood] = []

    def visit(one: Likelihood) -> None:
        for at in one.inputs:
            if at.parent and at.name not in given:
                visit(by_name[at.name])
        if one not in order:
            order.append(one)

    for name in names:
        visit(by_name[name])
    return order


def _check_names(needed: list[Likelihood], given: Mapping[str, object]) -> None:
    known = {name for one in needed for at in one.inputs for name in (at.name, at.labels if at.index else None) if name}
    for name in given:
        if name not in known:
            words = f"Write names of {', '.join(map(repr, sorted(known)))}." if known else "Write records=... alone."
            raise Refusal(f"given names {name!r}, on which nothing that is drawn rests. {words}")


def _given(found: ModelSpec, at: Placeholder, given: Mapping[str, object]) -> np.ndarray | None:
    """What is given for one placeholder, in its type."""
    name = at.name if at.name in given else at.labels if at.index and at.labels in given else None
    if name is None:
        return None
    values = np.asarray(given[name])
    labels = found.coords.get(at.labels) if at.index and at.labels else None
    if labels is not None and values.dtype.kind in "OSU":
        places = {label: k for k, label in enumerate(labels)}
        unknown = [value for value in values.ravel().tolist() if value not in places]
        if unknown:
            raise Refusal(f"given holds {unknown[0]!r}, which is no label of {at.labels}. Write labels of that dim, or numbers.")
        values = np.array([places[value] for value in values.ravel().tolist()], dtype=int).reshape(values.shape)
    shape = at.variable.type.shape
    if values.ndim != len(shape) or any(wanted not in (None, own) for wanted, own in zip(shape, values.shape)):
        told = ", ".join("records" if k == at.axis else str(length) for k, length in enumerate(shape))
        raise Refusal(f"given[{name!r}] has the shape {values.shape}. Write an array of shape ({told}).")
    if values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        raise Refusal(f"given[{name!r}] must hold finite numbers.")
    whole = values.astype(np.int64) if at.whole else values
    if at.whole and not np.array_equal(whole, values):
        raise Refusal(f"given[{name!r}] must hold whole numbers, as the model's array does.")
    if at.index and (whole < 0).any():
        raise Refusal(f"given[{name!r}] is an index, so it must not be negative.")
    kept = whole.astype(at.variable.type.dtype)
    if at.whole and not np.array_equal(kept, whole):
        raise Refusal(f"given[{name!r}] must hold numbers that fit {at.variable.type.dtype}, the type of the model's array.")
    return kept


def _how_many(lengths: set[int], records: int | None) -> int:
    whole = isinstance(records, int) and not isinstance(records, bool) and records > 0
    if records is not None and not whole:
        raise Refusal("records must be a positive integer. Write for example records=100.")
    lengths = lengths | ({records} if records is not None else set())
    if len(lengths) > 1 or 0 in lengths:
        raise Refusal("given must hold as many entries of every array, one for every new record, and records must agree with it.")
    return next(iter(lengths), 1)


# ---------- draws


def _drawn(posterior: "xr.Dataset", rows: list[Rows], random_seed: object) -> "xr.Dataset":
    """Draws of every observed variable on its rows, at every draw of the posterior."""
    import xarray as xr

    outputs, unknowns = _graph(rows)
    names = {variable.owner.op.name: variable for variable in unknowns}
    missing = sorted(name for name in names if name not in posterior.data_vars)
    if missing:
        raise Refusal(f"The posterior in this tree does not hold {missing[0]}. Draw it without var_names.")
    chains, draws = (posterior.sizes[dim] for dim in ("chain", "draw"))
    points = [posterior[name].values.reshape(chains * draws, *posterior[name].shape[2:]) for name in names]
    if any(point.ndim - 1 != variable.type.ndim for point, variable in zip(points, unknowns)):
        raise Refusal(ANOTHER_SHAPE)
    inputs = list(unknowns.values())
    types = [one.type.dtype for one in inputs]
    try:
        with pytensor.config.change_flags(mode="FAST_COMPILE"):  # also of operations that are graphs of their own
            function = compiled(inputs, outputs, random_seed=random_seed, on_unused_input="ignore")
            found = [function(*(point[k].astype(dtype) for point, dtype in zip(points, types))) for k in range(chains * draws)]
    except IndexError:
        raise Refusal("An index in given points beyond its table. Write numbers below the length of the dim it indexes.") from None
    data, coords = {}, {"chain": posterior["chain"].values, "draw": posterior["draw"].values}
    for k, one in enumerate(rows):
        values = np.stack([several[k] for several in found])
        columns = one.likelihood.columns
        dims = [dim or f"{one.likelihood.name}_column_{axis}" for axis, dim in enumerate(one.likelihood.column_dims[: len(columns)])]
        dims += [f"{one.likelihood.name}_value"] * (values.ndim - 2 - len(columns))
        data[one.likelihood.name] = (("chain", "draw", one.dim, *dims), values.reshape(chains, draws, *values.shape[1:]))
        coords |= one.coords
        coords |= {dim: posterior[dim].values for dim in dims if dim in posterior.coords}
    return xr.Dataset(data, coords=coords)


def _graph(rows: list[Rows]) -> tuple[list[Variable], dict[Variable, Variable]]:
    """The observed variables on their rows, drawn parents among them, and for every unknown of the model an input."""
    parameters = [parameter for one in rows for parameter in one.likelihood.parameters]
    kept = [v for v in above(parameters, through_unknowns=False) if v.owner is not None and isinstance(v.owner.op, ModelFreeRV)]
    unknowns = {variable: variable.type() for variable in dict.fromkeys(kept)}
    drawn: dict[str, Variable] = {}
    for one in rows:
        likelihood = one.likelihood
        known = dict(unknowns)
        for at in likelihood.inputs:
            if at.variable in one.values:
                known[at.variable] = pt.constant(one.values[at.variable])
            else:
                known[at.variable] = drawn[at.name].astype(at.variable.type.dtype)
        batch = (one.many, *likelihood.columns)
        given = []
        for parameter, core in zip(likelihood.parameters, likelihood.core_ndims, strict=True):
            value = substitute(parameter, known, (ModelDeterministic, ModelNamed))
            own = value.type.dtype if value.type.dtype.startswith("int") else "float64"
            given.append(value.astype(own) + np.zeros(batch + (1,) * core, dtype=own))
        assert likelihood.again is not None
        drawn[likelihood.name] = likelihood.again(*given)
    return [drawn[one.likelihood.name] for one in rows], unknowns
