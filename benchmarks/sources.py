"""One release from every source that ``data=`` takes: whether its sums are the same, how long it takes, and how much memory.

``python benchmarks/sources.py 10000000`` writes the tables of docs/large_data_measured.md: so many made-up rows, and the flights of
nycflights13 (CC0) where PYMC_DP_DATA names a folder that has them, by rows and by aircraft. ``python benchmarks/sources.py 0`` is about
the flights alone. At an epsilon of 10**15 noise is nothing, so that what is released are the sums, which are compared bit by bit. Every
source has a process of its own, which has compiled what it needs; in it the table is opened and then released twice: memory is that of
the first time, and time that of the faster. Needs the group ``engines``, and Java for Spark.
"""

import logging
import multiprocessing
import os
import platform
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYSPARK_PYTHON": sys.executable}

import numpy as np
import pandas as pd
import psutil
import pymc as pm

import pymc_dp as pmdp

FLIGHTS = Path(os.environ.get("PYMC_DP_DATA", ".")) / "nycflights13" / "flights.parquet"
FILES, WORKERS = 8, 2
MADE_UP = {"bounds": {"x": (-2, 2), "y": (-1, 1)}}
MINUTES = {"bounds": {"x": (-60, 180), "y": (-60, 180)}}
PERSONS = {"unit": pmdp.Person("who", at_most=20), "neighbours": "add_remove"}
NO_NOISE = {"epsilon": 10**15, "missing": ["y"]}
"""The scale of the noise is then below 10**-3, and the probability that any of it is not 0 below exp(-1000)."""


def model() -> pm.Model:
    """Shares of three sites, and a linear regression."""
    with pm.Model() as built:
        x, site = pm.Data("x", np.zeros(2)), pm.Data("site", np.zeros(2, dtype=int))
        pm.Bernoulli("k", pm.Beta("p", 1, 1, shape=3)[site], observed=np.zeros(2, dtype=int))
        pm.Normal("y", pm.Normal("a") + pm.Normal("b") * x, pm.HalfNormal("sd"), observed=np.zeros(2))
    return built


def made_up(rows: int) -> pd.DataFrame:
    """So many rows, of which some lack a value."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=rows)
    y = np.where(rng.random(rows) < 0.01, np.nan, 0.3 * x + rng.normal(size=rows))
    return pd.DataFrame({"x": x, "site": rng.integers(0, 3, rows), "y": y, "k": rng.integers(0, 2, rows)})


def flights() -> pd.DataFrame:
    """Delays in minutes by airport, whether more than a quarter of an hour, and whose the aircraft is."""
    found = pd.read_parquet(FLIGHTS)
    airport = found["origin"].astype("category").cat.codes.astype(int)
    late = {"x": found["dep_delay"].astype(float), "site": airport, "y": found["arr_delay"].astype(float)}
    return pd.DataFrame(late).assign(k=(found["arr_delay"] > 15).astype(int), who=found["tailnum"].astype("string"))


# ---------- the sources


def write(frame: pd.DataFrame, folder: Path) -> None:
    """The same rows in files of all kinds; those in several files are in another order."""
    import duckdb
    import xarray as xr

    frame.to_parquet(folder / "one.parquet", index=False)
    shuffled, size = frame.sample(frac=1, random_state=1), -(-len(frame) // FILES)
    (folder / "several").mkdir()
    for k in range(FILES):
        shuffled[k * size : (k + 1) * size].to_parquet(folder / "several" / f"{k}.parquet", index=False)
    arrays = xr.Dataset({name: ("record", frame[name].to_numpy()) for name in frame if name != "who"})
    arrays.to_netcdf(folder / "records.nc", engine="h5netcdf")
    arrays.chunk(record=size).to_zarr(folder / "records.zarr")
    with duckdb.connect(folder / "records.db") as connection:
        connection.execute(f"CREATE TABLE stored AS FROM '{folder}/several/*.parquet'")


def of_pandas(folder: Path) -> object:
    return pd.read_parquet(folder / "one.parquet")


def of_polars(folder: Path) -> object:
    import polars as pl

    return pl.read_parquet(folder / "several" / "*.parquet")


def of_arrow(folder: Path) -> object:
    from pyarrow import parquet

    return parquet.read_table(folder / "one.parquet")


def of_duckdb(folder: Path) -> object:
    import duckdb

    return duckdb.connect(folder / "records.db", read_only=True).table("stored")


def of_arrays(folder: Path) -> object:
    import xarray as xr

    return xr.load_dataset(folder / "records.nc", engine="h5netcdf")


def of_netcdf(folder: Path) -> object:
    import xarray as xr

    return xr.open_dataset(folder / "records.nc", engine="h5netcdf")


def of_zarr(folder: Path) -> object:
    import xarray as xr

    return xr.open_zarr(folder / "records.zarr", chunks=None)


def of_zarr_by_dask(folder: Path) -> object:
    import xarray as xr

    return xr.open_zarr(folder / "records.zarr")


def arrays_of_workers(folder: Path) -> object:
    return of_zarr_by_dask(folder).persist()  # type: ignore[attr-defined]


def of_dask(folder: Path) -> object:
    import dask.dataframe as dd

    return dd.read_parquet(str(folder / "several"))


def frames_of_workers(folder: Path) -> object:
    return of_dask(folder).persist()  # type: ignore[attr-defined]


def of_spark(folder: Path) -> object:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    assert session is not None
    return session.read.parquet(str(folder / "several"))


def of_checkpoint(folder: Path) -> object:
    return of_spark(folder).repartition(5).localCheckpoint()  # type: ignore[attr-defined]


SOURCES: dict[str, tuple[str, bool, Callable[[Path], object]]] = {
    "pandas": ("", True, of_pandas),
    "polars": ("", True, of_polars),
    "Arrow": ("", True, of_arrow),
    "a Parquet file": ("", True, lambda folder: folder / "one.parquet"),
    f"{FILES} Parquet files by a pattern": ("", True, lambda folder: f"{folder}/several/*.parquet"),
    "a table of DuckDB": ("", True, of_duckdb),
    "xarray, in memory": ("", False, of_arrays),
    "xarray, netCDF": ("", False, of_netcdf),
    "xarray, Zarr": ("", False, of_zarr),
    "xarray, Zarr by dask": ("dask", False, of_zarr_by_dask),
    "xarray, arrays of dask in memory": ("dask", False, arrays_of_workers),
    "dask, Parquet files": ("dask", True, of_dask),
    "dask, in memory": ("dask", False, frames_of_workers),
    "Spark, Parquet files": ("Spark", True, of_spark),
    "Spark, a checkpoint": ("Spark", True, of_checkpoint),
    f"`partial_statistics`, {FILES} parts": ("", True, lambda folder: sorted((folder / "several").iterdir())),
}
"""Of everything that ``data=`` takes: who has the workers, whether rows of persons may be in it, and how it is opened."""


def sums(source: str, data: object, declared: dict) -> list:
    """All numbers of a release in which there is no noise."""
    if source.startswith("`partial"):
        return in_parts(data, declared)  # type: ignore[arg-type]
    released = pmdp.release(model(), data=data, **NO_NOISE, **declared)
    return [statistic.noisy.tolist() for statistic in released.statistics]


def in_parts(files: list[Path], declared: dict) -> list:
    """The same of parts that are read one by one."""
    persons = "unit" in declared
    many = {} if persons else {"records": sum(len(pd.read_parquet(file, columns=["k"])) for file in files)}
    shared = pmdp.share_out(model(), parts=len(files), **NO_NOISE, **many, **declared)
    parts = [pmdp.partial_statistics(shared.plan, files if persons else file, k, whole=persons) for k, file in enumerate(files)]
    return [statistic.noisy.tolist() for statistic in pmdp.add_up(shared, parts).statistics]


# ---------- what it takes


def workers_of(kind: str, stack: ExitStack, folder: Path) -> None:
    """Start the workers of dask or of Spark, until the stack is left."""
    if kind == "dask":
        from distributed import Client, LocalCluster

        logging.getLogger("distributed").setLevel(logging.ERROR)
        cluster = stack.enter_context(LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None))
        stack.enter_context(Client(cluster))
    elif kind == "Spark":
        from pyspark.sql import SparkSession

        settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.warehouse.dir": str(folder)}
        builder = SparkSession.builder.master(f"local[{WORKERS}]").config("spark.driver.bindAddress", "127.0.0.1")
        stack.callback(builder.config(map=settings).getOrCreate().stop)


def status(process: psutil.Process, name: str) -> float:
    """A number of megabytes that the system says of a process."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


class Taken:
    """CPU and memory of this process and of its workers, between entering and leaving."""

    def __enter__(self) -> "Taken":
        for process in self._all():
            Path(f"/proc/{process.pid}/clear_refs").write_text("5")  # the peak begins anew
        self.before = {process.pid: (self._cpu(process), status(process, "VmRSS")) for process in self._all()}
        self.start = perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds, self.cpu = perf_counter() - self.start, 0.0
        more = {}
        for process in self._all():
            with suppress(psutil.NoSuchProcess, FileNotFoundError):
                cpu, memory = self.before.get(process.pid, (0, 0))
                self.cpu += self._cpu(process) - cpu
                more[process.pid] = status(process, "VmHWM") - memory
        self.here = more.pop(os.getpid())
        self.workers = sum(more.values())

    @staticmethod
    def _all() -> list[psutil.Process]:
        this = psutil.Process()
        return [process for process in (this, *this.children(recursive=True)) if process.status() != psutil.STATUS_ZOMBIE]

    @staticmethod
    def _cpu(process: psutil.Process) -> float:
        return sum(process.cpu_times()[:4])  # with that of children that have ended


def one(source: str, folder: Path, declared: dict, said: object) -> None:
    """Release from a source, and say what was released, and what it took."""
    warnings.simplefilter("ignore")
    kind, _, opened = SOURCES[source]
    with ExitStack() as stack:
        workers_of(kind, stack, folder)
        data, taken = opened(folder), []
        for _ in range(2):
            with Taken() as once:
                found = sums(source, data, declared)
            taken.append(once)
        del data
    fastest = min(taken, key=lambda once: once.seconds)
    said.put((found, fastest.seconds, fastest.cpu, taken[0].here, taken[0].workers if kind else None))  # type: ignore[attr-defined]


def compared(rows: Callable[[], pd.DataFrame], declared: dict) -> Iterator[str]:
    """For every source a row of the table: what the release took, and whether its sums are those of the first source."""
    with TemporaryDirectory() as place:
        in_a_copy(lambda said: said.put(write(rows(), Path(place))))
        expected = None
        for source, (_, takes_persons, _) in SOURCES.items():
            if "unit" in declared and not takes_persons:
                continue
            taken = in_a_copy(partial(one, source, Path(place), declared))
            if taken is None:
                yield f"| {source} | failed | | | | |"
                continue
            found, seconds, cpu, here, workers = taken
            expected = expected or found
            same = "the same" if found == expected else "**others**"
            yield f"| {source} | {same} | {seconds:.1f} | {cpu:.1f} | {here:.0f} | {'' if workers is None else f'{workers:.0f}'} |"


def in_a_copy(work: Callable) -> tuple | None:
    """What a copy of this process says, which has compiled what is needed and has no threads; None where it fails."""
    context = multiprocessing.get_context("fork")
    said = context.SimpleQueue()
    process = context.Process(target=work, args=(said,))
    process.start()
    process.join()
    return None if process.exitcode else said.get()


def machine() -> str:
    """What this was measured with."""
    packages = ("pymc_dp", "pymc", "numpy", "pandas", "polars", "pyarrow", "duckdb", "xarray", "zarr", "dask", "pyspark")
    processor = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), "")
    named = ", ".join(f"{package} {version(package)}" for package in packages)
    return f"{os.cpu_count()} x {processor}, {platform.system()}, Python {platform.python_version()}, {named}"


def main(rows: int) -> None:
    """Print a table for each data set."""
    warnings.simplefilter("ignore")
    cases = [(f"{rows:,} rows that are made up", partial(made_up, rows), MADE_UP)] if rows else []
    if FLIGHTS.exists():
        cases.append(("flights", lambda: flights().drop(columns="who"), MINUTES))
        cases.append(("flights by aircraft, at most 20 each", flights, MINUTES | PERSONS))
    for _, _, declared in cases:
        sums("pandas", made_up(2).assign(who="a"), declared)
    for title, of_case, declared in cases:
        print(f"\n{title}\n\n| source | sums | seconds | of CPU | MB more | of workers |\n|---|---|---|---|---|---|", flush=True)
        for line in compared(of_case, declared):
            print(line, flush=True)
    print(f"\n{machine()}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
