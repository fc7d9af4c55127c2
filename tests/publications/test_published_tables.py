"""Draws of a table given its published sums are those of the posterior, which enumeration gives on small tables."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy import stats

import pymc_dp as pmdp
from pymc_dp.publications.table_bounds import hard_rows, nearest_table
from pymc_dp.publications.table_draws import Chain, least_squares, problem_of
from pymc_dp.publications.table_prior import ALPHAS, EVEN, UNEVEN, Factors, even, mixed, poisson
from pymc_dp.publications.table_queries import rows_of

GRID = {"area": ["a", "b", "c"], "sex": ["f", "m"]}
WHOLE, REAL = pmdp.DiscreteGaussian(1.1), pmdp.GaussianNoise(0.9)
CELLS = pmdp.TableQuery([[0, 3], [2, -1], [1, 1]], WHOLE, dims=("area", "sex"))
MEANS, SHAPES = np.array([0.4, 2.0, 1.0, 0.7, 3.0, 0.2]), np.array([0.3, 1.0, 5.0, 0.1, 2.0, 0.5])

CASES = {
    "margins": ([CELLS, pmdp.TableQuery([2.6, 3.9], REAL, dims=("sex",))], {}, even(6)),
    "exact total": ([CELLS, pmdp.TableQuery(6, pmdp.Exact())], {}, mixed(MEANS, SHAPES)),
    "exact in a group": (
        [CELLS, pmdp.TableQuery([4, np.nan], pmdp.Exact(), dims=("north",)), pmdp.TableQuery(5.5, pmdp.LaplaceNoise(0.7))],
        {"groups": {"north": ("area", [True, True, False])}},
        poisson(MEANS),
    ),
    "bounds": (
        [
            CELLS,
            pmdp.TableQuery([1, 2, np.nan], pmdp.Exact(), dims=("area",), sign=">="),
            pmdp.TableQuery(7, pmdp.Exact(), sign="<="),
            pmdp.TableQuery([[np.nan, 1], [np.nan] * 2, [np.nan] * 2], pmdp.Exact(), dims=("area", "sex"), sign="<="),
        ],
        {},
        even(6),
    ),
    "empty cells": (
        [CELLS, pmdp.TableQuery([3, 1], pmdp.DiscreteLaplace([0.8, 2.0]), dims=("sex",))],
        {"impossible": [[True, False], [False, False], [False, True]]},
        mixed(MEANS[[1, 2, 3, 4]], SHAPES[[1, 2, 3, 4]]),
    ),
    "weights": (
        [
            CELLS,
            pmdp.TableQuery([7, 1], pmdp.DiscreteLaplace(1.5), matrix=[[1, 2, 3, 1, 0, 0], [0, 0, -1, 1, 1, -2]]),
            pmdp.TableQuery([9], pmdp.DiscreteGaussian(1.2), matrix=[[3, 0, 2, 1, 0, 4]]),
        ],
        {},
        poisson(MEANS),
    ),
}


def table_of(case):
    queries, settings, _ = CASES[case]
    return pmdp.PublishedTable(GRID, queries, **settings)


@cache
def by_enumeration(case, most=7):
    """Every table of up to ``most`` in a cell that meets the exact rows, and its posterior probability: from SciPy alone."""
    queries, _, law = CASES[case]
    table = table_of(case)
    every = np.array(list(product(range(most + 1), repeat=6)), dtype=np.int16)
    possible = table.possible
    every = every[(every[:, np.setdiff1d(np.arange(6), possible)] == 0).all(axis=1)]
    logs = np.zeros(len(every))
    for query in queries:
        axes = {"area": 1, "sex": 2}
        cells = every.reshape(-1, 3, 2)
        if query.matrix is not None:
            sums = every @ np.array(query.matrix).T
        elif query.dims == ("north",):
            sums = np.stack([cells[:, :2].sum(axis=(1, 2)), cells[:, 2].sum(axis=1)], axis=1)
        else:
            sums = cells.sum(axis=tuple(axis for dim, axis in axes.items() if dim not in query.dims))
        values = np.asarray(query.values, dtype=float)
        difference = np.where(np.isnan(values), 0, sums - values).reshape(len(every), -1)
        if isinstance(query.law, pmdp.Exact):
            met = {"=": difference == 0, ">=": difference >= 0, "<=": difference <= 0}[query.sign] | np.isnan(values).reshape(1, -1)
            logs[~met.all(axis=1)] = -np.inf
        elif isinstance(query.law, pmdp.LaplaceNoise):
            logs += stats.laplace.logpdf(difference, scale=np.ravel(query.law.scale)).sum(axis=1)
        elif isinstance(query.law, pmdp.DiscreteLaplace):
            logs += stats.dlaplace.logpmf(difference, 1 / np.ravel(query.law.scale)).sum(axis=1)
        else:
            logs += stats.norm.logpdf(difference, scale=query.law.scale).sum(axis=1)
    counts = every[:, possible].astype(float)
    if law.kind == 1:
        logs += stats.poisson.logpmf(counts, MEANS).sum(axis=1)
    elif law.kind == 2:
        means, shapes = MEANS[possible], SHAPES[possible]
        logs += stats.nbinom.logpmf(counts, shapes, shapes / (shapes + means)).sum(axis=1)
    keep = logs > logs.max() - 45
    weights = np.exp(logs[keep] - logs.max())
    return counts[keep].astype(np.int64), weights / weights.sum()


def agree(drawn, tables, chances):
    """p-value of a chi-square test that draws are from the enumerated posterior: tables in order of probability, rare ones together."""
    place = {row.tobytes(): k for k, row in enumerate(tables)}
    seen = np.bincount([place[row.tobytes()] for row in drawn], minlength=len(tables))
    order = np.argsort(-chances)
    group = np.floor(np.cumsum(chances[order]) * 60).astype(int)
    expected = np.bincount(group, weights=chances[order]) * len(drawn)
    observed = np.bincount(group, weights=seen[order], minlength=len(expected))
    used = expected > 5
    statistic = ((observed - expected)[used] ** 2 / expected[used]).sum()
    sums = tables @ np.arange(1, tables.shape[1] + 1)
    mean, spread = chances @ sums, np.sqrt(chances @ (sums - chances @ sums) ** 2)
    z = (drawn @ np.arange(1, tables.shape[1] + 1) - mean).mean() / spread * np.sqrt(len(drawn))
    return min(stats.chi2(used.sum() - 1).sf(statistic), 2 * stats.norm.sf(abs(z)))


@pytest.mark.parametrize("case", CASES)
def test_a_sweep_leaves_the_enumerated_posterior_as_it_is(case):
    """8,000 independent draws of the posterior, one sweep each. False alarms: 1e-6 a case.

    A mean that is off by .08 deviations is found.
    """
    tables, chances = by_enumeration(case)
    rng = np.random.default_rng(11)
    chain = Chain(problem_of(table_of(case)), rng, np.ones(tables.shape[1]))
    drawn = []
    for k in rng.choice(len(tables), p=chances, size=8000):
        chain.residual += chain.problem.rows.matrix @ (chain.x - tables[k])
        chain.x[:] = tables[k]
        chain.sweep(CASES[case][2])
        drawn.append(chain.x.copy())
    drawn = np.array(drawn)
    assert np.allclose(chain.residual, chain.problem.rows.values - chain.problem.rows.matrix @ chain.x)
    place = {row.tobytes() for row in tables}
    inside = np.array([row.tobytes() in place for row in drawn])
    assert inside.mean() > 0.999, "tables that enumeration leaves out"
    assert agree(drawn[inside], tables, chances) > 1e-6


@pytest.mark.parametrize("case", CASES)
def test_chains_reach_the_enumerated_posterior(case):
    """1,000 chains of 25 sweeps from one table. False alarms: 1e-6 a case."""
    tables, chances = by_enumeration(case)
    problem = problem_of(table_of(case))
    chain = Chain(problem, np.random.default_rng(5), least_squares(problem.rows))
    start, residual = chain.x.copy(), chain.residual.copy()
    drawn = []
    for _ in range(1000):
        chain.x[:], chain.residual[:] = start, residual
        for _ in range(25):
            chain.sweep(CASES[case][2])
        drawn.append(chain.x.copy())
    place = {row.tobytes() for row in tables}
    drawn = np.array([row for row in drawn if row.tobytes() in place])
    assert len(drawn) >= 995
    assert agree(drawn, tables, chances) > 1e-6


def test_unknowns_of_the_prior_are_drawn_from_their_conditionals():
    """Unknowns, table and sums from the prior, then six sweeps given the sums: the same law again (Geweke 2004).

    1,500 times; false alarms: 1e-6. A mean that is off by .25 deviations is found.
    """
    rng = np.random.default_rng(3)
    prior = pmdp.CellPrior(terms=[("area",), ("sex",)], level=(4.0, 2.0))
    table = pmdp.PublishedTable(GRID, [pmdp.TableQuery(np.zeros((3, 2)), pmdp.DiscreteGaussian(2.0), dims=("area", "sex"))])
    chain = Chain(problem_of(table), rng, np.ones(6))
    before, after = [], []
    for _ in range(1500):
        factors = Factors(table, prior, rng, chain.x)
        factors.level = rng.gamma(4.0, 0.5)
        factors.shape = float(np.exp(rng.uniform(np.log(UNEVEN), np.log(EVEN))))
        factors.factors = [
            np.maximum(rng.gamma(a, 1 / a, size), 1e-100) for a, size in zip([ALPHAS[place] for place in factors.places], (3, 2))
        ]
        chain.x[:] = rng.poisson(np.maximum(rng.gamma(factors.shape, 1 / factors.shape, 6), 1e-300) * factors.means)
        before.append(told(factors, chain.x))
        chain.residual[:] = rng.choice(np.arange(-17, 18), p=WHOLE.pmf(2.0), size=6)
        for _ in range(6):
            chain.sweep(factors.law)
            factors.update(rng, chain.x)
        after.append(told(factors, chain.x))
    before, after = np.array(before), np.array(after)
    assert not np.array_equal(before, after)
    for k in range(before.shape[1]):
        assert stats.ks_2samp(before[:, k], after[:, k]).pvalue > 1e-7, k
    assert stats.kstest(after[:, 0], stats.uniform(np.log(UNEVEN), np.log(EVEN / UNEVEN)).cdf).pvalue > 1e-7
    assert stats.kstest(after[:, 1], stats.gamma(4, scale=0.5).cdf).pvalue > 1e-7


def told(factors, x):
    """Numbers of a state that are compared: unknowns, whether factors have an alpha in common, and the table."""
    areas, sexes = (ALPHAS[place] for place in factors.places)
    alphas = [np.log(areas[0]), np.log(sexes[1]), float(areas[0] == areas[1]), float(sexes[0] == sexes[1])]
    shares = [share[3] for share in factors.shares]
    return [np.log(factors.shape), factors.level, *alphas, *shares, factors.factors[0][0], factors.factors[1][1], x[0], x[5], x.sum()]


def test_every_draw_meets_exact_rows():
    """Also where rows are nested, and groups cut across dims: whatever the seed."""
    rng = np.random.default_rng(8)
    truth = rng.negative_binomial(0.4, 0.1, (12, 2, 3))
    tract = np.repeat(["x", "y", "z"], 4)
    by_tract = np.array([truth[tract == label].sum() for label in "xyz"])
    queries = [
        pmdp.TableQuery(truth + np.rint(rng.normal(0, 3, truth.shape)), pmdp.DiscreteGaussian(3.0), dims=("block", "sex", "age")),
        pmdp.TableQuery(by_tract, pmdp.Exact(), dims=("tract",)),
        pmdp.TableQuery(truth.sum(axis=(1, 2)) // 2, pmdp.Exact(), dims=("block",), sign=">="),
        pmdp.TableQuery(truth.sum(), pmdp.Exact()),
    ]
    coords = {"block": range(12), "sex": ["f", "m"], "age": range(3)}
    table = pmdp.PublishedTable(
        coords, queries, groups={"tract": ("block", tract)}, impossible=(truth == 0) & (rng.random(truth.shape) < 0.3)
    )
    for prior in (None, "flat"):
        tree = pmdp.sample_table(table, draws=60, tune=10, prior=prior, random_seed=2)
        counts = tree.posterior["count"].values
        assert (counts >= 0).all()
        assert (counts[:, :, np.asarray(table.impossible)] == 0).all()
        blocks = counts.sum(axis=(3, 4))
        assert (blocks >= truth.sum(axis=(1, 2)) // 2).all()
        for label, total in zip("xyz", by_tract):
            assert (blocks[:, :, tract == label].sum(axis=2) == total).all()
        assert len(np.unique(counts[:, :, 0, 0, 1])) > 1
        tracts = pmdp.sample_table(table, draws=20, tune=5, prior=prior, keep=[("tract",), ()], random_seed=2).posterior
        assert (tracts["count_tract"].values == by_tract).all()
        assert (tracts["count_total"].values == truth.sum()).all()


def test_the_first_table_meets_exact_rows_and_is_near():
    """Whatever is wanted; and where what is wanted meets them, it stays."""
    rows = rows_of(table_of("bounds"))
    for seed in range(200):
        rng = np.random.default_rng(seed)
        x = nearest_table(hard_rows(rows), rng.gamma(0.5, 4.0, 6))
        assert x.min() >= 0
        assert x[:2].sum() >= 1
        assert x[2:4].sum() >= 2
        assert x.sum() <= 7
        assert x[1] <= 1
    assert nearest_table(hard_rows(rows), np.array([1.0, 1, 0, 3, 2, 0])).tolist() == [1, 1, 0, 3, 2, 0]


def refused(words, *arguments, **settings):
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.sample_table(pmdp.PublishedTable(GRID, *arguments, **settings), draws=2, tune=0)


def test_what_is_not_understood_is_refused():
    exact = pmdp.Exact()
    refused("neither holds the other", [pmdp.TableQuery([1, 2, 3], exact, dims=("area",)), pmdp.TableQuery([3, 3], exact, dims=("sex",))])
    refused("No table meets", [pmdp.TableQuery([1, 2, 3], exact, dims=("area",)), pmdp.TableQuery(7, exact)])
    refused("No table meets", [pmdp.TableQuery([1, 2, 3], exact, dims=("area",), sign=">="), pmdp.TableQuery(5, exact)])
    refused("No table meets", [pmdp.TableQuery([1, 2, 3], exact, dims=("area",))], impossible=[[True, True], [False] * 2, [False] * 2])
    refused("neither a dim nor a group", [pmdp.TableQuery([1, 2, 3], WHOLE, dims=("tract",))])
    refused("shape", [pmdp.TableQuery([1, 2], WHOLE, dims=("area",))])
    refused("shape", [pmdp.TableQuery([1, 2, 3], pmdp.DiscreteGaussian([1.0, 2.0]), dims=("area",))])
    refused("whole numbers whole", [pmdp.TableQuery([1.5, 2, 3], WHOLE, dims=("area",))])
    refused("whole numbers of whole cells", [pmdp.TableQuery([1], exact, matrix=[[1, 2, 0, 0, 0, 0]])])
    refused("finite", [pmdp.TableQuery(np.inf, REAL)])
    refused("one label for each", [CELLS], groups={"north": ("area", [1, 2])})
    refused("shape of the table", [CELLS], impossible=[True, False])
    refused("list of TableQuery", [])
    for wrong in ([WHOLE, pmdp.Clipped(lower=0)], pmdp.RoundedToBase(3), pmdp.Skellam(2.0)):
        with pytest.raises(pmdp.Refusal, match="Gaussian or Laplace"):
            pmdp.TableQuery(1, wrong)
    with pytest.raises(pmdp.Refusal, match="bound is an exact one"):
        pmdp.TableQuery(1, WHOLE, sign=">=")
    table = pmdp.PublishedTable(GRID, [pmdp.TableQuery([1, np.nan, 2], WHOLE, dims=("area",))])
    with pytest.raises(pmdp.Refusal, match="flat prior has no posterior"):
        pmdp.sample_table(table, prior="flat")
    with pytest.raises(pmdp.Refusal, match="at least 1"):
        pmdp.sample_table(table, draws=0)
    with pytest.raises(pmdp.Refusal, match="Keep margins"):
        pmdp.sample_table(table, draws=10**8)
