"""What refusals name works when it is written: each model of the refused gallery, until nothing is refused any more."""

import numpy as np
import pymc as pm
import pytest
from checks import mostly_slow
from gallery import COUNTS, REALS
from remedies import followed
from test_gallery_refused import CASES, N, build

import pymc_dp as pmdp

pytestmark = pytest.mark.filterwarnings("ignore")
BY_NAME = {case.id: case.values for case in CASES}
DRAWN = [
    "michaelis_menten", "neural_net", "censored_survival", "private_exposure", "truncated_regression",
    "robust_regression", "cauchy_errors", "skew_normal", "quantile_regression", "exponential_decay", "power_law",
    "change_point_unknown", "variance_by_covariate", "meta_analysis",
]  # fmt: skip
"""Models of which a release is refused, and draws from the posterior are named instead."""
RELEASED = [
    "latent_rate_per_record", "overdispersion_per_record", "a_parent_of_real_numbers", "logistic_on_a_real_covariate",
    "poisson_on_a_real_covariate", "standardised_by_their_own_mean", "bounds_of_features_are_missing", "bounds_of_the_outcome_are_missing",
    "too_many_levels", "scale_of_a_prior_from_the_covariate", "public_design_where_records_come_and_go",
    "public_groups_where_records_come_and_go", "totals_where_individuals_come_and_go", "events_without_a_limit", "normal_totals",
    "answers_given_bounds",
]  # fmt: skip
"""Models that are released once what the refusals name is written."""


@pytest.mark.parametrize("name", mostly_slow(DRAWN, 0, 2, 3))
def test_draws_that_are_named_are_made(name):
    """Bounds, intervals and the method, each as it was named; the result says where priors were cut off."""
    make, _, arguments = BY_NAME[name]
    result, written = followed(lambda: build(make), dict(arguments))
    assert not isinstance(result, Exception), result
    assert isinstance(written["mechanism"], pmdp.PosteriorSample)
    assert result.attrs["promise"] in ("certified", "if-converged")
    assert "given that every unknown lies in its interval" in result.attrs["prior"]


@pytest.mark.parametrize("name", RELEASED)
def test_releases_that_are_named_are_made(name):
    make, _, arguments = BY_NAME[name]
    result, written = followed(lambda: build(make), dict(arguments))
    assert isinstance(result, pmdp.Release), result
    assert written != arguments


# ---------- what is named in words, as somebody would write it
def mixture_without_an_order(r):
    mu = pm.Normal("mu", shape=3)
    pm.NormalMixture("x", w=pmdp.TrimmedDirichlet("w", np.ones(3), smallest=0.01), mu=mu, sigma=pm.HalfNormal("s", shape=3), observed=r.x)


def weights_as_an_observed_variable(r):
    pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=r.y)


def potential_as_censored(r):
    pm.Censored("x", pm.Normal.dist(pm.Normal("mu"), 1), lower=None, upper=5.0, observed=np.minimum(r.x, 5))


def circle_with_an_arrow_less(r):
    pm.Normal("x", pm.Normal("a") * pm.Data("w", r.w), 1, observed=r.x)


def computed_before_the_model(r):
    pm.Normal("x", pm.Normal("a") + pm.Normal("b") * pm.Data("digamma", r.z), 1, observed=r.x)


def rate_that_is_integrated_out(r):
    pm.NegativeBinomial("k", mu=pm.Gamma("mean", 2, 1), alpha=2, observed=r.k)


INTERVALS = pmdp.PosteriorSample(truncate="prior", points=21)
CHAINS = pmdp.PosteriorSample(truncate={"s": (0.5, 3)}, method="mcmc", tune=20, steps=5)
WRITTEN = [
    (mixture_without_an_order, {"bounds": {"x": REALS}, "mechanism": CHAINS}),
    (weights_as_an_observed_variable, {}),
    (potential_as_censored, {"bounds": {"x": (REALS[0], 5)}, "mechanism": INTERVALS}),
    (circle_with_an_arrow_less, {"bounds": {"x": REALS, "w": (-1, 1)}}),
    (computed_before_the_model, {"bounds": {"x": REALS, "digamma": (-1, 1)}}),
    (rate_that_is_integrated_out, {"bounds": {"k": COUNTS}, "mechanism": INTERVALS}),
]


@pytest.mark.parametrize(("make", "arguments"), mostly_slow(WRITTEN, 1, 2, 3, 4), ids=lambda each: getattr(each, "__name__", ""))
def test_what_is_named_in_words_works(make, arguments):
    model = build(make)
    if "mechanism" in arguments:
        assert pmdp.sample(model=model, epsilon=1.0, **arguments)["posterior"].sizes["draw"] == 1
    else:
        assert pmdp.release(model, epsilon=1.0, **arguments).statistics


def test_nothing_is_named_that_is_not_there():
    """The functions of what is observed cannot be declared public, so nobody is told to."""
    make, _, arguments = BY_NAME["simulator"]
    with pytest.raises(pmdp.Refusal) as caught:
        pmdp.release(build(make), epsilon=1.0, **arguments)
    assert "public=" not in str(caught.value)


def test_find_map_is_told_its_own_word():
    with pm.Model() as model:
        pm.StudentT("x", nu=4, mu=pm.Normal("mu"), sigma=1, observed=np.linspace(-1, 1, N))
    with pytest.raises(pmdp.Refusal, match=r'find_MAP\(\.\.\., truncate="prior"\)'):
        pmdp.find_MAP(model=model, epsilon=1.0, bounds={"x": (-3, 3)})
    assert abs(pmdp.find_MAP(model=model, epsilon=1.0, bounds={"x": (-3, 3)}, truncate="prior", points=51)["mu"]) < 3.1
