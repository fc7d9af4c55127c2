"""Synthetic data sets have the law of the posterior predictive, with labels and no record; what is combined covers."""

import pickle
import runpy
from pathlib import Path

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats

import pymc_dp as pmdp

CANARY = 7123.456789
COORDS = {"age": ["young", "middle", "old"], "sex": ["f", "m"]}
AGES = np.array([0.2, 0.5, 0.3])
MEN = np.array([0.1, 0.5, 0.8])
RATE = np.array([[0.1, 0.3], [0.5, 0.6], [0.8, 0.9]])
SETS, ROWS = 40, 5000


def network(n=600):
    with pm.Model(coords=COORDS) as model:
        age = pm.Categorical("age_group", pm.Dirichlet("ages", np.ones(3), dims="age"), observed=np.arange(n) % 3)
        sex = pm.Bernoulli("sex_of", pm.Beta("men", 1, 1, dims="age")[age], observed=np.arange(n) % 2)
        pm.Bernoulli("ill", pm.Beta("rate", 1, 1, dims=("age", "sex"))[age, sex], observed=np.arange(n) % 2)
    return model


def table(n=600):
    with pm.Model(coords=COORDS) as model:
        age, sex = pm.Data("x", np.arange(n) % 3), pm.Data("z", np.arange(n) // 3 % 2)
        pm.Bernoulli("ill", pm.Beta("rate", 1, 1, dims=("age", "sex"))[age, sex], observed=np.arange(n) % 2)
    return model


def tree_of(model, released, latent=None, **values):
    """A labelled tree of SETS draws, whose posterior is what is given, at every draw."""
    private = pmdp.rewrite(model, released)
    data = {}
    for name, value in values.items():
        value = np.asarray(value, dtype=float)
        dims = private.named_vars_to_dims.get(name) or [f"{name}_{k}" for k in range(value.ndim)]
        data[name] = (("chain", "draw", *dims), np.broadcast_to(value, (2, SETS // 2, *value.shape)).copy())
    groups = {"posterior": xr.Dataset(data)}
    if latent is not None:
        sizes = np.broadcast_to(latent, (2, SETS // 2, *np.shape(latent))).copy()
        groups["latent_statistics"] = xr.Dataset({"ill_size": (("chain", "draw", "ill_group", "ill_kind"), sizes)})
    return pmdp.annotate(xr.DataTree.from_dict(groups), released)


def within(counts, p, many):
    """Whether a count of so many is binomial: within five standard deviations, of which one in a million fails."""
    np.testing.assert_array_less(np.abs(counts - many * p), 5 * np.sqrt(many * p * (1 - p)) + 1)


def of_network():
    model = network()
    released = pmdp.release(model, epsilon=1.0)
    return model, tree_of(model, released, ages=AGES, men=MEN, rate=RATE)


def test_a_network_is_drawn_with_its_labels_parents_first():
    model, tree = of_network()
    made = pmdp.synthesize(tree, network(12), rows=ROWS, sets=SETS, random_seed=1)
    assert set(made.data_vars) == {"age_group", "sex_of", "ill"}
    assert all(made[name].dims == ("set", "record") and made[name].shape == (SETS, ROWS) for name in made.data_vars)
    assert made.attrs["epsilon"] == 1.0
    for k, age in enumerate(COORDS["age"]):
        there = made["age_group"] == age
        within(int(there.sum()), AGES[k], SETS * ROWS)
        for j, sex in enumerate(COORDS["sex"]):
            both = there & (made["sex_of"] == sex)
            within(int(both.sum()), (MEN[k] if j else 1 - MEN[k]), int(there.sum()))
            within(int((made["ill"].where(both) == 1).sum()), RATE[k, j], int(both.sum()))
    assert (made["ill"].isel(set=0) != made["ill"].isel(set=1)).any()
    xr.testing.assert_identical(made, pmdp.synthesize(tree, model, rows=ROWS, sets=SETS, random_seed=1))
    assert list(made.isel(set=0, drop=True).to_dataframe().columns) == ["age_group", "sex_of", "ill"]


SIZES = np.array([[0.05, 0.1, 0.15, 0.2, 0.2, 0.3]])


def test_private_indices_are_drawn_from_their_cells():
    """Counts of a table are multinomial about the sizes, so sizes are the probabilities of a new record."""
    model = table()
    released = pmdp.release(model, epsilon=1.0)
    made = pmdp.synthesize(tree_of(model, released, SIZES, rate=RATE), model, rows=ROWS, sets=SETS, random_seed=1)
    for k, age in enumerate(COORDS["age"]):
        for j, sex in enumerate(COORDS["sex"]):
            both = (made["x"] == age) & (made["z"] == sex)
            within(int(both.sum()), SIZES[0, 2 * k + j], SETS * ROWS)
            within(int((made["ill"].where(both) == 1).sum()), RATE[k, j], int(both.sum()))
    cells = ((made["x"] == "old") & (made["z"] == "m")).sum("record").values
    assert cells.var() < 4 * ROWS * 0.3 * 0.7  # binomial, and not a Dirichlet law of 600 records on top, which is 9 times that


def test_public_indices_are_drawn_as_often_as_records_had_them():
    """With the chance of a bootstrap of 600 records: 5000 (1 + 5000/600) times the variance of one."""
    model = table()
    released = pmdp.release(model, epsilon=1.0, public=["x", "z"])
    made = pmdp.synthesize(tree_of(model, released, rate=RATE), model, rows=ROWS, sets=SETS, random_seed=1)
    counts = (made["x"] == "old").sum("record").values
    variance = ROWS * (1 + ROWS / 601) * (2 / 9)
    assert abs(counts.mean() - ROWS / 3) < 5 * np.sqrt(variance / SETS)
    assert 0.2 < counts.var(ddof=1) / variance < 3  # chi-square of 39 degrees of freedom: one in a million lies outside .28 and 2.5
    both = (made["x"] == "old") & (made["z"] == "f")
    within(int((made["ill"].where(both) == 1).sum()), RATE[2, 0], int(both.sum()))


def regression(x, y):
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("a") + pm.Data("x", x) @ pm.Normal("b", shape=2), pm.HalfNormal("sigma"), observed=y)
    return model


def test_covariates_of_a_regression_are_given_and_no_record_is_in_the_sets():
    model = regression(np.full((50, 2), CANARY), np.full(50, CANARY))
    released = pmdp.release(model, epsilon=1.0, bounds={"x": (-4, 4), "y": (-4, 4)})
    tree = tree_of(model, released, a=1.0, b=[2.0, -1.0], sigma=0.5)
    with pytest.raises(pmdp.Refusal, match=r"no cells.*given=\{'x'"):
        pmdp.synthesize(tree, model, rows=100, sets=5)
    x = np.random.default_rng(1).normal(size=(400, 2))
    made = pmdp.synthesize(tree, model, rows=400, sets=5, given={"x": x}, random_seed=1)
    assert made["x"].dims == ("set", "record", "x_0")
    assert stats.kstest(((made["y"] - 1 - x @ [2.0, -1.0]) / 0.5).values.ravel(), "norm").pvalue > 1e-6
    assert np.float64(CANARY).tobytes() not in pickle.dumps(made)


def test_what_cannot_be_drawn_is_refused_in_words():
    model, tree = of_network()
    for wrong in ({"rows": 0}, {"rows": 10, "sets": 0}, {"rows": True}):
        with pytest.raises(pmdp.Refusal, match="must be a positive integer"):
            pmdp.synthesize(tree, model, **wrong)
    with pytest.raises(pmdp.Refusal, match=f"Write sets={SETS}"):
        pmdp.synthesize(tree, model, rows=10, sets=SETS + 1)
    with pytest.raises(pmdp.Refusal, match="with your own"):
        pmdp.synthesize(tree, pmdp.private_model(tree, model), rows=10, sets=2)
    private = table()
    released = pmdp.release(private, epsilon=1.0)
    with pytest.raises(pmdp.Refusal, match="does not hold ill_size"):
        pmdp.synthesize(tree_of(private, released, rate=RATE), private, rows=10, sets=2)
    with pm.Model() as apart:
        p = pm.Beta("p", 1, 1, shape=2)
        pm.Bernoulli("u", p[pm.Data("g", np.arange(20) % 2)], observed=np.arange(20) % 2)
        pm.Bernoulli("v", p[pm.Data("h", np.arange(20) // 10)], observed=np.arange(20) % 2)
    released = pmdp.release(apart, epsilon=1.0)
    with pytest.raises(pmdp.Refusal, match="how they go together"):
        pmdp.synthesize(tree_of(apart, released, p=[0.5, 0.5]), apart, rows=10, sets=2)


def test_combining_is_the_rule_and_covers():
    """By hand for two sets. And on simulated sets, whose own chance is a third of the posterior's: 95 % intervals of 20,000 hold the truth
    in 95 %, within five standard errors of .0015 and .005 for what Reiter's degrees of freedom approximate. With that chance counted
    twice it would be above 97 %.
    """
    two = pmdp.combine([[1.0, 4.0], [3.0, 8.0]], [[0.5, 1.0], [0.5, 1.0]], probability=0.9)
    np.testing.assert_allclose(two["estimate"], [2, 6])
    np.testing.assert_allclose(two["standard_error"] ** 2, [1.5 * 2 - 0.25, 1.5 * 8 - 1])
    freedom = (1 - np.array([0.25 / 3, 1 / 12])) ** 2
    np.testing.assert_allclose(two["degrees_of_freedom"], freedom)
    np.testing.assert_allclose(two["upper"] - 2 * two["estimate"] + two["estimate"], stats.t.ppf(0.95, freedom) * two["standard_error"])
    rng = np.random.default_rng(1)
    centre = rng.normal(size=20_000)
    drawn = centre + rng.normal(size=(20, 20_000)) + rng.normal(size=(20, 20_000)) * np.sqrt(1 / 3)
    keep = drawn.var(axis=0, ddof=1) > 2 / 3
    found = pmdp.combine(drawn[:, keep], np.full((20, keep.sum()), np.sqrt(1 / 3)))
    covered = ((found["lower"] <= 0) & (found["upper"] >= 0)).values.mean()
    assert abs(covered - 0.95) < 5 * 0.0015 + 0.005
    assert ((np.abs(drawn[:, keep].mean(axis=0)) <= 1.96 * np.sqrt(drawn[:, keep].var(axis=0, ddof=1) + 1 / 3)).mean()) > 0.97


def test_combining_refuses_what_says_nothing():
    for q, se in (([1.0], [0.1]), ([1.0, 2.0], [0.1]), ([1.0, 2.0], [[0.1], [0.1]])):
        with pytest.raises(pmdp.Refusal, match="at least two sets"):
            pmdp.combine(q, se)
    with pytest.raises(pmdp.Refusal, match="finite"):
        pmdp.combine([1.0, np.nan], [0.1, 0.1])
    with pytest.raises(pmdp.Refusal, match="between 0 and 1"):
        pmdp.combine([1.0, 2.0], [0.1, 0.1], probability=95)
    with pytest.raises(pmdp.Refusal, match="ten times as many rows"):
        pmdp.combine([1.0, 1.1], [0.5, 0.5])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["network", "private"])
def test_a_logistic_regression_of_synthetic_records_covers(kind):
    """Of 50 replicates, 95 % intervals of each coefficient hold the truth in 38 or more. Fewer have probability one in a million if they
    cover 95 %; if they cover 71 %, as those of one set that is taken for real, one coefficient or another has fewer nearly always.
    """
    benchmark = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "synthetic.py"))
    rng = np.random.default_rng(5)
    combined = np.array([benchmark["replicate"](rng, kind)["combined"] for _ in range(50)])
    assert (combined.sum(axis=0) >= 38).all()
