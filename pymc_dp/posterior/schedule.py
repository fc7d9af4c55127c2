"""What a chain that pays at every update will do, and what all of it costs, before the first update is made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from pymc_dp.accounting import Cost, epsilon_of, exact_epsilon
from pymc_dp.inspection import aligned
from pymc_dp.mechanisms import Draw, Gibbs, Laplace
from pymc_dp.posterior.drawn import NAT, Asked, Price, priced


@dataclass(frozen=True)
class Update:
    """One line of a schedule.

    Attributes
    ----------
    name : str
    choices, options : int
        How many things are drawn at once, and from how many values each.
    range : float
        eta, in nats.
    epsilon : Fraction
        What one such update costs, exactly; 0 where no record is asked.
    """

    name: str
    choices: int
    options: int
    range: float
    epsilon: Fraction


@dataclass(frozen=True)
class Schedule:
    """Every update that will ask the records, and what all of them cost together: known before the first. Free: no record was read.

    Attributes
    ----------
    updates : tuple of Update
        Of one sweep, in order.
    mechanism : Gibbs
    temperature : float
        The likelihood is taken to the power of its inverse.
    cost : Cost
        Of all updates of all sweeps of all chains, burn-in included.
    """

    updates: tuple[Update, ...]
    mechanism: Gibbs
    temperature: float
    cost: Cost

    @property
    def asks(self) -> int:
        """How many updates ask the records."""
        return self.mechanism.rounds * sum(one.epsilon > 0 for one in self.updates)

    @property
    def pure(self) -> Fraction:
        """The exact sum of what they cost."""
        return self.mechanism.rounds * sum((one.epsilon for one in self.updates), Fraction(0))

    def __repr__(self) -> str:
        how = self.mechanism
        body = [
            (one.name, str(one.choices), str(one.options), f"{one.range:.6g}", f"{float(one.epsilon):.6g}" if one.epsilon else "free",
             f"{float(one.epsilon * how.rounds):.6g}" if one.epsilon else "")
            for one in self.updates
        ]  # fmt: skip
        header = ("update", "choices", "options", "one record moves it by", "epsilon", f"of all {how.rounds}")
        total = f"epsilon {float(self.cost.epsilon):.6g}" + (f", delta {float(self.cost.delta):g}" if self.cost.delta else "")
        return "\n".join([
            aligned(header, body),
            f"{how.chains} x {how.sweeps} sweeps, {how.burn_in} of each chain burn-in; {how.draws} states of each chain are kept, and the"
            " others cost as much",
            f"{self.asks} updates ask the records and cost {total}, paid before the first; T = {self.temperature:.4g}",
        ])  # fmt: skip


def price_of(asked: Asked, own: Mapping[str, tuple[int, int]]) -> Price:
    """The least flattening at which all updates together cost no more than is asked for; or each, where that is what is asked for.

    What is charged is the exact sum of what the updates cost.
    """
    how = asked.mechanism
    assert isinstance(how, Gibbs)
    if how.epsilon_per_update is None:
        found = priced(asked, own)
        if found.cost.delta:
            return found
        return replace(found, cost=_sum(found.draws))
    least = Laplace().calibrate(max(eta for eta, _ in own.values()), 0, Cost(exact_epsilon(how.epsilon_per_update)))
    scale = max(least, float(NAT))
    draws = tuple(Draw(name, "choice", eta, eta**2, scale, size) for name, (eta, size) in own.items()) * how.rounds
    pure = _sum(draws)
    if not asked.delta:
        return Price(scale, pure, draws)
    assert pure.rho is not None
    together = epsilon_of(pure.rho, asked.delta)
    return Price(scale, Cost(together, asked.delta, pure.rho) if together < pure.epsilon else pure, draws)


def _sum(draws: Sequence[Draw]) -> Cost:
    pure = sum((one.pure or Fraction(0) for one in draws), Fraction(0))
    return Cost(pure, rho=sum((one.rho for one in draws), Fraction(0)))


def running(asked: Asked, price: Price) -> np.ndarray:
    """What was spent, in nats, when each state that is kept was reached: (chains, draws)."""
    how = asked.mechanism
    assert isinstance(how, Gibbs)
    sweep = _sum(price.draws[: len(price.draws) // how.rounds])
    result = []
    for k in range(how.rounds):
        if how.kept(k % how.sweeps):
            spent = sweep.epsilon * (k + 1)
            if price.cost.delta:
                spent = min(spent, epsilon_of(sweep.concentrated * (k + 1), price.cost.delta))
            result.append(float(spent))
    return np.array(result).reshape(how.chains, how.draws)
