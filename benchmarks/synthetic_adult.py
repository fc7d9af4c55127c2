"""How often intervals of a logistic regression hold what all of ``adult_uci`` says, when it is fitted to synthetic data of a sample.

uv run benchmarks/synthetic_adult.py 400
uv run benchmarks/synthetic_adult.py 400 200  # the first 200 samples are left out, for a run that was stopped
uv run benchmarks/synthetic_adult.py 400 0 1  # with Beta(1, 1) priors of the shares in place of Beta(.5, .5)
uv run --no-project --with mbi==2.0.0 --with pandas --with pyarrow benchmarks/synthetic_adult.py mbi 400 1.0

The population is the 48,842 records of the census of 1994 (``adult_uci``, in the folder that PYMC_DP_DATA names; not shipped, and without
it this stops). 2,000 of them, drawn with replacement, are released at epsilon 1 as a table of private indices: three levels of education,
sex, and whether married, of each the share with an income above 50,000. 50 synthetic sets of 20,000 rows; in every set the regression of
income on the three by Newton's method; ``combine``. The truth are the coefficients in the whole population, in which, as is usual,
effects on the scale of log-odds do not quite add up. Beside it what somebody finds who takes one synthetic set of 2,000 rows for real.

With ``mbi`` another library (private-pgm) makes one set of the same samples, from a table with noise in each of the 24 cells at the epsilon
that is written last and delta 0, as in ``synthetic.py``; it needs none of the project.
"""

import logging
import os
import sys
import warnings
from pathlib import Path

import numpy as np
from synthetic import by_mbi, fitted

TABLE = Path(os.environ.get("PYMC_DP_DATA", ".")) / "adult_uci" / "adult_int_coded.parquet"
LEVELS = {"education": ["no college", "college", "degree"], "sex": ["women", "men"], "married": ["no", "yes"]}
COEFFICIENTS = ("constant", "education", "sex", "married")
DESIGN = np.array([[1.0, education, sex, married] for education in range(3) for sex in range(2) for married in range(2)])


def population():
    """Codes (48842, 4) of education, sex, marriage and income."""
    import pandas as pd

    table = pd.read_parquet(TABLE)
    education = np.digitize(table["education-num"], [9, 12])  # codes are one less than years: up to high school, college, degree
    sex, income = table["sex"].to_numpy(), table["income>50K"].to_numpy()
    return np.column_stack([education, sex, table["marital-status"] == 0, income]).astype(int)


def logistic(codes):
    """Coefficients and standard errors by maximum likelihood."""
    cell = (codes[:, 0] * 2 + codes[:, 1]) * 2 + codes[:, 2]
    many = np.bincount(cell, minlength=12)
    ones = np.bincount(cell, codes[:, 3], minlength=12)
    return fitted(DESIGN, many, ones)


def model_of(codes, prior=0.5):
    import pymc as pm

    with pm.Model(coords=LEVELS) as model:
        cell = tuple(pm.Data(f"{name}_of", codes[:, k]) for k, name in enumerate(LEVELS))
        pm.Bernoulli("income", pm.Beta("rate", prior, prior, dims=tuple(LEVELS))[cell], observed=codes[:, 3])
    return model


def replicate(rng, people, truth, prior=0.5, epsilon=1.0, N=2000, sets=50, rows=20_000):
    """Of every coefficient, whether its interval holds the truth: combined, and that of one set of N rows; and errors."""
    import pymc_dp as pmdp

    model = model_of(people[rng.integers(len(people), size=N)], prior)
    seed, other = (int(number) for number in rng.integers(2**31, size=2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        idata = pmdp.sample(
            300, tune=400, chains=2, cores=1, model=model, epsilon=epsilon, missing={}, random_seed=seed, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
    made = pmdp.synthesize(idata, model, rows=rows, sets=sets, random_seed=other)
    codes = [np.searchsorted(labels, made[f"{name}_of"].values, sorter=np.argsort(labels)) for name, labels in LEVELS.items()]
    codes = [np.argsort(labels)[found] for found, labels in zip(codes, LEVELS.values())]
    codes = np.stack([*codes, made["income"].values], axis=-1).astype(int)
    fits = [logistic(one) for one in codes]
    found = pmdp.combine([beta for beta, _ in fits], [se for _, se in fits])
    beta, se = logistic(codes[0, :N])
    return {
        "combined": ((found["lower"] <= truth) & (found["upper"] >= truth)).values,
        "one set": np.abs(beta - truth) <= 1.96 * se,
        "standard error": found["standard_error"].values,
        "squared error": (found["estimate"].values - truth) ** 2,
    }


def replicate_mbi(rng, people, truth, epsilon=1.0, N=2000):
    """The same of one set that ``mbi`` makes of the table of the same sample. The number of records is public, as above."""
    counts = np.zeros((3, 2, 2, 2))
    np.add.at(counts, tuple(people[rng.integers(len(people), size=N)].T), 1)
    names = ("education", "sex", "married", "income")
    made = by_mbi(rng, names, counts, epsilon)
    beta, se = logistic(np.stack([made[name] for name in names], axis=-1))
    return {"one set": np.abs(beta - truth) <= 1.96 * se, "squared error, one set": (beta - truth) ** 2}


def main(many, start=0, prior=0.5, mbi=None):
    """Replicates, with means every ten; of ``mbi`` at that epsilon, if it is given."""
    logging.disable(logging.CRITICAL)
    if not TABLE.exists():
        sys.exit(f"{TABLE} is not there. Set PYMC_DP_DATA to a folder that holds adult_uci.")
    people = population()
    truth, _ = logistic(people)
    print("truth", dict(zip(COEFFICIENTS, truth.round(3).tolist())), flush=True)
    results = []
    for k in range(start, many):
        rng = np.random.default_rng([2, k])
        results.append(replicate(rng, people, truth, prior) if mbi is None else replicate_mbi(rng, people, truth, mbi))
        if k % 10 == 9 or k == many - 1:
            means = {name: np.mean([result[name] for result in results], axis=0).round(4).tolist() for name in results[0]}
            print(f"samples {start} to {k}:", means, flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "mbi":
        main(int(sys.argv[2]), mbi=float(sys.argv[3]))
    else:
        main(*map(int, sys.argv[1:3]), *map(float, sys.argv[3:]))
