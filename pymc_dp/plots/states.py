"""Pictures of hidden states over time."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dp.plots.drawing import pyplot
from pymc_dp.plots.posteriors import draws_of
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.calls import explained

if TYPE_CHECKING:
    import xarray as xr


@explained
def plot_states(tree: "xr.DataTree", variable: str = "states") -> "np.ndarray[Any, np.dtype[np.object_]]":
    """Plot hidden states over time: how likely each sequence is in each state at each step.

    Parameters
    ----------
    tree : xarray.DataTree
        Draws of ``hidden_markov``, or of ``gibbs_steps``, whose states are along (sequence, step).
    variable : str
        What the states are called.

    Returns
    -------
    (states,) ndarray of matplotlib.axes.Axes
        One for every state, sequences downwards and steps to the right; black is certain. The numbers of states mean nothing.

    Raises
    ------
    Refusal
        Where matplotlib is not installed, or there are no such states.

    Examples
    --------
    >>> with pm.Model() as events:
    ...     p = pm.Dirichlet("p", np.ones((6, 2)))
    ...     kind = pm.Categorical("kind", p[pm.Data("step", np.arange(200) % 6)], observed=votes)
    >>> tree = pmdp.hidden_markov(pmdp.release(events, epsilon=5.0), sequences=2, states=2, draws=5, tune=5, progressbar=False)
    >>> pmdp.plot_states(tree).shape
    (2,)
    """
    group = draws_of(tree)
    if variable not in group or group[variable].ndim != 4:
        raise Refusal(f"There are no states {variable!r} along (sequence, step). Write plot_states(pymc_dp.hidden_markov(release, ...)).")
    states = group[variable].values
    many = int(states.max()) + 1
    plt = pyplot()
    height = 0.9 + many * (0.7 + 0.22 * min(states.shape[2], 20))
    figure, axes = plt.subplots(many, 1, figsize=(9, height), sharex=True, squeeze=False, layout="constrained")
    for k, ax in enumerate(axes[:, 0]):
        shown = ax.imshow((states == k).mean(axis=(0, 1)), aspect="auto", cmap="Greys", vmin=0, vmax=1, interpolation="nearest")
        ax.set_title(f"state {k}", fontsize=10)
        ax.set_ylabel("sequence")
        ax.yaxis.get_major_locator().set_params(integer=True)
    axes[-1, 0].set_xlabel("step")
    axes[-1, 0].xaxis.get_major_locator().set_params(integer=True)
    figure.colorbar(shown, ax=axes[:, 0].tolist(), label="probability of the state", aspect=30)
    return axes[:, 0]
