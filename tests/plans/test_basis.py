"""What is released of features of the same private covariates: others are taken off, coefficients follow exactly."""

import json
from functools import cache

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import seam_of
from pytensor.graph.traversal import ancestors
from scipy.stats import norm

import pymc_dp as pmdp
from pymc_dp.families.grid import POINTS
from pymc_dp.models.reader import read_spec
from pymc_dp.plans.covariate_features import CovariateFeatures
from pymc_dp.private_models.plug_in_moments import in_users_units, log_likelihood

N = 40
RNG = np.random.default_rng(4)
X, W, A, K = RNG.uniform(1, 4, N), RNG.normal(size=N), RNG.integers(0, 2, N).astype(float), RNG.integers(0, 4, N)
BOUNDS = {"x": (1, 4), "w": (-2, 3), "a": {0, 1}, "k": (0, 20), "y": (-5, 5)}


def powers(x, w, a, k):
    return [x, x**2, x**3, x**4]


def backwards(x, w, a, k):
    return [x**2, x]


def product(x, w, a, k):
    return [x * w, w, x]


def with_truth(x, w, a, k):
    return [a, x, x**2, a * x, a * x**2]


def smooth(x, w, a, k):
    return [x, pt.log(x), pt.sqrt(x), w, w * pt.log(x)]


def whole(x, w, a, k):
    return [k, k**2]


def spline(x, w, a, k):
    return [x, pt.maximum(x - 2, 0), pt.maximum(x - 3, 0)]


def three(x, w, a, k):
    return [x, w, k, x * w, x * k, w * k, x * w * k]


CHANGED = [powers, backwards, product, with_truth, smooth, whole, spline, three]


def hats(x, w, a, k):
    """The last is 1 less the others; nothing is gained by taking off some from others."""
    return [pt.maximum(1 - pt.abs(x - knot), 0) for knot in (1, 2, 3, 4)]


def steps(x, w, a, k):
    return [x, pt.switch(x > 2, 1.0, 0.0), pt.switch(x > 3, 1.0, 0.0)]


def indicators(x, w, a, k):
    return [pt.eq(k, 1) * 1.0, pt.eq(k, 2) * 1.0, w]


def twice(x, w, a, k):
    return [x, 2 * x + 1, w]


@cache
def released_of(mean, link=""):
    """A release, the exact integers of it, and the features as a function of the covariates."""
    with pm.Model() as model:
        given = [pm.Data("x", X), pm.Data("w", W), pm.Data("a", A), pm.Data("k", K)]
        features = mean(*given)
        b = pm.Normal("b", shape=len(features) + 1)
        mu = b[0] + sum(b[i + 1] * feature for i, feature in enumerate(features))
        if link:
            pm.Bernoulli("y", logit_p=mu, observed=(W > 0).astype(int))
        else:
            pm.Normal("y", mu, pm.HalfNormal("s"), observed=W)
    used = {name: pair for name, pair in BOUNDS.items() if name in {*map(str, model.rvs_to_values), *names_in(model, features)}}
    bounds = {name: pair for name, pair in used.items() if name != "y"} | ({"logit(y)": (-3, 3)} if link else {"y": (-5, 5)})
    with seam_of(0) as seam:
        released = pmdp.release(model, epsilon=1.0, bounds=bounds)
    [likelihood] = read_spec(model, released.public, {N}).likelihoods
    return released, seam.exact[0], CovariateFeatures(likelihood, {name: ends for name, *ends in released["y"].covariates})


def names_in(model, features):
    return {variable.name for variable in ancestors(features)} & {"x", "w", "a", "k"}


def anywhere(function, many=20_000):
    """Covariates within their bounds, and the features there (many, F)."""
    columns = []
    for entry in function.entries:
        values = RNG.uniform(entry.lower, entry.upper, many)
        columns.append(RNG.choice(entry.levels, many) if entry.levels else np.rint(values) if entry.whole else values)
    return function(np.column_stack(columns))[:, 0]


def on_scale(regression, features):
    centre, half = (np.array(part[: len(regression.names)]) for part in regression.centres())
    return (regression.released(features) - centre) / half


@pytest.mark.parametrize("mean", CHANGED, ids=lambda mean: mean.__name__)
def test_what_is_released_fills_its_bounds_and_keeps_within_them(mean):
    released, _, function = released_of(mean)
    regression = released["y"].regression
    assert regression.basis
    u = on_scale(regression, anywhere(function))
    assert np.abs(u).max() <= 1 + 1e-9
    if mean is not three:  # whose ends are seldom met at random
        assert (np.ptp(u[:, 1:], axis=0) > 1.9).all()


def test_of_powers_chebyshev_polynomials_are_released():
    released, _, function = released_of(powers)
    features = anywhere(function)
    t = np.arccos((features[:, 1] - 2.5) / 1.5)
    np.testing.assert_allclose(on_scale(released["y"].regression, features), np.cos(t[:, None] * np.arange(5)), atol=3e-3)


def test_of_a_product_what_is_released_is_the_product_less_middles():
    released, _, function = released_of(product)
    features = anywhere(function)
    u = on_scale(released["y"].regression, features)
    np.testing.assert_allclose(u[:, 1], u[:, 2] * u[:, 3], atol=1e-3)
    names = released["y"].statistics
    assert any("w" in name and "- 2.5 w" in name for name in names), names


@pytest.mark.parametrize("mean", [hats, steps, indicators, twice], ids=lambda mean: mean.__name__)
def test_features_stay_where_little_is_gained(mean):
    regression = released_of(mean)[0]["y"].regression
    assert regression.basis == ()


def test_a_single_feature_stays():
    assert released_of(lambda x, w, a, k: [x**2])[0]["y"].regression.basis == ()


@pytest.mark.parametrize("mean", CHANGED, ids=lambda mean: mean.__name__)
def test_coefficients_follow_exactly(mean):
    """The linear predictor of what is released is that of the features; there and back coefficients are the same."""
    released, _, function = released_of(mean)
    regression, features = released["y"].regression, anywhere(function, 200)
    phi = RNG.normal(size=features.shape[1])
    scaled = phi @ regression.onto_scaled()
    size = np.abs(features * phi).sum(axis=1).max()
    np.testing.assert_allclose(on_scale(regression, features) @ scaled, features @ phi, atol=1e-11 * size)
    np.testing.assert_allclose(in_users_units(regression, scaled), phi, rtol=1e-8)


@pytest.mark.parametrize("mean", CHANGED, ids=lambda mean: mean.__name__)
def test_exact_sums_are_those_of_the_records(mean):
    """Without noise the likelihood of sums is that of the records: up to the lattice, and to nothing else."""
    released, exact, function = released_of(mean)
    statistic, regression = released["y"], released["y"].regression
    given = {"x": X, "w": W, "a": A, "k": K.astype(float)}
    features = function(np.column_stack([given[name] for name, *_ in statistic.covariates]))[:, 0]
    u = np.column_stack([on_scale(regression, features), W / 5])
    expected = [(u[:, i] * u[:, j]).sum() for i, j in regression.entries]
    exact = np.array(exact).ravel() / regression.weights
    np.testing.assert_allclose(exact * statistic.lattice, expected, atol=2 * N / POINTS)
    scale, several = 1.3, RNG.normal(size=(2, features.shape[1])) @ np.linalg.inv(regression.onto_scaled())
    sums = exact.reshape(statistic.noisy.shape) * statistic.lattice
    ours = [
        log_likelihood(regression, pt.constant(sums), pt.constant(float(N)), statistic.known * statistic.lattice,
                       pt.constant(phi[None]), pt.constant(np.array([scale]))).eval().item()
        for phi in several
    ]  # fmt: skip
    theirs = [norm.logpdf(W, features @ phi, scale).sum() for phi in several]
    np.testing.assert_allclose(np.subtract(*ours), np.subtract(*theirs), rtol=0.01, atol=0.05)


def test_a_basis_is_in_the_file_and_old_files_have_none(tmp_path):
    released, _, _ = released_of(powers)
    released.to_netcdf(tmp_path / "r.nc")
    again = pmdp.Release.from_netcdf(tmp_path / "r.nc")
    assert again["y"].regression == released["y"].regression
    dataset = released["y"].to_dataset()
    facts = json.loads(dataset.attrs["statistic"])
    del facts["regression"]["basis"]
    old = type(released["y"]).of_dataset(dataset.assign_attrs(statistic=json.dumps(facts)))
    assert old.regression.basis == ()
    np.testing.assert_allclose(old.regression.onto_scaled()[1:, 0], old.regression.centres()[0][1:5])


def test_scores_are_those_of_what_is_released():
    """With a link, too: the linear predictor of a record is the same at any coefficients."""
    released, _, function = released_of(powers, link="logit")
    regression, features = released["y"].regression, anywhere(function, 100)
    assert regression.basis
    phi = RNG.normal(size=5)
    np.testing.assert_allclose(on_scale(regression, features) @ (phi @ regression.onto_scaled()), features @ phi, rtol=1e-9)


@pytest.mark.parametrize("mean", [powers, with_truth, three], ids=lambda mean: mean.__name__)
def test_no_record_moves_what_another_adds(mean):
    """Sums of records are the sums of each alone, bit by bit, whatever they hold."""
    released, _, function = released_of(mean)
    regression, features = released["y"].regression, anywhere(function, 301)
    features[:3] = np.array([[np.nan], [np.inf], [-1e300]])
    responses = RNG.uniform(-9, 9, (301, 1))
    whole = regression.scaled(features, responses)
    assert np.abs(whole).max() <= POINTS
    for rows in (*(slice(place, place + 1) for place in range(60)), slice(5, 12), slice(100, None)):
        np.testing.assert_array_equal(regression.released(features[rows]), regression.released(features)[rows])
        np.testing.assert_array_equal(regression.scaled(features[rows], responses[rows]), whole[rows])


@pytest.mark.parametrize("mean", [powers, product, with_truth], ids=lambda mean: mean.__name__)
def test_no_two_records_are_further_apart_than_is_paid_for(mean):
    """Of 40,000 pairs, half of them at ends and middles of their bounds: between 70 % and all of what noise is calibrated to."""
    released, _, function = released_of(mean)
    statistic, regression = released["y"], released["y"].regression
    features, responses = anywhere(function), RNG.uniform(-6, 6, (20_000, 1))
    ends = [RNG.choice([entry.lower, (entry.lower + entry.upper) / 2, entry.upper], 20_000) for entry in function.entries]
    features = np.concatenate([features, function(np.column_stack(ends))[:, 0]])
    columns = regression.scaled(features, np.concatenate([responses, RNG.choice([-5.0, 0.0, 5.0], (20_000, 1))]))
    records = np.stack(list(regression.exact(columns)), axis=1)
    others = np.concatenate([RNG.permutation(records[:20_000]), RNG.permutation(records[20_000:])])
    apart = np.abs(records - others)
    assert 0.7 * statistic.difference <= apart.sum(axis=1).max() <= statistic.difference
    assert 0.7 * statistic.square <= (apart.astype(float) ** 2).sum(axis=1).max() <= statistic.square


def test_what_is_released_rests_on_bounds_and_on_no_record():
    found = []
    for values in (X, np.full(N, np.inf), X * 1e9):
        with pm.Model() as model:
            x, b = pm.Data("x", values), pm.Normal("b", shape=3)
            pm.Normal("y", b[0] + b[1] * x + b[2] * x**2, 1.0, observed=W)
        found.append(pmdp.release(model, epsilon=1.0, bounds={"x": (1, 4), "y": (-5, 5)})["y"])
    assert found[0].regression.basis
    assert all(statistic.facts() == found[0].facts() for statistic in found)
