"""Observed variables of which the user says that every person has records in one only. If the model shows otherwise, it is refused.

Under that claim neighbouring data sets differ in a record of one of them only, so that each may have the whole cost (docs/theory.md).
"""

from collections.abc import Iterable, Mapping
from itertools import combinations

from pymc_dp.models.spec import ModelSpec
from pymc_dp.models.structure import is_nameless
from pymc_dp.privacy.accounting import Refusal

Groups = tuple[tuple[str, ...], ...]
"""Groups of names of observed variables."""


def check_disjoint(disjoint: object) -> Groups | bool:
    """What was written, as groups of names: True for one group of all observed variables, False for none."""
    if disjoint is None or isinstance(disjoint, bool):
        return bool(disjoint)
    listed = [] if isinstance(disjoint, str | Mapping) or not isinstance(disjoint, Iterable) else list(disjoint)
    if listed and all(isinstance(name, str) for name in listed):
        listed = [listed]
    nested = all(isinstance(group, list | tuple) and all(isinstance(name, str) for name in group) for group in listed)
    if not listed or not nested or any(len(set(group)) < max(2, len(group)) for group in listed):
        raise Refusal(
            'disjoint names observed variables of different people. Write disjoint=["treated", "control"], a list of such lists, or True'
            " for all of the model."
        )
    names = [name for group in listed for name in group]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise Refusal(f"{twice} is in two groups of disjoint. Write it in one, or all in one group where no person is in two of them.")
    return tuple(map(tuple, listed))


def disjoint_of(spec: ModelSpec, written: Groups | bool, *, sized: bool) -> Groups:
    """The groups of a model's disjoint observed variables.

    Raises
    ------
    Refusal
        For names that are not observed variables, and for two of them whose records lie along one axis: then index k of both is one record.
        So for two that rest on arrays without a name, where the number of records is private (not ``sized``): whether they are one would
        show it.
    """
    names = tuple(likelihood.name for likelihood in spec.likelihoods)
    if written is True and len(names) < 2:
        raise Refusal("There are not several observed variables that could be of different people. Leave disjoint out.")
    groups: Groups = (names,) if written is True else written or ()
    if unknown := next((name for group in groups for name in group if name not in names), None):
        raise Refusal(f"disjoint names {unknown}, which is not an observed variable. These are {', '.join(names)}.")
    axis = {name: k for k, together in enumerate(spec.on_one_axis) for name in together}
    nameless = {k.name for k in spec.likelihoods if any(i.private and not i.parent and is_nameless(i.name) for i in k.inputs)}
    for group in groups:
        if not sized and len(unsure := [name for name in group if name in nameless]) > 1:
            raise Refusal(
                f"Whether {unsure[0]} and {unsure[1]} rest on one array cannot be told without showing how many records there are. Write"
                " their covariates as pm.Data, each with a name of its own."
            )
        if same := next(((first, second) for first, second in combinations(group, 2) if axis[first] == axis[second]), None):
            raise Refusal(
                f"{' and '.join(same)} cannot be disjoint: they rest on one array, one is above the other, or their records lie along one"
                " dim, so that one record is in both. Give each arrays and a dim of its own, or leave disjoint out."
            )
    return groups


def check_same_records(spec: ModelSpec) -> None:
    """Refuse observed variables that may be of different people, where one record is taken for the same index of all of them.

    If the numbers of records are private, one may have more than another, and what that one lacks is missing: then a record that comes to
    it takes the place of a missing one, which moves more than a record that comes to all.
    """
    if len(apart := [together[0] for together in spec.on_one_axis]) > 1:
        raise Refusal(
            f"{' and '.join(apart)} need not have the same records, and are taken together. If record k of one is that of the other, give"
            ' them one dim, dims="row", with pm.Model(coords={"row": range(...)}). Otherwise observe them in models of their own.'
        )
