"""The records as the log-likelihood of one record needs them: missing values filled, values clamped, in the types of its placeholders.

They never leave the functions that draw.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

import numpy as np
import pymc as pm
import pytensor
from pytensor.graph.basic import Variable
from pytensor.graph.replace import vectorize_graph

from pymc_dp.families.family import complete
from pymc_dp.families.grid import nearest_level
from pymc_dp.models.spec import ModelSpec, RecordPaths
from pymc_dp.models.unknowns import by_name
from pymc_dp.plans.disjoint import check_same_records
from pymc_dp.plans.protection import Protection
from pymc_dp.plans.rowwise import Entry, Rowwise, rowwise
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.private_models.rewrite import without_likelihoods
from pymc_dp.releases.cells import by_record
from pymc_dp.releases.statistics import as_many, complete_records, completed, evaluate, of_type, records_of

AT_ONCE = 2**21
"""So many log-likelihoods are computed at once."""


@dataclass(frozen=True)
class Public:
    """What may be looked at before anything is paid for.

    Attributes
    ----------
    many : int
        The number of records.
    arrays : dict of Variable to ndarray
        Public arrays with one row per record, by placeholder.
    shared : dict of Variable to ndarray
        Public arrays that all records share.
    """

    many: int
    arrays: Mapping[Variable, np.ndarray]
    shared: Mapping[Variable, np.ndarray]


@dataclass(frozen=True, eq=False)
class Reading:
    """A model as the log-likelihood of one record sees it: what is derived from it is computed when it is first asked for, and once.

    Attributes
    ----------
    spec : ModelSpec
    paths : dict of str to RecordPaths
    protection : Protection
    latents : dict of str to (int or None)
        What every record has for itself, or reads an entry of: see ``paid_gibbs.parts.latents_of``.
    truncate : dict of str to (float, float), or None
        Whether priors are cut off, and where that is not left to their quantiles: see ``models.truncated_priors``.
    only : tuple of int, optional
        The places of the likelihoods that it is about; left out, it is about all of them.
    """

    spec: ModelSpec
    paths: Mapping[str, RecordPaths]
    protection: Protection
    latents: Mapping[str, int | None] = field(default_factory=dict)
    truncate: Mapping[str, tuple[float, float]] | None = None
    only: tuple[int, ...] | None = None

    @cached_property
    def rows(self) -> Rowwise:
        """The log-likelihood of one record."""
        rows = rowwise(self.spec, self.protection, self.latents, self.truncate)
        return rows if self.only is None else rows.only(self.only)

    @cached_property
    def parts(self) -> tuple["Reading", ...]:
        """A reading of the observed variables of each number of records; itself where all have the same, or where it is private.

        One person may have a record in each of them, so that what a record can do in one adds up with what it can do in the others.
        """
        lengths = [len(records_of(self.paths[likelihood.name].observed)) for likelihood in self.rows.likelihoods]
        if not self.protection.sized or len(set(lengths)) == 1:
            return (self,)
        places = {length: tuple(k for k, other in enumerate(lengths) if other == length) for length in lengths}
        return tuple(replace(self, only=some) for some in places.values())

    @cached_property
    def public(self) -> Public:
        """Shapes and public arrays, or a refusal where they do not fit. Where the number of records is private, nothing rests on it."""
        rows, paths = self.rows, self.paths
        lengths = {len(records_of(paths[likelihood.name].observed)) for likelihood in rows.likelihoods}
        sized = self.protection.sized
        if sized and len(lengths) > 1:
            raise Refusal("The observed variables have different numbers of records. Observe them in models of their own.")
        if not sized:
            check_same_records(self.spec)
        many = max(lengths)
        arrays, shared = {}, {}
        for likelihood in rows.likelihoods:
            for placeholder, path in zip(likelihood.inputs, paths[likelihood.name].inputs, strict=True):
                if placeholder.private and placeholder.axis is not None:
                    if sized and records_of(path).shape[placeholder.axis] != many:
                        raise Refusal("A private array and an observed variable have different numbers of records. Give both one row each.")
                elif placeholder.axis is not None:
                    array = by_record(evaluate(path.variable), placeholder.axis, many)
                    arrays[placeholder.variable] = of_type(array, placeholder.variable)
                else:
                    shared[placeholder.variable] = of_type(evaluate(path.variable), placeholder.variable)
        return Public(many, arrays, shared)

    @cached_property
    def prior(self) -> pm.Model:
        """The model without its likelihoods."""
        return without_likelihoods(self.spec, {})[0]

    @property
    def shown(self) -> int | None:
        """The number of records, where that is public and the same for all observed variables."""
        return self.public.many if self.protection.sized and len(self.parts) == 1 else None

    def exact(self) -> dict[Variable, np.ndarray]:
        """The records, and what all of them share, by placeholder: whatever records held, they lie within their bounds."""
        rows, paths, public = self.rows, self.paths, self.public
        exact = {**public.arrays, **public.shared}
        for k, (likelihood, value, domain) in enumerate(zip(rows.likelihoods, rows.values, rows.domains, strict=True)):
            raw = as_many(records_of(paths[likelihood.name].observed), 0, public.many)
            fill = rows.fills.get(likelihood.name, domain.fill)
            observed = complete(raw, replace(domain, fill=fill)).reshape(public.many, *likelihood.columns)
            whole = np.rint(observed) if value.type.dtype == "int64" else observed
            exact[value] = np.ascontiguousarray(of_type(whole, value))  # in rows, as a record alone lies: NumPy adds up in that order
            private = {
                placeholder: (as_many(records_of(path), placeholder.axis, public.many), placeholder.axis)
                for placeholder, path in zip(likelihood.inputs, paths[likelihood.name].inputs, strict=True)
                if placeholder.private and placeholder.axis is not None
            }
            if (kept := rows.kept[k] if rows.kept else None) is not None:
                covariates = {placeholder.variable.name: several for placeholder, several in private.items()}
                exact[kept] = complete_records(likelihood, rows.left_out, raw, covariates).astype(float)
            for placeholder, (array, axis) in private.items():
                flat = completed(rows.bounds, placeholder, array, axis, rows.fills.get(placeholder.name))
                if not placeholder.index and (levels := rows.bounds[placeholder.name].levels) is not None:
                    flat = np.array(levels)[nearest_level(flat, levels)]
                others = [length or 1 for k, length in enumerate(placeholder.variable.type.shape) if k != axis]
                moved = np.moveaxis(flat.reshape(public.many, *others), 0, axis)
                exact[placeholder.variable] = np.ascontiguousarray(of_type(moved, placeholder.variable))
        return exact

    def values(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """Numbers (..., P) by the names of the unknowns, each in its own shape."""
        return by_name(self.rows.unknowns, numbers)


def codes_of(entries: list[Entry], exact: Mapping[Variable, np.ndarray], many: int) -> np.ndarray:
    """Which of all records that can occur each is, in the order of ``rowwise.pieces``: (N,)."""
    codes = np.zeros(many, dtype=np.int64)
    for entry in entries:
        assert entry.levels is not None
        rows = np.moveaxis(exact[entry.variable], entry.axis, 0)
        column = rows.reshape(many, prod(rows.shape[1:]))[:, entry.place].astype(float)
        codes = codes * len(entry.levels) + nearest_level(column, entry.levels)
    return codes


def log_likelihood(rows: Rowwise, arrays: Mapping[Variable, np.ndarray]) -> Callable[..., np.ndarray]:
    """The log-likelihood of every record (G, N) as a function of unknowns (G, P), computed without touching any cache on disk.

    A second argument of the function may replace some of the arrays. A record alone is put beside its like, as in ``features_of``.
    """
    inputs, along = list(arrays), {**dict.fromkeys((*rows.values, *rows.kept), 0), **{p.variable: p.axis for p, _ in rows.inputs}}
    batched = [stand_in.type.clone(shape=(None, *stand_in.type.shape))() for stand_in in rows.stand_ins]
    with pytensor.config.change_flags(numba__cache=False):
        density = vectorize_graph(rows.by_entry, dict(zip(rows.stand_ins, batched, strict=True)))
        if density.type.ndim == 1:  # it rests on no unknown
            density = density[None]
        function = pytensor.function([*batched, *inputs], density, mode="FAST_COMPILE", on_unused_input="ignore")

    def of(numbers: np.ndarray, instead: Mapping[Variable, np.ndarray] | None = None) -> np.ndarray:
        parts = [part.astype(s.type.dtype) for part, s in zip(rows.split(numbers), rows.stand_ins, strict=True)]
        merged = {**arrays, **(instead or {})}
        alone = {merged[v].shape[axis] for v in inputs if (axis := along.get(v)) is not None} == {1}
        arguments = [merged[v] if not alone or (axis := along.get(v)) is None else np.repeat(merged[v], 2, axis) for v in inputs]
        density = np.asarray(function(*parts, *arguments))
        return density[:, :1] if alone else density

    return of
