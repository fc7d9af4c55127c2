"""What ``inspect`` says of records beside the model (``data=``): which columns would be read, and as what. It reads none of them."""

from collections.abc import Mapping
from dataclasses import replace

import pymc as pm

from pymc_dp.families.values import Labels
from pymc_dp.models.level_labels import dim_of_levels
from pymc_dp.models.reader import read_model
from pymc_dp.models.spec import Likelihood, ModelSpec, Placeholder, RecordPaths
from pymc_dp.plans.bins import Bins
from pymc_dp.plans.bounds import pairs_of
from pymc_dp.plans.inspection import Inspection, inspection_of
from pymc_dp.plans.person import key_column
from pymc_dp.plans.plan import planned_release, refuse_problems
from pymc_dp.plans.protection import Protection
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.releases.cells import public_cells_of
from pymc_dp.releases.from_data import check_declared, columns_read, sized_by, source_of, with_records_of
from pymc_dp.releases.source import Source


def inspection_with_columns(model: pm.Model, protection: Protection, data: object) -> tuple[ModelSpec, Inspection]:
    """The model as ``release`` reads it, and the table of ``inspect``, which also says which columns of data= that needs.

    Of the data the names of the columns are looked at, and the number of rows where that is public; of the model shapes and the graph.

    Raises
    ------
    Refusal
        When the data are no table, or lack a column. What stands against the model is described.
    """
    if data is None:
        spec = protection.read(model)
        return spec, inspection_of(spec, protection)
    spec, paths = read_model(model, protection.public, aggregate=protection.aggregate, sized=protection.sized, binned=protection.binned)
    try:
        refuse_problems(spec)
    except Refusal:  # which the table says already
        return spec, inspection_of(spec, protection)
    try:
        check_declared(protection)
        columns = columns_read(model, spec, paths, protection)
    except Refusal as refusal:
        return spec, _against(inspection_of(spec, protection), refusal)
    key = key_column(spec, protection.person)
    source = source_of(model, columns, data, key)
    spec = sized_by(spec, source, protection)
    read_as = {name: "; ".join(dict.fromkeys(_read_as(name, labels, spec, protection.bounds or {}))) for name, labels in columns.items()}
    whose = {} if key is None else {key: "whose a row is"}
    shown = replace(inspection_of(spec, protection), columns=tuple((read_as | whose).items()))
    try:
        _check_opened(spec, paths, protection, source)
    except Refusal as refusal:
        return spec, _against(shown, refusal)
    return spec, shown


def _against(shown: Inspection, refusal: Refusal) -> Inspection:
    return replace(shown, problems=(*shown.problems, str(refusal)))


def _check_opened(spec: ModelSpec, paths: Mapping[str, RecordPaths], protection: Protection, source: Source) -> None:
    """Refuse what ``release`` would refuse of a model with nothing missing; what is missing the rows say."""
    try:
        whole = planned_release(spec, protection)
    except Refusal:
        return
    for planned in whole.statistics:
        with_records_of(public_cells_of(planned, paths[planned.likelihood.name]), source)


def _read_as(name: str, labels: Labels, spec: ModelSpec, bounds: Mapping[str, object]) -> list[str]:
    """What the values of a column are read as, once for every place where the model has them."""
    readings = []
    for likelihood in spec.likelihoods:
        if likelihood.name == name:
            readings.append(_observed(likelihood, bounds.get(name)))
        readings += [_given(placeholder, bounds.get(name)) for placeholder in likelihood.inputs if placeholder.name == name]
    dim = dim_of_levels(spec, name)
    if labels:
        return [f"a label of {dim}, or {reading}" for reading in readings]
    unread = dim is not None and any(isinstance(label, str) for label in spec.coords[dim] or ())
    return [
        f"{reading}; no labels of {dim}, which files of text may take for something else" if unread else reading for reading in readings
    ]


def _observed(likelihood: Likelihood, bounds: object) -> str:
    if likelihood.natural is None or likelihood.family is None:
        return _within(bounds, "")
    counted = likelihood.family.lattice(likelihood.domain()) == 1.0
    return _within(bounds, (_whole if counted else _between)(*likelihood.natural))


def _given(placeholder: Placeholder, bounds: object) -> str:
    if placeholder.index and placeholder.levels is not None:
        return _whole(0, placeholder.levels - 1)
    return _within(bounds, _whole(0, 1) if placeholder.variable.type.dtype == "bool" else "", whole=placeholder.whole)


def _whole(lower: float, upper: float) -> str:
    return f"a whole number from {lower:.15g} to {upper:.15g}"


def _within(bounds: object, itself: str, whole: bool = False) -> str:
    """What the user's bounds make of a value, which is rounded where the model's array holds whole numbers, or what it is without any."""
    if bounds is None:
        return itself or "a number, whose bounds are needed"
    if isinstance(bounds, set | frozenset):
        return "the nearest of the levels in bounds"
    if isinstance(bounds, Bins):
        return "a number, counted in bins"
    pair, *_ = pairs_of(bounds) or [bounds]  # of the one number that a record has
    lower, upper = (float(end) for end in pair)  # type: ignore[attr-defined]
    return (_whole if whole else _between)(lower, upper)


def _between(lower: float, upper: float) -> str:
    return f"a number from {lower:.15g} to {upper:.15g}"
