"""Draws of any likelihood of single records: their exact law, the exact privacy of it, and what is refused."""

import itertools
import json
from fractions import Fraction

import numpy as np
import pymc as pm
import pymc.dims as pmd
import pytensor
import pytensor.tensor as pt
import pytest
from checks import mostly_slow
from pytensor.raise_op import Assert
from scipy.special import logsumexp
from scipy.stats import chisquare, kstest

import pymc_dp as pmdp
from pymc_dp.plans.protection import protection_of
from pymc_dp.posterior import ball_regression as ball_room
from pymc_dp.posterior.ball_regression import cost_in_ball, pull_in_ball, truncated_normal
from pymc_dp.posterior.draws import task_of
from pymc_dp.posterior.markov import _clipped, _total
from pymc_dp.posterior.price import NAT
from pymc_dp.posterior.routes import prepared
from pymc_dp.privacy import mechanisms
from pymc_dp.privacy.accounting import rho_of

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(4)
N = 40
X, Y, K = RNG.normal(size=N), RNG.integers(0, 2, N), RNG.integers(0, 4, N)
W = RNG.uniform(-1, 1, size=(N, 2))


class Choices:
    """Stands at the seam: keeps the scores and answers with a fixed place."""

    def __init__(self):
        self.scores, self.scales = [], []

    def __call__(self, scores, scale):
        self.scores.append(np.array(scores))
        self.scales.append(scale)
        return len(scores) // 2

    def log_probability(self):
        scaled = self.scores[-1] / self.scales[-1]
        return scaled - logsumexp(scaled)


@pytest.fixture
def seam(monkeypatch):
    found = Choices()
    monkeypatch.setattr(mechanisms, "_opendp_choice", found)
    return found


def sampled(model, epsilon=1.0, draws=1, *, delta=0, bounds=None, public=(), neighbours="replace", missing=None, ledger=None, **how):
    mechanism = pmdp.PosteriorSample(draws, **how)
    arguments = {"bounds": bounds, "public": public, "neighbours": neighbours, "missing": missing, "ledger": ledger, "delta": delta}
    return pmdp.sample(model=model, epsilon=epsilon, mechanism=mechanism, **arguments)


# ---------- models: (records) -> model, arguments
def coin(y=Y, w=0.2):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Truncated("t", pm.Beta.dist(2, 3), lower=w, upper=1 - w), observed=y)
    return model, {}


def counts(k=K):
    with pm.Model() as model:
        pm.Poisson("k", pm.Uniform("m", 0.5, 4), observed=k)
    return model, {"bounds": {"k": (0, 5)}, "points": 101}


def normal(x=X):
    with pm.Model() as model:
        pm.Normal("x", pm.Uniform("m", -1, 1), pm.Uniform("s", 0.5, 2), observed=x)
    return model, {"bounds": {"x": (-2, 2)}, "points": 21}


def student(x=X):
    with pm.Model() as model:
        m = pm.Uniform("m", -1, 1)
        pm.Deterministic("square", m**2)
        pm.StudentT("x", nu=3, mu=m, sigma=1.0, observed=x)
    return model, {"bounds": {"x": (-3, 3)}, "points": 101}


def logistic(W=W, y=Y):
    with pm.Model(coords={"feature": ["age", "income"]}) as model:
        w = pm.Uniform("w", -2, 2, dims="feature")
        pm.Bernoulli("y", logit_p=pm.Data("W", W) @ w, observed=y)
    return model, {"bounds": {"W": pmdp.Norm(1.0)}, "points": 21}


def groups(g=K % 2, y=Y):
    with pm.Model() as model:
        t = pmdp.TrimmedBeta("t", 1, 1, smallest=0.2, shape=2)
        pm.Bernoulli("y", t[pm.Data("g", g)], observed=y)
    return model, {"public": ["g"], "points": 21}


def two_lengths(x=X, y=Y[:7]):
    with pm.Model() as model:
        m = pm.Uniform("m", -1, 1)
        pm.StudentT("x", nu=3, mu=m, sigma=1.0, observed=x)
        pm.Bernoulli("y", logit_p=2 * m, observed=y)
    return model, {"bounds": {"x": (-3, 3)}, "points": 101}


# ---------- the law
@pytest.mark.parametrize("epsilon", [0.5, 100.0])
def test_scores_are_the_flattened_log_posterior(seam, epsilon):
    """With the prior as it is: log p(t) + log p(y | t) / T, at the grid's points."""
    model, _ = coin()
    tree = sampled(model, epsilon)
    T = max(1.0, 2 * np.log(4) / epsilon)
    assert tree.privacy.attrs["temperature"] == pytest.approx(T, rel=1e-5)
    t = np.linspace(0.2, 0.8, len(seam.scores[0]))
    s, n = Y.sum(), len(Y)
    expected = np.log(t) + 2 * np.log(1 - t) + (s * np.log(t) + (n - s) * np.log(1 - t)) / T
    got = seam.scores[0] / seam.scales[0]
    np.testing.assert_allclose(got - got.max(), expected - expected.max(), atol=1e-4)


def test_scores_of_two_unknowns_are_the_model_s_own(seam):
    """Against PyMC's log-density of the whole model, values clamped by hand."""
    model, arguments = normal(np.clip(X, -2, 2))
    tree = sampled(model, 1000.0, **arguments)
    assert tree.privacy.attrs["temperature"] == 1
    plain = pm.model.transform.conditioning.remove_value_transforms(model)
    log_p = plain.compile_logp(mode="FAST_COMPILE", jacobian=False)
    axes = np.linspace(-1, 1, 21), np.linspace(0.5, 2, 21)
    expected = np.array([log_p({"m": m, "s": s}) for m, s in itertools.product(*axes)])
    got = seam.scores[0] / seam.scales[0]
    np.testing.assert_allclose(got - got.max(), expected - expected.max(), atol=1e-3)


def test_records_of_several_lengths_are_scored_together(seam):
    """Against PyMC's log-density of the whole model; the sensitivity is that of a record in each, and the number of records is not told."""
    model, arguments = two_lengths(np.clip(X, -3, 3))
    tree = sampled(model, 1000.0, **arguments)
    plain = pm.model.transform.conditioning.remove_value_transforms(model)
    log_p = plain.compile_logp(mode="FAST_COMPILE", jacobian=False)
    expected = np.array([log_p({"m": m}) for m in np.linspace(-1, 1, 101)])
    got = seam.scores[0] / seam.scales[0]
    np.testing.assert_allclose(got - got.max(), expected - expected.max(), atol=1e-4)
    ranges = []
    for name, bounds in (("x", {"x": (-3, 3)}), ("y", {})):
        with pm.Model() as alone:
            m = pm.Uniform("m", -1, 1)
            pm.StudentT("x", nu=3, mu=m, sigma=1.0, observed=X) if name == "x" else pm.Bernoulli("y", logit_p=2 * m, observed=Y[:7])
        ranges.append(sampled(alone, 1.0, bounds=bounds, points=101).privacy.attrs["range"])
    assert tree.privacy.attrs["range"] == pytest.approx(sum(ranges), rel=1e-9)


def frequencies(tree, name, points):
    """How often each point of the grid was drawn."""
    values = tree.posterior[name].values.ravel()
    return np.bincount(np.rint((values - points[0]) / (points[1] - points[0])).astype(int), minlength=len(points))


def fits(many, *tempered):
    """p-values of draws of a rate under the laws of other temperatures, in cells of at least 20 expected draws."""
    model, arguments = counts()
    points = np.linspace(0.5, 4, 101)
    tree = sampled(model, many * 6.0, draws=many, **arguments)
    several = []
    for factor in tempered:
        T = tree.privacy.attrs["temperature"] * factor
        assert T > 1
        log_p = (K.sum() * np.log(points) - N * points) / T
        p = np.exp(log_p - logsumexp(log_p))
        order = np.digitize(np.cumsum(p), np.linspace(0, 1, 41)[1:-1])
        expected = many * np.bincount(order, weights=p, minlength=40)
        found = np.bincount(order, weights=frequencies(tree, "m", points), minlength=40)
        use = expected > 20
        assert use.sum() > 10
        several.append(chisquare(found[use], expected[use] * found[use].sum() / expected[use].sum()).pvalue)
    return several


def test_draws_have_the_law_of_the_scores():
    """3,000 exact draws; a false alarm has probability 1e-6. A temperature twice as high is found with probability above .999."""
    right, wrong = fits(3000, 1.0, 2.0)
    assert right > 1e-6 > wrong


@pytest.mark.slow
def test_a_temperature_off_by_5_percent_would_be_found():
    """200,000 draws; a false alarm has probability 1e-6. Power: the shift is 12 standard errors of the chi-square statistic."""
    right, wrong = fits(200_000, 1.0, 1.05)
    assert right > 1e-6 > wrong


# ---------- privacy, exactly
def loss(seam, first, second, **arguments):
    """The largest log-ratio of probabilities of one draw between two data sets, either way."""
    found = []
    for model in (first, second):
        sampled(model, **arguments)
        found.append(seam.log_probability())
    return float(np.abs(found[0] - found[1]).max())


@pytest.mark.parametrize("neighbours", mostly_slow(["replace", "add_remove"], 0))
def test_the_exact_loss_never_exceeds_epsilon_and_nearly_attains_it(seam, neighbours):
    """All pairs of neighbours among all data sets of up to eight tosses, enumerated by their numbers of heads; and one of 2,000."""
    largest = 0.0
    for n in (1, 3, 8):
        for heads in range(n):
            one = np.arange(n) < heads
            other = np.arange(n) <= heads if neighbours == "replace" else np.append(one, heads % 2 == 0)
            largest = max(largest, loss(seam, coin(one)[0], coin(other)[0], epsilon=1.0, neighbours=neighbours))
    assert largest <= 1.0 + 1e-9
    one = np.arange(2000) < 0
    other = np.arange(2000) < 1 if neighbours == "replace" else np.append(one, True)
    assert 0.95 < loss(seam, coin(one)[0], coin(other)[0], epsilon=1.0, neighbours=neighbours) <= 1.0 + 1e-9


def replaced(array, record):
    array = np.array(array, dtype=float if np.asarray(array).dtype.kind == "f" else int)
    array[3] = record
    return array


PAIRS = {
    "coin": lambda: [coin(replaced(Y, v))[0] for v in (0, 1)],
    "counts": lambda: [counts(replaced(K, v))[0] for v in (0, 500)],
    "normal": lambda: [normal(replaced(X, v))[0] for v in (-1e9, np.nan, 2.0)],
    "student": lambda: [student(replaced(X, v))[0] for v in (-np.inf, 3.0, 0.1)],
    "logistic": lambda: [logistic(replaced(W, v), replaced(Y, y))[0] for v, y in ((1e6, 1), (1e6, 0), (0.3, 1))],
    "groups": lambda: [groups(y=replaced(Y, v))[0] for v in (0, 1)],
    "two_lengths": lambda: [two_lengths(replaced(X, v), replaced(Y[:7], y))[0] for v, y in ((-3.0, 0), (3.0, 1), (np.nan, 1))],
}
ARGUMENTS = {"coin": coin()[1], "counts": counts()[1], "normal": normal()[1], "student": student()[1], "logistic": logistic()[1],
             "groups": groups()[1], "two_lengths": two_lengths()[1]}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_neighbours_differ_by_no_more_than_is_paid_for(seam, name):
    """In integers: the range of the difference of scores over the scale, whatever the record holds; and more than a third of it is used."""
    scores = []
    for model in PAIRS[name]():
        tree = sampled(model, 1.0, **ARGUMENTS[name])
        scores.append(seam.scores[-1])
    used = [int(np.ptp(a - b)) for a, b in itertools.combinations(scores, 2)]
    assert Fraction(max(used)) / Fraction(seam.scales[-1]) <= 1
    assert max(used) / seam.scales[-1] > 1 / 3
    assert tree.attrs["promise"] == "certified"


LEFT_OUT = {
    "coin": lambda v: coin(replaced(Y.astype(float), v))[0],
    "counts": lambda v: counts(replaced(K.astype(float), v))[0],
    "student": lambda v: student(replaced(X, v))[0],
    "columns": lambda v: columns(replaced(X, v), X[::-1])[0],
    "covariate": lambda v: covariate(replaced(X, v))[0],
}
MISSING = {"coin": ["y"], "counts": ["k"], "student": ["x"], "columns": ["y"], "covariate": ["y:0"]}


def columns(*several):
    with pm.Model() as model:
        pm.StudentT("y", nu=3, mu=pm.Uniform("m", -1, 1), sigma=1.0, observed=np.column_stack(several))
    return model, {"bounds": {"y": (-3, 3)}, "points": 101}


def covariate(x):
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=pm.Uniform("b", -1, 1) * x, observed=Y)
    return model, {"bounds": {"y:0": (-2, 2)}, "points": 101}


@pytest.mark.parametrize("name", LEFT_OUT)
@pytest.mark.parametrize("neighbours", mostly_slow(["replace", "add_remove"], 0))
def test_records_that_are_left_out_bring_nothing(seam, name, neighbours):
    """With one record missing the scores are those without it, to the last integer; no two values are further apart than paid for."""
    arguments = {**ARGUMENTS, "columns": columns(X)[1], "covariate": covariate(X)[1]}[name]
    several = []
    for value in (np.nan, *((0, 1) if name == "coin" else (-3, 0.3, 4))):
        sampled(LEFT_OUT[name](value), 1.0, missing=MISSING[name], neighbours=neighbours, **arguments)
        several.append(seam.scores[-1])
    pairs = itertools.combinations(several, 2) if neighbours == "replace" else ((several[0], other) for other in several[1:])
    used = max(int(np.ptp(a - b)) for a, b in pairs)
    assert Fraction(used) / Fraction(seam.scales[-1]) <= 1
    assert used / seam.scales[-1] > 1 / 3
    if name in ("coin", "counts", "student"):
        rest = {"coin": coin(np.delete(Y, 3))[0], "counts": counts(np.delete(K, 3))[0], "student": student(np.delete(X, 3))[0]}[name]
        scale = seam.scales[-1]
        sampled(rest, 1.0, missing=MISSING[name], neighbours=neighbours, **arguments)
        assert seam.scales[-1] == scale
        np.testing.assert_array_equal(seam.scores[-1], several[0])


def test_a_level_that_stands_for_missing_values_is_drawn_with(seam):
    for y in (replaced(Y.astype(float), np.nan), replaced(Y, 1)):
        sampled(coin(y)[0], 1.0, missing={"y": 1})
    np.testing.assert_array_equal(*seam.scores)
    with pytest.raises(pmdp.Refusal, match="no value of y"):
        sampled(coin()[0], 1.0, missing={"y": 2})


def test_a_regression_in_a_ball_leaves_records_out(monkeypatch):
    """Precision and shift are those of the records that are there."""
    given = []
    monkeypatch.setattr(ball_room, "truncated_normal", lambda *known: given.append(known[:2]) or truncated_normal(*known))
    for rows in (slice(None), np.arange(N) != 3):
        with pm.Model() as model:
            w = pmdp.BallNormal("w", 1.0, 1.0, shape=2)
            pm.Normal("y", pm.math.dot(W[rows], w), 1.0, observed=(replaced(X, np.nan) if isinstance(rows, slice) else X)[rows])
        sampled(model, 1.0, bounds={"y": (-1, 1), "y:0": (-1, 1)}, missing=["y"])
    for one, other in zip(*given):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_record_more_or_less_is_paid_for(seam):
    for name, make, more in (("student", student, np.append(X, 9.0)), ("counts", counts, np.append(K, 0))):
        scores = []
        for model in (make()[0], make(more)[0]):
            sampled(model, 1.0, neighbours="add_remove", **ARGUMENTS[name])
            scores.append(seam.scores[-1])
        assert Fraction(int(np.ptp(scores[0] - scores[1]))) / Fraction(seam.scales[-1]) <= 1


def test_a_record_counts_the_same_wherever_it_stands(seam):
    """To the last integer: no record's part depends on its place, or on how many there are."""
    for order in (slice(None), slice(None, None, -1)):
        sampled(logistic(W[order], Y[order])[0], 1.0, **ARGUMENTS["logistic"] | {"points": 7})
    np.testing.assert_array_equal(seam.scores[0], seam.scores[1])
    several = []
    for many in (1, 2, 7, 33):
        sampled(logistic(np.tile(W[:1], (many, 1)), np.tile(Y[:1], many))[0], 1e6, **ARGUMENTS["logistic"] | {"points": 7})
        several.append((seam.scores[-1] - seam.scores[-1][0]) / many)
    for other in several[1:]:
        np.testing.assert_array_equal(several[0], other)


# ---------- what it costs
def test_what_is_not_used_is_not_charged(tmp_path):
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=10, create=True)
    tree = sampled(coin()[0], 8.0, draws=2, ledger=ledger)
    assert tree.attrs["epsilon"] == pytest.approx(4 * np.log(4), rel=1e-5)
    assert ledger.remaining().epsilon == pytest.approx(10 - 4 * np.log(4), rel=1e-5)
    assert tree.privacy.attrs["temperature"] == 1


def test_many_draws_add_up_in_zcdp(tmp_path):
    """theory.md 5.1 and 5.2: eta = .1, k = 100, delta = 1e-6 is epsilon 2.42 and not 10."""
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=3, delta=1e-6, create=True)
    w = pmdp.smallest_probability(0.1)
    tree = sampled(coin(w=w)[0], 2.43, draws=100, delta=1e-6, ledger=ledger)
    assert tree.privacy.attrs["temperature"] == 1
    assert tree.attrs["delta"] == 1e-6
    assert float(ledger.entries().rho.iloc[-1]) == pytest.approx(100 * 0.1**2 / 8, rel=1e-3)
    flat = sampled(coin(w=w)[0], 0.3, draws=100, delta=1e-6, ledger=ledger)
    allowed = pmdp.privacy.accounting.rho_of(Fraction(3, 10), Fraction(1, 10**6))
    assert float(ledger.entries().rho.iloc[-1]) == pytest.approx(float(allowed), rel=1e-6)
    assert flat.privacy.attrs["temperature"] == pytest.approx(0.1 * np.sqrt(100 / 8 / float(allowed)), rel=1e-3)
    pure = sampled(coin(w=w)[0], 2.43, draws=100)
    assert pure.privacy.attrs["temperature"] == pytest.approx(10 / 2.43, rel=1e-3)


# ---------- what comes back
@pytest.mark.parametrize("place", [0, 2, 4])
def test_draws_lie_anywhere_in_the_cell_of_their_point(monkeypatch, place):
    """Where a posterior is narrower than points are apart: 300 draws against the cell, by Kolmogorov and Smirnov (a false alarm has
    probability 1e-6; draws that stay at their point are always found). A mode stays.
    """
    monkeypatch.setattr(mechanisms, "_opendp_choice", lambda scores, scale: place)
    model, arguments = student()
    drawn = sampled(model, 1e6, draws=300, bounds=arguments["bounds"], points=5).posterior.m.values.ravel()
    point = np.linspace(-1, 1, 5)[place]
    low, high = max(point - 0.25, -1), min(point + 0.25, 1)
    assert kstest(drawn, "uniform", (low, high - low)).pvalue > 1e-6
    assert pmdp.find_MAP(model=model, epsilon=1.0, bounds=arguments["bounds"], points=5)["m"] == point


def test_draws_stay_where_the_prior_has_a_density(monkeypatch):
    """An unknown below another: cells at the edge are cut, and every draw lies below. A draw that is not looked at again lies beyond with
    probability 1/2, so 100 draws never miss it.
    """
    with pm.Model() as model:
        s = pm.Uniform("s", 0.5, 1)
        t = pm.Uniform("t", 0, s)
        pm.StudentT("x", nu=3, mu=t, sigma=1.0, observed=X)
    grid = np.array([(s, t) for s in np.linspace(0.5, 1, 5) for t in np.linspace(0, 1, 5) if t <= s])
    at = int(np.flatnonzero((grid == (0.75, 0.75)).all(axis=1))[0])
    monkeypatch.setattr(mechanisms, "_opendp_choice", lambda scores, scale: at)
    drawn = sampled(model, 1e6, draws=100, bounds={"x": (-3, 3)}, points=5, truncate={"t": (0, 1)}).posterior
    assert (drawn.t < drawn.s).all()
    assert (abs(drawn.s - 0.75) <= 0.0625).all()
    assert len(np.unique(drawn.t)) > 90


def test_the_tree_has_dims_labels_and_deterministics():
    tree = sampled(logistic()[0], 1.0, draws=3, **ARGUMENTS["logistic"])
    assert tree.posterior.w.dims == ("chain", "draw", "feature")
    assert list(tree.posterior.feature.values) == ["age", "income"]
    tree = sampled(student()[0], 1.0, draws=3, **ARGUMENTS["student"])
    np.testing.assert_allclose(tree.posterior.square, tree.posterior.m**2)
    assert set(tree.children) == {"posterior", "privacy"}


def test_a_mode_is_near_the_mode():
    model, arguments = normal(np.clip(X, -2, 2))
    found = pmdp.find_MAP(model=model, epsilon=10_000, bounds=arguments["bounds"], points=101)
    best = pm.find_MAP(model=model, progressbar=False)
    assert found["m"] == pytest.approx(best["m"], abs=0.05)
    assert found["s"] == pytest.approx(best["s"], abs=0.05)


def test_utility_of_the_mode_is_what_lemma_4_says_when_corrected(seam):
    """P(score below best by 2 t) <= exp(-epsilon t / C) / share of points within t; the printed one, without 1 / C, fails."""
    failed = 0
    for n in (5, 40, 400):
        pmdp.find_MAP(model=coin(np.arange(n) % 3 == 0)[0], epsilon=2.0)
        log_p, nats = seam.log_probability(), seam.scores[-1] / NAT
        C = np.log(4)
        for t in (0.05, 0.5, 2.0):
            leaves = np.exp(logsumexp(log_p[nats < nats.max() - 2 * t])) if (nats < nats.max() - 2 * t).any() else 0.0
            share = (nats >= nats.max() - t).mean()
            assert leaves <= np.exp(-2.0 * t / C) / share + 1e-12
            failed += leaves > np.exp(-2.0 * t * 3 / C) / share
    assert failed, "or it would hold for three times the epsilon, and this test could not fail"


# ---------- linear regression in a ball
def test_the_cost_in_a_ball_is_attained_and_not_exceeded():
    """theory.md 1.6, by brute force over corners and random records, in one and two dimensions."""
    rng = np.random.default_rng(0)
    for P, size, response, radius, variance in (
        (1, 1.0, 1.0, 0.3, 1.0),
        (2, 1.0, 1.0, 2.0, 1.0),
        (2, 2.0, 0.5, 0.1, 0.3),
        (1, 1.0, 1.0, 1.0, 2.0),
    ):
        w = rng.normal(size=(400, P))
        w *= (radius * np.where(rng.random((400, 1)) < 0.5, 1, rng.random((400, 1)))) / np.linalg.norm(w, axis=1, keepdims=True)
        w = np.concatenate([w, -w, np.zeros((1, P))])
        x = rng.normal(size=(300, P))
        x *= size * np.where(rng.random((300, 1)) < 0.5, 1, rng.random((300, 1))) / np.linalg.norm(x, axis=1, keepdims=True)
        y = response * rng.choice([-1, 1, 0.3], size=300)
        each = -((y[:, None] - x @ w.T) ** 2) / (2 * variance)
        one = np.ptp(each, axis=1).max()
        assert 0.9 * cost_in_ball(size, response, radius, variance, "add_remove") <= one
        assert one <= cost_in_ball(size, response, radius, variance, "add_remove") * (1 + 1e-9)
        two = max(np.ptp(each - other, axis=1).max() for other in each)
        assert 0.85 * cost_in_ball(size, response, radius, variance, "replace") <= two
        assert two <= cost_in_ball(size, response, radius, variance, "replace") * (1 + 1e-9)


@pytest.mark.parametrize(("size", "response", "radius", "variance", "precision"), [(1, 1, 1, 1, 100.0), (2, 0.5, 3, 0.25, 1.0)])
def test_no_record_pulls_harder_in_a_ball_than_is_said(size, response, radius, variance, precision):
    """Gradients (y - x'w) x / variance at points of the ball, in standard deviations of the prior: never longer than is said, and attained;
    and never further apart, of which two records at the same point attain more than half.
    """
    rng = np.random.default_rng(2)
    x, w = (unit / np.linalg.norm(unit, axis=1, keepdims=True) for unit in rng.normal(size=(2, 60, 3)))
    x, w, y = size * np.concatenate([x, -w]), radius * np.concatenate([w, x]), response * np.array([-1.0, 1.0])
    gradients = (y[:, None, None] - x @ w.T)[..., None] * x[None, :, None] / (variance * np.sqrt(precision))
    by_point = np.moveaxis(gradients, 2, 0).reshape(len(w), -1, 3)
    one = np.linalg.norm(by_point, axis=-1).max()
    two = max(np.linalg.norm(at[:, None] - at[None], axis=-1).max() for at in by_point)
    for neighbours, apart, attained in (("add_remove", one, 0.999), ("replace", two, 0.5)):
        said = pull_in_ball(size, response, radius, variance, precision, neighbours)
        assert attained * said <= apart <= said * (1 + 1e-12)


def test_with_a_delta_draws_in_a_ball_cost_what_their_slope_does():
    """G = 2 (1 + 1) / sqrt(100), where the range is 4: ten times less flattened; the charge is that of normals so far apart."""
    model, arguments = regression()
    tree = sampled(model, 1.0, 50, delta=1e-6, **arguments)
    expected = np.sqrt(50 * 0.4**2 / (2 * float(rho_of(Fraction(1), Fraction(1, 10**6)))))
    assert tree.privacy.attrs["temperature"] == pytest.approx(expected, rel=1e-4)
    assert tree.attrs["epsilon"] == pytest.approx(1)


BALLS = [
    ([4.0, 9.0], [0.5, -0.5], 1.0),  # most of it inside
    ([4.0, 9.0], [40.0, 30.0], 1.0),  # all of it outside
    ([0.01, 0.02], [0.0, 0.001], 1.0),  # much wider than the ball
]


def angles_fit(precision, shift, radius, many, wrong=1.0):
    """The p-value of draws in cells of a polar grid, against probabilities by quadrature."""
    draws = truncated_normal(np.diag(precision), np.array(shift), radius, many, np.random.default_rng(many))
    assert (np.linalg.norm(draws, axis=1) <= radius * (1 + 1e-12)).all()
    r, angle = (np.arange(400) + 0.5) / 400 * radius, (np.arange(720) + 0.5) / 720 * 2 * np.pi - np.pi
    a, b = r[:, None] * np.cos(angle), r[:, None] * np.sin(angle)
    log_p = (-(precision[0] * a**2 + precision[1] * b**2) / 2 + shift[0] * a + shift[1] * b) * wrong + np.log(r)[:, None]
    p = np.exp(log_p - logsumexp(log_p)).reshape(10, 40, 12, 60).sum(axis=(1, 3)).ravel()
    place = np.minimum((np.linalg.norm(draws, axis=1) / radius * 10).astype(int), 9) * 12
    place += np.minimum(((np.arctan2(draws[:, 1], draws[:, 0]) + np.pi) / (2 * np.pi) * 12).astype(int), 11)
    found, use = np.bincount(place, minlength=120), p * many > 20
    if use.sum() < 3:
        return chisquare([found[p.argmax()], many - found[p.argmax()]], [many * p.max(), many * (1 - p.max())]).pvalue
    return chisquare(found[use], p[use] / p[use].sum() * found[use].sum()).pvalue


@pytest.mark.parametrize("ball", BALLS)
@pytest.mark.parametrize("many", [1500, pytest.param(200_000, marks=pytest.mark.slow)])
def test_draws_in_a_ball_have_the_truncated_law(ball, many, monkeypatch):
    """A false alarm has probability 1e-6; with 200,000 draws a temperature off by 5 % is found where the data say anything at all."""
    monkeypatch.setattr(ball_room, "PROPOSALS", 32)  # so many are made for the time they take; the law is the same
    assert angles_fit(*ball, many) > 1e-6
    if many > 10_000 and ball[0][0] > 1:
        assert angles_fit(*ball, many, wrong=1.05) < 1e-6


def regression(x=W, y=X):
    with pm.Model() as model:
        w = pmdp.BallNormal("w", precision=100.0, radius=1.0, shape=2)
        pm.Normal("y", pm.Data("x", x) @ w, 1.0, observed=y)
    return model, {"bounds": {"x": pmdp.Norm(1.0), "y": (-1, 1)}}


def test_regression_costs_what_theory_says_and_has_the_right_posterior():
    """Rx = Ry = s2 = 1, B = 1: 4 under replace, 2 under add_remove (theory.md 1.6). At T = 1 against the closed form, 400 draws."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-0.7, 0.7, size=(5000, 2))
    y = np.clip(x @ [0.3, -0.2] + 0.1 * rng.normal(size=5000), -1, 1)
    model, arguments = regression(x, y)
    assert sampled(model, 100.0, neighbours="add_remove", **arguments).attrs["epsilon"] == pytest.approx(2, rel=1e-5)
    tree = sampled(model, 4.1 * 400, draws=400, **arguments)
    assert tree.attrs["epsilon"] == pytest.approx(1600, rel=1e-5)
    assert tree.attrs["promise"] == "real-arithmetic"
    covariance = np.linalg.inv(100 * np.eye(2) + x.T @ x)
    expected, draws = covariance @ x.T @ y, tree.posterior.w.values[0]
    error = (draws.mean(axis=0) - expected) / np.sqrt(np.diag(covariance) / 400)
    assert np.abs(error).max() < 5.5  # a false alarm has probability 1e-7
    assert np.std(draws, axis=0) == pytest.approx(np.sqrt(np.diag(covariance)), rel=0.2)


def means(w, x):
    """Of a regression on two columns: affine in w, and not."""
    affine = [x @ w, w[0] + w[1] * x[:, 0], (3 * w[::-1] - 1) @ x.T / 2 + x[:, 1], pt.stack([w[1], w[0]]) @ x.T, (x * w).sum(axis=1)]
    other = [x @ w**2, w[0] * w[1] * x[:, 0], x @ abs(w), pt.exp(w[0]) + x[:, 0], x[:, 0] / w[0], (x * w).max(axis=1), x @ pt.round(w)]
    return affine, other


def test_only_affine_means_are_regressions():
    """Decided on the graph: what the posterior of a linear regression is drawn for must be one."""
    w, x = pt.vector("w", dtype="float64"), pt.matrix("x", dtype="float64")
    affine, other = means(w, x)
    assert [ball_room.is_affine(mean, [w]) for mean in affine] == [True] * len(affine)
    assert [ball_room.is_affine(mean, [w]) for mean in other] == [False] * len(other)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_is_not_affine_is_drawn_on_a_grid(place):
    with pm.Model() as model:
        w = pmdp.BallNormal("w", precision=1.0, radius=1.0, shape=2)
        pm.Normal("y", means(w, pm.Data("x", W))[1][place], 1.0, observed=X)
    tree = sampled(model, 5.0, bounds={"x": (-1, 1), "y": (-1, 1)}, points=11)
    assert tree.attrs["promise"] == "certified"


def named(kind):
    """A Deterministic between the unknown and the likelihood."""
    with pm.Model() as model:
        if kind == "grid":
            pm.Bernoulli(
                "y", pm.Deterministic("failure", 1 - pm.Deterministic("again", pmdp.TrimmedBeta("t", 2, 1, smallest=0.2))), observed=Y
            )
            return model, {}
        w = pmdp.BallNormal("w", precision=1.0, radius=1.0, shape=2)
        pm.Normal("y", pm.Data("x", W) @ pm.Deterministic("twice", 2 * w), 1.0, observed=X)
    return model, {"bounds": {"x": (-1, 1), "y": (-1, 1)}}


def test_deterministics_may_stand_between():
    model, arguments = named("grid")
    tree = sampled(model, 1.0, **arguments)
    np.testing.assert_allclose(tree.posterior.failure, 1 - tree.posterior.t)
    model, arguments = named("ball")
    tree = sampled(model, 1.0, **arguments)
    np.testing.assert_allclose(tree.posterior.twice, 2 * tree.posterior.w)
    assert tree.attrs["promise"] == "real-arithmetic"
    assert 2 * np.sqrt(2) <= tree.privacy.attrs["largest_feature"] <= 4


def test_a_mean_that_may_be_infinite_is_refused(tmp_path):
    with pm.Model() as model:
        pm.Normal("y", pmdp.BallNormal("w", 1.0, 1.0, shape=1)[0] / pm.Data("x", W[:, 0]), 1.0, observed=X)
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=1, create=True)
    with pytest.raises(pmdp.Refusal, match="divided by what may be 0"):
        sampled(model, 1.0, bounds={"x": (-1, 1), "y": (-1, 1)}, ledger=ledger)
    with pytest.raises(pmdp.Refusal, match="cannot be written there"):
        sampled(student()[0], 1.0, bounds={"x": (-3, 3)}, method="mcmc", report=tmp_path / "none" / "report.json", ledger=ledger)
    assert ledger.remaining().epsilon == 1


def test_what_a_record_holds_is_moved_into_its_bounds(monkeypatch):
    """Whatever it held, a record's features are no longer than declared, and its response no larger."""
    seen = []
    from pymc_dp.posterior import ball_regression as ball

    def kept(precision, shift, radius, many, rng):
        seen.append((precision, shift))
        return truncated_normal(precision, shift, radius, many, rng)

    monkeypatch.setattr(ball, "truncated_normal", kept)
    for x, y in ((W * 0, X * 0), (np.vstack([W[:1] * 1e9, W[1:] * 0]), np.append(np.inf, X[1:] * 0))):
        sampled(regression(x, y)[0], 4.0, **regression()[1])
    moved = seen[1][0] - seen[0][0]
    assert np.trace(moved) == pytest.approx(1)
    assert np.linalg.norm(seen[1][1] - seen[0][1]) == pytest.approx(1)


# ---------- Markov chains
def test_chains_see_records_of_several_lengths_together():
    """The log-likelihood that chains are given, beside PyMC's own; and the price is that of a record in each."""
    model, arguments = two_lengths(np.clip(X, -3, 3))
    protection = protection_of(bounds=arguments["bounds"])
    task = task_of(model, 1.0, 0, pmdp.PosteriorSample(method="mcmc"), protection)
    several = [(part, *_clipped(part)) for part in task.rowwise.parts]
    assert len(several) == 2
    [unknown] = task.rowwise.rows.unknowns
    of = pytensor.function([unknown.variable], sum(_total(*one) for one in several), mode="FAST_COMPILE")
    points = np.linspace(-0.9, 0.9, 7)
    log_p = pm.model.transform.conditioning.remove_value_transforms(model).compile_logp(mode="FAST_COMPILE", jacobian=False)
    computed, expected = (np.array([function(point) for point in points]) for function in (of, lambda point: log_p({"m": point})))
    np.testing.assert_allclose(computed - computed[0], expected - expected[0], atol=1e-6)
    (draw,) = prepared(task).price.draws
    assert draw.difference == 2 * sum(round((most - least) * NAT) for *_, least, most in several)


def test_chains_give_their_last_states_and_nothing_else(tmp_path):
    model, arguments = student()
    arguments = {"bounds": arguments["bounds"]}
    path = tmp_path / "report.json"
    tree = sampled(model, 4.0, draws=2, method="mcmc", tune=150, steps=50, report=path, **arguments)
    assert tree.attrs["promise"] == "if-converged"
    assert "total variation" in tree.privacy.attrs["reading"]
    assert tree.posterior.m.shape == (1, 2)
    assert set(tree.children) == {"posterior", "privacy"}
    assert set(tree.posterior.data_vars) == {"m", "square"}
    assert not set(tree.posterior.attrs) - {*tree.attrs}
    told = json.loads(path.read_text())
    assert "not private" in told["warning"]
    assert set(told["parameters"]) == {"m"}


@pytest.mark.slow
def checked(place, x=X):
    """A check of the user's own, that values of the unknown are small."""
    with pm.Model() as model:
        m = pm.Uniform("m", -1, 1)
        small = Assert("m is too large")(m, m < 0.5)
        if place == "Deterministic":
            pm.Deterministic("d", small)
        elif place == "Potential":
            pm.Potential("p", -(small**2))
        elif place == "index":
            pm.Potential("p", pm.Uniform("u", -1, 1, shape=10)[pt.cast(15 * abs(m), "int64")])
        elif place == "prior":
            pm.Uniform("u", -1, 1 + 0 * small)
        elif place == "density":
            pm.CustomDist("u", m, logp=lambda value, m: -abs(Assert("u is too large")(value, value < 0.5) - m))
        pm.Laplace("x", small if place == "likelihood" else m, 0.1, observed=x)
    return model


@pytest.mark.parametrize("place", ["Potential", "prior", "density", "index"])
def test_no_chain_fails_because_of_where_records_lead_it(place, tmp_path):
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=10, create=True)
    arguments = {
        "bounds": {"x": (-1, 1)},
        "method": "mcmc",
        "ledger": ledger,
        "truncate": {"u": (-1, 1)} if place in ("prior", "density") else None,
    }
    with pytest.raises(pmdp.Refusal, match="may fail at some values of unknowns"):
        sampled(checked(place), **arguments)
    assert ledger.remaining().epsilon == 10


def test_a_prior_without_a_density_is_refused_before_it_is_paid_for(tmp_path):
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=10, create=True)
    with pm.Model() as model:
        pm.Laplace("x", pm.Truncated("t", pm.HalfStudentT.dist(nu=3, sigma=1.0), upper=1), 1.0, observed=X)
    with pytest.raises(pmdp.Refusal, match="no density of one of the priors"):
        sampled(model, bounds={"x": (-1, 1)}, method="mcmc", ledger=ledger)
    assert ledger.remaining().epsilon == 10


@pytest.mark.parametrize("place", ["Deterministic", "likelihood"])
def test_a_chain_evaluates_no_check_of_what_it_passes_through(place):
    """All records lead it to where the check fails."""
    tree = sampled(checked(place, np.ones(100)), 1000.0, bounds={"x": (-1, 1)}, method="mcmc", tune=20, steps=5)
    assert tree["posterior"]["m"].item() > 0.5


@pytest.mark.slow
def test_chains_agree_with_the_grid():
    """60 draws either way: the means differ by less than 5.5 standard errors (a false alarm has probability 1e-7)."""
    model, arguments = student()
    grid = sampled(model, 60 * 5.0, draws=60, **arguments).posterior.m.values
    chain = sampled(model, 60 * 5.0, draws=60, method="mcmc", tune=300, steps=100, bounds=arguments["bounds"]).posterior.m.values
    assert abs(grid.mean() - chain.mean()) < 5.5 * np.sqrt((grid.var() + chain.var()) / 60)
    assert 0.5 < grid.std() / chain.std() < 2


# ---------- refusals, before anything is read or spent
def many_unknowns():
    pm.StudentT("x", nu=4, mu=pm.Uniform("m", -1, 1, shape=5)[K], sigma=1.0, observed=X)


def public_covariate():
    pm.Normal("x", pm.Uniform("m", -1, 1) * pm.Data("z", W[:, 0]), 1.0, observed=X)


def flat():
    pm.Uniform("m", -1, 1)
    pm.Normal("x", 0, 1.0, observed=X)


def in_order():
    pm.Bernoulli("y", pm.Uniform("t", 0.1, 0.9, shape=2, transform=pm.distributions.transforms.ordered)[K % 2], observed=Y)


def within_a_part():
    pm.Bernoulli("y", pm.Beta("t", 1, 1, transform=pm.distributions.transforms.Interval(0.2, 0.4)), observed=Y)


def within_half():
    pm.Bernoulli("y", pm.Uniform("t", 0.1, 0.9, default_transform=pm.distributions.transforms.Interval(0.1, 0.5)), observed=Y)


REFUSED = [
    (many_unknowns, {"bounds": {"x": (-1, 1)}}, 'method="mcmc"'),
    (many_unknowns, {"bounds": {"x": (-1, 1)}, "smallest": 0.1}, "smallest is"),
    (public_covariate, {"bounds": {"x": (-1, 1)}, "public": ["z"], "neighbours": "add_remove"}, "reveals how many"),
    (public_covariate, {"bounds": {"x": (-1, 1)}}, "z is private, so it needs bounds"), (public_covariate, {}, "needs bounds"),
    (in_order, {}, "sort what was drawn"), (in_order, {"draws": 2, "points": 5}, "sort what was drawn"),
    (in_order, {"method": "mcmc"}, "sort what was drawn"), (within_a_part, {}, "sort what was drawn"),
    (within_half, {}, "sort what was drawn"), (within_half, {"method": "mcmc"}, "sort what was drawn"),
    (flat, {"bounds": {"x": (-1, 1)}}, "rests on no unknown"),
    (public_covariate, {"bounds": {"x": (1, -1), "z": (0, 1)}}, "lower one first"),
    (public_covariate, {"bounds": {"x": (-1, 1), "z": (0, 1)}, "points": 100_000_000}, "points must be"),
    (public_covariate, {"bounds": {"x": (-1, 1), "z": (0, 1)}, "epsilon": 1e-12}, "Write a larger epsilon|Narrow the priors"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "arguments", "words"), REFUSED)
def test_refusals_come_before_anything_is_spent(body, arguments, words, seam, tmp_path):
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=10, create=True, neighbours=arguments.get("neighbours", "replace"))
    with pm.Model() as model:
        body()
    with pytest.raises(pmdp.Refusal, match=words):
        sampled(model, **{"ledger": ledger, **arguments})
    assert ledger.remaining().epsilon == 10
    assert not seam.scores


def test_a_mode_keeps_no_order_either(seam):
    with pm.Model() as model:
        in_order()
    with pytest.raises(pmdp.Refusal, match="sort what was drawn"):
        pmdp.find_MAP(model=model, epsilon=1)
    assert not seam.scores


def test_how_many_draws_is_said_by_the_mechanism(seam):
    with pytest.raises(pmdp.Refusal, match="draws=500"):
        pmdp.sample(500, model=coin()[0], epsilon=1, mechanism="posterior_sample")
    assert not seam.scores


@pytest.mark.parametrize("given", [0, -1.0, np.inf, "1", True, None])
def test_norms_are_positive_numbers(given):
    with pytest.raises(pmdp.Refusal, match="positive number"):
        pmdp.Norm(given)


def test_a_report_belongs_to_chains():
    with pytest.raises(pmdp.Refusal, match="Leave it out"):
        pmdp.PosteriorSample(report="x.json")
    with pytest.raises(pmdp.Refusal, match="method must be"):
        pmdp.PosteriorSample(method="nuts")


# ---------- what holds even where something else is wrong
def test_what_a_record_can_do_is_enforced_and_not_only_believed(seam, monkeypatch):
    """Where the certified bounds are made half as wide as they should be, the price halves, and records are clipped to what is paid."""
    from dataclasses import replace

    from pymc_dp.posterior import grid

    def narrower(*given):
        found = ranges(*given)
        return replace(found, least=found.least / 2, most=found.most / 2)

    ranges = grid.ranges
    sampled(student()[0], 1.0, **ARGUMENTS["student"])
    monkeypatch.setattr(grid, "ranges", narrower)
    scores = []
    for value in (-3.0, 3.0):
        sampled(student(replaced(X, value))[0], 1.0, **ARGUMENTS["student"])
        scores.append(seam.scores[-1])
    assert seam.scales[-1] == pytest.approx(seam.scales[0] / 2, rel=1e-3)
    assert 0.5 < np.ptp(scores[0] - scores[1]) / seam.scales[-1] <= 1


def test_nothing_is_drawn_that_the_ledger_does_not_pay_for(seam, tmp_path):
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=0.5, create=True)
    with pytest.raises(pmdp.Refusal, match="is left"):
        sampled(coin()[0], 1.0, ledger=ledger)
    assert not seam.scores
    tree = sampled(coin()[0], 0.5, ledger=ledger)
    assert tree.privacy.attrs["ledger_head"] == ledger.entries().hash.iloc[-1] or len(tree.privacy.attrs["ledger_head"]) == 64
    assert ledger.remaining().epsilon == 0


# ---------- advice and questions
def test_advice_agrees_with_exact_errors():
    """Of a coin, at epsilon .1: squared errors of one draw averaged over the prior, in closed form on grids of theta and of counts.

    Advice is a normal approximation, good to within a third.
    """
    w, epsilon = 0.05, 0.1
    told = pmdp.advise(coin_of_uniform(w, 300), epsilon=epsilon)
    assert told.temperature == pytest.approx(2 * np.log(19) / epsilon, rel=1e-5)
    theta = np.linspace(w, 1 - w, 181)
    prior_error = 2 * theta.var()
    for n in (10, 40, 300):
        s = np.arange(n + 1)
        log_p = s[:, None] * np.log(theta) + (n - s)[:, None] * np.log1p(-theta) + binomial(n, s)[:, None]
        likelihood = np.exp(log_p)  # (s, theta)
        flat = np.exp((log_p - binomial(n, s)[:, None]) / told.temperature)
        drawn = error(theta, likelihood, flat)
        z = np.arange(-150, n + 151)
        noise = np.exp(-epsilon * abs(z[:, None] - s))  # one count, moved by 1
        released = (noise / noise.sum(axis=0)) @ likelihood  # (z, theta)
        assert told.draw_error(n) == pytest.approx(drawn / prior_error, rel=1 / 3)
        assert told.release_error(n) == pytest.approx(error(theta, released, released) / prior_error, rel=1 / 3)
    assert told.better == "laplace"
    assert 10 < told.crossover < 100


def coin_of_uniform(w, n):
    with pm.Model() as model:
        pm.Bernoulli("y", pmdp.TrimmedBeta("t", 1, 1, smallest=w), observed=np.arange(n) % 2)
    return model


def binomial(n, s):
    from scipy.special import gammaln

    return gammaln(n + 1) - gammaln(s + 1) - gammaln(n - s + 1)


def error(theta, seen, believed):
    """E (draw - theta)^2: what is seen given theta (k, theta), and what a draw then has in proportion to (k, theta)."""
    believed = believed / believed.sum(axis=1, keepdims=True)
    mean, square = believed @ theta, believed @ theta**2
    each = square[:, None] - 2 * mean[:, None] * theta + theta**2
    return float((seen * each).sum(axis=0).mean())


@pytest.mark.slow
def test_advice_says_what_is_not_offered():
    told = pmdp.advise(student()[0], epsilon=1, bounds={"x": (-3, 3)})
    assert told.better == "posterior_sample"
    assert "laplace is not offered" in repr(told)
    with pm.Model() as model:
        pm.Normal("x", pm.Normal("m"), 1.0, observed=X)
    told = pmdp.advise(model, epsilon=1, bounds={"x": (-3, 3)})
    assert told.better == "laplace"
    assert "m has no largest value" in repr(told)
    with pytest.raises(pmdp.Refusal, match="needs bounds"):
        pmdp.advise(model, epsilon=1)


def test_advice_counts_what_truncation_leaves_out():
    """A network's draws from .4 on stay near 1/2, however many records there are; from .01 on they do not."""
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("t", 1, 1), observed=Y)
    told = pmdp.advise(model, epsilon=0.1, smallest=0.4)
    assert told.better == "laplace" or told.records < told.crossover
    assert told.draw_error(1e6) > 0.2
    assert pmdp.advise(model, epsilon=0.1).draw_error(1e6) < 1e-3
    assert told.release_error(1e6) < 1e-4


def test_advice_reads_no_record(seam):
    told = [repr(pmdp.advise(counts(k)[0], epsilon=1, bounds={"k": (0, 5)})) for k in (K, K * 0)]
    assert told[0] == told[1]
    assert not seam.scores


def test_questions_share_a_draw_or_pay_for_their_own(seam, tmp_path):
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=10, create=True)
    questions = {"rate": lambda draw: draw.m, "double": lambda draw: 2 * draw.m.values}
    how = {"model": counts()[0], "bounds": {"k": (0, 5)}, "ledger": ledger}
    tree = pmdp.ask(questions, epsilon=1.0, **how)
    assert len(seam.scores) == 1
    assert tree["answers"].double == 2 * tree["answers"].rate == 2 * tree["posterior"].m.item()
    shared = tree.privacy.attrs["temperature"]
    tree = pmdp.ask(questions, epsilon=1.0, fresh=True, **how)
    assert len(seam.scores) == 3
    assert tree.privacy.attrs["temperature"] == pytest.approx(2 * shared)
    assert ledger.remaining().epsilon == 8
    assert tree["answers"].attrs["epsilon"] == 1


def test_a_failing_question_keeps_what_was_paid_for(seam):
    with pytest.raises(ZeroDivisionError) as caught:
        pmdp.ask({"odd": lambda draw: 1 / 0}, epsilon=1.0, model=coin()[0])
    assert "posterior" in caught.value.tree.children
    with pytest.raises(pmdp.Refusal, match="must be functions"):
        pmdp.ask({"odd": 3}, epsilon=1.0, model=coin()[0])


def named_dims(rng):
    with pm.Model(coords={"person": range(20), "group": range(2)}) as model:
        low = pmd.Uniform("low", 0.1, 0.2)
        p = pmd.Beta("p", 1 + low, 2, dims="group")
        group = pmd.Data("which", np.arange(20) % 2, dims="person")
        pmd.Bernoulli("y", p=0.1 + 0.8 * p.isel(group=group), observed=pmd.as_xtensor(rng.integers(0, 2, 20), dims=("person",)))
    return model


@pytest.mark.parametrize("mechanism", [pmdp.PosteriorSample(draws=2), pmdp.Gibbs(sweeps=1)])
def test_priors_of_named_dims_can_be_drawn_from(mechanism):
    """They were not read, and the draw failed after it was paid for."""
    tree = pmdp.sample(model=named_dims(np.random.default_rng(0)), epsilon=1, mechanism=mechanism, public=["which"])
    assert set(tree["posterior"].data_vars) == {"low", "p"}
    assert tree["posterior"]["p"].dims == ("chain", "draw", "group")
    assert ((tree["posterior"]["low"] >= 0.1) & (tree["posterior"]["low"] <= 0.2)).all()


def test_a_mode_of_named_dims_is_that_of_the_plain_model():
    model = named_dims(np.random.default_rng(0))
    with pm.Model() as plain:
        low = pm.Uniform("low", 0.1, 0.2)
        p = pm.Beta("p", 1 + low, 2, shape=2)
        y = np.random.default_rng(0).integers(0, 2, 20)
        pm.Bernoulli("y", 0.1 + 0.8 * p[pm.Data("which", np.arange(20) % 2)], observed=y)
    found = [pmdp.find_MAP(model=one, epsilon=10**6, public=["which"]) for one in (model, plain)]
    np.testing.assert_allclose(found[0]["p"], found[1]["p"])
    np.testing.assert_allclose(found[0]["low"], found[1]["low"])


def test_chains_of_a_hierarchy_over_a_public_index():
    """Of an index, and of an unknown that only a prior rests on, there is no derivative: the chain failed after it was paid for."""
    mechanism = pmdp.PosteriorSample(draws=1, method="mcmc", tune=20, steps=20)
    tree = pmdp.sample(model=named_dims(np.random.default_rng(0)), epsilon=1, mechanism=mechanism, public=["which"])
    assert tree["posterior"]["p"].shape == (1, 1, 2)
