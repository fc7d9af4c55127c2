"""Every form of every noisy law against a brute-force sum or integral."""

from itertools import pairwise, product

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from checks import mostly_slow
from scipy.special import gammaln, logsumexp, xlogy
from scipy.stats import chi, laplace, multivariate_normal, norm

from pymc_dp.families.family import Domain
from pymc_dp.families.normal import Normal
from pymc_dp.laws import law
from pymc_dp.privacy.noise_law import Noise

COUNT, COUNTS, MOMENTS = law.Count(pt.scalar(), pt.scalar()), law.Counts(pt.scalar(), pt.vector()), law.Moments(pt.scalar(), (), ())
"""Only their types matter to a plan."""
PROBABILITIES = np.array([1e-6, 1e-3, 0.1, 0.5, 0.93, 1 - 1e-6])


def brute_binomial(z, n, p, b):
    s = np.arange(n + 1.0)
    terms = gammaln(n + 1) - gammaln(s + 1) - gammaln(n - s + 1) + xlogy(s, p) + xlogy(n - s, 1 - p) - np.abs(z - s) / b
    q = np.exp(-1 / b)
    return logsumexp(terms) + np.log1p(-q) - np.log1p(q)


def evaluate(expression, point):
    inputs = list(point)
    gradients = pytensor.grad(expression.sum(), inputs)
    return pytensor.function(inputs, [expression, *gradients], mode="FAST_COMPILE")(*point.values())


@pytest.mark.parametrize(
    ("n", "b"),
    [
        (1, 0.1),
        pytest.param(*(1, 3.0), marks=pytest.mark.slow),
        (5, 0.5),
        pytest.param(*(60, 0.1), marks=pytest.mark.slow),
        (60, 1.0),
        pytest.param(*(60, 1e4), marks=pytest.mark.slow),
        pytest.param(*(1000, 1.0), marks=pytest.mark.slow),
        (1000, 10.0),
        (20_000, 1.0),
        pytest.param(*(20_000, 10.0), marks=pytest.mark.slow),
        pytest.param(*(1_000_000, 0.5), marks=pytest.mark.slow),
        (1_000_000, 10.0),
        pytest.param(*(1_000_000, 40.0), marks=pytest.mark.slow),
        (1_000_000, 300.0),
        (1_000_000, 1e4),
    ],
)
def test_count_in_every_form_is_the_brute_force_sum(n, b):
    """Two or more cells of different z; within 28 noise scales of what p makes likely, where the posterior has its mass."""
    cells = [
        (p, np.round(n * p + d * b + k * np.sqrt(n * p * (1 - p)))) for p in PROBABILITIES for d in (-20, -1, 0, 6) for k in (-2, 0, 3)
    ]
    p_values, z = (np.array(column) for column in zip(*cells))
    p = pt.vector("p", shape=(len(cells),))
    noise, counts = Noise(b), np.full(len(cells), n)
    plan = law.plan(COUNT, z[:, None], counts, noise)
    density, gradient = evaluate(
        law.log_density(law.Count(pt.constant(counts * 1.0), p), pt.constant(z[:, None]), noise, plan), {p: p_values}
    )
    brute = np.array([brute_binomial(k, n, value, b) for value, k in zip(p_values, z)])
    assert np.isfinite(gradient).all()
    # The central limit is used only for z > 300 b^2 > 1e5, where it is off by less than a twentieth of a nat near the mass.
    close = (
        np.ones(len(z), bool)
        if plan.form not in {"mixed", "normal"}
        else np.abs(z - n * p_values) <= 4 * (b + np.sqrt(n * p_values * (1 - p_values)))
    )
    assert np.abs(density - brute)[close].max() < (0.05 if plan.form in {"mixed", "normal"} else 1e-3)


@pytest.mark.parametrize("b", [0.2, 1.0, 5.0])
def test_counts_taken_as_normal_are_close_from_the_threshold_on(b):
    """n = 1,000,000 and 10,000 ones, the fewest that are taken as normal: a twentieth of a nat within three sampling errors."""
    n, z = 1_000_000, np.full((13, 1), 10_000.0)
    p_values = (z[:, 0] + np.linspace(-3, 3, 13) * np.hypot(np.sqrt(z[0, 0]), b)) / n
    plan = law.plan(COUNT, z, np.full(13, n), Noise(b))
    p = pt.vector("p", shape=(13,))
    density, _ = evaluate(law.log_density(law.Count(pt.constant(n * 1.0), p), pt.constant(z), Noise(b), plan), {p: p_values})
    assert plan.form == "normal"
    assert np.abs(density - [brute_binomial(10_000, n, value, b) for value in p_values]).max() < 0.05


@pytest.mark.parametrize("b", [0.1, 0.9, 2.0, *(pytest.param(b, marks=pytest.mark.slow) for b in (0.05, 0.2, 0.5, 1.0, 10.0))])
def test_every_count_has_the_density_of_the_brute_force_sum_by_its_own_plan(b):
    """Binomial and Poisson, from no count up to those where forms change, wherever it is not e^-20 of its maximum or less."""
    for z in sorted({-int(2 * b) - 1, 0, 1, 3, 12, 40, int(300 * b**2), int(300 * b**2) + 1}):
        n = 2 * max(z, 0) + 20
        around = max(z, 0) + np.linspace(-6, 6, 25) * (np.sqrt(max(z, 0) + 1) + b)
        rates = around[around > 1e-3]
        for kind, values in ((COUNT, rates[rates < n] / n), (law.Rates(pt.vector()), rates)):
            noisy, x = np.full((len(values), 1), float(z)), pt.vector("x", shape=(len(values),))
            plan = law.plan(kind, noisy[:1], np.array([n]), Noise(b))
            given = law.Count(pt.constant(float(n)), x) if kind is COUNT else law.Rates(x[:, None])
            density, gradient = evaluate(law.log_density(given, pt.constant(noisy), Noise(b), plan), {x: values})
            noise_on = laplace_kernel(b)
            brute = np.array([brute_binomial(z, n, one, b) if kind is COUNT else brute_poisson(z, one, noise_on) for one in values])
            nats, off = (4.5, 0.05) if plan.form == "normal" else (20, 1e-6)
            assert np.abs(density - brute)[brute > brute.max() - nats].max() < off
            assert np.isfinite(gradient).all()


def test_both_tails_underflowing_does_not_flatten_the_density():
    """The trap of a clipped closed form: n = 20,000, b = 1, z = 10,200 must have its maximum at .51, not a plain at 0."""
    z = np.array([[10_200.0]])
    plan = law.plan(COUNT, z, np.array([20_000]), Noise(1.0))
    grid = np.linspace(0.0005, 0.9995, 1999)
    p = pt.vector("p", shape=(len(grid),))
    density, gradient = evaluate(
        law.log_density(law.Count(pt.constant(20_000.0), p), pt.constant(np.repeat(z, len(grid), 0)), Noise(1.0), plan), {p: grid}
    )
    assert plan.form == "window"
    assert grid[np.argmax(density)] == pytest.approx(0.51, abs=0.001)
    assert (np.sign(gradient) == np.sign(0.51 - grid))[np.abs(grid - 0.51) > 0.005].all()


def brute_multinomial(z, n, p, b):
    s = np.arange(n + 1.0)
    total = None
    for z_k, p_k in zip(z, p):
        factor = xlogy(s, p_k) - gammaln(s + 1) - np.abs(z_k - s) / b
        total = factor if total is None else np.array([logsumexp(total[: t + 1] + factor[t::-1]) for t in range(n + 1)])
    q = np.exp(-1 / b)
    return total[n] + gammaln(n + 1) + len(p) * (np.log1p(-q) - np.log1p(q))


@pytest.mark.parametrize(
    ("K", "n", "b"), [(3, 1, 0.1), (5, 7, 0.5), (3, 60, 2.0), (5, 60, 3.9), (3, 400, 0.1), (3, 400, 3.9), (5, 400, 3.9)]
)
def test_counts_by_convolution_are_the_brute_force_sum(K, n, b):
    rng = np.random.default_rng(5)
    p_values = np.maximum(np.vstack([rng.dirichlet(np.full(K, 0.3), 4), rng.dirichlet(np.full(K, 20.0), 4)]), 1e-8)
    p_values /= p_values.sum(1, keepdims=True)
    z = np.array([rng.multinomial(n, value) for value in p_values]) + np.round(rng.laplace(size=p_values.shape) * b)
    counts, p = np.full(len(z), n), pt.matrix("p", shape=p_values.shape)
    plan = law.plan(COUNTS, z, counts, Noise(b))
    density, gradient = evaluate(law.log_density(law.Counts(pt.constant(counts * 1.0), p), pt.constant(z), Noise(b), plan), {p: p_values})
    assert plan.form == "convolution"
    assert np.isfinite(gradient).all()
    np.testing.assert_allclose(density, [brute_multinomial(*cell, b) for cell in zip(z, counts, p_values)], atol=1e-6)


def integrated_out(noise, n, z, p_values, plan, rng, M):
    """Log-densities of one cell's counts, their latents integrated out over so many draws, and their errors.

    Compiled once for all shares, by numba: in Python the loop takes most of a minute.
    """
    K = len(z)
    p, latent = pt.vector("p", shape=(K,)), rng.normal(size=(M, K))
    counts = law.Counts(pt.constant(np.full(M, float(n))), p + np.zeros((M, 1)))
    density = law.log_density(counts, pt.constant(np.tile(z, (M, 1))), noise, plan, pt.constant(latent))
    with pytensor.config.change_flags(numba__cache=False):  # numba warns that it cannot cache large constants
        function = pytensor.function([p], density, mode="NUMBA")
        values = np.array([function(value) for value in p_values])
    weights = np.exp(values - values.max(axis=1, keepdims=True))
    return logsumexp(values, axis=1) - np.log(M), weights.std(axis=1) / weights.mean(axis=1) / np.sqrt(M)


def test_many_counts_are_the_brute_force_sum_once_their_latents_are_integrated_out():
    """Nine levels, noise of two counts and rare levels among them: differences between shares within an eighth of a nat: that of the
    central limit where a level is expected once.

    Counts that are spread a fifth wider than they should be are half a nat off.
    """
    rng, n, b, M = np.random.default_rng(2), 100, 2.0, 200_000
    first = np.array([0.01, 0.02, 0.05, 0.1, 0.12, 0.15, 0.15, 0.2, 0.2])
    p_values = first * np.exp(rng.normal(scale=0.2, size=(5, 9)) * (np.arange(5) > 0)[:, None])
    p_values /= p_values.sum(axis=1, keepdims=True)
    z = np.round(n * first + rng.laplace(size=9) * b)
    plan = law.plan(law.Counts(pt.constant([100.0]), pt.constant(first[None])), z[None], np.array([n]), Noise(b))
    assert plan.form == "latent"
    found, errors = integrated_out(Noise(b), n, z, p_values, plan, rng, M)
    wanted = np.array([brute_counts_any(z, n, p, laplace_kernel(b)) for p in p_values])
    assert max(errors) < 0.01
    assert np.ptp(wanted) > 2
    assert np.ptp(found - wanted) < 0.125


@pytest.mark.parametrize(("n", "b"), [(60, 4.5), (60, 12.0), (400, 4.5), (400, 12.0)])
def test_counts_under_much_noise_are_the_brute_force_sum_once_their_latents_are_integrated_out(n, b):
    """Over 100,000 latents, for five shares: within a twentieth of a nat of one constant."""
    p_values = np.array([[0.2, 0.3, 0.5], [0.22, 0.29, 0.49], [0.18, 0.3, 0.52], [0.21, 0.32, 0.47], [0.23, 0.3, 0.47]])
    z, M = np.tile(np.round(n * p_values[0] + np.array([4.0, -7.0, 5.0])), (5, 1)), 100_000
    plan = law.plan(COUNTS, z, np.full(5, n), Noise(b))
    assert plan.form == "latent"
    found, errors = integrated_out(Noise(b), n, z[0], p_values, plan, np.random.default_rng(1), M)
    wanted = np.array([brute_multinomial(z[0], n, p, b) for p in p_values])
    assert max(errors) < 0.01
    assert np.ptp(found - wanted) < 0.05
    assert np.ptp(wanted) > 0.15


NEAR = [[0.2, 0.3, 0.5], [0.12, 0.28, 0.6], [0.15, 0.35, 0.5], [0.18, 0.24, 0.58]]
FAR = [[0.2, 0.3, 0.5], [0.1, 0.3, 0.6], [0.02, 0.08, 0.9], [0.45, 0.45, 0.1]]


@pytest.mark.parametrize(("b", "p_values"), mostly_slow([(0.7, NEAR), (5.0, FAR), (60.0, FAR)], 1))
def test_latent_counts_are_normal_ones_on_their_plane_once_the_latents_are_integrated_out(b, p_values):
    """Against the normal law integrated on a grid, of little noise and of much, shares near an edge among them."""
    noise, n, M = Noise(b), 60, 200_000
    z = np.round(n * np.array([0.15, 0.3, 0.55]) + b * np.array([0.6, -0.8, 1.1]))
    found, errors = integrated_out(noise, n, z, np.array(p_values), law.Plan("latent", latents=3), np.random.default_rng(1), M)
    first, second = np.meshgrid(np.linspace(-40, 90, 1301), np.linspace(-40, 90, 1301))
    s = np.stack([first, second, n - first - second], axis=-1)
    released = -np.abs(z - s).sum(axis=-1) / noise.spread
    wanted = np.array([logsumexp(norm.logpdf(s, n * np.array(p), np.sqrt(n * np.array(p))).sum(axis=-1) + released) for p in p_values])
    assert max(errors) < 0.006
    np.testing.assert_allclose(found - found[0], wanted - wanted[0], atol=0.03)


@pytest.mark.parametrize("sd_over_b", mostly_slow([1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e5], 0, 3, 6))
def test_one_clamped_sum_is_the_integral_of_normal_and_laplace(sd_over_b):
    b = 3.0
    sd = sd_over_b * Noise(b).spread
    z = np.array([[0.0], [0.4], [-5.0], [30.0]]) * max(sd, b) / 3
    variance = pt.vector("variance", shape=(4,))
    moments = law.Moments(pt.constant(1.0), (pt.zeros(4),), ((variance,),))
    density, gradient = evaluate(law.log_density(moments, pt.constant(z), Noise(b), law.Plan("normal")), {variance: np.full(4, sd**2)})

    def brute(x):
        scale = Noise(b).spread
        lower, upper = min(-12 * sd, x), max(12 * sd, x)
        pieces = sorted({lower, -12 * sd, -sd, 0.0, sd, 12 * sd, x, max(x - 40 * scale, lower), min(x + 40 * scale, upper), upper})
        nodes, weights = np.polynomial.legendre.leggauss(300)
        parts = []
        for left, right in pairwise(pieces):
            s = (left + right) / 2 + (right - left) / 2 * nodes
            parts.append((right - left) / 2 * (weights * norm.pdf(s, 0, sd) * np.exp(-np.abs(x - s) / scale)).sum() / (2 * scale))
        return np.log(sum(parts))

    assert np.isfinite(gradient).all()
    np.testing.assert_allclose(density, [brute(x[0]) for x in z], atol=1e-5)


@pytest.mark.parametrize("b", [0.02, 0.4, 4.0, 60.0])
@pytest.mark.parametrize("correlation", mostly_slow([0.0, 0.9, 0.999], 1))
def test_two_moments_are_the_double_integral(b, correlation):
    """Noise far below, near and far above the sampling error; within a twentieth of a nat, and far better near the mass."""
    sd = np.array([4.0, 5.0])
    covariance = np.array([[sd[0] ** 2, correlation * sd[0] * sd[1]], [correlation * sd[0] * sd[1], sd[1] ** 2]])
    mean = np.array([3.0, -2.0])
    z = mean + np.array([[0.0, 0.0], [1.0, 1.0], [-2.0, -1.8], [1.5, 1.7]]) * sd + np.array([[0, 0], [2, 1], [-1, 4], [-6, 0]]) * b
    scale = pt.scalar("scale")
    entries = [[pt.constant(np.full(4, covariance[i, j])) * scale for j in range(i + 1)] for i in range(2)]
    moments = law.Moments(pt.constant(1.0), tuple(pt.constant(np.full(4, m)) for m in mean), tuple(tuple(row) for row in entries))
    noise = Noise(b * 1000, 1e-3)
    plan = law.plan(MOMENTS, z, np.ones(4), noise)
    density, gradient = evaluate(law.log_density(moments, pt.constant(z), noise, plan), {scale: np.array(1.0)})
    lower = np.linalg.cholesky(covariance)
    for k in range(4):
        # x along the first axis, split at the Laplace kink; the second axis given the first is a one-dimensional integral.
        first = (z[k, 0] - mean[0]) / sd[0]
        spread = b / sd[0]
        breaks = np.unique(np.clip(np.concatenate([np.linspace(-9, 9, 61), first + spread * np.linspace(-30, 30, 121)]), -9, 9))
        x, wx = composite(breaks, 8)
        centre = mean[1] + lower[1, 0] * x
        inner = smooth_laplace(z[k, 1] - centre, lower[1, 1], b)
        brute = np.log((wx * norm.pdf(x) * np.exp(-np.abs(mean[0] + sd[0] * x - z[k, 0]) / b) / (2 * b) * inner).sum())
        assert density[k] == pytest.approx(brute, abs=0.05), (k, brute)
    assert np.isfinite(gradient)


@pytest.mark.parametrize(("n", "b", "gaussian"), mostly_slow(product([1, 2, 3, 8], [0.02, 0.2, 1.0], [False, True]), 3, 13, 18, 20))
def test_sums_of_few_normal_values_and_their_squares_are_normal_and_chi_square(n, b, gaussian):
    """The law of squares is written as the textbook has it, and integrated on a fine grid."""
    mu, sigma, rng = 0.3, 0.35, np.random.default_rng(n)
    values = rng.normal(mu, sigma, (4, n))
    noise = Noise(b * 1000, 1e-3, gaussian=gaussian)
    wide = noise.standard_deviation if gaussian else noise.spread
    z = np.column_stack([values.sum(axis=1), (values**2).sum(axis=1)]) + (rng.normal if gaussian else rng.laplace)(0, wide, (4, 2))
    of_noise = (norm if gaussian else laplace)(0, wide).pdf
    parameters = [pt.constant(np.full(4, entry)) for entry in (mu, sigma)]
    of_sums = Normal().law(Domain(-1.0, 1.0, unknown=(True, True), clamps=False), pt.constant(np.full(4, float(n))), *parameters)
    plan = law.plan(of_sums, z, np.full(4, n), noise)
    assert plan.form == ("squares" if noise.standard_deviation <= np.sqrt(2 * n) / 4 else "normal" if gaussian else "pair")
    found = law.log_density(of_sums, pt.constant(z), noise, law.Plan("squares")).eval(mode="FAST_COMPILE")
    for k in range(4):
        # chi = root of chi-square, whose density has no pole at 0.
        near = wide * np.linspace(-25, 25, 51)
        kinks = [z[k, 0] - n * mu, *(side * np.sqrt(max(n * z[k, 1], 0)) - n * mu for side in (-1, 1))]
        middles = np.concatenate([np.linspace(-8, 8, 81) * sigma * np.sqrt(n), *(kink + near for kink in kinks)])
        s, ws = composite(np.unique(np.clip(middles, -8 * sigma * np.sqrt(n), 8 * sigma * np.sqrt(n))), 6)
        s = s + n * mu
        total = 0.0
        for one, weight in zip(s, ws, strict=True):
            kink = (z[k, 1] - one**2 / n) / sigma**2 + wide / sigma**2 * np.linspace(-25, 25, 51)
            x, wx = composite(np.unique(np.concatenate([np.linspace(0, 8, 41), np.sqrt(np.clip(kink, 0, 64))])), 6)
            squares = one**2 / n + sigma**2 * x**2
            inside = (wx * chi.pdf(x, n - 1) * of_noise(z[k, 1] - squares)).sum() if n > 1 else of_noise(z[k, 1] - one**2)
            total += weight * norm.pdf(one, n * mu, sigma * np.sqrt(n)) * of_noise(z[k, 0] - one) * inside
        assert found[k] == pytest.approx(np.log(total), abs=2e-3), k


@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (0.0, 0.9)])
def test_sums_of_few_clamped_values_have_the_law_of_many_where_there_are_many(bounds):
    """With either law, a thousand values about their expected sums; the second bounds cut a third off below."""
    rng, n = np.random.default_rng(4), 1000.0
    clamped = np.clip(rng.normal(0.2, 0.4, (6, int(n))), *bounds)
    domain, noise = Domain(*bounds, unknown=(True, True)), Noise(2000.0, 1e-3)
    u = (clamped - domain.middle) / domain.half_width
    z = np.column_stack([u.sum(axis=1), (u**2).sum(axis=1)])
    mu, sigma = pt.scalar("mu"), pt.scalar("sigma")
    given = {mu: np.array(0.2), sigma: np.array(0.4)}
    of_sums = Normal().law(domain, pt.constant(np.full(6, n)), mu + np.zeros(6), sigma + np.zeros(6))
    densities, slopes = [], []
    for form in ("pair", "squares"):
        density = law.log_density(of_sums, pt.constant(z), noise, law.Plan(form))
        densities.append(density.eval(given, mode="FAST_COMPILE"))
        slopes.append([entry.eval(given, mode="FAST_COMPILE") for entry in pt.grad(density.sum(), [mu, sigma])])
    np.testing.assert_allclose(*densities, atol=0.15)
    np.testing.assert_allclose(*slopes, rtol=0.1, atol=20)


@pytest.mark.parametrize("n", [1, 3, 20])
def test_drawn_sums_of_few_values_are_those_of_drawn_values(n):
    """Means and covariances of 40,000 draws, of values of which one in six is clamped; bounds of six standard errors."""
    rng, M = np.random.default_rng(n), 40_000
    u = np.clip(rng.normal(0.4, 0.6, (M, n)), -1, 1)
    theirs = np.column_stack([u.sum(axis=1), (u**2).sum(axis=1)])
    parameters = [pt.constant(np.full(M, entry)) for entry in (0.4, 0.6)]
    of_sums = Normal().law(Domain(-1.0, 1.0, unknown=(True, True)), pt.constant(np.full(M, float(n))), *parameters)
    ours = pm.draw(law.simulated(of_sums, None, (M, 2)), random_seed=5)
    for power in (1, 2):
        error = np.sqrt(((theirs**power).var(axis=0) + (ours**power).var(axis=0)) / M)
        most = 6 * error + (0.05 * np.abs(theirs**power).mean(axis=0) if n > 1 or power == 1 else np.inf)
        assert (np.abs((theirs**power).mean(axis=0) - (ours**power).mean(axis=0)) < most).all()


def test_a_cell_without_records_tells_nothing():
    mu = pt.scalar("mu")
    of_sums = Normal().law(
        Domain(-1.0, 1.0, unknown=(True, True)), pt.constant(np.array([1e-3, 4.0])), mu + np.zeros(2), pt.constant(np.full(2, 0.3))
    )
    density = law.log_density(of_sums, pt.constant(np.zeros((2, 2))), Noise(200.0, 1e-3), law.Plan("squares"))
    values = [density.eval({mu: np.array(at)}, mode="FAST_COMPILE") for at in (0.0, 0.5)]
    assert values[0][0] == values[1][0]
    assert values[0][1] != values[1][1]
    slope = pt.grad(density[0], mu).eval({mu: np.array(0.5)}, mode="FAST_COMPILE")
    assert slope == 0


def composite(breaks, order):
    """Gauss-Legendre nodes and weights on every interval between the breaks."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    half = np.diff(breaks)[:, None] / 2
    return (half * nodes + (breaks[1:] + breaks[:-1])[:, None] / 2).ravel(), (half * weights).ravel()


def smooth_laplace(residual, sd, b):
    """Normal plus Laplace density by direct integration over the noise."""
    result = []
    for r in residual:
        y, w = composite(
            np.unique(np.concatenate([b * np.linspace(-40, 40, 161), np.clip(r + sd * np.linspace(-9, 9, 61), -40 * b, 40 * b)])), 8
        )
        result.append((w * norm.pdf(r - y, 0, sd) * np.exp(-np.abs(y) / b) / (2 * b)).sum())
    return np.array(result)


def brute_poisson(z, rate, kernel):
    s = np.arange(0.0, max(rate * 4, z * 2, 0) + 400)
    terms = xlogy(s, rate) - rate - gammaln(s + 1) + kernel(z - s)
    return logsumexp(terms)


def laplace_kernel(b):
    q = np.exp(-1 / b)
    return lambda d: -np.abs(d) / b + np.log1p(-q) - np.log1p(q)


def gaussian_kernel(scale):
    whole = np.arange(-int(12 * scale) - 20, int(12 * scale) + 21)
    total = np.log(np.exp(-(whole**2) / (2 * scale**2)).sum())
    return lambda d: -(d**2) / (2 * scale**2) - total


@pytest.mark.parametrize("gaussian", [False, True], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.3, 2.0, 30.0])
def test_independent_counts_are_the_brute_force_sum(gaussian, scale):
    rates = np.array([0.01, 3.0, 60.0, 900.0])
    cells = [(rate, np.round(rate + d * scale + k * np.sqrt(rate))) for rate in rates for d in (-4, 0, 3) for k in (-2, 0, 3)]
    values, z = (np.array(column) for column in zip(*cells))
    rate, noise = pt.vector("rate", shape=(len(z),)), Noise(scale, gaussian=gaussian)
    exact = law.Rates(rate[:, None])
    plan = law.plan(exact, z[:, None], np.zeros(0), noise)
    density, gradient = evaluate(law.log_density(exact, pt.constant(z[:, None]), noise, plan), {rate: values})
    kernel = gaussian_kernel(scale) if gaussian else laplace_kernel(scale)
    brute = np.array([brute_poisson(k, value, kernel) for value, k in zip(values, z)])
    assert np.isfinite(gradient).all()
    np.testing.assert_allclose(density, brute, atol=2e-4)


@pytest.mark.parametrize(("n", "scale"), [(60, 1.6), (400, 1.8), (30, 0.4)])
@pytest.mark.parametrize("gaussian", mostly_slow([False, True], 0), ids=["laplace", "gaussian"])
@pytest.mark.parametrize("levels", mostly_slow([3, 7, 12], 0, 2))
def test_counts_of_few_and_many_levels_are_the_brute_force_sum(n, scale, gaussian, levels):
    """Convolution is exact; the saddle point is compared in what matters, differences between parameter values."""
    rng = np.random.default_rng(levels)
    first = rng.dirichlet(np.full(levels, 2.0))
    p_values = first * np.exp(rng.normal(scale=0.1, size=(6, levels)) * (np.arange(6) > 0)[:, None])
    p_values /= p_values.sum(axis=-1, keepdims=True)
    z = np.round(rng.multinomial(n, p_values[0]) + rng.laplace(scale=scale, size=levels))
    noise = Noise(scale, gaussian=gaussian)
    kernel = gaussian_kernel(scale) if gaussian else laplace_kernel(scale)
    p = pt.matrix("p", shape=(6, levels))
    observed = np.tile(z, (6, 1))
    counts = law.Counts(pt.constant(np.full(6, n * 1.0)), p)
    plan = law.plan(counts, observed, np.full(6, n), noise)
    density, gradient = evaluate(law.log_density(counts, pt.constant(observed), noise, plan), {p: p_values})
    assert plan.form == ("convolution" if levels <= law.FEW else "saddle")
    assert np.isfinite(gradient).all()
    brute = np.array([brute_counts_any(z, n, value, kernel) for value in p_values])
    if plan.form == "convolution":
        np.testing.assert_allclose(density, brute, atol=1e-3)
    np.testing.assert_allclose(density - density[0], brute - brute[0], atol=0.03)


def brute_counts_any(z, n, p, kernel):
    """The sum over all counts with total n, level by level in logs."""
    s = np.arange(n + 1.0)
    total = np.where(s == 0, 0.0, -np.inf)
    for level in range(len(p)):
        terms = xlogy(s, p[level]) - gammaln(s + 1) + kernel(z[level] - s)
        total = np.array([logsumexp(total[: k + 1] + terms[k::-1]) for k in range(n + 1)])
    return total[n] + gammaln(n + 1)


def test_gaussian_noise_on_several_sums_is_normal():
    noise = Noise(5.0, 0.1, gaussian=True)
    z, n = np.array([[3.0, 1.0], [9.0, 7.0]]), np.array([20.0, 30.0])
    m = pt.matrix("m", shape=(2, 2))
    moments = law.Moments(
        pt.constant(n), (m[:, 0], m[:, 1]), ((pt.constant([0.3, 0.2]),), (pt.constant([0.1, -0.1]), pt.constant([0.5, 0.4])))
    )
    plan = law.plan(moments, z, n, noise)
    density, _ = evaluate(law.log_density(moments, pt.constant(z), noise, plan), {m: np.array([[0.1, 0.1], [0.3, 0.2]])})
    for k, (mean, covariance) in enumerate([((0.1, 0.1), [[0.3, 0.1], [0.1, 0.5]]), ((0.3, 0.2), [[0.2, -0.1], [-0.1, 0.4]])]):
        full = n[k] * np.array(covariance) + 0.25 * np.eye(2)
        assert density[k] == pytest.approx(multivariate_normal(n[k] * np.array(mean), full).logpdf(z[k]), abs=1e-6)


@pytest.mark.filterwarnings("ignore:Cannot cache compiled function")  # as many latents, as constants
@pytest.mark.parametrize("scale", mostly_slow([0.05, 0.5, 3.0, 30.0], 1))
def test_latent_sums_are_the_law_of_the_released_ones_once_they_are_integrated_out(scale):
    """Against the exact sums integrated out on a grid of their own, of little noise to much: up to a constant.

    Two sums in the three entries of a quadratic basis, as a Normal likelihood in private cells has them.
    """
    basis = np.array([(1.0, -2.0, 1.0), (2.0, 0.0, -2.0), (1.0, 2.0, 1.0)])
    noise, n, covariance = Noise(scale), 40.0, np.array([[0.08, 0.01], [0.01, 0.05]])
    sums = n * np.array([0.12, 0.21])
    z = basis @ [n, *sums] + scale * np.array([0.4, -0.7, 0.2])
    grid = np.linspace(-12, 12, 481)
    latent = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    mean, wider, one = pt.vector("mean", shape=(2,)), pt.scalar("wider"), pt.ones(len(latent))
    moments = law.Moments(
        n * one, (mean[0] * one, mean[1] * one), ((0.08 * wider * one,), (0.01 * wider * one, 0.05 * wider * one)), tuple(map(tuple, basis))
    )
    density = law.log_density(moments, pt.constant(np.tile(z, (len(latent), 1))), noise, law.Plan("latent", latents=2), pt.constant(latent))
    function = pytensor.function([mean, wider], pt.logsumexp(density - 0.5 * (latent**2).sum(-1)), mode="NUMBA")
    # Where the exact sums can be: within reach of what was released, and of their own law.
    wide = np.minimum(25 * scale, 7 * np.sqrt(n * np.diag(covariance)))
    around = (sums if scale < 1 else n * np.array([0.1, 0.22])) + wide * latent / 12
    found, wanted = [], []
    for value, times in (([0.1, 0.2], 1.0), ([0.14, 0.22], 1.0), ([0.05, 0.3], 1.0), ([0.1, 0.2], 0.2)):
        found.append(function(value, times))
        own = multivariate_normal(n * np.array(value), n * covariance * times).logpdf(around)
        released = -np.abs(z - n * basis[:, 0] - around @ basis[:, 1:].T).sum(axis=1) / noise.spread
        wanted.append(np.logaddexp.reduce(own + released))
    np.testing.assert_allclose(np.subtract(found, found[0]), np.subtract(wanted, wanted[0]), atol=0.005)
