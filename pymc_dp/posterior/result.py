"""A draw that is ready to be paid for, what leaves, and the groups that it becomes."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from pymc_dp.models.spec import ModelSpec
from pymc_dp.plans.network import Network
from pymc_dp.posterior.price import NAT, Asked, Price
from pymc_dp.posterior.schedule import Schedule
from pymc_dp.privacy.accounting import epsilon_of
from pymc_dp.privacy.receipts import UNACCOUNTED, Draw, Receipt
from pymc_dp.privacy.requests import RUNG, Annealing, Gibbs, PosteriorSample
from pymc_dp.private_models.annotation import spent_on

if TYPE_CHECKING:
    import xarray as xr

WEIGHT = "log weight"
"""The name of what gets noise at the end of an annealed chain, the last draw of each."""


@dataclass(frozen=True)
class Prepared:
    """A draw that is ready to be paid for: no record has been read.

    Attributes
    ----------
    found : ModelSpec
    price : Price
    promise : str
    draw : callable
        With a receipt for these draws: reads the records and draws.
    records : int or None
        How many there are, where that is public.
    smallest : float
        The least probability of a split, where the model's own prior goes further; 0 otherwise.
    schedule : Schedule or None
        Of a chain that pays on its way.
    """

    found: ModelSpec
    price: Price
    promise: str
    draw: Callable[[Receipt], "Drawn"]
    records: int | None
    smallest: float = 0.0
    schedule: Schedule | None = None


@dataclass(frozen=True)
class Drawn:
    """What left: values of the model's free variables, and what is public about how.

    Attributes
    ----------
    found : ModelSpec
    prior : pm.Model
        The model without its likelihoods.
    values : dict of str to (chains * draws, *shape) ndarray
    price : Price
    mechanism : PosteriorSample, Gibbs or Annealing
    spent : dict
        The attributes of every group.
    facts : dict
        More that is public, for the attributes of the privacy group.
    network : Network or None
    tables : dict of str to ndarray
        Of a network, by node (draws, *parents, levels).
    running : (chains, draws) ndarray or None
        Of a chain that pays on its way, the epsilon that was spent when a state was reached.
    stats : dict of str to (chains, draws) ndarray
        What else was paid for about every draw.
    """

    found: ModelSpec
    prior: pm.Model
    values: Mapping[str, np.ndarray]
    price: Price
    mechanism: PosteriorSample | Gibbs | Annealing
    spent: Mapping[str, object]
    facts: Mapping[str, object] = field(default_factory=dict)
    network: Network | None = None
    tables: Mapping[str, np.ndarray] = field(default_factory=dict)
    running: np.ndarray | None = None
    stats: Mapping[str, np.ndarray] = field(default_factory=dict)


def left(
    asked: Asked, found: ModelSpec, prior: pm.Model, values: Mapping[str, np.ndarray], price: Price, promise: str, **more: Any
) -> Drawn:
    """What left, without anything that holds a record."""
    return Drawn(
        found, prior, values, price, asked.mechanism, spent_on(price.cost, str(asked.protection.unit), asked.neighbours, promise), **more
    )


def posterior_group(drawn: Drawn) -> "xr.Dataset":
    """Draws of the model's own variables, with their dims and labels, and of what it computes from them."""
    import xarray as xr

    data, coords = {}, {}
    chains, many = drawn.mechanism.chains, drawn.mechanism.draws
    for name, values in drawn.values.items():
        shape = values.shape[1:]
        named = drawn.prior.named_vars_to_dims.get(name) or (None,) * len(shape)
        dims = [dim or f"{name}_dim_{axis}" for axis, dim in enumerate(named)]
        data[name] = (("chain", "draw", *dims), values.reshape(chains, many, *shape))
        for dim, length in zip(dims, shape, strict=True):
            labels = drawn.found.coords.get(dim)
            coords[dim] = np.arange(length) if labels is None else np.asarray(labels)
    found = xr.Dataset(data, coords={"chain": np.arange(chains), "draw": np.arange(many), **coords})
    if not drawn.prior.deterministics:
        return found
    try:
        how = {"mode": "FAST_COMPILE"}
        return pm.compute_deterministics(found, model=drawn.prior, merge_dataset=True, progressbar=False, compile_kwargs=how)
    except Exception:  # a check of the user's own, of what was drawn: the draws are paid for
        return found


def _statistics(mechanism: PosteriorSample | Gibbs | Annealing, several: Sequence[Draw]) -> list[str]:
    """What every entry of the privacy group is about: names of unknowns are the user's, and say nothing."""
    if isinstance(mechanism, PosteriorSample):
        return ["draw from the posterior"] * len(several)
    found = ["Gibbs update" if one.pure is not None else "log-ratio of a move" for one in several]
    return [*found[:-1], WEIGHT] if isinstance(mechanism, Annealing) else found


def privacy_group(drawn: Drawn, head: str) -> "xr.Dataset":
    """What was drawn, one entry for each thing that is chosen by itself; ``head`` is that of the ledger."""
    import xarray as xr

    mechanism = drawn.mechanism
    several = drawn.price.draws[: len(drawn.price.draws) // mechanism.rounds]
    statistics = _statistics(mechanism, several)
    units = [NAT * RUNG if statistic == WEIGHT else NAT for statistic in statistics]
    columns: dict[str, Sequence[object]] = {
        "variable": [one.variable for one in several],
        "statistic": statistics,
        "mechanism": [mechanism.name] * len(several),
        "sensitivity": [one.difference / unit for one, unit in zip(several, units, strict=True)],
        "scale": [one.scale / unit for one, unit in zip(several, units, strict=True)],
        "epsilon": [
            float(epsilon_of(one.rho * mechanism.rounds, drawn.price.cost.delta) if one.pure is None else one.pure * mechanism.rounds)
            for one in several
        ],
        "delta": [float(drawn.price.cost.delta)] * len(several),
    }
    return xr.Dataset(
        {name: (("release",), np.asarray(values)) for name, values in columns.items()},
        coords={"release": np.arange(len(several))},
        attrs={
            "mechanism": mechanism.name,
            "draws": mechanism.draws,
            "range": sum(one.difference / unit for one, unit in zip(several, units, strict=True)),
            "temperature": drawn.price.temperature,
            "public": json.dumps(list(drawn.found.public)),
            "ledger_head": head or UNACCOUNTED,
            "versions": json.dumps({package: version(package) for package in ("pymc_dp", "pymc", "opendp")}),
            **drawn.facts,
        },
    )
