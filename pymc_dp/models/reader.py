"""A model's graph -> its ``ModelSpec``, and where its records are.

``read_model`` takes a model apart into a ``ModelSpec``, which has no record in it and decides everything that can be decided, and
the ``RecordPaths``, where the records are. Only what reads records asks for them. Types, shapes and operations are
read; no value is.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytensor.xtensor as px
from pymc.distributions.custom import CustomDistRV
from pymc.distributions.distribution import PartialObservedRV
from pymc.distributions.transforms import _default_transform
from pymc.model.fgraph import (
    ModelDeterministic,
    ModelFreeRV,
    ModelNamed,
    ModelObservedRV,
    ModelPotential,
    ModelVar,
    fgraph_from_model,
)
from pymc.model.transform.optimization import freeze_dims_and_data
from pymc.pytensorf import constant_fold
from pymc.variational.minibatch_rv import MinibatchRandomVariable
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.fg import Output
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.scalar.basic import ScalarInnerGraphOp
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_dp.families.family import name_of_operation, of_operation
from pymc_dp.models.latent_index import of_record, read_by_record
from pymc_dp.models.linear import LINEAR, LINKS, linear_mean
from pymc_dp.models.opaque import MOST_NUMBERS, hidden_in, loose_random_variable, opaque, unlisted
from pymc_dp.models.same_arrays import covers, crossed, data_of, number, part_of, rests_on, same_array, shape_of
from pymc_dp.models.spec import Likelihood, ModelSpec, Placeholder, RecordPath, RecordPaths
from pymc_dp.models.structure import (
    Input,
    Reduction,
    Unreduced,
    above,
    arrays_above,
    computed_within,
    indexed_axes,
    is_array,
    is_cast,
    is_wrapping,
    puts_together,
    same_memory,
    substitute,
)
from pymc_dp.models.tabulated import TABLE, Tree, tree_of
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.guard import boundary

RESERVED = ("_released", "_noise", "_cell", "_statistic", "_size", "_share", "_group", "_kind", "_shared", "_table", "_level")
"""Endings of the names that the rewritten model needs beside the user's."""
RESERVED_BEGINNINGS = ("_noise_", "_size_", "_shared_", "_column_")
"""What follows the observed variable's name in some more of them."""
MOST_WRITTEN = 60
"""So many single numbers may stand in the expression of one variable: a loop over records would write one for each."""
PLAINER = "Write its parameters with plain arithmetic and indexing."


def read_spec(
    model: pm.Model,
    public: Iterable[object] = (),
    records: Iterable[int] | None = None,
    *,
    aggregate: bool = False,
    sized: bool = True,
    rowwise: bool = False,
) -> ModelSpec:
    """The model without records; see ``read_model``."""
    return read_model(model, public, records, aggregate=aggregate, sized=sized, rowwise=rowwise)[0]


@boundary
def most_records(model: pm.Model) -> int | None:
    """The number of records, the largest where observed variables have several: read from shapes. None where there are none.

    It is for those alone to whom that number is public.
    """
    return max(_Anatomy(model, (), None, False, True, False, {})._lengths(), default=None)


def read_model(
    model: pm.Model,
    public: Iterable[object] = (),
    records: Iterable[int] | None = None,
    *,
    aggregate: bool = False,
    sized: bool = True,
    rowwise: bool = False,
    latents: Mapping[str, int | None] | None = None,
) -> tuple[ModelSpec, dict[str, RecordPaths]]:
    """Take a model apart into what may be known and where the records are.

    Parameters
    ----------
    model : pm.Model
        Left as it is.
    public : iterable
        Names of ``pm.Data``, names of dims, ``"<observed>:<k>"``, or the arrays themselves.
    records : iterable of int, optional
        Numbers of records, where the model is a dummy whose own numbers do not count.
    aggregate : bool
        Every row is a total: which rows there are is public, and each is kept by itself.
    sized : bool
        Whether the number of records is public; if not, nothing here depends on it.
    rowwise : bool
        What is asked of a likelihood is its density of one record, not its statistics.
    latents : mapping, optional
        Free variables that are taken as if they had been observed, as zeros: from the name to None where one entry of them belongs to each
        record, or to the number of levels where each record reads an entry by an index. Then it is what a record reads that is taken so,
        under the name that ``of_record`` gives it, and the variable stays.

    Raises
    ------
    Refusal
        When ``public`` names something that is not there. What cannot be released is said in the spec, not raised.
    """
    if model.parent is not None:
        raise Refusal("This model is a part of another one. Write model=..., naming the outer model.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _Anatomy(model, public, records, aggregate, sized, rowwise, dict(latents or {})).taken_apart()


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
    cores: tuple[int, ...] = ()
    tree: Tree | None = None
    arrays: list[Variable] = field(default_factory=list)

    @property
    def ndim(self) -> int:
        # The values that are there have one axis for all that are masked, and their own axes after it.
        return self.value.type.ndim if self.missing is None else self.missing.type.ndim + self.value.type.ndim - 1


class _Anatomy:
    """One reading of one model. Short-lived, never returned: it holds the records' arrays."""

    def __init__(
        self,
        model: pm.Model,
        public: Iterable[object],
        records: Iterable[int] | None,
        aggregate: bool,
        sized: bool,
        rowwise: bool,
        latents: dict[str, int | None],
    ) -> None:
        self.model = model
        self.aggregate, self.sized, self.rowwise, self.latents = aggregate, sized, rowwise, latents
        self.initial = {rv.name: value for rv, value in model.rvs_to_initial_values.items() if value is not None}
        self.symbolic_initial = [
            name for name, value in self.initial.items() if isinstance(value, Variable) and not isinstance(value, Constant)
        ]
        self.graph = self._graph()
        if rowwise:
            self._lower_priors()
        # In the user's order: the graph's own tells where values are missing.
        order = {name: k for k, name in enumerate(model.named_vars)}
        self.variables = sorted(self.graph.outputs, key=lambda variable: order.get(variable.owner.op.name, len(order)))
        self.observed = self._observed()
        self._close_observed()
        self._read_parameters()
        self.names = self._names()
        self.reads: list[tuple[Variable, int]] = []
        self.vouched: set[str] = set()
        self.private_dims: set[str] = set()
        self.public = self._resolve(public)
        self.records = set(self._lengths() if records is None else records) if sized else set()

    def _graph(self):
        # PyMC converts only models without initial values; they are put back in any case, and onto the rewritten model.
        saved = dict(self.model.rvs_to_initial_values)
        try:
            for rv in saved:
                self.model.rvs_to_initial_values[rv] = None
            frozen = freeze_dims_and_data(self.model, data=[])
        finally:
            self.model.rvs_to_initial_values.update(saved)
        graph = fgraph_from_model(frozen, inlined_views=True)[0]
        latents = [v for v in graph.outputs if isinstance(v.owner.op, ModelFreeRV) and v.owner.op.name in self.latents]
        for variable in sorted(latents, key=lambda v: self.latents[v.owner.op.name] is not None):
            random, operation = variable.owner.inputs[0], variable.owner.op
            if self.latents[operation.name] is not None:
                read_by_record(graph, variable, self.latents, self.sized)
                continue
            [shape] = constant_fold([random.shape], raise_not_constant=False)
            if isinstance(shape, Variable):
                raise Refusal(f"The shape of {operation.name} is not fixed. Give it dims or a shape.")
            zeros = pt.constant(np.zeros(shape, dtype=random.type.dtype))
            observed = ModelObservedRV(name=operation.name, dims=operation.dims)(random, zeros)
            graph.replace(variable, observed, import_missing=True)
        return graph

    def _lower_priors(self) -> None:
        """Put priors of PyTensor's own in place of those of ``pymc.dims``: how they vary is read of plain ones only."""
        for node in self.graph.toposort():
            variable = node.outputs[0]
            if not isinstance(node.op, ModelFreeRV) or not hasattr(variable.type, "dims"):
                continue
            random = self._lowered(variable.owner.inputs[0])
            for part in above([random]):  # PyTensor has no derivatives through named constants
                if part.owner is not None:
                    part.owner.inputs = [_unnamed(operand) for operand in part.owner.inputs]
            operation = ModelFreeRV(name=node.op.name, dims=node.op.dims, transform=_default_transform(random.owner.op, random))
            plain = operation(random, random.type(node.inputs[1].name))
            named = px.as_xtensor(plain, dims=variable.type.dims)
            for client, place in list(self.graph.clients[variable]):
                own = isinstance(client.op, Output)
                self.graph.change_node_input(client, place, plain if own else named, import_missing=True, check=False)

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
                and puts_together(joined, variable)
            ):
                mask = joined.owner.inputs[0].owner.inputs[-1]
                found.append(_Observed(base, random, value, joined.owner.op.dims, missing=mask, joined=True))
            else:
                found.append(_Observed(name, random, value, variable.owner.op.dims))
        order = {name: k for k, name in enumerate([*(rv.name for rv in self.model.observed_RVs), *self._latent_names()])}
        found.sort(key=lambda observed: order[f"{observed.name}_observed" if observed.joined else observed.name])
        return found

    def _latent_names(self) -> list[str]:
        return [name if levels is None else of_record(name) for name, levels in self.latents.items()]

    def _read_parameters(self) -> None:
        """The parameters of every observed variable, on arrays: other observed variables are arrays of records there."""
        self.stand_ins: dict[Variable, _Observed] = {}
        for observed in self.observed:
            whole = isinstance(observed.random.owner.op, PartialObservedRV)
            if whole:
                observed.random = observed.random.owner.inputs[0]
            if hasattr(observed.random.type, "dims"):
                observed.random = self._lowered(observed.random)
            operation = observed.random.owner.op
            observed.tree = tree_of(observed.random)
            parameters: Iterable[Variable] = ()
            if isinstance(operation, RandomVariable) or of_operation(operation) is not None:
                parameters, observed.cores = operation.dist_params(observed.random.owner), tuple(operation.ndims_params)
            elif observed.tree is not None:
                parameters, observed.cores = observed.tree.parameters, observed.tree.cores
            # PyMC restricts parameters where it makes the likelihood anew, and leaves them as they are where it cannot.
            observed.parameters = tuple(parameters) if whole else tuple(_without_mask(p, observed.missing) for p in parameters)
        known: dict[tuple[str, str], Variable] = {}
        for observed in self.observed:
            observed.parameters = self._with_parents(observed, known)
            observed.arrays = arrays_above(list(observed.parameters))

    def _with_parents(self, observed: _Observed, known: dict[tuple[str, str], Variable]) -> tuple[Variable, ...]:
        """Its parameters with a stand-in for every other observed variable, whether written as the variable or as its ``pm.Data``.

        The stand-ins hold no record: zeros of the same shape, without memory.
        """
        parents = {one.name: one for one in self.observed if one is not observed}
        own, replaced = _roots(observed.value), {}
        for variable in above(list(observed.parameters), through_unknowns=False):
            inner = variable.owner.inputs[0] if variable.owner is not None and is_wrapping(variable.owner.op) else variable
            is_observed = inner.owner is not None and isinstance(inner.owner.op, ModelObservedRV)
            parent = parents.get(inner.owner.op.name) if is_observed else None
            if parent is None and is_array(variable) and variable not in own:
                parent = next((one for one in parents.values() if variable in _roots(one.value)), None)
            if parent is None or not hasattr(variable.type, "broadcastable") or not _roots(parent.value):
                continue
            key = (parent.name, variable.type.dtype)
            if key not in known:
                [root] = _roots(parent.value)
                shape = shape_of(root) if parent.missing is None else (*shape_of(parent.missing), *shape_of(root)[1:])
                zeros = np.broadcast_to(np.zeros((), dtype=variable.type.dtype), shape)
                known[key] = pytensor.shared(zeros, name=parent.name, borrow=True)
                self.stand_ins[known[key]] = parent
            replaced[variable] = known[key]
        try:
            return tuple(substitute(p, replaced) for p in observed.parameters) if replaced else observed.parameters
        except Unreduced:  # what stands in the way is told when the parameters are reduced
            return observed.parameters

    def _lowered(self, random: Variable) -> Variable:
        """A random variable of ``pymc.dims`` as one of PyTensor's own, on the model's own variables."""
        leaves = [v for v in above([random], through_unknowns=False) if v.owner is not None and isinstance(v.owner.op, ModelVar)]
        leaves = [v for v in leaves if not isinstance(v.owner.op, ModelDeterministic)]
        copies = [leaf.type() for leaf in leaves]
        lowered = rewrite_graph(clone_replace(random, dict(zip(leaves, copies, strict=True))), include=("lower_xtensor",))
        back: dict[Variable, Variable] = dict(zip(copies, leaves, strict=True))
        for variable in above([lowered]):
            # Lengths of the unknowns' dims, which named arrays do not carry in their types.
            if variable.owner is not None and is_wrapping(variable.owner.op) and variable.owner.inputs[0] in back:
                leaf = back[variable.owner.inputs[0]]
                lengths = [number(self.graph._dim_lengths[dim]) if dim else None for dim in leaf.owner.op.dims]
                if isinstance(leaf.owner.op, ModelFreeRV) and None not in lengths:
                    back[variable] = pt.specify_shape(variable.owner.op(leaf), lengths)
        while is_wrapping(lowered.owner.op):
            lowered = lowered.owner.inputs[0]
        # The lowered graph is ours alone, so its nodes are rewired; cloning would clone the unknowns, too.
        for variable in [v for v in above([lowered], through_unknowns=True) if v not in back.values()]:
            if variable.owner is not None and variable not in leaves:
                variable.owner.inputs = [back.get(operand, operand) for operand in variable.owner.inputs]
        return lowered

    def _close_observed(self) -> None:
        """Cut observed variables off from their values for whatever depends on them, so that imputed ones look like any other."""
        for variable in self.variables:
            operation = variable.owner.op
            joined = any(observed.joined and observed.name == operation.name for observed in self.observed)
            if not joined and not isinstance(operation, ModelObservedRV):
                continue
            closed = ModelObservedRV(name=operation.name)(variable.type(), variable.type())
            for node, place in list(self.graph.clients[variable]):
                if not isinstance(node.op, Output):
                    self.graph.change_node_input(node, place, closed, import_missing=True)

    def _lengths(self) -> Iterator[int]:
        """Numbers of records, which are public: shapes only are read."""
        for observed in self.observed:
            for root in _roots(observed.value) if observed.missing is None else [observed.missing]:
                yield from shape_of(root)[:1]

    def _names(self) -> dict[Variable, str]:
        """What people call each array of data."""
        names = {v.owner.inputs[0]: v.owner.op.name for v in self._of_kind(ModelNamed)}
        names |= {stand_in: parent.name for stand_in, parent in self.stand_ins.items()}
        taken = {*self.model.named_vars, *self.model.coords}
        for observed in self.observed:
            count = 0
            for array in observed.arrays:
                if array in names:
                    continue
                while f"{observed.name}:{count}" in taken:
                    count += 1
                twin = next((other for other in names if same_memory(other, array, sized=self.sized)), None)
                if twin is None:
                    names[array] = f"{observed.name}:{count}"
                    count += 1
                else:
                    names[array] = names[twin]
        return names

    def _resolve(self, public: Iterable[object]) -> set[Variable]:
        """The arrays declared public."""
        if isinstance(public, str | np.ndarray) or not isinstance(public, Iterable):
            raise Refusal("public must be a list. Write for example public=['group'].")
        by_name: dict[str, list[Variable]] = {}
        for array, name in self.names.items():
            by_name.setdefault(name, []).append(array)
        observed = {array for o in self.observed for array in _roots(o.value)} | set(self.stand_ins)
        dims: dict[str, list[Variable]] = {}
        for one in self.observed:
            for index, names in indexed_axes(list(one.parameters)):
                for name in names:  # a dim opens plain indices only: other uses of an array are not the index
                    dims.setdefault(name, []).extend(_roots(index))
        found: set[Variable] = set()
        for item in public:
            if isinstance(item, str):
                arrays = by_name.get(item, []) + dims.get(item, [])
                if not arrays and item in self._with_functions():
                    self.vouched.add(item)
                    continue
                if not arrays:
                    raise Refusal(f"public names {item!r}, which is not there. {self._nameable(by_name, dims)}")
            else:
                arrays = [array for array in self.names if covers(item, array)]
                if not arrays:
                    raise Refusal(f"public holds an array that the model does not use as it is. {self._nameable(by_name, dims)}")
            if any(array in observed for array in arrays):
                raise Refusal("public names observed values, which are what is protected. Leave them out of public.")
            found.update(arrays)
        return found

    def _with_functions(self) -> set[str]:
        """Variables whose functions and numbers can be declared public: those that stay."""
        stay = (v.owner.op for v in self.variables if isinstance(v.owner.op, ModelFreeRV | ModelPotential))
        return {operation.name for operation in stay} - self.imputed

    def _nameable(self, by_name: Mapping[str, list[Variable]], dims: Mapping[str, object]) -> str:
        observed = {array for o in self.observed for array in _roots(o.value)} | set(self.stand_ins)
        names = sorted({name for name, arrays in by_name.items() if not observed & set(arrays)} | set(dims))
        return f"Write one of {', '.join(map(repr, names))}." if names else "This model has nothing to declare public."

    def taken_apart(self) -> tuple[ModelSpec, dict[str, RecordPaths]]:
        leaves: dict[str, RecordPaths] = {}
        likelihoods = []
        for observed in self.observed:
            likelihood, inputs = self._likelihood(observed)
            likelihoods.append(likelihood)
            if likelihood.refusal is None:
                leaves[observed.name] = RecordPaths(RecordPath(observed.value, 0, observed.missing), inputs)
        limits = {one.name: None if one.refusal else one.natural for one in likelihoods}
        likelihoods = [
            replace(one, inputs=tuple(replace(i, limits=limits[i.name]) if i.parent else i for i in one.inputs)) for one in likelihoods
        ]
        kept, dropped = self._survivors()
        coords, lengths = self._coords(kept)
        for dim in self.graph._coords:
            if dim not in coords:
                dropped[dim] = "a dim of records" if dim in self.record_dims else "a dim of nothing that is left"
        names = {variable.owner.op.name for variable in kept}
        initial = {name: value for name, value in self.initial.items() if name in names}
        stays = {self._told(array) for array in arrays_above(kept, through_unknowns=True) if array not in self.private}
        stays |= {f"initial value of {name}" for name, value in initial.items() if np.ndim(getattr(value, "data", value))}
        stays |= {f"what the functions of {name} hold" for name in self.vouched & names}
        written = [v for v in kept if isinstance(v.owner.op, ModelPotential) or _written(v) > MOST_NUMBERS]
        stays |= {f"single numbers in {v.owner.op.name}" for v in written if _written(v)}
        # A second way of looking, which knows nothing of structure: no record may be anywhere above what leaves.
        parameters = [parameter for one in likelihoods for parameter in one.parameters]
        problems = list(self._problems())
        if any(variable in self.private for variable in ancestors([*kept, *parameters])):
            problems.append("The records cannot be told apart from the model. Write it with fewer arrays in common.")
        if not problems and (reason := self._unlisted(kept, likelihoods, initial)):
            problems.append(f"The model holds {reason}, which may be records. Write it with PyTensor operations on named arrays.")
        order = tuple(name for name in self.model.named_vars if name not in self.imputed)
        result = ModelSpec(
            tuple(likelihoods), tuple(problems), tuple(kept), order, dropped, coords, lengths, initial,
            tuple(sorted({*(self.names[array] for array in self.public), *self.vouched})), tuple(sorted(stays)), self._records(),
        )  # fmt: skip
        return result, leaves

    def _unlisted(self, kept: list[Variable], likelihoods: list[Likelihood], initial: Mapping[str, object]) -> str | None:
        """What would be in a pickle of the private model, but is neither among the arrays that people are told of nor in the graph."""
        linear = [one.linear for one in likelihoods if one.linear is not None]
        graphs = [
            *kept,
            *(p for one in likelihoods for p in one.parameters),
            *(v for one in linear for v in (*one.features, one.coefficients)),
        ]
        # Shapes and other settings stand in the graph as constants; the rules of the graph have seen them.
        seen = [v.data for v in ancestors(graphs) if isinstance(v, Constant) and isinstance(v.data, np.ndarray)]
        within = [output for v in above(graphs) if v.owner is not None for output in computed_within(v.owner.op)]
        inner = [v.data for v in ancestors(within) if isinstance(v, Constant) and isinstance(v.data, np.ndarray)]
        open_data = [*seen, *inner, *(data_of(array) for array in self.open_arrays)]
        free = [v.owner.op for v in kept if isinstance(v.owner.op, ModelFreeRV)]
        declared = [operation.transform for operation in free if operation.name in self.vouched and operation.transform is not None]

        def told(thing: object) -> bool:
            return not getattr(thing, "size", 1) or any(part_of(thing, whole) for whole in open_data)

        return unlisted(graphs, told, declared) or unlisted(
            [value for value in initial.values() if not isinstance(value, np.ndarray)], told
        )

    def _told(self, array: Variable) -> str:
        if not self.sized:  # a length may be that of the records
            return self.names.get(array) or "an array"
        shape = shape_of(array)
        long = ", as long as the records" if self.records & set(shape) else ""
        return f"{self.names.get(array) or 'an array'} of shape {shape}{long}"

    def _likelihood(self, observed: _Observed) -> tuple[Likelihood, tuple[RecordPath, ...]]:
        name, operation = observed.name, observed.random.owner.op
        distribution = name_of_operation(operation)
        family = of_operation(operation)
        support = family.NDIM if family is not None else operation.ndim_supp if isinstance(operation, RandomVariable) else 0
        arrays = tuple((self.names[array], self._use(observed, array), array in self.public) for array in observed.arrays)
        column_dims = tuple(observed.dims[1 : observed.ndim - support]) or (None,) * (observed.ndim - 1 - support)
        again = _made_again(observed.tree, operation)
        told = Likelihood(name, distribution, family, column_dims=column_dims, arrays=arrays, aggregate=self.aggregate, again=again)
        try:
            if family is None and observed.tree is not None and observed.parameters:
                family = TABLE
                told = replace(told, family=TABLE)
            make = observed.tree.make if family is TABLE and observed.tree else None
            if self.rowwise:
                make = _density(observed, operation, distribution)
            elif family is None and distribution not in LINEAR:
                raise Unreduced(_unsupported(operation, distribution))
            self._check_leaves(observed)
            lengths = self._columns(observed)
            reduction = Reduction(self.public, lambda array: self.names.get(array, "inside an operation"), sized=self.sized)
            cores = observed.cores
            depth = observed.ndim - support
            axes = [
                0 if p.type.ndim - core == depth and not self.aggregate else None
                for p, core in zip(observed.parameters, cores, strict=True)
            ]
            parameters = tuple(reduction.parameter(parameter, axis) for parameter, axis in zip(observed.parameters, axes, strict=True))
            levels = lengths[-1] if support else 0 if family is TABLE else self._levels(parameters, cores)
            columns = tuple(lengths[: len(lengths) - support])
            for parameter, core in zip(observed.parameters, cores, strict=True):
                own = parameter.type.shape[: parameter.type.ndim - core][-len(columns) :] if columns else ()
                if any(length not in {None, 1, wanted} for length, wanted in zip(own, columns[-len(own) :])):
                    raise Unreduced("its values have other columns than its parameters. Give them the same shape")
            self._check_rows(observed, reduction.inputs)
            self._check_axes(reduction.inputs)
            self._note_dims(reduction.inputs)
            inputs = tuple(self._input(observed, given) for given in reduction.inputs)
            if distribution in LINEAR or distribution in LINKS:
                outer = _outside_indices(parameters[0])
                inputs = tuple(replace(i, inner=i.private and i.whole and not i.index and i.variable not in outer) for i in inputs)
            direct = {v for parameter in parameters for v in _outside_indices(parameter)}
            for given in inputs:
                if given.private and given.index and not given.whole and given.variable in direct:
                    raise Unreduced(f"the private {given.name} holds real numbers, and is an index as well. Give the index as integers")
            linear, why_not = linear_mean(distribution, parameters, inputs)
            if family is None and linear is None and not self.rowwise:
                raise Unreduced(str(why_not))
            unknown = tuple(any(isinstance(v.owner.op, ModelFreeRV) for v in above([p]) if v.owner) for p in parameters)
            known = tuple(None if is_unknown else _number(p) for p, is_unknown in zip(parameters, unknown, strict=True))
            for place, called in family.KNOWN if family is not None and not self.rowwise else ():
                if known[place] is None and observed.tree is not None:
                    family, make = TABLE, observed.tree.make
                    told = replace(told, family=TABLE)
                    break
                if known[place] is None:
                    raise Unreduced(
                        f"its parameter {called} is not a plain number, and its statistics rest on it. Write a number for {called}"
                    )
            for place, called in family.FIXED if family is not None and not self.rowwise else ():
                if unknown[place]:
                    raise Unreduced(f"its parameter {called} depends on an unknown. Write it without one")
        except Unreduced as reason:
            return replace(told, refusal=f"{name} cannot be released: {reason}."), ()
        except Exception:  # no record has been read: the graph alone has decided
            return replace(told, refusal=f"{name} cannot be released: its graph could not be read. {PLAINER}"), ()
        done = replace(
            told, parameters=parameters, core_ndims=tuple(cores), unknown=unknown, known=known, inputs=inputs, columns=columns,
            levels=levels, linear=linear, not_linear=why_not, make=make,
        )  # fmt: skip
        return done, tuple(self._leaf(given) for given in reduction.inputs)

    def _leaf(self, given: Input) -> RecordPath:
        parent = self.stand_ins.get(given.expression)
        return RecordPath(given.expression, given.axis) if parent is None else RecordPath(parent.value, given.axis, parent.missing)

    def _columns(self, observed: _Observed) -> tuple[int, ...]:
        """Lengths of the trailing axes of the values."""
        lengths = (
            observed.value.type.shape[1:]
            if observed.missing is None
            else (*observed.missing.type.shape, *observed.value.type.shape[1:])[1:]
        )
        if None in lengths:
            lengths = observed.random.type.shape[1:]
        if None in lengths:
            for root in _roots(observed.value):
                lengths = shape_of(root)[1:]
        if None in lengths:
            raise Unreduced("the number of its columns is not fixed. Give the observed variable dims or a shape")
        if 0 in lengths:
            raise Unreduced("it has no columns. Give every record a value")
        return tuple(lengths)

    def _check_rows(self, observed: _Observed, inputs: Iterable[Input]) -> None:
        """A private array that were shorter would be broadcast, and one entry of it would move many records.

        Where the number of records is private this is not looked at: ``release`` makes every array as long as the observed one.
        """
        if not self.sized:
            return
        roots = [observed.missing] if observed.missing is not None else list(_roots(observed.value))
        records = {shape_of(root)[:1] for root in roots if root is not None}
        for given in inputs:
            if given.private and given.axis is not None and {shape_of(given.expression)[given.axis : given.axis + 1]} != records:
                name = self.names.get(given.expression, "an array")
                raise Unreduced(f"the private {name} does not have one row per record. Give it as many rows as there are observed values")

    def _check_axes(self, inputs: Iterable[Input]) -> None:
        """Refuse a private array that is read along another axis than its records: one record would move many.

        Records lie along the first axis of an observed variable, and of a private array. A private array may have them along its second
        axis where the model has one unknown number for every entry of the first, which therefore holds features.
        """
        for given in inputs:
            if not given.private or given.axis is None:
                continue
            name, parent = self.names.get(given.expression, "an array"), self.stand_ins.get(given.expression)
            if given.axis and parent is not None:
                raise Unreduced(
                    f"it reads {name} along its axis {given.axis}{self._called(parent.dims, given.axis)}, but the records of an observed"
                    f" variable lie along its first axis{self._called(parent.dims, 0)}, so one record of {name} would move many of these."
                    f" Let what is said of a record rest on {name} of the same record only"
                )
            if given.axis and not given.features:
                dims = self.dims_of_array(given.expression)
                raise Unreduced(
                    f"it reads the private {name} along its axis {given.axis}{self._called(dims, given.axis)}, but the records of a"
                    f" private array lie along its first axis{self._called(dims, 0)}. If they lie along axis {given.axis}, transpose it"
                    " where it is made, so that they come first"
                )
            self.reads.append((given.expression, given.axis))

    @staticmethod
    def _called(dims: Sequence[str | None], axis: int) -> str:
        return f" ({dims[axis]!r})" if len(dims) > axis and dims[axis] else ""

    def dims_of_array(self, array: Variable) -> tuple[str | None, ...]:
        """The names of the axes of an array of data, where it has any."""
        return next((tuple(v.owner.op.dims) for v in self._of_kind(ModelNamed) if v.owner.inputs[0] is array), ())

    def _records(self) -> str:
        """What a record is: along which axis of which array records lie."""
        lying: dict[tuple[int, str], list[str]] = {}
        for observed in self.observed:
            lying.setdefault((0, self._called(observed.dims, 0)), []).append(observed.name)
        for array, axis in self.reads:
            name, dims = self.names.get(array, "an array"), self.dims_of_array(array)
            known = [name for names in lying.values() for name in names]
            if array not in self.stand_ins and name not in known:
                lying.setdefault((axis, self._called(dims, axis)), []).append(name)
        told = [f"axis {axis}{called} of {', '.join(names)}" for (axis, called), names in lying.items()]
        return f"one index along {'; '.join(told)}: all that it says there" if told else ""

    def _read_along_two_axes(self) -> Iterable[str]:
        """Private arrays whose records lie along one axis here and along another there, themselves or as views of the same memory."""
        reads = [*self.reads, *((root, 0) for observed in self.observed for root in _roots(observed.value))]
        for k, (first, axis) in enumerate(reads):
            for second, other in reads[:k]:
                same = first is second and axis == other
                if not same and (first is second or crossed(first, axis, second, other)):
                    names = dict.fromkeys(self.names.get(array) or self._observed_as(array) for array in (second, first))
                    yield (
                        f"{' and '.join(names)} {'is' if len(names) == 1 else 'share memory, which is'} read along two axes, so one record"
                        " would move many. Read it along the axis of its records only, in all likelihoods."
                    )

    def _observed_as(self, array: Variable) -> str:
        return next((observed.name for observed in self.observed if array in _roots(observed.value)), "an array")

    def _note_dims(self, inputs: Iterable[Input]) -> None:
        """The dims that private arrays have along their records."""
        for variable in self._of_kind(ModelNamed):
            for given in inputs:
                if given.private and given.axis is not None and variable.owner.inputs[0] is given.expression:
                    dims = variable.owner.op.dims
                    self.private_dims |= {dims[given.axis]} if len(dims) > given.axis and dims[given.axis] else set()

    def _input(self, observed: _Observed, given: Input) -> Placeholder:
        roots = arrays_above([given.expression])
        name = self.names[roots[0]] if roots else ""
        levels = min(given.lengths) if given.private and given.lengths else None
        index = given.index and (not given.private or levels is not None)
        label = self._label(observed, given.expression)
        parent = given.expression in self.stand_ins
        wraps = len(given.lengths) == 1 and not parent
        plain = bool(_roots(given.expression))
        return Placeholder(given.placeholder, given.axis, name, label, given.private, index, levels, wraps, parent=parent, plain=plain)

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
            if array in roots:
                raise Unreduced(f"it depends on {name}, which is observed and so private")
            if array not in self.public and self._reaches_prior(array):
                raise Unreduced(
                    f"the array {name} reaches a prior as well as this likelihood. If everyone may know it, write public=[{name!r}]"
                )
        if roots & self.above_priors:
            raise Unreduced("its observed values, or their shape, reach a prior. Write the prior without the data")

    def _reaches_prior(self, array: Variable) -> bool:
        """Whether an array stands above a prior, itself or as a view of the same memory."""
        return array in self.above_priors or any(same_array(other, data_of(array)) for other in self.above_priors)

    @cached_property
    def above_priors(self) -> set[Variable]:
        priors = [v.owner.inputs[0] for v in self._of_kind(ModelFreeRV) if v.owner.op.name not in self.imputed]
        return set(arrays_above(priors, through_unknowns=True))

    @cached_property
    def observed_names(self) -> set[str]:
        return {observed.name for observed in self.observed}

    @cached_property
    def record_dims(self) -> set[str]:
        if self.aggregate:
            return set()
        return self.private_dims | {observed.dims[0] for observed in self.observed if observed.dims and observed.dims[0]}

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
    def open_arrays(self) -> set[Variable]:
        """The arrays that may stay: above a prior, or public and of no record; ``inspect`` lists those that do."""
        rows = set() if self.aggregate else {array for observed in self.observed for array in observed.arrays}
        return (self.above_priors | (self.public - rows)) - self.private

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
        yield from self._hidden()
        if not self.sized:
            for variable in [*self._of_kind(ModelFreeRV), *self._of_kind(ModelPotential)]:
                if self._rests_on_length([variable]):
                    yield f"{variable.owner.op.name} rests on the number of records, which is private. Write it without"
            for observed in self.observed:
                if self._rests_on_length(observed.parameters):
                    yield f"The likelihood of {observed.name} rests on the number of records, which is private. Write it without"
        yield from self._read_along_two_axes()
        if circle := self._circle():
            yield f"{' and '.join(circle)} depend on each other in a circle, so there is no probability of a record. Leave one arrow out."
        for observed in self.observed:
            for name in sorted({*self.model.named_vars, *self.model.coords} - self.imputed):
                ending = name.removeprefix(observed.name)
                if ending != name and (ending in RESERVED or ending.startswith(RESERVED_BEGINNINGS)):
                    yield f"The name {name} is needed for what is released. Give that variable or dim another name."

    def _hidden(self) -> Iterable[str]:
        """What the model holds beside its arrays, and is not understood."""
        named = list(self._by_users_names())
        if name := loose_random_variable(named):
            yield (
                f"{name} rests on a random variable that is no part of the model, such as one that .dist() makes in an expression. Give it"
                " a name, or write the number that it stands for."
            )
        for name, variable in named:
            operation = variable.owner.op
            if reason := opaque(variable.owner.inputs[0], self._is_told(name)):
                yield (
                    f"{name} {reason}, which may hold records. Write it with PyTensor operations on named arrays, pass numbers as"
                    f" parameters of its distribution, or, if everyone may know all that its functions hold, write public=[{name!r}]."
                )
            if isinstance(operation, ModelFreeRV) and (reason := hidden_in(operation.transform, self._is_told(name))):
                yield (
                    f"The transform of {name} holds {reason}, which may be records. Write a transform that holds up to {MOST_NUMBERS} plain"
                    f" numbers, or, if everyone may know what it holds, public=[{name!r}]."
                )
            if name not in self.vouched and _written(variable) > MOST_WRITTEN:
                yield (
                    f"Many single numbers stand in {name}, as a loop over records would write them. Write them as an array, or, if everyone"
                    f" may know them, public=[{name!r}]."
                )
            if isinstance(operation, ModelFreeRV) and self.record_dims & set(operation.dims):
                yield f"{name} has the dim of the records. Give it a dim of its own."
        single = [v for name, v in named if isinstance(v.owner.op, ModelPotential) and name not in self.vouched]
        if sum(map(_written, single)) > MOST_WRITTEN >= max(map(_written, single), default=0):
            yield (
                "Many single numbers stand in the Potentials together, as a loop over records would write them. Write them as an array, or,"
                " if everyone may know them, name the Potentials in public."
            )
        for variable in self._of_kind(ModelNamed):
            array = variable.owner.inputs[0]
            along = self.record_dims & set(variable.owner.op.dims)
            if along and array in self.above_priors and not (self.sized and array in self.public):
                yield (
                    f"{variable.owner.op.name} has the dim of the records and stands above a prior, with which it would be published. Write"
                    " the prior without it" + (f", or public=[{variable.owner.op.name!r}] if everyone may know it." if self.sized else ".")
                )
        for name, value in self.initial.items():
            plain = isinstance(value, np.ndarray) and type(value) is np.ndarray and value.dtype.kind in "biuf"
            if isinstance(value, Constant):
                value, plain = value.data, True
            if (plain and self._of_records(value)) or (not plain and hidden_in(value, lambda thing: False)):
                yield f"The initial value of {name} may hold records. Write a number or a short array, or pass it to the sampler."

    def _by_users_names(self) -> Iterator[tuple[str, Variable]]:
        """The model's variables by the names that the user gave them: those that PyMC makes for missing values are one."""
        parts = {f"{observed.name}_observed": observed.name for observed in self.observed if observed.joined}
        others = {f"{name}_unobserved" for name in parts.values()} | set(parts.values())
        for variable in self.variables:
            name = variable.owner.op.name
            if name not in others:
                yield parts.get(name, name), variable

    def _is_told(self, name: str) -> Callable[[object], bool] | None:
        """Whether people are told of an array held beside the graph, and of all arrays above a variable held there. None where the user
        declared public whatever this variable holds.
        """
        if name in self.vouched:
            return None

        def told(thing: object) -> bool:
            arrays = map(data_of, arrays_above([thing], through_unknowns=True)) if isinstance(thing, Variable) else [thing]
            return all(any(part_of(array, data_of(whole)) for whole in self.open_arrays) for array in arrays)

        return told

    def _rests_on_length(self, variables: Iterable[Variable]) -> bool:
        """Whether any is computed from the length of a dim of records."""
        lengths = {self.graph._dim_lengths[dim] for dim in self.record_dims if dim in self.graph._dim_lengths}
        return any(variable in lengths for variable in ancestors(list(variables)))

    def _circle(self) -> list[str]:
        """Observed variables that are each above themselves."""
        parents = {o.name: {self.stand_ins[array].name for array in o.arrays if array in self.stand_ins} for o in self.observed}
        left = set(parents)
        while leaves := {name for name in left if not parents[name] & left}:
            left -= leaves
        return [name for name in parents if name in left and any(name in parents[other] for other in left)]

    def _of_records(self, thing: object) -> bool:
        """Whether an array or variable held by an object is one of records, or as long as they are: PyMC copies observed arrays."""
        if isinstance(thing, np.ndarray) and (not self.sized or self.records & set(thing.shape)) and not self.aggregate:
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
        open_arrays = self.open_arrays
        own = {dim for variable in self._of_kind(ModelFreeRV) for dim in variable.owner.op.dims}
        as_long = {dim for dim, length in self.graph._dim_lengths.items() if number(length) in self.records and not self.aggregate} - own
        kept, dropped = [], {}
        for variable in self.variables:
            operation = variable.owner.op
            if isinstance(operation, ModelObservedRV) or operation.name in self.imputed:
                continue
            if isinstance(operation, ModelFreeRV | ModelPotential):
                kept.append(variable)
                continue
            if operation.name in {o.name for o in self.observed} | {v.owner.op.name for v in kept}:
                continue  # PyMC gives two names of one variable the same name
            closed = [array for array in arrays_above([variable], through_unknowns=True) if array not in open_arrays]
            if self._rests_on_observed(variable):
                dropped[operation.name] = "rests on observed values"
            elif not self.sized and self._rests_on_length([variable]):
                dropped[operation.name] = "rests on the number of records"
            elif any(array not in self.public for array in closed):
                dropped[operation.name] = "rests on an array that is neither above a prior nor public"
            elif closed:
                dropped[operation.name] = "rests on a public array of the records, which the cells replace"
            elif (self.record_dims | as_long) & set(operation.dims):
                dropped[operation.name] = "has one row per record"
            elif not self.sized and not (len(operation.dims) == variable.type.ndim and set(operation.dims) <= own):
                dropped[operation.name] = "might have a length that depends on the number of records"
            else:
                kept.append(variable)
        return kept, dropped

    def _coords(self, kept: list[Variable]) -> tuple[dict[str, tuple[object, ...] | None], dict[str, Variable]]:
        wanted = {dim for variable in kept for dim in variable.owner.op.dims}
        wanted |= {dim for observed in self.observed for dim in observed.dims[1:]}
        wanted -= self.record_dims
        coords = {dim: labels for dim, labels in self.graph._coords.items() if dim in wanted}
        return coords, {dim: self.graph._dim_lengths[dim] for dim in coords}


def _unnamed(variable: Variable) -> Variable:
    """A constant without names of dims, where a named one was turned into one."""
    wrapped = variable.owner is not None and is_wrapping(variable.owner.op) and isinstance(variable.owner.inputs[0], Constant)
    return pt.constant(variable.owner.inputs[0].data) if wrapped else variable


def _written(variable: Variable) -> int:
    """How many single numbers stand in the expression of a variable of the model, and in operations that were put together by hand."""
    expression = list(above([variable.owner.inputs[0]], through_unknowns=False))
    scalars = {getattr(part.owner.op, "scalar_op", None) for part in expression if part.owner is not None}
    within = [constant for scalar in scalars if isinstance(scalar, ScalarInnerGraphOp) for constant in ancestors(scalar.fgraph.outputs)]
    return sum(isinstance(part, Constant) and getattr(part.type, "ndim", None) in (None, 0) for part in [*expression, *within])


def _outside_indices(parameter: Variable) -> set[Variable]:
    """What a parameter is computed from otherwise than through an index."""
    seen: set[Variable] = set()
    stack = [parameter]
    while stack:
        variable = stack.pop()
        if variable in seen:
            continue
        seen.add(variable)
        if variable.owner is not None and not isinstance(variable.owner.op, ModelFreeRV):
            gathers = isinstance(variable.owner.op, AdvancedSubtensor)
            stack.extend(variable.owner.inputs[:1] if gathers else variable.owner.inputs)
    return seen


def _number(parameter: Variable) -> float | None:
    """The value of a parameter that is a plain number in the model, the same for all records."""
    if arrays_above([parameter]) or any(v.owner is None and not isinstance(v, Constant) for v in above([parameter])):
        return None
    [value] = constant_fold([parameter], raise_not_constant=False)
    if isinstance(value, Variable):
        return None
    numbers = np.unique(np.asarray(value, dtype=float))
    return float(numbers[0]) if len(numbers) == 1 and np.isfinite(numbers[0]) else None


def _roots(value: Variable) -> set[Variable]:
    """The array behind an observed value, seen through casts and names; empty if it is computed in any other way."""
    while value.owner is not None:
        if not is_cast(value):
            return set()
        value = value.owner.inputs[0]
    return {value} if isinstance(value, Constant | SharedVariable) else set()


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
        first = all(isinstance(entry, int) and _number(firsts[entry]) == 0 for entry in entries)
        shared = all(inner.type.broadcastable[: len(entries)])
        return inner if first and shared and len(entries) == missing.type.ndim else parameter
    if not isinstance(parameter.owner.op, AdvancedSubtensor):
        return parameter
    inner, *indices = parameter.owner.inputs
    masks = [array for array in arrays_above(indices) if array.type.dtype == "bool"]
    # Of a multivariate likelihood whole values are missing, so its mask has fewer axes.
    masked = masks and all(mask.type.shape == missing.type.shape[: mask.type.ndim] for mask in masks)
    return inner if masked else parameter


def _made_again(tree: Tree | None, operation: object) -> Callable[..., Variable] | None:
    """The distribution of values from their parameters; None where it cannot be made from them alone."""
    if tree is not None:
        return tree.make
    if not isinstance(operation, RandomVariable) or isinstance(operation, CustomDistRV | MinibatchRandomVariable):
        return None
    return lambda *given: operation(*given)


def _density(observed: _Observed, operation: object, distribution: str) -> Callable[..., Variable]:
    """The distribution of a record again, from its parameters."""
    if observed.tree is not None:
        return observed.tree.make
    if isinstance(operation, CustomDistRV):
        raise Unreduced("its likelihood is a CustomDist, whose density may mix records. Write it with one of PyMC's own distributions")
    if not isinstance(operation, RandomVariable) or isinstance(operation, MinibatchRandomVariable):
        raise Unreduced(_unsupported(operation, distribution))
    if operation.ndim_supp:
        raise Unreduced(f"its likelihood is {distribution}, whose values are vectors. Observe numbers")
    return lambda *given: operation(*given)


def _unsupported(operation: object, distribution: str) -> str:
    if isinstance(operation, MinibatchRandomVariable):
        return "it uses Minibatch or total_size, which promise no privacy. Observe all records without them"
    if not isinstance(operation, RandomVariable):
        return f"its likelihood is {distribution}, which has no sufficient statistics. Write it as one of the supported families"
    return (
        f"its likelihood is {distribution}, of which a release is not offered. The supported families are listed in the documentation"
        + ("" if isinstance(operation, CustomDistRV) else "; or draw from the posterior itself: mechanism=pymc_dp.PosteriorSample()")
    )
