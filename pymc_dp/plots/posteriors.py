"""Pictures of draws: several posteriors side by side, how much of their widths is due to privacy, and hidden states."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dp.plots.drawing import FIRST, LOOKS, check_drawn, entitle, ink, pyplot
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.calls import explained

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

MOST_ENTRIES = 40
"""So many entries of one variable are drawn."""
GROUPS = ("posterior", "prior")
EXAMPLE = 'plot_posteriors({"private": idata, "prior": pm.sample_prior_predictive(model=private)})'


@explained
def plot_posteriors(
    trees: "Mapping[str, xr.DataTree]", var_names: Sequence[str] | None = None, *, probability: float = 0.9
) -> "np.ndarray[Any, np.dtype[np.object_]]":
    """Plot posteriors side by side: the private one beside the prior, the plug-in one, and one without privacy where records are public.

    Parameters
    ----------
    trees : mapping of str to xarray.DataTree
        What to call them, and the trees, each with a group ``posterior`` or ``prior``. A tree without some variable is left out of its
        picture.
    var_names : list of str, optional
        The variables; all of the first tree's if left out.
    probability : float
        Of the central intervals that are drawn as lines. Dots are medians.

    Returns
    -------
    (variables,) ndarray of matplotlib.axes.Axes
        One for every variable, in its own units, with a row for every entry.

    Raises
    ------
    Refusal
        Where matplotlib is not installed, for what is no tree of draws, and for variables that are not there or too large.

    Examples
    --------
    >>> prior = pm.sample_prior_predictive(50, model=pmdp.private_model(idata, model), random_seed=1)
    >>> pmdp.plot_posteriors({"private": idata, "prior": prior}).shape
    (1,)
    """
    check_drawn(trees, Mapping, EXAMPLE)
    if hasattr(trees, "children"):  # a tree is a mapping, too: of its groups
        raise Refusal(f"Trees are given by name, in a dict. Write for example {EXAMPLE}.")
    drawn = {words: _draws(tree) for words, tree in trees.items()}
    if not drawn or not 0 < probability < 1:
        raise Refusal(f"There must be a tree, and probability must be between 0 and 1. Write for example {EXAMPLE}.")
    names = _names(next(iter(drawn.values())), var_names)
    plt = pyplot()
    rows = {name: _labels(next(iter(drawn.values()))[name]) for name in names}
    height = 1.6 + 0.13 * (1 + len(drawn)) * max(map(len, rows.values()))
    figure, axes = plt.subplots(1, len(names), figsize=(1.5 + 3.4 * len(names), height), squeeze=False, layout="constrained")
    tail = (1 - probability) / 2
    for ax, name in zip(axes[0], names, strict=True):
        for k, ((words, group), (colour, marker, line)) in enumerate(zip(drawn.items(), cycle(LOOKS))):
            if name not in group:
                continue
            low, middle, high = np.quantile(_entries(group[name]), [tail, 0.5, 1 - tail], axis=0)
            place = np.arange(len(rows[name])) + 0.8 * ((k + 0.5) / len(drawn) - 0.5)
            ax.hlines(place, low, high, color=ink(colour), linestyle=line, linewidth=1.6)
            ax.plot(middle, place, marker, color=ink(colour), markersize=4.5, linestyle="none")
            ax.plot([], [], marker=marker, color=ink(colour), markersize=4.5, linestyle=line, linewidth=1.6, label=words)
        _rows(ax, rows[name])
        ax.set_xlabel(name)
        ax.spines[["top", "right"]].set_visible(False)
    handles = {words: handle for ax in axes[0] for handle, words in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), frameon=False, ncols=min(len(handles), 5), loc="outside lower center", handlelength=3)
    entitle(figure, f"Medians and {100 * probability:g} % intervals")
    return axes[0]


@explained
def plot_privacy_share(
    private: "xr.DataTree", without: "xr.DataTree", var_names: Sequence[str] | None = None, *, probability: float = 0.9
) -> "np.ndarray[Any, np.dtype[np.object_]]":
    """Plot how much of each interval's width is privacy, and how much there would be without.

    Parameters
    ----------
    private : xarray.DataTree
        Draws of the private posterior.
    without : xarray.DataTree
        What to compare it with: draws without privacy where records are public, or those of the plug-in model,
        ``pymc_dp.private_model(idata, model, noise_aware=False)``, which takes the released numbers for exact. The plug-in costs nothing;
        it is about as wide as a posterior without privacy where noise is small beside what is counted.
    var_names : list of str, optional
        The variables; all of the private posterior if left out.
    probability : float
        Of the central intervals.

    Returns
    -------
    (variables,) ndarray of matplotlib.axes.Axes
        Bars in units of the variable. Beside each stands the share of the variance that is there for privacy, as in ``plot_plan``.

    Raises
    ------
    Refusal
        Where matplotlib is not installed, for what is no tree of draws, and for variables that are not there.

    Examples
    --------
    >>> plug_in = pm.sample(20, tune=20, chains=1, model=pmdp.private_model(idata, model, noise_aware=False), progressbar=False)
    >>> pmdp.plot_privacy_share(idata, plug_in).shape
    (1,)
    """
    groups = _draws(private), _draws(without)
    names = _names(groups[0], var_names)
    if absent := [name for name in names if name not in groups[1]]:
        raise Refusal(f"The second tree has no {absent[0]}. Write var_names without it.")
    plt, tail = pyplot(), (1 - probability) / 2
    most = max(len(_labels(groups[0][name])) for name in names)
    figure, axes = plt.subplots(1, len(names), figsize=(1.5 + 3.6 * len(names), 1.6 + 0.32 * most), squeeze=False, layout="constrained")
    for ax, name in zip(axes[0], names, strict=True):
        entries = [_entries(group[name]) for group in groups]
        width, least = (np.diff(np.quantile(draws, [tail, 1 - tail], axis=0), axis=0)[0] for draws in entries)
        share = np.clip(1 - entries[1].var(axis=0) / np.maximum(entries[0].var(axis=0), 1e-300), 0, 1)
        labels, place = _labels(groups[0][name]), np.arange(len(width))
        ax.barh(place, np.minimum(least, width), 0.6, color="0.75", edgecolor="0.3", label="without privacy")
        ax.barh(place, np.maximum(width - least, 0), 0.6, left=least, color=FIRST, edgecolor="0.1", hatch="///", label="more, for privacy")
        for at, end, part in zip(place, np.maximum(width, least), share):
            ax.text(end, at, f" {part:.0%}", va="center", fontsize=8)
        _rows(ax, labels)
        ax.set_xlim(0, 1.2 * float(np.maximum(width, least).max()))
        ax.set_xlabel(f"width of the {100 * probability:g} % interval of {name}")
        ax.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), frameon=False, ncols=2, loc="outside lower center")
    entitle(figure, "What of each width is privacy; beside the bar, what share of the variance")
    return axes[0]


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
    group = _draws(tree)
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


def _rows(ax: "Axes", labels: Sequence[str]) -> None:
    """A row for every entry, from the top; the one of a variable without entries has no name and no tick."""
    ax.set_yticks(range(len(labels)) if any(labels) else [], labels if any(labels) else [])
    ax.set_ylim(len(labels) - 0.5, -0.5)


def _draws(tree: object) -> "xr.DataTree":
    """The posterior of a tree, or its prior."""
    for name in GROUPS:
        if name in (getattr(tree, "children", None) or ()):
            return tree[name]  # type: ignore[index]
    raise Refusal(f"This draws trees with a group posterior or prior, and not {type(tree).__name__}. Write for example {EXAMPLE}.")


def _names(group: "xr.DataTree", var_names: Sequence[str] | None) -> list[str]:
    """The variables to be drawn."""
    known = [str(name) for name in group.data_vars]
    names = known if var_names is None else [var_names] if isinstance(var_names, str) else list(var_names)
    if unknown := [name for name in names if name not in known]:
        raise Refusal(f"There is no {unknown[0]!r} among the draws. Write var_names with some of {', '.join(map(repr, known))}.")
    if large := [name for name in names if int(np.prod(group[name].shape[2:])) > MOST_ENTRIES]:
        raise Refusal(f"{large[0]} has more than {MOST_ENTRIES} entries. Leave it out of var_names, or draw a part: tree.sel(...).")
    if not names:
        raise Refusal("There is nothing to draw. Write var_names=[...].")
    return names


def _entries(values: "xr.DataArray") -> np.ndarray:
    """Draws of every entry: (draws, entries)."""
    return values.values.reshape(values.shape[0] * values.shape[1], -1)


def _labels(values: "xr.DataArray") -> list[str]:
    """What the entries of a variable are called, by the labels of its dims."""
    dims = [str(dim) for dim in values.dims[2:]]
    marks = [values[dim].values if dim in values.coords else np.arange(values.sizes[dim]) for dim in dims]
    return [", ".join(str(labels[at]) for labels, at in zip(marks, place, strict=True)) for place in np.ndindex(*values.shape[2:])]
