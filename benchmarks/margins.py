"""Tables of private covariates under models of main effects: all cells, or margins? Prints what docs/theory.md quotes.

    python benchmarks/margins.py widths       expected posterior widths, by information, no sampler
    python benchmarks/margins.py fits [--replicates 20]    the first kind beside real fits of all cells

A record has K covariates of L levels each and y = 0 or 1, with logit P(y = 1) = c + sum_k a_k[x_k]; neighbours are "replace". Released are
all L^K 2 counts ("cells"), as the package does, or the K tables of (x_k, y) ("margins"), or these and the K (K - 1) / 2 tables of pairs of
covariates ("pairs"), each with an equal share of epsilon, or of rho. Unknown are c, a and the probabilities of all cells of covariates,
whose logarithms have the variance that they have under a flat Dirichlet prior. Counts are taken as independent Poisson counts, normal, so
that released numbers are normal but for Laplace noise: its variance is what leaves the Fisher information of each number what it is with
Laplace noise on a normal count. What comes of it are standard deviations of the differences a_k[l] - a_k[m], at draws of the priors.
"""

import argparse
import os
import warnings
from itertools import combinations, product
from math import comb, log, sqrt

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

from fractions import Fraction
from functools import cache

import numpy as np
from scipy import special

from pymc_dp.privacy.accounting import rho_of

DESIGNS = [(2, 2), (2, 4), (2, 8), (2, 16), (3, 2), (3, 4), (5, 2), (7, 2)]
"""Covariates and levels of each."""
DRAWS = 12
DELTA = Fraction(1, 10**6)


def tables(K: int, kind: str) -> list[tuple[int, ...]]:
    """Which of the axes 0, ..., K - 1 (covariates) and K (y) every released table has."""
    if kind == "cells":
        return [tuple(range(K + 1))]
    return [*((k, K) for k in range(K)), *(combinations(range(K), 2) if kind == "pairs" else ())]


def summing(K: int, L: int, kind: str) -> np.ndarray:
    """The matrix (released numbers, cells times 2) that adds cells up to the tables of this kind."""
    cells = np.array(list(product(*[range(L)] * K, range(2))))
    rows = []
    for axes in tables(K, kind):
        kept = cells[:, axes]
        rows += [(kept == one).all(axis=1) for one in np.unique(kept, axis=0)]
    return np.array(rows, dtype=float)


@cache
def left_by_noise(ratio: float) -> float:
    """1 / information of a normal variable of standard deviation ``ratio`` plus Laplace noise of scale 1, about where it lies."""
    reach = 30 + 8 * ratio
    z = np.linspace(-reach, reach, 20001)
    with np.errstate(over="ignore", invalid="ignore"):
        tails = [sign * z + special.log_ndtr(-sign * z / ratio - ratio) for sign in (1, -1)]
    log_density = 0.5 * ratio**2 - log(2) + np.logaddexp(*tails)
    score = np.gradient(log_density, z)
    return 1 / float(np.trapezoid(score**2 * np.exp(log_density), z))


def noise_variances(counts: np.ndarray, epsilon: float, many: int, gaussian: bool) -> np.ndarray:
    """The variance of the noise of every released number, in the sense above, where so many tables share the cost.

    One record in another's place moves every table by two ones: by 2 in L1, and by 2 in squared L2.
    """
    if gaussian:
        return np.full(len(counts), 2 * many / (2 * float(rho_of(Fraction(epsilon), DELTA))))
    scale = 2 * many / epsilon
    ratios = np.maximum(np.sqrt(counts) / scale, 0.02)
    rounded = np.exp(np.round(np.log(ratios) * 20) / 20)
    return np.array([max(left_by_noise(float(ratio)) - ratio**2, 1e-6) for ratio in rounded]) * scale**2


def deviation(K: int, L: int, N: int, epsilon: float, kind: str, gaussian: bool, rng: np.random.Generator) -> float:
    """Mean logarithm of the posterior standard deviations of differences of effects, at one draw of the priors."""
    cells = np.array(list(product(*[range(L)] * K)))
    share = rng.dirichlet(np.ones(len(cells)))
    intercept, effects = rng.normal(), rng.normal(size=(K, L))
    features = np.hstack([np.ones((len(cells), 1)), *(np.eye(L)[cells[:, k]] for k in range(K))])
    p = special.expit(features @ np.append(intercept, effects))
    expected = N * share[:, None] * np.stack([1 - p, p], axis=1)
    slope = N * share[:, None, None] * (p * (1 - p))[:, None, None] * np.array([-1, 1])[None, :, None] * features[:, None, :]
    by_share = expected[:, :, None] * (np.eye(len(cells)) - share)[:, None, :]
    derivative = np.concatenate([slope, by_share], axis=2).reshape(2 * len(cells), -1)
    A = summing(K, L, kind)
    counts, many = A @ expected.ravel(), len(tables(K, kind))
    covariance = (A * expected.ravel()) @ A.T + np.diag(noise_variances(counts, epsilon, many, gaussian))
    D = A @ derivative
    prior = np.append(np.ones(features.shape[1]), np.full(len(cells), 1 / special.polygamma(1, 1)))
    precision = D.T @ np.linalg.solve(covariance, D) + np.diag(prior)
    posterior = np.linalg.inv(precision)
    found = []
    for k in range(K):
        own = posterior[1 + k * L : 1 + (k + 1) * L, 1 + k * L : 1 + (k + 1) * L]
        found += [0.5 * log(own[a, a] + own[b, b] - 2 * own[a, b]) for a, b in combinations(range(L), 2)]
    assert len(found) == K * comb(L, 2)
    return float(np.mean(found))


def widths() -> None:
    print("K x L, N, epsilon, noise: sd of a difference from all cells; from margins and from pairs, in units of that; without privacy")
    for (K, L), gaussian, N, epsilon in product(DESIGNS, (False, True), (200, 2000), (0.5, 4.0)):
        found = {}
        for kind in ("cells", "margins", "pairs", "none"):
            settings = (1e6, "cells", False) if kind == "none" else (epsilon, kind, gaussian)
            found[kind] = np.mean([deviation(K, L, N, *settings, np.random.default_rng(seed)) for seed in range(DRAWS)])
        ratios = [np.exp(found[kind] - found["cells"]) for kind in ("margins", "pairs", "none")]
        print(
            f"{K} x {L}, {N}, {epsilon}, {'gaussian' if gaussian else 'laplace'}: {np.exp(found['cells']):.3f};"
            f" {ratios[0]:.2f} {ratios[1]:.2f}; {ratios[2]:.2f}",
            flush=True,
        )


def fits(replicates: int) -> None:
    """Real fits of all cells at 2 x 4, and whether their widths are those expected, and their intervals hold."""
    import pymc as pm

    import pymc_dp as pmdp

    K, L = 2, 4
    for N, epsilon in ((2000, 0.5), (2000, 4.0), (200, 4.0)):
        wider, held = [], []
        for seed in range(replicates):
            rng = np.random.default_rng(seed)
            share, intercept, effects = rng.dirichlet(np.ones(L**K)), rng.normal(), rng.normal(size=(K, L))
            cell = rng.choice(L**K, size=N, p=share)
            x = np.stack(np.unravel_index(cell, (L,) * K))
            y = rng.random(N) < special.expit(intercept + effects[0][x[0]] + effects[1][x[1]])
            with pm.Model() as model:
                a = [pm.Normal(f"a{k}", shape=L) for k in range(K)]
                pm.Bernoulli("y", logit_p=pm.Normal("c") + sum(a[k][pm.Data(f"x{k}", x[k])] for k in range(K)), observed=y)
            settings = {"progressbar": False, "random_seed": seed, "chains": 2, "compute_convergence_checks": False}
            tree = pmdp.sample(400, tune=400, model=model, epsilon=epsilon, missing={}, **settings)
            for k, (i, j) in product(range(K), combinations(range(L), 2)):
                drawn = tree.posterior[f"a{k}"].values
                drawn, true = (drawn[..., i] - drawn[..., j]).ravel(), effects[k, i] - effects[k, j]
                low, high = np.quantile(drawn, [0.05, 0.95])
                held.append(low <= true <= high)
                wider.append(log(drawn.std()))
        expected = np.mean([deviation(K, L, N, epsilon, "cells", False, np.random.default_rng(seed)) for seed in range(replicates)])
        error = np.std(np.reshape(wider, (replicates, -1)).mean(axis=1), ddof=1) / sqrt(replicates)
        print(
            f"N {N}, epsilon {epsilon}: sd {np.exp(np.mean(wider)):.3f} (x / {np.exp(error):.3f}), expected {np.exp(expected):.3f};"
            f" {np.mean(held):.3f} of {len(held)} 90 % intervals hold",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["widths", "fits"])
    parser.add_argument("--replicates", type=int, default=20)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    widths() if arguments.what == "widths" else fits(arguments.replicates)


if __name__ == "__main__":
    main()
