"""Where PyMC gives a model no density there is none in the private one either, and where priors forbid such values nothing is added."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import gradient, log_density, seam_of
from gallery import COUNTS, REALS, records

import pymc_dp as pmdp
from pymc_dp.private_models.possible_starts import nearer

pytestmark = pytest.mark.filterwarnings("ignore")
R = records(60)


def linear_probability():
    pm.Bernoulli("y", p=pm.Normal("a") + pm.Normal("b") * pm.Data("x", R.h), observed=R.y)
    return {"bounds": {"x": (0, 1)}}, {"a": 0.5, "b": 0.2}, [{"b": 0.7}, {"a": -0.1}]


def additive_rates():
    pm.Poisson("k", pm.Normal("a") + pm.Normal("b") * pm.Data("x", R.h), observed=R.k)
    return {"bounds": {"x": (0, 1), "k": COUNTS}}, {"a": 2.0, "b": 0.5}, [{"a": -0.1}]


def spread_by_a_normal_prior():
    pm.Normal("y", pm.Normal("m", shape=3)[R.g], pm.Normal("s"), observed=R.x)
    return {"bounds": {"y": REALS}}, {"m": np.full(3, 2.0), "s": 3.0}, [{"s": -3.0}]


def shares_of_a_mixture():
    w = pm.Normal("w")
    pm.Mixture("k", w=pt.stack([w, 1 - w]), comp_dists=[pm.Poisson.dist(1.0), pm.Poisson.dist(4.0)], observed=R.k)
    return {"bounds": {"k": (0, 12)}}, {"w": 0.3}, [{"w": -0.1}, {"w": 1.1}]


def correlation_by_a_normal_prior():
    one, c = pt.ones(()), pm.Normal("c")
    pm.MvNormal("y", pm.Normal("m", shape=2), cov=pt.stack([pt.stack([one, c]), pt.stack([c, one])]), observed=R.YX)
    return {"bounds": {"y": REALS}}, {"m": np.zeros(2), "c": 0.3}, [{"c": 1.5}]


def limits_of_detection():
    """The density of censored values is found in a copy of the graph."""
    pm.Censored("y", pm.Normal.dist(pm.Normal("m"), pm.Normal("s")), lower=0, upper=None, observed=np.maximum(R.x, 0))
    return {"bounds": {"y": pmdp.Bins(0, 8, 8)}}, {"m": 2.0, "s": 3.0}, [{"s": -3.0}]


MODELS = [
    linear_probability,
    additive_rates,
    spread_by_a_normal_prior,
    shares_of_a_mixture,
    correlation_by_a_normal_prior,
    limits_of_detection,
]


@pytest.mark.parametrize("aware", [False, True])
@pytest.mark.parametrize("make", MODELS)
def test_there_is_no_density_where_the_model_has_none(make, aware):
    with pm.Model() as model:
        arguments, inside, outside = make()
    private = pmdp.rewrite(model, pmdp.release(model, epsilon=1.0, missing={}, **arguments), noise_aware=aware)
    ours, theirs, start = log_density(private), log_density(model), private.initial_point(random_seed=1)
    for point in [inside, *({**inside, **changed} for changed in outside)]:
        at = {name: np.asarray(value, dtype=float) for name, value in point.items()}
        assert np.isfinite(theirs(at)) == (point is inside)
        assert np.isfinite(ours(start | at)) == (point is inside), point
    value, slope = gradient(private)(start | {name: np.asarray(value, dtype=float) for name, value in inside.items()})
    assert np.isfinite(value), "and where there is one it has a slope"
    assert np.isfinite(slope).all()


def test_nothing_is_added_where_the_priors_say_it():
    def many(mean):
        with pm.Model() as model:
            pm.Bernoulli("y", p=mean(), observed=R.y)
        private = pmdp.rewrite(model, pmdp.release(model, epsilon=1.0))
        return len(private["y"].owner.inputs)

    assert many(lambda: pm.Beta("p", 1, 1)) == many(lambda: pm.math.sigmoid(pm.Normal("a", shape=3))[R.g]) - 1  # sizes of cells
    assert many(lambda: pm.Beta("p", 1, 1)) == many(lambda: pm.Normal("p")) - 1


def of_groups(groups):
    of = np.arange(40 * groups) % groups
    with pm.Model() as model:
        share = pm.Deterministic("share", pm.Normal("a", -0.5, 1) + pm.Normal("b", shape=groups))
        pm.Bernoulli("y", p=share[of], observed=(np.arange(40 * groups) // groups) % 10 == 0)
    return model


def test_a_start_is_found_where_there_is_a_density():
    """At the means of these priors shares are -1/2; all twenty are moved up together."""
    model = of_groups(20)
    private = pmdp.privatize(model, epsilon=1.0)
    point = private.initial_point(random_seed=0)
    assert np.isfinite(log_density(private)(point))
    assert not np.isfinite(log_density(private)(point | {"a": np.array(-0.5), "b": np.zeros(20)}))


def test_initial_values_of_the_user_stay_where_they_have_a_density():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("m", initval=1.5), pm.Normal("s", initval=2.5), observed=R.x)
    point = pmdp.privatize(model, epsilon=1.0, bounds={"y": REALS}).initial_point(random_seed=0)
    assert (point["m"], point["s"]) == (1.5, 2.5)


def test_unknowns_with_ends_start_within_them():
    with pm.Model() as model:
        pm.Bernoulli("y", p=pm.Uniform("a", 1, 3) - pm.HalfNormal("b"), observed=R.y)
    private = pmdp.privatize(model, epsilon=1.0)
    assert np.isfinite(log_density(private)(private.initial_point(random_seed=0)))


@pytest.mark.slow
def test_chains_stay_where_the_model_has_a_density():
    """Before, one chain in two found a negative spread. What is said where chains are stopped often names the variable."""
    with seam_of(0):
        private = pmdp.privatize(of_groups(6), epsilon=1.0)
    with pytest.warns(pmdp.ConvergenceWarning, match="The likelihood of y has no density at some values that the priors allow"):
        tree = pmdp.sample(200, tune=200, chains=2, model=private, random_seed=1, progressbar=False, quiet=True)
    share = tree.posterior["share"].values
    assert share.min() >= 0
    assert share.max() <= 1
    with pm.Model() as spread:
        pm.Normal("y", pm.Normal("m"), pm.Normal("s"), observed=R.x)
    private = pmdp.privatize(spread, epsilon=4.0, bounds={"y": REALS})
    tree = pmdp.sample(200, tune=200, chains=4, model=private, random_seed=1, progressbar=False, quiet=True)
    assert (tree.posterior["s"] > 0).all()


def test_a_jitter_is_halved_until_there_is_a_density():
    def density(point):
        return 0.0 if (point > 0).all() else -np.inf

    start = np.array([0.1, 0.2])
    assert (nearer(density, np.array([3.0, 4.0]), lambda: start) == [3.0, 4.0]).all()
    nearest = nearer(density, np.array([-0.2, 1.0]), lambda: start)
    assert (nearest > 0).all()
    assert not (nearest == start).any()
