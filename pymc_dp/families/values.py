"""A single value of a record as a Python value and as a floating-point number: in the same way in a model, in a table and in questions.

It sees records. Nothing in it can fail because of a value, and only a value itself decides what becomes of it.
"""

import re
from collections.abc import Mapping
from decimal import Decimal

import numpy as np

from pymc_dp.privacy.accounting import nearest_double

Labels = Mapping[str, int]
"""Of a column whose levels are called by texts: at which place each of them stands."""

NO_LABELS: Labels = {}
"""Of a column whose levels have no names."""

LARGEST_LEVEL = 2**53 - 1
"""Whole numbers up to this are doubles, and so is every number of a table before it is compared."""

LONGEST_NAME = 200
"""Characters of a name or of a level that is text."""

LONGEST_SPELLED = 100
"""Characters of text that spells a number."""

LONGEST_VALUE = 4 * max(LONGEST_NAME, LONGEST_SPELLED)
"""Bytes of text that may be a level or spell a number. Longer text is neither, so nobody reads it."""

_NUMBERS = frozenset(
    kind for kind in np.sctypeDict.values() if issubclass(kind, np.number | np.bool_) and not issubclass(kind, np.timedelta64)
)
"""Numbers of NumPy, of every name that C has for them. A duration, which NumPy takes for an integer, is none."""


_PYTHON = {np.floating: float, np.integer: int, np.complexfloating: complex}
"""Which of Python's own a number of NumPy is."""


def plain(value: object) -> bool | int | float | str | None:
    """A value as Python's own bool, int, float or str; None where it is none of these, not a number, too long, or fails at being asked.

    Bytes are the text that they encode.
    """
    try:
        kind = type(value)
        if any(kind is number for number in _NUMBERS):
            of = next((of for base, of in _PYTHON.items() if issubclass(kind, base)), bool)
            value, kind = of(value), of
        if kind is complex:
            return plain(value.real) if value.imag == 0 else None  # type: ignore[attr-defined]
        if kind is bool or value is None:
            return value  # type: ignore[return-value]
        if kind is Decimal:
            value, kind = float(value), float  # type: ignore[arg-type]
        if issubclass(kind, float):
            double = float.__float__(value)  # type: ignore[arg-type]
            return double if double == double else None
        if issubclass(kind, bytes) and bytes.__len__(value) <= LONGEST_VALUE:  # type: ignore[arg-type]
            value, kind = bytes.decode(value), str  # type: ignore[arg-type]  # some make bytes of all text where one entry is bytes
        if issubclass(kind, str):
            return str.__str__(value) if str.__len__(value) <= LONGEST_NAME else None  # type: ignore[arg-type]
        return int.__int__(value) if issubclass(kind, int) else None  # type: ignore[arg-type]
    except Exception:
        return None


TRUTHS = {"false": 0.0, "f": 0.0, "no": 0.0, "n": 0.0, "true": 1.0, "t": 1.0, "yes": 1.0, "y": 1.0}
"""Words that are truth values, and 0 or 1, to those who read files of text."""
READ = r"[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?)"
"""Numbers as pandas, polars, Arrow and DuckDB read them from text, in small letters; no digits of another script."""
OF_BITS = r"0(x[0-9a-f]+|b[01]+)"
"""Whole numbers as Arrow and DuckDB read them from text, in small letters."""
_READ, _OF_BITS = (re.compile(pattern, re.ASCII | re.IGNORECASE) for pattern in (READ, OF_BITS))


def number_in(text: str) -> float | None:
    """The number that a text is to those who read files of text, or None: one odd record makes texts of all numbers of its column."""
    if len(text) > LONGEST_SPELLED:
        return None
    text = text.strip(" \t")
    if _READ.fullmatch(text):
        return float(text)
    return TRUTHS.get(text.lower()) if (number := number_of_bits(text)) is None else float(number)


def number_of_bits(text: str) -> int | None:
    """The number below 2^63 that a text spells in sixteens or in twos, or None."""
    number = int(text[2:], {"x": 16, "b": 2}[text[1].lower()]) if _OF_BITS.fullmatch(text) else None
    return None if number is None or number >= 2**63 else number


_NOTHING = frozenset({"na", "n/a", "nan", "null", "none", "nil", "nat", "epoch"})
"""Words that some readers of files take for a missing value or a date, where all others of the column are such, too."""
_TEXT = re.compile(r"[^\W\d_].*|([<>≤≥]=? ?\d+|\d+ ?(\+|(-|–|to) ?\d+)|\d+(st|nd|rd|th))( [^\W\d_]+)*")
"""What nobody who reads files of text takes for a number, a date or a time, but for some words: what begins with a letter, and ranges."""


def stays_text(text: str) -> bool:
    """Whether a text is text to those who read files of text, whatever else is in its column, so that a level may be called by it."""
    return bool(_TEXT.fullmatch(text)) and len(text) <= LONGEST_NAME and number_in(text) is None and text.strip().lower() not in _NOTHING


def double_of(value: object, labels: Labels = NO_LABELS) -> float:
    """A value as the nearest double, NaN where it is no number: text is the place of the label that it is, or what it spells in full."""
    plain_value = plain(value)
    number = labels.get(plain_value, number_in(plain_value)) if isinstance(plain_value, str) else plain_value
    return np.nan if number is None else nearest_double(number)
