"""Reasons for which no likelihood of a model can be released, each in words that say what to write instead."""

from collections.abc import Callable, Iterator

import numpy as np
from pymc.model.fgraph import ModelFreeRV, ModelNamed, ModelPotential
from pytensor.graph.basic import Constant, Variable

from pymc_dp.models.allow_list import MOST_NUMBERS
from pymc_dp.models.lengths import PLACED
from pymc_dp.models.model_arrays import ModelArrays
from pymc_dp.models.opaque import COMPILED, hidden_in, loose_random_variable, opaque
from pymc_dp.models.potentials import IN_BINS
from pymc_dp.models.record_axes import RecordAxes, read_along_two_axes
from pymc_dp.models.record_formulas import FORMS
from pymc_dp.models.same_arrays import data_of, part_of, rests_on
from pymc_dp.models.structure import arrays_above
from pymc_dp.models.written_numbers import MOST_WRITTEN, numbers_in

RESERVED = ("_released", "_noise", "_cell", "_statistic", "_size", "_share", "_group", "_kind", "_shared", "_table", "_level", "_losses")
"""Endings of the names that the rewritten model needs beside the user's."""
RESERVED_BEGINNINGS = ("_noise_", "_size_", "_shared_", "_column_", "_losses_")
"""What follows the observed variable's name in some more of them."""
POTENTIAL = "The Potential "
"""How the words begin about a Potential that rests on records."""


def problems_of(arrays: ModelArrays, axes: RecordAxes, record_dims: set[str]) -> Iterator[str]:
    """Every problem of a model, in an order that rests on nothing private."""
    potentials = list(_potentials(arrays))
    if not arrays.observed and not potentials:
        yield "The model observes nothing, so there is nothing to release. Add an observed variable."
    for name, value in arrays.graph.initial.items():
        if isinstance(value, Variable) and not isinstance(value, Constant):
            yield f"The initial value of {name} is a graph. Write a number or an array of numbers instead."
            break
    yield from potentials
    yield from _on_records(arrays)
    yield from _hidden(arrays, record_dims)
    yield from _named_above_priors(arrays, record_dims)
    yield from _initial_values(arrays)
    if not arrays.sized:
        yield from _on_lengths(arrays, record_dims)
    yield from read_along_two_axes(arrays, axes)
    if circle := _circle(arrays):
        yield f"{' and '.join(circle)} depend on each other in a circle, so there is no probability of a record. Leave one arrow out."
    yield from _names_taken(arrays)


def is_of_potential(problem: str) -> bool:
    """Whether a problem is that of a Potential that rests on records."""
    return problem.startswith(POTENTIAL)


def numbers_written(variable: Variable) -> int:
    """How many single numbers stand in the expression of a variable of the model, and in operations that were put together by hand."""
    return numbers_in(variable.owner.inputs[0])


def _potentials(arrays: ModelArrays) -> Iterator[str]:
    """Potentials that rest on records."""
    for variable in arrays.graph.of_kind(ModelPotential):
        roots = arrays_above([variable], through_unknowns=True)
        if any(array not in arrays.above_priors and array not in arrays.public for array in roots) or arrays.rests_on_observed(variable):
            name = variable.owner.op.name
            if name in arrays.graph.unread:
                yield f"{POTENTIAL}{name} cannot be read as a likelihood: {arrays.graph.unread[name]}."
                continue
            yield (
                f"{POTENTIAL}{name} touches an array that may hold records. If it is the likelihood of one number per record, say in which"
                f" bins that is counted: {IN_BINS}; {FORMS}. Or write it as an observed variable: pm.logp(pm.Normal.dist(mu, 1), x).sum()"
                " as pm.Normal(..., mu, 1, observed=x). Or name the array in public if everyone may know it."
            )


def _on_records(arrays: ModelArrays) -> Iterator[str]:
    """Priors that rest on records."""
    for variable in arrays.graph.of_kind(ModelFreeRV):
        name = variable.owner.op.name
        if name not in arrays.imputed and variable not in arrays.predictions and arrays.rests_on_observed(variable):
            yield f"The prior of {name} depends on observed values. Write the prior without the data."


def _hidden(arrays: ModelArrays, record_dims: set[str]) -> Iterator[str]:
    """What the model's variables hold beside arrays, and is not understood."""
    named = list(_by_users_names(arrays))
    if name := loose_random_variable(named):
        yield (
            f"{name} rests on a random variable that is no part of the model, such as one that .dist() makes in an expression. Give it"
            " a name, or write the number that it stands for."
        )
    observed = {variable.name for variable in arrays.observed}
    for name, variable in named:
        operation = variable.owner.op
        if reason := opaque(variable.owner.inputs[0], _published(arrays, name), sized=arrays.sized):
            if COMPILED.partition("{}")[2] in reason:
                yield f"{name} {reason}, and may hold records. Build the model again, and give it to pymc_dp before anything evaluates it."
                continue
            if reason == PLACED:
                yield f"{name} {reason}. Write the number itself in its place, such as 3."
                continue
            vouch = "" if name in observed else f", or, if everyone may know all that its functions hold, write public=[{name!r}]"
            yield (
                f"{name} {reason}, which may hold records. Write it with PyTensor operations on named arrays,"
                f" {'' if vouch else 'or '}pass numbers as parameters of its distribution{vouch}."
            )
        if isinstance(operation, ModelFreeRV) and (reason := hidden_in(operation.transform, _published(arrays, name))):
            yield (
                f"The transform of {name} holds {reason}, which may be records. Write a transform that holds up to {MOST_NUMBERS} plain"
                f" numbers, or, if everyone may know what it holds, public=[{name!r}]."
            )
        if name not in arrays.vouched and numbers_written(variable) > MOST_WRITTEN:
            yield (
                f"Many single numbers stand in {name}, as a loop over records would write them. Write them as an array, or, if everyone"
                f" may know them, public=[{name!r}]."
            )
        if isinstance(operation, ModelFreeRV) and variable not in arrays.predictions and record_dims & set(operation.dims):
            yield f"{name} has the dim of the records. Give it a dim of its own."
    written = [numbers_written(v) for name, v in named if isinstance(v.owner.op, ModelPotential) and name not in arrays.vouched]
    if sum(written) > MOST_WRITTEN >= max(written, default=0):
        yield (
            "Many single numbers stand in the Potentials together, as a loop over records would write them. Write them as an array, or,"
            " if everyone may know them, name the Potentials in public."
        )


def _by_users_names(arrays: ModelArrays) -> Iterator[tuple[str, Variable]]:
    """The model's variables by the names that the user gave them: those that PyMC makes for missing values are one."""
    parts = {f"{observed.name}_observed": observed.name for observed in arrays.observed if observed.missing is not None}
    others = {f"{name}_unobserved" for name in parts.values()} | set(parts.values())
    for variable in arrays.graph.variables:
        name = variable.owner.op.name
        if name not in others:
            yield parts.get(name, name), variable


def _published(arrays: ModelArrays, name: str) -> Callable[[object], bool] | None:
    """Whether people are told of an array that a variable holds beside the graph, and of all arrays above a variable held there.

    None where the user declared public whatever the variable of this name holds.
    """
    if name in arrays.vouched:
        return None

    def is_published(thing: object) -> bool:
        held = map(data_of, arrays_above([thing], through_unknowns=True)) if isinstance(thing, Variable) else [thing]
        return all(any(part_of(array, data_of(whole)) for whole in arrays.open_arrays) for array in held)

    return is_published


def _named_above_priors(arrays: ModelArrays, record_dims: set[str]) -> Iterator[str]:
    """Arrays with a dim of records that would be published with a prior."""
    for variable in arrays.graph.of_kind(ModelNamed):
        name, array = variable.owner.op.name, variable.owner.inputs[0]
        along_records = record_dims & set(variable.owner.op.dims)
        if along_records and array in arrays.above_priors and not (arrays.sized and array in arrays.public):
            yield (
                f"{name} has the dim of the records and stands above a prior, with which it would be published. Write"
                " the prior without it" + (f", or public=[{name!r}] if everyone may know it." if arrays.sized else ".")
            )


def _initial_values(arrays: ModelArrays) -> Iterator[str]:
    """Initial values that may be records."""
    for name, value in arrays.graph.initial.items():
        plain = isinstance(value, np.ndarray) and type(value) is np.ndarray and value.dtype.kind in "biuf"
        if isinstance(value, Constant):
            value, plain = value.data, True
        if (plain and _may_be_of_records(arrays, value)) or (not plain and hidden_in(value, lambda thing: False)):
            other = "" if arrays.sized else ", as may any array where the number of records is private"
            instead = f"Write a number, or leave it out and pass it to the sampler: pymc_dp.sample(..., initvals={{{name!r}: [...]}})"
            yield f"The initial value of {name} may hold records{other}. {instead}."


def _may_be_of_records(arrays: ModelArrays, thing: object) -> bool:
    """Whether an object is an array or variable of records, or as long as they are: PyMC copies observed arrays."""
    if isinstance(thing, np.ndarray) and (not arrays.sized or arrays.records & set(thing.shape)) and not arrays.aggregate:
        return True
    return rests_on(thing, arrays.private | arrays.originals)


def _on_lengths(arrays: ModelArrays, record_dims: set[str]) -> Iterator[str]:
    """What rests on the number of records, where that is private."""
    for variable in [*arrays.graph.of_kind(ModelFreeRV), *arrays.graph.of_kind(ModelPotential)]:
        if arrays.rests_on_length([variable], record_dims):
            yield f"{variable.owner.op.name} rests on the number of records, which is private. Write it without"
    for observed in arrays.observed:
        if arrays.rests_on_length(observed.parameters, record_dims):
            yield f"The likelihood of {observed.name} rests on the number of records, which is private. Write it without"


def _circle(arrays: ModelArrays) -> list[str]:
    """Observed variables that are each above themselves."""
    stand_ins = arrays.stand_ins
    parents = {o.name: {stand_ins[array].name for array in o.arrays if array in stand_ins} for o in arrays.observed}
    left = set(parents)
    while free := {name for name in left if not parents[name] & left}:
        left -= free
    return [name for name in parents if name in left and any(name in parents[other] for other in left)]


def _names_taken(arrays: ModelArrays) -> Iterator[str]:
    """Names that the private model needs for itself."""
    model = arrays.graph.model
    for observed in arrays.observed:
        for name in sorted({*model.named_vars, *model.coords} - arrays.imputed):
            ending = name.removeprefix(observed.name)
            if ending != name and (ending in RESERVED or ending.startswith(RESERVED_BEGINNINGS)):
                yield f"The name {name} is needed for what is released. Give that variable or dim another name."
