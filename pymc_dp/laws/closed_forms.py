"""Log-densities of exact statistics plus noise that have a closed form, as PyTensor graphs (docs/theory.md)."""

from math import exp, log, log1p, pi

import numpy as np
import pytensor.tensor as pt

from pymc_dp.laws.kernel import NEGLIGIBLE, Kernel, Tensor, by_cell
from pymc_dp.laws.sums import normal_plus_laplace
from pymc_dp.privacy.noise_law import Noise

SURE = 1e-15
"""Probabilities and rates are kept so far from 0, and probabilities from 1: incomplete gamma and beta functions have no slope there.

Counts of cells that no record can be in, such as more successes than trials, have a rate of 0.
"""
BY_ENTRIES = 3
"""So many sums under Gaussian noise are written entry by entry, which compiles fast; of more, gradients would be sums of too many terms."""


def normal_plus_noise(z: Tensor, mean: Tensor, variance: Tensor, noise: Noise) -> Tensor:
    """Normal plus Laplace in its stable two-branch form (docs/theory.md), or plus Gaussian."""
    if noise.gaussian:
        whole = variance + noise.standard_deviation**2
        return -0.5 * ((z - mean) ** 2 / whole + pt.log(2 * pi * whole))
    variance = pt.maximum(variance, (1e-9 * noise.spread) ** 2)
    [value] = by_cell(Kernel(normal_plus_laplace, (1, 2)), z.type.shape, (z, mean, variance), noise.spread)
    return value


def normals_plus_gaussian(z: Tensor, mean: list[Tensor], covariance: list[list[Tensor]], noise: Noise) -> Tensor:
    """Correlated normal sums plus Gaussian noise are normal."""
    K, v, batch = len(mean), noise.standard_deviation**2, np.zeros(z.type.shape[:-1])
    if K > BY_ENTRIES:
        rows = [pt.stack([covariance[max(i, j)][min(i, j)] + batch for j in range(K)], axis=-1) for i in range(K)]
        return vector_plus_gaussian(z, pt.stack([m + batch for m in mean], axis=-1), pt.stack(rows, axis=-2), noise)
    full = [[entry + (v if i == j else 0.0) for j, entry in enumerate(row)] for i, row in enumerate(covariance)]
    residual = [z[..., i] - m for i, m in enumerate(mean)]
    return _log_normal(residual, cholesky(full)) - 0.5 * K * log(2 * pi)


def vector_plus_gaussian(z: Tensor, mean: Tensor, covariance: Tensor, noise: Noise) -> Tensor:
    """Log-density (...) of sums that are normal with this mean (..., K) and covariance (..., K, K), plus Gaussian noise on each."""
    K = z.type.shape[-1]
    factor = pt.linalg.cholesky(covariance + noise.standard_deviation**2 * np.eye(K))
    standard = pt.linalg.solve_triangular(factor, z - mean, lower=True, b_ndim=1)
    return -0.5 * ((standard**2).sum(axis=-1) + K * log(2 * pi)) - pt.log(pt.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)


def _log_normal(residual: list[Tensor], factor: list[list[Tensor]]) -> Tensor:
    """Log-density of a normal vector, up to a constant, from its residuals and the Cholesky factor of its covariance."""
    standard: list[Tensor] = []
    total = pt.zeros(())
    for i, row in enumerate(factor):
        entry = (residual[i] - sum((row[j] * standard[j] for j in range(i)), pt.zeros(()))) / row[i]
        standard.append(entry)
        total = total - 0.5 * entry**2 - pt.log(row[i])
    return total


def cholesky(matrix: list[list[Tensor]]) -> list[list[Tensor]]:
    """Cholesky factor of a small matrix given by its lower triangle, entry by entry: elementwise graphs compile fast."""
    factor: list[list[Tensor]] = []
    for i, row in enumerate(matrix):
        entries: list[Tensor] = []
        for j in range(i + 1):
            entry = row[j] - sum((entries[m] * (factor[j] if j < i else entries)[m] for m in range(j)), pt.zeros(()))
            entries.append(entry / factor[j][j] if j < i else pt.sqrt(pt.maximum(entry, 1e-30)))
        factor.append(entries)
    return factor


def counts_plus_gaussian(z: Tensor, n: Tensor, p: Tensor, noise: Noise) -> Tensor:
    """Multinomial by the central limit, plus Gaussian noise: covariance n (diag p - p p') + v (docs/theory.md).

    Its determinant and inverse are closed (Sherman-Morrison); 1 - n sum p^2 / (n p + v) is written without cancellation.
    """
    n = n[..., None] if n.ndim else n
    v = noise.standard_deviation**2
    residual = z - n * p
    diagonal = n * p + v
    slack = (p * v / diagonal).sum(axis=-1)
    quadratic = (residual**2 / diagonal).sum(axis=-1)
    pull = (p * residual / diagonal).sum(axis=-1)
    quadratic = quadratic + (n[..., 0] if n.ndim else n) * pull**2 / slack
    return -0.5 * (quadratic + pt.log(diagonal).sum(axis=-1) + pt.log(slack) + z.type.shape[-1] * log(2 * pi))


def rate_plus_laplace(z: Tensor, rate: Tensor, noise: Noise) -> Tensor:
    """Poisson plus discrete Laplace in closed form: exponentially tilted tails (docs/theory.md)."""
    decay, rate = -noise.log_ratio, pt.maximum(rate, SURE)
    q, inverse = exp(-decay), exp(min(decay, 700.0))
    inside = pt.ge(z, 0)
    s = pt.switch(inside, z, 0.0)
    below = pt.switch(inside, pt.gammaincc(s + 1.0, rate * inverse), 0.0)
    above = pt.switch(inside, pt.gammainc(s + 1.0, rate * q), 1.0)
    lower = -z * decay + rate * (inverse - 1) + _log(below)
    upper = z * decay - rate * (1 - q) + _log(above)
    return _log_of_tails(lower, upper, decay)


def count_plus_laplace(z: Tensor, n: Tensor, p: Tensor, noise: Noise) -> Tensor:
    """Binomial plus discrete Laplace in closed form: exponentially tilted tails (docs/theory.md)."""
    decay, p = -noise.log_ratio, pt.clip(p, SURE, 1 - SURE)
    q, inverse = exp(-decay), exp(min(decay, 700.0))
    heavy = 1 - p + p * inverse
    light = 1 - p + p * q
    below = _binomial_cdf(z, n, p * inverse / heavy)
    above = _binomial_survival(z, n, p * q / light)
    lower = -z * decay + n * pt.log(heavy) + _log(below)
    upper = z * decay + n * pt.log(light) + _log(above)
    return _log_of_tails(lower, upper, decay)


def _log_of_tails(lower: Tensor, upper: Tensor, decay: float) -> Tensor:
    """The logarithm of both tails together, from theirs, times the probability of no Laplace noise."""
    return pt.maximum(lower, upper) + pt.softplus(-pt.abs(lower - upper)) + log(-np.expm1(-decay)) - log1p(exp(-decay))


def _binomial_cdf(z: Tensor, n: Tensor, p: Tensor) -> Tensor:
    inside = pt.and_(pt.ge(z, 0), pt.lt(z, n))
    s = pt.switch(inside, z, 0.0)
    return pt.switch(inside, pt.betainc(pt.maximum(n - s, 1.0), s + 1.0, 1 - p), pt.switch(pt.lt(z, 0), 0.0, 1.0))


def _binomial_survival(z: Tensor, n: Tensor, p: Tensor) -> Tensor:
    inside = pt.and_(pt.ge(z, 0), pt.lt(z, n))
    s = pt.switch(inside, z, 0.0)
    return pt.switch(inside, pt.betainc(s + 1.0, pt.maximum(n - s, 1.0), p), pt.switch(pt.lt(z, 0), 1.0, 0.0))


def _log(probability: Tensor) -> Tensor:
    """Log of a probability that may have underflowed; such a term is negligible beside its partner."""
    positive = pt.gt(probability, 1e-290)
    return pt.switch(positive, pt.log(pt.switch(positive, probability, 1.0)), NEGLIGIBLE)
