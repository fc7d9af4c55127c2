"""Any likelihood of counts, through a table: how many records have each value.

A likelihood over few integers needs no statistics of its own: how many records have each value says everything. Its parameters
may be those of a mixture or of a truncated or censored distribution; they are read from the graph, and the distribution is made
again from the same parameters on cells. Of real numbers they are read so, too: not to be tabulated, but for the density of one record.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions import mixture
from pymc.distributions.censored import CensoredRV
from pymc.distributions.distribution import DiracDelta
from pymc.distributions.truncated import TruncatedRV
from pytensor.graph.basic import Variable
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType

from pymc_dp.families.family import CellSensitivity, Domain, Family, Sensitivity
from pymc_dp.families.limits import onto_simplex
from pymc_dp.laws.kernel import Tensor
from pymc_dp.laws.law import Counts, Law
from pymc_dp.models.likelihood_rv import Written, variable_of
from pymc_dp.models.structure import arrays_above, constant_value, substitute, untruncated

MOST_VALUES = 1024
"""The most values that are tabulated."""
COUNTS = tuple(
    getattr(pm, name).rv_type
    for name in ("Bernoulli", "Binomial", "Poisson", "NegativeBinomial", "BetaBinomial", "Geometric", "DiscreteWeibull", "HyperGeometric")
)
"""Distributions over the integers from 0 on."""
REALS = tuple(
    getattr(pm, name).rv_type
    for name in (
        "AsymmetricLaplace", "Beta", "Cauchy", "ExGaussian", "Exponential", "Gamma", "Gumbel", "HalfCauchy", "HalfNormal", "HalfStudentT",
        "InverseGamma", "Kumaraswamy", "Laplace", "Logistic", "LogNormal", "Moyal", "Normal", "Pareto", "Rice", "SkewNormal", "StudentT",
        "Triangular", "Uniform", "VonMises", "Wald", "Weibull",
    )
)  # fmt: skip
"""Distributions of single real numbers, each by itself given its parameters."""


@dataclass(frozen=True)
class Parametrised:
    """A distribution and the parameters it is made of.

    Attributes
    ----------
    parameters : tuple of Variable
    cores : tuple of int
        How many trailing axes of each belong to a single value.
    make : callable
        From as many parameters, the distribution again.
    counts : bool
        Whether its values are integers from 0 on, which can be tabulated.
    limits : (float, float)
        Between which numbers its values are censored; infinite where they are not.
    sums : str
        The family whose sums say all that its values do; "" of others.
    between : callable or None
        From points and the parameters on cells, the probabilities of intervals: see ``binned.parametrised_in_bins``.
    weights : tuple of Written
        Of a mixture that was written out the weights, as functions of values, which they do not rest on, and of the parameters.
    """

    parameters: tuple[Variable, ...]
    cores: tuple[int, ...]
    make: Callable[..., Variable]
    counts: bool = True
    limits: tuple[float, float] = (-np.inf, np.inf)
    sums: str = ""
    between: Callable[..., Tensor] | None = None
    weights: tuple[Written, ...] = ()


def parametrised(random: Variable) -> Parametrised | None:
    """The parameters of a distribution of single numbers, or None if it is another one or cannot be read."""
    if random.owner is None:
        return None
    operation = random.owner.op
    if isinstance(operation, mixture.MixtureRV | mixture._HurdleRV):
        return _mixture(random)
    if isinstance(operation, TruncatedRV | CensoredRV):
        return _limited(random, isinstance(operation, CensoredRV))
    if type(operation) is DiracDelta.rv_type:
        (value,) = operation.dist_params(random.owner)
        known, counts = number_in(value), "int" in random.type.dtype
        if known is None or (counts and known < 0):
            return None
        return Parametrised((), (), lambda: pm.DiracDelta.dist(np.asarray(known, dtype="int64" if counts else "float64")), counts)
    if type(operation) in COUNTS + REALS:
        parameters, counts = tuple(operation.dist_params(random.owner)), type(operation) in COUNTS
        if isinstance(operation, RandomVariable):
            return Parametrised(parameters, tuple(operation.ndims_params), partial(variable_of, operation), counts)
        rv_type: Any = type(operation)
        return Parametrised(parameters, (0,) * len(parameters), lambda *parameters: rv_type.rv_op(*parameters), counts)
    return None


def _mixture(random: Variable) -> Parametrised | None:
    weights, *components = [part for part in random.owner.inputs if not isinstance(part.type, RandomType)]
    if len(components) == 1:  # the last axis of its parameters runs over the components
        tree = parametrised(components[0])
        if tree is None:
            return None
        parameters = tuple(p if tree.counts or p.type.ndim else pt.shape_padleft(p) for p in tree.parameters)
        if any(parameter.type.ndim == core for parameter, core in zip(parameters, tree.cores, strict=True)):
            return None
        cores, counts = tuple(core + 1 for core in tree.cores), tree.counts

        def alike(weight: Variable, *others: Variable) -> Variable:
            return pm.Mixture.dist(weight, tree.make(*_as_many(weight, others, cores)))

        return Parametrised((weights, *parameters), (1, *cores), alike, counts)
    trees = [parametrised(component) for component in components]
    if any(tree is None for tree in trees):
        return None
    read = [tree for tree in trees if tree is not None]

    def make(weight: Variable, *others: Variable) -> Variable:
        distributions, start = [], 0
        others = _as_many(weight, others, [core for tree in read for core in tree.cores])
        for tree in read:
            distributions.append(tree.make(*others[start : start + len(tree.parameters)]))
            start += len(tree.parameters)
        return pm.Mixture.dist(weight, distributions)

    parameters = (weights, *(parameter for tree in read for parameter in tree.parameters))
    return Parametrised(parameters, (1, *(core for tree in read for core in tree.cores)), make, all(tree.counts for tree in read))


def _as_many(weight: Variable, parameters: Sequence[Variable], cores: Sequence[int]) -> tuple[Variable, ...]:
    """Parameters of components, as many as there are weights of a mixture: PyMC repeats no component for which there is one of them."""
    if weight.type.ndim == 1:
        return tuple(parameters)
    none = pt.zeros(weight.shape[:-1], dtype="int8")
    return tuple(p + pt.expand_dims(none, tuple(range(-core, 0))) for p, core in zip(parameters, cores, strict=True))


def _limited(random: Variable, censored: bool) -> Parametrised | None:
    base, lower, upper = random.owner.inputs if censored else untruncated(random)
    tree, ends = parametrised(base), [number_in(limit) for limit in (lower, upper)]
    if tree is None or (tree.counts and None in ends):
        return None
    kind, make, many = pm.Censored if censored else pm.Truncated, tree.make, len(tree.parameters)
    others = tuple(limit for limit, end in zip((lower, upper), ends, strict=True) if end is None)  # limits that are no plain numbers

    def limited(*parameters: Variable) -> Variable:
        parameter_limits = iter(parameters[many:])
        low, high = (next(parameter_limits) if end is None else end if np.isfinite(end) else None for end in ends)
        return kind.dist(make(*parameters[:many]), lower=low, upper=high)

    limits = tuple(inf if end is None else end for end, inf in zip(ends, (-np.inf, np.inf), strict=True)) if censored else (-np.inf, np.inf)
    if censored and type(base.owner.op) is pm.Exponential.rv_type and limits[0] == -np.inf and 0 < limits[1] < np.inf:

        def followed(scale: Variable, _: Variable) -> Variable:
            return pm.Censored.dist(make(scale), lower=None, upper=limits[1])

        return Parametrised((*tree.parameters, upper), (0, 0), followed, False, (limits[0], limits[1]), "CensoredExponential")
    return Parametrised((*tree.parameters, *others), (*tree.cores, *(0 for _ in others)), limited, tree.counts, (limits[0], limits[1]))


def number_in(variable: Variable) -> float | None:
    """The plain number that a constant expression is; None of any other."""
    value = None if arrays_above([variable]) else constant_value(variable)
    return None if value is None or np.size(value) != 1 else float(np.ravel(value)[0])


class Table(Family):
    """How many records have each value from the lower to the upper bound; those beyond count at the bounds.

    Its one parameter is the probability of every value, (..., K): ``probabilities``.
    """

    DISTRIBUTION = "table of values"
    BOUNDS = "integer"
    WHOLE = True
    EXAMPLES = ()

    def lattice(self, domain: Domain) -> float:
        """Counts are integers."""
        return 1.0

    def statistics(self, domain: Domain) -> tuple[str, ...]:
        """One count a value."""
        return tuple(f"value {k}" for k in self.values(domain))

    def values(self, domain: Domain) -> range:
        """The values that are told apart."""
        return range(int(domain.lower), int(domain.upper) + 1)

    def exact(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """Indicators of the values; a missing one goes to the middle."""
        level = np.rint(values).astype(np.int64)
        return tuple((level == k).astype(np.int64) for k in self.values(domain))

    def sensitivity(self, domain: Domain) -> Sensitivity:
        """A value has one indicator equal to 1, so two values differ by 2: one count down, another up."""
        return Sensitivity(2, 2, 1, "one count goes down by 1 and another up by 1")

    def cell_sensitivity(self, domain: Domain) -> CellSensitivity:
        """One count a value: exactly one of them is 1."""
        K = len(self.values(domain))
        unit = tuple((0, *(int(i == k) for i in range(K))) for k in range(K))
        return CellSensitivity(self.statistics(domain), unit, 1, 1)

    def law(self, domain: Domain, n: Tensor, *parameters: Tensor) -> Law:
        """Multinomial."""
        (p,) = parameters
        return Counts(n, p)

    def project(self, noisy: np.ndarray, n: np.ndarray, spread: float, domain: Domain) -> np.ndarray:
        """Move noisy counts onto the simplex of size n."""
        return onto_simplex(noisy, n)

    def log_likelihood(self, sums: Tensor, n: Tensor, domain: Domain, *parameters: Tensor) -> Tensor:
        """Sum over values of s_k log p_k."""
        (p,) = parameters
        return (sums * pt.log(pt.maximum(p, 1e-300))).sum(axis=-1)


class Binned(Table):
    """How many records lie in each bin, the first and the last of which are open: see ``Domain.edges``."""

    DISTRIBUTION = "counts in bins"
    BOUNDS = "real"
    WHOLE = False

    def statistics(self, domain: Domain) -> tuple[str, ...]:
        """One count a bin."""
        inner = next(texts for digits in (4, 6, 12, 17) if len(set(texts := [f"{e:.{digits}g}" for e in domain.edges[1:-1]])) == len(texts))
        between = (f"{low} < y <= {high}" for low, high in pairwise(inner))
        return (f"y <= {inner[0]}", *between, f"y > {inner[-1]}")

    def values(self, domain: Domain) -> range:
        """The places of the bins."""
        return range(len(domain.edges) - 1)

    def exact(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """Indicators of the bins. Each value is compared with the edges between two bins; moving it to an outer edge changes nothing."""
        place = np.searchsorted(np.array(domain.edges[1:-1]), values, side="left")
        return tuple((place == k).astype(np.int64) for k in self.values(domain))


TABLE = Table()
BINNED = Binned()


def probabilities(make: Callable[..., Variable], parameters: Sequence[Tensor], cores: Sequence[int], domain: Domain) -> Tensor:
    """Probability of every value of a table (..., K), all beyond the bounds counted at them.

    The distribution lies on the integers from 0 on, so that what is below the lower bound is summed and what is above the upper one
    is what is left.
    """
    lower, upper = int(domain.lower), int(domain.upper)
    grid = np.arange(upper)
    # Every parameter has an axis of all values: distributions made of others do not broadcast against their values.
    full = [
        pt.expand_dims(parameter, -1 - core) + np.zeros((upper,) + (1,) * core) for parameter, core in zip(parameters, cores, strict=True)
    ]
    batch = parameters[0].type.ndim - cores[0]
    chances = on_grid(lambda value, *several: _chance(make(*several), value), full, grid.reshape((1,) * batch + (-1,)))
    below = chances[..., : lower + 1].sum(axis=-1, keepdims=True)
    above = pt.maximum(1 - chances.sum(axis=-1, keepdims=True), 0.0)
    return pt.concatenate([below, chances[..., lower + 1 :], above], axis=-1)


def _chance(random: Variable, value: Tensor) -> Tensor:
    """The probability of a value. That of a mixture is added up: its logarithm has no slope where no component can give the value."""
    if not isinstance(random.owner.op, mixture.MixtureRV) or len(random.owner.inputs) < 4:
        return pt.exp(pm.logp(random, value))
    _, weights, *components = random.owner.inputs
    parts = [weights[..., k] * pt.exp(pm.logp(component, value)) for k, component in enumerate(components)]
    return sum(parts[1:], parts[0])


def on_grid(of: Callable[..., Variable], parameters: Sequence[Tensor], values: np.ndarray) -> Tensor:
    """A function of values and parameters, such as a log-density, on values that broadcast against the parameters."""
    # PyMC clones what is above a distribution where it derives its density, so it sees stand-ins for the model's unknowns.
    standing_in = [parameter.type() for parameter in parameters]
    return substitute(of(pt.constant(values), *standing_in), dict(zip(standing_in, parameters, strict=True)))
