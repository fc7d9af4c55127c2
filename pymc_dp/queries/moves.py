"""Moves of exact counts given noisy answers, loops that numba compiles when they are first run."""

from math import lgamma

import numpy as np
from numba import njit

EVENEST = 1e4
"""The largest concentration; the smallest is 1."""
MANY_RECORDS = 1e6
"""Where the prior of a private number of records begins to fall."""


@njit(cache=True, nogil=True)
def _log_gamma_ratio(x, a):
    """The rise log Gamma(x + a) - log Gamma(x + 1); where a is far less than x by a series, to 1e-6."""
    w = x + 0.5 * a
    if w > 40 * (1 + a):
        d = a - 1
        return d * np.log(w) - d * (d * d - 1) / (24 * w * w)
    return lgamma(x + a) - lgamma(x + 1.0)


@njit(cache=True, nogil=True)
def _height(t, x, i, j, a, b, c, total, by, rate, residual, many):
    """The log-density after t records moved from atom j, or from outside, to atom i; up to a constant."""
    value = _log_gamma_ratio(x[i] + t, a)
    if j >= 0:
        value += _log_gamma_ratio(x[j] - t, b)
    else:
        value -= _log_gamma_ratio(total + t, c) + 2 * np.log1p((total + t) / MANY_RECORDS)
    for k in range(many):
        value -= abs(residual[k] - by[k] * t) * rate[k]
    return value


@njit(cache=True, nogil=True)
def _new_concentration(rng, x, c, total, spread):
    """The concentration after two Metropolis steps in its logarithm."""
    for _ in range(2):
        new = c * np.exp(3 * (rng.random() - 0.5))
        if 1 <= new <= EVENEST:
            change = lgamma(new) - lgamma(c) - _log_gamma_ratio(total, new) + _log_gamma_ratio(total, c)
            for g in range(len(x)):
                if x[g] > 0:
                    change += _log_gamma_ratio(x[g], new * spread[g]) - lgamma(new * spread[g])
                    change -= _log_gamma_ratio(x[g], c * spread[g]) - lgamma(c * spread[g])
            if np.log(rng.random()) < change:
                c = new
    return c


@njit(cache=True, nogil=True)
def _unexplained(y, columns, x):
    """The answers less what the counts explain, y - H x, and the number of records."""
    left, total = y.copy(), 0
    for g in range(len(x)):
        total += x[g]
        for k in range(len(y)):
            left[k] -= columns[g, k] * x[g]
    return left, total


@njit(cache=True, nogil=True)
def _changed(columns, i, j, where, by):
    """How many answers a record changes that moves to atom i from atom j, or from outside; which and by how much is written."""
    many = 0
    for k in range(columns.shape[1]):
        change = columns[i, k] - (columns[j, k] if j >= 0 else 0.0)
        if change != 0:
            where[many], by[many] = k, change
            many += 1
    return many


@njit(cache=True, nogil=True)
def sweeps(rng, x, c, columns, y, rates, spread, near, begins, changed, differences, known, tune, thin, counts, concentration):
    """One chain from counts x (G,), which are changed, and concentration c; ``counts`` (D, G) and ``concentration`` (D,) are written to."""
    atoms, answers = columns.shape
    left, total = _unexplained(y, columns, x)
    where, by, rate = np.empty(answers, np.int64), np.empty(answers), np.empty(answers)
    residual, far = np.empty(answers), atoms // 8 + 2  # moves between pairs of atoms at random
    for sweep in range(tune + thin * len(counts)):
        c = _new_concentration(rng, x, c, total, spread)
        for move in range(atoms + far + (0 if known else far)):
            many, curve = 0, 0.0
            if move < atoms:
                i, pair = move, move * near.shape[1] + int(rng.random() * near.shape[1])
                j = near[i, pair - move * near.shape[1]]
                for p in range(begins[pair], begins[pair + 1]):
                    where[many], by[many] = changed[p], differences[p]
                    many += 1
            else:
                i, j = int(rng.random() * atoms), int(rng.random() * atoms) if move < atoms + far else -1
                many = _changed(columns, i, j, where, by)
            if i == j:
                continue
            low, high = -x[i], x[j] if j >= 0 else 2**40
            for k in range(many):
                rate[k], residual[k] = rates[where[k]], left[where[k]]
                curve += (by[k] * rate[k]) ** 2
            a, b = c * spread[i], c * spread[j]
            width = 2**24 if curve < 1e-12 else 1 + int(4 / np.sqrt(curve))
            if j < 0 and rng.random() < 0.5:
                width = 2 ** int(24 * rng.random())
            level = _height(0, x, i, j, a, b, c, total, by, rate, residual, many) + np.log(1 - rng.random())
            start = -int(rng.random() * width)
            end = start + width  # the window is start, ..., end - 1; both edges belong to the cells that they begin
            steps = int(16 * rng.random())  # by which the window may grow, on both sides together 15
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
            for g in range(atoms):  # entry by entry: a slice costs numba seconds
                counts[(sweep - tune) // thin, g] = x[g]
            concentration[(sweep - tune) // thin] = c
