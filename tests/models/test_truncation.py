"""Truncated priors: their densities, exact draws, supports and transforms; and why truncating is not clipping."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import exp, log

import numpy as np
import pymc as pm
import pytensor
import pytest
from checks import mostly_slow
from hypothesis import given, settings
from hypothesis import strategies as st
from pymc.distributions.shape_utils import change_dist_size
from pymc.model.fgraph import clone_model
from scipy.integrate import quad
from scipy.special import betainc, gammainc, logsumexp
from scipy.stats import beta as beta_law
from scipy.stats import kstest

import pymc_dp as pmdp
from pymc_dp.models.ball_prior import BallTransform
from pymc_dp.models.bounded_priors import GRID, TrimmedSimplexTransform, TrimmedTransform

pytestmark = pytest.mark.filterwarnings("ignore")
ALPHA = 1e-6
"""False alarms of every test of draws. With 40,000 draws Kolmogorov's test then finds a distribution function that is off by .018
somewhere with probability above 1 - 1e-6: 2.7 / sqrt(n) is the critical value, and noise is beyond sqrt(log(2e6) / 2n) as rarely."""
DRAWS = 40_000
PYTHON = pytensor.compile.mode.Mode(linker="py", optimizer="fast_compile")
"""Nothing is compiled in C."""
NODES = np.polynomial.legendre.leggauss(300)


def density(variable, values):
    """The density at values stacked along the first axis."""
    given = variable.type()
    compiled = pm.compile([given], pm.logp(variable, given), mode=PYTHON)
    return np.exp([compiled(np.asarray(value, dtype=float)) for value in values])


def draws(variable, many=DRAWS, seed=5):
    return pm.draw(change_dist_size(variable, (many,), expand=True), random_seed=seed, mode=PYTHON)


@pytest.fixture(autouse=True)
def quickly(request):
    """Without compilers, but for the samplers."""
    if request.node.get_closest_marker("slow"):
        yield
    else:
        with pytensor.config.change_flags(mode=PYTHON, cxx=""):
            yield


# ---------- how small the smallest probability is
def cost_of(w, K, tables, neighbours):
    """Exactly, with 60 digits: of the very number that is returned."""
    with localcontext(prec=60):
        ratio = (1 - (K - 1) * Fraction(w)) / Fraction(w)
        return (Decimal(ratio.numerator) / ratio.denominator).ln() * tables * (2 if neighbours == "replace" else 1)


@settings(max_examples=300, deadline=None)
@given(st.floats(1e-3, 300), st.integers(1, 40), st.integers(2, 9), st.sampled_from(["replace", "add_remove"]))
def test_it_costs_epsilon_and_no_more(epsilon, tables, levels, neighbours):
    w = pmdp.smallest_probability(epsilon, tables=tables, levels=levels, neighbours=neighbours)
    share = Decimal(repr(epsilon))
    assert cost_of(w, levels, tables, neighbours) <= share
    next_one = w - 1 / GRID
    assert next_one <= 0 or cost_of(next_one, levels, tables, neighbours) > share  # no smaller one would do
    assert (w * GRID).is_integer()
    assert Fraction(1 - (levels - 1) * w) == 1 - (levels - 1) * Fraction(w)  # no rounding


@pytest.mark.parametrize(("epsilon", "w"), [(0.1, 0.4993), (1, 0.4926), (3, 0.478), (10, 0.427), (30, 0.2927), (100, 0.0502)])
def test_naive_bayes_of_the_paper(epsilon, w):
    """ZRD16's 16 features and a class, 1 / (1 + exp(epsilon / 34)); the last digit is rounded here."""
    assert pmdp.smallest_probability(epsilon, tables=17) == pytest.approx(1 / (1 + exp(epsilon / 34)), abs=1e-15)
    assert pmdp.smallest_probability(epsilon, tables=17) == pytest.approx(w, abs=6e-5)
    assert pmdp.smallest_probability(epsilon, tables=17, neighbours="add_remove") == pytest.approx(1 / (1 + exp(epsilon / 17)), abs=1e-15)


def test_nothing_left():
    with pytest.raises(pmdp.Refusal, match="epsilon is too small"):
        pmdp.smallest_probability(1e-16)


# ---------- densities
@pytest.mark.parametrize(("a", "b", "w"), [(1, 1, 0.1), (0.3, 4, 0.05), (30, 2, 0.3), (2, 900, 0.4), (5, 5, 0.4999)])
def test_a_trimmed_beta_is_truncated_and_renormalised(a, b, w):
    theta = pmdp.TrimmedBeta.dist(a, b, smallest=w)
    points = np.linspace(w, 1 - w, 7)[1:-1]
    nodes, weights = np.polynomial.legendre.leggauss(100)
    inside = 0.5 + (0.5 - w) * nodes
    assert ((0.5 - w) * weights * density(theta, inside)).sum() == pytest.approx(1, rel=1e-8)
    assert not density(theta, [w - 1e-6, 1 - w + 1e-6, 0, 1, -1]).any()
    truncated = pm.Truncated.dist(pm.Beta.dist(*(pytensor.tensor.constant(one, dtype="float64") for one in (a, b))), lower=w, upper=1 - w)
    if a + b < 100:  # where PyMC's difference of distribution functions near 1 keeps its digits
        np.testing.assert_allclose(density(theta, points), density(truncated, points), rtol=1e-6)


@pytest.mark.parametrize(("precision", "radius"), [(1.0, 2.0), (4.0, 0.3), (100.0, 1.0)])
def test_a_ball_of_normals_integrates_to_one(precision, radius):
    for length in (1, 2):
        w = pmdp.BallNormal.dist(precision, radius, shape=length)
        distance = radius * (1 + np.polynomial.legendre.leggauss(60)[0]) / 2
        weights = radius / 2 * np.polynomial.legendre.leggauss(60)[1]
        around = 2 if length == 1 else 2 * np.pi * distance  # both sides, or the circle: that it is the same all around is tested next
        line = distance[:, None] * np.eye(length)[0]
        assert (around * weights * density(w, line)).sum() == pytest.approx(1, abs=1e-9)
        np.testing.assert_allclose(density(w, -line[:, ::-1]), density(w, line), rtol=1e-12)
        assert not density(w, np.full((1, length), radius * 1.001)).any()
        mass = gammainc(length / 2, precision * radius**2 / 2)
        assert np.log(density(w, np.zeros((1, length))))[0] == pytest.approx(length / 2 * log(precision / (2 * np.pi)) - log(mass))
    turned = np.array([[0.3, 0.4], [0.5, 0.0], [-0.4, 0.3]]) * radius
    assert np.ptp(density(w, turned)) < 1e-9


def test_a_trimmed_dirichlet_is_one_up_to_a_constant():
    """Density ratios inside are those of the whole Dirichlet; outside, in each of its coordinates, it is 0."""
    a, w = np.array([0.5, 2, 3]), 0.1
    theta, whole = pmdp.TrimmedDirichlet.dist(a, smallest=w), pm.Dirichlet.dist(a)
    inside = w + (1 - 3 * w) * np.random.default_rng(3).dirichlet(np.ones(3), size=6)
    np.testing.assert_allclose(density(theta, inside), density(whole, inside), rtol=1e-12)
    assert not density(theta, [[0.09, 0.41, 0.5], [0.41, 0.09, 0.5], [0.41, 0.5, 0.09], [0.4, 0.4, 0.4]]).any()


# ---------- draws
@pytest.mark.parametrize(("a", "b", "w"), [(1, 1, 0.1), (0.3, 4, 0.05), (30, 2, 0.3), (2, 900, 0.4), (900, 2, 0.4)])
def test_draws_of_a_trimmed_beta(a, b, w):
    found = draws(pmdp.TrimmedBeta.dist(a, b, smallest=w))
    assert w <= found.min() <= found.max() <= 1 - w
    if a < b:
        below, above = betainc(a, b, w), betainc(a, b, 1 - w)
        tail, top = beta_law.sf(w, a, b), beta_law.sf(1 - w, a, b)
        assert kstest(found, lambda x: 1 - (beta_law.sf(x, a, b) - top) / (tail - top)).pvalue > ALPHA
        assert a + b > 100 or kstest(found, lambda x: (betainc(a, b, x) - below) / (above - below)).pvalue > ALPHA
    else:
        below, above = betainc(a, b, w), betainc(a, b, 1 - w)
        assert kstest(found, lambda x: (betainc(a, b, x) - below) / (above - below)).pvalue > ALPHA


@pytest.mark.parametrize(("precision", "radius", "length"), [(1.0, 2.0, 1), (1.0, 2.0, 3), (4.0, 0.3, 10), (100.0, 1.0, 14)])
def test_draws_of_a_ball_of_normals(precision, radius, length):
    """The distance has a truncated chi law, and any one coordinate of the direction, squared, a Beta(1/2, (P - 1)/2) one."""
    found = draws(pmdp.BallNormal.dist(precision, radius, shape=length))
    distance = np.sqrt((found**2).sum(axis=-1))
    assert distance.max() <= radius
    mass = gammainc(length / 2, precision * radius**2 / 2)
    assert kstest(distance, lambda r: gammainc(length / 2, precision * r**2 / 2) / mass).pvalue > ALPHA
    assert kstest(np.sign(found[:, 0]) * 0.5 + np.random.default_rng(1).uniform(-0.5, 0.5, DRAWS), "uniform", args=(-1, 2)).pvalue > ALPHA
    if length > 1:
        for k in (0, length - 1):
            assert kstest((found[:, k] / distance) ** 2, "beta", args=(0.5, (length - 1) / 2)).pvalue > ALPHA


@pytest.mark.parametrize(
    ("a", "w"),
    mostly_slow(
        [((1, 1, 1), 0.1), ((0.5, 2, 3), 0.05), ((0.5, 2, 3), 0.3), ((40, 1, 1), 0.1), ((0.2, 0.2, 0.2), 0.01), ((8, 5, 6), 0.3)], 1, 4
    ),
)
def test_draws_of_a_trimmed_dirichlet(a, w):
    """The first probability's law, by quadrature of what the others leave: one integral within another, on 300 nodes each."""
    found = draws(pmdp.TrimmedDirichlet.dist(np.array(a, dtype=float), smallest=w))
    assert found.min() >= w
    assert np.abs(found.sum(axis=-1) - 1).max() < 1e-12
    nodes, weights = NODES
    left, weights = 1 - 3 * w, weights / 2
    units = (1 + nodes) / 2

    def of(x):
        """The density of the first, unnormalised."""
        rest = 1 - x - 2 * w
        second = w + rest[:, None] * units
        third = 1 - x[:, None] - second
        return x ** (a[0] - 1) * rest * (weights * second ** (a[1] - 1) * third ** (a[2] - 1)).sum(axis=1)

    edges = np.linspace(w, 1 - 2 * w, 401)
    few, few_weights = np.polynomial.legendre.leggauss(8)
    within = edges[:-1, None] + (edges[1] - edges[0]) * (1 + few) / 2
    mass = (of(within.ravel()).reshape(within.shape) * few_weights).sum(axis=1)
    cumulated = np.concatenate([[0], np.cumsum(mass)]) / mass.sum()
    assert left > 0
    assert kstest(found[:, 0], lambda x: np.interp(x, edges, cumulated)).pvalue > ALPHA


def test_the_tests_of_draws_can_fail():
    """Clipped draws, and those of a prior that is off by a tenth of its concentration, are found out."""
    whole = np.random.default_rng(2).beta(1, 1, DRAWS)
    assert kstest(np.clip(whole, 0.1, 0.9), "uniform", args=(0.1, 0.8)).pvalue < ALPHA
    off = draws(pmdp.TrimmedBeta.dist(1.2, 1, smallest=0.1))
    assert kstest(off, "uniform", args=(0.1, 0.8)).pvalue < ALPHA


def test_narrow_supports_are_never_left():
    """Where rounding could lead out: 2^-40 wide, at both ends."""
    w = 0.5 - 2.0**-40
    found = draws(pmdp.TrimmedBeta.dist([1, 1e-3, 30, 1], [1, 30, 1e-3, 1], smallest=w), 2000)
    assert w <= found.min() <= found.max() <= 1 - w
    assert found.shape == (2000, 4)
    third = 1 / 3 - 2.0**-40
    assert draws(pmdp.TrimmedDirichlet.dist(np.ones(3), smallest=third), 2000).min() >= third


# ---------- transforms
POINTS = np.sort(np.concatenate([np.linspace(-800, 800, 201), np.linspace(-40, 40, 801), [0.0, 1e-300]]))


@settings(max_examples=12, deadline=None)
@given(st.floats(1e-9, 0.33))
def test_no_point_is_mapped_outside(w):
    """As doubles, against limits that are exact fractions."""
    theta = TrimmedTransform(w).backward(POINTS).eval()
    assert (theta >= w).all()
    assert all(Fraction(value) <= 1 - Fraction(w) for value in theta)
    pairs = np.stack([POINTS, np.random.default_rng(0).permutation(POINTS)], axis=-1)
    rows = TrimmedSimplexTransform(w, 3).backward(pairs).eval()
    assert (rows >= w).all()
    np.testing.assert_allclose(rows.sum(axis=-1), 1, atol=1e-12)
    ball = BallTransform(w, 2).backward(pairs).eval()
    assert (np.sqrt((ball**2).sum(axis=-1)) <= w).all()


@pytest.mark.parametrize(
    ("transform", "point"),
    [
        (TrimmedTransform(0.1), np.array([0.3])),
        (TrimmedSimplexTransform(0.1, 3), np.array([0.3, -1.2])),
        (BallTransform(0.7, 1), np.array([0.4])),
        (BallTransform(0.7, 3), np.array([0.3, -1.2, 2.0])),
        (BallTransform(0.7, 3), np.array([1e-5, -2e-5, 3e-5])),
        (BallTransform(0.7, 3), np.zeros(3)),
        (BallTransform(2.0, 2), np.array([9.0, 4.0])),
    ],
)
def test_transforms_and_their_jacobians(transform, point):
    """There and back; and the determinant by differences of the map, in the coordinates that are free."""

    def value(expression):
        return np.asarray(expression.eval(mode=PYTHON))

    mapped = value(transform.backward(point))
    np.testing.assert_allclose(value(transform.forward(mapped)), point, rtol=1e-6, atol=1e-9)
    step = 1e-4
    columns = [
        (value(transform.backward(point + step * e)) - value(transform.backward(point - step * e))) / (2 * step) for e in np.eye(len(point))
    ]
    differences = np.array(columns)[:, : len(point)]
    assert value(transform.log_jac_det(point)).sum() == pytest.approx(np.log(np.abs(np.linalg.det(differences))), abs=1e-3)


# ---------- within models
def model():
    coords = {"feature": ["a", "b", "c"], "side": ["left", "right"]}
    with pm.Model(coords=coords) as made:
        pmdp.TrimmedBeta("theta", 2, 5, smallest=0.4, dims="feature")
        pmdp.TrimmedDirichlet("table", [0.5, 1, 3], smallest=0.1, dims=("side", "feature"))
        pmdp.BallNormal("w", 1.0, 2.0, dims=("side", "feature"))
    return made


@pytest.mark.parametrize("made", [model(), clone_model(model())], ids=["written", "cloned"])
def test_models(made):
    """Shapes, supports in the graph, the point samplers start from, gradients there, and prior draws."""
    assert made["theta"].owner.op.smallest == 0.4
    assert made["table"].owner.op.smallest == 0.1
    assert (made["w"].owner.op.radius, made["w"].owner.op.precision, made["w"].owner.op.length) == (2.0, 1.0, 3)
    start = made.initial_point()
    assert {name: value.shape for name, value in start.items()} == {
        "theta_trimmed__": (3,), "table_trimmed_simplex__": (2, 2), "w_ball__": (2, 3),
    }  # fmt: skip
    assert np.isfinite(made.compile_logp(mode=PYTHON)(start))
    assert np.isfinite(made.compile_dlogp(mode=PYTHON)(start)).all()
    prior = pm.sample_prior_predictive(50, model=made, random_seed=1, compile_kwargs={"mode": PYTHON}).prior
    assert prior["theta"].shape == (1, 50, 3)
    assert 0.4 <= prior["theta"].min() <= prior["theta"].max() <= 0.6
    assert prior["table"].shape == (1, 50, 2, 3)
    assert prior["table"].min() >= 0.1
    assert ((prior["w"] ** 2).sum("feature") <= 4).all()


def test_concentrations_may_be_unknown():
    """The normaliser moves with them."""
    a = pm.Exponential.dist(1)
    theta = pmdp.TrimmedBeta.dist(a, 1, smallest=0.2)
    for value in (0.5, 3.0):
        known = pmdp.TrimmedBeta.dist(value, 1, smallest=0.2)
        assert pm.logp(theta, 0.3).eval({a: value}) == pytest.approx(pm.logp(known, 0.3).eval(), rel=1e-12)
    assert 0.2 <= pm.draw(theta, random_seed=1) <= 0.8


@pytest.mark.slow
def test_nuts_agrees_with_exact_draws():
    """Means and standard deviations of everything, within 6 Monte Carlo errors; 4 chains of 1,000 draws."""
    with pm.Model() as made:
        pmdp.TrimmedBeta("theta", 0.5, 4, smallest=0.2)
        pmdp.TrimmedDirichlet("row", [0.5, 1, 3], smallest=0.1)
        pmdp.BallNormal("w", 1.0, 1.5, shape=3)
        found = pm.sample(1000, tune=600, chains=4, cores=1, random_seed=3, progressbar=False).posterior
    exact = {name: draws(made[name]) for name in ("theta", "row", "w")}
    import arviz as az

    for name, values in exact.items():
        for power in (1, 2):
            here = (found[name] ** power).rename("x")
            error = np.sqrt(np.asarray(az.mcse(here.to_dataset())["x"]) ** 2 + (values**power).var(axis=0) / DRAWS)
            assert (np.abs(here.mean(("chain", "draw")).values - (values**power).mean(axis=0)) < 6 * error).all()
    assert found["theta"].min() >= 0.2
    assert found["row"].min() >= 0.1
    assert (found["w"] ** 2).sum("w_dim_0").max() <= 1.5**2


# ---------- privacy
def truncated_loss(n, s, t, w):
    """Largest log-ratio of exact truncated posteriors, Beta(1, 1) prior, s and t ones among n, on 20,001 points and ends included."""
    theta = np.linspace(w, 1 - w, 20_001)
    nodes, weights = NODES  # exact up to degree 599
    inside, weights = 0.5 + (0.5 - w) * nodes, (0.5 - w) * weights

    def log_likelihood(k, at):
        return k * np.log(at) + (n - k) * np.log1p(-at)

    log_density = [log_likelihood(k, theta) - logsumexp(log_likelihood(k, inside), b=weights) for k in (s, t)]
    return np.abs(log_density[0] - log_density[1]).max()


@pytest.mark.parametrize("n", [1, 10, 50, 200])
def test_clipping_instead_of_truncating_is_not_private(n):
    """The atom that clipped draws have at 1 - w: no ones against one among n, .1 to .9. At n = 50 it loses 6.13, where 4.39 is promised."""
    w = 0.1
    promised = 2 * log((1 - w) / w)
    atoms = [beta_law.logsf(1 - w, k + 1, n - k + 1) for k in (0, 1)]
    by_integral = [log(quad(lambda x, k=k: beta_law.pdf(x, k + 1, n - k + 1), 1 - w, 1, epsabs=0)[0]) for k in (0, 1)]
    clipped = atoms[1] - atoms[0]
    assert clipped == pytest.approx(by_integral[1] - by_integral[0], rel=1e-6)
    assert truncated_loss(n, 0, 1, w) <= promised
    if n == 50:
        assert (round(clipped, 2), round(promised, 2)) == (6.13, 4.39)
    if n >= 10:
        assert clipped > promised


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
def test_a_truncated_draw_costs_what_was_asked_for(epsilon):
    """For every pair of neighbours; and nearly all of it, with many records."""
    w = pmdp.smallest_probability(epsilon)
    losses = [truncated_loss(n, s, s + 1, w) for n in (1, 5, 40) for s in range(n)]
    assert max(losses) <= epsilon
    assert 0.95 * epsilon < truncated_loss(400, 0, 1, w) <= epsilon


def test_a_table_of_three_levels_costs_what_was_asked_for():
    """Exact posteriors on a grid with the corners of the support in it, by the density of the distribution itself."""
    epsilon = 1.0
    w = pmdp.smallest_probability(epsilon, levels=3)
    grid = w + (1 - 3 * w) * np.array([(i, j, 60 - i - j) for i in range(61) for j in range(61 - i)]) / 60
    prior = np.log(density(pmdp.TrimmedDirichlet.dist(np.ones(3), smallest=w), np.maximum(grid, w)))
    assert np.isfinite(prior).all()
    found = 0.0
    for counts in ([0, 0, 300], [0, 300, 0], [5, 3, 2], [0, 0, 1]):
        for i, j in [(0, 1), (1, 2), (2, 0), (0, 2), (1, 0), (2, 1)]:
            if counts[i]:
                moved = np.array(counts) + np.eye(3, dtype=int)[j] - np.eye(3, dtype=int)[i]
                logs = [prior + np.log(grid) @ rows for rows in (np.array(counts), moved)]
                found = max(found, np.abs((logs[0] - logsumexp(logs[0])) - (logs[1] - logsumexp(logs[1]))).max())
    assert 0.9 * epsilon < found <= epsilon * (1 + 1e-12)


# ---------- refusals
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pmdp.TrimmedBeta.dist(1, 1, smallest=0.5), "below 1/2. Write smallest=smallest_probability"),
        (lambda: pmdp.TrimmedBeta.dist(1, 1, smallest=0), "above 0"),
        (lambda: pmdp.TrimmedBeta.dist(-1, 1, smallest=0.1), "Concentrations must be positive"),
        (lambda: pmdp.TrimmedBeta.dist(1e5, 1, smallest=0.4), "Next to nothing"),
        (lambda: pmdp.TrimmedDirichlet.dist(np.ones(3), smallest=0.34), "below 1/3"),
        (lambda: pmdp.TrimmedDirichlet.dist(pm.Exponential.dist(1, shape=3), smallest=0.1), "plain numbers"),
        (lambda: pmdp.TrimmedDirichlet.dist([1.0], smallest=0.1), "two or more levels"),
        (lambda: pmdp.BallNormal.dist(1.0, 1.0), "How many coefficients"),
        (lambda: pmdp.BallNormal.dist(pm.Exponential.dist(1), 1.0, shape=2), "precision must be a positive finite number"),
        (lambda: pmdp.BallNormal.dist(1.0, -1.0, shape=2), "radius must be"),
        (lambda: pmdp.BallNormal.dist(1.0, 1e-9, shape=200), "Next to nothing"),
        (lambda: pmdp.smallest_probability(1.0, tables=0), "tables must be a whole number of at least 1"),
        (lambda: pmdp.smallest_probability(1.0, levels=1), "levels must be"),
        (lambda: pmdp.smallest_probability(1.0, neighbours="swap"), "neighbours must be"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(pmdp.Refusal) as refusal:
        call()
    assert words in str(refusal.value)
