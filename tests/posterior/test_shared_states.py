"""Attacks on chains that pay at every update: states that records share, likelihoods in parts, and what is refused when."""

import numpy as np
import pymc as pm
import pytest
from chains import planned, states, transition
from scipy.special import logsumexp

import pymc_dp as pmdp

pytestmark = pytest.mark.filterwarnings("ignore")
Y, CELL = np.array([1, 0, 1]), np.array([0, 1, 1])


def outcome(make):
    """What an adversary sees of a call: whether it succeeds, or what is raised in which words."""
    try:
        pmdp.sample(model=make(), **make.arguments)
    except Exception as reason:
        return type(reason).__name__, str(reason)
    return "a draw", ""


def off(model, **arguments):
    """By how much each update changes the flattened posterior of all states, by PyMC's own log-densities, of any number of latents."""
    plan, held = planned(model, pmdp.Gibbs(10, points=3), 20.0, **arguments)
    every = list(states(plan))
    plain = pm.model.transform.conditioning.remove_value_transforms(model)
    prior_of = plain.compile_logp([*plain.free_RVs, *plain.potentials], mode="FAST_COMPILE", jacobian=False)
    data_of = plain.compile_logp(plain.observed_RVs, mode="FAST_COMPILE", jacobian=False)
    shapes = {one.name: plain[one.name].eval().shape for one in plain.free_RVs}
    log_p = []
    for state in every:
        latents = zip(plan.kernel.latents, state.latents, strict=True)
        point = plan.kernel.point(state.numbers) | {one.name: value.reshape(shapes[one.name]) for one, value in latents}
        log_p.append(prior_of(point) + data_of(point) / plan.price.temperature)
    p = np.exp(np.array(log_p) - logsumexp(log_p))
    return {block.name: float(np.abs(p @ transition(plan, block, every, held, p > 0) - p).max()) for block in plan.blocks}


# ---------- privacy
@pytest.mark.parametrize("public", [(), ("cell",)], ids=["private index", "public index"])
def test_whether_a_value_is_missing_does_not_decide_whether_a_shared_state_is_refused(public):
    """One missing observation makes PyMC's own imputed variable, which reads the states too: taken for a prior, it is refused."""
    seen = []
    for middle in (0.0, np.nan):

        def make(middle=middle):
            with pm.Model() as model:
                state = pm.Bernoulli("z", 0.4, shape=2)[pm.Data("cell", CELL)]
                pm.Bernoulli("y", pm.Uniform("t", 0.1, 0.9, shape=2)[state], observed=np.array([1, middle, 1]))
            return model

        make.arguments = {"mechanism": pmdp.Gibbs(1, points=3), "epsilon": 1, "public": public}
        seen.append(outcome(make))
    assert seen[0] == seen[1]


# ---------- laws
def regimes():
    with pm.Model() as model:
        regime, z = pm.Bernoulli("r", 0.4, shape=2), pm.Bernoulli("z", 0.3, shape=3)
        stay = pm.math.switch(pm.math.eq(regime, 0), 0.5, 0.9)
        pm.Potential("chain", pm.math.log(pm.math.switch(pm.math.eq(z[1:], z[:-1]), stay, 1 - stay)).sum())
        seen = pm.math.switch(pm.math.eq(regime[pm.Data("other", CELL)], 0), 0.9, 0.5)
        pm.Bernoulli("y", seen * pm.Uniform("t", 0.1, 0.9, shape=2)[z[pm.Data("cell", np.arange(3))]], observed=Y)
    return model


def gated():
    with pm.Model() as model:
        on, z = pm.Bernoulli("on", 0.4, shape=1), pm.Bernoulli("z", 0.3, shape=2)
        pm.Potential("chain", 1.5 * on[0] * pm.math.eq(z[1], z[0]))
        seen = pm.math.switch(pm.math.eq(on[pm.Data("other", np.zeros(3, dtype=int))], 0), 0.9, 0.5)
        pm.Bernoulli("y", seen * pm.Uniform("t", 0.1, 0.9, shape=2)[z[pm.Data("cell", CELL)]], observed=Y)
    return model


def at_the_end_of_a_support():
    with pm.Model() as model:
        u, z = pm.Uniform("u", 0, 1), pm.Bernoulli("z", 0.3, shape=2)
        pm.Potential("chain", pm.math.switch((u > 0.95) & pm.math.eq(z[1], z[0]), 1.5, 0.0))
        pm.Bernoulli("y", pm.Uniform("t", 0.1, 0.9, shape=2)[z[pm.Data("cell", CELL)]], observed=Y)
    return model


def own_as_index():
    with pm.Model() as model:
        own, s = pm.Bernoulli("k", 0.3, shape=2), pm.Bernoulli("s", 0.4, shape=(2, 2))
        pm.Bernoulli("y", pm.Uniform("t", 0.1, 0.9, shape=2)[s[own, pm.Data("cell", CELL[:2])]], observed=Y[:2])
    return model


def two_shapes():
    with pm.Model() as model:
        z, i, j = pm.Bernoulli("z", 0.4, shape=6), pm.Data("i", CELL), pm.Data("j", CELL[::-1].copy())
        one, other = z.reshape((2, 3))[i, j], z.reshape((3, 2))[i, j]
        shares = [pm.math.switch(pm.math.eq(one, 0), 0.9, 0.5), pm.math.switch(pm.math.eq(other, 0), 0.3, 0.7)]
        pm.Bernoulli("y", pm.Uniform("t", 0.1, 0.9) * shares[0] * shares[1], observed=Y)
    return model


@pytest.mark.parametrize(
    "make",
    [
        regimes,  # tables that are alike while the other latent is all zeros are taken for one table for ever
        gated,  # what one site does to another is looked for while the other latent is all zeros, where there is nothing
        at_the_end_of_a_support,  # and only in the inner eight tenths of the supports of numbers
        own_as_index,  # which site a record reads is worked out once, from zeros in place of its own latent
        two_shapes,  # readings through two shapes with the same index are taken for the same entry
    ],
)
def test_an_update_leaves_the_posterior_as_it_is_or_the_model_is_refused(make):
    try:
        found = off(make())
    except pmdp.Refusal:
        return
    assert max(found.values()) < 1e-5, found


def test_the_lowest_state_of_a_shared_latent_need_not_be_zero():
    """DiscreteUniform(1, 2) has two states, taken for 0 and 1: 2 is never drawn, though the data all but say so."""
    with pm.Model() as model:
        t = np.array([0.5, 0.001, 0.999])
        z = pm.DiscreteUniform("z", 1, 2, shape=2)[pm.Data("cell", np.array([0, 1] * 10))]
        pm.Bernoulli("y", pm.Uniform("s", 0.9, 0.999) * pm.math.switch(pm.math.eq(z, 2), t[2], t[1]), observed=np.ones(20, dtype=int))
    try:
        tree = pmdp.sample(model=model, mechanism=pmdp.Gibbs(20, points=3), epsilon=1e6)
    except pmdp.Refusal:
        return
    assert (tree.posterior.z.values == 2).any()


# ---------- refused after it was paid for, or in no words
def test_an_own_latent_that_reads_a_shared_one_is_refused_before_it_is_paid_for(tmp_path):
    """Its prior reads s[cell] a second time: charged, and then the library fails."""
    with pm.Model() as model:
        s, cell, p = pm.Bernoulli("s", 0.3, shape=2), pm.Data("cell", CELL), pm.Uniform("p", 0.1, 0.9, shape=2)
        z = pm.Bernoulli("z", p[s[cell]], shape=3)
        share = pm.math.switch(pm.math.eq(s[cell], 0), 0.9, 0.5)
        pm.Bernoulli("y", share * pm.Uniform("t", 0.1, 0.9, shape=2)[z], observed=Y)
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=10, create=True)
    try:
        pmdp.sample(model=model, mechanism=pmdp.Gibbs(1, points=3), epsilon=1, public=["cell"], ledger=ledger)
    except pmdp.Refusal:
        assert ledger.remaining().epsilon == 10


def test_an_observed_variable_may_be_named_like_what_records_read():
    """A name is not what decides what is a latent: "z:record" observed makes the library fail, with no word of it."""
    with pm.Model() as model:
        state = pm.Bernoulli("z", 0.4, shape=2)[pm.Data("cell", CELL)]
        pm.Bernoulli("z:record", pm.Uniform("t", 0.1, 0.9, shape=2)[state], observed=Y)
    try:
        pmdp.sample(model=model, mechanism=pmdp.Gibbs(1, points=3), epsilon=1)
    except pmdp.Refusal:
        return
