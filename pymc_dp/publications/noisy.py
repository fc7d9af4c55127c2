"""``Noisy``: published numbers as an observed variable of a model, written where it is made."""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.distribution import SymbolicRandomVariable
from pytensor.graph.basic import Variable
from pytensor.tensor.random.op import RandomVariable

from pymc_dp.laws.kernel import LEAST, NEGLIGIBLE
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.publications.events import events_of
from pymc_dp.publications.labelled import check_labels
from pymc_dp.publications.noises import Exact
from pymc_dp.publications.predicted import drawn_given, publisher
from pymc_dp.publications.publication import Codebook, steps_of
from pymc_dp.publications.reals import check_real, log_given_latent
from pymc_dp.publications.rows import Read, Rows, check_whole, is_whole, observe, observe_alone
from pymc_dp.publications.truths import check_truth
from pymc_dp.publications.windows import Windows, windows_above, windows_of


class Noisy:
    """Published numbers in any PyMC model, as ``pm.Censored`` is written: the distribution of the truth, and what was done to it.

    ``published`` does the same to a whole model of the truth. Write ``Noisy`` where the truth is an expression, such as a sum of unknown
    counts, or where only some variables were published with noise.

    Parameters
    ----------
    name : str
    truth : TensorVariable
        ``pm.Poisson.dist(rate)``, any other distribution of single numbers that is not in the model: true numbers are summed out, or are
        unknowns ``<name>_true`` where that has no closed form. Or a variable or expression of the model, which is the truth itself.
    law : Step, list of Step or Codebook
        What was done to the truth, as in ``published``; scales are numbers or arrays, or variables of the model for a distribution.
    observed : array
        The published numbers, NaN where a ``Threshold(..., absent="listed")`` kept one back.
    dims : str or tuple of str, optional

    Returns
    -------
    TensorVariable
        The observed variable. New numbers are drawn by ``pm.sample_prior_predictive`` and ``pm.sample_posterior_predictive``: true ones,
        then what was done to them; not of ratios, thresholds and unknown scales.

    Raises
    ------
    Refusal
        Where numbers cannot have been published like this, or the law is not understood.

    Examples
    --------
    >>> with pm.Model(coords={"area": ["north", "south"]}) as public:
    ...     rate = pm.Gamma("rate", 2, 1, dims="area")
    ...     deaths = pmdp.Noisy("deaths", pm.Poisson.dist(rate * [4.0, 9.0]), pmdp.RoundedToBase(3), observed=[3, 12], dims="area")
    >>> [observed.name for observed in public.observed_RVs]
    ['deaths']
    """

    def __new__(cls, name: str, truth: Variable, law: object, *, observed: object, dims: Any = None) -> Any:
        """The observed variable."""
        model = pm.modelcontext(None)
        steps = steps_of(law if isinstance(law, Codebook) else Codebook(law))
        dims = (dims,) if isinstance(dims, str) else dims
        for what, numbers in ((f"What is observed of {name}", observed), *((f"what was done to {name}", step) for step in steps)):
            check_labels(what, numbers, model.coords, dims)
        rows = Rows(name, name, _numbers(name, observed), None, dims)
        drawn = _is_distribution(name, truth, model)
        _check_shape(name, truth, rows.published.shape)
        whole = is_whole(truth)
        read = Read(rows, truth, events_of(name, rows.published, steps, whole=whole), whole, steps)
        if drawn:
            check_whole(name, read.events, whole, {name: rows.published})
            if whole:
                check_truth(name, truth, read.events)
            return observe_alone(read)
        return observe(read, _given(read), drawn_given(truth, publisher(steps, read.events.setting)))


def _numbers(name: str, observed: object) -> np.ndarray:
    try:
        return np.ma.filled(np.ma.asarray(observed, dtype=float), np.nan)
    except (TypeError, ValueError):
        raise Refusal(f"The observed values of {name} are no numbers. Write an array, NaN where nothing was published.") from None


def _is_distribution(name: str, truth: object, model: pm.Model) -> bool:
    """Whether the truth is a distribution that is not in the model, and so is summed out."""
    if not isinstance(truth, Variable) or hasattr(truth.type, "dims"):
        raise Refusal(
            f"The truth of {name} must be a distribution or an expression. Write Noisy({name!r}, pm.Poisson.dist(rate), law, ...)."
        )
    if truth.owner is None or not isinstance(truth.owner.op, RandomVariable | SymbolicRandomVariable) or truth in model.basic_RVs:
        return False
    if truth.owner.op.ndim_supp:
        raise Refusal(f"The truth of {name} is multivariate, and one law for every number is all that is understood. Take single numbers.")
    return True


def _check_shape(name: str, truth: Variable, shape: tuple[int, ...]) -> None:
    known = truth.type.shape
    if len(known) > len(shape) or any(
        length not in (None, 1, rows) for length, rows in zip(reversed(known), reversed(shape), strict=False)
    ):
        raise Refusal(f"The truth of {name} has shape {known}, and {shape} numbers are observed. Write one true number for every row.")


def _given(read: Read) -> Variable:
    """Log-probability of the published numbers given the truth, which is an expression of the model."""
    name, truth, events = read.rows.name, read.random, read.events
    if isinstance(events.setting, Variable):
        raise Refusal(f"The scale of the noise on {name} is unknown, and so is its truth. Give the scale as a number.")
    if not read.whole:
        check_real(name, events)
        if isinstance(events.noise, Exact):
            raise Refusal(
                f"{name} was published without noise, so its truth is no unknown. Write a distribution, such as pm.Normal.dist(mu)."
            )
        return log_given_latent(name, truth + np.zeros(events.low.shape), events)
    inside = _log_weight(windows_of(name, events), truth)
    return inside if events.least is None else inside - _log_weight(windows_above(name, events), truth)


def _log_weight(windows: Windows, truth: Variable) -> Variable:
    """Log-probability of every row's event given these true counts."""
    place = truth - windows.start
    inside = pt.and_(pt.ge(place, 0), pt.lt(place, windows.length))
    weights = pt.as_tensor(windows.table)[pt.switch(inside, windows.first + place, 0)]
    weights = pt.switch(inside, weights, np.where(windows.open, 1.0, 0.0) * pt.ge(place, windows.length))
    return windows.top + pt.switch(pt.gt(weights, 0), pt.log(pt.maximum(weights, LEAST)), NEGLIGIBLE)
