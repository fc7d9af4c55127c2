"""Any likelihood of counts, through a table of its values.

A likelihood over few integers needs no statistics of its own: how many records have each value says everything. Its parameters
may be those of a mixture or of a truncated or censored distribution; they are read from the graph, and the distribution is made
again from the same parameters on cells.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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

from pymc_dp.families.family import CellSensitivity, Domain, Family, Sensitivity, onto_simplex
from pymc_dp.laws.kernel import Tensor
from pymc_dp.laws.law import Counts, Law
from pymc_dp.models.structure import arrays_above, folded, substitute, untruncated

MOST_VALUES = 1024
"""The most values that are tabulated."""
COUNTS = tuple(
    getattr(pm, name).rv_type
    for name in ("Bernoulli", "Binomial", "Poisson", "NegativeBinomial", "BetaBinomial", "Geometric", "DiscreteWeibull", "HyperGeometric")
)
"""Distributions over the integers from 0 on."""


@dataclass(frozen=True)
class Tree:
    """A distribution and the parameters it is made of.

    Attributes
    ----------
    parameters : tuple of Variable
    cores : tuple of int
        How many trailing axes of each belong to a single value.
    make : callable
        From as many parameters, the distribution again.
    between : callable or None
        From points and the parameters on cells, the probabilities of intervals: see ``binned.measured``.
    """

    parameters: tuple[Variable, ...]
    cores: tuple[int, ...]
    make: Callable[..., Variable]
    between: Callable[..., Tensor] | None = None


def tree_of(random: Variable) -> Tree | None:
    """The parameters of a distribution over counts, or None if it is another one or cannot be read."""
    if random.owner is None:
        return None
    operation = random.owner.op
    if isinstance(operation, mixture.MixtureRV | mixture._HurdleRV):
        return _mixture(random)
    if isinstance(operation, TruncatedRV | CensoredRV):
        return _limited(random, isinstance(operation, CensoredRV))
    if type(operation) is DiracDelta.rv_type:
        (value,) = operation.dist_params(random.owner)
        known = number_in(value)
        if known is None or known < 0:
            return None
        return Tree((), (), lambda: pm.DiracDelta.dist(np.asarray(known, dtype="int64")))
    if type(operation) in COUNTS:
        parameters = tuple(operation.dist_params(random.owner))
        if isinstance(operation, RandomVariable):
            return Tree(parameters, tuple(operation.ndims_params), lambda *parameters: operation(*parameters))
        rv_type: Any = type(operation)
        return Tree(parameters, (0,) * len(parameters), lambda *parameters: rv_type.rv_op(*parameters))
    return None


def _mixture(random: Variable) -> Tree | None:
    weights, *components = [part for part in random.owner.inputs if not isinstance(part.type, RandomType)]
    if len(components) == 1:  # the last axis of its parameters runs over the components
        tree = tree_of(components[0])
        if tree is None or any(parameter.type.ndim == core for parameter, core in zip(tree.parameters, tree.cores, strict=True)):
            return None
        cores = tuple(core + 1 for core in tree.cores)
        return Tree((weights, *tree.parameters), (1, *cores), lambda weight, *others: pm.Mixture.dist(weight, tree.make(*others)))
    trees = [tree_of(component) for component in components]
    if any(tree is None for tree in trees):
        return None
    read = [tree for tree in trees if tree is not None]

    def make(weight: Variable, *others: Variable) -> Variable:
        made, start = [], 0
        for tree in read:
            made.append(tree.make(*others[start : start + len(tree.parameters)]))
            start += len(tree.parameters)
        return pm.Mixture.dist(weight, made)

    parameters = (weights, *(parameter for tree in read for parameter in tree.parameters))
    return Tree(parameters, (1, *(core for tree in read for core in tree.cores)), make)


def _limited(random: Variable, censored: bool) -> Tree | None:
    base, lower, upper = random.owner.inputs if censored else untruncated(random)
    tree, ends = tree_of(base), [number_in(limit) for limit in (lower, upper)]
    if tree is None or None in ends:
        return None
    low, high = (None if end is None or not np.isfinite(end) else end for end in ends)
    kind, make = pm.Censored if censored else pm.Truncated, tree.make
    return Tree(tree.parameters, tree.cores, lambda *parameters: kind.dist(make(*parameters), lower=low, upper=high))


def number_in(variable: Variable) -> float | None:
    """The plain number that a constant expression is; None of any other."""
    value = folded(variable)
    return None if value is None or np.size(value) != 1 or arrays_above([variable]) else float(np.ravel(value)[0])


class Table(Family):
    """How many records have each value from the lower to the upper bound; those beyond count at the bounds.

    Its one parameter is the probability of every value, (..., K): ``probabilities``.
    """

    DISTRIBUTION = "table of values"
    BOUNDS = "integer"
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
        """Onto the simplex of size n."""
        return onto_simplex(noisy, n)

    def log_likelihood(self, sums: Tensor, n: Tensor, domain: Domain, *parameters: Tensor) -> Tensor:
        """Sum over values of s_k log p_k."""
        (p,) = parameters
        return (sums * pt.log(pt.maximum(p, 1e-300))).sum(axis=-1)


class Binned(Table):
    """How many records lie in each bin, the first and the last of which are open: see ``Domain.edges``."""

    DISTRIBUTION = "counts in bins"
    BOUNDS = "real"

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
    each = pt.exp(on_grid(lambda value, *several: pm.logp(make(*several), value), full, grid.reshape((1,) * batch + (-1,))))
    below = each[..., : lower + 1].sum(axis=-1, keepdims=True)
    above = pt.maximum(1 - each.sum(axis=-1, keepdims=True), 0.0)
    return pt.concatenate([below, each[..., lower + 1 :], above], axis=-1)


def on_grid(of: Callable[..., Variable], parameters: Sequence[Tensor], values: np.ndarray) -> Tensor:
    """A function of values and parameters, such as a log-density, on values that broadcast against the parameters."""
    # PyMC clones what is above a distribution where it derives its density, so it sees stand-ins for the model's unknowns.
    standing_in = [parameter.type() for parameter in parameters]
    return substitute(of(pt.constant(values), *standing_in), dict(zip(standing_in, parameters, strict=True)))
