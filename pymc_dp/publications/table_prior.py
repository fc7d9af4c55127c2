"""The laws of a table's cells, as the moves need them, and draws of the unknowns of a ``CellPrior`` given the table.

Every conditional is exact but that of the shape, which takes Metropolis steps.

Shapes: n possible cells.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from pymc_dp.publications.cell_prior import CellPrior, terms_of
from pymc_dp.publications.table_moves import FLAT, MIXED, POISSON, log_weight
from pymc_dp.publications.table_queries import PublishedTable

EVEN, UNEVEN = 1e4, 2e-2
"""The largest and the smallest alpha and shape."""
ALPHAS = np.exp(np.linspace(np.log(UNEVEN), np.log(EVEN), 20))
FEW = 2.0
"""The parameter of the Dirichlet prior of the shares of these alphas, all together: factors of a term have few of them in common."""


@dataclass(eq=False)
class CellLaw:
    """The law of every cell as the moves take it: kind, shapes (n,), slopes (n,)."""

    kind: int
    shapes: np.ndarray
    slopes: np.ndarray

    @property
    def parts(self) -> tuple[int, np.ndarray, np.ndarray]:
        """The kind, shapes and slopes, in the order in which the compiled loops take them."""
        return self.kind, self.shapes, self.slopes


def even(cells: int) -> CellLaw:
    """Every count alike."""
    return CellLaw(FLAT, np.ones(cells), np.zeros(cells))


def poisson(means: np.ndarray) -> CellLaw:
    """Poisson with given means."""
    return CellLaw(POISSON, np.ones(len(means)), np.log(means))


def mixed(means: np.ndarray, shapes: np.ndarray) -> CellLaw:
    """Negative binomial with given means and shapes."""
    return CellLaw(MIXED, shapes, np.log(means) - np.log(means + shapes))


class Factors:
    """The unknowns of a ``CellPrior`` in one chain: drawn anew, given the table, by ``update``."""

    def __init__(self, table: PublishedTable, prior: CellPrior, rng: np.random.Generator, x: np.ndarray) -> None:
        cells = table.possible
        margins = [table.margin_of(term) for term in (prior.terms if prior.terms is not None else terms_of(table))]
        self.labels = [np.unique(place[cells], return_inverse=True)[1] for place, _ in margins]
        self.factors = [np.ones(int(label.max()) + 1) for label in self.labels]
        self.shape, self.own, self.prior = 1.0, np.ones(len(cells)), prior
        self.level = (x.sum() + 0.5) / len(cells)
        self.shares = [rng.dirichlet(np.full(len(ALPHAS), FEW / len(ALPHAS))) for _ in margins]
        self.places = [rng.choice(len(ALPHAS), len(factor), p=share) for share, factor in zip(self.shares, self.factors)]

    @property
    def means(self) -> np.ndarray:
        """(n,): of cells, but for their own factor."""
        result = np.full(len(self.own), self.level)
        for label, factor in zip(self.labels, self.factors):
            result *= factor[label]
        return np.maximum(result, 1e-250)

    @property
    def law(self) -> CellLaw:
        """The law of the counts in cells, with the cells' own factors summed out."""
        return mixed(self.means, np.full(len(self.own), self.shape))

    def update(self, rng: np.random.Generator, x: np.ndarray) -> None:
        """Draw the shape and the terms' factors with the cells' own summed out, then these, then the terms' again, then the level."""
        means = self.means
        self.shape = new_shape(rng, x, means, self.shape)
        for k, label in enumerate(self.labels):
            ratio = self._by_metropolis(rng, x, means, k)
            self.factors[k] *= ratio
            means = means * ratio[label]
        self.own = np.maximum(rng.gamma(self.shape + x) / (self.shape + means), 1e-300)
        for k, label in enumerate(self.labels):
            others = self.own * means / self.factors[k][label]
            here, there = np.bincount(label, weights=x), np.bincount(label, weights=others)
            self.places[k], self.shares[k] = new_alphas(rng, here, there, self.places[k], self.shares[k])
            alpha = ALPHAS[self.places[k]]
            self.factors[k] = np.maximum(rng.gamma(alpha + here) / (alpha + there), 1e-100)
            means = self.means
        shape, rate = self.prior.level
        self.level = rng.gamma(shape + x.sum()) / (rate + (self.own * means).sum() / self.level)

    def _by_metropolis(self, rng: np.random.Generator, x: np.ndarray, means: np.ndarray, k: int) -> np.ndarray:
        """By how much each factor of a term grows: one Metropolis step in its logarithm, the cells' own factors summed out."""
        label, factor, alpha = self.labels[k], self.factors[k], ALPHAS[self.places[k]]
        here = np.bincount(label, weights=x)
        width = 2 / np.sqrt(alpha + here * min(self.shape, 1.0) + 0.2)
        step = np.clip(width * rng.standard_normal(len(factor)) * rng.choice([0.3, 1.0]), -20, 20)
        height = step * (here + alpha) - alpha * factor * np.expm1(step)
        height -= np.bincount(label, weights=(self.shape + x) * np.log1p(means * np.expm1(step)[label] / (means + self.shape)))
        new = np.log(rng.random(len(factor))) < height
        inside = (factor * np.exp(step) > 1e-90) & (factor > 1e-90)
        return np.where(new & inside, np.exp(step), 1.0)


def new_alphas(
    rng: np.random.Generator, here: np.ndarray, there: np.ndarray, places: np.ndarray, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """New alphas of a term's factors, as places in the grid, and the shares of its points; factors are summed out, and all is exact.

    Counts ``here`` have means factor x ``there``. First all alphas and shares move round the grid together, which their prior does not
    notice; then every factor draws its alpha, and these the shares.
    """
    from scipy.special import gammaln

    many = len(ALPHAS)
    a = ALPHAS[:, None]
    logs = gammaln(a + here) - gammaln(a) + a * np.log(a / (a + there)) - here * np.log(a + there)
    turned = (places + np.arange(many)[:, None]) % many
    turn = _drawn(rng.random(1), np.take_along_axis(logs, turned, axis=0).sum(axis=1, keepdims=True))[0]
    shares = np.roll(shares, turn)
    places = _drawn(rng.random(len(here)), logs + np.log(np.maximum(shares, 1e-300))[:, None])
    return places, rng.dirichlet(FEW / many + np.bincount(places, minlength=many))


def _drawn(uniform: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """For every column of log-weights (k, m) one of its rows, chosen by a uniform number (m,)."""
    sums = np.cumsum(np.exp(logs - logs.max(axis=0)), axis=0)
    return np.minimum((sums <= uniform * sums[-1]).sum(axis=0), len(logs) - 1)


@njit(cache=True, nogil=True)
def _log_shape(x: Any, means: Any, shape: float) -> float:
    value = 0.0
    nothing = log_weight(MIXED, 0.0, shape, 0.0)
    for c in range(len(x)):
        slope = np.log(means[c] / (means[c] + shape))
        value += (log_weight(MIXED, x[c], shape, slope) if x[c] > 0 else nothing) - nothing
        value -= shape * np.log1p(means[c] / shape)
    return value


def new_shape(rng: np.random.Generator, x: np.ndarray, means: np.ndarray, shape: float) -> float:
    """A new shape of the cells' own factors, by Metropolis steps in its logarithm, wide and narrow ones."""
    now = _log_shape(x, means, shape)
    for width in (1.0, 0.2, 0.04):
        new = shape * float(np.exp(width * rng.standard_normal()))
        if UNEVEN <= new <= EVEN:
            height = _log_shape(x, means, new)
            if np.log(rng.random()) < height - now:
                shape, now = new, height
    return shape
