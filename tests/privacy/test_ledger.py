"""The ledger: no release without an earlier durable charge, never more than was granted, whatever processes, crashes and files do.

Tests that race or kill state in their docstring what they would find; sums are compared with fractions kept beside the ledger.
"""

import copy
import fcntl
import json
import os
import pickle
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction
from math import ceil, nan
from multiprocessing import get_context

import numpy as np
import pymc as pm
import pytest

import pymc_dp as pmdp
from pymc_dp.privacy import budget, mechanisms
from pymc_dp.privacy import journal as module
from pymc_dp.privacy.accounting import Cost, rho_of
from pymc_dp.privacy.budget import UNITS
from pymc_dp.privacy.charges import Charge
from pymc_dp.privacy.receipts import Draw, Receipt


def drawn(epsilon, mechanism="laplace"):
    """One draw with Laplace noise that costs no more than epsilon, and its cost."""
    scale = mechanisms.Laplace().calibrate(1, 1, Cost(Fraction(epsilon)))
    return Cost(Fraction(epsilon)), [Draw("y", mechanism, 1, 1, scale, 1)]


def pay(ledger, epsilon, **words):
    return ledger.charge(*drawn(epsilon), **({"neighbours": "replace", "unit": "row"} | words))


def new(folder, epsilon=1, **words):
    return pmdp.Ledger(folder / "survey.ledger", epsilon=epsilon, create=True, **words)


def model(value=1):
    with pm.Model() as made:
        pm.Bernoulli("y", pm.Beta("theta", 1, 1), observed=np.full(20, value))
    return made


def grants(ledger):
    return int((ledger.entries()["kind"] == "charge").sum())


# ---------- paying


def test_a_release_pays_and_says_where(tmp_path):
    ledger = new(tmp_path, 1.0)
    released = pmdp.release(model(), epsilon=0.3, ledger=ledger)
    assert released.ledger_head == ledger.head
    assert ledger.remaining().epsilon == Fraction(7, 10)
    row = ledger.entries().iloc[-1]
    assert (row["kind"], row["what"], row["mechanism"], row["epsilon"], row["redeemed"]) == ("charge", "y", "laplace", 0.3, True)
    private = pmdp.rewrite(model(), released)
    tree = pmdp.annotate(pm.sample_prior_predictive(3, model=private, random_seed=1), released)
    assert tree["privacy"].attrs["ledger_head"] == ledger.head
    released.to_netcdf(tmp_path / "release.nc")
    assert pmdp.Release.from_netcdf(tmp_path / "release.nc").ledger_head == ledger.head


def test_sampling_pays_once(tmp_path):
    ledger = new(tmp_path)
    tree = pmdp.sample(
        20, tune=20, chains=1, model=model(), epsilon=0.25, ledger=ledger, progressbar=False, compute_convergence_checks=False
    )
    assert tree["privacy"].attrs["ledger_head"] == ledger.head
    assert ledger.remaining().epsilon == Fraction(3, 4)


def test_ten_charges_of_a_tenth_are_one(tmp_path):
    ledger = new(tmp_path)
    for _ in range(10):
        pay(ledger, Fraction(1, 10))
    assert ledger.remaining().epsilon == 0
    with pytest.raises(pmdp.Refusal, match="0 is left"):
        pay(ledger, Fraction(1, 10**9))


def test_what_does_not_fit_is_refused_with_what_would(tmp_path):
    ledger = new(tmp_path)
    pay(ledger, Fraction(4, 5))
    before = ledger.head
    with pytest.raises(
        pmdp.Refusal, match=r"costs epsilon 0.5 and 0.2 is left in survey.ledger. Lower epsilon to 0.2, or ask the data owner"
    ):
        pmdp.release(model(), epsilon=0.5, ledger=ledger)
    assert ledger.head == before
    pmdp.release(model(), epsilon=0.2, ledger=ledger)


def test_units_are_rounded_up_and_grants_down(tmp_path):
    ledger = new(tmp_path, Fraction(2, 3))
    pay(ledger, Fraction(1, 3))
    assert ledger.remaining().epsilon == Fraction(2 * UNITS // 3 - -(-UNITS // 3), UNITS)
    with pytest.raises(pmdp.Refusal, match="is left"):
        pay(ledger, Fraction(1, 3))
    other = pmdp.Ledger(tmp_path / "rho", epsilon=1, delta=1e-6, create=True)
    pay(other, Fraction(1, 7))
    granted = int(rho_of(Fraction(1), Fraction(1, 10**6)) * UNITS)
    assert other.granted.rho == Fraction(granted, UNITS)
    assert other.remaining().rho == Fraction(granted - -(-UNITS // (2 * 7**2)), UNITS)


@pytest.mark.parametrize("epsilon", [0, -1, nan, float("inf"), "1", None, True, np.bool_(True), 1j, [1.0], np.array([1.0]), b"1", object()])
def test_malformed_epsilons_are_refused(tmp_path, epsilon):
    ledger = new(tmp_path)
    for call in (
        lambda: pmdp.Ledger(tmp_path / "other", epsilon=epsilon, create=True),
        lambda: pmdp.release(model(), epsilon=epsilon, ledger=ledger),
        lambda: ledger.grant(epsilon=epsilon),
        lambda: ledger.remaining([epsilon]),
        lambda: pmdp.compose([epsilon]),
    ):
        with pytest.raises(pmdp.Refusal, match=r"finite number|needs to know"):
            call()
    assert grants(ledger) == 0
    assert not (tmp_path / "other").exists()


def test_gaussian_noise_is_paid_in_rho(tmp_path):
    ledger = new(tmp_path, 1, delta=1e-6)
    whole = rho_of(Fraction(1), Fraction(1, 10**6))
    for k in range(1, 4):
        released = pmdp.release(model(), epsilon=0.4, delta=1e-6, mechanism="gaussian", ledger=ledger)
        left = ledger.remaining().rho
        assert abs(left - (whole - k * released.cost.rho)) < Fraction(5, UNITS)
    with pytest.raises(pmdp.Refusal, match="Lower epsilon to ") as refusal:
        pmdp.release(model(), epsilon=1, delta=1e-6, mechanism="gaussian", ledger=ledger)
    fits = str(refusal.value).split("Lower epsilon to ")[1].split(",")[0]
    pmdp.release(model(), epsilon=float(fits), delta=1e-6, mechanism="gaussian", ledger=ledger)
    with pytest.raises(pmdp.Refusal, match=r"and 0(\.0\d*)? is left"):
        pmdp.release(model(), epsilon=0.4, ledger=ledger)
    other = pmdp.Ledger(tmp_path / "pure", epsilon=1, create=True)
    with pytest.raises(pmdp.Refusal, match="grants no delta"):
        pmdp.release(model(), epsilon=0.4, delta=1e-6, mechanism="gaussian", ledger=other)


def test_many_small_pure_charges_fit_by_rho(tmp_path):
    """Forty times .02 is .8 by the sum; where that is above the grant, the sum of rho lets it through."""
    ledger = new(tmp_path, Fraction(1, 2), delta=1e-3)
    for _ in range(40):
        pay(ledger, Fraction(1, 50))
    used = 40 * ceil(Fraction(1, 5000) * UNITS)
    assert ledger.remaining().rho == Fraction(int(rho_of(Fraction(1, 2), Fraction(1, 1000)) * UNITS) - used, UNITS)


def test_parts_do_not_add_up(tmp_path):
    ledger = new(tmp_path, parts=("north", "south"))
    north, south = ledger.part("north"), ledger.part("south")
    pmdp.release(model(), epsilon=0.5, ledger=north)
    pmdp.release(model(), epsilon=0.75, ledger=south)
    assert [ledger.remaining(part=part).epsilon for part in (None, "north", "south")] == [Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)]
    pmdp.release(model(), epsilon=0.25, ledger=ledger)
    with pytest.raises(pmdp.Refusal, match="0 is left"):
        pmdp.release(model(), epsilon=0.01, ledger=south)
    pmdp.release(model(), epsilon=0.25, ledger=north)
    with pytest.raises(pmdp.Refusal, match="no part of that name"):
        ledger.part("east")


def test_a_planned_batch_is_priced_before_it_is_spent(tmp_path):
    ledger = new(tmp_path)
    before = ledger.head
    assert ledger.remaining([0.1, 0.2]).epsilon == Fraction(7, 10)
    with pytest.raises(pmdp.Refusal, match="is left"):
        ledger.remaining([0.6, 0.6])
    assert ledger.head == before


def test_neighbours_and_unit_belong_to_the_data_set(tmp_path):
    ledger = new(tmp_path, unit="person")
    with pytest.raises(pmdp.Refusal, match="unit='person'"):
        pmdp.release(model(), epsilon=0.1, ledger=ledger)
    with pytest.raises(pmdp.Refusal, match="neighbours='replace'"):
        pmdp.release(model(), epsilon=0.1, ledger=ledger, unit="person", neighbours="add_remove")
    assert grants(ledger) == 0
    pmdp.release(model(), epsilon=0.1, ledger=ledger, unit="person")
    reopened = pmdp.Ledger(ledger.path, epsilon=1.0, delta=0, neighbours="replace", unit="person")
    assert reopened.head == ledger.head
    for words in ({"epsilon": 2}, {"delta": 1e-6}, {"neighbours": "add_remove"}, {"unit": "row"}, {"parts": ("a",)}):
        with pytest.raises(pmdp.Refusal, match=f"made with {next(iter(words))}="):
            pmdp.Ledger(ledger.path, **words)


def test_what_an_individual_is_belongs_to_the_data_set(tmp_path):
    """How many events and rows one individual has decides which data sets are neighbours."""
    with pm.Model() as totals:
        pm.Poisson("y", pm.Gamma("rate", 2, 1, shape=6), observed=np.full(6, 3))
    strict, loose = pmdp.Individual(events=3, rows=3), pmdp.Individual(events=1, membership="public")
    ledger = new(tmp_path, unit=strict)
    pmdp.release(totals, epsilon=0.5, unit=strict, ledger=ledger)
    with pytest.raises(pmdp.Refusal, match=r"Individual\(events=3"):
        pmdp.release(totals, epsilon=0.5, unit=loose, ledger=ledger)
    with pytest.raises(pmdp.Refusal, match="was made with unit="):
        pmdp.Ledger(ledger.path, unit=loose)


def test_grants_are_raised_by_their_own_call_and_stay_in_the_chain(tmp_path):
    ledger = new(tmp_path)
    pay(ledger, Fraction(1))
    with pytest.raises(pmdp.Refusal, match="only be raised"):
        ledger.grant(epsilon=0.5)
    ledger.grant(epsilon=1.5, delta=1e-6)
    assert (ledger.granted.epsilon, ledger.granted.delta) == (Fraction(3, 2), Fraction(1, 10**6))
    assert list(ledger.entries()["kind"]) == ["open", "charge", "grant"]
    pay(ledger, Fraction(1, 2))


def test_failure_refunds_nothing(tmp_path, monkeypatch):
    ledger = new(tmp_path)

    def fail(*_):
        raise ValueError

    monkeypatch.setattr(mechanisms, "_opendp_laplace", fail)
    with pytest.raises(pmdp.PrivateComputationError, match="stays spent"):
        pmdp.release(model(), epsilon=0.3, ledger=ledger)
    assert ledger.remaining().epsilon == Fraction(7, 10)


def test_the_charge_is_on_disk_before_a_record_is_read(tmp_path, monkeypatch):
    """At the first look at a value the newest entry is a redeemed charge."""
    ledger, seen = new(tmp_path), []
    door = sys.modules["pymc_dp.releases.rounds"]
    plain = door._totals

    def look(*arguments):
        seen.append(ledger.entries().iloc[-1][["kind", "redeemed"]].tolist())
        return plain(*arguments)

    monkeypatch.setattr(door, "_totals", look)
    pmdp.release(model(), epsilon=0.3, ledger=ledger)
    assert seen == [["charge", True]]


def test_charges_do_not_depend_on_values(tmp_path):
    facts = []
    for k, value in enumerate((0, 1, 7)):
        folder = tmp_path / str(k)
        folder.mkdir()
        ledger = new(folder)
        pmdp.release(model(value), epsilon=0.3, ledger=ledger)
        facts.append(ledger.entries().drop(columns=["time", "hash"]).to_csv())
    assert facts[0] == facts[1] == facts[2]


def test_what_is_shown(tmp_path):
    ledger = new(tmp_path, delta=1e-6, parts=("north",))
    pmdp.release(model(), epsilon=0.3, ledger=ledger)
    assert "left: epsilon 0.7" in repr(ledger)
    page = ledger._repr_html_()
    assert "north" in page
    assert "0.7" in page
    done = subprocess.run([sys.executable, "-m", "pymc_dp", "ledger", str(ledger.path)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(repr(ledger))
    assert f"its head is {ledger.head}" in done.stdout
    assert pmdp.Ledger(ledger.path).remaining() == ledger.remaining()


def test_the_plot_shows_every_charge(tmp_path):
    ledger = new(tmp_path, 2, delta=1e-6, parts=("north", "south"))
    for epsilon, part in ((Fraction(1, 5), None), (Fraction(1, 2), None), (Fraction(3, 10), "north")):
        pay(ledger, epsilon, part=part)
    axes = pmdp.plot_ledger(ledger)
    pure = sorted(round(bar.get_width(), 6) for bar in axes[0].patches)
    assert pure == [0.2, 0.3, 0.5, 0.7, 0.7]  # what the whole was charged stands under both parts
    assert len(axes) == 2
    axes[0].figure.canvas.draw()
    other = pmdp.Ledger(tmp_path / "empty", epsilon=1, create=True)
    pmdp.plot_ledger(other)[0].figure.canvas.draw()


# ---------- receipts


def test_the_seam_demands_a_receipt_for_this_draw():
    laplace = mechanisms.Laplace()
    receipt = Receipt([Draw("y", "laplace", 1, 1, 2.0, 3)], Cost(Fraction(1, 2)))
    for size, scale in ((4, 2.0), (3, 1.0)):
        with pytest.raises(pmdp.Refusal, match="not been paid for"):
            laplace.draw(np.zeros(size, dtype=int), scale, receipt)
    with pytest.raises(pmdp.Refusal, match="not been paid for"):
        mechanisms.Gaussian().draw(np.zeros(3, dtype=int), 2.0, receipt)
    laplace.draw(np.zeros(3, dtype=int), 2.0, receipt)
    with pytest.raises(pmdp.Refusal, match="not been paid for"):
        laplace.draw(np.zeros(3, dtype=int), 2.0, receipt)


def test_draws_cannot_cost_more_than_their_receipt():
    half = Draw("y", "laplace", 1, 1, 2.0, 3)
    gaussian = Draw("y", "gaussian", 1, 1, 2.0, 3)
    for draws, cost in (
        ([half, half], Cost(Fraction(99, 100))),
        ([gaussian], Cost(Fraction(10))),
        ([gaussian], Cost(Fraction(1), Fraction(1, 10**6), Fraction(1, 9))),
    ):
        with pytest.raises(pmdp.Refusal, match="cost more"):
            Receipt(draws, cost)
    Receipt([half, half], Cost(Fraction(1)))
    Receipt([gaussian], Cost(Fraction(1), Fraction(1, 10**6), Fraction(1, 8)))


def test_costs_and_draws_are_exact_and_not_negative(tmp_path):
    ledger = new(tmp_path, delta=1e-6)
    with pytest.raises(pmdp.Refusal, match="cost more"):  # what an exponential mechanism costs is too little for Laplace noise
        ledger.charge(pmdp.bounded_range(0.1), drawn(Fraction(1, 10))[1], neighbours="replace", unit="row")
    for wrong in (
        lambda: Cost(0.1),
        lambda: Cost(Fraction(-1)),
        lambda: Cost(Fraction(1), nan, Fraction(1)),
        lambda: Cost(Fraction(1), Fraction(1, 100)),
        lambda: Cost(Fraction(0), rho=Fraction(1, 10)),
        lambda: Draw("y", "laplace", 1, 1, -2.0, 1),
        lambda: Draw("y", "laplace", -1, 1, 2.0, 1),
        lambda: Draw("y", "laplace", 1, 1, 2.0, -1),
        lambda: Draw("y", "geometric", 1, 1, 2.0, 1),
    ):
        with pytest.raises(pmdp.Refusal, match=r"exact numbers|needs its rho|implies a rho|Plan it with"):
            wrong()
    assert grants(ledger) == 0


def test_a_receipt_cannot_be_doubled(tmp_path):
    ledger = new(tmp_path)
    charge = pay(ledger, Fraction(1, 2))
    twin = pickle.loads(pickle.dumps(copy.deepcopy(charge)))
    receipt = ledger.redeem(twin)
    for doubled in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            doubled(receipt)
    with pytest.raises(pmdp.Refusal, match="redeemed already"):
        ledger.redeem(charge)
    with pytest.raises(pmdp.Refusal, match="no such charge"):
        ledger.redeem(Charge("0" * 32, charge.draws, charge.cost, charge.head))
    bigger = Charge(charge.nonce, tuple(drawn(Fraction(1))[1]), charge.cost, charge.head)
    with pytest.raises(pmdp.Refusal, match="no such charge"):
        ledger.redeem(bigger)


def attempt(call, *arguments):
    """In a child: whether the call went through."""
    try:
        call(*arguments)
    except pmdp.Refusal:
        return False
    return True


def test_one_of_many_redeems(tmp_path):
    ledger = new(tmp_path)
    charge = pay(ledger, Fraction(1, 2))
    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(lambda _: attempt(ledger.redeem, charge), range(16))) == 1
    other = pay(ledger, Fraction(1, 2))
    with ProcessPoolExecutor(4, mp_context=get_context("fork")) as pool:
        assert sum(pool.map(attempt, [ledger.redeem] * 8, [other] * 8)) == 1


def in_child(call):
    """Run in a forked child and return its exit code."""
    child = os.fork()
    if child == 0:
        code = 9
        try:
            code = call() or 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_receipt_is_worth_nothing_in_a_child(tmp_path):
    receipt = new(tmp_path).redeem(pay(pmdp.Ledger(tmp_path / "survey.ledger"), Fraction(1)))
    scale = drawn(Fraction(1))[1][0].scale
    assert in_child(lambda: 1 + attempt(mechanisms.Laplace().draw, np.zeros(1, dtype=int), scale, receipt)) == 1
    assert attempt(mechanisms.Laplace().draw, np.zeros(1, dtype=int), scale, receipt)


# ---------- processes


def many(path, times, epsilon=Fraction(1, 1000)):
    ledger = pmdp.Ledger(path)
    return sum(attempt(pay, ledger, epsilon) for _ in range(times))


def granted_to_processes(folder, processes, asked, fits, context):
    ledger = new(folder, Fraction(fits, 1000))
    with ProcessPoolExecutor(processes, mp_context=get_context(context)) as pool:
        given = list(pool.map(many, [ledger.path] * processes, [asked // processes] * processes))
    assert sum(given) == grants(ledger) == fits
    assert ledger.remaining().epsilon == 0


def test_processes_never_overspend(tmp_path):
    """Four processes ask for 80 charges, of which 50 fit; the full race is among the slow tests."""
    granted_to_processes(tmp_path, 4, 80, 50, "fork")


@pytest.mark.slow
@pytest.mark.parametrize("repetition", range(10))
def test_sixty_four_forked_processes_never_overspend(tmp_path, repetition):
    granted_to_processes(tmp_path, 64, 1600, 1000, "fork")


@pytest.mark.slow
def test_sixty_four_spawned_processes_never_overspend(tmp_path):
    """The same processes race for ten ledgers, one after the other."""
    with ProcessPoolExecutor(64, mp_context=get_context("spawn")) as pool:
        for repetition in range(10):
            folder = tmp_path / str(repetition)
            folder.mkdir()
            ledger = new(folder, 1)
            assert sum(pool.map(many, [ledger.path] * 64, [25] * 64)) == grants(ledger) == 1000


def test_forks_during_charges_lose_nothing(tmp_path):
    """A thread charges all the time while children are forked that charge, too: every charge counts, and the chain is whole."""
    ledger, stop, made = new(tmp_path, 100), threading.Event(), []

    def work():
        while not stop.is_set():
            made.append(attempt(pay, ledger, Fraction(1, 1000)))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        codes = [in_child(lambda: attempt(pay, ledger, Fraction(1, 1000)) - 1) for _ in range(25)]
    finally:
        stop.set()
        thread.join()
    assert codes == [0] * 25
    assert grants(ledger) == sum(made) + 25


CAREFUL = """
import sys, pymc_dp
from pymc_dp.privacy import journal
from test_ledger import Fraction, attempt, pay
journal.PATIENCE = 0.3
if "careless" in sys.argv:
    journal._try_lock = lambda *_: True
print(attempt(lambda: pay(pymc_dp.Ledger(sys.argv[1]), Fraction(1, 10))))
"""


def test_closing_the_file_elsewhere_does_not_open_the_door(tmp_path):
    """SQLite's own locks vanish when any descriptor is closed; the lock file's do not. Without those, another process gets through."""
    ledger = new(tmp_path)
    with ledger._open() as opened, opened.transaction():
        ledger.path.open("rb").close()
        for words, through in (("careful", "False"), ("careless", "True")):
            command = [sys.executable, "-W", "ignore", "-c", CAREFUL, ledger.path, words]
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=os.path.dirname(__file__))
            assert (done.stdout.split() or [done.stderr[-200:]])[-1] == through, words


# ---------- crashes

POINTS = {
    "before the lock": (module, "_try_lock", False),
    "with the lock": (module, "check_file", False),
    "in the transaction": (module.Opened, "append", False),
    "written, not committed": (module.Opened, "append", True),
    "committed, not noted": (module._Note, "write", False),
    "charged, not redeemed": (pmdp.Ledger, "charge", True),
    "redeemed, not drawn": (pmdp.Ledger, "redeem", True),
    "at the seam": (mechanisms, "_opendp_laplace", False),
    "drawn, not returned": (mechanisms, "_opendp_laplace", True),
    "not at all": (None, "", False),
}


def killing(owner, name, after):
    plain = getattr(owner, name)

    def deadly(*arguments, **words):
        if after:
            plain(*arguments, **words)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, deadly)


def killed_release(ledger, made, point):
    """A child that releases and tells, but is killed at a point; whether it told."""
    reader, writer = os.pipe()

    def release():
        os.close(reader)
        if POINTS[point][0]:
            killing(*POINTS[point])
        pmdp.release(made, epsilon=Fraction(1, 1000), ledger=ledger)
        os.write(writer, b"released")

    code = in_child(release)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        told = pipe.read()
    assert (code == -signal.SIGKILL) == (point != "not at all")
    return told == b"released"


@pytest.mark.parametrize("times", [2, pytest.param(112, marks=pytest.mark.slow)])
def test_no_release_without_an_earlier_charge(tmp_path, times):
    """Children are killed at nine points; the slow run kills 1,008."""
    ledger, made, released = new(tmp_path, 100), model(), 0
    for point in list(POINTS) * times:
        before = grants(ledger)
        told = killed_release(ledger, made, point)
        released += told
        charged = grants(ledger) - before  # verifies the whole chain
        early = list(POINTS).index(point) < list(POINTS).index("committed, not noted")
        assert charged == (0 if early else 1), point
        assert told == (point == "not at all")
    assert released == times <= ledger.entries()["redeemed"].sum() <= grants(ledger)


@pytest.mark.slow
def test_kills_at_any_time(tmp_path):
    """100 children that release all the time are killed after a random moment."""
    ledger, made, random = new(tmp_path, 100), model(), np.random.default_rng(1)
    for delay in random.uniform(0.0, 0.6, 100):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                while True:
                    pmdp.release(made, epsilon=Fraction(1, 1000), ledger=ledger)
                    os.write(writer, b"1")
            finally:
                os._exit(1)
        before = grants(ledger)
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            told = len(pipe.read())
        assert told <= grants(ledger) - before + 1


# ---------- files


def refused(ledger_or_path, words, **arguments):
    """Neither opening nor paying goes through, and the reason is said."""
    path = getattr(ledger_or_path, "path", ledger_or_path)
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.Ledger(path, **arguments)
    if ledger_or_path is not path:
        with pytest.raises(pmdp.Refusal, match=words):
            pmdp.release(model(), epsilon=0.1, ledger=ledger_or_path)


def test_missing_and_existing_files(tmp_path):
    with pytest.raises(pmdp.Refusal, match="create=True"):
        pmdp.Ledger(tmp_path / "survey.ledger", epsilon=1)
    ledger = new(tmp_path)
    with pytest.raises(pmdp.Refusal, match="exists already"):
        new(tmp_path)
    ledger.path.unlink()
    refused(ledger, r"does not exist. To make it, write pymc_dp.Ledger\('survey.ledger', epsilon=..., create=True\).")


def test_an_older_copy_put_back_is_refused(tmp_path):
    ledger = new(tmp_path)
    pay(ledger, Fraction(1, 10))
    copied, early = shutil.copy(ledger.path, tmp_path / "copy"), ledger.head
    pay(ledger, Fraction(9, 10))
    head = ledger.head
    with open(copied, "rb") as old, open(ledger.path, "r+b") as current:
        current.write(old.read())
        current.truncate()
    refused(ledger, "does not remember all")
    refused(ledger, "does not remember all", anchor=head)
    os.replace(copied, ledger.path)
    refused(ledger, "does not remember all")
    for anchor in (head, early):
        refused(ledger.path, "does not remember all", anchor=anchor)


def test_a_copy_elsewhere_is_refused_but_with_the_newest_head(tmp_path):
    ledger = new(tmp_path)
    pay(ledger, Fraction(1, 10))
    pay(ledger, Fraction(1, 10))
    for beside in (False, True):
        copied = tmp_path / f"copy{beside}"
        shutil.copy(ledger.path, copied)
        if beside:
            shutil.copy(f"{ledger.path}.lock", f"{copied}.lock")
        refused(copied, "copied, moved or put back")
        refused(copied, "does not remember all", anchor="0" * 64)
    moved = pmdp.Ledger(copied, anchor=ledger.head)
    assert moved.remaining().epsilon == Fraction(4, 5)
    assert list(moved.entries()["kind"])[-1] == "move"
    refused(ledger.path, "does not remember all", anchor=moved.head)


def test_a_charge_is_not_redeemed_by_a_copy_as_well(tmp_path):
    ledger = new(tmp_path)
    charge = pay(ledger, Fraction(1, 10))
    moved = pmdp.Ledger(shutil.copy(ledger.path, tmp_path / "copy"), anchor=ledger.head)
    ledger.redeem(charge)
    with pytest.raises(pmdp.Refusal, match="no such charge"):
        moved.redeem(charge)


@pytest.mark.parametrize("size", [0, 100, 4096, 9000])
def test_truncated_files_are_refused(tmp_path, size):
    ledger = new(tmp_path)
    pay(ledger, Fraction(1, 10))
    os.truncate(ledger.path, size)
    refused(ledger, "damaged|not a ledger|cannot be")


def test_a_ledger_of_another_format_is_refused(tmp_path, monkeypatch):
    """What a later version writes may count otherwise: whoever does not know how must not go on with it."""
    monkeypatch.setattr(module, "FORMAT", module.FORMAT + 1)
    new(tmp_path)
    monkeypatch.undo()
    with pytest.raises(pmdp.Refusal, match="has a format that this pymc_dp does not know"):
        pmdp.Ledger(tmp_path / "survey.ledger")


def test_every_changed_byte_is_refused_or_harmless(tmp_path):
    """A byte flipped anywhere: either refused, or what is left is the same."""
    ledger = new(tmp_path)
    pay(ledger, Fraction(1, 10))
    whole = ledger.path.read_bytes()
    found = 0
    for position in np.linspace(0, len(whole) - 1, 150).astype(int):
        damaged = bytearray(whole)
        damaged[position] ^= 0x5A
        ledger.path.write_bytes(damaged)
        if attempt(pmdp.Ledger, ledger.path):
            assert pmdp.Ledger(ledger.path).remaining().epsilon == Fraction(9, 10)
        else:
            found += 1
        ledger.path.write_bytes(whole)
    assert found > 10


@contextmanager
def without_rules(ledger):
    """A connection under which entries can be changed; the rules stand again at its end, so that the changes alone are found."""
    connection = sqlite3.connect(ledger.path, isolation_level=None)
    rules = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in rules:
        connection.execute(f"DROP TRIGGER {name}")
    yield connection
    for _, rule in rules:
        connection.execute(rule)
    connection.close()


TAMPERED = {
    "an edit": "UPDATE entries SET facts = replace(facts, '1/10', '1/90') WHERE id = 3",
    "an edit of the units": "UPDATE entries SET units = 1 WHERE id = 3",
    "a middle entry gone": "DELETE FROM entries WHERE id = 3",
    "a tail gone": "DELETE FROM entries WHERE id = 4",
    "a raised grant": 'UPDATE entries SET facts = replace(facts, \'"epsilon": "1"\', \'"epsilon": "9"\')',
    "another order": "UPDATE entries SET id = CASE id WHEN 2 THEN 3 WHEN 3 THEN 2 ELSE id END",
}


@pytest.mark.parametrize("statement", TAMPERED.values(), ids=TAMPERED)
def test_a_changed_history_is_refused(tmp_path, statement):
    ledger = new(tmp_path)
    for _ in range(3):
        pay(ledger, Fraction(1, 10))
    connection = sqlite3.connect(ledger.path, isolation_level=None)
    with pytest.raises(sqlite3.Error):
        connection.execute(statement)
    connection.close()
    with without_rules(ledger) as connection:
        if "CASE" in statement:
            rows = connection.execute("SELECT kind, once, units, facts, hash FROM entries WHERE id IN (2, 3) ORDER BY id DESC").fetchall()
            connection.execute("DELETE FROM entries WHERE id IN (2, 3)")
            for number, row in zip((2, 3), rows):
                connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", (number, *row))
        else:
            connection.execute(statement)
    with pytest.raises(pmdp.Refusal, match=r"was changed: (an )?entry|does not remember"):
        pmdp.Ledger(ledger.path)
    done = subprocess.run([sys.executable, "-m", "pymc_dp", "ledger", str(ledger.path)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("survey.ledger")


def rewritten(ledger, number, change, *, after=True):
    """Change the facts of an entry and hash it anew, and all entries after it; the newest hash is noted in the lock file."""
    previous = None
    with without_rules(ledger) as connection:
        for row, text, found in connection.execute("SELECT id, facts, hash FROM entries ORDER BY id").fetchall():
            if row == number or (row > number and after):
                facts = json.loads(text) | ({"prev": previous} if row > number else {})
                if row == number:
                    change(facts)
                text = json.dumps(facts, sort_keys=True)
                found = module._hash(text)
                columns = (facts["kind"], facts["units"], text, found, row)
                connection.execute("UPDATE entries SET kind = ?, units = ?, facts = ?, hash = ? WHERE id = ?", columns)
            previous = found
    with module._locked(ledger.path) as note:
        note.write(previous, module.place_of(ledger.path, ledger.path))


REWRITTEN = {
    "a hash of its own, and the next does not follow": (lambda facts: facts["draws"][0].update(variable="z"), 2, False),
    "a smaller sum": (lambda facts: facts["spent"].update({"": [1, 1]}), 4, True),
    "other units": (lambda facts: facts.update(units=1), 4, True),
    "a larger grant": (lambda facts: facts["granted"].update(pure=9 * UNITS), 4, True),
    "another kind": (lambda facts: facts.update(kind="move"), 4, True),
}


@pytest.mark.parametrize(("change", "number", "after"), REWRITTEN.values(), ids=REWRITTEN)
def test_an_entry_that_was_hashed_anew_has_to_follow_from_the_one_before(tmp_path, change, number, after):
    """Every link is joined to the one before, and every sum is done again: not only hashes hold a history together."""
    ledger = new(tmp_path)
    for _ in range(3):
        pay(ledger, Fraction(1, 10))
    rewritten(ledger, number, lambda facts: None)
    assert pmdp.Ledger(ledger.path).remaining().epsilon == Fraction(7, 10), "the same facts, hashed again, are the same history"
    rewritten(ledger, number, change, after=after)
    with pytest.raises(pmdp.Refusal, match="was changed"):
        pmdp.Ledger(ledger.path)


def test_more_than_was_granted_is_no_history(tmp_path):
    """Charges that do not fit are not only refused when they are made, they are not read either."""
    ledger = new(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budget, "fits", lambda *_: True)
        pay(ledger, Fraction(2))
    with pytest.raises(pmdp.Refusal, match="was changed"):
        pmdp.Ledger(ledger.path)


def test_what_has_been_redeemed_stays_so(tmp_path):
    """Redemption is a link of the chain; without it, or with rules of one's own, the ledger is not a ledger."""
    ledger = new(tmp_path)
    charge = pay(ledger, Fraction(1, 10))
    ledger.redeem(charge)
    for statement in (
        "DELETE FROM entries WHERE kind = 'redeem'",
        "INSERT INTO entries (id, kind, once, facts, hash) SELECT 9, kind, once, facts, 'x' FROM entries WHERE kind = 'redeem'",
    ):
        connection = sqlite3.connect(ledger.path, isolation_level=None)
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(statement)
        connection.close()
    connection = sqlite3.connect(ledger.path, isolation_level=None)
    connection.execute("CREATE TRIGGER mine AFTER INSERT ON entries BEGIN SELECT 1; END")
    connection.close()
    refused(ledger, "its tables are others")


def test_another_journal_links_and_other_files_are_refused(tmp_path):
    ledger = new(tmp_path)
    connection = sqlite3.connect(ledger.path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    refused(ledger, "another journal")
    connection = sqlite3.connect(ledger.path)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    pmdp.release(model(), epsilon=0.1, ledger=ledger)
    os.symlink(ledger.path, tmp_path / "name")
    assert pmdp.Ledger(tmp_path / "name").path == ledger.path
    os.link(ledger.path, tmp_path / "link")
    refused(ledger, "one name")
    (tmp_path / "text").write_text("not a ledger " * 1000)
    refused(tmp_path / "text", "not a ledger")
    sqlite3.connect(tmp_path / "database").close()
    refused(tmp_path / "database", "not a ledger|damaged")
    (tmp_path / "folder").mkdir()
    refused(tmp_path / "folder", "ordinary file")


def limited(call, limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        call()
    except pmdp.Refusal as reason:
        return 1 if "Make room" in str(reason) else 2
    return 0


def test_a_full_disk_is_no_release(tmp_path):
    ledger, made = new(tmp_path), model()
    size = ledger.path.stat().st_size
    assert in_child(lambda: limited(lambda: [pmdp.release(made, epsilon=0.01, ledger=ledger) for _ in range(50)], size)) == 1
    pmdp.Ledger(ledger.path)
    assert in_child(lambda: limited(lambda: pmdp.Ledger(tmp_path / "new", epsilon=1, create=True), 1000)) == 1
    assert not (tmp_path / "new").exists()


def unprivileged(call):
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    try:
        call()
    except pmdp.Refusal as reason:
        return 1 if "writeable" in str(reason) else 2
    return 0


def test_what_cannot_be_written_is_no_release(tmp_path):
    """In a child without rights, where the test runs as root; pytest's folder is closed to others, so it is opened on the way."""
    ledger, made = new(tmp_path), model()
    for folder in [tmp_path, *tmp_path.parents]:
        if folder.stat().st_mode & 0o5 != 0o5:
            folder.chmod(folder.stat().st_mode | 0o555)
    for mode_file, mode_lock, mode_folder in ((0o444, 0o666, 0o555), (0o444, 0o444, 0o555), (0o666, 0o666, 0o555), (0o666, 0o444, 0o777)):
        ledger.path.chmod(mode_file)
        os.chmod(f"{ledger.path}.lock", mode_lock)
        tmp_path.chmod(mode_folder)
        assert in_child(lambda: unprivileged(lambda: pmdp.release(made, epsilon=0.1, ledger=ledger))) == 1
    tmp_path.chmod(0o755)
    assert grants(ledger) == 0


@pytest.mark.parametrize("others", ["nobody", "a reader", "a writer"])
def test_who_may_only_read_a_ledger_can_look(tmp_path, monkeypatch, others):
    """An auditor sees what was spent, beside others that read and not while somebody writes; the files stay as they were."""
    ledger = new(tmp_path)
    pay(ledger, Fraction(1, 4))
    for folder in [tmp_path, *tmp_path.parents]:
        if folder.stat().st_mode & 0o5 != 0o5:
            folder.chmod(folder.stat().st_mode | 0o555)
    files = [ledger.path, tmp_path / "survey.ledger.lock"]
    before, head, shown = [file.read_bytes() for file in files], ledger.head, repr(ledger)
    for file in files:
        file.chmod(0o444)  # what a writer opens gets the journal's mode
    tmp_path.chmod(0o555)
    monkeypatch.setattr(module, "PATIENCE", 0.2)
    descriptor = os.open(files[1], os.O_RDONLY)
    if others != "nobody":
        fcntl.flock(descriptor, fcntl.LOCK_EX if others == "a writer" else fcntl.LOCK_SH)

    def look():
        seen = pmdp.Ledger(ledger.path, anchor=head)
        assert (seen.remaining().epsilon, seen.head, repr(seen)) == (Fraction(3, 4), head, shown)
        for charged in (lambda: pay(seen, Fraction(1, 4)), lambda: seen.grant(epsilon=2)):
            with pytest.raises(pmdp.Refusal, match=r"cannot be written. Make the file, its \.lock and their folder writeable"):
                charged()
        raise pmdp.Refusal("seen: writeable by others")

    assert in_child(lambda: unprivileged(look)) == (2 if others == "a writer" else 1)
    os.close(descriptor)
    tmp_path.chmod(0o755)
    assert [file.read_bytes() for file in files] == before


def test_a_lock_that_does_not_go_away_is_no_release(tmp_path, monkeypatch):
    ledger = new(tmp_path)
    monkeypatch.setattr(module, "PATIENCE", 0.2)
    descriptor = os.open(f"{ledger.path}.lock", os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    refused(ledger, "has been locked")
    os.close(descriptor)
    other = sqlite3.connect(ledger.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    refused(ledger, "locked by another program")
    other.close()


def test_a_commit_that_fails_after_it_is_durable_only_loses_budget(tmp_path, monkeypatch):
    ledger = new(tmp_path)

    def fail(*_):
        raise OSError("the disk went away")

    with monkeypatch.context() as patch:
        patch.setattr(module._Note, "write", fail)
        with pytest.raises(pmdp.Refusal, match="cannot be written"):
            pmdp.release(model(), epsilon=0.1, ledger=ledger)
    assert ledger.remaining().epsilon == Fraction(9, 10)


def test_untested_platforms_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(pmdp.Refusal, match="has not been tested on win32"):
        new(tmp_path)


def test_without_a_ledger_the_result_says_so():
    released = pmdp.release(model(), epsilon=0.1)
    assert released.ledger_head == "unaccounted"
    assert "charged to no ledger" in " ".join(repr(released).split())
    with pytest.raises(pmdp.Refusal, match=r"must be a pymc_dp\.Ledger"):
        pmdp.release(model(), epsilon=0.1, ledger="survey.ledger")


def test_a_move_can_be_repeated_and_may_crash(tmp_path):
    """Any head of the chain proves that this is the ledger that paid; that of the newest result proves that it lacks nothing."""
    ledger = new(tmp_path)
    head, path = pmdp.release(model(), epsilon=0.1, ledger=ledger).ledger_head, ledger.path
    ledger.grant(epsilon=2)
    for k in range(3):
        (tmp_path / str(k)).mkdir()
        os.rename(path, there := tmp_path / str(k) / "survey.ledger")
        if k == 1:
            assert in_child(lambda: killing(module._Note, "write", False) or pmdp.Ledger(there, anchor=head)) == -signal.SIGKILL
        path = pmdp.Ledger(there, anchor=head).path
    assert pmdp.Ledger(path).remaining().epsilon == Fraction(19, 10)


@pytest.mark.parametrize("content", [b"", b"\0" * 512, b"pymc_dp lock\nhalf a line"])
def test_a_spoilt_lock_file_needs_the_anchor(tmp_path, content):
    ledger = new(tmp_path)
    head = pmdp.release(model(), epsilon=0.1, ledger=ledger).ledger_head
    lock = tmp_path / "survey.ledger.lock"
    lock.write_bytes(content)
    refused(ledger, "copied, moved or put back")
    assert pmdp.Ledger(ledger.path, anchor=head).remaining().epsilon == Fraction(9, 10)
    lock.unlink()
    refused(ledger, "copied, moved or put back")


def test_lock_files_of_others_are_left_alone(tmp_path):
    (tmp_path / "uv.lock").write_text("version = 1\n")
    with pytest.raises(pmdp.Refusal, match="belongs to something else"):
        pmdp.Ledger(tmp_path / "uv", epsilon=1, create=True)
    assert (tmp_path / "uv.lock").read_text() == "version = 1\n"
    with pytest.raises(pmdp.Refusal, match="beside a ledger"):
        pmdp.Ledger(tmp_path / "audit.lock", epsilon=1, create=True)
    with pytest.raises(pmdp.Refusal, match="too long"):
        pmdp.Ledger(tmp_path / ("a" * 252), epsilon=1, create=True)
    assert [path.name for path in tmp_path.iterdir()] == ["uv.lock"]


def test_files_of_others_are_left_alone(tmp_path):
    """What SQLite would take for its own, what looks like a ledger in the making, and locks."""
    others = ["travel-journal", "survey.ledger.tables.new", "text", "text-journal", "vault", "vault.lock", "x-wal"]
    for name in others:
        (tmp_path / name).write_text(name)
    (tmp_path / "vault.lock").chmod(0o600)
    (tmp_path / "survey.ledger.0123456789abcdef0123456789abcdef.new").mkdir()
    for name in ("travel", "x", "audit-journal", "audit.new"):
        with pytest.raises(pmdp.Refusal, match=r"SQLite would take|a file beside a ledger"):
            pmdp.Ledger(tmp_path / name, epsilon=1, create=True)
    refused(tmp_path / "text", "not a ledger")
    refused(tmp_path / "vault", "belongs to something else")
    ledger = new(tmp_path)
    assert all((tmp_path / name).read_text() == name for name in others)
    assert (tmp_path / "vault.lock").stat().st_mode & 0o777 == 0o600
    for end in ("-journal", "-wal"):
        (beside := tmp_path / f"survey.ledger{end}").write_text("something else")
        refused(ledger, "SQLite would take|stands beside")
        assert beside.read_text() == "something else"
        beside.unlink()
    pay(ledger, Fraction(1))


def test_what_a_damaged_index_hides_is_found(tmp_path):
    """Redemptions are looked up by an index; one that does not agree with its table is damage, as is a missing entry."""
    ledger = new(tmp_path)
    charge = pay(ledger, Fraction(1, 10))
    ledger.redeem(charge)
    pay(ledger, Fraction(1, 10))
    whole = ledger.path.read_bytes()
    places = [k for k in range(len(whole)) if whole.startswith(b"redeem" + charge.nonce.encode(), k)]
    assert len(places) == 2  # the table and its index
    for place in places:
        ledger.path.write_bytes(whole[: place + 6] + b"Z" + whole[place + 7 :])
        refused(ledger.path, "damaged|was changed")
    ledger.path.write_bytes(whole)
    connection = sqlite3.connect(ledger.path, isolation_level=None)
    connection.execute("DROP TRIGGER no_delete")
    connection.execute("DELETE FROM entries WHERE kind = 'redeem'")
    connection.execute(module.SCHEMA.split("\n")[-2])
    connection.close()
    with pytest.raises(pmdp.Refusal, match="an entry is missing"):
        ledger.redeem(charge)


def test_two_crashes_do_not_lock_the_owner_out(tmp_path):
    """Killed after the rename at creation, then between the first commit and its note."""
    assert in_child(lambda: killing(os, "rename", True) or new(tmp_path)) == -signal.SIGKILL
    path = tmp_path / "survey.ledger"
    assert in_child(lambda: killing(module._Note, "write", False) or pay(pmdp.Ledger(path), Fraction(1, 10))) == -signal.SIGKILL
    assert pmdp.Ledger(path).remaining().epsilon == Fraction(9, 10)


def test_a_ledger_that_was_read_only_for_a_while(tmp_path):
    ledger = new(tmp_path)
    ledger.path.chmod(0o444)
    assert ledger.remaining().epsilon == 1
    assert (tmp_path / "survey.ledger.lock").stat().st_mode & 0o200


@pytest.mark.parametrize("path", ["a\0b", 7, None, b"bytes\0"])
def test_what_is_no_name_is_refused(path):
    with pytest.raises(pmdp.Refusal, match="name of a file"):
        pmdp.Ledger(path)


@pytest.mark.parametrize("unit", ["  ", "Individual(events=3, membership='private', rows=3)", 7])
def test_what_is_no_unit_is_refused(tmp_path, unit):
    with pytest.raises(pmdp.Refusal, match="unit must say"):
        new(tmp_path, unit=unit)


def test_a_ledger_that_is_gone_is_not_made_anew(tmp_path):
    ledger = new(tmp_path)
    ledger.path.unlink()
    with pytest.raises(pmdp.Refusal, match="stood here before"):
        new(tmp_path)
    (tmp_path / "survey.ledger.lock").unlink()
    other = new(tmp_path, neighbours="add_remove")
    assert other.head != ledger._first
    with pytest.raises(pmdp.Refusal, match="another ledger than the one that was opened"):
        pay(ledger, Fraction(1, 10))


@pytest.mark.parametrize("point", ["before the note", "before the rename", "after the rename"])
def test_a_crash_while_a_ledger_is_made(tmp_path, point):
    """It is there or not, and can be made or opened."""
    place = {
        "before the note": (module._Note, "write", False),
        "before the rename": (os, "rename", False),
        "after the rename": (os, "rename", True),
    }
    assert in_child(lambda: killing(*place[point]) or new(tmp_path)) == -signal.SIGKILL
    ledger = pmdp.Ledger(tmp_path / "survey.ledger") if point == "after the rename" else new(tmp_path)
    pay(ledger, Fraction(1))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["survey.ledger", "survey.ledger.lock"]


def test_whoever_may_write_the_ledger_may_take_its_lock(tmp_path):
    ledger = new(tmp_path)
    ledger.path.chmod(0o660)
    pay(ledger, Fraction(1, 10))
    assert (tmp_path / "survey.ledger.lock").stat().st_mode & 0o777 == 0o660


FORKING = """
import os, signal, sys, pymc_dp
from pymc_dp.privacy import journal
from test_ledger import Fraction, pay
ledger, plain = pymc_dp.Ledger(sys.argv[1]), journal.Opened.append
def fork(*_):
    child = os.fork()
    if not child and "leaves" in sys.argv:
        os._exit(0)
    if child:
        os.waitpid(child, 0)
def append(*arguments, **words):
    os.kill(os.getpid(), signal.SIGUSR1)
    return plain(*arguments, **words)
signal.signal(signal.SIGUSR1, fork)
journal.Opened.append = append
pay(ledger, Fraction(1, 10))
"""


@pytest.mark.parametrize("child", ["leaves", "goes on"])
def test_a_fork_in_a_signal_handler(tmp_path, child):
    """In the middle of a charge: the parent's is made once, and the child cannot go on with it."""
    ledger = new(tmp_path)
    command = [sys.executable, "-W", "ignore", "-c", FORKING, ledger.path, child]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=os.path.dirname(__file__), timeout=60)
    assert ("forked in the middle of a charge" in done.stderr) == (child == "goes on")
    assert ledger.remaining().epsilon == Fraction(9, 10)


FORKING_AT_NOISE = """
import os, signal, sys, numpy as np
from pymc_dp.privacy import mechanisms
from pymc_dp.privacy.accounting import Cost
from pymc_dp.privacy.receipts import Draw, Receipt
def fork(*_):
    child = os.fork()
    if child:
        os.waitpid(child, 0)
signal.signal(signal.SIGUSR1, fork)
module, name, kind = np.random if sys.argv[1] == "default_rng" else mechanisms, *sys.argv[1:]
plain = getattr(module, name)
def noise(*arguments):
    os.kill(os.getpid(), signal.SIGUSR1)
    return plain(*arguments)
setattr(module, name, noise)
receipt = Receipt([Draw("y", kind, 1, 1, 1.0, 2)], Cost(1))
draw = {
    "_opendp_laplace": lambda: mechanisms.Laplace().draw(np.zeros(2, dtype=int), 1.0, receipt),
    "_opendp_choice": lambda: mechanisms.exponential_mechanism([np.zeros(2, dtype=int)], 1.0, receipt),
    "_opendp_answers": lambda: mechanisms.randomised_responses(np.zeros(2, dtype=int), 2, 1.0, receipt),
    "default_rng": lambda: mechanisms.generator([Draw("y", "choice", 1, 1, 1.0, 2)], receipt),
}[name]
try:
    os.write(1, f"drawn {draw()};".encode())
except mechanisms.Refusal as reason:
    os.write(1, f"{reason};".encode())
"""


@pytest.mark.parametrize(
    ("noise", "kind"),
    [("_opendp_laplace", "laplace"), ("_opendp_choice", "choice"), ("_opendp_answers", "answer"), ("default_rng", "choice")],
)
def test_a_fork_between_the_right_to_draw_and_the_noise(noise, kind):
    """One payment, one answer: the child, which would draw noise of its own for it, is refused, and its parent is not."""
    command = [sys.executable, "-W", "ignore", "-c", FORKING_AT_NOISE, noise, kind]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    child, parent = done.stdout.split(";")[:2]
    assert child.startswith("This draw of noise has not been paid for")
    assert parent.startswith("drawn")


# ---------- any program


def program(folder, seed):
    """A random sequence of charges beside a model of it in fractions: the same grants, and the same remainders."""
    random = np.random.default_rng(seed)
    parts = ("a", "b", "c")[: random.integers(0, 4)]
    epsilon = Fraction(int(random.integers(1, 40)), 10)
    delta = [0, 1e-9, 1e-3][random.integers(0, 3)]
    ledger = pmdp.Ledger(folder / f"{seed}", epsilon=epsilon, delta=delta, parts=parts, create=True)
    allowed = int(rho_of(epsilon, pmdp.privacy.accounting.exact_delta(delta)) * UNITS) if delta else 0
    pure, rho = dict.fromkeys(("", *parts), 0), dict.fromkeys(("", *parts), 0)
    granted, impure = [], False
    for _ in range(random.integers(1, 9)):
        part = str(random.choice(["", *parts]))
        gaussian = delta and random.random() < 0.3
        price = Fraction(int(random.integers(1, 30)), int(random.choice([3, 7, 10, 20, 100])))
        if gaussian:
            cost = Cost(price, Fraction(1, 10**6), rho_of(price, Fraction(1, 10**6)))
            scale = mechanisms.Gaussian().calibrate(1, 1, cost)
            draws = [Draw("y", "gaussian", 1, 1, scale, 1)]
        else:
            cost, draws = drawn(price)
        bought = (ceil(cost.epsilon * UNITS), ceil(cost.concentrated * UNITS))
        after = [pure | {part: pure[part] + bought[0]}, rho | {part: rho[part] + bought[1]}]
        sums = [one[""] + max((one[name] for name in parts), default=0) for one in after]
        fits = (not (impure or gaussian) and sums[0] <= epsilon * UNITS) or sums[1] <= allowed
        charged = attempt(lambda: ledger.charge(cost, draws, neighbours="replace", unit="row", part=part or None))  # noqa: B023
        assert charged == fits
        if fits:
            pure, rho, impure = *after, bool(impure or gaussian)
            granted.append((part, float(cost.epsilon), float(cost.delta)))
    entries = ledger.entries()
    assert list(entries[entries["kind"] == "charge"][["part", "epsilon", "delta"]].itertuples(index=False, name=None)) == granted
    left = ledger.remaining()
    if left.epsilon:
        assert attempt(pay, ledger, left.epsilon)
    assert not attempt(pay, ledger, ledger.remaining().epsilon + Fraction(1, 1000))


@pytest.mark.parametrize("seeds", [range(12), pytest.param(range(12, 1000), marks=pytest.mark.slow)], ids=["few", "all"])
def test_random_programs_agree_with_fractions(tmp_path, seeds):
    for seed in seeds:
        program(tmp_path, seed)
