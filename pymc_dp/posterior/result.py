"""The nouns ``Prepared``, a draw that can be paid for, and ``Drawn``, its result; and the groups of a tree that it becomes."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from pymc_dp.models.spec import ModelSpec
from pymc_dp.plans.network import Network
from pymc_dp.posterior.price import NAT, Price, Task
from pymc_dp.posterior.schedules import Schedule
from pymc_dp.privacy.accounting import epsilon_of
from pymc_dp.privacy.receipts import UNACCOUNTED, Receipt
from pymc_dp.privacy.requests import PosteriorRequest
from pymc_dp.private_models.annotation import spent_on

if TYPE_CHECKING:
    import xarray as xr

DRAW, WEIGHT = "draw from the posterior", "log weight"
"""What the privacy group says of a draw, and of what gets noise at the end of an annealed chain, the last draw of each."""
TRUNCATED = "the model's prior, given that every unknown lies in its interval"
"""Under which prior draws are made where priors were cut off."""


@dataclass(frozen=True)
class Prepared:
    """A draw that can be paid for: no record has been read.

    Attributes
    ----------
    spec : ModelSpec
    price : Price
    promise : str
    draw : callable
        Takes a receipt for these draws, reads the records, and draws.
    records : int or None
        How many there are, where that is public.
    smallest : float
        The least probability of a split, where the model's own prior goes further; 0 otherwise.
    schedule : Schedule or None
        Its schedule, where a chain pays on its way.
    intervals : dict of str to (lower, upper)
        Where priors were cut off, by unknown.
    caution : str
        What is said before anything is paid; "" where there is nothing to say.
    """

    spec: ModelSpec
    price: Price
    promise: str
    draw: Callable[[Receipt], "Drawn"]
    records: int | None
    smallest: float = 0.0
    schedule: Schedule | None = None
    intervals: Mapping[str, tuple[object, object]] = field(default_factory=dict)
    caution: str = ""


@dataclass(frozen=True)
class Drawn:
    """What a draw gives: values of the model's free variables, and what is public about how. It holds no record.

    Attributes
    ----------
    spec : ModelSpec
    prior : pm.Model
        The model without its likelihoods.
    values : dict of str to (chains * draws, *shape) ndarray
    price : Price
    mechanism : PosteriorRequest
    spent : dict
        The attributes of every group.
    facts : dict
        More that is public, for the attributes of the privacy group.
    statistics : tuple of (str, int)
        For every draw of one round, what it is about and how many of its units are a nat; empty where all are draws from the posterior.
    network : Network or None
    tables : dict of str to ndarray
        Tables of a network, by node (draws, *parents, levels).
    running : (chains, draws) ndarray or None
        The epsilon that was spent when a state was reached, where a chain pays on its way.
    stats : dict of str to (chains, draws) ndarray
        What else was paid for about every draw.
    warning : str
        Why intervals of the draws are not to be trusted, as far as the draws tell; "" where they do not.
    """

    spec: ModelSpec
    prior: pm.Model
    values: Mapping[str, np.ndarray]
    price: Price
    mechanism: PosteriorRequest
    spent: Mapping[str, object]
    facts: Mapping[str, object] = field(default_factory=dict)
    statistics: tuple[tuple[str, int], ...] = ()
    network: Network | None = None
    tables: Mapping[str, np.ndarray] = field(default_factory=dict)
    running: np.ndarray | None = None
    stats: Mapping[str, np.ndarray] = field(default_factory=dict)
    warning: str = ""


def drawn_for(
    task: Task, spec: ModelSpec, prior: pm.Model, values: Mapping[str, np.ndarray], price: Price, promise: str,
    intervals: Mapping[str, tuple[object, object]] | None = None, **more: Any,
) -> Drawn:  # fmt: skip
    """What was drawn for a task, with what it cost and where priors were cut off; ``more`` are further attributes of ``Drawn``."""
    spent = spent_on(price.cost, str(task.protection.unit), task.neighbours, promise)
    if intervals:
        spent |= {"prior": TRUNCATED, "intervals": json.dumps(intervals)}
    return Drawn(spec, prior, values, price, task.mechanism, spent, **more)


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
            labels = drawn.spec.coords.get(dim)
            coords[dim] = np.arange(length) if labels is None else np.asarray(labels)
    draws = xr.Dataset(data, coords={"chain": np.arange(chains), "draw": np.arange(many), **coords})
    if not drawn.prior.deterministics:
        return draws
    try:
        mode = {"mode": "FAST_COMPILE"}
        return pm.compute_deterministics(draws, model=drawn.prior, merge_dataset=True, progressbar=False, compile_kwargs=mode)
    except Exception:  # a check of the user's own, of what was drawn: the draws are paid for
        return draws


def privacy_group(drawn: Drawn, head: str) -> "xr.Dataset":
    """What was drawn, one entry for each thing that is chosen by itself; ``head`` is that of the ledger."""
    import xarray as xr

    mechanism, delta = drawn.mechanism, drawn.price.cost.delta
    draws = drawn.price.draws[: len(drawn.price.draws) // mechanism.rounds]
    statistics = drawn.statistics or ((DRAW, NAT),) * len(draws)
    sensitivities = [draw.difference / nat for draw, (_, nat) in zip(draws, statistics, strict=True)]
    columns: dict[str, Sequence[object]] = {
        "variable": [draw.variable for draw in draws],
        "statistic": [statistic for statistic, _ in statistics],
        "mechanism": [mechanism.name] * len(draws),
        "sensitivity": sensitivities,
        "scale": [draw.scale / nat for draw, (_, nat) in zip(draws, statistics, strict=True)],
        "epsilon": [
            float(epsilon_of(draw.rho * mechanism.rounds, delta) if draw.pure is None else draw.pure * mechanism.rounds) for draw in draws
        ],
        "delta": [float(delta)] * len(draws),
    }
    return xr.Dataset(
        {name: (("release",), np.asarray(values)) for name, values in columns.items()},
        coords={"release": np.arange(len(draws))},
        attrs={
            "mechanism": mechanism.name,
            "draws": mechanism.draws,
            "range": sum(sensitivities),
            "temperature": drawn.price.temperature,
            "public": json.dumps(list(drawn.spec.public)),
            "ledger_head": head or UNACCOUNTED,
            "versions": json.dumps({package: version(package) for package in ("pymc_dp", "pymc", "opendp")}),
            **drawn.facts,
        },
    )
