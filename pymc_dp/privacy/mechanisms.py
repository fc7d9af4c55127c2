"""Each noise, said twice: how it is drawn, by OpenDP, and how PyMC must model it.

The posterior is right only if the two agree, so they live side by side. This is the one module that imports OpenDP and the
one place privacy noise is drawn; the simulated noise of predictive draws comes from the model's own generator, through
``Noise.simulated``, and protects nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, inf, isfinite, log, log1p, nextafter, pi, sqrt
from os import PathLike
from threading import Lock

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dp.privacy.accounting import Cost, Refusal, epsilon_of, exact_delta, exact_epsilon, rho_of
from pymc_dp.privacy.journal import process

LARGEST_SUM = 2**62
"""Exact sums stay below this in absolute value, so that OpenDP's 64-bit integers cannot saturate near them."""

LARGEST_SCALE = 2.0**56
"""Noise of a larger scale, in lattice units, could saturate OpenDP's integers."""

MOST_POINTS = 2**17
"""The most points of a grid: OpenDP is handed one score for each."""

UNACCOUNTED = "unaccounted"
"""Said in place of the head of a ledger where there is none."""


@dataclass(frozen=True)
class Noise:
    """Discrete noise on a public lattice: ``step`` times an integer K, independent for every entry.

    Parameters
    ----------
    scale : float
        In lattice units: of discrete Laplace noise, P(K = k) proportional to exp(-abs(k) / scale); of discrete Gaussian noise
        to exp(-k^2 / (2 scale^2)).
    step : float
        Size of one lattice unit, in units of the statistic.
    gaussian : bool
    """

    scale: float
    step: float = 1.0
    gaussian: bool = False

    @property
    def log_ratio(self) -> float:
        """Log q = -1/scale: the log-probability that Laplace noise loses with every further lattice unit."""
        return -1.0 / self.scale

    @property
    def standard_deviation(self) -> float:
        """In units of the statistic: sqrt(2 q) / (1 - q) lattice units for Laplace noise (docs/theory.md)."""
        if not self.gaussian:
            return sqrt(2.0) * self.spread
        if self.scale > 8:  # the discrete and the continuous law agree to exp(-2 pi^2 scale^2)
            return self.scale * self.step
        k = np.arange(-80.0, 81.0)
        weights = np.exp(-(k**2) / (2 * self.scale**2))
        return max(sqrt(float((k**2 * weights).sum() / weights.sum())), 1e-3) * self.step

    @property
    def spread(self) -> float:
        """Scale of the continuous Laplace law of the same variance, in units of the statistic.

        Kept at a thousandth of a lattice unit or more, where the noise is all but absent: log-densities stay finite.
        """
        if self.gaussian:
            return self.standard_deviation / sqrt(2.0)
        return max(exp(self.log_ratio / 2) / -expm1(self.log_ratio), 1e-3) * self.step

    def reach(self, nats: float) -> int:
        """Lattice units within which all but a share of about exp(-nats) of the noise lies."""
        return ceil(nats * self.scale if not self.gaussian else sqrt(2 * nats) * self.scale)

    @property
    def kernel(self) -> tuple[float, float, float]:
        """Log-probability of noise of d, in units of the statistic: a multiple of abs(d), one of d^2, and a constant."""
        if not self.gaussian:
            q = exp(self.log_ratio)
            return self.log_ratio / self.step, 0.0, log1p(-q) - log1p(q)
        k = np.arange(1.0, 10 * min(self.scale, 8.0) + 10)
        inside = 1 + 2 * np.exp(-(k**2) / (2 * self.scale**2)).sum() if self.scale <= 8 else sqrt(2 * pi) * self.scale
        return 0.0, -1 / (2 * (self.scale * self.step) ** 2), -log(inside)

    def simulated(self, size: tuple[int, ...]) -> pt.TensorVariable:
        """Noise of this law as a random graph for predictive draws, in units of the statistic: shape ``size``.

        The difference of two geometric variables is a discrete Laplace variable; a rounded normal variable is a discrete
        Gaussian one to within a hundredth of the probability for scales of 1 and more. It is simulated, not private: it is
        seeded with the model's other random variables.
        """
        if self.gaussian:
            return pt.round(pm.Normal.dist(0.0, self.standard_deviation / self.step, shape=size)) * self.step
        failure = -expm1(self.log_ratio)
        first, second = (pm.Geometric.dist(failure, shape=size) for _ in range(2))
        return (first - second).astype("float64") * self.step


@dataclass(frozen=True)
class Draw:
    """One drawing of noise, planned and priced before any record is read.

    Attributes
    ----------
    variable, mechanism : str
    difference, square : int
        L1 and squared L2 sensitivity of the integers that get noise, in lattice units and their square. Of choices by their scores:
        the largest range, added up over them, by which the scores of neighbours differ, and its square.
    scale : float
        Of the noise, in lattice units.
    size : int
        How many integers.
    """

    variable: str
    mechanism: str
    difference: int
    square: int
    scale: float
    size: int

    def __post_init__(self) -> None:
        whole = all(type(value) is int and value >= 0 for value in (self.difference, self.square, self.size))
        if self.mechanism not in ("laplace", "gaussian", "choice") or not whole or not (isfinite(self.scale) and self.scale > 0):
            raise Refusal("A draw needs a mechanism, whole sensitivities and size, and a positive scale. Plan it with Mechanism.calibrate.")

    @property
    def pure(self) -> Fraction | None:
        """The pure epsilon that the draw costs, exactly; None for Gaussian noise, which has none."""
        return None if self.mechanism == "gaussian" else Fraction(self.difference) / Fraction(self.scale)

    @property
    def rho(self) -> Fraction:
        """What it costs in zero-concentrated differential privacy, exactly: of choices eta^2 / 8 (Cesar, Rogers 2021)."""
        if self.pure is None:
            return Fraction(self.square) / (2 * Fraction(self.scale) ** 2)
        return self.pure**2 / (8 if self.mechanism == "choice" else 2)


class Receipt:
    """The right to draw noise that has been paid for: once, in this process, and nothing else.

    The seam takes a receipt and strikes off what it draws. A receipt cannot be copied, pickled or carried into a child process.

    Parameters
    ----------
    draws : sequence of Draw
    cost : Cost
        What was charged; the draws together cost no more.
    head : str
        Of the ledger after the charge, or ``"unaccounted"``.
    """

    def __init__(self, draws: Sequence[Draw], cost: Cost, head: str = UNACCOUNTED) -> None:
        draws = list(draws)
        pures, rho = [one.pure for one in draws], sum((one.rho for one in draws), Fraction(0))
        pure = None if None in pures else sum((one for one in pures if one is not None), Fraction(0))
        if (cost.delta == 0 and (pure is None or pure > cost.epsilon)) or rho > cost.concentrated:
            raise Refusal("These draws cost more than is charged for them. Plan them with Mechanism.calibrate.")
        self.head = head
        self._left = Counter((one.mechanism, one.scale, one.size) for one in draws)
        self._process, self._lock = process(), Lock()

    def strike_off(self, mechanism: str, scale: float, size: int) -> None:
        """Give up the right to one draw of this noise, of this many integers."""
        wanted = (mechanism, scale, size)
        with self._lock:
            if self._process is process() and self._left[wanted] > 0:
                self._left[wanted] -= 1
                return
        raise Refusal("This draw of noise has not been paid for. Every draw needs a charge of its own: call pymc_dp.release again.")

    def __reduce__(self):
        """Two receipts would be two draws for one payment."""
        raise TypeError("A receipt cannot be copied or pickled.")


@dataclass(frozen=True)
class Laplace:
    """The Laplace mechanism on integers: it costs a pure epsilon of sensitivity / scale.

    Parameters
    ----------
    share_counts : bool
        For Bayesian networks: whether a variable's own counts are left out where they are sums of a child's table, which is so where
        the child's parents are the variable and the variable's parents. The other tables then get a larger share of epsilon.

    Examples
    --------
    >>> pmdp.release(network, epsilon=1.0, mechanism=pmdp.Laplace(share_counts=True)).cost
    Cost(epsilon=1, delta=0)
    """

    share_counts: bool = False
    name = "laplace"

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
        return _drawn(exact, scale, receipt, self.name)


@dataclass(frozen=True)
class Gaussian:
    """The Gaussian mechanism on integers: it promises (epsilon, delta) and costs squared L2 sensitivity / (2 scale^2) in zCDP.

    OpenDP draws the *discrete* Gaussian, for which that cost is exact in any dimension. The formula of the analytic Gaussian mechanism
    does not fit it (docs/theory.md).

    Parameters
    ----------
    delta : float, optional
        The delta, where the argument ``delta`` of ``release`` is left out.

    Examples
    --------
    >>> pmdp.release(model, epsilon=1.0, mechanism=pmdp.Gaussian(delta=1e-6)).delta
    Fraction(1, 1000000)
    """

    delta: object = None
    name = "gaussian"

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
        """As ``Laplace.draw``, with discrete Gaussian noise."""
        return _drawn(exact, scale, receipt, self.name)


@dataclass(frozen=True)
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

    def draw(self, exact: np.ndarray, scale: float, receipt: Receipt) -> np.ndarray:
        """As ``Laplace.draw``: the noise on coefficients is Laplace noise."""
        return _drawn(exact, scale, receipt, Laplace.name)

    def deviation(self, scale: float, bits: int, inflation: float) -> float:
        """Standard deviation of the noise on a family's counts, each 2^-bits times a sum of 2^bits noisy coefficients.

        Every count takes the sum with signs of its own: these sums are all but uncorrelated, and their law is taken as normal
        (docs/theory.md).
        """
        return Noise(scale).standard_deviation * sqrt(inflation / 2**bits)


MOST_DRAWS = 10**7
"""Of a chain: more do not fit into memory."""


@dataclass(frozen=True)
class PosteriorSample:
    """Draws from the posterior itself, which are private where the likelihood is bounded (DNMR14; FGWC16, section 2; docs/theory.md).

    Parameters
    ----------
    draws : int
        The number of draws; each costs as much as the first.
    smallest : float, optional
        For Bayesian networks, the least probability that a conditional probability table may hold: priors are truncated there, and
        renormalised. If left out, it is what epsilon allows; if given, the likelihood is tempered instead where epsilon needs it.
    method : "exact" or "mcmc"
        "exact": a draw has exactly the distribution that is paid for, or it is refused. "mcmc": the last state of a Markov chain of its
        own, for models of any size, private only as far as the chain has converged.
    points : int, optional
        The number of points of the grid in every direction.
    tune, steps : int
        The numbers of tuning steps and of further steps of every Markov chain.
    report : str or path, optional
        Where to write how the Markov chains converged. It is computed from the records: it is not private, and not to be released.

    Examples
    --------
    >>> tree = pmdp.sample(model=model, epsilon=1.0, mechanism=pmdp.PosteriorSample(draws=2))
    >>> tree.posterior["share"].shape
    (1, 2)
    """

    draws: int = 1
    smallest: float | None = None
    method: str = "exact"
    points: int | None = None
    tune: int = 1000
    steps: int = 1000
    report: str | PathLike[str] | None = None
    name = "posterior_sample"
    chains = 1

    def __post_init__(self) -> None:
        for called, least in (("draws", 1), ("tune", 0), ("steps", 1)):
            given = getattr(self, called)
            if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= MOST_DRAWS:
                kind = f"an integer from {least} to {MOST_DRAWS}"
                raise Refusal(f"{called} must be {kind}. Write for example PosteriorSample(draws=1, tune=1000, steps=1000).")
        check_smallest(self.smallest)
        check_points(self.points)
        if self.method not in ("exact", "mcmc"):
            raise Refusal('method must be "exact" or "mcmc". Write PosteriorSample(method="exact").')
        if self.report is not None and self.method != "mcmc":
            raise Refusal("A report tells how Markov chains converged. Leave it out, because exact draws need none.")

    @property
    def rounds(self) -> int:
        """How many times everything is chosen that one draw is made of."""
        return self.draws


@dataclass(frozen=True)
class Barker:
    """A step of ``Gibbs`` that moves some unknowns together by a few points of their grids, or leaves them, by a private choice.

    The choice is the exponential mechanism on two options, so the move is accepted with probability 1 / (1 + exp(-r)), r the
    logarithm of the ratio of posterior densities (Barker 1965). It costs the largest range by which one record changes r: at most twice
    the range of one record's log-likelihood, and less where moves are short (docs/theory.md). Accepting with probability min(1, exp(r))
    has no finite cost, and is not offered.

    Parameters
    ----------
    names : str or sequence of str
        The unknowns that move together.
    width : float
        How far each may move, as a share of its support.

    Examples
    --------
    >>> gibbs = pmdp.Gibbs(sweeps=20, steps=[pmdp.Barker(["a", "b"], width=0.1)])
    >>> pmdp.inspect(bounded, mechanism=gibbs, epsilon=4.0).schedule.asks
    20
    """

    names: str | Sequence[str]
    width: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", (self.names,) if isinstance(self.names, str) else tuple(self.names))
        if not self.names or not all(isinstance(name, str) for name in self.names) or len(set(self.names)) < len(self.names):
            raise Refusal('A step needs the names of different unknowns. Write for example Barker(["a", "b"], width=0.1).')
        _check_number("width", self.width, 1.0)


@dataclass(frozen=True)
class Penalty(Barker):
    """A step of ``Gibbs`` that moves as ``Barker`` does and accepts by the penalty algorithm: noise on the ratio is allowed for.

    A move is accepted with probability min(1, exp(r + noise - variance / 2)), which leaves the posterior exactly as it is although r is
    never seen: the noise is a discrete Gaussian on the lattice of the scores, for which the identity is exact (see ``accept``). It
    costs range^2 / (2 variance) in zCDP, so it needs a delta (Yildirim, Ermis 2019).

    Parameters
    ----------
    names, width
        See ``Barker``.
    noise : float
        Standard deviation of the noise, in nats, after flattening. More of it flattens less and rejects more: at 1, 62 % of moves
        between equals are accepted.

    Examples
    --------
    >>> gibbs = pmdp.Gibbs(sweeps=20, steps=[pmdp.Penalty(["a", "b"], noise=1.0)])
    >>> pmdp.inspect(bounded, mechanism=gibbs, epsilon=4.0, delta=1e-6).schedule.asks
    20
    """

    noise: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_number("noise", self.noise, 10.0, "Penalty('a', noise=1.0)")
        if self.noise < 0.01:
            raise Refusal("noise must be at least 0.01. Write for example Penalty('a', noise=1.0).")


@dataclass(frozen=True)
class Gibbs:
    """Gibbs sampling whose every update is a private choice with a price of its own (FGWC16, section 4; docs/theory.md).

    The data are asked at every update of every sweep of every chain, burn-in included, and each answer is paid for: throwing draws
    away saves nothing. The promise holds however far the chains are from convergence.

    Parameters
    ----------
    sweeps : int
        The number of sweeps of every chain, burn-in included. One sweep updates everything once.
    chains : int
        The number of chains. They run one after the other, each from a start of its own, which rests on no record.
    burn_in : int
        The number of first sweeps of every chain whose states are not kept.
    thin : int
        After the burn-in, the state of every ``thin``-th sweep is kept.
    epsilon_per_update : int, float, Decimal or Fraction, optional
        The most that one update may cost, in place of a total epsilon.
    points : int, optional
        The number of points of every unknown's grid.
    steps : sequence of Barker or Penalty
        Unknowns that are moved in another way than by drawing each from all points of its grid.

    Examples
    --------
    >>> gibbs = pmdp.Gibbs(sweeps=50, chains=2, burn_in=10, thin=2)
    >>> gibbs.draws
    20
    >>> pmdp.inspect(bounded, mechanism=gibbs, epsilon=50.0).schedule.asks
    200
    """

    sweeps: int
    chains: int = 1
    burn_in: int = 0
    thin: int = 1
    epsilon_per_update: object = None
    points: int | None = None
    steps: Sequence[Barker] = ()
    name = "gibbs"
    smallest = None
    method = "gibbs"

    def __post_init__(self) -> None:
        for called, least in (("sweeps", 1), ("chains", 1), ("burn_in", 0), ("thin", 1)):
            given = getattr(self, called)
            if not isinstance(given, int) or isinstance(given, bool) or given < least:
                kind = "a positive integer" if least else "an integer, 0 or more"
                raise Refusal(f"{called} must be {kind}. Write for example Gibbs(sweeps=50, chains=2, burn_in=10, thin=1).")
        if self.sweeps <= self.burn_in or (self.sweeps - self.burn_in) % self.thin:
            raise Refusal(
                "The last sweep would be paid for and not kept. Write sweeps as burn_in and a positive multiple of thin: every sweep costs."
            )
        if self.epsilon_per_update is not None:
            exact_epsilon(self.epsilon_per_update)
        check_points(self.points)
        if not isinstance(self.steps, Sequence) or not all(isinstance(one, Barker) for one in self.steps):
            raise Refusal(
                "steps must be a list of pymc_dp.Barker and pymc_dp.Penalty. Others accept with probability min(1, ratio), which no epsilon"
                " covers: what is surely accepted with one record may be rejected with another."
            )
        object.__setattr__(self, "steps", tuple(self.steps))
        if len({name for one in self.steps for name in one.names}) < sum(len(one.names) for one in self.steps):
            raise Refusal("An unknown is named in two steps. Name it in one: every step is paid for.")

    @property
    def rounds(self) -> int:
        """How many sweeps are paid for: of all chains, burn-in included."""
        return self.chains * self.sweeps

    @property
    def draws(self) -> int:
        """How many states of every chain are kept."""
        return (self.sweeps - self.burn_in) // self.thin

    def kept(self, sweep: int) -> bool:
        """Whether the state after this sweep of a chain, counted from 0, is kept."""
        return sweep >= self.burn_in and (sweep - self.burn_in + 1) % self.thin == 0

    @property
    def rounds_kept(self) -> list[int]:
        """After which of all sweeps, of all chains one after the other, the state is kept."""
        return [k for k in range(self.rounds) if self.kept(k % self.sweeps)]

    def __str__(self) -> str:
        return (
            f"{self.chains} x {self.sweeps} sweeps, {self.burn_in} of each chain burn-in; {self.draws} states of each chain are kept, and"
            " the others cost as much"
        )


RUNG = 2**12
"""Powers of a likelihood between the prior and the posterior are multiples of 1 / RUNG."""


@dataclass(frozen=True)
class Annealing:
    """Annealed importance sampling that pays at every update, and for its weight (Neal 2001; FGWC16; docs/theory.md).

    A chain begins with an exact draw of the prior, and at every rung the likelihood is taken to a higher power. At a power of beta an
    update costs beta times what it would cost in ``Gibbs``. The logarithm of the weight is a weighted mean of log-likelihoods along
    the path; one record moves it by no more than it moves one log-likelihood, whatever the path, and it gets noise of its own.

    Parameters
    ----------
    rungs : int
        The powers are (k / rungs)^curve, k = 1, ..., rungs. There is a transition at every one but the last, which enters the weight only.
    chains : int
        The number of chains, each of which has one final state and one weight.
    sweeps : int
        The number of sweeps at every rung.
    curve : float
        The larger it is, the more rungs are near the prior.
    share : float
        The share of the total cost that pays for the weights.
    points, steps
        See ``Gibbs``.

    Examples
    --------
    >>> pmdp.Annealing(rungs=4, chains=10).rounds
    10
    >>> pmdp.sample(model=bounded, epsilon=400.0, mechanism=pmdp.Annealing(rungs=4, chains=10, points=21))["sample_stats"].log_weight.shape
    (10, 1)
    """

    rungs: int
    chains: int = 1
    sweeps: int = 1
    curve: float = 2.0
    share: float = 0.2
    points: int | None = None
    steps: Sequence[Barker] = ()
    name = "annealing"
    draws = 1
    epsilon_per_update = None
    smallest = None
    method = "annealing"

    def __post_init__(self) -> None:
        for called in ("rungs", "chains", "sweeps"):
            given = getattr(self, called)
            if not isinstance(given, int) or isinstance(given, bool) or not given >= 1:
                raise Refusal(f"{called} must be a positive integer. Write for example Annealing(rungs=10, chains=20, sweeps=1).")
        _check_number("curve", self.curve, 10.0, "Annealing(rungs=10, curve=2.0)")
        _check_number("share", self.share, 0.99, "Annealing(rungs=10, share=0.2)")
        if len(set(self.powers)) < self.rungs or self.powers[0] == 0:
            raise Refusal(f"So many rungs are closer together than 1/{RUNG}. Write fewer rungs, or a smaller curve.")
        Gibbs(self.sweeps, points=self.points, steps=self.steps)
        object.__setattr__(self, "steps", tuple(self.steps))

    @property
    def powers(self) -> tuple[int, ...]:
        """Of the likelihood at every rung, in units of 1 / RUNG; the last is RUNG."""
        return tuple(round(RUNG * (k / self.rungs) ** self.curve) for k in range(1, self.rungs + 1))

    @property
    def rounds(self) -> int:
        """How many times everything is paid for that one chain asks."""
        return self.chains

    @property
    def rounds_kept(self) -> list[int]:
        """The final state of every chain."""
        return list(range(self.chains))

    def __str__(self) -> str:
        return f"{self.chains} chains from the prior, {self.rungs} rungs, sweeps at all but the last: {self.sweeps} each, then one weight"


def _check_number(called: str, value: object, most: float, example: str = "Barker('a', width=0.1)") -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
        raise Refusal(f"{called} must be a number above 0 and at most {most:g}. Write for example {example}.")


def check_points(points: object) -> None:
    """Points of a grid in every direction, or None."""
    if points is not None and (not isinstance(points, int) or isinstance(points, bool) or not 3 <= points <= MOST_POINTS):
        raise Refusal(f"points must be an integer from 3 to {MOST_POINTS}. Write for example points=501.")


def check_smallest(smallest: object) -> None:
    """A least probability, or None."""
    if smallest is None:
        return
    if not isinstance(smallest, float) or not 1e-12 <= smallest < 0.5:
        raise Refusal("smallest must be a probability between 1e-12 and 1/2. Write for example smallest=0.01.")


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
    return _noised(exact, scale, mechanism)


def chosen(
    scores: Iterable[np.ndarray], scale: float, receipt: Receipt, made: list[int] | None = None, size: int | None = None
) -> list[int]:
    """One place in every row of int64 scores, with probabilities in proportion to exp(score / scale).

    Exactly so, by Gumbel noise that OpenDP draws in exact arithmetic. The receipt must hold this draw, of mechanism "choice". Rows may
    rest on what was chosen before: then they come from an iterator that reads ``made``, and ``size`` says how many scores there will be.
    """
    if not 0 < scale < LARGEST_SCALE:
        raise Refusal("The scale must be positive and fit 64-bit integers.")
    if size is None:
        scores = list(scores)
        size = sum(map(len, scores))
    receipt.strike_off("choice", scale, size)
    made = [] if made is None else made
    for row in scores:
        size -= len(row)
        if size < 0:
            raise Refusal("These are more choices than were paid for.")
        made.append(_opendp_choice([int(score) for score in row], scale))
    return made


def generator(draws: Sequence[Draw], receipt: Receipt) -> np.random.Generator:
    """What draws of real numbers are made from: a generator seeded by the operating system. The receipt must hold these draws.

    It is exact in the arithmetic of real numbers only, and no cryptographic generator: what is drawn with it promises no more.
    """
    for one in draws:
        receipt.strike_off(one.mechanism, one.scale, one.size)
    return np.random.default_rng()


def _noised(exact: np.ndarray, scale: float, mechanism: str) -> np.ndarray:
    noisy = (_opendp_gaussian if mechanism == "gaussian" else _opendp_laplace)([int(value) for value in exact.ravel()], scale)
    return np.asarray(noisy, dtype=np.int64).reshape(exact.shape)


def _opendp_laplace(exact: list[int], scale: float) -> list[int]:
    """The seam: every bit of Laplace noise passes here."""
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance

    return make_laplace(_integers(len(exact)), l1_distance(T="i64"), scale)(exact)


def _opendp_gaussian(exact: list[int], scale: float) -> list[int]:
    """The seam: every bit of Gaussian noise passes here."""
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance

    return make_gaussian(_integers(len(exact)), l2_distance(T="f64"), scale)(exact)


def _opendp_choice(scores: list[int], scale: float) -> int:
    """The seam: every private choice passes here."""
    return int(_noisy_max(len(scores), scale)(scores))


@lru_cache(maxsize=16)
def _noisy_max(size: int, scale: float) -> Callable[[list[int]], int]:
    """OpenDP's noisy maximum, which with this output measure has Gumbel noise. It takes longer to make than to use."""
    from opendp.measurements import make_noisy_max
    from opendp.measures import zero_concentrated_divergence
    from opendp.metrics import linf_distance

    return make_noisy_max(_integers(size), linf_distance(T="i64"), zero_concentrated_divergence(), scale)


def _integers(size: int):
    from opendp.domains import atom_domain, vector_domain
    from opendp.mod import enable_features

    enable_features("contrib")
    return vector_domain(atom_domain(T="i64"), size=size)


Mechanism = Laplace | Gaussian
MECHANISMS: dict[str, type[Mechanism]] = {"laplace": Laplace, "gaussian": Gaussian, "fourier": Fourier}


def resolve(mechanism: object) -> Mechanism:
    """The mechanism meant by a short name or an instance."""
    if isinstance(mechanism, Laplace | Gaussian):
        return mechanism
    if isinstance(mechanism, str) and mechanism in MECHANISMS:
        return MECHANISMS[mechanism]()
    raise Refusal(
        'mechanism must be "laplace", "gaussian", "fourier", pymc_dp.Laplace(), pymc_dp.Gaussian(delta=...) or pymc_dp.Fourier().'
    )
