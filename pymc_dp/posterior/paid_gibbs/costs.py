"""What the updates of a chain cost, one by one and together, before the first is made."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from pymc_dp.posterior.paid_gibbs.accept import lattice
from pymc_dp.posterior.paid_gibbs.kernel import Block
from pymc_dp.posterior.price import NAT, Price, Task, priced
from pymc_dp.posterior.schedules import Update
from pymc_dp.privacy.accounting import Cost, Refusal, epsilon_of, exact_epsilon
from pymc_dp.privacy.mechanisms import Gaussian, Laplace
from pymc_dp.privacy.receipts import Draw
from pymc_dp.privacy.requests import Gibbs


def update_of(block: Block, paid: Iterator[Draw], power: float = 1.0) -> Update:
    """The line of a block in a schedule; where it asks the records, its price is the next that is paid."""
    draw = next(paid) if block.sensitivity else None
    costs = () if draw is None else (draw.pure, draw.rho)
    return Update(block.name, block.rows, block.options, block.sensitivity * power / NAT, *costs)


def price_of(task: Task, blocks: Sequence[Block]) -> Price:
    """The lowest temperature at which all updates together cost no more than is asked for; or each, where that is what is asked for.

    What is charged is the exact sum of what the updates cost.
    """
    request = task.mechanism
    assert isinstance(request, Gibbs)
    asking = [block for block in blocks if block.sensitivity]
    noisy = [block for block in asking if block.variance is not None]
    if noisy:
        if not task.delta or request.epsilon_per_update is not None:
            raise Refusal(
                "The noise of a Penalty step is Gaussian, which has no pure epsilon. Write a total epsilon and delta=1e-6, or Barker steps."
            )
        # eta^2 / 8 scale^2 of a choice, eta^2 / 2 variance scale^2 of noise, or a little less: see ``accept.lattice``
        squares = sum((block.sensitivity**2 / (4 if block.variance is None else block.variance) for block in asking), Fraction(0))
        scale = max(Gaussian().calibrate(0, request.rounds * squares, task.total), float(NAT))  # type: ignore[arg-type]
    elif request.epsilon_per_update is None:
        price = priced(task, [(block.name, block.sensitivity, block.rows * block.options) for block in asking])
        return price if price.cost.delta else replace(price, cost=sum_of(price.draws))
    else:
        largest = max(block.sensitivity for block in asking)
        scale = max(Laplace().calibrate(largest, 0, Cost(exact_epsilon(request.epsilon_per_update))), float(NAT))
    draws = tuple(draw_of(block, scale) for block in asking) * request.rounds
    if not task.delta:
        return Price(scale, sum_of(draws), draws)
    rho = rho_of(draws)
    together = epsilon_of(rho, task.delta)
    if noisy or together < sum_of(draws).epsilon:
        return Price(scale, Cost(together, task.delta, rho), draws)
    return Price(scale, sum_of(draws), draws)


def draw_of(block: Block, scale: float) -> Draw:
    """What one update draws, at scores in units of 1 / scale nats."""
    sensitivity = block.sensitivity
    if block.variance is None:
        return Draw(block.name, "choice", sensitivity, sensitivity**2, scale, block.rows * block.options)
    return Draw(block.name, "gaussian", sensitivity, sensitivity**2, lattice(scale, block.variance)[0], block.rows)


def rho_of(draws: Sequence[Draw]) -> Fraction:
    """What draws cost together in zero-concentrated differential privacy, exactly."""
    return sum((draw.rho for draw in draws), Fraction(0))


def pure_of(draws: Sequence[Draw]) -> Fraction:
    """What draws cost together in pure epsilon, exactly: every one of them has one."""
    pures = [draw.pure for draw in draws]
    assert None not in pures
    return sum((pure for pure in pures if pure is not None), Fraction(0))


def sum_of(draws: Sequence[Draw]) -> Cost:
    """What choices cost together, exactly: a pure epsilon, and its rho."""
    return Cost(pure_of(draws), rho=rho_of(draws))


def spent_so_far(task: Task, price: Price) -> np.ndarray:
    """What was spent, in nats, when each state that is kept was reached: (chains, draws). It rests on no record."""
    request = task.mechanism
    sweep = price.draws[: len(price.draws) // request.rounds]
    rho = rho_of(sweep)
    pure = None if any(draw.pure is None for draw in sweep) else pure_of(sweep)
    result = []
    for k in request.rounds_kept:
        spent = [] if pure is None else [pure * (k + 1)]
        if price.cost.delta:
            spent.append(epsilon_of(rho * (k + 1), price.cost.delta))
        result.append(float(min(spent)))
    return np.array(result).reshape(request.chains, request.draws)


def statistics_of(draws: Sequence[Draw]) -> list[tuple[str, int]]:
    """What the updates of a sweep are about and how many of their units are a nat: names of unknowns are the user's, and say nothing."""
    return [("log-ratio of a move" if draw.pure is None else "Gibbs update", NAT) for draw in draws]
