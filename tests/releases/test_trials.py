"""Binomial variables whose number of trials is not the same for all: bounds must hold every number of successes."""

import numpy as np
import pymc as pm
import pytest
from checks import log_density, seam_of

import pymc_dp as pmdp

RNG = np.random.default_rng(1)
WHICH = RNG.integers(0, 5, 60)
ILL = RNG.binomial(WHICH + 1, 0.6)


def of_visits(many, public):
    with pm.Model() as model:
        n = pm.Data("many", many + 1) if public else pm.math.stack([1, 2, 3, 4, 5])[pm.Data("many", many)]
        pm.Binomial("ill", n=n, p=pm.Beta("p", 1, 1), observed=ILL)
    return model, {"public": ["many"]} if public else {}


@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("bounds", [(0, 4), (1, 5), (1, 9)])
def test_bounds_that_move_a_number_of_successes_are_refused(bounds, public):
    """The law of a sum of numbers that were moved is not Binomial."""
    model, more = of_visits(WHICH, public)
    with pytest.raises(pmdp.Refusal, match=r"up to 5 trials.*Write bounds=\{'ill': \(0, 5\)\}"):
        pmdp.release(model, epsilon=1, bounds={"ill": bounds}, **more)


@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("bounds", [(0, 5), (0, 7)])
def test_bounds_that_hold_all_numbers_of_successes_are_taken(bounds, public):
    model, more = of_visits(WHICH, public)
    with seam_of(0):
        released = pmdp.release(model, epsilon=1, bounds={"ill": bounds}, **more)["ill"]
    sums = [ILL[many == WHICH].sum() for many in range(5)]
    assert released.noisy[..., -1].ravel().tolist() == sums


def test_no_record_decides_whether_bounds_are_refused():
    """All records have one trial: the model says that they may have five."""
    model, _ = of_visits(np.zeros(60, dtype=int), public=False)
    with pytest.raises(pmdp.Refusal, match="up to 5 trials"):
        pmdp.release(model, epsilon=1, bounds={"ill": (0, 4)})


@pytest.mark.parametrize("most", [5, 30])
@pytest.mark.parametrize("public", [True, False])
def test_private_groups_have_the_law_of_their_own_numbers_of_trials(public, most):
    """Without noise the log-density of probabilities is the user's, within the central limit: .15 nats at up to 1.5 sd."""
    rng = np.random.default_rng(3)
    many, group = rng.integers(0, 5, 4000), rng.integers(0, 2, 4000)
    ill = rng.binomial(many + 1, np.where(group, 0.6, 0.3))
    with pm.Model() as model:
        n = pm.Data("many", many + 1) if public else pm.math.stack([1, 2, 3, 4, 5])[pm.Data("many", many)]
        pm.Binomial("ill", n=n, p=pm.Beta("p", 1, 1, shape=2)[pm.Data("group", group)], observed=ill)
    released = pmdp.release(model, epsilon=1e9, bounds={"ill": (0, most)}, public=["many"] if public else [])
    private = pmdp.rewrite(model, released)
    start, theirs, ours = private.initial_point(), log_density(model), log_density(private)
    share = np.array([ill[group == g].sum() / (many + 1)[group == g].sum() for g in (0, 1)])
    steps = 0.028 * np.linspace(-1.5, 1.5, 7)[:, None, None] * np.eye(2)
    at = [{"p_logodds__": np.log(share / (1 - share)) + step} for pair in steps for step in pair]
    assert np.ptp([theirs(point) - ours({**start, **point}) for point in at]) < 0.15
