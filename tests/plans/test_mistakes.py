"""What a newcomer writes by mistake is answered by what to write instead."""

import copy
import pickle
import warnings
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest
from xarray import DataTree

import pymc_dp as pmdp
from pymc_dp.privacy.calls import explained

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


def test_a_model_that_bambi_built_is_asked_for_as_bambi_has_it() -> None:
    """The mean of the records is a constant of its prior, and nothing in the PyMC model tells: see test_bambi.py."""
    with pm.Model(coords={"__obs__": range(4)}) as model:
        pm.Normal("weight", pm.Normal("Intercept", Y.mean(), 2.5 * Y.std()), 10, observed=Y, dims="__obs__")
    for called in (pmdp.inspect, lambda given, **words: pmdp.release(given, epsilon=1.0, **words)):
        with pytest.raises(pmdp.Refusal, match="model=bambi_model"):
            called(model, bounds=BOUNDS)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (lambda release, ledger: release.to_json(), r"release\.to_netcdf\(path\)"),
        (lambda release, ledger: release.save("weights"), r"release\.to_netcdf\(path\)"),
        (lambda release, ledger: ledger.to_dataframe(), r"Write ledger\.entries\(\)"),
        (lambda release, ledger: ledger.close(), "Nothing is open between two calls"),
    ],
)
def test_what_others_call_it_gets_the_name_that_it_has_here(asked, words, tmp_path) -> None:  # type: ignore[no-untyped-def]
    ledger = pmdp.Ledger(tmp_path / "weights.ledger", epsilon=1, create=True)
    release = pmdp.release(weights(), epsilon=1.0, bounds=BOUNDS, ledger=ledger)
    with pytest.raises(AttributeError, match=words):
        asked(release, ledger)


def test_a_ledger_in_a_with_statement_is_told_to_have_none(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with (
        pytest.raises(TypeError, match=r"Write ledger = pymc_dp\.Ledger\(\.\.\.\), without with"),
        pmdp.Ledger(tmp_path / "l", epsilon=1, create=True),
    ):
        pass
    assert pmdp.Ledger(tmp_path / "l").remaining().epsilon == 1


def test_a_session_in_a_with_statement_is_told_to_have_none() -> None:
    people = pd.DataFrame({"vote": [0, 1]})
    with (
        pytest.raises(TypeError, match=r"Write session = pymc_dp\.QuerySession\(\.\.\.\), without with"),
        pmdp.QuerySession(people, {"vote": [0, 1]}, epsilon=1),
    ):
        pass


def test_what_brackets_were_called_before_is_still_read() -> None:
    with pytest.warns(FutureWarning, match="Write pymc_dp.queries.Brackets"):
        assert pmdp.queries.Bins is pmdp.queries.Brackets
    with pytest.raises(AttributeError, match="no attribute 'Bin'"):
        pmdp.queries.Bin  # noqa: B018


def test_a_release_in_no_folder_is_told_to_have_one(tmp_path) -> None:  # type: ignore[no-untyped-def]
    release = pmdp.release(weights(), epsilon=1.0, bounds=BOUNDS)
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*none\. Make it first") as error:
        release.to_netcdf(tmp_path / "none" / "weights.release")
    exec(f"import pathlib; {str(error.value).split('Make it first: ')[1][:-1]}")
    release.to_netcdf(tmp_path / "none" / "weights.release")
    assert pmdp.Release.from_netcdf(tmp_path / "none" / "weights.release") == release
    with pytest.raises(IsADirectoryError, match="is a folder"):
        release.to_netcdf(tmp_path / "none")
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["weights.release"]


@pytest.mark.parametrize(
    "day", [date(2020, 1, 1), np.datetime64("2020-01-01"), pd.Timestamp("2020"), pd.Timedelta("1D"), np.timedelta64(1, "D")]
)
def test_bounds_that_are_dates_are_asked_for_as_numbers(day: object) -> None:
    with pytest.raises(pmdp.Refusal, match="bounds of weight are dates, and a date in a record counts as missing"):
        pmdp.inspect(weights(), bounds={"weight": (day, day)})


def test_bounds_and_missing_levels_that_are_labels_are_told_where_labels_belong() -> None:
    with pm.Model(coords={"side": ["left", "right"]}) as model:
        pm.Categorical("vote", pm.Dirichlet("share", np.ones(2), dims="side"), observed=[0, 1])
    with pytest.raises(pmdp.Refusal, match="if they are labels of levels, leave vote out of bounds, and give the labels to the model"):
        pmdp.inspect(model, bounds={"vote": {"left", "right"}})
    with pytest.raises(pmdp.Refusal, match=r"a level, counted from 0, that stands for them: missing=\{'vote': 2\}"):
        pmdp.inspect(model, missing={"vote": "right"})
    pmdp.inspect(model, missing={"vote": 1})


@pytest.mark.parametrize("folder", ["nowhere", "file"])
def test_a_ledger_in_no_folder_is_told_to_have_one(folder: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "file").write_text("")
    with pytest.raises(pmdp.Refusal, match="its folder does not exist"):
        pmdp.Ledger(tmp_path / folder / "weights.ledger", epsilon=1, create=True)


def test_advice_for_persons_is_that_for_a_part_of_epsilon() -> None:
    unit = pmdp.Person(np.arange(4), at_most=3, name="patient")
    with pytest.raises(pmdp.Refusal, match=r"epsilon / 3, since 3 rows of one patient .*pymc_dp\.plan takes this unit"):
        pmdp.advise(weights(), epsilon=1, bounds=BOUNDS, unit=unit)  # type: ignore[arg-type]


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


def test_bounds_that_are_needed_are_the_user_s_own_and_no_cells_are_made_up() -> None:
    """How many cells there are is not said while bounds that decide it are not given."""
    with pm.Model() as model:
        logit = pm.Normal("a") + pm.Normal("b") * pm.Data("age_band", np.array([0, 1, 2, 1]))
        pm.Bernoulli("ill", logit_p=logit, observed=np.array([0, 1, 1, 0]))
    asked = pmdp.inspect(model)
    assert "with numbers of your own" in str(asked.rows[0].needs)
    assert "cells" not in asked.rows[0].reason
    assert "6 private cells" in pmdp.inspect(model, bounds={"age_band": (0, 5)}).rows[0].reason


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


PRIVATE = "already private.*pm.sample"
PERSON = r"unit=pymc_dp\.Person\(\"patient_id\", at_most=5\)"
IDS = np.arange(4)
MISTAKES = {
    # calls that do not fit
    "a table before the model": (lambda m, r: pmdp.release(pd.DataFrame(), m, epsilon=1.0), TypeError, r"example pmdp\.release\(model"),
    "the table after the model": (lambda m, r: pmdp.release(m, pd.DataFrame(), epsilon=1.0), TypeError, "all else by name"),
    "epsilon by place": (lambda m, r: pmdp.release(m, 1.0), TypeError, r"pmdp\.release\(model, epsilon=1\.0\)"),
    "no epsilon": (lambda m, r: pmdp.release(m), TypeError, "release needs 'epsilon'"),
    "no epsilon for sample": (lambda m, r: pmdp.sample(model=m, bounds=BOUNDS), pmdp.Refusal, "epsilon=1.0"),
    "the model by place": (lambda m, r: pmdp.sample(1000, m, epsilon=1.0), TypeError, "model=model"),
    "inspect with epsilon by place": (lambda m, r: pmdp.inspect(m, 1.0), TypeError, "all else by name"),
    "no schema": (lambda m, r: pmdp.QuerySession(pd.DataFrame()), TypeError, "QuerySession needs 'schema'"),
    "no states": (lambda m, r: pmdp.hidden_markov(r), TypeError, "'sequences' and 'states'.*sequences=2"),
    "no rows": (lambda m, r: pmdp.synthesize(m), TypeError, "needs 'rows'.*rows="),
    "a mode by place": (lambda m, r: pmdp.find_MAP(m), TypeError, r"find_MAP\(model=model, epsilon=1\.0\)\.$"),
    "a model and a release": (lambda m, r: pmdp.posterior_predictive(m, r), pmdp.Refusal, "tree"),
    "new data": (lambda m, r: pmdp.posterior_predictive(DataTree(), m, data={"x": [1.0]}), TypeError, "Did you mean 'given'"),
    "an argument twice": (lambda m, r: pmdp.release(m, model=m, epsilon=1.0), TypeError, "twice"),
    # names of other libraries
    "eps": (lambda m, r: pmdp.release(m, eps=1.0), TypeError, "Did you mean 'epsilon'"),
    "neighbors of release": (lambda m, r: pmdp.release(m, epsilon=1.0, neighbors="replace"), TypeError, "'neighbours'"),
    "neighbors of inspect": (lambda m, r: pmdp.inspect(m, neighbors="replace"), TypeError, "'neighbours'"),
    "neighbors of sample": (lambda m, r: pmdp.sample(model=m, epsilon=1.0, neighbors="replace"), pmdp.Refusal, "'neighbours'"),
    "budget": (lambda m, r: pmdp.sample(model=m, budget=1.0), pmdp.Refusal, "'epsilon'"),
    "seed": (lambda m, r: pmdp.sample(model=m, epsilon=1.0, seed=1), pmdp.Refusal, "'random_seed'"),
    "a seed of noise": (lambda m, r: pmdp.release(m, epsilon=1.0, random_seed=1), TypeError, "noise that can be repeated protects nobody"),
    "fit": (lambda m, r: pmdp.fit(m), AttributeError, "Did you mean 'sample'"),
    "a misspelt function": (lambda m, r: pmdp.inspekt(m), AttributeError, "Did you mean 'inspect'"),
    # a release is no model, and no tree
    "pm.sample of a release": (lambda m, r: pm.sample(model=r), AttributeError, r"pm\.sample\(model=pymc_dp\.rewrite\(model, release\)\)"),
    "draws of a release": (lambda m, r: r.posterior, AttributeError, r"pymc_dp\.rewrite\(model, release\)"),
    "numbers of a release": (lambda m, r: r.values, AttributeError, r'release\["y"\]'),
    "a name not released": (lambda m, r: r["wieght"], KeyError, "There is 'weight'"),
    "rewrite the other way round": (lambda m, r: pmdp.rewrite(r, m), pmdp.Refusal, r"Write rewrite\(model, release\)"),
    "rewrite of a tree": (lambda m, r: pmdp.rewrite(m, DataTree()), pmdp.Refusal, r"private_model\(idata, model\)"),
    "private_model the other way round": (lambda m, r: pmdp.private_model(m, DataTree()), pmdp.Refusal, r"private_model\(idata, model\)"),
    "noise_aware in words": (lambda m, r: pmdp.rewrite(m, r, noise_aware="no"), pmdp.Refusal, "True or False"),
    # a private model again
    "inspect of a private model": (lambda m, r: pmdp.inspect(pmdp.rewrite(m, r)), pmdp.Refusal, PRIVATE),
    "plan of a private model": (lambda m, r: pmdp.plan(pmdp.rewrite(m, r)), pmdp.Refusal, PRIVATE),
    "sample of a private model": (lambda m, r: pmdp.sample(model=pmdp.rewrite(m, r), epsilon=1.0), pmdp.Refusal, PRIVATE),
    "bounds of a private model": (lambda m, r: pmdp.suggest_bounds(pmdp.rewrite(m, r)), pmdp.Refusal, PRIVATE),
    # what is declared
    "Person of nothing": (lambda m, r: pmdp.Person(), pmdp.Refusal, PERSON),
    "Person without at_most": (lambda m, r: pmdp.Person("patient_id"), pmdp.Refusal, PERSON),
    "Person with a word of others": (lambda m, r: pmdp.Person("ids", max_rows=4), TypeError, "Did you mean 'at_most'"),
    "natural bounds in a list": (lambda m, r: pmdp.Natural([18, 90]), TypeError, r"Natural needs 'upper'.*pmdp\.Natural\(17, 90\)"),
    "natural bounds by words of others": (lambda m, r: pmdp.Natural(low=18, upper=90), TypeError, "Did you mean 'lower'"),
    "no norm": (lambda m, r: pmdp.Norm(), TypeError, r"Norm needs 'largest'.*pmdp\.Norm\(1\.0\)"),
    "Bins with a word of others": (lambda m, r: pmdp.Bins(0, 10, edge=[1, 2]), TypeError, "Did you mean 'edges'"),
    "an Individual's event": (lambda m, r: pmdp.Individual(event=1), TypeError, "Did you mean 'events'"),
    "Person of a number": (lambda m, r: pmdp.Person(5), pmdp.Refusal, PERSON),
    "ids as unit": (lambda m, r: pmdp.inspect(m, unit=IDS), pmdp.Refusal, r"Person\(ids, at_most=5"),
    "a number as unit": (lambda m, r: pmdp.inspect(m, unit=5), pmdp.Refusal, 'unit="row"'),
    "bounds as texts": (lambda m, r: pmdp.inspect(m, bounds={"weight": ("0", "100")}), pmdp.Refusal, r"texts.*\{'weight': \(0, 100\)\}"),
    "bounds as one text": (lambda m, r: pmdp.inspect(m, bounds={"weight": "0-100"}), pmdp.Refusal, r"\{'weight': \(0, 100\)\}"),
    "bounds without a name": (lambda m, r: pmdp.inspect(m, bounds=(0, 100)), pmdp.Refusal, r"by name. Write bounds=\{'weight'"),
    "bounds swapped": (lambda m, r: pmdp.inspect(m, bounds={"weight": (100, 0)}), pmdp.Refusal, "the lower one first"),
    "one bound": (lambda m, r: pmdp.inspect(m, bounds={"weight": 100}), pmdp.Refusal, r"\(lower, upper\)"),
    "no end": (lambda m, r: pmdp.inspect(m, bounds={"weight": (0, np.inf)}), pmdp.Refusal, "finite"),
    "the class Bins": (lambda m, r: pmdp.inspect(m, bounds={"weight": pmdp.Bins}), pmdp.Refusal, r"pymc_dp\.Bins\(0, 100\)"),
    "Bins of a column": (lambda m, r: pmdp.queries.Schema.of({"a": pmdp.Bins(0, 9)}), pmdp.Refusal, r"queries\.Brackets\(\[0, 10, 20\]"),
    "a table by place": (lambda m, r: pmdp.release(m, {"weight": [1.0]}), TypeError, "records beside the model as data=table"),
    "a table by place, to sample": (lambda m, r: pmdp.sample(100, {"weight": [1.0]}), TypeError, "records beside the model as data=table"),
    "a second argument by place where no data are taken": (lambda m, r: pmdp.suggest_bounds(m, 1), TypeError, "by name. Write for"),
    "Bins of a list": (lambda m, r: pmdp.Bins([0, 1, 2]), pmdp.Refusal, r"Bins\(edges=\[0, 10, 100\]\)"),
    "observed values as public": (lambda m, r: pmdp.inspect(m, public=["weight"]), pmdp.Refusal, "which are what is protected"),
    "public as a text": (lambda m, r: pmdp.inspect(m, public="ward"), pmdp.Refusal, r"public=\["),
    "missing as a text": (lambda m, r: pmdp.inspect(m, missing="drop"), pmdp.Refusal, r'missing=\["income"\]'),
    "neighbours of another library": (lambda m, r: pmdp.inspect(m, neighbours="unbounded"), pmdp.Refusal, '"add_remove"'),
    "epsilon as a text": (lambda m, r: pmdp.release(m, epsilon="low"), pmdp.Refusal, "epsilon=1.0"),
    "Gaussian noise without delta": (lambda m, r: pmdp.release(m, epsilon=1.0, mechanism="gaussian"), pmdp.Refusal, "delta=1e-6"),
    "a delta for Laplace noise": (lambda m, r: pmdp.release(m, epsilon=1.0, delta=1e-6), pmdp.Refusal, 'mechanism="gaussian"'),
    "a ledger's path": (lambda m, r: pmdp.release(m, epsilon=1.0, ledger="my.ledger"), pmdp.Refusal, r"ledger=pymc_dp\.Ledger\(\"survey"),
    "a ledger's budget": (lambda m, r: pmdp.Ledger("a.ledger", budget=1, create=True), TypeError, "no argument 'budget'. Did.*'epsilon'"),
    "a mode for persons": (
        lambda m, r: pmdp.find_MAP(model=m, epsilon=1.0, unit=pmdp.Person("ids", at_most=2)), pmdp.Refusal,
        r"unit=\"row\" here.*unit=pymc_dp\.Person\('ids', at_most=2\)",
    ),
    "suggest_bounds for persons without a key": (
        lambda m, r: pmdp.suggest_bounds(m, unit=pmdp.Person("ids", at_most=2)), pmdp.Refusal, r"pm\.Data\('ids', ids\) in the model\.",
    ),
    "a key that is nowhere": (
        lambda m, r: pmdp.inspect(m, unit=pmdp.Person("ids", at_most=2)), pmdp.Refusal, r"Write pm\.Data\('ids', ids\) in the model\.",
    ),
    "prior draws of numbers of records": (
        lambda m, r: pm.draw(pmdp.privatize(m, epsilon=1.0, bounds=BOUNDS, neighbours="add_remove")["weight_size"]),
        NotImplementedError, "var_names=",
    ),
    "what a ledger has spent": (lambda m, r: pmdp.Ledger("a.ledger", epsilon=1, create=True).spent, AttributeError, "remaining"),
    # pictures
    "plot_plan of a model": (lambda m, r: pmdp.plot_plan(m), pmdp.Refusal, r"plot_plan\(pymc_dp\.plan"),
    "plot_ledger of a path": (lambda m, r: pmdp.plot_ledger("a.ledger"), pmdp.Refusal, r"plot_ledger\(pymc_dp\.Ledger"),
    "plot_audit of a release": (lambda m, r: pmdp.plot_audit(r), pmdp.Refusal, r"plot_audit\(pymc_dp\.audit"),
}  # fmt: skip


@pytest.fixture(scope="module")
def released() -> tuple[pm.Model, pmdp.Release]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pmdp.UnaccountedWarning)
        model = weights()
        return model, pmdp.release(model, epsilon=1.0, bounds=BOUNDS)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered_by_what_to_write(mistake, released, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    make, kind, words = MISTAKES[mistake]
    with pytest.raises(kind, match=words) as raised:
        make(*released)
    assert type(raised.value) is kind


def test_there_are_mistakes_enough() -> None:
    assert len(MISTAKES) + len(NOT_MODELS) >= 56


@pytest.mark.parametrize("pair", [[0, 100], np.array([0, 100]), (np.float32(0), np.int64(100)), (Fraction(0), Decimal(100))])
def test_bounds_may_be_any_two_numbers(pair) -> None:
    assert pmdp.inspect(weights(), bounds={"weight": pair}).rows == pmdp.inspect(weights(), bounds=BOUNDS).rows


def test_a_posterior_draw_has_no_progressbar_to_be_turned_off() -> None:
    with pm.Model() as model:
        pm.Bernoulli("vote", pm.Uniform("share", 0.2, 0.8), observed=[0, 1, 1])
    told = {"model": model, "epsilon": 4.0, "mechanism": pmdp.PosteriorSample()}
    assert pmdp.sample(progressbar=False, **told).posterior.sizes["draw"] == 1
    with pytest.raises(pmdp.Refusal, match="needs no progressbar"):
        pmdp.sample(progressbar=True, **told)


def test_a_release_copies_pickles_and_has_what_it_has(released) -> None:
    """Words for attributes that are not there must not stand in the way of those that are."""
    release = released[1]
    assert copy.deepcopy(release) == pickle.loads(pickle.dumps(release)) == release
    assert not hasattr(release, "free_RVs")


def test_a_function_without_an_example_says_what_it_needs() -> None:
    @explained
    def bare(one: int, *, two: int = 0) -> int:
        return one + two

    assert bare(1, two=2) == 3
    with pytest.raises(TypeError, match=r"needs 'one'\.$"):
        bare()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"has no argument 'three'\.$"):
        bare(1, three=2)  # type: ignore[call-arg]


def test_an_index_computed_from_a_real_covariate_is_computed_before_the_model():
    """The refusal named few levels, which a real number has not; what it names now goes through."""
    rng = np.random.default_rng(0)
    z = rng.random(200)
    y = rng.binomial(1, 0.2 + 0.5 * (z > 0.25))

    def model(index):
        with pm.Model() as result:
            pm.Bernoulli("y", p=pm.Beta("p", 1, 1, shape=2)[index()], observed=y)
        return result

    computed = model(lambda: (pm.Data("z", z) > 0.25).astype("int64"))
    with pytest.raises(pmdp.Refusal, match=r"index is computed from the private covariate z, a real number\. Compute it before"):
        pmdp.release(computed, epsilon=1.0, bounds={"z": (0, 1)}, missing={})
    in_bins = pmdp.release(computed, epsilon=1.0, bounds={"z": pmdp.Bins(edges=[0, 0.25, 1])}, missing={})
    assert in_bins["y"].values.shape == (2, 2)
    sought = model(lambda: pt.searchsorted(np.array([0.25]), pm.Data("z", z)))
    with pytest.raises(pmdp.Refusal, match=r"Or compute it before the model, as it rests on data alone, and pass it on: pm.Data"):
        pmdp.release(sought, epsilon=1.0, missing={})
    before = model(lambda: pm.Data("level", (z > 0.25).astype(int)))
    assert pmdp.release(before, epsilon=1.0, missing={})["y"].values.shape == (2, 2)
