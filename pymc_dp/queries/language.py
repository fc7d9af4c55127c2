"""What a question means under a schema: the integer that a record of each cell adds to the answer. No record is needed for any of it.

A condition is a set of cells, so it has two values and no third: a record in the extra cell of ``age`` (it is missing, or no level) does
not meet ``age >= 65``, and does meet ``~(age >= 65)`` and ``age != 65``. Text and Python objects (``grammar``, ``expressions``) that mean
the same become the same ``Question``, with one canonical text (``regions``, ``conditions``).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm, prod

import numpy as np

from pymc_dp.privacy.accounting import Refusal, check_neighbours
from pymc_dp.queries.conditions import normal_form
from pymc_dp.queries.expressions import Among, Combination, Compared, Condition, Opposite, Several, count
from pymc_dp.queries.grammar import parse
from pymc_dp.queries.regions import Cells, Region, decimal_text, literal_text, name_text, region_of_column, region_text
from pymc_dp.queries.schema import MOST_CELLS, Column, Schema

LARGEST_WEIGHT = 2**31 - 1
"""The largest weight of a record, in lattice units: an exact answer of up to 2**31 records stays below 2**62, as ``mechanisms`` needs."""

LARGEST_DIVISOR = 10**18
"""Coefficients have up to 18 decimals."""

MOST_WORK = 2**28
"""The most cells that all comparisons of one question may go through, one after the other."""


@dataclass(frozen=True, eq=False)
class Question:
    """A linear question: the sum over records of ``weights[cell of the record]``, divided by ``divisor``.

    Attributes
    ----------
    text : str
        Canonical and public. Questions of equal text are equal; counts of the same condition have equal text in almost every spelling.
    columns : tuple of str
        Columns that matter to the answer, in the order of the schema; none, for a constant question such as ``count()``.
    weights : np.ndarray
        int64, shape (size of each column), in lattice units; the last entry of every axis is the extra cell.
    divisor : int
        Lattice units in one unit of the answer.
    """

    text: str
    columns: tuple[str, ...]
    weights: np.ndarray
    divisor: int

    def sensitivity(self, neighbours: str, at_most: int | None = None) -> int:
        """How far one record, or a person of whom ``at_most`` rows count, moves the exact answer at most, in lattice units; attained.

        A record is in exactly one cell j, whatever it holds, and adds weights[j]. One record more or less ("add_remove") therefore moves
        the sum by weights[j], at most max abs(weights); one record exchanged for another ("replace") by weights[i] - weights[j], at most
        max(weights) - min(weights). Every cell, the extra ones included, is where some record would be, so both are attained.
        (XX12, Lemma 2.1, and docs/theory.md for "replace".)

        A person is any ``at_most`` cells or fewer. All of them may be the cell of the largest weight or of the smallest, and where people
        are exchanged one of them may have no rows, which adds 0: at most ``at_most`` times max abs(weights), or ``at_most`` times
        max(weights, 0) - min(weights, 0).
        """
        low, high = int(self.weights.min()), int(self.weights.max())
        if at_most is not None:
            low, high = at_most * min(low, 0), at_most * max(high, 0)
        return high - low if check_neighbours(neighbours) == "replace" else max(abs(low), abs(high))


def question(asked: object, schema: Schema) -> Question:
    """What a text, a condition, or counts and sums of conditions ask of a table with this schema.

    Parameters
    ----------
    asked : str, Condition, Combination or Question
        Such as "age >= 65 & sex == 'f'", (col("age") >= 65) & (col("sex") == "f"), or count(...) - 0.5 * total("age").
    schema : Schema

    Raises
    ------
    Refusal
        When it cannot be read, names what is not in the schema, or asks for too much; in words that depend on question and schema alone.
    """
    if not isinstance(schema, Schema):
        raise Refusal('Questions are asked of a schema. Write for example Schema.of({"age": range(0, 100), "sex": ["f", "m"]}).')
    if isinstance(asked, Question):
        asked = asked.text
    meant = parse(str(asked)) if isinstance(asked, str) else asked
    if isinstance(meant, Condition):
        meant = count(meant)
    if not isinstance(meant, Combination):
        raise Refusal("A question is text, a condition, or counts and sums. Write for example \"age >= 65\" or count(col('age') >= 65).")
    return _question([*_gathered(_terms(meant, schema))], schema)


def questions_of(asked: object, schema: Schema) -> list[Question]:
    """One question or a list of them, read at once: looking at what was given may run somebody's code."""
    return [question(item, schema) for item in (list(asked) if isinstance(asked, list | tuple) else [asked])]


# ---------------------------------------------------------------- terms and weights


@dataclass(frozen=True)
class _Term:
    """A coefficient times the count of a region, or times the sum of a column over it."""

    coefficient: Fraction
    column: Column | None
    region: Region

    @property
    def text(self) -> str:
        where = "" if self.region is True else region_text(self.region)
        if self.column is None:
            return f"count({where})"
        return f"sum({name_text(self.column)}{', ' if where else ''}{where})"


def _terms(meant: Combination, schema: Schema) -> Iterator[_Term]:
    """The terms of counts and sums, with their conditions as regions of cells."""
    work = 0
    for factor, term in meant.terms:
        column = None if term.column is None else schema.column(term.column)
        if column is not None and column.kind != "numbers":
            level = True if column.kind == "truth" else column.levels[0]
            raise Refusal(
                f"{column.name} cannot be added up, because its levels are not whole numbers. "
                f"Write a count, such as count({name_text(column)} == {literal_text(level)})."
            )
        if term.where is not None:
            work += sum(schema.column(name).size for name in _compared_columns(term.where))
        if work > MOST_WORK:
            raise Refusal("This question compares columns of many levels too often. Write ranges, such as 18 <= age < 65, or ask in parts.")
        yield _Term(factor, column, True if term.where is None else normal_form(term.where, schema))


def _compared_columns(condition: Condition) -> Iterator[str]:
    if isinstance(condition, Opposite):
        yield from _compared_columns(condition.part)
    elif isinstance(condition, Several):
        for part in condition.parts:
            yield from _compared_columns(part)
    elif isinstance(condition, Compared | Among):
        yield condition.column


def _gathered(terms: Iterable[_Term]) -> Iterator[_Term]:
    """Terms with those of one text added up and those that are 0 left out: positive ones first, in the order of their text."""
    by_text: dict[str, _Term] = {}
    for term in terms:
        if term.region is not False:
            before = by_text[term.text].coefficient if term.text in by_text else 0
            by_text[term.text] = _Term(before + term.coefficient, term.column, term.region)
    ranked = [(term.coefficient < 0, text, term) for text, term in by_text.items() if term.coefficient != 0]
    yield from (term for _, _, term in sorted(ranked, key=lambda term: term[:2]))


def _question(terms: list[_Term], schema: Schema) -> Question:
    """The sum of terms as weights of cells, in lattice units as large as they can be."""
    divisor = lcm(*(term.coefficient.denominator for term in terms))
    # A decimal with 18 places divides 10**18, and 1/3 does not.
    if LARGEST_DIVISOR % divisor:
        raise Refusal("A coefficient must be a decimal number of up to 18 places. Write for example 0.5 * count(...).")
    touched = {name for term in terms for name in _touched(term)}
    columns = [column for column in schema.columns if column.name in touched]
    if prod(column.size for column in columns) > MOST_CELLS:
        raise Refusal(
            f"The question tells apart {' x '.join(f'{column.size:,}' for column in columns)} cells of"
            f" {', '.join(column.name for column in columns)}, and at most {MOST_CELLS:,} are kept. Ask about fewer"
            " columns at once, or declare fewer levels."
        )
    largest = sum(int(abs(term.coefficient) * divisor) * (_largest(term.column) if term.column else 1) for term in terms)
    if largest >= 2**62:
        raise Refusal(_too_heavy())
    weights = np.zeros([column.size for column in columns], dtype=np.int64)
    for term in terms:
        values = np.asarray(_indicator(term.region, columns), dtype=np.int64)
        if term.column is not None:
            values = values * _along(term.column.values, term.column, columns)
        weights += int(term.coefficient * divisor) * values
    names, weights = _needed([column.name for column in columns], weights)
    if int(np.abs(weights).max()) > LARGEST_WEIGHT:
        raise Refusal(_too_heavy())
    common = gcd(int(np.gcd.reduce(weights, axis=None)), divisor)
    weights = np.array(weights // common, order="C")
    weights.setflags(write=False)
    divisor //= common
    return Question(_sum_text(_fewest(names, weights, divisor, schema) or terms), tuple(names), weights, divisor)


def _fewest(names: list[str], weights: np.ndarray, divisor: int, schema: Schema) -> list[_Term] | None:
    """The one count that a question of at most one column amounts to, if it does: however it was written, it then has one text."""
    [*other] = set(np.unique(weights).tolist()) - {0}
    if len(names) > 1 or len(other) != 1:
        return None
    region = True if not names else region_of_column(schema.column(names[0]), weights != 0)
    return [_Term(Fraction(other[0], divisor), None, region)]


def _too_heavy() -> str:
    return (
        f"One record could add more than {LARGEST_WEIGHT} to the answer, counted in units of its smallest coefficient. "
        "Write coefficients with fewer digits, or declare smaller levels."
    )


def _largest(column: Column) -> int:
    return int(np.abs(column.values).max())


def _touched(term: _Term) -> set[str]:
    def names(region: Region) -> set[str]:
        if isinstance(region, bool):
            return set()
        return {region.column.name} if isinstance(region, Cells) else set().union(*map(names, region.parts))

    return names(term.region) | ({term.column.name} if term.column else set())


def _indicator(region: Region, columns: list[Column]) -> np.ndarray:
    """Where a region is, with an axis of length 1 for every column that does not matter to it."""
    if isinstance(region, bool):
        return np.full([1] * len(columns), region)
    if isinstance(region, Cells):
        return _along(region.cells, region.column, columns)
    join = np.logical_and if region.every else np.logical_or
    inside = _indicator(region.parts[0], columns)
    for part in region.parts[1:]:
        inside = join(inside, _indicator(part, columns))
    return inside


def _along(values: np.ndarray, column: Column, columns: list[Column]) -> np.ndarray:
    return values.reshape([-1 if other.name == column.name else 1 for other in columns])


def _needed(names: list[str], weights: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Names of columns and weights without the columns along which no weight changes."""
    for axis in reversed(range(len(names))):
        first = weights.take([0], axis=axis)
        if (weights == first).all():
            weights = first.squeeze(axis)
            names = names[:axis] + names[axis + 1 :]
    return names, weights


def _sum_text(terms: list[_Term]) -> str:
    if not terms:
        return "0 * count()"
    text = ""
    for term in terms:
        sign, size = ("-" if term.coefficient < 0 else "+"), abs(term.coefficient)
        product = term.text if size == 1 else f"{decimal_text(size)} * {term.text}"
        text += f" {sign} {product}" if text else f"-{product}" if sign == "-" else product
    return text
