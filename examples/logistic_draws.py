# %% [markdown]
# # Logistic regression, privately, by three doors
#
# 6,366 women answered a magazine's questions about their marriages (Fair 1978; shipped by statsmodels). Who had an affair, by how she
# rates her marriage and how long it has lasted? One likelihood, three ways to make its posterior private:
#
# - draws from the posterior itself, each private because coefficients lie in a ball, so that no record moves the log-likelihood far;
#   where epsilon asks for more, the likelihood is flattened. Every draw costs as much as the first;
# - a noisy table of answers by rating and years, and the posterior given that, noise included. Draws are free;
# - noisy moments, from which the likelihood is known approximately: of real features, whose table would have too many cells.
#
# One draw is a point estimate. For an interval one needs many, and with a delta many cost less than their sum: that is shown, too.

# %%
import argparse
import time
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
import statsmodels.api as sm

import pymc_dp as pmdp

arguments = argparse.ArgumentParser(description="Private logistic regression: posterior draws, a noisy table, noisy moments.")
arguments.add_argument(
    "--data", nargs="+", default=["fair"], metavar=("NAME", "PATH"), help="fair; or adult_uci and a Parquet file (needs pyarrow)"
)
arguments.add_argument("--eight", action="store_true", help="also draws for eight features of fair, seconds more")
arguments.add_argument("--draws", type=int, default=50, help="for an interval")
arguments.add_argument("--output", type=Path, default=Path("output"))
given = arguments.parse_args()
rng = np.random.default_rng(1)
warnings.simplefilter("ignore", pmdp.UnaccountedWarning)
EPSILONS, DELTA, RADIUS, SINGLE = (0.1, 0.3, 1.0, 3.0, 10.0), 1e-6, 2.0, 100


# %% Two features on public levels within [-1, 1]
def fair():
    """Had an affair; how she rates her marriage, 1 to 5; years married, as the questionnaire's seven answers."""
    answers = sm.datasets.fair.load_pandas().data
    rating, years = np.linspace(-1, 1, 5), np.array([0.5, 2.5, 6, 9, 13, 16.5, 23]) / 11.5 - 1
    codes = (answers["rate_marriage"] - 3) / 2, answers["yrs_married"] / 11.5 - 1
    return (answers["affairs"] > 0).to_numpy(), {"rating": (codes[0], rating), "years": (codes[1], years)}


def adult_uci(path):
    """Earns more than 50,000 dollars; schooling, 16 levels in pairs; age, 17 to 90 in eight bands."""
    import pandas as pd  # with pyarrow, which is no dependency

    table, levels = pd.read_parquet(path), np.linspace(-1, 1, 8)
    schooling, age = (table["education_num"] - 1) // 2 / 3.5 - 1, (table["age"] - 17).clip(0, 72) // 9.25 / 3.5 - 1
    return (table["income"] == ">50K").to_numpy(), {"schooling": (schooling, levels), "age": (age, levels)}


def nearest(values, levels):
    return levels[np.abs(np.asarray(values, dtype=float)[:, None] - levels).argmin(axis=1)]


outcome, columns = {"fair": fair, "adult_uci": adult_uci}[given.data[0]](*given.data[1:])
names = list(columns)
features = np.column_stack([nearest(*columns[name]) for name in names])
order = rng.permutation(len(outcome))
learn, test = order[: len(order) * 4 // 5], order[len(order) * 4 // 5 :]
answers, values = outcome[learn].astype(int), features[learn]
LEVELS = {name: {float(level) for level in columns[name][1]} for name in names}


# %% An ordinary PyMC model. Draws from the posterior need coefficients that have ends, here a ball; the table does not
def logistic(ball):
    with pm.Model() as model:
        w = pmdp.BallNormal("w", precision=1 / 4, radius=RADIUS, shape=3) if ball else pm.Normal("w", 0, 2, shape=3)
        first, second = (pm.Data(name, column) for name, column in zip(names, values.T))
        pm.Bernoulli("y", logit_p=w[0] + w[1] * first + w[2] * second, observed=answers)
    return model


def mode(design, response):
    """Without privacy: the mode under Normal(0, 2) priors, and the deviations of the normal approximation there."""
    w = np.zeros(design.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-design @ w))
        precision = (design * (p * (1 - p))[:, None]).T @ design + np.eye(len(w)) / 4
        w = w + np.linalg.solve(precision, design.T @ (response - p) - w / 4)
    return w, np.sqrt(np.diag(np.linalg.inv(precision)))


def design_of(columns):
    return np.column_stack([np.ones(len(columns)), columns])


def accuracy(w, design=None, response=None):
    """Of predicting the likelier answer on test records, for every w (..., P)."""
    design, response = (design_of(features[test]), outcome[test]) if design is None else (design, response)
    return np.mean((np.asarray(w) @ design.T > 0) == response, axis=-1)


best, deviation = mode(design_of(values), answers)
print(f"{given.data[0]}: {len(learn)} records to learn from, {len(test)} to test; always the commoner answer: ", end="")
print(f"{max(outcome[test].mean(), 1 - outcome[test].mean()):.3f}")
print(f"not private: w = {best.round(3)}, deviations {deviation.round(3)}, norm {np.linalg.norm(best):.2f}, accuracy {accuracy(best):.3f}")
print("\nThe table, before anything is released:")
print(pmdp.inspect(logistic(ball=False), bounds=LEVELS), "\n")

# %% What a draw costs, by what is said of the features: levels, the ends of each, the norm of all
several = {"levels": LEVELS, "ends": dict.fromkeys(names, (-1, 1))}
for said, bounds in several.items():
    tree = pmdp.sample(model=logistic(ball=True), epsilon=100, bounds=bounds, mechanism=pmdp.PosteriorSample(points=21))
    print(f"{said:>7}: an unflattened draw costs epsilon {tree.attrs['epsilon']:.4f}, {tree.attrs['promise']}")
with pm.Model() as model:
    w = pmdp.BallNormal("w", precision=1 / 12, radius=RADIUS * np.sqrt(3), shape=3)  # of features that are smaller by sqrt(3)
    pm.Bernoulli("y", logit_p=pm.math.dot(pm.Data("X", design_of(values) / np.sqrt(3)), w), observed=answers)
tree = pmdp.sample(model=model, epsilon=100, bounds={"X": pmdp.Norm(1.0)}, mechanism=pmdp.PosteriorSample(points=21))
print(f"{'norm':>7}: an unflattened draw costs epsilon {tree.attrs['epsilon']:.4f}, {tree.attrs['promise']}\n")


# %% The three doors
def summary(w):
    """Of draws (D, 3): accuracy of their mean, the mean width of 90 % intervals, and how far the mean is from the mode, without privacy."""
    low, high = np.quantile(w, [0.05, 0.95], axis=0)
    return accuracy(w.mean(axis=0)), np.mean(high - low), np.linalg.norm(w.mean(axis=0) - best)


def by_draws(epsilon, many, delta=0.0):
    tree = pmdp.sample(model=logistic(ball=True), epsilon=epsilon, delta=delta, bounds=LEVELS, mechanism=pmdp.PosteriorSample(draws=many))
    assert tree.attrs["promise"] == "certified"
    return tree.posterior["w"].values[0], tree.privacy.attrs["temperature"], tree.attrs["epsilon"]


def by_release(epsilon, bounds, **how):
    quiet = {"tune": 500, "chains": 2, "random_seed": 1, "progressbar": False, "quiet": True}
    tree = pmdp.sample(500, model=logistic(ball=False), epsilon=epsilon, bounds=bounds, **quiet, **how)
    return tree.posterior["w"].values.reshape(-1, 3)


def timed(function, *arguments, **keywords):
    start = time.perf_counter()
    return function(*arguments, **keywords), time.perf_counter() - start


LINK = {**several["ends"], "logit(y)": (-3, 3)}
WIDTH = 2 * 1.645 * deviation.mean()
print(f"{'epsilon':>7}  {'':26} {'accuracy':>8} {'width of 90 %':>14} {'from the mode':>14}  seconds")
found = {}
for epsilon in EPSILONS:
    (single, heat, _), seconds = timed(by_draws, epsilon * SINGLE, SINGLE)
    scores, far = accuracy(single), np.linalg.norm(single - best, axis=1)
    found["one draw", epsilon] = scores.mean(), np.nan, far.mean(), scores.std()
    print(f"{epsilon:7g}  {'one draw':26} {scores.mean():8.3f} {'':14} {far.mean():14.3f}  {seconds:7.1f}", end="")
    print(f"   T = {heat:.4g}; {SINGLE} draws, each by itself; sd of accuracy {scores.std():.3f}")
    (w, heat, _), seconds = timed(by_draws, epsilon, given.draws, DELTA)
    rows = {f"{given.draws} draws, delta {DELTA:g}": (summary(w), seconds, f"   T = {heat:.4g}")}
    w, seconds = timed(by_release, epsilon, LEVELS)
    rows["table, noise-aware"] = summary(w), seconds, ""
    if epsilon in EPSILONS[::2]:
        w, seconds = timed(by_release, epsilon, LINK, noise_aware=False)
        rows["moments, plug-in"] = summary(w), seconds, ""
    for name, (told, seconds, more) in rows.items():
        found[name, epsilon] = told
        print(f"{'':7}  {name:26} {told[0]:8.3f} {told[1]:14.3f} {told[2]:14.3f}  {seconds:7.1f}{more}")
print(f"{'':7}  {'not private':26} {accuracy(best):8.3f} {WIDTH:14.3f}\n")

# %%
COLORS = {"one draw": "tab:orange", f"{given.draws} draws, delta {DELTA:g}": "tab:red", "table, noise-aware": "tab:blue"}
COLORS["moments, plug-in"] = "tab:green"
figure, axes = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
for name, color in COLORS.items():
    own = [epsilon for kind, epsilon in found if kind == name]
    for axis, place in zip(axes, (0, 2, 1)):
        if not (name == "one draw" and place == 1):
            axis.plot(own, [found[name, epsilon][place] for epsilon in own], color=color, marker="o", markersize=4, label=name)
for axis, level in zip(axes, (accuracy(best), None, WIDTH)):
    if level is not None:
        axis.axhline(level, color="black", linewidth=1, label="not private")
    axis.set(xscale="log", xlabel="epsilon")
axes[0].set(ylabel=f"accuracy on {len(test):,} records", title="accuracy")
axes[1].set(yscale="log", ylabel="distance of the estimate from the mode", title="error of the coefficients")
axes[2].set(yscale="log", ylim=(0.1, 5), ylabel="mean width of 90 % intervals", title="interval width")
axes[2].set_yticks([0.1, 0.2, 0.5, 1, 2, 5], ["0.1", "0.2", "0.5", "1", "2", "5"])
axes[2].minorticks_off()
handles, labels = axes[0].get_legend_handles_labels()
figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=9, frameon=False)
figure.suptitle(f"Logistic regression on {names[0]} and {names[1]}: {len(learn):,} records of {given.data[0]}")
given.output.mkdir(parents=True, exist_ok=True)
figure.savefig(given.output / f"logistic_draws_{given.data[0]}.png", dpi=120)
print(f"Written: {given.output / f'logistic_draws_{given.data[0]}.png'}")

# %% [markdown]
# ## More features
# Four unknown numbers are too many for a grid. As the log-posterior is concave, up to twelve are drawn exactly all the same, by rejection.

# %%
if given.eight:
    everything = sm.datasets.fair.load_pandas().data
    ends = {"rate_marriage": (1, 5), "age": (17, 42), "yrs_married": (0, 23), "children": (0, 5.5), "religious": (1, 4)}
    ends |= {"educ": (9, 20), "occupation": (1, 6), "occupation_husb": (1, 6)}
    wide = [2 * (everything[name].clip(*pair) - pair[0]) / (pair[1] - pair[0]) - 1 for name, pair in ends.items()]
    X = design_of(np.column_stack(wide)) / 3  # nine columns within [-1, 1]: of norm 1 at most
    y = (everything["affairs"] > 0).to_numpy()
    exact, _ = mode(X[learn], y[learn])
    print(f"\neight features, not private: accuracy {accuracy(exact, X[test], y[test]):.3f}, norm {np.linalg.norm(exact):.2f}")
    for epsilon in (1.0, 8.0):
        with pm.Model() as model:
            w = pmdp.BallNormal("w", precision=1 / 4, radius=6.0, shape=9)
            pm.Bernoulli("y", logit_p=pm.math.dot(pm.Data("X", X[learn]), w), observed=y[learn].astype(int))
        how = pmdp.PosteriorSample(draws=20)
        tree, seconds = timed(pmdp.sample, model=model, epsilon=20 * epsilon, bounds={"X": pmdp.Norm(1.0)}, mechanism=how)
        scores = accuracy(tree.posterior["w"].values[0], X[test], y[test])
        print(f"epsilon {epsilon:g} a draw: accuracy {scores.mean():.3f} (sd {scores.std():.3f}), T = ", end="")
        print(f"{tree.privacy.attrs['temperature']:.4g}, {tree.attrs['promise']}, 20 draws in {seconds:.0f} s")
