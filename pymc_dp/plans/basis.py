"""What is released of features that are computed from the same private covariates, such as age beside its square.

On bounds of (17, 90) age and its square, each scaled to [-1, 1], are all but the same: what tells them apart is a fortieth of that range,
and has the noise of all of it. So of a feature is released what is left of it once the features before it that rest on no other
covariate are taken off, as well as they can be over the bounds, and that is scaled to [-1, 1]. Of powers of a covariate these are the
Chebyshev polynomials, of a product of two covariates the product of both, less their middles.

Everything here rests on the model and on bounds. A record is clipped to the bounds of what is released, whatever they are.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from pymc_dp.models.spec import Likelihood
from pymc_dp.plans.bounds import Bounded, private_covariates
from pymc_dp.plans.covariate_features import CovariateFeatures, Entry

NODES = {1: 2049, 2: 129, 3: 41}
"""Of each covariate, by how many a feature rests on: those that rest on more stay as they are."""
WORTH = 0.9
"""The largest part of its range that may be left of a feature for others to be taken off."""
LEAST = 1e-6
"""The smallest: what is less is the rounding of a feature that is a combination of others."""
NOTHING = 1e-9
"""What is less than this part of a feature is not taken off."""

type Basis = tuple[tuple[tuple[float, ...], ...], tuple[float, ...], tuple[float, ...]]


def released_basis(likelihood: Likelihood, covariates: Mapping[str, Bounded], lower: tuple[float, ...], upper: tuple[float, ...]) -> Basis:
    """The rows of a basis, or none where features are released as they are, and lower and upper bounds of what is released.

    Parameters
    ----------
    likelihood : Likelihood
        Linear.
    covariates : mapping
        Bounds of the private covariates, by name.
    lower, upper : tuple of float
        Bounds of the features.
    """
    linear = likelihood.linear
    assert linear is not None
    private = [k for k, is_private in enumerate(linear.private) if is_private and k > 0]
    if len(private) < 2 or any(covariate.name not in covariates for covariate in private_covariates(likelihood)):
        return (), lower, upper
    function = CovariateFeatures(likelihood, {name: bounded.plain for name, bounded in covariates.items()})
    uses, straight = function.uses()
    rows, ends = np.eye(len(linear.names)), np.array([lower, upper])
    # Those that rest on few covariates first, so that a product is told by what it is the product of; and straight lines before others.
    in_order = sorted(private, key=lambda k: (len(uses[k]), not straight[k], k))
    for place, k in enumerate(in_order):
        before = [j for j in in_order[:place] if uses[j] and uses[j] <= uses[k]]
        if before and len(uses[k]) in NODES:
            _subtract_fit(k, before, function, sorted(uses[k]), rows, ends)
    basis = () if (rows == np.eye(len(rows))).all() else tuple(tuple(map(float, row)) for row in rows)
    return basis, tuple(map(float, ends[0])), tuple(map(float, ends[1]))


def _subtract_fit(k: int, before: list[int], function: CovariateFeatures, used: list[int], rows: np.ndarray, ends: np.ndarray) -> None:
    """Subtract from feature k its fit by earlier features, where that makes its range much smaller: changes its row (F,) and its bounds.

    The fit is by least squares on nodes that lie denser at the ends, which for polynomials leaves the smallest range there is, and for
    other smooth functions hardly more.
    """
    several = [_nodes(function.entries[e], NODES[len(used)]) for e in used]
    grid = np.stack(np.meshgrid(*several, indexing="ij"), axis=-1)
    values = np.tile([(entry.lower + entry.upper) / 2 for entry in function.entries], (*grid.shape[:-1], 1))
    values[..., used] = grid
    features = function(values.reshape(-1, len(function.entries)))
    if not np.isfinite(features[..., [*before, k]]).all():
        return
    half = (ends[1] - ends[0]) / 2
    columns = np.concatenate([np.ones((*features.shape[:-1], 1)), features @ rows[before].T / half[before]], axis=-1)
    columns = columns.reshape(-1, len(before) + 1)
    fitted = np.linalg.lstsq(columns, features[..., k].ravel() / half[k])[0]
    fitted[np.abs(fitted) < NOTHING] = 0.0
    row = rows[k] - fitted[1:] * half[k] / half[before] @ rows[before]
    low, high = _range((features @ row).reshape(*grid.shape[:-1], -1), [function.entries[e] for e in used], several)
    if LEAST < (high - low) / 2 / half[k] <= WORTH:
        rows[k], ends[:, k] = row, (low, high)


def _nodes(entry: Entry, many: int) -> np.ndarray:
    """Values of a covariate: all, if they are few or listed, or Chebyshev's nodes with both ends."""
    if entry.values is not None:
        return entry.values
    nodes = (entry.lower + entry.upper) / 2 - (entry.upper - entry.lower) / 2 * np.cos(np.pi * np.arange(many) / (many - 1))
    return np.unique(np.rint(nodes)) if entry.whole else nodes


def _range(values: np.ndarray, entries: Sequence[Entry], several: Sequence[np.ndarray]) -> tuple[float, float]:
    """Between which values a function lies, of which those on a grid (..., columns) are known.

    Between neighbours it is taken to go beyond them by no more than half of what three of them are off a straight line: a parabola does
    so by an eighth of that, and a corner by half. A record that goes further is clipped.
    """
    beyond = 0.0
    for axis, (entry, nodes) in enumerate(zip(entries, several, strict=True)):
        if entry.values is None and len(nodes) > 2 and not (entry.whole and len(nodes) > entry.upper - entry.lower):
            beyond += float(np.abs(np.diff(values, 2, axis=axis)).max()) / 2
    return float(values.min()) - beyond, float(values.max()) + beyond
