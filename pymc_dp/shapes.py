"""What features of other shapes would do to the sums of a response with a link. Wishart stands before, scatter after.

Second moments say nothing of a feature's shape, and the mean of sum D w rests on it where a link bends: ``wishart`` takes every
feature in turn for a beta variable on its bounds. Had it the same mean and variance and were uniform, or skewed, the mean would be
another one. How far that is, at the coefficients that the released values suggest, is a direction; a standard normal latent for
each says how far along it the records are, so that no amount of records makes a posterior surer of a slope than its shape allows.
Several cells share these latents; those of a single cell are integrated out.
"""

from collections.abc import Callable

import numpy as np

from pymc_dp.regression import Regression
from pymc_dp.wishart import CURVE, SHARES, _clamped_count

STEEPEST = 6.0
"""The largest standard deviation of a linear predictor that is believed of released values."""
SKEW = 1.0
"""The skewness that a feature may have to either side beyond that of its beta variable: one standard deviation of a latent."""
FLATTER = 0.75
"""Of the way from a normal feature to one on two values, by which a feature may differ from its beta variable, either way: one standard
deviation of a latent. A uniform feature is .6 of that way from a normal one, and two humps nearly all of it."""
FLAT, WEIGHTS = np.polynomial.legendre.leggauss(40)
HUMPS, EITHER = np.array([-1.0, 1.0]), np.array([0.5, 0.5])
BELL, BELL_WEIGHTS = np.polynomial.hermite_e.hermegauss(30)


def _gamma() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of a gamma variable with mean 0, variance 1 and this skewness."""
    k = 4 / SKEW**2
    low, high = max(k - 6 * np.sqrt(k), 0.0), k + 10 * np.sqrt(k)
    t = low + (high - low) * (FLAT + 1) / 2
    share = WEIGHTS * np.exp((k - 1) * np.log(t / k) - t + k)
    return (t - k) / np.sqrt(k), share / share.sum()


LONG, LONG_WEIGHTS = _gamma()


def bends(regression: Regression, factor: np.ndarray, inside: np.ndarray, reach: np.ndarray, n: np.ndarray) -> np.ndarray:
    """What one standard deviation of every shape adds to the sums of D w: (B, F, 2 (F - 1)), in their order.

    Parameters
    ----------
    factor : (B, F, F) ndarray
        Cholesky factor of the features' moments over n, private ones as far as released values tell.
    inside, reach : (B, F) ndarrays
        Its inverse over sqrt(n) times the released sums of D w, and the noise on that.
    n : (B,) ndarray
    """
    centre, half = (ends[-1] for ends in regression.centres())
    B, F, _ = factor.shape
    found = np.zeros((B, F, 2 * (F - 1)))
    for i in range(B):
        told, noise = inside[i] / np.sqrt(n[i]) * half, reach[i] / np.sqrt(n[i]) * half
        # Noise is not taken off: it leaves open whether slopes are this steep, and with them how much shapes matter.
        square = (told[1:] ** 2).sum()
        if square == 0:
            continue
        if regression.link == "logit":
            curve, level, deviation = _logistic, *_predictor(centre + told[0], np.sqrt(square))
        else:
            rate = max(centre + told[0], noise[0], 1e-3 * half)
            deviation = min(np.sqrt(square) / rate, np.sqrt(3.0))
            curve, level = _counts(centre + half), np.log(rate) - deviation**2 / 2
        # The predictor is level + deviation * direction'z, with z = L^-1 D whitened.
        own = np.linalg.inv(factor[i])[1:].T @ told[1:] * deviation / np.sqrt(square)
        moments = factor[i] @ factor[i].T
        found[i] = n[i] / half * _of_one(curve, level, own, moments)
    return found


def _of_one(curve: Callable, level: float, own: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """What every shape of every feature adds to E[D g] (F, 2 (F - 1)): humped, and skewed; ``own`` are coefficients of scaled features."""
    F, mean = len(own), moments[0]
    covariance = moments - np.outer(mean, mean)
    with_eta = covariance @ own
    square, found = own @ with_eta, np.zeros((F, 2 * (F - 1)))
    for b in range(1, F):
        m, v = mean[b], covariance[b, b]
        if v < 1e-6:
            continue
        # A feature of the largest variance is on its bounds, and has no other shape.
        free = max(1 - v / (1 - m**2), 0.0)
        slope, s = with_eta[b] / v, np.sqrt(v)
        left = np.sqrt(max(square - slope**2 * v, 0.0))
        shapes = [(BELL, BELL_WEIGHTS / BELL_WEIGHTS.sum()), (HUMPS, EITHER), (LONG, LONG_WEIGHTS), (-LONG, LONG_WEIGHTS)]
        means = []
        for x, share in shapes:
            g, by_eta = curve(level + slope * s * x[:, None] + left * CURVE)
            g, by_eta = g @ SHARES, by_eta @ SHARES
            means.append([share @ g, s * (share * x) @ g, share @ by_eta])
        bell, humps, right, left_hand = np.array(means)
        # u_a - m_a is what it has of u_b, and a rest whose covariance with g is that with the predictor, times E g'.
        of_b = covariance[:, b] / v
        onto = np.stack([mean, of_b, with_eta - of_b * with_eta[b]])
        found[:, 2 * b - 2] = free * FLATTER * (humps - bell) @ onto
        found[:, 2 * b - 1] = free * (right - left_hand) / 2 @ onto
    return found


def _predictor(p: float, with_y: float) -> tuple[float, float]:
    """Mean and sd of a normal predictor of which a logistic response has this mean, and this covariance with it over its sd."""
    p, low, high = min(max(p, 1e-3), 1 - 1e-3), 0.0, STEEPEST
    x, weights = np.polynomial.hermite_e.hermegauss(60)
    weights /= weights.sum()
    for _ in range(30):
        deviation = (low + high) / 2
        below, above = -40.0, 40.0
        for _ in range(40):
            level = (below + above) / 2
            small = weights @ _logistic(level + deviation * x)[0] < p
            below, above = (level, above) if small else (below, level)
        small = deviation * (weights @ _logistic(level + deviation * x)[1]) < with_y
        low, high = (deviation, high) if small else (low, deviation)
    return level, deviation


def _logistic(eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean of a response, and its derivative by the predictor."""
    p = 1 / (1 + np.exp(-np.clip(eta, -500, 500)))
    return p, p * (1 - p)


def _counts(most: float) -> Callable:
    """The same for counts that are clamped from above."""
    mean = np.vectorize(_clamped_count, otypes=[float, float])

    def curve(eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rate = np.exp(np.minimum(eta, 50.0))
        g, by_rate = mean(rate, most)
        return g, by_rate * rate

    return curve
