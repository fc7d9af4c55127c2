"""An epsilon or a delta that promises little is said to, at every door, before anything is spent, and from public things alone."""

import warnings
from decimal import Decimal

import numpy as np
import pandas
import pymc as pm
import pytest

import pymc_dp as pmdp

BIG = "epsilon 11 is above 10"


def coin(n=60):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Uniform("theta", 0.1, 0.9), observed=np.arange(n) % 2)
    return model


def counts(n=60):
    with pm.Model() as model:
        pm.Poisson("k", pm.Gamma("rate", 2, 1), observed=np.arange(n) % 4)
    return model


QUICK = {"draws": 5, "tune": 5, "chains": 1, "progressbar": False, "nuts_sampler": "pymc", "compute_convergence_checks": False}
DOORS = {
    "release": lambda epsilon, ledger: pmdp.release(coin(), epsilon=epsilon, ledger=ledger),
    "privatize": lambda epsilon, ledger: pmdp.privatize(coin(), epsilon=epsilon, ledger=ledger),
    "sample": lambda epsilon, ledger: pmdp.sample(
        model=coin(), epsilon=epsilon, ledger=ledger, compile_kwargs={"mode": "FAST_COMPILE"}, **QUICK
    ),
    "a draw": lambda epsilon, ledger: pmdp.sample(model=coin(), epsilon=epsilon, ledger=ledger, mechanism=pmdp.PosteriorSample()),
    "Gibbs": lambda epsilon, ledger: pmdp.sample(model=coin(), epsilon=epsilon, ledger=ledger, mechanism=pmdp.Gibbs(sweeps=2)),
    "annealing": lambda epsilon, ledger: pmdp.sample(model=coin(), epsilon=epsilon, ledger=ledger, mechanism=pmdp.Annealing(2)),
    "find_MAP": lambda epsilon, ledger: pmdp.find_MAP(model=coin(), epsilon=epsilon, ledger=ledger),
    "bounds": lambda epsilon, ledger: pmdp.private_bounds(counts(), names="k", within={"k": (0, 9)}, epsilon=epsilon, ledger=ledger),
    "ask": lambda epsilon, ledger: pmdp.ask({"a": lambda draw: draw.theta}, model=coin(), epsilon=epsilon, ledger=ledger),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_warns_of_a_large_epsilon_before_it_spends(door, tmp_path):
    ledger = pmdp.Ledger(tmp_path / "a.ledger", epsilon=30, create=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pmdp.WeakPrivacyWarning)
        with pytest.raises(pmdp.WeakPrivacyWarning, match=BIG):
            DOORS[door](11, ledger)
    assert float(ledger.remaining().epsilon) == 30
    with pytest.warns(pmdp.WeakPrivacyWarning, match=BIG) as said:
        DOORS[door](Decimal(11), ledger)
    assert [one.filename for one in said if issubclass(one.category, pmdp.WeakPrivacyWarning)] == [__file__]
    assert 19 <= float(ledger.remaining().epsilon) < 30  # draws are never sharper than the posterior, and cost less then


def test_ten_is_not_warned_of(recwarn):
    pmdp.release(coin(), epsilon=10, delta=0)
    pmdp.release(coin(), epsilon=10, mechanism="gaussian", delta=1e-6)
    assert not [one for one in recwarn if issubclass(one.category, pmdp.WeakPrivacyWarning)]


def test_a_chain_that_is_priced_by_its_updates():
    """Four updates at 3 are 12 in all."""
    with pytest.warns(pmdp.WeakPrivacyWarning, match="epsilon 12 is above 10"):
        tree = pmdp.sample(model=coin(), mechanism=pmdp.Gibbs(sweeps=4, epsilon_per_update=3))
    assert float(tree.attrs["epsilon"]) == 12


@pytest.mark.parametrize(("n", "delta", "warned"), [(60, 0.01, False), (60, 0.02, True), (2000, 1e-3, True), (2000, 1e-4, False)])
def test_a_delta_above_one_in_the_number_of_records(n, delta, warned):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        pmdp.release(counts(n), epsilon=1, delta=delta, mechanism="gaussian", bounds={"k": (0, 4)})
        pmdp.release(counts(n), epsilon=1, mechanism=pmdp.Gaussian(delta=delta), bounds={"k": (0, 4)})
        pmdp.sample(model=coin(n), epsilon=1, delta=delta, mechanism=pmdp.PosteriorSample())
    weak = [str(one.message) for one in said if issubclass(one.category, pmdp.WeakPrivacyWarning)]
    assert len(weak) == (3 if warned else 0)
    assert all(f"delta {delta:g} is above 1/{n:,}," in one for one in weak)


def test_a_private_number_of_records_decides_nothing():
    """Under add_remove the limit is 1/1,000, whatever the number of records."""
    for n in (60, 5000):
        with pytest.warns(pmdp.WeakPrivacyWarning, match="delta 0.002 is above 1/1,000: "):
            pmdp.release(counts(n), epsilon=1, delta=2e-3, mechanism="gaussian", bounds={"k": (0, 4)}, neighbours="add_remove")
        with warnings.catch_warnings():
            warnings.simplefilter("error", pmdp.WeakPrivacyWarning)
            pmdp.release(counts(n), epsilon=1, delta=1e-3, mechanism="gaussian", bounds={"k": (0, 4)}, neighbours="add_remove")


@pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")
def test_missing_values_do_not_show():
    """The number of records is that of all, not of those that PyMC observes."""
    told = []
    for hole in (slice(0, 1), slice(0, 30)):
        x = np.linspace(-1, 1, 60)
        x[hole] = np.nan
        with pm.Model() as model:
            pm.Normal("x", pm.Normal("mu"), 1.0, observed=x)
        with pytest.warns(pmdp.WeakPrivacyWarning) as said:
            pmdp.release(model, epsilon=1, delta=0.02, mechanism="gaussian", bounds={"x": (-1, 1)})
        told.append([str(one.message) for one in said if issubclass(one.category, pmdp.WeakPrivacyWarning)])
    assert told[0] == told[1]
    assert "1/60" in told[0][0]


def test_what_is_refused_is_refused_in_the_same_words():
    for epsilon in ("much", -1, None):
        with pytest.raises(pmdp.Refusal, match="epsilon must be"):
            pmdp.release(coin(), epsilon=epsilon)
    with pytest.raises(pmdp.Refusal, match="no model here"):
        pmdp.release(epsilon=1, delta=0.5, mechanism="gaussian")


def test_a_session_warns_once_when_its_answers_come_to_promise_little():
    session = pmdp.QuerySession(pandas.DataFrame({"age": np.arange(50)}), {"age": range(100)})
    with warnings.catch_warnings():
        warnings.simplefilter("error", pmdp.WeakPrivacyWarning)
        session.ask("age >= 10", epsilon=6)
    with pytest.warns(pmdp.WeakPrivacyWarning, match="epsilon 12 is above 10"):
        session.ask("age >= 11", epsilon=6)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pmdp.WeakPrivacyWarning)
        session.ask("age >= 12", epsilon=6)
