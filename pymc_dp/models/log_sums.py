"""Formulas of logarithms taken apart: into the factors of a product, and into the terms of a sum."""

from collections.abc import Callable

import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.special import LogAddExp

from pymc_dp.models.record_formulas import PASSED
from pymc_dp.models.structure import scalar_name

type Log = Variable
"""The logarithm of what is meant."""


def factors_of(formula: Log) -> list[Log]:
    """The logarithms of the factors of a product, of which a formula is the logarithm; the formula alone if it is that of no product."""
    formula = _through(formula)
    name, operands = _name(formula), [] if formula.owner is None else formula.owner.inputs
    if name == "Add":
        return [factor for operand in operands if not _is(operand, 0) for factor in factors_of(operand)]
    if name == "Sub":
        return [*factors_of(operands[0]), *(-factor for factor in factors_of(operands[1]))]
    if name == "Neg":
        return [-factor for factor in factors_of(operands[0])]
    if name == "Log" and (product := _factors_of_number(operands[0])):
        return product
    return [formula]


def terms_of(factor: Log) -> list[Log]:
    """The logarithms of the terms of a sum, of which a factor is the logarithm; nothing if it is that of no sum."""
    factor = _through(factor)
    if factor.owner is not None and isinstance(factor.owner.op, LogAddExp):
        return list(factor.owner.inputs)
    if _name(factor) != "Log":
        return []
    terms = _added(factor.owner.inputs[0])
    return [_log(term) for term in terms] if len(terms) > 1 else []


def opened(factors: list[Log], of: Callable[[Variable], bool]) -> list[Log]:
    """The logarithms of the terms that a product is the sum of: one of its factors, such ``of`` which this is true, is a sum, and the
    others are factors of every term of that. Nothing where no factor is one.
    """
    for place, factor in enumerate(factors):
        if of(factor) and (terms := terms_of(factor)):
            others = factors[:place] + factors[place + 1 :]
            return [pt.add(*others, term) if others else term for term in terms]
    return []


def _factors_of_number(number: Variable) -> list[Log]:
    """The logarithms of the factors of a product or of a quotient; nothing of another number."""
    number = _through(number)
    name, operands = _name(number), [] if number.owner is None else number.owner.inputs
    if name == "Exp":
        return factors_of(operands[0])
    if name == "Mul":
        return [factor for operand in operands for factor in factors_of(_log(operand))]
    if name == "TrueDiv":
        return [*factors_of(_log(operands[0])), *(-factor for factor in factors_of(_log(operands[1])))]
    return []


def _added(number: Variable) -> list[Variable]:
    """The terms of a sum, a number of another kind being one of itself; not the 0 with which Python's ``sum`` begins."""
    number = _through(number)
    if _name(number) == "Add":
        return [term for operand in number.owner.inputs if not _is(operand, 0) for term in _added(operand)]
    if _name(number) == "Sub":
        first, *others = map(_added, number.owner.inputs)
        return [*first, *(-term for terms in others for term in terms)]
    return [number]


def _log(number: Variable) -> Log:
    number = _through(number)
    return number.owner.inputs[0] if _name(number) == "Exp" else pt.log(number)


def _through(variable: Variable) -> Variable:
    """What a variable is the value of: names, checks, factors of 1 and axes of length one passed."""
    while variable.owner is not None:
        operation, operands = variable.owner.op, variable.owner.inputs
        if _name(variable) == "Mul":
            operands = [operand for operand in operands if not _is(operand, 1)]
            if len(operands) != 1:
                break
        elif not isinstance(operation, PASSED) and not (isinstance(operation, DimShuffle) and operation.is_left_expand_dims):
            break
        variable = operands[0]
    return variable


def _is(variable: Variable, number: float) -> bool:
    """Whether a variable is written as a number. Those of arrays are not looked at."""
    while variable.owner is not None and isinstance(variable.owner.op, DimShuffle) and not variable.owner.inputs[0].type.ndim:
        variable = variable.owner.inputs[0]
    return isinstance(variable, Constant) and not variable.type.ndim and bool(variable.data == number)


def _name(variable: Variable) -> str:
    return "" if variable.owner is None else scalar_name(variable.owner.op)
