"""Times with events in bins: whether intervals cover, and how wide they are beside exact records. Writes benchmarks/results/survival.csv.

    python benchmarks/survival.py run [--minutes M] [--cases exponential,visit]
    python benchmarks/survival.py summary

Parameters are drawn from the prior, events from the model and losses as a case says. ``pymc_dp.sample`` draws from the private posterior of
counts of (bin, event) of a Potential. Data sets that are in the CSV are not drawn again. ``summary`` prints a table.
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
import pymc as pm

import pymc_dp as pmdp

RESULTS = Path(__file__).parent / "results" / "survival.csv"
END = 24.0
EDGES = [*np.arange(0.0, END, 2.0), END - 0.1, END]
RECORDS, EPSILONS = (50, 2000), (0.5, 4.0)
MANY, FEWEST = 100, 25
"""Data sets of every unit, and how many there must be for it to be in the tables."""
COLUMNS = ("case", "N", "epsilon", "data_set", "name", "truth", "low", "high", "sd")


def exponential(rng, treated):
    """Lost at a constant hazard, twice as high with the treatment."""
    return rng.exponential(40 / (1 + treated))


def entry(rng, treated):
    """Followed to a date, from an entry that is spread over a year: no loss before 12, and a rising hazard from then on."""
    return rng.uniform(12, 36, len(treated))


def visit(rng, treated):
    """Three in ten are lost at 5, all at once in the middle of a bin: the hazard is far from constant there."""
    return np.where(rng.random(len(treated)) < 0.3, 5.0, 60.0)


CASES = {case.__name__: case for case in (exponential, entry, visit)}


def model_of(t, event, treated):
    """A Weibull regression, as the Potential that courses on survival write."""
    with pm.Model() as model:
        t, e, x = pm.Data("t", t), pm.Data("e", event), pm.Data("treated", treated)
        scale = pm.math.exp(pm.Normal("level", 2.5, 0.5) + pm.Normal("effect", 0, 0.5) * x)
        law = pm.Weibull.dist(pm.Gamma("shape", 16, 10), scale)
        pm.Potential("like", (e * pm.logp(law, t) + (1 - e) * pm.logccdf(law, t)).sum())
    return model


def fit(case, N, epsilon, k):
    """The truth of one data set, and the interval of 90 % and the standard deviation of every parameter."""
    rng = np.random.default_rng([k, N, len(case)])
    truth = {"level": rng.normal(2.5, 0.5), "effect": rng.normal(0, 0.5), "shape": rng.gamma(16, 0.1)}
    treated = rng.integers(0, 2, N)
    event = np.exp(truth["level"] + truth["effect"] * treated) * rng.weibull(truth["shape"], N)
    until = np.minimum(CASES[case](rng, treated), END)
    model = model_of(np.minimum(event, until), (event <= until).astype(int), treated)
    bounds = {"t": pmdp.Bins(edges=EDGES), "treated": (0, 1)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = pmdp.sample(
            300, tune=300, chains=2, cores=1, model=model, epsilon=epsilon, bounds=bounds, random_seed=k + 1, progressbar=False, quiet=True
        )
    for name, value in truth.items():
        draws = tree["posterior"][name].values.ravel()
        yield name, value, *np.quantile(draws, [0.05, 0.95]), draws.std()


def read():
    if not RESULTS.exists():
        return []
    with RESULTS.open() as file:
        return list(csv.DictReader(file))


def run(minutes, cases):
    """All units side by side, so that every one has as many data sets when time is over."""
    deadline = time.monotonic() + 60 * minutes
    done = {tuple(row[column] for column in COLUMNS[:4]) for row in read()}
    new = not RESULTS.exists()
    with RESULTS.open("a") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(COLUMNS)
        for k in range(MANY):
            for unit in ((case, N, epsilon) for case in cases for N in RECORDS for epsilon in EPSILONS):
                if time.monotonic() > deadline:
                    return
                if (*map(str, unit), str(k)) not in done:
                    start = time.monotonic()
                    writer.writerows((*unit, k, name, *(f"{number:.6g}" for number in numbers)) for name, *numbers in fit(*unit, k))
                    file.flush()
                    print(*unit, k, f"{time.monotonic() - start:.1f} s", flush=True)


def summary():
    found = defaultdict(list)
    for row in read():
        low, truth, high = (float(row[column]) for column in ("low", "truth", "high"))
        found[row["case"], int(row["N"]), float(row["epsilon"]), row["name"]].append((low <= truth <= high, high - low))
    names = ("level", "effect", "shape")
    print(f"| losses | N | epsilon | data sets | {' | '.join(f'{name} covers' for name in names)} | width of effect |")
    print("|---|---|---|---|---|---|---|---|")
    for case in CASES:
        for N in RECORDS:
            for epsilon in EPSILONS:
                sets = [np.array(found[case, N, epsilon, name], dtype=float).reshape(-1, 2) for name in names]
                if len(sets[0]) >= FEWEST:
                    covers = " | ".join(f"{one[:, 0].mean():.0%}" for one in sets)
                    print(f"| {case} | {N:,} | {epsilon:g} | {len(sets[0])} | {covers} | {np.median(sets[1][:, 1]):.3g} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("run", "summary"))
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--cases", default=",".join(CASES))
    arguments = parser.parse_args()
    summary() if arguments.what == "summary" else run(arguments.minutes, arguments.cases.split(","))
