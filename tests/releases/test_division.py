"""How epsilon is divided among several observed variables: exactly all of it, by what is public, and never far from equal shares."""

from fractions import Fraction
from itertools import product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import flat, refused, seam_of

import pymc_dp as pmdp
from pymc_dp.plans.division import LEAST, STEPS, WORSE, Expectation, divided
from pymc_dp.plans.protection import protection_of
from pymc_dp.privacy.accounting import exact_delta
from pymc_dp.privacy.mechanisms import resolve
from pymc_dp.releases.division import expectation_of
from pymc_dp.releases.from_records import prepared

BOUNDS = {"income": (-1, 1)}
NOISES = {"laplace": {}, "gaussian": {"mechanism": "gaussian", "delta": 1e-6}}


def both(income, group, vote):
    """A mean beside a table of private cells: one record is in both."""
    with pm.Model() as model:
        pm.Normal("income", pm.Normal("mean", 0, 1), pm.HalfNormal("sd", 0.2), observed=np.asarray(income, dtype=float))
        share = pm.Beta("share", 2, 2, shape=3)
        pm.Bernoulli("vote", share[pm.Data("group", np.asarray(group))], observed=np.asarray(vote))
    return model


def many(n, seed=0):
    rng = np.random.default_rng(seed)
    return both(rng.normal(0, 0.5, n), rng.integers(3, size=n), rng.integers(2, size=n))


def parts(model, epsilon=1.0, **named):
    """What ``release`` would do, before it is paid for."""
    named = {"bounds": BOUNDS, "neighbours": "replace"} | named
    declared = protection_of(**{name: named.pop(name) for name in ("bounds", "neighbours", "public", "disjoint") if name in named})
    return {part.variable: part for part in prepared(model, declared, epsilon=epsilon, **named).parts}


# ---------- privacy


SAYINGS = [*product((-1.0, -0.5, 0.0, 0.5, 1.0), range(2), range(2))]
"""What a record can say; the bounds, and what is furthest from them, are among it."""


def with_record(saying):
    return both(*zip(saying, (0.25, 1, 1), strict=True))


@pytest.fixture(scope="module")
def exact():
    """The exact integers of both variables, for everything that one record can say."""
    found = {}
    for saying in SAYINGS:
        with seam_of(0) as seam:
            pmdp.release(with_record(saying), epsilon=0.5, bounds=BOUNDS, missing={}, weights="equal")
        found[saying] = [np.array(each, dtype=object).ravel() for each in seam.exact]
    return found


@pytest.mark.parametrize("noise", NOISES)
def test_one_record_in_all_variables_loses_what_is_paid_and_no_more(exact, noise):
    """All pairs of what a record can say; the division is not equal, and all of it together is tight."""
    most = Fraction(0)
    with seam_of(0) as seam:
        released = pmdp.release(with_record(SAYINGS[0]), epsilon=0.5, bounds=BOUNDS, missing={}, **NOISES[noise])
    scales = [Fraction(scale) for scale in seam.scales]
    first, second = (float(statistic.cost.concentrated) for statistic in released.statistics)
    assert abs(first / second - 1) > 0.2, "shares that are equal would prove less"
    for one, another in product(SAYINGS, repeat=2):
        moved = [np.abs(a - b) for a, b in zip(exact[one], exact[another], strict=True)]
        if noise == "laplace":
            lost = sum((Fraction(int(m.sum())) / scale for m, scale in zip(moved, scales, strict=True)), Fraction(0))
        else:
            lost = sum((Fraction(int((m**2).sum())) / (2 * scale**2) for m, scale in zip(moved, scales, strict=True)), Fraction(0))
        most = max(most, lost)
    paid = released.cost.epsilon if noise == "laplace" else released.cost.rho
    assert Fraction(99, 100) * paid < most <= paid


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_a_division_rests_on_no_record(neighbours):
    """Other records, and where their number is private another number, change no share and no scale."""
    here = parts(many(60), neighbours=neighbours)
    n = 60 if neighbours == "replace" else 6000
    assert here == parts(both(np.full(n, 0.9), np.full(n, 2), np.zeros(n, dtype=int)), neighbours=neighbours)
    if neighbours == "add_remove":
        assert {part.share for part in here.values()} == {Fraction(1, 2)}


def test_a_public_number_of_records_counts():
    assert parts(many(60)) != parts(many(6000))


def test_rows_of_a_person_share_equally():
    with pm.Model(coords={"visit": range(40)}) as model:
        for name in ("first", "second"):
            pm.Normal(name, pm.Normal(f"mean of {name}"), 1, observed=np.zeros(40), dims="visit")
        pm.Data("patient", np.arange(40) // 2, dims="visit")
    declared = protection_of(bounds={"first": (-1, 1), "second": (-100, 100)}, unit=pmdp.Person("patient", at_most=2), persons=True)
    assert {part.share for part in prepared(model, declared, epsilon=1.0).parts} == {Fraction(1, 2)}


# ---------- what is shown, and what is done


@pytest.mark.parametrize("noise", NOISES)
def test_inspect_shows_what_release_does(noise):
    model = many(200)
    assert "so that expected posteriors are narrowest" in flat(pmdp.inspect(model, bounds=BOUNDS))
    shown = pmdp.inspect(model, bounds=BOUNDS, epsilon=0.5, **NOISES[noise])
    released = pmdp.release(model, epsilon=0.5, bounds=BOUNDS, missing={}, **NOISES[noise])
    for part in shown.parts:
        statistic = released[part.variable]
        assert part.noise == statistic.noise.standard_deviation
        cost, total = (statistic.cost.rho, released.cost.rho) if noise == "gaussian" else (statistic.cost.epsilon, released.cost.epsilon)
        assert part.share == cost / total
        assert f"{float(part.share):.3g} to {part.variable} (noise sd {part.noise:.4g})" in flat(shown)
    assert sum(part.share for part in shown.parts) == 1
    own = pmdp.inspect(model, bounds=BOUNDS, epsilon=0.5, weights={"income": 1, "vote": 3}, **NOISES[noise])
    assert [part.share for part in own.parts] == [Fraction(1, 4), Fraction(3, 4)]
    equal = pmdp.inspect(model, bounds=BOUNDS, epsilon=0.5, weights="equal", **NOISES[noise])
    assert [part.share for part in equal.parts] == [Fraction(1, 2)] * 2
    assert pmdp.inspect(model, epsilon=0.5).parts == (), "nothing is divided before bounds are known"


def test_what_has_no_meaning_is_refused():
    model = many(20)
    assert "rests on epsilon" in refused(pmdp.inspect, model, weights="equal")
    assert "nothing is divided" in refused(pmdp.inspect, model, mechanism=pmdp.Gibbs(sweeps=2), epsilon=1.0, weights="equal")
    assert 'weights="equal"' in refused(pmdp.release, model, epsilon=1.0, bounds=BOUNDS, weights="same")


def test_unlike_arms_of_one_group_have_one_share_beside_others():
    with pm.Model() as model:
        for name, n in (("treated", 50), ("control", 400), ("site", 400)):
            pm.Bernoulli(name, pm.Beta(f"share of {name}", 1, 1), observed=np.arange(n) % 2)
    shares = {name: part.share for name, part in parts(model, bounds={}, disjoint=["treated", "control"]).items()}
    assert shares["treated"] == shares["control"] == 1 - shares["site"]


def test_equal_shares_stay_where_nothing_is_known():
    with pm.Model() as model:
        pm.Bernoulli("a", pm.math.invlogit(pm.Flat("logit")), observed=np.arange(40) % 2)
        pm.Bernoulli("b", pm.Beta("p", 1, 1), observed=np.arange(40) % 2)
    assert [part.share for part in parts(model, bounds={}).values()] == [Fraction(1, 2)] * 2


def test_every_kind_of_statistic_is_divided():
    """Second moments, scores, sums with features of public rows, counts and vectors: of each something is expected."""
    n, rng = 300, np.random.default_rng(0)
    with pm.Model() as model:
        x, z = pm.Data("x", rng.random(n)), pm.Data("z", rng.normal(size=n))
        slope, sd = pm.Normal("slope", shape=3), pm.HalfNormal("sd", 0.3)
        pm.Normal("line", slope[0] * x, sd, observed=np.zeros(n))
        pm.Bernoulli("odds", pm.math.invlogit(slope[1] * x), observed=np.zeros(n, dtype=int))
        pm.Bernoulli("by_z", pm.math.invlogit(0.1 + slope[2] * z), observed=np.zeros(n, dtype=int))
        pm.Categorical("kind", pm.Dirichlet("p", np.ones(4)), observed=np.zeros(n, dtype=int))
        pm.MvNormal("pair", pm.Normal("m", shape=2), sd**2 * pt.eye(2), observed=np.zeros((n, 2)))
    bounds = {"line": (-2, 2), "x": (0, 1), "logit(odds)": (-3, 3), "pair": (-3, 3)}
    shares = [part.share for part in parts(model, bounds=bounds, public=["z"]).values()]
    assert sum(shares) == 1
    assert len(set(shares)) > 2, "each says something of its own"
    assert min(shares) >= Fraction(LEAST, STEPS * len(shares))


# ---------- which division is best


def told(name, n, within=1.0, between=1.0, noise=100.0, power=2):
    return Expectation(name, np.array([float(n)]), np.array([[within]]), np.array([[between]]), noise, power)


@pytest.mark.parametrize("power", [1, 2])
def test_the_expected_width_is_that_of_the_conjugate_posterior(power):
    """Mean m ~ Normal(0, t²), n values of it with variance v, summed, and noise: by conditioning of their joint law."""
    n, v, t, noise, share = 40.0, 2.0, 0.7, 90.0, 0.3
    covariance = np.array([[t**2, n * t**2], [n * t**2, n**2 * t**2 + n * v + noise / share**power]])
    posterior = covariance[0, 0] - covariance[0, 1] ** 2 / covariance[1, 1]
    [width] = told("m", n, v, t**2, noise, power).width(np.array([share]))
    np.testing.assert_allclose(np.exp(width), posterior**0.5)


def test_no_other_division_in_steps_is_better():
    rng = np.random.default_rng(1)
    for _ in range(20):
        several = [told(name, *(10 ** rng.uniform(low, high) for low, high in ((1, 4), (-2, 1), (-3, 1), (0, 6)))) for name in "abc"]
        total, found = STEPS * 3, divided(several)
        assert sum(found.values()) == 1
        steps = np.arange(LEAST, total - 2 * LEAST + 1)
        a, b, c = (each.width(steps / total) for each in several)
        for each in (a, b, c):
            each[each > each[STEPS - LEAST] + np.log(WORSE)] = np.inf
        all_of_them = [(a[i] + b[j] + c[len(steps) - 1 - i - j], i, j) for i in range(len(steps)) for j in range(len(steps) - i)]
        mine = sum(float(each.width(np.array([float(found[each.name])]))[0]) for each in several)
        assert mine == pytest.approx(min(all_of_them)[0], abs=1e-12)
        assert min(found.values()) >= Fraction(1, 6), "no share is less than half an equal one"
        for each in several:
            ours, equal = each.width(np.array([float(found[each.name]), 1 / 3]))
            assert ours <= equal + np.log(WORSE) + 1e-12, "no posterior is expected to be a tenth wider"


def test_noise_that_hides_all_is_shared_equally_and_noise_that_hides_nothing_is_given_away():
    flat_prior = 1e9
    assert set(divided([told(name, 10, between=flat_prior, noise=1e9) for name in "abcd"]).values()) == {Fraction(1, 4)}
    clear, hidden = told("clear", 10**6, noise=1.0), told("hidden", 100, noise=1e4)
    assert divided([clear, hidden]) == {"clear": Fraction(1, 4), "hidden": Fraction(3, 4)}
    assert divided([clear, hidden], [("clear", "hidden")]) == dict.fromkeys(("clear", "hidden"), Fraction(1))


def test_wide_bounds_get_more_of_a_known_budget():
    """Of two variables alike but for their bounds the one with wider bounds has more noise to lose, and both can still be told."""
    with pm.Model() as model:
        for name in ("narrow", "wide"):
            pm.Normal(name, pm.Normal(f"mean of {name}", 0, 1), pm.HalfNormal(f"sd of {name}", 1), observed=np.zeros(5000))
    shares = parts(model, epsilon=8.0, bounds={"narrow": (-4, 4), "wide": (-12, 12)})
    assert shares["wide"].share > Fraction(11, 20)


@pytest.mark.parametrize(("noise", "power"), [("laplace", 2), ("gaussian", 1)])
def test_noise_falls_with_its_share_as_the_mechanism_says(noise, power):
    """What is expected of a share is the variance of the noise that is drawn with it."""
    model = many(200)
    declared = protection_of(bounds=BOUNDS)
    ready = prepared(model, declared, epsilon=1.0, weights={"income": 1, "vote": 3}, **NOISES[noise])
    mechanism, cells = resolve(noise), ready.opened[0]
    total = mechanism.total(Fraction(1), exact_delta(NOISES[noise].get("delta", 0)))
    expected = expectation_of(cells, mechanism, total)
    assert expected.power == power
    drawn = (ready.parts[0].noise / cells.planned.lattice) ** 2
    assert drawn == pytest.approx(expected.noise * 4**power, rel=1e-6)
