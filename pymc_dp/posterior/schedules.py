"""The noun ``Schedule``: every update of a chain that pays on its way, and the cost of all of them, before the first is made."""

from dataclasses import dataclass
from fractions import Fraction

from pymc_dp.privacy.accounting import Cost
from pymc_dp.privacy.layout import aligned, as_written, wrapped
from pymc_dp.privacy.requests import PosteriorRequest


@dataclass(frozen=True, repr=False)
class Update:
    """One line of a schedule.

    Attributes
    ----------
    name : str
    choices, options : int
        How many things are drawn at once, and from how many values each.
    range : float
        The sensitivity of the scores, eta, in nats.
    epsilon : Fraction or None
        What one such update costs, exactly; 0 where no record is asked; None of Gaussian noise, which has no pure epsilon.
    rho : Fraction
        What it costs in zero-concentrated differential privacy.
    """

    name: str
    choices: int
    options: int
    range: float
    epsilon: Fraction | None = Fraction(0)
    rho: Fraction = Fraction(0)
    __repr__ = as_written


@dataclass(frozen=True)
class Schedule:
    """Every update that will ask the records, and what all of them cost together: known before the first. Free: no record was read.

    Attributes
    ----------
    updates : tuple of Update
        Those of one sweep, in order; of one chain, where it is annealed.
    mechanism : PosteriorRequest
    temperature : float
        The likelihood is taken to the power of its inverse.
    cost : Cost
        What all updates of all sweeps of all chains cost, burn-in included.
    """

    updates: tuple[Update, ...]
    mechanism: PosteriorRequest
    temperature: float
    cost: Cost

    @property
    def asks(self) -> int:
        """How many updates ask the records."""
        return self.mechanism.rounds * sum(update.rho > 0 for update in self.updates)

    @property
    def pure(self) -> Fraction | None:
        """The exact sum of what they cost in pure epsilon, where all have one."""
        pures = [update.epsilon for update in self.updates]
        return None if None in pures else self.mechanism.rounds * sum((pure for pure in pures if pure is not None), Fraction(0))

    def __repr__(self) -> str:
        request = self.mechanism
        unit = "rho" if self.cost.delta else "epsilon"
        costs = [update.rho if self.cost.delta else update.epsilon or Fraction(0) for update in self.updates]
        body = [
            (update.name, f"{update.choices:,}", f"{update.options:,}", f"{update.range:.6g}", f"{float(cost):.6g}" if cost else "free",
             f"{float(cost * request.rounds):.6g}" if cost else "")
            for update, cost in zip(self.updates, costs, strict=True)
        ]  # fmt: skip
        header = ("update", "choices", "options", "one record moves it by", unit, f"of all {request.rounds:,}")
        total = f"epsilon {float(self.cost.epsilon):.6g}" + (f", delta {float(self.cost.delta):g}" if self.cost.delta else "")
        return "\n".join([
            aligned(header, body),
            wrapped(str(request)),
            wrapped(f"{self.asks:,} updates ask the records and cost {total}, paid before the first; T = {self.temperature:.4g}"),
        ])  # fmt: skip
