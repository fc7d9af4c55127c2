"""A draw of noise with its price, and the receipt that gives the right to it once.

Draws are planned and priced before any record is read. ``mechanisms`` draws nothing that is not on a receipt.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from threading import Lock
from typing import NoReturn

from pymc_dp.privacy.accounting import Cost, Refusal
from pymc_dp.privacy.journal import process

UNPAID = "This draw of noise has not been paid for. Every draw needs a charge of its own: call pymc_dp.release, or share_out, again."
UNACCOUNTED = "unaccounted"
"""Stands in place of the head of a ledger where there is none."""


@dataclass(frozen=True)
class Draw:
    """A drawing of noise, planned and priced before any record is read.

    Attributes
    ----------
    variable, mechanism : str
    difference, square : int
        L1 and squared L2 sensitivity of the integers that get noise, in lattice units and their square. For choices: the largest
        range by which the scores of neighbours differ, added up over the choices, and its square; or, where log-posteriors are concave,
        the square of how much their difference rises at most over a standard deviation of a normal prior. For randomised answers: how
        many of them a record gives, 1 each, and its square.
    scale : float
        Scale of the noise, in lattice units; of randomised answers the inverse of what one costs, in nats.
    size : int
        Number of integers that get noise.
    disjoint : tuple of str
        The observed variables of disjoint people that this one is one of, as the user says; empty where it is none of several.
    """

    variable: str
    mechanism: str
    difference: int
    square: int
    scale: float
    size: int
    disjoint: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.disjoint and (self.variable not in self.disjoint or len(set(self.disjoint)) < len(self.disjoint)):
            raise Refusal("A draw is one of the disjoint ones that it names. Name every variable once, its own among them.")
        whole = all(type(value) is int and value >= 0 for value in (self.difference, self.square, self.size))
        if self.mechanism not in ("laplace", "gaussian", "choice", "answer") or not whole or not (isfinite(self.scale) and self.scale > 0):
            raise Refusal("A draw needs a mechanism, whole sensitivities and size, and a positive scale. Plan it with Mechanism.calibrate.")

    @property
    def pure(self) -> Fraction | None:
        """The exact pure epsilon that the draw costs; None for Gaussian noise, which has none."""
        return None if self.mechanism == "gaussian" else Fraction(self.difference) / Fraction(self.scale)

    @property
    def rho(self) -> Fraction:
        """The exact cost in zero-concentrated differential privacy.

        For choices eta^2 / 8 (Cesar, Rogers 2021), or what the rise costs if that is less: two log-posteriors that are as concave as a
        standard normal's, and whose difference rises by G at most, are no easier to tell apart than two normal distributions G apart,
        which cost G^2 / 2 (Gopi, Lee, Liu 2022, Private convex optimization via exponential mechanism).
        """
        by_square = Fraction(self.square) / (2 * Fraction(self.scale) ** 2)
        if self.pure is None:
            return by_square
        return min(self.pure**2 / 8, by_square) if self.mechanism == "choice" else self.pure**2 / 2


def adds_up_to(draws: Sequence[Draw]) -> tuple[Fraction | None, Fraction]:
    """The pure epsilon that draws from the same records cost together, None where one has none, and the rho.

    Costs add up, but of observed variables of disjoint people only the largest counts (parallel composition): neighbouring data sets
    differ in a record of one of them, which draws of the others do not see. Draws of one variable add up within it, and so do several
    groups of disjoint ones, because a person may be in one variable of each.

    Examples
    --------
    >>> arms = [Draw(name, "laplace", 1, 1, 4.0, 1, ("treated", "control")) for name in ("treated", "control")]
    >>> adds_up_to(arms)
    (Fraction(1, 4), Fraction(1, 32))
    """
    pures: dict[tuple[str, ...], dict[str, Fraction]] = {}
    rhos: dict[tuple[str, ...], dict[str, Fraction]] = {}
    for draw in draws:
        name = draw.variable if draw.disjoint else ""
        for costs, cost in ((pures, draw.pure or Fraction(0)), (rhos, draw.rho)):
            group = costs.setdefault(draw.disjoint, {})
            group[name] = group.get(name, Fraction(0)) + cost
    pure, rho = (sum((max(group.values()) for group in costs.values()), Fraction(0)) for costs in (pures, rhos))
    return None if any(draw.pure is None for draw in draws) else pure, rho


def _check(draws: Sequence[Draw], cost: Cost) -> None:
    """Refuse draws that cost more together than is charged for them."""
    pure, rho = adds_up_to(draws)
    if (cost.delta == 0 and (pure is None or pure > cost.epsilon)) or rho > cost.concentrated:
        raise Refusal("These draws cost more than is charged for them. Plan them with Mechanism.calibrate.")


class Receipt:
    """The right to draw noise that has been paid for: once, in this process, and nothing else.

    ``mechanisms`` strikes off a receipt what it draws. A receipt cannot be copied, pickled or carried into a child process.

    Parameters
    ----------
    draws : sequence of Draw
    cost : Cost
        What was charged; the draws together cost no more.
    head : str
        Head of the ledger after the charge, or ``"unaccounted"``.
    """

    def __init__(self, draws: Sequence[Draw], cost: Cost, head: str = UNACCOUNTED) -> None:
        draws = list(draws)
        _check(draws, cost)
        self.head, self._draws, self._cost = head, draws, cost
        self._left = Counter((draw.mechanism, draw.scale, draw.size) for draw in draws)
        self._process, self._lock = process(), Lock()

    def strike_off(self, mechanism: str, scale: float, size: int) -> None:
        """Give up the right to one draw of this noise, of this many integers."""
        wanted = (mechanism, scale, size)
        with self._lock:
            if self._process is process() and self._left[wanted] > 0:
                self._left[wanted] -= 1
                return
        raise Refusal(UNPAID)

    def check_same_process(self) -> None:
        """Refuse in a child of a fork that came between ``strike_off`` and the noise, as in a signal handler.

        The child would draw noise of its own beside its parent's. Once noise is drawn a fork copies it, which tells nothing more.
        """
        if self._process is not process():
            raise Refusal(UNPAID)

    def exchange(self, given_up: Sequence[Draw], instead: Sequence[Draw]) -> None:
        """Give up the right to some draws for the right to others, with which all draws cost no more than was charged.

        Which draws are given up may depend on noisy numbers that were drawn before: costs add up to what was paid whatever is chosen
        (Rogers et al. 2016, Whitehouse et al. 2023).
        """
        with self._lock:
            kept = list(self._draws)
            for draw in given_up:
                if draw not in kept:
                    raise Refusal(UNPAID)
                kept.remove(draw)
            wanted = Counter((draw.mechanism, draw.scale, draw.size) for draw in given_up)
            # Rights are told apart by these three. Another draw with the same three and another price could be the one that is left.
            alike = any((one.mechanism, one.scale, one.size) in wanted and one not in given_up for one in kept)
            if self._process is not process() or wanted - self._left or alike:
                raise Refusal(UNPAID)
            _check([*kept, *instead], self._cost)
            self._draws = [*kept, *instead]
            self._left = self._left - wanted
            self._left.update((draw.mechanism, draw.scale, draw.size) for draw in instead)

    def __reduce__(self) -> NoReturn:
        """Two receipts would be two draws for one payment."""
        raise TypeError("A receipt cannot be copied or pickled.")
