"""Draws of the private model, sorted into groups: what the user asked for, and the latents of the noise beside it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pymc_dp.private_models.events import LOSSES
from pymc_dp.private_models.likelihood import LATENT, SHARED, TABLES
from pymc_dp.private_models.sizes import LEVELS, MEAN, OF_BINS, SIZE
from pymc_dp.releases.noisy_statistic import NoisyStatistic

if TYPE_CHECKING:
    import xarray as xr


def latents_apart(tree: "xr.DataTree", statistics: Sequence[NoisyStatistic]) -> "xr.DataTree":
    """Move the latent noise of the private model from ``posterior`` to a group of its own, with what it is centred on."""
    import xarray as xr

    endings = (LATENT, SIZE, MEAN, OF_BINS, LEVELS, SHARED, LOSSES)
    names = [f"{statistic.variable}{ending}" for statistic in statistics for ending in endings]
    posterior = tree["posterior"].to_dataset()
    latents = [name for name in names if name in posterior.data_vars]
    tables = [name for statistic in statistics if (name := f"{statistic.variable}{TABLES}") in posterior.data_vars]
    if not latents and not tables:
        return tree
    groups = {name: node.to_dataset() for name, node in tree.children.items()}
    constant = groups.pop("constant_data", xr.Dataset())
    centres = [name for name in constant.data_vars if any(name.startswith(f"{latent}_") for latent in latents)]
    groups["posterior"] = _without(posterior, latents + tables)
    if tables:
        groups["network"] = posterior[tables]
    if latents:
        groups["latent_statistics"] = posterior[latents].merge(constant[centres])
    if len(constant.data_vars) > len(centres):
        groups["constant_data"] = _without(constant, centres)
    return xr.DataTree.from_dict({"/": tree.to_dataset(), **groups})


def _without(group: "xr.Dataset", names: list[str]) -> "xr.Dataset":
    """A group without some of its variables, and without the coordinates that served only them."""
    rest = group.drop_vars(names)
    return rest.drop_vars([coord for coord in rest.coords if not any(set(rest[coord].dims) & set(rest[v].dims) for v in rest.data_vars)])
