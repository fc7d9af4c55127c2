"""Ratios of two noisy counts, against integrals over the noisy whole that SciPy computes, and against the sum over all parts."""

from itertools import pairwise

import numpy as np
import pymc as pm
import pytest
from scipy import integrate, stats

import pymc_dp as pmdp

LAWS = {
    "laplace": (pmdp.LaplaceNoise(2.0), None, stats.laplace(scale=2.0), stats.laplace(scale=2.0)),
    "gaussian": (pmdp.GaussianNoise(1.5), None, stats.norm(scale=1.5), stats.norm(scale=1.5)),
    "both": (pmdp.LaplaceNoise(1.0), pmdp.GaussianNoise(2.5), stats.laplace(scale=1.0), stats.norm(scale=2.5)),
}
"""The wholes below are so small that a noisy one may well be negative."""


def at_most(part, whole, x, top, bottom):
    """P((part + top) / (whole + bottom) <= x): an integral over the noisy whole."""
    places = sorted({0.0, float(whole), *([part / x] if x else [])})
    limits = [whole - 80.0, *[place for place in places if abs(place - whole) < 80], whole + 80.0]
    result = 0.0
    for low, high in pairwise(limits):
        sign = top.cdf if low + high > 0 else top.sf
        near = np.linspace(low, high, 9)[1:-1]
        result += integrate.quad(
            lambda b, sign=sign: bottom.pdf(b - whole) * sign(x * b - part), low, high, points=near, limit=400, epsabs=1e-13, epsrel=1e-12
        )[0]
    return result


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("whole", [3])
def test_a_ratio_is_at_most_so_much_as_often_as_an_integral_says(law, whole):
    noise, noise_of, top, bottom = LAWS[law]
    ratio = pmdp.NoisyRatio(noise, of=whole, noise_of=noise_of)
    parts = np.arange(whole + 1.0)
    for x in (-0.4, 0.37, 2.5):
        expected = [at_most(part, whole, x, top, bottom) for part in parts]
        np.testing.assert_allclose(ratio.at_most(parts, whole, x), expected, rtol=1e-8, atol=1e-13)
        np.testing.assert_allclose(ratio.at_most(parts, whole, x, contrary=True), 1 - np.array(expected), rtol=1e-8, atol=1e-13)


@pytest.mark.parametrize("law", LAWS)
def test_the_density_of_a_ratio_is_the_derivative_of_that(law):
    noise, noise_of, _, _ = LAWS[law]
    ratio, parts, step = pmdp.NoisyRatio(noise, of=14, noise_of=noise_of), np.arange(15.0), 1e-4
    for x in (-0.3, 0.37, 0.9, 2.0):
        slope = (ratio.at_most(parts, 14, x + step) - ratio.at_most(parts, 14, x - step)) / (2 * step)
        np.testing.assert_allclose(ratio.density(parts, 14, x), slope, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "rest", [[], [pmdp.Clipped(0, 1)], [pmdp.Clipped(0, 1), pmdp.Rounded(0.01)]], ids=["as it is", "clipped", "clipped and rounded"]
)
def test_every_part_is_summed_over(law, rest):
    noise, noise_of, top, bottom = LAWS[law]
    wholes, told = np.array([14, 3, 14, 14]), np.array([0.37, 0.5, 1.0, 0.0])
    with pm.Model() as model:
        pm.Binomial("y", wholes, 0.3, observed=np.zeros(4, dtype=int))
    public = pmdp.published(model, {"y": [pmdp.NoisyRatio(noise, of=wholes, noise_of=noise_of), *rest]}, values={"y": told})
    found = public.compile_logp(vars=public.observed_RVs, sum=False)({})[0]
    half = 0.005 if len(rest) == 2 else 5e-6
    for n, x, value in zip(wholes, told, found, strict=True):
        ends = [0.0, 1.0] if rest else [-np.inf, np.inf]
        wide = 0.0 if len(rest) == 1 and x in ends else half  # what was moved to an end and not rounded lay beyond it
        low, high = (-np.inf if x <= ends[0] else x - wide), (np.inf if x >= ends[1] else x + wide)
        chances = [
            (1.0 if high == np.inf else at_most(s, n, high, top, bottom)) - (0.0 if low == -np.inf else at_most(s, n, low, top, bottom))
            for s in range(n + 1)
        ]
        expected = np.log(stats.binom.pmf(np.arange(n + 1), n, 0.3) @ np.array(chances))
        is_density = low > -np.inf and high < np.inf and len(rest) < 2
        np.testing.assert_allclose(value, expected - (np.log(2 * half) if is_density else 0.0), atol=1e-4 if is_density else 1e-7)


def test_a_window_leaves_nothing_out_that_matters():
    law = pmdp.NoisyRatio(pmdp.LaplaceNoise(10), of=5000)
    start, weights = law.window(5000.0, 0.4, 0.4)
    assert start > 0
    assert start + len(weights) < 5001
    everywhere = law.density(np.arange(5001.0), 5000, 0.4)
    np.testing.assert_allclose(weights.sum(), everywhere.sum(), rtol=1e-12)


def test_ratios_that_nobody_understands_are_refused():
    for write in (
        lambda: pmdp.NoisyRatio(pmdp.DiscreteLaplace(10), of=20),
        lambda: pmdp.NoisyRatio(pmdp.LaplaceNoise([10, 20]), of=[20, 30]),
        lambda: pmdp.NoisyRatio(pmdp.LaplaceNoise(10), of=20.5),
        lambda: pmdp.NoisyRatio(pmdp.LaplaceNoise(10), of=0),
    ):
        with pytest.raises(pmdp.Refusal, match="NoisyRatio"):
            write()


@pytest.mark.parametrize("rest", [[], [pmdp.Clipped(0, 1)], [pmdp.Rounded(0.1)]])
def test_ratios_must_be_given_beside_the_model(rest):
    with pm.Model() as model:
        pm.Binomial("y", 20, pm.Beta("p", 1, 1), observed=[0, 1])
    with pytest.raises(pmdp.Refusal, match="values="):
        pmdp.published(model, {"y": [pmdp.NoisyRatio(pmdp.LaplaceNoise(10), of=20), *rest]})


def test_a_share_is_found_again():
    rng = np.random.default_rng(2)
    n = rng.integers(20, 400, 300)
    part = rng.binomial(n, 0.35)
    told = np.clip(np.round((part + rng.laplace(0, 10, 300)) / (n + rng.laplace(0, 10, 300)), 3), 0, 1)
    with pm.Model() as model:
        pm.Binomial("y", n, pm.Uniform("p", 0, 1, default_transform=None), observed=np.zeros(300, dtype=int))
    law = [pmdp.NoisyRatio(pmdp.LaplaceNoise(10), of=n), pmdp.Clipped(0, 1), pmdp.Rounded(0.001)]
    public = pmdp.published(model, {"y": law}, values={"y": told})
    logp = public.compile_logp()
    grid = np.linspace(0.2, 0.5, 301)
    chances = np.array([logp({"p": p}) for p in grid])
    chances = np.exp(chances - chances.max())
    chances /= chances.sum()
    mean = grid @ chances
    spread = np.sqrt((grid - mean) ** 2 @ chances)
    assert abs(mean - 0.35) < 3 * spread < 0.03
