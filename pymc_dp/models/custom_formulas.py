"""Functions that a user passes to a CustomDist, as functions of one value and of parameters: what they are in a graph."""

from collections.abc import Callable, Sequence

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.custom import CustomDistRV
from pytensor.graph.basic import Variable
from pytensor.raise_op import CheckAndRaise

from pymc_dp.models.by_record import by_record
from pymc_dp.models.likelihood_rv import Written
from pymc_dp.models.record_formulas import resting_on
from pymc_dp.models.reduction import Reduction
from pymc_dp.models.structure import Unreduced, arrays_above, substitute
from pymc_dp.models.written_mixtures import add_up, are_logarithms, are_shares, components_of


def one_by_one(of: Callable[..., Variable], operation: CustomDistRV, many: int) -> Written | None:
    """A function of the user's, of a value and parameters that are numbers, for arrays of them; None where there is none.

    The user's graph is made for vectors, and read as parameters are: each entry must rest on the same entries of the vectors alone.
    """
    vectors = [pt.dvector(f"argument_{k}") for k in range(1 + many)]
    arrays: dict[Variable, Variable] = {vector: pt.as_tensor_variable(np.zeros(2)) for vector in vectors}
    try:
        graph = of(operation(*vectors[1:]), vectors[0])
    except NotImplementedError:
        return None
    if arrays_above([graph], through_unknowns=True):
        raise Unreduced("the density of its CustomDist holds an array. Write it with its parameters and plain numbers")
    if graph.type.ndim != 1:
        raise Unreduced("the density of its CustomDist is not one number a value. Leave sums over values to PyMC")
    try:
        Reduction((), lambda array: "value").parameter(substitute(graph, arrays, (CheckAndRaise,)), 0)
    except Unreduced:
        raise Unreduced("the density of its CustomDist may mix values. Write it with arithmetic on one value at a time") from None
    return Written(tuple(vectors), graph)


def components_of_custom(density: Written, parameters: Sequence[Variable]) -> tuple[tuple[Written, Written], ...]:
    """The weights, and the logarithms of the densities, of the components of a mixture that a user wrote out; nothing of another density.

    Parameters
    ----------
    density : Written
        The logarithm of it.
    parameters : sequence of Variable
        As they are in the model: weights must add up to 1 there.
    """
    value, *others = density.vectors
    try:
        formula = by_record(density.unchecked().graph, value)
        found = components_of(formula, value, lambda part: _Formula(part, density.vectors, parameters))
    except (Unreduced, RecursionError):
        return ()
    weights, as_in_model = [weight for weight, _ in found], dict(zip(others, parameters, strict=True))
    in_model = [substitute(weight, dict(as_in_model)) for weight in weights]
    if len(found) < 2 or not add_up(in_model) or not (are_logarithms(weights, formula) or are_shares(in_model)):
        return ()
    return tuple((Written(density.vectors, pt.exp(weight)), Written(density.vectors, component)) for weight, component in found)


class _Formula:
    """A part of a density, with the parameters that it rests on."""

    def __init__(self, formula: Variable, vectors: Sequence[Variable], parameters: Sequence[Variable]) -> None:
        value, *others = vectors
        used = [place for place, vector in enumerate(others) if resting_on([vector])(formula)]
        self._formula, self._vectors = formula, (value, *(others[place] for place in used))
        self.parameters = [parameters[place] for place in used]

    def written(self, *, part: Variable | None = None) -> Written:
        return Written(self._vectors, self._formula if part is None else part)
