"""Simulation-based calibration of every family and structure: writes benchmarks/results/calibration.csv and docs/calibration.md.

    python benchmarks/calibration.py run [--cases a,b] [--minutes M] [--processes 2] [--replicates R]
    python benchmarks/calibration.py estimate [--cases a,b]
    python benchmarks/calibration.py summary

Parameters are drawn from the prior and records from the model itself; the records are released by ``pymc_dp.release``; the
private posterior is sampled; the rank of the truth among its draws is noted. Ranks of a right posterior are uniform, and its
intervals cover. Blocks that are in the CSV are not run again, so a run that was stopped goes on where it stopped.
"""

import argparse
import csv
import os
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import numpy as np
import nutpie
import pymc as pm
from arviz_stats.base import array_stats
from pymc.pytensorf import compile as compile_graph
from pymc.pytensorf import find_rng_nodes, reseed_rngs
from pytensor.graph.basic import equal_computations
from scipy.special import expit
from scipy.stats import chisquare, norm

import pymc_dp as pmdp
from pymc_dp.private_models import likelihood as likely
from pymc_dp.private_models.default_steps import suited
from pymc_dp.private_models.likelihood import plan_of
from pymc_dp.private_models.moment_loops import SHARE, SHARE_BY_WEIGHT, SPREAD_OF_MEAN
from pymc_dp.private_models.nutpie_draws import started
from pymc_dp.private_models.plug_in import plug_in
from pymc_dp.releases.noisy_statistic import NoisyStatistic
from pymc_dp.releases.release import Release

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "calibration.csv"

CHAINS, DRAWS, TUNE = 2, 240, 300
LONGER = (1, 4, 16)
"""A fit whose effective sample size is too small is done again, with so many times the draws."""
RANKED = 79
"""Draws of all chains that the truth is ranked among, thinned to near independence. Ranks 0..79 are equally likely: the 95 % interval from
the second lowest to the second highest draw covers in 76 of 80 cases exactly, and the 90 % interval in 72."""
BINS = 20
BLOCK = 150
CHEAP, DEAR, PLUG_IN = 1050, 300, 150
"""Replicates of cases that are cheap, of those that are not, and of the plug-in posterior."""
FAR = 2.5
"""Standard errors from which on a share of intervals is named."""
OLDER = (
    "Rows of *linear 1* at other epsilons than 0.3 and of *linear assumed* are older than the multiplication of second moments\n"
    "before the noise, which leaves a single feature as it was. Rows of *logistic*, *logistic uniform* and\n"
    "*logistic assumed* are older than the round of scores that takes the place of two under strong noise,\n"
    "and those of *logistic uniform* with 1,000 records older than the curve that scores follow now;\n"
    "those of *log linear* and *log linear assumed* are older than the multiplication of the information\n"
    "([theory](theory.md)). [Hard cases](adversarial.md) of 1,000 and of 20,000 records are of the present version."
)
"""What the page says of rows that the current version has not made."""
CHECKED = 3
"""Replicates a unit whose private model is built anew and compared with the compiled one."""


# ---------- cases: models as one would write them, on records that are replaced
@dataclass(frozen=True)
class Case:
    """One model, and how its covariates are distributed.

    ``make(N)`` gives the model and the arguments of ``release``. Its records are ``pm.Data`` named rows, or "<variable>_rows" where it
    observes several variables. ``covariates(rng, N)`` gives the private covariates of a replicate by name, ``size(rng, N)`` its number
    of records where that is private. ``plug_in`` says whether the plug-in posterior is sampled, too; what makes Fourier's counts
    nonnegative differs between releases and is part of that model, which would have to be compiled for every one.
    """

    make: Callable[[int], tuple[pm.Model, dict]]
    covariates: Callable[[np.random.Generator, int], dict] = lambda rng, N: {}
    size: Callable[[np.random.Generator, int], int] | None = None
    arguments: dict = field(default_factory=dict)
    pooled: bool = False
    dear: bool = False
    plug_in: bool = True
    consistent: bool = False
    tune: int = TUNE


def counts(N: int, *columns: int):
    return pm.Data("rows", np.zeros((N, *columns), dtype=np.int64))


def reals(N: int):
    return pm.Data("rows", np.full(N, 0.5))


def simple(build: Callable, rows: Callable = reals, **arguments) -> Callable[[int], tuple[pm.Model, dict]]:
    """A model without covariates: ``build`` adds priors and the likelihood y of the rows."""

    def make(N: int) -> tuple[pm.Model, dict]:
        with pm.Model() as model:
            build(rows(N))
        return model, arguments

    return make


def bernoulli_groups(N: int):
    with pm.Model(coords={"group": range(3)}) as model:
        pm.Bernoulli("y", pm.Beta("theta", 2, 2, dims="group")[np.arange(N) % 3], observed=counts(N))
    return model, {"public": ["group"]}


def item_response(y) -> None:
    """Four questions of differing difficulty, answered by persons with an ability each."""
    difficulty, spread = pm.Normal("b", 0, 1, shape=4), pm.Gamma("s", 4, 4)
    pm.Bernoulli("y", logit_p=spread * pm.Normal("ability", shape=y.get_value().shape[0])[:, None] - difficulty, observed=y)


def bernoulli_hierarchy(N: int):
    with pm.Model(coords={"group": range(3)}) as model:
        mu, tau, z = pm.Normal("mu", 0, 1), pm.HalfNormal("tau", 1), pm.Normal("z", 0, 1, dims="group")
        pm.Bernoulli("y", logit_p=(mu + tau * z)[np.arange(N) % 3], observed=counts(N))
    return model, {"public": ["group"]}


def bernoulli_private_index(N: int):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("theta", 1, 1, shape=2)[pm.Data("g", np.arange(N) % 2)], observed=counts(N))
    return model, {}


def normal_private_index(N: int):
    with pm.Model() as model:
        mu, sigma = pm.Normal("mu", 0, 2, shape=2), pm.Gamma("sigma", 4, 2)
        pm.Normal("y", mu[pm.Data("g", np.arange(N) % 2)], sigma, observed=reals(N))
    return model, {"bounds": {"y": (-8, 8)}}


def network(N: int):
    """A class above a variable of two and one of three levels, the last below both."""
    with pm.Model() as model:
        y = pm.Bernoulli("y", pm.Beta("share", 2, 2), observed=pm.Data("y_rows", np.zeros(N, dtype=np.int64)))
        x = pm.Bernoulli("x", pm.Beta("theta", 1, 1, shape=2)[y], observed=pm.Data("x_rows", np.zeros(N, dtype=np.int64)))
        phi = pm.Dirichlet("phi", np.ones(3), shape=(2, 2, 3))
        pm.Categorical("z", phi[y, x], observed=pm.Data("z_rows", np.zeros(N, dtype=np.int64)))
    return model, {}


def naive_bayes(N: int):
    """A class above six features."""
    with pm.Model() as model:
        y = pm.Bernoulli("y", pm.Beta("share", 2, 2), observed=pm.Data("y_rows", np.zeros(N, dtype=np.int64)))
        theta = pm.Beta("theta", 1, 1, shape=(2, 6))
        pm.Bernoulli("x", theta[y], observed=pm.Data("x_rows", np.zeros((N, 6), dtype=np.int64)))
    return model, {}


def private_covariate(N: int):
    with pm.Model() as model:
        a, b = pm.Normal("a", 0, 1), pm.Normal("b", 0, 1)
        pm.Bernoulli("y", logit_p=a + b * pm.Data("x", np.arange(N) % 3), observed=counts(N))
    return model, {"bounds": {"x": (0, 2)}}


def aggregate_binomial(N: int):
    with pm.Model() as model:
        theta = pm.Beta("theta", 2, 2, shape=10)
        pm.Binomial("y", n=pm.Data("trials", np.full(10, N // 10)), p=theta, observed=counts(10))
    return model, {"unit": pmdp.Individual(), "public": ["trials"]}


def aggregate_poisson(N: int):
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 0.5, shape=10)
        pm.Poisson("y", rate * pm.Data("exposure", np.full(10, N / 40)), observed=counts(10))
    return model, {"unit": pmdp.Individual(events=2, membership="public"), "public": ["exposure"]}


def linear_1(N: int):
    with pm.Model() as model:
        a, b = pm.TruncatedNormal("a", 0, 1, lower=-2, upper=2), pm.TruncatedNormal("b", 0, 1, lower=-2, upper=2)
        pm.Normal("y", a + b * pm.Data("x", np.zeros(N)), pm.Uniform("sigma", 0.3, 1.5), observed=reals(N))
    return model, {"bounds": {"x": (-7, 7), "y": (-18, 18)}}


def linear_2(N: int):
    with pm.Model() as model:
        a, b = pm.TruncatedNormal("a", 0, 1, lower=-2, upper=2), pm.TruncatedNormal("b", 0, 0.75, lower=-1.5, upper=1.5, shape=2)
        mu = a + pm.math.dot(pm.Data("X", np.zeros((N, 2))), b)
        pm.Normal("y", mu, pm.Uniform("sigma", 0.3, 1.5), observed=reals(N))
    return model, {"bounds": {"X": (-7, 7), "y": (-18, 18)}}


def linear_5(N: int):
    with pm.Model() as model:
        a, b = pm.TruncatedNormal("a", 0, 1, lower=-2, upper=2), pm.TruncatedNormal("b", 0, 0.5, lower=-1, upper=1, shape=5)
        mu = a + pm.math.dot(pm.Data("X", np.zeros((N, 5))), b)
        pm.Normal("y", mu, pm.Uniform("sigma", 0.3, 1.5), observed=reals(N))
    return model, {"bounds": {"X": (-6, 6), "y": (-18, 18)}}


def logistic(N: int):
    with pm.Model() as model:
        a, b = pm.Normal("a", 0, 1), pm.Normal("b", 0, 1)
        pm.Bernoulli("y", logit_p=a + b * pm.Data("x", np.zeros(N)), observed=counts(N))
    return model, {"bounds": {"x": (-7, 7), "logit(y)": (-4, 4)}}


def log_linear(N: int):
    with pm.Model() as model:
        a, b = pm.Normal("a", 0, 0.5), pm.Normal("b", 0, 0.3)
        pm.Poisson("y", pm.math.exp(a + b * pm.Data("x", np.zeros(N))), observed=counts(N))
    return model, {"bounds": {"x": (-7, 7), "y": (0, 20), "log(y)": (-2, 2)}}


def shares(name: str, levels: int) -> Callable:
    """Levels with shares that are flat on the simplex, as the private model has them."""
    return lambda rng, N: {name: rng.choice(levels, N, p=rng.dirichlet(np.ones(levels)))}


def one_real(rng: np.random.Generator, N: int) -> dict:
    return {"x": rng.normal(rng.uniform(-1, 1), rng.uniform(0.5, 1.5), N)}


def one_uniform(rng: np.random.Generator, N: int) -> dict:
    """Features that are not normal."""
    return {"x": rng.uniform(rng.uniform(-4, -1), rng.uniform(1, 4), N)}


def one_assumed(rng: np.random.Generator, N: int, of_share: tuple[float, float] = SHARE) -> dict:
    """A feature with a mean and a variance that the private model's own prior draws: a beta variable on its bounds."""
    slope = SPREAD_OF_MEAN * np.sinh(rng.normal())
    mean, share = slope / np.sqrt(1 + slope**2), expit(rng.normal(*of_share))
    first, second = (1 / share - 1) * (1 + mean) / 2, (1 / share - 1) * (1 - mean) / 2
    return {"x": 7 * (2 * rng.beta(first, second, N) - 1)}


def one_assumed_by_weight(rng: np.random.Generator, N: int) -> dict:
    """The same for likelihoods with a link."""
    return one_assumed(rng, N, SHARE_BY_WEIGHT)


def two_reals(rng: np.random.Generator, N: int) -> dict:
    return {"X": rng.normal(rng.uniform(-1, 1, 2), rng.uniform(0.5, 1.5, 2), (N, 2))}


def five_reals(rng: np.random.Generator, N: int) -> dict:
    return {"X": rng.normal(rng.uniform(-0.5, 0.5, 5), rng.uniform(0.5, 1.25, 5), (N, 5))}


def bernoulli(y):
    pm.Bernoulli("y", pm.Beta("theta", 1, 1), observed=y)


def censored_exponential(limit: float, y):
    pm.Censored("y", pm.Exponential.dist(pm.Gamma("lam", 3, 3)), lower=None, upper=limit, observed=y)


def normal(y):
    pm.Normal("y", pm.Normal("mu", 0, 2), pm.Gamma("sigma", 4, 2), observed=y)


RESIDUALS = {"mechanism": pmdp.Laplace(residuals=True)}
CASES: dict[str, Case] = {
    "bernoulli": Case(simple(bernoulli, counts)),
    "poisson": Case(simple(lambda y: pm.Poisson("y", pm.Gamma("mu", 2, 0.5), observed=y), counts, bounds={"y": (0, 10)})),
    "normal": Case(simple(normal, bounds={"y": (-8, 8)})),
    "categorical": Case(simple(lambda y: pm.Categorical("y", pm.Dirichlet("p", np.ones(3)), observed=y), counts)),
    "bernoulli_edges": Case(simple(lambda y: pm.Bernoulli("y", pm.Beta("theta", 0.3, 0.3), observed=y), counts)),
    "bernoulli_groups": Case(bernoulli_groups),
    "bernoulli_hierarchy": Case(bernoulli_hierarchy, tune=500),
    "bernoulli_private_index": Case(bernoulli_private_index, shares("g", 2), dear=True),
    "bernoulli_add_remove": Case(
        simple(bernoulli, counts), size=lambda rng, N: int(rng.integers(N // 2, 3 * N // 2 + 1)), arguments={"neighbours": "add_remove"}
    ),
    "bernoulli_gaussian": Case(simple(bernoulli, counts), arguments={"mechanism": "gaussian", "delta": 1e-6}),
    "normal_gaussian": Case(simple(normal, bounds={"y": (-8, 8)}), arguments={"mechanism": "gaussian", "delta": 1e-6}),
    "normal_private_index": Case(normal_private_index, shares("g", 2), dear=True, tune=600),
    "network": Case(network, dear=True),
    "network_fourier": Case(network, arguments={"mechanism": "fourier"}, dear=True, plug_in=False),
    "naive_bayes": Case(naive_bayes, dear=True),
    "naive_bayes_consistent": Case(naive_bayes, dear=True, plug_in=False, consistent=True),
    "network_consistent": Case(network, dear=True, plug_in=False, consistent=True),
    "naive_bayes_fourier": Case(naive_bayes, arguments={"mechanism": "fourier"}, dear=True, plug_in=False),
    "private_covariate": Case(private_covariate, shares("x", 3), dear=True),
    "binomial": Case(simple(lambda y: pm.Binomial("y", 5, pm.Beta("p", 1, 2), observed=y), counts)),
    "binomial_gaussian": Case(
        simple(lambda y: pm.Binomial("y", 5, pm.Beta("p", 1, 2), observed=y), counts), arguments={"mechanism": "gaussian", "delta": 1e-6}
    ),
    "categorical_8": Case(simple(lambda y: pm.Categorical("y", pm.Dirichlet("p", np.ones(8)), observed=y), counts), dear=True),
    "multinomial": Case(
        simple(lambda y: pm.Multinomial("y", 5, pm.Dirichlet("p", np.ones(3)), observed=y), lambda N: counts(N, 3)), dear=True
    ),
    "poisson_near_zero": Case(simple(lambda y: pm.Poisson("y", pm.Gamma("mu", 0.5, 0.5), observed=y), counts, bounds={"y": (0, 8)})),
    "item_response": Case(simple(item_response, lambda N: counts(N, 4)), dear=True, tune=500, plug_in=False),
    "geometric": Case(simple(lambda y: pm.Geometric("y", pm.Beta("p", 2, 4), observed=y), counts, bounds={"y": (1, 12)})),
    "negative_binomial": Case(
        simple(lambda y: pm.NegativeBinomial("y", mu=pm.Gamma("mu", 2, 0.5), alpha=2, observed=y), counts, bounds={"y": (0, 20)})
    ),
    "normal_known_sigma": Case(simple(lambda y: pm.Normal("y", pm.Normal("mu", 0, 2), 1.5, observed=y), bounds={"y": (-6, 6)})),
    "normal_known_mu": Case(simple(lambda y: pm.Normal("y", 1, pm.Gamma("sigma", 4, 2), observed=y), bounds={"y": (-6, 8)})),
    "lognormal": Case(
        simple(lambda y: pm.LogNormal("y", pm.Normal("mu", 0, 1), pm.Gamma("sigma", 4, 4), observed=y), bounds={"y": (0.05, 20)})
    ),
    "half_normal": Case(simple(lambda y: pm.HalfNormal("y", pm.Gamma("sigma", 4, 2), observed=y), bounds={"y": (0, 8)})),
    "exponential": Case(simple(lambda y: pm.Exponential("y", pm.Gamma("lam", 3, 3), observed=y), bounds={"y": (0, 8)})),
    "censored_exponential": Case(simple(partial(censored_exponential, 1.0), bounds={"y": (0, 1)})),
    "censored_exponential_rare": Case(simple(partial(censored_exponential, 0.05), bounds={"y": (0, 0.05)})),
    "weibull": Case(simple(lambda y: pm.Weibull("y", 1.5, pm.Gamma("beta", 4, 2), observed=y), bounds={"y": (0, 8)})),
    "pareto": Case(simple(lambda y: pm.Pareto("y", pm.Gamma("alpha", 4, 2), 1.0, observed=y), bounds={"y": (1, 50)})),
    "laplace": Case(simple(lambda y: pm.Laplace("y", 0, pm.Gamma("b", 4, 4), observed=y), bounds={"y": (-6, 6)})),
    "gamma_known_alpha": Case(simple(lambda y: pm.Gamma("y", 2, pm.Gamma("beta", 4, 4), observed=y), bounds={"y": (0.1, 10)})),
    "gamma": Case(
        simple(lambda y: pm.Gamma("y", pm.Gamma("alpha", 4, 2), pm.Gamma("beta", 4, 4), observed=y), bounds={"y": (0.05, 12)}), dear=True
    ),
    "inverse_gamma": Case(
        simple(lambda y: pm.InverseGamma("y", pm.Gamma("alpha", 9, 3), pm.Gamma("beta", 4, 2), observed=y), bounds={"y": (0.1, 10)}),
        dear=True,
    ),
    "beta": Case(
        simple(lambda y: pm.Beta("y", pm.Gamma("alpha", 4, 2), pm.Gamma("beta", 4, 2), observed=y), bounds={"y": (0.02, 0.98)}), dear=True
    ),
    "von_mises": Case(simple(lambda y: pm.VonMises("y", pm.Normal("mu", 0, 0.7), pm.Gamma("kappa", 4, 2), observed=y)), dear=True),
    "zero_inflated_poisson": Case(
        simple(lambda y: pm.ZeroInflatedPoisson("y", pm.Beta("psi", 2, 2), pm.Gamma("mu", 4, 1), observed=y), counts, bounds={"y": (0, 9)}),
        dear=True,
    ),
    "aggregate_binomial": Case(aggregate_binomial, pooled=True),
    "aggregate_poisson": Case(aggregate_poisson, pooled=True),
    "linear_1": Case(linear_1, one_real, dear=True, tune=500),
    "linear_5": Case(linear_5, five_reals, dear=True, tune=500),
    "linear_2": Case(linear_2, two_reals, dear=True, tune=500, plug_in=False),
    "linear_2_gaussian": Case(linear_2, two_reals, arguments={"mechanism": "gaussian", "delta": 1e-6}, dear=True, tune=500, plug_in=False),
    "linear_2_add_remove": Case(
        linear_2,
        two_reals,
        size=lambda rng, N: int(rng.integers(N // 2, 3 * N // 2 + 1)),
        arguments={"neighbours": "add_remove"},
        dear=True,
        tune=500,
        plug_in=False,
    ),
    "linear_2_residuals": Case(linear_2, two_reals, arguments=RESIDUALS, dear=True, tune=500, plug_in=False),
    "linear_5_residuals": Case(linear_5, five_reals, arguments=RESIDUALS, dear=True, tune=500, plug_in=False),
    "linear_uniform": Case(linear_1, one_uniform, dear=True, tune=500),
    "logistic": Case(logistic, one_real, dear=True, tune=500, plug_in=False),
    "logistic_uniform": Case(logistic, one_uniform, dear=True, tune=500, plug_in=False),
    "log_linear": Case(log_linear, one_real, dear=True, tune=500, plug_in=False),
    "linear_assumed": Case(linear_1, one_assumed, tune=500),
    "logistic_assumed": Case(logistic, one_assumed_by_weight, tune=500, plug_in=False),
    "log_linear_assumed": Case(log_linear, one_assumed_by_weight, tune=500, plug_in=False),
}
GRID = ("bernoulli", "poisson", "normal", "linear_1", "categorical")


def units() -> list[tuple[str, float, int]]:
    """Every (case, epsilon, N), in the order in which they are run: the grid first."""
    grid = [(name, epsilon, N) for name in GRID for epsilon in (0.05, 0.1, 1.0) for N in (50, 100, 1000, 10_000)]
    others = [(name, 0.3, N) for name in CASES if not name.endswith("residuals") for N in (50, 1000)]
    return [*grid, *others, ("linear_2_residuals", 1.0, 14_000), ("linear_5_residuals", 1.0, 35_000)]


def replicates_of(unit: tuple[str, float, int], aware: bool, cheap: int = CHEAP) -> int:
    """How many data sets a unit gets, in whole blocks."""
    if not aware and not CASES[unit[0]].plug_in:
        return 0
    dear = CASES[unit[0]].dear or (unit[0] == "normal" and unit[1] != 0.3)
    most = DEAR if dear and aware else cheap if aware else PLUG_IN
    return -(-min(most, cheap) // BLOCK) * BLOCK


# ---------- replicates: truth, records, release
@dataclass(frozen=True)
class Replicate:
    truth: dict[str, np.ndarray]
    release: Release
    seed: int


class Simulator:
    """One model of a unit, whose records are replaced by new ones drawn from the model itself."""

    def __init__(self, name: str, epsilon: float, N: int) -> None:
        self.case, self.key, self.epsilon, self.N = CASES[name], [zlib.crc32(name.encode()), round(epsilon * 1000), N], epsilon, N
        self.model, arguments = self.case.make(N)
        self.arguments = arguments | self.case.arguments
        self.unknowns = [variable for variable in self.model.free_RVs if variable.type.shape[:1] != (N,)]  # of records: summed out
        self.outputs = [*self.unknowns, *self.model.observed_RVs]
        self.rngs = find_rng_nodes(self.outputs)
        self.function = compile_graph([], self.outputs)
        observed = [variable.name for variable in self.model.observed_RVs]
        self.rows = ["rows"] if len(observed) == 1 else [f"{name}_rows" for name in observed]

    def replicates(self, block: int, many: int) -> Iterator[Replicate]:
        """The data sets of a block, always the same but for the noise, which is never repeated."""
        rng = np.random.default_rng([*self.key, block])
        for truth in self.truths(rng, many):
            released = pmdp.release(self.model, epsilon=self.epsilon, **self.arguments)
            released = pmdp.consistent(released) if self.case.consistent else released
            yield Replicate(truth, released, int(rng.integers(2**31)))

    def truths(self, rng: np.random.Generator, many: int) -> Iterator[dict[str, np.ndarray]]:
        """Unknowns from the prior, one set after the other; the model holds records from them."""
        reseed_rngs(self.rngs, int(rng.integers(2**31)))
        names = [variable.name for variable in self.unknowns]
        for _ in range(many):
            N = self.N
            if self.case.size is not None:
                N = self.case.size(rng, N)
                for rows in self.rows:
                    self._set(rows, np.zeros(N))
            for covariate, values in self.case.covariates(rng, N).items():
                self._set(covariate, values)
            drawn = self.function()
            for rows, value in zip(self.rows, drawn[len(names) :], strict=True):
                self._set(rows, value)
            yield dict(zip(names, drawn[: len(names)], strict=True))

    def _set(self, name: str, values: np.ndarray) -> None:
        self.model[name].set_value(np.asarray(values).astype(self.model[name].type.dtype))


# ---------- private models, compiled once for every plan
@dataclass
class Compiled:
    private: pm.Model
    sampler: object
    plans: list
    laws: list


class Posteriors:
    """Private posteriors of one unit. A model is compiled once for every plan of its likelihood that occurs.

    The rewritten model rests on the released values in two ways: they are its data, and they choose the plan. Where the plan of
    a new release is that of a compiled model, only the data are replaced; in the first replicates this is checked against a model
    built anew. Where the plan cannot be told beforehand, every model is built anew and compared.
    """

    def __init__(self, model: pm.Model, aware: bool) -> None:
        self.model, self.aware = model, aware
        self.compiled: list[Compiled] = []
        self.seconds = 0.0
        self.steps: dict = {}

    def prepared(self, release: Release, check: bool) -> object:
        """The compiled model of this release, its data in place."""
        statistics = release.statistics
        # Where latents or sizes are centred on released values, those centres are data, too.
        known = all(noisy.regression is None and noisy.sizes != "simplex" for noisy in statistics) or not self.aware
        values = {f"{noisy.variable}_released": self.released(noisy) for noisy in statistics}
        if known and self.compiled and not check:
            for one in self.compiled:
                if not self.aware or same_plans(one.plans, [plan_of(*pair) for pair in zip(statistics, one.laws, strict=True)]):
                    return started(one.sampler.with_data(**values), one.private)
        private, plans, chosen = rebuilt(self.model, release, self.aware)
        names = tuple(f"{noisy.variable}_" for noisy in statistics)
        data = {v.name: v.get_value() for v in private.data_vars if v.name.startswith(names)}
        if known:
            for name, value in values.items():
                np.testing.assert_array_equal(data[name], value)
        for one in self.compiled:
            same = same_density(one.private, private)
            if known and self.aware and same != same_plans(one.plans, plans):
                raise AssertionError("two releases of one plan have different private models")
            if same:
                return started(one.sampler.with_data(**data), private)
        if known and not self.aware and self.compiled:
            raise AssertionError("the plug-in model rests on the release beyond its data")
        start = time.perf_counter()
        sampler = nutpie.compile_pymc_model(private, freeze_model=False)
        shapes = private.eval_rv_shapes()
        self.steps = suited(release, sum(int(np.prod(shapes[one.name])) for one in private.value_vars))
        self.seconds += time.perf_counter() - start
        self.compiled.append(Compiled(private, sampler, plans, chosen))
        return started(sampler.with_data(**data), private)

    def released(self, noisy: NoisyStatistic) -> np.ndarray:
        if self.aware:
            return noisy.values
        return plug_in(noisy).observed


def rebuilt(model: pm.Model, release: Release, aware: bool) -> tuple[pm.Model, list, list]:
    """The private model by ``pymc_dp.rewrite``, and the plans and the laws that it chose."""
    chosen, original = [], likely.plan_of

    def recorded(noisy, law, n=None):
        chosen.append((original(noisy, law, n), law))
        return chosen[-1][0]

    likely.plan_of = recorded
    try:
        private = pmdp.rewrite(model, release, noise_aware=aware)
    finally:
        likely.plan_of = original
    return private, [plan for plan, _ in chosen], [law for _, law in chosen]


def same_plans(some: list, others: list) -> bool:
    plain = [[(one.form, one.length, one.latents) for one in plans] for plans in (some, others)]
    return plain[0] == plain[1] and all(np.array_equal(one.closed, other.closed) for one, other in zip(some, others, strict=True))


def same_density(one: pm.Model, other: pm.Model) -> bool:
    """Whether two private models are the same but for what their data hold."""
    graphs, given = [], []
    for model in (one, other):
        graphs.append(model.logp())
        given.append([*model.value_vars, *(model[name] for name in sorted(v.name for v in model.data_vars)), *model.dim_lengths.values()])
    if len(given[0]) != len(given[1]):
        return False
    return equal_computations([graphs[0]], [graphs[1]], in_xs=given[0], in_ys=given[1])


# ---------- fits and ranks
@dataclass(frozen=True)
class Fit:
    ranks: np.ndarray
    error: np.ndarray
    variance: np.ndarray
    divergences: int
    r_hat: float
    longer: int
    short: bool


def fit(sampler: object, replicate: Replicate, tune: int, steps: dict) -> Fit:
    """Sample one private posterior with the steps that ``pymc_dp.sample`` takes, and rank the truth."""
    truth = np.concatenate([np.ravel(value) for value in replicate.truth.values()])
    for attempt, times in enumerate(LONGER):
        tree = nutpie.sample(
            sampler, draws=DRAWS * times, tune=tune * min(times, 4), chains=CHAINS, cores=1, seed=replicate.seed + attempt,
            progress_bar=False, save_warmup=False, **steps,
        )  # fmt: skip
        draws = np.concatenate([tree["posterior"][name].values.reshape(CHAINS, DRAWS * times, -1) for name in replicate.truth], axis=-1)
        effective = np.min(array_stats.ess(draws, chain_axis=0, draw_axis=1, method="bulk"))
        if effective >= 1.5 * (RANKED + 1):
            break
    kept = CHAINS * DRAWS * times // (RANKED + 1)
    thinned = draws[:, kept - 1 :: kept].reshape(RANKED + 1, -1)[:RANKED]
    return Fit(
        (thinned < truth).sum(axis=0),
        draws.mean(axis=(0, 1)) - truth,
        draws.var(axis=(0, 1)),
        int(tree["sample_stats"]["diverging"].sum()),
        float(np.max(array_stats.rhat(draws, chain_axis=0, draw_axis=1))),
        attempt,
        bool(effective < 1.5 * (RANKED + 1)),
    )


COLUMNS = [
    "case", "epsilon", "n", "aware", "block", "parameter", "replicates", "covered_90", "covered_95", "error", "squared_error", "variance",
    "divergences", "longer", "short", "failed", "r_hat", "seconds", "compiled", "compile_seconds", "histogram",
]  # fmt: skip


def names_of(truth: dict[str, np.ndarray]) -> list[str]:
    return [f"{name}[{k}]" if np.ndim(value) else name for name, value in truth.items() for k in range(np.size(value))]


def rows_of(fits: Sequence[Fit], names: Sequence[str], pooled: bool, shared: dict) -> list[dict]:
    """One row per scalar parameter; entries that are alike and independent are put together."""
    stacked = {name: np.array([getattr(one, name) for one in fits]) for name in ("ranks", "error", "variance")}
    if pooled:
        names, stacked = [names[0].split("[")[0]], {name: values.reshape(-1, 1) for name, values in stacked.items()}
    width, rows = (RANKED + 1) // BINS, []
    for k, name in enumerate(names):
        ranks, error = stacked["ranks"][:, k], stacked["error"][:, k]
        outside = np.minimum(ranks, RANKED - ranks)
        rows.append(
            shared
            | {
                "parameter": name,
                "replicates": len(ranks),
                "covered_90": int((outside >= (RANKED + 1) // 20).sum()),
                "covered_95": int((outside >= (RANKED + 1) // 40).sum()),
                "error": f"{error.sum():.6g}",
                "squared_error": f"{(error**2).sum():.6g}",
                "variance": f"{stacked['variance'][:, k].sum():.6g}",
                "divergences": sum(one.divergences for one in fits),
                "longer": sum(one.longer > 0 for one in fits),
                "short": sum(one.short for one in fits),
                "r_hat": f"{max(one.r_hat for one in fits):.4f}",
                "histogram": " ".join(map(str, np.bincount(ranks // width, minlength=BINS))),
            }
        )
    return rows


def run_unit(
    name: str, epsilon: float, N: int, todo: dict[int, list[bool]], many: int = BLOCK, deadline: float = np.inf
) -> Iterator[list[dict]]:
    """Rows of every block in ``todo``: for each, whether to do the noise-aware posterior, the plug-in posterior, or both."""
    warnings.filterwarnings("ignore", category=pmdp.UnaccountedWarning)
    simulator = Simulator(name, epsilon, N)
    case = simulator.case
    posteriors = {aware: Posteriors(simulator.model, aware) for aware in (True, False)}
    refused: set[bool] = set()
    first = next(iter(todo))
    for block, kinds in todo.items():
        fits: dict[bool, list[Fit]] = {aware: [] for aware in kinds}
        seconds, failed = dict.fromkeys(kinds, 0.0), dict.fromkeys(kinds, 0)
        compiled = {aware: (len(posteriors[aware].compiled), posteriors[aware].seconds) for aware in kinds}
        for k, replicate in enumerate(simulator.replicates(block, many)):
            if time.time() > deadline:
                return
            names = names_of(replicate.truth)
            for aware in kinds:
                if aware in refused:
                    continue
                start, before = time.perf_counter(), posteriors[aware].seconds
                try:
                    sampler = posteriors[aware].prepared(replicate.release, check=block == first and k < CHECKED)
                    fits[aware].append(fit(sampler, replicate, case.tune, posteriors[aware].steps))
                except pmdp.Refusal as refusal:
                    print(f"{name}: {'noise-aware' if aware else 'plug-in'} skipped. {refusal}", flush=True)
                    refused.add(aware)
                except RuntimeError as failure:
                    failed[aware] += 1
                    print(f"{name}, epsilon {epsilon:g}, N {N}: a fit failed. {str(failure).splitlines()[0]}", flush=True)
                seconds[aware] += time.perf_counter() - start - (posteriors[aware].seconds - before)
        rows = []
        for aware, several in fits.items():
            if several:
                made = posteriors[aware]
                shared = {
                    "case": name, "epsilon": epsilon, "n": N, "aware": int(aware), "block": block, "failed": failed[aware],
                    "seconds": f"{seconds[aware]:.2f}", "compiled": len(made.compiled) - compiled[aware][0],
                    "compile_seconds": f"{made.seconds - compiled[aware][1]:.1f}",
                }  # fmt: skip
                rows += rows_of(several, names, case.pooled, shared)
        yield rows


# ---------- the run
def read(path: Path = RESULTS) -> list[dict]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append(rows: Sequence[dict], path: Path) -> None:
    """In one write, so that two processes cannot mix their lines."""
    lines = [",".join(str(row[column]) for column in COLUMNS) for row in rows]
    if lines:
        with path.open("a") as file:
            file.write("\n".join(lines) + "\n")


def work(name: str, epsilon: float, N: int, todo: dict[int, list[bool]], deadline: float, path: Path) -> tuple[str, float]:
    """One unit in a process of its own; what is done is on disk block by block."""
    start, rows = time.perf_counter(), []
    for block in run_unit(name, epsilon, N, todo, deadline=deadline):
        append(block, path)
        rows += block
    line = f"{name}, epsilon {epsilon:g}, N {N}:"
    for aware, word in ((1, "noise-aware"), (0, "plug-in")):
        several = [row for row in rows if row["aware"] == aware]
        if several:
            line += f" {word} {sum(row['covered_95'] for row in several) / sum(row['replicates'] for row in several):.3f}"
    return line, time.perf_counter() - start


def waiting(rows: Sequence[dict], cases: Sequence[str], replicates: int) -> dict[tuple[str, float, int], dict[int, list[bool]]]:
    """For every unit that is not done, its blocks that are not."""
    done = {(row["case"], float(row["epsilon"]), int(row["n"]), row["aware"] == "1", int(row["block"])) for row in rows}
    result = {}
    for name, epsilon, N in units():
        if name not in cases:
            continue
        todo: dict[int, list[bool]] = {}
        for aware in (True, False):
            for block in range(replicates_of((name, epsilon, N), aware, replicates) // BLOCK):
                if (name, epsilon, N, aware, block) not in done:
                    todo.setdefault(block, []).append(aware)
        if todo:
            result[name, epsilon, N] = todo
    return result


def run(cases: Sequence[str], minutes: float, processes: int, replicates: int, path: Path = RESULTS) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text(",".join(COLUMNS) + "\n")
    left = waiting(read(path), cases, replicates)
    blocks = sum(len(kinds) for todo in left.values() for kinds in todo.values())
    print(f"{len(left)} units, {blocks} blocks of {BLOCK} fits are left.", flush=True)
    start, deadline, done = time.time(), time.time() + 60 * minutes, 0
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        waits = {pool.submit(work, *unit, todo, deadline, path): unit for unit, todo in left.items()}
        for number, future in enumerate(as_completed(waits), 1):
            done += sum(len(kinds) for kinds in left[waits[future]].values())
            try:
                line, seconds = future.result()
            except Exception as failure:  # one unit must not stop the others
                line, seconds = f"{waits[future]}: FAILED, {type(failure).__name__}: {failure}", 0.0
            ahead = (time.time() - start) / done * (blocks - done) / 60
            print(f"[{number}/{len(left)}] {line} ({seconds:.0f} s; about {ahead:.0f} min left)", flush=True)
    still = waiting(read(path), cases, replicates)
    print(f"{len(still)} units are not complete." if still else "Complete.", flush=True)


def estimate(cases: Sequence[str], replicates: int, N: int, many: int = 8) -> None:
    """A few fits of every case at epsilon 0.3; nothing is written."""
    total = 0.0
    for name in cases:
        one, line = 0.0, f"{name:24}"
        kinds = [True, False] if CASES[name].plug_in else [True]
        blocks = run_unit(name, 0.3, N, {10**6: kinds, 10**6 + 1: kinds}, many)
        first, start = next(blocks), time.perf_counter()
        warm = next(blocks)
        spent = time.perf_counter() - start
        release = spent / many
        for aware, word in ((1, "aware"), (0, "plug-in")):
            compiled = [row for row in first if row["aware"] == aware][:1]
            several = [row for row in warm if row["aware"] == aware][:1]
            for cold, row in zip(compiled, several):
                each, compiling = float(row["seconds"]) / many, float(cold["compile_seconds"])
                release -= each + float(row["compile_seconds"]) / many
                one += compiling + each * replicates_of((name, 0.3, N), bool(aware), replicates)
                line += f"{word} {each:.3f} s a fit, {compiling:.0f} s to compile, {row['longer']} longer, {row['short']} short; "
        one += release * replicates_of((name, 0.3, N), True, replicates)
        total += one * sum(unit[0] == name for unit in units())
        print(f"{line}release {release:.3f} s; {one:.0f} s a unit", flush=True)
    print(f"About {total / 3600:.1f} core hours: {total / 120:.0f} min on two cores.")


# ---------- the summary
@dataclass(frozen=True)
class Share:
    """What was counted for one scalar parameter, or for all entries of one."""

    replicates: int
    covered_90: int
    covered_95: int
    histograms: tuple[tuple[int, ...], ...]

    @property
    def coverage(self) -> float:
        return self.covered_95 / self.replicates

    @property
    def data_sets(self) -> int:
        return self.replicates // len(self.histograms)

    @property
    def standard_error(self) -> float:
        """Of independent data sets; entries of one parameter count once, because they may go together."""
        return float(np.sqrt(0.95 * 0.05 / self.data_sets))

    @property
    def far(self) -> bool:
        return abs(self.coverage - 0.95) > FAR * self.standard_error

    @property
    def uniform(self) -> list[float]:
        """For every entry, the chi-square p-value of uniform ranks."""
        return [float(chisquare(histogram).pvalue) for histogram in self.histograms]


type Key = tuple[str, float, int, bool, str]


def collected(rows: Sequence[dict]) -> dict[Key, Share]:
    """All blocks together, by case, epsilon, N, kind of posterior and parameter."""
    entries: dict[tuple, list[dict]] = {}
    for row in rows:
        entries.setdefault((row["case"], float(row["epsilon"]), int(row["n"]), row["aware"] == "1", row["parameter"]), []).append(row)
    parameters: dict[Key, list[list[dict]]] = {}
    for (*unit, parameter), several in entries.items():
        parameters.setdefault((*unit, parameter.split("[")[0]), []).append(several)
    result = {}
    for key, by_entry in parameters.items():
        flat = [row for several in by_entry for row in several]
        sums = (sum(int(row[column]) for row in flat) for column in ("replicates", "covered_90", "covered_95"))
        histograms = [np.sum([np.array(row["histogram"].split(), dtype=int) for row in several], axis=0) for several in by_entry]
        result[key] = Share(*sums, tuple(tuple(map(int, histogram)) for histogram in histograms))
    return result


def cell(shares: dict[Key, Share], *key: object) -> str:
    return f"{shares[key].coverage:.3f}" if key in shares else "-"


def families_table(shares: dict[Key, Share]) -> list[str]:
    lines = ["| model | parameter | N = 50 | plug-in | N = 1000 | plug-in | p |", "|---|---|---|---|---|---|---|"]
    before = ""
    for name, parameter in dict.fromkeys((key[0], key[4]) for key in shares if key[1] == 0.3):
        given = [cell(shares, name, 0.3, N, aware, parameter) for N in (50, 1000) for aware in (True, False)]
        tests = [p for N in (50, 1000) if (one := shares.get((name, 0.3, N, True, parameter))) for p in one.uniform]
        least = f"{min(min(tests) * len(tests), 1.0):.2g}" if tests else "-"
        lines.append(f"| {'' if name == before else name.replace('_', ' ')} | {parameter} | {' | '.join(given)} | {least} |")
        before = name
    return lines


def grid_table(shares: dict[Key, Share]) -> list[str]:
    sizes = (50, 100, 1000, 10_000)
    lines = ["| model | parameter | epsilon | " + " | ".join(f"N = {N}" for N in sizes) + " |", "|---|---|---|" + "---|" * len(sizes)]
    for name, parameter in dict.fromkeys((key[0], key[4]) for key in shares if key[0] in GRID and key[1] != 0.3):
        for epsilon in (0.05, 0.1, 1.0):
            both = [" / ".join(cell(shares, name, epsilon, N, aware, parameter) for aware in (True, False)) for N in sizes]
            lines.append(f"| {name} | {parameter} | {epsilon:g} | {' | '.join(both)} |")
    return lines


def summary(path: Path = RESULTS, page: Path = ROOT / "docs" / "calibration.md", picture: Path = ROOT / "docs" / "calibration.png") -> None:
    # A link has no plug-in any more: it would have to be compiled for every release.
    rows = [row for row in read(path) if row["aware"] == "1" or CASES[row["case"]].plug_in]
    shares = collected(rows)
    aware = {key: share for key, share in shares.items() if key[3]}
    tests = [p for share in aware.values() for p in share.uniform]
    inside = [0.935 <= share.coverage <= 0.965 for share in aware.values()]
    expected = sum(1 - 2 * norm.sf(0.015 / share.standard_error) for share in aware.values())
    runs = {(row["case"], row["epsilon"], row["n"], row["aware"], row["block"]): row for row in rows}.values()
    fits, hours = sum(fits_of(row) for row in runs), sum(float(row["seconds"]) + float(row["compile_seconds"]) for row in runs) / 3600
    modelled = [row for row in runs if row["aware"] == "1"]
    least = min(share.data_sets for share in aware.values())
    few = f"{np.sqrt(0.95 * 0.05 / least):.3f}"
    missing = waiting(rows, list(CASES), CHEAP)
    told = (
        f"{len(missing)} of {len(units())} units have not had all their data sets yet (below)."
        if missing
        else "All units have had all their data sets."
    )
    divergences, failed = (sum(int(row[column]) for row in modelled) for column in ("divergences", "failed"))
    lines = [
        "# Calibration",
        "",
        "Parameters are drawn from the prior, and records from the model; the records are released by `pymc_dp.release`, and the",
        "private posterior is sampled. The tables say what share of 95 % intervals holds the parameter, averaged over its entries:",
        "noise-aware, and *plug-in* (`noise_aware=False`: the noisy statistics are taken as exact, as ZRD16 and FGWC16 do).",
        "",
        f"Of {len(inside)} noise-aware shares {sum(inside)} lie within 0.935 to 0.965. Were all intervals exact, and were entries of",
        f"one parameter right or wrong together, {expected:.0f} would on average. Each rests on at least {least} data sets, a",
        f"standard error of {few}, most on more; plug-in on at most {PLUG_IN}. {told}",
        "The ranks of the truth among posterior",
        f"draws should be uniform: of {len(tests)} chi-square tests in {BINS} bins {sum(p < 0.01 for p in tests)} have p < 0.01; the least",
        f"p-value, times their number, is {min(min(tests) * len(tests), 1):.2g}.",
        "",
        OLDER,
        "",
        *_unfinished(rows, missing),
        *_outliers(aware),
        "![Coverage of 95 % intervals](calibration.png)",
        "",
        "## Every family and structure, epsilon 0.3",
        "",
        "p is the least p-value over entries and both N, times their number. Features of linear predictors lie where people's do, about",
        "the middle of wide bounds, and not as the private model's prior of their mean and variance would have them; so these cases show",
        "what that prior costs, too. In those that say *assumed* it draws them.",
        "",
        *families_table(shares),
        "",
        "## From strong to weak noise",
        "",
        "Noise-aware / plug-in.",
        "",
        *grid_table(shares),
        "",
        f"{fits:,} posteriors in {hours:.1f} core hours; of the noise-aware ones {failed} could not be sampled, and the others had",
        f"{divergences} divergent draws altogether. Again with",
        "",
        "```bash",
        "python benchmarks/calibration.py run && python benchmarks/calibration.py summary",
        "```",
        "",
    ]
    page.write_text("\n".join(lines))
    plot(shares, picture)
    print(f"{sum(inside)} of {len(inside)} inside the band; {sum(p < 0.01 for p in tests)} of {len(tests)} p-values below 0.01.")


def _unfinished(rows: Sequence[dict], missing: dict[tuple[str, float, int], dict[int, list[bool]]]) -> list[str]:
    """How many data sets the units have had that have not had all, noise-aware."""
    done: dict[tuple[str, float, int], dict[str, int]] = {}
    for row in rows:
        if row["aware"] == "1":
            blocks = done.setdefault((row["case"], float(row["epsilon"]), int(row["n"])), {})
            blocks[row["block"]] = fits_of(row)
    told: dict[str, list[str]] = {}
    for unit in missing:
        name, epsilon, N = unit
        share = f"{sum(done.get(unit, {}).values())} of {replicates_of(unit, True)} at epsilon {epsilon:g}, N = {N}"
        told.setdefault(name.replace("_", " "), []).append(share)
    lines = [f"- {name}: {'; '.join(several)}" for name, several in told.items()]
    return ["Units that have not had all their data sets:", "", *lines, ""] if lines else []


def _outliers(aware: dict[Key, Share]) -> list[str]:
    """What lies further off than chance explains, said plainly: of single units, and of all units of a parameter together."""
    far = [
        f"{name.replace('_', ' ')}, {parameter}, epsilon {epsilon:g}, N = {N}: {share.coverage:.3f} of {share.data_sets} data sets"
        for (name, epsilon, N, _, parameter), share in aware.items()
        if share.far or min(share.uniform) < 1e-4
    ]
    together = {(name, parameter): [] for name, _, _, _, parameter in aware}
    for (name, _, _, _, parameter), share in aware.items():
        together[name, parameter].append(share)
    pooled = {key: _together(several) for key, several in together.items()}
    far += [
        f"{name.replace('_', ' ')}, {parameter}, all epsilons and N together: {share.coverage:.3f} of {share.data_sets} data sets"
        for (name, parameter), share in pooled.items()
        if share.far
    ]
    chance = (len(aware) + len(pooled)) * 2 * norm.sf(FAR)
    head = f"Further off than {FAR} standard errors (about {chance:.1f} would be by chance), or with a p below 1e-4:"
    return [head, "", *(f"- {one}" for one in far), ""] if far else []


def _together(several: Sequence[Share]) -> Share:
    sums = (sum(getattr(share, name) for share in several) for name in ("replicates", "covered_90", "covered_95"))
    return Share(*sums, tuple(tuple(map(sum, zip(*histograms))) for histograms in zip(*(share.histograms for share in several))))


def fits_of(row: dict) -> int:
    return int(row["replicates"]) // (10 if CASES[row["case"]].pooled else 1)


def plot(shares: dict[Key, Share], picture: Path) -> None:
    """Coverage of 95 % intervals: on the left every parameter at epsilon 0.3, on the right the grid."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = list(dict.fromkeys((key[0], key[4]) for key in shares if key[1] == 0.3))
    figure = plt.figure(figsize=(12, max(0.2 * len(rows) + 1.4, 7)), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1.25, 1])
    axes = left.subplots()
    axes.axvspan(0.935, 0.965, color="0.88")
    axes.axvline(0.95, color="0.5", linewidth=0.8)
    for k, (name, parameter) in enumerate(rows):
        for N, colour, offset in ((50, "tab:orange", -0.17), (1000, "tab:blue", 0.17)):
            for aware in (False, True):
                share = shares.get((name, 0.3, N, aware, parameter))
                if share:
                    look = {"marker": "o" if aware else "x", "markersize": 4, "color": colour, "alpha": 1 if aware else 0.6}
                    axes.errorbar(share.coverage, k + offset, xerr=2 * deviation(share), elinewidth=0.8, linestyle="none", **look)
    axes.set_yticks(range(len(rows)), [f"{name.replace('_', ' ')}  {parameter}" for name, parameter in rows], fontsize=7)
    axes.set(ylim=(len(rows) - 0.4, -0.6), xlim=(-0.02, 1.02), xlabel="share of 95 % intervals that hold the parameter")
    axes.set_title("every family and structure, epsilon 0.3", fontsize=9)
    for N, colour in ((50, "tab:orange"), (1000, "tab:blue")):
        for aware, word in ((True, "noise-aware"), (False, "plug-in")):
            axes.plot([], [], marker="o" if aware else "x", color=colour, linestyle="none", label=f"N = {N}, {word}")
    axes.legend(fontsize=7, loc="lower left")
    panels = right.subplots(len(GRID), 1, sharex=True)
    for name, axes in zip(GRID, panels):
        axes.axhspan(0.935, 0.965, color="0.88")
        for epsilon, colour in ((0.05, "tab:red"), (0.1, "tab:purple"), (0.3, "tab:blue"), (1.0, "tab:green")):
            for aware in (True, False):
                for parameter in dict.fromkeys(key[4] for key in shares if key[0] == name):
                    found = [(N, shares[key]) for N in (50, 100, 1000, 10_000) if (key := (name, epsilon, N, aware, parameter)) in shares]
                    if found:
                        sizes, values = zip(*found)
                        height, errors = [one.coverage for one in values], [2 * deviation(one) for one in values]
                        look = {"linestyle": "-" if aware else ":", "marker": "o" if aware else "x", "markersize": 4, "linewidth": 1}
                        label = f"epsilon {epsilon:g}" if aware else None
                        axes.errorbar(sizes, height, yerr=errors, color=colour, elinewidth=0.8, label=label, **look)
        axes.set(xscale="log", ylim=(-0.02, 1.02))
        axes.set_title(name, fontsize=9)
    handles = dict(zip(*reversed(panels[0].get_legend_handles_labels())))
    panels[-1].set_xlabel("N (dotted: plug-in)")
    panels[-1].legend(handles.values(), handles.keys(), fontsize=7, loc="lower right")
    figure.savefig(picture, dpi=110)


def deviation(share: Share) -> float:
    """The binomial standard error of what was found."""
    p = (share.covered_95 + 2) / (share.replicates + 4)
    return float(np.sqrt(p * (1 - p) / share.data_sets))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("command", choices=["run", "estimate", "summary"])
    parser.add_argument("--cases", default=",".join(CASES), help="names, separated by commas")
    parser.add_argument("--minutes", type=float, default=np.inf, help="stop after so many minutes")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--replicates", type=int, default=CHEAP, help=f"of cheap cases; others do at most {DEAR}")
    parser.add_argument("--records", type=int, default=50, help="for the estimate")
    given = parser.parse_args(arguments)
    cases = given.cases.split(",")
    if unknown := set(cases) - set(CASES):
        parser.error(f"no such case: {', '.join(sorted(unknown))}. There are {', '.join(CASES)}.")
    if given.command == "run":
        run(cases, given.minutes, given.processes, given.replicates)
    elif given.command == "estimate":
        estimate(cases, given.replicates, given.records)
    else:
        summary()


if __name__ == "__main__":
    main()
