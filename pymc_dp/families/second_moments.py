"""Second moments of features and responses: what a linear likelihood is released as.

A record's response y (q columns, q = 1 unless multivariate) is normal about D phi. Its likelihood rests on the second moments of
(1, D, y), which are summed over records as integers. Features computed from public covariates alone are known, so only their products
with something private are released. Every private entry is centred and scaled to u in [-1, 1] on POINTS lattice points either way, every
public feature to [-1, 1] by its largest value; all products share the lattice 1/POINTS**2.

Features that are computed from the same covariates, such as age beside its square, are all but the same on [-1, 1]. So what is released
of a feature may be less a combination of others (``basis``), which is public: coefficients of what the model says follow exactly.

Products with the response matter more for the width of slopes than the others. So before the noise both may be multiplied by a small whole
number of their own (``multipliers``), which is public, and all that is released is divided by it again.

Where the mean of y is a function of D phi, the sums are those of a score and its information at a point that is public (``scores``):
of (y - mean) D and of weight D D', which are the second moments of a normal response again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil

import numpy as np

from pymc_dp.families.family import Sensitivity
from pymc_dp.families.grid import POINTS, clamps, to_points
from pymc_dp.families.scores import Scores, record_scores

MOST_ENTRIES = 4
"""The most entries of a vector whose clamping is part of the law: 14 sums, all of which are latent."""


@dataclass(frozen=True)
class Regression:
    """The statistics of one linear likelihood, and what may be known of them beforehand.

    Attributes
    ----------
    names : tuple of str
        Of the features; the first is 1 for every record.
    private : tuple of bool
        Which features rest on a private covariate.
    lower, upper : tuple of float
        Bounds of what is released of the features; of public ones, minus and plus their largest absolute value.
    response_lower, response_upper : tuple of float
        Bounds of the q responses; of columns with bounds of their own (``Domain.columns``) -1 and 1, to which each is scaled by its own.
    scale_known : bool
        Whether sigma, or the covariance, is known: then squares and products of responses are not needed.
    counted : bool
        Whether the number of records in a cell is itself released: cells are private, or n is.
    link : str
        "" where the responses are normal about D phi; else of what D phi is the "logit" or the "log", a mean.
    predictor : (float, float)
        With a link, between which values D phi is taken to lie.
    public_norm, public_square : float
        Largest sum of absolute values, and of squares, of one record's public features, scaled; the first feature included.
    basis : tuple of tuple of float
        Of F rows, one for what is released of every feature: its coefficients of the features. Empty where that is the features.
    multipliers : (int, int)
        By what products of a feature with the response, which are scores where there is a link, are multiplied before the noise, second;
        and all other entries, which are the information then, first.
    scales : tuple of float
        Of moments that others published, how many times the least noise the noise on every released entry has; empty where it is alike.
    probed : tuple of tuple of float
        Means of the features over points within bounds (``CovariateFeatures.probed``); empty where they are not known.
    """

    names: tuple[str, ...]
    private: tuple[bool, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    response_lower: tuple[float, ...]
    response_upper: tuple[float, ...]
    scale_known: bool
    counted: bool = False
    public_norm: float = 1.0
    public_square: float = 1.0
    link: str = ""
    predictor: tuple[float, float] = (0.0, 0.0)
    basis: tuple[tuple[float, ...], ...] = ()
    multipliers: tuple[int, int] = (1, 1)
    scales: tuple[float, ...] = ()
    probed: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        every, response = self.multipliers
        least, most = (response, every) if self.link else (every, response)
        if not 1 <= least <= most or (self.link and response > 1) or (self.q > 1 and self.multipliers != (1, 1)):
            raise ValueError("the argument about second moments does not cover these multipliers")

    @property
    def q(self) -> int:
        """Number of response columns of one value."""
        return len(self.response_lower)

    @property
    def clamped_vectors(self) -> bool:
        """Whether moments are those of vectors without covariates, and few enough, that clamping is part of their law."""
        return 1 < self.q <= MOST_ENTRIES and len(self.names) == 1

    @property
    def size(self) -> int:
        """Rows of the moment matrix of (features, responses)."""
        return len(self.names) + self.q

    @cached_property
    def entries(self) -> tuple[tuple[int, int], ...]:
        """Places (i, j), i <= j, of the moment matrix that are released."""
        F = len(self.names)
        unknown = [*self.private, *[True] * self.q]
        kept = []
        for i in range(self.size):
            for j in range(i, self.size):
                if i >= F and self.scale_known:
                    continue
                if unknown[i] or unknown[j] or (self.counted and i == j == 0):
                    kept.append((i, j))
        return tuple(kept)

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """The factor that every released entry is multiplied by before the noise: a whole number, except where others published them."""
        return tuple(1 / scale for scale in self.scales) if self.scales else self._whole_weights

    @property
    def _whole_weights(self) -> tuple[int, ...]:
        """The ``weights`` of what is released here; moments that others published have no sensitivity that is known here."""
        if self.scales:
            raise ValueError("nothing is released of moments that others published")
        every, response = self.multipliers
        return tuple(response if i < len(self.names) <= j else every for i, j in self.entries)

    @property
    def most_added(self) -> tuple[int, int]:
        """L1 norm and squared L2 norm, at most, of what one record adds, in lattice units and their squares.

        Entries are at most 1 in size, times what they are multiplied by; those of scores less, together.
        """
        if self.link:
            return self.scores.most_added
        weights = self._whole_weights
        return sum(weights) * POINTS**2, sum(weight**2 for weight in weights) * POINTS**4

    @property
    def lattice(self) -> float:
        """One lattice unit of a product."""
        return 1.0 / POINTS**2

    def statistics(self) -> tuple[str, ...]:
        """Names of the released sums; an entry of that name is scaled to [-1, 1]."""
        names = [*self._released_names(), *(["y"] if self.q == 1 else [f"y{k}" for k in range(self.q)])]
        if self.link:
            parts = [
                ("weight" if j < len(names) - 1 else "(y - mean)", *(names[k] for k in (i, j) if 0 < k < len(names) - 1))
                for i, j in self.entries
            ]
            return tuple(f"sum {' '.join(part)}" for part in parts)
        sums = []
        for i, j in self.entries:
            if i == j == 0:
                sums.append("n")
            elif i == 0:
                sums.append(f"sum {names[j]}")
            else:
                sums.append(f"sum {names[i]}²" if i == j else f"sum {names[i]} {names[j]}")
        return tuple(sums)

    def _released_names(self) -> list[str]:
        """The features' names, and what of others is added to them or taken off."""
        names = list(self.names)
        for k, row in enumerate(self.basis):
            others = [f"{'-' if c < 0 else '+'} {abs(c):.3g} {self.names[j]}" for j, c in enumerate(row) if c and j != k]
            names[k] = f"({' '.join([names[k], *others])})" if others else names[k]
        return names

    def released(self, features: np.ndarray) -> np.ndarray:
        """What is released of features (..., F): each row of the basis in turn, term by term, so that no record rests on another."""
        if not self.basis:
            return features
        result = np.zeros(features.shape)
        with np.errstate(all="ignore"):
            for k, row in enumerate(self.basis):
                for j, coefficient in enumerate(row):
                    if coefficient:
                        result[..., k] += coefficient * features[..., j]
        return result

    def scaled(self, features: np.ndarray, responses: np.ndarray) -> np.ndarray:
        """Integers (N, size): every feature and response on its grid, clipped to the grid's ends whatever rounding did."""
        return self.on_grid(list(features.T), list(responses.T)).T.astype(np.int64)

    def on_grid(self, features: Sequence[np.ndarray], responses: Sequence[np.ndarray]) -> np.ndarray:
        """The whole numbers of ``scaled`` as float64 (size, N), for products that BLAS adds up: none is above POINTS in size.

        Features and responses are given one by one, each (N,).
        """
        if self.basis:
            features = list(np.moveaxis(self.released(np.stack(features, axis=-1)), -1, 0))
        columns, (centre, half) = np.empty((self.size, len(features[0]))), self.centres()
        columns[0] = POINTS
        with np.errstate(all="ignore"):
            for k, values in enumerate([*features, *responses]):
                if k > 0:
                    np.subtract(values.astype(np.float64, copy=False), centre[k], out=columns[k])
            to_points(columns[1:], np.array(half[1:])[:, None])
        return columns

    @cached_property
    def clamps(self) -> tuple[bool, ...]:
        """The features and responses whose values beyond their bounds are moved to these by the grid itself."""
        bounds = zip([*self.lower, *self.response_lower], [*self.upper, *self.response_upper], strict=True)
        return tuple(clamps(lower, upper) for lower, upper in bounds)

    def exact(self, columns: np.ndarray) -> Iterator[np.ndarray]:
        """One int64 array (N,) after another, for every released entry: products of a record's integers, in lattice units, multiplied."""
        for (i, j), weight in zip(self.entries, self._whole_weights, strict=True):
            yield columns[:, i] * columns[:, j] * weight

    def scored(self, columns: np.ndarray, responses: np.ndarray, anchor: np.ndarray) -> Iterator[np.ndarray]:
        """With a link, one int64 array (N,) after another, for every released entry, in lattice units: see ``record_scores``.

        ``columns`` are the integers of ``scaled``, ``responses`` (N,) are within their bounds, and ``anchor`` (N, F) are the coefficients
        of every record's cell at which scores are taken.
        """
        return record_scores(self.scores, columns[:, : len(self.names)], responses, anchor)

    @property
    def scores(self) -> Scores:
        """The scores that are released of a regression with a link."""
        return Scores(len(self.names), self.link, self.response_upper[0], self.predictor, times=self.multipliers[0])

    def sensitivity(self, moves: bool = True) -> Sensitivity:
        """How far one record, replaced in its cell, can move the released sums together (docs/theory.md).

        Without a link it does not rest on bounds, because every entry lies on the grid of [-1, 1] whatever they are. So it is the same of
        columns of the response that have bounds of their own, and in all columns together a record moves the sums by what it moves those
        of one, times how many they are.

        Where records are counted, another one may be in another cell (``moves``), or in the same one, or bring nothing.

        With (v + v')/2 = a and (v - v')/2 = h the moment entries of two records differ by 2 h_i c_i with constants and public
        features, 4 a_i h_i for squares and 2 (a_i h_j + a_j h_i) for products. All grow with abs(a) and abs(h), and
        abs(a_i) + abs(h_i) <= 1, so a = 1 - h in [0, 1] is worst, whatever they are multiplied by. What is left is a quadratic in h. For
        given values of the responses it is concave and symmetric in the features, so those are equal; for given features it is so in
        responses with squares, and linear in each response without, so those are 0 or 1. That leaves one number of each: see ``_most``.

        The squared L2 distance is in each h_i at most its chord from 0 to 1, so its largest value is at a vertex: products are convex, and
        where squares are multiplied by e they are 16 e² h² (1 - h)² <= 4 e² h (1 - h) above their chord, which is 0. That is no more than
        the product with the constant, which is multiplied by e or r >= e, is below its own.
        """
        if self.link:
            return self.scores.sensitivity(moves)
        m, q, (every, response) = sum(self.private), self.q, self.multipliers
        c = Fraction(ceil(self.public_norm * POINTS), POINTS)
        square = Fraction(ceil(self.public_square * POINTS), POINTS)
        squares = 0 if self.scale_known else every * 2 * q * (q + 1)
        features, products = every * 2 * m * (m + 1), response * 2 * m * q
        most = _most(every * 2 * c * m + features + products, response * 2 * c * q + squares + products, features, squares, 2 * products)
        pairs = 0 if self.scale_known else every**2
        L2 = max(
            every**2 * (4 * square * k + 4 * k * (m - k))
            + response**2 * (4 * square * t + 4 * (k * (q - t) + t * (m - k)))
            + pairs * 4 * t * (q - t)
            for k in range(m + 1) for t in range(q + 1)
        )  # fmt: skip
        difference, distance = ceil(most * POINTS**2), ceil(L2 * POINTS**4)
        if self.counted:
            return self._counted_reach(difference, distance, 2 if moves else 1)
        why = f"second moments of {m + q} private columns on [-1, 1], together: {difference / POINTS**2:.4g}"
        largest = ceil(response * max(c, Fraction(1)) * POINTS**2)  # no public feature is above the sum c of their sizes
        return Sensitivity(difference, distance, largest, f"{why}, less than the sum of their ranges{self.said_of_multipliers()}")

    def _counted_reach(self, in_place: int, in_place_square: int, cells: int) -> Sensitivity:
        """Every entry is at most 1 in size before it is multiplied, and all are 1 for a record of ones: so much in the cell that it leaves,
        and in another that it enters.

        A record that stays in its cell moves by as much as one that is not counted, its count being the same; in L2 that may be further,
        because entries change their signs.
        """
        norm, norm_square = self.most_added
        why = f"{len(self.entries):,} second moments, the count among them, each at most 1 for one record{self.said_of_multipliers()}"
        largest = max(self._whole_weights) * POINTS**2
        return Sensitivity(max(cells * norm, in_place), max(cells * norm_square, in_place_square), largest, why)

    def said_of_multipliers(self) -> str:
        """What second moments are multiplied by, in words; an empty text where nothing is multiplied."""
        every, response = self.multipliers
        if self.multipliers == (1, 1):
            return ""
        if self.link:
            return f"; weights are multiplied by {every} before the noise, and divided after it"
        others = f", all others by {every}" if every > 1 else ""
        return (
            f"; products with the response are multiplied by {response}{others} before the noise, and divided after it, and so their"
            f" noise is {every}/{response} of that on the others; one record moves them together, multiplied, by the sensitivity shown"
        )

    def known(self, columns: np.ndarray, codes: np.ndarray, cells: int) -> np.ndarray:
        """The moment matrix (G, size, size) of the public features, zero elsewhere, in lattice units; all zero if counted."""
        result = np.zeros((cells, self.size, self.size))
        if self.counted:
            return result
        public = [k for k, private in enumerate(self.private) if not private]
        for i in public:
            for j in public:
                result[:, i, j] = np.bincount(codes, weights=(columns[:, i] * columns[:, j]).astype(float), minlength=cells)
        return result

    def matrix(self, sums: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Moment matrices (..., size, size) from released sums (..., K) and the known part (..., size, size)."""
        full = np.broadcast_to(known, (*sums.shape[:-1], self.size, self.size)).astype(float)
        for k, (i, j) in enumerate(self.entries):
            full[..., i, j] = full[..., j, i] = sums[..., k]
        return full

    def centres(self) -> tuple[list[float], list[float]]:
        """Centre and half-width of what is released of every feature, and of every response: u = (value - centre) / half."""
        lower, upper = [*self.lower, *self.response_lower], [*self.upper, *self.response_upper]
        centre = [a / 2 + b / 2 for a, b in zip(lower, upper)]
        half = [(b - a) / 2 for a, b in zip(lower, upper)]
        centre[0], half[0] = 0.0, 1.0
        return centre, half

    def onto_scaled(self) -> np.ndarray:
        """(F, F): coefficients (..., F) of the features times this are those of what is released of them, scaled."""
        F = len(self.names)
        centre, half = (np.array(part[:F]) for part in self.centres())
        onto = np.diag(half)
        onto[1:, 0] = centre[1:]
        return np.linalg.inv(np.array(self.basis)) @ onto if self.basis else onto


def _most(of_h: Fraction, of_t: Fraction, bent_h: int, bent_t: int, cross: int) -> Fraction:
    """The largest value of of_h h - bent_h h² + of_t t - bent_t t² - cross h t on the unit square, exactly.

    It is at a corner, or where the derivative along a side is 0, or where both derivatives are.
    """
    h_or_t = [Fraction(0), Fraction(1)]
    places = [(h, t) for h in h_or_t for t in h_or_t]
    if bent_h:
        places += [((of_h - cross * t) / (2 * bent_h), t) for t in h_or_t]
    if bent_t:
        places += [(h, (of_t - cross * h) / (2 * bent_t)) for h in h_or_t]
    if turning := 4 * bent_h * bent_t - cross**2:
        places.append(((2 * bent_t * of_h - cross * of_t) / turning, (2 * bent_h * of_t - cross * of_h) / turning))
    inside = [(h, t) for h, t in places if 0 <= h <= 1 and 0 <= t <= 1]
    return max(of_h * h - bent_h * h**2 + of_t * t - bent_t * t**2 - cross * h * t for h, t in inside)
