"""What a density says beyond a number that values are compared with is seen, however far from 1 that number is."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import refused

import pymc_dp as pmdp
from pymc_dp.models.custom_density import OF_NEGATIVE, is_density, problem_of_values
from pymc_dp.models.either_side import MOST_ROWS, UNSEEN, in_units
from pymc_dp.models.likelihood_rv import Written
from pymc_dp.models.single_points import HEAPED

pytestmark = pytest.mark.filterwarnings("ignore")


def exponential(scale):
    return pm.Exponential.dist(scale=scale)


def survival(dist, t):
    return pt.log1p(-pt.exp(pm.logcdf(dist, t)))


def ends(limit, dist, *, reached=pt.ge, above=survival, positive=True):
    """The log-density below a limit, and from it on the logarithm of the probability of more."""

    def formula(t, *parameters):
        of = dist(*parameters)
        whole = pt.switch(reached(t, limit), above(of, t), pm.logp(of, t))
        return pt.switch(t < 0, -np.inf, whole) if positive else whole

    return formula


def below(dist, t):
    return pm.logcdf(dist, t)


CENSORED = {
    "at 24": (1, ends(24.0, exponential)),
    "at 100": (1, ends(100.0, exponential)),
    "at 3,650": (1, ends(3650.0, exponential)),
    "at 0.01": (1, ends(0.01, exponential)),
    "Weibull": (2, ends(24.0, pm.Weibull.dist)),
    "Gamma": (2, ends(24.0, lambda a, b: pm.Gamma.dist(a, 1 / b))),
    "of a logarithm": (1, ends(24.0, lambda a: pm.Exponential.dist(pt.exp(a)))),
    "Normal": (2, ends(100.0, pm.Normal.dist, positive=False)),
    "by its own survival": (2, ends(100.0, pm.Normal.dist, positive=False, above=lambda d, t: pm.logccdf(d, t))),
    "from the left": (2, ends(-10.0, pm.Normal.dist, positive=False, reached=pt.le, above=below)),
    "flags": (1, lambda t, s: pt.switch(t < 0, -np.inf, (t < 24.0) * pm.logp(exponential(s), t) - (t >= 24.0) * t / s)),
    "in other units": (1, lambda t, s: pt.switch(t < 0, -np.inf, pt.switch(t / 12 >= 2, -t / s, pm.logp(exponential(s), t)))),
}  # fmt: skip


def in_pieces(t, a, b):
    """Hazards a up to 24 and b from then on."""
    return pt.switch(t < 0, -np.inf, pt.log(pt.switch(t < 24.0, a, b)) - a * pt.minimum(t, 24.0) - b * pt.maximum(t - 24.0, 0))


DENSITIES = {
    "Exponential": (1, lambda t, s: pm.logp(exponential(s), t)),
    "StudentT": (2, lambda t, m, s: pm.logp(pm.StudentT.dist(4, mu=m, sigma=s), t)),
    "skew, of a shape of either sign": (1, lambda t, a: pm.logp(pm.SkewNormal.dist(mu=0, sigma=1, alpha=a), t)),
    "generalised Pareto": (
        2,
        lambda t, x, s: pt.switch((t >= 0) & (1 + x * t / s > 0), -pt.log(s) - (1 + 1 / x) * pt.log1p(x * t / s), -np.inf),
    ),
    "tilted": (2, lambda t, m, a: pm.logp(pm.Normal.dist(m, 1), t) + pt.log1p(pt.tanh(a * (t - m)))),
    "hazards in pieces": (2, in_pieces),
    "truncated": (
        2,
        lambda t, m, s: pt.switch(t > 100, -np.inf, pm.logp(pm.Normal.dist(m, s), t) - pm.logcdf(pm.Normal.dist(m, s), 100.0)),
    ),
    "two spreads": (3, lambda t, m, a, b: pt.log(2 / (a + b)) + pm.logp(pm.Normal.dist(0, 1), (t - m) / pt.switch(t < m, a, b))),
    "the same on both sides": (1, lambda t, m: pt.switch(t > 3.2, -0.5 * t**2, -(t**2) / 2) + 0 * m),
    "beside what cannot be computed": (1, lambda t, s: pt.switch(t > 1e-10, pm.logp(pm.Gamma.dist(2.0, s), pt.maximum(t, 1e-10)), -np.inf)),
}  # fmt: skip


def written(many, formula):
    vectors = tuple(pt.dvector() for _ in range(1 + many))
    with pm.Model():
        parameters = [pm.Normal(f"p{k}") for k in range(many)]
    return Written(vectors, formula(*vectors)).unchecked(), parameters


@pytest.mark.parametrize("name", CENSORED)
def test_what_is_said_beyond_a_limit_is_seen(name):
    """Some have the integrals of a density where they are tried in any case."""
    assert problem_of_values(*written(*CENSORED[name])) in (UNSEEN, HEAPED)


def test_what_is_said_at_a_limit_is_seen():
    formula = ends(100.0, exponential, reached=pt.eq)
    assert is_density(*written(1, formula))
    assert problem_of_values(*written(1, formula)) == HEAPED


@pytest.mark.parametrize("name", DENSITIES)
def test_densities_are_left_as_they_are(name):
    assert is_density(*written(*DENSITIES[name]))
    assert problem_of_values(*written(*DENSITIES[name])) == ""


NEGATIVE = {
    "a term": lambda t, m: pm.logp(pm.Normal.dist(m, 1), t) + pt.minimum(m, 0),
    "a factor": lambda t, m: pt.switch(m > 0, 1, 2) * pm.logp(pm.Normal.dist(m, 1), t),
}  # fmt: skip


PRIORS = {
    "Normal": (pm.Normal, True),
    "Uniform from -3": (lambda name: pm.Uniform(name, -3, 3), True),
    "HalfNormal": (pm.HalfNormal, False),
    "HalfNormal without a transform": (lambda name: pm.HalfNormal(name, default_transform=None), False),
    "Uniform from 0": (lambda name: pm.Uniform(name, 0, 3), False),
}  # fmt: skip


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("name", NEGATIVE)
def test_what_is_said_at_negative_unknowns_is_seen(name, prior):
    """Dividing by the sum of all bins would lose it. Where the prior has none it says nothing."""
    with pm.Model() as model:
        pm.Potential("like", NEGATIVE[name](pm.Data("t", np.linspace(-1, 2, 40)), PRIORS[prior][0]("m") * 2 + 0).sum())
    words = refused(pmdp.release, model, epsilon=1.0, bounds={"t": pmdp.Bins(-4, 8, 12)}, missing={})
    assert (OF_NEGATIVE in (words or "")) == PRIORS[prior][1]


@pytest.mark.parametrize("many", [0, 1, 3, 12])
def test_rows_in_units_are_few_however_many_unknowns_there_are(many):
    rows = in_units(np.full((4, many + 1), 1.5), np.array([True] * many + [False]), 24.0)
    assert rows.shape[1] == many + 1
    assert 1 <= len(rows) <= MOST_ROWS
    assert (rows[:, -1] == 1.5).all()
    if many:
        np.testing.assert_allclose(np.unique(rows[:, 0]), sorted([0.5, 2.5, 12, 60, 0.5 / 24, 2.5 / 24, np.log(24), -np.log(24)]))


@pytest.mark.parametrize("by_potential", [True, False])
@pytest.mark.parametrize("reached", [pt.ge, pt.eq])
def test_censoring_that_is_written_out_is_refused(reached, by_potential):
    """It was read as a density: of times of scale 20, censored at 24, a scale of 7 was found."""
    t = np.minimum(np.random.default_rng(3).exponential(20, 400), 24.0)
    formula = ends(24.0, exponential, reached=reached)
    with pm.Model() as model:
        scale = pm.Uniform("scale", 1, 1000)
        if by_potential:
            pm.Potential("like", formula(pm.Data("t", t), scale).sum())
        else:
            pm.CustomDist("t", scale, logp=formula, observed=t)
    words = refused(pmdp.release, model, epsilon=1.0, bounds={"t": pmdp.Bins(0, 36, 12)}, missing={})
    assert "write pm.Censored" in words
