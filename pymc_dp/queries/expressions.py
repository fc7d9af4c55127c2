"""Questions as Python objects: ``col("age") >= 65``, ``count(...)``, ``total("age")``, and sums of those with decimal coefficients.

They are what is meant, before any schema: nouns that ``grammar`` makes of text as well, and that ``language`` reads against a schema.
Python would quietly read ``and``, ``not``, ``in`` and chained comparisons of such objects as something else, so these are refused.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from numbers import Integral, Real
from typing import Any, NoReturn

import numpy as np

from pymc_dp.privacy.accounting import Refusal

MOST_NODES = 2_000
"""The most comparisons, listed values, connectives and terms of one question."""

DEEPEST = 50
"""The deepest that conditions may be nested."""

LARGEST_COEFFICIENT = 10**18
"""Coefficients are decimals below this."""

Literal = str | bool | Fraction

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
"""The comparison that says the same with its sides exchanged."""


class Strict:
    """Operators that would not mean what they look like are refused; classes below give a meaning to theirs."""

    __array_ufunc__ = None  # numbers of NumPy leave the comparison to us
    advice = "Write for example (col('age') >= 65) & (col('sex') == 'f')."

    def _refuse(self, *_: object) -> NoReturn:
        raise Refusal(f"This operator does not make a question of {type(self).__name__}. {self.advice}")

    def __bool__(self) -> bool:
        """``and``, ``or``, ``not``, ``in`` and chained comparisons ask for a truth value, and there is none."""
        raise Refusal(
            "Python's and, or, not, in and chained comparisons do not work on conditions. "
            "Write &, |, ~ and .isin([...]), with parentheses around every comparison, or write the question as text."
        )


_REFUSED = """
and rand or ror xor rxor invert lt le gt ge add radd sub rsub mul rmul truediv rtruediv neg pos
mod rmod pow rpow floordiv rfloordiv contains iter getitem len
"""
for _operator in _REFUSED.split():
    setattr(Strict, f"__{_operator}__", Strict._refuse)


class Condition(Strict):
    """Which records are meant: a set of cells."""

    advice = "Write &, | and ~ between conditions in parentheses, and count(...) around a condition to calculate with it."
    nodes: int
    depth: int

    def __and__(self, other: object) -> "Condition":
        return _connected(Every, self, other)

    def __or__(self, other: object) -> "Condition":
        return _connected(Some, self, other)

    def __invert__(self) -> "Condition":
        return Opposite(self)


@dataclass(frozen=True, eq=False)
class Compared(Condition):
    """A column against a literal."""

    column: str
    comparison: str
    value: Literal
    nodes = 1
    depth = 1


@dataclass(frozen=True, eq=False)
class Among(Condition):
    """A column whose value is one of several literals."""

    column: str
    values: tuple[Literal, ...]
    nodes: int = field(init=False)
    depth = 1

    def __post_init__(self) -> None:
        _counted(self, 1 + len(self.values), 1)


@dataclass(frozen=True, eq=False)
class Several(Condition):
    """Conditions that are connected: ``Every`` or ``Some``."""

    parts: tuple[Condition, ...]
    nodes: int = field(init=False)
    depth: int = field(init=False)

    def __post_init__(self) -> None:
        _counted(self, 1 + sum(part.nodes for part in self.parts), 1 + max(part.depth for part in self.parts))


class Every(Several):
    """All of several conditions."""


class Some(Several):
    """At least one of several conditions."""


@dataclass(frozen=True, eq=False)
class Opposite(Condition):
    """The records that a condition leaves out, those of the extra cell among them."""

    part: Condition
    nodes: int = field(init=False)
    depth: int = field(init=False)

    def __post_init__(self) -> None:
        _counted(self, 1 + self.part.nodes, 1 + self.part.depth)


@dataclass(frozen=True, eq=False)
class Col(Strict):
    """A column, to be compared with a literal: see ``col``."""

    name: str
    advice = "A comparison of a column needs parentheses of its own: (col('age') >= 65) & (col('sex') == 'f')."

    def _compare(self, comparison: str, other: object) -> Condition:
        return Compared(self.name, comparison, literal(other))

    def __eq__(self, other: object) -> Any:
        return self._compare("==", other)

    def __ne__(self, other: object) -> Any:
        return self._compare("!=", other)

    def __lt__(self, other: object) -> Condition:
        return self._compare("<", other)

    def __le__(self, other: object) -> Condition:
        return self._compare("<=", other)

    def __gt__(self, other: object) -> Condition:
        return self._compare(">", other)

    def __ge__(self, other: object) -> Condition:
        return self._compare(">=", other)

    __hash__ = None  # type: ignore[assignment]

    def isin(self, values: Iterable[object]) -> Condition:
        """The column's value is one of a list of literals."""
        if not isinstance(values, list | tuple | range) or not 0 < len(values) <= MOST_NODES:
            raise Refusal(f"isin needs a list of 1 to {MOST_NODES:,} values. Write for example col('sex').isin(['f', 'm']).")
        return Among(self.name, tuple(map(literal, values)))


@dataclass(frozen=True)
class Aggregate:
    """What is added up over records: the value of ``column``, or 1 where that is None; of the records in ``where``, or of all."""

    column: str | None
    where: Condition | None


@dataclass(frozen=True, eq=False)
class Combination(Strict):
    """Counts and sums, each times a decimal."""

    terms: tuple[tuple[Fraction, Aggregate], ...]
    advice = "Write for example count(a) - 0.5 * count(b): only +, - and a number times a count or a sum."

    def __post_init__(self) -> None:
        if sum(1 + (0 if term.where is None else term.where.nodes) for _, term in self.terms) > MOST_NODES:
            raise Refusal(_too_long())

    def __add__(self, other: object) -> "Combination":
        return Combination(self.terms + other.terms) if isinstance(other, Combination) else self._refuse()

    def __sub__(self, other: object) -> "Combination":
        return self + -other if isinstance(other, Combination) else self._refuse()

    def __mul__(self, other: object) -> "Combination":
        if isinstance(other, Strict):
            self._refuse()
        factor = coefficient(other)
        return Combination(tuple((factor * weight, term) for weight, term in self.terms))

    __rmul__ = __mul__

    def __neg__(self) -> "Combination":
        return self * -1

    def __pos__(self) -> "Combination":
        return self


def col(name: str) -> Col:
    """A column of the schema, to be compared: ``col("age") >= 65``, ``col("sex") == "f"``, ``col("sex").isin(["f", "m"])``."""
    if not isinstance(name, str):
        raise Refusal("A column is named by text. Write for example col('age').")
    return Col(str(name))


def count(where: Condition | None = None) -> Combination:
    """Number of records that meet a condition, or of all of them."""
    if where is not None and not isinstance(where, Condition):
        raise Refusal("count needs a condition, or nothing to count every record. Write for example count(col('age') >= 65).")
    return Combination(((Fraction(1), Aggregate(None, where)),))


def total(column: str | Col, where: Condition | None = None) -> Combination:
    """Sum of a column of whole numbers over the records that meet a condition, or over all; what is no level adds 0."""
    name = column.name if isinstance(column, Col) else column
    if not isinstance(name, str) or not (where is None or isinstance(where, Condition)):
        raise Refusal("total needs a column and perhaps a condition. Write for example total('age', col('sex') == 'f').")
    return Combination(((Fraction(1), Aggregate(str(name), where)),))


def literal(value: object) -> Literal:
    """A value that a column can be compared with, exactly as it was written: 0.1 is 1/10."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | np.bool_):
        return bool(value)
    number = _decimal(value)
    if number is None:
        raise Refusal("A column is compared with text, a finite number or a truth value. Write for example col('age') >= 65.")
    return number


def coefficient(value: object) -> Fraction:
    """A decimal number, exactly as it was written."""
    number = _decimal(value)
    if number is None or abs(number) >= LARGEST_COEFFICIENT:
        raise Refusal("A coefficient must be a finite decimal number below 10**18. Write for example 0.5 * count(...).")
    return number


def _decimal(value: object) -> Fraction | None:
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, Integral | Fraction):
        number = value if isinstance(value, Fraction) else Fraction(int(value))
        return number if max(abs(number.numerator), number.denominator) < 2**1024 else None
    if isinstance(value, Decimal):
        return Fraction(value) if value.is_finite() and abs(value.adjusted()) < 400 else None
    if isinstance(value, Real) and isfinite(float(value)):
        return Fraction(Decimal(repr(float(value))))
    return None


def _connected(kind: type[Several], left: Condition, right: object) -> Condition:
    if not isinstance(right, Condition):
        left._refuse()
    parts: tuple[Condition, ...] = ()
    for side in (left, right):
        parts += side.parts if isinstance(side, kind) else (side,)  # a & b & c is one conjunction of three
    return kind(parts)


def _counted(condition: Condition, nodes: int, depth: int) -> None:
    if nodes > MOST_NODES:
        raise Refusal(_too_long())
    if depth > DEEPEST:
        raise Refusal(f"A condition may be nested {DEEPEST} deep. Write it with fewer parentheses.")
    object.__setattr__(condition, "nodes", nodes)
    if depth > 1:
        object.__setattr__(condition, "depth", depth)


def _too_long() -> str:
    return (
        f"A question may have {MOST_NODES:,} comparisons, values and terms. Write ranges, such as 18 <= age < 65, or ask several questions."
    )
