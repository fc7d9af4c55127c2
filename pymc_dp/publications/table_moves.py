"""Moves of records between the cells of a table of which sums were published: loops that numba compiles when they are first run.

A move adds t records to some cells and takes t from others, and t is drawn by a slice sampler over all whole numbers that leave no cell
negative and meet every exact row. Under Gaussian noise the log-likelihood of t is a parabola, whose two numbers are added up once.
"""

from math import exp, lgamma, log, sqrt

import numpy as np
from numba import njit

FLAT, POISSON, MIXED = range(3)
"""Laws of one cell: every count alike; Poisson; Poisson with a gamma mean, which is negative binomial."""
FAR = 2**40
WINDOW = 15
"""Times that the window of a slice may grow, on both sides together."""


@njit(cache=True, nogil=True)
def log_weight(kind, x, shape, slope):
    """Log-probability of a count x up to a constant: slope is log mean (Poisson), or log(mean / (mean + shape))."""
    if kind == FLAT:
        return 0.0
    if kind == POISSON:
        return x * slope - lgamma(x + 1.0)
    w = x + 0.5 * shape
    if w > 40 * (1 + shape):  # log Gamma(x + shape) - log Gamma(x + 1) by a series, to 1e-6
        d = shape - 1
        return d * log(w) - d * (d * d - 1) / (24 * w * w) + x * slope
    return lgamma(x + shape) - lgamma(x + 1.0) + x * slope


@njit(cache=True, nogil=True)
def _height(t, cells, signs, many, x, law, lines, by, left, rates, count):
    """The log-density after t records moved, up to a constant."""
    kind, shapes, slopes = law
    value = t * (lines[0] - 0.5 * lines[1] * t)
    for k in range(count):
        value -= abs(left[k] - by[k] * t) * rates[k]
    for c in range(many):
        value += log_weight(kind, x[cells[c]] + signs[c] * t, shapes[cells[c]], slopes[cells[c]])
    return value


@njit(cache=True, nogil=True)
def _collect(cells, signs, many, columns, change, touched):
    """How the published sums change by one record moved: written to ``change`` at the rows ``touched``, of which the number is given."""
    starts, places, weights = columns
    count = 0
    for c in range(many):
        for p in range(starts[cells[c]], starts[cells[c] + 1]):
            row = places[p]
            if change[row] == 0:
                touched[count] = row  # a row whose change came back to 0 may stand twice
                count += 1
            change[row] += signs[c] * weights[p]
    return count


@njit(cache=True, nogil=True)
def _slice(rng, low, high, width, cells, signs, many, x, law, lines, by, left, rates, count):
    """A draw of t from low, ..., high by one step of a slice sampler from 0 (Neal 2003, figures 3 and 5)."""
    level = _height(0, cells, signs, many, x, law, lines, by, left, rates, count) + log(1 - rng.random())
    start = -int(rng.random() * width)
    end = start + width  # the window is start, ..., end - 1; both edges belong to the cells that they begin
    steps = int((WINDOW + 1) * rng.random())
    more = WINDOW - steps
    while steps > 0 and start > low and _height(start, cells, signs, many, x, law, lines, by, left, rates, count) > level:
        start -= width
        steps -= 1
    while more > 0 and end <= high and _height(end, cells, signs, many, x, law, lines, by, left, rates, count) > level:
        end += width
        more -= 1
    first, last = max(start, low), min(end - 1, high)
    while True:
        t = first + int(rng.random() * (last - first + 1))
        if t == 0 or _height(t, cells, signs, many, x, law, lines, by, left, rates, count) > level:
            return t
        if t < 0:
            first = t + 1
        else:
            last = t - 1


@njit(cache=True, nogil=True)
def move(rng, cells, signs, many, x, residual, columns, noise, law, work):
    """Move records between up to four cells: ``signs`` are 1 where they go and -1 where they come from."""
    kinds, precisions, inverse = noise
    change, touched, by, left, rates, lines = work
    low, high = -FAR, FAR
    for c in range(many):
        if signs[c] > 0:
            low = max(low, -x[cells[c]])
        else:
            high = min(high, x[cells[c]])
    if low == 0 and high == 0:
        return
    rows = _collect(cells, signs, many, columns, change, touched)
    lines[0], lines[1], count, steep = 0.0, 0.0, 0, 0.0
    for k in range(rows):
        row = touched[k]
        step = change[row]
        change[row] = 0.0
        if step == 0:
            touched[k] = -1
            continue
        by[k] = step
        if kinds[row] == 0:
            lines[0] += step * residual[row] * precisions[row]
            lines[1] += step * step * precisions[row]
        elif kinds[row] == 1:
            left[count], rates[count], by[rows + count] = residual[row], inverse[row], step
            steep += (step * inverse[row]) ** 2
            count += 1
        elif kinds[row] == 2:
            low, high = max(low, 0), min(high, 0)
        elif (kinds[row] == 3) == (step > 0):  # the sum is a bound's, and grows towards its side or away from it
            low = max(low, int(np.ceil(residual[row] / step)))
        else:
            high = min(high, int(np.floor(residual[row] / step)))
    if low == 0 and high == 0:
        return
    curve = lines[1] + steep
    width = 1 + int(3 / sqrt(curve)) if curve > 1e-12 else 2**20
    if rng.random() < 0.2:
        width = 1 + int(exp(20 * rng.random())) if many == 1 else 1
    t = _slice(rng, low, high, width, cells, signs, many, x, law, lines, by[rows:], left, rates, count)
    if t != 0:
        for c in range(many):
            x[cells[c]] += signs[c] * t
        for k in range(rows):
            if touched[k] >= 0:
                residual[touched[k]] -= by[k] * t


@njit(cache=True, nogil=True)
def _partner(rng, grid, system, place):
    """A place like another but for its label in one dim, which is any that the system takes to be near."""
    strides, sizes, axes, offsets, labels, order, begins, counts, ends = grid
    axis = axes[system]
    level = (place // strides[axis]) % sizes[axis]
    label = labels[offsets[system] + level]
    other = order[offsets[system] + begins[ends[system] + label] + int(rng.random() * counts[ends[system] + label])]
    return place + (other - level) * strides[axis]


@njit(cache=True, nogil=True)
def _propose(rng, i, kind, grid, places, cell_at, alike, cells):
    """Which cells take part in a move of cell i, written to ``cells``; how many, or 0 where there is none such."""
    members, begins, counts, class_of = alike
    systems, place = len(grid[2]), places[i]
    cells[0] = i
    if kind == 0:
        return 1
    if kind < 3:
        cells[1] = cell_at[_partner(rng, grid, int(rng.random() * systems), place)]
        return 2 if cells[1] >= 0 and cells[1] != i else 0
    if kind == 3:
        if rng.random() > 0.25:
            return 0
        cells[1] = members[begins[class_of[i]] + int(rng.random() * counts[class_of[i]])]
        return 2 if cells[1] != i else 0
    first, second = int(rng.random() * systems), int(rng.random() * systems)
    if grid[2][first] == grid[2][second]:
        return 0
    across, down = _partner(rng, grid, first, place), _partner(rng, grid, second, place)
    cells[1], cells[2], cells[3] = cell_at[across], cell_at[down], cell_at[across + down - place]
    return 4 if min(cells[1], cells[2], cells[3]) >= 0 and across != place and down != place else 0


@njit(cache=True, nogil=True)
def sweep(rng, x, residual, columns, noise, law, grid, places, cell_at, alike, work):
    """Moves from every cell: one in or out of it, two to a near cell, one around four cells, and now and then one to any cell."""
    cells, signs = np.empty(4, np.int64), np.array([1, -1, -1, 1])
    for i in range(len(x)):
        for kind in range(5):
            many = _propose(rng, i, kind, grid, places, cell_at, alike, cells)
            if many:
                move(rng, cells, signs, many, x, residual, columns, noise, law, work)
