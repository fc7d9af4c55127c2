"""Latent variables that many records share: each record reads one entry of them, by an index.

In the graph, what a record reads becomes a latent of its own, and the index an input of its likelihood, private unless declared public.
The variable stays, with its prior.
"""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.model.fgraph import ModelDeterministic, ModelFreeRV, ModelObservedRV, ModelPotential
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.shape import Reshape
from pytensor.tensor.subtensor import AdvancedSubtensor

from pymc_dp.models.same_arrays import shape_of
from pymc_dp.models.structure import (
    above,
    arrays_above,
    constant_value,
    is_array,
    is_cast,
    is_unknown,
    puts_together,
    same_memory,
    without_casts,
)
from pymc_dp.privacy.accounting import Refusal


def indexed_reads(variables: list[Variable], whole: Variable) -> list[Variable] | None:
    """Where entries of an array of integers are read by an index with one place a record, above some variables and below no other unknown.

    None where the array is read in any other way as well.
    """
    entries: list[Variable] = []

    def root(variable: Variable) -> Variable:
        while is_cast(variable) or (variable.owner is not None and isinstance(variable.owner.op, Reshape | ModelDeterministic)):
            variable = variable.owner.inputs[0]
        return variable

    def visit(variable: Variable) -> bool:
        if variable in seen:
            return True
        seen.add(variable)
        if root(variable) is whole:
            return False
        if variable.owner is None or is_unknown(variable):
            return True
        operation, inputs = variable.owner.op, variable.owner.inputs
        if isinstance(operation, AdvancedSubtensor) and root(inputs[0]) is whole:
            plain = len(operation.idx_list) == inputs[0].type.ndim and all(isinstance(entry, int) for entry in operation.idx_list)
            if not plain or variable.type.ndim != 1 or any(index.type.dtype == "bool" for index in inputs[1:]):
                return False
            entries.append(variable)
            inputs = inputs[1:]
        return all(visit(operand) for operand in inputs if not isinstance(operand.type, RandomType))

    seen: set[Variable] = set()
    return entries if all(map(visit, variables)) else None


def entry_name(name: str) -> str:
    """What an entry is called that each record reads of a latent variable by an index."""
    return f"{name}:record"


def entry_read(parameter: np.ndarray, many: int) -> np.ndarray:
    """Which of so many entries of a latent variable each record reads: from what stands for that in its distribution."""
    return np.clip(np.nan_to_num(np.rint(parameter * many - 0.5)), 0, many - 1).astype(np.int64)


def read_by_record(graph: FunctionGraph, variable: Variable, latents: Mapping[str, int | None], *, sized: bool) -> None:
    """Put a latent that every record has for itself in place of the entry that it reads by an index.

    The new one has a distribution only for what it rests on: the same index into a table that numbers the entries (``entry_read``). So the
    index is an input of the likelihood like any other, private unless declared public, and whatever may not be done with one is refused.
    """
    name, levels = variable.owner.op.name, latents[variable.owner.op.name]
    assert levels is not None
    if any(v.owner.op.name == entry_name(name) for v in graph.outputs):
        raise Refusal(f"{entry_name(name)} is what an entry of {name} is called here. Give the variable of that name another one.")
    observed = [v.owner.inputs[0] for v in graph.outputs if isinstance(v.owner.op, ModelObservedRV)]
    entries = indexed_reads([v for random in observed for v in random.owner.inputs], variable) or []
    if not entries:  # not as it was counted in the user's model: a distribution between it and the records rests on it
        raise Refusal(_above_a_prior(name))
    first, *others = entries
    table, *index = first.owner.inputs
    for other in others:
        pairs = list(zip(index, other.owner.inputs[1:], strict=False))
        alike = len(pairs) == len(other.owner.inputs) - 1 and all(same_memory(a, b, sized=sized) for a, b in pairs)
        if not alike or other.owner.inputs[0].type.shape != table.type.shape:
            raise Refusal(f"Records read {name} by more than one index. Write its entries once, state = {name}[index], and use state.")
    if any(is_unknown(v) for v in above(index)):
        raise Refusal(f"Which entry of {name} a record reads rests on another unknown. Read it by an index of data.")
    _check_priors(graph, variable, entries, latents)
    shape = constant_value(table.shape)
    roots = arrays_above(index)
    if shape is None or not roots:
        raise Refusal(f"The shape of {name} is not fixed. Give it dims or a shape.")
    many = prod(map(int, shape))
    numbered = ((pt.arange(many) + 0.5) / many).reshape(tuple(map(int, shape)))
    # What is computed from private columns may point beyond the table, and whether it does must not show.
    inside = [i if is_array(without_casts(i)) else pt.mod(i, length) for i, length in zip(index, map(int, shape), strict=True)]
    random = pm.Binomial.dist(levels - 1, numbered[tuple(inside)])
    zeros = pt.constant(np.zeros(shape_of(roots[0])[:1], dtype=random.type.dtype))
    latent = ModelObservedRV(name=entry_name(name), dims=())(random, zeros)
    for entry in entries:
        graph.replace(entry, latent.astype(entry.type.dtype), import_missing=True)
    graph.add_output(latent)


def _above_a_prior(name: str) -> str:
    return (
        f"What records read of {name} stands above a prior as well. Write the prior with {name} itself, or without it where it is the"
        " prior of a variable that has one entry a record."
    )


def _check_priors(graph: FunctionGraph, variable: Variable, entries: Sequence[Variable], latents: Mapping[str, int | None]) -> None:
    """Refuse a latent that records share where a prior rests on what they read of it, or on two of its kind."""
    name, by_name = variable.owner.op.name, {v.owner.op.name: v for v in graph.outputs}
    # PyMC's own variables in place of missing values read what the others do, and whether there is one rests on records.
    pairs = [(v, by_name.get(f"{v.owner.op.name}_observed")) for v in graph.outputs if isinstance(v.owner.op, ModelDeterministic)]
    imputed = {f"{v.owner.op.name}_unobserved" for v, observed in pairs if observed is not None and puts_together(v, observed)}
    shared = [v for v in graph.outputs if isinstance(v.owner.op, ModelFreeRV) and latents.get(v.owner.op.name) is not None]
    for output in graph.outputs:
        random, operation = output.owner.inputs[0], output.owner.op
        if isinstance(operation, ModelObservedRV) and operation.name in latents:
            forbidden = {variable, *entries}
        elif isinstance(operation, ModelFreeRV | ModelPotential) and operation.name not in imputed:
            forbidden = {*entries}
        else:
            continue
        over = {output, *above([random])}
        if over & forbidden:
            raise Refusal(_above_a_prior(name))
        if len(several := [other.owner.op.name for other in shared if other in over]) > 1:
            raise Refusal(f"The priors of {' and '.join(several)} rest on each other. Write one variable in their place, or sum one out.")
