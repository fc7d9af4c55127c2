"""Rows that have a parameter each: whether intervals cover, and how wide they are beside no privacy. Writes benchmarks/results/rows.csv.

    python benchmarks/rows.py run [--minutes M] [--cases normal,gamma] [--sets 100]
    python benchmarks/rows.py summary
    python benchmarks/rows.py exact [--cases gamma] [--rows 2000] [--sets 40] [--chains]

Unknowns are drawn from their priors and rows from the model; ``pymc_dp.sample`` draws from the private posterior. One individual moves one
row: a value by at most 1, or two counts by 1. Units that are in the CSV are not drawn again. ``summary`` prints the table of
docs/rows_measured.md. ``exact`` sums the effects out by quadrature, of what was released with its noise, so that the posterior of mu and
tau lies on a grid; with ``--chains`` it samples the private model, too, and prints how far the chains are off.
"""

import argparse
import csv
import itertools
import os
import time
import warnings
from collections import defaultdict
from pathlib import Path

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy import stats

import pymc_dp as pmdp

RESULTS = Path(__file__).parent / "results" / "rows.csv"
ROWS, EPSILONS = (50, 2000), (0.5, 4.0)
PLAIN = 20
"""Of the first so many data sets the posterior without privacy is drawn, too."""
TRIALS = 40
COLUMNS = ("case", "rows", "epsilon", "data_set", "name", "holds", "inside", "width", "plain", "r_hat", "divergences", "seconds")


def effects(rows, columns=()):
    """A mean, a spread, and an effect for every row, not centred."""
    mu, tau = pm.Normal("mu", 0, 1), pm.HalfNormal("tau", 1)
    return pm.Deterministic("theta", mu + tau * pm.Normal("z", shape=(rows, *columns)))


def normal(theta, y):
    """A known spread within rows."""
    pm.Normal("y", 50 + 10 * theta, 5.0, observed=y)


def student_t(theta, y):
    """Four degrees of freedom."""
    pm.StudentT("y", nu=4, mu=50 + 10 * theta, sigma=5.0, observed=y)


def gamma(theta, y):
    """Positive and skewed, means by a log link."""
    pm.Gamma("y", alpha=4.0, beta=4.0 / pm.math.exp(2 + 0.5 * theta), observed=y)


def multinomial(theta, y):
    """Three levels, of which two have an effect for every row."""
    logits = pt.concatenate([pt.zeros((len(y), 1)), theta], axis=1)
    pm.Multinomial("y", n=TRIALS, p=pm.math.softmax(logits, axis=1), observed=y)


CASES = {case.__name__: case for case in (normal, student_t, gamma, multinomial)}
BOUNDS = {"normal": (-20, 120), "student_t": (-20, 120), "gamma": (0, 100)}


def model_of(case, y):
    with pm.Model() as model:
        CASES[case](effects(len(y), (2,) if case == "multinomial" else ()), y)
    return model


def simulated(case, rows, rng):
    """Unknowns, and rows given them."""
    columns = (2,) if case == "multinomial" else ()
    truth = {"mu": rng.normal(), "tau": abs(rng.normal())}
    theta = truth["theta"] = truth["mu"] + truth["tau"] * rng.normal(size=(rows, *columns))
    if case == "multinomial":
        p = np.exp(np.concatenate([np.zeros((rows, 1)), theta], axis=1))
        return truth, rng.multinomial(TRIALS, p / p.sum(axis=1, keepdims=True))
    if case == "gamma":
        return truth, rng.gamma(4, np.exp(2 + 0.5 * theta) / 4)
    return truth, 50 + 10 * theta + 5 * (rng.normal(size=rows) if case == "normal" else rng.standard_t(4, rows))


def private_arguments(case):
    """What one individual moves, and the bounds of the rows."""
    return {"unit": "individual"} if case == "multinomial" else {"unit": pmdp.Individual(moves=1), "bounds": {"y": BOUNDS[case]}}


def density_of_released(case, statistic, theta):
    """Of every row's released numbers given its effect (given both, where it has two), up to a factor per row: (effects, rows)."""
    noisy, spread = statistic.values, statistic.scale * statistic.unit
    if case == "multinomial":
        first, second = np.meshgrid(theta, theta, indexing="ij")
        p = np.exp(np.stack([np.zeros(first.size), first.ravel(), second.ravel()], axis=1))
        counts = np.array([(a, b, TRIALS - a - b) for a in range(TRIALS + 1) for b in range(TRIALS + 1 - a)])
        given = stats.multinomial.pmf(counts[:, None], TRIALS, p / p.sum(axis=1, keepdims=True))
        return given.T @ np.exp(-np.abs(counts[:, None] - noisy).sum(axis=2) / spread)
    low, high = BOUNDS[case]
    y = {"gamma": np.linspace(0, 400, 8001)}.get(case, np.linspace(-200, 300, 5001))
    law = {
        "normal": lambda: stats.norm.pdf(y, 50 + 10 * theta[:, None], 5),
        "student_t": lambda: stats.t.pdf(y, 4, 50 + 10 * theta[:, None], 5),
        "gamma": lambda: stats.gamma.pdf(y, 4, scale=np.exp(2 + 0.5 * theta[:, None]) / 4),
    }[case]()
    share = (np.clip(y, low, high) - (low + high) / 2) / ((high - low) / 2)
    return law @ np.exp(-np.abs(share[:, None] - noisy[:, 0]) / spread)


def posterior_on_a_grid(case, statistic):
    """Points of mu and tau, and the posterior weight of each (mu, tau), by quadrature; the effects are summed out."""
    theta = np.arange(-9, 9.01, 0.15) if case == "multinomial" else np.arange(-9, 9.005, 0.02)
    given = density_of_released(case, statistic, theta)
    mu, tau = np.linspace(-4, 4, 41), np.linspace(0.004, 4, 41)
    for _ in range(3):
        log_density = np.empty((len(mu), len(tau)))
        for i, j in np.ndindex(log_density.shape):
            weight = normal_weights(theta, mu[i], tau[j])
            summed = (np.outer(weight, weight).ravel() if case == "multinomial" else weight) @ given
            log_density[i, j] = np.log(summed).sum() - 0.5 * mu[i] ** 2 - 0.5 * tau[j] ** 2
        weights = np.exp(log_density - log_density.max())
        weights /= weights.sum()
        found = mu, tau, weights
        mu, tau = (_around(points, weights.sum(axis=axis)) for points, axis in ((mu, 1), (tau, 0)))
    return found


def normal_weights(theta, mu, tau):
    """With which values at equally spaced points add up to their mean over a normal theta.

    Where steps are small beside ``tau`` the density's own values, whose sum is then all but exact; else values are linear in between.
    """
    step = theta[1] - theta[0]
    if tau > 1.5 * step:
        weights = stats.norm.pdf(theta, mu, tau)
    else:
        u = (mu - np.concatenate([[theta[0] - step], theta, [theta[-1] + step]])) / tau
        weights = np.maximum(np.diff(u * stats.norm.cdf(u) + stats.norm.pdf(u), 2), 0)
    return weights / weights.sum()


def _around(points, weights):
    """41 points where the weights are."""
    mean = points @ weights
    sd = max(np.sqrt((points - mean) ** 2 @ weights), (points[1] - points[0]) / 2)
    return np.linspace(max(mean - 6 * sd, points[0]), min(mean + 6 * sd, points[-1]), 41)


def quantiles_on_a_grid(points, weights, shares):
    """Quantiles of a density that is linear between points."""
    ends = np.concatenate([[0], np.cumsum((weights[1:] + weights[:-1]) / 2)])
    return np.interp(shares, ends / ends[-1], points)


def exact(case, rows, epsilon, k, chains):
    """Of mu and tau: the truth, 5, 50 and 95 % of the posterior on a grid, and how far chains are off, in standard deviations."""
    truth, y = simulated(case, rows, np.random.default_rng([k, rows, len(case)]))
    model = model_of(case, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        paid = {"model": model, "epsilon": epsilon, "missing": {}, **private_arguments(case)}
        tree = pmdp.sample(random_seed=k + 1, quiet=True, **paid, **SAMPLER) if chains else None
        released = pmdp.Release.from_datatree(tree) if chains else pmdp.release(**paid)
        mu, tau, weights = posterior_on_a_grid(case, released.statistics[0])
    for name, points, axis in (("mu", mu, 1), ("tau", tau, 0)):
        shares = weights.sum(axis=axis)
        mean = points @ shares
        sd = np.sqrt((points - mean) ** 2 @ shares)
        off = np.full(3, np.nan)
        if chains:
            drawn = tree["posterior"][name]
            off = (drawn.mean() - mean) / sd, az.mcse(drawn) / sd, drawn.std() / sd - 1
        yield name, truth[name], *quantiles_on_a_grid(points, shares, (0.05, 0.5, 0.95)), *map(float, off)


SAMPLER = {"draws": 400, "tune": 600, "chains": 2, "cores": 1, "progressbar": False}


def fit(case, rows, epsilon, k):
    """Of every unknown: the share of its entries that 90 % and 50 % intervals hold, their mean width, and that without privacy."""
    rng = np.random.default_rng([k, rows, len(case)])
    truth, y = simulated(case, rows, rng)
    model = model_of(case, y)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = pmdp.sample(model=model, epsilon=epsilon, missing={}, random_seed=k + 1, quiet=True, **private_arguments(case), **SAMPLER)
        seconds = time.perf_counter() - start
        plain = pm.sample(model=model, random_seed=k + 1, **SAMPLER) if k < PLAIN and epsilon == EPSILONS[0] else None
        r_hat, divergences = az.rhat(tree["posterior"].to_dataset()), int(tree["sample_stats"]["diverging"].sum())
    for name, value in truth.items():
        low, first, third, high = tree["posterior"][name].quantile([0.05, 0.25, 0.75, 0.95], ("chain", "draw")).values
        width = (
            np.nan if plain is None else np.ptp(plain["posterior"][name].quantile([0.05, 0.95], ("chain", "draw")).values, axis=0).mean()
        )
        holds, inside = ((a <= value) & (value <= b) for a, b in ((low, high), (first, third)))
        yield name, holds.mean(), inside.mean(), (high - low).mean(), width, float(r_hat[name].max()), divergences, seconds


def read():
    if not RESULTS.exists():
        return []
    with RESULTS.open() as file:
        return list(csv.DictReader(file))


def run(minutes, cases, sets, several):
    deadline = time.monotonic() + 60 * minutes
    done = {tuple(row[column] for column in COLUMNS[:4]) for row in read()}
    new = not RESULTS.exists()
    with RESULTS.open("a") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(COLUMNS)
        units = [(case, rows, epsilon, k) for k in range(sets) for rows in several for epsilon in EPSILONS for case in cases]
        for unit in units:
            if time.monotonic() > deadline:
                return
            if tuple(map(str, unit)) not in done:
                writer.writerows((*unit, name, *(f"{number:.4g}" for number in numbers)) for name, *numbers in fit(*unit))
                file.flush()


def compare(cases, sets, several, chains):
    print("case rows epsilon set name truth 5% 50% 95% | off, its standard error, of the width")
    held = defaultdict(list)
    for case, rows, epsilon, k in itertools.product(cases, several, EPSILONS, range(sets)):
        for name, truth, low, middle, high, *off in exact(case, rows, epsilon, k, chains):
            held[case, rows, epsilon, name].append(low <= truth <= high)
            numbers, others = (" ".join(f"{number:.3f}" for number in some) for some in ((truth, low, middle, high), off))
            print(case, rows, epsilon, k, name, numbers, "|", others, flush=True)
    for unit, holds in held.items():
        print(*unit, f"90% intervals hold in {sum(holds)} of {len(holds)}")


def summary():
    found = defaultdict(list)
    for row in read():
        key = row["case"], int(row["rows"]), float(row["epsilon"])
        found[key].append((row["name"], *(float(row[column]) for column in COLUMNS[5:])))
    print(
        "| rows are | rows | epsilon | data sets | mu | tau | effects of rows | width of mu | of tau | of effects | bad R-hat | seconds |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for (case, rows, epsilon), numbers in sorted(found.items()):
        of = {name: np.array([several for which, *several in numbers if which == name]) for name in ("mu", "tau", "theta")}
        plain = {name: [v[3] for which, *v in found[case, rows, EPSILONS[0]] if which == name and v[3] == v[3]] for name in of}
        holds = " | ".join(f"{of[name][:, 0].mean():.0%} / {of[name][:, 1].mean():.0%}" for name in of)
        ratios = " | ".join(f"{of[name][: len(plain[name]), 2].mean() / np.mean(plain[name]):.2g}" for name in of)
        bad = np.max([of[name][:, 4] for name in of], axis=0)
        print(
            f"| {case.replace('_', ' ')} | {rows} | {epsilon:g} | {len(bad)} | {holds} | {ratios} | {np.mean(bad > 1.05):.0%}"
            f" | {np.median(of['mu'][:, 6]):.0f} |"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("run", "summary", "exact"))
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--chains", action="store_true")
    parser.add_argument("--rows", default=",".join(map(str, ROWS)))
    arguments = parser.parse_args()
    if arguments.what == "summary":
        summary()
    elif arguments.what == "exact":
        compare(arguments.cases.split(","), arguments.sets, [int(n) for n in arguments.rows.split(",")], arguments.chains)
    else:
        run(arguments.minutes, arguments.cases.split(","), arguments.sets, [int(n) for n in arguments.rows.split(",")])
