"""What a chain that pays at every update will do, and what all of it costs, before the first update is made."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from pymc_dp.plans.inspection import aligned
from pymc_dp.posterior.accept import lattice
from pymc_dp.posterior.kernel import Block
from pymc_dp.posterior.price import NAT, Asked, Price, priced
from pymc_dp.privacy.accounting import Cost, Refusal, epsilon_of, exact_epsilon
from pymc_dp.privacy.mechanisms import Gaussian, Laplace
from pymc_dp.privacy.receipts import Draw
from pymc_dp.privacy.requests import Annealing, Gibbs


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
    epsilon : Fraction or None
        What one such update costs, exactly; 0 where no record is asked; None of Gaussian noise, which has no pure epsilon.
    rho : Fraction
        The same in zero-concentrated differential privacy.
    """

    name: str
    choices: int
    options: int
    range: float
    epsilon: Fraction | None = Fraction(0)
    rho: Fraction = Fraction(0)


@dataclass(frozen=True)
class Schedule:
    """Every update that will ask the records, and what all of them cost together: known before the first. Free: no record was read.

    Attributes
    ----------
    updates : tuple of Update
        Of one sweep, in order; of one chain, where these are annealed.
    mechanism : Gibbs or Annealing
    temperature : float
        The likelihood is taken to the power of its inverse.
    cost : Cost
        Of all updates of all sweeps of all chains, burn-in included.
    """

    updates: tuple[Update, ...]
    mechanism: Gibbs | Annealing
    temperature: float
    cost: Cost

    @property
    def asks(self) -> int:
        """How many updates ask the records."""
        return self.mechanism.rounds * sum(one.rho > 0 for one in self.updates)

    @property
    def pure(self) -> Fraction | None:
        """The exact sum of what they cost in pure epsilon, where all have one."""
        several = [one.epsilon for one in self.updates]
        return None if None in several else self.mechanism.rounds * sum((one for one in several if one is not None), Fraction(0))

    def __repr__(self) -> str:
        how = self.mechanism
        unit = "rho" if self.cost.delta else "epsilon"
        costs = [one.rho if self.cost.delta else one.epsilon or Fraction(0) for one in self.updates]
        body = [
            (one.name, str(one.choices), str(one.options), f"{one.range:.6g}", f"{float(cost):.6g}" if cost else "free",
             f"{float(cost * how.rounds):.6g}" if cost else "")
            for one, cost in zip(self.updates, costs, strict=True)
        ]  # fmt: skip
        header = ("update", "choices", "options", "one record moves it by", unit, f"of all {how.rounds}")
        total = f"epsilon {float(self.cost.epsilon):.6g}" + (f", delta {float(self.cost.delta):g}" if self.cost.delta else "")
        return "\n".join([
            aligned(header, body),
            str(how),
            f"{self.asks} updates ask the records and cost {total}, paid before the first; T = {self.temperature:.4g}",
        ])  # fmt: skip


def update_of(block: Block, paid: Iterator[Draw], power: float = 1.0) -> Update:
    """The line of a block; where it asks the records, its price is the next that is paid. Names may stand for several."""
    one = next(paid) if block.eta else None
    return Update(block.name, block.rows, block.options, block.eta * power / NAT, *(() if one is None else (one.pure, one.rho)))


def price_of(asked: Asked, blocks: Sequence[Block]) -> Price:
    """The least flattening at which all updates together cost no more than is asked for; or each, where that is what is asked for.

    What is charged is the exact sum of what the updates cost.
    """
    how = asked.mechanism
    assert isinstance(how, Gibbs)
    asking = [block for block in blocks if block.eta]
    noisy = [block for block in asking if block.variance is not None]
    if noisy:
        if not asked.delta or how.epsilon_per_update is not None:
            raise Refusal(
                "The noise of a Penalty step is Gaussian, which has no pure epsilon. Write a total epsilon and delta=1e-6, or Barker steps."
            )
        # eta^2 / 8 scale^2 of a choice, eta^2 / 2 variance scale^2 of noise, or a little less: see ``accept.lattice``
        squares = sum((block.eta**2 / (4 if block.variance is None else block.variance) for block in asking), Fraction(0))
        scale = max(Gaussian().calibrate(0, how.rounds * squares, asked.total), float(NAT))  # type: ignore[arg-type]
    elif how.epsilon_per_update is None:
        found = priced(asked, [(block.name, block.eta, block.rows * block.options) for block in asking])
        return found if found.cost.delta else replace(found, cost=sum_of(found.draws))
    else:
        least = Laplace().calibrate(max(block.eta for block in asking), 0, Cost(exact_epsilon(how.epsilon_per_update)))
        scale = max(least, float(NAT))
    draws = tuple(draw_of(block, scale) for block in asking) * how.rounds
    rho = sum((one.rho for one in draws), Fraction(0))
    if not asked.delta:
        return Price(scale, sum_of(draws), draws)
    together = epsilon_of(rho, asked.delta)
    if noisy or together < sum_of(draws).epsilon:
        return Price(scale, Cost(together, asked.delta, rho), draws)
    return Price(scale, sum_of(draws), draws)


def draw_of(block: Block, scale: float) -> Draw:
    """What one update draws, at scores in units of 1 / scale nats."""
    if block.variance is None:
        return Draw(block.name, "choice", block.eta, block.eta**2, scale, block.rows * block.options)
    return Draw(block.name, "gaussian", block.eta, block.eta**2, lattice(scale, block.variance)[0], block.rows)


def sum_of(draws: Sequence[Draw]) -> Cost:
    """What choices cost together, exactly: a pure epsilon, and its rho."""
    pures = [one.pure for one in draws]
    assert None not in pures
    return Cost(sum((one for one in pures if one is not None), Fraction(0)), rho=sum((one.rho for one in draws), Fraction(0)))


def running(asked: Asked, price: Price) -> np.ndarray:
    """What was spent, in nats, when each state that is kept was reached: (chains, draws). It rests on no record."""
    how = asked.mechanism
    assert isinstance(how, Gibbs | Annealing)
    sweep = price.draws[: len(price.draws) // how.rounds]
    rho = sum((one.rho for one in sweep), Fraction(0))
    pure = None if any(one.pure is None for one in sweep) else sum_of(sweep).epsilon
    result = []
    for k in how.rounds_kept:
        spent = [] if pure is None else [pure * (k + 1)]
        if price.cost.delta:
            spent.append(epsilon_of(rho * (k + 1), price.cost.delta))
        result.append(float(min(spent)))
    return np.array(result).reshape(how.chains, how.draws)
