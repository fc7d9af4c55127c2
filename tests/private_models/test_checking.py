"""Checks and comparisons of models by what was released: p-values are uniform, and probabilities of a release are right."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats

import pymc_dp as pmdp
from pymc_dp.private_models.checking import _last, _p_value

N = 1200
G, H = np.arange(N) % 3, np.arange(N) // 3 % 4


def two_way(y):
    """Twelve cells of 100 records, and seven unknowns: so a release can disagree with the model."""
    with pm.Model() as model:
        a, b = pm.Normal("a", 0, 1, shape=3), pm.Normal("b", 0, 1, shape=4)
        pm.Bernoulli("y", logit_p=a[pm.Data("g", G)] + b[pm.Data("h", H)], observed=y)
    return model


A, B = np.array([-1.0, 0.0, 1.0]), np.array([0.5, -0.5, 0.0, 1.0])
P = 1 / (1 + np.exp(-(A[:, None] + B)))
"""Probabilities of the cells (3, 4)."""


def fitted(y, a=A, b=B, epsilon=0.2):
    """A tree whose every draw is the same."""
    model = two_way(y)
    released = pmdp.release(model, epsilon=epsilon, public=["g", "h"])
    private = pmdp.rewrite(model, released)
    posterior = {name: (("chain", "draw", f"{name}_0"), np.tile(value, (1, 2, 1))) for name, value in {"a": a, "b": b}.items()}
    observed = {"y": (private.named_vars_to_dims["y"], released["y"].values)}
    return model, pmdp.annotate(
        xr.DataTree.from_dict({"posterior": xr.Dataset(posterior), "observed_data": xr.Dataset(observed)}), released
    )


def test_the_expected_statistics_are_those_of_the_draw_with_noise():
    """Of a cell of 100 records: mean 100 p, variance 100 p (1 - p) and that of the noise, which is twice as large or more here.

    The mean of 4,000 replicates is off by 5 / sqrt(4000) = .08 standard deviations once in a million, their standard deviation by 6 %.
    """
    y = np.random.default_rng(1).binomial(1, P[G, H])
    model, tree = fitted(y)
    noisy = pmdp.Release.from_datatree(tree)["y"]
    p = np.array([P[int(g), int(h)] for g, h in zip(*noisy.inputs)])
    sd = np.sqrt(100 * p * (1 - p) + noisy.noise.standard_deviation**2)
    assert noisy.noise.standard_deviation**2 > 1.9 * 25
    z = (noisy.values.ravel() - 100 * p) / sd
    checked = pmdp.predictive_check(tree, model, replicates=4000, random_seed=1)
    assert checked["y_z"].dims == ("y_cell", "y_statistic")
    np.testing.assert_allclose(checked["y_z"].values.ravel(), z, atol=0.1 + 0.08 * np.abs(z).max())
    again = pmdp.predictive_check(tree, two_way(np.zeros(N, int)), replicates=4000, random_seed=1)
    xr.testing.assert_identical(checked, again)
    assert float(checked["p"].sel(variable="y")) == float(checked["p_all"])  # of one variable


def test_a_draw_that_does_not_fit_is_found_and_a_discrepancy_is_one_s_own():
    y = np.random.default_rng(1).binomial(1, P[G, H])
    model, tree = fitted(y, a=A + 3)
    assert float(pmdp.predictive_check(tree, model, replicates=199, random_seed=1)["p_all"]) == 1 / 200
    total = pmdp.predictive_check(tree, model, replicates=199, discrepancy=lambda values: float(values.sum()), random_seed=1)
    assert float(total["p_all"]) == 1.0  # all that was released is less than the draw expects
    constant = pmdp.predictive_check(tree, model, replicates=199, discrepancy=lambda _: 0.0, random_seed=1)
    assert 1 / 200 <= float(constant["p_all"]) <= 1


def test_ranks_are_uniform_with_ties():
    """Every order of 0, 0, 1 comes as often: the first of three has each rank with probability 1/3, within 5 standard errors."""
    rng = np.random.default_rng(1)
    ranks = [round(3 * _p_value(rng.permutation([0.0, 0.0, 1.0]), rng)) for _ in range(6000)]
    np.testing.assert_allclose(np.bincount(ranks, minlength=4)[1:], 2000, atol=5 * np.sqrt(6000 * 2 / 9))
    assert _p_value(np.array([3.0, 1.0, 2.0]), rng) == 1 / 3
    assert _p_value(np.array([0.0, 1.0, 2.0]), rng) == 1


def test_what_cannot_be_checked_is_refused():
    y = np.random.default_rng(1).binomial(1, P[G, H])
    model, tree = fitted(y)
    for wrong in (18, True, 100.0):
        with pytest.raises(pmdp.Refusal, match="at least 19"):
            pmdp.predictive_check(tree, model, replicates=wrong)
    for broken, words in (
        (lambda _: 1 / 0, "ZeroDivisionError"),
        (lambda values: values, "TypeError"),
        (lambda _: np.nan, "may be 0 or below"),
    ):
        with pytest.raises(pmdp.Refusal, match=words):
            pmdp.predictive_check(tree, model, discrepancy=broken)
    released = pmdp.Release.from_datatree(tree)
    posterior, observed = tree["posterior"].to_dataset(), tree["observed_data"].to_dataset()
    projected = tree.copy()
    projected["observed_data"] = xr.DataTree(observed.clip(0, 100) + 0.5)
    with pytest.raises(pmdp.Refusal, match="noise_aware=True"):
        pmdp.predictive_check(projected, model)
    with pytest.raises(pmdp.Refusal, match="what was observed"):
        pmdp.predictive_check(pmdp.annotate(xr.DataTree.from_dict({"posterior": posterior}), released), model)
    part = pmdp.annotate(xr.DataTree.from_dict({"posterior": posterior.drop_vars("b"), "observed_data": observed}), released)
    with pytest.raises(pmdp.Refusal, match="does not hold b"):
        pmdp.predictive_check(part, model)


def sampled_p_value(rng, interaction):
    """Parameters and records from the prior, with an interaction that the model does not know; a release, a fit, and a check of it."""
    logit = rng.normal(size=3)[:, None] + rng.normal(size=4) + interaction * rng.normal(size=(3, 4))
    model = two_way(rng.binomial(1, 1 / (1 + np.exp(-logit[G, H]))))
    quiet = {"progressbar": False, "compute_convergence_checks": False}
    seed, other = (int(number) for number in rng.integers(2**31, size=2))
    tree = pmdp.sample(300, tune=300, chains=2, cores=1, model=model, epsilon=1.0, public=["g", "h"], missing={}, random_seed=seed, **quiet)
    return float(pmdp.predictive_check(tree, model, random_seed=other)["p_all"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_p_values_are_uniform_under_the_model_and_small_under_another():
    """Kolmogorov-Smirnov of 150 replicates, false alarms one in a million. With an interaction as large as the effects .98 are below .05:
    fewer than 15 of 20 are as seldom as that.
    """
    rng = np.random.default_rng(3)
    assert stats.kstest([sampled_p_value(rng, 0.0) for _ in range(150)], "uniform").pvalue > 1e-6
    assert np.mean([sampled_p_value(rng, 1.0) <= 0.05 for _ in range(20)]) >= 0.75


# ---------- marginal likelihoods


def share(a, b, many=200, ones=70):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", a, b), observed=np.repeat([0, 1], [many - ones, ones]))
    return model


def exact(released, a):
    """Summed over all counts and their noise."""
    noisy = released["y"]
    n, q = int(noisy.n.sum()), np.exp(-1 / noisy.scale)
    counts = np.arange(n + 1)
    noise = (1 - q) / (1 + q) * q ** np.abs(noisy.noisy.ravel()[0] - counts)
    return float(np.log(stats.betabinom(n, a, a).pmf(counts) @ noise))


def test_chains_may_need_different_numbers_of_stages():
    """As ``pm.sample_smc`` returns them: lists in an array of objects where lengths differ, else a table."""
    assert _last(np.array([[np.nan, np.nan, -5.1], [np.nan, -4.9]], dtype=object)) == [-5.1, -4.9]
    assert _last(np.array([[np.nan, -5.1], [np.nan, -4.9]], dtype=object)) == [-5.1, -4.9]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_marginal_likelihoods_are_the_sums_over_all_counts():
    """Within .15 nats, of which SMC of 4 x 2000 draws errs by .01 to .03."""
    released = pmdp.release(share(1, 1), epsilon=0.5)
    models = {"flat": share(1, 1, 4, 2), "half": share(50, 50, 4, 2)}
    found = pmdp.marginal_likelihoods(models, released, random_seed=1)
    right = np.array([exact(released, 1), exact(released, 50)])
    np.testing.assert_allclose(found["log_marginal_likelihood"], right, atol=0.15)
    assert found["model"].values.tolist() == ["flat", "half"]
    np.testing.assert_allclose(found["probability"], np.exp(right) / np.exp(right).sum(), atol=0.05)
    assert (found["error"] < 0.1).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_bayes_factors_against_the_truth_are_at_most_one_on_average():
    """Records of the flat model, so that the mean of P(release | other) / P(release | flat) is 1. The ratio is below 2.5, with a standard
    deviation of .67: a mean of 40 is above 1.5 once in a million, and were the other's probability doubled it would be 2.
    """
    rng, ratios = np.random.default_rng(4), []
    for seed in range(40):
        released = pmdp.release(share(1, 1, 200, int(rng.binomial(200, rng.uniform()))), epsilon=0.5)
        both = {"flat": share(1, 1), "five": share(5, 5)}
        found = pmdp.marginal_likelihoods(both, released, draws=500, chains=2, random_seed=seed)
        flat, five = found["log_marginal_likelihood"].values
        ratios.append(np.exp(five - flat))
    assert 0.5 < np.mean(ratios) < 1.5


def test_models_without_a_marginal_likelihood_are_refused():
    released = pmdp.release(share(1, 1), epsilon=0.5)
    for wrong in ({}, [share(1, 1)], {"one": released}):
        with pytest.raises(pmdp.Refusal, match="models by name"):
            pmdp.marginal_likelihoods(wrong, released)
    with pytest.raises(pmdp.Refusal, match="chains tell the error"):
        pmdp.marginal_likelihoods({"flat": share(1, 1)}, released, chains=1)
    potential = share(1, 1)
    with potential:
        pm.Potential("more", -potential["p"])
    with pytest.raises(pmdp.Refusal, match="Potential"):
        pmdp.marginal_likelihoods({"potential": potential}, released)
    with pm.Model() as improper:
        pm.Bernoulli("y", logit_p=pm.Flat("logit"), observed=np.array([0, 1]))
    with pytest.raises(pmdp.Refusal, match="improper prior"):
        pmdp.marginal_likelihoods({"improper": improper}, released)
    with pm.Model() as other:
        pm.Poisson("y", pm.Exponential("rate", 1), observed=np.array([0, 1]))
    with pytest.raises(pmdp.Refusal, match="another shape"):
        pmdp.marginal_likelihoods({"other": other}, released)
