"""Sessions of questions: charged by what the record that pays most has paid, durable, and never twice as two copies.

Tests that race or kill state in their docstring what they would find; sums are compared with fractions kept beside the ledger.
"""

import copy
import itertools
import json
import os
import pickle
import re
import signal
import time
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from fractions import Fraction
from math import ceil
from multiprocessing import get_context

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy import stats
from test_ledger import attempt, grants, in_child, killing, new, pay, rewritten

import pymc_dp as pmdp
from pymc_dp.privacy import mechanisms
from pymc_dp.privacy.accounting import Cost, rho_of
from pymc_dp.privacy.budget import UNITS
from pymc_dp.privacy.charges import Step
from pymc_dp.privacy.receipts import Draw
from pymc_dp.queries.language import question as understood
from pymc_dp.queries.schema import Schema
from pymc_dp.queries.session_file import Saved, sealed

ONE, OTHER, HALF = "1" * 64, "2" * 64, Fraction(1, 2)


def step(count, total, epsilon=HALF, rho=None, session=ONE):
    """A step to a total that is as large as it can be in rho, if nothing else is said."""
    return Step(session, count, Cost(Fraction(epsilon)), Cost(Fraction(total), rho=rho))


def noise(epsilon, what="count()"):
    return [Draw(what, "laplace", 1, 1, mechanisms.Laplace().calibrate(1, 1, Cost(Fraction(epsilon))), 1)]


def go(ledger, count, total, epsilon, rho=None, session=ONE, what="count()", part=None):
    """Charge the next draw of a session."""
    return ledger.charge(step(count, total, epsilon, rho, session), noise(epsilon, what), neighbours="replace", unit="row", part=part)


# ---------- what a session costs


def test_disjoint_questions_are_paid_once_and_every_one_is_written(tmp_path):
    ledger = new(tmp_path)
    charges = [go(ledger, k, HALF, HALF, what=f"count(k == {k})") for k in range(4)]
    assert ledger.remaining().epsilon == HALF
    rows = ledger.entries().query("kind == 'charge'")
    assert rows["epsilon"].tolist() == [0.5, 0, 0, 0]
    assert rows["what"].tolist() == [f"count(k == {k})" for k in range(4)]
    assert set(rows["session"]) == {ONE}
    for charge in charges:  # each is worth one draw, whatever it paid
        receipt, scale = ledger.redeem(charge), charge.draws[0].scale
        mechanisms.Laplace().draw(np.zeros(1, dtype=int), scale, receipt)
        with pytest.raises(pmdp.Refusal, match="not been paid for"):
            mechanisms.Laplace().draw(np.zeros(1, dtype=int), scale, receipt)
        with pytest.raises(pmdp.Refusal, match="redeemed already"):
            ledger.redeem(charge)
    assert ledger.session(ONE) == tuple(charges)
    assert ledger.session(OTHER) == ()


def test_two_copies_of_a_session_do_not_get_disjoint_cells_free(tmp_path):
    """Both have asked about cell 0 and now ask about another each: the second charge would be 0 again although it is a new one."""
    ledger, copy = new(tmp_path), pmdp.Ledger(tmp_path / "survey.ledger")
    go(ledger, 0, HALF, HALF)
    go(ledger, 1, HALF, HALF)
    before = ledger.head
    with pytest.raises(pmdp.Refusal, match=r"Another copy of this session has asked since. Load it again"):
        go(copy, 1, HALF, HALF)
    with pytest.raises(pmdp.Refusal, match="Another copy"):
        go(copy, 0, 1, HALF)
    with pytest.raises(pmdp.Refusal, match="does not remember"):
        go(copy, 3, 1, HALF)
    with pytest.raises(pmdp.Refusal, match="Another copy"):
        copy.remaining([step(1, HALF)])
    assert ledger.head == before
    go(copy, 2, HALF, HALF)


def test_two_sessions_add_up(tmp_path):
    ledger = new(tmp_path)
    go(ledger, 0, HALF, HALF)
    go(ledger, 0, HALF, HALF, session=OTHER)
    assert ledger.remaining().epsilon == 0
    go(ledger, 1, HALF, HALF)  # nothing is left, and nothing is needed
    with pytest.raises(pmdp.Refusal, match=r"This question costs epsilon 0.25 and 0 is left in survey.ledger. Ask the data owner"):
        go(ledger, 2, Fraction(3, 4), Fraction(1, 4))
    assert len(ledger.session(ONE)) == 2


def test_what_a_session_says_is_checked(tmp_path):
    ledger = new(tmp_path, 2, parts=("north", "south"))
    go(ledger, 0, HALF, HALF, part="north")
    for wrong, words in (
        (lambda: go(ledger, 1, Fraction(3, 4), 1, part="north"), "at least what its newest draw costs"),
        (lambda: go(ledger, 1, HALF, HALF, rho=Fraction(1, 100), part="north"), "at least what its newest draw costs"),
        (lambda: go(ledger, 1, Fraction(1, 4), Fraction(1, 4), part="north"), "never costs less"),
        (lambda: go(ledger, 1, HALF, HALF, part="south"), "from one part"),
        (lambda: go(ledger, 1, HALF, HALF), "from one part"),
        (lambda: ledger.part("north").charge(step(1, 1), noise(HALF) * 2, neighbours="replace", unit="row"), "is one draw"),
        (lambda: step(-1, 1), "A step needs"),
        (lambda: step(True, 1), "A step needs"),
        (lambda: step(0, 1, session="mine"), "A step needs"),
        (lambda: Step(ONE, 0, Cost(Fraction(1)), Cost(Fraction(1), Fraction(1, 10), Fraction(1, 10))), "A step needs"),
        (lambda: ledger.part("north").charge(step(1, 1), noise(1), neighbours="replace", unit="row"), "cost more"),
    ):
        with pytest.raises(pmdp.Refusal, match=words):
            wrong()
    assert grants(ledger) == 1
    ledger.part("north").charge(step(1, HALF), noise(HALF), neighbours="replace", unit="row")
    go(ledger, 0, Fraction(2), 2, session=OTHER, part="south")
    assert ledger.remaining(part="north").epsilon == Fraction(3, 2)


def test_a_planned_step_is_priced_before_it_is_spent(tmp_path):
    ledger = new(tmp_path)
    go(ledger, 0, HALF, HALF)
    assert ledger.remaining([step(1, HALF), step(2, Fraction(3, 4)), 0.25]).epsilon == 0
    with pytest.raises(pmdp.Refusal, match=r"costs epsilon 0.5 and 0.25 is left"):
        ledger.remaining([step(1, Fraction(3, 4)), step(2, Fraction(5, 4))])
    assert ledger.remaining().epsilon == HALF


def test_in_rho_a_session_costs_the_smaller_of_two_sums(tmp_path):
    """With Gaussian noise in the ledger nothing is left of the pure sum; a session of disjoint questions is free there as well."""
    ledger = new(tmp_path, 2, delta=1e-6)
    whole, cost = ledger.granted.rho, Cost(Fraction(1), Fraction(1, 10**6), rho_of(Fraction(1), Fraction(1, 10**6)))
    draws = [Draw("y", "gaussian", 1, 1, mechanisms.Gaussian().calibrate(1, 1, cost), 1)]
    ledger.charge(cost, draws, neighbours="replace", unit="row")
    left = whole - Fraction(ceil(cost.rho * UNITS), UNITS)
    for count in range(3):
        go(ledger, count, Fraction(1, 10), Fraction(1, 10), rho=Fraction(1, 200))
        assert ledger.remaining().rho == left - Fraction(1, 200)
    go(ledger, 3, Fraction(1, 5), Fraction(1, 10), rho=Fraction(1, 100))
    assert ledger.remaining().rho == left - Fraction(1, 100)
    with pytest.raises(pmdp.Refusal, match="is left"):
        go(ledger, 4, Fraction(3), 2)


def test_the_plot_holds_questions_together(tmp_path):
    ledger = new(tmp_path, 2)
    for count in range(30):
        go(ledger, count, Fraction(1 + count, 30), Fraction(1, 30), what=f"count(k == {count})")
    figure = pmdp.plot_ledger(ledger)[0].figure
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["questions"]


def program(folder, seed):
    """Random questions of several sessions and other charges, beside what every record has paid in fractions."""
    random = np.random.default_rng(seed)
    delta = [0, 1e-6][random.integers(0, 2)]
    granted = Fraction(int(random.integers(5, 40)), 10)
    ledger = pmdp.Ledger(folder / f"{seed}", epsilon=granted, delta=delta, create=True)
    allowed = int(rho_of(granted, pmdp.privacy.accounting.exact_delta(delta)) * UNITS) if delta else 0
    cells, names = 4, [ONE, OTHER, "3" * 64]
    paid = {name: [Fraction(0)] * cells for name in names}
    whole, counts, charged = dict.fromkeys(names, Fraction(0)), dict.fromkeys(names, 0), []
    others, others_rho = 0, 0
    for _ in range(random.integers(1, 14)):
        price = Fraction(int(random.integers(1, 30)), int(random.choice([7, 10, 20, 100])))
        if random.random() < 0.2:
            more = ceil(price * UNITS), ceil(price**2 / 2 * UNITS)
            rhos = {name: min(max(paid[name]) ** 2 / 2, whole[name]) for name in names}
            sums = sum(ceil(max(paid[name]) * UNITS) for name in names) + others + more[0]
            rho = sum(ceil(one * UNITS) for one in rhos.values()) + others_rho + more[1]
            fits = sums <= granted * UNITS or rho <= allowed
            assert attempt(pay, ledger, price) == fits
            if fits:
                others, others_rho = others + more[0], others_rho + more[1]
                charged.append(float(price))
            continue
        name, touched = str(random.choice(names)), random.random(cells) < 0.5
        touched[random.integers(0, cells)] = True
        after = {**paid, name: [old + price * bool(hit) for old, hit in zip(paid[name], touched)]}
        after_whole = {**whole, name: whole[name] + price**2 / 2}
        totals = {one: Cost(max(after[one]), rho=min(max(after[one]) ** 2 / 2, after_whole[one])) for one in names}
        fits = sum(ceil(total.epsilon * UNITS) for total in totals.values()) + others <= granted * UNITS
        fits |= sum(ceil(total.concentrated * UNITS) for total in totals.values()) + others_rho <= allowed
        total = totals[name]
        assert attempt(go, ledger, counts[name], total.epsilon, price, total.rho, name) == fits
        if fits:
            more = ceil(total.epsilon * UNITS) - ceil(max(paid[name]) * UNITS)
            paid, whole, counts[name] = after, after_whole, counts[name] + 1
            charged.append(float(Fraction(more, UNITS)))
    entries = pmdp.Ledger(ledger.path).entries()
    assert entries[entries["kind"] == "charge"]["epsilon"].tolist() == charged
    assert {name: len(ledger.session(name)) for name in names} == counts
    left = granted - Fraction(others + sum(ceil(max(one) * UNITS) for one in paid.values()), UNITS)
    assert ledger.remaining().epsilon == left if not delta else ledger.remaining().epsilon >= left


@pytest.mark.parametrize("seeds", [range(10), pytest.param(range(10, 500), marks=pytest.mark.slow)], ids=["few", "all"])
def test_random_programs_agree_with_fractions(tmp_path, seeds):
    for seed in seeds:
        program(tmp_path, seed)


# ---------- what can go wrong


def said(**changes):
    return lambda facts: facts["session"].update(changes)


def cheaper(facts):
    """No more than before, with sums that follow from it, for a draw that costs more."""
    facts["session"]["total"].update(epsilon="3/5", rho=None)
    facts["spent"][""], facts["units"] = [UNITS * 6 // 10, UNITS * 18 // 100], None


REWRITTEN = {
    "a smaller total": (lambda facts: facts["session"]["total"].update(epsilon="1/4"), 2),
    "a larger beginning": (said(before=[UNITS, UNITS]), 3),
    "another number": (said(count=5), 3),
    "another session": (said(name=OTHER), 3),
    "another part": (lambda facts: facts.update(part="north"), 3),
    "no session": (lambda facts: facts.pop("session"), 2),
    "less than its draw": (cheaper, 4),
}


@pytest.mark.parametrize(("change", "number"), REWRITTEN.values(), ids=REWRITTEN)
def test_a_session_that_was_rewritten_is_refused(tmp_path, change, number):
    """Entries that were hashed anew, with all after them, and noted: the sums of sessions hold a history together as well."""
    ledger = new(tmp_path, parts=("north",))
    for count, own in enumerate((HALF, HALF, Fraction(7, 10))):
        go(ledger, count, HALF + Fraction(count, 10), own)
    rewritten(ledger, number, lambda facts: None)
    assert pmdp.Ledger(ledger.path).remaining().epsilon == Fraction(3, 10)
    rewritten(ledger, number, change)
    with pytest.raises(pmdp.Refusal, match="was changed"):
        pmdp.Ledger(ledger.path)


def racing(path, session, times):
    """How often this process was the one that went on with a session that others go on with, too."""
    ledger, won = pmdp.Ledger(path), 0
    for count in range(times):
        while len(ledger.session(session)) < count:
            pass
        won += attempt(go, ledger, count, HALF, HALF, None, session)
    return won


def test_twenty_copies_go_on_once(tmp_path):
    """Twenty processes make the same six steps of one session: each step is made once. Without the count all 120 would be free."""
    ledger = new(tmp_path)
    with ProcessPoolExecutor(20, mp_context=get_context("fork")) as pool:
        won = list(pool.map(racing, [ledger.path] * 20, [ONE] * 20, [6] * 20))
    assert sum(won) == grants(ledger) == len(ledger.session(ONE)) == 6
    assert ledger.remaining().epsilon == HALF


def alone(path, number):
    ledger = pmdp.Ledger(path)
    return sum(attempt(go, ledger, count, Fraction(count + 1, 100), Fraction(1, 100), None, f"{number:064x}") for count in range(3))


def test_twenty_sessions_never_overspend(tmp_path):
    """Twenty sessions of three steps ask for 0.6 of 0.5."""
    ledger = new(tmp_path, HALF)
    with ProcessPoolExecutor(20, mp_context=get_context("fork")) as pool:
        made = sum(pool.map(alone, [ledger.path] * 20, range(20)))
    assert made == grants(ledger) == 50
    assert ledger.remaining().epsilon == 0


@pytest.mark.parametrize("point", ["charge", "redeem"])
def test_a_crash_after_the_charge_leaves_the_question_and_its_cost(tmp_path, point):
    ledger = new(tmp_path)
    go(ledger, 0, HALF, HALF)

    def asking():
        charge = go(ledger, 1, Fraction(3, 4), Fraction(1, 4), what="count(k == 7)")
        if point == "redeem":
            ledger.redeem(charge)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(asking) == -signal.SIGKILL
    again = pmdp.Ledger(ledger.path)
    lost = again.session(ONE)[1]
    assert (lost.draws[0].variable, lost.draws[0].difference, lost.cost.epsilon) == ("count(k == 7)", 1, Fraction(1, 4))
    assert again.remaining().epsilon == Fraction(1, 4)
    go(again, 2, 1, Fraction(1, 4))


def test_a_child_and_its_parent_are_two_copies(tmp_path):
    ledger = new(tmp_path)
    assert in_child(lambda: 1 - attempt(go, ledger, 0, HALF, HALF)) == 0
    assert not attempt(go, ledger, 0, HALF, HALF)
    assert attempt(go, ledger, 1, HALF, HALF)


# ---------- asking

SCHEMA = {"age": range(0, 6), "sex": ["f", "m"]}


def frame(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"age": rng.integers(0, 6, n), "sex": rng.choice(["f", "m"], n)})


def opened(folder, granted=2, *, table=None, neighbours="replace", **words):
    ledger = pmdp.Ledger(folder / "survey.ledger", epsilon=granted, create=True, neighbours=neighbours)
    table = frame() if table is None else table
    return pmdp.QuerySession(table, SCHEMA, ledger=ledger, history=folder / "asked", neighbours=neighbours, **words)


def again(session, folder, **words):
    """The same session as another process would open it."""
    words = {
        "ledger": pmdp.Ledger(folder / "survey.ledger"),
        "neighbours": session._account.saved.neighbours,
        "complete": tuple(session._account.saved.complete),
        **words,
    }
    return pmdp.QuerySession(frame(), SCHEMA, history=folder / "asked", **words)


def brute_cost(neighbours, draws):
    """What the record pays that pays most, cell by cell and pair by pair, in fractions; a draw is (weights of 7 x 3 cells, epsilon)."""
    if neighbours == "add_remove":
        return max(sum(abs(int(w[j])) * own / int(np.abs(w).max()) for w, own in draws) for j in np.ndindex(7, 3))
    spans = [int(np.ptp(w)) for w, _ in draws]
    return max(
        sum(abs(int(w[i]) - int(w[j])) * own / span for (w, own), span in zip(draws, spans))
        for i, j in itertools.product(np.ndindex(7, 3), repeat=2)
    )


def test_a_question_is_paid_for_once_and_then_free(tmp_path):
    session = opened(tmp_path)
    first = session.ask("age >= 3", width=30)
    assert (first.how, first.kind, first.epsilon, first.own) == ("paid", "posterior", session.cost, session.cost)
    assert session.ask("age >= 3", method="blue").width <= 30  # whatever the noise was; the posterior's is wider now and then
    assert session.remaining.epsilon == 2 - first.epsilon == session._account.ledger.remaining().epsilon
    head = session._account.ledger.head
    second = session.ask("age >= 3", width=30)
    assert (second.how, second.epsilon, second.own) == ("from history", 0, 0)
    assert (second.value, second.interval) == (first.value, first.interval) == (session.ask("3 <= age").value, first.interval)
    assert session.ask("2 * count(age >= 3) + 1 * count()").value == 2 * first.value + 60
    assert session._account.ledger.head == head
    third = session.ask("age >= 3", width=20, method="blue")
    assert third.how == "paid"
    assert third.width <= 20
    assert third.own < session.price("age == 0", width=20, method="blue").epsilon, "what is known makes it cheaper"


def test_questions_about_everybody_are_public_or_not(tmp_path):
    session = opened(tmp_path)
    answer = session.ask("0.5 * count()", width=1)
    assert (answer.value, answer.interval, answer.how, answer.kind) == (30, (30, 30), "public", "exact")
    (tmp_path / "other").mkdir()
    other = opened(tmp_path / "other", neighbours="add_remove")
    assert other.ask("count()", width=30).how == "paid"
    assert other.ask("count() - count()").interval == (0, 0)
    assert grants(session._account.ledger) == 0


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_a_session_costs_what_the_record_that_pays_most_pays(tmp_path, neighbours):
    """Random questions: session, ledger, price and brute force over all cells and pairs of cells agree, exactly."""
    session, rng, draws = opened(tmp_path, 50, neighbours=neighbours), np.random.default_rng(5), []
    schema = Schema.of(SCHEMA)
    for _ in range(12):
        low, high = np.sort(rng.choice(7, 2, replace=False))
        text = f"{low} <= age < {high}" if low < 6 else "age == 5"
        text += str(rng.choice(["", " & sex == 'f'", " & sex == 'm'"]))
        text = f"count({text})" if rng.random() < 0.7 else f"0.5 * count({text}) - 0.25 * sum(age)"
        own = Fraction(int(rng.integers(1, 40)), 100)
        price = session.price(text, epsilon=own)
        before = session.cost
        answer = session.ask(text, epsilon=own)
        asked = understood(text, schema)
        axes = tuple({"age": 0, "sex": 1}[name] for name in asked.columns)
        weights = np.broadcast_to(np.expand_dims(asked.weights, tuple({0, 1} - set(axes))), (7, 3))
        draws.append((weights, own))
        assert answer.own == own
        assert answer.epsilon == price.epsilon == session.cost - before
        assert session.cost == brute_cost(neighbours, draws)
    assert session._account.ledger.remaining().epsilon == 50 - Fraction(ceil(session.cost * UNITS), UNITS)
    assert session.cost < sum(own for _, own in draws)


def test_a_batch_is_priced_as_it_is_paid(tmp_path):
    session = opened(tmp_path)
    session.ask("age == 1", width=30)
    questions = ["age == 1", "age == 2", "age in [1, 2]", "sex == 'f'", "count()"]
    price, before = session.price(questions, width=30), session.cost
    assert session.cost == before
    answers = session.ask(questions, width=30)
    assert [answer.question for answer in answers] == list(price.questions)
    assert sum(answer.epsilon for answer in answers) == price.epsilon == session.cost - before
    assert tuple(answer.own for answer in answers) == price.own
    assert price.epsilon < price.separately
    assert price.fits
    assert not session.price(["age == 4", "age == 5"], width=0.5).fits
    assert "does not fit" in repr(session.price("age == 4", width=0.1))


def test_refused_questions_cost_nothing_and_change_nothing(tmp_path):
    session = opened(tmp_path, 1)
    session.ask("age == 1", width=30)
    seen = session._account.ledger.head, repr(session), (tmp_path / "asked").read_bytes()
    for words, arguments in {
        r"does not follow from what was answered so far. Write width=, or epsilon=: epsilon=0.1 would make it": {"method": "blue"},
        r"costs epsilon .* more, and 0.\d* is left in survey.ledger. Write width=[\d.]*, which fits, or ask the data owner": {"width": 1},
        r"costs epsilon 7 more, .* Write epsilon=0.\d*, which fits": {"epsilon": 7},
        r"needs noise of epsilon .* for a width of 3, which is more than epsilon=0.1. Write width=[\d.]*, or": {"width": 3, "epsilon": 0.1},
        r"method must be": {"method": "both"},
        r"width must be": {"width": -1},
        r"confidence must": {"width": 1, "confidence": 1},
        r"epsilon must": {"epsilon": 0},
    }.items():
        with pytest.raises(pmdp.Refusal, match=words):
            session.ask("sex == 'f'", **arguments)
    for asked in ("sum(sex)", "age ==", "wage > 3", 7, "age == 1.5"):
        with pytest.raises(pmdp.Refusal):
            session.ask(asked, width=30)
    assert (session._account.ledger.head, repr(session), (tmp_path / "asked").read_bytes()) == seen


def test_what_a_refusal_proposes_fits(tmp_path):
    """The width it names is paid with nearly all that is left; half of it is refused again."""
    session = opened(tmp_path, 1)
    session.ask("age == 1", width=20)
    with pytest.raises(pmdp.Refusal, match="which fits") as caught:
        session.ask("sex == 'f'", width=1)
    width = float(re.search(r"width=([\d.]*\d)", str(caught.value))[1])
    answer = session.ask("sex == 'f'", width=width, method="blue")
    assert answer.width <= width
    assert session.remaining.epsilon < Fraction(1, 5)
    with pytest.raises(pmdp.Refusal, match=r"is left in survey.ledger. (Without|Ask|Write)"):
        session.ask("sex == 'm'", width=width / 2)


def test_a_limit_of_its_own(tmp_path):
    session = opened(tmp_path, 2, epsilon=0.5)
    session.ask("age == 1", epsilon=0.5)
    assert session.remaining.epsilon == 0
    with pytest.raises(pmdp.Refusal, match="0 is left"):
        session.ask("age == 1", epsilon=0.1)
    free = pmdp.QuerySession(frame(), SCHEMA, epsilon=0.5)
    free.ask("age == 1", epsilon=0.4)
    with pytest.raises(pmdp.Refusal, match=r"left in this session's epsilon. Write epsilon=0.0999|epsilon=0.1"):
        free.ask("age == 1", epsilon=0.4)
    assert "charged to no ledger" in " ".join(repr(free).split())


def test_what_does_not_belong_together_is_refused(tmp_path):
    session = opened(tmp_path)
    ledger = session._account.ledger
    for words, arguments in {
        "is kept for neighbours='replace'": {"neighbours": "add_remove"},
        "is kept for unit='row'": {"unit": "person"},
        "unit must say": {"unit": pmdp.Individual(events=3)},
        "must be a pymc_dp.Ledger": {"ledger": "survey.ledger"},
        "name of a file": {"history": 7},
        "epsilon must": {"epsilon": -1},
    }.items():
        with pytest.raises(pmdp.Refusal, match=words):
            pmdp.QuerySession(frame(), SCHEMA, **({"ledger": ledger, "history": tmp_path / "new"} | arguments))
    for words, table, schema in (
        ("another number of records", frame(61), SCHEMA),
        ("another schema", frame(), {"age": range(6), "sex": ["m", "f"]}),
    ):
        with pytest.raises(pmdp.Refusal, match=words):
            pmdp.QuerySession(table, schema, ledger=ledger, history=tmp_path / "asked")


def test_one_part_pays(tmp_path):
    ledger = pmdp.Ledger(tmp_path / "survey.ledger", epsilon=1, create=True, parts=("north", "south"))
    session = pmdp.QuerySession(frame(), SCHEMA, ledger=ledger.part("north"), history=tmp_path / "asked")
    session.ask("age == 1", epsilon=0.75)
    assert ledger.remaining(part="south").epsilon == 1
    assert session.remaining.epsilon == Fraction(1, 4)
    with pytest.raises(pmdp.Refusal, match="another part"):
        pmdp.QuerySession(frame(), SCHEMA, ledger=ledger.part("south"), history=tmp_path / "asked")
    pmdp.QuerySession(frame(), SCHEMA, ledger=ledger.part("north"), history=tmp_path / "asked").ask("age == 1")


# ---------- going on


def test_a_session_goes_on_and_says_the_same(tmp_path):
    session = opened(tmp_path, 5)
    for text in ("age >= 3", "age == 5", "sex == 'f' & age < 4", "sum(age)", "age < 3"):
        session.ask(text, width=60)
    session.ask("age < 3", width=25)
    other = again(session, tmp_path)
    for text in ("age < 3", "age >= 3", "age == 5", "sex == 'f' & age < 4", "count(age == 5) - count(age < 3)"):
        assert other.ask(text) == session.ask(text)
    assert (other.cost, repr(other)) == (session.cost, repr(session))
    assert other.history.equals(session.history)
    answer = other.ask("age < 2", width=60)
    assert answer.how == "paid"
    with pytest.raises(pmdp.Refusal, match=r"Another copy of this session has asked since. Load it again"):
        session.ask("sex == 'm'", width=60)
    assert again(session, tmp_path).ask("age < 2") == other.ask("age < 2")


@pytest.mark.parametrize("point", ["charged", "redeemed", "read", "drawn", "saved"])
def test_a_session_survives_a_crash(tmp_path, point):
    """Killed after the charge: what it cost stands, the answer is lost unless it was saved, and the session goes on."""
    session = opened(tmp_path)
    session.ask("age == 1", epsilon=0.25)
    owner, name, after = {
        "charged": (pmdp.Ledger, "charge", True),
        "redeemed": (pmdp.Ledger, "redeem", True),
        "read": (mechanisms, "_opendp_laplace", False),
        "drawn": (mechanisms, "_opendp_laplace", True),
        "saved": (Saved, "write", True),
    }[point]

    def asking():
        killing(owner, name, after)
        session.ask("age == 2", epsilon=0.5)

    assert in_child(asking) == -signal.SIGKILL
    other = again(session, tmp_path)
    assert other.history["from"].tolist() == ["paid", "paid" if point == "saved" else "lost"]
    assert other.cost == Fraction(3, 4)
    assert other.remaining.epsilon == Fraction(5, 4)
    assert other.ask("age == 1", method="blue") == session.ask("age == 1", method="blue")
    if point == "saved":
        assert other.ask("age == 2").how == "from history"
    else:
        assert "1 of them lost" in repr(other)
        with pytest.raises(pmdp.Refusal, match="does not follow"):
            other.ask("age == 2", method="blue")
    later = other.ask("age == 2", epsilon=0.25)
    assert later.epsilon == Fraction(1, 4)
    third = again(session, tmp_path)
    assert (third.cost, third.ask("age == 2")) == (1, other.ask("age == 2"))


@pytest.mark.parametrize("stored", [True, False])
def test_a_failure_inside_loses_the_answer_and_not_the_cost(tmp_path, monkeypatch, stored):
    session = opened(tmp_path) if stored else pmdp.QuerySession(frame(), SCHEMA)

    def fail(*_):
        raise ValueError("7123.456")

    with monkeypatch.context() as patch:
        patch.setattr(mechanisms, "_opendp_laplace", fail)
        with pytest.raises(pmdp.PrivateComputationError, match="stays spent") as caught:
            session.ask("age == 1", epsilon=0.5)
    assert caught.value.__context__ is None
    assert session.history["from"].tolist() == ["lost"]
    assert session.cost == HALF
    assert session.ask("age == 2", epsilon=0.25).epsilon == Fraction(1, 4)
    if stored:
        assert again(session, tmp_path).ask("age == 2") == session.ask("age == 2")


def test_a_session_without_a_ledger_is_opened_again_after_a_loss(tmp_path, monkeypatch):
    """It was not: its file said that it held the answers to the second and third question, and to no first."""
    words = {"history": tmp_path / "asked", "neighbours": "add_remove"}
    session = pmdp.QuerySession(frame(), SCHEMA, **words)
    with monkeypatch.context() as patch:
        patch.setattr(mechanisms, "_opendp_laplace", lambda *_: 1 / 0)
        with pytest.raises(pmdp.PrivateComputationError):
            session.ask("age == 1", epsilon=0.5)
    for age in (2, 3):
        session.ask(f"age == {age}", epsilon=0.25)
    other = pmdp.QuerySession(frame(), SCHEMA, **words)
    assert [other.ask(f"age == {age}") for age in (2, 3)] == [session.ask(f"age == {age}") for age in (2, 3)]  # given both answers
    assert other.ask("age == 4", epsilon=0.25).how == "paid"
    third = pmdp.QuerySession(frame(), SCHEMA, **words)
    assert third.history["from"].tolist() == ["paid"] * 3
    assert third.cost == Fraction(1, 4)


def test_what_cannot_be_saved_is_kept(tmp_path, monkeypatch):
    session = opened(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
        with pytest.raises(pmdp.Refusal, match="asked cannot be written"):
            session.ask("age == 1", epsilon=0.5)
    assert [path.name for path in tmp_path.glob("*.new")] == []
    assert session.ask("age == 1").how == "from history"
    session.ask("age == 2", epsilon=0.25)
    assert again(session, tmp_path).ask("age == 1") == session.ask("age == 1")


CHANGED = {
    "an answer more": lambda facts: facts["items"].append({**facts["items"][0], "number": 2}),
    "another question": lambda facts: facts["items"][0].update(question="count(age == 4)"),
    "less noise": lambda facts: facts["items"][0].update(scale=(0.5).hex()),
    "more noise": lambda facts: facts["items"][0].update(scale=(50.0).hex()),
    "another epsilon": lambda facts: facts["items"][0].update(epsilon="1/7"),
    "another session": lambda facts: facts.update(salt="5" * 32),
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_a_file_that_the_ledger_does_not_know_is_refused(tmp_path, change):
    session = opened(tmp_path)
    for age in range(2):
        session.ask(f"age == {age}", epsilon=0.5)
    facts = json.loads((tmp_path / "asked").read_text())
    change(facts)
    (tmp_path / "asked").write_text(sealed(facts))
    with pytest.raises(pmdp.Refusal, match=r"does not remember the charge|damaged"):
        again(session, tmp_path)


@pytest.mark.parametrize("content", ["", "{}", "[1, 2", '{"format": 1}', '{"format": 99, "items": []}', "\0" * 9])
def test_a_damaged_file_is_refused(tmp_path, content):
    session = opened(tmp_path)
    (tmp_path / "asked").write_text(content)
    with pytest.raises(pmdp.Refusal, match="is not a session that this version can read, or is damaged"):
        again(session, tmp_path)


def test_an_older_file_only_lacks_answers(tmp_path):
    session = opened(tmp_path)
    session.ask("age == 1", epsilon=0.5)
    older = (tmp_path / "asked").read_bytes()
    session.ask("age == 2", epsilon=0.5)
    (tmp_path / "asked").write_bytes(older)
    other = again(session, tmp_path)
    assert (other.cost, other.history["from"].tolist()) == (1, ["paid", "lost"])


@pytest.mark.parametrize("stored", [True, False])
def test_what_another_copy_wrote_is_never_written_over(tmp_path, stored):
    """A copy that adds a release, or asks, when another one has asked: refused before anything is charged, and nothing is lost."""
    data, words = frame(), {"history": tmp_path / "asked", "complete": True}
    words["ledger"] = pmdp.Ledger(tmp_path / "survey.ledger", epsilon=9, create=True) if stored else None
    first, second, third = (pmdp.QuerySession(data, SCHEMA, **words) for _ in range(3))
    released = pmdp.release(table_model(data), epsilon=1, ledger=words["ledger"])
    answer = first.ask("age == 1", epsilon=1, method="blue")
    with pytest.raises(pmdp.Refusal, match=r"Another copy of this session has asked since.* Load it again"):
        second.add(released, {"sex": ["age", "sex"]}, levels={"sex": ["f", "m"]})
    assert len(second.history) == 0
    again = pmdp.QuerySession(data, SCHEMA, **words)
    assert again.history["from"].tolist() == ["paid"]
    assert again.ask("age == 1", method="blue").value == answer.value
    assert again.add(released, {"sex": ["age", "sex"]}, levels={"sex": ["f", "m"]}) == 12
    for older in (first, third):
        seen = older.cost
        with pytest.raises(pmdp.Refusal, match="Another copy of this session has asked since"):
            older.ask("age == 2", epsilon=1)
        assert older.cost == seen
    newest = pmdp.QuerySession(data, SCHEMA, **words)
    assert newest.history["from"].tolist() == ["paid"] + ["release"] * 12
    assert newest.ask("age == 2", epsilon=1).how == "paid"
    (tmp_path / "asked").unlink()
    with pytest.raises(pmdp.Refusal, match="asked is gone"):
        newest.ask("age == 3", epsilon=1)
    assert newest.cost == 2


def test_sessions_are_not_copied(tmp_path):
    session = opened(tmp_path)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="holds records"):
            copied(session)


def racing_session(folder, number):
    """How many of six questions this process asked, loading the session again when another one was first."""
    won = 0
    while True:
        try:
            session = pmdp.QuerySession(frame(), SCHEMA, ledger=pmdp.Ledger(folder / "survey.ledger"), history=folder / "asked")
            todo = [age for age in range(6) if f"count(age == {age})" not in set(session.history["question"])]
            if not todo:
                return won
            session.ask(f"age == {todo[0]}", epsilon=0.5)
            won += 1
        except pmdp.Refusal as reason:
            assert "Another copy" in str(reason) or "does not remember the charge" in str(reason), reason  # noqa: PT017


def test_ten_processes_share_a_session(tmp_path):
    """Ten processes ask six disjoint questions of one session: each is charged once, and all together cost twice one of them at most.

    Each would be free for a copy that does not know of the others.
    """
    opened(tmp_path, 5)
    with ProcessPoolExecutor(10, mp_context=get_context("fork")) as pool:
        won = list(pool.map(racing_session, [tmp_path] * 10, range(10)))
    ledger = pmdp.Ledger(tmp_path / "survey.ledger")
    assert sum(won) == grants(ledger) == 6
    assert ledger.remaining().epsilon == 5 - 1


# ---------- both worlds


def table_model(data):
    with pm.Model() as model:
        pm.Bernoulli("sex", pm.Beta("p", 1, 1, shape=6)[pm.Data("age", data["age"].to_numpy())], observed=(data["sex"] == "m").to_numpy())
    return model


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_a_release_tells_a_session_what_it_says(tmp_path, neighbours):
    data = frame()
    session = opened(tmp_path, 3, table=data, neighbours=neighbours, complete=True)
    released = pmdp.release(table_model(data), epsilon=0.25, ledger=session._account.ledger, neighbours=neighbours)
    head, cost = session._account.ledger.head, session.cost
    assert session.add(released, {"sex": ["age", "sex"]}, levels={"sex": ["f", "m"]}) == 12
    assert (session._account.ledger.head, session.cost) == (head, cost)
    one = session.ask("age == 4 & sex == 'm'", method="blue")
    assert one.how == "from history"
    noisy = released["sex"].noisy.astype(float)
    if neighbours == "replace":  # all twelve together are 60
        noisy += (60 - noisy.sum()) / 12
    assert one.value == pytest.approx(noisy[4, 1])
    both = session.ask("age == 4", method="blue")
    assert both.value == pytest.approx(noisy[4].sum())
    sharper = session.ask("age == 4", width=both.width / 2, method="blue")
    assert sharper.how == "paid"
    assert sharper.own < pmdp.QuerySession(data, SCHEMA, neighbours=neighbours).price("age == 4", width=both.width / 2).epsilon
    other = again(session, tmp_path)
    assert other.ask("age == 4") == session.ask("age == 4")
    assert other.history["from"].tolist() == ["paid"] + ["release"] * 12
    with pytest.raises(pmdp.Refusal, match="added before"):
        other.add(released, {"sex": ["age", "sex"]}, levels={"sex": ["f", "m"]})


def test_releases_that_say_something_else_are_refused(tmp_path):
    data = frame()
    session = opened(tmp_path, 9, table=data, complete=True)
    ledger = session._account.ledger
    with pytest.raises(pmdp.Refusal, match=r"If age, sex has none, promise it"):
        pmdp.QuerySession(data, SCHEMA, ledger=ledger).add(
            pmdp.release(table_model(data), epsilon=1, ledger=ledger), {"sex": ["age", "sex"]}, levels={"sex": ["f", "m"]}
        )
    with pm.Model() as total:
        pm.Poisson("age", pm.Gamma("rate", 2, 1), observed=data["age"].to_numpy())
    for words, released, columns in (
        ("did not pay", pmdp.release(table_model(data), epsilon=1), {"sex": ["age", "sex"]}),
        ("it is not known of which", pmdp.release(table_model(data), epsilon=1, ledger=ledger), None),
        ("needs 2 different columns", pmdp.release(table_model(data), epsilon=1, ledger=ledger), {"sex": "sex"}),
        ("columns must give", pmdp.release(table_model(data), epsilon=1, ledger=ledger), {"wage": "sex"}),
        ("not released as counts", pmdp.release(total, epsilon=1, bounds={"age": (0, 5)}, ledger=ledger), None),
        ("no column 'wage'", pmdp.release(table_model(data), epsilon=1, ledger=ledger), {"sex": ["wage", "sex"]}),
        ("levels of sex are text", pmdp.release(table_model(data), epsilon=1, ledger=ledger), {"sex": ["sex", "age"]}),
        ("protects something else", pmdp.release(table_model(data), epsilon=1, neighbours="add_remove"), {"sex": ["age", "sex"]}),
        ("takes releases", "release", None),
    ):
        with pytest.raises(pmdp.Refusal, match=words):
            session.add(released, columns, levels={"sex": ["f", "m"]} if columns == {"sex": ["age", "sex"]} else None)
    gaussian = pmdp.Ledger(tmp_path / "g", epsilon=3, delta=1e-6, create=True)
    released = pmdp.release(table_model(data), epsilon=1, delta=1e-6, mechanism="gaussian", ledger=gaussian)
    other = pmdp.QuerySession(data, SCHEMA, ledger=gaussian, complete=True)
    with pytest.raises(pmdp.Refusal, match="Laplace noise"):
        other.add(released, {"sex": ["age", "sex"]}, levels={"sex": ["f", "m"]})
    assert len(session.history) == 0


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_an_answer_is_observed_with_its_noise(tmp_path, neighbours):
    """The density of the model is that of the exact law plus discrete Laplace noise, summed term by term."""
    session = opened(tmp_path, 9, neighbours=neighbours)
    session.ask("age >= 3", epsilon=0.5)
    answer = session.ask("age >= 3", epsilon=1)
    del answer
    best = max(session._account.items, key=lambda item: item.answered.epsilon).answered
    k, q = np.arange(0, 61 if neighbours == "replace" else 400), np.exp(-1 / best.scale)
    noise = (1 - q) / (1 + q) * q ** np.abs(best.noisy - k)
    with pm.Model() as model:
        theta = pm.Uniform("theta", 0, 1)
        if neighbours == "replace":
            session.observe("old", "age >= 3", probability=theta)
        else:
            session.observe("old", "age >= 3", rate=60 * theta)
    for at in (0.2, 0.5, 0.7):
        exact = stats.binom.pmf(k, 60, at) if neighbours == "replace" else stats.poisson.pmf(k, 60 * at)
        found = model.compile_logp([model["old"]], mode="FAST_COMPILE")({"theta_interval__": np.log(at / (1 - at))})
        assert found == pytest.approx(np.log((exact * noise).sum()), rel=1e-6)
    with pm.Model() as other:
        mu = pm.Normal("mu", 0, 100)
        session.observe("old", "age >= 3", value=mu)
    found = other.compile_logp([other["old"]], mode="FAST_COMPILE")({"mu": 41.0})
    assert found == pytest.approx(np.log((1 - q) / (1 + q)) - abs(best.noisy - 41) / best.scale)
    assert np.isfinite(pm.draw(model["old"], random_seed=1))
    with pytest.raises(pmdp.Refusal, match="has no noisy answer of its own"):
        session.observe("other", "age >= 4", value=1.0)
    with pytest.raises(pmdp.Refusal, match="Write probability=, rate= or value="):
        session.observe("other", "age >= 3")


def test_questions_about_a_model_are_paid_from_the_same_ledger(tmp_path):
    session = opened(tmp_path, 9)
    with pm.Model() as model:
        pm.Bernoulli("sex", pm.Beta("p", 1, 1), observed=(frame()["sex"] == "m").to_numpy())
    tree = session.ask_model({"twice": lambda draw: 2 * draw.p}, epsilon=2, model=model)
    assert 0 < float(tree["answers"]["twice"]) < 2
    assert session.remaining.epsilon == 7
    session.ask_model({"one": lambda draw: draw.p, "two": lambda draw: draw.p}, epsilon=1, model=model, fresh=True, method="exact")
    assert session.remaining.epsilon == 6


@pytest.mark.parametrize("words", [{"delta": 1e-6}, {"delta": 0}, {"unit": "house"}, {"ledger": None}, {"metod": "exact"}])
def test_questions_about_a_model_are_of_pure_epsilon_and_of_the_session(tmp_path, words):
    with pm.Model() as model:
        pm.Bernoulli("sex", pm.Beta("p", 1, 1), observed=(frame()["sex"] == "m").to_numpy())
    session = opened(tmp_path, 9)
    with pytest.raises(pmdp.Refusal, match=f"takes no {min(words)}: it is of pure epsilon"):
        session.ask_model({"p": lambda draw: draw.p}, epsilon=1, model=model, **words)
    assert (session.cost, session.remaining.epsilon) == (0, 9)


class Refuses:
    """An answer of a question that cannot be an array, and says so as the library does."""

    def __array__(self, *args, **kwargs):
        raise pmdp.Refusal("It is no array. Write another.")


@pytest.mark.parametrize("raises", [False, True], ids=["while an array is made", "at once"])
def test_a_draw_that_a_question_saw_is_not_given_back(tmp_path, raises):
    with pm.Model() as model:
        pm.Bernoulli("sex", pm.Beta("p", 1, 1), observed=(frame()["sex"] == "m").to_numpy())
    session, seen = pmdp.QuerySession(frame(), SCHEMA, epsilon=1, history=tmp_path / "asked"), []

    def looks(draw):
        seen.append(float(draw.p))
        if raises:
            raise pmdp.Refusal("Not today. Write another.")
        return Refuses()

    with pytest.raises(pmdp.Refusal) as refusal:
        session.ask_model({"p": looks}, epsilon=1, model=model)
    assert (len(seen), session.cost) == (1, 1)
    assert refusal.value.tree["posterior"]["p"].item() == seen[0]  # what was paid for


def test_questions_about_a_model_count_in_what_a_session_may_cost(tmp_path):
    with pm.Model() as model:
        pm.Bernoulli("sex", pm.Beta("p", 1, 1), observed=(frame()["sex"] == "m").to_numpy())
    asked = {"p": lambda draw: draw.p}
    session = pmdp.QuerySession(frame(), SCHEMA, epsilon=1, history=tmp_path / "asked")
    with pytest.raises(pmdp.Refusal, match=r"costs epsilon 5, and 1 is left in this session's epsilon"):
        session.ask_model(asked, epsilon=5, model=model)
    with pytest.raises(pmdp.Refusal, match="questions must be functions"):
        session.ask_model({}, epsilon=0.5, model=model)
    assert session.cost == 0
    session.ask_model(asked, epsilon=0.5, model=model)
    assert (session.cost, session.remaining.epsilon) == (HALF, HALF)
    with pytest.raises(ZeroDivisionError):  # of the question, after it was paid for
        session.ask_model({"p": lambda draw: 1 / 0}, epsilon=0.125, model=model)
    other = pmdp.QuerySession(frame(), SCHEMA, epsilon=1, history=tmp_path / "asked")
    assert other.cost == session.cost == Fraction(5, 8)
    assert other.price("age == 1", epsilon=0.375) == session.price("age == 1", epsilon=0.375)
    assert (other.price("age == 1", epsilon=0.375).fits, other.price("age == 1", epsilon=0.5).fits) == (True, False)
    assert other.ask("age == 1", epsilon=0.375).epsilon == Fraction(3, 8)
    assert (other.cost, other.remaining.epsilon) == (1, 0)
    assert "epsilon 1, left" in repr(other)


def test_what_a_session_shows(tmp_path):
    session = opened(tmp_path)
    assert "nothing was asked yet" in repr(session)
    assert "QuerySession" in session._repr_html_()
    answer = session.ask("age >= 3", width=30)
    assert repr(answer).startswith(f"count(age >= 3): {answer.value:.6g}, 95 % in [")
    assert "paid epsilon" in repr(answer)
    assert "count(age &gt;= 3)" in answer._repr_html_()
    assert "from history" in repr(session.ask("age >= 3"))
    assert repr(session.ask("count()")) == "count(): 60; public"
    assert "count(age &gt;= 3)" in session._repr_html_()
    assert "1 question paid for" in repr(session)
    assert float(answer) == answer.value


# ---------- what history says


def test_the_posterior_is_said_where_it_is_quick(tmp_path, monkeypatch):
    """By default given every answer; fixed-question intervals on request, and for histories that are too large to be drawn in a second."""
    session = opened(tmp_path, 50)
    session.ask(["age >= 3", "age == 5", "sex == 'f'"], epsilon=0.5)
    posterior, blue = session.ask("age == 5"), session.ask("age == 5", method="blue")
    assert (posterior.kind, blue.kind) == ("posterior", "fixed-question interval (BLUE)")
    assert posterior.interval[0] >= 0, "no number of records is negative"
    assert blue.value == session._account.items[1].answered.noisy
    assert session.ask("age == 5", method="posterior") == posterior
    wide = session.ask("age == 5", confidence=0.99)
    assert wide.kind == "posterior"
    assert wide.interval[0] <= posterior.interval[0] <= posterior.interval[1] <= wide.interval[1]
    session.ask(["age == 5"] * 40, epsilon=Fraction(1, 100), method="blue")
    assert session.ask("age == 5").kind == "posterior"
    monkeypatch.setattr("pymc_dp.queries.plan.QUICK", 100)
    assert session.ask("age == 5").kind == "fixed-question interval (BLUE)"
    assert session.ask("age == 5", method="posterior").kind == "posterior"


def test_a_question_that_the_answers_leave_open(tmp_path):
    """The posterior says it, and says so; it pays where a width is asked for, because the prior alone is no answer."""
    session = opened(tmp_path)
    with pytest.raises(pmdp.Refusal, match="does not follow"):
        session.ask("age == 4")
    session.ask("age >= 3", epsilon=0.5)
    answer = session.ask("age == 4")
    assert (answer.kind, answer.how, answer.epsilon) == ("posterior, not determined by the answers", "from history", 0)
    assert session.ask("age == 4", width=59).how == "paid"
    assert session.ask("age == 4").kind == "posterior"
    with pytest.raises(pmdp.Refusal, match="does not follow"):
        session.ask("age == 3", method="blue")


def test_a_narrow_posterior_pays_nothing(tmp_path):
    """Nothing is paid for a width that the posterior has; the price of a narrower one is what it costs."""
    session = opened(tmp_path, 50)
    session.ask("age >= 3", epsilon=1)
    found = session.ask("age >= 3")
    assert found.kind == "posterior"
    head = session._account.ledger.head
    assert session.price("age >= 3", width=found.width).epsilon == 0
    assert session.ask("age >= 3", width=found.width) == found
    assert session._account.ledger.head == head
    narrower = session.price("age >= 3", width=found.width / 2)
    assert narrower.epsilon > 0
    assert session.ask("age >= 3", width=found.width / 2).epsilon == narrower.epsilon


def test_the_posterior_is_as_narrow_as_was_asked(tmp_path):
    """Its ends are known to a fiftieth of its length, so a twentieth less is planned for; with blue, all of it.

    Of one answer's interval the ends are quantiles of 4,000 draws: 2.3 % of its length is a standard deviation, and 5 % seldom.
    """
    session = opened(tmp_path, 50)
    assert session.price("age >= 3", width=20).own == session.price("age >= 3", width=19, method="blue").own
    widths = [session.ask("age >= 3", width=width).width / width for width in (40, 30, 24, 20, 16)]
    assert sum(width <= 1 for width in widths) >= 3


def test_the_probability_that_an_answer_is_larger(tmp_path):
    session = opened(tmp_path, 50)
    assert [session.probability("count()", above) for above in (59, 60)] == [1, 0]
    with pytest.raises(pmdp.Refusal, match="does not follow"):
        session.probability("age >= 3", 30)
    session.ask("age >= 3", epsilon=1)
    noisy, q = session._account.items[0].answered.noisy, np.exp(-1 / session._account.items[0].answered.scale)
    for method in ("posterior", "blue", None):
        falling = [session.probability("age >= 3", above, method=method) for above in range(-1, 61)]
        assert falling == sorted(falling, reverse=True)
        assert falling[0] > 0.99
    # By the law of the noise: P(answer > noisy + 1) = P(noise < -1).
    assert session.probability("age >= 3", noisy + 1, method="blue") == pytest.approx(q**2 / (1 + q))
    drawn = session.posterior()["posterior"]["count(age >= 3)"]
    assert session.probability("age >= 3", 30) == float((drawn > 30).mean())
    for above in (float("nan"), "30", True, 10**400):
        with pytest.raises(pmdp.Refusal, match="above must be"):
            session.probability("age >= 3", above)


def test_extremes_are_answered_or_refused(tmp_path):
    """Widths, confidences and noises of any size; what can be said of noise that is larger than any table is said."""
    for neighbours in ("replace", "add_remove"):
        session = pmdp.QuerySession(frame(), SCHEMA, neighbours=neighbours)
        for width in (1e300, 10**400, float("inf"), float("nan"), True, "7"):
            with pytest.raises(pmdp.Refusal):
                session.ask("age == 1", width=width)
        assert session.cost == 0
        far = session.ask("age == 1", width=1e12, method="blue")
        assert 0.9e12 < far.width <= 1e12
        assert far.epsilon < Fraction(1, 10**10)
        assert session.ask("age == 1", epsilon=Fraction(1, 10**12)).how == "paid"
        session.ask("age == 1", epsilon=2)
        assert session.ask("age == 1", confidence=0.99).kind == "posterior"
        assert session.ask("age == 1", confidence=0.999).kind == "fixed-question interval (BLUE)"
        assert session.ask(("age == 1", "age == 1"))[1] == session.ask("age == 1")
        assert list(session.posterior("age == 1")["posterior"].data_vars) == ["count(age == 1)"]


def test_draws_of_answers_are_for_arviz(tmp_path):
    session = opened(tmp_path, 50)
    with pytest.raises(pmdp.Refusal, match="Nothing was answered yet"):
        session.posterior()
    session.ask(["age >= 3", "sex == 'f'"], epsilon=1)
    head = session._account.ledger.head
    tree = session.posterior()
    assert list(tree["posterior"].data_vars) == ["count(age >= 3)", "count(sex == 'f')"]
    assert tree.attrs["cost"] == "2"
    assert az.summary(tree).shape[0] == 2
    other = session.posterior(["age < 3", "age == 4 & sex == 'm'", "sum(age)"])
    assert (other["posterior"]["count(age < 3)"] + tree["posterior"]["count(age >= 3)"] <= 60).all()
    assert set(other["posterior"].sizes) == {"chain", "draw"}
    assert session._account.ledger.head == head


def test_a_batch_is_paid_as_a_whole_or_not_at_all(tmp_path):
    session = opened(tmp_path, 1, neighbours="add_remove")
    questions = [f"age == {age}" for age in range(6)]
    answers = session.ask(questions, epsilon=0.75)
    assert [answer.epsilon for answer in answers] == [Fraction(3, 4)] + [0] * 5
    assert [answer.own for answer in answers] == [Fraction(3, 4)] * 6
    seen = session._account.ledger.head, session.cost
    with pytest.raises(pmdp.Refusal, match=r"These 2 questions cost epsilon 0.4 more, and 0.25 is left in survey.ledger. Ask fewer"):
        session.ask(["sex == 'f'", "sex == 'f' & age < 3"], epsilon=0.2)
    assert (session._account.ledger.head, session.cost) == seen
    assert session.ask(["sex == 'f'"], epsilon=0.2)[0].epsilon == Fraction(1, 5)
    assert session.ask([]) == []
    assert session.price([]).epsilon == 0


def test_a_thousand_questions_take_milliseconds_each(tmp_path):
    """From the answers to all ages: under 30 ms of the processor each on a slow machine, and the session is read back as it was."""
    ledger, rng = pmdp.Ledger(tmp_path / "survey.ledger", epsilon=5, create=True), np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(0, 100, 5000)})
    session = pmdp.QuerySession(table, {"age": range(100)}, ledger=ledger, history=tmp_path / "asked")
    session.ask([f"age == {age}" for age in range(100)], epsilon=0.5)
    assert session.cost == 1
    questions = [f"{low} <= age < {high}" for low, high in np.sort(rng.choice(100, (1000, 2)), axis=1) if low < high]
    start = time.process_time()
    answers = [session.ask(question) for question in questions]
    assert (time.process_time() - start) / len(questions) < 0.03
    assert session.cost == 1
    other = pmdp.QuerySession(table, {"age": range(100)}, ledger=ledger, history=tmp_path / "asked")
    assert [other.ask(question) for question in questions[:50]] == answers[:50]


# ---------- before it is paid


def test_what_cannot_be_said_is_refused_before_it_is_paid(tmp_path):
    session = opened(tmp_path)
    with pytest.raises(pmdp.Refusal, match="too close to 1"):
        session.ask(["age == 2", "age == 3"], epsilon=0.5, confidence=1 - 1e-12, method="blue")
    assert (session.cost, len(session.history)) == (0, 0)
    assert grants(session._account.ledger) == 0


@pytest.mark.parametrize("method", [None, "posterior"])
def test_a_posterior_that_fails_leaves_the_other_interval(tmp_path, monkeypatch, method):
    """What was paid for is said, with the interval that was known before; what is free may fail."""
    session = opened(tmp_path)
    expected = session.price("age == 2", epsilon=0.5).epsilon

    def fail(*_):
        raise FloatingPointError

    with monkeypatch.context() as patch:
        patch.setattr("pymc_dp.queries.inference.completion_of", fail)
        answer = session.ask("age == 2", epsilon=0.5, method=method)
    assert (answer.kind, answer.how, answer.epsilon) == ("fixed-question interval (BLUE)", "paid", expected)
    assert answer == replace(session.ask("age == 2", method="blue"), how="paid", epsilon=expected, own=expected)


def test_a_charge_that_fails_in_a_list_loses_what_was_charged(tmp_path, monkeypatch):
    """The third of four: the first two are charged and lost, and the session goes on from there."""
    session, charged = opened(tmp_path), []
    charge = pmdp.Ledger.charge

    def third_fails(ledger, *given, **words):
        charged.append(given)
        if len(charged) == 3:
            raise pmdp.Refusal("The disk is full. Make room.")
        return charge(ledger, *given, **words)

    with monkeypatch.context() as patch:
        patch.setattr(pmdp.Ledger, "charge", third_fails)
        with pytest.raises(pmdp.Refusal, match="disk is full"):
            session.ask(["age == 1", "age == 2", "sex == 'f'", "sex == 'm'"], epsilon=0.25)
    assert session.history["from"].tolist() == ["lost", "lost"]
    assert session.cost == 2 - session.remaining.epsilon == HALF
    assert session.ask("sex == 'f'", epsilon=0.25).how == "paid"
    other = again(session, tmp_path)
    assert (repr(other), other.ask("sex == 'f'")) == (repr(session), session.ask("sex == 'f'"))


@pytest.mark.parametrize(
    "words",
    [
        {"epsilon": 10**40}, {"epsilon": 1e308}, {"epsilon": 1e-300}, {"epsilon": Fraction(1, 10**400)}, {"width": 1e17},
        {"width": 10**400},
        {"width": 5e-324}, {"width": 5000, "confidence": 1e-6}, {"width": 7, "confidence": Fraction(1, 10**400)}, {"width": 1e300},
        {"width": 1e-300, "epsilon": 1e-300}, {"epsilon": 1000}, {"epsilon": 0.1 + 0.2},
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["blue", None])
def test_any_number_is_answered_or_refused(words, method):
    """Before the charge: whatever is charged is answered."""
    session = pmdp.QuerySession(frame(), SCHEMA)
    try:
        session.price("age == 1", method=method, **words)
        assert session.ask("age == 1", method=method, **words).how == "paid"
    except pmdp.Refusal:
        assert session.cost == 0
    with pytest.raises(pmdp.Refusal):
        session.probability("age == 1", 10**400)


@pytest.mark.parametrize(
    "change",
    [
        {"question": "count()"}, {"question": "age < 6"}, {"epsilon": "0"}, {"epsilon": "-1"}, {"epsilon": "1/0"},
        {"epsilon": "1e999999999"},
        {"epsilon": 1}, {"noisy": 10**400}, {"noisy": 2**63}, {"scale": 3}, {"scale": "0x1p+9999"}, {"question": 7}, {"number": 0.5},
    ],
)  # fmt: skip
def test_an_item_that_cannot_be_is_refused(tmp_path, change):
    """Without a ledger the file is believed, as far as it can be."""
    pmdp.QuerySession(frame(), SCHEMA, history=tmp_path / "asked", complete=True).ask("age == 1", epsilon=1, method="blue")
    facts = json.loads((tmp_path / "asked").read_text())
    facts["items"][0].update(change)
    (tmp_path / "asked").write_text(sealed(facts))
    with pytest.raises(pmdp.Refusal, match="is not a session that this version can read, or is damaged"):
        pmdp.QuerySession(frame(), SCHEMA, history=tmp_path / "asked", complete=True)


def test_a_long_list_keeps_one_table_of_pairs():
    """Not one for every question of it: of K disjoint questions these would be 8 K^3 / 3 bytes, three times."""
    session = pmdp.QuerySession(pd.DataFrame({"age": [1, 2, 3]}), {"age": range(300)})
    tracemalloc.start()
    try:
        session.price([f"age == {age}" for age in range(300)], epsilon=0.1, method="blue")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60e6, f"{peak / 1e6:.0f} MB"
