"""The grid on which real statistics are rounded to whole numbers. Each value is rounded by itself, so no record changes what another
adds.
"""

from collections.abc import Sequence

import numpy as np

POINTS = 2**15
"""Lattice points between the middle of a scaled statistic's range and either end."""
SMALLEST_HALF = 1e-290
"""Of halves of ranges above this, POINTS divided by them is a finite number."""


def filled(array: np.ndarray, fill: float) -> np.ndarray:
    """An array with its missing values filled: elementwise, so that asking whether there are any changes nothing else."""
    if np.isnan(np.minimum.reduce(array, axis=None, initial=0.0)):  # which it is where one is missing
        array[np.isnan(array)] = fill
    return array


def nearest_level(values: np.ndarray, levels: Sequence[float] | np.ndarray) -> np.ndarray:
    """The place of the level that is nearest to every value, the lower one of two; levels increase."""
    return np.searchsorted((np.array(levels[1:]) + np.array(levels[:-1])) / 2, values)


def onto_grid(values: np.ndarray, centre: float, half: float) -> np.ndarray:
    """Whole numbers as doubles, from -POINTS to POINTS: how many grid points of half / POINTS values are above their centre."""
    with np.errstate(all="ignore"):
        return to_points(np.asarray(values - centre), half)


def to_points(u: np.ndarray, half: float | np.ndarray) -> np.ndarray:
    """Turn values less their centres into grid points, in place; each column may have a half of its own.

    Clipped to the grid's ends whatever rounding did, and 0 for what is not a number. Every real statistic is rounded here, elementwise.
    """
    return filled(unclipped(u, half), 0.0).clip(-POINTS, POINTS, out=u)


def unclipped(u: np.ndarray, half: float | np.ndarray) -> np.ndarray:
    """Compute in place the values that ``to_points`` clips. Every step is monotone: a value further out is never moved further in."""
    smallest = half if isinstance(half, float) else np.min(half)
    if smallest > SMALLEST_HALF:  # multiplying takes a third of the time that dividing does
        u *= POINTS / half
    else:
        u /= half
        u *= POINTS
    return np.rint(u, out=u)


def clamps(lower: float, upper: float) -> bool:
    """Whether what lies beyond these bounds is moved to them by the grid between them, and so need not be before.

    The bounds are the ends of the grid then, or beyond them, whatever rounding did. What is missing is moved to the middle.
    """
    with np.errstate(all="ignore"):
        ends = unclipped(np.array([lower, upper]) - (lower / 2 + upper / 2), (upper - lower) / 2)
    return bool(ends[0] <= -POINTS and ends[1] >= POINTS)
