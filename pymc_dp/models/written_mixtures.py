"""Mixtures that a user wrote out, log(w1 f1(t) + w2 f2(t)), taken apart into weights and densities of their components.

Every component is then integrated by itself, and keeps its weight however narrow it is between the nodes of quadrature. What a formula says
of made-up numbers tells which of its factors is the weight: the rest must integrate to 1. Weights must add up to 1.
"""

from collections.abc import Sequence
from math import prod

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.transforms import _default_transform
from pymc.logprob.transforms import SimplexTransform
from pymc.model.fgraph import ModelFreeRV, ModelObservedRV
from pytensor.graph.basic import Variable
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.special import LogAddExp

from pymc_dp.models.bounded_priors import TrimmedSimplexTransform
from pymc_dp.models.custom_density import is_whole_density, says_something_of_points
from pymc_dp.models.likelihood_rv import LikelihoodRV
from pymc_dp.models.probabilities import IRRATIONAL, ROWS, at_made_up_numbers
from pymc_dp.models.record_formulas import PASSED, RecordFormula, resting_on
from pymc_dp.models.single_points import HEAPED
from pymc_dp.models.structure import SKIPPED, Unreduced, above, arrays_above, scalar_name, substitute

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


def terms_of_mixture(formula: Variable) -> list[list[Variable]]:
    """Of the logarithm of a sum, the logarithms of the factors of every term of it; none of anything else."""
    formula = _through(formula)
    if formula.owner is not None and isinstance(formula.owner.op, LogAddExp):
        return [factors for term in formula.owner.inputs for factors in _unless_one(term)]
    if _name(formula) != "Log":
        return []
    terms = _added(formula.owner.inputs[0])
    return [] if len(terms) == 1 else [factors for term in terms for factors in _of_term(term)]


def as_mixture(terms: Sequence[Sequence[Variable]], array: Variable) -> tuple[LikelihoodRV, list[Variable]] | None:
    """The mixture with these terms, of the values in an array, and its parameters; None where it is not understood.

    The terms are made of entries that belong to one record each.
    """
    components = [_component(factors, array) for factors in terms]
    found = [component for component in components if component is not None]
    if not found or len(found) < len(components) or not _add_up([weight for weight, _ in found]):
        return None
    weighted = [(pt.expand_dims(pt.exp(weight), 0) if weight.type.ndim == 0 else pt.exp(weight), density) for weight, density in found]
    whole = RecordFormula(pt.log(pt.add(*(weight * pt.exp(density) for weight, density in weighted))), {array: None})
    parts = tuple((whole.written(part=weight), whole.written(part=density)) for weight, density in weighted)
    return LikelihoodRV(whole.written(), components=parts), whole.parameters


def _component(factors: Sequence[Variable], array: Variable) -> tuple[Variable, Variable] | None:
    """The logarithms of a weight and of a density whose product a term is; None where it is no such product."""
    rests = resting_on([array])
    for weight in factors:
        others = [factor for factor in factors if factor is not weight]
        if rests(weight) or not any(map(rests, others)):
            continue
        density = pt.add(*others) if len(others) > 1 else others[0]
        try:
            function = RecordFormula(density, {array: None}).few()
        except Unreduced:
            continue
        written = function.written()
        if is_whole_density(written, function.parameters):
            if says_something_of_points(written, function.parameters):
                raise Unreduced(HEAPED)
            return weight, density
    return None


def _add_up(weights: Sequence[Variable]) -> bool:
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


def _is_smooth(variable: Variable) -> bool:
    """Whether a number is computed by analytic functions, of which a sum that is 1 at made-up numbers is 1 wherever they are connected to
    these; those of ``abs``, ``clip`` or ``switch`` need not be.
    """
    if variable.owner is None or isinstance(variable.owner.op, (ModelFreeRV, ModelObservedRV, *PASSED)):
        return True
    operation = variable.owner.op
    return scalar_name(operation) in ANALYTIC or (not isinstance(operation, Elemwise | CAReduce) and type(operation).__name__ in MOVING)


def _made_up(array: Variable) -> Variable:
    """Two rows of numbers in the place of an array, which do not add up to 1; whole ones are indices or flags, 0 and 1."""
    shape = tuple(ROWS if axis == 0 or length is None else length for axis, length in enumerate(array.type.shape))
    places = np.arange(1, prod(shape) + 1).reshape(shape)
    values = places * IRRATIONAL % 1 if array.type.dtype.startswith("float") else (places + 1) % 2
    return pt.constant(values.astype(array.type.dtype))


# ---------- formulas taken apart
def _through(variable: Variable) -> Variable:
    """What a variable is the value of: names, checks and axes of length one passed."""
    while variable.owner is not None:
        operation = variable.owner.op
        if not isinstance(operation, PASSED) and not (isinstance(operation, DimShuffle) and operation.is_left_expand_dims):
            break
        variable = variable.owner.inputs[0]
    return variable


def _name(variable: Variable) -> str:
    return "" if variable.owner is None else scalar_name(variable.owner.op)


def _added(variable: Variable) -> list[Variable]:
    """The terms of a sum, an expression of another kind being one of itself."""
    variable = _through(variable)
    if _name(variable) == "Add":
        return [term for operand in variable.owner.inputs for term in _added(operand)]
    if _name(variable) == "Sub":
        first, *others = map(_added, variable.owner.inputs)
        return [*first, *(-term for terms in others for term in terms)]
    return [-term for term in _added(variable.owner.inputs[0])] if _name(variable) == "Neg" else [variable]


def _of_term(term: Variable) -> list[list[Variable]]:
    """The logarithms of the factors of a term, or of the terms that it is the sum of."""
    term = _through(term)
    if _name(term) == "Exp":
        return _unless_one(term.owner.inputs[0])
    if _name(term) != "Mul":
        return [[pt.log(term)]]
    several = [_of_term(operand) for operand in term.owner.inputs]
    if any(len(factors) > 1 for factors in several):
        return [[pt.log(term)]]
    return [[factor for [factors] in several for factor in factors]]


def _unless_one(logarithm: Variable) -> list[list[Variable]]:
    """The terms of a mixture, or else the only one."""
    return terms_of_mixture(logarithm) or [_added(logarithm)]
