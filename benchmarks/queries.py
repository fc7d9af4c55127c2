"""Questions under a budget: writes benchmarks/results/queries.csv and docs/queries_measured.md.

    python benchmarks/queries.py run [--data DIRECTORY] [--rows 10000000] [--sessions 3] [--questions 1000]
    python benchmarks/queries.py summary

A workload is random ranges of two columns, each with the length its 95 % interval may have, fixed before the first is asked. It is put to
sessions over ``acs_nist_national``, NIST's excerpt of the American Community Survey, (a folder of DIRECTORY, not shipped) and over
generated rows in a Parquet file: as it comes, or after a histogram, whose bars are asked first because records that are in one bar only
pay for one. Every exact answer is known here, so intervals can be counted that hold it. The noise has no seed.
"""

import argparse
import csv
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd

import pymc_dp as pmdp

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE = ROOT / "benchmarks" / "results" / "queries.csv", ROOT / "docs" / "queries_measured.md"
FIELDS = (
    "data", "records", "strategy", "method", "questions", "answered", "free", "epsilon", "one by one", "held", "free ms", "paid ms",
    "opening s",
)  # fmt: skip
STRATEGIES, METHODS = ("as they come", "histogram first"), ("default", "blue")
CONFIDENCE, EPSILON = 0.95, Fraction(2)
HEAD = (
    "data, records", "strategy", "interval", "sessions", "answered", "of these free", "epsilon", "one by one", "held", "ms",
)  # fmt: skip
SHORTEST, LONGEST = 0.005, 0.05
"""Of intervals, as shares of the records."""


@dataclass(frozen=True)
class Data:
    """A table, what is public about it, and its exact counts.

    Attributes
    ----------
    name : str
    source : Path
        Parquet.
    columns : tuple of str
        The two that ranges are of.
    sizes : tuple of int
        Their levels, 0 to size - 1.
    """

    name: str
    source: Path
    columns: tuple[str, str]
    sizes: tuple[int, int]

    @property
    def schema(self) -> dict:
        return {name: range(size) for name, size in zip(self.columns, self.sizes, strict=True)}

    def counts(self) -> np.ndarray:
        """Exact numbers of records in every pair of levels; last, those that have none of the second column."""
        a, b = self.columns
        table = np.zeros((self.sizes[0], self.sizes[1] + 1), dtype=np.int64)
        for i, j, many in duckdb.sql(f"SELECT {a}, {b}, count(*) FROM '{self.source}' GROUP BY ALL").fetchall():
            table[int(i), self.sizes[1] if j is None else int(j)] += many
        return table


def generated(folder: Path, rows: int) -> Data:
    """People with an age and an income, a million at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, path = np.random.default_rng(1), folder / "people.parquet"
    with pq.ParquetWriter(path, pa.schema([("age", pa.int64()), ("income", pa.int64())])) as file:
        for start in range(0, rows, 1_000_000):
            many = min(1_000_000, rows - start)
            age = np.clip(rng.gamma(4, 11, many).astype(np.int64), 0, 99)
            income = np.clip(rng.normal(3 + 0.05 * age, 2).astype(np.int64), 0, 9)
            file.write_table(pa.table({"age": age, "income": income}))
    return Data(f"{rows:,} generated", path, ("age", "income"), (100, 10))


def census(folder: Path) -> Data:
    return Data("acs_nist_national", folder / "acs_nist_national" / "acs.parquet", ("AGEP", "PINCP_DECILE"), (100, 10))


def workload(data: Data, records: int, many: int) -> Iterator[tuple[str, float, tuple[slice, slice]]]:
    """Questions, lengths of their intervals, and where their records are."""
    rng = np.random.default_rng(2)
    for _ in range(many):
        (a, b), (c, d) = (np.sort(rng.integers(0, size, 2)) for size in data.sizes)
        whole = rng.random() < 0.5
        text = f"{a} <= {data.columns[0]} <= {b}" + ("" if whole else f" & {c} <= {data.columns[1]} <= {d}")
        width = float(round(records * np.exp(rng.uniform(np.log(SHORTEST), np.log(LONGEST)))))
        yield text, width, (slice(a, b + 1), slice(None) if whole else slice(c, d + 1))


def histogram(data: Data, levels: tuple[int, int]) -> list[str]:
    """Every pair of levels, and for every level of the first column the records that have none of the second."""
    one, other = data.columns
    bars = [f"{one} == {i} & {other} == {j}" for i in range(levels[0]) for j in range(levels[1])]
    return bars + [f"{one} == {i} & ~({other} >= 0)" for i in range(levels[0])]


def separately(data: Data, questions: list) -> Fraction:
    """What the questions cost each by itself, added up."""
    nothing = pmdp.QuerySession(data.source, data.schema)
    return sum((nothing.price(text, width, CONFIDENCE).separately for text, width, _ in questions), Fraction(0))


def one_session(data: Data, strategy: str, method: str, questions: list, truth: np.ndarray) -> dict:
    """What one session answers, pays and holds."""
    start = time.perf_counter()
    session = pmdp.QuerySession(data.source, data.schema, epsilon=EPSILON, complete=[data.columns[0]])
    opening = time.perf_counter() - start
    if strategy == "histogram first":
        session.ask(histogram(data, data.sizes), epsilon=EPSILON / 2)
    held, free, seconds, paying = [], 0, [], []
    for text, width, where in questions:
        before = time.perf_counter()
        try:
            answer = session.ask(text, width, CONFIDENCE, method=None if method == "default" else method)
        except pmdp.Refusal:
            continue
        (paying if answer.how == "paid" else seconds).append(time.perf_counter() - before)
        free += answer.how != "paid"
        held.append(answer.interval[0] <= truth[where].sum() <= answer.interval[1])
    return {
        "strategy": strategy, "method": method, "questions": len(questions), "answered": len(held), "free": free,
        "epsilon": float(session.cost), "held": sum(held), "free ms": 1000 * np.median(seconds or [np.nan]),
        "paid ms": 1000 * np.median(paying or [np.nan]), "opening s": opening,
    }  # fmt: skip


def run(datasets: list[Data], sessions: int, many: int, strategies: list[str], methods: list[str]) -> None:
    with RESULTS.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not file.tell():
            writer.writeheader()
        for data in datasets:
            truth, records = data.counts(), int(duckdb.sql(f"SELECT count(*) FROM '{data.source}'").fetchall()[0][0])
            questions = list(workload(data, records, many))
            alone = float(separately(data, questions))
            for strategy in strategies:
                for method in methods:
                    for _ in range(sessions):
                        found = one_session(data, strategy, method, questions, truth)
                        row = {"data": data.name, "records": records, "one by one": alone} | found
                        writer.writerow({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})
                        file.flush()
                        print(row, flush=True)


def summary() -> None:
    found = pd.read_csv(RESULTS)
    lines = [
        "# Questions under a budget, measured",
        "",
        "Written by `python benchmarks/queries.py`. How many [questions](queries.md) does a budget answer, and do the intervals hold the"
        f" exact answers? {found['questions'].max():,} questions were fixed beforehand: how many records have a value within a random range"
        " of one column, in half of them together with a range of a second column. Each question allows its"
        f" {100 * CONFIDENCE:g} % interval a length of its own, from {100 * SHORTEST:g} to {100 * LONGEST:g} % of the number of records."
        f" A session has epsilon {float(EPSILON):g}, and replacing one record is protected. `acs_nist_national` is NIST's excerpt of the"
        " American Community Survey.",
        "",
        "| column | what it says |",
        "|---|---|",
        "| strategy | *as they come*: each question is asked in turn. *Histogram first*: all bars of a histogram are asked beforehand, for"
        " the whole budget, and ranges are sums of bars |",
        "| interval | *default*: the posterior; *blue*: the fixed-question interval ([kinds of answers](queries.md#what-an-answer-says)) |",
        "| answered, of these free | the share of questions that were answered before the budget was spent, and the share of these that"
        " cost nothing because earlier answers were precise enough |",
        "| epsilon, one by one | what a session cost, and what the questions would cost if each paid for itself |",
        "| held | the share of intervals that hold the exact answer, of all sessions together. Answers of one session share their noise, so"
        " this share varies more than that of as many independent answers |",
        "| ms | the median time of a free and of a paid answer in milliseconds, on two cores shared with other work |",
        "",
        f"| {' | '.join(HEAD)} |",
        "|---" * len(HEAD) + "|",
    ]
    for (data, records, strategy, method), some in found.groupby(["data", "records", "strategy", "method"], sort=False):
        answered = some["answered"].sum()
        paid = f", {some['paid ms'].median():.0f}" if some["paid ms"].notna().any() else ""
        lines.append(
            f"| {data.split()[-1]}, {records:,} | {strategy} | {method} | {len(some)} | {answered / some['questions'].sum():.1%} |"
            f" {some['free'].sum() / answered:.1%} | {some['epsilon'].mean():.3g} | {some['one by one'].iloc[0]:.3g} |"
            f" {some['held'].sum() / answered:.1%} | {some['free ms'].median():.0f}{paid} |"
        )
    PAGE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore", pmdp.UnaccountedWarning)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "summary"))
    parser.add_argument("--data", type=Path, help="the directory of acs_nist_national; without it, generated rows only")
    parser.add_argument("--rows", type=int, default=10_000_000, help="to generate; 0 for none")
    parser.add_argument("--sessions", type=int, default=3)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--strategy", nargs="+", choices=STRATEGIES, default=list(STRATEGIES))
    parser.add_argument("--method", nargs="+", choices=METHODS, default=list(METHODS))
    given = parser.parse_args()
    if given.what == "run":
        with tempfile.TemporaryDirectory() as folder:
            tables = [census(given.data)] if given.data else []
            tables += [generated(Path(folder), given.rows)] if given.rows else []
            run(tables, given.sessions, given.questions, given.strategy, given.method)
    summary()
