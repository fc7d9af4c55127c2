"""Outcomes in bins: probabilities at both ends and at atoms, what is counted, what is refused, and that what a refusal says works."""

import re

import arviz as az
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from checks import EXACT, log_density, mostly_slow, points, refused
from scipy import stats

import pymc_dp as pmdp
from pymc_dp.families.family import Domain, complete
from pymc_dp.laws.kernel import LEAST
from pymc_dp.models.binned import in_bins, parametrised_in_bins
from pymc_dp.models.structure import Unreduced
from pymc_dp.models.tabulated import BINNED
from pymc_dp.plans.bins import FEWEST, MOST, UNKNOWN, default_bins

pytestmark = pytest.mark.filterwarnings("ignore")
EDGES = (-2.0, -1.0, 0.0, 1.0, 3.0)
WILD = [
    -np.inf,
    -5.0,
    -2.0,
    -1.0,
    np.nextafter(-1, 0),
    np.nextafter(-1, -2),
    0.0,
    -0.0,
    5e-324,
    1.0,
    np.nextafter(1, 2),
    3.0,
    9.0,
    np.inf,
    np.nan,
]


def probabilities(distribution, edges):
    """Of the bins of one cell."""
    tree = parametrised_in_bins(distribution)
    cells = [
        parameter.astype("float64") + np.zeros((1,) + (1,) * core) for parameter, core in zip(tree.parameters, tree.cores, strict=True)
    ]
    p = in_bins(tree.between, cells, Domain(edges=tuple(edges)))
    return p.reshape((len(edges) - 1,))


def value_of(variable):
    return pytensor.function([], variable, mode="FAST_COMPILE")()


TAILS = {
    "Logistic": (pm.Logistic.dist(0.0, 1.0), stats.logistic()),
    "Laplace": (pm.Laplace.dist(0.0, 1.0), stats.laplace()),
    "Weibull": (pm.Weibull.dist(1.0, 1.0), stats.expon()),
    "AsymmetricLaplace": (pm.AsymmetricLaplace.dist(mu=0.0, b=1.0, kappa=2.0), stats.laplace_asymmetric(2.0)),
    "HalfStudentT": (pm.HalfStudentT.dist(nu=2.0, sigma=1.0), stats.t(2)),
    "SkewNormal": (pm.SkewNormal.dist(mu=0.0, sigma=1.0, alpha=0.0), stats.norm()),
}


@pytest.mark.parametrize("name", TAILS)
def test_small_probabilities_are_right_at_both_ends(name):
    """Bins 1 wide out to 30: probabilities down to the least that there is, to a millionth of themselves."""
    distribution, law = TAILS[name]
    edges = np.arange(-31.0, 32.0)
    found = value_of(probabilities(distribution, edges))
    half = 2 if name == "HalfStudentT" else 1
    inner = edges[1:-1]
    below, above = law.cdf(inner), law.sf(inner)
    expected = half * np.concatenate([below[:1], np.where(inner[:-1] < 0, np.diff(below), -np.diff(above)), above[-1:]])
    there = slice(31, None) if name in ("Weibull", "HalfStudentT") else slice(None)
    np.testing.assert_allclose(found[there], np.maximum(expected, LEAST)[there], rtol=1e-6)
    assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize("sd", [1.0, 1e-1, 1e-2, 1e-4, 1e-8])
def test_a_density_narrower_than_a_bin_is_not_lost(sd):
    """By quadrature: of a density far narrower than the nodes lie nearly all is in the right bin, and nothing is more than 1."""
    edges = np.linspace(-4, 4, 9)
    found = value_of(probabilities(pm.SkewNormal.dist(mu=0.4, sigma=sd, alpha=0.0), edges))
    inner = stats.norm(0.4, sd).cdf(edges[1:-1])
    np.testing.assert_allclose(found, np.diff(inner, prepend=0, append=1), atol=1e-6)


def _with_theta(name):
    theta = pt.dscalar("theta")
    made = {
        "StudentT": lambda: pm.StudentT.dist(nu=theta, mu=theta, sigma=theta),
        "Wald": lambda: pm.Wald.dist(mu=theta, lam=theta),
        "ExGaussian": lambda: pm.ExGaussian.dist(theta, theta, nu=theta),
        "Pareto": lambda: pm.Pareto.dist(alpha=theta, m=theta),
        "Uniform": lambda: pm.Uniform.dist(-theta, theta),
        "Moyal": lambda: pm.Moyal.dist(theta, theta),
        "SkewNormal": lambda: pm.SkewNormal.dist(mu=theta, sigma=theta, alpha=theta),
        "HalfStudentT": lambda: pm.HalfStudentT.dist(nu=theta, sigma=theta),
        "HurdleGamma": lambda: pm.HurdleGamma.dist(psi=0.3 * theta, alpha=theta, beta=theta),
        "Censored": lambda: pm.Censored.dist(pm.Gumbel.dist(theta, theta), lower=-1.0, upper=2.0),
        "Truncated": lambda: pm.Truncated.dist(pm.Logistic.dist(theta, theta), lower=-1.0, upper=2.0),
        "Mixture": lambda: pm.Mixture.dist(pt.stack([theta / 3, 1 - theta / 3]), [pm.Cauchy.dist(theta, 1.0), pm.Gamma.dist(theta, 1)]),
    }[name]()  # fmt: skip
    return theta, made


OF_THETA = ("Wald", "Censored", "StudentT", "ExGaussian", "Pareto", "Uniform", "Moyal", "SkewNormal", "HalfStudentT", "HurdleGamma",
            "Truncated", "Mixture")  # fmt: skip


@pytest.mark.parametrize("name", mostly_slow(OF_THETA, 0, 1))
def test_derivatives_are_finite_and_those_of_the_probabilities(name):
    """Also where points lie outside the support, and so far out that formulas overflow. PyMC's normal distribution function is off by 2e-8,
    which is divided by 2e-3 here."""
    theta, distribution = _with_theta(name)
    edges = [-900.0, -8.1, -1.3, 0.0, 0.9, 1.7, 3.1, 8.2, 900.0, 901.0]
    p = probabilities(distribution, edges)
    weights = np.random.default_rng(0).normal(size=len(edges) - 1)
    compiled = pytensor.function([theta], [p, pt.grad((weights * p).sum(), theta)], mode="FAST_COMPILE")
    for at in (0.6, 1.4):
        (up, _), (down, _), (found, slope) = compiled(at + 1e-3), compiled(at - 1e-3), compiled(at)
        assert np.isfinite(slope).all()
        assert found.sum() == pytest.approx(1, abs=1e-6)
        np.testing.assert_allclose(slope, weights @ (up - down) / 2e-3, atol=1e-3)


def test_an_atom_belongs_to_the_bin_that_it_lies_in():
    """At an edge to the bin below it, as a value there does."""
    p = value_of(probabilities(pm.HurdleGamma.dist(psi=0.3, alpha=2.0, beta=1.0), EDGES))
    np.testing.assert_allclose(p, [0, 0.7, *(0.3 * np.diff(stats.gamma.cdf([0, 1], 2), append=1))], atol=1e-12)
    p = value_of(probabilities(pm.Censored.dist(pm.Logistic.dist(0.0, 1.0), lower=-1.0, upper=0.5), EDGES))
    below = stats.logistic.cdf([-1, 0])
    np.testing.assert_allclose(p, [below[0], below[1] - below[0], 1 - below[1], 0], atol=1e-12)
    p = value_of(probabilities(pm.Censored.dist(pm.Logistic.dist(0.0, 1.0), lower=None, upper=1.0), EDGES))
    np.testing.assert_allclose(p, [*np.diff(below, prepend=0), 1 - below[1], 0], atol=1e-12)


@pytest.mark.parametrize("upper", [-1.5, -1.0, 0.5, 1.0, 2.0, np.inf])
@pytest.mark.parametrize("lower", [-np.inf, -3.0, -1.0, -0.5, 0.25])
def test_a_limit_that_is_a_parameter_counts_as_a_plain_number_does(lower, upper):
    """Of each bin that probability which the same limit as a number has, wherever in a bin or at an edge it lies."""
    if lower >= upper:
        return
    base = pm.StudentT.dist(nu=2.0, mu=0.3, sigma=1.0)
    limits = [pt.dscalar("lower"), pt.dscalar("upper")]
    p = probabilities(pm.Censored.dist(base, lower=limits[0], upper=limits[1]), EDGES)
    found = pytensor.function(limits, p, mode="FAST_COMPILE")(lower, upper)
    cdf = lambda x: np.where(x >= upper, 1.0, np.where(x < lower, 0.0, stats.t.cdf(x, 2, 0.3)))  # noqa: E731
    np.testing.assert_allclose(found, np.diff(cdf(np.array(EDGES[1:-1])), prepend=0, append=1), atol=1e-12)


def test_integers_in_bins():
    p = value_of(probabilities(pm.Truncated.dist(pm.Poisson.dist(1.3), lower=1, upper=4), (0, 1, 2, 3.5, 5)))
    pmf = stats.poisson.pmf([1, 2, 3, 4], 1.3)
    np.testing.assert_allclose(p, pmf / pmf.sum(), rtol=1e-9)


# ---------- what is counted
def test_every_value_is_counted_once_by_comparison_with_edges():
    domain = Domain(EDGES[0], EDGES[-1], edges=EDGES)
    values = complete(np.array(WILD), domain)
    counted = np.stack(BINNED.exact(values, domain), axis=-1)
    assert (counted.sum(axis=-1) == 1).all()
    expected = [sum(value > edge for edge in EDGES[1:-1]) for value in WILD[:-1]]
    assert counted.argmax(axis=-1)[:-1].tolist() == expected
    assert counted.argmax(axis=-1)[-1] == 2  # the middle of the bounds is .5


def model_of(values, index, observed_name="y"):
    with pm.Model() as model:
        mu = pm.Normal("mu", shape=2)
        pm.StudentT(observed_name, nu=3.0, mu=mu[pm.Data("g", index)], sigma=1.0, observed=values)
    return model


NEIGHBOURS = {"replace": {}, "left out": {"missing": ["y"]}, "add or remove": {"neighbours": "add_remove"}}


@pytest.mark.parametrize("arguments", NEIGHBOURS.values(), ids=NEIGHBOURS)
def test_no_pair_of_records_moves_the_counts_by_more_than_is_paid_for(arguments, exact_seam):
    """All pairs of values and cells that are told apart: L1 and squared L2 distances, each attained."""
    bounds = {"y": pmdp.Bins(edges=EDGES)}
    sums = {}
    for value in WILD:
        for cell in (0, 1):
            if arguments.get("neighbours"):
                values, index = np.array([value]), np.array([cell])
            else:
                values, index = np.array([value, 0.5]), np.array([cell, 0])
            released = pmdp.release(model_of(values, index), epsilon=1, bounds=bounds, **arguments)["y"]
            sums[value, cell] = np.array(exact_seam.exact[-1])
    if arguments.get("neighbours"):
        sums = {key: (total, np.zeros_like(total)) for key, total in sums.items()}
        moves = [first - second for first, second in sums.values()]
    else:
        moves = [first - second for first in sums.values() for second in sums.values()]
    assert max(np.abs(move).sum() for move in moves) == released.difference
    assert max((move**2).sum() for move in moves) == released.square


# ---------- bins as they are written
@pytest.mark.parametrize(
    "wrong",
    [(), (0,), (1, 0), (0, 0), (0, np.inf), ("a", "b"), (0, 1, 1), (0, 1, 2.5), (0, 1, True), (0, 1, 5000), (0, 5e-324, 1000)],
    ids=str,
)
def test_bins_that_are_none_are_refused(wrong):
    assert "Write for example pymc_dp.Bins" in refused(pmdp.Bins, *wrong)


@pytest.mark.parametrize("edges", [[], [0, 1], [0, 1, 1], [2, 1, 0], [0, np.nan, 1], 5, ["a", "b", "c"], [0, 1, np.inf]], ids=str)
def test_edges_that_are_none_are_refused(edges):
    assert "Write for example pymc_dp.Bins" in refused(lambda: pmdp.Bins(edges=edges))
    assert "not both" in refused(lambda: pmdp.Bins(0, 1, edges=[0, 1, 2]))


def test_their_number_follows_from_the_public_number_of_records():
    assert [default_bins(n) for n in (1, 10, 1000, 10**4, 10**7)] == [FEWEST, FEWEST, 15, 32, MOST]
    assert default_bins(None) == UNKNOWN
    model = model_of(np.zeros(1000), np.arange(1000) % 2)
    row = pmdp.inspect(model, bounds={"y": pmdp.Bins(-8, 8)}).rows[0]
    assert len(row.statistics) == 15
    assert "15 bins of width 1.067 from -8 to 8, as many as its records make useful, open at both ends" in row.reason
    alone = pmdp.inspect(model, bounds={"y": pmdp.Bins(-8, 8)}, neighbours="add_remove").rows[0]
    assert (len(alone.statistics), alone.sensitivity) == (UNKNOWN, 1)


def test_a_release_keeps_its_bins(tmp_path, exact_seam):
    """Whatever the number of rows of the model that it is rewritten with, and after it was written to a file."""
    released = pmdp.release(model_of(np.zeros(1000), np.arange(1000) % 2), epsilon=EXACT, bounds={"y": pmdp.Bins(-8, 8)})
    released.to_netcdf(tmp_path / "released.nc")
    again = pmdp.Release.from_netcdf(tmp_path / "released.nc")
    assert again["y"].domain == released["y"].domain
    assert len(again["y"].domain.edges) == 16
    private = pmdp.rewrite(model_of(np.zeros(3), np.zeros(3, dtype=int)), again)
    assert private["y"].eval().shape == (2, 15)
    assert next(iter(private.coords["y_statistic"])) == "y <= -6.933"
    assert "another shape" in refused(pmdp.rewrite, normal_model(), again)


def normal_model():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", shape=2)[np.zeros(3, dtype=int)], 1.0, observed=np.zeros(3))
    return model


def test_missing_values_are_left_out_or_count_as_the_middle(exact_seam):
    y = np.array([0.5, np.nan, -1.5, np.nan, 2.5])
    bounds = {"y": pmdp.Bins(edges=EDGES)}

    def counts(**arguments):
        with pm.Model() as model:
            pm.StudentT("y", nu=3.0, mu=pm.Normal("mu"), sigma=1.0, observed=y)
        return pmdp.release(model, epsilon=EXACT, bounds=bounds, **arguments)["y"].values.ravel().tolist()

    assert counts() == [1, 0, 3, 1]
    assert counts(missing=["y"]) == [1, 0, 1, 1]
    assert "is not one of few levels" in refused(counts, missing={"y": 1})


# ---------- refusals, and what they say to write
def _of(build):
    def made():
        rng = np.random.default_rng(0)
        with pm.Model() as model:
            build(np.abs(rng.normal(size=40)) + 0.01)
        return model

    return made


ADVISED = {
    "StudentT": _of(lambda y: pm.StudentT("y", nu=pm.Gamma("nu", 2, 0.1), mu=pm.Normal("mu"), sigma=1, observed=y)),
    "Cauchy": _of(lambda y: pm.Cauchy("y", pm.Normal("mu"), 1, observed=y)),
    "SkewNormal": _of(lambda y: pm.SkewNormal("y", mu=pm.Normal("mu"), sigma=1, alpha=2, observed=y)),
    "ExGaussian": _of(lambda y: pm.ExGaussian("y", pm.Normal("mu"), 1, nu=1, observed=y)),
    "Wald": _of(lambda y: pm.Wald("y", pm.Gamma("mu", 2, 1), 1, observed=y)),
    "Mixture": _of(lambda y: pm.NormalMixture("y", pm.Dirichlet("w", np.ones(2)), pm.Normal("mu", shape=2), 1.0, observed=y)),
    "Hurdle": _of(lambda y: pm.HurdleGamma("y", pm.Beta("psi", 1, 1), alpha=2, beta=1, observed=y)),
    "Censored": _of(lambda y: pm.Censored("y", pm.Weibull.dist(pm.HalfNormal("a"), 1), lower=None, upper=2.0, observed=np.minimum(y, 2))),
    "Truncated": _of(lambda y: pm.Truncated("y", pm.StudentT.dist(nu=3, mu=pm.Normal("mu"), sigma=1), lower=0, upper=None, observed=y)),
    "TruncatedNormal": _of(lambda y: pm.TruncatedNormal("y", pm.Normal("mu"), 1, lower=0, observed=y)),
    "CustomDist": _of(lambda y: pm.CustomDist("y", pm.Normal("mu"), logp=lambda v, mu: -abs(v - mu) - np.log(2), observed=y)),
    "Weibull, alpha unknown": _of(lambda y: pm.Weibull("y", pm.HalfNormal("a"), 1, observed=y)),
    "Laplace, mu unknown": _of(lambda y: pm.Laplace("y", pm.Normal("mu"), 1, observed=y)),
}


@pytest.mark.parametrize("name", ADVISED)
def test_what_a_refusal_says_to_write_can_be_written(name):
    model = ADVISED[name]()
    reason = pmdp.inspect(model).rows[0].reason
    (written,) = re.findall(r"bounds=(\{'y': pymc_dp\.Bins\(lower, upper\)\})", reason)
    bounds = eval(written, {"pymc_dp": pmdp, "lower": 0, "upper": 4})
    released = pmdp.release(model, epsilon=1.0, bounds=bounds)
    private = pmdp.rewrite(model, released)
    assert private["y"].type.shape[-1] == 8


@pytest.mark.slow
@pytest.mark.parametrize("name", ADVISED)
def test_its_density_is_finite_where_chains_start(name):
    model = ADVISED[name]()
    private = pmdp.rewrite(model, pmdp.release(model, epsilon=1.0, bounds={"y": pmdp.Bins(0, 4, 8)}))
    assert np.isfinite(private.compile_logp(mode="FAST_COMPILE")(private.initial_point()))


def _mixing(value, mu):
    return -((value - mu - value.mean()) ** 2)


def _poisson(value, mu):
    return value * pt.log(mu) - mu - pt.gammaln(value + 1)


def _counts_as_real_numbers(**how):
    return lambda: model_of_counts(logp=_poisson, **how)


def model_of_counts(**how):
    with pm.Model() as model:
        pm.CustomDist("y", pm.Gamma("mu", 2, 1, shape=2)[np.arange(40) % 2], observed=np.arange(40) % 5, **how)
    return model


@pytest.mark.parametrize("edges", [[0, 1, 2, 4, 6], [-0.5, 0.5, 2.5, 4.5]], ids=repr)
def test_counts_of_the_user_s_own_are_put_in_bins_by_their_distribution_function(edges, exact_seam):
    """With ``logcdf`` the private model is that of Poisson counts in the same bins, which PyMC's own distribution gives."""
    own = model_of_counts(logp=_poisson, logcdf=lambda value, mu: pm.logcdf(pm.Poisson.dist(mu), value), dtype="int64")
    with pm.Model() as known:
        pm.Poisson("y", pm.Gamma("mu", 2, 1, shape=2)[np.arange(40) % 2], observed=np.arange(40) % 5)
    bounds = {"y": pmdp.Bins(edges=edges)}
    ours, theirs = (log_density(pmdp.rewrite(m, pmdp.release(m, epsilon=EXACT, bounds=bounds), noise_aware=False)) for m in (own, known))
    for at in points(known):
        assert ours(at) == pytest.approx(theirs(at), rel=1e-9)


def _uniform(value, low, high):
    return pt.switch((value > low) & (value < high), -pt.log(high - low), -np.inf)


def _gamma(value, a, b):
    return pt.switch(value > 0, (a - 1) * pt.log(pt.maximum(value, 1e-300)) - b * value + a * pt.log(b) - pt.gammaln(a), -np.inf)


def _normal_but_for_a_constant(value, mu, s):
    return -(((value - mu) / s) ** 2) / 2 - pt.log(s)


def _skew_laplace(value, mu, up, down):
    side = pt.switch(value > mu, (mu - value) / up, (value - mu) / down)
    return side - pt.log(up + down)


@pytest.mark.parametrize("logp", [_uniform, _gamma, _normal_but_for_a_constant, _skew_laplace])
def test_densities_are_told_from_other_functions(logp):
    """Those with ends, with an infinite value at one, and without a constant factor."""
    many = logp.__code__.co_argcount - 1
    parameters = [pt.dscalar() for _ in range(many)]
    assert parametrised_in_bins(pm.CustomDist.dist(*parameters, logp=logp)).between is not None


NUMBERS = np.linspace(0, 1, 40)
REFUSED = {
    "a density that mixes values": (_of(lambda y: pm.CustomDist("y", pm.Normal("mu"), logp=_mixing, observed=y)), {}, "may mix values"),
    "one that is summed up": (
        _of(lambda y: pm.CustomDist("y", pm.Normal("mu"), logp=lambda v, mu: -pt.sum((v - mu) ** 2), observed=y)),
        {}, "not one number a value",
    ),
    "probabilities of counts": (_counts_as_real_numbers(), {}, 'write dtype="int64" and logcdf='),
    "probabilities of whole numbers without their sums": (_counts_as_real_numbers(dtype="int64"), {}, "Give it logcdf=, too"),
    "a factor that rests on a parameter, left out": (
        _of(lambda y: pm.CustomDist("y", pm.Normal("mu"), pm.HalfNormal("s"), logp=lambda v, mu, s: -(((v - mu) / s) ** 2), observed=y)),
        {}, "is none over all real numbers",
    ),
    "a formula that goes on where no values are": (
        _of(lambda y: pm.CustomDist("y", pm.HalfNormal("rate"), logp=lambda v, rate: pt.log(rate) - rate * v, observed=y)),
        {}, "pt.switch(value > 0, ..., -np.inf)",
    ),
    "values that are vectors": (
        _of(lambda y: pm.MvNormal("y", pm.Normal("mu", shape=2), np.eye(2), observed=np.stack([y, y], -1))),
        {}, "Bins are for single numbers",
    ),
    "a real limit for each": (
        _of(lambda y: pm.Censored("y", pm.Normal.dist(pm.Normal("mu"), 1), lower=None, upper=NUMBERS, observed=np.minimum(y, NUMBERS))),
        {"y:0": (0, 1)}, "is a real number",
    ),
    "a limit of truncation for each": (
        _of(lambda y: pm.Truncated("y", pm.Cauchy.dist(pm.Normal("mu"), 1), lower=None, upper=5 + NUMBERS, observed=y)),
        {}, "Bins are for single numbers",
    ),
    "a real covariate": (
        _of(lambda y: pm.Cauchy("y", pm.Normal("b") * pm.Data("x", NUMBERS), 1, observed=y)), {"x": (0, 1)}, "x is a real number"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_bins_cannot_hold_is_refused(name):
    made, others, words = REFUSED[name]
    bounds = {"y": pmdp.Bins(0, 4, 8)} | others
    assert words in refused(pmdp.release, made(), epsilon=1.0, bounds=bounds)


def test_a_density_of_the_user_s_own_holds_no_array():
    data = pt.as_tensor(NUMBERS)
    distribution = pm.CustomDist.dist(0.0, logp=lambda value, mu: -((value - mu - data[0]) ** 2))
    with pytest.raises(Unreduced, match="holds an array"):
        parametrised_in_bins(distribution)


def test_bins_are_for_releases():
    bounds = {"y": pmdp.Bins(0, 4, 8)}
    assert refused(pmdp.sample, model=ADVISED["Cauchy"](), epsilon=1.0, bounds=bounds, mechanism=pmdp.PosteriorSample())
    with pm.Model() as totals:
        pm.Poisson("y", pm.Gamma("mu", 2, 1), observed=np.array([3, 4]))
    assert "totals" in refused(pmdp.release, totals, epsilon=1.0, bounds=bounds, unit=pmdp.Individual(events=2))


def test_new_records_are_drawn_from_the_likelihood():
    model = model_of(np.zeros(20), np.arange(20) % 2)
    released = pmdp.release(model, epsilon=1.0, bounds={"y": pmdp.Bins(-4, 4, 8)})
    tree = pmdp.annotate(az.from_dict({"posterior": {"mu": np.zeros((1, 5, 2))}}), released)
    checked = pmdp.posterior_predictive(tree, model=model, random_seed=1)["posterior_predictive"]
    assert checked["y"].dims == ("chain", "draw", "y_cell")
    assert np.isfinite(checked["y"].values).all()


@pytest.mark.parametrize("infinite", [True, False])
def test_limits_that_are_infinite_for_some_records_are_refused(infinite):
    """Such a limit tells who reached it, and outcomes of the others do not have the law of all."""
    limits = np.where(np.arange(40) % 2, np.inf if infinite else 2.0, 1.0)
    with pm.Model() as model:
        latent = pm.Normal.dist(pm.Normal("mu", 0, 2), 1.0)
        pm.Censored("y", latent, lower=None, upper=pm.Data("limit", limits), observed=np.zeros(40))
    arguments = {"epsilon": 1.0, "public": ["limit"], "bounds": {"y": pmdp.Bins(-4, 4, 10)}}
    if infinite:
        assert "limit is infinite for some records of y" in refused(pmdp.release, model, **arguments)
    else:
        assert len(pmdp.release(model, **arguments)["y"].noisy) == 2


def test_what_a_custom_density_integrates_to_shows_no_record_that_it_holds():
    """One record in a function would decide whether its integral is the same everywhere."""

    def seen(records):
        with pm.Model() as model:
            mu = pm.Normal("mu")
            pm.CustomDist("y", mu, logp=lambda value, mu: -0.5 * (value - mu) ** 2 + mu * float(records.sum()), observed=np.zeros(20))
        bounds = {"y": pmdp.Bins(-3, 3, 10)}
        with pytest.raises(pmdp.Refusal) as refused:
            pmdp.release(model, epsilon=1.0, bounds=bounds, missing={})
        return str(refused.value), repr(pmdp.inspect(model)), repr(pmdp.inspect(model, bounds=bounds))

    assert seen(np.zeros(20)) == seen(np.eye(1, 20)[0])
