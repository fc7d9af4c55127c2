"""Exact draws of convex energies by rejection: of densities whose logarithm is concave, and bends no faster than regressions' do.

A chain's draws have the law that is promised at convergence only. These have it whatever was accepted, but for floating point.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator

from pymc_dp.posterior.concave_laws import Law

SHELLS, GROUPS = 256, 64
"""The envelope is constant in so many shells; records are put together in so many groups by their leverage."""
WEIGHTS = (1.0, 0.8, 0.6, 0.45, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)
"""Weights of the likelihood's curvature in the metric, of which that with the smallest envelope is taken."""
INNERMOST = 0.02
"""The outer end of the innermost shell, times the root of the number of unknowns."""
NEAREST = 1e-9
"""How wide the narrowest cells of a coordinate are, as a share of its box."""
AT_ONCE = 2**22
"""So many linear predictors are computed at once, at most."""
MOST_AT_ONCE = 4096
"""And so many proposals."""


@dataclass(frozen=True, eq=False)
class Part:
    """What one likelihood adds to an energy: its law's, summed over N records with weights.

    Attributes
    ----------
    law : Law
    features : (N, P) ndarray
    offset, values : (N,) ndarray
        The linear predictor where all unknowns are 0, and what was observed.
    weight : (N,) ndarray
    """

    law: Law
    features: np.ndarray
    offset: np.ndarray
    values: np.ndarray
    weight: np.ndarray

    def predictors(self, points: np.ndarray) -> np.ndarray:
        """Linear predictors (G, N) at points (G, P)."""
        return self.offset + points @ self.features.T


@dataclass(frozen=True, eq=False)
class Target:
    """A density in proportion to exp(-energy) on a box and, for some of its coordinates, in balls around 0.

    Attributes
    ----------
    parts : sequence of Part
    precision : (P, P) ndarray
    shift : (P,) ndarray
        The prior's energy is x' precision x / 2 - shift' x.
    lower, upper : (P,) ndarray
    balls : sequence of (slice, float)
        Coordinates whose norm is no larger than a radius.
    log_density : callable
        From points (G, P) to the logarithms (G,) of what is drawn from, minus infinity where there is none.
    """

    parts: Sequence[Part]
    precision: np.ndarray
    shift: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    balls: Sequence[tuple[slice, float]]
    log_density: Callable[[np.ndarray], np.ndarray]

    @property
    def width(self) -> np.ndarray:
        """How wide the box is (P,)."""
        return self.upper - self.lower

    def energy(self, point: np.ndarray) -> float:
        """The energy at a point (P,)."""
        each = [part.weight @ part.law.energy(part.predictors(point), part.values) for part in self.parts]
        return float(sum(each) + point @ self.precision @ point / 2 - self.shift @ point)

    def gradient(self, point: np.ndarray) -> np.ndarray:
        """Its gradient (P,)."""
        each = [part.features.T @ (part.weight * part.law.slope(part.predictors(point), part.values)) for part in self.parts]
        return np.sum(each, axis=0) + self.precision @ point - self.shift

    @cached_property
    def lowest(self) -> np.ndarray:
        """The point (P,) of least energy, nearly."""
        from scipy.optimize import minimize

        middle, half = (self.lower + self.upper) / 2, self.width / 2

        def within(ball: tuple[slice, float]) -> dict:
            place, radius = ball
            inside = np.zeros(len(half))
            inside[place] = (half[place] / radius) ** 2
            return {"type": "ineq", "fun": lambda z: 1 - inside @ z**2, "jac": lambda z: -2 * inside * z}

        steep = max(1.0, float(np.abs(half * self.gradient(middle)).max()))  # a first step of that length would end the search
        found = minimize(
            lambda z: self.energy(middle + half * z) / steep, np.zeros(len(half)),
            jac=lambda z: half * self.gradient(middle + half * z) / steep,
            method="SLSQP", bounds=[(-1, 1)] * len(half), constraints=[within(ball) for ball in self.balls],
            options={"maxiter": 1000, "ftol": 1e-14},
        )  # fmt: skip
        point = middle + half * np.clip(np.nan_to_num(found.x), -1, 1)
        point = np.where(found.x >= 1, self.upper, np.where(found.x <= -1, self.lower, point))
        for place, radius in self.balls:
            point[place] /= max(1.0, np.sqrt((point[place] ** 2).sum()) / radius)
        return point


def left(s: np.ndarray) -> np.ndarray:
    """(exp(-s) + s - 1) / s^2, the share of a quadratic that is left at a distance s; it falls from 1/2 at 0."""
    s = np.maximum(s, 1e-4)
    return np.minimum((np.expm1(-s) + s) / s**2, 0.5)


@dataclass(frozen=True, eq=False)
class Envelope:
    """A density that is nowhere below the target's, and easily drawn from: constant in shells around the point of least energy.

    Let v be the way from there, B a metric, and r = sqrt(v' B v). Of a law whose third derivative is no larger than b times the second
    (Bach 2010, Self-concordant analysis for logistic regression, proposition 1), the energy at the predictor h + d is at least

        energy(h) + d slope(h) + d^2 curvature(h) k(b |d|),    k(s) = (exp(-s) + s - 1) / s^2,

    k falls, and |d| = |x' v| <= r sqrt(x' B^-1 x). So all of it together is at least the energy at the centre, and g' v with the gradient g
    there, and v' M(r) v with M(r) = precision / 2 + sum of curvature k(b r sqrt(x' B^-1 x)) x x'; and v' M(r) v is at least r^2 times the
    least eigenvalue of M(r) with respect to B. As r^2 k(c r) grows with r, what holds at the inner end of a shell holds in it.

    The centre is nearly that of least energy, so g' v is nearly positive: where it lies at an end of the box, g_k v_k >= |g_k| v_k^2 /
    width, and at the edge of a ball with g = -l x, g' v >= l |v|^2 / 2; these add to M. By how much g' v may be less is ``slack``.

    Attributes
    ----------
    centre : (P,) ndarray
    slack : float
    root : (P, P) ndarray
        The inverse of B's Cholesky factor L: v = root' u has v' B v = u' u.
    edges : (S + 1,) ndarray
        Of shells, in r.
    least : (S,) ndarray
        The least energy in every shell, less that at the centre, but for ``slack``.
    size : float
        The logarithm of the envelope's integral, but for what rests on the number of unknowns alone.
    """

    centre: np.ndarray
    slack: float
    root: np.ndarray
    edges: np.ndarray
    least: np.ndarray
    size: float

    @property
    def integral(self) -> float:
        """The logarithm of the envelope's integral, with what ``slack`` adds: of the density whose logarithm is 0 at the centre."""
        from scipy.special import gammaln

        P = len(self.centre)
        return self.size + P / 2 * np.log(np.pi) - float(gammaln(P / 2 + 1)) + self.slack

    @property
    def weights(self) -> np.ndarray:
        """How likely the shells are (S,), as logarithms."""
        return _weights(self.edges, self.least, len(self.centre))

    def proposals(self, many: int, rng: Generator) -> tuple[np.ndarray, np.ndarray]:
        """Points (many, P), and the least energy in the shell of each (many,)."""
        P, logs = len(self.centre), self.weights
        chances = np.exp(logs - logs.max())
        shell = rng.choice(len(chances), many, p=chances / chances.sum())
        inner, outer = self.edges[shell] ** P, self.edges[shell + 1] ** P
        out = (inner + (outer - inner) * rng.random(many)) ** (1 / P)
        direction = rng.standard_normal((many, P))
        direction /= np.sqrt((direction**2).sum(axis=1, keepdims=True))
        return self.centre + (out[:, None] * direction) @ self.root, self.least[shell]


def _weights(edges: np.ndarray, least: np.ndarray, P: int) -> np.ndarray:
    return np.log(edges[1:] ** P - edges[:-1] ** P) - least


def _pull(target: Target, gradient: np.ndarray, centre: np.ndarray) -> tuple[np.ndarray, float]:
    """What the ends add to the curvature (P,), twice over as in a Hessian, and by how much gradient' v may be less at most."""
    held, slack = np.zeros(len(centre)), 0.0
    in_balls = np.zeros(len(centre), dtype=bool)
    for place, radius in target.balls:
        in_balls[place] = True
        x, g = centre[place], gradient[place]
        multiplier = max(0.0, -(g @ x) / radius**2)
        rest = g + multiplier * x
        held[place] += multiplier
        # -x' v = (|v|^2 + |x|^2 - |x + v|^2) / 2, and |x + v| is no more than the radius
        slack += multiplier * max(radius**2 - x @ x, 0.0) / 2 + 2 * radius * np.sqrt(rest @ rest)
    back = np.where(gradient > 0, centre - target.lower, target.upper - centre)  # how far the energy could fall
    at_end = (back == 0) & ~in_balls
    held += np.where(at_end, 2 * np.abs(gradient) / target.width, 0.0)
    slack += float((np.abs(gradient) * back)[~in_balls].sum())
    return held, slack


def _groups(part: Part, curvature: np.ndarray, root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of records of like leverage the sum (GROUPS, P, P) of curvature times x x' in the metric, and the largest bend times leverage."""
    seen = part.features @ root.T
    reach = part.law.bend * np.sqrt((seen**2).sum(axis=1))
    order = np.array_split(np.argsort(reach), GROUPS)
    sums = [(seen[some].T * curvature[some]) @ seen[some] for some in order]
    return np.array(sums), np.array([reach[some].max(initial=0.0) for some in order])


def envelope_of(target: Target) -> Envelope:
    """The smallest of the envelopes with these weights in their metric."""
    centre = target.lowest
    held, slack = _pull(target, target.gradient(centre), centre)
    known = target.precision + np.diag(held)
    curvatures = [part.weight * part.law.curvature(part.predictors(centre), part.values) for part in target.parts]
    seen = sum((part.features.T * c) @ part.features for part, c in zip(target.parts, curvatures, strict=True))
    P = len(centre)
    best: Envelope | None = None
    for weight in WEIGHTS:
        metric = known + weight * seen + np.diag(1 / target.width**2)
        factor = np.linalg.cholesky(metric)
        root = np.linalg.inv(factor)
        farthest = (target.width * np.sqrt(np.diag(metric))).sum()
        inner = min(INNERMOST * np.sqrt(P), farthest / 2)
        edges = np.array([0.0, *np.geomspace(inner, farthest, SHELLS)])
        matrices = (root @ known @ root.T / 2)[None]
        for part, curvature in zip(target.parts, curvatures, strict=True):
            sums, reach = _groups(part, curvature, root)
            matrices = matrices + np.einsum("sg,gij->sij", left(edges[:-1, None] * reach), sums)
        least = edges[:-1] ** 2 * np.maximum(np.linalg.eigvalsh(matrices)[:, 0], 0.0)
        size = float(np.logaddexp.reduce(_weights(edges, least, P)) - np.log(np.diag(factor)).sum())
        if best is None or size < best.size:
            best = Envelope(centre, slack, root, edges, least, size)
    assert best is not None
    return best


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


def drawn_by_rejection(target: Target, many: int, rng: Generator) -> np.ndarray:
    """Independent draws (many, P) from the target, exact but for floating point.

    A proposal x in a shell or a cell is accepted with probability exp(least + energy(centre) - energy(x) - slack), which ``Envelope`` and
    ``Product`` show to be no more than 1. Of the two envelopes the smaller is taken.
    """
    envelopes: list[Envelope | Product] = [envelope_of(target), product_of(target)]
    envelope = min(envelopes, key=lambda one: one.integral)
    top = target.log_density(envelope.centre[None])[0]
    size = max(len(part.offset) for part in target.parts)
    at_once = int(np.clip(AT_ONCE // max(size, 1), 1, MOST_AT_ONCE))
    result: list[np.ndarray] = []
    while len(result) < many:
        points, least = envelope.proposals(at_once, rng)
        inside = ((points >= target.lower) & (points <= target.upper)).all(axis=1)
        for place, radius in target.balls:
            inside &= (points[:, place] ** 2).sum(axis=1) <= radius**2
        points, least = points[inside], least[inside]
        chance = target.log_density(points) - top + least - envelope.slack
        result += list(points[np.log(rng.random(len(points))) < chance])
    return np.array(result[:many])
