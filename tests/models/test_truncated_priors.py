"""Where priors are cut off: their quantiles, by SciPy's distributions, and over all that other unknowns allow."""

import numpy as np
import pymc as pm
import pytest
from pymc.distributions.transforms import ordered
from scipy import stats

import pymc_dp as pmdp
from pymc_dp.models.reader import read_model
from pymc_dp.models.truncated_priors import MONOTONE, TAIL, within_intervals

pytestmark = pytest.mark.filterwarnings("ignore")
X = np.linspace(-1, 1, 12)


def intervals(body, by_hand=None):
    """By name, the unknowns of a model whose likelihood rests on all of them."""
    with pm.Model() as model:
        body()
        pm.StudentT("x", nu=4, mu=sum(variable.sum() for variable in model.free_RVs), sigma=1, observed=X)  # all are priors
    spec, _ = read_model(model, rowwise=True)
    free = [variable for variable in spec.kept if type(variable.owner.op).__name__ == "ModelFreeRV"]
    return {unknown.name: unknown for unknown in within_intervals(free, by_hand or {})}


PRIORS = {
    "Beta": ({"alpha": 2.0, "beta": 3.0}, lambda alpha, beta: stats.beta(alpha, beta)),
    "Cauchy": ({"alpha": 0.5, "beta": 2.0}, lambda alpha, beta: stats.cauchy(alpha, beta)),
    "Exponential": ({"scale": 2.0}, lambda scale: stats.expon(scale=scale)),
    "Gamma": ({"alpha": 2.0, "beta": 0.5}, lambda alpha, beta: stats.gamma(alpha, scale=1 / beta)),
    "Gumbel": ({"mu": 0.5, "beta": 2.0}, lambda mu, beta: stats.gumbel_r(mu, beta)),
    "HalfCauchy": ({"beta": 2.0}, lambda beta: stats.halfcauchy(scale=beta)),
    "HalfNormal": ({"sigma": 2.0}, lambda sigma: stats.halfnorm(scale=sigma)),
    "InverseGamma": ({"alpha": 2.0, "beta": 3.0}, lambda alpha, beta: stats.invgamma(alpha, scale=beta)),
    "Laplace": ({"mu": 0.5, "b": 2.0}, lambda mu, b: stats.laplace(mu, b)),
    "Logistic": ({"mu": 0.5, "s": 2.0}, lambda mu, s: stats.logistic(mu, s)),
    "LogNormal": ({"mu": 0.5, "sigma": 1.5}, lambda mu, sigma: stats.lognorm(sigma, scale=np.exp(mu))),
    "Moyal": ({"mu": 0.5, "sigma": 2.0}, lambda mu, sigma: stats.moyal(mu, sigma)),
    "Normal": ({"mu": 0.5, "sigma": 2.0}, lambda mu, sigma: stats.norm(mu, sigma)),
    "Pareto": ({"alpha": 2.0, "m": 1.5}, lambda alpha, m: stats.pareto(alpha, scale=m)),
    "StudentT": ({"nu": 3.0, "mu": 0.5, "sigma": 2.0}, lambda nu, mu, sigma: stats.t(nu, mu, sigma)),
    "Uniform": ({"lower": -1.5, "upper": 2.5}, lambda lower, upper: stats.uniform(lower, upper - lower)),
    "Weibull": ({"alpha": 1.5, "beta": 2.0}, lambda alpha, beta: stats.weibull_min(alpha, scale=beta)),
}  # fmt: skip


@pytest.mark.parametrize("name", PRIORS)
def test_priors_are_cut_off_at_their_quantiles(name):
    parameters, law = PRIORS[name]
    cut = intervals(lambda: getattr(pm, name)("a", **parameters))["a"]
    assert cut.lower == pytest.approx(law(**parameters).ppf(TAIL), rel=1e-5)
    assert cut.upper == pytest.approx(law(**parameters).ppf(1 - TAIL), rel=1e-5)


@pytest.mark.parametrize("name", PRIORS)
def test_a_hierarchy_holds_every_quantile_that_its_parameters_allow(name):
    """Each parameter is an unknown of its own; at 2,000 random parameters no quantile lies outside, and at some it is all but attained."""
    parameters, law = PRIORS[name]

    def body():
        unknown = {key: pm.Uniform(key, value - 0.4, value + 0.4) for key, value in parameters.items()}
        getattr(pm, name)("a", **unknown)

    cut = intervals(body)
    rng = np.random.default_rng(3)
    share = np.where(
        rng.random((2000, len(parameters))) < 0.5, rng.integers(0, 2, (2000, len(parameters))), rng.random((2000, len(parameters)))
    )
    given = {key: cut[key].lower + part * (cut[key].upper - cut[key].lower) for key, part in zip(parameters, share.T, strict=True)}
    lows, highs = (law(**given).ppf(tail) for tail in (TAIL, 1 - TAIL))
    slack = 1e-5 * (1 + abs(highs).max())
    assert cut["a"].lower[0] - slack <= lows.min() <= cut["a"].lower[0] + slack
    assert cut["a"].upper[0] - slack <= highs.max() <= cut["a"].upper[0] + slack


def test_every_distribution_of_the_table_is_tried_but_those_that_scipy_has_not():
    assert set(MONOTONE) - set(PRIORS) == {"HalfStudentT", "Kumaraswamy", "Triangular"}


def test_what_was_written_stays():
    """Ends of ``pm.Truncated``, of priors that were made for draws, and intervals by hand; the others are quantiles."""

    def body():
        pm.Truncated("a", pm.Normal.dist(0, 1), lower=-0.5)
        pm.Truncated("g", pm.Gamma.dist(2, 1), lower=0.5)
        pmdp.TrimmedBeta("t", 1, 1, smallest=0.2)
        pmdp.BallNormal("w", precision=1.0, radius=2.0, shape=2)
        pm.HalfNormal("s")
        pm.Normal("v", [0.0, 5.0], 1)

    cut = intervals(body, {"s": (-1, 3)})
    assert cut["a"].lower == -0.5
    assert cut["a"].upper == pytest.approx(stats.truncnorm(-0.5, np.inf).ppf(1 - TAIL), rel=1e-5)
    gamma = stats.gamma(2)
    assert cut["g"].upper == pytest.approx(gamma.ppf(gamma.cdf(0.5) + (1 - TAIL) * gamma.sf(0.5)), rel=1e-5)
    assert cut["g"].lower == 0.5
    assert (cut["t"].lower, cut["t"].transform) == (0.2, None)
    assert 0.8 - 1e-15 <= cut["t"].upper <= 0.8
    assert (cut["w"].radius, cut["w"].transform) == (2.0, None)
    assert (cut["s"].lower, cut["s"].upper) == (0.0, 3.0)
    assert np.allclose(cut["v"].lower, [stats.norm.ppf(TAIL), 5 + stats.norm.ppf(TAIL)])


REFUSED = [
    (lambda: pm.Normal("a", shape=2, transform=ordered, initval=[0.0, 1.0]), {}, "such as an order"),
    (lambda: pm.MvNormal("a", np.zeros(2), np.eye(2)), {}, "quantiles of the prior of a are not known"),
    (lambda: pm.MvNormal("a", np.zeros(2), np.eye(2)), {"a": (-1, 1)}, "bound by more than an interval"),
    (lambda: pm.SkewNormal("a", mu=0, sigma=1, alpha=2), {}, r"truncate=\{'a': \(lower, upper\)\}"),
    (lambda: pm.DiscreteUniform("a", 0, 3), {}, "whole number"),
    (lambda: pm.HalfNormal("a"), {"b": (0, 1)}, "names b, which is no unknown. Write a"),
    (lambda: pm.HalfNormal("a"), {"a": (-2, -1)}, "No interval of a is left"),
    (lambda: pmdp.TrimmedBeta("a", 1, 1, smallest=0.2), {"a": (0.3, 0.4)}, "ends of its own"),
    (lambda: pm.Dirichlet("a", np.ones(3)), {}, r"TrimmedDirichlet\('a', a, smallest=0.01\)"),
    (lambda: pm.Truncated("a", pm.Normal.dist(pm.Normal("m"), 1), lower=0), {}, "its parameters are unknown"),
]


@pytest.mark.parametrize(("body", "by_hand", "words"), REFUSED)
def test_what_cannot_be_cut_off_is_refused(body, by_hand, words):
    with pytest.raises(pmdp.Refusal, match=words):
        intervals(body, by_hand)


def test_what_a_prior_has_no_quantiles_for_can_be_written():
    cut = intervals(lambda: pm.SkewNormal("a", mu=0, sigma=1, alpha=2), {"a": (-2, 4)})["a"]
    assert (cut.lower, cut.upper) == (-2, 4)


@pytest.mark.parametrize("odd", ["priors", 0.01, {}, {"a": 3}, {"a": (1, 0)}, {"a": (0, np.inf)}, {"a": (0, np.nan)}, ["a"]], ids=repr)
def test_arguments_that_mean_nothing_are_refused(odd):
    with pytest.raises(pmdp.Refusal, match='truncate must be "prior"'):
        pmdp.PosteriorSample(truncate=odd)


def test_priors_are_cut_off_in_one_way():
    with pytest.raises(pmdp.Refusal, match="in two ways"):
        pmdp.PosteriorSample(truncate="prior", smallest=0.1)
