"""Outcomes in bins: whether intervals cover, and how wide they are beside exact statistics. Writes benchmarks/results/bins.csv.

    python benchmarks/bins.py run [--minutes M] [--cases student_t,normal]
    python benchmarks/bins.py summary

Parameters are drawn from the prior and records from the model; ``pymc_dp.sample`` draws from the private posterior of counts in bins, or of
the sums that a Normal has. Data sets that are in the CSV are not drawn again. ``summary`` prints the tables of docs/bins_measured.md.
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

RESULTS = Path(__file__).parent / "results" / "bins.csv"
ENDS = (-12.0, 12.0)
BINS, RECORDS, EPSILONS = (5, 20, 100), (50, 2000), (0.5, 4.0)
MANY, FEWEST = 100, 25
"""Data sets of every unit, and how many there must be for it to be in the tables."""
FOLLOW_UP = (-2.0, 0.0, 2.0, 4.0)
"""Where records of the censored cases are censored, a quarter of them at each."""


def normal(y):
    """The exact statistics of a Normal are there to compare with."""
    pm.Normal("y", pm.Normal("mu", 0, 2), pm.Gamma("sigma", 4, 2), observed=y)


def student_t(y):
    """Three degrees of freedom."""
    pm.StudentT("y", nu=3.0, mu=pm.Normal("mu", 0, 2), sigma=pm.Gamma("sigma", 4, 2), observed=y)


def censored(y, by_event=False):
    """A limit for every record, which is private; ``by_event`` puts one beyond all values where the limit was not reached."""
    limit = np.resize(FOLLOW_UP, len(y))
    upper = pm.Data("follow_up", np.where(by_event & (y < limit), ENDS[1], limit))
    latent = pm.Normal.dist(pm.Normal("mu", 0, 2), pm.Gamma("sigma", 4, 2))
    pm.Censored("y", latent, lower=None, upper=upper, observed=np.minimum(y, limit))


def by_event(y):
    """What must not be written: the limit tells whether it was reached."""
    censored(y, by_event=True)


CASES = {case.__name__: case for case in (normal, student_t, censored, by_event)}
LEVELS = {"censored": {"follow_up": set(FOLLOW_UP)}, "by_event": {"follow_up": {*FOLLOW_UP, ENDS[1]}}}
COLUMNS = ("case", "bins", "N", "epsilon", "data_set", "name", "truth", "low", "high", "sd")


def units():
    """Every (case, bins, N, epsilon); 0 bins are exact statistics, which a Normal has."""
    whole = [(case, K, N, epsilon) for K in (20, 100, 0, 5) for N in RECORDS for epsilon in EPSILONS for case in CASES]
    return [unit for unit in whole if (unit[1] or unit[0] == "normal") and (unit[1] == 20 or unit[0] not in LEVELS)]


def fit(case, K, N, epsilon, k):
    """The truth of one data set, and the interval of 90 % and the standard deviation of either parameter."""
    rng = np.random.default_rng([k, N, len(case)])
    truth = {"mu": rng.normal(0, 2), "sigma": rng.gamma(4, 0.5)}
    standard = rng.standard_t(3, N) if case == "student_t" else rng.normal(size=N)
    with pm.Model() as model:
        CASES[case](truth["mu"] + truth["sigma"] * standard)
    bounds = {"y": pmdp.Bins(*ENDS, K) if K else ENDS} | LEVELS.get(case, {})
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
    deadline = time.process_time() + 60 * minutes
    done = {tuple(row[column] for column in COLUMNS[:5]) for row in read()}
    new = not RESULTS.exists()
    with RESULTS.open("a") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(COLUMNS)
        for unit in units():
            start = time.process_time()
            for k in range(MANY):
                if time.process_time() > deadline:
                    return
                if unit[0] in cases and (*map(str, unit), str(k)) not in done:
                    writer.writerows((*unit, k, name, *(f"{number:.6g}" for number in numbers)) for name, *numbers in fit(*unit, k))
                    file.flush()
            print(*unit, f"{time.process_time() - start:.0f} s", flush=True)


def summary():
    found = defaultdict(list)
    for row in read():
        low, truth, high = (float(row[column]) for column in ("low", "truth", "high"))
        found[row["case"], int(row["bins"]), int(row["N"]), float(row["epsilon"]), row["name"]].append((low <= truth <= high, high - low))
    print("| likelihood | bins | N | epsilon | data sets | mu covers | sigma covers | width of mu | width of sigma |")
    print("|---|---|---|---|---|---|---|---|---|")
    for case, K, N, epsilon in sorted(units()):
        mu, sigma = (np.array(found[case, K, N, epsilon, name], dtype=float).reshape(-1, 2) for name in ("mu", "sigma"))
        if len(mu) >= FEWEST:
            numbers = f"{mu[:, 0].mean():.0%} | {sigma[:, 0].mean():.0%} | {np.median(mu[:, 1]):.3g} | {np.median(sigma[:, 1]):.3g}"
            print(f"| {case} | {K or 'none'} | {N} | {epsilon:g} | {len(mu)} | {numbers} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("run", "summary"))
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--cases", default=",".join(CASES))
    arguments = parser.parse_args()
    summary() if arguments.what == "summary" else run(arguments.minutes, arguments.cases.split(","))
