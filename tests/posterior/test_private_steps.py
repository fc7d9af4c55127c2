"""Moves that are accepted privately: what they can lose, exactly; what law they keep; and that draws follow it, step by step."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pymc as pm
import pytest
from chains import (
    coins,
    dice,
    groups,
    key,
    known_groups,
    law,
    log_density,
    mixture,
    neighbours,
    normal,
    planned,
    posterior,
    product,
    states,
)
from checks import mostly_slow
from scipy.special import expit, ndtr
from scipy.stats import chi2

import pymc_dp as pmdp
from pymc_dp.posterior.paid_gibbs import accept, sensitivity, sweeps, updates
from pymc_dp.posterior.price import NAT
from pymc_dp.privacy import mechanisms

pytestmark = pytest.mark.filterwarnings("ignore")
NAMES = {product: ["a", "b"], coins: ["t"], groups: ["t"], known_groups: ["t"], normal: ["m", "s"], mixture: ["m"]}


class Given:
    """A generator whose whole numbers are given."""

    def __init__(self, numbers):
        self.numbers = np.array(numbers)

    def integers(self, low, high, size):
        assert len(self.numbers) == size
        assert low <= self.numbers.min() <= self.numbers.max() < high
        return self.numbers


def stepping(plan):
    (block,) = [block for block in plan.blocks if block.width]
    return block


def proposals(plan, block, state):
    """All moves that may be proposed, each as probable as the others."""
    for moves in itertools.product(range(-block.width, block.width + 1), repeat=len(block.places)):
        yield accept.proposal(plan.kernel, block, state, Given(moves))


def chances(plan, block, state, held):
    """Probabilities (rows,) that a proposed move is made."""
    if block.variance is None:
        return np.exp(law(plan, block, state, held)[:, 1])
    scale, (s, m) = plan.price.scale, accept.lattice(plan.price.scale, block.variance)
    ends, own = (part(plan.kernel, block, state, held) for part in (updates.records_part, updates.prior_part))
    r, sd = (ends[:, 1] - ends[:, 0]) / scale + own[:, 1] - own[:, 0], s / scale
    assert sd**2 == pytest.approx(m / scale) == pytest.approx(float(block.variance), abs=1e-5)
    return np.exp(r) * ndtr(-r / sd - sd / 2) + ndtr(r / sd - sd / 2)  # theory.md, 5.8


# ---------- what a step can lose
QUICK = {
    (product, 1.0, pmdp.Penalty), (groups, 0.25, pmdp.Barker), (coins, 1.0, pmdp.Barker), (mixture, 1.0, pmdp.Barker),
}  # fmt: skip
LOSSES = [
    pytest.param(*one, marks=() if one in QUICK else pytest.mark.slow)
    for one in itertools.product(NAMES, (0.25, 1.0), (pmdp.Barker, pmdp.Penalty))
]


@pytest.mark.parametrize(("make", "width", "kind"), LOSSES)
def test_no_step_loses_more_than_its_price_and_some_move_attains_most_of_it(make, width, kind):
    """Over all states and all moves from them. Barker: the log-ratio of the probabilities of either answer between neighbours, added over
    choices, is within epsilon. Penalty: the integers that get noise differ by no more than was paid for, in L1 and so in L2.
    """
    how = pmdp.Gibbs(2, points=5 if make is product else 3, steps=[kind(NAMES[make], width)])
    delta = 1e-6 if kind is pmdp.Penalty else 0
    several = [planned(model, how, 0.1, delta=delta, **arguments) for model, arguments in neighbours(make)]
    assert len({plan.price.draws for plan, _ in several}) == 1
    block, (paid,) = stepping(several[0][0]), {one for one in several[0][0].price.draws if one.variable == ", ".join(NAMES[make])}
    worst, used = 0.0, 0
    for state in states(several[0][0]):
        if state.latents and (state.latents[0][0] or state.latents[0][2:].any() or state.numbers[0] > 0.1):
            continue  # the others' latents, and how frequent they are
        for one in proposals(several[0][0], block, state):
            moves = [replace(stepping(plan), proposed=one.proposed) for plan, _ in several]
            asked = [updates.records_part(plan.kernel, move, state, held) for move, (plan, held) in zip(moves, several, strict=True)]
            pairs = [] if delta else zip(moves, several, strict=True)
            chance = [chances(plan, move, state, held) for move, (plan, held) in pairs]
            for k, j in itertools.combinations(range(len(several)), 2):
                used = max(used, int(np.ptp(asked[k] - asked[j], axis=1).sum()))
                if chance:
                    lost = np.maximum(np.abs(np.log(chance[k] / chance[j])), np.abs(np.log((1 - chance[k]) / (1 - chance[j]))))
                    worst = max(worst, float(lost.sum()))
    assert used <= block.sensitivity == paid.difference
    assert used > {normal: 0.2, mixture: 0.4}.get(make, 0.98) * block.sensitivity
    if delta:
        assert (paid.mechanism, paid.square) == ("gaussian", block.sensitivity**2)
        assert paid.rho == Fraction(block.sensitivity) ** 2 / (2 * Fraction(paid.scale) ** 2)
    else:
        assert worst <= float(paid.pure) * (1 + 1e-9)
        assert paid.rho == paid.pure**2 / 8


def test_two_unknowns_that_move_together_cost_less_than_one_after_the_other_and_short_moves_less_still():
    """Of sigma(2 a b) the log-likelihoods of both records differ by 2 a b: a range of 4 in a alone, in b alone, and in both together. A
    tenth of a grid of 21 points are two, .2 in a and in b, so that a b moves by 1 - .8^2 at most.
    """
    ranges = {}
    for width in (0.1, 1.0):
        shown = pmdp.inspect(product()[0], mechanism=pmdp.Gibbs(1, points=21, steps=[pmdp.Barker(["a", "b"], width)]), epsilon=1).schedule
        (one,) = shown.updates
        assert (one.name, one.choices, one.options) == ("a, b", 1, 2)
        ranges[width] = one.range
    assert ranges == {0.1: pytest.approx(0.72, abs=1e-4), 1.0: pytest.approx(4, abs=1e-4)}
    several = pmdp.inspect(product()[0], mechanism=pmdp.Gibbs(1, points=21), epsilon=1).schedule.updates
    assert sum(one.range for one in several) == pytest.approx(8, abs=1e-4)


def test_where_there_are_too_many_moves_all_states_are_compared(monkeypatch):
    monkeypatch.setattr(sensitivity, "MOST_COMPARED", 0)
    shown = pmdp.inspect(product()[0], mechanism=pmdp.Gibbs(1, points=21, steps=[pmdp.Barker(["a", "b"], 0.1)]), epsilon=1).schedule
    assert shown.updates[0].range == pytest.approx(4, abs=1e-4)


@pytest.mark.parametrize("make", [product, coins, groups, known_groups])
@pytest.mark.parametrize("step", [False, True])
def test_where_there_are_too_many_records_no_range_is_smaller(make, step, monkeypatch):
    """Pairs of records are not looked at then; what stands for them is no less, and twice as much at most for these."""
    model, arguments = make()
    how = pmdp.Gibbs(1, points=5, steps=[pmdp.Barker(NAMES[make], 0.25)] if step else ())
    exact = planned(model, how, 1, **arguments)[0].blocks
    monkeypatch.setattr(sensitivity, "MOST_PAIRS", 1)
    for one, bound in zip(exact, planned(model, how, 1, **arguments)[0].blocks, strict=True):
        assert one.sensitivity <= bound.sensitivity <= 2 * one.sensitivity + 8


# ---------- the law it keeps
@pytest.mark.parametrize("kind", [pmdp.Barker, pmdp.Penalty])
@pytest.mark.parametrize(
    "make", [groups, mixture, *(pytest.param(m, marks=pytest.mark.slow) for m in (product, coins, known_groups, normal))]
)
def test_a_step_leaves_the_flattened_posterior_as_it_is(make, kind):
    """By its transition matrix on all states of a tiny model, against PyMC's own log-densities: it is reversible, T above 1."""
    y = np.array([0.3, -1.1]) if make in (normal, mixture) else np.array([1, 0])
    g = np.array([1, 0])
    model, arguments = (groups(y, g)[0], {"public": ["g"]} if make is known_groups else {}) if make in (groups, known_groups) else make(y)
    delta = 1e-6 if kind is pmdp.Penalty else 0
    plan, held = planned(
        model, pmdp.Gibbs(10, points=3, steps=[kind(NAMES[make], 1.0 if make is product else 0.5)]), 10.0, delta=delta, **arguments
    )
    assert plan.price.temperature > 1
    every, block = list(states(plan)), stepping(plan)
    place, p = {key(state): k for k, state in enumerate(every)}, posterior(model, plan, every)
    matrix = np.zeros((len(every), len(every)))
    for k, state in enumerate(every):
        several = list(proposals(plan, block, state))
        for proposed in several:
            chance = chances(plan, proposed, state, held)
            for choices in itertools.product((0, 1), repeat=block.rows):
                reached = updates.state_after(plan.kernel, proposed, state, np.array(choices))
                matrix[k, place[key(reached)]] += np.prod(np.where(choices, chance, 1 - chance)) / len(several)
    np.testing.assert_allclose(matrix.sum(axis=1), 1)
    assert (matrix > 0).sum() > 2 * len(every)
    flow = p[:, None] * matrix
    np.testing.assert_allclose(flow, flow.T, atol=1e-6)


@pytest.mark.parametrize(("scale", "variance"), [(3.0, Fraction(1)), (4.7, Fraction(1, 4)), (16.0, Fraction(2)), (1.5, Fraction(1, 100))])
def test_on_its_lattice_the_penalty_is_exact(scale, variance):
    """a(r) = exp(r) a(-r), summed over the discrete Gaussian, at ratios between the points of the lattice too: to 1e-12, where rounding the
    variance to no multiple of the lattice is wrong by more than 1e-3 somewhere.
    """

    def balance(s, m):
        k = np.arange(-4000, 4001)
        p = np.exp(-(k**2) / (2 * s**2))
        p /= p.sum()
        wrong = 0.0
        for r, own in itertools.product((-7, -1, 0, 2, 5), (0.0, 0.3)):
            forth, back = (p @ accept.acceptance(np.float64(sign * r) + k, np.float64(sign * own), scale, m) for sign in (1, -1))
            wrong = max(wrong, abs(forth / (np.exp(r / scale + own) * back) - 1))
        return wrong

    s, m = accept.lattice(scale, variance)
    assert m / scale >= variance > (m - 1) / scale
    assert m * Fraction(scale) <= Fraction(s) ** 2 <= m * Fraction(scale) * (1 + Fraction(1, 2**50))
    assert balance(s, m) < 1e-12
    assert balance(np.sqrt((m + 0.4) * scale), m) > 1e-3


def test_noise_is_that_of_the_receipt_and_no_ratio_is_seen_without():
    plan, held = planned(product()[0], pmdp.Gibbs(3, points=5, steps=[pmdp.Penalty(["a", "b"])]), 1, delta=1e-6)
    state, block, rng = next(states(plan)), stepping(plan), np.random.default_rng(0)
    receipt = mechanisms.Receipt(plan.price.draws, plan.price.cost)
    for _ in range(3):
        sweeps.updated(plan.kernel, block, state, held, plan.price.scale, receipt, rng)
    with pytest.raises(pmdp.Refusal, match="not been paid"):
        sweeps.updated(plan.kernel, block, state, held, plan.price.scale, receipt, rng)


# ---------- draws, step by step (Geweke 2004)
STEPS = [
    (product, (), "a"), (coins, (), "z"), (coins, (), "w"), (coins, (), "t"), (dice, (), "w[0]"),
    (product, [pmdp.Barker(["a", "b"], 0.5)], "a, b"), (coins, [pmdp.Barker("t", 0.5)], "t"), (product, [pmdp.Barker("a", 1.0)], "a"),
    (product, [pmdp.Penalty(["a", "b"], 0.5)], "a, b"), (coins, [pmdp.Penalty("t", 0.5, noise=0.5)], "t"),
]  # fmt: skip


def compared(make, steps, name, many, changed=None):
    """p-value that an update of records and states from their joint law leaves them in it.

    Unknowns and latents come from the prior, records from the likelihood, exactly; then one update is drawn as in a chain. Unlike Geweke's,
    the pairs are independent, so that a chi-squared test over all of them is exact but for its approximation (expected counts of 5).
    """
    y = np.array([1]) if make is dice else np.array([1, 0])
    model, arguments = make(y)
    delta = 1e-6 if any(isinstance(one, pmdp.Penalty) for one in steps) else 0
    plan, held = planned(model, pmdp.Gibbs(1, points=3, steps=steps), 10_000, delta=delta, **arguments)
    assert plan.price.temperature == 1
    (block,) = [block for block in plan.blocks if block.name == name]
    (value,) = [variable for variable in held.exact if variable not in {v for one in plan.kernel.latents for v in one.inputs}]
    records = list(itertools.product((0, 1), repeat=len(y)))
    every = list(states(plan))
    p = np.concatenate([np.exp(log_density(make(np.array(one))[0], plan, every)) for one in records])
    p /= p.sum()
    place = {key(state): k for k, state in enumerate(every)}
    rng = np.random.default_rng(5)
    drawn = rng.choice(len(p), size=many, p=p)
    (paid,) = {one for one in plan.price.draws if one.variable == name} or {None}
    receipt = None if paid is None else mechanisms.Receipt([paid] * many, priced(paid, many))
    counts = np.zeros(len(p))
    for k in drawn:
        which, at = divmod(int(k), len(every))
        now = updates.Held({**held.exact, value: np.array(records[which]).astype(value.type.dtype)}, held.each, held.open, held.sites)
        state = (changed or sweeps.updated)(plan.kernel, block, every[at], now, plan.price.scale, receipt, rng)
        counts[which * len(every) + place[key(state)]] += 1
    expected = p * many
    order = np.argsort(expected)
    groups = np.searchsorted(np.arange(5, 1e9, 5), np.cumsum(expected[order]))
    seen, wanted = np.bincount(groups, counts[order]), np.bincount(groups, expected[order])
    last = wanted >= 2
    return float(chi2.sf(((seen - wanted)[last] ** 2 / wanted[last]).sum(), last.sum() - 1))


def priced(paid, many):
    if paid.pure is None:
        return mechanisms.Cost(Fraction(10**9), Fraction(1, 10), paid.rho * many)
    return mechanisms.Cost(paid.pure * many, rho=paid.rho * many)


@pytest.mark.parametrize(("make", "steps", "name"), mostly_slow(STEPS, 5, 8), ids=lambda one: getattr(one, "__name__", None))
def test_drawn_updates_leave_the_joint_law_of_records_and_states(make, steps, name):
    """400 pairs for every kind of update: false alarms 1e-6 each. Power: see below, of 6,000."""
    assert compared(make, steps, name, 400) > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(("make", "steps", "name"), STEPS, ids=lambda one: getattr(one, "__name__", None))
def test_many_drawn_updates_leave_the_joint_law_of_records_and_states(make, steps, name):
    """False alarms 1e-6 each."""
    assert compared(make, steps, name, 6000) > 1e-6


@pytest.mark.slow
def test_the_comparison_notices_a_step_that_accepts_what_it_likes():
    def always(kernel, block, state, held, scale, receipt, rng):
        block = accept.proposal(kernel, block, state, rng)
        return updates.state_after(kernel, block, state, np.ones(block.rows, dtype=int))

    assert compared(product, [pmdp.Barker(["a", "b"], 0.5)], "a, b", 6000, always) < 1e-6


# ---------- what is charged, and refused
def test_charged_as_shown_with_steps(tmp_path):
    how = pmdp.Gibbs(6, chains=2, burn_in=2, thin=2, points=5, steps=[pmdp.Penalty("t", 0.5)])
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=3, delta=1e-6, create=True)
    inspected = pmdp.inspect(coins()[0], mechanism=how, epsilon=0.5, delta=1e-6)
    shown = inspected.schedule
    assert (shown.pure, shown.asks) == (None, 24)
    assert sum(one.rho for one in shown.updates) * 12 == shown.cost.rho
    tree = pmdp.sample(model=coins()[0], mechanism=how, epsilon=0.5, delta=1e-6, ledger=ledger)
    assert Fraction(tree.attrs["epsilon_exact"]) == shown.cost.epsilon <= Fraction(1, 2)
    assert ledger.entries().iloc[-1].epsilon == pytest.approx(0.5, rel=1e-6)
    assert tree.sample_stats.epsilon.values[-1, -1] == pytest.approx(0.5, rel=1e-6)
    assert list(tree.privacy.statistic.values) == ["Gibbs update", "log-ratio of a move"]
    assert set(tree.sample_stats.data_vars) == {"epsilon"}  # neither what was proposed nor what was accepted


def test_a_chain_of_steps_finds_its_place():
    """At T = 1, of 400 records: 60 Barker steps of both unknowns; each draw within .3 of the truth, which is 5 standard deviations."""
    rng = np.random.default_rng(4)
    with pm.Model() as model:
        pm.Normal("x", pm.Uniform("m", -2, 2), pm.Uniform("s", 0.5, 2), observed=1 + 0.8 * rng.normal(size=400))
    for kind, delta in ((pmdp.Barker, 0), (pmdp.Penalty, 1e-6)):
        how = pmdp.Gibbs(250, burn_in=240, steps=[kind(["m", "s"], 0.06)])
        tree = pmdp.sample(model=model, mechanism=how, epsilon=1e7, delta=delta, bounds={"x": (-4, 5)})
        np.testing.assert_allclose(tree.posterior.m.values, 1, atol=0.3)
        np.testing.assert_allclose(tree.posterior.s.values, 0.8, atol=0.3)


@pytest.mark.parametrize(
    ("steps", "arguments", "words"),
    [
        ([pm.Metropolis], {}, r"accept with probability min\(1, ratio\)"),
        ("a", {}, "must be a list"),
        ([pmdp.Barker("a"), pmdp.Penalty(["b", "a"])], {}, "in two steps"),
        ([pmdp.Penalty("a")], {}, "no pure epsilon"),
        ([pmdp.Penalty("a")], {"epsilon": None, "delta": 1e-6, "each": 1}, "Write a total epsilon"),
        ([pmdp.Barker("c")], {}, "c is none. Write a or b"),
        ([pmdp.Barker("z")], {"make": coins}, "one price for all records"),
        ([pmdp.Barker("w")], {"make": coins}, "its update is free"),
    ],
)
def test_steps_that_are_refused(steps, arguments, words):
    given = {"make": product, "epsilon": 1, "each": None, "delta": 0} | arguments
    make, each = given.pop("make"), given.pop("each")
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.sample(model=make()[0], mechanism=pmdp.Gibbs(3, epsilon_per_update=each, steps=steps), **given)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"names": []}, "names of different unknowns"), ({"names": ["a", "a"]}, "names of different unknowns"),
        ({"names": "a", "width": 0}, "width must be"), ({"names": "a", "width": True}, "width must be"),
        ({"names": "a", "width": np.nan}, "width must be"), ({"names": "a", "noise": 0.001}, "noise must be"),
        ({"names": "a", "noise": np.inf}, "noise must be"),
    ],
    ids=str,
)  # fmt: skip
def test_steps_that_mean_nothing(arguments, words):
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.Penalty(**arguments)


def test_barkers_chance_is_the_logistic_function():
    """Of a model with one record: sigma(r), r from PyMC."""
    model, _ = product(np.array([1]))
    plan, held = planned(model, pmdp.Gibbs(1, points=3, steps=[pmdp.Barker(["a", "b"], 0.5)]), 10_000)
    state = next(states(plan))  # a = b = -1
    for proposed in proposals(plan, stepping(plan), state):
        a, b = proposed.proposed
        r = np.log(expit(2 * a * b)) - np.log(expit(2.0))
        assert chances(plan, proposed, state, held)[0] == pytest.approx(expit(r), abs=1e-5)
        assert plan.price.scale == NAT
