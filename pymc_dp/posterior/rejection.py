"""Draws by rejection of densities whose logarithm is concave, under the smaller of two envelopes."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from pymc_dp.posterior.envelope import SHELLS, Envelope, Target, envelope_of

NEAREST = 1e-9
"""How wide the narrowest cells of a coordinate are, as a share of its box."""
AT_ONCE = 2**22
"""So many linear predictors are computed at once, at most."""
MOST_AT_ONCE = 4096
"""And so many proposals."""


@dataclass(frozen=True, eq=False)
class Product:
    """A density that is nowhere below the target's, constant in cells of every coordinate by itself: small where the target is pushed to
    the ends of its box, or has nearly the prior's shape.

    The likelihood's energy is convex, so with the gradient g at the centre the whole energy is at least that there, and g' v, and
    v' precision v / 2; and that is at least a sum over coordinates of g_k v_k + d_k v_k^2 / 2, d_k being the precision on the diagonal less
    the absolute values beside it (Gershgorin). Each is convex, so that in a cell it is least at the point that is nearest to -g_k / d_k.

    Attributes
    ----------
    centre : (P,) ndarray
    edges : (P, C + 1) ndarray
        Of cells, in v.
    least : (P, C) ndarray
        The least value in every cell.
    """

    centre: np.ndarray
    edges: np.ndarray
    least: np.ndarray
    slack = 0.0

    @property
    def weights(self) -> np.ndarray:
        """How likely the cells are (P, C), as logarithms."""
        with np.errstate(divide="ignore"):
            return np.log(np.diff(self.edges, axis=1)) - self.least

    @property
    def integral(self) -> float:
        """The logarithm of the envelope's integral: of the density whose logarithm is 0 at the centre."""
        return float(np.logaddexp.reduce(self.weights, axis=1).sum())

    def proposals(self, many: int, rng: Generator) -> tuple[np.ndarray, np.ndarray]:
        """Points (many, P), and the least energy in the cell of each (many,)."""
        points, energies = np.empty((many, len(self.centre))), np.zeros(many)
        for k, logs in enumerate(self.weights):
            chances = np.exp(logs - logs.max())
            cell = rng.choice(len(chances), many, p=chances / chances.sum())
            low, high = self.edges[k, cell], self.edges[k, cell + 1]
            points[:, k] = self.centre[k] + low + (high - low) * rng.random(many)
            energies += self.least[k, cell]
        return points, energies


def product_of(target: Target) -> Product:
    """The envelope by coordinates, with the same centre as that by shells. Cells are narrow near the least value."""
    centre = target.lowest
    g, low, high = target.gradient(centre), target.lower - centre, target.upper - centre
    beside = np.abs(target.precision).sum(axis=1) - np.abs(np.diag(target.precision))
    d = np.maximum(np.diag(target.precision) - beside, 0.0)
    turn = np.where(d > 0, -g / np.where(d > 0, d, 1.0), np.where(g == 0, 0.0, np.copysign(np.inf, -g)))
    out = np.geomspace(NEAREST, 1.0, SHELLS) * target.width[:, None]
    start = np.clip(turn, low, high)[:, None]
    edges = np.clip(np.concatenate([start - out[:, ::-1], start, start + out], axis=1), low[:, None], high[:, None])
    at = np.clip(turn[:, None], edges[:, :-1], edges[:, 1:])
    return Product(centre, edges, g[:, None] * at + d[:, None] * at**2 / 2)


def smallest_envelope(target: Target) -> Envelope | Product:
    """The envelope with the smaller integral, under which more proposals are accepted."""
    envelopes: list[Envelope | Product] = [envelope_of(target), product_of(target)]
    return min(envelopes, key=lambda one: one.integral)


def _proposed(target: Target, envelope: Envelope | Product, rng: Generator) -> tuple[np.ndarray, np.ndarray, int]:
    """Proposals (K, P) in the support, the logarithms of the chances (K,) that they are accepted, and how many were made.

    The chance of x is exp(bound + energy(centre) - energy(x) - slack), which ``Envelope``
    and ``Product`` show to be no more than 1.
    """
    size = max(len(part.offset) for part in target.parts)
    many = int(np.clip(AT_ONCE // max(size, 1), 1, MOST_AT_ONCE))
    points, bound = envelope.proposals(many, rng)
    inside = ((points >= target.lower) & (points <= target.upper)).all(axis=1)
    for place, radius in target.balls:
        inside &= (points[:, place] ** 2).sum(axis=1) <= radius**2
    points, top = points[inside], target.log_density(envelope.centre[None])[0]
    return points, target.log_density(points) - top + bound[inside] - envelope.slack, many


def accepted(target: Target, rng: Generator) -> float:
    """The share of proposals that are accepted, about."""
    _, chances, many = _proposed(target, smallest_envelope(target), rng)
    return float(np.exp(chances).sum() / many)


def drawn_by_rejection(target: Target, many: int, rng: Generator) -> np.ndarray:
    """Independent draws (many, P) from the target, exact but for floating point."""
    envelope = smallest_envelope(target)
    result: list[np.ndarray] = []
    while len(result) < many:
        points, chances, _ = _proposed(target, envelope, rng)
        result += list(points[np.log(rng.random(len(points))) < chances])
    return np.array(result[:many])
