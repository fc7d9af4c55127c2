"""Censored exponential times go by how many are events and what these add up to."""

import numpy as np
import pymc as pm
import pytest
from pytensor.graph.traversal import ancestors

import pymc_dp as pmdp
from pymc_dp.families.grid import POINTS
from pymc_dp.laws.event_loops import events_of_unknown

T = np.array([0.5, 1.5, 2.25, 4.0, 4.0, 4.0, 3.5, 0.25])


def censored(times=T, upper=4.0, lower=None, distribution=None):
    with pm.Model() as model:
        lifetime = pm.Exponential.dist(pm.Gamma("rate", 2, 1)) if distribution is None else distribution()
        pm.Censored("t", lifetime, lower=lower, upper=upper() if callable(upper) else upper, observed=times)
    return model


def told(exact_seam, model, bounds):
    """The number of events and their sum of y - middle, from exact statistics."""
    [one] = pmdp.release(model, epsilon=1e9, bounds={"t": bounds}, missing={}).statistics
    above, events = one.noisy.ravel() / POINTS
    return events, above * (min(bounds[1], 4.0) - bounds[0]) / 2


def test_what_is_released_are_events_and_their_sum(exact_seam):
    events = T[T < 4]
    number, above = told(exact_seam, censored(), (0, 4))
    assert number == len(events)
    assert above == pytest.approx((events - 2).sum(), abs=1e-3)


def test_times_are_censored_at_a_bound_below_the_limit(exact_seam):
    assert told(exact_seam, censored(), (0, 2)) == told(exact_seam, censored(np.minimum(T, 2)), (0, 2))
    assert told(exact_seam, censored(), (0, 2))[0] == (T < 2).sum()


def test_a_bound_above_the_limit_changes_nothing(exact_seam):
    assert told(exact_seam, censored(), (0, 9)) == told(exact_seam, censored(), (0, 4))


def test_the_bound_that_is_asked_for_is_the_limit():
    [row] = pmdp.inspect(censored(), missing={}).rows
    assert "bounds={'t': (0, 4)}" in row.needs


@pytest.mark.parametrize(
    "arguments",
    [
        {"upper": lambda: pm.Data("followed", np.full(8, 4.0))},
        {"upper": np.full(8, 4.0)},
        {"upper": lambda: pm.Exponential("end", 1) + 4},
        {"lower": 0.125},
        {"distribution": lambda: pm.Weibull.dist(1.5, pm.HalfNormal("beta"))},
    ],
    ids=["limits of their own", "an array of limits", "an unknown limit", "a lower limit", "another distribution"],
)
def test_other_limits_and_distributions_are_told_to_go_in_bins(arguments):
    [row] = pmdp.inspect(censored(**arguments), bounds={"t": (0, 4)}, missing={}).rows
    assert row.structure == ""
    assert "Write bounds={'t': pymc_dp.Bins(lower, upper)}" in row.reason
    assert pmdp.inspect(censored(), bounds={"t": pmdp.Bins(0, 4, 8)}, missing={}).rows[0].distribution == "Censored"


def test_a_model_with_another_limit_is_none_of_the_release(exact_seam):
    released = pmdp.release(censored(), epsilon=1.0, bounds={"t": (0, 4)}, missing={})
    with pytest.raises(pmdp.Refusal, match="upper"):
        pmdp.rewrite(censored(upper=5.0), released)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("setting", ["private cells", "private number", "some left out"])
def test_few_events_of_an_unknown_number_of_records_are_no_normal_number(setting, mechanism):
    """Their law sums over every number of events, so that no exact sum is latent; density and slopes are finite where chains start."""
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1, shape=2)[pm.Data("g", np.arange(8) % 2)] if setting == "private cells" else pm.Gamma("rate", 2, 1)
        pm.Censored("t", pm.Exponential.dist(rate), lower=None, upper=4.0, observed=T)
    arguments = {
        "private cells": {"bounds": {"t": (0, 4), "g": (0, 1)}, "missing": {}},
        "private number": {"bounds": {"t": (0, 4)}, "missing": {}, "neighbours": "add_remove"},
        "some left out": {"bounds": {"t": (0, 4)}, "missing": ["t"]},
    }[setting]
    private = pmdp.privatize(model, epsilon=2.0, mechanism=mechanism, **({"delta": 1e-6} if mechanism == "gaussian" else {}), **arguments)
    assert {variable.name for variable in private.free_RVs} == {"rate", "t_size"}
    variables = ancestors([private.logp()])
    assert any(v.owner is not None and getattr(v.owner.op, "loop", None) is events_of_unknown for v in variables)
    assert np.isfinite(private.compile_logp(mode="FAST_COMPILE")(private.initial_point()))
    assert np.isfinite(private.compile_dlogp(mode="FAST_COMPILE")(private.initial_point())).all()
