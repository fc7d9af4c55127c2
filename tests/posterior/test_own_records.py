"""Observed variables whose records are others' than each other's, where the number of records is private: one may come to one of them."""

import numpy as np
import pymc as pm
import pytest
from scipy.special import logsumexp

import pymc_dp as pmdp
from pymc_dp.privacy import mechanisms

pytestmark = pytest.mark.filterwarnings("ignore")


def coins(x, y, dims=None):
    with pm.Model(coords=None if dims is None else {dims: range(len(x))}) as model:
        pm.Bernoulli("x", pm.Uniform("p", 0.49, 0.51), observed=x, dims=dims)
        pm.Bernoulli("y", pm.Uniform("q", 0.2, 0.8), observed=y, dims=dims)
    return model


def answers(x, y):
    with pm.Model() as model:
        pm.Bernoulli("x", pm.Beta("p", 1, 1), observed=x)
        pm.Categorical("y", pm.Dirichlet("q", np.ones(8)), observed=y)
    return model


def given(x, y):
    with pm.Model() as model:
        y = pm.Categorical("y", pm.Dirichlet("q", np.ones(8)), observed=y)
        pm.Bernoulli("x", pm.Beta("p", 1, 1, shape=8)[y], observed=x)
    return model


def loss(monkeypatch, models, **mechanism):
    """The largest log-ratio of the probabilities of a draw, added up over what is chosen by itself: of the first data set to any other."""
    several = []
    for model in models:
        found = []
        monkeypatch.setattr(mechanisms, "_opendp_choice", lambda scores, scale, found=found: found.append(np.array(scores) / scale) or 0)
        pmdp.sample(model=model, epsilon=1.0, mechanism=pmdp.PosteriorSample(1, **mechanism), neighbours="add_remove")
        several.append([row - logsumexp(row) for row in found])
    return max(sum(np.abs(a - b).max() for a, b in zip(several[0], other, strict=True)) for other in several[1:])


@pytest.mark.parametrize("make", [answers, given])
def test_one_more_of_a_shorter_variable_costs_no_more_than_one_of_all(make, monkeypatch):
    """What a variable lacks is no record of it: a record that comes does not take the place of another."""
    x, y = np.zeros(12, int), np.zeros(5, int)
    assert loss(monkeypatch, [make(x, y), *(make(x, np.append(y, level)) for level in range(8))]) <= 1 + 1e-9


@pytest.mark.parametrize("method", ["exact", "mcmc"])
@pytest.mark.parametrize("many", [(0, 0), (1, 1), (12, 12), (12, 5)])
def test_what_need_not_be_one_record_is_not_drawn_together(many, method):
    """Whatever the numbers of records, equal ones included: they are private."""
    model = coins(*(np.zeros(length, int) for length in many))
    with pytest.raises(pmdp.Refusal, match="x and y need not have the same records"):
        pmdp.sample(model=model, epsilon=1.0, mechanism=pmdp.PosteriorSample(1, method=method), neighbours="add_remove")


def test_one_dim_says_that_they_are_one_record(monkeypatch):
    x = np.zeros(6, int)
    models = [coins(x, x, "row"), *(coins(np.append(x, a), np.append(x, b), "row") for a in (0, 1) for b in (0, 1))]
    assert 0.5 < loss(monkeypatch, models, points=21) <= 1 + 1e-9


def test_coefficients_are_of_variables_of_the_same_records():
    """Together they are those of tables of as many records: one more of five variables, where a sixth has more, would move ten of eight."""
    with pm.Model(coords={"s": range(5)}) as model:
        a, *_ = (pm.Bernoulli(name, pm.Beta(f"p{name}", 1, 1), observed=np.zeros(5, int), dims="s") for name in "abcd")
        pm.Bernoulli("e", pm.Beta("pe", 1, 1, shape=2)[a], observed=np.zeros(5, int), dims="s")
        pm.Bernoulli("z", pm.Beta("pz", 1, 1), observed=np.zeros(12, int))
    with pytest.raises(pmdp.Refusal, match="a and z need not have the same records"):
        pmdp.release(model, epsilon=1.0, neighbours="add_remove", mechanism="fourier")
