"""NumPyro and other samplers on JAX see the log-density and the gradient that PyTensor sees. Runs where JAX is installed."""

import numpy as np
import pymc as pm
import pytest
from models import SPELLINGS

import pymc_dp as pmdp

pytest.importorskip("jax")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", SPELLINGS, ids=lambda make: make.__name__)
def test_jax_sees_the_same_log_density_and_gradient(make):
    import jax
    from pymc.sampling.jax import get_jaxified_logp

    jax.config.update("jax_enable_x64", True)
    model, arguments = make()
    private = pmdp.privatize(model, epsilon=1.0, **arguments)
    point = private.initial_point()
    ours = get_jaxified_logp(private)
    values = [jax.numpy.asarray(point[v.name]) for v in private.value_vars]
    theirs, slope = private.compile_logp()(point), private.compile_dlogp()(point)
    np.testing.assert_allclose(ours(values), theirs, rtol=1e-9)
    found = np.concatenate([np.ravel(part) for part in jax.grad(ours)(values)])
    np.testing.assert_allclose(found, slope, rtol=1e-6, atol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_numpyro_samples_a_private_model():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), pm.HalfNormal("sigma"), observed=np.linspace(-1, 1, 300))
    private = pmdp.privatize(model, epsilon=5.0, bounds={"y": (-4, 4)})
    settings = {"chains": 1, "random_seed": 1, "progressbar": False, "compute_convergence_checks": False}
    tree = pm.sample(300, tune=300, nuts_sampler="numpyro", model=private, **settings)
    assert abs(float(tree["posterior"]["mu"].mean())) < 0.5
