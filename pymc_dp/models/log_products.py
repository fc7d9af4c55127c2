"""The logarithm of a product of unknowns and covariates, rewritten as a sum of logarithms.

A product is written as u exp(l), u being a product of unknowns alone and l a sum of terms that covariates are part of, such as
b log(h) of a power h**b. Its logarithm is log(u) + l wherever covariates with a logarithm are above 0: then u has the sign of the product,
so that both are the same number or none. Whether covariates are above 0 is told by their bounds, when those of features are computed.
"""

from collections.abc import Callable

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_dp.models.structure import Unreduced, scalar_name

type Terms = list[tuple[Variable, Variable]]
BASES = {"Log": 1.0, "Log2": float(np.log(2)), "Log10": float(np.log(10))}
"""Operations that take a logarithm, with the natural logarithm of its base."""


class LogOfProduct:
    """Reads logarithms of products.

    Parameters
    ----------
    kind : callable
        Whether a variable rests on covariates, and whether on unknowns.
    terms : callable
        A variable as features times coefficients.
    times : callable
        Every product of a term of one list and a term of another.
    """

    def __init__(
        self, kind: Callable[[Variable], tuple[bool, bool]], terms: Callable[[Variable], Terms], times: Callable[[Terms, Terms], Terms]
    ) -> None:
        self._kind, self._terms, self._times = kind, terms, times

    def of(self, product: Variable) -> Terms:
        """The natural logarithm of a product as features times coefficients.

        Raises
        ------
        Unreduced
            Where it is no product of unknowns, covariates and powers of them.
        """
        unknown, logs = self._parts(product)
        return logs if unknown is None else [*self._terms(pt.log(unknown)), *logs]

    def _parts(self, factor: Variable) -> tuple[Variable | None, Terms]:
        """A factor as u exp(l): u, None where it is 1, and l."""
        of_records, of_unknowns = self._kind(factor)
        if not of_records:
            return factor, []
        name = "" if factor.owner is None else scalar_name(factor.owner.op)
        operands = [] if factor.owner is None else factor.owner.inputs
        if name == "Exp":
            return None, self._terms(operands[0])
        if name in {"Mul", "TrueDiv"}:
            unknown, logs = self._parts(operands[0])
            for operand in operands[1:]:
                other, more = self._parts(operand)
                if other is not None:
                    other = 1 / other if name == "TrueDiv" else other
                    unknown = other if unknown is None else unknown * other
                logs = [*logs, *(self._scaled(more, -1.0) if name == "TrueDiv" else more)]
            return unknown, logs
        if name in {"Sqr", "Sqrt", "Reciprocal"}:
            unknown, logs = self._parts(operands[0])
            whole = None if unknown is None else factor.owner.op(unknown)
            return whole, self._scaled(logs, {"Sqr": 2.0, "Sqrt": 0.5, "Reciprocal": -1.0}[name])
        if name == "Pow":
            return self._power(*operands)
        if of_unknowns:
            raise Unreduced("its mean passes covariates and unknowns through Log, so it is not linear in the unknowns")
        return None, self._terms(pt.log(factor))

    def _power(self, base: Variable, exponent: Variable) -> tuple[Variable | None, Terms]:
        """(u exp(l))**e is u**e exp(e l), exp(l) being above 0; e may rest on covariates only where there is no u."""
        unknown, logs = self._parts(base)
        if unknown is not None and self._kind(exponent)[0]:
            raise Unreduced("its mean raises unknowns to a power that rests on covariates, so it is not linear in the unknowns")
        return None if unknown is None else unknown**exponent, self._times(logs, self._terms(exponent))

    @staticmethod
    def _scaled(terms: Terms, factor: float) -> Terms:
        return [(d, c * factor) for d, c in terms]
