"""Observed variables above observed variables: read as the records they are, whatever the records hold and however they are written."""

from itertools import product

import numpy as np
import pymc as pm
import pymc.dims as pmd
import pytest
from checks import EXACT, check_finite, flat
from pytensor.xtensor import as_xtensor

import pymc_dp as pmdp

pytestmark = pytest.mark.filterwarnings("ignore")
N = 60
RNG = np.random.default_rng(3)
Y, X = RNG.integers(0, 2, N), RNG.integers(0, 3, N)


def network(y, x, parent=lambda y: y):
    with pm.Model() as model:
        y = pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=y)
        pm.Categorical("x", pm.Dirichlet("q", np.ones(3), shape=(2, 3))[parent(y)], observed=x)
    return model


def exact(model, **arguments):
    return pmdp.release(model, epsilon=EXACT, **arguments)


def table(y, x):
    return np.array([[((y == j) & (x == k)).sum() for k in range(3)] for j in range(2)])


@pytest.mark.parametrize(
    "parent",
    [lambda y: y, lambda y: y.astype("int8"), lambda y: 0 + y, lambda y: 1 - (1 - y), lambda y: pm.Deterministic("named", y)],
    ids=["itself", "cast", "sum", "reversed twice", "named"],
)
def test_a_parent_is_its_records(parent, exact_seam):
    assert (exact(network(Y, X, parent))["x"].values == table(Y, X)).all()


def test_a_parent_of_named_dims_is_its_records(exact_seam):
    with pm.Model(coords={"rec": np.arange(N), "side": [0, 1]}) as model:
        side = pmd.Bernoulli("y", pmd.Beta("p", 1, 1), observed=as_xtensor(Y, dims=("rec",)))
        p = pmd.Beta("q", 1, 1, dims="side")
        pmd.Bernoulli("x", p.isel(side=side), observed=as_xtensor((X > 0).astype(int), dims=("rec",)))
    found = pmdp.inspect(model)
    if not all(row.structure for row in found.rows):
        assert "cannot be released" in flat(found)
        return
    assert (exact(model)["x"].values == table(Y, X > 0)[:, :2]).all()


def test_missing_values_of_a_parent_do_not_show(exact_seam):
    """Shapes, words and costs are those of a parent without any; the missing ones count at the public fill."""
    holes = np.where(np.arange(N) % 5 == 0, np.nan, Y)
    with_holes, whole = network(holes, X), network(Y, X)
    assert repr(pmdp.inspect(with_holes)) == repr(pmdp.inspect(whole))
    one, other = exact(with_holes), exact(whole)
    assert (one["x"].values == table(np.where(np.isnan(holes), 0, Y), X)).all()
    assert [s.scale for s in one.statistics] == [s.scale for s in other.statistics]
    assert set(pmdp.rewrite(with_holes, one).named_vars) == set(pmdp.rewrite(whole, other).named_vars)


@pytest.mark.parametrize("odd", [7, -1, 2**30])
def test_odd_values_of_a_parent_go_to_the_nearest_level(odd, exact_seam):
    """The same one in the parent's own statistics and as an index."""
    y = Y.astype(float)
    y[3] = odd
    with pm.Model() as model:
        data = pm.Data("y_data", y.astype(int))
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=data)
        pm.Categorical("x", pm.Dirichlet("q", np.ones(3), shape=(2, 3))[data.astype("int64")], observed=X)
    released = exact(model)
    expected = np.clip(y, 0, 1)
    assert released["y"].values.sum() == expected.sum()
    assert (released["x"].values == table(expected, X)).all()


@pytest.mark.parametrize("odd", [0.7, 1.4, np.nan])
def test_a_cast_in_the_graph_does_not_change_a_parent_s_level(odd, exact_seam):
    """A cast of real numbers cuts off, and so does PyMC's own of what the parent observes: both are one level."""
    y = Y.astype(float)
    y[3] = odd
    with pm.Model() as model:
        data = pm.Data("y_data", np.zeros(N))
        data.set_value(y)
        pm.Categorical("x", pm.Dirichlet("q", np.ones(3), shape=(2, 3))[data.astype("int64")], observed=X)
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=data)
    expected = np.trunc(np.nan_to_num(y, nan=0.5))
    for mechanism in ("laplace", "fourier"):
        assert (exact(model, mechanism=mechanism)["x"].values == table(expected, X)).all()


def test_observed_values_cannot_be_declared_public_as_a_parent():
    """Neither by its name, nor by that of the dim of a table that it is an index of."""
    with pytest.raises(pmdp.Refusal, match="observed values"):
        exact(network(Y, X), public=["y"])
    with pm.Model(coords={"answer": ["no", "yes"]}) as model:
        y = pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=Y)
        pm.Categorical("x", pm.Dirichlet("q", np.ones(3), dims=("answer", "level"), shape=(2, 3))[y], observed=X)
    with pytest.raises(pmdp.Refusal, match="observed values"):
        exact(model, public=["answer"])


def test_a_parent_above_a_prior_is_refused():
    with pm.Model() as model:
        y = pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=Y)
        pm.Normal("x", pm.Normal("m", y.mean(), 1), 1, observed=X.astype(float))
    with pytest.raises(pmdp.Refusal, match="prior of m"):
        pmdp.release(model, epsilon=1.0, bounds={"x": (0, 2)})


def test_one_record_moves_every_family_by_two(exact_seam):
    """All pairs of records of three binary variables in a chain: the L1 distance per family is at most 2, and 2 is reached."""
    largest = np.zeros(3)
    base = np.array([[0, 1, 0], [1, 1, 1]])
    records = [np.array(record) for record in np.ndindex(2, 2, 2)]
    totals = [[s.noisy.ravel() for s in exact(chain(np.vstack([base, record]))).statistics] for record in records]
    for first, second in product(totals, repeat=2):
        moved = [np.abs(a - b).sum() for a, b in zip(first, second, strict=True)]
        largest = np.maximum(largest, moved)
    assert largest.tolist() == [s.difference for s in exact(chain(base)).statistics] == [1, 2, 2]


def chain(rows):
    with pm.Model() as model:
        a = pm.Bernoulli("a", pm.Beta("p", 1, 1), observed=rows[:, 0])
        b = pm.Bernoulli("b", pm.Beta("q", 1, 1, shape=2)[a], observed=rows[:, 1])
        pm.Bernoulli("c", pm.Beta("r", 1, 1, shape=2)[b], observed=rows[:, 2])
    return model


def test_columns_below_a_parent_have_a_noise_aware_likelihood():
    """Much noise, so that exact counts are latent; and little."""
    rng = np.random.default_rng(4)
    with pm.Model() as model:
        y = pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=Y)
        pm.Bernoulli("x", pm.Beta("t", 1, 1, shape=(2, 4))[y], observed=rng.integers(0, 2, (N, 4)))
    for epsilon in (0.3, 30.0):
        check_finite(pmdp.rewrite(model, pmdp.release(model, epsilon=epsilon)))
