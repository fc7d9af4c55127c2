"""Loops over whole counts with noise on them: sums over every count in a window, with their derivatives.

Shapes: B cells, K counts. ``noise`` is ``Noise.kernel``.
"""

from math import lgamma, pi

import numpy as np

from pymc_dp.laws.kernel import LEAST, NEGLIGIBLE

NEWTON = 5
"""Steps towards a saddle point."""
STEEP = 300.0
"""The most nats that noise is taken to lose from one count to the next."""


def rate_window(z, rate, length, noise):
    """Poisson counts plus noise, by a sum over every count within the window, and the derivative by the rate."""
    value, by_rate = np.empty_like(rate), np.empty_like(rate)
    length = int(length[()])
    terms = np.empty(length)
    for i in range(len(z)):
        start = max(np.rint(z[i]) - (length - 1) // 2, 0.0)
        log_rate = np.log(max(rate[i], 1e-300))
        term = start * log_rate - rate[i] - lgamma(start + 1)
        for j in range(length):
            s = start + j
            terms[j] = term + _log_noise(z[i] - s, noise)
            term += log_rate - np.log(s + 1)
        value[i], mean = _log_sum(terms, length)
        by_rate[i] = (start + mean) / max(rate[i], 1e-300) - 1
    return value, by_rate


def count_window(z, n, p, length, noise):
    """Binomial counts plus noise, by a sum over every count within the window, and the derivative by p."""
    value, by_p = np.empty_like(p), np.empty_like(p)
    length = int(length[()])
    terms = np.empty(length)
    for i in range(len(z)):
        start = _window_start(z[i], n[i], length)
        chance, rest = max(p[i], 1e-300), max(1 - p[i], 1e-300)
        log_odds = np.log(chance) - np.log(rest)
        term = lgamma(n[i] + 1) - lgamma(start + 1) - lgamma(n[i] - start + 1) + start * log_odds + n[i] * np.log(rest)
        many = int(min(length, n[i] - start + 1))
        for j in range(many):
            s = start + j
            terms[j] = term + _log_noise(z[i] - s, noise)
            term += np.log(max(n[i] - s, 1.0) / (s + 1)) + log_odds
        value[i], mean = _log_sum(terms, many)
        by_p[i] = (start + mean) / chance - (n[i] - start - mean) / rest
    return value, by_p


def counts_convolution(z, n, p, length, noise):
    """Multinomial counts plus noise, exactly, z and p (B, K): forward convolution over windows (docs/theory.md).

    The sum over all (s_1..s_K) with total n of prod_k (n p_k)^s_k / s_k! noise(z_k - s_k) is one coefficient of a product of K
    polynomials. Multiplying every s_k by the same number leaves it unchanged up to a factor, so the terms of all levels are
    divided by their values at the likeliest counts that add up to n, tilted so that none is larger there: nothing underflows.
    The last level takes what the others leave. The derivatives are means of s_k, by the same products backwards.
    """
    value, by_p = np.empty_like(n), np.empty_like(p)
    length, last = int(length[()]), z.shape[1] - 1
    start, mode, rate = np.empty(last + 1), np.zeros(last, np.int64), np.empty(last + 1)
    weights = np.empty((last, length))
    final = np.empty(last * (length - 1) + 1)
    products = np.empty((last, len(final)))
    for i in range(len(z)):
        left = n[i]
        for k in range(last + 1):
            start[k], rate[k] = _window_start(z[i, k], n[i], length), n[i] * max(p[i, k], LEAST)
            if k < last:
                left -= start[k]
        value[i] = NEGLIGIBLE
        by_p[i] = 0.0
        if left < 0:
            continue
        left, tilt = _likeliest_counts(start, left, n[i], z[i], rate, length, noise, mode)
        value[i] = lgamma(n[i] + 1) - n[i] * np.log(n[i]) + _term(left, z[i, last], rate[last], noise)
        for k in range(last):
            value[i] += _term(start[k] + mode[k], z[i, k], rate[k], noise)
        _tilted_terms(start, left, n[i], z[i], rate, noise, mode, tilt, weights, final)
        _products(weights, products)
        coefficient = 0.0
        for t in range(len(final)):
            coefficient += products[last - 1, t] * final[t]
        value[i] += np.log(coefficient)
        others = 0.0
        for k in range(last - 1, -1, -1):
            mean = _mean_of_level(k, start[k], weights, products, final) / coefficient
            others += mean
            by_p[i, k] = mean / p[i, k] if p[i, k] > LEAST else 0.0
        by_p[i, last] = (n[i] - others) / p[i, last] if p[i, last] > LEAST else 0.0
    return value, by_p


def _likeliest_counts(start, left, n, z, rate, length, noise, mode):
    """Fills ``mode`` (K - 1,) with the likeliest counts, less the starts of their windows; the last level's count, and the tilt there.

    Each step goes where it gains most, and the terms are log-concave.
    """
    last = len(mode)
    mode[:] = 0
    while True:
        best, step = 0.0, 0
        for k in range(last):
            gain = _ratio(start[k] + mode[k], n, z[k], rate[k], noise) if mode[k] < length - 1 else 0.0
            if gain > best:
                best, step = gain, k
        if left < 1 or best <= _ratio(left - 1, n, z[last], rate[last], noise):
            break
        mode[step] += 1
        left -= 1
    return left, max(best, _ratio(left, n, z[last], rate[last], noise), LEAST)


def _tilted_terms(start, left, n, z, rate, noise, mode, tilt, weights, final):
    """Fills the terms of every level but the last, ``weights`` (K - 1, length), and of what the last level takes, ``final``.

    They are divided by the terms at the likeliest counts, and tilted. ``final`` is by how much the other counts are more than the starts
    of their windows, together.
    """
    last, length, total = len(weights), weights.shape[1], 0
    for k in range(last):
        weights[k, mode[k]] = 1.0
        for j in range(mode[k], length - 1):
            weights[k, j + 1] = weights[k, j] * _ratio(start[k] + j, n, z[k], rate[k], noise) / tilt
        for j in range(mode[k], 0, -1):
            weights[k, j - 1] = weights[k, j] / _ratio(start[k] + j - 1, n, z[k], rate[k], noise) * tilt
        total += mode[k]
    final[total] = 1.0
    for t in range(total, len(final) - 1):
        s = left - (t + 1 - total)
        final[t + 1] = final[t] / _ratio(s, n, z[last], rate[last], noise) * tilt if s >= 0 else 0.0
    for t in range(total, 0, -1):
        final[t - 1] = final[t] * _ratio(left + total - t, n, z[last], rate[last], noise) / tilt


def _products(weights, products):
    """Fills ``products`` (K - 1, T): row k is the product of the first k + 1 levels."""
    length = weights.shape[1]
    products[:] = 0.0
    for j in range(length):
        products[0, j] = weights[0, j]
    for k in range(1, len(weights)):
        for a in range(k * (length - 1) + 1):
            for j in range(length):
                products[k, a + j] += products[k - 1, a] * weights[k, j]


def _mean_of_level(k, start, weights, products, final):
    """The mean of the count of level k, times the coefficient. ``final``, which holds the levels after k, then holds level k as well."""
    length, mean = weights.shape[1], 0.0
    wide = k * (length - 1) + 1
    for j in range(length):
        share = 0.0
        if k == 0:
            share = final[j]
        else:
            for a in range(wide):
                share += products[k - 1, a] * final[a + j]
        mean += (start + j) * weights[k, j] * share
    for a in range(wide if k > 0 else 0):
        share = 0.0
        for j in range(length):
            share += weights[k, j] * final[a + j]
        final[a] = share
    return mean


def counts_saddle(z, n, p, length, noise):
    """Multinomial counts plus noise for many levels, z and p (B, K): the coefficient of ``counts_convolution`` by a saddle point.

    Tilted so that the K independent window sums have mean n in total, the probability that they add up to n is that of a
    normal law with their total variance; with more than FEW of them that is close to a hundredth of a nat (docs/theory.md).
    """
    value, by_p = np.empty_like(n), np.empty_like(p)
    length, K = int(length[()]), z.shape[1]
    start, base = np.empty(K), np.empty((K, length))
    means, variances, thirds = np.empty(K), np.empty(K), np.empty(K)
    for i in range(len(z)):
        for k in range(K):
            start[k] = _window_start(z[i, k], n[i], length)
            log_rate = np.log(n[i] * max(p[i, k], 1e-300))
            term = start[k] * log_rate - lgamma(start[k] + 1)
            for j in range(length):
                s = start[k] + j
                base[k, j] = term + _log_noise(z[i, k] - s, noise) if s <= n[i] else -np.inf
                term += log_rate - np.log(s + 1)
        tilt = 0.0
        for step in range(NEWTON + 1):
            total = 0.0
            for k in range(K):
                top = -np.inf
                for j in range(length):
                    top = max(top, base[k, j] + tilt * (start[k] + j))
                mass = mean = square = cube = 0.0
                for j in range(length):
                    weight = np.exp(base[k, j] + tilt * (start[k] + j) - top)
                    mass += weight
                    mean += weight * j
                    square += weight * j**2
                    cube += weight * j**3
                mean, square, cube = mean / mass, square / mass, cube / mass
                total += np.log(mass) + top
                means[k], variances[k] = start[k] + mean, square - mean**2
                thirds[k] = cube - 3 * mean * square + 2 * mean**3
            missing, variance = n[i] - means.sum(), max(variances.sum(), 1e-6)
            if step < NEWTON:
                tilt += min(max(missing / variance, -1.0), 1.0)
        value[i] = total - 0.5 * (missing**2 / variance + np.log(2 * pi * variance))
        value[i] += lgamma(n[i] + 1) - n[i] * np.log(n[i]) - n[i] * tilt
        # A larger p_k tilts all levels the other way, so that the total stays n.
        by_variance = 0.5 * (missing**2 / variance - 1) / variance
        for k in range(K):
            change = variances[k] / variance
            by_log_p = means[k] + missing * change + by_variance * (thirds[k] - change * thirds.sum())
            by_p[i, k] = by_log_p / p[i, k] if p[i, k] > 1e-300 else 0.0
    return value, by_p


def _window_start(z, n, length):
    """First count of a window of this length around the released one, inside [0, n] as far as it fits."""
    return min(max(np.rint(z) - (length - 1) // 2, 0.0), max(n - length + 1.0, 0.0))


def _log_noise(distance, noise):
    """Log-probability of noise of this size."""
    return noise[0] * abs(distance) + noise[1] * distance**2 + noise[2]


def _term(s, z, rate, noise):
    """Log of a Poisson count's probability, but for exp(-rate), and of the noise on it."""
    return s * np.log(rate) - lgamma(s + 1) + _log_noise(z - s, noise)


def _ratio(s, n, z, rate, noise):
    """The ratio of the next count's term to this one's."""
    if s >= n:
        return 0.0
    change = _log_noise(z - s - 1, noise) - _log_noise(z - s, noise)
    return rate / (s + 1) * np.exp(min(max(change, -STEEP), STEEP))


def _log_sum(terms, many):
    """Log of the sum of exp(terms), of the first so many, and the mean place under these weights."""
    top = -np.inf
    for j in range(many):
        top = max(top, terms[j])
    total = mean = 0.0
    for j in range(many):
        weight = np.exp(terms[j] - top)
        total += weight
        mean += weight * j
    return np.log(total) + top, mean / total


PARTS = (_likeliest_counts, _tilted_terms, _products, _mean_of_level, _window_start, _log_noise, _term, _ratio, _log_sum)
"""What the loops call."""
