"""Sessions of questions: charged by what the record that pays most has paid, durable, and never twice as two copies.

Tests that race or kill state in their docstring what they would find; sums are compared with fractions kept beside the ledger.
"""

import os
import signal
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from math import ceil
from multiprocessing import get_context

import numpy as np
import pytest
from test_ledger import attempt, grants, in_child, new, pay, rewritten

import pymc_dp as pmdp
from pymc_dp import mechanisms
from pymc_dp.accounting import Cost, rho_of
from pymc_dp.ledger import UNITS, Step
from pymc_dp.mechanisms import Draw

ONE, OTHER, HALF = "1" * 32, "2" * 32, Fraction(1, 2)


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
    allowed = int(rho_of(granted, pmdp.accounting.exact_delta(delta)) * UNITS) if delta else 0
    cells, names = 4, [ONE, OTHER, "3" * 32]
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
    return sum(attempt(go, ledger, count, Fraction(count + 1, 100), Fraction(1, 100), None, f"{number:032x}") for count in range(3))


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
