"""Whether a density that a user wrote is the probability of a value that was rounded, F(t + 1/2) - F(t - 1/2).

As a function of real numbers it is a density, too, that of the value before and of an error of rounding together. But values in bins are
rounded already, so that bins would count that error twice.
"""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.models.likelihood_rv import Written
from pymc_dp.models.single_points import Values
from pymc_dp.models.structure import above, scalar_name
from pymc_dp.models.tabulated import number_in

STARTS = np.array([0.0, 0.3, 0.8, 1.3])
"""Where values begin of which each is one unit above the one before."""
MANY = 400
"""As many of them are added up on either side."""
EQUAL = 1e-12
"""Sums that differ by less, relatively, are one: they are added up in doubles."""
DIFFERENT = 0.01
"""By so much they differ where values are two units apart. Those of a normal density then differ by 2e-10 at one unit: by 4 exp(-2 x^2), x
being pi times its standard deviation, in steps from one value to the next (Poisson's summation formula).
"""
MOST_UNITS = 8
"""So many units are tried."""
ROUNDED = (
    "it is the probability of a value that was rounded, F(t + 0.5) - F(t - 0.5), and values in bins are rounded already. Write the"
    " distribution of the value before that, pm.Normal('t', mu, sigma, observed=t), with edges of bins half-way between rounded values:"
    " then it is the probability of a bin"
)
"""What is to be said of such a formula."""


def is_of_rounded(written: Written, values: Values, rows: np.ndarray) -> bool:
    """Whether probabilities of values that are a unit apart add up to the same, wherever they begin, at all parameters that are tried.

    At two units they must not, at some parameters: where a density is smooth its sums are the same at any distance. Units are differences
    of plain numbers that are added to the value.

    Arguments are those of ``tells_points_apart``.
    """
    for unit in _units(written):
        one, two = (_differences(written, values, rows, unit, apart) for apart in (1, 2))
        tried = np.isfinite(one) & np.isfinite(two)
        if tried.any() and (one[tried] <= EQUAL).all() and (two[tried] > DIFFERENT).any():
            return True
    return False


def _differences(written: Written, values: Values, rows: np.ndarray, unit: float, apart: int) -> np.ndarray:
    """By how much sums over values so many units apart differ with where they begin (R,), relatively; NaN where one is none."""
    at = unit * np.add.outer(STARTS, apart * np.arange(-MANY, MANY + 1))
    with np.errstate(all="ignore"):
        found = np.exp(values(written, np.broadcast_to(at.ravel(), (len(rows), at.size)), rows)).reshape(len(rows), *at.shape)
        sums = found.sum(axis=-1)
        return (sums.max(axis=-1) - sums.min(axis=-1)) / np.where(sums.max(axis=-1) > 0, sums.max(axis=-1), np.nan)


def _units(written: Written) -> list[float]:
    """The distances between plain numbers that are added to the value, or that it stands without."""
    shifts = sorted({0.0, *_shifts(written)})
    return sorted({round(abs(one - other), 12) for one, other in combinations(shifts, 2)} - {0.0})[:MOST_UNITS]


def _shifts(written: Written) -> Iterator[float]:
    """Plain numbers that are added to, or subtracted from, what the value is a part of."""
    value = written.vectors[0]
    for variable in above([written.graph]):
        kind = "" if variable.owner is None else scalar_name(variable.owner.op)
        if kind not in ("Add", "Sub"):
            continue
        first, *others = variable.owner.inputs
        for place, (operand, beside) in enumerate(((first, others), *((other, [first]) for other in others))):
            number = number_in(operand) if any(_holds(value, other) for other in beside) else None
            if number is not None and np.isfinite(number):
                yield number if kind == "Add" or place == 0 else -number


def _holds(value: Variable, variable: Variable) -> bool:
    return value in set(above([variable]))
