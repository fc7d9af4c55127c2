"""Where the records of ``data=`` may lie, and what reading them takes."""

import os
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from checks import contents, refused, seam_of

import pymc_dp as pmdp
from pymc_dp.families.family import Domain, complete
from pymc_dp.privacy.guard import FAILED, PrivateComputationError
from pymc_dp.releases import source, stored
from pymc_dp.releases.person_names import names_in

duckdb = pytest.importorskip("duckdb")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
pyarrow_dataset = pytest.importorskip("pyarrow.dataset")

pytestmark = pytest.mark.filterwarnings("ignore")


def stored_in_duckdb(frame):
    connection = duckdb.connect()
    connection.from_df(frame).create("records")
    return connection.table("records")


def taken(path):
    """The most memory that Arrow holds while a file is read, in bytes."""
    before = pa.total_allocated_bytes()
    return max(pa.total_allocated_bytes() - before for _ in stored.stored_in_file(path, ["x"]))


@pytest.mark.parametrize("group", [2**16, 2**22])
def test_a_file_of_many_rows_takes_no_more_memory_than_one_of_few(tmp_path, group):
    rng, rows = np.random.default_rng(1), 2**21
    for name, many in (("few", rows // 8), ("many", rows)):
        parquet.write_table(pa.table({"x": rng.normal(size=many)}), tmp_path / name, row_group_size=group, use_dictionary=False)
    assert (tmp_path / "many").stat().st_size > 2**24
    assert taken(tmp_path / "many") < 1.5 * taken(tmp_path / "few") + 2**20 < 2**23


def rows(n, seed=1):
    rng = np.random.default_rng(seed)
    columns = {"x": rng.normal(size=n), "site": rng.integers(0, 3, n), "y": rng.normal(size=n), "k": rng.integers(0, 2, n)}
    return pd.DataFrame(columns)


def model(n=2):
    with pm.Model() as built:
        x, site = pm.Data("x", np.zeros(n)), pm.Data("site", np.zeros(n, dtype=int))
        pm.Bernoulli("k", pm.Beta("p", 1, 1, shape=3)[site], observed=np.zeros(n, dtype=int))
        pm.Normal("y", pm.Normal("a") + pm.Normal("b") * x, pm.HalfNormal("sd"), observed=np.zeros(n))
    return built


BOUNDS = {"x": (-2, 2), "y": (-1, 1)}


def shown_of(data, **more):
    """What ``inspect`` says, on one line."""
    return " ".join(repr(pmdp.inspect(model(), data=data, **more)).split())


def test_inspect_says_the_columns_and_reads_none(tmp_path, monkeypatch):
    monkeypatch.setattr(source.Source, "blocks", None)
    rows(50).to_parquet(tmp_path / "records.parquet")
    shown = {}
    for neighbours in ("replace", "add_remove"):
        for data in (rows(50), rows(50).astype(object), pl.from_pandas(rows(50)), tmp_path / "records.parquet"):
            shown.setdefault(neighbours, set()).add(shown_of(data, bounds=BOUNDS, neighbours=neighbours))
        assert len(shown[neighbours]) == 1
    [text], [private] = shown.values()
    read_as = "site (a whole number from 0 to 2)", "k (a whole number from 0 to 1)", "y (a number from -1 to 1)"
    for said in (*read_as, "none was read", "text that is none of these, will count as missing"):
        assert said in text
        assert said in private
    assert "from 50 records" in text
    assert "50" not in private


def test_inspect_says_where_numbers_become_whole_ones():
    """Placeholders such as [0, 0] are whole numbers, and so is what is read in their place: .7 counts as 1."""
    for placeholders, read_as in (([0, 0], "a whole number from 0 to 1"), ([0.0, 0.0], "a number from 0 to 1")):
        with pm.Model() as built:
            pm.Normal("y", pm.Normal("a") * pm.Data("x", placeholders), 1.0, observed=[0.0, 0.0])
        shown = pmdp.inspect(built, data=pd.DataFrame({"x": [0.7], "y": [0.0]}), bounds={"x": (0, 1), "y": (-1, 1)})
        assert dict(shown.columns)["x"] == read_as


def test_inspect_finds_the_key_among_the_columns():
    """No ``pm.Data`` of its name is needed, as ``release`` needs none."""
    unit, visits = pmdp.Person("patient", at_most=3), rows(5).assign(patient=list("aabbb"))
    text = shown_of(visits, bounds=BOUNDS, unit=unit)
    assert "patient (whose a row is)" in text
    assert "protects: all rows of one patient" in text
    assert "Write frame.reset_index()." in refused(pmdp.inspect, model(), data=visits.set_index("patient"), bounds=BOUNDS, unit=unit)
    assert "no column called patient" in refused(pmdp.inspect, model(), data=rows(5), bounds=BOUNDS, unit=unit)
    assert "pm.Data('patient', ids)" in refused(pmdp.inspect, model(), bounds=BOUNDS, unit=unit)


def test_what_is_nearly_a_table_is_answered_by_what_to_write(tmp_path):
    rows(5).to_parquet(tmp_path / "records.parquet")
    nearly = {
        "Write frame.collect(), or the path": pl.from_pandas(rows(5)).lazy(),
        "Write dataset.files, or dataset.to_table().": pyarrow_dataset.dataset(tmp_path / "records.parquet"),
        'Write connection.table("records").': duckdb.connect(),
        "Write series.to_frame().": rows(5)["y"],
        "Write pandas.DataFrame(...) of it.": {"y": [1.0]},
        "Write reader.read_all().": pa.Table.from_pandas(rows(5)).to_reader(),
        "Write the path of the file.": parquet.ParquetFile(tmp_path / "records.parquet"),
        "Write tree.to_dataset().": xr.DataTree(xr.Dataset.from_dataframe(rows(5))),
        "Write array.to_dataset(name=...).": xr.DataArray([1.0], name="y"),
        "Write pandas.DataFrame(array, columns=[...]).": rows(5).to_numpy(),
        "or a DataFrame of dask or Spark. Write for example data=pandas.DataFrame(...)": [1, 2],
    }
    for said, data in nearly.items():
        assert said in refused(pmdp.inspect, model(), data=data)


def test_a_path_without_parquet_is_answered_by_what_to_write(tmp_path):
    (tmp_path / "records.csv").write_text("y\n1\n")
    (tmp_path / "records.dat").write_text("y")
    said = {
        "records": 'connection.table("records") for a table of DuckDB',
        "s3://bucket/records.parquet": "Only files of this machine are read",
        str(tmp_path / "*.parquet"): "There is no file of this pattern",
        str(tmp_path / "records.parquet"): "There is no file at this path. Write the path of one Parquet file.",
        str(tmp_path / "records.csv"): "Write the table that it holds, for example pandas.read_csv(path, dtype=...).",
        str(tmp_path / "records.dat"): "Write for example frame.to_parquet(path).",
    }
    for path, words in said.items():
        assert words in refused(pmdp.inspect, model(), data=path)


def test_all_columns_that_are_not_there_are_named(tmp_path):
    words = refused(pmdp.inspect, model(), data=rows(5).rename(columns={"site": "Site", "y": "Y"}))
    assert "data has no columns called site, y. Name every column as the observed variable" in words
    assert "data has no column called k." in refused(pmdp.inspect, model(), data=rows(5).drop(columns="k"))
    assert "several columns called k." in refused(pmdp.inspect, model(), data=pd.concat([rows(5), rows(5)[["k"]]], axis=1))


def of_pandas():
    """Columns of every type of pandas' own that takes another way without Arrow, and those that never needed it."""
    whole, real = [2**60 + 1, 0, -3, 2**53 + 1], [0.1, float("nan"), 1e300, -0.0]
    return {
        "int64": pd.Series(whole), "Int64": pd.Series([*whole[1:], None], dtype="Int64"),
        "UInt64": pd.Series([2**64 - 1, None], dtype="UInt64"), "float64": pd.Series(real), "Float64": pd.Series(real, dtype="Float64"),
        "Float32": pd.Series(real[:2], dtype="Float32"), "boolean": pd.Series([True, None, False], dtype="boolean"),
        "category": pd.Series([7, 3, None, 7], dtype="Int64").astype("category"),
        "object": pd.Series([1, "2", None, b"3", 0.5], dtype=object), "text": pd.Series(["1", "03", "x", None], dtype="string[python]"),
    }  # fmt: skip


def test_without_arrow_pandas_is_read_as_with_it(monkeypatch):
    """It is no dependency of the package. The numbers are the same, bit by bit, and so are the people."""
    columns = of_pandas()
    read = {name: (source._of_pandas(column).astype(float), names_in(column)) for name, column in columns.items()}
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as where it is not installed
    for name, column in columns.items():
        numbers, names = source._of_pandas(column), names_in(column)
        assert numbers.astype(float).tobytes() == read[name][0].tobytes(), name
        assert names.tobytes() == read[name][1].tobytes(), name
    assert pmdp.release(model(), data=rows(50).convert_dtypes(), epsilon=1, bounds=BOUNDS)["k"].n.tolist() == [50]


@pytest.mark.parametrize("table", [pl.from_pandas, stored_in_duckdb], ids=["polars", "DuckDB"])
def test_what_is_read_through_arrow_is_refused_without_it(monkeypatch, tmp_path, table):
    data = table(rows(5))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ledger = pmdp.Ledger(tmp_path / "survey.ledger", epsilon=1, create=True)
    with pytest.raises(pmdp.Refusal, match=r"not installed. Write pip install pymc_dp\[queries\]"):
        pmdp.release(model(), data=data, epsilon=1, bounds=BOUNDS, ledger=ledger)
    assert ledger.remaining().epsilon == 1


def test_inspect_says_what_stands_against_a_release_of_data():
    assert "x is public and has an entry" in shown_of(rows(5), public=["x"], bounds={"y": (-1, 1)})
    assert "not disjoint" in shown_of(rows(5), disjoint=["k", "y"])
    assert "y (a number, whose bounds are needed)" in shown_of(rows(5))
    assert "no records" in shown_of(rows(0), bounds=BOUNDS)
    assert "data must be" in refused(pmdp.inspect, model(), data=[1, 2])
    assert "no column called y" in refused(pmdp.inspect, model(), data=rows(5).drop(columns="y"))
    assert "take no data=" in refused(pmdp.inspect, model(), data=rows(5), mechanism=pmdp.Gibbs(sweeps=5), epsilon=1)


def said(data, neighbours="replace", n=2, **more):
    """All that a release says where the noise is nothing, and so its exact sums."""
    with seam_of(0):
        released = pmdp.release(model(n), epsilon=1, bounds=BOUNDS, neighbours=neighbours, data=data, **more)
    return contents(released)


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_files_of_one_table_are_that_table(tmp_path, neighbours):
    frame, expected = rows(60), said(rows(60), neighbours)
    (tmp_path / "deep").mkdir()
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet", tmp_path / "deep" / "c.parquet"]
    parts = [frame[40:], frame[:0], frame[:40].astype(str)]  # another type in another file moves nothing
    for path, part in zip(paths, parts, strict=True):
        part.to_parquet(path)
    for other in ("_SUCCESS.parquet", ".a.parquet", "a.csv"):
        (tmp_path / other).write_bytes(b"no table")
    for data in (paths, paths[::-1], tuple(map(str, paths)), tmp_path, f"{tmp_path}/**/[abc].parquet"):
        assert said(data, neighbours) == expected


def test_no_record_is_counted_twice(tmp_path):
    for name in ("a", "b"):
        rows(5).to_parquet(tmp_path / f"{name}.parquet")
    a, b = tmp_path / "a.parquet", tmp_path / "b.parquet"
    (tmp_path / "link.parquet").symlink_to(a)
    (tmp_path / "hard.parquet").hardlink_to(b)
    for data in ([a, a], [a, tmp_path / "link.parquet"], [tmp_path / "hard.parquet", b], tmp_path, str(tmp_path / "*.parquet")):
        assert "given twice" in refused(pmdp.release, model(), epsilon=1, bounds=BOUNDS, data=data)


def test_what_is_no_table_in_files_is_refused(tmp_path):
    def words(data):
        return refused(pmdp.release, model(), epsilon=1, bounds=BOUNDS, data=data)

    rows(5).to_parquet(tmp_path / "a.parquet")
    rows(5).drop(columns="y").to_parquet(tmp_path / "b.parquet")
    (tmp_path / "empty").mkdir()
    (tmp_path / "c.txt").write_text("no table")
    assert "no column called y" in words(tmp_path)
    assert "no file called" in words(tmp_path / "empty")
    assert "no Parquet file" in words([tmp_path / "a.parquet", tmp_path / "c.txt"])
    assert "There is no file" in words([tmp_path / "a.parquet", tmp_path / "d.parquet"])
    assert "There is no file" in words(str(tmp_path / "d*.parquet"))
    assert "There is no file" in words([])
    assert "data must be" in words([tmp_path / "a.parquet", rows(5)])


TEXTS = ["?", "inf", "1_000", "True", " fAlse", "1e400", "-1e-400", "0.1e00001", "0x1", "", "1e99", " 1.5 ", "nan", "9" * 101, "\u0661"]
TEXTS += ["-.5e-3", "1e-99", "0.10000000000000000555111512312"]


def test_a_table_of_a_database_is_that_table():
    frame = rows(60)
    with duckdb.connect() as connection:
        connection.register("frame", frame)
        connection.execute("CREATE TABLE plain AS SELECT * FROM frame")
        connection.execute(
            "CREATE TABLE typed AS SELECT CAST(x AS VARCHAR) AS x, CAST(site AS HUGEINT) AS site, y, CAST(k AS BOOLEAN) AS k FROM frame"
        )
        for neighbours in ("replace", "add_remove"):
            expected = said(frame, neighbours)
            assert said(connection.table("plain"), neighbours) == said(connection.table("typed"), neighbours) == expected
        assert "A view or a query" in refused(pmdp.release, model(), epsilon=1, bounds=BOUNDS, data=connection.sql("SELECT * FROM plain"))


def test_every_source_reads_a_value_alike():
    """Text is the number that it spells in full, or missing; a number of any type is the nearest double."""
    texts = pd.DataFrame({"x": TEXTS})
    whole = [2**53 + 1, -(2**63), 2**63 - 1, 0]
    listed = ", ".join(map(str, whole))
    sources = {"text": [texts, pl.from_pandas(texts), pa.Table.from_pandas(texts)], "number": [pd.DataFrame({"x": whole})]}
    with duckdb.connect() as connection:
        connection.register("texts", texts)
        connection.execute("CREATE TABLE a AS SELECT x FROM texts")
        connection.execute(f"CREATE TABLE b AS SELECT unnest([{listed}])::HUGEINT AS x")
        sources["text"].append(connection.table("a"))
        sources["number"] += [connection.table("b"), pd.DataFrame({"x": whole}, dtype=object)]
        for several in sources.values():
            read = [np.concatenate([block["x"] for block in source.Source.of(data, ["x"]).blocks()]) for data in several]
            for other in read[1:]:
                np.testing.assert_array_equal(read[0], other)
    assert np.isnan(read[0]).sum() == 0


ODD = [*TEXTS, 10**400, -(10**400), Decimal("0.1"), Decimal("NaN"), b"1.5", complex(2, 0), complex(2, 1), True]
ODD += [np.float32(0.1), pd.NA, [1.0], None]


def test_the_model_reads_a_value_as_data_does():
    values = np.empty(len(ODD), dtype=object)
    values[:] = ODD
    ends = Domain(-1e6, 1e6, fill=7.0)
    [block] = source.Source.of(pd.DataFrame({"x": values}), ["x"]).blocks()
    np.testing.assert_array_equal(complete(values, ends), complete(block["x"], ends))
    assert complete(values, ends)[1:3].tolist() == [1e6, 7.0]
    assert abs(complete(values, ends)[len(TEXTS) :][:2]).tolist() == [1e6, 1e6]


def test_a_file_that_breaks_midway_is_paid_for_and_says_nothing(tmp_path):
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=3, create=True)
    caught = []
    for seed in (1, 2):
        path = tmp_path / f"{seed}.parquet"
        rows(3000, seed).to_parquet(path, row_group_size=500)
        start = parquet.read_metadata(path).row_group(3).column(0).data_page_offset
        with path.open("r+b") as file:
            file.seek(start)
            file.write(b"\xff" * 400)
        with pytest.raises(PrivateComputationError) as error:
            pmdp.release(model(), epsilon=1, bounds=BOUNDS, data=path, ledger=ledger)
        caught.append((str(error.value), error.value.__cause__, error.value.__context__, getattr(error.value, "__notes__", None)))
    assert caught == [(FAILED, None, None, None)] * 2
    assert ledger.remaining().epsilon == 1


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_arrays_with_names_are_a_table(tmp_path, monkeypatch, neighbours):
    frame, expected = rows(60), said(rows(60), neighbours)
    dataset = xr.Dataset({name: ("record", frame[name]) for name in frame}, coords={"matrix": (("record", "two"), np.zeros((60, 2)))})
    dataset.to_netcdf(tmp_path / "records.nc", engine="h5netcdf")
    dataset.to_zarr(tmp_path / "records.zarr")
    monkeypatch.setattr(source, "NUMBERS_AT_ONCE", 52)
    texts = dataset.assign(x=("record", frame["x"].map(repr).to_numpy(dtype=object))).set_coords("k").set_index(record="site")
    texts = texts.assign_coords(site=("record", frame["site"]))
    with xr.open_dataset(tmp_path / "records.nc", engine="h5netcdf") as one, xr.open_zarr(tmp_path / "records.zarr", chunks=None) as other:
        for data in (dataset, dataset.isel(record=slice(None, None, -1)), texts, one, other):
            assert said(data, neighbours) == expected


class Computed(np.lib.mixins.NDArrayOperatorsMixin):
    """An array whose values are made when they are asked for, as those of dask are."""

    shape, dtype, ndim = (5,), np.dtype(float), 1

    def __array_function__(self, *_):
        raise AssertionError("read")

    __array_ufunc__ = __array__ = __getitem__ = __array_function__


def test_arrays_that_could_fail_because_of_one_record_are_refused():
    def words(**changed):
        frame = rows(5)
        dataset = xr.Dataset({name: ("record", frame[name]) for name in frame} | changed)
        return refused(pmdp.release, model(), epsilon=1, bounds=BOUNDS, data=dataset)

    assert "y is computed when it is read" in words(y=("record", Computed()))
    assert "must have one dim" in words(y=("other", np.zeros(5)))
    assert "must have one dim" in words(y=(("record", "two"), np.zeros((5, 2))))


FLIGHTS = Path(os.environ.get("PYMC_DP_DATA", ".")) / "nycflights13" / "flights.parquet"


@pytest.mark.slow
@pytest.mark.skipif(not FLIGHTS.exists(), reason="needs PYMC_DP_DATA with nycflights13")
def test_flights_are_the_same_from_every_source(tmp_path):
    """Delays in hours of 336,776 flights, of which 9,430 have none; ``python benchmarks/sources.py 0`` has all sources."""
    flights = pd.read_parquet(FLIGHTS)
    late, airport = flights["arr_delay"], flights["origin"].astype("category").cat.codes.astype(int)
    columns = {"x": flights["dep_delay"].astype(float) / 60, "site": airport, "y": late.astype(float) / 60, "k": (late > 15).astype(int)}
    frame = pd.DataFrame(columns)
    shuffled = frame.sample(frac=1, random_state=1)
    for part in range(3):
        shuffled[part::3].to_parquet(tmp_path / f"{part}.parquet")
    dataset = xr.Dataset({name: ("record", frame[name].to_numpy()) for name in frame})
    expected = said(frame, missing=["y"])
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE stored AS FROM '{tmp_path}/*.parquet'")
        for data in (shuffled, pl.from_pandas(frame), pa.Table.from_pandas(shuffled), tmp_path, connection.table("stored"), dataset):
            assert said(data, missing=["y"]) == expected
    odd = frame.assign(k=frame["k"].where(frame.index != 5, 1 - frame["k"]))
    assert said(odd, missing=["y"]) != expected
