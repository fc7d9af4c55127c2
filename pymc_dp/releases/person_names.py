"""Which person a row of a table belongs to, from one of its columns: its type decides how a name is read, and nothing fails because of a
value.
"""

from typing import Any
from uuid import UUID

import numpy as np

from pymc_dp.plans.person import READABLE, is_declared
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.releases.headers import alone, files_of
from pymc_dp.releases.persons import names_of
from pymc_dp.releases.stored import (
    arrow_of,
    doubles_of_decimals,
    has_arrow,
    holds_levels,
    is_of_pandas,
    is_one,
    is_text,
    names_persons,
    of_codes,
    of_runs,
    short,
)


def names_in(values: Any) -> np.ndarray:
    """To whom every row belongs, (N, 2) uint64 as in ``names_of``, from a Series of pandas or polars or an array of Arrow.

    Types that are neither numbers nor text name nobody.
    """
    if is_one(values, "polars", "Series"):
        return _of_polars(values)
    if isinstance(values, np.ndarray):
        return names_of(values, declared=False) if values.dtype.kind in READABLE else _nobody(len(values))
    return _of_pandas(values) if is_of_pandas(getattr(values, "dtype", None)) else _of_arrow(values)


def check_key(table: Any, name: str) -> None:
    """Refuse a column of a file or an Arrow table whose type names nobody, and one of dates or times of polars or DuckDB.

    All rows would be left out. Readers of files make dates or times of texts if all can be such: of ``01-02-03``, for example.

    Raises
    ------
    Refusal
        When it is neither of numbers nor of text.
    """
    if _is_of_times(table, name):
        raise Refusal(f"{name} is of dates or times, which names no person. Write text, and let no reader of files make dates of it.")
    kinds = []
    if files := files_of(table):
        from pyarrow import parquet

        kinds = [parquet.read_schema(file).field(name).type for file in files]
    elif is_one(table, "pyarrow", "Table", "RecordBatch"):
        kinds = [table.schema.field(name).type]
    for kind in kinds:
        if not _may_name(kind):
            other = "binary" if str(kind).startswith("fixed_size_binary") else "string"
            raise Refusal(f"{name} is of a type that names no person. Write numbers or text, for example column.cast(pyarrow.{other}()).")


def _may_name(kind: Any) -> bool:
    """Whether an Arrow type is one of names, or the one that a column has of which all entries are missing."""
    from pyarrow import types

    while types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        kind = kind.value_type
    return types.is_null(kind) or names_persons(kind)


TIMES = ("date", "time", "interval")
"""What names of DuckDB's types of dates and times begin with."""


def _is_of_times(table: Any, name: str) -> bool:
    """Whether a column of polars or DuckDB, which guess types from all values, is of dates, times or durations."""
    if is_one(table, "polars", "DataFrame"):
        return bool(table.schema[name].is_temporal())
    if is_one(table, "duckdb", "DuckDBPyRelation"):
        with alone(table):
            return str(table.types[table.columns.index(name)].id).startswith(TIMES)
    return False


def _objects(values: list) -> np.ndarray:
    """Each as it is: NumPy makes no array of what they hold."""
    whole = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        whole[place] = value
    return whole


def _nobody(rows: int) -> np.ndarray:
    return np.zeros((rows, 2), dtype=np.uint64)


def _of_arrow(values: Any, declared: bool = True) -> np.ndarray:
    import pyarrow as pa
    from pyarrow import types

    if is_one(values, "pyarrow", "ChunkedArray"):
        return np.concatenate([_nobody(0), *(_of_arrow(chunk, declared) for chunk in values.chunks)])
    if isinstance(values.type, pa.JsonType):
        values = values.storage
    if isinstance(values.type, pa.UuidType):
        several = values.storage.to_pylist()
        return names_of(_objects([None if name is None else UUID(bytes=name) for name in several]))
    kind = values.type
    if not holds_levels(kind):
        return _nobody(len(values))
    if types.is_run_end_encoded(kind):
        return of_runs(values, _of_arrow)
    if types.is_dictionary(kind):
        return of_codes(values, np.vstack([_of_arrow(values.dictionary), _nobody(1)]))
    if is_text(kind):
        return names_of(_objects(short(values).to_pylist()), declared=declared)
    if types.is_decimal(kind):
        return _of_decimals(values)
    if types.is_float16(kind):
        values = values.cast(pa.float32())
    if types.is_boolean(kind):
        values = values.cast(pa.int8())
    there = values.is_valid().to_numpy(zero_copy_only=False)
    return names_of(values.fill_null(0).to_numpy(zero_copy_only=False)) * there[:, None].astype(np.uint64)


def _of_decimals(values: Any) -> np.ndarray:
    """A decimal that is a whole number names whom that names, however many digits it has, and another whom the nearest double names."""
    rows, width, scale = len(values), values.type.byte_width, values.type.scale
    if not rows:
        return _nobody(0)
    held = np.frombuffer(values.buffers()[1], np.uint8, rows * width, values.offset * width).tobytes()
    numbers = [int.from_bytes(held[k : k + width], "little", signed=True) for k in range(0, len(held), width)]
    unit, doubles = 10 ** min(abs(scale), 1000), doubles_of_decimals(values)
    there = values.is_valid().to_numpy(zero_copy_only=False)
    names = (number * unit if scale <= 0 else number // unit if number % unit == 0 else double for number, double in zip(numbers, doubles))
    return names_of(_objects([name if valid else None for name, valid in zip(names, there)]))


def _of_pandas(values: Any) -> np.ndarray:
    """A Series, or the Index of categories; pandas and Arrow guess no type from its values. Without Arrow the same, value by value."""
    import pandas as pd

    kind, declared = type(values.dtype), is_declared(values.dtype)
    if kind is pd.CategoricalDtype:
        return np.vstack([_of_pandas(values.cat.categories), _nobody(1)])[values.cat.codes.to_numpy()]  # the last is the code -1: missing
    if kind in (pd.DatetimeTZDtype, pd.PeriodDtype, pd.IntervalDtype):
        return _nobody(len(values))
    if kind is pd.SparseDtype:
        values = values.array.to_dense()
    elif not isinstance(values.dtype, np.dtype):
        python = getattr(values.dtype, "storage", "") == "python" or not has_arrow()
        return names_of(_objects(list(values)), declared=declared) if python else _of_arrow(arrow_of(values), declared)
    if values.dtype.kind in "biufc":
        return names_of(np.asarray(values), declared=False)
    return _nobody(len(values)) if values.dtype.kind in "mM" else names_of(_objects(list(values)), declared=False)


def _of_polars(values: Any) -> np.ndarray:
    import polars as pl

    kind = values.dtype
    if kind == pl.Object or str(kind) in ("Int128", "UInt128"):  # of objects Arrow would get addresses
        return names_of(_objects(values.to_list()))
    if kind in (pl.String, pl.Binary):
        return _of_arrow(values.to_arrow(compat_level=pl.CompatLevel.newest()))
    if kind.is_numeric() or kind in (pl.Boolean, pl.Categorical, pl.Enum):
        return _of_arrow(values.to_arrow())
    return _nobody(len(values))
