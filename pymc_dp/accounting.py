"""What a release costs, as exact numbers: no file, no memory, no noise.

Everything to the right of this module pays in the units defined here. Epsilon is pure differential privacy, in nats, and
is kept as a ``fractions.Fraction`` from the moment the user writes it: ten charges of 0.1 are exactly 1.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from numbers import Real


class Refusal(ValueError):
    """The request cannot be met with an exact guarantee; the message says what to write instead.

    Decided from the arguments and the graph alone, before any record is read.
    """


NEIGHBOURS = ("replace",)
"""Neighbouring data sets that are offered: ``replace``, one record exchanged for another, the number of records public."""


def exact_epsilon(epsilon: object) -> Fraction:
    """The exact value of an epsilon as the user wrote it: 0.1 is 1/10, not the nearest double.

    Parameters
    ----------
    epsilon : int, float, decimal.Decimal or fractions.Fraction
        Pure epsilon in nats, positive and finite.

    Raises
    ------
    Refusal
        For anything else, booleans and strings included.
    """
    if isinstance(epsilon, Fraction):
        exact = epsilon
    elif isinstance(epsilon, Decimal) and epsilon.is_finite():
        exact = Fraction(epsilon)
    elif isinstance(epsilon, Real) and not _is_boolean(epsilon) and isfinite(float(epsilon)):
        exact = Fraction(Decimal(repr(float(epsilon))))
    else:
        raise Refusal("epsilon must be a positive finite number. Write for example epsilon=1.0.")
    if exact <= 0:
        raise Refusal("epsilon must be a positive finite number. Write for example epsilon=1.0.")
    return exact


def shares(epsilon: Fraction, names: Sequence[str], weights: Mapping[str, object] | None = None) -> dict[str, Fraction]:
    """Divide epsilon over several observed variables; the shares add up to epsilon exactly.

    A record may stand behind every observed variable, so the costs add (sequential composition). Shares are equal unless
    ``weights`` gives one positive number for every name.
    """
    if weights is None:
        return {name: epsilon / len(names) for name in names}
    if not isinstance(weights, Mapping) or set(weights) != set(names):
        raise Refusal(f"weights must name every observed variable once. Write weights={{{', '.join(f'{name!r}: 1' for name in names)}}}.")
    try:
        exact = {name: exact_epsilon(weights[name]) for name in names}
    except Refusal:
        raise Refusal("Every weight must be a positive finite number. Write for example weights={'y': 2, 'z': 1}.") from None
    total = sum(exact.values())
    return {name: epsilon * exact[name] / total for name in names}


def check_neighbours(neighbours: object) -> str:
    """The neighbour relation, if it is offered."""
    if neighbours in NEIGHBOURS:
        return str(neighbours)
    if neighbours == "add_remove":
        raise Refusal('neighbours="add_remove" is not offered yet. Write neighbours="replace", which protects what a record says.')
    raise Refusal('neighbours must be "replace": one record is exchanged for another and the number of records is public.')


def check_delta(delta: object) -> Fraction:
    """Only pure epsilon is offered, so delta must be 0."""
    if not isinstance(delta, Real) or _is_boolean(delta) or delta != 0:
        raise Refusal("delta must be 0: Laplace noise gives pure epsilon and needs none. Leave delta out.")
    return Fraction(0)


def _is_boolean(value: object) -> bool:
    return isinstance(value, bool) or type(value).__name__ in {"bool", "bool_"}
