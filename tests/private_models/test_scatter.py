"""The law of noisy second moments: its densities integrate to those of simulated records, and latents only change the geometry."""

from dataclasses import replace
from functools import cache

import numba
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.special import logsumexp

import pymc_dp as pmdp
from pymc_dp.families.second_moments import Regression
from pymc_dp.laws.kernel import Kernel
from pymc_dp.privacy.noise_law import Noise
from pymc_dp.private_models.moment_law import scatter
from pymc_dp.private_models.moment_loops import normal_moments

PHI, SIGMA = np.array([[0.1, 0.6, -0.3]]), np.array([0.3])
LAPLACE, GAUSSIAN = Noise(2.0 * 2**30, 1 / 2**30), Noise(2.8 * 2**30, 1 / 2**30, gaussian=True)
"""About the size of the sampling spread, so that either way of centring integrates well."""


def made(private, noise, n=200, scale_known=False, seed=0, multipliers=(1, 1)):
    """Released moments of made-up records on [-1, 1], and their law."""
    rng = np.random.default_rng(seed)
    F = 1 + len(private)
    u = np.column_stack([np.ones(n), np.clip(rng.normal(0.2, 0.4, (n, 2)) @ [[1.0, 0.5], [0.0, 0.8]], -1, 1)])[:, :F]
    w = u @ PHI[0, :F] + SIGMA[0] * rng.normal(size=n)
    regression = Regression(
        ("1", "a", "b")[:F], (False, *private), (-1.0,) * F, (1.0,) * F, (-1.0,), (1.0,), scale_known, multipliers=multipliers
    )
    full = np.column_stack([u, w])
    known = np.zeros((1, F + 1, F + 1))
    public = [k for k in range(F) if not regression.private[k]]
    for i in public:
        for j in public:
            known[0, i, j] = (u[:, i] * u[:, j]).sum()
    noisy = np.array([[(full[:, i] * full[:, j]).sum() for i, j in regression.entries]])
    noisy = noisy + rng.normal(size=noisy.shape) * noise.standard_deviation / regression.weights
    return scatter(regression, noise, noisy, known, np.array([float(n)])), noisy, regression, full


@cache
def compiled(loop):
    Kernel(loop, ())  # tells numba of what the loop calls
    return numba.njit(error_model="numpy")(loop)


def marginal(law, noisy, n, draws, seed, phi=PHI, sigma=SIGMA):
    """Log of the density of released moments, the latents integrated out by importance sampling, with its standard error.

    Every draw is a cell of its own, so that all of them are one call of the loop.
    """
    rng = np.random.default_rng(seed)
    latent, shared = np.zeros((1, law.latents)), np.zeros(law.shared)
    node = law.log_density(*map(pt.constant, (noisy, [float(n)], phi, sigma, latent, shared, law.given()))).owner
    *cells, given = (np.repeat(entry.eval(mode="FAST_COMPILE"), draws, axis=0) for entry in node.inputs)
    cells[-2], cells[-1] = rng.normal(size=(draws, law.latents)), rng.normal(size=(draws, law.shared))
    values = compiled(node.op.loop)(*cells, given)[0]
    weights = np.exp(values - values.max())
    return logsumexp(values) - np.log(draws), weights.std() / weights.mean() / np.sqrt(draws)


@pytest.mark.parametrize(
    ("private", "noise", "multipliers"),
    [
        pytest.param((False, False), LAPLACE, (1, 1), id="public-laplace"),
        pytest.param((True,), GAUSSIAN, (1, 2), id="private-gaussian-multiplied"),
        pytest.param((True,), GAUSSIAN, (1, 1), id="private-gaussian", marks=pytest.mark.slow),
        pytest.param((False, True), LAPLACE, (2, 3), id="mixed-laplace-multiplied", marks=pytest.mark.slow),
        pytest.param((False, True), LAPLACE, (1, 1), id="mixed-laplace", marks=pytest.mark.slow),
        pytest.param((False, False), GAUSSIAN, (1, 1), id="public-gaussian", marks=pytest.mark.slow),
        pytest.param((False, True), GAUSSIAN, (1, 1), id="mixed-gaussian", marks=pytest.mark.slow),
        pytest.param((True,), LAPLACE, (1, 1), id="private-laplace", marks=pytest.mark.slow),
    ],
)
def test_where_latents_are_centred_changes_no_density(private, noise, multipliers):
    """Centred on the released values or on their own law, and from a start that is off: one marginal density, within 6 errors."""
    law, noisy, _, _ = made(private, noise, multipliers=multipliers)
    phi = PHI[:, : 1 + len(private)]
    near = replace(law, near=np.ones_like(law.near), near_squares=np.ones_like(law.near_squares))
    far = replace(law, near=np.zeros_like(law.near), near_squares=np.zeros_like(law.near_squares))
    off = replace(far, start=far.start + 0.3 * far.scale.sum(axis=2), scale=far.scale * 1.1)
    for sigma in (SIGMA, SIGMA * 1.2):
        (one, error), *others = [marginal(each, noisy, 200, 100_000, seed=4, phi=phi, sigma=sigma) for each in (far, near, off)]
        # The density is known up to the volume of a unit of the latents, which is a constant.
        for (other, its), volume in zip(others, (0.0, law.unknowns * np.log(1.1)), strict=True):
            assert max(error, its) < 0.2
            assert abs(one - other - volume) < 6 * np.hypot(error, its)


def scored(link, anchor, n=2000, noise=None):
    """Scores and information of made-up records of one feature at an anchor, with noise, and their law."""
    rng = np.random.default_rng(3)
    u = np.clip(rng.normal(0.2, 0.4, n), -1, 1)
    top = 1.0 if link == "logit" else 8.0
    eta = 0.1 + 1.5 * u
    y = rng.binomial(1, 1 / (1 + np.exp(-eta))) if link == "logit" else np.minimum(rng.poisson(np.exp(eta)), top)
    bounds = (-1.0, -1.0), (1.0, 1.0), (0.0,), (top,)
    regression = Regression(("1", "a"), (False, True), *bounds, True, True, link=link, predictor=(-4.0, 4.0))
    integers = regression.scaled(np.column_stack([np.ones(n), u]), y[:, None].astype(float))
    entries = regression.scored(integers, y.astype(float), np.tile(anchor, (n, 1)))
    noisy = np.array([[column.sum() for column in entries]]) * regression.lattice
    noisy = noisy + noise.standard_deviation * np.resize([0.4, -0.7], noisy.shape)
    return scatter(regression, noise, noisy, np.zeros((1, 3, 3)), noisy[:, 0], anchor=anchor[None]), noisy, regression


@pytest.mark.parametrize("link", ["logit", "log"])
def test_with_a_link_where_latents_are_centred_changes_no_density(link):
    """Every score centred on its released value, the first alone, or none, or from a start that is off: one marginal density.

    Within 6 errors, and another anchor has another.
    """
    phi, noise = np.array([[0.1, 1.5]]), Noise((3.0 if link == "logit" else 0.6) * 2**30, 1 / 2**30)
    law, noisy, regression = scored(link, np.array([0.0, 1.2]), noise=noise)
    how = {"n": noisy[0, 0], "draws": 40_000, "seed": 4, "phi": phi, "sigma": np.array([regression.scores.unit**-0.5])}
    kinds = [replace(law, near=np.array([near])) for near in ([False] * 2, [True] * 2, [True, False])]
    far = kinds[0]
    kinds.append(replace(far, start=far.start + 0.3 * far.scale.sum(axis=2), scale=far.scale * 1.1))
    (one, error), *others = [marginal(each, noisy, **how) for each in kinds]
    # The density is known up to the volume of a unit of the latents, which is a constant.
    volumes = [0.0, 0.0, law.unknowns * np.log(1.1)]
    for (other, its), volume in zip(others, volumes, strict=True):
        assert max(error, its) < 0.15
        assert abs(one - other - volume) < 6 * np.hypot(error, its)
    moved, _ = marginal(replace(law, anchor=law.anchor + 0.5), noisy, **how)
    assert abs(one - moved) > 0.5


@pytest.mark.parametrize(("scale", "centred"), [(1e-4, True), (0.3, False)])
def test_few_records_more_than_features_are_centred_where_hardly_any_noise_is(scale, centred):
    """Six records and three features: what these leave is known under little noise, and may be nothing under more.

    Without it a chain of ten records with five features at epsilon 10^6 did not move (R-hat 3).
    """
    law, *_ = made((True, True), Noise(scale * 2**30, 1 / 2**30), n=6)
    assert law.near.all() == centred
    assert law.near_squares.all() == centred


@pytest.mark.parametrize("count", [-300.0, 300.0])
def test_more_responses_than_records_are_taken_for_noise(count):
    """Of 50 records under strong noise: what is then sure to be left of their sums is next to nothing."""
    regression = Regression(
        ("1", "a"), (False, True), (-1.0, -1.0), (1.0, 1.0), (0.0,), (1.0,), True, True, link="logit", predictor=(-4.0, 4.0)
    )
    noisy = np.array([[12.0, 3.0, 30.0, 5.0, count]])
    law = scatter(regression, Noise(40.0 * 2**30, 1 / 2**30), noisy, np.zeros((1, 3, 3)), np.array([12.0]), anchor=np.zeros((1, 2)))
    assert not law.near.any()
    density, error = marginal(law, noisy, 12.0, 10_000, seed=1, phi=PHI[:, :2])
    assert np.isfinite(density)
    assert error < 0.2


@pytest.mark.parametrize("multipliers", [(1, 1), (1, 2)], ids=["plain", "multiplied"])
def test_public_features_have_the_density_of_simulated_records(multipliers):
    """With public features no latent stands for them: the density of (S, sum w²) against 40,000 simulated sets of records."""
    noise, n = replace(GAUSSIAN, scale=GAUSSIAN.scale * multipliers[0] * multipliers[1]), 200
    law, noisy, regression, full = made((False, False), noise, multipliers=multipliers)
    u, rng = full[:, :3], np.random.default_rng(1)
    w = u @ PHI[0] + SIGMA[0] * rng.normal(size=(40_000, n))
    moments = np.column_stack([w @ u, (w**2).sum(axis=1)])
    # Gaussian noise on each: the density at the released values is an average of normal densities over simulated records.
    r = (noisy - moments) * regression.weights / noise.standard_deviation
    values = -0.5 * (r**2).sum(axis=1)
    simulated = logsumexp(values) - np.log(len(values))
    weights = np.exp(values - values.max())
    error = weights.std() / weights.mean() / np.sqrt(len(weights))
    ours, own = marginal(law, noisy, n, 40_000, seed=2)
    assert max(error, own) < 0.05
    assert abs(simulated - ours) < 6 * np.hypot(error, own)
    wrong, _ = marginal(law, noisy, n, 40_000, seed=2, sigma=SIGMA * 1.15)
    assert abs(simulated - wrong) > 6 * np.hypot(error, own), "a wrong sigma would be seen"


@pytest.mark.parametrize("near", [False, True], ids=["by their own law", "by released values"])
@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
def test_every_released_number_is_told_with_its_own_noise(noise, near):
    """As a released number moves, the log-density bends by -1 / sd², or falls as a Laplace law does, sd being that number's own.

    The latents stay, and what their coordinates say of numbers stays: so the truth does, but where the square is itself a latent.
    """
    law, noisy, regression, _ = made((False, True), noise, multipliers=(2, 3))
    law = replace(law, near=np.full_like(law.near, near), near_squares=np.zeros_like(law.near_squares))
    given, latent, shared = law.given(), np.full((1, law.latents), 0.1), np.zeros((1, law.shared))

    def at(k, step):
        moved = noisy + step * (np.arange(noisy.shape[1]) == k)
        return normal_moments(moved, np.array([200.0]), PHI, SIGMA, latent, shared, given)[0][0]

    for k, weight in enumerate(regression.weights):
        sd = noise.standard_deviation / weight
        far = 1000 * sd
        if noise.gaussian:
            assert at(k, far) + at(k, -far) - 2 * at(k, 0.0) == pytest.approx(-((far / sd) ** 2), rel=1e-9)
        else:
            assert at(k, 2 * far) - at(k, far) == pytest.approx(-np.sqrt(2) * far / sd, rel=1e-9)
            assert at(k, -2 * far) - at(k, -far) == pytest.approx(-np.sqrt(2) * far / sd, rel=1e-9)


def test_a_square_that_is_a_latent_is_released_with_its_own_noise():
    """Whatever all is multiplied by, so much more noise has the same density, and derivatives."""
    noise = replace(GAUSSIAN, scale=0.1 * GAUSSIAN.scale)
    found = []
    for times in (1, 3):
        law, noisy, *_ = made((True,), replace(noise, scale=noise.scale * times), multipliers=(times, times))
        assert law.near_squares.all()
        latent, shared = np.full((1, law.latents), 0.1), np.zeros((1, law.shared))
        density = normal_moments(noisy, np.array([200.0]), PHI[:, :2], SIGMA, latent, shared, law.given())
        found.append(np.concatenate([part.ravel() for part in density]))
    assert np.allclose(*found, rtol=1e-9)


@pytest.mark.slow
def test_few_records_leave_as_many_degrees_of_freedom_as_they_have_beyond_their_features():
    """Eight records and three features: the density against 400,000 simulated sets of records, at two sigmas."""
    noise, n = Noise(0.2 * 2**30, 1 / 2**30, gaussian=True), 8
    law, noisy, _, full = made((False, False), noise, n=n)
    u, rng = full[:, :3], np.random.default_rng(1)
    for sigma in (SIGMA, 1.5 * SIGMA):
        w = u @ PHI[0] + sigma[0] * rng.normal(size=(400_000, n))
        moments = np.column_stack([w @ u, (w**2).sum(axis=1)])
        values = -0.5 * (((noisy - moments) / noise.standard_deviation) ** 2).sum(axis=1)
        weights = np.exp(values - values.max())
        simulated, error = logsumexp(values) - np.log(len(values)), weights.std() / weights.mean() / np.sqrt(len(weights))
        ours, own = marginal(law, noisy, n, 100_000, seed=2, sigma=sigma)
        assert max(error, own) < 0.05
        assert abs(simulated - ours) < 6 * np.hypot(error, own) + 0.05  # the cube root of a chi-square variable is nearly normal


def test_a_predictive_draw_has_the_moments_of_simulated_records():
    noise, n = Noise(2.0 * 2**30, 1 / 2**30), 200
    law, _, regression, full = made((False, False), noise, multipliers=(1, 3))
    u, rng = full[:, :3], np.random.default_rng(1)
    w = u @ PHI[0] + SIGMA[0] * rng.normal(size=(20_000, n))
    wanted = np.column_stack([w @ u, (w**2).sum(axis=1)]) + rng.laplace(size=(20_000, 4)) * noise.spread / regression.weights
    given = pt.constant(law.given())
    graph = law.simulated(pt.constant([float(n)]), pt.constant(PHI), pt.constant(SIGMA), pt.zeros((1, law.latents)), None, given)
    drawn = pm.draw(graph, 20_000, random_seed=1)[:, 0]
    scale = wanted.std(axis=0)
    assert np.abs(drawn.mean(axis=0) - wanted.mean(axis=0)).max() / scale.min() < 1
    assert (np.abs(drawn.mean(axis=0) - wanted.mean(axis=0)) < 6 * scale / np.sqrt(10_000)).all()
    assert np.allclose(drawn.std(axis=0), scale, rtol=0.06)
    assert np.allclose(np.corrcoef(drawn.T), np.corrcoef(wanted.T), atol=0.06)


def regression_of(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal([1.0, -2.0], [0.7, 1.1], size=(n, 2))
    y = 0.5 + x @ [1.2, -0.4] + 0.8 * rng.normal(size=n)
    with pm.Model() as model:
        covariates = pm.Data("x", x)
        a, b, sigma = pm.Flat("a"), pm.Flat("b", shape=2), pm.HalfFlat("sigma")
        pm.Normal("y", a + covariates @ b, sigma, observed=y)
    design = np.column_stack([np.ones(n), x])
    coefficients, squares, *_ = np.linalg.lstsq(design, y)
    # Flat priors on coefficients and sigma: Student t with n - 3 - 1 degrees of freedom.
    spread = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * squares / (n - 3 - 1))
    return model, coefficients, spread, np.sqrt(squares / n)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "epsilon"),
    [({}, 10**6), ({"public": ["x"]}, 10**6), ({"neighbours": "add_remove"}, 10**4)],
    ids=["private features", "public features", "records come and go"],
)
def test_without_noise_to_speak_of_the_posterior_is_that_of_least_squares(arguments, epsilon):
    """Within 6 Monte Carlo errors, with at least 300 effective draws."""
    model, coefficients, spread, sigma = regression_of(400, 5)
    bounds = {"x": (-8, 8), "y": (-20, 20)} if "public" not in arguments else {"y": (-20, 20)}
    tree = pmdp.sample(1000, model=model, epsilon=epsilon, bounds=bounds, progressbar=False, random_seed=1, **arguments)
    assert tree["sample_stats"]["diverging"].sum() == 0
    draws = np.concatenate([tree["posterior"]["a"].values[..., None], tree["posterior"]["b"].values], axis=-1).reshape(-1, 3)
    assert (np.abs(draws.mean(axis=0) - coefficients) < 6 * spread / np.sqrt(300)).all()
    assert np.allclose(draws.std(axis=0), spread, rtol=0.2)
    assert abs(tree["posterior"]["sigma"].values.mean() - sigma) < 0.02


@pytest.mark.slow
def test_sampling_noise_and_privacy_are_both_in_the_interval():
    """At a small epsilon intervals are several times wider than without noise, and wider than those of the plug-in."""
    model, _, spread, _ = regression_of(400, 5)
    bounds = {"x": (-8, 8), "y": (-20, 20)}
    released = pmdp.release(model, epsilon=1, bounds=bounds)
    widths = []
    for aware in (True, False):
        with pmdp.rewrite(model, released, noise_aware=aware):
            tree = pm.sample(300, tune=500, progressbar=False, random_seed=1)
        widths.append(tree["posterior"]["b"].values.reshape(-1, 2).std(axis=0))
    assert (widths[0] > 2 * spread[1:]).all()
    assert (widths[0] > 1.5 * widths[1]).all()


def with_link(link, n=3000, seed=3, rounded=None):
    rng = np.random.default_rng(seed)
    x = rng.normal(0.3, 0.8, size=(n, 2))
    if rounded is not None:
        x = rounded[np.abs(x[..., None] - rounded).argmin(axis=-1)]
    predictor = 0.4 + x @ [0.9, -0.5]
    with pm.Model() as model:
        mean = pm.Normal("a", 0, 2) + pm.Data("x", x) @ pm.Normal("b", 0, 1, shape=2)
        if link == "logit":
            pm.Bernoulli("y", logit_p=mean, observed=rng.binomial(1, 1 / (1 + np.exp(-predictor))))
        else:
            pm.Poisson("y", pm.math.exp(mean), observed=rng.poisson(np.exp(predictor)))
    bounds = {"x": (-4, 4), f"{link}(y)": (-3, 3)} | ({} if link == "logit" else {"y": (0, 60)})
    return model, bounds


@pytest.mark.parametrize("public", [False, True], ids=["private features", "public features"])
@pytest.mark.parametrize("link", ["logit", "log"])
def test_with_a_link_and_little_noise_the_density_is_the_user_s_own_near_its_top(link, public):
    """Noise as if it were not there: log-densities at forty points within two standard errors differ by a constant and .3."""
    model, bounds = with_link(link)
    arguments = {"bounds": bounds} if not public else {"bounds": {k: v for k, v in bounds.items() if k != "x"}, "public": ["x"]}
    released = pmdp.release(model, epsilon=10**6, **arguments)
    top, covariance = least_of(link, model)
    points = top + np.random.default_rng(1).normal(size=(40, 3)) @ np.linalg.cholesky(covariance).T
    given = [{"a": np.array(p[0]), "b": p[1:]} for p in points]
    ours = pmdp.rewrite(model, released, noise_aware=False).compile_logp(mode="FAST_COMPILE")
    theirs = model.compile_logp(mode="FAST_COMPILE")
    differences = np.array([theirs(point) - ours(point) for point in given])
    assert 0 < np.ptp(differences) < 0.3
    assert np.ptp([theirs(point) for point in given]) > 3


def least_of(link, model):
    """The coefficients (3,) of largest likelihood, and the inverse of the information there, by Newton's method."""
    X = np.column_stack([np.ones(len(model["x"].get_value())), model["x"].get_value()])
    y, found = model.rvs_to_values[model["y"]].eval(), np.zeros(3)
    for _ in range(30):
        mean = 1 / (1 + np.exp(-X @ found)) if link == "logit" else np.exp(X @ found)
        information = (X * (mean * (1 - mean) if link == "logit" else mean)[:, None]).T @ X
        found = found + np.linalg.solve(information, X.T @ (y - mean))
    return found, np.linalg.inv(information)


@pytest.mark.slow
@pytest.mark.parametrize("link", ["logit", "log"])
def test_with_a_link_and_little_noise_the_posterior_is_near_the_user_s_own(link):
    """Means within a third of its standard deviations, which are within a sixth: a posterior is not quite its quadratic."""
    model, bounds = with_link(link)
    with model:
        own = pm.sample(1000, progressbar=False, random_seed=1)["posterior"]
    tree = pmdp.sample(1000, model=model, epsilon=10**4, bounds=bounds, progressbar=False, random_seed=1)
    assert tree["sample_stats"]["diverging"].sum() == 0
    ours, theirs = (np.vstack([np.ravel(draws["a"]), draws["b"].values.reshape(-1, 2).T]) for draws in (tree["posterior"], own))
    sd, least = ours.std(axis=1), theirs.std(axis=1)
    assert (np.abs(ours.mean(axis=1) - theirs.mean(axis=1)) < least / 3).all()
    assert np.allclose(sd, least, rtol=1 / 6)


@pytest.mark.slow
@pytest.mark.parametrize("link", ["logit", "log"])
def test_rounded_features_are_a_table_and_leave_nothing_open(link):
    """All values of a feature as its bounds: under hardly any noise the posterior of the rounded records."""
    values = np.linspace(-2.5, 3, 12)
    model, bounds = with_link(link, n=20_000, rounded=values)
    released = {k: v for k, v in bounds.items() if k == "y"} | {"x": set(values)}
    how = {"model": model, "progressbar": False, "random_seed": 1}
    with model:
        own = pm.sample(1000, progressbar=False, random_seed=1)["posterior"]
    exact = pmdp.sample(1000, epsilon=10**4, bounds=released, **how)["posterior"]
    table = pmdp.sample(1000, epsilon=1, bounds=released, **how)["posterior"]
    for name in ("a", "b"):
        of_own, of_exact, of_table = (
            (draws[name].mean(("chain", "draw")), draws[name].std(("chain", "draw"))) for draws in (own, exact, table)
        )
        assert (abs(of_exact[0] - of_own[0]) < 0.3 * of_own[1]).all()
        assert (abs(of_exact[1] / of_own[1] - 1) < 0.15).all()
        assert (abs(of_table[0] - of_own[0]) < 4 * of_table[1]).all()


def test_without_bounds_of_its_predictor_a_likelihood_with_a_link_is_refused_and_says_what_to_write():
    model, bounds = with_link("logit", n=50)
    with pytest.raises(pmdp.Refusal, match=r"bounds=\{'logit\(y\)': \(-3, 3\)\}"):
        pmdp.release(model, epsilon=1, bounds={"x": (-4, 4)})
    with pytest.raises(pmdp.Refusal, match="too far apart"):
        pmdp.release(model, epsilon=1, bounds=bounds | {"logit(y)": (-30, 30)})
    assert pmdp.inspect(model, bounds=bounds).rows[0].structure == "linear"
