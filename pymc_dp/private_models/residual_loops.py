"""Loops for the law of noisy second moments with sums of residuals, and their derivatives.

``residual_law`` and docs/theory.md say what a loop computes; shapes and names are those of ``moment_loops``, whose parts it calls. There is
one cell, and its number of records is known. ``within`` is what residuals, not responses, are along each of the features, and R their sum
of squares; ``q`` = L'b, with the coefficients b at which residuals were taken and the factor L of moments over n. Behind what ``_parts``
says, ``off`` holds

b (F,) : in the order of the factor, for a response scaled to [-1, 1]
clamp : of residuals in products
centre, reach : where the latent of R is centred, and by what it is multiplied
product, square : standard deviations of the noise on sums of residuals' products with a feature, and of their squares
order (F,) : which released product is with which row of the factor
wide : clamp of residuals in squares
skew : by how many sigma the mean of clamped residuals may be off, beside what the normal law says: a standard deviation

The last of the latents says by how much it is off.
"""

from math import erf, erfc, exp, lgamma, log, pi, sqrt

import numpy as np

from pymc_dp.laws.kernel import ROOT_2
from pymc_dp.private_models.moment_loops import (
    _back,
    _features,
    _fill,
    _misfit,
    _of_response,
    _parts,
    _products,
    _products_back,
    _products_of,
    _scaled,
    _unknowns,
)
from pymc_dp.private_models.score_loops import _straight, _straight_back


def residual_moments(z, n, phi, sigma, latent, shared, given):
    """Log-density (B,) of second moments and sums of residuals (B, K + F + 1); derivatives by phi, sigma and latent."""
    value, by_sigma = np.zeros_like(n), np.zeros_like(n)
    by_phi, by_latent, by_shared = np.zeros_like(phi), np.zeros_like(latent), np.zeros_like(shared)
    F, k, last = phi.shape[1], int(given[0, 7]), latent.shape[1] - 2
    unknown, away, predictors, factor = np.empty(k), np.empty(k), np.empty(k), np.empty((F, F))
    by_factor, c, along, within, e = np.empty((F, F)), np.empty(F), np.empty(F), np.empty(F), np.zeros(F)
    by_within, by_c, q, straight = np.empty(F), np.empty(F), np.empty(F), np.empty(F)
    for i in range(len(n)):
        by_factor[:] = 0.0
        by_within[:] = 0.0
        by_c[:] = 0.0
        settings, entries, onto, middle, onward, squares, known, start, scale, shift, tail = _parts(given[i], F)
        inside, reach, near, off = _of_response(tail, F)
        half, m = settings[2], int(settings[3])
        value[i] = _unknowns(latent[i], shared[i], start, scale, shift, settings, unknown, away)
        _fill(known, unknown, m, middle, onward, squares, predictors, factor)
        of_features, _ = _features(z[i], n[i], entries, factor, settings, by_factor)
        value[i] += of_features
        root, s, freedom = np.sqrt(n[i]), sigma[i] / half, max(n[i] - F, 0.5)
        _scaled(phi[i], half, onto, off, c)
        _straight(factor, c, straight)
        value[i], explained = _products(value[i], latent[i], k, straight, root, s, near, inside, reach, along, within, e)
        R, by_s, by_latent[i, last], of_square = _sum_of_squares(latent[i, last], explained, s, freedom, near[F] > 0, off, F)
        if of_square == -np.inf or R <= 0:
            value[i] = -np.inf
            continue
        value[i] += of_square
        _along(factor, off, F, q)
        of_first, by_R = _responses(z[i], n[i], entries, factor, within, q, R, off, F, settings, by_within, by_factor)
        moved = np.sqrt(n[i]) * off[3 * F + 7] * latent[i, last + 1]
        of_second, more, by_moved = _residuals(z[i], n[i], len(entries), factor, within, s * moved, R, off, F, by_within, by_factor)
        by_latent[i, last + 1] = by_moved * np.sqrt(n[i]) * off[3 * F + 7] * s
        value[i] += of_first + of_second
        by_R += more
        # R is explained + what is left, or a latent of its own.
        if near[F] > 0:
            left = R - explained
            by_left = (freedom / 2 - 1) / left - 1 / (2 * s**2)
            by_s = (left / s**2 - freedom) / s
            by_latent[i, last] = latent[i, last] + off[F + F + 3] * (by_left + by_R)
            by_explained = -by_left
        else:
            by_s, by_latent[i, last], by_explained = by_R * by_s, by_R * by_latent[i, last], by_R
        by_s += by_moved * moved
        for b in range(F):
            by_within[b] += 2 * by_explained * within[b]
        _, by_s = _products_back(0.0, by_s, n[i], latent[i], k, root, s, near, reach, along, e, by_within, by_latent[i], straight)
        _straight_back(straight, factor, c, by_factor, by_c)
        for f in range(F):
            for a in range(F):
                by_phi[i, f] += onto[f, a] * by_c[a] / half
        by_sigma[i] = by_s / half
        _back(by_factor, factor, predictors, m, onward, squares, away, latent[i], scale, shift, settings, by_latent[i], by_shared[i])
    return value, by_phi, by_sigma, by_latent


def drawn_residual_moments(draws, n, phi, sigma, latent, shared, given):
    """Exact moments and sums of residuals (B, K + F + 1), from normal draws in the places of products with the response, and a chi-square
    one in that of its square; the others are not used.
    """
    moments = np.zeros_like(draws)
    F, k = phi.shape[1], int(given[0, 7])
    unknown, away, predictors, factor = np.empty(k), np.empty(k), np.empty(k), np.empty((F, F))
    c, within, q = np.empty(F), np.empty(F), np.empty(F)
    for i in range(len(n)):
        settings, entries, onto, middle, onward, squares, known, start, scale, shift, tail = _parts(given[i], F)
        off = _of_response(tail, F)[3]
        _unknowns(latent[i], shared[i], start, scale, shift, settings, unknown, away)
        _fill(known, unknown, int(settings[3]), middle, onward, squares, predictors, factor)
        _scaled(phi[i], settings[2], onto, off, c)
        _along(factor, off, F, q)
        root, s, R = np.sqrt(n[i]), sigma[i] / settings[2], 0.0
        _products_of(draws[i], entries, F, within)
        for b in range(F):
            total = 0.0
            for a in range(b, F):
                total += factor[a, b] * c[a]
            within[b] = root * total + s * within[b]
            R += within[b] ** 2
        R += s**2 * draws[i, len(entries) - 1]
        inside, left, _, _ = _kept(off[2 * F + 1], off[3 * F + 6], R, n[i])
        moved, crossed, spread = root * off[3 * F + 7] * s * latent[i, -1], 0.0, 0.0
        for b in range(F):
            crossed += q[b] * within[b]
            spread += q[b] ** 2
        for j in range(len(entries)):
            a, b = int(entries[j, 0]), int(entries[j, 1])
            if b < F:
                for f in range(F):
                    moments[i, j] += n[i] * factor[a, f] * factor[b, f]
            elif a < F:
                product = 0.0
                for f in range(F):
                    product += root * factor[a, f] * within[f]
                    moments[i, j] += n[i] * factor[a, f] * q[f]
                moments[i, j] += product
                moments[i, len(entries) + int(off[2 * F + 6 + a])] = inside * product + root * factor[a, 0] * moved
            else:
                moments[i, j] = R + 2 * root * crossed + n[i] * spread
        moments[i, len(entries) + F] = R * left
    return moments


# ---------- what they have in common
def _sum_of_squares(latent, explained, s, freedom, centred, off, F):
    """R, its derivatives by s and by the latent where it is not centred, and its log-density less that of the latent.

    Where it is centred on what was released it is latent itself, and its chi-square density takes the place of the latent's.
    """
    if centred:
        reach = off[2 * F + 3]
        R = off[2 * F + 2] + reach * latent
        left = R - explained
        if left <= 0:
            return R, 0.0, 0.0, -np.inf
        density = (freedom / 2 - 1) * np.log(left / s**2) - left / (2 * s**2) - np.log(s**2)
        density += log(reach) - lgamma(freedom / 2) - freedom / 2 * log(2) + 0.5 * latent**2 + 0.5 * log(2 * pi)
        return R, 0.0, 0.0, density
    # Wilson and Hilferty's cube root.
    small = 2 / (9 * freedom)
    base = max(1 - small + latent * np.sqrt(small), 0.0)
    chi = freedom * base**3
    return explained + s**2 * chi, 2 * s * chi, s**2 * 3 * freedom * base**2 * np.sqrt(small), 0.0


def _along(factor, off, F, q):
    """Fills q = L'b."""
    for b in range(F):
        q[b] = 0.0
        for a in range(b, F):
            q[b] += factor[a, b] * off[F + 1 + a]


def _responses(z, n, entries, factor, within, q, R, off, F, settings, by_within, by_factor):
    """Log-density of released products with the response and of its square, and the derivative by R; adds to those by the others.

    S = L (root n within + n q), and sum w² = R + 2 root n q'within + n q'q.
    """
    value, by_R, root = 0.0, 0.0, np.sqrt(n)
    t, by_t, by_q = np.empty(F), np.zeros(F), np.zeros(F)
    for b in range(F):
        t[b] = root * within[b] + n * q[b]
    for j in range(len(entries)):
        a = int(entries[j, 0])
        if entries[j, 1] < F:
            continue
        total = 0.0
        if a < F:
            for b in range(a + 1):
                total += factor[a, b] * t[b]
            density, slope = _misfit(z[j], total, entries[j, 2], settings)
            for b in range(a + 1):
                by_factor[a, b] += slope * t[b]
                by_t[b] += slope * factor[a, b]
        else:
            total = R
            for b in range(F):
                total += 2 * root * q[b] * within[b] + n * q[b] ** 2
            density, slope = _misfit(z[j], total, entries[j, 2], settings)
            by_R += slope
            for b in range(F):
                by_within[b] += slope * 2 * root * q[b]
                by_q[b] += slope * 2 * t[b]
        value += density
    for b in range(F):
        by_within[b] += root * by_t[b]
        by_q[b] += n * by_t[b]
        for a in range(b, F):
            by_factor[a, b] += by_q[b] * off[F + 1 + a]
    return value, by_R


def _residuals(z, n, K, factor, within, moved, R, off, F, by_within, by_factor):
    """Log-density of released sums of residuals, and its derivatives by R and by ``moved``, which is added to the first of what is left
    of residuals along features; adds to the derivatives by what residuals are within features and by L.
    """
    inside, left, by_inside, by_left = _kept(off[2 * F + 1], off[3 * F + 6], R, n)
    value, by_R, by_moved, root = 0.0, 0.0, 0.0, np.sqrt(n)
    for a in range(F):
        total = 0.0
        for b in range(a + 1):
            total += root * factor[a, b] * within[b]
        density, slope = _off_by(z[K + int(off[2 * F + 6 + a])], inside * total + root * factor[a, 0] * moved, off[2 * F + 4])
        value += density
        by_R += slope * total * by_inside
        by_moved += slope * root * factor[a, 0]
        by_factor[a, 0] += slope * root * moved
        for b in range(a + 1):
            by_factor[a, b] += slope * inside * root * within[b]
            by_within[b] += slope * inside * root * factor[a, b]
    density, slope = _off_by(z[K + F], R * left, off[2 * F + 5])
    return value + density, by_R + slope * (left + R * by_left), by_moved


def _off_by(released, true, noise):
    """Log-density of Laplace noise, up to a constant, and its derivative by the true value."""
    r = (released - true) / noise
    return -ROOT_2 * abs(r), ROOT_2 * np.sign(r) / noise


def _kept(clamp, wide, R, n):
    """What clamping leaves of normal residuals with mean square R / n, of their covariances and of their squares; derivatives by R."""
    spread = np.sqrt(R / n)
    k, far = clamp / spread, wide / spread
    beyond = erfc(far / sqrt(2)) / 2
    left = erf(far / sqrt(2)) - 2 * far * exp(-(far**2) / 2) / sqrt(2 * pi) + 2 * far**2 * beyond
    return erf(k / sqrt(2)), left, -exp(-(k**2) / 2) / sqrt(2 * pi) * k / R, -2 * far**2 * beyond / R


PARTS = (
    _back, _features, _fill, _misfit, _of_response, _parts, _products, _products_back, _products_of, _scaled, _unknowns,
    _sum_of_squares, _along, _responses, _residuals, _off_by, _kept, _straight, _straight_back,
)  # fmt: skip
"""What the loops call, those of another module among it."""
