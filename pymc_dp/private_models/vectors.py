"""The law of noisy second moments of normal vectors.

A record is a vector y (q entries) of MvNormal(mu, Sigma), each entry clamped to its bounds and scaled to u in [-1, 1]. Released are the
sums of u and, unless Sigma is known, of u u'. They are taken as normal, by the central limit. Their means and variances are exact for
clamped values; so is the covariance of two entries, but for the fourth term of its series in their correlation (Mehler's); that of two
products is the one of normal vectors with the same first two moments (Isserlis). With nothing clamped all of these are exact.
"""

from math import factorial, pi, sqrt

import numpy as np
import pytensor.tensor as pt

from pymc_dp.families.second_moments import Regression
from pymc_dp.laws.kernel import Kernel, Tensor, by_cell
from pymc_dp.laws.law import Joint
from pymc_dp.laws.sums import clamped_moments

FAR = 40.0
"""Standard deviations beyond which a bound is not told from one further off."""


def vectors(regression: Regression, n: Tensor, phi: Tensor, covariance: Tensor) -> Joint:
    """The law of the released sums of n vectors.

    Parameters
    ----------
    n : (G, *C) or broadcast
    phi : (G, *C, q, 1)
        Means, in the user's units.
    covariance : (G, *C, q, q)
    """
    q = regression.q
    centre, half = (np.array(ends[1:]) for ends in regression.centres())
    mu = (phi[..., 0] - centre) / half
    scaled = covariance / np.outer(half, half)
    sd = pt.sqrt(pt.diagonal(scaled, axis1=-2, axis2=-1))
    mean, _, variance, *_ = by_cell(Kernel(clamped_moments, (0, 1), 5), mu.type.shape, (mu, sd))
    # Covariance of two clamped entries: sum over k of r^k / k! times both k-th coefficients.
    r = scaled / (sd[..., :, None] * sd[..., None, :])
    between, power = pt.zeros_like(r), r
    for k, coefficient in enumerate(_series(mu, sd), 1):
        between = between + power / factorial(k) * coefficient[..., :, None] * coefficient[..., None, :]
        power = power * r
    between = pt.switch(np.eye(q, dtype=bool), variance[..., :, None], between)
    # Entries are numbered after the first feature, which is 1: a sum of u alone is its product with that, which has no deviation.
    pairs = np.array([pair for pair in regression.entries if pair != (0, 0)])
    mean = pt.concatenate([pt.ones_like(mean[..., :1]), mean], axis=-1)
    between = pt.zeros((*between.type.shape[:-2], q + 1, q + 1))[..., 1:, 1:].set(between)
    return Joint(n, *_products(mean, between, *pairs.T), counted=regression.counted)


def _products(mean: Tensor, between: Tensor, i: np.ndarray, j: np.ndarray) -> tuple[Tensor, Tensor]:
    """Mean (..., R) and covariance (..., R, R) of products y_i y_j of entries of a normal vector (Isserlis 1918)."""
    m_i, m_j = mean[..., i], mean[..., j]
    ii, ij, ji, jj = (between[..., a[:, None], b[None, :]] for a in (i, j) for b in (i, j))

    def along(first: Tensor, second: Tensor) -> Tensor:
        return first[..., :, None] * second[..., None, :]

    deviations = ii * jj + ij * ji
    about = along(m_i, m_i) * jj + along(m_i, m_j) * ji + along(m_j, m_i) * ij + along(m_j, m_j) * ii
    return m_i * m_j + between[..., i, j], deviations + about


def _series(mu: Tensor, sd: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The first three coefficients of clip(mu + sd z, -1, 1), z standard normal, in Hermite polynomials."""
    low, high = (pt.clip((end - mu) / sd, -FAR, FAR) for end in (-1.0, 1.0))
    inside = 0.5 * (pt.erf(high / sqrt(2)) - pt.erf(low / sqrt(2)))
    below, above = (pt.exp(-0.5 * end**2) / sqrt(2 * pi) for end in (low, high))
    return sd * inside, sd * (below - above), sd * (low * below - high * above)
