"""Counts of the values that are there, where records are left out, against sums over every count that is possible."""

from itertools import product

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from checks import log_density, mostly_slow, seam_of
from scipy import stats
from scipy.special import gammaln, logsumexp

import pymc_dp as pmdp
from pymc_dp.laws import law as laws
from pymc_dp.privacy.noise_law import Noise
from pymc_dp.private_models.size_priors import AboutMost, Present

pytestmark = pytest.mark.filterwarnings("ignore")  # PyMC warns of imputation
ALARM = 1e-6


def sums_of(terms):
    """For every total, the logarithm of the sum over all counts with this total; terms are (K, counts), in logarithms."""
    whole, top = np.ones(1), 0.0
    for level in terms:
        whole, top = np.convolve(whole, np.exp(level - level.max())), top + level.max()
    with np.errstate(divide="ignore"):
        return np.log(whole) + top


def noisy_terms(z, s, noise):
    """Log-probabilities (K, counts) of the noise."""
    by_one, by_square, constant = noise.kernel
    away = np.abs(np.asarray(z)[:, None] - s)
    return by_one * away + by_square * away**2 + constant


def brute(z, rate, most, noise):
    """Log-density of noisy Poisson counts times whether they add up to ``most`` or less."""
    s = np.arange(most + 1.0)
    poisson = s * np.log(np.asarray(rate)[:, None]) - np.asarray(rate)[:, None] - gammaln(s + 1)
    return logsumexp(sums_of(poisson + noisy_terms(z, s, noise))[: most + 1])


def at_most(z, rate, most, noise, form=None):
    """Log-density (G,) and its derivatives (G, K), in the form that a plan chooses; of rates, without a largest total, in another."""
    rates = pt.dmatrix("rates")
    law = laws.AtMost(pt.specify_shape(rates, z.shape), pt.constant(most.astype(float)))
    plan = laws.plan(law, z, most, noise) if form is None else form
    density = laws.log_density(law, pt.constant(z), noise, plan)
    function = pytensor.function([rates], [density, pytensor.grad(density.sum(), rates)], mode="FAST_COMPILE")
    return plan, *function(rate)


NOISES = {"narrow": Noise(0.4), "wide": Noise(2.0), "wider": Noise(20.0), "gaussian": Noise(1.5, gaussian=True)}


@pytest.mark.parametrize(("name", "K"), mostly_slow(list(product(NOISES, [2, 3, 4])), 0, 1, 4, 11))
def test_counts_are_summed_over_all_that_are_possible(name, K):
    """Releases add up to less than all records, to as many, and to more; rates are what they suggest, and far from it."""
    noise, rng, N = NOISES[name], np.random.default_rng(K), 90 if name == "narrow" else 30
    shift = np.array([-8.0, -1.0, 0.0, 1.0, 6.0, 14.0])
    z = np.rint(N / K + shift[:, None] / K + rng.normal(0, 2, (6, K)))
    rate = np.maximum(z * rng.gamma(20, 1 / 20, z.shape), 0.5)
    most = np.full(6, N)
    plan, values, slopes = at_most(z, rate, most, noise)
    assert plan.form == "limited"
    np.testing.assert_allclose(values, [brute(*row, N, noise) for row in zip(z, rate, strict=True)], rtol=0, atol=1e-5)
    step = 1e-5
    for k in range(K):
        there, back = rate.copy(), rate.copy()
        there[:, k] += step
        back[:, k] -= step
        ends = [[brute(*row, N, noise) for row in zip(z, side, strict=True)] for side in (there, back)]
        np.testing.assert_allclose(slopes[:, k], (np.array(ends[0]) - ends[1]) / (2 * step), rtol=1e-4, atol=1e-4)


def test_few_or_no_records_and_impossible_rates():
    """Of no record every count is 0; rates far above the number of records have finite densities that fall with them."""
    noise = Noise(2.0)
    z, most = np.array([[3.0, -1.0], [2.0, 2.0], [1.0, 0.0]]), np.array([0, 5, 1])
    for rate in (np.full((3, 2), 0.3), np.full((3, 2), 1e4), np.full((3, 2), 1e-8)):
        _, values, slopes = at_most(z, rate, most, noise)
        expected = [brute(*row, n, noise) for *row, n in zip(z, rate, most, strict=True)]
        np.testing.assert_allclose(values, expected, rtol=1e-9)
        assert np.isfinite(slopes).all()
        assert (slopes[rate > 5] < 0).all()


def test_under_wide_noise_the_chance_of_a_possible_total_is_that_of_a_normal_number():
    """Where too many counts would be summed over, of 600 records in 4 levels, and rates 6 % below and above what releases suggest.

    Log-densities change between these rates by up to .22 nats more or less than the sum's; without the chance by up to 2.2.
    """
    noise, N = Noise(20 / 3), 600
    z = np.array([[150.0, 200, 90, 160], [160, 210, 95, 150], [148, 190, 88, 150]])
    most, gaps, without = np.full(3, N), [], []
    for factor in (0.94, 1.0, 1.06):
        rate = z * factor * N / np.maximum(z.sum(axis=1, keepdims=True), N)
        plan, values, _ = at_most(z, rate, most, noise)
        expected = np.array([brute(*row, N, noise) for row in zip(z, rate, strict=True)])
        gaps.append(values - expected)
        apart = laws.Rates(pt.constant(rate))
        without.append(laws.log_density(apart, pt.constant(z), noise, plan).eval(mode="FAST_COMPILE") - expected)
    assert plan.form != "limited"
    assert np.ptp(gaps, axis=0).max() < 0.25
    assert np.ptp(without, axis=0).max() > 1


def released(model, noise, **arguments):
    with seam_of(noise):
        return pmdp.rewrite(model, pmdp.release(model, missing=["y"], **arguments))


def at_rates(private, rates):
    """Where these rates, of all cells, lie among a sampler's coordinates."""
    size = private["y_size"]
    return private.rvs_to_transforms[size].forward(pt.constant(rates), *size.owner.inputs).eval(mode="FAST_COMPILE")


def integrated(private, points, numbers):
    """Log-likelihoods of points with the unknown number of values in the only cell integrated out, on these of its values."""
    density, places = log_density(private), at_rates(private, numbers)
    values = [[density(point | {"y_size_aboutmost__": place[None]}) for place in places] for point in points]
    return logsumexp(np.array(values), axis=1)


@pytest.mark.parametrize(("many", "noise"), [(20, 0), (20, 2), (15, 1), (20, -3)])
def test_the_posterior_of_a_proportion_is_that_of_every_number_that_may_be_there(many, noise):
    """Of 20 records, against a sum over how many are there, 0 to 20, and how many of these are ones. Nothing is at random here.

    Means and standard deviations are the same to 1e-4 standard deviations. With totals above 20, about a number up to 20.5, means of 12
    drawn releases with none missing are .08 standard deviations off (root mean square).
    """
    N, epsilon = 20, 1.0
    y = np.where(np.arange(N) < 6, 1.0, 0.0)
    y[many:] = np.nan
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=y)
    private = released(model, noise, epsilon=epsilon)
    z, law = private.privacy["y"].values[0], private.privacy["y"].noise
    p = (np.arange(30) + 0.5) / 30
    s, totals = np.arange(N + 1.0), np.arange(N + 1)
    known = noisy_terms(z, s, law) - gammaln(s + 1)
    expected = np.array(
        [logsumexp((sums_of(known + s * np.log([[1 - x], [x]])) + np.append(gammaln(totals + 1), np.full(N, -np.inf)))[: N + 1]) for x in p]
    )
    points = [{"p_logodds__": np.log(x / (1 - x))} for x in p]
    found = integrated(private, points, np.arange(80) * 0.75 + 0.375)
    [wanted, ours] = [np.exp(values - values.max()) / np.exp(values - values.max()).sum() for values in (expected, found)]
    mean, sd = wanted @ p, np.sqrt(wanted @ (p - wanted @ p) ** 2)
    assert ours @ p == pytest.approx(mean, abs=1e-4 * sd)
    assert np.sqrt(ours @ (p - mean) ** 2) == pytest.approx(sd, rel=1e-4)


def test_private_cells_of_a_public_one_share_what_can_be_there():
    """Two private levels in two public groups of 5 and 3 records: the counts of a group add up to its records or less."""
    group, x = np.array([0, 0, 0, 0, 0, 1, 1, 1]), np.array([0, 1, 1, 0, 1, 0, 1, 1])
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=(2, 2))[group, x], observed=np.array([0, 1, 1, 0, 1, 1, 0, 1.0]))
    private = released(model, 1, epsilon=2.0, public=["y:0"])
    statistic = private.privacy["y"]
    assert statistic.values.shape == (4, 2)
    density, rng = log_density(private), np.random.default_rng(0)
    gaps = []
    for _ in range(4):
        p, rates = rng.uniform(size=(2, 2)), rng.gamma(2, 1, 4)
        rate = rates[:, None] * np.stack([1 - p, p], axis=-1).reshape(4, 2)
        z = statistic.values.reshape(2, 4)
        expected = sum(brute(z[g], rate.reshape(2, 4)[g], n, statistic.noise) for g, n in enumerate([5, 3]))
        gaps.append(density({"p_logodds__": np.log(p / (1 - p))} | {"y_size_aboutmost__": at_rates(private, rates)}) - expected)
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-9)


@pytest.mark.parametrize("most", [0.0, 5.0, 2_000.0])
def test_a_sampler_s_coordinates_of_rates_go_back_and_forth(most):
    """From next to nothing to far above what can be there; the volume is the derivative."""
    inputs = [pt.constant(1.0), pt.constant(most), pt.constant(1)]
    x = np.array([-20.0, -3.0, 0.0, 0.7, 4.0, 12.0])
    rate = AboutMost().backward(pt.constant(x), *inputs)
    np.testing.assert_allclose(AboutMost().forward(rate, *inputs).eval(mode="FAST_COMPILE"), x, rtol=1e-6, atol=1e-6)
    ends = [AboutMost().backward(pt.constant(x + side), *inputs).eval(mode="FAST_COMPILE") for side in (1e-6, -1e-6)]
    volume = AboutMost().log_jac_det(pt.constant(x), *inputs).eval(mode="FAST_COMPILE")
    np.testing.assert_allclose(np.exp(volume), (ends[0] - ends[1]) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize("cells", [1, 2])
def test_beforehand_all_numbers_that_can_be_there_are_as_likely(cells):
    """Rates drawn, and counts about them. False alarms: 1e-6 each; a flat law of the rates up to N + 1/2 fails at 1e-50 or less."""
    N, many = 6, 20_000
    rates = pm.draw(Present.dist([1.0, float(N), cells], shape=(cells * many,)), random_seed=1, mode="FAST_COMPILE")
    law = laws.AtMost(pt.constant(rates.reshape(many, cells)), pt.constant(np.full(many, float(N))))
    counts = pm.draw(laws.simulated(law, None, (many, cells)), random_seed=2, mode="FAST_COMPILE").astype(int)
    possible = [point for point in product(range(N + 1), repeat=cells) if sum(point) <= N]
    found = [(counts == point).all(axis=1).sum() for point in possible]
    assert sum(found) == many
    assert stats.chisquare(found).pvalue > ALARM


def test_predicted_counts_have_the_law_of_possible_ones():
    """Rates 5 and 1 of 4 records, and rates far above what is there. False alarms: 1e-6 each."""
    many = 20_000
    for rate in ([5.0, 1.0], [3e4, 1e4]):
        law = laws.AtMost(pt.constant(np.tile(rate, (many, 1))), pt.constant(np.full(many, 4.0)))
        counts = pm.draw(laws.simulated(law, None, (many, 2)), random_seed=3, mode="FAST_COMPILE").astype(int)
        possible = [point for point in product(range(5), repeat=2) if sum(point) <= 4]
        chances = np.exp([stats.poisson.logpmf(point, rate).sum() + sum(rate) for point in possible])
        chances /= chances.sum()
        found = np.array([(counts == point).all(axis=1).sum() for point in possible])
        likely = chances * many > 5
        expected = np.append(chances[likely], chances[~likely].sum()) * many
        seen = np.append(found[likely], found[~likely].sum())
        assert found.sum() == many
        assert stats.chisquare(seen[expected > 0], expected[expected > 0]).pvalue > ALARM
