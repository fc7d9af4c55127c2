"""Missing values leave no trace: whatever PyMC does to the graph for them, all that is seen of a model is the same."""

from contextlib import nullcontext

import arviz as az
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from checks import refused, seam_of
from pytensor.graph import Apply, Op
from test_leaks import neighbours_look_alike

import pymc_dp as pmdp
from pymc_dp.models.reader import read_spec
from pymc_dp.plans.protection import protection_of

NAN = np.nan
GROUP, COVARIATE = np.array([0, 1, 0, 1, 1]), np.arange(5.0)
VALUES = {
    "none": [0.0, 1, 2, 1, 0], "one": [0, 1, NAN, 1, 0], "the first": [NAN, 0, 1, 2, 1], "all but one": [NAN, NAN, NAN, NAN, 1],
    "all but two": [NAN, NAN, NAN, 1, 0], "all": [NAN] * 5,
}  # fmt: skip
pytestmark = [pytest.mark.filterwarnings("ignore")]  # PyMC warns of imputation


MALE = np.array([True, False, True, False, True])


def by_truth_value(shape=2):
    """An index of truth values, which is no mask of PyMC's."""
    return pm.Exponential("l", 1, shape=shape)[pt.as_tensor(MALE).astype("int64")]


def columns(y):
    """Three columns, of which the first lacks what the others have."""
    return np.stack([y, np.nan_to_num(y, nan=1.0), y], axis=1)


SHAPES = {
    "shared": lambda y: pm.Normal("y", pm.Normal("mu"), 1, observed=y),
    "sized": lambda y: pm.Normal("y", pm.Normal("mu"), 1, observed=y, shape=5),
    "indexed": lambda y: pm.Normal("y", pm.Normal("mu", shape=2)[GROUP], pm.HalfNormal("s", shape=2)[GROUP], observed=y),
    "linear": lambda y: pm.Normal("y", pm.Normal("a") + pm.Normal("b") * COVARIATE, 1, observed=y),
    "matrix": lambda y: pm.Normal("y", pt.stack([np.ones(5), COVARIATE], 1) @ pm.Normal("b", shape=2), 1, observed=y),
    "vector of one": lambda y: pm.Normal("y", pm.Normal("a", shape=1), pm.HalfNormal("s"), observed=y),
    "deterministic": lambda y: pm.Normal("y", pm.Deterministic("d", pm.Normal("a") * 2), pm.HalfNormal("s"), observed=y),
    "columns": lambda y: pm.Normal("y", pm.Normal("a", shape=3), 1, observed=columns(y)),
    "whole rows": lambda y: pm.Normal("y", pm.Normal("a", shape=3), 1, observed=np.stack([y] * 3, 1)),
    "columns, covariate": lambda y: pm.Normal("y", pm.Normal("b") * COVARIATE[:, None], pm.Gamma("s", 2, 2, shape=3), observed=columns(y)),
    "columns of groups": lambda y: pm.Bernoulli("y", pm.Beta("b", 1, 1, shape=(2, 3))[GROUP], observed=columns(y)),
    "zero-inflated": lambda y: pm.ZeroInflatedPoisson("y", pm.Beta("p", 1, 1), pm.Exponential("l", 1), observed=y),
    "zero-inflated groups": lambda y: pm.ZeroInflatedPoisson("y", pm.Beta("p", 1, 1), pm.Exponential("l", 1, shape=2)[GROUP], observed=y),
    "negative binomial": lambda y: pm.NegativeBinomial("y", mu=pm.Exponential("l", 1, shape=2)[GROUP], alpha=1.5, observed=y),
    "hurdle": lambda y: pm.HurdlePoisson("y", pm.Beta("p", 1, 1), pm.Exponential("l", 1), observed=y),
    "weibull": lambda y: pm.Weibull("y", 2, pm.Exponential("l", 1), observed=y + 1),
    "normal by truth value": lambda y: pm.Normal("y", by_truth_value(), 1, observed=y),
    "zero-inflated by truth value": lambda y: pm.ZeroInflatedPoisson("y", 0.3, by_truth_value(), observed=y),
    "columns by truth value": lambda y: pm.HurdlePoisson("y", 0.3, by_truth_value((2, 3)), observed=columns(y)),
    "censored by truth value": lambda y: pm.Censored("y", pm.Poisson.dist(by_truth_value()), lower=None, upper=9, observed=y),
    "multinomial by truth value": lambda y: pm.Multinomial(
        "y", n=4, p=pm.Dirichlet("p", np.ones(3), shape=(2, 3))[pt.as_tensor(MALE).astype("int64")], observed=columns(y)
    ),
    "weibull, first of one": lambda y: pm.Weibull("y", 2, pm.Exponential("l", 1, shape=1)[0], observed=y + 1),
    "normal, first of one": lambda y: pm.Normal("y", pm.Normal("l", shape=1)[0], 1, observed=y),
    "truncated, first of one": lambda y: pm.Truncated(
        "y", pm.Poisson.dist(pm.Exponential("l", 1, shape=(1, 1))[0, 0]), lower=None, upper=9, observed=y
    ),
    "truncated": lambda y: pm.Truncated("y", pm.Poisson.dist(pm.Exponential("l", 1)), lower=None, upper=9, observed=y),
    "censored": lambda y: pm.Censored("y", pm.Poisson.dist(pm.Exponential("l", 1)), lower=None, upper=9, observed=y),
    "multivariate": lambda y: pm.MvNormal("y", pm.Normal("a", shape=3), pm.Data("cov", np.eye(3)), observed=np.stack([y] * 3, 1)),
    "multivariate in part": lambda y: pm.MvNormal("y", pm.Normal("a", shape=3), pm.Data("cov", np.eye(3)), observed=columns(y)),
    "dirichlet": lambda y: pm.Dirichlet("y", pm.Exponential("a", 1, shape=3), observed=np.stack([y + 1] * 3, 1) / 3),
    "categorical": lambda y: pm.Categorical("y", pm.Dirichlet("a", np.ones((2, 3)))[GROUP], observed=y),
    "binomial": lambda y: pm.Binomial("y", np.array([3] * 5), pm.Beta("p", 1, 1), observed=y),
    "ordered": lambda y: pm.OrderedLogistic("y", eta=pm.Normal("e"), cutpoints=np.array([0.0, 1.0]), observed=y),
    "mixture": lambda y: pm.Mixture("y", [0.5, 0.5], [pm.Poisson.dist(pm.Exponential("l", 1)), pm.Poisson.dist(3)], observed=y),
    "parent": lambda y: pm.Bernoulli(
        "z", pm.Beta("q", 1, 1, shape=2)[pm.Bernoulli("y", 0.5, observed=np.where(np.isnan(y), y, y > 0))], observed=GROUP
    ),
    "without a name": lambda y: pm.Normal("y", pm.Normal("a") + pm.Normal.dist(0, 1), 1, observed=y),
    "unknown operation": lambda y: pm.Normal("y", Twice()(pm.Normal("a")), 1, observed=y),
}  # fmt: skip


class Twice(Op):
    def make_node(self, given):
        given = pt.as_tensor(given)
        return Apply(self, [given], [given.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.asarray(2 * inputs[0])


def built(name, y):
    with pm.Model() as model:
        SHAPES[name](np.array(y, dtype=float))
    return model


def seen(model, public):
    """All that is read of a model: words, graphs with their types, names and their order."""
    found = read_spec(model, public)
    told = [repr(pmdp.inspect(model, public=public)), repr((found.problems, found.order, found.dropped, found.coords, found.stays))]
    for one in found.likelihoods:
        told.append(repr((one.name, one.distribution, one.refusal, one.columns, one.known, one.levels, one.column_dims, one.arrays)))
        graphs = [*one.parameters, *((*one.linear.features, one.linear.coefficients) if one.linear else ())]
        told += [pytensor.dprint(graph, file="str", print_type=True, stop_on_name=True) for graph in graphs]
    return [*told, *(pytensor.dprint(v, file="str", print_type=True, stop_on_name=True) for v in found.kept)]


@pytest.mark.parametrize("name", SHAPES)
def test_the_graph_is_the_same_whatever_is_missing(name):
    """``Subtensor{i}(ExpandDims(mu))`` stood in the private model where a value was missing, and where exactly one was not, mixtures and
    Weibull were refused."""
    public = ["cov"] if name.startswith("multivariate") else []
    wanted = seen(built(name, VALUES["none"]), public)
    for which, y in VALUES.items():
        assert seen(built(name, y), public) == wanted, which


@pytest.mark.parametrize("name", ["shared", "indexed", "zero-inflated", "weibull", "columns", "parent", "multivariate in part"])
def test_a_release_of_missing_values_looks_like_any_other(name):
    """One record's value is missing or not; and the only value that is there is missing, too."""
    arguments = {"bounds": {} if name == "parent" else {"y": (0.5, 2) if name == "weibull" else (0, 2)}}
    if name == "multivariate in part":
        arguments["public"] = ["cov"]
    for first, second in [("none", "one"), ("all but two", "all but one"), ("all but one", "all")]:
        y, other = (np.array(VALUES[which], dtype=float) for which in (first, second))
        if first == "all but two":
            y, other = np.array([NAN, NAN, NAN, 1, 0]), np.array([NAN, NAN, NAN, 1, NAN])
        neighbours_look_alike(built(name, y), built(name, other), **arguments)


class OwnArray(np.ndarray):
    """A class that may select and compute as it likes."""


@pytest.mark.parametrize("of_class", [np.matrix, lambda y: y.view(OwnArray)])
def test_an_array_of_a_class_of_its_own_is_refused_whatever_is_missing(of_class):
    """Of a matrix PyMC keeps the values that are there as one row, which were 23 numbers in place of one, with their noise."""
    told = []
    for value in (1.0, NAN):
        y = np.arange(24.0).reshape(24, 1) % 3
        y[3] = value
        with pm.Model() as model:
            pm.Normal("y", pm.Normal("mu"), 1, observed=of_class(y))
        told += [
            (refused(pmdp.release, model, epsilon=1, bounds={"y": (0, 2)}, missing={}), str(pmdp.inspect(model, bounds={"y": (0, 2)})))
        ]
    assert "np.asarray(values)" in told[0][0]
    assert told[0] == told[1]


# ---------- what PyMC makes of missing values has names
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_public_does_not_find_what_pymc_makes_of_missing_values(neighbours):
    told = []
    for value in (2.0, NAN):
        with pm.Model() as model:
            pm.Poisson("y", pm.Exponential("l", 1), observed=np.array([0, 1, value, 1]))
        words = {"bounds": {"y": (0, 4)}, "missing": ["y"], "public": ["y_unobserved"], "neighbours": neighbours}
        told.append(
            [refused(call, **words) for call in (lambda **w: pmdp.release(model, epsilon=1.0, **w), lambda **w: pmdp.inspect(model, **w))]
        )
    assert told[0] == told[1]
    assert "which is not there" in told[0][0]


@pytest.mark.parametrize("name", ["y_column", "y_size", "y_noise"])
def test_names_that_pymc_makes_are_not_compared_with_those_of_a_release(name):
    told = []
    for value in (2.0, NAN):
        with pm.Model() as model:
            pm.Poisson("y", pm.Exponential("l", 1), observed=np.array([0.0, 1, 2, 1]))
            pm.Poisson(name, pm.Exponential("k", 1), observed=np.array([0, 1, value, 1]))
        told.append(refused(pmdp.release, model, epsilon=1.0, bounds={"y": (0, 4), name: (0, 4)}, missing=["y", name]))
    assert told[0] == told[1]


@pytest.mark.parametrize(
    "door", [pmdp.release, lambda model, **words: pmdp.privatize(model, **words).privacy], ids=["release", "privatize"]
)
def test_names_may_be_read_once(door):
    with pm.Model() as model:
        pm.Poisson("y", pm.Exponential("l", 1), observed=np.array([0, 1, NAN, 1]))
    released = door(model, epsilon=1.0, bounds={"y": (0, 4)}, missing=iter(["y"]))
    assert released["y"].left_out == ("y",)
    assert released.missing == {"y": "left out"}


def test_what_can_be_read_once_is_kept():
    protection = protection_of(public=iter(["x"]), missing=iter(["y"]))
    for _ in range(2):
        assert (list(protection.public), list(protection.missing)) == (["x"], ["y"])


DOORS = {"draw": pmdp.PosteriorSample(points=5), "gibbs": pmdp.Gibbs(2, points=3), "annealing": pmdp.Annealing(2, points=3)}


@pytest.mark.parametrize("door", DOORS)
def test_a_missing_outcome_refuses_no_draw(door):
    told = []
    for value in (2.0, NAN):
        with pm.Model() as model:
            rate = pm.Uniform("l", 0.5, 3, shape=2)[pt.as_tensor(MALE).astype("int64")]
            pm.Truncated("y", pm.Poisson.dist(rate), lower=None, upper=9, observed=np.array([0, 1, value, 1, 3]))
        words = {"model": model, "epsilon": 1.0, "bounds": {"y": (0, 4)}, "missing": ["y"]}
        told.append(refused(pmdp.sample, mechanism=DOORS[door], **words))
    assert told[0] == told[1]


@pytest.mark.slow
@pytest.mark.parametrize(("share", "seed"), [(0.3, 0), (0.3, 1), (0.3, 2), (0.0, 3), (0.0, 4)])
def test_the_posterior_with_holes_is_that_of_many_simulations(share, seed):
    """100 records, 30 % or none missing: parameters are drawn from the prior, sums given these, and weighted by the density of the noise.

    Some 3,000 to 5,000 of the draws count, and as many of the chains: means and standard deviations agree to 5 standard errors of both
    (1e-6 each, 20 comparisons). With 30 % missing and a number of records that is taken for known, the sd of sigma is 4 to 20 % smaller,
    which two of the three find. With none missing, released without noise, nothing is at random from run to run: with a number of records
    that may be anything up to N, not N + 1/2, the mean of sigma is 6 standard errors lower in both, or .13 and .15 standard deviations.
    """
    rng, N, draws = np.random.default_rng(seed), 100, 1500 if share else 6000
    y = np.where(rng.random(N) < share, np.nan, rng.normal(size=N))
    with pm.Model() as model:
        rows = pm.Data("rows", np.zeros(N))
        pm.Normal("y", pm.Normal("mu", 0, 5), pm.HalfNormal("sigma", 5), observed=rows)
    rows.set_value(y)
    with nullcontext() if share else seam_of(0):  # without noise the released number is that of all
        released = pmdp.release(model, epsilon=5.0, bounds={"y": (-3, 8)}, missing=["y"])
    with pmdp.rewrite(model, released):
        drawn = pm.sample(draws, tune=1000, chains=4, cores=1, target_accept=0.95, random_seed=1, progressbar=False).posterior
    simulated, weight = simulations(rng, released["y"], N, 0 if share else N - 20)
    effective = 1 / (weight**2).sum()
    for name, values in simulated.items():
        middle = weight @ values
        sd = np.sqrt(weight @ (values - middle) ** 2)
        error = sd * np.sqrt(1 / effective + 1 / float(az.ess(drawn[name])))
        assert abs(float(drawn[name].mean()) - middle) < 5 * error
        assert abs(float(drawn[name].std()) - sd) < 5 * error


def simulations(rng, noisy, N, least, many=4_000_000):
    """Draws of mu and sigma from the prior and their weights, given released sums; of N values any whole number from ``least`` is there.

    Proposals are narrower than the priors, by which they are divided.
    """
    mu, sigma, n = rng.normal(0, 0.6, many), np.abs(rng.normal(0, 1.2, many)), rng.integers(least, N + 1, many)
    known = -0.5 * ((mu / 5) ** 2 - (mu / 0.6) ** 2 + (sigma / 5) ** 2 - (sigma / 1.2) ** 2)
    mean = (mu - 2.5) / 5.5 + sigma / 5.5 * rng.normal(size=many) / np.sqrt(np.maximum(n, 1))
    first = n * mean
    second = n * mean**2 + (sigma / 5.5) ** 2 * rng.chisquare(np.maximum(n - 1, 1)) * (n > 1)
    expected = np.stack([n - 2 * first + second, 2 * (n - second), n + 2 * first + second], axis=1)
    weight = known - np.abs(noisy.values.ravel() - expected).sum(axis=1) / noisy.noise.spread
    weight = np.exp(weight - weight.max())
    return {"mu": mu, "sigma": sigma}, weight / weight.sum()
