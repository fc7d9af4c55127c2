"""Log-densities for the exponential mechanism, in integers: of the prior, and of every record that can occur."""

from collections.abc import Callable, Sequence

import numpy as np
import pymc as pm
from pymc.model.transform.conditioning import remove_value_transforms
from pytensor import config
from pytensor import function as pytensor_function
from pytensor.graph.replace import vectorize_graph

from pymc_dp.models.truncated_priors import is_constrained
from pymc_dp.plans.rowwise import Rowwise
from pymc_dp.posterior.price import NAT
from pymc_dp.posterior.records import AT_ONCE
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.releases.statistics import of_type

NEVER = 2000.0
"""Prior log-densities this far below the largest are kept there, so that scores fit."""
MOST_PAIRS = 64
"""Up to so many different records every pair of them is compared."""


def log_prior(prior: pm.Model, rows: Rowwise, others: Sequence[str] = ()) -> Callable[..., np.ndarray]:
    """A function from unknowns (G, P), and then values of ``others``, the rest of the model, to log-densities (G,): those of the model
    without its likelihoods, Potentials included.

    Raises
    ------
    Refusal
        Where a transform says more of an unknown than its law does: on a grid of its values nothing would keep to that.
    """
    for unknown in rows.unknowns:
        if is_constrained(unknown.variable):
            raise Refusal(
                f"The transform of {unknown.name} may keep its values in some order, and grids know none. Leave it out and sort what was"
                " drawn."
            )
    plain = remove_value_transforms(prior)
    inputs = [plain.rvs_to_values[plain[unknown.name]] for unknown in rows.unknowns]
    rest = [plain.rvs_to_values[plain[name]] for name in others]
    batched = [variable.type.clone(shape=(None, *variable.type.shape))() for variable in inputs]
    with config.change_flags(numba__cache=False):
        total = vectorize_graph(plain.logp(jacobian=False), dict(zip(inputs, batched, strict=True)))
        function = pytensor_function([*batched, *rest], total, mode="FAST_COMPILE", on_unused_input="ignore")

    def of(numbers: np.ndarray, *values: np.ndarray) -> np.ndarray:
        parts = [part.astype(v.type.dtype) for part, v in zip(rows.split(numbers), inputs, strict=True)]
        return np.broadcast_to(function(*parts, *(of_type(value, v) for value, v in zip(values, rest, strict=True))), len(numbers))

    return of


def integer_log_likelihoods(of: Callable[[np.ndarray], np.ndarray], numbers: np.ndarray, many: int) -> np.ndarray:
    """The integer log-likelihoods (V, G) of all records that can occur, or a refusal where one has none."""
    at_once = max(AT_ONCE // many, 1)
    table = np.concatenate([of(numbers[start : start + at_once]) for start in range(0, len(numbers), at_once)])
    table = np.broadcast_to(table, (len(numbers), many))
    if not (np.isfinite(table).all() and np.abs(table).max() < 2**31):
        raise Refusal(
            "One record can move the posterior without limit, because its log-likelihood has no bound at the ends of the priors. Truncate"
            " them, for example with pm.Truncated(..., lower=0.05, upper=0.95)."
        )
    return np.rint(NAT * table.T).astype(np.int64)
