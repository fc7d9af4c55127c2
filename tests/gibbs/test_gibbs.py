"""Exact conditional draws: against enumeration, against closed posteriors, and against the joint distribution.

Draws are compared with exact probabilities by Pearson's statistic; a false alarm of one comparison has probability 1e-6.
"""

import subprocess
import sys
from itertools import pairwise, product

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from checks import check_frequencies, mostly_slow
from pymc.blocking import DictToArrayBijection, RaveledVars
from pymc.pytensorf import gradient

from pymc_dp.gibbs import forward_backward, marginal_likelihood
from pymc_dp.gibbs.chains import smoothed
from pymc_dp.gibbs.collapsed import CollapsedForwardBackward, collapsed_transitions
from pymc_dp.gibbs.conditional import PROBE, initial_point_of, jittered
from pymc_dp.gibbs.loops import downward, drawn, drawn_without_logs, upward
from pymc_dp.gibbs.states import ForwardBackward, potentials, reading
from pymc_dp.laws.kernel import Kernel
from pymc_dp.privacy.accounting import Refusal


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
    beliefs, scaled, roots = upward(np.tile(unary, (D, 1)), tables, np.tile(table, D), copies)
    np.testing.assert_allclose(roots[0], many, rtol=1e-12)
    states = downward(beliefs, scaled, tables, np.tile(table, D), copies, rng.random(D * S)).reshape(D, S)
    check_frequencies(np.bincount(np.ravel_multi_index(states.T, (K,) * S), minlength=K**S), np.exp(logp - many))


@pytest.mark.parametrize(("spread", "ahead"), [(1.0, False), (400.0, False), (20.0, True), (400.0, True)])
def test_the_quick_sweep_draws_what_the_careful_one_does_or_nothing(spread, ahead):
    rng = np.random.default_rng(12)
    S, K, quick = 40, 3, 0
    for _ in range(200):
        unary, tables = spread * rng.normal(size=(S, K)), np.log(rng.dirichlet(np.ones(K), (2, K)))
        if ahead:  # only states that are not below the present one can follow
            tables = np.where(np.arange(K)[:, None] > np.arange(K), -np.inf, tables)
        parent, table = np.append(-1, rng.integers(0, np.arange(1, S))), rng.integers(2, size=S)
        uniforms = rng.random(S)
        found = drawn_without_logs(unary, tables, table, parent, uniforms)
        beliefs, scaled, _ = upward(unary, tables, table, parent)
        if len(found):
            np.testing.assert_array_equal(found, downward(beliefs, scaled, tables, table, parent, uniforms))
            quick += 1
    assert (quick < 200) == ahead


@pytest.mark.parametrize("zeros", [False, True])
def test_nothing_is_drawn_where_a_potential_is_no_number(zeros):
    """Wherever it stands; without it states are drawn."""
    S, K = 6, 3
    _, transition, emission = (each[0] for each in chain(1, S, K, 8, zeros=zeros))
    parent, table, uniforms = np.arange(S) - 1, np.zeros(S, dtype=int), np.full(S, 0.5)
    assert len(drawn(emission, transition[None], table, parent, uniforms)) == S
    for s, k in product(range(S), range(K)):
        broken = emission.copy()
        broken[s, k] = np.nan
        assert not len(drawn(broken, transition[None], table, parent, uniforms))


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
    point = {name: value + 0.3 * rng.normal(size=value.shape) for name, value in initial_point_of(model).items()}
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


# ---------- states of a model, in the spellings people use: (model, names, states)
def rows_and_means(K=2):
    return pm.Dirichlet("P", np.ones(K), shape=(K, K)), pm.Normal("mu", 0, 2, shape=K)


def transitions_by_potential():
    with pm.Model() as model:
        P, mu = rows_and_means()
        z = pm.Categorical("z", p=[0.3, 0.7], shape=(2, 3))
        pm.Potential("transitions", pt.log(P)[z[:, :-1], z[:, 1:]] - pt.log(pt.as_tensor([0.3, 0.7]))[z[:, 1:]])
        pm.Normal("y", mu[z], 1, observed=RNG.normal(size=(2, 3)))
    return model, ["z"], {}


def one_variable_a_step():
    with pm.Model() as model:
        P, mu = rows_and_means()
        z = [pm.Categorical("z0", p=[0.3, 0.7], shape=2)]
        z += [pm.Categorical(f"z{t}", p=P[z[-1]]) for t in (1,)]
        z.append(pm.Categorical("z2", p=P[z[-1]]))
        pm.Normal("y", mu[pt.stack(z, axis=1)], 1, observed=RNG.normal(size=(2, 3)))
    return model, ["z0", "z1", "z2"], {}


def one_scalar_a_step_and_three_states():
    y = RNG.normal(size=4)
    with pm.Model() as model:
        P, mu = rows_and_means(3)
        z = pm.Categorical("z0", p=np.ones(3) / 3)
        for t in range(4):
            pm.Normal(f"y{t}", mu[z], 1, observed=y[t])
            if t < 3:
                z = pm.Categorical(f"z{t + 1}", p=P[z])
    return model, ["z0", "z1", "z2", "z3"], {}


def mixture():
    with pm.Model() as model:
        w, mu = pm.Dirichlet("w", np.ones(3)), pm.Normal("mu", 0, 2, shape=3)
        z = pm.Categorical("z", w, shape=5)
        pm.Normal("y", mu[z], 1, observed=RNG.normal(size=5))
    return model, ["z"], {}


def switches():
    with pm.Model() as model:
        w, mu = pm.Beta("w", 1, 1), pm.Normal("mu", 0, 2)
        z = pm.Bernoulli("z", w, shape=5)
        pm.Normal("y", pt.switch(z, mu, 0.0), 1, observed=RNG.normal(size=5))
    return model, ["z"], {}


def counts_at_each_step():
    with pm.Model() as model:
        P, theta = pm.Dirichlet("P", np.ones(2), shape=(2, 2)), pm.Dirichlet("theta", np.ones(3), shape=(2, 3))
        z = pm.Categorical("z", p=[0.5, 0.5], shape=(2, 3))
        pm.Potential("transitions", -(-pt.log(P)[z[:, :-1], z[:, 1:]]).sum(axis=1) * 1.0)
        pm.Multinomial("y", n=9, p=theta[z], observed=RNG.multinomial(9, np.ones(3) / 3, size=(2, 3)))
    return model, ["z"], {}


def one_observation_a_row():
    with pm.Model() as model:
        P, mu = rows_and_means()
        z = pm.Categorical("z", p=[0.5, 0.5], shape=3)
        pm.Potential("transitions", pt.log(P)[z[:-1], z[1:]].sum() + 2.0 * pt.log(P[0, 0]))
        pm.Normal("y", mu[z[np.array([0, 0, 1, 2, 2, 2, 1])]], 1, observed=RNG.normal(size=7))
    return model, ["z"], {}


def each_chain_its_own_transitions():
    with pm.Model() as model:
        P, mu = pm.Dirichlet("P", np.ones(2), shape=(2, 2, 2)), pm.Normal("mu", 0, 2, shape=2)
        z = pm.Categorical("z", p=[0.5, 0.5], shape=(2, 3))
        pm.Potential("transitions", pt.log(P)[np.arange(2)[:, None], z[:, :-1], z[:, 1:]])
        pm.Normal("y", mu[z], 1, observed=RNG.normal(size=(2, 3)))
    return model, ["z"], {}


def numbers_of_states_differ():
    with pm.Model() as model:
        P, mu = pm.Dirichlet("P", np.ones(3), shape=(2, 3)), pm.Normal("mu", 0, 2, shape=3)
        a, c = pm.Bernoulli("a", 0.4), pm.DiscreteUniform("c", 1, 2)
        b = pm.Categorical("b", P[a])
        pm.Normal("y", mu[b], 1, observed=0.4)
        pm.Poisson("k", c * pm.math.exp(mu[b] / 2), observed=3)
        pm.Normal("x", mu[a], 1, observed=-0.4)
    return model, ["a", "b", "c"], {}


def tree():
    with pm.Model() as model:
        P, mu = rows_and_means()
        z = pm.Categorical("z", p=[0.5, 0.5], shape=6)
        pm.Potential("edges", pt.log(P)[z[[0, 0, 1, 1, 2]], z[[1, 2, 3, 4, 5]]])
        pm.Normal("y", mu[z], 1, observed=RNG.normal(size=6))
    return model, ["z"], {}


def a_chain_that_cannot_go_back():
    with pm.Model() as model:
        p, mu = pm.Beta("p", 1, 1), pm.Normal("mu", 0, 2, shape=3)
        P = pt.stack([pt.stack([p, 1 - p, 0.0]), pt.stack([0.0, p, 1 - p]), pt.as_tensor([0.0, 0.0, 1.0])])
        z = pm.Categorical("z", p=np.ones(3) / 3, shape=5)
        pm.Potential("transitions", pt.log(P)[z[:-1], z[1:]])
        pm.Normal("y", mu[z], 1, observed=RNG.normal(size=5))
    return model, ["z"], {}


def by_declared_states():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 2, shape=3)
        z = pm.CustomDist(
            "z", 0.7, logp=lambda value, q: value * pt.log(q), random=lambda q, rng, size: np.ones(size, int), dtype="int64", shape=4
        )
        pm.Normal("y", mu[z], 1, observed=RNG.normal(size=4))
    return model, ["z"], {"z": 3}


def by_pymc_extras():
    """Its own distribution; it is no dependency of this library."""
    extras = pytest.importorskip("pymc_extras.distributions")
    with pm.Model() as model:
        P = pm.Dirichlet("P", np.ones(3), shape=(3, 3))
        mu = pm.Normal("mu", [-1.0, 0.0, 2.0], 1)
        z = extras.DiscreteMarkovChain("z", P=P, init_dist=pm.Categorical.dist(p=[0.2, 0.3, 0.5]), shape=(2, 3))
        pm.Normal("y", mu[z], 1, observed=RNG.normal(size=(2, 3)))
    return model, ["z"], {}


RNG = np.random.default_rng(6)
SPELLINGS = [
    transitions_by_potential, one_variable_a_step, one_scalar_a_step_and_three_states, mixture, switches, counts_at_each_step,
    one_observation_a_row, each_chain_its_own_transitions, numbers_of_states_differ, tree, a_chain_that_cannot_go_back, by_declared_states,
    by_pymc_extras,
]  # fmt: skip
QUICK = {"mode": PROBE}


def check_potentials(model, names, states):
    """What is read of a model is its log-density, but for a constant, at every state."""
    step = ForwardBackward([model[name] for name in names], model=model, states=states, compile_kwargs=QUICK)
    block, layout = step.block, step.block.layout
    point = jittered(initial_point_of(model), np.random.default_rng(5))
    unary, tables, _ = potentials(block, reading(block, point))
    resting = [*(model[name] for name in names), *model.observed_RVs, *model.potentials]  # the others' priors take long to compile
    logp = model.compile_logp(resting, **QUICK)
    several = np.array(list(product(*map(range, layout.many))))
    theirs = np.array([logp({**point, **dict(zip(layout.names, layout.arrays(sites), strict=True))}) for sites in several])
    ours = np.zeros(len(several))
    for k, sites in enumerate(several):
        at = sites[block.order]
        ours[k] = unary[np.arange(len(at)), at].sum()
        below = block.parent >= 0
        ours[k] += tables[block.table[below], at[block.parent[below]], at[below]].sum()
    np.testing.assert_array_equal(np.isinf(ours), np.isinf(theirs))
    possible = ~np.isinf(ours)
    assert np.ptp(ours[possible] - theirs[possible]) < 1e-9
    assert np.ptp(theirs[possible]) > 0.1
    return step


@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda spelling: spelling.__name__)
def test_the_conditional_of_all_states_is_read_off_any_spelling(spelling):
    check_potentials(*spelling())


def test_what_cannot_be_drawn_together_is_refused_in_words():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1, shape=2)
        z, w = pm.Bernoulli("z", 0.5, shape=4), pm.Bernoulli("w", 0.5, shape=4)
        k = pm.Poisson("k", 3.0)
        pm.Normal("y", mu[z] + mu[w] + k, 1, observed=RNG.normal(size=4))
        pm.Potential("chains", -0.3 * pt.neq(z[1:], z[:-1]) + 0.2 * pt.eq(w[1:], w[:-1]) * mu[0])
    with pytest.raises(Refusal, match="form a circle"):
        ForwardBackward([z, w], model=model, compile_kwargs=QUICK)
    check_potentials(model, ["z"], {})
    with pytest.raises(Refusal, match="How many states k has is not known"):
        ForwardBackward([k], model=model, compile_kwargs=QUICK)
    with pm.Model() as model:
        z = pm.Bernoulli("z", 0.5, shape=4)
        pm.Normal("y", z.sum(), 1, observed=0.3)
    with pytest.raises(Refusal, match="three or more states of z"):
        ForwardBackward([z], model=model, compile_kwargs=QUICK)


def test_a_model_that_changed_its_form_is_an_error_and_not_a_wrong_draw():
    with pm.Model() as model:
        site = pm.Data("site", np.array([0, 1, 2, 2]))
        z, mu = pm.Bernoulli("z", 0.5, shape=3), pm.Normal("mu", [-1.0, 2.0], 1)
        pm.Normal("y", mu[z[site]], 1, observed=RNG.normal(size=4))
    step = ForwardBackward([z], model=model, compile_kwargs=QUICK)
    point = jittered(initial_point_of(model), np.random.default_rng(1))
    assert set(step.step(point)[0]["z"]) <= {0, 1}
    with model:
        pm.set_data({"site": np.array([0, 0, 1, 2])})

    def many_steps():
        for _ in range(200):
            step.step(point)

    with pytest.raises(ArithmeticError, match="Make the step after"):
        many_steps()


def test_what_is_compiled_for_speed_reads_what_the_plain_graph_says_with_new_data_too():
    """Logarithms of rates are taken before states are picked; probabilities that are data are read anew in every sweep."""
    observed = RNG.poisson(4, (2, 4))
    with pm.Model() as model:
        p, rate = pm.Data("p", [0.2, 0.3, 0.5]), pm.Gamma("rate", 2, 2, shape=3)
        z = pm.Categorical("z", p, shape=(2, 4))
        pm.Potential("chain", -0.7 * pt.neq(z[:, 1:], z[:, :-1]))
        pm.Poisson("y", rate[z], observed=observed)
    settings = {"model": model, "states": {"z": 3}}
    fast, plain = ForwardBackward([z], **settings), ForwardBackward([z], **settings, compile_kwargs=QUICK)
    point = jittered(initial_point_of(model), np.random.default_rng(1))
    rates = np.exp(point["rate_log__"])
    for chances in ([0.2, 0.3, 0.5], [0.6, 0.3, 0.1]):
        with model:
            pm.set_data({"p": chances})
        ours, theirs = (potentials(step.block, reading(step.block, point)) for step in (fast, plain))
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        gap = ours[0] - (np.log(chances) + observed.ravel()[:, None] * np.log(rates) - rates)[fast.block.order]
        np.testing.assert_allclose(gap - gap[:, :1], 0.0, atol=1e-9)
        assert fast.step(point)[1][0]["misfit"] < 1e-12


def test_a_step_goes_to_another_process():
    """As pm.sample sends it there, on two cores: what numba compiled in one process no other can call."""
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 2, shape=2)
        z = pm.Bernoulli("z", 0.5, shape=3)
        pm.Poisson("y", rate[z], observed=[0, 3, 1])
    step, point = ForwardBackward([z], model=model), initial_point_of(model)
    step.step(point)
    sent = cloudpickle.dumps((step, point))
    code = "import sys, cloudpickle; step, point = cloudpickle.load(sys.stdin.buffer); print(len(step.step(point)[0]['z']))"
    done = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=False)
    assert done.stdout.strip() == b"3", done.stderr.decode()[-2000:]


# ---------- transitions summed out
def collapsed(concentration=0.7):
    with pm.Model() as model:
        z = pm.Categorical("z", [0.2, 0.8], shape=(2, 3))
        pm.Potential("chain", collapsed_transitions(z, 2, concentration))
        mu = pm.Normal("mu", [-1.0, 1.0], 1)
        pm.Normal("y", mu[z], 1, observed=[[0.5, -0.2, 0.3], [-1.0, 0.1, 0.9]])
    return model


def test_the_law_of_collapsed_chains_is_that_of_chains_with_dirichlet_transitions():
    """The integral over transitions, by quadrature in two dimensions."""
    states = np.array([[0, 1, 1, 0], [1, 1, 0, 0]])
    x, w = np.polynomial.legendre.leggauss(40)
    x, w = (x + 1) / 2, w / 2
    density = np.outer(w * 30 * (x * (1 - x)) ** 2, w * 30 * (x * (1 - x)) ** 2)  # rows are Dirichlet(3, 3)

    def integral(z):
        stay, leave = np.meshgrid(x, x, indexing="ij")
        P = np.array([[stay, 1 - stay], [leave, 1 - leave]])
        each = [P[a, b] for row in z for a, b in pairwise(row)]
        return np.log((density * np.prod(each, axis=0)).sum())

    def ours(z):
        return collapsed_transitions(pt.constant(z), 2, 3.0).eval()

    gaps = [ours(z) - integral(z) for z in (states, states[:, ::-1], np.zeros((2, 4), int), 1 - states)]
    assert np.ptp(gaps) < 1e-9


@pytest.mark.parametrize("sweeps", mostly_slow([3_000, 12_000], 0))
def test_collapsed_chains_are_drawn_from_their_law(sweeps):
    """All 64 states, by enumeration; of the sweeps every third is looked at. Power: see above, of 12,000."""
    model = collapsed()
    step = CollapsedForwardBackward([model["z"]], "chain", concentration=0.7, model=model, compile_kwargs=QUICK)
    step.rng = np.random.default_rng(9)
    point = {**initial_point_of(model), "mu": np.array([-0.4, 0.6])}
    several = np.array(list(product(range(2), repeat=6))).reshape(-1, 2, 3)
    logp = model.compile_logp(mode=PROBE)
    exact = np.array([logp({**point, "z": z}) for z in several])
    p = np.exp(exact - np.logaddexp.reduce(exact))
    found = np.zeros(64)
    for k in range(sweeps):
        point, [told] = step.step(point)
        assert told["misfit"] < 1e-12
        if k % 3 == 0:
            found[int("".join(map(str, point["z"].ravel())), 2)] += 1
    check_frequencies(found, p)


def test_a_potential_that_says_something_else_is_refused():
    model = collapsed()
    with pytest.raises(Refusal, match="is not collapsed_transitions of z with concentration 1"):
        CollapsedForwardBackward([model["z"]], "chain", model=model, compile_kwargs=QUICK)
    with model:
        pm.Potential("more", 0.3 * pt.eq(model["z"][:, 1:], model["z"][:, :-1]).sum())
    with pytest.raises(Refusal, match="tied together by more than 'chain'"):
        CollapsedForwardBackward([model["z"]], "chain", concentration=0.7, model=model, compile_kwargs=QUICK)
