"""Functions that somebody passes as a density and that are none, given the data that they are passed."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import refused

import pymc_dp as pmdp
from pymc_dp.models.binned import parametrised_in_bins
from pymc_dp.models.structure import Unreduced

pytestmark = pytest.mark.filterwarnings("ignore")
N = 40
BINS = pmdp.Bins(0, 4, 8)


def _exponential_by_event(value, rate, event):
    """A density where ``event`` is 1 and a survival function where it is 0, as courses on survival write it."""
    return pt.switch(value > 0, event * pt.log(rate) - rate * value, -np.inf)


def _normal_by_flag(value, mu, lost):
    return pt.switch(lost > 0, pm.logcdf(pm.Normal.dist(-mu, 1), -value), pm.logp(pm.Normal.dist(mu, 1), value))


def _weighted(value, mu, weight):
    return weight * pm.logp(pm.Normal.dist(mu, 1), value)


def _normal(value, mu, deviation):
    return -(((value - mu) / deviation) ** 2) / 2 - pt.log(deviation)


def model_of(logp, told):
    """An unknown, and something that is told of every record."""
    with pm.Model() as model:
        pm.CustomDist("y", pm.HalfNormal("a"), pm.Data("told", told), logp=logp, observed=np.linspace(0.1, 4, N))
    return model


@pytest.mark.parametrize("declared", [{"bounds": {"told": {0, 1}}}, {"public": ["told"]}], ids=["private", "public"])
@pytest.mark.parametrize("logp", [_exponential_by_event, _normal_by_flag, _weighted], ids=lambda f: f.__name__)
def test_what_is_no_density_given_its_data_is_refused(logp, declared):
    """Probabilities of bins would be divided by their sum, and a censored time be taken for that of an event."""
    arguments = declared | {"bounds": {"y": BINS} | declared.get("bounds", {})}
    words = refused(pmdp.release, model_of(logp, np.arange(N) % 2), epsilon=1.0, **arguments)
    assert "none given the data that it is passed" in words
    assert "pm.Censored" in words


@pytest.mark.parametrize("declared", [{"bounds": {"told": {0.5, 2}}}, {"public": ["told"]}], ids=["private", "public"])
def test_a_density_may_have_data_as_a_parameter(declared):
    """Standard deviations that are known."""
    arguments = declared | {"bounds": {"y": BINS} | declared.get("bounds", {})}
    assert pmdp.release(model_of(_normal, 0.5 + 1.5 * (np.arange(N) % 2)), epsilon=1.0, **arguments).statistics


def test_a_plain_number_is_tried_as_it_is():
    """A power of a density is one, up to a factor that is constant where the power is."""
    assert parametrised_in_bins(pm.CustomDist.dist(pt.dscalar(), 2.0, logp=_weighted)).between is not None
    with pytest.raises(Unreduced, match="none over all real numbers"):
        parametrised_in_bins(pm.CustomDist.dist(pt.dscalar(), pt.dscalar(), logp=_weighted))


def test_a_factor_that_is_1_where_a_parameter_is_1_is_missed():
    with pytest.raises(Unreduced, match="none over all real numbers"):
        parametrised_in_bins(pm.CustomDist.dist(pt.dscalar(), pt.dscalar(), logp=_exponential_by_event))


def test_an_integral_that_is_infinite_is_none():
    """A survival function in the place of a density, of any value."""
    with pytest.raises(Unreduced, match="none over all real numbers"):
        parametrised_in_bins(pm.CustomDist.dist(pt.dscalar(), logp=lambda value, mu: pm.logcdf(pm.Normal.dist(-mu, 1), -value)))


def test_many_columns_of_data_are_tried_at_few_values():
    """At four values of each of nine, integrals would be taken at 262,144 points, and fill the memory."""

    def logp(value, a, *columns):
        return pm.logp(pm.Normal.dist(a + sum(columns[:-1]), 1), value) * (columns[-1] if weighted else 1)

    for weighted in (False, True):
        with pm.Model() as model:
            told = [pm.Data(f"told_{k}", np.arange(N) % 2) for k in range(9)]
            pm.CustomDist("y", pm.Normal("a"), *told, logp=logp, observed=np.linspace(0.1, 4, N))
        declared = {"bounds": {"y": BINS}, "public": [data.name for data in told]}
        if weighted:
            assert "none given the data" in refused(pmdp.release, model, epsilon=1.0, **declared)
        else:
            assert pmdp.release(model, epsilon=1.0, **declared).statistics


FACTORS = {
    "1 - p": lambda value, p, mu: pt.log1p(-p) + _normal(value, mu, 1.0),
    "p (1 - p)": lambda value, p, mu: pt.log(p) + pt.log1p(-p) + _normal(value, mu, 1.0),
    "sqrt(1 - p^2)": lambda value, p, mu: 0.5 * pt.log(1 - p**2) + _normal(value, mu, 1.0),
}


@pytest.mark.parametrize("name", FACTORS)
def test_a_factor_that_rests_on_a_probability_is_seen(name):
    """There is no number where a probability is above 1: a single one at 1/2 would agree with itself."""
    with pm.Model() as model:
        pm.CustomDist("y", pm.Beta("p", 1, 1), pm.Normal("mu"), logp=FACTORS[name], observed=np.linspace(0.1, 4, N))
    assert "is none over all real numbers" in refused(pmdp.release, model, epsilon=1.0, bounds={"y": BINS})


def test_a_density_with_a_probability_is_one():
    def logp(value, p):
        return pt.switch(value < 0, pt.log(p) + value, pt.log1p(-p) - value)

    with pm.Model() as model:
        pm.CustomDist("y", pm.Beta("p", 1, 1), logp=logp, observed=np.linspace(0.1, 4, N))
    assert pmdp.release(model, epsilon=1.0, bounds={"y": BINS}).statistics


def test_a_single_number_does_not_agree_with_itself():
    """A formula that is a number at one of the values that are tried, and elsewhere than at 1/2."""

    def logp(value, a):
        return pt.log(2 - a) + pt.log(a - 1) + _normal(value, 0.0, 1.0)

    with pm.Model() as model:
        pm.CustomDist("y", pm.Normal("a"), logp=logp, observed=np.linspace(0.1, 4, N))
    assert "is none over all real numbers" in refused(pmdp.release, model, epsilon=1.0, bounds={"y": BINS})
