"""What is known of a table before any record of it is read: its kind, its column names, its number of rows. Releases and questions use it.

Which tables there are, in which files, and how columns are called is public; nothing here looks at a value.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from glob import glob
from os import PathLike
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.releases.engines import readable_in_place
from pymc_dp.releases.spread import Spread
from pymc_dp.releases.stored import has_arrow, is_of_pandas, is_one

KINDS = "a pandas or polars DataFrame, a pyarrow Table, {files}, {a}table of a DuckDB database"
ALSO = ", an xarray.Dataset, or a DataFrame of dask or Spark"
NEARLY = {
    ("polars", "LazyFrame"): "Write frame.collect(), or the path of its Parquet files.",
    ("pyarrow.dataset", "Dataset"): "Write dataset.files, or dataset.to_table().",
    ("duckdb", "DuckDBPyConnection"): 'Write connection.table("records").',
    ("pandas", "Series"): "Write series.to_frame().",
    ("builtins", "dict"): "Write pandas.DataFrame(...) of it.",
    ("pyarrow", "RecordBatchReader"): "Write reader.read_all().",
    ("pyarrow.parquet", "ParquetFile"): "Write the path of the file.",
    ("xarray", "DataTree"): "Write tree.to_dataset().",
    ("xarray", "DataArray"): "Write array.to_dataset(name=...).",
    ("numpy", "ndarray"): "Write pandas.DataFrame(array, columns=[...]).",
}
"""What to write for what is nearly a table."""
READERS = {
    **dict.fromkeys((".csv", ".txt"), "pandas.read_csv(path, dtype=...)"),
    ".tsv": 'pandas.read_csv(path, sep="\\t", dtype=...)',
    **dict.fromkeys((".db", ".duckdb"), 'duckdb.connect(path).table("records")'),
    **dict.fromkeys((".arrow", ".feather"), "pyarrow.feather.read_table(path)"),
    ".nc": "xarray.open_dataset(path).to_dataframe()",
    **dict.fromkeys((".xlsx", ".xls"), "pandas.read_excel(path)"),
    **dict.fromkeys((".json", ".jsonl"), "pandas.read_json(path)"),
}
"""What makes a table of a file that is no Parquet file, by how its name ends."""
ONE_FILE, FILES = "the path of a Parquet file", "the path of a Parquet file or of a directory of some, a pattern of paths, a list of paths"


@dataclass(frozen=True)
class Words:
    """What is said where a table is none, or lacks a column.

    Attributes
    ----------
    table, no_table, instead, rename, other : str
        What a table is called, and what is none; what to write in its place; what to do about the name of a column, and about one that
        could be another's.
    several : bool
        Whether it may be in several files, or be arrays with names.
    """

    table: str
    no_table: str
    instead: str
    rename: str
    other: str
    several: bool


def table_of(data: object, words: Words) -> Any:
    """The table as it is read from here on: one file is an absolute path, several are a tuple of those, in no order that matters."""
    if words.several:
        data = readable_in_place(data)
    if isinstance(data, Spread):
        _files_once(data.files)
        return data
    if isinstance(data, str | PathLike):
        paths = [data]
    elif words.several and isinstance(data, list | tuple) and all(isinstance(path, str | PathLike) for path in data):
        paths = list(data)
    else:
        return data
    files = _files_once([file for path in paths for file in (_files_at(path) if words.several else [file_at(path)])])
    if not files:
        raise Refusal("There is no file in this list. Write the path of a Parquet file.")
    return files if words.several else files[0]


def _files_once(files: Sequence[Path]) -> tuple[Path, ...]:
    """The files as a tuple, or a refusal where one is there twice."""
    if len({(status.st_dev, status.st_ino) for status in map(Path.stat, files)}) < len(files):
        raise Refusal("A file is given twice, and its records would be counted twice. Name every file once.")
    return tuple(files)


def files_of(table: Any) -> tuple[Path, ...]:
    """The files of a table as ``table_of`` gives it; none where it is no file."""
    if isinstance(table, Path):
        return (table,)
    return table if isinstance(table, tuple) and all(isinstance(file, Path) for file in table) else ()


def file_at(path: str | PathLike) -> Path:
    """The file at this path, absolute; refused where there is none."""
    try:
        file = Path(path).absolute()
        there = file.is_file()
    except (TypeError, ValueError, OSError):
        there = False
    if not there:
        raise Refusal(_no_file(str(path)))
    return file


def _no_file(path: str) -> str:
    """What to write where there is no file at a path, by the signs of the path."""
    if "://" in path:
        return "Only files of this machine are read. Copy them here, or write pandas.read_parquet(url)."
    if any(sign in path for sign in "*?["):
        return "There is no file of this pattern. Write the path of one Parquet file."
    if path.isidentifier():
        return 'There is no file at this path. Write the path of one Parquet file, or connection.table("records") for a table of DuckDB.'
    return "There is no file at this path. Write the path of one Parquet file."


def _files_at(path: str | PathLike) -> list[Path]:
    """The file of this path, the files of a directory, or those that a pattern names."""
    try:
        whole = Path(path).absolute()
        folder, written = whole.is_dir(), not whole.is_file() and any(sign in str(path) for sign in "*?[")
        files = sorted(whole.rglob("*.parquet")) if folder else sorted(map(Path, glob(str(whole), recursive=True))) if written else []
    except (TypeError, ValueError, OSError):
        folder, files = False, []
    if folder:
        files = [file for file in files if file.is_file() and not _is_hidden(file.relative_to(whole))]
        if not files:
            raise Refusal("There is no file called *.parquet in this directory. Write the path of a Parquet file.")
    return [file_at(file) for file in files] or [file_at(path)]


def _is_hidden(path: Path) -> bool:
    """Whether a file is one that others leave while they write, as Spark does."""
    return any(part.startswith((".", "_")) for part in path.parts)


def check_columns(table: Any, names: Sequence[str], words: Words) -> list:
    """Names of all columns, or a refusal that says which of those that are read is missing, or could fail because of one record."""
    if files := files_of(table):
        several = [_names_in(file) for file in files]
        for there in several:
            _check_names(there, names, words, of_file=True)
        return sorted({name for there in several for name in there})
    if words.several and is_one(table, "xarray", "Dataset"):
        _check_arrays(table, names, words)
        return [*table.variables]
    if isinstance(table, Spread):
        _check_names([*table.columns], names, words, of_file=False)
        return [*table.columns]
    columns = names_in(table)
    if columns is None:
        kinds = KINDS.format(files=FILES, a="a ") + ALSO if words.several else KINDS.format(files=ONE_FILE, a="or a ")
        instead = next((write for (module, name), write in NEARLY.items() if is_one(table, module, name)), words.instead)
        raise Refusal(f"{words.no_table} must be {kinds}. {instead}")
    if is_one(table, "pandas", "DataFrame"):
        for name in (name for name in names if name not in columns and name in table.index.names):
            raise Refusal(f"{name} is the index of the table, not a column. Write frame.reset_index().")
    _check_names(columns, names, words, of_file=False)
    if is_one(table, "pandas", "DataFrame"):
        for name in names:
            if not is_of_pandas(table.dtypes.iloc[columns.index(name)]):
                raise Refusal(
                    f"{name} is of a type that is not pandas' own, and could fail because of one record. Write frame.astype(...)."
                )
    return columns


def _check_arrays(dataset: Any, names: Sequence[str], words: Words) -> None:
    """Refuse arrays that do not lie along one dim of records, and those that code computes that nobody knows."""
    _check_names([*dataset.variables], names, words, of_file=False)
    if len({dataset.variables[name].dims for name in names}) > 1 or any(dataset.variables[name].ndim != 1 for name in names):
        raise Refusal(f"{', '.join(names)} must have one dim, that of the records, and all the same. Write for example dataset.isel(...).")
    for name in names:
        held = dataset.variables[name]._data
        while not isinstance(held, np.ndarray) and type(held).__module__.startswith("xarray.") and hasattr(held, "array"):
            held = held.array
        known = type(held).__module__.startswith(("numpy", "pandas.", "xarray.backends."))
        if not known and not is_one(held, "pandas", "Categorical"):
            raise Refusal(
                f"{name} is computed when it is read, by code that could fail because of one record. Write dataset.persist(), or open the"
                " file without chunks, so that it is read in blocks."
            )
        if type(held).__module__.startswith("xarray.") and dataset.variables[name].dtype.kind not in "biuf":
            raise Refusal(f"{name} is in a file and holds no numbers, and could fail because of one record. Write dataset.load().")


def _check_names(there: list, names: Sequence[str], words: Words, *, of_file: bool) -> None:
    if lacking := [name for name in names if name not in there]:
        what = "no column" if len(lacking) == 1 else "no columns"
        raise Refusal(f"{words.table} has {what} called {', '.join(lacking)}. {words.rename.format(lacking[0])}")
    for name in names:
        if there.count(name) != 1:
            raise Refusal(f"{words.table} has several columns called {name}. {words.rename.format(name)}")
        if of_file and any(name.startswith(f"{other}.") for other in there):
            raise Refusal(f"{name} could be a part of another column of the file. {words.other.format(name)}")


def _names_in(file: Path) -> list:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise Refusal("Parquet files need pyarrow, which is not installed. Write pip install pymc_dp[queries].") from None
    try:
        return list(parquet.read_schema(file).names)
    except (ArrowException, OSError):
        read = READERS.get(file.suffix.lower())
        instead = f"the table that it holds, for example {read}" if read else "for example frame.to_parquet(path)"
        raise Refusal(f"The file at this path is no Parquet file. Write {instead}.") from None


def names_in(table: Any) -> list | None:
    """Names of the columns of what is no file, or None where it is no table."""
    if is_one(table, "pyarrow", "Table", "RecordBatch"):
        return list(table.schema.names)
    through_arrow = is_one(table, "polars", "DataFrame") or is_one(table, "duckdb", "DuckDBPyRelation")
    if through_arrow and not has_arrow():
        raise Refusal("Tables of polars and DuckDB are read through pyarrow, which is not installed. Write pip install pymc_dp[queries].")
    if is_one(table, "duckdb", "DuckDBPyRelation"):
        with alone(table):  # even the names of its columns come by its connection
            if table.type != "TABLE_RELATION":
                raise Refusal(
                    "A view or a query of DuckDB is computed anew for every question, and could fail because of one record. "
                    'Write relation.create("records") and give connection.table("records").'
                )
            check_database(table)
            return list(table.columns)
    if is_one(table, "pandas", "DataFrame") or is_one(table, "polars", "DataFrame"):
        return list(table.columns)
    return None


_READING = RLock()


def alone(table: Any) -> AbstractContextManager:
    """For a block that asks a database for rows: no other thread's question ends them, which comes to the same connection."""
    return _READING if is_one(table, "duckdb", "DuckDBPyRelation") else nullcontext()


def check_database(relation: Any) -> None:
    """Nothing in the database stands for DuckDB's own functions, is computed anew, or tells what its scans meet; no record is looked at."""
    if _there_is(relation, "duckdb_functions() WHERE NOT internal"):
        raise Refusal(
            "The database has functions or macros of its own, which could stand for DuckDB's where records are read. Drop them, or"
            " write the table to a Parquet file and give its path."
        )
    if _there_is(relation, "duckdb_tables() WHERE sql ILIKE '%GENERATED ALWAYS AS%'"):
        raise Refusal(
            "The database has a table with generated columns, which are computed anew when they are read: they could fail because of one"
            ' record, or rest on several. Write CREATE TABLE stored AS FROM records, drop the other, and give connection.table("stored").'
        )
    if _there_is(relation, "duckdb_settings() WHERE name IN ('enable_profiling', 'enable_logging') AND value NOT IN ('', 'false', '0')"):
        raise Refusal(
            "The database tells how many rows every query meets. Switch that off: PRAGMA disable_profiling, and CALL disable_logging()."
        )

    if _there_is(relation, f"duckdb_databases() WHERE NOT internal AND type <> '{KIND_OF_DATABASE}'"):
        raise Refusal(
            "A database of another kind is attached, such as one of SQLite or Postgres, which could fail because of one record. Write"
            ' CREATE TABLE stored AS FROM records, DETACH the other, and give connection.table("stored").'
        )


KIND_OF_DATABASE = "duckdb"
"""The kind of attached databases of which no record can fail: a value of DuckDB's own tables is of the type of its column."""


def _there_is(relation: Any, what: str) -> bool:
    """Whether DuckDB itself says that there is such a thing in the database: no macro can stand for it, and none is called besides."""
    with alone(relation):
        return bool(relation.query("records_of_pymc_dp", f"SELECT 1 FROM system.main.{what} LIMIT 1").fetchall())


def rows_in(table: Any, names: Sequence[str] = ()) -> int:
    """Number of rows, of arrays with names that of these. Public under "replace" only; no column is read."""
    if files := files_of(table):
        from pyarrow import parquet

        return sum(int(parquet.read_metadata(file).num_rows) for file in files)
    if is_one(table, "xarray", "Dataset"):
        return int(table.variables[names[0]].shape[0])
    if is_one(table, "duckdb", "DuckDBPyRelation"):
        with alone(table):
            return int(table.aggregate("count(*)").fetchall()[0][0])
    return len(table)
