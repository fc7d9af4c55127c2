"""The noise is the discrete Laplace law it claims to be, calibrated exactly, and nobody can seed it."""

import os
import random
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from multiprocessing import get_context

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import shared_bernoulli
from scipy.stats import chi2

import pymc_dp as pmdp
from pymc_dp.accounting import Cost
from pymc_dp.mechanisms import LARGEST_SCALE, Draw, Gaussian, Laplace, Noise, Receipt


def paid(scale, size):
    """The right to one draw, at whatever it costs."""
    draw = Draw("y", "laplace", 1, 1, scale, size)
    return Receipt([draw], draw.cost)


def noise_of(scale, size, exact=0):
    return Laplace().draw(np.full(size, exact), scale, paid(scale, size)) - exact


def p_value(draws, scale):
    """Chi-square of draws against the exact pmf, in cells of at least 50 expected draws."""
    q = np.exp(-1 / scale)
    edges = np.unique(np.rint(scale * np.concatenate([-np.geomspace(8, 0.01, 25), [0], np.geomspace(0.01, 8, 25)])).astype(int))
    # P(noise <= k) = 1 - q^(k+1)/(1+q) for k >= 0 and q^-k/(1+q) below.
    below = np.where(edges >= 0, 1 - q ** (np.maximum(edges, 0) + 1) / (1 + q), q ** -np.minimum(edges, 0) / (1 + q))
    expected = np.diff(np.concatenate([[0], below, [1]])) * len(draws)
    observed = np.bincount(np.searchsorted(edges, draws), minlength=len(edges) + 1)
    keep = expected >= 50
    statistic = ((observed - expected)[keep] ** 2 / expected[keep]).sum()
    return chi2(keep.sum() - 1).sf(statistic)


@pytest.mark.parametrize("scale", [0.7, 3.0, 40.0, 2.0**20])
def test_goodness_of_fit(scale):
    """200,000 draws; false alarm one in a million; a scale 5 % off is rejected (checked below)."""
    draws = noise_of(scale, 200_000)
    assert p_value(draws, scale) > 1e-6
    assert p_value(draws, scale * 0.95) < 1e-6
    assert p_value(draws, scale * 1.05) < 1e-6


def test_simulated_noise_has_the_same_law():
    import pymc as pm

    draws = pm.draw(Noise(6.0, 0.5).simulated((200_000,)), random_seed=4, mode="FAST_COMPILE") / 0.5
    assert (draws == np.rint(draws)).all()
    assert p_value(draws.astype(int), 6.0) > 1e-6


@pytest.mark.parametrize("scale", [0.7, 6.0, 40.0])
@pytest.mark.parametrize("mechanism", [Laplace(), Gaussian()], ids=["laplace", "gaussian"])
def test_what_a_model_is_told_of_the_noise_is_what_is_drawn(mechanism, scale):
    """Probabilities and variance against the formula, summed term by term, and the variance against 200,000 draws: six errors."""
    step, k = 0.5, np.arange(-int(60 * scale), int(60 * scale) + 1.0)
    noise = mechanism.noise(scale, step)
    wanted = np.exp(-np.abs(k) / scale if mechanism.name == "laplace" else -(k**2) / (2 * scale**2))
    wanted /= wanted.sum()
    np.testing.assert_allclose(np.exp(noise.log_kernel(pt.constant(k)).eval(mode="FAST_COMPILE")), wanted, rtol=1e-9, atol=1e-300)
    variance, fourth = ((k**power * wanted).sum() for power in (2, 4))
    assert noise.standard_deviation == pytest.approx(step * np.sqrt(variance), rel=1e-9)
    draw = Draw("y", mechanism.name, 1, 1, scale, 200_000)
    rho = draw.cost.rho
    receipt = Receipt([draw], draw.cost if rho is None else Cost(Fraction(1), Fraction(1, 10**6), rho))
    drawn = mechanism.draw(np.zeros(draw.size, dtype=int), scale, receipt)
    assert abs(drawn.var() - variance) < 6 * np.sqrt((fourth - variance**2) / draw.size)


@given(
    st.integers(1, 2**40),
    st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(1000)),
)
@settings(max_examples=500, deadline=None, derandomize=True, database=None)
def test_calibration_is_exact_and_tight(sensitivity, epsilon):
    scale = Laplace().calibrate(sensitivity, sensitivity**2, Cost(epsilon))
    assert Fraction(sensitivity) / Fraction(scale) <= epsilon
    assert Fraction(sensitivity) / Fraction(np.nextafter(scale, 0)) > epsilon


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf"), LARGEST_SCALE])
def test_no_noise_is_no_release(scale):
    with pytest.raises(pmdp.Refusal):
        Laplace().draw(np.zeros(3, dtype=int), scale, paid(1.0, 3))


def test_large_statistics_are_carried_exactly():
    assert (np.abs(noise_of(1.0, 100, exact=2**62 - 1)) < 60).all()
    assert (np.abs(noise_of(1.0, 100, exact=-(2**62) + 1)) < 60).all()


def test_every_entry_has_its_own_noise():
    """The correlation of two entries of one release, over 20,000 releases, is 0 within 6 standard errors."""
    draws = np.array([noise_of(5.0, 2) for _ in range(20_000)])
    assert abs(np.corrcoef(draws.T)[0, 1]) < 6 / np.sqrt(20_000)


def test_no_seed_reaches_the_noise():
    model, _ = shared_bernoulli()

    def release():
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        return pmdp.release(model, epsilon=1e-3).statistics[0].noisy.item()

    assert len({release() for _ in range(20)}) > 10


def one_draw(_):
    return int(noise_of(2.0**30, 1)[0]), os.getpid()


def test_forked_children_draw_different_noise():
    noise_of(2.0**30, 1)
    with ProcessPoolExecutor(4, mp_context=get_context("forkserver")) as pool:
        draws = list(pool.map(one_draw, range(16)))
    assert len({value for value, _ in draws}) == 16
