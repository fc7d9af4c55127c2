"""The labels of a column's levels: those of the dim that the column indexes, or that its probabilities have."""

from collections.abc import Iterable, Mapping

from pytensor.graph.basic import Variable
from pytensor.tensor.special import Softmax
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_dp.families.values import NO_LABELS, Labels, number_in, stays_text
from pymc_dp.models.spec import Likelihood, ModelSpec
from pymc_dp.models.structure import FULL, dims_of, indexed_axes, without_casts
from pymc_dp.privacy.accounting import Refusal


def level_labels(spec: ModelSpec) -> dict[str, tuple[object, ...]]:
    """Labels of the levels of each array or observed variable, from the first level on, where all its dims have the same."""
    return {name: next(iter(labels)) for name, (_, labels) in _known(spec).items()}


def texts_of_levels(likelihood: Likelihood, labels: Mapping[str, tuple[object, ...]]) -> tuple[tuple[str, ...], ...]:
    """For every input of a likelihood, and then for its own values, what their levels are called by texts: empty where none is.

    Parameters
    ----------
    likelihood : Likelihood
    labels : mapping
        See ``level_labels``.
    """
    several = [labels.get(name, ()) for name in (*(placeholder.name for placeholder in likelihood.inputs), likelihood.name)]
    texts = tuple(tuple(str(label) for label in of_one if isinstance(label, str)) for of_one in several)
    whole = tuple(of_one if len(of_one) == len(all_labels) else () for of_one, all_labels in zip(texts, several, strict=True))
    return whole if any(whole) else ()


def dim_of_levels(spec: ModelSpec, name: str) -> str | None:
    """The dim whose labels an array or observed variable has; the first of several."""
    known = _known(spec).get(name)
    return None if known is None else min(known[0])


def _known(spec: ModelSpec) -> dict[str, tuple[set[str], set[tuple[object, ...]]]]:
    dims: dict[str, set[str]] = {}
    for likelihood in spec.likelihoods:
        names = {placeholder.variable: placeholder.name for placeholder in likelihood.inputs}
        for index, indexed in indexed_axes(list(likelihood.parameters)):
            if (name := names.get(without_casts(index))) is not None:
                dims.setdefault(name, set()).update(indexed)
        if own := _dims_of_outcomes(likelihood):
            dims.setdefault(likelihood.name, set()).update(own)
    known = {name: (of_name, {tuple(spec.coords.get(dim) or ()) for dim in of_name}) for name, of_name in dims.items()}
    return {name: (of_name, labels) for name, (of_name, labels) in known.items() if len(labels) == 1 and all(labels)}


def _dims_of_outcomes(likelihood: Likelihood) -> set[str]:
    """The dims along which the probabilities of a single value lie, which is one of several levels."""
    if likelihood.distribution != "Categorical" or len(likelihood.parameters) != 1:
        return set()
    return _last_dims(likelihood.parameters[0])


def _last_dims(variable: Variable) -> set[str]:
    """Names of the dims of the last axis, also behind indices into the axes before it and a softmax along it."""
    if known := dims_of(variable, variable.type.ndim - 1):
        return known
    if variable.owner is None:
        return set()
    operation, (table, *_) = variable.owner.op, variable.owner.inputs
    if isinstance(operation, Softmax):
        return _last_dims(table)
    if isinstance(operation, AdvancedSubtensor | Subtensor):
        entries = list(operation.idx_list)
        if len(entries) < table.type.ndim or entries[-1] == FULL:
            return _last_dims(table)
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
