"""The counts in a ``Release`` as answered questions: a contingency table is one count for every combination of levels.

The release paid for them, so that they cost nothing here; what they say stands beside what a session asked. Nothing here sees a record.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from re import fullmatch

import numpy as np

from pymc_dp.models.public_inputs import may_be_an_array
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.queries.expressions import col, count
from pymc_dp.queries.history import Answered
from pymc_dp.queries.language import question
from pymc_dp.queries.schema import Column, Schema
from pymc_dp.releases.noisy_statistic import NoisyStatistic
from pymc_dp.releases.release import Release

COUNTS = {"zeros": 0, "ones": 1}
"""Names of the statistics of a Bernoulli variable, and the values they count."""


type Orders = Mapping[str, Sequence[object]]
"""By column, the levels that a release's numbers 0, 1, 2, ... stand for."""


def counted(
    release: Release, schema: Schema, columns: Mapping[str, str | Sequence[str]] | None, neighbours: str, records: int | None = None,
    orders: Orders | None = None,
) -> tuple[Answered, ...]:  # fmt: skip
    """Every count of every observed variable, as the answer to a question: see ``QuerySession.add``.

    Under "replace" a count that moves by 1 has sensitivity 1, whatever the table's: a record that changes cells moves two of them, and
    both are in the history.

    Parameters
    ----------
    records : int or None
        How many there are, where that is public.
    orders : mapping, optional
        See ``QuerySession.add``.
    """
    if release.disjoint:
        raise Refusal("This release counts different people in its observed variables, which are no columns of one table. Add others.")
    names = {statistic.variable for statistic in release.statistics}
    if columns is not None and (not isinstance(columns, Mapping) or not set(columns) <= names):
        raise Refusal(f"columns must give the columns of observed variables, which are {', '.join(sorted(names))}.")
    known = _checked_orders(orders, schema)
    several = [(statistic, _columns(statistic, schema, (columns or {}).get(statistic.variable))) for statistic in release.statistics]
    touched = {column.name for _, of_statistic in several for column in of_statistic}
    if strange := [name for name in known if name not in touched]:
        raise Refusal(f"levels names {strange[0]}, which the release is not said to count by. Leave it out, or name it in columns.")
    for statistic, _ in several:
        if statistic.n.size and records is not None and (many := int(statistic.n.sum())) != records:
            raise Refusal(f"{statistic.variable} was released from {many:,} records, and the session has {records:,}. Add others.")
    return tuple(answered for statistic, of_statistic in several for answered in _cells(statistic, schema, of_statistic, neighbours, known))


def _checked_orders(orders: object, schema: Schema) -> dict[str, tuple[str | int | bool, ...]]:
    """For every column that is named the levels in the order of a release's numbers: all of them, each once."""
    if orders is not None and not isinstance(orders, Mapping):
        raise Refusal('levels says by column what 0, 1, ... stand for. Write for example levels={"sex": ["f", "m"]}.')
    result = {}
    for name, order in (orders or {}).items():
        column = schema.column(name)
        listed = list(order) if isinstance(order, Sequence | np.ndarray) and not isinstance(order, str) else []
        places = [column.places[level] for level in listed if isinstance(level, str | int | bool) and level in column.places]
        if sorted(places) != list(range(len(column.levels))) or len(listed) != len(places):
            raise Refusal(f"levels must hold every level of {name} once, that of the release's number 0 first: {column.described()}.")
        result[name] = tuple(column.levels[place] for place in places)
    return result


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


def _cells(
    statistic: NoisyStatistic, schema: Schema, columns: Sequence[Column], neighbours: str, orders: Mapping[str, tuple]
) -> Iterable[Answered]:
    values = _values(statistic)
    rowwise = statistic.noisy.ndim == 2 and all(codes.shape == (len(statistic.noisy),) for codes in statistic.inputs)
    as_drawn = statistic.mechanism == "laplace" and not statistic.deviation and statistic.divisor == 1 and statistic.lattice == 1
    if values is None or not rowwise or not as_drawn:
        raise Refusal(
            f"{statistic.variable} was not released as counts with Laplace noise of their own, so it says nothing about single questions."
            " Add releases of Bernoulli or Categorical variables, or of tables of counts."
        )
    if not all(may_be_an_array(told) for told in statistic.told if told):
        raise Refusal(
            f"The release of {statistic.variable} counts by what its model computes from a public array, which is no column of a table. Add"
            " releases that count by the columns themselves."
        )
    counted_values, every = values
    orders = {**orders, **_told(statistic, columns, orders)}
    for column, codes, private in zip(columns, (*statistic.inputs, np.array(every)), (*_private(statistic), True), strict=True):
        known = {_level(column, float(code), orders) for code in np.unique(codes)}
        if private and len(known) < len(column.levels):
            other = next(level for level in column.levels if level not in known)
            raise Refusal(
                f"The release of {statistic.variable} does not tell the level {other!r} of {column.name}: records that have it were counted"
                f" as another, the nearest. Release it with all levels of {column.name}, or name other columns."
            )
    for cell, counts in enumerate(statistic.noisy):
        where = [float(codes[cell]) for codes in statistic.inputs]
        for value, noisy in zip(counted_values, counts, strict=True):
            meets = [col(column.name) == _level(column, at, orders) for column, at in zip(columns, (*where, value), strict=True)]
            condition = meets[0]
            for other in meets[1:]:
                condition = condition & other
            asked = question(count(condition), schema)
            epsilon = Fraction(asked.sensitivity(neighbours)) / Fraction(statistic.scale)
            yield Answered(asked, epsilon, statistic.scale, int(noisy))


def _told(statistic: NoisyStatistic, columns: Sequence[Column], orders: Mapping[str, tuple]) -> dict[str, tuple]:
    """The orders of columns of text in which the release says what its numbers stand for, by all levels of the schema."""
    told = {}
    for column, labels in zip(columns, statistic.labels, strict=False):
        if column.kind in ("numbers", "truth") or sorted(labels) != sorted(map(str, column.levels)):
            continue
        if orders.get(column.name, labels) != labels:
            raise Refusal(f"levels says another order of {column.name} than the model that was released. Leave it out.")
        told[column.name] = labels
    return told


def _private(statistic: NoisyStatistic) -> list[bool]:
    """Which of the inputs are private, so that what is none of their levels was moved to one: they differ within a public cell.

    One that is the same everywhere is taken for private, too: an index into a table of one row.
    """
    inside = [codes.reshape(-1, statistic.private_cells) for codes in statistic.inputs]
    return [bool((codes != codes[:, :1]).any() or (codes == codes[0, 0]).all()) for codes in inside]


def _values(statistic: NoisyStatistic) -> tuple[list[int], list[int]] | None:
    """What the statistics count, where they count records with one value each, and all values that these records can have."""
    if statistic.regression is not None or statistic.structure == "aggregate" or statistic.in_bins or statistic.domain.columns:
        return None
    if not statistic.tabulated and statistic.distribution == "Bernoulli":
        return [COUNTS[name] for name in statistic.statistics], list(COUNTS.values())
    if not statistic.tabulated and statistic.distribution != "Categorical":
        return None
    matches = [fullmatch("(?:level|value) (-?[0-9]+)", name) for name in statistic.statistics]
    counted_values = [int(match[1]) for match in matches if match is not None]
    if len(counted_values) < len(matches):
        return None
    every = counted_values if statistic.tabulated else list(range(statistic.domain.levels))
    return counted_values, every


def _level(column: Column, value: float, orders: Mapping[str, tuple]) -> str | int | bool:
    """The level that a number in a release stands for: the one that ``orders`` says, or the number itself where levels are such."""
    order = orders.get(column.name)
    if order is not None:
        if value == int(value) and 0 <= value < len(order):
            return order[int(value)]
    elif column.kind in ("numbers", "truth"):
        level: str | int | bool = bool(value) if column.kind == "truth" else int(value)
        if level in column.places and value == int(level):
            return level
    else:
        raise Refusal(
            f"The release counts by numbers, and the levels of {column.name} are text: say which is which. Write levels={{{column.name!r}:"
            f" [...]}}, the level that the model numbers 0 first; {column.described()}."
        )
    raise Refusal(f"The release counts a level that {column.name} does not have: {column.described()}. Declare it, or name other columns.")
