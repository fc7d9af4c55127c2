"""The law of noisy second moments: its densities integrate to those of simulated records, and latents only change the geometry."""

from dataclasses import replace
from functools import cache

import numba
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.special import logsumexp
from scipy.stats import beta, poisson

import pymc_dp as pmdp
from pymc_dp.kernels import Kernel
from pymc_dp.mechanisms import Noise
from pymc_dp.regression import Regression
from pymc_dp.scatter import scatter
from pymc_dp.wishart import HALF, beta_nodes, drawn_moments

PHI, SIGMA = np.array([[0.1, 0.6, -0.3]]), np.array([0.3])
LAPLACE, GAUSSIAN = Noise(2.0 * 2**30, 1 / 2**30), Noise(2.8 * 2**30, 1 / 2**30, gaussian=True)
"""About the size of the sampling spread, so that either way of centring integrates well."""


def made(private, noise, n=200, scale_known=False, seed=0):
    """Released moments of made-up records on [-1, 1], and their law."""
    rng = np.random.default_rng(seed)
    F = 1 + len(private)
    u = np.column_stack([np.ones(n), np.clip(rng.normal(0.2, 0.4, (n, 2)) @ [[1.0, 0.5], [0.0, 0.8]], -1, 1)])[:, :F]
    w = u @ PHI[0, :F] + SIGMA[0] * rng.normal(size=n)
    regression = Regression(("1", "a", "b")[:F], (False, *private), (-1.0,) * F, (1.0,) * F, (-1.0,), (1.0,), scale_known)
    full = np.column_stack([u, w])
    known = np.zeros((1, F + 1, F + 1))
    public = [k for k in range(F) if not regression.private[k]]
    for i in public:
        for j in public:
            known[0, i, j] = (u[:, i] * u[:, j]).sum()
    noisy = np.array([[(full[:, i] * full[:, j]).sum() for i, j in regression.entries]])
    noisy = noisy + rng.normal(size=noisy.shape) * noise.standard_deviation
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


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("private", [(False, False), (False, True), (True,)], ids=["public", "mixed", "private"])
def test_where_latents_are_centred_changes_no_density(private, noise):
    """Centred on the released values or on their own law, and from a start that is off: one marginal density, within 6 errors."""
    law, noisy, _, _ = made(private, noise)
    phi = PHI[:, : 1 + len(private)]
    near = replace(law, near=np.ones_like(law.near), near_squares=np.ones_like(law.near_squares))
    far = replace(law, near=np.zeros_like(law.near), near_squares=np.zeros_like(law.near_squares))
    off = replace(far, start=far.start + 0.3 * far.scale.sum(axis=2), scale=far.scale * 1.1)
    for sigma in (SIGMA, SIGMA * 1.2):
        (one, error), *others = [marginal(each, noisy, 200, 100_000, seed=4, phi=phi, sigma=sigma) for each in (far, near, off)]
        # The density is known up to the volume of a unit of the latents, which is a constant.
        for (other, its), volume in zip(others, (0.0, law.unknowns * np.log(1.1)), strict=True):
            assert max(error, its) < 0.15
            assert abs(one - other - volume) < 6 * np.hypot(error, its)


@pytest.mark.parametrize("link", ["logit", "log"])
def test_with_a_link_where_latents_are_centred_changes_no_density(link):
    """Every sum centred on its released value, the first alone, or none, or shapes from a start that is off: one marginal density.

    Within 6 errors, and a shape that is known has another.
    """
    rng, n = np.random.default_rng(3), 200
    u = np.clip(rng.normal(0.2, 0.4, n), -1, 1)
    phi = np.array([[0.1, 1.5]])
    top = 1.0 if link == "logit" else 8.0
    eta = phi[0, 0] + u * phi[0, 1]
    y = rng.binomial(1, 1 / (1 + np.exp(-eta))) if link == "logit" else rng.poisson(np.exp(eta))
    bounds = (-1.0, -1.0), (1.0, 1.0), (0.0,), (top,)
    regression = Regression(("1", "a"), (False, True), *bounds, True, link=link, predictor=(-4.0, 4.0), shaped=True)
    integers = regression.scaled(np.column_stack([np.ones(n), u]), y[:, None].astype(float))
    noise = Noise((3.0 if link == "logit" else 0.6) * 2**30, 1 / 2**30)
    noisy = np.array([[column.sum() for column in regression.exact(integers)]]) * regression.lattice
    noisy = noisy + noise.standard_deviation * np.resize([0.4, -0.7], noisy.shape)
    known = np.zeros((1, *regression.known_axes))
    known[0, 0, 0] = n
    law = scatter(regression, noise, noisy, known, np.array([float(n)]))
    kinds = [replace(law, near=np.array([near])) for near in ([False] * 2, [True] * 2, [True, False])]
    far = kinds[0]
    kinds.append(replace(far, start=far.start + 0.3 * far.scale.sum(axis=2), scale=far.scale * 1.1))
    (one, error), *others = [marginal(each, noisy, n, 40_000, seed=4, phi=phi) for each in kinds]
    # The density is known up to the volume of a unit of the latents, which is a constant.
    volumes = [0.0, 0.0, law.unknowns * np.log(1.1)]
    for (other, its), volume in zip(others, volumes, strict=True):
        assert max(error, its) < 0.15
        assert abs(one - other - volume) < 6 * np.hypot(error, its)
    moved, _ = marginal(replace(law, shape=law.shape - 2.0), noisy, n, 40_000, seed=4, phi=phi)
    assert abs(one - moved) > 0.5


@pytest.mark.parametrize("count", [-300.0, 300.0])
def test_more_responses_than_records_are_taken_for_noise(count):
    """Of 50 records under strong noise: what is then sure to be left of their sums is next to nothing."""
    regression = Regression(("1", "a"), (False, True), (-1.0, -1.0), (1.0, 1.0), (0.0,), (1.0,), True, link="logit", predictor=(-4.0, 4.0))
    noisy, known = np.array([[30.0, count, 40.0, -20.0]]), np.zeros((1, 3, 3))
    known[0, 0, 0] = 50
    law = scatter(regression, Noise(40.0 * 2**30, 1 / 2**30), noisy, known, np.array([50.0]))
    assert not law.near.any()
    density, error = marginal(law, noisy, 50, 10_000, seed=1, phi=PHI[:, :2])
    assert np.isfinite(density)
    assert error < 0.2


def test_public_features_have_the_density_of_simulated_records():
    """With public features no latent stands for them: the density of (S, sum w²) against 40,000 simulated sets of records."""
    noise, n = GAUSSIAN, 200
    law, noisy, _, full = made((False, False), noise)
    u, rng = full[:, :3], np.random.default_rng(1)
    w = u @ PHI[0] + SIGMA[0] * rng.normal(size=(40_000, n))
    moments = np.column_stack([w @ u, (w**2).sum(axis=1)])
    # Gaussian noise on each: the density at the released values is an average of normal densities over simulated records.
    r = (noisy - moments) / noise.standard_deviation
    values = -0.5 * (r**2).sum(axis=1)
    simulated = logsumexp(values) - np.log(len(values))
    weights = np.exp(values - values.max())
    error = weights.std() / weights.mean() / np.sqrt(len(weights))
    ours, own = marginal(law, noisy, n, 40_000, seed=2)
    assert max(error, own) < 0.05
    assert abs(simulated - ours) < 6 * np.hypot(error, own)
    wrong, _ = marginal(law, noisy, n, 40_000, seed=2, sigma=SIGMA * 1.15)
    assert abs(simulated - wrong) > 6 * np.hypot(error, own), "a wrong sigma would be seen"


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
    law, _, _, full = made((False, False), noise)
    u, rng = full[:, :3], np.random.default_rng(1)
    w = u @ PHI[0] + SIGMA[0] * rng.normal(size=(20_000, n))
    wanted = np.column_stack([w @ u, (w**2).sum(axis=1)]) + rng.laplace(size=(20_000, 4)) * noise.spread
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


@pytest.mark.parametrize(
    ("arguments", "epsilon"),
    [({}, 10**6), ({"public": ["x"]}, 10**6), pytest.param({"neighbours": "add_remove"}, 10**4, marks=pytest.mark.slow)],
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


def test_no_quadratic_is_taken_for_an_exponential_curve(tmp_path):
    """It put an intercept off by 17 standard deviations: refused before anything is paid for, and of a release that is there."""
    model, bounds = with_link("log", n=300)
    ledger = pmdp.Ledger(tmp_path / "l.ledger", epsilon=5, create=True)
    for call in (pmdp.sample, pmdp.privatize):
        with pytest.raises(pmdp.Refusal, match="exponential mean of y"):
            call(model=model, epsilon=1.0, bounds=bounds, noise_aware=False, ledger=ledger)
    assert ledger.remaining().epsilon == 5
    assert "noise_aware=False is not offered" in repr(pmdp.inspect(model, bounds=bounds))
    with pytest.raises(pmdp.Refusal, match="exponential mean of y"):
        pmdp.rewrite(model, pmdp.release(model, epsilon=1.0, bounds=bounds), noise_aware=False)


def test_with_a_link_the_plug_in_is_a_quadratic_with_the_error_that_is_said(exact_seam):
    """The log-likelihoods differ by at most the error times the records, where the predictor stays within its bounds."""
    model, bounds = with_link("logit", n=300)
    released = pmdp.release(model, epsilon=10**9, bounds=bounds)
    regression = released["y"].regression
    a, b, error = regression.quadratic
    assert f"at most {error:.2g} nats" in repr(pmdp.inspect(model, bounds=bounds))
    normaliser = lambda eta: np.logaddexp(0, eta)  # noqa: E731
    far = np.random.default_rng(0).uniform(-3, 3, 1000)
    curve = normaliser(far) - a * far - b * far**2
    assert 0.7 * 2 * error < np.ptp(curve) <= 2 * error
    ours = pmdp.rewrite(model, released, noise_aware=False).compile_logp(mode="FAST_COMPILE")
    theirs = model.compile_logp(mode="FAST_COMPILE")
    x = model["x"].get_value()
    inside = [
        point
        for point in ({"a": np.array(p[0]), "b": p[1:]} for p in np.random.default_rng(1).normal(0, 0.3, (40, 3)))
        if np.abs(point["a"] + x @ point["b"]).max() < 3
    ]
    differences = np.array([theirs(point) - ours(point) for point in inside])
    assert len(inside) > 10
    assert 0 < np.ptp(differences) < 2 * 300 * error


@pytest.mark.slow
@pytest.mark.parametrize("link", ["logit", "log"])
def test_with_a_link_and_little_noise_the_posterior_is_near_the_user_s_own(link):
    """Means within two of its standard deviations, which are not smaller, and at most four times as large."""
    model, bounds = with_link(link)
    with model:
        own = pm.sample(1000, progressbar=False, random_seed=1)["posterior"]
    tree = pmdp.sample(1000, model=model, epsilon=10**4, bounds=bounds, progressbar=False, random_seed=1)
    assert tree["sample_stats"]["diverging"].sum() == 0
    ours, theirs = (np.vstack([np.ravel(draws["a"]), draws["b"].values.reshape(-1, 2).T]) for draws in (tree["posterior"], own))
    sd, least = ours.std(axis=1), theirs.std(axis=1)
    assert (np.abs(ours.mean(axis=1) - theirs.mean(axis=1)) < 2 * sd).all()
    assert (sd > 0.9 * least).all()
    assert (sd < 4 * least).all()


@pytest.mark.slow
@pytest.mark.parametrize("link", ["logit", "log"])
def test_rounded_features_are_a_table_and_leave_nothing_open(link):
    """All values of a feature as its bounds: under hardly any noise the posterior of the rounded records, and under noise a surer one."""
    values = np.linspace(-2.5, 3, 12)
    model, bounds = with_link(link, n=20_000, rounded=values)
    released = {k: v for k, v in bounds.items() if k == "y"} | {"x": set(values)}
    how = {"model": model, "progressbar": False, "random_seed": 1}
    with model:
        own = pm.sample(1000, progressbar=False, random_seed=1)["posterior"]
    exact = pmdp.sample(1000, epsilon=10**4, bounds=released, **how)["posterior"]
    table = pmdp.sample(1000, epsilon=1, bounds=released, **how)["posterior"]
    moments = pmdp.sample(1000, epsilon=1, bounds=bounds, **how)["posterior"]
    for name in ("a", "b"):
        of_own, of_exact, of_table, of_moments = (
            (draws[name].mean(("chain", "draw")), draws[name].std(("chain", "draw"))) for draws in (own, exact, table, moments)
        )
        assert (abs(of_exact[0] - of_own[0]) < 0.3 * of_own[1]).all()
        assert (abs(of_exact[1] / of_own[1] - 1) < 0.15).all()
        assert (abs(of_table[0] - of_own[0]) < 4 * of_table[1]).all()
        assert (of_table[1] < of_moments[1]).all()


def test_without_bounds_of_its_predictor_a_likelihood_with_a_link_is_refused_and_says_what_to_write():
    model, bounds = with_link("logit", n=50)
    with pytest.raises(pmdp.Refusal, match=r"bounds=\{'logit\(y\)': \(-3, 3\)\}"):
        pmdp.release(model, epsilon=1, bounds={"x": (-4, 4)})
    with pytest.raises(pmdp.Refusal, match="no quadratic is near"):
        pmdp.release(model, epsilon=1, bounds=bounds | {"logit(y)": (-30, 30)})
    assert pmdp.inspect(model, bounds=bounds).rows[0].structure == "linear"


@pytest.mark.parametrize(("mean", "share"), [(0.0, 1 / 3), (0.0, 0.01), (-0.9, 0.98), (-0.7, 0.18), (0.3, 0.5), (0.0, 1e-4), (0.99, 0.9)])
def test_nodes_of_a_bounded_feature_are_those_of_a_beta_variable(mean, share):
    """Mean, variance, and the mean of a logistic curve: nearly normal, uniform, skewed, and on two values."""
    variance = share * (1 - mean**2)
    u, weights, logits = (np.empty(2 * HALF) for _ in range(3))
    beta_nodes(mean, variance, u, weights, logits)
    assert (weights * u).sum() == pytest.approx(mean, abs=1e-3)
    assert (weights * u**2).sum() - mean**2 == pytest.approx(variance, rel=0.02, abs=2e-3)
    total = 1 / share - 1
    x = beta((1 + mean) / 2 * total, (1 - mean) / 2 * total).ppf(np.linspace(0, 1, 100_001)[1:-1])
    assert (weights / (1 + np.exp(-0.5 - 3 * u))).sum() == pytest.approx((1 / (1 + np.exp(-0.5 - 3 * (2 * x - 1)))).mean(), abs=1e-3)


def predicted(law, factor, n, phi, shape=0.0):
    """Means (B, F) of the sums of D w, given the Cholesky factors (B, F, F) of their features' moments over n, and shapes (B, F, 2)."""
    B, F = factor.shape[:2]
    shapes = {
        "places": (0, F), "middle": (0,), "root": (0, 0), "start": (B, 0), "shift": (B, 0, 0), "scale": (B, 0, 0),
        "inside": (B, F), "reach": (B, F), "near": (B, F), "near_squares": (B,), "shape": (B, F, 2),
    }  # fmt: skip
    none = {name: np.zeros(shape) for name, shape in shapes.items()}
    none["shape"] += shape
    # With no unknowns there would be no place for what shapes leave open: it is 0.
    none |= {"middle": np.zeros(2 * (F - 1)), "root": np.eye(2 * (F - 1)), "start": np.zeros((B, 2 * (F - 1)))}
    none |= {"shift": np.zeros((B, 2 * (F - 1), 2 * (F - 1))), "scale": np.zeros((B, 2 * (F - 1), 2 * (F - 1)))}
    known = replace(law, factor=factor, rest=np.tile(np.eye(F), (B, 1, 1)), shapeless=0, **none)
    draws, latent = np.zeros((B, law.regression.many)), np.zeros((B, 2 * (F - 1)))
    given = np.full(B, n), np.tile(phi, (B, 1)), np.ones(B), latent, np.zeros((B, known.shared)), known.given()
    return compiled(drawn_moments)(draws, *given)[:, law._responses]


@pytest.mark.parametrize("slopes", [[4.0], [5.0, -3.0]], ids=["one feature", "two features"])
def test_what_is_left_of_sums_of_counts_has_the_covariance_of_simulated_records(slopes):
    """A log link and normal features, 8,000 data sets: within a tenth, six standard errors; one variance for all is half of some.

    The noise is next to nothing, so the released values tell the rate and the slopes.
    """
    rng, n, many, F, top = np.random.default_rng(2), 1000, 8000, len(slopes) + 1, 40.0
    mix = np.array([[0.15, 0.05], [0.0, 0.12]])[: F - 1, : F - 1]
    phi = np.array([0.5, *slopes])
    bounds = (-1.0,) * F, (1.0,) * F, (0.0,), (top,)
    regression = Regression(("1", "a", "b")[:F], (False, *[True] * (F - 1)), *bounds, True, link="log", predictor=(-3.0, 3.0))
    moments = np.empty((many, F + 1, F + 1))
    for k in range(many):
        u = np.column_stack([np.ones(n), 0.1 + rng.normal(size=(n, F - 1)) @ mix])
        full = np.column_stack([u, 2 * rng.poisson(np.exp(u @ phi)) / top - 1])
        moments[k] = full.T @ full
    noisy = moments.mean(axis=0)[*np.array(regression.entries).T][None]
    known = np.zeros((1, F + 1, F + 1))
    known[0, 0, 0] = n
    law = scatter(regression, Noise(1e-3 * 2**30, 1 / 2**30), noisy, known, np.array([float(n)]))
    factor = np.linalg.cholesky(moments[:, :F, :F] / n)
    left = moments[:, :F, F] - predicted(law, factor, float(n), phi)
    whitened = np.linalg.solve(factor, left[..., None])[..., 0] * (top / 2) / np.sqrt(n)
    found, wanted = law.rest[0] @ law.rest[0].T, np.cov(whitened.T)
    size = np.sqrt(np.diag(wanted))
    assert np.abs((found - wanted) / np.outer(size, size)).max() < 0.1
    assert np.ptp(np.diag(wanted)) > wanted[0, 0]


def test_a_rare_binary_feature_is_not_taken_for_a_normal_one():
    """The mean of sum(u y) for P(x = 1) = .05 and logit -2 + 3 x is right to a hundredth; a normal feature's is off by a quarter."""
    q, n = 0.05, 1000.0
    regression = Regression(("1", "x"), (False, True), (-1.0, 0.0), (1.0, 1.0), (0.0,), (1.0,), True, link="logit", predictor=(-4.0, 4.0))
    u = 2 * q - 1
    noisy = np.array([[n * u, 0.0, n, 0.0]])
    law = scatter(regression, Noise(0.2 * 2**30, 1 / 2**30), noisy, np.array([[[n, 0, 0], [0, 0, 0], [0, 0, 0]]]), np.array([n]))
    sums = predicted(law, np.linalg.cholesky(np.array([[[1, u], [u, 1 - 1e-7]]])), n, np.array([-2.0, 3.0]))[0]
    at_0, at_1 = (1 / (1 + np.exp(2.0 - 3 * x)) for x in (0, 1))
    w = 2 * np.array([at_0, at_1]) - 1
    assert sums == pytest.approx(n * np.array([(1 - q) * w[0] + q * w[1], -(1 - q) * w[0] + q * w[1]]), rel=0.01)


def test_counts_beyond_their_bound_are_those_that_were_clamped():
    """A log link and a binary feature: rates of .4 and 20, and counts above 8 taken as 8, against the exact mean of clamped counts."""
    q, n, top = 0.3, 1000.0, 8.0
    phi, u = np.log([0.4, 20.0]) @ np.array([[0.5, -0.5], [0.5, 0.5]]), 2 * q - 1
    regression = Regression(("1", "x"), (False, True), (-1.0, -1.0), (1.0, 1.0), (0.0,), (top,), True, link="log", predictor=(-4.0, 4.0))
    known = np.zeros((1, 3, 3))
    known[0, 0, 0] = n
    law = scatter(regression, Noise(0.2 * 2**30, 1 / 2**30), np.array([[n * u, 0.0, n, 0.0]]), known, np.array([n]))
    sums = predicted(law, np.linalg.cholesky(np.array([[[1, u], [u, 1 - 1e-7]]])), n, phi)[0]
    counts = np.arange(200.0)
    clamped = [(np.minimum(counts, top) * poisson.pmf(counts, rate)).sum() for rate in (0.4, 20.0)]
    w = 2 * np.array(clamped) / top - 1
    assert sums == pytest.approx(n * np.array([(1 - q) * w[0] + q * w[1], -(1 - q) * w[0] + q * w[1]]), rel=0.01)


def test_counts_beyond_their_bound_are_clamped_before_the_mean_over_other_features():
    """Two independent features, of which one is on two values and one uniform: the mean of sum y by simulation, to a hundredth."""
    rng, n, top = np.random.default_rng(1), 1_000_000, 8.0
    u = np.column_stack([np.ones(n), rng.choice([-0.9, 0.9], n), rng.uniform(-0.9, 0.9, n)])
    phi = np.array([1.0, 0.5, 1.5])
    w = 2 * np.minimum(rng.poisson(np.exp(u @ phi)), top) / top - 1
    ends = (-1.0, -1.0, -1.0), (1.0, 1.0, 1.0), (0.0,), (top,)
    regression = Regression(("1", "a", "b"), (False, True, True), *ends, True, link="log", predictor=(-4.0, 4.0))
    full = np.column_stack([u, w])
    moments = full.T @ full
    noisy = moments[*np.array(regression.entries).T][None]
    known = np.zeros((1, 4, 4))
    known[0, 0, 0] = n
    law = scatter(regression, Noise(0.2 * 2**30, 1 / 2**30), noisy, known, np.array([float(n)]))
    sums = predicted(law, np.linalg.cholesky(moments[None, :3, :3] / n), float(n), phi)[0]
    assert sums / n == pytest.approx(w @ u / n, abs=0.015)
