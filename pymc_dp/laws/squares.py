"""Loop over sums of u and u² of few records, with noise, where squares about the mean are a gamma variable: see ``few_records``.

One integral is over the sum of u, one over the gamma variable, both by Gauss-Legendre, split at the kinks of noise. Shapes: B cells.
"""

from math import exp, lgamma, log, pi, sqrt

import numpy as np

from pymc_dp.laws.digamma import digamma
from pymc_dp.laws.sums import DEPTH, _limits_of_pair
from pymc_dp.laws.sums import PARTS as OF_SUMS

OUTER, OUTER_WEIGHTS = np.polynomial.legendre.leggauss(24)
"""Gauss-Legendre nodes and weights for the sum, on each side of a kink."""
INNER, INNER_WEIGHTS = np.polynomial.legendre.leggauss(16)
"""The same for the gamma variable."""
WIDE = 3.0
"""How far the root of a gamma variable goes to either side of its top, about."""


def squares_plus_noise(z, n, mean, variance, tilt, share, shape, scale, width, gaussian):
    """Sums z (B, 2) of u and u² of n records each, plus noise: log-density, and derivatives by the mean, the variance and so on.

    ``mean`` and ``variance`` are those of u. With A the sum of u less its mean, the sum of (u - mean)² is tilt A + share A² / n + g, and
    g a gamma variable of this shape and scale; a shape of 0 is for none. ``width`` is the scale of Laplace noise, or the standard
    deviation of Gaussian noise.
    """
    value = np.empty_like(mean)
    by_mean, by_variance, by_tilt = np.zeros_like(mean), np.zeros_like(mean), np.zeros_like(mean)
    by_share, by_shape, by_scale = np.zeros_like(mean), np.zeros_like(mean), np.zeros_like(mean)
    normal, b = gaussian[()] > 0, width[()]
    limits, means, inner = np.empty((6, 2)), np.empty(7), np.empty(4)
    for i in range(len(z)):
        if n[i] < 1:  # no record tells nothing
            value[i] = _noise(z[i, 0], b, normal) + _noise(z[i, 1], b, normal)
            continue
        m, V = mean[i], max(variance[i], (1e-9 * b) ** 2 / n[i])
        law = (z[i, 0] - n[i] * m, z[i, 1] - n[i] * m**2, 2 * m + tilt[i], share[i] / n[i], n[i] * V, shape[i], scale[i], b, normal)
        total, top = 0.0, -np.inf
        for k in range(7):
            means[k] = 0.0
        for piece in range(_pieces(law, limits)):
            low, high = limits[piece, 0], limits[piece, 1]
            for node in range(len(OUTER)):
                A = low + (high - low) * (OUTER[node] + 1) / 2
                _given_sum(law, A, inner)
                term = inner[0] + _noise(law[0] - A, b, normal) - 0.5 * A**2 / law[4] + log((high - low) * OUTER_WEIGHTS[node] / 2)
                if term > top:
                    shrink = exp(top - term)
                    total *= shrink
                    for k in range(7):
                        means[k] *= shrink
                    top = term
                weight = exp(term - top)
                total += weight
                means[0] += weight * A
                means[1] += weight * A**2
                means[2] += weight * inner[1]
                means[3] += weight * inner[2]
                means[4] += weight * inner[3]
                means[5] += weight * inner[3] * A
                means[6] += weight * inner[3] * A**2
        value[i] = np.log(total) + top - 0.5 * log(2 * pi * law[4])
        for k in range(7):
            means[k] /= total
        # The sum and the gamma variable stay as they are.
        by_mean[i] = means[0] / V + n[i] * tilt[i] * means[4] + 2 * (share[i] - 1) * means[5]
        by_variance[i] = means[1] / (2 * n[i] * V**2) - 0.5 / V if variance[i] == V else 0.0
        by_tilt[i], by_share[i] = -means[5], -means[6] / n[i]
        if shape[i] > 0:
            by_shape[i], by_scale[i] = means[2] - digamma(shape[i]), (means[3] - shape[i]) / scale[i]
    return value, by_mean, by_variance, by_tilt, by_share, by_shape, by_scale


def _pieces(law, limits):
    """Fills where to integrate over the sum less its mean, one row a piece, and returns how many there are.

    From the normal law of the other sum, so much wider that it holds what a gamma variable and the square of the sum move it by.
    """
    first, second, steep, curve, variance, shape, scale, b, normal = law
    sd = sqrt(variance)
    wide = 4 * shape * scale**2 + 36 * (curve * variance) ** 2 + (1e-9 * b) ** 2
    residual, slope = second - shape * scale, steep * sd
    if normal:
        precision = 1 + variance / b**2 + slope**2 / (wide + b**2)
        centre = (first * sd / b**2 + residual * slope / (wide + b**2)) / precision
        half = sqrt(2 * DEPTH / precision)
        limits[0, 0], limits[0, 1] = sd * (centre - half), sd * (centre + half)
        return 1
    # Where the sum alone explains the other one: beyond, the integral over the gamma variable has no kink.
    middle, half = -0.5 * steep / curve, sqrt(max(0.25 * steep**2 + curve * second, 0.0)) / curve
    pieces = 0
    for side in range(2):
        sign = 1.0 - 2.0 * side
        near, far = _limits_of_pair((residual, slope, wide, b, first / sd, sd / b, sign))
        start, end = first + sign * sd * near, first + sign * sd * far
        low, high = min(start, end), max(start, end)
        for cut in (middle - half, middle + half, high):
            if low < cut <= high:
                limits[pieces, 0], limits[pieces, 1] = low, cut
                pieces += 1
                low = cut
    return pieces


def _noise(r, b, normal):
    """Log-density of noise."""
    if normal:
        return -0.5 * (r / b) ** 2 - log(b) - 0.5 * log(2 * pi)
    return -abs(r) / b - log(2 * b)


def _noise_slope(r, b, normal):
    """Its derivative."""
    if normal:
        return -r / b**2
    return -np.sign(r) / b


def _given_sum(law, A, inner):
    """Fills what the noisy sum of squares says at one sum: its log-density, means of log(g / scale) and of g / scale, and the slope.

    g = scale y^power is the gamma variable, so that its density is smooth in y down to 0.
    """
    _, second, steep, curve, _, shape, scale, b, normal = law
    r = second - steep * A - curve * A**2
    if shape == 0:
        inner[0], inner[1], inner[2], inner[3] = _noise(r, b, normal), 0.0, 0.0, _noise_slope(r, b, normal)
        return
    power = max(2.0, 1 / shape)
    alpha = max(power * shape - 1, 0.0)
    y_kink = _mode(r, alpha, power, scale, b, normal, 0) if normal else (max(r, 0.0) / scale) ** (1 / power)
    top, total, of_log, of_g, of_slope = -np.inf, 0.0, 0.0, 0.0, 0.0
    for piece in range(2):
        if piece == 1 and y_kink <= 0:
            break
        lowest, highest = (y_kink, np.inf) if piece == 0 else (0.0, y_kink)
        mode = _mode(r, alpha, power, scale, b, normal, piece)
        mode = min(max(mode, lowest), highest)
        settings = (r, alpha, power, scale, b, normal)
        low, high = max(mode - _reach(mode, -1.0, settings), lowest), min(mode + _reach(mode, 1.0, settings), highest)
        if not low < high:
            continue
        for node in range(len(INNER)):
            y = low + (high - low) * (INNER[node] + 1) / 2
            g = y * y if power == 2.0 else y**power
            term = _term_of_gamma(y, settings) + log((high - low) * INNER_WEIGHTS[node] / 2)
            if term > top or total == 0:
                shrink = exp(top - term)
                total, of_log, of_g, of_slope = total * shrink, of_log * shrink, of_g * shrink, of_slope * shrink
                top = term
            weight = exp(term - top)
            total += weight
            of_log += weight * power * log(y)
            of_g += weight * g
            of_slope += weight * _noise_slope(r - scale * g, b, normal)
    inner[0] = top + np.log(total) + log(power) - lgamma(shape)
    inner[1], inner[2], inner[3] = of_log / total, of_g / total, of_slope / total


def _term_of_gamma(y, settings):
    """Logarithm of what is integrated over y, up to a constant."""
    r, alpha, power, scale, b, normal = settings
    g = y * y if power == 2.0 else y**power
    return (alpha * log(y) if alpha else 0.0) - g + _noise(r - scale * g, b, normal)


def _mode(r, alpha, power, scale, b, normal, piece):
    """Where that is largest, were this piece all there is; y**power solves a linear or a quadratic equation."""
    if normal:
        a, half = power * (scale / b) ** 2, 0.5 * power * (1 - scale * r / b**2)
        root = sqrt(half**2 + a * alpha)
        g = (root - half) / a if half < 0 else alpha / (root + half) if root > 0 else 0.0
        return g ** (1 / power)
    falls = 1 + scale / b if piece == 0 else 1 - scale / b
    if falls <= 0:
        return np.inf
    return (alpha / (power * falls)) ** (1 / power)


def _reach(mode, sign, settings):
    """How far from its top to go until that is lower by DEPTH, or down to 0."""
    _, _, power, scale, b, normal = settings
    start = max(mode, 1e-9)
    top = _term_of_gamma(start, settings)
    # As far as noise alone, or the gamma law alone, goes.
    step = min(WIDE, (sqrt(2 * DEPTH) if normal else DEPTH) * b / (scale * power * start ** (power - 1)))
    for _ in range(200):
        if sign < 0 and step >= start:
            return start
        if top - _term_of_gamma(start + sign * step, settings) > DEPTH:
            break
        step *= 2.0
    for _ in range(200):
        if top - _term_of_gamma(start + sign * step / 2, settings) <= DEPTH:
            break
        step /= 2
    return step


PARTS = (*OF_SUMS, _pieces, _noise, _noise_slope, _given_sum, _term_of_gamma, _mode, _reach, digamma)
"""What the loop calls."""
