"""Which private arrays are levels and nothing else: read as an index into tables of one length, and in no other way.

Negative entries of such an index count from the end, so that each entry is one of the levels. Where an index is compared or computed with
as well, or points into tables of several lengths, -1 may mean something of its own, as in ``switch(group >= 0, a[group], 0)``.
"""

from collections.abc import Iterable

from pymc.model.fgraph import ModelFreeRV
from pytensor.graph.basic import Variable
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.subtensor import AdvancedSubtensor

from pymc_dp.models.reduction import Input
from pymc_dp.models.structure import is_cast


def outside_indices(parameters: Iterable[Variable]) -> set[Variable]:
    """What parameters are computed from otherwise than through an index."""
    seen: set[Variable] = set()
    stack = list(parameters)
    while stack:
        variable = stack.pop()
        if variable in seen:
            continue
        seen.add(variable)
        if variable.owner is not None and not isinstance(variable.owner.op, ModelFreeRV):
            gathers = isinstance(variable.owner.op, AdvancedSubtensor)
            stack.extend(variable.owner.inputs[:1] if gathers else variable.owner.inputs)
    return seen


def is_level(data: Input, parameters: Iterable[Variable]) -> bool:
    """Whether an entry of a private index says nothing but which level it is."""
    return len(data.lengths) == 1 and data.placeholder not in _computed_with(parameters)


def _computed_with(parameters: Iterable[Variable]) -> set[Variable]:
    """What parameters are computed from otherwise than as an index itself, seen through casts and further axes."""
    seen: set[Variable] = set()
    found = {_behind(parameter) for parameter in parameters}
    stack = list(parameters)
    while stack:
        variable = stack.pop()
        if variable in seen or variable.owner is None or isinstance(variable.owner.op, ModelFreeRV):
            continue
        seen.add(variable)
        stack.extend(variable.owner.inputs)
        if _behind(variable) is variable:
            gathers = isinstance(variable.owner.op, AdvancedSubtensor)
            found |= {_behind(operand) for operand in (variable.owner.inputs[:1] if gathers else variable.owner.inputs)}
    return found


def _behind(variable: Variable) -> Variable:
    """The variable behind casts and axes of length one."""
    while is_cast(variable) or (variable.owner is not None and isinstance(variable.owner.op, DimShuffle)):
        variable = variable.owner.inputs[0]
    return variable
