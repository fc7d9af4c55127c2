"""The published analyses of benchmarks/published.py: what would be released of each, and that the release is of these records."""

import os
from pathlib import Path

import numpy as np
import pymc as pm
import pytest
from published import ANALYSES, SAMPLER
from scipy.stats import betabinom

import pymc_dp as pmdp

DATA = Path(os.environ.get("PYMC_DP_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")

pytestmark = [
    pytest.mark.skipif(not (DATA / "counts_dev").is_dir() or not (DATA / "cps1988").is_dir(), reason="the data are not here"),
    pytest.mark.filterwarnings("ignore::pymc_dp.UnaccountedWarning"),
]

COEFFICIENTS = np.array([4.3, 0.077, -0.0013, 0.086, -0.24])  # of the wages: far from them exp² makes all else small
RELEASED = {
    "rat_tumours": (("total",), 1, 71),
    "admissions_gender_public": (("ones",), 1, 2),
    "admissions_gender_private": (("zeros", "ones"), 2, 2),
    "radon_second_moments": (("sum floor", "sum y", "sum floor²", "sum floor y", "sum y²"), 16 / 3, 1),
    "radon_cells": (("sum of (1 - u)²", "sum of 2 (1 - u²)", "sum of (1 + u)²"), 8, 170),
    "wages": (None, 20 + 32**2 / 160, 1),  # the largest of 20 + 32 h - 40 h², products with the response multiplied by 2
    "wages_residuals": (None, 20 + 32**2 / 160, 1),  # the same at first; residuals come after
    "horse_kicks": (("sum",), 5, 1),
    "pumps": (("total",), 1, 10),
    "hair_public": (tuple(f"level {k}" for k in range(4)), 2, 4),
    "hair_private": (tuple(f"level {k}" for k in range(4)), 2, 4),
}


@pytest.mark.parametrize("name", ANALYSES)
def test_what_would_be_released(name):
    analysis = ANALYSES[name]
    arguments = {argument: value for argument, value in analysis.arguments.items() if argument != "mechanism"}
    (row,) = pmdp.inspect(analysis.make(DATA), **arguments).rows
    statistics, sensitivity, _ = RELEASED[name]
    assert row.structure == analysis.structure
    assert row.needs is None
    assert statistics in (row.statistics, None)
    assert row.sensitivity == pytest.approx(sensitivity, rel=1e-3)


@pytest.mark.parametrize("name", ANALYSES)
def test_at_a_huge_epsilon_the_release_is_the_data(name):
    """Totals are the rows, and otherwise the plug-in log-density is the user's up to a constant: all values are inside the bounds.

    A few residuals of wages are not inside theirs.
    """
    analysis = ANALYSES[name]
    model = analysis.make(DATA)
    released = pmdp.release(model, epsilon=1_000_000, **analysis.arguments)
    (statistic,) = released.statistics
    cells = RELEASED[name][2]
    assert cells == len(statistic.noisy)
    if statistic.structure == "aggregate":
        observed = model.rvs_to_values[model.observed_RVs[0]].data
        np.testing.assert_array_equal(statistic.noisy[:, 0], observed)
    private = pmdp.rewrite(model, released, noise_aware=False)
    theirs, ours = (one.compile_logp(mode="FAST_COMPILE", jacobian=False) for one in (model, private))
    rng = np.random.default_rng(8)
    start = private.initial_point(random_seed=1) | ({"b": COEFFICIENTS} if name.startswith("wages") else {})
    size = {"b": 0.05 * np.abs(COEFFICIENTS)} if name.startswith("wages") else {}
    points = [{at: value + size.get(at, 0.1) * rng.normal(size=value.shape) for at, value in start.items()} for _ in range(3)]
    density = np.array([theirs(point) for point in points])
    differences = density - [ours(point) for point in points]
    # Values are rounded to the lattice: what that moves is far below what the points differ by. Clamping of residuals moves more.
    far = 1e-4 if statistic.residuals is None else 5e-3
    np.testing.assert_allclose(differences, differences[0], atol=far * np.ptp(density))


@pytest.mark.slow
def test_the_private_posterior_of_the_rats_is_the_exact_one():
    """Rats of a group are beta-binomial, and discrete Laplace noise is added: a sum of at most 53 terms per group, on a grid."""
    analysis = ANALYSES["rat_tumours"]
    model = analysis.make(DATA)
    released = pmdp.release(model, epsilon=1, **analysis.arguments)
    private = pmdp.rewrite(model, released)
    tree = pm.sample(3000, tune=2000, model=private, **SAMPLER | {"chains": 4}, random_seed=3)

    (statistic,) = released.statistics
    X, Z = np.linspace(-2.8, -1.0, 61), np.linspace(-1, 13, 141)
    sum_ab = np.exp(Z)
    a = sum_ab / (1 + np.exp(-X[:, None]))
    b = sum_ab - a
    log_density = -2.5 * Z + np.log(a) + np.log(b)  # the Jacobian of (X, Z) is a b
    for noisy, rats in zip(statistic.noisy[:, 0], model["n"].get_value()):
        s = np.arange(rats + 1)[:, None, None]
        density = betabinom.pmf(s, rats, a, b) * np.exp(-np.abs(noisy - s) / statistic.scale)
        log_density += np.log(density.sum(axis=0))
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    for name, axis, values in (("X", 1, X), ("Z", 0, Z)):
        below = np.cumsum(weight.sum(axis=axis)) - weight.sum(axis=axis) / 2
        for level in (0.1, 0.25, 0.5, 0.75):  # above, chains are slow to go far into the tail of Z
            share = np.mean(tree["posterior"][name].values <= np.interp(level, below, values))
            assert share == pytest.approx(level, abs=0.08), name
