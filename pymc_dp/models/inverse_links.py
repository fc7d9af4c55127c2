"""What an inverse link is taken of, however a mean is written: logistic functions by hand, and rates times exposures."""

from collections.abc import Collection

import pytensor.tensor as pt
from pytensor.graph.basic import Variable, equal_computations

from pymc_dp.models.observed import plain_number
from pymc_dp.models.structure import above, scalar_name


def argument_of(mean: Variable, operation: str, private: Collection[Variable]) -> Variable | None:
    """What an inverse link, "Sigmoid" or "Exp", is taken of; None where the mean is no such inverse.

    By its name it is always found. Other spellings are read where a covariate is private: where all are public the mean is kept as it is,
    because sums of its parts can be exact.
    """
    if _name(mean) == operation:
        return mean.owner.inputs[0]
    if not set(above([mean])) & set(private):
        return None
    return _argument_of_logistic(mean) if operation == "Sigmoid" else _argument_of_exponential(mean)


def _argument_of_logistic(mean: Variable) -> Variable | None:
    """Of ``1 / (1 + exp(-x))`` and ``exp(x) / (1 + exp(x))``."""
    if _name(mean) != "TrueDiv" or _name(mean.owner.inputs[1]) != "Add":
        return None
    above_line, parts = mean.owner.inputs[0], mean.owner.inputs[1].owner.inputs
    exponentials, others = [[v for v in parts if (_name(v) == "Exp") is wanted] for wanted in (True, False)]
    if len(exponentials) != 1 or len(others) != 1 or plain_number(others[0]) != 1:
        return None
    if plain_number(above_line) == 1:
        return -exponentials[0].owner.inputs[0]
    return exponentials[0].owner.inputs[0] if equal_computations([above_line], exponentials) else None


def _argument_of_exponential(mean: Variable) -> Variable | None:
    """Of a rate times an exposure, which is the exponential of the sum of their logarithms."""
    if _name(mean) not in {"Mul", "TrueDiv"}:
        return None
    first, *others = map(_logarithm, mean.owner.inputs)
    return first - others[0] if _name(mean) == "TrueDiv" else sum(others, first)


def _logarithm(factor: Variable) -> Variable:
    if _name(factor) == "Exp":
        return factor.owner.inputs[0]
    argument = _argument_of_exponential(factor)
    return pt.log(factor) if argument is None else argument


def _name(variable: Variable) -> str:
    return "" if variable.owner is None else scalar_name(variable.owner.op)
