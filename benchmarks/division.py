"""Coverage and widths where epsilon is divided among several observed variables: writes benchmarks/results/division.csv.

    python benchmarks/division.py run [--replicates 40] [--seed a]
    python benchmarks/division.py summary

Unknowns are drawn from the prior and records given them. Of each data set two releases are made, one with equal shares and one divided by
what is expected, and both private models are sampled by two chains of 400 draws. What counts as failing is said here before anything is
run: a division of which the share of 90 % intervals that hold the truth is further than three standard errors from .90, all unknowns of
all fits together, fits taken as independent; and a setting of which the geometric mean of widths is more than 3 % larger than with equal
shares, beyond two standard errors.
"""

import argparse
import csv
import os
import time
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import numpy as np
import nutpie
import pandas as pd
import pymc as pm

import pymc_dp as pmdp
from pymc_dp.private_models.rewrite import rewrite
from pymc_dp.sampling import suited

RESULTS = Path(__file__).resolve().parent / "results" / "division.csv"
GROUPS = 8
BOUNDS = {
    "mean and table": {"income": (0, 200)},
    "three means": {"first": (-4, 4), "second": (-4, 4), "third": (-40, 40)},
    "regression and table": {"y": (-4, 4), "x": (0, 1)},
}
GAUSSIAN = {"mechanism": "gaussian", "delta": 1e-6}
SETTINGS = [
    (name, records, epsilon, mechanism)
    for name, mechanism in (
        ("three means", "laplace"),
        ("regression and table", "laplace"),
        ("mean and table", "laplace"),
        ("three means", "gaussian"),
    )
    for records in (200, 2000)
    for epsilon in (0.5, 4.0)
]
DIVISIONS = ("equal", "expected")
WORSE = 1.03


def mean_and_table(records: int, rng: np.random.Generator) -> tuple[pm.Model, dict[str, object]]:
    """A mean with wide bounds beside a table of many private cells."""
    mean, sd, share = rng.normal(50, 10), rng.gamma(9, 1), rng.beta(2, 2, GROUPS)
    group = rng.integers(GROUPS, size=records)
    with pm.Model() as model:
        pm.Normal("income", pm.Normal("mean", 50, 10), pm.Gamma("sd", 9, 1), observed=rng.normal(mean, sd, records))
        table = pm.Beta("share", 2, 2, shape=GROUPS)
        pm.Bernoulli("vote", table[pm.Data("group", group)], observed=rng.random(records) < share[group])
    return model, {"mean": mean, "sd": sd, "share": share}


def three_means(records: int, rng: np.random.Generator) -> tuple[pm.Model, dict[str, object]]:
    """Three normal variables, one of them with bounds ten times as wide."""
    truth: dict[str, object] = {}
    with pm.Model() as model:
        for name in BOUNDS["three means"]:
            mean, sd = rng.normal(), rng.gamma(9, 1 / 18)
            truth |= {f"mean of {name}": mean, f"sd of {name}": sd}
            unknown = pm.Normal(f"mean of {name}"), pm.Gamma(f"sd of {name}", 9, 18)
            pm.Normal(name, *unknown, observed=rng.normal(mean, sd, records))
    return model, truth


def regression_and_table(records: int, rng: np.random.Generator) -> tuple[pm.Model, dict[str, object]]:
    """A regression beside one share."""
    a, b, sd, share = rng.normal(0, 0.5), rng.normal(), rng.gamma(9, 1 / 18), rng.beta(2, 2)
    x = rng.random(records)
    with pm.Model() as model:
        line = pm.Normal("a", 0, 0.5) + pm.Normal("b") * pm.Data("x", x)
        pm.Normal("y", line, pm.Gamma("sd", 9, 18), observed=rng.normal(a + b * x, sd))
        pm.Bernoulli("vote", pm.Beta("share", 2, 2), observed=rng.random(records) < share)
    return model, {"a": a, "b": b, "sd": sd, "share": share}


MODELS = {"mean and table": mean_and_table, "three means": three_means, "regression and table": regression_and_table}


def fits(replicates: int, word: str, done: set[tuple]) -> Iterator[list]:
    """Rows of the table: of every fit its setting, shares, seconds, how many unknowns its intervals hold, and their mean log width."""
    compiled = {}
    for setting in SETTINGS:
        name, records, epsilon, mechanism = setting
        for k in range(replicates):
            seed = zlib.crc32(f"{word} {setting} {k}".encode())
            model, truth = MODELS[name](records, np.random.default_rng(seed))
            for division in DIVISIONS:
                if (word, *setting, division, k) in done:
                    continue
                noise = GAUSSIAN if mechanism == "gaussian" else {}
                weights = "equal" if division == "equal" else None
                released = pmdp.release(model, epsilon=epsilon, bounds=BOUNDS[name], missing={}, weights=weights, **noise)
                private = rewrite(model, released)
                if (setting, division) not in compiled:
                    compiled[setting, division] = nutpie.compile_pymc_model(private)
                given = compiled[setting, division].with_data(**{data.name: data.get_value() for data in private.data_vars})
                shapes = private.eval_rv_shapes()
                settings = suited(released, sum(int(np.prod(shapes[value.name])) for value in private.value_vars))
                start = time.perf_counter()
                tree = nutpie.sample(given, draws=400, tune=400, chains=2, cores=1, progress_bar=False, seed=seed % 2**31, **settings)
                held, widths = [], []
                for unknown, true in truth.items():
                    low, high = np.quantile(tree["posterior"][unknown].values, [0.05, 0.95], axis=(0, 1))
                    held.append(np.mean((low <= true) & (true <= high)))
                    widths.append(float(np.log(high - low).mean()))
                costs = [statistic.cost.epsilon if mechanism == "laplace" else statistic.cost.rho for statistic in released.statistics]
                shares = " ".join(f"{float(cost / sum(costs)):.3f}" for cost in costs)
                row = [
                    word,
                    *setting,
                    division,
                    k,
                    shares,
                    round(time.perf_counter() - start, 2),
                    int(tree["sample_stats"]["diverging"].sum()),
                ]
                yield [*row, round(float(np.mean(held)), 4), round(float(np.mean(widths)), 4), " ".join(f"{width:.4f}" for width in widths)]


def run(replicates: int, word: str) -> None:
    header = ["seed", "model", "records", "epsilon", "mechanism", "division", "replicate"]
    done = set()
    if RESULTS.exists():
        done = set(pd.read_csv(RESULTS)[header].itertuples(index=False, name=None))
    with RESULTS.open("a", newline="") as file:
        writer = csv.writer(file)
        if not done:
            writer.writerow([*header, "shares", "seconds", "divergences", "held", "log width", "log widths"])
        for row in fits(replicates, word, done):
            writer.writerow(row)
            file.flush()


def summary() -> str:
    """Of every division the share of intervals that hold; of every setting shares and how much narrower posteriors are."""
    table = pd.read_csv(RESULTS)
    lines, failed = [], []
    for division, of_division in table.groupby("division"):
        held, error = float(of_division["held"].mean()), float(of_division["held"].std(ddof=1) / np.sqrt(len(of_division)))
        lines.append(
            f"{division}: {held:.3f} ± {error:.3f} of intervals hold, {len(of_division)} fits, {of_division['seconds'].mean():.1f} s each"
        )
        failed += [division] if abs(held - 0.9) > 3 * error else []
    keys = ["model", "mechanism", "records", "epsilon"]
    for setting, of_setting in table.groupby(keys, sort=False):
        by_set = of_setting.pivot(index=["seed", "replicate"], columns="division", values="log width").dropna()
        change = by_set["expected"] - by_set["equal"]
        mean, error = float(change.mean()), float(change.std(ddof=1) / np.sqrt(len(change)))
        shares = of_setting[of_setting["division"] == "expected"]["shares"].iloc[0]
        each = of_setting.groupby("division")["log widths"].apply(
            lambda rows: np.mean([[*map(float, row.split())] for row in rows], axis=0)
        )
        ratios = " ".join(f"{ratio:.2f}" for ratio in np.exp(each["expected"] - each["equal"]))
        held = of_setting.groupby("division")["held"].mean()
        lines.append(
            f"{', '.join(map(str, setting))}: shares {shares}; widths x {np.exp(mean):.3f} ± {error:.3f} ({ratios});"
            f" held {held['expected']:.3f}, {held['equal']:.3f} with equal shares; {len(change)} data sets"
        )
        failed += [str(setting)] if np.exp(mean) > WORSE and mean - 2 * error > 0 else []
    return "\n".join([*lines, f"failed: {', '.join(failed) or 'nothing'}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "summary"])
    parser.add_argument("--replicates", type=int, default=40, help="of every setting; 16 settings")
    parser.add_argument("--seed", default="a", help="a word; another one gives other data sets")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.what == "run":
        run(arguments.replicates, arguments.seed)
    print(summary())


if __name__ == "__main__":
    main()
