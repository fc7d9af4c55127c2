"""The observed variables of a model: their values, and the parameters of their distributions, as functions of arrays and unknowns."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pytensor
from pymc.distributions.distribution import PartialObservedRV
from pymc.model.fgraph import ModelDeterministic, ModelObservedRV
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.fg import Output
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.random.basic import BinomialRV, bernoulli
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_dp.families.family import of_operation
from pymc_dp.models.binned import parametrised_in_bins
from pymc_dp.models.latent_index import entry_name
from pymc_dp.models.likelihood_rv import LikelihoodRV
from pymc_dp.models.model_graph import ModelGraph
from pymc_dp.models.named_dims import lowered
from pymc_dp.models.same_arrays import data_of, shape_of
from pymc_dp.models.structure import (
    Unreduced,
    above,
    arrays_above,
    constant_value,
    is_array,
    is_unknown,
    is_wrapping,
    puts_together,
    substitute,
    without_casts,
)
from pymc_dp.models.tabulated import Parametrised, parametrised

PLAIN = (np.ndarray, np.memmap)
"""Classes of arrays that select and compute as NumPy says. Of a ``np.matrix`` PyMC takes the values that are there along another axis."""


@dataclass(frozen=True, eq=False)
class Observed:
    """An observed variable as it stands in the graph; one with missing values is put together again.

    Attributes
    ----------
    name : str
    random : Variable
        The random variable.
    value : Variable
        Its values; of one with missing values, those that are there.
    dims : tuple of str or None
    missing : Variable or None
        The mask of missing values, where there are any.
    parameters : tuple of Variable
        Of its distribution, with a stand-in for every other observed variable.
    cores : tuple of int
        How many trailing axes of each parameter belong to a single value.
    tree : Tree or None
        Its distribution made anew from its parameters, where it is one of counts, or counted in bins.
    binned : bool
        Whether it is counted in bins.
    unread : str
        Why it cannot be counted in bins, where that is known.
    arrays : tuple of Variable
        The arrays of data that its parameters are computed from.
    """

    name: str
    random: Variable
    value: Variable
    dims: tuple[str | None, ...]
    missing: Variable | None = None
    parameters: tuple[Variable, ...] = ()
    cores: tuple[int, ...] = ()
    tree: Parametrised | None = None
    binned: bool = False
    unread: str = ""
    arrays: tuple[Variable, ...] = ()

    @property
    def ndim(self) -> int:
        """The number of axes of all values: those that are there have one axis for all that the mask has."""
        return self.value.type.ndim if self.missing is None else self.missing.type.ndim + self.value.type.ndim - 1

    @cached_property
    def array(self) -> Variable | None:
        """The array of its values, None where they are computed."""
        return array_behind(self.value)

    @property
    def records(self) -> tuple[int, ...]:
        """The number of its records, read from a shape: empty where it cannot be read, or where there is no axis of records."""
        whole = self.array if self.missing is None else self.missing
        return () if whole is None else shape_of(whole)[:1]


def array_behind(value: Variable) -> Variable | None:
    """The array that a variable is, seen through casts and names; None if it is computed in any other way, or no plain array."""
    root = without_casts(value)
    return root if isinstance(root, Constant | SharedVariable) and type(data_of(root)) in PLAIN else None


def observed_variables(
    graph: ModelGraph, latents: Mapping[str, int | None], binned: Collection[str] = ()
) -> tuple[list[Observed], dict[Variable, Observed]]:
    """The observed variables in the user's order, and which of them every stand-in in their parameters stands for.

    A stand-in is an array without memory: zeros of the shape of what it stands for.
    """
    variables = _put_together(graph, latents)
    _cut_off(graph, variables)
    variables = [_with_parameters(replace(observed, binned=observed.name in binned), graph) for observed in variables]
    stand_ins: dict[tuple[str, str], Variable] = {}
    result = []
    for observed in variables:
        parameters = _with_stand_ins(observed, [other for other in variables if other is not observed], stand_ins)
        result.append(replace(observed, parameters=parameters, arrays=tuple(arrays_above(list(parameters)))))
    by_name = {observed.name: observed for observed in result}
    return result, {array: by_name[name] for (name, _), array in stand_ins.items()}


def imputed_names(observed: Iterable[Observed]) -> set[str]:
    """The names that PyMC makes up for the parts of observed variables with missing values."""
    return {f"{variable.name}{part}" for variable in observed if variable.missing is not None for part in ("_observed", "_unobserved")}


def _put_together(graph: ModelGraph, latents: Mapping[str, int | None]) -> list[Observed]:
    """Every observed variable, those that PyMC splits because values are missing as one."""
    variables = []
    for variable in graph.of_kind(ModelObservedRV):
        name, (random, value) = variable.owner.op.name, variable.owner.inputs
        base = name.removesuffix("_observed")
        joined = graph.by_name.get(base)
        if (
            base != name
            and joined is not None
            and f"{base}_unobserved" in graph.by_name
            and isinstance(joined.owner.op, ModelDeterministic)
            and puts_together(joined, variable)
        ):
            mask = joined.owner.inputs[0].owner.inputs[-1]
            variables.append(Observed(base, random, value, joined.owner.op.dims, missing=mask))
        else:
            variables.append(Observed(name, random, value, variable.owner.op.dims))
    names = [*(rv.name for rv in graph.model.observed_RVs), *(entry_name(n) if levels is not None else n for n, levels in latents.items())]
    names += [observed.name for observed in variables if isinstance(observed.random.owner.op, LikelihoodRV)]
    order = {name: k for k, name in enumerate(names)}
    return sorted(variables, key=lambda observed: order[observed.name if observed.missing is None else f"{observed.name}_observed"])


def _cut_off(graph: ModelGraph, variables: Sequence[Observed]) -> None:
    """Cut observed variables off from their values for whatever depends on them, so that imputed ones look like any other."""
    joined = {observed.name for observed in variables if observed.missing is not None}
    for variable in graph.variables:
        operation = variable.owner.op
        if operation.name not in joined and not isinstance(operation, ModelObservedRV):
            continue
        closed = ModelObservedRV(name=operation.name)(variable.type(), variable.type())
        for node, place in list(graph.graph.clients[variable]):
            if not isinstance(node.op, Output):
                graph.graph.change_node_input(node, place, closed, import_missing=True)


def _with_parameters(observed: Observed, graph: ModelGraph) -> Observed:
    """An observed variable with the parameters of its distribution, as they were before PyMC looked at which values are missing."""
    random = observed.random
    whole = isinstance(random.owner.op, PartialObservedRV)
    if whole:
        random = random.owner.inputs[0]
    if hasattr(random.type, "dims"):
        random = lowered(random, graph.graph)
    random = _of_one_trial(random)
    operation, unread = random.owner.op, ""
    try:
        tree = parametrised_in_bins(random) if observed.binned else parametrised(random)
    except Unreduced as reason:
        tree, unread = None, str(reason)
    parameters: Iterable[Variable] = ()
    cores: tuple[int, ...] = ()
    if observed.binned and tree is not None:
        parameters, cores = tree.parameters, tree.cores
    elif isinstance(operation, RandomVariable) or of_operation(operation) is not None:
        parameters, cores = operation.dist_params(random.owner), tuple(operation.ndims_params)
    elif tree is not None:
        parameters, cores = tree.parameters, tree.cores
    # PyMC restricts parameters where it makes the likelihood anew, and leaves them as they are where it cannot.
    parameters = tuple(parameters) if whole else tuple(_without_mask(p, observed.missing) for p in parameters)
    return replace(observed, random=random, parameters=parameters, cores=cores, tree=tree, unread=unread)


def _of_one_trial(random: Variable) -> Variable:
    """A Binomial of one trial as the Bernoulli variable that it is."""
    if not isinstance(random.owner.op, BinomialRV):
        return random
    rng, size, trials, p = random.owner.inputs
    return bernoulli(p, size=size, rng=rng) if plain_number(trials) == 1 else random


def _with_stand_ins(observed: Observed, parents: Sequence[Observed], stand_ins: dict[tuple[str, str], Variable]) -> tuple[Variable, ...]:
    """The parameters with a stand-in for every other observed variable, whether written as the variable or as its ``pm.Data``."""
    by_name, replaced = {parent.name: parent for parent in parents}, {}
    for variable in above(list(observed.parameters), through_unknowns=False):
        inner = variable.owner.inputs[0] if variable.owner is not None and is_wrapping(variable.owner.op) else variable
        is_observed = inner.owner is not None and isinstance(inner.owner.op, ModelObservedRV)
        parent = by_name.get(inner.owner.op.name) if is_observed else None
        if parent is None and is_array(variable) and variable is not observed.array:
            parent = next((other for other in parents if variable is other.array), None)
        if parent is None or not hasattr(variable.type, "broadcastable") or parent.array is None:
            continue
        key = (parent.name, variable.type.dtype)
        if key not in stand_ins:
            shape = shape_of(parent.array) if parent.missing is None else (*shape_of(parent.missing), *shape_of(parent.array)[1:])
            zeros = np.broadcast_to(np.zeros((), dtype=variable.type.dtype), shape)
            stand_ins[key] = pytensor.shared(zeros, name=parent.name, borrow=True)
        replaced[variable] = stand_ins[key]
    try:
        return tuple(substitute(p, replaced) for p in observed.parameters) if replaced else observed.parameters
    except Unreduced:  # what stands in the way is said when the parameters are reduced
        return observed.parameters


def _without_mask(parameter: Variable, missing: Variable | None) -> Variable:
    """A parameter as it was before PyMC restricted it to the observed entries.

    PyMC selects entries by the mask, or, along axes on which all entries share one value, the first entry, and adds axes of length one in
    front where the likelihood is made anew.
    """
    if missing is None or parameter.owner is None:
        return parameter
    restricted = parameter
    if isinstance(restricted.owner.op, DimShuffle) and restricted.owner.op.is_left_expand_dims:
        restricted = restricted.owner.inputs[0]
    if restricted.owner is not None and isinstance(restricted.owner.op, Subtensor):
        inner, *firsts = restricted.owner.inputs
        entries = restricted.owner.op.idx_list
        first = all(isinstance(entry, int) and plain_number(firsts[entry]) == 0 for entry in entries)
        shared = all(inner.type.broadcastable[: len(entries)])
        return inner if first and shared and len(entries) == missing.type.ndim else parameter
    if not isinstance(parameter.owner.op, AdvancedSubtensor):
        return parameter
    inner, *indices = parameter.owner.inputs
    masks = [array for array in arrays_above(indices) if array.type.dtype == "bool"]
    # Of a multivariate likelihood whole values are missing, so its mask has fewer axes.
    masked = masks and all(mask.type.shape == missing.type.shape[: mask.type.ndim] for mask in masks)
    return inner if masked else parameter


def is_rounded(observed: Observed) -> bool:
    """Whether PyMC gave values fewer bits than were written, as far as types tell: the array's own, or those of unknowns above it.

    Rounding adds to how far one individual moves a value, and 32,768 in 16 bits is -32,768.
    """
    unknowns = {v.type.dtype for v in above([observed.random]) if is_unknown(v) and hasattr(v.type, "dtype")}  # some give generators, too
    array = "" if observed.array is None else observed.array.type.dtype
    return bool(unknowns & {"float16", "float32"}) or array in ("float16", "float32", "int8", "int16")


def plain_number(parameter: Variable) -> float | None:
    """The value of a parameter that is a plain number in the model, and equal for all records."""
    if arrays_above([parameter]) or any(v.owner is None and not isinstance(v, Constant) for v in above([parameter])):
        return None
    if (value := constant_value(parameter)) is None:
        return None
    numbers = np.unique(np.asarray(value, dtype=float))
    return float(numbers[0]) if len(numbers) == 1 and np.isfinite(numbers[0]) else None
