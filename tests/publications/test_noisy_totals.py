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
