"""Randomised records: whether intervals cover, and their widths beside sums or bins. Writes benchmarks/results/randomised_records.csv.

    python benchmarks/randomised_records.py run [--minutes M] [--cases location] [--epsilons 4] [--records 50] [--data-sets 40]
    python benchmarks/randomised_records.py summary
    python benchmarks/randomised_records.py bins

Parameters are drawn from the prior and records from the model. Private models of one unit differ in what was told only, so that each is
compiled once and given the answers of every data set in turn. Data sets that are in the CSV are not drawn again. ``summary`` prints the
table of docs/bins_measured.md; ``bins`` prints how well parameters are known with so many bins, by the Fisher information of what is told.
"""

import argparse
import csv
import os
import time
import warnings
from collections import defaultdict
from pathlib import Path

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import numpy as np
import nutpie
import pandas as pd
import pymc as pm
from scipy.stats import norm

import pymc_dp as pmdp

RESULTS = Path(__file__).parent / "results" / "randomised_records.csv"
RECORDS, EPSILONS, FEWEST = (2000, 50), (4.0, 1.0, 0.5), 20
"""Numbers of records, epsilons, and how many data sets of a unit there must be for it to be in the table."""
COLUMNS = ("case", "N", "epsilon", "route", "data_set", "name", "truth", "low", "high", "sd")


def mean(zeros, records=None):
    """A normal mean: sums are offered."""
    pm.Normal("y", pm.Normal("mu", 0, 1), pm.Gamma("sigma", 8, 8), observed=zeros if records is None else records["y"])


def location(zeros, records=None):
    """A Student-t location: bins are offered."""
    observed = zeros if records is None else records["y"]
    pm.StudentT("y", nu=4, mu=pm.Normal("mu", 0, 1), sigma=pm.Gamma("sigma", 8, 8), observed=observed)


def measured(zeros, records=None):
    """A private covariate that was measured with a known error, and an outcome on the true one: nothing else is offered.

    Given what was measured, the true one is normal with a known share of it, so that it has been integrated out by hand.
    """
    x, y = (zeros, zeros) if records is None else (records["x"], records["y"])
    slope, sigma = pm.Normal("slope", 0, 1), pm.Gamma("sigma", 8, 8)
    seen = pm.Normal("x", 0, np.sqrt(1 + ERROR**2), observed=x)
    share = 1 / (1 + ERROR**2)
    spread = pm.math.sqrt(sigma**2 + slope**2 * (1 - share))
    pm.Normal("y", pm.Normal("a", 0, 1) + slope * share * seen, spread, observed=y)


ERROR = 0.6
CASES = {"mean": mean, "location": location, "measured": measured}
BOUNDS = {
    "mean": {"y": pmdp.Bins(-4, 4)},
    "location": {"y": pmdp.Bins(-4, 4)},
    "measured": {"x": pmdp.Bins(-4, 4), "y": pmdp.Bins(-5, 5)},
}
OTHER = {"mean": {"y": (-4.0, 4.0)}, "location": {"y": pmdp.Bins(-4, 4)}}
"""How the same is released by sums, or by counts in bins, whose number is chosen by their own rule."""


def records_of(case, N, k):
    """The truth of one data set, and its records."""
    rng = np.random.default_rng([k, N, list(CASES).index(case)])
    truth = {"sigma": rng.gamma(8, 1 / 8)}
    if case == "measured":
        truth |= {"a": rng.normal(), "slope": rng.normal()}
        x = rng.normal(size=N)
        y = truth["a"] + truth["slope"] * x + truth["sigma"] * rng.normal(size=N)
        return truth, pd.DataFrame({"x": x + ERROR * rng.normal(size=N), "y": y})
    truth |= {"mu": rng.normal()}
    noise = rng.normal(size=N) if case == "mean" else rng.standard_t(4, N)
    return truth, pd.DataFrame({"y": truth["mu"] + truth["sigma"] * noise})


def private_model(case, N, epsilon, route, records):
    """The private model of one data set."""
    with pm.Model() as model:
        CASES[case](np.zeros(N), None if route == "records" else records)
    if route == "records":
        return pmdp.published(model, pmdp.randomise(model, data=records, epsilon=epsilon, bounds=BOUNDS[case]))
    return pmdp.rewrite(model, pmdp.release(model, epsilon=epsilon, bounds=OTHER[case]))


def fits(case, N, epsilon, route, wanted):
    """Rows of the CSV for these data sets of one unit."""
    compiled = None
    for k in wanted:
        truth, records = records_of(case, N, k)
        private = private_model(case, N, epsilon, route, records)
        names = [str(name) for name in private.named_vars if str(name).endswith(("_released", "_given"))]
        compiled = compiled or nutpie.compile_pymc_model(private)
        given = compiled.with_data(**{name: private[name].get_value() for name in names})
        posterior = nutpie.sample(given, draws=300, tune=300, chains=2, cores=1, seed=k + 1, progress_bar=False)["posterior"]
        for name, value in truth.items():
            draws = posterior[name].values.ravel()
            numbers = (value, *np.quantile(draws, [0.05, 0.95]), draws.std())
            yield case, N, epsilon, route, k, name, *(f"{number:.6g}" for number in numbers)


def read():
    if not RESULTS.exists():
        return []
    with RESULTS.open() as file:
        return list(csv.DictReader(file))


def units(cases, epsilons, records):
    """Case, number of records, epsilon and route, those that matter most first."""
    every = [(case, N, epsilon) for epsilon in EPSILONS if epsilon in epsilons for N in records for case in CASES if case in cases]
    return [(*unit, route) for route in ("records", "other") for unit in every if route == "records" or unit[0] in OTHER]


def run(minutes, cases, epsilons, records, many):
    deadline = time.monotonic() + 60 * minutes
    new = not RESULTS.exists()
    with RESULTS.open("a") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        writer = csv.writer(file)
        if new:
            writer.writerow(COLUMNS)
        for unit in units(cases, epsilons, records):
            start = time.monotonic()
            done = {int(row["data_set"]) for row in read() if unit_of(row) == unit}
            for row in fits(*unit, [k for k in range(many) if k not in done]):
                writer.writerow(row)
                file.flush()
                if time.monotonic() > deadline and row[5] == list(records_of(unit[0], 5, 0)[0])[-1]:
                    return
            print(*unit, f"{time.monotonic() - start:.0f} s", flush=True)


def unit_of(row):
    return row["case"], int(row["N"]), float(row["epsilon"]), row["route"]


def summary():
    """The table of the page: a row of every unit and parameter."""
    found = defaultdict(list)
    for row in read():
        found[(*unit_of(row), row["name"])].append(row)
    print("| model | N | epsilon | of | data sets | covers | width | width by sums or bins |\n|---|---|---|---|---|---|---|---|")
    for (case, N, epsilon, route, name), rows in sorted(found.items(), key=lambda item: (item[0][0], -item[0][1], item[0][2:])):
        if route == "other" or len(rows) < FEWEST:
            continue
        cover = np.mean([float(row["low"]) <= float(row["truth"]) <= float(row["high"]) for row in rows])
        beside = found.get((case, N, epsilon, "other", name), [])
        others = f"{width(beside):.3g}" if len(beside) >= FEWEST else ""
        print(f"| {case} | {N} | {epsilon:g} | {name} | {len(rows)} | {cover:.0%} | {width(rows):.3g} | {others} |")


def width(rows):
    """The median width of an interval."""
    return np.median([float(row["high"]) - float(row["low"]) for row in rows])


# ---------- how many bins


def told(chances, derivatives, epsilon):
    """Standard deviations times the root of N of parameters, from the probabilities (K,) of bins and their derivatives (K, parameters)."""
    levels = len(chances) + 1
    truth = np.exp(epsilon) / (np.exp(epsilon) + levels - 1)
    other = (1 - truth) / (levels - 1)
    answers = np.append(other + (truth - other) * chances, other)
    incomplete = np.append(np.zeros(derivatives.shape[1]), 1)
    moved = (truth - other) * np.vstack([np.column_stack([derivatives, -chances]), incomplete])
    information = (moved / answers[:, None]).T @ moved
    return (
        np.sqrt(np.diag(np.linalg.pinv(information)))[:-1] if np.linalg.cond(information) < 1e12 else np.full(derivatives.shape[1], np.inf)
    )


def edges(half, bins):
    return np.array([-np.inf, *np.linspace(-half, half, bins + 1)[1:-1], np.inf])


def of_mean(point, half, bins):
    return np.diff(norm.cdf((edges(half, bins) - point[0]) / point[1]))


def of_regression(point, half, bins):
    """Centre and spread of x; intercept, slope and spread of y, whose bounds are wider by the root of 2."""
    centre, spread, a, b, sigma = point
    nodes, weights = np.polynomial.legendre.leggauss(20)
    result = []
    for low, high in zip(edges(half, bins)[:-1], edges(half, bins)[1:], strict=True):
        ends = norm.cdf((np.array([low, high]) - centre) / spread)
        x = centre + spread * norm.ppf(ends[0] + np.diff(ends) * (1 + nodes) / 2)
        y = np.diff(norm.cdf((edges(half * 2**0.5, bins) - (a + b * x)[:, None]) / sigma), axis=1)
        result.append((y * weights[:, None] / 2 * np.diff(ends)).sum(axis=0))
    return np.concatenate(result)


def bins():
    """The best number, between which ones the geometric mean of standard deviations is at most 5 % larger, and these at the best."""
    for name, law, point in (("mean", of_mean, [0.3, 1.0]), ("regression", of_regression, [0.1, 1.0, 0.2, 1.0, 1.0])):
        for half in (3, 4, 8) if name == "mean" else (3, 4):
            for epsilon in (1, 2, 4, 6):
                tried = {}
                for many in range(3, 41 if name == "mean" else 15):
                    step = 1e-4 * np.eye(len(point))
                    slopes = [(law(point + d, half, many) - law(point - d, half, many)) / 2e-4 for d in step]
                    tried[many] = told(law(point, half, many), np.stack(slopes, axis=1), epsilon)
                size = {many: np.exp(np.log(each).mean()) for many, each in tried.items()}
                best = min(size, key=size.get)
                good = [many for many in size if size[many] <= 1.05 * size[best]]
                print(f"{name}, bounds +-{half} sd, epsilon {epsilon}: {best} [{good[0]}, {good[-1]}]", tried[best].round(2))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("run", "summary", "bins"))
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--epsilons", default=",".join(f"{epsilon:g}" for epsilon in EPSILONS))
    parser.add_argument("--records", default=",".join(map(str, RECORDS)))
    parser.add_argument("--data-sets", type=int, default=40)
    arguments = parser.parse_args()
    if arguments.command == "run":
        epsilons, records = [float(each) for each in arguments.epsilons.split(",")], [int(each) for each in arguments.records.split(",")]
        run(arguments.minutes, arguments.cases.split(","), epsilons, records, arguments.data_sets)
    else:
        {"summary": summary, "bins": bins}[arguments.command]()
