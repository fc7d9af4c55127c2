"""Coverage where sums are pooled over cells: writes benchmarks/results/pooled.csv and prints what docs/theory.md quotes.

    python benchmarks/pooled.py run [--replicates 26] [--seed a]
    python benchmarks/pooled.py summary

Intercepts of a hierarchy, written with intercepts as they are, one slope and sigma are drawn from the prior; a feature whose share or mean
differs between cells is made up, once of two values and once of many; records are released by ``pymc_dp.release`` and the private model is
sampled by four chains of 500 draws. What counts as failing is said here before anything is run: a parameter of which the share of 90 %
intervals that hold the truth is further than three standard errors from .90, and R-hat of 1.05 or more in more than one fit of twenty.
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
from arviz_stats.base import array_stats

import pymc_dp as pmdp
from pymc_dp.private_models.default_steps import suited
from pymc_dp.private_models.rewrite import rewrite

RESULTS = Path(__file__).resolve().parent / "results" / "pooled.csv"
PARAMETERS = ("mu_a", "b", "sigma_a", "sigma_y", "a of the largest cell")
SIZES = [(10, 200), (10, 1000), (40, 200), (40, 1000)]
EPSILONS = (0.5, 1.0, 4.0)
LARGEST_R_HAT, UNSETTLED = 1.05, 0.05


def model_of(cell: np.ndarray, x: np.ndarray, y: np.ndarray, cells: int) -> pm.Model:
    with pm.Model() as model:
        mu_a, sigma_a = pm.Normal("mu_a", 0, 0.5), pm.HalfNormal("sigma_a", 0.5)
        a, b, sigma_y = pm.Normal("a", mu_a, sigma_a, shape=cells), pm.Normal("b", 0, 1), pm.Gamma("sigma_y", 4, 8)
        pm.Normal("y", a[pm.Data("cell", cell)] + b * pm.Data("x", x), sigma_y, observed=y)
    return model


def drawn(n: np.ndarray, k: int, rng: np.random.Generator) -> tuple[pm.Model, list[float]]:
    """A model of simulated records, and the truth."""
    cells, cell = len(n), np.repeat(np.arange(len(n)), n)
    mu_a, sigma_a, b, sigma_y = rng.normal(0, 0.5), abs(rng.normal(0, 0.5)), rng.normal(), rng.gamma(4, 1 / 8)
    a = rng.normal(mu_a, sigma_a, cells)
    share = rng.beta(*rng.choice([0.5, 2, 8], 2), cells) if k % 2 else np.clip(rng.normal(0.4, 0.1, cells), 0, 1)
    x = (rng.random(len(cell)) < share[cell]).astype(float) if k % 4 < 2 else np.clip(rng.normal(share[cell], 0.15), 0, 1)
    model = model_of(cell, x, rng.normal(a[cell] + b * x, sigma_y), cells)
    return model, [mu_a, b, sigma_a, sigma_y, a[n.argmax()]]


def fits(replicates: int, word: str, done: set[tuple]) -> Iterator[list]:
    """Rows of the table: of every fit its setting, seconds and divergent draws, and of every parameter rank, R-hat and sd."""
    compiled = {}
    for cells, records in SIZES:
        weights = np.random.default_rng(cells * records).gamma(1.5, 1, cells)
        n = 1 + np.random.default_rng(records).multinomial(records - cells, weights / weights.sum())
        for epsilon in EPSILONS:
            for k in range(replicates):
                if (word, cells, records, epsilon, k) in done:
                    continue
                seed = zlib.crc32(f"{word} {cells} {records} {epsilon} {k}".encode())
                model, truth = drawn(n, k, np.random.default_rng(seed))
                released = pmdp.release(model, epsilon=epsilon, public=["cell"], bounds={"y": (-4, 4), "x": (0, 1)}, missing={})
                assert released["y"].multipliers.size
                private = rewrite(model, released)
                key = cells, records, str(released["y"].multipliers[[0, -1]]), str(private.rvs_to_transforms[private["a"]])[:20]
                if key not in compiled:
                    compiled[key] = nutpie.compile_pymc_model(private)
                given = compiled[key].with_data(**{data.name: data.get_value() for data in private.data_vars})
                shapes = private.eval_rv_shapes()
                settings = suited(released, sum(int(np.prod(shapes[value.name])) for value in private.value_vars))
                start = time.perf_counter()
                tree = nutpie.sample(given, draws=500, tune=500, chains=4, cores=1, progress_bar=False, seed=seed % 2**31, **settings)
                row = [
                    word,
                    cells,
                    records,
                    epsilon,
                    k,
                    round(time.perf_counter() - start, 2),
                    int(tree["sample_stats"]["diverging"].sum()),
                ]
                for name, true in zip(PARAMETERS, truth, strict=True):
                    draws = tree["posterior"][name.split(" of ")[0]].values
                    draws = draws[..., n.argmax()] if " of " in name else draws
                    r_hat = float(array_stats.rhat(draws, chain_axis=0, draw_axis=1))
                    row += [float((draws < true).mean()), round(r_hat, 4), round(float(draws.std()), 4)]
                yield row


def run(replicates: int, word: str) -> None:
    columns = [f"{name} {what}" for name in PARAMETERS for what in ("rank", "R-hat", "sd")]
    header = ["seed", "cells", "records", "epsilon", "replicate", "seconds", "divergences", *columns]
    done = set()
    if RESULTS.exists():
        done = set(pd.read_csv(RESULTS)[header[:5]].itertuples(index=False, name=None))
    with RESULTS.open("a", newline="") as file:
        writer = csv.writer(file)
        if not done:
            writer.writerow(header)
        for row in fits(replicates, word, done):
            writer.writerow(row)
            file.flush()


def summary() -> str:
    """Of every parameter the share of intervals that hold, and what has failed."""
    table = pd.read_csv(RESULTS)
    error, lines, failed = np.sqrt(0.09 / len(table)), [], []
    for name in PARAMETERS:
        held = float(table[f"{name} rank"].between(0.05, 0.95).mean())
        below, above = float((table[f"{name} rank"] < 0.05).mean()), float((table[f"{name} rank"] > 0.95).mean())
        lines.append(f"{name}: {held:.3f} of {len(table)} intervals hold ({below:.3f} above the truth, {above:.3f} below)")
        failed += [name] if abs(held - 0.9) > 3 * error else []
    r_hat = table[[f"{name} R-hat" for name in PARAMETERS]].max(axis=1)
    unsettled = float((r_hat >= LARGEST_R_HAT).mean())
    failed += ["R-hat"] if unsettled > UNSETTLED else []
    lines.append(
        f"R-hat of {LARGEST_R_HAT} or more in {unsettled:.1%} of fits, at most {r_hat.max():.2f}; {table['seconds'].mean():.1f} s a fit"
    )
    lines.append(f"divergent draws in {(table['divergences'] > 0).mean():.1%} of fits; failed: {', '.join(failed) or 'nothing'}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "summary"])
    parser.add_argument("--replicates", type=int, default=26, help="of every setting; 12 settings")
    parser.add_argument("--seed", default="a", help="a word; another one gives other data sets")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.what == "run":
        run(arguments.replicates, arguments.seed)
    print(summary())


if __name__ == "__main__":
    main()
