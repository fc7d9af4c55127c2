"""What Gibbs updates are made from: everything public about a model, the unknowns on grids, and its log-likelihood in parts.

Some rest on private records, and how far a record can move them is known in integers; the other rests on what is public and
on the records' own unknowns.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from math import prod
from operator import add

import numpy as np
import pymc as pm
from pymc.model.transform.conditioning import remove_value_transforms
from pymc.pytensorf import constant_fold
from pytensor.graph.basic import Variable
from pytensor.tensor.subtensor import AdvancedSubtensor

from pymc_dp.gibbs.supports import support
from pymc_dp.models.latent_index import of_record, readings
from pymc_dp.models.structure import above, is_cast, puts_together
from pymc_dp.models.unknowns import Unknown, by_name
from pymc_dp.plans.ranges import Pieces, Ranges, pieces, ranges
from pymc_dp.plans.rowwise import Entry, Rowwise, entries_of, norms_of
from pymc_dp.posterior.densities import log_prior, tabulated
from pymc_dp.posterior.price import NAT
from pymc_dp.posterior.records import Public, log_likelihood
from pymc_dp.posterior.sites import Sites, sites_of
from pymc_dp.privacy.accounting import Refusal

POINTS = 101
"""Of every unknown's grid."""
MOST_LISTED = 2**22
"""Up to so many log-likelihoods, of all records that can occur at all points of the joint grid, are looked at one by one."""
MOST_COMBINED = 64
"""So many combinations of the levels of a record's own unknowns have bounds of their own."""


@dataclass(frozen=True)
class Latent:
    """An unknown that every record has for itself, or the one of which each reads an entry.

    Attributes
    ----------
    name : str
    levels : int
        It is one of 0, ..., levels - 1.
    inputs : tuple of Variable
        The placeholders that stand for it, or for what a record reads of it, records along axis 0.
    sites : Sites or None
        Of one that records read by an index.
    hidden : bool
        Whether that index is private: then a record may leave one entry and come to another.
    """

    name: str
    levels: int
    inputs: tuple[Variable, ...]
    sites: Sites | None = None
    hidden: bool = False


@dataclass(frozen=True)
class Block:
    """What one update draws: numbers, or every record's own unknown, each independent of the others given all the rest.

    Attributes
    ----------
    name : str
    rows, options : int
        So many choices, each among so many values.
    etas : tuple of int
        Of every part of the log-likelihood, the largest range by which the scores of neighbours differ, added up over the choices, in
        units of 1 / NAT; 0 where it does not rest on the block.
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
    etas: tuple[int, ...] = ()
    places: tuple[int, ...] = ()
    index: Variable | None = None
    latent: int | None = None
    shared: int | None = None
    width: int = 0
    variance: Fraction | None = None
    proposed: np.ndarray | None = None

    @property
    def eta(self) -> int:
        """By how much one record can move it: the range of a sum is no more than the sum of ranges. 0 where no record is asked."""
        return sum(self.etas)


@dataclass(frozen=True)
class State:
    """Where a chain is: numbers (P,), and each latent of int, (N,) or, where records read it by an index, one entry a site."""

    numbers: np.ndarray
    latents: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Part:
    """A summand of the log-likelihood of records: of all of them together where all records can be listed, else of one observed variable.

    Attributes
    ----------
    rows : Rowwise
        With the unknowns that it rests on.
    own : (Q,) int ndarray
        Which of all unknown numbers these are.
    latents : tuple of int
        On which it rests.
    entries : tuple of Entry
        Of a record in it.
    whole : (V, *points) int64 ndarray or None
        Integer log-likelihoods of all records that can occur, where these are few, at all points of the joint grid of ``own``.
    bounds, unreferred : tuple of Ranges
        Otherwise, of a record's part, for every combination of ``latents``; the second with nothing taken away.
    """

    rows: Rowwise
    own: np.ndarray
    latents: tuple[int, ...]
    entries: tuple[Entry, ...]
    whole: np.ndarray | None = None
    bounds: tuple[Ranges, ...] = ()
    unreferred: tuple[Ranges, ...] = ()

    @property
    def largest(self) -> int:
        """No record's part is larger, in absolute value."""
        if self.whole is not None:
            return int(np.abs(self.whole).max())
        return max(int(np.abs(np.rint(NAT * end)).max()) for one in (*self.bounds, *self.unreferred) for end in (one.least, one.most))

    def touches(self, block: Block) -> bool:
        """Whether it rests on what a block draws."""
        return block.latent in self.latents if block.latent is not None else bool(set(block.places) & set(self.own.tolist()))


@dataclass(frozen=True)
class Kernel:
    """Everything public that updates need: scores follow from it, a state and the records.

    Attributes
    ----------
    parts : tuple of Part
        What rests on private records.
    open : Rowwise or None
        The part that rests on nothing of a record but its own unknowns and what is public.
    public : Public
    latents : tuple of Latent
    visible : frozenset of Variable
        Placeholders of latents and of what is public: neighbours have the same.
    grids : (P, points) ndarray
    unknowns : tuple of Unknown
        Whose numbers these are.
    prior : callable
        Log-density (G,) of unknowns (G, P), and of latents that records read by an index.
    temper : float
    start : (P,) ndarray
        The middle of every grid; of probabilities that add up to 1, about equal ones.
    """

    parts: tuple[Part, ...]
    open: Rowwise | None
    public: Public
    latents: tuple[Latent, ...]
    visible: frozenset[Variable]
    grids: np.ndarray
    unknowns: tuple[Unknown, ...]
    prior: Callable[..., np.ndarray]
    temper: float = 1.0
    start: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def point(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """Numbers (P,) by the names of the unknowns."""
        return by_name(self.unknowns, numbers)

    @property
    def largest(self) -> int:
        """No record adds more to a score, in absolute value."""
        return sum(part.largest for part in self.parts)


@dataclass(frozen=True)
class Held:
    """The records, within the functions that draw.

    Attributes
    ----------
    exact : dict of Variable to ndarray
        By placeholder, with what all records share; latents are those of the state instead.
    each : tuple of callable or None
        Of every part, the log-likelihood of every record (G, N), of unknowns and of what stands in for latents; None where it is listed.
    open : callable or None
        The same of what rests on no private record.
    sites : tuple of (N,) ndarray or None
        Of every latent that records read by an index: which entry each reads.
    """

    exact: Mapping[Variable, np.ndarray]
    each: tuple[Callable[..., np.ndarray] | None, ...]
    open: Callable[..., np.ndarray] | None
    sites: tuple[np.ndarray | None, ...]


def latents_of(model: pm.Model) -> dict[str, int | None]:
    """The free variables that are arrays of integers, by name: None where each record has an entry of its own, or else the number of
    levels of one of which each record reads an entry by an index.

    What PyMC puts in place of missing counts is none of them: whether there is such a variable rests on records.
    """
    observed = {one.name: one for one in model.observed_RVs}
    parts = [(one, observed.get(f"{one.name}_observed")) for one in model.deterministics]
    imputed = {f"{one.name}_unobserved" for one, part in parts if part is not None and puts_together(one, part)}
    whole = [one for one in model.free_RVs if str(one.type.dtype).startswith(("int", "uint", "bool")) and one.type.ndim]
    read = [parameter for one in model.observed_RVs for parameter in one.owner.inputs]
    return {one.name: _levels(one) if readings(read, one) else None for one in whole if one.name not in imputed}


def _levels(random: Variable) -> int:
    """How many levels a latent has that records read by an index."""
    try:
        found = support(random, {})
    except Refusal:
        raise Refusal(f"How many states {random.name} has is not known. Write pm.Categorical or pm.Bernoulli.") from None
    if found.lowest:
        raise Refusal(f"The lowest state of {random.name} is {found.lowest}. Write pm.Categorical, whose lowest is 0.")
    return found.many


def kernel_of(
    rows: Rowwise, public: Public, names: Mapping[str, int | None], prior: pm.Model, points: int | None, absolute: bool = False
) -> Kernel:
    """The log-likelihood in its parts, and how far a record's can vary; ``absolute`` where its value matters, not only its shape.

    Parameters
    ----------
    rows : Rowwise
    public : Public
    names : mapping
        The latents: see ``latents_of``.
    prior : pm.Model
        The model without its likelihoods.
    points : int or None
    absolute : bool

    Raises
    ------
    Refusal
    """
    grids = np.linspace(rows.lower, rows.upper, points or POINTS, axis=1)
    start, own = _start(rows, grids), {name if levels is None else of_record(name): name for name, levels in names.items()}
    of_prior = log_prior(prior, rows, tuple(name for name, levels in names.items() if levels is not None))
    found = {k: _latent(rows, k, own[one.name], names, prior, start) for k, one in enumerate(rows.likelihoods) if one.name in own}
    latents = tuple(found.values())
    standing = {variable for one in latents for variable in one.inputs if not one.hidden}
    known = {given.variable for given, _ in rows.inputs if not given.private and not given.parent}
    visible = frozenset(standing | known)
    touching: list[Variable] = []
    opened: list[Variable] = []
    for k, (one, each) in enumerate(zip(rows.likelihoods, rows.each, strict=True)):
        if k in found and found[k].sites is not None:  # what it is likely to be is said by the prior of its sites
            continue
        (opened if k in found and all(given.variable in visible for given in one.inputs) else touching).append(each)
    told = replace(rows, density=reduce(add, opened)) if opened else None
    parts = _parts(rows, touching, public, latents, grids, absolute)
    return Kernel(parts, told, public, latents, visible, grids, rows.unknowns, of_prior, start=start)


def _latent(rows: Rowwise, k: int, name: str, names: Mapping[str, int | None], prior: pm.Model, start: np.ndarray) -> Latent:
    """The latent that one of the likelihoods stands for."""
    one, value, domain, levels = rows.likelihoods[k], rows.values[k], rows.domains[k], names[name]
    if one.natural is None or one.columns:
        raise Refusal(f"{name} must have one level a record. Write pm.Categorical or pm.Bernoulli, of the records' shape.")
    again = (given.variable for given, _ in rows.inputs if given.parent and given.name == one.name)
    latent = Latent(name, int(domain.upper) + 1, (value, *dict.fromkeys(again)))
    if levels is None:
        return latent
    plain = remove_value_transforms(prior)
    point = point_of(plain, rows.unknowns, start)
    sites = sites_of(plain, name, levels, rows.unknowns, rows.parameters[k][1], point)
    return replace(latent, sites=sites, hidden=any(given.private for given in one.inputs))


def _parts(
    rows: Rowwise, densities: Sequence[Variable], public: Public, latents: tuple[Latent, ...], grids: np.ndarray, absolute: bool
) -> tuple[Part, ...]:
    """One part where all records can be listed with all that they rest on; otherwise one for each likelihood.

    Then a number that one likelihood rests on is asked of that one alone, and costs what that one can vary.
    """
    points = grids.shape[1]
    together = _part(rows, densities, public, latents)
    if len(densities) == 1 or _listable(together, public, points):
        return (_filled(together, public, latents, grids, absolute),)
    apart = (_part(rows, [density], public, latents) for density in densities)
    return tuple(_filled(part, public, latents, grids, absolute) for part in apart)


def _part(rows: Rowwise, densities: Sequence[Variable], public: Public, latents: tuple[Latent, ...]) -> Part:
    """The log-likelihood of some of what is observed, with the unknowns, latents and entries that it rests on."""
    density = reduce(add, densities)
    found = set(above([density]))
    used = [k for k, stand_in in enumerate(rows.stand_ins) if stand_in in found] or [0]
    places = np.split(np.arange(rows.size), np.cumsum([one.size for one in rows.unknowns])[:-1])
    own = replace(rows, density=density, unknowns=tuple(rows.unknowns[k] for k in used), stand_ins=tuple(rows.stand_ins[k] for k in used))
    entries = tuple(one for one in entries_of(rows, public.arrays) if one.variable in found)
    on = tuple(k for k, one in enumerate(latents) if found & set(one.inputs))
    return Part(own, np.concatenate([places[k] for k in used]), on, entries)


def _listable(part: Part, public: Public, points: int) -> bool:
    """Whether all records that can occur are few enough, at all points of the joint grid."""
    many = prod(len(entry.levels or ()) for entry in part.entries)
    cut = pieces(part.rows, part.entries, public.shared, norms_of(part.rows))
    return cut.listed and many * points ** len(part.own) <= MOST_LISTED


def _filled(part: Part, public: Public, latents: tuple[Latent, ...], grids: np.ndarray, absolute: bool) -> Part:
    """With its table of all records, or with bounds."""
    cut = pieces(part.rows, part.entries, public.shared, norms_of(part.rows))
    many = prod(len(entry.levels or ()) for entry in part.entries)
    if _listable(part, public, grids.shape[1]):
        of = log_likelihood(part.rows, {variable: low for variable, (low, _) in cut.given.items()})
        mesh = np.stack(np.meshgrid(*grids[part.own], indexing="ij"), axis=-1)
        whole = tabulated(of, mesh.reshape(-1, len(part.own)), many).reshape(many, *mesh.shape[:-1])
        return replace(part, whole=whole)
    relevant = [latents[k] for k in part.latents]
    if prod(one.levels for one in relevant) > MOST_COMBINED:
        raise Refusal(f"The levels of {', '.join(one.name for one in relevant)} are too many. Write fewer levels.")
    bounds, unreferred = [], []
    for levels in np.ndindex(*[one.levels for one in relevant]):
        given = dict(cut.given)
        for latent, level in zip(relevant, levels, strict=True):
            for variable in set(latent.inputs) & set(given):
                given[variable] = (np.full_like(given[variable][0], level),) * 2
        bounds.append(ranges(part.rows, Pieces(given, cut.norms)))
        if relevant or absolute:
            unreferred.append(ranges(part.rows, Pieces(given, cut.norms), referred=False))
    return replace(part, bounds=tuple(bounds), unreferred=tuple(unreferred))


def point_of(prior: pm.Model, unknowns: Sequence[Unknown], numbers: np.ndarray) -> dict[str, np.ndarray]:
    """Numbers (P,) as a point of the model without transforms, all latents 0."""
    found = by_name(unknowns, numbers)
    shapes = {one.name: constant_fold([one.shape])[0] for one in prior.free_RVs if one.name not in found}
    return found | {name: np.zeros(tuple(map(int, shape)), dtype=np.int64) for name, shape in shapes.items()}


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
