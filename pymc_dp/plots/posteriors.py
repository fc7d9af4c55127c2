"""Pictures of draws on arviz-plots: several posteriors side by side, and how much of their widths is due to privacy.

A picture is a ``PlotCollection``, as ArviZ's own are: drawn by Matplotlib, Plotly or Bokeh, with a plot for every variable.
"""

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from itertools import cycle, islice
from textwrap import fill
from typing import TYPE_CHECKING, Any

import arviz_plots
import numpy as np
import xarray as xr
from arviz_base import rcParams

from pymc_dp.plots.drawing import FIRST, LOOKS, check_drawn, pyplot
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.calls import explained

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

MOST_ENTRIES = 40
"""So many entries of one variable are drawn."""
MOST_VARIABLES = 40
"""So many variables are drawn."""
WRAP = 4
"""So many plots stand beside each other."""
LINE, BAR = 1.6, 7.0
"""How wide lines are in points, and bars in a legend."""
GROUPS = ("posterior", "prior")
EXAMPLE = 'plot_posteriors({"private": idata, "prior": pm.sample_prior_predictive(model=private)})'
MATPLOTLIB = "arviz_plots.backend.matplotlib"
BACKENDS = ("matplotlib", "plotly", "bokeh", "none")
PARTS = {"without privacy": "#bfbfbf", "more, for privacy": FIRST}
"""The two parts of a width, and their colours: light and dark."""
TREE, AXIS = "_tree", "_axis"
"""Dimensions of what is drawn: no variable of a user's is called so."""


@explained
def plot_posteriors(
    trees: "Mapping[str, xr.DataTree]", var_names: Sequence[str] | None = None, *, probability: float = 0.9, backend: str | None = None
) -> "PlotCollection":
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
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        What draws; ArviZ's ``rcParams["plot.backend"]`` if left out. With ``"none"`` nothing is drawn, and what would be is returned.

    Returns
    -------
    arviz_plots.PlotCollection
        A plot for every variable, in its own units, with a row for every entry: ``picture.savefig("rates.png")``, ``picture.show()``, and
        ``picture.get_target("rate", {})`` for the axes of one variable.

    Raises
    ------
    Refusal
        Where the backend is not installed, for what is no tree of draws, and for variables that are not there or too large.

    Examples
    --------
    >>> prior = pm.sample_prior_predictive(50, model=pmdp.private_model(idata, model), random_seed=1)
    >>> picture = pmdp.plot_posteriors({"private": idata, "prior": prior})
    >>> list(picture.viz["plot"].data_vars)
    ['p']
    """
    check_drawn(trees, Mapping, EXAMPLE)
    if hasattr(trees, "children"):  # a tree is a mapping, too: of its groups
        raise Refusal(f"Trees are given by name, in a dict. Write for example {EXAMPLE}.")
    drawn = {words: draws_of(tree) for words, tree in trees.items()}
    if not drawn or not 0 < probability < 1:
        raise Refusal(f"There must be a tree, and probability must be between 0 and 1. Write for example {EXAMPLE}.")
    first = next(iter(drawn.values()))
    names = _names(first, var_names)
    drawer = _drawer(backend)
    rows = {name: _labels(first[name]) for name in names}
    ends, middles = xr.Dataset(coords={TREE: list(drawn)}), xr.Dataset(coords={TREE: list(drawn)})
    for name in names:
        low, middle, high = _quantiles(drawn.values(), name, len(rows[name]), probability)
        place = np.arange(len(rows[name])) + 0.8 * ((np.arange(len(drawn))[:, None] + 0.5) / len(drawn) - 0.5)
        ends[name] = (TREE, AXIS, f"{AXIS}{name}"), _broken(low, high, np.where(np.isnan(low), np.nan, place))
        middles[name] = (TREE, AXIS, f"{AXIS}{name}"), np.stack([middle, np.where(np.isnan(middle), np.nan, place)], axis=1)
    picture = _collection(ends, rows, 0.13 * (1 + len(drawn)), drawer, _looks(drawer, len(drawn)))
    picture.map(lambda da, target, **look: drawer.line(*da.values, target, width=LINE, **look), "interval", ignore_aes={"marker"})
    picture.map(lambda da, target, **look: drawer.scatter(*da.values, target, **look), "median", data=middles, ignore_aes={"linestyle"})
    _finish(picture, rows, drawer, {name: name for name in names}, f"Medians and {100 * probability:g} % intervals", LINE)
    return picture


@explained
def plot_privacy_share(
    private: "xr.DataTree",
    without: "xr.DataTree",
    var_names: Sequence[str] | None = None,
    *,
    probability: float = 0.9,
    backend: str | None = None,
) -> "PlotCollection":
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
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        See ``plot_posteriors``.

    Returns
    -------
    arviz_plots.PlotCollection
        Bars in units of the variable. Beside each stands the share of the variance that is there for privacy, as in ``plot_plan``.

    Raises
    ------
    Refusal
        Where the backend is not installed, for what is no tree of draws, and for variables that are not there.

    Examples
    --------
    >>> plug_in = pm.sample(20, tune=20, chains=1, model=pmdp.private_model(idata, model, noise_aware=False), progressbar=False)
    >>> picture = pmdp.plot_privacy_share(idata, plug_in)
    >>> list(picture.viz["plot"].data_vars)
    ['p']
    """
    groups = draws_of(private), draws_of(without)
    names = _names(groups[0], var_names)
    if absent := [name for name in names if name not in groups[1]]:
        raise Refusal(f"The second tree has no {absent[0]}. Write var_names without it.")
    drawer, rows = _drawer(backend), {name: _labels(groups[0][name]) for name in names}
    parts, ends, shares = xr.Dataset(coords={TREE: list(PARTS)}), {}, {}
    for name in names:
        low, _, high = _quantiles(groups, name, len(rows[name]), probability)
        width, least = high - low
        ends[name] = np.maximum(width, least)
        variance = [_entries(group[name]).var(axis=0) for group in groups]
        shares[name] = np.clip(1 - variance[1] / np.maximum(variance[0], 1e-300), 0, 1)
        least = np.minimum(least, width)
        parts[name] = (TREE, AXIS, f"{AXIS}{name}"), np.stack([[np.zeros_like(least), least], [least, ends[name]]])
    picture = _collection(parts, rows, 0.32, drawer, {"color": list(PARTS.values())})

    def bars(da: xr.DataArray, target: Any, color: str) -> None:
        for row, (begin, end) in enumerate(da.values.T):
            drawer.fill_between_y(np.array([begin, end]), np.full(2, row - 0.3), np.full(2, row + 0.3), target, color=color, alpha=1.0)

    def percents(da: xr.DataArray, target: Any, var_name: str, **_: object) -> None:
        for row, (end, share) in enumerate(zip(ends[var_name], shares[var_name], strict=True)):
            drawer.text(end, row, f" {share:.0%}", target, horizontal_align="left", color="B1")
        drawer.xlim((0, 1.2 * float(ends[var_name].max())), target)

    picture.map(bars, "bars", store_artist=False)
    picture.map(percents, "share", ignore_aes="all", subset_info=True, store_artist=False)
    words = {name: f"width of the {100 * probability:g} % interval of {name}" for name in names}
    _finish(picture, rows, drawer, words, "What of each width is privacy; beside the bar, what share of the variance", BAR)
    return picture


def _drawer(backend: str | None) -> Any:
    """The module of arviz-plots that draws, or a refusal where what it draws with is not installed."""
    name = rcParams["plot.backend"] if backend is None else backend
    if name not in BACKENDS:
        raise Refusal(f"backend is one of {', '.join(map(repr, BACKENDS))}.")
    if name == "matplotlib":
        pyplot()
    try:
        drawer = import_module(f"arviz_plots.backend.{name}")
    except ImportError:
        missing = True
    else:
        return drawer
    assert missing
    raise Refusal(f'This backend is not installed. Write pip install {name}, or backend="matplotlib".')


def _looks(drawer: Any, many: int) -> dict[str, list[str]]:
    """Colours, lines and markers of so many trees: no two are alike without colour. Other backends have lines of their own."""
    looks = list(islice(cycle(LOOKS), many))
    look = {"color": ["B1" if colour == "black" else colour for colour, _, _ in looks]}  # black, and white on a dark page
    if drawer.__name__ == MATPLOTLIB:
        return {**look, "marker": [marker for _, marker, _ in looks], "linestyle": [line for _, _, line in looks]}
    return {**look, **{key: drawer.get_default_aes(key, many) for key in ("marker", "linestyle")}}


def _quantiles(groups: Iterable["xr.DataTree"], name: str, rows: int, probability: float) -> np.ndarray:
    """Lower end, median and upper end of every entry in every tree, (3, trees, rows): NaN in a tree without the variable."""
    tail = (1 - probability) / 2
    absent = np.full((3, rows), np.nan)
    return np.stack(
        [np.quantile(_entries(group[name]), [tail, 0.5, 1 - tail], axis=0) if name in group else absent for group in groups], axis=1
    )


def _broken(low: np.ndarray, high: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Lines from low to high at their places, all (trees, rows), as points (trees, 2, 3 rows) with a gap after every line."""
    gap = np.full_like(low, np.nan)
    return np.stack([np.stack([low, high, gap], axis=-1), np.stack([place, place, gap], axis=-1)], axis=1).reshape(len(low), 2, -1)


def _collection(
    data: xr.Dataset, rows: Mapping[str, Sequence[str]], height: float, drawer: Any, looks: dict[str, list[str]]
) -> "PlotCollection":
    """A plot for every variable, as high as its rows ask for; looks are those of trees."""
    across, most = min(len(rows), WRAP), max(map(len, rows.values()))
    down = -(-len(rows) // WRAP)
    wide, high = 1.5 + 3.4 * across, 0.6 + down * (1.0 + height * most)
    size: dict[str, Any] = {"figsize": (100 * wide, 100 * high), "figsize_units": "dots"}
    if drawer.__name__ == MATPLOTLIB:
        size = {"figsize": (wide, high), "figsize_units": "inches", "layout": "constrained"}
    return arviz_plots.PlotCollection.wrap(
        data, cols=["__variable__"], col_wrap=WRAP, backend=drawer.__name__.rpartition(".")[2], aes={key: [TREE] for key in looks},
        figure_kwargs=size, **looks,
    )  # fmt: skip


def _finish(
    picture: "PlotCollection", rows: Mapping[str, Sequence[str]], drawer: Any, words: Mapping[str, str], title: str, width: float
) -> None:
    """A row for every entry, from the top; the one of a variable without entries has no name and no tick."""

    def finish(da: xr.DataArray, target: Any, var_name: str, **_: object) -> None:
        labels = list(rows[var_name])
        drawer.yticks(list(range(len(labels))) if any(labels) else [], labels if any(labels) else [], target)
        drawer.ylim((len(labels) - 0.5, -0.5), target)
        drawer.xlabel(words[var_name], target)

    picture.map(finish, "rows", ignore_aes="all", subset_info=True, store_artist=False)
    if drawer.__name__ == MATPLOTLIB:
        below = {"frameon": False, "ncols": min(picture.data.sizes[TREE], 5), "loc": "outside lower center", "handlelength": 3}
        picture.add_legend(TREE, title="", visual_kwargs={"linewidth": width}, **below)
    else:  # their legends know lines only
        picture.add_legend(TREE, aes=sorted(picture.aes_set & {"color", "linestyle"}), title="")
    picture.add_title(fill(title, int(8 * (1.5 + 3.4 * min(len(rows), WRAP)))))


def draws_of(tree: object) -> "xr.DataTree":
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
    if not 0 < len(names) <= MOST_VARIABLES:
        raise Refusal(f"Between 1 and {MOST_VARIABLES} variables are drawn, and not {len(names)}. Write var_names=[...].")
    return names


def _entries(values: "xr.DataArray") -> np.ndarray:
    """Draws of every entry: (draws, entries)."""
    return values.values.reshape(values.shape[0] * values.shape[1], -1)


def _labels(values: "xr.DataArray") -> list[str]:
    """What the entries of a variable are called, by the labels of its dims."""
    dims = [str(dim) for dim in values.dims[2:]]
    marks = [values[dim].values if dim in values.coords else np.arange(values.sizes[dim]) for dim in dims]
    return [", ".join(str(labels[at]) for labels, at in zip(marks, place, strict=True)) for place in np.ndindex(*values.shape[2:])]
