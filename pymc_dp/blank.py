"""Model -> the same graph with a placeholder for every array of records. Structure stands before, inspection after.

``dissect`` takes a model apart into a ``Blank``, which has no record in it and decides everything that can be decided, and
the ``Leaves``, where the records are. Only the door (``release``) asks for the leaves. Types, shapes and operations are
read; no value is.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pymc as pm
from pymc.distributions.distribution import PartialObservedRV
from pymc.model.fgraph import (
    ModelDeterministic,
    ModelFreeRV,
    ModelNamed,
    ModelObservedRV,
    ModelPotential,
    fgraph_from_model,
)
from pymc.model.transform.optimization import freeze_dims_and_data
from pymc.pytensorf import constant_fold
from pymc.variational.minibatch_rv import MinibatchRandomVariable
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.subtensor import AdvancedSubtensor

from pymc_dp.accounting import Refusal
from pymc_dp.family import Domain, Family, of_operation
from pymc_dp.hiding import arrays_inside, number, opaque, rests_on, same_array, shape_of
from pymc_dp.structure import Reduction, Unreduced, above, arrays_above, indexed_axes

RESERVED = ("_released", "_noise", "_cell", "_statistic")
"""Endings of the names that the rewritten model needs beside the user's."""
PLAINER = "Write its parameters with plain arithmetic and indexing."


@dataclass(frozen=True)
class Placeholder:
    """One public input of a likelihood: what the door must bring, one row per cell where ``axis`` is not None."""

    variable: Variable
    axis: int | None
    labels: str | None


@dataclass(frozen=True)
class Likelihood:
    """One observed variable, without its records.

    Attributes
    ----------
    name : str
    distribution : str
        As PyMC calls it.
    family : Family or None
    refusal : str or None
        Why it cannot be released, and what to write instead.
    parameters : tuple of Variable
        On placeholders; axis 0 of each batch runs over cells.
    core_ndims : tuple of int
        How many trailing axes of each parameter belong to a single value.
    unknown : tuple of bool
        Which parameters depend on an unknown.
    inputs : tuple of Placeholder
    columns : tuple of int
        Lengths of the trailing axes of the observed variable.
    column_dims : tuple of str or None
    levels : int
    arrays : tuple of (str, str, bool)
        Arrays its parameters rest on: name, how it is used, whether it is public.
    """

    name: str
    distribution: str
    family: Family | None = None
    refusal: str | None = None
    parameters: tuple[Variable, ...] = ()
    core_ndims: tuple[int, ...] = ()
    unknown: tuple[bool, ...] = ()
    inputs: tuple[Placeholder, ...] = ()
    columns: tuple[int, ...] = ()
    column_dims: tuple[str | None, ...] = ()
    levels: int = 0
    arrays: tuple[tuple[str, str, bool], ...] = ()

    @property
    def structure(self) -> str:
        """How the parameters depend on the record."""
        return "indexed" if any(given.axis is not None for given in self.inputs) else "shared"

    def domain(self, bounds: tuple[float, float] | None = None) -> Domain:
        """What is publicly known about its values, once the bounds are given."""
        if self.family is not None and self.family.BOUNDS == "none":
            return Domain(0.0, float(self.levels - 1 if self.levels else 1), self.levels, self.unknown)
        lower, upper = bounds if bounds is not None else (0.0, 1.0)
        return Domain(lower, upper, self.levels, self.unknown)


@dataclass(frozen=True)
class Blank:
    """A model without records.

    Attributes
    ----------
    likelihoods : tuple of Likelihood
    problems : tuple of str
        What makes the whole model impossible to release.
    kept : tuple of Variable
        The model's free variables, and what else survives, as PyMC's model variables.
    order : tuple of str
        Names of all variables in the user's order.
    dropped : dict of str to str
        What does not survive, and why.
    coords : dict of str to tuple or None
        The dims that survive, with the labels that will be published.
    lengths : dict of str to Variable
    initial : dict of str to object
        Initial values the user gave.
    public : tuple of str
        Names of the arrays declared public.
    stays : tuple of str
        Arrays that stay in the model and are published with it.
    """

    likelihoods: tuple[Likelihood, ...]
    problems: tuple[str, ...]
    kept: tuple[Variable, ...]
    order: tuple[str, ...]
    dropped: Mapping[str, str]
    coords: Mapping[str, tuple[object, ...] | None]
    lengths: Mapping[str, Variable]
    initial: Mapping[str, object]
    public: tuple[str, ...]
    stays: tuple[str, ...]


@dataclass(frozen=True)
class Leaves:
    """Where the records of one observed variable are: never handed on by the door."""

    observed: Variable
    missing: Variable | None
    inputs: tuple[tuple[Variable, int | None], ...]


def blank(model: pm.Model, public: Iterable[object] = (), records: Iterable[int] | None = None) -> Blank:
    """The model without records; see ``dissect``."""
    return dissect(model, public, records)[0]


def dissect(model: pm.Model, public: Iterable[object] = (), records: Iterable[int] | None = None) -> tuple[Blank, dict[str, Leaves]]:
    """Take a model apart into what may be known and where the records are.

    Parameters
    ----------
    model : pm.Model
        Left as it is.
    public : iterable
        Names of ``pm.Data``, names of dims, ``"<observed>:<k>"``, or the arrays themselves.
    records : iterable of int, optional
        Numbers of records, where the model is a dummy whose own numbers do not count.

    Raises
    ------
    Refusal
        When ``public`` names something that is not there. What cannot be released is in the blank, not raised.
    """
    if model.parent is not None:
        raise Refusal("This model is a part of another one. Write model=..., naming the outer model.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _Anatomy(model, public, records).taken_apart()


@dataclass
class _Observed:
    """An observed variable as it stands in the graph, an imputed one put together again."""

    name: str
    random: Variable
    value: Variable
    dims: tuple[str | None, ...]
    missing: Variable | None = None
    joined: bool = False
    parameters: tuple[Variable, ...] = ()
    arrays: list[Variable] = field(default_factory=list)

    @property
    def ndim(self) -> int:
        return self.value.type.ndim if self.missing is None else self.missing.type.ndim


class _Anatomy:
    """One reading of one model. Short-lived, never returned: it holds the records' arrays."""

    def __init__(self, model: pm.Model, public: Iterable[object], records: Iterable[int] | None = None) -> None:
        self.model = model
        self.initial = {rv.name: value for rv, value in model.rvs_to_initial_values.items() if value is not None}
        self.symbolic_initial = [
            name for name, value in self.initial.items() if isinstance(value, Variable) and not isinstance(value, Constant)
        ]
        self.graph = self._graph()
        self.variables = list(self.graph.outputs)
        self.observed = self._observed()
        self._close_imputed()
        self.names = self._names()
        self.public = self._resolve(public)
        self.records = set(self._lengths() if records is None else records)

    def _graph(self):
        # PyMC converts only models without initial values; they are put back in any case, and onto the rewritten model.
        saved = dict(self.model.rvs_to_initial_values)
        try:
            for rv in saved:
                self.model.rvs_to_initial_values[rv] = None
            frozen = freeze_dims_and_data(self.model, data=[])
        finally:
            self.model.rvs_to_initial_values.update(saved)
        return fgraph_from_model(frozen, inlined_views=True)[0]

    def _of_kind(self, kind: type) -> list[Variable]:
        return [variable for variable in self.variables if isinstance(variable.owner.op, kind)]

    @cached_property
    def by_name(self) -> dict[str, Variable]:
        return {variable.owner.op.name: variable for variable in self.variables}

    def _observed(self) -> list[_Observed]:
        found = []
        for variable in self._of_kind(ModelObservedRV):
            name, (random, value) = variable.owner.op.name, variable.owner.inputs
            base = name.removesuffix("_observed")
            joined = self.by_name.get(base)
            if (
                base != name
                and joined is not None
                and f"{base}_unobserved" in self.by_name
                and isinstance(joined.owner.op, ModelDeterministic)
            ):
                mask = joined.owner.inputs[0].owner.inputs[-1]
                found.append(_Observed(base, random, value, joined.owner.op.dims, missing=mask, joined=True))
            else:
                found.append(_Observed(name, random, value, variable.owner.op.dims))
        order = {rv.name: k for k, rv in enumerate(self.model.observed_RVs)}
        found.sort(key=lambda observed: order[f"{observed.name}_observed" if observed.joined else observed.name])
        for observed in found:
            if isinstance(observed.random.owner.op, PartialObservedRV):
                observed.random = observed.random.owner.inputs[0]
            operation = observed.random.owner.op
            if isinstance(operation, RandomVariable):
                parameters = operation.dist_params(observed.random.owner)
                observed.parameters = tuple(_without_mask(p, observed.missing) for p in parameters)
        return found

    def _close_imputed(self) -> None:
        """Let an imputed variable look like any observed one to whatever depends on it, so that nothing tells them apart."""
        for observed in self.observed:
            if observed.joined:
                joined = self.by_name[observed.name]
                closed = ModelObservedRV(name=observed.name)(joined.type(), joined.type())
                self.graph.replace(joined, closed, import_missing=True)
        for observed in self.observed:
            observed.arrays = arrays_above(list(observed.parameters))

    def _lengths(self) -> Iterator[int]:
        """Numbers of records, which are public: shapes only are read."""
        for observed in self.observed:
            for root in _roots(observed.value) if observed.missing is None else [observed.missing]:
                yield from shape_of(root)[:1]

    def _names(self) -> dict[Variable, str]:
        """What people call each array of data."""
        names = {v.owner.inputs[0]: v.owner.op.name for v in self._of_kind(ModelNamed)}
        for observed in self.observed:
            unnamed = [array for array in observed.arrays if array not in names]
            names.update({array: f"{observed.name}:{k}" for k, array in enumerate(unnamed)})
        return names

    def _resolve(self, public: Iterable[object]) -> set[Variable]:
        """The arrays declared public."""
        if isinstance(public, str | np.ndarray) or not isinstance(public, Iterable):
            raise Refusal("public must be a list. Write for example public=['group'].")
        by_name = {name: array for array, name in self.names.items()}
        observed = {array for o in self.observed for array in _roots(o.value)}
        dims: dict[str, list[Variable]] = {}
        for one in self.observed:
            for index, names in indexed_axes(list(one.parameters)):
                for name in names:  # a dim opens plain indices only: other uses of an array are not the index
                    dims.setdefault(name, []).extend(_roots(index))
        found: set[Variable] = set()
        for item in public:
            if isinstance(item, str):
                arrays = ([by_name[item]] if item in by_name else []) + dims.get(item, [])
                if not arrays:
                    raise Refusal(f"public names {item!r}, which is not there. {self._nameable(by_name, dims)}")
            else:
                arrays = [array for array in self.names if same_array(array, item)]
                if not arrays:
                    raise Refusal(f"public holds an array that the model does not use as it is. {self._nameable(by_name, dims)}")
            if any(array in observed for array in arrays):
                raise Refusal("public names observed values, which are what is protected. Leave them out of public.")
            found.update(arrays)
        return found

    def _nameable(self, by_name: Mapping[str, Variable], dims: Mapping[str, object]) -> str:
        observed = {array for o in self.observed for array in _roots(o.value)}
        names = sorted({name for name, array in by_name.items() if array not in observed} | set(dims))
        return f"Write one of {', '.join(map(repr, names))}." if names else "This model has nothing to declare public."

    def taken_apart(self) -> tuple[Blank, dict[str, Leaves]]:
        leaves: dict[str, Leaves] = {}
        likelihoods = []
        for observed in self.observed:
            likelihood, inputs = self._likelihood(observed)
            likelihoods.append(likelihood)
            if likelihood.refusal is None:
                leaves[observed.name] = Leaves(observed.value, observed.missing, inputs)
        kept, dropped = self._survivors()
        coords, lengths = self._coords(kept)
        for dim in self.graph._coords:
            if dim not in coords:
                dropped[dim] = "a dim of records" if dim in self.record_dims else "a dim of nothing that is left"
        names = {variable.owner.op.name for variable in kept}
        initial = {name: value for name, value in self.initial.items() if name in names}
        stays = {self._told(array) for array in arrays_above(kept, through_unknowns=True)}
        stays |= {f"initial value of {name}" for name, value in initial.items() if any(True for _ in arrays_inside(value))}
        # A second way of looking, which knows nothing of structure: no record may be anywhere above what leaves.
        parameters = [parameter for one in likelihoods for parameter in one.parameters]
        problems = list(self._problems())
        if any(variable in self.private for variable in ancestors([*kept, *parameters])):
            problems.append("The records cannot be told apart from the model. Write it with fewer arrays in common.")
        result = Blank(
            tuple(likelihoods), tuple(problems), tuple(kept), tuple(self.model.named_vars), dropped, coords, lengths, initial,
            tuple(sorted(self.names[array] for array in self.public)), tuple(sorted(stays)),
        )  # fmt: skip
        return result, leaves

    def _told(self, array: Variable) -> str:
        shape = shape_of(array)
        long = ", as long as the records" if self.records & set(shape) else ""
        return f"{self.names.get(array) or 'an array'} of shape {shape}{long}"

    def _likelihood(self, observed: _Observed) -> tuple[Likelihood, tuple[tuple[Variable, int | None], ...]]:
        name, operation = observed.name, observed.random.owner.op
        distribution = str(getattr(operation, "_print_name", (type(operation).__name__,))[0])
        family = of_operation(operation)
        arrays = tuple((self.names[array], self._use(observed, array), array in self.public) for array in observed.arrays)
        column_dims = tuple(observed.dims[1:]) or (None,) * (observed.ndim - 1)
        told = Likelihood(name, distribution, family, column_dims=column_dims, arrays=arrays)
        try:
            if family is None:
                raise Unreduced(_unsupported(operation, distribution))
            self._check_leaves(observed)
            columns = observed.value.type.shape[1:] if observed.missing is None else observed.missing.type.shape[1:]
            if None in columns:
                columns = observed.random.type.shape[1:]
            if None in columns:
                raise Unreduced("the number of its columns is not fixed. Give the observed variable dims or a shape")
            reduction = Reduction(self.public, self.names.__getitem__)
            cores = operation.ndims_params
            for parameter, core in zip(observed.parameters, cores, strict=True):
                own = parameter.type.shape[: parameter.type.ndim - core][-len(columns) :] if columns else ()
                if any(length not in {None, 1, wanted} for length, wanted in zip(own, columns[-len(own) :])):
                    raise Unreduced("its values have other columns than its parameters. Give them the same shape")
            parameters = tuple(
                reduction.parameter(parameter, 0 if parameter.type.ndim - core == observed.ndim else None)
                for parameter, core in zip(observed.parameters, cores, strict=True)
            )
            levels = self._levels(parameters, cores)
        except Unreduced as reason:
            return replace(told, refusal=f"{name} cannot be released: {reason}."), ()
        except Exception:  # no record has been read: the graph alone has decided
            return replace(told, refusal=f"{name} cannot be released: its graph could not be read. {PLAINER}"), ()
        inputs = tuple(Placeholder(i.placeholder, i.axis, self._label(observed, i.expression)) for i in reduction.inputs)
        unknown = tuple(any(isinstance(v.owner.op, ModelFreeRV) for v in above([p]) if v.owner) for p in parameters)
        done = replace(
            told, parameters=parameters, core_ndims=tuple(cores), unknown=unknown, inputs=inputs, columns=tuple(columns), levels=levels
        )
        return done, tuple((i.expression, i.axis) for i in reduction.inputs)

    def _check_leaves(self, observed: _Observed) -> None:
        """What must hold of the arrays before the parameters are read."""
        if observed.ndim == 0:
            raise Unreduced("it is a single number, without an axis of records. Observe an array with one entry per record")
        roots = _roots(observed.value)
        if not roots:
            raise Unreduced("its values are computed in the graph. Observe the array itself, or a pm.Data")
        for variable in above(list(observed.parameters), through_unknowns=False):
            name = self._name_of_model_variable(variable) if variable.owner is not None else None
            if name in self.observed_names or name in self.imputed:
                raise Unreduced(f"it depends on {name}, which is observed and so private")
        for array in observed.arrays:
            name = self.names[array]
            if array in roots or any(array in _roots(other.value) for other in self.observed):
                raise Unreduced(f"it depends on {name}, which is observed and so private")
            if array in self.above_priors and array not in self.public:
                raise Unreduced(
                    f"the array {name} reaches a prior as well as this likelihood. If everyone may know it, write public=[{name!r}]"
                )
        if roots & self.above_priors:
            raise Unreduced("its observed values, or their shape, reach a prior. Write the prior without the data")

    @cached_property
    def above_priors(self) -> set[Variable]:
        priors = [v.owner.inputs[0] for v in self._of_kind(ModelFreeRV) if v.owner.op.name not in self.imputed]
        return set(arrays_above(priors, through_unknowns=True))

    @cached_property
    def observed_names(self) -> set[str]:
        return {observed.name for observed in self.observed}

    @cached_property
    def record_dims(self) -> set[str]:
        return {observed.dims[0] for observed in self.observed if observed.dims and observed.dims[0]}

    @cached_property
    def imputed(self) -> set[str]:
        """Names PyMC made up for the parts of an observed variable with missing values."""
        return {f"{o.name}{part}" for o in self.observed if o.joined for part in ("_observed", "_unobserved")}

    @cached_property
    def private(self) -> set[Variable]:
        """Every array of records: observed, or directly above a likelihood and not declared public."""
        found: set[Variable] = set()
        for observed in self.observed:
            found |= {array for array in observed.arrays if array not in self.public}
            found |= set(arrays_above([observed.value, *([observed.missing] if observed.missing is not None else [])]))
            # A likelihood that is no plain random variable shows no parameters: all above it counts.
            if not observed.parameters:
                found |= set(arrays_above(observed.random.owner.inputs)) - self.public
        return found

    @cached_property
    def originals(self) -> set[Variable]:
        """The user's own variables behind the private arrays: the graph holds copies of them."""
        return {self.model.named_vars[self.names[array]] for array in self.private if self.names.get(array) in self.model.named_vars}

    def _use(self, observed: _Observed, array: Variable) -> str:
        indexed = [i for i, _ in indexed_axes(list(observed.parameters))]
        return "index" if array in arrays_above(indexed) else "covariate"

    def _label(self, observed: _Observed, expression: Variable) -> str | None:
        """The dim whose labels name the cells, if this input is a plain index into it."""
        for index, dims in indexed_axes(list(observed.parameters)):
            if index is expression and len(dims) == 1 and expression.type.ndim == 1:
                (dim,) = dims
                return dim if self.graph._coords.get(dim) is not None else None
        return None

    def _levels(self, parameters: tuple[Variable, ...], cores: Iterable[int]) -> int:
        for parameter, core in zip(parameters, cores, strict=True):
            if core:
                [length] = constant_fold([parameter.shape[-1]], raise_not_constant=False)
                if isinstance(length, Variable):
                    raise Unreduced("the number of its levels is not fixed. Give its probabilities dims or a shape")
                if length < 2:
                    raise Unreduced("it has a single level, so its values are known beforehand. Leave it out of the model")
                return int(length)
        return 0

    def _problems(self) -> Iterable[str]:
        if not self.observed:
            yield "The model observes nothing, so there is nothing to release. Add an observed variable."
        if self.symbolic_initial:
            yield f"The initial value of {self.symbolic_initial[0]} is a graph. Write a number or an array of numbers instead."
        for variable in self._of_kind(ModelPotential):
            arrays = arrays_above([variable], through_unknowns=True)
            if any(array not in self.above_priors and array not in self.public for array in arrays) or self._rests_on_observed(variable):
                yield (
                    f"The Potential {variable.owner.op.name} touches an array that may hold records. Write the likelihood as an"
                    " observed variable of a supported family, or name the array in public if everyone may know it."
                )
        for variable in self._of_kind(ModelFreeRV):
            name = variable.owner.op.name
            if name not in self.imputed and self._rests_on_observed(variable):
                yield f"The prior of {name} depends on observed values. Write the prior without the data."
        for variable in self.variables:
            imputed = self._name_of_model_variable(variable) in self.imputed
            if not imputed and (reason := opaque(variable.owner.inputs[0])):
                yield f"{variable.owner.op.name} {reason}, which may hold records. Write it with PyTensor operations on named arrays."
        for variable in self._of_kind(ModelFreeRV):
            name, transform = variable.owner.op.name, variable.owner.op.transform
            if name not in self.imputed and any(self._of_records(thing) for thing in arrays_inside(transform)):
                yield f"The transform of {name} holds an array of records. Write a transform that does not depend on the data."
            if name not in self.imputed and self.record_dims & set(variable.owner.op.dims):
                yield f"{name} has the dim of the records. Give it a dim of its own."
        for name, value in self.initial.items():
            if any(self._of_records(thing) for thing in arrays_inside(value)):
                yield f"The initial value of {name} is an array as long as the records. Pass it to the sampler as initvals instead."
        for observed in self.observed:
            for ending in RESERVED:
                if f"{observed.name}{ending}" in {*self.model.named_vars, *self.model.coords}:
                    yield f"The name {observed.name}{ending} is needed for what is released. Give that variable or dim another name."

    def _of_records(self, thing: object) -> bool:
        """Whether an array or variable held by an object is one of records, or as long as they are: PyMC copies observed arrays."""
        if isinstance(thing, np.ndarray) and self.records & set(thing.shape):
            return True
        return rests_on(thing, self.private | self.originals)

    def _rests_on_observed(self, variable: Variable) -> bool:
        return any(
            v.owner is not None and (isinstance(v.owner.op, ModelObservedRV) or self._name_of_model_variable(v) in self.imputed)
            for v in above([variable.owner.inputs[0]])
        )

    @staticmethod
    def _name_of_model_variable(variable: Variable) -> str | None:
        return getattr(variable.owner.op, "name", None) if isinstance(variable.owner.op, ModelFreeRV | ModelObservedRV) else None

    def _survivors(self) -> tuple[list[Variable], dict[str, str]]:
        """What stays in the rewritten model, and what is dropped and why."""
        rows = {array for observed in self.observed for array in observed.arrays}
        open_arrays = (self.above_priors | (self.public - rows)) - self.private
        own = {dim for variable in self._of_kind(ModelFreeRV) for dim in variable.owner.op.dims}
        as_long = {dim for dim, length in self.graph._dim_lengths.items() if number(length) in self.records} - own
        kept, dropped = [], {}
        for variable in self.variables:
            operation = variable.owner.op
            if isinstance(operation, ModelObservedRV) or operation.name in self.imputed:
                continue
            if isinstance(operation, ModelFreeRV | ModelPotential):
                kept.append(variable)
                continue
            if operation.name in {o.name for o in self.observed}:
                continue
            closed = [array for array in arrays_above([variable], through_unknowns=True) if array not in open_arrays]
            if any(array not in self.public for array in closed):
                dropped[operation.name] = "rests on an array that is neither above a prior nor public"
            elif closed:
                dropped[operation.name] = "rests on a public array of the records, which the cells replace"
            elif self._rests_on_observed(variable):
                dropped[operation.name] = "rests on observed values"
            elif (self.record_dims | as_long) & set(operation.dims):
                dropped[operation.name] = "has one row per record"
            else:
                kept.append(variable)
        return kept, dropped

    def _coords(self, kept: list[Variable]) -> tuple[dict[str, tuple[object, ...] | None], dict[str, Variable]]:
        wanted = {dim for variable in kept for dim in variable.owner.op.dims}
        wanted |= {dim for observed in self.observed for dim in observed.dims[1:]}
        wanted -= self.record_dims
        coords = {dim: labels for dim, labels in self.graph._coords.items() if dim in wanted}
        return coords, {dim: self.graph._dim_lengths[dim] for dim in coords}


def _roots(value: Variable) -> set[Variable]:
    """The array behind an observed value, seen through casts and names; empty if it is computed in any other way."""
    while value.owner is not None:
        plain = isinstance(value.owner.op, ModelNamed) or (
            isinstance(value.owner.op, Elemwise) and type(value.owner.op.scalar_op).__name__ == "Cast"
        )
        if not plain:
            return set()
        value = value.owner.inputs[0]
    return {value} if isinstance(value, Constant | SharedVariable) else set()


def _without_mask(parameter: Variable, missing: Variable | None) -> Variable:
    """A parameter as it was before PyMC restricted it to the observed entries."""
    if missing is None or parameter.owner is None or not isinstance(parameter.owner.op, AdvancedSubtensor):
        return parameter
    inner, *indices = parameter.owner.inputs
    masks = [array for array in arrays_above(indices) if array.type.dtype == "bool"]
    masked = masks and all(mask.type.shape == missing.type.shape for mask in masks)
    return inner if masked else parameter


def _unsupported(operation: object, distribution: str) -> str:
    if isinstance(operation, MinibatchRandomVariable):
        return "it uses Minibatch or total_size, which promise no privacy. Observe all records without them"
    if not isinstance(operation, RandomVariable):
        return f"its likelihood is {distribution}, which has no sufficient statistics. Write it as one of the supported families"
    return f"its likelihood is {distribution}, which is not offered yet. The supported families are listed in the documentation"
