"""Pictures of audits, ledgers and plans, drawn from those objects and nothing else."""

from collections.abc import Sequence
from itertools import cycle
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dp.audits.audit import SURE, Audit
from pymc_dp.plans.widths import PlannedWidth, PlannedWidths
from pymc_dp.plots.drawing import FIRST, HATCHES, LOOKS, SECOND, WRONG, check_drawn, entitle, ink, name_points, pyplot
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.calls import explained
from pymc_dp.privacy.ledger import Ledger

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW = 40
"""So many different values are drawn one by one; more, as a histogram."""
MOST_VARIABLES = 4
"""So many variables of a plan are drawn where none are named."""
MOST_NAMED = 15
"""So many charges have their names written beside them."""


@explained
def plot_audit(audit: Audit) -> "np.ndarray[Any, np.dtype[np.object_]]":
    """Plot an audit: the score under both data sets with the event's region, and the bound beside the claimed epsilon.

    Parameters
    ----------
    audit : Audit

    Returns
    -------
    (2,) ndarray of matplotlib.axes.Axes
        The scores, and the epsilons in nats. Their figure is ``axes[0].figure``.

    Raises
    ------
    Refusal
        Where matplotlib is not installed.

    Examples
    --------
    >>> result = pmdp.audit(lambda votes: sum(votes), [0, 1], [1, 1], epsilon=1.0, n=2_000, progressbar=False)
    >>> axes = pmdp.plot_audit(result)
    >>> axes.shape
    (2,)
    """
    check_drawn(audit, Audit, "plot_audit(pymc_dp.audit(...))")
    plt = pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), width_ratios=[2.6, 1.4], layout="constrained")
    _scores(axes[0], audit)
    _epsilons(axes[1], audit)
    verdict = "passed: no more was found than is claimed" if audit.passed else "FAILED: more was found than is claimed"
    entitle(figure, f"Audit {verdict}", color=ink() if audit.passed else ink(WRONG), fontweight="bold")
    return axes


@explained
def plot_ledger(ledger: Ledger) -> "np.ndarray[Any, np.dtype[np.object_]]":
    """Plot a ledger: every charge in turn with its variables, all questions together, and what was granted.

    Parameters
    ----------
    ledger : Ledger

    Returns
    -------
    (1,) or (2,) ndarray of matplotlib.axes.Axes
        Pure epsilon in nats, unless something that is not pure was charged; rho, where a delta was granted. Either sum has to stay
        within its grant. Parts of the data set have a bar each, which stands on what the whole was charged.

    Raises
    ------
    Refusal
        Where matplotlib is not installed, or the ledger cannot be read.

    Examples
    --------
    >>> ledger = pmdp.Ledger("survey.ledger", epsilon=2.0, create=True)
    >>> released = pmdp.release(model, epsilon=0.5, ledger=ledger)
    >>> axes = pmdp.plot_ledger(ledger)
    >>> axes.shape
    (1,)
    """
    check_drawn(ledger, Ledger, "plot_ledger(pymc_dp.Ledger(path))")
    plt, entries, granted = pyplot(), ledger.entries(), ledger.granted
    charges = entries[entries["kind"] == "charge"]
    charges = charges.assign(what=charges["what"].where(charges["session"] == "", "questions"))
    sums = [] if (charges["delta"] > 0).any() else [("epsilon", float(granted.epsilon), "epsilon (nats)")]
    sums += [("rho", float(granted.rho), f"rho, for delta {float(granted.delta):g}")] if granted.rho is not None else []
    bars = ["", *ledger.parts]
    height = 1.4 + 0.5 * len(bars)
    figure, axes = plt.subplots(len(sums), 1, figsize=(9, height * len(sums)), layout="constrained", squeeze=False)
    kinds = enumerate(dict.fromkeys(charges["what"]))
    looks = {what: {"color": plt.get_cmap("tab10")(k % 10), "hatch": HATCHES[k % len(HATCHES)], "edgecolor": "white"} for k, what in kinds}
    for ax, (column, limit, words) in zip(axes[:, 0], sums, strict=True):
        whole = charges.loc[charges["part"] == "", column].sum()
        for place, part in enumerate(bars):
            left = whole if part else 0.0
            if part:
                ax.barh(place, whole, 0.6, color="0.85")
            for what, cost in charges.loc[charges["part"] == part, ["what", column]].itertuples(index=False):
                ax.barh(place, cost, 0.6, left=left, **looks[what])
                left += cost
            ax.text(left, place, f" {left:.3g}", va="center", fontsize=9)
        ax.axvline(limit, color=ink(), linewidth=1.2)
        ax.text(limit, -0.55, f"granted: {limit:.3g} ", ha="right", va="bottom", fontsize=9)
        ax.set_yticks(range(len(bars)), [part or "all of it" for part in bars])
        ax.set_ylim(len(bars) - 0.5, -0.6)
        ax.set_xlim(0, 1.1 * max(limit, charges[column].sum()))
        ax.set_xlabel(words)
        ax.spines[["top", "right"]].set_visible(False)
    shown = [
        plt.Rectangle((0, 0), 1, 1, **{("facecolor" if key == "color" else key): value for key, value in look.items()})
        for look in looks.values()
    ]
    figure.legend(shown, looks, frameon=False, ncols=min(len(shown), 6) or 1, loc="outside lower center")
    either = "; one of the two sums has to stay within what was granted, not both" if len(sums) > 1 else ""
    entitle(figure, f"{ledger.path.name}: what was charged{either}", fontweight="bold")
    return axes[:, 0]


@explained
def plot_spending(ledger: Ledger) -> "Axes":
    """Plot what was spent over time: the sum of all charges, what each was for, and what was granted when.

    Parameters
    ----------
    ledger : Ledger

    Returns
    -------
    matplotlib.axes.Axes
        Time (UTC) to the right; upwards pure epsilon in nats, or rho where something was charged that is not pure. Parts of the data
        set have a line each, which begins where the charges of the whole end.

    Raises
    ------
    Refusal
        Where matplotlib is not installed, or the ledger cannot be read.

    Examples
    --------
    >>> ledger = pmdp.Ledger("survey.ledger", epsilon=2.0, create=True)
    >>> released = pmdp.release(model, epsilon=0.5, ledger=ledger)
    >>> ax = pmdp.plot_spending(ledger)
    >>> ax.get_ylabel()
    'epsilon spent (nats)'
    """
    check_drawn(ledger, Ledger, "plot_spending(pymc_dp.Ledger(path))")
    import pandas as pd
    from matplotlib.dates import ConciseDateFormatter

    plt, entries, granted = pyplot(), ledger.entries(), ledger.granted
    when = pd.to_datetime(entries["time"]).dt.tz_localize(None)
    charges = entries[entries["kind"] == "charge"]
    pure = granted.rho is None or not (charges["delta"] > 0).any()
    column = "epsilon" if pure else "rho"
    figure, ax = plt.subplots(figsize=(9, 4), layout="constrained")
    last = when.iloc[-1] + max(0.08 * (when.iloc[-1] - when.iloc[0]), pd.Timedelta(seconds=1))
    names = list[tuple[Any, float, str]]()
    for (colour, marker, line), part in zip(cycle(LOOKS), ["", *ledger.parts]):
        part_charges = charges[charges["part"].isin(["", part])]
        times, sums = [when.iloc[0], *when[part_charges.index], last], part_charges[column].cumsum()
        ax.step(
            times, [0, *sums, sums.iloc[-1] if len(sums) else 0], where="post", color=ink(colour), linestyle=line, label=part or "all of it"
        )
        mine = (part_charges["part"] == part).to_numpy()
        ax.plot(when[part_charges.index][mine], sums[mine], marker, color=ink(colour), markersize=5)
        if len(part_charges) <= MOST_NAMED:
            at_last: dict[str, pd.Timestamp] = {}  # of a name where it stands already: charges of one minute share it
            for at, total, what in zip(when[part_charges.index][mine], sums[mine], part_charges["what"][mine]):
                if what not in at_last or at - at_last[what] >= 0.05 * (last - when.iloc[0]):
                    at_last[what] = at
                    names.append((at, total, what))
    grants = entries[entries["kind"].isin(["open", "grant"])]
    limits = grants[column] if pure else [float(granted.rho or 0)] * len(grants)
    ax.step(
        [*when[grants.index], last],
        [*limits, list(limits)[-1]],
        where="post",
        color=ink(),
        linewidth=1,
        linestyle=(0, (1, 1)),
        label="granted",
    )
    ax.set_xlabel("time (UTC)")
    ax.set_ylabel("epsilon spent (nats)" if pure else f"rho spent, for delta {float(granted.delta):g}")
    ax.set_ylim(0, 1.1 * max([*limits, charges[column].sum()]))
    ax.xaxis.set_major_formatter(ConciseDateFormatter(ax.xaxis.get_major_locator()))
    ax.legend(fontsize=8, frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
    ax.spines[["top", "right"]].set_visible(False)
    entitle(figure, f"{ledger.path.name}: what was spent, and when", fontweight="bold")
    name_points(ax, names)
    return ax


@explained
def plot_plan(planned: PlannedWidths, var_names: Sequence[str] | None = None) -> "np.ndarray[Any, np.dtype[np.object_]]":
    """Plot a plan: how wide intervals are at every epsilon and without privacy, and how much of the variance is there for privacy.

    Parameters
    ----------
    planned : PlannedWidths
    var_names : list of str, optional
        The variables; the first four if left out.

    Returns
    -------
    (2, variables) ndarray of matplotlib.axes.Axes
        Widths above, the split of the variance by the first mechanism below. Their figure is ``axes[0, 0].figure``.

    Raises
    ------
    Refusal
        Where matplotlib is not installed, or a variable is none of the plan's.

    Examples
    --------
    >>> planned = pmdp.plan(model, epsilon=[0.1, 1], simulations=1, draws=50, tune=50, random_seed=1, progressbar=False)
    >>> pmdp.plot_plan(planned).shape
    (2, 1)
    """
    check_drawn(planned, PlannedWidths, "plot_plan(pymc_dp.plan(model, epsilon=[0.1, 1]))")
    names = list(dict.fromkeys(row.variable for row in planned.rows))
    shown = names[:MOST_VARIABLES] if var_names is None else list(var_names)
    if not shown or not set(shown) <= set(names):
        raise Refusal(f"var_names holds variables of the plan. Write one of {', '.join(map(repr, names))}.")
    plt = pyplot()
    figure, axes = plt.subplots(2, len(shown), figsize=(1 + 3.6 * len(shown), 6), squeeze=False, sharex=True, layout="constrained")
    for k, name in enumerate(shown):
        rows = [row for row in planned.rows if row.variable == name]
        _widths(axes[0, k], rows)
        _split(axes[1, k], [row for row in rows if row.mechanism == rows[0].mechanism])
        axes[0, k].set_title(name)
    axes[0, 0].set_ylabel("width of the 90 % interval")
    axes[1, 0].set_ylabel(f"share of the variance,\n{planned.rows[0].mechanism} noise")
    (lines, named), (areas, of) = (ax.get_legend_handles_labels() for ax in axes[:, 0])
    figure.legend(
        [*lines, *areas],
        [*named, *of],
        frameon=False,
        fontsize=8,
        ncols=max(int(figure.get_figwidth() / 2.2), 1),
        loc="outside lower center",
    )
    entitle(figure, "What epsilon buys, on simulated records (vertical bars: two standard errors)", fontweight="bold")
    return axes


def _widths(ax: "Axes", rows: Sequence[PlannedWidth]) -> None:
    """Every mechanism as a line with error bars of two standard errors, and what there would be without privacy."""
    for mechanism, (colour, marker, line) in zip(dict.fromkeys(row.mechanism for row in rows), cycle(LOOKS[1:])):
        mechanism_rows = [row for row in rows if row.mechanism == mechanism]
        errors = [2 * row.error if np.isfinite(row.error) else 0.0 for row in mechanism_rows]
        ax.errorbar(
            [row.epsilon for row in mechanism_rows],
            [row.interval for row in mechanism_rows],
            errors,
            color=ink(colour),
            marker=marker,
            linestyle=line,
            markersize=4,
            capsize=2,
            label=mechanism,
        )
    ax.axhline(rows[0].interval_without, color=ink(), linewidth=1.2, label="without privacy")
    ax.set_xscale("log")
    ax.set_ylim(0, 1.05 * max(row.interval + (2 * row.error if np.isfinite(row.error) else 0.0) for row in rows))
    ax.spines[["top", "right"]].set_visible(False)


def _split(ax: "Axes", rows: Sequence[PlannedWidth]) -> None:
    """The posterior variance in two parts: what would be there without privacy, and the rest."""
    epsilons, privacy = [row.epsilon for row in rows], np.array([row.privacy for row in rows])
    ax.fill_between(epsilons, 0, 1 - privacy, color="0.75", linewidth=0, label="variance there is without privacy")
    ax.fill_between(epsilons, 1 - privacy, 1, facecolor=FIRST, edgecolor="white", hatch="///", linewidth=0, label="variance due to privacy")
    ax.set_ylim(0, 1)
    ax.set_xlabel("epsilon (nats)")
    values = sorted(set(epsilons))
    ax.set_xticks(values, [f"{value:g}" for value in values])
    ax.minorticks_off()
    ax.spines[["top", "right"]].set_visible(False)


def _scores(ax: "Axes", audit: Audit) -> None:
    """Shares of runs by score, the event shaded."""
    scores = np.where(np.isinf(audit.scores), np.nan, audit.scores)
    values = np.unique(scores[~np.isnan(scores)])
    if not len(values):
        ax.text(0.5, 0.5, "all runs were alike", ha="center", va="center", transform=ax.transAxes)
        ax.set_axis_off()
        return
    low, high, edge = (_bars if len(values) <= FEW else _histograms)(ax, audit, scores, values)
    ax.axvspan(*((edge, high) if audit.above else (low, edge)), color="0.5", alpha=0.15, zorder=0)
    ax.axvline(edge, color="0.35", linestyle="--", linewidth=1)
    ax.set_xlim(low, high)
    ax.set_xlabel(fill(f"shaded: {audit.event}", 80))
    ax.set_ylabel("share of runs")
    ax.legend(frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    ax.spines[["top", "right"]].set_visible(False)


def _legends(audit: Audit) -> list[tuple[str, str, str]]:
    """Of either data set its words, its colour, and a hatch by which it is known without colour."""
    names = ("on D", "on D_neighbour")
    words = [f"{name}: {hits / audit.counted:.3g} in the shade" for name, hits in zip(names, audit.hits, strict=True)]
    return list(zip(words, (FIRST, SECOND), HATCHES[:2], strict=True))


def _bars(ax: "Axes", audit: Audit, scores: np.ndarray, values: np.ndarray) -> tuple[float, float, float]:
    """Every value by itself: where it lies if values are evenly spaced, otherwise side by side."""
    gaps = np.diff(values)
    gap = float(gaps.min()) if len(gaps) else 1.0
    even = len(values) > 1 and np.allclose(gaps / gap, np.rint(gaps / gap)) and values[-1] - values[0] < 2 * FEW * gap
    places = values if even else np.arange(len(values))
    gap = gap if even else 1.0
    for k, (runs, (words, colour, hatch)) in enumerate(zip(scores, _legends(audit), strict=True)):
        shares = [(runs == value).sum() / audit.counted for value in values]
        ax.bar(places + (k - 0.5) * 0.4 * gap, shares, 0.4 * gap, color=colour, hatch=hatch, edgecolor="white", linewidth=0, label=words)
    if not even:
        shown = np.arange(0, len(values), len(values) // 12 + 1)
        ax.set_xticks(shown, [f"{values[k]:.3g}" for k in shown])
    inside = places[values >= audit.cut] if audit.above else places[values <= audit.cut]
    low, high = float(places[0]) - gap, float(places[-1]) + gap
    if audit.above:
        return low, high, float(inside.min()) - gap / 2 if len(inside) else high
    return low, high, float(inside.max()) + gap / 2 if len(inside) else low


def _histograms(ax: "Axes", audit: Audit, scores: np.ndarray, values: np.ndarray) -> tuple[float, float, float]:
    """Sixty bins over all but the outermost values, which are added to the first and the last."""
    low, high = np.nanquantile(scores, [0.002, 0.998])
    low, high = min(low, audit.cut), max(high, audit.cut)
    low, high = low - 0.02 * (high - low), high + 0.02 * (high - low)
    bins = np.linspace(low, high, 61).tolist()
    for runs, (words, colour, hatch) in zip(scores, _legends(audit), strict=True):
        seen = np.clip(runs[~np.isnan(runs)], low, high)
        weights = np.full(len(seen), 1 / audit.counted)
        ax.hist(seen, bins, weights=weights, histtype="stepfilled", color=colour, alpha=0.45, hatch=hatch, label=words)
        ax.hist(seen, bins, weights=weights, histtype="step", color=colour, linewidth=1.2)
    return float(low), float(high), audit.cut


def _epsilons(ax: "Axes", audit: Audit) -> None:
    """The bound as a bar, the claim as a line, and what would have been found as a dotted one."""
    claimed, detectable = float(audit.epsilon), float(audit.epsilon) * audit.factor
    ax.bar([0], [audit.lower], 0.6, color="0.6" if audit.passed else ink(WRONG))
    ax.axhline(claimed, color=ink(), linewidth=1.2)
    beside: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "fontsize": 9}
    ax.annotate(f"claimed: {claimed:.3g}", (1.75, claimed), (0, -3), va="top", **beside)
    if np.isfinite(detectable):
        ax.axhline(detectable, color=ink(), linestyle=":", linewidth=1.2)
        ax.annotate(f"so much would be found\n{SURE:.1%} of the time: {detectable:.3g}", (1.75, detectable), (0, 3), va="bottom", **beside)
    ax.set_xlim(-0.4, 1.8)
    ax.set_ylim(0, 1.15 * max(claimed, audit.lower, detectable if np.isfinite(detectable) else 0.0))
    ax.set_xticks([0], [f"found:\nat least {audit.lower:.3g}"])
    ax.set_ylabel("epsilon (nats)")
    ax.spines[["top", "right"]].set_visible(False)
