"""How often a 90 % predictive interval holds a new record, where unknowns are drawn from the prior and records from the model.

uv run benchmarks/predictive.py 40
uv run benchmarks/predictive.py 40 groups 50 0.5  # one model, one number of records, one epsilon

``posterior_predictive(..., given=...)`` draws records with new covariates from a private fit; their quantiles .05 and .95 are the interval.
The probability that a new record lies within is computed from the true unknowns, so that a data set tells more than whether one record did;
of counts, the ends of the interval count for the part that makes the probability exact. Unknowns are drawn from the prior and the model is
right, so the mean over data sets is 90 %. Three models: a normal response in three groups of a private index, and a new record in each; a
normal response that rests on a private covariate, and new records at three values of it, two of which only one record in twenty passes; and
counts. 50 and 2,000 records, epsilon .5 and 4, Laplace noise.
"""

import logging
import sys
from itertools import product

import numpy as np
from scipy import stats
from synthetic import private_fit

PROBABILITY = 0.9
SIZES, EPSILONS = (50, 2000), (0.5, 4.0)
NEW = np.array([-1.7, 0.0, 1.7])
"""Values of the covariate of new records."""


def groups(rng, N):
    """A model, its bounds, what is given of new records, and their true laws."""
    import pymc as pm

    g, mu, sigma = rng.integers(0, 3, N), rng.normal(size=3), abs(rng.normal(0, 1))
    with pm.Model() as model:
        means = pm.Normal("mu", 0, 1, shape=3)
        pm.Normal("y", means[pm.Data("g", g)], pm.HalfNormal("sigma", 1), observed=rng.normal(mu[g], sigma))
    return model, {"y": (-8, 8)}, {"g": [0, 1, 2]}, [stats.norm(mean, sigma) for mean in mu]


def line(rng, N):
    """As ``groups``."""
    import pymc as pm

    x, a, b, sigma = rng.normal(size=N).clip(-3, 3), *rng.normal(size=2), abs(rng.normal(0, 1))
    with pm.Model() as model:
        mean = pm.Normal("a", 0, 1) + pm.Normal("b", 0, 1) * pm.Data("x", x)
        pm.Normal("y", mean, pm.HalfNormal("sigma", 1), observed=rng.normal(a + b * x, sigma))
    return model, {"x": (-3, 3), "y": (-8, 8)}, {"x": NEW}, [stats.norm(a + b * new, sigma) for new in NEW]


def counts(rng, N):
    """As ``groups``."""
    import pymc as pm

    rate = rng.gamma(4, 5)
    with pm.Model() as model:
        pm.Poisson("y", pm.Gamma("rate", 4, 0.2), observed=rng.poisson(rate, N))
    return model, {"y": (0, 80)}, None, [stats.poisson(rate)]


MODELS = {"groups": groups, "line": line, "counts": counts}


def within(drawn, law):
    """The probability that a record of this law lies in the interval of what was drawn."""
    low, high = (1 - PROBABILITY) / 2, (1 + PROBABILITY) / 2
    if not hasattr(law.dist, "pmf"):
        return float(np.diff(law.cdf(np.quantile(drawn, [low, high])))[0])
    k = np.arange(max(drawn.max(), law.ppf(1 - 1e-9)) + 1)
    upper = np.searchsorted(np.sort(drawn), k, side="right") / len(drawn)
    lower = np.append(0.0, upper[:-1])
    inside = np.minimum(upper, high) - np.maximum(lower, low)
    share = np.where(upper > lower, inside / np.where(upper > lower, upper - lower, 1.0), (upper > low) & (upper < high))
    return float(law.pmf(k) @ np.clip(share, 0, 1))


def replicate(rng, name, N, epsilon):
    """Of one data set: the probability that a new record of each kind lies in its interval, and how wide that is."""
    import pymc_dp as pmdp

    model, bounds, given, laws = MODELS[name](rng, N)
    idata, other = private_fit(rng, model, epsilon=epsilon, bounds=bounds)
    made = pmdp.posterior_predictive(idata, model=model, given=given, records=None if given else 1, random_seed=other)
    group = made["predictions"] if "predictions" in made.children else made["posterior_predictive"]
    drawn = group["y"].values.reshape(-1, len(laws))
    widths = np.diff(np.quantile(drawn, [(1 - PROBABILITY) / 2, (1 + PROBABILITY) / 2], axis=0), axis=0)[0]
    return [within(drawn[:, k], law) for k, law in enumerate(laws)], widths, [np.diff(law.ppf([0.05, 0.95]))[0] for law in laws]


def main(many, *which):
    logging.disable(logging.CRITICAL)
    cells = [(which[0], int(which[1]), float(which[2]))] if which else list(product(MODELS, SIZES, EPSILONS))
    results = {cell: [] for cell in cells}
    for k in range(many):
        for cell in cells:
            name, N, epsilon = cell
            results[cell].append(replicate(np.random.default_rng([11, k, N, list(MODELS).index(name)]), name, N, epsilon))
        if k % 10 == 9 or k == many - 1:
            for cell, found in results.items():
                inside, widths, known = (np.array([row[j] for row in found]) for j in range(3))
                error = inside.mean(axis=1).std(ddof=1) / len(inside) ** 0.5 if len(inside) > 1 else np.nan
                each = ", ".join(f"{share:.1%}" for share in inside.mean(axis=0))
                wide = f"{widths.mean():.3g} wide, {known.mean():.3g} if all were known"
                print(*cell, f"{k + 1} data sets: {inside.mean():.1%} ± {error:.1%} ({each}), {wide}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
