"""Labels that published numbers bring along, as those of pandas and xarray do: numbers are taken by their places, so these must agree.

Labels of which the model has none, or others, say nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass

import numpy as np

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.publications.noises import Step
from pymc_dp.releases.stored import is_one

type Coords = Mapping[str, Iterable[object] | None]
"""The labels of dims; None of a dim that has a length alone."""
type Dims = Sequence[str | None] | None
"""The dim of every axis, where that is known."""


def check_labels(what: str, numbers: object, coords: Coords, dims: Dims = None) -> None:
    """Refuse numbers whose labels are those of a dim of the model in another order, or whose axes are its dims in another order.

    Parameters
    ----------
    what : str
        What they are, for the refusal.
    numbers : object
        Numbers of any kind; of a step of a law, or a law that holds others, those that it holds.
    coords : mapping
    dims : sequence of (str or None), optional
        Those of the numbers; any dim of the same labels, where nothing is said.

    Raises
    ------
    Refusal
    """
    if isinstance(numbers, Step) and is_dataclass(numbers):
        for field in fields(numbers):
            check_labels(f"{field.name} of {what}", getattr(numbers, field.name), coords, dims)
        return
    names, labels = _axes(numbers)
    dims = dims if dims is not None and len(dims) == len(labels) else None
    if dims is not None and set(names) == set(dims) and list(names) != list(dims):
        raise Refusal(f"{what} has the dims {_listed(names)}, and the model {_listed(dims)}. Put its axes in the model's order.")
    known = {dim: list(of_dim) for dim, of_dim in coords.items() if of_dim is not None}
    for axis, of_axis in enumerate(labels):
        alike = [dim for dim, of_dim in known.items() if len(of_dim) == len(of_axis) > 1 and _same(of_dim, of_axis)]
        mine = [dim for dim in alike if dims is None or dims[axis] in (None, dim) or dim.startswith(_beside(axis))]
        if alike and not any(known[dim] == of_axis for dim in mine):
            raise Refusal(
                f"{what} has the labels of {alike[0]} in another order, or along another axis, and numbers are taken by their places. Put"
                " them in the order of the model's coords, or give an array without labels."
            )


def labels_in(what: str, numbers: object) -> dict[str, list[object]]:
    """The labels that numbers bring along, as coords of dims of their own: others beside them must be in the same order."""
    return {f"{_beside(axis)}{what}": of_axis for axis, of_axis in enumerate(_axes(numbers)[1]) if of_axis}


def _beside(axis: int) -> str:
    """How the name begins of a dim that numbers bring along as one of their axes."""
    return f"axis {axis} of "


def _axes(numbers: object) -> tuple[list[object], list[list[object]]]:
    """The names of the axes of numbers, and the labels along each: None and nothing where there are none."""
    if is_one(numbers, "xarray", "DataArray"):
        names = list(numbers.dims)  # type: ignore[attr-defined]
        return names, [numbers.indexes[name].tolist() if name in numbers.indexes else [] for name in names]  # type: ignore[attr-defined]
    if is_one(numbers, "pandas", "Series", "DataFrame"):
        axes = numbers.axes  # type: ignore[attr-defined]
        return [axis.name for axis in axes], [[] if _by_default(axis) else axis.tolist() for axis in axes]
    return [None] * np.ndim(numbers) if isinstance(numbers, np.ndarray) else [], []


def _by_default(index: object) -> bool:
    """Whether an index is what pandas gives to numbers without labels."""
    return is_one(index, "pandas", "RangeIndex") and (index.start, index.step) == (0, 1)  # type: ignore[attr-defined]


def _same(labels: Sequence[object], others: Sequence[object]) -> bool:
    """Whether these are the same labels, in any order."""
    try:
        return set(labels) == set(others)
    except TypeError:
        return False


def _listed(names: Sequence[object]) -> str:
    return "(" + ", ".join(map(str, names)) + ")"
