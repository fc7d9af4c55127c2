"""``inspect`` says where priors lead that a likelihood has no density: as often as PyMC's own has none, and without a record.

Draws of ``inspect`` have a fixed seed, as have those that it is compared with, so nothing here is random; tolerances are 5 standard errors
of 400 draws.
"""

from math import sqrt

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import flat
from gallery import COUNTS, REALS, records

import pymc_dp as pmdp

pytestmark = pytest.mark.filterwarnings("ignore")
R = records(60)
ORDERED = pm.distributions.transforms.ordered
TOLERANCE = 5 * sqrt(0.25 / 400)


def probability_of_a_covariate(p=lambda x: pm.Normal("a") + pm.Normal("b") * x):
    pm.Bernoulli("y", p=p(pm.Data("x", R.h)), observed=R.y)
    return {"x": (0, 1)}


def probability_at_levels(p=lambda x: pm.Normal("a", 0.5, 0.3) + pm.Normal("b", 0, 0.2) * x):
    pm.Bernoulli("y", p=p(pm.Data("x", np.arange(60) % 3)), observed=R.y)
    return {"x": {0, 1, 2}}


def rates_of_groups(rate=lambda: pm.Normal("a", 1, 1, shape=3)):
    pm.Poisson("k", rate()[R.g], observed=R.k)
    return {"k": COUNTS}


def rates_of_public_groups(rate=lambda: pm.Normal("a", 1, 1, shape=3)):
    return rates_of_groups(rate)


def spread(sigma=lambda: pm.Normal("s")):
    pm.Normal("y", pm.Normal("m", shape=3)[R.g], sigma(), observed=R.x)
    return {"y": REALS}


def spread_beside_a_public_covariate(sigma=lambda: pm.Normal("s")):
    pm.Normal("y", pm.Normal("m") * pm.Data("x", R.x), sigma(), observed=R.x)
    return {}


def shares_of_a_mixture(shares=lambda: pt.stack([w := pm.Normal("w"), 1 - w])):
    pm.Mixture("k", w=shares(), comp_dists=[pm.Poisson.dist(1.0), pm.Poisson.dist(4.0)], observed=R.k)
    return {"k": (0, 12)}


def correlated():
    one, c = pt.ones(()), pm.Normal("c")
    return {"cov": pt.stack([pt.stack([one, c]), pt.stack([c, one])])}


def covariance(how=correlated):
    pm.MvNormal("y", pm.Normal("m", shape=2), **how(), observed=R.YX)
    return {"y": REALS}


def rate_in_a_logarithm(rate=lambda: pm.Normal("a", 1, 2)):
    pm.NegativeBinomial("k", mu=rate(), alpha=2.0, observed=R.k)
    return {"k": COUNTS}


def trials(p=lambda: pm.Normal("p")):
    pm.Binomial("k", n=pm.Data("n", np.full(60, 12)), p=p(), observed=R.k)
    return {}


def totals(p=lambda: pm.Normal("p")):
    return trials(p)


OFTEN = [
    (probability_of_a_covariate, {}, "a probability of y is below 0 or above 1", lambda x: pm.math.sigmoid(pm.Normal("a") + x)),
    (probability_at_levels, {}, "a probability of y is below 0 or above 1", lambda x: pm.Beta("p", 1, 1, shape=3)[x]),
    (rates_of_groups, {}, "a rate or spread of k is negative", lambda: pm.HalfNormal("a", shape=3)),
    (rates_of_public_groups, {"public": ["k:0"]}, "a rate or spread of k is negative", lambda: pm.HalfNormal("a", shape=3)),
    (spread, {}, "a rate or spread of y is negative", lambda: pm.HalfNormal("s")),
    (spread_beside_a_public_covariate, {"public": ["x"]}, "a rate or spread of y is negative", lambda: pm.HalfNormal("s")),
    (shares_of_a_mixture, {}, "a probability of k is below 0 or above 1", lambda: pm.Dirichlet("w", np.ones(2))),
    (covariance, {}, "a covariance of y is none", lambda: {"chol": pm.LKJCholeskyCov("c", eta=2, n=2, sd_dist=pm.HalfNormal.dist(1))[0]}),
    (rate_in_a_logarithm, {}, "a rate or spread of k is negative", lambda: pm.math.exp(pm.Normal("a"))),
    (trials, {"public": ["n"]}, "a probability of k is below 0 or above 1", lambda: pm.Beta("p", 1, 1)),
    (totals, {"public": ["n"], "unit": "individual"}, "a probability of k is below 0 or above 1", lambda: pm.Beta("p", 1, 1)),
]  # fmt: skip


def made(make, *how):
    with pm.Model() as model:
        bounds = make(*how)
    return model, bounds


def without_density(model):
    """How often PyMC's own likelihood has no density where priors lead."""
    density = model.compile_logp(vars=model.observed_RVs, mode="FAST_COMPILE")
    drawn = pm.draw(model.free_RVs, 1000, random_seed=2, mode="FAST_COMPILE")
    points = [dict(zip((v.name for v in model.free_RVs), values, strict=True)) for values in zip(*drawn, strict=True)]
    return 1 - np.mean([np.isfinite(density(point)) for point in points])


@pytest.mark.parametrize(("make", "arguments", "words", "instead"), OFTEN, ids=[make.__name__ for make, *_ in OFTEN])
def test_it_is_said_as_often_as_pymc_has_no_density(make, arguments, words, instead):
    """And not where what is named is written instead."""
    model, bounds = made(make)
    shown = pmdp.inspect(model, bounds=bounds, **arguments)
    (found,) = shown.no_density
    assert abs(found.share - without_density(model)) < TOLERANCE
    said = f"in {found.share:.0%} of 400 draws from the priors {words}"
    assert f"no density by the prior: {said}" in flat(shown)
    assert said in " ".join(shown._repr_html_().split())
    assert "chains are stopped: write" in found.reason
    model, bounds = made(make, instead)
    assert not pmdp.inspect(model, bounds=bounds, **arguments).no_density


def test_it_is_not_said_of_what_is_rare():
    model, bounds = made(spread, lambda: pm.Normal("s", 3, 1))
    assert not pmdp.inspect(model, bounds=bounds).no_density


def ordered_levels():
    pm.OrderedLogistic("y", eta=0, cutpoints=pm.Normal("c", shape=2, transform=ORDERED), observed=R.g)


def ordered_probabilities():
    low, high = pm.Normal("c", 0.5, 0.1, shape=2, transform=ORDERED)
    pm.Poisson("k", high - low, observed=R.k)


def held_by_a_potential():
    p = pm.Normal("p")
    pm.Potential("inside", pt.switch((p > 0) & (p < 1), 0.0, -np.inf))
    pm.Bernoulli("y", p, observed=R.y)


def without_draws():
    pm.Bernoulli("y", pm.Flat("p"), observed=R.y)


@pytest.mark.parametrize("make", [ordered_levels, ordered_probabilities, held_by_a_potential, without_draws])
def test_it_is_not_said_where_draws_from_priors_do_not_tell(make):
    model, _ = made(make)
    assert not pmdp.inspect(model).no_density


def test_no_record_is_needed():
    """Without bounds, or with public values that are not read, nothing is known of a covariate; with bounds records do not matter."""
    model, bounds = made(probability_of_a_covariate)
    assert not pmdp.inspect(model).no_density
    assert not pmdp.inspect(model, public=["x"]).no_density
    shown = pmdp.inspect(model, bounds=bounds).no_density
    with pm.Model() as other:
        pm.Bernoulli("y", p=pm.Normal("a") + pm.Normal("b") * pm.Data("x", np.full(60, 10**6)), observed=np.zeros(60, dtype=int))
    assert pmdp.inspect(other, bounds=bounds).no_density == shown


def test_many_covariates_are_taken_at_some_of_their_ends():
    """2^9 combinations: the most that are looked at are some of them, and each covariate is at both of its ends."""
    with pm.Model() as model:
        X = pm.Data("X", np.zeros((60, 9)))
        pm.Bernoulli("y", p=0.5 + 0.0 * X.sum(axis=-1) + pm.Normal("b", shape=9)[0] * X[:, 8], observed=R.y)
    found = pmdp.inspect(model, bounds={"X": {0, 1}}).no_density
    assert len(found) == 1, "half of the slopes are beyond 1/2 in size"
    assert abs(found[0].share - 0.617) < TOLERANCE
