"""Several holders' releases under one model: which release stands for which likelihood, and the private model of all of them.

Every holder has paid for its own release, from its own ledger. Nothing here reads a record, so nothing is charged.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, log
from typing import TYPE_CHECKING

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor import function
from pytensor.graph.traversal import ancestors

from pymc_dp.models.level_labels import labels_of_axes
from pymc_dp.models.likelihood_rv import POTENTIAL
from pymc_dp.models.spec import Likelihood, ModelSpec
from pymc_dp.models.structure import indices_into
from pymc_dp.plans.plan import refuse_problems
from pymc_dp.privacy.accounting import ALL_ROWS, Refusal, protected
from pymc_dp.privacy.receipts import UNACCOUNTED
from pymc_dp.private_models.as_made import AsMade, as_made
from pymc_dp.private_models.events import events_beside
from pymc_dp.private_models.matching import difference
from pymc_dp.private_models.rewrite import assembled, at_cells, spec_like_all, without_likelihoods
from pymc_dp.publications.publication import Noted
from pymc_dp.publications.same_people import combined
from pymc_dp.releases.noisy_statistic import NoisyStatistic
from pymc_dp.releases.release import SEVERAL, Release

if TYPE_CHECKING:
    import xarray as xr

PROMISE = "each holder's, for its own records, as its release says: nothing more is spent, and no epsilon is claimed for all together"
"""Of what is promised in a tree drawn from several holders' releases."""
CHANCE = log(1e-6)
"""Two releases without a ledger that agree although this is improbable are one. Single counts may well agree by chance."""


@dataclass(frozen=True, eq=False, repr=False)
class Federation(Noted):
    """Several holders' releases, of which a model is made.

    Attributes
    ----------
    releases : mapping of str to Release
        By holder.
    statistics : tuple of NoisyStatistic
        What the model observes, under its names.
    holders : mapping of str to tuple of str
        Whose releases each observed variable of the model holds.
    same_people : tuple of tuples of str
        Holders whose releases are of the same people, as the user says.
    terms : AsMade
        See ``Noted``.
    """

    releases: Mapping[str, Release]
    statistics: tuple[NoisyStatistic, ...]
    holders: Mapping[str, tuple[str, ...]]
    same_people: tuple[tuple[str, ...], ...]
    terms: AsMade

    def __str__(self) -> str:
        """A line for every holder, and whose people are the same."""
        lines = [
            f"{holder}: epsilon {float(release.epsilon):g}, delta {float(release.delta):g}, protects"
            f" {protected(release.unit, release.disjoint)} ({release.neighbours}), {release.mechanism} noise, as"
            f" {', '.join(name for name, those in self.holders.items() if holder in those)}"
            for holder, release in self.releases.items()
        ]
        same = "; ".join(f"{', '.join(group)} hold the same people" for group in self.same_people)
        return "\n".join([*lines, f"You say that {same}." if same else "You say that no two hold the same people."])

    def group(self) -> "xr.DataTree":
        """The group ``privacy`` of a tree: an entry for every holder, and its release."""
        import xarray as xr

        several = list(self.releases.values())
        same = {holder: [other for other in group if other != holder] for group in self.same_people for holder in group}
        columns: dict[str, list[object]] = {
            "unit": [release.unit for release in several],
            "protects": [protected(release.unit, release.disjoint) for release in several],
            "neighbours": [release.neighbours for release in several],
            "epsilon": [float(release.epsilon) for release in several],
            "epsilon_exact": [str(release.epsilon) for release in several],
            "delta": [float(release.delta) for release in several],
            "mechanism": [release.mechanism for release in several],
            "ledger_head": [release.ledger_head for release in several],
            "observed": [", ".join(name for name, those in self.holders.items() if holder in those) for holder in self.releases],
            "same_people": [", ".join(same.get(holder, [])) for holder in self.releases],
        }
        table = xr.Dataset(
            {name: (("holder",), np.asarray(values)) for name, values in columns.items()},
            coords={"holder": np.asarray(list(self.releases), dtype=str)},
            attrs={"same_people": json.dumps(self.same_people)},
        )
        saved = {
            f"/{SEVERAL}/{holder}{'' if node.path == '/' else node.path}": node.to_dataset()
            for holder, release in self.releases.items()
            for node in release.to_datatree().subtree
        }
        return xr.DataTree.from_dict({"/": table, **saved})

    @property
    def promise(self) -> str:
        """Whose promise it is."""
        return PROMISE

    def remedy(self, added: str) -> str:
        """What to write where something was added to the model."""
        return f"Nobody released it: leave {added} out, or give its release to published."


@dataclass(frozen=True, eq=False)
class _Part:
    """One released statistic, and the likelihood that it stands for."""

    likelihood: str
    holder: str
    statistic: NoisyStatistic
    common: bool


def federated(model: pm.Model, releases: Mapping[str, Release], same_people: object = ()) -> pm.Model:
    """The model with several holders' releases in place of its records; see ``published``."""
    _check_holders(releases)
    groups = _groups(same_people, releases)
    _check_read_alike(groups, releases)
    observed = [*(str(variable.name) for variable in model.observed_RVs), *_in_potentials(model, releases)]
    parts = _parts(observed, releases)
    binned = {part.likelihood for part in parts if part.statistic.domain.edges}
    binned |= {name for part in parts for name in part.statistic.binned}
    spec = spec_like_all(model, list(releases.values()), _public(model, releases, parts, binned), binned)
    refuse_problems(spec)
    pairs, holders = _pairs(spec, parts, groups)
    _check_tables(spec, pairs, holders)
    private = assembled(spec, pairs)
    private.publication = Federation(dict(releases), private.released, holders, groups, as_made(private))
    return private


def _in_potentials(model: pm.Model, releases: Mapping[str, Release]) -> list[str]:
    """Names of arrays, or of Potentials, whose values were released as those of a Potential: the model has these for its likelihood."""
    each = [(holder, noisy) for holder, release in releases.items() for noisy in release.statistics]
    released = {
        name for holder, noisy in each if noisy.distribution == POTENTIAL for name in (noisy.variable, f"{holder}_{noisy.variable}")
    }
    return [name for name in map(str, (v.name for v in (*model.data_vars, *model.potentials))) if name in released]


def by_holder(releases: Mapping | Sequence) -> dict[str, Release]:
    """Releases by holder; those in a list are called release_1, release_2 and so on."""
    if isinstance(releases, Mapping):
        return dict(releases)
    return {f"release_{k}": release for k, release in enumerate(releases, 1)}


def releases_in(tree: "xr.DataTree") -> tuple[dict[str, Release], tuple[tuple[str, ...], ...]]:
    """The releases that a tree was drawn from, by holder, and the holders of the same people."""
    if "privacy" not in tree.children or SEVERAL not in tree["privacy"].children:
        raise Refusal("This tree holds no releases of several holders. Write published(model, {'north': release_1, 'south': release_2}).")
    saved = tree["privacy"][SEVERAL].children
    order = [str(holder) for holder in tree["privacy"]["holder"].values]
    same = tuple(map(tuple, json.loads(tree["privacy"].attrs["same_people"])))
    return {holder: Release.from_datatree(saved[holder]) for holder in order}, same


def _check_holders(releases: Mapping[str, Release]) -> None:
    """Refuse what are no releases by name, and the same one twice."""
    for holder, release in releases.items():
        if not isinstance(release, Release):
            raise Refusal(f"What {holder} gave is no Release. Give what pymc_dp.release returned, or Release.from_netcdf(path).")
        if not isinstance(holder, str) or not holder or "/" in holder or holder in (".", ".."):
            raise Refusal("Holders are names of text without a slash. Write for example {'north': release_1, 'south': release_2}.")
        if release.network is not None:
            raise Refusal(
                f"The release of {holder} is of a Bayesian network, which one holder alone can release. Release its tables apart."
            )
    several = list(releases.items())
    for k, (holder, release) in enumerate(several):
        for other, other_release in several[:k]:
            if release is other_release or (release == other_release and _log_chance(release) < CHANCE):
                raise Refusal(f"{other} and {holder} are one and the same release, which would count twice. Leave one of them out.")
    if len({"aggregate" in {noisy.structure for noisy in release.statistics} for release in releases.values()}) > 1:
        raise Refusal("Some releases are of rows that are totals (unit='individual') and some of records. One model takes one kind.")


def _log_chance(release: Release) -> float:
    """At most how probable it is that another release says the same, as a logarithm: heads of ledgers differ, and so do noises.

    Whatever the records, two independent noises differ by a given number with at most the probability of the likeliest noise.
    """
    if release.ledger_head != UNACCOUNTED:
        return -inf
    return sum(noisy.noisy.size * noisy.noise.kernel[2] for noisy in release.statistics if not noisy.deviation)


def _groups(same_people: object, releases: Mapping[str, Release]) -> tuple[tuple[str, ...], ...]:
    """Groups of holders of the same people, checked."""
    if same_people is True:
        return (tuple(releases),)
    if not same_people:
        return ()
    remedy = "Write for example same_people=[('spring', 'autumn')], or same_people=True for all."
    if isinstance(same_people, str) or not isinstance(same_people, Iterable):
        raise Refusal(f"same_people holds groups of holders. {remedy}")
    groups = [(group,) if isinstance(group, str) else tuple(group) for group in same_people]
    named = [holder for group in groups for holder in group]
    if unknown := [holder for holder in named if holder not in releases]:
        raise Refusal(f"same_people names {unknown[0]!r}, of whom there is no release. Write names of {', '.join(releases)}.")
    if len(set(named)) < len(named) or any(len(group) < 2 for group in groups):
        raise Refusal(f"same_people holds groups of two holders and more, each in one group only. {remedy}")
    return tuple(groups)


def _check_read_alike(groups: tuple[tuple[str, ...], ...], releases: Mapping[str, Release]) -> None:
    """Refuse releases of the same people that may have read them otherwise, so that they are of two true statistics.

    How many rows of a person count, and all that a row says, decide which rows do (``releases.persons``). What a missing value of a
    covariate counts as decides on its cell, and stands in no statistic.
    """
    for group in groups:
        first, *others = (releases[holder] for holder in group)
        for holder, other in zip(group[1:], others, strict=True):
            words = ""
            if _whole_persons(first) != _whole_persons(other):
                words = (
                    "not the same rows of them count in both: that rests on how many of a person do, and on all variables of a release."
                    " Release both with the same unit and variables"
                )
            elif _missing(first, other) != _missing(other, first):
                words = "missing values count as something else in the other. Release both with the same missing"
            if words:
                raise Refusal(f"{group[0]} and {holder} are said to hold the same people, but {words}, or use one of them.")


def _whole_persons(release: Release) -> tuple[str, ...]:
    """What decides which rows of every person count; nothing where all rows do."""
    return (release.unit, *sorted(noisy.variable for noisy in release.statistics)) if release.unit.startswith(ALL_ROWS) else ()


def _missing(release: Release, other: Release) -> dict[str, object]:
    """What missing values count as, but for those of variables that the other did not release."""
    alone = {noisy.variable for noisy in release.statistics} - {noisy.variable for noisy in other.statistics}
    return {name: counted for name, counted in release.missing.items() if name not in alone}


def _parts(observed: Sequence[str], releases: Mapping[str, Release]) -> list[_Part]:
    """Every released statistic with the likelihood that bears its holder's name, or else its own name.

    Of the variable ``stay`` of the holder ``north`` that is ``north_stay``, or ``north`` where it released nothing else, or ``stay``.
    """
    parts = []
    for holder, release in releases.items():
        for noisy in release.statistics:
            own_names = [f"{holder}_{noisy.variable}", *([holder] if len(release.statistics) == 1 else [])]
            likelihood = next((name for name in [*own_names, noisy.variable] if name in observed), None)
            if likelihood is None:
                raise Refusal(
                    f"{holder} released {noisy.variable}, and the model observes neither {own_names[0]} nor {noisy.variable}, but"
                    f" {', '.join(observed) or 'nothing'}. Name the likelihood {own_names[0]} if it is that of {holder} alone, or"
                    f" {noisy.variable} if it is that of all who have no own one."
                )
            parts.append(_Part(likelihood, holder, noisy, likelihood not in own_names))
    for name in observed:
        here = [part for part in parts if part.likelihood == name]
        if not here:
            raise Refusal(f"Nobody released {name}. Leave it out of the model, or name it as the release of one of {', '.join(releases)}.")
        if len(here) > 1 and not all(part.common for part in here):
            names = " and ".join(part.holder for part in here)
            raise Refusal(f"{name} may be the likelihood of {names}. Name holders otherwise, so that each name has one meaning.")
    return parts


def _public(model: pm.Model, releases: Mapping[str, Release], parts: Sequence[_Part], binned: set[str]) -> list[str]:
    """What holders declared public, under the names that it has in the model, where it is there."""
    likelihoods = {(part.holder, part.statistic.variable): part.likelihood for part in parts}
    wanted: dict[str, None] = {}
    for holder, release in releases.items():
        for name in release.public:
            variable, colon, k = name.rpartition(":")
            there = f"{likelihoods[holder, variable]}:{k}" if colon and (holder, variable) in likelihoods else name
            wanted |= dict.fromkeys([there, f"{holder}_{name}"])
    several = list(releases.values())
    names = []
    for name in wanted:
        try:
            spec_like_all(model, several, [name], binned)
        except Refusal:
            continue
        names.append(name)
    return names


def _pairs(
    spec: ModelSpec, parts: Sequence[_Part], groups: tuple[tuple[str, ...], ...]
) -> tuple[list[tuple[Likelihood, NoisyStatistic]], dict[str, tuple[str, ...]]]:
    """Every likelihood with its statistics, under the names that they have in the private model; and whose they are."""
    pairs, holders = [], {}
    taken, labels = set(spec.order) | set(spec.coords), labels_of_axes(spec)
    for likelihood in spec.likelihoods:
        of_likelihood = [part for part in parts if part.likelihood == likelihood.name]
        for part in of_likelihood:
            if words := difference(likelihood, part.statistic, labels, part.holder):
                own = (
                    f" What differs between holders, such as a level, needs a likelihood for each, such as {part.holder}_{likelihood.name}."
                    if likelihood.inputs and len(of_likelihood) > 1
                    else ""
                )
                raise Refusal(
                    f"The release of {part.holder} does not fit {likelihood.name}: {words}. Write the likelihood as it was released.{own}"
                )
        together = _together(of_likelihood, groups)
        for several in together:
            noisy = combined([part.holder for part in several], [part.statistic for part in several])
            who = tuple(part.holder for part in several)
            name = likelihood.name if len(together) == 1 else f"{'_'.join(who)}_{likelihood.name}"
            if name in holders or (len(together) > 1 and name in taken):
                raise Refusal(f"{name} would be the name of two variables. Name the holder {who[0]} otherwise.")
            holders[name] = who
            pairs.append((likelihood, replace(noisy, variable=name)))
    _check_apart(parts, groups)
    return pairs, holders


def _together(parts: Sequence[_Part], groups: tuple[tuple[str, ...], ...]) -> list[list[_Part]]:
    """The statistics of one likelihood, those of the same people together."""
    group_of = {holder: group for group in groups for holder in group}
    parts_by_people: dict[object, list[_Part]] = {}
    for part in parts:
        parts_by_people.setdefault(group_of.get(part.holder, part.holder), []).append(part)
    return list(parts_by_people.values())


def _check_apart(parts: Sequence[_Part], groups: tuple[tuple[str, ...], ...]) -> None:
    """Refuse one variable of the same people under two likelihoods: its records would count twice."""
    for group in groups:
        of_group = [part for part in parts if part.holder in group]
        for part in of_group:
            for other in of_group:
                if other.statistic.variable == part.statistic.variable and other.likelihood != part.likelihood:
                    raise Refusal(
                        f"{part.holder} and {other.holder} released {part.statistic.variable} of the same people, and the model has two"
                        f" likelihoods of it. Write one, named {part.statistic.variable}."
                    )


def _check_tables(spec: ModelSpec, pairs: Sequence[tuple[Likelihood, NoisyStatistic]], holders: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse public indices of a release that lie outside the tables of the model. Nothing but indices and lengths is computed."""
    for likelihood, noisy in (events_beside(*pair) for pair in pairs):
        inputs = [pt.constant(value).type() for value in noisy.inputs]
        _, moved = without_likelihoods(spec, {noisy.variable: at_cells(likelihood, noisy, inputs)})
        lookups = [lookup for lookup in indices_into(moved[noisy.variable]) if lookup[0].type.dtype != "bool"]
        here = [lookup for lookup in lookups if set(ancestors([lookup[0]])) & set(inputs)]
        if not here:
            continue
        asked = [asked for index, table, axis in here for asked in (index.min(), index.max(), table.shape[axis])]
        compute = function(inputs, asked, mode="FAST_COMPILE", on_unused_input="ignore", allow_input_downcast=True)
        for low, high, length in np.reshape(compute(*noisy.inputs), (-1, 3)):
            if low < 0:
                raise Refusal(
                    f"The release of {', '.join(holders[noisy.variable])} has an index that counts from the end of a table, which may have"
                    " another end in the model. Release it with indices from 0 on."
                )
            if high >= length:
                raise Refusal(
                    f"The release of {', '.join(holders[noisy.variable])} has an index beyond the tables of the model. Give its dims the"
                    " labels that the holders used, in their order."
                )
