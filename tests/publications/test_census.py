"""Rows in the layout of a census become the queries of one table, and draws of it hold the truth as often as they say."""

import sys
from pathlib import Path

import numpy as np
import pytest

import pymc_dp as pmdp
from pymc_dp.publications.table_queries import rows_of

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

COORDS = {"sex": ["f", "m"], "race": ["A", "B", "C"]}
LEVELS = {"tract": 3, "group": 4, "block": 6}
ROWS = {
    "geocode": ["100111", "100112", "100", "100", "100", "1001", "100211", "100"],
    "query": ["detailed", "detailed", "total", "race * sex", "race", "sex", "detailed", "total"],
    "value": [
        [1, 2, 3, 4, 5, 6],
        [0, -1, 2, 0, 0, 1],
        [30],
        [9, 8, 7, 6, 5, 4],
        [10, 10, 11],
        np.array([12, 13]),
        [5, 4, 3, 2, 1, 0],
        [29],
    ],
    "variance": [4.0, 4.0, 1.0, 9.0, 2.0, 16.0, 25.0, None],
    "sign": ["", None, "", float("nan"), "", "", "", ">="],
}


def weighted(table, truth):
    """Every row's residual at a table, with its scale and kind: as a sorted list."""
    rows = rows_of(table)
    return sorted(zip((rows.values - rows.matrix @ truth.ravel()).tolist(), rows.scales.tolist(), rows.kinds.tolist()))


def by_hand(truth):
    """The same, from the rows one by one."""
    blocks = {"100111": truth[0], "100112": truth[1], "100211": truth[2]}
    found = []
    for code, query, value, variance, sign in zip(*ROWS.values()):
        inside = sum(cells for block, cells in blocks.items() if block.startswith(code))
        sums = {"detailed": inside, "total": inside.sum(), "race * sex": inside.T, "race": inside.sum(axis=0), "sex": inside.sum(axis=1)}
        exact = sign == ">="
        for entry, true in zip(np.ravel(value), np.ravel(sums[query])):
            found.append((float(entry - true), 0.0 if exact else float(np.sqrt(variance)), 3 if exact else 0))
    return sorted(found)


def test_every_row_is_read_as_it_stands(tmp_path):
    truth = np.random.default_rng(1).poisson(3.0, (3, 2, 3))
    table = pmdp.read_census(ROWS, COORDS, levels=LEVELS, source="a test")
    assert weighted(table, truth) == by_hand(truth)
    assert list(table.coords) == ["block", "sex", "race"]
    assert table.labels_of("group") == ["1001", "1002"]
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {name: list(values) for name, values in ROWS.items()} | {"value": [np.ravel(value).tolist() for value in ROWS["value"]]}
    columns["sign"] = ["", None, "", None, "", "", "", ">="]
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    stored = pmdp.read_census(tmp_path / "rows.parquet", COORDS, levels=LEVELS)
    assert weighted(stored, truth) == by_hand(truth)
    tree = pmdp.sample_table(table, draws=30, tune=10, keep=[("tract",)], random_seed=1)
    assert tree.posterior["count_tract"].min() >= 29
    assert "a test" in tree.privacy["source"].values
    assert all(node.attrs["promise"].startswith("the publisher's") for node in (tree, tree.posterior, tree.privacy))


def test_empty_cells_are_named_by_geocode():
    table = pmdp.read_census(ROWS, COORDS, levels=LEVELS, impossible={"100211": [[True, False, False], [False] * 3]})
    assert len(table.possible) == 17
    assert 12 not in table.possible


def test_rows_that_are_not_understood_are_refused():
    def refused(words, coords=COORDS, levels=LEVELS, impossible=None, **changed):
        with pytest.raises(pmdp.Refusal, match=words):
            pmdp.read_census(ROWS | changed, coords, levels=levels, impossible=impossible)

    def instead(name, place, value):
        return {name: [value if k == place else each for k, each in enumerate(ROWS[name])]}

    refused("5 digits", **instead("geocode", 0, "10011"))
    refused("No block lies in the area 200", **instead("geocode", 2, "200"))
    refused("sign 'about' is none", **instead("sign", 0, "about"))
    refused('neither "total"', **instead("query", 4, "age"))
    refused("has 2 values where", **instead("value", 4, [1, 2]))
    refused("is there twice", **instead("geocode", 1, "100111"))
    refused("no sign", **instead("variance", 2, 0.0))
    refused("each another number", levels={"tract": 3, "block": 3})
    refused("each another number", levels={"sex": 6})
    refused("shape", impossible={"100211": [True]})
    with pytest.raises(pmdp.Refusal, match="sign is missing"):
        pmdp.read_census({name: values for name, values in ROWS.items() if name != "sign"}, COORDS, levels=LEVELS)


@pytest.mark.slow
def test_intervals_hold_counties_that_no_prior_of_the_package_made(monkeypatch):
    """Twelve small counties of the benchmark, 90 % intervals at four levels: shares of sums that are held.

    Sums of one county are dependent, so bands are wide: from 0.82 for the larger sums. The total is met by every draw. Counties of
    which noise was drawn twice as wide as said are found: 0.6 and less is held there.
    """
    import census

    for name, many in (("TRACTS", 3), ("GROUPS", 2), ("BLOCKS", 5)):
        monkeypatch.setattr(census, name, many)
    held = {dims: [] for dims in (("tract",), ("tract", "race"), ("block_group",), ("block", "race"))}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        truth = census.county(rng)
        table = pmdp.read_census(census.measurements(rng, truth), census.COORDS, levels=census.LEVELS)
        tree = pmdp.sample_table(table, 400, tune=200, keep=[*held, ()], random_seed=seed)
        assert (tree.posterior["count_total"] == truth.sum()).all()
        for dims, shares in held.items():
            place, shape = table.margin_of(dims)
            drawn = tree.posterior[f"count_{'_'.join(dims)}"].values.reshape(800, -1)
            low, high = np.quantile(drawn, [0.05, 0.95], axis=0, method="inverted_cdf")
            true = np.bincount(place, weights=truth.ravel(), minlength=int(np.prod(shape)))
            shares.extend(((low <= true) & (true <= high)).tolist())
    for dims, shares in held.items():
        assert np.mean(shares) > 0.82, (dims, np.mean(shares))


def test_a_table_is_printed_in_a_line_a_query():
    """However many numbers it holds: a county has tens of thousands."""
    lines = repr(pmdp.read_census(ROWS, COORDS, levels=LEVELS)).splitlines()
    assert lines[:2] == ["PublishedTable of 18 cells: block (3) x sex (2) x race (3)", "  groups: tract (1) of block; group (2) of block"]
    assert lines[-3:] == [
        "3       by tract and race       discrete Gaussian noise of scale 1.41421",
        "2 of 4  by group and sex        discrete Gaussian noise of scale 4",
        "1       by tract                the true sum is at least this",
    ]


def test_a_table_with_long_names_fits_into_80_columns_and_into_a_page():
    """Names are shown as text, whatever they hold."""
    dims = ("neighbourhood_of_residence", "five_year_age_group", "highest_qualification", "<b>")
    law = pmdp.Codebook(pmdp.DiscreteGaussian(2.0), source="noisy measurement file of the census, second edition, read on 2026-11-03")
    queries = [pmdp.TableQuery(np.zeros((2, 2, 2, 2)), law, dims=dims), pmdp.TableQuery(np.zeros(1), law, matrix=np.ones((1, 16)))]
    table = pmdp.PublishedTable({dim: ["a", "b"] for dim in dims}, queries, {"tract": (dims[0], ["1", "1"])}, np.indices((2,) * 4)[0] > 0)
    assert max(map(len, [*repr(table).splitlines(), *repr(queries[0]).splitlines()])) <= 80
    assert "impossible: 8 cells" in repr(table)
    assert "&lt;b&gt;" in table._repr_html_()
    assert "<b>" not in table._repr_html_().replace("<p><b>", "")
