"""Whether a density that a user wrote is the probability of a value that was rounded, F(t + 1/2) - F(t - 1/2).

As a function of real numbers it is a density, too, that of the value before and of an error of rounding together. But values in bins are
rounded already, so that bins would count that error twice.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.tensor.elemwise import DimShuffle

from pymc_dp.models.either_side import in_units
from pymc_dp.models.likelihood_rv import Written
from pymc_dp.models.single_points import Values
from pymc_dp.models.structure import above, scalar_name
from pymc_dp.models.tabulated import number_in

STARTS = np.array([0.0137, 0.3171, 0.8243, 1.3391])
"""Where values begin of which each is one unit above the one before: not where parameters end a range in which a formula is computed in one
way, since a sum and a difference of the same number may lie on both sides.
"""
MANY = 400
"""As many of them are added up on either side."""
EQUAL = 1e-12
"""Sums that differ by less, relatively, are one: they are added up in doubles."""
FARTHEST = 1e-5
"""So large, relatively, what is said of the farthest values may be, by which sums of rounded values differ with where they begin."""
DIFFERENT = 0.01
"""By so much they differ where values are two units apart. Those of a normal density then differ by 2e-10 at one unit: by 4 exp(-2 x^2), x
being pi times its standard deviation, in steps from one value to the next (Poisson's summation formula); of a Cauchy density by 2e-5.
"""
MOST_UNITS = 16
"""So many units are tried, multiples last."""
PRODUCTS = ("Mul", "TrueDiv", "Neg")
"""What makes a product of plain numbers and parameters."""
ROUNDED = (
    "it is the probability of a value that was rounded, F(t + 0.5) - F(t - 0.5), and values in bins are rounded already. Write the"
    " distribution of the value before that, pm.Normal('t', mu, sigma, observed=t), with edges of bins half-way between rounded values:"
    " then it is the probability of a bin"
)
"""What is to be said of such a formula."""


def is_of_rounded(written: Written, values: Values, rows: np.ndarray, unknown: np.ndarray) -> bool:
    """Whether probabilities of values that are a unit apart add up to the same, wherever they begin, at all parameters that are tried.

    At two units they must not, at some parameters: where a density is smooth its sums are the same at any distance. Units are differences
    of plain numbers that are added to the value, also where both are in units of a parameter: (t - m) / s + 0.5 / s.

    The unknowns are tried in these units, too. Arguments are those of ``says_something_unseen``.
    """
    for unit in _units(written):
        tried_rows = np.concatenate([rows, in_units(rows, unknown, unit)])
        (one, farthest), (two, _) = (_differences(written, values, tried_rows, unit, apart) for apart in (1, 2))
        tried = np.isfinite(one) & np.isfinite(two) & (farthest <= FARTHEST)
        if tried.any() and (one[tried] <= EQUAL + farthest[tried]).all() and (two[tried] > DIFFERENT).any():
            return True
    return False


def _differences(written: Written, values: Values, rows: np.ndarray, unit: float, apart: int) -> tuple[np.ndarray, np.ndarray]:
    """By how much sums over values so many units apart differ with where they begin (R,), and the values at their ends (R,), relatively.

    NaN where a sum is none. Sums of a rounded value are the same but for what lies beyond their ends, of which, as tails fall, there is at
    most one value more or less on either side.
    """
    at = unit * np.add.outer(STARTS, apart * np.arange(-MANY, MANY + 1))
    with np.errstate(all="ignore"):
        found = np.exp(values(written, np.broadcast_to(at.ravel(), (len(rows), at.size)), rows)).reshape(len(rows), *at.shape)
        sums = found.sum(axis=-1)
        largest = np.where(sums.max(axis=-1) > 0, sums.max(axis=-1), np.nan)
        return (sums.max(axis=-1) - sums.min(axis=-1)) / largest, found[..., [0, -1]].max(axis=1).sum(axis=-1) / largest


def _units(written: Written) -> list[float]:
    """The distances between plain numbers that are added to the value, or that it stands without, also of a multiple of it."""
    shifts, factors = {0.0, *_beside(written, ("Add", "Sub"))}, {abs(factor) for factor in _beside(written, ("Mul", "TrueDiv"))}
    apart = sorted({round(abs(one - other), 12) for one, other in combinations(sorted(shifts), 2)} - {0.0})
    whole = sorted({max(factor, 1 / factor) for factor in factors - {0.0} if max(factor, 1 / factor) % 1 == 0} - {1.0})
    return [*apart, *(round(size, 12) for factor in whole for unit in apart for size in (unit * factor, unit / factor))][:MOST_UNITS]


def _beside(written: Written, kinds: Sequence[str]) -> Iterator[float]:
    """Plain numbers that are added to what the value is a part of, or subtracted, or multiplied with it, and those in products that are."""
    value = written.vectors[0]
    for variable in above([written.graph]):
        kind = "" if variable.owner is None else scalar_name(variable.owner.op)
        if kind not in kinds:
            continue
        first, *others = variable.owner.inputs
        for place, (operand, beside) in enumerate(((first, others), *((other, [first]) for other in others))):
            if not _holds(value, operand) and any(_holds(value, other) for other in beside):
                sign = -1 if kind == "Sub" and place else 1
                yield from (sign * number for number in _factors(operand))


def _factors(variable: Variable) -> Iterator[float]:
    """Plain numbers that a product or quotient has as factors; a number itself."""
    number = number_in(variable)
    if number is not None:
        if np.isfinite(number):
            yield number
    elif variable.owner is not None and (scalar_name(variable.owner.op) in PRODUCTS or isinstance(variable.owner.op, DimShuffle)):
        for operand in variable.owner.inputs:
            yield from _factors(operand)


def _holds(value: Variable, variable: Variable) -> bool:
    return value in set(above([variable]))
