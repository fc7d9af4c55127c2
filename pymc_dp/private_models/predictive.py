"""A labelled tree and a model's shape -> draws of records, for the released cells or for new ones. They cost nothing.

A private model draws noisy statistics; people want records. The parameters of the user's own likelihoods stand on placeholders in the
spec, so they are evaluated at every posterior draw on rows that hold no record: those of released cells, or those that are given.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.model.fgraph import ModelFreeRV
from pymc.pytensorf import compile as compiled
from pytensor.graph.basic import Variable

from pymc_dp.models.simulated_values import distribution_on
from pymc_dp.models.spec import Likelihood, ModelSpec
from pymc_dp.models.structure import above
from pymc_dp.plans.protection import in_context
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.guard import boundary
from pymc_dp.private_models.labels import covered, extended, posterior_is_covered
from pymc_dp.private_models.predictive_rows import Rows, rows_of_cells, rows_of_new_records, spec_of
from pymc_dp.private_models.rewrite import ANOTHER_SHAPE
from pymc_dp.releases.release import SAVED, Release

if TYPE_CHECKING:
    import xarray as xr


@boundary
def posterior_predictive(
    tree: "xr.DataTree",
    model: pm.Model | None = None,
    *,
    given: Mapping[str, object] | None = None,
    records: int | None = None,
    var_names: Iterable[str] | None = None,
    random_seed: object = None,
) -> "xr.DataTree":
    """Draw records from the posterior predictive distribution: one for every released cell, or new records with given covariates.

    Records are drawn from the model's likelihoods at every draw of the posterior. Their covariates never come from the records: without
    ``given`` they are those of each released cell (group of records), with ``given`` those that you give. So the draws follow from what
    was released and cost no epsilon. Values are in the model's units and are not clamped.

    Parameters
    ----------
    tree : xarray.DataTree
        A tree from ``sample`` or from ``annotate``.
    model : pm.Model, optional
        Your model, not the private one; the model in context if left out. Only its structure is used: no value is read, and any number
        of dummy rows gives the same draws.
    given : mapping, optional
        Arrays of new records by name, as ``inspect`` lists them: every array that a likelihood depends on, indices as numbers
        from 0 or as text labels of their dim (under the array's name or the dim's), and observed variables on which others depend,
        which are drawn if they are not given. They are published: draws at private rows reveal these rows.
    records : int, optional
        How many new records, if no array says it; then ``given`` may be left out.
    var_names : list of str, optional
        The observed variables to draw; all that are not given if left out.
    random_seed : int, optional
        The seed of these draws; it has nothing to do with the noise.

    Returns
    -------
    xarray.DataTree
        A copy of the tree with a group ``posterior_predictive``, of dims (chain, draw, <variable>_cell, ...), one row for every released
        cell, with the cell's covariates as coordinates ``<variable>_at_<array>``; or with ``given`` or ``records`` a group
        ``predictions``, of dims (chain, draw, record, ...). If draws have weights (``Annealing``), so have these. The promise covers the
        group if it covers the posterior.

    Raises
    ------
    Refusal
        When the tree, the model and what is given do not belong together, or when there are no cells to draw for.

    Examples
    --------
    >>> checked = pmdp.posterior_predictive(idata, model, random_seed=1)
    >>> checked["posterior_predictive"]["vote"].dims
    ('chain', 'draw', 'vote_cell')
    >>> pmdp.posterior_predictive(idata, model, records=3)["predictions"].sizes["record"]
    3
    """
    covered(tree)  # refuses what is no labelled tree
    rows = _rows(tree, in_context(model), var_names, given, records)
    group = drawn_on(tree["posterior"].to_dataset(), rows, random_seed)
    name = "posterior_predictive" if given is None and records is None else "predictions"
    return extended(tree, name, group, covers=posterior_is_covered(tree))


def _rows(
    tree: "xr.DataTree", model: pm.Model, var_names: Iterable[str] | None, given: Mapping[str, object] | None, records: int | None
) -> list[Rows]:
    """What is drawn, and for which rows: those of released cells where nothing is given."""
    if hasattr(model, "privacy"):
        raise Refusal("The private model holds noisy statistics, not likelihoods of records. Write model=..., naming your own model.")
    if "posterior" not in tree.children:
        raise Refusal("This tree has no posterior. Use the whole tree that pymc_dp.sample returned.")
    released = Release.from_datatree(tree) if SAVED in tree["privacy"].children else None
    spec = spec_of(tree, model, released)
    likelihoods = _asked(spec, var_names, given or {})
    if given is None and records is None:
        return rows_of_cells(spec, released, likelihoods)
    names = [likelihood.name for likelihood in likelihoods]
    return rows_of_new_records(tree, model, spec, released, names, dict(given or {}), records)


def _asked(spec: ModelSpec, var_names: Iterable[str] | None, given: Mapping[str, object]) -> list[Likelihood]:
    """The likelihoods to draw from."""
    names = [likelihood.name for likelihood in spec.likelihoods]
    if var_names is None:
        wanted = [name for name in names if name not in given]
    else:
        wanted = [var_names] if isinstance(var_names, str) else list(var_names)
    for name in wanted:
        if name not in names or name in given:
            raise Refusal(f"var_names names {name!r}, which is not drawn. Write names of {', '.join(map(repr, names))} that are not given.")
    if not wanted:
        raise Refusal("Every observed variable is given, so there is nothing to draw. Leave one out of given.")
    likelihoods = [likelihood for likelihood in spec.likelihoods if likelihood.name in wanted]
    for likelihood in likelihoods:
        if likelihood.again is None:
            raise Refusal(
                f"{likelihood.name} is {likelihood.distribution}, which cannot be drawn from its parameters. Leave it out of var_names."
            )
    return likelihoods


def drawn_on(
    posterior: "xr.Dataset", rows: list[Rows], random_seed: object, changing: Mapping[str, np.ndarray] | None = None
) -> "xr.Dataset":
    """Draws of every observed variable on its rows, at every draw of the posterior.

    What is ``changing`` has other rows at every draw: arrays (draws, N) by name.
    """
    import xarray as xr

    changing = changing or {}
    outputs, unknowns, inputs_by_row = _graph(rows, changing)
    names = {variable.owner.op.name: variable for variable in unknowns}
    missing = sorted(name for name in names if name not in posterior.data_vars)
    if missing:
        raise Refusal(f"The posterior in this tree does not hold {missing[0]}. Draw it without var_names.")
    chains, draws = (posterior.sizes[dim] for dim in ("chain", "draw"))
    points = [posterior[name].values.reshape(chains * draws, *posterior[name].shape[2:]) for name in names]
    if any(point.ndim - 1 != variable.type.ndim for point, variable in zip(points, unknowns)):
        raise Refusal(ANOTHER_SHAPE)
    points += [changing[name] for name, _ in inputs_by_row]
    inputs = [*unknowns.values(), *(variable for _, variable in inputs_by_row)]
    types = [variable.type.dtype for variable in inputs]
    try:
        with pytensor.config.change_flags(mode="FAST_COMPILE"):  # also of operations that are graphs of their own
            function = compiled(inputs, outputs, random_seed=random_seed, on_unused_input="ignore")
            drawn = [function(*(point[k].astype(dtype) for point, dtype in zip(points, types))) for k in range(chains * draws)]
    except IndexError:
        raise Refusal("An index in given points beyond its table. Write numbers below the length of the dim it indexes.") from None
    data, coords = {}, {"chain": posterior["chain"].values, "draw": posterior["draw"].values}
    for k, rows_of_variable in enumerate(rows):
        name, columns = rows_of_variable.likelihood.name, rows_of_variable.likelihood.columns
        values = np.stack([by_variable[k] for by_variable in drawn])
        dims = [dim or f"{name}_column_{axis}" for axis, dim in enumerate(rows_of_variable.likelihood.column_dims[: len(columns)])]
        dims += [f"{name}_value"] * (values.ndim - 2 - len(columns))
        data[name] = (("chain", "draw", rows_of_variable.dim, *dims), values.reshape(chains, draws, *values.shape[1:]))
        coords |= rows_of_variable.coords
        coords |= {dim: posterior[dim].values for dim in dims if dim in posterior.coords}
    return xr.Dataset(data, coords=coords)


def _graph(rows: list[Rows], changing: Iterable[str] = ()) -> tuple[list[Variable], dict[Variable, Variable], list[tuple[str, Variable]]]:
    """The observed variables on their rows, drawn parents among them; for every unknown of the model an input, and for what changes."""
    parameters = [parameter for rows_of_variable in rows for parameter in rows_of_variable.likelihood.parameters]
    free = [v for v in above(parameters, through_unknowns=False) if v.owner is not None and isinstance(v.owner.op, ModelFreeRV)]
    unknowns = {variable: variable.type() for variable in dict.fromkeys(free)}
    drawn: dict[str, Variable] = {}
    by_row: list[tuple[str, Variable]] = []
    for rows_of_variable in rows:
        likelihood = rows_of_variable.likelihood
        known = dict(unknowns)
        for placeholder in likelihood.inputs:
            variable = placeholder.variable
            if placeholder.name in changing and placeholder.axis is not None:
                known[variable] = pt.tensor(dtype=variable.type.dtype, shape=(rows_of_variable.length,))
                by_row.append((placeholder.name, known[variable]))
            elif variable in rows_of_variable.values:
                known[variable] = pt.constant(rows_of_variable.values[variable])
            else:
                known[variable] = drawn[placeholder.name].astype(variable.type.dtype)
        drawn[likelihood.name] = distribution_on(likelihood, known, rows_of_variable.length)
    return [drawn[rows_of_variable.likelihood.name] for rows_of_variable in rows], unknowns, by_row
