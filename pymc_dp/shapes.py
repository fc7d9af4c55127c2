"""Shapes of features beyond their mean and variance, for the sums of a response with a link. Regression stands before, wishart after.

Where a link bends, the mean of sum D w rests on more than second moments. Every feature in turn is taken for a beta variable on its
bounds, whose density is tilted: times exp(a x + b x² - h log(1 + x²) + k arctan x), x being standardized, with a and b such that mean and
variance stay. So it can have tails, humps and a longer side; h and k are unknown, and the means of cos(2 pi u) and sin(2 pi u), which
are released, tell of them. All laws are weights on nodes.
"""

from math import sqrt

import numpy as np

TAILS, HUMPS, LONG, QUICK = 4.0, 40.0, 6.0, 1.5
"""h lies between -HUMPS and TAILS, k between -LONG and LONG: logistic and tanh of standard normal variables, 0 at 0.

At -1 a normal feature has two humps, at 1 it has the tails of a t variable with some 4 degrees of freedom; k = 4 makes of a normal
feature what counts of 2 in the mean are.
"""
BEYOND = 0.15
"""By how much of z a slope may see another tilt than the waves do: laws that share them, mean and variance are not all alike.

Of uniform, normal, t, exponential, log-normal, gamma, count and two-humped features a logistic slope of 1 to 3 standard deviations
is off by no more than twice what that does to it (``tests/test_shapes.py``).
"""
LOOSE = 1e-4
"""By how much of a wave's mean a feature may differ from every tilted law: where noise is less, as of millions of records, no tilt has to
fit to its last digit, and the other moments need not bend to it."""
TIGHT = 1e-9
"""The largest part of a variance that is taken for rounding."""


def tilt(u, share, mean, variance, humped, skewed, tilted):
    """Fills the tilted weights of nodes; gives a and b.

    They minimise log sum share exp(a (x - E x) + b (x² - E x²) + ...), by Levenberg's and Newton's method.

    Parameters
    ----------
    u, share : (Q,) ndarrays
        Nodes and weights of a law with this mean and variance.
    humped, skewed : float
        How far the law is tilted, as standard normal variables.
    tilted : (Q,) ndarray
        Is filled.

    Returns
    -------
    a, b : float
    """
    Q, root, first, second = len(u), sqrt(variance), 0.0, 0.0
    h, k, _, _ = amounts(humped, skewed)
    x, bend, power = np.empty(Q), np.empty(Q), np.empty(Q)
    for q in range(Q):
        x[q] = (u[q] - mean) / root
        first += share[q] * x[q]
        second += share[q] * x[q] ** 2
        bend[q] = k * np.arctan(x[q]) - h * np.log1p(x[q] ** 2)
    a, b, da, db, value, damping = -k / 2, h / 2, 0.0, 0.0, np.inf, 0.0
    off = other = high = low = covariance = 0.0
    for _ in range(100):
        top, mass = -np.inf, 0.0
        for q in range(Q):
            power[q] = bend[q] + (a - da) * (x[q] - first) + (b - db) * (x[q] ** 2 - second)
            if share[q] > 0:
                top = max(top, power[q])
        for q in range(Q):
            power[q] = share[q] * np.exp(min(power[q] - top, 0.0))
            mass += power[q]
        there = top + np.log(mass)
        if there <= value + 1e-12 * (1 + abs(value)):
            a, b, value, damping = a - da, b - db, there, damping / 10
            for q in range(Q):
                tilted[q] = power[q] / mass
            one, two, covariance, high, low = spreads(x, tilted)
            off, other = one - first, two - second
            if off**2 + other**2 < 1e-26:
                break
        else:
            damping = max(10 * damping, 1e-3 * (high + low))
        stiff, loose = high + damping + 1e-14, low + damping + 1e-14
        left = max(stiff * loose - covariance**2, TIGHT * stiff * loose)
        da, db = (loose * off - covariance * other) / left, (stiff * other - covariance * off) / left
    return a, b


def amounts(humped, skewed):
    """The numbers h and k that standard normal variables stand for, and the derivative of each."""
    part = 1 / (1 + TAILS / HUMPS * np.exp(-QUICK * humped))
    along = np.tanh(skewed / 2)
    return (
        (TAILS + HUMPS) * part - HUMPS,
        LONG * along,
        (TAILS + HUMPS) * QUICK * part * (1 - part),
        LONG / 2 * (1 - along**2),
    )


def spreads(x, share):
    """Means of x and of x², their covariance, and the variances of x and of x²: in this order."""
    one = two = high = low = covariance = 0.0
    for q in range(len(x)):
        one += share[q] * x[q]
        two += share[q] * x[q] ** 2
    for q in range(len(x)):
        away, far = x[q] - one, x[q] ** 2 - two
        high += share[q] * away**2
        covariance += share[q] * away * far
        low += share[q] * far**2
    return one, two, covariance, high, low


def solved(high, covariance, low, one, other):
    """The inverse of the covariance matrix of x and x² times (one, other), without x² where x tells it, being on two values."""
    high += 1e-14
    slope = covariance / high
    left = low - slope * covariance
    second = (other - slope * one) / left if left > TIGHT * low + 1e-14 else 0.0
    return (one - covariance * second) / high, second


def tilt_back(u, share, mean, variance, humped, skewed, tilted, a, b, by_tilted, by_u, by_power):
    """Adds to the derivatives by the nodes, and fills those by the logarithms of their weights; gives those by the other arguments.

    The derivative of a and b follows from what they keep: C (da, db)' = -(what else moves the means of x and x²).

    Parameters
    ----------
    a, b : float
        As ``tilt`` gave them.
    by_tilted : (Q,) ndarray
        Derivatives by the tilted weights.

    Returns
    -------
    by_mean, by_variance, by_humped, by_skewed : float
    """
    Q, root = len(u), sqrt(variance)
    h, k, by_humped, by_skewed = amounts(humped, skewed)
    x = np.empty(Q)
    for q in range(Q):
        x[q] = (u[q] - mean) / root
    one, two, covariance, high, low = spreads(x, tilted)
    typical = with_x = with_square = 0.0
    for q in range(Q):
        typical += tilted[q] * by_tilted[q]
    for q in range(Q):
        along = tilted[q] * (by_tilted[q] - typical)
        with_x += along * x[q]
        with_square += along * x[q] ** 2
    c, d = solved(high, covariance, low, with_x, with_square)
    mean_share = 0.0
    for q in range(Q):
        mean_share += share[q] * (c * x[q] + d * x[q] ** 2)
    by_mean = by_variance = by_h = by_k = 0.0
    for q in range(Q):
        along = tilted[q] * (by_tilted[q] - typical - c * (x[q] - one) - d * (x[q] ** 2 - two))
        by_power[q] = along + share[q] * (c * x[q] + d * x[q] ** 2 - mean_share)
        by_h -= along * np.log1p(x[q] ** 2)
        by_k += along * np.arctan(x[q])
        by_x = along * (a + 2 * b * x[q] + (k - 2 * h * x[q]) / (1 + x[q] ** 2)) - (tilted[q] - share[q]) * (c + 2 * d * x[q])
        by_u[q] += by_x / root
        by_mean -= by_x / root
        by_variance -= by_x * x[q] / (2 * variance)
    return by_mean, by_variance, by_h * by_humped, by_k * by_skewed


def waves_of(nodes: np.ndarray, share: np.ndarray, humped: np.ndarray, skewed: np.ndarray) -> np.ndarray:
    """Means of cos(2 pi u) and sin(2 pi u) (M, 2), of M laws on nodes (M, Q), tilted: as the loops do it, to six digits."""
    mean = (share * nodes).sum(axis=1, keepdims=True)
    x = (nodes - mean) / np.sqrt((share * (nodes - mean) ** 2).sum(axis=1, keepdims=True))
    h, k, _, _ = amounts(humped[:, None], skewed[:, None])
    bend, both = k * np.arctan(x) - h * np.log1p(x**2), np.stack([x, x**2], axis=2)
    both = both - (share[:, :, None] * both).sum(axis=1, keepdims=True)
    at, step = np.concatenate([-k / 2, h / 2], axis=1), np.zeros((len(x), 2))
    value, damping, tilted = np.full(len(x), np.inf), np.zeros(len(x)), share
    for _ in range(60):
        power = bend + (both * (at - step)[:, None]).sum(axis=2)
        top = power.max(axis=1, keepdims=True)
        there = share * np.exp(power - top)
        mass = there.sum(axis=1, keepdims=True)
        new = (top + np.log(mass))[:, 0]
        better = new <= value + 1e-12 * (1 + np.abs(value))
        at, value = np.where(better[:, None], at - step, at), np.where(better, new, value)
        tilted = np.where(better[:, None], there / mass, tilted)
        off = (tilted[:, :, None] * both).sum(axis=1)
        if (np.abs(off) < 1e-9).all():
            break
        away = both - off[:, None]
        covariance = np.einsum("mq,mqi,mqj->mij", tilted, away, away)
        size = np.einsum("mii->m", covariance)
        damping = np.where(better, damping / 10, np.maximum(10 * damping, 1e-3 * size))
        step = np.linalg.solve(covariance + (damping + TIGHT * size + 1e-14)[:, None, None] * np.eye(2), off[..., None])[..., 0]
    return np.stack([(tilted * wave(2 * np.pi * nodes)).sum(axis=1) for wave in (np.cos, np.sin)], axis=1)
