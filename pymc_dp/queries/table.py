"""Exact integer answers to questions about a table. Only this module, and ``batches`` and ``persons`` for it, read a record.

The SQL is ours alone: it maps every touched column to the cell of its schema and counts records per cell; the rest is a sum of integers. So
the answer does not depend on the order of rows, on threads, on chunks, or on whether 3 is stored as 3, 3.0 or "3". Nothing in it can fail
because of a value: a value that is no level, whatever it is, is in the extra cell. The cell of a record depends on that record alone, so
how a column is read is decided by its type and never by its values.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import prod
from typing import Any, NoReturn

import numpy as np

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.guard import boundary
from pymc_dp.privacy.mechanisms import LARGEST_SUM
from pymc_dp.queries.batches import batches_of
from pymc_dp.queries.language import LARGEST_WEIGHT, Question
from pymc_dp.queries.persons import check_person, kept_cells
from pymc_dp.queries.schema import Column, Schema, check_levels_of_text
from pymc_dp.queries.sql import cell_of, number_and_text
from pymc_dp.releases.duck import batches_from, quoted
from pymc_dp.releases.headers import Words, alone, check_columns, check_database, rows_in, table_of
from pymc_dp.releases.stored import is_one

CELLS_AT_ONCE = 2**20
"""Questions about different columns are answered by one scan while it tells apart at most so many cells."""

_WORDS = Words(
    "The table",
    "A table",
    "Write for example pandas.DataFrame(...), or write a Parquet file and give its path.",
    "Rename its columns, or leave {0} out of the schema.",
    "Rename it, or leave {0} out of the schema.",
    several=False,
)


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Records behind their schema. It says nothing of them, and cannot be copied or pickled. Made by ``Table.of``.

    Attributes
    ----------
    schema : Schema
    source : object
        The table as it was given; a path is absolute.
    person : tuple of str and int, or None
        The column that says whose a row is, and how many rows of a person count.
    """

    schema: Schema
    source: Any
    person: tuple[str, int] | None = None

    @classmethod
    @boundary
    def of(cls, source: object, schema: Schema, person: tuple[object, int] | None = None) -> "Table":
        """A table that questions of this schema can be asked of; only the names of its columns are looked at.

        Parameters
        ----------
        source : path of a Parquet file, pyarrow.Table, pandas.DataFrame, polars.DataFrame or duckdb relation
            One record a row. It has the columns of the schema under the same names, and any others. It must stay as it is while questions
            are asked. Of DuckDB only what ``connection.table(...)`` gives, of a table without computed columns: a view or a query is
            computed anew for every question, and one that fails because of one record would show it.
        schema : Schema
        person : tuple of str and int, optional
            The column that says whose a row is, and how many rows of a person count: of others there is then nothing in any answer.

        Raises
        ------
        Refusal
            When it is none of these, a column is missing or there twice, its type is not pandas' own, one record could decide how levels
            of text are read, or DuckDB is not installed.
        """
        if not isinstance(schema, Schema):
            raise Refusal('A table needs a schema. Write for example Schema.of({"age": range(0, 100), "sex": ["f", "m"]}).')
        check_levels_of_text(schema)
        _installed()
        source = table_of(source, _WORDS)
        names = check_columns(source, schema.names, _WORDS)
        if person is None:
            return cls(schema, source)
        check_person(person[0], source, names)
        check_columns(source, [str(person[0])], _WORDS)
        return cls(schema, source, (str(person[0]), person[1]))

    @property
    @boundary
    def records(self) -> int:
        """Number of records. Public under "replace" only; no column is read."""
        return rows_in(self.source)

    @boundary
    def totals(self, questions: Sequence[Question]) -> list[int]:
        """For every question the sum over records of the weight of their cell, in lattice units: exact.

        It is private data and goes to the noise and nowhere else, after it was charged for. Many questions are answered by one scan
        where their columns have few cells together. A sum beyond 2**62, which takes more than 2**31 records, stays there: that moves two
        answers no further apart, so sensitivities hold for any number of records.

        Raises
        ------
        Refusal
            When a question is of another schema.
        PrivateComputationError
            When the table cannot be read; always in the same words.
        """
        for question in questions:
            _check(question, self.schema)
        with alone(self.source):
            return self._totals(questions)

    def _totals(self, questions: Sequence[Question]) -> list[int]:
        margins: dict[tuple[str, ...], np.ndarray] = {}
        for names in _scans({question.columns for question in questions if question.columns}, self.schema):
            columns = [self.schema.column(name) for name in names]
            inside = [question for question in questions if question.columns and set(question.columns) <= set(names)]
            if self.person is None:
                counted = _counted(self.source, columns, [_starts(column, inside) for column in columns])
            else:
                counted = _counted_among(self._kept, self.schema, columns)
            for asked in {question.columns for question in inside} - margins.keys():
                margins[asked] = _margin(counted, columns, asked)
        if any(not question.columns for question in questions):
            margins[()] = np.array(self.records if self.person is None else len(self._kept), dtype=np.int64)
        return [_dot(question.weights, margins[question.columns]) for question in questions]

    @cached_property
    def _kept(self) -> np.ndarray:
        """The cells of the rows that count: read once, after the first charge."""
        assert self.person is not None
        if is_one(self.source, "duckdb", "DuckDBPyRelation"):
            check_database(self.source)
        return kept_cells(self.source, self.schema, *self.person, _connection)

    def __repr__(self) -> str:
        return f"Table({', '.join(self.schema.names)})"

    def __reduce__(self) -> NoReturn:
        """A pickle would carry the records."""
        raise TypeError("A table cannot be copied or pickled.")


def _check(question: Question, schema: Schema) -> None:
    there = set(question.columns) <= set(schema.names)
    if not there or question.weights.shape != tuple(schema.column(name).size for name in question.columns):
        raise Refusal("The question is of another schema than the table. Ask it again: question(text, schema).")
    if max(-int(question.weights.min()), int(question.weights.max())) > LARGEST_WEIGHT:
        raise Refusal(f"One record would add more than {LARGEST_WEIGHT} to the answer. Make the question by question(text, schema).")


def _scans(asked: Collection[tuple[str, ...]], schema: Schema) -> list[tuple[str, ...]]:
    """Columns to be read together, such that those of every question are: in few scans of few cells each."""
    scans: list[set[str]] = []
    for names in sorted(asked, key=lambda names: (-len(names), names)):
        for scan in scans:
            wider = scan | set(names)
            if wider == scan or prod(schema.column(name).size for name in wider) <= CELLS_AT_ONCE:
                scan |= wider
                break
        else:
            scans.append(set(names))
    return [tuple(name for name in schema.names if name in scan) for scan in scans]


def _starts(column: Column, questions: Sequence[Question]) -> list[int]:
    """Where runs of levels begin between which no question tells."""
    differ = np.zeros(column.size - 1, dtype=bool)
    for question in questions:
        if column.name in question.columns:
            slices = np.moveaxis(question.weights, question.columns.index(column.name), 0).reshape(column.size, -1)
            differ |= (slices[1:] != slices[:-1]).any(axis=1)
    return [0, *(np.flatnonzero(differ[:-1]) + 1).tolist()]


def _margin(counted: tuple[np.ndarray, np.ndarray], columns: Sequence[Column], asked: tuple[str, ...]) -> np.ndarray:
    """Numbers of records by the cells of some of the columns: int64, shape (size of each)."""
    cells, numbers = counted
    places = dict(zip([column.name for column in columns], np.unravel_index(cells, [column.size for column in columns]), strict=True))
    margin = np.zeros([column.size for column in columns if column.name in asked], dtype=np.int64)
    np.add.at(margin, tuple(places[name] for name in asked), numbers)
    return margin


def _dot(weights: np.ndarray, numbers: np.ndarray) -> int:
    # Two halves of each weight, at most 2**16 each: both sums fit 64 bits for up to 2**46 records.
    high, low = weights >> 16, weights & 0xFFFF
    total = (int((high * numbers).sum()) << 16) + int((low * numbers).sum())
    return max(-(LARGEST_SUM - 1), min(LARGEST_SUM - 1, total))


def _installed() -> None:
    try:
        import duckdb  # noqa: F401
        import pyarrow  # noqa: F401
    except ImportError:
        raise Refusal(
            "Questions about tables need DuckDB and pyarrow, which are not installed. Write pip install pymc_dp[queries]."
        ) from None


# ---------------------------------------------------------------- records per cell


def _counted(source: Any, columns: Sequence[Column], starts: Sequence[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Cells that occur, as places in the flattened product of the columns, and numbers of records in them: int64, shapes (G,)."""
    if is_one(source, "duckdb", "DuckDBPyRelation"):
        check_database(source)
        stored = [f"{quoted(column.name)} AS value{axis}" for axis, column in enumerate(columns)]
        return _grouped(source.project(", ".join(stored)), columns, starts)
    batches = batches_of(source, columns)
    first = next(batches, None)
    if first is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    with _connection() as connection:
        import pyarrow as pa

        stream = pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))
        return _grouped(connection.from_arrow(stream), columns, starts)


def _counted_among(kept: np.ndarray, schema: Schema, columns: Sequence[Column]) -> tuple[np.ndarray, np.ndarray]:
    """The cells with rows that count, and how many lie in each, from the cells of these rows in all columns of the schema."""
    places = [kept[:, schema.names.index(column.name)] for column in columns]
    cells, numbers = np.unique(np.ravel_multi_index(places, [column.size for column in columns]), return_counts=True)
    return cells.astype(np.int64), numbers.astype(np.int64)


@contextmanager
def _connection() -> Iterator[Any]:
    """A database in memory: nothing is loaded, fetched, opened, spilled to a file or remembered."""
    import duckdb

    settings: dict[str, Any] = {
        "autoload_known_extensions": False,
        "autoinstall_known_extensions": False,
        "allow_community_extensions": False,
        "allow_persistent_secrets": False,
        "python_enable_replacements": False,
        "temp_directory": "",
    }
    with duckdb.connect(":memory:", config=settings) as connection:
        # In a Jupyter kernel without ipywidgets there is no bar, and DuckDB refuses every word about it, "none" included.
        if connection.execute("SELECT current_setting('enable_progress_bar')").fetchone() != (False,):
            connection.execute("SET enable_progress_bar = false")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection


def _grouped(relation: Any, columns: Sequence[Column], starts: Sequence[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Records per cell of a relation, whose columns are value0 or, where cells were found before, cell0 and so on.

    They are counted in an array of all cells that there are. Grouped by the database they would take the more of its memory the more of
    them occur, so that one record could decide whether it fails, or writes to a disk.
    """
    read, cell, stride = [], [], 1
    for axis in reversed(range(len(columns))):
        column, name = columns[axis], relation.columns[axis]
        if name.startswith("cell"):
            read.append(name)
            cell.append(f"{name} * {stride}")
        else:
            number, text = number_and_text(column, name, relation.types[axis].id)
            read += [f"{number} AS n{axis}", f"{text} AS t{axis}"]
            cell.append(f"{cell_of(column, f'n{axis}', None if text == 'NULL' else f't{axis}', starts[axis])} * {stride}")
        stride *= column.size
    found = relation.project(", ".join(read)).project(f"CAST({' + '.join(cell)} AS INTEGER) AS cell")
    numbers = np.zeros(stride, dtype=np.int64)
    for batch in batches_from(found):
        np.add.at(numbers, batch.column(0).to_numpy(), 1)
    cells = np.flatnonzero(numbers)
    return cells, numbers[cells]
