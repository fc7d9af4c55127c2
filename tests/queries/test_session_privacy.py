"""Nothing of a record leaves a session but through noise: canaries, record and replay, who reads when, copies, files, and audits.

The order of things is asked, priced, charged, redeemed, read, drawn, saved, said. Tests here look at what is seen from outside on two
neighbouring tables when the noisy numbers are the same, and break the table or the file between the steps.
"""

import copy
import itertools
import json
import logging
import math
import pickle
import shutil
import tempfile
import traceback
import warnings
from dataclasses import replace
from fractions import Fraction

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from checks import seam_of, watched
from test_privacy import INTEGER, REAL, WORD, files_under, found_in

import pymc_dp as pmdp
from pymc_dp.privacy import mechanisms
from pymc_dp.queries import Brackets, table
from pymc_dp.queries.language import question as understood
from pymc_dp.queries.schema import Schema
from pymc_dp.queries.session_file import sealed

SCHEMA = {"age": range(0, 6), "sex": ["f", "m"], "income": Brackets([0, 10, 20, 50])}
"""Ages as numbers, text, and bins: one column of each kind."""

STRANGE = [
    math.nan, math.inf, -math.inf, -0.0, 1e308, 5e-324, 2.0**53, -7, 2.5, 3.0, None, "f", "3", "zz", "", "3.0", "\0", True, 10**30,
    pd.NA, np.float32(4), b"f", (1, 2), REAL,
]  # fmt: skip
"""What may stand in a table where a level should: a careless reading would raise, warn or branch on some of them."""


def frame(n=20, seed=0):
    """Columns of Python objects, so that anything may stand in them."""
    rng = np.random.default_rng(seed)
    columns = {"age": rng.integers(0, 6, n), "sex": rng.choice(["f", "m"], n), "income": rng.uniform(0, 50, n)}
    return pd.DataFrame({name: pd.Series(values.tolist(), dtype=object) for name, values in columns.items()})


def neighbours_of(neighbours, count, seed=1):
    """Pairs of tables that differ in one record, in one value of it or in all; one of them strange."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        first = frame(seed=k)
        second, row = first.copy(), int(rng.integers(len(first)))
        if neighbours == "add_remove":
            for name in first.columns[rng.random(3) < 0.5]:
                first.at[row, name] = STRANGE[(k + row) % len(STRANGE)]
            second = first.drop(index=row).reset_index(drop=True)
            yield (first, second) if k % 2 else (second, first)
            continue
        for place in range(3) if k % 4 == 3 else [k % 4]:
            second.at[row, first.columns[place]] = STRANGE[(k + place) % len(STRANGE)]
        yield first, second


BLUE = {"method": "blue"}
ASKED = [
    ("age >= 3", {"width": 12}),
    (["age == 1", "age == 2", "sex == 'f' & age < 2", "age in [1, 2]"], {"epsilon": 0.2, **BLUE}),
    ("income >= 10", {"width": 25, **BLUE}),
    ("0.5 * sum(age) - 3 * count(income < 10 & sex != 'm')", {"epsilon": 0.3, **BLUE}),
    ("age == 4 & sex == 'm'", {}),
    ("age == 4 & sex == 'm'", BLUE),
    ("age < 3", {"width": 12, **BLUE}),
    ("count()", {"width": 3, **BLUE}),
    ("income < 20", {"width": 0.01, **BLUE}),
    ("wage > 3", {"width": 3}),
    ("age == 5", {"epsilon": 9}),
    (["age == 5", "sex == 'm'"], {"width": 30, "confidence": 0.9, **BLUE}),
]
"""A session that pays, infers, refuses for several reasons, and asks what depends on answers."""


def told(call, *arguments, **words):
    """A result in words, or what was raised; nothing else may come."""
    try:
        return repr(call(*arguments, **words))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def everything_seen(rows, neighbours, folder, frozen=(), noise=2):
    """All that leaves a session: answers, prices, words, the file, the ledger, warnings, logs, output. ``frozen`` replays noisy numbers."""
    seen = []
    with watched(noise, frozen) as (seam, output, caught):
        ledger = pmdp.Ledger(folder / "survey.ledger", epsilon=4, create=True, neighbours=neighbours)
        asking = pmdp.QuerySession(rows, SCHEMA, ledger=ledger, neighbours=neighbours, history=folder / "asked")
        for asked, how in ASKED:
            seen.append(told(asking.price, asked, **how))
            seen.append(told(asking.ask, asked, **how))
            seen.append(told(lambda: asking.cost) + told(lambda: asking.remaining) + repr(asking))
        low = asking.ask("age < 3", method="blue").value
        next_one = "age == 0" if low > 10 else "sex == 'f'"  # what is asked depends on answers, not on records
        seen += [told(asking.ask, next_one, epsilon=0.1, method="blue"), told(asking.probability, "age >= 3", 8), asking._repr_html_()]
        tree = asking.posterior()
        seen += [tree["posterior"].to_dataset().to_dataframe().to_csv(), str(tree.attrs), asking.history.to_csv()]
        charges = ledger.entries()
        saved = json.loads((folder / "asked").read_text())
        seen += [charges.drop(columns=["time", "hash", "session"]).to_csv(), {**saved, "salt": "", "sum": ""}]
        seen += [(w.category, str(w.message)) for w in caught]
    return [*seen, output.getvalue(), seam.scales], seam, asking


def compared(first, second, neighbours, folder):
    """What is seen of two tables, which is the same given the same noisy numbers; and how much of what was paid their records used."""
    folders = [folder / which for which in "ab"]
    for one in folders:
        one.mkdir(parents=True)
    seen, seam, asking = everything_seen(first, neighbours, folders[0])
    again, other, _ = everything_seen(second, neighbours, folders[1], frozen=seam.answers)
    assert seen == again
    moved = sum(Fraction(abs(a - b)) / Fraction(scale) for (a,), (b,), scale in zip(seam.exact, other.exact, seam.scales, strict=True))
    assert moved <= asking.cost
    return seen, moved / asking.cost


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_neighbours_look_the_same_and_cost_what_was_paid(neighbours, tmp_path):
    """Given the same noisy numbers all that is seen is the same, and what reached the noise moved no more than the ledger was charged."""
    worst = Fraction(0)
    for k, (first, second) in enumerate(neighbours_of(neighbours, 2)):
        seen, used = compared(first, second, neighbours, tmp_path / str(k))
        assert sum("paid" in one for one in seen if isinstance(one, str)) > 5
        assert sum("Refusal" in one for one in seen if isinstance(one, str)) >= 4
        worst = max(worst, used)
    assert worst > 0, "pairs that move nothing test nothing"


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_more_neighbours_look_the_same(neighbours, tmp_path):
    for k, (first, second) in enumerate(neighbours_of(neighbours, 48, seed=7)):
        compared(first, second, neighbours, tmp_path / str(k))


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_some_pair_attains_the_cost(neighbours, tmp_path, exact_seam):
    """Of all records that one could be exchanged for, or that could go, one moves answers as much as was paid: the cost is no bound."""
    schema = Schema.of(SCHEMA)
    texts = ["age >= 3", "age == 5", "sex == 'f' & age < 4", "0.5 * sum(age) - count(income < 10)", "income >= 20 | sex == 'm'"]
    asking = pmdp.QuerySession(frame(), SCHEMA, neighbours=neighbours)
    for k, text in enumerate(texts):
        asking.ask(text, epsilon=Fraction(1 + k, 4))
    scales = [Fraction(one.scale) for one in asking._account.state.asked.answered]
    cells = list(itertools.product([0, 1, 2, 3, 4, 5, None], ["f", "m", None], [5, 15, 25, None]))
    places = [[column.cell(value) for column, value in zip(schema.columns, cell)] for cell in cells]

    def added(cell):
        """What one record adds to every answer."""
        for text in texts:
            one = understood(text, schema)
            yield int(one.weights[tuple(cell[schema.names.index(name)] for name in one.columns)])

    moved = [list(added(cell)) for cell in places]
    pairs = itertools.combinations(moved, 2) if neighbours == "replace" else ((one, [0] * len(texts)) for one in moved)
    most = max(sum(abs(a - b) / scale for a, b, scale in zip(one, other, scales)) for one, other in pairs)
    assert float(most) == pytest.approx(float(asking.cost), rel=1e-12)
    assert most <= asking.cost


# ---------- who reads, and when


def stored(folder, rows=None):
    path = folder / "survey.parquet"
    rows = frame(60) if rows is None else rows
    rows.astype({"age": "int64", "income": "float64"}).to_parquet(path)
    return path


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_prices_refusals_and_history_read_nothing(neighbours, tmp_path):
    """The table is taken away: whatever costs nothing goes on as before, and what costs is charged before it fails."""
    path = stored(tmp_path)
    ledger = pmdp.Ledger(tmp_path / "survey.ledger", epsilon=2, create=True, neighbours=neighbours)
    asking = pmdp.QuerySession(path, SCHEMA, ledger=ledger, history=tmp_path / "asked", neighbours=neighbours)
    asking.ask(["age >= 3", "sex == 'f'"], epsilon=0.5)

    def free():
        for asked, how in [*ASKED, ("age >= 3", {}), ("sex != 'f'", {}), ("age == 4", {})]:
            yield told(asking.price, asked, **how)
        yield from (told(asking.ask, asked, **how) for asked, how in [("age >= 3", {}), ("age == 4", {}), ("age == 4", {"width": 0.01})])
        yield from (
            told(asking.ask, "wage > 3", width=7),
            told(asking.ask, "age == 2", epsilon=9),
            told(asking.probability, "age >= 3", 30),
        )
        yield from (repr(asking), asking._repr_html_(), str(asking.posterior()["posterior"].to_dataset()), repr(ledger))

    before = list(free())
    path.unlink()
    assert list(free()) == before
    assert sum("Refusal" in one for one in before) >= 5
    with pytest.raises(pmdp.PrivateComputationError, match="stays spent"):
        asking.ask("income < 10", epsilon=0.25)
    assert asking.history["from"].tolist() == ["paid", "paid", "lost"]
    assert ledger.remaining().epsilon == 2 - asking.cost
    assert ledger.entries()["redeemed"].tolist() == [False, True, True, True]


def test_the_charge_is_on_disk_and_redeemed_before_the_table_is_read(tmp_path, monkeypatch):
    """Of three questions together all are, before the first record is."""
    ledger, read = pmdp.Ledger(tmp_path / "survey.ledger", epsilon=5, create=True), []
    asking = pmdp.QuerySession(frame(), SCHEMA, ledger=ledger, history=tmp_path / "asked")
    counted, drew = table._counted, mechanisms._opendp_laplace

    def watched(*arguments):
        on_disk = pmdp.Ledger(tmp_path / "survey.ledger").entries()
        read.append((on_disk["what"].tolist()[1:], on_disk["redeemed"].tolist()[1:]))
        return counted(*arguments)

    def drawn(*arguments):
        read.append("drawn")
        return drew(*arguments)

    monkeypatch.setattr(table, "_counted", watched)
    monkeypatch.setattr(mechanisms, "_opendp_laplace", drawn)
    asking.price(["age == 1", "sex == 'f'", "income < 10"], epsilon=0.5)
    with pytest.raises(pmdp.Refusal):
        asking.ask("age == 1", epsilon=50)
    assert read == []
    asking.ask(["age == 1", "sex == 'f'", "age == 2"], epsilon=0.5)
    charged = ["count(age == 1)", "count(sex == 'f')", "count(age == 2)"]
    scans = [one for one in read if one != "drawn"]
    assert scans
    assert all(one == (charged, [True] * 3) for one in scans)
    assert read[len(scans) :] == ["drawn"] * 3


def test_every_paid_answer_has_noise_of_its_own(tmp_path):
    """One draw for every charge, also of the same question at the same epsilon; nothing that is free draws anything.

    Were a noise used twice, two of 40 answers to questions with the same exact answer would be the same more often than 1 in 3 times:
    with scale 1000 that has probability 40 choose 2 / 4000 for noise of their own, so that all but one are required to differ.
    """
    asking = pmdp.QuerySession(frame(), SCHEMA)
    with seam_of(0) as seam:
        asking.ask("age >= 3", epsilon=0.5)
        asking.ask(["age >= 3", "age >= 3", "sex == 'f'"], epsilon=0.5)
        asking.ask("age >= 3")
        asking.ask("age < 3")
    assert [len(one) for one in seam.exact] == [1] * 4
    other = pmdp.QuerySession(frame(), SCHEMA)
    other.ask(["age >= 3"] * 20, epsilon=Fraction(1, 1000), method="blue")
    for _ in range(20):
        other.ask("age >= 3", epsilon=Fraction(1, 1000), method="blue")
    assert len({one.noisy for one in other._account.state.asked.answered}) >= 38


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_a_promise_that_is_not_kept_costs_no_privacy(neighbours, exact_seam):
    """Records without a level, where none was promised: answers are off by them, and the noise covers them all the same."""
    rows = frame()
    rows.loc[3, "age"] = "nothing"
    asking = pmdp.QuerySession(rows, SCHEMA, neighbours=neighbours, complete=True)
    question = "count(age >= 3) + 5 * (count() - count(age >= 0))"
    asking.ask(question, epsilon=0.5)
    paid = asking.ask(question, width=40, method="blue")
    assert [Fraction(scale) * own >= 5 for scale, own in zip(exact_seam.scales, (Fraction(1, 2), paid.own))] == [True, True]
    assert asking.cost == Fraction(1, 2) + paid.own
    assert exact_seam.exact[0] == [sum(age in (3, 4, 5) for age in rows["age"]) + 5]
    if neighbours == "replace":
        assert asking.ask("age < 3 | age >= 3").how == "public"


# ---------- copies and files


def disjoint(folder, neighbours="add_remove", epsilon=1):
    ledger = pmdp.Ledger(folder / "survey.ledger", epsilon=epsilon, create=True, neighbours=neighbours)
    return pmdp.QuerySession(frame(), SCHEMA, ledger=ledger, history=folder / "asked", neighbours=neighbours)


def test_two_copies_do_not_both_get_disjoint_records_for_nothing(tmp_path):
    """Each would be right that its question costs nothing more, and together they would cost twice what was charged."""
    first = disjoint(tmp_path)
    first.ask("age == 0", epsilon=1)
    shutil.copy(tmp_path / "asked", tmp_path / "copied")
    words = {"ledger": pmdp.Ledger(tmp_path / "survey.ledger"), "neighbours": "add_remove"}
    second = pmdp.QuerySession(frame(), SCHEMA, history=tmp_path / "copied", **words)
    assert first.price("age == 1", epsilon=1).epsilon == second.price("age == 1 & sex == 'f'", epsilon=1).epsilon == 0
    assert first.ask("age == 1", epsilon=1).epsilon == 0
    for asked in ("age == 1 & sex == 'f'", ["age == 2", "age == 3"]):
        with pytest.raises(pmdp.Refusal, match="Another copy of this session has asked since"):
            second.ask(asked, epsilon=1)
    assert len(first._account.ledger.session(first._account.name)) == 2
    third = pmdp.QuerySession(frame(), SCHEMA, history=tmp_path / "copied", **words)
    assert third.history["from"].tolist() == ["paid", "lost"]
    with pytest.raises(pmdp.Refusal, match="0 is left"):
        third.ask("age == 1", epsilon=1)
    assert third.ask("age == 2", epsilon=1).epsilon == 0
    new = pmdp.QuerySession(frame(), SCHEMA, history=tmp_path / "new", **words)
    with pytest.raises(pmdp.Refusal, match="0 is left"):
        new.ask("age == 3", epsilon=0.1)


def test_an_answer_that_was_lost_is_not_drawn_again_for_nothing(tmp_path):
    """The file is put back to before an answer: asking again is a new draw, charged to the same records."""
    asking = disjoint(tmp_path)
    before = (tmp_path / "asked").read_bytes()
    asking.ask("age == 0", epsilon=0.5)
    (tmp_path / "asked").write_bytes(before)
    again = pmdp.QuerySession(frame(), SCHEMA, ledger=asking._account.ledger, history=tmp_path / "asked", neighbours="add_remove")
    assert again.cost == Fraction(1, 2)
    assert again.ask("age == 0", epsilon=0.5).epsilon == Fraction(1, 2)
    with pytest.raises(pmdp.Refusal, match="0 is left"):
        again.ask("age == 0", epsilon=0.1)


def test_answers_are_replayed_and_not_drawn(tmp_path):
    """Loaded twice, a session says the same number for number, and its file does not change by being read."""
    asking = disjoint(tmp_path, "replace", 5)
    asking.ask(["age == 0", "age >= 2", "sex == 'f'", "income < 20 & age < 4"], epsilon=0.5)
    questions = ["age == 0", "age >= 2", "age < 2", "sex != 'f' & age == 0"]
    said = [asking.ask(text) for text in questions]
    content = (tmp_path / "asked").read_bytes()
    for _ in range(2):
        again = pmdp.QuerySession(frame(), SCHEMA, ledger=asking._account.ledger, history=tmp_path / "asked")
        assert [again.ask(text) for text in questions] == said
        assert again.posterior().identical(asking.posterior())
    assert (tmp_path / "asked").read_bytes() == content


def test_what_the_file_of_a_session_cannot_do(tmp_path):
    """Less noise, other questions, fewer or more charges, another table's number of records: refused, and nothing is charged or read."""
    asking = disjoint(tmp_path, "replace", 2)
    asking.ask(["age == 0", "age == 1"], epsilon=0.25)
    facts, head = json.loads((tmp_path / "asked").read_text()), asking._account.ledger.head
    for change in (
        lambda facts: facts["items"].pop(0) and facts["items"][0].update(number=0),
        lambda facts: facts["items"][1].update(number=0),
        lambda facts: facts["items"][1].update(number=7),
        lambda facts: facts["items"][1].update(number=-1),
        lambda facts: facts["items"][0].update(noisy=0.5),
        lambda facts: facts["items"][0].update(scale=(1e-3).hex()),
        lambda facts: facts["items"][0].update(question="count(wage == 4)"),
        lambda facts: facts.update(records=61),
        lambda facts: facts.update(neighbours="add_remove"),
        lambda facts: facts.update(salt="../other"),
        lambda facts: facts.update(items={}),
    ):
        changed = copy.deepcopy(facts)
        change(changed)
        (tmp_path / "asked").write_text(sealed(changed))
        with pytest.raises(pmdp.Refusal):
            pmdp.QuerySession(frame(), SCHEMA, ledger=asking._account.ledger, history=tmp_path / "asked")
    assert asking._account.ledger.head == head


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_the_meaning_of_what_was_paid_for_cannot_be_changed(columns, tmp_path):
    """With the ages of the file cut to 99, "age >= 65" would no longer have been about a record of 150, and "~(age >= 0)" would be free.

    Of d columns, 2**d questions about one record would be paid for once.
    """
    names = "abc"[:columns]
    rows = pd.DataFrame({name: [1, 2, 3, 150] for name in names})
    ledger = pmdp.Ledger(tmp_path / "survey.ledger", epsilon=2, create=True, neighbours="add_remove")

    def asking(inside):
        schema = {name: range(200 if here else 100) for name, here in zip(names, inside, strict=True)}
        if (tmp_path / "asked").exists():
            facts = json.loads((tmp_path / "asked").read_text())
            facts["schema"] = [{**told, "levels": list(levels)} for told, levels in zip(facts["schema"], schema.values(), strict=True)]
            (tmp_path / "asked").write_text(sealed(facts))
        session = pmdp.QuerySession(rows, schema, ledger=ledger, neighbours="add_remove", history=tmp_path / "asked")
        text = " & ".join(f"{name} >= 65" if here else f"~({name} >= 0)" for name, here in zip(names, inside, strict=True))
        return session, session.ask(text, epsilon=1, method="blue")

    _, answer = asking([True] * columns)
    assert answer.epsilon == 1
    empty = json.loads((tmp_path / "asked").read_text())
    for inside in itertools.islice(itertools.product([True, False], repeat=columns), 1, None):
        with pytest.raises(pmdp.Refusal, match="does not remember the charge"):
            asking(inside)
    (tmp_path / "asked").write_text(sealed({**empty, "items": []}))
    session, answer = asking([False] * columns)
    assert (answer.epsilon, ledger.remaining().epsilon) == (1, 0), "without its answers it is another session, whose costs add up"
    assert len(ledger.session(session._account.name)) == 1


def test_a_session_is_known_by_all_that_gives_its_questions_a_meaning(tmp_path):
    asking = disjoint(tmp_path, "replace")
    facts, columns = asking._account.saved, asking._account.saved.schema.columns
    others = [
        replace(facts, **change)
        for change in (
            {"salt": "1" * 32}, {"neighbours": "add_remove"}, {"unit": "person"}, {"part": "north"}, {"records": 21},
            {"complete": ("age",)},
            {"schema": Schema(columns[::-1])}, {"schema": Schema(columns[:2])},
            {"schema": Schema((replace(columns[0], name="old"), *columns[1:]))},
            {"schema": Schema.of({**SCHEMA, "age": ["0", "1", "2", "3", "4", "5"]})},
            {"schema": Schema.of({**SCHEMA, "age": [0, 1, 2, 3, 5, 4]})},
            {"schema": Schema.of({**SCHEMA, "sex": [False, True]})}, {"schema": Schema.of({**SCHEMA, "sex": [0, 1]})},
            {"schema": Schema.of({**SCHEMA, "income": Brackets([0, 10, 20, 51], labels=columns[2].levels)})},
            {"schema": Schema.of({**SCHEMA, "income": Brackets([0, 10, 20, 50], labels=["a", "b", "c"])})},
        )
    ]  # fmt: skip
    assert len({one.name for one in (facts, *others)}) == len(others) + 1
    assert replace(facts, items=()).name == facts.name


# ---------- canaries


def marked():
    rows = frame(40)
    rows.loc[3, "age"], rows.loc[5, "sex"], rows.loc[7, "income"] = INTEGER, WORD, REAL
    rows["name"] = [WORD, *map(str, range(39))]
    return rows


def locals_of(error):
    frames = [one for one, _ in traceback.walk_tb(error.__traceback__)][1:]
    return b"".join(repr(value).encode() for one in frames for value in one.f_locals.values())


def test_canaries_are_nowhere(tmp_path, monkeypatch, caplog, capfd):
    """Not in any answer, tree, page, word, pickle, log, frame of an exception, or file under the home, temporary and working folders."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.chdir(tmp_path)
    for folder in ("HOME", "TMPDIR"):
        monkeypatch.setenv(folder, str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    rows = marked()
    assert found_in(cloudpickle.dumps(rows)), "the canaries must be in the table, or this test could not fail"
    ledger = pmdp.Ledger(tmp_path / "survey.ledger", epsilon=5, create=True)
    asking = pmdp.QuerySession(rows, SCHEMA, ledger=ledger, history=tmp_path / "asked")
    said = asking.ask(["age >= 3", "sex == 'f'", "income < 20 & age < 3", "sum(age)"], epsilon=0.5)
    said.append(asking.ask("age < 3"))
    refusals = []
    for asked, how in (("wage > 3", {"width": 1}), ("age == 0", {"epsilon": 9}), ("sum(sex)", {"width": 3})):
        with pytest.raises(pmdp.Refusal) as caught:
            asking.ask(asked, **how)
        refusals.append(caught.value)
    with monkeypatch.context() as patch:
        patch.setattr(mechanisms, "_opendp_laplace", lambda *given: (_ for _ in ()).throw(ValueError(f"{given} {REAL} {WORD}")))
        with pytest.raises(pmdp.PrivateComputationError) as caught:
            asking.ask("income >= 20", epsilon=0.5)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    tree = asking.posterior()
    blobs = {
        "answers": b"".join(pickle.dumps(one) + repr(one).encode() + one._repr_html_().encode() for one in said),
        "session": repr(asking).encode() + asking._repr_html_().encode() + pickle.dumps(asking.history),
        "state": cloudpickle.dumps((asking._account.state, asking._account.items, asking._account.saved)),
        "tree": pickle.dumps(tree) + str(tree).encode(),
        "ledger": repr(ledger).encode() + ledger._repr_html_().encode(),
        "errors": b"".join(repr(error.args).encode() + locals_of(error) for error in [*refusals, caught.value]),
        "printed": "".join(capfd.readouterr()).encode() + caplog.text.encode(),
    }
    blobs |= {str(path): path.read_bytes() for path in files_under(tmp_path)}
    assert {name: found for name, blob in blobs.items() if (found := found_in(blob))} == {}
    for copied in (copy.copy, copy.deepcopy, pickle.dumps, cloudpickle.dumps):
        with pytest.raises(TypeError):
            copied(asking)


# ---------- black box


@pytest.fixture
def scanned_once(monkeypatch):
    """Records per cell are counted once for every table; audits run thousands of sessions on the same two."""
    counted, known = table._counted, {}

    def remembered(source, columns, starts):
        key = id(source), tuple(column.name for column in columns), str(starts)
        if key not in known:
            known[key] = counted(source, columns, starts)
        return known[key]

    monkeypatch.setattr(table, "_counted", remembered)


def conversation(rows, neighbours):
    """Adaptive: what is asked third depends on the first answer, what is asked second and third is about disjoint records."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pmdp.UnaccountedWarning)
        asking = pmdp.QuerySession(rows, SCHEMA_OF_AUDIT, neighbours=neighbours)
    said = [asking.ask("age == 0", epsilon=1, method="blue").value]
    said.append(asking.ask("age == 1", epsilon=1, method="blue").value)
    said.append(asking.ask("age == 0 & sex == 'f'" if said[0] > 2 else "age == 0", epsilon=1, method="blue").value)
    return np.array([*said, asking.ask("age == 0", method="blue").value])


CLAIMED = {"replace": 3, "add_remove": 2}
"""What the conversation costs: a record that is exchanged may be in the first and the third and move to the second."""
SCHEMA_OF_AUDIT = Schema.of({"age": range(0, 6), "sex": ["f", "m"]})


def two_tables(neighbours):
    rows = pd.DataFrame({"age": [0, 0, 0, 1, 1, 3], "sex": ["f", "f", "m", "f", "m", "m"]})
    other = rows.copy()
    other.loc[0, "age"] = 1
    return (rows, other) if neighbours == "replace" else (rows, rows.drop(index=0).reset_index(drop=True))


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_the_pair_of_the_audit_is_as_far_apart_as_it_claims(neighbours):
    """What is audited can be seen: given the same noisy numbers the two tables are exactly as far apart as the session costs."""
    for first in (9, 0):
        exact, scales = [], []
        for rows in two_tables(neighbours):
            with seam_of(0, [[first]] * 9) as seam:
                conversation(rows, neighbours)
            exact.append([one for (one,) in seam.exact])
            scales = seam.scales
        assert sum(Fraction(abs(a - b)) / Fraction(scale) for a, b, scale in zip(*exact, scales)) == CLAIMED[neighbours]


def audited(neighbours, runs, claimed=None):
    first, second = two_tables(neighbours)
    return pmdp.audit(
        lambda rows: conversation(rows, neighbours),
        first,
        second,
        epsilon=claimed or CLAIMED[neighbours],
        n=runs,
        alpha=1e-6,
        progressbar=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_sessions_keep_what_they_claim(neighbours, scanned_once):
    """``pymc_dp.audit`` of whole adaptive sessions: false alarms once in a million, twice the claim is seen at 3000 runs."""
    assert audited(neighbours, 3000).passed


@pytest.mark.slow
def test_a_session_that_pays_for_one_of_three_is_found(scanned_once):
    """The same audit, told that the session costs what its dearest draw costs: 1 instead of 3."""
    assert not audited("replace", 1500, claimed=1).passed
