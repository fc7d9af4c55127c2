"""Persons and records beside the model: the same release before noise as of the model that observes them, in fixed memory."""

import os
import tempfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from checks import contents, mostly_slow, refused, seam_of, watched

import pymc_dp as pmdp
from pymc_dp.releases import person_blocks, source, stored
from pymc_dp.releases.persons import counted_rows, names_of

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")
parquet = pytest.importorskip("pyarrow.parquet")

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(1)
N = 90
FRAME = pd.DataFrame({"x": RNG.choice([-0.0, 0.0, 0.5], N), "site": RNG.integers(0, 3, N), "y": RNG.choice([0.25, 0.5, np.nan], N)})
FRAME = FRAME.assign(k=RNG.integers(0, 2, N), who=RNG.integers(0, 12, N))

BOUNDS = {"x": (-2, 2), "y": (-1, 1)}
PLACEHOLDERS = pd.DataFrame({"x": [0.0, 0.0], "site": [0, 0], "y": [0.0, 0.0], "k": [0, 0]})


def model(frame):
    with pm.Model(coords={"row": range(len(frame))}) as built:
        x, site = pm.Data("x", frame["x"].to_numpy()), pm.Data("site", frame["site"].to_numpy())
        pm.Bernoulli("k", pm.Beta("p", 1, 1, shape=3)[site], observed=frame["k"].to_numpy(), dims="row")
        pm.Normal("y", pm.Normal("a") + pm.Normal("b") * x, pm.HalfNormal("sd"), observed=frame["y"].to_numpy(), dims="row")
    return built


def said(unit, neighbours="replace", data=None, frame=PLACEHOLDERS):
    """All that a release says where the noise is nothing, and so its exact sums."""
    with seam_of(0):
        released = pmdp.release(model(frame), epsilon=1, bounds=BOUNDS, neighbours=neighbours, data=data, unit=unit, missing=["y"])
    return contents(released)


def holders(folder):
    arrow = pa.Table.from_pandas(FRAME)
    parquet.write_table(arrow, folder / "records.parquet", row_group_size=7)
    parquet.write_table(arrow.set_column(4, "who", arrow.column("who").cast(pa.string())), folder / "texts.parquet")
    yield FRAME
    yield FRAME.sample(frac=1, random_state=3)
    yield FRAME.sample(frac=1, random_state=4).astype({"who": "category", "k": "Int8"})
    yield FRAME.astype({"who": float, "x": object})
    yield FRAME.astype({"who": str})
    yield FRAME.assign(who=[Decimal(int(name)) for name in FRAME["who"]])
    yield pl.from_pandas(FRAME)
    yield pl.from_pandas(FRAME).with_columns(pl.col("who").cast(pl.String).cast(pl.Categorical))
    yield arrow
    yield pa.concat_tables([arrow.slice(50), arrow.slice(0, 50)])
    yield folder / "records.parquet"
    yield folder / "texts.parquet"


@pytest.mark.parametrize("neighbours", mostly_slow(["replace", "add_remove"], 0))
def test_every_source_order_and_chunking_is_the_model_that_observes_the_records(tmp_path, monkeypatch, neighbours):
    expected = said(pmdp.Person(FRAME["who"].to_numpy(), 3, name="who"), neighbours, frame=FRAME)
    several, held = pmdp.Person("who", 3), list(holders(tmp_path))
    assert all(said(several, neighbours, one) == expected for one in held)
    for module, name in ((source, "NUMBERS_AT_ONCE"), (stored, "ROWS_AT_ONCE"), (person_blocks, "ROWS_AT_ONCE")):
        monkeypatch.setattr(module, name, 7 * (1 + 4 * (module is source)))
    monkeypatch.setattr(person_blocks, "IN_MEMORY", 100)
    monkeypatch.setattr(person_blocks, "ROWS_TOGETHER", 20)
    assert all(said(several, neighbours, one) == expected for one in held[1::4])
    assert said(pmdp.Person("who", 2), neighbours, FRAME) != expected
    assert said(pmdp.Person("who", 3), neighbours, FRAME.assign(who=FRAME["who"] % 4)) != expected


FLIGHTS = Path(os.environ.get("PYMC_DP_DATA", ".")) / "nycflights13" / "flights.parquet"


@pytest.mark.slow
@pytest.mark.skipif(not FLIGHTS.exists(), reason="needs PYMC_DP_DATA with nycflights13")
def test_flights_by_aircraft(tmp_path):
    """Of 336,776 flights of 4,043 aircraft 20 each count, from a file in blocks as from a model that observes them, in any order."""
    flights = pd.read_parquet(FLIGHTS).sample(frac=1, random_state=1)
    rows = pd.DataFrame(
        {"x": flights["dep_delay"].fillna(0) / 1_000, "site": flights["origin"].cat.codes, "y": flights["arr_delay"] / 1_000}
    )
    rows = rows.assign(k=(flights["arr_delay"] > 15).astype(int), who=flights["tailnum"].to_numpy()).astype({"x": float, "y": float})
    rows.to_parquet(tmp_path / "flights.parquet")
    unit = pmdp.Person(rows["who"].to_numpy(dtype=object), 20, name="who")
    expected = said(unit, "add_remove", frame=rows)
    assert said(pmdp.Person("who", 20), "add_remove", tmp_path / "flights.parquet") == expected


def test_blocks_hold_the_rows_that_count_and_no_others(monkeypatch):
    """Whatever the blocks, buckets and files, and with rows of nobody among them."""
    rng = np.random.default_rng(2)
    names = rng.choice([*range(40), None], 3_000)
    whose, said = names_of(names), {"b": rng.integers(0, 3, 3_000).astype(float), "a": rng.normal(size=3_000)}
    kept = counted_rows(whose, 9, [said["a"], said["b"]])
    expected = sorted(zip(said["a"][kept], said["b"][kept], strict=True))
    assert 300 < len(expected) <= 360
    for most, together in ((10**9, 10**9), (1_000, 1), (1_000, 500)):
        monkeypatch.setattr(person_blocks, "IN_MEMORY", most)
        monkeypatch.setattr(person_blocks, "ROWS_TOGETHER", together)
        for size in (1, 700, 3_000):
            order = rng.permutation(3_000)
            parts = [order[start : start + size] for start in range(0, 3_000, size)]
            blocks = ({person_blocks.WHOSE: whose[part]} | {name: values[part] for name, values in said.items()} for part in parts)
            found = list(person_blocks.blocks_that_count(blocks, 9))
            assert sorted((a, b) for block in found for a, b in zip(block["a"], block["b"], strict=True)) == expected
    assert list(person_blocks.blocks_that_count([], 9)) == []


def test_what_is_dealt_is_in_a_file_without_a_name(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(person_blocks, "IN_MEMORY", 1)
    seen, deal = [], person_blocks._deal

    def dealt_and_looked(*arguments):
        found = deal(*arguments)
        seen.append((arguments[2]._rolled, list(tmp_path.iterdir())))
        return found

    monkeypatch.setattr(person_blocks, "_deal", dealt_and_looked)
    said(pmdp.Person("who", 3), data=FRAME)
    assert seen == [(True, [])]


def test_whether_a_temporary_file_is_needed_does_not_show(tmp_path, monkeypatch):
    """One row more takes more than may stay in memory; where no file can be written both releases are refused, and nothing is paid."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    monkeypatch.setattr(person_blocks, "IN_MEMORY", N * 8 * 6)
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=1, neighbours="add_remove", unit=pmdp.Person("who", 3), create=True)
    declared = {"bounds": BOUNDS, "neighbours": "add_remove", "unit": pmdp.Person("who", 3), "missing": {}}
    for frame in (FRAME, pd.concat([FRAME, FRAME[:1]])):
        said_of_it = refused(pmdp.release, model(PLACEHOLDERS), epsilon=1, data=frame, ledger=ledger, **declared)
        assert said_of_it is not None
        assert "TMPDIR" in said_of_it
    shared = pmdp.share_out(model(PLACEHOLDERS), parts=1, epsilon=1, **declared)
    assert "TMPDIR" in refused(pmdp.partial_statistics, shared.plan, FRAME, 0, whole=True)
    assert ledger.remaining().epsilon == 1


def test_two_variables_of_one_table_have_the_same_people():
    """Without dims, too: all are columns of the same rows. The key may be a pm.Data of the model, or none."""
    for keyed in (True, False):
        with pm.Model() as built:
            if keyed:
                pm.Data("who", np.zeros(2, dtype=int))
            pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=[0, 0])
            pm.Bernoulli("z", pm.Beta("q", 1, 1), observed=[0, 0])
        rows = pd.DataFrame({"who": ["a", "a", "a", "b"], "y": [1, 1, 1, 1], "z": [1, 1, 1, 1]})
        with seam_of(0):
            released = pmdp.release(built, epsilon=1, data=rows, unit=pmdp.Person("who", 2), neighbours="add_remove")
        assert [released[name].noisy.ravel().tolist() for name in "yz"] == [[0, 3], [0, 3]]
        assert [released[name].difference for name in "yz"] == [2, 2]
        assert "who" not in pmdp.rewrite(built, released).named_vars or keyed


@pytest.mark.parametrize("neighbours", mostly_slow(["replace", "add_remove"], 0))
def test_neighbours_look_alike(tmp_path, neighbours):
    """A person of five rows, and one of one row or none: given the same noisy numbers nothing that is seen differs, whatever names are."""
    more = [pd.DataFrame({"x": 0.5, "site": 1, "y": 1.0, "k": 1, "who": [name] * rows}) for name, rows in (("zz", 5), (2**70, 1), (0, 0))]
    several, answers = [], ()
    for place, rows in enumerate((more[0], more[1] if neighbours == "replace" else more[2])):
        unit, path = pmdp.Person("who", 3), tmp_path / str(place)
        with watched(2, answers) as (seam, output, caught):
            ledger = pmdp.Ledger(path, epsilon=2, unit=unit, neighbours=neighbours, create=True)
            declared = {"bounds": BOUNDS, "neighbours": neighbours, "unit": unit, "ledger": ledger}
            released = pmdp.release(model(PLACEHOLDERS), epsilon=1, data=pd.concat([FRAME, rows]), **declared)
        answers = seam.answers
        several.append((repr(released).replace(released.ledger_head, ""), output.getvalue(), [str(each.message) for each in caught]))
        several[-1] += ([statistic.noisy.tolist() for statistic in released.statistics], ledger.remaining())
        assert ledger.entries()["epsilon"].tolist()[-1] == 1
    assert several[0] == several[1]
    assert "all rows of one who" in several[0][0]


@pytest.mark.parametrize("odd", [1j, complex(7, 0), np.longdouble(1.5), None, "text"])
def test_what_pandas_makes_of_all_names_because_of_one_takes_nobody_s_name(odd):
    plain = [*FRAME["who"].to_numpy()]
    before, after = (source.names_in(pd.DataFrame({"who": names})["who"]) for names in ([*plain, 7], [*plain, odd]))
    assert pd.DataFrame({"who": [*plain, odd]})["who"].dtype != np.int64
    np.testing.assert_array_equal(before[:-1], after[:-1])
    assert (before[-1] == after[-1]).all() == (odd == 7)


def test_what_is_no_key_is_refused(tmp_path):
    unit = pmdp.Person("who", 3)
    dates = pa.Table.from_pandas(FRAME.drop(columns="who")).append_column("who", pa.nulls(N, pa.timestamp("s")))
    guessed = FRAME.assign(who=[f"01-{1 + k % 12:02d}-{1 + k % 28:02d}" for k in range(N)]).to_csv(index=False).encode()
    (tmp_path / "records.csv").write_bytes(guessed)
    database = duckdb.connect()
    database.read_csv(str(tmp_path / "records.csv")).create("records")
    for data, given, words in (
        (pl.read_csv(guessed, try_parse_dates=True), unit, "names no person"),
        (database.table("records"), unit, "names no person"),
        (FRAME, pmdp.Person(np.arange(N), 3, name="who"), "the key is a column"),
        (FRAME.drop(columns="who"), unit, "no column called who"),
        (dates, unit, "names no person"),
    ):
        assert words in refused(said, given, data=data)
