"""Spellings that are read as the plain one: the same is released, one record moves it by no more, and what is near it is refused."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import EXACT, flat, log_density, seam_of, spread_of_differences

import pymc_dp as pmdp

pytestmark = pytest.mark.filterwarnings("ignore")

N = 40
RNG = np.random.default_rng(2)
X, G, H, Y = RNG.uniform(-1, 1, (N, 2)), RNG.integers(0, 3, N), RNG.uniform(0.5, 2, N), RNG.normal(size=N).clip(-3, 3)


# ---------- slopes of groups, taken out of a matrix
def slopes(mean, x=X, g=G):
    with pm.Model() as built:
        pm.Normal("y", mean(pm.Data("X", x), pm.Data("g", g), pm.Normal("B", shape=(3, 2))), pm.HalfNormal("s"), observed=Y)
    return built


TAKEN_OUT = {
    "arange of a number": lambda X, g, B: pt.dot(X, B.T)[pt.arange(N), g],
    "arange of a length": lambda X, g, B: (X @ B.T)[pt.arange(X.shape[0]), g],
    "arange last": lambda X, g, B: pt.dot(B, X.T)[g, pt.arange(g.shape[0])],
    "a product that is turned round": lambda X, g, B: pt.dot(B, X.T).T[pt.arange(N), g],
    "a diagonal": lambda X, g, B: pt.dot(X, B[g].T).diagonal(),
    "a diagonal of what is turned round": lambda X, g, B: pt.diag(pm.math.dot(B[g], X.T)),
}
NOT_TAKEN_OUT = {
    "one row for all": lambda X, g, B: pt.dot(X, B.T)[pt.arange(1), g],
    "one row for all, by the length of an array": lambda X, g, B: pt.dot(X, B.T)[pt.arange(pm.Data("one", [0.0]).shape[0]), g],
    "rows from the second on": lambda X, g, B: pt.dot(X, B.T)[pt.arange(1, N + 1) - 1, g],
    "rows from behind": lambda X, g, B: pt.dot(X, B.T)[pt.arange(N)[::-1], g],
    "every other row": lambda X, g, B: pt.dot(X, B.T)[pt.arange(0, 2 * N, 2) % N, g],
    "the last row for all": lambda X, g, B: pt.dot(X, B.T)[pt.arange(g.shape[0] - 1, g.shape[0]), g],
    "the first row for all, by a step": lambda X, g, B: pt.dot(X, B.T)[pt.arange(0, N, g.shape[0]), g],
    "the first row of a diagonal, for all": lambda X, g, B: pt.dot(X, B[0][:, None]).diagonal(),
    "the first column of a diagonal, for all": lambda X, g, B: pt.dot(B[0][None, :], X.T).diagonal(),
    "above the diagonal": lambda X, g, B: pt.diagonal(pt.dot(X, B[g].T), 1),
    "a diagonal of sums": lambda X, g, B: pt.diag(pt.dot(X, B[g].T) + pt.dot(X, X.T)),
}


def exact(model, **arguments):
    with seam_of(0):
        released = pmdp.release(model, epsilon=1.0, **arguments)["y"]
    return released.noisy, released.difference


@pytest.mark.parametrize("written", TAKEN_OUT)
def test_an_entry_of_every_row_is_a_sum_over_columns(written):
    arguments = {"bounds": {"y": (-3, 3), "X": (-1, 1)}}
    ours, plain = (exact(slopes(mean), **arguments) for mean in (TAKEN_OUT[written], lambda X, g, B: (X * B[g]).sum(axis=-1)))
    assert ours[0].tolist() == plain[0].tolist()
    assert ours[1] == plain[1]


@pytest.mark.parametrize("written", NOT_TAKEN_OUT)
def test_other_entries_are_refused(written):
    with pytest.raises(pmdp.Refusal):
        pmdp.release(slopes(NOT_TAKEN_OUT[written]), epsilon=1.0, bounds={"y": (-3, 3), "X": (-1, 1)})


def test_rows_that_are_told_by_an_array_are_refused_and_the_words_help():
    with pm.Model() as model:
        B = pm.Normal("B", shape=(3, 2))
        pm.Normal("y", pt.dot(X, B.T)[np.arange(N), G], pm.HalfNormal("s"), observed=Y)
    (row,) = pmdp.inspect(model, bounds={"y": (-3, 3)}).rows
    assert f"Write (X * B[group]).sum(axis=-1) for (X @ B.T)[np.arange({N}), group], or pt.arange for np.arange" in row.reason


def test_a_single_record_is_refused():
    """Its row is not told from one that all records share."""
    with pm.Model() as model:
        B = pm.Normal("B", shape=(3, 2))
        pm.Normal("y", pt.dot(pm.Data("X", X[:1]), B.T)[pt.arange(1), pm.Data("g", G[:1])], 1.0, observed=Y[:1])
    with pytest.raises(pmdp.Refusal):
        pmdp.release(model, epsilon=1.0, bounds={"y": (-3, 3), "X": (-1, 1)})


def test_entries_are_refused_where_the_number_of_records_is_private():
    with pytest.raises(pmdp.Refusal, match="may mix them"):
        pmdp.release(slopes(TAKEN_OUT["a diagonal"]), epsilon=1.0, bounds={"y": (-3, 3), "X": (-1, 1)}, neighbours="add_remove")


# ---------- real numbers that PyMC casts
@pytest.mark.parametrize("wrapped", [np.asarray, lambda k: pm.Data("data", k), lambda k: pt.cast(pm.Data("data", k), "int64")])
def test_what_is_behind_the_point_of_a_count_is_cut(wrapped):
    """As PyMC does it: a count of 1.6 is one of 1. It was rounded to 2 where it came through pm.Data."""
    with pm.Model() as model:
        pm.Poisson("k", pm.Exponential("rate", 1), observed=wrapped(np.array([0.6, 1.6, 2.0, 0.0, 3.9])))
    with seam_of(0):
        released = pmdp.release(model, epsilon=EXACT, bounds={"k": (0, 6)}, missing={})
    assert released["k"].values.ravel() == pytest.approx(6)


@pytest.mark.parametrize("missing", [0.4, np.nan])
def test_all_but_0_is_1_where_it_is_cast_to_yes_or_no(missing):
    with pm.Model() as model:
        data = pm.Data("data", np.zeros(5))
        data.set_value(np.array([0.4, 2.0, 0.0, 1.0, missing]))
        pm.Bernoulli("k", pm.Beta("p", 1, 1), observed=pt.cast(data, "bool"))
    with seam_of(0):
        released = pmdp.release(model, epsilon=EXACT, missing={})
    assert released["k"].values.ravel() == pytest.approx(3 if np.isnan(missing) else 4)


# ---------- logarithms of products
def powers(mean, h=H):
    with pm.Model() as built:
        k, b = pm.LogNormal("k"), pm.Normal("b")
        data = pm.Data("h", H)
        pm.Normal("y", mean(k, b, data), pm.HalfNormal("s"), observed=Y)
    data.set_value(np.array(h))  # pm.Data would not take what is missing
    return built


LOGS = {
    "a product": (lambda k, b, h: pt.log(3 * k * h**2), lambda k, b, h: pt.log(3 * k) + 2 * pt.log(h)),
    "a power": (lambda k, b, h: pt.log(k * h**b), lambda k, b, h: pt.log(k) + b * pt.log(h)),
    "a power of a product": (lambda k, b, h: pt.log((k * h) ** b), lambda k, b, h: b * pt.log(k) + b * pt.log(h)),
    "a quotient": (lambda k, b, h: pt.log(k**2 / pt.sqrt(h)), lambda k, b, h: 2 * pt.log(k) - 0.5 * pt.log(h)),
    "an exponential": (lambda k, b, h: pt.log(k * pt.exp(b * h)), lambda k, b, h: pt.log(k) + b * h),
    "to the base of two": (lambda k, b, h: pt.log2(k * h), lambda k, b, h: pt.log2(k) + pt.log2(h)),
    "a square that is divided": (lambda k, b, h: pt.log(k / (b * h) ** 2), lambda k, b, h: pt.log(k / b**2) - 2 * pt.log(h)),
}
NO_LOGS = {
    "a sum": lambda k, b, h: pt.log(k * h + 1),
    "a difference": lambda k, b, h: pt.log(pt.exp(b) - h),
    "an unknown to the power of a covariate": lambda k, b, h: pt.log(k**h),
    "a product with an unknown to the power of a covariate": lambda k, b, h: pt.log((k * h) ** h),
    "the logarithm of one more": lambda k, b, h: pt.log1p(k * h),
    "a size": lambda k, b, h: pt.log(abs(b * h)),
    "an integer part": lambda k, b, h: pt.log((k * h).astype("int64")),
}
BOUNDS = {"y": (-3, 3), "h": (0.5, 2)}


@pytest.mark.parametrize("written", LOGS)
def test_the_logarithm_of_a_product_is_a_sum(written):
    """Features may be scaled by a number, which those of a record in units of their bounds do not show."""
    ours, plain = (exact(powers(mean), bounds=BOUNDS) for mean in LOGS[written])
    assert ours[1] == plain[1]
    assert np.abs(ours[0] - plain[0]).max() <= 4 * N * 2**16  # by rounding: some units of a grid of 2**16 either way


@pytest.mark.parametrize("written", NO_LOGS)
def test_other_logarithms_are_refused(written):
    with pytest.raises(pmdp.Refusal, match=r"not linear in the unknowns"):
        pmdp.release(powers(NO_LOGS[written]), epsilon=1.0, bounds=BOUNDS)


@pytest.mark.parametrize("ends", [(0, 2), (-1, 2), (-2, -1)])
@pytest.mark.parametrize("written", ["a product", "a power", "a power of a product", "a quotient"])
def test_what_has_a_logarithm_must_be_above_0(written, ends):
    with pytest.raises(pmdp.Refusal, match="must be above 0"):
        pmdp.release(powers(LOGS[written][0]), epsilon=1.0, bounds=BOUNDS | {"h": ends})


@pytest.mark.parametrize("other", [0.5, 2.0, 0.0, -1.0, 5e-324, 1e308, np.inf, -np.inf, np.nan])
def test_one_record_moves_it_by_no_more_than_is_paid_for(other):
    """Whatever it holds, from a record at the other bound."""
    h, g = np.array(H), np.array(H)
    h[3], g[3] = (2.0, other) if other != 2.0 else (0.5, other)
    mean = LOGS["a power of a product"][0]
    (first, paid), (second, _) = (exact(powers(mean, values), bounds=BOUNDS) for values in (h, g))
    assert np.abs(first - second).sum() <= paid


# ---------- settings of curves as data
def curve(knots, rows=N):
    with pm.Model() as built:
        age = pm.Data("age", np.resize(X[:, 0], rows))
        hinges = pt.maximum(age[:, None] - pm.Data("knots", knots), 0)
        pm.Normal("y", pm.math.dot(hinges, pm.Normal("b", shape=2)), pm.HalfNormal("s"), observed=np.resize(Y, rows))
    return built


def test_public_knots_are_what_they_are_when_records_are_released():
    """A model with others, or with these set anew, is another one."""
    bounds = {"y": (-3, 3), "age": (-1, 1)}
    released = pmdp.release(curve([-0.5, 0.5]), epsilon=1.0, bounds=bounds, public=["knots"])
    pmdp.rewrite(curve([-0.5, 0.5], 7), released)
    with pytest.raises(pmdp.Refusal, match="other functions of the covariates"):
        pmdp.rewrite(curve([-0.5, 0.6]), released)
    moved = curve([-0.5, 0.5])
    with moved:
        pm.set_data({"knots": [0.0, 0.5]})
    with pytest.raises(pmdp.Refusal, match="other functions of the covariates"):
        pmdp.rewrite(moved, released)
    with pytest.raises(pmdp.Refusal, match="private array knots"):
        pmdp.release(curve([-0.5, 0.5]), epsilon=1.0, bounds=bounds)


CODES = np.arange(60) % 4 - 1
"""Codes of three groups, and -1 for none, as pandas writes them."""
MEANINGS = {
    "none has no effect": lambda g, a: pt.switch(g >= 0, a[g], 0.0),
    "none has one of its own": lambda g, a: pt.switch(pt.eq(g, -1), pm.Normal("none"), a[g]),
    "times whether there is one": lambda g, a: a[g] * (g >= 0),
    "a covariate as well": lambda g, a: a[g] + pm.Normal("b") * g,
    "tables of two lengths": lambda g, a: a[g] + pm.Normal("b", shape=4)[g],
}


@pytest.mark.parametrize("meaning", MEANINGS)
def test_an_index_that_is_more_than_a_level_needs_bounds(meaning, exact_seam):
    """-1 was taken for the last level, or for the first, wherever it stood."""
    with pm.Model() as model:
        mean = MEANINGS[meaning](pm.Data("g", CODES), pm.Normal("a", shape=3))
        pm.Bernoulli("y", logit_p=mean, observed=np.arange(60) % 7 < 3)
    with pytest.raises(pmdp.Refusal, match="g is private, so it needs bounds"):
        pmdp.release(model, epsilon=EXACT, missing={})
    released = pmdp.release(model, epsilon=EXACT, missing={}, bounds={"g": (-1, 2)})
    assert spread_of_differences(log_density(model), model, pmdp.rewrite(model, released, noise_aware=False)) < 1e-6


# ---------- an intercept written as a column of ones
def by_design(columns):
    with pm.Model() as built:
        design, b = columns(pm.Data("x", X[:, 0])), pm.Normal("b", shape=3)
        mean = sum(b[k] * column for k, column in enumerate(design)) if isinstance(design, list) else design @ b
        pm.Normal("y", mean, pm.HalfNormal("s"), observed=Y)
    return built


ONES = {
    "ones like a covariate": lambda x: pt.stack([pt.ones_like(x), x, x**2], axis=1),
    "in the middle": lambda x: pt.stack([x, pt.ones_like(x), x**2], axis=-1),
    "rows that are turned round": lambda x: pt.stack([pt.ones_like(x), x, x**2]).T,
    "columns put side by side": lambda x: pt.concatenate([pt.ones_like(x)[:, None], x[:, None], x[:, None] ** 2], axis=1),
    "powers from 0 on": lambda x: [x**k for k in range(3)],
}


@pytest.mark.parametrize("name", ONES)
def test_a_column_of_ones_is_an_intercept(name):
    """It is known of every record, so it takes no noise: with it as a covariate 14 sums were released in place of 9."""
    bounds = {"y": (-3, 3), "x": (-1, 1)}
    plain = by_design(lambda x: [1.0, x, x**2])
    wanted, found = (pmdp.inspect(model, bounds=bounds) for model in (plain, by_design(ONES[name])))
    assert wanted.rows[0].sensitivity == found.rows[0].sensitivity
    with seam_of(0):
        released = [pmdp.release(model, epsilon=EXACT, bounds=bounds, missing={}) for model in (plain, by_design(ONES[name]))]
    assert sorted(np.ravel(released[0]["y"].values).round(9)) == sorted(np.ravel(released[1]["y"].values).round(9))
    model = by_design(ONES[name])
    assert spread_of_differences(log_density(model), model, pmdp.rewrite(model, released[1], noise_aware=False)) < 1e-2


def test_bounds_of_a_column_of_ones_are_answered_by_an_intercept():
    with pm.Model() as model:
        design = np.column_stack([np.ones(N), X[:, 0]])
        pm.Normal("y", design @ pm.Normal("b", shape=2), pm.HalfNormal("s"), observed=Y)
    for bounds, words in [([(1, 1), (-1, 1)], "an intercept, a + X @ b"), ([(1, 0), (-1, 1)], "the lower one first")]:
        assert words in flat(pmdp.inspect(model, bounds={"y": (-3, 3), "y:0": bounds}))
