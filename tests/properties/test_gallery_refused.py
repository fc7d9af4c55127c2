"""Models as PyMC users write them that cannot be released: each is refused in words that help, before noise is asked for."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from checks import EXACT, flat, log_density, refused, spread_of_differences
from gallery import COUNTS, REALS, records
from scipy.sparse import csr_matrix

import pymc_dp as pmdp
from pymc_dp.privacy import mechanisms

pytestmark = pytest.mark.filterwarnings("ignore")
N = 40
CASES = []


def case(words, **arguments):
    """``words`` is a pattern of the refusal; the rest are arguments of ``release``."""

    def add(make):
        CASES.append(pytest.param(make, words, arguments, id=make.__name__))
        return make

    return add


# ---------- likelihoods without sufficient statistics
@case("other columns than its parameters", bounds={"y": REALS, "X": (-1, 1)})
def one_column_beside_two(r):
    """Neither array says in the graph how many columns it has, and PyMC finds out when it evaluates the model."""
    pm.Normal("y", pm.Normal("b") * pm.Data("X", r.X[:, :2]), 1, observed=pm.Data("outcome", r.x[:, None]))


@case("Censored, which has no sufficient statistics", bounds={"x": REALS})
def censored_survival(r):
    pm.Censored("x", pm.Weibull.dist(pm.HalfNormal("alpha"), pm.HalfNormal("beta")), lower=None, upper=5.0, observed=np.abs(r.x))


@case("TruncatedNormal, of which a release is not offered", bounds={"x": REALS})
def truncated_regression(r):
    pm.TruncatedNormal("x", pm.Normal("a") + pm.Normal("b") * r.z, 1, lower=-4, upper=8, observed=r.x)


@case("Mixture, which has no sufficient statistics", bounds={"x": REALS})
def gaussian_mixture(r):
    mu = pm.Normal("mu", shape=3, transform=pm.distributions.transforms.ordered, initval=[-1.0, 0.0, 1.0])
    pm.NormalMixture("x", w=pm.Dirichlet("w", np.ones(3)), mu=mu, sigma=pm.HalfNormal("s", shape=3), observed=r.x)


@case("Mixture, which has no sufficient statistics", bounds={"x": REALS})
def stick_breaking_mixture(r):
    beta = pm.Beta("beta", 1, pm.Gamma("alpha", 1, 1), shape=5)
    w = beta * pt.concatenate([[1], pt.extra_ops.cumprod(1 - beta)[:-1]])
    components = pm.Normal.dist(pm.Normal("mu", shape=5), 1)
    pm.Mixture("x", w / w.sum(), components, observed=r.x)


@case("StudentT, of which a release is not offered", bounds={"x": REALS})
def robust_regression(r):
    pm.StudentT("x", nu=pm.Gamma("nu", 2, 0.1), mu=pm.Normal("a") + pm.Normal("b") * r.z, sigma=1, observed=r.x)


@case("Cauchy, of which a release is not offered", bounds={"x": REALS})
def cauchy_errors(r):
    pm.Cauchy("x", pm.Normal("mu"), 1, observed=r.x)


@case("SkewNormal, of which a release is not offered", bounds={"x": REALS})
def skew_normal(r):
    pm.SkewNormal("x", mu=pm.Normal("mu"), sigma=1, alpha=pm.Normal("alpha"), observed=r.x)


@case("AsymmetricLaplace", bounds={"x": REALS})
def quantile_regression(r):
    pm.AsymmetricLaplace("x", b=1, q=0.9, mu=pm.Normal("mu"), observed=r.x)


@case("DirichletMultinomial")
def dirichlet_multinomial(r):
    counts = np.column_stack([r.k, 6 - r.k])
    pm.DirichletMultinomial("counts", n=6, a=pm.Gamma("a", 2, 1, shape=2), observed=counts)


@case("Wishart, which has no sufficient")
def wishart_matrices(r):
    pm.Wishart("S", nu=5, V=np.eye(2), observed=np.stack([np.eye(2)] * N))


@case("operation of Python code", bounds={"x": REALS})
def simulator(r):
    def normal(rng, mu, size):
        return rng.normal(mu, 1, size)

    pm.Simulator("x", normal, params=(pm.Normal("mu"),), epsilon=1, sum_stat="sort", observed=r.x)


@case("CustomDist", bounds={"x": REALS})
def custom_by_random_graph(r):
    pm.CustomDist("x", pm.Normal("mu"), dist=lambda mu, size: pm.Normal.dist(mu, 1, size=size) ** 3, observed=r.x)


@case("Potential censored", bounds={"x": REALS})
def censoring_by_potential(r):
    mu = pm.Normal("mu")
    pm.Normal("x", mu, 1, observed=r.x[:20])
    pm.Potential("censored", pm.logcdf(pm.Normal.dist(mu, 1), r.x[20:]).sum())


@case("Potential weighted touches an array")
def weights_by_potential(r):
    p = pm.Beta("p", 1, 1)
    pm.Potential("weighted", (pm.Data("weights", r.z + 2) * pm.logp(pm.Bernoulli.dist(p), r.y)).sum())
    pm.Bernoulli("y", p, observed=r.y)


# ---------- records that depend on each other
@case("AR, which has no sufficient", bounds={"x": REALS})
def autoregression(r):
    pm.AR("x", rho=pm.Normal("rho", shape=2), sigma=1, constant=True, observed=r.x)


@case("selects some of the records|observed and so private", bounds={"x": REALS})
def autoregression_by_lags(r):
    """Lagged copies of the records: a view of the observed array's own memory."""
    pm.Normal("x", pm.Normal("a") + pm.Normal("b") * pt.as_tensor(r.x)[:-1], 1, observed=r.x[1:])


@case("RandomWalk, which has no", bounds={"x": REALS})
def random_walk_observed(r):
    pm.GaussianRandomWalk("x", sigma=pm.HalfNormal("s"), init_dist=pm.Normal.dist(), observed=r.x)


@case("one free parameter per record", bounds={"x": REALS})
def stochastic_volatility(r):
    walk = pm.GaussianRandomWalk("h", sigma=0.1, init_dist=pm.Normal.dist(), shape=N)
    pm.Normal("x", 0, pm.math.exp(walk), observed=r.x)


@case("GARCH11, which has no", bounds={"x": REALS})
def garch(r):
    pm.GARCH11("x", omega=pm.HalfNormal("w"), alpha_1=0.2, beta_1=0.3, initial_vol=1.0, observed=r.x)


@case("single value of MvNormal", bounds={"x": REALS})
def gp_marginal(r):
    gp = pm.gp.Marginal(cov_func=pm.gp.cov.ExpQuad(1, ls=pm.Gamma("ls", 2, 1)))
    gp.marginal_likelihood("x", X=r.z[:, None], y=r.x, sigma=pm.HalfNormal("s"))


@case("Blockwise, which may mix")
def gp_latent_over_records(r):
    f = pm.gp.Latent(cov_func=pm.gp.cov.ExpQuad(1, ls=pm.Gamma("ls", 2, 1))).prior("f", X=r.z[:, None])
    pm.Bernoulli("y", logit_p=f, observed=r.y)


@case("Observe an array with one row per record", bounds={"x": REALS})
def one_multivariate_record(r):
    pm.MvNormal("x", mu=pm.Normal("m") * np.ones(N), cov=np.eye(N), observed=r.x)


@case("some of the records|Scan", bounds={"x": REALS})
def local_level_by_scan(r):
    level = pytensor.scan(
        lambda step, last: last * 0.9 + step, sequences=[pm.Normal("eps", shape=N)], outputs_info=pt.zeros(()), return_updates=False
    )
    pm.Normal("x", level, 1, observed=r.x)


@case("x_data, which is observed", bounds={"x": REALS})
def errors_that_follow_errors(r):
    """A moving average written with the observed values themselves."""
    x = pm.Data("x_data", r.x)
    pm.Normal("x", pm.Normal("mu") + 0.5 * (x - x.mean()), 1, observed=x)


@case("one free parameter", bounds={"k": COUNTS})
def latent_rate_per_record(r):
    pm.Poisson("k", pm.Gamma("rate", 2, 1, shape=N), observed=r.k)


@case("eps has the dim of the records", bounds={"k": COUNTS})
def overdispersion_per_record(r):
    model = pm.modelcontext(None)
    model.add_coord("obs", np.arange(N))
    eps = pm.Normal("eps", 0, pm.HalfNormal("s"), dims="obs")
    pm.Poisson("k", pm.math.exp(pm.Normal("a") + eps), observed=r.k, dims="obs")


@case("one free parameter", bounds={"x": REALS})
def eight_schools_as_totals(r):
    theta = pm.Deterministic("theta", pm.Normal("mu", 0, 5) + pm.HalfCauchy("tau", 5) * pm.Normal("eta", 0, 1, shape=N))
    pm.Normal("x", theta, 2.0, observed=r.x)


@case("one free parameter per record", bounds={"x": REALS, "z": (-1, 1)})
def measurement_error(r):
    true_z = pm.Normal("true_z", 0, 1, shape=N)
    pm.Normal("z", true_z, 0.5, observed=r.z)
    pm.Normal("x", pm.Normal("b") * true_z, 1, observed=r.x)


@case("one free parameter per record", bounds={"x": REALS})
def persons_by_items(r):
    """Items in columns, one ability per person."""
    ability = pm.Normal("ability", shape=(N, 1))
    pm.Bernoulli("Y", logit_p=ability - pm.Normal("b", shape=2), observed=r.Y)


@case("k_data, which is observed", bounds={"k": COUNTS})
def index_computed_from_what_is_observed(r):
    k = pm.Data("k_data", r.k)
    pm.Poisson("k", pm.Gamma("rate", 2, 1, shape=2)[(k > 3).astype("int64")], observed=k)


@case("x and y depend on each other in a circle", bounds={"x": REALS, "y": REALS})
def a_circle(r):
    x, y = pm.Data("x_data", r.x), pm.Data("y_data", r.w)
    pm.Normal("x", pm.Normal("a") * y, 1, observed=x)
    pm.Normal("y", pm.Normal("b") * x, 1, observed=y)


@case("one free parameter per record")
def an_unobserved_parent(r):
    z = pm.Bernoulli("z", 0.5, shape=N)
    pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=2)[z], observed=r.y)


@case("parent is a real number|holds real numbers|real number", bounds={"m": (-1, 1)})
def a_parent_of_real_numbers(r):
    m = pm.Normal("m", pm.Normal("a"), 1, observed=r.w)
    pm.Bernoulli("y", logit_p=pm.Normal("b") * m, observed=r.y)


@case("one row per record|different numbers", bounds={"x": REALS})
def a_parent_of_other_records(r):
    k = pm.Bernoulli("k", pm.Beta("p", 1, 1), observed=r.y[:1])
    pm.Normal("x", pm.Normal("b", shape=2)[k], 1, observed=r.x)


# ---------- private covariates that are real numbers
@case("private covariate z.*real number", bounds={"z": (-1, 1)})
def logistic_on_a_real_covariate(r):
    pm.Bernoulli("y", logit_p=pm.Normal("a") + pm.Normal("b") * pm.Data("z", r.z), observed=r.y)


@case("private covariate z.*real number", bounds={"z": (-1, 1), "k": COUNTS})
def poisson_on_a_real_covariate(r):
    pm.Poisson("k", pm.math.exp(pm.Normal("a") + pm.Normal("b") * pm.Data("z", r.z)), observed=r.k)


@case("private covariate exposure.*real number", bounds={"exposure": (0, 2), "k": COUNTS})
def private_exposure(r):
    pm.Poisson("k", pm.Gamma("rate", 2, 1) * pm.Data("exposure", np.abs(r.z)), observed=r.k)


@case("Tanh, so it is not linear", bounds={"x": REALS, "X": (-1, 1)})
def neural_net(r):
    hidden = pm.math.tanh(pt.dot(pm.Data("X", r.X), pm.Normal("w1", shape=(3, 4))))
    pm.Normal("x", pt.dot(hidden, pm.Normal("w2", shape=4)), 1, observed=r.x)


@case("Exp, so it is not linear", bounds={"x": REALS, "z": (-1, 1)})
def exponential_decay(r):
    pm.Normal("x", pm.Normal("a") * pm.math.exp(-pm.Data("z", r.z) * pm.HalfNormal("b")), 1, observed=r.x)


@case("divides by what rests on covariates and unknowns", bounds={"x": REALS, "z": (0, 1)})
def michaelis_menten(r):
    z = pm.Data("z", np.abs(r.z))
    pm.Normal("x", pm.HalfNormal("vmax") * z / (pm.HalfNormal("km") + z), 1, observed=r.x)


@case("Pow, so it is not linear", bounds={"x": REALS, "z": (0, 1)})
def power_law(r):
    pm.Normal("x", pm.Data("z", np.abs(r.z)) ** pm.HalfNormal("b"), 1, observed=r.x)


@case("GT, so it is not linear", bounds={"x": REALS, "z": (-1, 1)})
def change_point_unknown(r):
    z = pm.Data("z", r.z)
    pm.Normal("x", pm.math.switch(z > pm.Normal("tau"), pm.Normal("late"), pm.Normal("early")), 1, observed=r.x)


@case("private array X in a way that mixes records", bounds={"x": REALS, "X": (-1, 1)})
def standardised_by_their_own_mean(r):
    X = pm.Data("X", r.X)
    pm.Normal("x", pt.dot((X - X.mean(axis=0)) / X.std(axis=0), pm.Normal("b", shape=3)), 1, observed=r.x)


@case("ArgSortOp, which may mix", bounds={"x": REALS, "z": (-1, 1)})
def ranks_of_records(r):
    pm.Normal("x", pm.Normal("b") * pt.argsort(pm.Data("z", r.z)), 1, observed=r.x)


@case("CumOp, which may mix", bounds={"x": REALS, "z": (-1, 1)})
def adstock(r):
    pm.Normal("x", pm.Normal("b") * pt.cumsum(pm.Data("spend", r.z)), 1, observed=r.x)


@case("standard deviation depends on a covariate", bounds={"x": REALS, "z": (-1, 1)})
def variance_by_covariate(r):
    z = pm.Data("z", r.z)
    pm.Normal("x", pm.Normal("a") + pm.Normal("b") * z, pm.math.exp(pm.Normal("c") + pm.Normal("d") * z), observed=r.x)


@case("standard deviation depends on a covariate", bounds={"x": REALS, "se": (0.5, 2)})
def meta_analysis(r):
    """Private standard errors, one per study."""
    pm.Normal("x", pm.Normal("mu"), pm.Data("se", 1 + r.z / 4), observed=r.x)


@case("needs bounds", bounds={"x": REALS})
def bounds_of_features_are_missing(r):
    pm.Normal("x", pm.Normal("a") + pt.dot(pm.Data("X", r.X), pm.Normal("b", shape=3)), 1, observed=r.x)


@case("needs bounds", bounds={"age": (0, 4)})
def bounds_of_the_outcome_are_missing(r):
    pm.Poisson("k", pm.math.exp(pm.Normal("a") + pm.Normal("b") * pm.Data("age", r.t)), observed=r.k)


@case("levels|cells", bounds={"code": (0, 10**6)})
def too_many_levels(r):
    pm.Bernoulli("y", logit_p=pm.Normal("a") + pm.Normal("b") * pm.Data("code", r.t), observed=r.y)


@case("multiplies private and public", bounds={"x": REALS, "z": (-1, 1)}, public=["w"])
def interaction_of_private_and_public(r):
    z, w = pm.Data("z", r.z), pm.Data("w", r.w)
    pm.Normal("x", pm.Normal("a") + pm.Normal("b") * z * w, pm.HalfNormal("s"), observed=r.x)


@case("divided by what may be 0", bounds={"x": REALS, "z": (-1, 1)})
def ratio_of_covariates(r):
    pm.Normal("x", pm.Normal("a") + pm.Normal("b") / (pm.Data("z", r.z) + 0.03125), 1, observed=r.x)


@case("Psi, whose values have no known bounds", bounds={"x": REALS, "z": (-1, 1)})
def an_unusual_function_of_a_covariate(r):
    pm.Normal("x", pm.Normal("a") + pm.Normal("b") * pt.digamma(pm.Data("z", r.z) + 2), 1, observed=r.x)


# ---------- other places
@case("X reaches a prior")
def scale_of_a_prior_from_the_covariate(r):
    X = pm.Data("X", r.X)
    pm.Bernoulli("y", logit_p=pt.dot(X, pm.Normal("b", 0, 1 / X.std(axis=0), shape=3)), observed=r.y)


@case("Minibatch or total_size", bounds={"x": REALS})
def minibatches(r):
    x, z = pm.Minibatch(r.x, r.z, batch_size=8)
    pm.Normal("x", pm.Normal("b") * z, 1, observed=x, total_size=N)


@case("does not have one row per record", bounds={"x": REALS, "h": (0, 1)})
def covariate_of_another_length(r):
    pm.Normal("x", pm.Normal("a") + pm.Normal("b") * pm.Data("h", r.h[:20]), 1, observed=r.x)


@case("by a mask")
def groups_by_masks(r):
    p = pm.Beta("p", 1, 1, shape=N)
    pm.Bernoulli("y", p[r.h.astype(bool)], observed=r.y[: int(r.h.sum())])


@case("in the graph, sparse, .* Compute them before the model, and observe a plain array", bounds={"x": REALS})
def sparse_values(r):
    pm.Normal("x", pm.Normal("m"), 1, observed=csr_matrix(r.X))


@case("X is public.*reveals how many", neighbours="add_remove", public=["X"], bounds={"x": REALS})
def public_design_where_records_come_and_go(r):
    pm.Normal("x", pt.dot(pm.Data("X", r.X), pm.Normal("b", shape=3)), 1, observed=r.x)


@case("y:0 is public.*reveals how many", neighbours="add_remove", public=["group"])
def public_groups_where_records_come_and_go(r):
    pm.modelcontext(None).add_coord("group", list("abc"))
    pm.Bernoulli("y", pm.Beta("p", 1, 1, dims="group")[r.g], observed=r.y)


@case("trials are public", neighbours="add_remove", unit="individual", public=["n"])
def totals_where_individuals_come_and_go(r):
    pm.Binomial("k", n=pm.Data("n", r.k + 5), p=pm.Beta("p", 1, 1), observed=r.k)


@case("Individual\\(events=", unit="individual")
def events_without_a_limit(r):
    pm.Poisson("k", pm.Gamma("rate", 2, 1), observed=r.k)


@case("not totals of individuals", unit="individual", bounds={"x": REALS})
def normal_totals(r):
    pm.Normal("x", pm.Normal("mu"), 1, observed=r.x)


@case("limited by themselves", bounds={"y": (0, 1)})
def answers_given_bounds(r):
    pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=r.y)


@case("answer, which is observed")
def a_copy_of_the_answer_by_name(r):
    y = pm.Data("answer", r.y)
    pm.Bernoulli("y", logit_p=pm.Normal("a") + pm.Normal("b") * y, observed=y)


@case("its parameter n depends on an unknown", bounds={"k": COUNTS})
def unknown_number_of_trials(r):
    pm.Binomial("k", n=pm.Poisson("n", 10) + 6, p=pm.Beta("p", 1, 1), observed=r.k)


@case("together from several arrays", bounds={"x": REALS})
def two_halves_put_together(r):
    mu = pt.concatenate([pt.repeat(pm.Normal("a"), 20), pt.repeat(pm.Normal("b"), 20)])
    pm.Normal("x", mu, 1, observed=r.x)


@case("Reshape, which may mix", bounds={"x": REALS})
def reshaped_records(r):
    mu = (pm.Normal("a", shape=2)[:, None] + pt.as_tensor(r.z).reshape((2, 20))).reshape((N,))
    pm.Normal("x", mu, 1, observed=r.x)


def build(make, seed=0):
    r = records(N, seed)
    with pm.Model() as model:
        make(r)
    return model


@pytest.mark.parametrize(("make", "words", "arguments"), CASES)
def test_refused_before_noise_is_asked_for(make, words, arguments, monkeypatch):
    """The words name the cause; ``inspect`` says so without raising; other records of equal shapes change nothing."""
    for seam in ("_opendp_laplace", "_opendp_gaussian"):
        monkeypatch.setattr(mechanisms, seam, lambda *_: pytest.fail("noise was asked for"))
    model = build(make)
    with pytest.raises(pmdp.Refusal, match=words) as caught:
        pmdp.release(model, epsilon=1.0, **arguments)
    assert refused(pmdp.release, build(make, seed=7), epsilon=1.0, **arguments) == str(caught.value)


@pytest.mark.parametrize(("make", "words", "arguments"), CASES)
def test_inspect_describes_it(make, words, arguments):
    """A model that cannot be released is described; arguments that are malformed are refused by ``inspect`` as well."""
    if make is answers_given_bounds:
        return
    shown = flat(pmdp.inspect(build(make), **arguments))
    assert "cannot be released" in shown or "model: " in shown or "needed: " in shown


# ---------- accepted or refused, never something else
def test_a_private_index_may_count_from_the_end(exact_seam):
    r = records(97)
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=3)[pm.Data("g", r.g - 1)], observed=r.y)
    private = pmdp.rewrite(model, pmdp.release(model, epsilon=EXACT), noise_aware=False)
    assert spread_of_differences(log_density(model), model, private) < 1e-6


@pytest.mark.parametrize("bounds", [(1, 6), (-6, 3)], ids=repr)
def test_a_computed_index_must_stay_in_its_table(bounds):
    r = records(N)
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=3)[pm.Data("g", r.g + 1) - 1], observed=r.y)
    with pytest.raises(pmdp.Refusal):
        pmdp.release(model, epsilon=1.0, bounds={"g": bounds})


@pytest.mark.parametrize("value", [[0.5], [1]], ids=["covariate", "index"])
def test_a_private_array_of_one_entry_is_not_one_entry_per_record(value):
    r = records(N)
    with pm.Model() as model:
        rate = pm.Data("rate", value)
        mu = pm.Normal("b", shape=3)[rate] if rate.dtype.startswith("int") else pm.Normal("b") * rate
        pm.Normal("x", mu, 1, observed=r.x)
    with pytest.raises(pmdp.Refusal):
        pmdp.release(model, epsilon=1.0, bounds={"x": REALS} | ({"rate": (0, 1)} if value == [0.5] else {}))
