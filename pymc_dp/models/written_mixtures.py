"""Mixtures that a user wrote out, log(w1 f1(t) + w2 f2(t)), taken apart into weights and densities of their components.

Every component is then integrated by itself, and keeps its weight however narrow it is between the nodes of quadrature. What a formula says
of made-up numbers tells which of its factors is the weight: the rest must integrate to 1. Weights must add up to 1.
"""

from collections.abc import Callable, Sequence
from itertools import combinations
from math import prod
from typing import Protocol

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.transforms import _default_transform
from pymc.logprob.transforms import SimplexTransform
from pymc.model.fgraph import ModelFreeRV, ModelObservedRV
from pytensor.graph.basic import Variable
from pytensor.tensor.elemwise import CAReduce, Elemwise
from pytensor.tensor.special import LogSoftmax, Softmax

from pymc_dp.models.bounded_priors import TrimmedSimplexTransform
from pymc_dp.models.custom_density import integrals_of_rows, is_whole_density, problem_of_values, rows_for, values_of_rows
from pymc_dp.models.likelihood_rv import LikelihoodRV, Written
from pymc_dp.models.log_sums import factors_of, opened
from pymc_dp.models.probabilities import IRRATIONAL, ROWS, at_made_up_numbers
from pymc_dp.models.record_formulas import PASSED, RecordFormula, resting_on
from pymc_dp.models.structure import SKIPPED, Unreduced, above, arrays_above, constant_value, scalar_name, substitute
from pymc_dp.models.tabulated import number_in
from pymc_dp.models.unknowns import support_of

ANALYTIC = {
    *("Add", "Sub", "Mul", "TrueDiv", "Neg", "Exp", "Log", "Log1p", "Expm1", "Sigmoid", "Softplus", "Sqr", "Sqrt", "Reciprocal", "Cast"),
    *("Identity", "Log1mexp", "LogAddExp", "Second"),
}  # fmt: skip
"""Operations on numbers, and sums, that are analytic functions where they are defined."""
MOVING = {
    *("DimShuffle", "Subtensor", "AdvancedSubtensor", "AdvancedSubtensor1", "MakeVector", "Join", "Reshape", "Alloc", "SpecifyShape"),
    *("Softmax", "LogSoftmax", "LogSumExp", "TensorFromScalar", "ScalarFromTensor", "Shape", "Shape_i"),
}  # fmt: skip
"""Operations that move numbers, and functions of several that are analytic."""
TRIED = 16
"""At so many numbers of shares it is tried whether weights that are computed from them are between 0 and 1."""
MOST_OPENED = 32
"""So many sums in a formula are taken apart."""
MOST_FACTORS = 8
"""Of so many factors of a component it is tried which of them are its weight."""
NEARLY = 0.01
"""Logarithms that differ by less may be the same: which they are is then asked more closely."""


class Formula(Protocol):
    """A formula of the values in an array, and the parameters that it has beside them."""

    parameters: list[Variable]

    def written(self, *, part: Variable | None = None) -> Written:
        """The formula, or a part of it, as a function of a value and of the parameters."""


def is_sum(formula: Variable, array: Variable) -> bool:
    """Whether a formula of the values in an array is the logarithm of a sum, or of one and factors."""
    return bool(opened(factors_of(formula), resting_on([array])))


def as_mixture(formula: Variable, array: Variable) -> tuple[LikelihoodRV, list[Variable]] | None:
    """The mixture that a Potential's formula of the values in an array is, and its parameters; None where it is not understood.

    The formula is made of entries that belong to one record each.
    """
    found = components_of(formula, array, lambda part: RecordFormula(part, {array: None}).few())
    weights = [weight for weight, _ in found]
    if len(found) < 2 or not add_up(weights) or not (are_logarithms(weights, formula) or are_shares(weights)):
        return None
    weighted = [(pt.exp(weight), density) for weight, density in found]
    whole = RecordFormula(pt.log(pt.add(*(weight * pt.exp(density) for weight, density in weighted))), {array: None})
    parts = tuple((whole.written(part=weight), whole.written(part=density)) for weight, density in weighted)
    return LikelihoodRV(whole.written(), components=parts), whole.parameters


def components_of(formula: Variable, array: Variable, read: Callable[[Variable], Formula]) -> list[tuple[Variable, Variable]]:
    """The logarithms of weights and densities that a formula of the values in an array is the sum of; nothing where it is no such sum.

    Sums within sums are taken apart as far as what remains are densities with weights. ``read`` says how a part of it is evaluated; it
    may raise ``Unreduced``.
    """
    rests, left = resting_on([array]), MOST_OPENED

    def components(logarithm: Variable) -> list[tuple[Variable, Variable]]:
        nonlocal left
        factors = factors_of(logarithm)
        terms, left = opened(factors, rests), left - 1
        if terms and left >= 0:
            parts = [components(term) for term in terms]
            if all(parts):
                return [component for part in parts for component in part]
        return _component(factors, rests, read)

    return components(formula)


def _component(
    factors: Sequence[Variable], rests: Callable[[Variable], bool], read: Callable[[Variable], Formula]
) -> list[tuple[Variable, Variable]]:
    """The logarithms of a weight and of a density whose product a term is, as the only component; none where it is no such product."""
    factors = [factor if factor.type.ndim else pt.expand_dims(factor, 0) for factor in factors]
    known, values = [factor for factor in factors if not rests(factor)], [factor for factor in factors if rests(factor)]
    if not values or not known or len(known) > MOST_FACTORS:
        return []
    for weights in _sets_of_weights(known, _summed(factors), read):
        density = _summed([*values, *(factor for factor in known if factor not in weights)])
        try:
            function = read(density)
        except Unreduced:
            continue
        written = function.written()
        if is_whole_density(written, function.parameters):
            if problem := problem_of_values(written, function.parameters):
                raise Unreduced(problem)
            return [(_summed(weights), density)]
    return []


def _sets_of_weights(known: Sequence[Variable], term: Variable, read: Callable[[Variable], Formula]) -> list[list[Variable]]:
    """Factors of a term without values that may together be its weight, few of them first: their product is what the term integrates to.

    Compared at made-up numbers; where there are no numbers, each factor may be it by itself.
    """
    if len(known) == 1:
        return [[*known]]
    try:
        function = read(term)
        rows, _ = rows_for(function.written(), function.parameters)
        with np.errstate(all="ignore"):
            whole = np.log(integrals_of_rows(function.written(), rows))
        each = [values_of_rows(function.written(part=factor), rows, np.zeros(1))[:, 0] for factor in known]
    except Unreduced:
        return [[factor] for factor in known]
    there = np.isfinite([whole, *each]).all(axis=0)
    if not there.any():
        return [[factor] for factor in known]
    sets = [list(places) for many in range(1, len(known) + 1) for places in combinations(range(len(known)), many)]
    off = [np.abs(sum(each[place][there] for place in places) - whole[there]) for places in sets]
    return [[known[place] for place in places] for places, far in zip(sets, off, strict=True) if 2 * (far <= NEARLY).sum() > len(far)]


def _summed(factors: Sequence[Variable]) -> Variable:
    return pt.add(*factors) if len(factors) > 1 else factors[0]


def add_up(weights: Sequence[Variable]) -> bool:
    """Whether weights, of which these are the logarithms, add up to 1, at made-up numbers of unknowns and of arrays; no array is read.

    Unknowns that are vectors must be proportions. Where the logarithm of a weight is no number, as that of -1, they do not.
    """
    unknowns = [v.owner.inputs[0] for v in above(list(weights), through_unknowns=False) if v.owner and isinstance(v.owner.op, ModelFreeRV)]
    vectors = [random for random in unknowns if getattr(random.owner.op, "ndim_supp", 1)]
    if not all(isinstance(_default_transform(random.owner.op, random), SimplexTransform | TrimmedSimplexTransform) for random in vectors):
        return False
    if not all(_is_smooth(v) for v in above(list(weights), through_unknowns=False)):
        return False
    made_up = {array: _made_up(array) for array in arrays_above(list(weights))}
    try:
        values = at_made_up_numbers([substitute(pt.exp(weight), dict(made_up), SKIPPED) for weight in weights], [])
    except Exception:  # what has no made-up number, or is not defined there
        return False
    return bool(np.all(np.isfinite(sum(values))) and np.allclose(sum(values), 1))


def are_logarithms(weights: Sequence[Variable], formula: Variable) -> bool:
    """Whether a formula itself takes the logarithms of its weights, so that it has no value where one is negative."""
    own = set(above([formula]))
    return all(v in own for v in above([*weights], through_unknowns=False) if v.owner is not None and scalar_name(v.owner.op) == "Log")


def are_shares(weights: Sequence[Variable]) -> bool:
    """Whether weights, of which these are the logarithms, are computed from shares alone, unknowns between 0 and 1 and functions that are,
    and are shares wherever that is tried: one share divided by another need not be.

    A sum of densities may be one with a weight above 1, and another that is negative.
    """
    return _rest_on_shares(weights) and _stay_shares(weights)


def _rest_on_shares(weights: Sequence[Variable]) -> bool:
    """Whether all numbers that weights are computed from are shares, or functions whose values are."""
    stack, seen = [*weights], set()
    while stack:
        variable = stack.pop()
        node = variable.owner
        if node is None or variable in seen or scalar_name(node.op) == "Sigmoid" or isinstance(node.op, Softmax | LogSoftmax):
            continue
        seen.add(variable)
        if not isinstance(node.op, ModelFreeRV):
            stack.extend(node.inputs)
        elif not getattr(node.inputs[0].owner.op, "ndim_supp", 1):
            ends = support_of(node.inputs[0])
            if ends is None or np.min(ends[0]) < 0 or np.max(ends[1]) > 1:
                return False
    return True


def _stay_shares(weights: Sequence[Variable]) -> bool:
    """Whether weights are between 0 and 1 at several numbers of the single unknowns that they rest on, many of them near their ends."""
    nodes = {v: v.owner.inputs[0] for v in above(list(weights), through_unknowns=False) if v.owner and isinstance(v.owner.op, ModelFreeRV)}
    singles = {v: random for v, random in nodes.items() if not getattr(random.owner.op, "ndim_supp", 1)}
    shapes = [constant_value(random.shape) for random in singles.values()]
    if any(shape is None for shape in shapes):
        return False
    many = [prod(map(int, shape)) for shape in shapes if shape is not None]
    places = np.arange(1, TRIED + 1)[:, None] * 2.0 ** (np.arange(1, sum(many) + 1) / (sum(many) + 1)) % 1
    made_up: dict[Variable, Variable] = {array: _made_up(array) for array in arrays_above(list(weights))}
    tried = []
    for row in np.sin(np.pi / 2 * places) ** 2:
        parts = np.split(row, np.cumsum(many))[:-1]
        numbers = {v: _between_ends(v, singles[v], part) for v, part in zip(singles, parts, strict=True)}
        tried += [substitute(pt.exp(weight), made_up | numbers, SKIPPED).flatten() for weight in weights]
    try:
        [found] = at_made_up_numbers([pt.concatenate(tried)], [])
    except Exception:  # what has no made-up number, or is not defined there
        return False
    return bool((np.abs(found - 0.5) <= 0.5 + np.finfo(float).eps * len(weights)).all())


def _between_ends(unknown: Variable, random: Variable, places: np.ndarray) -> Variable:
    """Numbers of an unknown at places from 0 to 1 of where it may be; of one with an infinite end, as a logit has, between -4 and 4."""
    ends = support_of(random)
    low, high = ends if ends is not None and all(np.isfinite(end).all() for end in ends) else (-4.0, 4.0)
    shape = constant_value(random.shape)
    return pt.constant((low + (high - low) * places.reshape(shape)).astype(unknown.type.dtype))


def _is_smooth(variable: Variable) -> bool:
    """Whether a number is computed by analytic functions, of which a sum that is 1 at made-up numbers is 1 wherever they are connected to
    these; those of ``abs``, ``clip`` or ``switch`` need not be.
    """
    if variable.owner is None or isinstance(variable.owner.op, (ModelFreeRV, ModelObservedRV, *PASSED)):
        return True
    operation = variable.owner.op
    if scalar_name(operation) == "Pow":  # a power of a negative number is one at whole exponents alone
        return number_in(variable.owner.inputs[1]) is not None
    return scalar_name(operation) in ANALYTIC or (not isinstance(operation, Elemwise | CAReduce) and type(operation).__name__ in MOVING)


def _made_up(array: Variable) -> Variable:
    """Two rows of numbers in the place of an array, which do not add up to 1; whole ones are indices or flags, 0 and 1."""
    shape = tuple(ROWS if axis == 0 or length is None else length for axis, length in enumerate(array.type.shape))
    places = np.arange(1, prod(shape) + 1).reshape(shape)
    values = places * IRRATIONAL % 1 if array.type.dtype.startswith("float") else (places + 1) % 2
    return pt.constant(values.astype(array.type.dtype))
