"""What is charged to a ledger: the cost of draws of noise; or of one step of a question session, which costs what it adds to the
session's total.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor

from pymc_dp.privacy import budget
from pymc_dp.privacy.accounting import Cost, Refusal, epsilon_of
from pymc_dp.privacy.receipts import Draw


@dataclass(frozen=True)
class Charge:
    """What a ledger has written down, to be redeemed once: see ``Ledger.charge``."""

    nonce: str
    draws: tuple[Draw, ...]
    cost: Cost
    head: str


@dataclass(frozen=True)
class Step:
    """One more draw of a session: charges that are paid for together, by what the record that pays most has paid in all of them.

    Questions about disjoint parts of the records have one record in one of them only, so the session costs the largest of what single
    records pay, not the sum of what draws cost. That is a valid stopping rule however the next question depends on earlier answers:
    for two fixed neighbours the loss of a transcript is at most the sum of what the records they differ in pay along it, and the ledger
    keeps the largest such sum within the grant on every path (docs/theory.md; Feldman, Zrnic 2021, individual privacy filters). So a draw
    may be made although only the increment of ``total`` is charged for it, which can be 0.

    In rho it holds as well: given the past, a draw of pure epsilon a for two neighbours costs them a^2 / 2, and over one path the sum of
    the a^2 / 2 is at most half the square of the sum of the a, and at most the sum of what the draws cost whole. ``total.rho`` may be
    the smaller of the two; both grow from draw to draw, so their increments are what is charged.

    Attributes
    ----------
    session : str
        Its name, which no other session has: a digest of what gives its questions their meaning, the schema above all. So a text in the
        charges of a session always stands for the same question.
    count : int
        How many draws it has charged before this one.
    own : Cost
        What this draw would cost by itself: the most that any record pays for it.
    total : Cost
        What the session costs with it. Both are pure.
    """

    session: str
    count: int
    own: Cost
    total: Cost

    def __post_init__(self) -> None:
        named = re.fullmatch(r"[0-9a-f]{64}", self.session) and type(self.count) is int and self.count >= 0
        if not named or self.own.delta or self.total.delta:
            raise Refusal("A step needs the name of its session, how many came before, and pure costs. Let QuerySession make it.")
        if self.total.concentrated < self.own.concentrated:  # so it is where epsilon is less
            raise Refusal("A session costs at least what its newest draw costs. Count what every record pays in all of its draws.")

    @property
    def once(self) -> str:
        """What stands once in a ledger, so that of two copies of a session only one goes on."""
        return f"{self.session}:{self.count}"


def cost_of_draws(cost: Cost | Step, draws: Sequence[Draw]) -> Cost:
    """The most that the draws of a charge may cost by themselves."""
    if not isinstance(cost, Step):
        return cost
    if len(draws) != 1:
        raise Refusal("A step of a session is one draw. Charge several by their cost.")
    return cost.own


def check_fits(cost: Cost | Step, units: budget.Units, spent: budget.Spent, granted: budget.Grant, part: str, file: str) -> None:
    """Refuse a cost that does not fit into a grant, in words that say what would fit."""
    if budget.fits(budget.add(spent, units, part), granted):
        return
    what, cost = ("question", Cost(Fraction(units[0] or 0, budget.UNITS))) if isinstance(cost, Step) else ("release", cost)
    if cost.delta and not granted.rho:
        raise Refusal(
            f'{file} grants no delta, which Gaussian noise needs. Write mechanism="laplace", or ask the data owner to grant a delta:'
            " ledger.grant(epsilon=..., delta=1e-6)."
        )
    left = budget.cost_left(spent, granted, part)
    epsilon = left.epsilon if not cost.delta else epsilon_of(left.rho, cost.delta) if left.rho else Fraction(0)
    epsilon = min(Fraction(floor(epsilon * budget.UNITS), budget.UNITS), cost.epsilon)
    lower = f"Lower epsilon to {budget.decimal(epsilon)}, or ask" if epsilon else "Ask"
    raise Refusal(
        f"This {what} costs epsilon {budget.decimal(cost.epsilon)} and {budget.decimal(epsilon)} is left in {file}."
        f" {lower} the data owner for a larger grant."
    )
