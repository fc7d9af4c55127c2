"""A model -> its ``ModelSpec``, and where its records are.

``read_model`` returns a ``ModelSpec``, which has no record in it and decides everything that can be decided, and the ``RecordPaths``,
where the records are. Only what reads records asks for them. Types, shapes and operations are read; no value is.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import pymc as pm
import pytensor

from pymc_dp.models.likelihood_reader import read_likelihood
from pymc_dp.models.model_arrays import ModelArrays, arrays_of
from pymc_dp.models.problems import problems_of
from pymc_dp.models.record_axes import RecordAxes, dims_of_records, on_one_axis, records_in_words
from pymc_dp.models.row_patterns import summed_out
from pymc_dp.models.spec import Likelihood, ModelSpec, RecordPath, RecordPaths
from pymc_dp.models.survivors import surviving, touches_records, unlisted_in, what_stays
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.guard import boundary, quiet

TELLING = ("optimizer_verbose", "profile")
"""Settings of PyTensor by which it prints the arrays of a graph while it rewrites it, and their lengths when Python ends."""


def read_spec(
    model: pm.Model,
    public: Iterable[object] = (),
    records: Iterable[int] | None = None,
    *,
    aggregate: bool = False,
    sized: bool = True,
    rowwise: bool = False,
    binned: Collection[str] = (),
) -> ModelSpec:
    """The model without records; see ``read_model``."""
    return read_model(model, public, records, aggregate=aggregate, sized=sized, rowwise=rowwise, binned=binned)[0]


@boundary
def most_records(model: pm.Model) -> int | None:
    """The number of records, the largest where observed variables have several: read from shapes. None where there are none.

    It is for those alone to whom that number is public.
    """
    return max(arrays_of(model).records, default=None)


def read_model(
    model: pm.Model,
    public: Iterable[object] = (),
    records: Iterable[int] | None = None,
    *,
    aggregate: bool = False,
    sized: bool = True,
    rowwise: bool = False,
    latents: Mapping[str, int | None] | None = None,
    binned: Collection[str] = (),
) -> tuple[ModelSpec, dict[str, RecordPaths]]:
    """Read what may be known of a model, and where its records are.

    Parameters
    ----------
    model : pm.Model
        Left as it is.
    public : iterable
        Names of ``pm.Data``, names of dims, ``"<observed>:<k>"``, or the arrays themselves.
    records : iterable of int, optional
        Numbers of records, where the model is a dummy whose own numbers do not count.
    aggregate : bool
        Every row is a total: which rows there are is public, and each is kept by itself.
    sized : bool
        Whether the number of records is public; if not, nothing here depends on it.
    rowwise : bool
        What is asked of a likelihood is its density of one record, not its statistics.
    latents : mapping, optional
        Free variables that are taken as if they had been observed, as zeros: from the name to None where one entry of them belongs to each
        record, or to the number of levels where each record reads an entry by an index. Then it is what a record reads that is taken so,
        under the name that ``of_record`` gives it, and the variable stays.
    binned : collection of str
        The observed variables and private covariates that are counted in bins.

    Raises
    ------
    Refusal
        When ``public`` names something that is not there. What cannot be released is said in the spec, not raised.
    """
    if model.parent is not None:
        raise Refusal("This model is a part of another one. Write model=..., naming the outer model.")
    if telling := [name for name in TELLING if getattr(pytensor.config, name)]:
        raise Refusal(
            "PyTensor is set to print what graphs hold, or how long arrays are, which are records here. Write"
            f" pytensor.config.{telling[0]} = False."
        )
    with quiet():
        spec, paths = _read(model, public, records, latents, aggregate=aggregate, sized=sized, rowwise=rowwise, binned=binned)
        own = {name: model.rvs_to_transforms[model[name]] for name in sorted({likelihood.own for likelihood in spec.likelihoods} - {""})}
        if not own or latents or aggregate or rowwise:
            return spec, paths
        read = _read(model, public, records, dict.fromkeys(own), aggregate=aggregate, sized=sized, rowwise=rowwise, binned=binned)
        return summed_out(read, own, (spec, paths))


def _read(
    model: pm.Model, public: Iterable[object], records: Iterable[int] | None, latents: Mapping[str, int | None] | None, **how: Any
) -> tuple[ModelSpec, dict[str, RecordPaths]]:
    """What ``read_model`` says before any unknown is summed out; ``how`` are its other arguments."""
    arrays = arrays_of(model, public, records, latents, **how)
    axes = RecordAxes()
    likelihoods, paths = _likelihoods(arrays, axes, how["rowwise"])
    return _spec(arrays, axes, likelihoods), paths


def _likelihoods(arrays: ModelArrays, axes: RecordAxes, rowwise: bool) -> tuple[list[Likelihood], dict[str, RecordPaths]]:
    """Every likelihood, whose parents' values have limits, and where the records of those are that can be released."""
    likelihoods, paths = [], {}
    for observed in arrays.observed:
        likelihood, inputs = read_likelihood(arrays, observed, axes, rowwise=rowwise)
        likelihoods.append(likelihood)
        if likelihood.refusal is None:
            paths[observed.name] = RecordPaths(RecordPath(observed.value, 0, observed.missing), inputs)
    limits = {likelihood.name: None if likelihood.refusal else likelihood.natural for likelihood in likelihoods}
    return [
        replace(likelihood, inputs=tuple(replace(i, limits=limits[i.name]) if i.parent else i for i in likelihood.inputs))
        for likelihood in likelihoods
    ], paths


def _spec(arrays: ModelArrays, axes: RecordAxes, likelihoods: list[Likelihood]) -> ModelSpec:
    """The model without records: its likelihoods, its problems, and what survives of it."""
    record_dims = dims_of_records(arrays, axes)
    spec = surviving(arrays, likelihoods, record_dims)
    problems = list(problems_of(arrays, axes, record_dims))
    if not problems and touches_records(arrays, spec):  # what is refused already is mostly why
        problems.append(
            "An array that may hold records would stay in the published model. Use no array of the likelihoods in a prior, or declare it"
            " public if everyone may know it."
        )
    if not problems and (reason := unlisted_in(arrays, spec)):
        problems.append(f"The model holds {reason}, which may be records. Write it with PyTensor operations on named arrays.")
    stays = tuple(sorted(what_stays(arrays, spec)))
    words, together = records_in_words(arrays, axes), on_one_axis(arrays, axes)
    many = {observed.name: observed.records[0] for observed in arrays.observed if arrays.sized and observed.records}
    return replace(spec, problems=tuple(problems), stays=stays, records=words, on_one_axis=together, many=many)
