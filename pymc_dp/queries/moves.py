"""Moves of exact counts given noisy answers, loops that numba compiles when they are first run. ``completion`` stands before and after."""

from math import lgamma

import numpy as np
from numba import njit

EVENEST = 1e4
"""The largest concentration; the smallest is 1."""
MANY_RECORDS = 1e6
"""Where the prior of a private number of records begins to fall."""


@njit(cache=True)
def _height(t, x, i, j, a, b, c, total, by, rate, residual, many):
    """The log-density after t records moved from atom j, or from outside, to atom i; up to a constant."""
    value = lgamma(x[i] + t + a) - lgamma(x[i] + t + 1.0)
    if j >= 0:
        value += lgamma(x[j] - t + b) - lgamma(x[j] - t + 1.0)
    else:
        value += lgamma(total + t + 1.0) - lgamma(total + t + c) - 2 * np.log1p((total + t) / MANY_RECORDS)
    for k in range(many):
        value -= abs(residual[k] - by[k] * t) * rate[k]
    return value


@njit(cache=True)
def sweeps(rng, x, c, columns, y, rates, spread, near, known, tune, thin, counts, concentration):
    """One chain from counts x (G,), which are changed, and concentration c; ``counts`` (D, G) and ``concentration`` (D,) are written to."""
    atoms, answers = columns.shape
    left = y.copy()  # y - H x
    total = 0
    for g in range(atoms):
        total += x[g]
        for k in range(answers):
            left[k] -= columns[g, k] * x[g]
    where, by, rate = np.empty(answers, np.int64), np.empty(answers), np.empty(answers)
    residual = np.empty(answers)
    order = np.arange(atoms)
    for sweep in range(tune + thin * len(counts)):
        for _ in range(4):  # the concentration, by Metropolis steps in its logarithm
            new = c * np.exp(3 * (rng.random() - 0.5))
            if 1 <= new <= EVENEST:
                change = lgamma(new) - lgamma(c) - lgamma(total + new) + lgamma(total + c)
                for g in range(atoms):
                    if x[g] > 0:
                        change += lgamma(x[g] + new * spread[g]) - lgamma(new * spread[g])
                        change -= lgamma(x[g] + c * spread[g]) - lgamma(c * spread[g])
                if np.log(rng.random()) < change:
                    c = new
        for k in range(atoms - 1, 0, -1):
            other = int(rng.random() * (k + 1))
            order[k], order[other] = order[other], order[k]
        for move in range(2 * atoms):
            i = order[move % atoms]
            if move < atoms:
                j = order[(move + 1) % atoms] if rng.random() < 0.5 else near[i, int(rng.random() * near.shape[1])]
                if i == j:
                    continue
                low, high = -x[i], x[j]
            else:
                if known:
                    break
                j, low, high = -1, -x[i], 2**40
            # The answers that this move changes, and how wide it is likely to be.
            many, curve = 0, 0.0
            for k in range(answers):
                change = columns[i, k] - (columns[j, k] if j >= 0 else 0.0)
                if change != 0:
                    where[many], by[many], rate[many], residual[many] = k, change, rates[k], left[k]
                    curve += (change * rates[k]) ** 2
                    many += 1
            a, b = c * spread[i], c * spread[j]
            if j < 0 and rng.random() < 0.5:
                width = 2 ** int(24 * rng.random())
            else:
                width = 2**24 if curve < 1e-12 else 1 + int(4 / np.sqrt(curve))
            level = _height(0, x, i, j, a, b, c, total, by, rate, residual, many) + np.log(1 - rng.random())
            start = -int(rng.random() * width)
            end = start + width  # the window is start, ..., end - 1; both edges belong to the cells that they begin
            steps = int(16 * rng.random())
            more = 15 - steps
            while steps > 0 and start > low and _height(start, x, i, j, a, b, c, total, by, rate, residual, many) > level:
                start -= width
                steps -= 1
            while more > 0 and end <= high and _height(end, x, i, j, a, b, c, total, by, rate, residual, many) > level:
                end += width
                more -= 1
            first, last = max(start, low), min(end - 1, high)
            while True:
                t = first + int(rng.random() * (last - first + 1))
                if t == 0 or _height(t, x, i, j, a, b, c, total, by, rate, residual, many) > level:
                    break
                if t < 0:
                    first = t + 1
                else:
                    last = t - 1
            if t != 0:
                x[i] += t
                if j >= 0:
                    x[j] -= t
                else:
                    total += t
                for k in range(many):
                    left[where[k]] -= by[k] * t
        if sweep >= tune and (sweep - tune) % thin == 0:
            counts[(sweep - tune) // thin] = x
            concentration[(sweep - tune) // thin] = c
