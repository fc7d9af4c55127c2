"""Noise-aware Gibbs samplers of the literature beside pymc_dp, on the same releases: writes benchmarks/results/anchors.csv.

    python benchmarks/anchors.py

Bernstein and Sheldon (NeurIPS 2018) are written anew from the paper, with correct sensitivities, one noise per statistic and public
bounds. Every replicate draws a parameter from the prior and records from it, releases them once, and all methods start there.
"""

import argparse
import csv
import logging
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import arviz as az
import numpy as np
import nutpie
import pymc as pm

import pymc_dp as pmdp

ROOT = Path(__file__).resolve().parents[1]
BURN_IN, SWEEPS = 500, 1000
TAIL = 0.05


# ---------- Bernstein and Sheldon 2018: exact statistics, noise variances and parameter in turn
def noise_variances(rng: np.random.Generator, noise: np.ndarray, scale: float) -> np.ndarray:
    """Laplace noise is normal given a variance, whose inverse is inverse Gaussian given the noise."""
    mean = 1 / (scale * np.maximum(np.abs(noise), 1e-9 * scale))
    return 1 / np.maximum(rng.wald(mean, 1 / scale**2), 1e-12 / scale**2)


def gibbs_binomial(rng: np.random.Generator, z: np.ndarray, scale: float, n: int) -> np.ndarray:
    """Beta(10, 10) and one count; the exact count is drawn from a normal law truncated to [0, n]."""
    theta, v, kept = 0.5, 2 * scale**2, []
    for _ in range(BURN_IN + SWEEPS):
        mean, variance = n * theta, n * theta * (1 - theta)
        total = variance + v
        s = truncated(rng, (mean * v + z[0] * variance) / total, np.sqrt(variance * v / total), 0, n)
        v = noise_variances(rng, z[0] - s, scale)
        theta = rng.beta(10 + s, 10 + n - s)
        kept.append([theta])
    return np.array(kept[BURN_IN:])


def gibbs_multinomial(rng: np.random.Generator, z: np.ndarray, scale: float, n: int) -> np.ndarray:
    """Dirichlet(5, 5, 5) and three counts, each with noise of its own."""
    K, kept = len(z), []
    p, v = np.full(K, 1 / K), np.full(K, 2 * scale**2)
    for _ in range(BURN_IN + SWEEPS):
        covariance = n * (np.diag(p) - np.outer(p, p))
        gain = np.linalg.solve(covariance + np.diag(v), covariance).T
        mean = n * p + gain @ (z - n * p)
        root = np.linalg.cholesky(covariance - gain @ covariance + 1e-9 * np.eye(K))
        for _ in range(100):
            s = mean + root @ rng.standard_normal(K)
            if (s >= 0).all():
                break
        s = np.clip(s, 0, n)
        v = noise_variances(rng, z - s, scale)
        p = rng.dirichlet(5 + s)
        kept.append(p)
    return np.array(kept[BURN_IN:])


def gibbs_exponential(rng: np.random.Generator, z: np.ndarray, scale: float, n: int) -> np.ndarray:
    """Gamma(8, 2) and the sum of records clamped to [0, upper]; how many were clamped is drawn with the exact sum."""
    upper, theta, v, kept = exponential_bound(), 4.0, 2 * scale**2, []
    for _ in range(BURN_IN + SWEEPS):
        out = np.exp(-theta * upper)
        m = (1 - out) / theta
        square = 2 / theta**2 * (1 - out * (1 + theta * upper))
        mean = n * np.array([m, out])
        covariance = n * np.array([[square - m**2, out * (upper - m)], [out * (upper - m), out * (1 - out)]])
        gain = covariance[:, 0] / (covariance[0, 0] + v)
        centre = mean + gain * (z[0] - mean[0])
        root = np.linalg.cholesky(covariance - np.outer(gain, covariance[0]) + 1e-9 * np.eye(2))
        for _ in range(100):
            s, clamped = centre + root @ rng.standard_normal(2)
            if 0 <= s <= n * upper and 0 <= clamped <= n:
                break
        s, clamped = np.clip(s, 0, n * upper), np.clip(clamped, 0, n)
        v = noise_variances(rng, z[0] - s, scale)
        theta = rng.gamma(8 + n - clamped, 1 / (2 + s))
        kept.append([theta])
    return np.array(kept[BURN_IN:])


def truncated(rng: np.random.Generator, mean: float, sd: float, low: float, high: float) -> float:
    """A truncated normal draw; the tails that it cuts are hardly ever heavy."""
    for _ in range(1000):
        s = rng.normal(mean, sd)
        if low <= s <= high:
            return s
    return float(np.clip(mean, low, high))


def exponential_bound() -> float:
    """Above which a record lies with probability TAIL, by the prior alone: the bound is public."""
    return 2 * (TAIL ** (-1 / 8) - 1)


# ---------- the settings
def binomial_model(y: np.ndarray) -> pm.Model:
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("theta", 10, 10), observed=y)
    return model


def multinomial_model(y: np.ndarray) -> pm.Model:
    with pm.Model() as model:
        pm.Categorical("y", pm.Dirichlet("theta", np.full(3, 5.0)), observed=y)
    return model


def exponential_model(y: np.ndarray) -> pm.Model:
    with pm.Model() as model:
        pm.Exponential("y", pm.Gamma("theta", 8, 2), observed=y)
    return model


def from_unit(statistic, n: int) -> tuple[np.ndarray, float]:
    """The noisy sum of y, and the scale of its noise, from the sum of u = (y - middle) / half that was released."""
    half = exponential_bound() / 2
    return half * statistic.values.ravel() + n * half, statistic.noise.spread * half


def as_released(statistic, n: int) -> tuple[np.ndarray, float]:
    return statistic.values.ravel(), statistic.noise.spread


@dataclass(frozen=True)
class Setting:
    """Prior, records and model of one row of the table; its noise has the same form at every released value.

    ``most`` caps the replicates where one takes long.
    """

    name: str
    n: int
    epsilon: float
    prior: Callable[[np.random.Generator], np.ndarray]
    records: Callable[[np.random.Generator, np.ndarray, int], np.ndarray]
    model: Callable[[np.ndarray], pm.Model]
    gibbs: Callable[..., np.ndarray]
    bounds: dict | None = None
    sums: Callable = as_released
    most: int = 1000


def settings() -> list[Setting]:
    def coin(n: int, epsilon: float) -> Setting:
        return Setting(
            "Beta-Binomial", n, epsilon, lambda rng: rng.beta(10, 10, 1), lambda rng, t, n: rng.binomial(1, t[0], n), binomial_model,
            gibbs_binomial,
        )  # fmt: skip

    return [
        coin(1000, 0.1),
        coin(100, 0.05),
        Setting(
            "Dirichlet-Multinomial", 1000, 0.1, lambda rng: rng.dirichlet(np.full(3, 5.0)), lambda rng, t, n: rng.choice(3, n, p=t),
            multinomial_model, gibbs_multinomial, most=40,
        ),
        Setting(
            "Gamma-Exponential", 1000, 0.1, lambda rng: rng.gamma(8, 1 / 2, 1), lambda rng, t, n: rng.exponential(1 / t[0], n),
            exponential_model, gibbs_exponential, {"y": (0, exponential_bound())}, from_unit,
        ),
    ]  # fmt: skip


# ---------- running
def effective(draws: np.ndarray) -> float:
    """The smallest bulk ESS of chains (C, D, P)."""
    return min(float(np.asarray(az.ess(draws[:, :, k], method="bulk")).min()) for k in range(draws.shape[-1]))


class Ours:
    """pymc_dp, compiled once: further releases of the setting only change what was released."""

    def __init__(self, noise_aware: bool) -> None:
        self.noise_aware, self.compiled = noise_aware, None

    def __call__(self, model: pm.Model, release: pmdp.Release, seed: int) -> np.ndarray:
        private = pmdp.rewrite(model, release, noise_aware=self.noise_aware)
        if self.compiled is None:
            self.compiled = nutpie.compile_pymc_model(private, freeze_model=False)
        compiled = self.compiled.with_data(y_released=private["y_released"].get_value())
        tree = nutpie.sample(compiled, draws=1000, tune=400, chains=2, cores=1, seed=seed, progress_bar=False, save_warmup=False)
        draws = tree["posterior"]["theta"].values
        return draws.reshape(*draws.shape[:2], -1)


def replicate(setting: Setting, seed: int, methods: dict[str, Callable]) -> list[dict]:
    """One prior draw, one release, every method on it."""
    rng = np.random.default_rng(seed)
    truth = setting.prior(rng)
    model = setting.model(setting.records(rng, truth, setting.n))
    release = pmdp.release(model, epsilon=setting.epsilon, **({"bounds": setting.bounds} if setting.bounds else {}))
    z, scale = setting.sums(release["y"], setting.n)
    rows = []
    for name, method in methods.items():
        start = time.perf_counter()
        draws = method(model, release, seed) if name != "Gibbs" else setting.gibbs(rng, z, scale, setting.n)[None]
        seconds = time.perf_counter() - start
        low, high = np.quantile(draws, [0.025, 0.975], axis=(0, 1))
        rows.append(
            {
                "setting": setting.name, "n": setting.n, "epsilon": setting.epsilon, "method": name, "seed": seed,
                "covered": float(((low <= truth) & (truth <= high)).mean()),
                "square": float(np.mean((draws.mean(axis=(0, 1)) - truth) ** 2)),
                "width": float((high - low).mean()), "seconds": seconds, "ess": effective(draws),
            }
        )  # fmt: skip
    return rows


METHODS = ("Gibbs", "pymc_dp", "pymc_dp, plug-in")
TITLES = {"Gibbs": "Bernstein & Sheldon 2018", "pymc_dp": "pymc_dp", "pymc_dp, plug-in": "pymc_dp, `noise_aware=False`"}


def table(rows: list[dict]) -> str:
    lines = [
        "| setting | method | 95 % intervals cover | RMSE of the mean | mean width | s per 1,000 effective draws, median | replicates |",
        "|---|---|---|---|---|---|---|",
    ]
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        groups.setdefault((row["setting"], row["n"], row["epsilon"], row["method"]), []).append(row)
    for (name, n, epsilon, method), mine in groups.items():
        covered = np.array([row["covered"] for row in mine])
        error = covered.std(ddof=1) / np.sqrt(len(mine)) if len(mine) > 1 else float("nan")
        cost = np.median([1000 * row["seconds"] / row["ess"] for row in mine])
        rmse, width = np.sqrt(np.mean([row["square"] for row in mine])), np.mean([row["width"] for row in mine])
        lines.append(
            f"| {name}, N={n}, eps={epsilon:g} | {TITLES[method]} | {100 * covered.mean():.1f} ({100 * error:.1f}) | {rmse:.4f} |"
            f" {width:.4f} | {cost:.2f} | {len(mine)} |"
        )
    return "\n".join(lines)


def kept(results: Path, rows: list[dict]) -> list[dict]:
    """Rows of earlier runs, of settings that were not run again."""
    if not results.exists():
        return []
    again = {(row["setting"], row["n"], row["epsilon"]) for row in rows}
    with results.open(newline="") as file:
        words = ("setting", "method")
        old = [{key: value if key in words else float(value) for key, value in row.items()} for row in csv.DictReader(file)]
    for row in old:
        row["n"], row["seed"] = int(row["n"]), int(row["seed"])
    return [row for row in old if (row["setting"], row["n"], row["epsilon"]) not in again]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--only", type=int, nargs="+", help="numbers of settings, from 0")
    arguments = parser.parse_args()
    logging.getLogger("pymc").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    chosen = settings() if arguments.only is None else [settings()[k] for k in arguments.only]
    rows: list[dict] = []
    for setting in chosen:
        methods = {"Gibbs": None, "pymc_dp": Ours(True), "pymc_dp, plug-in": Ours(False)}
        replicate(setting, 0, methods)  # compiles
        mine = [row for seed in range(1, min(arguments.replicates, setting.most) + 1) for row in replicate(setting, seed, methods)]
        print(table(mine), flush=True)
        rows += mine
    results = ROOT / "benchmarks" / "results" / "anchors.csv"
    results.parent.mkdir(exist_ok=True)
    rows = kept(results, rows) + rows
    with results.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (ROOT / "docs" / "anchors.md").write_text("# Beside samplers of the literature\n\n" + table(rows) + "\n")


if __name__ == "__main__":
    main()
