"""Functions that walk a PyTensor graph: what a variable depends on, which of that is data, and a copy of the graph with parts replaced.

No value is ever looked at, and no spelling is matched.
"""

from collections.abc import Iterable, Iterator
from math import prod
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.model.fgraph import ModelDeterministic, ModelFreeRV, ModelNamed, ModelObservedRV, ModelVar
from pymc.pytensorf import constant_fold
from pytensor.compile.builders import SymbolicOp
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.op import HasInnerGraph
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.shape import Reshape, Shape, SpecifyShape
from pytensor.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor, Subtensor, get_constant_idx
from pytensor.tensor.variable import TensorConstant

SKIPPED = (ModelDeterministic, ModelNamed, CheckAndRaise)
"""Operations without a value of their own: names, and checks of parameters."""
FULL = slice(None, None, None)
"""All of an axis."""


MIXED = (
    "it depends on the private {} in a way that mixes records or is the same for all{}. Where it computes a mean or a standard"
    " deviation of records, write constants of your own, (x - 50) / 25"
)
"""What is said where one record would move every other, as in a standardised covariate."""
IN_GRAPH = "numbers that all records share may stand in the graph, in place of an array: pt.stack([0.25, 1.0])[index]"
"""What to write for a short table or for knots where no array can be public."""


class Unreduced(Exception):
    """Raised where a parameter cannot be reduced to cells; the message says why and what to write instead."""


class Mixed(Unreduced):
    """Raised where one record would move every other: ``names`` are those of private arrays, ``said`` what is said of them besides.

    Where the number of records is private (not ``sized``) no array can be declared public.
    """

    def __init__(self, names: Iterable[str], said: str, *, sized: bool = True) -> None:
        self.names, self.said = tuple(names), said
        arrays = "array" if len(self.names) == 1 else "arrays"
        reason = MIXED.format(f"{arrays} {', '.join(self.names)}", said)
        super().__init__(reason if sized else f"{reason}; {IN_GRAPH}")


class PerRecord(Unreduced):
    """Raised where a parameter has an unknown of its own for every record; ``unknown`` is its name, "" where it has none."""

    def __init__(self, reason: str, unknown: str = "") -> None:
        super().__init__(reason)
        self.unknown = unknown


def is_nameless(name: str) -> bool:
    """Whether an array is called after an outcome and its position."""
    return name.rpartition(":")[2].isdigit()


def is_array(variable: Variable) -> bool:
    """Whether a variable is an array of data: a constant with at least one axis, or a ``pm.Data`` even without."""
    if isinstance(variable, SharedVariable):
        return not isinstance(variable.type, RandomType)
    return isinstance(variable, Constant) and getattr(variable.type, "ndim", 0) > 0


def inside(operation: object) -> list[Variable]:
    """What an operation computes within itself, where constants can be hidden.

    PyTensor's own symbolic operations, such as ``logsumexp``, hide none where they compute what they build from their inputs' types.
    """
    core = getattr(operation, "core_op", operation)
    return [] if isinstance(core, HasInnerGraph) and _built_from_types(core) else computed_within(operation)


def computed_within(operation: object) -> list[Variable]:
    """What an operation computes within itself, whoever made it."""
    core = getattr(operation, "core_op", operation)
    return list(core.fgraph.outputs) if isinstance(core, HasInnerGraph) else []


def _built_from_types(core: HasInnerGraph) -> bool:
    if not isinstance(core, SymbolicOp) or not type(core).__module__.startswith("pytensor."):
        return False
    properties = {name: getattr(core, name) for name in getattr(type(core), "__props__", ())}
    return core == type(core)(input_types=list(core.input_types), **properties)


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

    With ``through_unknowns=False`` the walk stops at the model's own random variables, not at those that it has no name for.
    """
    stack, seen = list(reversed(variables)), set()
    while stack:
        variable = stack.pop()
        if variable in seen:
            continue
        seen.add(variable)
        yield variable
        if through_unknowns or variable.owner is None or not isinstance(variable.owner.op, ModelFreeRV | ModelObservedRV):
            stack.extend(reversed(parents(variable)))


def is_unknown(variable: Variable) -> bool:
    """Whether a variable is one of the model's random variables."""
    return variable.owner is not None and isinstance(variable.owner.op, ModelFreeRV | ModelObservedRV | RandomVariable)


def arrays_above(variables: list[Variable], *, through_unknowns: bool = False) -> list[Variable]:
    """The arrays of data these are computed from, in order of appearance."""
    return [variable for variable in above(variables, through_unknowns=through_unknowns) if is_array(variable)]


def indexed_axes(variables: list[Variable]) -> Iterator[tuple[Variable, set[str]]]:
    """Every array index above these variables, with the names of the dims it indexes into."""
    for index, table, axis in indices_into(variables):
        yield index, dims_of(table, axis)


def indices_into(variables: list[Variable]) -> Iterator[tuple[Variable, Variable, int]]:
    """Every array index above these variables, with the table and the axis of it that it indexes into."""
    for variable in above(variables, through_unknowns=False):
        if variable.owner is not None and isinstance(variable.owner.op, AdvancedSubtensor):
            table, *indices = variable.owner.inputs
            for axis, entry in enumerate(variable.owner.op.idx_list):
                if isinstance(entry, int) and indices[entry].type.ndim:
                    yield indices[entry], table, axis


def dims_of(variable: Variable, axis: int) -> set[str]:
    """Names of the dims that an axis of a variable is known by."""
    if variable.owner is None or axis < 0 or variable.type.shape[axis] == 1:
        return set()
    if is_wrapping(variable.owner.op):
        named = variable.owner.inputs[0] if hasattr(variable.owner.inputs[0].type, "dims") else variable
        return {named.type.dims[axis]} if hasattr(named.type, "dims") else dims_of(variable.owner.inputs[0], axis)
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


def is_wrapping(operation: object) -> bool:
    """Whether an operation only turns an array with named dims into one without, or back: ``pymc.dims``."""
    return type(operation).__name__ in {"TensorFromXTensor", "XTensorFromTensor"}


def is_cast(variable: Variable) -> bool:
    """Whether a variable is another one, of another type or with a name."""
    if variable.owner is None:
        return False
    if isinstance(variable.owner.op, ModelNamed | SpecifyShape) or is_wrapping(variable.owner.op):
        return True
    elementwise = isinstance(variable.owner.op, Elemwise) or type(variable.owner.op).__name__ == "XElemwise"
    return elementwise and type(variable.owner.op.scalar_op).__name__ == "Cast"


def scalar_name(operation: object) -> str:
    """What an elementwise operation or a reduction does to single numbers, such as "Add"; empty for any other operation."""
    return type(getattr(operation, "scalar_op", None)).__name__ if isinstance(operation, Elemwise | CAReduce) else ""


def is_product(operation: object) -> bool:
    """Whether an operation multiplies vectors and matrices."""
    return isinstance(operation, Dot) or (isinstance(operation, Blockwise) and isinstance(operation.core_op, Dot))


def index_by_axis(node: Apply) -> tuple[Any, ...]:
    """For every axis of the array that a node indexes a slice, or the place of an index; axes that are not written are whole."""
    entries = node.op.idx_list
    return (*entries, *[FULL] * (node.inputs[0].type.ndim - len(entries)))


def without_casts(variable: Variable) -> Variable:
    """The variable behind casts and names."""
    while is_cast(variable):
        variable = variable.owner.inputs[0]
    return variable


def constant_value(variable: Variable) -> np.ndarray | None:
    """The value of a constant expression, None of any other."""
    [value] = constant_fold([variable], raise_not_constant=False)
    return None if isinstance(value, Variable) else value


def puts_together(joined: Variable, observed: Variable) -> bool:
    """Whether PyMC made a variable of what is observed and of what it puts in place of missing values. Names alone do not tell: users
    may choose the same.
    """
    placed = None if joined.owner is None else joined.owner.inputs[0].owner
    if placed is None or not isinstance(placed.op, AdvancedIncSubtensor):
        return False
    put = placed.inputs[1]
    while put.owner is not None and isinstance(put.owner.op, SpecifyShape):  # where a single value is not missing
        put = put.owner.inputs[0]
    return put is observed


def one_unknown_each(variable: Variable, axis: int) -> bool:
    """Whether every entry along an axis has an unknown number of its own."""
    if variable.owner is None or variable.type.broadcastable[axis]:
        return False
    if isinstance(variable.owner.op, ModelFreeRV):
        return str(variable.type.dtype).startswith("float") and type(variable.owner.inputs[0].owner.op).__name__ != "DiracDeltaRV"
    if isinstance(variable.owner.op, ModelDeterministic) or is_cast(variable):
        return one_unknown_each(variable.owner.inputs[0], axis)
    if isinstance(variable.owner.op, DimShuffle):
        source = variable.owner.op.new_order[axis]
        return source != "x" and one_unknown_each(variable.owner.inputs[0], source)
    if not isinstance(variable.owner.op, Elemwise):
        return False
    # Of the factors of a product, say, one has an unknown an entry, and the others one number for all.
    long = [operand for operand in variable.owner.inputs if not operand.type.broadcastable[axis]]
    return bool(long) and all(one_unknown_each(operand, axis) for operand in long)


def one_by_structure(variable: Variable, axis: int) -> bool:
    """Whether an axis has length one by the way in which a variable is computed, whatever the number of records."""
    if variable.owner is None:
        return False
    operation, inputs = variable.owner.op, variable.owner.inputs
    if isinstance(operation, DimShuffle):
        return operation.new_order[axis] == "x" or one_by_structure(inputs[0], operation.new_order[axis])
    if isinstance(operation, ModelDeterministic) or is_cast(variable):
        return one_by_structure(inputs[0], axis)
    return isinstance(operation, Elemwise) and all(one_by_structure(operand, axis) for operand in inputs)


def row_axis_before(node: Apply, axis: int, *, sized: bool) -> int | None:
    """Which axis of what is reshaped becomes this axis of the result, entry by entry; None where that is not sure.

    It is the axis before and behind which there are as many entries as before and behind that of the result, by lengths that are fixed:
    then, whatever its own length, entry i of one is entry i of the other. ``pt.tile`` along another axis is such a case.

    A single record has as many entries as an axis of length one, and the two cannot be told apart. So where the number of records is
    private (not ``sized``) nothing is sure if that number is a fixed length.
    """
    if not sized and node.outputs[0].type.shape[axis] is not None:
        return None
    [old, new] = node.inputs[0].type.shape, node.outputs[0].type.shape
    around = _around(new, axis)
    places = [k for k in range(len(old)) if old[k] == new[axis] and _around(old, k) == around and not one_by_structure(node.inputs[0], k)]
    return places[0] if len(places) == 1 and around is not None else None


def _around(shape: tuple[int | None, ...], axis: int) -> tuple[int, int] | None:
    """How many entries lie before and behind an axis; None where that is not fixed."""
    before, behind = shape[:axis], shape[axis + 1 :]
    return None if None in before + behind else (prod(before), prod(behind))  # type: ignore[arg-type]


def unpacked_triangle(node: Apply) -> tuple[Variable, ...] | None:
    """Indices that unpack a triangular matrix, as PyMC writes them for an LKJ prior: made anew, so that none are taken over."""
    if not isinstance(node.op, AdvancedIncSubtensor) or len(node.inputs) != 4:
        return None
    table, packed, *indices = node.inputs
    while is_cast(packed) or (packed.owner is not None and isinstance(packed.owner.op, ModelDeterministic)):
        packed = packed.owner.inputs[0]
    if packed.owner is None or not isinstance(packed.owner.op, ModelFreeRV):
        return None
    if type(packed.owner.inputs[0].owner.op).__name__ != "_LKJCholeskyCovRV":  # of others, which triangle it is would be a guess
        return None
    side = table.type.shape[0]
    if table.type.shape != (side, side) or side is None or any(not isinstance(index, TensorConstant) for index in indices):
        return None
    if any(index.type.shape != (side * (side + 1) // 2,) for index in indices):
        return None
    return tuple(pt.constant(index) for index in np.tril_indices(side))


def untruncated(random: Variable) -> tuple[Variable, Variable, Variable]:
    """The distribution that a truncated one is made of, and its lower and upper limit."""
    *parameters, lower, upper = random.owner.inputs
    node = random.owner.op.base_rv_op.make_node(*parameters)
    return node.outputs[node.op.default_output or 1], lower, upper


def inlined(node: Apply, variable: Variable) -> Variable:
    """What an operation made of others computes, on the node's own inputs."""
    graph = node.op.fgraph
    return substitute(graph.outputs[node.outputs.index(variable)], dict(zip(graph.inputs, node.inputs, strict=True)))


def same_memory(first: Variable, second: Variable, *, sized: bool) -> bool:
    """Whether two arrays are one: the same variable, or constants that are views of the same memory. Values are not compared.

    Where the number of records is private (not ``sized``) only the same variable counts: PyTensor copies an index without entries, so
    that no record and one would differ. A ``pm.Data`` is one variable.
    """
    if first is second:
        return True
    if not sized or not (isinstance(first, TensorConstant) and isinstance(second, TensorConstant)):
        return False
    a, b = first.data, second.data
    return a is b or (a.ctypes.data == b.ctypes.data and a.shape == b.shape and a.strides == b.strides and a.dtype == b.dtype)


def substitute(variable: Variable, replacements: dict[Variable, Variable], skipped: tuple[type, ...] = ()) -> Variable:
    """A graph with some variables replaced; random variables are kept as they are, never cloned.

    Of operations of the ``skipped`` kinds only the first input is kept.
    """
    replaced = dict(replacements)

    def visit(current: Variable) -> Variable:
        if current not in replaced:
            if current.owner is None or is_unknown(current):
                replaced[current] = current
            elif isinstance(current.owner.op, skipped):
                replaced[current] = visit(current.owner.inputs[0])
            else:
                new = [visit(operand) for operand in current.owner.inputs]
                changed = any(a is not b for a, b in zip(new, current.owner.inputs, strict=True))
                replaced[current] = rebuilt(current.owner, current, new) if changed else current
        return replaced[current]

    return visit(variable)


def rebuilt(node: Apply, variable: Variable, inputs: list[Variable]) -> Variable:
    """The result of an operation on other inputs, its type inferred anew."""
    if arrays_above(inside(node.op), through_unknowns=True):
        raise Unreduced(f"it uses an array inside {type(node.op).__name__}, where it cannot be replaced. Pass the array as an input")
    return node.op(*inputs, return_list=True)[node.outputs.index(variable)]


def repeated(part: Variable, axis: int, length: Variable) -> Variable:
    """What is one long along an axis, so many times; anything else as it is."""
    if not part.type.broadcastable[axis]:
        return part
    shape = [length if k == axis else part.shape[k] for k in range(part.type.ndim)]
    return pt.broadcast_to(part, shape)


def length_read(variable: Variable) -> tuple[Variable, int] | None:
    """What another variable is the length of, and along which axis, as in ``x.shape[1]``; None of anything else."""
    node = without_casts(variable).owner
    if node is None or not isinstance(node.op, Subtensor) or variable.type.ndim:
        return None
    shape, place = without_casts(node.inputs[0]).owner, get_constant_idx(node.op.idx_list, node.inputs, allow_partial=True)
    if shape is None or not isinstance(shape.op, Shape) or len(place) != 1 or isinstance(place[0], Variable):
        return None
    return shape.inputs[0], int(place[0]) % shape.inputs[0].type.ndim
