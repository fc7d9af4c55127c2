"""The expected scores at coefficients that are a step away from the anchor, computed from the weighted means and covariances of the
features.

Everything here is arithmetic on what is public. Shapes: B cells, F features. A function of steps (B, F) is returned, which gives what
scores are expected to be, (B, F), per unit of weight.
"""

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np

from pymc_dp.families.scores import FARTHEST, Scores

type Expected = Callable[[np.ndarray], np.ndarray]

CONCENTRATION = 1e-3, 200.0
"""How much nearer than -1 and 1, and to its mean, a beta variable lies: the sum of its parameters."""
TWO_VALUED = 0.5
"""From which variance on a feature is taken to have two values, as a share of the largest that its mean allows.

It is 1 for a binary feature whose bounds are its values, 1/3 for a uniform one.
"""
BETA_POINTS = 7
"""Points of a single feature."""
LEAST_SIZE = 0.02
"""The least sum of parameters of a beta variable whose points can be computed."""
MOST_POINTS = 3
"""How many of several features at most are taken to have two values while a posterior is sampled."""
MOST = 8
"""How many features at most are taken to have two values in a cell, those of the largest variance: all combinations are reckoned with."""


def expected_scores(scores: Scores, anchor: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> Expected:
    """The function of steps (B, F) from the anchor (B, F) that gives the scores (B, F) to be expected, per unit of weight.

    Parameters
    ----------
    mean, covariance : (B, F - 1) and (B, F - 1, F - 1) ndarrays
        Means and covariances of the features, by weight.
    """
    if scores.link == "log":
        return partial(_by_beta_variables, mean=mean, covariance=covariance)
    if anchor[..., 1:].any():
        root = np.linalg.cholesky(covariance)
        points, rest = points_of_features(mean, root)
        return partial(_by_points, anchor=anchor, mean=mean, root=root, points=points, rest=rest)
    return partial(_by_two_values, anchor=anchor, mean=mean, covariance=covariance, levels=_levels(mean, covariance))


def undetermined(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """What features with two values leave of the covariances (B, F - 1, F - 1) of all."""
    return _levels(mean, covariance)[2]


def points_of_features(mean: np.ndarray, root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What standardised features are taken to be: points, and what these leave, which is normal.

    A single feature is a beta variable between its bounds, of its mean and variance: of two values where it varies as much as it can. Its
    points are those of Gauss and Jacobi. Of several, those with two values make points, and others are normal.

    Parameters
    ----------
    mean, root : (B, F - 1) and (B, F - 1, F - 1) ndarrays
        Means of the features, by weight, and a lower triangular root of their covariances.

    Returns
    -------
    points : (B, P, F) ndarray
        The share of each point, and features there, less their means, times the inverse of the root.
    rest : (B, F - 1, F - 1) ndarray
        A root of the covariances that points leave of features times that inverse.
    """
    if mean.shape[1] == 1:
        points = np.stack([np.column_stack(_beta_points(float(m[0]), float(r[0, 0]))) for m, r in zip(mean, root, strict=True)])
        return points, np.zeros_like(root)
    shares, expected, left = _levels(mean, root @ root.transpose(0, 2, 1), MOST_POINTS)
    inverse = np.linalg.inv(root)
    points = np.zeros((len(mean), 2 ** min(mean.shape[1], MOST_POINTS), mean.shape[1] + 1))
    points[:, : shares.shape[1], 0], points[:, : shares.shape[1], 1:] = shares, expected @ inverse.transpose(0, 2, 1)
    values, vectors = np.linalg.eigh(inverse @ left @ inverse.transpose(0, 2, 1))
    values = np.where(values > 1e-6, values, 0.0)
    return points, vectors * np.sqrt(values)[:, None]


def _beta_points(mean: float, sd: float) -> tuple[np.ndarray, np.ndarray]:
    """Shares and standardised values of a beta variable on [-1, 1] of this mean and standard deviation, whose moments they have."""
    from scipy.special import roots_jacobi

    mean = min(max(mean, -1 + 1e-6), 1 - 1e-6)
    size = float(np.clip((1 - mean**2) / max(sd**2, 1e-12) - 1, LEAST_SIZE, CONCENTRATION[1]))
    nodes, weights = roots_jacobi(BETA_POINTS, (1 - mean) / 2 * size - 1, (1 + mean) / 2 * size - 1)
    shares = weights / weights.sum()
    return shares, (nodes - shares @ nodes) / np.sqrt(shares @ (nodes - shares @ nodes) ** 2)


def _levels(mean: np.ndarray, covariance: np.ndarray, most: int = MOST) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which values features with two values have together, with which probability, and what they leave of the others.

    A feature has the two values of its mean and variance that are the least skewed within -1 and 1. What others are expected to be is
    linear in them. Combinations have the probability of independent features times 1 + the sum of correlation z z' over pairs, z being
    standardised (Bahadur 1961), which keeps the correlations; where that is negative they have none.

    Returns
    -------
    shares : (B, P) ndarray
    expected : (B, P, F - 1) ndarray
        All features, less their means.
    left : (B, F - 1, F - 1) ndarray
    """
    mean = np.clip(mean, -1 + 1e-6, 1 - 1e-6)
    whole = 1 - mean**2
    variance = np.einsum("bii->bi", covariance)
    rank = np.argsort(np.argsort(-variance, axis=1, kind="stable"), axis=1)
    two = (variance > TWO_VALUED * whole) & (rank < most)
    many = 2 ** int(two.sum(axis=1).max(initial=0))
    shares, expected, left = np.zeros((len(mean), many)), np.zeros((len(mean), many, mean.shape[1])), covariance.copy()
    for b, chosen in enumerate(two):
        places = np.flatnonzero(chosen)
        signs = np.array(list(product((0, 1), repeat=len(places))), dtype=float).reshape(2 ** len(places), len(places))
        sd, of_mean = np.sqrt(np.minimum(variance[b], whole[b]))[places], mean[b, places]
        least, most = 1 / (1 + ((1 - of_mean) / sd) ** 2), 1 / (1 + (sd / (1 + of_mean)) ** 2)
        upper = np.clip(0.5, least, np.maximum(least, most))
        z = np.where(signs > 0, np.sqrt((1 - upper) / upper), -np.sqrt(upper / (1 - upper)))
        between = covariance[b][np.ix_(places, places)]
        alike = between / np.sqrt(np.outer(variance[b, places], variance[b, places])) - np.eye(len(places))
        share = np.where(signs > 0, upper, 1 - upper).prod(axis=1)
        share = np.maximum(share * (1 + np.einsum("pi,ij,pj->p", z, alike, z) / 2), 0.0)
        share /= share.sum()
        onto = np.linalg.solve(between + 1e-9 * np.eye(len(places)), covariance[b][places])
        rows = z * sd @ onto
        rows -= share @ rows
        shares[b, : len(share)], expected[b, : len(share)] = share, rows
        values, vectors = np.linalg.eigh(covariance[b] - (rows * share[:, None]).T @ rows)
        left[b] = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return shares, expected, left


def _by_two_values(
    step: np.ndarray, anchor: np.ndarray, mean: np.ndarray, covariance: np.ndarray, levels: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> np.ndarray:
    """With a logit link, from an anchor without slopes: features whose variance is large have two values, what they leave of a step, too.

    Means move by weight (1 - exp(-t)) g(e + t) / g(e) where a step t is made from a predictor e, which is that of all records. A step of
    two values has the least scores of all with its variance, so that a steep slope is found too small rather than too large.
    """
    shares, expected, left = levels
    e = (anchor[:, 0] + (mean * anchor[:, 1:]).sum(axis=1))[:, None]
    along = np.einsum("bij,bj->bi", left, step[:, 1:])
    r = np.sqrt(np.maximum((along * step[:, 1:]).sum(axis=1), 1e-12))
    t = (step[:, 0] + (mean * step[:, 1:]).sum(axis=1))[:, None] + np.einsum("bpf,bf->bp", expected, step[:, 1:])
    above, below = _moved(e, t + r[:, None]), _moved(e, t - r[:, None])
    middle = shares * (above + below) / 2
    level, by_rest = middle.sum(axis=1), (shares * (above - below) / 2).sum(axis=1)
    slopes = np.einsum("bpf,bp->bf", expected, middle) + along * (by_rest / r)[:, None]
    return np.concatenate([level[:, None], mean * level[:, None] + slopes], axis=1)


def _moved(e: np.ndarray, t: np.ndarray) -> np.ndarray:
    """By what means move, per unit of weight, a step t from a predictor e."""
    from scipy.special import expit

    e, t = np.clip(e, -FARTHEST, FARTHEST), np.clip(t, -FARTHEST, FARTHEST)
    return -np.expm1(-t) * expit(e + t) / expit(e)


def _by_points(
    step: np.ndarray, anchor: np.ndarray, mean: np.ndarray, root: np.ndarray, points: np.ndarray, rest: np.ndarray
) -> np.ndarray:
    """With a logit link, from an anchor with slopes: features are points, and what these leave is normal (``points_of_features``).

    What they leave of the predictor and of the step is integrated on 5 x 5 nodes of Gauss and Hermite.
    """
    nodes = 5
    z, weights = np.polynomial.hermite_e.hermegauss(nodes)
    weights = np.outer(weights, weights).ravel() / weights.sum() ** 2
    first, second = np.repeat(z, nodes), np.tile(z, nodes)
    middle, moved = (part[:, 0] + (mean * part[:, 1:]).sum(axis=1) for part in (anchor, step))
    of_anchor, of_step = (np.einsum("bij,bi->bj", root, part[:, 1:]) for part in (anchor, step))
    e, t = (at[:, None] + np.einsum("bpj,bj->bp", points[..., 1:], of) for at, of in ((middle, of_anchor), (moved, of_step)))
    of_anchor, of_step = (np.einsum("bij,bi->bj", rest, part) for part in (of_anchor, of_step))
    s = np.sqrt(np.maximum((of_anchor**2).sum(axis=1), 1e-12))
    along = of_anchor / s[:, None]
    onto = (along * of_step).sum(axis=1)
    left = of_step - onto[:, None] * along
    r = np.sqrt(np.maximum((left**2).sum(axis=1), 1e-12))
    h = _moved(e[..., None] + s[:, None, None] * first, t[..., None] + onto[:, None, None] * first + r[:, None, None] * second)
    h = h * points[..., :1]
    level, by_first, by_second = h @ weights, (h @ (weights * first)).sum(axis=1), (h @ (weights * second)).sum(axis=1)
    by_rest = along * by_first[:, None] + left * (by_second / r)[:, None]
    slopes = np.einsum("bpj,bp->bj", points[..., 1:], level) + np.einsum("bij,bj->bi", rest, by_rest)
    level = level.sum(axis=1)[:, None]
    return np.concatenate([level, mean * level + np.einsum("bij,bj->bi", root, slopes)], axis=1)


def _by_beta_variables(step: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Scores (B, F) to be expected with a log link, per unit of weight: means are exp(predictor), so a step t tilts the weights by exp(t).

    Features are taken for beta variables between their bounds, of the same mean and variance, whose correlations are those of normal
    variables: the cumulant generating function is the sum of those of beta variables, and half t' (other covariances) t. It does not
    rest on the anchor.
    """
    from scipy.special import hyp1f1

    t = np.clip(step[:, 1:], -FARTHEST, FARTHEST)
    below = np.clip((1 + mean) / 2, 1e-6, 1 - 1e-6)
    whole = 4 * below * (1 - below)  # the variance of a feature that is -1 or 1
    variance = np.einsum("bii->bi", covariance)
    size = np.clip(whole / variance - 1, *CONCENTRATION)
    a, b = below * size, (1 - below) * size
    generating = hyp1f1(a, a + b, 2 * t)
    tilted = 2 * below * hyp1f1(a + 1, a + b + 1, 2 * t) / generating - 1
    others = covariance.copy()
    others[:, range(t.shape[1]), range(t.shape[1])] = np.minimum(variance, whole) - whole / (size + 1)
    along = (others @ t[..., None])[..., 0]
    grown = np.exp(np.clip(step[:, 0] + (np.log(generating) - t + along * t / 2).sum(axis=1), -FARTHEST, FARTHEST))[:, None]
    return np.concatenate([grown - 1, grown * (tilted + along) - mean], axis=1)
