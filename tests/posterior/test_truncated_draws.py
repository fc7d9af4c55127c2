"""Draws under priors that were cut off: their law, from SciPy's densities; what a record can do; and what the result says."""

import json
from fractions import Fraction

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import mostly_slow
from scipy import stats
from scipy.special import logsumexp
from scipy.stats import chisquare, kstest
from test_draws import Choices

import pymc_dp as pmdp
from pymc_dp.posterior.price import NAT
from pymc_dp.privacy import mechanisms

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(11)
N = 40
X, K = np.clip(RNG.standard_t(4, N) + 0.5, -4, 5), RNG.integers(0, 7, N)


@pytest.fixture
def seam(monkeypatch):
    found = Choices()
    monkeypatch.setattr(mechanisms, "_opendp_choice", found)
    return found


def draw(model, epsilon, bounds, truncate="prior", draws=1, **how):
    return pmdp.sample(model=model, epsilon=epsilon, bounds=bounds, mechanism=pmdp.PosteriorSample(draws, truncate=truncate, **how))


# ---------- models: records -> model, bounds
def student(x=X):
    with pm.Model() as model:
        pm.StudentT("x", nu=4, mu=pm.Normal("mu", 0, 2), sigma=1, observed=x)
    return model, {"x": (-4, 5)}


def hierarchy(x=X):
    with pm.Model() as model:
        m = pm.Normal("m")
        t = pm.Normal("t", m, pm.HalfNormal("s", 0.5))
        pm.Logistic("x", t, 1.0, observed=x)
    return model, {"x": (-4, 5)}


def censored(x=X):
    with pm.Model() as model:
        pm.Censored("x", pm.Normal.dist(pm.Normal("mu"), 1), lower=-1.0, upper=2.0, observed=np.clip(x, -1, 2))
    return model, {"x": (-1, 2)}


def mixture(x=X):
    with pm.Model() as model:
        pm.Mixture(
            "x", pm.math.stack([w := pm.Beta("w", 2, 2), 1 - w]), [pm.Normal.dist(pm.Normal("mu"), 1), pm.Cauchy.dist(0, 3)], observed=x
        )
    return model, {"x": (-4, 5)}


def hurdle(x=K):
    with pm.Model() as model:
        pm.HurdlePoisson("x", pm.Beta("psi", 2, 2), pm.Gamma("rate", 3, 1), observed=x)
    return model, {"x": (0, 8)}


def truncated(x=X):
    with pm.Model() as model:
        pm.TruncatedNormal("x", pm.Normal("mu"), 2.0, lower=-4, upper=5, observed=np.clip(x, -4, 5))
    return model, {"x": (-4, 5)}


def skewed(x=X):
    with pm.Model() as model:
        pm.AsymmetricLaplace("x", b=1.0, q=0.75, mu=pm.Normal("mu"), observed=x)
    return model, {"x": (-4, 5)}


MODELS = [student, hierarchy, censored, mixture, hurdle, truncated, skewed]


# ---------- the law
def test_scores_are_the_log_posterior_on_the_interval(seam):
    """Student's t and a normal prior, from SciPy: at every point of the grid, without flattening."""
    model, bounds = student()
    draw(model, 1000.0, bounds, points=301)
    grid = np.linspace(*stats.norm(0, 2).ppf([0.001, 0.999]), 301)
    expected = stats.norm(0, 2).logpdf(grid) + stats.t(4).logpdf(X[:, None] - grid).sum(axis=0)
    assert np.allclose(seam.log_probability(), expected - logsumexp(expected), atol=N / NAT + 1e-5)


def test_a_hierarchy_has_its_own_prior_given_the_box(seam):
    """Nothing is renormalised within the box: the law of t given m and s stays that of the model, and the joint prior is conditioned."""
    model, bounds = hierarchy()
    draw(model, 1000.0, bounds, points=15)
    low, high = stats.norm.ppf([0.001, 0.999])
    most = stats.halfnorm(scale=0.5).ppf(0.999)
    m = np.linspace(low, high, 15)
    s = np.linspace(stats.halfnorm(scale=0.5).ppf(0.001), most, 15)
    t = np.linspace(low + most * low, high + most * high, 15)
    m, s, t = (axis.ravel() for axis in np.meshgrid(m, s, t, indexing="ij"))
    expected = stats.norm.logpdf(m) + stats.halfnorm(scale=0.5).logpdf(s) + stats.norm(m, s).logpdf(t)
    expected += stats.logistic.logpdf(X[:, None] - t).sum(axis=0)
    names = [name for name in model.named_vars if name in {"m", "s", "t"}]
    shape = {"m": 0, "s": 1, "t": 2}
    expected = expected.reshape(15, 15, 15).transpose([shape[name] for name in names]).ravel()
    expected = np.maximum(expected - logsumexp(expected), -600)
    found = np.maximum(seam.log_probability(), -600)
    assert np.allclose(found, expected, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("body", [student, censored])
def test_draws_have_the_law_of_the_truncated_posterior(body):
    """4,000 draws, unflattened, against the posterior on a grid of another kind, from SciPy: a false alarm once in a million.

    Ten equally likely parts: a law that is shifted by a tenth of a standard deviation is found with probability .9.
    """
    model, bounds = body()
    drawn = draw(model, 1e6, bounds, draws=4000)["posterior"]["mu"].values.ravel()
    prior = stats.norm(0, 2 if body is student else 1)
    fine = np.linspace(*prior.ppf([0.001, 0.999]), 20011)
    if body is student:
        each = stats.t(4).logpdf(X[:, None] - fine)
    else:
        y = np.clip(X, -1, 2)[:, None]
        each = np.where(y <= -1, stats.norm.logcdf(-1 - fine), np.where(y >= 2, stats.norm.logsf(2 - fine), stats.norm.logpdf(y - fine)))
    log_p = prior.logpdf(fine) + each.sum(axis=0)
    below = np.cumsum(np.exp(log_p - logsumexp(log_p)))
    parts = np.bincount(np.minimum((np.interp(drawn, fine, below) * 10).astype(int), 9), minlength=10)
    assert chisquare(parts).pvalue > 1e-6
    assert drawn.min() >= fine[0]
    assert drawn.max() <= fine[-1]


@pytest.mark.slow
def test_chains_stay_within_the_intervals_and_agree_with_the_grid():
    """60 chains against the exact law of the grid: a false alarm once in a million; an interval left out is found by the ends."""
    model, bounds = student()
    cut = {"mu": (0.6, 1.5)}
    drawn = draw(model, 1e6, bounds, cut, draws=60, method="mcmc", tune=300, steps=100)["posterior"]["mu"].values.ravel()
    assert drawn.min() >= 0.6
    assert drawn.max() <= 1.5
    fine = np.linspace(0.6, 1.5, 5001)
    log_p = stats.norm(0, 2).logpdf(fine) + stats.t(4).logpdf(X[:, None] - fine).sum(axis=0)
    below = np.cumsum(np.exp(log_p - logsumexp(log_p)))
    assert kstest(np.interp(drawn, fine, below), "uniform").pvalue > 1e-6


def test_a_chain_never_leaves_its_interval():
    """Far from where the posterior is: a chain that could leave would."""
    model, bounds = student()
    drawn = draw(model, 1e6, bounds, {"mu": (2.5, 2.6)}, draws=2, method="mcmc", tune=10, steps=5)["posterior"]["mu"].values
    assert drawn.min() >= 2.5
    assert drawn.max() <= 2.6


@pytest.mark.slow
def test_chains_draw_from_every_kind_of_prior():
    """Priors of all transforms, a vector and one that has ends of its own: every state lies in its interval."""
    with pm.Model(coords={"group": ["a", "b"]}) as model:
        parts = [
            pm.HalfCauchy("half", 1), pm.Gamma("gamma", 2, 1), pm.InverseGamma("inverse", 3, 1), pm.Exponential("rate", 1),
            pm.LogNormal("log", 0, 1), pm.Weibull("weibull", 2, 1), pm.Beta("beta", 2, 2), pm.Uniform("flat", 0, 1),
            pm.Cauchy("wide", 0, 1), pm.Truncated("cut", pm.Normal.dist(0, 1), lower=-0.5), pmdp.TrimmedBeta("trimmed", 1, 1, smallest=0.2),
            pm.Normal("vector", 0, 1, dims="group")[0],
        ]  # fmt: skip
        pm.StudentT("x", nu=4, mu=pm.Deterministic("mu", pt.tanh(sum(parts))), sigma=1, observed=X)
    tree = draw(model, 50.0, {"x": (-4, 5)}, {"wide": (-2, 2)}, method="mcmc", tune=10, steps=3)
    found = json.loads(tree.attrs["intervals"])
    assert set(found) == {*(rv.name for rv in model.free_RVs)} - {"trimmed"}
    for name, (low, high) in found.items():
        assert np.min(low) <= tree["posterior"][name].values.min()
        assert tree["posterior"][name].values.max() <= np.max(high)
    assert 0.2 <= tree["posterior"]["trimmed"].item() <= 0.8


# ---------- what one record can do
@pytest.mark.parametrize("body", mostly_slow(MODELS, 0, 2, 4))
def test_no_record_moves_the_scores_by_more_than_is_paid_for(seam, body):
    """Pairs of records at the ends of their bounds, beyond them, no numbers, and then climbing: in integers, and a third of it is used."""
    _, bounds = body()
    low, high = bounds["x"]
    points = {"points": 9 if body in (hierarchy, mixture) else 21}

    def scores(value):
        x = np.array(K if body is hurdle else X)
        x[3] = value
        draw(body(x)[0], 1.0, bounds, **points)
        return seam.scores[-1]

    tried = [low, high, low - 50, high + 50] + ([1] if body is hurdle else [np.nan, (low + high) / 2, low / 2])
    several = [scores(value) for value in tried]
    used, pair = max((int(np.ptp(a - b)), (i, j)) for i, a in enumerate(several) for j, b in enumerate(several) if i < j)
    if body is not hurdle:
        rng, best = np.random.default_rng(2), [tried[k] for k in pair]
        for step in range(4):
            place = step % 2
            candidate = list(best)
            candidate[place] = rng.uniform(low, high)
            now = int(np.ptp(scores(candidate[0]) - scores(candidate[1])))
            if now > used:
                used, best = now, candidate
    assert Fraction(used) <= Fraction(seam.scales[-1])
    assert used / seam.scales[-1] > 1 / 3


def test_all_pairs_of_counts_are_within_the_price(seam):
    """Few records can occur, so all pairs of them are tried: the largest range of the difference is the price exactly."""
    several = []
    for value in range(9):
        x = np.array(K)
        x[3] = value
        tree = draw(hurdle(x)[0], 1.0, {"x": (0, 8)}, points=15)
        several.append(seam.scores[-1])
    used = max(int(np.ptp(a - b)) for a in several for b in several)
    assert used == round(float(tree["privacy"].attrs["range"]) * NAT)


@pytest.mark.parametrize("body", [censored, mixture, truncated, skewed])
def test_no_missing_value_shows_in_what_is_paid(seam, body):
    """Whether a value is missing makes PyMC build another graph; the price, the intervals and the other records' scores stay."""
    told = []
    for value in (0.5, np.nan):  # what is missing counts as the middle of the bounds, which is 0.5
        x = np.array(X)
        x[3] = value
        tree = draw(body(x)[0], 1.0, {"x": (-4, 5)} if body is not censored else {"x": (-1, 2)}, points=5)
        told.append((tree["privacy"].attrs["range"], tree.attrs["intervals"], seam.scores[-1].tolist()))
    assert told[0] == told[1]


# ---------- what is said
def test_the_result_says_where_priors_were_cut_off(seam, tmp_path):
    model, bounds = hierarchy()
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=10, create=True)
    how = pmdp.PosteriorSample(truncate={"s": (0.1, 1)}, points=9)
    tree = pmdp.sample(model=model, epsilon=1.0, bounds=bounds, mechanism=how, ledger=ledger)
    for group in ("posterior", "privacy"):
        found = json.loads(tree[group].attrs["intervals"])
        assert found["s"] == [0.1, 1.0]
        assert np.allclose(found["m"], stats.norm.ppf([0.001, 0.999]))
        assert np.allclose(found["t"], 2 * stats.norm.ppf([0.001, 0.999]))
        assert "given that every unknown lies in its interval" in tree[group].attrs["prior"]
    assert ledger.remaining().epsilon == 9


def test_the_intervals_do_not_rest_on_records(seam):
    told = {json.dumps(draw(student(x)[0], 1.0, {"x": (-4, 5)}, points=9).attrs["intervals"]) for x in (X, X * 0, X * np.nan)}
    assert len(told) == 1


@pytest.mark.slow
def test_advice_and_questions_take_it(seam):
    model, bounds = student()
    told = repr(pmdp.advise(model, epsilon=1, bounds=bounds, truncate="prior"))
    assert "priors are cut off: mu to [-6.18, 6.18]" in told
    tree = pmdp.ask({"twice": lambda draw: 2 * draw.mu}, model=model, epsilon=1, bounds=bounds, truncate={"mu": (-1, 1)})
    assert abs(float(tree["answers"]["twice"])) <= 2


def test_nothing_changes_where_it_is_not_asked_for(seam):
    with pm.Model() as model:
        pm.StudentT("x", nu=4, mu=pm.Uniform("mu", -1, 1), sigma=1, observed=X)
    tree = pmdp.sample(model=model, epsilon=1.0, bounds={"x": (-4, 5)}, mechanism=pmdp.PosteriorSample(points=9))
    assert "intervals" not in tree.attrs
    assert "prior" not in tree.attrs
