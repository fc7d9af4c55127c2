"""Times that end by an event or by being lost from sight: how their released counts stand in a private model.

What was released are counts in the cells of a flag that is 1 of events. The flag is no covariate, so here its two cells become one, of
twice as many counts, whose probabilities rest on the user's distribution of events and on unknown hazards of losses.
"""

from dataclasses import replace
from math import prod

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_dp.families.family import Domain
from pymc_dp.laws.kernel import Tensor
from pymc_dp.models.spec import Likelihood
from pymc_dp.models.tabulated import TABLE
from pymc_dp.private_models.within_bins import nodes_in
from pymc_dp.releases.noisy_statistic import NoisyStatistic

LOSSES = "_losses"
"""Ending of the names of unknown hazards of losses, which are the model's own."""
LEVEL, BIN, LAST, CELL = 2.0, 2.0, 4.0, 0.5
"""Prior standard deviations of the logarithm of a hazard: of what all have in common, of a bin in all cells, of the last bin, in which all
who are left may be lost on one day, and of a bin in one cell."""


def events_beside(likelihood: Likelihood, noisy: NoisyStatistic) -> tuple[Likelihood, NoisyStatistic]:
    """Counts of events and, beside them, of losses: a likelihood and its statistic without the flag that tells them apart.

    Any other likelihood stays as it is, and one without the flag. The statistic (G V, *C, K) becomes (G V / 2, *C, 2 K), and its numbers
    are the same ones.
    """
    if likelihood.events is None or likelihood.edges:
        return likelihood, noisy
    [place] = [k for k, placeholder in enumerate(likelihood.inputs) if placeholder.event]
    flags = noisy.inputs[place].reshape(-1)
    behind = int(np.argmax(flags > flags[0]))  # so many cells, of what stands behind the flag, have one value of it before the next
    *_, K = noisy.noisy.shape
    apart = noisy.noisy.reshape((-1, 2, behind, *noisy.noisy.shape[1:]))
    losses, events = (apart[:, told].reshape((-1, *noisy.noisy.shape[1:])) for told in (0, 1))
    cells = np.flatnonzero(flags == flags[0])
    inputs = tuple(
        values if placeholder.axis is None else values.take(cells, axis=placeholder.axis)
        for k, (placeholder, values) in enumerate(zip(likelihood.inputs, noisy.inputs, strict=True)) if k != place
    )  # fmt: skip
    axis = next((k for k in range(len(noisy.grid)) if noisy.grid[k] == 2 and prod(noisy.grid[k + 1 :]) == behind), len(noisy.grid))
    grid = tuple(length for k, length in enumerate(noisy.grid) if k != axis)
    within = tuple(w._replace(axis=w.axis - (w.axis > axis), place=w.place - (w.place > place)) for w in noisy.within)
    alone = noisy.sizes == "simplex" and len(events) == len(noisy.n)
    joined = replace(
        noisy,
        noisy=np.concatenate([events, losses], axis=-1),
        statistics=(*(f"event, {name}" for name in noisy.statistics), *(f"lost, {name}" for name in noisy.statistics)),
        sizes="public" if alone else noisy.sizes,
        inputs=inputs,
        domain=Domain(0.0, 2.0 * K - 1, unknown=noisy.domain.unknown[:-1], known=noisy.domain.known[:-1]),
        told=tuple(told for k, told in enumerate(noisy.told) if k != place),
        grid=grid,
        within=within,
    )
    kept = tuple(placeholder for k, placeholder in enumerate(likelihood.inputs) if k != place)
    parts = {name: getattr(likelihood, name)[:-1] for name in ("parameters", "core_ndims", "unknown", "known")}
    return replace(likelihood, inputs=kept, family=TABLE, between=None, edges=noisy.domain.edges, **parts), joined


def hazards_of_losses(private: pm.Model, likelihood: Likelihood, noisy: NoisyStatistic) -> Tensor:
    """Hazards of losses, unknown, in every bin of every cell: (G V, 1..., K) per unit of time; of nodes, for every node of the cell.

    Their logarithm, times the width of all bins, is a number that all have in common, plus one for every bin, plus, where there are several
    cells, one for every bin in every cell: normal about 0 with standard deviations ``LEVEL``, ``BIN`` or ``LAST``, and ``CELL``. Times of
    losses that have nothing to do with those of events factor out of the likelihood of exact counts, whatever their hazards; with noise
    they do not altogether, so cells are not made alike, and those with few records learn from the others.
    """
    name, edges, cells = f"{noisy.variable}{LOSSES}", likelihood.edges, len(noisy.noisy)
    K = len(edges) - 1
    private.add_coord(f"{name}_number", length=1 + K + (cells * K if cells > 1 else 0))
    normal = pm.Normal(name, dims=f"{name}_number")
    of_bins = np.array([BIN] * (K - 1) + [LAST])
    log_hazard = LEVEL * normal[0] + of_bins * normal[1 : 1 + K][None]
    if cells > 1:
        log_hazard = log_hazard + CELL * normal[1 + K :].reshape((cells, K))
    hazard = pt.exp(log_hazard) / (edges[-1] - edges[0])
    if noisy.within:
        hazard = pt.repeat(hazard, nodes_in(noisy), axis=0)
    return hazard.reshape((-1, *[1] * (noisy.noisy.ndim - 2), K))


def jittered_unknowns(private: pm.Model) -> set[Variable]:
    """The unknowns of a private model that chains begin away from their prior means with: all but hazards of losses.

    Jittered by up to 1, these would be up to e^4 times as large or small. With 2,000 records and epsilon 4 one start in 20 was then 11,000
    nats or more below the best, where steps became so short that a chain stayed.
    """
    hazards = {f"{noisy.variable}{LOSSES}" for noisy in getattr(private, "released", ())}
    return {unknown for unknown in private.free_RVs if unknown.name not in hazards}
