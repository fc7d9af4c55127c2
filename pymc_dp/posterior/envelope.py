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
NEAR = 1e-6
"""What is so near to an end of the box, in halves of its width, is at the end if the energy falls towards it."""


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

        size = max(np.abs(half * self.gradient(middle)).max(), 1.0)  # it does not converge where energies are large
        found = minimize(
            lambda z: self.energy(middle + half * z) / size,
            np.zeros(len(half)),
            method="SLSQP",
            jac=lambda z: half * self.gradient(middle + half * z) / size,
            bounds=[(-1, 1)] * len(half),
            constraints=[within(ball) for ball in self.balls],
            options={"maxiter": 1000, "ftol": 1e-14},
        )
        z = np.clip(np.nan_to_num(found.x), -1, 1)
        point = middle + half * z
        at_end = np.where(z > 1 - NEAR, self.upper, np.where(z < NEAR - 1, self.lower, point))
        pulled = self.gradient(at_end) * np.sign(z) < 0  # where the search stopped just short of an end to which the energy falls
        point = np.where(pulled, at_end, point)
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
    width, and at the edge of a ball with g = -l x, g' v >= l |v|^2 / 2; these add to M. By how much g' v may be less is ``slack``. At an
    end at which the energy rises steeply v_k is exponential instead, by its gradient; of the other coordinates, less what they are expected
    to be given these, B's part for them alone is no larger than r^2, and takes its place.

    Attributes
    ----------
    centre : (P,) ndarray
    slack : float
    steep : (P,) ndarray
        The gradient where v is exponential, and 0 elsewhere.
    width : (P,) ndarray
        Of the box.
    lean : (E, F) ndarray
        By how much the F others move with the E exponential coordinates.
    root : (F, F) ndarray
        The inverse of the Cholesky factor L of B's part for the others: v = root' u has v' B v = u' u.
    edges : (S + 1,) ndarray
        Of shells, in r.
    least : (S,) ndarray
        The least energy in every shell, less that at the centre, but for ``slack``.
    size : float
        The logarithm of the envelope's integral, but for what rests on the coordinates alone.
    """

    centre: np.ndarray
    slack: float
    steep: np.ndarray
    width: np.ndarray
    lean: np.ndarray
    root: np.ndarray
    edges: np.ndarray
    least: np.ndarray
    size: float

    @property
    def integral(self) -> float:
        """The logarithm of the envelope's integral, with what ``slack`` adds: of the density whose logarithm is 0 at the centre."""
        from scipy.special import gammaln

        rates, F = np.abs(self.steep[self.steep != 0]), int((self.steep == 0).sum())
        along = np.log(-np.expm1(-rates * self.width[self.steep != 0]) / rates).sum()
        return float(self.size + F / 2 * np.log(np.pi) - gammaln(F / 2 + 1) + along + self.slack)

    def proposals(self, many: int, rng: Generator) -> tuple[np.ndarray, np.ndarray]:
        """Points (many, P), and the least that the energy of each can be above that at the centre (many,), but for ``slack``."""
        ends, others = self.steep != 0, self.steep == 0
        rates = np.abs(self.steep[ends])
        along = -np.log1p(rng.random((many, ends.sum())) * np.expm1(-rates * self.width[ends])) / rates
        points, bound = np.tile(self.centre, (many, 1)), along @ rates
        along = along * np.sign(self.steep[ends])
        points[:, ends] += along
        if F := int(others.sum()):
            logs = _weights(self.edges, self.least, F)
            chances = np.exp(logs - logs.max())
            shell = rng.choice(len(chances), many, p=chances / chances.sum())
            inner, outer = self.edges[shell] ** F, self.edges[shell + 1] ** F
            out = (inner + (outer - inner) * rng.random(many)) ** (1 / F)
            direction = rng.standard_normal((many, F))
            direction /= np.sqrt((direction**2).sum(axis=1, keepdims=True))
            points[:, others] += along @ self.lean + (out[:, None] * direction) @ self.root
            bound = bound + self.least[shell]
        return points, bound


def _weights(edges: np.ndarray, least: np.ndarray, F: int) -> np.ndarray:
    """How likely shells are (S,), as logarithms."""
    return np.log(edges[1:] ** F - edges[:-1] ** F) - least


def _pull(target: Target, gradient: np.ndarray, centre: np.ndarray, curved: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Where v is exponential, by its gradient (P,); what other ends add to the curvature (P,), twice over as in a Hessian; and by how much
    gradient' v may be less than these at most. ``curved`` (P,) is the curvature along each coordinate.
    """
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
    steep = at_end & (gradient**2 > curved) & (np.abs(gradient) * target.width > 1)
    held += np.where(at_end & ~steep, 2 * np.abs(gradient) / target.width, 0.0)
    slack += float((np.abs(gradient) * back)[~in_balls].sum())
    return np.where(steep, gradient, 0.0), held, slack


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
    curvatures = [part.weight * part.law.curvature(part.predictors(centre), part.values) for part in target.parts]
    seen = sum((part.features.T * c) @ part.features for part, c in zip(target.parts, curvatures, strict=True))
    steep, held, slack = _pull(target, target.gradient(centre), centre, np.diag(target.precision + seen))
    known, ends, others = target.precision + np.diag(held), steep != 0, steep == 0
    best: Envelope | None = None
    for weight in WEIGHTS:
        metric = known + weight * seen + np.diag(1 / target.width**2)
        root = np.linalg.inv(np.linalg.cholesky(metric))
        farthest = (target.width * np.sqrt(np.diag(metric))).sum()
        edges = np.array([0.0, *np.geomspace(min(INNERMOST * np.sqrt(len(centre)), farthest / 2), farthest, SHELLS)])
        matrices = (root @ known @ root.T / 2)[None]
        for part, curvature in zip(target.parts, curvatures, strict=True):
            sums, reach = _groups(part, curvature, root)
            matrices = matrices + np.einsum("sg,gij->sij", left(edges[:-1, None] * reach), sums)
        least = edges[:-1] ** 2 * np.maximum(np.linalg.eigvalsh(matrices)[:, 0], 0.0)
        block = metric[np.ix_(others, others)]
        factor = np.linalg.cholesky(block) if others.any() else block
        size = (
            float(np.logaddexp.reduce(_weights(edges, least, int(others.sum()))) - np.log(np.diag(factor)).sum()) if others.any() else 0.0
        )
        if best is None or size < best.size:
            lean = -np.linalg.solve(block, metric[np.ix_(others, ends)]).T
            best = Envelope(centre, slack, steep, target.width, lean, np.linalg.inv(factor), edges, least, size)
    assert best is not None
    return best
