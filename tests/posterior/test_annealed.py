"""Annealed importance sampling that pays: what a weight can move by, exactly; that its mean is the evidence; what is charged."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pymc as pm
import pytest
from chains import (
    G,
    Recorded,
    Y,
    coins,
    dice,
    groups,
    known_groups,
    log_density,
    mixture,
    neighbours,
    normal,
    planned,
    product,
    states,
    task_of,
)
from checks import flat, mostly_slow
from scipy.special import logsumexp

import pymc_dp as pmdp
from pymc_dp.posterior.paid_gibbs import annealed, sensitivity, updates
from pymc_dp.posterior.result import WEIGHT
from pymc_dp.privacy import mechanisms
from pymc_dp.privacy.requests import RUNG

pytestmark = pytest.mark.filterwarnings("ignore")


def climbing(model, how, epsilon, *, delta=0, bounds=None, public=()):
    """A ladder and its records."""
    given = {"delta": delta or 1e-6, "bounds": bounds, "public": public, "absolute": True}
    plan, held = planned(model, pmdp.Gibbs(1, points=how.points, steps=how.steps), epsilon, **given)
    task = task_of(model, how, epsilon, delta=delta, bounds=bounds, public=public)
    return annealed.planned_chains(task, plan.kernel, plan.blocks, joint=False), held


# ---------- what a record can do
@pytest.mark.parametrize("make", mostly_slow([product, coins, groups, known_groups, normal, mixture], 0, 2, 5))
def test_a_record_moves_a_log_likelihood_by_the_height_at_most(make):
    """Over all states: and so every weight by RUNG times that, whatever the path. In some state it does, where bounds are attained."""
    several = []
    for model, arguments in neighbours(make):
        schedule = pmdp.inspect(model, mechanism=pmdp.Annealing(2, points=3), epsilon=1, **arguments).schedule
        plan, held = planned(model, pmdp.Gibbs(1, points=3), 1, absolute=True, **arguments)
        heights = [sensitivity.log_likelihood_sensitivity(plan.kernel, part) for part in plan.kernel.parts]
        height = sum(heights)
        assert schedule.updates[-1].range == height / 2**20
        several.append((plan, held))
    most = 0
    for state in states(several[0][0]):
        found = [updates.total(plan.kernel, state, held, heights) for plan, held in several]
        most = max(most, max(found) - min(found))
    assert most <= height
    assert most > (0.4 if make in (normal, mixture) else 0.99) * height


def test_the_height_is_that_of_theory():
    """C: of theta within [.1, .9] or [.1, .5], log 9; of sigma(2 a b), 2."""
    for make, C in ((coins, np.log(9)), (known_groups, np.log(9)), (groups, np.log(9)), (product, 2)):
        model, arguments = make()
        found = pmdp.inspect(model, mechanism=pmdp.Annealing(3, points=5), epsilon=1, **arguments).schedule.updates[-1].range
        assert found == pytest.approx(C, abs=1e-4)


# ---------- what is charged
@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("rungs", [1, 2, 5])
@pytest.mark.parametrize("steps", [(), [pmdp.Barker(["a", "b"], 0.5)], [pmdp.Penalty(["a", "b"], 0.5)]], ids=["gibbs", "barker", "penalty"])
def test_the_charge_is_the_exact_sum_over_every_update_and_weight(rungs, delta, steps):
    """The path by the sum over rungs of beta times what an update costs, as in theory.md, and C for the weight."""
    if steps and isinstance(steps[0], pmdp.Penalty) and not delta:
        return
    for epsilon in (0.5, 500):
        how = pmdp.Annealing(rungs, chains=3, sweeps=2, points=3, steps=steps)
        climb, held = climbing(product()[0], how, epsilon, delta=delta)
        price, rng = climb.price, np.random.default_rng(1)
        receipt = Recorded(price.draws, price.cost)
        ended = [annealed.annealed_chain(climb, how, held, receipt, rng) for _ in range(3)]
        assert np.isfinite([weight for _, weight in ended]).all()
        each = 1 if steps else 2
        assert len(receipt.struck) == len(price.draws) == 3 * (2 * each * (rungs - 1) + 1)
        with pytest.raises(pmdp.Refusal, match="not been paid"):
            annealed.annealed_chain(climb, how, held, receipt, rng)
        betas = [Fraction(power, RUNG) for power in how.powers[:-1]]
        etas = [block.sensitivity for block in climb.blocks if block.sensitivity]
        height = RUNG * climb.sensitivity
        if not delta:
            assert price.cost.epsilon == sum(one.pure for one in price.draws) <= Fraction(epsilon)
            path = 3 * 2 * sum(betas) * sum(etas) / Fraction(price.scale)
            assert float(price.cost.epsilon) == pytest.approx(float(path) + 3 * height / climb.noise.scale, rel=1e-12)
        else:
            assert price.cost.rho == sum(one.rho for one in price.draws)
            assert price.cost.epsilon <= epsilon
            if not any(one.mechanism == "gaussian" for one in price.draws[:-1]):
                path = 3 * 2 * sum(beta**2 for beta in betas) * sum(eta**2 for eta in etas) / (8 * Fraction(price.scale) ** 2)
                assert float(price.cost.rho) == pytest.approx(float(path) + 3 * height**2 / (2 * climb.noise.scale**2), rel=1e-9)
        assert price.temperature >= 1
        assert (climb.noise.difference, climb.noise.square) == (height, height**2)
        assert float(price.cost.epsilon) == pytest.approx(epsilon, rel=1e-5)  # what the path leaves over goes to the weight


def test_charged_as_shown(tmp_path):
    how = pmdp.Annealing(4, chains=5, points=5)
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=3, create=True)
    inspected = pmdp.inspect(coins()[0], mechanism=how, epsilon=2)
    tree = pmdp.sample(model=coins()[0], mechanism=how, epsilon=2, ledger=ledger)
    assert Fraction(tree.attrs["epsilon_exact"]) == inspected.schedule.cost.epsilon == inspected.schedule.pure
    assert "5 chains from the prior" in flat(inspected)
    assert ledger.entries().iloc[-1].epsilon == pytest.approx(2, rel=1e-9)
    assert tree.posterior.t.shape == (5, 1, 2)
    assert set(tree.sample_stats.data_vars) == {"epsilon", "log_weight"}
    np.testing.assert_allclose(tree.sample_stats.epsilon.values[:, 0], np.arange(1, 6) * 0.4, rtol=1e-5)
    assert list(tree.privacy.statistic.values)[-1] == WEIGHT
    assert tree.privacy.sensitivity.values[-1] == pytest.approx(np.log(9), abs=1e-4)
    assert tree.privacy.attrs["asks"] == inspected.schedule.asks == 5 * (3 * 2 + 1)
    assert set(tree.children) == {"posterior", "sample_stats", "privacy"}


@pytest.mark.parametrize("how", [pmdp.Gibbs(4, points=5), pmdp.Annealing(3, chains=2, points=5)], ids=["gibbs", "annealing"])
def test_an_unknown_may_be_named_like_the_weight(how):
    """What is told of a draw does not hang on what the user calls an unknown."""
    told = []
    for name in ("t", WEIGHT):
        with pm.Model() as model:
            pm.Bernoulli("y", pm.Uniform(name, 0.1, 0.9), observed=Y)
        group = pmdp.sample(model=model, mechanism=how, epsilon=2).privacy
        told.append([group.attrs["range"], *(group[one].values.tolist() for one in ("statistic", "sensitivity", "scale", "epsilon"))])
    assert told[0] == told[1]
    assert told[0][1].count(WEIGHT) == isinstance(how, pmdp.Annealing)


# ---------- what it estimates
def evidence(model, plan, T):
    """By enumeration: of the grid, at the temperature."""
    every = list(states(plan))
    prior = log_density(model, plan, every, np.inf)
    return logsumexp(log_density(model, plan, every, T)) - logsumexp(prior), prior - logsumexp(prior), every


@pytest.mark.parametrize(
    ("make", "epsilon"),
    [
        (product, 1e5),
        *(pytest.param(make, epsilon, marks=pytest.mark.slow) for make, epsilon in ((product, 20), (coins, 1e5), (mixture, 1e5))),
    ],
)
def test_the_mean_weight_is_the_evidence(make, epsilon):
    """Of 400 chains, by enumeration at the same temperature. Five standard errors: a false alarm in 1.7 million, but for skewness."""
    y = np.array([0.3, -1.1]) if make is mixture else np.array([1, 0, 1])
    model, arguments = make(y)
    how = pmdp.Annealing(4, chains=400, points=3, curve=1.0, share=0.9 if epsilon == 20 else 0.2)
    if epsilon == 20:
        how = replace(how, chains=1)
    climb, held = climbing(model, how, epsilon, **arguments)
    assert (climb.price.temperature > 1) == (epsilon == 20)
    plan, _ = planned(model, pmdp.Gibbs(1, points=3), 1e5, **arguments)
    wanted, _, _ = evidence(model, plan, climb.price.temperature)
    many = mechanisms.Receipt(climb.price.draws * (400 // how.chains), mechanisms.Cost(climb.price.cost.epsilon * (400 // how.chains)))
    rng = np.random.default_rng(2)
    weights = np.exp([annealed.annealed_chain(climb, how, held, many, rng)[1] - wanted for _ in range(400)])
    weights *= np.exp(-annealed.log_mean(climb.noise, climb.unit))
    assert abs(weights.mean() - 1) < 5 * weights.std() / 20
    assert weights.std() / 20 < 0.2


def test_a_climb_begins_with_the_prior():
    """Frequencies of all states against enumeration, of unknowns that rest on each other too: 3,000 draws, 5 standard deviations."""
    with pm.Model() as above:
        a = pm.Uniform("a", 0.1, 0.9)
        pm.Bernoulli("y", pm.Truncated("b", pm.Normal.dist(a, 0.2), 0.1, 0.9), observed=Y[:2])
    for model, joint in ((above, True), (coins(Y[:2])[0], False)):
        plan, held = planned(model, pmdp.Gibbs(1, points=4), 1e5)
        climb = annealed.planned_chains(task_of(model, pmdp.Annealing(2, points=4), 1), plan.kernel, plan.blocks, joint)
        _, prior, every = evidence(model, plan, 1.0)
        place = {(*state.numbers.round(9), *np.ravel(state.latents)): k for k, state in enumerate(every)}
        rng, counts = np.random.default_rng(3), np.zeros(len(every))
        for _ in range(3000):
            state = annealed.prior_draw(climb, held, rng)
            counts[place[(*state.numbers.round(9), *np.ravel(state.latents))]] += 1
        wanted = 3000 * np.exp(prior)
        assert (np.abs(counts - wanted) < 5 * np.sqrt(wanted + 1) + 2).all()
        assert not joint or np.abs(counts - 3000 / len(every)).max() > 5 * np.sqrt(3000 / len(every))


def test_what_noise_adds_to_the_mean_weight():
    """By summation, of Laplace noise of 20 lattice units; and of the scale of Gaussian noise."""
    k = np.arange(-4000, 4001)
    for unit in (0.001, 0.02, 0.04):
        p = np.exp(-np.abs(k) / 20.0)
        draw = mechanisms.Draw(WEIGHT, "laplace", 1, 1, 20.0, 1)
        assert annealed.log_mean(draw, unit) == pytest.approx(logsumexp(unit * k, b=p / p.sum()), rel=1e-9)
        p = np.exp(-(k**2) / 800.0)
        draw = mechanisms.Draw(WEIGHT, "gaussian", 1, 1, 20.0, 1)
        assert annealed.log_mean(draw, unit) == pytest.approx(logsumexp(unit * k, b=p / p.sum()), rel=1e-9)
    assert annealed.log_mean(mechanisms.Draw(WEIGHT, "laplace", 1, 1, 20.0, 1), 0.05) == np.inf


# ---------- refusals
def hierarchy():
    with pm.Model() as model:
        a = pm.Uniform("a", 0.1, 0.9)
        t = pm.Truncated("t", pm.Normal.dist(a, 0.2), 0.1, 0.9, shape=4)
        pm.Bernoulli("y", t[pm.Data("g", G)], observed=Y)
    return model


@pytest.mark.parametrize(
    ("model", "arguments", "words"),
    [
        (lambda: coins()[0], {"neighbours": "add_remove"}, 'Write neighbours="replace"'),
        (lambda: coins()[0], {"random_seed": 1}, "cannot be seeded"),
        (lambda: dice()[0], {}, "Dirichlet variable has none"),
        (hierarchy, {}, "too many states"),
        (lambda: product()[0], {"mechanism": pmdp.Annealing(3, points=5, steps=[pmdp.Penalty("a")])}, "no pure epsilon"),
        (lambda: product()[0], {"epsilon": None}, "epsilon must be a positive"),
        (lambda: product()[0], {"draws": 7}, "chains=7"),
    ],
)
def test_refused_in_words_before_anything_is_paid(model, arguments, words, tmp_path):
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=10, create=True, neighbours=arguments.get("neighbours", "replace"))
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.sample(model=model(), ledger=ledger, **{"epsilon": 1.0, "mechanism": pmdp.Annealing(3)} | arguments)
    assert ledger.remaining().epsilon == 10


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"rungs": 0}, "positive integer"), ({"rungs": 3, "chains": True}, "positive integer"), ({"rungs": 5000}, "fewer rungs"),
        ({"rungs": 100, "curve": 5.0}, "fewer rungs"), ({"rungs": 3, "share": 1.0}, "share must be"),
        ({"rungs": 3, "curve": -1}, "curve must be"),
        ({"rungs": 3, "points": 2}, "points must be"), ({"rungs": 3, "steps": "a"}, "must be a list"),
    ],
    ids=str,
)  # fmt: skip
def test_ladders_that_mean_nothing(arguments, words):
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.Annealing(**arguments)


def test_powers_rise_to_one():
    for rungs, curve in itertools.product((1, 2, 7, 30), (0.5, 1.0, 2.0)):
        powers = pmdp.Annealing(rungs, curve=curve).powers
        assert powers[-1] == RUNG
        assert (np.diff((0, *powers)) > 0).all()
