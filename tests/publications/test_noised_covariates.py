"""Real covariates with noise are integrated out where that has a closed form, and are unknowns elsewhere; what is neither is refused."""

import warnings

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.special import expit

import pymc_dp as pmdp

N = 5
RNG = np.random.default_rng(8)
Z, X, Y, ANSWER, U = RNG.normal(size=N), RNG.integers(0, 2, N), RNG.normal(1, 2, size=N), RNG.integers(0, 2, N), RNG.normal(size=N)
X[:2] = 0, 1
EXACT, RR = pmdp.Exact(), pmdp.RandomisedResponse(0.8)
GRID = np.linspace(-25, 25, 250_001)
"""So fine that the trapezoidal rule is right to a part in a hundred million, the corner of the Laplace density included."""
PLAIN = pytensor.compile.mode.Mode("py", None)


def total(public, **values):
    """Log-density of all that was published, at values of unknowns without a transform."""
    graph = pt.sum(pt.stack([part.sum() for part in public.logp(vars=public.observed_RVs, sum=False)]))
    inputs = [public.rvs_to_values[rv] for rv in public.free_RVs]
    return float(pytensor.function(inputs, graph, mode=PLAIN)(*(values[variable.name] for variable in inputs)))


NOISES = {
    "Laplace": (pmdp.LaplaceNoise(0.7), stats.laplace(0, 0.7)),
    "Gaussian": (pmdp.GaussianNoise(0.7), stats.norm(0, 0.7)),
}
LINES = {
    "a line": lambda x: 0.5 - 1.3 * x + 0.4 * U,
    "divided, in a matrix": lambda x: pt.stack([pt.ones(N), (x - 1.0) / 2.0, x * U], axis=1) @ np.array([0.5, -1.3, 0.4]),
}
AS_NUMBERS = {
    "a line": lambda i, x: 0.5 - 1.3 * x + 0.4 * U[i],
    "divided, in a matrix": lambda i, x: 0.5 - 1.3 * (x - 1) / 2 + 0.4 * x * U[i],
}


@pytest.mark.parametrize(
    ("noise", "line", "told"),
    [
        ("Laplace", "a line", 0.0),
        ("Laplace", "divided, in a matrix", 1.1),
        ("Gaussian", "divided, in a matrix", 0.0),
        ("Gaussian", "a line", 1.1),
    ],
)
def test_a_normal_covariate_in_a_line_is_integrated_out(noise, line, told):
    """Whether the outcome was published as it is, or with normal noise of its own."""
    law, chances = NOISES[noise]
    with pm.Model() as model:
        x = pm.Normal("x", 0.3, np.array(1.6), observed=Z)
        pm.Normal("y", LINES[line](x), np.array(0.9), observed=Y)
    public = pmdp.published(model, {"x": law, "y": pmdp.GaussianNoise(told) if told else EXACT})
    assert not public.free_RVs
    expected = 0.0
    for i in range(N):

        def density(x, i=i):
            rest = stats.norm(AS_NUMBERS[line](i, x), np.hypot(0.9, told)).pdf(Y[i])
            return stats.norm(0.3, 1.6).pdf(x) * chances.pdf(Z[i] - x) * rest

        expected += np.log(np.trapezoid(density(GRID), GRID))
    assert total(public) == pytest.approx(expected, rel=1e-7)


BENT = {
    "squared": lambda x: pm.Normal("y", x**2, 1.0, observed=Y),
    "logistic": lambda x: pm.Bernoulli("y", logit_p=x, observed=ANSWER),
    "in the deviation": lambda x: pm.Normal("y", x, pt.exp(x), observed=Y),
    "a product with itself": lambda x: pm.Normal("y", x * (x + 1.0), 1.0, observed=Y),
    "below a fraction": lambda x: pm.Normal("y", 1.0 / (x + 100.0), 1.0, observed=Y),
    "an absolute value": lambda x: pm.Normal("y", pt.abs(x), 1.0, observed=Y),
    "a choice": lambda x: pm.Normal("y", pt.switch(x > 0, x, 0.0), 1.0, observed=Y),
    "of all records": lambda x: pm.Normal("y", x - x.mean(), 1.0, observed=Y),
    "another record": lambda x: pm.Normal("y", x[::-1], 1.0, observed=Y),
    "rounded": lambda x: pm.Normal("y", pt.cast(x, "int64") * 1.0, 1.0, observed=Y),
}


@pytest.mark.parametrize("bent", BENT)
def test_elsewhere_true_values_are_unknowns(bent):
    """Given the true values both numbers have their own law: all three densities multiply."""
    with pm.Model() as model:
        BENT[bent](pm.Normal("x", 0.3, np.array(1.6), observed=Z))
    public = pmdp.published(model, {"x": pmdp.LaplaceNoise(0.7), "y": EXACT})
    assert [rv.name for rv in public.free_RVs] == ["x_true"]
    if bent not in ("squared", "another record"):
        return
    truth = np.array([-0.4, 0.2, 1.3, 2.1, -1.7])
    with pm.Model() as seen:
        BENT[bent](pm.Normal("x", 0.3, np.array(1.6), observed=truth))
    expected = stats.laplace(truth, 0.7).logpdf(Z).sum() + total(seen) - stats.norm(0.3, 1.6).logpdf(truth).sum()
    assert total(public, x_true=truth) == pytest.approx(expected, rel=1e-7)


GAPS = [pmdp.LaplaceNoise(0.7), pmdp.Threshold(0.0, absent="listed")]


def _with_gaps(numbers):
    with warnings.catch_warnings(), pm.Model() as model:
        warnings.simplefilter("ignore")
        x = pm.Normal("x", 0.3, np.array(1.6), observed=numbers)
        pm.Normal("y", 1.0 * x, 1.0, observed=Y)
    return model


def test_real_covariates_of_which_some_were_not_published():
    """Below a threshold: that is all that is known of them, and of what rests on them all is known."""
    published = np.array([np.nan, 1.3, 0.2, np.nan, 2.4])
    with pytest.raises(pmdp.Refusal, match="no number was published"):
        pmdp.published(_with_gaps(np.full(N, np.nan)), {"x": GAPS, "y": EXACT})
    public, there = pmdp.published(_with_gaps(published), {"x": GAPS, "y": EXACT}), ~np.isnan(published)
    truth = np.array([-0.4, 0.2, 1.3, 2.1, -1.7])
    expected = stats.laplace(truth[there], 0.7).logpdf(published[there]).sum() + stats.laplace(truth[~there], 0.7).logcdf(0).sum()
    expected += stats.norm(truth, 1.0).logpdf(Y).sum()
    assert total(public, x_true=truth[there], x_absent_true=truth[~there]) == pytest.approx(expected, rel=1e-7)


def test_unknown_true_values_beside_answers_that_are_summed_out():
    """A real covariate with noise and a randomised one, which rests on it: given the first, the second is summed out."""
    with pm.Model() as model:
        x = pm.Normal("x", 0.0, 1.0, observed=Z)
        w = pm.Bernoulli("w", logit_p=x, observed=X)
        pm.Bernoulli("y", logit_p=x - 2.0 * w, observed=ANSWER)
    public = pmdp.published(model, {"x": pmdp.GaussianNoise(0.5), "w": RR, "y": EXACT})
    truth = np.array([-0.4, 0.2, 1.3, 2.1, -1.7])
    expected = stats.norm(truth, 0.5).logpdf(Z).sum()
    for i in range(N):
        parts = [
            (expit(truth[i]) if w else 1 - expit(truth[i]))
            * (0.8 if w == X[i] else 0.2)
            * stats.bernoulli(expit(truth[i] - 2 * w)).pmf(ANSWER[i])
            for w in (0, 1)
        ]
        expected += np.log(sum(parts))
    assert total(public, x_true=truth) == pytest.approx(expected, rel=1e-7)


def test_data_get_a_share_of_every_pattern():
    """Randomised data without a distribution: a uniform prior of the shares of all patterns of their true values."""
    with pm.Model() as model:
        x, w = pm.Data("x", X), pm.Data("w", ANSWER)
        pm.Normal("y", 1.0 * x - 2.0 * w * x, 1.0, observed=Y)
    public = pmdp.published(model, {"x": RR, "w": pmdp.RandomisedResponse(0.6), "y": EXACT})
    [share] = public.free_RVs
    assert share.name == "x_w_share"
    shares = np.array([[0.1, 0.2], [0.3, 0.4]])
    expected = 0.0
    for i in range(N):
        parts = [
            shares[s, t] * (0.8 if s == X[i] else 0.2) * (0.6 if t == ANSWER[i] else 0.4) * stats.norm(s - 2 * t * s, 1).pdf(Y[i])
            for s in (0, 1)
            for t in (0, 1)
        ]
        expected += np.log(sum(parts))
    value = public.rvs_to_values[share]
    transformed = public.rvs_to_transforms[share].forward(pt.as_tensor(shares.ravel())).eval()
    assert total(public, **{value.name: transformed}) == pytest.approx(expected, rel=1e-7)
    assert {rv.name for rv in public.observed_RVs} == {"x", "w", "y"}


@pytest.mark.parametrize(
    ("law", "matrix"),
    [
        (pmdp.UnrelatedQuestion(asked=0.7, yes=0.25), [[0.3 * 0.75 + 0.7, 0.3 * 0.25], [0.3 * 0.75, 0.7 + 0.3 * 0.25]]),
        (pmdp.ForcedResponse(yes=1 / 6, no=1 / 12), [[1 - 1 / 6, 1 / 6], [1 / 12, 1 - 1 / 12]]),
    ],
)
def test_answers_to_one_of_two_questions_and_forced_ones(law, matrix):
    p = expit(U)
    with pm.Model() as model:
        pm.Bernoulli("y", p=p, observed=ANSWER)
    told = np.stack([1 - p, p], axis=1) @ np.array(matrix)
    expected = np.log(told[np.arange(N), ANSWER]).sum()
    assert total(pmdp.published(model, {"y": law})) == pytest.approx(expected, rel=1e-9)


def test_an_unrelated_question_asked_more_often_of_some():
    asked, p = np.linspace(0.5, 0.9, N), expit(U)
    with pm.Model() as model:
        pm.Bernoulli("y", p=p, observed=ANSWER)
    yes = asked * p + (1 - asked) * 0.3
    got = total(pmdp.published(model, {"y": pmdp.UnrelatedQuestion(asked, yes=0.3)}))
    assert got == pytest.approx(np.log(np.where(ANSWER, yes, 1 - yes)).sum(), rel=1e-9)
    forced = pmdp.ForcedResponse(yes=(1 - asked) * 0.3, no=(1 - asked) * 0.7)
    assert total(pmdp.published(model, {"y": forced})) == pytest.approx(got, rel=1e-9)
