"""Coordinates for a sampler: groups of normal unknowns of which little is known, each less its mean and divided by its standard deviation.

Intercepts of a hierarchy of which the noise leaves next to nothing follow their own prior, whose standard deviation is unknown: a funnel,
in which chains stay in different parts. In these coordinates there is none. The posterior and the names of its variables are the same.
"""

from collections.abc import Sequence
from math import prod, sqrt

import pytensor.tensor as pt
from pymc.logprob.transforms import Transform
from pymc.model.fgraph import ModelFreeRV, model_free_rv
from pymc.util import get_transformed_name
from pytensor.graph import FunctionGraph
from pytensor.graph.basic import Variable
from pytensor.tensor.random.basic import NormalRV

from pymc_dp.families.family import named
from pymc_dp.models.spec import Likelihood
from pymc_dp.models.structure import above
from pymc_dp.releases.noisy_statistic import NoisyStatistic

KNOWN = 0.2
"""To what share of the spread of one value a group's mean is known, that of 25 values without noise, where it keeps its own coordinates."""
SPREAD = 0.25
"""The spread of one value, in units of half of its bounds, as far as the choice of coordinates goes."""
DIFFERENCES = {"Normal": sqrt(2) / 4, "Bernoulli": sqrt(2) / 2, "Poisson": sqrt(2) / 2}
"""The noise on a sum of values, of that on the numbers that are released in cells whose sizes are private."""


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
    """Names of groups of normal unknowns, with unknowns in their prior, of which little is known one by one.

    Of an entry what is released tells to about the noise on the sums of its records over their number, and the spread of one value over the
    root of that number. All entries are taken to have as many records; bounds, noise and numbers of records decide, which are public.
    """
    noise = _noise_on_sums(noisy)
    if noise is None or not noisy.n.size:
        return []
    parameters = [*likelihood.parameters, *([] if likelihood.linear is None else [likelihood.linear.coefficients])]
    groups = {variable.owner.op.name: variable.type.shape for variable in above(parameters) if _is_group(variable)}
    entries = {name: prod(shape) for name, shape in groups.items() if None not in shape and 0 not in shape}
    cells, N = prod(noisy.batch), int(noisy.n.sum())
    return [name for name, many in entries.items() if _is_hidden(noise * sqrt(max(cells / many, 1)), N / many)]


def _is_hidden(noise: float, n: float) -> bool:
    """Whether the mean of n values, whose sum has this noise, is not known to ``KNOWN`` of their spread."""
    return n == 0 or (noise / n) ** 2 + SPREAD**2 / n >= (KNOWN * SPREAD) ** 2


def _noise_on_sums(noisy: NoisyStatistic) -> float | None:
    """Standard deviation of the noise on the sum of a cell's values, in units of half of their bounds; None of other statistics.

    Where numbers of records are private, sums of what is missing to either bound are released in place of one of the values. Of numbers of
    records with each of K values the middle half alone counts, where values lie: their sum has sqrt(K / 24) times the noise of one number.
    """
    regression, sd, many = noisy.regression, noisy.noise.standard_deviation, len(noisy.statistics)
    if noisy.structure == "aggregate" or any(array.size for array in (noisy.weights, noisy.combination, noisy.covariance)):
        return None
    if regression is not None:
        return None if regression.link else float(noisy.deviations[len(regression.names) - 1])
    if noisy.tabulated or noisy.domain.levels:
        return sd * sqrt(many / 24)
    if noisy.distribution not in DIFFERENCES:
        return None
    domain = noisy.domain
    half = 1.0 if noisy.distribution == "Normal" else max(domain.half_width, 0.5)
    sums = len(named(noisy.distribution).statistics(domain))
    return sd / half * (1.0 if many == sums else DIFFERENCES[noisy.distribution])


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
