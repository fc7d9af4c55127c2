"""A loop over Poisson counts with noise on them of which the total is at most a public number, with its derivatives.

Shapes: B cells, K counts. ``noise`` is ``Noise.kernel``.
"""

import numpy as np

from pymc_dp.laws.counts import STEEP, _log_noise, _ratio, _term, _window_start
from pymc_dp.laws.kernel import LEAST, NEGLIGIBLE

NOTHING = 1e-10
"""A count is left out where its probability is less than this share of the likeliest one's."""


def counts_at_most(z, rate, most, length, noise):
    """Poisson counts plus noise, z and rates (B, K), times whether the counts add up to ``most`` (B,) or less: summed over all counts.

    Terms of a level are divided by that at its likeliest count. Where these add up to more than ``most`` they are lowered to those that are
    likeliest together, and terms are multiplied by tilt^count, so that none is larger there; sums then by tilt^(most - total).
    All levels but the last are convolved, and the last is added up as it stands: two counts take no more time than windows are long.
    The derivatives are means of the counts.
    """
    value, by_rate = np.empty_like(most), np.empty_like(rate)
    length, K = int(length[()]), z.shape[1]
    start, mode, low, high = np.empty(K), np.empty(K, np.int64), np.empty(K, np.int64), np.empty(K, np.int64)
    weights, means = np.empty((K, length)), np.empty(K)
    wide = (K - 1) * (length - 1) + 1
    products, upto = np.empty((K - 1, wide)), np.empty((2, max(wide, length)))
    for i in range(len(z)):
        for k in range(K):
            start[k] = _window_start(z[i, k], most[i], length)
            mode[k] = _likeliest(start[k], length, most[i], z[i, k], rate[i, k], noise)
        tilt = _lowered(start, mode, most[i], z[i], rate[i], noise)
        value[i] = 0.0
        if tilt == 0:
            value[i] = NEGLIGIBLE
            by_rate[i] = 0.0
            continue
        first = 0.0
        for k in range(K):
            r = max(rate[i, k], LEAST)
            value[i] += _term(start[k] + mode[k], z[i, k], r, noise) - rate[i, k]
            _terms(start[k], mode[k], most[i], z[i, k], r, noise, tilt, weights[k], low, high, k)
            first += start[k] + low[k]
        coefficient = _means_at_most(start, low, high, weights, int(most[i] - first), tilt, products, upto, means)
        value[i] += np.log(coefficient)
        for k in range(K):
            by_rate[i, k] = means[k] / coefficient / max(rate[i, k], LEAST) - 1
    return value, by_rate


def _likeliest(start, length, most, z, rate, noise):
    """The likeliest count of a window, less its start: terms are log-concave."""
    low, high = 0, length - 1
    while low < high:
        middle = (low + high) // 2
        if _ratio(start + middle, most, z, max(rate, LEAST), noise) > 1:
            low = middle + 1
        else:
            high = middle
    return low


def _lowered(start, mode, most, z, rate, noise):
    """Lowers ``mode`` (K,) to the likeliest counts that add up to ``most`` or less; the tilt there, or 0 if there are no such counts.

    Each step goes where it loses least, and the terms are log-concave.
    """
    over, tilt = -most, 1.0
    for k in range(len(mode)):
        over += start[k] + mode[k]
    while over > 0:
        least, step = np.inf, -1
        for k in range(len(mode)):
            if mode[k] > 0:
                loss = _ratio(start[k] + mode[k] - 1, most, z[k], max(rate[k], LEAST), noise)
                if loss < least:
                    least, step = loss, k
        if step < 0:
            return 0.0
        mode[step] -= 1
        tilt = min(1 / least, 1.0)
        over -= 1
    return tilt


def _terms(start, mode, most, z, rate, noise, tilt, weights, low, high, k):
    """Fills the tilted terms of level k, divided by that at ``mode``, and from where to where they are something."""
    weights[mode] = 1.0
    j, top = mode, min(len(weights) - 1.0, most - start)
    below, above = rate * tilt * np.exp(min(-noise[0], STEEP)), rate * tilt * np.exp(max(noise[0], -STEEP))
    while j < top and weights[j] > NOTHING:
        s = start + j
        change = (above if s >= z else below) if noise[1] == 0 else _ratio(s, most, z, rate, noise) * tilt * (s + 1)
        weights[j + 1] = weights[j] * change / (s + 1)
        j += 1
    high[k] = j
    j = mode
    while j > 0 and weights[j] > NOTHING:
        s = start + j - 1
        change = (above if s >= z else below) if noise[1] == 0 else _ratio(s, most, z, rate, noise) * tilt * (s + 1)
        weights[j - 1] = weights[j] * (s + 1) / change
        j -= 1
    low[k] = j


def _means_at_most(start, low, high, weights, left, tilt, products, upto, means):
    """Sum over all counts that add up to ``most``, and fills its multiples by the mean of every count, (K,).

    ``left`` is by how much ``most`` is above the sum of the lowest counts.
    """
    last = len(weights) - 1
    many = _last_level(start[last] + low[last], weights[last], low[last], high[last], tilt, upto)
    _convolved(weights, low, high, products)
    wide = 1
    for k in range(last):
        wide += high[k] - low[k]
    row = products[last - 1]
    coefficient = total = 0.0
    # What the last level adds stands in place of the products' own row from here on: of the others, only rows before it are read.
    for t in range(wide):
        y = left - t
        share = weighted = 0.0
        if y >= 0:
            inside = min(y, many - 1)
            beyond = tilt ** (y - inside) if tilt < 1 and y > inside else 1.0
            share, weighted = upto[0, inside] * beyond, upto[1, inside] * beyond
        coefficient += row[t] * share
        total += row[t] * weighted
        row[t] = share
    means[last] = total
    for k in range(last - 1, 0, -1):
        wide -= high[k] - low[k]
        for t in range(wide):
            upto[0, t] = upto[1, t] = 0.0
        for j in range(low[k], high[k] + 1):
            one, counted, shift = weights[k, j], weights[k, j] * (start[k] + j), j - low[k]
            for t in range(wide):
                upto[0, t] += one * row[t + shift]
                upto[1, t] += counted * row[t + shift]
        means[k] = 0.0
        for t in range(wide):
            means[k] += products[k - 1, t] * upto[1, t]
            row[t] = upto[0, t]
    means[0] = 0.0
    for j in range(low[0], high[0] + 1):
        means[0] += (start[0] + j) * weights[0, j] * row[j - low[0]]
    return coefficient


def _last_level(lowest, weights, low, high, tilt, upto):
    """Fills the sums (2, many) of the terms up to each count, and of their multiples by the counts; says how many there are."""
    share = weighted = 0.0
    for j in range(low, high + 1):
        share = share * tilt + weights[j]
        weighted = weighted * tilt + weights[j] * (lowest + j - low)
        upto[0, j - low], upto[1, j - low] = share, weighted
    return high - low + 1


def _convolved(weights, low, high, products):
    """Fills ``products``: row k is the product of the first k + 1 levels."""
    wide = high[0] - low[0] + 1
    for j in range(wide):
        products[0, j] = weights[0, low[0] + j]
    for k in range(1, len(weights) - 1):
        more = high[k] - low[k]
        for t in range(wide + more):
            products[k, t] = 0.0
        for j in range(more + 1):
            one = weights[k, low[k] + j]
            for a in range(wide):
                products[k, a + j] += one * products[k - 1, a]
        wide += more


PARTS = (_likeliest, _lowered, _terms, _means_at_most, _last_level, _convolved, _window_start, _log_noise, _term, _ratio)
"""What the loops call."""
