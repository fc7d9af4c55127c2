"""The log-density of published numbers that were made from real numbers.

A normal truth under normal noise is normal, and under Laplace noise has a closed form. A truth that is published without noise, but
rounded or left out, needs its distribution function. Otherwise the truth becomes an unknown of the model, one for every row.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.dist_math import log_diff_normal_cdf, normal_lccdf, normal_lcdf
from pytensor.graph.basic import Variable
from pytensor.tensor.random.basic import NormalRV

from pymc_dp.laws.closed_forms import normal_plus_noise
from pymc_dp.laws.kernel import Tensor
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.noise_law import Noise as Modelled
from pymc_dp.publications.counts import LEAST_CHANCE
from pymc_dp.publications.events import Events
from pymc_dp.publications.noises import Exact, GaussianNoise, LaplaceNoise


@dataclass(frozen=True)
class RealLaw:
    """The law of the noisy number: log-density, log P(below x), log P(above x), and log P(between)."""

    density: Callable[[np.ndarray], Tensor]
    below: Callable[[np.ndarray], Tensor]
    above: Callable[[np.ndarray], Tensor]
    between: Callable[[np.ndarray, np.ndarray], Tensor]


def needs_latent(random: Variable, events: Events) -> bool:
    """Whether the truth has to be an unknown of the model."""
    if isinstance(events.noise, Exact):
        return False
    if not isinstance(random.owner.op, NormalRV):
        return True
    if isinstance(events.noise, GaussianNoise):
        return False
    fixed = not isinstance(events.setting, Variable) and np.unique(events.setting).size == 1
    return not (fixed and events.least is None and bool((events.low == events.high).all()))


def log_reals(name: str, random: Variable, events: Events) -> Tensor:
    """Log-density or log-probability of every row's event, the truth summed out."""
    if isinstance(events.noise, Exact):
        return _of_events(_any_law(random), events)
    mean, sigma = random.owner.op.dist_params(random.owner)
    mean, sigma = mean.astype("float64"), sigma.astype("float64")
    if isinstance(events.noise, GaussianNoise):
        return _of_events(_normal_law(mean, pt.sqrt(sigma**2 + events.setting**2)), events)
    return normal_with_noise(mean, sigma**2, events)


def normal_with_noise(mean: Tensor, variance: Tensor, events: Events) -> Tensor:
    """Log-density of numbers that were published as they are: normal ones plus Gaussian noise, or plus Laplace noise of one scale."""
    if isinstance(events.noise, GaussianNoise):
        return pm.logp(pm.Normal.dist(mean, pt.sqrt(variance + events.setting**2)), events.low)
    scale = float(np.unique(events.setting)[0])
    # The law of the continuous Laplace noise of this scale: on a lattice so fine that it is the same.
    modelled = Modelled(scale=FINE, step=scale / FINE)
    full = np.zeros(events.low.shape)
    return normal_plus_noise(pt.as_tensor(events.low), mean + full, variance + full, modelled)


FINE = 1e6
"""So many lattice units is the scale of Laplace noise in the closed form: their size is squared, so that a trillionth is left out."""


def log_given_latent(name: str, truth: Variable, events: Events) -> Tensor:
    """Log-density or log-probability of every row's event given the true numbers, which are unknowns."""
    if events.least is not None:
        raise Refusal(
            f"{name} has rows that are not in the table, under a distribution for which their share has no closed form. List absent rows as"
            ' NaN and write Threshold(lowest, absent="listed"), or take a Normal model with GaussianNoise.'
        )
    if isinstance(events.noise, GaussianNoise):
        return _of_events(_normal_law(truth, events.setting + pt.zeros_like(truth)), events)
    return _of_events(_any_law(pm.Laplace.dist(truth, events.setting)), events)


def check_real(name: str, events: Events) -> None:
    """Refuse noise on real numbers that is on whole ones."""
    if not isinstance(events.noise, Exact | GaussianNoise | LaplaceNoise):
        raise Refusal(
            f"{name} has a distribution of real numbers, and {events.noise.words} is for counts. Write a distribution of counts (Poisson,"
            " Binomial, NegativeBinomial), or GaussianNoise or LaplaceNoise of the same scale where it is wide."
        )


def _normal_law(mean: Tensor, sigma: Tensor) -> RealLaw:
    return RealLaw(
        lambda x: pm.logp(pm.Normal.dist(mean, sigma), x),
        lambda x: normal_lcdf(mean, sigma, x),
        lambda x: normal_lccdf(mean, sigma, x),
        lambda low, high: log_diff_normal_cdf(mean, sigma, pt.as_tensor(high), pt.as_tensor(low)),
    )


def _any_law(random: Variable) -> RealLaw:
    def above(x: np.ndarray) -> Tensor:
        return pt.log(pt.maximum(-pt.expm1(pt.minimum(pm.logcdf(random, x), 0.0)), LEAST_CHANCE))

    def between(low: np.ndarray, high: np.ndarray) -> Tensor:
        upper = pm.logcdf(random, high)
        return upper + pt.log(pt.maximum(-pt.expm1(pt.minimum(pm.logcdf(random, low) - upper, 0.0)), LEAST_CHANCE))

    return RealLaw(lambda x: pm.logp(random, x), lambda x: pm.logcdf(random, x), above, between)


def _of_events(law: RealLaw, events: Events) -> Tensor:
    """Every row's event under a law; each kind of event is evaluated for all rows, where there is one, at a harmless place elsewhere."""
    low, high = events.low, events.high
    point, lower, upper = low == high, low == -np.inf, high == np.inf
    middle = ~(point | lower | upper)
    anywhere = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
    kinds = [
        (point, lambda: law.density(anywhere)),
        (lower, lambda: law.below(np.where(lower, high, anywhere))),
        (upper, lambda: law.above(np.where(upper, low, anywhere))),
        (middle, lambda: law.between(np.where(middle, low, anywhere), np.where(middle, high, anywhere + 1.0))),
    ]
    result: Tensor | None = None
    for here, evaluated in kinds:
        if here.any():
            result = evaluated() if result is None else pt.switch(here, evaluated(), result)
    assert result is not None
    return result if events.least is None else result - law.above(events.least)
