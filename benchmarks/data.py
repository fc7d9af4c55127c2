"""CPU and memory of ``release(data=...)``, beside what adding up the same columns in memory takes, and reading the same file.

``python benchmarks/data.py 100000 1000000 10000000`` prints the tables of docs/large_data_measured.md. Each row is a process of its own,
in which everything it compares is measured in turn. ``--before=FOLDER`` measures the package of another checkout in the same run, too.

What a release does once, whatever the number of rows, is the column of the model; the others are of ``partial_statistics``, which is all
that it does with records. The least that memory allows is ``np.bincount`` of finished cells, ``sum`` of DuckDB in one thread, and
``X.T @ X`` of a finished matrix; of files that do not fit into memory these are of the first rows. ``python benchmarks/data.py duckdb
1000000 10000000`` is about tables of DuckDB, and ``python benchmarks/data.py sampling 10000 100000000`` about drawing from the posterior.
``--only="14 columns"`` measures one row of the table for each size.
"""

import os
import platform
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np

COLUMNS = {"counts": ("site", "k"), "sums": ("y",), "one covariate": ("x0", "y"), "14 columns": (*(f"x{j}" for j in range(13)), "y")}
"""What is released: counts of a Bernoulli variable in three sites, the sum of a normal one, and second moments of regressions."""


MOST_IN_MEMORY = 2 * 10**8
"""So many numbers of a file are held in memory, to be added up there."""


def column(name: str, rng: np.random.Generator, rows: int) -> np.ndarray:
    """Values of a column of this name."""
    return rng.integers(0, {"site": 3, "k": 2}[name], rows) if name in ("site", "k") else rng.normal(size=rows)


def write(path: Path, names: tuple[str, ...], rows: int) -> None:
    """A file of so many rows, written in groups, so that writing takes no memory either."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(1)
    schema = pa.schema({name: pa.int64() if name in ("site", "k") else pa.float64() for name in names})
    with parquet.ParquetWriter(path, schema) as file:
        for start in range(0, rows, 100_000):
            n = min(100_000, rows - start)
            file.write_table(pa.table([column(name, rng, n) for name in names], schema=schema))


def question(task: str) -> dict:
    """The model and bounds of a release."""
    import pymc as pm

    with pm.Model() as model:
        if task == "counts":
            pm.Bernoulli("k", pm.Beta("p", 1, 1, shape=3)[pm.Data("site", np.zeros(2, dtype=int))], observed=np.zeros(2, dtype=int))
            return {"model": model}
        covariates = COLUMNS[task][:-1]
        mean = sum((pm.Normal(f"b_{name}") * pm.Data(name, np.zeros(2)) for name in covariates), pm.Normal("a"))
        pm.Normal("y", mean, pm.HalfNormal("sd") if covariates else 1, observed=np.zeros(2))
    return {"model": model, "bounds": dict.fromkeys(COLUMNS[task], (-4.1, 4.0))}


def peak() -> float:
    """The most memory that this process ever took, in MB. ``ru_maxrss`` counts what the process took that started it, too."""
    lines = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) / 1024


def took(work: Callable[[], object]) -> float:
    """Seconds of CPU."""
    start = process_time()
    work()
    return process_time() - start


def least(task: str, table: object) -> Callable[[], object]:
    """What memory allows, on columns that are ready for it."""
    columns = {name: table[name].to_numpy() for name in COLUMNS[task]}  # type: ignore[index]
    if task == "counts":
        cell = columns["site"] * 2 + columns["k"]
        return lambda: np.bincount(cell, minlength=6)
    if task == "sums":
        import duckdb

        connection = duckdb.connect(config={"threads": 1})
        connection.register("given", table)
        connection.execute("CREATE TABLE stored AS SELECT * FROM given")
        return lambda: connection.execute("SELECT sum(y) FROM stored").fetchall()
    design = np.column_stack([np.ones(len(columns["y"])), *columns.values()])
    return lambda: design.T @ design


def read_alone(path: Path) -> None:
    """The batches of a file, as Arrow decodes them."""
    from pyarrow import parquet

    with parquet.ParquetFile(path, pre_buffer=False, buffer_size=2**20) as file:
        for _ in file.iter_batches(2**17, use_threads=False):
            pass


def first_rows(path: Path, task: str) -> object:
    """A file as one table, or as many of its first rows as may be in memory."""
    import pyarrow as pa
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        groups = min(file.num_row_groups, max(MOST_IN_MEMORY // len(COLUMNS[task]) // 100_000, 1))
        return pa.concat_tables([file.read_row_group(k) for k in range(groups)]).combine_chunks()


def measured(task: str, path: Path, rows: int, label: str) -> str:
    """One row of the table. Memory is what the process takes more at its peak than after a release of few rows."""
    import pandas as pd
    import pyarrow as pa

    import pymc_dp as pmdp

    warnings.simplefilter("ignore")
    asked = {"epsilon": 1, **question(task)}
    few = pa.Table.from_pandas(pd.DataFrame({name: [0, 1] for name in COLUMNS[task]}))
    pmdp.release(**asked, data=few)
    before = peak()
    pmdp.release(**asked, data=path)
    more = peak() - before
    table = first_rows(path, task)
    held = len(table)  # type: ignore[arg-type]
    plan = pmdp.share_out(**asked, parts=1, records=rows).plan
    works = {
        "least": least(task, table),
        "few": lambda: pmdp.release(**asked, data=few),
        "memory": lambda: pmdp.partial_statistics(plan, table, 0),
        "alone": lambda: read_alone(path),
        "file": lambda: pmdp.partial_statistics(plan, path, 0),
    }
    times = max(3, min(5, 5 * 10**7 // rows))
    seconds: dict[str, float] = {}
    for _ in range(times):
        for name, work in works.items():
            seconds[name] = min(took(work), seconds.get(name, np.inf))
    one = {name: seconds[name] / (held if name in ("least", "memory") else rows) * 1e9 for name in works}
    cells = [
        label, task, f"{rows:,}", f"{1000 * seconds['few']:.0f}", f"{one['least']:.1f}", f"{one['memory']:.1f}",
        f"{one['memory'] / one['least']:.1f}", f"{one['alone']:.1f}", f"{one['file']:.1f}",
        f"{one['file'] / (one['least'] + one['alone']):.1f}", f"{more:.0f}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


HEADER = (
    "| package | released | rows | ms for the model | ns a row: least | in memory | times | reading alone | from Parquet | times |"
    " MB more |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


def counted_by_database(rows: int) -> str:
    """One row about a DuckDB table of two columns of whole numbers: what DuckDB takes to count, and what we take with it and without."""
    import duckdb
    import pyarrow as pa

    import pymc_dp as pmdp
    from pymc_dp.releases import duck

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(1)
    given = pa.table({name: column(name, rng, rows) for name in COLUMNS["counts"]})
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET enable_progress_bar = false")
    connection.register("given", given)
    connection.execute("CREATE TABLE stored AS SELECT * FROM given")
    plan = pmdp.share_out(**question("counts"), epsilon=1, parts=1, records=rows).plan
    most, taken = duck.MOST_COMBINATIONS, []
    for work, limit in (
        (lambda: connection.execute("SELECT site, k, count(*) FROM stored GROUP BY site, k").fetchall(), most),
        (lambda: pmdp.partial_statistics(plan, connection.table("stored"), 0), most),
        (lambda: pmdp.partial_statistics(plan, connection.table("stored"), 0), 0),
    ):
        duck.MOST_COMBINATIONS = limit
        taken.append(min(took(work) for _ in range(3)) / rows * 1e9)
    return f"| {rows:,} | {' | '.join(f'{one:.1f}' for one in taken)} | {taken[1] / taken[0]:.1f} |"


MOST_WITHOUT_PRIVACY = 10**5
"""So many rows are sampled without privacy, too: the time of that grows with them."""


def sampled(rows: int) -> str:
    """One row about draws from the posterior of a regression: seconds of CPU, given a release of so many rows, and given these rows."""
    import nutpie
    import pandas as pd
    import pymc as pm

    import pymc_dp as pmdp

    warnings.simplefilter("ignore")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "records.parquet"
        write(path, COLUMNS["one covariate"], rows)
        asked = question("one covariate")
        released = pmdp.release(**asked, epsilon=1, data=path)
        models = {"private": pmdp.rewrite(asked["model"], released)}
        if rows <= MOST_WITHOUT_PRIVACY:
            frame = pd.read_parquet(path)
            with pm.Model() as models["rows"]:
                mean = pm.Normal("a") + pm.Normal("b_x0") * frame["x0"].to_numpy()
                pm.Normal("y", mean, pm.HalfNormal("sd"), observed=frame["y"].to_numpy())
    settings = {"draws": 1000, "tune": 1000, "chains": 2, "cores": 1, "progress_bar": False, "save_warmup": False}
    seconds = {"rows": "not measured"}
    for name, model in models.items():
        compiled = nutpie.compile_pymc_model(model, freeze_model=name == "rows")
        taken = [took(lambda seed=seed: nutpie.sample(compiled, seed=seed, **settings)) for seed in range(6)]  # noqa: B023
        seconds[name] = f"{np.median(taken[1:]):.2f}"
    return f"| {rows:,} | {seconds['private']} | {seconds['rows']} |"


def machine() -> str:
    """What this was measured with."""
    from importlib.metadata import version

    packages = ", ".join(f"{name} {version(name)}" for name in ("pymc_dp", "pymc", "numpy", "pyarrow", "duckdb", "nutpie"))
    return f"\n{os.cpu_count()} processors, {platform.system()} {platform.machine()}, Python {platform.python_version()}, {packages}"


def main(sizes: list[int], others: list[Path], only: str | None = None) -> None:
    """Print the table."""
    here = Path(__file__).parents[1]
    print(HEADER, flush=True)
    with TemporaryDirectory() as folder:
        for task, names in ((task, names) for task, names in COLUMNS.items() if only in (None, task)):
            for size in sizes:
                file = Path(folder) / "records.parquet"
                write(file, names, size)
                for label, package in (*(("before", other) for other in others), ("now", here)):
                    environment = os.environ | {"PYTHONPATH": str(package)}
                    subprocess.run([sys.executable, __file__, "--one", task, str(file), str(size), label], check=True, env=environment)


if __name__ == "__main__":
    if sys.argv[1] == "duckdb":
        print("| rows | ns a row: DuckDB alone | DuckDB counts | row by row | times |\n|---|---|---|---|---|")
        print("\n".join(counted_by_database(int(text)) for text in sys.argv[2:]))
    elif sys.argv[1] == "sampling":
        print("| rows | seconds given a release | given the rows |\n|---|---|---|")
        print("\n".join(sampled(int(text)) for text in sys.argv[2:]))
    elif sys.argv[1] == "--one":
        print(measured(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), sys.argv[5]), flush=True)
    else:
        given = {name: [t.removeprefix(name) for t in sys.argv[1:] if t.startswith(name)] for name in ("--before=", "--only=")}
        main([int(t) for t in sys.argv[1:] if t.isdigit()], [Path(t) for t in given["--before="]], *given["--only="])
    if sys.argv[1] != "--one":
        print(machine())
