"""What other shapes of features would do to sums of a response with a link, against integrals over these shapes."""

import numpy as np
import pymc as pm
import pytest
from scipy.stats import gamma as gamma_law
from scipy.stats import norm, poisson
from scipy.stats import t as student

import pymc_dp as pmdp
from pymc_dp.shapes import FLATTER, SKEW, _counts, _logistic, _of_one, _predictor
from pymc_dp.wishart import HALF, beta_nodes

LEGENDRE = np.polynomial.legendre.leggauss(400)
HERMITE = np.polynomial.hermite_e.hermegauss(40)
M, V = 0.2, 0.05
"""Mean and variance of a feature on [-1, 1]."""


def density(shape):
    """Nodes and weights of a variable with mean M and variance V."""
    if shape == "on two values":
        return M + np.sqrt(V) * np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    if shape == "normal":
        return M + np.sqrt(V) * 8 * LEGENDRE[0], norm.pdf(8 * LEGENDRE[0]) * 8 * LEGENDRE[1]
    k, sign = 4 / SKEW**2, 1 if shape == "long to the right" else -1
    law = gamma_law(k, loc=-k)
    x = k * LEGENDRE[0] * 3 + 2 * k
    return M + sign * np.sqrt(V / k) * x, np.nan_to_num(law.pdf(x)) * 3 * k * LEGENDRE[1]


def sums(curve, level, own, shape, of_b=0.6, rest=0.03):
    """E[D g] for D = (1, a, b), where b has this shape, and a - .1 = of_b (b - M) + normal; by quadrature over both."""
    b, share = density(shape)
    a = 0.1 + of_b * (b - M)[:, None] + np.sqrt(rest) * HERMITE[0]
    weights = share[:, None] * HERMITE[1] / HERMITE[1].sum()
    b = b[:, None] + np.zeros_like(a)
    g = curve(level + own[1] * (a - 0.1) + own[2] * (b - M))[0] * weights
    return np.array([g.sum(), (a * g).sum(), (b * g).sum()])


@pytest.mark.parametrize("curve", [_logistic, _counts(4.0)], ids=["logit", "log"])
@pytest.mark.parametrize("own", [(0, 3.0, 4.0), (0, -2.0, 7.0), (0, 0.0, 9.0)])
def test_directions_are_what_another_shape_adds(curve, own):
    """Exactly, where other features are normal given this one, and dependent on it."""
    own, covariance = np.array(own), np.array([[0.36 * V + 0.03, 0.6 * V], [0.6 * V, V]])
    moments, mean = np.zeros((3, 3)), np.array([1, 0.1, M])
    moments[1:, 1:] = covariance
    moments += np.outer(mean, mean)
    found = _of_one(curve, 0.4, own, moments)[:, 2:] / (1 - V / (1 - M**2))
    two, bell, right, left = (
        sums(curve, 0.4, own, shape) for shape in ("on two values", "normal", "long to the right", "long to the left")
    )
    np.testing.assert_allclose(found[:, 0], FLATTER * (two - bell), rtol=1e-2, atol=2e-4)
    np.testing.assert_allclose(found[:, 1], (right - left) / 2, rtol=1e-2, atol=2e-4)
    assert np.abs(found).max(axis=0).min() > 2e-3


def test_a_feature_on_two_values_has_no_other_shape():
    p = 0.1
    moments = np.array([[1, 2 * p - 1], [2 * p - 1, 1.0]])
    assert not _of_one(_logistic, 0.0, np.array([0, 2.0]), moments).any()
    for mean in (0.3, 1.0):  # and on one
        assert not _of_one(_logistic, 0.0, np.array([0, 2.0]), np.array([[1, mean], [mean, mean**2]])).any()


@pytest.mark.parametrize(("level", "deviation"), [(0.0, 0.5), (-2.0, 2.0), (3.0, 0.1), (1.0, 4.0)])
def test_the_predictor_behind_a_response_is_found(level, deviation):
    x, weights = HERMITE
    p, slope = (weights @ each / weights.sum() for each in _logistic(level + deviation * x))
    assert _predictor(p, deviation * slope) == pytest.approx((level, deviation), rel=0.02, abs=0.02)


GRID = (np.arange(20_000) + 0.5) / 20_000
FEATURES = {
    "uniform on half of its bounds": (4 * GRID - 2, (-4, 4)),
    "normal": (norm.ppf(GRID), (-3, 3)),
    "t with 4 degrees of freedom": (student.ppf(GRID, 4), (-10, 10)),
    "exponential": (-np.log(GRID), (0, 7)),
    "log-normal": (np.exp(0.5 * norm.ppf(GRID)), (0, 7)),
    "counts": (poisson.ppf(GRID, 2), (0, 10)),
    "two humps": (np.where(GRID < 0.5, -1, 1) + 0.3 * norm.ppf(2 * GRID % 1), (-3, 3)),
    "gamma": (gamma_law.ppf(GRID, 9), (3, 20)),
}


@pytest.mark.parametrize("level", [-1.5, 0.0, 0.7])
@pytest.mark.parametrize("shape", FEATURES)
def test_slopes_of_ordinary_features_are_within_two_standard_deviations_of_what_shapes_leave_open(shape, level):
    """A logistic slope of 1 a standard deviation, from exact sums of endless records."""
    x, (low, high) = FEATURES[shape]
    u = (2 * np.clip(x, low, high) - low - high) / (high - low)
    m, v = u.mean(), u.var()
    u_of_beta, share, logits = (np.empty(2 * HALF) for _ in range(3))
    beta_nodes(m, v, u_of_beta, share, logits)

    def sums_of(a, b, z, weights):
        g = _logistic(a + b * (z - m))[0] * weights
        return np.array([g.sum(), g @ z])

    found = np.array([level, 1 / np.sqrt(v)])
    slope, exact = found[1], sums_of(*found, u, 1 / len(u))
    for _ in range(30):
        steps = 1e-5 * np.eye(2)
        by_both = np.stack([(sums_of(*(found + e), u_of_beta, share) - sums_of(*(found - e), u_of_beta, share)) / 2e-5 for e in steps], 1)
        found = found - np.linalg.solve(by_both, sums_of(*found, u_of_beta, share) - exact)
    directions = _of_one(_logistic, level, np.array([0, slope]), np.array([[1, m], [m, v + m**2]]))
    open_to = np.sqrt((np.linalg.solve(by_both, directions)[1] ** 2).sum())
    assert abs(found[1] - slope) < 2 * open_to


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["uniform", "exponential"])
@pytest.mark.parametrize(("link", "b"), [("logit", 1.0), ("log", 0.5)])
def test_intervals_hold_slopes_of_uniform_and_of_exponential_features(link, b, shape):
    """Of 16 intervals from 20,000 records under hardly any noise, 9 or more: false alarms are one in a million at 95 %.

    Taken for beta variables without doubt, of uniform features logistic intervals with slopes of 1 to 2 held a sixth: an alarm is then
    missed once in a thousand times.
    """
    rng, held = np.random.default_rng(7), 0
    ends = {"logit(y)": (-4, 4)} if link == "logit" else {"y": (0, 20), "log(y)": (-2, 2)}
    for _ in range(16):
        x = rng.uniform(-2, 2, 20_000) if shape == "uniform" else np.minimum(rng.exponential(1, 20_000), 7)
        bounds = {"x": (-7, 7) if shape == "uniform" else (0, 7)}
        eta = b * x - 0.3
        y = rng.binomial(1, 1 / (1 + np.exp(-eta))) if link == "logit" else rng.poisson(np.exp(eta))
        with pm.Model() as model:
            eta = pm.Normal("a", 0, 1) + pm.Normal("b", 0, 1) * pm.Data("x", x)
            pm.Bernoulli("y", logit_p=eta, observed=y) if link == "logit" else pm.Poisson("y", pm.math.exp(eta), observed=y)
        how = {"tune": 500, "chains": 2, "cores": 1, "progressbar": False, "compute_convergence_checks": False}
        draws = pmdp.sample(500, model=model, epsilon=10, bounds=bounds | ends, **how)["posterior"]["b"]
        low, high = np.quantile(draws, [0.025, 0.975])
        held += low <= b <= high
    assert held >= 9, held
