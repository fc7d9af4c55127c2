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


def test_votes_in_private_groups_have_the_law_of_their_own_numbers_of_voters():
    """The same of counts of three levels: .3 nats at up to 1.5 sd."""
    rng = np.random.default_rng(4)
    many, group = rng.integers(1, 6, 4000), rng.integers(0, 2, 4000)
    votes = rng.multinomial(many, np.array([[0.2, 0.3, 0.5], [0.5, 0.3, 0.2]])[group])
    with pm.Model() as model:
        p = pm.math.softmax(pm.math.concatenate([np.zeros((2, 1)), pm.Normal("a", shape=(2, 2))], axis=1), axis=1)
        pm.Multinomial("votes", n=pm.Data("many", many), p=p[pm.Data("group", group)], observed=votes)
    released = pmdp.release(model, epsilon=1e9, bounds={"votes": (0, 30)}, public=["many", "votes:0"])
    private = pmdp.rewrite(model, released)
    start, theirs, ours = private.initial_point(), log_density(model), log_density(private)
    share = np.array([votes[group == g].sum(axis=0) / many[group == g].sum() for g in (0, 1)])
    a = np.log(share[:, 1:] / share[:, :1])
    steps = 0.035 * np.linspace(-1.5, 1.5, 7)[:, None, None] * np.eye(4).reshape(4, 2, 2)[:, None]
    at = [{"a": a + step} for several in steps for step in several]
    assert np.ptp([theirs(point) - ours({**start, **point}) for point in at]) < 0.3


@pytest.mark.parametrize("levels", [2, 3])
def test_a_row_of_votes_moves_counts_by_no_more_than_is_paid_for(levels):
    """Whatever it holds: negative counts, and more than there are voters."""
    n = np.array([3, 5, 4, 5])
    rows = [np.zeros(levels), *(np.full(levels, count) for count in (9, -3, 10**12)), 5 * np.eye(levels)[0], 5 * np.eye(levels)[-1]]

    def exact(row, group):
        votes = np.column_stack([n, np.zeros((4, levels - 1))])
        votes[1] = row
        with pm.Model() as model:
            p = pm.Dirichlet("p", np.ones(levels), shape=(2, levels))[pm.Data("group", np.array([0, group, 1, 1]))]
            observed = pm.Multinomial("votes", n=pm.Data("many", n), p=p, observed=np.ones((4, levels)))
        model.rvs_to_values[observed].data[...] = votes
        with seam_of(0):
            released = pmdp.release(model, epsilon=1, bounds={"votes": (0, 5)}, public=["many"])["votes"]
        return released.noisy, released.difference

    several = [exact(row, group) for row in rows for group in (0, 1)]
    assert max(np.abs(a - b).sum() for a, _ in several for b, _ in several) <= several[0][1]
