"""What priors say beyond the bounds is told by ``inspect``, against closed forms, and rests on no record.

Draws have a fixed seed, so nothing here is random; tolerances are 5 standard errors of 400 draws of what all rows share.
"""

from math import sqrt

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import flat
from scipy.stats import norm, poisson

import pymc_dp as pmdp
from pymc_dp.models.reader import read_spec

N = 50
TOLERANCE = 5 * sqrt(0.25 / 400)


def outside(model, bounds, **words):
    return dict(pmdp.inspect(model, bounds=bounds, **words).outside)


def beyond(lower, upper, middle, deviation):
    return norm.cdf((lower - middle) / deviation) + norm.sf((upper - middle) / deviation)


def normal(values, **words):
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", 1, 3), 1.0, observed=values)
    return model


def test_of_one_variable():
    told = outside(normal(np.zeros(N)), {"y": (-3, 8)})
    assert abs(told["y"] - beyond(-3, 8, 1, sqrt(10))) < TOLERANCE
    assert outside(normal(np.zeros(N)), {"y": (-30, 80)})["y"] == 0


def test_the_table_says_it():
    shown = pmdp.inspect(normal(np.zeros(N)), bounds={"y": (-3, 8)})
    line = f"beyond the bounds by the prior: {shown.outside['y']:.0%} of y\n"
    assert line in repr(shown)
    assert "beyond the bounds by the prior" not in flat(pmdp.inspect(normal(np.zeros(N))))


def test_it_rests_on_no_record():
    """Records that are as different as can be, and some that are missing: the same to the last digit."""
    values = np.random.default_rng(1).normal(size=N) * 1000
    values[3] = np.nan
    with pytest.warns(UserWarning, match="missing"):
        other = normal(values)
    assert outside(other, {"y": (-3, 8)}) == outside(normal(np.zeros(N)), {"y": (-3, 8)})


def test_covariates_are_in_the_middle_of_their_bounds():
    """Whatever they are: of y = 2 x with x from 3 to 5, y is about 8."""
    with pm.Model() as model:
        slope = pm.Normal("slope", 2, 0.5)
        pm.Normal("y", slope * pm.Data("x", np.full(N, 100.0)), 1.0, observed=np.zeros(N))
    told = outside(model, {"x": (3, 5), "y": (0, 10)})
    assert abs(told["y"] - beyond(0, 10, 8, sqrt(5))) < TOLERANCE


def test_levels_take_turns():
    """A private index of two, of which one lies outside: half; and a list of levels alike."""
    with pm.Model() as model:
        table = pm.math.stack([pm.Normal("low", 0, 1), pm.Normal("high", 100, 1)])
        pm.Normal("y", table[pm.Data("group", np.zeros(N, dtype=int))], 1.0, observed=np.zeros(N))
    assert outside(model, {"y": (-20, 20)}) == {"y": 0.5}
    assert outside(model, {"y": (-20, 20)}, public=["group"]) == {"y": 0.0}
    with pm.Model() as model:
        mean = pm.Normal("mean", 100, 1) * pm.Data("smokes", np.zeros(N, dtype=int))
        pm.Normal("y", mean, 1.0, observed=np.zeros(N))
    assert outside(model, {"y": (-20, 20), "smokes": {0, 1}}) == {"y": 0.5}


@pytest.mark.parametrize(("link", "family"), [("logit", pm.Bernoulli), ("log", pm.Poisson)])
def test_of_a_linear_predictor(link, family):
    with pm.Model() as model:
        predictor = pm.Normal("a", 0, 2) + pm.Normal("b", 0, 1) * pm.Data("x", np.zeros(N))
        mean = pm.math.sigmoid(predictor) if link == "logit" else pm.math.exp(predictor)
        family("y", mean, observed=np.zeros(N, dtype=int))
    bounds = {"x": (0, 4), f"{link}(y)": (-6, 3)} | ({} if link == "logit" else {"y": (0, 20)})
    assert abs(outside(model, bounds)[f"{link}(y)"] - beyond(-6, 3, 0, sqrt(8))) < TOLERANCE


def test_columns_have_bounds_of_their_own():
    with pm.Model() as model:
        middle = pm.math.stack([pm.Normal("left", 0, 1), pm.Normal("right", 50, 1)])
        chol, *_ = pm.LKJCholeskyCov("chol", eta=2, n=2, sd_dist=pm.HalfNormal.dist(1))
        pm.MvNormal("y", middle, chol=chol, observed=np.zeros((N, 2)))
    assert outside(model, {"y": [(-20, 20), (30, 70)]}) == {"y": 0.0}
    assert outside(model, {"y": [(-20, 20), (130, 170)]}) == {"y": 0.5}


@pytest.mark.parametrize("bounds", [{"y": (3, 2)}, {"y": 4}, {"y": (0, np.inf)}])
def test_bounds_that_are_none_are_refused_as_before(bounds):
    with pytest.raises(pmdp.Refusal, match="bounds of y must be"):
        pmdp.inspect(normal(np.zeros(N)), bounds=bounds)


def test_what_is_not_known_is_not_told():
    """The middle of a public covariate, which is not read, and the law of a prior that cannot be drawn from."""
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("b", 0, 1) * pm.Data("x", np.zeros(N)), 1.0, observed=np.zeros(N))
    assert outside(model, {"y": (-3, 3)}, public=["x"]) == {}
    with pm.Model() as model:
        mu = pm.CustomDist("mu", logp=lambda value: -(value**2), shape=())
        pm.Normal("y", mu, 1.0, observed=np.zeros(N))
    assert outside(model, {"y": (-3, 3)}) == {}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of operations made anew
def test_weights_of_a_mixture_may_differ_between_groups_where_its_components_do_not():
    """The prior probability of a value above 3, of a share that is 1/2 on average, and components that are known: 400 draws of all rows."""
    with pm.Model() as model:
        w = pm.Beta("w", 1, 1, shape=3)[pm.Data("g", np.arange(N) % 3)]
        pm.Mixture("y", w=pt.stack([w, 1 - w], axis=-1), comp_dists=[pm.Poisson.dist(1.0), pm.Poisson.dist(6.0)], observed=np.arange(N) % 4)
    told = outside(model, {"y": (0, 3)}, public=["g"])
    assert abs(told["y"] - (poisson.sf(3, 1.0) + poisson.sf(3, 6.0)) / 2) < TOLERANCE
    weights, means = pt.constant([[0.0, 1.0], [1.0, 0.0]]), [pt.constant([1.0]), pt.constant([6.0])]
    drawn = pm.draw(read_spec(model, public=["g"]).likelihoods[0].again(weights, *means), 4000, random_seed=1, mode="FAST_COMPILE")
    assert np.abs(drawn.mean(axis=0) - [6, 1]).max() < 5 * sqrt(6 / 4000)
