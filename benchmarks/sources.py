"""One release from every source that ``data=`` takes: whether its sums are the same, and how long it takes.

``python benchmarks/sources.py 10000000`` writes the table of docs/large_data.md: so many rows that are made up, and the flights of
nycflights13 (CC0) where PYMC_DP_DATA names a folder that has them, by rows and by aircraft. At an epsilon of a billion noise is nothing,
so that what is released are the sums, which are compared bit by bit. Needs the group ``engines``, and Java for Spark.
"""

import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYSPARK_PYTHON": sys.executable}

import numpy as np
import pandas as pd
import pymc as pm

import pymc_dp as pmdp

FLIGHTS = Path(os.environ.get("PYMC_DP_DATA", ".")) / "nycflights13" / "flights.parquet"
BOUNDS = {"x": (-2, 2), "y": (-1, 1)}
FILES, WORKERS = 8, 2
PERSONS = {"unit": pmdp.Person("who", at_most=20), "neighbours": "add_remove"}


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
    """Delays in thousands of minutes by airport, and whose the aircraft is."""
    found = pd.read_parquet(FLIGHTS)
    late = {"x": found["dep_delay"] / 1000, "y": found["arr_delay"] / 1000, "k": (found["arr_delay"] > 15).astype(int)}
    airport = found["origin"].astype("category").cat.codes.astype(int)
    return pd.DataFrame(late).astype({"x": float, "y": float}).assign(site=airport, who=found["tailnum"].astype("string"))


def sums(data: object, declared: dict) -> list:
    """All numbers of a release in which there is no noise."""
    released = pmdp.release(model(), data=data, epsilon=10**9, bounds=BOUNDS, missing=["y"], **declared)
    return [(statistic.name, statistic.noisy.tolist()) for statistic in released.statistics]


def in_parts(frame: pd.DataFrame, declared: dict) -> list:
    """The same of parts that are read one by one."""
    persons = "unit" in declared
    many = {} if "neighbours" in declared else {"records": len(frame)}
    shared = pmdp.share_out(model(), parts=FILES, epsilon=10**9, bounds=BOUNDS, missing=["y"], **many, **declared)
    chunks = [frame if persons else frame[k::FILES] for k in range(FILES)]
    parts = [pmdp.partial_statistics(shared.plan, chunk, k, whole=persons) for k, chunk in enumerate(chunks)]
    return [(statistic.name, statistic.noisy.tolist()) for statistic in pmdp.add_up(shared, parts).statistics]


def sources(frame: pd.DataFrame, folder: Path, spark: object) -> Iterator[tuple[str, bool, Callable[[], object]]]:
    """What ``data=`` takes: its name, whether it also takes persons, and how it is made."""
    import dask.dataframe as dd
    import duckdb
    import polars as pl
    import pyarrow as pa
    import xarray as xr

    shuffled = frame.sample(frac=1, random_state=1)
    for k in range(FILES):
        shuffled[k * len(frame) // FILES : (k + 1) * len(frame) // FILES].to_parquet(folder / f"{k}.parquet", index=False)
    numbers = [name for name in frame if name != "who"]
    arrays = xr.Dataset({name: ("record", frame[name].to_numpy()) for name in numbers})
    arrays.to_netcdf(folder / "records.nc", engine="h5netcdf")
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE stored AS FROM '{folder}/*.parquet'")
    yield "pandas", True, lambda: frame
    yield "polars", True, lambda: pl.from_pandas(shuffled)
    yield "Arrow", True, lambda: pa.Table.from_pandas(frame)
    yield f"{FILES} Parquet files", True, lambda: folder
    yield "DuckDB", True, lambda: connection.table("stored")
    yield "xarray, in memory", False, lambda: arrays
    yield "xarray, netCDF", False, lambda: xr.open_dataset(folder / "records.nc", engine="h5netcdf")
    yield f"dask: Parquet, {WORKERS} workers", True, lambda: dd.read_parquet(str(folder))
    yield f"dask: memory of {WORKERS} workers", False, lambda: dd.read_parquet(str(folder)).persist()
    if spark is not None:
        yield "Spark: Parquet", True, lambda: spark.read.parquet(str(folder))  # type: ignore[attr-defined]
        yield "Spark: checkpoint", True, lambda: spark.read.parquet(str(folder)).repartition(5).localCheckpoint()  # type: ignore[attr-defined]


def compared(frame: pd.DataFrame, declared: dict, spark: object) -> Iterator[str]:
    """For every source a row of the table: seconds that the release took, and whether its sums are those of pandas."""
    with TemporaryDirectory() as place:
        expected = None
        for source, takes_persons, make in sources(frame, Path(place), spark):
            if "unit" in declared and not takes_persons:
                continue
            data = make()
            start = perf_counter()
            found = sums(data, declared)
            seconds, expected = perf_counter() - start, expected or found
            yield f"| {source} | {seconds:.1f} | {same(found, expected)} |"
        start = perf_counter()
        found = in_parts(frame, declared)
        yield f"| `partial_statistics`, {FILES} parts | {perf_counter() - start:.1f} | {same(found, expected)} |"


def same(found: object, expected: object) -> str:
    """Whether they are the same."""
    return "the same" if found == expected else "**others**"


def session(folder: str) -> object:
    """Spark on this machine, or None without Java."""
    try:
        from pyspark.sql import SparkSession

        settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.warehouse.dir": folder}
        builder = SparkSession.builder.master(f"local[{WORKERS}]").config("spark.driver.bindAddress", "127.0.0.1")
        return builder.config(map=settings).getOrCreate()
    except Exception:
        return None


def main(rows: int) -> None:
    """Print a table for each data set."""
    from distributed import Client, LocalCluster

    warnings.simplefilter("ignore")
    logging.getLogger("distributed").setLevel(logging.ERROR)
    with ExitStack() as stack:
        stack.enter_context(Client(stack.enter_context(LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None))))
        spark = session(stack.enter_context(TemporaryDirectory()))
        cases = [(f"{rows:,} rows that are made up", made_up(rows), {})]
        if FLIGHTS.exists():
            cases += [("flights", flights().drop(columns="who"), {}), ("flights by aircraft, at most 20 each", flights(), PERSONS)]
        for title, frame, declared in cases:
            print(f"\n{title} ({len(frame):,})\n\n| source | seconds | sums |\n|---|---|---|", flush=True)
            for line in compared(frame, declared, spark):
                print(line, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
