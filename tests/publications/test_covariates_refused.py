"""Models that no sum over single records stands for are refused, in words that say what to write instead; and what they say works."""

import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as pmdp

X, W, Y, U = np.array([0, 1, 1, 0, 1, 0]), np.array([1, 1, 0, 0, 1, 0]), np.array([0.3, -1.0, 2.2, 0.1, 1.4, 0.9]), np.arange(6.0)
RR, EXACT = pmdp.RandomisedResponse(0.8), pmdp.Exact()


def of_x(mean, observed=Y):
    """A model in which y rests on x, which was randomised."""

    def build():
        x = pm.Bernoulli("x", 0.4, observed=X)
        pm.Normal("y", mean(x), 1.0, observed=observed)

    return build


MIXED = {
    "another order": lambda x: x[::-1],
    "a permutation": lambda x: x[np.array([1, 0, 3, 2, 5, 4])],
    "a mean": lambda x: x - x.mean(),
    "a running sum": lambda x: pt.cumsum(x),
    "the last one": lambda x: pt.concatenate([x[:1], x[:-1]]),
    "sorted": lambda x: pt.sort(x),
    "all pairs": lambda x: pt.eq(x[:, None], x[None, :]).sum(axis=1),
    "a product over records": lambda x: pt.dot(np.ones((6, 6)), x),
    "a group's index": lambda x: x[np.array([0, 0, 0, 1, 1, 1])],
    "put together": lambda x: pt.concatenate([x[:3], x[3:]]),
    "shifted": lambda x: pt.roll(x, 1),
    "the largest": lambda x: x + x.max(),
    "chosen": lambda x: x[x],
    "standardised": lambda x: x / pt.sqrt((x**2).sum()),
    "a reshape": lambda x: x.reshape((2, 3)).T.flatten(),
    "a softmax of records": lambda x: pt.special.softmax(1.0 * x),
    "differences": lambda x: pt.concatenate([[0], pt.diff(x)]),
    "written into": lambda x: pt.set_subtensor(pt.zeros(6)[x], 1.0),
}


@pytest.mark.parametrize("mean", MIXED)
def test_records_that_meet_each_other_are_refused(mean):
    with pm.Model() as model:
        of_x(MIXED[mean])()
    with pytest.raises(pmdp.Refusal, match="cannot be read record by record along x"):
        pmdp.published(model, {"x": RR, "y": EXACT})


def unknown_on_x():
    x = pm.Bernoulli("x", 0.4, observed=X)
    pm.Normal("y", pm.Normal("u", 1.0 * x), 1.0, observed=Y)


def deterministic():
    x = pm.Bernoulli("x", 0.4, observed=X)
    pm.Normal("y", pm.Deterministic("mu", 2.0 * x), 1.0, observed=Y)


def potential():
    x = pm.Bernoulli("x", 0.4, observed=X)
    pm.Potential("extra", pm.logp(pm.Normal.dist(2.0 * x), Y).sum())


def plain_numbers():
    pm.Bernoulli("x", 0.4, observed=X)
    pm.Normal("y", pm.Normal("b") * X, 1.0, observed=Y)


def plain_data():
    told = pm.Data("told", X)
    pm.Bernoulli("x", 0.4, observed=told)
    pm.Normal("y", 2.0 * told, 1.0, observed=Y)


def data_beside_others():
    pm.Normal("y", pm.Data("x", X) + U * pm.Normal("b"), 1.0, observed=Y)


def distributed_beside_others():
    x = pm.Bernoulli("x", logit_p=pm.Normal("c") * U, observed=X)
    pm.Normal("y", x + U * pm.Normal("b"), 1.0, observed=Y)


def data_and_distribution():
    w = pm.Bernoulli("w", 0.5, observed=W)
    pm.Normal("y", pm.Data("x", X) + w, 1.0, observed=Y)


def two_distributions():
    w = pm.Bernoulli("w", 0.5, observed=W)
    pm.Normal("y", pm.Bernoulli("x", pm.Beta("share", 1, 1), observed=X) + w, 1.0, observed=Y)


def matrix():
    x = pm.Bernoulli("x", 0.4, observed=np.stack([X, W], axis=1))
    pm.Normal("y", x.sum(axis=1), 1.0, observed=Y)


def columns():
    x, w = pm.Bernoulli("x", 0.4, observed=X), pm.Bernoulli("w", 0.4, observed=W)
    pm.Normal("y", x + w, 1.0, observed=Y)


def real_data():
    pm.Normal("y", 2.0 * pm.Data("x", U), 1.0, observed=Y)


def real_distribution():
    pm.Normal("y", 2.0 * pm.Normal("x", pm.Normal("m"), pm.HalfNormal("s"), observed=U), 1.0, observed=Y)


def without_end():
    pm.Normal("y", 1.0 * pm.Poisson("x", 2.0, observed=np.minimum(3 * X, 3)), 1.0, observed=Y)


def with_an_end():
    pm.Normal("y", 1.0 * pm.DiscreteUniform("x", 0, 9, observed=np.minimum(3 * X, 3)), 1.0, observed=Y)


def unknowns_of_its_own(outcome):
    def build():
        x = pm.Bernoulli("x", 0.4, observed=X)
        outcome(x)

    return build


def fewer_rows():
    x = pm.Bernoulli("x", 0.4, observed=np.array([1]))
    pm.Normal("y", 2.0 * x, 1.0, observed=Y)


LAWS = {"x": RR, "y": EXACT}
NOISED = {"x": pmdp.LaplaceNoise(1.0), "y": EXACT}
CLIPPED = {"x": [pmdp.DiscreteLaplace(2.0), pmdp.Clipped(upper=3)], "y": EXACT}
PAIRS = {
    "an unknown on it": (unknown_on_x, LAWS, "u is an unknown that rests on x", of_x(lambda x: pm.Normal("u") + x), LAWS),
    "a deterministic": (deterministic, LAWS, "Write it without pm.Deterministic", of_x(lambda x: 2.0 * x), LAWS),
    "a potential": (potential, {"x": RR}, "Write it as the likelihood of something observed", of_x(lambda x: 2.0 * x), LAWS),
    "plain numbers": (plain_numbers, LAWS, "as if they were true", of_x(lambda x: 2.0 * x), LAWS),
    "plain data": (plain_data, LAWS, "as if they were true", of_x(lambda x: 2.0 * x), LAWS),
    "data that go with others": (data_beside_others, LAWS, "Say of x how it is distributed", distributed_beside_others, LAWS),
    "data beside a distribution": (
        data_and_distribution, LAWS | {"w": RR}, "other covariates have a distribution", two_distributions, LAWS | {"w": RR},
    ),
    "a matrix": (matrix, LAWS, "Write every covariate as a variable of its own", columns, LAWS | {"w": RR}),
    "real data": (real_data, NOISED, "pm.Normal for real numbers", real_distribution, NOISED),
    "without end": (without_end, CLIPPED, "Write a distribution with a largest value", with_an_end, CLIPPED),
    "an outcome with unknowns of its own": (
        unknowns_of_its_own(lambda x: pm.Gamma("y", 2.0, 1.0 + x, observed=1 + U)), {"x": RR, "y": pmdp.LaplaceNoise(1.0)},
        "Write y as Normal with GaussianNoise",
        unknowns_of_its_own(lambda x: pm.Normal("y", 2.0 - x, 1.0, observed=1 + U)), {"x": RR, "y": pmdp.GaussianNoise(1.4)},
    ),
    "rows of another number": (fewer_rows, LAWS, "one row of y for every value of x", of_x(lambda x: 2.0 * x), LAWS),
    "nothing rests on data": (
        lambda: (pm.Data("x", X), pm.Normal("y", 0.0, 1.0, observed=Y)), LAWS, "data on which nothing observed rests",
        lambda: (pm.Data("x", X), pm.Normal("y", 0.0, 1.0, observed=Y)), {"y": EXACT},
    ),
    "no such answer": (
        of_x(lambda x: 2.0 * x), {"x": pmdp.Transitions([[1.0, 0.0], [1.0, 0.0]]), "y": EXACT}, "no count can have been published as",
        of_x(lambda x: 2.0 * x), LAWS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PAIRS)
def test_refused_and_what_to_write_instead(case):
    wrong, laws, words, right, right_laws = PAIRS[case]
    with pm.Model() as model:
        wrong()
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.published(model, laws)
    with pm.Model() as model:
        right()
    pmdp.published(model, right_laws)


@pytest.mark.parametrize("recoded", [lambda x: 1.0 - x, lambda x: 2.0 * x - 1, lambda x: (x - x.mean()) / x.std()])
def test_published_numbers_that_were_recoded_are_found(recoded):
    x = np.arange(24) % 5 // 3
    with pm.Model() as model:
        pm.Bernoulli("x", 0.4, observed=x)
        pm.Normal("y", pm.Normal("b") * recoded(x), 1.0, observed=np.arange(24) / 7 % 1)
    with pytest.raises(pmdp.Refusal, match="as if they were true"):
        pmdp.published(model, {"x": RR, "y": EXACT})
    pmdp.published(model, {"x": EXACT, "y": EXACT})


def test_an_unknown_scale_on_a_covariate():
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 1.0)
        pm.Normal("y", 1.0 * pm.Binomial("x", 4, 0.5, observed=X), 1.0, observed=Y)
    with pytest.raises(pmdp.Refusal, match="Give the scale as a number"):
        pmdp.published(model, {"x": pmdp.DiscreteLaplace(scale, largest=5), "y": EXACT})
    pmdp.published(model, {"x": pmdp.DiscreteLaplace(1.0), "y": EXACT})


def test_a_covariate_whose_small_counts_were_suppressed():
    with pm.Model() as model:
        pm.Normal("y", 1.0 * pm.Binomial("x", 4, 0.5, observed=X), 1.0, observed=Y)
    with pytest.raises(pmdp.Refusal, match="Suppressed is understood of outcomes alone"):
        pmdp.published(model, {"x": [pmdp.Suppressed(2, 3), pmdp.DiscreteLaplace(1.0)], "y": EXACT})


def test_missing_values_of_an_outcome_are_given_beside_the_model():
    law = [pmdp.DiscreteLaplace(2.0), pmdp.Threshold(2, absent="listed")]
    numbers = np.array([3.0, np.nan, 5.0, 2.0, np.nan, 4.0])
    for observed, values in ((numbers, None), (np.zeros(6, dtype=int), {"y": numbers})):
        with warnings.catch_warnings(), pm.Model() as model:
            warnings.simplefilter("ignore")
            x = pm.Bernoulli("x", 0.4, observed=X)
            pm.Poisson("y", 2.0 + x, observed=observed)
        if values is None:
            with pytest.raises(pmdp.Refusal, match="y has missing values in a model of covariates"):
                pmdp.published(model, {"x": RR, "y": law})
        else:
            pmdp.published(model, {"x": RR, "y": law}, values=values)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: pmdp.UnrelatedQuestion(asked=1.2, yes=0.3),
        lambda: pmdp.UnrelatedQuestion(asked=0.7, yes=1.0),
        lambda: pmdp.ForcedResponse(yes=0.6, no=0.5),
        lambda: pmdp.ForcedResponse(yes=[0.1, 0.2], no=[0.1, 0.1]),
        lambda: pmdp.ForcedResponse(yes=0, no=0.1),
    ],
)
def test_malformed_questions_are_refused(wrong):
    with pytest.raises(pmdp.Refusal, match=r"Write|Give"):
        wrong()


def test_the_promise_is_the_respondents_and_no_epsilon_is_claimed():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("b") * pm.Bernoulli("x", 0.4, observed=X), 1.0, observed=Y)
    law = pmdp.Codebook(RR, source="the questionnaire", promise="each respondent flipped a coin")
    public = pmdp.published(model, {"x": law, "y": EXACT})
    group = public.publication.group()
    assert dict(zip(group["variable"].values, group["declared"].values, strict=True))["x"] == "each respondent flipped a coin"
    assert "claims no epsilon" in public.publication.promise
    assert [rv.name for rv in model.observed_RVs] == ["x", "y"]
    assert not hasattr(model, "publication")


def test_too_many_patterns_are_refused_before_memory_is_full():
    """Of an outcome with noise every count counts that it may hide, too."""
    many, law, rounded = np.zeros(60_000, dtype=int), pmdp.DiscreteLaplace(3.0), pmdp.RoundedToBase(3)
    for build, of_outcome, fits in (
        (lambda: pm.Normal("y", 1.0 * pm.Poisson("x", 2.0, observed=many), 1.0, observed=0.5 * many), EXACT, False),
        (lambda: pm.Poisson("y", 1.0 + pm.Poisson("x", 2.0, observed=many[:25_000]), observed=many[:25_000]), rounded, False),
        (lambda: pm.Poisson("y", 1.0 + pm.Poisson("x", 2.0, observed=X), observed=3 * X), rounded, True),
        (lambda: pm.Poisson("y", 1.0 + pm.Binomial("x", 5, 0.4, observed=X), observed=3 * X), rounded, True),
    ):
        with pm.Model() as model:
            build()
        laws = {"x": law, "y": of_outcome}
        if fits:
            pmdp.published(model, laws)
        else:
            with pytest.raises(pmdp.Refusal, match="more than 5,000,000"):
                pmdp.published(model, laws)
