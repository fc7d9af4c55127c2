"""The picture of a Bayesian network as it was released: what depends on what, and how large noise is beside counts."""

from typing import TYPE_CHECKING

import numpy as np

from pymc_dp.plans.network import Network, Node
from pymc_dp.plots.drawing import ink, pyplot
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.calls import explained
from pymc_dp.releases.release import Release

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

FULL = 0.5
"""Noise of this share of a typical count is drawn darkest."""
DARKER = "\ndarker: more noise beside a typical count (in parentheses: its share)"


@explained
def plot_network(released: "Release | xr.DataTree") -> "Axes":
    """Plot a Bayesian network with the noise on its tables: the darker a variable, the larger noise is beside a typical count.

    Parameters
    ----------
    released : Release or xarray.DataTree
        A release of a network, or a tree that was drawn from one.

    Returns
    -------
    matplotlib.axes.Axes
        Parents stand above their children. In each box are the variable, how many counts its table has, and the standard deviation of the
        noise of one count with what share of the median noisy count that is.

    Raises
    ------
    Refusal
        Where matplotlib is not installed, or what was released is no network.

    Examples
    --------
    >>> ax = pmdp.plot_network(pmdp.release(network, epsilon=1.0))
    >>> len(ax.texts) >= 2
    True
    """
    if not isinstance(released, Release):
        if type(released).__name__ != "DataTree":
            raise Refusal(f"This draws a release, not {type(released).__name__}. Write plot_network(pymc_dp.release(model, epsilon=1.0)).")
        released = Release.from_datatree(released)
    network = released.network
    if network is None:
        raise Refusal("These variables are no Bayesian network: none is above another. Write plot_posteriors for other models.")
    plt, places = pyplot(), _places(network)
    wide = max(sum(place[1] == row for place in places.values()) for row in {place[1] for place in places.values()})
    deep = 1 + max(-place[1] for place in places.values())
    _, ax = plt.subplots(figsize=(max(5.0, 2.3 * wide), 1.3 + 1.3 * deep), layout="constrained")
    boxes = {}
    for node in network.nodes:
        words, share = _noise(released, node)
        grey = 1 - 0.65 * min(share / FULL, 1.0)
        boxes[node.name] = ax.text(
            *places[node.name], f"{node.name}\n{words}", ha="center", va="center", fontsize=8.5, zorder=3,
            color="black" if grey > 0.5 else "white", bbox={"boxstyle": "round,pad=0.5", "facecolor": str(grey), "edgecolor": "black"},
        ).get_bbox_patch()  # fmt: skip
    for node in network.nodes:
        for parent in node.parents:
            arrow = {"arrowstyle": "-|>", "color": ink(), "patchA": boxes[parent], "patchB": boxes[node.name], "shrinkA": 2, "shrinkB": 2}
            arrow |= {"connectionstyle": f"arc3,rad={_bend(places[parent], places[node.name])}"}
            ax.annotate("", places[node.name], places[parent], arrowprops=arrow, zorder=1)
    across = [place[0] for place in places.values()]
    ax.set_xlim(min(across) - 0.6, max(across) + 0.6)
    ax.set_ylim(-deep + 0.5, 0.5)
    ax.set_axis_off()
    ax.set_title(f"epsilon {float(released.epsilon):g}, {released.mechanism} noise{DARKER}", fontsize=10)
    return ax


def _bend(parent: tuple[float, float], child: tuple[float, float]) -> float:
    """How far an arrow leaves the straight line: one that passes rows between goes around what stands there, on the outer side."""
    if parent[1] - child[1] < 1.5:
        return 0.0
    return -0.55 if parent[0] + child[0] > 0 else 0.55


def _noise(released: Release, node: Node) -> tuple[str, float]:
    """What is said of the noise on a variable's table, and its share of the median count."""
    table, statistic = released.table(node.name), released[node.variable]
    spread = statistic.noise.standard_deviation
    share = spread / max(float(np.median(table)), 1.0)
    return f"{table.size:,} counts\nnoise sd {spread:.3g} ({share:.1%})", share


def _places(network: Network) -> dict[str, tuple[float, float]]:
    """Across and down: every variable below its parents, and under their middle as far as there is room."""
    depth: dict[str, int] = {}
    for node in network.order():
        depth[node.name] = 1 + max((depth[parent] for parent in node.parents), default=-1)
    places: dict[str, tuple[float, float]] = {}
    for row in range(1 + max(depth.values())):
        nodes = [node for node in network.order() if depth[node.name] == row]
        middle = {node.name: np.mean([places[parent][0] for parent in node.parents]) if node.parents else 0.0 for node in nodes}
        for k, node in enumerate(sorted(nodes, key=lambda node: float(middle[node.name]))):
            places[node.name] = (k - (len(nodes) - 1) / 2, -float(row))
    return places
