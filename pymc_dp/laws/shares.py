"""Loops between the shares of records that are in each cell and the logits that a sampler draws in their place; with their derivatives.

Shapes: G groups of cells, V shares in each.
"""

from math import log

import numpy as np


def shares(value, near, like):
    """V shares (G, V) by stick breaking: V - 1 logits, each of a share in what those before it leave; all are alike where they are 0.

    Values (G, V - 1) are how far the logits are from their middles, in standard deviations: near (G, V - 1, 2). ``like`` (G, V) says by
    its shape how many shares there are.
    """
    result, last = np.empty_like(like), like.shape[1] - 1
    for g in range(len(value)):
        rest = 0.0
        for k in range(last):
            x = near[g, k, 0] + near[g, k, 1] * value[g, k] - log(last - k)
            result[g, k] = np.exp(rest - np.logaddexp(0.0, -x))
            rest -= np.logaddexp(0.0, x)
        result[g, last] = np.exp(rest)
    return result


def shares_back(value, near, like, slope):
    """Derivatives by the values, from those by the shares: a share takes from all after it, in proportion."""
    result, last, share = np.empty_like(value), like.shape[1] - 1, shares(value, near, like)
    for g in range(len(value)):
        after = slope[g, last] * share[g, last]
        for k in range(last - 1, -1, -1):
            logit = near[g, k, 0] + near[g, k, 1] * value[g, k]
            change, taken = slope[g, k] * share[g, k], 1 / (1 + (last - k) * np.exp(-logit))
            result[g, k] = near[g, k, 1] * (change * (1 - taken) - after * taken)
            after += change
    return result


def shares_volume(value, near):
    """Log-determinant (G,) of the derivatives of the shares: the matrix is triangular. Each moves by part x (1 - part) x what is left."""
    volume, by_value, last = np.zeros(len(value)), np.empty_like(value), value.shape[1]
    for g in range(len(value)):
        for k in range(last):
            x = near[g, k, 0] + near[g, k, 1] * value[g, k] - log(last - k)
            volume[g] += np.log(near[g, k, 1]) - np.logaddexp(0.0, -x) - (last - k) * np.logaddexp(0.0, x)
            by_value[g, k] = near[g, k, 1] * (1 - (last - k + 1) / (1 + np.exp(-x)))
    return volume, by_value


PARTS = (shares,)
"""What the loops call."""
