"""A loop over every exact count that is possible given a published number, for Poisson, binomial and negative binomial counts.

Shapes: B rows, T entries of tables.
"""

import numpy as np

from pymc_dp.laws.kernel import NEGLIGIBLE

LEFT_OUT = 1e-17
"""A sum ends where what is left of it is less than this share of it."""
NOTHING = 1e-12
"""A ratio this small, beside ``a``, is a binomial count's step beyond the number of trials: rounding, not probability."""
CLOSED, OPEN, CONTRARY = 0, 1, 2
"""Kinds of windows: weights are 0 beyond a closed one; 1 above an open one; a contrary one has the weights that an open one lacks."""
LONGEST = 10_000_000
"""So many counts are added up at most."""


def window_sum(at, a, b, start, first, length, kind, table):
    """Log of the sum over counts s in a window of f(s) / f(at) times a weight, with its derivatives by a and b.

    Where f(s + 1) / f(s) = a + b / (s + 1), as Panjer's class has it: Poisson with a = 0 and b the rate; binomial with a = -odds and
    b = (n + 1) odds; negative binomial with a = q and b = (alpha - 1) q.

    Parameters
    ----------
    at : (B,)
        The count of the window where f is largest: sums go on from there to both sides until nothing is left.
    a, b : (B,)
    start, first, length : (B,)
        A window holds the counts start, ..., start + length - 1, and its weights, at most 1, are table[first], ....
    kind : (B,)
        CLOSED, OPEN or CONTRARY.
    table : (T,)
    """
    value, by_a, by_b = np.empty_like(at), np.empty_like(at), np.empty_like(at)
    for i in range(len(at)):
        low = 0.0 if kind[i] == CONTRARY else max(start[i], 0.0)
        high = at[i] + LONGEST if kind[i] == OPEN else start[i] + length[i] - 1
        if at[i] < low or at[i] > high:
            value[i], by_a[i], by_b[i] = NEGLIGIBLE, 0.0, 0.0
            continue
        smallest, whole = NOTHING * abs(a[i]), int(kind[i])
        offset, many, place = int(start[i]), int(length[i]), int(first[i])
        total = _weight(int(at[i]) - offset, many, place, whole, table)
        mean_a = mean_b = 0.0
        share, slope_a, slope_b, s = 1.0, 0.0, 0.0, at[i]
        while s < high:
            part = 1 / (s + 1)
            ratio = a[i] + b[i] * part
            if ratio <= smallest:
                break
            s += 1
            share *= ratio
            slope_a += 1 / ratio
            slope_b += part / ratio
            term = share * _weight(int(s) - offset, many, place, whole, table)
            total += term
            mean_a += term * slope_a
            mean_b += term * slope_b
            most = max(ratio, a[i])
            if most < 1 and share < LEFT_OUT * total * (1 - most):
                break
        share, slope_a, slope_b, s = 1.0, 0.0, 0.0, at[i]
        while s > low:
            part = 1 / s
            ratio = a[i] + b[i] * part
            if ratio <= smallest:
                break
            s -= 1
            share /= ratio
            slope_a -= 1 / ratio
            slope_b -= part / ratio
            term = share * _weight(int(s) - offset, many, place, whole, table)
            total += term
            mean_a += term * slope_a
            mean_b += term * slope_b
            if ratio > 1 and share < LEFT_OUT * total * (1 - 1 / ratio):
                break
        value[i] = np.log(total) if total > 0 else NEGLIGIBLE
        by_a[i] = mean_a / total if total > 0 else 0.0
        by_b[i] = mean_b / total if total > 0 else 0.0
    return value, by_a, by_b


def _weight(j, many, place, kind, table):
    """The weight of the j-th count of a window."""
    if j < 0:
        return 1.0 if kind == CONTRARY else 0.0
    if j >= many:
        return 1.0 if kind == OPEN else 0.0
    return 1 - table[place + j] if kind == CONTRARY else table[place + j]


PARTS = (_weight,)
"""What the loop calls."""
