"""Where the records of ``data=`` may lie, and what reading them takes."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from checks import refused

import pymc_dp as pmdp
from pymc_dp.releases import source, stored

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

pytestmark = pytest.mark.filterwarnings("ignore")


def taken(path):
    """The most memory that Arrow holds while a file is read, in bytes."""
    before = pa.total_allocated_bytes()
    return max(pa.total_allocated_bytes() - before for _ in stored.stored_in_file(path, ["x"]))


@pytest.mark.parametrize("group", [2**16, 2**22])
def test_a_file_of_many_rows_takes_no_more_memory_than_one_of_few(tmp_path, group):
    rng, rows = np.random.default_rng(1), 2**21
    for name, many in (("few", rows // 8), ("many", rows)):
        parquet.write_table(pa.table({"x": rng.normal(size=many)}), tmp_path / name, row_group_size=group, use_dictionary=False)
    assert (tmp_path / "many").stat().st_size > 2**24
    assert taken(tmp_path / "many") < 1.5 * taken(tmp_path / "few") + 2**20 < 2**23


def rows(n, seed=1):
    rng = np.random.default_rng(seed)
    columns = {"x": rng.normal(size=n), "site": rng.integers(0, 3, n), "y": rng.normal(size=n), "k": rng.integers(0, 2, n)}
    return pd.DataFrame(columns)


def model(n=2):
    with pm.Model() as built:
        x, site = pm.Data("x", np.zeros(n)), pm.Data("site", np.zeros(n, dtype=int))
        pm.Bernoulli("k", pm.Beta("p", 1, 1, shape=3)[site], observed=np.zeros(n, dtype=int))
        pm.Normal("y", pm.Normal("a") + pm.Normal("b") * x, pm.HalfNormal("sd"), observed=np.zeros(n))
    return built


BOUNDS = {"x": (-2, 2), "y": (-1, 1)}


def test_inspect_says_the_columns_and_reads_none(tmp_path, monkeypatch):
    monkeypatch.setattr(source.Source, "blocks", None)
    rows(50).to_parquet(tmp_path / "records.parquet")
    shown = {}
    for neighbours in ("replace", "add_remove"):
        for data in (rows(50), rows(50).astype(object), pl.from_pandas(rows(50)), tmp_path / "records.parquet"):
            shown.setdefault(neighbours, set()).add(repr(pmdp.inspect(model(), data=data, bounds=BOUNDS, neighbours=neighbours)))
        assert len(shown[neighbours]) == 1
    [text], [private] = shown.values()
    for said in ("site (a whole number from 0 to 2)", "k (a whole number from 0 to 1)", "y (a number from -1 to 1)", "none was read"):
        assert said in text
        assert said in private
    assert "from 50 records" in text
    assert "50" not in private


def test_inspect_says_what_stands_against_a_release_of_data():
    assert "x is public and has an entry" in repr(pmdp.inspect(model(), data=rows(5), public=["x"], bounds={"y": (-1, 1)}))
    assert "not disjoint" in repr(pmdp.inspect(model(), data=rows(5), disjoint=["k", "y"]))
    assert "y (a number, whose bounds are needed)" in repr(pmdp.inspect(model(), data=rows(5)))
    assert "no records" in repr(pmdp.inspect(model(), data=rows(0), bounds=BOUNDS))
    assert "data must be" in refused(pmdp.inspect, model(), data=[1, 2])
    assert "no column called y" in refused(pmdp.inspect, model(), data=rows(5).drop(columns="y"))
    assert "take no data=" in refused(pmdp.inspect, model(), data=rows(5), mechanism=pmdp.Gibbs(sweeps=5), epsilon=1)
