"""Published sums of records that nobody here has: do intervals hold the truth, with the law of the noise and with sums taken as exact.

    python benchmarks/published_sums.py [NAME[@RECORDS] ...]    cases, all by default; 300 data sets each, of 50 and of 2,000 records
    MINUTES=8 python benchmarks/published_sums.py               ends after so many minutes; the next call goes on from there

Where each truth lies in its posterior goes to benchmarks/results/published_sums.csv, and coverage as a table to
docs/noisy_numbers_measured.md, between its two marks. Data sets are drawn with parameters from the prior, clamped and summed; the noise
has another scale on each sum. Posteriors of one or two parameters are summed up on a grid that is narrowed five times; of regressions,
which have latent moments, of gamma models, whose posteriors are ridges that a grid misses, beside a table, and where the number of records
is unknown, two chains are drawn by ``pymc_dp.sample``.
"""

import csv
import logging
import os
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path
from zlib import crc32

import arviz as az
import numpy as np
import pymc as pm
from scipy.special import expit
from scipy.stats import binomtest

import pymc_dp as pmdp

SETS, RECORDS = 300, (50, 2000)
LEVELS = (0.5, 0.8, 0.9, 0.95)
PAGE = Path(__file__).parent.parent / "docs" / "noisy_numbers_measured.md"
RESULTS = Path(__file__).parent / "results" / "published_sums.csv"
START, END = "<!-- made by benchmarks/published_sums.py -->\n", "<!-- end of sums -->\n"
COLUMNS = ("case", "records", "set", "unknown", "rank", "as_exact", "rhat", "divergent")
AXIS, DEEP = 33, (400.0, 100.0, 30.0, 12.0, 9.0)
"""Points along each axis of a grid, and, of each time that it is narrowed, nats below the top that are kept: a wide grid misses the top."""
LAWS = {
    pmdp.LaplaceNoise: lambda rng, scale, size: rng.laplace(0, scale, size),
    pmdp.GaussianNoise: lambda rng, scale, size: rng.normal(0, scale, size),
    pmdp.DiscreteLaplace: lambda rng, scale, size: (
        rng.geometric(-np.expm1(-1 / np.asarray(scale)), size) - rng.geometric(-np.expm1(-1 / np.asarray(scale)), size)
    ),
}


# A case: the model of a record; the truth from the prior; the true sums and their noise, given the truth and the number of records; and
# what else is said of them.


def normal(law, scales):
    def model():
        with pm.Model() as result:
            pm.Normal("y", pm.Normal("mean", 5, 2), pm.HalfNormal("sd", 2), observed=[0.0])
        return result

    def truth(rng):
        return {"mean": rng.normal(5, 2), "sd": abs(rng.normal(0, 2))}

    def sums(rng, theta, n):
        y = np.clip(rng.normal(theta["mean"], theta["sd"], n), 0, 10)
        return {"sum y": (y.sum(), law(scales[0])), "sum y²": ((y**2).sum(), law(scales[1]))}

    return model, truth, sums, lambda n: {"bounds": {"y": (0, 10)}, "n": n}


def gamma():
    def model():
        with pm.Model() as result:
            pm.Gamma("y", alpha=pm.LogNormal("alpha", 0, 0.7), beta=pm.LogNormal("beta", 0, 0.7), observed=[1.0])
        return result

    def truth(rng):
        return {"alpha": np.exp(rng.normal(0, 0.7)), "beta": np.exp(rng.normal(0, 0.7))}

    def sums(rng, theta, n):
        y = np.clip(rng.gamma(theta["alpha"], 1 / theta["beta"], n), 0.01, 15)
        return {"sum y": (y.sum(), pmdp.LaplaceNoise(15.0)), "sum log y": (np.log(y).sum(), pmdp.LaplaceNoise(5.0))}

    return model, truth, sums, lambda n: {"bounds": {"y": (0.01, 15)}, "n": n}


def doses():
    dose, scales = np.array([0.5, 1.0, 2.0]), np.array([2.0, 4.0, 6.0])

    def model():
        with pm.Model() as result:
            pm.Bernoulli("y", logit_p=pm.Normal("a", 0, 1.5) + pm.Normal("b", 0, 1.5) * pm.Data("dose", [0.0]), observed=[0])
        return result

    def truth(rng):
        return {"a": rng.normal(0, 1.5), "b": rng.normal(0, 1.5)}

    def sums(rng, theta, n):
        return {"ones": (rng.binomial(np.array(split(n)), expit(theta["a"] + theta["b"] * dose)), pmdp.DiscreteLaplace(scales))}

    return model, truth, sums, lambda n: {"n": split(n), "cells": {"dose": dose}}


def waits():
    """A normal number whose mean is linear in the dose of its cell, clamped to (0, 10); the number of records of every cell is noisy."""
    dose, law = np.array([0.25, 0.75, 1.5]), pmdp.LaplaceNoise

    def model():
        with pm.Model() as result:
            mean = pm.Normal("a", 4, 1.5) + pm.Normal("b", 0, 1.5) * pm.Data("dose", [0.0])
            pm.Normal("y", mean, pm.HalfNormal("sd", 1.5), observed=[0.0])
        return result

    def truth(rng):
        return {"a": rng.normal(4, 1.5), "b": rng.normal(0, 1.5), "sd": abs(rng.normal(0, 1.5))}

    def sums(rng, theta, n):
        cells = [np.clip(rng.normal(theta["a"] + theta["b"] * d, theta["sd"], many), 0, 10) for d, many in zip(dose, split(n))]
        totals, squares = np.array([y.sum() for y in cells]), np.array([(y**2).sum() for y in cells])
        return {"sum y": (totals, law([10.0, 10.0, 20.0])), "sum y²": (squares, law(80.0))}

    return model, truth, sums, lambda n: {"bounds": {"y": (0, 10)}, "n": split(n), "cells": {"dose": dose}}


def people(rng, theta):
    """A table of people by area and sex behind cells, areas and an exact total, of which the first two are published with noise."""
    truth = rng.poisson(theta["size"] * np.array([theta["share"], 1 - theta["share"]]), (2, 2))
    wide, law = np.arange(-30, 31), pmdp.DiscreteGaussian(3.0)
    chances = np.exp(-0.5 * (wide / 3.0) ** 2)
    queries = [
        pmdp.TableQuery(truth + rng.choice(wide, (2, 2), p=chances / chances.sum()), law, dims=("area", "sex")),
        pmdp.TableQuery(truth.sum(axis=1) + rng.laplace(0, 2.0, 2), pmdp.LaplaceNoise(2.0), dims=("area",)),
        pmdp.TableQuery(truth.sum(), pmdp.Exact()),
    ]
    return {"people": pmdp.PublishedTable({"area": ["a", "b"], "sex": ["f", "m"]}, queries)}


def survey():
    """How many of n records are women, beside a table of people: both say something of the share of women."""

    def model():
        with pm.Model(coords={"area": ["a", "b"], "sex": ["f", "m"]}) as result:
            size, share = pm.Gamma("size", 4, 0.2), pm.Beta("share", 2, 2)
            by_sex = size * pm.math.stack([share, 1 - share])
            pm.Poisson("people", by_sex + np.zeros((2, 1)), observed=np.zeros((2, 2), dtype=int), dims=("area", "sex"))
            pm.Bernoulli("y", share, observed=[0])
        return result

    def truth(rng):
        return {"size": rng.gamma(4, 5), "share": rng.beta(2, 2)}

    def sums(rng, theta, n):
        return {"ones": (rng.binomial(n, theta["share"]), pmdp.DiscreteLaplace(4.0))}

    return model, truth, sums, lambda n: {"n": n, "laws": people}


def split(n):
    return [n // 5, n // 5, n - 2 * (n // 5)]


def poisson():
    def model():
        with pm.Model() as result:
            pm.Poisson("y", pm.Gamma("rate", 2, 1), observed=[0])
        return result

    def truth(rng):
        return {"rate": rng.gamma(2, 1)}

    def sums(rng, theta, n):
        return {"sum y": (np.minimum(rng.poisson(theta["rate"], n), 6).sum(), pmdp.DiscreteLaplace(30.0))}

    return model, truth, sums, lambda n: {"bounds": {"y": (0, 6)}, "n": n}


def regression(drop=(), scales_of_x=(3.0, 2.0), one_law=True):
    """The covariate from 0 to 1, the response from -10 to 20: bounds that are not about 0.

    Covariates have one law, or each data set another one.
    """

    def model():
        with pm.Model() as result:
            a, b, sd = pm.Normal("a", 4, 1.5), pm.Normal("b", 0, 3), pm.HalfNormal("sd", 1)
            pm.Normal("y", a + b * pm.Data("x", [0.0]), sd, observed=[0.0])
        return result

    def truth(rng):
        return {"a": rng.normal(4, 1.5), "b": rng.normal(0, 3), "sd": abs(rng.normal(0, 1))}

    def sums(rng, theta, n):
        mean, size = (0.4, 5.0) if one_law else (rng.uniform(0.1, 0.9), rng.lognormal(1, 1))
        x = rng.beta(mean * size, (1 - mean) * size, n)
        y = np.clip(rng.normal(theta["a"] + theta["b"] * x, theta["sd"]), -10, 20)
        law = pmdp.LaplaceNoise
        said = {
            "sum x": (x.sum(), law(scales_of_x[0])), "sum x²": ((x**2).sum(), law(scales_of_x[1])), "sum y": (y.sum(), law(15.0)),
            "sum x y": ((x * y).sum(), law(10.0)), "sum y²": ((y**2).sum(), law(80.0)),
        }  # fmt: skip
        return {name: pair for name, pair in said.items() if name not in drop}

    return model, truth, sums, lambda n: {"bounds": {"x": (0, 1), "y": (-10, 20)}, "n": n}


GRIDS = {
    "Normal, sum and sum of squares, Laplace 20 and 150": lambda: normal(pmdp.LaplaceNoise, (20.0, 150.0)),
    "Normal, sum and sum of squares, Gaussian 30 and 250": lambda: normal(pmdp.GaussianNoise, (30.0, 250.0)),
    "Bernoulli, 3 cells, discrete Laplace 2, 4 and 6": doses,
    "Poisson, discrete Laplace 30": poisson,
}


def with_noisy_number(case, scale):
    """A case whose number of records is published with noise, too."""
    model, truth, sums, more = case
    return model, truth, sums, lambda n: more(n) | {"n": (np.array(more(n)["n"]), pmdp.LaplaceNoise(scale))}


CHAINS = {
    "Regression, 5 sums, Laplace of 5 scales": regression,
    "Gamma, sum and sum of logarithms, Laplace 15 and 5": gamma,
    "Regression, without the sum of squares of x": lambda: regression(("sum x²",)),
    "Regression, 5 sums, those of x nearly exact": lambda: regression(scales_of_x=(0.01, 0.01)),
    "Regression, 5 sums, x of another law each time": lambda: regression(one_law=False),
    "Normal, sum and sum of squares, Laplace 20 and 150, number Laplace 5": lambda: with_noisy_number(
        normal(pmdp.LaplaceNoise, (20.0, 150.0)), 5.0
    ),
    "Poisson, discrete Laplace 30, number Laplace 5": lambda: with_noisy_number(poisson(), 5.0),
    "Normal, 3 cells, sums and sums of squares, numbers Laplace 5": lambda: with_noisy_number(waits(), 5.0),
    "Regression, 5 sums, number Laplace 5": lambda: with_noisy_number(regression(), 5.0),
    "Bernoulli, discrete Laplace 4, beside a table of 4 cells": survey,
}


def noised(rng, sums):
    return {name: (value + LAWS[type(law)](rng, law.scale, np.shape(value)), law) for name, (value, law) in sums.items()}


class Grid:
    """The posterior of one or two unknowns, whatever was published: compiled once."""

    def __init__(self, public):
        self.public = public
        self.data = [public[f"{observed.name}_released"] for observed in public.observed_RVs]
        self.density = public.compile_logp(jacobian=False)
        self.density.f.trust_input = True
        self.names = [variable.name for variable in public.free_RVs]
        self.logged = [variable.name.endswith("_log__") for variable in public.value_vars]
        self.values = [variable.name for variable in public.value_vars]

    def ranks(self, other, theta, widths):
        """The posterior probability of less than the truth, for every unknown, given what another model of the same shape observes."""
        for mine, observed in zip(self.data, other.observed_RVs, strict=True):
            mine.set_value(other[f"{observed.name}_released"].get_value())
        low, high = (np.array([widths[name][end] for name in self.names]) for end in (0, 1))
        for zoom in range(len(DEEP) + 1):
            axes = [np.linspace(a, b, AXIS) for a, b in zip(low, high)]
            at = np.meshgrid(*axes, indexing="ij")
            shape = at[0].shape
            points = zip(*(np.log(each.ravel()) if logged else each.ravel() for each, logged in zip(at, self.logged, strict=True)))
            logs = np.nan_to_num([self.density(dict(zip(self.values, map(np.array, point)))) for point in points], nan=-np.inf).reshape(
                shape
            )
            if zoom < len(DEEP):
                near = logs > logs.max() - DEEP[zoom]
                for k, axis in enumerate(axes):
                    there = np.flatnonzero(near.any(axis=tuple(j for j in range(len(axes)) if j != k)))
                    low[k], high[k] = axis[max(there[0] - 1, 0)], axis[min(there[-1] + 1, AXIS - 1)]
        weights = np.exp(logs - logs.max())
        result = {}
        for k, name in enumerate(self.names):
            share = weights.sum(axis=tuple(j for j in range(len(axes)) if j != k))
            whole = np.concatenate([[0.0], np.cumsum((share[1:] + share[:-1]) / 2)])
            result[name] = np.interp(theta[name], axes[k], whole / whole[-1])
        return result


def widths_of(truth, rng):
    """Where the prior has nearly everything."""
    draws = [truth(rng) for _ in range(4000)]
    ends = {}
    for name in draws[0]:
        values = np.array([draw[name] for draw in draws])
        apart = values.max() - values.min()
        least = values.min() - 0.4 * apart
        ends[name] = (max(least, 1e-3 * values.min()) if values.min() > 0 else least, values.max() + 0.4 * apart)
    return ends


def drawn(name, n, k, case):
    """Data set ``k`` of a case: the truth, what is told of it, and what else is said."""
    rng = np.random.default_rng([k, n, crc32(name.encode())])
    _, truth, sums, more = case
    theta, said = truth(rng), more(n)
    if isinstance(said["n"], tuple):
        number, law = said["n"]
        said["n"] = number + LAWS[type(law)](rng, law.scale, np.shape(number) or None), law
    if "laws" in said:
        said["laws"] = said["laws"](rng, theta)
    return theta, noised(rng, sums(rng, theta, n)), said


def by_grid(name, n, sets):
    """For each data set and unknown: rank, rank with sums taken as exact, and two gaps."""
    case = GRIDS[name]()
    record, widths = case[0](), widths_of(case[1], np.random.default_rng(1))
    ours, theirs = None, None
    for k in sets:
        theta, told, said = drawn(name, n, k, case)
        public = pmdp.published(record, statistics={"y": told}, **said)
        ours = ours or Grid(public)
        found, as_exact = ours.ranks(public, theta, widths), dict.fromkeys(theta, np.nan)
        with suppress(pmdp.Refusal):  # taken as exact, a sum beyond what is possible has no posterior: its intervals hold nothing
            exact = pmdp.published(record, statistics={"y": {key: (v, small(law)) for key, (v, law) in told.items()}}, **said)
            theirs = theirs or Grid(exact)
            as_exact = theirs.ranks(exact, theta, widths)
        yield k, [(unknown, found[unknown], as_exact[unknown], "", "") for unknown in theta]


def small(law):
    """Noise of a hundredth, of the same kind: numbers are all but taken as exact, and what no records give has a posterior, too."""
    kind = pmdp.LaplaceNoise if type(law) is pmdp.DiscreteLaplace else type(law)
    return kind(np.asarray(law.scale) / 100)


def by_chains(name, n, sets):
    """For each data set and unknown: rank, a gap, R-hat, and whether a draw diverged."""
    case = CHAINS[name]()
    record = case[0]()
    for k in sets:
        theta, told, said = drawn(name, n, k, case)
        public = pmdp.published(record, statistics={"y": told}, **said)
        tree = pmdp.sample(
            400, tune=400, chains=2, cores=1, model=public, progressbar=False, random_seed=k, compute_convergence_checks=False
        )
        rhat, divergent = az.rhat(tree, var_names=list(theta)), int(tree.sample_stats["diverging"].sum() > 0)
        yield (
            k,
            [
                (unknown, float((tree.posterior[unknown] < value).mean()), "", float(rhat[unknown]), divergent)
                for unknown, value in theta.items()
            ],
        )


def kept():
    """Rows of the results file, by case and number of records."""
    found = {}
    if RESULTS.exists():
        with RESULTS.open(newline="") as file:
            for row in csv.DictReader(file):
                found.setdefault((row["case"], int(row["records"])), []).append(row)
    return found


def measured(name, n, until):
    """Add the data sets of a case that the file does not have yet."""
    done = {int(row["set"]) for row in kept().get((name, n), [])}
    new = not RESULTS.exists()
    with RESULTS.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        for k, entries in (by_grid if name in GRIDS else by_chains)(name, n, [k for k in range(SETS) if k not in done]):
            for unknown, *numbers in entries:
                writer.writerow([name, n, k, unknown, *(f"{x:.4f}" if isinstance(x, float) else x for x in numbers)])
            file.flush()
            if time.time() > until:
                return


def shown(ranks, level):
    """Coverage; with a star where so many or few would be seen less than once in a hundred cells that are right."""
    held = int((np.abs(ranks - 0.5) <= level / 2).sum())
    return f"{held / len(ranks):.2f}{'*' if binomtest(held, len(ranks), level).pvalue < 0.01 else ''}"


def table():
    """The table of the page, from the results file."""
    lines = [
        "| what was published | records | data sets | parameter | 50 % | 80 % | 90 % | 95 % | as exact: 90 % | R-hat | divergent |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    results = kept()
    for name in [*GRIDS, *CHAINS]:
        for n in RECORDS:
            rows = results.get((name, n), [])
            for unknown in dict.fromkeys(row["unknown"] for row in rows):
                of = [row for row in rows if row["unknown"] == unknown]
                ranks = np.array([float(row["rank"]) for row in of])
                cells = [name, f"{n:,}", str(len(of)), unknown, *(shown(ranks, level) for level in LEVELS)]
                cells.append(shown(np.array([float(row["as_exact"]) for row in of]), 0.9) if name in GRIDS else "")
                cells += (
                    ["", ""]
                    if name in GRIDS
                    else [f"{max(float(row['rhat']) for row in of):.2f}", str(sum(int(row["divergent"]) for row in of))]
                )
                lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def write():
    text = PAGE.read_text()
    PAGE.write_text(text.split(START)[0] + START + table() + END + text.split(END)[1])


def main(wanted):
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    until = time.time() + 60 * float(os.environ.get("MINUTES", "1e9"))
    for which in wanted or [*GRIDS, *CHAINS]:
        name, _, records = which.partition("@")
        for n in [int(records)] if records else RECORDS:
            if time.time() < until:
                measured(name, n, until)
    write()


if __name__ == "__main__":
    main(sys.argv[1:])
