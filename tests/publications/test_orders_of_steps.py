"""What was done after the noise, in any order: chances of all published numbers, by steps forwards on every noisy one."""

import warnings

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dp as pmdp

SCALE, TRUTHS, NOISY = 2.0, np.arange(0, 60), np.arange(-80, 140)
LAW = stats.poisson(9.0)
"""Of the truth; noise is discrete Laplace."""


def forwards(step, x):
    if isinstance(step, pmdp.Clipped):
        return np.clip(x, step.lower, step.upper)
    if isinstance(step, pmdp.Threshold):
        return np.where(x < step.lowest, np.nan, x)
    parts = x / step.base
    return (np.rint(parts) if step.ties == "even" else np.floor(parts + 0.5)) * step.base


LISTED = pmdp.Threshold(10, absent="listed")
ORDERS = {
    "a threshold that is a multiple": [pmdp.Rounded(5), LISTED],
    "a threshold that is none": [pmdp.Rounded(5), pmdp.Threshold(9, absent="listed")],
    "halves to even": [pmdp.Rounded(4, ties="even"), pmdp.Threshold(8, absent="listed")],
    "rounded twice": [pmdp.Rounded(1), pmdp.Rounded(10)],
    "rounded twice, halves to even": [pmdp.Rounded(2, ties="even"), pmdp.Rounded(4, ties="even")],
    "rounded up, then to even": [pmdp.Rounded(2), pmdp.Rounded(4, ties="even"), LISTED],
    "clipped, then rounded": [pmdp.Clipped(1, 14), pmdp.Rounded(10)],
    "rounded, then clipped": [pmdp.Rounded(10), pmdp.Clipped(3, 14)],
    "clipped at a tie": [pmdp.Clipped(lower=5), pmdp.Rounded(10)],
    "clipped at a tie from above": [pmdp.Clipped(upper=15), pmdp.Rounded(10)],
    "clipped, rounded, left out": [pmdp.Clipped(upper=60), pmdp.Rounded(5), LISTED],
    "small multiples": [pmdp.Rounded(0.1), pmdp.Rounded(3), pmdp.Threshold(6, absent="listed")],
}


def chances(steps):
    """Probabilities by published number, and of none by None."""
    published = NOISY.astype(float)
    for step in steps:
        published = forwards(step, published)
    noise = (np.exp(-np.abs(NOISY[:, None] - TRUTHS) / SCALE) * np.tanh(0.5 / SCALE)) @ LAW.pmf(TRUTHS)
    names = [None if np.isnan(value) else round(value, 6) for value in published.tolist()]
    return {name: sum(noise[k] for k, other in enumerate(names) if other == name) for name in dict.fromkeys(names)}


def log_chance(steps, value):
    with warnings.catch_warnings(), pm.Model() as model:  # PyMC warns that it imputes, which is undone
        warnings.simplefilter("ignore")
        pm.Poisson("y", 9.0, observed=np.array([np.nan, 60.0]) if value is None else [0])
    values = None if value is None else {"y": [value]}
    public = pmdp.published(model, {"y": [pmdp.DiscreteLaplace(SCALE), *steps]}, values=values)
    wanted = public["y_absent" if value is None else "y"]
    return float(public.compile_logp(vars=[wanted], mode="FAST_COMPILE")(public.initial_point()))


@pytest.mark.parametrize("order", ORDERS)
def test_every_published_number_has_the_chance_that_steps_give_it(order):
    for value, chance in chances(ORDERS[order]).items():
        if value is None or -5 <= value <= 30:
            assert log_chance(ORDERS[order], value) == pytest.approx(np.log(chance), abs=2e-6), value


@pytest.mark.parametrize("order", ORDERS)
def test_every_other_number_is_refused(order):
    known = [value for value in chances(ORDERS[order]) if value is not None]
    for value in np.arange(-12.0, 31, 1.5):
        if np.abs(np.array(known) - value).min() > 1e-6:
            with pytest.raises(pmdp.Refusal, match=r"cannot (be|have been) published"):
                log_chance(ORDERS[order], value)


def test_truncated_below_a_multiple():
    """Only numbers of 10 and more are in the table, that is noisy ones of 7.5 and more."""
    expected = chances([pmdp.Rounded(5), LISTED])
    with pm.Model() as model:
        pm.Poisson("y", 9.0, observed=[15])
    steps = [pmdp.DiscreteLaplace(SCALE), pmdp.Rounded(5), pmdp.Threshold(10, absent="unlisted")]
    public = pmdp.published(model, {"y": steps})
    there = sum(chance for value, chance in expected.items() if value is not None)
    got = float(public.compile_logp(mode="FAST_COMPILE")(public.initial_point()))
    assert got == pytest.approx(np.log(expected[15.0] / there), abs=2e-6)


def test_a_normal_number_below_a_threshold_that_is_a_multiple():
    """Under normal noise: below 7.5 before it was rounded."""
    with warnings.catch_warnings(), pm.Model() as model:
        warnings.simplefilter("ignore")
        pm.Normal("y", 8.0, 3.0, observed=[10.0, np.nan])
    public = pmdp.published(model, {"y": [pmdp.GaussianNoise(4.0), pmdp.Rounded(5), LISTED]})
    of = stats.norm(8, 5)
    for name, chance in {"y": of.cdf(12.5) - of.cdf(7.5), "y_absent": of.cdf(7.5)}.items():
        got = float(public.compile_logp(vars=[public[name]], mode="FAST_COMPILE")(public.initial_point()))
        assert got == pytest.approx(np.log(chance), abs=1e-7)
