"""DataFrames of dask: parts are summed where they lie, by this process or by workers of ``dask.distributed``.

Tests with workers are slow: ``uv run --group engines pytest -m slow tests/releases/test_engines_dask.py``.
"""

import pickle
import re
from contextlib import contextmanager
from pathlib import Path

import cloudpickle
import engine_parts
import numpy as np
import pandas as pd
import pymc as pm
import pytest
from checks import refused, seam_of
from engine_parts import (
    CANARY,
    DECLARED,
    FRAME,
    KINDS,
    MOST,
    NO_NUMBERS,
    OF_PERSONS,
    DiesOnce,
    Killer,
    N,
    fails,
    files_in,
    malformed,
    model,
    odd,
    of_labels,
    of_one_person,
    said,
    sites,
    with_persons,
)  # fmt: skip

import pymc_dp as pmdp
from pymc_dp.privacy.guard import FAILED, PrivateComputationError
from pymc_dp.releases import from_records
from pymc_dp.releases.dask_tables import DaskTable
from pymc_dp.releases.release import Release

dd = pytest.importorskip("dask.dataframe")
pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings("ignore")


def test_records_in_files_and_in_memory_are_read_as_they_lie(tmp_path):
    expected = said(FRAME)
    for data in (dd.read_parquet(str(files_in(tmp_path))), dd.from_pandas(FRAME, npartitions=5).persist()):
        assert said(data) == expected


def test_the_block_for_dask_on_the_page_of_large_data_runs(tmp_path, monkeypatch):
    """After those before it, as pasted; the one for Beam alone is left out."""
    monkeypatch.chdir(tmp_path)
    page, names = (Path(__file__).parents[2] / "docs" / "large_data.md").read_text(), {}
    blocks = [block for block in re.findall(r"^```py(?:thon)?\n(.*?)^```", page, flags=re.M | re.S) if "beam." not in block]
    assert "dask" in blocks[-1]
    for block in blocks:
        exec(compile(block, "large_data.md", "exec"), names)
    assert names["released"].neighbours == "replace"


@pytest.mark.slow
@pytest.mark.parametrize("declared", KINDS, ids=str)
def test_a_frame_of_dask_is_its_rows_however_they_are_parted(tmp_path, declared):
    expected, files = said(FRAME, **declared), str(files_in(tmp_path))
    several = dd.from_pandas(FRAME, npartitions=5, sort=False)
    read = [several, several[["y", "k", "x", "site"]], several.persist(), several.persist()[["y", "site", "k", "x"]]]
    read += [dd.from_pandas(FRAME[::-1], npartitions=2).persist(), dd.read_parquet(files)[["k", "site", "x", "y"]]]
    for data in [*read, dd.read_parquet(files, index=False), dd.read_parquet(files, filesystem="arrow")]:
        assert said(data, **declared) == expected


@pytest.mark.slow
def test_values_are_read_as_those_of_a_frame_that_dask_does_not_hold():
    expected = said(odd(), missing=["y"])
    assert said(dd.from_pandas(odd(), npartitions=3, sort=False), missing=["y"]) == expected != said(FRAME, missing=["y"])


def test_labels_are_read_in_every_part_as_in_the_table():
    frame, expected = of_labels()
    assert said(dd.from_pandas(frame, npartitions=3), sites()) == expected


def test_what_is_still_to_be_computed_is_refused_before_anything_is_paid(tmp_path):
    frame, files = dd.from_pandas(FRAME, npartitions=3), str(tmp_path / "records.parquet")
    FRAME.to_parquet(files)

    def would_fail(part):
        (tmp_path / "called").touch()
        raise ValueError(part)

    mapped = frame.map_partitions(would_fail, meta=FRAME)
    still = [mapped, mapped[["x", "y", "k", "site"]], frame.assign(y=1.0), frame[frame.y > 0], frame.repartition(npartitions=2)]
    still += [frame.partitions[:2], frame.partitions[:2].optimize(), dd.concat([frame, frame])]
    still += [dd.read_parquet(files, filters=[("x", ">", 0)])]
    still += [dd.read_parquet(files).partitions[:1], dd.read_parquet(files, index="k"), frame.shuffle("k"), frame.sample(frac=0.5)]
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=1, create=True)
    for data in still:
        assert "still to be computed" in refused(pmdp.release, model(), data=data, ledger=ledger, **DECLARED)
    assert ledger.remaining().epsilon == 1
    assert not (tmp_path / "called").exists()


@pytest.mark.parametrize("declared", OF_PERSONS, ids=["replace", "add_remove"])
def test_persons_in_files_are_those_of_the_table_whatever_the_files(tmp_path, declared):
    frame = with_persons(odd())
    expected = said(frame, **declared)
    (tmp_path / "few").mkdir()
    (tmp_path / "many").mkdir()
    few = files_in(tmp_path / "few", frame.sample(frac=1, random_state=3), (0, N))
    for folder in (files_in(tmp_path / "many", frame), few):
        assert said(dd.read_parquet(str(folder)), **declared) == expected
    assert said(frame, **declared | {"unit": pmdp.Person("who", MOST + 1)}) != expected


@pytest.mark.slow
def test_what_stands_against_a_frame_is_said(tmp_path):
    frame = dd.from_pandas(FRAME, npartitions=3).persist()
    assert "no column called y" in refused(said, frame[["x", "k", "site"]])
    assert "several columns called y" in refused(said, dd.from_pandas(FRAME[["x", "k", "site", "y", "y"]], npartitions=2))
    persons = {"unit": pmdp.Person("site", at_most=2), "neighbours": "add_remove"}
    assert "site may lie in several parts" in refused(said, frame, **persons)
    assert "site may lie in several parts" in refused(said, named().chunk(record=9).persist(), **persons)
    assert "no column called who" in refused(said, frame, unit=pmdp.Person("who", at_most=2))
    dated = FRAME.assign(who=pd.Timestamp(2020, 1, 1))
    (tmp_path / "dated").mkdir()
    dated.to_parquet(tmp_path / "dated" / "0.parquet")
    of_dates = dd.read_parquet(str(tmp_path / "dated"))
    assert "names no person" in refused(said, of_dates, unit=pmdp.Person("who", at_most=2))
    assert said(dd.from_pandas(FRAME, npartitions=3), **persons) == said(FRAME, **persons)
    files = files_in(tmp_path)
    twice = dd.read_parquet([str(files / "0.parquet"), str(files / "0.parquet")])
    assert "given twice" in refused(said, twice)
    shown = repr(pmdp.inspect(model(), data=frame, bounds=DECLARED["bounds"]))
    assert "61 records" in shown


def test_a_table_in_parts_says_nothing_and_does_not_travel():
    from pymc_dp.releases.headers import table_of
    from pymc_dp.releases.source import WORDS

    table = table_of(dd.from_pandas(FRAME, npartitions=3).persist(), WORDS)
    assert repr(table) == "DaskTable(x, site, y, k)"
    for dumps in (pickle.dumps, cloudpickle.dumps):
        with pytest.raises(TypeError):
            dumps(table)
    assert "Install pymc_dp" in refused(table.check, ["x"], lambda chunk, names: ("another", ""))


@pytest.mark.slow
@pytest.mark.parametrize("sums", [fails, lambda opened, source, *persons: 1])
def test_what_fails_in_a_part_is_in_nobodys_words(tmp_path, monkeypatch, capfd, sums):
    monkeypatch.setattr(from_records, "sums_of", sums)
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=1, create=True)
    with pytest.raises(PrivateComputationError) as error:
        pmdp.release(model(), data=dd.from_pandas(FRAME, npartitions=3).persist(), ledger=ledger, **DECLARED)
    assert (str(error.value), error.value.__cause__, error.value.__context__) == (FAILED, None, None)
    assert (ledger.remaining().epsilon, capfd.readouterr()) == (0, ("", ""))


# ---------- arrays with names


def named(frame=FRAME):
    import xarray as xr

    return xr.Dataset({name: ("record", frame[name].to_numpy()) for name in frame})


def test_arrays_of_dask_are_read_chunk_by_chunk_and_from_files_as_without_chunks(tmp_path):
    import xarray as xr

    expected, dataset = said(FRAME), named()
    dataset.chunk(record=17).to_zarr(tmp_path / "records.zarr")
    stored = xr.open_zarr(tmp_path / "records.zarr")
    with seen_blocks() as blocks:
        for data in (stored, xr.open_zarr(tmp_path / "records.zarr", chunks={"record": 5}), stored.persist(), dataset.chunk(record=9)):
            assert said(data) == expected
    assert blocks == [[N], [N], [17, 17, 17, 10], [9] * 6 + [7]]
    # a slice of files and arithmetic are code; so are arrays that lie otherwise, and text
    still = [stored + 0, stored.isel(record=slice(30)), stored.assign(y=stored["y"].persist()), stored.astype(object).persist()]
    for data in [*still, dataset.chunk(record=9).assign(y=dataset["y"]), dataset.chunk(record=9).assign(y=dataset["y"].chunk(record=8))]:
        assert "persist()" in refused(said, data)


@contextmanager
def seen_blocks():
    """How many rows every block has, of every release."""
    from pymc_dp.releases.source import Source

    several, read = [], Source.blocks

    def blocks(self):
        for block in read(self):
            several.append(len(block["y"]))
            yield block

    counted = []

    def finished(self, *arguments):
        counted.append([*several])
        several.clear()
        return finish(self, *arguments)

    finish = Release.__init__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Source, "blocks", blocks)
        patch.setattr(Release, "__init__", finished)
        yield counted


# ---------- with workers


@pytest.fixture(scope="module")
def client():
    distributed, dask = pytest.importorskip("distributed"), pytest.importorskip("dask")
    cloudpickle.register_pickle_by_value(engine_parts)
    patient = {"distributed.comm.timeouts.connect": "600s", "distributed.comm.timeouts.tcp": "600s"}  # where others use the processors
    several = {"n_workers": 3, "threads_per_worker": 2, "dashboard_address": None}
    with dask.config.set(patient), distributed.LocalCluster(**several) as cluster, distributed.Client(cluster) as client:
        yield client
    cloudpickle.unregister_pickle_by_value(engine_parts)


@pytest.mark.slow
def test_rows_of_14_kinds_of_no_numbers_move_nothing_else(client, tmp_path):
    texts, missing = malformed(NO_NUMBERS)
    texts.map(lambda value: value if value is None else str(value)).astype("string").to_parquet(tmp_path / "0.parquet", row_group_size=9)
    persisted = dd.from_pandas(FRAME, npartitions=5).map_partitions(_malformed, meta=odd()[:0]).persist()
    expected = said(missing)
    assert said(dd.read_parquet(str(tmp_path))) == expected == said(persisted) != said(FRAME)


def _malformed(part):
    return engine_parts.malformed(engine_parts.NO_VALUES)[0].loc[part.index]


@pytest.mark.slow
def test_workers_sum_what_lies_with_them(client, tmp_path):
    files = str(files_in(tmp_path, odd()))
    for declared in KINDS:
        expected = said(odd(), **declared)
        persisted = dd.from_pandas(FRAME, npartitions=5).map_partitions(_odd, meta=odd()[:0]).persist()
        for data in (dd.read_parquet(files), persisted[["y", "x", "k", "site"]]):
            assert said(data, **declared) == expected
    assert said(named().chunk(record=9).persist()) == said((named() * 1).chunk(record=9).persist()) == said(FRAME)
    failed = dd.from_pandas(FRAME, npartitions=2).map_partitions(fails, 1, meta=FRAME).persist()
    assert "could not be computed" in refused(said, failed)


def _odd(part):
    return engine_parts.odd().loc[part.index]


@pytest.mark.slow
def test_workers_count_a_person_once_wherever_the_rows_lie(client, tmp_path):
    """Three workers, and a person who has rows in every file: nine more in each move what is released by as many rows as may count."""
    frame, found = with_persons(), {}
    for name in (None, "ann", "bob", "77"):
        pieces = [frame[:20], frame[20:40], frame[40:]]
        (tmp_path / str(name)).mkdir()
        for part, piece in enumerate(pieces):
            more = [] if name is None else [of_one_person(name)]
            pd.concat([piece, *more]).to_parquet(tmp_path / str(name) / f"{part}.parquet")
        data = dd.read_parquet(str(tmp_path / str(name)))
        for declared in OF_PERSONS[:1] if name is None else ():
            assert said(data, **declared) == said(frame, **declared)
        with seam_of(0):
            released = pmdp.release(model(), data=data, **OF_PERSONS[1], **DECLARED)
        found[name] = released["k"].noisy
    for name in ("bob", "77"):
        assert (found[name] - found[None]).sum() == MOST
    assert (found["ann"] - found[None]).sum() == 0, "ann has as many already"


@pytest.mark.slow
@pytest.mark.parametrize("declared", [KINDS[1], OF_PERSONS[1]], ids=["rows", "persons"])
def test_what_a_killed_worker_had_read_is_read_again_and_counted_once(client, tmp_path, monkeypatch, declared):
    (tmp_path / "files").mkdir()
    data, expected = dd.read_parquet(str(files_in(tmp_path / "files", with_persons()))), said(with_persons(), **declared)
    before, once, killer = set(client.run(_pid).values()), DiesOnce(tmp_path), Killer(tmp_path)
    monkeypatch.setattr(from_records, "sums_of", once)
    killer.start()
    assert said(data, **declared) == expected
    assert killer.killed in before
    assert killer.killed not in set(client.run(_pid).values())
    assert len(once.calls()) > (engine_parts.PARTS if declared == KINDS[1] else len(before))


@pytest.mark.slow
def test_a_partition_that_would_be_made_anew_is_not_released(client, tmp_path, monkeypatch):
    """It could hold records that were counted in another: here rows are dealt to partitions by chance."""
    data = dd.from_pandas(FRAME, npartitions=6).map_partitions(lambda part: part.sample(frac=0.5), meta=FRAME).persist()
    said(data, neighbours="add_remove")
    monkeypatch.setattr(from_records, "sums_of", DiesOnce(tmp_path))
    ledger, killer = pmdp.Ledger(tmp_path / "ledger", epsilon=1, neighbours="add_remove", create=True), Killer(tmp_path)
    killer.start()
    with pytest.raises(PrivateComputationError) as error:
        pmdp.release(model(), data=data, neighbours="add_remove", ledger=ledger, **DECLARED)
    assert (str(error.value), killer.killed is not None, ledger.remaining().epsilon) == (FAILED, True, 0)


@pytest.mark.slow
def test_a_partition_that_was_made_anew_between_two_rounds_is_not_released(client, tmp_path, monkeypatch):
    """A worker is lost after the first round and its partitions are made again, of other records; none is lost while they are read."""
    data = dd.from_pandas(FRAME, npartitions=6).map_partitions(lambda part: part.sample(frac=0.5), meta=FRAME).persist()
    distributed, rounds, results = pytest.importorskip("distributed"), [], DaskTable.results

    def lost_after_the_first(self, *arguments):
        rounds.append(None)
        if len(rounds) == 2:
            [[holder, *_], *_] = client.who_has(self._futures()).values()
            client.restart_workers([holder])
            distributed.wait(self._futures())
        return results(self, *arguments)

    with pm.Model() as logistic:
        x = pm.Data("x", np.zeros(2))
        pm.Bernoulli("k", logit_p=pm.Normal("a") + pm.Normal("b") * x, observed=np.zeros(2, dtype=int))
    more = {"bounds": {"x": (-2, 2), "logit(k)": (-4, 4)}, "neighbours": "add_remove", "missing": {}}
    (tmp_path / "files").mkdir()
    in_files = dd.read_parquet(str(files_in(tmp_path / "files")))
    assert said(in_files, logistic, **more) == said(FRAME, logistic, **more)
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=2, neighbours="add_remove", create=True)
    asked = more | {"data": data, "ledger": ledger, "epsilon": 1}
    pmdp.release(logistic, **asked)
    monkeypatch.setattr(DaskTable, "results", lost_after_the_first)
    with pytest.raises(PrivateComputationError) as error:
        pmdp.release(logistic, **asked)
    assert (str(error.value), len(rounds), ledger.remaining().epsilon) == (FAILED, 2, 0)


def _pid():
    import os

    return os.getpid()


@pytest.mark.slow
def test_no_record_travels_and_none_is_logged(client, tmp_path, monkeypatch):
    frame, travelled = FRAME.assign(y=CANARY, x=CANARY), []
    results, each = DaskTable.results, DaskTable._each

    def kept(self, function, names, written):
        travelled.append(written)
        return results(self, function, names, written)

    def kept_of_each(self, what, **arguments):
        found = each(self, what, **arguments)
        travelled.append(pickle.dumps(found))
        return found

    monkeypatch.setattr(DaskTable, "results", kept)
    monkeypatch.setattr(DaskTable, "_each", kept_of_each)
    data = dd.from_pandas(frame, npartitions=4).persist()
    pmdp.release(model(CANARY), data=data, **DECLARED)
    assert len(travelled) == 4  # what is said of every part, how many rows it has, the plan, and the sums
    wanted = [np.array([CANARY]).tobytes(), str(CANARY).encode()]
    assert wanted[0] in pickle.dumps(frame)
    assert not [one for one in travelled for canary in wanted if canary in one]
    monkeypatch.setattr(from_records, "sums_of", fails)
    with pytest.raises(PrivateComputationError):
        pmdp.release(model(), data=data, **DECLARED)
    logs = repr((client.get_worker_logs(), client.get_scheduler_logs()))
    assert str(CANARY) not in logs
