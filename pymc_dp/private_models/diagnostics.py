"""Warnings, of one line each, if draws cannot be trusted: R-hat, divergences, and values beyond the bounds."""

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from pymc_dp.privacy.guard import PACKAGE
from pymc_dp.releases.noisy_statistic import NoisyStatistic
from pymc_dp.releases.pooling import apart

if TYPE_CHECKING:
    import xarray as xr

LARGEST_R_HAT = 1.05
"""Above, chains disagree. Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021) want 1.01 of final results; of two chains of 500 independent
draws one parameter in a thousand is above that by chance, and none in a billion above 1.05."""
LEAST_EFFECTIVE = 100
"""Effective draws of a chain, on the average, below which R-hat is not trusted: the same, section 4."""
LEAST_DRAWS = 100
"""The length of a chain below which nothing is said, as in PyMC."""
MUCH = 0.02
"""The share of values that may lie outside their bounds, by the model, without a word."""
CLEAR = 0.25
"""The noise on a variance, of that variance, from which on nothing is said of a cell."""


class ClampedWarning(UserWarning):
    """By the model many values lie outside their bounds; values at a bound are taken for values that were moved there. Or draws from the
    posterior keep probabilities away from 0 and 1 by so much that much of their prior is cut off.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("error", pmdp.ClampedWarning)  # stop where bounds are too narrow
    """


class ConvergenceWarning(UserWarning):
    """Chains disagree, hardly moved, or diverged, or draws lie at one or two points of a grid: their intervals may be wrong.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("error", pmdp.ConvergenceWarning)  # stop where chains are not to be trusted
    """


def warn_if_unsettled(tree: "xr.DataTree", advice: str) -> None:
    """Warn in one line where a tree's draws are not to be trusted.

    Parameters
    ----------
    tree : xarray.DataTree
        With a group ``posterior``, of dims chain and draw, and ``sample_stats`` where there are divergences to be counted.
    advice : str
        What to do then, a sentence.
    """
    if problems := problems_of_chains(tree):
        warnings.warn(f"The chains cannot be trusted: {'; '.join(problems)}. {advice}", ConvergenceWarning, skip_file_prefixes=(PACKAGE,))


def problems_of_chains(tree: "xr.DataTree") -> list[str]:
    """Why a tree's draws are not to be trusted; nothing where they are."""
    posterior = tree["posterior"]
    chains, draws = posterior.sizes["chain"], posterior.sizes["draw"]
    if draws < LEAST_DRAWS:
        return []
    problems = []
    if chains > 1:
        worst, r_hat, effective = "", 1.0, np.inf
        for name, values in posterior.data_vars.items():
            if values.dtype.kind not in "biuf" or not values.size:
                continue
            by_entry = values.transpose("chain", "draw", ...).values.reshape(chains, draws, -1)
            largest, least = _diagnostics(by_entry)
            effective = min(effective, least)
            if largest > r_hat:
                worst, r_hat = str(name), largest
        if r_hat > LARGEST_R_HAT:
            problems.append(f"R-hat of {worst} is {r_hat:.3g}, above {LARGEST_R_HAT}")
        if effective < LEAST_EFFECTIVE * chains:
            problems.append(f"the least effective sample size is {effective:.0f}, below {LEAST_EFFECTIVE * chains}")
    if "sample_stats" in tree.children and "diverging" in tree["sample_stats"].data_vars:
        diverged = int(tree["sample_stats"]["diverging"].sum())
        if diverged:
            problems.append(f"{diverged:,} of {chains * draws:,} draws diverged")
    return problems


def _diagnostics(draws: np.ndarray) -> tuple[float, float]:
    """The largest R-hat and the least effective sample size of draws (chain, draw, entry); entries that never move say nothing."""
    from arviz_stats.base import array_stats

    draws = draws[..., np.ptp(draws, axis=(0, 1)) > 0].astype(float)
    if not draws.shape[-1]:
        return 1.0, np.inf
    r_hat = array_stats.rhat(draws, chain_axis=0, draw_axis=1)
    effective = array_stats.ess(draws, chain_axis=0, draw_axis=1, method="bulk")
    return float(np.nanmax(r_hat)), float(np.nanmin(effective))


def warn_if_clamped(statistics: Iterable[NoisyStatistic]) -> None:
    """Warn of normal values of which, by the moments that were released, a share above ``MUCH`` lies outside the bounds."""
    for noisy in statistics:
        share = _outside(noisy)
        if share > MUCH:
            ends = np.array([noisy.domain.lower, noisy.domain.upper])
            lower, upper = np.exp(ends) if noisy.regression is not None and noisy.distribution == "LogNormal" else ends
            pair = f"({lower:g}, {upper:g})"
            within, natural = ("its bounds", "[pymc_dp.Natural(...), ...]") if noisy.domain.columns else (pair, f"pymc_dp.Natural{pair}")
            consequence = "values at a bound are taken for moved there"
            if noisy.regression is not None:
                consequence = "counts as the nearer bound, which makes slopes flatter by about as much or more"
            name = noisy.variable
            warnings.warn(
                f"If {name} is {noisy.distribution}, about {share:.0%} of it lies outside {within}, and {consequence}."
                f" If none can lie outside, write bounds={{{name!r}: {natural}}}; if some do, widen the bounds.",
                ClampedWarning,
                skip_file_prefixes=(PACKAGE,),
            )


def _outside(noisy: NoisyStatistic) -> float:
    """The share of a normal variable outside its bounds, as far as released means and variances tell; 0 where they do not.

    A normal response with normal covariates is normal itself, and by Stein's lemma its slopes on what is moved to the bounds are the true
    ones times the share that lies within. Its released variance is that of clamped values, so the share outside is at least this.
    """
    if noisy.distribution not in ("Normal", "LogNormal") or noisy.tabulated or not noisy.domain.clamps:
        return 0.0
    moments = _of_response(noisy) if noisy.regression is not None else _of_values(noisy)
    if moments is None:
        return 0.0
    n, mean, variance = moments
    from scipy.special import ndtr  # not with the package: import is to be light

    with np.errstate(all="ignore"):
        clear = _spread(noisy) / n < CLEAR * np.minimum(variance, 1.0)  # of values within the bounds it is at most 1
        outside = ndtr((-1 - mean) / np.sqrt(variance)) + ndtr((mean - 1) / np.sqrt(variance))
    weights = np.where(clear, n, 0.0)
    return float((weights * np.where(clear, outside, 0.0)).sum() / weights.sum()) if weights.sum() else 0.0


def _spread(noisy: NoisyStatistic) -> float:
    """Standard deviation of the noise on the sum of squares, in the units of ``Moments``."""
    if noisy.regression is None or not noisy.regression.scales:
        return noisy.scale * noisy.lattice
    return float(noisy.deviations[-1] * _of_bounds(noisy)[1] ** 2)


def _of_bounds(noisy: NoisyStatistic) -> tuple[float, float]:
    """Where 0 of a published response is, and how large 1 is, when its bounds are scaled to (-1, 1)."""
    assert noisy.regression is not None
    centre, half = noisy.regression.centres()
    middle, width = noisy.domain.lower / 2 + noisy.domain.upper / 2, noisy.domain.half_width
    return (centre[-1] - middle) / width, half[-1] / width


type Moments = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Numbers of records, means and variances in cells, of values whose bounds are scaled to (-1, 1)."""


def _of_values(noisy: NoisyStatistic) -> Moments | None:
    """The moments of values that are released by their sum and sum of squares."""
    if noisy.sizes != "public" or noisy.values.shape[-1] != 2 or noisy.weights.size or noisy.combination.size:
        return None
    n = np.broadcast_to(noisy.n.reshape(-1, *[1] * (noisy.values.ndim - 2)).astype(float), noisy.values.shape[:-1])
    with np.errstate(all="ignore"):
        mean = noisy.values[..., 0] / n
        return n, mean, noisy.values[..., 1] / n - mean**2


def _of_response(noisy: NoisyStatistic) -> Moments | None:
    """The moments of a response with covariates, if its squares are released."""
    regression = noisy.regression
    assert regression is not None
    if regression.link or regression.scale_known or regression.q > 1:
        return None
    if noisy.multipliers.size:
        released, n = apart(noisy), noisy.n.sum(keepdims=True).astype(float)
        mean = released.totals[-1:] / n
        return n, mean, released.moments[-1:] / n - mean**2
    matrix = regression.matrix(noisy.values, noisy.known * noisy.lattice)
    n = matrix[..., 0, 0]
    with np.errstate(all="ignore"):
        mean = matrix[..., 0, -1] / n
        variance = matrix[..., -1, -1] / n - mean**2
    if regression.scales:  # these are about 0, and not about the middle of the bounds
        zero, unit = _of_bounds(noisy)
        return n, zero + unit * mean, unit**2 * variance
    return n, mean, variance
