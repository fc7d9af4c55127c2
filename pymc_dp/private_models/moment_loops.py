"""Loops over the law of noisy second moments, and their derivatives.

What a loop computes is told in ``moment_law`` and docs/theory.md. Each goes forward and then backward through its own steps, cell by
cell: as a graph of arrays the same steps are a hundred functions for numba to compile.

Shapes: B cells, F features in the order of the factor, K released moments, k unknowns: moments of features.

z (B, K) : released moments
n (B,) : records
phi (B, F) : coefficients, in the user's units and order
sigma (B,) : scale of a normal response
latent (B, L) : standard latents of a cell
shared (B, S) : standard latents that all cells have in common, one for every unknown; (1, 0) of a single cell
given (B, W) : all that is no variable, one row a cell: what samplers are handed beside their variables costs half a second an array
    to compile. ``packed`` writes it, ``_parts`` tells what it is made of.
"""

from math import lgamma, log, pi

import numpy as np

from pymc_dp.laws.kernel import ROOT_2

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


# ---------- what is given of a cell
def packed(settings, entries, onto, middle, root, *own):
    """Rows (B, W) of what belongs to all cells, and of what is a cell's own, (B, ...), in the order of ``_parts``."""
    B = len(own[0])
    k, S = own[1].shape[1], own[3].shape[2]
    common = [np.ravel(part).astype(float) for part in ([*settings, len(entries), k, S], entries, onto, middle, root)]
    return np.concatenate([np.tile(np.concatenate(common), (B, 1)), *(part.reshape((B, -1)).astype(float) for part in own)], axis=1)


def _parts(row, F):
    """What a row of ``given`` is made of.

    settings (9,) : noise's standard deviation, 1 if it is Gaussian, half width of the response, private features, standard deviations of
        what all cells share of an unknown and of what is a cell's own, K, k, S
    entries (K, 2) : which moment is of which two, in the order of the factor; F is the response
    onto (F, F) : coefficients of scaled features from the user's
    middle (k,), root (k, k) : what ``_fill`` makes moments of is middle + root @ unknowns, root being triangular
    known (F, F) : Cholesky factor of the public features' moments
    start (k,), scale (k, k), shift (k, S) : unknowns are start + shift @ shared + scale @ latent
    inside (F,), reach (F,), near (F + 1,) : where latents of the response are centred, and which; last that of its square
    off (F + 1,) : what is taken off the coefficients of scaled features; last what sigma is multiplied by
    """
    K, k, S = int(row[6]), int(row[7]), int(row[8])
    a = 9
    b = a + 2 * K
    c = b + F * F
    d = c + k
    e = d + k * k
    f = e + F * F
    g = f + k
    h = g + k * k
    last = h + k * S
    return (
        row[:a], row[a:b].reshape((K, 2)), row[b:c].reshape((F, F)), row[c:d], row[d:e].reshape((k, k)), row[e:f].reshape((F, F)),
        row[f:g], row[g:h].reshape((k, k)), row[h:last].reshape((k, S)), row[last : last + F], row[last + F : last + 2 * F],
        row[last + 2 * F : last + 3 * F + 1], row[last + 3 * F + 1 :],
    )  # fmt: skip


# ---------- densities
def normal_moments(z, n, phi, sigma, latent, shared, given):
    """Log-density (B,) of a normal response's moments; derivatives by n, phi, sigma, latent and shared."""
    value, by_n, by_sigma = np.zeros_like(n), np.zeros_like(n), np.zeros_like(n)
    by_phi, by_latent, by_shared = np.zeros_like(phi), np.zeros_like(latent), np.zeros_like(shared)
    F, k, last = phi.shape[1], int(given[0, 7]), latent.shape[1] - 1
    unknown, away, told, factor = np.empty(k), np.empty(k), np.empty(k), np.empty((F, F))
    by_factor, c, along, within, e = np.empty((F, F)), np.empty(F), np.empty(F), np.empty(F), np.zeros(F)
    by_within, by_c = np.empty(F), np.empty(F)
    for i in range(len(n)):
        by_factor[:] = 0.0
        by_within[:] = 0.0
        by_c[:] = 0.0
        settings, entries, onto, middle, onward, known, start, scale, shift, inside, reach, near, off = _parts(given[i], F)
        half, m = settings[2], int(settings[3])
        value[i] = _unknowns(latent[i], shared[i], start, scale, shift, settings, unknown, away)
        _fill(known, unknown, m, middle, onward, told, factor)
        one, by_n[i] = _features(z[i], n[i], entries, factor, settings, by_factor)
        value[i] += one
        root, s, free = np.sqrt(n[i]), sigma[i] * off[F] / half, n[i] - F > 0.5
        explained = 0.0
        _scaled(phi[i], onto, off, c)
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
        by_sigma[i] = by_s * off[F] / half
        _back(by_factor, factor, told, m, onward, away, latent[i], scale, shift, settings, by_latent[i], by_shared[i])
    return value, by_n, by_phi, by_sigma, by_latent, by_shared


def drawn_moments(draws, n, phi, sigma, latent, shared, given):
    """Exact moments (B, K): products with the response from standard normal draws in their places, its square from a chi-square one."""
    moments = np.empty_like(draws)
    F, k = phi.shape[1], int(given[0, 7])
    unknown, away, told, factor = np.empty(k), np.empty(k), np.empty(k), np.empty((F, F))
    own, e, within = np.empty(F), np.empty(F), np.empty(F)
    for i in range(len(n)):
        settings, entries, onto, middle, onward, known, start, scale, shift, _, _, _, off = _parts(given[i], F)
        _unknowns(latent[i], shared[i], start, scale, shift, settings, unknown, away)
        _fill(known, unknown, int(settings[3]), middle, onward, told, factor)
        _scaled(phi[i], onto, off, own)
        for j in range(len(entries)):
            if entries[j, 0] < F and entries[j, 1] == F:
                e[int(entries[j, 0])] = draws[i, j]
        # S = root n L (root n L'c + sigma e), and sum w² is that inside squared, and sigma² times the chi-square variable.
        within[:] = (np.sqrt(n[i]) * (factor * own.reshape((F, 1))).sum(axis=0) + sigma[i] * off[F] * e) / settings[2]
        for j in range(len(entries)):
            a, b = int(entries[j, 0]), int(entries[j, 1])
            if b < F:
                moments[i, j] = n[i] * (factor[a] * factor[b]).sum()
            elif a < F:
                moments[i, j] = np.sqrt(n[i]) * (factor[a] * within).sum()
            else:
                moments[i, j] = (within**2).sum() + (sigma[i] * off[F] / settings[2]) ** 2 * draws[i, j]
    return moments


# ---------- what they have in common
def _misfit(released, true, settings):
    """Log-density of the noise, up to a constant, and its derivative by the true value."""
    r = (released - true) / settings[0]
    if settings[1] > 0:
        return -0.5 * r**2, r / settings[0]
    return -ROOT_2 * abs(r), ROOT_2 * np.sign(r) / settings[0]


def _scaled(phi, onto, off, own):
    """Coefficients of the scaled features, in the order of the factor, less what is taken off them."""
    for a in range(len(own)):
        own[a] = -off[a]
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
            unknown[a] += shift[a, b] * settings[4] * shared[b]
        if shift.shape[1] > 0:
            expected = settings[4] * shared[a]
        away[a] = (unknown[a] - expected) / settings[5]
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


def _back(by_factor, factor, told, m, onward, away, latent, scale, shift, settings, by_latent, by_shared):
    """Adds to the derivatives by the latents of the unknowns, from those by the factor."""
    F, k = len(factor), len(told)
    by_told, by_unknown = np.empty(k), np.empty(k)
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
        by_unknown[a] = -away[a] / settings[5]
    for a in range(k):
        for b in range(a + 1):
            by_unknown[b] += onward[a, b] * by_told[a]
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
        one, slope = _misfit(z[j], n * moment, settings)
        value += one
        by_n += slope * moment
        for f in range(min(a, b) + 1):
            by_factor[a, f] += slope * n * factor[b, f]
            by_factor[b, f] += slope * n * factor[a, f]
    return value, by_n


def _digamma(x):
    """Derivative of the logarithm of the gamma function, x > 0."""
    found = 0.0
    while x < 10:
        found -= 1 / x
        x += 1
    y = 1 / x**2
    return found + np.log(x) - 0.5 / x - y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132 - y * 691 / 32760)))))


PARTS = (_parts, _misfit, _scaled, _unknowns, steepness, _fill, _back, _features, _digamma)
"""What the loops call."""
