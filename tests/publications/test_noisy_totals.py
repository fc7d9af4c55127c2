"""Noisy numbers of cases among noisy numbers of people: both true numbers are summed out, exactly."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dp as pmdp

PEOPLE, CASES = np.array([100, 41, 12, 60]), np.array([31, 12, -2, 62])
MOST = 400
LAWS = {
    "Laplace": (pmdp.DiscreteLaplace(2.0), stats.dlaplace(1 / 2.0)),
    "wide Laplace": (pmdp.DiscreteLaplace(6.0), stats.dlaplace(1 / 6.0)),
    "table": (pmdp.NoiseTable([-1, 0, 1], [0.25, 0.5, 0.25]), stats.rv_discrete(values=([-1, 0, 1], [0.25, 0.5, 0.25]))),
}


def totals(cases=CASES, build=lambda people, risk, cases: pm.Binomial("ill", people, risk, observed=cases)):
    with pm.Model() as model:
        people = pm.DiscreteUniform("people", 0, MOST, observed=PEOPLE[: len(cases)])
        build(people, pm.Beta("risk", 1, 1), cases)
    return model


def published(model, law):
    return pmdp.published(model, {"people": law, "ill": law}).compile_logp(jacobian=False, mode="FAST_COMPILE")


@pytest.mark.parametrize("case", LAWS)
def test_all_true_numbers_of_people_and_cases_are_summed_out(case):
    """By enumeration. A number of cases below 0, or above that of the people, is noise."""
    law, noise = LAWS[case]
    cases = np.array([31, 12, 0, 61]) if case == "table" else CASES
    log_density = published(totals(cases), law)
    n, k = np.arange(MOST + 1)[:, None], np.arange(MOST + 1)[None, :]
    for logit in (-1.5, 0.3):
        p = 1 / (1 + np.exp(-logit))
        by_hand = sum(
            np.log((stats.binom.pmf(k, n, p) * noise.pmf(told - k) * noise.pmf(people - n)).sum() / (MOST + 1))
            for people, told in zip(PEOPLE, cases)
        )
        assert log_density({"risk_logodds__": np.array(logit)}) == pytest.approx(by_hand, abs=1e-5)


def test_counts_of_any_law_may_rest_on_noisy_people():
    """A Poisson count has another recursion than a binomial one."""
    law, noise = LAWS["Laplace"]
    log_density = published(totals(build=lambda people, risk, cases: pm.Poisson("ill", risk * people, observed=cases)), law)
    n, k = np.arange(MOST + 1)[:, None], np.arange(MOST + 1)[None, :]
    p = 0.4
    by_hand = sum(
        np.log((stats.poisson.pmf(k, p * n) * noise.pmf(told - k) * noise.pmf(people - n)).sum() / (MOST + 1))
        for people, told in zip(PEOPLE, CASES)
    )
    assert log_density({"risk_logodds__": np.log(p / (1 - p))}) == pytest.approx(by_hand, abs=1e-5)


def test_derivatives_are_those_of_the_sum():
    public = pmdp.published(totals(), {"people": pmdp.DiscreteLaplace(2.0), "ill": pmdp.DiscreteLaplace(2.0)})
    log_density, slope = public.compile_logp(mode="FAST_COMPILE"), public.compile_dlogp(mode="FAST_COMPILE")
    step = 1e-5
    for at in (-1.0, 0.5):
        ahead, behind = (log_density({"risk_logodds__": np.array(at + side * step)}) for side in (1, -1))
        assert slope({"risk_logodds__": np.array(at)})[0] == pytest.approx((ahead - behind) / (2 * step), rel=1e-5)


def test_more_terms_than_can_be_summed_are_refused():
    """Every true number of people is summed over, each with a window of cases."""
    law = pmdp.DiscreteLaplace(200.0)
    with pytest.raises(pmdp.Refusal, match="terms, more than 5,000,000"):
        pmdp.published(totals(), {"people": law, "ill": law})


def test_some_levels_beside_a_noisy_number_of_people_are_counts_of_those_who_are_left():
    """Of three levels two were published, with noise of their own. More people of one level than people in all is impossible, not wrong."""
    told, scales = {"people": np.array([30, 12]), "first": np.array([9, 12]), "third": np.array([14, -1])}, (2.0, 1.5, 1.0)
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(3))
        people = pm.DiscreteUniform("people", 0, MOST, observed=told["people"])
        first = pm.Binomial("first", people, p[0], observed=told["first"])
        pm.Binomial("third", people - first, p[2] / (1 - p[0]), observed=told["third"])
    laws = {name: pmdp.DiscreteLaplace(scale) for name, scale in zip(told, scales)}
    log_density = pmdp.published(model, laws).compile_logp(jacobian=False, mode="FAST_COMPILE")
    noises = [stats.dlaplace(1 / scale) for scale in scales]
    n, first, third = (np.arange(100).reshape([-1 if k == axis else 1 for k in range(3)]) for axis in range(3))
    for at in ([0.2, 0.3, 0.5], [0.7, 0.2, 0.1]):
        rest = np.maximum(n - first - third, 0)
        chance = np.where(n >= first + third, stats.multinomial.pmf(np.stack(np.broadcast_arrays(first, rest, third), -1), n, at), 0.0)
        by_hand = sum(
            np.log((chance * noises[0].pmf(a - n) * noises[1].pmf(b - first) * noises[2].pmf(c - third)).sum() / (MOST + 1))
            for a, b, c in zip(*told.values())
        )
        unconstrained = np.log(at[:2]) - np.log(at).mean()  # PyMC's coordinates on the simplex
        assert log_density({"p_simplex__": unconstrained}) - stats.dirichlet.logpdf(at, np.ones(3)) == pytest.approx(by_hand, abs=1e-5)


@pytest.mark.parametrize("chance", [1.0, 0.5], ids=["impossible", "possible"])
def test_parameters_need_to_be_right_where_true_values_are_possible(chance):
    """A standard deviation of x, which is 0 or 1: right if no true x is 0, and else the model is."""
    with pm.Model() as model:
        x = pm.Bernoulli("x", chance, observed=[1, 0])
        pm.Normal("y", pm.Normal("mean"), x, observed=[0.3, -0.4])
    public = pmdp.published(model, {"x": pmdp.RandomisedResponse(0.75), "y": pmdp.Exact()})
    found = public.compile_logp(jacobian=False, mode="FAST_COMPILE")({"mean": np.array(0.1)})
    by_hand = np.log(0.75 * 0.25) + stats.norm.logpdf([0.3, -0.4], 0.1).sum() + stats.norm.logpdf(0.1)
    assert found == (pytest.approx(by_hand) if chance == 1.0 else -np.inf)
