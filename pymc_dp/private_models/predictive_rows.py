"""The rows that observed variables are drawn for after a release: those of released cells, or those of new records.

None of them holds a record. A row says what the placeholders of a likelihood stand for in it.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable

from pymc_dp.models.reader import read_spec
from pymc_dp.models.spec import Likelihood, ModelSpec, Placeholder
from pymc_dp.plans.plan import refuse_problems
from pymc_dp.privacy.accounting import Refusal, counts_rows, is_whole
from pymc_dp.private_models.cell_labels import labels_of_cells
from pymc_dp.private_models.rewrite import ANOTHER_SHAPE, spec_like
from pymc_dp.releases.noisy_statistic import NoisyStatistic
from pymc_dp.releases.release import Release

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
    length : int
    dim : str
    coords : dict
        What is known of the rows, as coordinates.
    """

    likelihood: Likelihood
    values: Mapping[Variable, np.ndarray]
    length: int
    dim: str
    coords: Mapping[str, Any]


# ---------- the model's shape


def spec_of(tree: "xr.DataTree", model: pm.Model, released: Release | None, without: Iterable[str] = ()) -> ModelSpec:
    """What was read of the model that a tree was drawn from. Of arrays ``without``, what the graph computes from them is read, too."""
    public = json.loads(tree["privacy"].attrs["public"])
    public = [name for name in public if name not in set(without)]
    try:
        if released is None:
            spec = read_spec(model, public, sized=counts_rows(tree.attrs["privacy_unit"], tree.attrs["neighbours"]), rowwise=True)
        else:
            spec = spec_like(model, released, public)
        refuse_problems(spec)
    except Refusal as reason:
        if without:
            raise Refusal(
                f"{', '.join(sorted(without))} cannot be given, because the model computes with it: {reason} Compute outside the model what"
                " the likelihood takes."
            ) from None
        raise Refusal(f"{reason} The tree was drawn from a model without that: write model=..., naming one of its shape.") from None
    names = {likelihood.name for likelihood in spec.likelihoods}
    if released is not None and names != {noisy.variable for noisy in released.statistics}:
        raise Refusal(ANOTHER_SHAPE)
    _check_lengths(tree, model)
    return spec


def _check_lengths(tree: "xr.DataTree", model: pm.Model) -> None:
    """Refuse a model whose unknowns have more or fewer entries than those that were drawn, as one with a group more."""
    drawn = tree["posterior"].to_dataset() if "posterior" in tree.children else {}
    for unknown in model.free_RVs:
        if unknown.name not in drawn:
            continue
        dims = model.named_vars_to_dims.get(unknown.name) or [None] * unknown.type.ndim
        labels = [model.coords.get(dim) for dim in dims]
        shape = tuple(fixed if named is None else len(named) for fixed, named in zip(unknown.type.shape, labels))
        entries = drawn[unknown.name].shape[2:]
        if len(shape) == len(entries) and any(length not in (None, many) for length, many in zip(shape, entries)):
            raise Refusal(
                f"{unknown.name} has the shape {entries} in this tree and {shape} in the model. Draw from this model first, which costs"
                " nothing: idata = pymc_dp.sample(model=pymc_dp.private_model(idata, model))."
            )


# ---------- released cells


def rows_of_cells(spec: ModelSpec, released: Release | None, likelihoods: list[Likelihood]) -> list[Rows]:
    """One row for every released cell of each likelihood."""
    if released is None:
        raise Refusal("These draws rest on no cells: they were paid for one by one. Write given={...}, or records=1 for a new record.")
    return [_cells_of(spec, likelihood, released[likelihood.name]) for likelihood in likelihoods]


def _cells_of(spec: ModelSpec, likelihood: Likelihood, noisy: NoisyStatistic) -> Rows:
    """The cells of one likelihood; their labels, and public arrays, are coordinates."""
    _check_same(likelihood, noisy)
    if noisy.regression is not None:
        features = sorted({placeholder.name for placeholder in likelihood.inputs if placeholder.axis is not None and not placeholder.index})
        raise Refusal(
            f"{noisy.variable} rests on {', '.join(features)}, of which second moments were released and no values. Write"
            f" given={{{features[0]!r}: ...}} with the values to draw for."
        )
    dim = f"{noisy.variable}_cell"
    coords: dict[str, Any] = {}
    if (labels := labels_of_cells(spec, likelihood, noisy)) is not None:
        coords[dim] = np.asarray(labels)
    values = {placeholder.variable: array for placeholder, array in zip(likelihood.inputs, noisy.inputs, strict=True)}
    for placeholder in likelihood.inputs:
        if placeholder.axis == 0 and placeholder.variable.type.ndim == 1 and placeholder.plain:
            coords[f"{noisy.variable}_at_{placeholder.name}"] = ((dim,), values[placeholder.variable])
    return Rows(likelihood, values, noisy.batch[0], dim, coords)


def _check_same(likelihood: Likelihood, noisy: NoisyStatistic) -> None:
    same = noisy.distribution == likelihood.distribution and noisy.noisy.shape[1:-1] == likelihood.columns
    inputs = [value.ndim for value in noisy.inputs] == [placeholder.variable.type.ndim for placeholder in likelihood.inputs]
    if not (same and inputs):
        raise Refusal(ANOTHER_SHAPE)


# ---------- new records


def rows_of_new_records(
    tree: "xr.DataTree", model: pm.Model, spec: ModelSpec, released: Release | None, names: list[str], given: dict[str, object],
    records: int | None,
) -> list[Rows]:  # fmt: skip
    """The rows of new records for these observed variables, and for parents that have to be drawn for them: parents first."""
    if released is not None and any(noisy.structure == "aggregate" for noisy in released.statistics):
        raise Refusal("Rows are totals here, each with inputs of its own, so there are no new ones. Leave given and records out.")
    by_array, without = spec, set[str]()
    while composed := _composed(by_array) - without:
        without |= composed
        by_array = spec_of(tree, model, released, without)
    tables = {} if released is None else _tables(spec, released)
    likelihoods = with_parents(by_array, names, given)
    _check_names(likelihoods, given)
    inputs = [placeholder for likelihood in likelihoods for placeholder in likelihood.inputs]
    arrays = {placeholder.variable: _given(by_array, placeholder, given) for placeholder in inputs}
    lengths = {
        array.shape[placeholder.axis]
        for placeholder in inputs
        if placeholder.axis is not None and (array := arrays[placeholder.variable]) is not None
    }
    length = _how_many(lengths, records)
    return [Rows(likelihood, _values_of(likelihood, arrays, tables), length, RECORD, {}) for likelihood in likelihoods]


def _composed(spec: ModelSpec) -> set[str]:
    """Names of what the model computes from arrays before a likelihood takes it."""
    inputs = [placeholder for likelihood in spec.likelihoods for placeholder in likelihood.inputs]
    return {placeholder.name for placeholder in inputs if placeholder.axis is not None and not placeholder.plain}


def _values_of(
    likelihood: Likelihood, arrays: Mapping[Variable, np.ndarray | None], tables: Mapping[tuple[str, int], np.ndarray]
) -> dict[Variable, np.ndarray]:
    """What the placeholders of a likelihood stand for, but for those of parents that are drawn."""
    values: dict[Variable, np.ndarray] = {}
    for placeholder in likelihood.inputs:
        name, variable = placeholder.name, placeholder.variable
        if (array := arrays[variable]) is not None:
            values[variable] = array
        elif placeholder.axis is None and (name, variable.type.ndim) in tables:
            values[variable] = tables[name, variable.type.ndim]
        elif not placeholder.parent:
            raise Refusal(
                f"{likelihood.name} rests on {name}, which is not given. Write given={{{name!r}: ...}}, one entry per new record."
            )
    return values


def _tables(spec: ModelSpec, released: Release) -> dict[tuple[str, int], np.ndarray]:
    """Public arrays without an axis of records, as they were when the release was made."""
    result = {}
    for likelihood in spec.likelihoods:
        noisy = released[likelihood.name]
        _check_same(likelihood, noisy)
        for placeholder, values in zip(likelihood.inputs, noisy.inputs, strict=True):
            if placeholder.axis is None:
                result[placeholder.name, values.ndim] = values
    return result


def with_parents(spec: ModelSpec, names: list[str], given: Mapping[str, object]) -> list[Likelihood]:
    """The likelihoods of these names, and those of observed variables above them that are not given, parents first."""
    by_name = {likelihood.name: likelihood for likelihood in spec.likelihoods}
    order: list[Likelihood] = []

    def visit(likelihood: Likelihood) -> None:
        for placeholder in likelihood.inputs:
            if placeholder.parent and placeholder.name not in given:
                visit(by_name[placeholder.name])
        if likelihood not in order:
            order.append(likelihood)

    for name in names:
        visit(by_name[name])
    return order


def _check_names(likelihoods: list[Likelihood], given: Mapping[str, object]) -> None:
    inputs = [placeholder for likelihood in likelihoods for placeholder in likelihood.inputs]
    known = {name for placeholder in inputs for name in (placeholder.name, placeholder.labels if placeholder.index else None) if name}
    for name in given:
        if name not in known:
            words = f"Write names of {', '.join(map(repr, sorted(known)))}." if known else "Write records=... alone."
            raise Refusal(f"given names {name!r}, on which nothing that is drawn rests. {words}")


def _given(spec: ModelSpec, placeholder: Placeholder, given: Mapping[str, object]) -> np.ndarray | None:
    """What is given for one placeholder, in its type; None if nothing is."""
    dim = placeholder.labels if placeholder.index else None
    name = placeholder.name if placeholder.name in given else dim if dim in given else None
    if name is None:
        return None
    values = np.asarray(given[name])
    labels = spec.coords.get(dim) if dim else None
    if labels is not None and values.dtype.kind in "OSU":
        values = _places(values, labels, placeholder.labels)
    shape = placeholder.variable.type.shape
    if values.ndim != len(shape) or any(wanted not in (None, length) for wanted, length in zip(shape, values.shape)):
        wanted = ", ".join("records" if k == placeholder.axis else str(length) for k, length in enumerate(shape))
        raise Refusal(f"given[{name!r}] has the shape {values.shape}. Write an array of shape ({wanted}).")
    if values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        raise Refusal(f"given[{name!r}] must hold finite numbers.")
    whole = values.astype(np.int64) if placeholder.whole else values
    if placeholder.whole and not np.array_equal(whole, values):
        raise Refusal(f"given[{name!r}] must hold whole numbers, as the model's array does.")
    if placeholder.index and (whole < 0).any():
        raise Refusal(f"given[{name!r}] is an index, so it must not be negative.")
    dtype = placeholder.variable.type.dtype
    kept = whole.astype(dtype)
    if placeholder.whole and not np.array_equal(kept, whole):
        raise Refusal(f"given[{name!r}] must hold numbers that fit {dtype}, the type of the model's array.")
    return kept


def _places(values: np.ndarray, labels: Iterable[object], dim: str | None) -> np.ndarray:
    """Labels of a dim as their places in it."""
    places = {label: k for k, label in enumerate(labels)}
    unknown = [value for value in values.ravel().tolist() if value not in places]
    if unknown:
        raise Refusal(f"given holds {unknown[0]!r}, which is no label of {dim}. Write labels of that dim, or numbers.")
    return np.array([places[value] for value in values.ravel().tolist()], dtype=int).reshape(values.shape)


def _how_many(lengths: set[int], records: int | None) -> int:
    if records is not None and not is_whole(records, 1):
        raise Refusal("records must be a positive integer. Write for example records=100.")
    lengths = lengths | ({records} if records is not None else set())
    if len(lengths) > 1 or 0 in lengths:
        raise Refusal("given must hold as many entries of every array, one for every new record, and records must agree with it.")
    return next(iter(lengths), 1)
