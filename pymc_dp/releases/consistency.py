"""Noisy tables of a network's families -> tables that agree wherever families share variables, by least squares.

A consistent release is a release like any other, and costs nothing.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from math import prod, sqrt

import numpy as np

from pymc_dp.plans.network import Network, Node
from pymc_dp.privacy.accounting import Refusal, counts_rows
from pymc_dp.privacy.calls import explained
from pymc_dp.releases.noisy_statistic import NoisyStatistic
from pymc_dp.releases.release import Release

FINE = 2**20
"""A count is that many lattice units after least squares."""
MOST_COUNTS = 64
"""Larger tables stay as they are: their noise-aware likelihood would take too long."""

type Moment = tuple[tuple[int, int], ...]
"""(node, contrast of its levels) for every node that has a part in it."""


@explained
def consistent(release: Release) -> Release:
    """A release of a Bayesian network whose tables agree wherever its families share variables, and have less noise.

    A table's noisy counts are turned into coefficients of an orthonormal basis, products of contrasts of the levels. Noise that is alike
    on all counts is alike and independent on all coefficients. A coefficient of variables that several families share has been
    measured by each of them, and their mean, weighted by precision, takes its place. The coefficient of the constant becomes the
    number of records, which is public. This is generalised least squares, because coefficients of different variables are never
    measured together. ``rewrite`` knows the covariance of the noise that is left in the result, and takes that noise as normal.

    Parameters
    ----------
    release : Release
        A release with Laplace or Gaussian noise and neighbours "replace". Fourier coefficients are shared already.

    Returns
    -------
    Release
        The new release, which costs nothing more. ``deviation`` and ``covariance`` of its statistics say how much noise is left.

    Raises
    ------
    Refusal
        When the release is not of this kind.

    Examples
    --------
    >>> released = pmdp.release(network, epsilon=1.0)
    >>> better = pmdp.consistent(released)
    >>> better["vote"].noise.standard_deviation < released["vote"].noise.standard_deviation
    True
    """
    network = release.network
    if network is None:
        raise Refusal("Only the tables of a Bayesian network can be made consistent, and this release is of none.")
    if (
        release.mechanism == "fourier"
        or not counts_rows(release.unit, release.neighbours)
        or any(statistic.deviation for statistic in release.statistics)
    ):
        raise Refusal("Only a release of Laplace or Gaussian noise, neighbours='replace', is made consistent, and only once.")
    if any(statistic.left_out for statistic in release.statistics):
        raise Refusal("Tables from which records are left out are not counted from the same records, so they need not agree.")
    small = [node for node in network.nodes if prod(network.shape(node)) <= MOST_COUNTS]
    tables = {node.name: release.table(node.name) for node in small}
    precision: dict[Moment, float] = defaultdict(float)
    weighted: dict[Moment, float] = defaultdict(float)
    for node in small:
        sd = _deviation(release[node.variable])
        for moment, place, many in _moments(network, node):
            # Over the levels of the variables that have no part in it, a coefficient is the moment divided by their square root.
            variance = sd**2 * many
            precision[moment] += 1 / variance
            weighted[moment] += _coefficients(network, node, tables[node.name])[place] * sqrt(many) / variance
    estimates = {moment: (weighted[moment] / precision[moment], 1 / precision[moment]) for moment in precision}
    estimates[()] = (float(release.statistics[0].n.sum()), 0.0)
    by_node = {node.name: _fitted(network, node, estimates) for node in small}
    statistics = tuple(_refined(statistic, network, by_node) for statistic in release.statistics)
    return replace(release, statistics=statistics)


def _deviation(noisy: NoisyStatistic) -> float:
    """Standard deviation of the noise on every coefficient but the constant: where one of two counts is kept, both have one noise."""
    kept = noisy.sizes == "public" and noisy.noisy.shape[-1] == 1
    return noisy.noise.standard_deviation * (sqrt(2) if kept else 1)


def contrasts(levels: int) -> np.ndarray:
    """An orthonormal basis (K, K) of the functions of K levels whose first is constant: Helmert's."""
    from scipy.linalg import helmert  # not with the package: import is to be light

    return helmert(levels, full=True)


def _coefficients(network: Network, node: Node, table: np.ndarray) -> np.ndarray:
    for axis, levels in enumerate(network.shape(node)):
        table = np.moveaxis(np.tensordot(contrasts(levels), table, axes=(1, axis)), 0, axis)
    return table


def _moments(network: Network, node: Node) -> Iterator[tuple[Moment, tuple[int, ...], int]]:
    """Every coefficient of a family but the constant: what it is a moment of, where it stands, levels of those without a part in it."""
    family, shape = network.family(node), network.shape(node)
    for place in np.ndindex(*shape):
        if any(place):
            moment = tuple(sorted((k, part) for k, part in zip(family, place, strict=True) if part))
            yield moment, place, prod(levels for levels, part in zip(shape, place, strict=True) if not part)


def _fitted(network: Network, node: Node, estimates: dict[Moment, tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    """A family's table (*shape), and the covariance (M, M) of the noise left on it."""
    shape = network.shape(node)
    mean, variance = np.zeros(shape), np.zeros(shape)
    mean[(0,) * len(shape)] = estimates[()][0] / sqrt(prod(shape))
    for moment, place, many in _moments(network, node):
        value, uncertainty = estimates[moment]
        mean[place], variance[place] = value / sqrt(many), uncertainty / many
    basis = np.ones((1, 1))
    for levels in shape:
        basis = np.kron(basis, contrasts(levels))
    return (basis.T @ mean.ravel()).reshape(shape), (basis.T * variance.ravel()) @ basis


def _refined(statistic: NoisyStatistic, network: Network, by_node: dict[str, tuple[np.ndarray, np.ndarray]]) -> NoisyStatistic:
    """A statistic with its fitted tables in place."""
    nodes = [node for node in network.nodes if node.variable == statistic.variable]
    if not all(node.name in by_node for node in nodes):
        return statistic
    cells, columns, K = len(statistic.noisy), statistic.noisy.shape[1:-1], nodes[0].levels
    tables = np.stack([by_node[node.name][0].reshape(cells, K) for node in nodes], axis=1).reshape(cells, *columns, K)
    covariance = np.stack([by_node[node.name][1] for node in nodes])
    deviation = float(np.sqrt(np.diagonal(covariance, axis1=1, axis2=2).mean()))
    if statistic.noisy.shape[-1] < K:
        tables, covariance = tables[..., 1:], np.zeros((0, 0))
    else:
        covariance = covariance.reshape(*columns, *covariance.shape[1:])
    noisy = np.rint(tables * FINE).astype(np.int64)
    return replace(statistic, noisy=noisy, divisor=FINE, deviation=deviation, covariance=covariance)
