"""Noisy second moments used as if they were exact: a linear likelihood whose noise is not part of the model.

Shapes: G cells, C columns, K released sums, F features, q responses.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dp.families.second_moments import Regression
from pymc_dp.laws.kernel import Tensor
from pymc_dp.releases.pooling import Pooled


def project(regression: Regression, noisy: np.ndarray, known: np.ndarray, spread: float) -> np.ndarray:
    """Released sums (..., K) as moments that records could have: the smallest ridge on what is private that makes them so.

    Sums, and the ``known`` part (..., size, size) of the moment matrices, are in units of 1. A ridge keeps the public moments as they
    are. The least variance left is the noise scale of a mean square, below which nothing can be told from 0.
    """
    projected = noisy.copy()
    unknown = np.array([*regression.private, *[True] * regression.q])
    if regression.counted:  # a cell whose count is lost in the noise says nothing
        projected[projected[..., regression.entries.index((0, 0))] < spread] = 0.0
    if regression.scale_known:
        unknown[len(regression.names) :] = False
    diagonal = [k for k, (i, j) in enumerate(regression.entries) if i == j and unknown[i] and i > 0]
    keep = list(range(regression.size if not regression.scale_known else len(regression.names)))
    flat = projected.reshape(-1, projected.shape[-1])
    matrices = regression.matrix(projected, known).reshape(-1, regression.size, regression.size)[:, keep][:, :, keep]
    ridge = np.diag(unknown[keep].astype(float))
    for cell, matrix in enumerate(matrices):
        if not diagonal or not matrix.any():
            continue
        wanted = matrix - ridge * spread

        def possible(extra: float, wanted: np.ndarray = wanted) -> bool:
            used = wanted.any(axis=0)  # a public feature that is 0 in this cell says nothing
            return bool(np.linalg.eigvalsh((wanted + extra * ridge)[used][:, used])[0] >= -1e-9 * max(1.0, np.abs(wanted).max()))

        low, high = 0.0, 1.0
        while not possible(high) and high < 1e18:
            high *= 2
        if possible(0.0):
            continue
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if possible(middle) else (middle, high)
        flat[cell, diagonal] += high
    return flat.reshape(projected.shape)


def log_likelihood(regression: Regression, sums: Tensor, n: Tensor, known: np.ndarray, phi: Tensor, scale: Tensor) -> Tensor:
    """Log-likelihood (G, *C) of records with these moments, up to a constant.

    Parameters
    ----------
    sums : (G, *C, K)
    n : (G, *C) or broadcast
    phi : (G, *C, F), or (G, *C, q, F) where q > 1
        In the user's units.
    scale : (G, *C), or (G, *C, q, q) where q > 1
        Standard deviation, or covariance, in the user's units.
    """
    moments = moments_of(regression, sums, known)
    if regression.counted:
        n = moments[..., 0, 0]
    coefficients, scale = _scaled_parameters(regression, phi, scale)
    F, q = len(regression.names), regression.q
    # Residuals are (-coefficients, 1) times (features, responses).
    rows = [
        pt.stack([*(-c for c in coefficients[k]), *[pt.ones_like(coefficients[k][0]) * float(k == r) for r in range(q)]], axis=-1)
        for k in range(q)
    ]
    assert len(coefficients[0]) == F
    if q == 1:
        (row,) = rows
        return -n * pt.log(scale) - (row[..., :, None] * row[..., None, :] * moments).sum(axis=(-2, -1)) / (2 * scale**2)
    matrix = pt.stack(rows, axis=-2)
    residual = matrix @ moments @ pt.swapaxes(matrix, -1, -2)
    precision = pt.linalg.inv(scale)
    return -0.5 * n * pt.linalg.slogdet(scale)[1] - 0.5 * (precision * residual).sum(axis=(-2, -1))


def project_pooled(released: Pooled, n: np.ndarray, spread: float) -> np.ndarray:
    """Sums by cell and second moments over all cells (K,), as ``project`` would have them: what varies within cells is possible."""
    m = len(released.totals) - 1
    within = np.zeros((m + 1, m + 1))
    places = np.triu_indices(m + 1)
    within[places] = released.moments
    within = within + np.triu(within, 1).T - (released.cells / n[:, None]).T @ released.cells
    ridge = max(spread - float(np.linalg.eigvalsh(within)[0]), 0.0)
    moments = released.moments + ridge * (places[0] == places[1])
    return np.concatenate([released.cells.ravel(), released.totals, moments])


def log_likelihood_pooled(regression: Regression, value: Tensor, n: np.ndarray, phi: Tensor, scale: Tensor) -> Tensor:
    """Log-likelihood of records with these sums by cell and second moments over all cells (K,), up to a constant.

    Parameters
    ----------
    phi : (G, F)
        In the user's units; all but the first column are alike in all cells.
    scale : (G,)
        Alike in all cells.
    """
    [(first, *slopes)], scale = _scaled_parameters(regression, phi, scale)
    G, F = len(n), len(regression.names)
    by_cell, moments = value[: G * F].reshape((G, F)), value[(G + 1) * F :]
    residual = [*(-slope[0] for slope in slopes), 1.0]
    pairs = zip(*np.triu_indices(F), strict=True)
    squares = sum((2.0 - (i == j)) * residual[i] * residual[j] * moments[k] for k, (i, j) in enumerate(pairs))
    sums = sum(residual[f] * by_cell[:, f] for f in range(F))
    squares = squares + (n * first**2 - 2 * first * sums).sum()
    return -float(n.sum()) * pt.log(scale[0]) - squares / (2 * scale[0] ** 2)


def simulated_pooled(regression: Regression, observed: np.ndarray, n: np.ndarray, phi: Tensor, scale: Tensor) -> Tensor:
    """A predictive draw of these numbers (K,), given those of the features: means, with a normal error of the responses."""
    [(first, *slopes)], scale = _scaled_parameters(regression, phi, scale)
    G, F, s = len(n), len(regression.names), scale[0]
    m, pairs = F - 1, [(i, j) for i in range(F) for j in range(i, F)]
    by_cell, moments = observed[: G * F].reshape(G, F), dict(zip(pairs, observed[(G + 1) * F :], strict=True))
    of_features = [[moments[min(i, j), max(i, j)] for j in range(m)] for i in range(m)]
    response = n * first + sum(slopes[f] * by_cell[:, f] for f in range(m)) + s * np.sqrt(n) * pm.Normal.dist(shape=(G,))
    drawn = []
    for i, j in moments:
        if j < m:
            drawn.append(pt.constant(of_features[i][j]))
        elif i < m:
            mean = (first * by_cell[:, i]).sum() + sum(slopes[f][0] * of_features[i][f] for f in range(m))
            drawn.append(mean + s * np.sqrt(max(of_features[i][i], 0.0)) * pm.Normal.dist())
        else:
            with_slopes = sum(slopes[f][0] * slopes[k][0] * of_features[f][k] for f in range(m) for k in range(m))
            with_intercept = 2 * sum(slopes[f][0] * (first * by_cell[:, f]).sum() for f in range(m))
            drawn.append((n * first**2).sum() + with_intercept + with_slopes + s**2 * pm.ChiSquared.dist(float(n.sum())))
    cells = pt.concatenate([pt.constant(by_cell[:, :m]), response[:, None]], axis=1)
    return pt.concatenate([cells.ravel(), cells.sum(axis=0), pt.stack(drawn)])


def moments_of(regression: Regression, sums: Tensor, known: np.ndarray) -> Tensor:
    """Moment matrices (G, *C, size, size) from released sums, 0 where nothing is needed."""
    places = np.full((regression.size, regression.size), len(regression.entries))
    for k, (i, j) in enumerate(regression.entries):
        places[i, j] = places[j, i] = k
    padded = pt.concatenate([sums, pt.zeros_like(sums[..., :1])], axis=-1)
    return padded[..., places] + pt.constant(known)


def simulated(regression: Regression, sums: np.ndarray, n: np.ndarray, known: np.ndarray, phi: Tensor, scale: Tensor) -> Tensor:
    """A predictive draw (G, *C, K) of the sums given those of the features: means, with a normal error of the responses."""
    places, released = {pair: k for k, pair in enumerate(regression.entries)}, pt.constant(sums)

    def entry(i: int, j: int) -> Tensor:
        return released[..., places[i, j]] if (i, j) in places else pt.constant(known[..., i, j])

    coefficients, scale = _scaled_parameters(regression, phi, scale)
    F, q = len(regression.names), regression.q
    parts = []
    for i, j in regression.entries:
        if j < F:
            parts.append(entry(i, j))
        elif i < F:
            mean = sum((coefficients[j - F][f] * entry(min(i, f), max(i, f)) for f in range(F)), pt.zeros(()))
            sd = scale if q == 1 else pt.sqrt(scale[..., j - F, j - F])
            parts.append(mean + sd * pt.sqrt(pt.maximum(entry(i, i), 0.0)) * pm.Normal.dist(shape=sums.shape[:-1]))
        else:
            a, b = coefficients[i - F], coefficients[j - F]
            mean = sum((a[f] * b[g] * entry(min(f, g), max(f, g)) for f in range(F) for g in range(F)), pt.zeros(()))
            noise = scale**2 if q == 1 else scale[..., i - F, j - F]
            parts.append(mean + (entry(0, 0) if regression.counted else n) * noise)
    full = pt.zeros(sums.shape[:-1])
    return pt.stack([part + full for part in parts], axis=-1)


def _scaled_parameters(regression: Regression, phi: Tensor, scale: Tensor) -> tuple[list[list[Tensor]], Tensor]:
    """Coefficients and scale in units of u: y = centre + half u, and the same for every feature; scores have units of their own."""
    F, q = len(regression.names), regression.q
    if regression.link:
        return [_scaled_coefficients(regression, phi)], scale
    centre, half = regression.centres()
    rows = [phi] if q == 1 else [phi[..., k, :] for k in range(q)]
    result = []
    for k, row in enumerate(rows):
        cy, hy = centre[F + k], half[F + k]
        first, *others = _scaled_coefficients(regression, row)
        result.append([(first - cy) / hy, *(c / hy for c in others)])
    if q == 1:
        return result, scale / half[F]
    h = np.array(half[F:])
    return result, scale / np.outer(h, h)


def _scaled_coefficients(regression: Regression, phi: Tensor) -> list[Tensor]:
    """Coefficients of what is released of the features, scaled, from those (..., F) of the features themselves."""
    onto = regression.onto_scaled()
    return [sum((phi[..., f] * onto[f, k] for f in np.flatnonzero(onto[:, k])), pt.zeros(())) for k in range(len(onto))]


def in_users_units(regression: Regression, coefficients: np.ndarray) -> np.ndarray:
    """Coefficients (..., F) of the features, from those of scaled ones: the inverse of ``_scaled_coefficients``."""
    return coefficients @ np.linalg.inv(regression.onto_scaled())
