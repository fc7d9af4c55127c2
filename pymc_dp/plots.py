"""Pictures of what the corridor returns, from those objects and nothing else. It is the last room.

Matplotlib is imported when a picture is drawn, so the library works without it.
"""

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dp.accounting import Refusal
from pymc_dp.audit import SURE, Audit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW = 40
"""So many different values are drawn one by one; more, as a histogram."""
FIRST, SECOND, WRONG = "#1b6ca8", "#e07b00", "#b00020"


def plot_audit(audit: Audit) -> "np.ndarray[Any, np.dtype[np.object_]]":
    """What an audit saw: the score under both data sets with the event's region, and the bound beside the claim.

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
    """
    plt = _pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), width_ratios=[2.6, 1.4], layout="constrained")
    _scores(axes[0], audit)
    _epsilons(axes[1], audit)
    figure.suptitle(f"Audit {'passed' if audit.passed else 'FAILED'}", color="black" if audit.passed else WRONG, fontweight="bold")
    return axes


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        missing = True
    else:
        return plt
    assert missing
    raise Refusal("Pictures need matplotlib, which is not installed. Write pip install matplotlib.")


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


def _legends(audit: Audit) -> list[tuple[str, str]]:
    names = ("on D", "on D_neighbour")
    words = [f"{name}: {hits / audit.counted:.3g} in the shade" for name, hits in zip(names, audit.hits, strict=True)]
    return list(zip(words, (FIRST, SECOND), strict=True))


def _bars(ax: "Axes", audit: Audit, scores: np.ndarray, values: np.ndarray) -> tuple[float, float, float]:
    """Every value by itself: where it lies if values are evenly spaced, otherwise side by side."""
    gaps = np.diff(values)
    gap = float(gaps.min()) if len(gaps) else 1.0
    even = len(values) > 1 and np.allclose(gaps / gap, np.rint(gaps / gap)) and values[-1] - values[0] < 2 * FEW * gap
    places = values if even else np.arange(len(values))
    gap = gap if even else 1.0
    for k, (one, (words, colour)) in enumerate(zip(scores, _legends(audit), strict=True)):
        shares = [(one == value).sum() / audit.counted for value in values]
        ax.bar(places + (k - 0.5) * 0.4 * gap, shares, 0.4 * gap, color=colour, label=words)
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
    for one, (words, colour) in zip(scores, _legends(audit), strict=True):
        seen = np.clip(one[~np.isnan(one)], low, high)
        weights = np.full(len(seen), 1 / audit.counted)
        ax.hist(seen, bins, weights=weights, histtype="stepfilled", color=colour, alpha=0.45, label=words)
        ax.hist(seen, bins, weights=weights, histtype="step", color=colour, linewidth=1.2)
    return float(low), float(high), audit.cut


def _epsilons(ax: "Axes", audit: Audit) -> None:
    """The bound as a bar, the claim as a line, and what would have been found as a dotted one."""
    claimed, found = float(audit.epsilon), float(audit.epsilon) * audit.factor
    ax.bar([0], [audit.lower], 0.6, color="0.6" if audit.passed else WRONG)
    ax.axhline(claimed, color="black", linewidth=1.2)
    ax.text(1.75, claimed, f"claimed: {claimed:.3g}", ha="right", va="top", fontsize=9)
    if np.isfinite(found):
        ax.axhline(found, color="black", linestyle=":", linewidth=1.2)
        ax.text(1.75, found, f"found {SURE:.1%} of the time: {found:.3g}", ha="right", va="bottom", fontsize=9)
    ax.set_xlim(-0.4, 1.8)
    ax.set_ylim(0, 1.15 * max(claimed, audit.lower, found if np.isfinite(found) else 0.0))
    ax.set_xticks([0], [f"found:\nat least {audit.lower:.3g}"])
    ax.set_ylabel("epsilon (nats)")
    ax.spines[["top", "right"]].set_visible(False)
