"""Second moments of features and responses, or scores: what a linear likelihood is released as."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from pymc_dp.families.family import Domain
from pymc_dp.families.second_moments import Regression
from pymc_dp.models.spec import Likelihood
from pymc_dp.models.structure import Unreduced
from pymc_dp.plans.basis import released_basis
from pymc_dp.plans.bounds import (
    APART,
    LEAST_PREDICTOR,
    MOST_PREDICTOR,
    Bounded,
    as_declared,
    ends_of,
    feature_bounds,
    one_or_each,
    pairs_of,
    predictor_name,
)
from pymc_dp.plans.cells import FEW_CELLS, MOST_CELLS, check_tables, levels_of
from pymc_dp.plans.covariate_features import CovariateFeatures
from pymc_dp.plans.statistic import Grid, PlannedStatistic, sensitivity_of_sums

MULTIPLIERS = ((1, 1), (2, 3), (1, 2), (1, 3))
"""By what second moments may be multiplied before the noise: all, and in their place products with the response."""
INFORMATION = 3, 2
"""By what the information is multiplied before the noise, with a link, at most: of one slope, and of more.

It is multiplied by less where the largest weight of a record, times that, would be more than 1, which its score may be; with a logit link
weights are at most 1/4, and with a log link what bounds say.

Noise on it hides how much features vary long before noise on scores matters. Of 26 kinds of records that were simulated, linear predictors
were off by 17.1, 4.5 and 1.01 times what they are without privacy, geometric means at epsilon .3, 1 and 5, with nothing multiplied; twice,
9.9, 2.7 and .98 times; three times, 7.6, 2.5 and .99 times; four times, 6.9, 2.5 and 1.01 times. The more features, the more of the
sensitivity is the information's: with those of `adult_uci` they were off by 1.5 times if it is doubled, and by 1.7 if it is tripled.
"""
OF_FEATURES = Fraction(1, 5)
"""How much the variance of the noise on moments of features counts for the width of slopes, beside that on products with the response."""


def planned_moments(
    likelihood: Likelihood, bounds: Mapping[str, object], covariates: Mapping[str, Bounded], sizes: str, *, exchanged: bool
) -> PlannedStatistic:
    """Second moments of features and responses, per cell of the indices.

    A record that is left out brings nothing. So where cells are public, another in its place moves the sums by what one brings, or by
    what one moves them in place; and where they are private, by what both bring in two cells.
    """
    linear = likelihood.linear
    assert linear is not None
    # Indices are cells; everything else makes features.
    cells = tuple(k for k, placeholder in enumerate(likelihood.inputs) if placeholder.private and (placeholder.index or placeholder.inner))
    grid = levels_of(likelihood, cells, covariates)
    if grid is None:
        raise Unreduced(f"its private indices have more than {MOST_CELLS:,} levels. Give them fewer")
    if grid.size > MOST_CELLS:
        raise Unreduced(f"its private indices make {grid.size:,} cells, more than {MOST_CELLS:,}. Give them fewer levels")
    check_tables(likelihood, grid)
    sizes = sizes if sizes in ("free", "kept") else "simplex" if cells else "public"
    if linear.link and sizes != "free":
        sizes = "kept"  # what weights add up to is at most the largest weight of every record
    counted = sizes != "public"
    basis, lower, upper = released_basis(likelihood, covariates, *feature_bounds(likelihood, linear, covariates))
    q = likelihood.levels if likelihood.distribution == "MvNormal" else 1
    response, columns = _response(likelihood, bounds, q)
    private = tuple(private or (counted and k > 0) for k, private in enumerate(linear.private))
    predictor = (0.0, 0.0)
    if linear.link:
        name = predictor_name(likelihood)
        if len(set(pairs := pairs_of(bounds[name]))) > 1:
            raise Unreduced(f"its scores are released within one pair of bounds of {name} for all columns. {APART.format(likelihood.name)}")
        ends = ends_of(name, pairs[0] if pairs else bounds[name], (1,), whole=False)
        predictor = (float(ends[0][0]), float(ends[1][0]))
        response = (np.zeros(1), response[1])  # scores are centred on means of counts that are clamped from above alone
        if not LEAST_PREDICTOR <= predictor[1] - predictor[0] <= MOST_PREDICTOR or max(map(abs, predictor)) > MOST_PREDICTOR:
            raise Unreduced(f"bounds of {name} are too far apart, too far out or too close. Write for example bounds={{{name!r}: (-3, 3)}}")
    regression = Regression(
        linear.names, private, lower, upper, tuple(map(float, response[0])), tuple(map(float, response[1])),
        scale_known=bool(linear.link) or not likelihood.unknown[1], counted=counted, link=linear.link, predictor=predictor,
        public_norm=float(len(private) - sum(private)), public_square=float(len(private) - sum(private)),
        basis=basis, probed=CovariateFeatures(likelihood, {name: bounded.plain for name, bounded in covariates.items()}).probed(),
    )  # fmt: skip
    outermost = np.array(columns or list(zip(*response, strict=True)))
    domain = Domain(
        float(outermost[:, 0].min()), float(outermost[:, 1].max()), likelihood.levels, likelihood.unknown, likelihood.known, columns=columns
    )
    domain = as_declared(domain, bounds.get(likelihood.name))
    moves = "kept" if exchanged else sizes
    regression = replace(regression, multipliers=_multipliers(regression, likelihood, moves, grid))
    sensitivity = sensitivity_of_sums(regression, likelihood, moves, grid)
    return PlannedStatistic(likelihood, "linear", domain, sizes, grid, regression, covariates, regression.statistics(), sensitivity)


def _response(
    likelihood: Likelihood, bounds: Mapping[str, object], q: int
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[tuple[float, float], ...]]:
    """Bounds of the q responses, of their logarithms where these are normal; and of every column, where these have bounds of their own.

    Then responses are released as values of (-1, 1), to which every column is scaled by its own bounds.
    """
    name, declared = likelihood.name, [bounds.get(likelihood.name, (0.0, 1.0))]
    if q == 1:
        declared = one_or_each(likelihood, declared[0])
    several = []
    for pair in declared:
        response = ends_of(name, pair, (q,), whole=False)
        if likelihood.distribution == "LogNormal":
            if not (response[0] > 0).all():
                raise Unreduced(f"bounds of {name} must be positive. Write for example bounds={{{name!r}: (0.1, 10)}}")
            response = (np.log(response[0]), np.log(response[1]))
        several.append(response)
    if len(several) == 1:
        return several[0], ()
    if likelihood.linear is not None and likelihood.linear.link:
        raise Unreduced(f"its scores are released within one pair of bounds for all columns. {APART.format(name)}")
    return (np.array([-1.0]), np.array([1.0])), tuple((float(lower[0]), float(upper[0])) for lower, upper in several)


def _multipliers(regression: Regression, likelihood: Likelihood, moves: str, grid: Grid) -> tuple[int, int]:
    """The factors that second moments are multiplied by before the noise, so that slopes are as narrow as they can be at this epsilon.

    Laplace noise has the scale of the L1 sensitivity and Gaussian noise that of the root of the squared L2 one, and both are divided by
    what an entry was multiplied by. Of those with which Gaussian noise is no worse for slopes than without, the best for Laplace noise is
    taken. It rests on how many features there are, and on which are private, alone: not on values of public ones, and on no record.
    """
    if regression.link:
        return max(min(INFORMATION[len(regression.names) > 2], int(1 / regression.scores.largest_weight)), 1), 1
    if regression.q > 1 or not any(regression.private):
        return 1, 1

    def cost(multipliers: tuple[int, int]) -> tuple[Fraction, Fraction]:
        """Variances of the noise that slopes have, for Laplace and for Gaussian noise, but for factors that are the same for all."""
        every, response = multipliers
        sensitivity = sensitivity_of_sums(replace(regression, multipliers=multipliers), likelihood, moves, grid)
        variance = Fraction(1, response**2) + OF_FEATURES / every**2
        return sensitivity.difference**2 * variance, sensitivity.square * variance

    plain = cost((1, 1))[1]
    return min((multipliers for multipliers in MULTIPLIERS if cost(multipliers)[1] <= plain), key=lambda multipliers: cost(multipliers)[0])


def is_linear(likelihood: Likelihood, grid: Grid | None, bounds: Mapping[str, object], sizes: str) -> bool:
    """Whether a likelihood that could be either is released as second moments, or scores, rather than in cells.

    Where a link's covariates are all public and so are numbers of records, sums by cell, or weighted by features, need no scores.
    """
    if likelihood.linear is None:
        return False
    if likelihood.linear.link:
        return predictor_name(likelihood) in bounds and (sizes != "public" or likelihood.predictor is None)
    inputs = likelihood.inputs
    covariates = [covariate for covariate in inputs if covariate.axis is not None and not covariate.index and not covariate.inner]
    if likelihood.family is None or not all(covariate.whole or covariate.private for covariate in covariates):
        return True
    return grid is None or grid.size > FEW_CELLS
