"""Loop over numbers of events with noise on them and on what events add up to: see ``events``. Shapes: B cells."""

from math import lgamma, pi

import numpy as np

from pymc_dp.laws.counts import _log_noise, _window_start
from pymc_dp.laws.sums import _log_erfcx, _scores, _tail


def events_plus_noise(z, n, log_event, log_other, mean, variance, length, noise, width, gaussian):
    """Log-density of noisy (sum, number of events), z (B, 2), of n records, and derivatives by ``log_event`` to ``variance``.

    These are the log-probabilities of an event and of none, and mean and variance of what one event adds. ``noise`` is
    ``Noise.kernel`` and ``width`` the scale of Laplace noise, or the standard deviation of Gaussian noise, on the sum.
    """
    value = np.empty_like(mean)
    by_event, by_other, by_mean, by_variance = np.empty_like(mean), np.empty_like(mean), np.empty_like(mean), np.empty_like(mean)
    length, b, normal = int(length[()]), width[()], gaussian[()] > 0
    for i in range(len(z)):
        start = _window_start(z[i, 1], n[i], length)
        top, total, events, of_mean, of_variance = -np.inf, 0.0, 0.0, 0.0, 0.0
        for j in range(int(min(length, n[i] - start + 1))):
            s = start + j
            told = _sum_of_events(z[i, 0] - s * mean[i], max(s * variance[i], (1e-9 * b) ** 2), b, normal)
            term = lgamma(n[i] + 1) - lgamma(s + 1) - lgamma(n[i] - s + 1) + s * log_event[i] + (n[i] - s) * log_other[i]
            term += _log_noise(z[i, 1] - s, noise) + told[0]
            if term > top:
                shrink = np.exp(top - term)
                total, events, of_mean, of_variance = total * shrink, events * shrink, of_mean * shrink, of_variance * shrink
                top = term
            weight = np.exp(term - top)
            total += weight
            events += weight * s
            of_mean += weight * s * told[1]
            of_variance += weight * s * told[2]
        value[i] = np.log(total) + top
        by_event[i], by_other[i] = events / total, n[i] - events / total
        by_mean[i], by_variance[i] = of_mean / total, of_variance / total
    return value, by_event, by_other, by_mean, by_variance


def _sum_of_events(residual, variance, b, normal):
    """Log-density of a normal sum with noise, and its derivatives by mean and variance."""
    if normal:
        whole = variance + b**2
        return -0.5 * (residual**2 / whole + np.log(2 * pi * whole)), residual / whole, 0.5 * (residual**2 / whole - 1) / whole
    return _scores(residual, variance, b)


PARTS = (_sum_of_events, _window_start, _log_noise, _scores, _tail, _log_erfcx)
"""What the loop calls."""
