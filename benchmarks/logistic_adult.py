"""Logistic regression on private covariates: income above 50,000 in ``adult_uci``, against the answer without privacy.

uv run benchmarks/logistic_adult.py private 1 5                 how far posterior means are off, 30 releases at each epsilon
uv run --no-project --with diffprivlib --with "scikit-learn<1.6" --with "scipy<1.15" --with pandas --with pyarrow \\
    benchmarks/logistic_adult.py diffprivlib 1 5                the same of diffprivlib's LogisticRegression, 100 fits at each

The 32,561 records of ``adult_train`` (in the folder that PYMC_DP_DATA names; not shipped, and without it this stops), age (17 to 90),
education in years (1 to 16), sex and marriage, each scaled to [-1, 1]; predictor bounds (-8, 8). diffprivlib gets the same records, the
largest norm that they can have (2) and regularisations from 1, its own, to next to none.
"""

import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np

TABLE = Path(os.environ.get("PYMC_DP_DATA", ".")) / "adult_uci" / "adult_train.parquet"
SLOPES = ("age", "education", "sex", "married")


def records():
    """Scaled covariates (N, 4) and incomes (N,)."""
    import pandas as pd

    table = pd.read_parquet(TABLE)
    married = table["marital_status"].astype(str).str.contains("Married-civ|Married-AF")
    columns = [
        (table["age"] - 53.5) / 36.5,
        (table["education_num"] - 8.5) / 7.5,
        2.0 * (table["sex"].astype(str).str.strip() == "Male") - 1,
        2.0 * married - 1,
    ]
    return np.column_stack(columns).astype(float), table["income"].astype(str).str.contains(">50K").to_numpy().astype(int)


def without_privacy(x, y):
    """Maximum likelihood: coefficients (5,) and standard errors (5,)."""
    design, beta = np.column_stack([np.ones(len(y)), x]), np.zeros(x.shape[1] + 1)
    for _ in range(30):
        mean = 1 / (1 + np.exp(-design @ beta))
        information = (design * (mean * (1 - mean))[:, None]).T @ design
        beta = beta + np.linalg.solve(information, design.T @ (y - mean))
    return beta, np.sqrt(np.diag(np.linalg.inv(information)))


def private(epsilon, x, y, releases=30):
    import pymc as pm

    import pymc_dp as pmdp

    exact, errors = without_privacy(x, y)
    with pm.Model() as model:
        features, a, b = pm.Data("features", x), pm.Normal("a", 0, 5), pm.Normal("b", 0, 3, shape=x.shape[1])
        pm.Bernoulli("income", logit_p=a + features @ b, observed=y)
    off, z, width, held, rounds = [], [], [], [], []
    for k in range(releases):
        start = time.perf_counter()
        released = pmdp.release(model, epsilon=epsilon, bounds={"features": (-1, 1), "logit(income)": (-8, 8)}, missing={})
        tree = pmdp.sample(500, tune=500, chains=2, model=pmdp.rewrite(model, released), random_seed=k, progressbar=False)
        draws = tree.posterior["b"].values.reshape(-1, x.shape[1])
        off.append(draws.mean(axis=0) - exact[1:])
        z.append(off[-1] / draws.std(axis=0))
        width.append(draws.std(axis=0) / errors[1:])
        low, high = np.quantile(draws, [0.05, 0.95], axis=0)
        held.append((low <= exact[1:]) & (exact[1:] <= high))
        rounds.append(round(released["income"].scale, 3))
        print(
            f"{k}: {off[-1].round(4)} of sd {draws.std(axis=0).round(4)}, {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True
        )
    off, z, width = np.array(off), np.array(z), np.array(width)
    print(f"epsilon {epsilon:g}, {releases} releases, noise of the last round {sorted(set(rounds))}")
    print(f"  root mean square error of slopes {np.sqrt((off**2).mean()):.4f}; by slope {np.sqrt((off**2).mean(axis=0)).round(4)}")
    print(f"  mean error {off.mean(axis=0).round(4)}")
    print(f"  error in posterior sd: root mean square {np.sqrt((z**2).mean()):.2f}, at most {abs(z).max():.1f}")
    print(f"  90 % intervals that hold the answer without privacy {np.mean(held):.2f}")
    print(f"  sd / without privacy, medians {np.median(width, axis=0).round(2)}, at most {width.max():.1f}", flush=True)


def diffprivlib(epsilon, x, y, fits=100):
    from diffprivlib.models import LogisticRegression

    exact, _ = without_privacy(x, y)
    for C in (1.0, 10.0, 1000.0, 1e10):
        makes = lambda: LogisticRegression(epsilon=epsilon, data_norm=2.0, C=C, max_iter=1000).fit(x, y)  # noqa: B023, E731
        off = np.array([makes().coef_[0] - exact[1:] for _ in range(fits)])
        print(
            f"epsilon {epsilon:g}, C {C:g}: root mean square error of slopes {np.sqrt((off**2).mean()):.4f};"
            f" by slope {np.sqrt((off**2).mean(axis=0)).round(4)}",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if not TABLE.exists():
        sys.exit(f"There is no {TABLE}: set PYMC_DP_DATA.")
    whose, *numbers = sys.argv[1:] or ["private", "1", "5"]
    for number in numbers:
        {"private": private, "diffprivlib": diffprivlib}[whose](float(number), *records())
