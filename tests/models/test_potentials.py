"""Potentials that are the likelihood of records: which are read, as what, and which are refused in words that help."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from checks import flat, refused
from scipy import integrate, stats

import pymc_dp as pmdp
from pymc_dp.laws.kernel import LEAST
from pymc_dp.models.binned import parametrised_in_bins
from pymc_dp.models.event_tables import EventLaw, with_losses
from pymc_dp.models.likelihood_rv import Written
from pymc_dp.models.model_arrays import arrays_of
from pymc_dp.models.reader import read_spec
from pymc_dp.models.record_formulas import alike
from pymc_dp.models.structure import Unreduced

pytestmark = pytest.mark.filterwarnings("ignore")
N = 40
T = np.linspace(0.1, 12, N)
E = np.arange(N) % 3 == 0
FLAGS = E.astype(int)
X = np.arange(N) % 2
TIMES = {"t": pmdp.Bins(0, 12, 6)}


def law(alpha, scale):
    return pm.Weibull.dist(alpha, scale)


def model_of(write, times=T, events=FLAGS, x=X):
    """A model with two unknowns and a treatment, in which ``write(t, e, alpha, scale)`` adds Potentials."""
    with pm.Model() as model:
        t, e, treated = pm.Data("t", times), pm.Data("e", events), pm.Data("x", x)
        scale = pm.math.exp(pm.Normal("a") + pm.Normal("b") * treated)
        write(t, e, pm.Gamma("alpha", 2, 1), scale)
    return model


def read(model, *binned, **more):
    """The only likelihood that is read of a model, and its problems."""
    spec = read_spec(model, binned=set(binned or ("t",)), **more)
    return spec.likelihoods, spec.problems


def potential(of):
    """A Potential of what is said of every record, summed."""
    return lambda t, e, alpha, scale: pm.Potential("like", of(t, e, alpha, scale).sum())


def by_product(t, e, alpha, scale):
    return e * pm.logp(law(alpha, scale), t) + (1 - e) * pm.logccdf(law(alpha, scale), t)


def by_hazard(t, e, alpha, scale):
    return e * (pt.log(alpha / scale) + (alpha - 1) * pt.log(t / scale)) - (t / scale) ** alpha


SURVIVAL = {
    "product": potential(by_product),
    "product, not summed": lambda *args: pm.Potential("like", by_product(*args)),
    "math.sum": lambda *args: pm.Potential("like", pm.math.sum(by_product(*args))),
    "log1mexp": potential(lambda t, e, *p: pm.math.switch(e, pm.logp(law(*p), t), pt.log1mexp(pm.logcdf(law(*p), t)))),
    "log of 1 - exp": potential(lambda t, e, *p: pt.where(pt.eq(e, 1), pm.logp(law(*p), t), pt.log(1 - pt.exp(pm.logcdf(law(*p), t))))),
    "switch on no event": potential(lambda t, e, a, s: pt.switch(pt.eq(e, 0), -((t / s) ** a), pm.logp(law(a, s), t))),
    "hazard": potential(by_hazard),
    "hazard in two sums": lambda t, e, a, s: pm.Potential("like", (e * -pt.log(s)).sum() - (t / s).sum()),
    "two Potentials": lambda t, e, *p: (
        pm.Potential("seen", (e * pm.logp(law(*p), t)).sum()),
        pm.Potential("lost", ((1 - e) * pm.logccdf(law(*p), t)).sum()),
    ),
    "a Deterministic between": lambda *args: pm.Potential("like", pm.Deterministic("each", by_product(*args)).sum()),
}


@pytest.mark.parametrize("events", [E.astype(int), E, E.astype(float)], ids=["int", "bool", "float"])
@pytest.mark.parametrize("name", SURVIVAL)
def test_times_with_events_are_read_however_they_are_written(name, events):
    if events.dtype == bool and name not in ("log1mexp", "log of 1 - exp", "switch on no event"):
        pytest.skip("1 - e is none of truth values")
    (likelihood,), problems = read(model_of(SURVIVAL[name], events=events))
    assert not problems
    assert likelihood.refusal is None
    assert likelihood.name == "t"
    assert likelihood.events is not None
    assert sorted((i.name, i.private, i.event) for i in likelihood.inputs) == [("e", True, True), ("x", True, False)]
    assert ("e", "event or not", False) in likelihood.arrays


def test_what_is_read_is_the_density_and_the_survival():
    """Whatever parts of the formula were taken for parameters."""
    for name in ("product", "log1mexp", "hazard"):
        (observed,) = arrays_of(model_of(SURVIVAL[name]), binned={"t"}).observed
        operation, at = observed.random.owner.op, np.array([0.3, 1.0, 7.0])
        # alpha, and the scale of a record
        for formula, theirs in ((operation.density, stats.weibull_min.logpdf), (operation.survival, stats.weibull_min.logsf)):
            found = pytensor.function([], formula(pt.constant(at), pt.constant(1.7), pt.constant(2.5)), mode="FAST_COMPILE")()
            np.testing.assert_allclose(found, theirs(at, 1.7, scale=2.5), rtol=1e-12)


PLAIN = {
    "of a plain array": (lambda s: pm.Potential("like", pm.logp(pm.Cauchy.dist(s, 2), T)), {"like"}, "like"),
    "of a pm.Data with dims": (lambda s: pm.Potential("p", pm.logp(pm.Cauchy.dist(s, 2), pm.Data("t", T, dims="row")).sum()), {"t"}, "t"),
    "beside a prior of its own": (
        lambda s: (pm.Potential("p", pm.logp(pm.Cauchy.dist(s, 2), pm.Data("t", T)).sum()), pm.Potential("q", -s)),
        {"t"}, "t",
    ),
    "integers": (lambda s: pm.Potential("p", pm.logp(pm.Cauchy.dist(s, 2), pm.Data("t", np.arange(N))).sum()), {"t"}, "t"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
def test_values_are_read(name):
    write, binned, expected = PLAIN[name]
    with pm.Model() as model:
        write(pm.Gamma("s", 2, 1))
    (likelihood,), problems = read(model, *binned)
    assert (likelihood.name, likelihood.refusal, problems) == (expected, None, ())
    assert pmdp.release(model, epsilon=1.0, bounds={expected: pmdp.Bins(0, 12, 6)})[expected].noisy.shape[-1] == 6


def test_a_potential_of_unknowns_stays_one():
    model = model_of(lambda *args: (SURVIVAL["product"](*args), pm.Potential("soft", -(args[2] ** 2))))
    private = pmdp.privatize(model, epsilon=1.0, bounds=TIMES | {"x": (0, 1)})
    assert [p.name for p in private.potentials] == ["soft"]
    assert {"t", "x", "e", "like"} & set(private.named_vars) == {"t"}


def test_records_reach_nothing_else():
    """Not a prior, nor another Potential; a Deterministic of them is dropped, and an initial value of them refused."""
    both = TIMES | {"x": (0, 1)}
    for write, words in (
        (lambda t: -(pm.Normal("p", t.mean(), 1) ** 2), "reach a prior"),
        (lambda t: t.sum() * pm.Normal("p"), "Potential q"),
        (lambda t: -(pm.Normal("p", initval=t.mean()) ** 2), "initial value of p"),
        (lambda t: -(pm.Normal("p", shape=N, initval=T) ** 2).sum(), "initial value of p"),
    ):
        model = model_of(SURVIVAL["product"])
        with model:
            pm.Potential("q", write(model["t"]))
        assert words in refused(pmdp.release, model, epsilon=1.0, bounds=both)
    model = model_of(SURVIVAL["product"])
    with model:
        pm.Deterministic("longest", model["t"].max())
    assert "longest (depends on a private array)" in flat(pmdp.inspect(model, bounds=both))
    assert "longest" not in pmdp.privatize(model, epsilon=1.0, bounds=both).named_vars


REFUSED = {
    "no bins": (SURVIVAL["product"], {}, "say in which bins"),
    "survival of another law": (
        potential(lambda t, e, *p: e * pm.logp(law(*p), t) + (1 - e) * pm.logcdf(law(*p), t)),
        TIMES, "log-survival",
    ),
    "no Jacobian": (
        potential(lambda t, e, a, s: pm.logp(pm.Normal.dist(pt.log(s), a), pt.log(t))),
        TIMES, "log-density",
    ),
    "a weight that is a parameter": (potential(lambda t, e, a, s: a * pm.logp(pm.Normal.dist(0, s), t)), TIMES, "log-density"),
    "a mean of records": (potential(lambda t, e, *p: by_product(t / t.mean(), e, *p)), TIMES, "mix or select records"),
    "selected records": (
        lambda t, e, *p: pm.Potential("like", pm.logp(law(*p), t)[pt.eq(e, 1)].sum() + pm.logccdf(law(*p), t)[pt.eq(e, 0)].sum()),
        TIMES, "e in place of|t\\[e == 1\\] beside",
    ),
    "sorted records": (potential(lambda t, e, *p: by_product(pt.sort(t), e, *p)), TIMES, "mix or select records"),
    "a prior in the same sum": (
        lambda *args: pm.Potential("like", by_product(*args).sum() - args[2] ** 2),
        TIMES, "a Potential of its own",
    ),
    "a mean over records": (lambda *args: pm.Potential("like", by_product(*args).mean()), TIMES, "a Potential of its own"),
    "every record with every other": (potential(lambda t, e, a, s: pm.logp(law(a, s), t[:, None])), TIMES, "number of axes|mix or select"),
    "a square of the sum": (lambda *args: pm.Potential("like", -(by_product(*args).sum() ** 2)), TIMES, "a Potential of its own"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_understood_is_refused(name):
    write, bounds, words = REFUSED[name]
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.release(model_of(write), epsilon=1.0, bounds=bounds | {"x": (0, 1)})


def test_what_a_refusal_says_can_be_written():
    """Without bins; then with these, and with the flag declared public; and what is said of limits that are infinite."""
    model = model_of(SURVIVAL["product"])
    words = refused(pmdp.release, model, epsilon=1.0)
    assert 'bounds={"t": pymc_dp.Bins(lower, upper)} of t = pm.Data("t", times)' in words
    assert "e * pm.logp(dist, t) + (1 - e) * pm.logccdf(dist, t)" in words
    assert "x is private, so it needs bounds" in refused(pmdp.release, model, epsilon=1.0, bounds=TIMES)
    both = TIMES | {"x": (0, 1)}
    assert "Leave it out of public" in refused(pmdp.release, model, epsilon=1.0, bounds=both, public=["e"])
    assert "bounds={'e': {0, 1}}, or leave it out" in refused(pmdp.release, model, epsilon=1.0, bounds=both | {"e": (0, 2)})
    for told in ({}, {"e": {0, 1}}, {"e": (0, 1)}):
        assert pmdp.release(model, epsilon=1.0, bounds=both | told)["t"].noisy.shape == (4, 6)


@pytest.mark.parametrize("public", [["limit"], []], ids=["public", "private"])
def test_a_limit_that_was_not_planned_is_refused_in_words_that_can_be_written(public):
    with pm.Model() as model:
        dist = pm.Weibull.dist(pm.Gamma("alpha", 2, 1), pm.Gamma("beta", 2, 1))
        pm.Censored("t", dist, lower=None, upper=pm.Data("limit", np.where(E, np.inf, T)), observed=T)
    bounds = TIMES | ({} if public else {"limit": (0, 12)})
    words = refused(pmdp.release, model, epsilon=1.0, bounds=bounds, public=public)
    written = "pm.Potential('like', (e * pm.logp(dist, t) + (1 - e) * pm.logccdf(dist, t)).sum())"
    assert f"{written} with pm.Data('t', t) and pm.Data('e', e)" in words
    with pm.Model() as instead:
        dist = pm.Weibull.dist(pm.Gamma("alpha", 2, 1), pm.Gamma("beta", 2, 1))
        exec(written, {"pm": pm, "dist": dist, "t": pm.Data("t", T), "e": pm.Data("e", E.astype(int))})
    assert pmdp.release(instead, epsilon=1.0, bounds=eval("{'t': pymc_dp.Bins(0, 12)}", {"pymc_dp": pmdp}))["t"].statistics


@pytest.mark.parametrize("values", [np.full(N, 3.0), np.full(N, -1e300), np.sort(T)[::-1].copy()], ids=["one", "far", "reversed"])
def test_no_value_of_a_record_decides_how_a_model_is_read(values):
    first = pmdp.inspect(model_of(SURVIVAL["product"]), bounds=TIMES | {"x": (0, 1)})
    other = pmdp.inspect(model_of(SURVIVAL["product"], times=values, events=np.ones(N, dtype=int)), bounds=TIMES | {"x": (0, 1)})
    assert flat(first) == flat(other)


def test_the_number_of_records_is_not_read_where_it_is_private():
    several = [model_of(SURVIVAL["product"], times=T[:n], events=E[:n].astype(int), x=X[:n]) for n in (1, 2, N)]
    shown = {flat(pmdp.inspect(model, bounds=TIMES | {"x": (0, 1)}, neighbours="add_remove")) for model in several}
    assert len(shown) == 1
    assert "not released" not in shown.pop()


def test_numbers_in_a_formula_are_counted_and_listed():
    """As many as a loop over records would write are refused, more than a few are listed."""
    levels = [float(k) for k in range(70)]
    loop = potential(lambda t, e, a, s: pm.logp(pm.Normal.dist(0, s), t) + 1e-9 * sum(level * pt.tanh(t) for level in levels))
    with pytest.raises(pmdp.Refusal, match="many single numbers stand in it"):
        pmdp.release(model_of(loop), epsilon=1.0, bounds=TIMES | {"x": (0, 1)})
    some = potential(lambda t, e, a, s: pm.logp(pm.Normal.dist(0, s), t) + 1e-9 * sum(level * pt.tanh(t) for level in levels[:20]))
    assert "single numbers in t" in pmdp.inspect(model_of(some), bounds=TIMES | {"x": (0, 1)}).stays


def test_a_flag_that_leaves_values_without_a_density_is_none():
    """A survival function with a power is no number below 0, and its integral was left out of what is compared."""

    def logp(value, alpha, event):
        return pt.switch(event > 0, pm.logp(pm.Weibull.dist(alpha, 2.0), value), -((value / 2.0) ** alpha))

    with pm.Model() as model:
        pm.CustomDist("t", pm.HalfNormal("a"), pm.Data("e", E.astype(int)), logp=logp, observed=T)
    assert "none given the data" in refused(pmdp.release, model, epsilon=1.0, bounds=TIMES | {"e": {0, 1}})
    with pytest.raises(Unreduced, match="none over all real numbers"):
        parametrised_in_bins(pm.CustomDist.dist(pt.dscalar(), logp=lambda v, a: -((v / 2.0) ** a)))


# ---------- the law
def written(of, many):
    vectors = [pt.dvector() for _ in range(1 + many)]
    return Written(tuple(vectors), of(*vectors))


def probabilities(edges, hazards, alpha=1.3, beta=5.0):
    weibull = EventLaw(*(written(lambda t, a, b, of=of: of(pm.Weibull.dist(a, b), t), 2) for of in (pm.logp, pm.logccdf)))
    at_times = weibull.at_times(edges, [pt.constant([alpha]), pt.constant([beta])])
    return pytensor.function([], with_losses(edges, at_times, pt.constant([hazards])), mode="FAST_COMPILE")()[0]


@pytest.mark.parametrize("alpha", [0.6, 1.0, 3.5])
@pytest.mark.parametrize("edges", [(0.0, 1.0, 4.0, 9.0), (0.0, 6.0, 6.5, 30.0), (2.0, 4.0, 8.0, 9.0)], ids=str)
def test_probabilities_are_integrals_and_add_up_to_1(edges, alpha):
    """Against SciPy's adaptive quadrature; a bin before which something may happen holds all of that, too."""
    hazards, f = (0.3, 0.02, 2.0), stats.weibull_min(alpha, scale=5.0)
    found, K = probabilities(edges, hazards, alpha), len(edges) - 1

    def kept(t):
        return np.exp(-sum(h * np.clip(t - edges[k], 0, np.inf if k == K - 1 else edges[k + 1] - edges[k]) for k, h in enumerate(hazards)))

    for k in range(K):
        low, high = edges[k], np.inf if k == K - 1 else edges[k + 1]
        event = integrate.quad(lambda t: f.pdf(t) * kept(t), low, high, epsabs=1e-12)[0] + (f.cdf(low) if k == 0 else 0)
        lost = integrate.quad(lambda t, k=k: hazards[k] * f.sf(t) * kept(t), low, high, epsabs=1e-12)[0]
        assert found[k] == pytest.approx(event, abs=2e-7)
        assert found[K + k] == pytest.approx(lost, abs=2e-7)
    assert found.sum() == pytest.approx(1, abs=1e-12)


def test_without_losses_events_have_the_probabilities_of_their_distribution():
    edges = (0.0, 1.0, 4.0, 9.0)
    found = probabilities(edges, (1e-12, 1e-12, 1e-12))
    expected = np.diff(stats.weibull_min.cdf([0, 1, 4, np.inf], 1.3, scale=5))
    np.testing.assert_allclose(found[:3], expected, rtol=1e-6)
    assert (found[3:] < 1e-10).all()
    assert (found >= LEAST).all()


def selected(t, e, alpha, scale):
    """Times of events, and all others: how many there are of each is in the shape of what is selected."""
    events = e.get_value() == 1
    pm.Potential("like", pm.logp(law(alpha, scale), t[events]).sum() + pm.logccdf(law(alpha, scale), t[~events]).sum())


def test_how_many_records_were_selected_does_not_change_the_refusal():
    """Two sums were added before they were looked at, which failed unless both were of as many records."""
    words = []
    for events in (N // 2, N // 2 + 1):
        with pytest.raises(pmdp.Refusal, match="AdvancedSubtensor") as refusal:
            pmdp.release(model_of(selected, events=(np.arange(N) < events).astype(int)), epsilon=1.0, bounds=TIMES)
        words.append(str(refusal.value))
    assert words[0] == words[1]


@pytest.mark.parametrize("more", [0.0, 1.0])
def test_no_numbers_of_arrays_decide_whether_two_expressions_are_one(more):
    """Two arrays of equal numbers are two: a - b was b - a where all records had a = b."""
    a, b = pt.constant(np.arange(3.0)), pt.constant(np.arange(3.0) + more)
    unknown = pm.Normal.dist()
    assert alike(pt.exp(a - b), pt.exp(a - b))
    assert alike(a * unknown + 2.0, a * unknown + 2.0)
    assert not alike(a - b, b - a)
    assert not alike(a * unknown + 2.0, a * unknown + 3.0)
    assert not alike(a * unknown, b * unknown)


def one_for_all(t, e, alpha, scale):
    sigma = pm.HalfNormal("sigma", shape=1)
    pm.Potential("like", -(((t - alpha) / sigma) ** 2 / 2).sum() - pt.log(sigma).sum())


NO_LIKELIHOODS = {
    "a term counted once is none of every record": one_for_all,
    "no formula of some": potential(lambda t, e, *p: e * pm.logp(law(*p), t)),
}


@pytest.mark.parametrize("name", NO_LIKELIHOODS)
def test_what_is_no_likelihood_of_every_record_is_refused(name):
    likelihoods, problems = read(model_of(NO_LIKELIHOODS[name]))
    assert not likelihoods
    assert problems


@pytest.mark.parametrize("other", [lambda *of: 3 * by_product(*of), lambda t, e, *p: pm.logcdf(law(*p), t), lambda *of: 0.0])
def test_another_formula_where_a_covariate_is_not_1_is_refused(other):
    """Of a condition on data most values that are tried say yes; where it says no the formula was none, and was read."""
    with pm.Model() as model:
        t, e, x = pm.Data("t", T), pm.Data("e", FLAGS), pm.Data("x", X)
        of = t, e, pm.Gamma("alpha", 2, 1), pm.math.exp(pm.Normal("a"))
        pm.Potential("like", pt.switch(pt.eq(x, 1), by_product(*of), other(*of)).sum())
    likelihoods, problems = read(model)
    assert not likelihoods
    assert problems


def test_a_status_of_three_values_is_no_flag():
    """2 says that the event was before t: those records are counted as events at t."""

    def status(t, e, *p):
        return pt.switch(pt.eq(e, 1), pm.logp(law(*p), t), pt.switch(pt.eq(e, 2), pm.logcdf(law(*p), t), pm.logccdf(law(*p), t)))

    likelihoods, problems = read(model_of(potential(status), events=np.arange(N) % 3))
    assert not likelihoods
    assert problems


@pytest.mark.xfail(strict=True, reason="unknowns are tried at 0.5, 1.5 and 2.5 only")
def test_a_factor_of_an_unknown_elsewhere_than_tried_is_seen():
    """What rests on alpha alone is no part of a density of times."""
    tail = potential(lambda t, e, alpha, scale: by_product(t, e, alpha, scale) - pt.switch(alpha > 3, 5 * alpha, 0))
    likelihoods, problems = read(model_of(tail))
    assert not likelihoods
    assert problems
