"""A table that an engine holds in parts, whatever the engine: here one that computes some parts again and hands them over in any order."""

import pickle
import sys
import threading
import time
from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace

import cloudpickle
import numpy as np
import pandas as pd
import pyarrow as pa
import pymc as pm
import pytest
from checks import refused, seam_of
from engine_parts import FRAME, MOST, OF_PERSONS, N, fails, model, of_one_person, said, votes, with_persons

import pymc_dp as pmdp
from pymc_dp.privacy.guard import FAILED, PrivateComputationError
from pymc_dp.releases import from_records
from pymc_dp.releases.dask_tables import DaskTable
from pymc_dp.releases.shared_plan import sums_of_part
from pymc_dp.releases.source import place_of
from pymc_dp.releases.spread import Spread
from pymc_dp.releases.stored import is_one

ADDED = {"neighbours": "add_remove"}
pytestmark = pytest.mark.filterwarnings("ignore")


class Again(Spread):
    """Parts of a frame, each in some chunks. Those in ``twice`` are handed over twice, as by attempts of which the first was given up."""

    def __init__(self, parts, twice=(), left_out=(), more=0):
        self.columns, self._parts, self._twice, self._left_out, self._more = tuple(FRAME), parts, twice, left_out, more
        self.log, self.watched = [], None

    @property
    def parts(self):
        return len(self._parts)

    def check(self, names, look):
        self.log.append("check")
        for _, words in (look(chunk, names) for chunks in self._parts for chunk in chunks):
            if words:
                raise pmdp.Refusal(words)

    def rows(self, count):
        self.log.append("rows")
        return sum(count(chunk) for chunks in self._parts for chunk in chunks) + self._more

    def results(self, function, names, written):
        self.log.append("results" if self.watched is None else self.watched.remaining().epsilon)
        order = [*self._twice, *range(self.parts)][::-1]
        return [function(self._parts[part], part, written) for part in order if part not in self._left_out]


def parts():
    """One part is empty, and one has no chunk."""
    return [[FRAME[:20], FRAME[20:31]], [FRAME[31:31]], [], [FRAME[31:59].astype(str)], [FRAME[59:]]]


@pytest.mark.parametrize("declared", [{}, ADDED], ids=str)
def test_every_part_counts_once_however_often_it_is_handed_over(declared):
    built = votes() if declared else model()
    expected = said(FRAME, built, **declared)
    for table in (Again(parts(), twice=(0, 3, 3)), Again([[FRAME]]))[: 1 + len(declared)]:
        assert said(table, built, **declared) == expected
        assert table.log.count("results") == 1
        assert ("rows" in table.log) == (declared == {})


def test_the_ledger_pays_before_a_part_is_read_and_nothing_is_said_of_what_went_wrong(tmp_path, monkeypatch):
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=9, create=True)
    monkeypatch.setattr(from_records, "sums_of", fails)
    for count, table in enumerate([Again(parts()), Again(parts(), left_out=(4,)), Again(parts(), more=1)], 1):
        table.watched = ledger
        with pytest.raises(PrivateComputationError) as error:
            pmdp.release(votes(), data=table, ledger=ledger, epsilon=1)
        assert (str(error.value), error.value.__cause__, error.value.__context__) == (FAILED, None, None)
        assert [said for said in table.log if said != "rows"] == ["check", 9 - count]
        monkeypatch.undo()


def test_a_part_on_a_worker_never_fails(capfd):
    written = cloudpickle.dumps((None, fails))
    for chunks in ([FRAME], iter([FRAME]), [None], None, (1 / 0 for _ in range(1))):
        assert pickle.loads(sums_of_part(chunks, 0, written)) is None
    assert pickle.loads(sums_of_part([FRAME], 0, b"no plan")) is None
    assert capfd.readouterr() == ("", "")


class ByPerson(Again):
    """Parts that are all the whole table, or what they are said to be."""

    def __init__(self, parts, twice=()):
        super().__init__(parts, twice)
        self.columns = (*self.columns, "who")

    def by_person(self, key, place):
        assert key == "who"
        first, second = (place(pa.array([*names]), 1000).tolist() for names in (("ann", "77", None), ("ann", "077", "ann")))
        assert first == [*second[:2], 0] != second
        return self


@pytest.mark.parametrize("declared", OF_PERSONS, ids=["replace", "add_remove"])
def test_a_person_counts_in_one_part_whatever_is_in_the_others(declared):
    frame = with_persons()
    expected = said(frame, **declared)
    for several in (1, 3):
        orders = [[frame.sample(frac=1, random_state=seed)] for seed in range(several)]
        table = ByPerson(orders, twice=(0,))
        assert said(table, **declared) == expected
        assert "rows" not in table.log
    # what an engine lets lie in a wrong part does not count there
    for name in ("bob", "77"):
        tables = [[pd.concat([part, *[of_one_person(name)] * more])] for part, more in zip([frame] * 3, (1, 2, 3), strict=True)]
        with seam_of(0):
            counts = [
                pmdp.release(votes(), data=ByPerson(given), epsilon=1, unit=declared["unit"], **ADDED)["k"].noisy.sum()
                for given in ([[frame]] * 3, tables)
            ]
        assert counts[1] - counts[0] == MOST


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_no_person_moves_the_sums_of_all_parts_further_than_is_paid_for_and_some_do(neighbours):
    """All pairs of persons of up to four rows out of a few, dealt to three parts that are read in orders of their own."""
    rng = np.random.default_rng(3)
    rest = with_persons().drop(columns="x")
    ends = [{"site": site, "k": k, "y": 0.0} for site in (0, 2) for k in (0, 1)]
    persons = [[], *([row] * many for row in ends for many in (1, 4)), *([one, other, other] for one in ends for other in ends)]
    with pm.Model() as built:
        site = pm.Data("site", np.zeros(2, dtype=int))
        pm.Bernoulli("k", pm.Beta("p", 1, 1, shape=3)[site], observed=np.zeros(2, dtype=int))
    found, declared = [], {"epsilon": 1, "unit": pmdp.Person("who", MOST), "neighbours": neighbours}
    for rows in persons:
        frame = pd.concat([rest, pd.DataFrame([row | {"who": "bob"} for row in rows])]) if rows else rest
        orders = [[frame.sample(frac=1, random_state=int(rng.integers(10**6)))] for _ in range(3)]
        with seam_of(0):
            released = pmdp.release(built, data=ByPerson(orders, twice=(1,)), **declared)["k"]
        found.append(released.noisy.ravel())
    others = found[:1] if neighbours == "add_remove" else found
    moved = [int(np.abs(one - other).sum()) for one in found for other in others]
    assert max(moved) == released.difference == (MOST if neighbours == "add_remove" else 2 * MOST)


def test_files_of_persons_are_read_by_every_worker(tmp_path):
    """Each file is in every part of what workers of dask are given; partitions in memory cannot be."""
    frame, files = with_persons(), []
    for part, (first, last) in enumerate([(0, 20), (20, 40), (40, N)]):
        files.append(tmp_path / f"{part}.parquet")
        frame[first:last].to_parquet(files[-1])
    columns = list(frame)
    for declared in OF_PERSONS:
        assert said(DaskTable(columns, files, None, lasting=True), **declared) == said(frame, **declared)
    client = SimpleNamespace(nthreads=lambda: {"one": 2, "another": 1})
    by_person = DaskTable(columns, files, client, lasting=True).by_person("who", place_of)
    assert (by_person.parts, by_person._chunks) == (2, [files, files])
    assert "Rows of one who" in refused(said, DaskTable(columns, [frame[:9], frame[9:]], None, lasting=True), **OF_PERSONS[0])


def test_partitions_of_which_one_was_made_anew_since_they_were_checked_give_nothing():
    """By what a scheduler of dask says of its tasks. The same with workers: test_engines_dask.py."""
    tasks = {"a": SimpleNamespace(run_id=1), "b": SimpleNamespace(run_id=None)}  # the second was scattered
    client = SimpleNamespace(
        map=lambda what, chunks, *numbers, key, pure, **given: [what(*one, **given) for one in zip(chunks, *numbers)],
        gather=list,
        run_on_scheduler=lambda runs, keys: pickle.loads(cloudpickle.dumps(runs))(keys, dask_scheduler=SimpleNamespace(tasks=tasks)),
    )
    table = DaskTable(FRAME, [SimpleNamespace(key=key) for key in tasks], client, lasting=False)
    read = lambda: table.results(lambda chunks, part, written: part, FRAME, b"")  # noqa: E731
    with pytest.raises(RuntimeError):
        read()  # unchecked
    table._made = table._runs()
    assert (read(), read()) == ([0, 1], [0, 1])
    for changed in ({"a": SimpleNamespace(run_id=7)}, {}):
        before = dict(tasks)
        tasks.clear()
        tasks.update({"b": before["b"]} | changed)
        with pytest.raises(RuntimeError):
            read()
        tasks.update(before)


def test_rows_of_persons_in_several_tables_of_one_part_are_not_released(tmp_path):
    """As many rows of a person as may count would count of each."""
    frame, unit = with_persons(), OF_PERSONS[1]["unit"]
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=9, unit=unit, create=True, **ADDED)
    for chunks in ([frame[:30], frame[30:]], []):
        with pytest.raises(PrivateComputationError):
            pmdp.release(votes(), data=ByPerson([chunks]), epsilon=1, unit=unit, ledger=ledger, **ADDED)


def test_what_cannot_be_read_in_parts_is_refused():
    table, built = Again(parts()), votes()
    assert "site may lie in several parts" in refused(said, table, built, unit=pmdp.Person("site", at_most=2), **ADDED)
    assert "no column called k" in refused(said, Again([[FRAME], [FRAME.drop(columns="k")]]), built)
    shared = pmdp.share_out(built, parts=2, records=N, epsilon=1)
    assert "in several parts itself" in refused(pmdp.partial_statistics, shared.plan, table, 0)
    several = [pmdp.partial_statistics(shared.plan, chunk, part) for part, chunk in enumerate([FRAME[:9], FRAME[9:]])]
    assert "another release" in refused(pmdp.add_up, shared, [*several, replace(several[0], part=2)])
    with seam_of(0):
        assert pmdp.add_up(shared, several)["k"].noisy.tolist() == [[FRAME["k"].sum()]]


def test_a_table_without_a_part_has_no_records():
    built = votes()
    expected = said(FRAME[:0], built, **ADDED)
    assert said(Again([]), built, **ADDED) == said(Again([[]]), built, **ADDED) == expected
    assert "no records" in refused(said, Again([]), built)


def test_a_library_that_another_thread_is_importing_is_waited_for(tmp_path, monkeypatch):
    """A worker imports dask.dataframe for one task while another task looks at a file: half of the module was there."""
    (tmp_path / "slowly_imported.py").write_text(
        "from threading import Event\nbegun, may_end = Event(), Event()\nbegun.set()\nmay_end.wait(60)\nclass Table: pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    importing = threading.Thread(target=import_module, args=["slowly_imported"])
    importing.start()
    while not hasattr(sys.modules.get("slowly_imported"), "may_end"):
        time.sleep(0.01)
    module = sys.modules["slowly_imported"]
    module.begun.wait(60)
    threading.Timer(0.2, module.may_end.set).start()
    try:
        assert not is_one("a path", "slowly_imported", "Table", "No such table")
        assert is_one(module.Table(), "slowly_imported", "Table")
    finally:
        module.may_end.set()
        importing.join()
        del sys.modules["slowly_imported"]
