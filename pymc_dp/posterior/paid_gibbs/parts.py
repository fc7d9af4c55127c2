"""The log-likelihood of a model in parts, each with a table of all records that can occur, or with bounds of one record's part.

Some parts rest on private records, and how far a record can move them is known in integers; the other rests on what is public and on the
records' own unknowns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from math import prod
from operator import add

import numpy as np
import pymc as pm
from pymc.model.transform.conditioning import remove_value_transforms
from pymc.pytensorf import constant_fold
from pytensor.graph.basic import Variable

from pymc_dp.gibbs.supports import support
from pymc_dp.models.latent_index import of_record, readings
from pymc_dp.models.structure import above, puts_together
from pymc_dp.models.unknowns import Unknown, by_name
from pymc_dp.plans.rowwise import Pieces, Rowwise, entries_of, norms_of, pieces, ranges
from pymc_dp.posterior.densities import log_prior, tabulated
from pymc_dp.posterior.paid_gibbs.kernel import Kernel, Latent, Part
from pymc_dp.posterior.paid_gibbs.sites import sites_of
from pymc_dp.posterior.records import Public, log_likelihood
from pymc_dp.privacy.accounting import Refusal

POINTS = 101
"""Of every unknown's grid."""


MOST_LISTED = 2**22
"""Up to so many log-likelihoods, of all records that can occur at all points of the joint grid, are looked at one by one."""


MOST_COMBINED = 64
"""So many combinations of the levels of a record's own unknowns have bounds of their own."""


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
