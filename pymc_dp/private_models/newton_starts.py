"""Where chains of a regression start: from PyMC's jittered point they climb to coefficients at which the released numbers are likely.

PyMC starts within 1 of where the prior says. A coefficient of age² that is off by 1 is off by thousands of posterior standard deviations,
and on its way from there a chain may come to rest on noise that would explain it. So coefficients are moved first, by Newton's method,
with the latent noise near its expectation, and with all else where PyMC has put it.
"""

from collections.abc import Callable

import numpy as np
import pymc as pm
from pytensor.graph.traversal import ancestors

from pymc_dp.private_models.likelihood import LATENT
from pymc_dp.releases.noisy_statistic import NoisyStatistic

STEPS = 30
"""Of Newton's method, at most."""
HALVINGS = 30
"""Of a step, at most."""
MOST_COEFFICIENTS = 200
"""A Hessian takes as many gradients as there are coefficients; with more of them chains start where PyMC says."""
SETTLED = 0.1
"""Nats that a step must gain, or it is the last."""
APART = 1e-4
"""Differences by which second derivatives are taken, relative to the point, or absolute where that is within 1."""

NEARLY = 0.01
"""By what the jitter of latent noise is multiplied; at its expectation nutpie takes a gradient of 0 for a mistake."""

Density = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""A log-density and its gradient at a point (P,)."""


def _released(model: pm.Model) -> tuple[NoisyStatistic, ...]:
    """What a private model is given; nothing where a model of records is fitted, as plans do."""
    return getattr(model, "released", ())


def latents_of(model: pm.Model) -> set[str]:
    """Names of the exact sums and counts that are unknowns of the model."""
    return {f"{statistic.variable}{LATENT}" for statistic in _released(model)}


def coefficients_of(private: pm.Model) -> list[str]:
    """Names of values that are moved: unknowns of a regression, on the whole line, on which no other unknown rests.

    What others rest on is left where it is: the density of a hierarchy has no mode.
    """
    if all(statistic.regression is None for statistic in _released(private)):
        return []
    latents = latents_of(private)
    above = {variable for unknown in private.free_RVs for variable in ancestors([unknown]) if variable is not unknown}
    return [
        private.rvs_to_values[unknown].name
        for unknown in private.free_RVs
        if private.rvs_to_transforms.get(unknown) is None
        and unknown not in above
        and unknown.name not in latents
        and unknown.dtype.startswith("float")
    ]


def started_by_newton(density: Density, start: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """The point (P,) up the hill from ``start`` in the coordinates ``moved`` (P,), a mask; ``start`` where there is no way up.

    Newton's method in units of each coordinate's own curvature, with directions of no curvature or the wrong one turned round. A step
    that gains nothing is halved.
    """
    places = np.flatnonzero(moved)
    point, (value, gradient) = start, density(start)
    if not (np.isfinite(value) and 0 < len(places) <= MOST_COEFFICIENTS):
        return start
    for _ in range(STEPS):
        step = np.zeros(len(point))
        step[places] = _newton_step(density, point, gradient, places)
        best = None
        for _ in range(HALVINGS):
            tried = point + step
            reached, slope = density(tried)
            if np.isfinite(reached) and reached > value:
                best = tried, reached, slope
                break
            step /= 2
        if best is None:
            return point
        gained = best[1] - value
        point, value, gradient = best
        if gained < SETTLED:
            return point
    return point


def _newton_step(density: Density, point: np.ndarray, gradient: np.ndarray, places: np.ndarray) -> np.ndarray:
    """A Newton step of the coordinates that are moved, with second derivatives from differences of gradients."""
    curvature = np.empty((len(places), len(places)))
    for j, place in enumerate(places):
        near = point.copy()
        near[place] += APART * max(1.0, abs(point[place]))
        curvature[j] = -(density(near)[1] - gradient)[places] / (near[place] - point[place])
    units = 1 / np.sqrt(np.maximum(np.abs(np.diag(curvature)), 1e-12))
    values, vectors = np.linalg.eigh(np.nan_to_num((curvature + curvature.T) / 2 * np.outer(units, units)))
    lengths = np.maximum(np.abs(values), 1e-9)
    return units * (vectors @ (vectors.T @ (units * gradient[places]) / lengths))
