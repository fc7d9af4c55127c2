"""Predictive draws of published numbers: the truth from its distribution, then everything that was done to it, step by step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.tensor.random.op import RandomVariable

from pymc_dp.publications.events import Clipped, Rounded
from pymc_dp.publications.noises import Exact, GaussianNoise, LaplaceNoise, Noise, Step
from pymc_dp.publications.ratios import NoisyRatio
from pymc_dp.publications.tables import RoundedToBase, Transitions

Published = Callable[[np.ndarray, np.random.Generator], np.ndarray]
"""From true numbers to published ones, of the shape of the rows."""


def publisher(steps: Sequence[Step], setting: object) -> Published | None:
    """What is done to true numbers; None where draws of it are not offered: of ratios, unknown scales and thresholds.

    Parameters
    ----------
    steps : sequence of Step
        The noise first, which may be left out.
    setting : array or Variable
        The number of the noise for every row.
    """
    noise, later = (steps[0], steps[1:]) if isinstance(steps[0], Noise) else (Exact(), steps)
    if isinstance(noise, NoisyRatio) or isinstance(setting, Variable) or not all(isinstance(step, Clipped | Rounded) for step in later):
        return None
    settings = np.asarray(setting, dtype=float)

    def published(truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        numbers = _with_noise(noise, np.asarray(truth, dtype=float), settings, rng)
        for step in later:
            numbers = _done(step, numbers)
        return numbers

    return published


def _with_noise(noise: Noise, truth: np.ndarray, settings: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Noise drawn by the laws that the likelihood is made of: inverse distribution functions of the same tables."""
    if isinstance(noise, Exact):
        return truth
    if isinstance(noise, LaplaceNoise):
        return truth + rng.laplace(scale=np.broadcast_to(settings, truth.shape))
    if isinstance(noise, GaussianNoise):
        return truth + rng.normal(scale=np.broadcast_to(settings, truth.shape))
    uniform = rng.random(truth.shape)
    if isinstance(noise, RoundedToBase):
        below = np.floor(truth / noise.base) * noise.base
        return below + noise.base * (uniform < (truth - below) / noise.base)
    settings = np.broadcast_to(settings, truth.shape)
    noisy = np.empty(truth.shape)
    for number in np.unique(settings):
        here = settings == number
        if isinstance(noise, Transitions):
            upto = noise.table(float(number)).cumsum(axis=1)
            upto /= upto[:, -1:]
            noisy[here] = (uniform[here][:, None] > upto[truth[here].astype(int)]).sum(axis=1)
        else:
            upto = noise.pmf(float(number)).cumsum()
            noisy[here] = truth[here] + np.searchsorted(upto / upto[-1], uniform[here]) - (len(upto) - 1) // 2
    return noisy


def _done(step: Any, numbers: np.ndarray) -> np.ndarray:
    """Rounding, as ``Rounded`` says, or clipping."""
    if isinstance(step, Clipped):
        return np.clip(numbers, step.lower, step.upper)
    parts = numbers / step.base
    return (np.rint(parts) if step.ties == "even" else np.floor(parts + 0.5)) * step.base


@dataclass(frozen=True)
class Draws:
    """How published numbers are drawn: from which variables, their signature as of a generalised NumPy function, and by what."""

    parameters: tuple[Variable, ...]
    signature: str
    draw: Callable[..., np.ndarray]


def drawn_anew(random: Variable, published: Published | None) -> Draws | None:
    """Draws of numbers behind which the truth is summed out: with a new truth each time.

    There are none of distributions that NumPy does not draw by itself, such as mixtures and censored ones.
    """
    operation = random.owner.op
    if published is None or not isinstance(operation, RandomVariable) or operation.signature is None:
        return None

    def draw(row: np.ndarray, *parameters: np.ndarray, rng: np.random.Generator, size: tuple[int, ...] | None) -> np.ndarray:
        return published(operation.rng_fn(rng, *parameters, np.shape(row) if size is None else size), rng)

    return Draws(tuple(operation.dist_params(random.owner)), operation.signature.partition("->")[0], draw)


def drawn_given(truth: Variable, published: Published | None) -> Draws | None:
    """Draws of numbers of which the truth is a variable of the model."""
    if published is None:
        return None

    def draw(row: np.ndarray, truth: np.ndarray, rng: np.random.Generator, size: tuple[int, ...] | None) -> np.ndarray:
        return published(np.broadcast_to(truth, np.shape(row) if size is None else size), rng)

    return Draws((truth,), "()", draw)
