"""What other shapes of features would do to sums of a response with a link, against integrals over these shapes."""

import numpy as np
import pymc as pm
import pytest
from scipy.stats import beta as beta_law
from scipy.stats import gamma as gamma_law

import pymc_dp as pmdp
from pymc_dp.shapes import SKEW, _counts, _logistic, _of_one, _predictor

LEGENDRE = np.polynomial.legendre.leggauss(400)
HERMITE = np.polynomial.hermite_e.hermegauss(40)
M, V = 0.2, 0.05
"""Mean and variance of a feature on [-1, 1]."""


def density(shape):
    """Nodes and weights of a variable with mean M and variance V."""
    if shape == "uniform":
        return M + np.sqrt(3 * V) * LEGENDRE[0], LEGENDRE[1] / 2
    if shape == "beta":
        total = (1 - M**2) / V - 1
        law, ends = beta_law((1 + M) / 2 * total, (1 - M) / 2 * total, loc=-1, scale=2), (-1, 1)
    else:
        k, sign = 4 / SKEW**2, 1 if shape == "long to the right" else -1
        law = gamma_law(k, loc=-k)
        x = k * LEGENDRE[0] * 3 + 2 * k
        return M + sign * np.sqrt(V / k) * x, np.nan_to_num(law.pdf(x)) * 3 * k * LEGENDRE[1]
    x = (ends[1] + ends[0] + (ends[1] - ends[0]) * LEGENDRE[0]) / 2
    return x, law.pdf(x) * (ends[1] - ends[0]) / 2 * LEGENDRE[1]


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
    uniform, beta, right, left = (sums(curve, 0.4, own, shape) for shape in ("uniform", "beta", "long to the right", "long to the left"))
    np.testing.assert_allclose(found[:, 0], uniform - beta, rtol=1e-2, atol=2e-4)
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


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["uniform", "exponential"])
@pytest.mark.parametrize(("link", "b"), [("logit", 1.0), ("log", 0.5)])
def test_intervals_hold_a_slope_whatever_the_shape(link, b, shape):
    """Of 16 intervals from 20,000 records under hardly any noise, 9 or more: false alarms are one in a million at 95 %.

    Taken for beta variables without doubt, of uniform features logistic intervals with slopes of 1 to 2 held a sixth: an alarm is then
    missed once in a thousand times.
    """
    rng, held = np.random.default_rng(7), 0
    ends = {"logit(y)": (-4, 4)} if link == "logit" else {"y": (0, 20), "log(y)": (-2, 2)}
    for _ in range(16):
        x = rng.uniform(-2, 2, 20_000) if shape == "uniform" else np.minimum(rng.exponential(1, 20_000), 7)
        eta = b * x - 0.3
        y = rng.binomial(1, 1 / (1 + np.exp(-eta))) if link == "logit" else rng.poisson(np.exp(eta))
        with pm.Model() as model:
            eta = pm.Normal("a", 0, 1) + pm.Normal("b", 0, 1) * pm.Data("x", x)
            pm.Bernoulli("y", logit_p=eta, observed=y) if link == "logit" else pm.Poisson("y", pm.math.exp(eta), observed=y)
        how = {"tune": 500, "chains": 2, "cores": 1, "progressbar": False, "compute_convergence_checks": False}
        draws = pmdp.sample(500, model=model, epsilon=10, bounds={"x": (-7, 7)} | ends, **how)["posterior"]["b"]
        low, high = np.quantile(draws, [0.025, 0.975])
        held += low <= b <= high
    assert held >= 9, held
