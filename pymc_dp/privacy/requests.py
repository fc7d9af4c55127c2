"""What a user writes to ask for draws from the posterior itself: how many, by which kind of chain, on which grid.

These are requests only. ``pymc_dp.posterior`` prices them and draws what they ask for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from os import PathLike
from typing import ClassVar

from pymc_dp.privacy.accounting import Refusal, exact_epsilon, is_whole
from pymc_dp.privacy.layout import as_written

MOST_POINTS = 2**17
"""The most points of a grid: OpenDP is handed one score for each."""
SMALLEST = 0.01
"""The least probability of a split of levels where none is given."""
MOST_UNKNOWNS = 3
"""Draws of so many unknown numbers are exact at most: grids of more have too many points."""
MOST_DRAWS = 10**7
"""The most draws of a chain: more do not fit into memory."""


class PosteriorRequest:
    """What is asked of a posterior itself: the base of ``PosteriorSample``, ``Gibbs`` and ``Annealing``, and of kinds of one's own.

    Everything that the package needs to know of a kind is here. A kind of one's own also has a method ``prepared``, which says how it
    draws (docs/extending.md); ``posterior.routes`` says how the others do.

    Attributes
    ----------
    name : str
        What messages and results call it.
    chains, draws : int
        Number of chains, and of draws that each gives.
    rounds : int
        Number of times that the choices of a draw, or of a sweep, are made and paid for.
    rounds_kept : list of int
        The rounds after which there is a draw, counted from 0 through all chains.
    epsilon_per_update : object
        The most that an update may cost, where that is said instead of a total.
    written : str
        How a number of draws is asked for, as code, with {} in its place.
    scheduled : bool
        Whether a schedule shows every update that will be paid for.
    smallest, points : float and int, or None
    """

    name: ClassVar[str]
    written: ClassVar[str]
    scheduled: ClassVar[bool] = False
    chains: int = 1
    epsilon_per_update: object = None
    smallest: float | None = None
    points: int | None = None
    __repr__ = as_written

    @property
    def intervals(self) -> Mapping[str, tuple[float, float]] | None:
        """Where priors are cut off: at their quantiles, but for these; None where they stay as they are."""
        return None

    @property
    def draws(self) -> int:
        """Number of draws of every chain."""
        raise NotImplementedError

    @property
    def rounds(self) -> int:
        """Number of times that all choices are made."""
        return self.chains * self.draws

    @property
    def rounds_kept(self) -> list[int]:
        """The rounds after which there is a draw."""
        return list(range(self.rounds))


@dataclass(frozen=True, repr=False)
class PosteriorSample(PosteriorRequest):
    """One or a few draws from the posterior itself, its likelihood flattened as epsilon needs (DNMR14; FGWC16, section 2; docs/draws.md).

    Parameters
    ----------
    draws : int
        Number of draws, which share epsilon equally. One or a few: intervals from many draws are far wider than those of a release.
    smallest : float, optional
        The least probability that a conditional probability table of a Bayesian network may hold: priors are truncated there, and
        renormalised; .01 if left out. The smaller it is, the more the likelihood is flattened.
    method : "exact" or "mcmc"
        "exact": a draw has exactly the distribution that is paid for, or it is refused. "mcmc": each draw is the last state of a Markov
        chain of its own, for models of any size, and private only as far as the chain has converged.
    points : int, optional
        Points of a grid, in every direction. A draw lies anywhere in the cell of the point that was chosen, which is its resolution.
    tune, steps : int
        Tuning and other steps of every Markov chain.
    report : str or path, optional
        Where to write how the Markov chains converged. It is computed from the records, so it is not private: do not publish it.
    truncate : "prior" or mapping of str to (float, float), optional
        Truncate priors, so that the likelihood is bounded. "prior": every unknown lies between the 0.001 and 0.999 quantiles of its prior;
        if its prior depends on other unknowns, between the least and the largest that these allow. Limits given by ``pm.Truncated``
        stay. A mapping gives the intervals of some unknowns, never from the records; the others' are quantiles. What is drawn is the
        posterior under the prior given that every unknown lies in its interval; the result says which intervals these are.

    Examples
    --------
    >>> tree = pmdp.sample(model=model, epsilon=1.0, mechanism=pmdp.PosteriorSample(draws=2))
    >>> tree.posterior["share"].shape
    (1, 2)
    >>> pmdp.PosteriorSample(truncate={"sigma": (0.5, 3)}).truncate
    {'sigma': (0.5, 3.0)}
    """

    draws: int = 1
    smallest: float | None = None
    method: str = "exact"
    points: int | None = None
    tune: int = 1000
    steps: int = 1000
    report: str | PathLike[str] | None = None
    truncate: str | Mapping[str, tuple[float, float]] | None = None
    name = "posterior_sample"
    written = "PosteriorSample(draws={})"

    def __post_init__(self) -> None:
        for name, least in (("draws", 1), ("tune", 0), ("steps", 1)):
            if not is_whole(getattr(self, name), least, MOST_DRAWS):
                kind = f"an integer from {least} to {MOST_DRAWS:,}"
                raise Refusal(f"{name} must be {kind}. Write for example PosteriorSample(draws=1, tune=1000, steps=1000).")
        check_smallest(self.smallest)
        check_points(self.points)
        if self.method not in ("exact", "mcmc"):
            raise Refusal('method must be "exact" or "mcmc". Write PosteriorSample(method="exact").')
        if self.report is not None and self.method != "mcmc":
            raise Refusal("A report tells how Markov chains converged. Leave it out, because exact draws need none.")
        object.__setattr__(self, "truncate", checked_intervals(self.truncate))
        if self.truncate is not None and self.smallest is not None:
            raise Refusal("smallest and truncate cut priors off in two ways. Write one of them.")

    @property
    def intervals(self) -> Mapping[str, tuple[float, float]] | None:
        """Where priors are cut off."""
        return self.truncate if isinstance(self.truncate, Mapping) else None if self.truncate is None else {}


@dataclass(frozen=True, repr=False)
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
    __repr__ = as_written

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", (self.names,) if isinstance(self.names, str) else tuple(self.names))
        if not self.names or not all(isinstance(name, str) for name in self.names) or len(set(self.names)) < len(self.names):
            raise Refusal('A step needs the names of different unknowns. Write for example Barker(["a", "b"], width=0.1).')
        _check_number("width", self.width, 1.0)


@dataclass(frozen=True, repr=False)
class Penalty(Barker):
    """A move as of ``Barker``, accepted by the penalty algorithm: the ratio gets Gaussian noise, and the acceptance allows for it.

    It is accepted with probability min(1, exp(r + noise - variance / 2)), which leaves the posterior exactly as it is although r is never
    seen: the noise is a discrete Gaussian on the lattice of the scores, for which the identity is exact (see ``accept``). It costs
    range^2 / (2 variance) in zCDP, so it needs a delta (Yildirim, Ermis 2019).

    Parameters
    ----------
    names, width
        As in ``Barker``.
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


@dataclass(frozen=True, repr=False)
class Gibbs(PosteriorRequest):
    """Gibbs sampling whose every update is a private choice with a price of its own (FGWC16, section 4; docs/theory.md).

    The data are asked at every update of every sweep of every chain, burn-in included, and each answer is paid for: throwing draws
    away saves nothing. The promise holds however far the chains are from convergence.

    Parameters
    ----------
    sweeps : int
        Number of sweeps of every chain, burn-in included. In one sweep everything is updated once.
    chains : int
        Number of chains, one after the other, each from a start of its own, which rests on no record.
    burn_in : int
        The number of first sweeps of every chain whose states are not kept.
    thin : int
        One in so many of the sweeps after burn-in is kept.
    epsilon_per_update : int, float, Decimal or Fraction, optional
        The most that an update may cost, instead of a total.
    points : int, optional
        Points of every unknown's grid.
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
    written = "Gibbs(sweeps={})"
    scheduled = True

    def __post_init__(self) -> None:
        for name, least in (("sweeps", 1), ("chains", 1), ("burn_in", 0), ("thin", 1)):
            if not is_whole(getattr(self, name), least):
                kind = "a positive integer" if least else "an integer, 0 or more"
                raise Refusal(f"{name} must be {kind}. Write for example Gibbs(sweeps=50, chains=2, burn_in=10, thin=1).")
        if self.sweeps <= self.burn_in or (self.sweeps - self.burn_in) % self.thin:
            raise Refusal(
                "The last sweep would be paid for and not kept. Write sweeps as burn_in and a positive multiple of thin: every sweep costs."
            )
        if self.epsilon_per_update is not None:
            exact_epsilon(self.epsilon_per_update)
        check_points(self.points)
        if not isinstance(self.steps, Sequence) or not all(isinstance(step, Barker) for step in self.steps):
            raise Refusal(
                "steps must be a list of pymc_dp.Barker and pymc_dp.Penalty. Others accept with probability min(1, ratio), which no epsilon"
                " covers: what is surely accepted with one record may be rejected with another."
            )
        object.__setattr__(self, "steps", tuple(self.steps))
        if len({name for step in self.steps for name in step.names}) < sum(len(step.names) for step in self.steps):
            raise Refusal("An unknown is named in two steps. Name it in one: every step is paid for.")

    @property
    def rounds(self) -> int:
        """Number of sweeps that are paid for, in all chains and burn-in included."""
        return self.chains * self.sweeps

    @property
    def draws(self) -> int:
        """Number of states of every chain that are kept."""
        return (self.sweeps - self.burn_in) // self.thin

    def kept(self, sweep: int) -> bool:
        """Whether the state after this sweep of a chain, counted from 0, is kept."""
        return sweep >= self.burn_in and (sweep - self.burn_in + 1) % self.thin == 0

    @property
    def rounds_kept(self) -> list[int]:
        """The sweeps after which the state is kept, counted from 0 through all chains."""
        return [k for k in range(self.rounds) if self.kept(k % self.sweeps)]

    def __str__(self) -> str:
        return (
            f"{self.chains} x {self.sweeps} sweeps, {self.burn_in} of each chain burn-in; {self.draws} states of each chain are kept, and"
            " the others cost as much"
        )


RUNG = 2**12
"""Powers of a likelihood between the prior and the posterior are multiples of 1 / RUNG."""


@dataclass(frozen=True, repr=False)
class Annealing(PosteriorRequest):
    """Annealed importance sampling that pays at every update, and for its weight (Neal 2001; FGWC16; docs/theory.md).

    A chain begins with an exact draw of the prior, and at every rung the likelihood is taken to a higher power. At a power of beta an
    update costs beta times what it would cost in ``Gibbs``. The logarithm of the weight is a weighted mean of log-likelihoods along
    the path; one record moves it by no more than it moves one log-likelihood, whatever the path, and it gets noise of its own.

    Parameters
    ----------
    rungs : int
        The powers are (k / rungs)^curve, k = 1, ..., rungs. There is a transition at every one but the last, which enters the weight only.
    chains : int
        Number of chains; each has one final state and one weight.
    sweeps : int
        Sweeps at every rung.
    curve : float
        The larger it is, the more rungs are near the prior.
    share : float
        Share of the cost that is spent on the weights.
    points, steps
        As in ``Gibbs``.

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
    written = "Annealing(10, chains={})"
    scheduled = True
    draws = 1

    def __post_init__(self) -> None:
        for name in ("rungs", "chains", "sweeps"):
            if not is_whole(getattr(self, name), 1):
                raise Refusal(f"{name} must be a positive integer. Write for example Annealing(rungs=10, chains=20, sweeps=1).")
        _check_number("curve", self.curve, 10.0, "Annealing(rungs=10, curve=2.0)")
        _check_number("share", self.share, 0.99, "Annealing(rungs=10, share=0.2)")
        if len(set(self.powers)) < self.rungs or self.powers[0] == 0:
            raise Refusal(f"So many rungs are closer together than 1/{RUNG}. Write fewer rungs, or a smaller curve.")
        Gibbs(self.sweeps, points=self.points, steps=self.steps)
        object.__setattr__(self, "steps", tuple(self.steps))

    @property
    def powers(self) -> tuple[int, ...]:
        """Power of the likelihood at every rung, in units of 1 / RUNG; the last is RUNG."""
        return tuple(round(RUNG * (k / self.rungs) ** self.curve) for k in range(1, self.rungs + 1))

    def __str__(self) -> str:
        return f"{self.chains} chains from the prior, {self.rungs} rungs, sweeps at all but the last: {self.sweeps} each, then one weight"


def _check_number(name: str, value: object, most: float, example: str = "Barker('a', width=0.1)") -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
        raise Refusal(f"{name} must be a number above 0 and at most {most:g}. Write for example {example}.")


def check_points(points: object) -> None:
    """Refuse what is neither None nor a number of points of a grid in every direction."""
    if points is not None and not is_whole(points, 3, MOST_POINTS):
        raise Refusal(f"points must be an integer from 3 to {MOST_POINTS:,}. Write for example points=501.")


def checked_intervals(truncate: object) -> str | dict[str, tuple[float, float]] | None:
    """``truncate`` in plain numbers, or a refusal where it is neither None nor "prior" nor intervals by name."""
    if truncate is None or truncate == "prior":
        return truncate
    try:
        pairs = {str(name): (float(low), float(high)) for name, (low, high) in truncate.items()}  # type: ignore[attr-defined]
    except (AttributeError, TypeError, ValueError):
        pairs = {}
    if not pairs or not all(isfinite(low) and isfinite(high) and low < high for low, high in pairs.values()):
        raise Refusal('truncate must be "prior", or finite intervals by name. Write for example truncate={"sigma": (0.5, 3)}.')
    return pairs


def check_smallest(smallest: object) -> None:
    """Refuse what is neither None nor a least probability."""
    if smallest is None:
        return
    if not isinstance(smallest, float) or not 1e-12 <= smallest < 0.5:
        raise Refusal("smallest must be a probability between 1e-12 and 1/2. Write for example smallest=0.01.")
