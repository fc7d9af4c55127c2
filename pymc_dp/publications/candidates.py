"""The true values that are possible given a published one, if it is a covariate: a table of them for every record.

Shapes: N records, L values.
"""

from dataclasses import dataclass

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.laws.kernel import NEGLIGIBLE
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.publications.rows import Read
from pymc_dp.publications.tables import Transitions
from pymc_dp.publications.truths import largest_of
from pymc_dp.publications.windows import windows_of

FEW = 4
"""Of so few values all are listed for every record."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """The values of a covariate that may be true, and the log-probability of what was published given each of them: both (L, N)."""

    values: np.ndarray
    logs: np.ndarray


def candidates_of(name: str, covariate: Read) -> Candidates:
    """The true values that may stand behind the published ones."""
    events = covariate.events
    if events.as_it_was:
        return Candidates(events.low[None], np.zeros((1, *events.low.shape)))
    if events.hidden is not None:
        raise Refusal(
            f"{name} is a covariate, and Suppressed is understood of outcomes alone. Leave {name} out of the model, or make it an outcome."
        )
    if not covariate.whole:
        raise Refusal(f"{name} was published without noise but not as it was: {events.noise.words}. Give it GaussianNoise or LaplaceNoise.")
    if isinstance(events.setting, Variable) or events.least is not None:
        raise Refusal(
            f"{name} is a covariate, and its noise has an unknown scale, or rows are left out of the table. Give the scale as a number, and"
            ' list absent rows as NaN with Threshold(lowest, absent="listed").'
        )
    windows, top = windows_of(name, events), _largest(covariate)
    if top is None and windows.open.any():
        raise Refusal(
            f"{name} may be as large as can be given what was published. Write a distribution with a largest value, such as pm.Binomial or"
            " pm.DiscreteUniform."
        )
    rows = events.low.shape
    if top is not None and top + 1 <= max(windows.longest, FEW):
        values = np.broadcast_to(np.arange(top + 1).reshape(-1, *[1] * len(rows)), (top + 1, *rows))
        weights = windows.weights(values)
    else:
        values, _ = windows.padded()
        weights = np.where((values <= (np.inf if top is None else top)), windows.weights(values), 0.0)
        first = windows.start + np.arange(len(values)).reshape(-1, *[1] * len(rows))
        weights = np.where(first >= 0, weights, 0.0)  # counts below 0 stand there as 0
        values = np.where(weights > 0, values, np.take_along_axis(values, weights.argmax(axis=0)[None], axis=0))
    if (weights.max(axis=0) <= 0).any():
        raise Refusal(f"{name} holds a number that no true value can have been published as: {events.noise.words}. Look at the row.")
    with np.errstate(divide="ignore"):
        return Candidates(values, np.maximum(windows.top + np.log(weights), NEGLIGIBLE))


def _largest(covariate: Read) -> int | None:
    """The largest value that a covariate can have, where its law or its distribution says one."""
    if covariate.random.owner is None:
        assert isinstance(covariate.events.noise, Transitions)
        return covariate.events.noise.table(float(np.min(np.asarray(covariate.events.setting)))).shape[0] - 1
    return largest_of(covariate.random)
