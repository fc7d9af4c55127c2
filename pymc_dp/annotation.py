"""A tree drawn from a private model + its Release -> the same tree with what it cost written into it.

The privacy group and the attributes come from the release alone, so they repeat nothing that was not already public.
"""

import json
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np

from pymc_dp.accounting import Cost, Refusal
from pymc_dp.noisy import PROMISE, Release

if TYPE_CHECKING:
    import xarray as xr


def annotate(tree: "xr.DataTree", release: Release) -> "xr.DataTree":
    """A copy of a tree with the ``privacy`` group, and what was spent in the attributes of the root and of every group.

    Parameters
    ----------
    tree : xarray.DataTree
        Drawn from ``rewrite(model, release)`` by any sampler.
    release : Release

    Returns
    -------
    xarray.DataTree
        Its ``privacy`` group has one entry per released statistic: variable, statistic, mechanism, sensitivity and scale (in
        units of the statistic), epsilon and delta (nats, of the variable it belongs to; of Fourier coefficients, of all variables
        together).

    Raises
    ------
    Refusal
        When the observed data in the tree are not those of the release: then it was not drawn from the private model.
    """
    import xarray as xr

    if not isinstance(release, Release) or not isinstance(tree, xr.DataTree):
        raise Refusal(
            "annotate needs a DataTree and the Release it was drawn from. Write annotate(pm.sample(model=private), private.privacy)."
        )
    _check_drawn_from(tree, release)
    spent = spent_on(release.cost, release.unit, release.neighbours)
    annotated = tree.copy()
    for node in annotated.subtree:
        node.attrs = {**node.attrs, **spent}
    annotated["privacy"] = xr.DataTree(privacy_group(release).assign_attrs(spent))
    return annotated


def spent_on(cost: Cost, unit: str, neighbours: str, promise: str = PROMISE) -> dict[str, object]:
    """What was spent, and what is promised, as the attributes of every group of a tree."""
    return {
        "epsilon": float(cost.epsilon),
        "epsilon_exact": str(cost.epsilon),
        "delta": float(cost.delta),
        "privacy_unit": unit,
        "neighbours": neighbours,
        "promise": promise,
        "modeling_interface": "pymc_dp",
        "modeling_interface_version": version("pymc_dp"),
    }


def privacy_group(release: Release) -> "xr.Dataset":
    """What was released, one entry per statistic, as a Dataset over the dim ``release``."""
    import xarray as xr

    entries = [(one, name) for one in release.statistics for name in one.statistics]
    columns: dict[str, list[object]] = {
        "variable": [one.variable for one, _ in entries],
        "statistic": [name for _, name in entries],
        "mechanism": [release.mechanism for _ in entries],
        "sensitivity": [one.sensitivity for one, _ in entries],
        "scale": [one.scale * one.lattice for one, _ in entries],
        "epsilon": [float(one.cost.epsilon) for one, _ in entries],
        "delta": [float(release.delta) for _ in entries],
    }
    bounds = {one.variable: [one.domain.lower, one.domain.upper] for one in release.statistics}
    shares = {one.variable: str(one.cost.epsilon) for one in release.statistics}
    return xr.Dataset(
        {name: (("release",), np.asarray(values)) for name, values in columns.items()},
        coords={"release": np.arange(len(entries))},
        attrs={
            "mechanism": release.mechanism,
            "bounds": json.dumps(bounds),
            "epsilon_by_variable": json.dumps(shares),
            "public": json.dumps(list(release.public)),
            "ledger_head": release.ledger_head,
            "versions": json.dumps(release.versions),
        }
        | ({} if release.network is None else {"network": json.dumps(release.network.facts())}),
    )


def _check_drawn_from(tree: "xr.DataTree", release: Release) -> None:
    if "observed_data" not in tree.children:
        return
    observed = tree["observed_data"]
    names = {one.variable for one in release.statistics}
    if set(map(str, observed.data_vars)) != names or any(observed[name].shape != release[name].noisy.shape for name in names):
        raise Refusal("This tree was not drawn from the private model of this release. Sample pymc_dp.rewrite(model, release) first.")
