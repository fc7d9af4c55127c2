"""Records that are not in the model: columns of a table, as blocks of numbers.

A value becomes a double by itself: a number is the nearest double, a truth value 0 or 1, text that is the label of a level of the model
is its place, text that spells a number or a truth value is that, and anything else is missing. Nothing fails because of a value, and none
is read otherwise because of another. Only names of columns and the number of rows are looked at before ``blocks`` is asked.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import numpy as np

from pymc_dp.families.values import NO_LABELS, Labels, double_of
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.guard import quiet
from pymc_dp.releases.duck import columns_in, counted_in
from pymc_dp.releases.headers import Words, check_columns, files_of, rows_in, table_of
from pymc_dp.releases.person_blocks import WHOSE, check_temporary_folder, parts_of
from pymc_dp.releases.person_names import check_key, names_in
from pymc_dp.releases.spread import Spread, version_here
from pymc_dp.releases.stored import (
    arrow_of,
    decoded,
    doubles_of_decimals,
    has_arrow,
    holds_levels,
    is_one,
    is_text,
    of_codes,
    of_runs,
    short,
    stored_in_file,
)

WORDS = Words(
    "data",
    "data",
    "Write for example data=pandas.DataFrame(...), or leave data out.",
    "Name every column as the observed variable or pm.Data that it is.",
    "Rename it, and the variable of the model.",
    several=True,
)

NUMBERS_AT_ONCE = 2**21
"""So many numbers of a table in memory, where most are no copies, are read together, so that what Python does between does not count."""

MOST_ROWS = NUMBERS_AT_ONCE // 2
"""No block of ``Source.blocks`` has more rows."""

TEXTS_REMEMBERED = 2**12
"""So many different texts are looked at once only, in every part of a column."""

IN_FILES = "Write them to Parquet files, and give data= their paths, or what dask.dataframe.read_parquet makes of these."
UNREADABLE = "A part of the table cannot be looked at. See that every worker can read it."


@dataclass(frozen=True)
class Elsewhere:
    """Records that others read, of whom only their number is known here."""

    records: int

    def __len__(self) -> int:
        return self.records


@dataclass(frozen=True, eq=False, repr=False)
class Source:
    """Some columns of a table, to be read in blocks. It says nothing of them, and cannot be copied or pickled. Made by ``Source.of``.

    Attributes
    ----------
    table : object
    columns : dict of str to dict of str to int
        Columns that are read, and of each at which place its labels stand.
    key : str or None
        The column that says whose a row is.
    """

    table: Any
    columns: Mapping[str, Labels]
    key: str | None = None

    @classmethod
    def of(
        cls, data: object, columns: Mapping[str, Labels] | Sequence[str], unread: Collection[str] = (), key: str | None = None
    ) -> "Source":
        """The columns of these names, or a refusal that says what is missing; no value is looked at.

        Of columns without labels the names are enough. ``unread`` are names that no column may have, because the model would keep its
        own array of that name; ``key`` is the column that says whose a row is.
        """
        read = columns if isinstance(columns, Mapping) else dict.fromkeys(columns, NO_LABELS)
        if isinstance(data, Elsewhere):
            return cls(data, read, key)
        table = table_of(data, WORDS)
        if kept := sorted(set(unread) & set(check_columns(table, [*read], WORDS))):
            raise Refusal(
                f"data has a column called {kept[0]}, but the model keeps its own array of that name, because records do not enter there."
                " Rename the pm.Data, or leave the column out."
            )
        wanted = [*read] if key is None else [*read, key]
        if key is not None:
            check_columns(table, wanted, WORDS)
            check_key(table.files if isinstance(table, Spread) else table, key)
        if isinstance(table, Spread):
            if key is not None and (table := table.by_person(key, place_of)) is None:
                raise Refusal(f"Rows of one {key} may lie in several parts of this table. {IN_FILES}")
            table.check(wanted, look)
        elif key is not None:
            check_temporary_folder()
        return cls(table, read, key)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that are read."""
        return tuple(self.columns)

    @property
    def records(self) -> int:
        """Number of rows. Public under "replace" only; no column is read."""
        return self.table.rows(rows_at) if isinstance(self.table, Spread) else rows_in(self.table, self.names)

    def blocks(self) -> Iterator[dict[str, np.ndarray]]:
        """Some rows at a time, in any order: of every column float64 of shape (rows,), NaN where it is missing; and whose they are.

        Columns of whole numbers of which none is missing stay such. Arrays may be those of the table, so nobody writes into them.
        """
        columns, many = self.names if self.key is None else (*self.names, self.key), len(self.names)
        if files := files_of(self.table):
            for file in files:
                for batch in stored_in_file(file, columns):
                    block = {name: numbers(values, labels) for (name, labels), values in zip(self.columns.items(), batch.columns)}
                    yield block if self.key is None else block | {WHOSE: names_in(batch.column(many))}
            return
        if is_one(self.table, "duckdb", "DuckDBPyRelation"):
            for batch in columns_in(self.table, self.names, self.key):
                block = {name: _of_database(values, labels) for (name, labels), values in zip(self.columns.items(), batch.columns)}
                yield block if self.key is None else block | {WHOSE: names_in(batch.column(many))}
            return
        read = numbers
        for kind, of_kind in (
            (("pandas", "DataFrame"), _of_pandas),
            (("polars", "DataFrame"), _of_polars),
            (("xarray", "Dataset"), _of_array),
        ):
            read = of_kind if is_one(self.table, *kind) else read
        stored = {name: self._stored(name) for name in columns}
        rows, whole = max(NUMBERS_AT_ONCE // max(len(columns), 2), 1), self._as_they_are()
        for start in range(0, self.records, rows):
            part = slice(start, start + rows)
            block = {
                name: whole[name][part] if name in whole else read(stored[name](part), labels) for name, labels in self.columns.items()
            }
            yield block if self.key is None else block | {WHOSE: names_in(stored[self.key](part))}

    def distinct(self) -> tuple[dict[str, np.ndarray], np.ndarray] | None:
        """Distinct rows, each once, as a block of ``blocks``, and how many there are of each: (rows,) int64.

        None where nobody but this process counts them (see ``duck.counted_in``), and where rows of a person are looked at together.
        """
        if self.key is not None or not is_one(self.table, "duckdb", "DuckDBPyRelation"):
            return None
        if (counted := counted_in(self.table, self.names)) is None:
            return None
        whole = {name: numbers(values.combine_chunks()) for name, values in zip(self.names, counted.columns)}
        return whole, counted.column("times").to_numpy()

    def _as_they_are(self) -> dict[str, np.ndarray]:
        """Columns of an Arrow table that are numbers in one piece, of which none is missing: what ``numbers`` makes of them is no copy."""
        if not is_one(self.table, "pyarrow", "Table"):
            return {}
        stored = {name: self.table.column(self.table.schema.names.index(name)) for name in self.names}
        return {name: numbers(column) for name, column in stored.items() if column.num_chunks == 1 and is_no_copy(column)}

    def _stored(self, name: str) -> Callable[[slice], Any]:
        """What gives some rows of a column as they are stored, which are no copies; those in a file of arrays it reads."""
        if is_one(self.table, "pandas", "DataFrame"):
            return self.table.iloc[:, list(self.table.columns).index(name)].iloc.__getitem__
        if is_one(self.table, "polars", "DataFrame"):
            return self.table.get_column(name).__getitem__
        if is_one(self.table, "xarray", "Dataset"):
            return lambda part: self.table.variables[name][part].values
        return self.table.column(self.table.schema.names.index(name)).__getitem__

    def __repr__(self) -> str:
        return f"Source({', '.join(self.names)})"

    def __reduce__(self) -> NoReturn:
        """A pickle would carry the records."""
        raise TypeError("A source of records cannot be copied or pickled.")


def place_of(key: Any, parts: int) -> np.ndarray:
    """In which of so many parts every row is counted, by some values of the key: (rows,) uint64."""
    return parts_of(names_in(key), parts)


def look(chunk: object, names: Sequence[str]) -> tuple[str, str]:
    """Which version of this package is where a part lies, and what stands against reading these columns of it. It never fails."""
    try:
        with quiet():
            check_columns(table_of(chunk, WORDS), names, WORDS)
    except Refusal as refusal:
        return version_here(), str(refusal)
    except Exception:
        return version_here(), UNREADABLE
    return version_here(), ""


def rows_at(chunk: object) -> int:
    """The number of rows of a part, where it lies."""
    table = table_of(chunk, WORDS)
    return rows_in(table, [*table.variables] if is_one(table, "xarray", "Dataset") else ())


def numbers(values: Any, labels: Labels = NO_LABELS) -> np.ndarray:
    """An Arrow array as doubles, NaN where there is no number: float64 of shape (N,). Only its type decides how.

    Whole numbers of which none is missing are left as they are, which are the same numbers, and are not copied.
    """
    import pyarrow as pa
    from pyarrow import types

    if is_one(values, "pyarrow", "ChunkedArray"):
        chunks = [numbers(chunk, labels) for chunk in values.chunks]
        return chunks[0] if len(chunks) == 1 else np.concatenate(chunks or [np.zeros(0)])
    if isinstance(values.type, pa.JsonType):
        values = values.storage
    kind = values.type
    if is_no_copy(values):
        return np.asarray(values.to_numpy())
    if not holds_levels(kind):
        return np.full(len(values), np.nan)
    if types.is_run_end_encoded(kind):
        return of_runs(values, partial(numbers, labels=labels))
    if types.is_dictionary(kind):
        return of_codes(values, np.append(numbers(values.dictionary, labels), np.nan))
    if types.is_decimal(kind):
        return doubles_of_decimals(values)
    if is_text(kind):
        return _one_by_one(decoded(short(values)), labels)
    if types.is_float16(kind):
        values = values.cast(pa.float32())
    return np.asarray(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)


def is_no_copy(values: Any) -> bool:
    """Whether an Arrow array holds numbers, of which none is missing, as NumPy does."""
    from pyarrow import types

    return (types.is_integer(values.type) or types.is_float64(values.type)) and values.null_count == 0


def _of_database(values: Any, labels: Labels = NO_LABELS) -> np.ndarray:
    from pyarrow import types

    return _one_by_one(decoded(values), labels) if types.is_binary(values.type) or types.is_large_binary(values.type) else numbers(values)


def _of_pandas(values: Any, labels: Labels = NO_LABELS) -> np.ndarray:
    """A Series, or the Index of categories; pandas and Arrow guess no type from its values. Without Arrow the same, value by value."""
    import pandas as pd

    kind = type(values.dtype)
    if kind is pd.CategoricalDtype:
        return np.append(_of_pandas(values.cat.categories, labels).astype(np.float64), np.nan)[
            values.cat.codes.to_numpy()
        ]  # the last is that of the code -1: missing
    if kind in (pd.DatetimeTZDtype, pd.PeriodDtype, pd.IntervalDtype):
        return np.full(len(values), np.nan)
    if kind is pd.SparseDtype:
        values = values.array.to_dense()
    elif not isinstance(values.dtype, np.dtype):
        one_by_one = getattr(values.dtype, "storage", "") == "python" or not has_arrow()
        return _one_by_one(list(values), labels) if one_by_one else numbers(arrow_of(values), labels)
    return _of_array(values, labels)


def _of_array(values: Any, labels: Labels = NO_LABELS) -> np.ndarray:
    """A Series or an array of a type of NumPy's."""
    if values.dtype.kind in "mM":
        return np.full(len(values), np.nan)
    if values.dtype.kind not in "biufc":
        return _one_by_one(list(values), labels)
    stored = np.asarray(values)
    if stored.dtype.kind in "iu":
        return stored
    if stored.dtype.kind == "c":  # which pandas makes of all numbers where one is complex
        stored = np.where(stored.imag == 0, stored.real, np.nan)
    return stored.astype(np.float64, copy=False)


def _of_polars(values: Any, labels: Labels = NO_LABELS) -> np.ndarray:
    import polars as pl

    kind = values.dtype
    if kind == pl.Object:  # of which Arrow would get addresses
        return _one_by_one(values.to_list(), labels)
    if kind in (pl.String, pl.Binary):
        return numbers(values.to_arrow(compat_level=pl.CompatLevel.newest()), labels)
    if str(kind) in ("Int128", "UInt128"):
        return numbers(values.cast(pl.Float64).to_arrow())
    if kind.is_numeric() or kind in (pl.Boolean, pl.Categorical, pl.Enum):
        return numbers(values.to_arrow(), labels)
    return np.full(len(values), np.nan)


def _one_by_one(values: Iterable[object], labels: Labels) -> np.ndarray:
    """Each value by itself; of the first texts that differ it is remembered what they are."""
    known: dict[str, float] = {}

    def read(value: object) -> float:
        if type(value) is not str:
            return double_of(value, labels)
        number = known.get(value)
        if number is None:
            number = double_of(value, labels)
            if len(known) < TEXTS_REMEMBERED:
                known[value] = number
        return number

    return np.fromiter(map(read, values), np.float64)
