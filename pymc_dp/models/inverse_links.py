"""Which linear predictor an inverse link is applied to, however the mean is written: logistic functions by hand, rates times exposures."""

from collections.abc import Collection, Iterator
from math import prod

import pytensor.tensor as pt
from pytensor.graph.basic import Variable, equal_computations

from pymc_dp.models.observed import plain_number
from pymc_dp.models.structure import above, is_unknown, scalar_name

NEXT = 1e-15
"""What is so near to 0 or 1 stands for it."""
CLIPPED = 1e-6
"""A probability that is clipped so near to 0 and 1 is one that is not: it differs for logits beyond 13.8."""


def argument_of(mean: Variable, operation: str, private: Collection[Variable]) -> Variable | None:
    """What an inverse link, "Sigmoid" or "Exp", is taken of; None where the mean is no such inverse.

    By its name it is always found. Other spellings are read where a covariate is private: where all are public the mean is kept as it is,
    because sums of its parts can be exact.
    """
    if _name(mean) == operation:
        return mean.owner.inputs[0]
    if not set(above([mean])) & set(private):
        return None
    if operation == "Exp":
        return _argument_of_exponential(mean)
    inside = _off_the_ends(mean)
    return inside.owner.inputs[0] if _name(inside) == operation else _argument_of_logistic(inside)


def _off_the_ends(mean: Variable) -> Variable:
    """A probability without what keeps it off 0 and 1: ``clip(p, 1e-6, 1 - 1e-6)``, or ``switch(eq(p, 0), 2e-16, p)`` as bambi writes."""
    while _name(mean) == "Clip":
        inside, *ends = mean.owner.inputs
        lower, upper = map(plain_number, ends)
        if lower is None or upper is None or not (0 <= lower <= CLIPPED and 1 - CLIPPED <= upper <= 1):
            break
        mean = inside
    while _name(mean) == "Switch" and _name(mean.owner.inputs[0]) == "EQ":
        condition, instead, otherwise = mean.owner.inputs
        compared, end = condition.owner.inputs
        at, moved = plain_number(end), plain_number(instead)
        if compared is not otherwise or at not in (0, 1) or moved is None or abs(moved - at) > NEXT:
            break
        mean = otherwise
    return mean


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
    """Of a rate times an exposure, which is the exponential of the sum of their logarithms.

    Unknown factors and plain numbers have one logarithm together, because two of them may be negative.
    """
    if _name(mean) not in {"Mul", "TrueDiv"}:
        return None
    shared, terms = [], []
    for factor, sign in _factors(mean):
        if _name(factor) == "Exp":
            terms.append(sign * factor.owner.inputs[0])
        elif plain_number(factor) is not None or any(map(is_unknown, above([factor]))):
            shared.append(factor if sign > 0 else 1 / factor)
        else:
            terms.append(sign * pt.log(factor))
    return sum(terms, pt.log(prod(shared, start=pt.ones(())))) if shared else sum(terms[1:], terms[0])


def _factors(product: Variable, sign: int = 1) -> Iterator[tuple[Variable, int]]:
    """Every factor of a product of products and quotients, and whether it is above the line (1) or below (-1)."""
    name = _name(product)
    if name not in {"Mul", "TrueDiv"}:
        yield product, sign
        return
    for place, factor in enumerate(product.owner.inputs):
        yield from _factors(factor, -sign if place and name == "TrueDiv" else sign)


def _name(variable: Variable) -> str:
    return "" if variable.owner is None else scalar_name(variable.owner.op)
