"""The law of noisy second moments of normal vectors: against simulated clamped vectors, and through every kind of cell.

False alarms: comparisons with simulated moments allow 6 standard errors (2e-9 each, some 200 of them), beside what the series leaves out.
"""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from checks import mostly_slow

import pymc_dp as pmdp
from pymc_dp.families.second_moments import MOST_ENTRIES, Regression
from pymc_dp.laws import law as laws
from pymc_dp.private_models.likelihood import law_of, plan_of
from pymc_dp.private_models.vectors import vectors

LOWER, UPPER = (-2.0, -1.0, -3.0), (2.0, 5.0, 3.0)
LAWS = {
    "inside": ([0.1, 2.0, 0.0], [0.3, 0.4, 0.2], [0.6, -0.3, 0.1], 0.0),
    "a tenth at a bound": ([0.0, 4.0, 2.5], [1.2, 0.8, 0.4], [0.7, -0.5, -0.3], 2e-3),
    "a half at bounds": ([1.0, 2.0, 0.0], [3.0, 4.0, 3.0], [0.5, -0.4, 0.2], 4e-3),
    "nearly singular": ([0.0, 2.0, 0.0], [0.5, 0.8, 0.7], [0.95, 0.9, 0.92], 0.0),
}


def regression(q=3, **others):
    return Regression(("1",), (False,), (-1.0,), (1.0,), LOWER[:q], UPPER[:q], **{"scale_known": False} | others)


def covariance_of(sd, correlations):
    first, second, third = correlations
    r = np.array([[1, first, second], [first, 1, third], [second, third, 1]])
    return np.outer(sd, sd) * r


def moments(law):
    """Mean (K,) and covariance (K, K) of the sums of one record."""
    mean, covariance = pytensor.function([], [law.mean, law.covariance], mode="FAST_COMPILE")()
    assert np.allclose(covariance, covariance.swapaxes(-1, -2))
    return mean[0], covariance[0]


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("name", LAWS)
def test_the_moments_of_one_record_by_simulation(name, known):
    mu, sd, correlations, short = LAWS[name]
    covariance = covariance_of(sd, correlations)
    one = regression(scale_known=known)
    law = vectors(one, pt.ones(1), pt.constant(np.reshape(mu, (1, 3, 1))), pt.constant(covariance[None]))
    mean, spread = moments(law)
    N = 200_000
    y = np.random.default_rng(1).multivariate_normal(mu, covariance, N)
    u = (np.clip(y, LOWER, UPPER) - np.add(LOWER, UPPER) / 2) / (np.subtract(UPPER, LOWER) / 2)
    columns = np.column_stack([np.ones(N), u])
    sums = np.stack([columns[:, i] * columns[:, j] for i, j in one.entries], axis=1)
    assert (np.abs(sums.mean(0) - mean) <= 6 * sums.std(0) / np.sqrt(N) + short).all()
    apart = sums - sums.mean(0)
    products = apart[:, :, None] * apart[:, None]
    tolerance = 6 * products.std(0) / np.sqrt(N) + 1e-9
    linear = [k for k, (i, _) in enumerate(one.entries) if i == 0]
    off = np.abs(products.mean(0) - spread)
    assert (off <= tolerance + short)[np.ix_(linear, linear)].all()
    if not short:  # products of clamped entries have a covariance that rests on their fourth moments
        assert (off <= tolerance).all()
    assert np.linalg.eigvalsh(spread).min() >= -1e-12 * np.linalg.eigvalsh(spread).max()


def test_the_count_stands_before_the_sums_where_it_is_released():
    """Predictive draws of 7 vectors: the count is 7, and the sums have 7 times the moments of one."""
    mu, sd, correlations, _ = LAWS["inside"]
    one = regression(counted=True)
    law = vectors(one, pt.full(1, 7.0), pt.constant(np.reshape(mu, (1, 3, 1))), pt.constant(covariance_of(sd, correlations)[None]))
    assert one.entries[0] == (0, 0)
    draws = pm.draw(laws.simulated(law, None, (1, 10)), 20_000, random_seed=1, mode="FAST_COMPILE")[:, 0]
    mean, covariance = moments(law)
    np.testing.assert_allclose(draws[:, 0], 7.0, atol=1e-4)
    own = np.sqrt(7 * np.diag(covariance))
    assert (np.abs(draws[:, 1:].mean(0) - 7 * mean) <= 6 * own / np.sqrt(20_000)).all()
    assert np.abs(np.cov(draws[:, 1:].T) / np.outer(own, own) - 7 * covariance / np.outer(own, own)).max() <= 6 * np.sqrt(2 / 20_000)


def test_of_whom_clamping_is_part_of_the_law():
    assert regression().clamped_vectors
    many = Regression(("1",), (False,), (-1.0,), (1.0,), (0.0,) * (MOST_ENTRIES + 1), (1.0,) * (MOST_ENTRIES + 1), scale_known=False)
    assert not many.clamped_vectors
    about = Regression(("1", "x"), (False, True), (-1.0, -1.0), (1.0, 1.0), (0.0, 0.0), (1.0, 1.0), scale_known=False)
    assert not about.clamped_vectors


def bivariate(rows):
    with pm.Model() as model:
        chol, *_ = pm.LKJCholeskyCov("chol", n=2, eta=1, sd_dist=pm.HalfNormal.dist(2, shape=2))
        pm.MvNormal("y", pm.Normal("mu", 0, 3, shape=2), chol=chol, observed=rows)
    return model


ROWS = np.random.default_rng(4).multivariate_normal([1, -0.5], [[1, 0.6], [0.6, 2]], 60)
HOLES = np.where(np.arange(60)[:, None] % 7 == [0, 3], np.nan, ROWS)
KINDS = {
    "public": (lambda: bivariate(ROWS), {}),
    "free": (lambda: bivariate(ROWS), {"neighbours": "add_remove"}),
    "kept": (lambda: bivariate(HOLES), {"missing": ["y"]}),
    "gaussian": (lambda: bivariate(ROWS), {"mechanism": "gaussian", "delta": 1e-6}),
}


@pytest.mark.filterwarnings("ignore")  # PyMC warns of imputation
@pytest.mark.parametrize("kind", mostly_slow(KINDS, 1, 2))
def test_every_kind_of_cell_has_a_density_with_the_right_gradient(kind):
    make, more = KINDS[kind]
    released = pmdp.release(make(), epsilon=2.0, bounds={"y": (-8, 8)}, **more)
    private = pmdp.rewrite(make(), released)
    point = {name: np.asarray(value, dtype=float) for name, value in private.initial_point().items()}
    rng = np.random.default_rng(0)
    point = {name: value + 0.1 * rng.normal(size=value.shape) for name, value in point.items()}
    both = private.compile_fn([private.logp(), private.dlogp()], mode="FAST_COMPILE", inputs=private.value_vars, on_unused_input="ignore")
    slope, at = both(point)[1], 0
    for variable in private.value_vars:
        name = variable.name
        for k in np.ndindex(point[name].shape):
            step = np.zeros_like(point[name])
            step[k] = 1e-5
            above, below = (float(both(point | {name: point[name] + sign * step})[0]) for sign in (1, -1))
            assert slope[at] == pytest.approx((above - below) / 2e-5, rel=1e-4, abs=1e-4), (name, k)
            at += 1


def test_with_gaussian_noise_the_density_is_the_normal_one():
    """Written out once more by numpy, at three points: sums of n vectors of which nothing is clamped."""
    released = pmdp.release(bivariate(ROWS), epsilon=1000.0, bounds={"y": (-30, 30)}, mechanism="gaussian", delta=1e-6)
    [noisy] = released.statistics
    found, expected = [], []
    private = pmdp.rewrite(bivariate(ROWS), released)
    density = private.compile_logp(vars=private.observed_RVs, mode="FAST_COMPILE", jacobian=False)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        factor = np.array([[1.0, 0.0], [0.3, 0.8]]) + np.tril(0.3 * rng.random((2, 2)))
        mu, S = rng.normal(size=2) / 30, factor @ factor.T / 30**2
        n, m = len(ROWS), mu
        mean = n * np.array([*m, m[0] ** 2 + S[0, 0], m[0] * m[1] + S[0, 1], m[1] ** 2 + S[1, 1]])
        pairs = [(0, 0), (0, 1), (1, 1)]
        whole = np.zeros((5, 5))
        whole[:2, :2] = S
        for k, (a, b) in enumerate(pairs):
            whole[:2, 2 + k] = whole[2 + k, :2] = m[a] * S[:, b] + m[b] * S[:, a]
            for j, (c, d) in enumerate(pairs):
                own = S[a, c] * S[b, d] + S[a, d] * S[b, c]
                whole[2 + k, 2 + j] = own + m[a] * m[c] * S[b, d] + m[a] * m[d] * S[b, c] + m[b] * m[c] * S[a, d] + m[b] * m[d] * S[a, c]
        whole = n * whole + noisy.noise.standard_deviation**2 * np.eye(5)
        off = noisy.values.ravel() - mean
        expected.append(-0.5 * (off @ np.linalg.solve(whole, off) + np.linalg.slogdet(whole)[1]))
        packed = np.array([np.log(factor[0, 0]), factor[1, 0], np.log(factor[1, 1])])
        found.append(float(density({"mu": 30 * mu, "chol_cholesky-cov-packed__": packed})))
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-6)


def test_a_table_of_private_cells_keeps_its_law():
    """A private index: every cell has a count and moments of its own."""
    with pm.Model() as model:
        g = pm.Data("g", np.arange(60) % 2)
        pm.MvNormal("y", pm.Normal("mu", 0, 3, shape=(2, 2))[g], cov=pt.eye(2), observed=ROWS)
    released = pmdp.release(model, epsilon=2.0, bounds={"y": (-8, 8)})
    [noisy] = released.statistics
    assert noisy.sizes == "simplex"
    assert noisy.statistics[0] == "n"
    law = law_of(noisy, [pt.zeros((2, 2, 1)), pt.constant(np.tile(np.eye(2), (2, 1, 1)))], pt.constant(np.full(2, 30.0)))
    assert law.counted
    assert plan_of(noisy, law).form == "latent"
    assert np.isfinite(pmdp.rewrite(model, released).compile_logp(mode="FAST_COMPILE")(pmdp.rewrite(model, released).initial_point()))


def test_inspect_says_what_becomes_of_values_beyond_the_bounds():
    [row] = pmdp.inspect(bivariate(ROWS), bounds={"y": (-8, 8)}).rows
    assert "without covariates the likelihood allows for that" in row.reason
    assert "slopes come out too flat" not in row.reason
