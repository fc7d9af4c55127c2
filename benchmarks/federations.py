"""Five hospitals, one model: no privacy, one release of all records by somebody who holds them all, and five releases federated.

python benchmarks/federations.py [CASE ...]    0 to 3: a level for every hospital; 4 to 7: one for all. Without a
                                              number: those of 0 to 3 that are not in the results yet

Parameters of every data set are drawn from the prior, so that intervals that are right hold them as often as they say. Everything that is
private goes through ``release``, ``published`` and ``sample`` as a user would write it; the fit without privacy is given the exact sums of
every hospital, which are sufficient. Results go to benchmarks/results/federations.csv, and as a table to docs/federations.md, between its
two marks. Of all hospitals together one model is fitted four times to each of 100 data sets: about 15 minutes of CPU.
"""

import csv
import sys
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import nutpie
import pymc as pm

import pymc_dp as pmdp

PAGE = Path(__file__).parent.parent / "docs" / "federations.md"
RESULTS = Path(__file__).parent / "results" / "federations.csv"
SETS = 100
"""Data sets of every case."""
START, END = "<!-- made by benchmarks/federations.py -->\n", "<!-- end -->\n"
HOSPITALS = ("north", "south", "east", "west", "coast")
SIGMA, BOUNDS = 2.0, (-8.0, 18.0)
STEPS = {"tune": 500, "chains": 2, "cores": 1, "progressbar": False, "quiet": True, "compute_convergence_checks": False}
DRAWS = 500
MANY = {"small": (20, 30, 40, 50, 60), "large": (1200, 1100, 1000, 800, 400)}
EPSILON, APART = 0.5, (0.25, 0.25, 0.5, 0.5, 0.8)


def levels(family, effects):
    """The unknowns: a level for every hospital, or one for all."""
    middle = pm.Normal("middle", 5.0 if family == "Normal" else -0.5, 2.0 if family == "Normal" else 1.0)
    if not effects:
        return None
    between = pm.HalfNormal("between", 1.0)
    step = pm.Normal("step", 0, 1, dims="hospital")
    return pm.Deterministic("level", middle + between * step, dims="hospital")


def likelihood(name, family, level, values):
    if family == "Normal":
        return pm.Normal(name, level, SIGMA, observed=values)
    return pm.Bernoulli(name, logit_p=level, observed=values)


def simulated(family, effects, many, rng):
    """The true levels and the records of every hospital."""
    middle = rng.normal(5.0, 2.0) if family == "Normal" else rng.normal(-0.5, 1.0)
    level = middle + (abs(rng.normal()) * rng.normal(size=5) if effects else np.zeros(5))
    if family == "Normal":
        return middle, level, [rng.normal(a, SIGMA, n) for a, n in zip(level, many)]
    return middle, level, [rng.binomial(1, 1 / (1 + np.exp(-a)), n) for a, n in zip(level, many)]


# ---------- three ways to one posterior


@cache
def compiled_exact(family, effects, many):
    """The fit without privacy, compiled once: means of normal records or numbers of ones, which are sufficient."""
    with pm.Model(coords={"hospital": HOSPITALS}) as model:
        level, sums = levels(family, effects), pm.Data("sums", np.zeros(5))
        level = model["middle"] if level is None else level
        if family == "Normal":
            pm.Normal("y", level, SIGMA / np.sqrt(many), observed=sums)
        else:
            pm.Binomial("y", np.array(many), logit_p=level, observed=sums)
    return nutpie.compile_pymc_model(model)


def without_privacy(family, effects, many, records, seed):
    sums = np.array([y.mean() if family == "Normal" else y.sum() for y in records])
    compiled = compiled_exact(family, effects, many).with_data(sums=sums)
    return nutpie.sample(compiled, draws=DRAWS, tune=500, chains=2, cores=1, seed=seed, progress_bar=False, target_accept=0.95)


def arguments(family, epsilon):
    return {"epsilon": epsilon, "missing": {}} | ({"bounds": {"y": BOUNDS}} if family == "Normal" else {})


def pooled(family, effects, many, records, seed):
    """One release by somebody who holds all records: by hospital where the model has effects, else of all together."""
    with pm.Model(coords={"hospital": HOSPITALS}) as model:
        level = levels(family, effects)
        of = pm.Data("of", np.repeat(np.arange(5), many))
        likelihood("y", family, level[of] if effects else model["middle"], np.concatenate(records))
    public = ["of"] if effects else []
    return pmdp.sample(DRAWS, model=model, random_seed=seed, public=public, **arguments(family, EPSILON), **STEPS)


def own_release(family, y, epsilon):
    with pm.Model() as own:
        likelihood("y", family, pm.Normal("level"), y)
    return pmdp.release(own, **arguments(family, epsilon))


def federated(epsilons):
    def fit(family, effects, many, records, seed):
        releases = {name: own_release(family, y, e) for name, y, e in zip(HOSPITALS, records, epsilons)}
        with pm.Model(coords={"hospital": HOSPITALS}) as model:
            level = levels(family, effects)
            for k, name in enumerate(HOSPITALS):
                likelihood(name, family, level[k] if effects else model["middle"], np.zeros(2, records[k].dtype))
        return pmdp.sample(DRAWS, model=pmdp.published(model, releases), random_seed=seed, **STEPS)

    return fit


WAYS = {
    "no privacy": without_privacy,
    "one release of all records, epsilon .5": pooled,
    "five releases, epsilon .5": federated((EPSILON,) * 5),
    "five releases, epsilon .25 to .8": federated(APART),
}


# ---------- what intervals say


def told(tree, middle, level):
    """Of the middle and of every level: whether central 50 and 90 % intervals hold the truth, and how wide the latter are."""
    common = tree.posterior["middle"].values.reshape(1, -1)
    draws = [common, tree.posterior["level"].values.reshape(-1, 5).T if "level" in tree.posterior else np.repeat(common, 5, axis=0)]
    truth = np.concatenate([[middle], level])
    low90, low50, high50, high90 = np.quantile(np.concatenate(draws), [0.05, 0.25, 0.75, 0.95], axis=1)
    return np.array([(low50 < truth) & (truth < high50), (low90 < truth) & (truth < high90), high90 - low90], float)


CASES = [(f, e, s) for e in (True, False) for f in ("Normal", "Bernoulli") for s in ("small", "large")]


def measured(number):
    """What intervals say in one case: a row for every way."""
    (family, effects, size), rng, found = CASES[number], np.random.default_rng(number), {way: [] for way in WAYS}
    start = time.process_time()
    for k in range(SETS):
        middle, level, records = simulated(family, effects, MANY[size], rng)
        for way, fit in WAYS.items():
            found[way].append(told(fit(family, effects, MANY[size], records, k), middle, level))
    exact = np.array(found["no privacy"])[:, 2]
    for way, several in found.items():
        values = np.array(several)
        held, ratio = values[:, :2].mean(axis=0), values[:, 2] / exact
        cells = [number, way, *held[:, 0], np.median(ratio[:, 0]), *held[:, 1:].mean(axis=1), np.median(ratio[:, 1:])]
        yield [str(cell) if isinstance(cell, int | str) else f"{cell:.4f}" for cell in cells]
    print(family, effects, size, f"{time.process_time() - start:.0f} s", file=sys.stderr, flush=True)


def kept():
    """Results by case."""
    found = {}
    if RESULTS.exists():
        with RESULTS.open(newline="") as file:
            for row in list(csv.reader(file))[1:]:
                found.setdefault(int(row[0]), []).append(row)
    return found


def write(results):
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["case", "way", "middle_50", "middle_90", "middle_width", "levels_50", "levels_90", "levels_width"])
        writer.writerows(row for number in sorted(results) for row in results[number])
    lines = ["| model | given | middle: 50 % | 90 % | width | levels: 50 % | 90 % | width |", "|---|---|---|---|---|---|---|---|"]
    for number in sorted(results):
        family, effects, size = CASES[number]
        for _, way, *cells in results[number]:
            shown = [f"{float(cell):.2f}" for cell in cells[: 6 if effects else 3]] + ([] if effects else [""] * 3)
            which = f"{family}, {'effects' if effects else 'one level for all'}, {sum(MANY[size]):,} people"
            lines.append(f"| {which} | {way} | {' | '.join(shown)} |")
    text = PAGE.read_text()
    PAGE.write_text(text.split(START)[0] + START + "\n".join(lines) + "\n" + END + text.split(END)[1])


def main(numbers):
    warnings.simplefilter("ignore")
    for number in numbers or [k for k, (_, effects, _) in enumerate(CASES) if effects and k not in kept()]:
        write(kept() | {number: list(measured(number))})


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]])
