"""Records beside the model (``data=``): what is released of them before noise is what the model that observes them releases."""

from datetime import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from checks import contents, refused, seam_of

import pymc_dp as pmdp
from pymc_dp.families.normal import Normal
from pymc_dp.families.second_moments import Regression
from pymc_dp.releases import by_part, source, stored, totals

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

pytestmark = pytest.mark.filterwarnings("ignore")
BOUNDS = {"x": (-2, 2), "y": (-1, 1)}
RNG = np.random.default_rng(1)
N = 60
FRAME = pd.DataFrame(
    {"x": RNG.normal(size=N), "site": RNG.integers(0, 3, N), "y": RNG.normal(size=N), "k": RNG.integers(0, 2, N), "other": ["text"] * N}
)


def model(frame):
    with pm.Model() as built:
        x, site = pm.Data("x", frame["x"].to_numpy()), pm.Data("site", frame["site"].to_numpy())
        pm.Bernoulli("k", pm.Beta("p", 1, 1, shape=3)[site], observed=frame["k"].to_numpy())
        pm.Normal("y", pm.Normal("a") + pm.Normal("b") * x, pm.HalfNormal("sd"), observed=frame["y"].to_numpy())
    return built


PLACEHOLDERS = pd.DataFrame({"x": [0.0, 0.0], "site": [0, 0], "y": [0.0, 0.0], "k": [0, 0]})


def said(neighbours="replace", data=None, frame=PLACEHOLDERS, **more):
    """All that a release says where the noise is nothing, and so its exact sums."""
    with seam_of(0):
        released = pmdp.release(model(frame), epsilon=1, bounds=BOUNDS, neighbours=neighbours, data=data, **more)
    return contents(released)


def sources(folder):
    parquet.write_table(pa.Table.from_pandas(FRAME), folder / "records.parquet", row_group_size=7)
    yield FRAME
    yield FRAME.sample(frac=1, random_state=3)
    yield FRAME.astype({"site": "category", "k": "Int8", "x": object})
    yield pl.from_pandas(FRAME)
    yield pl.from_pandas(FRAME).with_columns(pl.col("y").cast(pl.String), pl.col("site").cast(pl.String).cast(pl.Categorical))
    yield pa.Table.from_pandas(FRAME)
    yield pa.concat_tables([pa.Table.from_pandas(FRAME[:1]), pa.Table.from_pandas(FRAME[1:])])
    yield folder / "records.parquet"


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_every_source_order_and_chunking_is_the_model_that_observes_the_records(tmp_path, monkeypatch, neighbours):
    expected = said(neighbours, frame=FRAME)
    for data in sources(tmp_path):
        assert said(neighbours, data) == expected
    for rows in (13, N - 1):
        for module, name in ((source, "NUMBERS_AT_ONCE"), (stored, "ROWS_AT_ONCE"), (by_part, "ROWS_IN_PART"), (totals, "IN_CACHE")):
            monkeypatch.setattr(module, name, rows)
        assert said(neighbours, frame=FRAME) == said(neighbours, FRAME) == said(neighbours, tmp_path / "records.parquet") == expected


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_placeholders_leave_no_trace(neighbours):
    others = pd.DataFrame({"x": [9.0, 4.0, 1.0], "site": [2, 1, 0], "y": [5.0, 1.0, -3.0], "k": [1, 0, 1]})
    assert said(neighbours, FRAME) == said(neighbours, FRAME, frame=others)


@pytest.mark.parametrize("bounds", [(0, 2**33), {0, 2**33}])
def test_bounds_beyond_the_whole_numbers_of_an_array_are_refused(bounds):
    """PyMC makes 32 bits of [0, 0]: what lay beyond was taken for 2^31 - 1 or, where the model computes with it, for something else."""
    frame = pd.DataFrame({"x": [2**32] * 5, "y": [1.0] * 5})
    for zeros, dtype in (([0, 0], "int32"), (np.zeros(2, np.uint8), "uint8"), (np.zeros(2), "")):
        with pm.Model() as built:
            pm.Normal("y", pm.Normal("a") + pm.Normal("b") * (pm.Data("x", zeros) + 1), 1.0, observed=np.zeros(2))
        how = {"data": frame, "epsilon": 1, "bounds": {"x": bounds, "y": (-1, 1)}}
        if dtype:
            assert f"x holds integers of type {dtype}, and its bounds lie beyond these" in refused(pmdp.release, built, **how)
        else:
            pmdp.release(built, **how)


def test_the_number_of_records_is_that_of_the_data_where_it_is_public():
    with seam_of(0):
        released = pmdp.release(model(PLACEHOLDERS), epsilon=1, bounds=BOUNDS, data=FRAME)
        private = pmdp.release(model(PLACEHOLDERS), epsilon=1, bounds=BOUNDS, data=FRAME, neighbours="add_remove")
    assert released["y"].n.tolist() == released["k"].n.tolist() == [N]
    assert private["y"].n.size == private["k"].n.size == 0


MALFORMED = [None, "?", "", "0x", b"\xff", Decimal("NaN"), datetime(2020, 1, 1), [1], {}, complex(1, 1), float("nan"), pd.NA]


def test_whatever_one_record_holds_no_other_is_read_otherwise():
    clean, expected = FRAME.drop(columns="other"), {}
    for place in (0, 31, N - 1):
        missing = clean.astype(float)
        missing.iloc[place] = np.nan
        expected[place] = said(data=missing)
    for k, value in enumerate(MALFORMED):
        place = (0, 31, N - 1)[k % 3]
        frame = clean.astype(object)
        for column in range(frame.shape[1]):
            frame.iat[place, column] = value
        assert said(data=frame) == expected[place], value


def test_a_number_beyond_doubles_is_moved_to_the_bounds():
    large, infinite = FRAME.drop(columns="other").astype(object), FRAME.drop(columns="other").astype(float)
    for number, end in ((10**400, np.inf), (-(10**400), -np.inf)):
        large.iat[4, 0], infinite.iat[4, 0] = number, end
        assert said(data=large) == said(data=infinite)


def test_a_type_that_one_record_changes_is_read_as_numbers():
    texts = FRAME.drop(columns="other").map(repr_of)
    texts.iloc[5] = "?"
    missing = FRAME.drop(columns="other").astype(float)
    missing.iloc[5] = np.nan
    for data in (texts, pl.from_pandas(texts), pa.Table.from_pandas(texts), texts.astype("category")):
        assert said(data=data) == said(data=missing)


def repr_of(value):
    return repr(value.item() if isinstance(value, np.generic) else value)


def by_duckdb(path):
    connection = pytest.importorskip("duckdb").connect()
    connection.read_csv(str(path), header=True, delimiter=",").create("records")
    return connection.table("records")


TEXTS = ["True", "false", "TRUE", "1", " 2.5", "+.5e1", "1e100", "1e-100", "1e400", "inf", "-Infinity"]
TEXTS += ["t", "F", "yes", "No", "0x1f", "0X7fffffffffffffff", "0b101", "2\t"]


@pytest.mark.parametrize("reader", ["pandas", "polars", "Arrow", "DuckDB"])
def test_one_record_that_is_no_number_changes_no_other_of_a_file_of_text(reader, tmp_path):
    """Each text is read alone, as the reader's own number or truth value, and again beside one that makes texts of all."""
    read = {"pandas": pd.read_csv, "polars": pl.read_csv, "Arrow": pytest.importorskip("pyarrow.csv").read_csv, "DuckDB": by_duckdb}[reader]
    for text in TEXTS:
        paths = [tmp_path / "alone.csv", tmp_path / "beside.csv"]
        for path, more in zip(paths, ("", "?\n"), strict=True):
            path.write_text(f"y\n{text}\n{more}")
        alone, beside = map(read, paths)
        values = [np.concatenate([block["y"] for block in source.Source.of(data, ["y"]).blocks()]) for data in (alone, beside)]
        if reader != "DuckDB" or "inf" not in text.lower():  # of which DuckDB makes dates
            assert not np.isnan(values[0]).any(), text
        else:
            continue
        np.testing.assert_array_equal(values[1], [*values[0], np.nan], err_msg=text)


ODD = ["İnf", "ınf", "inﬁnity", "٣", "1e٣", "falſe", "1_0", "+-1", "", " ", "e1", "1e", "nan", "1\x00"]


@pytest.mark.parametrize("text", [*ODD, "9" * 101])
def test_no_text_is_too_odd_to_be_read(text):
    """Letters and digits of other scripts that a comparison without case takes for ours, and what is all but a number."""
    [block] = source.Source.of(pd.DataFrame({"y": [text]}), ["y"]).blocks()
    assert np.isnan(block["y"]).all()


def test_declared_missing_values_are_left_out_as_in_the_model():
    frame = FRAME.drop(columns="other").astype({"y": float})
    frame.loc[[3, 7], "y"] = np.nan
    assert said(data=frame, missing=["y"]) == said(frame=frame, missing=["y"])


def test_nothing_is_read_before_the_ledger_has_paid(tmp_path, monkeypatch):
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=1, create=True)
    spent = []
    blocks = source.Source.blocks
    monkeypatch.setattr(source.Source, "blocks", lambda self: spent.append(ledger.remaining().epsilon) or blocks(self))
    said(data=FRAME, ledger=ledger)
    assert spent == [0]


def test_a_delta_is_not_compared_with_the_number_of_placeholders():
    """That is 2 here: 1/1,000 is the limit, whatever the data hold."""
    with pytest.warns(pmdp.WeakPrivacyWarning, match="delta 0.01 is above 1/1,000: "):
        pmdp.release(model(PLACEHOLDERS), data=FRAME, bounds=BOUNDS, epsilon=1.0, delta=0.01, mechanism="gaussian")


def test_privatize_knows_the_number_of_records_of_the_data():
    private = pmdp.privatize(model(PLACEHOLDERS), epsilon=1, bounds=BOUNDS, data=FRAME)
    assert private.privacy["y"].n.tolist() == [N]


def test_what_is_not_understood_is_refused(tmp_path):
    def words(data=FRAME, frame=PLACEHOLDERS, **more):
        return refused(pmdp.release, model(frame), epsilon=1, bounds=BOUNDS, data=data, **more)

    assert "data must be" in words([1, 2])
    assert "no column called y" in words(FRAME.drop(columns="y"))
    assert "several columns called y" in words(pd.concat([FRAME, FRAME[["y"]]], axis=1))
    assert "There is no file" in words(tmp_path / "nothing.parquet")
    assert "no records" in words(FRAME[:0])
    assert "x is public" in words(public=["x"])
    assert "not disjoint" in words(disjoint=["k", "y"])
    assert "Bayesian network" in words(mechanism="fourier")


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_no_prior_rests_on_how_many_placeholders_there_are(neighbours):
    def words(used):
        with pm.Model() as built:
            x = pm.Data("x", np.zeros(2))
            a = pm.Normal("a", 0, x.shape[0])
            pm.Normal("y", a + pm.Normal("b") * x if used else a, 1, observed=np.zeros(2))
        bounds = {"x": (0, 1), "y": (0, 1)} if used else {"y": (0, 1)}
        return refused(pmdp.release, built, epsilon=1, bounds=bounds, data=FRAME, neighbours=neighbours)

    assert "x reaches a prior as well as this likelihood" in words(used=True)
    assert "a column called x, but the model keeps its own array" in words(used=False)


CLOSE = (2.0**60, 2.0**60 + 256)
"""Bounds so close to each other for their size that the middle is rounded to one of them: their grid ends elsewhere."""
BEYOND = [np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0, 2.0**60 + 128, 2.0**60 + 512, 2.0**60 - 512, -2.0, 2.0, 1.99999]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("kind", [float, np.float32, object, "int"])
def test_columns_that_the_grid_clamps_are_those_that_were_clamped_before(monkeypatch, kind, known):
    """The ends of a grid are the bounds, to which it moves what is beyond them; where they are not, values are clamped before."""
    with pm.Model() as built:
        sd = 1 if known else pm.HalfNormal("sd")
        slopes = [pm.Normal(f"b_{x}") * pm.Data(x, np.zeros(2)) for x in ("x", "close")]
        pm.Normal("y", pm.Normal("a") + sum(slopes), sd, observed=np.zeros(2))
        pm.Normal("alone", pm.Normal("mu"), sd, observed=np.zeros(2))
    columns = {"x": (-2.0, 2.0), "close": CLOSE, "y": (-2.0, 2.0), "alone": (-2.0, 2.0)}
    frame = pd.DataFrame({name: np.random.default_rng(k).permutation(BEYOND) for k, name in enumerate(columns)})
    frame = frame.fillna(0).clip(-(2**62), 2**62).astype(int) if kind == "int" else frame.astype(kind)

    def sums():
        with seam_of(0):
            released = pmdp.release(built, epsilon=1, bounds=columns, data=frame, missing={})
        return [statistic.noisy.tolist() for statistic in released.statistics]

    names, of_grid = [], by_part.clamped_on_grid
    with monkeypatch.context() as patch:
        patch.setattr(by_part, "clamped_on_grid", lambda planned: names.append(of_grid(planned)) or names[-1])
        found = sums()
    assert sorted(map(len, names)) == [0, 1]
    monkeypatch.setattr(by_part, "clamped_on_grid", lambda planned: frozenset())
    monkeypatch.setattr(Regression, "clamps", property(lambda self: (False,) * self.size))
    monkeypatch.setattr(Normal, "completes", lambda self, domain: False)
    assert sums() == found
