"""A tree drawn from a private model, and its Release -> the same tree with a note of what it cost and what the promise covers.

The privacy group and the attributes come from the release alone, so they repeat nothing that was not already public.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np

from pymc_dp.privacy.accounting import Cost, Refusal, protected
from pymc_dp.privacy.calls import explained
from pymc_dp.private_models.labels import PRIVACY, covered, extended, labelled
from pymc_dp.private_models.plug_in import plug_in
from pymc_dp.releases.noisy_statistic import NoisyStatistic
from pymc_dp.releases.release import PROMISE, SAVED, Release

if TYPE_CHECKING:
    import xarray as xr


@explained
def annotate(tree: "xr.DataTree", release: Release) -> "xr.DataTree":
    """A copy of a tree with the ``privacy`` group, what was spent in the attributes, the release itself, and a list of what is covered.

    It takes your word that the draws are those of the private model: a posterior cannot be compared with anything. ``sample`` draws them
    itself and needs nobody's word. What can be compared is: ``observed_data`` must be the released numbers, and groups of predictive
    draws are covered only where their variables are the released statistics, with their dims and lengths. Everything else, such as
    constant data, log-likelihoods, other coordinates, groups within groups, and what stands at the root, stays in the tree and is not
    covered.

    Parameters
    ----------
    tree : xarray.DataTree
        Drawn from ``rewrite(model, release)`` by any sampler. Where it was labelled before, what was covered then stays covered as it
        was then, and of other groups only those that can be compared are added.
    release : Release

    Returns
    -------
    xarray.DataTree
        Its ``privacy`` group has one entry per released statistic: variable, statistic, mechanism, sensitivity and scale (in
        units of the statistic), epsilon and delta (nats, of the variable it belongs to; of Fourier coefficients, of all variables
        together), and parallel (the disjoint variables that its own is one of: of their epsilons the largest counts).
        ``Release.from_datatree`` of the tree gives the release. ``privacy_covers`` lists the variables that are covered, by group;
        ``to_share`` takes them out.

    Raises
    ------
    Refusal
        When the observed data in the tree are not those of the release: then it was not drawn from the private model. When the tree is
        labelled with another release.

    Examples
    --------
    >>> private = pmdp.privatize(model, epsilon=1.0)
    >>> draws = pm.sample(5, tune=5, chains=1, model=private, progressbar=False)
    >>> idata = pmdp.annotate(draws, private.privacy)
    >>> idata.attrs["epsilon"]
    1.0
    """
    import xarray as xr

    if not isinstance(release, Release) or not isinstance(tree, xr.DataTree):
        raise Refusal(
            "annotate needs a DataTree and the Release it was drawn from. Write annotate(pm.sample(model=private), private.privacy)."
        )
    _check_drawn_from(tree, release)
    spent = spent_by(release)
    predictive = [name for name in PREDICTIVE if name in tree.children and _of_statistics(tree[name].to_dataset(), release)]
    compared = {name: _known_in(tree[name].to_dataset(inherit=False), release) for name in ("observed_data", *predictive) if name in tree}
    if PRIVACY not in tree.children:
        return written(tree, release, spent, [*(name for name in TRUSTED if name in tree.children), *compared], compared)
    known = covered(tree)
    if Release.from_datatree(tree) != release:
        raise Refusal("This tree is labelled with another release. Label draws of this one, as pm.sample(model=private) returns them.")
    for name in predictive:
        if name not in known:
            group = tree[name].to_dataset(inherit=False)
            released_part = group.drop_vars([variable for variable in group.variables if str(variable) not in compared[name]]).drop_attrs()
            tree = extended(tree, name, released_part, covers=True)
    return tree.copy()


TRUSTED = ("posterior", "sample_stats", "warmup_posterior", "warmup_sample_stats")
"""Groups of which a user is believed that they were drawn from the private model."""
PREDICTIVE = ("posterior_predictive", "prior_predictive", "predictions")
"""Groups that hold the released statistics drawn anew, where they come from the private model."""


def written(
    tree: "xr.DataTree",
    release: Release,
    spent: Mapping[str, object],
    groups: Iterable[str],
    compared: Mapping[str, set[str]] | None = None,
) -> "xr.DataTree":
    """The tree with its ``privacy`` group, in it the release, and these groups as what is covered: see ``labelled``."""
    import xarray as xr

    result = tree.copy(deep=False)
    saved = {f"/{SAVED}{'' if node.path == '/' else node.path}": node.to_dataset() for node in release.to_datatree().subtree}
    result[PRIVACY] = xr.DataTree.from_dict({"/": privacy_group(release), **saved})
    return labelled(result, spent, groups, compared)


def covering_all(tree: "xr.DataTree", release: Release) -> "xr.DataTree":
    """The tree as ``annotate`` gives it, every group covered: for those who have drawn all of it from the private model themselves."""
    return written(tree, release, spent_by(release), tree.children)


def spent_by(release: Release) -> dict[str, object]:
    """What was spent on a release, and what is promised."""
    return spent_on(release.cost, release.unit, release.neighbours, disjoint=release.disjoint)


def spent_on(cost: Cost, unit: str, neighbours: str, promise: str = PROMISE, disjoint: Sequence[Sequence[str]] = ()) -> dict[str, object]:
    """What was spent, and what is promised, as the attributes of every group of a tree."""
    return {
        "epsilon": float(cost.epsilon),
        "epsilon_exact": str(cost.epsilon),
        "delta": float(cost.delta),
        "privacy_unit": unit,
        "protects": protected(unit, disjoint),
        "neighbours": neighbours,
        "promise": promise,
        "modeling_interface": "pymc_dp",
        "modeling_interface_version": version("pymc_dp"),
    }


def privacy_group(release: Release) -> "xr.Dataset":
    """What was released, one entry per statistic, as a Dataset over the dim ``release``."""
    import xarray as xr

    entries = [(noisy, name) for noisy in release.statistics for name in noisy.statistics]
    # Of what was multiplied before the noise both are divided again: noise of this scale is on the statistic.
    times = [1 if noisy.times is None else noisy.times[k] for noisy in release.statistics for k in range(len(noisy.statistics))]
    columns: dict[str, list[object]] = {
        "variable": [noisy.variable for noisy, _ in entries],
        "statistic": [name for _, name in entries],
        "mechanism": [release.mechanism for _ in entries],
        "sensitivity": [noisy.sensitivity / by for (noisy, _), by in zip(entries, times, strict=True)],
        "scale": [noisy.scale * noisy.lattice / by for (noisy, _), by in zip(entries, times, strict=True)],
        "epsilon": [float(noisy.cost.epsilon) for noisy, _ in entries],
        "delta": [float(release.delta) for _ in entries],
    }
    columns["parallel"] = [", ".join(next((group for group in release.disjoint if noisy.variable in group), ())) for noisy, _ in entries]
    bounds = {s.variable: s.domain.columns or (s.domain.lower, s.domain.upper) for s in release.statistics}
    shares = {noisy.variable: str(noisy.cost.epsilon) for noisy in release.statistics}
    return xr.Dataset(
        {name: (("release",), np.asarray(values)) for name, values in columns.items()},
        coords={"release": np.arange(len(entries))},
        attrs={
            "mechanism": release.mechanism,
            "bounds": json.dumps(bounds),
            "epsilon_by_variable": json.dumps(shares),
            "disjoint": json.dumps(release.disjoint),
            "public": json.dumps(list(release.public)),
            "ledger_head": release.ledger_head,
            "versions": json.dumps(release.versions),
        }
        | ({} if release.network is None else {"network": json.dumps(release.network.facts())}),
    )


def _check_drawn_from(tree: "xr.DataTree", release: Release) -> None:
    """Refuse a tree whose observed data are not the released numbers, or what ``noise_aware=False`` makes of them."""
    if "observed_data" not in tree.children:
        return
    observed = tree["observed_data"]
    names = {noisy.variable for noisy in release.statistics}
    if set(map(str, observed.data_vars)) != names or not all(_is_released(observed[name].values, release[name]) for name in names):
        raise Refusal("This tree was not drawn from the private model of this release. Sample pymc_dp.rewrite(model, release) first.")


def _is_released(values: np.ndarray, noisy: NoisyStatistic) -> bool:
    if values.shape != noisy.noisy.shape or values.dtype.kind not in "iuf":
        return False
    if np.array_equal(values, noisy.values) or np.array_equal(values, noisy.noisy):
        return True
    return np.allclose(values, plug_in(noisy).observed, rtol=1e-12, atol=0)


def _of_statistics(group: "xr.Dataset", release: Release) -> bool:
    """Whether every variable of a group is a released statistic, drawn again: its dims, lengths and labels."""
    names = {noisy.variable: noisy for noisy in release.statistics}
    return bool(group.data_vars) and all(str(name) in names and _is_drawn_again(group, names[str(name)]) for name in group.data_vars)


def _known_in(group: "xr.Dataset", release: Release) -> set[str]:
    """The variables of a group that are released statistics, and those of its coordinates that only count or repeat their labels."""
    names = {noisy.variable for noisy in release.statistics}
    labels = {f"{noisy.variable}_statistic": list(noisy.statistics) for noisy in release.statistics}
    known = {str(name) for name in group.data_vars if str(name) in names}
    for name, coordinate in group.coords.items():
        counts = (
            coordinate.dims == (name,) and coordinate.dtype.kind in "iu" and np.array_equal(coordinate.values, np.arange(coordinate.size))
        )
        repeats = coordinate.dims == (name,) and [str(label) for label in coordinate.values] == labels.get(str(name))
        known |= {str(name)} if counts or repeats else set()
    return known


def _is_drawn_again(group: "xr.Dataset", noisy: NoisyStatistic) -> bool:
    name, drawn = noisy.variable, group[noisy.variable]
    shape, statistics = noisy.noisy.shape, f"{name}_statistic"
    if drawn.ndim != 2 + len(shape) or drawn.shape[2:] != shape:
        return False
    if drawn.dims[:3] != ("chain", "draw", f"{name}_cell") or drawn.dims[-1] != statistics:
        return False
    return statistics in group.coords and [str(label) for label in group[statistics].values] == list(noisy.statistics)
