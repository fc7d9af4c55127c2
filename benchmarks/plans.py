"""What ``plan`` says beforehand, beside what releases then show: how wide 90 % intervals are, in thirteen models.

    python benchmarks/plans.py [NAME ...]        names of CASES, all by default; 200 data sets each
    MINUTES=8 python benchmarks/plans.py         ends after so many minutes; the next call goes on from there

Of every case ``plan`` simulates 40 data sets with given unknowns, and shows the width of the 90 % interval of each. Then data sets are
drawn from the same unknowns and laws of covariates by NumPy, and every one is released and sampled by ``pymc_dp.sample``, with OpenDP's
noise. Rows of several entries are averages over them. Widths go to benchmarks/results/plans.csv, and a table of averages to docs/theory.md,
between its two marks.
"""

import csv
import logging
import os
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path
from zlib import crc32

import numpy as np
import pymc as pm
from scipy.special import expit, logit

import pymc_dp as pmdp

SETS, SIMULATIONS = 200, 40
PLANNED = "planned"
SAMPLER = {"draws": 500, "tune": 500, "chains": 2}
QUIET = {"cores": 1, "progressbar": False, "quiet": True, "compute_convergence_checks": False}
PAGE = Path(__file__).parent.parent / "docs" / "theory.md"
RESULTS = Path(__file__).parent / "results" / "plans.csv"
START, END = "<!-- made by benchmarks/plans.py -->\n", "<!-- end of plans -->\n"
COLUMNS = ("case", "set", "unknown", "width", "error", "without")


# A case: the model of records, their number and the epsilon, what is assumed of unknowns, arguments of ``sample``, and records by seed.


def bernoulli(rng):
    y = rng.binomial(1, 0.3, 400)
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=y)
    return model, 0.3, {"p": 0.3}, {}


def by_region(rng):
    """Public groups in a hierarchy."""
    level, of = logit(np.linspace(0.2, 0.5, 20)), np.arange(2000) % 20
    y = rng.binomial(1, expit(level)[of])
    with pm.Model(coords={"group": range(20)}) as model:
        a = pm.Normal("a", pm.Normal("mu", 0, 1), pm.HalfNormal("tau", 1), dims="group")
        pm.Bernoulli("y", logit_p=a[pm.Data("of", of)], observed=y)
    return model, 1.0, {"mu": level.mean(), "tau": level.std(), "a": level}, {"public": ["of"]}


def private_groups(rng):
    theta, g = np.array([0.2, 0.4, 0.6]), rng.integers(0, 3, 600)
    y = rng.binomial(1, theta[g])
    with pm.Model(coords={"group": range(3)}) as model:
        pm.Bernoulli("y", pm.Beta("theta", 2, 2, dims="group")[pm.Data("g", g)], observed=y)
    return model, 0.5, {"theta": theta}, {}


def poisson(rng):
    y = rng.poisson(2.0, 1000)
    with pm.Model() as model:
        pm.Poisson("y", pm.Gamma("rate", 2, 1), observed=y)
    return model, 0.3, {"rate": 2.0}, {"bounds": {"y": (0, 6)}}


def normal(rng):
    y = rng.normal(55.0, 12.0, 1000)
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", 50, 20), pm.HalfNormal("sd", 20), observed=y)
    return model, 1.0, {"mu": 55.0, "sd": 12.0}, {"bounds": {"y": (0, 120)}}


def categorical(rng):
    p = np.array([0.1, 0.2, 0.3, 0.4])
    y = rng.choice(4, 1000, p=p)
    with pm.Model() as model:
        pm.Categorical("y", pm.Dirichlet("p", np.ones(4)), observed=y)
    return model, 0.3, {"p": p}, {}


def table(rng):
    """Private covariates of few levels."""
    b, age, treated = np.array([-0.5, 0.3, 0.8]), rng.integers(0, 4, 2000), rng.integers(0, 2, 2000)
    y = rng.binomial(1, expit(b[0] + b[1] * age + b[2] * treated))
    with pm.Model() as model:
        c = pm.Normal("b", 0, 1, shape=3)
        pm.Bernoulli("y", logit_p=c[0] + c[1] * pm.Data("age", age) + c[2] * pm.Data("treated", treated), observed=y)
    return model, 1.0, {"b": b}, {"bounds": {"age": (0, 3), "treated": {0, 1}}}


def towns(rng):
    """Rows that are totals, each of one person's."""
    n, theta = np.arange(30) % 10 * 20 + 20, np.linspace(0.2, 0.4, 30)
    y = rng.binomial(n, theta)
    with pm.Model(coords={"town": range(30)}) as model:
        a, b = pm.Gamma("a", 2, 0.5), pm.Gamma("b", 2, 0.5)
        pm.Binomial("y", pm.Data("n", n, dims="town"), pm.Beta("theta", a, b, dims="town"), observed=y, dims="town")
    return model, 1.0, {"a": 6.0, "b": 14.0, "theta": theta}, {"unit": "individual", "public": ["n"]}


def line(rng):
    x = rng.uniform(-1, 1, 1000)
    y = rng.normal(0.3 + 0.5 * x, 0.5)
    with pm.Model() as model:
        mean = pm.Normal("a", 0, 1) + pm.Normal("b", 0, 1) * pm.Data("x", x)
        pm.Normal("y", mean, pm.HalfNormal("sd", 1), observed=y)
    return model, 3.0, {"a": 0.3, "b": 0.5, "sd": 0.5}, {"bounds": {"x": (-1, 1), "y": (-4, 4)}}


def slopes(rng):
    X, b = rng.uniform(-1, 1, (1000, 5)), np.linspace(0.5, -0.5, 5)
    y = rng.normal(0.3 + X @ b, 0.5)
    with pm.Model() as model:
        mean = pm.Normal("a", 0, 1) + pm.math.dot(pm.Data("X", X), pm.Normal("b", 0, 1, shape=5))
        pm.Normal("y", mean, pm.HalfNormal("sd", 1), observed=y)
    return model, 3.0, {"a": 0.3, "b": b, "sd": 0.5}, {"bounds": {"X": (-1, 1), "y": (-4, 4)}}


def logistic(rng):
    X, b = rng.uniform(-1, 1, (5000, 2)), np.array([1.0, -1.0])
    y = rng.binomial(1, expit(0.3 + X @ b))
    with pm.Model() as model:
        eta = pm.Normal("a", 0, 1) + pm.math.dot(pm.Data("X", X), pm.Normal("b", 0, 1, shape=2))
        pm.Bernoulli("y", logit_p=eta, observed=y)
    return model, 1.0, {"a": 0.3, "b": b}, {"bounds": {"X": (-1, 1), "logit(y)": (-4, 4)}}


def rates(rng):
    """A Poisson regression on a private covariate."""
    x = rng.uniform(-1, 1, 5000)
    y = rng.poisson(np.exp(0.3 + 0.6 * x))
    with pm.Model() as model:
        pm.Poisson("y", pm.math.exp(pm.Normal("a", 0, 1) + pm.Normal("b", 0, 1) * pm.Data("x", x)), observed=y)
    return model, 1.0, {"a": 0.3, "b": 0.6}, {"bounds": {"x": (-1, 1), "y": (0, 12), "log(y)": (-3, 2.5)}}


def robust(rng):
    """Counts in bins."""
    y = 1.0 + 2.0 * rng.standard_t(4, 1000)
    with pm.Model() as model:
        pm.StudentT("y", nu=4, mu=pm.Normal("mu", 0, 3), sigma=pm.HalfNormal("scale", 3), observed=y)
    return model, 1.0, {"mu": 1.0, "scale": 2.0}, {"bounds": {"y": pmdp.Bins(-12, 14, 20)}}


CASES = {
    "Bernoulli, 400 records": bernoulli,
    "Bernoulli in 20 public groups, 2,000 records": by_region,
    "Bernoulli in 3 private groups, 600 records": private_groups,
    "Poisson, clamped, 1,000 records": poisson,
    "Normal, 1,000 records": normal,
    "Categorical, 1,000 records": categorical,
    "logistic in a table of 8 private cells, 2,000 records": table,
    "Binomial, 30 towns": towns,
    "line, 1,000 records": line,
    "five private covariates, 1,000 records": slopes,
    "logistic, two private covariates, 5,000 records": logistic,
    "Poisson regression, a private covariate, 5,000 records": rates,
    "Student's t in 20 bins, 1,000 records": robust,
}


def kept():
    """Widths by case and data set: (width, error, width without privacy) by unknown."""
    found = defaultdict(dict)
    if RESULTS.exists():
        with RESULTS.open(newline="") as file:
            for row in csv.DictReader(file):
                numbers = tuple(float(row[name] or "nan") for name in COLUMNS[3:])
                found[row["case"], row["set"]][row["unknown"]] = numbers
    return found


def planned(case):
    """The widths that ``plan`` says."""
    model, epsilon, assumed, arguments = CASES[case](np.random.default_rng(0))
    table = pmdp.plan(
        model,
        epsilon=[epsilon],
        assuming=assumed,
        simulations=SIMULATIONS,
        random_seed=1,
        missing={},
        progressbar=False,
        **SAMPLER,
        **arguments,
    )
    return {row.variable: (row.interval, row.error, row.interval_without) for row in table.rows if row.variable in assumed}


def released(case, k):
    """The widths after one release."""
    model, epsilon, assumed, arguments = CASES[case](np.random.default_rng([k, crc32(case.encode())]))
    tree = pmdp.sample(**SAMPLER, model=model, epsilon=epsilon, missing={}, random_seed=k, **QUIET, **arguments)
    low, high = (tree["posterior"].to_dataset().quantile(q, ("chain", "draw")) for q in (0.05, 0.95))
    return {name: (float((high[name] - low[name]).mean()), np.nan, np.nan) for name in assumed}


def measured(case, until):
    """Add what the file does not have of a case: the plan, then data sets."""
    done = {number for name, number in kept() if name == case}
    new = not RESULTS.exists()
    with RESULTS.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        for number in (PLANNED, *map(str, range(SETS))):
            if number in done:
                continue
            if time.time() > until:
                return
            found = planned(case) if number == PLANNED else released(case, int(number))
            writer.writerows([case, number, name, *("" if np.isnan(x) else f"{x:.5g}" for x in numbers)] for name, numbers in found.items())
            file.flush()


def table_of_widths():
    """Planned and released widths, of the cases that have both."""
    rows = kept()
    heads = ["model", "epsilon", "unknown", "planned", "data sets", "released", "planned / released", "without privacy"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for case, make in CASES.items():
        sets = [found for (name, number), found in rows.items() if name == case and number != PLANNED]
        if len(sets) < 2 or (case, PLANNED) not in rows:
            continue
        epsilon = make(np.random.default_rng(0))[1]
        for unknown, (width, error, without) in rows[case, PLANNED].items():
            widths = np.array([found[unknown][0] for found in sets])
            mean, deviation = widths.mean(), widths.std(ddof=1) / np.sqrt(len(widths))
            ratio = np.hypot(error / width, deviation / mean) * width / mean
            cells = [case, f"{epsilon:g}", unknown, f"{width:.3g} ± {error:.2g}", len(widths), f"{mean:.3g} ± {deviation:.2g}"]
            lines.append(f"| {' | '.join(map(str, cells))} | {width / mean:.2f} ± {ratio:.2f} | {without:.3g} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.getLogger("pymc").setLevel(logging.ERROR)
    end = time.time() + 60 * float(os.environ.get("MINUTES", "inf"))
    for case in sys.argv[1:] or CASES:
        measured(case, end)
    before, rest = PAGE.read_text().split(START)
    PAGE.write_text(before + START + table_of_widths() + END + rest.split(END)[1])
