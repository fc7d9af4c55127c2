"""Lipschitz constants: no pair of records and no parameter exceeds one, and the bounds that follow hold for exact posteriors."""

import itertools
from fractions import Fraction
from math import ceil, exp, inf, log, sqrt, tanh

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from scipy.stats import expon, geom, norm, poisson
from scipy.stats import laplace as laplace_law

import pymc_dp as pmdp
from pymc_dp.privacy import lipschitz
from pymc_dp.privacy.lipschitz import Lipschitz

POSITIVE = st.floats(0.05, 20)


def largest_ratio(logp, values, parameters, distance=lambda x, y: abs(x - y)):
    """Of |log p(x | theta) - log p(y | theta)| / rho(x, y), over all pairs of values and all parameters."""
    found = np.array([[logp(x, theta) for x in values] for theta in parameters])
    rho = np.array([[distance(x, y) for y in values] for x in values])
    moved = np.abs(found[:, :, None] - found[:, None, :]).max(axis=0)
    return (moved[rho > 0] / rho[rho > 0]).max()


def assert_attained(found, one, within=1e-6):
    """Never above the constant, and as near to it as is claimed."""
    assert (1 - within) * one.constant <= found <= one.constant * (1 + 1e-9)


# ---------- single likelihoods
@settings(max_examples=30, deadline=None)
@given(POSITIVE, st.floats(-5, 5))
def test_laplace(scale, mu):
    found = largest_ratio(lambda x, m: laplace_law.logpdf(x, m, scale), np.linspace(-7, 7, 29), [mu, -6.0])
    assert_attained(found, lipschitz.laplace(scale))


@settings(max_examples=30, deadline=None)
@given(POSITIVE)
def test_exponential(most):
    found = largest_ratio(lambda x, rate: expon.logpdf(x, scale=1 / rate), np.linspace(0, 9, 19), np.linspace(0.01, 1, 30) * most)
    assert_attained(found, lipschitz.exponential(most))


@settings(max_examples=30, deadline=None)
@given(POSITIVE, st.floats(0.1, 5), st.floats(0.1, 5))
def test_normal(sigma, B, R):
    values = [*np.linspace(-R, R, 15), R - 1e-4 * R, -R + 1e-4 * R]
    found = largest_ratio(lambda x, mu: norm.logpdf(x, mu, sigma), values, np.linspace(-B, B, 11))
    assert_attained(found, lipschitz.normal(sigma, B, R), within=1e-4)


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-6, 0.19), st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_discrete(w, K, seed):
    """Random tables with the limit kept, and the two extreme ones."""
    rows = w + (1 - K * w) * np.random.default_rng(seed).dirichlet(np.full(K, 0.3), size=50)
    rows = np.vstack([rows, w + (1 - K * w) * np.eye(K)])
    found = largest_ratio(lambda x, row: np.log(row[x]), range(K), rows, lambda x, y: float(x != y))
    assert_attained(found, lipschitz.discrete(w, K))


def test_discrete_where_next_to_nothing_is_left():
    """1/2 - 2^-53: the log-ratio is 2^-51, far below the rounding of a logarithm of 1/2."""
    w = 0.5 - 2.0**-53
    assert lipschitz.discrete(w).constant == pytest.approx(2.0**-51, rel=1e-9)
    assert lipschitz.discrete(w).constant >= 2.0**-51


@settings(max_examples=30, deadline=None)
@given(st.floats(0.05, 5), st.floats(1, 8), st.integers(1, 30))
def test_poisson(low, ratio, most):
    high = low * ratio
    found = largest_ratio(lambda x, rate: poisson.logpmf(x, rate), range(most + 1), np.linspace(low, high, 9))
    one = lipschitz.poisson(low, high, most)
    assert one.constant * (1 - 1e-6) - 1e-6 <= found <= one.constant + 1e-9


@settings(max_examples=30, deadline=None)
@given(st.floats(0.01, 0.99))
def test_geometric(most):
    found = largest_ratio(lambda x, p: geom.logpmf(x, p), range(1, 30), np.linspace(0.01, 1, 20) * most)
    assert_attained(found, lipschitz.geometric(most))


@settings(max_examples=20, deadline=None)
@given(POSITIVE, st.floats(0.1, 3), st.floats(0.1, 3), st.floats(0.1, 3), st.integers(0, 2**32 - 1))
def test_linear_regression(sigma, B, Ry, Rx, seed):
    rng = np.random.default_rng(seed)

    def ball(many, radius):
        points = rng.normal(size=(many, 3))
        return radius * points / np.linalg.norm(points, axis=1, keepdims=True) * rng.random((many, 1)) ** (1 / 3)

    w, x, other = ball(2000, B), ball(2000, Rx), ball(2000, Rx)
    y, moved = rng.uniform(-Ry, Ry, (2, 2000))
    w[0], x[0], other[0], y[0], moved[0] = (B, 0, 0), (-Rx, 0, 0), (-Rx * (1 - 1e-4), 0, 0), Ry, Ry * (1 - 1e-4)
    loss = np.abs(norm.logpdf(y, (w * x).sum(1), sigma) - norm.logpdf(moved, (w * other).sum(1), sigma))
    rho = np.abs(y - moved) + B * np.linalg.norm(x - other, axis=1)
    assert_attained((loss / rho).max(), lipschitz.linear_regression(sigma, B, Ry, Rx), within=2e-4)


# ---------- networks, by brute force: all pairs of records, all extreme tables
SHAPES = {
    "two apart": {"a": (), "b": ()},
    "an arrow": {"a": (), "b": ("a",)},
    "chain": {"a": (), "b": ("a",), "c": ("b",)},
    "fork": {"a": (), "b": ("a",), "c": ("a",)},
    "collider": {"a": (), "b": (), "c": ("a", "b")},
    "complete": {"a": (), "b": ("a",), "c": ("a", "b")},
}


def terms(parents, levels, w):
    """For every family, all values of log p(x_i | x_pa) - log p(y_i | y_pa) that extreme tables allow, for every pair of records."""
    names = list(parents)
    records = list(itertools.product(*(range(levels[name]) for name in names)))
    for x, y in itertools.permutations(records, 2):
        x, y = dict(zip(names, x, strict=True)), dict(zip(names, y, strict=True))
        yield (x, y), [one_family(name, parents[name], levels[name], x, y, w) for name in names]


def one_family(name, above, K, x, y, w):
    """An extreme row has one entry of 1 - (K - 1) w and otherwise w. Both records in one row, or each in its own."""
    rows = [np.log(np.where(np.arange(K) == top, 1 - (K - 1) * w, w)) for top in range(K)]
    if all(x[parent] == y[parent] for parent in above):
        return [row[x[name]] - row[y[name]] for row in rows]
    return [first[x[name]] - second[y[name]] for first, second in itertools.product(rows, rows)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("K", [{"a": 2, "b": 2, "c": 2}, {"a": 3, "b": 2, "c": 3}], ids=["binary", "mixed"])
@pytest.mark.parametrize("metric", lipschitz.METRICS)
def test_networks(shape, K, metric):
    """A log-ratio is largest at a corner of the tables' limits: it is linear in log theta, and rows are free of each other.

    Families have rows of their own, so the sum of the families' largest terms is attained. With several numbers of levels no record may
    differ in the worst family alone, and under the number of families the constant is then a bound only.
    """
    parents, w = SHAPES[shape], 0.1
    levels = {name: K[name] for name in parents}
    one = lipschitz.network(parents, w, levels=levels, metric=metric)
    found = 0.0
    for (x, y), families in terms(parents, levels, w):
        differ = [any(x[other] != y[other] for other in (name, *above)) for name, above in parents.items()]
        rho = {"record": 1, "variables": sum(x[name] != y[name] for name in parents), "families": sum(differ)}[metric]
        found = max(found, sum(map(max, families)) / rho)
    assert_attained(found, one, within=0.06 if metric == "families" and K["a"] > 2 else 1e-9)


def test_networks_as_published_are_wrong():
    """DNMR14's Lemma 7, log(1 / w), and ZRD16's Lemma 2, the largest L_i, both under the number of variables that differ: a star."""
    star, w = {"a": (), "b": ("a",), "c": ("a",), "d": ("a",)}, 0.1
    by_variables = lipschitz.network(star, w, metric="variables").constant
    assert by_variables == pytest.approx(4 * log(9))
    assert by_variables > max(log(10), log(9))
    assert lipschitz.network(star, w).constant == pytest.approx(4 * log(9))  # one record, and all that differs is a: attained, too
    assert lipschitz.network(star, w, metric="families").constant == pytest.approx(log(9))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_network_that_is_trimmed_costs_what_was_asked_for(shape):
    w = pmdp.smallest_probability(1.5, tables=len(SHAPES[shape]))
    assert lipschitz.privacy(lipschitz.network(SHAPES[shape], w)).epsilon == pytest.approx(1.5, rel=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_samples_add_no_factor(n, seed):
    """DNMR14's Lemma 1 without its factor of n: attained, by records that move in the direction of one sign."""
    rng = np.random.default_rng(seed)
    one, rates = lipschitz.exponential(2.0), np.linspace(0.1, 2, 20)
    x, y = rng.exponential(size=(2, 500, n))
    y[0] = x[0] + 1
    loss = np.abs(rates[:, None] * (x - y).sum(axis=1))
    ratio = (loss.max(axis=0) / np.abs(x - y).sum(axis=1)).max()
    assert_attained(ratio, lipschitz.samples(one))


# ---------- what they promise
def grids(n, seed):
    """Exact posteriors of n records of three levels on a grid of tables and with a random prior, for all pairs of data sets."""
    rng, w, K = np.random.default_rng(seed), 0.15, 3
    theta = np.vstack([w + (1 - K * w) * rng.dirichlet(np.full(K, 0.5), size=30), w + (1 - K * w) * np.eye(K)])
    prior = np.log(rng.dirichlet(np.full(len(theta), 0.2)) + 1e-12)
    data = list(itertools.combinations_with_replacement(range(K), n))
    unnormed = np.array([prior + np.log(theta)[:, rows].sum(axis=1) for rows in map(list, data)])
    posteriors = unnormed - logsumexp(unnormed, axis=1, keepdims=True)
    counts = np.array([np.bincount(rows, minlength=K) for rows in data])
    far = np.abs(counts[:, None] - counts[None]).sum(axis=-1) // 2  # records that have to be replaced
    return lipschitz.samples(lipschitz.discrete(w, K)), posteriors, far


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("seed", range(4))
def test_posteriors_on_a_grid_keep_every_promise(n, seed):
    one, posteriors, far = grids(n, seed)
    for a, b in zip(*np.nonzero(far), strict=True):
        rho, ratio = float(far[a, b]), posteriors[a] - posteriors[b]
        cost = lipschitz.privacy(one, rho)
        assert np.abs(ratio).max() <= np.ptp(ratio) <= float(cost.epsilon) * (1 + 1e-12)
        assert (np.exp(posteriors[a]) * ratio).sum() <= lipschitz.divergence(one, rho)
        distance = np.abs(np.exp(posteriors[a]) - np.exp(posteriors[b])).sum()
        assert distance <= 2 * tanh(one.constant * rho / 2)


def two_points(prior, w=0.1):
    """Posteriors of a Bernoulli variable, 1 or 0 seen once, with parameters w and 1 - w only."""
    p = np.array([prior * w, (1 - prior) * (1 - w)])
    q = np.array([prior * (1 - w), (1 - prior) * w])
    return p / p.sum(), q / q.sum()


def test_privacy_is_attained_in_the_limit():
    """An all but certain parameter gets next to no log-ratio, so the other gets all of the range: 2 L."""
    p, q = two_points(1e-9)
    one = lipschitz.discrete(0.1)
    assert np.log(p / q).max() == pytest.approx(0, abs=1e-6)
    assert np.abs(np.log(p / q)).max() == pytest.approx(float(lipschitz.privacy(one).epsilon), rel=1e-6)


@pytest.mark.parametrize("moved", [1e-9, 1e-5, 0.01, 0.2, 1.0, 5.0, 50.0])
def test_the_divergence_is_attained_and_below_the_generic_bounds(moved):
    """The largest Kullback-Leibler divergence of two points whose log-ratios are t and t - eta, over t; Theorem 1 (i) and the generic form
    of a pure epsilon are above.
    """
    eta = 2 * moved

    def less(t):
        q = -np.expm1(t - eta) / (exp(t) - exp(t - eta))
        return -(q * exp(t) * t + (1 - q) * exp(t - eta) * (t - eta))

    found = -minimize_scalar(less, bounds=(0, eta), method="bounded", options={"xatol": 1e-12 * eta}).fun
    bound = lipschitz.divergence(Lipschitz(moved, ""))
    assert found <= bound * (1 + 1e-9) + 1e-16
    assert bound == pytest.approx(found, rel=1e-4, abs=1e-13)
    assert bound < 2 * moved * tanh(moved) <= min(2 * moved, 2 * moved**2)


def test_draws_compose():
    """k draws: k 2 L rho pure, and k (2 L rho)^2 / 8 in zCDP."""
    one = lipschitz.discrete(0.3)
    eta = 2 * Fraction(one.constant) * 3
    pure = lipschitz.privacy(one, 3, draws=7)
    assert (pure.epsilon, pure.delta) == (7 * eta, 0)
    cost = lipschitz.privacy(lipschitz.discrete(0.49), draws=200, delta=1e-6)
    assert cost.rho == 200 * (2 * Fraction(lipschitz.discrete(0.49).constant)) ** 2 / 8
    assert cost == pmdp.compose([pmdp.bounded_range(2 * Fraction(lipschitz.discrete(0.49).constant))] * 200, delta=1e-6)
    assert cost.epsilon < lipschitz.privacy(lipschitz.discrete(0.49), draws=200).epsilon


# ---------- what it takes to tell two data sets
@pytest.mark.parametrize("delta", [0.04, 0.01, 1e-4])
@pytest.mark.parametrize("w", [0.45, 0.3, 0.1])
def test_with_fewer_draws_they_cannot_be_told(w, delta):
    """The paper's own argument, on exact posteriors: no prior makes them further apart than frequencies of so few draws are accurate."""
    one = lipschitz.discrete(w)
    n = lipschitz.draws_to_tell(one, 1, delta)
    farthest = max(np.abs(np.subtract(*two_points(prior, w))).sum() for prior in np.linspace(0.01, 0.99, 99))
    assert farthest == pytest.approx(2 * tanh(one.constant / 2), rel=1e-9)  # attained by equal priors
    assert n == 1 or sqrt(3 * log(1 / delta) / (n - 1)) > farthest
    assert sqrt(3 * log(1 / delta) / n) <= farthest or n == 1
    said = 3 * log(1 / delta) / 4
    assert n >= max(said / one.constant, said / one.constant**2, said / (one.constant * tanh(one.constant)))


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-3, 5), st.integers(1, 10**6), st.floats(1e-9, 0.06))
def test_distance_and_draws_are_inverse(constant, n, delta):
    one = Lipschitz(constant, "|x - y|")
    rho = lipschitz.distance_to_tell(one, n, delta)
    if rho == inf:
        assert n <= 0.75 * log(1 / delta)
        return
    assert lipschitz.draws_to_tell(one, rho * (1 - 1e-6), delta) >= n
    assert lipschitz.draws_to_tell(one, rho * (1 + 1e-6), delta) <= n + ceil(n * 1e-4)
    assert rho >= max(3 * log(1 / delta) / (4 * constant * n), sqrt(3 * log(1 / delta) / (4 * constant**2 * n))) * (1 - 1e-9)


def test_so_many_cells_and_no_more():
    """delta = 0.01 allows three."""
    lipschitz.draws_to_tell(lipschitz.discrete(0.3), 1, 0.01, cells=3)
    with pytest.raises(pmdp.Refusal, match=r"delta of at most .* for 4 cells"):
        lipschitz.draws_to_tell(lipschitz.discrete(0.3), 1, 0.01, cells=4)


# ---------- refusals
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lipschitz.laplace(0), "scale must be a positive finite number. Write for example scale=1."),
        (lambda: lipschitz.normal(1, inf, 1), "largest_mean must be"),
        (lambda: lipschitz.discrete(0.5), "smallest below 1 / levels"),
        (lambda: lipschitz.discrete(0.1, levels=True), "levels must be a whole number"),
        (lambda: lipschitz.poisson(2, 1, 3), "smallest rate is above the largest"),
        (lambda: lipschitz.geometric(1.0), "must be below 1"),
        (lambda: lipschitz.network({"a": ("b",)}, 0.1), "Every parent must be a variable"),
        (lambda: lipschitz.network({"a": ("b",), "b": ("a",)}, 0.1), "circle"),
        (lambda: lipschitz.network({"a": ()}, 0.1, levels={"b": 2}), "levels must name"),
        (lambda: lipschitz.network({"a": ()}, 0.1, metric="hamming"), "metric must be one of"),
        (lambda: lipschitz.privacy(lipschitz.discrete(0.1), draws=0), "draws must be"),
        (lambda: lipschitz.privacy(lipschitz.discrete(0.1), 0), "distance must be"),
        (lambda: lipschitz.draws_to_tell(lipschitz.discrete(0.1), 1, 0), "delta must lie"),
        (lambda: Lipschitz(-1.0, "|x - y|"), "constant must be"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(pmdp.Refusal) as refusal:
        call()
    assert words in str(refusal.value)
