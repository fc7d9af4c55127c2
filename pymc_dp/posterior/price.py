"""What is asked of the exponential mechanism, and what a draw costs."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import pymc as pm

from pymc_dp.models.reader import read_model
from pymc_dp.models.spec import ModelSpec, RecordPaths
from pymc_dp.plans.protection import Protection
from pymc_dp.privacy.accounting import Cost, epsilon_of
from pymc_dp.privacy.ledger import Ledger, Part
from pymc_dp.privacy.mechanisms import Gaussian, Laplace
from pymc_dp.privacy.receipts import Draw
from pymc_dp.privacy.requests import Annealing, Gibbs, PosteriorSample

NAT = 2**20
"""Scores are integers in units of 1 / NAT nats."""
CERTIFIED, REAL_ARITHMETIC, IF_CONVERGED = "certified", "real-arithmetic", "if-converged"
"""Promises: exact in integers; exact but for floating point; as exact as a Markov chain has converged."""
READING = (
    "(epsilon, delta + (1 + e^epsilon) k d)-differential privacy of k draws, if every one lies within the total variation distance d of the"
    " posterior"
)
"""What a draw by a Markov chain promises (docs/theory.md)."""


@dataclass(frozen=True, eq=False)
class Asked:
    """What is asked of the exponential mechanism.

    Attributes
    ----------
    model : pm.Model
    total : Cost
        What may be spent; where ``Gibbs`` says what an update costs, by one update.
    mechanism : PosteriorSample, Gibbs or Annealing
    mode : bool
        Whether the mode is wanted rather than draws.
    protection : Protection
    ledger : Ledger, Part or None
    delta : Fraction
    """

    model: pm.Model
    total: Cost
    mechanism: PosteriorSample | Gibbs | Annealing
    mode: bool
    protection: Protection
    ledger: Ledger | Part | None
    delta: Fraction = Fraction(0)

    @property
    def neighbours(self) -> str:
        """Which data sets are neighbours: "replace" or "add_remove"."""
        return self.protection.neighbours

    @cached_property
    def statistics(self) -> tuple[ModelSpec, dict[str, RecordPaths]]:
        """The model read for its sufficient statistics, once."""
        return read_model(self.model, self.protection.public, sized=self.protection.sized)

    @cached_property
    def rowwise(self) -> tuple[ModelSpec, dict[str, RecordPaths]]:
        """The model read for the density of one record, once."""
        return read_model(self.model, self.protection.public, sized=self.protection.sized, rowwise=True)


@dataclass(frozen=True)
class Price:
    """What one draw costs, and how flat the posterior is made for it.

    Attributes
    ----------
    scale : float
        Scores are divided by it: NAT times the temperature.
    cost : Cost
        Of all draws together.
    draws : tuple of Draw
        The choices that are paid for.
    """

    scale: float
    cost: Cost
    draws: tuple[Draw, ...]

    @property
    def temperature(self) -> float:
        """The likelihood is taken to the power of its inverse."""
        return self.scale / NAT


def priced(asked: Asked, own: Sequence[tuple[str, int, int]], *, whole: bool = False) -> Price:
    """The least flattening at which all draws together cost no more than is asked for.

    Scores that neighbours move by a range of eta, drawn with probabilities in proportion to exp(score / scale), cost eta / scale, and
    eta^2 / (8 scale^2) in zCDP, because the logarithm of the ratio of probabilities stays in an interval of that length (Cesar, Rogers
    2021; docs/theory.md, bounded range). Draws add up, either way; the cheaper is taken where delta allows both. A draw is never
    sharper than the posterior (T = max(1, .)); a mode is, where epsilon allows it.

    Parameters
    ----------
    asked : Asked
    own : sequence of (str, int, int)
        Its name, eta in units of 1 / NAT and how many scores, of everything that is chosen by itself in one draw.
    whole : bool
        Charge all that is asked for, because it has decided where the posterior ends.
    """
    many, eta = asked.mechanism.rounds, sum(own_eta for _, own_eta, _ in own)
    least = Laplace().calibrate(eta * many, (eta * many) ** 2, Cost(asked.total.epsilon))
    concentrated = None
    if asked.total.delta:
        squares = sum(own_eta**2 for _, own_eta, _ in own)
        concentrated = Gaussian().calibrate(0, Fraction(many * squares, 4), asked.total)  # type: ignore[arg-type]
    scale = least if concentrated is None else min(least, concentrated)
    if not asked.mode:
        scale = max(scale, float(NAT))
    draws = [Draw(name, "choice", own_eta, own_eta**2, scale, size) for name, own_eta, size in own] * many
    rho = sum((one.rho for one in draws), Fraction(0))
    pure = sum((one.pure or Fraction(0) for one in draws), Fraction(0))
    together = epsilon_of(rho, asked.total.delta) if asked.total.delta else pure
    assert scale >= least or (asked.total.rho is not None and rho <= asked.total.rho)
    if scale < least or (together < pure and not whole):  # where the posterior is not flattened, for no more than it costs
        epsilon = asked.total.epsilon if whole else min(together, asked.total.epsilon)
        return Price(scale, Cost(epsilon, asked.total.delta, rho), tuple(draws))
    return Price(scale, Cost(asked.total.epsilon if scale == least or whole else pure, rho=rho), tuple(draws))
