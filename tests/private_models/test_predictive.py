"""Draws of records from the posterior predictive distribution: from the right law, on rows that hold no record."""

import json
import pickle
import warnings

import numpy as np
import pymc as pm
import pymc.dims as pmd
import pytest
import xarray as xr
from models import EVERY_MODEL, normal_by_precision
from scipy import stats

import pymc_dp as pmdp

CANARY = 7123.456789
DRAWS = 4000


def tree_of(model, released, **values):
    """A labelled tree whose posterior is what is given, at every draw."""
    private = pmdp.rewrite(model, released, noise_aware=False)
    data, coords = {}, {"chain": [0, 1], "draw": np.arange(DRAWS // 2)}
    for name, value in values.items():
        value = np.asarray(value, dtype=float)
        dims = private.named_vars_to_dims.get(name) or [f"{name}_dim_{k}" for k in range(value.ndim)]
        data[name] = (("chain", "draw", *dims), np.broadcast_to(value, (2, DRAWS // 2, *value.shape)).copy())
        coords |= {dim: list(private.coords[dim]) for dim in dims if private.coords.get(dim) is not None}
    return pmdp.annotate(xr.DataTree.from_dict({"posterior": xr.Dataset(data, coords=coords)}), released)


def close(draws, mean, sd):
    """Means over draws within 4.5 standard errors; deviations, too, where there are any."""
    draws = draws.reshape(DRAWS, *draws.shape[2:])
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - mean), 4.5 * np.asarray(sd) / np.sqrt(DRAWS) + 1e-12)
    np.testing.assert_allclose(draws.std(axis=0), np.broadcast_to(sd, draws.shape[1:]), rtol=0.1)


@pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")
@pytest.mark.parametrize("make", [one for one in EVERY_MODEL if one is not normal_by_precision], ids=lambda make: make.__name__)
def test_every_model_with_cells_is_drawn_and_dummy_rows_give_the_same(make):
    """Of 60 records, and of 24 others: the same release, the same draws."""
    model, arguments = make()
    released = pmdp.release(model, epsilon=1.0, **arguments)
    private = pmdp.rewrite(model, released)
    names = [one.name for one in private.free_RVs if not one.name.endswith(("_noise", "_size"))]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The effect of Potentials")
        prior = pm.sample_prior_predictive(5, model=private, random_seed=1, var_names=names, compile_kwargs={"mode": "FAST_COMPILE"})
    tree = pmdp.annotate(xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()}), released)
    drawn = pmdp.posterior_predictive(tree, model=model, random_seed=1)["posterior_predictive"]
    others = pmdp.posterior_predictive(tree, model=make(24, 5)[0], random_seed=1)["posterior_predictive"]
    xr.testing.assert_identical(drawn.to_dataset(), others.to_dataset())
    for one in released.statistics:
        assert drawn[one.variable].dims[:3] == ("chain", "draw", f"{one.variable}_cell")
        assert drawn[one.variable].shape[2:] == one.noisy.shape[:-1]
    assert np.float64(CANARY).tobytes() not in pickle.dumps(drawn)


def indexed(n=60, values=None):
    g = np.arange(n) % 3
    with pm.Model(coords={"group": ["a", "b", "c"]}) as model:
        mu = pm.Normal("mu", 0, 2, dims="group")
        pm.Normal("x", mu[pm.Data("g", g)], pm.HalfNormal("sigma"), observed=np.zeros(n) if values is None else values)
    return model


@pytest.mark.parametrize("public", [["g"], []], ids=["public", "private"])
def test_cells_and_new_records_of_an_index(public):
    records = np.full(60, CANARY)
    released = pmdp.release(indexed(values=records), epsilon=1.0, bounds={"x": (-4, 4)}, public=public)
    tree = tree_of(indexed(), released, mu=[-9.0, 0.0, 50.0], sigma=2.0)
    drawn = pmdp.posterior_predictive(tree, model=indexed(6, np.full(6, CANARY)), random_seed=1)
    cells = drawn["posterior_predictive"]
    assert cells["x"].dims == ("chain", "draw", "x_cell")
    assert cells["x_at_g"].values.tolist() == [0, 1, 2]
    close(cells["x"].values, [-9, 0, 50], 2.0)
    for name, new in {"g": [2, 0, 0, 1], "group": ["c", "a", "a", "b"]}.items() if public else [("g", [2, 0, 0, 1])]:
        made = pmdp.posterior_predictive(tree, model=indexed(), given={name: new}, random_seed=1)
        assert made["predictions"]["x"].dims == ("chain", "draw", "record")
        close(made["predictions"]["x"].values, [50, -9, -9, 0], 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shared = pmdp.to_share(drawn)
    assert json.loads(shared.attrs["privacy_covers"])["posterior_predictive"] == ["x"]
    assert np.float64(CANARY).tobytes() not in pickle.dumps(drawn)


def test_the_seed_is_that_of_the_draws():
    released = pmdp.release(indexed(), epsilon=1.0, bounds={"x": (-4, 4)}, public=["g"])
    tree = tree_of(indexed(), released, mu=[-9.0, 0.0, 50.0], sigma=2.0)
    one, same, other = (pmdp.posterior_predictive(tree, model=indexed(), random_seed=k)["posterior_predictive"]["x"] for k in (1, 1, 2))
    assert (one == same).all()
    assert (one != other).all()
    assert (one.isel(draw=0) != one.isel(draw=1)).all()


def regression(x, y, link=""):
    with pm.Model() as model:
        mean = pm.Normal("a") + pm.Data("x", x) @ pm.Normal("b", shape=2)
        if link:
            pm.Bernoulli("y", logit_p=mean, observed=y)
        else:
            pm.Normal("y", mean, pm.HalfNormal("sigma"), observed=y)
    return model


NEW = np.array([[0.0, 1.0], [2.0, 0.5], [-30.0, 0.0]])


def test_regressions_need_covariates_and_nothing_is_clamped():
    x, y = np.full((50, 2), CANARY), np.full(50, CANARY)
    model = regression(x, y)
    released = pmdp.release(model, epsilon=1.0, bounds={"x": (-4, 4), "y": (-4, 4)})
    tree = tree_of(model, released, a=1.0, b=[2.0, -1.0], sigma=0.5)
    made = pmdp.posterior_predictive(tree, model=regression(np.zeros((7, 2)), np.zeros(7)), given={"x": NEW}, random_seed=1)
    close(made["predictions"]["y"].values, 1 + NEW @ [2.0, -1.0], 0.5)
    assert np.float64(CANARY).tobytes() not in pickle.dumps(made)
    with pytest.raises(pmdp.Refusal, match=r"second moments were released.*given=\{'x'"):
        pmdp.posterior_predictive(tree, model=model)


def test_a_link():
    model = regression(np.zeros((50, 2)), np.arange(50) % 2, link="logit")
    released = pmdp.release(model, epsilon=1.0, bounds={"x": (-4, 4), "logit(y)": (-3, 3)})
    tree = tree_of(model, released, a=1.0, b=[2.0, -1.0])
    made = pmdp.posterior_predictive(tree, model=model, given={"x": NEW[:2]}, random_seed=1)
    p = 1 / (1 + np.exp(-(1 + NEW[:2] @ [2.0, -1.0])))
    close(made["predictions"]["y"].values, p, np.sqrt(p * (1 - p)))


def table(n=40):
    r = np.arange(n)
    with pm.Model() as model:
        eta = pm.Normal("a") + pm.Normal("b") * pm.Data("age", r % 3) + pm.Normal("c") * pm.Data("sex", r % 2)
        pm.Poisson("k", pm.math.exp(eta), observed=r % 5)
        pm.Bernoulli("y", logit_p=eta, observed=r % 2)
    return model


def test_tables_and_several_observed_variables():
    model = table()
    released = pmdp.release(model, epsilon=1.0, bounds={"k": (0, 6), "age": (0, 2), "sex": {0, 1}})
    tree = tree_of(model, released, a=0.5, b=0.3, c=-1.0)
    cells = pmdp.posterior_predictive(tree, model=table(9), random_seed=1)["posterior_predictive"]
    eta = 0.5 + 0.3 * cells["k_at_age"].values - cells["k_at_sex"].values
    assert sorted(zip(cells["k_at_age"].values, cells["k_at_sex"].values)) == [(i, j) for i in range(3) for j in range(2)]
    close(cells["k"].values, np.exp(eta), np.sqrt(np.exp(eta)))
    p = 1 / (1 + np.exp(-eta))
    close(cells["y"].values, p, np.sqrt(p * (1 - p)))
    made = pmdp.posterior_predictive(tree, model=model, given={"age": [7], "sex": [1]}, var_names=["k"], random_seed=1)["predictions"]
    assert set(made.data_vars) == {"k"}
    close(made["k"].values, np.exp([0.5 + 2.1 - 1]), np.sqrt(np.exp([1.6])))


def network(n=40):
    party = np.arange(n) % 2
    with pm.Model() as model:
        pm.Bernoulli("party", pm.Beta("share", 1, 1), observed=party)
        pm.Categorical("vote", pm.Dirichlet("p", np.ones(3), shape=(2, 3))[pm.model.modelcontext(None)["party"]], observed=party + 1)
    return model


def test_observed_parents_are_drawn_first_or_given():
    model = network()
    tree = tree_of(model, pmdp.release(model, epsilon=1.0), share=0.25, p=[[0.9, 0.1, 0.0], [0.0, 0.2, 0.8]])
    made = pmdp.posterior_predictive(tree, model=network(4), records=3, random_seed=1)["predictions"]
    party, vote = made["party"].values, made["vote"].values
    close(party, [0.25] * 3, np.sqrt(0.25 * 0.75))
    assert not ((party == 0) & (vote == 2)).any()
    assert not ((party == 1) & (vote == 0)).any()
    given = pmdp.posterior_predictive(tree, model=model, given={"party": [1, 0]}, random_seed=1)["predictions"]
    assert set(given.data_vars) == {"vote"}
    close(given["vote"].values, [1.8, 0.1], [0.4, 0.3])
    cells = pmdp.posterior_predictive(tree, model=model, random_seed=1)["posterior_predictive"]
    close(cells["vote"].values, [0.1, 1.8], [0.3, 0.4])
    assert cells["vote_at_party"].values.tolist() == [0, 1]


def test_shared_parameters_need_a_number_of_records_only():
    with pm.Model() as model:
        pm.Poisson("k", pm.Gamma("rate", 2, 1), observed=np.arange(20) % 4)
    tree = tree_of(model, pmdp.release(model, epsilon=1.0, bounds={"k": (0, 4)}), rate=9.0)
    assert pmdp.posterior_predictive(tree, model=model)["posterior_predictive"]["k"].shape == (2, DRAWS // 2, 1)
    close(pmdp.posterior_predictive(tree, model=model, records=5, random_seed=1)["predictions"]["k"].values, [9.0] * 5, 3.0)


def test_draws_that_were_paid_for():
    """A likelihood without sufficient statistics, by one posterior draw."""
    with pm.Model() as model:
        mu = pm.Uniform("mu", -5, 5)
        pm.StudentT("x", nu=4, mu=mu, sigma=1.0, observed=np.linspace(-1, 1, 40))
    tree = pmdp.sample(model=model, epsilon=1.0, bounds={"x": (-4, 4)}, mechanism=pmdp.PosteriorSample(points=201))
    made = pmdp.posterior_predictive(tree, model=model, records=4000, random_seed=1)
    residuals = made["predictions"]["x"].values.ravel() - tree["posterior"]["mu"].item()
    assert stats.kstest(residuals, stats.t(4).cdf).pvalue > 1e-4
    assert made["predictions"].attrs["promise"] == tree.attrs["promise"]
    with pytest.raises(pmdp.Refusal, match="rest on no cells"):
        pmdp.posterior_predictive(tree, model=model)


def transformed(age, spelling):
    with pm.Model() as model:
        age = pm.Data("age", age)
        z = {"logarithm": pm.math.log(age), "standardised": (age - age.mean()) / age.std()}[spelling]
        pm.Poisson("k", pm.math.exp(pm.Normal("a") + pm.Normal("b") * z), observed=np.arange(40) % 3)
    return model


def test_a_public_array_that_the_model_computes_with():
    """The logarithm is taken of what is given; a mean over records is of the old ones, so that nothing can be given for it."""
    age = 20.0 + np.arange(40) % 4
    model = transformed(age, "logarithm")
    tree = tree_of(model, pmdp.release(model, epsilon=1.0, bounds={"k": (0, 5)}, public=["age"]), a=0.1, b=0.5)
    made = pmdp.posterior_predictive(tree, model=model, given={"age": [4.0, 100.0]}, random_seed=1)
    rate = np.exp(0.1 + 0.5 * np.log([4.0, 100.0]))
    close(made["predictions"]["k"].values, rate, np.sqrt(rate))
    model = transformed(age, "standardised")
    tree = tree_of(model, pmdp.release(model, epsilon=1.0, bounds={"k": (0, 5)}, public=["age"]), a=0.1, b=0.5)
    assert pmdp.posterior_predictive(tree, model=model)["posterior_predictive"]["k"].shape[2] == 4
    with pytest.raises(pmdp.Refusal, match="age cannot be given, because the model computes with it"):
        pmdp.posterior_predictive(tree, model=model, given={"age": [4.0]})


def test_named_dims():
    """Models of ``pymc.dims``."""
    with pm.Model(coords={"group": ["a", "b"], "row": np.arange(40)}) as model:
        g = pmd.Data("g", np.arange(40) % 2, dims="row")
        mu = pmd.Normal("mu", 0, 2, dims="group")
        pmd.Normal("x", mu.isel(group=g), 1.0, dims="row", observed=pmd.as_xtensor(np.zeros(40), dims=("row",)))
    tree = tree_of(model, pmdp.release(model, epsilon=1.0, bounds={"x": (-4, 4)}, public=["g"]), mu=[-9.0, 50.0])
    close(pmdp.posterior_predictive(tree, model=model, random_seed=1)["posterior_predictive"]["x"].values, [-9, 50], 1.0)


def test_values_that_are_vectors_and_numbers_of_trials():
    counts = np.tile([3, 2, 5], (40, 1))
    with pm.Model() as model:
        pm.Multinomial("m", 10, pm.Dirichlet("p", np.ones(3)), observed=counts)
        pm.Binomial("s", 12, pm.Beta("q", 1, 1), observed=counts[:, 0])
    tree = tree_of(model, pmdp.release(model, epsilon=1.0), p=[0.2, 0.3, 0.5], q=0.25)
    cells = pmdp.posterior_predictive(tree, model=model, random_seed=1)["posterior_predictive"]
    assert cells["m"].dims == ("chain", "draw", "m_cell", "m_value")
    assert (cells["m"].sum("m_value") == 10).all()
    close(cells["m"].values, [[2, 3, 5]], np.sqrt([[1.6, 2.1, 2.5]]))
    close(cells["s"].values, [3.0], np.sqrt(12 * 0.25 * 0.75))


def test_rows_that_are_totals():
    with pm.Model() as model:
        pm.Poisson("k", pm.Gamma("rate", 2, 1, shape=3), observed=[4, 0, 9])
    tree = tree_of(model, pmdp.release(model, epsilon=1.0, unit=pmdp.Individual(events=1)), rate=[1.0, 4.0, 9.0])
    close(pmdp.posterior_predictive(tree, model=model, random_seed=1)["posterior_predictive"]["k"].values, [1, 4, 9], [1, 2, 3])
    with pytest.raises(pmdp.Refusal, match="Rows are totals"):
        pmdp.posterior_predictive(tree, model=model, records=3)


# ---------- what is not covered, and what is refused


@pytest.fixture(scope="module")
def labelled():
    released = pmdp.release(indexed(), epsilon=1.0, bounds={"x": (-4, 4)}, public=["g"])
    return tree_of(indexed(), released, mu=[-9.0, 0.0, 50.0], sigma=2.0)


def test_draws_from_a_posterior_that_was_changed_are_not_covered(labelled):
    for tree in (labelled.isel(draw=slice(0, 50)), labelled.copy(deep=True)):
        tree["posterior"]["mu"][0, 0, 0] = CANARY
        made = pmdp.posterior_predictive(tree, model=indexed(), random_seed=1)
        assert "promise" not in made["posterior_predictive"].attrs
        assert "posterior_predictive" not in json.loads(made.attrs["privacy_covers"])
    assert "posterior_predictive" not in labelled.children


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"given": {"z": [1]}}, r"given names 'z', on which nothing.*'g', 'group'"),
        ({"given": {}}, r"x rests on g, which is not given. Write given=\{'g'"),
        ({"given": {"g": [0.5]}}, "whole numbers"),
        ({"given": {"g": [-1]}}, "must not be negative"),
        ({"given": {"g": [3]}}, "points beyond its table"),
        ({"given": {"g": [[1]]}}, r"shape \(records\)"),
        ({"given": {"g": [np.nan]}}, "finite numbers"),
        ({"given": {"group": ["d"]}}, "'d', which is no label of group"),
        ({"given": {"g": [0, 1]}, "records": 3}, "as many entries"),
        ({"given": {"g": []}}, "as many entries"),
        ({"records": 0}, "positive integer"),
        ({"var_names": ["y"]}, "var_names names 'y'"),
        ({"given": {"x": [0.0]}}, "nothing to draw"),
    ],
)
def test_what_cannot_be_drawn_is_refused(labelled, arguments, reason):
    with pytest.raises(pmdp.Refusal, match=reason):
        pmdp.posterior_predictive(labelled, model=indexed(), **arguments)


def test_other_trees_and_models_are_refused(labelled):
    private = pmdp.rewrite(indexed(), pmdp.Release.from_datatree(labelled))
    with pytest.raises(pmdp.Refusal, match="naming your own model"):
        pmdp.posterior_predictive(labelled, model=private)
    with pytest.raises(pmdp.Refusal, match="naming one of its shape"):
        pmdp.posterior_predictive(labelled, model=table())
    other = pmdp.release(table(), epsilon=1.0, bounds={"k": (0, 6), "age": (0, 2), "sex": {0, 1}})
    with pytest.raises(pmdp.Refusal, match="another shape"):
        pmdp.posterior_predictive(tree_of(table(), other, a=0.5, b=0.3, c=-1.0), model=indexed())
    with pytest.raises(pmdp.Refusal, match="does not say what its promise covers"):
        pmdp.posterior_predictive(xr.DataTree.from_dict({"posterior": labelled["posterior"].to_dataset()}), model=indexed())
    without = labelled.copy()
    without["posterior"] = without["posterior"].to_dataset()[["mu"]]
    with pytest.raises(pmdp.Refusal, match="does not hold sigma"):
        pmdp.posterior_predictive(without, model=indexed())


@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_drawn_is_said_of_the_variable_that_is_asked_for():
    def logp(value, scale):
        return -abs(value) / scale - pm.math.log(2 * scale)

    with pm.Model() as lifetimes:
        pm.CustomDist("y", pm.HalfNormal("b"), logp=logp, observed=np.linspace(-3, 3, 50))
        pm.Bernoulli("z", pm.Beta("p", 1, 1), observed=np.arange(50) % 2)
    short = {"draws": 20, "tune": 20, "chains": 1, "progressbar": False, "compute_convergence_checks": False}
    tree = pmdp.sample(epsilon=5.0, model=lifetimes, bounds={"y": pmdp.Bins(-5, 5, 10)}, **short)
    with pytest.raises(pmdp.Refusal, match=r"^y is \S+, which cannot be drawn from its parameters\. Leave it out of var_names\.$"):
        pmdp.posterior_predictive(tree, model=lifetimes)
    assert set(pmdp.posterior_predictive(tree, model=lifetimes, var_names=["z"])["posterior_predictive"].data_vars) == {"z"}
