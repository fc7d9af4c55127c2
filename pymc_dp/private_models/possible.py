"""Where PyMC gives a likelihood no density: a probability above 1, a negative rate, a covariance that is none.

Noise can make such values likely, and no law of noisy statistics forbids them. So the private model says where the user's own has no
density, unless it follows from the priors that no unknown can lead there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.logprob.utils import CheckParameterValue
from pymc.model.fgraph import ModelFreeRV
from pytensor.graph.basic import Constant, Variable
from pytensor.tensor.basic import MakeVector, ScalarFromTensor
from pytensor.tensor.type import TensorType

from pymc_dp.models.elementwise_intervals import Interval
from pymc_dp.models.intervals import ends_of
from pymc_dp.models.likelihood_rv import Written
from pymc_dp.models.spec import Likelihood
from pymc_dp.models.structure import above, constant_value, scalar_name, substitute
from pymc_dp.models.unknowns import support_of
from pymc_dp.private_models.likelihood import NoisyLikelihood

COMPARED = {"GE": (0, 1), "GT": (0, 1), "LE": (1, 0), "LT": (1, 0)}
"""Comparisons, and the places of what is to be the larger one and of the smaller one."""
ANYWHERE, UNIT, POSITIVE = (-np.inf, np.inf), (0.0, 1.0), (0.0, np.inf)
RANGES = {"Sigmoid": UNIT, "Softmax": UNIT, "Exp": POSITIVE, "Softplus": POSITIVE, "Sqr": POSITIVE, "Abs": POSITIVE, "Sqrt": POSITIVE}
"""Where values of functions lie, whatever they are functions of."""


def possible(likelihood: Likelihood, parameters: list[Variable]) -> list[Variable]:
    """Whether parameters are such as the distribution can have, and by how much: numbers that are negative where they are not.

    Empty where the priors say that they always are, or where it cannot be said. ``parameters`` are those of PyMC's distribution, on cells.
    """
    open_ones = [comparison for comparison in comparisons_of(likelihood, parameters) if not holds(comparison)]
    if not open_ones:
        return []
    excesses = [larger - smaller for larger, smaller in map(compared, open_ones)]
    return [pt.all(pt.stack([pt.all(condition) for condition in open_ones])), *excesses]


def comparisons_of(likelihood: Likelihood, parameters: list[Variable]) -> list[Variable]:
    """What PyMC checks of parameters before it gives a density, each one of ``COMPARED``; nothing where it cannot be said.

    Of a mixture that was written out, that its weights are probabilities.
    """
    if likelihood.weights:
        weights = [_weight(weight, parameters) for weight in likelihood.weights]
        return [comparison for weight in weights for comparison in (pt.ge(weight, 0.0), pt.le(weight, 1.0))]
    if likelihood.again is None:
        return []
    # Where PyMC rewrites a likelihood to find its density it copies what it is computed from: unknowns are put in afterwards.
    stand_ins = [p.type() if unknown else p for p, unknown in zip(parameters, likelihood.unknown, strict=True)]
    own = dict(zip(stand_ins, parameters, strict=True))
    try:
        distribution = likelihood.again(*stand_ins)
        density = pm.logp(distribution, distribution.type(), warn_rvs=False)
    except Exception:  # of a distribution without a density: nothing is said, whatever records there are
        return []
    checks = [v.owner for v in above([density]) if v.owner and isinstance(v.owner.op, CheckParameterValue)]
    stated = [comparison for check in checks for condition in check.inputs[1:] for comparison in _comparisons(condition)]
    known = {*own, *above(parameters)}
    return [
        substitute(comparison, own) for comparison in stated
        if all(v in known or isinstance(v, Constant) for v in above([comparison]) if v.owner is None)
    ]  # fmt: skip


def _weight(weight: Written, parameters: list[Variable]) -> Variable:
    """A weight as an expression of those parameters that it rests on alone."""
    rests_on = set(above([weight.graph]))
    value, *vectors = weight.vectors
    own = [(vector, parameter) for vector, parameter in zip(vectors, parameters, strict=True) if vector in rests_on]
    return Written((value, *(vector for vector, _ in own)), weight.graph)(pt.zeros(()), *(parameter for _, parameter in own))


def only_where_possible(likelihood: NoisyLikelihood) -> NoisyLikelihood:
    """A likelihood with one more argument behind its latents: whether there is any density."""

    def logp(value: Variable, *arguments: Variable) -> Variable:
        return pt.switch(arguments[-1], likelihood.logp(value, *arguments[:-1]), -np.inf)

    def simulate(*arguments: Variable) -> Variable:
        return likelihood.simulate(*arguments[:-2], arguments[-1])

    return replace(likelihood, simulate=simulate, logp=logp)


def _comparisons(condition: Variable) -> Iterator[Variable]:
    """The comparisons of which a condition says that all hold. That probabilities add up to 1 is none of them: it is checked elsewhere."""
    node = condition.owner
    if node is None:
        return
    if isinstance(node.op, ScalarFromTensor | MakeVector) or scalar_name(node.op) == "AND":
        for part in node.inputs:
            yield from _comparisons(part)
    elif scalar_name(node.op) in COMPARED:
        yield condition


def compared(comparison: Variable) -> tuple[Variable, Variable]:
    """What is to be the larger one, and the smaller one."""
    larger, smaller = (comparison.owner.inputs[place] for place in COMPARED[scalar_name(comparison.owner.op)])
    return larger, smaller


def holds(comparison: Variable) -> bool:
    """Whether a comparison holds for all values that unknowns can have, but for those at the very end of where they lie."""
    larger, smaller = compared(comparison)
    try:
        bounds = _supports(comparison)
        return bool((ends_of(larger, bounds)[0] >= ends_of(smaller, bounds)[1]).all())
    except Exception:  # what cannot be shown is not known to hold, whatever records there are
        return False


def never_negative(variable: Variable) -> bool:
    """Whether a number is 0 or more for all values that unknowns can have, so that it has a logarithm and a root."""
    try:
        return bool((ends_of(variable, _supports(variable))[0] >= 0).all())
    except Exception:  # as in ``holds``
        return False


def _supports(variable: Variable) -> Mapping[Variable, Interval]:
    """Where the unknowns lie that something is computed from, and what has such values whatever it is computed from."""
    bounds = {}
    for part in above([variable], through_unknowns=False):
        if part.owner is None or not isinstance(part.type, TensorType):
            continue
        ends: tuple | None = RANGES.get(scalar_name(part.owner.op)) or RANGES.get(type(part.owner.op).__name__)
        if isinstance(part.owner.op, ModelFreeRV):
            ends = support_of(part.owner.inputs[0]) or ANYWHERE
        if ends is not None:
            shape = part.type.shape if None not in part.type.shape else constant_value(part.shape)
            if shape is not None:
                bounds[part] = np.broadcast_to(ends[0], shape), np.broadcast_to(ends[1], shape)
    return bounds
