"""Bounds outside which nothing can lie: the private model takes values for what they are, and says where plain bounds cut much off."""

import warnings
from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import flat, mostly_slow

import pymc_dp as pmdp
from pymc_dp.families.family import Domain, named
from pymc_dp.families.grid import POINTS
from pymc_dp.private_models.diagnostics import warn_if_clamped

SHORT = {"draws": 300, "tune": 500, "chains": 2, "cores": 1, "progressbar": False, "random_seed": 1}
AGES = 17 + np.clip(np.random.default_rng(3).gamma(2.5, 8.6, 100_000), 0, 73)


def ages(values=AGES):
    with pm.Model() as model:
        pm.Normal("age", pm.Normal("mu", 40, 20), pm.HalfNormal("sigma", 20), observed=values)
    return model


def sampled(bounds, **words):
    """The tree, and what was said about bounds."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tree = pmdp.sample(model=ages(), epsilon=5.0, bounds={"age": bounds}, **SHORT | words)
    return tree, [str(one.message) for one in caught if one.category is pmdp.ClampedWarning]


@pytest.mark.slow
def test_values_at_natural_bounds_are_taken_for_what_they_are():
    """Of a skewed variable that begins at 17 a normal law reaches below it. Taken for moved there, values lower the mean by 10 sd.

    A mean within 4.9 posterior sd: false alarms one in a million. Power: the plain pair fails it.
    """
    tree, said = sampled(pmdp.Natural(17, 90))
    mu, sigma = (tree["posterior"][name].values.ravel() for name in ("mu", "sigma"))
    assert not said
    assert abs(mu.mean() - AGES.mean()) < 4.9 * mu.std()
    assert abs(sigma.mean() - AGES.std()) < 4.9 * sigma.std()
    assert mu.std() < 2 * AGES.std() / np.sqrt(len(AGES))
    tree, said = sampled((17, 90))
    mu = tree["posterior"]["mu"].values.ravel()
    assert abs(mu.mean() - AGES.mean()) > 4.9 * mu.std()
    assert len(said) == 1
    assert "about 5% of it lies outside (17, 90)" in said[0]
    assert "bounds={'age': pymc_dp.Natural(17, 90)}" in said[0]


def test_bounds_that_cut_nothing_off_are_not_spoken_of():
    _, said = sampled((-20, 140), draws=20, tune=20)
    assert not said


@pytest.mark.parametrize("seed", mostly_slow(range(3), 0))
def test_a_cell_lost_in_the_noise_says_nothing(seed):
    """Twenty values with a noise as large as their spread: whatever the moments look like."""
    few = AGES[20 * seed : 20 * seed + 20]
    with warnings.catch_warnings():
        warnings.simplefilter("error", pmdp.ClampedWarning)
        pmdp.sample(model=ages(few), epsilon=0.05, bounds={"age": (17, 90)}, **SHORT | {"draws": 20, "tune": 20})


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", ["Normal", "LogNormal"])
def test_the_law_is_that_of_values_as_they_are(name, known):
    """Mean and covariance of (u, u squared), by Gauss-Hermite quadrature, exact for polynomials."""
    domain = Domain(0.5, 4.0, unknown=(True, not known), clamps=False)
    ends = np.log([0.5, 4.0]) if name == "LogNormal" else np.array([0.5, 4.0])
    mu, sigma = np.array([0.7, -3.0, 2.0]), np.array([0.4, 2.0, 400.0])
    law = named(name).law(domain, pt.constant(np.full(3, 10.0)), pt.constant(mu), pt.constant(sigma))
    x, weights = np.polynomial.hermite_e.hermegauss(20)
    weights = weights / weights.sum()
    u = (mu[:, None] + sigma[:, None] * x - ends.mean()) / (ends[1] - ends[0]) * 2
    t = np.stack([u] if known else [u, u**2])
    means = (t * weights).sum(axis=-1)
    covariance = np.einsum("iax,jax,x->ija", t - means[..., None], t - means[..., None], weights)
    for i in range(len(t)):
        np.testing.assert_allclose(law.mean[i].eval(), means[i], rtol=1e-10)
        for j in range(i + 1):
            np.testing.assert_allclose(law.covariance[i][j].eval(), covariance[i, j], rtol=1e-9)


def grouped(**words):
    with pm.Model() as model:
        g = pm.Data("g", np.arange(60) % 2)
        pm.Normal("age", pm.Normal("mu", 40, 20, shape=2)[g], pm.HalfNormal("sigma", 20), observed=AGES[:60])
    return model, {"bounds": {"age": pmdp.Natural(17, 90)}, **words}


@pytest.mark.parametrize("words", [{}, {"neighbours": "add_remove"}, {"mechanism": "gaussian", "delta": 1e-5}, {"public": ["g"]}])
def test_natural_bounds_go_with_private_cells_and_every_noise(words):
    if words.get("neighbours") == "add_remove":
        model, words = ages(AGES[:60]), {"bounds": {"age": pmdp.Natural(17, 90)}, **words}
    else:
        model, words = grouped(**words)
    private = pmdp.privatize(model, epsilon=1.0, **words)
    point = private.initial_point(random_seed=1)
    assert np.isfinite(private.compile_logp(mode="FAST_COMPILE")(point))
    assert np.isfinite(private.compile_dlogp(mode="FAST_COMPILE")(point)).all()


def test_what_is_released_rests_on_the_bounds_only():
    plain, natural = (
        pmdp.release(ages(), epsilon=1e9, bounds={"age": bounds}).statistics[0] for bounds in ((17, 90), pmdp.Natural(17, 90))
    )
    np.testing.assert_allclose(plain.values, natural.values, atol=1e-3)
    assert (plain.scale, plain.difference, plain.cost) == (natural.scale, natural.difference, natural.cost)
    assert natural.domain == replace(plain.domain, clamps=False)


def test_a_saved_release_keeps_its_law(tmp_path):
    released = pmdp.release(ages(), epsilon=1.0, bounds={"age": pmdp.Natural(17, 90)})
    released.to_netcdf(tmp_path / "ages.nc")
    assert not pmdp.Release.from_netcdf(tmp_path / "ages.nc").statistics[0].domain.clamps


def test_where_the_law_is_not_known_natural_bounds_are_refused():
    with pm.Model() as model:
        pm.Poisson("y", pm.Exponential("rate", 1), observed=np.arange(5))
    with pytest.raises(pmdp.Refusal, match=r"y is Poisson, whose law is known only with values moved to the bounds"):
        pmdp.release(model, epsilon=1.0, bounds={"y": pmdp.Natural(0, 9)})


def test_natural_bounds_of_covariates_and_responses_are_bounds():
    with pm.Model() as model:
        x = pm.Data("x", np.linspace(0, 1, 30))
        pm.Normal("y", pm.Normal("a") + pm.Normal("b") * x, 1, observed=np.linspace(0, 2, 30))
    assert "needed" not in flat(pmdp.inspect(model, bounds={"x": pmdp.Natural(0, 1), "y": pmdp.Natural(0, 3)}))


CUT = 1.28
"""Standard deviations from the middle to the bounds: a fifth of normal values lies outside."""


def regression(covariate):
    """A response with a slope of 1, of which a fifth is cut off by bounds of (-CUT, CUT) standard deviations, and these."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=20_000) if covariate == "normal" else rng.integers(0, 2, 20_000).astype(float)
    y = x - x.mean() + rng.normal(size=len(x))
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("middle", 0, 1) + pm.Normal("slope", 0, 1) * pm.Data("x", x), pm.HalfNormal("sigma", 1), observed=y)
    return model, {"x": (-5, 5) if covariate == "normal" else (0, 1), "y": (-CUT * y.std(), CUT * y.std())}


def said_of(model, bounds, **words):
    released = pmdp.release(model, epsilon=20.0, bounds=bounds, **words)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_if_clamped(released.statistics)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("covariate", ["normal", "binary"])
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_a_response_that_bounds_cut_off_is_spoken_of(covariate, neighbours):
    """Slopes come out flatter by the share that is cut off, .2, of which a normal law of clamped values tells .12. To move that by .003
    the noise would have to be a hundred times its scale."""
    model, bounds = regression(covariate)
    (said,) = said_of(model, bounds, neighbours=neighbours)
    assert "If y is Normal, about 12% of it lies outside" in said
    assert "makes slopes flatter by about as much or more" in said
    natural = bounds | {"y": pmdp.Natural(*bounds["y"])}
    assert not said_of(model, natural, neighbours=neighbours)
    wide = bounds | {"y": (3 * bounds["y"][0], 3 * bounds["y"][1])}
    assert not said_of(model, wide, neighbours=neighbours)


def test_cells_of_a_regression_are_weighed_by_their_records():
    """In a second cell of three times as many records everything lies within: a quarter as much is cut off altogether."""
    rng = np.random.default_rng(7)
    cell = np.repeat([0, 1], [10_000, 30_000])
    x = rng.normal(size=len(cell))
    y = (x + rng.normal(size=len(x))) * np.array([1, 0.1])[cell]
    with pm.Model() as model:
        slope = pm.Normal("slope", 0, 1, shape=2)[pm.Data("cell", cell)]
        pm.Normal("y", slope * pm.Data("x", x), pm.HalfNormal("sigma", 1), observed=y)
    (said,) = said_of(model, {"x": (-5, 5), "y": (-CUT * 2**0.5, CUT * 2**0.5)}, public=["cell"])
    assert "about 3% of it lies outside" in said


def test_a_log_normal_response_is_spoken_of_in_its_own_units():
    rng = np.random.default_rng(3)
    x, noise = rng.normal(size=(2, 20_000))
    with pm.Model() as model:
        pm.LogNormal("y", pm.Normal("slope", 0, 1) * pm.Data("x", x), pm.HalfNormal("sigma", 1), observed=np.exp(x + noise))
    (said,) = said_of(model, {"x": (-5, 5), "y": (0.2, 5)})
    assert "lies outside (0.2, 5)" in said


def test_a_regression_lost_in_the_noise_says_nothing(exact_seam):
    """The noise on squares happens to be three times the variance that values within the bounds can have, and its scale half of that."""
    model, bounds = regression("normal")
    exact_seam.noise = np.array([0, 0, 0, 0, 3 * 20_000 * POINTS**2])
    released = pmdp.release(model, epsilon=0.0005, bounds=bounds)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pmdp.ClampedWarning)
        warn_if_clamped(released.statistics)
