"""Columns of ``data=`` that hold labels: each is the place of a label of the dim that the model has for it, whatever else is there."""

import json

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from checks import contents, flat, refused, seam_of

import pymc_dp as pmdp
from pymc_dp.families.values import stays_text
from pymc_dp.releases.source import Source

duckdb = pytest.importorskip("duckdb")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
csv = pytest.importorskip("pyarrow.csv")
parquet = pytest.importorskip("pyarrow.parquet")

pytestmark = pytest.mark.filterwarnings("ignore")

SITES = ["north", "Île-de-France", "18-29"]
PARTIES = ["no", "yes", "other"]
WHOSE = {"missing": ["site_of", "vote"]}


def model(sites=SITES, parties=PARTIES):
    with pm.Model(coords={"site": sites, "party": parties}) as built:
        site = pm.Data("site_of", np.zeros(2, dtype=int))
        pm.Bernoulli("ill", pm.math.invlogit(pm.Normal("a", dims="site") + pm.Normal("b"))[site], observed=np.zeros(2, dtype=int))
        shares = pm.math.softmax(pm.Normal("c", dims=("site", "party")) + pm.Normal("d", dims="party"), axis=-1)
        pm.Categorical("vote", shares[site], observed=np.zeros(2, dtype=int))
    return built


def said(data, neighbours="replace", **more):
    """All that a release says where the noise is nothing, and so its exact sums."""
    with seam_of(0):
        return contents(pmdp.release(model(**more), epsilon=1, neighbours=neighbours, data=data, **WHOSE))


def unlabelled(told):
    """The same but for what levels are called."""
    return [({name: fact for name, fact in facts.items() if name != "labels"}, *arrays) for facts, *arrays in told]


def places(n=50):
    rng = np.random.default_rng(1)
    return pd.DataFrame({"site_of": rng.integers(0, 3, n), "vote": rng.integers(0, 3, n), "ill": rng.integers(0, 2, n)})


def labelled(frame):
    return frame.assign(site_of=np.array(SITES, dtype=object)[frame["site_of"]], vote=np.array(PARTIES, dtype=object)[frame["vote"]])


def sources(frame, folder):
    """The same labels as every kind of text that a table may hold."""
    yield from (frame, frame.astype({"site_of": "category", "vote": "str"}), frame.sample(frac=1, random_state=2))
    yield frame.assign(site_of=frame["site_of"].str.encode("utf-8"))
    yield pl.from_pandas(frame)
    yield pl.from_pandas(frame).with_columns(pl.col("site_of").cast(pl.Enum(SITES[::-1])), pl.col("vote").cast(pl.Categorical))
    table = pa.Table.from_pandas(frame)
    yield table
    yield table.set_column(0, "site_of", table["site_of"].dictionary_encode()).set_column(1, "vote", table["vote"].cast(pa.large_string()))
    parquet.write_table(table, folder / "records.parquet", row_group_size=7)
    yield folder / "records.parquet"
    csv.write_csv(table, folder / "records.csv")
    yield pd.read_csv(folder / "records.csv")
    yield pl.read_csv(folder / "records.csv", try_parse_dates=True)
    yield csv.read_csv(folder / "records.csv")
    connection = duckdb.connect()
    connection.read_csv(str(folder / "records.csv"), header=True).create("records")
    yield connection.table("records")
    yield xr.Dataset({name: ("row", frame[name].to_numpy()) for name in frame})
    yield xr.Dataset.from_dataframe(frame.astype("category"))


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_labels_are_the_places_that_they_have_in_the_model(tmp_path, neighbours):
    """Also behind sums, links and softmax, in observed levels, in every source, and beside numbers."""
    expected = said(places(), neighbours)
    for data in sources(labelled(places()), tmp_path):
        assert said(data, neighbours) == expected
    mixed = pd.concat([labelled(places())[::2], places()[1::2]])
    assert said(mixed, neighbours) == expected
    assert said(labelled(places()).replace({"north": "nord"}), neighbours) == said(places().replace({"site_of": {0: np.nan}}), neighbours)


def test_parts_are_read_by_the_labels_of_the_model_too():
    chunks = [labelled(places())[:20], labelled(places())[20:]]
    with seam_of(0):
        shared = pmdp.share_out(model(), parts=2, records=50, epsilon=1, neighbours="replace", **WHOSE)
        parts = [pmdp.partial_statistics(shared.plan, chunk, k) for k, chunk in enumerate(chunks)]
        assert contents(pmdp.add_up(shared, parts)) == said(places())


def test_draws_from_a_posterior_read_labels_as_a_release_does():
    with pm.Model(coords={"site": SITES}) as built:
        shares = pm.Dirichlet("shares", np.ones(3), dims="site")
        site = pm.Categorical("site_of", shares, observed=np.zeros(2, dtype=int))
        pm.Bernoulli("ill", pm.Beta("p", 1, 1, dims="site")[site], observed=np.zeros(2, dtype=int))
    frame = places(400).assign(ill=places(400)["site_of"] > 0)[["site_of", "ill"]]
    for data in (frame, frame.assign(site_of=np.array(SITES)[frame["site_of"]])):
        idata = pmdp.sample(model=built, data=data, epsilon=5_000, mechanism=pmdp.PosteriorSample(draws=20), progressbar=False)
        drawn = idata.posterior.mean(("chain", "draw"))
        np.testing.assert_allclose(drawn["p"], [0, 1, 1], atol=0.15)  # of about 130 records each
        np.testing.assert_allclose(drawn["shares"], frame["site_of"].value_counts(normalize=True).sort_index(), atol=0.1)


def test_inspect_says_what_is_read_as_a_label():
    shown = flat(pmdp.inspect(model(), data=labelled(places())))
    assert "site_of (a label of site, or a whole number from 0 to 2)" in shown
    assert "vote (a label of party, or a whole number from 0 to 2)" in shown
    assert "text that is none of these, will count as missing" in shown
    shown = flat(pmdp.inspect(model(sites=["2001-01-01", "north", "NA"]), data=places()))
    assert "site_of (a whole number from 0 to 2; no labels of site, which files of text may take for something else)" in shown


@pytest.mark.parametrize("labels", [["yes", "no", "other"], ["m", "f", "x"], ["1", "2", "3"], ["a", "b", "y"], ["a", "b", "1.5"]])
def test_a_label_that_spells_the_number_of_another_level_is_refused(labels):
    """A file of such labels alone may be read as numbers, and one record more as text."""
    for door in (pmdp.inspect, lambda *arguments, **named: pmdp.release(*arguments, epsilon=1, **named)):
        said_of = model(parties=labels)
        words = refused(door, said_of, data=places()) if door is not pmdp.inspect else flat(door(said_of, data=places()))
        assert "spells the number of another level" in words
        assert "Number the column by a list of your own" in words


ODD = [
    "2001-01-01",
    "nan ",
    "12:30",
    "27001",
    "epoch",
    "NaN",
    "NULL",
    "None",
    "n/a",
    "<NA>",
    "#N/A",
    "1-2-3",
    "inf",
    "",
    " ",
    "1e5",
    "0x1f",
]


@pytest.mark.parametrize("odd", ODD)
def test_labels_of_a_dim_are_not_read_where_one_may_be_taken_for_something_else(odd):
    """They count as missing, as all text did that spells no number of a level; numbers are places as before."""
    sites = ["north", "south", odd]
    assert not stays_text(odd)
    assert unlabelled(said(places(), sites=sites)) == unlabelled(said(places()))
    nobody = places().assign(site_of=np.nan)
    assert said(places().assign(site_of="north"), sites=sites) == said(nobody, sites=sites)


TEXTS = [*SITES, "north", "under 18", "<18", ">= 65", "65+", "2010-11", "18 to 29", "0–14 years", "1st", "北", "January", "noon", "today"]


@pytest.mark.parametrize("reader", ["pandas", "polars", "Arrow", "DuckDB"])
@pytest.mark.parametrize("text", [*TEXTS, "y", "N", "Yes", "t"])
def test_a_label_that_is_alone_in_a_file_is_read_as_beside_others(reader, text, tmp_path):
    """One record decides what a reader takes a whole column for, and so must not decide what becomes of the others."""
    assert stays_text(text) == (text in TEXTS)
    read = {
        "pandas": pd.read_csv,
        "polars": lambda path: pl.read_csv(path, try_parse_dates=True),
        "Arrow": csv.read_csv,
        "DuckDB": by_duckdb,
    }
    numbers = []
    for more in ("", "?\n", "5\n", "2001-01-01\n", "NA\n"):
        path = tmp_path / "records.csv"
        path.write_text(f"y\n{text}\n{text}\n{more}")
        columns = {"y": {text: 7}} if text in TEXTS else ["y"]
        numbers.append(np.concatenate([block["y"] for block in Source.of(read[reader](path), columns).blocks()])[:2].tolist())
    assert numbers == [numbers[0]] * 5
    assert np.isfinite(numbers[0]).all()


def by_duckdb(path):
    connection = duckdb.connect()
    connection.read_csv(str(path), header=True, delimiter=",").create("records")
    return connection.table("records")


def test_many_different_texts_are_read_as_one_by_one():
    """Beyond what is remembered of a column, too."""
    texts = [f"{k}" for k in range(10_000)] + ["north", "?"] * 5
    [block] = Source.of(pd.DataFrame({"y": texts}), {"y": {"north": 3}}).blocks()
    np.testing.assert_array_equal(block["y"], [*range(10_000), *[3, np.nan] * 5])


def test_two_dims_with_other_labels_name_no_levels():
    with pm.Model(coords={"a": ["x", "y"], "b": ["y", "x"]}) as built:
        k = pm.Data("k", np.zeros(2, dtype=int))
        pm.Bernoulli("one", pm.Beta("p", 1, 1, dims="a")[k], observed=np.zeros(2, dtype=int))
        pm.Bernoulli("two", pm.Beta("q", 1, 1, dims="b")[k], observed=np.zeros(2, dtype=int))
    assert "a label of" not in flat(pmdp.inspect(built, data=pd.DataFrame({"k": ["x"], "one": [0], "two": [1]})))


def test_a_constant_of_the_only_placeholder_is_not_taken_for_one_of_all_records():
    """With one placeholder row a constant may be its own, and records beside the model have others."""
    with pm.Model() as built:
        pm.Normal("y", pm.Normal("a") + pm.Normal("b") * np.array([2.0]), 1, observed=np.zeros(1))
    words = refused(pmdp.release, built, data=pd.DataFrame({"y": [0.1, 0.2]}), epsilon=1, bounds={"y": (-1, 3)}, public=["y:0"])
    assert "is public and has an entry for every record" in words


COLOURS = ["red", "green", "blue"]


@pytest.mark.parametrize(("sites", "parties", "of"), [(SITES[::-1], COLOURS, "site_of"), (SITES, ["green", "red", "blue"], "vote")])
def test_a_model_with_labels_in_another_order_takes_no_release(sites, parties, of, tmp_path):
    """What was counted under one label would be taken for another: in a model, and where several holders' releases come together."""
    data = places().assign(vote=np.array(COLOURS, dtype=object)[places()["vote"]], site_of=labelled(places())["site_of"])
    mine = {"sites": SITES, "parties": COLOURS}
    released, other = (pmdp.release(model(**names), epsilon=1, data=data) for names in (mine, {"sites": sites, "parties": parties}))
    released.to_netcdf(tmp_path / "release")
    stored = pmdp.Release.from_netcdf(tmp_path / "release")
    assert stored == released
    assert stored["vote"].labels == (tuple(SITES), tuple(COLOURS))
    words = rf"' was level \d and is level \d of {of} in the model, which has its labels in another order"
    for wrong in (
        lambda: pmdp.rewrite(model(sites, parties), stored),
        lambda: pmdp.published(model(**mine), {"here": stored, "there": other}),
    ):
        with pytest.raises(pmdp.Refusal, match=words):
            wrong()
    assert pmdp.rewrite(model(**mine), stored).coords["site"] == tuple(SITES)
    again = pmdp.release(model(**mine), epsilon=1, data=data)
    assert pmdp.published(model(**mine), [stored, again]).coords["party"] == tuple(COLOURS)


def test_labels_that_are_none_of_the_release_s_may_be_anything():
    """Such as those in another language; and what an older version released has none."""
    released = pmdp.release(model(), epsilon=1, data=labelled(places()))
    translated = [name.upper() for name in SITES]
    assert pmdp.rewrite(model(translated), released).coords["site"] == tuple(translated)
    older = released.to_datatree()
    for group in older.children.values():
        assert '"labels": [["north"' in group.attrs["statistic"]
        facts = json.loads(group.attrs["statistic"])
        del facts["labels"]
        group.attrs["statistic"] = json.dumps(facts)
    assert pmdp.rewrite(model(SITES[::-1]), pmdp.Release.from_datatree(older)).coords["site"] == tuple(SITES[::-1])


def test_no_label_stands_in_a_release_that_inspect_does_not_say_is_published():
    """Of dims that do not survive, such as that of the records."""
    with pm.Model(coords={"person": ["zz-secret", "b", "c", "d"], "grade": [3, 2, 1], "group": ["x", "y"]}) as built:
        group = pm.Data("of", [0, 1, 1, 0], dims="person")
        pm.Bernoulli("ill", pm.Beta("p", 1, 1, dims="group")[group], observed=[0, 1, 1, 0], dims="person")
        pm.Categorical("mark", pm.Dirichlet("q", np.ones(3), dims="grade"), observed=[0, 1, 2, 1], dims="person")
    released = pmdp.release(built, epsilon=1)
    assert (released["ill"].labels, released["mark"].labels) == ((("x", "y"), ()), (("3", "2", "1"),))
    assert "zz-secret" not in json.dumps(released.to_datatree().to_dict(), default=str)


def _years():
    pm.Poisson("y", pm.Gamma("rate", 2, 1, dims="d")[pm.Data("of", [0, 1, 2])], observed=[0, 1, 2])


def _columns():
    pm.Bernoulli("y", pm.Beta("p", 1, 1, dims="d"), observed=np.eye(3, dtype=int))


def _columns_by_cell():
    p = pm.math.invlogit(pm.Normal("p", dims=("group", "d"))[pm.Data("of", [0, 1, 1])] + 0.5)
    pm.Bernoulli("y", p, observed=np.eye(3, dtype=int))


def _columns_of_the_observed_alone():
    pm.Normal("y", pm.Normal("a"), 1.0, observed=np.eye(3), dims=("row", "d"))
    pm.Normal("b", dims="d")


def _votes():
    pm.Multinomial("y", 1, pm.Dirichlet("p", np.ones(3), dims="d"), observed=np.eye(3, dtype=int))


def _product():
    pm.Normal("y", pm.Data("X", np.eye(3)) @ pm.Normal("b", dims="d"), pm.HalfNormal("sd"), observed=np.zeros(3))


def _product_transposed():
    pm.Normal("y", pm.Normal("b", dims="d") @ pm.Data("X", np.eye(3)).T, pm.HalfNormal("sd"), observed=np.zeros(3))


def _sum_of_products():
    slopes = pm.Normal("b", dims=("group", "d"))[pm.Data("of", [0, 1, 1])]
    pm.Normal("y", (pm.Data("X", np.eye(3)) * slopes).sum(axis=1), pm.HalfNormal("sd"), observed=np.zeros(3))


REAL, BOTH = {"y": (-1, 1)}, {"y": (-1, 1), "X": (-1, 1)}
AXES = {
    _years: {"y": (0, 9)},
    _columns: None,
    _columns_by_cell: None,
    _columns_of_the_observed_alone: REAL,
    _votes: None,
    _product: BOTH,
    _product_transposed: BOTH,
    _sum_of_products: BOTH,
}


@pytest.mark.parametrize(
    ("write", "labels"),
    [*((write, ["age", "income", "height"]) for write in AXES), (_years, [2019, 2020, 2021]), (_columns, np.array([1.5, 2.0, 3.0]))],
)
def test_numbers_and_what_stands_along_an_axis_have_labels_in_an_order_too(write, labels):
    def built(of_dim):
        with pm.Model(coords={"d": of_dim, "group": ["g", "h"], "row": range(3)}) as model:
            write()
        return model

    released = pmdp.release(built(labels), epsilon=1, bounds=AXES[write])
    pmdp.rewrite(built(labels), released)
    with pytest.raises(pmdp.Refusal, match="in the model, which has its labels in another order"):
        pmdp.rewrite(built([labels[k] for k in (1, 0, 2)]), released)


def of_two(swapped, named=True, prefix=""):
    """A share by site and ward, whose terms are written in one order or the other; arrays have names, or dims have labels."""
    levels = np.repeat([0, 1, 2], 3), np.tile([0, 1, 2], 3)
    with pm.Model(coords={} if named else {"site": ["n", "s", "w"], "ward": ["x", "y", "z"]}) as built:
        terms = []
        for name, of in zip(("site", "ward"), levels):
            effect = pm.Normal(f"by_{name}", shape=3) if named else pm.Normal(f"by_{name}", dims=name)
            terms.append(effect[pm.Data(f"{prefix}{name}", of) if named else of])
        pm.Bernoulli(f"{prefix}ill", logit_p=terms[swapped] + terms[not swapped], observed=np.arange(9) % 2)
    return built


@pytest.mark.parametrize(("named", "public"), [(True, []), (True, ["site", "ward"]), (False, []), (False, ["ill:0", "ill:1"])])
def test_terms_in_another_order_are_another_model(named, public):
    """What was counted by site was taken for what was counted by ward: arrays are told apart by their names, or else by labels."""
    released, other = (pmdp.release(of_two(False, named), epsilon=1, public=public) for _ in range(2))
    words = "was released from a model with site, ward in this order" if named else "had the labels that"
    for wrong in (lambda: pmdp.rewrite(of_two(True, named), released), lambda: pmdp.published(of_two(True, named), [released, other])):
        with pytest.raises(pmdp.Refusal, match=words):
            wrong()
    pmdp.rewrite(of_two(False, named), released)
    assert released == pmdp.Release.from_datatree(released.to_datatree())


def test_terms_in_another_order_are_another_model_where_arrays_have_the_name_of_their_holder():
    released = {"here": pmdp.release(of_two(False), epsilon=1)}
    pmdp.published(of_two(False, prefix="here_"), released)
    with pytest.raises(pmdp.Refusal, match="with site, ward in this order, and the model has ward, site"):
        pmdp.published(of_two(True, prefix="here_"), released)
