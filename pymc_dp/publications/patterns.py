"""The graph of every record, evaluated at all true values that are possible given what was published of the record.

A graph is read from what it rests on: the axis of the records is followed through every operation that treats records one by one, and an
axis of patterns is put in front. An operation that may mix records is refused: then no sum over single records stands for the whole.
Shapes: N records, P patterns.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.gradient import DisconnectedGrad
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import ancestors
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Alloc, Join, MakeVector, ScalarFromTensor
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import All, Dot
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.special import LogAddExp, LogSoftmax, LogSumExp, Softmax, XLog1PY, XLogY
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_dp.laws.kernel import Kernel
from pymc_dp.laws.recursions import window_sum
from pymc_dp.laws.sums import normal_plus_laplace
from pymc_dp.models.binned import Numeric, numeric
from pymc_dp.models.structure import FULL, index_by_axis, inlined, is_product, scalar_name

ALIKE = (Elemwise, DimShuffle, AdvancedSubtensor, CheckAndRaise, SpecifyShape, Alloc, ScalarFromTensor, MakeVector, All, Numeric)
"""Operations that give the same where an array that is the same for all records has become one record long."""

CELL_LOOPS = (window_sum, normal_plus_laplace)
"""Loops over cells of which the last input, a table or a scale, is the same for all cells."""


class Mixed(Exception):
    """Records are mixed, or may be; the message says by what."""


class Patterns:
    """Graphs at patterns of the values of some of the variables they rest on.

    Parameters
    ----------
    seeds : mapping of Variable to Variable
        Of every variable (N,) its values (P, N), or (P, 1) where they are the same for all records.

    Attributes
    ----------
    conditions : list of Variable
        What parameters in the graphs so far were checked for, at every pattern and record: each can be broadcast to (P, N).
    """

    def __init__(self, seeds: Mapping[Variable, Variable]) -> None:
        self.conditions: list[Variable] = []
        self._done: dict[Variable, tuple[Variable, int] | None] = {seed: (new, 0) for seed, new in seeds.items()}
        self._rules: dict[Any, Callable[[Apply, Variable], tuple[Variable, int]]] = {
            (Elemwise, LogAddExp, XLogY, XLog1PY): self._entry_by_entry,
            DimShuffle: self._dimshuffle,
            (CAReduce, Softmax, LogSoftmax, LogSumExp): self._reduction,
            CheckAndRaise: self._check,
            DisconnectedGrad: lambda node, _: (node.op(self._needed(node.inputs[0])[0]), self._needed(node.inputs[0])[1]),
            SpecifyShape: lambda node, _: self._needed(node.inputs[0]),
            Alloc: self._alloc,
            Join: self._join,
            Subtensor: self._slice,
            AdvancedSubtensor: self._gather,
            Blockwise: self._blockwise,
            Dot: self._dot,
            Kernel: self._loop,
            Numeric: lambda node, _: (numeric(self._needed(node.inputs[0])[0]), self._needed(node.inputs[0])[1]),
            OpFromGraph: lambda node, variable: self._needed(inlined(node, variable)),
        }

    def rows(self, variable: Variable) -> Variable:
        """A graph whose first axis is that of the records, with an axis of patterns in front.

        Raises
        ------
        Mixed
        """
        known = self._visit(variable)
        if known is None:
            return variable[None]
        if known[1] != 0:
            raise Mixed("records do not lie along its first axis")
        return known[0]

    def _visit(self, variable: Variable) -> tuple[Variable, int] | None:
        """The graph at all patterns and its axis of records, counted without that of the patterns; None where it rests on no seed."""
        if variable not in self._done:
            node = variable.owner
            if node is None or not any(self._visit(operand) for operand in node.inputs if hasattr(operand, "owner")):
                self._done[variable] = None
            else:
                rule = next((rule for kind, rule in self._rules.items() if isinstance(node.op, kind)), None)
                if rule is None:
                    raise Mixed(f"{type(node.op).__name__} may mix records")
                self._done[variable] = rule(node, variable)
        return self._done[variable]

    def _needed(self, variable: Variable) -> tuple[Variable, int]:
        known = self._visit(variable)
        if known is None:
            raise Mixed("what it rests on could not be followed")
        return known

    def _entry_by_entry(self, node: Apply, variable: Variable) -> tuple[Variable, int]:
        axes = set()
        new = []
        for operand in node.inputs:
            known = self._visit(operand)
            if known is None:
                new.append(operand)
                continue
            axes.add(known[1] + variable.type.ndim - operand.type.ndim)
            missing = variable.type.ndim - operand.type.ndim
            new.append(pt.expand_dims(known[0], tuple(range(1, 1 + missing))) if missing else known[0])
        if len(axes) > 1:
            raise Mixed("each record meets every other")
        return node.op(*new, return_list=True)[node.outputs.index(variable)], axes.pop()

    def _dimshuffle(self, node: Apply, variable: Variable) -> tuple[Variable, int]:
        new, axis = self._needed(node.inputs[0])
        order = [place if place == "x" else place + 1 for place in node.op.new_order]
        if axis not in node.op.new_order:
            raise Mixed("a single record is taken for all")
        return new.dimshuffle([0, *order]), node.op.new_order.index(axis)

    def _reduction(self, node: Apply, variable: Variable) -> tuple[Variable, int]:
        new, axis = self._needed(node.inputs[0])
        ndim, reduced = node.inputs[0].type.ndim, node.op.axis
        places = range(ndim) if reduced is None else [reduced] if isinstance(reduced, int) else reduced
        places = {place % ndim for place in places}
        if axis in places:
            raise Mixed(f"{type(node.op).__name__} goes over all records")
        result = vectorize_graph(variable, {node.inputs[0]: new})
        return result, axis - sum(place < axis for place in places) if isinstance(node.op, CAReduce | LogSumExp) else axis

    def _check(self, node: Apply, variable: Variable) -> tuple[Variable, int]:
        """A check of parameters. What rests on a pattern goes to ``conditions``: it needs to hold where the pattern is possible."""
        value, *conditions = node.inputs
        known = self._visit(value)
        if known is None:
            raise Mixed("a check of something else rests on it")
        others = [condition for condition in conditions if not self._rests(condition)]
        for condition in conditions:
            if self._rests(condition):
                self._add(condition)
        return node.op(known[0], *others) if others else known[0], known[1]

    def _add(self, condition: Variable) -> None:
        """Add one condition on parameters, or all parts of one."""
        operation, inputs = condition.owner.op, condition.owner.inputs
        if isinstance(operation, ScalarFromTensor):
            self._add(inputs[0])
        elif isinstance(operation, All) and isinstance(inputs[0].owner.op if inputs[0].owner else None, MakeVector):
            for part in inputs[0].owner.inputs:
                if self._rests(part):
                    self._add(part)
                else:
                    self.conditions.append(part[None, None])
        elif isinstance(operation, All):
            new, axis = self._needed(inputs[0])
            self.conditions.append(pt.all(new, axis=[place for place in range(1, new.type.ndim) if place != axis + 1]))
        else:
            raise Mixed("a check of parameters could not be followed")

    def _rests(self, variable: Variable) -> bool:
        return any(self._done.get(ancestor) is not None for ancestor in ancestors([variable]))

    def _alloc(self, node: Apply, variable: Variable) -> tuple[Variable, int]:
        value, *lengths = node.inputs
        new, axis = self._needed(value)
        missing = len(lengths) - value.type.ndim
        new = pt.expand_dims(new, tuple(range(1, 1 + missing))) if missing else new
        return pt.alloc(new, new.shape[0], *lengths), axis + missing

    def _join(self, node: Apply, variable: Variable) -> tuple[Variable, int]:
        axes = {known[1] for part in node.inputs if (known := self._visit(part)) is not None}
        place = node.op.axis % variable.type.ndim
        if len(axes) > 1 or place in axes:
            raise Mixed("records are put behind each other")
        length = next(known[0].shape[0] for part in node.inputs if (known := self._visit(part)) is not None)
        parts = [
            known[0]
            if (known := self._visit(part)) is not None
            else pt.alloc(part, length, *(part.shape[k] for k in range(part.type.ndim)))
            for part in node.inputs
        ]
        return pt.concatenate(parts, axis=place + 1), axes.pop()

    def _slice(self, node: Apply, variable: Variable) -> tuple[Variable, int]:
        if any(self._visit(index) for index in node.inputs[1:]):
            raise Mixed("records are chosen by it")
        new, axis = self._needed(node.inputs[0])
        entries = index_by_axis(node)
        if entries[axis] != FULL:
            raise Mixed("some of the records are selected")
        kept = [place for place, entry in enumerate(entries) if isinstance(entry, slice)]
        return vectorize_graph(variable, {node.inputs[0]: new}), kept.index(axis)

    def _gather(self, node: Apply, variable: Variable) -> tuple[Variable, int]:
        table, *indices = node.inputs
        if self._visit(table) is not None:
            return self._columns(node, variable)
        places = [place for place, entry in enumerate(node.op.idx_list) if isinstance(entry, int)]
        used = [indices[node.op.idx_list[place]] for place in places]
        if places != list(range(len(places))) or any(index.type.dtype == "bool" for index in used):
            raise Mixed("it is an index of an axis that is not the first. Write table.T[index]")
        depth, axes, new = max(index.type.ndim for index in used), set(), []
        for index in indices:
            known = self._visit(index)
            if known is None:
                new.append(index)
                continue
            missing = depth - index.type.ndim
            axes.add(known[1] + missing)
            new.append(pt.expand_dims(known[0], tuple(range(1, 1 + missing))) if missing else known[0])
        if len(axes) > 1:
            raise Mixed("each record meets every other")
        return node.op(table, *new), axes.pop()

    def _columns(self, node: Apply, variable: Variable) -> tuple[Variable, int]:
        """An index that is the same for all records, into what is not."""
        table, *indices = node.inputs
        new, axis = self._needed(table)
        entries = index_by_axis(node)
        places = [place for place, entry in enumerate(entries) if isinstance(entry, int)]
        if entries[axis] != FULL or axis != 0 or any(self._visit(index) for index in indices):
            raise Mixed("records are chosen by an index, as in x[group]")
        if places != list(range(places[0], places[-1] + 1)):
            raise Mixed("several indices stand apart")
        return vectorize_graph(variable, {table: new}), axis

    def _blockwise(self, node: Apply, variable: Variable) -> tuple[Variable, int]:
        if not isinstance(node.op.core_op, Dot) or node.op.batch_ndim(node):
            raise Mixed(f"{node.op} may mix records")
        return self._dot(node, variable)

    def _dot(self, node: Apply, variable: Variable) -> tuple[Variable, int]:
        left, right = node.inputs
        if self._visit(right) is not None:
            raise Mixed("records are on the right of a product. Write X @ beta, with records as rows of X")
        new, axis = self._needed(left)
        if axis != 0 or left.type.ndim != 2:
            raise Mixed("a product goes over all records")
        flat = pt.dot(new.reshape((-1, new.shape[2])), right)
        return flat.reshape((new.shape[0], new.shape[1], *([flat.shape[1]] if flat.type.ndim == 2 else []))), 0

    def _loop(self, node: Apply, variable: Variable) -> tuple[Variable, int]:
        """Sums over counts that noise hides, one for every cell: the cells of all patterns one after the other."""
        if node.op.loop not in CELL_LOOPS:
            raise Mixed(f"{node.op.loop.__name__} may mix records")
        *by_cell, same = node.inputs
        known = [self._visit(operand) for operand in by_cell]
        [cells], many = by_cell[0].type.shape, {at_patterns[0].type.shape[0] for at_patterns in known if at_patterns is not None}
        along_first = all(at_patterns is None or at_patterns[1] == 0 for at_patterns in known) and not self._visit(same)
        if not along_first or cells is None or None in many or len(many) != 1:
            raise Mixed("records do not lie along the first axis of counts with noise")
        shape = (many.pop(), cells)
        flat = [
            pt.broadcast_to(operand[None] if at_patterns is None else at_patterns[0], shape).reshape((shape[0] * cells,))
            for operand, at_patterns in zip(by_cell, known, strict=True)
        ]
        return node.op(*flat, same, return_list=True)[node.outputs.index(variable)].reshape(shape), 0


def is_alike(outputs: Sequence[Variable], seeds: Sequence[Variable]) -> bool:
    """Whether values that are the same for all records may stand there once: all between seeds and outputs are entry by entry."""
    return all(variable.owner is None or isinstance(variable.owner.op, ALIKE) for variable in between(outputs, seeds))


def between(outputs: Sequence[Variable], seeds: Sequence[Variable]) -> list[Variable]:
    """Everything that rests on one of the seeds, and that an output rests on, seeds left out."""
    rests: dict[Variable, bool] = dict.fromkeys(seeds, True)

    def visit(variable: Variable) -> bool:
        if variable not in rests:
            above = [visit(operand) for operand in variable.owner.inputs] if variable.owner is not None else []
            rests[variable] = any(above)
        return rests[variable]

    for output in outputs:
        visit(output)
    return [variable for variable, does in rests.items() if does and variable not in set(seeds)]


AFFINE = {"Add", "Sub", "Neg", "Mul", "TrueDiv", "Cast", "Identity"}


def is_affine(output: Variable, seed: Variable) -> bool:
    """Whether an expression is affine in a variable, whatever everything else is: read off its operations."""
    inner = between([output], [seed])
    rests = {*inner, seed}
    for variable in inner:
        operation, inputs = variable.owner.op, variable.owner.inputs
        of_it = [operand in rests for operand in inputs]
        if isinstance(operation, Elemwise):
            kind = scalar_name(operation)
            product = (kind == "Mul" and sum(of_it) > 1) or (kind == "TrueDiv" and any(of_it[1:]))
            if kind not in AFFINE or product or (kind == "Cast" and not variable.type.dtype.startswith("float")):
                return False
        elif isinstance(operation, CAReduce):
            if scalar_name(operation) != "Add":
                return False
        elif is_product(operation):
            if all(of_it):
                return False
        elif not isinstance(operation, DimShuffle | Join | SpecifyShape | Alloc | Subtensor):
            return False
    return True


def same_for_all(values: np.ndarray) -> np.ndarray:
    """Values (P, N) as (P, 1) where all records have the same."""
    return values[:, :1] if values.shape[1] and (values == values[:, :1]).all() else values
