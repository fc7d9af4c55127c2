"""Closed forms of counts with noise where a count is sure, or impossible."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

import pymc_dp as pmdp
from pymc_dp.laws import closed_forms
from pymc_dp.privacy.noise_law import Noise


@pytest.mark.parametrize("scale", [1.5, 12.0])
@pytest.mark.parametrize("p", [0.0, 1e-300, 1.0, 1 - 1e-16])
def test_what_is_surely_so_has_the_density_of_the_noise_and_a_slope(p, scale):
    """Of a cell that no record can be in, or all are: a rate of 0, and a binomial count of none or all; slopes are numbers."""
    noise, z, n = Noise(scale), np.arange(-4.0, 9.0), 5.0
    chance = pt.dvector()
    given = np.full(len(z), p)
    cases = [(closed_forms.count_plus_laplace(pt.constant(z), pt.constant(n), chance, noise), z - n * round(p))]
    if p < 0.5:
        cases.append((closed_forms.rate_plus_laplace(pt.constant(z), chance, noise), z))
    for density, apart in cases:
        value, slope = pytensor.function([chance], [density, pytensor.grad(density.sum(), chance)], mode="FAST_COMPILE")(given)
        np.testing.assert_allclose(value, -np.abs(apart) / scale + np.log(np.tanh(0.5 / scale)), rtol=1e-9)
        assert np.isfinite(slope).all()


def test_successes_of_a_private_number_of_trials_can_be_sampled_where_records_come_and_go():
    """More successes than trials are impossible, so some cells have a rate of 0: log-densities and gradients are numbers."""
    rng = np.random.default_rng(1)
    trials = rng.integers(0, 5, 60)
    with pm.Model() as model:
        a = pm.Gamma("a", 2, 1, shape=2)
        pm.BetaBinomial("y", n=pm.Data("n", trials), alpha=a[0], beta=a[1], observed=rng.binomial(trials, 0.4))
    private = pmdp.rewrite(model, pmdp.release(model, epsilon=1.0, bounds={"n": (0, 4), "y": (0, 4)}, neighbours="add_remove"))
    start = private.initial_point()
    assert np.isfinite(private.compile_logp(mode="FAST_COMPILE")(start))
    assert np.isfinite(private.compile_dlogp(mode="FAST_COMPILE")(start)).all()
