"""Suggested bounds: they hold what the priors expect, can be used as they are, rest on no record, and say where they are of no use."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as pmdp
from pymc_dp.planning.bounds import rounded


def records(seed=0, many=50):
    return np.random.default_rng(seed).normal(size=many)


def priors(kind, y):
    if kind == "Normal":
        return pm.Normal("y", pm.Normal("mu", 170, 5), pm.HalfNormal("sd", 10), observed=y)
    if kind == "Poisson":
        return pm.Poisson("y", pm.Gamma("rate", 3, 1), observed=np.abs(y).astype(int))
    if kind == "Gamma":
        return pm.Gamma("y", pm.Gamma("alpha", 5, 1), 1.0, observed=np.abs(y) + 0.1)
    if kind == "Beta":
        return pm.Beta("y", pm.Gamma("alpha", 5, 1), 2.0, observed=1 / (1 + np.exp(y)))
    if kind == "LogNormal":
        return pm.LogNormal("y", pm.Normal("mu", 0, 0.3), 0.5, observed=np.exp(y))
    return pm.Exponential("y", pm.Gamma("rate", 5, 5), observed=np.abs(y))


@pytest.mark.parametrize("kind", ["Normal", "Poisson", "Gamma", "Beta", "LogNormal", "Exponential"])
def test_bounds_hold_what_the_priors_expect(kind):
    with pm.Model() as model:
        variable = priors(kind, records())
    suggested = pmdp.suggest_bounds(model)
    lower, upper = suggested["y"]
    values = pm.draw(variable, 4_000, random_seed=1)
    inside = np.mean((values >= lower) & (values <= upper))
    assert inside > 0.997
    assert pmdp.inspect(model, bounds=suggested).rows[0].needs is None
    assert pmdp.release(model, epsilon=1.0, bounds=suggested)["y"].variable == "y"
    with pm.Model() as other:
        priors(kind, records(1))
    assert pmdp.suggest_bounds(other) == suggested


def regression(x, y):
    with pm.Model() as model:
        pm.Poisson("y", pm.math.exp(pm.Normal("a", 0, 0.5) + pm.Normal("b", 0, 0.01) * (pm.Data("age", x) - 40)), observed=y)
    return model


def test_where_nothing_needs_bounds_that_is_said():
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.zeros(50, int))
    suggested = pmdp.suggest_bounds(model)
    assert (dict(suggested), suggested.notes) == ({}, ("nothing here needs bounds",))


def test_laws_that_are_named_for_whole_covariates_are_whole():
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=pm.Normal("b") * pm.Data("band", np.zeros(50, int)), observed=np.zeros(50, int))
    assert any("pm.DiscreteUniform.dist(0, 3)" in note for note in pmdp.suggest_bounds(model).notes)
    assert pmdp.suggest_bounds(model, covariate_law={"band": pm.DiscreteUniform.dist(0, 3)}) == {"band": (0, 3)}


def test_covariates_and_linear_predictors():
    model = regression(records(), np.zeros(50, int))
    without = pmdp.suggest_bounds(model)
    assert dict(without) == {}
    assert any("age is private and nothing is known of it" in note for note in without.notes)
    assert not any("still refused" in note for note in without.notes)
    law = {"age": pm.Normal.dist(40, 12)}
    suggested = pmdp.suggest_bounds(model, covariate_law=law)
    assert set(suggested) == {"age", "y", "log(y)"}
    assert suggested["age"][0] <= 1
    assert suggested["age"][1] >= 79
    assert pmdp.inspect(model, bounds=suggested).rows[0].structure == "linear"
    assert pmdp.suggest_bounds(regression(records(1), np.ones(50, int)), covariate_law=law) == suggested
    kept = pmdp.suggest_bounds(model, bounds={"age": (18, 90)})
    assert kept["age"] == (18, 90)
    assert set(kept) == {"age", "y", "log(y)"}
    listed = pmdp.suggest_bounds(model, bounds={"age": {20, 40, 60}})
    assert set(listed) == {"age", "y"}  # a table, which needs no predictor
    with pytest.raises(pmdp.Refusal, match="no private covariate"):
        pmdp.suggest_bounds(model, covariate_law={"ages": [1.0]})
    with pytest.raises(pmdp.Refusal, match="share"):
        pmdp.suggest_bounds(model, share=1.0)


def test_columns_have_bounds_of_their_own():
    with pm.Model() as model:
        X = pm.Data("X", np.zeros((50, 2)))
        pm.Normal("y", X @ pm.Normal("b", 0, 1, shape=2), 1.0, observed=records())
    suggested = pmdp.suggest_bounds(model, covariate_law={"X": lambda rng, size: rng.normal([0, 50], [1, 3], size)})
    (_, first), (second, _) = suggested["X"]
    assert first < 6
    assert second > 30
    assert pmdp.inspect(model, bounds=suggested).rows[0].needs is None


def test_a_number_of_records_that_is_private_decides_nothing():
    several = []
    for many in (50, 51):
        with pm.Model() as model:
            priors("Normal", records(many, many))
        several.append(pmdp.suggest_bounds(model, neighbours="add_remove"))
    assert several[0] == several[1]


def test_priors_that_allow_anything_are_said_to_be_of_no_use():
    with pm.Model() as vague:
        pm.Normal("y", pm.Normal("mu", 0, 1e5), 1.0, observed=records())
    assert any("of little use" in note for note in pmdp.suggest_bounds(vague).notes)
    with pm.Model() as clear:
        priors("Normal", records())
    assert not any("of little use" in note for note in pmdp.suggest_bounds(clear).notes)
    with pm.Model() as improper:
        pm.Normal("y", pm.Flat("mu"), 1.0, observed=records())
    with pytest.raises(pmdp.Refusal, match="assuming="):
        pmdp.suggest_bounds(improper)
    assert "y" in pmdp.suggest_bounds(improper, assuming={"mu": 2.0})


@pytest.mark.parametrize("kind", ["real", "positive", "nonnegative", "unit", "integer", "whole"])
def test_rounding_never_narrows(kind):
    rng = np.random.default_rng(3)
    for _ in range(500):
        size = 10 ** rng.uniform(-6, 6)
        lower, upper = np.sort(rng.normal(size=2)) * size
        if kind == "unit":
            lower, upper = np.sort(rng.uniform(1e-6, 1 - 1e-6, 2))
        elif kind in ("positive", "nonnegative", "integer"):
            lower, upper = np.sort(rng.exponential(size=2)) * size
        low, high = rounded(lower, upper, kind)
        assert low < high
        assert low <= lower or kind == "positive"
        assert low <= lower * (1 + 1e-9) + 1e-300 or lower < 0
        assert high >= upper * (1 - 1e-9) or upper < 0
        if kind == "unit":
            assert 0 < low < high < 1
        if kind == "positive":
            assert low > 0
        if kind in ("integer", "whole"):
            assert isinstance(low, int)
            assert isinstance(high, int)
            assert kind == "whole" or low == 0
