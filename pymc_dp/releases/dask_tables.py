"""DataFrames of dask that give the same records every time they are read: from pandas, from Parquet files, or from the memory of workers.

A frame in files is read by the rules of files, each a part; a persisted one partition by partition, each where it lies.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.releases.spread import UNLIKE, Place, Spread, version_here

COMPUTED = (
    "This dask DataFrame is still to be computed, by code that could fail because of one record. Write frame = frame.persist(), or"
    " frame.to_parquet(path) and data=path."
)
_FILES = ("ReadParquetFSSpec", "ReadParquetPyarrowFS")
_PLAIN = ("filters", "index", "storage_options", "_partitions", "arrow_to_pandas", "categories")
"""What may change which rows and columns a frame of files has: each is left as it is by default."""


class DaskTable(Spread):
    """Partitions of a DataFrame, or files, each of which a worker of ``dask.distributed`` reads; without one, this process does.

    Parameters
    ----------
    columns : sequence of str
    chunks : sequence
        Futures of pandas DataFrames; paths of files, or lists of these; or DataFrames that are in this process.
    client : distributed.Client or None
        None for those that are in this process.
    lasting : bool
        Whether a part can be read again after the worker that had it is lost: a file can.
    """

    def __init__(self, columns: Sequence[str], chunks: Sequence[Any], client: Any, *, lasting: bool) -> None:
        self.columns = tuple(columns)
        self.files = tuple(chunk for chunk in chunks if isinstance(chunk, Path))
        self._chunks, self._client, self._lasting, self._rows = list(chunks), client, lasting, -1
        self._made: dict[object, int | None] = {}

    @property
    def parts(self) -> int:
        """How many parts the table is in."""
        return len(self._chunks)

    def by_person(self, key: str, place: Place) -> "DaskTable | None":
        """Files of which every worker reads all, and counts its own persons: no row travels. It takes long to look for the rows that
        count, and not to read them.
        """
        if not self.files:
            return None
        many = 1 if self._client is None else max(len(self._client.nthreads()), 1)
        return DaskTable(self.columns, [[*self.files]] * many, self._client, lasting=True)

    def check(self, names: Sequence[str], look: Callable[[object, Sequence[str]], tuple[str, str]]) -> None:
        """Refuse partitions that are not in memory, files that workers do not see, and another version of the package there."""
        if self._client is None:
            seen = [look(table_at(chunk), names) for chunk in self._chunks]
        else:
            self._wait()
            try:
                self._made = self._runs()
                seen = self._each(_of_table, task=look, names=tuple(names))
            except Exception:
                raise Refusal(UNLIKE.format(version_here())) from None
        for version, words in seen:
            if version != version_here():
                raise Refusal(UNLIKE.format(version_here()))
            if words:
                raise Refusal(words)

    def _wait(self) -> None:
        """Until all partitions are in memory: what failed did so in the user's own computation, before anything of ours."""
        if self._lasting:
            return
        from distributed import wait

        futures = self._futures()
        wait(futures)
        if any(future.status != "finished" for future in futures):
            raise Refusal(
                "A part of this table of dask could not be computed. Look into what persist() has made, and give what is in memory."
            )

    def rows(self, count: Callable[[object], int]) -> int:
        """The number of records, counted once."""
        if self._rows < 0:
            self._rows = sum(map(count, map(table_at, self._chunks)) if self._client is None else self._each(_of_table, task=count))
        return self._rows

    def results(self, function: Callable[..., bytes], names: Sequence[str], written: bytes) -> list[bytes]:
        """What the function returns, of every part once: the scheduler keeps one result of each, whoever computes it and how often.

        A file is read again where a worker is lost. A partition in memory would be computed anew by code that nobody knows, and might hold
        records that were counted in another: then nothing is released, nor if that happens between two rounds.
        """
        if self._client is None:
            return [_of_one(chunk, part, function, written) for part, chunk in enumerate(self._chunks)]
        results = self._each(_of_one, numbered=True, function=function, written=written)
        if self._runs() != self._made:
            raise RuntimeError
        return results

    def _each(self, what: Callable, *, numbered: bool = False, **arguments: Any) -> list:
        """What a function returns for every part, and for the part's number if that is asked for, computed where the part lies."""
        mark, parts = uuid4().hex, range(self.parts)
        numbers = [list(parts)] if numbered else []
        keys = [f"pymc_dp-{mark}-{part}" for part in parts]
        return self._client.gather(self._client.map(what, self._chunks, *numbers, key=keys, pure=False, **arguments))

    def _futures(self) -> list[Any]:
        """Of all partitions in memory; none of files."""
        several = [] if self._lasting else [chunk.values() if isinstance(chunk, dict) else [chunk] for chunk in self._chunks]
        return [future for beside in several for future in beside]

    def _runs(self) -> dict[object, int | None]:
        """Which computation made every partition in memory, by its key: another one made what was lost and computed again.

        The scheduler numbers computations; it need not have this package, so that the function goes there as it is written. What was
        scattered has no number, and is never made anew.
        """
        keys = [future.key for future in self._futures()]
        if not keys:
            return {}
        runs = lambda keys, dask_scheduler: {key: getattr(dask_scheduler.tasks.get(key), "run_id", -1) for key in keys}  # noqa: E731
        return self._client.run_on_scheduler(runs, keys)


def _of_one(chunk: Any, part: int, function: Callable[..., bytes], written: bytes) -> bytes:
    return function([table_at(chunk)], part, written)


def _of_table(chunk: Any, task: Callable, **arguments: Any) -> Any:
    return task(table_at(chunk), **arguments)


def table_at(chunk: Any) -> Any:
    """A part where it lies, as a table: arrays beside one another are one."""
    if not isinstance(chunk, dict):
        return chunk
    import xarray as xr

    return xr.Dataset({name: (("a record of pymc_dp",), array) for name, array in chunk.items()})


def of_dask(frame: Any) -> Any:
    """A frame made from pandas as that; one in files or in memory as a ``DaskTable``.

    Raises
    ------
    Refusal
        For one that is still to be computed.
    """
    try:
        columns, expression = list(frame.columns), frame.expr
        while type(expression).__name__ == "Projection":
            expression = expression.frame
        table = _still(expression, columns) if type(expression).__module__.startswith("dask.dataframe.dask_expr.") else None
    except (AttributeError, KeyError, TypeError, ValueError, LookupError):  # of another version of dask, which is not understood
        table = None
    if table is None:
        raise Refusal(COMPUTED)
    return table


def _still(expression: Any, columns: list) -> Any:
    kind = type(expression).__name__
    if kind == "FromPandas" and expression.operand("_partitions") is None and not expression.operand("_series"):
        return expression.operand("frame")._data[columns]
    if kind == "FromGraph":
        layer = expression.operand("layer")
        return _in_memory(columns, [layer[key] for key in expression.operand("keys")])
    return _in_files(expression, columns) if kind in _FILES else None


def _in_memory(columns: list, chunks: list) -> DaskTable | None:
    import pandas as pd

    if all(isinstance(chunk, pd.DataFrame) for chunk in chunks):
        return DaskTable(columns, chunks, None, lasting=True)
    from distributed import Future

    if not all(isinstance(chunk, Future) for chunk in chunks) or len({id(chunk.client) for chunk in chunks}) > 1:
        return None
    return DaskTable(columns, chunks, waiting(chunks[0].client), lasting=False)


def _in_files(expression: Any, columns: list) -> DaskTable | None:
    """The files of a frame that is all their rows: what is filtered, or has columns from names of directories, is not understood."""
    plain = [name for name in _PLAIN if name in expression._parameters]
    kwargs = {name: value for name, value in expression.operand("kwargs").items() if value is not None}
    if any(expression.operand(name) not in (None, False) for name in plain) or kwargs or expression.operand("_series"):
        return None
    known = expression._dataset_info
    if "ds" in known:
        from fsspec.implementations.local import LocalFileSystem

        local, files = type(known["fs"]) is LocalFileSystem and not known["partitions"], list(known["ds"].files)
    else:
        files = [file.path for file in known["all_files"]]
        local = str(expression.fs.type_name) in ("local", "file")
    if not local or not files or any("=" in file for file in files):
        return None
    return DaskTable(columns, [Path(file).absolute() for file in files], _client(), lasting=True)


def _client() -> Any:
    """The client of ``dask.distributed`` that is used by default, or None."""
    import sys

    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        return waiting(default_client())
    except ValueError:
        return None


def waiting(client: Any) -> Any:
    """The client, if it can be waited for."""
    if client.asynchronous:
        raise Refusal("The client of dask is asynchronous, and a release waits for its workers. Write Client(address).")
    return client
