"""What scores are expected to be at coefficients off their anchor."""

import numpy as np
import pytest
from scipy.special import expit

from pymc_dp.private_models.score_loops import LOG, LOGIT, _expected

CODES = {"logit": LOGIT, "log": LOG}


def expected(link, anchor, step, mean, root):
    """What scores are expected to be, per unit of weight, for features of these moments; and the Cholesky factor of these."""
    F = len(anchor)
    factor = np.eye(F)
    factor[1:, 0], factor[1:, 1:] = mean, root
    C, q = np.empty(F), np.empty(F)
    _expected(np.array([*anchor, 1.0, CODES[link]]), factor, np.array(step), C, q)
    return factor @ q, factor


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
