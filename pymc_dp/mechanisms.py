"""Each noise, said twice: how it is drawn, by OpenDP, and how PyMC must model it. Accounting stands before, law after.

The posterior is right only if the two agree, so they live side by side. This is the one module that imports OpenDP and the
one place privacy noise is drawn; the simulated noise of predictive draws comes from the model's own generator, through
``Noise.simulated``, and protects nothing.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import exp, expm1, inf, isfinite, nextafter, sqrt

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dp.accounting import Refusal

LARGEST_SUM = 2**62
"""Exact sums stay below this in absolute value, so that OpenDP's 64-bit integers cannot saturate near them."""

LARGEST_SCALE = 2.0**56
"""Noise of a larger scale, in lattice units, could saturate OpenDP's integers."""


@dataclass(frozen=True)
class Noise:
    """Discrete Laplace noise on a public lattice.

    The noise on every entry is ``step`` times an integer K with P(K = k) proportional to exp(-abs(k) / scale).

    Parameters
    ----------
    scale : float
        In lattice units.
    step : float
        Size of one lattice unit, in units of the statistic.
    """

    scale: float
    step: float = 1.0

    @property
    def log_ratio(self) -> float:
        """Log q = -1/scale: the log-probability lost with every further lattice unit."""
        return -1.0 / self.scale

    @property
    def standard_deviation(self) -> float:
        """In units of the statistic: sqrt(2 q) / (1 - q) lattice units (docs/theory.md)."""
        return sqrt(2.0) * self.spread

    @property
    def spread(self) -> float:
        """Scale of the continuous Laplace law of the same variance, in units of the statistic.

        Kept at a thousandth of a lattice unit or more, where the noise is all but absent: log-densities stay finite.
        """
        return max(exp(self.log_ratio / 2) / -expm1(self.log_ratio), 1e-3) * self.step

    def simulated(self, size: tuple[int, ...]) -> pt.TensorVariable:
        """Noise of this law as a random graph for predictive draws, in units of the statistic: shape ``size``.

        The difference of two geometric variables is a discrete Laplace variable. It is simulated, not private: it is seeded
        with the model's other random variables.
        """
        failure = -expm1(self.log_ratio)
        first, second = (pm.Geometric.dist(failure, shape=size) for _ in range(2))
        return (first - second).astype("float64") * self.step


@dataclass(frozen=True)
class Laplace:
    """The Laplace mechanism on integers: pure epsilon, cost sensitivity / scale."""

    name = "laplace"

    def calibrate(self, sensitivity: int, epsilon: Fraction) -> float:
        """The smallest double b, in lattice units, with sensitivity / b <= epsilon exactly.

        Parameters
        ----------
        sensitivity : int
            Largest L1 distance between the exact integer statistics of two neighbouring data sets, in lattice units.
        epsilon : Fraction
            In nats.

        Raises
        ------
        Refusal
            When so small an epsilon needs noise beyond 64-bit integers.
        """
        exact = Fraction(sensitivity) / epsilon
        scale = float(exact) if exact < Fraction(LARGEST_SCALE) else inf
        while isfinite(scale) and Fraction(sensitivity) / Fraction(scale) > epsilon:
            scale = nextafter(scale, inf)
        if not scale < LARGEST_SCALE:
            raise Refusal("epsilon is so small that its noise does not fit 64-bit integers. Write a larger epsilon.")
        return scale

    def draw(self, exact: np.ndarray, scale: float) -> np.ndarray:
        """Add independent noise to every entry: int64 of any shape in, int64 of the same shape out.

        The caller has paid; see ``release``. There is no seed: OpenDP draws from the operating system's generator.
        """
        if not 0 < scale < LARGEST_SCALE:
            raise Refusal("The noise scale must be positive and fit 64-bit integers.")
        noisy = np.asarray(_opendp_laplace([int(value) for value in exact.ravel()], scale), dtype=np.int64)
        return noisy.reshape(exact.shape)


def _opendp_laplace(exact: list[int], scale: float) -> list[int]:
    """The seam: every bit of privacy noise passes here."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    domain = vector_domain(atom_domain(T="i64"), size=len(exact))
    return make_laplace(domain, l1_distance(T="i64"), scale)(exact)


def resolve(mechanism: object) -> Laplace:
    """The mechanism meant by a short name or an instance."""
    if mechanism == "laplace" or isinstance(mechanism, Laplace):
        return Laplace()
    raise Refusal('mechanism must be "laplace" or pymc_dp.Laplace(); no other is offered yet.')
