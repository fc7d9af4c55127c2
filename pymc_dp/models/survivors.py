"""What stays of a model without its records: variables, dims and their labels, and the arrays that are published with them."""

from collections.abc import Sequence

import numpy as np
from pymc.model.fgraph import ModelFreeRV, ModelObservedRV, ModelPotential
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors

from pymc_dp.models.allow_list import MOST_NUMBERS
from pymc_dp.models.likelihood_rv import numbers_of_formula
from pymc_dp.models.model_arrays import ModelArrays
from pymc_dp.models.pickled import unlisted
from pymc_dp.models.problems import numbers_written
from pymc_dp.models.same_arrays import constant_length, data_of, part_of
from pymc_dp.models.spec import Likelihood, ModelSpec
from pymc_dp.models.structure import above, arrays_above, computed_within


def surviving(arrays: ModelArrays, likelihoods: Sequence[Likelihood], record_dims: set[str]) -> ModelSpec:
    """The model without its records; whether anything is wrong with it, and what is published with it, is not said yet."""
    kept, dropped = _variables(arrays, record_dims)
    wanted = {dim for variable in kept for dim in variable.owner.op.dims}
    wanted |= {dim for observed in arrays.observed for dim in observed.dims[1:]}
    wanted -= record_dims
    graph = arrays.graph.graph
    coords = {dim: labels for dim, labels in graph._coords.items() if dim in wanted}
    for dim in graph._coords:
        if dim not in coords:
            dropped[dim] = "a dim of records" if dim in record_dims else "a dim of nothing that is left"
    names = {variable.owner.op.name for variable in kept}
    return ModelSpec(
        likelihoods=tuple(likelihoods),
        problems=(),
        kept=tuple(kept),
        order=tuple(name for name in arrays.graph.model.named_vars if name not in arrays.imputed),
        dropped=dropped,
        coords=coords,
        lengths={dim: graph._dim_lengths[dim] for dim in coords},
        initial={name: value for name, value in arrays.graph.initial.items() if name in names},
        public=tuple(sorted({*(arrays.names[array] for array in arrays.public), *arrays.vouched})),
        stays=(),
    )


def _variables(arrays: ModelArrays, record_dims: set[str]) -> tuple[list[Variable], dict[str, str]]:
    """The variables that stay in the rewritten model, and those that are dropped and why."""
    free_dims = {dim for variable in arrays.graph.of_kind(ModelFreeRV) for dim in variable.owner.op.dims}
    lengths = arrays.graph.graph._dim_lengths.items()
    as_long = {dim for dim, length in lengths if constant_length(length) in arrays.records and not arrays.aggregate} - free_dims
    kept: list[Variable] = []
    dropped: dict[str, str] = {}
    for variable in arrays.graph.variables:
        operation = variable.owner.op
        if isinstance(operation, ModelObservedRV) or operation.name in arrays.imputed:
            continue
        if isinstance(operation, ModelFreeRV | ModelPotential) and variable not in arrays.predictions:
            kept.append(variable)
            continue
        if operation.name in {o.name for o in arrays.observed} | {v.owner.op.name for v in kept}:
            continue  # PyMC gives two names of one variable the same name
        closed = [array for array in arrays_above([variable], through_unknowns=True) if array not in arrays.open_arrays]
        if arrays.rests_on_observed(variable):
            dropped[operation.name] = "depends on observed values"
        elif not arrays.sized and arrays.rests_on_length([variable], record_dims):
            dropped[operation.name] = "depends on the number of records"
        elif any(array not in arrays.public for array in closed):
            itself = {arrays.names.get(array) for array in closed} == {operation.name}
            dropped[operation.name] = "is private" if itself else "depends on a private array"
        elif closed:
            dropped[operation.name] = "depends on a public array with an entry per record, which is replaced by one per cell"
        elif (record_dims | as_long) & set(operation.dims):
            dropped[operation.name] = "has one row per record"
        elif not arrays.sized and not (len(operation.dims) == variable.type.ndim and set(operation.dims) <= free_dims):
            dropped[operation.name] = "might have a length that depends on the number of records"
        else:
            kept.append(variable)
    return kept, dropped


def what_stays(arrays: ModelArrays, spec: ModelSpec) -> set[str]:
    """The arrays and numbers that are published with a private model, in words."""
    names = {variable.owner.op.name for variable in spec.kept}
    stays = {arrays.in_words(array) for array in arrays_above(list(spec.kept), through_unknowns=True) if array not in arrays.private}
    stays |= {f"initial value of {name}" for name, value in spec.initial.items() if np.ndim(getattr(value, "data", value))}  # type: ignore[arg-type]
    stays |= {f"what the functions of {name} hold" for name in arrays.vouched & names}
    written = [v for v in spec.kept if isinstance(v.owner.op, ModelPotential) or numbers_written(v) > MOST_NUMBERS]
    stays |= {f"single numbers in {o.name}" for o in arrays.observed if numbers_of_formula(o.random) > MOST_NUMBERS}
    return stays | {f"single numbers in {v.owner.op.name}" for v in written if numbers_written(v)}


def touches_records(arrays: ModelArrays, spec: ModelSpec) -> bool:
    """Whether a record is anywhere above what leaves: a second way of looking, which knows nothing of structure."""
    parameters = [parameter for likelihood in spec.likelihoods for parameter in likelihood.parameters]
    return any(variable in arrays.private for variable in ancestors([*spec.kept, *parameters]))


def unlisted_in(arrays: ModelArrays, spec: ModelSpec) -> str | None:
    """What would be in a pickle of the private model, but is neither among the arrays that people are told of nor in the graph."""
    graphs = list(spec.kept)
    for likelihood in spec.likelihoods:
        graphs += likelihood.parameters
        graphs += (*likelihood.linear.features, likelihood.linear.coefficients) if likelihood.linear is not None else ()
    # Shapes and other settings stand in the graph as constants; the rules of the graph have seen them.
    within = [output for v in above(graphs) if v.owner is not None for output in computed_within(v.owner.op)]
    constants = [v.data for v in ancestors([*graphs, *within]) if isinstance(v, Constant) and isinstance(v.data, np.ndarray)]
    open_data = [*constants, *(data_of(array) for array in arrays.open_arrays)]
    free = [v.owner.op for v in spec.kept if isinstance(v.owner.op, ModelFreeRV)]
    declared = [operation.transform for operation in free if operation.name in arrays.vouched and operation.transform is not None]

    def is_listed(thing: object) -> bool:
        return not getattr(thing, "size", 1) or any(part_of(thing, whole) for whole in open_data)

    objects = [value for value in spec.initial.values() if not isinstance(value, np.ndarray)]
    return unlisted(graphs, is_listed, declared) or unlisted(objects, is_listed)
