"""How many records are events, and what these add up to, with noise on both."""

from math import comb

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import integrate, stats
from scipy.special import gammaln

from pymc_dp.families.family import Domain, named
from pymc_dp.laws import law
from pymc_dp.laws.events import IN_CELLS
from pymc_dp.privacy.noise_law import Noise

DOMAIN = Domain(0, 5, unknown=(True, False), known=(None, 5.0))
NOISES = (Noise(2.5, 1.0), Noise(2.0, 0.5), Noise(1.5, 1.0, gaussian=True))


def log_density(noisy, n, scale, noise, form=None):
    """Of noisy sums (Z, 2) of n censored times, as the law says; or in another form than planned."""
    of_records = named("CensoredExponential").law(DOMAIN, pt.constant(np.full(len(noisy), float(n))), pt.constant(scale), pt.constant(5.0))
    plan = law.plan(of_records, noisy, np.full(len(noisy), n), noise)
    assert plan.form == "events"
    return law.log_density(of_records, pt.constant(noisy), noise, law.Plan(form) if form else plan).eval()


@pytest.mark.parametrize("noise", NOISES, ids=["laplace", "on a half", "gaussian"])
@pytest.mark.parametrize("scale", [0.7, 4.0, 40.0])
def test_it_is_the_sum_over_every_number_of_events(noise, scale):
    """Of 6 records, each number of events by its binomial probability, and given it a normal sum by quadrature against the noise."""
    n, p = 6, -np.expm1(-5 / scale)
    y = np.linspace(0, 5, 20_001)
    weight = np.exp(-y / scale)
    mean = np.trapezoid(weight * (y / 2.5 - 1), y) / np.trapezoid(weight, y)
    variance = np.trapezoid(weight * (y / 2.5 - 1 - mean) ** 2, y) / np.trapezoid(weight, y)
    noisy = np.array([[0.3, 2.0], [-4.0, 7.5], [3.1, -1.0], [9.0, 4.0]])
    b = noise.standard_deviation if noise.gaussian else noise.spread
    added_noise = stats.norm(0, b) if noise.gaussian else stats.laplace(0, b)
    slope, curve, constant = noise.kernel
    wanted = np.zeros(len(noisy))
    for events in range(n + 1):
        chance = comb(n, events) * p**events * (1 - p) ** (n - events)
        distance = np.abs(noisy[:, 1] - events)
        of_number = np.exp(slope * distance + curve * distance**2 + constant)
        sd = np.sqrt(events * variance)
        x = np.linspace(events * mean - 12 * sd, events * mean + 12 * sd, 40_001)
        of_sum = (
            added_noise.pdf(noisy[:, 0])
            if events == 0
            else np.trapezoid(stats.norm.pdf(x, events * mean, sd) * added_noise.pdf(noisy[:, :1] - x), x, axis=1)
        )
        wanted += chance * of_number * of_sum
    np.testing.assert_allclose(log_density(noisy, n, scale, noise), np.log(wanted), rtol=1e-5, atol=1e-5)


def of_unknown(n, scale):
    """The law of what is released of cells with numbers of records n, and one scale."""
    of_records = named("CensoredExponential").law(DOMAIN, n, scale, pt.constant(5.0))
    return law.in_cells(of_records, IN_CELLS, n)


def of_an_event(scale):
    """The probability of an event, and mean and variance of what it adds, by integration."""
    y = np.linspace(0, 5, 20_001)
    weight = np.exp(-y / scale)
    mean = np.trapezoid(weight * (y / 2.5 - 1), y) / np.trapezoid(weight, y)
    return -np.expm1(-5 / scale), mean, np.trapezoid(weight * (y / 2.5 - 1 - mean) ** 2, y) / np.trapezoid(weight, y)


def spline(n, number):
    """The weight of a whole number of records: that of a quadratic spline, and of -1 goes to 0."""
    away = np.abs(n - number)
    weight = np.where(away < 0.5, 0.75 - away**2, np.where(away < 1.5, (1.5 - away) ** 2 / 2, 0.0))
    return weight + (np.maximum(0.5 - n, 0.0) ** 2 / 2 if number == 0 else 0.0)


def of_whole(z, number, scale, noise):
    """Density of noisy z (3,) of a whole number of records: over every number of events, and normal sums of these by quadrature."""
    p, mean, variance = of_an_event(scale)
    b, (slope, curve, constant) = noise.standard_deviation if noise.gaussian else noise.spread, noise.kernel
    added_noise = stats.norm(0, b) if noise.gaussian else stats.laplace(0, b)
    total = 0.0
    for many in range(number + 1):
        distance = abs(z[2] - 2 * (number - many))
        chance = comb(number, many) * p**many * (1 - p) ** (number - many) * np.exp(slope * distance + curve * distance**2 + constant)
        sd = np.sqrt(max(many * variance, 1e-12))
        x = np.linspace(many * mean - 12 * sd, many * mean + 12 * sd, 20_001)
        both = stats.norm.pdf(x, many * mean, sd) * added_noise.pdf(z[0] - many + x) * added_noise.pdf(z[1] - many - x)
        total += chance * np.trapezoid(both, x)
    return total


Z = np.array([[1.2, 2.9, 9.6], [0.3, -0.8, 11.0], [4.1, 2.2, -0.7], [7.0, 9.5, 3.0]])


@pytest.mark.parametrize("noise", NOISES, ids=["laplace", "on a half", "gaussian"])
@pytest.mark.parametrize("scale", [0.7, 4.0, 40.0])
def test_of_an_unknown_number_it_is_that_of_three_whole_numbers(noise, scale):
    n = np.array([6.0, 5.5, 7.8, 0.2])
    of_cells = of_unknown(pt.constant(n), pt.constant(scale))
    plan = law.plan(of_cells, Z, n, noise)
    assert plan.form == "events"
    wanted = [
        sum(spline(size, number) * of_whole(z, number, scale, noise) for number in range(10) if spline(size, number))
        for z, size in zip(Z, n, strict=True)
    ]
    np.testing.assert_allclose(law.log_density(of_cells, pt.constant(Z), noise, plan).eval(), np.log(wanted), rtol=1e-5, atol=1e-5)


def test_all_whole_numbers_are_as_likely_where_all_numbers_are():
    """Integrals over n of the density are sums of those of whole numbers, of which 0 counts 25/48 and 1 counts 47/48.

    Between halves the density is quadratic.
    """
    z, noise, n = Z[3], NOISES[0], np.linspace(0, 50, 201)
    scale = pt.constant(4.0)
    density = law.log_density(
        of_unknown(pt.constant(n), scale), pt.constant(np.tile(z, (len(n), 1))), noise, law.Plan("events", length=129)
    ).eval()
    whole = sum({0: 25 / 48, 1: 47 / 48}.get(number, 1.0) * of_whole(z, number, 4.0, noise) for number in range(50))
    assert integrate.simpson(np.exp(density), x=n) == pytest.approx(whole, rel=1e-5)


def exact_posterior(z, b, chances, sizes):
    """Densities (P,) of z under Laplace noise of scale b for every probability of an event, summed over numbers of records.

    What events add up to has the density of a sum of truncated exponential variables: that of a sum of uniform ones (Irwin and Hall),
    tilted. No normal law is in it.
    """
    rate = -np.log1p(-chances)
    total = np.zeros(len(chances))
    for many in range(16):
        if many:
            x = np.linspace(0, many, 4001)[1:-1]
            k = np.arange(many + 1)
            terms = (-1.0) ** k * np.exp(gammaln(many + 1) - gammaln(k + 1) - gammaln(many - k + 1) - gammaln(many))
            uniform = (terms * np.maximum(x[:, None] - k, 0.0) ** (many - 1)).sum(axis=1) if many > 1 else np.ones(len(x))
            tilted = np.maximum(uniform, 0.0) * np.exp(-rate[:, None] * x)
            added = 2 * x - many
            noise = np.exp(-(np.abs(z[0] - many + added) + np.abs(z[1] - many - added)) / b)
            pair = (tilted * noise).sum(axis=1) / tilted.sum(axis=1)
        else:
            pair = np.full(len(chances), np.exp(-(abs(z[0]) + abs(z[1])) / b))
        for size in sizes[sizes >= many]:
            log = gammaln(size + 1) - gammaln(many + 1) - gammaln(size - many + 1) + many * np.log(chances) - rate * (size - many)
            total += np.exp(log - abs(z[2] - 2 * (size - many)) / b) * pair
    return total


@pytest.mark.parametrize("z", [(0.9, 1.6, 96.2), (2.7, 3.1, 91.0), (-0.4, 0.3, 99.5), (6.2, 3.4, 88.3)])
def test_intervals_of_few_events_of_an_unknown_number_are_those_of_the_exact_law(z):
    """Of 50 records or so at epsilon 4: each tail beyond an interval of 90 % has .05 by the exact law, too, to .001.

    Of intervals by the normal law one tail has .004 to .018 more or less.
    """
    b, z = 0.5, np.array(z)
    root = (np.arange(100) + 0.5) / 100
    rate, n = 0.5 * root**2, np.arange(np.ceil(z.sum() / 2) - 8, z.sum() / 2 + 8, 0.5)
    noise = Noise(b * 4096, 1 / 4096)
    pairs = np.array([entry.ravel() for entry in np.meshgrid(rate, n, indexing="ij")])
    of_cells = of_unknown(pt.constant(pairs[1]), pt.constant(5 / pairs[0]))
    plan = law.plan(of_cells, z[None], n, noise)
    assert plan.form == "events"
    log = law.log_density(of_cells, pt.constant(np.tile(z, (pairs.shape[1], 1))), noise, plan).eval()
    found = root * np.exp(log - log.max()).reshape(len(rate), -1).sum(axis=1)
    exact = root * exact_posterior(z, b, -np.expm1(-rate), n[::2])
    found, exact = (np.cumsum(weight) - weight / 2 for weight in (found / found.sum(), exact / exact.sum()))
    below, upto = np.interp(np.interp([0.05, 0.95], found, root), root, exact)
    assert (below, 1 - upto) == pytest.approx((0.05, 0.05), abs=0.001)


def test_draws_of_an_unknown_number_follow_the_law():
    """Frequencies of (records, events) of 40,000 draws, by chi-square, and sums of two events: a right law fails twice in a million.

    With the number of records rounded, or one uniform variable for two in its spline, p is below 1e-150, where 1e-6 is asked for.
    """
    n, scale, draws = 3.3, 6.0, 40_000
    of_cells = of_unknown(pt.constant(np.full(draws, n)), pt.constant(scale))
    drawn = pm.draw(law.simulated(of_cells, None, (draws, 3)), random_seed=1, mode="FAST_COMPILE")
    many = np.rint(drawn[:, :2].sum(axis=1) / 2).astype(int)
    number = np.rint(drawn[:, 2] / 2).astype(int) + many
    p, mean, variance = of_an_event(scale)
    cells = [(size, k) for size in (2, 3, 4) for k in range(size + 1)]
    wanted = np.array([spline(n, size) * comb(size, k) * p**k * (1 - p) ** (size - k) for size, k in cells])
    found = np.array([((number == size) & (many == k)).sum() for size, k in cells])
    assert found.sum() == draws
    assert stats.chisquare(found, draws * wanted).pvalue > 1e-6
    two = many == 2
    added = (drawn[two, 1] - drawn[two, 0]) / 2
    assert stats.kstest((added - 2 * mean) / np.sqrt(2 * variance), stats.norm.cdf).pvalue > 1e-6


@pytest.mark.parametrize("noise", [NOISES[0], Noise(1.5, 1.0, gaussian=True)], ids=["laplace", "gaussian"])
def test_an_unknown_number_of_many_events_and_others_is_taken_as_normal(noise):
    of_cells = of_unknown(pt.scalar(), pt.scalar())
    wide = Noise(90.0 if noise.gaussian else 20.0, gaussian=noise.gaussian)
    many, few = np.array([[[230.0, 230.0, 500.0]]]), np.array([[[3.0, 4.0, 500.0]]])
    forms = [law.plan(of_cells, z, np.array([[480.0]]), one).form for z, one in ((many, noise), (few, noise), (few, wide))]
    assert forms == (["normal", "events", "normal"] if noise.gaussian else ["latent", "events", "latent"])


@pytest.mark.parametrize("noise", NOISES[::2], ids=["laplace", "gaussian"])
def test_of_many_events_it_is_the_central_limit(noise):
    """Of 390 records half are events: up to a constant both forms agree to .1 nats within 2 standard deviations."""
    n, scale = 390, 5 / np.log(2)
    of_records = named("CensoredExponential").law(DOMAIN, pt.constant(float(n)), pt.constant(scale), pt.constant(5.0))
    mean = n * np.array([float(entry.eval()) for entry in of_records.mean])
    (square,), (together, event) = of_records.covariance
    root = np.linalg.cholesky(n * np.array([[float(entry.eval()) for entry in row] for row in ((square, together), (together, event))]))
    noisy = mean + np.random.default_rng(0).normal(size=(40, 2)).clip(-2, 2) @ root.T
    both = [log_density(noisy, n, scale, noise, form) for form in (None, "normal" if noise.gaussian else "pair")]
    apart = both[0] - both[1]
    assert np.abs(apart - apart.mean()).max() < 0.1
