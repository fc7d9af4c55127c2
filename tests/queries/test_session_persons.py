"""Sessions that protect all rows of a person: what a person moves, which rows count, and what is told."""

import json
import pickle
from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pandas as pd
import pytest
from checks import mostly_slow, refused, seam_of, watched
from test_history import SIZES, at_random, question

import pymc_dp as pmdp
from pymc_dp.privacy.accounting import Cost
from pymc_dp.privacy.mechanisms import Laplace
from pymc_dp.queries import Brackets
from pymc_dp.queries.blue import fresh_epsilon
from pymc_dp.queries.history import Answered, History
from pymc_dp.queries.language import question as understood
from pymc_dp.queries.schema import Schema
from pymc_dp.queries.table import Table
from pymc_dp.releases.persons import counted_rows, names_of

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
duckdb = pytest.importorskip("duckdb")
pytestmark = pytest.mark.filterwarnings("ignore")
SCHEMA = {"age": range(0, 3), "sex": ["f", "m"]}
ASKED = [
    ("age >= 1", {"width": 30}),
    (["age == 0", "sex == 'f' & age < 2"], {"epsilon": 0.2, "method": "blue"}),
    ("0.5 * sum(age) - count(sex == 'm')", {"epsilon": 0.3, "method": "blue"}),
    ("count()", {"width": 20, "method": "blue"}),
    ("age == 2", {}),
    ("age == 1", {"width": 0.01}),
]
NEIGHBOURS = ["replace", "add_remove"]
MOSTLY = mostly_slow(NEIGHBOURS, 0)


def frame(persons):
    """A table of persons: of every one a name, and rows of age and sex; the rows of each lie among those of others."""
    rows = [(name, *row) for name, rows in persons for row in rows]
    order = np.random.default_rng(len(rows)).permutation(len(rows))
    return pd.DataFrame([rows[k] for k in order], columns=["who", "age", "sex"]).astype(object)


ROWS = list(product([0, 1, 2, None], ["f", "m"]))
OTHERS = [(1, [ROWS[0], ROWS[1], ROWS[3], ROWS[4]]), (2, [ROWS[5]]), (3, [ROWS[0], ROWS[2]]), (None, [ROWS[4]])]


# ---------- what a person moves


def people():
    """All that have up to two rows, and some of five, of whose rows two count."""
    several = [list(rows) for many in range(3) for rows in combinations_with_replacement(ROWS, many)]
    rng = np.random.default_rng(3)
    return several + [[ROWS[k] for k in rng.integers(0, len(ROWS), 5)] for _ in range(6)]


@pytest.mark.parametrize("neighbours", MOSTLY)
def test_no_person_moves_more_than_the_session_pays(neighbours):
    """All pairs of people, or of one and nobody: answers move by what was paid at most, and some pair attains it."""
    schema, unit = Schema.of(SCHEMA), pmdp.Person("who", 2)
    session = pmdp.QuerySession(frame(OTHERS), SCHEMA, neighbours=neighbours, unit=unit)
    texts = ["age >= 1", "age == 2 & sex == 'f'", "0.5 * sum(age) - count(sex == 'm')", "count()"]
    with seam_of(0):
        for k, text in enumerate(texts):
            session.ask(text, epsilon=Fraction(1 + k, 4), method="blue")
    scales = [Fraction(answer.scale) for answer in session._account.state.asked.answered]
    asked = [understood(text, schema) for text in texts]
    moved = [Table.of(frame([*OTHERS, (9 + k % 2, rows)]), schema, ("who", 2)).totals(asked) for k, rows in enumerate(people())]
    pairs = product(moved, moved) if neighbours == "replace" else ((one, moved[0]) for one in moved)
    worst, most = Fraction(0), [0] * len(texts)
    for one, other in pairs:
        differences = [abs(a - b) for a, b in zip(one, other, strict=True)]
        worst = max(worst, sum(difference / scale for difference, scale in zip(differences, scales, strict=True)))
        most = list(map(max, most, differences))
    assert most == [one.sensitivity(neighbours, 2) for one in asked]
    assert worst <= session.cost
    assert float(worst) == pytest.approx(float(session.cost), rel=1e-12)


@pytest.mark.parametrize("neighbours", MOSTLY)
@pytest.mark.parametrize("pairs", mostly_slow([True, False], 0))
def test_the_cost_is_that_of_the_dearest_person(neighbours, pairs, monkeypatch):
    """15 histories of random questions: over all people of up to two rows, each in any cell. Beyond many atoms it is a bound."""
    if not pairs:
        monkeypatch.setattr("pymc_dp.queries.history.MOST_PAIRS", 0)
    cells, rng = list(product(*map(range, SIZES.values()))), np.random.default_rng(2)
    places = [dict(zip(SIZES, cell, strict=True)) for cell in cells]
    for trial in range(15):
        history, given = History.empty(neighbours, at_most=2), []
        for _ in range(4):
            one, epsilon = at_random(rng, "range" if trial % 2 else "weights"), Fraction(int(rng.integers(1, 9)), 8)
            if sensitivity := one.sensitivity(neighbours, 2):
                scale = Laplace().calibrate(sensitivity, sensitivity**2, Cost(epsilon))
                history = history.append(Answered(one, epsilon, scale, 0))
                given.append([float(one.weights[tuple(place[name] for name in one.columns)] * epsilon / sensitivity) for place in places])
        rates = np.array(given).reshape(len(given), -1)
        sums = np.unique(np.array([rates[:, list(rows)].sum(axis=1) for many in range(3) for rows in combinations_with_replacement(
            np.unique(rates, axis=1, return_index=True)[1].tolist(), many)]), axis=0)  # fmt: skip
        differences = np.abs(sums if neighbours == "add_remove" else sums[:, None] - sums).sum(axis=-1)
        worst = differences.max(initial=0)
        if pairs or neighbours == "add_remove":
            assert float(history.cost) == pytest.approx(worst, rel=1e-9)
        assert history.cost >= worst * (1 - 1e-9)
        assert history.cost <= sum((answer.epsilon for answer in history.answered), Fraction(0))


def test_noise_is_as_many_times_as_wide():
    asked = question(("x",), [0, 1])
    assert [asked.sensitivity(neighbours, 5) for neighbours in NEIGHBOURS] == [5, 5]
    assert [question(("x",), [-1, 1]).sensitivity(neighbours, 5) for neighbours in NEIGHBOURS] == [10, 5]
    assert [question(("x",), [1, 1]).sensitivity(neighbours, 5) for neighbours in NEIGHBOURS] == [5, 5]
    assert fresh_epsilon(asked, "add_remove", 40, 0.9, 5) == pytest.approx(5 * float(fresh_epsilon(asked, "add_remove", 40, 0.9)), rel=1e-4)


# ---------- which rows count


def holders(rows, folder):
    """The same table in many hands, with the names of persons in several types."""
    whole = rows.astype({"age": "Int64", "sex": "string", "who": "Int64"})
    arrow = pa.Table.from_pandas(whole, preserve_index=False)
    texts = whole.assign(who=[None if pd.isna(name) else str(name) for name in whole["who"]])
    yield rows
    yield rows.assign(who=[3.0 if name is None else float(name) for name in rows["who"]]).where(rows.notna())
    yield rows.assign(who=[None if name is None else Decimal(name) for name in rows["who"]])
    yield whole
    yield texts
    yield texts.astype({"who": "category"})
    yield rows.sample(frac=1, random_state=2)
    yield pl.from_arrow(arrow)
    yield pl.from_arrow(arrow).with_columns(pl.col("who").cast(pl.String).cast(pl.Categorical))
    yield pl.from_arrow(arrow).with_columns(pl.col("who").cast(pl.Float64))
    yield arrow
    for kind in (pa.decimal128(30, 2), pa.int8(), pa.float32(), pa.string(), pa.string_view(), pa.large_string()):
        yield arrow.set_column(arrow.schema.names.index("who"), "who", arrow.column("who").cast(kind))
    yield pa.concat_tables([arrow.slice(0, 3), arrow.slice(3)])
    yield arrow.set_column(arrow.schema.names.index("who"), "who", arrow.column("who").dictionary_encode())
    parquet.write_table(arrow, folder / "rows.parquet", row_group_size=4)
    yield folder / "rows.parquet"
    connection = duckdb.connect()
    for kind in ("BIGINT", "HUGEINT", "VARCHAR", "DOUBLE", "DECIMAL(20, 3)"):
        yield connection.from_arrow(arrow).project(f"age, sex, CAST(CAST(who AS BIGINT) AS {kind}) AS who").create(f"t{kind[:3]}") or (
            connection.table(f"t{kind[:3]}")
        )


def test_every_holder_of_a_table_keeps_the_same_rows(tmp_path):
    """Those that the names and the cells alone decide on, in any order and type."""
    rng = np.random.default_rng(4)
    rows = frame([(k or None, [ROWS[j] for j in rng.integers(0, len(ROWS), rng.integers(0, 7))]) for k in range(9)])
    schema = Schema.of(SCHEMA)
    asked = [understood(text, schema) for text in ("age == 0", "age >= 1 & sex == 'f'", "sex == 'm'", "sum(age)", "count()")]
    cells = np.array([[schema.column(name).cell(row[name]) for name in schema.names] for _, row in rows.iterrows()])
    kept = counted_rows(names_of(rows["who"].to_numpy()), 3, [cells])
    assert 0 < kept.sum() < len(rows) - rows["who"].isna().sum()
    expected = Table.of(rows[kept], schema).totals(asked)
    for held in holders(rows, tmp_path):
        assert Table.of(held, schema, ("who", 3)).totals(asked) == expected
        assert Table.of(held, schema, ("who", 3)).totals(asked[2:3]) == expected[2:3]
    assert Table.of(rows[:0], schema, ("who", 3)).totals(asked) == [0] * 5


def test_a_person_decides_on_nobody_else(tmp_path):
    """Brackets, levels and odd values of a person who comes; the answers about others, who have more rows than count, stay."""
    schema = Schema.of({"age": range(0, 3), "wage": Brackets([0, 10, 20]), "name": ["a", "b"]})
    rng = np.random.default_rng(5)
    rows = pd.DataFrame({"who": rng.integers(0, 6, 60), "age": rng.integers(0, 3, 60), "wage": rng.uniform(0, 20, 60), "name": "a"})
    asked = [understood(text, schema) for text in ("age == 0 & name == 'a'", "wage < 10 & name == 'a'", "count(name == 'a')")]
    before = Table.of(rows, schema, ("who", 4)).totals(asked)
    for name in ("x", 2**70, 7, 7.5, "7", b"7"):
        more = pd.DataFrame({"who": [name] * 9, "age": ["?", None, 1] * 3, "wage": [np.inf, "12", None] * 3, "name": "b"}, dtype=object)
        assert Table.of(pd.concat([rows, more]), schema, ("who", 4)).totals(asked) == before


# ---------- what is told


def seen(rows, neighbours, folder, frozen=()):
    """All that leaves a session, and the exact answers that noise was put on."""
    folder.mkdir()
    unit, said = pmdp.Person("who", 2), []
    with watched(3, frozen) as (seam, output, caught):
        ledger = pmdp.Ledger(folder / "p.ledger", epsilon=6, unit=unit, neighbours=neighbours, create=True)
        session = pmdp.QuerySession(rows, SCHEMA, ledger=ledger, neighbours=neighbours, unit=unit, history=folder / "asked")
        for asked, how in ASKED:
            for call in (session.price, session.ask):
                try:
                    said.append(repr(call(asked, **how)))
                except Exception as error:
                    said.append(f"{type(error).__name__}: {error}")
            said.append(repr(session))
        said += [ledger.entries().drop(columns=["time", "hash", "session"]).to_csv(), [str(warning.message) for warning in caught]]
        said.append({**json.loads((folder / "asked").read_text()), "salt": "", "sum": ""})
    return [*said, output.getvalue(), seam.scales], seam, session


@pytest.mark.parametrize("neighbours", MOSTLY)
def test_neighbours_look_the_same(neighbours, tmp_path):
    """A person of five rows, and one of one row or none: given the same noisy numbers nothing tells, and what moved was paid."""
    many, few = [ROWS[5]] * 4 + [ROWS[1]], [ROWS[0]] if neighbours == "replace" else []
    first, seam, session = seen(frame([*OTHERS, ("zz-canary", many)]), neighbours, tmp_path / "a")
    second, other, _ = seen(frame([*OTHERS, ("p2", few)]), neighbours, tmp_path / "b", seam.answers)
    assert first == second
    assert seam.exact != other.exact
    moved = sum(Fraction(abs(a - b)) / Fraction(scale) for (a,), (b,), scale in zip(seam.exact, other.exact, seam.scales, strict=True))
    assert 0 < moved <= session.cost
    assert "all rows of one who, at most 2 of which count" in repr(session)
    everything = "".join(map(str, first)).encode() + (tmp_path / "a" / "asked").read_bytes() + (tmp_path / "a" / "p.ledger").read_bytes()
    assert b"zz-canary" not in everything
    with pytest.raises(TypeError):
        pickle.dumps(session)


def test_a_session_goes_on_with_the_same_unit_only(tmp_path):
    unit, rows = pmdp.Person("who", 2), frame(OTHERS)
    ledger = pmdp.Ledger(tmp_path / "p.ledger", epsilon=6, unit=unit, create=True)
    session = pmdp.QuerySession(rows, SCHEMA, ledger=ledger, unit=unit, history=tmp_path / "asked")
    first = session.ask("age >= 1", epsilon=1)
    again = pmdp.QuerySession(rows, SCHEMA, ledger=pmdp.Ledger(ledger.path), unit=unit, history=tmp_path / "asked")
    assert again.cost == session.cost == 1
    assert again.ask("age >= 1") == first or again.ask("age >= 1").epsilon == 0
    assert ledger.entries()["epsilon"].dropna().tolist()[-1] == 1
    for other in (pmdp.Person("who", 3), pmdp.Person("age", 2, name="who")):
        said = refused(pmdp.QuerySession, rows, SCHEMA, ledger=ledger, unit=other, history=tmp_path / "asked")
        assert "another column of persons, or number of rows that count" in said
    assert "unit=pymc_dp.Person('who', at_most=...)" in refused(pmdp.QuerySession, rows, SCHEMA, ledger=ledger)
    single = pmdp.Ledger(tmp_path / "r.ledger", epsilon=1, create=True)
    assert "unit='row'" in refused(pmdp.QuerySession, rows, SCHEMA, ledger=single, unit=unit)


def test_what_is_priced_for_one_row_is_refused():
    session = pmdp.QuerySession(frame(OTHERS), SCHEMA, unit=pmdp.Person("who", 2))
    session.ask("age >= 1", epsilon=1)
    assert "keeps other rows" in refused(session.add, None)
    assert "price of draws" in refused(session.ask_model, {}, epsilon=1)
    assert "where persons are protected" in refused(session.observe, "y", "age >= 1", probability=0.5)
    assert session.cost == 1


def test_what_names_no_column_of_persons_is_refused():
    rows = frame(OTHERS)
    dates = pa.table({"who": pa.array([1], pa.date32()), "age": [1], "sex": ["f"]})
    for table, key, words in (
        (rows, "whom", "no column called whom"),
        (rows.rename(columns={"age": "who", "sex": "age"}).assign(sex="f"), "who", "several columns"),
        (rows, [1, 2], "in a column of the table"),
        (dates, "who", "names no person"),
        (rows.set_index("who"), "who", "Write frame.reset_index()."),
    ):
        assert words in refused(pmdp.QuerySession, table, SCHEMA, unit=pmdp.Person(key, 2, name="who"))
