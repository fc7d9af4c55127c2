"""How a likelihood's parameter depends on the record, found in the PyTensor graph. Families stand before, the blank after.

A parameter is read from its output backwards, following the axis of the records through every operation that treats rows one
by one. What it rests on in the end are expressions of data alone; each is replaced by a placeholder, so that the result has
no data in it and can be evaluated on any rows, for example one row per cell. No value is ever looked at, and no spelling is
matched: an operation that is not known to treat rows one by one is refused.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import pytensor.tensor as pt
from pymc.model.fgraph import ModelDeterministic, ModelFreeRV, ModelNamed, ModelObservedRV, ModelVar
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.op import HasInnerGraph
from pytensor.tensor.basic import Alloc, Join
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.special import LogSoftmax, Softmax
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

FULL = slice(None, None, None)


class Unreduced(Exception):
    """This parameter cannot be reduced to cells; the message says why and what to write instead."""


def is_array(variable: Variable) -> bool:
    """Whether a variable is an array of data: a constant with at least one axis, or a ``pm.Data`` even without."""
    if isinstance(variable, SharedVariable):
        return not isinstance(variable.type, RandomType)
    return isinstance(variable, Constant) and getattr(variable.type, "ndim", 0) > 0


def inside(operation: object) -> list[Variable]:
    """What an operation computes within itself, where constants can be hidden."""
    core = getattr(operation, "core_op", operation)
    return list(core.fgraph.outputs) if isinstance(core, HasInnerGraph) else []


def parents(variable: Variable) -> list[Variable]:
    """What a variable is computed from, generators and constant shapes left out."""
    if variable.owner is None:
        return []
    operation, inputs = variable.owner.op, variable.owner.inputs
    if isinstance(operation, ModelFreeRV):
        return inputs[:1]
    shape = inputs[1] if isinstance(operation, Reshape | RandomVariable) and isinstance(inputs[1], Constant) else None
    return [*(i for i in inputs if i is not shape and not isinstance(i.type, RandomType)), *inside(operation)]


def above(variables: list[Variable], *, through_unknowns: bool = True) -> Iterator[Variable]:
    """Every variable these are computed from, themselves included, depth first in order of appearance.

    With ``through_unknowns=False`` the walk stops at the model's random variables.
    """
    stack, seen = list(reversed(variables)), set()
    while stack:
        variable = stack.pop()
        if variable in seen:
            continue
        seen.add(variable)
        yield variable
        if through_unknowns or not is_unknown(variable):
            stack.extend(reversed(parents(variable)))


def is_unknown(variable: Variable) -> bool:
    """Whether a variable is one of the model's random variables."""
    return variable.owner is not None and isinstance(variable.owner.op, ModelFreeRV | ModelObservedRV | RandomVariable)


def arrays_above(variables: list[Variable], *, through_unknowns: bool = False) -> list[Variable]:
    """The arrays of data these are computed from, in order of appearance."""
    return [variable for variable in above(variables, through_unknowns=through_unknowns) if is_array(variable)]


def indexed_axes(variables: list[Variable]) -> Iterator[tuple[Variable, set[str]]]:
    """Every array index above these variables, with the names of the dims it indexes into."""
    for variable in above(variables, through_unknowns=False):
        if variable.owner is not None and isinstance(variable.owner.op, AdvancedSubtensor):
            table, *indices = variable.owner.inputs
            for axis, entry in enumerate(variable.owner.op.idx_list):
                if isinstance(entry, int) and indices[entry].type.ndim:
                    yield indices[entry], dims_of(table, axis)


def dims_of(variable: Variable, axis: int) -> set[str]:
    """Names of the dims that an axis of a variable is known by."""
    if variable.owner is None or axis < 0 or variable.type.broadcastable[axis]:
        return set()
    operation, inputs = variable.owner.op, variable.owner.inputs
    if isinstance(operation, ModelVar) and operation.dims:
        return {operation.dims[axis]} if operation.dims[axis] else set()
    if isinstance(operation, ModelVar | SpecifyShape):
        return dims_of(inputs[0], axis)
    if isinstance(operation, Elemwise):
        return set().union(*(dims_of(operand, axis) for operand in inputs))
    if isinstance(operation, DimShuffle) and operation.new_order[axis] != "x":
        return dims_of(inputs[0], operation.new_order[axis])
    return set()


@dataclass(frozen=True)
class Input:
    """An expression of public data that a parameter rests on.

    Attributes
    ----------
    expression : Variable
        The data, as it stands in the graph.
    axis : int or None
        Its axis of records, or None for a table that every record shares.
    placeholder : Variable
        What stands for it in the reduced parameter; along ``axis`` of any length.
    index : bool
        Whether it is used as an index.
    """

    expression: Variable
    axis: int | None
    placeholder: Variable
    index: bool


class Reduction:
    """The parameters of one likelihood, rewritten on placeholders, and the inputs they stand for.

    Parameters
    ----------
    public : collection of Variable
        The arrays that may be used openly.
    name_of : callable
        What people call an array.
    """

    def __init__(self, public: Collection[Variable], name_of: Callable[[Variable], str]) -> None:
        self.inputs: list[Input] = []
        self._public = public
        self._name_of = name_of
        self._arrays: dict[Variable, list[Variable]] = {}
        self._done: dict[tuple[Variable, int | None], Variable] = {}

    def parameter(self, variable: Variable, axis: int | None) -> Variable:
        """The same parameter without data. ``axis`` is its axis of records, None if it has none.

        Raises
        ------
        Unreduced
        """
        if axis is None or self._same_for_all(variable, axis):
            return self._whole(variable)
        return self._rows(variable, axis)

    def _arrays_above(self, variable: Variable) -> list[Variable]:
        if variable not in self._arrays:
            self._arrays[variable] = arrays_above([variable])
        return self._arrays[variable]

    def _only_data(self, variable: Variable) -> bool:
        if not self._arrays_above(variable):
            return False
        return not any(is_unknown(ancestor) for ancestor in above([variable], through_unknowns=False))

    def _same_for_all(self, variable: Variable, axis: int) -> bool:
        # A single row of dummy data is broadcastable too, so an axis of length one counts as shared only if no data is above.
        return variable.type.broadcastable[axis] and not self._arrays_above(variable)

    def _placeholder(self, expression: Variable, axis: int | None, index: bool) -> Variable:
        secret = [array for array in self._arrays_above(expression) if array not in self._public]
        if secret:
            name = self._name_of(secret[0])
            if axis is None:
                raise Unreduced(f"it depends on the private array {name} in a way that mixes records or is the same for all")
            if index:
                raise Unreduced(f"its index {name} is private, and private indices are not offered yet")
            raise Unreduced(f"it depends on the private array {name}, and private covariates are not offered yet")
        for known in self.inputs:
            if known.expression is expression and known.axis == axis:
                return known.placeholder
        shape = tuple(None if k == axis else length for k, length in enumerate(expression.type.shape))
        placeholder = pt.tensor(f"input_{len(self.inputs)}", dtype=expression.type.dtype, shape=shape)
        self.inputs.append(Input(expression, axis, placeholder, index))
        return placeholder

    def _whole(self, variable: Variable) -> Variable:
        """A part that every record shares."""
        key = (variable, None)
        if key not in self._done:
            if self._only_data(variable):
                result = self._placeholder(variable, None, False)
            elif variable.owner is None or is_unknown(variable) or not self._arrays_above(variable):
                result = variable
            elif isinstance(variable.owner.op, ModelDeterministic | ModelNamed):
                result = self._whole(variable.owner.inputs[0])
            else:
                result = _again(variable.owner, variable, [self._whole(operand) for operand in variable.owner.inputs])
            self._done[key] = result
        return self._done[key]

    def _rows(self, variable: Variable, axis: int, index: bool = False) -> Variable:
        """A part whose ``axis`` runs over the records."""
        key = (variable, axis)
        if key not in self._done:
            if self._only_data(variable):
                self._done[key] = self._placeholder(variable, axis, index)
            else:
                self._done[key] = self._rows_of_node(variable, axis)
        return self._done[key]

    def _rows_of_node(self, variable: Variable, axis: int) -> Variable:
        node = variable.owner
        if node is None or isinstance(node.op, ModelFreeRV | RandomVariable):
            raise Unreduced("it has one free parameter per record, so no sum over records stands for them")
        for kind, rule in self._rules().items():
            if isinstance(node.op, kind):
                return rule(node, variable, axis)
        raise Unreduced(f"it passes the records through {_name(node)}, which may mix them")

    def _rules(self) -> dict[type | tuple[type, ...], Callable[[Apply, Variable, int], Variable]]:
        return {
            (ModelDeterministic, ModelNamed, SpecifyShape): lambda node, variable, axis: self._rows(node.inputs[0], axis),
            Elemwise: self._elemwise,
            DimShuffle: self._dimshuffle,
            AdvancedSubtensor: self._gather,
            Subtensor: self._slice,
            (CAReduce, Softmax, LogSoftmax): self._reduction,
            Join: self._join,
            Alloc: self._alloc,
            Dot: self._dot,
            Blockwise: self._blockwise,
        }

    def _broadcast(self, operand: Variable, axis: int) -> Variable:
        if axis < 0 or self._same_for_all(operand, axis):
            return self._whole(operand)
        return self._rows(operand, axis)

    def _elemwise(self, node: Apply, variable: Variable, axis: int) -> Variable:
        return _again(node, variable, [self._broadcast(operand, axis) for operand in node.inputs])

    def _dimshuffle(self, node: Apply, variable: Variable, axis: int) -> Variable:
        source = node.op.new_order[axis]
        operand = node.inputs[0]
        return _again(node, variable, [self._whole(operand) if source == "x" else self._rows(operand, source)])

    def _gather(self, node: Apply, variable: Variable, axis: int) -> Variable:
        table, *indices = node.inputs
        if any(index.type.dtype == "bool" for index in indices):
            raise Unreduced("it selects records by a mask")
        entries = (*node.op.idx_list, *[FULL] * (table.type.ndim - len(node.op.idx_list)))
        advanced = [place for place, entry in enumerate(entries) if isinstance(entry, int)]
        depth = max(indices[entries[place]].type.ndim for place in advanced)
        adjacent = advanced == list(range(advanced[0], advanced[-1] + 1))
        first = advanced[0] if adjacent else 0
        if first <= axis < first + depth:
            own = {entries[place]: axis - first - (depth - indices[entries[place]].type.ndim) for place in advanced}
            new = [self._index(index, own[k]) if k in own else self._whole(index) for k, index in enumerate(indices)]
            return _again(node, variable, [self._whole(table), *new])
        kept = [place for place, entry in enumerate(entries) if not isinstance(entry, int)]
        source = kept[axis - depth if axis >= first + depth else axis]
        if entries[source] != FULL:
            raise Unreduced("it selects some of the records")
        return _again(node, variable, [self._rows(table, source), *(self._whole(index) for index in indices)])

    def _index(self, index: Variable, axis: int) -> Variable:
        if index.type.ndim == 0 or axis < 0 or self._same_for_all(index, axis):
            return self._whole(index)
        return self._rows(index, axis, index=True)

    def _slice(self, node: Apply, variable: Variable, axis: int) -> Variable:
        operand, *indices = node.inputs
        entries = (*node.op.idx_list, *[FULL] * (operand.type.ndim - len(node.op.idx_list)))
        kept = [place for place, entry in enumerate(entries) if isinstance(entry, slice)]
        if entries[kept[axis]] != FULL:
            raise Unreduced("it selects some of the records")
        return _again(node, variable, [self._rows(operand, kept[axis]), *(self._whole(index) for index in indices)])

    def _reduction(self, node: Apply, variable: Variable, axis: int) -> Variable:
        operand = node.inputs[0]
        reduced = node.op.axis
        reduced = tuple(range(operand.type.ndim)) if reduced is None else (reduced,) if isinstance(reduced, int) else tuple(reduced)
        if isinstance(node.op, CAReduce):
            axis = [place for place in range(operand.type.ndim) if place not in reduced][axis]
        elif axis in reduced:
            raise Unreduced(f"it passes the records through {_name(node)}, which mixes them")
        return _again(node, variable, [self._rows(operand, axis)])

    def _join(self, node: Apply, variable: Variable, axis: int) -> Variable:
        if node.op.axis % variable.type.ndim == axis:
            raise Unreduced("it puts records together from several arrays")
        parts = [self._broadcast(part, axis) for part in node.inputs]
        # A part that is the same for all records has become one row long: it is repeated to go with the others.
        whole = next((part for part in parts if not part.type.broadcastable[axis]), None)
        if whole is not None:
            parts = [_repeated(part, axis, whole.shape[axis]) for part in parts]
        return _again(node, variable, parts)

    def _alloc(self, node: Apply, variable: Variable, axis: int) -> Variable:
        value, *shape = node.inputs
        own = axis - (variable.type.ndim - value.type.ndim)
        new = self._broadcast(value, own)
        shape[axis] = new.shape[own] if own >= 0 else pt.constant(1, dtype="int64")
        return _again(node, variable, [new, *(self._whole(length) if k != axis else length for k, length in enumerate(shape))])

    def _dot(self, node: Apply, variable: Variable, axis: int) -> Variable:
        left, right = node.inputs
        if axis == 0 and left.type.ndim == 2:
            return _again(node, variable, [self._rows(left, 0), self._whole(right)])
        return _again(node, variable, [self._whole(left), self._rows(right, right.type.ndim - 1)])

    def _blockwise(self, node: Apply, variable: Variable, axis: int) -> Variable:
        batch = node.op.batch_ndim(node)
        if axis < batch:
            cores = [len(signature) for signature in node.op.inputs_sig]
            new = [
                self._broadcast(operand, axis - (batch - (operand.type.ndim - core)))
                for operand, core in zip(node.inputs, cores, strict=True)
            ]
            return _again(node, variable, new)
        left, right = node.inputs[0], node.inputs[-1]
        if isinstance(node.op.core_op, Dot) and axis == batch:
            return _again(node, variable, [self._rows(left, left.type.ndim - 2), self._whole(right)])
        if isinstance(node.op.core_op, Dot):
            return _again(node, variable, [self._whole(left), self._rows(right, right.type.ndim - 1)])
        raise Unreduced(f"it passes the records through {_name(node)}, which may mix them")


def substitute(variable: Variable, replacements: dict[Variable, Variable]) -> Variable:
    """The same graph with some variables replaced; random variables are kept as they are, never cloned."""
    done = dict(replacements)

    def visit(current: Variable) -> Variable:
        if current not in done:
            if current.owner is None or is_unknown(current):
                done[current] = current
            else:
                new = [visit(operand) for operand in current.owner.inputs]
                changed = any(a is not b for a, b in zip(new, current.owner.inputs, strict=True))
                done[current] = _again(current.owner, current, new) if changed else current
        return done[current]

    return visit(variable)


def _again(node: Apply, variable: Variable, inputs: list[Variable]) -> Variable:
    """The same operation on other inputs, its types inferred anew."""
    if arrays_above(inside(node.op), through_unknowns=True):
        raise Unreduced(f"it uses an array inside {_name(node)}, where it cannot be replaced. Pass the array as an input")
    return node.op(*inputs, return_list=True)[node.outputs.index(variable)]


def _repeated(part: Variable, axis: int, length: Variable) -> Variable:
    if not part.type.broadcastable[axis]:
        return part
    shape = [length if k == axis else part.shape[k] for k in range(part.type.ndim)]
    return pt.broadcast_to(part, shape)


def _name(node: Apply) -> str:
    return type(node.op).__name__
