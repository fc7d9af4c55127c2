"""Which whole numbers a distribution of true values can give, and whether what was published would be impossible for some of them."""

import numpy as np
from pymc.distributions.discrete import DiscreteUniformRV
from pytensor.graph.basic import Variable
from pytensor.tensor.random.basic import BernoulliRV, BinomialRV, CategoricalRV, GeometricRV, NegBinomialRV, PoissonRV

from pymc_dp.models.structure import constant_value
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.publications.events import Events
from pymc_dp.publications.tables import RandomisedResponse, Transitions, UnrelatedQuestion


def levels_of(random: Variable) -> int:
    """How many levels a categorical variable has."""
    [p] = random.owner.op.dist_params(random.owner)
    levels = p.type.shape[-1] if p.type.shape[-1] is not None else constant_value(p.shape[-1])
    if levels is None:
        raise Refusal(f"How many levels {random.name} has is not known. Write p with a shape, as in pm.Dirichlet('p', np.ones(3)).")
    return int(levels)


def largest_of(random: Variable) -> int | None:
    """The largest whole number that a distribution can give, where it says one."""
    operation = random.owner.op
    if isinstance(operation, BernoulliRV):
        return 1
    if isinstance(operation, CategoricalRV):
        return levels_of(random) - 1
    if isinstance(operation, BinomialRV | DiscreteUniformRV):
        first, second = operation.dist_params(random.owner)
        most = constant_value(first if isinstance(operation, BinomialRV) else second)
        return None if most is None else int(np.max(most))
    return None


def check_truth(name: str, random: Variable, events: Events) -> None:
    """Refuse whole numbers that the model gives a chance and the law none: others would be taken for them, silently."""
    operation, noise = random.owner.op, events.noise
    if isinstance(operation, DiscreteUniformRV) and not events.as_it_was:
        least = constant_value(operation.dist_params(random.owner)[0])
        if least is None or np.min(least) < 0:
            raise Refusal(f"{name} may lie below 0, and true counts are taken from 0 on. Write {name} less the least that it can be.")
    if not isinstance(noise, Transitions):
        return
    levels = noise.table(float(np.min(np.asarray(noise.setting)))).shape[0]
    if isinstance(operation, CategoricalRV) and levels_of(random) > levels:
        raise Refusal(
            f"{name} has {levels_of(random)} levels, and of {levels} it is said how they were published. Write a row of the matrix, or"
            " levels=, for all of them."
        )
    if not isinstance(noise, RandomisedResponse | UnrelatedQuestion):
        return
    most = largest_of(random)
    if isinstance(operation, PoissonRV | NegBinomialRV | GeometricRV) or (most is not None and most >= levels):
        raise Refusal(
            f"{name} counts, and {noise.words} is of single answers. Write the number of yes among n answers as"
            " pm.Binomial('yes', n, truth * p + (1 - truth) * (1 - p)) with pymc_dp.Exact()."
        )
