"""Densities that users wrote and that are infinite where their support ends, as those of a Beta whose shapes are less than 1."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import refused
from scipy import stats

import pymc_dp as pmdp
from pymc_dp.models.interval_nodes import nodes_between

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(3)
SHAPES = [(0.5, 0.5), (0.6, 0.4), (0.3, 0.8), (1.0, 1.0), (3.0, 2.0)]


def _by_hand(t, a, b):
    inside = (a - 1) * pt.log(t) + (b - 1) * pt.log1p(-t) - pt.gammaln(a) - pt.gammaln(b) + pt.gammaln(a + b)
    return pt.switch((t > 0) & (t < 1), inside, -np.inf)


def _by_pymc(t, a, b):
    return pm.logp(pm.Beta.dist(a, b), t)


def _in_a_potential(logp, a, b, t):
    pm.Potential("like", logp(pm.Data("t", t), a, b).sum())


def _in_a_custom_dist(logp, a, b, t):
    pm.CustomDist("t", a, b, logp=logp, observed=t)


@pytest.mark.parametrize("edges", [np.linspace(0, 1, 6), np.array([-1.0, 0.0, 0.3, 1.0, 2.0]), np.array([0.0, 0.9, 1.0])], ids=repr)
@pytest.mark.parametrize("logp", [_by_hand, _by_pymc], ids=["by hand", "pm.logp"])
@pytest.mark.parametrize("write", [_in_a_potential, _in_a_custom_dist], ids=["Potential", "CustomDist"])
def test_counts_in_bins_have_the_probabilities_of_the_density(write, logp, edges):
    """Of 2,000 records with hardly any noise, at several shapes: as many nats apart as by the distribution function, up to .05."""
    t = RNG.beta(0.5, 0.5, 2000)
    with pm.Model() as model:
        write(logp, pm.Gamma("a", 2, 1), pm.Gamma("b", 2, 1), t)
    released = pmdp.release(model, epsilon=1e6, bounds={"t": pmdp.Bins(edges=edges)}, missing={})
    private = pmdp.rewrite(model, released)
    density = private.compile_logp(vars=private.observed_RVs + private.potentials)
    found = [float(density(private.initial_point() | {"a_log__": np.log(a), "b_log__": np.log(b)})) for a, b in SHAPES]
    counts = np.histogram(t, [-np.inf, *edges, np.inf])[0]
    with np.errstate(divide="ignore"):
        logs = [np.log(np.diff(stats.beta(a, b).cdf(edges), prepend=0, append=1)) for a, b in SHAPES]
    expected = [counts[counts > 0] @ log[counts > 0] for log in logs]
    np.testing.assert_allclose(np.array(found) - found[0], np.array(expected) - expected[0], atol=0.05)


@pytest.mark.parametrize("power", [0.0, -0.5, -0.9])
def test_nodes_beside_an_infinite_density_are_at_none_of_the_points(power):
    """Integrals of (1 - t)^power and t^power are right to a part in 1,000 or, at -.9, to a fortieth: doubles near 1 are too far apart."""
    for narrow in (0.4, 0.999, 1 - 1e-12):
        points = np.array([0.0, narrow, 1.0])
        assert not np.isin(nodes_between(points, -np.inf, np.inf, {0.0, 1.0})[0], points).any()
    nodes, log_weights, _ = nodes_between(np.array([0.0, 0.4, 1.0]), -np.inf, np.inf, {0.0, 1.0})
    inside = (nodes > 0) & (nodes < 1)
    for distance in (nodes[inside], 1 - nodes[inside]):
        assert (distance > 0).all()
        whole = np.sum(distance**power * np.exp(log_weights[inside]))
        assert whole == pytest.approx(1 / (1 + power), rel=1 / 40 if power < -0.5 else 1e-3)


def test_a_value_with_a_probability_of_its_own_is_told_what_to_write():
    """And what is written so is released."""
    t = np.where(RNG.random(60) < 0.3, 0.0, RNG.gamma(2, 1, 60))
    bounds = {"t": pmdp.Bins(0, 8, 8)}

    def hurdle(value, p, a):
        return pt.switch(pt.eq(value, 0), pt.log(p), pt.log1p(-p) + pm.logp(pm.Gamma.dist(a, 1), value))

    for write in (_in_a_custom_dist, _in_a_potential):
        with pm.Model() as model:
            write(hurdle, pm.Beta("p", 1, 1), pm.Gamma("a", 2, 1), t)
        assert "observe pm.HurdleGamma" in refused(pmdp.release, model, epsilon=1, bounds=bounds, missing={})
    with pm.Model() as model:
        pm.HurdleGamma("t", 1 - pm.Beta("p", 1, 1), pm.Gamma("a", 2, 1), 1, observed=t)
    pmdp.release(model, epsilon=1, bounds=bounds, missing={})
