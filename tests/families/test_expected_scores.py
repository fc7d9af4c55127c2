"""What scores are expected to be off an anchor, beside the scores of records."""

import numpy as np
import pytest
from scipy.special import expit

from pymc_dp.families.expected_scores import expected_scores, points_of_features, undetermined
from pymc_dp.families.scores import Scores


def compared(features, coefficients):
    """Expected scores of records with these scaled features (N, F - 1), and their exact ones, with all slopes taken off."""
    design = np.column_stack([np.ones(len(features)), features])
    anchor = np.zeros((1, design.shape[1]))
    anchor[0, 0] = -0.7
    mean, covariance = features.mean(axis=0), np.cov(features, rowvar=False, bias=True).reshape(features.shape[1], -1)
    expected = expected_scores(Scores(design.shape[1], "logit", 1.0, (-6.0, 6.0)), anchor, mean[None], covariance[None])
    at = expit(-0.7)
    exact = ((expit(design @ coefficients) - at)[:, None] * design).mean(axis=0) / (at * (1 - at))
    return expected(coefficients[None] - anchor)[0], exact


@pytest.mark.parametrize("features", [1, 2, 4])
def test_scores_of_binary_features_are_what_those_of_records_are(features):
    """Of all combinations, in any shares, exactly, as long as features are independent: for rare ones and for steep slopes, too."""
    shares = np.array([0.02, 0.4, 0.9, 0.25])[:features]
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * features)).reshape(features, -1).T
    times = np.rint(np.where(signs > 0, shares, 1 - shares).prod(axis=1) * 500_000).astype(int)
    values = np.repeat(signs, times, axis=0)
    expected, exact = compared(values, np.array([0.4, 3.0, -1.5, 0.7, 2.0])[: features + 1])
    np.testing.assert_allclose(expected, exact, atol=2e-3)


def test_scores_of_alike_binary_features_are_nearly_what_those_of_records_are():
    """A third of records have the second equal to the first: correlations are kept, and what is left is some percent of the scores."""
    rng = np.random.default_rng(0)
    first = np.where(rng.random(100_000) < 0.3, 1.0, -1.0)
    second = np.where(rng.random(100_000) < 0.33, first, np.where(rng.random(100_000) < 0.6, 1.0, -1.0))
    expected, exact = compared(np.column_stack([first, second]), np.array([0.2, 1.5, -2.0]))
    np.testing.assert_allclose(expected, exact, atol=0.02 * np.abs(exact).max())


def test_a_binary_feature_tells_of_those_beside_it():
    """One that is correlated with it keeps what it leaves; one that is binary has nothing left."""
    rng = np.random.default_rng(1)
    binary = np.where(rng.random(100_000) < 0.4, 1.0, -1.0)
    other = np.clip(0.1 * binary + 0.2 * rng.normal(size=100_000), -1, 1)
    values = np.column_stack([binary, other])
    expected, exact = compared(values, np.array([-0.3, 1.2, 2.5]))
    np.testing.assert_allclose(expected, exact, atol=0.01 * np.abs(exact).max())
    covariance = np.cov(values, rowvar=False, bias=True)
    left = undetermined(values.mean(axis=0)[None], covariance[None])[0]
    np.testing.assert_allclose(left, [[0, 0], [0, covariance[1, 1] - covariance[0, 1] ** 2 / covariance[0, 0]]], atol=1e-6)


@pytest.mark.parametrize("features", [1, 2, 3])
def test_from_an_anchor_with_slopes_they_are_those_of_binary_features_beside_a_normal_one(features):
    """A feature that one record in 50 has, one that two in five have, and a normal one that is correlated with the latter.

    A straight line is off by a fifth. Averages of 400,000 records have relative errors of .2 % at most.
    """
    rng = np.random.default_rng(0)
    u = np.where(rng.random((400_000, 2)) < [0.02, 0.4], 1.0, -1.0)
    u = np.column_stack([u, 0.1 * u[:, 1] + 0.2 * rng.normal(size=len(u))])[:, :features]
    design = np.column_stack([np.ones(len(u)), u])
    anchor, step = np.array([-1.0, 1.0, -0.5, 2.0])[: features + 1], np.array([0.3, 0.8, 0.5, -1.0])[: features + 1]
    at = expit(design @ anchor)
    weight = at * (1 - at)
    moments = (design * weight[:, None]).T @ design / weight.sum()
    mean, covariance = moments[0, 1:], moments[1:, 1:] - np.outer(moments[0, 1:], moments[0, 1:])
    scores = Scores(features + 1, "logit", 1.0, (-6.0, 6.0))
    found = expected_scores(scores, anchor[None], mean[None], covariance[None])(step[None])[0]
    exact = (expit(design @ (anchor + step)) - at) @ design / weight.sum()
    np.testing.assert_allclose(found, exact, atol=0.003 * np.abs(exact).max())
    assert np.abs(moments @ step - exact).max() > 0.15 * np.abs(exact).max()


def test_a_feature_that_does_not_vary_has_points():
    [points], _ = points_of_features(np.array([[0.3]]), np.zeros((1, 1, 1)))
    np.testing.assert_allclose(points[:, 0] @ points[:, 1] ** 2, 1)


@pytest.mark.parametrize("mean", [0.0, -0.96, 0.999])
@pytest.mark.parametrize("part", [1.0, 1 / 3, 1e-4])
def test_points_of_one_feature_have_its_mean_and_variance(mean, part):
    """They lie within its bounds, but for what two values are told from a beta variable by: 2 % of the largest standard deviation."""
    sd = np.sqrt(part * (1 - mean**2))
    [points], [rest] = points_of_features(np.array([[mean]]), np.array([[[sd]]]))
    shares, z = points.T
    np.testing.assert_allclose([shares.sum(), shares @ z, shares @ z**2], [1, 0, 1], atol=1e-9)
    assert np.abs(mean + sd * z).max() < 1.02
    assert not rest.any()
    if part == 1:  # two values
        assert shares[0] + shares[-1] > 0.96
    if part == 1 / 3 and mean == 0:  # uniform
        np.testing.assert_allclose(shares @ z**4, 9 / 5)
