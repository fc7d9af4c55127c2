"""Columns of tables as they are stored, for questions about tables and for releases from them.

It sees records. Nothing in it can fail because of a value, nor is a value read otherwise because of another: what becomes of it, only its
type and itself decide.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from pymc_dp.families.values import LARGEST_LEVEL, LONGEST_VALUE

ROWS_AT_ONCE = 2**18
"""Rows that are read together."""

BYTES_AT_ONCE = 2**20
"""Bytes of a column of a file that are read together."""


_imported: dict[str, ModuleType] = {}
"""Modules that were seen whole: asking again takes longer than the rest of ``is_one``."""


def is_one(table: object, module: str, *names: str) -> bool:
    """Whether a table is of one of these classes, without importing what was not imported.

    What another thread is importing just now is waited for: until then it lacks some of its names.
    """
    there = sys.modules.get(module)
    if there is None:
        return False
    if _imported.get(module) is not there:
        try:
            there = _imported[module] = import_module(module)
        except ImportError:  # of that thread, so that there is no table of it
            return False
    kinds = (getattr(there, name, None) for name in names)
    return isinstance(table, tuple(kind for kind in kinds if kind is not None))


def has_arrow() -> bool:
    """Whether Arrow is installed: pandas needs it for nothing that is read here."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return False
    return True


def arrow_of(values: Any) -> Any:
    """A Series of one of pandas' own types as an Arrow array, by this type."""
    import pyarrow as pa

    return pa.array(values.array)


def is_of_pandas(dtype: object) -> bool:
    """Whether a type is NumPy's or pandas' own; another's values are made by code that nobody knows."""
    return isinstance(dtype, np.dtype) or type(dtype).__module__.partition(".")[0] == "pandas"


def stored_in_file(path: Path, names: Sequence[str]) -> Iterator[Any]:
    """Columns of a Parquet file. One whose type holds no level and names nobody is not read, so nothing in it can fail."""
    import pyarrow as pa
    from pyarrow import parquet

    kinds = parquet.read_schema(path)
    read = [name for name in names if names_persons(kinds.field(name).type)]
    # Buffered ahead, as it is by default, all of the file stays in memory until it is closed; unbuffered, all of a group of rows.
    with parquet.ParquetFile(path, metadata=_metadata(path), pre_buffer=False, buffer_size=BYTES_AT_ONCE) as file:
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


def holds_levels(kind: Any) -> bool:
    """Whether values of an Arrow type can be levels."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return holds_levels(kind.value_type)
    if isinstance(kind, pa.JsonType):  # as in DuckDB, where it is text
        return holds_levels(kind.storage_type)
    return is_text(kind) or any(of(kind) for of in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal))


def names_persons(kind: Any) -> bool:
    """Whether values of an Arrow type can say whose a row is: those of levels, and UUIDs, of which none is a level."""
    import pyarrow as pa

    return holds_levels(kind) or isinstance(kind, pa.UuidType)


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is text, or bytes that encode it: where one record is bytes, Arrow and polars make all text such."""
    from pyarrow import types

    text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return text or types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)


def short(values: Any) -> Any:
    """Text as bytes, which DuckDB does not check, without what is too long to be a level: it takes no more than 4 GB, and all its time.

    Nothing is copied.
    """
    import pyarrow as pa
    from pyarrow import types

    kind, rows = values.type, len(values)
    if types.is_string_view(kind) or types.is_binary_view(kind):
        bytes_, width, ends = pa.binary_view(), 16, 0
    else:
        large = types.is_large_string(kind) or types.is_large_binary(kind)
        bytes_, width, ends = (pa.large_binary(), 8, 1) if large else (pa.binary(), 4, 1)
    if not rows:
        return pa.array([], bytes_)
    _, offsets, *data = values.buffers()
    offsets = offsets.slice(values.offset * width, (rows + ends) * width)
    numbers = np.frombuffer(offsets, np.int64 if width == 8 else np.int32)
    lengths: np.ndarray = np.diff(numbers) if ends else numbers[::4]  # views begin with the length
    there = (lengths <= LONGEST_VALUE) & values.is_valid().to_numpy(zero_copy_only=False)
    return pa.Array.from_buffers(bytes_, rows, [pa.py_buffer(np.packbits(there, bitorder="little")), offsets, *data])


def doubles_of_decimals(values: Any) -> np.ndarray:
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
        return float("inf") if number > 0 else float("-inf")


def of_runs(values: Any, of_values: Callable[[Any], np.ndarray]) -> np.ndarray:
    """What a function says of every value of a run-end encoded array: it is asked for one value of each run."""
    first, runs = values.find_physical_offset(), values.find_physical_length()
    ends = values.run_ends.to_numpy()[first : first + runs].astype(np.int64) - values.offset
    return np.repeat(of_values(values.values.slice(first, runs)), np.diff(np.clip(ends, 0, len(values)), prepend=0), axis=0)


def of_codes(values: Any, listed: np.ndarray) -> np.ndarray:
    """What is listed for every code of a dictionary array; the last of the list is for missing codes, and for those of no entry."""
    last, codes = len(listed) - 1, values.indices.fill_null(0).to_numpy().astype(np.int64)
    there = values.indices.is_valid().to_numpy(zero_copy_only=False) & (codes >= 0) & (codes < last)
    return listed[np.where(there, codes, last)]


def decoded(array: Any) -> Iterator[str | None]:
    """Bytes as text; None where they are none."""
    for value in array.to_pylist():
        try:
            yield None if value is None else value.decode()
        except UnicodeDecodeError:
            yield None
