"""The records as the log-likelihood of one takes them: completed, clamped, in the types of its placeholders.

They never leave the functions that draw.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import pytensor
from pytensor.graph.basic import Variable
from pytensor.graph.replace import vectorize_graph

from pymc_dp.families.family import complete
from pymc_dp.models.spec import RecordPaths
from pymc_dp.plans.rowwise import Entry, Rowwise
from pymc_dp.privacy.accounting import Refusal
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


def public_part(rows: Rowwise, leaves: Mapping[str, RecordPaths], neighbours: str = "replace") -> Public:
    """Shapes and public arrays, or a refusal where they do not fit. Where the number of records is private, nothing rests on it."""
    lengths = {len(records_of(leaves[one.name].observed)) for one in rows.likelihoods}
    sized = neighbours == "replace"
    if sized and len(lengths) > 1:
        raise Refusal("The observed variables have different numbers of records. Observe them in models of their own.")
    many = max(lengths)
    arrays, shared = {}, {}
    for one in rows.likelihoods:
        for given, leaf in zip(one.inputs, leaves[one.name].inputs, strict=True):
            if given.private and given.axis is not None:
                if sized and records_of(leaf).shape[given.axis] != many:
                    raise Refusal("A private array and an observed variable have different numbers of records. Give both one row each.")
            elif given.axis is not None:
                arrays[given.variable] = of_type(by_record(evaluate(leaf.variable), given.axis, many), given.variable)
            else:
                shared[given.variable] = of_type(evaluate(leaf.variable), given.variable)
    return Public(many, arrays, shared)


def exact_records(rows: Rowwise, leaves: Mapping[str, RecordPaths], public: Public) -> dict[Variable, np.ndarray]:
    """By placeholder, the records and what all of them share: whatever records held, they lie within their bounds."""
    exact = {**public.arrays, **public.shared}
    for k, (one, value, domain) in enumerate(zip(rows.likelihoods, rows.values, rows.domains, strict=True)):
        raw = as_many(records_of(leaves[one.name].observed), 0, public.many)
        observed = complete(raw, replace(domain, fill=rows.fills.get(one.name, domain.fill))).reshape(public.many, *one.columns)
        exact[value] = of_type(np.rint(observed) if value.type.dtype == "int64" else observed, value)
        if (kept := rows.kept[k] if rows.kept else None) is not None:
            covariates = {
                given.variable.name: (as_many(records_of(leaf), given.axis, public.many), given.axis)
                for given, leaf in zip(one.inputs, leaves[one.name].inputs, strict=True)
                if given.private and given.axis is not None
            }
            exact[kept] = complete_records(one, rows.left_out, raw, covariates).astype(float)
        for given, leaf in zip(one.inputs, leaves[one.name].inputs, strict=True):
            if not given.private or given.axis is None:
                continue
            flat = completed(rows.bounds, given, as_many(records_of(leaf), given.axis, public.many), given.axis, rows.fills.get(given.name))
            if not given.index and (levels := rows.bounds[given.name].levels) is not None:
                flat = np.array(levels)[_nearest(levels, flat)]
            others = [length or 1 for k, length in enumerate(given.variable.type.shape) if k != given.axis]
            exact[given.variable] = of_type(np.moveaxis(flat.reshape(public.many, *others), 0, given.axis), given.variable)
    return exact


def codes_of(entries: list[Entry], exact: Mapping[Variable, np.ndarray], many: int) -> np.ndarray:
    """Which of all records that can occur each is, in the order of ``rowwise.pieces``: (N,)."""
    codes = np.zeros(many, dtype=np.int64)
    for entry in entries:
        assert entry.levels is not None
        rows = np.moveaxis(exact[entry.variable], entry.axis, 0)
        column = rows.reshape(many, prod(rows.shape[1:]))[:, entry.place].astype(float)
        codes = codes * len(entry.levels) + _nearest(entry.levels, column)
    return codes


def _nearest(levels: Sequence[float], values: np.ndarray) -> np.ndarray:
    """Which level is nearest."""
    return np.searchsorted((np.array(levels[1:]) + np.array(levels[:-1])) / 2, values)


def log_likelihood(rows: Rowwise, given: Mapping[Variable, np.ndarray]) -> Callable[..., np.ndarray]:
    """The log-likelihood of every record (G, N) as a function of unknowns (G, P), computed without touching any cache on disk.

    A second argument may replace some of what is given.
    """
    inputs = list(given)
    batched = [stand_in.type.clone(shape=(None, *stand_in.type.shape))() for stand_in in rows.stand_ins]
    with pytensor.config.change_flags(numba__cache=False):
        density = vectorize_graph(rows.by_entry, dict(zip(rows.stand_ins, batched, strict=True)))
        if density.type.ndim == 1:  # it rests on no unknown
            density = density[None]
        function = pytensor.function([*batched, *inputs], density, mode="FAST_COMPILE", on_unused_input="ignore")

    def of(numbers: np.ndarray, instead: Mapping[Variable, np.ndarray] | None = None) -> np.ndarray:
        parts = [part.astype(s.type.dtype) for part, s in zip(rows.split(numbers), rows.stand_ins, strict=True)]
        return np.asarray(function(*parts, *({**given, **(instead or {})}[variable] for variable in inputs)))

    return of
