"""Parts of a density that are too narrow for bins are told of at the draws; densities that are narrow as a whole are not."""

import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from scipy import stats

import pymc_dp as pmdp
from pymc_dp.models.integrands import Integrand, integral_of
from pymc_dp.models.likelihood_rv import Written
from pymc_dp.private_models.missed_mass import at_draws, integrands_above, share_missed, warn_if_missed

BINS = {"y": pmdp.Bins(-4, 5, 9)}
EDGES = np.linspace(-4, 5, 10)
RNG = np.random.default_rng(1)
VALUES = np.zeros(1000)


def normal(y, m, s):
    return pm.logp(pm.Normal.dist(m, s), y)


def hidden_mixture(y, p, m, s):
    """A mixture that is not read as one."""
    one, other = pt.log(p) + normal(y, 0, 1), pt.log1p(-p) + normal(y, m, s)
    return one + pt.softplus(other - one)


def without_its_constant(y, p, m, s):
    return hidden_mixture(y, p, m, s) + 2.0


def plain_mixture(y, p, m, s):
    return pt.logaddexp(pt.log(p) + normal(y, 0, 1), pt.log1p(-p) + normal(y, m, s))


def single(y, p, m, s):
    return normal(y, m, s)


def in_a_custom_dist(logp, values):
    p, m, s = pm.Beta("p", 2, 2), pm.Normal("m", 2, 1), pm.HalfNormal("s", 0.5)
    pm.CustomDist("y", p, m, s, logp=logp, observed=values)


def in_a_potential(logp, values):
    pm.Potential("like", logp(pm.Data("y", values), pm.Beta("p", 2, 2), pm.Normal("m", 2, 1), pm.HalfNormal("s", 0.5)).sum())


def in_a_mixture(logp, values):
    own = pm.CustomDist.dist(pm.Beta("p", 2, 2), pm.Normal("m", 2, 1), pm.HalfNormal("s", 0.5), logp=logp, class_name="own")
    pm.Mixture("y", pm.Dirichlet("w", [1, 1]), [own, pm.Normal.dist(0, 3)], observed=values)


def by_group(logp, values):
    p, m, s = pm.Beta("p", 2, 2), pm.Normal("m", 2, 1), pm.HalfNormal("s", 0.5, shape=2)
    pm.CustomDist("y", p, m, s[pm.Data("group", np.arange(len(values)) % 2)], logp=logp, observed=values)


def private_of(write, logp, values=VALUES):
    with pm.Model() as model:
        write(logp, values)
    return pmdp.privatize(model, epsilon=1.0, bounds=BINS | ({"group": (0, 1)} if write is by_group else {}))


def draws_of(private, many=200, **values):
    """A tree of draws: numbers, or as many as draws."""
    of_all = {"p": 0.4, "m": 2.4, "s": 0.5, "w": [0.5, 0.5]} | values
    names = [variable for variable in private.free_RVs if variable.name in of_all]
    shapes = {v.name: (1, many, *np.shape(v.eval(mode="FAST_COMPILE"))) for v in names}
    arrays = {
        name: np.asarray(of_all[name]).reshape(1, -1, *[1] * (len(s) - 2)) if name == "s" else of_all[name] for name, s in shapes.items()
    }
    data = {
        name: (("chain", "draw", *(f"{name}_{k}" for k in range(len(s) - 2))), np.broadcast_to(arrays[name], s))
        for name, s in shapes.items()
    }
    return xr.DataTree.from_dict({"posterior": xr.Dataset(data)})


def said(private, tree):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_if_missed(private, tree)
    return [str(one.message) for one in caught if one.category is pmdp.QuadratureWarning]


@pytest.mark.parametrize("write", [in_a_custom_dist, in_a_potential, in_a_mixture, by_group])
def test_a_lost_component_is_told_of(write):
    """Of standard deviation .01 in bins of width 1, at some draws and at all; not one of .5."""
    private = private_of(write, hidden_mixture)
    [words] = said(private, draws_of(private, s=0.01))
    assert words.startswith("At 100% of the draws parts of the density of y are too narrow for its bins")
    assert "Write narrower bins or, of a mixture, pm.Mixture('y', w, [...], observed=...)." in words
    some = np.where(np.arange(200) % 10 == 0, 0.01, 0.5)
    assert "At 10% of the draws" in said(private, draws_of(private, s=some))[0]
    assert said(private, draws_of(private, s=0.5)) == []
    assert said(private, draws_of(private, s=np.where(np.arange(200) < 2, 0.01, 0.5))) == []


def test_what_is_lost_of_one_cell_is_told_of():
    private = private_of(by_group, hidden_mixture)
    posterior = draws_of(private, s=0.5)["posterior"].to_dataset()
    posterior["s"] = posterior["s"] * np.array([1.0, 0.02])
    assert said(private, xr.DataTree.from_dict({"posterior": posterior}))


def test_a_factor_is_no_loss():
    private = private_of(in_a_custom_dist, without_its_constant)
    [(integrand, _)] = integrands_above(private["y"])
    assert integrand.whole == pytest.approx(np.exp(2), rel=1e-6)
    assert said(private, draws_of(private, s=0.5)) == []
    assert said(private, draws_of(private, s=0.01))


@pytest.mark.parametrize("s", [0.5, 0.05, 0.03, 0.02, 0.01, 0.005])
def test_a_density_that_is_narrow_as_a_whole_is_not_told_of(s):
    """Normal, in the middle of a bin of width 1: dividing by the sum gives the right bin all of it, whatever quadrature finds."""
    private = private_of(in_a_custom_dist, single)
    [(integrand, parameters)] = integrands_above(private["y"])
    by_draw = at_draws(private, draws_of(private, s=s, m=2.4), integrand, parameters)
    assert (abs(integrand.masses(by_draw[0]).sum() - 1) > 0.02) == (s < 0.04)
    assert said(private, draws_of(private, s=s, m=2.4)) == []


def test_it_is_told_of_where_it_lies_at_an_edge():
    """There it is shared between two bins as the nodes happen to lie."""
    private = private_of(in_a_custom_dist, single)
    assert said(private, draws_of(private, s=0.01, m=2.01))
    assert said(private, draws_of(private, s=0.1, m=2.01)) == []


def test_what_no_rule_finds_is_told_of():
    """Of both the finer rule finds what it finds: the other component, or nothing."""
    for logp in (hidden_mixture, single):
        private = private_of(in_a_custom_dist, logp)
        assert said(private, draws_of(private, s=1e-5))


def test_how_far_off_is_too_far_depends_on_the_number_of_records():
    """Probabilities that are off by what 1,000 records tell, and 10 do not."""
    private = private_of(in_a_custom_dist, hidden_mixture)
    [(integrand, parameters)] = integrands_above(private["y"])
    by_draw = at_draws(private, draws_of(private, s=0.035), integrand, parameters)
    assert [share_missed(integrand, by_draw, records) for records in (10, 1000)] == [0.0, 1.0]


@pytest.mark.parametrize("logp", [plain_mixture, "SkewNormal"])
def test_nothing_is_looked_at_of_other_densities(logp):
    """Each component is integrated by itself; PyMC's own distributions are no mixtures that were written out."""
    skewed = lambda _, values: pm.SkewNormal("y", pm.Normal("m", 2, 1), pm.HalfNormal("s", 0.5), 1, observed=values)  # noqa: E731
    private = private_of(in_a_custom_dist, logp) if callable(logp) else private_of(skewed, logp)
    assert list(integrands_above(private["y"])) == []
    assert said(private, draws_of(private, s=0.01)) == []


def test_draws_without_all_unknowns_and_few_draws_say_nothing():
    private = private_of(in_a_custom_dist, hidden_mixture)
    tree = draws_of(private, s=0.01)
    assert said(private, xr.DataTree.from_dict({"posterior": tree["posterior"].to_dataset().drop_vars("m")})) == []
    assert said(private, draws_of(private, many=99, s=0.01)) == []


@pytest.mark.parametrize("finer", [False, True])
@pytest.mark.parametrize("points", [np.array([-1.0, 0.0, 0.5, 2.0, 7.0]), np.array([0.3]), np.array([])], ids=repr)
def test_masses_are_those_between_the_points(points, finer):
    """Of a normal density of a standard deviation that is unknown, times 3."""
    value, s = pt.dvector(), pt.dvector()
    density = Written((value, s), -((value / s) ** 2) / 2 - pt.log(s) + np.log(3))
    integrand = Integrand(density, integral_of(density, [pt.dscalar()]), points)
    scales = np.array([0.7, 1.0, 3.0])
    expected = np.diff(stats.norm.cdf(points, 0, scales[:, None]), prepend=0.0, append=1.0, axis=1)
    np.testing.assert_allclose(integrand.masses(scales[:, None], finer=finer), expected, atol=1e-5)


def test_the_finer_rule_finds_what_is_a_six_hundredth_as_wide_as_a_bin():
    value, m = pt.dvector(), pt.dvector()
    narrow = 1 / 600
    density = Written((value, m), -(((value - m) / narrow) ** 2) / 2 - np.log(narrow * np.sqrt(2 * np.pi)))
    integrand = Integrand(density, 1.0, EDGES)
    places = RNG.uniform(-6, 7, 30)
    assert np.abs(integrand.masses(places[:, None], finer=True).sum(axis=1) - 1).max() < 0.02
    assert np.abs(integrand.masses(places[:, None]).sum(axis=1) - 1).max() > 0.5


SHORT = {
    "draws": 100, "tune": 100, "chains": 1, "cores": 1, "progressbar": False, "nuts_sampler": "pymc", "random_seed": 1,
    "nuts": {"max_treedepth": 3},
}  # fmt: skip


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("s", "check"), [(0.01, True), (0.5, True), pytest.param(0.01, False, marks=pytest.mark.slow)], ids=["narrow", "broad", "unasked"]
)
def test_sample_says_where_bins_are_too_wide(s, check):
    """Whatever the noise is, and wherever the chain goes: of a known standard deviation of .01 parts are missed everywhere."""
    values = np.where(RNG.random(1000) < 0.4, RNG.normal(0, 1, 1000), RNG.normal(2.4, s, 1000))
    with pm.Model() as model:
        pm.CustomDist("y", pm.Beta("p", 2, 2), pm.Normal("m", 2, 1), s, logp=hidden_mixture, observed=values)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pmdp.sample(model=model, epsilon=2.0, bounds=BINS, compute_convergence_checks=check, **SHORT)
    assert sum(one.category is pmdp.QuadratureWarning for one in caught) == (s == 0.01 and check)
