"""Sums over all records weighted by public features: which features, which sums, how far a record moves them, and their law."""

from itertools import product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import seam_of
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

import pymc_dp as pmdp
from pymc_dp.laws.law import Count, Counts, Moments
from pymc_dp.laws.projected import projected
from pymc_dp.models.reader import read_model, read_spec
from pymc_dp.plans.plan import planned_release
from pymc_dp.plans.protection import protection_of
from pymc_dp.releases.cells import public_cells_of
from pymc_dp.releases.rounds import _totals

N = 60
PUBLIC = ["X", "g", "h", "age"]
RNG = np.random.default_rng(3)
X, AGE = RNG.normal(size=(N, 2)), RNG.integers(18, 80, N)
G, H = np.repeat(np.arange(4), N // 4), np.tile(np.arange(3), N // 3)


def arrays():
    return pm.Data("X", X), pm.Data("g", G), pm.Data("h", H), pm.Data("age", AGE)


def slopes(x):
    return pm.Normal("a") + x @ pm.Normal("b", shape=2)


def made(write, y):
    y = np.column_stack([y, 1 - y]) if write is columns else y
    with pm.Model() as model:
        write(*arrays(), pm.Data("outcome", y))
    return model


def logistic(x, g, h, age, y):
    pm.Bernoulli("y", logit_p=slopes(x), observed=y)


def groups(x, g, h, age, y):
    pm.Bernoulli("y", logit_p=pm.Normal("c", shape=4)[g] + pm.Normal("d", shape=3)[h] + age / 80 * pm.Normal("e"), observed=y)


def interaction(x, g, h, age, y):
    pm.Poisson("y", pm.math.exp(pm.Normal("c", shape=4)[g] + (x * pm.Normal("b", shape=(3, 2))[h]).sum(axis=1)), observed=y)


def softmax(x, g, h, age, y):
    pm.Categorical("y", logit_p=x @ pm.Normal("b", shape=(2, 3)), observed=y)


def written_out(x, g, h, age, y):
    pm.Bernoulli("y", 1 / (1 + pm.math.exp(-slopes(x))), observed=y)


def dispersion(x, g, h, age, y):
    pm.NegativeBinomial("y", mu=pm.math.exp(slopes(x)), alpha=2.0, observed=y)


def curve(x, g, h, age, y):
    pm.Normal("y", pm.math.exp(slopes(x)), pm.math.exp(pm.Normal("z", shape=4)[g]), observed=y)


def with_a_lapse(x, g, h, age, y):
    lapse = pm.Beta("lapse", 1, 9)
    pm.Bernoulli("y", lapse + (1 - lapse) * pm.math.sigmoid(slopes(x)), observed=y)


def saturating(x, g, h, age, y):
    pm.Bernoulli("y", pm.math.sigmoid(pm.Normal("a") * pm.math.tanh(pm.Normal("b") * x[:, 0])), observed=y)


def gompertz(x, g, h, age, y):
    pm.Normal(
        "y", pm.Normal("a") * pm.math.exp(-pm.HalfNormal("b") * pm.math.exp(-pm.HalfNormal("c") * age)), pm.HalfNormal("s"), observed=y
    )


def with_an_amplitude(x, g, h, age, y):
    pm.Normal("y", pm.Normal("c") * pm.math.exp(slopes(x)), pm.HalfNormal("s"), observed=y)


def shape_of_a_gamma(x, g, h, age, y):
    alpha = pm.HalfNormal("alpha", shape=9)[2]
    pm.Gamma("y", alpha, alpha / pm.math.exp(slopes(x)), observed=y)


def exposed(x, g, h, age, y):
    pm.Poisson("y", pm.math.exp(slopes(x)) * age / 10, observed=y)


def offset(x, g, h, age, y):
    pm.Poisson("y", pm.math.exp(slopes(x) + pm.math.log(age)), observed=y)


def exposed_at_a_rate(x, g, h, age, y):
    pm.Poisson("y", pm.HalfNormal("rate") * age / 10, observed=y)


def exposed_at_rates_of_groups(x, g, h, age, y):
    pm.Poisson("y", age * (pm.HalfNormal("rate", shape=4)[g] + pm.HalfNormal("more") * (h > 0)), observed=y)


def scale_in_proportion(x, g, h, age, y):
    pm.Exponential("y", scale=pm.HalfNormal("scale") * age / 10, observed=y)


def rate_in_proportion(x, g, h, age, y):
    pm.Exponential("y", pm.HalfNormal("rate") * age / 10, observed=y)


def spread_in_proportion(x, g, h, age, y):
    pm.HalfNormal("y", sigma=pm.HalfNormal("spread", shape=4)[g] * age / 10, observed=y)


def errors_in_proportion(x, g, h, age, y):
    pm.Laplace("y", 0.0, pm.HalfNormal("scale") * age / 10, observed=y)


def times_in_proportion(x, g, h, age, y):
    pm.Weibull("y", 1.5, pm.math.exp(slopes(x)) * age, observed=y)


def claims_in_proportion(x, g, h, age, y):
    alpha = pm.Gamma("alpha", 2, 1)
    pm.Gamma("y", alpha=alpha, beta=alpha / (pm.HalfNormal("size") * age), observed=y)


def claims_at_a_rate(x, g, h, age, y):
    pm.Gamma("y", alpha=pm.Gamma("alpha", 2, 1), beta=pm.HalfNormal("rate") * age, observed=y)


def lapse_by_group(x, g, h, age, y):
    lapse = pm.Beta("lapse", 1, 9, shape=4)[g]
    pm.Bernoulli("y", lapse * pm.math.sigmoid(slopes(x)), observed=y)


def table(x, g, h, age, y):
    pm.Bernoulli("y", pm.math.sigmoid(pm.Normal("c", shape=(4, 3))[g, h] + pm.Normal("d", shape=3)[h]), observed=y)


def columns(x, g, h, age, y):
    pm.Bernoulli("y", logit_p=slopes(x)[:, None] + pm.Normal("d", shape=2), observed=y)


# ---------- which features
@pytest.mark.parametrize(
    ("write", "features"),
    [
        (logistic, {"1": [()], "X[0]": [()], "X[1]": [()]}),
        (groups, {"1": [("g",), ("h",)], "age": [()]}),
        (interaction, {"1": [("g",)], "X[0]": [("h",)], "X[1]": [("h",)]}),
        (softmax, {"X[0]": [()], "X[1]": [()]}),
        (written_out, {"1": [()], "X[0]": [()], "X[1]": [()]}),
        (dispersion, {"1": [()], "X[0]": [()], "X[1]": [()]}),
        (curve, {"1": [("g",)], "X[0]": [()], "X[1]": [()]}),
        (columns, {"1": [()], "X[0]": [()], "X[1]": [()]}),
        (with_an_amplitude, {"1": [()], "X[0]": [()], "X[1]": [()]}),
        (shape_of_a_gamma, {"1": [()], "X[0]": [()], "X[1]": [()]}),
        (exposed, {"1": [()], "X[0]": [()], "X[1]": [()]}),
        (exposed_at_a_rate, {"1": [()]}),
        (exposed_at_rates_of_groups, {"1": [("g",)], "h": [()]}),
        (scale_in_proportion, {"1": [()]}),
        (rate_in_proportion, {"age": [()]}),
        (spread_in_proportion, {"1": [("g",)]}),
        (errors_in_proportion, {"1": [()]}),
        (times_in_proportion, {"1": [()], "X[0]": [()], "X[1]": [()]}),
        (claims_in_proportion, {"1": [()]}),
        (claims_at_a_rate, {"age": [()]}),
        (offset, {"1": [()], "X[0]": [()], "X[1]": [()]}),
        (lapse_by_group, None),
        (gompertz, None),
        (with_a_lapse, None),
        (saturating, None),
        (table, None),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_features_of_the_linear_predictor(write, features):
    """An index makes a feature for every level on which a coefficient differs; a sum of two indices their margins. What is public beside
    the predictor, as an exposure or an offset, makes none. Where fewer sums than unknowns would be released, or one for every cell, there
    are none.
    """
    likelihood = read_spec(made(write, G % 2), PUBLIC).likelihoods[0]
    if features is None:
        assert likelihood.predictor is None
        return
    names = [placeholder.name for placeholder in likelihood.inputs]
    found = zip(likelihood.predictor.names, likelihood.predictor.indices, strict=True)
    assert {name: [tuple(names[k] for k in several) for several in sets] for name, sets in found} == features


def test_private_inputs_have_no_projection():
    """Neither a private covariate nor a private index: a sum by public row is then not known to be of that row's records."""
    model = made(logistic, G % 2)
    assert read_spec(model, []).likelihoods[0].predictor is None
    assert read_spec(made(groups, G % 2), ["g", "age"]).likelihoods[0].predictor is None


# ---------- which sums
BOUNDS = {"interaction": (0, 6), "dispersion": (0, 6), "curve": (-1, 4)}


def released_of(write, y, noise=0, **how):
    bounds = {"y": BOUNDS[write.__name__]} if write.__name__ in BOUNDS else {}
    with seam_of(noise) as seam:
        released = pmdp.release(made(write, y), epsilon=1, public=PUBLIC, bounds=bounds, missing={}, **how)
    return released["y"], np.array(seam.exact[0]).reshape(released["y"].noisy.shape)


def scaled(x, centred=True):
    x = x - (x.max() + x.min()) / 2 if centred else x
    return x / np.abs(x).max()


def test_a_logistic_regression_releases_a_sum_for_every_feature():
    """Features count from the middle of their values and are 1 at most; without a constant they count from 0."""
    y = (RNG.random(N) < 0.4).astype(int)
    statistic, _ = released_of(logistic, y)
    D = np.column_stack([np.ones(N), scaled(X[:, 0]), scaled(X[:, 1])])
    np.testing.assert_allclose(statistic.values, [y @ D], atol=N / statistic.divisor)
    assert statistic.statistics == ("ones", "ones · X[0]", "ones · X[1]")
    statistic, _ = released_of(softmax, y)
    D = np.column_stack([scaled(X[:, 0], False), scaled(X[:, 1], False)])
    np.testing.assert_allclose(statistic.values[0].reshape(2, 3), D.T @ np.eye(3)[y], atol=N / statistic.divisor)


def test_a_sum_of_two_indices_releases_their_margins():
    """Less one level of the second: the levels of either add up to all records."""
    y = (RNG.random(N) < 0.4).astype(int)
    statistic, _ = released_of(groups, y)
    wanted = [*(y[k == G].sum() for k in range(4)), *(y[k == H].sum() for k in range(2)), y @ scaled(AGE)]
    np.testing.assert_allclose(statistic.values[0], wanted, atol=N / statistic.divisor)
    assert statistic.statistics[:2] == ("ones · g=0", "ones · g=1")


def test_sums_by_cell_stay_where_they_tell_more(monkeypatch):
    """With few rows, rows that hold no number, a record that may be left out, or more sums than ``MOST_PROJECTED``."""
    y = (RNG.random(N) < 0.4).astype(int)
    for rows in (np.round(X), np.where(X > 2, np.inf, X)):
        with pm.Model() as model:
            pm.Bernoulli("y", logit_p=slopes(pm.Data("X", rows)), observed=y)
        statistic = pmdp.release(model, epsilon=1, public=["X"], missing={})["y"]
        assert not statistic.weights.size
        assert len(statistic.noisy) == len(np.unique(rows, axis=0))
    model = made(logistic, y)
    statistic = pmdp.release(model, epsilon=1, public=["X"], missing=["y"])["y"]
    assert (len(statistic.noisy), statistic.sizes) == (N, "kept")
    monkeypatch.setattr("pymc_dp.releases.projection.MOST_PROJECTED", 2)
    assert len(pmdp.release(model, epsilon=1, public=["X"], missing={})["y"].noisy) == N


def test_bounds_of_the_predictor_are_not_needed_and_change_nothing():
    y = (RNG.random(N) < 0.4).astype(int)
    with seam_of(0):
        several = [
            pmdp.release(made(logistic, y), epsilon=1, public=["X"], missing={}, **how) for how in ({}, {"bounds": {"logit(y)": (-3, 3)}})
        ]
    assert several[0]["y"].values.tolist() == several[1]["y"].values.tolist()


# ---------- how far a record moves them
def opened(model, bounds):
    """What is public, and the paths to the records."""
    found, paths = read_model(model, PUBLIC)
    [planned] = planned_release(found, protection_of(bounds=bounds, public=PUBLIC, missing={})).statistics
    return public_cells_of(planned, paths["y"]), paths["y"]


VALUES = {"interaction": range(8), "dispersion": range(8), "softmax": range(3), "curve": np.linspace(-2, 5, 57)}


@pytest.mark.parametrize("write", [logistic, groups, interaction, softmax, dispersion, curve, columns], ids=lambda f: f.__name__)
def test_no_record_moves_the_sums_further_than_is_paid_for_and_one_does(write):
    """Every record takes every value, and all sums are made again: the declared distances are attained, in L1 and in L2."""
    values, y = VALUES.get(write.__name__, range(2)), np.zeros(N, dtype=float if write is curve else int)
    model = made(write, y)
    cells, paths = opened(model, {"y": BOUNDS[write.__name__]} if write.__name__ in BOUNDS else {})
    assert cells.shape[0] == 1
    outcome = paths.observed.variable
    while outcome.owner is not None:
        outcome = outcome.owner.inputs[0]
    start, farthest = outcome.get_value(), np.zeros(2, dtype=object)
    for record in range(N):
        found = []
        for several in product(values, repeat=start[0].size):
            other = start.copy()
            other[record] = np.reshape(several, other[record].shape)
            outcome.set_value(other)
            found.append(_totals(cells, paths).ravel())
        apart = np.abs(np.array(found)[:, None] - np.array(found)[None]).astype(object)
        farthest = np.maximum(farthest, [apart.sum(axis=-1).max(), (apart**2).sum(axis=-1).max()])
    declared = cells.planned.sensitivity
    assert (farthest <= [declared.difference, declared.square]).all()
    assert (farthest >= [0.999 * declared.difference, 0.999 * declared.square]).all()


def test_whatever_a_record_holds_it_moves_the_sums_no_further():
    """Missing and infinite values, and such as no count has, become values within the bounds."""
    model = made(dispersion, np.zeros(N))
    cells, paths = opened(model, {"y": (0, 6)})
    outcome = paths.observed.variable
    while outcome.owner is not None:
        outcome = outcome.owner.inputs[0]
    found = []
    for value in (0.0, np.nan, np.inf, -np.inf, 1e308, -3.0, 0.5, 5e-324, 6.0):
        outcome.set_value(np.where(np.arange(N) == 7, value, 0.0))
        found.append(_totals(cells, paths).ravel())
    apart = np.abs(np.array(found)[:, None] - np.array(found)[None]).sum(axis=-1)
    assert 0 < apart.max() <= cells.planned.sensitivity.difference


def test_the_largest_sums_are_within_what_is_kept_from_overflowing():
    """All records with the largest value, and features of one sign."""
    model = made(dispersion, np.full(N, 6))
    cells, paths = opened(model, {"y": (0, 6)})
    assert np.abs(_totals(cells, paths)).max() <= N * cells.planned.sensitivity.largest


def test_gaussian_noise_is_calibrated_to_the_squared_distance():
    statistic, _ = released_of(logistic, np.zeros(N, dtype=int), mechanism="gaussian", delta=1e-6)
    assert statistic.square == (statistic.weights**2).sum(axis=1).max()
    assert statistic.difference == np.abs(statistic.weights).sum(axis=1).max()


def test_sums_stay_within_64_bits():
    """Features are rounded to fewer points where sums could leave the integers; the weights still tell what was summed."""
    with pm.Model() as model:
        rows = pm.Data("X", np.random.default_rng(0).normal(size=(1000, 2)))
        pm.Poisson("y", pm.math.exp(slopes(rows)), observed=np.full(1000, 2.0**39))
    with seam_of(0):
        statistic = pmdp.release(model, epsilon=1, public=["X"], bounds={"y": (0, 2**39)}, missing={})["y"]
    exact = sum(2**39 * int(weight) for weight in statistic.weights[:, 1])
    assert statistic.noisy[0, 1] == exact
    assert statistic.divisor < 2**15


# ---------- their law
@pytest.mark.parametrize("kind", ["count", "counts", "moments", "columns"])
def test_the_law_is_that_of_a_weighted_sum(kind):
    """Against sums of outer products, row by row."""
    rng = np.random.default_rng(1)
    n, weights = rng.integers(1, 5, 7).astype(float), rng.normal(size=(7, 3))
    p = rng.uniform(0.1, 0.9, 7)
    if kind in ("count", "columns"):
        law, mean, covariance = Count(pt.constant(n), pt.constant(p)), (n * p)[:, None], (n * p * (1 - p))[:, None, None]
    elif kind == "counts":
        p = rng.dirichlet(np.ones(4), 7)
        law, mean = Counts(pt.constant(n), pt.constant(p)), n[:, None] * p
        covariance = n[:, None, None] * (np.eye(4) * p[:, None] - p[:, :, None] * p[:, None])
    else:
        m, root = rng.normal(size=(7, 2)), rng.normal(size=(7, 2, 2))
        one = root @ root.transpose(0, 2, 1)
        law = Moments(pt.constant(n), (m[:, 0], m[:, 1]), ((one[:, 0, 0],), (one[:, 1, 0], one[:, 1, 1])))
        mean, covariance = n[:, None] * m, n[:, None, None] * one
    if kind == "columns":
        law = Count(pt.constant(n[:, None]), pt.constant(np.stack([p, 1 - p], axis=1)))
        found = projected(law, np.stack([weights, 2 * weights], axis=1))
        first, second = found.mean.eval()[0], found.covariance.eval()[0]
        np.testing.assert_allclose(first, [weights.T @ (n * p), 2 * weights.T @ (n * (1 - p))])
        np.testing.assert_allclose(second[1], 4 * (weights.T * (n * p * (1 - p))) @ weights)
        return
    found = projected(law, weights)
    K = mean.shape[1]
    wanted = np.einsum("gp,gk->pk", weights, mean).ravel()
    spread = np.einsum("gp,gq,gkl->pkql", weights, weights, covariance).reshape(3 * K, 3 * K)
    np.testing.assert_allclose(found.mean.eval()[0], wanted)
    np.testing.assert_allclose(found.covariance.eval()[0], spread, atol=1e-12)


def test_the_private_model_has_this_law_under_gaussian_noise():
    y = (RNG.random(N) < 0.4).astype(int)
    model = made(logistic, y)
    released = pmdp.release(model, epsilon=1, delta=1e-6, mechanism="gaussian", public=PUBLIC, missing={})
    statistic, private = released["y"], pmdp.rewrite(model, released)
    density = private.compile_logp(vars=private["y"], mode="FAST_COMPILE")
    D = np.column_stack([np.ones(N), scaled(X[:, 0]), scaled(X[:, 1])])
    for a, b in ((0.3, [1.0, -0.5]), (-2.0, [0.0, 3.0])):
        p = 1 / (1 + np.exp(-(a + X @ np.array(b))))
        covariance = (D.T * (p * (1 - p))) @ D + statistic.noise.standard_deviation**2 * np.eye(3)
        wanted = multivariate_normal(D.T @ p, covariance).logpdf(statistic.values[0])
        assert density({"a": a, "b": np.array(b)}) == pytest.approx(wanted, abs=1e-3)


def test_laplace_noise_is_integrated_over():
    """Latents integrated over by their own standard normal law give the density of normal sums with Laplace noise."""
    y = (RNG.random(N) < 0.4).astype(int)
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=pm.Normal("b") * pm.Data("X", X)[:, 0], observed=y)
    released = pmdp.release(model, epsilon=1, public=["X"], missing={})
    statistic, private = released["y"], pmdp.rewrite(model, released)
    assert statistic.noisy.shape == (1, 1)
    assert private["y_noise"].eval().shape == (1, 1)
    density = private.compile_logp(vars=private["y"], mode="FAST_COMPILE")
    z, scale, D = statistic.values[0, 0], statistic.noise.spread, scaled(X[:, 0], False)
    x, step = np.linspace(-9, 9, 1201), 18 / 1200
    for b in (0.0, 1.0, -2.0):
        p = 1 / (1 + np.exp(-b * X[:, 0]))
        mean, sd = D @ p, np.sqrt((D**2) @ (p * (1 - p)))
        sums = mean + sd * x
        wanted = (np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi) * np.exp(-np.abs(z - sums) / scale) / (2 * scale)).sum() * step
        latent = np.array([density({"b": np.array(b), "y_noise": np.array([[value]])}) for value in x[::2]])
        found = (np.exp(latent - x[::2] ** 2 / 2) / np.sqrt(2 * np.pi)).sum() * step * 2
        differences = np.log(found) - np.log(wanted)
        if b == 0.0:
            constant = differences
        assert differences == pytest.approx(constant, abs=1e-3)


def logit(eta, y):
    pm.Bernoulli("y", logit_p=eta, observed=y)


def probit(eta, y):
    pm.Bernoulli("y", pm.math.invprobit(eta), observed=y)


def log_rate(eta, y):
    pm.Exponential("y", pm.math.exp(eta), observed=y)


def levels(eta, y):
    pm.Categorical("y", logit_p=pt.stack([pt.zeros_like(eta), eta, -eta], axis=1), observed=y)


def best(model):
    """Where the density of the two unknowns is largest."""
    density = model.compile_logp(jacobian=False, mode="FAST_COMPILE")
    return minimize(lambda at: -float(density({"a": at[0], "b": at[1]})), [0.0, 0.0], method="Nelder-Mead").x


@pytest.mark.parametrize("write", [logit, probit, log_rate, levels], ids=lambda f: f.__name__)
def test_taken_for_exact_sums_tell_where_the_coefficients_are(write):
    """Whatever the link: near where all records put them, by less than a standard deviation of theirs."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=1500)
    eta = -1 + 1.5 * x
    y = {
        logit: lambda: rng.random(1500) < 1 / (1 + np.exp(-eta)),
        probit: lambda: rng.normal(size=1500) < eta,
        log_rate: lambda: rng.exponential(np.exp(-eta)),
        levels: lambda: (np.stack([0 * eta, eta, -eta], axis=1) + rng.gumbel(size=(1500, 3))).argmax(axis=1),
    }[write]()
    with pm.Model() as model:
        write(pm.Normal("a", 0, 3) + pm.Normal("b", 0, 3) * pm.Data("x", x), np.asarray(y, dtype=float if write is log_rate else int))
    with seam_of(0):
        released = pmdp.release(model, epsilon=1, public=["x"], bounds={"y": (0, 1e4)} if write is log_rate else {}, missing={})
    assert released["y"].weights.size
    private = pmdp.rewrite(model, released, noise_aware=False)
    assert np.abs(best(private) - best(model)).max() < (0.1 if write is probit else 0.06)


def test_a_release_is_written_and_read(tmp_path):
    """With its public weights, which the density rests on; and new values can be drawn for its rows."""
    y = (RNG.random(N) < 0.4).astype(int)
    model = made(logistic, y)
    released = pmdp.release(model, epsilon=1, delta=1e-6, mechanism="gaussian", public=PUBLIC, missing={})
    released.to_netcdf(tmp_path / "sums.nc")
    back = pmdp.Release.from_netcdf(tmp_path / "sums.nc")
    assert back == released
    np.testing.assert_array_equal(back["y"].weights, released["y"].weights)
    densities = [pmdp.rewrite(model, each).compile_logp(mode="FAST_COMPILE") for each in (released, back)]
    point = pmdp.rewrite(model, released).initial_point()
    assert densities[0](point) == densities[1](point)


def test_inspect_says_what_is_released_of_many_rows():
    reason = pmdp.inspect(made(groups, G % 2), public=PUBLIC).rows[0].reason
    assert "if there are many distinct public rows" in reason
    assert "1, age" in reason
    assert pmdp.inspect(made(table, G % 2), public=PUBLIC).rows[0].reason.count("distinct public rows") == 0


def test_draws_of_the_released_sums_have_their_law():
    y = (RNG.random(N) < 0.4).astype(int)
    model = made(logistic, y)
    released = pmdp.release(model, epsilon=1, delta=1e-6, mechanism="gaussian", public=PUBLIC, missing={})
    private = pmdp.rewrite(model, released)
    drawn = pm.draw(pm.do(private, {"a": 0.0, "b": np.zeros(2)})["y"], 4000, random_seed=1)[:, 0]
    D = np.column_stack([np.ones(N), scaled(X[:, 0]), scaled(X[:, 1])])
    spread = 0.25 * D.T @ D + released["y"].noise.standard_deviation ** 2 * np.eye(3)
    np.testing.assert_allclose(drawn.mean(axis=0), 0.5 * D.sum(axis=0), atol=5 * np.sqrt(np.diag(spread) / 4000).max())
    np.testing.assert_allclose(np.cov(drawn.T), spread, atol=0.12 * np.diag(spread).max())
