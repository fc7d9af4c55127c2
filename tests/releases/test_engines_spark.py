"""DataFrames of Spark: partitions are summed by its Python workers.

With Java: ``uv run --group engines pytest -m slow tests/releases/test_engines_spark.py``.
"""

import os
import pickle
import shutil
import sys

import cloudpickle
import engine_parts
import numpy as np
import pandas as pd
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

sql = pytest.importorskip("pyspark.sql")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
if shutil.which("java") is None:
    pytest.skip("with Java", allow_module_level=True)


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    cloudpickle.register_pickle_by_value(engine_parts)
    from pyspark import cloudpickle as of_spark

    of_spark.register_pickle_by_value(engine_parts)
    folder = tmp_path_factory.mktemp("spark")
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.warehouse.dir": str(folder)}
    builder = sql.SparkSession.builder.master("local[2,4]").config("spark.driver.bindAddress", "127.0.0.1")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
    cloudpickle.unregister_pickle_by_value(engine_parts)


@pytest.fixture
def files(tmp_path):
    """A directory of four files of the same types, one of them empty."""
    for part, (first, last) in enumerate([(0, 20), (20, 20), (20, 59), (59, N)]):
        FRAME[first:last].to_parquet(tmp_path / f"{part} of=4.parquet")
    return str(tmp_path)


def test_a_frame_of_spark_is_its_rows_however_they_are_parted(spark, files):
    read = spark.read.parquet(files)
    read.createOrReplaceTempView("records")
    chosen = read.select("y", "k", "x", read.site.alias("where")).withColumnRenamed("where", "site")
    parted = read.repartition(7).localCheckpoint()
    assert parted.rdd.getNumPartitions() == 7
    more = [chosen, parted, spark.createDataFrame(FRAME), spark.table("records"), read.filter("y > -9").localCheckpoint()]
    expected = [said(FRAME, **declared) for declared in KINDS]
    assert said(read, **KINDS[0]) == expected[0]
    for declared, whole in zip(KINDS, expected, strict=True):
        for data in more[: None if declared == KINDS[1] else 1]:
            assert said(data, **declared) == whole


def test_values_are_read_as_arrow_has_them(spark, tmp_path):
    """Odd values move nothing else, whatever type they made of a column."""
    texts = odd().astype(dict.fromkeys(FRAME, "string")).assign(more=[[1]] * N)
    texts.to_parquet(tmp_path / "records.parquet")
    expected = said(odd(), missing=["y"])
    assert said(spark.read.parquet(str(tmp_path)), missing=["y"]) == expected != said(FRAME, missing=["y"])
    long = texts.assign(y=texts["y"].mask(texts["y"] == "secret", "0" * 10**6 + "1"))
    assert said(spark.createDataFrame(long.drop(columns="more")), missing=["y"]) == expected
    read = (
        spark.createDataFrame(FRAME)
        .selectExpr("x", "cast(site as byte) site", "date'2020-01-01' y", "cast(k as decimal(30, 4)) k")
        .localCheckpoint()
    )
    assert said(read) == said(FRAME.assign(y=np.nan))


def test_labels_are_read_by_the_workers_as_here(spark):
    frame, expected = of_labels()
    assert said(spark.createDataFrame(frame), sites()) == expected


def test_rows_of_14_kinds_of_no_numbers_move_nothing_else(spark, tmp_path):
    texts, missing = malformed(NO_NUMBERS)
    texts.map(lambda value: value if value is None else str(value)).astype("string").to_parquet(tmp_path / "0.parquet", row_group_size=9)
    assert said(spark.read.parquet(str(tmp_path))) == said(missing) != said(FRAME)


def test_what_is_still_to_be_computed_is_refused_before_anything_is_paid(spark, files, tmp_path_factory):
    read = spark.read.parquet(files)

    def would_fail(batches):
        raise ValueError

    still = [read.mapInArrow(would_fail, read.schema), read.filter("y > 0"), read.withColumn("y", read.y + 1), read.union(read)]
    still += [read.repartition(3), read.limit(5), read.sample(0.5), read.selectExpr("*", "1/0 z"), spark.createDataFrame(read.rdd)]
    still += [read.filter("y > 0").localCheckpoint(eager=False), read.dropDuplicates(), read.join(read, "k")]
    folder = tmp_path_factory.mktemp("refused")
    ledger = pmdp.Ledger(folder / "ledger", epsilon=1, create=True)
    for data in still:
        assert "still to be computed" in refused(pmdp.release, model(), data=data, ledger=ledger, **DECLARED)
    mixed = folder / "mixed"
    mixed.mkdir()
    files_in(mixed)
    assert "types" in refused(pmdp.release, model(), data=spark.read.parquet(str(mixed)), ledger=ledger, **DECLARED)
    assert "no column called y" in refused(pmdp.release, model(), data=read.drop("y"), ledger=ledger, **DECLARED)
    assert "apart" in refused(pmdp.release, model(), data=read.select("*", read.k.alias("Y")), ledger=ledger, **DECLARED)
    dated = spark.createDataFrame(FRAME.assign(who=pd.Timestamp(2020, 1, 1)))
    persons = {"unit": pmdp.Person("who", at_most=2), "neighbours": "add_remove"}
    assert "no column called who" in refused(pmdp.release, model(), data=read, **persons, **DECLARED)
    assert "names no person" in refused(pmdp.release, model(), data=dated, **persons, **DECLARED)
    assert ledger.remaining().epsilon == 1


@pytest.mark.parametrize("declared", OF_PERSONS, ids=["replace", "add_remove"])
def test_persons_are_those_of_the_table_however_it_is_parted(spark, tmp_path, declared):
    frame = with_persons()
    for part, (first, last) in enumerate([(0, 20), (20, 20), (20, N)]):
        frame[first:last].to_parquet(tmp_path / f"{part}.parquet")
    expected, read = said(frame, **declared), spark.read.parquet(str(tmp_path))
    for data in (read, read.repartition(7).localCheckpoint(), spark.createDataFrame(frame).coalesce(1).localCheckpoint()):
        assert said(data, **declared) == expected
    assert said(read, **declared | {"unit": pmdp.Person("who", MOST + 1)}) != expected


def test_a_person_counts_once_wherever_the_rows_lie(spark, tmp_path):
    """Nine more rows of one person in every partition move what is released by as many rows as may count."""
    frame, found = with_persons(), {}
    for name in (None, "ann", "bob", "77"):
        more = [] if name is None else [of_one_person(name)]
        (tmp_path / str(name)).mkdir()
        for part, piece in enumerate([frame[:20], frame[20:40], frame[40:]]):
            pd.concat([piece, *more]).to_parquet(tmp_path / str(name) / f"{part}.parquet")
        with seam_of(0):
            data = spark.read.parquet(str(tmp_path / str(name))).repartition(5, "x").localCheckpoint()
            found[name] = pmdp.release(model(), data=data, **OF_PERSONS[1], **DECLARED)["k"].noisy
    for name in ("bob", "77"):
        assert (found[name] - found[None]).sum() == MOST
    assert (found["ann"] - found[None]).sum() == 0, "ann has as many already"


@pytest.mark.parametrize("declared", [*KINDS[:2], OF_PERSONS[1]], ids=["rows", "rows, add_remove", "persons"])
def test_what_a_worker_that_died_had_read_is_read_again_and_counted_once(spark, files, tmp_path_factory, monkeypatch, declared):
    place, frame = tmp_path_factory.mktemp("killed"), with_persons()
    expected = said(frame, **declared)
    data = spark.createDataFrame(frame).repartition(engine_parts.PARTS).localCheckpoint()
    once, killer = DiesOnce(place), Killer(place)
    monkeypatch.setattr(from_records, "sums_of", once)
    killer.start()
    assert said(data, **declared) == expected
    assert str(killer.killed) in once.calls()
    assert len(once.calls()) > engine_parts.PARTS


def test_no_record_travels_and_none_is_in_an_error(spark, monkeypatch, capfd):
    from pymc_dp.releases.spark_tables import SparkTable

    travelled, results = [], SparkTable.results

    def kept(self, function, names, written):
        found = results(self, function, names, written)
        travelled.extend([written, *found])
        return found

    monkeypatch.setattr(SparkTable, "results", kept)
    data = spark.createDataFrame(FRAME.assign(y=CANARY, x=CANARY)).repartition(3).localCheckpoint()
    pmdp.release(model(CANARY), data=data, **DECLARED)
    assert len(travelled) == 4
    wanted = [np.array([CANARY]).tobytes(), str(CANARY).encode()]
    assert not [one for one in travelled for canary in wanted if canary in one]
    with pytest.raises(TypeError):
        pickle.dumps(SparkTable(data))
    capfd.readouterr()
    monkeypatch.setattr(from_records, "sums_of", fails)
    with pytest.raises(PrivateComputationError) as error:
        pmdp.release(model(), data=data, **DECLARED)
    assert (str(error.value), error.value.__cause__, error.value.__context__) == (FAILED, None, None)
    assert str(CANARY) not in "".join(capfd.readouterr())
