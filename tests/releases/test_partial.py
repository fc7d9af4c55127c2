"""Records that are read in parts: together they are one release, whoever computed them and however often."""

import os
import pickle
import signal
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest
from checks import contents, refused, seam_of
from engine_parts import DECLARED, FRAME, PARTS, N, model

import pymc_dp as pmdp
from pymc_dp.privacy.guard import FAILED, PrivateComputationError

pytestmark = pytest.mark.filterwarnings("ignore")
CHUNKS = [FRAME[:20], FRAME[20:20], FRAME[20:59].astype(str), FRAME[59:]]


def shared_out(**more):
    return pmdp.share_out(model(), **{"parts": PARTS, "records": N} | DECLARED | more)


def computed(plan, chunks=CHUNKS):
    return [pmdp.partial_statistics(plan, chunk, part) for part, chunk in enumerate(chunks)]


def added(shared, parts):
    with seam_of(0):
        return contents(pmdp.add_up(shared, parts))


def whole(**more):
    with seam_of(0):
        return contents(pmdp.release(model(), data=FRAME, **DECLARED | more))


def travelled(thing):
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("declared", [{}, {"neighbours": "add_remove", "records": None}, {"missing": ["y"]}], ids=str)
def test_parts_are_the_whole_and_each_counts_once(declared):
    expected = whole(**{name: value for name, value in declared.items() if name != "records"})
    shared = shared_out(**declared)
    parts = computed(shared.plan)
    assert added(shared, [*parts[::-1], parts[0], parts[2], *parts]) == expected
    again = shared_out(**declared)
    assert added(again, travelled(computed(travelled(again.plan)))) == expected


def test_numbers_of_parts_may_be_those_of_numpy():
    shared = shared_out(parts=np.int64(PARTS), records=np.int32(N))
    parts = [pmdp.partial_statistics(shared.plan, chunk, part) for part, chunk in zip(np.arange(PARTS), CHUNKS, strict=True)]
    assert added(shared, travelled(parts)) == whole()
    with seam_of(0):
        assert "call pymc_dp.release, or share_out, again" in refused(pmdp.add_up, shared, parts)
    assert "Write records=, a whole number" in refused(shared_out, records=float(N))
    assert "partial_statistics(shared.plan, chunk, 0)" in refused(pmdp.partial_statistics, shared.plan, CHUNKS[0], 0.0)


def killed_once(plan, chunk, part, place):
    """A worker that dies after it has read the second part from the end, the first time that it does."""
    statistics = pmdp.partial_statistics(plan, chunk, part)
    if part == 2 and not place.exists():
        place.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return statistics


@pytest.mark.slow
def test_what_a_killed_worker_read_is_computed_again_and_counted_once(tmp_path):
    shared, found, rounds = shared_out(), [], 0
    while len({part.part for part in found}) < PARTS:
        rounds += 1
        with ProcessPoolExecutor(2, get_context("spawn")) as pool:
            waiting = [pool.submit(killed_once, shared.plan, chunk, part, tmp_path / "killed") for part, chunk in enumerate(CHUNKS)]
            for done in waiting:
                try:
                    found.append(done.result())
                except BrokenProcessPool:
                    continue
    assert rounds == 2
    assert len(found) > PARTS
    assert added(shared, found) == whole()


def test_the_ledger_pays_before_a_part_is_read_and_only_once(tmp_path):
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=1, create=True)
    shared = shared_out(ledger=ledger)
    assert ledger.remaining().epsilon == 0
    parts = computed(shared.plan)
    pmdp.add_up(shared, parts)
    with pytest.raises((pmdp.Refusal, PrivateComputationError)):
        pmdp.add_up(shared, parts)
    with pytest.raises(pmdp.Refusal):
        shared_out(ledger=ledger)


def test_nothing_is_said_of_what_is_in_a_part(tmp_path):
    plan = shared_out().plan
    shown = {repr(part) for part in computed(plan)} | {repr(plan), repr(shared_out())}
    named = {f"Shared{which}(k, site, y, x; 4 parts)" for which in ("Plan", "Release")}
    assert shown == named | {f"PartialStatistics(part {part})" for part in range(PARTS)}
    path = tmp_path / "broken.parquet"
    FRAME.to_parquet(path)
    with path.open("r+b") as file:
        file.seek(4)
        file.write(b"\xff" * 300)
    with pytest.raises(PrivateComputationError) as error:
        pmdp.partial_statistics(plan, path, 0)
    assert (str(error.value), error.value.__cause__, error.value.__context__) == (FAILED, None, None)
    private = shared_out(neighbours="add_remove", records=None).plan
    assert {part.rows for part in computed(private)} == {None}


WHO = FRAME.assign(who=np.random.default_rng(1).integers(0, 12, N))
PERSON = {"unit": pmdp.Person("who", at_most=2), "missing": {}}


def of_persons(tables, **more):
    """What is released where every part is given a table of its own, and the noise is nothing."""
    shared = pmdp.share_out(model(), parts=len(tables), **DECLARED | PERSON | more)
    plan = travelled(shared.plan)
    parts = [pmdp.partial_statistics(plan, table, part, whole=True) for part, table in enumerate(tables)]
    assert {part.rows for part in parts} == {None}
    with seam_of(0):
        return pmdp.add_up(shared, [*parts[::-1], *parts])


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_parts_of_persons_are_the_whole_whatever_the_table_of_each_is_called(tmp_path, neighbours):
    """Every part has some persons and no other, so all together have every person once."""
    WHO.to_parquet(tmp_path / "who.parquet", row_group_size=7)
    tables = [WHO, WHO.sample(frac=1, random_state=2), WHO.astype(str), tmp_path / "who.parquet"]
    with seam_of(0):
        expected = contents(pmdp.release(model(), data=WHO, neighbours=neighbours, **DECLARED | PERSON))
    for given in (tables, tables[:1]):
        assert contents(of_persons(given, neighbours=neighbours)) == expected
    shared = pmdp.share_out(model(), parts=4, neighbours=neighbours, **DECLARED | PERSON)
    counted = [pmdp.partial_statistics(shared.plan, table, part, whole=True).exact["k"] for part, table in enumerate(tables)]
    assert all(0 < part.sum() < sum(map(np.sum, counted)) for part in counted)


@pytest.mark.parametrize("name", range(100, 106))
def test_a_person_counts_in_one_part_wherever_the_rows_lie(name):
    """A person with nine rows in the table of every part, and nine times in one of them, moves what is released by two rows."""
    row = {"x": 0.5, "site": 1, "y": 0.25, "k": 1, "who": name}
    nine, added_remove = pd.DataFrame([row] * 9), {"neighbours": "add_remove"}
    tables = [CHUNKS[0].assign(who=1), WHO, FRAME.assign(who=np.arange(N)), pd.concat([nine.assign(who=2)] * 9)]
    before = of_persons(tables, **added_remove)
    after = of_persons([pd.concat([table, nine]) for table in tables], **added_remove)
    assert (after["k"].noisy - before["k"].noisy).sum() == 2, "of zeros and ones at every site"
    assert before["k"].noisy.sum() > 2


def test_parts_of_persons_are_said_to_be_of_the_whole_table():
    persons, rows = pmdp.share_out(model(), parts=2, **DECLARED | PERSON), shared_out()
    assert "whole=True" in refused(pmdp.partial_statistics, persons.plan, WHO, 0)
    assert "Leave whole out" in refused(pmdp.partial_statistics, rows.plan, FRAME, 0, whole=True)
    assert "no column called who" in refused(pmdp.partial_statistics, persons.plan, FRAME, 0, whole=True)
    assert "Leave records out" in refused(pmdp.share_out, model(), parts=2, records=N, **DECLARED | PERSON)


def test_what_is_not_all_parts_of_one_release_is_refused():
    shared = shared_out()
    parts, others = computed(shared.plan), computed(shared_out().plan)
    assert "Part 1 is missing" in refused(pmdp.add_up, shared, [parts[0], parts[2]])
    assert "another release" in refused(pmdp.add_up, shared, [*parts[:3], others[3]])
    assert "another number of records" in refused(pmdp.add_up, shared, [pmdp.partial_statistics(shared.plan, CHUNKS[0], 1), *parts])
    assert "parts 0 to 3" in refused(pmdp.partial_statistics, shared.plan, FRAME, 4)
    assert "no column called y" in refused(pmdp.partial_statistics, shared.plan, FRAME.drop(columns="y"), 0)
    assert "records=" in refused(shared_out, records=None)
    assert "Leave records out" in refused(shared_out, neighbours="add_remove")
    assert "whole number" in refused(shared_out, parts=0)
    assert "no data" in refused(shared_out, data=FRAME)
    assert added(shared, parts) == whole()
