"""Rows that a DuckDB database has counted: the sums are those of rows that are read one by one, whatever is in them."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from checks import contents, seam_of

import pymc_dp as pmdp
from pymc_dp.releases import headers, source

duckdb = pytest.importorskip("duckdb")

pytestmark = pytest.mark.filterwarnings("ignore")

BOUNDS = {"count": (0, 12), "size": (-4, 9)}
TYPES = {"kind": "UTINYINT", "event": "BOOLEAN", "trial": "BIGINT", "count": "HUGEINT", "level": "UBIGINT", "size": "SMALLINT"}
ODD = {
    "kind": [None, 3, 255], "event": [None], "trial": [None, 6, -1, 2**53 + 1, -(2**63)], "count": [None, -5, 2**53 + 1, 2**63 - 1],
    "level": [None, 4, 2**64 - 1], "size": [None, -32768, 32767],
}  # fmt: skip
"""Values that are missing, or beyond what the model knows."""


def model():
    nothing = np.zeros(2, dtype=int)
    with pm.Model() as built:
        kind = pm.Data("kind", nothing)
        pm.Bernoulli("event", pm.Beta("p", 1, 1, shape=3)[kind], observed=nothing)
        pm.Binomial("trial", 5, pm.Beta("q", 1, 1), observed=nothing)
        pm.Poisson("count", pm.Gamma("rate", 1, 1, shape=3)[kind], observed=nothing)
        pm.Categorical("level", pm.Dirichlet("shares", np.ones(4)), observed=nothing)
        pm.Normal("size", pm.Normal("mu"), pm.HalfNormal("sd"), observed=nothing)
    return built


def said(data, neighbours="replace", **more):
    with seam_of(0):
        released = pmdp.release(
            model(), epsilon=1, bounds=BOUNDS, neighbours=neighbours, data=data, missing=dict.fromkeys(BOUNDS, "left out"), **more
        )
    return contents(released)


def rows(seed, many=400, farthest=20):
    """A table of few distinct rows, half of which hold something odd, though nothing farther from 0 than this."""
    rng = np.random.default_rng(seed)
    few = [[rng.integers(0, 2), *rng.integers(0, 3, 5)] for _ in range(30)]
    names = ["event", "kind", "trial", "count", "level", "size"]
    for row in few[:15]:
        column = int(rng.integers(6))
        odd = [value for value in ODD[names[column]] if value is None or abs(value) < farthest]
        row[column] = odd[rng.integers(len(odd))]
    chosen = [few[k] for k in rng.integers(0, 30, many)]
    return pd.DataFrame([[None if value is None else int(value) for value in row] for row in chosen], columns=names, dtype=object)


@pytest.fixture
def connection():
    with duckdb.connect() as opened:
        opened.execute("SET enable_progress_bar = false")
        yield opened


@pytest.fixture
def read(monkeypatch):
    """How often the rows of a table were read one by one."""
    times, blocks = [], source.Source.blocks
    monkeypatch.setattr(source.Source, "blocks", lambda self: times.append(1) or blocks(self))
    return times


def stored(connection, frame, types, name="records"):
    connection.execute(f"CREATE OR REPLACE TABLE {name} ({', '.join(f'{column} {kind}' for column, kind in types.items())})")
    ordered = frame[list(types)]
    whole = [
        [None if value is None else bool(value) if types[column] == "BOOLEAN" else value for column, value in zip(types, row)]
        for row in ordered.values
    ]
    for row in whole:
        connection.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(types))})", row)
    return connection.table(name)


WHOLE = TYPES | {"count": "BIGINT"}


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("seed", range(3))
def test_counted_rows_have_the_sums_of_rows_that_are_read(connection, read, seed, neighbours):
    frame = rows(seed)
    table = stored(connection, frame, WHOLE)
    counted = said(table, neighbours)
    assert read == []
    assert counted == said(frame, neighbours) == said(stored(connection, frame[::-1], TYPES, "long"), neighbours)
    assert read == [1, 1], "a table of HUGEINT is read row by row"


@pytest.mark.parametrize("seed", [4, 5])
def test_values_that_lie_far_apart_are_read_one_by_one(connection, read, seed):
    """One record can make them lie so, and the sums are the same: as many groups as there could be would not fit into memory."""
    frame = rows(seed)
    frame.loc[7, "count"] = 2**62
    assert said(stored(connection, frame, WHOLE)) == said(frame)
    assert read == [1, 1]
    odd = rows(seed, farthest=2**65)
    assert said(stored(connection, odd, WHOLE)) == said(odd)


def test_a_database_that_shows_a_bar_counts_nothing(connection, read):
    frame = rows(5)
    table = stored(connection, frame, WHOLE)
    said(table)
    assert read == []
    connection.execute("SET enable_progress_bar = true")
    assert said(table) == said(frame)
    assert read == [1, 1]


def test_a_file_of_questions_does_not_say_how_far_apart_values_lie(connection, tmp_path):
    """Of two tables that differ in one record, DuckDB could count one and not the other, and ``log_query_path`` keeps what it was asked."""
    told = []
    for kind, far in (("near", 12), ("far", 2**40)):
        frame = rows(5)
        frame.loc[7, "count"] = far
        table = stored(connection, frame, WHOLE)
        connection.execute(f"SET log_query_path = '{tmp_path / kind}'")
        said(table)
        connection.execute("SET log_query_path = ''")
        told.append((tmp_path / kind).read_text().replace(kind, ""))
    assert "CAST" in told[0]
    assert told[0] == told[1]


@pytest.mark.parametrize("computed", ["nextval('place') % 2", "CAST(count * getvariable('times') AS TINYINT)"])
def test_columns_that_are_computed_anew_are_refused(connection, tmp_path, computed):
    """With a place among the rows one record moves what all that follow bring; and what fails for some value tells that it is there."""
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=1, create=True)
    frame = rows(1)
    stored(connection, frame, WHOLE, "plain")
    connection.execute("CREATE SEQUENCE place")
    connection.execute("SET VARIABLE times = 1")
    columns = ", ".join(f"{name} {kind}" for name, kind in WHOLE.items() if name != "trial")
    connection.execute(f"CREATE TABLE records ({columns}, trial INTEGER GENERATED ALWAYS AS ({computed}))")
    connection.execute("INSERT INTO records SELECT * EXCLUDE trial FROM plain")
    connection.execute("SET VARIABLE times = 20")
    with pytest.raises(pmdp.Refusal, match="generated columns"):
        said(connection.table("records"), ledger=ledger)
    connection.execute("DROP TABLE records")
    said(connection.table("plain"), ledger=ledger)


def test_a_database_of_a_kind_that_is_not_known_is_refused(connection, tmp_path, monkeypatch):
    """Which kinds are attached is looked at; for this test DuckDB's own is taken for another."""
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=1, create=True)
    table = stored(connection, rows(1), WHOLE)
    monkeypatch.setattr(headers, "KIND_OF_DATABASE", "another")
    with pytest.raises(pmdp.Refusal, match="of another kind is attached"):
        said(table, ledger=ledger)
    monkeypatch.undo()
    connection.execute(f"ATTACH '{tmp_path / 'other.db'}' AS other")
    connection.execute("CREATE TABLE other.main.records AS FROM records")
    assert said(connection.table("other.main.records"), ledger=ledger) == said(rows(1))


@pytest.mark.parametrize("odd", ["text", 2.5, None])
def test_attached_tables_of_sqlite_are_refused_whatever_is_in_them(connection, tmp_path, odd):
    """A column of whole numbers of SQLite holds anything, and DuckDB fails where it meets a text. This needs DuckDB's extension for it."""
    connection.execute("SET autoinstall_known_extensions = false")
    try:
        connection.execute("LOAD sqlite")
    except duckdb.Error:
        pytest.skip("DuckDB has no extension for SQLite here")
    with sqlite3.connect(tmp_path / "records.db") as other:
        other.execute(f"CREATE TABLE records ({', '.join(f'{name} INTEGER' for name in WHOLE)})")
        other.executemany(f"INSERT INTO records VALUES ({', '.join('?' * len(WHOLE))})", [[0] * 6, [odd] * 6])
    connection.execute(f"ATTACH '{tmp_path / 'records.db'}' AS other (TYPE sqlite)")
    with pytest.raises(pmdp.Refusal, match="of another kind is attached"):
        said(connection.table("other.records"), "add_remove")


@pytest.mark.parametrize(
    "hidden", [["MACRO duckdb_functions() AS TABLE SELECT true AS internal"], ["MACRO count(a) AS 0", "MACRO count_star() AS 0"]]
)
def test_no_macro_hides_itself(connection, hidden):
    table = stored(connection, rows(1), WHOLE)
    for macro in hidden:
        connection.execute(f"CREATE {macro}")
    with pytest.raises(pmdp.Refusal, match="macros of its own"):
        said(table)


TIGHT = {
    "little": ("SET threads = 4", "SET memory_limit = '8MB'"),
    "many threads": ("SET threads = 32", "SET memory_limit = '64MB'"),
    "taken": ("SET threads = 2", "CREATE TEMP TABLE large AS SELECT hash(i) FROM range(10000000) t(i)", "SET memory_limit = '90MB'"),
}


@pytest.mark.parametrize("case", TIGHT)
def test_what_a_release_does_without_memory_rests_on_no_record(tmp_path, case, read):
    """Counting takes memory, so it could fail, or write to a disk, where one record more that lies far from the others has rows read."""
    with pm.Model() as built:
        for name in ("x", "y"):
            pm.Normal(name, pm.Normal(f"mu_{name}"), 1.0, observed=np.zeros(2, dtype=int))
    for far in (0, 2**30):
        file = str(tmp_path / f"{far}.db")
        with duckdb.connect(file) as connection:
            connection.execute("CREATE TABLE records AS SELECT i % 255 AS x, i // 255 % 250 AS y FROM range(1000000) t(i)")
            connection.execute(f"UPDATE records SET x = {far} WHERE x = 7 AND y = 7")
        with duckdb.connect(file) as connection:
            connection.execute(f"SET temp_directory = '{tmp_path / 'disk'}'")
            connection.execute("SET enable_progress_bar = false")
            for setting in TIGHT[case]:
                connection.execute(setting)
            pmdp.release(built, epsilon=1, bounds={"x": (0, 255), "y": (0, 250)}, missing={}, data=connection.table("records"))
        assert not (tmp_path / "disk").exists()
    assert read == [1, 1]


def test_rows_of_persons_and_rows_with_a_bar_are_read_one_by_one(connection, read):
    frame = rows(7).assign(person=lambda table: np.arange(len(table)) // 2)
    table = stored(connection, frame, WHOLE | {"person": "INTEGER"})
    person = pmdp.Person("person", at_most=1)
    assert said(table, unit=person) == said(frame, unit=person)
    said(table, progressbar=True)
    assert read == [1, 1, 1]


def test_no_row_is_counted_before_the_ledger_has_paid(connection, tmp_path, monkeypatch):
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=1, create=True)
    spent, counted = [], source.counted_in
    monkeypatch.setattr(source, "counted_in", lambda *arguments: spent.append(ledger.remaining().epsilon) or counted(*arguments))
    said(stored(connection, rows(8), WHOLE), ledger=ledger)
    assert spent == [0]


def test_an_empty_table_has_no_counts(connection):
    empty = stored(connection, rows(9)[:0], WHOLE)
    assert said(empty, "add_remove") == said(rows(9)[:0], "add_remove")


# ---------- one connection, several threads
def asked(table):
    return pmdp.QuerySession(table, {"kind": range(4), "count": range(9)}).ask("kind == 1 & count < 5", epsilon=0.1, method="blue").value


def released_by_rows(table):
    nothing = np.zeros(2, dtype=int)
    with pm.Model() as model:
        pm.Normal("size", pm.Normal("mu"), pm.HalfNormal("sd"), observed=nothing.astype(float))
    return contents(pmdp.release(model, epsilon=1, bounds={"size": (0, 1)}, data=table))


@pytest.mark.parametrize("call", [asked, released_by_rows])
def test_threads_that_share_a_connection_take_turns(call):
    """Another question ends the rows that a connection was giving: both were paid for, and one of them failed. Half of all calls did."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE records AS SELECT i % 4 AS kind, i % 9 AS count, i % 7 / 7 AS size FROM range(1_000_000) AS t(i)")
        table = connection.table("records")
        with seam_of(0), ThreadPoolExecutor(2) as pool:
            said_by = list(pool.map(call, [table] * 6))
    assert all(one == said_by[0] for one in said_by)
