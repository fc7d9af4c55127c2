"""A release is of one model's statistics: another model's, of other functions of the same covariates, are not taken for them."""

import json

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as pmdp

Z = np.linspace(-1, 1, 60)
MEANS = {
    "a line": lambda z, a, b: a + b * z,
    "a square": lambda z, a, b: a + b * z**2,
    "a cube": lambda z, a, b: a + b * z**3,
    "standardised": lambda z, a, b: a + b * (z - 0.5) / 0.3,
    "a knot": lambda z, a, b: a + b * pm.math.maximum(z - 0.2, 0),
    "another knot": lambda z, a, b: a + b * pm.math.maximum(z - 0.21, 0),
    "a step": lambda z, a, b: a + b * (z > 0.2),
    "another step": lambda z, a, b: a + b * (z > 0.201),
    "a bump": lambda z, a, b: a + b * pm.math.exp(-(((z - 0.2) * 20) ** 2)),
    "another bump": lambda z, a, b: a + b * pm.math.exp(-(((z - 0.21) * 20) ** 2)),
}
RESPELLED = {
    "a line": lambda z, a, b: (z * b) + a,
    "a square": lambda z, a, b: pm.math.sqr(z) * b + a,
    "a cube": lambda z, a, b: a + z * z * z * b,
    "standardised": lambda z, a, b: b * (-0.5 + z) / 0.3 + a,
    "a knot": lambda z, a, b: b * pm.math.switch(z > 0.2, z - 0.2, 0) + a,
    "another knot": lambda z, a, b: a + b * ((pm.math.abs(z - 0.21) + z - 0.21) / 2),
    "a step": lambda z, a, b: a + b * (1 - (z <= 0.2)),
    "another step": lambda z, a, b: a + b * (1 - (z <= 0.201)),
    "a bump": lambda z, a, b: a + b / pm.math.exp((20 * z - 4) ** 2),
    "another bump": lambda z, a, b: a + b / pm.math.exp(400 * (z - 0.21) * (z - 0.21)),
}
BOUNDS = {"y": (-2, 2), "z": (-1, 1)}


def normal(mean):
    with pm.Model() as model:
        pm.Normal("y", mean(pm.Data("z", Z), pm.Normal("a"), pm.Normal("b")), 1, observed=Z)
    return model


def counts(mean):
    with pm.Model() as model:
        rate = pm.math.exp(mean(pm.Data("z", Z), pm.Normal("a"), pm.Normal("b")))
        pm.Poisson("y", rate, observed=(Z > 0).astype(int))
    return model


@pytest.fixture(scope="module")
def released():
    return {name: pmdp.release(normal(mean), epsilon=1.0, bounds=BOUNDS, missing={}) for name, mean in MEANS.items()}


@pytest.mark.parametrize("name", MEANS)
def test_sums_of_other_functions_of_a_covariate_are_refused(released, name):
    """Their names are the same: of all functions of a covariate the first is called after it."""
    for other, mean in MEANS.items():
        if other != name:
            with pytest.raises(pmdp.Refusal, match="y: its features are other functions of the covariates"):
                pmdp.rewrite(normal(mean), released[name])


@pytest.mark.parametrize("name", MEANS)
def test_however_a_function_is_written_its_sums_are_taken(released, name, tmp_path):
    released[name].to_netcdf(tmp_path / "r.nc")
    read = pmdp.Release.from_netcdf(tmp_path / "r.nc")
    assert read == released[name]
    assert pmdp.rewrite(normal(RESPELLED[name]), read).privacy == read


def test_features_are_compared_each_in_its_own_units():
    """An income beside a share hides no other function of the share."""

    def model(mean):
        with pm.Model() as made:
            income = pm.Data("income", np.linspace(0, 5_000_000, 60))
            pm.Normal("y", mean(pm.Data("z", Z), pm.Normal("a"), pm.Normal("b")) + pm.Normal("c") * income, 1, observed=Z)
        return made

    released = pmdp.release(model(MEANS["a square"]), epsilon=1.0, bounds=BOUNDS | {"income": (0, 5_000_000)}, missing={})
    pmdp.rewrite(model(RESPELLED["a square"]), released)
    for other in ("a cube", "a step", "a bump"):
        with pytest.raises(pmdp.Refusal, match="other functions of the covariates"):
            pmdp.rewrite(model(MEANS[other]), released)


def test_scores_of_other_functions_are_refused():
    bounds = {"y": (0, 3), "z": (-1, 1), "log(y)": (-2, 2)}
    shown = pmdp.inspect(counts(MEANS["a line"]), bounds=bounds)
    released = pmdp.release(counts(MEANS["a line"]), epsilon=1.0, bounds=bounds, missing={})
    assert released["y"].anchor.size, shown
    with pytest.raises(pmdp.Refusal, match="other functions of the covariates"):
        pmdp.rewrite(counts(MEANS["a square"]), released)


def test_a_release_that_does_not_tell_its_features_is_taken(released):
    """Older versions wrote none down."""
    tree = released["a line"].to_datatree()
    (group,) = (node for node in tree.subtree if "statistic" in node.attrs)
    facts = json.loads(group.attrs["statistic"])
    assert facts["regression"].pop("probed")
    group.attrs["statistic"] = json.dumps(facts)
    pmdp.rewrite(normal(MEANS["a square"]), pmdp.Release.from_datatree(tree))


KNOWN = {
    "mu": lambda known, y: pm.Laplace("y", known, pm.HalfNormal("b"), observed=y),
    "alpha": lambda known, y: pm.Weibull("y", alpha=known, beta=pm.HalfNormal("b"), observed=y),
    "m": lambda known, y: pm.Pareto("y", alpha=pm.HalfNormal("b"), m=known / 10, observed=y),
}


@pytest.mark.parametrize("called", KNOWN)
def test_a_number_that_statistics_rest_on_is_the_release_s(called):
    def model(known):
        with pm.Model() as made:
            KNOWN[called](known, np.linspace(0.5, 3, 40))
        return made

    released = pmdp.release(model(1.0), epsilon=1.0, bounds={"y": (0.5, 4)}, missing={})
    pmdp.rewrite(model(1.0), released)
    with pytest.raises(pmdp.Refusal, match=f"its statistics rest on {called}, which was"):
        pmdp.rewrite(model(2.0), released)


AGES, KNOTS = np.arange(18, 78), np.array([0.2, 0.5, 0.8])
PUBLIC = {
    "tens of years": lambda age, b: b[0] * ((age - 50) / 10),
    "years": lambda age, b: b[0] * (age - 50),
    "a knot": lambda age, b: b[0] * pm.math.maximum(age - 40, 0),
    "another knot": lambda age, b: b[0] * pm.math.maximum(age - 41, 0),
    "a step": lambda age, b: b[0] * (age > 40.5),
    "another step": lambda age, b: b[0] * (age > 41.5),
}
WEIGHTS = {
    "weights": lambda age, b: b[0] * pt.constant([1.0, 2.0, 3.0])[age % 3],
    "other weights": lambda age, b: b[0] * pt.constant([1.0, 2.0, 3.5])[age % 3],
}
FAMILIES = {
    "counts": lambda mean, y: pm.Poisson("y", pm.math.exp(mean), observed=y),
    "sums": lambda mean, y: pm.Normal("y", mean, 1, observed=y / 5),
}


def of_public(function, family, ages=AGES):
    with pm.Model() as model:
        FAMILIES[family](pm.Normal("a") + (PUBLIC | WEIGHTS)[function](pm.Data("age", ages), pm.Normal("b", shape=2)), ages % 5)
    return model


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("function", PUBLIC)
def test_other_functions_of_a_public_array_are_refused(function, family, tmp_path):
    """They are computed before the release, which holds their values: in another model coefficients would belong to other numbers."""
    released = pmdp.release(of_public(function, family), epsilon=1.0, bounds={"y": (0, 5)}, public=["age"], missing={})
    released.to_netcdf(tmp_path / "r.nc")
    released = pmdp.Release.from_netcdf(tmp_path / "r.nc")
    pmdp.rewrite(of_public(function, family), released)
    for other in PUBLIC:
        if other != function:
            with pytest.raises(pmdp.Refusal, match="of another shape"):
                pmdp.rewrite(of_public(other, family), released)


@pytest.mark.parametrize("family", FAMILIES)
def test_other_constants_that_public_arrays_point_to_are_refused(family):
    public = ["age", "y:0"]
    released = pmdp.release(of_public("weights", family), epsilon=1.0, bounds={"y": (0, 5)}, public=public, missing={})
    pmdp.rewrite(of_public("weights", family, AGES[:3]), released)
    with pytest.raises(pmdp.Refusal, match="was in it as another function, or beside other constants"):
        pmdp.rewrite(of_public("other weights", family), released)


def with_knots(knots, rows=60):
    z = np.linspace(0, 1, rows)
    with pm.Model() as model:
        basis = pm.math.maximum(pm.Data("z", z)[:, None] - np.array(knots), 0)
        pm.Bernoulli("y", logit_p=pm.Normal("a") + basis @ pm.Normal("b", shape=len(knots)), observed=(z > 0.3).astype(int))
    return model


@pytest.mark.parametrize("z", [pmdp.Bins(0, 1, 4), {0, 0.25, 0.5, 0.75, 1}], ids=["bins", "levels"])
def test_knots_are_part_of_the_model(z):
    """A release holds those of its own, and would answer with these whatever is written in the model."""
    released = pmdp.release(with_knots(KNOTS), epsilon=1.0, bounds={"z": z}, public=["y:0"], missing={})
    for rows in (1, 3, 7):  # as many as knots, too
        pmdp.rewrite(with_knots(KNOTS, rows), released)
    with pytest.raises(pmdp.Refusal, match="y:0 was in it as another function, or beside other constants"):
        pmdp.rewrite(with_knots(KNOTS + 0.01), released)


STANDARDISED = {"scores": lambda age, b: b[0] * (age - age.mean()) / age.std(), "a spread": lambda age, b: b[0] * age.std() + b[1] * age}


@pytest.mark.parametrize("function", [*PUBLIC, *STANDARDISED])
def test_rows_of_public_arrays_do_not_decide(function):
    """Any number of them, whole numbers or not, and whatever functions of all of them are."""

    def model(ages):
        with pm.Model() as made:
            mean = (PUBLIC | STANDARDISED)[function](pm.Data("age", ages), pm.Normal("b", shape=2))
            pm.Poisson("y", pm.math.exp(pm.Normal("a") + mean), observed=np.arange(len(ages)) % 3)
        return made

    released = pmdp.release(model(AGES), epsilon=1.0, bounds={"y": (0, 5)}, public=["age"], missing={})
    for rows in (1, 2, 3, 61):
        for dtype in (int, float):
            pmdp.rewrite(model(np.arange(rows, dtype=dtype)), released)
