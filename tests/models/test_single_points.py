"""Densities that a user wrote and that mean something else at a single value: an integral does not see it, so they are refused."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.raise_op import CheckAndRaise

import pymc_dp as pmdp
from pymc_dp.models.custom_density import says_something_of_points
from pymc_dp.models.likelihood_rv import Written
from pymc_dp.models.structure import substitute

Y = np.linspace(-2, 5.3, 40)


def _seen(t, m):
    return pm.logp(pm.Normal.dist(m, 1), t)


def _later(t, m):
    return pm.logccdf(pm.Normal.dist(m, 1), t)


def _by_exponential(t, m):
    here = pt.switch(pt.eq(t, 5.0), pm.logccdf(pm.Exponential.dist(m), t), pm.logp(pm.Exponential.dist(m), t))
    return pt.switch(t > 0, here, -np.inf)


TOLD_APART = {
    "equal to a number": lambda t, m: pt.switch(pt.eq(t, 5.3), _later(t, m), _seen(t, m)),
    "not equal": lambda t, m: pt.switch(pt.neq(t, 5.3), _seen(t, m), _later(t, m)),
    "a product with flags": lambda t, m: pt.eq(t, 5.3) * _later(t, m) + pt.neq(t, 5.3) * _seen(t, m),
    "equal to a parameter": lambda t, m, limit: pt.switch(pt.eq(t, limit), _later(t, m), _seen(t, m)),
    "equal after arithmetic": lambda t, m: pt.switch(pt.eq(2 * t - 1, 9.6), _later(t, m), _seen(t, m)),
    "equal after another function": lambda t, m: pt.switch(pt.eq(pt.exp(t), 3.1), _later(t, m), _seen(t, m)),
    "nearly equal": lambda t, m: pt.switch(pt.isclose(t, 5.3), _later(t, m), _seen(t, m)),
    "within a thousandth": lambda t, m: pt.switch(abs(t - 5.3) < 1e-3, _later(t, m), _seen(t, m)),
    "between two numbers": lambda t, m: pt.switch((t > 5.2999) & (t < 5.3001), _later(t, m), _seen(t, m)),
    "within a condition": _by_exponential,
}
NOT = {
    "zero at a single value": (lambda t, m: pt.switch(pt.eq(t, 5.3), -np.inf, _seen(t, m)), 1),
    "infinite values": (lambda t, m: pt.switch(pt.eq(t, np.inf), 0.0, _seen(t, m)), 1),
    "a jump": (lambda t, m: pt.switch(t <= 0.3, np.log(0.5), np.log(0.25)) + _seen(t, m), 1),
    "a known small spread": (lambda t, m: pm.logp(pm.Normal.dist(m, 0.02), t), 1),
    "a known small scale": (lambda t, m: pm.logp(pm.Laplace.dist(m, 0.01), t), 1),
    "a spike": (lambda t, m: pt.logaddexp(np.log(0.5) + pm.logp(pm.Normal.dist(0, 1e-3), t), np.log(0.5) + _seen(t, m)), 1),
    "a guard": (lambda t, k: pt.switch(t >= 0, (k - 1) * pt.log(t + 1e-10) - t - pt.gammaln(k), -np.inf), 1),
    "a least value": (lambda t, k: pt.switch(t >= 0, (k - 1) * pt.log(pt.maximum(t, 1e-12)) - t - pt.gammaln(k), -np.inf), 1),
    "a value cut off": (lambda t, k: pt.switch(pt.lt(t, 0), -np.inf, (k - 1) * pt.log(pt.clip(t, 1e-300, 1e9)) - t - pt.gammaln(k)), 1),
    "a formula that has no value there": (lambda t, m: pt.switch(pt.eq(t, 0), 0.0, t * pt.log(abs(t))) - t**2 * m, 1),
    **{
        name: ((lambda kind: lambda t, *several: pm.logp(kind.dist(*several), t))(getattr(pm, name)), many)
        for name, many in (
            ("Exponential", 1), ("Gamma", 2), ("Weibull", 2), ("Beta", 2), ("LogNormal", 2), ("Laplace", 2), ("Uniform", 2), ("Pareto", 2),
            ("Triangular", 3), ("Wald", 2), ("SkewNormal", 3), ("Kumaraswamy", 2), ("InverseGamma", 2), ("Cauchy", 2), ("HalfStudentT", 2),
            ("AsymmetricLaplace", 3), ("TruncatedNormal", 2), ("VonMises", 2),
        )
    },
}  # fmt: skip


def _told_apart(formula, many):
    vectors = tuple(pt.dvector() for _ in range(1 + many))
    with pm.Model():
        parameters = [pm.Normal(f"p{k}") for k in range(many)]
    return says_something_of_points(Written(vectors, substitute(formula(*vectors), {}, (CheckAndRaise,))), parameters)


@pytest.mark.parametrize("name", TOLD_APART)
def test_a_single_value_that_means_something_else_is_found(name):
    assert _told_apart(TOLD_APART[name], TOLD_APART[name].__code__.co_argcount - 1)


@pytest.mark.parametrize("name", NOT)
def test_a_density_is_left_as_it_is(name):
    assert not _told_apart(*NOT[name])


def _by_potential(formula):
    with pm.Model() as model:
        t, m = pm.Data("t", Y), pm.Gamma("m", 2, 1)
        pm.Potential("like", formula(t, m).sum())
    return model, "t"


def _by_custom(formula):
    with pm.Model() as model:
        pm.CustomDist("t", pm.Gamma("m", 2, 1), logp=formula, observed=Y)
    return model, "t"


def _of_a_mixture(formula):
    with pm.Model() as model:
        t, m = pm.Data("t", Y), pm.Gamma("m", 2, 1)
        pm.Potential("like", pt.logaddexp(pt.log(0.3) + formula(t, m), pt.log(0.7) + _seen(t, -m)).sum())
    return model, "t"


def _with_flags(formula):
    with pm.Model() as model:
        t, e, m = pm.Data("t", abs(Y)), pm.Data("e", np.arange(len(Y)) % 2), pm.Gamma("m", 2, 1)
        seen = pm.logp(pm.Exponential.dist(m), t)
        pm.Potential("like", (e * pt.switch(pt.eq(t, 5.3), np.log(m) - 9.0, seen) + (1 - e) * pm.logccdf(pm.Exponential.dist(m), t)).sum())
    return model, "t"


@pytest.mark.parametrize("make", [_by_potential, _by_custom, _of_a_mixture, _with_flags])
def test_it_is_refused_with_what_to_write(make):
    model, name = make(TOLD_APART["equal to a number"])
    shown = pmdp.inspect(model, bounds={name: pmdp.Bins(-3, 8, 11)})
    words = " ".join(str(shown).split())
    assert "a single value" in words
    assert "pm.Censored(..., lower, upper)" in words
    with pytest.raises(pmdp.Refusal, match="single value"):
        pmdp.release(model, epsilon=1.0, bounds={name: pmdp.Bins(-3, 8, 11)})
    model, name = make(_seen)
    if make is not _with_flags:
        assert not pmdp.inspect(model, bounds={name: pmdp.Bins(-3, 8, 11)}).problems
