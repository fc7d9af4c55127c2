"""Models of published numbers have the log-density that enumeration gives, by SciPy: every true count, every noise, every step forwards."""

import warnings

import numpy as np
import pymc as pm
import pytest
from scipy import integrate, stats

import pymc_dp as pmdp

MANY = np.arange(3000)
"""All counts that are looked at."""


def rows(model, point=None):
    """Log-densities of all observed rows, one after the other."""
    values = model.initial_point() | (point or {})
    parts = model.compile_logp(vars=model.observed_RVs, sum=False, mode="FAST_COMPILE")(values)
    return np.concatenate([np.ravel(part) for part in parts])


def noise_of(kind, **settings):
    """Probabilities of differences, straight from SciPy or the definition: a function of an array of whole numbers."""
    if kind == "laplace":
        return stats.dlaplace(1 / settings["scale"]).pmf
    if kind == "skellam":
        return stats.skellam(settings["variance"] / 2, settings["variance"] / 2).pmf
    if kind == "gaussian":
        k = np.arange(-4000, 4001)
        total = np.exp(-(k**2) / (2 * settings["scale"] ** 2)).sum()
        return lambda d: np.exp(-(d**2) / (2 * settings["scale"] ** 2)) / total
    return lambda d: np.where(d == -1, 0.25, np.where(d == 0, 0.5, np.where(d == 2, 0.25, 0.0)))


def half_up(base):
    return lambda v: np.floor(v / base + 0.5) * base


def half_even(base):
    return lambda v: np.round(v / base) * base


NOISES = {
    "laplace": (pmdp.DiscreteLaplace(3.0), noise_of("laplace", scale=3.0)),
    "gaussian": (pmdp.DiscreteGaussian(0.8), noise_of("gaussian", scale=0.8)),
    "wide": (pmdp.DiscreteGaussian(18.23), noise_of("gaussian", scale=18.23)),
    "skellam": (pmdp.Skellam(7.0), noise_of("skellam", variance=7.0)),
    "table": (pmdp.NoiseTable([-1, 0, 2], [0.25, 0.5, 0.25]), noise_of("table")),
}
LATER = {
    "nothing": ([], lambda v: v),
    "clipped": ([pmdp.Clipped(lower=0, upper=14)], lambda v: np.clip(v, 0, 14)),
    "rounded up": ([pmdp.Rounded(5)], half_up(5)),
    "rounded even": ([pmdp.Rounded(4, ties="even")], half_even(4)),
    "rounded, then clipped": ([pmdp.Rounded(4), pmdp.Clipped(lower=0)], lambda v: np.maximum(half_up(4)(v), 0)),
}
TRUTHS = {
    "Poisson": (lambda observed: pm.Poisson("y", np.full(len(observed), 6.3), observed=observed), stats.poisson(6.3)),
    "Binomial": (lambda observed: pm.Binomial("y", 17, np.full(len(observed), 0.4), observed=observed), stats.binom(17, 0.4)),
    "NegativeBinomial": (
        lambda observed: pm.NegativeBinomial("y", mu=np.full(len(observed), 6.0), alpha=0.7, observed=observed),
        stats.nbinom(0.7, 0.7 / 6.7),
    ),
    "BetaBinomial": (
        lambda observed: pm.BetaBinomial("y", *np.float64([[2.0], [3.0]]), n=np.array(20), observed=observed, shape=len(observed)),
        stats.betabinom(20, 2, 3),
    ),
    "Geometric": (lambda observed: pm.Geometric("y", np.full(len(observed), 0.2), observed=observed), stats.geom(0.2)),
}


def pushed(noise, forwards):
    """Probabilities of published values given every count: of every noisy number it is asked what is published."""
    reach = np.arange(-400, 401)

    def chance(published, s):
        return sum(noise(d) * (forwards(s + d) == published) for d in reach)

    return chance


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("later", LATER)
@pytest.mark.parametrize("noise", NOISES)
def test_every_count_is_summed_over(noise, later, truth):
    law, chances = NOISES[noise]
    steps, forwards = LATER[later]
    observed = np.array([0, 8, 12] if later != "rounded up" else [0, 10, 15])
    if later == "nothing":
        observed = np.array([-2, 0, 8, 20]) if noise != "table" else np.array([1, 8, 15])
    build, distribution = TRUTHS[truth]
    with pm.Model() as model:
        build(observed)
    chance, s = pushed(chances, forwards), MANY[:700]
    expected = [np.log((distribution.pmf(s) * chance(value, s)).sum()) for value in observed]
    np.testing.assert_allclose(rows(pmdp.published(model, {"y": [law, *steps]})), expected, rtol=1e-9)


def below(noise, lowest, s):
    reach = np.arange(-400, 401)
    return sum(noise(d) * (s + d < lowest) for d in reach)


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("noise", ["laplace", "wide", "skellam"])
def test_rows_below_a_threshold_are_censored_where_they_are_listed_and_truncated_where_they_are_not(noise, truth):
    law, chances = NOISES[noise]
    build, distribution = TRUTHS[truth]
    s = MANY[:700]
    missing = np.log((distribution.pmf(s) * below(chances, 9, s)).sum())
    published = [np.log((distribution.pmf(s) * chances(value - s)).sum()) for value in (9, 13)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pm.Model() as listed:
            build(np.array([9.0, np.nan, 13.0]))
    with pm.Model() as unlisted:
        build(np.array([9, 13]))
    censored = rows(pmdp.published(listed, {"y": [law, pmdp.Threshold(9, absent="listed")]}))
    np.testing.assert_allclose(censored, [*published, missing], rtol=1e-9)
    truncated = rows(pmdp.published(unlisted, {"y": [law, pmdp.Threshold(9, absent="unlisted")]}))
    np.testing.assert_allclose(truncated, np.array(published) - np.log1p(-np.exp(missing)), rtol=1e-9)


@pytest.mark.parametrize("base", [3, 5])
@pytest.mark.parametrize("truth", TRUTHS)
def test_random_rounding_to_a_base(base, truth):
    """To base 3 the nearer multiple with probability 2/3, the further with 1/3; multiples stay."""

    def published_given(value, s):
        down = s // base * base
        share = (s - down) / base
        return np.where(value == down, 1 - share, np.where(value == down + base, share, 0.0))

    build, distribution = TRUTHS[truth]
    s = MANY[:700]
    multiples = base * np.arange(5)
    with pm.Model() as model:
        build(multiples)
    expected = [np.log((distribution.pmf(s) * published_given(value, s)).sum()) for value in multiples]
    np.testing.assert_allclose(rows(pmdp.published(model, {"y": pmdp.RoundedToBase(base)})), expected, rtol=1e-10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pm.Model() as suppressed:
            build(np.where(multiples < 6, np.nan, multiples))
    small = sum((distribution.pmf(s) * published_given(value, s)).sum() for value in multiples if value < 6)
    got = rows(pmdp.published(suppressed, {"y": [pmdp.RoundedToBase(base), pmdp.Threshold(6, absent="listed")]}))
    np.testing.assert_allclose(got, [*np.array(expected)[multiples >= 6], *[np.log(small)] * int((multiples < 6).sum())], rtol=1e-10)


def test_two_thirds_and_one_third():
    s = np.array([0, 1, 2, 3, 4])
    with pm.Model() as model:
        pm.Binomial("y", s, 1.0 - 1e-15, observed=[0, 0, 3, 3, 6])
    got = np.exp(rows(pmdp.published(model, {"y": pmdp.RoundedToBase(3)})))
    np.testing.assert_allclose(got, [1, 2 / 3, 2 / 3, 1, 1 / 3], rtol=1e-9)


CONTINUOUS = {
    "laplace": (pmdp.LaplaceNoise(2.5), stats.laplace(0, 2.5)),
    "gaussian": (pmdp.GaussianNoise(1.7), stats.norm(0, 1.7)),
}


@pytest.mark.parametrize("noise", CONTINUOUS)
def test_real_noise_on_counts(noise):
    """Published as it is; rounded and clipped; and below a threshold."""
    law, distribution = CONTINUOUS[noise]
    s = MANY[:400]
    weights, values = stats.poisson(6.3).pmf(s), np.array([-1.3, 0.25, 8.0, 30.2])
    with pm.Model() as model:
        pm.Poisson("y", np.full(4, 6.3), observed=np.zeros(4, dtype=int))
    got = rows(pmdp.published(model, {"y": law}, values={"y": values}))
    np.testing.assert_allclose(got, [np.log((weights * distribution.pdf(v - s)).sum()) for v in values], rtol=1e-9)
    got = rows(pmdp.published(model, {"y": [law, pmdp.Rounded(1), pmdp.Clipped(lower=0)]}, values={"y": [0, 4, 8, 12]}))
    between = [distribution.cdf(v + 0.5 - s) - (distribution.cdf(v - 0.5 - s) if v else 0.0) for v in (0, 4, 8, 12)]
    np.testing.assert_allclose(got, [np.log((weights * part).sum()) for part in between], rtol=1e-9)
    got = rows(pmdp.published(model, {"y": [law, pmdp.Threshold(7.5, absent="listed")]}, values={"y": [np.nan, 7.5, 9.25, np.nan]}))
    under = np.log((weights * distribution.cdf(7.5 - s)).sum())
    over = [np.log((weights * distribution.pdf(v - s)).sum()) for v in (7.5, 9.25)]
    np.testing.assert_allclose(got, [under, *over, under], rtol=1e-9)


@pytest.mark.parametrize("noise", CONTINUOUS)
def test_a_normal_truth_is_integrated_out(noise):
    law, distribution = CONTINUOUS[noise]
    values, truth = np.array([-3.0, 1.0, 9.0]), stats.norm(2.0, 3.0)
    expected = [integrate.quad(lambda t, v=v: truth.pdf(t) * distribution.pdf(v - t), -40, 40, points=[v], limit=300)[0] for v in values]
    with pm.Model() as model:
        pm.Normal("y", 2.0, 3.0, observed=values)
    np.testing.assert_allclose(rows(pmdp.published(model, {"y": law})), np.log(expected), rtol=1e-7)


@pytest.mark.parametrize("unit", [1e-9, 1e-4, 1.0, 1e9])
def test_a_normal_truth_under_laplace_noise_in_any_unit(unit):
    """Rates of a death in a million are as exact as counts of millions."""
    with pm.Model() as model:
        pm.Normal("y", 0.3 * unit, 0.5 * unit, observed=[0.9 * unit])
    got = rows(pmdp.published(model, {"y": pmdp.LaplaceNoise(0.7 * unit)}))[0]
    expected = integrate.quad(lambda x: stats.norm(0.3, 0.5).pdf(x) * stats.laplace(x, 0.7).pdf(0.9), -8, 8, points=[0.9])[0]
    assert got + np.log(unit) == pytest.approx(np.log(expected), abs=1e-9)


def test_a_normal_truth_under_normal_noise_that_was_rounded_clipped_and_left_out():
    whole = stats.norm(2.0, np.hypot(3.0, 1.7))
    law = pmdp.GaussianNoise(1.7)
    with pm.Model() as model:
        pm.Normal("y", 2.0, 3.0, observed=[0.0, 4.0, 6.0])
    got = rows(pmdp.published(model, {"y": [law, pmdp.Rounded(2), pmdp.Clipped(0, 6)]}))
    np.testing.assert_allclose(np.exp(got), [whole.cdf(1), whole.cdf(5) - whole.cdf(3), whole.sf(5)], rtol=1e-7)  # PyMC: sqrt(2) in 32 bits
    with pm.Model() as model:
        pm.Normal("y", 2.0, 3.0, observed=[4.0, 6.5])
    got = rows(pmdp.published(model, {"y": [law, pmdp.Threshold(4, absent="unlisted")]}))
    np.testing.assert_allclose(got, whole.logpdf([4.0, 6.5]) - whole.logsf(4), rtol=1e-7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pm.Model() as model:
            pm.Normal("y", 2.0, 3.0, observed=[4.0, np.nan])
    got = rows(pmdp.published(model, {"y": [law, pmdp.Threshold(4, absent="listed")]}))
    np.testing.assert_allclose(got, [whole.logpdf(4.0), whole.logcdf(4)], rtol=1e-7)


def test_any_real_number_that_is_only_rounded_or_clipped_needs_no_unknown():
    with pm.Model() as model:
        pm.Gamma("y", 2.0, 0.5, observed=[1.0, 3.0, 8.0])
    public = pmdp.published(model, {"y": [pmdp.Rounded(1), pmdp.Clipped(1, 8)]})
    law = stats.gamma(2.0, scale=2.0)
    assert not public.free_RVs
    np.testing.assert_allclose(np.exp(rows(public)), [law.cdf(1.5), law.cdf(3.5) - law.cdf(2.5), law.sf(7.5)], rtol=1e-9)


def test_any_other_real_number_is_an_unknown():
    """Given the truth a row is noise: joint densities are those of the two."""
    with pm.Model(coords={"area": ["a", "b"]}) as model:
        pm.Gamma("y", 2.0, 0.5, observed=[1.0, 3.0], dims="area")
    public = pmdp.published(model, {"y": [pmdp.LaplaceNoise(1.5), pmdp.Clipped(upper=3.0)]})
    assert [rv.name for rv in public.free_RVs] == ["y_true"]
    truth = np.array([2.0, 1.2])
    got = rows(public, {"y_true_log__": np.log(truth)})
    np.testing.assert_allclose(got, [stats.laplace(2.0, 1.5).logpdf(1.0), stats.laplace(1.2, 1.5).logsf(3.0)], rtol=1e-9)


ANSWERS = np.array([0, 1, 1, 0, 2])


def test_randomised_answers_of_a_regression():
    x = np.array([-1.0, 0.5, 2.0])
    with pm.Model() as model:
        slope = pm.Normal("slope")
        pm.Bernoulli("y", logit_p=slope * x, observed=[0, 1, 0])
    public = pmdp.published(model, {"y": pmdp.RandomisedResponse(0.8)})
    p = 1 / (1 + np.exp(-0.7 * x))
    told = p * 0.8 + (1 - p) * 0.2
    np.testing.assert_allclose(np.exp(rows(public, {"slope": 0.7})), [1 - told[0], told[1], 1 - told[2]], rtol=1e-9)


@pytest.mark.parametrize("law", [pmdp.RandomisedResponse(0.6, levels=3), pmdp.Transitions([[0.7, 0.2, 0.1], [0, 1, 0], [0.3, 0.3, 0.4]])])
def test_randomised_answers_of_several_levels(law):
    p = np.random.default_rng(1).dirichlet([1, 2, 3], size=5)
    with pm.Model() as model:
        pm.Categorical("y", p=p, observed=ANSWERS)
    told = p @ law.table(0.6)
    np.testing.assert_allclose(np.exp(rows(pmdp.published(model, {"y": law}))), told[np.arange(5), ANSWERS], rtol=1e-9)


def test_a_probability_of_the_truth_for_every_row():
    with pm.Model() as model:
        pm.Bernoulli("y", 0.3, observed=[1, 1])
    got = rows(pmdp.published(model, {"y": pmdp.RandomisedResponse([0.9, 0.6])}))
    np.testing.assert_allclose(np.exp(got), [0.3 * 0.9 + 0.7 * 0.1, 0.3 * 0.6 + 0.7 * 0.4], rtol=1e-9)


def test_a_scale_and_a_threshold_for_every_row_also_where_rows_are_missing():
    scales, lowest, seen = np.array([[1.0, 4.0], [2.0, 8.0]]), np.array([[3, 9], [5, 7]]), np.array([[6, np.nan], [np.nan, 11]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pm.Model(coords={"a": range(2), "b": range(2)}) as model:
            pm.Poisson("y", np.array([[4.0, 5.0], [6.0, 7.0]]), observed=seen, dims=("a", "b"))
    law = [pmdp.DiscreteLaplace(scales), pmdp.Threshold(lowest, absent="listed")]
    s = MANY[:700]
    expected = [
        np.log((stats.poisson(4).pmf(s) * stats.dlaplace(1.0).pmf(6 - s)).sum()),
        np.log((stats.poisson(7).pmf(s) * stats.dlaplace(1 / 8).pmf(11 - s)).sum()),
        np.log((stats.poisson(5).pmf(s) * stats.dlaplace(1 / 4).cdf(8 - s)).sum()),
        np.log((stats.poisson(6).pmf(s) * stats.dlaplace(1 / 2).cdf(4 - s)).sum()),
    ]
    public = pmdp.published(model, {"y": law})
    assert [rv.name for rv in public.observed_RVs] == ["y", "y_absent"]
    assert not public.free_RVs
    np.testing.assert_allclose(rows(public), expected, rtol=1e-9)
    with pm.Model() as model:
        pm.Poisson("y", np.array([[4.0, 5.0], [6.0, 7.0]]), observed=np.zeros((2, 2), dtype=int))
    np.testing.assert_allclose(rows(pmdp.published(model, {"y": law}, values={"y": seen})), np.array(expected)[[0, 2, 3, 1]], rtol=1e-9)


@pytest.mark.parametrize(("law", "noise"), [(pmdp.DiscreteLaplace, "laplace"), (pmdp.DiscreteGaussian, "gaussian")])
def test_an_unknown_scale(law, noise):
    """Of counts, where the scale is computed from an unknown, it is that of the model."""
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 3.0)
        pm.Poisson("y", np.array([6.3, 2.0]), observed=[8, -2])
    public = pmdp.published(model, {"y": law(2 * scale, largest=20)})
    chances, s = noise_of(noise, scale=2 * 1.3), MANY[:400]
    got = rows(public, {"scale_log__": np.log(1.3)})
    expected = [np.log((stats.poisson(mu).pmf(s) * chances(v - s)).sum()) for mu, v in ((6.3, 8), (2.0, -2))]
    np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_an_unknown_scale_of_real_noise():
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 3.0)
        pm.Normal("y", 1.0, 2.0, observed=[0.5, 4.0])
    got = rows(pmdp.published(model, {"y": pmdp.GaussianNoise(scale)}), {"scale_log__": np.log(1.3)})
    np.testing.assert_allclose(got, stats.norm(1.0, np.hypot(2.0, 1.3)).logpdf([0.5, 4.0]), rtol=1e-9)


def test_zero_inflated_hurdle_and_mixed_counts():
    seen = np.array([0, 3, 9])
    s = MANY[:400]

    def rounded(value):
        return np.clip(1 - np.abs(value - s) / 3, 0, None)

    inflated = 0.7 * stats.poisson(4.0).pmf(s) + 0.3 * (s == 0)
    mixed = 0.4 * stats.poisson(1.0).pmf(s) + 0.6 * stats.poisson(8.0).pmf(s)
    with pm.Model() as model:
        pm.ZeroInflatedPoisson("a", np.array(0.7), np.full(3, 4.0), observed=seen)
        pm.Mixture("b", np.array([0.4, 0.6]), [pm.Poisson.dist(1.0, shape=3), pm.Poisson.dist(8.0, shape=3)], observed=seen)
    got = rows(pmdp.published(model, dict.fromkeys("ab", pmdp.RoundedToBase(3))))
    np.testing.assert_allclose(got, [np.log((f * rounded(v)).sum()) for f in (inflated, mixed) for v in seen], rtol=1e-7)


GRADIENTS = {
    "Poisson": lambda a, b, seen: pm.Poisson("y", pm.math.exp(a + b * np.arange(len(seen))), observed=seen),
    "Binomial": lambda a, b, seen: pm.Binomial("y", 60, pm.math.sigmoid(a + b * np.arange(len(seen)) - 3), observed=seen),
    "NegativeBinomial": lambda a, b, seen: pm.NegativeBinomial(
        "y", mu=pm.math.exp(a), alpha=pm.math.exp(b * np.ones(len(seen))), observed=seen
    ),
}


@pytest.mark.parametrize("truth", GRADIENTS)
@pytest.mark.parametrize("at", [(1.1, 0.3), (4.5, 0.9), (-3.0, -0.5)])
def test_gradients_are_those_of_the_log_density(truth, at):
    """Also where a row is far from what the model expects."""
    for law in (
        pmdp.RoundedToBase(3),
        [pmdp.DiscreteLaplace(2.0), pmdp.Threshold(3, absent="unlisted")],
        [pmdp.Skellam(3.0), pmdp.Clipped(upper=12)],
    ):
        with pm.Model() as model:
            a, b = pm.Normal("a"), pm.Normal("b")
            GRADIENTS[truth](a, b, np.array([3, 9, 12]))
        public = pmdp.published(model, {"y": law})
        value = public.compile_logp(mode="FAST_COMPILE")
        slope = public.compile_dlogp(mode="FAST_COMPILE")({"a": np.array(at[0]), "b": np.array(at[1])})
        step = 1e-5
        for k in range(2):
            ends = [
                value({"a": np.array(at[0] + sign * step * (k == 0)), "b": np.array(at[1] + sign * step * (k == 1))}) for sign in (1, -1)
            ]
            assert slope[k] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=2e-5, abs=2e-6)


@pytest.mark.slow
def test_what_numba_compiles_is_what_python_computes():
    with pm.Model() as model:
        a = pm.Normal("a")
        pm.Poisson("y", pm.math.exp(a + np.arange(4.0)), observed=[3, 6, 9, 27])
    public = pmdp.published(model, {"y": [pmdp.DiscreteLaplace(4.0), pmdp.Threshold(3, absent="unlisted")]})
    point = {"a": np.array(0.4)}
    assert public.compile_logp()(point) == pytest.approx(public.compile_logp(mode="FAST_COMPILE")(point), rel=1e-12)
    assert public.compile_dlogp()(point) == pytest.approx(public.compile_dlogp(mode="FAST_COMPILE")(point), rel=1e-12)


def test_names_dims_order_and_starts_are_the_users():
    with pm.Model(coords={"area": ["a", "b"]}) as model:
        sigma = pm.HalfNormal("sigma", initval=0.7)
        effect = pm.Normal("effect", 0, sigma, dims="area")
        rate = pm.Deterministic("rate", pm.math.exp(effect), dims="area")
        pm.Poisson("deaths", rate, observed=[3, 6], dims="area")
    public = pmdp.published(model, {"deaths": pmdp.RoundedToBase(3)})
    assert [rv.name for rv in public.free_RVs] == ["sigma", "effect"]
    assert public.named_vars_to_dims == model.named_vars_to_dims
    assert public.initial_point()["sigma_log__"] == pytest.approx(np.log(0.7))
    assert model.initial_point()["sigma_log__"] == pytest.approx(np.log(0.7))
    assert public.rvs_to_values[public["deaths"]].eval().tolist() == [3, 6]
    assert [rv.name for rv in model.observed_RVs] == ["deaths"]
    assert not hasattr(model, "publication")


def test_draws_say_whose_promise_it_is_and_claim_no_epsilon():
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 0.1)
        pm.Poisson("deaths", rate, observed=[3, 6, 3])
    public = pmdp.published(model, {"deaths": pmdp.codebooks.rr3()})
    tree = pmdp.sample(60, tune=60, chains=1, model=public, progressbar=False, random_seed=1)
    assert tree.posterior["rate"].shape == (1, 60)
    assert tree.privacy["law"].values.tolist() == ["rounded at random to a multiple of 3"]
    assert "Stats NZ" in tree.privacy["source"].values[0]
    for node in (tree, tree.privacy, tree.posterior):
        assert "epsilon" not in node.attrs
        assert node.attrs["promise"].startswith("the publisher's")
    assert tree["posterior"]["rate"].mean() == pytest.approx(4.3, abs=2)
    with pytest.raises(pmdp.Refusal, match="holds no release"):
        pmdp.Release.from_datatree(tree)
    with pytest.raises(pmdp.Refusal, match="does not say what its promise covers"):
        pmdp.to_share(tree)


@pytest.mark.parametrize(
    "argument",
    [{"epsilon": 1.0}, {"bounds": {"y": (0, 1)}}, {"public": ["a"]}, {"delta": 1e-6}, {"mechanism": "gaussian"}, {"unit": "day"}],
)
def test_nothing_is_spent_on_published_numbers(argument):
    with pm.Model() as model:
        pm.Poisson("y", pm.Gamma("rate", 2, 1), observed=[3, 6, 3])
    public = pmdp.published(model, {"y": pmdp.RoundedToBase(3)})
    with pytest.raises(pmdp.Refusal, match=f"Leave {next(iter(argument))} out"):
        pmdp.sample(model=public, **argument)
