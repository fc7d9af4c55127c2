"""The law of second moments with sums of residuals: derivatives, both ways of centring, and sums of simulated records."""

from dataclasses import replace
from functools import cache

import numba
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import seam_of
from scipy.special import logsumexp

import pymc_dp as pmdp
from pymc_dp.laws.kernel import Kernel
from pymc_dp.private_models.residual_law import residual_law
from pymc_dp.private_models.residual_loops import residual_moments

N = 60
SPREAD = 1.5
"""Standard deviation of the noise on a product, in units of the response's half range: about that of sampling."""
PHI, SIGMA = np.array([[0.1, 0.5, -0.3]]), np.array([0.4])
BOUNDS = {"y": (-2, 2), "x": (-1, 1)}


@cache
def statistic(clamp=None, seed=0):
    """A released statistic of few records, whose noise is made as wide as sampling."""
    rng = np.random.default_rng(seed)
    x = np.clip(rng.normal(0.1, 0.4, (N, 2)) @ [[1.0, 0.3], [0.0, 0.9]], -1, 1)
    with pm.Model() as model:
        mean = pm.Normal("a") + pm.Data("x", x) @ pm.Normal("b", shape=2)
        pm.Normal("y", mean, pm.HalfNormal("s"), observed=PHI[0, 0] + x @ PHI[0, 1:] + SIGMA[0] * rng.normal(size=N))
    with seam_of(0):
        noisy = pmdp.release(model, epsilon=10_000, bounds=BOUNDS, missing={}, mechanism=pmdp.Laplace(residuals=True))["y"]
    scale = SPREAD / np.sqrt(2) / noisy.lattice
    place = replace(noisy.residuals, scale=2 * scale / noisy.residuals.clamp * noisy.residuals.weights[0])
    noisy = replace(noisy, scale=scale, residuals=place)
    noise = rng.laplace(size=noisy.noisy.shape) * noisy.deviations / np.sqrt(2) * noisy.times / noisy.lattice / 3
    return replace(noisy, noisy=noisy.noisy + np.rint(noise).astype(np.int64))


def law_of(noisy, near=None):
    law = residual_law(noisy, noisy.known * noisy.lattice, noisy.n.astype(float))
    return law if near is None else replace(law, near=np.array([near[:3]]), near_squares=np.array(near[3:]))


def inputs(law, noisy, latent, phi=PHI, sigma=SIGMA):
    shared = np.zeros(law.shared)
    values = (noisy.values, [float(N)], phi, sigma, latent, shared, law.given())
    node = law.log_density(*map(pt.constant, values)).owner
    return [entry.eval(mode="FAST_COMPILE") for entry in node.inputs]


CENTRED = [(True,) * 4, (False,) * 4, (True, False, True, False), (False, True, False, True)]


@pytest.mark.parametrize("near", CENTRED)
def test_derivatives_are_those_of_the_density(near):
    noisy = statistic()
    law = law_of(noisy, near)
    given = inputs(law, noisy, 0.2 * np.random.default_rng(3).normal(size=(1, law.latents)))
    _, *slopes = residual_moments(*given)
    assert np.isfinite(residual_moments(*given)[0]).all()
    for slope, k in zip(slopes, (2, 3, 4), strict=True):
        for entry in np.ndindex(given[k].shape[1:]):
            step = np.zeros_like(given[k])
            step[:, *entry] = 1e-6
            high, low = (residual_moments(*given[:k], given[k] + sign * step, *given[k + 1 :])[0] for sign in (1, -1))
            np.testing.assert_allclose(slope[:, *entry], (high - low) / 2e-6, rtol=1e-4, atol=1e-4)


@cache
def compiled():
    Kernel(residual_moments, ())  # tells numba of what the loop calls
    return numba.njit(error_model="numpy")(residual_moments)


def test_numba_says_what_python_says():
    noisy = statistic()
    for near in CENTRED:
        law = law_of(noisy, near)
        given = inputs(law, noisy, np.full((1, law.latents), 0.1))
        for one, other in zip(residual_moments(*given), compiled()(*given), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9)


def marginal(law, noisy, draws, seed, phi=PHI, sigma=SIGMA):
    """Log of the density, the latents integrated out by importance sampling, with its standard error."""
    rng = np.random.default_rng(seed)
    cells = [np.repeat(entry, draws, axis=0) for entry in inputs(law, noisy, np.zeros((1, law.latents)), phi, sigma)]
    cells[4] = rng.normal(size=(draws, law.latents))
    value = compiled()(*cells)[0]
    weights = np.exp(value - value.max())
    return logsumexp(value) - np.log(draws), weights.std() / weights.mean() / np.sqrt(draws)


def test_centring_changes_no_density():
    """Differences of log-densities between parameters, with latents on their own law and on what was released."""
    noisy = statistic()
    away = np.array([[0.05, -0.2, 0.1]])
    places = [(PHI, SIGMA), (PHI + away, SIGMA), (PHI, SIGMA * 1.15)]
    found = []
    for k, near in enumerate([(True,) * 4, (False,) * 4]):
        several = [marginal(law_of(noisy, near), noisy, 400_000, 10 * k + 5, *place) for place in places]
        found.append(([value - several[0][0] for value, _ in several[1:]], max(error for _, error in several)))
    (one, first), (other, second) = found
    assert max(first, second) < 0.1
    np.testing.assert_allclose(one, other, atol=5 * (first + second))


def test_predictive_sums_are_those_of_simulated_records():
    """Records of the same features with the same coefficients: means and spreads of the sums, clamping included, but for the noise."""
    noisy = replace(statistic(), scale=1.0)
    noisy = replace(noisy, residuals=replace(noisy.residuals, scale=1.0, clamp=0.2))
    law = law_of(noisy)
    # Unknowns that are those of the release are what features' moments are drawn with.
    latent = np.zeros((1, law.latents))
    drawn = law.simulated(*map(pt.constant, ([float(N)], PHI, SIGMA, latent, np.zeros(0), law.given())))
    K, rng = len(noisy.regression.entries), np.random.default_rng(4)
    several = pm.draw(drawn, 4000, random_seed=1)[:, 0]
    x = np.clip(np.random.default_rng(0).normal(0.1, 0.4, (N, 2)) @ [[1.0, 0.3], [0.0, 0.9]], -1, 1)
    D, place = np.column_stack([np.ones(N), x]), noisy.residuals
    w = (D @ PHI[0] + SIGMA[0] * rng.normal(size=(4000, N))) / 2
    r = w - D @ place.coefficients
    sums = np.column_stack(
        [np.clip(r, -place.clamp, place.clamp) @ D, (np.clip(r, -1.5 * place.clamp, 1.5 * place.clamp) ** 2).sum(axis=1)]
    )
    np.testing.assert_allclose(several[:, K:].mean(axis=0), sums.mean(axis=0), atol=0.25)
    np.testing.assert_allclose(several[:, K:-1].std(axis=0), sums[:, :-1].std(axis=0), rtol=0.12)
    full = np.concatenate([np.broadcast_to(D, (4000, N, 3)), w[..., None]], axis=2)
    moments = np.column_stack([(full[..., i] * full[..., j]).sum(axis=1) for i, j in noisy.regression.entries])
    np.testing.assert_allclose(several[:, :K].mean(axis=0), moments.mean(axis=0), atol=0.6)


def test_what_is_cut_off_moves_sums_of_residuals_as_an_intercept_does():
    """By n times the features' means, in predictive draws, with hardly any noise on these; no other sum moves."""
    noisy = replace(statistic(), scale=1.0)
    noisy = replace(noisy, residuals=replace(noisy.residuals, scale=1.0))
    law = law_of(noisy)
    K, u = len(noisy.regression.entries), 1.7
    latent = np.zeros((2, law.latents))
    latent[1, -1] = u
    drawn = [law.simulated(*map(pt.constant, ([float(N)], PHI, SIGMA, one[None], np.zeros(0), law.given()))) for one in latent]
    none, some = (pm.draw(one, random_seed=1)[0] for one in drawn)
    assert law.skew == pytest.approx(np.exp(-1 - noisy.residuals.clamp / np.sqrt(law.square[0] / N)))
    means = none[[noisy.regression.entries.index((0, f)) for f in (1, 2)]]
    moved = np.array([*[0.0] * K, *law.skew * SIGMA[0] / 2 * u * np.array([N, *means]), 0.0])
    np.testing.assert_allclose(some - none, moved, rtol=1e-5, atol=1e-9)
