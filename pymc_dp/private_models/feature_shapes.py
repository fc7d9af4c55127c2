"""The prior of the moments of features that are computed from the same covariates, such as age beside its square.

Second moments of such features follow from each other as far as the law of their covariates goes: the mean of a square is told by the
mean and variance of what is squared, and its correlation with it is .98 where bounds lie on one side of 0. Covariates of many kinds are
made up within their bounds, their features computed by the model's own graphs, and the moments of these are summed up as a normal law of
what ``moment_loops`` makes moments of: those of what is released of the features. No record is looked at.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from pymc_dp.families.grid import nearest_level
from pymc_dp.models.spec import Likelihood
from pymc_dp.plans.covariate_features import CovariateFeatures, Entry
from pymc_dp.private_models.moment_law import Related
from pymc_dp.private_models.moment_loops import SHARE, SPREAD_OF_MEAN, steepness
from pymc_dp.releases.noisy_statistic import NoisyStatistic

SAME = 1e-9
"""How near a feature is to a straight line in the square of another that it is taken for one."""
POPULATIONS, RECORDS = 600, 250
"""How many sets of covariates are made up, and how many records each has."""
FURTHEST = 8.0
"""Coordinates of moments beyond are taken for this: features that are all but the same."""
LOOSER = 0.1
"""Added to the standard deviation of every coordinate: nobody's covariates are quite like those that are made up."""


def related_features(likelihood: Likelihood, noisy: NoisyStatistic) -> list[Related]:
    """Groups of a linear likelihood's private features whose moments tell each other.

    A covariate itself, alone or scaled, is in none: of its moments nothing is known.
    """
    linear, regression = likelihood.linear, noisy.regression
    if linear is None or regression is None:
        return []
    private = [k for k, is_private in enumerate(linear.private) if is_private and k > 0]
    if not private:
        return []
    function = CovariateFeatures(likelihood, {name: ends for name, *ends in noisy.covariates})
    rng = np.random.default_rng(0)  # always the same, so that one release has one posterior
    uses, straight = function.uses()
    groups = [group for group in _connected([k for k in private if uses[k]], uses) if not (len(group) == 1 and straight[group[0]])]
    # Straight lines first: by these squares are told.
    in_order = [sorted(group, key=lambda k: (len(uses[k]), not straight[k], k)) for group in groups]
    return [_law(group, function, sorted(set().union(*(uses[k] for k in group))), noisy, rng) for group in in_order]


def _connected(features: Iterable[int], uses: Sequence[set[int]]) -> list[list[int]]:
    """Features in groups that share entries, each in order."""
    groups: list[tuple[list[int], set[int]]] = []
    for k in features:
        touched = [group for group in groups if group[1] & uses[k]]
        groups = [group for group in groups if group not in touched]
        groups.append((sorted([k, *(j for group in touched for j in group[0])]), uses[k].union(*(group[1] for group in touched))))
    return sorted(group[0] for group in groups)


def _law(group: list[int], function: CovariateFeatures, used: list[int], noisy: NoisyStatistic, rng: np.random.Generator) -> Related:
    """Mean and triangular root of the covariance of the coordinates, over made-up populations."""
    regression, entries = noisy.regression, function.entries
    assert regression is not None
    values = np.zeros((POPULATIONS, RECORDS, len(entries)))
    values += [(entry.lower + entry.upper) / 2 for entry in entries]
    values[..., used] = _populations([entries[e] for e in used], rng)
    features = regression.released(function(values.reshape(-1, len(entries))))[..., group]
    centre, half = (np.array(ends)[group] for ends in regression.centres())
    scaled = np.clip((features - centre) / half, -1, 1).reshape(POPULATIONS, RECORDS, -1, len(group)).swapaxes(1, 2)
    described = coordinates(scaled.reshape(-1, RECORDS, len(group)), len(regression.names))
    squares = _squares(scaled.reshape(-1, len(group))[:: RECORDS // 5])
    described[:, [feature for feature, *_ in squares]] = 0.0
    root = np.linalg.cholesky(np.cov(described.T, bias=True).reshape(described.shape[1], -1) + LOOSER**2 * np.eye(described.shape[1]))
    return Related(tuple(group), described.mean(axis=0), root, squares)


def _squares(features: np.ndarray) -> tuple[tuple[int, int, float, float], ...]:
    """Which features (N, g) on [-1, 1] have the square of an earlier one as a straight line of theirs, the first such one, and the line."""
    lines = {}
    for k in range(features.shape[1]):
        for i in range(k):
            onto = np.column_stack([np.ones(len(features)), features[:, k]])
            (constant, slope), *_ = np.linalg.lstsq(onto, features[:, i] ** 2)
            off = np.abs(onto @ [constant, slope] - features[:, i] ** 2).max()
            if k not in lines and off < SAME and abs(slope) > 0.1:
                lines[k] = (k, i, float(constant), float(slope))
    return tuple(lines.values())


def coordinates(features: np.ndarray, F: int) -> np.ndarray:
    """What ``moment_loops`` makes the moments of features on [-1, 1] (populations, records, g) of, among F features: (populations, k)."""
    P, n, g = features.shape
    whole = np.concatenate([np.ones((P, n, 1)), features], axis=2)
    moments = whole.swapaxes(1, 2) @ whole / n
    factor = np.linalg.cholesky(moments + 1e-7 * np.eye(g + 1))
    mean = np.clip(factor[:, 1:, 0], -0.999999, 0.999999)
    share = np.clip((factor[:, 1:, 1:] ** 2).sum(axis=2) / (1 - mean**2), 1e-7, 1 - 1e-7)
    rows = [factor[:, i, 1:i] / factor[:, i, i, None] for i in range(1, g + 1)]
    slopes = np.arcsinh(np.concatenate(rows, axis=1) / steepness(F))
    described = np.concatenate([np.arcsinh(mean / np.sqrt(1 - mean**2) / SPREAD_OF_MEAN), np.log(share / (1 - share)), slopes], axis=1)
    return np.clip(described, -FURTHEST, FURTHEST)


def _populations(entries: Sequence[Entry], rng: np.random.Generator) -> np.ndarray:
    """Made-up covariates (populations, records, entries): of many shapes, lying in their bounds as the prior has it, correlated."""
    E = len(entries)
    steps = np.tril(steepness(E + 1) * np.sinh(rng.normal(size=(POPULATIONS, E, E))), -1) + np.eye(E)
    mixed = np.einsum("pef,pnf->pne", steps, rng.normal(size=(POPULATIONS, RECORDS, E)))
    z = mixed / np.sqrt((steps**2).sum(axis=2))[:, None]
    mean = np.tanh(np.arcsinh(SPREAD_OF_MEAN * np.sinh(rng.normal(size=(POPULATIONS, E)))))  # mu / sqrt(1 + mu²)
    share = 1 / (1 + np.exp(-rng.normal(*SHARE, size=(POPULATIONS, E))))
    covariates = np.empty_like(z)
    for e, entry in enumerate(entries):
        x = np.stack([SHAPES[kind](normals, rng) for kind, normals in zip(rng.integers(len(SHAPES), size=POPULATIONS), z[..., e])])
        x = (x - x.mean(axis=1, keepdims=True)) / np.maximum(x.std(axis=1, keepdims=True), 1e-9)
        u = mean[:, e, None] + np.sqrt((1 - mean[:, e, None] ** 2) * share[:, e, None]) * x
        covariates[..., e] = (entry.lower + entry.upper) / 2 + (entry.upper - entry.lower) / 2 * np.clip(u, -1, 1)
        if entry.values is not None:
            # Half of them near the law on the line, half with any shares of the values.
            values = entry.values
            near = nearest_level(covariates[..., e], values)
            shares = rng.dirichlet(np.ones(len(values)), size=POPULATIONS).cumsum(axis=1)
            ranks = (np.argsort(np.argsort(z[..., e], axis=1), axis=1) + 0.5) / RECORDS
            any_shares = (ranks[..., None] > shares[:, None, :-1]).sum(axis=2)
            covariates[..., e] = values[np.where(rng.random((POPULATIONS, 1)) < 0.5, near, any_shares)]
        elif entry.whole:
            covariates[..., e] = np.rint(covariates[..., e])
    return covariates


def _skewed(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.choice([-1, 1]) * np.exp(rng.uniform(0.2, 1.0) * z)


def _bimodal(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.tanh(4 * (z - 0.7 * rng.normal())) + 0.3 * z


SHAPES = (
    lambda z, rng: z,
    lambda z, rng: np.argsort(np.argsort(z)).astype(float),
    _skewed,
    _bimodal,
    lambda z, rng: z * (1 + 0.15 * z**2),  # tails like those of Student's t
)
"""Monotone functions of normal numbers, whose shapes covariates may have."""
