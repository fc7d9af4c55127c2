"""Logistic functions that are written by hand."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import contents, seam_of

import pymc_dp as pmdp

pytestmark = pytest.mark.filterwarnings("ignore")

N = 40
RNG = np.random.default_rng(1)
Z, Y = RNG.normal(size=N).clip(-2, 2), RNG.integers(0, 2, N)
BOUNDS = {"z": (-2, 2), "logit(y)": (-3, 3)}
EPS = np.finfo(float).eps


def off(p, end, instead):
    return pm.math.switch(pm.math.eq(p, end), instead, p)


BY_HAND = {
    "1 / (1 + exp(-x))": lambda x: 1 / (1 + pm.math.exp(-x)),
    "1 / (exp(-x) + 1)": lambda x: 1.0 / (pm.math.exp(-x) + 1),
    "exp(x) / (1 + exp(x))": lambda x: pm.math.exp(x) / (1 + pm.math.exp(x)),
    "sigmoid(x) off 0 and 1, as bambi writes": lambda x: off(off(pm.math.sigmoid(x), 0, EPS), 1, 1 - EPS),
    "sigmoid(x) clipped": lambda x: pm.math.clip(pm.math.sigmoid(x), 1e-6, 1 - 1e-6),
    "1 / (1 + exp(-x)) clipped": lambda x: pt.clip(1 / (1 + pm.math.exp(-x)), 1e-9, 1),
}
OTHERS = {
    "sigmoid(x) clipped far from 0": lambda x: pt.clip(pm.math.sigmoid(x), 0.01, 1 - 1e-6),
    "sigmoid(x) clipped far from 1": lambda x: pt.clip(pm.math.sigmoid(x), 1e-6, 0.99),
    "2 sigmoid(x) clipped": lambda x: pt.clip(2 * pm.math.sigmoid(x), 1e-6, 1 - 1e-6),
    "sigmoid(x), and .01 at 0": lambda x: off(pm.math.sigmoid(x), 0, 0.01),
    "sigmoid(x), and 0 at one half": lambda x: off(pm.math.sigmoid(x), 0.5, 0.5),
    "sigmoid(x), and what is beside it at 0": lambda x: pm.math.switch(pm.math.eq(pm.math.sigmoid(2 * x), 0), EPS, pm.math.sigmoid(x)),
    "1 / (2 + exp(-x))": lambda x: 1 / (2 + pm.math.exp(-x)),
    "0.5 / (1 + exp(-x))": lambda x: 0.5 / (1 + pm.math.exp(-x)),
    "exp(x / 2) / (1 + exp(x))": lambda x: pm.math.exp(x / 2) / (1 + pm.math.exp(x)),
    "1 / (1 + exp(-x) + exp(-x))": lambda x: 1 / (1 + pm.math.exp(-x) + pm.math.exp(-x)),
}


def model(inverse):
    with pm.Model() as built:
        pm.Bernoulli("y", p=inverse(pm.Normal("a") + pm.Normal("b") * pm.Data("z", Z)), observed=Y)
    return built


@pytest.mark.parametrize("written", BY_HAND)
def test_a_logistic_function_by_hand_is_one(written):
    """The same is released before noise; signs of features are those of the model, as twice a minus is none."""
    with seam_of(0):
        ours, theirs = (contents(pmdp.release(model(f), epsilon=1, bounds=BOUNDS)) for f in (BY_HAND[written], pm.math.sigmoid))
    assert ours == theirs


@pytest.mark.parametrize("written", OTHERS)
def test_what_is_no_logistic_function_is_none(written):
    (row,) = pmdp.inspect(model(OTHERS[written]), bounds={"z": (-2, 2)}).rows
    assert "its mean is not the inverse logit of what is linear in the unknowns" in row.reason
