"""Columns with bounds of their own: what is counted, how far a record moves it, its law, and what is refused."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from checks import EXACT, check_finite, check_no_records, log_density, refused, spread_of_differences

import pymc_dp as pmdp
from pymc_dp.families.by_column import ByColumn
from pymc_dp.families.family import Domain, named
from pymc_dp.laws import law as laws
from pymc_dp.laws.events import IN_CELLS
from pymc_dp.laws.law import Moments
from pymc_dp.models.spec import Likelihood, Placeholder
from pymc_dp.plans.plan import planned
from pymc_dp.private_models.likelihood import law_of, plan_of
from pymc_dp.releases.release import Release
from pymc_dp.releases.statistics import Cells
from pymc_dp.releases.totals import clamped, exact_totals

pytestmark = pytest.mark.filterwarnings("ignore")
N = 83
WILD = [-np.inf, -1e308, -1.0, 0.0, 0.5, 1.0, 2.0, 5.0, 9.0, 20.0, 60.0, 1e308, np.inf, np.nan]
CASES = {
    "Normal": (((-2.0, 6.0), (20.0, 90.0)), (True, True), [[1.0, 50.0], [3.0, 80.0]], [[2.0, 9.0], [1.0, 30.0]]),
    "LogNormal": (((0.5, 6.0), (20.0, 90.0)), (True, True), [[0.5, 4.0], [1.0, 3.5]], [[0.5, 0.4], [1.0, 0.2]]),
    "Poisson": (((0.0, 6.0), (5.0, 40.0)), (True,), [[2.0, 20.0], [8.0, 4.0]]),
    "Geometric": (((1.0, 4.0), (2.0, 30.0)), (True,), [[0.5, 0.1], [0.3, 0.2]]),
    "Exponential": (((0.0, 6.0), (5.0, 40.0)), (True,), [[2.0, 0.1], [0.4, 0.05]]),
    "Gamma": (((0.1, 6.0), (5.0, 40.0)), (True, True), [[2.0, 4.0], [1.0, 7.0]], [[1.0, 0.2], [2.0, 0.4]]),
    "Beta": (((0.01, 0.4), (0.2, 0.9)), (True, True), [[2.0, 4.0], [1.0, 3.0]], [[9.0, 3.0], [8.0, 4.0]]),
}
SCALED = [name for name in CASES if name not in ("Poisson", "Geometric")]


def domain_of(name):
    columns, unknown, *_ = CASES[name]
    return Domain(min(low for low, _ in columns), max(high for _, high in columns), unknown=unknown, columns=columns)


def alone(domain, c):
    return Domain(*domain.columns[c], unknown=domain.unknown)


# ---------- how far a record moves the sums
def sums_of_records(step, values, levels):
    """Integers of every record by itself: values (M, 2), each in every private cell."""
    values, codes = np.concatenate([values] * levels), np.repeat(range(levels), len(values))
    M = len(values)
    cells = Cells(np.arange(M), np.ones(M, dtype=int), ())
    private = {"index": codes[:, None].astype(float)} if levels > 1 else {}
    return clamped(exact_totals(values, step, cells, private, None, None, None)).reshape(M, -1)


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("levels", [1, 3])
@pytest.mark.parametrize("name", CASES)
def test_no_pair_of_records_moves_the_sums_by_more_than_is_paid_for(name, levels, neighbours):
    """All pairs of records that hold in either column the ends, what lies beyond, what is no number, and points between."""
    family, domain = named(name), domain_of(name)
    index = Placeholder(pt.tensor("index", dtype="int64", shape=(None,)), 0, "g", private=True, index=True, levels=levels)
    likelihood = Likelihood("y", name, family, unknown=domain.unknown, inputs=(index,) if levels > 1 else (), columns=(2,))
    if name not in SCALED and (levels > 1 or neighbours == "add_remove"):
        assert "Write an observed variable for every column" in refused(planned, likelihood, {"y": list(domain.columns)}, neighbours)
        return
    step = planned(likelihood, {"y": list(domain.columns)}, neighbours)
    points = [*(low + share * (high - low) for low, high in domain.columns for share in (0.25, 0.5)), *np.ravel(domain.columns), *WILD]
    sums = sums_of_records(step, np.array(list(product(points, repeat=2))), levels)
    if neighbours == "add_remove":
        moved = np.abs(sums).sum(axis=1), (sums.astype(float) ** 2).sum(axis=1)
    else:
        sums = np.unique(sums, axis=0)
        apart = [np.abs(sums - one) for one in sums]
        moved = np.array([a.sum(axis=1).max() for a in apart]), np.array([(a.astype(float) ** 2).sum(axis=1).max() for a in apart])
    assert moved[0].max() <= step.sensitivity.difference
    assert moved[1].max() <= step.sensitivity.square
    assert moved[0].max() >= 0.99 * step.sensitivity.difference
    assert moved[1].max() >= 0.98 * step.sensitivity.square


@pytest.mark.parametrize("name", CASES)
def test_a_value_is_no_further_from_another_than_in_the_widest_column(name):
    """Sums with public weights are priced by it, and their size is bounded by it."""
    whole = ByColumn(named(name)).sensitivity(domain_of(name))
    each = [named(name).sensitivity(alone(domain_of(name), c)) for c in range(2)]
    assert (whole.difference, whole.square, whole.largest) == tuple(
        max(getattr(one, what) for one in each) for what in ("difference", "square", "largest")
    )


def test_sums_with_public_weights_move_by_no_more_than_is_paid_for(exact_seam):
    """Of many distinct public rows: any row may hold anything in either column."""
    x, columns = np.linspace(-1, 1, 40), np.array([[0, 6], [5, 40]])

    def released(values):
        with pm.Model() as model:
            mean = pm.math.exp(pm.Normal("a", shape=2) + pm.Data("x", x)[:, None] * pm.Normal("b", shape=2))
            pm.Poisson("y", mean, observed=values)
        return pmdp.release(model, epsilon=1.0, bounds={"y": columns}, public=["x"]).statistics[0]

    corners = np.array(list(product(*columns)))
    for row in (0, 20, 39):
        several = []
        for corner in corners:
            values = np.full((40, 2), 7)
            values[row] = corner
            several.append(released(values))
        assert several[0].weights.size
        moved = [np.abs(one.noisy - other.noisy).sum() for one in several for other in several]
        assert 0 < max(moved) <= several[0].difference


def test_every_value_is_moved_into_the_bounds_of_its_own_column(exact_seam):
    """What is no number counts as the middle of the bounds of its column."""
    Y = np.array([[-5.0, 0.0], [9.0, 99.0], [np.nan, np.nan], [1.0, 30.0]])
    (noisy,) = pmdp.release(normal(Y), epsilon=EXACT, bounds={"y": [(-2, 6), (20, 90)]}).statistics
    moved = np.array([[-2, 20], [6, 90], [2, 55], [1, 30]])
    u = (moved - [2, 55]) / [4, 35]
    np.testing.assert_allclose(noisy.values[0], np.stack([u.sum(axis=0), (u**2).sum(axis=0)], axis=-1), atol=1e-3)


# ---------- the law
@pytest.mark.parametrize("name", CASES)
def test_the_law_is_that_of_every_column(name):
    """As the family has it of one column: means, covariances, densities and projections."""
    family, domain = named(name), domain_of(name)
    given = [np.array(parameter) for parameter in CASES[name][2:]]
    n = np.array([[30.0], [12.0]])
    whole = ByColumn(family).law(domain, pt.constant(n), *map(pt.constant, given))
    assert isinstance(whole, Moments)
    K = len(whole.mean)
    noisy = np.random.default_rng(1).normal(0, 20, (2, 2, K))
    projected = ByColumn(family).project(noisy, n[..., None], 1.0, domain)
    density = ByColumn(family).log_likelihood(pt.constant(projected), pt.constant(n), domain, *map(pt.constant, given)).eval()
    assert density.shape == (2, 2)
    for c in range(2):
        own = [pt.constant(parameter[:, c : c + 1]) for parameter in given]
        part = family.law(alone(domain, c), pt.constant(n), *own)
        for k in range(K):
            np.testing.assert_allclose(whole.mean[k].eval()[:, c], part.mean[k].eval()[:, 0], rtol=1e-12)
            for j in range(k + 1):
                np.testing.assert_allclose(whole.covariance[k][j].eval()[:, c], part.covariance[k][j].eval()[:, 0], rtol=1e-12)
        np.testing.assert_array_equal(projected[:, c], family.project(noisy[:, c], n, 1.0, alone(domain, c)))
        sums = pt.constant(projected[:, c : c + 1])
        np.testing.assert_allclose(
            density[:, c], family.log_likelihood(sums, pt.constant(n), alone(domain, c), *own).eval()[:, 0], rtol=1e-12
        )


@pytest.mark.parametrize("levels", [1, 3])
def test_few_events_are_no_normal_number_in_columns_either(levels):
    """The density of two columns is that of each by itself, and every number of events is summed over."""
    model = _censored(levels)
    bounds = {"t": [(0, 4), (0, 2)]} | ({"g": (0, 2)} if levels > 1 else {})
    [statistic] = pmdp.release(model, epsilon=4.0, bounds=bounds, missing={}).statistics
    n = pt.constant(np.full((levels, 1), 83.0 / levels))
    rate = np.random.default_rng(0).uniform(0.01, 0.1, (levels, 2))
    law = law_of(statistic, [pt.constant(1 / rate), pt.constant(np.full((levels, 2), 4.0))], n)
    plan = plan_of(statistic, law, np.full((levels, 1), 83.0 / levels))
    assert plan.form == "events"
    both = laws.log_density(law, pt.constant(statistic.values), statistic.noise, plan).eval()
    for c, ends in enumerate(statistic.domain.columns):
        domain = replace(statistic.domain, lower=ends[0], upper=ends[1], columns=())
        one_column = named("CensoredExponential").law(domain, n, pt.constant(1 / rate[:, c : c + 1]), pt.constant(4.0))
        one_column = laws.in_cells(one_column, IN_CELLS, n) if levels > 1 else one_column
        own = laws.log_density(one_column, pt.constant(statistic.values[:, c : c + 1]), statistic.noise, plan).eval()
        np.testing.assert_allclose(both[:, c], own[:, 0], rtol=1e-10)


def _censored(levels):
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 40, shape=(3, 2) if levels > 1 else 2)
        rate = rate[pm.Data("g", np.arange(N) % 3)] if levels > 1 else rate
        times = np.minimum(np.random.default_rng(1).exponential(30, (N, 2)), 4.0)
        pm.Censored("t", pm.Exponential.dist(rate), lower=None, upper=4.0, observed=times)
    return model


# ---------- whole models
def arrays(n=N, seed=2):
    rng = np.random.default_rng(seed)
    real = np.column_stack([1 + rng.integers(-16, 17, n) / 8, 48 + rng.integers(-16, 17, n)])
    return real, np.column_stack([rng.integers(0, 7, n), rng.integers(5, 30, n)]), np.arange(n) % 3


def normal(Y, g=None):
    with pm.Model() as model:
        mean = pm.Normal("mean", [0.0, 50.0], [5.0, 30.0], shape=(3, 2) if g is not None else 2)
        pm.Normal("y", mean if g is None else mean[pm.Data("g", g)], pm.HalfNormal("sd", [2.0, 20.0], shape=2), observed=Y)
    return model


def poisson(K, g=None):
    with pm.Model() as model:
        rate = pm.Gamma("rate", [2.0, 30.0], [1.0, 2.0], shape=(3, 2) if g is not None else 2)
        pm.Poisson("y", rate if g is None else rate[pm.Data("g", g)], observed=K)
    return model


REALS, COUNTS = [(-2.0, 6.0), (16.0, 80.0)], np.array([[0, 6], [5, 36]])
MODELS = {
    "normal": (lambda real, whole, g: normal(real), REALS, {}),
    "normal by private group": (lambda real, whole, g: normal(real, g), REALS, {}),
    "normal by public group": (lambda real, whole, g: normal(real, g), REALS, {"public": ["g"]}),
    "normal, none beyond": (lambda real, whole, g: normal(real), [pmdp.Natural(*ends) for ends in REALS], {}),
    "counts": (lambda real, whole, g: poisson(whole), COUNTS, {}),
    "counts by public group": (lambda real, whole, g: poisson(whole, g), COUNTS, {"public": ["g"]}),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_rewritten_model_is_the_user_s_and_has_no_records(name, exact_seam):
    write, bounds, more = MODELS[name]
    model = write(*arrays())
    released = pmdp.release(model, epsilon=EXACT, bounds={"y": bounds}, **more)
    private = pmdp.rewrite(model, released, noise_aware=False)
    assert spread_of_differences(log_density(model), model, private, log_density(private)) < 1e-2
    check_no_records(model, private, N)


@pytest.mark.parametrize("name", MODELS)
def test_the_noise_aware_density_is_finite_and_the_release_is_read_again(name):
    write, bounds, more = MODELS[name]
    model = write(*arrays())
    released = pmdp.release(model, epsilon=1.0, bounds={"y": bounds}, **more)
    again = Release.from_datatree(released.to_datatree())
    assert again == released
    assert again.statistics[0].domain.columns == tuple(tuple(map(float, pair)) for pair in bounds)
    check_finite(pmdp.rewrite(write(*arrays(7, 9)) if not more else model, again))


def test_equal_bounds_of_all_columns_are_one_pair():
    model = poisson(arrays()[1])
    each, one = (pmdp.inspect(model, bounds={"y": bounds}).rows[0] for bounds in ([(0, 30)] * 2, (0, 30)))
    assert (each.sensitivity, each.reason) == (one.sensitivity, one.reason)


def test_equal_bounds_of_all_columns_are_one_pair_of_a_regression():
    each, one = (pmdp.inspect(_regression(), bounds={"y": bounds, "x": (-1, 1)}).rows[0] for bounds in ([(0, 60)] * 2, (0, 60)))
    assert one.sensitivity
    assert (each.sensitivity, each.reason) == (one.sensitivity, one.reason)


def test_a_bound_may_be_an_array_without_axes():
    bounds = [tuple(map(np.array, pair)) for pair in REALS]
    assert pmdp.release(normal(arrays()[0]), epsilon=1.0, bounds={"y": bounds})["y"].domain.columns == tuple(REALS)


def test_one_pair_in_a_list_is_the_pair_of_the_only_column_of_a_table():
    with pm.Model() as model:
        pm.Poisson("y", pm.Gamma("m", 2, 1), observed=np.ones(3, dtype=int))
    for bounds in ((0, 6), [(0, 6)]):
        shown = pmdp.inspect(model, bounds={"y": bounds}, data=pd.DataFrame({"y": range(9)}))
        assert shown.columns == (("y", "a number from 0 to 6"),)


def test_what_is_missing_counts_as_a_value_that_every_column_can_have(exact_seam):
    counts = arrays()[1].astype(float)
    counts[:3] = np.nan
    for fill in (4, 7, 36):
        words = refused(pmdp.release, poisson(counts), epsilon=1.0, bounds={"y": COUNTS}, missing={"y": fill})
        assert f"cannot count as {fill}, which is no level of y" in (words or "")
    (noisy,) = pmdp.release(poisson(counts), epsilon=EXACT, bounds={"y": COUNTS}, missing={"y": 6}).statistics
    counts[:3] = 6
    np.testing.assert_array_equal(noisy.values[0, :, 0], np.clip(counts, *COUNTS.T).sum(axis=0))


def test_columns_that_share_no_level_get_one_each(exact_seam):
    """What the refusal names, written down: a variable for every column, with bounds and a level of its own."""
    counts = arrays()[1].astype(float)
    counts[:3] = np.nan
    words = refused(pmdp.release, poisson(counts), epsilon=1.0, bounds={"y": [(0, 3), (5, 12)]}, missing={"y": 3})
    assert words
    assert "Write an observed variable for every column, as with observed=y[:, 0]" in words
    assert "such as" not in words
    with pm.Model() as model:
        mu = pm.Gamma("mu", 2, 1, shape=2)
        for c, name in enumerate(("y", "z")):
            pm.Poisson(name, mu[c], observed=np.ma.masked_invalid(counts[:, c]))
    released = pmdp.release(model, epsilon=EXACT, bounds={"y": (0, 3), "z": (5, 12)}, missing={"y": 3, "z": 5})
    counts[:3] = 3, 5
    np.testing.assert_array_equal([noisy.values[0, 0] for noisy in released.statistics], np.clip(counts, [0, 5], [3, 12]).sum(axis=0))


def test_columns_of_a_covariate_that_share_no_level_are_left_out(exact_seam):
    """What the refusal names, written down, by release and by draws from the posterior."""
    x, y = np.array([[0, 3], [1, 4], [1, 5], [0, 5]] * 9, dtype=float), np.array([0, 1, 1, 0] * 9)
    x[:4] = np.nan

    def model():
        with pm.Model() as model:
            pm.Bernoulli("y", p=pm.math.sigmoid(pm.math.dot(x.astype("int64"), pm.Normal("b", shape=2))), observed=y)
        return model

    arguments = {"model": model(), "epsilon": 1.0, "bounds": {"y:0": [(0, 1), (3, 5)]}}
    draws = {"draws": 1, "mechanism": pmdp.PosteriorSample(draws=1, truncate="prior", points=21)}
    for door, more in ((pmdp.release, {}), (pmdp.sample, draws)):
        words = refused(door, **arguments, **more, missing={"y:0": 3})
        assert "Write missing=['y:0']" in (words or "")
        assert door(**arguments, **more, missing=["y:0"]) is not None


def test_a_level_that_columns_share_is_named():
    words = refused(pmdp.release, poisson(arrays()[1]), epsilon=1.0, bounds={"y": COUNTS}, missing={"y": 99})
    assert "Write one that it can have, such as 5" in (words or "")
    assert pmdp.release(poisson(arrays()[1]), epsilon=1.0, bounds={"y": COUNTS}, missing={"y": 5}).statistics


def test_columns_of_counts_add_up_and_are_told_apart():
    row = pmdp.inspect(poisson(arrays()[1]), bounds={"y": COUNTS}).rows[0]
    assert row.sensitivity == 6 + 31
    assert "column 1: a count is clamped to 5 to 36, so one record moves the sum by at most 31" in row.reason


def test_a_prior_that_goes_beyond_the_bounds_of_one_column_is_told():
    told = pmdp.inspect(normal(arrays()[0]), bounds={"y": [(-90, 90), (49, 51)]})
    assert "y" in str(told)
    assert not any("cannot" in row.reason for row in told.rows)


# ---------- what is refused, and what works instead
def _regression():
    with pm.Model() as model:
        x = pm.Data("x", np.sin(np.arange(N)))
        mean = pm.Normal("a", 0, 9, shape=2) + x[:, None] * pm.Normal("b", shape=2)
        pm.Normal("y", mean, 1, observed=arrays()[0])
    return model


def _apart():
    Y = arrays()[0]
    with pm.Model() as model:
        x, a, b = pm.Data("x", np.sin(np.arange(N))), pm.Normal("a", 0, 9, shape=2), pm.Normal("b", shape=2)
        for c, name in enumerate(("y", "z")):
            pm.Normal(name, a[c] + x * b[c], 1, observed=Y[:, c])
    return model


def _counted():
    with pm.Model() as model:
        pm.NegativeBinomial("y", mu=pm.Gamma("m", 2, 1, shape=2), alpha=pm.Gamma("alpha", 2, 1), observed=arrays()[1])
    return model


def _tailed(y=None, *others):
    y = arrays()[0] if y is None else y
    with pm.Model() as model:
        for name, values in zip(("y", "z"), (y, *others), strict=False):
            pm.StudentT(name, nu=4, mu=pm.Normal(f"mu_{name}", 0, 50, shape=values.shape[1:]), sigma=9.0, observed=values)
    return model


def _columns_apart(kind):
    """What is named in place of bounds of columns: a variable for each."""
    real, whole, g = arrays()
    if kind == "bins":
        return _tailed(*real.T)
    with pm.Model() as model:
        m, alpha = pm.Gamma("m", 2, 1, shape=(3, 2)), pm.Gamma("alpha", 2, 1)
        for c, name in enumerate(("y", "z")):
            if kind == "groups":
                pm.Poisson(name, m[pm.Data(f"g_{name}", g), c], observed=whole[:, c])
            elif kind == "counted":
                pm.NegativeBinomial(name, mu=m[0, c], alpha=alpha, observed=whole[:, c])
            else:
                pm.Dirichlet(name, m[:, c], observed=np.full((N, 3), 1 / 3))
    return model


@pytest.mark.parametrize(
    ("kind", "bounds"),
    [
        ("groups", {"y": (0, 6), "z": (5, 36)}), ("counted", {"y": (0, 6), "z": (5, 36)}),
        ("shares", {"y": (0.01, 0.5), "z": (0.1, 0.9)}), ("bins", {"y": pmdp.Bins(-2, 6, 8), "z": pmdp.Bins(16, 80, 9)}),
    ],
)  # fmt: skip
def test_what_is_named_in_place_of_bounds_of_columns_works(kind, bounds):
    assert len(pmdp.release(_columns_apart(kind), epsilon=1.0, bounds=bounds).statistics) == 2


def _shares():
    with pm.Model() as model:
        pm.Dirichlet("y", pm.Gamma("a", 2, 1, shape=(2, 3)), observed=np.full((N, 2, 3), 1 / 3))
    return model


REFUSED = {
    "as many pairs as columns": (
        lambda: normal(arrays()[0]),
        {"y": [*REALS, (0, 1)]},
        "has 2 columns, and its bounds are 3 pairs",
    ),
    "as many equal pairs as columns": (
        lambda: normal(arrays()[0]),
        {"y": [(0, 1)] * 3},
        "has 2 columns, and its bounds are 3 pairs",
    ),
    "shares": (_shares, {"y": [(0.01, 0.5), (0.1, 0.9)]}, "values of y are vectors"),
    "a pair of a number and a list": (lambda: normal(arrays()[0]), {"y": [(0, 1), (0, [1, 2])]}, "must be a pair of numbers"),
    "a pair that is none": (lambda: normal(arrays()[0]), {"y": [(0, 1), (3, 2)]}, "the lower one first"),
    "texts": (lambda: normal(arrays()[0]), {"y": [("0", "1"), ("0", "3")]}, "bounds of y are texts"),
    "some natural": (lambda: normal(arrays()[0]), {"y": [(0, 1), pmdp.Natural(0, 3)]}, "for all columns, or for none"),
    "natural counts": (lambda: poisson(arrays()[1]), {"y": [pmdp.Natural(0, 9), pmdp.Natural(0, 40)]}, "known only with values moved"),
    "counts in private groups": (lambda: poisson(*arrays()[1:]), {"y": COUNTS}, "an observed variable for every column"),
    "bins": (_tailed, {"y": [pmdp.Bins(-2, 6, 8), pmdp.Bins(16, 80, 9)]}, "an observed variable for every column"),
    "values that are counted": (_counted, {"y": COUNTS}, "an observed variable for every column"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_columns_cannot_have_is_refused(name):
    make, bounds, words = REFUSED[name]
    assert words in (refused(pmdp.release, make(), epsilon=1.0, bounds=bounds) or "")


def test_an_observed_variable_for_every_column_has_bounds_of_its_own():
    released = pmdp.release(_apart(), epsilon=1.0, bounds={"y": REALS[0], "z": REALS[1], "x": (-1, 1)})
    assert [statistic.variable for statistic in released.statistics] == ["y", "z"]


def _several(kind):
    """Three columns: of sums, of a regression, of vectors, and of a covariate; and bounds of what else there is."""
    rng = np.random.default_rng(1)
    x, Y = rng.uniform(-1, 1, N), rng.normal([0, 40, 3], [1, 9, 1], (N, 3))
    with pm.Model() as model:
        a = pm.Normal("a", 0, 50, shape=3)
        if kind == "vectors":
            pm.MvNormal("y", a, np.diag([1.0, 81.0, 1.0]), observed=Y)
        elif kind == "a covariate":
            pm.Normal("z", pm.Data("y", Y) @ a, 1, observed=x)
        else:
            line = pm.Data("x", x)[:, None] * pm.Normal("b", shape=3) if kind == "a regression" else 0.0
            pm.Normal("y", a + line, 1, observed=Y)
    return (
        model,
        {"a regression": {"x": (-1, 1)}, "a covariate": {"z": (-1, 1)}}.get(kind, {}),
        {"vectors": {"public": ["y:0"]}}.get(kind, {}),
    )


THREE = [(-3.0, 3.0), (0.0, 80.0), (-1.0, 7.0)]
SPELLED = {
    "by label": {"low": THREE[0], "high": THREE[1], "mid": THREE[2]},
    "all lower ends first": np.array(THREE).T,
    "two lists": (np.array(THREE)[:, 0].tolist(), np.array(THREE)[:, 1].tolist()),
    "a table": pd.DataFrame(THREE).T,
    "a table with labels": pd.DataFrame(THREE, index=["low", "high", "mid"]),
    "an array with labels": xr.DataArray(THREE, dims=("which", "end"), coords={"which": ["low", "high", "mid"]}),
}


@pytest.mark.parametrize("kind", ["sums", "a regression", "vectors", "a covariate"])
@pytest.mark.parametrize("spelled", SPELLED)
def test_bounds_that_are_written_otherwise_are_refused_and_what_is_named_works(kind, spelled):
    model, more, public = _several(kind)
    words = refused(pmdp.release, model, epsilon=1.0, bounds={**more, "y": SPELLED[spelled]}, **public) or ""
    assert "bounds of y are pairs in a list, in the order of the columns" in words
    named = eval(words.partition("Write bounds=")[2].removesuffix("."))
    assert named == {"y": THREE}
    assert pmdp.release(model, epsilon=1.0, bounds={**more, **named}, **public).statistics


def test_other_things_are_refused_in_words_that_name_a_list():
    model, _, _ = _several("sums")
    for bounds in ([THREE[0], None, THREE[2]], pd.Series(THREE), 3.0):
        words = refused(pmdp.release, model, epsilon=1.0, bounds={"y": bounds})
        assert "where it has several columns a list of such pairs, one for each" in (words or "")


@pytest.mark.parametrize("kind", ["sums", "a regression", "vectors", "a covariate"])
def test_masked_bounds_are_none(kind):
    """What lies under the mask was taken for a bound."""
    model, more, public = _several(kind)
    masked = np.ma.masked_array(THREE, mask=[[False, False], [False, True], [False, False]])
    words = refused(pmdp.release, model, epsilon=1.0, bounds={**more, "y": masked}, **public) or ""
    assert "Some bounds of y are masked" in words
    if kind != "a regression":  # which takes pairs in a list alone
        assert pmdp.release(model, epsilon=1.0, bounds={**more, "y": np.ma.masked_array(THREE)}, **public).statistics
        assert pmdp.release(model, epsilon=1.0, bounds={**more, "y": pd.DataFrame(THREE)}, **public).statistics
