"""Chains of regressions start where the released numbers are likely, however far from there the prior begins."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as pmdp
from pymc_dp.private_models.fingerprint import data_of_release
from pymc_dp.private_models.newton_starts import coefficients_of, started_by_newton
from pymc_dp.private_models.nutpie_draws import nutpie_model

UNITS = np.array([1.0, 1e3, 1e-4])
MIDDLE = np.array([2.0, 30.0, -4e-4])


def hill(point):
    """A normal density whose units differ by seven powers of ten, with correlations; and a wall of no density."""
    precision = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.3], [0.0, 0.3, 1.0]])
    z = (point - MIDDLE) / UNITS
    if point[0] > 50:
        return -np.inf, np.full(3, np.nan)
    return -z @ precision @ z / 2, -(precision @ z) / UNITS


def test_the_top_of_a_hill_is_found_in_any_units():
    found = started_by_newton(hill, np.array([-300.0, 4e6, 3.0]), np.full(3, True))
    assert (found - MIDDLE) / UNITS == pytest.approx(np.zeros(3), abs=1e-3)


def test_what_is_not_to_be_moved_stays_and_the_others_go_as_high_as_they_can():
    start = np.array([5.0, 4e6, 3.0])
    found = started_by_newton(hill, start, np.array([False, True, True]))
    assert found[0] == start[0]
    assert hill(found)[1][1:] * UNITS[1:] == pytest.approx(np.zeros(2), abs=1e-3)


def test_a_start_without_a_density_or_without_a_way_up_is_left_alone():
    outside = np.array([51.0, 0.0, 0.0])
    assert started_by_newton(hill, outside, np.full(3, True)) is outside
    assert started_by_newton(hill, MIDDLE, np.full(3, True)) == pytest.approx(MIDDLE)


def test_a_density_that_is_no_hill_is_never_left_for_a_lower_place():
    """Two tops and a saddle between them: from the saddle's side, where curvature has the wrong sign."""

    def density(point):
        x = point[0]
        return -((x**2 - 4) ** 2), np.array([-4 * x * (x**2 - 4)])

    for start in (0.1, -0.1, 1.0, -3.0, 40.0):
        found = started_by_newton(density, np.array([start]), np.full(1, True))
        assert density(found)[0] >= density(np.array([start]))[0]
        assert abs(found[0]) == pytest.approx(2, abs=0.2)


def ages(prior=10.0):
    rng = np.random.default_rng(5)
    age = rng.uniform(18, 90, 20_000)
    with pm.Model(coords={"term": ["1", "age", "age²"]}) as model:
        x = pm.Data("age", age)
        b = pm.Normal("b", 0, prior, dims="term")
        mean = b[0] + b[1] * x + b[2] * x**2
        pm.Normal("wage", mean, pm.HalfNormal("sigma", 2), observed=3 + 0.07 * age - 0.0007 * age**2 + rng.normal(0, 0.5, len(age)))
    return model


def starts(private, seeds):
    model = nutpie_model(private, {}, data_of_release(private))
    names = [variable.name for variable in private.value_vars]
    start = model.compiled().initial_point_func
    shapes = private.initial_point()
    ends = np.cumsum([np.size(shapes[name]) for name in names])
    return [dict(zip(names, np.split(start(seed), ends[:-1]), strict=True)) for seed in seeds]


@pytest.mark.compiled
def test_chains_start_at_coefficients_that_the_released_numbers_speak_for():
    """PyMC's start is off by up to 1 in the coefficient of age², and so by thousands in the mean of wages, which are about 4."""
    private = pmdp.privatize(ages(), epsilon=4.0, bounds={"age": (18, 90), "wage": (0, 10)})
    assert coefficients_of(private) == ["b"]
    found = np.array([point["b"] for point in starts(private, range(6))])
    middle = 54.0
    at_middle = found @ np.array([1, middle, middle**2])
    assert at_middle == pytest.approx(np.full(6, 3 + 0.07 * middle - 0.0007 * middle**2), abs=0.2)
    assert found[:, 2] == pytest.approx(np.full(6, -0.0007), abs=0.0007)


def test_what_others_rest_on_and_what_is_bounded_stays():
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    with pm.Model() as model:
        top, spread = pm.Normal("top"), pm.HalfNormal("spread")
        slope = pm.Normal("slope", top, spread)
        share = pm.Beta("share", 2, 2)
        pm.Normal("y", share + slope * pm.Data("x", x), pm.HalfNormal("s"), observed=x)
    private = pmdp.privatize(model, epsilon=1.0, bounds={"x": (-3, 3), "y": (-4, 4)})
    assert coefficients_of(private) == ["slope"]


def test_other_models_start_where_pymc_says():
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=pm.Normal("a"), observed=np.ones(50, dtype=int))
    assert coefficients_of(pmdp.privatize(model, epsilon=1.0)) == []
    assert coefficients_of(model) == []  # of records, as plans fit it
