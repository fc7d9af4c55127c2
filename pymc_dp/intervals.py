"""Between which values an expression of bounded arrays lies. Structure stands before, inspection after.

Interval arithmetic on the graph: a bound found here is certain, if not always the smallest. An operation that is not known is
refused, never guessed.
"""

from collections.abc import Callable, Mapping

import numpy as np
from pytensor.graph.basic import Constant, Variable
from pytensor.tensor.basic import Alloc, Join, MakeVector, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_dp.structure import Unreduced

type Interval = tuple[np.ndarray, np.ndarray]

INCREASING: dict[str, Callable] = {
    "Exp": np.exp, "Log": np.log, "Log1p": np.log1p, "Expm1": np.expm1, "Sqrt": np.sqrt, "Tanh": np.tanh, "Identity": np.positive,
    "ArcTan": np.arctan, "Floor": np.floor, "Ceil": np.ceil, "Log2": np.log2, "Log10": np.log10,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}  # fmt: skip
"""Operations of one argument that never decrease."""
CORNERS: dict[str, Callable] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Minimum": np.minimum, "Maximum": np.maximum, "ScalarMinimum": np.minimum,
    "ScalarMaximum": np.maximum,
}  # fmt: skip
"""Operations whose extremes lie where every argument is at one of its ends."""
REARRANGING = (DimShuffle, Subtensor, AdvancedSubtensor, Alloc, Join, MakeVector, ScalarFromTensor, TensorFromScalar, SpecifyShape, Reshape)


def interval(variable: Variable, given: Mapping[Variable, Interval]) -> Interval:
    """The least and the largest value of every entry.

    Parameters
    ----------
    variable : Variable
    given : mapping
        Bounds of the arrays it is computed from, of their shapes, or of shapes that broadcast.

    Raises
    ------
    Unreduced
    """
    if variable in given:
        return given[variable]
    if isinstance(variable, Constant):
        value = np.asarray(variable.data)
        return value, value
    node = variable.owner
    if node is None:
        raise Unreduced("it rests on something that has no bounds")
    if isinstance(node.op, Shape | Shape_i):
        shape = np.shape(interval(node.inputs[0], given)[0])
        found = np.asarray(shape if isinstance(node.op, Shape) else shape[node.op.i], dtype=np.int64)
        return found, found
    inputs = [interval(operand, given) for operand in node.inputs]
    if isinstance(node.op, REARRANGING):
        return _rearranged(node, inputs)
    if isinstance(node.op, Elemwise):
        return _elementwise(type(node.op.scalar_op).__name__, inputs)
    raise Unreduced(
        f"a private covariate goes through {type(node.op).__name__}, whose values have no known bounds. Compute it before the model, and"
        " give bounds to the result"
    )


def _rearranged(node, inputs: list[Interval]) -> Interval:
    if any(np.any(np.asarray(low) != np.asarray(high)) for low, high in inputs[1:]) and isinstance(node.op, AdvancedSubtensor | Subtensor):
        # What it points to may be anything in the table.
        (low, high), like = inputs[0], _rearranged(node, [inputs[0], *((end, end) for end, _ in inputs[1:])])[0]
        return np.full(like.shape, np.min(low)), np.full(like.shape, np.max(high))
    ends = []
    for end in range(2):
        storage: list[list[object]] = [[None]]
        node.op.perform(node, [np.asarray(pair[end], dtype=operand.type.dtype) for pair, operand in zip(inputs, node.inputs)], storage)
        ends.append(np.asarray(storage[0][0]))
    return ends[0], ends[1]


def _elementwise(name: str, inputs: list[Interval]) -> Interval:
    with np.errstate(all="ignore"):
        result: Interval
        if name == "Cast":
            result = (np.asarray(inputs[0][0], dtype=float), np.asarray(inputs[0][1], dtype=float))
        elif name == "Second":
            like = 0 * np.asarray(inputs[0][0], dtype=float)
            result = (inputs[1][0] + like, inputs[1][1] + like)
        elif name in INCREASING:
            low, high = (INCREASING[name](np.asarray(end, dtype=float)) for end in inputs[0])
            result = (low, high)
        elif name == "Neg":
            result = (-np.asarray(inputs[0][1], dtype=float), -np.asarray(inputs[0][0], dtype=float))
        elif name in {"Sqr", "Abs"}:
            low, high = (np.asarray(end, dtype=float) for end in inputs[0])
            size = np.maximum(np.abs(low), np.abs(high))
            least = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
            result = (least**2, size**2) if name == "Sqr" else (least, size)
        elif name in {"TrueDiv", "Reciprocal"}:
            top, bottom = inputs if name == "TrueDiv" else ((np.ones(()), np.ones(())), inputs[0])
            if (np.asarray(bottom[0]) <= 0).any() and (np.asarray(bottom[1]) >= 0).any():
                raise Unreduced(
                    "a private covariate is divided by what may be 0. Compute it before the model, and give bounds to the result"
                )
            result = _corners(np.divide, [top, bottom])
        elif name == "IntDiv":
            if (np.asarray(inputs[1][0]) <= 0).any():
                raise Unreduced(
                    "a private covariate is divided by what may be 0. Compute it before the model, and give bounds to the result"
                )
            result = _corners(np.floor_divide, inputs)
        elif name == "Mod" and np.all(inputs[1][0] == inputs[1][1]) and np.all(np.asarray(inputs[1][0]) > 0):
            like = 0 * np.asarray(inputs[0][0], dtype=float)
            result = (like, inputs[1][0] - 1 + like if np.all(np.rint(inputs[1][0]) == inputs[1][0]) else inputs[1][0] + like)
        elif name in {"LT", "GT", "LE", "GE", "EQ", "NEQ", "AND", "OR", "Invert"}:
            shape = np.broadcast_shapes(*(np.shape(pair[0]) for pair in inputs))
            result = (np.zeros(shape), np.ones(shape))
        elif name == "Switch":
            low = np.minimum(inputs[1][0], inputs[2][0])
            result = (low + 0 * inputs[0][0], np.maximum(inputs[1][1], inputs[2][1]) + 0 * inputs[0][0])
        elif (
            name == "Pow"
            and np.all(inputs[1][0] == inputs[1][1])
            and np.all(np.rint(inputs[1][0]) == inputs[1][0])
            and np.all(inputs[1][0] > 0)
        ):
            result = _corners(np.power, inputs)
            if np.any(np.asarray(inputs[0][0]) < 0):
                straddles = (np.asarray(inputs[0][0]) <= 0) & (np.asarray(inputs[0][1]) >= 0)
                result = (np.where(straddles, np.minimum(result[0], 0.0), result[0]), result[1])
        elif name in CORNERS:
            result = inputs[0]
            for other in inputs[1:]:
                result = _corners(CORNERS[name], [result, other])
        else:
            raise Unreduced(
                f"a private covariate goes through {name}, whose values have no known bounds. Compute it before the model, and give"
                " bounds to the result"
            )
    if not (np.isfinite(result[0]).all() and np.isfinite(result[1]).all()):
        raise Unreduced("a private covariate becomes infinite within its bounds. Narrow the bounds")
    return result


def _corners(function: Callable, inputs: list[Interval]) -> Interval:
    one, other = ([np.asarray(end, dtype=float) for end in pair] for pair in inputs)
    values = [function(a, b) for a in one for b in other]
    return np.minimum.reduce(values), np.maximum.reduce(values)
