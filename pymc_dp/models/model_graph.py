"""A model as PyMC's graph of variables, in the user's order: what everything else in this folder reads."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from threading import RLock

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.model.fgraph import ModelFreeRV, ModelObservedRV, fgraph_from_model
from pymc.model.transform.optimization import freeze_dims_and_data
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph

from pymc_dp.models.latent_index import read_by_record
from pymc_dp.models.named_dims import lower_priors
from pymc_dp.models.potentials import observe_potentials, of_posterior
from pymc_dp.models.structure import constant_value
from pymc_dp.privacy.accounting import Refusal


@dataclass(frozen=True)
class ModelGraph:
    """A model and its graph.

    Attributes
    ----------
    model : pm.Model
        The user's, which is left as it is.
    graph : FunctionGraph
        PyMC's graph of a copy.
    variables : list of Variable
        The model's variables as PyMC wraps them in the graph, in the user's order.
    initial : dict of str to object
        The initial values that the user gave.
    unread : dict of str to str
        Potentials that are no likelihood of what is in bins although they read it, and why.
    """

    model: pm.Model
    graph: FunctionGraph
    variables: list[Variable]
    initial: dict[str, object]
    unread: Mapping[str, str] = field(default_factory=dict)

    def of_kind(self, kind: type) -> list[Variable]:
        """The variables of one of PyMC's kinds, such as ``ModelFreeRV``."""
        return [variable for variable in self.variables if isinstance(variable.owner.op, kind)]

    @cached_property
    def by_name(self) -> dict[str, Variable]:
        """Every variable under its name."""
        return {variable.owner.op.name: variable for variable in self.variables}


def graph_of(model: pm.Model, latents: Mapping[str, int | None], *, sized: bool, rowwise: bool, binned: Collection[str] = ()) -> ModelGraph:
    """The graph of a model, with latent variables in it as if they had been observed; see ``read_model`` for the arguments."""
    with _TAKING_TURNS:
        initial = {rv.name: value for rv, value in model.rvs_to_initial_values.items() if value is not None}
        graph = _converted(model)
    unread = of_posterior(graph) if rowwise else observe_potentials(graph, binned, sized=sized)
    _observe_latents(graph, latents, sized)
    if rowwise:
        lower_priors(graph)
    # The graph's own order tells where values are missing.
    order = {name: k for k, name in enumerate(model.named_vars)}
    variables = sorted(graph.outputs, key=lambda variable: order.get(variable.owner.op.name, len(order)))
    return ModelGraph(model, graph, variables, initial, unread)


_TAKING_TURNS = RLock()
"""Of two threads that are given one model the second would take the initial values for gone, and put back none."""


@contextmanager
def without_initial_values(model: pm.Model) -> Iterator[None]:
    """A model without its initial values, as long as this block: PyMC copies and converts no others. They are put back in any case."""
    with _TAKING_TURNS:
        saved = dict(model.rvs_to_initial_values)
        try:
            model.rvs_to_initial_values.update(dict.fromkeys(saved))
            yield
        finally:
            model.rvs_to_initial_values.update(saved)


def _converted(model: pm.Model) -> FunctionGraph:
    """The model as PyMC's graph of variables."""
    values = [model.rvs_to_values[variable] for variable in model.observed_RVs]
    twice = next((value for k, value in enumerate(values) if any(value is other for other in values[:k])), None)
    if twice is not None:
        names = " and ".join(str(variable.name) for variable, value in zip(model.observed_RVs, values, strict=True) if value is twice)
        raise Refusal(f"{names} observe the same array {twice.name}, which PyMC cannot copy. Write a pm.Data of its own for each.")
    if nameless := next((name for name, dims in model.named_vars_to_dims.items() if None in dims), None):
        raise Refusal(f"An axis of {nameless} has no dim, which PyMC cannot copy. Name every axis in dims=, or leave dims out.")
    with without_initial_values(model):
        frozen = freeze_dims_and_data(model, data=[])
    return fgraph_from_model(frozen, inlined_views=True)[0]


def _observe_latents(graph: FunctionGraph, latents: Mapping[str, int | None], sized: bool) -> None:
    """Turn latent variables into observed ones whose values are zeros, those with one entry a record before those that records share."""
    variables = [v for v in graph.outputs if isinstance(v.owner.op, ModelFreeRV) and v.owner.op.name in latents]
    for variable in sorted(variables, key=lambda v: latents[v.owner.op.name] is not None):
        random, operation = variable.owner.inputs[0], variable.owner.op
        if latents[operation.name] is not None:
            read_by_record(graph, variable, latents, sized=sized)
            continue
        shape = constant_value(random.shape)
        if shape is None:
            raise Refusal(f"The shape of {operation.name} is not fixed. Give it dims or a shape.")
        zeros = pt.constant(np.zeros(shape, dtype=random.type.dtype))
        observed = ModelObservedRV(name=operation.name, dims=operation.dims)(random, zeros)
        graph.replace(variable, observed, import_missing=True)
