"""Bayesian networks of records beside the model (``data=``): released and drawn from as those of the model that observes the records."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from checks import mostly_slow, refused, seam_of

import pymc_dp as pmdp
from pymc_dp.plans.protection import protection_of
from pymc_dp.posterior import tables
from pymc_dp.posterior.draws import task_of
from pymc_dp.posterior.routes import prepared
from pymc_dp.privacy.mechanisms import exponential_mechanism
from pymc_dp.privacy.receipts import Receipt
from pymc_dp.releases import source

parquet = pytest.importorskip("pyarrow.parquet")
duckdb = pytest.importorskip("duckdb")

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(1)
N = 90
ILL, TEST = RNG.integers(0, 2, N).astype(float), RNG.integers(0, 3, N).astype(float)
FRAME = pd.DataFrame(
    {"ill": ILL, "test": TEST, "dead": np.where(ILL > 0, RNG.integers(0, 2, N), TEST > 0).astype(float), "who": np.arange(N) // 4}
)
PLACEHOLDERS = pd.DataFrame({"ill": [0.0, 0.0], "test": [0.0, 0.0], "dead": [0.0, 0.0]})
ODD = FRAME.astype(object)
for row, odd in enumerate([np.nan, -1.0, 99.0, -7.0, 12.0, np.nan]):  # PyMC cuts fractions off, before anything is read
    ODD.iloc[row, row % 3] = odd


def network(frame, **more):
    """Illness, a test of three levels given it, and death given both."""
    with pm.Model() as model:
        ill, test, dead = (frame[name].to_numpy(dtype=float) for name in ("ill", "test", "dead"))
        for name, values in more.items():
            pm.Data(name, values)
        ill = pm.Bernoulli("ill", pm.Beta("share", 1, 1), observed=ill)
        test = pm.Categorical("test", pm.Dirichlet("tested", np.ones(3), shape=(2, 3))[ill], observed=test)
        pm.Bernoulli("dead", pm.Beta("died", 1, 1, shape=(2, 3))[ill, test], observed=dead)
    return model


def exact(model, neighbours, data=None, mechanism="laplace", **more):
    """All that a release says where the noise is nothing, and so its exact sums."""
    with seam_of(0):
        released = pmdp.release(model, epsilon=1, neighbours=neighbours, data=data, mechanism=mechanism, **more)
    return [(statistic.facts(), *(array.tolist() for array in statistic.arrays)) for statistic in released.statistics]


def sources(frame, folder):
    yield frame.astype(float)
    yield frame.astype(float).sample(frac=1, random_state=1)
    frame.astype(float).to_parquet(folder / "records.parquet", row_group_size=17)
    yield folder / "records.parquet"
    connection, whole = duckdb.connect(), frame.astype("int64" if frame is FRAME else float)  # whole numbers DuckDB counts itself
    connection.register("frame", whole)
    connection.execute("CREATE TABLE records AS SELECT * FROM frame")
    yield connection.table("records")


@pytest.mark.parametrize("mechanism", ["laplace", "fourier", pmdp.Laplace(share_counts=True)])
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("frame", [FRAME, ODD], ids=["levels", "odd values"])
def test_tables_of_every_source_are_those_of_the_model_that_observes_the_records(tmp_path, monkeypatch, frame, neighbours, mechanism):
    expected = exact(network(frame.astype(float)), neighbours, mechanism=mechanism)
    monkeypatch.setattr(source, "NUMBERS_AT_ONCE", 52)
    for data in sources(frame, tmp_path):
        assert exact(network(PLACEHOLDERS), neighbours, data, mechanism) == expected


def test_parts_add_up_to_the_tables_of_all_records():
    with seam_of(0):
        shared = pmdp.share_out(network(PLACEHOLDERS), parts=2, records=N, epsilon=1)
        parts = [pmdp.partial_statistics(shared.plan, part, k) for k, part in enumerate((FRAME[:31], FRAME[31:]))]
        together = pmdp.add_up(shared, parts)
    assert [statistic.noisy.tolist() for statistic in together.statistics] == [said[1] for said in exact(network(FRAME), "replace")]


@pytest.mark.parametrize("missing", [["ill"], {"ill": 1, "test": 2}, ["test", "dead"]], ids=str)
def test_missing_values_of_parents_are_what_was_declared(missing):
    holes = FRAME.mask(RNG.random(FRAME.shape) < 0.3).assign(who=FRAME["who"])
    expected = exact(network(holes), "replace", missing=missing)
    assert exact(network(PLACEHOLDERS), "replace", holes, missing=missing) == expected
    assert expected != exact(network(holes), "replace", missing={})


def scores_of(model, neighbours, unit="row", data=None):
    """The integer scores of every split, node by node, the price, and the number of records that is said."""
    seen = []

    def watched(scores, scale, receipt, *more):
        seen.append(np.array(list(scores)).tolist())
        return exponential_mechanism(list(map(np.array, seen[-1])), scale, receipt, *more)

    protection = protection_of(unit=unit, neighbours=neighbours, missing={}, persons=True)
    ready = prepared(task_of(model, 2, 0, pmdp.PosteriorSample(1, points=33), protection, data=data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "exponential_mechanism", watched)
        ready.draw(Receipt(ready.price.draws, ready.price.cost))
    return seen, ready.price, ready.records


@pytest.mark.parametrize("unit", ["row", pmdp.Person("who", at_most=3)], ids=["row", "person"])
@pytest.mark.parametrize("neighbours", mostly_slow(["replace", "add_remove"], 0))
def test_draws_are_those_of_the_model_that_observes_the_records(neighbours, unit):
    keyed = {} if unit == "row" else {"who": FRAME["who"].to_numpy()}
    for frame in (FRAME.astype(float), ODD.astype(float)):
        expected = scores_of(network(frame, **keyed), neighbours, unit)
        assert scores_of(network(PLACEHOLDERS), neighbours, unit, frame) == expected


def test_draws_and_modes_cost_what_they_cost_of_records_in_the_model(tmp_path):
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=3, create=True)
    tree = pmdp.sample(model=network(PLACEHOLDERS), data=FRAME, mechanism=pmdp.PosteriorSample(1), epsilon=2, ledger=ledger)
    assert (tree.attrs["epsilon"], ledger.remaining().epsilon) == (2.0, 1)
    assert tree.posterior["died"].shape == (1, 1, 2, 3)
    sharp, close = FRAME.assign(ill=1.0), {"epsilon": 1e5, "missing": {}}
    assert pmdp.find_MAP(model=network(PLACEHOLDERS), data=sharp, **close)["share"] > 0.95
    assert pmdp.find_MAP(model=network(PLACEHOLDERS), data=sharp.assign(ill=0.0), **close)["share"] < 0.05


@pytest.mark.parametrize("mechanism", ["laplace", "fourier", pmdp.PosteriorSample(1)], ids=["laplace", "fourier", "draws"])
def test_a_table_with_another_number_of_rows_than_was_counted_is_not_released(tmp_path, monkeypatch, mechanism):
    """It changed after the ledger was charged. Where the number is private nothing is said of it."""
    read, path = source.Source.blocks, tmp_path / "records.parquet"
    FRAME.to_parquet(path)
    monkeypatch.setattr(source.Source, "blocks", lambda self: FRAME[1:].to_parquet(path) or read(self))
    call = pmdp.sample if isinstance(mechanism, pmdp.PosteriorSample) else pmdp.release
    asked = {"model": network(PLACEHOLDERS), "data": path, "epsilon": 2, "mechanism": mechanism, "missing": {}}
    with pytest.raises(pmdp.PrivateComputationError):
        call(**asked)
    FRAME.to_parquet(path)
    call(**asked, neighbours="add_remove")


def test_what_is_not_drawn_of_tables_is_refused():
    with pm.Model() as counts:
        pm.Poisson("y", pm.Uniform("rate", 1, 2), observed=np.arange(2))
    of_counts = {"model": counts, "data": pd.DataFrame({"y": [1.0, 2.0]}), "bounds": {"y": (0, 5)}, "epsilon": 1}
    of_network = {"model": network(PLACEHOLDERS), "data": FRAME, "epsilon": 1}
    draw = pmdp.PosteriorSample(1)
    assert "Bernoulli or Categorical" in refused(pmdp.sample, **of_counts, mechanism=draw)
    assert "networks are released, not drawn" in refused(pmdp.sample, **of_network, mechanism=draw, missing=["ill"])
    by_chains = pmdp.PosteriorSample(1, method="mcmc")
    assert "method and truncate are for other models" in refused(pmdp.sample, **of_network, mechanism=by_chains)
    assert "one of 'ill', 'test', 'dead'" in refused(pmdp.sample, **of_network, mechanism=draw, missing=["nobody"])
    assert "ask records in the model" in refused(pmdp.sample, **of_network, mechanism=pmdp.Gibbs(sweeps=2))
    assert "no column called dead" in refused(pmdp.sample, **of_network | {"data": FRAME.drop(columns="dead")}, mechanism=draw)
    words = refused(pmdp.share_out, network(PLACEHOLDERS), parts=2, records=N, epsilon=1, mechanism="fourier")
    assert "rest on all variables of a record together" in words
