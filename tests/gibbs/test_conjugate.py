"""Conjugate steps: parameters against closed posteriors, draws against exact laws, and both against the joint distribution.

False alarms: a comparison of draws with a law has probability 1e-6 (Kolmogorov-Smirnov, or a normal mean within 4.9 standard errors).
"""

from itertools import product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import ALARM, check_frequencies, seam_of
from scipy import stats

import pymc_dp as pmdp
from pymc_dp.gibbs import Conjugate, gibbs_steps
from pymc_dp.gibbs.conditional import PROBE, compiled, initial_point_of, jittered
from pymc_dp.gibbs.conjugate import conditional
from pymc_dp.gibbs.conjugate_forms import Entrywise, Jointly, Shares
from pymc_dp.gibbs.latents import latents
from pymc_dp.gibbs.loops import latent_counts, latent_tables
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.noise_law import Noise

FAR = 4.9
QUICK = {"mode": PROBE}
RNG = np.random.default_rng(3)


# ---------- draws of forms
LAWS = {
    "beta": lambda a, b: stats.beta(a, b),
    "gamma": lambda a, b: stats.gamma(a, scale=1 / b),
    "inverse gamma": lambda a, b: stats.invgamma(a, scale=b),
    "normal": lambda a, b: stats.norm(a / b, b**-0.5),
    "inverse gaussian": lambda a, b, c: stats.invgauss(np.sqrt(c / b) / (2 * c), scale=2 * c),  # a = -1/2, and stable
    "generalized inverse gaussian": lambda a, b, c: stats.geninvgauss(a, 2 * np.sqrt(b * c), scale=np.sqrt(c / b)),
}
PARAMETERS = [
    ("beta", (0.02, 3.0)), ("beta", (0.5, 0.5)), ("beta", (400.0, 7.0)),
    ("gamma", (0.05, 2.0)), ("gamma", (30.0, 1e-3)), ("inverse gamma", (0.7, 5.0)), ("inverse gamma", (40.0, 1e4)),
    ("normal", (-3.0, 0.4)),
    ("generalized inverse gaussian", (0.5, 0.3, 4.0)), ("inverse gaussian", (-0.5, 2.0, 1e-7)),
    ("inverse gaussian", (-0.5, 1e-3, 3.0)), ("generalized inverse gaussian", (1.7, 2.0, 0.4)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "parameters"), PARAMETERS)
def test_entries_are_drawn_from_their_law(name, parameters):
    """Power: a shift by a tenth of a standard deviation moves the statistic by .04, where .019 is the threshold."""
    form = Entrywise("generalized inverse gaussian" if len(parameters) == 3 else name)
    many = 3_000 if name == "generalized inverse gaussian" else 20_000  # SciPy draws one after another
    drawn = form.draw(np.tile(np.array(parameters), (many, 1)), RNG)
    inverse = {"beta": lambda v: 1 / (1 + np.exp(-v)), "normal": lambda v: v}.get(name, np.exp)
    assert stats.kstest(inverse(drawn), LAWS[name](*parameters).cdf).pvalue > ALARM


def test_shares_are_drawn_from_their_law():
    a = np.array([0.3, 2.0, 5.0])
    form = Shares(20_000)
    x = np.exp(form.logs(form.draw(np.tile(a, (20_000, 1)), RNG)))
    np.testing.assert_allclose(x.sum(axis=-1), 1)
    for k in range(3):
        assert stats.kstest(x[:, k], stats.beta(a[k], a.sum() - a[k]).cdf).pvalue > ALARM
    # Given the first, the second has its share of the rest, independently.
    rest = x[:, 1] / (1 - x[:, 0])
    assert stats.kstest(rest, stats.beta(a[1], a[2]).cdf).pvalue > ALARM
    assert abs(stats.spearmanr(rest, x[:, 0]).statistic) < FAR / np.sqrt(len(x))


def test_jointly_normal_entries_are_drawn_from_their_law():
    root = RNG.normal(size=(3, 3))
    precision, h = root @ root.T + np.eye(3), RNG.normal(size=3)
    parameters = np.column_stack([h, precision])
    drawn = np.array([Jointly((1.0,) * 3).draw(parameters, RNG) for _ in range(20_000)])
    white = (drawn - np.linalg.solve(precision, h)) @ np.linalg.cholesky(precision)
    for k in range(3):
        assert stats.kstest(white[:, k], "norm").pvalue > ALARM
    apart = np.corrcoef(white.T) - np.eye(3)
    assert np.abs(apart).max() < FAR / np.sqrt(len(white))


def test_what_has_no_integral_is_an_error():
    for form, parameters in [
        (Entrywise("beta"), [[1.0, 0.0]]),
        (Entrywise("normal"), [[1.0, -1.0]]),
        (Shares(1), [[1.0, -0.5, 2.0]]),
        (Jointly((1.0, 1.0)), [[0.0, 1.0, 2.0], [0.0, 2.0, 1.0]]),
    ]:
        with pytest.raises(ArithmeticError, match="no finite integral"):
            form.draw(np.array(parameters), RNG)


# ---------- parameters of models
def check(model, names, expected, form):
    """The parameters that are read off the model, at made-up values of everything else, are those of the closed posterior."""
    step = Conjugate([model[name] for name in names], model=model, compile_kwargs=QUICK)
    assert step.block.form.name == form
    rng = np.random.default_rng(8)
    for _ in range(3):
        point = jittered(initial_point_of(model), rng)
        found, off = conditional(step.block, point, rng)
        assert off < 1e-10
        np.testing.assert_allclose(found, expected(point), rtol=1e-7, atol=1e-7)


def test_proportions_in_any_spelling():
    group, y = np.arange(20) % 3, RNG.integers(0, 2, 20)
    s, f = (np.bincount(group, weights=y == k, minlength=3) for k in (1, 0))
    closed = np.column_stack([2 + s, 3 + f])
    with pm.Model() as model:
        theta = pm.Beta("theta", 2, 3, shape=3)
        pm.Bernoulli("y", logit_p=pt.log(theta[group]) - pt.log1p(-theta[group]), observed=y)
    check(model, ["theta"], lambda point: closed, "beta")
    with pm.Model() as model:
        theta = pm.Uniform("theta", 0, 1, shape=3)
        pm.Potential("y", (pt.log(theta) * (1 + s) + pt.log1p(-theta) * (2 + f)).sum())
    check(model, ["theta"], lambda point: closed, "beta")


def test_rows_of_shares():
    row, y = np.arange(30) % 2, RNG.integers(0, 4, 30)
    counts = np.zeros((2, 4))
    np.add.at(counts, (row, y), 1)
    with pm.Model() as model:
        p = pm.Dirichlet("p", [0.5, 1, 2, 1], shape=(2, 4))
        pm.Categorical("y", p[row], observed=y)
    check(model, ["p"], lambda point: counts + np.array([0.5, 1, 2, 1]), "dirichlet")
    with pm.Model() as model:  # two shares, one of them written as what the other leaves
        p = pm.Dirichlet("p", [0.5, 1])
        pm.Binomial("y", 9, 1 - p[0], observed=2)
    check(model, ["p"], lambda point: [[7.5, 3]], "dirichlet")


def test_rates_and_variances():
    y, x = RNG.poisson(3, 12), RNG.normal(size=12)
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 0.5, shape=3)
        pm.Poisson("y", 7 * rate[np.arange(12) % 3], observed=y)
    sums = y.reshape(4, 3).sum(axis=0)
    check(model, ["rate"], lambda point: np.column_stack([2 + sums, np.full(3, 0.5 + 28)]), "gamma")
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0, 2), pm.Exponential("tau", 3.0)
        pm.Normal("x", mu, tau=tau, observed=x)
    check(model, ["tau"], lambda point: [[1 + 6, 3 + ((x - point["mu"]) ** 2).sum() / 2]], "gamma")
    with pm.Model() as model:
        mu, v = pm.Normal("mu", 0, 2), pm.InverseGamma("v", 2, 3)
        pm.Normal("x", mu, pt.sqrt(v), observed=x)
    check(model, ["v"], lambda point: [[2 + 6, 3 + ((x - point["mu"]) ** 2).sum() / 2]], "inverse gamma")
    check(model, ["mu"], lambda point: [[x.sum() / np.exp(point["v_log__"]), 12 / np.exp(point["v_log__"]) + 0.25]], "normal")


def test_laplace_noise_is_a_mixture_of_normal_noise():
    """docs/theory.md: with the variance exponential of mean 2 b², its reciprocal is inverse Gaussian given the noise."""
    b = 1.5
    with pm.Model() as model:
        exact = pm.Normal("exact", 3, 2)
        v = pm.Exponential("v", 1 / (2 * b**2))
        pm.Normal("noisy", exact, pt.sqrt(v), observed=1.0)
    check(model, ["v"], lambda point: [[0.5, 1 / (2 * b**2), (1 - point["exact"]) ** 2 / 2]], "generalized inverse gaussian")


def test_coefficients_and_what_they_are_centred_on_are_drawn_together():
    X, y, group = RNG.normal(size=(20, 3)), RNG.normal(size=20), np.arange(20) % 4
    with pm.Model() as model:
        mu = pm.Normal("mu", 1, 2)
        beta = pm.Normal("beta", 0, 3, shape=3)
        a = pm.Normal("a", mu, 0.5, shape=4)
        v = pm.InverseGamma("v", 3, 3)
        pm.Normal("y", a[group] + X @ beta, pt.sqrt(v), observed=y)
    A = np.column_stack([np.zeros(20), X, np.eye(4)[group]])
    prior, h = np.zeros((8, 8)), np.zeros(8)
    prior[0, 0], h[0] = 1 / 4 + 4 / 0.25, 1 / 4
    prior[range(1, 4), range(1, 4)] = 1 / 9
    prior[range(4, 8), range(4, 8)] = 1 / 0.25
    prior[0, 4:] = prior[4:, 0] = -1 / 0.25

    def closed(point):
        s = np.exp(-point["v_log__"])
        return np.column_stack([h + s * A.T @ y, prior + s * A.T @ A])

    check(model, ["mu", "beta", "a"], closed, "multivariate normal")
    steps = gibbs_steps(model, compile_kwargs=QUICK)
    assert [sorted(value.name for value in step.vars) for step in steps] == [["a", "beta", "mu"], ["v_log__"]]


def test_where_a_variable_ends_at_another_what_is_held_is_its_place_in_between():
    """PyMC's point holds logit(y / x), so that y moves along with x, whose conditional is its prior."""
    with pm.Model() as model:
        x = pm.Gamma("x", 2, 1)
        pm.Uniform("y", 0, x)
    check(model, ["x"], lambda point: [[2, 1]], "gamma")


def test_a_plug_in_private_model_has_closed_conditionals(exact_seam):
    group, y, k = np.arange(300) % 3, RNG.integers(0, 2, 300), RNG.integers(0, 3, 300)
    with pm.Model() as model:
        g = pm.Data("g", group)
        theta, p = pm.Beta("theta", 1, 2, shape=3), pm.Dirichlet("p", np.ones(3), shape=(3, 3))
        pm.Bernoulli("y", theta[g], observed=y)
        pm.Categorical("k", p[g], observed=k)
    private = pmdp.privatize(model, epsilon=1.0, public=["g"], noise_aware=False)
    s, counts = np.bincount(group, weights=y), np.zeros((3, 3))
    np.add.at(counts, (group, k), 1)
    check(private, ["theta"], lambda point: np.column_stack([1 + s, 102 - s]), "beta")
    check(private, ["p"], lambda point: 1 + counts, "dirichlet")
    assert [step.vars[0].name for step in gibbs_steps(private, compile_kwargs=QUICK)] == ["theta_logodds__", "p_simplex__"]


def millions_of_trials():
    pm.Binomial("y", 10**7, pm.Beta("x", 1, 1, shape=3), observed=[3, 0, 10**7])


def shares_of_nothing():
    pm.Multinomial("y", 20, pm.Dirichlet("x", np.full(50, 0.01)), observed=20 * np.eye(50, dtype=int)[0])


def units_that_are_tiny():
    v = pm.InverseGamma("x", 0.01, 1e-14)
    pm.Normal("y", 3e-6, pt.sqrt(v), observed=1e-6 * (3 + RNG.normal(size=20)))


def rates_that_are_large():
    pm.Poisson("y", pm.Gamma("x", 1, 1e-9, shape=2), observed=[10**8, 0])


@pytest.mark.parametrize("spelling", [millions_of_trials, shares_of_nothing, units_that_are_tiny, rates_that_are_large])
def test_extreme_values_are_not_taken_for_another_form(spelling):
    """From an initial point that is far away."""
    with pm.Model() as model:
        spelling()
    [step] = gibbs_steps(model, compile_kwargs=QUICK)
    point = initial_point_of(model)
    for _ in range(30):
        point, [told] = step.step(point)
        assert told["misfit"] < 1e-8


# ---------- counts behind released ones
NOISES = {"laplace": Noise(4.0).kernel, "narrow": Noise(0.2).kernel, "gaussian": Noise(3.0, gaussian=True).kernel}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("z", "n", "odds"), [(7, 12, 0.5), (-5, 12, 2.0), (30, 12, 1e-3), (6, -1, 4.5), (-3, -1, 0.2), (90, -1, 60.0)])
def test_latent_counts_are_drawn_from_their_conditional_law(z, n, odds, noise):
    """Power: see ``check_frequencies``; 100,000 draws."""
    by_one, by_square, _ = NOISES[noise]
    s = np.arange(n + 1 if n >= 0 else 400)
    law = stats.binom.logpmf(s, n, odds / (1 + odds)) if n >= 0 else stats.poisson.logpmf(s, odds)
    logp = law + by_one * np.abs(z - s) + by_square * (z - s) ** 2
    p = np.exp(logp - logp.max())
    many = np.full(100_000, float(z))
    drawn = latent_counts(many, np.full_like(many, n), np.full_like(many, odds), by_one, by_square, RNG.random(len(many)))
    found = np.bincount(drawn.astype(int), minlength=len(s))
    assert len(found) == len(s)
    check_frequencies(found, p / p.sum())


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(
    ("z", "p"), [((3, 4, 1), (0.5, 0.3, 0.2)), ((-3, 20, 1), (0.98, 0.01, 0.01)), ((0, 2, 3, 3), (0.1, 0.2, 0.3, 0.4))]
)
def test_counts_that_add_up_are_drawn_from_their_joint_law(z, p, noise):
    """Power: see ``check_frequencies``; 30,000 draws."""
    n, K = 8, len(z)
    by_one, by_square, _ = NOISES[noise]
    several = np.array([s for s in product(range(n + 1), repeat=K) if sum(s) == n])
    away = np.abs(np.array(z) - several)
    logp = stats.multinomial.logpmf(several, n, p) + (by_one * away + by_square * away**2).sum(axis=1)
    w = np.exp(logp - logp.max())
    many = np.ones((30_000, 1))
    drawn = latent_tables(z * many, n * many[:, 0], p * many, by_one, by_square, 200, RNG.random((len(many), K)))
    place = {tuple(s): k for k, s in enumerate(several)}
    found = np.bincount([place[s] for s in map(tuple, drawn.astype(int))], minlength=len(several))
    check_frequencies(found, w / w.sum())


def private_proportions(y, group, **arguments):
    with pm.Model() as model:
        g = pm.Data("g", group)
        theta = pm.Beta("theta", 2, 3, shape=int(group.max()) + 1)
        pm.Bernoulli("y", theta[g], observed=y)
    return pmdp.privatize(model, **arguments)


def private_totals():
    """Of rows: six Poisson numbers, and six Binomial ones."""
    with pm.Model() as model:
        pm.Poisson("y", pm.Gamma("rate", 2, 0.5, shape=6), observed=RNG.poisson(4, 6))
    yield pmdp.privatize(model, epsilon=1.0, unit=pmdp.Individual(events=2))
    with pm.Model() as model:
        pm.Binomial("y", 5, pm.Beta("p", 1, 1), observed=RNG.binomial(5, 0.4, 6))
    yield pmdp.privatize(model, epsilon=1.0, unit=pmdp.Individual())


def private_sizes():
    """Of the two private groups nobody knows how many records they have."""
    y, group = RNG.integers(0, 2, 80), np.arange(80) % 2
    with pm.Model() as model:
        theta = pm.Beta("theta", 2, 3, shape=2)
        pm.Bernoulli("y", theta[group], observed=y)
    return pmdp.privatize(model, epsilon=1.0, neighbours="add_remove")


def check_latents(private, names):
    """Summed over all counts, their law and the noise is the model's own likelihood, whatever the parameters."""
    for latent in latents(private):
        noisy = private.privacy[latent.random.name]
        by_one, by_square, _ = noisy.noise.kernel
        function = compiled(private, (), latent.parameters, mode=PROBE)
        logp = private.compile_logp([latent.random], sum=False, mode=PROBE)
        rng, gaps = np.random.default_rng(4), []
        for _ in range(4):
            point = jittered(initial_point_of(private), rng)
            n, odds, seen = np.broadcast_arrays(*function(point))
            np.testing.assert_array_equal(seen, noisy.values)
            s = np.arange(400.0).reshape(-1, *[1] * n.ndim)
            with np.errstate(invalid="ignore"):
                law = np.where(n < 0, stats.poisson.logpmf(s, odds), stats.binom.logpmf(s, np.abs(n), odds / (1 + odds)))
            away = noisy.values - s
            ours = np.logaddexp.reduce(law + by_one * np.abs(away) + by_square * away**2, axis=0).sum(axis=-1)
            gaps.append(ours - logp(point)[0].reshape(ours.shape))
        np.testing.assert_allclose(gaps, np.broadcast_to(gaps[0], np.shape(gaps)), atol=1e-7)
        names = names - {latent.random.name}
    assert not names


def test_the_law_of_latent_counts_is_that_of_the_private_model():
    y, group = RNG.integers(0, 2, 80), np.arange(80) % 2
    check_latents(private_proportions(y, group, epsilon=0.5, public=["g"]), {"y"})
    check_latents(private_proportions(y, group, epsilon=0.5, delta=1e-6, mechanism="gaussian", public=["g"]), {"y"})
    for private in (*private_totals(), private_sizes()):
        check_latents(private, {"y"})
        steps = gibbs_steps(private, compile_kwargs=QUICK)
        assert {value for step in steps for value in step.vars} == set(private.value_vars)


def test_levels_of_a_noise_aware_model_have_a_step():
    """Given the counts that are drawn, the conditional is Dirichlet, with these on top of the prior."""
    group, k = np.arange(120) % 2, RNG.integers(0, 3, 120)
    with pm.Model() as model:
        g = pm.Data("g", group)
        p = pm.Dirichlet("p", [1.0, 2.0, 3.0], shape=(2, 3))
        pm.Categorical("k", p[g], observed=k)
    private = pmdp.privatize(model, epsilon=1.0, public=["g"])
    [step] = gibbs_steps(private, compile_kwargs=QUICK)
    rng, one, other = np.random.default_rng(5), np.random.default_rng(6), np.random.default_rng(6)
    for _ in range(5):
        point = jittered(initial_point_of(private), rng)
        found, _ = conditional(step.block, point, one)
        [counts] = [each.draw(point, other) for each in step.block.counts]
        np.testing.assert_allclose(found, counts + np.array([1.0, 2.0, 3.0]), rtol=1e-7)
        np.testing.assert_array_equal(counts.sum(axis=-1), 60)
        assert np.abs(counts - private.privacy["k"].values).max() < 60


@pytest.mark.filterwarnings("ignore")  # PyMC warns of imputation
def test_counts_that_add_up_to_no_more_than_the_records_are_drawn_from_their_joint_law():
    """Of 7 records 6 are there, and 8 were released. Power: see ``check_frequencies``; 5,000 draws."""
    with pm.Model() as model, seam_of(1):
        pm.Bernoulli("y", pm.Beta("theta", 2, 3), observed=np.array([0, 0, 1.0, 1, 1, 1, np.nan]))
        private = pmdp.privatize(model, epsilon=1.0, missing=["y"])
    [step] = gibbs_steps(private, compile_kwargs=QUICK)
    [behind], point = step.block.counts, initial_point_of(private)
    n, rate, z = (array[0] for array in np.broadcast_arrays(*behind.function(point)))
    assert (n < 0).all()
    assert z.sum() == 8
    several = np.array([s for s in product(range(8), repeat=2) if sum(s) <= 7])
    by_one, by_square, _ = behind.kernel
    logp = (stats.poisson.logpmf(several, rate) + by_one * np.abs(z - several) + by_square * (z - several) ** 2).sum(axis=1)
    w, rng = np.exp(logp - logp.max()), np.random.default_rng(7)
    drawn = [tuple(behind.draw(point, rng)[0].astype(int)) for _ in range(5_000)]
    place = {tuple(s): k for k, s in enumerate(several)}
    check_frequencies(np.bincount([place[s] for s in drawn], minlength=len(several)), w / w.sum())


@pytest.mark.slow
def test_a_step_given_latent_counts_leaves_the_exact_posterior_unchanged():
    """docs/theory.md: the posterior given a noisy count is a mixture of Beta laws. Power: see above, of 500 draws."""
    y = np.repeat([0, 1], [42, 18])
    private = private_proportions(y, np.zeros(60, int), epsilon=0.3, public=["g"])
    [step] = gibbs_steps(private, compile_kwargs=QUICK)
    z, s = private.privacy["y"].values.item(), np.arange(61)
    logw = stats.betabinom.logpmf(s, 60, 2, 3) - 0.3 * np.abs(z - s)
    w = np.exp(logw - np.logaddexp.reduce(logw))
    point, drawn = initial_point_of(private), []
    for k in range(4_000):
        point, _ = step.step(point)
        if k % 8 == 0:
            drawn.append(1 / (1 + np.exp(-point["theta_logodds__"].item())))
    assert stats.kstest(drawn, lambda x: (w * stats.beta.cdf(np.asarray(x)[..., None], 2 + s, 63 - s)).sum(axis=-1)).pvalue > ALARM


# ---------- joint distributions
def check_joint(model, simulate, statistics, sweeps):
    """Data drawn from the model in every sweep, and then unknowns given them: these must have their prior law (Geweke 2004).

    Means of 30 batches have about a t-distribution. Power: a mean off by a third of its standard deviation is found at 3,000 sweeps
    even if only one in ten is as good as independent.
    """
    steps = gibbs_steps(model, compile_kwargs=QUICK)
    assert {value for step in steps for value in step.vars} == set(model.value_vars)
    rng, found = np.random.default_rng(11), []
    for step in steps:
        step.rng = rng
    graphs = model.replace_rvs_by_values([model[name] for name in statistics["names"]])
    natural = model.compile_fn(graphs, inputs=model.value_vars, on_unused_input="ignore", mode=PROBE)
    point = initial_point_of(model)
    for k in range(sweeps):
        values = natural(point)
        with model:
            pm.set_data(simulate(*values, rng))
        for step in steps:
            point, _ = step.step(point)
        if k >= 100:
            found.append(statistics["of"](*natural(point)))
    batches = np.array(found)[: len(found) // 30 * 30].reshape(30, -1, len(found[0])).mean(axis=1)
    t = (batches.mean(axis=0) - statistics["expected"]) / (batches.std(axis=0, ddof=1) / np.sqrt(30))
    assert np.abs(t).max() < stats.t.isf(ALARM / 2, 29), t


def expected_stay():
    """E P(z2 = z3), the rows of P independent Dirichlet(1, 2), by quadrature."""
    x, w = np.polynomial.legendre.leggauss(20)
    x, w = (x + 1) / 2, w / 2
    a, b = np.meshgrid(x, x, indexing="ij")
    P = np.stack([np.stack([a, 1 - a], axis=-1), np.stack([b, 1 - b], axis=-1)], axis=-2)
    density = np.outer(w * 2 * (1 - x), w * 2 * (1 - x))
    state = np.einsum("i,...ij,...jk->...k", [0.3, 0.7], P, P)
    return (density * (state[..., 0] * a + state[..., 1] * (1 - b))).sum()


@pytest.mark.slow
def test_the_joint_law_of_a_hidden_markov_model():
    with pm.Model() as model:
        y = pm.Data("y_seen", np.zeros((4, 3), int))
        P = pm.Dirichlet("P", [1.0, 2.0], shape=(2, 2))
        rate = pm.Gamma("rate", 3, 1, shape=2)
        z = [pm.Categorical("z0", [0.3, 0.7], shape=3)]
        for t in range(1, 4):
            z.append(pm.Categorical(f"z{t}", P[z[-1]], shape=3))
        pm.Poisson("y", rate[pt.stack(z)], observed=y)
    statistics = {
        "names": ["P", "rate", "z0", "z1", "z2", "z3"],
        "of": lambda P, rate, *z: [
            P[0, 0], P[1, 0] ** 2, rate[0], rate[1] ** 2, z[0].mean(), z[0].mean() * rate[0], rate[z[3]].mean(), (z[2] == z[3]).mean(),
        ],
        "expected": [1 / 3, 1 / 6, 3, 12, 0.7, 2.1, 3, expected_stay()],
    }  # fmt: skip

    def simulate(P, rate, *more):
        *z, rng = more
        return {"y_seen": rng.poisson(rate[np.stack(z)])}

    check_joint(model, simulate, statistics, 1_600)


@pytest.mark.slow
def test_the_joint_law_of_a_hierarchy():
    group = np.arange(12) % 3
    with pm.Model() as model:
        y = pm.Data("y_seen", np.zeros(12))
        mu, v = pm.Normal("mu", 1, 2), pm.InverseGamma("v", 5, 4)
        a = pm.Normal("a", mu, 0.5, shape=3)
        pm.Normal("y", a[group], pt.sqrt(v), observed=y)
    statistics = {
        "names": ["mu", "v", "a"],
        "of": lambda mu, v, a: [mu, mu**2, v, 1 / v, a[0], (a[1] - mu) ** 2],
        "expected": [1, 5, 1, 1.25, 1, 0.25],
    }
    check_joint(model, lambda mu, v, a, rng: {"y_seen": rng.normal(a[group], np.sqrt(v))}, statistics, 3_100)


@pytest.mark.slow
def test_the_joint_law_of_a_private_model():
    private = private_proportions(RNG.integers(0, 2, 40), np.arange(40) % 2, epsilon=0.5, public=["g"])
    q = np.exp(-0.5)

    def simulate(theta, rng):
        noise = rng.geometric(1 - q, 2) - rng.geometric(1 - q, 2)
        return {"y_released": (rng.binomial(20, theta) + noise)[:, None].astype(float)}

    statistics = {"names": ["theta"], "of": lambda theta: [theta.mean(), (theta**2).mean(), theta.prod()], "expected": [0.4, 0.2, 0.16]}
    check_joint(private, simulate, statistics, 2_500)


# ---------- what has no such form
def sd():
    s = pm.HalfNormal("x", 1)
    pm.Normal("y", 0, s, observed=0.4)


def product_of_entries():
    x = pm.Gamma("x", 2, 1, shape=2)
    pm.Poisson("y", x[0] * x[1], observed=3)


def truncated_by_a_potential():
    x = pm.Normal("x", 0, 1)
    pm.Potential("y", pt.switch(x > 0.5, 0.0, -np.inf))


def stepwise():
    x = pm.Normal("x", 0, 1)
    pm.Potential("y", pt.switch(x > 0.1, 0.3, 0.0))


def ordered():
    pm.Normal("x", 0, 1, shape=3, transform=pm.distributions.transforms.ordered)


def logistic():
    x = pm.Normal("x", 0, 1)
    pm.Bernoulli("y", logit_p=x, observed=1)


def interval_of_another():
    high = pm.Exponential("high", 1)
    pm.Uniform("x", 0, 1 + high)


def nearly_normal():
    x = pm.Normal("x", 0, 1)
    pm.Normal("y", x + 1e-3 * x**2, 1, observed=0.3)


def rare_state_of_another():
    z = pm.Bernoulli("z", 0.01)
    x = pm.Normal("x", 0, 1)
    pm.Normal("y", pt.switch(z, pt.exp(x), x), 1, observed=0.3)


NONE = [
    sd, product_of_entries, truncated_by_a_potential, stepwise, ordered, logistic, interval_of_another, nearly_normal,
    rare_state_of_another,
]  # fmt: skip


@pytest.mark.parametrize("spelling", NONE, ids=lambda spelling: spelling.__name__)
def test_what_has_no_such_form_is_left_to_another_step(spelling):
    with pm.Model() as model:
        spelling()
    with pytest.raises(Refusal, match="The conditional of x has no form"):
        Conjugate([model["x"]], model=model, compile_kwargs=QUICK)
    assert all("x" not in str(value.name) for step in gibbs_steps(model, ["x"], compile_kwargs=QUICK) for value in step.vars)


def test_a_model_that_changed_its_form_is_an_error_and_not_a_wrong_draw():
    with pm.Model() as model:
        bent = pm.Data("bent", 0.0)
        x = pm.Normal("x", 0, 1)
        pm.Normal("y", x + bent * x**2, 1, observed=0.3)
    step = Conjugate([x], model=model, compile_kwargs=QUICK)
    point, [told] = step.step(initial_point_of(model))
    assert told["misfit"] < 1e-12
    with model:
        pm.set_data({"bent": 0.01})
    with pytest.raises(ArithmeticError, match="no longer normal"):
        step.step(point)
