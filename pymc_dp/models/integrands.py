"""Densities of users' own that are integrated by quadrature: what they must integrate to, and what quadrature finds of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.models.custom_density import ENDS, integrals_of_rows, rows_for, values_of_rows
from pymc_dp.models.interval_nodes import NODES, nodes_between
from pymc_dp.models.likelihood_rv import Written

FINER = 32
"""Into so many parts an interval is divided to be integrated more finely."""


def integral_of(density: Written, parameters: Sequence[Variable]) -> float:
    """What a function integrates to at most of its unknowns, of which ``check_density`` or ``is_density`` knows that it is one number."""
    rows, _ = rows_for(density, parameters)
    found = integrals_of_rows(density, rows)
    return float(np.median(found[np.isfinite(found) & (found > 0)]))


@dataclass(frozen=True, eq=False)
class Integrand:
    """A density as it is integrated between points.

    Attributes
    ----------
    density : Written
        The logarithm of it, up to a factor.
    whole : float
        What it integrates to, whatever its parameters are.
    points : ndarray
        In increasing order, (P,).
    """

    density: Written
    whole: float
    points: np.ndarray

    @property
    def infinite(self) -> frozenset[float]:
        """Where supports may end, and densities be infinite: 0, 1 and the outermost points."""
        return frozenset((*ENDS, *self.points[[0, -1]])) if len(self.points) else frozenset(ENDS)

    @property
    def nodes(self) -> int:
        """At how many values the density is computed."""
        return len(nodes_between(self.points, -np.inf, np.inf, self.infinite)[0])

    def masses(self, rows: np.ndarray, *, finer: bool = False) -> np.ndarray:
        """The integrals up to the first point, between the points, and beyond the last (R, P + 1), as shares of ``whole``.

        By the rule of the private model, or by one ``FINER``. What is no number counts as 0.

        Parameters
        ----------
        rows : ndarray
            Parameters, (R, K).
        finer : bool
        """
        points = self._finer() if finer else self.points
        nodes, log_weights, pieces = nodes_between(points, -np.inf, np.inf, self.infinite)
        with np.errstate(all="ignore"):
            at_nodes = np.nan_to_num(np.exp(values_of_rows(self.density, rows, nodes) + log_weights), nan=0.0)
        first_nodes = NODES * np.cumsum([0, *pieces[:-1]])  # of every interval between the points by which it is integrated
        first_intervals = [0, *(np.searchsorted(points, self.points) + 1)]
        return np.add.reduceat(at_nodes, first_nodes[first_intervals], axis=1) / self.whole

    def _finer(self) -> np.ndarray:
        """The points, and others between them and as far beyond them as they lie apart."""
        if len(self.points) < 2:
            return self.points
        far = 2 * self.points[[0, -1]] - self.points[[-1, 0]]
        beyond = [np.linspace(*ends, FINER * len(self.points)) for ends in ((far[0], self.points[0]), (self.points[-1], far[1]))]
        within = np.interp(np.arange(FINER * (len(self.points) - 1) + 1) / FINER, np.arange(len(self.points)), self.points)
        return np.unique(np.concatenate([*beyond, within, self.points]))
