"""Rows that were not published because their true counts were small: log-densities and posteriors against enumeration by SciPy."""

import warnings

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dp as pmdp

MANY = np.arange(400)
NOISES = {
    "no noise": (None, lambda s: (s == MANY).astype(float)),
    "laplace": (pmdp.DiscreteLaplace(2.0), lambda s: stats.dlaplace(0.5).pmf(MANY - s)),
    "real gaussian": (pmdp.GaussianNoise(1.5), lambda s: stats.norm(0, 1.5).pdf(MANY - s)),
    "base 3": (pmdp.RoundedToBase(3), lambda s: np.where(MANY % 3 == 0, np.maximum(1 - np.abs(MANY - s) / 3, 0), 0)),
}
TRUTHS = {
    "Poisson": (lambda y: pm.Poisson("y", np.full(len(y), 6.3), observed=y), stats.poisson(6.3)),
    "Binomial": (lambda y: pm.Binomial("y", 17, np.full(len(y), 0.4), observed=y), stats.binom(17, 0.4)),
    "NegativeBinomial": (lambda y: pm.NegativeBinomial("y", mu=np.full(len(y), 6.0), alpha=1.7, observed=y), stats.nbinom(1.7, 1.7 / 7.7)),
    "Geometric": (lambda y: pm.Geometric("y", np.full(len(y), 0.2), observed=y), stats.geom(0.2)),
}


def by_row(public):
    """Log-densities by row: those that were published, and those that were not."""
    parts = public.compile_logp(vars=public.observed_RVs, sum=False, mode="FAST_COMPILE")(public.initial_point())
    return {variable.name: np.ravel(part) for variable, part in zip(public.observed_RVs, parts, strict=True)}


def enumerated(noise, truth, published, first, last):
    """Every true count in turn: hidden, or shown and then published as it was."""
    chances = truth.pmf(MANY)
    hidden = (first <= MANY) & (last >= MANY)
    there = [np.log(sum(chances[s] * noise(s)[int(z)] for s in MANY[:100] if not hidden[s])) for z in published[~np.isnan(published)]]
    return np.array(there), np.log(chances[hidden].sum())


@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize("family", TRUTHS)
def test_rows_are_as_probable_as_enumeration_says(kind, family):
    """Of each family, with each noise after the rule, for rows that were shown and rows that were not."""
    law, noise = NOISES[kind]
    distribution, truth = TRUTHS[family]
    shown = [15.0, 12.0] if family == "Geometric" or law is None else [0.0, 6.0, 12.0]
    published = np.array([*shown, np.nan, np.nan])
    with pm.Model() as model, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        distribution(np.zeros(len(published)) if kind == "real gaussian" else published)
    steps = [pmdp.Suppressed(1, 4)] + ([] if law is None else [law])
    values = {"values": {"y": published}} if kind == "real gaussian" else {}
    got = np.concatenate(list(by_row(pmdp.published(model, {"y": steps}, **values)).values()))
    there, absent = enumerated(noise, truth, published, 1, 4)
    np.testing.assert_allclose(np.sort(got), np.sort([*there, absent, absent]), rtol=1e-7)


def test_ends_by_row_and_rounding_afterwards():
    """Other ends in every row; what is shown is rounded to fives, so that 0 stands for 0 to 2, of which 1 and 2 were not shown."""
    published, lowest, highest = np.array([0.0, np.nan, 5.0, np.nan]), np.array([1, 1, 3, 0]), np.array([5, 9, 4, 2])
    with pm.Model() as model, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pm.Poisson("y", np.full(4, 3.2), observed=published)
    got = by_row(pmdp.published(model, {"y": [pmdp.Suppressed(lowest, highest), pmdp.Rounded(5)]}))
    chance = stats.poisson(3.2).pmf
    np.testing.assert_allclose(got["y"], np.log([chance(0), chance(5) + chance(6) + chance(7)]), rtol=1e-9)
    [absent] = [part for name, part in got.items() if name != "y"]
    np.testing.assert_allclose(absent, np.log([chance(np.arange(1, 10)).sum(), chance(np.arange(3)).sum()]), rtol=1e-9)


def test_beside_an_unknown_truth():
    """``Noisy`` of a sum of two unknown counts: a count between the ends has no chance where the row was shown."""
    with pm.Model() as model:
        a, b = pm.Poisson("a", 3.0, shape=2), pm.Poisson("b", 4.0, shape=2)
        pmdp.Noisy("y", a + b, [pmdp.Suppressed(1, 5), pmdp.DiscreteLaplace(1.0)], observed=[6.0, np.nan])
    density = model.compile_logp(vars=[model["y"]], sum=False, mode="FAST_COMPILE")
    for total in range(12):
        half = {"a": np.array([total // 2] * 2), "b": np.array([total - total // 2] * 2)}
        [got] = density(half)
        hidden = 1 <= total <= 5
        expected = [-np.inf if hidden else stats.dlaplace(1.0).logpmf(6 - total), 0.0 if hidden else -np.inf]
        np.testing.assert_allclose(np.where(got < -1e5, -np.inf, got), expected, rtol=1e-7)


def test_intervals_hold_rates_that_small_cells_would_bias():
    """Of 2,000 tables of 20 small cells, by a grid: ranks are uniform. Taking the shown cells alone is off by more than 10 %.

    Chi-square in 20 bins at one in a million. A shift of ranks by .05 would be found with probability above .99.
    """
    rng, grid = np.random.default_rng(3), np.linspace(0.01, 40, 800)
    prior, ranks, naive = stats.gamma(2, scale=3).logpdf(grid), [], []
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1 / 3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pm.Poisson("y", rate * np.ones(20), observed=np.where(np.arange(20) == 19, np.nan, 12.0))
    public = pmdp.published(model, {"y": pmdp.Suppressed(1, 9)})
    law = public.compile_logp(vars=public.observed_RVs, sum=False, mode="FAST_COMPILE")
    transformed = public.value_vars[0].name
    log_absent = np.log(np.diff(stats.poisson(grid).cdf(np.array([[0], [9]])), axis=0)[0])
    for value, absent in zip(grid[::40], log_absent[::40], strict=True):
        got = law({transformed: np.log(value)})
        np.testing.assert_allclose([got[0][0], got[1][0]], [stats.poisson(value).logpmf(12), absent], rtol=1e-7)
    for _ in range(2000):
        true = rng.gamma(2, 3)
        counts = rng.poisson(true, 20)
        shown = counts[(counts < 1) | (counts > 9)]
        log = prior + (20 - len(shown)) * log_absent + stats.poisson(grid[:, None]).logpmf(shown).sum(axis=1)
        weights = np.exp(log - log.max())
        ranks.append(float(weights[grid < true].sum() / weights.sum()))
        if len(shown):
            naive.append(abs(shown.mean() - true) / true)
    assert stats.chisquare(np.histogram(ranks, 20, (0, 1))[0]).pvalue > 1e-6
    assert np.median(naive) > 0.1


REFUSED = {
    "a real truth": (lambda y: pm.Normal("y", 0, 1, observed=y), [pmdp.Suppressed(1, 2)], "is no count"),
    "after the noise": (None, [pmdp.DiscreteLaplace(1.0), pmdp.Suppressed(1, 2)], "before any noise"),
    "beside a threshold": (None, [pmdp.Suppressed(1, 2), pmdp.Threshold(3, absent="listed")], "not understood together"),
    "beside clipping": (None, [pmdp.Suppressed(1, 2), pmdp.DiscreteLaplace(1.0), pmdp.Clipped(lower=0)], "not understood together"),
    "a row that would not be shown": (None, [pmdp.Suppressed(4, 8)], "would not have been shown"),
    "ends of another shape": (None, [pmdp.Suppressed([1, 2, 3], 8)], "array of shape"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_understood_is_refused(case):
    """In words that say what to write."""
    distribution, steps, words = REFUSED[case]
    with pm.Model() as model, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (distribution or (lambda y: pm.Poisson("y", 3.0, observed=y)))(np.array([6.0, np.nan]))
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.published(model, {"y": steps})


@pytest.mark.parametrize("ends", [(5, 2), (-1, 3), (1.5, 3), (1, np.inf), (np.nan, 2)])
def test_ends_are_counts(ends):
    """Whole, finite, from 0 on, the lower one first."""
    with pytest.raises(pmdp.Refusal, match="Suppressed"):
        pmdp.Suppressed(*ends)
