"""Names and labels that a tree of draws can hold. Every function that draws checks them before anything is paid for; they are public."""

import datetime
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from pymc.model.fgraph import ModelDeterministic, ModelFreeRV

from pymc_dp.models.spec import ModelSpec
from pymc_dp.privacy.accounting import Refusal

KINDS: tuple[tuple[type, ...], ...] = (
    (str,),
    (bool, np.bool_),
    (int, float, np.int32, np.int64, np.uint32, np.uint64, np.float32, np.float64),
    (datetime.datetime, np.datetime64),
    (datetime.timedelta, np.timedelta64),
)
"""Kinds of labels of a dim, which every sampler of PyMC and a DataTree can hold: all of a dim are of one of them."""


class Drawn(NamedTuple):
    """One variable of which there will be draws.

    Attributes
    ----------
    name : str
    dims : tuple of (str or None)
    ndim : int
    """

    name: str
    dims: tuple[str | None, ...]
    ndim: int


def drawn_of(spec: ModelSpec) -> tuple[Drawn, ...]:
    """The variables of which there will be draws."""
    variables = [v for v in spec.kept if isinstance(v.owner.op, ModelFreeRV | ModelDeterministic)]
    return tuple(Drawn(v.owner.op.name, tuple(v.owner.op.dims), v.type.ndim) for v in variables)


def check_names(variables: Iterable[Drawn], coords: Mapping[str, Iterable[object] | None]) -> None:
    """Refuse names that draws would have twice, of a variable and of a dim or of two dims, and names and labels that no tree can hold.

    An axis without a dim gets one of its own.

    Parameters
    ----------
    variables : iterable of Drawn
    coords : mapping
        Labels by name of dim; None where it has a length only.
    """
    names, taken, default_dims = set(), set(), {"chain", "draw"}
    for name, dims, ndim in variables:
        names.add(name)
        taken |= {dim for dim in dims if dim}
        default_dims |= {f"{name}_dim_{axis}" for axis in range(ndim) if axis >= len(dims) or dims[axis] is None}
    if twice := names & (taken | default_dims):
        raise Refusal(f"{min(twice)} is the name of a dim of draws. Give that variable another name.")
    if twice := taken & default_dims:
        raise Refusal(f"Draws have a dim named {min(twice)} already. Give that dim another name.")
    if split := sorted(name for name in names | taken if "/" in name or name in (".", "..")):
        raise Refusal(f"A DataTree takes {split[0]!r} for a path. Give that variable or dim a name without a slash.")
    for dim in sorted(taken):
        labels = list(coords.get(dim) or ())
        if labels and not any(all(isinstance(label, kinds) and _holds(label) for label in labels) for kinds in KINDS):
            raise Refusal(f"The labels of dim {dim} cannot be held by a DataTree. Write texts, numbers or dates, all of one kind.")


def _holds(label: object) -> bool:
    """Whether the label fits: integers of 64 bits, dates without a time zone, truth values among themselves."""
    if isinstance(label, int) and not isinstance(label, bool):
        return -(2**63) <= label < 2**63
    return getattr(label, "tzinfo", None) is None
