"""What a release costs, in exact fractions. No file, no state and no noise.

All costs of the package are in the units defined here. Epsilon, in nats, and delta are kept as
``fractions.Fraction`` from the moment the user writes them: ten charges of 0.1 are exactly 1.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cache
from math import exp, inf, log, log1p
from numbers import Real
from typing import TypeGuard


class Refusal(ValueError):
    """The request cannot be met with an exact guarantee; the message says what to write instead.

    Decided from the arguments and the graph alone, before any record is read.

    Examples
    --------
    >>> try:
    ...     pmdp.release(model, epsilon=-1)
    ... except pmdp.Refusal as refusal:
    ...     print(refusal)
    epsilon must be a positive finite number. Write for example epsilon=1.0.
    """


NEIGHBOURS = ("replace", "add_remove")
"""Neighbouring data sets: ``replace``, one record exchanged for another, their number public; ``add_remove``, one more or one less."""
EQUAL = "equal"
"""What ``weights`` may say in place of numbers."""
type Weights = Mapping[str, object] | str | None
"""How several observed variables share a cost: numbers by name, "equal", or None."""
ALL_ROWS = "all rows of one "
"""So units begin that ``Person`` makes, and no words of a user's: the promise is of all rows of a person."""


@dataclass(frozen=True)
class Cost:
    """What a release, or a part of one, costs.

    Attributes
    ----------
    epsilon : Fraction
        In nats. It is a pure epsilon where delta is 0; for Gaussian noise it is what ``rho`` amounts to at ``delta``.
    delta : Fraction
    rho : Fraction or None
        The cost in zero-concentrated differential privacy, where more is known than epsilon implies; parts of a cost add up in it.

    Examples
    --------
    >>> cost = pmdp.release(model, epsilon=0.1).cost
    >>> cost
    Cost(epsilon=0.1, delta=0)
    >>> cost.epsilon
    Fraction(1, 10)
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None

    def __post_init__(self) -> None:
        numbers = {"epsilon": self.epsilon, "delta": self.delta, "rho": Fraction(0) if self.rho is None else self.rho}
        if not all(isinstance(value, int | Fraction) and not isinstance(value, bool) and value >= 0 for value in numbers.values()):
            raise Refusal("A cost is made of exact numbers that are not negative. Write for example Cost(Fraction(1, 10)).")
        if self.delta > 0 and self.rho is None:
            raise Refusal(
                "A cost with a delta needs its rho, because epsilon and delta alone do not add up. Write Cost(epsilon, delta, rho)."
            )
        if self.delta == 0 and self.rho is not None and self.rho > Fraction(self.epsilon) ** 2 / 2:
            raise Refusal("A pure epsilon implies a rho of epsilon**2 / 2 at most. Leave rho out, or give a delta.")

    def __repr__(self) -> str:
        numbers = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        return f"Cost({', '.join(f'{name}={float(value):.6g}' for name, value in numbers.items() if value is not None)})"

    @property
    def concentrated(self) -> Fraction:
        """The rho of zero-concentrated differential privacy: epsilon^2 / 2 of a pure cost (Bun, Steinke 2016, Proposition 1.4)."""
        return self.epsilon**2 / 2 if self.rho is None else self.rho


def bounded_range(eta: object) -> Cost:
    """The cost of one draw by the exponential mechanism whose log-density moves by a range of at most ``eta`` between neighbours.

    It is eta-differentially private and eta^2 / 8-zCDP (Cesar, Rogers 2021, Lemma 3.4), a quarter of what eta alone implies.

    Parameters
    ----------
    eta : int, float, Decimal or Fraction
        In nats.

    Returns
    -------
    Cost

    Raises
    ------
    Refusal
        Unless ``eta`` is a finite number above 0.

    Examples
    --------
    >>> pmdp.bounded_range(1.0)
    Cost(epsilon=1, delta=0, rho=0.125)
    """
    exact = exact_epsilon(eta)
    return Cost(exact, rho=exact**2 / 8)


def compose(costs: Iterable[object], *, delta: object = 0) -> Cost:
    """What a planned batch of releases from the same records costs altogether, by the cheapest of the valid routes.

    Parameters
    ----------
    costs : iterable of Cost or numbers
        A number is a pure epsilon, in nats. They must be fixed beforehand; a ledger accounts for what is decided on the way.
    delta : float
        0 asks for a pure epsilon.

    Returns
    -------
    Cost
        The smallest epsilon, exactly: the sum of pure ones; or, given a delta, what the sum of rho amounts to; or the sum of the
        largest pure ones plus what the rest amounts to.

    Raises
    ------
    Refusal
        When delta is 0 and a cost is not pure.

    Examples
    --------
    >>> float(pmdp.compose([0.1] * 100).epsilon)
    10.0
    >>> round(float(pmdp.compose([0.1] * 100, delta=1e-6).epsilon), 3)
    5.222
    """
    several = sorted(map(as_cost, costs), key=lambda cost: (cost.delta == 0, cost.epsilon), reverse=True)
    if not several:
        raise Refusal("A batch must hold at least one cost. Write for example compose([0.1, 0.1]).")
    allowed = exact_delta(delta)
    pure = sum(cost.delta == 0 for cost in several)
    if allowed == 0:
        if pure < len(several):
            raise Refusal("Gaussian noise has no pure epsilon. Write delta=, for example compose(costs, delta=1e-6).")
        return Cost(sum((cost.epsilon for cost in several), Fraction(0)), rho=sum((cost.concentrated for cost in several), Fraction(0)))
    best, by_epsilon, rho = None, Fraction(0), sum((cost.concentrated for cost in several), Fraction(0))
    total = rho
    for k in range(pure + 1):  # the k largest pure ones are added up as they are
        epsilon = by_epsilon + (epsilon_of(rho, allowed) if k < len(several) else Fraction(0))
        best = epsilon if best is None else min(best, epsilon)
        if k < pure:
            by_epsilon, rho = by_epsilon + several[k].epsilon, rho - several[k].concentrated
    assert best is not None
    return Cost(best, allowed, total)


def as_cost(cost: object) -> Cost:
    """A cost, or a pure epsilon as the user wrote it."""
    return cost if isinstance(cost, Cost) else Cost(exact_epsilon(cost))


def exact_epsilon(epsilon: object) -> Fraction:
    """The exact value of an epsilon as the user wrote it: 0.1 is 1/10, not the nearest double.

    Parameters
    ----------
    epsilon : int, float, decimal.Decimal or fractions.Fraction
        Pure epsilon in nats, positive and finite.

    Raises
    ------
    Refusal
        For anything else, booleans, durations and strings included, and for what no double is near: results say what they cost in
        doubles, too, where it would be 0 or infinite.
    """
    number = (isinstance(epsilon, Real) and not _is_named_otherwise(epsilon)) or (isinstance(epsilon, Decimal) and epsilon.is_finite())
    if not number or not 0 < nearest_double(epsilon) < inf:  # type: ignore[arg-type]
        raise Refusal("epsilon must be a positive finite number. Write for example epsilon=1.0.")
    if isinstance(epsilon, Fraction | Decimal):
        return Fraction(epsilon)
    return Fraction(Decimal(repr(float(epsilon))))  # type: ignore[arg-type]


def shares(names: Sequence[str], weights: Weights = None, disjoint: Sequence[Sequence[str]] = ()) -> dict[str, Fraction]:
    """The share of the cost of each of several observed variables.

    A record may stand behind every observed variable, so the costs add (sequential composition), and the shares add up to 1 exactly. A
    group of disjoint ones counts as one variable, because a record stands behind one of them only: each has all of the group's share.
    Shares are equal unless ``weights`` gives one positive number for every name, the same for all of a group; "equal" says so.

    Examples
    --------
    >>> shares(["treated", "control", "site"], disjoint=[("treated", "control")])
    {'treated': Fraction(1, 2), 'control': Fraction(1, 2), 'site': Fraction(1, 2)}
    """
    first = {name: group[0] for group in disjoint for name in group}
    counted = list(dict.fromkeys(first.get(name, name) for name in names))
    if weights is None or (isinstance(weights, str) and weights == EQUAL):
        return {name: Fraction(1, len(counted)) for name in names}
    if not isinstance(weights, Mapping) or set(weights) != set(names):
        example = ", ".join(f"{name!r}: 1" for name in names)
        raise Refusal(f'weights must name every observed variable once. Write weights={{{example}}}, or weights="equal".')
    try:
        exact = {name: exact_epsilon(weights[name]) for name in names}
    except Refusal:
        raise Refusal("Every weight must be a positive finite number. Write for example weights={'y': 2, 'z': 1}.") from None
    if unlike := next((name for name in first if exact[name] != exact[first[name]]), None):
        raise Refusal(
            f"{first[unlike]} and {unlike} are disjoint, so that neither takes anything from the other. Give all of a group one weight."
        )
    total = sum(exact[name] for name in counted)
    return {name: exact[name] / total for name in names}


def exact_delta(delta: object) -> Fraction:
    """The exact value of a delta as the user wrote it, from 0 to less than 1."""
    if (isinstance(delta, Real) and not _is_named_otherwise(delta) and delta == 0) or (isinstance(delta, Decimal) and delta.is_zero()):
        return Fraction(0)
    try:
        exact = exact_epsilon(delta)
    except Refusal:
        exact = Fraction(1)
    if exact >= 1:
        raise Refusal("delta must be a number from 0 to less than 1. Write for example delta=1e-6.")
    return exact


@cache
def epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """An epsilon for which rho-zCDP implies (epsilon, delta)-differential privacy, rounded up.

    rho a + log(1 - 1/a) - (log delta + log a) / (a - 1) holds for any a > 1 (Canonne, Kamath, Steinke 2020, Proposition 12), so
    the search for a good a may be in floating point; the value is computed with 60 digits and rounded up.
    """
    if not 0 < delta < 1:
        raise ValueError("delta must lie between 0 and 1")

    log_delta = log(delta.numerator) - log(delta.denominator)

    def value(log_excess: float) -> float:
        excess = exp(log_excess)
        return float(rho) * (1 + excess) + log(excess / (1 + excess)) - (log_delta + log1p(excess)) / excess

    low, high = -30.0, 60.0
    for _ in range(200):  # the bound has a single minimum in a
        third = (high - low) / 3
        low, high = (low + third, high) if value(low + third) > value(high - third) else (low, high - third)
    with localcontext(Context(prec=60)):
        a = 1 + Decimal(exp(low))
        exact_rho, exact = Decimal(rho.numerator) / rho.denominator, Decimal(delta.numerator) / delta.denominator
        bound = exact_rho * a + (1 - 1 / a).ln() - (exact.ln() + a.ln()) / (a - 1)
        return max(Fraction(bound + Decimal("1e-40")), Fraction(0))


@cache
def rho_of(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho, to twelve digits, that implies (epsilon, delta)-differential privacy by ``epsilon_of``."""
    low, high = Fraction(0), epsilon + 1
    while epsilon_of(high, delta) <= epsilon:
        high *= 2
    for _ in range(60):
        middle = Fraction(float((low + high) / 2))
        low, high = (middle, high) if middle > 0 and epsilon_of(middle, delta) <= epsilon else (low, middle)
    if low <= 0:
        raise Refusal("epsilon is too small for this delta. Write a larger epsilon or delta.")
    return low


def check_neighbours(neighbours: object) -> str:
    """The neighbour relation, if it is offered."""
    if neighbours in NEIGHBOURS:
        return str(neighbours)
    raise Refusal(
        'neighbours must be "replace" (one record is exchanged for another, and their number is public) or "add_remove" (a record is added'
        ' or removed). Write neighbours="replace" or neighbours="add_remove".'
    )


def counts_rows(unit: object, neighbours: str) -> bool:
    """Whether the number of rows is public: not where all rows of a person are exchanged for another's."""
    return neighbours == "replace" and not str(unit).startswith(ALL_ROWS)


def protected(unit: object, disjoint: Sequence[Sequence[str]] = ()) -> str:
    """What is protected, in words: one row. What a row stands for is what the user says of it, which nothing here can check.

    Parameters
    ----------
    unit : str, Individual or Person
    disjoint : sequence of sequences of str
        Groups of observed variables of which the user says that each person has records in only one.

    Examples
    --------
    >>> protected("patient")
    'one row, which you say is one "patient"'
    >>> protected("patient", [("treated", "control")])
    'one row, which you say is one "patient", in only one of treated, control, which you say hold different people'
    """
    words = str(unit)
    if words.startswith(ALL_ROWS):
        what = f"{words} of which count" if ", at most " in words else words
    elif words == "row":
        what = "one row"
    elif words.startswith(("individual", "Individual(")):
        what = "one individual of those whose totals you say the rows are"
    else:
        what = f'one row, which you say is one "{words}"'
    only = " and in only one of ".join(", ".join(group) for group in disjoint)
    return f"{what}, in only one of {only}, which you say hold different people" if only else what


def nearest_double(value: Real | float) -> float:
    """A number as a double; infinite, of its own sign, where it is too large."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf  # type: ignore[operator]


def is_whole(value: object, least: int, most: float = inf) -> TypeGuard[int]:
    """Whether an argument is a whole number from ``least`` to ``most``; a truth value is none."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_named_otherwise(value: object) -> bool:
    """Whether a value is a truth value or a duration, which Python and NumPy take for integers."""
    return isinstance(value, bool) or type(value).__name__ in {"bool", "bool_", "timedelta64"}
