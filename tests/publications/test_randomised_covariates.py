"""Models with randomised covariates have the log-density that enumeration gives: every pattern of true values of every record, by SciPy."""

import itertools

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.special import expit, softmax

import pymc_dp as pmdp

N = 7
RNG = np.random.default_rng(3)
X, W, LEVEL, OUTCOME, Z = (
    RNG.integers(0, 2, N), RNG.integers(0, 2, N), RNG.integers(0, 3, N), RNG.integers(0, 2, N), RNG.normal(size=N),
)  # fmt: skip
P, B, E = 0.3, np.array([-0.4, 1.3, 0.7]), np.array([0.2, -1.0, 0.9])
RR, RR3 = pmdp.RandomisedResponse(0.8), pmdp.RandomisedResponse(0.7, levels=3)
BINARY, TERNARY = np.array([[0.8, 0.2], [0.2, 0.8]]), RR3.table(0.7)
EXACT = pmdp.Exact()


def joint(public, point):
    """Log-density of all that was published, and its gradient, at a point in the unknowns' own units."""
    values = dict(zip([rv.name for rv in public.free_RVs], public.free_RVs, strict=True))
    assert set(values) == set(point)
    graph = pm.math.sum([part.sum() for part in public.logp(vars=public.observed_RVs, sum=False)])
    replaced = {public.rvs_to_values[rv]: None for rv in public.free_RVs}
    names = {}
    for rv in public.free_RVs:
        value, transform = public.rvs_to_values[rv], public.rvs_to_transforms[rv]
        names[value.name] = (
            point[rv.name] if transform is None else transform.forward(pt.as_tensor(point[rv.name]), *rv.owner.inputs).eval()
        )
    assert len(replaced) == len(names)
    function = pytensor.function(list(replaced), [graph], mode=pytensor.compile.mode.Mode("py", None))
    return float(function(*names.values())[0])


def enumerated(levels, chance_true, chance_told, likelihood):
    """Sum over records of log sum over patterns of the true values of P(pattern) P(published given pattern) P(outcome given pattern)."""
    return sum(
        np.log(
            sum(
                chance_true(i, pattern) * chance_told(i, pattern) * likelihood(i, pattern)
                for pattern in itertools.product(*map(range, levels))
            )
        )
        for i in range(N)
    )


def binary(observed=X, p=P, name="x"):
    return pm.Bernoulli(name, p, observed=observed)


def told(i, pattern):
    return BINARY[pattern[0], X[i]]


def share(i, pattern):
    return P if pattern[0] else 1 - P


def logit(model_x, z=True):
    return B[0] + B[1] * model_x + (B[2] * Z if z else 0.0)


OUTCOMES = {
    "logistic": (
        lambda x: pm.Bernoulli("y", logit_p=logit(x), observed=OUTCOME),
        lambda i, s: stats.bernoulli(expit(B[0] + B[1] * s + B[2] * Z[i])).pmf(OUTCOME[i]),
    ),
    "an index": (
        lambda x: pm.Normal("y", pt.as_tensor(E)[x], 0.6, observed=Z),
        lambda i, s: stats.norm(E[s], 0.6).pdf(Z[i]),
    ),
    "an index of two": (
        lambda x: pm.Normal("y", pt.as_tensor(np.outer(E, E))[x, LEVEL], pt.exp(x), observed=Z),
        lambda i, s: stats.norm(E[s] * E[LEVEL[i]], np.exp(s)).pdf(Z[i]),
    ),
    "a matrix of columns": (
        lambda x: pm.Normal("y", pt.stack([pt.ones(N), x, Z * x], axis=1) @ B, 1.0, observed=Z),
        lambda i, s: stats.norm(B[0] + B[1] * s + B[2] * Z[i] * s, 1).pdf(Z[i]),
    ),
    "levels": (
        lambda x: pm.Categorical("y", logit_p=pt.stack([pt.zeros(N), B[1] * x, B[2] * Z - x], axis=1), observed=LEVEL),
        lambda i, s: softmax([0, B[1] * s, B[2] * Z[i] - s])[LEVEL[i]],
    ),
    "several a record": (
        lambda x: pm.Poisson("y", pt.exp(logit(x))[:, None] * np.array([1.0, 2.0]), observed=np.stack([X, LEVEL], axis=1)),
        lambda i, s: np.prod(
            [stats.poisson(k * np.exp(B[0] + B[1] * s + B[2] * Z[i])).pmf(v) for k, v in ((1.0, X[i]), (2.0, LEVEL[i]))]
        ),
    ),
    "zero-inflated": (
        lambda x: pm.ZeroInflatedPoisson("y", 0.6, pt.exp(logit(x)), observed=LEVEL),
        lambda i, s: 0.6 * stats.poisson(np.exp(B[0] + B[1] * s + B[2] * Z[i])).pmf(LEVEL[i]) + 0.4 * (LEVEL[i] == 0),
    ),
    "mixed": (
        lambda x: pm.NormalMixture("y", [0.3, 0.7], pt.stack([B[1] * x, Z + x], axis=1), 0.8, observed=Z),
        lambda i, s: 0.3 * stats.norm(B[1] * s, 0.8).pdf(Z[i]) + 0.7 * stats.norm(Z[i] + s, 0.8).pdf(Z[i]),
    ),
    "ordered": (
        lambda x: pm.OrderedLogistic("y", eta=logit(x), cutpoints=[-0.5, 0.8], compute_p=False, observed=LEVEL),
        lambda i, s: np.diff([0, *expit(np.array([-0.5, 0.8]) - B[0] - B[1] * s - B[2] * Z[i]), 1])[LEVEL[i]],
    ),
    "censored": (
        lambda x: pm.Censored("y", pm.Normal.dist(logit(x), 1.0), lower=0.0, upper=None, observed=np.maximum(Z, 0)),
        lambda i, s: getattr(stats.norm(B[0] + B[1] * s + B[2] * Z[i]), "cdf" if Z[i] <= 0 else "pdf")(max(Z[i], 0)),
    ),
    "robust": (
        lambda x: pm.StudentT("y", 4, mu=logit(x), sigma=0.5, observed=Z),
        lambda i, s: stats.t(4, B[0] + B[1] * s + B[2] * Z[i], 0.5).pdf(Z[i]),
    ),
    "negative binomial": (
        lambda x: pm.NegativeBinomial("y", mu=pt.exp(logit(x)), alpha=1.5, observed=LEVEL),
        lambda i, s: stats.nbinom(1.5, 1.5 / (1.5 + np.exp(B[0] + B[1] * s + B[2] * Z[i]))).pmf(LEVEL[i]),
    ),
}  # fmt: skip


RARER = {"mixed", "robust", "ordered", "negative binomial", "zero-inflated", "an index"}


@pytest.mark.parametrize("outcome", [pytest.param(name, marks=[pytest.mark.slow] * (name in RARER)) for name in OUTCOMES])
def test_a_randomised_answer_in_a_regression(outcome):
    build, likelihood = OUTCOMES[outcome]
    with pm.Model() as model:
        build(binary())
    public = pmdp.published(model, {"x": RR, "y": EXACT})
    assert not public.free_RVs
    expected = enumerated([2], share, told, lambda i, pattern: likelihood(i, pattern[0]))
    assert joint(public, {}) == pytest.approx(expected, rel=1e-9)


def test_outcomes_that_were_made_private_too():
    """Randomised answers, counts with noise, and real numbers with noise."""
    with pm.Model() as model:
        x = binary()
        pm.Bernoulli("a", logit_p=logit(x), observed=OUTCOME)
        pm.Poisson("b", pt.exp(logit(x)), observed=3 * LEVEL)
        pm.Normal("c", logit(x), 1.0, observed=Z)
        pm.Poisson("d", pt.exp(1 + x), observed=LEVEL - 1)
        pm.Categorical("e", p=pt.as_tensor(TERNARY)[x], observed=LEVEL)
    laws = {"a": RR, "b": pmdp.RoundedToBase(3), "c": pmdp.LaplaceNoise(0.9), "d": pmdp.DiscreteLaplace(1.2), "e": RR3}
    s = np.arange(200)

    def likelihood(i, pattern):
        eta, x = B[0] + B[1] * pattern[0] + B[2] * Z[i], pattern[0]
        a = expit(eta) * BINARY[1, OUTCOME[i]] + (1 - expit(eta)) * BINARY[0, OUTCOME[i]]
        b = (stats.poisson(np.exp(eta)).pmf(s) * np.clip(1 - np.abs(3 * LEVEL[i] - s) / 3, 0, None)).sum()
        grid = np.linspace(-60, 60, 200_001)
        c = np.trapezoid(stats.norm(eta, 1).pdf(grid) * stats.laplace(Z[i], 0.9).pdf(grid), grid)
        d = (stats.poisson(np.exp(1 + x)).pmf(s) * stats.dlaplace(1 / 1.2).pmf(LEVEL[i] - 1 - s)).sum()
        return a * b * c * d * (TERNARY[x] @ TERNARY)[LEVEL[i]]

    public = pmdp.published(model, {"x": RR} | laws)
    assert joint(public, {}) == pytest.approx(enumerated([2], share, told, likelihood), rel=1e-6)


def test_covariates_that_rest_on_each_other_and_one_that_is_exact():
    matrix = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])
    with pm.Model() as model:
        x = binary()
        w = pm.Categorical("w", p=pt.as_tensor(matrix)[x], observed=LEVEL)
        v = pm.Bernoulli("v", logit_p=0.5 * x - Z, observed=W)
        pm.Bernoulli("y", logit_p=B[0] + B[1] * x * v + pt.as_tensor(E)[w], observed=OUTCOME)
    public = pmdp.published(model, {"x": RR, "w": RR3, "v": EXACT, "y": EXACT})

    def chance(i, pattern):
        return share(i, pattern) * matrix[pattern[0], pattern[1]] * stats.bernoulli(expit(0.5 * pattern[0] - Z[i])).pmf(W[i])

    expected = enumerated(
        [2, 3],
        chance,
        lambda i, pattern: told(i, pattern) * TERNARY[pattern[1], LEVEL[i]],
        lambda i, pattern: stats.bernoulli(expit(B[0] + B[1] * pattern[0] * W[i] + E[pattern[1]])).pmf(OUTCOME[i]),
    )
    assert joint(public, {}) == pytest.approx(expected, rel=1e-9)


COUNTS = {
    "random rounding": (
        pmdp.RoundedToBase(3), 3 * LEVEL, lambda v, s: np.clip(1 - np.abs(v - s) / 3, 0, None),
        lambda observed: pm.Poisson("x", np.array(2.5), observed=observed), stats.poisson(2.5).pmf,
    ),
    "discrete Laplace of a bounded count": (
        pmdp.DiscreteLaplace(1.5), 3 * LEVEL - 1, lambda v, s: stats.dlaplace(1 / 1.5).pmf(v - s),
        lambda observed: pm.Binomial("x", 6, 0.4, observed=observed), stats.binom(6, 0.4).pmf,
    ),
    "discrete Gaussian, clipped": (
        [pmdp.DiscreteGaussian(1.1), pmdp.Clipped(0, 5)], np.minimum(3 * LEVEL, 5),
        lambda v, s: sum(
            np.exp(-((k - s) ** 2) / 2.42) for k in (range(-60, 1) if v == 0 else range(5, 70) if v == 5 else [v])
        ) / np.exp(-(np.arange(-60, 61) ** 2) / 2.42).sum(),
        lambda observed: pm.DiscreteUniform("x", 0, np.array(5), observed=observed), stats.randint(0, 6).pmf,
    ),
    "a cell-key table": (
        pmdp.Transitions([[0.9, 0.1, 0], [0.2, 0.6, 0.2], [0, 0.3, 0.7], [0, 0, 1]]), LEVEL,
        lambda v, s: np.array([[0.9, 0.1, 0], [0.2, 0.6, 0.2], [0, 0.3, 0.7], [0, 0, 1], *[[0, 0, 0]] * 196])[s, v],
        lambda observed: pm.Poisson("x", np.array(1.7), observed=observed), stats.poisson(1.7).pmf,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", COUNTS)
def test_a_covariate_that_counts(case):
    law, observed, chance, build, pmf = COUNTS[case]
    with pm.Model() as model:
        pm.Normal("y", B[0] + B[1] * build(observed), np.array(1.25), observed=Z)
    s = np.arange(200)
    expected = sum(
        np.log((pmf(s) * np.array(chance(observed[i], s), float) * stats.norm(B[0] + B[1] * s, 1.25).pdf(Z[i])).sum()) for i in range(N)
    )
    assert joint(pmdp.published(model, {"x": law, "y": EXACT}), {}) == pytest.approx(expected, rel=1e-9)


def test_local_laplace_noise_on_a_covariate_with_few_values():
    numbers = LEVEL + RNG.laplace(0, 1.3, N)
    with pm.Model() as model:
        x = pm.Categorical("x", p=[0.2, 0.5, 0.3], observed=np.zeros(N, dtype=int))
        pm.Bernoulli("y", logit_p=pt.as_tensor(E)[x], observed=OUTCOME)
    public = pmdp.published(model, {"x": pmdp.LaplaceNoise(1.3), "y": EXACT}, values={"x": numbers})
    expected = enumerated(
        [3],
        lambda i, pattern: [0.2, 0.5, 0.3][pattern[0]],
        lambda i, pattern: stats.laplace(pattern[0], 1.3).pdf(numbers[i]),
        lambda i, pattern: stats.bernoulli(expit(E[pattern[0]])).pmf(OUTCOME[i]),
    )
    assert joint(public, {}) == pytest.approx(expected, rel=1e-9)


def test_answers_below_a_threshold_and_a_probability_of_the_truth_for_every_record():
    observed = np.where(LEVEL == 0, np.nan, LEVEL)
    with pm.Model() as model:
        x = pm.Binomial("x", 2, 0.4, observed=np.zeros(N, dtype=int))
        pm.Normal("y", B[1] * x, 1.0, observed=Z)
    law = [pmdp.RoundedToBase(2), pmdp.Threshold(1, absent="listed")]
    public = pmdp.published(model, {"x": law, "y": EXACT}, values={"x": np.where(np.isnan(observed), np.nan, 2.0)})
    chance = {True: [1, 0.5, 0], False: [0, 0.5, 1]}
    expected = enumerated(
        [3],
        lambda i, pattern: stats.binom(2, 0.4).pmf(pattern[0]),
        lambda i, pattern: chance[bool(np.isnan(observed[i]))][pattern[0]],
        lambda i, pattern: stats.norm(B[1] * pattern[0], 1).pdf(Z[i]),
    )
    assert joint(public, {}) == pytest.approx(expected, rel=1e-9)
    truth = np.linspace(0.6, 0.95, N)
    with pm.Model() as model:
        pm.Normal("y", B[1] * binary(), 1.0, observed=Z)
    expected = enumerated(
        [2],
        share,
        lambda i, pattern: truth[i] if pattern[0] == X[i] else 1 - truth[i],
        lambda i, pattern: stats.norm(B[1] * pattern[0], 1).pdf(Z[i]),
    )
    assert joint(pmdp.published(model, {"x": pmdp.RandomisedResponse(truth), "y": EXACT}), {}) == pytest.approx(expected, rel=1e-9)
