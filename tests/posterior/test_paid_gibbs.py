"""Gibbs sampling that pays at every update: what is charged, what an update can lose, exactly, and what the chain's law is."""

import itertools
from dataclasses import replace
from fractions import Fraction
from functools import reduce

import numpy as np
import pymc as pm
import pytest
from chains import (
    G,
    N,
    Recorded,
    X,
    Y,
    coins,
    coins_left_out,
    dice,
    groups,
    known_groups,
    known_visits,
    mixture,
    neighbours,
    normal,
    numbers_left_out,
    planned,
    posterior,
    product,
    scores,
    seen_twice,
    states,
    task_of,
    transition,
    visits,
)
from checks import flat, mostly_slow
from scipy.special import logsumexp
from scipy.stats import beta, kstest

import pymc_dp as pmdp
from pymc_dp.posterior.paid_gibbs import parts, sweeps, updates
from pymc_dp.posterior.paid_gibbs.costs import price_of
from pymc_dp.posterior.price import NAT
from pymc_dp.privacy import mechanisms
from pymc_dp.privacy.accounting import epsilon_of

pytestmark = pytest.mark.filterwarnings("ignore")


# ---------- the law
def leaves_its_law(model, plan, held):
    """By the transition matrices on all states, every update keeps the flattened posterior, and is reversible in it if it has one round."""
    every = list(states(plan))
    p = posterior(model, plan, every)
    for block in plan.blocks:
        matrix = transition(plan, block, every, held, p > 0)
        np.testing.assert_allclose(matrix.sum(axis=1)[p > 0], 1)
        np.testing.assert_allclose(p @ matrix, p, atol=1e-6)
        flow = p[:, None] * matrix
        if len(updates.rounds_of(plan.kernel, block)) == 1:
            np.testing.assert_allclose(flow, flow.T, atol=1e-6)


LAWS = [
    pytest.param(
        make, epsilon, marks=[pytest.mark.slow] if (epsilon == 10_000 and make not in (product, groups)) or make is seen_twice else []
    )
    for make in (product, coins, groups, known_groups, normal, mixture, visits, known_visits, seen_twice)
    for epsilon in (10_000, 20.0)
]


@pytest.mark.parametrize(("make", "epsilon"), [*LAWS, (dice, 20.0)])
def test_a_sweep_leaves_the_flattened_posterior_as_it_is(make, epsilon):
    """By the transition matrix of every update on all states of a tiny model, against PyMC's own log-densities.

    The posterior is that of the grid, of unknowns and latents together; the prior, that of latents included, keeps its power.
    """
    y = np.array([0.3, -1.1]) if make in (normal, mixture) else np.array([1, 0])
    model, arguments = make(y, np.array([1, 0])) if make is groups else make(y)
    if make is dice:
        model, arguments = dice(y[:1])
    if make is known_groups:
        model, arguments = groups(y, np.array([1, 0]))[0], {"public": ["g"]}
    if make in (visits, known_visits, seen_twice):
        model, arguments = make()
    plan, held = planned(model, pmdp.Gibbs(10, points=3), epsilon, **arguments)
    assert (plan.price.temperature > 1) == (epsilon == 20)
    leaves_its_law(model, plan, held)


EVEN, ORDER = np.array([0.5, 0.5]), np.array([1, 0])


def with_a_table(kind, real):
    """A table that all records share, and with it an index that is not along the records."""
    y, table = np.array([0.3, -1.1]) if real else np.array([1, 0]), np.array([0.2, 0.8])
    arguments = {"bounds": {"y": (-2, 2)}} if real else {}

    def seen(p):
        return pm.Normal("y", p, 1.0, observed=y) if real else pm.Bernoulli("y", p, observed=y)

    with pm.Model() as model:
        if kind == "above latents":
            w, t = pm.Uniform("w", 0.1, 0.9), pm.Uniform("t", 0.1, 0.9, shape=2)
            seen(t[pm.Categorical("z", w * pm.Data("known", table) + (1 - w) * EVEN, shape=2)])
            return model, {**arguments, "public": ["known", EVEN]}
        if kind == "in sums":
            seen((pm.Data("x", np.array([[0, 1], [1, 1]])) * pm.Data("known", table)).sum(-1) * pm.Uniform("a", 0.1, 0.9) + 0.05)
            return model, {"bounds": {**arguments.get("bounds", {}), "x": (0, 1)}, "public": ["known"]}
        t = pm.Uniform("t", 0.1, 0.9, shape=2)
        if kind == "a mean of all":
            seen(t[pm.Data("g", np.array([0, 1]))].mean())
            return model, {**arguments, "public": ["g"]}
        seen(t[ORDER][pm.Data("g", np.array([0, 0]))])
        return model, {**arguments, "public": [ORDER]}


TABLES = [("above latents", False), *((kind, real) for kind in ("in sums", "a mean of all", "another order") for real in (True, False))]


@pytest.mark.parametrize(("kind", "real"), mostly_slow(TABLES, 0, 1, 4, 5))
def test_tables_that_all_records_share(kind, real):
    """The law is that of the model, and what is charged is delivered. Through an index that all share each record may read every entry."""
    model, arguments = with_a_table(kind, real)
    plan, held = planned(model, pmdp.Gibbs(10, points=3), 20.0, **arguments)
    if kind in ("a mean of all", "another order"):
        assert [block.name for block in plan.blocks] == ["t[0]", "t[1]"]
    leaves_its_law(model, plan, held)
    assert pmdp.sample(model=model, mechanism=pmdp.Gibbs(2, points=3), epsilon=1, **arguments).posterior.sizes["draw"] == 2


# ---------- what an update can lose, exactly
@pytest.mark.parametrize(
    "make",
    mostly_slow(
        [product, coins, coins_left_out, groups, known_groups, normal, numbers_left_out, mixture, visits, known_visits], 0, 2, 3, 7, 8
    ),
)
def test_no_update_loses_more_than_its_price_and_some_state_attains_most_of_it(make):
    """From the integer scores at every state: the log-ratio of the probabilities of any outcome between neighbours, added over rows."""
    several = [planned(model, pmdp.Gibbs(2, points=3), 0.1, **arguments) for model, arguments in neighbours(make)]
    assert len({plan.price.draws for plan, _ in several}) == 1
    for place, block in enumerate(several[0][0].blocks):
        if not block.sensitivity:
            continue
        worst, used = 0.0, 0
        for state in states(several[0][0]):
            found = [scores(plan, plan.blocks[place], state, held) for plan, held in several]
            laws = [(one / plan.price.scale) for one, (plan, _) in zip(found, several, strict=True)]
            laws = [one - logsumexp(one, axis=1, keepdims=True) for one in laws]
            for k, j in itertools.combinations(range(len(several)), 2):
                worst = max(worst, float(np.abs(laws[k] - laws[j]).max(axis=1).sum()))
                used = max(used, int(np.ptp(found[k] - found[j], axis=1).sum()))
        paid = next(one.pure for one in several[0][0].price.draws if one.variable == block.name)
        assert used <= block.sensitivity
        assert worst <= float(paid) * (1 + 1e-9)
        assert used > {normal: 0.4, numbers_left_out: 0.4, mixture: 0.8}.get(make, 0.98) * block.sensitivity


@pytest.mark.parametrize("share", [0.02, pytest.param(0.2, marks=pytest.mark.slow)])
def test_parts_of_a_likelihood_are_paid_for_one_by_one(share):
    """One part is listed, the other bounded. What a block pays is the sum over the parts that rest on it, and no neighbour of another
    time, coin and number, however large, moves it by more.
    """
    changed = itertools.product((0, 1), (-2.0, 1e300), (0, 1))
    make = [seen_twice((1, y), (0.3, x), time=(1, time)) for y, x, time in changed]
    several = [planned(model, pmdp.Gibbs(2, points=3), 0.1, **arguments) for model, arguments in make]
    (plan, _), rng = several[0], np.random.default_rng(5)
    assert [part.whole is None for part in plan.kernel.parts] == [False, True]
    own = {block.name: [eta > 0 for eta in block.sensitivities] for block in plan.blocks}
    assert own == {"z": [True, True], "t": [True, False], "m": [False, True], "s": [True, True]}
    every = [state for state in states(plan) if rng.random() < share]
    for place, block in enumerate(plan.blocks):
        used = 0
        for state in every:
            found = np.array([updates.records_part(one.kernel, one.blocks[place], state, held) for one, held in several])
            used = max(used, *(int(np.ptp(a - b, axis=-1).sum()) for a, b in itertools.combinations(found, 2)))
        assert 0.3 * block.sensitivity < used <= block.sensitivity
        assert all(one.blocks[place].sensitivities == block.sensitivities for one, _ in several)


def test_an_entry_is_read_where_the_index_points():
    """Whatever private columns hold, and in rows before columns."""
    with pm.Model() as model:
        place, time = pm.Data("place", np.array([1, 0, 9, -1, 1])), pm.Data("time", np.array([2, 1, 0, 1, -7]))
        state = pm.Bernoulli("z", 0.5, shape=(2, 3))[place, time]
        pm.Bernoulli("y", pm.Uniform("t", 0.1, 0.9, shape=2)[state], observed=Y[:5])
    _, held = planned(model, pmdp.Gibbs(1, points=3), 1)
    np.testing.assert_array_equal(held.sites[0], [5, 1, 3, 4, 3])


@pytest.mark.parametrize("make", mostly_slow([product, coins, groups, visits, known_visits], 0, 3))
def test_the_whole_chain_loses_no_more_than_was_charged_and_uses_much_of_it(make):
    """The exact law of what is released, both sweeps kept, between all neighbours: records' own latents summed out, from the same start."""
    several = []
    for model, arguments in neighbours(make):
        plan, held = planned(model, pmdp.Gibbs(2, points=3), 1, **arguments)
        every = list(states(plan))
        sweep = reduce(np.matmul, [transition(plan, block, every, held) for block in plan.blocks])
        told = [k for k, latent in enumerate(plan.kernel.latents) if latent.sites is not None]
        seen = [np.concatenate([state.numbers, *(state.latents[k] for k in told)]) for state in every]
        numbers = np.unique(seen, axis=0, return_inverse=True)[1].ravel()
        shown = [numbers == k for k in range(numbers.max() + 1)]
        first = [np.full(len(every), 1 / len(every)) @ sweep * one for one in shown]
        several.append(np.array([[(once @ sweep)[one].sum() for one in shown] for once in first]))
        np.testing.assert_allclose(several[-1].sum(), 1)
    worst = max(np.abs(np.log(one / other)).max() for one, other in itertools.combinations(several, 2))
    assert worst <= float(plan.price.cost.epsilon) * (1 + 1e-9)
    assert worst > 0.2


def test_what_a_record_can_do_is_enforced_and_not_only_believed(monkeypatch):
    """Where certified bounds are half as wide as they should be, the price halves and records are clipped to that. Where all records are
    listed, an update whose range is not what was paid for is not made.
    """
    wide, held = planned(mixture()[0], pmdp.Gibbs(2, points=3), 0.1, bounds={"x": (-2, 2)})
    of = parts.ranges

    def narrower(*given, **named):
        found = of(*given, **named)
        return replace(found, least=found.least / 2, most=found.most / 2)

    monkeypatch.setattr(parts, "ranges", narrower)
    several = [planned(mixture(np.array([0.4, x]))[0], pmdp.Gibbs(2, points=3), 0.1, bounds={"x": (-2, 2)}) for x in (-2.0, 2.0)]
    for place, block in enumerate(several[0][0].blocks):
        assert block.sensitivity == pytest.approx(wide.blocks[place].sensitivity / 2, rel=1e-3)
        used = 0
        for state in states(several[0][0]):
            first, second = (scores(plan, plan.blocks[place], state, held) for plan, held in several)
            used = max(used, int(np.ptp(first - second, axis=1).sum()))
        assert used <= block.sensitivity
        assert not block.sensitivity or used > 0.3 * block.sensitivity
    plan, held = planned(product()[0], pmdp.Gibbs(2, points=3), 0.1)
    cheaper = replace(plan.blocks[0], sensitivities=(plan.blocks[0].sensitivity // 2,))
    with pytest.raises(RuntimeError, match="than what was paid for"):
        scores(plan, cheaper, next(states(plan)), held)


def blocks_of(model, **arguments):
    return {one.name: one for one in pmdp.inspect(model, mechanism=pmdp.Gibbs(1, points=11), epsilon=1, **arguments).schedule.updates}


def test_ranges_are_those_of_theory():
    """theory.md, Gibbs composition. Two blocks of sigma(2 a b) cost 4 each, where the whole costs 2 C = 4. With coins in [.1, .5] a record
    that stays with its coin moves it by log 9, and one that may move to another by both oscillations: 2 log 5.
    """
    ranges = {name: one.range for name, one in blocks_of(product()[0]).items()}
    assert ranges == {"a": pytest.approx(4, abs=1e-4), "b": pytest.approx(4, abs=1e-4)}
    for (model, arguments), eta in ((groups(), 2 * np.log(5)), (known_groups(), np.log(9))):
        (t,) = blocks_of(model, **arguments).values()
        assert (t.name, t.choices, t.range) == ("t", 2, pytest.approx(eta, abs=1e-4))
    scan = blocks_of(coins()[0])
    assert (scan["z"].choices, scan["z"].range) == (N, pytest.approx(2 * np.log(9), abs=1e-4))  # one price for all records
    assert scan["w"].epsilon == 0  # it reads latents only
    assert blocks_of(mixture()[0], **mixture()[1])["m"].range >= 2 * 4 / 0.8**2


def spread_by_state(cell):
    with pm.Model() as model:
        state = pm.Bernoulli("z", 0.5, shape=2)[pm.Data("cell", np.array(cell))]
        deviation = pm.math.switch(pm.math.eq(state, 0), 0.1, 10.0)
        pm.Normal("x", pm.Uniform("m", -0.01, 0.01), deviation, observed=np.array([0.1, -0.1]))
    return model, {"bounds": {"x": (-0.1, 0.1)}}


def test_states_and_numbers_cost_both_where_a_record_may_move():
    """2 log 5 instead of log 9, as for numbers that records read by an index of their own; and of bounds, those of all states together.

    In the last model the states differ by log 100, and at one state no two records by more than 1.
    """
    for (model, arguments), eta in ((visits(), 2 * np.log(5)), (known_visits(), np.log(9))):
        found = blocks_of(model, **arguments)
        assert found["z"].range == found["t"].range == pytest.approx(eta, abs=1e-4)
    several = [planned(model, pmdp.Gibbs(2, points=3), 0.1, **arguments) for model, arguments in map(spread_by_state, [(0, 0), (0, 1)])]
    plan, _ = several[0]
    for place, block in enumerate(plan.blocks):
        used = 0
        for state in states(plan):
            first, second = (updates.records_part(one.kernel, one.blocks[place], state, held) for one, held in several)
            used = max(used, int(np.ptp(first - second, axis=1).sum()))
        assert used <= block.sensitivity
        assert block.latent is None or used > 8 * NAT


@pytest.mark.parametrize(
    "prior",
    [lambda: pm.Truncated("t", pm.Beta.dist(2, 2), 0.2, 0.8), lambda: pmdp.TrimmedBeta("t", 2, 2, smallest=0.2)],
    ids=["pm", "trimmed"],
)
def test_truncated_supports_bound_what_a_record_does(prior):
    """theory.md, equation 15: C = log(.8 / .2) of a coin truncated to [.2, .8], and 2 C is attained."""
    with pm.Model() as model:
        pm.Bernoulli("y", prior(), observed=Y)
    assert blocks_of(model)["t"].range == pytest.approx(2 * np.log(4), abs=1e-4)


def test_draws_of_one_unknown_are_those_of_the_closed_posterior():
    """500 sweeps of a coin's chance alone are 500 independent draws: Kolmogorov and Smirnov against the truncated Beta law, flattened.

    The steps of the grid are .008 wide, which moves the distribution function by .02; the distance is below .13 but once in a million.
    """
    y = np.repeat([0, 1], [30, 10])
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Uniform("t", 0.1, 0.9), observed=y)
    for epsilon in (10_000, 500 * 2 * np.log(9) / 4):
        tree = pmdp.sample(model=model, mechanism=pmdp.Gibbs(500), epsilon=epsilon)
        T = tree.privacy.attrs["temperature"]
        assert pytest.approx(1 if epsilon == 10_000 else 4, rel=1e-5) == T
        for scale, near in ((T, True), (5 * T, False)):
            law = beta(1 + 10 / scale, 1 + 30 / scale)
            low, high = law.cdf(0.1), law.cdf(0.9)
            found = kstest(tree.posterior.t.values.ravel(), lambda t, law=law, low=low, high=high: (law.cdf(t) - low) / (high - low))
            assert (found.statistic < 0.13) == near


def hierarchy(kind):
    """Vectors whose entries are not independent given everything else."""
    with pm.Model() as model:
        if kind == "under another":
            t = pm.Uniform("t", 0.1, 0.9, shape=2)
            pm.Potential("close", -((t[0] - t[1]) ** 2))
            pm.Bernoulli("y", t[pm.Data("g", G)], observed=Y)
        elif kind == "two entries a record":
            t = pm.Uniform("t", 0.1, 0.9, shape=2)
            pm.Bernoulli("y", t[pm.Data("g", G)] * t[pm.Data("h", Y)], observed=Y)
        elif kind == "all at once":
            t = pm.Uniform("t", 0.1, 0.9, shape=2)
            pm.Bernoulli("y", t[pm.Data("g", G)] * t.mean(), observed=Y)
        else:
            t = pm.Uniform("t", 0.1, 0.9, shape=2)
            z = pm.Bernoulli("z", t[0], shape=N)
            pm.Bernoulli("y", t[z], observed=Y)
    return model


@pytest.mark.parametrize("kind", ["under another", "two entries a record", "all at once", "above latents"])
def test_entries_are_drawn_together_only_where_they_are_independent(kind):
    """Otherwise each is an update of its own, and its own price."""
    names = [name for name in blocks_of(hierarchy(kind)) if name != "z"]
    assert names == ["t[0]", "t[1]"]


# ---------- what is charged
def test_the_charge_is_the_exact_sum_over_every_update_that_was_made(monkeypatch):
    """240 random schedules, some of them of private steps: every update that asks the records, of all chains, burn-in and thinned sweeps
    included, and no other.
    """
    monkeypatch.setattr(sweeps, "START", 1)
    rng = np.random.default_rng(1)
    several = [planned(make(Y[:2])[0], pmdp.Gibbs(1, points=3), 1) for make in (product, coins)]
    for step in (pmdp.Barker, pmdp.Penalty):
        several.append(planned(product(Y[:2])[0], pmdp.Gibbs(1, points=3, steps=[step(["a", "b"])]), 1, delta=1e-6))
    task = task_of(product()[0], pmdp.Gibbs(1), 1)
    for k in range(240):
        kind = (0, 0, 1, 0, 2, 0, 3, 0)[k % 8]
        plan, held = several[kind]
        chains, burn_in, thin, kept = (int(rng.integers(low, high)) for low, high in ((1, 3), (0, 2), (1, 3), (1, 3)))
        each = Fraction(int(rng.integers(1, 2000)), 100) if kind < 3 and rng.random() < 0.5 else None
        total, delta = Fraction(int(rng.integers(1, 20_000)), 100), Fraction(1, 10**6) if kind == 3 or rng.random() < 0.3 else Fraction(0)
        how = pmdp.Gibbs(burn_in + thin * kept, chains, burn_in, thin, epsilon_per_update=each)
        noise = mechanisms.Gaussian() if delta else mechanisms.Laplace()
        price = price_of(replace(task, mechanism=how, total=noise.total(each or total, delta), delta=delta), plan.blocks)
        receipt = Recorded(price.draws, price.cost)
        walked = [sweeps.chain_states(replace(plan, price=price), how, held, receipt) for _ in range(chains)]
        assert [len(one) for one in walked] == [kept] * chains
        assert len(receipt.struck) == (2, 2, 1, 1)[kind] * chains * how.sweeps
        assert price.cost.rho == receipt.rho
        assert price.cost.delta or price.cost.epsilon == receipt.spent
        assert price.scale >= NAT
        if each is None:
            assert price.cost.epsilon <= total
        else:
            assert all(one.pure <= each for one in price.draws)
        with pytest.raises(pmdp.Refusal, match="not been paid"):  # one sweep more than was paid for
            sweeps.chain_states(replace(plan, price=price), pmdp.Gibbs(1), held, receipt)


@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize(
    "how", [pmdp.Gibbs(6, chains=2, burn_in=2, thin=2, points=5), pmdp.Gibbs(7, epsilon_per_update=0.01, points=5)], ids=["total", "each"]
)
def test_the_ledger_the_schedule_and_the_tree_say_the_same(how, delta, tmp_path):
    epsilon = 0.5 if how.epsilon_per_update is None else None
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=3, delta=1e-6, create=True)
    inspected = pmdp.inspect(coins()[0], mechanism=how, epsilon=epsilon, delta=delta)
    shown = inspected.schedule
    tree = pmdp.sample(model=coins()[0], mechanism=how, epsilon=epsilon, delta=delta, ledger=ledger)
    assert Fraction(tree.attrs["epsilon_exact"]) == shown.cost.epsilon
    entry = ledger.entries().iloc[-1]
    assert entry.epsilon == pytest.approx(float(shown.cost.epsilon), rel=1e-9)
    assert tree.sample_stats.epsilon.values[-1, -1] == pytest.approx(tree.attrs["epsilon"], rel=1e-3 if delta else 1e-15)
    assert (np.diff(tree.sample_stats.epsilon.values.ravel()) > 0).all()
    assert tree.privacy.attrs["asks"] == shown.asks == 2 * how.rounds
    if not delta:
        assert shown.pure == shown.cost.epsilon
        first = tree.sample_stats.epsilon.values[0, 0]
        assert first == pytest.approx(float(shown.pure) * (how.burn_in + how.thin) / how.rounds)
    assert f"cost epsilon {float(shown.cost.epsilon):.6g}" in flat(inspected)
    assert flat(shown) in flat(inspected)
    assert f"cost epsilon {float(shown.cost.epsilon):.6g}" in " ".join(inspected._repr_html_().split())


def test_paid_per_update_is_the_least_flattening_that_keeps_each_to_its_price():
    for each, T in ((100, 1), (0.5, 2 * np.log(9) / 0.5)):
        shown = pmdp.inspect(coins()[0], mechanism=pmdp.Gibbs(3, epsilon_per_update=each, points=5)).schedule
        assert shown.temperature == pytest.approx(T, rel=1e-5)
        assert max(one.epsilon for one in shown.updates) <= each


def test_two_updates_of_one_name_are_two_prices(tmp_path):
    """Entries of t are called t[0] and t[1], and so is another unknown, which can move a record by as much as it likes."""
    with pm.Model() as model:
        t = pm.Uniform("t", 0.1, 0.9, shape=2)
        pm.Bernoulli("y", t[0] * t[1] * pm.Uniform("t[0]", 0.1, 0.2), observed=Y)
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=2, create=True)
    for how in (pmdp.Gibbs(2, points=3), pmdp.Annealing(3, points=3)):
        shown = pmdp.inspect(model, mechanism=how, epsilon=0.9).schedule
        ranges = {one.range: one for one in shown.updates if one.name.startswith("t[0]")}
        assert len(ranges) == (2 if isinstance(how, pmdp.Gibbs) else 4)
        assert all(one.epsilon == pytest.approx(eta / shown.temperature) for eta, one in ranges.items())
        assert shown.pure == shown.cost.epsilon
        tree = pmdp.sample(model=model, mechanism=how, epsilon=0.9, ledger=ledger)
        assert set(tree.posterior.data_vars) == {"t", "t[0]"}


def test_where_nothing_is_flattened_the_cheaper_of_both_sums_is_charged():
    """With a delta: 400 of many sweeps would be more than their 303 in zCDP, and 8 of one sweep are less than its 28."""
    for sweeps_, concentrated in ((50, True), (1, False)):
        shown = pmdp.inspect(product()[0], mechanism=pmdp.Gibbs(sweeps_, points=3), epsilon=350, delta=1e-6).schedule
        together = epsilon_of(sweeps_ * sum(one.rho for one in shown.updates), Fraction(1, 10**6))
        assert shown.temperature == 1
        assert (together < shown.pure) == concentrated
        assert shown.cost.epsilon == min(together, shown.pure)
        assert shown.cost.delta == (Fraction(1, 10**6) if concentrated else 0)


@pytest.mark.parametrize("k", [3, 7, 56])
def test_large_bounds_are_compared_exactly(k):
    """Beyond 2^53 differences of doubles are rounded, in these cases down."""
    rng = np.random.default_rng(k)
    s, b, u = (float(rng.uniform(low, high)) for low, high in ((0.0003, 0.002), (300, 900), (0.5, 100.5)))
    with pm.Model() as model:
        pm.Normal("x", pm.Uniform("a", -u, u * rng.uniform(0.2, 1)), s, observed=np.array([0.3, 0.1]))
    plan, _ = planned(model, pmdp.Gibbs(1, points=3), 900_000.0, bounds={"x": (-b * rng.uniform(0.2, 1), b)})
    (bounds,) = plan.kernel.parts[0].bounds
    widest = max(Fraction(most) - Fraction(least) for most, least in zip(NAT * bounds.most, NAT * bounds.least, strict=True))
    assert plan.blocks[0].sensitivity >= 2 * widest > 2**54


# ---------- missing values
WHOLE, MISSING = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.0, 1.0, np.nan, 1.0])


def counted(kind, y):
    """Counts that are all there, or some of them missing: PyMC puts a variable of integers in their place."""
    with pm.Model() as model:
        p = pm.Uniform("p", 0.2, 0.8)
        if kind == "Bernoulli":
            pm.Bernoulli("y", p, observed=y)
        elif kind == "Categorical":
            pm.Categorical("y", pm.math.stack([p, 1 - p]), observed=y)
        elif kind == "Binomial":
            pm.Binomial("y", 2, p, observed=y)
        elif kind == "Poisson":
            pm.Poisson("y", p, observed=y)
        elif kind == "beside latents":
            pm.Bernoulli("y", pm.Uniform("t", 0.1, 0.9, shape=2)[pm.Bernoulli("z", p, shape=len(y))], observed=y)
        elif kind == "labels":
            pm.Bernoulli("x", pm.Uniform("t", 0.1, 0.9, shape=2)[pm.Bernoulli("y", p, observed=y)], observed=np.array([0, 1, 1, 0]))
        else:
            z = pm.Bernoulli("z", pm.Uniform("t", 0.1, 0.9, shape=2)[pm.Bernoulli("y", p, observed=y)], shape=len(y))
            pm.Bernoulli("x", pm.Uniform("u", 0.1, 0.9, shape=2)[z], observed=np.array([0, 1, 1, 0]))
    return model, {"bounds": {"y": (0, 3)}} if kind == "Poisson" else {}


def outcome(make, how, tmp_path):
    """All that does not rest on what is drawn."""
    shown, ledger = [], pmdp.Ledger(tmp_path, epsilon=2, create=True)
    model, arguments = make()
    for act in (
        lambda: repr(pmdp.inspect(model, mechanism=how, epsilon=1, **arguments)),
        lambda: pmdp.sample(model=model, mechanism=how, epsilon=1, ledger=ledger, **arguments),
    ):
        try:
            shown.append(act())
        except Exception as error:
            shown.append((type(error).__name__, str(error)))
    tree = shown.pop()
    if not isinstance(tree, tuple):
        attributes = {name: value for name, value in tree.privacy.attrs.items() if name not in ("ledger_head", "privacy_digests")}
        tree = tree.posterior.sizes, list(tree.posterior.data_vars), tree.privacy.to_dataset().to_dataframe().to_dict(), attributes
    return shown, tree, ledger.remaining().epsilon


def own_names(y):
    """The names that PyMC gives to what is there and what is missing of y, chosen by the user for other things."""
    with pm.Model() as model:
        z, t = pm.Bernoulli("y_unobserved", 0.5, shape=len(y)), pm.Uniform("t", 0.1, 0.9, shape=2)
        pm.Deterministic("y", 2 * t)
        pm.Bernoulli("y_observed", t[z], observed=y)
    return model, {}


def test_no_missing_value_shows_whatever_things_are_called(tmp_path):
    shown = [outcome(lambda y=y: own_names(y), pmdp.Gibbs(1, points=3), tmp_path / str(y[2])) for y in (WHOLE, MISSING)]
    assert shown[0] == shown[1]
    assert shown[0][2] == pytest.approx(1)


KINDS = ["Bernoulli", "Categorical", "Binomial", "Poisson", "beside latents", "labels", "labels above latents"]


@pytest.mark.parametrize(("kind", "how"), [*((kind, pmdp.Gibbs(1, points=3)) for kind in KINDS), ("labels", pmdp.Annealing(2, points=3))])
def test_no_missing_value_shows(kind, how, tmp_path):
    """Neither in a refusal, nor in what is asked and charged, nor in the names of what comes back; however many are missing."""
    others = [MISSING, np.full(4, np.nan), np.ma.masked_equal([0, 1, 1, 1], 0)]
    expected = outcome(lambda: counted(kind, WHOLE), how, tmp_path / "whole")
    assert expected[2] == pytest.approx(1)  # charged, so it was not refused
    for k, y in enumerate(others if kind == "Bernoulli" else others[:1]):
        assert outcome(lambda y=y: counted(kind, y), how, tmp_path / str(k)) == expected


# ---------- what comes back
def test_the_tree_has_chains_dims_and_no_latent():
    with pm.Model(coords={"coin": ["a", "b"], "row": np.arange(N)}) as model:
        t = pm.Uniform("t", 0.1, 0.9, dims="coin")
        z = pm.Bernoulli("z", pm.Uniform("w", 0.1, 0.9), dims="row")
        pm.Deterministic("gap", t[1] - t[0])
        pm.Deterministic("own", t[z])
        pm.Bernoulli("y", t[z], observed=Y, dims="row")
    tree = pmdp.sample(model=model, mechanism=pmdp.Gibbs(5, chains=3, burn_in=1, thin=2, points=5), epsilon=10)
    assert set(tree.children) == {"posterior", "sample_stats", "privacy"}
    assert set(tree.posterior.data_vars) == {"t", "w", "gap"}
    assert tree.posterior.t.dims == ("chain", "draw", "coin")
    assert (tree.posterior.sizes["chain"], tree.posterior.sizes["draw"]) == (3, 2)
    assert list(tree.posterior.coin.values) == ["a", "b"]
    assert all(N not in group.sizes.values() and "row" not in group.coords for group in tree.subtree)
    assert set(tree.sample_stats.data_vars) == {"epsilon"}
    assert np.isin(np.rint((tree.posterior.t.values - 0.1) / 0.2), range(5)).all()
    assert tree.attrs["promise"] == "certified"


def test_a_chain_finds_a_mixture():
    """At T = 1, of 400 records: both means within .25 of the truth in every draw after ten sweeps; each is off by .05 (1 sd)."""
    rng = np.random.default_rng(3)
    x = np.where(rng.random(400) < 0.3, 1.5, -1.0) + 0.5 * rng.normal(size=400)
    with pm.Model() as model:
        m = pm.Uniform("m", -2, 2, shape=2)
        pm.Normal("x", m[pm.Bernoulli("z", pm.Beta("w", 2, 2), shape=400)], 0.5, observed=x)
    tree = pmdp.sample(model=model, mechanism=pmdp.Gibbs(20, burn_in=14), epsilon=1e6, bounds={"x": (-3, 3)})
    assert tree.privacy.attrs["temperature"] == 1
    np.testing.assert_allclose(np.sort(tree.posterior.m.values[0], axis=-1), [[-1.0, 1.5]] * 6, atol=0.25)
    share = np.where(tree.posterior.m.values[0, :, 0] < 0, tree.posterior.w.values[0], 1 - tree.posterior.w.values[0])
    np.testing.assert_allclose(share, 0.3, atol=0.15)


# ---------- refusals
def infinite():
    with pm.Model() as model:
        pm.Normal("x", pm.Normal("m"), 1.0, observed=X)
    return model


def simplex():
    with pm.Model() as model:
        pm.Categorical("y", pmdp.TrimmedDirichlet("p", np.ones(2), smallest=0.1), observed=Y)
    return model


def simplex_on_records():
    """How frequent the levels of a latent are rests on what is private."""
    with pm.Model() as model:
        w = pmdp.TrimmedDirichlet("w", np.ones((2, 2)), smallest=0.1)
        z = pm.Categorical("z", w[pm.Data("g", G)], shape=N)
        pm.Bernoulli("y", pm.Uniform("t", 0.1, 0.9, shape=2)[z], observed=Y)
    return model


def in_order():
    with pm.Model() as model:
        t = pm.Uniform("t", 0.1, 0.9, shape=2, transform=pm.distributions.transforms.ordered)
        pm.Bernoulli("y", t[pm.Bernoulli("z", 0.5, shape=N)], observed=Y)
    return model


def to_the_ends():
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("t", 1, 1, shape=2)[pm.Bernoulli("z", 0.5, shape=N)], observed=Y)
    return model


def latent_counts():
    with pm.Model() as model:
        pm.Normal("x", pm.Poisson("z", 2.0, shape=N) * pm.Uniform("m", -1, 1), 1.0, observed=X)
    return model


def short_latents():
    with pm.Model() as model:
        pm.Normal("x", (pm.Bernoulli("z", 0.5, shape=2) * pm.Uniform("m", -1, 1))[G], 1.0, observed=X)
    return model


def twice_read():
    with pm.Model() as model:
        z, t = pm.Bernoulli("z", 0.5, shape=2), pm.Uniform("t", 0.1, 0.9, shape=2)
        pm.Bernoulli("y", t[z[pm.Data("g", G)]], observed=Y)
        pm.Bernoulli("w", t[z[pm.Data("h", 1 - G)]], observed=Y)
    return model


def read_by_a_prior():
    with pm.Model() as model:
        z, t = pm.Bernoulli("z", 0.5, shape=2), pm.Uniform("t", 0.1, 0.9, shape=2)
        own = z[pm.Data("g", G)]
        pm.Bernoulli("y", t[own] * t[pm.Bernoulli("v", t[own], shape=N)], observed=Y)
    return model


def read_by_the_prior_of_an_own_latent():
    with pm.Model() as model:
        z, t = pm.Bernoulli("z", 0.5, shape=2), pm.Uniform("t", 0.1, 0.9, shape=2)
        own = pm.Bernoulli("v", 0.1 + 0.4 * z.sum(), shape=N)
        pm.Bernoulli("y", t[z[pm.Data("g", G)]] * t[own], observed=Y)
    return model


def shared_states(prior):
    def make():
        with pm.Model() as model:
            pm.Bernoulli("y", pm.Uniform("t", 0.1, 0.9, shape=2)[prior()[pm.Data("g", G)]], observed=Y)
        return model

    return make


def unlimited():
    return pm.Poisson("z", 1.0, shape=2)


def three_together():
    z = pm.Bernoulli("z", 0.5, shape=3)
    pm.Potential("w", 1.0 * z[0] * z[1] * z[2])
    return z


def in_a_circle():
    z = pm.Bernoulli("z", 0.5, shape=3)
    pm.Potential("w", pm.math.sum(1.0 * z * pm.math.stack([z[1], z[2], z[0]])))
    return z


def a_name_twice(kind):
    """Draws have a dim for every axis of a vector, t_dim_0 where it has no name."""
    with pm.Model(coords={"t_dim_0" if kind == "of two dims" else "three": [1, 2, 3]}) as model:
        t = pm.Uniform("t", 0.1, 0.9, shape=2)
        if kind == "of a dim that is made":
            other = pm.Uniform("t_dim_0", 0.1, 0.9)
        elif kind == "of a deterministic variable":
            other = pm.Uniform("u", 0.1, 0.9)
            pm.Deterministic("t_dim_0", 2 * other)
        else:
            other = pm.Uniform("u", 0.1, 0.9, dims="t_dim_0")[0]
        pm.Bernoulli("y", t[pm.Data("g", Y)] * other, observed=Y)
    return model


@pytest.mark.parametrize("how", [pmdp.Gibbs(2, points=3), pmdp.PosteriorSample(points=3)], ids=["gibbs", "at once"])
@pytest.mark.parametrize("kind", ["of a dim that is made", "of a deterministic variable", "of two dims"])
def test_names_that_draws_would_have_twice(kind, how, tmp_path):
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=1, create=True)
    if kind == "of two dims" and isinstance(how, pmdp.PosteriorSample):
        how = pmdp.PosteriorSample(points=3, method="mcmc")  # of five numbers
    with pytest.raises(pmdp.Refusal, match="t_dim_0 already" if kind == "of two dims" else "t_dim_0 is the name of a dim"):
        pmdp.sample(model=a_name_twice(kind), mechanism=how, epsilon=1, ledger=ledger)
    with pytest.raises(pmdp.Refusal, match="t_dim_0"):
        pmdp.inspect(a_name_twice(kind), mechanism=pmdp.Gibbs(2, points=3), epsilon=1)
    assert ledger.remaining().epsilon == 1


@pytest.mark.parametrize(
    ("model", "arguments", "words"),
    [
        (lambda: coins()[0], {"neighbours": "add_remove"}, 'Write neighbours="replace"'),
        (lambda: coins()[0], {"random_seed": 1}, "cannot be seeded"),
        (lambda: coins()[0], {"step": "Metropolis"}, "no epsilon covers"),
        (lambda: coins()[0], {"epsilon": None}, "epsilon must be a positive"),
        (lambda: coins()[0], {"draws": 7}, r"Gibbs\(sweeps=7\)"),
        (lambda: coins()[0], {"mechanism": pmdp.Gibbs(3, epsilon_per_update=1)}, "two ways"),
        (lambda: coins()[0], {"unit": "individual"}, "protect single rows"),
        (lambda: coins()[0], {"epsilon": 1e-12}, "Write a larger epsilon|Narrow the priors"),
        (infinite, {"bounds": {"x": (-1, 1)}}, "has no largest value"),
        (simplex, {}, "depend on each other"),
        (simplex_on_records, {"mechanism": pmdp.Gibbs(3, points=3)}, "depend on each other"),
        (in_order, {}, "sort what was drawn"),
        (to_the_ends, {}, "Truncate them"),
        (latent_counts, {"bounds": {"x": (-1, 1), "z": (0, 5)}}, "pm.Categorical or pm.Bernoulli"),
        (twice_read, {}, "by more than one index"),
        (read_by_a_prior, {}, "stands above a prior as well"),
        (read_by_the_prior_of_an_own_latent, {}, "stands above a prior as well"),
        (shared_states(unlimited), {}, "Write pm.Categorical or pm.Bernoulli"),
        (shared_states(three_together), {}, "ties three of its entries together"),
        (shared_states(in_a_circle), {}, "in a circle. Write a chain or a tree"),
        (lambda: visits()[0], {"mechanism": pmdp.Annealing(2, 2)}, "Sum them out"),
        (short_latents, {"bounds": {"x": (-1, 1)}}, "row per record|free parameter per record|Give"),
        (lambda: mixture()[0], {}, "needs bounds"),
    ],
)  # fmt: skip
def test_refused_in_words_before_anything_is_paid(model, arguments, words, tmp_path):
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=10, create=True, neighbours=arguments.get("neighbours", "replace"))
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.sample(model=model(), ledger=ledger, **{"epsilon": 1.0, "mechanism": pmdp.Gibbs(3)} | arguments)
    assert ledger.remaining().epsilon == 10


def test_metropolis_on_records_is_refused():
    """Accepting with min(1, ratio) has no finite loss: what is surely accepted with one record may be rejected with another (theory.md)."""
    model, _ = coins()
    with pytest.raises(pmdp.Refusal, match=r"accepts with probability min\(1, ratio\)"):
        pmdp.sample(model=model, mechanism=pmdp.Gibbs(3), epsilon=1, step=pm.Metropolis(model=model))


def test_inspect_prices_only_what_pays_as_it_goes():
    with pytest.raises(pmdp.Refusal, match="Gibbs"):
        pmdp.inspect(coins()[0], mechanism=pmdp.PosteriorSample(), epsilon=1)
    assert pmdp.inspect(coins()[0], epsilon=1).schedule is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"sweeps": 0}, "positive integer"), ({"sweeps": 5, "chains": True}, "positive integer"),
        ({"sweeps": 5, "burn_in": -1}, "0 or more"),
        ({"sweeps": 5, "burn_in": 5}, "not kept"), ({"sweeps": 6, "burn_in": 1, "thin": 2}, "not kept"),
        ({"sweeps": 5, "epsilon_per_update": -1}, "positive finite"), ({"sweeps": 5, "points": 2}, "points must be"),
    ],
    ids=str,
)  # fmt: skip
def test_schedules_that_mean_nothing(arguments, words):
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.Gibbs(**arguments)


@pytest.mark.parametrize("request_", [pmdp.Gibbs(2, points=5), pmdp.Annealing(2, points=5)], ids=["gibbs", "annealing"])
def test_lengths_do_not_show_where_the_number_of_records_is_private(request_):
    words = []
    for n in (5, 6):
        with pm.Model() as model:
            b = pm.Uniform("b", -1, 1)
            pm.Bernoulli("y", logit_p=b * pm.Data("x", np.arange(5) % 2), observed=np.arange(n) % 2)
        with pytest.raises(pmdp.Refusal) as caught:
            pmdp.inspect(model, mechanism=request_, epsilon=2.0, neighbours="add_remove", bounds={"x": (0, 1)})
        words.append(str(caught.value))
    assert words[0] == words[1]
