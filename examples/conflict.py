# %% [markdown]
# # A hidden Markov model of events
#
# Foulds, Geumlek, Welling and Chaudhuri (UAI 2016, section 5) take a log of war events as sensitive records: every event has a region, a
# month and five categorical features. Regions go through hidden states, month by month, and a state is what its events look like. How many
# events of each region and month have each level is released once, with Laplace noise; what follows costs nothing.
#
# They then take max(0, noisy count) for the count. Most region-months have few events or none, and there the positive half of the noise
# is all that is left: profiles are washed out, and with ten states allowed two or three are used. Here the noise is part of the model.
# Beside both stand one draw from the posterior (their comparison, with a temperature), Gibbs sampling that pays at every update (their
# section 4.2), naive Bayes (one state), and no privacy.
#
# Their logs may not be passed on. Events are generated, or those of a file of yours in the same form.

# %%
import argparse
import warnings
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm

import pymc_dp as pmdp
from pymc_dp.gibbs import forward_backward

arguments = argparse.ArgumentParser(description="Hidden states of regions, from noisy counts of their events.")
arguments.add_argument("--data", type=Path, help="a Parquet file with columns region_id, month and the features (needs pandas and pyarrow)")
arguments.add_argument("--states", type=int, nargs="+", default=[1, 2, 3])
arguments.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 2.0, 10.0])
arguments.add_argument("--splits", type=int, default=2, help="of region-months into those seen and a tenth held out")
WAYS = ["no privacy", "noise-aware", "plug-in", "one draw", "paid Gibbs"]
arguments.add_argument("--posteriors", nargs="+", choices=WAYS, default=WAYS[:-1], help="paid Gibbs is the slowest")
arguments.add_argument("--draws", type=int, default=150)
arguments.add_argument("--seed", type=int, default=1, help="of splits and chains; the noise has none")
arguments.add_argument("--output", type=Path, default=Path("output"))
given = arguments.parse_args()
given.output.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(given.seed)
warnings.simplefilter("ignore", pmdp.UnaccountedWarning)
FEATURES = {"f_type": 3, "f_dead_a": 2, "f_dead_b": 2, "f_dead_civ": 2, "f_size": 4}
STARTS = np.cumsum([0, *FEATURES.values()])
SMALLEST = 1 / 100  # of the trimmed Dirichlet: theta >= 1 / (100 levels), which bounds the likelihood of one event


# %% Events: region, month and five features
def generated(regions=12, months=120):
    """Three states that last; most months are quiet, a few are not."""
    profiles = np.array(
        [
            [0.93, 0.01, 0.06, 0.7, 0.3, 0.4, 0.6, 0.8, 0.2, 0.05, 0.35, 0.45, 0.15],
            [0.75, 0.00, 0.25, 0.5, 0.5, 0.8, 0.2, 0.7, 0.3, 0.03, 0.75, 0.19, 0.03],
            [0.20, 0.02, 0.78, 0.9, 0.1, 0.9, 0.1, 0.1, 0.9, 0.02, 0.36, 0.48, 0.14],
        ]
    )
    z = rng.integers(3, size=(regions, months))
    for t in range(1, months):
        z[:, t] = np.where(rng.random(regions) < 0.9, z[:, t - 1], z[:, t])
    many = rng.poisson(rng.gamma(0.25, rng.gamma(2, 3, (regions, 1)) / 0.25, (regions, months)))
    cell = np.repeat(np.arange(regions * months), many.ravel())
    columns = [(profiles[z.ravel()[cell], a:b].cumsum(axis=1) < rng.random((len(cell), 1))).sum(axis=1) for a, b in pairwise(STARTS)]
    return regions, months, cell, np.minimum(np.stack(columns, axis=1), np.array(list(FEATURES.values())) - 1)


def read(path):
    """Regions and months are numbered; how many there are is public."""
    import pandas as pd

    table = pd.read_parquet(path)
    regions, months = int(table.region_id.max()) + 1, -(-(int(table.month.max()) + 1) // 12) * 12
    return regions, months, (table.region_id * months + table.month).to_numpy(), table[list(FEATURES)].to_numpy()


R, T, cell, events = read(given.data) if given.data else generated()
counts = np.zeros((R * T, STARTS[-1]), dtype=np.int64)
for d, a in enumerate(STARTS[:-1]):
    np.add.at(counts, (cell, a + events[:, d]), 1)
counts = counts.reshape(R, T, -1)
print(f"{len(cell)} events in {(counts.sum(axis=-1) > 0).sum()} of {R * T} region-months")


# %% What is released: counts of every region, month and level; one event moves each table by 2, wherever it goes
def model_of(seen):
    """An ordinary PyMC model, for its shape: every region-month has probabilities of its own."""
    kept = seen.ravel()[cell]
    with pm.Model() as model:
        for d, (name, levels) in enumerate(FEATURES.items()):
            p = pm.Dirichlet(f"p_{name}", np.ones((R * T, levels)))
            pm.Categorical(name, p[cell[kept]], observed=events[kept, d])
    return model


# %% Without privacy: expectation and maximization, best of several starts
def fitted(heard, states, starts=6, steps=150):
    best = (-np.inf, None)
    for _ in range(starts if states > 1 else 1):
        profiles = np.concatenate([rng.dirichlet(np.ones(b - a), states) for a, b in pairwise(STARTS)], axis=1)
        transition, initial, old = 0.5 * np.eye(states) + 0.5 / states, np.full(states, 1 / states), -np.inf
        for _ in range(steps):
            states_of, moves, total = smoothed(heard @ np.log(profiles + 1e-300).T, initial, transition)
            if total - old < 1e-7 * abs(total):
                break
            old, sums = total, np.einsum("rtk,rtv->kv", states_of, heard) + 1e-10
            profiles = np.concatenate([sums[:, a:b] / sums[:, a:b].sum(axis=1, keepdims=True) for a, b in pairwise(STARTS)], axis=1)
            transition = (moves + 1e-10) / (moves + 1e-10).sum(axis=1, keepdims=True)
            initial = states_of[:, 0].mean(axis=0)
        best = max(best, (total, (profiles, initial, transition)), key=lambda one: one[0])
    return best


def smoothed(table, initial, transition):
    """Probabilities of states, expected numbers of moves, and the log-likelihood."""
    top = table.max(axis=-1, keepdims=True)
    likely, forward, scale = np.exp(table - top), np.zeros(table.shape), np.zeros(table.shape[:2])
    for t in range(T):
        now = (initial if t == 0 else forward[:, t - 1] @ transition) * likely[:, t]
        scale[:, t] = now.sum(axis=-1)
        forward[:, t] = now / scale[:, t, None]
    backward, moves = np.ones(table.shape), np.zeros(transition.shape)
    for t in range(T - 2, -1, -1):
        after = backward[:, t + 1] * likely[:, t + 1] / scale[:, t + 1, None]
        backward[:, t] = after @ transition.T
        moves += transition * (forward[:, t].T @ after)
    return forward * backward, moves, np.log(scale).sum() + top.sum()


for K in given.states:
    print(f"{K} states, all events, no privacy: {fitted(counts, K)[0] * len(FEATURES) / counts.sum():.4f} nats an event")


# %% One draw from the posterior: the likelihood is flattened to what epsilon allows, profiles are trimmed, and a chain must have converged
def trimmed(parameters, smallest):
    """Dirichlet of which every entry is at least ``smallest``: pairs of entries in turn, by inversion (Fang et al.)."""
    from scipy.special import betainc, betaincinv

    p = np.full(len(parameters), 1 / len(parameters))
    for _ in range(20):
        i, j = rng.choice(len(p), 2, replace=False)
        both = p[i] + p[j]
        low, high = betainc(parameters[i], parameters[j], smallest / both), betainc(parameters[i], parameters[j], 1 - smallest / both)
        p[i] = np.clip(both * betaincinv(parameters[i], parameters[j], low + rng.random() * (high - low)), smallest, both - smallest)
        p[j] = both - p[i]
    return p


def one_draw(heard, states, epsilon, sweeps=100):
    """At epsilon = 2 C / T, C = sum of log((99 levels) + 1) over features: private only as far as the chain has converged."""
    levels = list(FEATURES.values())
    flat = max(1.0, 2 * sum(np.log(99 * k + 1) for k in levels) / epsilon)
    profiles = np.concatenate([rng.dirichlet(np.full(k, 5.0), states) for k in levels], axis=1)
    initial, transition = np.full(states, 1 / states), 0.5 * np.eye(states) + 0.5 / states
    for _ in range(sweeps):
        z, _ = forward_backward(np.log(initial), np.log(transition), heard @ np.log(profiles).T / flat, rng)
        for k in range(states):
            sums = heard[z == k].sum(axis=0) / flat
            for (a, b), many in zip(pairwise(STARTS), levels, strict=True):
                profiles[k, a:b] = trimmed(1 + sums[a:b], SMALLEST / many)
        moves = np.zeros((states, states))
        np.add.at(moves, (z[:, :-1], z[:, 1:]), 1)
        transition = np.stack([rng.dirichlet(1 + row) for row in moves])
        initial = rng.dirichlet(1 + np.bincount(z[:, 0], minlength=states))
    return profiles, initial, transition, z


# %% Gibbs that pays: 30 sweeps, each of which asks the events once for all states and once for every split of levels, and is charged for it
def paid(seen, states, epsilon):
    """The last ten sweeps, as a tree of profiles and states. Which region and month an event belongs to is its own, so moves are paid for.

    The delta of 1e-6 makes it cheaper; the others have none. Levels are split in two, and splits are drawn from [.05, .95].
    """
    kept = seen.ravel()[cell]
    with pm.Model() as model:
        state = 0
        if states > 1:
            A = pm.Dirichlet("transition", np.ones(states), shape=(states, states))
            z = pm.Categorical("states", np.full(states, 1 / states), shape=(R, T))
            pm.Potential("moves", pm.math.log(states * A)[z[:, :-1], z[:, 1:]])
            state = z[pm.Data("region", cell[kept] // T), pm.Data("month", cell[kept] % T)]
        for d, (name, levels) in enumerate(FEATURES.items()):
            rest, shares = 1.0, []
            for k in range(levels - 1):
                split = pm.Truncated(f"{name}_{k}", pm.Beta.dist(1, levels - 1 - k), lower=0.05, upper=0.95, shape=states)[state]
                shares.append(rest * split)
                rest = rest * (1 - split)
            pm.Categorical(name, pm.math.stack([*shares, rest], axis=-1), observed=events[kept, d])
    tree = pmdp.sample(model=model, mechanism=pmdp.Gibbs(30, burn_in=20, points=41), epsilon=epsilon, delta=1e-6)
    return tree["posterior"].isel(chain=0)


def of_paid(out, drawn, states):
    """Averaged over draws, and the states that are used."""
    profiles = []
    for name, levels in FEATURES.items():
        rest = np.ones((drawn.sizes["draw"], states))
        for k in range(levels - 1):
            split = drawn[f"{name}_{k}"].values
            profiles.append(rest * split)
            rest = rest * (1 - split)
        profiles.append(rest)
    uniform, alone = np.full(states, 1 / states), np.zeros((len(rest), R, T), dtype=int)
    moves = drawn["transition"].values if states > 1 else np.ones((len(rest), 1, 1))
    z = drawn["states"].values if states > 1 else alone
    each = [score(out, profile, uniform, *one) for profile, *one in zip(np.stack(profiles, axis=-1), moves, z, strict=True)]
    return np.logaddexp.reduce(each, axis=0) - np.log(len(each)), used(z, states)


# %% How likely events are that were held out, given the states around them: nats an event
def score(out, profiles, initial, transition, z):
    r, t = np.nonzero(out)
    before = np.where(t[:, None] > 0, transition[z[r, t - 1]], initial)
    after = np.where(t[:, None] < T - 1, transition[:, z[r, np.minimum(t + 1, T - 1)]].T, 1)
    weights = before * after
    table = counts[r, t] @ np.log(np.maximum(profiles, 1e-12)).T + np.log(weights / weights.sum(axis=1, keepdims=True) + 1e-300)
    top = table.max(axis=1)
    return np.log(np.exp(table - top[:, None]).sum(axis=1)) + top


def of_tree(out, tree):
    """Averaged over draws."""
    posterior = tree["posterior"].to_dataset().stack(sample=("chain", "draw")).transpose("sample", ...)
    profiles = np.concatenate([posterior[name].values for name in FEATURES], axis=-1)
    each = [
        score(out, *one)
        for one in zip(profiles, posterior["initial"].values, posterior["transition"].values, posterior["states"].values, strict=True)
    ]
    return np.logaddexp.reduce(each, axis=0) - np.log(len(each))


def used(z, states):
    """States (..., R, T) in which at least 2 % of region-months are, averaged over draws."""
    share = np.stack([(z == k).mean(axis=(-2, -1)) for k in range(states)])
    return (share > 0.02).sum(axis=0).mean()


# %% The experiment
def scored(name, K, epsilon, split, out, release):
    """Log-likelihoods of the region-months held out, and how many states are used."""
    heard, missing = counts * ~out[..., None], list(zip(*np.nonzero(out), strict=True))
    if name == "no privacy":
        profiles, initial, transition = fitted(heard, K)[1]
        table, logs = heard @ np.log(profiles + 1e-300).T, [np.log(one + 1e-300) for one in (initial, transition)]
        draws = [forward_backward(*logs, table, rng)[0] for _ in range(50)]
        each = [score(out, profiles, initial, transition, z) for z in draws]
        return np.logaddexp.reduce(each, axis=0) - np.log(len(draws)), used(np.array(draws), K)
    if name == "one draw":
        drawn = one_draw(heard, K, epsilon)
        return score(out, *drawn), used(drawn[-1], K)
    if name == "paid Gibbs":
        return of_paid(out, paid(~out, K, epsilon), K)
    tree = pmdp.hidden_markov(
        release, sequences=R, states=K, noise_aware=name == "noise-aware", missing=missing, draws=given.draws, tune=250, chains=1,
        random_seed=split, progressbar=False,
    )  # fmt: skip
    return of_tree(out, tree), used(tree["posterior"]["states"].values, K)


results: dict = {}
for split in range(given.splits):
    out = rng.random((R, T)) < 0.1
    many, model = counts[out].sum() / len(FEATURES), model_of(~out)
    needed = given.epsilon if {"noise-aware", "plug-in"} & {*given.posteriors} else []
    released = {epsilon: pmdp.release(model, epsilon=epsilon) for epsilon in needed}
    for K in given.states:
        for name in given.posteriors:
            for epsilon in [None] if name == "no privacy" else given.epsilon:
                likely, states = scored(name, K, epsilon, split, out, released.get(epsilon))
                results.setdefault((name, K, epsilon), []).append((likely.sum() / many, states))

shown = [name for name in given.posteriors if name != "no privacy"]
print("\nLog-likelihood of an event that was held out, in nats (states in use)")
print(f"{'states':>6} {'epsilon':>8}" + "".join(f"{name:>18}" for name in given.posteriors))
for K in given.states:
    for epsilon in given.epsilon:
        means = [np.mean(results[name, K, None if name == "no privacy" else epsilon], axis=0) for name in given.posteriors]
        print(f"{K:>6} {epsilon:>8g}" + "".join(f"{one:>12.3f} ({many:.1f})" for one, many in means))

rows = [f"{name},{K},{epsilon or ''},{score:.4f},{many:.2f}" for (name, K, epsilon), several in results.items() for score, many in several]
(given.output / "conflict.csv").write_text("\n".join(["posterior,states,epsilon,held-out nats an event,states in use", *rows]) + "\n")

# %% Pictures: log-likelihood against epsilon; states of every region; what the states look like
figure, axes = plt.subplots(1, len(given.states), figsize=(4 * len(given.states), 3.4), squeeze=False, sharey=True)
for axis, K in zip(axes[0], given.states, strict=True):
    for name in shown:
        axis.plot(given.epsilon, [np.mean(results[name, K, e], axis=0)[0] for e in given.epsilon], "o-", label=name)
    if "no privacy" in given.posteriors:
        axis.axhline(np.mean(results["no privacy", K, None], axis=0)[0], color="black", ls="--", label="no privacy")
    axis.set(xscale="log", xlabel="epsilon", title="naive Bayes" if K == 1 else f"{K} states")
axes[0, 0].set_ylabel("held-out nats an event")
axes[0, -1].legend(fontsize=8)
figure.tight_layout()
figure.savefig(given.output / "conflict_score.png", dpi=110)

K = max(k for k in given.states if k <= 3)
release = pmdp.release(model_of(np.ones((R, T), dtype=bool)), epsilon=5.0)
tree = pmdp.hidden_markov(release, sequences=R, states=K, draws=given.draws, tune=300, chains=1, random_seed=1, progressbar=False)
posterior = tree["posterior"].isel(chain=0)
profiles = np.concatenate([posterior[name].mean("draw").values for name in FEATURES], axis=1)
order = np.argsort(-profiles[:, 0])
likeliest = np.stack([(posterior["states"] == k).mean("draw").values for k in order]).argmax(axis=0)
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), width_ratios=(3, 2))
left.imshow(likeliest, aspect="auto", cmap=plt.get_cmap("viridis", K), interpolation="nearest")
left.set(xlabel="month", ylabel="region", title="likeliest state, epsilon 5, noise-aware")
for k, state in enumerate(order):
    right.plot(profiles[state], "o-", color=plt.get_cmap("viridis", K)(k), label=f"state {k + 1}")
names = [f"{name[2:]} {level}" for name, levels in FEATURES.items() for level in range(levels)]
right.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
right.set(title="share of events with each level")
right.legend(fontsize=8)
figure.tight_layout()
figure.savefig(given.output / "conflict_states.png", dpi=110)
print(f"\nPictures: {given.output}/conflict_score.png, {given.output}/conflict_states.png")
