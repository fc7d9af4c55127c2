"""What would be released of totals over individuals: every row's total, and how far one individual moves them."""

from math import prod

from pymc_dp.families.family import Domain, Sensitivity
from pymc_dp.models.spec import Likelihood
from pymc_dp.models.structure import Unreduced
from pymc_dp.plans.protection import Individual
from pymc_dp.plans.statistic import Grid, PlannedStatistic, over_columns


def planned_totals(likelihood: Likelihood, neighbours: str, unit: Individual) -> PlannedStatistic:
    """Totals over individuals, each row by itself (docs/theory.md).

    Binomial rows with public numbers of trials: another outcome of one individual moves one total by 1 in each of its rows.
    Multinomial rows with public numbers of trials: one count of the row goes down by 1 and another up by 1, in each of its rows. Of two
    counts the second is released, because their sum is public.
    Poisson rows: an individual has at most ``events`` events over all rows; another one in its place moves them by ``events``
    where it is counted in the same single row, and by twice that where it may be counted in others: from one row to another.
    """
    distribution = likelihood.distribution
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
            f'{distribution} rows are not totals of individuals. Write unit="row", or observe Binomial, Multinomial or Poisson totals'
        )
    domain = Domain(0.0, 2.0**40, likelihood.levels, likelihood.unknown, likelihood.known, fill=0.0)
    sensitivity = over_columns(Sensitivity(difference, square, 2**40, why), () if distribution == "Poisson" else likelihood.columns)
    return PlannedStatistic(likelihood, "aggregate", domain, "public", Grid(), None, {}, statistics, sensitivity)
