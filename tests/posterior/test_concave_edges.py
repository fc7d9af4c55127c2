"""Concave log-posteriors at their edges: numbers that overflow, priors whose ends round, short numbers, clipped probabilities."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.stats import chisquare

import pymc_dp as pmdp
from pymc_dp.plans.protection import protection_of
from pymc_dp.posterior.ball_regression import is_affine
from pymc_dp.posterior.concave_laws import _binomial, _exponential, _normal, _poisson, range_of_energy
from pymc_dp.posterior.draws import task_of
from pymc_dp.posterior.envelope import Part, Target, envelope_of
from pymc_dp.posterior.price import NAT
from pymc_dp.posterior.rejection import drawn_by_rejection, product_of
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
    """By hand: a slope of 1 at most, of features 1 and 2 with standard deviations .3 and .4, is sqrt(.3^2 + .8^2); that of another
    unknown, whose log-density is -5e11 where it is cut off, is nothing. By differences of log-densities 1e-4 of it was rounding.
    """

    def model(far):
        x = pm.Data("x", X[:, 0])
        unseen = pm.Truncated("far", pm.Normal.dist(0, 1e-6), lower=1.0, upper=2.0) if far else 0.0
        answers(prior("a", 0.3) + prior("b", 0.4) * x + 1e-9 * unseen + 1e-9 * pm.Normal("c", 0, 1) + 1e-9 * pm.Normal("d", 0, 1))

    slopes = [np.sqrt(float(ready(lambda far=far: model(far), delta=1e-6).price.draws[0].square)) / NAT for far in (False, True)]
    assert slopes[1] == pytest.approx(slopes[0], rel=1e-6)
    assert 0.8 * 2 * np.hypot(0.3, 0.8) <= slopes[1] <= 2 * np.hypot(0.3, 0.8) * (1 + 1e-5)


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


def test_a_clipped_probability_is_another_law():
    """With logits of up to 30, log p is cut off at -13.8: by 16 nats it is not that of the straight predictor."""
    with pytest.raises(pmdp.Refusal, match="more than the 3 that can be drawn exactly"):
        ready(lambda: pm.Bernoulli("y", p=pt.clip(pm.math.invlogit(pm.Data("x", X) @ coefficients() * 4), 1e-6, 1 - 1e-6), observed=Y))


def test_sums_that_are_added_to_themselves_are_read_once():
    """Twice itself, 40 times over: 2^40 ways lead to the coefficients."""
    unknown = pt.vector("b")
    predictor = unknown * 2.0
    for _ in range(40):
        predictor = predictor + predictor
    assert is_affine(predictor, [unknown])


# ---------- modes at the ends of the box
P = 12


def grouped(share, half, precision, *, N=2000, temperature=1.0, seed=1):
    """Twelve groups, each with a logit of its own, in the box from -half to half: apart from each other given the records."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, P, N)
    values = (rng.random(N) < np.broadcast_to(share, P)[group]).astype(float)
    part = Part(_binomial(1.0), np.eye(P)[group], np.zeros(N), values, np.full(N, 1 / temperature))

    def log_density(points):
        return -part.law.energy(part.predictors(points), part.values) @ part.weight - precision * (points**2).sum(axis=1) / 2

    return Target([part], precision * np.eye(P), np.zeros(P), np.full(P, -half), np.full(P, half), [], log_density), group


PUSHED = {
    "nobody answers yes": {"share": 0.0, "half": 3.0, "precision": 1.0},
    "nobody, under uniform priors": {"share": 0.0, "half": 1.0, "precision": 0.0},
    "one record, under uniform priors": {"share": 0.3, "half": 1.0, "precision": 0.0, "N": 1},
    "some groups in the middle": {"share": [0.0] * 9 + [0.4] * 3, "half": 1.0, "precision": 0.0, "N": 500},
}
"""How many of each group answer, and the prior: by shells alone draws may take more than 1e9 proposals."""


@pytest.mark.parametrize("name", PUSHED)
def test_pushed_to_the_ends_draws_have_the_law_of_the_target(name):
    """Counts of every coordinate in ten cells of equal probability, of 1,000 draws; false alarms of all four together: 1e-6. With a
    temperature of 1.2 in place of 1 all of them fail.
    """
    found, group = grouped(**PUSHED[name])
    draws = drawn_by_rejection(found, 1000, np.random.default_rng(2))
    grid = np.linspace(found.lower[0], found.upper[0], 200_001)
    middles = (grid[1:] + grid[:-1]) / 2
    (part,) = found.parts
    for k in range(P):
        yes, all_of_it = part.values[group == k].sum(), (group == k).sum()
        logs = yes * middles - all_of_it * np.logaddexp(0, middles) - found.precision[k, k] * middles**2 / 2
        below = np.cumsum(np.exp(logs - logs.max()))
        places = np.interp(draws[:, k], grid, [0.0, *(below / below[-1])])
        counts = np.histogram(places, np.linspace(0, 1, 11))[0]
        assert chisquare(counts).pvalue > 1e-6 / (4 * P)


@pytest.mark.parametrize("name", PUSHED)
def test_no_density_is_above_the_envelope_by_coordinates(name):
    """At proposals, and at points all over the box in the cells that they are in."""
    found, _ = grouped(**PUSHED[name])
    envelope, rng = product_of(found), np.random.default_rng(3)
    points, least = envelope.proposals(2000, rng)
    anywhere = rng.uniform(found.lower, found.upper, size=(2000, P))
    anywhere = np.where(rng.random((2000, P)) < 0.3, np.where(rng.random((2000, P)) < 0.5, found.lower, found.upper), anywhere)
    cells = [
        np.clip(np.searchsorted(e, v, side="right") - 1, 0, len(e) - 2) for e, v in zip(envelope.edges, (anywhere - envelope.centre).T)
    ]
    there = sum(row[cell] for row, cell in zip(envelope.least, cells, strict=True))
    top = found.log_density(envelope.centre[None])[0]
    chances = found.log_density(np.concatenate([points, anywhere])) - top + np.concatenate([least, there])
    assert chances.max() <= 1e-9
    assert chances[:2000].max() >= -3
    assert ((points >= found.lower - 1e-12) & (points <= found.upper + 1e-12)).all()


@pytest.mark.parametrize("name", ["some groups in the middle", "few groups"])
def test_integrals_of_envelopes_tell_which_is_smaller(name):
    """The target's integral is the share that is accepted times the envelope's: the same by both, within 10 % of 200,000 proposals."""
    how = {"share": [0.0] + [0.4] * (P - 1), "half": 1.0, "precision": 9.0, "N": 200} if name == "few groups" else PUSHED[name]
    found, _ = grouped(**how)
    top, totals = found.log_density(found.lowest[None])[0], []
    for envelope in (envelope_of(found), product_of(found)):
        points, least = envelope.proposals(200_000, np.random.default_rng(4))
        inside = ((points >= found.lower) & (points <= found.upper)).all(axis=1)
        chances = np.exp(found.log_density(points[inside]) - top + least[inside] - envelope.slack)
        totals.append(np.log(chances.sum() / 200_000) + envelope.integral)
    assert totals[0] == pytest.approx(totals[1], abs=0.1)


def test_values_far_from_any_line_are_no_reason_to_search_for_ever():
    """The lowest point is found, so that next to nothing is left to slack: 1e5 and more before the search was scaled."""
    rng = np.random.default_rng(0)
    features = np.column_stack([np.ones(2000), np.clip(rng.normal(size=(2000, 3)), -3, 3)])
    part = Part(_normal(0.5), features, np.zeros(2000), np.full(2000, 10.0), np.ones(2000))
    edge = np.full(4, 3.0)

    def log_density(points):
        return -part.law.energy(part.predictors(points), part.values).sum(axis=1) - (points**2).sum(axis=1) / 2

    found = Target([part], np.eye(4), np.zeros(4), -edge, edge, [], log_density)
    assert envelope_of(found).slack < 1
    assert np.isfinite(drawn_by_rejection(found, 10, rng)).all()
