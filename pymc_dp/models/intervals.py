"""Between which values an expression of bounded arrays lies.

Interval arithmetic on the graph: a bound found here is certain, if not always the smallest. An operation that is not known is
refused, never guessed. Ends may be infinite on the way, where a branch that is never taken would be; not in what is asked for.
"""

from collections.abc import Callable, Mapping
from functools import reduce

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Alloc, ARange, Join, MakeVector, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.special import LogAddExp, LogSoftmax, LogSumExp, Softmax, XLog1PY, XLogY
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_dp.models.structure import Unreduced, above, inlined, is_cast, is_wrapping, substitute


def _special(name: str) -> Callable:
    """A function of SciPy, which is slow to import and seldom needed."""

    def of(*given: np.ndarray, **how: object) -> np.ndarray:
        from scipy import special

        return getattr(special, name)(*given, **how)

    return of


type Interval = tuple[np.ndarray, np.ndarray]

INCREASING: dict[str, Callable] = {
    "Exp": np.exp, "Log": np.log, "Log1p": np.log1p, "Expm1": np.expm1, "Sqrt": np.sqrt, "Tanh": np.tanh, "Identity": np.positive,
    "ArcTan": np.arctan, "Floor": np.floor, "Ceil": np.ceil, "Log2": np.log2, "Log10": np.log10, "Sinh": np.sinh, "Sign": np.sign,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Softplus": lambda x: np.logaddexp(0.0, x), "Erf": _special("erf"),
    "RoundHalfToEven": np.rint, "Trunc": np.trunc,
}  # fmt: skip
"""Operations of one argument that never decrease."""
DECREASING: dict[str, Callable] = {
    "Neg": np.negative, "Erfc": _special("erfc"), "Erfcx": _special("erfcx"), "Log1mexp": lambda x: np.log(-np.expm1(x)),
}  # fmt: skip
"""Operations of one argument that never increase."""
CORNERS: dict[str, Callable] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Minimum": np.minimum, "Maximum": np.maximum, "ScalarMinimum": np.minimum,
    "ScalarMaximum": np.maximum,
}  # fmt: skip
"""Operations whose extremes lie where every argument is at one of its ends."""
COMPARED: dict[str, Callable] = {
    "LT": lambda a, b: (a[1] < b[0], a[0] < b[1]), "LE": lambda a, b: (a[1] <= b[0], a[0] <= b[1]),
    "GT": lambda a, b: (a[0] > b[1], a[1] > b[0]), "GE": lambda a, b: (a[0] >= b[1], a[1] >= b[0]),
    "EQ": lambda a, b: ((a[0] == a[1]) & (b[0] == b[1]) & (a[0] == b[0]), (a[0] <= b[1]) & (b[0] <= a[1])),
    "NEQ": lambda a, b: ((a[0] > b[1]) | (b[0] > a[1]), ~((a[0] == a[1]) & (b[0] == b[1]) & (a[0] == b[0]))),
}  # fmt: skip
"""Comparisons: whether they hold for certain, and whether they may."""
REARRANGING = (DimShuffle, Subtensor, AdvancedSubtensor, Alloc, Join, MakeVector, ScalarFromTensor, TensorFromScalar, SpecifyShape, Reshape)
KEEPING = (DimShuffle, Subtensor, SpecifyShape, Reshape)
"""Operations whose values are all among those of their first input."""
LOG_SUM, LOG_GAMMA, BESSEL = _special("logsumexp"), _special("gammaln"), _special("i0e")
LOWEST_LOG_GAMMA = 1.4616321449683623
"""Where the logarithm of the gamma function is least."""


def interval(variable: Variable, given: Mapping[Variable, Interval], norms: Mapping[Variable, float] | None = None) -> Interval:
    """The least and the largest value of every entry.

    Parameters
    ----------
    variable : Variable
    given : mapping
        Bounds of the arrays it is computed from, of their shapes, or of shapes that broadcast.
    norms : mapping, optional
        Of some of them, the largest Euclidean norm along the last axis.

    Raises
    ------
    Unreduced
    """
    result = _Arithmetic(given, norms or {}).of(variable)
    if not (np.isfinite(result[0]).all() and np.isfinite(result[1]).all()):
        raise Unreduced("a private covariate becomes infinite, or is divided by what may be 0, within its bounds. Narrow the bounds")
    return result


def is_product(operation: object) -> bool:
    """Whether it multiplies vectors and matrices."""
    return isinstance(operation, Dot) or (isinstance(operation, Blockwise) and isinstance(operation.core_op, Dot))


def by_entry(variable: Variable) -> Variable:
    """The same graph with every product of arrays as a sum of products.

    So what is computed of one record depends on neither where it stands nor how many others there are, not even by rounding: BLAS adds up a
    row in another order where it stands elsewhere.
    """
    products = [v for v in [variable, *above([variable])] if v.owner is not None and is_product(v.owner.op)]
    replaced: dict[Variable, Variable] = {}

    def sums(product: Variable) -> Variable:
        if product not in replaced:
            inner = {other for operand in product.owner.inputs for other in [operand, *above([operand])]} & set(products)
            one, other = (substitute(operand, {v: sums(v) for v in inner}) for operand in product.owner.inputs)
            if other.type.ndim == 1:
                replaced[product] = (one * other).sum(axis=-1)
            else:
                right = other if one.type.ndim == 1 else pt.expand_dims(other, -3)
                replaced[product] = (pt.expand_dims(one, -1) * right).sum(axis=-2)
        return replaced[product]

    return substitute(variable, {product: sums(product) for product in products})


class _Arithmetic:
    """One pass over a graph, every variable once."""

    def __init__(self, given: Mapping[Variable, Interval], norms: Mapping[Variable, float]) -> None:
        self.done: dict[Variable, Interval] = dict(given)
        self.given = given
        self.norms = norms

    def of(self, variable: Variable) -> Interval:
        if variable not in self.done:
            with np.errstate(all="ignore"):
                low, high = self._computed(variable)
            if np.isnan(low).any() or np.isnan(high).any():  # infinity less infinity: it may be anything
                low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
            self.done[variable] = _held((low, high), str(getattr(variable.type, "dtype", "")))
        return self.done[variable]

    def _computed(self, variable: Variable) -> Interval:
        if isinstance(variable, Constant):
            value = np.asarray(variable.data)
            return value, value
        node = variable.owner
        if node is None:
            raise Unreduced("it rests on something that has no bounds")
        if isinstance(node.op, Shape | Shape_i):
            shape = np.shape(self.of(node.inputs[0])[0])
            found = np.asarray(shape if isinstance(node.op, Shape) else shape[node.op.i], dtype=np.int64)
            return found, found
        if isinstance(node.op, CheckAndRaise) or is_wrapping(node.op):  # a check has no value of its own
            return self.of(node.inputs[0])
        inputs = [self.of(operand) for operand in node.inputs if hasattr(operand.type, "dtype")]
        if isinstance(node.op, REARRANGING):
            return _rearranged(node, inputs)
        if isinstance(node.op, ARange) and all((low == high).all() for low, high in inputs):
            found = np.arange(*(low.item() for low, _ in inputs), dtype=node.op.dtype)
            return found, found
        if isinstance(node.op, Elemwise) and type(node.op.scalar_op).__name__ == "Cast":
            return _cast(_floats(inputs[0]), str(variable.type.dtype))
        if isinstance(node.op, Elemwise) and type(node.op.scalar_op).__name__ == "IsNan":
            root = node.inputs[0]
            while is_cast(root) or (root.owner is not None and isinstance(root.owner.op, KEEPING)):
                root = root.owner.inputs[0]
            never = root in self.given or (isinstance(root, Constant) and not np.isnan(root.data).any())  # what is given is complete
            return np.zeros_like(inputs[0][0], dtype=float), np.full(np.shape(inputs[0][0]), float(not never))
        if isinstance(node.op, Elemwise):
            whole = all("int" in str(operand.type.dtype) for operand in node.inputs)
            return _elementwise(type(node.op.scalar_op).__name__, [_floats(pair) for pair in inputs], whole)
        if isinstance(node.op, CAReduce):
            return _reduced(node, inputs[0])
        if isinstance(node.op, Softmax | LogSoftmax):
            return _softmax(node.op.axis, _floats(inputs[0]), isinstance(node.op, LogSoftmax))
        if isinstance(node.op, LogAddExp):
            low, high = (reduce(np.logaddexp, ends) for ends in zip(*map(_floats, inputs), strict=True))
            return np.asarray(low), np.asarray(high)
        if isinstance(node.op, XLogY | XLog1PY):
            return self.of(inlined(node, variable))
        if isinstance(node.op, LogSumExp):
            low, high = (LOG_SUM(np.asarray(end, dtype=float), axis=node.op.axis) for end in inputs[0])
            return np.asarray(low), np.asarray(high)
        if is_product(node.op):
            return self._product(node, _floats(inputs[0]), _floats(inputs[1]))
        raise Unreduced(_unknown(type(node.op).__name__))

    def _product(self, node: Apply, one: Interval, other: Interval) -> Interval:
        """Sums of products: of intervals entry by entry; and no larger than the product of norms, where these are given."""
        dims = [operand.type.ndim for operand in node.inputs]
        left = [end[..., None, :] if dims[0] == 1 else end[..., :, :] for end in one]
        right = [end[..., :, None] if dims[1] == 1 else end for end in other]
        pairs = [np.expand_dims(end, -1) for end in left], [np.expand_dims(end, -3) for end in right]
        low, high = _corners(np.multiply, [tuple(pairs[0]), tuple(pairs[1])])  # type: ignore[list-item]
        low, high = low.sum(axis=-2), high.sum(axis=-2)
        names = [self._norm(operand) for operand in node.inputs]
        if any(norm is not None for norm in names):
            sizes = [np.maximum(np.abs(pair[0]), np.abs(pair[1])) for pair in (left, right)]
            across = [np.sqrt((sizes[0] ** 2).sum(axis=-1))[..., :, None], np.sqrt((sizes[1] ** 2).sum(axis=-2))[..., None, :]]
            across = [np.minimum(size, np.inf if norm is None else norm) for size, norm in zip(across, names, strict=True)]
            most = across[0] * across[1]
            low, high = np.maximum(low, -most), np.minimum(high, most)
        drop = ((-2,) if dims[0] == 1 else ()) + ((-1,) if dims[1] == 1 else ())
        return np.squeeze(low, drop), np.squeeze(high, drop)

    def _norm(self, operand: Variable) -> float | None:
        """The norm that was given, seen through casts, additional axes of length one, and slices, which are no longer."""
        while operand not in self.norms:
            node = operand.owner
            if node is None:
                return None
            kept = isinstance(node.op, Elemwise) and type(node.op.scalar_op).__name__ == "Cast"
            if isinstance(node.op, DimShuffle):
                order = [axis for axis in node.op.new_order if axis != "x"]
                kept = order == sorted(order) and len(order) == node.inputs[0].type.ndim
            if isinstance(node.op, Subtensor):
                kept = node.inputs[0].type.ndim == operand.type.ndim
            if not kept:
                return None
            operand = node.inputs[0]
        return self.norms[operand]


def _floats(pair: Interval) -> Interval:
    return np.asarray(pair[0], dtype=float), np.asarray(pair[1], dtype=float)


def _cast(pair: Interval, dtype: str) -> Interval:
    """To an integer what is behind the point is cut off."""
    if dtype == "bool":
        zero, inside = (pair[0] == 0) & (pair[1] == 0), (pair[0] <= 0) & (pair[1] >= 0)
        return (~inside).astype(float), (~zero).astype(float)
    return (np.trunc(pair[0]), np.trunc(pair[1])) if "int" in dtype else pair


def _held(pair: Interval, dtype: str) -> Interval:
    """What a kind of numbers makes of ends: integers beyond it begin again at its other end, and short ones round."""
    if dtype == "bool":
        return _cast(pair, dtype)
    if "int" in dtype:
        ends = np.iinfo(dtype)
        fits = (pair[0] >= ends.min) & (pair[1] < float(ends.max) + 1)
        return np.where(fits, pair[0], ends.min), np.where(fits, pair[1], ends.max)
    if dtype in {"float16", "float32"}:
        with np.errstate(over="ignore"):
            short = [np.asarray(end).astype(dtype).astype(float) for end in pair]
        off = [np.where(one == end, 0.0, 2 * np.finfo(dtype).eps * np.abs(one)) for one, end in zip(short, pair, strict=True)]
        return short[0] - off[0], short[1] + off[1]
    return pair


def _unknown(name: str) -> str:
    return (
        f"a private covariate goes through {name}, whose values have no known bounds. Compute it before the model, and give bounds to the"
        " result"
    )


def _rearranged(node: Apply, inputs: list[Interval]) -> Interval:
    if any(np.any(np.asarray(low) != np.asarray(high)) for low, high in inputs[1:]) and isinstance(node.op, AdvancedSubtensor | Subtensor):
        # What it points to may be anything in the table; at both ends of the indices there must be something.
        (low, high), like = inputs[0], _rearranged(node, [inputs[0], *((end, end) for end, _ in inputs[1:])])[0]
        _rearranged(node, [inputs[0], *((end, end) for _, end in inputs[1:])])
        return np.full(like.shape, np.min(low)), np.full(like.shape, np.max(high))
    ends = []
    for end in range(2):
        storage: list[list[object]] = [[None]]
        operands = [operand for operand in node.inputs if hasattr(operand.type, "dtype")]
        values = iter([np.asarray(pair[end], dtype=operand.type.dtype) for pair, operand in zip(inputs, operands, strict=True)])
        given = [next(values) if hasattr(operand.type, "dtype") else operand.data for operand in node.inputs]
        try:
            node.op.perform(node, given, storage)
        except IndexError:
            raise Unreduced("an index may lie outside its table. Give it bounds within the table") from None
        ends.append(np.asarray(storage[0][0]))
    return ends[0], ends[1]


def _reduced(node: Apply, pair: Interval) -> Interval:
    """Sums, largest and least values along axes; whether all or any hold."""
    name = type(node.op.scalar_op).__name__
    functions: dict[str, Callable] = {
        "Add": np.sum, "Maximum": np.max, "Minimum": np.min, "ScalarMaximum": np.max, "ScalarMinimum": np.min, "AND": np.min, "OR": np.max,
    }  # fmt: skip
    if name not in functions:
        raise Unreduced(_unknown(type(node.op).__name__))
    axes = None if node.op.axis is None else tuple(node.op.axis)
    low, high = (np.asarray(functions[name](np.asarray(end, dtype=float), axis=axes)) for end in pair)
    return low, high


def _softmax(axis: int | tuple[int, ...] | None, pair: Interval, logarithm: bool) -> Interval:
    """The share of an entry is least where it is low and all others are high."""
    low, high = pair
    axes = tuple(range(low.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
    last = tuple(range(-len(axes), 0))

    def share(own: np.ndarray, others: np.ndarray) -> np.ndarray:
        moved, rest = (np.moveaxis(end, axes, last) for end in (own, others))
        flat, rest = (end.reshape(*end.shape[: end.ndim - len(axes)], -1) for end in (moved, rest))
        each = [flat[..., k] - np.logaddexp(flat[..., k], LOG_SUM(np.delete(rest, k, axis=-1), axis=-1)) for k in range(flat.shape[-1])]
        return np.moveaxis(np.stack(each, axis=-1).reshape(moved.shape), last, axes)

    found = share(low, high), share(high, low)
    return found if logarithm else (np.exp(found[0]), np.exp(found[1]))


def _elementwise(name: str, inputs: list[Interval], whole: bool) -> Interval:
    low, high = inputs[0]
    if name == "Second":
        like = np.zeros_like(low)
        return inputs[1][0] + like, inputs[1][1] + like
    if name in INCREASING:
        return INCREASING[name](low), INCREASING[name](high)
    if name in DECREASING:
        return DECREASING[name](high), DECREASING[name](low)
    if name in {"Sqr", "Abs"}:
        size = np.maximum(np.abs(low), np.abs(high))
        least = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
        return (least**2, size**2) if name == "Sqr" else (least, size)
    if name == "GammaLn":
        ends = LOG_GAMMA(low), LOG_GAMMA(high)
        inside = (low <= LOWEST_LOG_GAMMA) & (high >= LOWEST_LOG_GAMMA)
        least = np.where(inside, LOG_GAMMA(LOWEST_LOG_GAMMA), np.minimum(*ends))
        return np.where(low >= 0, least, -np.inf), np.where(low >= 0, np.maximum(*ends), np.inf)
    if name == "I0e":  # even, and never increasing from 0 on
        size = np.maximum(np.abs(low), np.abs(high))
        least = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
        return BESSEL(size), BESSEL(least)
    if name in {"Cos", "Sin"}:
        return -np.ones_like(low), np.ones_like(low)
    if name in {"TrueDiv", "Reciprocal"}:
        top, bottom = inputs if name == "TrueDiv" else ((np.ones(()), np.ones(())), inputs[0])
        through_zero = (bottom[0] <= 0) & (bottom[1] >= 0)
        corners = _corners(np.divide, [top, bottom])
        return np.where(through_zero, -np.inf, corners[0]), np.where(through_zero, np.inf, corners[1])
    if name == "IntDiv":
        if (inputs[1][0] <= 0).any():
            raise Unreduced("a private covariate is divided by what may be 0. Compute it before the model, and give bounds to the result")
        return _corners(np.floor_divide, inputs)
    if name == "Clip":  # never decreasing in any of the three, unless the ends are the wrong way round
        if (inputs[1][1] > inputs[2][0]).any():
            raise Unreduced("a private covariate is clipped between ends of which the lower may be the higher. Write the lower end first")
        return tuple(np.minimum(np.maximum(*ends[:2]), ends[2]) for ends in zip(*inputs, strict=True))
    if name == "Mod" and np.all(inputs[1][0] == inputs[1][1]) and np.all(inputs[1][0] > 0):
        like = np.zeros_like(low)
        return like, inputs[1][0] - whole + like
    if name in COMPARED:
        certain, possible = COMPARED[name](*inputs)
        return certain.astype(float), possible.astype(float)
    if name in {"AND", "OR"}:
        _check_truth(inputs)
        function = np.minimum if name == "AND" else np.maximum
        for other_low, other_high in inputs[1:]:
            low, high = function(low, other_low), function(high, other_high)
        return low, high
    if name == "Invert":
        if whole:
            raise Unreduced(_unknown("an operation on bits"))
        return 1 - high, 1 - low
    if name == "Switch":
        (certain, possible), (first_low, first_high), (second_low, second_high) = inputs
        union = np.minimum(first_low, second_low), np.maximum(first_high, second_high)
        yes, no = certain >= 1, possible <= 0
        return (
            np.where(yes, first_low, np.where(no, second_low, union[0])),
            np.where(yes, first_high, np.where(no, second_high, union[1])),
        )
    if name == "Pow":
        if whole and (inputs[1][0] < 0).any():
            raise Unreduced("a whole number may be raised to a negative power, which has no value. Write 2.0 ** x for 2 ** x")
        return _power(*inputs)
    if name in CORNERS:
        result = inputs[0]
        for other in inputs[1:]:
            result = _corners(CORNERS[name], [result, other])
        return result
    raise Unreduced(_unknown(name))


def _check_truth(inputs: list[Interval]) -> None:
    """Of integers these work on bits, which no bounds are known for."""
    if any(((end != 0) & (end != 1)).any() for pair in inputs for end in pair):
        raise Unreduced(_unknown("an operation on bits"))


def _power(base: Interval, exponent: Interval) -> Interval:
    """Of a base that is not negative in any exponent, by its logarithm; of any base in a whole exponent that is the same for all."""
    whole = np.all(exponent[0] == exponent[1]) and np.all(np.rint(exponent[0]) == exponent[0]) and np.all(exponent[0] > 0)
    if whole:
        low, high = _corners(np.power, [base, exponent])
        straddles = (base[0] <= 0) & (base[1] >= 0)
        return np.where(straddles, np.minimum(low, 0.0), low), high
    logs = np.log(np.maximum(base[0], 0)), np.log(np.maximum(base[1], 0))
    low, high = _corners(np.multiply, [logs, exponent])
    negative = base[0] < 0
    return np.where(negative, -np.inf, np.exp(low)), np.where(negative, np.inf, np.exp(high))


def _corners(function: Callable, inputs: list[Interval]) -> Interval:
    one, other = inputs
    values = [function(a, b) for a in one for b in other]
    return np.minimum.reduce(values), np.maximum.reduce(values)
