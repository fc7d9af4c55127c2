"""How often intervals of a logistic regression hold the truth, when it is fitted to synthetic data sets in place of the records.

uv run benchmarks/synthetic.py network 400
uv run benchmarks/synthetic.py private 400
uv run --no-project --with mbi==2.0.0 benchmarks/synthetic.py mbi 500 0.1

2,000 records of three age groups, two sexes and an illness whose log-odds are -1 + .5 age + .8 sex, released at epsilon 1, or another that
is written last, as a network or as a table of private indices. 50 synthetic sets of 20,000 rows each; the regression of every set by
Newton's method; ``combine``. Beside it what somebody finds who takes one synthetic set of 2,000 rows for real.

With ``mbi`` the same records are made private by another library (private-pgm): Laplace noise of scale 2 / epsilon in each of the twelve
cells, delta 0 as above, its estimate of the table by mirror descent, and one set of 2,000 rows with its own rounding, as its estimate has
no posterior. It needs NumPy and mbi only, so it runs beside the project and not in it.
"""

import logging
import sys
import warnings

import numpy as np

TRUTH = np.array([-1.0, 0.5, 0.8])
COORDS = {"age": ["young", "middle", "old"], "sex": ["f", "m"]}
DESIGN = np.array([[1.0, age, sex] for age in range(3) for sex in range(2)])


def records(rng, N=2000):
    age = rng.choice(3, N, p=[0.3, 0.4, 0.3])
    sex = rng.binomial(1, np.array([0.4, 0.5, 0.6])[age])
    return age, sex, rng.binomial(1, 1 / (1 + np.exp(-(TRUTH[0] + TRUTH[1] * age + TRUTH[2] * sex))))


def model_of(kind, age, sex, ill):
    import pymc as pm

    with pm.Model(coords=COORDS) as model:
        if kind == "network":
            x = pm.Categorical("x", pm.Dirichlet("ages", np.ones(3), dims="age"), observed=age)
            z = pm.Bernoulli("z", pm.Beta("men", 1, 1, dims="age")[x], observed=sex)
        else:
            x, z = pm.Data("x", age), pm.Data("z", sex)
        pm.Bernoulli("ill", pm.Beta("rate", 1, 1, dims=("age", "sex"))[x, z], observed=ill)
    return model


def logistic(data):
    """Coefficients and standard errors by maximum likelihood, from counts of the six cells."""
    cells = [(data["x"] == age) & (data["z"] == sex) for age in COORDS["age"] for sex in COORDS["sex"]]
    many = np.array([int(cell.sum()) for cell in cells])
    ones = np.array([int((cell & (data["ill"] == 1)).sum()) for cell in cells])
    return fitted(DESIGN, many, ones)


def fitted(design, many, ones):
    """Coefficients and standard errors of a logistic regression by maximum likelihood, given how many of each cell's records are 1."""
    beta = np.zeros(design.shape[1])
    for _ in range(25):
        p = 1 / (1 + np.exp(-design @ beta))
        information = design.T @ (design * (many * p * (1 - p))[:, None])
        beta = beta + np.linalg.solve(information, design.T @ (ones - many * p))
    return beta, np.sqrt(np.diag(np.linalg.inv(information)))


def private_fit(rng, model, **declared):
    """Two short chains from a private model, without a word, and a seed for what is drawn from them."""
    import pymc_dp as pmdp

    seed, other = (int(number) for number in rng.integers(2**31, size=2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        idata = pmdp.sample(
            500, tune=500, chains=2, cores=1, model=model, missing={}, random_seed=seed, progressbar=False,
            compute_convergence_checks=False, **declared,
        )  # fmt: skip
    return idata, other


def replicate(rng, kind, epsilon=1.0, N=2000, sets=50, rows=20_000):
    """Of every coefficient, whether its interval holds the truth: combined, and that of one set of N rows; and errors."""
    import pymc_dp as pmdp

    model = model_of(kind, *records(rng, N))
    idata, other = private_fit(rng, model, epsilon=epsilon, public=["x", "z"] if kind == "public" else [])
    made = pmdp.synthesize(idata, model, rows=rows, sets=sets, random_seed=other)
    fits = [logistic({name: made[name].values[k] for name in ("x", "z", "ill")}) for k in range(sets)]
    found = pmdp.combine([beta for beta, _ in fits], [se for _, se in fits])
    beta, se = logistic({name: made[name].values[0, :N] for name in ("x", "z", "ill")})
    return {
        "combined": ((found["lower"] <= TRUTH) & (found["upper"] >= TRUTH)).values,
        "one set": np.abs(beta - TRUTH) <= 1.96 * se,
        "squared error": (found["estimate"].values - TRUTH) ** 2,
        "squared error, one set": (beta - TRUTH) ** 2,
    }


def by_mbi(rng, names, counts, epsilon):
    """As many codes of each variable as there are records: one set that ``mbi`` makes of a table with noise in every cell."""
    import mbi

    scale = 2 / epsilon
    p = np.exp(-1 / scale)
    noise = rng.geometric(1 - p, counts.shape) - rng.geometric(1 - p, counts.shape)
    measured = mbi.LinearMeasurement((counts + noise).ravel().astype(float), names, stddev=np.sqrt(2) * scale)
    domain, total = mbi.Domain(names, counts.shape), int(counts.sum())
    estimated = mbi.estimation.MirrorDescent().estimate(domain, [measured], known_total=total, iters=1000)
    np.random.seed(int(rng.integers(2**31)))  # noqa: NPY002, mbi draws from the global generator
    made = estimated.synthetic_data(rows=total).to_dict()
    return {name: np.asarray(made[name]) for name in names}


def replicate_mbi(rng, epsilon=1.0, N=2000):
    """The same of one set that ``mbi`` makes of the table of the same records. The number of records is public, as above."""
    counts = np.zeros((3, 2, 2))
    np.add.at(counts, records(rng, N), 1)
    made = by_mbi(rng, ("x", "z", "ill"), counts, epsilon)
    labels = {"x": np.array(COORDS["age"]), "z": np.array(COORDS["sex"])}
    beta, se = logistic({"ill": made["ill"]} | {name: labels[name][made[name]] for name in labels})
    return {"one set": np.abs(beta - TRUTH) <= 1.96 * se, "squared error, one set": (beta - TRUTH) ** 2}


def main(kind, many, epsilon=1.0):
    logging.disable(logging.CRITICAL)
    results = []
    for k in range(many):
        rng = np.random.default_rng([1, k])  # the same records for every kind
        results.append(replicate_mbi(rng, epsilon) if kind == "mbi" else replicate(rng, kind, epsilon))
        if k % 50 == 49 or k == many - 1:
            print(kind, k + 1, {name: np.mean([result[name] for result in results], axis=0).round(4).tolist() for name in results[0]})


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *map(float, sys.argv[3:]))
