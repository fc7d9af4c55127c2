"""How the parameters of a likelihood depend on the record, read off the PyTensor graph.

A parameter is read from its output backwards, following the axis of the records through every operation that treats rows one by one.
What it rests on in the end are expressions of data alone; each is replaced by a placeholder, so that the result has no data in it and can
be evaluated on any rows, for example one row per cell. No value is ever looked at: an operation not known to treat rows so is refused.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pytensor.tensor as pt
from pymc.model.fgraph import ModelDeterministic, ModelFreeRV, ModelNamed
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.tensor.basic import Alloc, Join
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.einsum import Einsum
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.special import LogAddExp, LogSoftmax, LogSumExp, Softmax, XLog1PY, XLogY
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_dp.models.row_picks import BY_COLUMNS, picked
from pymc_dp.models.same_arrays import in_one_row, known_shape, shapes_of_nameless
from pymc_dp.models.structure import (
    FULL,
    Mixed,
    PerRecord,
    Unreduced,
    above,
    arrays_above,
    constant_value,
    index_by_axis,
    inlined,
    is_cast,
    is_unknown,
    is_wrapping,
    length_read,
    one_by_structure,
    one_unknown_each,
    parents,
    rebuilt,
    repeated,
    row_axis_before,
    same_memory,
    unpacked_triangle,
    without_casts,
)

BEFOREHAND = "Select and order records in the arrays, before the model"
ONE_BY_ONE = f"Write it with what treats records one by one: arithmetic, indexing by record, X @ b, sums over columns as in {BY_COLUMNS}"
"""What to write in place of an operation that may mix records."""
ENTRY_BY_ENTRY = (LogAddExp, XLogY, XLog1PY)
"""Operations that work entry by entry, as ``Elemwise`` does, but are graphs of their own; their arrays need not have as many axes."""


@dataclass
class Input:
    """Data that a parameter rests on: an expression of public data, or a private array itself.

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
    private : bool
    lengths : set of int
        Of a private index, the lengths of the axes it points into.
    features : bool
        Whether the model has one unknown number for every entry along its only other axis, as in ``coefficients @ X.T``: then that
        axis is one of features, and ``axis`` can only be that of the records.
    """

    expression: Variable
    axis: int | None
    placeholder: Variable
    index: bool
    private: bool
    lengths: set[int]
    features: bool = False


class Reduction:
    """The parameters of one likelihood, rewritten on placeholders, and the inputs they stand for.

    Parameters
    ----------
    public : collection of Variable
        The arrays that may be used openly.
    name_of : callable
        What people call an array.
    sized, several : bool, int
        Whether the number of records is public; and that number, 0 where it is private or 1.

    Attributes
    ----------
    inputs : list of Input
    dims : set of str
        Names that the axis of records has in what was read.
    """

    def __init__(self, public: Collection[Variable], name_of: Callable[[Variable], str], *, sized: bool = True, several: int = 0) -> None:
        self._sized, self._several = sized, several
        self.inputs, self.dims = list[Input](), set[str]()
        self._public, self._name_of = public, name_of
        self._arrays: dict[Variable, list[Variable]] = {}
        self._done: dict[tuple[Variable, int | None], Variable] = {}

    def parameter(self, variable: Variable, axis: int | None) -> Variable:
        """A parameter with placeholders for its data. ``axis`` is its axis of records, None if it has none.

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
        if not variable.type.broadcastable[axis] or self._arrays_above(variable):
            return False
        # Of a single record everything has length one: where the number of records is private, only what has it by structure counts.
        return self._sized or one_by_structure(variable, axis)

    def _secret(self, expression: Variable) -> str | None:
        """The names of private arrays above, if there are any."""
        names = dict.fromkeys(self._name_of(array) for array in self._arrays_above(expression) if array not in self._public)
        return ", ".join(names) or None

    def _placeholder(self, expression: Variable, axis: int | None, index: bool, private: bool = False) -> Variable:
        for known in self.inputs:
            if same_memory(known.expression, expression, sized=self._sized) and known.axis == axis:
                known.index |= index
                return known.placeholder
        lengths = expression.type.shape
        if any(length is None and k != axis for k, length in enumerate(lengths)):
            lengths = known_shape(expression)
        shape = tuple(None if k == axis else length for k, length in enumerate(lengths))
        # PyTensor gives an index without entries another type, and whether there is a record may be private.
        dtype = "int64" if index and private and isinstance(expression, Constant) else expression.type.dtype
        placeholder = pt.tensor(f"input_{len(self.inputs)}", dtype=dtype, shape=shape)
        self.inputs.append(Input(expression, axis, placeholder, index, private, set()))
        return placeholder

    def _whole(self, variable: Variable) -> Variable:
        """A part that every record shares."""
        key = (variable, None)
        if key not in self._done:
            if (columns := self._columns(variable)) is not None:
                result: Variable = pt.constant(columns, dtype=variable.type.dtype)
            elif self._only_data(variable):
                if secret := self._secret(variable):
                    private = [array for array in self._arrays_above(variable) if array not in self._public]
                    raise Mixed(secret.split(", "), shapes_of_nameless(private, self._name_of) if self._sized else "", sized=self._sized)
                result = self._placeholder(variable, None, False)
            elif variable.owner is None or is_unknown(variable) or not self._arrays_above(variable):
                result = variable
            elif isinstance(variable.owner.op, ModelDeterministic | ModelNamed) or is_wrapping(variable.owner.op):
                result = self._whole(variable.owner.inputs[0])
            elif type(variable.owner.op) in (OpFromGraph, Einsum):
                result = self._whole(inlined(variable.owner, variable))
            elif (triangle := unpacked_triangle(variable.owner)) is not None:
                table, packed = variable.owner.inputs[:2]
                result = variable.owner.op(self._whole(table), self._whole(packed), *triangle)
            else:
                read = parents(variable)  # not the lengths that a Reshape gives: these are no data
                result = rebuilt(variable.owner, variable, [self._whole(v) if v in read else v for v in variable.owner.inputs])
            self._done[key] = result
        return self._done[key]

    def _columns(self, variable: Variable) -> int | None:
        """The length that this is of another axis of something read along that of the records, as in a mean over columns."""
        if (read := length_read(variable)) is None:
            return None
        of, place = read
        axes = [axis for axis in range(of.type.ndim) if (of, axis) in self._done]
        return self._done[of, axes[0]].type.shape[place] if len(axes) == 1 and place not in axes else None

    def _rows(self, variable: Variable, axis: int, index: bool = False) -> Variable:
        """A part whose ``axis`` runs over the records."""
        key = (variable, axis)
        if key not in self._done:
            self._note_name(variable, axis)
            repeated = variable.owner is not None and isinstance(variable.owner.op, DimShuffle) and variable.owner.op.new_order[axis] == "x"
            if repeated or not self._only_data(variable):
                self._done[key] = self._rows_of_node(variable, axis)
            elif not self._secret(variable):
                self._done[key] = self._placeholder(variable, None if self._several and in_one_row(variable, axis) else axis, index)
            elif variable.owner is None:
                self._done[key] = self._placeholder(variable, axis, index, private=True)
            elif is_cast(variable):
                inner = self._rows(variable.owner.inputs[0], axis, index)
                plain = isinstance(variable.owner.op, Elemwise)
                self._done[key] = rebuilt(variable.owner, variable, [inner]) if plain else inner
            else:
                # Private data are read down to the arrays themselves, so that they can be bounded and no row meets another.
                self._done[key] = self._rows_of_node(variable, axis)
        elif index:
            self._mark_index(self._done[key])
        return self._done[key]

    def _note_name(self, variable: Variable, axis: int) -> None:
        """What the axis of records is called here; in an expression of public data, in all that has as many axes."""
        for part in above([variable]) if self._only_data(variable) else [variable]:
            named = part.owner is not None and isinstance(part.owner.op, ModelDeterministic | ModelNamed | ModelFreeRV)
            dims = part.owner.op.dims if named and part.type.ndim == variable.type.ndim else ()
            self.dims |= {dim for dim in dims[axis : axis + 1] if dim}

    def _mark_index(self, placeholder: Variable) -> None:
        for known in self.inputs:
            known.index |= known.placeholder is placeholder

    def _rows_of_node(self, variable: Variable, axis: int) -> Variable:
        if (node := variable.owner) is None or isinstance(node.op, ModelFreeRV | RandomVariable):
            unknown = node.op.name if node is not None and isinstance(node.op, ModelFreeRV) else ""
            raise PerRecord("it has one free parameter per record, so no sum over records stands for them", unknown)
        if is_wrapping(node.op):
            return self._rows(node.inputs[0], axis)
        inner = (OpFromGraph, *[Einsum] * self._sized)  # of a single record PyTensor writes an Einsum out in another way
        plainer = inlined(node, variable) if type(node.op) in inner else picked(node, self._several, self._public)
        if plainer is not None:
            return self._rows(plainer, axis)
        for kind, rule in self._rules().items():
            if isinstance(node.op, kind):
                return rule(node, variable, axis)
        secret = (self._only_data(variable) and self._secret(variable)) or ""
        before = ". Or compute it before the model, as it rests on data alone, and pass it on: pm.Data('name', values)"
        public = f"{before}. If everyone may know {secret}, write public={secret.split(', ')}" if secret else ""
        raise Unreduced(f"it passes the records through {type(node.op).__name__}, which may mix them. {ONE_BY_ONE}{public}")

    def _rules(self) -> dict[type | tuple[type, ...], Callable[[Apply, Variable, int], Variable]]:
        return {
            (ModelDeterministic, ModelNamed, SpecifyShape): lambda node, variable, axis: self._rows(node.inputs[0], axis),
            (Elemwise, *ENTRY_BY_ENTRY): self._entry_by_entry,
            DimShuffle: self._dimshuffle,
            AdvancedSubtensor: self._gather,
            Subtensor: self._slice,
            (CAReduce, Softmax, LogSoftmax, LogSumExp): self._reduction,
            Join: self._join,
            Alloc: self._alloc,
            Reshape: self._reshape,
            Dot: self._dot,
            Blockwise: self._blockwise,
        }

    def _broadcast(self, operand: Variable, axis: int) -> Variable:
        if axis < 0 or self._same_for_all(operand, axis):
            return self._whole(operand)
        return self._rows(operand, axis)

    def _entry_by_entry(self, node: Apply, variable: Variable, axis: int) -> Variable:
        return rebuilt(node, variable, [self._broadcast(part, axis - variable.type.ndim + part.type.ndim) for part in node.inputs])

    def _dimshuffle(self, node: Apply, variable: Variable, axis: int) -> Variable:
        source = node.op.new_order[axis]
        operand = node.inputs[0]
        return rebuilt(node, variable, [self._whole(operand) if source == "x" else self._rows(operand, source)])

    def _gather(self, node: Apply, variable: Variable, axis: int) -> Variable:
        table, *indices = node.inputs
        if any(index.type.dtype == "bool" for index in indices):
            raise Unreduced("it selects records by a mask. Select them in the arrays, before the model: a[group[kept]] for a[group][kept]")
        entries = index_by_axis(node)
        advanced = [place for place, entry in enumerate(entries) if isinstance(entry, int)]
        depth = max(indices[entries[place]].type.ndim for place in advanced)
        adjacent = advanced == list(range(advanced[0], advanced[-1] + 1))
        first = advanced[0] if adjacent else 0
        if first <= axis < first + depth:
            index_axes = {entries[place]: axis - first - (depth - indices[entries[place]].type.ndim) for place in advanced}
            new = [self._index(index, index_axes[k]) if k in index_axes else self._whole(index) for k, index in enumerate(indices)]
            self._note_lengths(whole := self._whole(table), entries, advanced, new)
            return rebuilt(node, variable, [whole, *new])
        kept = [place for place, entry in enumerate(entries) if not isinstance(entry, int)]
        source = kept[axis - depth if axis >= first + depth else axis]
        if entries[source] != FULL:
            raise Unreduced(f"it selects some of the records. {BEFOREHAND}")
        return rebuilt(node, variable, [self._rows(table, source), *(self._whole(index) for index in indices)])

    def _note_lengths(self, table: Variable, entries: Sequence[Any], advanced: Sequence[int], new: Sequence[Variable]) -> None:
        """How long the axes are that private indices point into: their levels."""
        for place in advanced:
            pointer = without_casts(new[entries[place]])
            for known in self.inputs:
                if known.private and known.placeholder is pointer:
                    length = constant_value(table.shape[place])
                    if length is None:
                        raise Unreduced(
                            f"the number of levels of {self._name_of(known.expression)} is not fixed. Give what it indexes dims or a"
                            " shape, and a pm.Data in that shape=(...)"
                        )
                    known.lengths.add(int(length))

    def _index(self, index: Variable, axis: int) -> Variable:
        if index.type.ndim == 0 or axis < 0 or self._same_for_all(index, axis):
            return self._whole(index)
        return self._rows(index, axis, index=True)

    def _slice(self, node: Apply, variable: Variable, axis: int) -> Variable:
        operand, *indices = node.inputs
        entries = index_by_axis(node)
        kept = [place for place, entry in enumerate(entries) if isinstance(entry, slice)]
        if entries[kept[axis]] != FULL:
            raise Unreduced(f"it selects some of the records. {BEFOREHAND}")
        return rebuilt(node, variable, [self._rows(operand, kept[axis]), *(self._whole(index) for index in indices)])

    def _reduction(self, node: Apply, variable: Variable, axis: int) -> Variable:
        operand = node.inputs[0]
        reduced = node.op.axis
        reduced = tuple(range(operand.type.ndim)) if reduced is None else (reduced,) if isinstance(reduced, int) else tuple(reduced)
        reduced = tuple(place % operand.type.ndim for place in reduced)
        if isinstance(node.op, CAReduce | LogSumExp):
            axis = [place for place in range(operand.type.ndim) if place not in reduced][axis]
        elif axis in reduced:
            raise Unreduced(f"it passes the records through {type(node.op).__name__}, which mixes them. Let it go along another axis")
        return rebuilt(node, variable, [self._rows(operand, axis)])

    def _join(self, node: Apply, variable: Variable, axis: int) -> Variable:
        if node.op.axis % variable.type.ndim == axis:
            raise Unreduced("it puts records together from several arrays. Write an index by record, such as a[group]")
        parts = [self._broadcast(part, axis) for part in node.inputs]
        # A part that is the same for all records has become one row long: it is repeated to go with the others.
        whole = next((part for part in parts if not part.type.broadcastable[axis]), None)
        if whole is not None:
            parts = [repeated(part, axis, whole.shape[axis]) for part in parts]
        return rebuilt(node, variable, parts)

    def _alloc(self, node: Apply, variable: Variable, axis: int) -> Variable:
        value, *shape = node.inputs
        value_axis = axis - (variable.type.ndim - value.type.ndim)
        new = self._broadcast(value, value_axis)
        shape[axis] = new.shape[value_axis] if value_axis >= 0 else pt.constant(1, dtype="int64")
        lengths = zip(shape, variable.type.shape, strict=True)
        return rebuilt(node, variable, [new, *(self._length(*pair) if k != axis else pair[0] for k, pair in enumerate(lengths))])

    def _length(self, length: Variable, known: int | None) -> Variable:
        """A length beside that of the records: the number itself where it is fixed, and not by how many records there are."""
        return pt.constant(known, dtype="int64") if known is not None and self._tells_no_number([length]) else self._whole(length)

    def _tells_no_number(self, lengths: list[Variable]) -> bool:
        """Whether lengths do not tell a private number of records: no private array above them has a length in its type."""
        private = [array for array in arrays_above(lengths) if array not in self._public]
        return self._sized or all(set(array.type.shape) <= {None} for array in private)

    def _reshape(self, node: Apply, variable: Variable, axis: int) -> Variable:
        source = row_axis_before(node, axis, sized=self._sized)
        if source is None or not self._tells_no_number([node.inputs[1]]):
            raise Unreduced(f"it passes the records through Reshape, which may mix them. {ONE_BY_ONE}")
        rows = self._rows(node.inputs[0], source)
        if variable.type.ndim == 1 == rows.type.ndim - sum(rows.type.broadcastable):  # a column
            return rows.dimshuffle(source)
        return pt.reshape(rows, [rows.shape[source] if k == axis else length for k, length in enumerate(variable.type.shape)])

    def _dot(self, node: Apply, variable: Variable, axis: int) -> Variable:
        left, right = node.inputs
        if axis == 0 and left.type.ndim == 2:
            return rebuilt(node, variable, [self._rows(left, 0), self._whole(right)])
        return rebuilt(node, variable, [self._whole(left), self._columns_as_rows(left, right)])

    def _columns_as_rows(self, left: Variable, right: Variable) -> Variable:
        """The right factor of ``left @ right`` where its last axis runs over the records."""
        result = self._rows(right, right.type.ndim - 1)
        root = without_casts(right)
        for known in self.inputs:
            if known.expression is root and right.type.ndim == 2 and one_unknown_each(left, left.type.ndim - 1):
                known.features = True
        return result

    def _blockwise(self, node: Apply, variable: Variable, axis: int) -> Variable:
        batch = node.op.batch_ndim(node)
        if axis < batch:
            cores = [len(signature) for signature in node.op.inputs_sig]
            operands = zip(node.inputs, cores, strict=True)
            new = [self._broadcast(operand, axis - (batch - (operand.type.ndim - core))) for operand, core in operands]
            return rebuilt(node, variable, new)
        left, right = node.inputs[0], node.inputs[-1]
        if isinstance(node.op.core_op, Dot) and axis == batch:
            return rebuilt(node, variable, [self._rows(left, left.type.ndim - 2), self._whole(right)])
        if isinstance(node.op.core_op, Dot):
            return rebuilt(node, variable, [self._whole(left), self._columns_as_rows(left, right)])
        raise Unreduced(f"it passes the records through {type(node.op).__name__}, which may mix them. {ONE_BY_ONE}")
