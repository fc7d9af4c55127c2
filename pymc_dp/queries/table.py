"""Questions and a table -> exact integer answers. In the query room this is the only module that sees a record.

The SQL is ours alone: it maps every touched column to the cell of its schema and counts records per cell; the rest is a sum of integers. So
the answer does not depend on the order of rows, on threads, on chunks, or on whether 3 is stored as 3, 3.0 or "3". Nothing in it can fail
because of a value: a value that is no level, whatever it is, is in the extra cell. The cell of a record depends on that record alone, so
how a column is read is decided by its type and never by its values.
"""

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
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
from pymc_dp.queries.schema import LARGEST_LEVEL, LONGEST_NAME, LONGEST_SPELLED, SPELLED, TRUTHS, Column, Schema

CELLS_AT_ONCE = 2**20
"""Questions about different columns are answered by one scan while it tells apart at most so many cells."""

ROWS_AT_ONCE = 2**17
"""Rows that are read together."""

LONGEST_TEXT = 4 * max(LONGEST_NAME, LONGEST_SPELLED)
"""Bytes of text that may be a level or spell a number. Longer text is neither, so nobody reads it."""

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
            When it is none of these, a column is missing or there twice, its type is not pandas' own, or DuckDB is not installed.
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
            if isinstance(source, Path) and any(wanted.startswith(f"{name}.") for name in names):
                raise Refusal(f"{wanted} could be a part of another column of the file. Rename it, or leave it out of the schema.")
            if _is(source, "pandas", "DataFrame") and not _is_of_pandas(source.dtypes.iloc[names.index(wanted)]):  # type: ignore[attr-defined]
                raise Refusal(
                    f"{wanted} is of a type that is not pandas' own, and could fail because of one record. Write frame.astype(...)."
                )
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
        _check_database(source)
        return list(source.columns)  # type: ignore[attr-defined]
    if _is(source, "pandas", "DataFrame") or _is(source, "polars", "DataFrame"):
        return list(source.columns)  # type: ignore[attr-defined]
    return None


def _check_database(relation: Any) -> None:
    """Nothing in the database stands for DuckDB's own functions or tells what its scans meet; no record is looked at."""
    if relation.query("records_of_pymc_dp", "SELECT count(*) FROM duckdb_functions() WHERE NOT internal").fetchall()[0][0]:
        raise Refusal(
            "The database has functions or macros of its own, which could stand for DuckDB's where records are read. Drop them, or"
            " write the table to a Parquet file and give its path."
        )
    told = "SELECT count(*) FROM duckdb_settings() WHERE name IN ('enable_profiling', 'enable_logging') AND value NOT IN ('', 'false', '0')"
    if relation.query("records_of_pymc_dp", told).fetchall()[0][0]:
        raise Refusal(
            "The database tells how many rows every query meets. Switch that off: PRAGMA disable_profiling, and CALL disable_logging()."
        )


def _is_of_pandas(dtype: object) -> bool:
    """Whether a type is NumPy's or pandas' own; another's values are made by code that nobody knows."""
    return isinstance(dtype, np.dtype) or type(dtype).__module__.partition(".")[0] == "pandas"


# ---------------------------------------------------------------- records per cell


def _counted(source: Any, columns: Sequence[Column], starts: Sequence[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Cells that occur, as places in the flattened product of the columns, and numbers of records in them: int64, shapes (G,)."""
    if _is(source, "duckdb", "DuckDBPyRelation"):
        _check_database(source)
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

_LONG = {"decimal", "hugeint", "uhugeint"}
"""Types that it turns into the nearest double by way of text only."""


def _read(column: Column, name: str, kind: str) -> tuple[str, str]:
    """A stored value as SQL: as a number, the nearest double, and as the bytes of text, which no collation compares in its own way.

    NULL is what it is not, or not asked for; a value that is neither is in the extra cell. See ``Column.cell``.
    """
    if kind in _SHORT:
        return f"CAST({name} AS DOUBLE)", "NULL"
    if kind == "bignum":  # a long one takes the square of its digits to be written; beyond these it is no double
        ends = (f"CAST('{sign}1{'0' * 309}' AS BIGNUM)" for sign in ("-", ""))
        return f"CASE WHEN {name} BETWEEN {' AND '.join(ends)} THEN TRY_CAST(CAST({name} AS VARCHAR) AS DOUBLE) END", "NULL"
    if kind in _LONG:
        return f"TRY_CAST(CAST({name} AS VARCHAR) AS DOUBLE)", "NULL"
    if kind not in ("varchar", "enum", "blob"):
        return "NULL", "NULL"
    # Bytes need not be text; of those that are not plain ASCII, and so spell no number, the cast makes escapes.
    stored = name if kind == "blob" else f"encode(CAST({name} AS VARCHAR))"
    size = f"octet_length({name})" if kind == "blob" else f"strlen(CAST({name} AS VARCHAR))"
    text = f"CASE WHEN {size} <= {LONGEST_TEXT} THEN {stored} END"
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

    known: list[dict[str, Any]] = [{} for _ in columns]
    for batch in _stored(source, columns):
        ready = [
            (values, True) if name.startswith("cell") else _ready(values, column, seen)
            for name, values, column, seen in zip(batch.schema.names, batch.columns, columns, known, strict=True)
        ]
        names = [f"{'cell' if found else 'value'}{axis}" for axis, (_, found) in enumerate(ready)]
        yield pa.record_batch([array for array, _ in ready], names=names)


def _stored(source: Any, columns: Sequence[Column]) -> Iterator[Any]:
    """The same as they are stored: of any type, and with cells only of what no Arrow type holds."""
    import pyarrow as pa

    names = [column.name for column in columns]
    if isinstance(source, Path):
        yield from _stored_in_file(source, names)
        return
    if _is(source, "pyarrow", "Table", "RecordBatch"):
        table = source if _is(source, "pyarrow", "Table") else pa.Table.from_batches([source])
        found = [table.column(table.schema.names.index(name)) for name in names]
    elif _is(source, "pandas", "DataFrame"):
        found = [_of_pandas(source.iloc[:, list(source.columns).index(column.name)], column) for column in columns]
    else:
        found = [_of_polars(source.get_column(column.name), column) for column in columns]
    kinds = ["cell" if isinstance(values, np.ndarray) else "value" for values in found]
    arrays = [pa.array(values) if kind == "cell" else values for kind, values in zip(kinds, found, strict=True)]
    yield from pa.table(arrays, names=[f"{kind}{axis}" for axis, kind in enumerate(kinds)]).to_batches(ROWS_AT_ONCE)


def _stored_in_file(path: Path, names: Sequence[str]) -> Iterator[Any]:
    """Columns of a Parquet file. One whose type holds no level is not read, so nothing in it can fail."""
    import pyarrow as pa
    from pyarrow import parquet

    kinds = parquet.read_schema(path)
    read = [name for name in names if _holds_levels(kinds.field(name).type)]
    with parquet.ParquetFile(path, metadata=_metadata(path)) as file:
        rows = file.metadata.num_rows
        batches: Iterator[Any] = file.iter_batches(ROWS_AT_ONCE, columns=read, use_threads=True) if read else _rows(rows)
        for batch in batches:
            places = {name: batch.schema.names.index(name) for name in read}
            arrays = [batch.column(places[name]) if name in places else pa.nulls(len(batch), pa.int8()) for name in names]
            yield pa.record_batch(arrays, names=[f"value{axis}" for axis in range(len(names))])


def _rows(rows: int) -> Iterator[range]:
    """As many rows of nothing."""
    for start in range(0, rows, ROWS_AT_ONCE):
        yield range(start, min(start + ROWS_AT_ONCE, rows))


def _metadata(path: Path) -> Any:
    """What a Parquet file says of itself, but for the types that its columns had in Arrow.

    With those what was a dictionary is read as one, which fails where texts are longer than 2 GB together. As plain text it never does.
    """
    import pyarrow as pa
    from pyarrow import parquet

    with path.open("rb") as file:
        file.seek(-8, 2)
        length = int.from_bytes(file.read(4), "little")
        file.seek(-8 - length, 2)
        return parquet.read_metadata(pa.BufferReader(file.read().replace(b"ARROW:schema", b"-----:schema")))


def _holds_levels(kind: Any) -> bool:
    """Whether values of an Arrow type can be levels."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _holds_levels(kind.value_type)
    if isinstance(kind, pa.JsonType):  # as in DuckDB, where it is text
        return _holds_levels(kind.storage_type)
    return _is_text(kind) or any(of(kind) for of in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal))


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def _ready(values: Any, column: Column, known: dict[str, Any]) -> tuple[Any, bool]:
    """An array that DuckDB reads as numbers, truth values or bytes, and whether it holds cells; which, only the type decides.

    Nothing here looks at more than one value at a time: no dictionary or run is written out, and no type is guessed. What can be no level
    may as well be missing.
    """
    import pyarrow as pa
    from pyarrow import types

    if isinstance(values.type, pa.JsonType):
        values = values.storage
    kind = values.type
    if not _holds_levels(kind):
        return pa.nulls(len(values), pa.int8()), False
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return pa.array(_cells_of(values, column, known)), True
    if types.is_decimal(kind):
        return pa.array(_doubles(values)), False
    if types.is_float16(kind):
        return values.cast(pa.float32()), False
    return (_short(values) if _is_text(kind) else values), False


def _short(values: Any) -> Any:
    """Text as bytes, which DuckDB does not check, without what is too long to be a level: it takes no more than 4 GB, and all its time.

    Nothing is copied.
    """
    import pyarrow as pa
    from pyarrow import types

    kind, rows = values.type, len(values)
    if types.is_string_view(kind):
        bytes_, width, ends = pa.binary_view(), 16, 0
    else:
        bytes_, width, ends = (pa.large_binary(), 8, 1) if types.is_large_string(kind) else (pa.binary(), 4, 1)
    if not rows:
        return pa.array([], bytes_)
    _, told, *data = values.buffers()
    told = told.slice(values.offset * width, (rows + ends) * width)
    numbers = np.frombuffer(told, np.int64 if width == 8 else np.int32)
    lengths: np.ndarray = np.diff(numbers) if ends else numbers[::4]  # views begin with the length
    there = (lengths <= LONGEST_TEXT) & values.is_valid().to_numpy(zero_copy_only=False)
    return pa.Array.from_buffers(bytes_, rows, [pa.py_buffer(np.packbits(there, bitorder="little")), told, *data])


def _doubles(values: Any) -> np.ndarray:
    """Decimals as the nearest doubles, NaN where they are missing: float64 of shape (N,). Any value is read, also beyond its precision."""
    width, rows, scale = values.type.byte_width, len(values), max(-1000, min(1000, values.type.scale))
    held = np.frombuffer(values.buffers()[1], np.uint8, rows * width, values.offset * width).reshape(rows, width) if rows else None
    if held is None:
        return np.zeros(0)
    words = np.ascontiguousarray(held).view(np.int32 if width == 4 else np.int64)
    low = words[:, 0].astype(np.int64)
    exact = (abs(low) <= LARGEST_LEVEL) & (low != np.iinfo(np.int64).min) & (words[:, 1:] == (low >> 63)[:, None]).all(axis=1)
    exact &= 0 <= scale <= 22  # both are doubles then, so that their ratio is the nearest one
    there = values.is_valid().to_numpy(zero_copy_only=False)
    doubles = np.where(there, low / float(10 ** max(0, min(22, scale))), np.nan)
    for row in np.flatnonzero(there & ~exact):
        doubles[row] = _ratio(int.from_bytes(held[row].tobytes(), "little", signed=True), scale)
    return doubles


def _ratio(number: int, scale: int) -> float:
    try:
        return number / 10**scale if scale >= 0 else float(number * 10**-scale)
    except OverflowError:
        return float("inf")


# ---------------------------------------------------------------- values one by one


def _cells_of(values: Any, column: Column, known: dict[str, Any]) -> np.ndarray:
    """The cell of every value of an Arrow array, int32 of shape (N,). Each value of a dictionary, and each run, is looked at once.

    ``known`` keeps the cells of the last dictionary, which batches have in common.
    """
    from pyarrow import types

    if _is(values, "pyarrow", "ChunkedArray"):
        return np.concatenate([np.zeros(0, np.int32), *(_cells_of(chunk, column, known) for chunk in values.chunks)])
    if types.is_run_end_encoded(values.type):
        first, runs = values.find_physical_offset(), values.find_physical_length()
        ends = values.run_ends.to_numpy()[first : first + runs].astype(np.int64) - values.offset
        lengths = np.diff(np.clip(ends, 0, len(values)), prepend=0)
        return np.repeat(_cells_of(values.values.slice(first, runs), column, known), lengths)
    if types.is_dictionary(values.type):
        listed = values.dictionary
        if types.is_dictionary(listed.type) or types.is_run_end_encoded(listed.type):
            known = {}  # whose buffers do not tell what it holds
        where = [len(listed), listed.offset, *((buffer.address, buffer.size) for buffer in listed.buffers() if buffer)]
        if known.get("where") != where:
            cells = np.append(_cells_of(listed, column, {}), np.int32(column.size - 1))
            known.update(where=where, cells=cells, listed=listed)  # which is kept, or another could come to lie there
        codes = values.indices.fill_null(0).to_numpy().astype(np.int64)
        there = values.indices.is_valid().to_numpy(zero_copy_only=False) & (codes >= 0) & (codes < len(listed))
        return known["cells"][np.where(there, codes, len(listed))]
    array, _ = _ready(values, column, {})
    return _cells(_decoded(array) if _is_text(values.type) else array.to_pylist(), column)


def _decoded(array: Any) -> Iterator[str | None]:
    """Bytes as text; None where they are none."""
    for value in array.to_pylist():
        try:
            yield None if value is None else value.decode()
        except UnicodeDecodeError:
            yield None


def _of_pandas(values: Any, column: Column) -> Any:
    """A Series, or the Index of categories, as Arrow holds it or as cells in NumPy; Arrow guesses no type from its values."""
    import pandas as pd
    import pyarrow as pa

    kind = type(values.dtype)
    if kind is pd.CategoricalDtype:
        categories = _of_pandas(values.cat.categories, column)
        cells = categories if isinstance(categories, np.ndarray) else _cells_of(categories, column, {})
        return np.append(cells, np.int32(column.size - 1))[values.cat.codes.to_numpy()]  # the last is that of the code -1: missing
    if kind in (pd.DatetimeTZDtype, pd.PeriodDtype, pd.IntervalDtype):
        return pa.nulls(len(values), pa.int8())
    if kind is pd.SparseDtype:
        values = values.array.to_dense()
    elif not isinstance(values.dtype, np.dtype):
        return _cells(list(values), column) if getattr(values.dtype, "storage", "") == "python" else pa.array(values.array)
    if values.dtype.kind in "mM":
        return pa.nulls(len(values), pa.int8())
    if values.dtype.kind not in "biufc":
        return _cells(list(values), column)
    numbers = np.asarray(values)
    if values.dtype.kind == "c":  # which pandas makes of all numbers where one is complex
        numbers = np.where(numbers.imag == 0, numbers.real, np.nan)
    return pa.array(numbers.astype(np.float64 if numbers.dtype.kind == "f" else numbers.dtype.newbyteorder("="), copy=False))


def _of_polars(values: Any, column: Column) -> Any:
    """A Series of polars as Arrow holds it, or as cells in NumPy."""
    import polars as pl
    import pyarrow as pa

    kind = values.dtype
    if kind == pl.Object:  # of which Arrow would get addresses
        return _cells(values.to_list(), column)
    if kind == pl.String:  # as it lies there: otherwise a text that many records share would be written out for each
        return values.to_arrow(compat_level=pl.CompatLevel.newest())
    if str(kind) in ("Int128", "UInt128"):
        return values.cast(pl.Float64).to_arrow()
    if kind.is_numeric() or kind in (pl.Boolean, pl.Categorical, pl.Enum):
        return values.to_arrow()
    return pa.nulls(len(values), pa.int8())


def _cells(values: Iterable[object], column: Column) -> np.ndarray:
    """The cell of every value, int32 of shape (N,)."""
    known: dict[object, int] = {}
    cells = []
    for value in values:
        plain = value if type(value) is str and len(value) <= LONGEST_NAME else _plain(value)
        cell = known.get(plain)
        if cell is None:
            cell = known[plain] = column.cell(plain)
        cells.append(cell)
    return np.array(cells, dtype=np.int32)


_NUMBERS = frozenset(kind for kind in np.sctypeDict.values() if issubclass(kind, np.number | np.bool_) and kind is not np.timedelta64)
"""Numbers of NumPy, of every name that C has for them. A duration, which NumPy takes for an integer, is none."""


_PYTHON = {np.floating: float, np.integer: int, np.complexfloating: complex}
"""Which of Python's own a number of NumPy is."""


def _plain(value: object) -> bool | int | float | str | None:
    """A value as Python's own bool, int, float or str; None where it is none of these, not a number, too long, or fails at being asked."""
    try:
        kind = type(value)
        if any(kind is one for one in _NUMBERS):
            of = next((of for base, of in _PYTHON.items() if issubclass(kind, base)), bool)
            value, kind = of(value), of
        if kind is complex:
            return _plain(value.real) if value.imag == 0 else None  # type: ignore[attr-defined]
        if kind is bool or value is None:
            return value  # type: ignore[return-value]
        if kind is Decimal:
            value, kind = float(value), float  # type: ignore[arg-type]
        if issubclass(kind, float):
            double = float.__float__(value)  # type: ignore[arg-type]
            return double if double == double else None
        if issubclass(kind, str):
            return str.__str__(value) if str.__len__(value) <= LONGEST_NAME else None  # type: ignore[arg-type]
        return int.__int__(value) if issubclass(kind, int) else None  # type: ignore[arg-type]
    except Exception:
        return None
