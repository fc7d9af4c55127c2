"""Concave log-posteriors at their edges: numbers that overflow, priors whose ends round, short numbers, clipped probabilities."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as pmdp
from pymc_dp.plans.protection import protection_of
from pymc_dp.posterior.concave_laws import _exponential, _poisson, range_of_energy
from pymc_dp.posterior.draws import task_of
from pymc_dp.posterior.price import NAT
from pymc_dp.posterior.routes import prepared

pytestmark = pytest.mark.filterwarnings("ignore")
N = 60
RNG = np.random.default_rng(4)
X = np.clip(RNG.normal(size=(N, 4)), -2, 2)
Y = RNG.integers(0, 2, N)
TIMES = RNG.uniform(0.5, 3, N)
BOUNDS = {"x": (-2, 2)}


def ready(make, bounds=BOUNDS, truncate="prior", delta=0, epsilon=1.0):
    with pm.Model() as model:
        make()
    return prepared(task_of(model, epsilon, delta, pmdp.PosteriorSample(truncate=truncate), protection_of(bounds=bounds)))


def drawn(make, bounds=BOUNDS, truncate="prior", **how):
    with pm.Model() as model:
        make()
    return pmdp.sample(model=model, epsilon=1.0, bounds=bounds, mechanism=pmdp.PosteriorSample(truncate=truncate), **how).posterior


def coefficients():
    return pm.Normal("b", 0, 1, shape=4)


def answers(predictor):
    pm.Bernoulli("y", logit_p=predictor, observed=Y)


# ---------- what overflows
@pytest.mark.parametrize(("law", "ends"), [(_poisson(), (800.0, 900.0)), (_exponential(), (-900.0, -800.0))])
def test_infinity_less_infinity_is_no_small_range(law, ends):
    assert range_of_energy(law, tuple(map(np.array, ends)), (np.array(1.0), np.array(2.0))) == np.inf


def far_off():
    """Where z is large one record moves the posterior without limit, where it is not, as here, it is a regression like others."""
    b, z, x = coefficients(), pm.Data("z", np.zeros(N)), pm.Data("x", X)
    pm.Exponential("t", scale=pm.math.exp(x @ b - 1000 * z), observed=TIMES)
    pm.Normal("w", x @ b, 5.0, observed=X[:, 0])


def test_what_one_outcome_does_without_limit_is_not_hidden_by_another():
    """The first outcome's range was no number, and what was paid for was the second's alone."""
    with pytest.raises(pmdp.Refusal, match="too much"):
        ready(far_off, {"x": (-0.05, 0.05), "z": (0, 10), "t": (0.1, 6), "w": (0, 3)})


# ---------- priors
ENDS = [(-3.0, -2.6), (-3.0, -2.1), (-2.9, 1.5), (0.1, 0.7), (0.3, 1.1)]
"""Of about one in five such pairs, the middle and twice a quarter of the width is more than the upper end."""


@pytest.mark.parametrize(("low", "high"), ENDS)
def test_ends_that_round_are_within_the_support(low, high):
    """What was paid for is drawn."""

    def model():
        b = pm.TruncatedNormal("b", 0, 1, lower=low, upper=high, shape=4)
        answers(pm.Data("x", X) @ b + pm.Uniform("u", low, high))

    values = drawn(model, truncate=None)
    assert ((values.b >= low) & (values.b <= high)).all()


@pytest.mark.parametrize(("low", "high"), ENDS)
def test_a_flat_prior_among_others_has_no_slope(low, high):
    """By hand: the Uniform one has no standard deviation, so that the slope bounds nothing, and the range is paid for."""

    def model():
        b = pm.TruncatedNormal("b", 0, 1e-3, lower=-0.004, upper=0.004, shape=4)
        answers(pm.Data("x", X) @ b + pm.Uniform("u", low, high))

    (draw,) = ready(model, truncate=None, delta=1e-6).price.draws
    assert draw.square == draw.difference**2


@pytest.mark.parametrize(
    "prior",
    [
        lambda name, sigma: pm.Normal(name, 1.0, sigma),
        lambda name, sigma: pm.HalfNormal(name, sigma),
        lambda name, sigma: pm.TruncatedNormal(name, 0.5, sigma, lower=-1, upper=2),
        lambda name, sigma: pm.Truncated(name, pm.Normal.dist(0.5, sigma), lower=-1, upper=2),
    ],
)
def test_another_prior_far_from_its_middle_changes_no_slope(prior):
    """By hand: a slope of 1 at most, of features 1 and 2 with standard deviations .3 and .4, is sqrt(.3^2 + .8^2); that of the third
    unknown, whose log-density is -5e11 where it is cut off, is nothing.
    """

    def model():
        x = pm.Data("x", X[:, 0])
        far = pm.Truncated("far", pm.Normal.dist(0, 1e-6), lower=1.0, upper=2.0)
        answers(prior("a", 0.3) + prior("b", 0.4) * x + 1e-9 * far + 1e-9 * pm.Normal("c", 0, 1))

    (draw,) = ready(model, delta=1e-6).price.draws
    slope = np.sqrt(float(draw.square)) / NAT
    assert slope <= 2 * np.hypot(0.3, 0.8) * (1 + 1e-5)
    assert slope >= 0.8 * 2 * np.hypot(0.3, 0.8)


# ---------- what is another law, or no straight line
SHORT = {
    "a coefficient of 32 bits": lambda: pm.Data("x", X) @ pm.Normal("b", 1000.0, 1e-3, shape=4, dtype="float32"),
    "a predictor of 32 bits": lambda: pt.cast(pm.Data("x", X) @ coefficients(), "float32"),
    "on the way 16 bits": lambda: pt.cast(pt.cast(pm.Data("x", X) @ coefficients(), "float16"), "float64"),
}


@pytest.mark.parametrize("name", SHORT)
def test_short_numbers_are_no_straight_line(name):
    """Rounded to 32 bits, 1000 and .003 more differ by a share that is wrong by 2 %."""
    with pytest.raises(pmdp.Refusal, match="more than the 3 that can be drawn exactly"):
        ready(lambda: answers(SHORT[name]()))


@pytest.mark.parametrize(
    "clipped", [lambda p: pt.clip(p, 1e-6, 1 - 1e-6), lambda p: pt.switch(pt.eq(p, 0), 1e-16, pt.clip(p, 1e-7, 1 - 1e-7))]
)
def test_a_clipped_probability_is_another_law(clipped):
    """With logits of up to 30, log p is cut off at -13.8: by 16 nats it is not that of the straight predictor."""
    with pytest.raises(pmdp.Refusal, match="more than the 3 that can be drawn exactly"):
        ready(lambda: pm.Bernoulli("y", p=clipped(pm.math.invlogit(pm.Data("x", X) @ coefficients() * 4)), observed=Y))
