"""``Noisy`` says what ``published`` says, sums over truths to the same, and draws what its likelihood says."""

import numpy as np
import pymc as pm
import pytest
from checks import mostly_slow
from scipy import stats
from test_noisy_numbers import LATER, NOISES, rows

import pymc_dp as pmdp

OBSERVED = [0, 5, 8]
CHANCE = 1e-6
"""Of a false alarm, of each test of draws."""
DRAWS = 20_000
LAWS = {
    **{f"{noise}, {later}": [NOISES[noise][0], *LATER[later][0]] for noise, later in [("laplace", "clipped"), ("gaussian", "nothing")]},
    "skellam, rounded": [NOISES["skellam"][0], pmdp.Rounded(4, ties="even")],
    "table": NOISES["table"][0],
    "base": pmdp.RoundedToBase(3),
    "Laplace, rounded": [pmdp.LaplaceNoise(2.5), pmdp.Rounded(1)],
    "Gaussian, rounded, clipped": [pmdp.GaussianNoise(2.5), pmdp.Rounded(2), pmdp.Clipped(lower=-4)],
    "only rounded": pmdp.Rounded(5),
    "cell keys": pmdp.Transitions(np.tril(np.ones((40, 40))) / np.arange(1, 41)[:, None]),
}


def written(truth, law, observed):
    with pm.Model() as model:
        variable = pmdp.Noisy("y", truth(), law, observed=observed)
    return model, variable


@pytest.mark.parametrize("name", LAWS)
def test_it_is_what_published_makes_of_a_model_of_the_truth(name):
    observed = np.array({"skellam, rounded": [0, 8, 4], "only rounded": [0, 5, 10]}.get(name, [0, 6, 12]), dtype=float)
    means = np.array([2.0, 6.3, 9.0])
    model, _ = written(lambda: pm.Poisson.dist(means), LAWS[name], observed)
    with pm.Model() as truth:
        pm.Poisson("y", means, observed=np.zeros(3))
    public = pmdp.published(truth, {"y": LAWS[name]}, values={"y": observed})
    assert rows(model) == pytest.approx(rows(public), abs=1e-12)


@pytest.mark.parametrize("absent", ["listed", "unlisted"])
def test_a_row_below_a_threshold_is_nan_in_its_place(absent):
    """Given the truth, too: as much less as the threshold makes of it."""
    noise, scale = pmdp.DiscreteLaplace(3.0), 3.0
    observed = [5.0, np.nan] if absent == "listed" else [5.0, 7.0]
    law = [noise, pmdp.Threshold(4, absent=absent)]
    model, _ = written(lambda: pm.math.constant(np.array([2, 2])), law, observed)
    apart = stats.dlaplace(1 / scale)
    shown = apart.sf(1)  # 4 and more are 2 and more above the truth
    expected = [apart.pmf(3), 1 - shown] if absent == "listed" else [apart.pmf(3) / shown, apart.pmf(5) / shown]
    assert np.exp(rows(model)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", [name for name in LAWS if name != "cell keys"])
def test_given_every_truth_it_sums_to_what_it_says_of_their_distribution(name):
    """Also far from what was published, where a truth has no chance."""
    counts = np.arange(120)
    for observed in (0.0, 8.0 if name == "laplace, clipped" else 60.0):
        model, _ = written(lambda: pm.Poisson.dist(6.3), LAWS[name], [observed])
        given, _ = written(lambda: pm.math.constant(counts), LAWS[name], np.full(len(counts), observed))
        summed = np.exp(rows(given)) @ stats.poisson(6.3).pmf(counts)
        assert summed == pytest.approx(np.exp(rows(model)[0]), rel=1e-9, abs=1e-300)


def surprise(draws, model_of):
    """The p-value of whole draws under the likelihood."""
    values, counts = np.unique(draws, return_counts=True)
    chances = np.exp(rows(model_of(values)))
    assert 0.999 < chances.sum() <= 1 + 1e-9
    likely = chances * len(draws) > 10
    expected = np.append(chances[likely], 1 - chances[likely].sum()) * len(draws)
    found = np.append(counts[likely], counts[~likely].sum())
    return stats.chisquare(found[expected > 0], expected[expected > 0] * len(draws) / expected[expected > 0].sum()).pvalue


@pytest.mark.parametrize("name", mostly_slow(LAWS, 0, 4))
def test_new_numbers_are_drawn_as_the_likelihood_says(name):
    """20,000 draws: a mean of the truth of 6.3 where 6 is claimed is found out, and a noise a tenth too wide (next test)."""

    def model_of(values, mean=6.3):
        return written(lambda: pm.Poisson.dist(np.full(len(values), mean)), LAWS[name], values)[0]

    draws = pm.draw(model_of(np.zeros(1))["y"], draws=DRAWS, random_seed=3, mode="FAST_COMPILE").ravel()
    assert surprise(draws, model_of) > CHANCE
    assert surprise(draws, lambda values: model_of(values, mean=6.0)) < CHANCE


@pytest.mark.slow
def test_a_noise_a_tenth_too_wide_is_found_out():
    def model_of(values, scale=3.0):
        return written(lambda: pm.Binomial.dist(4, 0.5, shape=len(values)), pmdp.DiscreteLaplace(scale), values)[0]

    draws = pm.draw(model_of(np.zeros(1))["y"], draws=DRAWS, random_seed=3, mode="FAST_COMPILE").ravel()
    assert surprise(draws, model_of) > CHANCE
    assert surprise(draws, lambda values: model_of(values, scale=3.3)) < CHANCE


def test_every_row_is_drawn_with_its_own_scale_and_from_levels():
    with pm.Model():
        pmdp.Noisy("a", pm.Normal.dist(np.array([0.0, 100.0])), pmdp.GaussianNoise([3.0, 0.01]), observed=[0, 0])
        p = pm.Dirichlet("p", np.array([5e4, 3e4, 2e4]))
        pmdp.Noisy("told", pm.Categorical.dist(p=p), pmdp.RandomisedResponse([0.4, 1.0], levels=3), observed=[0, 2])
        level = pm.Normal("level", 50, 1)
        pmdp.Noisy("given", level * np.ones(2), [pmdp.LaplaceNoise(0.001), pmdp.Rounded(10)], observed=[50.0, 50.0])
        drawn = pm.sample_prior_predictive(4000, random_seed=1, compile_kwargs={"mode": "FAST_COMPILE"}).prior_predictive
    wide = 5 / np.sqrt(2 * 4000)  # five standard errors, relative
    assert drawn["a"].std(("chain", "draw")).values == pytest.approx([np.sqrt(10), np.sqrt(1.0001)], rel=wide)
    shares = [(drawn["told"] == k).mean(("chain", "draw")).values for k in range(3)]
    expected = [[0.3 + 0.1 * p, p] for p in (0.5, 0.3, 0.2)]
    assert np.array(shares) == pytest.approx(np.array(expected), abs=5 * 0.5 / np.sqrt(4000))
    assert set(np.unique(drawn["given"])) == {50.0}


def test_published_models_are_drawn_from_as_well_unless_rows_are_left_out():
    with pm.Model(coords={"area": ["a", "b"]}) as truth:
        pm.Poisson("deaths", pm.Gamma("rate", 200, 20, dims="area"), observed=[6, 12], dims="area")
    public = pmdp.published(truth, {"deaths": pmdp.RoundedToBase(3)})
    with public:
        drawn = pm.sample_prior_predictive(400, random_seed=1).prior_predictive["deaths"]
    assert drawn.dims == ("chain", "draw", "area")
    assert (drawn % 3 == 0).all()
    left_out = pmdp.published(truth, {"deaths": [pmdp.DiscreteLaplace(1.0), pmdp.Threshold(4, absent="unlisted")]})
    with left_out, pytest.raises(NotImplementedError, match="random"):
        pm.sample_prior_predictive(4)


@pytest.mark.slow
def test_a_sum_of_unknown_counts_is_drawn_given_what_was_published():
    """The posterior of two counts whose noisy sum was published, against enumeration; a false alarm has a chance of 1e-6 or less."""
    law = pmdp.DiscreteLaplace(1.5)
    with pm.Model():
        parts = pm.Poisson("parts", np.array([2.0, 3.0]))
        pmdp.Noisy("total", parts.sum(), law, observed=9)
        step = pm.Metropolis(compile_kwargs={"mode": "FAST_COMPILE"})
        tree = pm.sample(6000, tune=500, chains=2, cores=1, step=step, progressbar=False, random_seed=1, compute_convergence_checks=False)
    s = np.arange(60)
    weights = stats.poisson(5.0).pmf(s) * np.exp(-np.abs(9 - s) / 1.5)
    mean = (weights @ s) / weights.sum()
    sd = np.sqrt((weights @ (s - mean) ** 2) / weights.sum())
    found = tree.posterior["parts"].sum("parts_dim_0")
    # Steps of Metropolis remember some twenty draws.
    assert float(found.mean()) == pytest.approx(mean, abs=5 * sd / np.sqrt(12_000 / 20))


@pytest.mark.parametrize(
    ("truth", "law", "words"),
    [
        (lambda: 3.0, pmdp.DiscreteLaplace(1.0), "distribution or an expression"),
        (lambda: pm.MvNormal.dist(np.zeros(3), np.eye(3)), pmdp.GaussianNoise(1.0), "multivariate"),
        (lambda: pm.Poisson.dist(3.0, shape=2), pmdp.DiscreteLaplace(1.0), "one true number for every row"),
        (lambda: pm.Normal("m"), pmdp.Exact(), "no unknown"),
        (lambda: pm.Normal("m"), pmdp.DiscreteLaplace(1.0), "for counts"),
        (lambda: pm.Poisson("m", 3), None, "as a number"),
        (lambda: pm.Poisson.dist(3), "noise", "what was done"),
        (lambda: pm.Poisson.dist(3), pmdp.RoundedToBase(4), "no multiple of 4"),
    ],
)
def test_what_is_not_understood_is_refused(truth, law, words):
    with pm.Model(), pytest.raises(pmdp.Refusal, match=words):
        pmdp.Noisy("y", truth(), pmdp.DiscreteLaplace(pm.HalfNormal("s")) if law is None else law, observed=OBSERVED)
