"""What costs convert to and add up to, against computations that share nothing with it: exact privacy profiles and grids of orders."""

from decimal import Decimal
from fractions import Fraction
from itertools import chain, combinations
from math import comb, exp, inf, nan

import numpy as np
import pytest

import pymc_dp as pmdp
from pymc_dp.privacy.accounting import Cost, bounded_range, epsilon_of, exact_delta, exact_epsilon, rho_of, shares
from pymc_dp.privacy.mechanisms import Gaussian, Laplace

DELTAS = [Fraction(1, 10**3), Fraction(1, 10**6), Fraction(1, 10**10)]
RHOS = [Fraction(1, 10**4), Fraction(3, 100), Fraction(1, 2), Fraction(8)]
ORDERS = 1 + np.geomspace(1e-3, 1e8, 400_001)


def by_grid(rho, delta):
    """The least epsilon over a grid of orders (Canonne, Kamath, Steinke 2020, Proposition 12)."""
    rho, delta = float(rho), float(delta)
    bounds = rho * ORDERS + np.log1p(-1 / ORDERS) - (np.log(delta) + np.log(ORDERS)) / (ORDERS - 1)
    return max(bounds.min(), 0.0)


def profile(first, second, epsilon):
    """The exact delta at this epsilon, of two distributions over the same results."""
    return np.maximum(first - exp(epsilon) * second, 0.0).sum()


def discrete_gaussian(rho):
    """Its probabilities on neighbouring exact sums, 0 and 1, for the scale that costs rho."""
    variance = 1 / (2 * float(rho))
    k = np.arange(-int(40 * variance**0.5) - 40, int(40 * variance**0.5) + 41)
    first, second = (np.exp(-((k - centre) ** 2) / (2 * variance)) for centre in (0, 1))
    return first / first.sum(), second / second.sum()


def randomised_responses(epsilon, times):
    """How many of so many randomised responses are true, if they are and if they are not: the worst of all pure mechanisms."""
    true = exp(epsilon) / (1 + exp(epsilon))
    first = np.array([comb(times, k) * true**k * (1 - true) ** (times - k) for k in range(times + 1)])
    return first, first[::-1]


def divergences(first, second):
    """Renyi divergences of two distributions, by order, over the order: what zCDP bounds by rho."""
    orders = 1 + np.geomspace(1e-4, 1e3, 200)[:, None]
    logs = np.log(first)
    # Sums of first**a second**(1 - a), from their largest term on.
    terms = orders * logs + (1 - orders) * np.log(second)
    top = terms.max(axis=1, keepdims=True)
    return (top[:, 0] + np.log(np.exp(terms - top).sum(axis=1))) / (orders[:, 0] - 1) / orders[:, 0]


@pytest.mark.parametrize("delta", DELTAS, ids=float)
@pytest.mark.parametrize("rho", RHOS, ids=float)
def test_epsilon_of_rho_is_the_least_over_all_orders(rho, delta):
    assert float(epsilon_of(rho, delta)) == pytest.approx(by_grid(rho, delta), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("delta", DELTAS, ids=float)
@pytest.mark.parametrize("rho", RHOS, ids=float)
def test_discrete_gaussian_noise_keeps_what_is_claimed_of_it(rho, delta):
    """Its own privacy profile, summed: delta is never above what was asked for, and is not far below at four fifths of the epsilon."""
    first, second = discrete_gaussian(rho)
    epsilon = float(epsilon_of(rho, delta))
    assert profile(first, second, epsilon) <= float(delta)
    if 0.01 < rho < 1:  # beyond, the noise is a handful of integers, or its epsilon next to nothing
        assert profile(first, second, 0.8 * epsilon) > float(delta)


@pytest.mark.parametrize("delta", DELTAS, ids=float)
@pytest.mark.parametrize("epsilon", [Fraction(1, 50), Fraction(1), Fraction(7)], ids=float)
def test_the_largest_rho_is_within_epsilon_and_no_larger_one_is(epsilon, delta):
    rho = rho_of(epsilon, delta)
    assert epsilon_of(rho, delta) <= epsilon
    assert epsilon_of(rho * (1 + Fraction(1, 10**11)), delta) > epsilon
    assert Gaussian().total(epsilon, delta) == Cost(epsilon, delta, rho)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0])
def test_a_pure_cost_is_half_its_square_in_rho(epsilon):
    """Randomised response never diverges by more, and for a small epsilon by as much."""
    found = divergences(*randomised_responses(epsilon, 1)) / float(Cost(exact_epsilon(epsilon)).concentrated)
    assert found.max() <= 1 + 1e-6
    assert epsilon > 0.1 or found.max() > 0.99


@pytest.mark.parametrize("eta", [0.01, 0.5, 3.0])
def test_a_bounded_range_is_an_eighth_of_its_square_in_rho(eta):
    """Two results whose log-ratios are eta apart, wherever they lie: none diverges by more, and for a small eta some by as much."""
    cost, largest = bounded_range(eta), 0.0
    assert cost.epsilon == exact_epsilon(eta)
    for upper in np.linspace(0.02, 0.98, 49) * eta:
        second = -np.expm1(upper - eta) / (np.exp(upper) - np.exp(upper - eta))
        pair = np.array([second * np.exp(upper), (1 - second) * np.exp(upper - eta)]), np.array([second, 1 - second])
        assert pair[0].sum() == pytest.approx(1)
        largest = max(largest, divergences(*pair).max() / float(cost.concentrated))
    assert largest <= 1 + 1e-6
    assert eta > 0.1 or largest > 0.99


def test_pure_costs_add_up_exactly():
    assert pmdp.compose([0.1] * 100) == Cost(Fraction(10), rho=Fraction(1, 2))
    assert pmdp.compose([Decimal("0.1"), 0.2, Fraction(1, 3)]).epsilon == Fraction(19, 30)
    with pytest.raises(pmdp.Refusal, match="no pure epsilon"):
        pmdp.compose([0.1, Gaussian().total(Fraction(1), DELTAS[1])])
    with pytest.raises(pmdp.Refusal, match="at least one"):
        pmdp.compose([])


@pytest.mark.parametrize("times", [1, 3, 100])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_a_batch_of_randomised_responses_keeps_what_is_claimed_of_it(times, delta):
    cost = pmdp.compose([0.1] * times, delta=delta)
    assert profile(*randomised_responses(0.1, times), float(cost.epsilon)) <= delta
    assert cost.concentrated == times * Fraction(1, 200)
    assert cost.epsilon <= times * Fraction(1, 10)


@pytest.mark.parametrize("pure", [[3, 0.1, 0.2], [0.01] * 4, [5, 4]], ids=str)
@pytest.mark.parametrize("rhos", [[], [0.02, 0.3]], ids=str)
def test_a_batch_takes_the_cheapest_of_all_ways_to_split_it(pure, rhos):
    """Against every subset of the pure costs, added up as they are, and the rest by rho."""
    delta = DELTAS[1]
    gaussian = [Cost(epsilon_of(Fraction(str(rho)), delta), delta, Fraction(str(rho))) for rho in rhos]
    ways = []
    for chosen in chain.from_iterable(combinations(range(len(pure)), k) for k in range(len(pure) + 1)):
        left = sum(rhos) + sum(pure[k] ** 2 / 2 for k in range(len(pure)) if k not in chosen)
        ways.append(sum(pure[k] for k in chosen) + (by_grid(left, delta) if len(chosen) < len(pure) or rhos else 0))
    for order in (1, -1):
        assert float(pmdp.compose([*pure, *gaussian][::order], delta=delta).epsilon) == pytest.approx(min(ways), rel=1e-6)


@pytest.mark.parametrize("written", [0.1, Decimal("0.1"), Fraction(1, 10), np.float64(0.1)], ids=repr)
def test_a_tenth_is_a_tenth(written):
    assert exact_epsilon(written) == exact_delta(written) == Fraction(1, 10)
    assert exact_epsilon(3) == exact_epsilon(np.int64(3)) == 3


BEYOND = [Decimal("1e999999999"), Decimal("1e-999999999"), Fraction(10**400), Fraction(1, 10**400), 10**400, Decimal("sNaN")]
"""No double is near. As exact numbers the first two take all memory; a delta of the fourth was shown as 0, which says that it is pure."""


@pytest.mark.parametrize("wrong", BEYOND, ids=["large", "small", "fraction", "small fraction", "whole", "none"])
def test_what_no_double_is_near_is_refused(wrong):
    for read in (exact_epsilon, exact_delta):
        with pytest.raises(pmdp.Refusal, match="must be a"):
            read(wrong)


NONE = [-1, -0.1, Fraction(-1, 2), Decimal(-1), True, False, np.bool_(True), np.timedelta64(1, "D"), nan, inf, "1", None]


@pytest.mark.parametrize("wrong", NONE, ids=repr)
def test_what_is_no_cost_is_refused(wrong):
    for read in (exact_epsilon, exact_delta):
        with pytest.raises(pmdp.Refusal, match="must be a"):
            read(wrong)


def test_a_delta_lies_from_0_to_less_than_1():
    assert exact_delta(0) == exact_delta(0.0) == exact_delta(Decimal("0.0")) == 0
    for wrong in (1, 1.5):
        with pytest.raises(pmdp.Refusal, match="less than 1"):
            exact_delta(wrong)


@pytest.mark.parametrize("weights", [None, {"y": 1, "k": 0.1, "x": Fraction(1, 3)}])
def test_shares_add_up_to_1_exactly_and_follow_the_weights(weights):
    found = shares(["y", "k", "x"], weights)
    assert sum(found.values()) == 1
    if weights is None:
        assert set(found.values()) == {Fraction(1, 3)}
    else:
        assert found["y"] == 10 * found["k"] == 3 * found["x"]


@pytest.mark.parametrize("noise", [Laplace(), Gaussian()], ids=["laplace", "gaussian"])
def test_parts_of_a_cost_cost_no_more_than_the_whole(noise):
    total = noise.total(Fraction(2), Fraction(0) if isinstance(noise, Laplace) else DELTAS[1])
    parts = [noise.share(total, share) for share in shares(["y", "k", "x"], {"y": 1, "k": 2, "x": 4}).values()]
    if isinstance(noise, Laplace):
        assert sum(part.epsilon for part in parts) == total.epsilon
    else:
        assert sum(part.rho for part in parts) == total.rho
        assert all(float(part.epsilon) == pytest.approx(by_grid(part.rho, part.delta), rel=1e-6) for part in parts)
