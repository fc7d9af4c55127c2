"""How samplers see the exact values of rows, under Laplace noise."""

import numpy as np
import pytensor
import pytensor.tensor as pt
from scipy import stats

from pymc_dp.private_models.row_values import laplace_of_normal, normal_of_laplace

X = pt.dvector("x")
VALUE, SLOPE = laplace_of_normal(X), pt.grad(laplace_of_normal(X).sum(), X)
SEEN = np.concatenate([-np.geomspace(1e-8, 100, 200)[::-1], [0.0], np.geomspace(1e-8, 100, 200)])


def test_quantiles_of_a_normal_variable_become_those_of_a_laplace_variable():
    near = SEEN[abs(SEEN) < 30]
    further_out = -np.log(2) - stats.norm.logcdf(-np.abs(near))
    np.testing.assert_allclose(VALUE.eval({X: near}), np.sign(near) * further_out, rtol=1e-9, atol=1e-12)


def test_the_inverse_is_one_from_the_middle_to_far_out():
    both = pytensor.function([X], normal_of_laplace(VALUE))
    np.testing.assert_allclose(both(SEEN), SEEN, rtol=1e-7, atol=1e-7)


def test_there_is_a_slope_where_the_noise_has_its_kink():
    """It is the density of a normal variable over that of a Laplace variable: .8 at 0."""
    at = np.array([-2.0, 0.0, 2.0])
    np.testing.assert_allclose(SLOPE.eval({X: at}), stats.norm.pdf(at) / stats.laplace.pdf(VALUE.eval({X: at})), rtol=1e-9)
