"""What once told data sets apart where observed variables depend on each other, or gave a wrong result without a word."""

from fractions import Fraction

import numpy as np
import pymc as pm
import pytest
from checks import seam_of

import pymc_dp as pmdp
from pymc_dp.plans.network import Network

pytestmark = pytest.mark.filterwarnings("ignore")
Y = np.array([0.0, 1, 1, 0, 1, 0])
X = np.array([0.0, 1, 0, 0, 1, 1])


def hole(values):
    other = values.copy()
    other[2] = np.nan
    return other


def outcome(function):
    """What the caller sees: a result in words, or an exception in words."""
    try:
        return str(function())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


# ---------- the promise: Fourier coefficients cost 1.5 epsilon
def float_data(name, values):
    variable = pm.Data(name, np.zeros(np.shape(values)))
    variable.set_value(np.asarray(values, dtype=float))
    return variable


def cast_in_the_graph(rows, K):
    """The child, written first, casts the parent's real-valued pm.Data to an integer, as an index."""
    with pm.Model() as model:
        g = float_data("g_data", rows[:, 0])
        pm.Bernoulli("y", pm.Beta("t", 1, 1, shape=K)[g.astype("int64")], observed=float_data("y_data", rows[:, 1]))
        if K == 2:
            pm.Bernoulli("g", pm.Beta("p", 1, 1), observed=g)
        else:
            pm.Categorical("g", pm.Dirichlet("p", np.ones(K)), observed=g)
    return model


@pytest.mark.parametrize(
    ("K", "first", "second"), [(2, (0, 0), (0.7, 1)), (3, (0, 0), (0.7, 1)), (4, (1, 0), (np.nan, 1))], ids=["2", "3", "4, missing"]
)
def test_fourier_costs_no_more_than_was_paid(K, first, second):
    """0.7 is level 1 in the parent's own table (rounded) and level 0 in the child's (cut off): no u explains both. NaN: 2 and 1."""
    found = []
    for record in (first, second):
        with seam_of(0) as seam:
            pmdp.release(cast_in_the_graph(np.array([[0, 0], [1, 1], record]), K), epsilon=1, mechanism="fourier")
        found.append(seam)
    moved = sum(abs(a - b) for a, b in zip(found[0].exact[0], found[1].exact[0], strict=True))
    assert Fraction(moved) / Fraction(found[0].scales[0]) <= 1


# ---------- the promise: whether a value is missing shows in the order of what leaves
def child_before_its_parent(x):
    with pm.Model() as model:
        a_data = pm.Data("a_data", Y.astype(int))
        pm.Bernoulli("b", pm.Beta("q", 1, 1, shape=2)[a_data], observed=x)
        pm.Bernoulli("a", pm.Beta("p", 1, 1), observed=a_data)
    return model


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_the_order_of_posterior_draws_does_not_depend_on_missing_values(neighbours):
    """The graph's own order of variables does."""
    orders = []
    for x in (X, hole(X)):
        tree = pmdp.sample(model=child_before_its_parent(x), epsilon=1, mechanism=pmdp.PosteriorSample(), neighbours=neighbours)
        orders.append((list(tree["posterior"].data_vars), list(tree["posterior"].dims)))
    assert orders[0] == orders[1]


def two_priors_of_other_kinds(x):
    with pm.Model() as model:
        a_data = pm.Data("a_data", Y.astype(int))
        pm.Bernoulli("b", pm.Uniform("q", 0.1, 0.9, shape=2)[a_data], observed=x)
        pm.Bernoulli("a", pm.Kumaraswamy("p", 1, 1), observed=a_data)
    return model


def test_which_prior_is_refused_does_not_depend_on_missing_values():
    words = [outcome(lambda x=x: pmdp.find_MAP(model=two_priors_of_other_kinds(x), epsilon=1)) for x in (X, hole(X))]
    assert words[0] == words[1]


# ---------- the promise: whether a value is missing shows in whether add_remove is refused
def with_dims(y, x):
    with pm.Model(coords={"rec": np.arange(len(y))}) as model:
        a = pm.Bernoulli("a", pm.Beta("p", 1, 1), observed=y, dims="rec")
        pm.Bernoulli("b", pm.Beta("q", 1, 1, shape=2)[a], observed=x, dims="rec")
    return model


@pytest.mark.parametrize("mechanism", ["laplace", "fourier", "posterior", "inspect"])
def test_a_missing_value_of_a_child_does_not_refuse_add_remove(mechanism):

    def seen(x):
        model = with_dims(Y, x)
        if mechanism == "inspect":
            return repr(pmdp.inspect(model, neighbours="add_remove"))
        if mechanism == "posterior":
            return outcome(lambda: type(pmdp.find_MAP(model=model, epsilon=1, neighbours="add_remove")))
        return outcome(lambda: type(pmdp.release(model, epsilon=1, neighbours="add_remove", mechanism=mechanism)))

    assert seen(X) == seen(hole(X))


# ---------- the promise: words of inspect and of refusals
def deterministic_of_records(y):
    with pm.Model() as model:
        a = pm.Bernoulli("a", pm.Beta("p", 1, 1), observed=y)
        pm.Deterministic("twice", 2 * a)
        pm.Bernoulli("b", pm.Beta("q", 1, 1, shape=2)[a], observed=X)
    return model


def test_why_something_is_dropped_does_not_depend_on_missing_values():
    assert repr(pmdp.inspect(deterministic_of_records(Y))) == repr(pmdp.inspect(deterministic_of_records(hole(Y))))


def prior_of_records(y):
    with pm.Model() as model:
        a = pm.Bernoulli("a", pm.Beta("p", 1, 1), observed=y)
        pm.Bernoulli("b", pm.Beta("q", 1, 1, shape=2)[a], observed=X)
        pm.Normal("m", a.mean(), 1)
    return model


def test_a_refusal_does_not_depend_on_missing_values():
    words = [outcome(lambda y=y: pmdp.release(prior_of_records(y), epsilon=1)) for y in (Y, hole(Y))]
    assert words[0] == words[1]


# ---------- wrong results
def two_nodes(first=lambda p: p, K=2, x=None, concentration=1.0):
    g = np.array([0, 1] * 4)
    with pm.Model() as model:
        a = pm.Bernoulli("a", first(pm.Beta("p", 1, 1)), observed=g)
        if K == 2:
            pm.Bernoulli("x", pm.Beta("q", 1, 1, shape=2)[a], observed=(np.arange(8) > 3).astype(int))
        else:
            pm.Categorical("x", pm.Dirichlet("q", np.full(K, concentration), shape=(2, K))[a], observed=x)
    return model, g


def test_the_mode_is_that_of_the_dirichlet_prior():
    """Score sum_k (a_k - 1 + n_k) log p_k, as pm.find_MAP: not the density of the splits, whose mode is another."""
    K, x = 8, np.array([0, 0, 0, 0, 1, 1, 2, 3])
    model, g = two_nodes(K=K, x=x, concentration=2.0)
    found = pmdp.find_MAP(model=model, epsilon=10**7, smallest=0.001)["q"]
    counts = np.array([[((g == j) & (x == k)).sum() for k in range(K)] for j in range(2)]) + 1.0
    np.testing.assert_allclose(found, counts / counts.sum(axis=1, keepdims=True), atol=0.01)


@pytest.mark.parametrize(
    "first",
    [lambda p: pm.math.clip(p, 0.25, 0.75), lambda p: pm.math.minimum(p, 0.6), lambda p: pm.math.switch(p < 0.9, p, 1 - p)],
    ids=["clip", "minimum", "switch"],
)
def test_a_function_of_a_root_s_probability_is_not_taken_for_the_probability(first):
    """Which evaluating it at a few values would not tell."""
    with pytest.raises(pmdp.Refusal, match="not entries"):
        pmdp.find_MAP(model=two_nodes(first)[0], epsilon=1)


@pytest.mark.slow
@pytest.mark.parametrize(("neighbours", "epsilon"), [("add_remove", 1.0), ("replace", 8.0)])
def test_the_noise_of_a_binary_root_is_as_large_as_it_is_modelled(neighbours, epsilon):
    """add_remove: a count is (c0 + c1) / 2, and both have noise. replace: half of discrete Laplace noise of scale 2 is not that of scale 1.

    Of 300 releases, at 5 standard deviations of the variance of a Laplace sample.
    """
    model, _ = two_nodes()
    several = [pmdp.release(model, epsilon=epsilon, mechanism="fourier", neighbours=neighbours) for _ in range(300)]
    values = np.array([one["a"].values.ravel() for one in several])
    ratio = np.var(values, axis=0) / several[0]["a"].noise.standard_deviation ** 2
    assert np.abs(ratio - 1).max() < 5 * np.sqrt(5 / 300)


# ---------- crashes
def chain(length):
    rng = np.random.default_rng(0)
    with pm.Model() as model:
        before = None
        for k in range(length):
            p = pm.Beta(f"p{k}", 1, 1) if before is None else pm.Beta(f"p{k}", 1, 1, shape=2)[before]
            before = pm.Bernoulli(f"v{k}", p, observed=rng.integers(0, 2, 20))
    return model


@pytest.mark.parametrize(("length", "given"), [(60, {}), (60, {"v0": [0, 1]}), (3, {"v0": []})], ids=["60 hidden", "60 given one", "none"])
def test_predictions_are_made_or_refused(length, given):
    tree = pmdp.sample(model=chain(length), epsilon=100, mechanism=pmdp.PosteriorSample())
    try:
        found = pmdp.predict(tree, f"v{length - 1}", given)
    except pmdp.Refusal:
        return
    assert found.sizes["level"] == 2


def test_a_node_s_name_is_its_own(tmp_path):
    """An observed variable called v[0] beside a v of two columns: charged, and then the computation fails."""
    rng = np.random.default_rng(0)
    with pm.Model() as model:
        g = pm.Bernoulli("g", pm.Beta("p", 1, 1), observed=rng.integers(0, 2, 20))
        pm.Bernoulli("v", pm.Beta("q", 1, 1, shape=(2, 2))[g], observed=rng.integers(0, 2, (20, 2)))
        pm.Categorical("v[0]", pm.Dirichlet("r", np.ones(3), shape=(2, 3))[g], observed=rng.integers(0, 3, 20))
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=3, create=True)
    words = [
        outcome(lambda: pmdp.release(model, epsilon=1, mechanism="fourier", ledger=ledger)),
        outcome(lambda: pmdp.find_MAP(model=model, epsilon=1, ledger=ledger)),
    ]
    assert not any(one.startswith("PrivateComputationError") for one in words)


def test_a_shift_that_needs_no_record_fails_before_anything_is_charged(tmp_path, monkeypatch):

    def too_large(*_):
        raise MemoryError

    monkeypatch.setattr(Network, "stealth", too_large)
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=3, create=True)
    outcome(lambda: pmdp.release(two_nodes()[0], epsilon=1, mechanism=pmdp.Fourier(nonnegative="stealth"), ledger=ledger))
    assert ledger.remaining().epsilon == 3


# ---------- accounting
def test_a_draw_from_the_posterior_is_charged_as_the_guarantee_says(tmp_path):
    """Two families at half of epsilon each, and eta^2 / 8 for each: less than epsilon^2 / 8."""
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=3, delta=1e-6, create=True)
    pmdp.find_MAP(model=two_nodes()[0], epsilon=0.1, ledger=ledger)
    assert ledger.entries()["rho"].iloc[-1] == pytest.approx(2 * 0.05**2 / 8, rel=1e-6)
