"""Many public cells with few records each: what their private shares are on the average is an unknown of its own."""

from math import lgamma

import numpy as np
import pymc as pm
import pytest
from checks import seam_of
from scipy import stats

import pymc_dp as pmdp
from pymc_dp.private_models.fingerprint import data_of_release, fingerprint

GROUPS, EACH, SHARE = 200, 10, 0.1


def counties(groups=GROUPS, each=EACH, levels=2, share=SHARE):
    """Records in public groups of one size, of which ``share`` has the first level of a private covariate; the rest is even."""
    rng = np.random.default_rng(700602)
    g = np.repeat(np.arange(groups), each)
    x = (rng.random(len(g)) >= share) * rng.integers(1, levels, len(g))
    with pm.Model() as model:
        rate = pm.Normal("a") + pm.Normal("b", shape=levels)[pm.Data("x", x)] + pm.Normal("c", shape=groups)[pm.Data("g", g)]
        pm.Bernoulli("y", logit_p=rate, observed=rng.integers(0, 2, len(g)))
    return model


def private_of(model, epsilon=1.0, levels=2):
    with seam_of(0):  # noise of 0: only the law of the noise matters
        return pmdp.privatize(model, epsilon=epsilon, bounds={"x": range(levels)}, public=["g"])


@pytest.mark.parametrize(
    ("settings", "epsilon"),
    [({"groups": 4}, 1.0), ({"groups": 30, "each": 40}, 8.0), ({"groups": 30}, 50.0)],
    ids=["few public cells", "many records", "little noise"],
)
def test_elsewhere_there_is_none(settings, epsilon):
    assert "y_size_mean" not in private_of(counties(**settings), epsilon).named_vars


@pytest.mark.parametrize("levels", [2, 3])
def test_shares_vary_about_means_as_a_dirichlet_law_says(levels):
    """Against SciPy, in the model's coordinates: two points with the same means differ by the law of shares and its volume alone."""
    model = counties(groups=6, levels=levels)
    private = private_of(model, levels=levels)
    size, mean = private["y_size"], private["y_size_mean"]
    start, rng = private.initial_point(), np.random.default_rng(0)
    names = [private.rvs_to_values[variable].name for variable in (size, mean)]
    shares_of = private.compile_fn(
        private.replace_rvs_by_values([size, mean]), inputs=private.value_vars, point_fn=True, mode="FAST_COMPILE", on_unused_input="ignore"
    )
    law = private.compile_logp(vars=[size, mean], jacobian=False, mode="FAST_COMPILE")
    for _ in range(5):
        point = start | {name: rng.normal(size=start[name].shape) for name in names}
        shares, [means] = shares_of(point)
        assert np.allclose([shares.sum(axis=-1).max(), means.sum()], 1)
        expected = sum(stats.dirichlet.logpdf(share / share.sum(), levels * means) for share in shares) + lgamma(levels)
        np.testing.assert_allclose(law(point), expected, rtol=1e-6)


def test_another_release_needs_nothing_compiled_again():
    keys = set()
    for noise in (0, 3):
        with seam_of(noise):
            private = pmdp.privatize(counties(groups=6), epsilon=1.0, bounds={"x": {0, 1}}, public=["g"])
        keys.add(fingerprint(private, private.initial_point(), data_of_release(private), None).key)
    assert len(keys) == 1


@pytest.mark.slow
def test_private_cells_of_many_small_groups_are_not_taken_for_halves():
    """A tenth of 2,000 records, whose noise is drawn once and kept: flat priors of 200 cells each by itself said more than a quarter.

    The noise on all numbers of one level moves the share by .028: the bound is 5 of these from the truth. It is always the same noise.
    """
    noise = np.random.default_rng(700603).laplace(scale=2.0, size=4 * GROUPS).round().astype(int)
    with seam_of(noise):
        tree = pmdp.sample(300, tune=300, model=counties(), epsilon=1.0, bounds={"x": {0, 1}}, public=["g"], random_seed=1)
    shares, means = (tree["latent_statistics"][name].values for name in ("y_size", "y_size_mean"))
    assert "y_size_mean" not in tree["posterior"]
    assert abs(shares[..., 0].mean() - SHARE) < 5 * 0.028
    assert abs(means[..., 0].mean() - SHARE) < 5 * 0.028
