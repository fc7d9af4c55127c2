"""Loops for the law of noisy second moments of features and of several responses, and their derivatives.

``vector_law`` says what a loop computes. As in ``moment_loops``, each goes forward and then backward through its own steps.

Shapes: B cells, F features in the order of the factor, q responses, K released moments, k unknowns: moments of features.

z (B, K) : released moments
n (B,) : records
phi (B, q F) : coefficients of every response, row by row, in the user's units and order
covariance (B, q q) : of the responses, given features, row by row, of which the lower triangle counts; in the user's units
latent (B, L) : standard latents of a cell: of the unknowns; then of each response in turn those along every feature and response before
    it, and that of its square where squares are released
shared (B, S) : as in ``moment_loops``
given (B, W) : as in ``moment_loops``, with what ``_of_responses`` tells in the place of what belongs to one response
"""

from math import lgamma, log, pi

import numpy as np

from pymc_dp.laws.digamma import digamma
from pymc_dp.private_models.moment_loops import PARTS as OF_MOMENTS
from pymc_dp.private_models.moment_loops import _back, _features, _fill, _misfit, _parts, _unknowns


def _of_responses(tail, F):
    """What a row of ``given`` says of responses.

    among : 1 where products of two responses are released, and so what a response is along those before it is needed; else 0
    squares : 1 where squares of responses are released
    middle, half (q,) : of the responses' bounds
    inside, reach, near (q, F + q) : where latents are centred, how far they may be off there, and which of them are centred there; of
        response r those along features and responses before it, and in place F + r that of its square
    """
    q = int(tail[0])
    first = 3 + 2 * q
    a = first + q * (F + q)
    b = a + q * (F + q)
    inside, reach, near = tail[first:a].reshape((q, F + q)), tail[a:b].reshape((q, F + q)), tail[b:].reshape((q, F + q))
    return int(tail[1]), int(tail[2]), tail[3 : 3 + q], tail[3 + q : first], inside, reach, near


# ---------- densities
def vector_moments(z, n, phi, covariance, latent, shared, given):
    """Log-density (B,) of the moments of normal vectors; derivatives by n, phi, covariance, latent and shared."""
    value, by_n, by_phi, by_covariance = np.zeros_like(n), np.zeros_like(n), np.zeros_like(phi), np.zeros_like(covariance)
    by_latent, by_shared, k, q = np.zeros_like(latent), np.zeros_like(shared), int(given[0, 7]), int(np.sqrt(covariance.shape[1]))
    F = phi.shape[1] // q
    unknown, away, predictors, factor, by_factor = np.empty(k), np.empty(k), np.empty(k), np.empty((F, F)), np.empty((F, F))
    G, by_G, off = np.zeros((F + q, F + q)), np.empty((F + q, F + q)), np.empty((q, F + q))
    c, by_c, by_left = np.zeros((q, F + q)), np.empty((q, F + q)), np.empty(q)
    scaled, root, inverse = np.empty((q, F)), np.zeros((q, q)), np.zeros((q, q))
    for i in range(len(n)):
        by_factor[:], by_G[:], by_c[:], by_left[:] = 0.0, 0.0, 0.0, 0.0
        settings, entries, onto, middle, onward, squares, known, start, scale, shift, tail = _parts(given[i], F)
        value[i] = _unknowns(latent[i], shared[i], start, scale, shift, settings, unknown, away)
        _fill(known, unknown, int(settings[3]), middle, onward, squares, predictors, factor)
        of_features, by_n[i] = _features(z[i], n[i], entries, factor, settings, by_factor)
        _onto_records(n[i], factor, G)
        value[i] += of_features + _conditional(phi[i], covariance[i], onto, tail, scaled, root, inverse, c)
        value[i] += _responses(n[i], c, root, latent[i, k:], tail, G, off)
        if not value[i] > -np.inf:
            value[i] = -np.inf
            continue
        value[i] += _misfits(z[i], entries, settings, F, G, by_G)
        by_n[i] += _responses_back(n[i], c, root, latent[i, k:], tail, G, off, by_G, by_c, by_left, by_latent[i, k:])
        _conditional_back(onto, tail, scaled, root, inverse, by_c, by_left, by_phi[i], by_covariance[i])
        for a in range(F):
            for b in range(a + 1):
                by_n[i] += by_G[a, b] * G[a, b] / (2 * n[i])
                by_factor[a, b] += by_G[a, b] * np.sqrt(n[i])
        _back(
            by_factor, factor, predictors, int(settings[3]), onward, squares, away, latent[i], scale, shift, settings, by_latent[i],
            by_shared[i],
        )  # fmt: skip
    return value, by_n, by_phi, by_covariance, by_latent, by_shared


def _conditional(phi, covariance, onto, tail, scaled, root, inverse, c):
    """Fills coefficients of every scaled response on scaled features and on the responses before it.

    ``root`` (q, q) is the Cholesky factor of the scaled responses' covariance, on whose diagonal is what is left of each then; its inverse
    times that diagonal takes off a response what those before it tell. The
    density is minus infinity where there is no root, else 0.
    """
    q, F = len(root), len(onto)
    _, _, middle, half, _, _, _ = _of_responses(tail, F)
    for r in range(q):
        for a in range(F):
            scaled[r, a] = -middle[r] if a == 0 else 0.0
            for f in range(F):
                scaled[r, a] += phi[r * F + f] * onto[f, a]
            scaled[r, a] /= half[r]
        for j in range(r + 1):
            rest = covariance[r * q + j] / (half[r] * half[j])
            for m in range(j):
                rest -= root[r, m] * root[j, m]
            if j == r and not rest > 0:
                return -np.inf
            root[r, j] = np.sqrt(rest) if j == r else rest / root[j, j]
        for j in range(r + 1):
            total = 1.0 if j == r else 0.0
            for m in range(j, r):
                total -= root[r, m] * inverse[m, j]
            inverse[r, j] = total / root[r, r]
        for a in range(F):
            c[r, a] = 0.0
            for j in range(r + 1):
                c[r, a] += root[r, r] * inverse[r, j] * scaled[j, a]
        for j in range(r):
            c[r, F + j] = -root[r, r] * inverse[r, j]
    return 0.0


def _conditional_back(onto, tail, scaled, root, inverse, by_c, by_left, by_phi, by_covariance):
    """Adds what ``_conditional`` moves to derivatives, from those by coefficients and by what is left of responses."""
    q, F = len(root), len(onto)
    _, _, _, half, _, _, _ = _of_responses(tail, F)
    by_inverse, by_root = np.zeros((q, q)), np.zeros((q, q))
    for r in range(q):
        by_root[r, r] += by_left[r]
        for j in range(r + 1):
            by_rest = -by_c[r, F + j] if j < r else 0.0
            for a in range(F):
                by_rest += by_c[r, a] * scaled[j, a]
                for f in range(F):
                    by_phi[j * F + f] += by_c[r, a] * root[r, r] * inverse[r, j] * onto[f, a] / half[j]
            if j < r:  # on the diagonal what is multiplied is 1
                by_root[r, r] += by_rest * inverse[r, j]
                by_inverse[r, j] = by_rest * root[r, r]
    for r in range(q):
        for j in range(r + 1):
            for a in range(r, q):
                for b in range(j + 1):
                    by_root[r, j] -= inverse[a, r] * by_inverse[a, b] * inverse[j, b]
    for r in range(q - 1, -1, -1):
        for j in range(r, -1, -1):
            by = by_root[r, j] / root[j, j]
            if j == r:
                by *= 0.5
            else:
                by_root[j, j] -= by * root[r, j]
            for m in range(j):
                by_root[r, m] -= by * root[j, m]
                by_root[j, m] -= by * root[r, m]
            by_covariance[r * q + j] += by / (half[r] * half[j])


def _onto_records(n, factor, G):
    """Fills the rows of features of the Cholesky factor of all moments: those of moments over n, times the root of n."""
    root = np.sqrt(n)
    for a in range(len(factor)):
        for b in range(a + 1):
            G[a, b] = root * factor[a, b]


def _freedom(n, F, r, among):
    """Degrees of freedom of what is left of response r; never less than a half."""
    return max(n - F - r * among, 0.5)


def _responses(n, c, root, latent, tail, G, off):
    """Fills the rows of responses of the Cholesky factor, and how far they are off what is expected where they are centred elsewhere.

    The density with that of the latents; minus infinity where a square that is latent itself is less than what is explained of it.
    """
    q, at, value = len(c), 0, 0.0
    F = len(G) - q
    among, with_squares, _, _, inside, reach, near = _of_responses(tail, F)
    for r in range(q):
        s, row, explained = root[r, r], F + r, 0.0
        for b in range(F + r * among):
            along = 0.0
            for a in range(b, row):
                along += G[a, b] * c[r, a]
            x = latent[at]
            at += 1
            if near[r, b] > 0:
                G[row, b] = inside[r, b] + reach[r, b] * x
                off[r, b] = (G[row, b] - along) / s
                value += 0.5 * x**2 - 0.5 * off[r, b] ** 2 - np.log(s / reach[r, b])
            else:
                G[row, b] = along + s * x
            explained += G[row, b] ** 2
        if not with_squares:
            continue
        x, freedom = latent[at], _freedom(n, F, r, among)
        at += 1
        if near[r, row] > 0:
            left = inside[r, row] + reach[r, row] * x - explained
            if left <= 0:
                return -np.inf
            # The square itself is latent: the chi-square density of what is left takes the place of the latent's.
            value += (freedom / 2 - 1) * np.log(left / s**2) - left / (2 * s**2) - np.log(s**2)
            value += log(reach[r, row]) - lgamma(freedom / 2) - freedom / 2 * log(2) + 0.5 * x**2 + 0.5 * log(2 * pi)
            G[row, row] = np.sqrt(left)
        else:
            G[row, row] = s * np.sqrt(freedom * _cube_root(x, freedom) ** 3)
    return value


def _cube_root(x, freedom):
    """Wilson and Hilferty's cube root of a chi-square variable over its degrees of freedom, from a standard normal one; never 0."""
    small = 2 / (9 * freedom)
    return max(1 - small + x * np.sqrt(small), 1e-6)


def _misfits(z, entries, settings, F, G, by_G):
    """Log-density of the noise on moments of responses; adds to the derivatives by the Cholesky factor of all moments."""
    value = 0.0
    for j in range(len(entries)):
        a, b = int(entries[j, 0]), int(entries[j, 1])
        if b < F:
            continue
        true = 0.0
        for f in range(min(a, b) + 1):
            true += G[a, f] * G[b, f]
        density, slope = _misfit(z[j], true, entries[j, 2], settings)
        value += density
        for f in range(min(a, b) + 1):
            by_G[a, f] += slope * G[b, f]
            by_G[b, f] += slope * G[a, f]
    return value


def _responses_back(n, c, root, latent, tail, G, off, by_G, by_c, by_left, by_latent):
    """Adds what ``_responses`` moves to derivatives, from those by the factor, the last response first; that by n is returned."""
    q, at, by_n = len(c), len(latent), 0.0
    F = len(G) - q
    among, with_squares, _, _, _, reach, near = _of_responses(tail, F)
    for r in range(q - 1, -1, -1):
        s, row, by_explained = root[r, r], F + r, 0.0
        if with_squares:
            at -= 1
            x, freedom = latent[at], _freedom(n, F, r, among)
            by_rest, left = by_G[row, row] / (2 * G[row, row]), G[row, row] ** 2
            if near[r, row] > 0:
                by_rest += (freedom / 2 - 1) / left - 1 / (2 * s**2)
                by_explained = -by_rest
                by_left[r] += (left / s**2 - freedom) / s
                by_freedom = 0.5 * (np.log(left / s**2) - digamma(freedom / 2) - log(2))
                by_latent[at] = x + reach[r, row] * by_rest
            else:
                small, base = 2 / (9 * freedom), _cube_root(x, freedom)
                inner = base > 1e-6
                by_left[r] += by_rest * 2 * left / s
                moved = 3 * base**2 * (small - x * np.sqrt(small) / 2) if inner else 0.0
                by_freedom = by_rest * s**2 * (base**3 + moved)
                by_latent[at] = by_rest * s**2 * 3 * freedom * base**2 * np.sqrt(small) if inner else 0.0
            by_n += by_freedom if n - F - r * among > 0.5 else 0.0
        for b in range(F + r * among - 1, -1, -1):
            at -= 1
            x, slope = latent[at], by_G[row, b] + 2 * by_explained * G[row, b]
            if near[r, b] > 0:
                e = off[r, b]
                by_latent[at] = x + reach[r, b] * (slope - e / s)
                by_left[r] += (e**2 - 1) / s
                slope = e / s
            else:
                by_latent[at] = slope * s
                by_left[r] += slope * x
            for a in range(b, row):
                by_G[a, b] += slope * c[r, a]
                by_c[r, a] += slope * G[a, b]
    return by_n


def drawn_vectors(draws, n, phi, covariance, latent, shared, given):
    """Exact moments (B, K): from standard normal draws in the places of products, and chi-square ones in those of squares of responses."""
    moments, k, q = np.empty_like(draws), int(given[0, 7]), int(np.sqrt(covariance.shape[1]))
    F = phi.shape[1] // q
    unknown, away, predictors, factor = np.empty(k), np.empty(k), np.empty(k), np.empty((F, F))
    G, drawn, c = np.zeros((F + q, F + q)), np.zeros((F + q, F + q)), np.zeros((q, F + q))
    scaled, root, inverse = np.empty((q, F)), np.zeros((q, q)), np.zeros((q, q))
    for i in range(len(n)):
        settings, entries, onto, middle, onward, squares, known, start, scale, shift, tail = _parts(given[i], F)
        among, with_squares, _, _, _, _, _ = _of_responses(tail, F)
        _unknowns(latent[i], shared[i], start, scale, shift, settings, unknown, away)
        _fill(known, unknown, int(settings[3]), middle, onward, squares, predictors, factor)
        _onto_records(n[i], factor, G)
        _conditional(phi[i], covariance[i], onto, tail, scaled, root, inverse, c)
        for j in range(len(entries)):
            drawn[int(entries[j, 1]), int(entries[j, 0])] = draws[i, j]
        for r in range(q):
            for b in range(F + r * among):
                G[F + r, b] = root[r, r] * drawn[F + r, b]
                for a in range(b, F + r):
                    G[F + r, b] += G[a, b] * c[r, a]
            if with_squares:
                G[F + r, F + r] = root[r, r] * np.sqrt(drawn[F + r, F + r])
        for j in range(len(entries)):
            a, b = int(entries[j, 0]), int(entries[j, 1])
            moments[i, j] = 0.0
            for f in range(min(a, b) + 1):
                moments[i, j] += G[a, f] * G[b, f]
    return moments


PARTS = (
    _of_responses, _conditional, _conditional_back, _onto_records, _freedom, _responses, _cube_root, _misfits, _responses_back, *OF_MOMENTS,
)  # fmt: skip
"""What the loops call."""
