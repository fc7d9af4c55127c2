"""The mean of Bayes factors in favour of a wrong model, where records are drawn from the other: it is at most 1, whatever the noise.

uv run benchmarks/bayes_factors.py exact 1000
uv run benchmarks/bayes_factors.py smc 1000
uv run benchmarks/bayes_factors.py smc 1000 117  # the first 117 simulations are left out, for a run that was stopped

200 records, yes or no, of a share that is uniform, released at epsilon .5 with Laplace noise; a Beta(5, 5) prior against the flat one, of
which the records are. The mean of P(release | Beta(5, 5)) / P(release | flat) is 1 over releases of the flat model. ``exact`` takes both
probabilities as sums over all counts and their noise. ``smc`` takes them from ``marginal_likelihoods`` with 500 draws and two chains (two
seconds each), and says how far these Bayes factors are from the exact ones of the same releases. With ``smc`` a line is printed for every
simulation; a summary stands at the end, and after every hundred.
"""

import logging
import sys
import warnings

import numpy as np
from scipy import stats

RECORDS, EPSILON = 200, 0.5


def share(a, b, ones=70):
    """A model of as many records, of which so many are ones."""
    import pymc as pm

    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", a, b), observed=np.repeat([0, 1], [RECORDS - ones, ones]))
    return model


def released_of(seed):
    """A release of records of the flat model."""
    import pymc_dp as pmdp

    rng = np.random.default_rng([7, seed])
    return pmdp.release(share(1, 1, int(rng.binomial(RECORDS, rng.uniform()))), epsilon=EPSILON)


def exact(released, a):
    """The log marginal likelihood, summed over all counts and their noise."""
    noisy = released["y"]
    n, q = int(noisy.n.sum()), np.exp(-1 / noisy.scale)
    counts = np.arange(n + 1)
    noise = (1 - q) / (1 + q) * q ** np.abs(noisy.noisy.ravel()[0] - counts)
    return float(np.log(stats.betabinom(n, a, a).pmf(counts) @ noise))


def by_smc(released, seed):
    """The Bayes factor in favour of Beta(5, 5) from ``marginal_likelihoods``."""
    import pymc_dp as pmdp

    both = {"flat": share(1, 1), "five": share(5, 5)}
    flat, five = pmdp.marginal_likelihoods(both, released, draws=500, chains=2, random_seed=seed)["log_marginal_likelihood"].values
    return float(np.exp(five - flat))


def summary(rows):
    """Means of the exact Bayes factors, of those by SMC and of the difference, with their standard errors."""
    table = np.array(rows)
    if table.shape[1] > 1:
        table = np.column_stack([table, table[:, 1] - table[:, 0]])
    error = table.std(axis=0, ddof=1) / np.sqrt(len(table))
    words = ("exact", "by SMC", "difference")
    return ", ".join(f"{word} {mean:.3f} ± {sd:.3f}" for word, mean, sd in zip(words, table.mean(axis=0), error))


def main(kind, many, start=0):
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    rows = []
    for seed in range(start, many):
        released = released_of(seed)
        rows.append([float(np.exp(exact(released, 5) - exact(released, 1)))])
        if kind == "smc":
            rows[-1].append(by_smc(released, seed))
            print(seed, *(f"{factor:.5f}" for factor in rows[-1]), flush=True)
        if len(rows) > 1 and (seed % 100 == 99 or seed == many - 1):
            print(f"# {len(rows)} simulations: {summary(rows)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
