"""Distributions of ``pymc_extras``, where that is installed; a class of one's own of the same name is none of them."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.tensor.random.op import RandomVariable
from scipy.stats import genextreme

import pymc_dp as pmdp
from pymc_dp.models.binned import parametrised_in_bins

EDGES = np.linspace(-4.0, 10.0, 15)


@pytest.mark.parametrize("xi", [-0.4, -0.1, 0.0, 0.2, 0.6])
def test_bins_of_a_generalised_extreme_value_have_its_probabilities(xi):
    """Also those that reach beyond an end; above an upper one that package says that nothing lies below."""
    extras = pytest.importorskip("pymc_extras")
    tree = parametrised_in_bins(extras.GenExtreme.dist(pt.dvector(), pt.dvector(), pt.dvector()))
    ours = tree.between(EDGES, *(pt.constant(np.array([number])) for number in (1.0, 1.5, xi))).eval()[0]
    below = genextreme(-xi, loc=1.0, scale=1.5).cdf(EDGES)
    np.testing.assert_allclose(ours, np.diff(below, prepend=0.0, append=1.0), atol=1e-5)


def test_a_generalised_extreme_value_is_released_in_bins(exact_seam):
    extras = pytest.importorskip("pymc_extras")
    y = np.linspace(-3, 9, 50)
    with pm.Model() as model:
        extras.GenExtreme(
            "y", mu=pm.Normal("mu"), sigma=pm.HalfNormal("s"), xi=pm.TruncatedNormal("xi", 0, 0.2, lower=-0.9, upper=0.9), observed=y
        )
    released = pmdp.release(model, epsilon=1.0, bounds={"y": pmdp.Bins(edges=EDGES)})
    inside = np.searchsorted(EDGES[1:-1], y)
    assert released["y"].noisy.ravel().tolist() == np.bincount(inside, minlength=len(EDGES) - 1).tolist()
    assert all(np.isfinite(value) for value in pmdp.rewrite(model, released).point_logps().values())


class GenExtremeRV(RandomVariable):
    """Holds what it likes."""

    name = "GenExtreme"
    signature = "(),(),()->()"
    dtype = "floatX"
    records = np.arange(9.0)


def test_a_class_of_one_s_own_of_that_name_is_refused():
    with pm.Model() as model:
        prior = pm.Normal("mu")
        random = GenExtremeRV()(prior, 1.0, 0.1, size=(9,), rng=pt.random.shared_rng(seed=1), return_next_rng=True)[1]
        model.register_rv(random, "y", observed=np.arange(9.0))
    with pytest.raises(pmdp.Refusal, match="GenExtremeRV, an operation of Python code"):
        pmdp.release(model, epsilon=1.0, bounds={"y": pmdp.Bins(0, 9, 5)})
