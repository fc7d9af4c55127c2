"""What refusals name works when it is written: each model of the refused gallery, until nothing is refused any more."""

import re
from pathlib import Path

import gallery
import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import flat, mostly_slow
from gallery import COUNTS, REALS
from remedies import followed
from test_gallery_refused import CASES, N, build

import pymc_dp as pmdp
from pymc_dp.models.alternatives import AT_RANDOM

pytestmark = pytest.mark.filterwarnings("ignore")
BY_NAME = {case.id: case.values for case in CASES}
DRAWN = [
    "michaelis_menten", "neural_net", "censored_survival", "truncated_regression",
    "robust_regression", "cauchy_errors", "skew_normal", "quantile_regression", "exponential_decay", "power_law",
    "change_point_unknown", "variance_by_covariate", "meta_analysis",
]  # fmt: skip
"""Models of which a release is refused, and draws from the posterior are named instead."""
RELEASED = [
    "latent_rate_per_record", "overdispersion_per_record", "a_parent_of_real_numbers", "logistic_on_a_real_covariate",
    "poisson_on_a_real_covariate", "private_exposure",
    "standardised_by_their_own_mean", "bounds_of_features_are_missing", "bounds_of_the_outcome_are_missing",
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


# ---------- every record told at random
TOLD = [
    "latent_rate_per_record", "overdispersion_per_record", "eight_schools_as_totals", "measurement_error", "an_unobserved_parent",
    "stochastic_volatility",
]  # fmt: skip
"""Models of which it is named and that observe all that is private: zeros in place of the records are all there is to change."""


def of_zeros(make):
    """The model as ``randomise`` takes it, and the records beside it."""
    records = gallery.records(N)
    with pm.Model() as theirs:
        make(records)
    with pm.Model() as model:
        make(gallery.Records({name: np.zeros_like(values) for name, values in records.items()}))
    return model, pd.DataFrame({rv.name: np.asarray(theirs.rvs_to_values[rv].eval()) for rv in theirs.observed_RVs})


def told(model, data):
    bounds = {rv.name: (0, 6) if rv.dtype.startswith("int") else pmdp.Bins(-4, 8, 4) for rv in model.observed_RVs}
    private = pmdp.published(model, pmdp.randomise(model, data=data, epsilon=4.0, bounds=bounds))
    return private.compile_logp(mode="FAST_COMPILE")(private.initial_point())


@pytest.mark.parametrize("name", mostly_slow(TOLD, 0, 3))
def test_telling_every_record_at_random_is_named_where_it_works(name):
    make, _, arguments = BY_NAME[name]
    assert "pymc_dp.randomise" in flat(pmdp.inspect(build(make), **arguments))
    assert np.isfinite(told(*of_zeros(make)))


def robust_on_what_is_observed(r):
    z = pm.Normal("z", pm.Normal("centre"), pm.HalfNormal("spread"), observed=r.z)
    pm.StudentT("x", nu=pm.Gamma("nu", 2, 0.1), mu=pm.Normal("a") + pm.Normal("b") * z, sigma=1, observed=r.x)


@pytest.mark.parametrize(
    ("name", "rewritten", "arguments"),
    mostly_slow(
        [
            ("robust_regression", robust_on_what_is_observed, {"bounds": {"x": pmdp.Bins(-4, 8)}}),
        ],
        0,
    ),
)
def test_private_covariates_with_a_distribution_of_their_own_are_told_too(name, rewritten, arguments):
    make, _, _ = BY_NAME[name]
    assert "distribution of its own, and randomise every record: pymc_dp.randomise" in flat(pmdp.inspect(build(make), **arguments))
    assert np.isfinite(told(*of_zeros(rewritten)))


NOT_TOLD = [
    "persons_by_items", "ranks_of_records", "simulator", "random_walk_observed", "one_multivariate_record", "dirichlet_multinomial",
    "logistic_on_a_real_covariate",
]  # fmt: skip
"""Vectors, records that are mixed, no distribution function, and something better."""


@pytest.mark.parametrize("name", NOT_TOLD)
def test_it_is_not_named_where_it_does_not_work_or_something_else_is_better(name):
    make, _, arguments = BY_NAME[name]
    assert "randomise" not in flat(pmdp.inspect(build(make), **arguments))


def test_it_is_not_named_where_the_number_of_records_is_private():
    make, _, arguments = BY_NAME["latent_rate_per_record"]
    shown = flat(pmdp.inspect(build(make), neighbours="add_remove", **arguments))
    assert "free parameter per record" in shown
    assert "randomise" not in shown


def test_its_price_is_that_of_its_page():
    """Every number that refusals say stands in the page that they name."""
    page = (Path(pmdp.__file__).parents[1] / "docs" / "any_likelihood.md").read_text()
    numbers = re.findall(r"[0-9.]*[0-9]", AT_RANDOM)
    assert len(numbers) == 6
    following = page.split("## What it costs")[1].split("Sums and counts in bins")[0]
    assert all(re.search(rf"(?<![0-9.]){re.escape(number)}(?![0-9.]*[0-9])", following) for number in numbers)


def test_draws_are_not_named_where_a_prior_keeps_an_order():
    """Its unknowns cannot be cut off, so there would be no draws."""
    r = gallery.records(N)
    with pm.Model() as model:
        cutpoints = pm.Normal("cut", [-1, 0, 1], 1, transform=pm.distributions.transforms.ordered, initval=[-1.0, 0.0, 1.0])
        pm.OrderedLogistic("rating", eta=pm.Normal("b") * pm.Data("z", r.z), cutpoints=cutpoints, observed=r.c, compute_p=False)
    shown = flat(pmdp.inspect(model, bounds={"z": (-1, 1)}))
    assert "pymc_dp.Bins" in shown
    assert "PosteriorSample" not in shown


def test_a_refusal_says_nothing_twice():
    """Neither what stands in the way of draws, where it is the same, nor what to declare."""
    with pm.Model() as model:
        pm.Poisson("k", pm.math.exp(pm.Normal("a", shape=2) @ np.ones(2) * np.ones((1, 1)).sum()), observed=np.arange(N))
    (row,) = pmdp.inspect(model, bounds={"k": COUNTS}).rows
    assert row.reason.count("write public=") == 1
    assert row.reason.count("private array") == 1


def regions_of_states():
    r = gallery.records(N)
    with pm.Model() as model:
        state = pm.Normal("region", shape=2)[np.array([0, 1, 1])] + pm.Normal("state", shape=3)
        pm.Bernoulli("y", logit_p=state[r.g], observed=r.y)
    return model


def test_an_array_without_a_name_is_described_by_its_shape():
    """Where the number of records is public; and what it says to declare is enough."""
    (row,) = pmdp.inspect(regions_of_states()).rows
    assert "y:0 being an array of shape (3,) without a name" in row.reason
    result, written = followed(regions_of_states, {})
    assert isinstance(result, pmdp.Release), result
    assert written == {"public": ["y:0"]}
    (row,) = pmdp.inspect(regions_of_states(), neighbours="add_remove").rows
    assert "private array y:0" in row.reason


def knots():
    r = gallery.records(N)
    with pm.Model() as model:
        z = pm.Data("z", r.z)
        broken = pm.math.maximum(z[:, None] - np.array([-0.5, 0.5]), 0) / np.array([1.5, 0.5])
        pm.Normal("x", pm.Normal("a") + pm.math.dot(broken, pm.Normal("b", shape=2) * np.array([1.0, 2.0])), 1, observed=r.x)
    return model


def row_of_knots():
    r = gallery.records(N)
    with pm.Model() as model:
        bumps = pm.math.exp(-(((pm.Data("z", r.z)[:, None] - np.array([[-0.5, 0.5]])) / np.array([0.4, 0.5])) ** 2))
        pm.Normal("x", pm.math.dot(bumps, pm.Normal("b", shape=2)), 1, observed=r.x)
    return model


def test_a_constant_in_one_row_is_declared_as_well():
    """It has an axis where records may lie, along which there is a single row."""
    bounds = {"x": (-4, 4), "z": (-1, 1)}
    (row,) = pmdp.inspect(row_of_knots(), bounds=bounds).rows
    assert "write public=['x:0', 'x:1']" in row.reason
    result, written = followed(row_of_knots, {"bounds": bounds}, most=2)
    assert isinstance(result, pmdp.Release), result
    assert written["public"] == ["x:0", "x:1"]


def test_constants_without_a_name_are_declared_in_one_step():
    """Where the number of records is public, which tells constants from records; one after the other where it is not."""
    bounds = {"x": (-4, 4), "z": (-1, 1)}
    (row,) = pmdp.inspect(knots(), bounds=bounds).rows
    assert "write public=['x:0', 'x:1', 'x:2']" in row.reason
    result, written = followed(knots, {"bounds": bounds}, most=2)
    assert isinstance(result, pmdp.Release), result
    assert written["public"] == ["x:0", "x:1", "x:2"]
    (row,) = pmdp.inspect(knots(), bounds=bounds, neighbours="add_remove").rows
    assert row.reason.endswith("pt.stack([0.25, 1.0])[index].")
    assert "shape of" not in row.reason
    assert "public=" not in row.reason


@pytest.mark.parametrize("declared", [[], ["x:0"]], ids=["private", "public"])
@pytest.mark.parametrize("more", [{"neighbours": "add_remove"}, {"unit": pmdp.Person("who", at_most=3)}], ids=["add_remove", "person"])
def test_a_table_is_written_in_the_graph_where_no_array_can_be_public(more, declared):
    """What is said leads somewhere, whether or not the table was declared."""
    r = gallery.records(N)

    def model(table):
        with pm.Model() as built:
            pm.Data("who", np.arange(N) // 2)
            pm.Normal("x", pm.Normal("a") + pm.Normal("b") * table[pm.Data("g", r.g)], pm.HalfNormal("s"), observed=r.x)
        return built

    with pytest.raises(pmdp.Refusal, match=r"may stand in the graph, in place of an array: pt.stack\(\[0.25, 1.0\]\)\[index\]"):
        pmdp.release(model(pt.as_tensor(np.array([0.25, -0.5, 1.0]))), epsilon=1.0, bounds={"x": REALS}, public=declared, **more)
    assert isinstance(pmdp.release(model(pt.stack([0.25, -0.5, 1.0])), epsilon=1.0, bounds={"x": REALS}, **more), pmdp.Release)


def test_counts_with_bounds_of_their_own_and_a_private_number_are_variables_of_their_own():
    y = np.column_stack([np.arange(N) % 2, np.arange(N) % 10])
    with pm.Model() as together:
        pm.Poisson("Y", pm.HalfNormal("m", 5, shape=2), observed=y)
    bounds = {"Y": [(0, 1), (0, 10)]}
    with pytest.raises(pmdp.Refusal, match=r"an observed variable for every column, as with observed=Y\[:, 0\], and bounds of each"):
        pmdp.release(together, epsilon=1.0, bounds=bounds, neighbours="add_remove")
    with pm.Model() as apart:
        m = pm.HalfNormal("m", 5, shape=2)
        for k in range(2):
            pm.Poisson(f"Y_{k}", m[k], observed=y[:, k])
    bounds = {"Y_0": (0, 1), "Y_1": (0, 10)}
    assert len(pmdp.release(apart, epsilon=1.0, bounds=bounds, neighbours="add_remove").statistics) == 2


@pytest.mark.parametrize("bounds", [None, {"x": REALS}], ids=["without bounds", "with bounds"])
def test_a_likelihood_in_a_potential_is_named_whatever_bounds_are_given(bounds):
    with pm.Model() as model:
        pm.Potential("lik", pm.logp(pm.Normal.dist(pm.Normal("mu"), 1), pm.Data("x", np.linspace(0, 1, N))).sum())
    words = r'^The Potential lik touches .* say in which bins that is counted: bounds=\{"t": pymc_dp\.Bins\(lower, upper\)\}'
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.release(model, epsilon=1.0, bounds=bounds)
    assert "The Potential lik touches" in flat(pmdp.inspect(model, bounds=bounds))
    assert pmdp.release(model, epsilon=1.0, bounds={"x": pmdp.Bins(0, 1, 8)})["x"].noisy.size == 8  # as it says


def looked_up_in_the_graph(r, lookup):
    a, state = pm.Normal("a", shape=2), pm.Data("state", r.g)
    pm.Bernoulli("y", logit_p=lookup(a, np.array([0, 1, 1]), state), observed=r.y)


def levels_of_unknown_number(r, shape):
    kept = pm.Data("kept", np.array([1, 1, 0]))
    share = pm.Beta("b", 1, 1, shape=3)[pt.nonzero(kept)[0]]
    pm.Categorical("y", p=shape(share / share.sum()), observed=r.y)


SAID = [
    (
        lambda r: looked_up_in_the_graph(r, lambda a, table, state: a[pt.as_tensor(table)[state]]),
        lambda r: looked_up_in_the_graph(r, lambda a, table, state: a[table][state]),
        "write a[table][index] in place of a[table[index]]", {"public": ["y:0"]},
    ),
    (
        lambda r: levels_of_unknown_number(r, lambda p: p),
        lambda r: levels_of_unknown_number(r, lambda p: pt.specify_shape(p, (2,))),
        "pt.specify_shape(p, (8,))", {"public": ["kept"]},
    ),
    (
        lambda r: pm.Normal("x", pm.Normal("b") * pt.cumsum(pm.Data("spend", r.z)), 1, observed=r.x),
        lambda r: pm.Normal("x", pm.Normal("b") * pt.cumsum(pm.Data("spend", r.z)), 1, observed=r.x),
        "write public=['spend']", {"bounds": {"x": REALS}, "then": {"public": ["spend"]}},
    ),
    (
        lambda r: pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=3)[r.g][r.h == 1], observed=r.y[r.h == 1]),
        lambda r: pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=3)[r.g[r.h == 1]], observed=r.y[r.h == 1]),
        "a[group[kept]] for a[group][kept]", {},
    ),
]  # fmt: skip
"""A model, the same as its refusal says to write it, the words, and what is declared; "then" with the second alone."""


@pytest.mark.parametrize(("refused", "rewritten", "words", "arguments"), SAID, ids=["lookup", "levels", "public", "mask"])
def test_what_a_refusal_says_to_write_is_released(refused, rewritten, words, arguments):
    arguments = dict(arguments)
    then = arguments.pop("then", {})
    (row,) = pmdp.inspect(build(refused), **arguments).rows
    assert words in row.reason
    assert pmdp.release(build(rewritten), epsilon=1.0, **arguments | then).statistics


def test_a_custom_distribution_of_counts_is_told_what_it_lacks():
    """Without bins as well: nobody is sent to bins that are refused next."""
    with pm.Model() as model:
        counts = np.arange(N) % 4
        pm.CustomDist("k", pm.Gamma("mu", 2, 1), logp=lambda k, mu: k * pt.log(mu) - mu - pt.gammaln(k + 1), observed=counts, dtype="int64")
    (row,) = pmdp.inspect(model, bounds={"k": COUNTS}).rows
    assert "Give it logcdf=, too" in row.reason


def test_bounds_where_there_is_nothing_to_bound():
    with pm.Model() as model:
        pm.Potential("p", pm.Normal("a") ** 2)
    with pytest.raises(pmdp.Refusal, match="There are none here: leave bounds out"):
        pmdp.inspect(model, bounds={"y": (0, 1)})


@pytest.mark.parametrize("make", [lambda: pm.Multinomial("y", 10, pm.Dirichlet("p", np.ones(3)), observed=[5, 3, 2])], ids=["counts"])
@pytest.mark.parametrize("arguments", [{}, {"unit": "individual"}], ids=["rows", "totals"])
def test_a_single_vector_is_no_record(make, arguments):
    with pm.Model() as model:
        make()
    (row,) = pmdp.inspect(model, **arguments).rows
    assert "Observe an array with one row per record" in row.reason


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
