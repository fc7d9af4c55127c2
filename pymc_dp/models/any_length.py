"""Expressions without the lengths of their arrays, which are private where the number of records is."""

from collections.abc import Sequence

import numpy as np
import pytensor
from pytensor.graph.basic import Variable
from pytensor.tensor.basic import Alloc

from pymc_dp.models.structure import Unreduced, above, arrays_above, substitute


def of_any_length(expressions: Sequence[Variable]) -> tuple[list[Variable], dict[Variable, Variable]]:
    """Expressions in which arrays of any length stand for those of a known one, and what stands for what.

    PyTensor knows how long a plain array is: two of other lengths cannot be added, and one of a single record is taken for what all share.
    What ``pm.logp`` repeats as often as there are records is not repeated. No number of an array is read.

    Raises
    ------
    Unreduced
        Where operations need the lengths.
    """
    repeats = [v for v in above(list(expressions), through_unknowns=False) if v.owner is not None and isinstance(v.owner.op, Alloc)]
    if any(repeated.type.ndim != repeated.owner.inputs[0].type.ndim for repeated in repeats):
        raise Unreduced("it makes an array that is as long as the records. Write the number that stands in it")
    known = [array for array in arrays_above(list(expressions)) if array.type.ndim and set(array.type.shape) != {None}]
    stand_ins = {array: _of_any_length(array) for array in known}
    try:
        return [substitute(expression, dict(stand_ins), (Alloc,)) for expression in expressions], stand_ins
    except Unreduced:
        raise
    except Exception:  # no record has been read: the graph alone has decided
        raise Unreduced("it needs to know how long its arrays are. Write them as pm.Data, with one entry per record") from None


def _of_any_length(array: Variable) -> Variable:
    """An array of the same type, of one entry, whose length nothing that is made of it knows."""
    axes = array.type.ndim
    stand_in: Variable = pytensor.shared(np.ones((1,) * axes, dtype=array.type.dtype), name=array.name, shape=(None,) * axes)
    return stand_in
