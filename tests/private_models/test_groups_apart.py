"""Covariates whose means differ between groups."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy.optimize import minimize

from pymc_dp.families.second_moments import Regression
from pymc_dp.privacy.noise_law import Noise
from pymc_dp.private_models.moment_law import _factor, scatter


def most_probable(law, noisy, n, phi, sigma):
    """Factors (B, F, F) of the features' moments where the density of everything that is latent is largest."""
    cells, every = law.latents * len(n), law.latents * len(n) + law.shared
    x = pt.dvector()
    latent, shared = x[:cells].reshape((len(n), law.latents)), x[cells:]
    density = law.log_density(*map(pt.constant, (noisy, n, phi, sigma)), latent, shared, pt.constant(law.given())).sum() - (x**2).sum() / 2
    both = pytensor.function([x], [-density, -pt.grad(density, x)])
    found = minimize(lambda at: tuple(map(np.asarray, both(at))), np.zeros(every), jac=True, method="L-BFGS-B", options={"maxiter": 5000})
    assert found.success
    own = found.x[:cells].reshape(len(n), -1)[:, : law.unknowns, None]
    return _factor(law, law.start + law.shift @ found.x[cells:] + (law.scale @ own)[:, :, 0])


@pytest.mark.parametrize("noise", [0.05, 0.1])
def test_groups_may_differ_in_their_covariates(noise):
    """Means of a covariate that were released within .05 or .1 of the bounds are believed, in groups like students, employed and retired.

    Exact moments stand for released ones, so that only what is believed beforehand moves the most probable means: by less than a quarter
    of a standard deviation of the noise. With three quarters of it common to all groups (``ALIKE``) the third mean moved by six, at .1.
    """
    means, spread, n = np.array([-0.9, -0.3, 0.5]), np.array([0.08, 0.25, 0.15]), np.full(3, 400.0)
    regression = Regression(("1", "a"), (False, True), (-1.0, -1.0), (1.0, 1.0), (-1.0,), (1.0,), False)
    phi, sigma, square = np.tile([0.1, 0.4], (3, 1)), np.full(3, 0.1), means**2 + spread**2
    moments = {
        (0, 1): means, (1, 1): square, (0, 2): phi[:, 0] + phi[:, 1] * means, (1, 2): phi[:, 0] * means + phi[:, 1] * square,
        (2, 2): phi[:, 0] ** 2 + 2 * phi[:, 0] * phi[:, 1] * means + phi[:, 1] ** 2 * square + sigma**2,
    }  # fmt: skip
    exact, known = n[:, None] * np.column_stack([moments[pair] for pair in regression.entries]), np.zeros((3, 3, 3))
    known[:, 0, 0] = n
    law = scatter(regression, Noise(noise * n[0] / np.sqrt(2) * 2**30, 2.0**-30), exact, known, n)
    found = most_probable(law, exact, n, phi, sigma)[:, 1, 0]
    assert np.abs(found - means).max() < noise / 4
