"""Covariates that are real numbers with noise: classical measurement error with a known law.

Where a normal number rests on a normal covariate linearly, the covariate is integrated out in closed form. Otherwise its true values are
unknowns of the model, ``<name>_true``, and are drawn with the rest.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.basic import NormalRV

from pymc_dp.publications.noises import Exact, GaussianNoise, LaplaceNoise
from pymc_dp.publications.observed import observed_numbers
from pymc_dp.publications.patterns import Mixed, Patterns, is_affine
from pymc_dp.publications.publication import Codebook, steps_of
from pymc_dp.publications.reals import log_given_latent, normal_with_noise
from pymc_dp.publications.rows import Read, as_unknown, is_whole, observe, read


def observe_measured(
    model: pm.Model,
    clone: pm.Model,
    books: Mapping[str, Codebook],
    values_by_name: Mapping[str, np.ndarray],
    below: Mapping[str, Sequence[str]],
) -> set[str]:
    """Observe real covariates with noise, and what rests on one alone and linearly. Returns the names of what is done."""
    observed_names: set[str] = set()
    for name in below:
        if is_whole(clone[name]) or clone[name].owner is None or isinstance(steps_of(books[name])[0], Exact):
            continue
        outcome = below[name][0]
        if len(below[name]) == 1 and outcome in books and _may_be_closed(clone, name, outcome, books, below):
            pair = [read(model, clone, member, steps_of(books[member]), values_by_name)[0] for member in (name, outcome)]
            with clone:
                joint = _closed(*pair)
                observe(pair[0], pt.zeros(pair[0].events.low.shape))
                observe(pair[1], joint)
            observed_names |= {name, outcome}
            continue
        for covariate in read(model, clone, name, steps_of(books[name]), values_by_name):
            with clone:
                observe(covariate, log_given_latent(covariate.rows.name, as_unknown(covariate.rows, covariate.random), covariate.events))
        observed_names.add(name)
    return observed_names


def _may_be_closed(clone: pm.Model, name: str, outcome: str, books: Mapping[str, Codebook], below: Mapping[str, Sequence[str]]) -> bool:
    """Whether both are normal, one a linear function of the other, under noises for which their joint density has a closed form."""
    x, y = clone[name], clone[outcome]
    noises = [steps_of(books[member]) for member in (name, outcome)]
    if any(len(steps) > 1 for steps in noises) or not all(isinstance(variable.owner.op, NormalRV) for variable in (x, y)):
        return False
    if not isinstance(noises[0][0], GaussianNoise | LaplaceNoise) or not isinstance(noises[1][0], GaussianNoise | Exact):
        return False
    scale = noises[0][0].setting
    if isinstance(noises[0][0], LaplaceNoise) and (isinstance(scale, Variable) or np.unique(np.asarray(scale)).size > 1):
        return False
    shapes = [observed_numbers(clone, variable).shape for variable in (x, y)]
    mean, sigma = y.owner.op.dist_params(y.owner)
    others = {clone[covariate] for covariate in below if covariate != name and covariate in clone.named_vars}
    if len(shapes[0]) != 1 or shapes[0] != shapes[1] or others & {*ancestors([x]), *ancestors([y])}:
        return False
    if x in set(ancestors([sigma])) or not is_affine(mean, x):
        return False
    try:
        _line(mean, x, shapes[0])
    except Mixed:
        return False
    return True


def _line(mean: Variable, x: Variable, shape: tuple[int, ...]) -> tuple[Variable, Variable]:
    """Intercepts and slopes (N,) of a mean that is affine in x, record by record: its values at x = 0, and at x = 1 less these."""
    ends = [Patterns({x: pt.constant(np.full((1, *shape), end))}).rows(mean + pt.zeros(shape))[0] for end in (0.0, 1.0)]
    return ends[0], ends[1] - ends[0]


def _closed(covariate: Read, outcome: Read) -> Variable:
    """Log-density (N,) of both published numbers: that of the outcome, and that of the covariate given the outcome.

    x ~ N(m, t^2) and y given x ~ N(a + b x, s^2), so y ~ N(a + b m, s^2 + b^2 t^2), and x given y is normal with mean
    m + b t^2 (y - a - b m) / (s^2 + b^2 t^2) and variance t^2 s^2 / (s^2 + b^2 t^2). To x given y the noise is added.
    """
    shape = covariate.events.low.shape
    m, t = (parameter.astype("float64") + pt.zeros(shape) for parameter in covariate.random.owner.op.dist_params(covariate.random.owner))
    mean, s = outcome.random.owner.op.dist_params(outcome.random.owner)
    a, b = _line(mean.astype("float64"), covariate.random, shape)
    published = outcome.events.low
    spread = s.astype("float64") ** 2
    if not isinstance(outcome.events.noise, Exact):
        spread = spread + outcome.events.setting**2
    whole = spread + b**2 * t**2
    residual = published - a - b * m
    log_outcome = -0.5 * (residual**2 / whole + pt.log(2 * np.pi * whole))
    return log_outcome + normal_with_noise(m + b * t**2 * residual / whole, t**2 * spread / whole, covariate.events)
