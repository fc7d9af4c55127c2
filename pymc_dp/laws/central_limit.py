"""Loops over several counts or sums that are jointly normal by the central limit theorem, under noise that is Laplace or correlated.

Shapes: B cells, K counts or sums.
"""

import numpy as np

ROUNDING = 1e-13
"""The largest share of a sum's variance that is taken for rounding where several others determine it."""
RARE = 1e-12
"""The least probability of a count that is taken as normal."""


def latent_counts(z, n, p, latent, spread, deviation):
    """Multinomial counts by the central limit plus Laplace noise, z, p and the standard normal latents (B, K).

    The counts s have the law of independent normal ones of mean and variance e = n p, given that they add up to n. Were the noise normal,
    too, of its own variance v, then s given z would be independent again, of variance V = e v / (e + v) and mean z - (z - e) v / (e + v),
    on the same plane: s is standardised by that law, and the noise's own density at s takes the place of the normal one.
    """
    value, by_p, by_latent = np.zeros_like(n), np.empty_like(p), np.empty_like(p)
    K = z.shape[1]
    variance, pull = np.empty(K), np.empty(K)
    b, v = spread[()], deviation[()] ** 2
    for i in range(len(z)):
        # How far means, and counts, are from adding up to n.
        total, missing, over = 0.0, n[i], -n[i]
        for k in range(K):
            e = n[i] * max(p[i, k], RARE)
            mean, variance[k] = z[i, k] - (z[i, k] - e) * v / (e + v), e * v / (e + v)
            total += variance[k]
            missing -= mean
            over += mean + np.sqrt(variance[k]) * latent[i, k]
        value[i] = 0.5 * (np.log(n[i]) - missing**2 / total - np.log(total))
        pulled = 0.0
        for k in range(K):
            e = n[i] * max(p[i, k], RARE)
            off = (z[i, k] - e) * v / (e + v) - np.sqrt(variance[k]) * latent[i, k] + variance[k] * over / total
            value[i] += 0.5 * (off**2 / v - (z[i, k] - e) ** 2 / (e + v) - np.log1p(e / v)) - abs(off) / b
            pull[k] = np.sign(off) / b - off / v
            pulled += pull[k] * variance[k] / total
        for k in range(K):
            share, root, along, short = max(p[i, k], RARE), np.sqrt(variance[k]), pull[k] - pulled, missing / total
            e, drift = n[i] * share, 1 + z[i, k] / v
            by_variance = along * (drift + 0.5 * latent[i, k] / root - over / total) + short * drift + 0.5 * short**2 - 0.5 / total
            far = (z[i, k] - e) / (e + v)
            by_p[i, k] = n[i] * (by_variance * (v / (e + v)) ** 2 + far + 0.5 * far**2 - 0.5 / (e + v)) if p[i, k] >= RARE else 0.0
            by_latent[i, k] = root * along
    return value, by_p, by_latent


def latent_sums(z, n, mean, covariance, latent, basis, spread, deviation):
    """Three and more sums z (B, K) under Laplace noise, of n records: the exact sums of R statistics are latent (docs/theory.md).

    The statistics of a record have mean (B, R) and covariance (B, R (R + 1) / 2), its lower triangle row by row. What was summed are the
    combinations basis (K, 1 + R) of the count and these sums. Given the parameters the sums are normal, and were the noise normal, they
    would be so given the released values, too: latent (B, R) is standard normal in that law. Under little noise that is how far the sums
    are from what was released, under much from what the parameters expect.
    """
    value, by_n, by_mean = np.zeros_like(n), np.zeros_like(n), np.zeros_like(mean)
    by_covariance, by_latent = np.empty_like(covariance), np.empty_like(latent)
    K, R, b, sd = z.shape[1], mean.shape[1], spread[()], deviation[()]
    root, posterior, by_root, by_posterior = np.empty((R, R)), np.empty((R, R)), np.empty((R, R)), np.empty((R, R))
    slope, by_slope, residual, by_residual, whole = np.empty((K, R)), np.empty((K, R)), np.empty(K), np.empty(K), np.empty(K)
    pull, e, by_e, by_pull = np.empty(R), np.empty(R), np.empty(R), np.empty(R)
    for i in range(len(z)):
        _slopes(n[i], covariance[i], basis, sd, root, slope)
        for k in range(K):
            whole[k] = basis[k, 0]
            for r in range(R):
                whole[k] += basis[k, r + 1] * mean[i, r]
            residual[k] = z[i, k] - n[i] * whole[k]
        _posterior_of_sums(slope, residual, sd, posterior, pull)
        for r in range(R):
            e[r] = pull[r] + latent[i, r]
        _solve_upper(posterior, e)
        for r in range(R - 1, -1, -1):
            value[i] += 0.5 * latent[i, r] ** 2 - 0.5 * e[r] ** 2 - np.log(posterior[r, r])
            by_e[r] = -e[r]
        for k in range(K):
            off = residual[k]
            for r in range(R):
                off -= sd * slope[k, r] * e[r]
            value[i] -= abs(off) / b
            by_residual[k] = -np.sign(off) / b
            for r in range(R):
                by_slope[k, r] = -sd * by_residual[k] * e[r]
                by_e[r] -= sd * slope[k, r] * by_residual[k]
        # Backward through the steps: of the sums, of the released values' pull, of both roots.
        _solve_lower(posterior, by_e)
        for r in range(R):
            by_latent[i, r], by_pull[r] = latent[i, r] + by_e[r], by_e[r]
        _solve_upper(posterior, by_pull)
        for r in range(R):
            for c in range(r + 1):
                by_posterior[r, c] = -e[r] * by_e[c] - by_pull[r] * pull[c] - (1 / posterior[r, r] if r == c else 0.0)
        _lower_root_back(posterior, by_posterior)
        for k in range(K):
            for r in range(R):
                by_slope[k, r] += residual[k] / sd * by_pull[r]
                by_residual[k] += slope[k, r] / sd * by_pull[r]
            for r in range(R):
                for c in range(r + 1):
                    by_slope[k, r] += by_posterior[r, c] * slope[k, c]
                    by_slope[k, c] += by_posterior[r, c] * slope[k, r]
        by_n[i] = _slopes_back(n[i], covariance[i], basis, sd, root, by_slope, by_root, by_covariance[i])
        for k in range(K):
            by_n[i] -= whole[k] * by_residual[k]
            for r in range(R):
                by_mean[i, r] -= n[i] * basis[k, r + 1] * by_residual[k]
    return value, by_n, by_mean, by_covariance, by_latent


def _slopes(n, covariance, basis, sd, root, slope):
    """Fills the Cholesky factor (R, R) of the sums' covariance, and slopes (K, R) of what was released on standardised sums.

    Slopes are in units of the noise.
    """
    K, R = slope.shape
    place = 0
    for r in range(R):
        for c in range(r + 1):
            root[r, c] = n * covariance[place]
            place += 1
    _lower_root(root)
    for k in range(K):
        for r in range(R):
            slope[k, r] = 0.0
            for a in range(r, R):
                slope[k, r] += basis[k, a + 1] / sd * root[a, r]


def _slopes_back(n, covariance, basis, sd, root, by_slope, by_root, by_covariance):
    """Fills derivatives by the covariance of a record from those by the slopes; returns that by n through it."""
    K, R = by_slope.shape
    for r in range(R):
        for c in range(r + 1):
            by_root[r, c] = 0.0
            for k in range(K):
                by_root[r, c] += basis[k, r + 1] / sd * by_slope[k, c]
    _lower_root_back(root, by_root)
    place, by_n = 0, 0.0
    for r in range(R):
        for c in range(r + 1):
            by_covariance[place] = n * by_root[r, c]
            by_n += covariance[place] * by_root[r, c]
            place += 1
    return by_n


def _posterior_of_sums(slope, residual, sd, posterior, pull):
    """Fills the Cholesky factor (R, R) of the standardised sums' precision given the released values, and that times their mean (R,)."""
    K, R = slope.shape
    for r in range(R):
        pull[r] = 0.0
        for k in range(K):
            pull[r] += slope[k, r] * residual[k] / sd
        for c in range(r + 1):
            posterior[r, c] = 1.0 if r == c else 0.0
            for k in range(K):
                posterior[r, c] += slope[k, r] * slope[k, c]
    _lower_root(posterior)
    _solve_lower(posterior, pull)


def _solve_lower(root, x):
    """Divides x by a lower triangle, in its place."""
    for r in range(len(x)):
        left = x[r]
        for c in range(r):
            left -= root[r, c] * x[c]
        x[r] = left / root[r, r]


def _solve_upper(root, x):
    """Divides x by the transpose of a lower triangle, in its place."""
    for r in range(len(x) - 1, -1, -1):
        left = x[r]
        for a in range(r + 1, len(x)):
            left -= root[a, r] * x[a]
        x[r] = left / root[r, r]


def _lower_root(matrix):
    """Replaces the lower triangle of a matrix by its Cholesky factor.

    Where a sum is determined by those before it, as the count of the last level is by the others, its pivot is rounding. The pivot and its
    column are then 0, as they stay whatever the parameters are.
    """
    for r in range(len(matrix)):
        rounding = ROUNDING * matrix[r, r]
        for c in range(r + 1):
            for m in range(c):
                matrix[r, c] -= matrix[r, m] * matrix[c, m]
            if r == c:
                matrix[r, r] = np.sqrt(matrix[r, r]) if matrix[r, r] > rounding else 0.0
            else:
                matrix[r, c] = matrix[r, c] / matrix[c, c] if matrix[c, c] > 0 else 0.0


def _lower_root_back(root, slope):
    """Replaces derivatives by a Cholesky factor by those by the lower triangle of its matrix (Murray, 2016)."""
    for r in range(len(root) - 1, -1, -1):
        for c in range(r, -1, -1):
            if root[c, c] == 0:
                slope[r, c] = 0.0
                continue
            slope[r, c] /= root[c, c]
            if r == c:
                slope[r, c] /= 2
            else:
                slope[c, c] -= slope[r, c] * root[r, c]
            for m in range(c):
                slope[r, m] -= slope[r, c] * root[c, m]
                slope[c, m] -= slope[r, c] * root[r, m]


def correlated_counts(z, n, p, covariance):
    """Multinomial counts by the central limit plus correlated normal noise, z and p (B, K), its covariance (B, K K).

    Counts and noise both add up to what is known, so that the ones are added to the covariance: what that adds to the log-density is
    constant. Its derivative by p_k is n u_k (1 + u_k / 2 - p.u) - n (S_kk / 2 - (S p)_k), u = S (z - n p), S the inverse.
    """
    value, by_p = np.empty_like(n), np.empty_like(p)
    K = z.shape[1]
    factor, inverse = np.zeros((K, K)), np.zeros((K, K))
    for i in range(len(z)):
        for a in range(K):
            for b in range(a + 1):
                entry = covariance[i, a * K + b] + n[i] / K - n[i] * p[i, a] * p[i, b]
                if a == b:
                    entry += n[i] * p[i, a]
                for m in range(b):
                    entry -= factor[a, m] * factor[b, m]
                factor[a, b] = np.sqrt(max(entry, RARE)) if a == b else entry / factor[b, b]
        # The inverse of the factor, whose products are the inverse of the whole.
        for b in range(K):
            for a in range(b, K):
                entry = 1.0 if a == b else 0.0
                for m in range(b, a):
                    entry -= factor[a, m] * inverse[m, b]
                inverse[a, b] = entry / factor[a, a]
        value[i] = -0.5 * K * np.log(2 * np.pi)
        pulled, along = np.zeros(K), 0.0
        for a in range(K):
            standard = 0.0
            for m in range(a + 1):
                standard += inverse[a, m] * (z[i, m] - n[i] * p[i, m])
            value[i] -= 0.5 * standard**2 + np.log(factor[a, a])
            for m in range(a + 1):
                pulled[m] += inverse[a, m] * standard
        for k in range(K):
            along += p[i, k] * pulled[k]
        for k in range(K):
            diagonal = with_p = 0.0
            for m in range(K):
                whole = 0.0
                for a in range(max(k, m), K):
                    whole += inverse[a, k] * inverse[a, m]
                with_p += whole * p[i, m]
                if m == k:
                    diagonal = whole
            by_p[i, k] = n[i] * (pulled[k] * (1 + 0.5 * pulled[k] - along) - 0.5 * diagonal + with_p)
    return value, by_p


PARTS = (_slopes, _slopes_back, _posterior_of_sums, _solve_lower, _solve_upper, _lower_root, _lower_root_back)
"""What the loops call."""
