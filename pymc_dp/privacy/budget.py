"""Sums of what was spent, in whole units of epsilon and of rho, and whether they fit into a grant.

Charges are rounded up to units and grants down, so that a sum that fits never exceeds what was granted. No file is touched here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, isqrt

from pymc_dp.privacy.accounting import Cost, Refusal, exact_delta, exact_epsilon, rho_of

UNITS = 10**12
"""Integer units in one nat of epsilon, and in one of rho. Charges are rounded up, grants down."""
LARGEST_GRANT = 1000
"""In nats. More protects nobody, and its units would not fit 64 bits."""
WHOLE = ""
"""The part that is all of the data set."""


@dataclass(frozen=True)
class Grant:
    """What may be spent: epsilon and delta as they were written, and the units of epsilon and rho that they allow."""

    epsilon: str
    delta: str
    pure: int
    rho: int

    @classmethod
    def of(cls, epsilon: object, delta: object) -> "Grant":
        """The grant of an epsilon and a delta as a user writes them."""
        total, allowed = exact_epsilon(epsilon), exact_delta(delta)
        if total > LARGEST_GRANT:
            raise Refusal(f"An epsilon above {LARGEST_GRANT} protects nobody. Write for example epsilon=1.0.")
        rho = floor(rho_of(total, allowed) * UNITS) if allowed else 0
        return cls(str(total), str(allowed), floor(total * UNITS), rho)

    @property
    def cost(self) -> Cost:
        """The whole grant as a cost."""
        return Cost(Fraction(self.epsilon), Fraction(self.delta), Fraction(self.rho, UNITS) if self.rho else None)


type Units = tuple[int | None, int]
"""Units of pure epsilon, None where a cost is not pure, and units of rho."""
type Spent = dict[str, list[int | None]]
"""By part of the data set: units of pure epsilon, or None where something spent is not pure, and units of rho."""


def units_of(cost: Cost) -> Units:
    """A cost in units, rounded up."""
    return (None if cost.delta else ceil(cost.epsilon * UNITS)), ceil(cost.concentrated * UNITS)


def increment(before: Sequence[int | None], after: Units) -> Units:
    """What is paid when a session's total rises: increments of totals that were rounded up add up to the last total."""
    return (after[0] or 0) - (before[0] or 0), after[1] - (before[1] or 0)


def add(spent: Spent, units: Units, part: str) -> Spent:
    """What is spent once a part of the data set has paid these units, too."""
    pure, rho = units
    old_pure, old_rho = spent[part]
    return {**spent, part: [None if pure is None or old_pure is None else old_pure + pure, (old_rho or 0) + rho]}


def _used(spent: Spent, part: str | None = None) -> tuple[int | None, int]:
    """What one record may have paid as part of the whole and of one part: the given part, or the one that paid most."""
    parts = [spent[name] for name in spent if name != WHOLE and part in {None, WHOLE, name}]
    pures = [spent[WHOLE][0], *(pure for pure, _ in parts)]
    worst = max((pure or 0 for pure, _ in parts), default=0)
    pure = None if any(units is None for units in pures) else (spent[WHOLE][0] or 0) + worst
    return pure, (spent[WHOLE][1] or 0) + max((rho or 0 for _, rho in parts), default=0)


def fits(spent: Spent, granted: Grant) -> bool:
    """Whether one of the two sums is within the grant."""
    pure, rho = _used(spent)
    return (pure is not None and pure <= granted.pure) or rho <= granted.rho


def cost_left(spent: Spent, granted: Grant, part: str) -> Cost:
    """The largest costs that fit, each by itself: where other parts rest on one of the two sums, that sum decides."""
    (pure, rho), (worst_pure, worst_rho) = _used(spent, part), _used(spent)
    left_rho = granted.rho - rho if worst_rho <= granted.rho else 0
    by_sum = granted.pure - pure if pure is not None and worst_pure is not None and worst_pure <= granted.pure else 0
    epsilon = max(by_sum, isqrt(2 * left_rho * UNITS))
    return Cost(Fraction(epsilon, UNITS), Fraction(granted.delta), Fraction(left_rho, UNITS) if granted.rho else None)


def decimal(value: Fraction) -> str:
    """A decimal that is not above the value."""
    digits = f"{Fraction(floor(value * UNITS), UNITS):.12f}".rstrip("0").rstrip(".")
    return digits if value >= Fraction(1, UNITS) or not value else f"{float(value):.6g}"


def words(cost: Cost) -> str:
    """What is left, in words."""
    return f"epsilon {decimal(cost.epsilon)}" + (
        f", or rho {decimal(cost.rho)} at delta {decimal(cost.delta)}" if cost.rho is not None else ""
    )
