"""One observed variable -> its ``Likelihood`` on placeholders, and where its records are; or why it cannot be released."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from math import inf

from pymc.distributions.censored import CensoredRV
from pymc.distributions.custom import CustomDistRV
from pymc.model.fgraph import ModelFreeRV
from pymc.variational.minibatch_rv import MinibatchRandomVariable
from pytensor.graph.basic import Variable
from pytensor.tensor.random.op import RandomVariable

from pymc_dp.families.family import Family, name_of_operation, named, of_operation
from pymc_dp.families.normal import ROW_VALUES
from pymc_dp.models.alternatives import WRITTEN_OUT, instead_of, is_alone, is_ordered
from pymc_dp.models.binned import has_plain_support, parametrised_in_bins
from pymc_dp.models.event_flags import uses_of, with_events
from pymc_dp.models.event_tables import EventLaw
from pymc_dp.models.likelihood_rv import LikelihoodRV, variable_of
from pymc_dp.models.linear_mean import LINEAR, LINKS, as_pymc_reads, linear_mean, rests_on_shared
from pymc_dp.models.model_arrays import ModelArrays, name_of_random
from pymc_dp.models.observed import Observed, array_behind, is_rounded, plain_number
from pymc_dp.models.predictor import public_predictor
from pymc_dp.models.private_levels import is_level, outside_indices
from pymc_dp.models.probabilities import ADD_UP, check_add_up
from pymc_dp.models.public_inputs import public_inputs, shared_constants
from pymc_dp.models.record_axes import RecordAxes, check_axes, check_rows
from pymc_dp.models.reduction import Input, Reduction
from pymc_dp.models.same_arrays import shape_of
from pymc_dp.models.spec import MIXED, Likelihood, Placeholder, RecordPath
from pymc_dp.models.structure import Mixed, PerRecord, Unreduced, above, arrays_above, constant_value, indexed_axes, is_nameless, substitute
from pymc_dp.models.tabulated import BINNED, REALS, TABLE, Table, parametrised

PLAINER = "Write its parameters with plain arithmetic and indexing."


def read_likelihood(
    arrays: ModelArrays, observed: Observed, axes: RecordAxes, *, rowwise: bool
) -> tuple[Likelihood, tuple[RecordPath, ...]]:
    """One observed variable without its records, and where its inputs are; see ``read_model`` for ``rowwise``.

    A likelihood that cannot be released says why, and has no inputs.
    """
    operation = observed.random.owner.op
    family = of_operation(operation)
    support = family.NDIM if family is not None else operation.ndim_supp if isinstance(operation, RandomVariable) else 0
    if observed.binned and observed.tree is not None:
        family, support = BINNED, 0
    elif arrays.aggregate and type(operation) in REALS and has_plain_support(observed.random):
        family = ROW_VALUES
    elif family is None and observed.tree is not None and observed.tree.counts and observed.parameters:
        family = TABLE
    sums = "" if observed.binned or arrays.aggregate or observed.tree is None else observed.tree.sums
    if sums:
        family = named(sums)
    indices = arrays_above([index for index, _ in indexed_axes(list(observed.parameters))])
    likelihood = Likelihood(
        observed.name,
        sums or name_of_operation(operation),
        family,
        column_dims=tuple(observed.dims[1 : observed.ndim - support]) or (None,) * (observed.ndim - 1 - support),
        arrays=tuple((arrays.names[a], "index" if a in indices else "covariate", a in arrays.public) for a in observed.arrays),
        aggregate=arrays.aggregate,
        again=_density(observed),
        weights=() if observed.tree is None else observed.tree.weights,
        limits=(-inf, inf) if observed.tree is None or observed.tree.counts else observed.tree.limits,
        alone=is_alone(arrays, observed),
        ordered=is_ordered(arrays),
    )
    try:
        likelihood, inputs = _reduced(likelihood, arrays, observed, axes, support, rowwise)
    except Unreduced as reason:
        read_record = partial(_reduced, likelihood, arrays, observed, RecordAxes(), support, True)
        instead = "" if rowwise else instead_of(reason, likelihood, arrays, observed, read_record)
        own = reason.unknown if isinstance(reason, PerRecord) else ""
        told = _with_other_constants(reason, arrays, observed) if isinstance(reason, Mixed) else reason
        return replace(likelihood, refusal=f"{observed.name} cannot be released: {told}.{instead}", own=own), ()
    except Exception:  # no record has been read: the graph alone has decided
        return replace(likelihood, refusal=f"{observed.name} cannot be released: its graph could not be read. {PLAINER}"), ()
    return likelihood, tuple(_path(arrays, data) for data in inputs)


def _with_other_constants(reason: Mixed, arrays: ModelArrays, observed: Observed) -> Mixed:
    """The refusal of a constant that all records share, with the others of its likelihood: to be declared in one step.

    They are arrays without a name, none as long as there are records, where that number is public.
    """
    if not arrays.records or not all(is_nameless(name) for name in reason.names):
        return reason
    others = [
        name for array in arrays_above(list(observed.parameters))
        if array not in arrays.public and not arrays.records & set(shape_of(array)) and is_nameless(name := arrays.names.get(array, ""))
    ]  # fmt: skip
    return Mixed(sorted({*reason.names, *others}), reason.said)


def _reduced(
    likelihood: Likelihood, arrays: ModelArrays, observed: Observed, axes: RecordAxes, support: int, rowwise: bool
) -> tuple[Likelihood, list[Input]]:
    """The likelihood with its parameters on placeholders, and the data that these stand for."""
    family, distribution, tree, cores = likelihood.family, likelihood.distribution, observed.tree, observed.cores
    make = tree.make if isinstance(family, Table) and tree else None
    if observed.binned and (tree is None or likelihood.aggregate or not observed.parameters):
        raise Unreduced(_not_in_bins(observed, distribution, likelihood.aggregate))
    if rowwise:
        make = _density_of_a_record(observed, distribution)
    elif family is None and distribution not in LINEAR:
        raise Unreduced(_unsupported(observed, distribution))
    _check_arrays(arrays, observed)
    if observed.ndim <= support:
        raise Unreduced(f"it is a single value of {distribution}, without an axis of records. Observe an array with one row per record")
    lengths = _lengths(observed)
    columns = lengths[: len(lengths) - support]
    several = observed.records[0] if arrays.sized and observed.records > (1,) else 0
    reduction = Reduction(arrays.public, lambda array: arrays.names.get(array, "inside an operation"), sized=arrays.sized, several=several)
    depth = observed.ndim - support
    # Axis 0 runs over the records where a parameter has as many axes as the values.
    row_axes = [
        0 if p.type.ndim - core == depth and not arrays.aggregate else None for p, core in zip(observed.parameters, cores, strict=True)
    ]
    parameters = tuple(reduction.parameter(parameter, axis) for parameter, axis in zip(observed.parameters, row_axes, strict=True))
    levels = lengths[-1] if support else 0 if isinstance(family, Table) else _levels(parameters, cores)
    _check_columns(observed, parameters, columns)
    check_rows(arrays, observed, reduction.inputs)
    check_axes(arrays, reduction.inputs, axes)
    along = arrays_above([data.expression for data in reduction.inputs if data.axis is not None])
    axes.below[observed.name] = reduction.dims, set(along).difference(arrays.stand_ins)
    if distribution == "MvNormal":
        parameters = (*parameters[:-1], as_pymc_reads(parameters[-1], levels))
    if levels and distribution in ADD_UP:
        check_add_up(parameters[-1], reduction.inputs)
    inputs, events = _placeholders(arrays, observed, distribution, reduction.inputs, parameters)
    in_bins = _covariates_in_bins(arrays, observed, inputs, rowwise)
    linear, not_linear = (None, None) if observed.binned or in_bins else linear_mean(distribution, parameters, inputs)
    if (linear is None and not_linear) or rests_on_shared(linear, inputs):  # features may be functions of public constants, such as knots
        linear, _ = linear_mean(distribution, tuple(substitute(p, shared_constants(reduction.inputs)) for p in parameters), inputs)
    if family is None and linear is None and not rowwise:
        raise Unreduced(str(not_linear))
    unknown = tuple(any(isinstance(v.owner.op, ModelFreeRV) for v in above([p]) if v.owner) for p in parameters)
    known = tuple(None if is_unknown else plain_number(p) for p, is_unknown in zip(parameters, unknown, strict=True))
    needed = () if family is None or family is BINNED or rowwise else family.KNOWN
    if tree is not None and tree.counts and any(known[place] is None for place, _ in needed):
        family, make = TABLE, tree.make
    if in_bins and not isinstance(family, Table) and distribution not in MIXED:
        if tree is None or not tree.counts:
            raise Unreduced(_outcome_not_in_bins(observed, distribution, in_bins))
        family, make = TABLE, tree.make
    if family is not None and not rowwise:
        _check_numbers(observed, family, unknown, known)
    likelihood = replace(
        likelihood, family=family, parameters=parameters, core_ndims=tuple(cores), unknown=unknown, known=known, inputs=inputs,
        columns=columns, levels=levels, linear=linear, not_linear=not_linear, make=make, in_bins=in_bins, events=events,
        between=tree.between if tree is not None and observed.binned else None, arrays=uses_of(likelihood.arrays, inputs),
    )  # fmt: skip
    if not rowwise and not likelihood.aggregate:
        likelihood = replace(likelihood, predictor=public_predictor(likelihood))
    return likelihood, reduction.inputs


def _density(observed: Observed) -> Callable[..., Variable] | None:
    """The distribution of values from their parameters; None where it cannot be made from them alone."""
    operation = observed.random.owner.op
    if isinstance(operation, CustomDistRV | LikelihoodRV):  # a density in bins can be evaluated, not drawn from
        return None
    if observed.tree is not None:
        return observed.tree.make
    if not isinstance(operation, RandomVariable) or isinstance(operation, MinibatchRandomVariable):
        return None
    return partial(variable_of, operation)


def _density_of_a_record(observed: Observed, distribution: str) -> Callable[..., Variable]:
    """The distribution of one record's value from its parameters."""
    operation, density = observed.random.owner.op, _density(observed)
    if density is None and isinstance(operation, CustomDistRV):
        raise Unreduced("its likelihood is a CustomDist, whose density may mix records. Write it with one of PyMC's own distributions")
    if density is None:
        raise Unreduced(_unsupported(observed, distribution))
    if observed.tree is None and operation.ndim_supp:
        raise Unreduced(f"its likelihood is {distribution}, whose values are vectors. Observe numbers")
    return density


def _unsupported(observed: Observed, distribution: str) -> str:
    operation = observed.random.owner.op
    if isinstance(operation, MinibatchRandomVariable):
        return "it uses Minibatch or total_size, which promise no privacy. Observe all records without them"
    bins = _in_bins(observed)
    if isinstance(operation, CustomDistRV) and not bins:
        return f"its likelihood is {distribution}, of which bins can be released where it is a density, and {_why_not_in_bins(observed)}"
    if not isinstance(operation, RandomVariable):
        what = f"its likelihood is {distribution}, which has no sufficient statistics"
        return f"{what}. {bins or WRITTEN_OUT.get(distribution, 'Write it as one of the supported families')}"
    what = f"its likelihood is {distribution}, of which a release is not offered"
    return f"{what}. {bins}" if bins else f"{what}. The supported families are listed in the documentation"


def _in_bins(observed: Observed) -> str:
    """What to write for counts in bins; "" where these are not offered either."""
    try:
        tree = parametrised_in_bins(observed.random)
    except Unreduced:
        return ""
    name = observed.name
    return f"Write bounds={{{name!r}: pymc_dp.Bins(lower, upper)}} to release how many values lie in each bin" if tree else ""


def _why_not_in_bins(observed: Observed) -> str:
    """Why PyMC's own functions of a distribution give no probabilities of bins."""
    try:
        parametrised_in_bins(observed.random)
    except Unreduced as reason:
        return str(reason)
    return "it is none of single numbers"


def _not_in_bins(observed: Observed, distribution: str, aggregate: bool) -> str:
    """Why a variable cannot be counted in bins."""
    if aggregate:
        return "its rows are totals, each of which is released by itself. Leave it out of bounds"
    if observed.unread:
        return observed.unread
    what, tree = f"its likelihood is {distribution}, of which the probabilities of bins are not known", parametrised(observed.random)
    if tree is not None and tree.counts:
        return f"{what}. Write bounds={{{observed.name!r}: (0, 40)}} to release how many records have each value"
    several = "mixtures of them, and those that are truncated or censored at plain numbers"
    return f"{what}. Bins are for single numbers, whose distribution PyMC can evaluate, {several}"


def _covariates_in_bins(arrays: ModelArrays, observed: Observed, inputs: Sequence[Placeholder], rowwise: bool) -> frozenset[str]:
    """The names of private covariates that are counted in bins.

    A censoring limit that lies somewhere in a bin says together with a value whether it was reached: not understood, and refused.
    """
    covariates = {
        i.name: i for i in inputs if i.name in arrays.binned and i.private and i.axis is not None and not i.parent and not i.index
    }
    if not covariates or rowwise:
        return frozenset()
    name = next(iter(covariates))
    if arrays.aggregate:
        raise Unreduced(f"its rows are totals, each of which is released by itself. Leave {name} out of bounds")
    if not all(covariate.plain for covariate in covariates.values()):
        raise Unreduced(f"what is computed from {name} is not counted in bins. Compute it before the model, and observe the result")
    if isinstance(observed.random.owner.op, CensoredRV):
        limits = {arrays.names.get(array, "") for array in arrays_above(observed.random.owner.inputs[1:])}
        if limited := sorted(limits & set(covariates)):
            raise Unreduced(
                f"{limited[0]} is a censoring limit, and whether it was reached cannot be told by bins. List the values it can have:"
                f" bounds={{{limited[0]!r}: {{6, 12, 18}}}}"
            )
    return frozenset(covariates)


def _outcome_not_in_bins(observed: Observed, distribution: str, in_bins: Iterable[str]) -> str:
    """What to write where covariates are in bins and the outcome is not."""
    first = sorted(in_bins)[0]
    if not _in_bins(observed):
        return (
            f"its likelihood is {distribution}, whose values are not counted one by one, as covariates in bins need. Leave {first} out of"
            " bounds"
        )
    return (
        f"{first} is counted in bins, and then {observed.name} must be, too: sums of it say little of what lies within a bin. Write"
        f" bounds={{{observed.name!r}: pymc_dp.Bins(lower, upper), {first!r}: pymc_dp.Bins(lower, upper)}}"
    )


def _check_arrays(arrays: ModelArrays, observed: Observed) -> None:
    """Refuse what must not stand above a likelihood, or above a prior as well as above it."""
    if arrays.aggregate and is_rounded(observed):
        raise Unreduced('PyTensor was set to float32 when the model was made. Set pytensor.config.floatX = "float64" before')
    if observed.ndim == 0:
        total = ', or a total of individuals as observed=[total] with unit="individual"'
        whole = total if name_of_operation(observed.random.owner.op) in ("Binomial", "Poisson") else ""
        raise Unreduced(f"it is a single number, without an axis of records. Observe an array with one entry per record{whole}")
    if observed.array is None:
        raise Unreduced(
            "its values are computed in the graph, sparse, or of a class of their own, such as np.matrix. Compute them before the model,"
            " and observe a plain array, np.asarray(values)"
        )
    names = {other.name for other in arrays.observed} | arrays.imputed
    for variable in above(list(observed.parameters), through_unknowns=False):
        name = name_of_random(variable) if variable.owner is not None else None
        if name in names:
            raise Unreduced(f"it depends on {name}, which is observed and so private")
    for array in observed.arrays:
        name = arrays.names[array]
        if array is observed.array:
            raise Unreduced(f"it depends on {name}, which is observed and so private")
        if array not in arrays.public and arrays.reaches_prior(array):
            raise Unreduced(
                f"the array {name} reaches a prior as well as this likelihood. If everyone may know it, write public=[{name!r}]"
            )
    if observed.array in arrays.above_priors:
        raise Unreduced("its observed values, or their shape, reach a prior. Write the prior without the data")


def _lengths(observed: Observed) -> tuple[int, ...]:
    """Lengths of the axes of the values after that of the records."""
    shape = observed.value.type.shape
    lengths = shape[1:] if observed.missing is None else (*observed.missing.type.shape, *shape[1:])[1:]
    if None in lengths:
        lengths = observed.random.type.shape[1:]
    if None in lengths and observed.array is not None:
        lengths = shape_of(observed.array)[1:]
    if None in lengths:
        raise Unreduced("the number of its columns is not fixed. Give the observed variable dims or a shape")
    if 0 in lengths:
        raise Unreduced("it has no columns. Give every record a value")
    return tuple(lengths)


def _levels(parameters: Sequence[Variable], cores: Iterable[int]) -> int:
    """The number of levels of a variable whose probabilities are a parameter; 0 of any other."""
    for parameter, core in zip(parameters, cores, strict=True):
        if core:
            length = constant_value(parameter.shape[-1])
            if length is None:
                shapes = "pt.specify_shape(p, (8,)), or (None, 8) where records have a row each. A pm.Data above them takes shape=(...)"
                raise Unreduced(f"the number of its levels is not fixed. Write its probabilities with a shape: {shapes}")
            if length < 2:
                raise Unreduced("it has a single level, so its values are known beforehand. Leave it out of the model")
            return int(length)
    return 0


def _check_columns(observed: Observed, reduced: Sequence[Variable], columns: Sequence[int]) -> None:
    """Refuse parameters with other columns than the values. Lengths that the user's graph leaves open are those of placeholders."""
    for parameter, core in zip((*observed.parameters, *reduced), observed.cores * 2, strict=True):
        lengths = parameter.type.shape[: parameter.type.ndim - core][-len(columns) :] if columns else ()
        if any(length not in {None, 1, wanted} for length, wanted in zip(lengths, columns[-len(lengths) :])):
            raise Unreduced("its values have other columns than its parameters. Give them the same shape")


def _placeholders(
    arrays: ModelArrays, observed: Observed, distribution: str, inputs: Sequence[Input], parameters: Sequence[Variable]
) -> tuple[tuple[Placeholder, ...], EventLaw | None]:
    """What a release must bring for each input, and how events are distributed if one of them tells these."""
    placeholders = tuple(_placeholder(arrays, observed, data, parameters) for data in inputs)
    if distribution in LINEAR or distribution in LINKS:
        outside = outside_indices([parameters[0]])
        placeholders = tuple(replace(p, inner=p.private and p.whole and not p.index and p.variable not in outside) for p in placeholders)
    outside = outside_indices(parameters)
    for p, data in zip(placeholders, inputs, strict=True):
        if p.private and data.index and data.lengths and not p.whole and p.variable in outside:
            raise Unreduced(f"the private {p.name} holds real numbers, and is an index as well. Give the index as integers")
    return with_events(observed.random.owner.op, placeholders, parameters)


def _placeholder(arrays: ModelArrays, observed: Observed, data: Input, parameters: Sequence[Variable]) -> Placeholder:
    above_it, parent = arrays_above([data.expression]), data.expression in arrays.stand_ins
    levels = min(data.lengths) if data.private and data.lengths and (parent or is_level(data, parameters)) else None
    return Placeholder(
        data.placeholder,
        data.axis,
        name=arrays.names[above_it[0]] if above_it else "",
        labels=_labels(arrays, observed, data.expression),
        private=data.private,
        index=data.index and (not data.private or levels is not None),
        levels=levels,
        wraps=len(data.lengths) == 1 and not parent,
        parent=parent,
        plain=array_behind(data.expression) is not None,
        readings=() if data.private else public_inputs(data.expression, {*arrays.records, *observed.records} if arrays.sized else ()),
    )


def _labels(arrays: ModelArrays, observed: Observed, expression: Variable) -> str | None:
    """The dim whose labels name the cells, if this input is a plain index into it."""
    for index, dims in indexed_axes(list(observed.parameters)):
        if index is expression and len(dims) == 1 and expression.type.ndim == 1:
            (dim,) = dims
            return dim if arrays.graph.graph._coords.get(dim) is not None else None
    return None


def _check_numbers(observed: Observed, family: Family, unknown: Sequence[bool], known: Sequence[float | None]) -> None:
    """Refuse a parameter that the family's statistics rest on and that is no plain number, or one that may not be unknown and is."""
    bins = f", or bounds={{{observed.name!r}: pymc_dp.Bins(lower, upper)}}" if family.KNOWN + family.FIXED and _in_bins(observed) else ""
    for place, called in family.KNOWN:
        if known[place] is None:
            raise Unreduced(
                f"its parameter {called} is not a plain number, and its statistics rest on it. Write a number for {called}{bins}"
            )
    for place, called in family.FIXED:
        if unknown[place]:
            raise Unreduced(f"its parameter {called} depends on an unknown. Write it without one{bins}")


def _path(arrays: ModelArrays, data: Input) -> RecordPath:
    parent = arrays.stand_ins.get(data.expression)
    return RecordPath(data.expression, data.axis) if parent is None else RecordPath(parent.value, data.axis, parent.missing)
