"""How many records are events, and what these add up to, with noise on both."""

from math import comb

import numpy as np
import pytensor.tensor as pt
import pytest
from scipy import stats

from pymc_dp.families.family import Domain, named
from pymc_dp.laws import law
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
