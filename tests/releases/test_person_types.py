"""Whose a row is rests on that row alone, though one odd name can change the type of the whole column that holds it."""

import io
from uuid import UUID

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from checks import refused, seam_of

import pymc_dp as pmdp
from pymc_dp.plans.person import Person
from pymc_dp.releases.persons import names_of
from pymc_dp.releases.source import WHOSE, Source

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")
csv = pytest.importorskip("pyarrow.csv")
parquet = pytest.importorskip("pyarrow.parquet")

pytestmark = pytest.mark.filterwarnings("ignore")


def in_table(table):
    blocks = Source.of(table, ("y",), (), "who").blocks()
    return np.concatenate([block[WHOSE] for block in blocks])


def in_unit(unit):
    return names_of(unit.key, declared=unit.declared)


def text_file(names):
    return ("who,y\n" + "".join(f"{'' if name is None else name},0\n" for name in names)).encode()


DATABASE = duckdb.connect()


def stored(table):
    """A table of a database."""
    DATABASE.execute("DROP TABLE IF EXISTS records")
    DATABASE.from_arrow(table).create("records")
    return DATABASE.table("records")


def arrow(names):
    return pa.table({"who": names, "y": [0] * len(names)})


HOLDERS = {
    "array": lambda names: Person(np.array(names), 1, name="patient"),
    "list": lambda names: Person(names, 1, name="patient"),
    "series": lambda names: Person(pd.Series(names), 1, name="patient"),
    "categories": lambda names: Person(pd.Series(names).astype("category"), 1, name="patient"),
    "pandas": lambda names: pd.DataFrame({"who": names, "y": 0}),
    "pandas, categories": lambda names: pd.DataFrame({"who": pd.Series(names).astype("category"), "y": 0}),
    "pandas, CSV": lambda names: pd.read_csv(io.BytesIO(text_file(names))),
    "Dataset": lambda names: xr.Dataset({"who": ("row", np.array(names)), "y": ("row", np.zeros(len(names)))}),
    "polars": lambda names: pl.DataFrame({"who": names, "y": [0] * len(names)}, strict=False),
    "polars, CSV": lambda names: pl.read_csv(text_file(names), infer_schema_length=None),
    "Arrow": arrow,
    "Arrow, CSV": lambda names: csv.read_csv(io.BytesIO(text_file(names))),
    "DuckDB": lambda names: stored(arrow(names)),
}
LARGE = [2**53 + 1, 2**60 + 1, 2**62 + 3]
OTHERS = {
    "whole": [3, 7, 12],
    "padded": ["007", "012", "099"],
    "texts": ["a", "b", "c"],
    "doubles": [1.5, 2.0, float("nan")],
    "far doubles": [1e22, 2.0**60, 5.0],
    "truths": [True, False, True],
    "bytes": [b"a", b"b", b"3"],
    "sixteens": ["0x1F", "0x7ffffffffffffff0", "0xa0"],
    "exponents": ["3E12", "4e5", "1.5e-3"],
    "one number": ["1e3", "1000", "10.0E+2"],
    "far exponents": ["1E400", "5e30", "1e-400"],
    "infinite": ["Infinity", "-inf", "7.5"],
    "missing in files": ["3", "", "NA"],
    "nothing in files": ["n/a", "NULL", "-NaN"],
    "truths in any case": ["tRue", "FALSE", "true"],
}
"""What three other people are called. "padded" and "exponents" are numbers to those who read a file of text, unless there is a word among
them, and "sixteens" are to Arrow."""
ODD = [5_000, None, "zz", 2.25, float("nan"), 2**60 + 7, 2**64 - 5, b"zz", 1j, np.longdouble(1.5), "q" * 5_000, "9" * 30, "0055"]
"""What one more person is called."""


@pytest.mark.parametrize("others", [*OTHERS, "large"])
@pytest.mark.parametrize("holder", HOLDERS)
def test_an_odd_name_takes_nobody_s_name(holder, others):
    """Names are not read otherwise because of another. What a holder does not hold it refuses itself, before there is a table."""
    if others == "large" and not holder.startswith(("array", "series", "categories", "pandas", "Dataset")):
        pytest.skip("types that hold a missing whole number are declared")
    seen = {}
    for odd in ODD:
        try:
            held = HOLDERS[holder]([*OTHERS.get(others, LARGE), odd])
        except pmdp.Refusal:
            raise
        except Exception:
            continue
        seen[repr(odd)] = (in_unit(held) if isinstance(held, Person) else in_table(held))[:3].tolist()
    assert seen
    assert len(set(map(repr, seen.values()))) == 1, seen


def test_large_whole_numbers_are_names_where_the_type_holds_them():
    """Where a missing one is missing, and no double, they are; in NumPy's types nobody is left out for the others' names."""
    everyone = np.unique(names_of(np.array(LARGE, dtype=object)), axis=0)
    frame = pd.DataFrame({"who": LARGE, "y": 0})
    for table in (
        frame.astype({"who": "Int64"}),
        frame.astype({"who": "string"}),
        frame.astype({"who": pd.ArrowDtype(pa.int64())}),
        frame.astype({"who": "Int64"}).astype({"who": "category"}),
        pl.from_pandas(frame),
        arrow(LARGE),
        arrow([*map(str, LARGE)]),
    ):
        np.testing.assert_array_equal(np.unique(in_table(table), axis=0), everyone)
    np.testing.assert_array_equal(np.unique(in_table(stored(arrow(LARGE))), axis=0), everyone)
    for entries in (LARGE, frame["who"].astype("Int64"), pl.Series(LARGE), pa.array(LARGE), np.ma.array(LARGE)):
        np.testing.assert_array_equal(np.unique(in_unit(Person(entries, 1, name="patient")), axis=0), everyone)
    for names in (LARGE, [float(name) for name in LARGE], [*LARGE, None], [str(name) for name in LARGE], [*LARGE, "a"]):
        assert not in_table(pd.DataFrame({"who": names, "y": 0}))[:3].any()


def test_a_column_whose_names_are_all_missing_is_a_column(tmp_path):
    """Arrow gives it a type of its own, so that a person who is the only one with a name shows by a refusal."""
    alone, nobody = (pa.Table.from_pandas(pd.DataFrame({"who": [name, None, None], "y": 0})) for name in ("a", None))
    levels = pa.Table.from_pandas(pd.DataFrame({"who": pd.Categorical([None, None]), "y": 0}))
    assert (alone.schema.field("who").type, nobody.schema.field("who").type) == (pa.large_string(), pa.null())
    for table, named in ((alone, 1), (nobody, 0), (levels, 0)):
        parquet.write_table(table, tmp_path / "records.parquet")
        for data in (table, tmp_path / "records.parquet"):
            assert in_table(data).any(axis=1).sum() == named


def sums(frame, **more):
    """The exact sums of the shares of two variables."""
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=[0, 0])
    with seam_of(0):
        released = pmdp.release(model, epsilon=1, data=frame, missing={}, **more)
    return released["y"].noisy.ravel()


@pytest.mark.parametrize("odd", ["A77", ""], ids=["a word", "missing"])
def test_one_person_of_a_text_file_moves_the_sums_by_what_is_paid_for(odd):
    """300 people with padded numbers have three rows each, of which one counts: one who comes moves the sums by one row."""
    rng = np.random.default_rng(1)
    lines = [f"{name:05d},{rng.integers(2)}" for name in range(300) for _ in range(3)]
    frames = [pd.read_csv(io.StringIO("\n".join(["who,y", *more, *lines]))) for more in ([], [f"{odd},1"])]
    first, second = (sums(frame, unit=Person("who", 1), neighbours="add_remove") for frame in frames)
    assert first.sum() == 300
    assert np.abs(first - second).sum() == (odd != "")


def test_one_name_that_is_missing_in_an_array_moves_nobody_s_rows():
    """100 people with large numbers have two rows each, one of which counts. A row of nobody makes doubles of the numbers."""
    names, values = np.repeat(2**60 + np.arange(100), 2), np.tile([0, 1], 100)
    exact = []
    for who, y in ((names, values), (np.append(names, np.nan), np.append(values, 1))):
        with pm.Model() as model:
            pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=y)
        with seam_of(0):
            unit = Person(who, 1, name="patient")
            exact.append(pmdp.release(model, epsilon=1, missing={}, unit=unit, neighbours="add_remove")["y"].noisy.ravel())
    np.testing.assert_array_equal(*exact)


@pytest.mark.parametrize("held", ["NumPy", "Arrow", "polars", "DuckDB"])
def test_one_value_of_bytes_moves_one_record(held):
    """Where a value is bytes NumPy makes bytes of all numbers, and others of all texts, and with them all numbers that are spelled."""
    moved = []
    for odd in ("?", b"?"):
        values = [1 if held == "NumPy" else "1"] * 50 + [odd]
        if held == "NumPy":
            moved.append(sums(xr.Dataset({"y": ("row", np.array(values))}), neighbours="add_remove"))
        elif held == "polars":
            moved.append(sums(pl.DataFrame({"y": values}, strict=False), neighbours="add_remove"))
        elif held == "Arrow":
            moved.append(sums(pa.table({"y": values}), neighbours="add_remove"))
        else:
            moved.append(sums(stored(pa.table({"y": values})), neighbours="add_remove"))
    np.testing.assert_array_equal(*moved)
    assert moved[0][1] == 50


def test_one_value_of_bytes_moves_one_record_of_a_session():
    for make in (pa.table, lambda columns: pl.DataFrame(columns, strict=False)):
        session = [pmdp.QuerySession(make({"k": ["1", "2", "2", odd]}), {"k": [1, 2]}, neighbours="replace") for odd in ("x", b"x")]
        with seam_of(0):
            answers = [repr(each.ask("k == 2", epsilon=1.0)) for each in session]
        assert answers[0] == answers[1]


@pytest.mark.parametrize("far", [5, 2**62])
def test_dates_in_a_file_are_not_read(tmp_path, far):
    """Where one is too far away to be a date, to read it fails, and a release would fail because of one record."""
    days = np.arange(10, dtype=np.int64)
    days[5] = far
    dataset = xr.Dataset({"who": ("row", days, {"units": "days since 2000-01-01"}), "y": ("row", days % 2)})
    dataset.to_netcdf(tmp_path / "records.nc")
    with xr.open_dataset(tmp_path / "records.nc") as opened:
        words = refused(sums, opened, unit=Person("who", 1), neighbours="add_remove")
    assert words.startswith("who is in a file and holds no numbers")


def test_a_uuid_names_whom_its_text_names(tmp_path):
    """In Python, Arrow, DuckDB and files; one that was damaged in memory names nobody, and stops nothing."""
    several = [UUID(int=10**30 * k + 7) for k in (5, 3, 5)]
    text = [str(name) for name in several]
    expected = np.vstack([names_of(np.array(text, dtype=object)), np.zeros((1, 2), dtype=np.uint64)])
    table = arrow(pa.array([*(name.bytes for name in several), None], pa.uuid()))
    parquet.write_table(table, tmp_path / "arrow.parquet")
    database = duckdb.connect()
    database.from_arrow(arrow([*text, None])).project("who::UUID AS who, y").create("records")
    database.table("records").write_parquet(str(tmp_path / "duckdb.parquet"))
    objects = pd.Series([*several, None], dtype=object)
    frames = pd.DataFrame({"who": objects, "y": 0}), pd.DataFrame({"who": objects.astype(pd.ArrowDtype(pa.uuid())), "y": 0})
    files = tmp_path / "arrow.parquet", tmp_path / "duckdb.parquet"
    held = pl.DataFrame({"who": pl.Series([*several, None], dtype=pl.Object), "y": [0] * 4})
    for data in (table, *files, database.table("records"), *frames, held):
        np.testing.assert_array_equal(in_table(data), expected)
    np.testing.assert_array_equal(in_unit(Person([*several, None], 1, name="patient")), expected)
    damaged = object.__new__(UUID)
    for number in (None, "7", -1, 2**128, 7.0):
        if number is not None:
            object.__setattr__(damaged, "int", number)
        assert not in_unit(Person([damaged, several[0]], 1, name="patient"))[0].any()


def test_uuids_that_stand_as_bytes_are_told_to_be_read_as_such():
    table = arrow(pa.array([UUID(int=k).bytes for k in (1, 2, 1)], pa.binary(16)))
    assert "column.cast(pyarrow.binary())" in refused(in_table, table)
    whose = in_table(table.set_column(0, "who", table.column("who").cast(pa.binary())))
    assert (whose[0] == whose[2]).all()
    assert (whose[0] != whose[1]).any()
    values = table.set_column(1, "y", pa.array([UUID(int=k).bytes for k in (1, 2, 1)], pa.uuid())).drop_columns("who")
    assert all(np.isnan(block["y"]).all() for block in Source.of(values, ("y",), (), None).blocks())  # a UUID is no level


@pytest.mark.parametrize("rows", [3, np.int64(3), np.uint8(3)])
def test_how_many_rows_count_may_be_a_number_of_numpy(rows):
    assert repr(Person("who", at_most=rows)) == "Person('who', at_most=3)"
    assert "Person needs" in refused(Person, "who", at_most=np.float64(3))
    assert "Person needs" in refused(Person, "who", at_most=np.int64(0))
