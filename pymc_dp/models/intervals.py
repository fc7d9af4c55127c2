"""The range of an expression, given bounds of its arrays.

Interval arithmetic on the graph: a bound found here is certain, if not always the smallest. An operation that is not known is
refused, never guessed. Ends may be infinite on the way, where a branch that is never taken would be; not in what is asked for.
"""

from collections.abc import Callable, Collection, Mapping
from functools import reduce

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Alloc, ARange, Join, MakeVector, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.special import LogAddExp, LogSoftmax, LogSumExp, Softmax, XLog1PY, XLogY
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_dp.models.elementwise_intervals import Interval, corners, elementwise, special, unknown_operation
from pymc_dp.models.structure import Unreduced, above, inlined, is_cast, is_product, is_wrapping, scalar_name, substitute

REARRANGING = (DimShuffle, Subtensor, AdvancedSubtensor, Alloc, Join, MakeVector, ScalarFromTensor, TensorFromScalar, SpecifyShape, Reshape)
KEEPING = (DimShuffle, Subtensor, SpecifyShape, Reshape)
"""Operations whose values are all among those of their first input."""
LOG_SUM = special("logsumexp")
BELOW = {"LT": True, "LE": True, "GT": False, "GE": False}
"""Whether a comparison holds for small values of what stands first."""


def interval(variable: Variable, bounds: Mapping[Variable, Interval], norms: Mapping[Variable, float] | None = None) -> Interval:
    """The least and the largest value of every entry.

    Parameters
    ----------
    variable : Variable
    bounds : mapping
        Of the arrays it is computed from: of their shapes, or of shapes that broadcast.
    norms : mapping, optional
        Of some of them, the largest Euclidean norm along the last axis.

    Raises
    ------
    Unreduced
    """
    return _finite(ends_of(variable, bounds, norms))


def _finite(result: Interval) -> Interval:
    """An interval as it is; ``Unreduced`` is raised where one of its ends is not finite."""
    if not (np.isfinite(result[0]).all() and np.isfinite(result[1]).all()):
        raise Unreduced(
            "a private covariate becomes infinite, or is divided by what may be 0, within its bounds. Narrow the bounds: what divides, or"
            " has a logarithm, as an exposure has, must be above 0"
        )
    return result


def products_as_sums(variable: Variable) -> Variable:
    """A graph with every product of arrays written as a sum of products.

    So what is computed of one record depends on neither where it stands nor how many others there are, not even by rounding: BLAS adds up a
    row in another order where it stands elsewhere.
    """
    products = [v for v in [variable, *above([variable])] if v.owner is not None and is_product(v.owner.op)]
    replaced: dict[Variable, Variable] = {}

    def sums(product: Variable) -> Variable:
        if product not in replaced:
            inner = {other for operand in product.owner.inputs for other in [operand, *above([operand])]} & set(products)
            left, right = (substitute(operand, {v: sums(v) for v in inner}) for operand in product.owner.inputs)
            if right.type.ndim == 1:
                replaced[product] = (left * right).sum(axis=-1)
            else:
                right = right if left.type.ndim == 1 else pt.expand_dims(right, -3)
                replaced[product] = (pt.expand_dims(left, -1) * right).sum(axis=-2)
        return replaced[product]

    return substitute(variable, {product: sums(product) for product in products})


def ends_of(variable: Variable, bounds: Mapping[Variable, Interval], norms: Mapping[Variable, float] | None = None) -> Interval:
    """The interval of a variable as ``interval`` has it, but with infinite ends where a value has no bound."""
    return _Arithmetic(bounds, norms or {}).of(variable)


class RepeatedInterval:
    """The interval of one variable again and again, where only some of the bounds change: what does not rest on these is computed once.

    Parameters
    ----------
    variable : Variable
    bounds : mapping
        Of the arrays that stay as they are.
    changing : collection of Variable
        The others, whose bounds are told at every call.
    norms : mapping
        See ``interval``.
    """

    def __init__(
        self, variable: Variable, bounds: Mapping[Variable, Interval], changing: Collection[Variable], norms: Mapping[Variable, float]
    ) -> None:
        self.variable, self.bounds, self.norms = variable, bounds, norms
        self.changing = frozenset(changing)
        self.known: dict[Variable, Interval] = {}

    def __call__(self, changed: Mapping[Variable, Interval]) -> Interval:
        """The interval, for these bounds of what changes; see ``interval`` for what is raised."""
        arithmetic = _Arithmetic({**self.bounds, **changed}, self.norms, self.known)
        result = _finite(arithmetic.of(self.variable))
        if not self.known:
            self.known = {v: ends for v, ends in arithmetic.done.items() if self.changing.isdisjoint([v, *above([v])])}
        return result


class _Arithmetic:
    """One pass over a graph, every variable once."""

    def __init__(
        self, bounds: Mapping[Variable, Interval], norms: Mapping[Variable, float], known: Mapping[Variable, Interval] | None = None
    ) -> None:
        self.done: dict[Variable, Interval] = {**(known or {}), **bounds}
        self.bounds = bounds
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
            lengths = np.asarray(shape if isinstance(node.op, Shape) else shape[node.op.i], dtype=np.int64)
            return lengths, lengths
        if isinstance(node.op, CheckAndRaise) or is_wrapping(node.op):  # a check has no value of its own
            return self.of(node.inputs[0])
        if scalar_name(node.op) == "Switch":
            return self._switched(node)
        inputs = [self.of(operand) for operand in node.inputs if hasattr(operand.type, "dtype")]
        if isinstance(node.op, REARRANGING):
            return _rearranged(node, inputs)
        if isinstance(node.op, ARange) and all((low == high).all() for low, high in inputs):
            numbers = np.arange(*(low.item() for low, _ in inputs), dtype=node.op.dtype)
            return numbers, numbers
        if scalar_name(node.op) == "Cast":
            return _cast(_floats(inputs[0]), str(variable.type.dtype))
        if scalar_name(node.op) == "IsNan":
            root = node.inputs[0]
            while is_cast(root) or (root.owner is not None and isinstance(root.owner.op, KEEPING)):
                root = root.owner.inputs[0]
            never = root in self.bounds or (isinstance(root, Constant) and not np.isnan(root.data).any())  # what has bounds is complete
            return np.zeros_like(inputs[0][0], dtype=float), np.full(np.shape(inputs[0][0]), float(not never))
        if isinstance(node.op, Elemwise):
            whole = all("int" in str(operand.type.dtype) for operand in node.inputs)
            return elementwise(scalar_name(node.op), [_floats(pair) for pair in inputs], whole)
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
        raise Unreduced(unknown_operation(type(node.op).__name__))

    def _switched(self, node: Apply) -> Interval:
        """The interval of a switch: of both branches, each over the values for which it is taken, on one side of a number that is compared.

        Where a branch is never taken its interval is that at the number itself, and does not count.
        """
        condition, *branches = node.inputs
        pairs = [self._where(condition, holds).of(branch) for holds, branch in zip((True, False), branches, strict=True)]
        return elementwise("Switch", [_floats(self.of(condition)), *map(_floats, pairs)], whole=False)

    def _where(self, condition: Variable, holds: bool) -> "_Arithmetic":
        """This arithmetic, restricted to values for which a comparison with a number holds, or does not."""
        node = condition.owner
        name = "" if node is None else scalar_name(node.op)
        equal = name in ("EQ", "NEQ") and (name == "EQ") == holds
        if name not in BELOW and not equal:
            return self
        low, high = zip(*map(_floats, map(self.of, node.inputs)), strict=True)
        fixed = [bool((a == b).all()) for a, b in zip(low, high, strict=True)]
        place = fixed.index(False) if sum(fixed) == 1 else 0
        number = bool(np.isfinite(low[place]).all() and np.isfinite(high[place]).all())  # what may be none compares to none
        if sum(fixed) != 1 or not number:
            return self
        limit, compared, below = low[1 - place], node.inputs[place], (BELOW.get(name) == (place == 0)) == holds
        ends = [np.broadcast_to(limit, np.broadcast_shapes(end.shape, limit.shape)) if equal else end for end in (low[place], high[place])]
        narrowed = [(np.minimum if below else np.maximum)(end, limit) for end in ends]
        within = _Arithmetic(self.bounds, self.norms)
        rests: dict[Variable, bool] = {compared: True}
        within.done = {variable: pair for variable, pair in self.done.items() if not _rests_on(variable, rests)}
        within.done[compared] = narrowed[0], narrowed[1]
        return within

    def _product(self, node: Apply, first: Interval, second: Interval) -> Interval:
        """Sums of products: of intervals entry by entry; and no larger than the product of norms, where these are given."""
        dims = [operand.type.ndim for operand in node.inputs]
        left = [end[..., None, :] if dims[0] == 1 else end[..., :, :] for end in first]
        right = [end[..., :, None] if dims[1] == 1 else end for end in second]
        pairs = [np.expand_dims(end, -1) for end in left], [np.expand_dims(end, -3) for end in right]
        low, high = corners(np.multiply, (pairs[0][0], pairs[0][1]), (pairs[1][0], pairs[1][1]))
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
            kept = scalar_name(node.op) == "Cast"
            if isinstance(node.op, DimShuffle):
                order = [axis for axis in node.op.new_order if axis != "x"]
                kept = order == sorted(order) and len(order) == node.inputs[0].type.ndim
            if isinstance(node.op, Subtensor):
                kept = node.inputs[0].type.ndim == operand.type.ndim
            if not kept:
                return None
            operand = node.inputs[0]
        return self.norms[operand]


def _rests_on(variable: Variable, known: dict[Variable, bool]) -> bool:
    """Whether a variable is computed from one that is known to count; ``known`` collects answers."""
    if variable not in known:
        known[variable] = variable.owner is not None and any(_rests_on(operand, known) for operand in variable.owner.inputs)
    return known[variable]


def _floats(pair: Interval) -> Interval:
    return np.asarray(pair[0], dtype=float), np.asarray(pair[1], dtype=float)


def _cast(pair: Interval, dtype: str) -> Interval:
    """The interval of a value turned into another kind of number: what is behind the point is cut off for integers."""
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
        off = [np.where(rounded == end, 0.0, 2 * np.finfo(dtype).eps * np.abs(rounded)) for rounded, end in zip(short, pair, strict=True)]
        return short[0] - off[0], short[1] + off[1]
    return pair


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
        arguments = [next(values) if hasattr(operand.type, "dtype") else operand.data for operand in node.inputs]
        try:
            node.op.perform(node, arguments, storage)
        except IndexError:
            raise Unreduced("an index may lie outside its table. Give it bounds within the table") from None
        ends.append(np.asarray(storage[0][0]))
    return ends[0], ends[1]


def _reduced(node: Apply, pair: Interval) -> Interval:
    """Sums, largest and least values along axes; whether all or any hold."""
    name = scalar_name(node.op)
    functions: dict[str, Callable] = {
        "Add": np.sum, "Maximum": np.max, "Minimum": np.min, "ScalarMaximum": np.max, "ScalarMinimum": np.min, "AND": np.min, "OR": np.max,
    }  # fmt: skip
    if name not in functions:
        raise Unreduced(unknown_operation(type(node.op).__name__))
    axes = None if node.op.axis is None else tuple(node.op.axis)
    low, high = (np.asarray(functions[name](np.asarray(end, dtype=float), axis=axes)) for end in pair)
    return low, high


def _softmax(axis: int | tuple[int, ...] | None, pair: Interval, logarithm: bool) -> Interval:
    """The share of an entry is least where it is low and all others are high."""
    low, high = pair
    axes = tuple(range(low.ndim)) if axis is None else (axis,) if isinstance(axis, int) else axis
    last = tuple(range(-len(axes), 0))

    def share(entries: np.ndarray, others: np.ndarray) -> np.ndarray:
        moved, rest = (np.moveaxis(end, axes, last) for end in (entries, others))
        flat, rest = (end.reshape(*end.shape[: end.ndim - len(axes)], -1) for end in (moved, rest))
        shares = [flat[..., k] - np.logaddexp(flat[..., k], LOG_SUM(np.delete(rest, k, axis=-1), axis=-1)) for k in range(flat.shape[-1])]
        return np.moveaxis(np.stack(shares, axis=-1).reshape(moved.shape), last, axes)

    least, most = share(low, high), share(high, low)
    return (least, most) if logarithm else (np.exp(least), np.exp(most))
