"""Intervals of rarer models, and of few records: writes benchmarks/results/rarer.csv and docs/rarer.md.

    python benchmarks/rarer.py run [--cases a,b] [--records 100] [--minutes M] [--replicates R]
    python benchmarks/rarer.py summary

As in ``calibration.py``, unknowns are drawn from the prior and records from the model, these are released, and the private posterior is
sampled with the steps of ``pymc_dp.sample``. Beside the share of intervals that hold the truth it notes z = (mean - truth) / sd of every
fit, whose root mean square is 1 where a posterior is right, and which shows with few data sets what shares show with many. Data sets that
are in the CSV are not drawn again.
"""

import argparse
import csv
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import calibration
import numpy as np
import nutpie
import pandas as pd
import pymc as pm
from calibration import RANKED, Case, Fit, Posteriors, Replicate, Simulator, counts, fit, names_of, network, reals, shares, simple

import pymc_dp as pmdp
from pymc_dp.privacy import mechanisms
from pymc_dp.privacy.requests import PosteriorRequest

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE = ROOT / "benchmarks" / "results" / "rarer.csv", ROOT / "docs" / "rarer.md"
COLUMNS = ("case", "epsilon", "n", "replicate", "parameter", "rank", "error", "sd", "divergences", "r_hat")
REPLICATES, FEWEST = 60, 30
"""Data sets of every unit, and how many there must be for it to be on the page."""
TOO_FAR = 4.0
"""Standard errors beyond which a row fails, of z² and of the share of 90 % intervals."""


# ---------- models
def beta_by_group(N: int):
    with pm.Model() as model:
        a, b = pm.Gamma("alpha", 4, 2, shape=2), pm.Gamma("beta", 4, 2, shape=2)
        g = pm.Data("g", np.arange(N) % 2)
        pm.Beta("y", a[g], b[g], observed=reals(N))
    return model, {"bounds": {"y": (0.01, 0.99)}}


def gamma_by_group(N: int):
    with pm.Model() as model:
        a, b = pm.Gamma("alpha", 4, 2), pm.Gamma("beta", 4, 2, shape=2)
        pm.Gamma("y", a, b[pm.Data("g", np.arange(N) % 2)], observed=reals(N))
    return model, {"bounds": {"y": (0.02, 8)}}


def dirichlet_by_group(N: int):
    with pm.Model() as model:
        a = pm.Gamma("a", 4, 2, shape=(2, 3))
        rows = pm.Data("rows", np.full((N, 3), 1 / 3))
        pm.Dirichlet("y", a[pm.Data("g", np.arange(N) % 2)], observed=rows)
    return model, {"bounds": {"y": (0.01, 0.99)}}


def student(y):
    pm.StudentT("y", nu=3.0, mu=pm.Normal("mu", 0, 2), sigma=pm.Gamma("sigma", 4, 2), observed=y)


def mixture(y):
    w, d = pm.Beta("w", 3, 3), pm.Gamma("d", 6, 1.5)
    pm.NormalMixture("y", w=pm.math.stack([w, 1 - w]), mu=pm.math.stack([-d / 2, d / 2]), sigma=1.0, observed=y)


def abilities(N: int):
    """Two times five tasks of every row, whose share of success differs by row."""
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0, 1), pm.Gamma("tau", 4, 5)
        pm.Binomial("y", n=5, logit_p=mu + tau * pm.Normal("of_row", shape=N)[:, None], observed=counts(N, 2))
    return model, {}


CASES: dict[str, Case] = {
    "network": Case(network),
    "network_fourier": Case(network, arguments={"mechanism": "fourier"}),
    "beta_by_private_group": Case(beta_by_group, shares("g", 2), tune=600),
    "gamma_by_private_group": Case(gamma_by_group, shares("g", 2), tune=600),
    "dirichlet_by_private_group": Case(dirichlet_by_group, shares("g", 2), tune=600),
    "student_6_bins": Case(simple(student, bounds={"y": pmdp.Bins(-12, 12, 6)})),
    "mixture_8_bins": Case(simple(mixture, bounds={"y": pmdp.Bins(-6, 6, 8)})),
    "binomial_abilities": Case(abilities, tune=500),
}
UNITS = [
    *(("network", epsilon, 200) for epsilon in (0.3, 1.0)),
    ("network_fourier", 0.3, 200),
    *((f"{name}_by_private_group", 1.0, N) for name in ("beta", "gamma", "dirichlet") for N in (100, 1000)),
    *((name, 0.3, N) for name in ("student_6_bins", "mixture_8_bins") for N in (100, 1000)),
    *(("binomial_abilities", 1.0, N) for N in (300, 3000)),
]


# ---------- draws from the posterior itself
def location(y):
    pm.StudentT("y", nu=4, mu=pm.Uniform("mu", -5, 5), sigma=pm.Uniform("sigma", 0.5, 3), observed=y)


def tails(y):
    """Three unknowns."""
    pm.StudentT("y", nu=pm.Uniform("nu", 2, 10), mu=pm.Uniform("mu", -5, 5), sigma=pm.Uniform("sigma", 0.5, 3), observed=y)


def line(N: int):
    """An intercept and a slope that go together: the feature lies between 0 and 1."""
    with pm.Model() as model:
        a, b = pm.Uniform("a", -3, 3), pm.Uniform("b", -3, 3)
        pm.StudentT("y", nu=4, mu=a + b * pm.Data("x", np.zeros(N)), sigma=0.5, observed=reals(N))
    return model, {"bounds": {"y": (-60, 60), "x": (0, 1)}}


def rates(N: int):
    """A class above a variable of three levels."""
    with pm.Model() as model:
        y = pm.Bernoulli("y", pm.Beta("share", 2, 2), observed=pm.Data("y_rows", np.zeros(N, dtype=np.int64)))
        phi = pm.Dirichlet("phi", np.ones(3), shape=(2, 3))
        pm.Categorical("z", phi[y], observed=pm.Data("z_rows", np.zeros(N, dtype=np.int64)))
    return model, {}


WIDE = {"y": (-60, 60)}


def kinds(N: int):
    """Answers of two kinds of people, the kind of each unknown; which kind is which is known."""
    with pm.Model() as model:
        share, low, high = pm.Uniform("share", 0.1, 0.9), pm.Uniform("low", 0.1, 0.5), pm.Uniform("high", 0.5, 0.9)
        theta = pm.math.stack([low, high])
        pm.Binomial("y", 4, theta[pm.Bernoulli("kind", share, shape=N)], observed=counts(N))
    return model, {}


EXACT = pmdp.PosteriorSample(RANKED)
DRAWS: dict[str, tuple[Case, PosteriorRequest]] = {
    "draws_location": (Case(simple(location, bounds=WIDE)), EXACT),
    "draws_location_coarse": (Case(simple(location, bounds=WIDE)), pmdp.PosteriorSample(RANKED, points=21)),
    "draws_tails": (Case(simple(tails, bounds=WIDE)), EXACT),
    "draws_line_coarse": (Case(line, lambda rng, N: {"x": rng.uniform(0, 1, N)}), pmdp.PosteriorSample(RANKED, points=31)),
    "draws_tables": (Case(rates), EXACT),
    "gibbs_kinds": (Case(kinds), pmdp.Gibbs(sweeps=40 + 4 * RANKED, burn_in=40, thin=4)),
}
"""Cases of draws from the posterior itself, as many as the truth is ranked among."""
UNITS += [
    *(("draws_location", epsilon, 100) for epsilon in (20.0, 1e5)),
    ("draws_location_coarse", 1e5, 500),
    ("draws_tails", 1e5, 100),
    ("draws_line_coarse", 1e5, 500),
    *(("draws_tables", epsilon, 100) for epsilon in (50.0, 1e5)),
    *(("gibbs_kinds", epsilon, 100) for epsilon in (200.0, 1e6)),
]
CASES.update({name: case for name, (case, _) in DRAWS.items()})
calibration.CASES.update(CASES)


def numpy_choice(scores: Sequence[int], scale: float) -> int:
    """What OpenDP draws, by NumPy: the same law but for rounding, and much faster for many draws."""
    scaled = np.asarray(scores, dtype=float) / scale
    weights = np.cumsum(np.exp(scaled - scaled.max()))
    return int(np.searchsorted(weights, NUMBERS.random() * weights[-1]))


NUMBERS = np.random.default_rng()


def draws_of(name: str, epsilon: float, N: int, first: int, many: int) -> Iterator[list[tuple]]:
    """As ``fits_of``, from as many draws of the posterior itself as the truth is ranked among, which epsilon pays for together."""
    mechanisms._opendp_choice = numpy_choice
    simulator, how = Simulator(name, epsilon, N), DRAWS[name][1]
    for k, truth in enumerate(simulator.truths(np.random.default_rng([*simulator.key, first]), many - first), first):
        tree = pmdp.sample(model=simulator.model, mechanism=how, epsilon=epsilon, missing={}, **simulator.arguments)
        draws = np.concatenate([tree["posterior"][parameter].values.reshape(RANKED, -1) for parameter in truth], axis=1)
        value = np.concatenate([np.ravel(one) for one in truth.values()])
        # The mean of so few draws is off, and their spread too: so much that z² of a right posterior would be 1.
        spread = draws.std(axis=0, ddof=1) * np.sqrt((1 + 1 / RANKED) * (RANKED - 1) / (RANKED - 3))
        found = zip(names_of(truth), (draws < value).sum(axis=0), draws.mean(axis=0) - value, spread, strict=True)
        yield [(name, f"{epsilon:g}", N, k, parameter, rank, f"{error:.6g}", f"{sd:.6g}", 0, 1) for parameter, rank, error, sd in found]


# ---------- records that are told at random
def measured(x, y):
    """An outcome on a covariate that was measured with a known error, of which what was measured tells a known share."""
    slope, sigma = pm.Normal("slope", 0, 1), pm.Gamma("sigma", 8, 8)
    seen = pm.Normal("x", 0, np.sqrt(1.36), observed=x)
    pm.Normal("y", pm.Normal("a", 0, 1) + slope * seen / 1.36, pm.math.sqrt(sigma**2 + slope**2 * 0.36 / 1.36), observed=y)


FOUR = {"y": pmdp.Bins(-4, 4)}
TOLD: dict[str, tuple[Callable, dict]] = {
    "told_mean": (lambda y: pm.Normal("y", pm.Normal("mu", 0, 1), pm.Gamma("sigma", 8, 8), observed=y), FOUR),
    "told_mixture": (mixture, {"y": pmdp.Bins(-6, 6)}),
    "told_measured": (measured, {"x": pmdp.Bins(-4, 4), "y": pmdp.Bins(-5, 5)}),
}
"""Cases of ``randomise``: what is observed, and its bins."""
UNITS += [
    *(("told_mean", 1.0, N) for N in (100, 2000)),
    *(("told_mixture", epsilon, 500) for epsilon in (1.0, 4.0)),
    ("told_measured", 4.0, 50),
]


def observing(build: Callable, names: Sequence[str]) -> Callable[[int], tuple[pm.Model, dict]]:
    """The model with records that are replaced."""

    def make(N: int) -> tuple[pm.Model, dict]:
        with pm.Model() as model:
            build(*(pm.Data("rows" if len(names) == 1 else f"{name}_rows", np.zeros(N)) for name in names))
        return model, {}

    return make


CASES.update({name: Case(observing(build, list(bins))) for name, (build, bins) in TOLD.items()})
calibration.CASES.update(CASES)


def told_of(name: str, epsilon: float, N: int, first: int, many: int) -> Iterator[list[tuple]]:
    """As ``fits_of``, of records that are told at random. The private model is compiled once: releases differ in what was told only."""
    simulator, (build, bins), compiled = Simulator(name, epsilon, N), TOLD[name], None
    rows = dict(zip(bins, simulator.rows, strict=True))
    rng = np.random.default_rng([*simulator.key, first])
    for k, truth in enumerate(simulator.truths(rng, many - first), first):
        records = pd.DataFrame({variable: simulator.model[data].get_value() for variable, data in rows.items()})
        with pm.Model() as model:
            build(*(np.zeros(N) for _ in bins))
        private = pmdp.published(model, pmdp.randomise(model, data=records, epsilon=epsilon, bounds=bins))
        given = {v.name: v.get_value() for v in private.data_vars}
        compiled = compiled or nutpie.compile_pymc_model(private)
        yield rows_of(name, epsilon, N, k, truth, fit(compiled.with_data(**given), Replicate(truth, None, k + 1), 400, {}))


# ---------- the run
def read() -> list[dict]:
    if not RESULTS.exists():
        return []
    with RESULTS.open(newline="") as file:
        return list(csv.DictReader(file))


def rows_of(name: str, epsilon: float, N: int, k: int, truth: dict[str, np.ndarray], found: Fit) -> list[tuple]:
    """The row of every parameter of one data set."""
    return [
        (name, f"{epsilon:g}", N, k, parameter, rank, f"{error:.6g}", f"{sd:.6g}", found.divergences, f"{found.r_hat:.4f}")
        for parameter, rank, error, sd in zip(names_of(truth), found.ranks, found.error, np.sqrt(found.variance), strict=True)
    ]


def fits_of(name: str, epsilon: float, N: int, first: int, many: int) -> Iterator[list[tuple]]:
    """A row of every parameter, data set by data set: those before the first are left out."""
    simulator = Simulator(name, epsilon, N)
    posteriors = Posteriors(simulator.model, aware=True)
    for k, replicate in enumerate(simulator.replicates(first, many - first), first):
        sampler = posteriors.prepared(replicate.release, check=k == first)
        yield rows_of(name, epsilon, N, k, replicate.truth, fit(sampler, replicate, simulator.case.tune, posteriors.steps))


def run(cases: Sequence[str], records: Sequence[int], minutes: float, replicates: int) -> None:
    warnings.simplefilter("ignore")
    deadline, done = time.time() + 60 * minutes, defaultdict(int)
    for row in read():
        unit = (row["case"], row["epsilon"], row["n"])
        done[unit] = max(done[unit], int(row["replicate"]) + 1)
    if not RESULTS.exists():
        RESULTS.write_text(",".join(COLUMNS) + "\n")
    for name, epsilon, N in UNITS:
        start, first = time.time(), done[name, f"{epsilon:g}", str(N)]
        if name not in cases or (records and N not in records) or first >= replicates:
            continue
        for rows in (draws_of if name in DRAWS else told_of if name in TOLD else fits_of)(name, epsilon, N, first, replicates):
            with RESULTS.open("a") as file:
                csv.writer(file, lineterminator="\n").writerows(rows)
            if time.time() > deadline:
                return
        print(f"{name}, epsilon {epsilon:g}, N {N}: {time.time() - start:.0f} s", flush=True)


# ---------- the summary
def units_of(rows: Sequence[dict]) -> dict[tuple, dict[str, np.ndarray]]:
    """By case, epsilon, N and parameter: entries of one parameter stand beside each other (data sets, entries)."""
    entries: dict[tuple, dict[str, list[dict]]] = {}
    for row in rows:
        key = (row["case"], float(row["epsilon"]), int(row["n"]), row["parameter"].split("[")[0])
        entries.setdefault(key, {}).setdefault(row["parameter"], []).append(row)
    columns = ("rank", "error", "sd", "divergences", "r_hat")
    return {
        key: {column: np.array([[float(row[column]) for row in rows] for rows in several.values()]).T for column in columns}
        for key, several in entries.items()
    }


def measures(found: dict[str, np.ndarray]) -> dict[str, float]:
    """What the page says of one parameter. Entries may go together, so standard errors are those of data sets."""
    z2 = ((found["error"] / found["sd"]) ** 2).mean(axis=1)
    outside = np.minimum(found["rank"], RANKED - found["rank"])
    held = {share: (outside >= (RANKED + 1) * (100 - share) // 200).mean(axis=1) for share in (50, 90, 95)}
    many = len(z2)
    result = {"many": many, "z": float(np.sqrt(z2.mean())), "z_far": float((z2.mean() - 1) / (z2.std() / np.sqrt(many)))}
    result |= {f"held_{share}": float(values.mean()) for share, values in held.items()}
    result["held_far"] = float((0.9 - held[90].mean()) / max(held[90].std() / np.sqrt(many), np.sqrt(0.09 / many) / 4))
    result["unsettled"] = float((found["r_hat"][:, 0] > 1.05).mean())
    result["diverging"] = float((found["divergences"][:, 0] > 0).mean())
    return result


def summary() -> None:
    told = {key: one for key, found in units_of(read()).items() if (one := measures(found))["many"] >= FEWEST}
    order: Callable[[tuple], tuple] = lambda key: (UNITS.index(key[:3]), key[3])  # noqa: E731
    failing = [key for key, one in told.items() if one["z_far"] > TOO_FAR or one["held_far"] > TOO_FAR]
    lines = [
        "# Rarer models, and few records",
        "",
        "Unknowns are drawn from the prior and records from the model; these are released, and the private posterior is sampled with the",
        "steps of `pymc_dp.sample`. z is (posterior mean - truth) / posterior sd; its root mean square is 1 where a posterior is right.",
        "*50 %*, *90 %* and *95 %* are shares of intervals that hold the truth, averaged over the entries of a parameter. *unsettled* and",
        "*diverging* are shares of fits with an R-hat above 1.05, and with divergent draws.",
        "",
        "Models whose name begins with *draws* or *gibbs* are not released: their intervals are those of 79 draws of the posterior itself,",
        "by `PosteriorSample` and `Gibbs`, which epsilon pays for together; choices are made by NumPy, whose law is OpenDP's but for",
        "rounding. Where epsilon is so small that the likelihood is flattened, such intervals are wider than those of the records would",
        "be, and z is less than 1. *Coarse* is a grid whose points are further apart than the posterior is wide: for the",
        "slope of a line, which goes with its intercept, such draws are too close together. A `ConvergenceWarning` says",
        "so where it happens. In models whose name begins with *told*, every record is told at random (`randomise`).",
        "",
        f"A row fails if z² is more than {TOO_FAR:g} standard errors above 1, or the share of 90 % intervals so far below 90 %.",
        "",
        f"{len(told)} rows; {len(failing)} fail{':' if failing else '.'}",
        "",
        *(f"- {' '.join(key[0].split('_'))}, {key[3]}, epsilon {key[1]:g}, N = {key[2]:,}" for key in failing),
        *([""] if failing else []),
        "| model | parameter | epsilon | N | data sets | rms of z | 50 % | 90 % | 95 % | unsettled | diverging |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for key in sorted(told, key=order):
        one = told[key]
        numbers = " | ".join(f"{one[name]:.2f}" for name in ("z", "held_50", "held_90", "held_95", "unsettled", "diverging"))
        lines.append(f"| {key[0].replace('_', ' ')} | {key[3]} | {key[1]:g} | {key[2]:,} | {one['many']} | {numbers} |")
    again = ["", "```bash", "python benchmarks/rarer.py run && python benchmarks/rarer.py summary", "```", ""]
    PAGE.write_text("\n".join([*lines, *again]))
    print("\n".join(lines[9:]))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("command", choices=["run", "summary"])
    parser.add_argument("--cases", default=",".join(CASES), help="names, separated by commas")
    parser.add_argument("--records", type=int, nargs="*", default=[], help="numbers of records, where not all")
    parser.add_argument("--minutes", type=float, default=np.inf, help="stop after so many minutes")
    parser.add_argument("--replicates", type=int, default=REPLICATES)
    given = parser.parse_args(arguments)
    if given.command == "run":
        run(given.cases.split(","), given.records, given.minutes, given.replicates)
    summary()


if __name__ == "__main__":
    main()
