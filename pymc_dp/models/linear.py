"""A parameter that is affine in the unknowns, as features times coefficients.

The parameter of one record is written as the sum over f of D[f] phi[f]: D, the *features*, is computed from the record's covariates
alone, and phi, the *coefficients*, from the unknowns and from what all records of a cell share. The graph is read from its output
backwards, and every variable becomes a list of such terms: sums put lists together, products multiply them out, gathers and
sums along other axes act on both factors. No spelling is matched. The result is compared with the graph itself at made-up
points before it is used.
"""

from collections.abc import Sequence
from functools import reduce
from itertools import product

import numpy as np
import pytensor
import pytensor.tensor as pt
from pymc.model.fgraph import ModelVar
from pytensor.graph.basic import Apply, Constant, Variable, equal_computations
from pytensor.tensor.basic import Alloc, Join
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import Sum
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.subtensor import Subtensor

from pymc_dp.models.log_products import BASES, LogOfProduct
from pymc_dp.models.structure import Unreduced, above, constant_value, index_by_axis, is_product, is_unknown, scalar_name, substitute

type Terms = list[tuple[Variable, Variable]]
"""Features and coefficients, each with the axes of the parameter and one more, over which their product is summed."""
MOST = 400
"""The most features that are looked at."""


def affine(parameter: Variable, covariates: set[Variable]) -> Terms:
    """Features d and coefficients c with parameter = sum of (d * c).sum(-1) over the pairs; no two pairs have the same features.

    Parameters
    ----------
    parameter : Variable
        Reduced: on placeholders, axis 0 of its batch running over records.
    covariates : set of Variable
        The placeholders that features are made of; the others belong to the cells.

    Returns
    -------
    list of (d, c)
        Each with the axes of the parameter, of full length or one, and several features along the last axis. What no covariate
        is part of stands first, with the feature 1, if there is any.

    Raises
    ------
    Unreduced
        With the operation that is to blame.
    """
    merged = terms_of(parameter, covariates)
    _verify(parameter, merged)
    return merged


def terms_of(parameter: Variable, covariates: set[Variable]) -> Terms:
    """What ``affine`` returns, as it is read and not compared with the graph: for a choice of statistics, of which any is valid."""
    terms = [_alike(d.astype("float64"), c.astype("float64"), -1) for d, c in _Reading(covariates).terms(parameter)]
    return _merged(terms, covariates)


class _Reading:
    """One reading of one parameter."""

    def __init__(self, covariates: set[Variable]) -> None:
        self._covariates = covariates
        self._kinds: dict[Variable, tuple[bool, bool]] = {}
        self._done: dict[Variable, Terms] = {}

    def _kind(self, variable: Variable) -> tuple[bool, bool]:
        """Whether it rests on covariates, and whether on anything that belongs to unknowns or cells."""
        if variable not in self._kinds:
            roots = [v for v in above([variable], through_unknowns=False) if v.owner is None or is_unknown(v)]
            inputs = [v for v in roots if v in self._covariates]
            others = [v for v in roots if v not in self._covariates and not isinstance(v, Constant)]
            self._kinds[variable] = (bool(inputs), bool(others))
        return self._kinds[variable]

    def terms(self, variable: Variable) -> Terms:
        """The variable as a sum of features times coefficients."""
        if variable not in self._done:
            of_records, of_unknowns = self._kind(variable)
            unit = pt.ones((1,) * (variable.type.ndim + 1))
            if not of_records:
                self._done[variable] = [(unit, variable[..., None])]
            elif not of_unknowns and (number := _same_for_all(variable)) is not None:
                self._done[variable] = [(unit, number * unit)]
            elif not of_unknowns and _beside_ones(variable):
                self._done[variable] = self._of_node(variable.owner, variable)
            elif not of_unknowns:
                self._done[variable] = [(variable[..., None], unit)]
            else:
                self._done[variable] = self._of_node(variable.owner, variable)
            count = sum(length(d) or 0 for d, _ in self._done[variable])
            if count > MOST:
                raise Unreduced(f"it has more than {MOST} products of features and coefficients. Write fewer")
        return self._done[variable]

    def _of_node(self, node: Apply, variable: Variable) -> Terms:
        operation = node.op
        if isinstance(operation, Elemwise):
            return self._elemwise(node)
        if isinstance(operation, DimShuffle):
            order = [*operation.new_order, "x"]
            return [
                tuple(
                    part.dimshuffle(*[node.inputs[0].type.ndim if k == len(order) - 1 else o for k, o in enumerate(order)]) for part in term
                )
                for term in self.terms(node.inputs[0])
            ]
        if isinstance(operation, SpecifyShape):
            return self.terms(node.inputs[0])
        if isinstance(operation, Sum):
            return self._sum(self.terms(node.inputs[0]), _axes(operation, node.inputs[0].type.ndim))
        if is_product(operation):
            return self._dot(*node.inputs)
        if isinstance(operation, Subtensor):
            return self._slice(node)
        if isinstance(operation, Alloc):
            return self._alloc(node, variable)
        if isinstance(operation, Join):
            return self._join(node, variable)
        raise Unreduced(f"its mean passes covariates and unknowns through {_operation_name(node)}, so it is not linear in the unknowns")

    def _elemwise(self, node: Apply) -> Terms:
        name = scalar_name(node.op)
        if name in BASES:
            return _scaled(LogOfProduct(self._kind, self.terms, _times).of(node.inputs[0]), 1 / BASES[name])
        operands = [self.terms(operand) for operand in node.inputs]
        if name == "Add":
            return [term for terms in operands for term in terms]
        if name == "Sub":
            return [*operands[0], *_scaled(operands[1], -1.0)]
        if name == "Neg":
            return _scaled(operands[0], -1.0)
        if name == "Mul":
            result = operands[0]
            for terms in operands[1:]:
                result = _times(result, terms)
            return result
        if power := 2 if name == "Sqr" else _power(node.inputs[1]) if name == "Pow" else 0:
            return reduce(_times, [operands[0]] * power)
        if name == "TrueDiv":
            return _times(operands[0], self._reciprocal(node.inputs[1]))
        if name in {"Identity", "Cast"}:
            return operands[0]
        if name == "Second":  # the second, in the shape of both
            return operands[1]
        if name == "Switch" and not self._kind(node.inputs[0])[1]:
            condition = pt.neq(node.inputs[0], 0).astype("float64")
            yes, no = ([(d * (weight[..., None]), c) for d, c in terms] for terms, weight in zip(operands[1:], (condition, 1 - condition)))
            return [*yes, *no]
        raise Unreduced(f"its mean passes covariates and unknowns through {_operation_name(node)}, so it is not linear in the unknowns")

    def _reciprocal(self, variable: Variable) -> Terms:
        of_records, of_unknowns = self._kind(variable)
        if of_records and of_unknowns:
            raise Unreduced("its mean divides by what rests on covariates and unknowns, so it is not linear in the unknowns")
        unit = pt.ones((1,) * (variable.type.ndim + 1))
        return [((1 / variable)[..., None], unit)] if of_records else [(unit, (1 / variable)[..., None])]

    @staticmethod
    def _sum(terms: Terms, axes: Sequence[int]) -> Terms:
        result = []
        for d, c in terms:
            for axis in sorted(axes, reverse=True):
                d, c = _alike(d, c, axis)
                d, c = (pt.moveaxis(part, axis, -1) for part in (d, c))
                d, c = _alike(d, c, -2)
                d, c = (
                    part.reshape((*(part.shape[k] for k in range(part.type.ndim - 2)), fixed(part, -2) * fixed(part, -1)))
                    for part in (d, c)
                )
            result.append((d, c))
        return result

    def _dot(self, left: Variable, right: Variable) -> Terms:
        # (..., n, p) @ (..., p, k) is the sum over p of (..., n, p, 1) * (..., 1, p, k).
        first, second = self.terms(left), self.terms(right)
        vector_left, vector_right = left.type.ndim == 1, right.type.ndim == 1
        if not vector_right:
            first = [tuple(pt.expand_dims(part, -2) for part in term) for term in first]
        if not vector_left and not vector_right:
            second = [tuple(pt.expand_dims(part, -4) for part in term) for term in second]
        if vector_right:
            return self._sum(_times(first, second), [left.type.ndim - 1])
        batch = max(left.type.ndim, right.type.ndim)
        return self._sum(_times(first, second), [0 if vector_left else batch - 1])

    def _slice(self, node: Apply) -> Terms:
        operand, *indices = node.inputs
        if any(self._kind(index) != (False, False) for index in indices):
            raise Unreduced(f"its mean passes covariates and unknowns through {_operation_name(node)}, so it is not linear in the unknowns")
        lengths = [length(operand, axis) for axis in range(operand.type.ndim)]
        result = []
        for term in self.terms(operand):
            parts = []
            for part in term:
                for axis, entry in enumerate(index_by_axis(node)):
                    if entry != slice(None) and part.type.broadcastable[axis] and lengths[axis] != 1:
                        part = pt.repeat(part, lengths[axis], axis=axis)
                parts.append(node.op(part, *indices))
            result.append(tuple(parts))
        return result

    def _alloc(self, node: Apply, variable: Variable) -> Terms:
        value = node.inputs[0]
        missing = variable.type.ndim - value.type.ndim
        return [tuple(part.dimshuffle(*["x"] * missing, *range(part.type.ndim)) for part in term) for term in self.terms(value)]

    def _join(self, node: Apply, variable: Variable) -> Terms:
        axis = node.op.axis % variable.type.ndim
        lengths = [fixed(part, axis) for part in node.inputs]
        result = []
        for place, part in enumerate(node.inputs):
            # Each part keeps its place: its coefficients are 0 at the places of the others.
            inside = np.zeros(sum(lengths))
            start = sum(lengths[:place])
            inside[start : start + lengths[place]] = 1.0
            shape = [1] * (variable.type.ndim + 1)
            shape[axis] = len(inside)
            where = np.clip(np.arange(len(inside)) - start, 0, lengths[place] - 1)
            for d, c in self.terms(part):
                d, c = (side if side.type.broadcastable[axis] else pt.take(side, where, axis=axis) for side in (d, c))
                result.append((d, c * inside.reshape(shape)))
        return result


def _power(exponent: Variable) -> int:
    """An exponent, if it is one whole number from 1 to 4; otherwise 0."""
    number = _same_for_all(exponent)
    return int(number) if number in (1.0, 2.0, 3.0, 4.0) else 0


def _scaled(terms: Terms, factor: float) -> Terms:
    return [(d, c * factor) for d, c in terms]


def _times(first: Terms, second: Terms) -> Terms:
    """Every product of a term of one and a term of the other."""
    result = []
    for (d, c), (e, k) in product(first, second):
        d, c = _alike(d, c, -1)
        e, k = _alike(e, k, -1)
        products = []
        for left, right in ((d, e), (c, k)):
            outer = left[..., :, None] * right[..., None, :]
            products.append(outer.reshape((*(outer.shape[i] for i in range(outer.type.ndim - 2)), fixed(left) * fixed(right))))
        result.append(tuple(products))
    return result


def _alike(d: Variable, c: Variable, axis: int) -> tuple[Variable, Variable]:
    """Two factors, brought to the same length along an axis."""
    lengths = [length(d, axis), length(c, axis)]
    if lengths[0] == lengths[1]:
        return d, c
    known = [number for number in lengths if number is not None]
    if not known or (None in lengths and known[0] == 1):
        raise Unreduced("the number of its features is not fixed. Give its coefficients dims or a shape")
    whole = max(known)
    axis = axis % d.type.ndim
    factors = []
    for part, number in zip((d, c), lengths, strict=True):
        if number is None:  # it goes with the other, so it is as long
            part = pt.specify_shape(part, tuple(whole if k == axis else None for k in range(part.type.ndim)))
        elif number != whole:
            part = pt.repeat(part, whole, axis=axis)
        factors.append(part)
    return factors[0], factors[1]


def length(variable: Variable, axis: int = -1) -> int | None:
    """The length of an axis, where it is fixed."""
    fixed_length = variable.type.shape[axis]
    if fixed_length is None:
        fixed_length = constant_value(variable.shape[axis])
    return None if fixed_length is None else int(fixed_length)


def fixed(variable: Variable, axis: int = -1) -> int:
    """The length of an axis, which must be fixed."""
    fixed_length = length(variable, axis)
    if fixed_length is None:
        raise Unreduced("the number of its features is not fixed. Give its coefficients, and what it sums over, dims or a shape")
    return fixed_length


def _merged(terms: Terms, covariates: set[Variable]) -> Terms:
    """Terms with the same features put together; what has no covariate in it becomes one constant feature."""
    constant: list[Variable] = []
    rest: Terms = []
    for d, c in terms:
        if not any(v in covariates for v in above([d])):
            constant.append((d * c).sum(axis=-1, keepdims=True))
            continue
        for k, (e, other) in enumerate(rest):
            if equal_computations([d], [e]):
                rest[k] = (e, other + c)
                break
        else:
            rest.append((d, c))
    if constant:
        total = constant[0]
        for part in constant[1:]:
            total = total + part
        rest.insert(0, (pt.ones((1,) * total.type.ndim), total))
    return rest


def _same_for_all(variable: Variable) -> float | None:
    """The number that something computed from covariates is for every record, such as the ones of ``ones_like(x)`` or of ``x**0``."""
    node = variable.owner
    if node is None:
        value = constant_value(variable) if isinstance(variable, Constant) else None
        return float(np.ravel(value)[0]) if value is not None and np.size(value) and np.ptp(value) == 0 else None
    name = scalar_name(node.op)
    if name == "Pow" and _same_for_all(node.inputs[1]) == 0:
        return 1.0
    if isinstance(node.op, Alloc | DimShuffle | SpecifyShape) or name in {"Cast", "Identity"}:
        return _same_for_all(node.inputs[0])
    return _same_for_all(node.inputs[1]) if name == "Second" else None


def _beside_ones(variable: Variable) -> bool:
    """Whether columns are put side by side of which some are such a number."""
    node = variable.owner
    if node is None:
        return False
    if isinstance(node.op, Join):
        return any(_same_for_all(part) is not None for part in node.inputs)
    return isinstance(node.op, DimShuffle | SpecifyShape) and _beside_ones(node.inputs[0])


def _axes(operation: CAReduce, depth: int) -> list[int]:
    if operation.axis is None:
        return list(range(depth))
    return [axis % depth for axis in operation.axis]


def _operation_name(node: Apply) -> str:
    core = getattr(node.op, "scalar_op", getattr(node.op, "core_op", node.op))
    name = type(core).__name__
    return "an index" if "Subtensor" in name else name


def _verify(parameter: Variable, terms: Terms) -> None:
    """Compare both forms at made-up points; no data is looked at."""
    roots = _roots([parameter, *(part for term in terms for part in term)])
    if not all(hasattr(root.type, "dtype") for root in roots):
        raise Unreduced("its mean rests on something that is not an array")
    inputs = [root.type.clone(shape=tuple(1 if length == 1 else None for length in root.type.shape))() for root in roots]
    replaced = dict(zip(roots, inputs, strict=True))
    total: Variable = pt.zeros(())
    for d, c in terms:
        total = total + (substitute(d, replaced) * substitute(c, replaced)).sum(axis=-1)
    with pytensor.config.change_flags(numba__cache=False):
        function = pytensor.function(inputs, [substitute(parameter, replaced), total], mode="FAST_COMPILE", on_unused_input="ignore")
        for point in range(4):
            wanted, summed = (np.asarray(value, dtype=float) for value in function(*_made_up(roots, point)))
            if not np.allclose(wanted, np.broadcast_to(summed, wanted.shape), rtol=1e-6, atol=1e-9, equal_nan=True):
                raise Unreduced("its mean could not be verified to be linear in the unknowns. Write it with plain products and sums")


def _roots(variables: Sequence[Variable]) -> list[Variable]:
    """The placeholders, unknowns and variables of the model that these rest on."""
    roots, stack = [], list(variables)
    while stack:
        variable = stack.pop()
        if variable.owner is None or is_unknown(variable) or isinstance(variable.owner.op, ModelVar):
            if not isinstance(variable, Constant) and variable not in roots:
                roots.append(variable)
        else:
            stack.extend(variable.owner.inputs)
    return roots


def _made_up(roots: Sequence[Variable], point: int) -> list[np.ndarray]:
    """Values of rows, unknowns and cells: multiples of the golden ratio, without their whole parts, which are far from any pattern."""
    values: list[np.ndarray] = []
    for root in roots:
        shape = []
        for axis, known in enumerate(root.type.shape):
            fixed_length = known if known is not None or is_placeholder(root) else length(root, axis)
            shape.append(3 if fixed_length is None else fixed_length)
        scattered = np.modf((np.arange(np.prod(shape, dtype=int)) + 7.3 * len(values) + 101.7 * point) * 0.6180339887)[0]
        whole = root.type.dtype.startswith(("int", "uint", "bool"))
        values.append((scattered > 0.5 if whole else 0.2 + 1.3 * scattered).reshape(shape).astype(root.type.dtype))
    return values


def is_placeholder(variable: Variable) -> bool:
    """Whether it stands for data, along whose records any length will do."""
    return variable.owner is None and (variable.name or "").startswith("input_")
