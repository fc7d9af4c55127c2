"""A table that an engine holds in parts, whatever the engine: here one that computes some parts again and hands them over in any order."""

import pickle
from dataclasses import replace

import cloudpickle
import pytest
from checks import refused, seam_of
from engine_parts import FRAME, N, fails, model, said, votes

import pymc_dp as pmdp
from pymc_dp.privacy.guard import FAILED, PrivateComputationError
from pymc_dp.releases import from_records
from pymc_dp.releases.shared_plan import sums_of_part
from pymc_dp.releases.spread import Spread

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
