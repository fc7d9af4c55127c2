"""Loops over the law of noisy second moments, and their derivatives. Kernels stand before, scatter after.

What a loop computes is told in ``scatter`` and docs/theory.md. Each goes forward and then backward through its own steps, cell by
cell: as a graph of arrays the same steps are a hundred functions for numba to compile.

Shapes: B cells, F features in the order of the factor, K released moments, k unknowns: moments of features and what is told of their
shapes.

z (B, K) : released moments
n (B,) : records
phi (B, F) : coefficients, in the user's units and order
sigma (B,) : scale of a normal response
latent (B, L) : standard latents of a cell
shared (B, S) : standard latents that all cells have in common, one for every unknown; (1, 0) of a single cell
given (B, W) : all that is no variable, one row a cell: what samplers are handed beside their variables costs half a second an array
    to compile. ``packed`` writes it, ``_parts`` tells what it is made of.
"""

from math import erfc, lgamma, log, pi, sqrt

import numpy as np

from pymc_dp.kernels import ROOT_2
from pymc_dp.shapes import BEYOND, LOOSE, amounts, solved, spreads, tilt, tilt_back

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
STEEP = 0.6
"""A private feature's partial slope on one of the F - 1 before it is STEEP / sqrt(F) sinh(z), in units of what both leave.

A correlation of r is a slope of r / sqrt(1 - r²): .5 at .45, 5 at .98, 22 at .999. In the middle features are little correlated, so that
the noise of a small table is not read as correlation; the tails of sinh are for age beside its square.
"""
HALF, DEPTH = 20, 25.0
"""Gauss-Legendre nodes on either side of the mode of a feature, and how many nats down they go."""
LEGENDRE = np.polynomial.legendre.leggauss(HALF)
HERMITE = np.polynomial.hermite_e.hermegauss(9)
"""Nodes and weights over what is left of a linear predictor, given a feature."""
NODES, WEIGHTS = (LEGENDRE[0] + 1) / 2, LEGENDRE[1]
CURVE, SHARES = HERMITE[0], HERMITE[1] / HERMITE[1].sum()
LEAST_VARIANCE = 1e-9
"""Of a feature on [-1, 1]."""
STEEPEST = 50.0
"""The largest logarithm of a mean."""


# ---------- what is given of a cell
def packed(settings, entries, onto, middle, root, *own):
    """Rows (B, W) of what belongs to all cells, and of what is a cell's own, (B, ...), in the order of ``_parts``."""
    B = len(own[0])
    k, S = own[1].shape[1], own[3].shape[2]
    common = [np.ravel(part).astype(float) for part in ([*settings, len(entries), k, S], entries, onto, middle, root)]
    return np.concatenate([np.tile(np.concatenate(common), (B, 1)), *(part.reshape((B, -1)).astype(float) for part in own)], axis=1)


def _parts(row, F):
    """What a row of ``given`` is made of.

    settings (12,) : noise's standard deviation, 1 if it is Gaussian, centre and half width of the response, 1 for logit or 2 for log,
        private features, standard deviations of what all cells share of an unknown and of what is a cell's own, features whose shape is
        unknown, K, k, S
    entries (K, 2) : which moment is of which two, in the order of the factor; F is the response, F + 1 and F + 2 are half the cosine and
        half the sine of 2 pi times the feature before it
    onto (F, F) : coefficients of scaled features from the user's
    middle (k,), root (k, k) : what ``_fill`` makes moments of is middle + root @ unknowns, root being triangular
    known (F, F) : Cholesky factor of the public features' moments
    start (k,), scale (k, k), shift (k, S) : unknowns are start + shift @ shared + scale @ latent
    rest (F, F) : with a log link, times sqrt(n) and the factor, the Cholesky factor of the covariance of sum D w
    shape (F, 2) : how far the laws of features are tilted, where that is known
    inside (F,), reach (F,), near (F + 1,) : where latents of the response are centred, and which; last that of its square
    """
    K, k, S = int(row[9]), int(row[10]), int(row[11])
    a = 12
    b = a + 2 * K
    c = b + F * F
    d = c + k
    e = d + k * k
    f = e + F * F
    g = f + k
    h = g + k * k
    i = h + k * S
    j = i + F * F
    last = j + 2 * F
    return (
        row[:a], row[a:b].reshape((K, 2)), row[b:c].reshape((F, F)), row[c:d], row[d:e].reshape((k, k)), row[e:f].reshape((F, F)),
        row[f:g], row[g:h].reshape((k, k)), row[h:i].reshape((k, S)), row[i:j].reshape((F, F)), row[j:last].reshape((F, 2)),
        row[last : last + F], row[last + F : last + 2 * F], row[last + 2 * F :],
    )  # fmt: skip


# ---------- densities
def normal_moments(z, n, phi, sigma, latent, shared, given):
    """Log-density (B,) of a normal response's moments; derivatives by n, phi, sigma, latent and shared."""
    value, by_n, by_sigma = np.zeros_like(n), np.zeros_like(n), np.zeros_like(n)
    by_phi, by_latent, by_shared = np.zeros_like(phi), np.zeros_like(latent), np.zeros_like(shared)
    F, k, last = phi.shape[1], int(given[0, 10]), latent.shape[1] - 1
    unknown, away, told, factor = np.empty(k), np.empty(k), np.empty(k), np.empty((F, F))
    by_factor, c, along, within, e = np.empty((F, F)), np.empty(F), np.empty(F), np.empty(F), np.zeros(F)
    by_within, by_c, by_shapes = np.empty(F), np.empty(F), np.zeros(k)
    for i in range(len(n)):
        by_factor[:] = 0.0
        by_within[:] = 0.0
        by_c[:] = 0.0
        settings, entries, onto, middle, onward, known, start, scale, shift, _, _, inside, reach, near = _parts(given[i], F)
        centre, half, m = settings[2], settings[3], int(settings[5])
        value[i] = _unknowns(latent[i], shared[i], start, scale, shift, settings, unknown, away)
        _fill(known, unknown, m, middle, onward, told, factor)
        one, by_n[i] = _features(z[i], n[i], entries, factor, settings, by_factor)
        value[i] += one
        root, s, free = np.sqrt(n[i]), sigma[i] / half, n[i] - F > 0.5
        explained = 0.0
        _scaled(phi[i], onto, c)
        c[0] -= centre
        for b in range(F):
            along[b] = 0.0
            for a in range(b, F):
                along[b] += root * factor[a, b] * c[a] / half
            x = latent[i, k + b]
            if near[b] > 0:
                within[b] = inside[b] + reach[b] * x
                e[b] = (within[b] - along[b]) / s
                value[i] += 0.5 * x**2 - 0.5 * e[b] ** 2 - np.log(s / reach[b])
            else:
                within[b] = along[b] + s * x
            explained += within[b] ** 2
        by_s = 0.0
        for j in range(len(entries)):
            a = int(entries[j, 0])
            if entries[j, 1] < F:
                continue
            if a < F:
                total = 0.0
                for b in range(a + 1):
                    total += root * factor[a, b] * within[b]
                one, slope = _misfit(z[i, j], total, settings)
                by_n[i] += slope * total / (2 * n[i])
                for b in range(a + 1):
                    by_factor[a, b] += slope * root * within[b]
                    by_within[b] += slope * root * factor[a, b]
                value[i] += one
                continue
            t, freedom = latent[i, last], n[i] - F if free else 0.5
            if near[F] > 0:
                # The square itself is latent: its chi-square density takes the place of the latent's.
                square = z[i, j] + settings[0] * t
                one, slope = _misfit(z[i, j], square, settings)
                left = square - explained
                if left <= 0:
                    value[i] = -np.inf
                    break
                value[i] += (freedom / 2 - 1) * np.log(left / s**2) - left / (2 * s**2) - np.log(s**2)
                value[i] += log(settings[0]) - lgamma(freedom / 2) - freedom / 2 * log(2) + 0.5 * t**2 + 0.5 * log(2 * pi)
                by_left = (freedom / 2 - 1) / left - 1 / (2 * s**2)
                by_s += (left / s**2 - freedom) / s
                by_freedom = 0.5 * (np.log(left / s**2) - _digamma(freedom / 2) - log(2))
                by_latent[i, last] = t + settings[0] * (by_left + slope)
                by_explained = -by_left
            else:
                # Wilson and Hilferty's cube root.
                small = 2 / (9 * freedom)
                base = max(1 - small + t * np.sqrt(small), 0.0)
                chi = freedom * base**3
                one, slope = _misfit(z[i, j], explained + s**2 * chi, settings)
                by_s += slope * 2 * s * chi
                by_freedom = slope * s**2 * (base**3 + 3 * base**2 * (small - t * np.sqrt(small) / 2))
                by_latent[i, last] = slope * s**2 * 3 * freedom * base**2 * np.sqrt(small)
                by_explained = slope
            value[i] += one
            by_n[i] += by_freedom if free else 0.0
            for b in range(F):
                by_within[b] += 2 * by_explained * within[b]
        c /= half
        for b in range(F):
            x, slope = latent[i, k + b], by_within[b]
            if near[b] > 0:
                by_latent[i, k + b] = x + reach[b] * (slope - e[b] / s)
                by_s += (e[b] ** 2 - 1) / s
                slope = e[b] / s
            else:
                by_latent[i, k + b] = slope * s
                by_s += slope * x
            by_n[i] += slope * along[b] / (2 * n[i])
            for a in range(b, F):
                by_factor[a, b] += slope * root * c[a]
                by_c[a] += slope * root * factor[a, b] / half
        for f in range(F):
            for a in range(F):
                by_phi[i, f] += onto[f, a] * by_c[a]
        by_sigma[i] = by_s / half
        _back(by_factor, by_shapes, factor, told, m, onward, away, latent[i], scale, shift, settings, by_latent[i], by_shared[i])
    return value, by_n, by_phi, by_sigma, by_latent, by_shared


def linked_moments(z, n, phi, latent, shared, given):
    """Log-density (B,) of the moments of a response with a link; derivatives by n, phi, latent and shared."""
    value, by_n = np.zeros_like(n), np.zeros_like(n)
    by_phi, by_latent, by_shared = np.zeros_like(phi), np.zeros_like(latent), np.zeros_like(shared)
    F, k = phi.shape[1], int(given[0, 10])
    unknown, away, told, factor, by_factor = np.empty(k), np.empty(k), np.empty(k), np.empty((F, F)), np.empty((F, F))
    own, by_own, mean, e, by_e, by_mean = np.empty(F), np.empty(F), np.empty(F), np.empty(F), np.empty(F), np.empty(F)
    root, by_root, by_shapes = np.empty((F, F)), np.empty((F, F)), np.empty(k)
    moved, bent, by_moved, by_bent = np.empty((F, 2)), np.empty((F, 2)), np.empty((F, 2)), np.empty((F, 2))
    seen, nodes = np.empty((17, F)), np.empty((10, F, 2 * HALF))
    for i in range(len(n)):
        by_factor[:] = 0.0
        by_moved[:] = 0.0
        by_e[:] = 0.0
        settings, entries, onto, middle, onward, known, start, scale, shift, rest, shape, inside, reach, near = _parts(given[i], F)
        m = int(settings[5])
        value[i] = _unknowns(latent[i], shared[i], start, scale, shift, settings, unknown, away)
        _fill(known, unknown, m, middle, onward, told, factor)
        _shapes(told, shape, settings, moved, bent)
        one, by_n[i] = _features(z[i], n[i], entries, factor, settings, by_factor)
        value[i] += one
        one, slope = _waves(z[i], n[i], entries, factor, moved, settings, by_factor, by_moved)
        value[i] += one
        by_n[i] += slope
        _scaled(phi[i], onto, own)
        spread = _curve(own, factor, bent, n[i], rest, settings, seen, nodes, mean, root)
        # A sum that is near its released value is that, moved by x noises; else x is what remains of it, given those before.
        for a in range(F):
            e[a] = x = latent[i, k + a]
            if near[a] > 0:
                before = mean[a]
                for b in range(a):
                    before += root[a, b] * e[b]
                e[a] = (inside[a] + reach[a] * x - before) / root[a, a]
                value[i] += 0.5 * x**2 - 0.5 * e[a] ** 2 - np.log(root[a, a] / reach[a])
        for j in range(len(entries)):
            a = int(entries[j, 0])
            if entries[j, 1] != F:
                continue
            total = mean[a]
            for b in range(a + 1):
                total += root[a, b] * e[b]
            one, slope = _misfit(z[i, j], total, settings)
            value[i] += one
            by_mean[a] = slope
        by_root[:] = 0.0
        for a in range(F - 1, -1, -1):
            x, slope = latent[i, k + a], by_mean[a]
            if near[a] > 0:
                pull = (by_e[a] - e[a]) / root[a, a]
                by_latent[i, k + a] = x + reach[a] * (slope + pull)
                by_root[a, a] = -1 / root[a, a] - pull * e[a]
                slope = -pull
            else:
                by_latent[i, k + a] = by_e[a] + slope * root[a, a]
                by_root[a, a] = slope * x
            by_mean[a] = slope
            for b in range(a):
                by_root[a, b] = slope * e[b]
                by_e[b] += slope * root[a, b]
        by_n[i] += _curve_back(
            own, factor, bent, n[i], rest, spread, settings, seen, nodes, mean, root, by_mean, by_root, by_factor, by_bent, by_own
        )
        for f in range(F):
            for a in range(F):
                by_phi[i, f] += onto[f, a] * by_own[a]
        _shapes_back(by_moved, by_bent, settings, by_shapes)
        _back(by_factor, by_shapes, factor, told, m, onward, away, latent[i], scale, shift, settings, by_latent[i], by_shared[i])
    return value, by_n, by_phi, by_latent, by_shared


def drawn_moments(draws, n, phi, sigma, latent, shared, given):
    """Exact moments (B, K): products with the response from standard normal draws in their places, its square from a chi-square one."""
    moments = np.empty_like(draws)
    F, k = phi.shape[1], int(given[0, 10])
    unknown, away, told, factor = np.empty(k), np.empty(k), np.empty(k), np.empty((F, F))
    own, mean, e, within, root = np.empty(F), np.empty(F), np.empty(F), np.empty(F), np.zeros((F, F))
    moved, bent, law = np.zeros((F, 2)), np.zeros((F, 2)), np.empty((4, 2 * HALF))
    seen, nodes = np.empty((17, F)), np.empty((10, F, 2 * HALF))
    for i in range(len(n)):
        settings, entries, onto, middle, onward, known, start, scale, shift, rest, shape, _, _, _ = _parts(given[i], F)
        _unknowns(latent[i], shared[i], start, scale, shift, settings, unknown, away)
        _fill(known, unknown, int(settings[5]), middle, onward, told, factor)
        _scaled(phi[i], onto, own)
        for j in range(len(entries)):
            if entries[j, 0] < F and entries[j, 1] == F:
                e[int(entries[j, 0])] = draws[i, j]
        if settings[4] > 0:
            _shapes(told, shape, settings, moved, bent)
            _curve(own, factor, bent, n[i], rest, settings, seen, nodes, mean, root)
        else:
            # S = root n L (root n L'c + sigma e), and sum w² is that inside squared, and sigma² times the chi-square variable.
            own[0] -= settings[2]
            within[:] = (np.sqrt(n[i]) * (factor * own.reshape((F, 1))).sum(axis=0) + sigma[i] * e) / settings[3]
            mean[:] = np.sqrt(n[i]) * (factor * within).sum(axis=1)
            root[:] = 0.0
        for j in range(len(entries)):
            a, b = int(entries[j, 0]), int(entries[j, 1])
            if b > F:
                m = factor[a, 0]
                _law_of(m, max((factor[a] ** 2).sum() - m**2, LEAST_VARIANCE), moved[a, 0], moved[a, 1], law)
                wave = np.cos(2 * pi * law[0]) if b == F + 1 else np.sin(2 * pi * law[0])
                moments[i, j] = n[i] * (law[2] * wave).sum() / 2
            elif b < F:
                moments[i, j] = n[i] * (factor[a] * factor[b]).sum()
            elif a < F:
                moments[i, j] = mean[a] + (root[a] * e).sum()
            else:
                moments[i, j] = (within**2).sum() + (sigma[i] / settings[3]) ** 2 * draws[i, j]
    return moments


# ---------- what they have in common
def _misfit(released, true, settings):
    """Log-density of the noise, up to a constant, and its derivative by the true value."""
    r = (released - true) / settings[0]
    if settings[1] > 0:
        return -0.5 * r**2, r / settings[0]
    return -ROOT_2 * abs(r), ROOT_2 * np.sign(r) / settings[0]


def _scaled(phi, onto, own):
    """Coefficients of the scaled features, in the order of the factor."""
    for a in range(len(own)):
        own[a] = 0.0
        for f in range(len(own)):
            own[a] += phi[f] * onto[f, a]


def _unknowns(latent, shared, start, scale, shift, settings, unknown, away):
    """Fills the unknowns of a cell and how far they are from what is expected; their log-density less that of their latents."""
    own = 0.0
    for a in range(len(unknown)):
        unknown[a], expected = start[a], 0.0
        for b in range(len(unknown)):
            unknown[a] += scale[a, b] * latent[b]
        for b in range(shift.shape[1]):
            unknown[a] += shift[a, b] * settings[6] * shared[b]
        if shift.shape[1] > 0:
            expected = settings[6] * shared[a]
        away[a] = (unknown[a] - expected) / settings[7]
        own += 0.5 * latent[a] ** 2 - 0.5 * away[a] ** 2
    return own


def _fill(known, unknown, m, middle, onward, told, factor):
    """The Cholesky factor: rows of public features are known, those of private ones are means, shares of variance and partial slopes.

    ``told`` are what these are functions of: middle + onward @ unknown.
    """
    F, place = len(factor), 2 * m
    for a in range(len(told)):
        told[a] = middle[a]
        for b in range(a + 1):
            told[a] += onward[a, b] * unknown[b]
    for row in range(F):
        for j in range(F):
            factor[row, j] = known[row, j]
    for p in range(m):
        row = F - m + p
        mu, length = SPREAD_OF_MEAN * np.sinh(told[p]), 1.0
        for j in range(1, row):
            factor[row, j] = steepness(F) * np.sinh(told[place + j - 1])
            length += factor[row, j] ** 2
        rest = 1 / np.sqrt((1 + mu**2) * (1 + np.exp(-told[m + p])) * length)
        factor[row, 0] = mu / np.sqrt(1 + mu**2)
        for j in range(1, row):
            factor[row, j] *= rest
        factor[row, row] = rest
        place += row - 1


def steepness(F):
    """What sinh is multiplied by to give a partial slope among F features: the more there are, the less each tells of another."""
    return STEEP / np.sqrt(F)


def _back(by_factor, by_shapes, factor, told, m, onward, away, latent, scale, shift, settings, by_latent, by_shared):
    """Adds to the derivatives by the latents of the unknowns, from those by the factor, and by what is told of shapes (k,)."""
    F, k = len(factor), len(told)
    by_told, by_unknown = np.empty(k), np.empty(k)
    by_told[:] = by_shapes
    place = 2 * m
    for p in range(m):
        row = F - m + p
        mu, rest, length, by_rest = SPREAD_OF_MEAN * np.sinh(told[p]), factor[row, row], 1.0, by_factor[row, row]
        for j in range(1, row):
            slope = factor[row, j] / rest
            length += slope**2
            by_rest += by_factor[row, j] * slope
        for j in range(1, row):
            by_slope = by_factor[row, j] * rest - by_rest * factor[row, j] / length
            by_told[place + j - 1] = by_slope * steepness(F) * np.cosh(told[place + j - 1])
        by_mu = by_factor[row, 0] / (1 + mu**2) ** 1.5 - by_rest * rest * mu / (1 + mu**2)
        by_told[p] = by_mu * SPREAD_OF_MEAN * np.cosh(told[p])
        by_told[m + p] = 0.5 * by_rest * rest / (1 + np.exp(told[m + p]))
        place += row - 1
    for a in range(k):
        by_latent[a] += latent[a]
        by_unknown[a] = -away[a] / settings[7]
    for a in range(k):
        for b in range(a + 1):
            by_unknown[b] += onward[a, b] * by_told[a]
    for a in range(k):
        for b in range(k):
            by_latent[b] += scale[a, b] * by_unknown[a]
        for b in range(shift.shape[1]):
            by_shared[b] += shift[a, b] * settings[6] * by_unknown[a]
        if shift.shape[1] > 0:
            by_shared[a] += settings[6] * away[a] / settings[7]


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
        one, slope = _misfit(z[j], n * moment, settings)
        value += one
        by_n += slope * moment
        for f in range(min(a, b) + 1):
            by_factor[a, f] += slope * n * factor[b, f]
            by_factor[b, f] += slope * n * factor[a, f]
    return value, by_n


def _waves(z, n, entries, factor, moved, settings, by_factor, by_moved):
    """The same for released cosines and sines, halved; adds to the derivatives by the shapes as well."""
    value = by_n = 0.0
    F, law = len(factor), np.empty((4, 2 * HALF))
    by_weights, by_u, nothing = np.empty(2 * HALF), np.empty(2 * HALF), np.zeros(2 * HALF)
    loose, noise = settings.copy(), settings[0]
    loose[0] = np.sqrt(noise**2 + (LOOSE * n) ** 2)
    for j in range(len(entries)):
        a = int(entries[j, 0])
        if entries[j, 1] != F + 1:  # a sine follows its cosine
            continue
        m, square = factor[a, 0], 0.0
        for f in range(a + 1):
            square += factor[a, f] ** 2
        v = max(square - m**2, LEAST_VARIANCE)
        one, other, first, second = _law_of(m, v, moved[a, 0], moved[a, 1], law)
        u, weights = law[0], law[2]
        cosine = sine = 0.0
        for q in range(2 * HALF):
            cosine += weights[q] * np.cos(2 * pi * u[q])
            sine += weights[q] * np.sin(2 * pi * u[q])
        of_cosine, by_cosine = _misfit(z[j], n * cosine / 2, loose)
        of_sine, by_sine = _misfit(z[j + 1], n * sine / 2, loose)
        value += of_cosine + of_sine - 2 * np.log(loose[0] / noise)
        by_scale = -(of_cosine + of_sine) * (2.0 if settings[1] > 0 else 1.0) - 2
        by_n += (by_cosine * cosine + by_sine * sine) / 2 + by_scale * n * (LOOSE / loose[0]) ** 2
        for q in range(2 * HALF):
            c, s = np.cos(2 * pi * u[q]), np.sin(2 * pi * u[q])
            by_weights[q] = n / 2 * (by_cosine * c + by_sine * s)
            by_u[q] = n * pi * weights[q] * (by_sine * c - by_cosine * s)
        by_m, by_v, by_humped, by_skewed = _law_back(
            m, v, one, other, moved[a, 0], moved[a, 1], first, second, u, law[1], weights, law[3], by_weights, by_u, nothing
        )
        by_moved[a, 0] += by_humped
        by_moved[a, 1] += by_skewed
        if square - m**2 < LEAST_VARIANCE:
            by_v = 0.0
        by_factor[a, 0] += by_m - 2 * m * by_v
        for f in range(a + 1):
            by_factor[a, f] += by_v * 2 * factor[a, f]
    return value, by_n


def _law_of(mean, variance, humped, skewed, law):
    """Fills rows of law (4, 2 HALF), nodes, weights of a beta variable, of the tilted one, and logits; gives what its way back needs."""
    one, other = beta_nodes(mean, variance, law[0], law[1], law[3])
    first, second = tilt(law[0], law[1], mean, variance, humped, skewed, law[2])
    return one, other, first, second


def _law_back(mean, variance, one, other, humped, skewed, first, second, u, share, weights, t, by_weights, by_u, by_share):
    """Derivatives by mean, variance and both tilts, from those by nodes and both laws' weights, which are changed."""
    by_power = np.empty(2 * HALF)
    by_mean, by_variance, by_humped, by_skewed = tilt_back(
        u, share, mean, variance, humped, skewed, weights, first, second, by_weights, by_u, by_power
    )
    typical = 0.0
    for q in range(2 * HALF):
        typical += share[q] * by_share[q]
    for q in range(2 * HALF):
        by_power[q] += share[q] * (by_share[q] - typical)
    # Through the nodes to the beta variable's parameters, mean and variance.
    wide = np.sqrt(2 * DEPTH * (1 / one + 1 / other))
    by_one = by_other = by_mode = by_wide = 0.0
    for q in range(2 * HALF):
        x, below = NODES[q % HALF], q < HALF
        reach, p = DEPTH / (one if below else other) + wide, (1 + u[q]) / 2
        by_density = by_power[q]
        by_t = by_density * (one - (one + other) * p) + by_u[q] * (1 - u[q] ** 2) / 2
        by_reach = by_density / reach + (-by_t if below else by_t) * x**2
        by_one += by_density * (t[q] - np.logaddexp(0.0, t[q]))
        by_other -= by_density * np.logaddexp(0.0, t[q])
        by_mode += by_t
        by_wide += by_reach
        if below:
            by_one -= by_reach * DEPTH / one**2
        else:
            by_other -= by_reach * DEPTH / other**2
    by_one += by_mode / one - by_wide * DEPTH / (one**2 * wide)
    by_other -= by_mode / other + by_wide * DEPTH / (other**2 * wide)
    total = max((1 - mean**2) / variance - 1, 1e-4)
    by_mean += by_one * total / 2 if (1 + mean) / 2 > 1e-6 else 0.0
    by_mean -= by_other * total / 2 if (1 - mean) / 2 > 1e-6 else 0.0
    if (1 - mean**2) / variance - 1 > 1e-4:
        by_total = (by_one * one + by_other * other) / total
        by_mean -= by_total * 2 * mean / variance
        by_variance -= by_total * (1 - mean**2) / variance**2
    return by_mean, by_variance, by_humped, by_skewed


def _shapes(told, shape, settings, moved, bent):
    """Fills how far laws of features are tilted, as their waves see it, and as the response does (F, 2)."""
    F, many = len(shape), int(settings[8])
    beyond = len(told) - 2 * (F - 1)
    for a in range(F):
        for j in range(2):
            moved[a, j] = shape[a, j]
            if a >= F - many:
                moved[a, j] += told[beyond - 2 * (F - a) + j]
            bent[a, j] = moved[a, j]
            if a > 0:
                bent[a, j] += BEYOND * told[beyond + 2 * (a - 1) + j]


def _shapes_back(by_moved, by_bent, settings, by_shapes):
    """Fills the derivatives by what is told of shapes, in its places (k,), from those by both of what it makes."""
    F, many = len(by_moved), int(settings[8])
    beyond = len(by_shapes) - 2 * (F - 1)
    by_shapes[:] = 0.0
    for a in range(1, F):
        for j in range(2):
            by_shapes[beyond + 2 * (a - 1) + j] = BEYOND * by_bent[a, j]
            if a >= F - many:
                by_shapes[beyond - 2 * (F - a) + j] = by_moved[a, j] + by_bent[a, j]


def _digamma(x):
    """Derivative of the logarithm of the gamma function, x > 0."""
    found = 0.0
    while x < 10:
        found -= 1 / x
        x += 1
    y = 1 / x**2
    return found + np.log(x) - 0.5 / x - y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132 - y * 691 / 32760)))))


# ---------- a response with a link
def beta_nodes(mean, variance, u, weights, t):
    """Fills nodes and weights (2 HALF,) of a beta variable on [-1, 1] with this mean and variance; gives its two parameters.

    In t = log((1 + u) / (1 - u)) the density is log-concave, exp(a t) / (1 + exp t)^(a + b), with tails exp(a t) and exp(-b t); either
    side of its mode is integrated to DEPTH nats, more densely near it.
    """
    total = max((1 - mean**2) / variance - 1, 1e-4)
    a, b = max((1 + mean) / 2, 1e-6) * total, max((1 - mean) / 2, 1e-6) * total
    mode, wide, top, mass = np.log(a / b), np.sqrt(2 * DEPTH * (1 / a + 1 / b)), -np.inf, 0.0
    for q in range(2 * HALF):
        x, below = NODES[q % HALF], q < HALF
        reach = DEPTH / (a if below else b) + wide
        t[q] = mode + (-reach if below else reach) * x**2
        weights[q] = a * t[q] - (a + b) * np.logaddexp(0.0, t[q]) + np.log(reach * x * WEIGHTS[q % HALF])
        u[q] = np.tanh(t[q] / 2)
        top = max(top, weights[q])
    for q in range(2 * HALF):
        weights[q] = np.exp(weights[q] - top)
        mass += weights[q]
    for q in range(2 * HALF):
        weights[q] /= mass
    return a, b


def _products(factor):
    """The moments whose Cholesky factor this is."""
    F = len(factor)
    moments = np.zeros((F, F))
    for a in range(F):
        for b in range(F):
            for f in range(min(a, b) + 1):
                moments[a, b] += factor[a, f] * factor[b, f]
    return moments


def _curve(own, factor, bent, n, rest, settings, seen, nodes, exactly, root):
    """Fills mean (F,) of the sums of D w, and the triangular root (F, F) of their covariance; with logit gives the response's spread.

    Every feature in turn is a beta variable on [-1, 1] with its mean and variance, tilted by ``bent`` (F, 2), and the rest of the linear
    predictor is normal given it, with the mean and variance that the second moments imply. So a single feature, or a binary one
    among many, is not taken for normal (docs/theory.md). ``seen`` and ``nodes`` keep what the way back needs.
    """
    F, centre, half, logarithmic = len(own), settings[2], settings[3], settings[4] > 1
    mean, variance, with_eta, slope, left, alone = seen[0], seen[1], seen[2], seen[3], seen[4], seen[5]
    together, part, full, factors, a_of, b_of = seen[6], seen[7], seen[8], seen[9], seen[10], seen[11]
    first, second, turned, raised, added = seen[12], seen[13], seen[14], seen[15], seen[16]
    base, lift, curl = nodes[7], nodes[8], nodes[9]
    u, weights, t, g, by_mu, by_left, line = nodes[0], nodes[1], nodes[2], nodes[3], nodes[4], nodes[5], nodes[6]
    moments = _products(factor)
    eta = square = 0.0
    for a in range(F):
        mean[a] = moments[0, a]
    for a in range(F):
        with_eta[a] = 0.0
        for b in range(F):
            with_eta[a] += (moments[a, b] - mean[a] * mean[b]) * own[b]
        variance[a] = moments[a, a] - mean[a] ** 2
        eta += mean[a] * own[a]
        square += with_eta[a] * own[a]
    level = parts = 0.0
    # All features but the first, whose variance is 0.
    for a in range(1, F):
        m, v = mean[a], max(variance[a], LEAST_VARIANCE)
        slope[a] = with_eta[a] / v
        left[a] = max(square - slope[a] ** 2 * v, 0.0)
        a_of[a], b_of[a] = beta_nodes(m, v, u[a], base[a], t[a])
        first[a], second[a] = tilt(u[a], base[a], m, v, bent[a, 0], bent[a, 1], weights[a])
        alone[a] = together[a] = 0.0
        s = np.sqrt(left[a] + 1e-12)
        for q in range(2 * HALF):
            mu = eta + slope[a] * (u[a, q] - m)
            g[a, q] = by_mu[a, q] = by_left[a, q] = lift[a, q] = curl[a, q] = 0.0
            for j in range(len(CURVE)):
                if logarithmic:
                    rate = np.exp(min(mu + s * CURVE[j], STEEPEST))
                    p, rising = _clamped_count(rate, centre + half)
                    rising *= rate
                else:
                    p = 1 / (1 + np.exp(-mu - s * CURVE[j]))
                    rising = p * (1 - p)
                g[a, q] += SHARES[j] * p
                by_mu[a, q] += SHARES[j] * rising
                by_left[a, q] += SHARES[j] * rising * CURVE[j] / (2 * s)
                lift[a, q] += SHARES[j] * p * CURVE[j] / s
                curl[a, q] += SHARES[j] * rising * CURVE[j] ** 2 / (2 * s**2)
            curl[a, q] -= lift[a, q] / (2 * s**2)
            alone[a] += weights[a, q] * g[a, q]
            together[a] += weights[a, q] * u[a, q] * g[a, q]
        # What its tilt does to the sums of other features: by what it adds to E[g], to E[(u - m) g], and to E[g'] = E[z g] / s, where s z
        # is what it leaves of the predictor.
        turned[a] = raised[a] = added[a] = 0.0
        for q in range(2 * HALF):
            more = weights[a, q] - base[a, q]
            added[a] += more * g[a, q]
            turned[a] += more * (u[a, q] - m) * g[a, q]
            raised[a] += more * lift[a, q]
        # E g untilted, as seen from every feature, weighted by its part in the predictor; and what all tilts add.
        part[a] = slope[a] ** 2 * v + 1e-6
        level += part[a] * (alone[a] - added[a])
        parts += part[a]
    level /= parts
    for a in range(1, F):
        level += added[a]
    full[0], joint = level, 0.0
    for a in range(F):
        if a > 0:
            full[a] = together[a] + mean[a] * (level - alone[a])
            for b in range(1, F):
                if a != b:
                    with_b = moments[a, b] - mean[a] * mean[b]
                    full[a] += with_b / max(variance[b], LEAST_VARIANCE) * turned[b] + (with_eta[a] - with_b * slope[b]) * raised[b]
        exactly[a] = n * (full[a] - centre * mean[a]) / half
        joint += (full[a] - mean[a] * level) * own[a]
    spread = 1.0
    for a in range(F):
        factors[a] = 1.0
    if not logarithmic:
        spread = np.sqrt(max(level * (1 - level) - joint**2 / max(square, 1e-9), 1e-6))
        # The variance of y is not the same at all values of a feature: what weighs in sum u y is that far from the mean of u.
        for a in range(1, F):
            above = below = 0.0
            v = max(variance[a], LEAST_VARIANCE)
            for q in range(2 * HALF):
                deviation = u[a, q] - mean[a]
                line[a, q] = level + (together[a] - alone[a] * mean[a]) / v * deviation
                residual = weights[a, q] * max(g[a, q] * (1 - 2 * line[a, q]) + line[a, q] ** 2, 1e-9)
                above += residual * deviation**2
                below += residual
            factors[a] = np.sqrt(above / (v * below))
    for a in range(F):
        for b in range(F):
            if not logarithmic:  # the first column is what every sum has of the mean of y
                root[a, b] = np.sqrt(n) * spread * (factors[a] if b > 0 else 1.0) * factor[a, b] / half
                continue
            # From released values: a covariance that moves with the coefficients would excuse any misfit.
            root[a, b] = 0.0
            for f in range(b, a + 1):
                root[a, b] += np.sqrt(n) * factor[a, f] * rest[f, b] / half
    return spread


def _clamped_count(rate, most):
    """Mean of a Poisson count that is clamped from above, taken as normal, and its derivative by the rate."""
    root = np.sqrt(max(rate, 1e-100))
    away = (rate - most) / root
    below, density = 0.5 * erfc(away / ROOT_2), np.exp(-0.5 * away**2) / sqrt(2 * pi)
    return rate * below + most * (1 - below) - root * density, below - density / (2 * root)


def _curve_back(own, factor, bent, n, rest, spread, settings, seen, nodes, exactly, root, by_exactly, by_root, by_factor, by_bent, by_own):
    """Fills derivatives by coefficients and shapes, adds to those by the factor, and gives that by n: from those by mean and root."""
    F, centre, half, logarithmic = len(own), settings[2], settings[3], settings[4] > 1
    mean, variance, with_eta, slope, left, alone = seen[0], seen[1], seen[2], seen[3], seen[4], seen[5]
    together, part, full, factors, a_of, b_of = seen[6], seen[7], seen[8], seen[9], seen[10], seen[11]
    first, second, turned, raised, added = seen[12], seen[13], seen[14], seen[15], seen[16]
    base, lift, curl = nodes[7], nodes[8], nodes[9]
    u, weights, t, g, by_mu, by_left, line = nodes[0], nodes[1], nodes[2], nodes[3], nodes[4], nodes[5], nodes[6]
    by_full, by_mean, by_with, by_variance = np.empty(F), np.empty(F), np.zeros(F), np.zeros(F)
    by_alone, by_together, by_m, by_v, by_factors = np.zeros(F), np.zeros(F), np.zeros(F), np.zeros(F), np.zeros(F)
    by_weights, by_u, by_g = np.zeros((F, 2 * HALF)), np.zeros((F, 2 * HALF)), np.zeros((F, 2 * HALF))
    by_shares, by_turned, by_raised = np.zeros((F, 2 * HALF)), np.zeros(F), np.zeros(F)
    of_slope, of_with, by_moments, moments = np.zeros(F), np.zeros(F), np.zeros((F, F)), _products(factor)
    by_bent[:] = 0.0
    by_n = by_spread = by_level = by_square = by_eta = eta = square = joint = parts = 0.0
    level = full[0]
    for a in range(F):
        by_n += by_exactly[a] * exactly[a] / n
        by_full[a], by_mean[a] = n * by_exactly[a] / half, -n * centre * by_exactly[a] / half
        by_own[a] = 0.0
        for b in range(a + 1):
            along = by_root[a, b] * root[a, b]
            by_n += along / (2 * n)
            if logarithmic:
                for f in range(b, a + 1):
                    by_factor[a, f] += by_root[a, b] * np.sqrt(n) * rest[f, b] / half
                continue
            by_spread += along / spread
            by_factors[a] += along / factors[a] if b > 0 else 0.0
            by_factor[a, b] += by_root[a, b] * np.sqrt(n) * spread * (factors[a] if b > 0 else 1.0) / half
        eta += mean[a] * own[a]
        square += with_eta[a] * own[a]
        joint += (full[a] - mean[a] * level) * own[a]
        parts += part[a] if a > 0 else 0.0
    if not logarithmic:
        least = max(square, 1e-9)
        if level * (1 - level) - joint**2 / least > 1e-6:
            by_whole = by_spread / (2 * spread)
            by_joint = -2 * joint / least * by_whole
            by_level += by_whole * (1 - 2 * level) - by_joint * eta
            by_square += joint**2 / least**2 * by_whole if square > 1e-9 else 0.0
            for a in range(F):
                by_full[a] += by_joint * own[a]
                by_mean[a] -= by_joint * level * own[a]
                by_own[a] += by_joint * (full[a] - mean[a] * level)
        for a in range(1, F):
            v = max(variance[a], LEAST_VARIANCE)
            steep = (together[a] - alone[a] * mean[a]) / v
            above = below = by_steep = 0.0
            for q in range(2 * HALF):
                residual = weights[a, q] * max(g[a, q] * (1 - 2 * line[a, q]) + line[a, q] ** 2, 1e-9)
                above += residual * (u[a, q] - mean[a]) ** 2
                below += residual
            by_above, by_below = by_factors[a] * factors[a] / (2 * above), -by_factors[a] * factors[a] / (2 * below)
            by_v[a] -= by_factors[a] * factors[a] / (2 * v)
            for q in range(2 * HALF):
                deviation, straight = u[a, q] - mean[a], line[a, q]
                inner = g[a, q] * (1 - 2 * straight) + straight**2
                by_residual = by_above * deviation**2 + by_below
                by_deviation = 2 * by_above * weights[a, q] * max(inner, 1e-9) * deviation
                by_weights[a, q] = by_residual * max(inner, 1e-9)
                if inner > 1e-9:
                    by_g[a, q] = by_residual * weights[a, q] * (1 - 2 * straight)
                    by_line = by_residual * weights[a, q] * 2 * (straight - g[a, q])
                    by_level += by_line
                    by_steep += by_line * deviation
                    by_deviation += by_line * steep
                by_u[a, q] = by_deviation
                by_m[a] -= by_deviation
            by_together[a] += by_steep / v
            by_alone[a] -= by_steep * mean[a] / v
            by_m[a] -= by_steep * alone[a] / v
            by_v[a] -= by_steep * steep / v
    by_level += by_full[0]
    untilted = level
    for a in range(1, F):
        untilted -= added[a]
    for a in range(1, F):
        by_level += by_full[a] * mean[a]
        for b in range(1, F):
            if a != b:
                with_b, v = moments[a, b] - mean[a] * mean[b], max(variance[b], LEAST_VARIANCE)
                by_turned[b] += by_full[a] * with_b / v
                by_raised[b] += by_full[a] * (with_eta[a] - with_b * slope[b])
                by_moments[a, b] += by_full[a] * (turned[b] / v - slope[b] * raised[b])
                by_v[b] -= by_full[a] * with_b * turned[b] / v**2
                of_with[a] += by_full[a] * raised[b]
                of_slope[b] -= by_full[a] * with_b * raised[b]
    for a in range(1, F):
        m, v = mean[a], max(variance[a], LEAST_VARIANCE)
        by_together[a] += by_full[a]
        by_alone[a] += by_level * part[a] / parts - by_full[a] * m
        by_added = by_level * (1 - part[a] / parts)
        by_m[a] += by_full[a] * (level - alone[a])
        by_part = by_level * (alone[a] - added[a] - untilted) / parts
        by_slope, by_rest = 2 * by_part * slope[a] * v + of_slope[a], 0.0
        by_v[a] += by_part * slope[a] ** 2
        for q in range(2 * HALF):
            w, x = weights[a, q], u[a, q]
            more = w - base[a, q]
            by_shares[a, q] = -(by_added + by_turned[a] * (x - m)) * g[a, q] - by_raised[a] * lift[a, q]
            by_weights[a, q] += g[a, q] * (by_alone[a] + by_together[a] * x) - by_shares[a, q]
            of_g = by_g[a, q] + w * (by_alone[a] + by_together[a] * x) + (by_added + by_turned[a] * (x - m)) * more
            along = of_g * by_mu[a, q] + by_raised[a] * more * 2 * by_left[a, q]
            by_rest += of_g * by_left[a, q] + by_raised[a] * more * curl[a, q]
            by_eta += along
            by_slope += along * (x - m)
            by_m[a] -= along * slope[a] + by_turned[a] * more * g[a, q]
            by_u[a, q] += (by_together[a] * w + by_turned[a] * more) * g[a, q] + along * slope[a]
        more_m, more_v, by_bent[a, 0], by_bent[a, 1] = _law_back(
            m,
            v,
            a_of[a],
            b_of[a],
            bent[a, 0],
            bent[a, 1],
            first[a],
            second[a],
            u[a],
            base[a],
            weights[a],
            t[a],
            by_weights[a],
            by_u[a],
            by_shares[a],
        )
        by_m[a] += more_m
        by_v[a] += more_v
        if left[a] > 0:
            by_square += by_rest
            by_slope -= 2 * by_rest * slope[a] * v
            by_v[a] -= by_rest * slope[a] ** 2
        by_with[a] = by_slope / v + of_with[a]
        by_v[a] -= by_slope * slope[a] / v
        by_variance[a] = by_v[a] if variance[a] > LEAST_VARIANCE else 0.0
        by_mean[a] += by_m[a]
    for a in range(F):
        by_mean[a] += by_eta * own[a]
        by_own[a] += by_eta * mean[a] + by_square * with_eta[a]
        by_with[a] += by_square * own[a]
    for a in range(F):
        for b in range(F):
            by_moments[a, b] += by_with[a] * own[b] + (by_variance[a] if a == b else 0.0)
            by_own[b] += by_with[a] * (moments[a, b] - mean[a] * mean[b])
    for a in range(F):
        for b in range(F):
            by_mean[a] -= (by_moments[a, b] + by_moments[b, a]) * mean[b]
    for a in range(F):
        by_moments[0, a] += by_mean[a]
    for a in range(F):
        for b in range(F):
            for f in range(min(a, b) + 1):
                by_factor[a, f] += (by_moments[a, b] + by_moments[b, a]) * factor[b, f]
    return by_n


PARTS = (
    _parts, _misfit, _scaled, _unknowns, steepness, _fill, _back, _features, _waves, _shapes, _shapes_back, _law_of, _law_back,
    tilt, tilt_back, amounts, spreads, solved, _digamma, beta_nodes,
    _products, _clamped_count, _curve, _curve_back,
)  # fmt: skip
"""What the loops call."""
