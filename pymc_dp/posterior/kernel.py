"""What Gibbs updates are made from: everything public about a model, the unknowns on grids, and its log-likelihood in two parts.

One part rests on private records, and how far a record can move it is known in integers; the other rests on what is public and
on the records' own unknowns. The grid's room stands before, updates and their prices after.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from math import prod
from operator import add

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable
from pytensor.tensor.subtensor import AdvancedSubtensor

from pymc_dp.accounting import Refusal
from pymc_dp.posterior.drawn import NAT
from pymc_dp.posterior.grid import tabulated
from pymc_dp.posterior.records import Public, log_likelihood
from pymc_dp.rowwise import Entry, Pieces, Ranges, Rowwise, entries_of, norms_of, pieces, ranges
from pymc_dp.structure import above, is_cast, puts_together

POINTS = 101
"""Of every unknown's grid."""
MOST_LISTED = 2**22
"""Up to so many log-likelihoods, of all records that can occur at all points of the joint grid, are looked at one by one."""
MOST_COMBINED = 64
"""So many combinations of the levels of a record's own unknowns have bounds of their own."""


@dataclass(frozen=True)
class Latent:
    """An unknown that every record has for itself.

    Attributes
    ----------
    name : str
    levels : int
        It is one of 0, ..., levels - 1.
    inputs : tuple of Variable
        The placeholders that stand for it, records along axis 0.
    """

    name: str
    levels: int
    inputs: tuple[Variable, ...]


@dataclass(frozen=True)
class Block:
    """What one update draws: numbers, or every record's own unknown, each independent of the others given all the rest.

    Attributes
    ----------
    name : str
    rows, options : int
        So many choices, each among so many values.
    eta : int
        The largest range by which the scores of neighbours differ, added up over the choices, in units of 1 / NAT; 0 where no record
        is asked.
    places : tuple of int
        Of numbers, which.
    index : Variable or None
        Of several numbers, the placeholder that says which of them a record reads.
    latent : int or None
        Of the records' own unknown, which.
    shared : int or None
        The place of the number that takes up what this one loses: their sum stays as it is.
    width : int
        Of a step that proposes a move, by how many points of its grid each number may go; 0 where it is drawn from all.
    variance : Fraction or None
        Of the noise on the logarithm of a ratio, in nats^2, where there is some.
    proposed : (P,) ndarray or None
        The numbers that a step proposes: option 1 of each choice, option 0 is to stay.
    """

    name: str
    rows: int
    options: int
    eta: int
    places: tuple[int, ...] = ()
    index: Variable | None = None
    latent: int | None = None
    shared: int | None = None
    width: int = 0
    variance: Fraction | None = None
    proposed: np.ndarray | None = None


@dataclass(frozen=True)
class State:
    """Where a chain is: numbers (P,), and each latent (N,) of int."""

    numbers: np.ndarray
    latents: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Kernel:
    """Everything public that updates need: scores follow from it, a state and the records.

    Attributes
    ----------
    rows : Rowwise
        The part of the log-likelihood that rests on private records, with the unknowns that it rests on.
    own : (Q,) int ndarray
        Which of all unknown numbers these are.
    open : Rowwise or None
        The part that rests on nothing of a record but its own unknowns and what is public.
    entries : tuple of Entry
        Of a record in ``rows``.
    public : Public
    latents : tuple of Latent
    visible : frozenset of Variable
        Placeholders of latents and of what is public: neighbours have the same.
    grids : (P, points) ndarray
    prior : callable
        Log-density (G,) of unknowns (G, P).
    whole : (V, *points) int64 ndarray or None
        Integer log-likelihoods of all records that can occur, where these are few, at all points of the joint grid of ``own``.
    bounds, unreferred : tuple of Ranges
        Otherwise, of a record's part, for every combination of latents; the second with nothing taken away.
    largest : int
        No record's part is larger, in absolute value.
    temper : float
    start : (P,) ndarray
        The middle of every grid; of probabilities that add up to 1, about equal ones.
    """

    rows: Rowwise
    own: np.ndarray
    open: Rowwise | None
    entries: tuple[Entry, ...]
    public: Public
    latents: tuple[Latent, ...]
    visible: frozenset[Variable]
    grids: np.ndarray
    prior: Callable[[np.ndarray], np.ndarray]
    whole: np.ndarray | None = None
    bounds: tuple[Ranges, ...] = ()
    unreferred: tuple[Ranges, ...] = ()
    largest: int = 0
    temper: float = 1.0
    start: np.ndarray = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True)
class Held:
    """The records, within the door.

    Attributes
    ----------
    exact : dict of Variable to ndarray
        By placeholder, with what all records share; latents are those of the state instead.
    each, open : callable or None
        The two parts of the log-likelihood of every record (G, N), of unknowns and of what stands in for latents.
    """

    exact: Mapping[Variable, np.ndarray]
    each: Callable[..., np.ndarray] | None
    open: Callable[..., np.ndarray] | None


def latents_of(model: pm.Model) -> tuple[str, ...]:
    """Names of the free variables that are arrays of integers: each record may have an entry of its own.

    What PyMC puts in place of missing counts is none of them: whether there is such a variable rests on records.
    """
    observed = {one.name: one for one in model.observed_RVs}
    parts = [(one, observed.get(f"{one.name}_observed")) for one in model.deterministics]
    imputed = {f"{one.name}_unobserved" for one, part in parts if part is not None and puts_together(one, part)}
    whole = [one for one in model.free_RVs if str(one.type.dtype).startswith(("int", "uint", "bool")) and one.type.ndim]
    return tuple(one.name for one in whole if one.name not in imputed)


def kernel_of(
    rows: Rowwise,
    public: Public,
    names: Sequence[str],
    prior: Callable[[np.ndarray], np.ndarray],
    points: int | None,
    absolute: bool = False,
) -> Kernel:
    """The log-likelihood in its two parts, and how far a record's can vary; ``absolute`` where its value matters, not only its shape."""
    points = points or POINTS
    latents: list[Latent] = []
    touching: list[Variable] = []
    opened: list[Variable] = []
    for one, value, domain, each in zip(rows.likelihoods, rows.values, rows.domains, rows.each, strict=True):
        if one.name in names:
            if one.natural is None or one.columns:
                raise Refusal(f"{one.name} must have one level a record. Write pm.Categorical or pm.Bernoulli, of the records' shape.")
            again = (given.variable for given, _ in rows.inputs if given.parent and given.name == one.name)
            latents.append(Latent(one.name, int(domain.upper) + 1, (value, *dict.fromkeys(again))))
        private = any(given.private and not (given.parent and given.name in names) for given in one.inputs)
        (touching if one.name not in names or private else opened).append(each)
    part, own = _part(rows, touching)
    entries = tuple(one for one in entries_of(rows, public.arrays) if one.variable in set(above([part.density])))
    standing = {variable for one in latents for variable in one.inputs}
    visible = frozenset(standing | {given.variable for given, _ in rows.inputs if not given.private})
    grids = np.linspace(rows.lower, rows.upper, points, axis=1)
    told = replace(rows, density=reduce(add, opened)) if opened else None
    kernel = Kernel(part, own, told, entries, public, tuple(latents), visible, grids, prior, start=_start(rows, grids))
    cut = pieces(part, entries, public.shared, norms_of(part))
    many = prod(len(entry.levels or ()) for entry in entries)
    if cut.listed and many * points ** len(own) <= MOST_LISTED:
        of = log_likelihood(part, {variable: low for variable, (low, _) in cut.given.items()})
        mesh = np.stack(np.meshgrid(*grids[own], indexing="ij"), axis=-1)
        whole = tabulated(of, mesh.reshape(-1, len(own)), many).reshape(many, *mesh.shape[:-1])
        return replace(kernel, whole=whole, largest=int(np.abs(whole).max()))
    relevant = [one for one in latents if set(one.inputs) & set(above([part.density]))]
    if prod(one.levels for one in relevant) > MOST_COMBINED:
        raise Refusal(f"The levels of {', '.join(one.name for one in relevant)} are too many. Write fewer levels.")
    bounds, unreferred = [], []
    for levels in np.ndindex(*[one.levels for one in latents]):
        given = dict(cut.given)
        for latent, level in zip(latents, levels, strict=True):
            for variable in set(latent.inputs) & set(given):
                given[variable] = (np.full_like(given[variable][0], level),) * 2
        bounds.append(ranges(part, Pieces(given, cut.norms)))
        if relevant or absolute:
            unreferred.append(ranges(part, Pieces(given, cut.norms), referred=False))
    largest = max(int(np.abs(np.rint(NAT * end)).max()) for one in (*bounds, *unreferred) for end in (one.least, one.most))
    return replace(kernel, bounds=tuple(bounds), unreferred=tuple(unreferred), largest=largest)


def _start(rows: Rowwise, grids: np.ndarray) -> np.ndarray:
    """A state to begin with, before the sweeps of the prior."""
    points, places = grids.shape[1], []
    for one in rows.unknowns:
        if one.variable.owner.inputs[0].owner.op.ndim_supp:
            K = one.shape[-1]
            each = [(points - 1) // K + (k < (points - 1) % K) for k in range(K)]
            places += each * (one.size // K)
        else:
            places += [points // 2] * one.size
    return grids[np.arange(len(places)), places]


def _part(rows: Rowwise, densities: Sequence[Variable]) -> tuple[Rowwise, np.ndarray]:
    """The log-likelihood of some of what is observed, with the unknowns that it rests on, and which of all numbers these are."""
    density = reduce(add, densities)
    found = set(above([density]))
    used = [k for k, stand_in in enumerate(rows.stand_ins) if stand_in in found] or [0]
    places = np.split(np.arange(rows.size), np.cumsum([one.size for one in rows.unknowns])[:-1])
    part = replace(rows, density=density, unknowns=tuple(rows.unknowns[k] for k in used), stand_ins=tuple(rows.stand_ins[k] for k in used))
    return part, np.concatenate([places[k] for k in used])


def reads_one_entry(rows: Rowwise, stand_in: Variable) -> Variable | None:
    """Of a vector of unknowns of which every record reads one entry: the placeholder that says which, with one place for each record.

    Given everything else its entries are then independent, if their prior is, and an update draws them together. An index that all
    records share, such as an order or that of a mean, is none: through it each of them reads several.
    """
    own = {*rows.values, *(given.variable for given, _ in rows.inputs if given.axis == 0)}
    found: set[Variable] = set()
    for variable in above([rows.density]):
        if variable.owner is None or stand_in not in variable.owner.inputs:
            continue
        operation, inputs = variable.owner.op, variable.owner.inputs
        if not isinstance(operation, AdvancedSubtensor) or operation.idx_list != (0,) or inputs[0] is not stand_in or len(inputs) != 2:
            return None
        index = inputs[1]
        while is_cast(index):
            index = index.owner.inputs[0]
        if index not in own or index.type.ndim != 1:
            return None
        found.add(index)
    return found.pop() if len(found) == 1 and stand_in.type.ndim == 1 else None
