"""Rows per second of CPU and peak memory of ``release(data=...)`` of a Parquet file, beside ``np.bincount`` and ``X.T @ X`` in memory.

python benchmarks/data.py 100000 1000000 prints rows of the table in docs/large_data.md, each size in a process of its own.
"""

import subprocess
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np


def write(path: Path, rows: int) -> None:
    """A file of so many rows, written in groups, so that writing takes no memory either."""
    import pyarrow as pa
    from pyarrow import parquet

    rng, schema = np.random.default_rng(1), pa.schema({"x": pa.float64(), "y": pa.float64(), "site": pa.int64(), "k": pa.int64()})
    with parquet.ParquetWriter(path, schema) as file:
        for start in range(0, rows, 100_000):
            n = min(100_000, rows - start)
            columns = [rng.normal(size=n), rng.normal(size=n), rng.integers(0, 3, n), rng.integers(0, 2, n)]
            file.write_table(pa.table(columns, schema=schema))


MOST = 10**7
"""Rows that are read into memory for ``np.bincount`` and ``X.T @ X``."""


def peak() -> float:
    """The most memory that this process ever took, in MB. ``ru_maxrss`` counts what the process took that started it, too."""
    lines = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) / 1024


def measured(path: Path, rows: int) -> str:
    """One row of the table: memory is what the process takes more at its peak than after a release of few rows."""
    import pandas as pd
    import pymc as pm
    from pyarrow import parquet

    import pymc_dp as pmdp

    warnings.simplefilter("ignore")
    with pm.Model() as model:
        x, site = pm.Data("x", np.zeros(2)), pm.Data("site", np.zeros(2, dtype=int))
        pm.Bernoulli("k", pm.Beta("p", 1, 1, shape=3)[site], observed=np.zeros(2, dtype=int))
        pm.Normal("y", pm.Normal("a") + pm.Normal("b") * x, pm.HalfNormal("sd"), observed=np.zeros(2))
    asked = {"epsilon": 1, "bounds": {"x": (-4, 4), "y": (-4, 4)}, "model": model}
    pmdp.release(**asked, data=pd.DataFrame({name: [0, 1] for name in ("x", "y", "site", "k")}))
    before, start = peak(), process_time()
    pmdp.release(**asked, data=path)
    took, more = process_time() - start, peak() - before
    frame = next(parquet.ParquetFile(path).iter_batches(min(rows, MOST))).to_pandas()
    design, cell = np.column_stack([np.ones(len(frame)), frame["x"], frame["y"]]), frame["site"].to_numpy() * 2 + frame["k"].to_numpy()
    start = process_time()
    np.bincount(cell, minlength=6)
    design.T @ design
    bound = len(frame) / (process_time() - start)
    return f"| {rows:,} | {rows / took:,.0f} | {more:.0f} | {bound:,.0f} | {bound * took / rows:.0f} |"


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        print(measured(Path(sys.argv[2]), int(sys.argv[3])))
    else:
        with TemporaryDirectory() as folder:
            for size in map(int, sys.argv[1:]):
                file = Path(folder) / f"{size}.parquet"
                write(file, size)
                subprocess.run([sys.executable, __file__, "--one", str(file), str(size)], check=True)
