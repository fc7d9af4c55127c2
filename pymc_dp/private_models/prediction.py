"""Draws of a network's conditional probability tables -> predictive probabilities of one variable given others.

Everything comes from a DataTree, so no prediction costs anything.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dp.plans.network import Network, Node
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.calls import explained
from pymc_dp.private_models.likelihood import TABLES

if TYPE_CHECKING:
    import xarray as xr

MOST_NUMBERS = 10_000_000
"""So many probabilities are held at a time."""
MOST_HIDDEN = 48
"""So many variables NumPy can sum over at once."""


@explained
def predict(tree: "xr.DataTree", variable: str, given: Mapping[str, object], *, probability: float = 0.95) -> "xr.Dataset":
    """Predictive probabilities of a network's variable given others, with credible intervals: from a DataTree alone.

    The probability of level k of a record is that under the conditional probability tables of one draw, averaged over draws; what
    is not given is summed over.

    Parameters
    ----------
    tree : xarray.DataTree
        A tree from ``sample``, or from any sampler on a private model and ``annotate``.
    variable : str
        A node, as ``inspect`` names it: ``"party"``, or ``"votes[3]"`` for a column.
    given : mapping
        Levels of other nodes, by name: numbers, or arrays (N,) for N records. A variable of several columns takes (N, C).
    probability : float
        The probability of the credible intervals, which have equal tails.

    Returns
    -------
    xarray.Dataset
        ``probability``, ``lower`` and ``upper`` of dims (record, level).

    Raises
    ------
    Refusal
        When the tree holds no network, or what is given is not of it.

    Examples
    --------
    >>> drawn = pmdp.sample(model=network, epsilon=4.0, mechanism=pmdp.PosteriorSample(draws=20))
    >>> pmdp.predict(drawn, "party", {"vote": [0, 1]})["probability"].shape
    (2, 2)
    """
    import xarray as xr

    network, tables = _network_of(tree)
    if variable not in network.place:
        raise Refusal(f"There is no {variable!r} in this network. Write one of {', '.join(map(repr, network.place))}.")
    if not 0 < probability < 1:
        raise Refusal("probability must lie between 0 and 1. Write for example probability=0.95.")
    evidence = _evidence(network, variable, given)
    records = max((len(values) for values in evidence.values()), default=1)
    evidence = {name: np.broadcast_to(values, (records,)) for name, values in evidence.items()}
    kept = _needed(network, variable, evidence)
    if sum(node.name not in evidence for node in kept) > MOST_HIDDEN:
        raise Refusal(f"More than {MOST_HIDDEN} variables would have to be summed over. Give the levels of more of them.")
    levels, draws = network.nodes[network.place[variable]].levels, len(next(iter(tables.values())))
    hidden = [node.levels for node in kept if node.name not in evidence]
    batch = max(1, MOST_NUMBERS // (draws * int(np.prod(hidden[:12]))))
    tails = [(1 - probability) / 2, (1 + probability) / 2]
    parts_of_records = []
    for start in range(0, records, batch):
        part = {name: values[start : start + batch] for name, values in evidence.items()}
        probabilities = _conditional(network, kept, tables, variable, part)
        parts_of_records.append((probabilities.mean(axis=0), *np.quantile(probabilities, tails, axis=0)))
    mean, lower, upper = (np.concatenate(parts) for parts in zip(*parts_of_records, strict=True))
    dims = ("record", "level")
    data = {"probability": (dims, mean), "lower": (dims, lower), "upper": (dims, upper)}
    attributes = {"variable": variable, "probability": probability}
    return xr.Dataset(data, coords={"level": np.arange(levels)}, attrs=attributes)


def _network_of(tree: "xr.DataTree") -> tuple[Network, dict[str, np.ndarray]]:
    """The network a tree was drawn from, and for every node its tables (draws, *shape)."""
    facts = tree["privacy"].attrs.get("network") if "privacy" in tree.children else None
    network = Network.of_facts(None if facts is None else json.loads(facts))
    if network is None:
        raise Refusal("This DataTree holds no Bayesian network. Draw it with pymc_dp.sample from a model whose observed variables are one.")
    group = tree["network" if "network" in tree.children else "posterior"]
    missing = [node.variable for node in network.nodes if f"{node.variable}{TABLES}" not in group.data_vars]
    if missing:
        raise Refusal(f"This DataTree does not hold {missing[0]}{TABLES}. Draw it without var_names.")
    tables = {}
    for node in network.nodes:
        values = group[f"{node.variable}{TABLES}"].values
        draws, cells = int(np.prod(values.shape[:2])), values.shape[2]
        tables[node.name] = values.reshape(draws, cells, -1, node.levels)[:, :, node.column].reshape(draws, *network.shape(node))
    return network, tables


def _evidence(network: Network, variable: str, given: Mapping[str, object]) -> dict[str, np.ndarray]:
    """Levels (N,) or (1,) by node."""
    columns: dict[str, list[Node]] = {}
    for node in network.nodes:
        columns.setdefault(node.variable, []).append(node)
    result: dict[str, np.ndarray] = {}
    for name, values in given.items():
        array = np.asarray(values)
        if name in network.place:
            nodes, split = [network.nodes[network.place[name]]], [array]
        elif name in columns:
            nodes = columns[name]
            split = list(np.moveaxis(array.reshape(-1, len(nodes)), 1, 0)) if array.size % len(nodes) == 0 else []
        else:
            raise Refusal(f"given names {name!r}, which is not in this network. Write names of {', '.join(map(repr, network.place))}.")
        for node, levels in zip(nodes, split, strict=True):
            if levels.ndim > 1 or not np.isin(levels, np.arange(node.levels)).all():
                raise Refusal(f"given must hold levels of {node.name}: whole numbers from 0 to {node.levels - 1}, one for every record.")
            result[node.name] = np.atleast_1d(levels).astype(np.int64)
    result.pop(variable, None)
    if any(len(values) == 0 for values in result.values()) or len({len(values) for values in result.values()} - {1}) > 1:
        raise Refusal("given must hold as many levels of every variable, one for every record.")
    return result


def _needed(network: Network, variable: str, evidence: Mapping[str, np.ndarray]) -> list[Node]:
    """The families that matter: variables below all that is asked and known sum to one."""
    kept = {node.name: node for node in network.nodes}
    while True:
        parents = {parent for node in kept.values() for parent in node.parents}
        barren = [name for name in kept if name not in parents and name not in evidence and name != variable]
        if not barren:
            return list(kept.values())
        for name in barren:
            del kept[name]


def _conditional(
    network: Network, kept: list[Node], tables: Mapping[str, np.ndarray], variable: str, evidence: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Probabilities (draws, records, levels) of a variable given evidence (records,), the rest summed over."""
    from scipy.special import softmax  # not with the package: import is to be light

    free = {node.name: k + 2 for k, node in enumerate(kept) if node.name not in evidence}
    records = max((len(values) for values in evidence.values()), default=1)
    levels, target = network.nodes[network.place[variable]].levels, free[variable]
    logs: np.ndarray | float = 0.0
    factors: list[tuple[np.ndarray, list[int]]] = [(np.ones(records), [1]), (np.ones(levels), [target])]
    for node in kept:
        family = [network.nodes[k].name for k in network.family(node)]
        known = [name for name in family if name in evidence]
        inside = [name for name in family if name in free]
        axes = [1 + family.index(name) for name in known + inside]
        index: tuple[Any, ...] = (slice(None), *(evidence[name] for name in known))
        table = tables[node.name].transpose(0, *axes)[index]
        if inside in ([], [variable]):  # many of these would underflow as a product
            with np.errstate(divide="ignore"):
                log = np.log(table if known else table[:, None])
            logs = logs + (log if inside else log[..., None])
        else:
            factors.append((table, [0, *([1] if known else []), *(free[name] for name in inside)]))
    draws = len(next(iter(tables.values())))
    if len(factors) > 2:
        operands: list[Any] = [part for factor in factors for part in factor]
        with np.errstate(divide="ignore"):
            logs = logs + np.log(np.einsum(*operands, [0, 1, target], optimize="greedy"))
    return softmax(np.broadcast_to(logs, (draws, records, levels)), axis=-1)
