"""Regressions of several outcomes, each with bounds of its own: what is released, how far a record moves it, and its law.

Of every column it is what is released of an observed variable of that column alone, whose argument about sensitivity is that of one pair.
"""

from itertools import product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import EXACT, check_finite, check_no_records, log_density, points, refused, spread_of_differences

import pymc_dp as pmdp
from pymc_dp.models.reader import read_spec
from pymc_dp.plans.plan import planned
from pymc_dp.releases.release import Release
from pymc_dp.releases.statistics import Cells, feature_columns
from pymc_dp.releases.totals import clamped, exact_totals

pytestmark = pytest.mark.filterwarnings("ignore")
N = 83
PAIRS = [(-2.0, 6.0), (16.0, 80.0)]
WILD = [-np.inf, -1e308, 0.0, 1e308, np.inf, np.nan]


def arrays(n=N, seed=2):
    """A covariate, two outcomes of units of their own that hold the ends of their bounds and more, and a group."""
    rng = np.random.default_rng(seed)
    x, g = rng.integers(-16, 17, n) / 16, np.arange(n) % 3
    y = np.column_stack([2 + x + rng.integers(-16, 17, n) / 8, 48 + 8 * x + rng.integers(-16, 17, n)])
    y[:6] = [[-9.0, 99.0], [6.0, 16.0], [np.nan, 20.0], [1.0, np.nan], [-2.0, 80.0], [0.0, 0.0]]
    return x, y, g


def together(x, y, g, family=pm.Normal, groups=False):
    with pm.Model() as model:
        x, a, b = pm.Data("x", x), pm.Normal("a", [0, 50], [9, 90], shape=(3, 2)), pm.Normal("b", 0, [9, 90], shape=2)
        s = pm.HalfNormal("s", [2, 20], shape=2)
        family("y", (a[pm.Data("g", g)] if groups else a[0]) + x[:, None] * b, s, observed=y)
    return model


def apart(x, y, g, family=pm.Normal, groups=False):
    with pm.Model() as model:
        x, a, b = pm.Data("x", x), pm.Normal("a", [0, 50], [9, 90], shape=(3, 2)), pm.Normal("b", 0, [9, 90], shape=2)
        s, g = pm.HalfNormal("s", [2, 20], shape=2), pm.Data("g", g) if groups else 0
        for c, name in enumerate(("y", "z")):
            family(name, a[g, c] + x * b[c], s[c], observed=y[:, c])
    return model


def positive(n=N):
    x, y, g = arrays(n)
    return x, np.column_stack([np.exp(y[:, 0]), y[:, 1] * 1000.0]), g


SETTINGS = {
    "private": (arrays, {}, {}, PAIRS),
    "an array": (arrays, {}, {}, np.array(PAIRS)),
    "natural": (arrays, {}, {}, [pmdp.Natural(*pair) for pair in PAIRS]),
    "public covariate": (arrays, {}, {"public": ["x"]}, PAIRS),
    "private groups": (arrays, {"groups": True}, {}, PAIRS),
    "public groups": (arrays, {"groups": True}, {"public": ["g"]}, PAIRS),
    "left out": (arrays, {}, {"missing": ["y"]}, PAIRS),
    "private number": (arrays, {}, {"neighbours": "add_remove"}, PAIRS),
    "people": (arrays, {}, {"unit": pmdp.Person(np.arange(N) // 2, at_most=2, name="person")}, PAIRS),
    "logarithms": (positive, {"family": pm.LogNormal}, {}, [(0.1, 400.0), (1e4, 8e4)]),
}


def bounds_of(more, pairs, apart=False):
    x = {} if "x" in more.get("public", ()) else {"x": (-1, 1)}
    return x | ({"y": pairs[0], "z": pairs[1]} if apart else {"y": pairs})


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_column_is_released_as_a_variable_of_its_own_is(setting, exact_seam):
    """To the last integer, whatever records hold; and one record moves both columns by what it moves both variables."""
    records, how, more, pairs = SETTINGS[setting]
    one = pmdp.release(together(*records(), **how), epsilon=EXACT, bounds=bounds_of(more, pairs), **more).statistics[0]
    others = {"missing": ["y", "z"]} if "missing" in more else {}
    each = pmdp.release(apart(*records(), **how), epsilon=EXACT, bounds=bounds_of(more, pairs, True), **more | others).statistics
    assert one.domain.columns
    np.testing.assert_array_equal(one.noisy, np.stack([noisy.noisy for noisy in each], axis=1))
    assert one.difference == sum(noisy.difference for noisy in each)
    assert one.square == sum(noisy.square for noisy in each)


def plan_of(levels, neighbours):
    x, y, g = arrays(9)
    spec = read_spec(together(x, y, g, groups=levels > 1), sized=neighbours == "replace")
    return planned(spec.likelihoods[0], {"x": (-1.0, 1.0), "y": PAIRS}, neighbours)


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("levels", [1, 3])
def test_no_pair_of_records_moves_the_sums_by_more_than_is_paid_for(levels, neighbours):
    """All pairs of records of a covariate and two outcomes: ends, points between, what lies beyond and what is no number."""
    step = plan_of(levels, neighbours)
    shares = np.array([0.0, 0.25, 1 / 3, 0.5, 0.75, 1.0])
    values = list(product(*([*(low + shares * (high - low)), *WILD] for low, high in PAIRS)))
    rows = [(x, *y, code) for x in 2 * shares - 1 for y in values for code in range(levels)]
    x, y, codes = np.array([row[0] for row in rows]), np.array([row[1:3] for row in rows]), np.array([row[3] for row in rows])
    M, arrays_of = len(rows), {"x": x, "g": codes[:, None].astype(float)}
    private = {p.variable.name: arrays_of[p.name] for p in step.likelihood.inputs}
    features = feature_columns(step, {p.variable.name: x for p in step.likelihood.inputs if p.name == "x"}, M)
    sums = clamped(exact_totals(y, step, Cells(np.arange(M), np.ones(M, dtype=int), ()), private, features, None, None)).reshape(M, -1)
    if neighbours == "add_remove":
        moved = np.abs(sums).sum(axis=1), (sums.astype(float) ** 2).sum(axis=1)
    else:
        sums = np.unique(sums, axis=0)
        gaps = [np.abs(sums - one) for one in sums]
        moved = np.array([a.sum(axis=1).max() for a in gaps]), np.array([(a.astype(float) ** 2).sum(axis=1).max() for a in gaps])
    assert moved[0].max() <= step.sensitivity.difference
    assert moved[1].max() <= step.sensitivity.square
    assert moved[0].max() >= 0.98 * step.sensitivity.difference
    assert moved[1].max() >= 0.98 * step.sensitivity.square


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_rewritten_model_is_the_user_s_and_has_no_records(setting, exact_seam):
    """Up to what is clamped and rounded: of records within the bounds."""
    records, how, more, pairs = SETTINGS[setting]
    x, y, g = records()
    y = np.clip(np.where(np.isnan(y), np.mean(pairs, axis=1), y), *np.array(pairs).T)
    model = together(x, y, g, **how)
    released = pmdp.release(model, epsilon=EXACT, bounds=bounds_of(more, pairs), **{**more, "missing": {}})
    private = pmdp.rewrite(model, released, noise_aware=False)
    assert spread_of_differences(log_density(model), model, private, log_density(private)) < 0.1
    check_no_records(model, private, N)


def scaled(x, y, g, pairs, family=pm.Normal, groups=False):
    """The same model of outcomes that the user has scaled to (-1, 1), where one pair of bounds is that of both columns."""
    lower, upper = np.array(pairs).T if family is pm.Normal else np.log(pairs).T
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    y = (y - middle) / half if family is pm.Normal else np.exp((np.log(y) - middle) / half)
    middle, half = pt.stack(middle.tolist()), pt.stack(half.tolist())  # numbers in the graph, not arrays
    with pm.Model() as model:
        x, a, b = pm.Data("x", x), pm.Normal("a", [0, 50], [9, 90], shape=(3, 2)), pm.Normal("b", 0, [9, 90], shape=2)
        s, a = pm.HalfNormal("s", [2, 20], shape=2), a[pm.Data("g", g)] if groups else a[0]
        family("y", (a - middle) / half + x[:, None] * (b / half), s / half, observed=y)
    return model, (-1, 1) if family is pm.Normal else (float(np.exp(-1)), float(np.exp(1)))


@pytest.mark.parametrize("aware", [False, True])
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_law_is_that_of_outcomes_that_are_scaled_before(setting, aware, exact_seam):
    """The private models have one density, noise and latents included; and a release that was saved makes the same model."""
    records, how, more, pairs = SETTINGS[setting]
    x, y, g = records()
    y = y if setting != "logarithms" else np.where(np.isnan(y), 5.0, y)  # what is missing counts as the middle, before the logarithm
    other, ends = scaled(x, y, g, pairs, **how)
    ends = pmdp.Natural(*ends) if isinstance(pairs[0], pmdp.Natural) else ends
    released = pmdp.release(together(x, y, g, **how), epsilon=2.0, bounds=bounds_of(more, pairs), **more)
    again = Release.from_datatree(released.to_datatree())
    assert again == released
    private = pmdp.rewrite(together(x, y, g, **how), again, noise_aware=aware)
    like = pmdp.rewrite(other, pmdp.release(other, epsilon=2.0, bounds=bounds_of(more, ends), **more), noise_aware=aware)
    ours, theirs = log_density(private), log_density(like)
    assert private.released[0].scale == like.released[0].scale
    for point in points(private, 3):
        np.testing.assert_allclose(ours(point), theirs(point), rtol=1e-7)
    check_finite(private)


def test_epsilon_is_divided_as_among_outcomes_that_are_scaled_before():
    shares = []
    for middle, half, bounds in (([0.0, 0.0], [1.0, 1.0], PAIRS), ([2.0, 48.0], [4.0, 32.0], (-1, 1))):
        middle, half = pt.stack(middle), pt.stack(half)
        with pm.Model() as model:
            x, a, b = pm.Data("x", arrays()[0]), pm.Normal("a", [2, 48], [1, 8], shape=2), pm.Normal("b", 0, [0.5, 4], shape=2)
            pm.Normal("y", (a - middle + x[:, None] * b) / half, pm.HalfNormal("s", [0.5, 4], shape=2) / half, observed=np.zeros((N, 2)))
            pm.Normal("z", pm.Normal("m", 0, 1), 1.0, observed=np.zeros(N))
        for epsilon in (3.0, 10.0, 30.0):
            parts = pmdp.inspect(model, bounds={"x": (-1, 1), "y": bounds, "z": (-4, 4)}, epsilon=epsilon).parts
            shares.append([float(part.share) for part in parts])
    assert shares[:3] == shares[3:]


def _counts():
    x, y, _ = arrays()
    with pm.Model() as model:
        mean = pm.math.exp(pm.Normal("a", shape=2) + pm.Normal("b", shape=2) * pm.Data("x", x)[:, None])
        pm.Poisson("y", mean, observed=np.abs(y).astype(int))
    return model


def _counts_apart():
    x, y, _ = arrays()
    with pm.Model() as model:
        a, b, x = pm.Normal("a", shape=2), pm.Normal("b", shape=2), pm.Data("x", x)
        for c, name in enumerate(("y", "z")):
            pm.Poisson(name, pm.math.exp(a[c] + b[c] * x), observed=np.abs(y[:, c]).astype(int))
    return model


@pytest.mark.parametrize("own", [{"y": [(0, 9), (0, 90)], "log(y)": (-2, 5)}, {"y": (0, 90), "log(y)": [(-2, 2), (0, 5)]}])
def test_scores_have_one_pair_and_what_is_named_instead_works(own):
    words = refused(pmdp.release, _counts(), epsilon=1.0, bounds={"x": (-1, 1), **own})
    assert "Write an observed variable for every column, as with observed=y[:, 0], and bounds of each" in (words or "")
    bounds = {"x": (-1, 1), "y": (0, 9), "z": (0, 90), "log(y)": (-2, 2), "log(z)": (0, 5)}
    assert len(pmdp.release(_counts_apart(), epsilon=1.0, bounds=bounds).statistics) == 2
    assert pmdp.release(_counts(), epsilon=1.0, bounds={"x": (-1, 1), "y": [(0, 9)] * 2, "log(y)": [(-2, 5)] * 2})
