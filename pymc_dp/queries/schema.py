"""What is public about a table: its columns, and for each the closed list of values that questions can tell apart.

A schema is written before any record is read, and never from the records: a list of levels that was read from them, or edges that
are their quantiles, would already give them away. Questions (``language``) and exact answers (``table``) know nothing of a column but this.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np

from pymc_dp.families.values import LARGEST_LEVEL, LONGEST_NAME, number_in, stays_text
from pymc_dp.plans.bins import Bins
from pymc_dp.privacy.accounting import Refusal, nearest_double
from pymc_dp.privacy.layout import as_written, wrapped

MOST_CELLS = 2**24
"""The most cells that a question may tell apart: its weights are an array with one entry for each."""


@dataclass(frozen=True, repr=False)
class Brackets:
    """Brackets of numbers, such as those of income: from each edge, which belongs to the bracket, to the next, which does not.

    Parameters
    ----------
    edges : sequence of numbers
        Finite and increasing, in units of the column: K edges make K - 1 brackets. Values outside are in none.
    labels : sequence of str, optional
        One for each bracket; otherwise they are called "[0, 10000)" and so on.

    See Also
    --------
    pymc_dp.Bins : how an observed variable of a model is released.

    Examples
    --------
    >>> Schema.of({"income": Brackets([0, 10_000, 50_000])}).columns[0].levels
    ('[0, 10000)', '[10000, 50000)')
    """

    edges: Sequence[float]
    labels: Sequence[str] = ()
    __repr__ = as_written


@dataclass(frozen=True)
class Column:
    """One public column of a table.

    A record whose value is none of the levels (missing, not a number, infinite, unknown, beyond the edges) counts in one extra cell,
    the last, so that every record is in exactly one cell whatever it holds.

    Parameters
    ----------
    name : str
    levels : tuple of str, int or bool
        All of one kind and all different; labels of bins where there are edges.
    edges : tuple of float
        Edges of bins; empty otherwise.
    numbers : tuple of int
        The levels again where they are whole numbers, which questions can order and add up; empty otherwise.

    Raises
    ------
    Refusal
    """

    name: str
    levels: tuple[str | int | bool, ...]
    edges: tuple[float, ...] = ()
    numbers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_levels(self.name, self.levels)
        if self.edges:
            _check_edges(self.name, self.edges)
            if not isinstance(self.levels[0], str) or len(self.edges) != len(self.levels) + 1:
                raise Refusal(f"The bins of {self.name} need one label each, which is text. Write one label less than edges.")
        if tuple(self.numbers) != (self.levels if type(self.levels[0]) is int else ()):
            raise Refusal(f"The numbers of {self.name} must be its levels where these are whole numbers. Write Schema.of({{...}}).")

    @property
    def size(self) -> int:
        """Number of cells: one a level, and one for everything else."""
        return len(self.levels) + 1

    @property
    def kind(self) -> str:
        """How levels are told apart: "bins", "numbers", "truth" or "text"."""
        if self.edges:
            return "bins"
        return {int: "numbers", bool: "truth", str: "text"}[type(self.levels[0])]

    @cached_property
    def places(self) -> dict[str | int | bool, int]:
        """The cell of every level."""
        return {level: k for k, level in enumerate(self.levels)}

    @cached_property
    def values(self) -> np.ndarray:
        """What a record of each cell adds to a sum, int64 of shape (size,): its level; the extra cell adds 0."""
        return np.array([*self.numbers, 0], dtype=np.int64)

    @cached_property
    def points(self) -> dict[float, int]:
        """The cells of the levels that are numbers or truth values, or spell them, by their numbers."""
        numbers = (number_in(level) if isinstance(level, str) else float(level) for level in self.levels)
        return {number: k for k, number in enumerate(numbers) if number is not None and isfinite(number)}

    def cell(self, value: object) -> int:
        """The cell of a value that is a bool, a number or text as Python knows them; anything else is in the extra cell.

        A truth value is the number 0 or 1. A number is a double. Text that spells a number or a truth value is that, also where levels are
        text: one record decides whether those who read files of text make numbers of all others.
        """
        other = len(self.levels)
        number = number_in(value) if isinstance(value, str) else value
        if number is None and self.kind == "text" and isinstance(value, str):
            return self.places.get(value, other)
        if not isinstance(number, bool | int | float) or not isfinite(number := nearest_double(number)):
            return other
        if self.kind == "bins":
            return bisect_right(self.edges, number) - 1 if self.edges[0] <= number < self.edges[-1] else other
        return self.points.get(number, other)

    def described(self) -> str:
        """The levels in words, for refusals; long lists are cut short."""
        if self.kind == "bins":
            return f"the edges of {self.name} are {_listed(self.edges, repr_of_edge)}"
        return f"the levels of {self.name} are {_listed(self.levels, repr)}"


@dataclass(frozen=True, repr=False)
class Schema:
    """The public columns of a table, in the order in which questions name them.

    Examples
    --------
    >>> schema = Schema.of({"age": range(0, 100), "sex": ["f", "m"], "income": Brackets([0, 10_000, 50_000, 200_000])})
    >>> [column.size for column in schema.columns]
    [101, 3, 4]
    """

    columns: tuple[Column, ...]

    def __repr__(self) -> str:
        return wrapped(f"Schema: {'; '.join(column.described() for column in self.columns)}")

    def __post_init__(self) -> None:
        if not self.columns or not all(isinstance(column, Column) for column in self.columns):
            raise Refusal('A schema needs its columns. Write for example Schema.of({"age": range(0, 100), "sex": ["f", "m"]}).')
        twice = [name for name, times in Counter(column.name.casefold() for column in self.columns).items() if times > 1]
        if twice:  # of names that differ in case only, databases keep one
            raise Refusal(f"The schema has several columns called {twice[0]}. Write names that differ in more than their case.")

    @classmethod
    def of(cls, columns: Mapping[str, object]) -> "Schema":
        """A schema from names and what their columns hold: a range, a list of levels, or ``Brackets``."""
        if not isinstance(columns, Mapping):
            raise Refusal('A schema is written as a dictionary. Write for example Schema.of({"age": range(0, 100), "sex": ["f", "m"]}).')
        return cls(tuple(_column(name, values) for name, values in columns.items()))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """The column of this name, or a refusal that lists the names there are."""
        if name not in self.names:
            raise Refusal(f"There is no column {_shown(name)} in the schema. Its columns are {_listed(self.names, str)}.")
        return self.columns[self.names.index(name)]


def repr_of_edge(edge: float) -> str:
    """An edge as one would write it: 10000, 0.5."""
    return repr(int(edge)) if edge == int(edge) and abs(edge) < 1e16 else repr(float(edge))


def complete_columns(complete: object, schema: Schema) -> tuple[str, ...]:
    """The columns in which every record is promised to have a level, in the order of the schema."""
    if complete is True:
        return schema.names
    if isinstance(complete, Sequence) and not isinstance(complete, str):
        promised = {schema.column(name).name for name in complete}
        return tuple(name for name in schema.names if name in promised)
    raise Refusal("complete must be True or a list of columns in which every record has a level. Write for example complete=['age'].")


def check_levels_of_text(schema: Schema) -> None:
    """Refuse levels that are text and that one record could turn into something else, where records come from a file of text.

    Those who read such files make numbers, truth values or dates of a column in which all values are such, and text of all where one is
    not. Levels that spell numbers or truth values are told by these; all others must be text to every reader.
    """
    for column in schema.columns:
        same: dict[float, str] = {}
        for level in column.levels if column.kind == "text" else ():
            assert isinstance(level, str)
            number = number_in(level)
            if (number is None or not isfinite(number)) and not stays_text(level):
                raise Refusal(
                    f"The level {_shown(level)} of {column.name} may be a date, a missing value or the like to those who read files, where"
                    " all other records hold such, so that one record would decide how all others are read. Write levels that begin with a"
                    " letter, ranges such as '18-24', or numbers, in the table as well."
                )
            if number in same:
                raise Refusal(
                    f"The levels {_shown(same[number])} and {_shown(level)} of {column.name} are one number to those who read files. Write"
                    " one of them, or others in the table as well."
                )
            if number is not None:
                same[number] = level


def _column(name: object, values: object) -> Column:
    _check_name(name)
    assert isinstance(name, str)
    if isinstance(values, Brackets):
        edges = tuple(_edge(name, edge) for edge in _sequence(name, values.edges, "edges"))
        _check_edges(name, edges)
        labels = _sequence(name, values.labels, "labels") or [
            f"[{repr_of_edge(low)}, {repr_of_edge(high)})" for low, high in pairwise(edges)
        ]
        return Column(name, tuple(labels), edges)
    levels = tuple(int(level) if isinstance(level, Integral) and not isinstance(level, bool) else level for level in _levels(name, values))
    return Column(name, levels, (), levels if all(type(level) is int for level in levels) else ())


def _levels(name: str, values: object) -> list:
    levels = _sequence(name, values, "levels")
    return [bool(level) if isinstance(level, np.bool_) else str(level) if isinstance(level, np.str_) else level for level in levels]


def _sequence(name: str, values: object, what: str) -> list:
    if isinstance(values, range | list | tuple) or (isinstance(values, np.ndarray) and values.ndim == 1):
        if len(values) >= MOST_CELLS:
            raise Refusal(f"{name} has {len(values):,} {what}, and at most {MOST_CELLS - 1:,} can be told apart. Write Brackets([...]).")
        return list(values)
    if isinstance(values, Bins):
        raise Refusal(
            f"{name} has pymc_dp.Bins, which are for an observed variable of a model, and count a value that is an edge below it. Write"
            f' {{"{name}": pymc_dp.queries.Brackets([0, 10, 20])}}, which count it above.'
        )
    raise Refusal(
        f"The {what} of {name} must be a range, a list or Brackets, in an order of their own. "
        f'Write for example {{"{name}": range(0, 100)}}, {{"{name}": ["f", "m"]}} or {{"{name}": Brackets([0, 10, 20])}}.'
    )


def _edge(name: str, edge: object) -> float:
    if isinstance(edge, Real) and not isinstance(edge, bool | np.bool_) and isfinite(number := nearest_double(edge)):
        return number + 0.0  # -0.0 is 0
    raise Refusal(f"The edges of {name} must be finite numbers; values beyond them count in the extra cell. Write Brackets([0, 10, 20]).")


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name or len(name) > LONGEST_NAME or not name.isprintable() or "`" in name or name != name.strip():
        raise Refusal(
            f"A name of a column must be printable text of up to {LONGEST_NAME} characters, without backticks or blanks at its ends. "
            'Write for example "age".'
        )


def _check_levels(name: str, levels: tuple) -> None:
    if not isinstance(levels, tuple) or not levels:
        raise Refusal(f'{name} has no levels. Write for example {{"{name}": ["f", "m"]}}.')
    kinds = {type(level) for level in levels}
    if len(kinds) > 1 or not kinds <= {str, int, bool}:
        raise Refusal(
            f"The levels of {name} must all be text, all be whole numbers or all be truth values. "
            f'Write numbers with fractions as Brackets: {{"{name}": Brackets([0, 0.5, 1])}}.'
        )
    if len(set(levels)) < len(levels):
        twice = next(level for level, times in Counter(levels).items() if times > 1)
        raise Refusal(f"The level {_shown(twice)} of {name} is there more than once. Write every level once.")
    if str in kinds and not all(0 < len(level) <= LONGEST_NAME and level.isprintable() for level in levels):
        raise Refusal(f"Levels of {name} must be printable text of 1 to {LONGEST_NAME} characters. Leave out those that are not.")
    if int in kinds and max(map(abs, levels)) > LARGEST_LEVEL:
        raise Refusal(f"Levels of {name} must lie between -(2**53 - 1) and 2**53 - 1. Write larger numbers as text.")
    if len(levels) >= MOST_CELLS:
        raise Refusal(f"{name} has {len(levels):,} levels, and at most {MOST_CELLS - 1:,} can be told apart. Write Brackets([...]).")


def _check_edges(name: str, edges: tuple[float, ...]) -> None:
    if not all(isinstance(edge, float) and isfinite(edge) for edge in edges):
        raise Refusal(f"The edges of {name} must be finite numbers. Write Brackets([0, 10, 20]).")
    if len(edges) < 2 or any(low >= high for low, high in pairwise(edges)):
        raise Refusal(f"The edges of {name} must be two or more, each larger than the one before. Write Brackets([0, 10, 20]).")


def _listed(things: Sequence, spell: Callable[[Any], str]) -> str:
    if len(things) <= 12:
        return ", ".join(map(spell, things))
    return f"{', '.join(map(spell, things[:8]))}, ..., {spell(things[-1])} ({len(things):,} in all)"


def _shown(thing: object) -> str:
    text = repr(thing)
    return text if len(text) <= 60 else text[:57] + "..."
