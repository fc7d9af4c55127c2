"""What a user wrote of every record, as a function of one entry of the records' arrays and of parameters beside these.

No value of a record is read, and no numbers of two arrays are compared.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import NoReturn

import numpy as np
import pytensor.tensor as pt
from pymc.model.fgraph import ModelDeterministic, ModelNamed
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.op import Op
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.shape import SpecifyShape

from pymc_dp.models.likelihood_rv import Written
from pymc_dp.models.reduction import ENTRY_BY_ENTRY
from pymc_dp.models.structure import (
    Unreduced,
    above,
    arrays_above,
    constant_value,
    is_array,
    is_unknown,
    rebuilt,
    scalar_name,
    without_casts,
)

PASSED = (CheckAndRaise, ModelDeterministic, ModelNamed, SpecifyShape, Alloc)
"""Operations whose result has the entries of their first input."""
MOST_PARAMETERS = 10
"""A formula of more is not tried out."""
FORMS = (
    "write pm.logp(dist, t) in the Potential, or, where e is 1 of an event and 0 where no more is known than that none was seen before t,"
    " e * pm.logp(dist, t) + (1 - e) * pm.logccdf(dist, t), with all records in t and e: t[e == 1] beside t[e == 0] would show how many"
    " events there are"
)
"""What a Potential may say of every record."""
OF_A_MIXTURE = (
    "Of a mixture, write pm.Mixture('t', w, [pm.Normal.dist(mu[0], sigma), pm.Normal.dist(mu[1], sigma)], observed=t), or"
    " pm.logp(pm.Mixture.dist(w, [...]), t) in the Potential"
)
"""How a mixture is written."""


def resting_on(of: Iterable[Variable]) -> Callable[[Variable], bool]:
    """Whether the entries of a variable are computed from those of some others."""
    done = dict.fromkeys(of, True)

    def rests(variable: Variable) -> bool:
        if variable not in done:
            through = variable.owner is not None and not is_unknown(variable)
            done[variable] = through and any(map(rests, _entries(variable)))
        return done[variable]

    return rests


def is_entry_by_entry(operation: Op) -> bool:
    """Whether an operation computes every entry of its result from the entries at the same place."""
    return isinstance(operation, (Elemwise, *ENTRY_BY_ENTRY))


def refuse(operation: Op) -> NoReturn:
    """Refuse an operation that does not meet the entries of values one by one."""
    raise Unreduced(
        f"it passes its values through {type(operation).__name__}, which may mix or select records. {FORMS[0].upper()}{FORMS[1:]}."
        f" {OF_A_MIXTURE}"
    )


class RecordFormula:
    """A formula of one entry of some arrays: what it rests on beside these, as parameters that may be anything apart from each other.

    ``pm.logp`` writes log(sigma) beside 1 / sigma: as one parameter each they would not go together. So a parameter is what the formula
    has of an unknown, or of an array, as a whole; where it has the same unknown in several places it is followed up to what they share.
    """

    def __init__(self, formula: Variable, of: dict[Variable, None]) -> None:
        self._formula, self._of, self._rests = formula, of, resting_on(of)
        self.parameters = self._apart(self._cut(formula))

    def few(self, beside: str = "") -> "RecordFormula":
        """Itself, unless it has more parameters than are tried out; ``beside`` is said of these, too."""
        if len(self.parameters) > MOST_PARAMETERS:
            raise Unreduced(f"it has more than {MOST_PARAMETERS} parameters. Write it with a distribution's own, mu = a + b * x{beside}")
        return self

    def _cut(self, variable: Variable) -> list[Variable]:
        """The largest parts that do not rest on the values, in order, plain numbers left out."""
        if variable in self._of:
            return []
        if not self._rests(variable):
            if not _is_number(variable):
                return [variable]
            repeated = variable.owner is not None and isinstance(variable.owner.op, Alloc)
            if not all(variable.type.broadcastable) and not repeated:
                raise Unreduced("it makes numbers that differ between records, as pt.arange does. Write them as pm.Data('x', numbers)")
            return []
        if not is_entry_by_entry(variable.owner.op) and not isinstance(variable.owner.op, PASSED):
            refuse(variable.owner.op)
        return list(dict.fromkeys(part for operand in _entries(variable) for part in self._cut(operand)))

    def _apart(self, parts: list[Variable]) -> list[Variable]:
        """Parts of which no two rest on one unknown or array, as far as they can be followed."""
        while True:
            parts = _distinct(parts)
            opened = next((part for pair in combinations(parts, 2) if _share(*pair) for part in _to_open(*pair)), None)
            if opened is None:
                return parts
            place = parts.index(opened)
            inner = [operand for operand in _entries(opened) if not _is_number(operand)]
            parts = [*parts[:place], *inner, *parts[place + 1 :]]

    def written(self, told: dict[Variable, float] | None = None, part: Variable | None = None) -> Written:
        """The formula, or a part of it, of one vector of values and one of each parameter.

        The entries of some arrays are ``told`` to be a number.
        """
        vectors = [pt.dvector(f"argument_{k}") for k in range(1 + len(self.parameters))]
        [value] = [array for array in self._of if array not in (told or {})]
        done: dict[Variable, Variable] = {value: vectors[0]}
        done |= {array: pt.expand_dims(pt.constant(number, dtype=array.type.dtype), 0) for array, number in (told or {}).items()}
        for parameter, vector in zip(self.parameters, vectors[1:], strict=True):
            done[parameter] = vector.astype(parameter.type.dtype)
        known = list(done)

        def visit(variable: Variable) -> Variable:
            if variable not in done:
                twin = next((k for k in known if alike(k, variable)), None)
                done[variable] = done[twin] if twin is not None else variable if variable.owner is None else _simplified(variable, visit)
            return done[variable]

        graph = visit(self._formula if part is None else part).astype("float64")
        if any(is_unknown(v) or is_array(v) for v in above([graph])):  # it is published, and nothing looks into it again
            raise Unreduced("its formula is not one of its values and parameters. Write it with fewer operations")
        return Written(tuple(vectors), graph)


def _simplified(variable: Variable, visit: Callable[[Variable], Variable]) -> Variable:
    """An operation on other inputs; a choice whose condition is told is what it chooses, and a product with 0 is 0."""
    node = variable.owner
    if isinstance(node.op, PASSED):
        return visit(node.inputs[0])
    if isinstance(node.op, DimShuffle):
        operand = visit(node.inputs[0])
        return operand if operand.type.ndim == variable.type.ndim else rebuilt(node, variable, [operand])
    if scalar_name(node.op) == "Switch":
        condition, *choices = node.inputs
        told = _told(visit(condition))
        return visit(choices[0 if told else 1]) if told is not None else rebuilt(node, variable, [visit(v) for v in node.inputs])
    inputs = [visit(operand) for operand in node.inputs]
    if scalar_name(node.op) == "Mul" and any(_told(operand) == 0 for operand in inputs):
        return pt.expand_dims(pt.constant(0.0), tuple(range(variable.type.ndim)))
    return rebuilt(node, variable, inputs)


def _told(variable: Variable) -> float | None:
    """The number that an expression is; None if it rests on an argument."""
    if any(v.owner is None and not isinstance(v, Constant) for v in above([variable])) or any(map(is_unknown, above([variable]))):
        return None
    value = constant_value(variable)
    return None if value is None or np.size(value) != 1 else float(np.ravel(value)[0])


def _entries(variable: Variable) -> list[Variable]:
    """What the entries of a variable are computed from; of checks and names, the first input alone."""
    if variable.owner is None:
        return []
    return variable.owner.inputs[:1] if isinstance(variable.owner.op, PASSED) else list(variable.owner.inputs)


def _is_number(variable: Variable) -> bool:
    """Whether an expression rests on no unknown and no array."""
    return not arrays_above([variable]) and not any(map(is_unknown, above([variable])))


def _leaves(variable: Variable) -> set[Variable]:
    """The unknowns and arrays that an expression rests on."""
    return {v for v in above([variable], through_unknowns=False) if is_unknown(v) or is_array(v)}


def _share(one: Variable, other: Variable) -> bool:
    """Whether two parts rest on one unknown, or, where both are computed from data alone, on one array."""
    both = _leaves(one) & _leaves(other)
    of_data = not any(map(is_unknown, _leaves(one) | _leaves(other)))
    return bool(both) if of_data else any(map(is_unknown, both))


def _to_open(one: Variable, other: Variable) -> list[Variable]:
    """Which of two parts is followed further: the one that the other stands above, else any that can be."""
    below = [v for v, above_it in ((one, other), (other, one)) if above_it in set(above([v], through_unknowns=False))]
    return [v for v in below or (one, other) if _opens(v)]


def _opens(variable: Variable) -> bool:
    """Whether an expression is made of others entry by entry."""
    node = variable.owner
    if node is None or is_unknown(variable) or _is_root(variable):
        return False
    expanded = isinstance(node.op, DimShuffle) and node.op.is_left_expand_dims
    return isinstance(node.op, (Elemwise, *ENTRY_BY_ENTRY, ModelDeterministic)) or expanded


def _is_root(variable: Variable) -> bool:
    """Whether a variable is an array of data, or that by another name or type."""
    return is_array(without_casts(variable))


def alike(one: Variable, other: Variable, done: dict[tuple[Variable, Variable], bool] | None = None) -> bool:
    """Whether two expressions are written alike: the same operations on the same arrays and unknowns. No array's numbers are compared.

    ``done`` is what was found of pairs so far.
    """
    done = {} if done is None else done
    if one is other or (one, other) in done:
        return done.get((one, other), True)
    if one.type != other.type:
        found = False
    elif one.owner is None or other.owner is None:
        numbers = not is_array(one) and not is_array(other)
        found = numbers and isinstance(one, Constant) and isinstance(other, Constant) and bool(one.equals(other))
    else:
        pairs = list(zip(one.owner.inputs, other.owner.inputs, strict=False))
        same = one.owner.op == other.owner.op and len(one.owner.inputs) == len(other.owner.inputs) and not is_unknown(one)
        found = same and one.index == other.index and all(alike(*pair, done) for pair in pairs)
    done[one, other] = found
    return found


def _distinct(parts: Sequence[Variable]) -> list[Variable]:
    """Parts, each once, of those written alike the first."""
    kept: list[Variable] = []
    for part in parts:
        if not any(alike(part, other) for other in kept):
            kept.append(part)
    return kept
