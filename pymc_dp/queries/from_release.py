"""The counts in a ``Release`` as answered questions: a contingency table is one count for every combination of levels.

The release paid for them, so that they cost nothing here; what they say stands beside what a session asked. Nothing here sees a record.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.queries.expressions import col, count
from pymc_dp.queries.history import Answered
from pymc_dp.queries.language import question
from pymc_dp.queries.schema import Column, Schema
from pymc_dp.releases.noisy_statistic import NoisyStatistic
from pymc_dp.releases.release import Release

COUNTS = {"zeros": 0, "ones": 1}
"""Names of the statistics of a Bernoulli variable, and the values they count."""


def counted(release: Release, schema: Schema, columns: Mapping[str, str | Sequence[str]] | None, neighbours: str) -> tuple[Answered, ...]:
    """Every count of every observed variable, as the answer to a question: see ``QuerySession.add``.

    Under "replace" a count that moves by 1 has sensitivity 1, whatever the table's: a record that changes cells moves two of them, and
    both are in the history.
    """
    if release.disjoint:
        raise Refusal("This release counts different people in its observed variables, which are no columns of one table. Add others.")
    names = {statistic.variable for statistic in release.statistics}
    if columns is not None and (not isinstance(columns, Mapping) or not set(columns) <= names):
        raise Refusal(f"columns must give the columns of observed variables, which are {', '.join(sorted(names))}.")
    return tuple(
        answered
        for statistic in release.statistics
        for answered in _cells(statistic, schema, _columns(statistic, schema, (columns or {}).get(statistic.variable)), neighbours)
    )


def _columns(statistic: NoisyStatistic, schema: Schema, chosen: str | Sequence[str] | None) -> list[Column]:
    """The columns that a statistic counts by: those of its indices and covariates, then its own."""
    variable, many = statistic.variable, len(statistic.inputs)
    if chosen is None and many:
        raise Refusal(
            f"{variable} was released by cells, and it is not known of which columns. Write"
            f' columns={{"{variable}": [{many} of them, then its own]}}.'
        )
    names = [variable] if chosen is None else [chosen] if isinstance(chosen, str) else list(chosen)
    if len(names) != many + 1 or len(set(names)) < len(names):
        raise Refusal(f"{variable} needs {many + 1} different columns: of its indices and covariates, then its own.")
    return [schema.column(name) for name in names]


def _cells(statistic: NoisyStatistic, schema: Schema, columns: Sequence[Column], neighbours: str) -> Iterable[Answered]:
    values = _values(statistic)
    rowwise = statistic.noisy.ndim == 2 and all(codes.shape == (len(statistic.noisy),) for codes in statistic.inputs)
    as_drawn = statistic.mechanism == "laplace" and not statistic.deviation and statistic.divisor == 1 and statistic.lattice == 1
    if values is None or not rowwise or not as_drawn:
        raise Refusal(
            f"{statistic.variable} was not released as counts with Laplace noise of their own, so it says nothing about single questions."
            " Add releases of Bernoulli or Categorical variables, or of tables of counts."
        )
    for cell, counts in enumerate(statistic.noisy):
        where = [float(codes[cell]) for codes in statistic.inputs]
        for value, noisy in zip(values, counts, strict=True):
            meets = [col(column.name) == _level(column, at) for column, at in zip(columns, (*where, value), strict=True)]
            condition = meets[0]
            for other in meets[1:]:
                condition = condition & other
            asked = question(count(condition), schema)
            epsilon = Fraction(asked.sensitivity(neighbours)) / Fraction(statistic.scale)
            yield Answered(asked, epsilon, statistic.scale, int(noisy))


def _values(statistic: NoisyStatistic) -> list[int] | None:
    """What the statistics count, where they count records with one value each."""
    if statistic.regression is not None or statistic.structure == "aggregate":
        return None
    if statistic.in_bins:
        return None
    if statistic.tabulated:
        return [int(statistic.domain.lower) + k for k in range(len(statistic.statistics))]
    if statistic.distribution == "Bernoulli":
        return [COUNTS[name] for name in statistic.statistics]
    return list(range(len(statistic.statistics))) if statistic.distribution == "Categorical" else None


def _level(column: Column, value: float) -> str | int | bool:
    """The level that a number in a model stands for: itself where levels are numbers or truth values, otherwise its place."""
    if column.kind in ("numbers", "truth"):
        level: str | int | bool = bool(value) if column.kind == "truth" else int(value)
        if level in column.places and value == int(value):
            return level
    elif value == int(value) and 0 <= value < len(column.levels):
        return column.levels[int(value)]
    raise Refusal(f"The release counts a level that {column.name} does not have: {column.described()}. Declare it, or name other columns.")
