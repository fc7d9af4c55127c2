"""The names of a model's arrays, and which of them were declared public."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from pymc.model.fgraph import ModelFreeRV, ModelNamed, ModelPotential
from pytensor.graph.basic import Variable

from pymc_dp.models.likelihood_rv import LikelihoodRV
from pymc_dp.models.model_graph import ModelGraph
from pymc_dp.models.observed import Observed, array_behind, imputed_names
from pymc_dp.models.same_arrays import covers
from pymc_dp.models.structure import indexed_axes, same_memory
from pymc_dp.privacy.accounting import Refusal


def names_of_arrays(
    graph: ModelGraph, observed: Sequence[Observed], stand_ins: Mapping[Variable, Observed], *, sized: bool
) -> dict[Variable, str]:
    """What people call each array of data: its own name, or that of the observed variable that it is above, with a number."""
    names = {v.owner.inputs[0]: v.owner.op.name for v in graph.of_kind(ModelNamed)}
    names |= {stand_in: parent.name for stand_in, parent in stand_ins.items()}
    # Arrays whose pm.Data became an observed variable.
    names |= {o.array: o.name for o in observed if isinstance(o.random.owner.op, LikelihoodRV) and o.array is not None}
    taken = {*graph.model.named_vars, *graph.model.coords}
    for variable in observed:
        count = 0
        for array in variable.arrays:
            if array in names:
                continue
            while f"{variable.name}:{count}" in taken:
                count += 1
            twin = next((other for other in names if same_memory(other, array, sized=sized)), None)
            if twin is None:
                names[array] = f"{variable.name}:{count}"
                count += 1
            else:
                names[array] = names[twin]
    return names


def declared_public(
    public: Iterable[object],
    names: Mapping[Variable, str],
    graph: ModelGraph,
    observed: Sequence[Observed],
    stand_ins: Mapping[Variable, Observed],
) -> tuple[set[Variable], set[str]]:
    """The arrays declared public, and the variables all of whose functions and numbers were.

    Raises
    ------
    Refusal
        When something is named that is not there, or observed values are.
    """
    if isinstance(public, str | np.ndarray) or not isinstance(public, Iterable):
        raise Refusal("public must be a list. Write for example public=['group'].")
    by_name: dict[str, list[Variable]] = {}
    for array, name in names.items():
        by_name.setdefault(name, []).append(array)
    by_dim = _indices_by_dim(observed)
    protected = {variable.array for variable in observed} | set(stand_ins)
    nameable = {name for name, arrays in by_name.items() if not protected & set(arrays)} | set(by_dim)
    remedy = f"Write one of {', '.join(map(repr, sorted(nameable)))}." if nameable else "This model has nothing to declare public."
    functions = _with_functions(graph, observed)
    declared: set[Variable] = set()
    vouched: set[str] = set()
    for item in public:
        if isinstance(item, str):
            arrays = by_name.get(item, []) + by_dim.get(item, [])
            if not arrays and item in functions:
                vouched.add(item)
                continue
            if item in {variable.name for variable in observed}:
                raise Refusal(f"public names observed values ({item}), which are what is protected. Leave them out of public.")
            if not arrays:
                raise Refusal(f"public names {item!r}, which is not there. {remedy}")
        else:
            arrays = [array for array in names if covers(item, array)]
            if not arrays:
                raise Refusal(f"public holds an array that the model does not use as it is. {remedy}")
        if any(array in protected for array in arrays):
            raise Refusal("public names observed values, which are what is protected. Leave them out of public.")
        declared.update(arrays)
    return declared, vouched


def _indices_by_dim(observed: Sequence[Observed]) -> dict[str, list[Variable]]:
    """The plain indices into each dim: declaring a dim public opens these only, since other uses of an array are not the index."""
    indices: dict[str, list[Variable]] = {}
    for variable in observed:
        for index, dims in indexed_axes(list(variable.parameters)):
            array = array_behind(index)
            for dim in dims:
                indices.setdefault(dim, []).extend([] if array is None else [array])
    return indices


def _with_functions(graph: ModelGraph, observed: Sequence[Observed]) -> set[str]:
    """Variables whose functions and numbers can be declared public: those that stay."""
    stay = (v.owner.op for v in graph.variables if isinstance(v.owner.op, ModelFreeRV | ModelPotential))
    return {operation.name for operation in stay} - imputed_names(observed)
