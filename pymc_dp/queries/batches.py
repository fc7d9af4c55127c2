"""Columns of a Parquet file or a frame, as batches of Arrow that DuckDB can read.

It sees records. Nothing in it can fail because of a value, nor is a value read otherwise because of another: what becomes of it, only its
type and itself decide.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from pymc_dp.queries.schema import LARGEST_LEVEL, LONGEST_NAME, LONGEST_VALUE, Column

ROWS_AT_ONCE = 2**17
"""Rows that are read together."""


def is_one(table: object, module: str, *names: str) -> bool:
    """Whether a table is of one of these classes, without importing what was not imported."""
    there = sys.modules.get(module)
    return there is not None and isinstance(table, tuple(getattr(there, name) for name in names))


def batches_of(source: Any, columns: Sequence[Column]) -> Iterator[Any]:
    """The touched columns, some rows at a time, as record batches of columns value0, or cell0 where cells are found, and so on."""
    import pyarrow as pa

    known: list[dict[str, Any]] = [{} for _ in columns]
    for batch in _stored(source, columns):
        ready = [
            (values, True) if name.startswith("cell") else _ready(values, column, seen)
            for name, values, column, seen in zip(batch.schema.names, batch.columns, columns, known, strict=True)
        ]
        names = [f"{'cell' if is_cell else 'value'}{axis}" for axis, (_, is_cell) in enumerate(ready)]
        yield pa.record_batch([array for array, _ in ready], names=names)


def _stored(source: Any, columns: Sequence[Column]) -> Iterator[Any]:
    """The touched columns as they are stored, of any type, with cells in place of what no Arrow type holds."""
    import pyarrow as pa

    names = [column.name for column in columns]
    if isinstance(source, Path):
        yield from _stored_in_file(source, names)
        return
    if is_one(source, "pyarrow", "Table", "RecordBatch"):
        table = source if is_one(source, "pyarrow", "Table") else pa.Table.from_batches([source])
        stored = [table.column(table.schema.names.index(name)) for name in names]
    elif is_one(source, "pandas", "DataFrame"):
        stored = [_of_pandas(source.iloc[:, list(source.columns).index(column.name)], column) for column in columns]
    else:
        stored = [_of_polars(source.get_column(column.name), column) for column in columns]
    kinds = ["cell" if isinstance(values, np.ndarray) else "value" for values in stored]
    arrays = [pa.array(values) if kind == "cell" else values for kind, values in zip(kinds, stored, strict=True)]
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
    """A column of missing values, as long as another."""
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
    _, offsets, *data = values.buffers()
    offsets = offsets.slice(values.offset * width, (rows + ends) * width)
    numbers = np.frombuffer(offsets, np.int64 if width == 8 else np.int32)
    lengths: np.ndarray = np.diff(numbers) if ends else numbers[::4]  # views begin with the length
    there = (lengths <= LONGEST_VALUE) & values.is_valid().to_numpy(zero_copy_only=False)
    return pa.Array.from_buffers(bytes_, rows, [pa.py_buffer(np.packbits(there, bitorder="little")), offsets, *data])


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

    if is_one(values, "pyarrow", "ChunkedArray"):
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
        if any(kind is number for number in _NUMBERS):
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
