"""What cannot have been published so, what is not understood and what is malformed is refused in words, and settings are what they say."""

import copy
import pickle
import warnings

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dp as pmdp


def counts(observed, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pm.Model() as model:
            pm.Poisson("y", pm.Gamma("rate", 2, 1, shape=np.shape(observed)), observed=observed, **more)
    return model


def reals(observed):
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), 1.0, observed=observed)
    return model


GAPS = np.array([3.0, np.nan, 6.0])
REFUSED = {
    "no multiple": (counts([3, 4]), pmdp.RoundedToBase(3), "4 is no multiple of 3"),
    "negative": (counts([3, -3]), pmdp.RoundedToBase(3), "-3 is negative"),
    "not rounded": (counts([10, 15]), [pmdp.DiscreteLaplace(3), pmdp.Rounded(10)], "15 is no multiple of 10"),
    "beyond the ends": (counts([10, 15]), [pmdp.DiscreteLaplace(3), pmdp.Clipped(0, 12)], "15 lies beyond the ends"),
    "below the threshold": (
        counts([10, 15]),
        [pmdp.DiscreteLaplace(3), pmdp.Threshold(12, absent="listed")],
        "10 lies below the threshold",
    ),
    "too far below 0": (counts([3, -90]), pmdp.DiscreteGaussian(2), "holds -90, which is too far below 0"),
    "no such answer": (counts([0, 2]), pmdp.RandomisedResponse(0.7), "2 is none of the answers 0 to 1; with more answers write levels="),
    "missing without a reason": (counts(GAPS), pmdp.RoundedToBase(3), "or write 0 where"),
    "missing though unlisted": (counts(GAPS), [pmdp.RoundedToBase(3), pmdp.Threshold(3, absent="unlisted")], "nothing says why"),
    "scales of another shape": (counts([3, 6, 9]), pmdp.DiscreteLaplace([1.0, 2.0]), "array of shape"),
    "thresholds of another shape": (counts([3, 6, 9]), [pmdp.Threshold([1, 2], absent="listed")], "array of shape"),
    "noise twice": (counts([3, 6]), [pmdp.RoundedToBase(3), pmdp.DiscreteLaplace(2)], "not the first step"),
    "threshold first": (counts([3, 6]), [pmdp.Threshold(3, absent="listed"), pmdp.Rounded(3)], "must be the last step"),
    "real noise on whole numbers": (counts([3, 6]), pmdp.LaplaceNoise(2.0), "PyMC made whole numbers"),
    "whole noise on real numbers": (reals([3.0, 6.0]), pmdp.DiscreteGaussian(2.0), "is for counts"),
    "no law": (counts([3, 6]), 3, "A law is what was done"),
    "scales that may be of rows or columns": (counts([[3, 6], [9, 9]]), pmdp.DiscreteLaplace([1.0, 9.0]), "could be of either axis"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    model, law, words = REFUSED[case]
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.published(model, {"y": law})
    assert "y" in model.named_vars


def test_the_path_of_a_release_is_led_to_its_reader():
    with pytest.raises(pmdp.Refusal, match=r"Write Release.from_netcdf\(path\)"):
        pmdp.published(counts([3, 6]), {"y": "north.release"})


def test_laws_are_of_observed_variables_and_all_of_them():
    model = counts([3, 6])
    with pytest.raises(pmdp.Refusal, match="no observed variable"):
        pmdp.published(model, {"rate": pmdp.RoundedToBase(3)})
    with pytest.raises(pmdp.Refusal, match="Nothing is said of y"):
        pmdp.published(model, {})
    with pytest.raises(pmdp.Refusal, match="by name"):
        pmdp.published(model, pmdp.RoundedToBase(3))
    with pytest.raises(pmdp.Refusal, match="already knows"):
        pmdp.published(pmdp.published(model, {"y": pmdp.RoundedToBase(3)}), {"y": pmdp.RoundedToBase(3)})
    with pytest.raises(pmdp.Refusal, match="no model here"):
        pmdp.published(None, {"y": pmdp.RoundedToBase(3)})
    with pm.Model() as nothing:
        pm.Normal("x")
    with pytest.raises(pmdp.Refusal, match="observes nothing"):
        pmdp.published(nothing, {})


@pytest.mark.parametrize("added", ["observed", "potential", "free"])
def test_records_do_not_pass_for_published_numbers(added):
    """What is observed after ``published`` would be in the posterior without noise, under the publisher's promise."""
    public = pmdp.published(counts([3, 6]), {"y": pmdp.RoundedToBase(3)})
    with public:
        if added == "observed":
            pm.Bernoulli("ill", pm.Beta("p", 1, 1), observed=np.ones(50, dtype=int))
        elif added == "free":  # a density of any form, which rests on what others have a prior for
            pm.CustomDist("ill", pm.Beta("p", 1, 1), logp=lambda value, p: 50 * pm.math.log(p) - value**2)
        else:
            pm.Potential("ill", 50 * pm.math.log(pm.Beta("p", 1, 1)))
    with pytest.raises(pmdp.Refusal, match="ill was added to a model of published numbers"):
        pmdp.sample(5, tune=5, chains=1, model=public, progressbar=False)


def test_values_have_the_shape_of_the_rows():
    with pytest.raises(pmdp.Refusal, match="values of shape"):
        pmdp.published(counts([3, 6]), {"y": pmdp.LaplaceNoise(2.0)}, values={"y": [3.2]})
    with pytest.raises(pmdp.Refusal, match="no observed variable"):
        pmdp.published(counts([3, 6]), {"y": pmdp.LaplaceNoise(2.0)}, values={"x": [3.2, 4.4]})
    with pytest.raises(pmdp.Refusal, match="not finite"):
        pmdp.published(counts([3, 6]), {"y": pmdp.LaplaceNoise(2.0)}, values={"y": [3.2, np.inf]})


def test_multivariate_numbers_are_refused():
    with pm.Model() as model:
        pm.Multinomial("y", 9, pm.Dirichlet("p", np.ones(3)), observed=[3, 3, 3])
    with pytest.raises(pmdp.Refusal, match="multivariate"):
        pmdp.published(model, {"y": pmdp.RoundedToBase(3)})


def test_what_has_no_closed_form_is_refused_where_rows_are_not_in_the_table():
    with pm.Model() as model:
        pm.Gamma("y", 2.0, 0.5, observed=[5.0, 6.0])
    with pytest.raises(pmdp.Refusal, match="no closed form"):
        pmdp.published(model, {"y": [pmdp.GaussianNoise(1.0), pmdp.Threshold(4, absent="unlisted")]})


def test_many_wide_rows_are_refused_before_memory_is_full():
    with pm.Model() as model:
        pm.BetaBinomial("y", alpha=np.ones(20_000), beta=2.0, n=1000, observed=np.full(20_000, 500))
    with pytest.raises(pmdp.Refusal, match="terms in each of 20,000 rows"):
        pmdp.published(model, {"y": pmdp.DiscreteLaplace(30)})


def test_an_unknown_scale_needs_a_largest_one_and_a_model():
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 3.0)
        pm.Poisson("y", pm.Gamma("rate", 2, 1), observed=[8, 0])
    with pytest.raises(pmdp.Refusal, match="cannot exceed"):
        pmdp.published(model, {"y": pmdp.DiscreteLaplace(scale)})
    with pytest.raises(pmdp.Refusal, match="not of this model"):
        pmdp.published(model, {"y": pmdp.DiscreteLaplace(pm.HalfNormal.dist(3.0), largest=20)})
    with pytest.raises(pmdp.Refusal, match="was rounded, clipped or left out"):
        pmdp.published(model, {"y": [pmdp.DiscreteLaplace(scale, largest=20), pmdp.Clipped(lower=0)]})


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: pmdp.DiscreteLaplace(0),
        lambda: pmdp.DiscreteGaussian([1.0, np.nan]),
        lambda: pmdp.GaussianNoise("wide"),
        lambda: pmdp.GaussianNoise(2.0, largest=3.0),
        lambda: pmdp.Skellam(-1),
        lambda: pmdp.RoundedToBase(1),
        lambda: pmdp.RoundedToBase(2.5),
        lambda: pmdp.Transitions([[0.5, 0.4]]),
        lambda: pmdp.RandomisedResponse(1.2),
        lambda: pmdp.RandomisedResponse(0.5, levels=1),
        lambda: pmdp.NoiseTable([0, 0.5], [0.5, 0.5]),
        lambda: pmdp.NoiseTable([0, 1], [0.5, 0.6]),
        lambda: pmdp.Rounded(-1),
        lambda: pmdp.Rounded(10, ties="down"),
        lambda: pmdp.Clipped(3, 3),
        lambda: pmdp.Threshold(10),
        lambda: pmdp.Threshold(np.nan, absent="listed"),
        lambda: pmdp.GaussianNoise.from_margin(3.0, level=1.0),
        lambda: pmdp.LaplaceNoise(),
        lambda: pmdp.codebooks.pageviews("low"),
        lambda: pmdp.Codebook([]),
        lambda: pmdp.codebooks.pageviews("none", absent="listed"),
    ],
)
def test_malformed_steps_are_refused(wrong):
    with pytest.raises(pmdp.Refusal, match=r"Write|Say"):
        wrong()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pmdp.LaplaceNoise(epsilon=0.5), r"Write LaplaceNoise.from_epsilon\(epsilon\)"),
        (lambda: pmdp.DiscreteGaussian(variance=4.0), r"Write DiscreteGaussian.from_variance\(variance\)"),
        (lambda: pmdp.DiscreteLaplace(sensitivity=2, epsilon=1.0), r"Write DiscreteLaplace.from_epsilon\(epsilon\)"),
    ],
)
def test_noise_by_what_publishers_state_is_led_to_its_maker(call, words):
    with pytest.raises(pmdp.Refusal, match=words):
        call()


@pytest.mark.parametrize("noise", [pmdp.LaplaceNoise(2.0), pmdp.DiscreteGaussian(scale=[1.0, 3.0])])
def test_noise_may_be_copied_and_sent(noise):
    """As chains in several processes need it."""
    for again in (copy.copy(noise), copy.deepcopy(noise), pickle.loads(pickle.dumps(noise))):
        assert again.words == noise.words


def test_a_total_of_randomised_answers_is_led_to_its_binomial():
    with pm.Model() as model:
        pm.Binomial("yes", 100, pm.Beta("p", 1, 1), observed=61)
    with pytest.raises(pmdp.Refusal, match=r"pm.Binomial\('yes', n, truth \* p"):
        pmdp.published(model, {"yes": pmdp.RandomisedResponse(0.75)})


def test_scales_are_computed_from_what_publishers_say():
    assert pmdp.DiscreteLaplace.from_epsilon(0.1, sensitivity=3).scale == pytest.approx(30)
    assert stats.dlaplace(1 / float(pmdp.DiscreteLaplace.from_variance(7.0).scale)).var() == pytest.approx(7.0)
    assert stats.laplace(0, float(pmdp.LaplaceNoise.from_variance(7.0).scale)).var() == pytest.approx(7.0)
    scale = float(pmdp.LaplaceNoise.from_margin(12.0, level=0.9).scale)
    assert stats.laplace(0, scale).cdf(12) - stats.laplace(0, scale).cdf(-12) == pytest.approx(0.9)
    scales = pmdp.DiscreteLaplace.from_margin([3, 12], level=0.9).scale
    assert [stats.dlaplace(1 / s).cdf(m) - stats.dlaplace(1 / s).cdf(-m - 1) for s, m in zip(scales, [3, 12])] == pytest.approx([0.9, 0.9])
    scale = float(pmdp.GaussianNoise.from_margin(12.0, level=0.9).scale)
    assert stats.norm(0, scale).cdf(12) - stats.norm(0, scale).cdf(-12) == pytest.approx(0.9)
    assert float(pmdp.DiscreteGaussian.from_rho(0.5, sensitivity=2).scale) == pytest.approx(2)
    np.testing.assert_allclose(pmdp.DiscreteGaussian.from_variance([4.0, 9.0]).scale, [2, 3])
    told = pmdp.RandomisedResponse.from_epsilon(1.5, levels=4)
    assert told.table(told.truth)[0, 0] / told.table(told.truth)[0, 1] == pytest.approx(np.exp(1.5))


@pytest.mark.parametrize(
    "noise", [pmdp.DiscreteLaplace(4.0), pmdp.DiscreteGaussian(4.0), pmdp.DiscreteGaussian(0.3), pmdp.Skellam(0.02), pmdp.Skellam(90)]
)
def test_little_is_left_out_of_windows(noise):
    """Less than 2e-13 of the probability: that of a normal number beyond 7.8 standard deviations is 6e-15, of Laplace noise e^-30."""
    assert abs(noise.pmf(float(noise.setting)).sum() - 1) < 2e-13


def test_codebooks_say_what_was_done_and_where_it_is_said():
    books = [
        pmdp.codebooks.rr3(),
        pmdp.codebooks.pageviews_to_2017("listed"),
        pmdp.codebooks.pageviews_to_2023("listed"),
        pmdp.codebooks.pageviews("medium", "unlisted"),
        pmdp.codebooks.census_noisy_measurements([4.0, 9.0]),
        pmdp.codebooks.census_estimates(2.5),
    ]
    assert all("2026-11" in str(book) for book in books)
    words = [book.words for book in books]
    assert words[1:4] == [
        "discrete Laplace noise of scale 300, then not shown below 3500",
        "discrete Laplace noise of scale 30, then not shown below 450",
        "discrete Gaussian noise of scale 90.05, then left out below 550",
    ]


@pytest.mark.parametrize(
    ("truth", "law", "words"),
    [
        (lambda: pm.Categorical("y", p=[0.2, 0.3, 0.5], observed=[0, 1]), pmdp.RandomisedResponse(0.75), "has 3 levels"),
        (lambda: pm.Categorical("y", p=[0.2, 0.3, 0.5], observed=[0, 1]), pmdp.Transitions(np.eye(2)), "has 3 levels"),
        (lambda: pm.Binomial("y", 10, 0.3, observed=[0, 1]), pmdp.RandomisedResponse(0.75), "y counts"),
        (lambda: pm.Poisson("y", 3.0, observed=[0, 1]), pmdp.ForcedResponse(yes=0.1, no=0.2), "y counts"),
        (lambda: pm.DiscreteUniform("y", -3, 3, observed=[0, 1]), pmdp.DiscreteLaplace(2.0), "below 0"),
        (
            lambda: pm.DiscreteUniform("y", -3, 3, observed=[0, 1]),
            [pmdp.DiscreteLaplace(2.0), pmdp.Clipped(upper=1)],
            "below 0",
        ),
    ],
)
def test_truths_that_a_law_takes_to_be_impossible(truth, law, words):
    with pm.Model() as model:
        truth()
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.published(model, {"y": law})


def test_a_sum_of_a_table_with_a_scale_that_is_a_variable():
    with pm.Model(), pytest.raises(pmdp.Refusal, match="needs a scale that is a number"):
        pmdp.TableQuery([5, 1], pmdp.DiscreteGaussian(pm.HalfNormal("scale"), largest=5), dims=("area",))
