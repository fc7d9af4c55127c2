"""The nouns ``Task``, a draw that is asked for, and ``Price``, what it costs; and the lowest temperature that a cost allows."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import pymc as pm

from pymc_dp.models.reader import read_model
from pymc_dp.models.spec import ModelSpec, RecordPaths
from pymc_dp.plans.person import key_column
from pymc_dp.plans.plan import Plan, planned_release
from pymc_dp.plans.protection import Protection
from pymc_dp.posterior.records import Reading
from pymc_dp.privacy.accounting import Cost, epsilon_of
from pymc_dp.privacy.ledger import Ledger, Part
from pymc_dp.privacy.mechanisms import Gaussian, Laplace
from pymc_dp.privacy.receipts import Draw
from pymc_dp.privacy.requests import PosteriorRequest
from pymc_dp.releases.from_data import check_declared, check_tables, columns_read, sized_by, source_of
from pymc_dp.releases.source import Source

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
class Task:
    """A draw that is asked for, with a model that is read at most once in each way.

    Attributes
    ----------
    model : pm.Model
    total : Cost
        What may be spent; where ``Gibbs`` says what an update costs, by one update.
    mechanism : PosteriorRequest
    mode : bool
        Whether the mode is wanted rather than draws.
    protection : Protection
    ledger : Ledger, Part or None
    delta : Fraction
    data : object
        Records beside the model, whose own are placeholders then: see ``release``.
    """

    model: pm.Model
    total: Cost
    mechanism: PosteriorRequest
    mode: bool
    protection: Protection
    ledger: Ledger | Part | None
    delta: Fraction = Fraction(0)
    data: object = None

    @property
    def neighbours(self) -> str:
        """Which data sets are neighbours: "replace" or "add_remove"."""
        return self.protection.neighbours

    @cached_property
    def statistics(self) -> tuple[ModelSpec, dict[str, RecordPaths]]:
        """The model read for its sufficient statistics, once; with the number of records of the source, if there is one."""
        spec, paths = self._read
        return (spec if self.source is None else sized_by(spec, self.source, self.protection)), paths

    @cached_property
    def _read(self) -> tuple[ModelSpec, dict[str, RecordPaths]]:
        return read_model(self.model, self.protection.public, sized=self.protection.sized, binned=self.protection.binned)

    @cached_property
    def source(self) -> Source | None:
        """The columns of the data that the model reads, or none where its records are in it."""
        if self.data is None:
            return None
        (spec, paths), person = self._read, self.protection.person
        check_declared(self.protection)
        source = source_of(self.model, columns_read(self.model, spec, paths, self.protection), self.data, key_column(spec, person))
        check_tables(source, "Draws from the posterior")
        return source

    @cached_property
    def plan(self) -> Plan:
        """What would be released instead, where that is not refused."""
        return planned_release(self.statistics[0], self.protection)

    @cached_property
    def rowwise(self) -> Reading:
        """The model read for the density of one record, once."""
        read = read_model(self.model, self.protection.public, sized=self.protection.sized, rowwise=True)
        return Reading(*read, self.protection, truncate=self.mechanism.intervals)


def cutting_off(task: Task, method: str = "") -> str:
    """How it is written that priors are cut off, for a draw of this kind by this method."""
    if task.mode:
        return 'pymc_dp.find_MAP(..., truncate="prior")'
    method = method or getattr(task.mechanism, "method", "exact")
    return f'mechanism=pymc_dp.PosteriorSample({'method="mcmc", ' if method == "mcmc" else ""}truncate="prior")'


@dataclass(frozen=True)
class Price:
    """What one draw costs, and how flat the posterior is made for it.

    Attributes
    ----------
    scale : float
        Scores are divided by it: NAT times the temperature.
    cost : Cost
        What all draws cost together.
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


def priced(task: Task, choices: Sequence[tuple[str, int, int]], square: int | None = None) -> Price:
    """The lowest temperature at which all draws together cost no more than is asked for.

    Scores that neighbours move by a range of eta, drawn with probabilities in proportion to exp(score / scale), cost eta / scale, and
    eta^2 / (8 scale^2) in zCDP, because the logarithm of the ratio of probabilities stays in an interval of that length (Cesar, Rogers
    2021; docs/theory.md, bounded range). Draws add up, either way; the cheaper is taken where delta allows both. A draw is never
    sharper than the posterior (T = max(1, .)); a mode is, where epsilon allows it.

    Parameters
    ----------
    task : Task
    choices : sequence of (str, int, int)
        The name, the sensitivity eta in units of 1 / NAT, and the number of scores of everything that one draw chooses by itself.
    square : int, optional
        Of a concave log-posterior, in place of eta^2 in zCDP: the squared slope of what neighbours move, in units of 1 / NAT^2, see
        ``Draw``.
    """
    rounds, sensitivity = task.mechanism.rounds, sum(eta for _, eta, _ in choices)
    least = Laplace().calibrate(sensitivity * rounds, (sensitivity * rounds) ** 2, Cost(task.total.epsilon))
    concentrated = None
    if task.total.delta:
        squares = sum(min(eta**2, 4 * (square or eta**2)) for _, eta, _ in choices)
        concentrated = Gaussian().calibrate(0, Fraction(rounds * squares, 4), task.total)  # type: ignore[arg-type]
    scale = least if concentrated is None else min(least, concentrated)
    if not task.mode:
        scale = max(scale, float(NAT))
    draws = [Draw(name, "choice", eta, square or eta**2, scale, size) for name, eta, size in choices] * rounds
    rho = sum((draw.rho for draw in draws), Fraction(0))
    pure = sum((draw.pure or Fraction(0) for draw in draws), Fraction(0))
    together = epsilon_of(rho, task.total.delta) if task.total.delta else pure
    assert scale >= least or (task.total.rho is not None and rho <= task.total.rho)
    if scale < least or together < pure:  # where the posterior is not flattened, for no more than it costs
        return Price(scale, Cost(min(together, task.total.epsilon), task.total.delta, rho), tuple(draws))
    return Price(scale, Cost(task.total.epsilon if scale == least else pure, rho=rho), tuple(draws))
