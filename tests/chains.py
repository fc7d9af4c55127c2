"""Tiny models for chains that pay at every update, with all their states, and what their laws are exactly."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pymc as pm
from scipy.special import logsumexp

from pymc_dp.plans.protection import protection_of
from pymc_dp.posterior import draws
from pymc_dp.posterior.paid_gibbs import blocks, sweeps, updates
from pymc_dp.posterior.paid_gibbs.kernel import State
from pymc_dp.privacy import mechanisms

RNG = np.random.default_rng(7)
N = 6
Y, G, X = RNG.integers(0, 2, N), RNG.integers(0, 2, N), RNG.normal(size=N)


# ---------- models: (records) -> model, arguments
def product(y=Y):
    """theory.md, Gibbs composition: p = sigma(2 a b), where C is 2 and two blocks cost 4 each."""
    with pm.Model() as model:
        a, b = pm.Uniform("a", -1, 1), pm.Uniform("b", -1, 1)
        pm.Bernoulli("y", logit_p=2 * a * b, observed=y)
    return model, {}


def coins(y=Y):
    """A mixture of two coins: every record has its own, and shares nothing else."""
    with pm.Model() as model:
        w = pm.Uniform("w", 0.1, 0.9)
        t = pm.Uniform("t", 0.1, 0.9, shape=2)
        z = pm.Bernoulli("z", w, shape=len(y))
        pm.Bernoulli("y", t[z], observed=y)
    return model, {}


def groups(y=Y, g=G):
    with pm.Model() as model:
        t = pm.Uniform("t", 0.1, 0.5, shape=2)
        pm.Bernoulli("y", t[pm.Data("g", g)], observed=y)
    return model, {}


def known_groups(y=Y):
    model, _ = groups(y)
    return model, {"public": ["g"]}


def dice(y=Y):
    """The same with three coins, as frequent as a Dirichlet variable says."""
    with pm.Model() as model:
        w, t = pm.Dirichlet("w", [1.0, 2.0, 1.0]), pm.Uniform("t", 0.1, 0.9, shape=3)
        z = pm.Categorical("z", w, shape=len(y))
        pm.Bernoulli("y", t[z], observed=y)
    return model, {}


def mixture(x=X):
    """Real numbers: records cannot be listed."""
    with pm.Model() as model:
        w, m = pm.Uniform("w", 0.1, 0.9), pm.Uniform("m", -1, 1, shape=2)
        z = pm.Bernoulli("z", w, shape=len(x))
        pm.Normal("x", m[z], 0.8, observed=x)
    return model, {"bounds": {"x": (-2, 2)}}


def normal(x=X):
    with pm.Model() as model:
        pm.Normal("x", pm.Uniform("m", -1, 1), pm.Uniform("s", 0.5, 2), observed=x)
    return model, {"bounds": {"x": (-2, 2)}}


def coins_left_out(y=(1, 0, 0)):
    """A record whose toss is missing brings nothing."""
    return coins(np.array(y, dtype=float))[0], {"missing": ["y"]}


def numbers_left_out(x=X):
    return normal(x)[0], {"bounds": {"x": (-2, 2)}, "missing": ["x"]}


def visits(y=Y[:3], cell=(0, 1, 1)):
    """A chain of two months: which of its states a record reads is the record's own."""
    with pm.Model() as model:
        stay, t = pm.Uniform("stay", 0.1, 0.9), pm.Uniform("t", 0.1, 0.5, shape=2)
        z = pm.Bernoulli("z", 0.3, shape=2)
        pm.Potential("chain", pm.math.log(pm.math.switch(pm.math.eq(z[1:], z[:-1]), stay, 1 - stay)).sum())
        pm.Bernoulli("y", t[z[pm.Data("cell", np.array(cell))]], observed=y)
    return model, {}


def known_visits(y=Y[:3]):
    """Or everyone knows it."""
    return visits(y)[0], {"public": ["cell"]}


def seen_twice(y=(1, 0), x=(0.3, -1.1), place=(0, 0), time=(1, 0)):
    """One place, two times; what is seen has a listed part and a bounded one, each with a number of its own and one in common."""
    with pm.Model() as model:
        t, m, s = pm.Uniform("t", 0.1, 0.9, shape=2), pm.Uniform("m", -1, 1, shape=2), pm.Uniform("s", 0.5, 1)
        z = pm.Categorical("z", [0.3, 0.7], shape=(1, 2))
        state = z[pm.Data("place", np.array(place)), pm.Data("time", np.array(time))]
        pm.Bernoulli("y", t[state] * s, observed=np.array(y))
        pm.Normal("x", m[state], s, observed=np.array(x))
    return model, {"bounds": {"x": (-2, 2)}}


def task_of(model, mechanism, epsilon=None, *, delta=0, bounds=None, public=(), missing=None):
    """What ``sample`` would be asked for."""
    return draws.task_of(model, epsilon, delta, mechanism, protection_of(bounds=bounds, public=public, missing=missing))


def planned(model, mechanism, epsilon=None, *, absolute=False, **arguments):
    """The plan, and what holds the records; ``absolute`` where log-likelihoods matter by themselves."""
    task = task_of(model, mechanism, epsilon, **arguments)
    reading = blocks.reading_of(task)
    plan = sweeps.planned_sweeps(task, reading)
    if absolute:
        kernel, laid_out = blocks.kernel_and_blocks(task, reading, absolute=True)
        plan = replace(plan, kernel=kernel, blocks=laid_out)
    return plan, updates.held_of(plan.kernel, reading.exact())


def states(plan):
    """All states of a chain. Numbers that share a sum have that of all of the grid."""
    kernel = plan.kernel
    shared = sorted({place for block in plan.blocks if block.shared is not None for place in (*block.places, block.shared)})
    places = itertools.product(*[range(kernel.grids.shape[1])] * len(kernel.grids))
    lengths = [kernel.public.many if one.sites is None else int(np.prod(one.sites.shape)) for one in kernel.latents]
    levels = itertools.product(*[itertools.product(range(one.levels), repeat=n) for one, n in zip(kernel.latents, lengths, strict=True)])
    right = [place for place in places if not shared or sum(place[k] for k in shared) == kernel.grids.shape[1] - 1]
    for place, latent in itertools.product(right, list(levels)):
        yield State(kernel.grids[np.arange(len(place)), list(place)], tuple(map(np.array, latent)))


def scores(plan, block, state, held):
    """The score (rows, options) of every option of every choice of a block, at one state."""
    records, prior = updates.records_part(plan.kernel, block, state, held), updates.prior_part(plan.kernel, block, state, held)
    return records + updates.in_units(plan.kernel, prior)


def law(plan, block, state, held):
    """Log-probabilities (rows, options) of an update."""
    scaled = scores(plan, block, state, held) / plan.price.scale
    return scaled - logsumexp(scaled, axis=1, keepdims=True)


def options(plan, block, state, held, asking=True):
    """Every state that an update can lead to, and its probability: the rows of a round together, one round after the other."""
    reached = [(state, 1.0)]
    for places in updates.rounds_of(plan.kernel, block):
        after = []
        for now, chance in reached:
            log_p = law(plan, block, now, held) if asking else updates.prior_part(plan.kernel, block, now, held)
            log_p = log_p - logsumexp(log_p, axis=1, keepdims=True)
            for choices in itertools.product(*[range(block.options)] * len(places)):
                probability = float(np.exp(sum(log_p[row, choice] for row, choice in zip(places, choices, strict=True))))
                after.append((_with(plan, block, now, places, choices), chance * probability))
        reached = after
    yield from reached


def _with(plan, block, state, places, choices):
    every = np.array(choices)
    if block.latent is not None:
        every = state.latents[block.latent].copy()
        every[places] = choices
    return updates.state_after(plan.kernel, block, state, every)


def key(state):
    return (tuple(np.round(state.numbers, 9)), tuple(tuple(one) for one in state.latents))


def transition(plan, block, every, held, allowed=None):
    """The probabilities (S, S) of going from every state, or those that are allowed, to every other in one update."""
    place, matrix = {key(state): k for k, state in enumerate(every)}, np.zeros((len(every), len(every)))
    for k, state in enumerate(every):
        if allowed is not None and not allowed[k]:
            continue
        if block.sensitivity:
            for reached, probability in options(plan, block, state, held):
                matrix[k, place[key(reached)]] += probability
            continue
        for reached, probability in options(plan, block, state, held, asking=False):
            if probability:
                matrix[k, place[key(reached)]] += probability
    return matrix


def log_density(model, plan, every, T=1.0):
    """Of all states, by PyMC's own log-densities, the likelihood to the power of 1 / T."""
    plain = pm.model.transform.conditioning.remove_value_transforms(model)
    latents = {one.name for one in plan.kernel.latents}
    shapes = {one.name: one.eval().shape for one in (plain[free.name] for free in model.free_RVs)}
    prior_of = plain.compile_logp([*plain.free_RVs, *plain.potentials], mode="FAST_COMPILE", jacobian=False)
    data_of = plain.compile_logp(plain.observed_RVs, mode="FAST_COMPILE", jacobian=False)
    log_p = []
    for state in every:
        given, start = {}, 0
        for name, shape in shapes.items():
            if name in latents:
                given[name] = state.latents[0].reshape(shape)
            else:
                size = int(np.prod(shape))
                given[name], start = state.numbers[start : start + size].reshape(shape), start + size
        log_p.append(prior_of(given) + data_of(given) / T)
    return np.array(log_p)


def posterior(model, plan, every):
    """Probabilities of all states, at the temperature of the plan."""
    log_p = log_density(model, plan, every, plan.price.temperature)
    return np.exp(log_p - logsumexp(log_p))


def neighbours(make):
    """Data sets of three records, or two, that differ in the second."""
    if make is groups:
        return [make(np.array([1, y, 0]), np.array([0, g, 1])) for y in (0, 1) for g in (0, 1)]
    if make is known_groups:
        return [(groups(np.array([1, y, 0]), np.array([0, 1, 1]))[0], {"public": ["g"]}) for y in (0, 1)]
    if make is visits:
        return [visits(np.array([1, y, 0]), np.array([0, g, 1])) for y in (0, 1) for g in (0, 1)]
    if make is known_visits:
        return [known_visits(np.array([1, y, 0])) for y in (0, 1)]
    if make is coins_left_out:
        return [make((1, y, 0)) for y in (0, 1, np.nan)]
    if make in (normal, numbers_left_out, mixture):
        return [make(np.array([0.4, x])) for x in (-2.0, np.nan, 1e300)]
    return [make(np.array([1, y, 0])) for y in (0, 1)]


# ---------- what was paid for
class Recorded(mechanisms.Receipt):
    """Keeps what was struck off it."""

    def __init__(self, draws, cost):
        super().__init__(draws, cost)
        self.draws, self.struck = list(draws), []

    def strike_off(self, mechanism, scale, size):
        super().strike_off(mechanism, scale, size)
        self.struck.append((mechanism, scale, size))

    @property
    def spent(self):
        """The exact sum of what was drawn, by the price of each."""
        price = {(one.mechanism, one.scale, one.size): one.pure for one in self.draws}
        return sum((price[one] for one in self.struck), Fraction(0))

    @property
    def rho(self):
        """The same in zCDP."""
        price = {(one.mechanism, one.scale, one.size): one.rho for one in self.draws}
        return sum((price[one] for one in self.struck), Fraction(0))
