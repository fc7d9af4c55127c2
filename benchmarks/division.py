"""Coverage and widths where epsilon is divided among several observed variables: writes benchmarks/results/division.csv.

    python benchmarks/division.py run [--replicates 40] [--seed b]
    python benchmarks/division.py summary

Unknowns are drawn from the prior and records given them. Of each data set two releases are made, one with equal shares and one divided by
what is expected. Unknowns of different variables are independent, so posteriors are computed on grids, without a sampler: of normal
variables with the moments that the package puts into the private model, of counts by adding up over all that may be behind them. What
counts as failing is said here before anything is run: a division of which the share of 90 % intervals that hold the truth is further than
three standard errors from .90, and a setting of which the geometric mean of widths is more than 3 % larger than with equal shares, beyond
two standard errors. What was run with seed a was divided before there was a limit to how much wider one variable may be.
"""

import argparse
import csv
import os
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytensor.tensor as pt
from scipy import special, stats

import pymc_dp as pmdp
from pymc_dp.laws.law import Moments
from pymc_dp.private_models.likelihood import law_of
from pymc_dp.releases.noisy_statistic import NoisyStatistic

RESULTS = Path(__file__).resolve().parent / "results" / "division.csv"
GROUPS = 8
BOUNDS = {
    "three means": {"first": (-4, 4), "second": (-4, 4), "third": (-40, 40)},
    "mean and table": {"income": (0, 200)},
}
GAUSSIAN = {"mechanism": "gaussian", "delta": 1e-6}
SETTINGS = [
    (name, records, epsilon, mechanism)
    for name, mechanism in [*((name, "laplace") for name in BOUNDS), ("three means", "gaussian")]
    for records in (200, 2000)
    for epsilon in (0.5, 4.0)
]
DIVISIONS = ("equal", "expected")
WORSE = 1.03
POINTS, ZOOMS, BEYOND, NODES = 31, 3, 1e-4, 121
"""Points of a grid in every direction, how often it is drawn closer, and what is left
out at most, of every unknown; points at which an exact sum is looked at."""
TERMS = np.arange(2001)


def mean_and_table(records: int, rng: np.random.Generator) -> tuple[pm.Model, dict[str, tuple]]:
    """A mean with wide bounds beside a table of public cells. Of every variable the truth, and the priors."""
    mean, sd, share = rng.normal(50, 10), rng.gamma(9, 1), rng.beta(2, 2, GROUPS)
    group = rng.integers(GROUPS, size=records)
    with pm.Model() as model:
        pm.Normal("income", pm.Normal("mean", 50, 10), pm.Gamma("sd", 9, 1), observed=rng.normal(mean, sd, records))
        table = pm.Beta("share", 2, 2, shape=GROUPS)
        pm.Bernoulli("vote", table[pm.Data("group", group)], observed=rng.random(records) < share[group])
    return model, {"income": (mean, sd, stats.norm(50, 10), stats.gamma(9)), "vote": (share,)}


def three_means(records: int, rng: np.random.Generator) -> tuple[pm.Model, dict[str, tuple]]:
    """Three normal variables alike but for their bounds."""
    truth: dict[str, tuple] = {}
    with pm.Model() as model:
        for name in BOUNDS["three means"]:
            mean, sd = rng.normal(), rng.gamma(9, 1 / 18)
            truth[name] = (mean, sd, stats.norm(), stats.gamma(9, scale=1 / 18))
            unknown = pm.Normal(f"mean of {name}"), pm.Gamma(f"sd of {name}", 9, 18)
            pm.Normal(name, *unknown, observed=rng.normal(mean, sd, records))
    return model, truth


MODELS = {"mean and table": mean_and_table, "three means": three_means}


def moments_of(noisy: NoisyStatistic) -> Callable[..., list[np.ndarray]]:
    """Mean and covariance of (u, u²) of one record at vectors of means and standard deviations: the private model's own, clamping known."""
    mean, sd = pt.dvector(), pt.dvector()
    law = law_of(noisy, [mean, sd], pt.constant(noisy.n))
    assert isinstance(law, Moments)
    assert law.basis is None
    of_one = [*law.mean, law.covariance[0][0], law.covariance[1][0], law.covariance[1][1]]
    return pytensor.function([mean, sd], [value + 0 * mean for value in of_one])


def log_density(moments: list[np.ndarray], noisy: NoisyStatistic) -> np.ndarray:
    """Of two released sums: normal about their mean, with noise; under Laplace noise the first exact sum is integrated numerically."""
    n, (z1, z2) = float(noisy.n.sum()), noisy.values.ravel()
    m1, m2, c11, c21, c22 = (n * value for value in moments)
    c11, c22 = np.maximum(c11, 1e-12), np.maximum(c22, 1e-12)
    if noisy.noise.gaussian:
        v = noisy.noise.standard_deviation**2
        a, d, b = c11 + v, c22 + v, c21
        r1, r2, determinant = z1 - m1, z2 - m2, (c11 + v) * (c22 + v) - c21**2
        return -0.5 * (np.log(determinant) + (d * r1**2 - 2 * b * r1 * r2 + a * r2**2) / determinant)
    spread = noisy.noise.spread
    x = np.linspace(-7, 7, NODES)
    s1 = m1[:, None] + np.sqrt(c11)[:, None] * x
    centre = m2[:, None] + (c21 / np.sqrt(c11))[:, None] * x
    sd = np.sqrt(np.maximum(c22 - c21**2 / c11, 1e-12))[:, None]
    given = _normal_plus_laplace(z2 - centre, sd, spread)
    return special.logsumexp(-0.5 * x**2 - np.abs(z1 - s1) / spread + given, axis=1)


def _normal_plus_laplace(r: np.ndarray, sd: np.ndarray, spread: float) -> np.ndarray:
    """Log-density at r, up to a constant, of a normal variable of mean 0 plus a Laplace one."""
    with np.errstate(over="ignore", invalid="ignore"):
        tails = [sign * r / spread + special.log_ndtr(-sign * r / sd - sd / spread) for sign in (1, -1)]
    return 0.5 * (sd / spread) ** 2 + np.logaddexp(*tails)


def interval(points: np.ndarray, mass: np.ndarray) -> tuple[float, float]:
    """The 90 % interval of what has these probabilities on evenly spaced points."""
    ends = np.append(points - (points[1] - points[0]) / 2, points[-1] + (points[1] - points[0]) / 2)
    low, high = np.interp([0.05, 0.95], np.append(0, np.cumsum(mass) / mass.sum()), ends)
    return float(low), float(high)


def of_normal(moments: Callable[..., list[np.ndarray]], noisy: NoisyStatistic, truth: tuple) -> list[tuple[float, float, float]]:
    """Of the mean and the standard deviation the truth, and the ends of the interval."""
    *true, prior_mean, prior_sd = truth
    ends = [prior.ppf([1e-7, 1 - 1e-7]) for prior in (prior_mean, prior_sd)]
    for _ in range(ZOOMS):
        axes = [np.linspace(low, high, POINTS) for low, high in ends]
        mean, sd = (axis.ravel() for axis in np.meshgrid(*axes, indexing="ij"))
        log = log_density(moments(mean, sd), noisy) + prior_mean.logpdf(mean) + prior_sd.logpdf(sd)
        mass = np.exp(log - log.max()).reshape(POINTS, POINTS)
        marginals = [mass.sum(axis=1), mass.sum(axis=0)]
        for k, (axis, marginal) in enumerate(zip(axes, marginals, strict=True)):
            inside = np.flatnonzero(marginal > BEYOND * marginal.max())
            ends[k] = np.array([axis[max(inside[0] - 1, 0)], axis[min(inside[-1] + 1, POINTS - 1)]])
    return [(one, *interval(axis, marginal)) for one, axis, marginal in zip(true, axes, marginals, strict=True)]


def of_counts(noisy: NoisyStatistic, truth: tuple) -> list[tuple[float, float, float]]:
    """Of every cell's share the truth, and the ends of the interval: one noisy count a cell, over all that may be behind it."""
    share, found = (np.arange(1000) + 0.5) / 1000, []
    linear, square, _ = noisy.noise.kernel
    for true, n, z in zip(truth[0], noisy.n, noisy.values.reshape(len(noisy.n)), strict=True):
        counts = TERMS[: n + 1]
        of_noise = linear * np.abs(z - counts) + square * (z - counts) ** 2
        of_count = stats.binom.pmf(counts, n, share[:, None])
        mass = (of_count * np.exp(of_noise - of_noise.max())).sum(axis=1) * stats.beta(2, 2).pdf(share)
        found.append((true, *interval(share, mass)))
    return found


def fits(replicates: int, word: str, done: set[tuple]) -> Iterator[list]:
    """Rows of the table: of every fit its setting, shares, seconds, how many intervals hold, and mean log widths by variable."""
    for k in range(replicates):
        for setting in SETTINGS:
            name, records, epsilon, mechanism = setting
            seed = zlib.crc32(f"{word} {setting} {k}".encode())
            model, truth = MODELS[name](records, np.random.default_rng(seed))
            for division in DIVISIONS:
                if (word, *setting, division, k) in done:
                    continue
                start = time.process_time()
                named = {"bounds": BOUNDS[name], "missing": {}, "public": ["group"] if name == "mean and table" else []}
                named |= GAUSSIAN if mechanism == "gaussian" else {}
                if (setting, division) not in known:
                    shown = pmdp.inspect(model, epsilon=epsilon, weights="equal" if division == "equal" else None, **named)
                    known[setting, division] = {part.variable: part.share for part in shown.parts}
                weights = known[setting, division]
                released = pmdp.release(model, epsilon=epsilon, weights=weights, **named)
                held, widths = [], []
                for noisy in released.statistics:
                    if noisy.distribution == "Normal":
                        key = (name, records, noisy.variable)
                        if key not in compiled:
                            compiled[key] = moments_of(noisy)
                        found = np.array(of_normal(compiled[key], noisy, truth[noisy.variable]))
                    else:
                        found = np.array(of_counts(noisy, truth[noisy.variable]))
                    held.append(((found[:, 1] <= found[:, 0]) & (found[:, 0] <= found[:, 2])).mean())
                    widths.append(np.log(found[:, 2] - found[:, 1]).mean())
                shares = " ".join(f"{float(share):.3f}" for share in weights.values())
                row = [word, *setting, division, k, shares, round(time.process_time() - start, 2)]
                yield [*row, round(float(np.mean(held)), 4), round(float(np.mean(widths)), 4), " ".join(f"{width:.4f}" for width in widths)]


compiled: dict[tuple, Callable[..., list[np.ndarray]]] = {}
known: dict[tuple, dict[str, object]] = {}


def run(replicates: int, word: str) -> None:
    header = ["seed", "model", "records", "epsilon", "mechanism", "division", "replicate"]
    done = set()
    if RESULTS.exists():
        done = set(pd.read_csv(RESULTS)[header].itertuples(index=False, name=None))
    with RESULTS.open("a", newline="") as file:
        writer = csv.writer(file)
        if not done:
            writer.writerow([*header, "shares", "seconds", "held", "log width", "log widths"])
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
    keys = ["seed", "model", "mechanism", "records", "epsilon"]
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
    parser.add_argument("--replicates", type=int, default=40, help="of every setting; 12 settings")
    parser.add_argument("--seed", default="b", help="a word; another one gives other data sets")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.what == "run":
        run(arguments.replicates, arguments.seed)
    print(summary())


if __name__ == "__main__":
    main()
