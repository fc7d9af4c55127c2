# %% [markdown]
# # Questions under a budget: what inference from earlier answers saves
#
# Xiao and Xiong ("Bayesian inference under differential privacy", 2012) answer a question from earlier noisy answers when those are good
# enough for the interval that was asked for, and pay the least that is enough when they are not. Their experiments in kind, on generated
# people: the two ways of computing the law of an answer's error, and how long a budget lasts with and without inference.
#
# Their data and settings are lost with the end of their file; the theory that the pictures are compared with is theirs:
# the squared error of a simulated law is (1 - sum p²) / draws, and an answer by itself costs (2 S / L) log(1 / delta).

# %%
import argparse
import time
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import pymc_dp as pmdp
from pymc_dp.queries.convolution import convolved, simulated

arguments = argparse.ArgumentParser(description="Questions about one table: Monte Carlo against convolution, and the lifetime of a budget.")
arguments.add_argument("--records", type=int, default=50_000)
arguments.add_argument("--questions", type=int, default=400, help="of the workload that spends a budget")
arguments.add_argument("--epsilon", type=float, default=0.5, help="of the budget")
arguments.add_argument("--seed", type=int, default=1, help="of people and questions; the noise has none")
arguments.add_argument("--output", type=Path, default=Path("output"))
given = arguments.parse_args()
given.output.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(given.seed)
warnings.simplefilter("ignore", pmdp.UnaccountedWarning)


# %% People, and what is public about them
ages = np.clip(rng.gamma(4, 11, given.records).astype(int), 0, 99)
decile = np.clip((rng.normal(3 + 0.05 * ages, 2)).astype(int), 0, 9)
people = pd.DataFrame({"age": ages, "decile": decile})
schema = {"age": range(100), "decile": range(10)}


def session(**words):
    """Nobody's age or decile is missing: a promise, with which "decile > 4" follows from "decile <= 4"."""
    return pmdp.QuerySession(people, schema, complete=True, **words)


# %% Three questions
first = session(epsilon=given.epsilon)
print(first.price("age >= 65", width=400))
for asked in ("age >= 65", "age >= 65 & decile >= 8", "age >= 65 & decile < 8"):
    print(first.ask(asked, width=400))
print(f"{first}\n")


# %% The law of an error: Algorithm 1, by simulation, and Algorithm 2, by convolution, as the history grows
DRAWS, CONFIDENCE = 2000, 0.95


def within(sizes, scales, distance):
    """P(|error| <= distance) by a fine quadrature of the characteristic function, to compare both with."""
    t = np.linspace(1e-12, 60 / np.sqrt((sizes**2 * 2 * scales**2).max()), 400_001)
    each = 0.5 / np.sinh(0.5 / scales) ** 2
    log_cf = -sum(np.log1p(v * (1 - np.cos(a * t))) for a, v in zip(sizes, each, strict=True))
    return 2 / np.pi * np.trapezoid(np.exp(log_cf) * np.sin(distance * t) / t, t)


rows = []
for m in (3, 10, 30, 100, 300, 1000):
    coefficients, scales = rng.normal(size=m), rng.uniform(5, 50, m)
    start = time.perf_counter()
    fine = convolved(coefficients, scales)
    distance = fine.distance(CONFIDENCE)
    middle = time.perf_counter()
    drawn = simulated(coefficients, scales, DRAWS, "a question", fine.step)
    end = time.perf_counter()
    exact = within(coefficients, scales, distance)
    # On a grid of a tenth of a standard deviation, whose cells are likely enough to compare with the theory of the squared error.
    step = np.sqrt((coefficients**2 * 2 * scales**2).sum()) / 10
    coarse = simulated(coefficients, scales, DRAWS, "a question", step)
    half = len(coarse.mass) // 2
    cells = np.diff([fine.below(edge) for edge in (np.arange(-half, half + 2) - 0.5) * step])
    squared, theory = ((cells - coarse.mass) ** 2).sum(), (1 - (cells**2).sum()) / DRAWS
    errors = [abs(one.within(distance) - exact) for one in (drawn, fine)]
    rows.append((m, 1000 * (end - middle), errors[0], squared, theory, 1000 * (middle - start), errors[1]))
names = ["answers", "simulation ms", "its error", "its squared error", "theory", "convolution ms", "error"]
laws = pd.DataFrame(rows, columns=names)
print(laws.to_string(index=False, float_format="{:.2g}".format), "\n")


# %% How long a budget lasts: questions until it is spent
def holding(words):
    """How many people there are, which a session never tells."""
    return int(people.eval(words.replace("<= age <=", "<= age and age <=")).sum())


def asked_in_turn(told):
    """Epsilon spent after every question; those that are refused are left out."""
    spent, free, held, seconds = [], 0, [], []
    for asked, width in workload:
        start = time.perf_counter()
        try:
            answer = told.ask(asked, width=width)
        except pmdp.Refusal:
            continue
        finally:
            seconds.append(time.perf_counter() - start)
            spent.append(float(told.cost))
        free += answer.how != "paid"
        low, high = answer.interval
        held.append(low <= holding(asked) <= high)
    print(
        f"{len(held)} of {len(workload)} questions answered, {free} of them free; epsilon {spent[-1]:.3f};"
        f" {np.mean(held):.1%} of the 95 % intervals hold; {1000 * np.median(seconds):.1f} ms a question"
    )
    return spent


low, high = np.sort(rng.integers(0, 100, (2, given.questions)), axis=0)
poor = rng.random(given.questions) < 0.3
widths = (given.records * np.exp(rng.uniform(np.log(0.005), np.log(0.05), given.questions))).round()
words = [f"{a} <= age <= {b}" + (" & decile <= 4" if p else "") for a, b, p in zip(low, high, poor, strict=True)]
workload = list(zip(words, widths, strict=True))
each = np.cumsum([float(session().price(asked, width=width).separately) for asked, width in workload])
afforded = np.searchsorted(each, given.epsilon, side="right")
print(f"One by one: epsilon {each[-1]:.2f} for {given.questions} questions; {given.epsilon:g} is enough for {afforded}")
print("With inference: ", end="")
inferred = asked_in_turn(session(epsilon=given.epsilon))
# Records that can only be in one of several questions pay for one: a whole histogram costs what two of its bars do.
prepared = session(epsilon=given.epsilon)
for age in range(100):
    for half in ("<= 4", "> 4"):
        prepared.ask(f"age == {age} & decile {half}", epsilon=given.epsilon / 2)
print(f"A histogram first, epsilon {float(prepared.cost):.3f}: ", end="")
from_bars = asked_in_turn(prepared)

# %% Pictures
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 3.8))
left.loglog(laws["answers"], laws["its error"], "o-", color="tab:orange", label=f"Monte Carlo, {DRAWS:,} draws")
left.axhline(np.sqrt(CONFIDENCE * (1 - CONFIDENCE) / DRAWS), color="black", ls="--", lw=0.8, label="its standard error")
left.loglog(laws["answers"], laws["error"], "o-", color="tab:blue", label="convolution, never too short")
left.set(xlabel="answers in the history", ylabel="of the probability of a 95 % interval", title="error")
left.legend(fontsize=8)
middle.loglog(laws["answers"], laws["simulation ms"], "o-", color="tab:orange", label="Monte Carlo")
middle.loglog(laws["answers"], laws["convolution ms"], "o-", color="tab:blue", label="convolution")
middle.set(xlabel="answers in the history", ylabel="milliseconds", title="time")
middle.legend(fontsize=8)
many = np.arange(1, given.questions + 1)
right.plot(many, each, color="tab:red", label="one by one")
right.plot(many, inferred, color="tab:blue", label="with inference")
right.plot(many, from_bars, color="tab:green", label="a histogram first")
right.set_ylim(0, 1.6 * given.epsilon)
right.axhline(given.epsilon, color="black", lw=0.8, ls=":")
right.set(xlabel="questions asked", ylabel="epsilon spent", title="lifetime of the budget")
right.legend(fontsize=8)
figure.tight_layout()
figure.savefig(given.output / "questions.png", dpi=110)
print(f"\nPicture: {given.output}/questions.png")
