"""A Binomial of one trial is the Bernoulli variable that it is, however that is needed."""

import numpy as np
import pymc as pm
import pytest

import pymc_dp as pmdp

pytestmark = pytest.mark.filterwarnings("ignore")
N = 60
X, Y = np.linspace(-1, 1, N), np.arange(N) % 3 // 2
BOUNDS = {"x": (-1, 1), "logit(y)": (-4, 4)}


def regression(write):
    with pm.Model() as model:
        write("y", pm.math.invlogit(pm.Normal("a") + pm.Normal("b") * pm.Data("x", X)))
    return model


def of_trials(trials):
    return lambda name, p: pm.Binomial(name, n=trials, p=p, observed=Y)


def test_a_logistic_regression_of_one_trial_has_scores():
    own = pmdp.inspect(regression(of_trials(1)), bounds=BOUNDS).rows[0]
    known = pmdp.inspect(regression(lambda name, p: pm.Bernoulli(name, p, observed=Y)), bounds=BOUNDS).rows[0]
    assert (own.structure, own.statistics, own.sensitivity) == (known.structure, known.statistics, known.sensitivity)
    assert own.structure == "linear"


def test_one_of_two_trials_has_none():
    with pytest.raises(pmdp.Refusal, match="Binomial, is not normal"):
        pmdp.release(regression(of_trials(2)), epsilon=1.0, bounds={"x": (-1, 1)})
