"""A warning of one line where bins are too wide for a density of a user's own: where, at the draws, quadrature misses parts of it.

Such a density integrates to one number whatever its parameters. So how much of it quadrature finds can be compared with what there is, from
the private model and the draws alone.
"""

import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_dp.models.binned import Numeric
from pymc_dp.models.integrands import Integrand
from pymc_dp.models.structure import substitute
from pymc_dp.privacy.guard import PACKAGE
from pymc_dp.private_models.diagnostics import LEAST_DRAWS

if TYPE_CHECKING:
    import xarray as xr

MOST_DRAWS = 200
"""So many draws are looked at, evenly among all."""
LEAST_LOOKED_AT = 20
"""As many where there are many cells."""
MOST_VALUES = 4_000_000
"""Values of a density that may be computed, unless there are so many cells."""
MOST_FINE = 48
"""Draws at which probabilities are computed again by a finer rule, evenly among those of which parts are missed."""
AT_ONCE = 8
"""So many of them at a time, to save memory."""
MATTERS = 0.3
"""By how many of their standard deviations counts may be off, all bins together: it moves no posterior mean by more of its own.

Draws keep to where probabilities fit the counts, so at most of them they are off by little even if parts of a prior are out of reach. That
is seen at those draws that come near.
"""
UNSEEN = 0.02
"""The share of a density that the finer rule may miss or find twice, so that it is believed."""
OFTEN = 0.01
"""The share of draws at which more may be wrong without a word: what one draw in a hundred says moves a mean by a hundredth of how far it
lies from the others."""


class QuadratureWarning(UserWarning):
    """At draws from the private model, probabilities of bins are off, because parts of a density of a user's own are much narrower than a
    bin.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("error", pmdp.QuadratureWarning)  # stop where bins are too wide for a density
    """


def warn_if_missed(private: pm.Model, tree: "xr.DataTree") -> None:
    """Warn in one line for each observed variable of whose density quadrature misses parts.

    Parameters
    ----------
    private : pm.Model
    tree : xarray.DataTree
        With draws from it in its group ``posterior``, of dims chain and draw.
    """
    if not any(noisy.domain.edges for noisy in getattr(private, "released", ())) or tree["posterior"].sizes["draw"] < LEAST_DRAWS:
        return
    released = {noisy.variable: noisy for noisy in private.released}
    for observed in private.observed_RVs:
        name = observed.name
        for integrand, parameters in integrands_above(observed):
            records = max(released[name].values.sum(axis=-1).max(), 1.0)
            by_draw = at_draws(private, tree, integrand, parameters)
            share = 0.0 if by_draw is None else share_missed(integrand, by_draw, records)
            if share > OFTEN:
                warnings.warn(
                    f"At {share:.0%} of the draws parts of the density of {name} are too narrow for its bins: quadrature misses them,"
                    f" and probabilities are wrong. Write narrower bins or, of a mixture, pm.Mixture({name!r}, w, [...], observed=...).",
                    QuadratureWarning,
                    skip_file_prefixes=(PACKAGE,),
                )
                break


def integrands_above(observed: Variable) -> Iterator[tuple[Integrand, list[Variable]]]:
    """The densities of users' own that an observed variable rests on, each with its parameters on cells: (G, *C) and an axis of nodes."""
    found: dict[Integrand, dict[int, Variable]] = {}
    for variable in ancestors(observed.owner.inputs):
        operation = None if variable.owner is None else variable.owner.op
        if isinstance(operation, Numeric) and operation.of is not None:
            integrand, place = operation.of
            found.setdefault(integrand, {})[place] = variable.owner.inputs[0]
    for integrand, parameters in found.items():
        yield integrand, [parameters[place] for place in sorted(parameters)]


def share_missed(integrand: Integrand, by_draw: np.ndarray, records: float) -> float:
    """At which share of draws probabilities of bins are off by what ``MATTERS``.

    Where quadrature misses parts of a density that is narrow as a whole, dividing by their sum mends most of that. So where it does,
    probabilities are computed again, by a finer rule; where that misses parts, too, they count as off.

    Parameters
    ----------
    integrand : Integrand
    by_draw : ndarray
        Its parameters at draws, (draws, cells, parameters).
    records : float
        The number of records in a cell. By chance counts have a variance as large as they are, and by noise one of 1 or so.
    """
    far = np.abs([integrand.masses(cells).sum(axis=1) - 1 for cells in by_draw])
    [missed] = np.nonzero((np.sqrt(records) * far > MATTERS).any(axis=1))
    if len(missed) <= OFTEN * len(by_draw):
        return 0.0
    looked_at = missed[np.linspace(0, len(missed) - 1, min(len(missed), MOST_FINE)).astype(int)]
    rows = by_draw[looked_at, far[looked_at].argmax(axis=1)]
    fine = np.concatenate([integrand.masses(rows[k : k + AT_ONCE], finer=True) for k in range(0, len(rows), AT_ONCE)])
    coarse, seen = integrand.masses(rows), np.abs(fine.sum(axis=1) - 1) <= UNSEEN
    with np.errstate(all="ignore"):
        counts, found = (records * masses / masses.sum(axis=1, keepdims=True) for masses in (fine, coarse))
        right = seen & (((found - counts) ** 2 / (counts + 1)).sum(axis=1) <= MATTERS**2)
    return float(len(missed) / len(by_draw) * (~right).mean())


def at_draws(private: pm.Model, tree: "xr.DataTree", integrand: Integrand, parameters: Sequence[Variable]) -> np.ndarray | None:
    """The parameters at some draws: (draws, cells, parameters); None where the draws do not hold all unknowns.

    Compiled for Python, because a C compiler would take longer.
    """
    above = set(ancestors(list(parameters)))
    unknowns = [variable for variable in private.free_RVs if variable in above]
    posterior = tree["posterior"]
    if not all(variable.name in posterior.data_vars for variable in unknowns):
        return None
    standing_in = [variable.type() for variable in unknowns]
    graphs = [substitute(p[..., 0], dict(zip(unknowns, standing_in, strict=True))) for p in parameters]
    # A copy with operations of its own: what is compiled leaves its traces on them.
    inputs, outputs = cloudpickle.loads(cloudpickle.dumps((standing_in, graphs)))
    mode = Mode(linker="py", optimizer="fast_compile")
    at = pytensor.function(inputs, outputs, mode=mode, on_unused_input="ignore", allow_input_downcast=True)
    by_chain = [posterior[variable.name].transpose("chain", "draw", ...).values for variable in unknowns]
    values = [array.reshape((-1, *array.shape[2:])) for array in by_chain]
    last = posterior.sizes["chain"] * posterior.sizes["draw"] - 1
    cells = np.broadcast(*at(*(of_unknown[0] for of_unknown in values))).size
    many = int(np.clip(MOST_VALUES // (cells * integrand.nodes), LEAST_LOOKED_AT, MOST_DRAWS))
    places = np.unique(np.linspace(0, last, many).astype(int))
    by_draw = [np.broadcast_arrays(*at(*(of_unknown[place] for of_unknown in values))) for place in places]
    return np.stack([np.stack([np.ravel(parameter) for parameter in of_draw], axis=-1) for of_draw in by_draw])
