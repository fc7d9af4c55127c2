"""What a tree's promise covers: groups and variables by name, each with a hash of its contents, and a copy of the tree with nothing else.

Other programs add groups and variables to a tree, and what they add may come from records. The promise of a tree is therefore about
what is listed, as it was when it was listed: ``to_share`` copies that and leaves out the rest.
"""

import json
import warnings
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.calls import explained
from pymc_dp.privacy.guard import PACKAGE

if TYPE_CHECKING:
    import xarray as xr

COVERS = "privacy_covers"
"""The attribute that lists what is covered: of a tree, variables by group; of a group, its variables."""
DIGESTS = "privacy_digests"
"""The attribute of the ``privacy`` group that holds the digests of all of it."""
PRIVACY = "privacy"
ROOT = "/"
PROMISED = (
    "epsilon", "epsilon_exact", "delta", "privacy_unit", "protects", "neighbours", "promise", "modeling_interface",
    "modeling_interface_version",
)  # fmt: skip
"""The attributes of every group that is covered: ``annotation.spent_on`` writes them."""


class NotSharedWarning(UserWarning):
    """Something in a tree is not covered by its promise and was left out.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("error", pmdp.NotSharedWarning)  # stop where something would be left out
    """


def digest(dims: Iterable[object], values: object) -> str:
    """A fingerprint of an array, 128 bits as a decimal number: its dims, its shape, what kind of values it has and the values themselves.

    It is the same before an array is saved to netCDF or Zarr and after it is read again: text is text, whole numbers are whole numbers
    and real numbers are doubles, however they are stored. Objects that are all missing, such as what nutpie says of divergences where there
    are none, are read again as doubles that are missing.

    Examples
    --------
    >>> digest(["draw"], np.arange(3)) == digest(["draw"], np.arange(3, dtype="int8"))
    True
    """
    array = np.asarray(values)
    kind, content = _canonical(array)
    head = json.dumps([[str(dim) for dim in dims], list(array.shape), kind])
    # A number, so that runs that are compared by what they say in words, as audit does, do not look different for their digests alone.
    return str(int.from_bytes(sha256(head.encode() + b"\0" + content).digest()[:16]))


def _canonical(array: np.ndarray) -> tuple[str, bytes]:
    """The kind of its values, and the values in one spelling."""
    kind = array.dtype.kind
    if kind in "Mm":
        return "time", array.astype(f"{kind}8[ns]").astype("<i8").tobytes()
    if kind in "biu":
        return "whole", array.astype("<u8" if array.dtype == np.uint64 else "<i8").tobytes()
    if kind == "f":
        doubles = array.astype("<f8")
        return "real", np.where(np.isnan(doubles), np.nan, doubles).astype("<f8").tobytes()
    if kind == "c":
        return "complex", array.astype("<c16").tobytes()
    if kind == "O" and all(map(_missing, array.ravel().tolist())):
        return _canonical(np.full(array.shape, np.nan))
    return "text", json.dumps([_text(value) for value in array.ravel().tolist()]).encode()


def _missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))


def _text(value: object) -> str:
    """What is missing is empty, as it is when a file is read."""
    return "" if _missing(value) else value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _digests(node: "xr.DataTree") -> dict[str, dict[str, str]]:
    """Digests of every variable of one group, coordinates among them, and of every attribute."""
    group = node.to_dataset(inherit=False)
    return {
        "variables": {
            str(name): digest(variable.dims, variable.values)
            for name, variable in sorted(group.variables.items(), key=lambda item: str(item[0]))
        },
        "attributes": {str(name): digest([], value) for name, value in group.attrs.items() if name != DIGESTS},
    }


def labelled(
    tree: "xr.DataTree", spent: Mapping[str, object], groups: Iterable[str], compared: Mapping[str, set[str]] | None = None
) -> "xr.DataTree":
    """A copy of a tree with a ``privacy`` group whose promise covers these groups, and what they hold now.

    Parameters
    ----------
    tree : xarray.DataTree
    spent : mapping
        The attributes that say what is promised: of the root, of ``privacy`` and of every group that is covered.
    groups : iterable of str
        Names of groups of which it is known that they hold nothing from a record but what was paid for.
    compared : mapping, optional
        Where the tree comes from a user: of groups that were compared, the variables that are what they should be. Then nothing else of
        these groups is covered, nor groups within groups, nor variables and attributes of the root.
    """
    result = tree.copy(deep=False)
    names = sorted(set(groups) - {PRIVACY})
    for node in (result, *(result[name] for name in (*names, PRIVACY))):
        node.attrs = {**node.attrs, **spent}
    return _sealed(result, names, {}, compared)


def _below(tree: "xr.DataTree", name: str) -> Iterable[tuple[str, "xr.DataTree"]]:
    """A group and the groups in it, by path."""
    node = tree[name]
    for member in node.subtree:
        inner = member.relative_to(node)
        yield (name if inner == "." else f"{name}/{inner}"), member


def _sealed(
    tree: "xr.DataTree", names: Iterable[str], kept: Mapping[str, Any], compared: Mapping[str, set[str]] | None = None
) -> "xr.DataTree":
    """Write which variables of these groups are covered, and their digests, beside the digests that are ``kept``. The tree is changed.

    What is kept stays as it was when it was covered first: of the root and of ``privacy`` only the list of what is covered is new.
    """
    names = list(names)
    shown = {path: entry["covers"] for path, entry in kept.items() if "covers" in entry}
    for name in names:
        variables = {str(variable) for variable in tree[name].to_dataset(inherit=False).data_vars}
        shown[name] = sorted(variables & (compared or {}).get(name, variables))
        tree[name].attrs = {**tree[name].attrs, COVERS: json.dumps(shown[name])}
    words = json.dumps(dict(sorted(shown.items())))
    for node in (tree, tree[PRIVACY]):
        node.attrs = {**node.attrs, COVERS: words}
    fresh = {path: _digests(node) for name in names for path, node in _below(tree, name) if compared is None or path == name}
    for name, variables in (compared or {}).items():
        fresh[name] = _limited(fresh[name], variables)
    fresh = {path: entry | ({"covers": shown[path]} if path in shown else {}) for path, entry in fresh.items()}
    known = dict(kept)
    for path, node in [(ROOT, tree), *_below(tree, PRIVACY)]:
        if path not in known:
            known[path] = _limited(_digests(node), set()) if path == ROOT and compared is not None else _digests(node)
        elif path in (ROOT, PRIVACY):
            known[path] = known[path] | {"attributes": known[path]["attributes"] | {COVERS: digest([], words)}}
    if kept:  # what was put into the group since is not covered
        known = {path: entry for path, entry in known.items() if path in kept or not path.startswith(PRIVACY)}
    tree[PRIVACY].attrs = {**tree[PRIVACY].attrs, DIGESTS: json.dumps({**known, **fresh})}
    return tree


def _limited(digests: dict[str, dict[str, str]], variables: set[str]) -> dict[str, dict[str, str]]:
    """Digests of these variables, and of the attributes that say what is promised."""
    return {
        "variables": {name: value for name, value in digests["variables"].items() if name in variables},
        "attributes": {name: value for name, value in digests["attributes"].items() if name in {*PROMISED, COVERS}},
    }


def covered(tree: "xr.DataTree") -> dict[str, dict[str, dict[str, str]]]:
    """What the promise of a tree covers: by path of a group, digests of its variables and attributes.

    Raises
    ------
    Refusal
        When the tree has no promise, or one without a list.
    """
    import xarray as xr

    if not isinstance(tree, xr.DataTree):
        raise Refusal(f"This takes the tree that pymc_dp.sample returned, not a {type(tree).__name__}. Write idata = pymc_dp.sample(...).")
    if PRIVACY not in tree.children or DIGESTS not in tree[PRIVACY].attrs:
        raise Refusal(
            "This tree does not say what its promise covers. Use the whole tree that pymc_dp.sample returned, or label one that was drawn"
            " from a private model with pymc_dp.annotate(tree, private.privacy)."
        )
    return json.loads(tree[PRIVACY].attrs[DIGESTS])


def posterior_is_covered(tree: "xr.DataTree") -> bool:
    """Whether the promise covers the group ``posterior``, which holds exactly what it held when it was labelled."""
    known = covered(tree).get("posterior")
    return known is not None and "posterior" in tree.children and _digests(tree["posterior"])["variables"] == known["variables"]


def extended(tree: "xr.DataTree", name: str, group: "xr.Dataset", *, covers: bool) -> "xr.DataTree":
    """A copy of a labelled tree with one more group, which its promise covers or does not; of the others nothing is looked at."""
    import xarray as xr

    kept = {path: entry for path, entry in covered(tree).items() if path.split("/")[0] != name}
    result = tree.copy(deep=False)
    if covers:
        words = {key: value for key, value in result[PRIVACY].attrs.items() if key in PROMISED}
        group = group.assign_attrs({**group.attrs, **words})
    result[name] = xr.DataTree(group)
    return _sealed(result, [name] if covers else [], kept)


@explained
def to_share(tree: "xr.DataTree", groups: Iterable[str] | None = None) -> "xr.DataTree":
    """Copy what the promise of a tree covers, and nothing else, into a new tree that may be given away.

    Other programs add to a tree what does not follow from what was released: ``pm.sample_posterior_predictive(tree, model=model)`` and
    ``pm.compute_log_likelihood(tree, model=model)`` on your own model add the records, or a value for every record. All that is not
    covered is left out, and a warning names it.

    Parameters
    ----------
    tree : xarray.DataTree
        A tree from ``sample``, ``annotate`` or ``posterior_predictive``, which may have been saved and read again.
    groups : list of str, optional
        The groups to share, beside ``privacy``; all that are covered if left out.

    Returns
    -------
    xarray.DataTree
        It holds copies only: no parent, no view of another array, no attribute that was added. What you compute from it may be shared,
        too.

    Raises
    ------
    Refusal
        When the tree has no promise, or when a variable that was covered is no longer what it was: replaced, extended, sliced or
        computed anew. Share first and slice what comes out.

    Examples
    --------
    >>> shared = pmdp.to_share(idata)
    >>> shared.to_netcdf("posterior.nc")
    >>> shared.attrs["epsilon"]
    1.0
    """
    import xarray as xr

    known = covered(tree)
    chosen = _chosen(tree, known, groups)
    _check_unchanged(tree, chosen, known)
    copies, dropped = {}, [name for name in tree.children if name not in chosen]
    for path in chosen:
        for inner, node in _below(tree, path):
            if inner in known:
                copies[inner], extra = _shared(node, known[inner])
                dropped += [f"{inner}/{name}" for name in extra]
            else:
                dropped.append(inner)
    copies[ROOT], extra = _shared(tree, known[ROOT])
    shared = _sealed(xr.DataTree.from_dict(copies), [name for name in chosen if name != PRIVACY], {})
    if dropped + extra:
        warnings.warn(
            f"Not covered by the promise, and left out: {', '.join(sorted(dropped + extra))}.",
            NotSharedWarning,
            skip_file_prefixes=(PACKAGE,),
        )
    return shared


def _chosen(tree: "xr.DataTree", known: Mapping[str, Any], groups: Iterable[str] | None) -> list[str]:
    """The groups to share, ``privacy`` among them."""
    there = [name for name in tree.children if name in known]
    if groups is None:
        return there
    if isinstance(groups, str):
        raise Refusal(f"groups must be a list. Write groups=[{groups!r}].")
    wanted = [*groups]
    unknown = [name for name in wanted if name not in there]
    if unknown:
        raise Refusal(f"The promise of this tree does not cover a group {unknown[0]!r}. Write names of {', '.join(map(repr, there))}.")
    return [name for name in there if name in wanted or name == PRIVACY]


def _changed(tree: "xr.DataTree", name: str, known: Mapping[str, Any]) -> list[str]:
    """The variables of a group that were covered and are no longer what they were."""
    changed = []
    for path, node in _below(tree, name):
        now, then = _digests(node)["variables"], known.get(path, {"variables": {}})["variables"]
        changed += [f"{path}/{variable}" for variable in now if variable in then and now[variable] != then[variable]]
    return changed


def _check_unchanged(tree: "xr.DataTree", chosen: list[str], known: Mapping[str, Any]) -> None:
    changed = {name: names for name in chosen if (names := _changed(tree, name, known))}
    then, now = known.get(ROOT, {"variables": {}})["variables"], _digests(tree)["variables"]
    if replaced := [name for name in now if name in then and now[name] != then[name]]:
        changed[ROOT] = replaced
    if not changed:
        return
    first = next(iter(changed.values()))[0]
    rest = [name for name in chosen if name not in changed and name != PRIVACY]
    without = f", or leave it out: groups={rest}" if not {PRIVACY, ROOT} & set(changed) else ""
    raise Refusal(
        f"{first} is not what the promise covered: it was replaced, sliced or computed anew. Share the tree as it was drawn and slice what"
        f" comes out{without}."
    )


def _shared(node: "xr.DataTree", known: Mapping[str, Mapping[str, str]]) -> tuple["xr.Dataset", list[str]]:
    """What is covered of a group, copied, and the names of what is not."""
    import xarray as xr

    group = node.to_dataset(inherit=False)
    data: dict[Any, Any] = {}
    coords: dict[Any, Any] = {}
    dropped: list[str] = []
    for name, variable in group.variables.items():
        if str(name) not in known["variables"]:
            dropped.append(str(name))
            continue
        (coords if name in group.coords else data)[name] = (variable.dims, np.array(variable.values))
    attrs = {}
    for name, value in group.attrs.items():
        if name == DIGESTS:
            continue
        if known["attributes"].get(str(name)) == digest([], value):
            attrs[name] = value
        else:
            dropped.append(f"attribute {name}")
    return xr.Dataset(data, coords=coords, attrs=attrs), dropped
