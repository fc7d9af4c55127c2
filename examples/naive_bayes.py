# %% [markdown]
# # Four private mechanisms for a Bayesian network
#
# Zhang, Rubinstein and Dimitrakakis (AAAI 2016, figure 1) learn a naive Bayes classifier privately: a class and 16 features, all binary,
# 1,000 records made up from a model, 50 for training, 950 for testing, 100 repetitions. This is their experiment, from the model as one
# would write it in PyMC. What made the data is not printed: here every probability is uniform on (0, 1), that of the class on (.2, .8).
#
# Every epsilon on the axis is that of a whole record. The paper plots its posterior sampler at another: that of one variable
# of a record. Beside the honest sampler stands theirs, dotted: at the epsilon written below it, it is *not* private for a record.

# %%
import argparse
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import nutpie
import pymc as pm
from scipy.stats import beta

import pymc_dp as pmdp

arguments = argparse.ArgumentParser(description="Accuracy of private naive Bayes classifiers.")
arguments.add_argument("--repeats", type=int, default=100)
arguments.add_argument("--output", type=Path, default=Path("output"))
given = arguments.parse_args()
FEATURES, TRAINING, EPSILONS = 16, 50, (0.1, 1, 3, 10, 30, 100, 300, 1000)
rng = np.random.default_rng(1)
warnings.simplefilter("ignore", pmdp.UnaccountedWarning)


# %% An ordinary PyMC model: features whose probabilities are indexed by the class
def naive_bayes(label, features):
    with pm.Model() as model:
        share = pm.Beta("share", 1, 1)
        y = pm.Bernoulli("y", share, observed=label)
        theta = pm.Beta("theta", 1, 1, shape=(2, FEATURES))
        pm.Bernoulli("x", theta[y], observed=features)
    return model


def records():
    """1,000 records of a new network: 50 to train on, 950 to test."""
    share, theta = rng.uniform(0.2, 0.8), rng.uniform(size=(2, FEATURES))
    y = (rng.random(1000) < share).astype(int)
    x = (rng.random((1000, FEATURES)) < theta[y]).astype(int)
    return (y[:TRAINING], x[:TRAINING]), (y[TRAINING:], x[TRAINING:])


(y, x), _ = records()
EQUAL = {"y": 1, "x": FEATURES}  # a share of epsilon for every variable, as in the paper
print(pmdp.inspect(naive_bayes(y, x)), "\n")
told = pmdp.utility(naive_bayes(y, x), epsilon=1.0, confidence=0.9, weights=EQUAL)
print(f"At epsilon 1 a noisy count of 50 records may be off by {told.families[1].laplace:.0f} (Proposition 1).\n")


# %% From tables to predictions
def accuracy(share, theta, test):
    """Of predicting the likelier class, from the probability of class 1 and those of the features (2, 16)."""
    label, features = test
    log_odds = np.log(share / (1 - share)) + (features * np.log(theta[1] / theta[0])).sum(axis=1)
    log_odds = log_odds + ((1 - features) * np.log((1 - theta[1]) / (1 - theta[0]))).sum(axis=1)
    return np.mean((log_odds > 0) == label)


def means(release, shifted=False):
    """Posterior means under flat priors, noisy counts moved into [0, n] as in the paper."""
    counts = [release.table("y", shifted=shifted), np.stack([release.table(f"x[{k}]", shifted=shifted) for k in range(FEATURES)], 1)]
    counts = [np.maximum(one, 0) if shifted else np.clip(one, 0, TRAINING) for one in counts]
    share, theta = ((one[..., 1] + 1) / (one.sum(axis=-1) + 2) for one in counts)
    return share, theta


def of_tree(tree):
    return tree.posterior["share"].values.item(), tree.posterior["theta"].values[0, 0]


def per_variable(model, epsilon, train):
    """The paper's accounting, for comparison only: trimmed at 1 / (1 + exp(epsilon / 2)), however many variables there are."""
    w = max(1 / (1 + np.exp(min(epsilon, 600) / 2)), 1e-12)
    label, features = train
    counts = np.array([[(label == k).sum() for k in (1, 0)]])
    parts = [np.array([features[label == k].sum(axis=0), (1 - features[label == k]).sum(axis=0)]) for k in (0, 1)]
    drawn = []
    for ones, zeros in ((counts[:, 0], counts[:, 1]), (np.array([p[0] for p in parts]), np.array([p[1] for p in parts]))):
        low, high = beta.cdf(np.array([w, 1 - w])[:, None, None], 1 + ones, 1 + zeros)
        drawn.append(np.clip(np.nan_to_num(beta.ppf(low + rng.random(ones.shape) * (high - low), 1 + ones, 1 + zeros), nan=0.5), w, 1 - w))
    return drawn[0].item(), drawn[1].reshape(2, FEATURES)


def found(model, epsilon):
    values = pmdp.find_MAP(model=model, epsilon=epsilon)
    return values["share"], values["theta"]


MECHANISMS = {
    "Laplace": lambda model, e, train: means(pmdp.release(model, epsilon=e, weights=EQUAL)),
    "Laplace, least squares": lambda model, e, train: means(pmdp.consistent(pmdp.release(model, epsilon=e, weights=EQUAL))),
    "Fourier, minimal shift": lambda model, e, train: means(pmdp.release(model, epsilon=e, mechanism="fourier"), shifted=True),
    "Fourier, t of 90 %": lambda model, e, train: means(
        pmdp.release(model, epsilon=e, mechanism=pmdp.Fourier(nonnegative=T_OF_90)), shifted=True
    ),
    "posterior sampler": lambda model, e, train: of_tree(pmdp.sample(model=model, epsilon=e, mechanism=pmdp.PosteriorSample())),
    "MAP": lambda model, e, train: found(model, e),
    "posterior sampler at the paper's epsilon (of one variable)": per_variable,
}
network = pmdp.inspect(naive_bayes(y, x)).network
T_OF_90 = network.stealth(1.0)  # the same at every epsilon: noise and shift are both in proportion to 1 / epsilon
print(f"{len(network.coefficients)} coefficients; a record moves them by {network.fourier_sensitivity('replace')}; t = {T_OF_90:.3f}\n")

# %% The experiment
scores = {name: np.zeros((len(EPSILONS), given.repeats)) for name in MECHANISMS}
alone = np.zeros(given.repeats)
for repeat in range(given.repeats):
    train, test = records()
    model, (label, features) = naive_bayes(*train), train
    theta = np.array([(1 + features[label == k].sum(axis=0)) / (2 + (label == k).sum()) for k in (0, 1)])
    alone[repeat] = accuracy((1 + label.sum()) / (2 + TRAINING), theta, test)
    for name, mechanism in MECHANISMS.items():
        for k, epsilon in enumerate(EPSILONS):
            scores[name][k, repeat] = accuracy(*mechanism(model, epsilon, train), test)

# %% The noise-aware posterior, by MCMC: one compiled model for every epsilon, whose released numbers are its data
aware_repeats, aware = min(given.repeats, 20), {}
for epsilon in (1, 10, 100):
    sampler, several = None, []
    for _ in range(aware_repeats):
        train, test = records()
        release = pmdp.consistent(pmdp.release(naive_bayes(*train), epsilon=epsilon, weights=EQUAL))
        if sampler is None:
            sampler = nutpie.compile_pymc_model(pmdp.rewrite(naive_bayes(*train), release), freeze_model=False)
        own = sampler.with_data(y_released=release["y"].values, x_released=release["x"].values)
        tree = nutpie.sample(own, draws=300, tune=300, chains=1, seed=1, progress_bar=False)
        drawn = tree["posterior"]
        several.append(accuracy(float(drawn["share"].mean()), drawn["theta"].values[0].mean(axis=0), test))
    aware[epsilon] = np.mean(several), np.std(several) / np.sqrt(aware_repeats)

# %% In numbers
width = max(map(len, MECHANISMS))
print(f"{'accuracy':{width}}  " + " ".join(f"{epsilon:>6}" for epsilon in EPSILONS))
for name, several in scores.items():
    print(f"{name:{width}}  " + " ".join(f"{value:6.3f}" for value in several.mean(axis=1)))
print(f"{'noise-aware, least squares':{width}}  " + ", ".join(f"{value:.3f} at {epsilon}" for epsilon, (value, _) in aware.items()))
print(f"{'not private':{width}}  {alone.mean():.3f}; standard errors about {alone.std() / np.sqrt(given.repeats):.3f}\n")

# %% [markdown]
# Counted honestly, the sampler never overtakes the Laplace mechanism: its ceiling is the accuracy of one posterior draw. The paper's
# "past a certain threshold" is the dotted line, whose epsilon is that of a single variable: 17 times less than the record's.

# %%
figure, axis = plt.subplots(figsize=(9, 5.5), layout="constrained")
for name, several in scores.items():
    mean, error = several.mean(axis=1), several.std(axis=1) / np.sqrt(given.repeats)
    dotted = "one variable" in name
    axis.errorbar(
        EPSILONS, mean, error, label=name, marker="o", markersize=4, linestyle=":" if dotted else "-", color="grey" if dotted else None
    )
axis.errorbar(
    list(aware), *zip(*aware.values()), label="noise-aware, least squares", marker="s", markersize=5, linestyle="--", color="black"
)
axis.axhline(alone.mean(), color="black", linewidth=1)
axis.annotate("not private", (EPSILONS[0], alone.mean()), xytext=(0, 4), textcoords="offset points")
axis.set(xscale="log", xlabel="epsilon of a record (dotted: of one of its 17 variables)", ylabel="accuracy on 950 records")
axis.set_title(f"Naive Bayes, {FEATURES} features, {TRAINING} records to train on, {given.repeats} repetitions")
axis.legend(fontsize=8, loc="lower right")
given.output.mkdir(parents=True, exist_ok=True)
figure.savefig(given.output / "naive_bayes.png", dpi=120)
print(f"Written: {given.output / 'naive_bayes.png'}")
