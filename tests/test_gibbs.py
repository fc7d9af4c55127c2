"""Exact conditional draws: against enumeration, against closed posteriors, and against the joint distribution.

Draws are compared with exact probabilities by Pearson's statistic; a false alarm of one comparison has probability 1e-6.
"""

from itertools import product

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.blocking import DictToArrayBijection, RaveledVars
from pymc.pytensorf import gradient
from scipy.stats import chi2

from pymc_dp.accounting import Refusal
from pymc_dp.gibbs import forward_backward, marginal_likelihood
from pymc_dp.gibbs.chains import downward, smoothed, upward
from pymc_dp.kernels import Kernel

ALARM = 1e-6


def check_frequencies(found, p):
    """Counts (V,) against probabilities (V,): cells expected below 5 are put together."""
    expected = p * found.sum()
    assert not found[p == 0].any()
    rare = expected < 5
    found, expected = (np.append(each[~rare], each[rare].sum()) for each in (found, expected))
    found, expected = found[expected > 0], expected[expected > 0]
    statistic = ((found - expected) ** 2 / expected).sum()
    assert statistic < chi2.isf(ALARM, max(len(found) - 1, 1)), (statistic, found, expected)


# ---------- chains
def chain(R, T, K, seed, spread=2.0, zeros=False):
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.ones(K), (R, K))
    if zeros:
        transition[:, 0, -1] = 0.0
        transition /= transition.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        return np.log(rng.dirichlet(np.ones(K), R)), np.log(transition), spread * rng.normal(size=(R, T, K))


def paths(initial, transition, emission):
    """All sequences of states of one chain, and their joint log-probabilities with what is seen."""
    T, K = emission.shape
    several = np.array(list(product(range(K), repeat=T)))
    logp = initial[several[:, 0]] + emission[np.arange(T), several].sum(axis=1)
    return several, logp + transition[several[:, :-1], several[:, 1:]].sum(axis=1)


@pytest.mark.parametrize(("T", "K", "spread", "zeros"), [(1, 4, 2, False), (4, 2, 2, False), (3, 3, 1, True), (4, 2, 900, False)])
def test_states_are_drawn_from_their_joint_law(T, K, spread, zeros):
    """Power: probabilities off by 5 % of a half are found at 100,000 draws (a statistic of 1,000)."""
    initial, transition, emission = (each[0] for each in chain(1, T, K, 4, spread, zeros))
    several, logp = paths(initial, transition, emission)
    many = np.logaddexp.reduce(logp)
    D = 100_000
    states, likelihood = forward_backward(initial, transition, np.broadcast_to(emission, (D, T, K)), np.random.default_rng(1))
    np.testing.assert_allclose(likelihood, many, rtol=1e-12)
    found = np.bincount(np.ravel_multi_index(states.T, (K,) * T), minlength=K**T)
    check_frequencies(found, np.exp(logp - many))
    assert (several == np.stack(np.unravel_index(np.arange(K**T), (K,) * T), axis=1)).all()


def test_states_that_underflow_are_not_lost():
    """A state that is e^-800 as likely at first, and that all later steps prefer by e^100, in a chain that stays where it is."""
    with np.errstate(divide="ignore"):
        transition = np.log(np.eye(2))
    emission = np.zeros((20, 2))
    emission[0], emission[1:, 1] = [0.0, -800.0], 100.0
    states, likelihood = forward_backward(np.log([0.5, 0.5]), transition, emission, np.random.default_rng(1))
    assert (states == 1).all()
    np.testing.assert_allclose(likelihood, 1100.0 + np.log(0.5))


def test_each_chain_has_its_own_parameters():
    initial, transition, emission = chain(5, 3, 2, 7)
    _, likelihood = forward_backward(initial, transition, emission, np.random.default_rng(1))
    expected = [np.logaddexp.reduce(paths(*one)[1]) for one in zip(initial, transition, emission, strict=True)]
    np.testing.assert_allclose(likelihood, expected, rtol=1e-12)
    sharp = np.where(np.arange(2) == np.arange(15).reshape(5, 3, 1) % 2, 0.0, -900.0)
    states, _ = forward_backward(initial, transition, sharp, np.random.default_rng(1))
    assert (states == np.arange(15).reshape(5, 3) % 2).all()


def test_trees_are_drawn_from_their_joint_law():
    """A site with two below it, one of which has two again."""
    rng = np.random.default_rng(3)
    parent, K, D = np.array([-1, 0, 0, 2, 2]), 2, 60_000
    S = len(parent)
    unary, tables, table = rng.normal(size=(S, K)), rng.normal(size=(2, K, K)), np.array([0, 1, 0, 1, 1])
    several = np.array(list(product(range(K), repeat=S)))
    logp = unary[np.arange(S), several].sum(axis=1)
    for s in range(1, S):
        logp += tables[table[s], several[:, parent[s]], several[:, s]]
    many = np.logaddexp.reduce(logp)
    copies = np.concatenate([np.where(parent < 0, -1, parent + S * d) for d in range(D)])
    beliefs, scaled, roots = upward()(np.tile(unary, (D, 1)), tables, np.tile(table, D), copies)
    np.testing.assert_allclose(roots[0], many, rtol=1e-12)
    states = downward()(beliefs, scaled, tables, np.tile(table, D), copies, rng.random(D * S)).reshape(D, S)
    check_frequencies(np.bincount(np.ravel_multi_index(states.T, (K,) * S), minlength=K**S), np.exp(logp - many))


def test_impossible_chains_are_refused():
    with np.errstate(divide="ignore"):
        initial, transition = np.log([1.0, 0.0]), np.log(np.eye(2))
    with pytest.raises(Refusal, match="No sequence of states"):
        forward_backward(initial, transition, np.array([[0.0, 0.0], [-np.inf, 0.0]]), np.random.default_rng(1))


@pytest.mark.parametrize("zeros", [False, True])
def test_the_forward_algorithm_agrees_with_enumeration_and_its_derivatives_with_differences(zeros):
    R, T, K = 2, 4, 3
    initial, transition, emission = chain(R, T, K, 5, zeros=zeros)
    given = [initial, transition.reshape(R, -1), emission.reshape(R, -1)]
    value, *slopes = smoothed(*given)
    expected = [np.logaddexp.reduce(paths(*one)[1]) for one in zip(initial, transition, emission, strict=True)]
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for k, slope in enumerate(slopes):
        for entry in range(given[k].shape[1]):
            step = np.zeros_like(given[k])
            step[:, entry] = 1e-5
            up, down = (smoothed(*given[:k], given[k] + sign * step, *given[k + 1 :])[0] for sign in (1, -1))
            np.testing.assert_allclose(slope[:, entry], (up - down) / 2e-5, rtol=1e-6, atol=1e-9)


def test_numba_says_what_python_says():
    given = [each.reshape(2, -1) for each in chain(2, 4, 3, 5)]
    inputs = [pt.dmatrix() for _ in given]
    compiled = pytensor.function(inputs, Kernel(smoothed, (0, 1, 2))(*inputs, return_list=True), mode="NUMBA")
    for ours, theirs in zip(compiled(*given), smoothed(*given), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_states_are_summed_out_in_a_model():
    """The log-density and its gradient, against enumeration and differences."""
    rng = np.random.default_rng(2)
    y = rng.normal(size=(2, 3))
    with pm.Model() as model:
        P = pm.Dirichlet("P", np.ones(2), shape=(2, 2))
        mu = pm.Normal("mu", 0, 1, shape=2)
        emission = pm.logp(pm.Normal.dist(mu, 1.0), y[..., None])
        pm.Potential("seen", marginal_likelihood(np.log([0.3, 0.7]), pm.math.log(P), emission))
    point = {name: value + 0.3 * rng.normal(size=value.shape) for name, value in model.initial_point(random_seed=1).items()}
    graphs = [model.potentiallogp, gradient(model.potentiallogp, model.value_vars)]
    compiled = model.compile_fn(graphs, inputs=model.value_vars, mode="FAST_COMPILE")
    value, slope = compiled(point)
    parts = np.concatenate([point["P_simplex__"], -point["P_simplex__"].sum(axis=-1, keepdims=True)], axis=-1)
    transition = np.log(np.exp(parts) / np.exp(parts).sum(axis=-1, keepdims=True))
    logp = -0.5 * (y[..., None] - point["mu"]) ** 2 - 0.5 * np.log(2 * np.pi)
    expected = sum(np.logaddexp.reduce(paths(np.log([0.3, 0.7]), transition, one)[1]) for one in logp)
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    flat = DictToArrayBijection.map(point)
    for k in range(len(flat.data)):
        ends = []
        for sign in (1, -1):
            moved = flat.data.copy()
            moved[k] += sign * 1e-5
            ends.append(compiled(DictToArrayBijection.rmap(RaveledVars(moved, flat.point_map_info)))[0])
        np.testing.assert_allclose(slope[k], (ends[0] - ends[1]) / 2e-5, rtol=1e-5, atol=1e-8)
