"""Checks that a family can have the bounds it is given, before anything is paid; and noisy counts moved to ones that can occur: none
negative, with the right sum.
"""

from collections.abc import Mapping

import numpy as np

from pymc_dp.families.family import Family
from pymc_dp.privacy.accounting import Refusal


def is_pair(pair: object) -> bool:
    """Whether bounds of one column are two single things, whatever these are."""
    return isinstance(pair, list | tuple | np.ndarray) and len(pair) == 2 and all(map(np.isscalar, map(single, pair)))


def single(bound: object) -> object:
    """A bound by itself, out of an array that holds nothing else."""
    return bound.item() if isinstance(bound, np.ndarray) and not bound.ndim else bound


def check_spelling(name: str, bounds: object, many: int) -> None:
    """Refuse bounds of so many columns that are written otherwise than as one pair, or as a list of pairs: by label, with labels, masked,
    or all ends by side.

    Two columns whose lower ends stand before their upper ones cannot be told from a list of pairs.
    """
    if np.ma.is_masked(bounds):
        raise Refusal(f"Some bounds of {name} are masked. Write numbers for all: bounds={{{name!r}: (lower, upper)}}.")
    if many < 2 or is_pair(bounds):
        return
    pairs = list(bounds.values()) if isinstance(bounds, Mapping) else []
    try:
        sides = np.asarray(bounds, dtype=float)
    except (TypeError, ValueError, OverflowError):
        sides = np.zeros(0)
    if sides.shape == (many, 2) and _has_labels(bounds):  # which may be those of the columns in another order
        pairs = sides.tolist()
    if sides.shape == (2, many) and many > 2:
        pairs = sides.T.tolist()
    if pairs and all(map(is_pair, pairs)):
        shown = [f"({as_number(lower)}, {as_number(upper)})" for lower, upper in pairs]
        listed = ", ".join(shown if len(shown) <= 6 else [*shown[:2], "..."])
        raise Refusal(f"bounds of {name} are pairs in a list, in the order of the columns. Write bounds={{{name!r}: [{listed}]}}.")


def _has_labels(bounds: object) -> bool:
    """Whether a frame of pandas, or an array of xarray, names its rows."""
    if hasattr(bounds, "iloc"):
        index = bounds.index  # type: ignore[attr-defined]
        return list(index) != list(range(len(index)))
    return bool(getattr(bounds, "indexes", {}))


def as_number(bound: object) -> str:
    """A bound as one would write it."""
    return f"{bound:.6g}" if isinstance(bound, int | float) else repr(bound)


def finite_pair(name: str, bounds: object) -> tuple[float, float]:
    """Bounds of one observed variable as two finite floats, the lower one first."""
    try:
        lower, upper = (float(bound) for bound in bounds)  # type: ignore[attr-defined]
        if isinstance(bounds, set | frozenset):
            raise TypeError
    except (TypeError, ValueError, OverflowError):
        raise Refusal(
            f"bounds of {name} must be a pair of numbers. Write bounds={{{name!r}: (lower, upper)}}, or where it has several columns a list"
            " of such pairs, one for each."
        ) from None
    if not (np.isfinite([lower, upper]).all() and lower < upper):
        raise Refusal(f"bounds of {name} must be finite, the lower one first. Write bounds={{{name!r}: (lower, upper)}}.")
    return lower, upper


def check_bounds(family: Family, name: str, bounds: object) -> tuple[float, float]:
    """Bounds of one observed variable as two floats, checked against what the family can use."""
    lower, upper = finite_pair(name, bounds)
    if family.BOUNDS == "none":
        raise Refusal(f"{name} is {family.DISTRIBUTION}, whose values are limited by themselves. Leave {name} out of bounds.")
    if family.BOUNDS == "positive" and not lower > 0:
        raise Refusal(f"{name} is {family.DISTRIBUTION}, so its bounds must be positive. Write for example bounds={{{name!r}: (0.1, 10)}}.")
    if family.BOUNDS == "unit" and not 0 < lower < upper < 1:
        raise Refusal(
            f"{name} is {family.DISTRIBUTION}, so its bounds must lie inside (0, 1). Write for example bounds={{{name!r}: (0.01, 0.99)}}."
        )
    if family.BOUNDS == "nonnegative" and not lower >= 0:
        raise Refusal(
            f"{name} is {family.DISTRIBUTION}, so its bounds must not be negative. Write for example bounds={{{name!r}: (0, 10)}}."
        )
    if family.BOUNDS == "integer" and not (lower.is_integer() and upper.is_integer() and lower >= 0 and upper < 2**40):
        raise Refusal(f"{name} is a count, so its bounds must be integers from 0 to 2**40. Write for example bounds={{{name!r}: (0, 40)}}.")
    if not np.isfinite(upper - lower) or (upper - lower) / 2 <= np.spacing(max(abs(lower), abs(upper))) * 2**20:
        raise Refusal(f"bounds of {name} are too far apart or too close for double precision. Rescale {name} in the model.")
    return lower, upper


def onto_simplex(noisy: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Noisy counts (..., K) onto the simplex of a size: negative ones to 0, then rescaled; uniform where nothing is left."""
    positive = np.maximum(noisy, 0)
    summed = positive.sum(axis=-1, keepdims=True)
    return np.where(summed > 0, positive / np.where(summed > 0, summed, 1), 1 / noisy.shape[-1]) * total
