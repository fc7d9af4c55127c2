"""Along which axis of each private array the records lie. There must be exactly one, or one record would move many rows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pymc.model.fgraph import ModelNamed
from pytensor.graph.basic import Variable

from pymc_dp.models.model_arrays import ModelArrays
from pymc_dp.models.observed import Observed
from pymc_dp.models.reduction import Input
from pymc_dp.models.same_arrays import laid_out_differently, may_overlap, shape_of
from pymc_dp.models.structure import Mixed, Unreduced, arrays_above, is_nameless


@dataclass
class RecordAxes:
    """What has been seen of private arrays so far, likelihood after likelihood.

    Attributes
    ----------
    reads : list of (Variable, int)
        Arrays, and the axis along which they were read.
    dims : set of str
        The names of these axes.
    below : dict of str to (set of str, set of Variable)
        For every observed variable the names that its axis of records has in what stands above it, and the arrays, public ones as well,
        that are read along it.
    """

    reads: list[tuple[Variable, int]] = field(default_factory=list)
    dims: set[str] = field(default_factory=set)
    below: dict[str, tuple[set[str], set[Variable]]] = field(default_factory=dict)


def check_rows(arrays: ModelArrays, observed: Observed, inputs: Iterable[Input]) -> None:
    """Refuse a private array of another length than the observed one: it would be broadcast, and one entry of it would move many records.

    Where the number of records is private this is not looked at: ``release`` makes every array as long as the observed one.
    """
    for data in inputs if arrays.sized else ():
        if data.private and data.axis is not None and shape_of(data.expression)[data.axis : data.axis + 1] != observed.records:
            name = arrays.names.get(data.expression, "an array")
            if is_nameless(name):
                raise Mixed([name], f", {name} being an array of shape {shape_of(data.expression)} without a name")
            raise Unreduced(f"the private {name} does not have one row per record. Give it as many rows as there are observed values")


def check_axes(arrays: ModelArrays, inputs: Iterable[Input], axes: RecordAxes) -> None:
    """Refuse a private array that is read along another axis than its records: one record would move many. Note all others in ``axes``.

    Records lie along the first axis of an observed variable, and of a private array. A private array may have them along its second
    axis where the model has one unknown number for every entry of the first, which therefore holds features.
    """
    along_records = [(data, data.axis) for data in inputs if data.private and data.axis is not None]
    for data, axis in along_records:
        name, parent = arrays.names.get(data.expression, "an array"), arrays.stand_ins.get(data.expression)
        if axis and parent is not None:
            raise Unreduced(
                f"it reads {name} along its axis {axis}{_axis_name(parent.dims, axis)}, but the records of an observed"
                f" variable lie along its first axis{_axis_name(parent.dims, 0)}, so one record of {name} would move many of these."
                f" Let what is said of a record rest on {name} of the same record only"
            )
        if axis and not data.features:
            dims = arrays.dims_of(data.expression)
            raise Unreduced(
                f"it reads the private {name} along its axis {axis}{_axis_name(dims, axis)}, but the records of a"
                f" private array lie along its first axis{_axis_name(dims, 0)}. If they lie along axis {axis}, transpose it"
                " where it is made, so that they come first"
            )
        axes.reads.append((data.expression, axis))
    for variable in arrays.graph.of_kind(ModelNamed):
        dims = variable.owner.op.dims
        for data, axis in along_records:
            if variable.owner.inputs[0] is data.expression and len(dims) > axis and dims[axis]:
                axes.dims.add(dims[axis])


def dims_of_records(arrays: ModelArrays, axes: RecordAxes) -> set[str]:
    """The dims along which records lie; none where every row is a total."""
    if arrays.aggregate:
        return set()
    return axes.dims | {observed.dims[0] for observed in arrays.observed if observed.dims and observed.dims[0]}


def records_in_words(arrays: ModelArrays, axes: RecordAxes) -> str:
    """What a record is: along which axis of which array records lie."""
    names: dict[tuple[int, str], list[str]] = {}
    for observed in arrays.observed:
        names.setdefault((0, _axis_name(observed.dims, 0)), []).append(observed.name)
    for array, axis in axes.reads:
        name = arrays.names.get(array, "an array")
        known = [name for others in names.values() for name in others]
        if array not in arrays.stand_ins and name not in known:
            names.setdefault((axis, _axis_name(arrays.dims_of(array), axis)), []).append(name)
    parts = [
        f"{'row' if axis == 0 else f'entry along axis {axis}'}{axis_name} of {_and(others)}" for (axis, axis_name), others in names.items()
    ]
    return f"one {' with the '.join(parts)}, with all its values" if parts else ""


def _and(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


@dataclass
class _Axis:
    """An axis of records: the observed variables along it, its names, and the arrays that are read along it."""

    observed: set[str]
    dims: set[str]
    arrays: set[Variable]

    def is_that_of(self, other: "_Axis", *, sized: bool) -> bool:
        """Whether both have a variable, a name, an array, or a part of an array's memory in common.

        Where the number of records is private (not ``sized``) memory does not count: arrays without records share none.
        """
        common = self.observed & other.observed or self.dims & other.dims or self.arrays & other.arrays
        return bool(common) or (sized and any(may_overlap(array, another) for array in self.arrays for another in other.arrays))


def on_one_axis(arrays: ModelArrays, axes: RecordAxes) -> tuple[tuple[str, ...], ...]:
    """The observed variables, those together whose records lie along one axis, so that one record may be in several of them.

    These are variables that are above each other, that rest on one private array or, where the number of records is public, on parts of its
    memory, that read one array record by record, or whose axes of records have one name, in their values or in anything above them; and
    those that such variables lead to. Names do not count for totals, whose rows are no people.
    """
    known_axes: list[_Axis] = []
    for observed in arrays.observed:
        axis = _axis_of(observed, arrays, axes)
        same = [other for other in known_axes if other.is_that_of(axis, sized=arrays.sized)]
        for other in same:
            axis = _Axis(axis.observed | other.observed, axis.dims | other.dims, axis.arrays | other.arrays)
        known_axes = [*(other for other in known_axes if other not in same), axis]
    return tuple(tuple(observed.name for observed in arrays.observed if observed.name in axis.observed) for axis in known_axes)


def _axis_of(observed: Observed, arrays: ModelArrays, axes: RecordAxes) -> _Axis:
    """The axis of the records of one observed variable, as far as its own likelihood tells."""
    parents = {arrays.stand_ins[array].name for array in observed.arrays if array in arrays.stand_ins}
    above = observed.arrays if observed.parameters else arrays_above(observed.random.owner.inputs)
    private = {array for array in above if array in arrays.private and array not in arrays.stand_ins}
    values = arrays_above([observed.value, *([] if observed.missing is None else [observed.missing])])
    dims, along = axes.below.get(observed.name, (set(), set()))
    known = [observed.dims, *(arrays.dims_of(array) for array in values)]
    dims = dims | {names[0] for names in known if names and names[0]}
    dims |= {name for array, axis in axes.reads if array in private for name in arrays.dims_of(array)[axis : axis + 1] if name}
    return _Axis({observed.name} | parents, set() if arrays.aggregate else dims, private.union(values, along))


def read_along_two_axes(arrays: ModelArrays, axes: RecordAxes) -> Iterator[str]:
    """Private arrays whose records lie along one axis here and along another there, themselves or as views of the same memory."""
    observed_as = {observed.array: observed.name for observed in reversed(arrays.observed) if observed.array is not None}
    reads = [*axes.reads, *((observed.array, 0) for observed in arrays.observed if observed.array is not None)]
    for k, (first, axis) in enumerate(reads):
        for second, other in reads[:k]:
            same = first is second and axis == other
            if not same and (first is second or laid_out_differently(first, axis, second, other)):
                names = dict.fromkeys(arrays.names.get(array) or observed_as.get(array, "an array") for array in (second, first))
                yield (
                    f"{' and '.join(names)} {'is' if len(names) == 1 else 'share memory, which is'} read along two axes, so one record"
                    " would move many. Read it along the axis of its records only, in all likelihoods."
                )


def _axis_name(dims: Sequence[str | None], axis: int) -> str:
    return f" ({dims[axis]!r})" if len(dims) > axis and dims[axis] else ""
