"""What to write in place of a likelihood that cannot be released: totals, draws from the posterior, or records that are randomised one
by one.
"""

from collections.abc import Callable
from math import prod

import numpy as np
import pymc as pm
from pymc.distributions import mixture
from pymc.model.fgraph import ModelFreeRV
from pymc.variational.minibatch_rv import MinibatchRandomVariable
from pytensor.graph.basic import Variable
from pytensor.tensor.random.basic import BernoulliRV, BinomialRV, CategoricalRV

from pymc_dp.models.binned import COUNTED, has_plain_support
from pymc_dp.models.model_arrays import ModelArrays
from pymc_dp.models.observed import Observed
from pymc_dp.models.spec import Likelihood, advice
from pymc_dp.models.structure import PerRecord, Unreduced
from pymc_dp.models.tabulated import REALS
from pymc_dp.models.truncated_priors import has_own_transform
from pymc_dp.privacy.requests import MOST_UNKNOWNS

TOTALS = {
    "Binomial": '"individual"',
    "Multinomial": '"individual"',
    "Poisson": "pymc_dp.Individual(events=m), m the most events of one person",
}
"""Distributions whose rows may be totals, and the unit that says so."""
SUMMED_OUT = {
    "Poisson": "pm.NegativeBinomial has a Gamma rate for every record",
    "Binomial": "pm.BetaBinomial has a Beta probability for every record, and pm.Mixture a class",
    "Bernoulli": "pm.Bernoulli of the mean of its probability over that parameter",
    "Normal": "pm.Normal of a normal mean has a larger standard deviation, and pm.Mixture has a class for every record",
}
"""Distributions of which a parameter by record can be summed out, and how."""
WRITTEN_OUT = {
    "DirichletMultinomial": "Write it column by column, each a pm.BetaBinomial of what those before leave. Of three columns, first with n,"
    " alpha=a[0] and beta=a[1] + a[2], then with n less the first column, alpha=a[1] and beta=a[2]",
    "MvStudentT": "Write pm.MvNormal; or a pm.StudentT of every column, with bounds in pymc_dp.Bins(lower, upper)",
}
"""Distributions of vectors that are written as others, and how."""
TOGETHER = "pm.MvNormal of a normal mean that the columns share has a covariance"
AT_RANDOM = (
    "randomise every record: pymc_dp.randomise (docs/any_likelihood.md), whose intervals are 1.3 to 2.3 times as wide as without privacy"
    " at epsilon 4, and 4.9 to 18 times at 1"
)
"""How to use a likelihood that has nothing to add up, and its price as measured there."""


def instead_of(
    reason: Unreduced, likelihood: Likelihood, arrays: ModelArrays, observed: Observed, read_record: Callable[[], object]
) -> str:
    """What else there is, in words; "" where there is nothing.

    Parameters
    ----------
    reason : Unreduced
        Why the likelihood cannot be released.
    likelihood : Likelihood
    arrays : ModelArrays
    observed : Observed
    read_record : callable
        Reads the likelihood as the density of one record, or raises ``Unreduced``.
    """
    if likelihood.aggregate:
        return ""
    if isinstance(reason, PerRecord):
        return _without_parameter_by_record(likelihood, observed)
    try:
        read_record()
    except Unreduced as other:
        instead = advice([likelihood], str(other)) if str(other) != str(reason) else ""
        return f" Draws from the posterior itself do without statistics, but {other}.{instead}" if instead else ""
    except Exception:  # it could not be drawn from either
        return ""
    if likelihood.ordered:
        return ""
    # What PyMC makes of missing values is no unknown: whether there are any does not show.
    unknowns = [variable for variable in arrays.graph.of_kind(ModelFreeRV) if variable.owner.op.name not in arrays.imputed]
    shapes = [variable.owner.inputs[0].type.shape for variable in unknowns]
    few = all(None not in shape for shape in shapes) and sum(prod(shape) for shape in shapes) <= MOST_UNKNOWNS
    chains = "" if few else 'method="mcmc", '
    return f' Or draw from the posterior itself: mechanism=pymc_dp.PosteriorSample({chains}truncate="prior").'


def _without_parameter_by_record(likelihood: Likelihood, observed: Observed) -> str:
    """What to write where every record has an unknown of its own."""
    several = observed.ndim > 1
    said = TOTALS.get(likelihood.distribution)
    if type(observed.random.owner.op) in REALS and has_plain_support(observed.random):
        said = "pymc_dp.Individual(moves=m), m the farthest that one person can move a row"
    kind = "totals" if likelihood.distribution in TOTALS else "means"
    totals = f" If rows are {kind} of many people, and everyone may know which rows there are, write unit={said}." if said else ""
    known = TOGETHER if several and likelihood.distribution == "Normal" else SUMMED_OUT.get(likelihood.distribution)
    summed = f" Write the distribution with that parameter summed out, if it has one: {known}." if known else ""
    lying = " If records lie along another axis than the first, transpose what is observed." if several else ""
    return totals + lying + summed + (f" Or {AT_RANDOM}." if likelihood.alone else "")


def is_alone(arrays: ModelArrays, observed: Observed) -> bool:
    """Whether a record has a single number here whose distribution PyMC can evaluate, so that the record may be told at random."""
    operation = observed.random.owner.op
    if arrays.aggregate or not arrays.sized or observed.ndim != 1 or isinstance(operation, MinibatchRandomVariable):
        return False
    return isinstance(operation, BernoulliRV | BinomialRV | CategoricalRV) or has_distribution(observed.random)


def has_distribution(random: Variable) -> bool:
    """Whether PyMC knows the distribution function of single numbers, of whole ones at many points at once."""
    operation = None if random.owner is None else random.owner.op
    if getattr(operation, "ndim_supp", 1) != 0:
        return False
    whole = np.dtype(random.type.dtype).kind != "f"
    try:
        pm.logcdf(random, 0.0)
    except (NotImplementedError, TypeError, ValueError, AssertionError):  # the last where PyMC has it for one set of parameters alone
        return False
    return not whole or isinstance(operation, (*COUNTED, mixture.MixtureRV))


def is_ordered(arrays: ModelArrays) -> bool:
    """Whether a prior keeps its unknowns in an order, or says more of them in another way, so that it is not cut off."""
    return any(has_own_transform(v) for v in arrays.graph.of_kind(ModelFreeRV) if v.owner.op.name not in arrays.imputed)
