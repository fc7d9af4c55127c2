"""What is written in other words where a likelihood cannot be released as it stands: the words are found, and the models are the same."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import EXACT, log_density, points, refused, spread_of_differences
from gallery import records

import pymc_dp as pmdp

pytestmark = pytest.mark.filterwarnings("ignore")
N, TRIALS = 60, 4
R = records(N)
VOTES = np.stack([R.i % 3, R.h, TRIALS - R.i % 3 - R.h], axis=1)


def test_counts_of_a_dirichlet_multinomial_are_written_column_by_column():
    def prior():
        return pm.Gamma("a", 2, 1, shape=(3, 3))[R.g]

    with pm.Model() as together:
        pm.DirichletMultinomial("y", n=TRIALS, a=prior(), observed=VOTES)
    assert "alpha=a[0] and beta=a[1] + a[2]" in (refused(pmdp.release, together, epsilon=1.0) or "")
    with pm.Model() as apart:
        a = prior()
        pm.BetaBinomial("y0", n=TRIALS, alpha=a[:, 0], beta=a[:, 1] + a[:, 2], observed=VOTES[:, 0])
        pm.BetaBinomial("y1", n=pm.Data("left", TRIALS - VOTES[:, 0]), alpha=a[:, 1], beta=a[:, 2], observed=VOTES[:, 1])
    of_votes, of_columns = log_density(together), log_density(apart)
    assert np.ptp([of_votes(point) - of_columns(point) for point in points(together)]) < 1e-9
    released = pmdp.release(apart, epsilon=EXACT, bounds=dict.fromkeys(("left", "y0", "y1"), (0, TRIALS)))
    assert spread_of_differences(of_votes, together, pmdp.rewrite(apart, released, noise_aware=False)) < 1e-6


def test_a_student_t_of_vectors_names_what_is_released():
    with pm.Model() as model:
        pm.MvStudentT("y", nu=5, mu=pm.Normal("m", shape=2), scale=np.eye(2), observed=R.YX)
    assert "Write pm.MvNormal; or a pm.StudentT of every column" in (refused(pmdp.release, model, epsilon=1.0) or "")
    with pm.Model() as model:
        pm.MvNormal("y", mu=pm.Normal("m", shape=2), cov=pt.eye(2), observed=R.YX)
    assert pmdp.release(model, epsilon=1.0, bounds={"y": (-4, 8)}).statistics
    with pm.Model() as model:
        for c in range(2):
            pm.StudentT(f"y{c}", nu=5, mu=pm.Normal(f"m{c}"), sigma=1, observed=R.YX[:, c])
    assert pmdp.release(model, epsilon=1.0, bounds={"y0": pmdp.Bins(-4, 8), "y1": pmdp.Bins(-1, 1)}).statistics


def test_two_levels_with_a_real_covariate_are_written_as_a_yes_or_no():
    def predictor():
        return pm.Normal("a") + pm.Normal("b") * pm.Data("x", R.z)

    with pm.Model() as model:
        eta = predictor()
        pm.Categorical("y", p=pm.math.softmax(pt.stack([pt.zeros_like(eta), eta], axis=-1), axis=-1), observed=R.y)
    words = refused(pmdp.release, model, epsilon=1.0, bounds={"x": (-1, 1)})
    assert "write pm.Bernoulli(p=pm.math.sigmoid(...)) of the second level, and bounds={'logit(y)': (-3, 3)}" in (words or "")
    with pm.Model() as written:
        pm.Bernoulli("y", p=pm.math.sigmoid(predictor()), observed=R.y)
    both = [log_density(each) for each in (model, written)]
    assert np.ptp([both[0](point) - both[1](point) for point in points(model)]) < 1e-9
    assert pmdp.release(written, epsilon=1.0, bounds={"x": (-1, 1), "logit(y)": (-3, 3)}).statistics


def test_more_levels_have_no_such_words():
    with pm.Model() as model:
        eta = pm.Normal("a", shape=3) + pm.Normal("b", shape=3) * pm.Data("x", R.z)[:, None]
        pm.Categorical("y", p=pm.math.softmax(eta, axis=-1), observed=R.i % 3)
    assert "Bernoulli" not in (refused(pmdp.release, model, epsilon=1.0, bounds={"x": (-1, 1)}) or "")


def test_a_distribution_function_that_fails_is_none():
    """PyMC has that of a hypergeometric count for single parameters alone; how many records have each value says everything."""
    with pm.Model() as model:
        pm.HyperGeometric("k", N=20, k=pm.DiscreteUniform("good", 6, 14), n=6, observed=R.k)
    for bounds in ({}, {"k": pmdp.Bins(0, 6, 6)}):
        assert "Write bounds={'k': (0, 40)}" in (refused(pmdp.release, model, epsilon=1.0, bounds=bounds) or ""), bounds
    private = pmdp.rewrite(model, pmdp.release(model, epsilon=EXACT, bounds={"k": (0, 6)}), noise_aware=False)
    theirs, ours = log_density(model), log_density(private)
    assert np.ptp([theirs({"good": np.array(good)}) - ours({"good": np.array(good)}) for good in (8, 9, 10)]) < 1e-6
