"""The labels of a column's levels: those of the dim that the column indexes, or that its probabilities have. And those along the axes of
records with several numbers.
"""

from collections.abc import Iterable, Mapping

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.special import Softmax
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_dp.families.values import NO_LABELS, Labels, number_in, stays_text
from pymc_dp.models.spec import Likelihood, ModelSpec
from pymc_dp.models.structure import FULL, above, dims_of, indexed_axes, is_product, without_casts
from pymc_dp.privacy.accounting import Refusal


def level_labels(spec: ModelSpec) -> dict[str, tuple[object, ...]]:
    """Labels of the levels of each array or observed variable, from the first level on, where all its dims have the same."""
    return {name: next(iter(labels)) for name, (_, labels) in _known(spec).items()}


def labels_of_axes(spec: ModelSpec) -> dict[str, tuple[object, ...]]:
    """``level_labels``, and labels along axes: of the numbers in a row of an array, of the entries of a single value, and of columns."""
    dims = _dims(spec)
    for likelihood in spec.likelihoods:
        for name, of_name in _dims_of_entries(likelihood):
            dims.setdefault(name, set()).update(of_name)
        at_end = [(parameter, core) for parameter, core in zip(likelihood.parameters, likelihood.core_ndims, strict=False)]
        own = [_dims_from_end(parameter, 1) for parameter, core in at_end if core == 1 and likelihood.levels]
        dims.setdefault(likelihood.name, set()).update(*own)
        for axis, (name, dim) in enumerate(zip(_axes(likelihood), likelihood.column_dims, strict=False)):
            back = len(likelihood.columns) - axis
            dims[name] = ({dim} if dim else set()).union(*(_dims_from_end(parameter, back + core) for parameter, core in at_end))
    return {name: next(iter(labels)) for name, (_, labels) in _with_labels(spec, dims).items()}


def texts_of_levels(likelihood: Likelihood, labels: Mapping[str, tuple[object, ...]]) -> tuple[tuple[str, ...], ...]:
    """For every input of a likelihood, then for its own values, and then for every axis of its columns, what its levels or entries are
    called, as texts: empty where they have no names, or others than texts, numbers and dates.

    Parameters
    ----------
    likelihood : Likelihood
    labels : mapping
        See ``labels_of_axes``.
    """
    several = [tuple(map(_as_text, labels.get(name, ()))) for name in named_axes(likelihood)]
    texts = tuple(tuple(text for text in of_one if text is not None) for of_one in several)
    whole = tuple(of_one if len(of_one) == len(all_labels) else () for of_one, all_labels in zip(texts, several, strict=True))
    return whole if any(whole) else ()


def named_axes(likelihood: Likelihood) -> tuple[str, ...]:
    """What ``texts_of_levels`` is about, in its order."""
    return (*(placeholder.name for placeholder in likelihood.inputs), likelihood.name, *_axes(likelihood))


def _axes(likelihood: Likelihood) -> list[str]:
    return [f"axis {axis} of {likelihood.name}" for axis in range(1, len(likelihood.columns) + 1)]


def _as_text(label: object) -> str | None:
    return str(label) if isinstance(label, str | int | float | np.generic) else None


def dim_of_levels(spec: ModelSpec, name: str) -> str | None:
    """The dim whose labels an array or observed variable has; the first of several."""
    known = _known(spec).get(name)
    return None if known is None else min(known[0])


def _known(spec: ModelSpec) -> dict[str, tuple[set[str], set[tuple[object, ...]]]]:
    return _with_labels(spec, _dims(spec))


def _dims(spec: ModelSpec) -> dict[str, set[str]]:
    """The dims that hold the levels of each array or observed variable."""
    dims: dict[str, set[str]] = {}
    for likelihood in spec.likelihoods:
        names = {placeholder.variable: placeholder.name for placeholder in likelihood.inputs}
        for index, indexed in indexed_axes(list(likelihood.parameters)):
            if (name := names.get(without_casts(index))) is not None:
                dims.setdefault(name, set()).update(indexed)
        if own := _dims_of_outcomes(likelihood):
            dims.setdefault(likelihood.name, set()).update(own)
    return dims


def _with_labels(spec: ModelSpec, dims: Mapping[str, set[str]]) -> dict[str, tuple[set[str], set[tuple[object, ...]]]]:
    """The dims of which all have the same labels, and these."""
    known = {name: (of_name, {tuple(spec.coords.get(dim) or ()) for dim in of_name}) for name, of_name in dims.items()}
    return {name: (of_name, labels) for name, (of_name, labels) in known.items() if len(labels) == 1 and all(labels)}


def _dims_of_entries(likelihood: Likelihood) -> Iterable[tuple[str, set[str]]]:
    """Of arrays with several numbers for every record the dims of what these are multiplied by, or added to, number by number."""
    several = {placeholder.variable: placeholder for placeholder in likelihood.inputs if placeholder.variable.type.ndim == 2}
    for variable in above(list(likelihood.parameters), through_unknowns=False) if several else ():
        operation, inputs = (None, []) if variable.owner is None else (variable.owner.op, variable.owner.inputs)
        if is_product(operation):
            first, second = inputs
            rows = min(second.type.ndim, 2)  # from the end of the second, the axis along which is summed
            pairs = [(first, 1, second, rows), (second, rows, first, 1)]
        else:
            pairs = [(array, back, variable, back) for array in inputs for back in (1, 2) if isinstance(operation, Elemwise)]
        for array, back, other, of_other in pairs:
            while isinstance(getattr(array.owner, "op", None), DimShuffle) and array.owner.op.new_order == (1, 0):
                array, back = array.owner.inputs[0], 3 - back
            placeholder = several.get(without_casts(array))
            if placeholder is not None and placeholder.axis is not None and placeholder.axis != 2 - back:
                yield placeholder.name, _dims_from_end(other, of_other)


def _dims_of_outcomes(likelihood: Likelihood) -> set[str]:
    """The dims along which the probabilities of a single value lie, which is one of several levels."""
    if likelihood.distribution != "Categorical" or len(likelihood.parameters) != 1:
        return set()
    return _dims_from_end(likelihood.parameters[0], 1)


def _dims_from_end(variable: Variable, back: int) -> set[str]:
    """Names of the dims of an axis, the last if ``back`` is 1, also behind indices into the axes before it and a softmax along the last."""
    axis = variable.type.ndim - back
    if axis < 0 or variable.type.shape[axis] == 1:
        return set()
    if known := dims_of(variable, axis):
        return known
    if variable.owner is None:
        return set()
    operation, (table, *_) = variable.owner.op, variable.owner.inputs
    if isinstance(operation, Softmax):
        return _dims_from_end(table, back)
    if isinstance(operation, Elemwise):
        return set().union(*(_dims_from_end(operand, back) for operand in variable.owner.inputs))
    if isinstance(operation, AdvancedSubtensor | Subtensor):
        entries = [*operation.idx_list, *[FULL] * (table.type.ndim - len(operation.idx_list))]
        if all(entry == FULL for entry in entries[-back:]):
            return _dims_from_end(table, back)
    return set()


def places_of_labels(spec: ModelSpec, names: Iterable[str]) -> dict[str, Labels]:
    """For every column whose levels are called by texts that can be told from numbers: at which place each of them stands.

    Where a label could be taken for something else, none of the dim is read: one record decides whether a file holds text or dates, say,
    and so how all others are read.

    Raises
    ------
    Refusal
        When a text is the label of one level and spells the number of another.
    """
    known = level_labels(spec)
    places = {name: _places(spec, name, known[name]) for name in names if name in known}
    return {name: labels for name, labels in places.items() if labels}


def _places(spec: ModelSpec, name: str, labels: tuple[object, ...]) -> Labels:
    texts = [label for label in labels if isinstance(label, str)]
    for place, text in enumerate(texts):
        number = number_in(text)
        if number is not None and number != place and 0 <= number < len(labels):
            raise Refusal(
                f"{text!r} is label {place} (from 0) of {dim_of_levels(spec, name)}, by which the column {name} is read, and spells the"
                f" number of another level. Number the column by a list of your own, and give that dim labels that spell no number, such as"
                f" {f'{name} {text}'!r}."
            )
    readable = len(set(texts)) == len(labels) and all(stays_text(text) or number_in(text) == place for place, text in enumerate(texts))
    return {text: place for place, text in enumerate(texts)} if readable else NO_LABELS
