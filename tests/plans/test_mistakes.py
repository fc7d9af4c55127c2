"""What a newcomer writes by mistake is answered by what to write instead."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_dp as pmdp

Y = np.array([48.0, 52.0, 55.0, 61.0])
BOUNDS = {"weight": (0, 100)}


def weights() -> pm.Model:
    with pm.Model() as model:
        pm.Normal("weight", pm.Normal("mu", 50, 20), 10, observed=Y)
    return model


NOT_MODELS = {
    "table": (lambda: pd.DataFrame({"weight": Y}), "is a table, not a model"),
    "result": (lambda: pm.sample_prior_predictive(1, model=weights()), "is a result, not a model"),
    "release": (lambda: pmdp.release(weights(), epsilon=1.0, bounds=BOUNDS), r"rewrite\(model, release\)"),
    "name": (lambda: "weights", "not its name"),
    "dictionary": (lambda: {}, "There is no model here"),
}


@pytest.mark.filterwarnings("ignore::pymc_dp.UnaccountedWarning")
@pytest.mark.parametrize("given", NOT_MODELS)
def test_what_is_no_model_is_named(given: str) -> None:
    make, said = NOT_MODELS[given]
    with pytest.raises(pmdp.Refusal, match=said):
        pmdp.release(make(), epsilon=1.0, bounds=BOUNDS)  # type: ignore[arg-type]


@pytest.mark.parametrize("written", ["Weight", "wieght", "weights"])
def test_a_misspelt_name_in_bounds_gets_the_name_that_was_meant(written: str) -> None:
    with pytest.raises(pmdp.Refusal, match="Did you mean 'weight'"):
        pmdp.inspect(weights(), bounds={written: (0, 100)})


def test_a_name_unlike_any_gets_the_list_alone() -> None:
    with pytest.raises(pmdp.Refusal, match=r"Write one of 'weight'\.$"):
        pmdp.inspect(weights(), bounds={"q": (0, 100)})


def test_no_clause_of_the_table_is_empty() -> None:
    """A cause from a private table has no reason of its own while bounds of what follows are missing."""
    place = np.array([0, 1, 2, 1])
    with pm.Model(coords={"place": range(3)}) as model:
        level = pm.Normal("level", 0, 5, dims="place")
        pm.Normal("weight", level[place], 10, observed=Y)
    for neighbours in ("replace", "add_remove"):
        for bounds in (None, BOUNDS):
            inspected = pmdp.inspect(model, bounds=bounds, neighbours=neighbours)
            assert "private cells" in inspected.rows[0].reason
            assert not inspected.rows[0].reason.startswith(";")


@pytest.mark.filterwarnings("ignore::pymc_dp.UnaccountedWarning")
def test_a_private_model_is_not_released_again() -> None:
    private = pmdp.privatize(weights(), epsilon=1.0, bounds=BOUNDS)
    for again in (pmdp.release, pmdp.privatize):
        with pytest.raises(pmdp.Refusal, match="already private"):
            again(private, epsilon=1.0, bounds=BOUNDS)


def test_a_model_in_the_place_of_draws_is_named() -> None:
    with pytest.raises(pmdp.Refusal, match=r"sample\(model=model"):
        pmdp.sample(weights(), epsilon=1.0, bounds=BOUNDS)  # type: ignore[arg-type]


def test_an_argument_that_is_missing_is_named_and_not_taken_for_a_failure() -> None:
    with pytest.raises(TypeError, match="'release'"):
        pmdp.rewrite(pm.Model())
