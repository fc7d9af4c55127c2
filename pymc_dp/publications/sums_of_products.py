"""Published sums of covariates, of a normal response and of their products -> second moments, as the plan for a regression needs them.

A publisher adds noise to sums in its own units. Those of what is scaled to [-1, 1] about the middle of its bounds are combinations of
these, with noise that is correlated. So here everything is scaled about 0, by the bound that is farther from it: then every moment is one
published sum times a number, and the noise on each is its own. Of features less is then known beforehand than bounds would tell.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pymc_dp.families.second_moments import Regression
from pymc_dp.plans.statistic import PlannedStatistic
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.publications.publication import Codebook
from pymc_dp.publications.sums_of_cells import EXACT, LARGEST, MOST_GROUPS, SAY_NUMBER, PublishedCells, inputs_in, noisy_statistic, records
from pymc_dp.publications.told import NUMBER, PublishedNumber, canonical, check_possible, published_numbers
from pymc_dp.releases.described_cells import inputs_of_table
from pymc_dp.releases.noisy_statistic import NoisyStatistic

MISSING = 1e6
"""The scale of the noise that stands for a sum that was not published, times the largest that the sum can be."""


def about_zero(regression: Regression) -> Regression:
    """A regression's statistics scaled about 0 instead of the middle of bounds, so that they are sums of the features themselves."""

    def ends(lower: tuple[float, ...], upper: tuple[float, ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
        largest = tuple(max(abs(low), abs(high)) for low, high in zip(lower, upper, strict=True))
        return tuple(-end for end in largest), largest

    lower, upper = ends(regression.lower, regression.upper)
    response = ends(regression.response_lower, regression.response_upper)
    return replace(
        regression, lower=lower, upper=upper, response_lower=response[0], response_upper=response[1], basis=(), multipliers=(1, 1)
    )


def of_products(planned: PlannedStatistic, books: Mapping[str, tuple[object, Codebook]], cells: PublishedCells) -> list[NoisyStatistic]:
    """Second moments, one statistic for all cells whose noise is alike.

    Raises
    ------
    Refusal
        Where this regression, or its noise, cannot be expressed.
    """
    likelihood, regression = planned.likelihood, planned.regression
    assert regression is not None
    assert likelihood.linear is not None
    name = likelihood.name
    if regression.link:
        raise Refusal(
            f"{name} would be released as scores, which nobody publishes. List the levels of its covariates in bounds, and give a table of"
            ' counts: bounds={"x": {0, 1}}.'
        )
    free = planned.sizes == "free"
    if regression.q > 1 or planned.sizes not in {"public", "free"} or not all(likelihood.linear.private[1:]):
        raise Refusal(
            f"Second moments of {name} are understood where it is one number, and the number of records in every cell is known, or"
            " published with noise. Write pm.Data for each covariate, bounds of those that were summed, and n= with one for every cell."
        )
    if free and NUMBER not in books:
        raise Refusal(f"How many records {name} was summed over is not said. {SAY_NUMBER}")
    if name != "y" and any("y" in feature.split("·") for feature in regression.names):
        raise Refusal(f"A covariate of {name} is called y, which stands for {name} in names of sums. Call that pm.Data otherwise.")
    regression = about_zero(regression)
    if not all(np.isfinite(end) and end > 0 for end in (*regression.upper[1:], *regression.response_upper)):
        raise Refusal(f"Bounds of {name} and of its covariates must hold numbers other than 0. Write bounds= of what the publisher summed.")
    names = _names(regression, "log(y)" if likelihood.distribution == "LogNormal" else "y")
    spelled = [canonical(sum_name, name) for sum_name in names]
    first = [spelled.index(spelling) for spelling in spelled]  # the sum of a product may be that of a feature, too
    numbers = {number.name: number for number in published_numbers(name, books, names, cells.shapes(likelihood.columns))}
    shape = (len(cells.n), *likelihood.columns, len(names))
    values, spread = np.zeros(shape), np.zeros(shape)
    _, half = regression.centres()
    if free and np.isnan(numbers[NUMBER].values).any():
        raise Refusal(f"The number of records of {name} is NaN. {SAY_NUMBER}")
    n = np.maximum(np.abs(numbers[NUMBER].values), 1.0) if free else cells.n.astype(float)
    most = n.reshape(-1, *[1] * len(likelihood.columns))
    for k, (i, j) in enumerate(regression.entries):
        number = numbers.get(names[k]) if first[k] == k else None
        if number is not None and i == 0 < j < len(regression.names) and not free:
            check_possible(name, number, cells.n, regression.lower[j], regression.upper[j])
        values[..., k], spread[..., k] = _scaled(number, half[i] * half[j], most)
    kinds = {number.kind for number in numbers.values()} - {"exact"}
    if len(kinds) > 1:
        raise Refusal(
            f"Sums of {name} have Laplace and Gaussian noise, which is not understood together. Write one kind for all: for Laplace noise"
            " that is small beside the other, GaussianNoise.from_variance(2 * scale**2)."
        )
    kind = kinds.pop() if kinds else "gaussian"
    return _by_noise(planned, regression, names, values, spread, kind, cells)


def _names(regression: Regression, response: str) -> list[str]:
    """What the sums are called, in their own units: products of features and of the response, which may be a logarithm."""
    factors = [*regression.names, response]

    def product(i: int, j: int) -> str:
        if i == j:
            return f"({factors[i]})²" if "·" in factors[i] else f"{factors[i]}²"
        return factors[j] if i == 0 else f"{factors[i]} {factors[j]}"

    return [NUMBER if (i, j) == (0, 0) else f"sum {product(i, j)}" for i, j in regression.entries]


def _scaled(number: PublishedNumber | None, unit: float, most: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A published sum and the spread of its noise, in units of what is scaled; one that was not published says nothing."""
    if number is None:
        return np.zeros(most.shape), MISSING * most
    spread = np.full(number.values.shape, EXACT) if number.kind == "exact" else number.spread / unit
    there = ~np.isnan(number.values)
    return np.where(there, number.values, 0.0) / unit, np.where(there, spread, MISSING * most)


def _by_noise(
    planned: PlannedStatistic, regression: Regression, names: list[str], values: np.ndarray, spread: np.ndarray, kind: str,
    cells: PublishedCells,
) -> list[NoisyStatistic]:  # fmt: skip
    """One noisy statistic for all cells whose noise is alike."""
    columns, name = planned.likelihood.columns, planned.likelihood.name
    flat = spread.reshape(len(cells.n), -1, len(names))
    if (flat != flat[:, :1]).any():
        raise Refusal(f"Columns of {name} have different noise. Write one observed variable for each.")
    kinds, which = np.unique(flat[:, 0], axis=0, return_inverse=True)
    if len(kinds) > MOST_GROUPS:
        raise Refusal(
            f"{name} has {len(kinds):,} kinds of noise, more than {MOST_GROUPS}. Round the scales of the noise so that cells share them."
        )
    every = cells.inputs if planned.sizes == "free" else inputs_of_table(planned, cells.inputs)
    result = []
    for k, scales in enumerate(kinds):
        places = np.flatnonzero(which.ravel() == k)
        least = float(scales.min())
        published = replace(regression, scales=tuple((scales / least).tolist()))
        held = values[places] * np.array(published.weights) / published.lattice
        if (np.abs(held) >= LARGEST).any():
            raise Refusal(f"A published number of {name} is too large for its bounds. Look at the number and the bounds.")
        n = records(planned, cells, places)
        known = np.zeros((len(places), *[1] * len(columns), published.size, published.size))
        if n.size:
            known[..., 0, 0] = n.reshape(-1, *[1] * len(columns)) / published.lattice
        result.append(
            noisy_statistic(
                planned, inputs_in(planned, every, places),
                regression=published, known=known,
                variable=name if len(kinds) == 1 else f"{name}_{k + 1}", statistics=tuple(names), n=n,
                noisy=np.rint(held).astype(np.int64), scale=least / published.lattice, mechanism=kind,
                covariates=tuple((covariate, *bounded.plain) for covariate, bounded in planned.bounds.items()),
            )
        )  # fmt: skip
    return result
