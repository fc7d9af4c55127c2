"""Levels of private covariates at which a model has no density: they are refused before anything is paid for."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as pmdp

RNG = np.random.default_rng(700501)
N = 200
X, Y = RNG.choice([0.25, 0.75], N), RNG.normal(size=N)
BINS = pmdp.Bins(-4, 4, 8)
PAID = []
"""What the ledger had when a call had ended."""


def _written(share=lambda x, p: x):
    with pm.Model() as model:
        x, y, mu = pm.Data("x", X), pm.Data("y", Y), pm.Normal("mu", 0, 3, shape=2)
        w = share(x, pm.Beta("p", 2, 2))
        parts = [pt.log(weight) + pm.logp(pm.Normal.dist(mu[k], 1), y) for k, weight in enumerate((w, 1 - w))]
        pm.Potential("like", pt.logaddexp(*parts).sum())
    return model


def _as_mixture():
    with pm.Model() as model:
        x, mu = pm.Data("x", X), pm.Normal("mu", 0, 3, shape=2)
        pm.Mixture("y", pt.stack([x, 1 - x], axis=-1), [pm.Normal.dist(mu[k], 1) for k in range(2)], observed=Y)
    return model


def _in_a_custom_dist():
    def logp(y, x, a, b):
        parts = [pt.log(weight) + pm.logp(pm.Normal.dist(mu, 1), y) for mu, weight in ((a, x), (b, 1 - x))]
        return pt.logaddexp(*parts)

    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 3, shape=2)
        pm.CustomDist("y", pm.Data("x", X), mu[0], mu[1], logp=logp, observed=Y)
    return model


def _spread():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), pm.Data("x", X) - 0.1, observed=Y)
    return model


def _paid(model, levels, path, call):
    ledger = pmdp.Ledger(path / "own.ledger", epsilon=10, create=True)
    try:
        call(model=model, epsilon=1.0, bounds={"x": levels, "y": BINS}, ledger=ledger)
    finally:
        PAID.append(10 - ledger.remaining().epsilon)


@pytest.mark.parametrize("call", [lambda **rest: pmdp.sample(10, **rest), pmdp.privatize], ids=["sample", "privatize"])
@pytest.mark.parametrize(
    ("make", "levels"),
    [(_written, {0.5, 2.0}), (_written, {-1, 0, 1}), (_as_mixture, {0.5, 2.0}), (_in_a_custom_dist, {0.5, 2.0}), (_spread, {0.0, 1.0})],
)
def test_they_are_refused_before_paying(make, levels, call, tmp_path):
    with pytest.raises(pmdp.Refusal, match="y has no density, whatever the unknowns are, at some of the levels of x"):
        _paid(make(), levels, tmp_path, call)
    assert PAID.pop() == 0


@pytest.mark.parametrize(
    ("model", "levels"),
    [
        (_written(), {0.25, 0.75}),
        (_written(lambda x, p: p * x), {0.5, 2.0}),  # it has a density where p is small
        (_as_mixture(), {0.25, 0.75}),
        (_spread(), {0.25, 0.75}),
    ],
)
def test_others_are_paid_for(model, levels, tmp_path):
    _paid(model, levels, tmp_path, pmdp.privatize)
    assert PAID.pop() == 1


def test_the_table_says_where_priors_often_lead_there():
    """Of draws of p, whose law is symmetric about 1/2, half have 2 p above 1."""
    shown = pmdp.inspect(_written(lambda x, p: p * x), bounds={"x": {0.5, 2.0}, "y": BINS})
    [found] = shown.no_density
    assert abs(found.share - 0.5) < 0.12, "400 draws: 4.8 standard deviations, always the same ones"
    assert "a probability of y" in found.reason
