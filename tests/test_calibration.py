"""Intervals cover: parameters from the prior, records from the model, a release, the posterior, and a count.

For every family 2,000 data sets of 200 records at epsilon 0.5; 90 % intervals must cover in 86.7-93.3 % of them, which is 5
standard errors: a false alarm of 6e-7 for each parameter; a true coverage of 85 % is found with probability 0.98. One
compiled model is used for all, with its statistics in ``pm.Data``. Coverage of the plug-in posterior is printed beside it.

Run with ``uv run pytest -m slow tests/test_calibration.py``; ``PYMC_DP_REPLICATES`` sets another number of data sets.
"""

import os
from dataclasses import replace

import numpy as np
import nutpie
import pymc as pm
import pytest

import pymc_dp as pmdp
from pymc_dp.family import complete
from pymc_dp.mechanisms import Laplace

pytestmark = pytest.mark.slow

REPLICATES = int(os.environ.get("PYMC_DP_REPLICATES", 2000))
N, EPSILON = 200, 0.5


def bernoulli(rows):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("theta", 1, 1), observed=rows)
    return model, {}


def bernoulli_groups(rows):
    with pm.Model(coords={"group": range(3)}) as model:
        pm.Bernoulli("y", pm.Beta("theta", 2, 2, dims="group")[np.arange(len(rows)) % 3], observed=rows)
    return model, {"public": ["group"]}


def categorical(rows):
    with pm.Model() as model:
        pm.Categorical("y", pm.Dirichlet("p", np.ones(3)), observed=rows)
    return model, {}


def poisson(rows):
    with pm.Model() as model:
        pm.Poisson("y", pm.Gamma("mu", 2, 0.5), observed=rows)
    return model, {"bounds": {"y": (0, 5)}}


def geometric(rows):
    with pm.Model() as model:
        pm.Geometric("y", pm.Beta("p", 2, 4), observed=rows)
    return model, {"bounds": {"y": (1, 8)}}


def normal_known_sigma(rows):
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", 0, 2), 1.5, observed=rows)
    return model, {"bounds": {"y": (-4, 4)}}


def normal_unknown_sigma(rows):
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", 0, 2), pm.Gamma("sigma", 4, 2), observed=rows)
    return model, {"bounds": {"y": (-5, 5)}}


def simulated(make):
    """Replicates of (truth, records) from the prior and the likelihood of the model itself."""
    model, _ = make(np.zeros(N))
    names = [rv.name for rv in model.free_RVs]
    [observed] = model.observed_RVs
    with model:
        draws = pm.sample_prior_predictive(REPLICATES, var_names=[*names, observed.name], random_seed=20)
    truth = {name: draws["prior"][name].values[0] for name in names}
    return truth, draws["prior_predictive"][observed.name].values[0]


def coverage(make):
    """Share of 90 % intervals that cover, for the noise-aware and the plug-in posterior, by parameter.

    The first data set walks the whole corridor. The others take the same steps of it that depend on records: the family's
    integers, their sum in each cell, noise from the same mechanism; then the same two private models on new statistics.
    """
    truth, records = simulated(make)
    model, arguments = make(records[0])
    released = pmdp.release(model, epsilon=EPSILON, **arguments)["y"]
    family, domain = released.family, released.domain
    whole = pmdp.release(model, epsilon=EPSILON, **arguments)
    compiled = [nutpie.compile_pymc_model(pmdp.rewrite(model, whole, noise_aware=aware), freeze_model=False) for aware in (True, False)]
    hits = [{name: [] for name in truth} for _ in compiled]
    cells = np.arange(N) % len(released.n)
    for k, rows in enumerate(records):
        integers = np.stack(family.exact(complete(rows, domain), domain), -1)
        exact = np.stack([integers[cells == g].sum(0) for g in range(len(released.n))])
        noisy = replace(released, noisy=Laplace().draw(exact, released.scale))
        projected = family.project(noisy.values, released.n[:, None], noisy.noise.spread, domain)
        for statistics, fit, counted in zip((noisy.values, projected), compiled, hits):
            tree = nutpie.sample(
                fit.with_data(y_released=statistics), draws=400, tune=300, chains=2, cores=1, seed=k, progress_bar=False, save_warmup=False
            )
            for name, value in truth.items():
                lower, upper = np.quantile(tree["posterior"][name].values.reshape(800, -1), [0.05, 0.95], axis=0)
                counted[name].append((lower <= value[k].ravel()) & (value[k].ravel() <= upper))
    return [{name: float(np.mean(several)) for name, several in counted.items()} for counted in hits]


MAKERS = [bernoulli, bernoulli_groups, categorical, poisson, geometric, normal_known_sigma, normal_unknown_sigma]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_ninety_percent_intervals_cover(make, capsys):
    aware, plug_in = coverage(make)
    with capsys.disabled():
        print(f"\n{make.__name__}: noise-aware {aware}, plug-in {plug_in}, {REPLICATES} data sets")
    spread = 5 * np.sqrt(0.9 * 0.1 / REPLICATES)
    assert all(0.9 - spread <= share <= 0.9 + spread for share in aware.values()), aware
