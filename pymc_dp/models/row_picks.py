"""One entry for every record, taken out of a matrix of all records by groups: rewritten so that it is computed record by record.

``(X @ B.T)[arange(N), g]`` takes entry g[i] of row i, the sum over columns of X[i] * B[g[i]], and so does the diagonal of ``X @ B[g].T``.
Shapes decide, and they are public here: there must be as many entries as records, and more than one, so that no row stands for all.
Whatever else is taken out of a matrix is not read here, and so refused.
"""

from collections.abc import Collection

from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.tensor.basic import ARange, ExtractDiag
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_dp.models.same_arrays import shape_of
from pymc_dp.models.structure import Unreduced, arrays_above, constant_value, is_cast, is_product, without_casts

BY_COLUMNS = "(X * B[group]).sum(axis=-1)"
"""What to write for both of them."""


def picked(node: Apply, records: int, public: Collection[Variable]) -> Variable | None:
    """The result of a node on matrices, written record by record; None where it is no entry of each record.

    Parameters
    ----------
    node : Apply
    records : int
        How many there are; 0 where that is private or 1, and then nothing is read.
    public : collection of Variable
        Arrays that may be used openly.

    Raises
    ------
    Unreduced
        Where an array of numbers says which entries are taken.
    """
    if not records:
        return None
    if isinstance(node.op, ExtractDiag) and node.op.offset == 0 and node.inputs[0].type.ndim == 2:
        factors = _factors(node.inputs[0])
        if factors is None or factors[0].type.broadcastable[0] or factors[1].type.broadcastable[1]:
            return None
        return (factors[0] * factors[1].T).sum(axis=-1)
    if not isinstance(node.op, AdvancedSubtensor) or tuple(node.op.idx_list) != (0, 1) or node.inputs[0].type.ndim != 2:
        return None
    table, *indices = node.inputs
    if any(index.type.ndim != 1 or index.type.broadcastable[0] or "int" not in index.type.dtype for index in indices):
        return None
    counting = [_counts_all(index, records) for index in indices]
    if sum(counting) != 1:
        by_row = any(array not in public and records in shape_of(array) for array in arrays_above([table]))
        if by_row and any(isinstance(index, Constant) for index in indices):
            raise Unreduced(
                "it takes entries of a matrix that has a row for every record by an array of numbers, which may be records. Write"
                f" {BY_COLUMNS} for (X @ B.T)[np.arange({records}), group], or pt.arange for np.arange"
            )
        return None
    group = indices[counting.index(False)]
    return _entries(table if counting[0] else table.T, group)


def _entries(matrix: Variable, group: Variable) -> Variable | None:
    """Entry group[i] of every row i of a matrix that is made of products; None of any other."""
    factors = _factors(matrix)
    if factors is not None:
        left, right = factors
        return None if left.type.broadcastable[0] or right.type.broadcastable[1] else (left * right.T[group]).sum(axis=-1)
    if not isinstance(matrix.owner and matrix.owner.op, Elemwise):
        return None
    parts: list[Variable | None] = []
    for operand in matrix.owner.inputs:
        if operand.type.broadcastable[1]:
            parts.append(operand.dimshuffle(0) if not operand.type.broadcastable[0] else operand.dimshuffle())
        elif operand.type.broadcastable[0]:
            parts.append(operand.dimshuffle(1)[group])
        else:
            parts.append(_entries(operand, group))
    return None if any(part is None for part in parts) else matrix.owner.op(*parts)


def _factors(matrix: Variable) -> tuple[Variable, Variable] | None:
    """Two matrices whose product it is, also of one that is turned round."""
    node = matrix.owner
    if node is None:
        return None
    if is_cast(matrix) or type(node.op).__name__ == "ModelDeterministic":
        return _factors(node.inputs[0])
    if isinstance(node.op, DimShuffle) and tuple(node.op.new_order) == (1, 0):
        inner = _factors(node.inputs[0])
        return None if inner is None else (inner[1].T, inner[0].T)
    if is_product(node.op) and all(operand.type.ndim == 2 for operand in node.inputs):
        return node.inputs[0], node.inputs[1]
    return None


def _counts_all(index: Variable, records: int) -> bool:
    """Whether an index is ``arange`` over so many entries: by a number in the graph, or by the length of an array."""
    index = without_casts(index)
    if index.owner is None or not isinstance(index.owner.op, ARange):
        return False
    start, stop, step = index.owner.inputs
    return constant_value(start) == 0 and constant_value(step) == 1 and _number(stop) == records


def _number(length: Variable) -> int | None:
    """A number of entries, where it is written or the length of an array."""
    if arrays_above([length]):
        node = length.owner
        if isinstance(node.op, Subtensor) and isinstance(node.inputs[0].owner and node.inputs[0].owner.op, Shape):
            places = [int(place.data) for place in node.inputs[1:] if isinstance(place, Constant)]
            array = without_casts(node.inputs[0].owner.inputs[0])
        elif isinstance(node.op, Shape_i):
            places, array = [node.op.i], without_casts(node.inputs[0])
        else:
            return None
        shape = shape_of(array)
        return shape[places[0]] if places and 0 <= places[0] < len(shape) else None
    value = constant_value(length)
    return None if value is None else int(value)
