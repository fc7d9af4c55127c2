"""A formula of many records -> what it says of each: axes beside that of the records, such as one of components, are written out.

``pm.math.logsumexp`` over an axis of three becomes ``pt.logaddexp`` of three, and ``y[:, None] - mu`` three differences, each with one
entry per record. So no operation is left that could meet two records at once. What may mix or select records is refused.
"""

from itertools import product
from math import prod

import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.basic import Join, MakeVector
from pytensor.tensor.elemwise import CAReduce, DimShuffle
from pytensor.tensor.math import Dot
from pytensor.tensor.special import LogSumExp
from pytensor.tensor.subtensor import Subtensor, get_constant_idx

from pymc_dp.models.record_formulas import PASSED, is_entry_by_entry, refuse, resting_on
from pymc_dp.models.structure import FULL, Unreduced, arrays_above, is_unknown, rebuilt, scalar_name

MOST_WRITTEN_OUT = 10
"""So many entries of other axes are written out."""
type Index = tuple[int | None, ...]
"""For every axis which entry is meant, or None for that of the records."""


def by_record(formula: Variable, array: Variable) -> Variable:
    """A formula with one entry per record of an array, without other axes.

    Raises
    ------
    Unreduced
        Where it may mix or select records, or has other axes itself.
    """
    long = [axis for axis, length in enumerate(formula.type.shape) if length != 1] if formula.type.ndim != 1 else [0]
    if len(long) != 1:
        raise Unreduced("it has another number of axes than its values. Write one number per record, or their sum")
    return _WrittenOut(array).entries(formula, tuple(None if axis == long[0] else 0 for axis in range(formula.type.ndim)))


class _WrittenOut:
    """Expressions by the entries that are meant of them, each made once."""

    def __init__(self, array: Variable) -> None:
        self._array, self._rests = array, resting_on([array])
        self._done: dict[tuple[Variable, Index], Variable] = {}

    def entries(self, variable: Variable, index: Index) -> Variable:
        """One entry of every axis but that of the records, of which all are meant: a vector, or a number that all records share."""
        key = variable, index
        if key not in self._done:
            self._done[key] = self._of_records(variable, index) if self._rests(variable) else self._of_others(variable, index)
        return self._done[key]

    def _of_records(self, variable: Variable, index: Index) -> Variable:
        """Entries of what rests on the values."""
        node = variable.owner
        if node is None:  # the values themselves
            if index != (None,):
                raise Unreduced("it says of one record what the value of another is. Write one number per record, from its own value")
            return variable
        found = self._opened(variable, index)
        if found is None and isinstance(node.op, CAReduce | LogSumExp):
            found = self._reduced(node, index)
        elif found is None and isinstance(node.op, Dot):
            found = self._product(node, index)
        return refuse(node.op) if found is None else found

    def _of_others(self, variable: Variable, index: Index) -> Variable:
        """Entries of what does not: as far down as they can be followed, so that log(s) is one of s."""
        if all(place is None for place in index):
            return variable
        found = None if variable.owner is None or is_unknown(variable) else self._opened(variable, index)
        return variable[tuple(FULL if place is None else place for place in index)] if found is None else found

    def _opened(self, variable: Variable, index: Index) -> Variable | None:
        """Entries by those of the inputs of an operation; None of one that is not known to work entry by entry."""
        node = variable.owner
        if isinstance(node.op, PASSED):
            return self._part(node.inputs[0], index)
        if is_entry_by_entry(node.op):
            inputs = [self._part(operand, index) for operand in node.inputs]
            same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
            return variable if same else rebuilt(node, variable, inputs)
        if isinstance(node.op, DimShuffle):
            places = {source: index[axis] for axis, source in enumerate(node.op.new_order) if source != "x"}
            return self.entries(node.inputs[0], tuple(places.get(axis, 0) for axis in range(node.inputs[0].type.ndim)))
        if isinstance(node.op, MakeVector):
            return None if index[0] is None else self.entries(node.inputs[index[0]], ())
        if isinstance(node.op, Join):
            return self._joined(node, index)
        return self._sliced(node, index) if isinstance(node.op, Subtensor) else None

    def _part(self, operand: Variable, index: Index) -> Variable:
        """The entries of an operand that belong to those of a result: the only one, along axes of length one."""
        ends = index[len(index) - operand.type.ndim :]
        alone = zip(ends, operand.type.broadcastable, strict=True)
        if self._rests(operand):
            return self.entries(operand, tuple(0 if one and place is not None else place for place, one in alone))
        return self.entries(operand, tuple(0 if one else place for place, one in alone))

    def _joined(self, node: Apply, index: Index) -> Variable | None:
        place = index[node.op.axis]
        for part in [] if place is None else node.inputs:
            length = part.type.shape[node.op.axis]
            if length is None:
                return None
            if place < length:
                return self.entries(part, tuple(place if axis == node.op.axis else other for axis, other in enumerate(index)))
            place -= length
        return None

    def _sliced(self, node: Apply, index: Index) -> Variable | None:
        table, rest = node.inputs[0], iter(index)
        if arrays_above(node.inputs[1:]):  # a number of an array would decide which entry is read
            return None
        written = list(get_constant_idx(node.op.idx_list, node.inputs, allow_partial=True))
        written += [FULL] * (table.type.ndim - len(written))
        places: list[int | None] = []
        for entry, length in zip(written, table.type.shape, strict=True):
            if entry == FULL:
                places.append(next(rest))
            elif isinstance(entry, int) and length is not None:
                places.append(entry % length)
            else:
                return None
        return self.entries(table, tuple(places))

    def _reduced(self, node: Apply, index: Index) -> Variable | None:
        """A sum over other axes, or its logarithm, of what is written out."""
        if not isinstance(node.op, LogSumExp) and scalar_name(node.op) != "Add":
            return None
        [operand] = node.inputs
        axes = range(operand.type.ndim) if node.op.axis is None else node.op.axis
        lengths = [operand.type.shape[axis] for axis in axes]
        if None in lengths or prod(lengths) > MOST_WRITTEN_OUT:
            return None
        parts = [self.entries(operand, _inserted(index, dict(zip(axes, places, strict=True)))) for places in product(*map(range, lengths))]
        return parts[0] if len(parts) == 1 else (pt.logaddexp if isinstance(node.op, LogSumExp) else pt.add)(*parts)

    def _product(self, node: Apply, index: Index) -> Variable | None:
        """A product of matrices, summed over an axis that is not one of records."""
        left, right = node.inputs
        length = right.type.shape[0]
        if length is None or length > MOST_WRITTEN_OUT:
            return None
        return pt.add(*(self.entries(left, (index[0], k)) * self.entries(right, (k, index[1])) for k in range(length)))


def _inserted(index: Index, places: dict[int, int]) -> Index:
    """An index with entries of axes that a sum has taken away."""
    rest = iter(index)
    return tuple(places[axis] if axis in places else next(rest) for axis in range(len(index) + len(places)))
