"""What a rewritten model must satisfy, whatever the model, and all that is seen of a call: used by several files of tests."""

import io
import logging
import warnings
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import cloudpickle
import numpy as np
import pytest
from conftest import Seam
from scipy.stats import chi2

import pymc_dp as pmdp
from pymc_dp.privacy import mechanisms

EXACT = 10**9
"""So much epsilon that projections change nothing."""


def flat(shown):
    """What is shown of something, in one line: text wraps at 80 columns."""
    return " ".join(repr(shown).split())


@contextmanager
def seam_of(noise, frozen=()):
    """Noise of both kinds is drawn by a seam."""
    seam = Seam(noise, frozen)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_opendp_laplace", "_opendp_gaussian"):
            patch.setattr(mechanisms, name, seam)
        yield seam


@contextmanager
def watched(noise, frozen=()):
    """The seam, and all that is printed, logged or warned of meanwhile."""
    output = io.StringIO()
    handler = logging.StreamHandler(output)
    logging.getLogger().addHandler(handler)
    try:
        with (
            seam_of(noise, frozen) as seam,
            redirect_stdout(output),
            redirect_stderr(output),
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            yield seam, output, caught
    finally:
        logging.getLogger().removeHandler(handler)


def mostly_slow(values, *quick):
    """Parameters of which those at some places run by default, and all others in the slow suite."""
    values = list(values)
    several = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*value, marks=() if k in quick else pytest.mark.slow) for k, value in enumerate(several)]


def points(model, count=4, seed=8):
    """Unconstrained points around the initial one."""
    rng = np.random.default_rng(seed)
    start = model.initial_point(random_seed=1)
    return [{name: value + 0.4 * rng.normal(size=np.shape(value)) for name, value in start.items()} for _ in range(count)]


def log_density(model):
    return model.compile_logp(mode="FAST_COMPILE", jacobian=False)


def spread_of_differences(theirs, model, private, ours=None, seed=8):
    """By how much the difference of two log-densities varies, in units of what rounding of doubles can explain times 1e6."""
    ours = log_density(private) if ours is None else ours
    at = points(model, seed=seed)
    values = np.array([(theirs(point), ours(point)) for point in at])
    assert np.isfinite(values).all(), values
    return np.ptp(values[:, 0] - values[:, 1]) / max(1.0, 1e-5 * np.abs(values).max())


class _Arrays(cloudpickle.Pickler):
    """Sees every array on its way into a pickle."""

    def __init__(self, file):
        super().__init__(file)
        self.found = []

    def reducer_override(self, thing):
        if isinstance(thing, np.ndarray):
            self.found.append(thing)
        return super().reducer_override(thing)


def pickled(model):
    """The pickle of a model, and all arrays in it."""
    file = io.BytesIO()
    pickler = _Arrays(file)
    pickler.dump(model)
    return file.getvalue(), pickler.found


def check_no_records(model, private, n):
    """No array as long as the records, and no sixteen records in a row of any array of the user's."""
    (theirs, arrays), (ours, kept) = pickled(model), pickled(private)
    long = [array for array in arrays if n in array.shape and array.dtype.kind in "fiub"]
    assert not [array.shape for array in kept if n in array.shape]
    assert any(array.tobytes("A") in theirs for array in long), "the user's model holds the records, or this could not fail"
    for array in long:
        rows = np.moveaxis(array, array.shape.index(n), 0)[5:21]
        assert rows.tobytes() not in ours
        assert not any(column.tobytes() in ours for column in rows.reshape(len(rows), -1).T)


def gradient(model):
    """The log-density and its gradient, compiled together."""
    return model.compile_fn([model.logp(jacobian=True), model.dlogp(jacobian=True)], mode="FAST_COMPILE", inputs=model.value_vars)


def check_finite(private):
    compiled = gradient(private)
    for point in points(private):
        value, slope = compiled(point)
        assert np.isfinite(value), value
        assert np.isfinite(slope).all(), slope


def contents(released):
    """All that a release says of every statistic, to be compared."""
    return [(statistic.facts(), *(array.tolist() for array in statistic.arrays)) for statistic in released.statistics]


def refused(call, *arguments, **named):
    """The words of a refusal, or None; anything else but a result is raised."""
    try:
        call(*arguments, **named)
    except pmdp.Refusal as reason:
        return str(reason)
    return None


ALARM = 1e-6
"""The probability with which a comparison of draws with a law fails by chance."""


def check_frequencies(found, p):
    """Counts (V,) against probabilities (V,): cells expected below 5 are put together."""
    expected = p * found.sum()
    assert not found[p == 0].any()
    rare = expected < 5
    found, expected = (np.append(each[~rare], each[rare].sum()) for each in (found, expected))
    found, expected = found[expected > 0], expected[expected > 0]
    statistic = ((found - expected) ** 2 / expected).sum()
    assert statistic < chi2.isf(ALARM, max(len(found) - 1, 1)), (statistic, found, expected)
