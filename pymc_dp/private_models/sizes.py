"""Numbers of records per cell that are not public: unknowns of the private model.

All numbers are as likely beforehand, but for those of covariates in bins, which have a law of their own (``bin_shares``). What released
values say of them decides only where a sampler starts and how long its steps are. Where many public cells have few records each, the means
of shares over these cells have the law that shares have elsewhere: see ``_means_of_shares``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.logprob.transforms import Transform
from pytensor.graph.basic import Variable

from pymc_dp.private_models.bin_shares import concentrations, knows_bins, unknowns_of
from pymc_dp.private_models.size_priors import (
    AboutMost,
    Kept,
    LogFromStart,
    LogitFromStart,
    Present,
    Shares,
    Sizes,
    any_shares,
    flat_shares,
    logits_of,
    shares_about,
)
from pymc_dp.releases.noisy_statistic import NoisyStatistic

SIZE = "_size"
"""Ending of the names of unknown numbers of records per cell, which are the model's own."""

MEAN = f"{SIZE}_mean"
"""Ending of the names of the means of shares over public cells."""
OF_BINS = f"{SIZE}_shape"
"""Ending of the names of what says how covariates in bins are spread: standard normal."""
LEVELS = f"{SIZE}_levels"
"""Ending of the names of the shares of levels beside covariates in bins."""
SHARES = f"{SIZE}_shares"
"""Ending of the names of the Potentials that say how numbers of records are spread over bins, where their sum is not public."""
MANY_CELLS = 5
"""From so many public cells on their shares have unknown means."""
SMALL = 0.25
"""Noise, times the root of the number of public cells, in units of what a private cell holds, that flat priors may be combined with."""

WIDEST_STEP = 1.5
"""The longest step in the logarithm of a size, or in the logit of a share: about the standard deviation if all shares are as likely."""
FAR_BELOW = 30.0
"""A normal variable above 0 whose middle is so many standard deviations below 0, or more, is taken for an exponential one."""


# ---------- what released values say
def guessed_sizes(noisy: NoisyStatistic) -> np.ndarray:
    """Numbers of records per cell where they are public, and otherwise what released values say of them: see ``_released_sizes``."""
    if noisy.sizes == "public":
        return noisy.n.astype(float).reshape(-1, *[1] * (noisy.noisy.ndim - 2))
    return np.maximum(_released_sizes(noisy), 1.0)


def _released_sizes(noisy: NoisyStatistic) -> np.ndarray:
    """What released values say of the numbers of records per cell (G V, 1...), or (G V, *C) where every column has its own."""
    if noisy.regression is not None:
        sizes = noisy.values[..., noisy.regression.entries.index((0, 0))]
    elif noisy.combination.size:  # the first number is that of the records, in units of its noise
        sizes = noisy.values[..., 0] / noisy.combination[..., 0, 0]
    else:
        assert noisy.family is not None
        sizes = noisy.values.sum(axis=-1) / (noisy.family.cell_sensitivity(noisy.domain).total * noisy.unit)
    return sizes if noisy.variable in noisy.left_out else sizes.mean(axis=tuple(range(1, sizes.ndim)), keepdims=True)


def _noise_of_sizes(noisy: NoisyStatistic) -> float | np.ndarray:
    """Standard deviation of the noise on the released number of records of a cell and a column; (G,) where cells differ."""
    sd = noisy.noise.standard_deviation
    if noisy.combination.size:
        return sd / noisy.combination[..., 0, 0]
    if noisy.regression is not None:
        return sd / noisy.regression.weights[noisy.regression.entries.index((0, 0))]
    assert noisy.family is not None
    return float(sd * np.sqrt(noisy.noisy.shape[-1]) / (noisy.family.cell_sensitivity(noisy.domain).total * noisy.unit))


def shares_near(noisy: NoisyStatistic, counted: bool) -> tuple[np.ndarray, np.ndarray]:
    """Shares (G, V) that released values suggest, and their logits with standard deviations (G, V - 1, 2).

    Only where a sampler starts and how far it steps rests on them.
    """
    released = _released_sizes(noisy).reshape(-1, noisy.private_cells)
    return _near(released, _noise_of_shares(noisy), noisy.n, counted)


def _noise_of_shares(noisy: NoisyStatistic) -> np.ndarray:
    """Variance (G or 1, 1) of the noise on what ``_released_sizes`` says."""
    return np.reshape(_noise_of_sizes(noisy), (-1, 1)) ** 2 / np.prod(noisy.noisy.shape[1:-1])


def _near(released: np.ndarray, variance: np.ndarray, n: np.ndarray, counted: bool) -> tuple[np.ndarray, np.ndarray]:
    """What released sizes (G, V), with a variance of their noise, suggest of shares of n (G,) records: see ``shares_near``.

    Of equally likely shares every size is nearly exponential; the noise, and what counts move about their sizes, is taken as normal, so a
    size is a normal variable above 0.
    """
    from scipy.special import log_ndtr

    typical = np.maximum(n, 1)[:, None] / released.shape[1]
    sd = np.sqrt(variance + counted * np.maximum(released, 1.0))
    middle = released / sd - sd / typical
    above = np.maximum(middle, -FAR_BELOW)
    steep = np.exp(-0.5 * above**2 - log_ndtr(above)) / np.sqrt(2 * np.pi)
    low = middle < -FAR_BELOW  # exponential, as far as it goes
    size = sd * np.where(low, -1 / np.minimum(middle, -1.0), above + steep)
    variance = np.where(low, size**2, sd**2 * (1 - steep * (above + steep)))
    after, variance_after = (np.cumsum(array[:, ::-1], axis=1)[:, -2::-1] for array in (size, variance))
    shares = size / size.sum(axis=1, keepdims=True)
    logit_variance = variance[:, :-1] / size[:, :-1] ** 2 + variance_after / after**2
    return shares, np.stack([logits_of(shares), np.sqrt(logit_variance)], axis=-1)


# ---------- the unknowns of the private model
def latent_sizes(private: pm.Model, noisy: NoisyStatistic, counted: bool = False) -> tuple[tuple[Variable, ...], np.ndarray]:
    """Numbers of records per cell: unknown variables where they are not public, and what is known or guessed of them.

    With ``counted`` counts vary about the sizes, as in a table; else the sizes are those of the records.
    """
    guess = guessed_sizes(noisy)
    if noisy.sizes == "public":
        return (), guess
    if noisy.sizes == "simplex":
        return (_sizes_of_shares(private, noisy, counted),), guess
    sizes = _independent_sizes(private, noisy, guess, counted)
    if knows_bins(noisy):
        pm.Potential(f"{noisy.variable}{SHARES}", _of_bins(private, noisy, sizes), model=private)
    return (sizes,), guess


def _of_bins(private: pm.Model, noisy: NoisyStatistic, sizes: Variable) -> Variable:
    """Log-density of sizes (G V, 1...) of which all sums over a public cell are as likely, and shares are those of covariates in bins."""
    size = sizes.reshape((-1, noisy.private_cells))
    total = size.sum(axis=1, keepdims=True)
    alpha = _about_bins(private, noisy, len(noisy.noisy) // noisy.private_cells)
    return (shares_about(size / total, alpha, total) - (noisy.private_cells - 1) * pt.log(total[:, 0])).sum()


def _independent_sizes(private: pm.Model, noisy: NoisyStatistic, guess: np.ndarray, counted: bool) -> Variable:
    """Sizes that are free; or where some records are left out shares of public numbers, or rates about which counts of the others vary."""
    name = noisy.variable
    dims = [f"{name}_kind", *(f"{name}{SIZE}_{axis}" for axis, length in enumerate(guess.shape[1:]) if length > 1)]
    start = guess.reshape([len(guess), *(length for length in guess.shape[1:] if length > 1)])
    for dim, length in zip(dims, start.shape, strict=True):
        private.add_coord(dim, length=length)

    def unknown(prior: type[Sizes] | type[Kept], start: np.ndarray, unit: np.ndarray, transform: Transform) -> Variable:
        """Sizes as an unknown; in coordinates of its own, but for counts and sums of ours, whose conditional Gibbs knows by PyMC's."""
        if noisy.regression is None and not noisy.combination.size:
            return prior(f"{name}{SIZE}", [start, unit], dims=dims)
        start_and_unit = np.stack([start, unit], axis=-1)
        # Data, so that another release makes the same graph.
        data = pm.Data(f"{name}{SIZE}_given", start_and_unit, shape=start_and_unit.shape)
        return prior(f"{name}{SIZE}", [data[..., 0], data[..., 1]], dims=dims, default_transform=transform)

    if noisy.sizes == "free":
        start = np.maximum(start, 1.0)
        unit = np.minimum(_noise_of_sizes(noisy) / start, WIDEST_STEP)
        return unknown(Sizes, start, unit, LogFromStart()).reshape(guess.shape)
    if counted:
        public = np.repeat(noisy.n.astype(float), noisy.private_cells).reshape(-1, *[1] * (start.ndim - 1)) + np.zeros(start.shape)
        first = np.maximum(np.minimum(start, public), 1.0)
        return Present(f"{name}{SIZE}", [first, public, noisy.private_cells], dims=dims, default_transform=AboutMost()).reshape(guess.shape)
    most = most_kept(noisy).reshape(-1, *[1] * (start.ndim - 1)) + np.zeros(start.shape)
    noise = _noise_of_sizes(noisy) / np.maximum(most, 1.0)
    least = np.clip(noise, 1e-9, 0.05)  # so near to 0 and 1 a share starts
    share = np.clip(start / np.maximum(most, 1.0), least, 1 - least)
    unit = np.minimum(noise / (share * (1 - share)), WIDEST_STEP)
    return (unknown(Kept, share, unit, LogitFromStart()) * most).reshape(guess.shape)


def most_kept(noisy: NoisyStatistic) -> np.ndarray:
    """The upper end (G V,) of numbers of records that are left when some are left out, of which ``<y>_size`` is a share.

    Numbers are whole, 0 to N, all of them as likely beforehand. An integral up to N would count N itself half; up to N + 1/2 it is the
    sum over whole numbers by the midpoint rule (docs/theory.md, "Missing values"). What weights of scores add up to is no whole number.
    """
    public = np.repeat(noisy.n.astype(float), noisy.private_cells)
    if noisy.regression is not None and noisy.regression.link:
        return noisy.regression.scores.largest_weight * public
    return np.where(public > 0, public + 0.5, 0.0)


def _sizes_of_shares(private: pm.Model, noisy: NoisyStatistic, counted: bool) -> Variable:
    """Sizes that add up to public ones. The prior is flat on the simplex of each, or about means, or bins: theory in docs/theory.md."""
    name, V = noisy.variable, noisy.private_cells
    private.add_coord(f"{name}_group", length=len(noisy.n))
    private.add_coord(f"{name}_kind", length=V)
    if _is_drowned(noisy):
        alpha, density = V * _means_of_shares(private, noisy), shares_about
    elif knows_bins(noisy):
        alpha, density = _about_bins(private, noisy, len(noisy.n)), shares_about
    else:
        alpha, density = np.ones(V), flat_shares
    share = _shares(f"{name}{SIZE}", alpha, shares_near(noisy, counted), (f"{name}_group", f"{name}_kind"), density)
    return (share * noisy.n[:, None]).reshape((-1, *[1] * (noisy.noisy.ndim - 2)))


def _shares(name: str, alpha: Any, told: tuple[np.ndarray, np.ndarray], dims: tuple[str, ...], logp: Callable[..., Variable]) -> Variable:
    """Shares (G, V) that begin where released values put them."""
    shares, near = told
    return pm.CustomDist(
        name, alpha, pm.Data(f"{name}_given", near, shape=near.shape), dist=any_shares, logp=logp, signature="(v),(w,e)->(v)", dims=dims,
        transform=Shares(), support_point=lambda *_: pt.constant(shares),
    )  # fmt: skip


def _is_drowned(noisy: NoisyStatistic) -> bool:
    """Whether flat priors of many public cells would move the mean of their shares by much of what noise leaves unknown of it.

    With noise of standard deviation r in units of what a private cell of a public one holds, a flat prior moves a share by about
    r^2 / (1 + r^2) of its distance from the others', whatever the number G of public cells, while the noise on the mean of all is
    r / sqrt(G). So r sqrt(G) is asked to be small. It rests on what is public: numbers of records and the scale of noise.
    """
    typical = np.median(noisy.n) / noisy.private_cells
    noise = np.sqrt(np.median(_noise_of_shares(noisy)) * len(noisy.n))
    return len(noisy.n) >= MANY_CELLS and bool(noise > SMALL * typical)


def _means_of_shares(private: pm.Model, noisy: NoisyStatistic) -> Variable:
    """What shares (V,) are on the average of all public cells: all means are as likely, or are those of covariates in bins.

    A flat prior for every cell by itself would say of many together that half of all records are in each of two private cells.
    """
    name, released = f"{noisy.variable}{MEAN}", _released_sizes(noisy).reshape(-1, noisy.private_cells)
    variance = (_noise_of_shares(noisy) + np.zeros((len(noisy.n), 1))).sum(axis=0, keepdims=True)
    told = _near(released.sum(axis=0, keepdims=True), variance, noisy.n.sum(keepdims=True), counted=True)
    private.add_coord(f"{name}_all", length=1)
    dims = (f"{name}_all", f"{noisy.variable}_kind")
    if knows_bins(noisy):
        return _shares(name, _about_bins(private, noisy, 1), told, dims, shares_about)[0]
    return _shares(name, np.ones(noisy.private_cells), told, dims, flat_shares)[0]


def _about_bins(private: pm.Model, noisy: NoisyStatistic, groups: int) -> Variable:
    """Concentrations (groups, V) of shares of covariates in bins, and their unknowns: see ``bin_shares``."""
    L, K = unknowns_of(noisy)
    normals = normal_unknowns(private, f"{noisy.variable}{OF_BINS}", (groups, L, K))
    if L == 1:
        return concentrations(noisy, normals, None)
    name = f"{noisy.variable}{LEVELS}"
    dims = (f"{name}_groups", f"{name}_kind")
    private.add_coord(dims[0], length=groups)
    private.add_coord(dims[1], length=L)
    alike = np.full((groups, L), 1 / L), np.stack([np.zeros((groups, L - 1)), np.full((groups, L - 1), WIDEST_STEP)], axis=-1)
    return concentrations(noisy, normals, _shares(name, np.ones(L), alike, dims, flat_shares))


def normal_unknowns(private: pm.Model, name: str, shape: tuple[int, ...]) -> Variable:
    """Standard normal unknowns, with dims of their own."""
    dims = [f"{name}_{axis}" for axis in range(len(shape))]
    for dim, length in zip(dims, shape, strict=True):
        private.add_coord(dim, length=length)
    return pm.Normal(name, dims=dims, shape=shape)
