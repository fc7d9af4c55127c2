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


def test_a_single_total_is_observed_as_its_refusal_says():
    def tossed(observed):
        with pm.Model() as model:
            pm.Binomial("w", n=9, p=pm.Beta("p", 1, 1), observed=observed)
        return model

    with pytest.raises(pmdp.Refusal, match=r'observed=\[total\] with unit="individual"'):
        pmdp.release(tossed(6), epsilon=1.0)
    assert pmdp.release(tossed([6]), epsilon=1.0, unit="individual").statistics[0].structure == "aggregate"
