"""Five hospitals, one model: no privacy, one release of all records by somebody who holds them all, and five releases federated.

    python benchmarks/federations.py [CASE ...]      names of CASES, all by default; 300 data sets each
    MINUTES=8 python benchmarks/federations.py       ends after so many minutes; the next call goes on from there

Parameters of every data set are drawn from the prior, so that intervals that are right hold them as often as they say. Everything that is
private goes through ``release``, ``published`` and ``sample`` as a user would write it; the fit without privacy is given the exact sums of
every hospital, which are sufficient. Where truths lie in their posteriors goes to benchmarks/results/federations_ranks.csv, and coverage
and widths as a table to docs/federations.md, between its two marks.
"""

import csv
import os
import sys
import time
import warnings
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from zlib import crc32

import numpy as np
import nutpie
import pymc as pm
import xarray as xr
from scipy.stats import binomtest, norm

import pymc_dp as pmdp

PAGE = Path(__file__).parent.parent / "docs" / "federations.md"
RESULTS = Path(__file__).parent / "results" / "federations_ranks.csv"
SETS, LEVELS = 300, (0.5, 0.8, 0.9, 0.95)
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


# ---------- ways to one posterior


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


def without_privacy(family, effects, many, records, seed, **_):
    sums = np.array([y.mean() if family == "Normal" else y.sum() for y in records])
    compiled = compiled_exact(family, effects, many).with_data(sums=sums)
    return nutpie.sample(compiled, draws=DRAWS, tune=500, chains=2, cores=1, seed=seed, progress_bar=False, target_accept=0.95)


def arguments(family, epsilon, neighbours):
    bounds = {"bounds": {"y": BOUNDS}} if family == "Normal" else {}
    return {"epsilon": epsilon, "missing": {}, "neighbours": neighbours} | bounds


def pooled(family, effects, many, records, seed, neighbours):
    """One release by somebody who holds all records: by hospital where the model has effects, else of all together."""
    with pm.Model(coords={"hospital": HOSPITALS}) as model:
        level = levels(family, effects)
        of = pm.Data("of", np.repeat(np.arange(5), many))
        likelihood("y", family, level[of] if effects else model["middle"], np.concatenate(records))
    public = {"public": ["of"]} if effects and neighbours == "replace" else {}
    return pmdp.sample(DRAWS, model=model, random_seed=seed, **public, **arguments(family, EPSILON, neighbours), **STEPS)


def own_release(family, y, epsilon, neighbours="replace", **how):
    with pm.Model() as own:
        likelihood("y", family, pm.Normal("level"), y)
    return pmdp.release(own, **arguments(family, epsilon, neighbours), **how)


def federated(epsilons):
    def fit(family, effects, many, records, seed, neighbours):
        releases = {name: own_release(family, y, e, neighbours) for name, y, e in zip(HOSPITALS, records, epsilons)}
        with pm.Model(coords={"hospital": HOSPITALS}) as model:
            level = levels(family, effects)
            for k, name in enumerate(HOSPITALS):
                likelihood(name, family, level[k] if effects else model["middle"], np.zeros(2, records[k].dtype))
        return pmdp.sample(DRAWS, model=pmdp.published(model, releases), random_seed=seed, **STEPS)

    return fit


def twice(waves, same):
    """Releases of all records with Gaussian noise, one for each epsilon: of the same people, or taken for others."""

    def fit(family, effects, many, records, seed, neighbours):
        y, how = np.concatenate(records), {"mechanism": pmdp.Gaussian(delta=1e-6)}
        releases = {f"wave{k}": own_release(family, y, epsilon, neighbours, **how) for k, epsilon in enumerate(waves)}
        with pm.Model() as model:
            levels(family, effects)
            likelihood("y", family, model["middle"], np.zeros(2, y.dtype))
        return on_grid((family, many, waves, same), pmdp.published(model, releases, same_people=same))

    return fit


COMPILED = {}
"""Densities of models of one unknown, which differ in the released numbers alone."""


def on_grid(key, private):
    """The posterior of the one unknown, summed up on a grid that is narrowed twice: 2,000 of its quantiles."""
    if key not in COMPILED:
        COMPILED[key] = private, private.compile_logp()
    compiled, density = COMPILED[key]
    for observed in private.observed_RVs:
        compiled[f"{observed.name}_released"].set_value(private[f"{observed.name}_released"].get_value())
    low, high = -15.0, 25.0
    for _ in range(3):
        points = np.linspace(low, high, 161)
        logs = np.array([density({"middle": np.array(point)}) for point in points])
        near = np.flatnonzero(logs > logs.max() - 15)
        low, high = points[max(near[0] - 1, 0)], points[min(near[-1] + 1, len(points) - 1)]
    weights = np.exp(logs - logs.max())
    whole = np.concatenate([[0.0], np.cumsum((weights[1:] + weights[:-1]) / 2)])
    quantiles = np.interp((np.arange(2000) + 0.5) / 2000, whole / whole[-1], points)
    return SimpleNamespace(posterior=xr.Dataset({"middle": ("draw", quantiles)}))


EXACT = "no privacy"
ALL = {EXACT: without_privacy, "one release of all records, epsilon .5": pooled, "five releases, epsilon .5": federated((EPSILON,) * 5)}
HOLDERS = {"replace": ALL | {"five releases, epsilon .25 to .8": federated(APART)}, "add_remove": ALL}
PEOPLE = {
    EXACT: without_privacy,
    "one release, epsilon .5": twice((0.5,), ()),
    "two releases, epsilon .5 and 1, same_people": twice((0.5, 1.0), True),
    "the same two, taken for different people": twice((0.5, 1.0), ()),
}
"""The last is wrong on purpose: what is lost where nobody says so."""


# ---------- what intervals say


def told(tree, middle, level):
    """For the middle and every level: the posterior probability of less than the truth; and the widths of 90 % intervals."""
    common = tree.posterior["middle"].values.reshape(1, -1)
    draws = [common, tree.posterior["level"].values.reshape(-1, 5).T if "level" in tree.posterior else np.zeros((0, common.size))]
    draws, truth = np.concatenate(draws), np.array([middle, *level])
    low, high = np.quantile(draws, [0.05, 0.95], axis=1)
    return (draws < truth[: len(draws), None]).mean(axis=1), high - low


CASES = {
    f"{family}, {neighbours}, {sum(MANY[size]):,} people": (family, True, size, neighbours, HOLDERS[neighbours])
    for neighbours in ("replace", "add_remove")
    for family in ("Bernoulli", "Normal")
    for size in MANY
} | {
    f"{family}, same people, {sum(MANY[size]):,} of them": (family, False, size, "replace", PEOPLE)
    for family in ("Bernoulli", "Normal")
    for size in MANY
}


def kept():
    """Rows of the results file, by case."""
    found = {}
    if RESULTS.exists():
        with RESULTS.open(newline="") as file:
            for row in csv.DictReader(file):
                found.setdefault(row["case"], []).append(row)
    return found


def measured(case, until):
    """Add the data sets of a case that the file does not have yet: a row for every way."""
    family, effects, size, neighbours, ways = CASES[case]
    done = {int(row["set"]) for row in kept().get(case, [])}
    new = not RESULTS.exists()
    with RESULTS.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(["case", "set", "way", "middle", "middle_width", "levels", "levels_width"])
        for k in range(SETS):
            if k in done:
                continue
            if time.time() > until:
                return
            middle, level, records = simulated(family, effects, MANY[size], np.random.default_rng([k, crc32(case.encode())]))
            found = []
            for way, fit in ways.items():
                ranks, widths = told(fit(family, effects, MANY[size], records, k, neighbours=neighbours), middle, level)
                several = [" ".join(f"{x:.4g}" for x in numbers[1:]) for numbers in (ranks, widths)]
                found.append([case, k, way, f"{ranks[0]:.4f}", f"{widths[0]:.4g}", *several])
            writer.writerows(found)
            file.flush()


def shown(ranks, level):
    """Coverage of (data sets, parameters); with a star where so many or few would be seen less than once in a hundred right cells."""
    held = np.abs(ranks - 0.5) <= level / 2
    if held.shape[1] == 1:
        chance = binomtest(int(held.sum()), len(held), level).pvalue
    else:  # the levels of one data set are dependent: their shares are what varies
        shares = held.mean(axis=1)
        chance = 2 * norm.sf(abs(shares.mean() - level) / max(shares.std() / np.sqrt(len(shares)), 1e-9))
    return f"{held.mean():.2f}{'*' if chance < 0.01 else ''}"


def numbers_in(rows, name):
    return np.array([[float(x) for x in row[name].split()] for row in rows])


def table():
    """Coverage and widths, from the results file."""
    ends = [f"{level:.0%}".replace("%", " %") for level in LEVELS]
    heads = ["case", "data sets", "given", f"middle: {ends[0]}", *ends[1:], "width", f"levels: {ends[0]}", *ends[1:], "width"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for case, rows in kept().items():
        of = {way: [row for row in rows if row["way"] == way] for way in CASES[case][4]}
        for way, mine in of.items():
            cells = [case, str(len(mine)), way]
            for name in ("middle", "levels"):
                ranks, widths, exact = (numbers_in(r, n) for r, n in ((mine, name), (mine, f"{name}_width"), (of[EXACT], f"{name}_width")))
                there = ranks.size > 0
                cells += [shown(ranks, level) if there else "" for level in LEVELS]
                cells.append(f"{np.median(widths / exact):.2f}" if there else "")
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def write():
    """The table of the page, between its marks."""
    before, _, rest = PAGE.read_text().partition(START)
    PAGE.write_text(before + START + table() + END + rest.partition(END)[2])


def main(names):
    warnings.simplefilter("ignore")
    until = time.time() + 60 * float(os.environ.get("MINUTES", "1e9"))
    for case in names or CASES:
        measured(case, until)
    write()


if __name__ == "__main__":
    main(sys.argv[1:])
