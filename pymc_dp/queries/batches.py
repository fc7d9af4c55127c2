"""Columns of a Parquet file or a frame, as batches of Arrow that DuckDB can read.

It sees records. Nothing in it can fail because of a value, nor is a value read otherwise because of another: what becomes of it, only its
type and itself decide.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pymc_dp.families.values import LONGEST_NAME, plain
from pymc_dp.queries.schema import Column
from pymc_dp.releases.person_names import names_in
from pymc_dp.releases.stored import (
    ROWS_AT_ONCE,
    decoded,
    doubles_of_decimals,
    holds_levels,
    is_one,
    is_text,
    of_codes,
    of_runs,
    short,
    stored_in_file,
)


def batches_of(source: Any, columns: Sequence[Column], key: str | None = None) -> Iterator[Any]:
    """The touched columns, some rows at a time, as record batches of columns value0, or cell0 where cells are found, and so on.

    With the name of the column that says whose a row is, whose0 and whose1 stand beside them.
    """
    import pyarrow as pa

    known: list[dict[str, Any]] = [{} for _ in columns]
    for batch in _stored(source, columns, key):
        ready = [
            (values, True) if name.startswith("cell") else _ready(values, column, seen)
            for name, values, column, seen in zip(batch.schema.names, batch.columns, columns, known)
        ]
        names = [f"{'cell' if is_cell else 'value'}{axis}" for axis, (_, is_cell) in enumerate(ready)]
        whose = {name: batch.column(name) for name in batch.schema.names if name.startswith("whose")}
        yield pa.record_batch([*(array for array, _ in ready), *whose.values()], names=[*names, *whose])


def _stored(source: Any, columns: Sequence[Column], key: str | None) -> Iterator[Any]:
    """The touched columns as they are stored, of any type, with cells in place of what no Arrow type holds."""
    import pyarrow as pa

    names = [column.name for column in columns]
    if isinstance(source, Path):
        for batch in stored_in_file(source, names if key is None else [*names, key]):
            halves: Sequence[np.ndarray] = () if key is None else tuple(names_in(batch.column(len(names))).T)
            yield pa.record_batch(
                [*batch.columns[: len(names)], *map(pa.array, halves)],
                names=[*batch.schema.names[: len(names)], *(f"whose{k}" for k in range(len(halves)))],
            )
        return
    if is_one(source, "pyarrow", "Table", "RecordBatch"):
        table = source if is_one(source, "pyarrow", "Table") else pa.Table.from_batches([source])
        stored = [table.column(table.schema.names.index(name)) for name in names]
        whose = None if key is None else table.column(table.schema.names.index(key))
    elif is_one(source, "pandas", "DataFrame"):
        stored = [_of_pandas(source.iloc[:, list(source.columns).index(column.name)], column) for column in columns]
        whose = None if key is None else source.iloc[:, list(source.columns).index(key)]
    else:
        stored = [_of_polars(source.get_column(column.name), column) for column in columns]
        whose = None if key is None else source.get_column(key)
    kinds = ["cell" if isinstance(values, np.ndarray) else "value" for values in stored]
    arrays = [pa.array(values) if kind == "cell" else values for kind, values in zip(kinds, stored, strict=True)]
    named = {f"{kind}{axis}": array for axis, (kind, array) in enumerate(zip(kinds, arrays, strict=True))}
    if whose is not None:
        named |= {f"whose{k}": pa.array(half) for k, half in enumerate(names_in(whose).T)}
    yield from pa.table(named).to_batches(ROWS_AT_ONCE)


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
    if not holds_levels(kind):
        return pa.nulls(len(values), pa.int8()), False
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return pa.array(_cells_of(values, column, known)), True
    if types.is_decimal(kind):
        return pa.array(doubles_of_decimals(values)), False
    if types.is_float16(kind):
        return values.cast(pa.float32()), False
    return (short(values) if is_text(kind) else values), False


# ---------------------------------------------------------------- values one by one


def _cells_of(values: Any, column: Column, known: dict[str, Any]) -> np.ndarray:
    """The cell of every value of an Arrow array, int32 of shape (N,). Each value of a dictionary, and each run, is looked at once.

    ``known`` keeps the cells of the last dictionary, which batches have in common.
    """
    from pyarrow import types

    if is_one(values, "pyarrow", "ChunkedArray"):
        return np.concatenate([np.zeros(0, np.int32), *(_cells_of(chunk, column, known) for chunk in values.chunks)])
    if types.is_run_end_encoded(values.type):
        return of_runs(values, lambda several: _cells_of(several, column, known))
    if types.is_dictionary(values.type):
        listed = values.dictionary
        if types.is_dictionary(listed.type) or types.is_run_end_encoded(listed.type):
            known = {}  # whose buffers do not tell what it holds
        where = [len(listed), listed.offset, *((buffer.address, buffer.size) for buffer in listed.buffers() if buffer)]
        if known.get("where") != where:
            cells = np.append(_cells_of(listed, column, {}), np.int32(column.size - 1))
            known.update(where=where, cells=cells, listed=listed)  # which is kept, or another could come to lie there
        return of_codes(values, known["cells"])
    array, _ = _ready(values, column, {})
    return _cells(decoded(array) if is_text(values.type) else array.to_pylist(), column)


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
    if kind in (pl.String, pl.Binary):  # as it lies there: otherwise a text that many records share would be written out for each
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
        plain_value = value if type(value) is str and len(value) <= LONGEST_NAME else plain(value)
        cell = known.get(plain_value)
        if cell is None:
            cell = known[plain_value] = column.cell(plain_value)
        cells.append(cell)
    return np.array(cells, dtype=np.int32)
