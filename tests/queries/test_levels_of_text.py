"""Text in sessions: one odd record decides whether those who read a file make numbers, dates or text of its column, and moves no other."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from checks import mostly_slow, refused
from pyarrow import csv

from pymc_dp.families.values import number_in
from pymc_dp.queries.language import question
from pymc_dp.queries.schema import Brackets, Schema
from pymc_dp.queries.table import Table

CONNECTION = duckdb.connect()
ODD = ["zz", "1", "", "2.5", "2020-01-05"]
"""What one more record may hold."""


def by_duckdb(path):
    """What DuckDB makes of a file by itself, or, where it cannot read the file in the type that it has guessed, as text."""
    reading = f"CREATE OR REPLACE TABLE records AS FROM read_csv('{path}', sample_size=-1, header=true, delim=',', all_varchar={{}})"
    try:
        CONNECTION.execute(reading.format(False))
    except duckdb.ConversionException:
        CONNECTION.execute(reading.format(True))
    return CONNECTION.table("records")


READERS = {
    "pandas": pd.read_csv,
    "polars": lambda path: pl.read_csv(path, infer_schema_length=None),
    "polars, dates": lambda path: pl.read_csv(path, infer_schema_length=None, try_parse_dates=True),
    "Arrow": lambda path: csv.read_csv(path),
    "DuckDB": by_duckdb,
}
NUMBERS = {"a": range(0, 40)}, ["a == 1", "a == 0", "a == 31"]
EDGES = {"a": Brackets([-0.25, 0.25, 0.75, 1.25, 40])}, ["a < 0.25", "a >= 0.75 & a < 1.25", "a >= 1.25"]
TRUTHS = {"a": [False, True]}, ["a == true", "a == false"]
FILES = {
    "codes": (["01234", "01234", "02134"], [{"a": ["01234", "02134", "unknown"]}]),
    "decimals": (["1.0", "2.0", "1.0"], [{"a": ["1", "2", "unknown"]}, NUMBERS]),
    "halves": (["0.5", "0.50", "1.5"], [{"a": ["0.5", "1.5"]}, EDGES]),
    "answers": (["yes", "no", "yes"], [{"a": ["yes", "no"]}, NUMBERS, TRUTHS]),
    "sexes": (["f", "f", "f"], [{"a": ["f", "m"]}]),
    "truths": (["tRUE", "tRUE", "fALSE"], [{"a": ["true", "false"]}, NUMBERS, TRUTHS]),
    "sixteens": (["0x1F", "0x1F", "0x1"], [{"a": ["31", "1"]}, NUMBERS, EDGES]),
    "bits": (["0b1", "0b1", "0b0"], [{"a": ["1", "0"]}, NUMBERS]),
    "exponents": (["1e000", "1e000", "0e100"], [NUMBERS, EDGES]),
    "small": (["1e-400", "1e-400", "0"], [NUMBERS, EDGES]),
    "tabs": (["\t1", "\t1", "0"], [NUMBERS]),
    "words": (["none at all", "low", "low"], [{"a": ["none at all", "low"]}]),
}


CASES = [(records, reader) for reader in READERS for records in FILES]
QUICK = [("codes", "pandas"), ("exponents", "polars"), ("sixteens", "Arrow"), ("answers", "DuckDB"), ("sexes", "DuckDB")]


@pytest.mark.parametrize(("records", "reader"), mostly_slow(CASES, *map(CASES.index, QUICK)))
def test_one_record_of_a_file_of_text_moves_no_other(records, reader, tmp_path):
    texts, schemas = FILES[records]
    tables = []
    for k, odd in enumerate([*ODD, *texts]):
        path = tmp_path / f"{k}.csv"
        path.write_text("a\n" + "".join(f"{text}\n" for text in [*texts * 3, odd]))
        tables.append(READERS[reader](path) if reader != "DuckDB" else path)
    for levels in schemas:
        written, texts_asked = levels if isinstance(levels, tuple) else (levels, [f"a == '{level}'" for level in levels["a"]])
        schema = Schema.of(written)
        asked = [question(text, schema) for text in texts_asked]
        found = np.array([Table.of(by_duckdb(t) if reader == "DuckDB" else t, schema).totals(asked) for t in tables])
        assert found.sum(axis=1).max() > 1, "somebody is counted, or this could not fail"
        assert np.abs(found[:, None] - found[None]).sum(axis=-1).max() <= 2, found.tolist()


@pytest.mark.parametrize("stored", ["numbers", "bytes", "objects", "categories"])
def test_text_and_numbers_are_the_same_level(stored):
    """A code is its number in whatever type it stands."""
    schema = Schema.of({"a": ["007", "12", "unknown"]})
    a = {
        "numbers": pa.array([7, 12, 3]),
        "bytes": pa.array([b"07", b"12.0", b"x"]),
        "objects": pd.Series([7.0, "1.2e1", None], dtype=object),
        "categories": pd.Series(["0007", "12", "x"]).astype("category"),
    }[stored]
    table = pa.table({"a": a}) if isinstance(a, pa.Array) else pd.DataFrame({"a": a})
    assert Table.of(table, schema).totals([question(f"a == '{level}'", schema) for level in ("007", "12", "unknown")]) == [1, 1, 0]


SPELLED = [
    *["1e-999", "-1e-999", "0" * 90 + "1e-0", "0x" + "0" * 90 + "7", "0X1f", "0B1", "0x8000000000000000", " \t+.5E+01 \t", "1e99999"],
    *["-inf", "Infinity", "1.", "1_0", "1\n", "fal\u017fe", "\\x091", "0x", "--1", "1e", "٣", "9" * 100, "9" * 101, "Yes", "nO"],
]  # fmt: skip


def test_a_database_reads_text_as_files_are_read():
    """The same by SQL as value by value."""
    schema = Schema.of({"k": range(len(SPELLED)), "a": Brackets([-1e18, -1, -1e-300, 1e-300, 0.5, 1.5, 9, 40, 1e120])})
    asked = [
        question(f"k == {k} & {bins}", schema) for k in range(len(SPELLED)) for bins in ("a < 0.5", "a < 1.5", "a < 9", "a < 40", "a >= 40")
    ]
    several = SPELLED, pa.array(list(map(number_in, SPELLED)), pa.float64())
    by_text, by_number = (Table.of(pa.table({"k": range(len(SPELLED)), "a": values}), schema).totals(asked) for values in several)
    assert by_text == by_number
    assert 20 < sum(by_number) < len(asked)


@pytest.mark.parametrize("levels", [
    ["2020-01-05", "2020-01-06"], ["10:00", "11:00"], ["NA", "some"], ["inf", "0"], ["1,000", "2"], ["01", "1"], ["yes", "true"],
    ["f", "0"], ["nan ", "x"], ["$5", "$6"],
])  # fmt: skip
def test_levels_that_a_record_could_turn_into_others_are_refused(levels):
    schema = Schema.of({"a": levels})
    words = refused(Table.of, pd.DataFrame({"a": levels}), schema)
    assert words is not None
    assert "to those who read files" in words
