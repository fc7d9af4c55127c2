"""Loops over numbers of events with noise on them and on what events add up to: see ``events``. Shapes: B cells."""

from math import lgamma, pi

import numpy as np

from pymc_dp.laws.counts import _log_noise, _window_start
from pymc_dp.laws.sums import _determined_pair, _log_between, _log_erfcx, _mean_to_end, _scores, _tail

BELOW = 30.0
"""Numbers of events whose terms are so many nats below another's are left out."""


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


def events_of_unknown(z, n, log_event, log_other, mean, variance, length, noise, width, gaussian):
    """Log-density of noisy sums z (B, 3) of cells whose numbers of records are unknown, and derivatives by ``n`` to ``variance``.

    With S what the s events add up to, z is s - S, s + S and twice the number of the others, each with noise: see ``events``.
    """
    value, by_n = np.empty_like(mean), np.empty_like(mean)
    by_event, by_other, by_mean, by_variance = np.empty_like(mean), np.empty_like(mean), np.empty_like(mean), np.empty_like(mean)
    length, b, normal = int(length[()]), width[()], gaussian[()] > 0
    shares, slopes, others = np.empty(length), np.empty(length), np.empty(length)
    for i in range(len(z)):
        whole = np.rint(n[i])
        start = _window_start((z[i, 0] + z[i, 1]) / 2, whole + 1, length)
        many = int(min(length, whole + 2 - start))
        best, first, ways = -np.inf, 0, lgamma(whole + 1) - lgamma(start + 1) - lgamma(whole - start + 1)
        for j in range(many):
            s = start + j
            shares[j], slopes[j], others[j] = _share_of_events(s, ways, n[i] - whole, whole, z[i, 2], log_event[i], log_other[i], noise)
            shares[j] += _at_most(z[i, 0] + z[i, 1] - 2 * s, b, normal)
            ways += np.log(max(whole - s, 1.0) / (s + 1))
            if shares[j] > best:
                best, first = shares[j], j
        top, total, sizes, events, rest, of_mean, of_variance = -np.inf, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for place in range(many + 1):  # that with the highest bound comes first
            j = first if place == 0 else place - 1
            if (j == first and place > 0) or shares[j] < top - BELOW:
                continue
            s = start + j
            told = _pair_of_events(z[i, 0] - s, z[i, 1] - s, s * mean[i], max(s * variance[i], (1e-9 * b) ** 2), b, normal)
            term = shares[j] - _at_most(z[i, 0] + z[i, 1] - 2 * s, b, normal) + told[0]
            if term > top:
                shrink = np.exp(top - term)
                total, sizes, events, rest = total * shrink, sizes * shrink, events * shrink, rest * shrink
                of_mean, of_variance, top = of_mean * shrink, of_variance * shrink, term
            weight = np.exp(term - top)
            total += weight
            sizes += weight * slopes[j]
            events += weight * s
            rest += weight * others[j]
            of_mean += weight * s * told[1]
            of_variance += weight * s * told[2]
        value[i], by_n[i] = np.log(total) + top, sizes / total
        by_event[i], by_other[i] = events / total, rest / total
        by_mean[i], by_variance[i] = of_mean / total, of_variance / total
    return value, by_n, by_event, by_other, by_mean, by_variance


def _share_of_events(s, ways, beyond, whole, z, log_event, log_other, noise):
    """Log-probability of s events and of the others' noisy number; its derivative by n, and how many others there are on average.

    Of whole - 1, whole and whole + 1 records the shares are those of a quadratic spline of beyond = n - whole, in [-1/2, 1/2]. ``ways``
    is the logarithm of how many choices of s of whole records there are.
    """
    ways = ways if s <= whole else 0.0
    top, total, slope, rest = -np.inf, 0.0, 0.0, 0.0
    for k in range(3):
        many = max(whole + k - 1, 0.0)
        others = many - s
        if k == 1:
            share, change = 0.75 - beyond**2, -2 * beyond
        else:
            change = beyond + (k - 1) / 2
            share = change**2 / 2
        if others < 0 or share <= 0:
            continue
        ratio = 1.0  # of how many choices there are of so many records, to those of whole ones
        if many < whole:
            ratio = (whole - s) / whole
        elif many > whole >= s:
            ratio = many / others
        term = ways + s * log_event + others * log_other + _log_noise(z - 2 * others, noise)
        if term > top:
            shrink = np.exp(top - term)
            total, slope, rest, top = total * shrink, slope * shrink, rest * shrink, term
        weight = np.exp(term - top) * ratio
        total += share * weight
        slope += change * weight
        rest += share * weight * others
    if total == 0:
        return -np.inf, 0.0, 0.0
    return np.log(total) + top, slope / total, rest / total


def _at_most(over, b, normal):
    """Log-density of noise on both sums of which ``over`` is the total, where it is largest."""
    if normal:
        return -(over**2) / (4 * b**2) - np.log(2 * pi * b**2)
    return -abs(over) / b - 2 * np.log(2 * b)


def _pair_of_events(under, above, mean, variance, b, normal):
    """Log-density of -S and S with noise, S being normal, and its derivatives by mean and variance."""
    if normal:
        value, by_mean, by_variance = _sum_of_events((above - under) / 2 - mean, variance, b / np.sqrt(2.0), normal)
        return value - (under + above) ** 2 / (4 * b**2) - 0.5 * np.log(4 * pi * b**2), by_mean, by_variance
    sd = np.sqrt(variance)
    value, by_1, by_2, by_sd, by_slope = _determined_pair((under + mean) / sd, sd / b, (mean - above) / sd, -sd / b, b)
    return value, by_2 - by_1, (by_sd - by_slope) / (2 * sd)


PARTS = (
    _sum_of_events, _share_of_events, _at_most, _pair_of_events, _window_start, _log_noise, _scores, _tail, _log_erfcx,
    _determined_pair, _mean_to_end, _log_between,
)  # fmt: skip
"""What the loops call."""
