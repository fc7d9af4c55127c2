"""Whether the probabilities of a categorical likelihood add up to 1, as PyMC requires. Checked before anything is paid for."""

from collections.abc import Sequence
from math import prod

import cloudpickle
import numpy as np
import pytensor.tensor as pt
from pymc.model.fgraph import ModelFreeRV
from pytensor import config
from pytensor.graph.basic import Variable

from pymc_dp.models.reduction import Input
from pymc_dp.models.structure import Unreduced, above, constant_value, substitute

ADD_UP = frozenset({"Categorical", "Multinomial"})
"""Distributions whose last parameter is probabilities."""
ROWS = 2
"""Rows of what stands for the records."""
IRRATIONAL = 0.6180339887498949
"""Its multiples, less their whole parts, are numbers between 0 and 1 without a pattern."""


def check_add_up(probabilities: Variable, inputs: Sequence[Input]) -> None:
    """Refuse probabilities whose sum along their last axis is another number than 1.

    PyMC gives such a likelihood no density. A release has one for them, of the numbers divided by their sum: an answer to another model.
    They are evaluated once, at made-up numbers: no array is read. Unknowns of a vector-valued prior, and arrays, add up to 1 themselves.
    Where that cannot be evaluated nothing is refused. A sum is 1 where PyMC takes it for 1.

    Parameters
    ----------
    probabilities : Variable
        On placeholders; their last axis is the levels.
    inputs : sequence of Input
        What the placeholders stand for.
    """
    try:
        [totals] = at_made_up_numbers([probabilities.sum(axis=-1)], [(data.placeholder, data.axis, data.index) for data in inputs])
    except Exception:  # what has no made-up number, or is not defined there
        return
    if np.isfinite(totals).all() and not np.allclose(totals, 1):
        raise Unreduced(
            "its probabilities do not add up to 1 along their last axis, that of the levels, and PyMC gives such a likelihood no density."
            " Write p / p.sum(axis=-1, keepdims=True), or pm.math.softmax(..., axis=-1)"
        )


def at_made_up_numbers(expressions: Sequence[Variable], inputs: Sequence[tuple[Variable, int | None, bool]]) -> list[np.ndarray]:
    """What expressions are at made-up numbers, in the place of unknowns and of what stands for data. No array is read.

    Parameters
    ----------
    expressions : sequence of Variable
    inputs : sequence of (Variable, int or None, bool)
        What stands for data, its axis of records, and whether it is an index.

    Raises
    ------
    Exception
        Of any kind, where they cannot be evaluated there.
    """
    numbers: dict[Variable, Variable] = {}
    for placeholder, axis, index in inputs:
        values = _made_up(placeholder, adds_up=True, rows_along=axis, whole=index)
        if values is not None:
            numbers[placeholder] = values
    for variable in above(list(expressions), through_unknowns=False):
        if variable.owner is not None and isinstance(variable.owner.op, ModelFreeRV):
            operation = variable.owner.inputs[0].owner.op
            values = _made_up(variable, adds_up=getattr(operation, "ndim_supp", 1) > 0)
            if values is not None:
                numbers[variable] = values
    with config.change_flags(mode="FAST_COMPILE", cxx=""):
        # Copies with operations of their own: what is compiled leaves its traces on them.
        return [cloudpickle.loads(cloudpickle.dumps(substitute(expression, numbers))).eval() for expression in expressions]


def _made_up(variable: Variable, *, adds_up: bool, rows_along: int | None = None, whole: bool = False) -> Variable | None:
    """A constant of a variable's type; None where its shape is not known. Unknowns increase along their last axis, as cutpoints must."""
    shape = [ROWS if axis == rows_along else length for axis, length in enumerate(variable.type.shape)]
    if None in shape:
        known = constant_value(variable.owner.inputs[0].shape) if variable.owner is not None else None
        if known is None:
            return None
        shape = [int(length) for length in known]
    dtype = variable.type.dtype
    if whole or not dtype.startswith("float"):
        return pt.constant(np.zeros(shape, dtype=dtype))
    values = 0.1 + 0.8 * (np.arange(1, prod(shape) + 1) * IRRATIONAL % 1).reshape(shape)
    if adds_up and values.ndim:
        values = values / values.sum(axis=-1, keepdims=True)
    elif values.ndim and rows_along is None:
        values = np.sort(values, axis=-1)
    return pt.constant(values.astype(dtype))
