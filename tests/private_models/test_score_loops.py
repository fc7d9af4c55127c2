"""What scores are expected to be at coefficients off their anchor."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit

from pymc_dp.families.expected_scores import points_of_features
from pymc_dp.private_models.score_loops import LOG, LOGIT, _expected, _expected_back

CODES = {"logit": LOGIT, "log": LOG}


def expected(link, anchor, step, mean, root):
    """What scores are expected to be, per unit of weight, for features of these moments; and the Cholesky factor of these."""
    F = len(anchor)
    factor = np.eye(F)
    factor[1:, 0], factor[1:, 1:] = mean, root
    C, q = np.empty(F), np.empty(F)
    _expected(given(link, anchor, factor), factor, np.array(step), C, q)
    return factor @ q, factor


def given(link, anchor, factor):
    """What the loops are given of an anchor, and of features that are expected to have these moments."""
    law = points_of_features(factor[None, 1:, 0], factor[None, 1:, 1:]) if link == "logit" else ()
    return np.array([*anchor, 1.0, CODES[link], *(number for part in law for number in part.ravel())])


@pytest.mark.parametrize("several", [1, 3])
@pytest.mark.parametrize("link", ["logit", "log"])
def test_scores_are_what_those_of_records_are_on_average(link, several):
    """Of 200,000 normal records, a step with a standard deviation of 2 to 2.6, or of .5 to .7 with a log link: within 4 %.

    The error of the average is .5 % or less, so a false alarm is rarer than one in a million. A straight line is off by a tenth or more.
    """
    rng = np.random.default_rng(several)
    anchor, step = np.array([0.3, -2.0, 1.0, 0.5])[: several + 1], np.array([-0.4, 10.0, 6.0, -4.0])[: several + 1]
    if link == "log":
        step = step / 4
    mean, root = np.array([0.1, -0.05, 0.0])[:several], 0.3 * np.tril(np.full((3, 3), 0.4) + 0.3 * np.eye(3))[:several, :several]
    u = np.column_stack([np.ones(200_000), mean + rng.normal(size=(200_000, several)) @ root.T])
    e, t = u @ anchor, u @ step
    h = (expit(e + t) - expit(e)) / (expit(e) * expit(-e)) if link == "logit" else np.expm1(t)
    wanted = (h[:, None] * u).mean(axis=0)
    found, factor = expected(link, anchor, step, mean, root)
    inverse = np.linalg.inv(factor)
    length = np.linalg.norm(inverse @ wanted)
    assert np.linalg.norm(inverse @ (found - wanted)) < 0.04 * length
    straight = factor @ factor.T @ step
    assert np.linalg.norm(inverse @ (straight - wanted)) > 0.1 * length


def test_with_a_log_link_a_binary_feature_is_exact():
    """One in 50 records has it, and its rate is e³ times that of the others."""
    share, step = 0.02, np.array([1.3, 1.5])
    u = np.array([-1.0, 1.0])
    weight = np.array([1 - share, share])
    mean = weight @ u
    found, _ = expected("log", np.zeros(2), step, [mean], [[np.sqrt(1 - mean**2)]])
    np.testing.assert_allclose(found, [weight @ np.expm1(step[0] + step[1] * u), weight @ (u * np.expm1(step[0] + step[1] * u))])


@pytest.mark.parametrize("link", ["logit", "log"])
def test_small_steps_are_on_a_straight_line(link):
    step, mean, root = 1e-5 * np.array([1.0, -2.0, 3.0]), [0.1, -0.2], [[0.3, 0.0], [0.1, 0.2]]
    found, factor = expected(link, np.zeros(3), step, mean, root)
    np.testing.assert_allclose(found, factor @ factor.T @ step, rtol=1e-3)


@pytest.mark.parametrize("share", [0.02, 0.5])
@pytest.mark.parametrize("several", [1, 2])
def test_with_a_logit_link_features_with_two_values_are_exact(share, several):
    """One feature with two values, up to what a beta variable's points are off, or two. A straight line is off by a tenth or more."""
    values = np.array(list(product((-1.0, 1.0), repeat=several)))
    chance = np.where(values > 0, share, 1 - share).prod(axis=1)
    anchor, step = np.array([0.3, 0.5, -0.4])[: several + 1], np.array([0.2, 1.2, -0.9])[: several + 1]
    u = np.column_stack([np.ones(len(values)), values])
    e, t = u @ anchor, u @ step
    wanted = chance * (expit(e + t) - expit(e)) / (expit(e) * expit(-e)) @ u
    mean, sd = 2 * share - 1, 2 * np.sqrt(share * (1 - share))
    found, factor = expected("logit", anchor, step, [mean] * several, sd * np.eye(several))
    np.testing.assert_allclose(found, wanted, rtol=0.02 if several == 1 else 1e-6)
    assert np.abs(factor @ factor.T @ step / wanted - 1).max() > 0.1


@pytest.mark.parametrize("link", ["logit", "log"])
@pytest.mark.parametrize("sd", [[0.2], [0.99], [0.3, 0.2, 0.1], [0.3, 0.99, 0.95], [0.99, 0.99, 0.95]])
def test_derivatives_are_those_of_differences(link, sd):
    F = len(sd) + 1
    rng = np.random.default_rng(F)
    factor, by_factor, by_c = np.eye(F), np.zeros((F, F)), np.zeros(F)
    factor[1:, 0], factor[1:, 1:] = 0.05, np.tril(0.05 * rng.normal(size=(F - 1, F - 1)), -1) + np.diag(sd)
    off = given(link, 0.5 * rng.normal(size=F), factor)
    factor[1:, 1:] *= 0.9  # moments are not what they were expected to be
    c, by_q, C, q = 0.5 * rng.normal(size=F), rng.normal(size=F), np.empty(F), np.empty(F)
    _expected(off, factor, c, C, q)
    _expected_back(by_q, off, factor, c, C, by_factor, by_c)

    def value(factor, c):
        _expected(off, factor, c, C, q)
        return by_q @ q

    for b in range(F):
        near = 1e-6 * np.eye(F)[b]
        assert by_c[b] == pytest.approx((value(factor, c + near) - value(factor, c - near)) / 2e-6, rel=1e-5, abs=1e-7)
        for a in range(b, F):
            if a:
                near = np.zeros((F, F))
                near[a, b] = 1e-6
                difference = (value(factor + near, c) - value(factor - near, c)) / 2e-6
                assert by_factor[a, b] == pytest.approx(difference, rel=1e-5, abs=1e-7)
