"""Whether a number in an array decides how long something is, or which entry is read.

PyTensor works such numbers out of constants while a model is built: they show in shapes, and are gone from the graph.
"""

from pymc.model.fgraph import ModelFreeRV, ModelObservedRV
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.tensor.basic import MakeVector
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_dp.models.structure import is_array, parents

LENGTHS = {
    "Alloc": 1, "AllocEmpty": 0, "ARange": 0, "BroadcastTo": 1, "Eye": 0, "Repeat": 1, "Reshape": 1, "SpecifyShape": 1, "Subtensor": 1,
}  # fmt: skip
"""From which operand on operands of operations are lengths, or places that are read."""
PLACED = "takes a length, or which entry is read, from a number in an array, which would show in shapes"
"""Of what ``is_placed_by_values`` finds."""
MOST_AXES = 4
"""Constants of no more whole numbers may be shapes."""


def is_placed_by_values(node: Apply, *, sized: bool) -> bool:
    """Whether a length of an operation's result, or a single place that it reads, rests on numbers in arrays rather than on how long
    arrays are.

    Constants of a few whole numbers are tuples of Python's, of which shapes are made, and so are entries of them. Where the number of
    records is private (not ``sized``) entries are not: a few records would be taken for a tuple, and more would not.
    """
    first = LENGTHS.get(type(node.op).__name__)
    several = [] if first is None else node.inputs[first:]
    if isinstance(node.op, ModelFreeRV):  # sizes of what its distribution is made of are PyMC's own
        several = [v for v in node.inputs[0].owner.inputs if v.owner is not None and isinstance(v.owner.op, MakeVector)]
    return _rests_on_values([variable for variable in several if not isinstance(variable, Constant)], entries=sized)


def _rests_on_values(variables: list[Variable], *, entries: bool) -> bool:
    """Whether these rest on numbers in arrays that are no tuples, nor ``entries`` of any."""
    stack, seen = [(variable, True) for variable in variables], set()
    while stack:
        variable, whole = stack.pop()
        if (variable, whole) in seen:
            continue
        seen.add((variable, whole))
        if is_array(variable) and not (whole and _is_tuple(variable)):
            return True
        if variable.owner is not None and not isinstance(variable.owner.op, Shape | Shape_i | ModelFreeRV | ModelObservedRV):
            whole = whole and (entries or not isinstance(variable.owner.op, Subtensor | AdvancedSubtensor))
            stack.extend((parent, whole) for parent in parents(variable))
    return False


def _is_tuple(variable: Variable) -> bool:
    return isinstance(variable, Constant) and variable.type.ndim == 1 and len(variable.data) <= MOST_AXES
