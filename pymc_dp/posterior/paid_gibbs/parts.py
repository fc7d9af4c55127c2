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
from pymc_dp.models.latent_index import entry_name, indexed_reads
from pymc_dp.models.structure import above, puts_together
from pymc_dp.models.unknowns import Unknown, by_name
from pymc_dp.plans.ranges import Pieces, pieces, ranges
from pymc_dp.plans.rowwise import Rowwise, entries_of, norms_of
from pymc_dp.posterior.densities import integer_log_likelihoods, log_prior
from pymc_dp.posterior.paid_gibbs.kernel import Kernel, Latent, Part
from pymc_dp.posterior.paid_gibbs.sites import sites_of
from pymc_dp.posterior.records import Public, log_likelihood
from pymc_dp.privacy.accounting import Refusal

POINTS = 101
"""Points of every unknown's grid, where none are asked for."""
MOST_LISTED = 2**22
"""Up to so many log-likelihoods, of all records that can occur at all points of the joint grid, are looked at one by one."""
MOST_COMBINED = 64
"""So many combinations of the levels of a record's own unknowns have bounds of their own."""


def latents_of(model: pm.Model) -> dict[str, int | None]:
    """The free variables that are arrays of integers, by name: None where each record has an entry of its own, or else the number of
    levels of one of which each record reads an entry by an index.

    What PyMC puts in place of missing counts is none of them: whether there is such a variable rests on records.
    """
    observed = {variable.name: variable for variable in model.observed_RVs}
    pairs = [(variable, observed.get(f"{variable.name}_observed")) for variable in model.deterministics]
    imputed = {f"{variable.name}_unobserved" for variable, part in pairs if part is not None and puts_together(variable, part)}
    whole = [random for random in model.free_RVs if str(random.type.dtype).startswith(("int", "uint", "bool")) and random.type.ndim]
    read = [parameter for variable in model.observed_RVs for parameter in variable.owner.inputs]
    return {random.name: _levels(random) if indexed_reads(read, random) else None for random in whole if random.name not in imputed}


def _levels(random: Variable) -> int:
    """How many levels a latent has that records read by an index."""
    try:
        states = support(random, {})
    except Refusal:
        raise Refusal(f"How many states {random.name} has is not known. Write pm.Categorical or pm.Bernoulli.") from None
    if states.lowest:
        raise Refusal(f"The lowest state of {random.name} is {states.lowest}. Write pm.Categorical, whose lowest is 0.")
    return states.many


def kernel_of(
    rows: Rowwise, public: Public, levels: Mapping[str, int | None], prior: pm.Model, points: int | None, absolute: bool
) -> Kernel:
    """The log-likelihood in its parts, and how far a record's can vary; ``absolute`` where its value matters, not only its shape.

    Parameters
    ----------
    rows : Rowwise
    public : Public
    levels : mapping
        Those of the latents: see ``latents_of``.
    prior : pm.Model
        The model without its likelihoods.
    points : int or None
    absolute : bool

    Raises
    ------
    Refusal
    """
    grids = np.linspace(rows.lower, rows.upper, points or POINTS, axis=1)
    start, names = _start(rows, grids), {name if many is None else entry_name(name): name for name, many in levels.items()}
    of_prior = log_prior(prior, rows, tuple(name for name, many in levels.items() if many is not None))
    by_likelihood = {
        k: _latent(rows, k, names[likelihood.name], levels, prior, start)
        for k, likelihood in enumerate(rows.likelihoods) if likelihood.name in names
    }  # fmt: skip
    latents = tuple(by_likelihood.values())
    standing = {variable for latent in latents for variable in latent.inputs if not latent.hidden}
    known = {placeholder.variable for placeholder, _ in rows.inputs if not placeholder.private and not placeholder.parent}
    visible = frozenset(standing | known)
    touching: list[Variable] = []
    opened: list[Variable] = []
    for k, (likelihood, density) in enumerate(zip(rows.likelihoods, rows.each, strict=True)):
        if k in by_likelihood and by_likelihood[k].sites is not None:  # what it is likely to be is said by the prior of its sites
            continue
        seen = k in by_likelihood and all(placeholder.variable in visible for placeholder in likelihood.inputs)
        (opened if seen else touching).append(density)
    open_rows = replace(rows, density=reduce(add, opened)) if opened else None
    parts = _parts(rows, touching, public, latents, grids, absolute)
    return Kernel(parts, open_rows, public, latents, visible, grids, rows.unknowns, of_prior, start=start)


def _latent(rows: Rowwise, k: int, name: str, levels: Mapping[str, int | None], prior: pm.Model, start: np.ndarray) -> Latent:
    """The latent that one of the likelihoods stands for."""
    likelihood, value, domain, many = rows.likelihoods[k], rows.values[k], rows.domains[k], levels[name]
    if likelihood.natural is None or likelihood.columns:
        raise Refusal(f"{name} must have one level a record. Write pm.Categorical or pm.Bernoulli, of the records' shape.")
    as_parent = (placeholder.variable for placeholder, _ in rows.inputs if placeholder.parent and placeholder.name == likelihood.name)
    latent = Latent(name, int(domain.upper) + 1, (value, *dict.fromkeys(as_parent)))
    if many is None:
        return latent
    plain = remove_value_transforms(prior)
    point = _point(plain, rows.unknowns, start)
    sites = sites_of(plain, name, many, rows.unknowns, rows.parameters[k][-1], point)
    return replace(latent, sites=sites, hidden=any(placeholder.private for placeholder in likelihood.inputs))


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
    upstream = set(above([density]))
    used = [k for k, stand_in in enumerate(rows.stand_ins) if stand_in in upstream] or [0]
    places = np.split(np.arange(rows.size), np.cumsum([unknown.size for unknown in rows.unknowns])[:-1])
    some = replace(rows, density=density, unknowns=tuple(rows.unknowns[k] for k in used), stand_ins=tuple(rows.stand_ins[k] for k in used))
    entries = tuple(entry for entry in entries_of(rows, public.arrays) if entry.variable in upstream)
    on = tuple(k for k, latent in enumerate(latents) if upstream & set(latent.inputs))
    return Part(some, np.concatenate([places[k] for k in used]), on, entries)


def _listable(part: Part, public: Public, points: int) -> bool:
    """Whether all records that can occur are few enough, at all points of the joint grid."""
    many = prod(len(entry.levels or ()) for entry in part.entries)
    cut = pieces(part.entries, public.shared, norms_of(part.rows))
    return cut.listed and many * points ** len(part.places) <= MOST_LISTED


def _filled(part: Part, public: Public, latents: tuple[Latent, ...], grids: np.ndarray, absolute: bool) -> Part:
    """A part with its table of all records, or with bounds."""
    cut = pieces(part.entries, public.shared, norms_of(part.rows))
    many = prod(len(entry.levels or ()) for entry in part.entries)
    if _listable(part, public, grids.shape[1]):
        of = log_likelihood(part.rows, {variable: low for variable, (low, _) in cut.given.items()})
        mesh = np.stack(np.meshgrid(*grids[part.places], indexing="ij"), axis=-1)
        whole = integer_log_likelihoods(of, mesh.reshape(-1, len(part.places)), many).reshape(many, *mesh.shape[:-1])
        return replace(part, whole=whole)
    relevant = [latents[k] for k in part.latents]
    if prod(latent.levels for latent in relevant) > MOST_COMBINED:
        raise Refusal(f"The levels of {', '.join(latent.name for latent in relevant)} are too many. Write fewer levels.")
    bounds, unreferred = [], []
    for combination in np.ndindex(*[latent.levels for latent in relevant]):
        box = dict(cut.given)
        for latent, level in zip(relevant, combination, strict=True):
            for variable in set(latent.inputs) & set(box):
                box[variable] = (np.full_like(box[variable][0], level),) * 2
        bounds.append(ranges(part.rows, Pieces(box, cut.norms)))
        if relevant or absolute:
            unreferred.append(ranges(part.rows, Pieces(box, cut.norms), referred=False))
    return replace(part, bounds=tuple(bounds), unreferred=tuple(unreferred))


def _point(prior: pm.Model, unknowns: Sequence[Unknown], numbers: np.ndarray) -> dict[str, np.ndarray]:
    """Numbers (P,) as a point of the model without transforms, all latents 0."""
    point = by_name(unknowns, numbers)
    shapes = {random.name: constant_fold([random.shape])[0] for random in prior.free_RVs if random.name not in point}
    return point | {name: np.zeros(tuple(map(int, shape)), dtype=np.int64) for name, shape in shapes.items()}


def _start(rows: Rowwise, grids: np.ndarray) -> np.ndarray:
    """A state to begin with, before the sweeps of the prior."""
    points, places = grids.shape[1], []
    for unknown in rows.unknowns:
        if unknown.variable.owner.inputs[0].owner.op.ndim_supp:
            K = unknown.shape[-1]
            units = [(points - 1) // K + (k < (points - 1) % K) for k in range(K)]
            places += units * (unknown.size // K)
        else:
            places += [points // 2] * unknown.size
    return grids[np.arange(len(places)), places]
