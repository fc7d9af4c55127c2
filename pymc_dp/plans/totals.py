"""What would be released of totals over individuals: every row's total, and how far one individual moves them."""

from collections.abc import Mapping
from fractions import Fraction
from math import ceil, floor, prod

from pymc_dp.families.family import Domain, Sensitivity
from pymc_dp.families.grid import POINTS
from pymc_dp.families.limits import check_bounds
from pymc_dp.families.normal import ROW_VALUES
from pymc_dp.models.spec import Likelihood
from pymc_dp.models.structure import Unreduced
from pymc_dp.plans.bounds import as_declared, one_or_each
from pymc_dp.plans.protection import Individual
from pymc_dp.plans.statistic import Grid, PlannedStatistic, over_columns

WRAPS = 2.0**31
"""PyMC makes 32-bit integers of longer ones, so that of whole numbers -2^31 follows on 2^31 - 1."""
FEWEST_POINTS = 16
"""A grid on which one individual moves a value by fewer points would add rounding of its own beside the noise."""


def planned_totals(likelihood: Likelihood, bounds: Mapping[str, object], neighbours: str, unit: Individual) -> PlannedStatistic:
    """Totals over individuals, each row by itself (docs/theory.md).

    Binomial rows with public numbers of trials: another outcome of one individual moves one total by 1 in each of its rows.
    Multinomial rows with public numbers of trials: one count of the row goes down by 1 and another up by 1, in each of its rows. Of two
    counts the second is released, because their sum is public.
    Poisson rows: an individual has at most ``events`` events over all rows; another one in its place moves them by ``events``
    where it is counted in the same single row, and by twice that where it may be counted in others: from one row to another.
    """
    distribution = likelihood.distribution
    if likelihood.family is ROW_VALUES:
        return _values(likelihood, bounds, neighbours, unit)
    statistics: tuple[str, ...] = ("total",)
    if distribution in ("Binomial", "Multinomial"):
        if neighbours == "add_remove":
            raise Unreduced('its numbers of trials are public, which reveals how many individuals there are. Write neighbours="replace"')
        moved, what = unit.rows, "a total"
        if distribution == "Multinomial":
            statistics = ("level 1",) if likelihood.levels == 2 else tuple(f"level {k}" for k in range(likelihood.levels))
            moved, what = unit.rows * min(len(statistics), 2), "a count" if likelihood.levels == 2 else "two counts"
        difference, square, why = moved, moved, f"another outcome of one individual moves {what} by 1, in {unit.rows} row(s)"
    elif distribution == "Poisson":
        if unit.events is None:
            raise Unreduced(
                "one individual could have any number of events. Write unit=pymc_dp.Individual(events=m), m the most of one individual over"
                " all rows"
            )
        m = unit.events
        twice = neighbours == "replace" and (unit.membership == "private" or unit.rows > 1 or prod(likelihood.columns) > 1)
        difference, square = (2 * m, 2 * m**2) if twice else (m, m**2)
        why = f"one individual has at most {m} events" + (", here or in other rows" if twice else "")
    else:
        raise Unreduced(
            f'{distribution} rows are not totals of individuals. Write unit="row", or observe Binomial, Multinomial or Poisson totals,'
            " or real numbers such as means"
        )
    domain = Domain(0.0, 2.0**40, likelihood.levels, likelihood.unknown, likelihood.known, fill=0.0)
    sensitivity = over_columns(Sensitivity(difference, square, 2**40, why), () if distribution == "Poisson" else likelihood.columns)
    return PlannedStatistic(likelihood, "aggregate", domain, "public", Grid(), None, {}, statistics, sensitivity)


def _values(likelihood: Likelihood, bounds: Mapping[str, object], neighbours: str, unit: Individual) -> PlannedStatistic:
    """Rows of real numbers, such as means over individuals: the value of every row, scaled to its bounds.

    One individual moves the value of a row by at most ``moves``, whether it has another value there or is not counted there. So it moves
    ``rows`` values; twice as many where it may be counted in other rows instead. Clamping to the bounds moves two values no further
    apart. Scaling divides by half the width of the bounds, and the values are D = moves / half POINTS apart on the grid, but for rounding
    of less than 2^-30 of a point: each of the two steps is off by 2^-52 of at most POINTS points or, beyond the bounds, clamped. Rounding
    to whole points then leaves two values at most ceil(D) + 1 apart. Where a value was a whole number that PyMC turned into another, two
    neighbouring ones are no further apart than that either: see ``turned_at``.
    """
    name, family = likelihood.name, ROW_VALUES
    if unit.moves is None:
        raise Unreduced(
            "one individual could move a row by any amount. Write unit=pymc_dp.Individual(moves=m), m the farthest that one individual can"
            " move the value of a row: of a mean of at least n values between a and b, (b - a) / n"
        )
    declared = bounds.get(name)
    [pair, *others] = one_or_each(likelihood, declared)
    if others:
        raise Unreduced("all rows have one pair of bounds. Write one pair for all columns")
    domain = as_declared(likelihood.domain(check_bounds(family, name, pair)), declared)
    if domain.lower < -WRAPS or 2 * domain.upper > turned_at(domain):
        raise Unreduced("its bounds reach where PyMC turns whole numbers into others, of 32 bits. Rescale it in the model")
    points = ceil(Fraction(unit.moves) / Fraction(domain.half_width) * POINTS) + 1
    if points < FEWEST_POINTS:
        raise Unreduced(f"its bounds are more than {2 * POINTS // FEWEST_POINTS:,} times as wide as moves={unit.moves:g}. Narrow them")
    moved = unit.rows * (2 if neighbours == "replace" and unit.membership == "private" else 1)
    points = min(points, 2 * POINTS)
    why = f"one individual moves the value of a row by at most {unit.moves:g}, in {moved} row(s)"
    sensitivity = over_columns(Sensitivity(moved * points, moved * points**2, POINTS, why), likelihood.columns)
    return PlannedStatistic(likelihood, "aggregate", domain, "public", Grid(), None, {}, family.statistics(domain), sensitivity)


def turned_at(domain: Domain) -> float:
    """The sum C of a value and its mirror image. Of x and C - x the smaller one counts, clamped: it falls to the lower bound before 2^31.

    PyMC turns 2^31 into -2^31, and a model does not tell such a value from one that a user wrote. Clamped, it would be at the lower bound
    and 2^31 - 1 at the upper one, which one individual may lie between. The smaller of the two is moved no further than x is, whether
    numbers lie on a line or on a circle of 2^32 whole ones: on both sides of its seam it is at the lower bound, for C is at most 2^31
    above that. Values within the bounds stay what they are, for the upper one is at most C / 2.
    """
    return floor(domain.lower) + WRAPS
