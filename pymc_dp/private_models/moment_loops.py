"""Loops for the law of noisy second moments, and their derivatives.

``moment_law`` and docs/theory.md say what a loop computes. Each loop goes forward and then backward through its own steps, cell by
cell: as a graph of arrays the same steps are a hundred functions for numba to compile.

Shapes: B cells, F features in the order of the factor, K released moments, k unknowns: moments of features.

z (B, K) : released moments
n (B,) : records
phi (B, F) : coefficients, in the user's units and order
sigma (B,) : scale of a normal response
latent (B, L) : standard latents of a cell
shared (B, S) : standard latents that all cells have in common, one for every unknown; (1, 0) of a single cell
given (B, W) : all that is no variable, one row a cell: what samplers are handed beside their variables costs half a second an array
    to compile. ``packed`` writes it, ``_parts`` says what it is made of.
"""

from math import lgamma, log, pi

import numpy as np

from pymc_dp.laws.digamma import digamma
from pymc_dp.laws.kernel import ROOT_2
from pymc_dp.private_models.score_loops import PARTS as OF_SCORES
from pymc_dp.private_models.score_loops import _expected, _expected_back

SPREAD_OF_MEAN = 0.15
"""The mean of a feature on [-1, 1] is mu / sqrt(1 + mu²) with mu = SPREAD_OF_MEAN sinh(z), z standard normal.

Bounds are laid around the records, so a mean is near their middle, mostly within a standard deviation of the feature; the tails of
sinh are for features to whom that does not happen, counts and incomes, so that little noise already tells them. A prior that is as
wide everywhere reads the noise of a small sum as a mean far out, and then a sum of responses as news of the slope.
"""
SHARE = (-3.0, 2.0)
"""Prior mean and sd of the logit of a feature's variance, as a share of the largest there could be at its mean.

In the median it is that of bounds 4.6 standard deviations out, between the 3 of a close guess and the 7 of a careful one.
"""
SHARE_BY_WEIGHT = (-4.0, 2.0)
"""The same by the weights of scores: its median is that of bounds 7 standard deviations out. Little is released of these moments then, so
that slopes under strong noise rest on this; and weights are less where features are far out."""
LARGEST_MEAN = 0.999999
"""Of a feature on [-1, 1] whose mean others tell."""
STEEP = 0.6
"""A private feature's partial slope on one of the F - 1 before it is STEEP / sqrt(F) sinh(z), in units of what both leave.

A correlation of r is a slope of r / sqrt(1 - r²): .5 at .45, 5 at .98, 22 at .999. In the middle features are little correlated, so that
the noise of a small table is not read as correlation; the tails of sinh are for age beside its square.
"""


# ---------- what is given of a cell
def packed(settings, entries, onto, middle, root, squares, *of_cells):
    """Rows (B, W) of what belongs to all cells, and of arrays (B, ...) of each cell, in the order of ``_parts``."""
    B = len(of_cells[0])
    k, S = of_cells[1].shape[1], of_cells[3].shape[2]
    common = [np.ravel(part).astype(float) for part in ([*settings, len(entries), k, S], entries, onto, middle, root, squares)]
    return np.concatenate([np.tile(np.concatenate(common), (B, 1)), *(part.reshape((B, -1)).astype(float) for part in of_cells)], axis=1)


def _parts(row, F):
    """What a row of ``given`` is made of.

    settings (9,) : noise's standard deviation on what is multiplied by 1, 1 if it is Gaussian, half width of the response, private
        features, standard deviations of what all cells share of an unknown and of what is a cell's own, K, k, S
    entries (K, 3) : which moment is of which two, in the order of the factor, F being the response; and by what it was multiplied before
        the noise
    onto (F, F) : coefficients of scaled features from the user's
    middle (k,), root (k, k) : what ``_fill`` makes moments of is middle + root @ unknowns, root being triangular
    squares (m, 3) : where a feature is a straight line in the square of one before it, so that moments of that tell its mean: the row of
        that one, a and b, where its square is a + b times the feature; b is 0 where there is none
    known (F, F) : Cholesky factor of the public features' moments
    start (k,), scale (k, k), shift (k, S) : unknowns are start + shift @ shared + scale @ latent
    tail : what belongs to the response (``_of_response``), or to several (``vector_loops``)
    """
    K, k, S = int(row[6]), int(row[7]), int(row[8])
    a = 9
    b = a + 3 * K
    c = b + F * F
    d = c + k
    e = d + k * k
    m = int(row[3])
    known = e + 3 * m
    f = known + F * F
    g = f + k
    h = g + k * k
    last = h + k * S
    return (
        row[:a], row[a:b].reshape((K, 3)), row[b:c].reshape((F, F)), row[c:d], row[d:e].reshape((k, k)), row[e:known].reshape((m, 3)),
        row[known:f].reshape((F, F)), row[f:g], row[g:h].reshape((k, k)), row[h:last].reshape((k, S)), row[last:],
    )  # fmt: skip


def _of_response(tail, F):
    """What a row of ``given`` says of the response, which is what ``_parts`` leaves of it.

    inside (F,), reach (F,), near (F + 1,) : where latents of the response are centred, and which; last that of its square
    off (F + 2,) : what is taken off the coefficients of scaled features; what sigma is multiplied by; which link there is (``score_loops``)
    """
    return tail[:F], tail[F : 2 * F], tail[2 * F : 3 * F + 1], tail[3 * F + 1 :]


# ---------- densities
def normal_moments(z, n, phi, sigma, latent, shared, given):
    """Log-density (B,) of a normal response's moments; derivatives by n, phi, sigma, latent and shared."""
    value, by_n, by_sigma = np.zeros_like(n), np.zeros_like(n), np.zeros_like(n)
    by_phi, by_latent, by_shared = np.zeros_like(phi), np.zeros_like(latent), np.zeros_like(shared)
    F, k, last = phi.shape[1], int(given[0, 7]), latent.shape[1] - 1
    unknown, away, predictors, factor = np.empty(k), np.empty(k), np.empty(k), np.empty((F, F))
    by_factor, c, along, within, e = np.empty((F, F)), np.empty(F), np.empty(F), np.empty(F), np.zeros(F)
    by_within, by_c, q, by_q, C = np.empty(F), np.empty(F), np.empty(F), np.empty(F), np.empty(F)
    for i in range(len(n)):
        by_factor[:] = 0.0
        by_within[:] = 0.0
        by_c[:] = 0.0
        settings, entries, onto, middle, onward, squares, known, start, scale, shift, tail = _parts(given[i], F)
        inside, reach, near, off = _of_response(tail, F)
        half, m = settings[2], int(settings[3])
        value[i] = _unknowns(latent[i], shared[i], start, scale, shift, settings, unknown, away)
        _fill(known, unknown, m, middle, onward, squares, predictors, factor)
        of_features, by_n[i] = _features(z[i], n[i], entries, factor, settings, by_factor)
        value[i] += of_features
        root, s, free = np.sqrt(n[i]), sigma[i] * off[F] / half, n[i] - F > 0.5
        _scaled(phi[i], half, onto, off, c)
        _expected(off, factor, c, C, q)
        value[i], explained = _products(value[i], latent[i], k, q, root, s, near, inside, reach, along, within, e)
        by_s = 0.0
        for j in range(len(entries)):
            a = int(entries[j, 0])
            if entries[j, 1] < F:
                continue
            if a < F:
                total = 0.0
                for b in range(a + 1):
                    total += root * factor[a, b] * within[b]
                density, slope = _misfit(z[i, j], total, entries[j, 2], settings)
                by_n[i] += slope * total / (2 * n[i])
                for b in range(a + 1):
                    by_factor[a, b] += slope * root * within[b]
                    by_within[b] += slope * root * factor[a, b]
                value[i] += density
                continue
            freedom = n[i] - F if free else 0.5
            square = _square(value[i], z[i, j], latent[i, last], explained, s, freedom, near[F] > 0, entries[j, 2], settings)
            value[i], by_s, by_freedom, by_latent[i, last], by_explained = square
            if value[i] == -np.inf:
                break
            by_n[i] += by_freedom if free else 0.0
            for b in range(F):
                by_within[b] += 2 * by_explained * within[b]
        by_n[i], by_s = _products_back(by_n[i], by_s, n[i], latent[i], k, root, s, near, reach, along, e, by_within, by_latent[i], by_q)
        _expected_back(by_q, off, factor, c, C, by_factor, by_c)
        by_sigma[i] = by_s * off[F] / half
        for f in range(F):
            for a in range(F):
                by_phi[i, f] += onto[f, a] * by_c[a] / half
        _back(by_factor, factor, predictors, m, onward, squares, away, latent[i], scale, shift, settings, by_latent[i], by_shared[i])
    return value, by_n, by_phi, by_sigma, by_latent, by_shared


def _products(value, latent, k, q, root, s, near, inside, reach, along, within, e):
    """Fills what the response is along each of the features, ``within`` (F,): the density with that of the latents, and sum of squares.

    ``along`` is what is expected of it, root times ``q``; ``e`` is how far it is off, in units of s, where latents are centred on released
    values.
    """
    explained = 0.0
    for b in range(len(q)):
        along[b] = root * q[b]
        x = latent[k + b]
        if near[b] > 0:
            within[b] = inside[b] + reach[b] * x
            e[b] = (within[b] - along[b]) / s
            value += 0.5 * x**2 - 0.5 * e[b] ** 2 - np.log(s / reach[b])
        else:
            within[b] = along[b] + s * x
        explained += within[b] ** 2
    return value, explained


def _products_back(by_n, by_s, n, latent, k, root, s, near, reach, along, e, by_within, by_latent, by_q):
    """Adds what ``_products`` moves to derivatives, from those by ``within``, and fills that by ``q``; those by n and s are returned."""
    for b in range(len(by_q)):
        x, slope = latent[k + b], by_within[b]
        if near[b] > 0:
            by_latent[k + b] = x + reach[b] * (slope - e[b] / s)
            by_s += (e[b] ** 2 - 1) / s
            slope = e[b] / s
        else:
            by_latent[k + b] = slope * s
            by_s += slope * x
        by_n += slope * along[b] / (2 * n)
        by_q[b] = slope * root
    return by_n, by_s


def _square(value, released, latent, explained, s, freedom, centred, times, settings):
    """The log-density with that of the response's square, and derivatives by s, degrees of freedom, the latent and what is explained."""
    if centred:
        # The square itself is latent: its chi-square density takes the place of the latent's.
        noise = settings[0] / times
        square = released + noise * latent
        density, slope = _misfit(released, square, times, settings)
        left = square - explained
        if left <= 0:
            return -np.inf, 0.0, 0.0, 0.0, 0.0
        value += (freedom / 2 - 1) * np.log(left / s**2) - left / (2 * s**2) - np.log(s**2)
        value += log(noise) - lgamma(freedom / 2) - freedom / 2 * log(2) + 0.5 * latent**2 + 0.5 * log(2 * pi)
        by_left = (freedom / 2 - 1) / left - 1 / (2 * s**2)
        by_freedom = 0.5 * (np.log(left / s**2) - digamma(freedom / 2) - log(2))
        return value + density, (left / s**2 - freedom) / s, by_freedom, latent + noise * (by_left + slope), -by_left
    # Wilson and Hilferty's cube root.
    small = 2 / (9 * freedom)
    base = max(1 - small + latent * np.sqrt(small), 0.0)
    chi = freedom * base**3
    density, slope = _misfit(released, explained + s**2 * chi, times, settings)
    by_freedom = slope * s**2 * (base**3 + 3 * base**2 * (small - latent * np.sqrt(small) / 2))
    return value + density, slope * 2 * s * chi, by_freedom, slope * s**2 * 3 * freedom * base**2 * np.sqrt(small), slope


def drawn_moments(draws, n, phi, sigma, latent, shared, given):
    """Exact moments (B, K): products with the response from standard normal draws in their places, its square from a chi-square one."""
    moments = np.empty_like(draws)
    F, k = phi.shape[1], int(given[0, 7])
    unknown, away, predictors, factor = np.empty(k), np.empty(k), np.empty(k), np.empty((F, F))
    c, e, within, q, C = np.empty(F), np.empty(F), np.empty(F), np.empty(F), np.empty(F)
    for i in range(len(n)):
        settings, entries, onto, middle, onward, squares, known, start, scale, shift, tail = _parts(given[i], F)
        off = _of_response(tail, F)[3]
        _unknowns(latent[i], shared[i], start, scale, shift, settings, unknown, away)
        _fill(known, unknown, int(settings[3]), middle, onward, squares, predictors, factor)
        _scaled(phi[i], settings[2], onto, off, c)
        _expected(off, factor, c, C, q)
        s = sigma[i] * off[F] / settings[2]
        _products_of(draws[i], entries, F, e)
        # S = root n L (root n q + s e), q = L'c; and sum w² is that inside squared, and s² times the chi-square variable.
        within[:] = np.sqrt(n[i]) * q + s * e
        for j in range(len(entries)):
            a, b = int(entries[j, 0]), int(entries[j, 1])
            if b < F:
                moments[i, j] = n[i] * (factor[a] * factor[b]).sum()
            elif a < F:
                moments[i, j] = np.sqrt(n[i]) * (factor[a] * within).sum()
            else:
                moments[i, j] = (within**2).sum() + s**2 * draws[i, j]
    return moments


# ---------- what they have in common
def _misfit(released, true, times, settings):
    """Log-density of the noise, up to a constant, and its derivative by the true value, which was multiplied before the noise."""
    noise = settings[0] / times
    r = (released - true) / noise
    if settings[1] > 0:
        return -0.5 * r**2, r / noise
    return -ROOT_2 * abs(r), ROOT_2 * np.sign(r) / noise


def _products_of(draws, entries, F, products):
    """Fills what was drawn in the places of products of a feature with the response."""
    for j in range(len(entries)):
        if entries[j, 0] < F and entries[j, 1] == F:
            products[int(entries[j, 0])] = draws[j]


def _scaled(phi, half, onto, off, c):
    """Coefficients of the scaled features for the scaled response, in the order of the factor, less what is taken off them."""
    for a in range(len(c)):
        c[a] = -off[a]
        for f in range(len(c)):
            c[a] += phi[f] * onto[f, a]
        c[a] /= half


def _unknowns(latent, shared, start, scale, shift, settings, unknown, away):
    """Fills the unknowns of a cell and how far they are from what is expected; their log-density less that of their latents."""
    density = 0.0
    for a in range(len(unknown)):
        unknown[a], expected = start[a], 0.0
        for b in range(len(unknown)):
            unknown[a] += scale[a, b] * latent[b]
        for b in range(shift.shape[1]):
            unknown[a] += shift[a, b] * settings[4] * shared[b]
        if shift.shape[1] > 0:
            expected = settings[4] * shared[a]
        away[a] = (unknown[a] - expected) / settings[5]
        density += 0.5 * latent[a] ** 2 - 0.5 * away[a] ** 2
    return density


def _fill(known, unknown, m, middle, onward, squares, predictors, factor):
    """The Cholesky factor: rows of public features are known, those of private ones are means, shares of variance and partial slopes.

    They are functions of ``predictors``, which are middle + onward @ unknown; but means that the rows before tell.
    """
    F, place = len(factor), 2 * m
    for a in range(len(predictors)):
        predictors[a] = middle[a]
        for b in range(a + 1):
            predictors[a] += onward[a, b] * unknown[b]
    for row in range(F):
        for j in range(F):
            factor[row, j] = known[row, j]
    for p in range(m):
        row = F - m + p
        mean, length = _mean(predictors[p], squares[p], factor), 1.0
        for j in range(1, row):
            factor[row, j] = steepness(F) * np.sinh(predictors[place + j - 1])
            length += factor[row, j] ** 2
        rest = np.sqrt((1 - mean**2) / ((1 + np.exp(-predictors[m + p])) * length))
        factor[row, 0] = mean
        for j in range(1, row):
            factor[row, j] *= rest
        factor[row, row] = rest
        place += row - 1


def _mean(predictor, square, factor):
    """The mean of a feature on [-1, 1]: as the moments of one before it tell, or by its own predictor."""
    if square[2] == 0:
        mu = SPREAD_OF_MEAN * np.sinh(predictor)
        return mu / np.sqrt(1 + mu**2)
    i, total = int(square[0]), 0.0
    for j in range(i + 1):
        total += factor[i, j] ** 2
    return min(max((total - square[1]) / square[2], -LARGEST_MEAN), LARGEST_MEAN)


def steepness(F):
    """What sinh is multiplied by to give a partial slope among F features: the more there are, the less each tells of another."""
    return STEEP / np.sqrt(F)


def _back(by_factor, factor, predictors, m, onward, squares, away, latent, scale, shift, settings, by_latent, by_shared):
    """Adds to the derivatives by the latents of the unknowns, from those by the factor, of which rows that tell others' means get more."""
    F, k = len(factor), len(predictors)
    by_predictors, by_unknown = np.empty(k), np.empty(k)
    place = k
    for p in range(m - 1, -1, -1):
        row = F - m + p
        place -= row - 1
        mean, rest, length, by_rest = factor[row, 0], factor[row, row], 1.0, by_factor[row, row]
        for j in range(1, row):
            slope = factor[row, j] / rest
            length += slope**2
            by_rest += by_factor[row, j] * slope
        for j in range(1, row):
            by_slope = by_factor[row, j] * rest - by_rest * factor[row, j] / length
            by_predictors[place + j - 1] = by_slope * steepness(F) * np.cosh(predictors[place + j - 1])
        by_mean = by_factor[row, 0] - by_rest * rest * mean / (1 - mean**2)
        by_predictors[p] = by_mean * SPREAD_OF_MEAN * np.cosh(predictors[p]) * (1 - mean**2) ** 1.5
        if squares[p, 2] != 0:
            by_predictors[p] = 0.0
            i = int(squares[p, 0])
            for j in range(i + 1):
                by_factor[i, j] += 2 * by_mean * factor[i, j] / squares[p, 2] if abs(mean) < LARGEST_MEAN else 0.0
        by_predictors[m + p] = 0.5 * by_rest * rest / (1 + np.exp(predictors[m + p]))
    for a in range(k):
        by_latent[a] += latent[a]
        by_unknown[a] = -away[a] / settings[5]
    for a in range(k):
        for b in range(a + 1):
            by_unknown[b] += onward[a, b] * by_predictors[a]
    for a in range(k):
        for b in range(k):
            by_latent[b] += scale[a, b] * by_unknown[a]
        for b in range(shift.shape[1]):
            by_shared[b] += shift[a, b] * settings[4] * by_unknown[a]
        if shift.shape[1] > 0:
            by_shared[a] += settings[4] * away[a] / settings[5]


def _features(z, n, entries, factor, settings, by_factor):
    """Log-density of the released moments of features alone, and its derivative by n; adds to that by the factor."""
    value = by_n = 0.0
    for j in range(len(entries)):
        a, b = int(entries[j, 0]), int(entries[j, 1])
        if b >= len(factor):
            continue
        moment = 0.0
        for f in range(min(a, b) + 1):
            moment += factor[a, f] * factor[b, f]
        density, slope = _misfit(z[j], n * moment, entries[j, 2], settings)
        value += density
        by_n += slope * moment
        for f in range(min(a, b) + 1):
            by_factor[a, f] += slope * n * factor[b, f]
            by_factor[b, f] += slope * n * factor[a, f]
    return value, by_n


PARTS = (
    _products, _products_back, _products_of, _square, _parts, _of_response, _misfit, _scaled, _unknowns, steepness, _mean, _fill, _back,
    _features, digamma, *OF_SCORES,
)  # fmt: skip
"""What the loops call."""
