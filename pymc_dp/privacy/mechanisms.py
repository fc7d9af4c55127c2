"""Laplace, Gaussian and Fourier noise, private choices and randomised answers. They are scaled to a cost, and drawn by OpenDP in exchange
for a receipt.

This is the one module that imports OpenDP and the one place where privacy noise is drawn. The noise of predictive draws
(``Noise.simulated``) comes from the model's own generator and protects nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp, inf, isfinite, nextafter, sqrt
from typing import Any

import numpy as np

from pymc_dp.privacy.accounting import Cost, Refusal, epsilon_of, exact_delta, rho_of
from pymc_dp.privacy.layout import as_written
from pymc_dp.privacy.noise_law import Noise
from pymc_dp.privacy.receipts import Draw, Receipt

LARGEST_SUM = 2**62
"""Exact sums stay below this in absolute value, so that OpenDP's 64-bit integers cannot saturate near them."""

LARGEST_SCALE = 2.0**56
"""Noise of a larger scale, in lattice units, could saturate OpenDP's integers."""


@dataclass(frozen=True, repr=False)
class Laplace:
    """Laplace noise, the default: ``mechanism="laplace"``. It needs no delta, and costs an epsilon of L1 sensitivity / scale.

    The noise is the discrete Laplace distribution on integers.

    Parameters
    ----------
    share_counts : bool
        For Bayesian networks: whether a variable's own counts are left out where they are sums of a child's table, which is so where
        the child's parents are the variable and the variable's parents. The other tables then get a larger share of epsilon.
    residuals : bool
        For linear regressions with two to five private features: whether half of epsilon pays for sums of residuals, at coefficients
        estimated with the other half. Most intervals are narrower for it, not every one in every data set (docs/theory.md). It applies to
        normal responses in the model, with all features private and a public number of records, where records times epsilon are 7,000 or
        more for each feature; elsewhere nothing changes. A release prints whether it did. Residuals are clamped at about 2.75 standard
        deviations. Skew errors are cut off on one side more than on the other, which moves the intercept: its interval allows for errors
        as skew as exponential ones, and is wider for it where there are tens of thousands of records (docs/theory.md).

    Examples
    --------
    >>> pmdp.release(network, epsilon=1.0, mechanism=pmdp.Laplace(share_counts=True)).cost
    Cost(epsilon=1, delta=0)
    """

    share_counts: bool = False
    residuals: bool = False
    name = priced_as = "laplace"
    __repr__ = as_written

    def total(self, epsilon: Fraction, delta: Fraction) -> Cost:
        """The cost that may be spent."""
        if delta != 0:
            raise Refusal('delta must be 0 for Laplace noise, which needs none. Leave delta out, or write mechanism="gaussian".')
        return Cost(epsilon)

    def share(self, total: Cost, part: Fraction) -> Cost:
        """A part of a cost."""
        return Cost(total.epsilon * part)

    def calibrate(self, difference: int, square: int, cost: Cost) -> float:
        """The smallest double b, in lattice units, with difference / b <= epsilon exactly.

        Parameters
        ----------
        difference, square : int
            Largest L1 and squared L2 distance between the exact integer statistics of two neighbouring data sets, in lattice
            units and their square; the first decides.
        cost : Cost

        Raises
        ------
        Refusal
            When so small an epsilon needs noise beyond 64-bit integers.
        """
        exact = Fraction(difference) / cost.epsilon
        return _smallest(exact, lambda scale: Fraction(difference) / scale <= cost.epsilon)

    def noise(self, scale: float, step: float) -> Noise:
        """The law of the noise."""
        return Noise(scale, step)

    def draw(self, exact: np.ndarray, scale: float, receipt: Receipt) -> np.ndarray:
        """Add independent noise to every entry: int64 of any shape in, int64 of the same shape out.

        The receipt must hold this draw. There is no seed: OpenDP draws from the operating system's generator.
        """
        return _drawn(exact, scale, receipt, self.priced_as)


@dataclass(frozen=True, repr=False)
class Gaussian:
    """Gaussian noise: ``mechanism="gaussian", delta=1e-6``. It is narrower where a record moves many numbers.

    The noise is the *discrete* Gaussian distribution on integers. It costs squared L2 sensitivity / (2 scale^2) in zCDP, exactly, in any
    dimension. The formula of the analytic Gaussian mechanism does not fit it (docs/theory.md).

    Parameters
    ----------
    delta : float, optional
        The delta, if the argument ``delta`` of ``release`` is left out.
    share_counts : bool
        See ``Laplace``. If k of K tables are released, noise is sqrt(k / K) times as wide, because fewer share rho.

    Examples
    --------
    >>> pmdp.release(model, epsilon=1.0, mechanism=pmdp.Gaussian(delta=1e-6)).delta
    Fraction(1, 1000000)
    """

    delta: object = None
    share_counts: bool = False
    name = priced_as = "gaussian"
    __repr__ = as_written

    def total(self, epsilon: Fraction, delta: Fraction) -> Cost:
        """The cost that may be spent, in zCDP: the largest rho that implies (epsilon, delta)."""
        if self.delta is not None and delta not in (0, exact_delta(self.delta)):
            raise Refusal("delta was given twice, differently. Write it once: release(..., mechanism='gaussian', delta=1e-6).")
        delta = delta if self.delta is None else exact_delta(self.delta)
        if delta == 0:
            raise Refusal('Gaussian noise needs a delta above 0. Write for example mechanism="gaussian", delta=1e-6.')
        return Cost(epsilon, delta, rho_of(epsilon, delta))

    def share(self, total: Cost, part: Fraction) -> Cost:
        """A part of a cost: zCDP adds up."""
        assert total.rho is not None
        rho = total.rho * part
        return Cost(total.epsilon if part == 1 else epsilon_of(rho, total.delta), total.delta, rho)

    def calibrate(self, difference: int, square: int, cost: Cost) -> float:
        """The smallest double s, in lattice units, with square / (2 s^2) <= rho exactly; see ``Laplace.calibrate``."""
        assert cost.rho is not None
        rho = cost.rho
        exact = Fraction(sqrt(Fraction(square) / (2 * rho))) if square < 2**1000 else Fraction(LARGEST_SCALE)
        return _smallest(exact * (1 - Fraction(1, 2**50)), lambda scale: Fraction(square) / (2 * scale**2) <= rho)

    def noise(self, scale: float, step: float) -> Noise:
        """The law of the noise."""
        return Noise(scale, step, gaussian=True)

    def draw(self, exact: np.ndarray, scale: float, receipt: Receipt) -> np.ndarray:
        """Add discrete Gaussian noise; otherwise as ``Laplace.draw``."""
        return _drawn(exact, scale, receipt, self.priced_as)


@dataclass(frozen=True, repr=False)
class Fourier(Laplace):
    """Laplace noise on the Fourier coefficients of a Bayesian network's families (ZRD16, Algorithm 2): it costs a pure epsilon.

    The tables of families that share variables then agree. Where families overlap much, fewer numbers get noise than with one table
    for each family.

    Parameters
    ----------
    nonnegative : "minimal", "stealth" or float
        What is added so that no count is negative, for ``noise_aware=False`` only. "minimal" adds no more than the noisy coefficients
        need, which costs nothing and always suffices. A number t adds the paper's 4 t N^2 / epsilon to the empty coefficient.
        "stealth" does so with the t at which 90 % of releases of an empty table need no more. Counts that are still negative become 0.

    Examples
    --------
    >>> pmdp.release(network, epsilon=1.0, mechanism=pmdp.Fourier()).table("vote").shape
    (2, 2)
    """

    nonnegative: str | float = "minimal"
    name = "fourier"

    def __post_init__(self) -> None:
        t = self.nonnegative
        number = isinstance(t, int | float) and not isinstance(t, bool) and isfinite(t) and t >= 0
        if not number and t not in ("minimal", "stealth"):
            raise Refusal('nonnegative must be "minimal", "stealth" or a number t of at least 0. Write Fourier(nonnegative="minimal").')
        if self.share_counts:
            raise Refusal("Fourier coefficients are shared by all families already. Leave share_counts out.")
        if self.residuals:
            raise Refusal("Fourier coefficients are of tables, which have no residuals. Leave residuals out.")

    def deviation(self, scale: float, bits: int, inflation: float) -> float:
        """Standard deviation of the noise on a family's counts, each 2^-bits times a sum of 2^bits noisy coefficients.

        Every count takes the sum with signs of its own: these sums are all but uncorrelated, and their law is taken as normal
        (docs/theory.md).
        """
        return Noise(scale).standard_deviation * sqrt(inflation / 2**bits)


def _smallest(start: Fraction, enough: Callable[[Fraction], bool]) -> float:
    """The smallest double from ``start`` on that is enough noise."""
    scale = float(start) if start < Fraction(LARGEST_SCALE) else inf
    while isfinite(scale) and not enough(Fraction(scale)):
        scale = nextafter(scale, inf)
    if not scale < LARGEST_SCALE:
        raise Refusal("epsilon is so small that its noise does not fit 64-bit integers. Write a larger epsilon.")
    return scale


def _drawn(exact: np.ndarray, scale: float, receipt: Receipt, mechanism: str) -> np.ndarray:
    if not 0 < scale < LARGEST_SCALE:
        raise Refusal("The noise scale must be positive and fit 64-bit integers.")
    receipt.strike_off(mechanism, scale, exact.size)
    noisy = _noised(exact, scale, mechanism)
    receipt.check_same_process()
    return noisy


def exponential_mechanism(
    scores: Iterable[np.ndarray], scale: float, receipt: Receipt, picked: list[int] | None = None, size: int | None = None
) -> list[int]:
    """Choose a place in every row of int64 scores, with probabilities in proportion to exp(score / scale).

    The probabilities are exact: OpenDP draws Gumbel noise in exact arithmetic. The receipt must hold this draw, of mechanism "choice".
    Rows may rest on what was chosen before: then they come from an iterator that reads ``picked``, and ``size`` is the number of scores.
    """
    if not 0 < scale < LARGEST_SCALE:
        raise Refusal("The scale must be positive and fit 64-bit integers.")
    if size is None:
        scores = list(scores)
        size = sum(map(len, scores))
    receipt.strike_off("choice", scale, size)
    picked = [] if picked is None else picked
    for row in scores:
        size -= len(row)
        if size < 0:
            raise Refusal("These are more choices than were paid for.")
        picked.append(_opendp_choice([int(score) for score in row], scale))
    receipt.check_same_process()
    return picked


def generator(draws: Sequence[Draw], receipt: Receipt) -> np.random.Generator:
    """A generator for draws of real numbers, seeded by the operating system. The receipt must hold these draws.

    It is exact in the arithmetic of real numbers only, and no cryptographic generator: what is drawn with it promises no more.
    """
    for draw in draws:
        receipt.strike_off(draw.mechanism, draw.scale, draw.size)
    rng = np.random.default_rng()
    receipt.check_same_process()
    return rng


def truth_probability(scale: float, levels: int) -> float:
    """The probability with which a randomised answer that costs 1 / scale is the true one: the largest double that costs no more.

    Of K levels the true one is told with probability p, and each other one with (1 - p) / (K - 1). Whatever is told, of two true levels
    one makes it at most p (K - 1) / (1 - p) times as probable as the other, where p is at least 1 / K. OpenDP tells the truth by comparing
    p, a double, bit by bit with random bits, and chooses among the other levels uniformly, by rejection, so these are the probabilities
    that are drawn, without rounding. Its map of distances is the logarithm of that ratio, every step of it rounded up; here p is lowered
    until the map says 1 / scale or less. A test computes the ratio as a fraction and compares it with exp(1 / scale).
    """
    cost = 1 / scale if isfinite(scale) and scale > 0 else 0.0
    p = min(1 / (1 + (levels - 1) * exp(-cost)), nextafter(1.0, 0.0))
    while levels > 1 and levels * Fraction(p) > 1 and Fraction(_response(levels, p).map(1)) > 1 / Fraction(scale):
        p = nextafter(p, 0.0)
    if levels < 2 or levels * Fraction(p) <= 1:
        raise Refusal("epsilon is so small that an answer would tell nothing. Write a larger epsilon.")
    return p


def randomised_responses(places: np.ndarray, levels: int, scale: float, receipt: Receipt) -> np.ndarray:
    """Randomise every record's level: int64 (N,) of 0, ..., levels - 1 in and out, each told truly with probability ``truth_probability``.

    The receipt must hold this draw, of mechanism "answer": one answer of every record.
    """
    if places.ndim != 1 or not ((places >= 0) & (places < levels)).all():
        raise Refusal("Levels are whole numbers below their number, one of every record.")
    truth = truth_probability(scale, levels)
    receipt.strike_off("answer", scale, places.size)
    told = np.asarray(_opendp_answers([int(place) for place in places], levels, truth), dtype=np.int64)
    receipt.check_same_process()
    return told


def _noised(exact: np.ndarray, scale: float, mechanism: str) -> np.ndarray:
    noisy = (_opendp_gaussian if mechanism == "gaussian" else _opendp_laplace)([int(value) for value in exact.ravel()], scale)
    return np.asarray(noisy, dtype=np.int64).reshape(exact.shape)


def _opendp_laplace(exact: list[int], scale: float) -> list[int]:
    """Integers with Laplace noise: all of it is drawn here."""
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance

    return make_laplace(_integers(len(exact)), l1_distance(T="i64"), scale)(exact)


def _opendp_gaussian(exact: list[int], scale: float) -> list[int]:
    """Integers with Gaussian noise: all of it is drawn here."""
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance

    return make_gaussian(_integers(len(exact)), l2_distance(T="f64"), scale)(exact)


def _opendp_choice(scores: list[int], scale: float) -> int:
    """The place of a private choice: all of them are made here."""
    return int(_noisy_max(len(scores), scale)(scores))


def _opendp_answers(places: list[int], levels: int, truth: float) -> list[int]:
    """Levels, randomised one by one: all of them are drawn here."""
    respond = _response(levels, truth)
    return [respond(place) for place in places]


def _response(levels: int, truth: float) -> Any:
    """OpenDP's randomised response on 0, ..., levels - 1."""
    from opendp.measurements import make_randomized_response
    from opendp.mod import enable_features

    enable_features("contrib")
    return make_randomized_response(list(range(levels)), truth, T="i64")


@lru_cache(maxsize=16)
def _noisy_max(size: int, scale: float) -> Callable[[list[int]], int]:
    """OpenDP's noisy maximum, with Gumbel noise because of its output measure; kept, because it takes longer to make than to use."""
    from opendp.measurements import make_noisy_max
    from opendp.measures import zero_concentrated_divergence
    from opendp.metrics import linf_distance

    return make_noisy_max(_integers(size), linf_distance(T="i64"), zero_concentrated_divergence(), scale)


def _integers(size: int) -> Any:
    from opendp.domains import atom_domain, vector_domain
    from opendp.mod import enable_features

    enable_features("contrib")
    return vector_domain(atom_domain(T="i64"), size=size)


Mechanism = Laplace | Gaussian
MECHANISMS: dict[str, type[Mechanism]] = {"laplace": Laplace, "gaussian": Gaussian, "fourier": Fourier}


def check_law(mechanism: Mechanism, scale: float, step: float) -> None:
    """Refuse a noise of another law than its name stands for, which is all that a release keeps of it."""
    if resolve(mechanism.name).noise(scale, step) != mechanism.noise(scale, step):
        raise Refusal(f"The law of {mechanism.name} noise rests on its parameters, which no release keeps. Write a class for each law.")


def resolve(mechanism: object) -> Mechanism:
    """The mechanism meant by a short name or an instance."""
    if isinstance(mechanism, Laplace | Gaussian):
        if MECHANISMS.get(mechanism.name) is not type(mechanism) or mechanism.priced_as not in (Laplace.name, Gaussian.name):
            raise Refusal(
                "A release remembers its noise by a name. Give yours one of its own, write MECHANISMS[name] = its class in"
                ' pymc_dp.privacy.mechanisms, and let priced_as be "laplace" or "gaussian".'
            )
        return mechanism
    if isinstance(mechanism, str) and mechanism in MECHANISMS:
        return MECHANISMS[mechanism]()
    raise Refusal(
        'mechanism must be "laplace", "gaussian", "fourier", pymc_dp.Laplace(), pymc_dp.Gaussian(delta=...) or pymc_dp.Fourier().'
    )
