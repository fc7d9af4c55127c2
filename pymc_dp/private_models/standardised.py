"""Coordinates for a sampler: groups of normal unknowns of which little is known, each less its mean and divided by its standard deviation.

Intercepts of a hierarchy of which the noise leaves next to nothing follow their own prior, whose standard deviation is unknown: a funnel,
in which chains stay in different parts. In these coordinates there is none. The posterior and the names of its variables are the same.
"""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pymc.logprob.transforms import Transform
from pymc.model.fgraph import ModelFreeRV, model_free_rv
from pymc.util import get_transformed_name
from pytensor.graph import FunctionGraph
from pytensor.graph.basic import Variable
from pytensor.tensor.random.basic import NormalRV

from pymc_dp.models.spec import Likelihood
from pymc_dp.models.structure import above
from pymc_dp.private_models.pooled_law import typical_sigma
from pymc_dp.releases.noisy_statistic import NoisyStatistic

HALF = 0.5
"""How far intercepts lie apart, in units of sigma, as far as the choice of coordinates goes."""


class Standardised(Transform):
    """The standard coordinate of a normal variable: less its mean, over its standard deviation."""

    name = "standardised"
    ndim_supp = 0

    def forward(self, value: Variable, *inputs: Variable) -> Variable:
        """The standard variable."""
        mu, sigma = inputs[-2:]
        return (value - mu) / sigma

    def backward(self, value: Variable, *inputs: Variable) -> Variable:
        """The variable itself."""
        mu, sigma = inputs[-2:]
        return mu + sigma * value

    def log_jac_det(self, value: Variable, *inputs: Variable) -> Variable:
        """Logarithm of the standard deviation."""
        return pt.log(inputs[-1]) + pt.zeros_like(value)


def hidden_groups(likelihood: Likelihood, noisy: NoisyStatistic) -> list[str]:
    """Names of groups of normal unknowns, with unknowns in their prior, of which pooled sums tell little one by one.

    Of an intercept they tell to about the noise on a sum over its number of records, and sigma over the root of that number.
    """
    if not noisy.multipliers.size or likelihood.linear is None:
        return []
    n, sigma = np.median(noisy.n), typical_sigma(noisy)
    variance = (noisy.noise.standard_deviation / noisy.multipliers[0] / n) ** 2 + sigma**2 / n
    if variance < (HALF * sigma) ** 2:
        return []
    return [variable.owner.op.name for variable in above([likelihood.linear.coefficients]) if _is_group(variable)]


def _is_group(variable: Variable) -> bool:
    """Whether it is a free normal variable of several entries that lies below other unknowns and has no transform of its own."""
    if variable.owner is None or not isinstance(variable.owner.op, ModelFreeRV) or variable.owner.op.transform is not None:
        return False
    drawn = variable.owner.inputs[0]
    if variable.type.ndim == 0 or not isinstance(drawn.owner and drawn.owner.op, NormalRV):
        return False
    return any(v.owner is not None and isinstance(v.owner.op, ModelFreeRV) for v in above(list(drawn.owner.inputs)))


def standardise(graph: FunctionGraph, names: Sequence[str]) -> None:
    """Give these free variables of a model's graph standard coordinates, in place."""
    for node in graph.toposort():
        if isinstance(node.op, ModelFreeRV) and node.op.name in names:
            transform = Standardised()
            drawn = node.inputs[0]
            value = drawn.type(name=get_transformed_name(node.op.name, transform))
            new_variable = model_free_rv(drawn, value, transform, node.op.name, *node.op.dims)
            graph.replace(node.outputs[0], new_variable, import_missing=True)
