"""Sums of residuals after second moments: how far one record moves them, when there are any, what they cost and what is kept."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from checks import flat, seam_of
from scipy.stats import norm

import pymc_dp as pmdp
from pymc_dp.families.grid import POINTS
from pymc_dp.families.residuals import Residuals, kept, next_residuals, sensitivity_of, worth_it
from pymc_dp.families.second_moments import Regression
from pymc_dp.plans.protection import protection_of
from pymc_dp.releases.from_records import prepared
from pymc_dp.releases.release import Release

N = 3000
RNG = np.random.default_rng(6)
X = np.clip(RNG.normal(0.3, 0.8, (N, 2)), -2, 2)
Y = np.clip(0.5 + X @ [0.6, -0.3] + RNG.normal(0, 0.5, N), -5, 5)
BOUNDS = {"y": (-5, 5), "x": (-2, 2)}
PLENTY = 6.0
"""An epsilon with which so many records are enough."""


def made(x=X, y=Y, sigma=None):
    with pm.Model() as model:
        mean = pm.Normal("a") + pm.Data("x", x) @ pm.Normal("b", shape=x.shape[1])
        pm.Normal("y", mean, sigma or pm.HalfNormal("s"), observed=y)
    return model


def whole(model=None, **arguments):
    return pmdp.release(model or made(), **{"bounds": BOUNDS, "missing": {}, "mechanism": pmdp.Laplace(residuals=True)} | arguments)


def released(model=None, epsilon=PLENTY, **arguments):
    return whole(model, epsilon=epsilon, **arguments)["y"]


def regression(m):
    return Regression(tuple("1abcde"[: m + 1]), (False, *[True] * m), (-1.0,) * (m + 1), (1.0,) * (m + 1), (-1.0,), (1.0,), False)


def brought(residuals, features, responses):
    """What single records bring, as Python's integers (N, F + 1)."""
    whole = np.rint(np.column_stack([features, responses]).T * POINTS)
    columns = residuals.columns(whole.copy()).astype(np.int64)
    entries = zip(residuals.entries(), residuals.weights, strict=True)
    return np.array([columns[i] * columns[j] * weight for (i, j), weight in entries]).T.astype(object)


@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_no_two_records_are_further_apart(m):
    """At many coefficients and clamps, records at corners and between: the farthest pairs are as far apart as the sensitivity says."""
    rng, sensitivity = np.random.default_rng(m), sensitivity_of(regression(m))
    farthest, farthest_square = 0, 0
    for round_ in range(60):
        b = rng.normal(size=m + 1) * rng.choice([0, 0.1, 1.0])
        residuals = Residuals(tuple(b), float(rng.choice([2.0**-20, 0.1, 0.37, 2 / 3, 1.0])))
        features = np.column_stack([np.ones(60), rng.uniform(-1, 1, (60, m)) if round_ % 2 else rng.choice([-1.0, 1.0], (60, m))])
        # The farthest have the same features, a residual at one end of the wider clamp and one at the other of the narrower.
        wanted = residuals.clamp * rng.choice([-1.5, -1.0, 1.0, 1.5, rng.uniform(-1, 1)], 60)
        responses = np.clip(features @ b + wanted, -1, 1)
        features[1::2] = features[::2]
        both = brought(residuals, features, responses)
        apart = np.abs(both[:, None] - both[None])
        farthest = max(farthest, apart.sum(axis=2).max())
        farthest_square = max(farthest_square, (apart**2).sum(axis=2).max())
        assert np.abs(both).max() <= sensitivity.largest
    # Of multiples of 3 lattice units none is 2 POINTS.
    assert 0 <= sensitivity.difference - farthest < 1e-5 * sensitivity.difference
    assert 0 <= sensitivity.square - farthest_square < 1e-5 * sensitivity.square


@pytest.mark.parametrize("m", [2, 5])
def test_climbing_finds_no_pair_further_apart(m):
    """From random pairs, one number after the other to where the distance is largest on a grid: of residuals as if they were free."""
    rng, sensitivity, F = np.random.default_rng(m), sensitivity_of(regression(m)), m + 1
    residuals = Residuals((0.0,) * F, 2 / 3)  # a residual is the response, and 3/2 of the clamp its largest value
    ends = np.linspace(-1, 1, 13)

    def apart(pairs):
        one, two = (
            brought(residuals, np.column_stack([np.ones(len(half)), half[:, :-1]]), half[:, -1]) for half in np.split(pairs, 2, axis=1)
        )
        return np.abs(one - two).sum(axis=1)

    best = 0
    for _ in range(12):
        pair = rng.choice(ends, (1, 2 * F))
        for _ in range(4):
            for k in rng.permutation(2 * F):
                tried = np.repeat(pair, len(ends), axis=0)
                tried[:, k] = ends
                pair = tried[[int(np.argmax(apart(tried)))]]
        best = max(best, apart(pair)[0])
    assert best <= sensitivity.difference
    assert best >= 0.95 * sensitivity.difference


def test_a_residual_rests_on_its_own_record():
    rng = np.random.default_rng(0)
    residuals = Residuals((0.1, 0.3, -0.7), 0.21)
    features, responses = np.column_stack([np.ones(37), rng.uniform(-1, 1, (37, 2))]), rng.uniform(-1, 1, 37)
    together = brought(residuals, features, responses)
    alone = [brought(residuals, features[[k]], responses[[k]])[0] for k in range(37)]
    np.testing.assert_array_equal(together, np.array(alone))
    order = rng.permutation(37)
    np.testing.assert_array_equal(together[order], brought(residuals, features[order], responses[order]))


def test_clamping_leaves_what_the_normal_law_says():
    rng = np.random.default_rng(1)
    z = rng.normal(size=10**6)
    for k in (0.5, 1.5, 2.5):
        inside, square = kept(k)
        assert inside == pytest.approx(norm.cdf(k) - norm.cdf(-k))
        assert inside == pytest.approx((z * np.clip(z, -k, k)).mean(), abs=0.005)
        assert square == pytest.approx((np.clip(z, -k, k) ** 2).mean(), abs=0.005)


def test_what_is_released_are_sums_over_records():
    """Without noise: what the second moments put the coefficients at, and the sums there."""
    with seam_of(0):
        statistic = released()
    place, values = statistic.residuals, statistic.values[0]
    u, w = X / 2, Y / 5
    D = np.column_stack([np.ones(N), u])
    best = np.linalg.lstsq(D, w)[0]
    np.testing.assert_allclose(place.coefficients, best, atol=0.02)
    r = w - D @ place.coefficients
    K = len(statistic.regression.entries)
    np.testing.assert_allclose(values[K:-1], D.T @ np.clip(r, -place.clamp, place.clamp), atol=0.1)
    np.testing.assert_allclose(values[-1], (np.clip(r, -1.5 * place.clamp, 1.5 * place.clamp) ** 2).sum(), atol=0.05)
    assert statistic.statistics[K:] == ("sum residual", "sum x[0] residual", "sum x[1] residual", "sum residual²")


def test_both_draws_are_paid_for_at_once(tmp_path):
    ledger = pmdp.Ledger(tmp_path / "ledger.jsonl", epsilon=PLENTY, create=True)
    one = released(ledger=ledger)
    assert one.cost.epsilon == PLENTY
    first = Fraction(one.difference) / Fraction(one.scale)
    second = Fraction(sensitivity_of(one.regression).difference) / Fraction(one.residuals.scale)
    assert 0.999 * PLENTY < first + second <= PLENTY
    with pytest.raises(pmdp.Refusal):
        released(ledger=ledger)


def test_noise_is_on_all_of_them():
    """Both rounds pass the one place where noise is drawn, with the scales that were paid for, and nothing else is kept of them."""
    with seam_of(7) as seam:
        one = released()
    assert [len(exact) for exact in seam.exact] == [len(one.regression.entries), len(one.regression.names) + 1]
    assert seam.scales == [one.scale, one.residuals.scale]
    assert one.noisy.ravel().tolist() == [value + 7 for exact in seam.exact for value in exact]
    np.testing.assert_allclose(one.deviations[-4:] / one.residuals.units, one.noise_on_residuals.standard_deviation)


LEFT_OUT = {
    "few": lambda: released(epsilon=1.0),
    "not asked": lambda: released(mechanism="laplace"),
    "gaussian": lambda: released(mechanism="gaussian", delta=1e-6),
    "one feature": lambda: released(made(X[:, :1])),
    "known sigma": lambda: released(made(sigma=0.5)),
    "comes or goes": lambda: released(neighbours="add_remove"),
    "left out": lambda: released(missing=["y"]),
    "public features": lambda: released(bounds={"y": (-5, 5)}, public=["x"]),
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_where_the_argument_does_not_reach_there_are_none(case):
    assert LEFT_OUT[case]().residuals is None


def test_records_beside_the_model_are_looked_at_twice():
    """The same sums before noise as of a model that observes the records; where parts are seen once there are second moments alone."""

    def model(x, z, y):
        with pm.Model() as built:
            mean = pm.Normal("a") + pm.Normal("b") * pm.Data("x", x) + pm.Normal("c") * pm.Data("z", z)
            pm.Normal("y", mean, pm.HalfNormal("s"), observed=y)
        return built

    bounds, placeholders = {"y": (-5, 5), "x": (-2, 2), "z": (-2, 2)}, model(*np.zeros((3, 2)))
    table = pd.DataFrame({"x": X[:, 0], "z": X[:, 1], "y": Y})
    with seam_of(0):
        there, here = released(placeholders, bounds=bounds, data=table), released(model(*X.T, Y), bounds=bounds)
        parts = {"bounds": bounds, "missing": {}, "mechanism": pmdp.Laplace(residuals=True), "epsilon": PLENTY}
        shared = pmdp.share_out(placeholders, parts=1, records=N, **parts)
        in_parts = pmdp.add_up(shared, [pmdp.partial_statistics(shared.plan, table, 0)])["y"]
    assert here.residuals is not None
    assert there.noisy.tolist() == here.noisy.tolist()
    assert there.residuals == here.residuals
    assert in_parts.residuals is None


def test_the_rule_rests_on_public_numbers():
    assert worth_it(regression(4), 28_000, Fraction(1))
    assert not worth_it(regression(4), 27_999, Fraction(1))
    assert worth_it(regression(4), 7_000, Fraction(4))
    other = made(X[::-1] * 0 + 1, Y * 0)
    assert [draw.size for draw in _draws(made())] == [draw.size for draw in _draws(other)]
    assert _draws(made()) == _draws(other)


def _draws(model):
    ready = prepared(model, protection_of(bounds=BOUNDS, missing={}), epsilon=PLENTY, mechanism=pmdp.Laplace(residuals=True))
    noise = pmdp.Laplace(residuals=True)
    return [draw for cells in ready.opened for draw in cells.draws(noise, noise.total(Fraction(PLENTY), Fraction(0)))]


@pytest.mark.parametrize("noise", [0.0, 1.0, 1e6])
def test_any_moments_give_a_place(noise):
    """However noisy, with whatever sign: coefficients and a clamp that are finite numbers."""
    rng = np.random.default_rng(2)
    for moments in (np.zeros((5, 5)), -np.eye(5) * 1e9, rng.normal(size=(5, 5)) * 1e6, np.ones((5, 5)) * 1e12):
        place = next_residuals(regression(3), moments, 1000, noise)
        assert np.isfinite(place.coefficients).all()
        assert 0 < place.clamp <= 1


def test_a_file_keeps_them(tmp_path):
    one = whole(epsilon=PLENTY)
    one.to_netcdf(tmp_path / "it.release")
    again = Release.from_netcdf(tmp_path / "it.release")
    assert again == one
    assert again["y"].residuals == one["y"].residuals
    other = replace(one["y"], residuals=replace(one["y"].residuals, clamp=0.5))
    assert replace(one, statistics=(other,)) != one
    assert "of sums of residuals" in flat(one)


@pytest.mark.parametrize("noise_aware", [True, False])
def test_a_posterior_is_near_the_records(noise_aware):
    private = pmdp.rewrite(made(), whole(epsilon=60.0), noise_aware=noise_aware)
    tree = pm.sample(200, tune=300, chains=2, cores=1, model=private, nuts_sampler="nutpie", progressbar=False, random_seed=1)
    D = np.column_stack([np.ones(N), X])
    best, rest = np.linalg.lstsq(D, Y)[:2]
    error = np.sqrt(np.diag(np.linalg.inv(D.T @ D)) * rest / N)
    found = np.concatenate([tree["posterior"]["a"].values.reshape(-1, 1), tree["posterior"]["b"].values.reshape(-1, 2)], axis=1)
    assert (np.abs(found.mean(axis=0) - best) < 4 * error).all()
    assert (found.std(axis=0) < 2 * error).all()
    drawn = pm.sample_posterior_predictive(tree, model=private, progressbar=False, random_seed=1)["posterior_predictive"]["y"].values
    assert np.isfinite(drawn).all()
    observed = private["y_released"].get_value() if hasattr(private["y_released"], "get_value") else None
    assert observed is None or np.abs((drawn.mean(axis=(0, 1)) - observed)[0, -1] / observed[0, -1]) < 0.2
