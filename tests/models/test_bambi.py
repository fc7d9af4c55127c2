"""Models that bambi built: taken where it computed nothing from the records, by its own settings; refused otherwise. With bambi itself."""

import numpy as np
import pandas as pd
import pytest

import pymc_dp as pmdp
from pymc_dp.models import bambi_models

bmb = pytest.importorskip("bambi", reason="with: uv run pytest")
pytestmark = pytest.mark.filterwarnings("ignore")

N = 400
SAFE = {"auto_scale": False, "center_predictors": False}


def table(many=N):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"age": rng.uniform(20, 80, many), "sex": rng.choice(["f", "m"], many), "ill": rng.integers(0, 2, many)})
    frame["site"] = pd.Categorical(rng.choice(["A", "B", "C"], many), ["A", "B", "C"])
    frame["pressure"] = 120 + 0.3 * (frame["age"] - 50) + rng.normal(0, 10, many)
    frame["of_sex"] = pd.Categorical(frame["sex"], ["f", "m"])
    frame["man"] = 1.0 * (frame["sex"] == "m")
    frame["smokes"] = frame["man"] == 1
    frame["years"] = frame["age"] - 50
    return frame


def model(formula, build=True, **words):
    given = bmb.Model(formula, table(), **(SAFE | words | ({"family": "bernoulli"} if str(formula).startswith("ill") else {})))
    if build:
        given.build()
    return given


def released(given, **words):
    return pmdp.release(given, epsilon=1, missing={}, **words)


@pytest.mark.parametrize("setting", ["auto_scale", "center_predictors"])
def test_what_bambi_computes_from_all_records_is_refused(setting):
    with pytest.raises(pmdp.Refusal, match=f"{setting}=False"):
        pmdp.inspect(model("pressure ~ age", **{setting: True}))
    with pytest.raises(pmdp.Refusal, match="dropna=False"):
        pmdp.inspect(model("pressure ~ age", dropna=True))


@pytest.mark.parametrize("safe", [True, False])
def test_the_model_that_bambi_built_is_refused_alone(safe):
    """Its settings cannot be seen in it: by default the mean of the records is a constant of the intercept's prior."""
    given = bmb.Model("pressure ~ age", table(), **(SAFE if safe else {}))
    given.build()
    for called in (pmdp.inspect, released):
        with pytest.raises(pmdp.Refusal, match="model=bambi_model"):
            called(given.backend.model)
    with given.backend.model, pytest.raises(pmdp.Refusal, match="model=bambi_model"):
        pmdp.inspect()


mean_age = np.full(N, 50.0)


def log(values):
    """What is called log may be anything."""
    return values - values.mean()


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("pressure ~ scale(age)", "calls scale"),
        ("pressure ~ center(age)", "calls center"),
        ("pressure ~ standardize(age)", "calls standardize"),
        ("pressure ~ bs(age, df=4)", "calls bs"),
        ("pressure ~ poly(age, 2)", "calls poly"),
        ("pressure ~ np.cumsum(age)", "calls np.cumsum"),
        ("pressure ~ log(age)", "calls log"),
        ("pressure ~ I(age - mean_age)", "calls I"),
        ("pressure ~ {age - 50}", "has '{'"),
        ("pressure ~ age + (1|ill)", "groups of"),
        ("pressure ~ age + (1|site:ill)", "groups of"),
        ("pressure ~ age + (age|(site))", "groups of"),
        ("pressure ~ of_sex", "levels of of_sex"),
        ("pressure ~ age * sex", "levels of sex"),
        ("pressure ~ smokes", "levels of smokes"),
    ],
)
def test_a_formula_that_may_look_at_all_records_is_refused(formula, words):
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.inspect(model(formula, build=False))


def test_levels_of_a_response_are_refused():
    """Of declared levels that nobody has, bambi makes none: one record decides how many there are."""
    frame = table().assign(site=pd.Categorical(["A", "B"] * (N // 2), ["A", "B", "C"]))
    given = bmb.Model("site ~ age", frame, family="categorical", **SAFE)
    given.build()
    assert len(given.backend.model.coords["site_dim"]) == 2
    with pytest.raises(pmdp.Refusal, match="levels of site"):
        pmdp.inspect(given)


def test_levels_that_no_type_tells_are_refused():
    """A term of bambi's own, whose dim is not the records'."""
    given = model("pressure ~ age")
    given.backend.model.add_coord("level", ["a", "b"])
    with pytest.raises(pmdp.Refusal, match="levels of level"):
        pmdp.inspect(given)


def test_every_formula_of_a_distributional_model_is_looked_at():
    with pytest.raises(pmdp.Refusal, match="calls scale"):
        pmdp.inspect(model(bmb.Formula("pressure ~ age", "sigma ~ scale(age)"), build=False))


def test_a_name_that_is_no_column_is_refused():
    """bambi itself refuses most of them."""
    with pytest.raises(pmdp.Refusal, match="names mean_age"):
        bambi_models._check("pressure ~ age + mean_age", table().dtypes)


@pytest.mark.parametrize("formula", ["pressure ~ years + man", "pressure ~ years * man", "pressure ~ 1 + (years + man)**2"])
def test_a_model_of_bambi_is_released(formula):
    given = model(formula)
    bounds = {"pressure": (60, 200), "pressure:0": (-70, 70)}
    assert released(given, bounds=bounds).statistics[0].noisy.shape[-1] > 4
    assert pmdp.inspect(given, bounds=bounds).rows[0].sensitivity > 0


def test_a_logistic_model_of_bambi_is_released_and_sampled():
    """bambi keeps probabilities off 0 and 1 by 2e-16, which is read as the logistic function it stands for."""
    given = model("ill ~ years")
    bounds = {"logit(ill)": (-3, 3), "ill:0": (-30, 30)}
    assert pmdp.inspect(given, bounds=bounds).rows[0].structure == "linear"
    idata = pmdp.sample(20, tune=20, chains=1, model=given, epsilon=1, bounds=bounds, missing={}, progressbar=False)
    again = pmdp.private_model(idata, given)
    assert {"Intercept", "years"} <= {variable.name for variable in again.free_RVs}


def test_bambi_builds_before():
    """Building may fail, in words about values: so it is not for a release to do."""
    with pytest.raises(pmdp.Refusal, match=r"bambi_model\.build"):
        released(bmb.Model("pressure ~ age", table(), **SAFE), bounds={"pressure": (60, 200)})
