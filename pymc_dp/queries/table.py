"""Questions and a table -> exact integer answers. In the query room this is the only module that sees a record.

The SQL is ours alone: it maps every touched column to the cell of its schema and counts records per cell; the rest is a sum of integers. So
the answer does not depend on the order of rows, on threads, on chunks, or on whether 3 is stored as 3, 3.0 or "3". Nothing in it can fail
because of a value: a value that is no level, whatever it is, is in the extra cell.
"""

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, pairwise
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from pymc_dp.accounting import Refusal
from pymc_dp.boundary import boundary
from pymc_dp.mechanisms import LARGEST_SUM
from pymc_dp.queries.language import LARGEST_WEIGHT, Question
from pymc_dp.queries.schema import LARGEST_LEVEL, LONGEST_SPELLED, SPELLED, TRUTHS, Column, Schema

CELLS_AT_ONCE = 2**20
"""Questions about different columns are answered by one scan while it tells apart at most so many cells."""

ROWS_AT_ONCE = 2**17
"""Rows that are read together."""

_KINDS = "the path of a Parquet file, a pyarrow Table, a pandas or polars DataFrame, or a table of a DuckDB database"


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Records behind their schema. It says nothing of them, and cannot be copied or pickled. Made by ``Table.of``.

    Attributes
    ----------
    schema : Schema
    source : object
        As it was given; a path is absolute.
    """

    schema: Schema
    source: Any

    @classmethod
    @boundary
    def of(cls, source: object, schema: Schema) -> "Table":
        """A table that questions of this schema can be asked of; only the names of its columns are looked at.

        Parameters
        ----------
        source : path of a Parquet file, pyarrow.Table, pandas.DataFrame, polars.DataFrame or duckdb relation
            One record a row. It has the columns of the schema under the same names, and any others. It must stay as it is while questions
            are asked. Of DuckDB only what ``connection.table(...)`` gives, of a table without computed columns: a view or a query is
            computed anew for every question, and one that fails because of one record would show it.
        schema : Schema

        Raises
        ------
        Refusal
            When it is none of these, a column is missing or there twice, or DuckDB is not installed.
        """
        if not isinstance(schema, Schema):
            raise Refusal('A table needs a schema. Write for example Schema.of({"age": range(0, 100), "sex": ["f", "m"]}).')
        _installed()
        if isinstance(source, str | PathLike):
            source = _file(source)
        names = _names(source)
        if names is None:
            raise Refusal(f"A table must be {_KINDS}. Write for example pandas.DataFrame(...), or write a Parquet file and give its path.")
        for wanted in schema.names:
            if names.count(wanted) != 1:
                there = "no column" if wanted not in names else "several columns"
                raise Refusal(f"The table has {there} called {wanted}. Rename its columns, or leave {wanted} out of the schema.")
        return cls(schema, source)

    @property
    @boundary
    def records(self) -> int:
        """Number of records. Public under "replace" only; no column is read."""
        if isinstance(self.source, Path):
            from pyarrow import parquet

            return int(parquet.read_metadata(self.source).num_rows)
        if _is(self.source, "duckdb", "DuckDBPyRelation"):
            return int(self.source.aggregate("count(*)").fetchall()[0][0])
        return len(self.source)

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
        found: dict[tuple[str, ...], np.ndarray] = {}
        for names in _scans({question.columns for question in questions if question.columns}, self.schema):
            columns = [self.schema.column(name) for name in names]
            inside = [question for question in questions if question.columns and set(question.columns) <= set(names)]
            counted = _counted(self.source, columns, [_starts(column, inside) for column in columns])
            for asked in {question.columns for question in inside} - found.keys():
                found[asked] = _margin(counted, columns, asked)
        if any(not question.columns for question in questions):
            found[()] = np.array(self.records, dtype=np.int64)
        return [_dot(question.weights, found[question.columns]) for question in questions]

    def __repr__(self) -> str:
        return f"Table({', '.join(self.schema.names)})"

    def __reduce__(self):
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
    for names in sorted(asked, key=lambda one: (-len(one), one)):
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


# ---------------------------------------------------------------- what a table is


def _is(table: object, module: str, *names: str) -> bool:
    """Whether a table is of one of these classes, without importing what was not imported."""
    there = sys.modules.get(module)
    return there is not None and isinstance(table, tuple(getattr(there, name) for name in names))


def _file(path: str | PathLike) -> Path:
    try:
        file = Path(path).absolute()
        there = file.is_file()
    except (TypeError, ValueError, OSError):
        there = False
    if not there:
        raise Refusal("There is no file at this path. Write the path of one Parquet file.")
    return file


def _names(source: object) -> list | None:
    """Names of the columns, or None where this is no table."""
    if isinstance(source, Path):
        from pyarrow import ArrowException, parquet

        try:
            return list(parquet.read_schema(source).names)
        except (ArrowException, OSError):
            raise Refusal("The file at this path is no Parquet file. Write for example frame.to_parquet(path).") from None
    if _is(source, "pyarrow", "Table", "RecordBatch"):
        return list(source.schema.names)  # type: ignore[attr-defined]
    if _is(source, "duckdb", "DuckDBPyRelation"):
        if source.type != "TABLE_RELATION":  # type: ignore[attr-defined]
            raise Refusal(
                "A view or a query of DuckDB is computed anew for every question, and could fail because of one record. "
                'Write relation.create("records") and give connection.table("records").'
            )
        return list(source.columns)  # type: ignore[attr-defined]
    if _is(source, "pandas", "DataFrame") or _is(source, "polars", "DataFrame"):
        return list(source.columns)  # type: ignore[attr-defined]
    return None


# ---------------------------------------------------------------- records per cell


def _counted(source: Any, columns: Sequence[Column], starts: Sequence[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Cells that occur, as places in the flattened product of the columns, and numbers of records in them: int64, shapes (G,)."""
    if _is(source, "duckdb", "DuckDBPyRelation"):
        types = dict(zip(source.columns, source.types, strict=True))
        stored = ["NULL" if types[column.name].id == "blob" else _quoted(column.name) for column in columns]  # below, bytes are text
        return _grouped(source.project(", ".join(f"{one} AS value{axis}" for axis, one in enumerate(stored))), columns, starts)
    batches = _batches(source, columns)
    first = next(batches, None)
    if first is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    with _connection() as connection:
        import pyarrow as pa

        stream = pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))
        return _grouped(connection.from_arrow(stream), columns, starts)


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
        connection.execute("SET enable_progress_bar = false")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection


def _grouped(relation: Any, columns: Sequence[Column], starts: Sequence[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Records per cell of a relation, whose columns are value0 or, where cells were found before, cell0 and so on."""
    read, cell, stride = [], [], 1
    for axis in reversed(range(len(columns))):
        column, name = columns[axis], relation.columns[axis]
        if name.startswith("cell"):
            read.append(name)
            cell.append(f"{name} * {stride}")
        else:
            number, text = _read(column, name, relation.types[axis].id)
            read += [f"{number} AS n{axis}", f"{text} AS t{axis}"]
            cell.append(f"{_cell(column, f'n{axis}', None if text == 'NULL' else f't{axis}', starts[axis])} * {stride}")
        stride *= column.size
    values = relation.project(", ".join(read))
    found = values.project(f"CAST({' + '.join(cell)} AS INTEGER) AS cell").aggregate("cell, count(*) AS number", "cell").fetchnumpy()
    return np.asarray(found["cell"], dtype=np.int64), np.asarray(found["number"], dtype=np.int64)


# ---------------------------------------------------------------- SQL of one column

_SHORT = {"tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint", "float", "double", "boolean"}
"""Types that DuckDB turns into the nearest double."""

_LONG = {"decimal", "hugeint", "uhugeint", "bignum"}
"""Types that it turns into the nearest double by way of text only."""


def _read(column: Column, name: str, kind: str) -> tuple[str, str]:
    """A stored value as SQL: as a number, the nearest double, and as the bytes of text, which no collation compares in its own way.

    NULL is what it is not, or not asked for; a value that is neither is in the extra cell. See ``Column.cell``.
    """
    if kind in _SHORT:
        return f"CAST({name} AS DOUBLE)", "NULL"
    if kind in _LONG:
        return f"TRY_CAST(CAST({name} AS VARCHAR) AS DOUBLE)", "NULL"
    if kind not in ("varchar", "enum", "blob"):
        return "NULL", "NULL"
    # Bytes need not be text; of those that are not plain ASCII, and so spell no number, the cast makes escapes.
    text = name if kind == "blob" else f"encode(CAST({name} AS VARCHAR))"
    if column.kind == "text":
        return "NULL", text
    shown = f"CAST({text} AS VARCHAR)"
    spelled = f"octet_length({text}) <= {LONGEST_SPELLED} AND regexp_full_match({shown}, {_text(SPELLED)})"
    return f"CASE WHEN {spelled} THEN TRY_CAST({shown} AS DOUBLE) END", text if column.kind == "truth" else "NULL"


def _cell(column: Column, number: str, text: str | None, starts: list[int]) -> str:
    """The cell of a value that was read, as SQL."""
    other = str(column.size - 1)
    if column.kind == "text" and text is not None:
        return _looked_up(text, {_bytes(level): k for k, level in enumerate(column.levels)}, "from_hex({})", other)
    if column.kind == "bins":
        return _binned(column, number, starts)
    if column.kind == "numbers" and all(low + 1 == high for low, high in pairwise(column.numbers)):
        low, high = (_double(end) for end in (column.numbers[0], column.numbers[-1]))
        inside = f"{number} >= {low} AND {number} <= {high} AND {number} = trunc({number})"
        return f"CASE WHEN {inside} THEN coalesce(TRY_CAST({number} - {low} AS INTEGER), {other}) ELSE {other} END"
    points = {repr(float(point)): k for k, level in enumerate(column.levels) if (point := _point(level)) is not None}
    cell = _looked_up(number, points, "CAST({} AS DOUBLE)", other)
    if column.kind == "truth" and text is not None:
        words = {_bytes(word): column.places[truth] for word, truth in TRUTHS.items() if truth in column.places}
        return _looked_up(text, words, "from_hex({})", cell)
    return cell


def _point(level: str | int | bool) -> int | None:
    """The number that a level is; of text, the whole number of which it is the digits."""
    if not isinstance(level, str):
        return int(level)
    digits = level.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 17):
        return None
    return int(level) if str(int(level)) == level and abs(int(level)) <= LARGEST_LEVEL else None


def _looked_up(value: str, cells: dict[str, int], spelled: str, otherwise: str) -> str:
    """The cell of a value among those listed; by a hash join with one long text, so that a list may be long."""
    if not cells:
        return otherwise
    listed, places = (f"unnest(string_split('{','.join(map(str, each))}', ','))" for each in (cells, cells.values()))
    return (
        f"coalesce((SELECT l.k FROM (SELECT {spelled.format(listed)} AS v, CAST({places} AS INTEGER) AS k) AS l WHERE l.v = {value}), "
        f"{otherwise})"
    )


def _binned(column: Column, number: str, starts: list[int]) -> str:
    """The bin of a number, by halving; bins between which no question tells are taken for the first of them."""

    def halved(low: int, high: int) -> str:
        if low == high:
            return str(starts[low])
        middle = (low + high + 1) // 2
        edge = _double(column.edges[starts[middle]])
        return f"CASE WHEN {number} < {edge} THEN {halved(low, middle - 1)} ELSE {halved(middle, high)} END"

    inside = f"{number} >= {_double(column.edges[0])} AND {number} < {_double(column.edges[-1])}"
    return f"CASE WHEN {inside} THEN {halved(0, len(starts) - 1)} ELSE {column.size - 1} END"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _bytes(text: object) -> str:
    """Text as the digits of its bytes, which are compared as they are, whatever the collation."""
    return str(text).encode().hex()


def _double(number: float) -> str:
    """A number as SQL: text, because a decimal literal would have a type of its own."""
    return f"CAST('{number!r}' AS DOUBLE)"


# ---------------------------------------------------------------- tables outside of databases, as Arrow


def _batches(source: Any, columns: Sequence[Column]) -> Iterator[Any]:
    """The touched columns, some rows at a time, as record batches of columns value0, or cell0 where cells are found, and so on."""
    import pyarrow as pa

    for arrays in _chunks(source, [column.name for column in columns]):
        ready = [_ready(values, column) for values, column in zip(arrays, columns, strict=True)]
        names = [f"{'cell' if found else 'value'}{axis}" for axis, (_, found) in enumerate(ready)]
        yield pa.record_batch([array for array, _ in ready], names=names)


def _chunks(source: Any, names: Sequence[str]) -> Iterator[list]:
    """The columns of these names, some rows at a time: each an Arrow array, or Python values where Arrow cannot hold the column."""
    if isinstance(source, Path):
        from pyarrow import parquet

        with parquet.ParquetFile(source) as file:
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=list(names), use_threads=True):
                yield [batch.column(batch.schema.names.index(name)) for name in names]
    elif _is(source, "pyarrow", "Table", "RecordBatch"):
        here = source.select([source.schema.names.index(name) for name in names])
        for batch in [here] if _is(here, "pyarrow", "RecordBatch") else here.to_batches(ROWS_AT_ONCE):
            yield batch.columns
    else:
        whole = [_column(source, name) for name in names]
        for start in range(0, len(source), ROWS_AT_ONCE):
            yield [values[start : start + ROWS_AT_ONCE] for values in whole]


def _column(frame: Any, name: str) -> Any:
    """One column of a frame as an Arrow array, or as Python values where Arrow cannot hold it."""
    import pyarrow as pa

    if _is(frame, "pandas", "DataFrame"):
        series = frame.iloc[:, list(frame.columns).index(name)]
        if not isinstance(series.dtype, np.dtype):
            found = _held(lambda: pa.array(series))
        elif series.dtype.kind in "biuf":
            found = pa.array(series.to_numpy().astype("float64") if series.dtype.kind == "f" else series.to_numpy())
        else:
            found = None
        return list(series) if found is None else found
    series = frame.get_column(name)
    found = None if series.dtype.is_(sys.modules["polars"].Object) else _held(series.to_arrow)  # Arrow would get addresses of objects
    return series.to_list() if found is None else found


def _held(convert: Callable[[], Any]) -> Any:
    """A column as one Arrow array, or None where that fails: then it is read value by value, to the same effect."""
    import pyarrow as pa

    try:
        array = convert()
        return pa.chunked_array(array).combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    except Exception:
        return None


def _ready(values: Any, column: Column) -> tuple[Any, bool]:
    """An array that DuckDB reads as numbers, truth values or bytes, and whether it holds cells; which, only the type decides.

    Text goes as bytes, which DuckDB does not check. What is neither is no level, so it may as well be missing.
    """
    import pyarrow as pa
    from pyarrow import compute, types

    if isinstance(values, list):
        return pa.array(_cells(values, column)), True
    if types.is_run_end_encoded(values.type):
        values = compute.run_end_decode(values)
    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if types.is_decimal(kind) and (kind.precision > 38 or kind.scale < 0):  # which DuckDB does not know
        return pa.array(_cells(values.to_pylist(), column)), True
    if types.is_float16(kind):
        return values.cast(pa.float32()), False
    if types.is_decimal(kind):
        return values.cast(pa.decimal128(kind.precision, kind.scale)), False
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return values.cast(pa.binary_view() if types.is_string_view(kind) else pa.large_binary()), False
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return values, False
    return pa.nulls(len(values), pa.int8()), False


def _cells(values: Sequence[object], column: Column) -> np.ndarray:
    """The cell of every value, int32 of shape (N,)."""
    known: dict[object, int] = {}
    cells = np.empty(len(values), dtype=np.int32)
    for n, value in enumerate(values):
        plain = value if type(value) is str else _plain(value)
        cell = known.get(plain)
        if cell is None:
            cell = known[plain] = column.cell(plain)
        cells[n] = cell
    return cells


def _plain(value: object) -> bool | int | float | str | None:
    """A value as Python's own bool, int, float or str; None where it is none of these, not a number, or fails at being asked."""
    try:
        kind = type(value)
        if issubclass(kind, np.generic):
            value = float(value) if issubclass(kind, np.floating) else value.item()  # type: ignore[attr-defined, arg-type]
            kind = type(value)
        if kind is bool or value is None:
            return value  # type: ignore[return-value]
        if kind is Decimal:
            value, kind = float(value), float  # type: ignore[arg-type]
        if issubclass(kind, float):
            number = float.__float__(value)  # type: ignore[arg-type]
            return number if number == number else None
        if issubclass(kind, str):
            return str.__str__(value)
        return int.__int__(value) if issubclass(kind, int) else None  # type: ignore[arg-type]
    except Exception:
        return None
