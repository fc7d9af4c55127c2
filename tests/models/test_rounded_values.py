"""Probabilities of rounded values that a user wrote as a density: bins would count the error of rounding twice, so they are refused."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import refused
from scipy import stats

import pymc_dp as pmdp
from pymc_dp.models.custom_density import problem_of_values
from pymc_dp.models.likelihood_rv import Written
from pymc_dp.models.model_arrays import arrays_of
from pymc_dp.models.rounded_values import ROUNDED
from pymc_dp.models.structure import substitute

pytestmark = pytest.mark.filterwarnings("ignore")
WHOLE = np.arange(40) % 11 * 1.0
HALVES = pmdp.Bins(-0.5, 10.5, 11)


def below(t, m, s):
    return pm.logcdf(pm.Normal.dist(m, s), t)


def by_difference(t, m, s):
    return pt.log(pt.exp(below(t + 0.5, m, s)) - pt.exp(below(t - 0.5, m, s)))


OF_ROUNDED = {
    "a difference of distribution functions": by_difference,
    "of their logarithms": lambda t, m, s: pm.math.logdiffexp(below(t + 0.5, m, s), below(t - 0.5, m, s)),
    "sigmoids": lambda t, m, s: pt.log(pm.math.sigmoid((t + 0.5 - m) / s) - pm.math.sigmoid((t - 0.5 - m) / s)),
    "what is subtracted first": lambda t, m, s: pt.log(pm.math.invprobit((0.5 + t - m) / s) - pm.math.invprobit((t - m - 0.5) / s)),
    "completed years": lambda t, m, s: pt.log(pt.exp(below(t + 1, m, s)) - pt.exp(below(t, m, s))),
    "to halves": lambda t, m, s: pt.log((pt.exp(below(t + 0.25, m, s)) - pt.exp(below(t - 0.25, m, s))) / 0.5),
    "in units of the spread": lambda t, m, s: pt.log(
        pm.math.invprobit((t - m) / s + 0.5 / s) - pm.math.invprobit((t - m) / s - 1 / (2 * s))
    ),
    "of heavy tails": lambda t, m, s: pt.log(
        pt.exp(pm.logcdf(pm.StudentT.dist(4, mu=m, sigma=s), t + 0.5)) - pt.exp(pm.logcdf(pm.StudentT.dist(4, mu=m, sigma=s), t - 0.5))
    ),
    "of a known spread": lambda t, m, s: pt.log(pt.exp(below(t + 0.5, m, 0.4)) - pt.exp(below(t - 0.5, m, 0.4))) + 0 * s,
}  # fmt: skip
NOT = {
    "a shift": lambda t, m, s: pm.logp(pm.Normal.dist(m, s), t + 0.5),
    "two shifts": lambda t, m, s: pt.logaddexp(*[pm.logp(pm.Normal.dist(m, s), t + c) for c in (-0.5, 0.5)]) - np.log(2),
    "two shifts of a known spread": lambda t, m, s: (
        pt.logaddexp(*[pm.logp(pm.Normal.dist(m, 0.8), t + c) for c in (-0.5, 0.5)]) - np.log(2) + 0 * s
    ),
    "two shifts of heavy tails": lambda t, m, s: (
        pt.logaddexp(*[pm.logp(pm.StudentT.dist(3, mu=m, sigma=2), t + c) for c in (-0.5, 0.5)]) - np.log(2) + 0 * s
    ),
    "two shifts of the heaviest tails": lambda t, m, s: (
        pt.logaddexp(*[pm.logp(pm.Cauchy.dist(m, s), t + c) for c in (-0.5, 0.5)]) - np.log(2)
    ),
    "shifts in units of the spread": lambda t, m, s: (
        pt.logaddexp(*[pm.logp(pm.Normal.dist(0, 1), (t - m) / s + c / s) for c in (-0.5, 0.5)]) - np.log(2) - pt.log(s)
    ),
    "a smooth density": lambda t, m, s: pt.logaddexp(*[pm.logp(pm.Normal.dist(m, 2), t + c) for c in (-0.5, 0.5)]) - np.log(2) + 0 * s,
    "between two whole numbers": lambda t, m, s: pm.logp(pm.Uniform.dist(m, m + 1), t) + 0 * s,
    "a support": lambda t, m, s: pt.switch(t + 1 > 0, pm.logp(pm.Gamma.dist(2, s), t + 1), -np.inf) + 0 * m,
}  # fmt: skip


def heaped(t, m, s, h):
    """To whole numbers or, of a share h, to fives: with a share of 2.5 it is no number at some values and one at others."""
    parts = [pt.exp(below(t + half, m, s)) - pt.exp(below(t - half, m, s)) for half in (0.5, 2.5)]
    return pt.log((1 - h) * parts[0] + h * parts[1] / 5)


def problem(formula, many=2):
    vectors = tuple(pt.dvector() for _ in range(1 + many))
    with pm.Model():
        parameters = [pm.Normal(f"p{k}") for k in range(many)]
    return problem_of_values(Written(vectors, formula(*vectors)).unchecked(), parameters)


@pytest.mark.parametrize("name", OF_ROUNDED)
def test_the_probability_of_a_rounded_value_is_found(name):
    assert problem(OF_ROUNDED[name]) == ROUNDED


def with_unknown_tails(t, m, s, nu):
    return pt.log(
        pt.exp(pm.logcdf(pm.StudentT.dist(nu, mu=m, sigma=s), t + 0.5)) - pt.exp(pm.logcdf(pm.StudentT.dist(nu, mu=m, sigma=s), t - 0.5))
    )


@pytest.mark.parametrize("formula", [heaped, with_unknown_tails])
def test_parameters_at_which_sums_say_nothing_are_passed_over(formula):
    assert problem(formula, 3) == ROUNDED


@pytest.mark.parametrize("name", NOT)
def test_a_density_is_left_as_it_is(name):
    assert problem(NOT[name]) == ""


def _by_potential(formula):
    pm.Potential("like", formula(pm.Data("t", WHOLE), pm.Normal("m", 5, 3), pm.HalfNormal("s", 3)).sum())


def _by_custom_dist(formula):
    pm.CustomDist("t", pm.Normal("m", 5, 3), pm.HalfNormal("s", 3), logp=formula, observed=WHOLE)


def _by_a_mixture(formula):
    t, p = pm.Data("t", WHOLE), pm.Beta("p", 2, 2)
    rounded = formula(t, pm.Normal("m", 5, 3), pm.HalfNormal("s", 3))
    pm.Potential("like", pt.logaddexp(pt.log(p) + rounded, pt.log1p(-p) + pm.logp(pm.Normal.dist(5, 20), t)).sum())


@pytest.mark.parametrize("write", [_by_potential, _by_custom_dist, _by_a_mixture])
def test_it_is_refused_with_what_to_write(write):
    with pm.Model() as model:
        write(by_difference)
    assert ROUNDED in refused(pmdp.release, model, epsilon=1.0, bounds={"t": HALVES})


def test_what_a_refusal_says_is_the_same_likelihood():
    """The distribution before rounding has, of a bin between two halves, the probability that the user wrote of the whole number in it."""
    with pm.Model() as model:
        pm.Normal("t", pm.Normal("m"), pm.HalfNormal("s"), observed=WHOLE)
    (observed,) = arrays_of(model, binned={"t"}).observed
    numbers = dict(zip(observed.parameters, [pt.constant(np.array([number])) for number in (5.2, 0.4)], strict=True))
    between = observed.tree.between(np.arange(11) - 0.5, *[substitute(parameter, dict(numbers)) for parameter in observed.parameters])
    [found] = between.eval()
    theirs = np.exp(by_difference(pt.constant(np.arange(10.0)), *numbers.values()).eval())
    np.testing.assert_allclose(found[1:-1], theirs, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(theirs, np.diff(stats.norm.cdf(np.arange(11) - 0.5, 5.2, 0.4)), rtol=1e-6, atol=1e-12)
