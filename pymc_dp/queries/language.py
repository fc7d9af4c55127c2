"""A question and a schema -> the integer that a record of each cell adds to the answer. No record is needed for any of it.

A condition is a set of cells, so it has two values and no third: a record in the extra cell of ``age`` (it is missing, or no level) does
not meet ``age >= 65``, and does meet ``~(age >= 65)`` and ``age != 65``. Text and Python objects (``grammar``, ``expressions``) that mean
the same become the same ``Question``, with one canonical text.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from math import ceil, floor, gcd, lcm, prod

import numpy as np

from pymc_dp.privacy.accounting import Refusal, check_neighbours
from pymc_dp.queries.expressions import Among, Combination, Compared, Condition, Every, Literal, Opposite, Several, count
from pymc_dp.queries.grammar import RESERVED, parse
from pymc_dp.queries.schema import MOST_CELLS, Column, Schema, repr_of_edge

LARGEST_WEIGHT = 2**31 - 1
"""Of one record, in lattice units: so the exact answer of up to 2**31 records stays below 2**62, as ``mechanisms`` needs."""

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

    def sensitivity(self, neighbours: str) -> int:
        """How far one record moves the exact answer at most, in lattice units; attained.

        A record is in exactly one cell j, whatever it holds, and adds weights[j]. One record more or less ("add_remove") therefore moves
        the sum by weights[j], at most max abs(weights); one record exchanged for another ("replace") by weights[i] - weights[j], at most
        max(weights) - min(weights). Every cell, the extra ones included, is where some record would be, so both are attained.
        (XX12, Lemma 2.1, and docs/theory.md for "replace".)
        """
        low, high = int(self.weights.min()), int(self.weights.max())
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


# ---------------------------------------------------------------- conditions in their normal form


@dataclass(frozen=True)
class _Cells:
    """Some cells of one column, neither none nor all: one byte each, 1 for those that are meant."""

    column: Column
    mask: bytes

    @property
    def cells(self) -> np.ndarray:
        return np.frombuffer(self.mask, dtype=bool)


@dataclass(frozen=True)
class _Joined:
    """Every one of several regions, or at least one: at most one of single cells a column, in the order of the schema."""

    every: bool
    parts: "tuple[_Cells | _Joined, ...]"


_Region = _Cells | _Joined | bool
"""Cells of several columns; True is all of them and False none."""


def _normal(condition: Condition, schema: Schema, kept: bool = True) -> _Region:
    """A condition, or its opposite, as a region."""
    if isinstance(condition, Opposite):
        return _normal(condition.part, schema, not kept)
    if isinstance(condition, Several):
        return _joined(isinstance(condition, Every) == kept, [_normal(part, schema, kept) for part in condition.parts], schema)
    assert isinstance(condition, Compared | Among)
    column = schema.column(condition.column)
    cells = _compared(column, condition) if isinstance(condition, Compared) else _among(column, condition.values)
    return _simple(column, cells if kept else ~cells)


def _simple(column: Column, cells: np.ndarray) -> _Region:
    return bool(cells[0]) if (cells == cells[0]).all() else _Cells(column, cells.tobytes())


def _joined(every: bool, regions: Iterable[_Region], schema: Schema) -> _Region:
    """The intersection or the union: of one column at once, all others once each and in order."""
    single: dict[str, np.ndarray] = {}
    others: dict[str, _Joined] = {}
    for region in _flat(every, regions):
        if isinstance(region, bool):
            if region != every:
                return region
        elif isinstance(region, _Cells):
            name, cells = region.column.name, region.cells
            single[name] = cells if name not in single else single[name] & cells if every else single[name] | cells
        else:
            others[_spelled(region)] = region
    parts: list[_Cells | _Joined] = []
    for name in sorted(single, key=schema.names.index):
        region = _simple(schema.column(name), single[name])
        if isinstance(region, bool):
            if region != every:
                return region
        else:
            parts.append(region)
    parts += [others[text] for text in sorted(others)]
    return every if not parts else parts[0] if len(parts) == 1 else _Joined(every, tuple(parts))


def _flat(every: bool, regions: Iterable[_Region]) -> Iterator[_Region]:
    for region in regions:
        if isinstance(region, _Joined) and region.every == every:
            yield from region.parts
        else:
            yield region


def _compared(column: Column, one: Compared) -> np.ndarray:
    if one.comparison in ("==", "!="):
        cells = _among(column, (one.value,))
        return cells if one.comparison == "==" else ~cells
    if column.kind == "bins":
        levels = _bins(column, one)
    elif column.kind == "numbers" and isinstance(one.value, Fraction):
        number, numbers = one.value, column.values[:-1]
        low, high = max(floor(number), -(2**60)), min(ceil(number), 2**60)
        low, high = min(low, 2**60), max(high, -(2**60))
        levels = {"<": numbers < high, "<=": numbers <= low, ">": numbers > low, ">=": numbers >= high}[one.comparison]
    else:
        raise Refusal(
            f"{column.name} cannot be compared by {one.comparison} with {_literal(one.value)}, because {column.described()}. "
            f"Write {_name(column)} == {_literal(column.levels[0])}, or {_name(column)} in [...]."
        )
    if not levels.any():
        raise Refusal(
            f"Nothing in {column.name} is {one.comparison} {_literal(one.value)}: {column.described()}. "
            "Write a smaller or larger number; values that are no level count in the extra cell."
        )
    return np.append(levels, False)


def _bins(column: Column, one: Compared) -> np.ndarray:
    """The bins on one side of an edge; an edge belongs to the bin that begins there."""
    edge = _nearest(one.value) if isinstance(one.value, Fraction) else None
    if edge not in column.edges or one.comparison not in ("<", ">="):
        raise Refusal(
            f"{column.name} is known by its bins only, and {one.comparison} {_literal(one.value)} would cut through one. "
            f"Write < or >= with one of its edges: {column.described()}."
        )
    k = column.edges.index(edge)
    above = np.arange(len(column.levels)) >= k
    return above if one.comparison == ">=" else ~above


def _among(column: Column, values: tuple[Literal, ...]) -> np.ndarray:
    cells = np.zeros(column.size, dtype=bool)
    for value in values:
        wanted = {"numbers": Fraction, "truth": bool, "text": str, "bins": str}[column.kind]
        # A fraction equals, and hashes as, the whole number that it is.
        if not isinstance(value, wanted) or value not in column.places:
            raise Refusal(
                f"{_literal(value)} is no level of {column.name}: {column.described()}. "
                + (f"Write < and >= with its edges, such as {_name(column)} >= {repr_of_edge(column.edges[0])}." if column.edges else "")
                + ("" if column.edges else f"Write for example {_name(column)} == {_literal(column.levels[0])}.")
            )
        cells[column.places[value]] = True  # type: ignore[index]  # see above
    return cells


def _nearest(number: Fraction) -> float | None:
    try:
        return float(number)
    except OverflowError:
        return None


# ---------------------------------------------------------------- terms and weights


@dataclass(frozen=True)
class _Term:
    """A coefficient times the count of a region, or times the sum of a column over it."""

    coefficient: Fraction
    column: Column | None
    region: _Region

    @property
    def text(self) -> str:
        where = "" if self.region is True else _spelled(self.region)
        if self.column is None:
            return f"count({where})"
        return f"sum({_name(self.column)}{', ' if where else ''}{where})"


def _terms(meant: Combination, schema: Schema) -> Iterator[_Term]:
    work = 0
    for factor, term in meant.terms:
        column = None if term.column is None else schema.column(term.column)
        if column is not None and column.kind != "numbers":
            level = True if column.kind == "truth" else column.levels[0]
            raise Refusal(
                f"{column.name} cannot be added up, because its levels are not whole numbers. "
                f"Write a count, such as count({_name(column)} == {_literal(level)})."
            )
        if term.where is not None:
            work += sum(schema.column(name).size for name in _compared_columns(term.where))
        if work > MOST_WORK:
            raise Refusal("This question compares columns of many levels too often. Write ranges, such as 18 <= age < 65, or ask in parts.")
        yield _Term(factor, column, True if term.where is None else _normal(term.where, schema))


def _compared_columns(condition: Condition) -> Iterator[str]:
    if isinstance(condition, Opposite):
        yield from _compared_columns(condition.part)
    elif isinstance(condition, Several):
        for part in condition.parts:
            yield from _compared_columns(part)
    elif isinstance(condition, Compared | Among):
        yield condition.column


def _gathered(terms: Iterable[_Term]) -> Iterator[_Term]:
    """Terms of one text together, those that are 0 left out; positive ones first, by their text."""
    by_text: dict[str, _Term] = {}
    for term in terms:
        if term.region is not False:
            before = by_text[term.text].coefficient if term.text in by_text else 0
            by_text[term.text] = _Term(before + term.coefficient, term.column, term.region)
    left = [(term.coefficient < 0, text, term) for text, term in by_text.items() if term.coefficient != 0]
    yield from (term for _, _, term in sorted(left, key=lambda one: one[:2]))


def _question(terms: list[_Term], schema: Schema) -> Question:
    divisor = lcm(*(term.coefficient.denominator for term in terms))
    # A decimal with 18 places divides 10**18, and 1/3 does not.
    if LARGEST_DIVISOR % divisor:
        raise Refusal("A coefficient must be a decimal number of up to 18 places. Write for example 0.5 * count(...).")
    touched = {name for term in terms for name in _touched(term)}
    columns = [column for column in schema.columns if column.name in touched]
    if prod(column.size for column in columns) > MOST_CELLS:
        raise Refusal(
            f"The question tells apart {' x '.join(str(column.size) for column in columns)} cells of {', '.join(c.name for c in columns)}, "
            f"and at most {MOST_CELLS} are kept. Ask about fewer columns at once, or declare fewer levels."
        )
    largest = sum(int(abs(term.coefficient) * divisor) * (_largest(term.column) if term.column else 1) for term in terms)
    if largest >= 2**62:
        raise Refusal(_too_heavy())
    weights = np.zeros([column.size for column in columns], dtype=np.int64)
    for term in terms:
        one = np.asarray(_indicator(term.region, columns), dtype=np.int64)
        if term.column is not None:
            one = one * _along(term.column.values, term.column, columns)
        weights += int(term.coefficient * divisor) * one
    names, weights = _needed([column.name for column in columns], weights)
    if int(np.abs(weights).max()) > LARGEST_WEIGHT:
        raise Refusal(_too_heavy())
    common = gcd(int(np.gcd.reduce(weights, axis=None)), divisor)
    weights = np.array(weights // common, order="C")
    weights.setflags(write=False)
    divisor //= common
    return Question(_sum(_fewest(names, weights, divisor, schema) or terms), tuple(names), weights, divisor)


def _fewest(names: list[str], weights: np.ndarray, divisor: int, schema: Schema) -> list[_Term] | None:
    """The one count that a question of at most one column amounts to, if it does: however it was written, it then has one text."""
    [*other] = set(np.unique(weights).tolist()) - {0}
    if len(names) > 1 or len(other) != 1:
        return None
    region = True if not names else _simple(schema.column(names[0]), weights != 0)
    return [_Term(Fraction(other[0], divisor), None, region)]


def _too_heavy() -> str:
    return (
        f"One record could add more than {LARGEST_WEIGHT} to the answer, counted in units of its smallest coefficient. "
        "Write coefficients with fewer digits, or declare smaller levels."
    )


def _largest(column: Column) -> int:
    return int(np.abs(column.values).max())


def _touched(term: _Term) -> set[str]:
    def names(region: _Region) -> set[str]:
        if isinstance(region, bool):
            return set()
        return {region.column.name} if isinstance(region, _Cells) else set().union(*map(names, region.parts))

    return names(term.region) | ({term.column.name} if term.column else set())


def _indicator(region: _Region, columns: list[Column]) -> np.ndarray:
    """Where a region is, with an axis of length 1 for every column that does not matter to it."""
    if isinstance(region, bool):
        return np.full([1] * len(columns), region)
    if isinstance(region, _Cells):
        return _along(region.cells, region.column, columns)
    join = np.logical_and if region.every else np.logical_or
    found = _indicator(region.parts[0], columns)
    for part in region.parts[1:]:
        found = join(found, _indicator(part, columns))
    return found


def _along(values: np.ndarray, column: Column, columns: list[Column]) -> np.ndarray:
    return values.reshape([-1 if each.name == column.name else 1 for each in columns])


def _needed(names: list[str], weights: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Without the columns along which nothing changes."""
    for axis in reversed(range(len(names))):
        first = weights.take([0], axis=axis)
        if (weights == first).all():
            weights = first.squeeze(axis)
            names = names[:axis] + names[axis + 1 :]
    return names, weights


# ---------------------------------------------------------------- canonical text


def _sum(terms: list[_Term]) -> str:
    if not terms:
        return "0 * count()"
    said = ""
    for term in terms:
        sign, size = ("-" if term.coefficient < 0 else "+"), abs(term.coefficient)
        one = term.text if size == 1 else f"{_decimal(size)} * {term.text}"
        said += f" {sign} {one}" if said else f"-{one}" if sign == "-" else one
    return said


def _spelled(region: _Region) -> str:
    if isinstance(region, bool):
        return str(region)
    if isinstance(region, _Cells):
        return _spelled_cells(region)[0]
    if not region.every:
        return " | ".join(map(_spelled, region.parts))
    return " & ".join(f"({_spelled(part)})" if _loose(part) else _spelled(part) for part in region.parts)


def _loose(region: _Cells | _Joined) -> bool:
    return _spelled_cells(region)[1] if isinstance(region, _Cells) else not region.every


def _spelled_cells(region: _Cells) -> tuple[str, bool]:
    """Cells of one column as text, and whether that is a disjunction."""
    column, cells = region.column, region.cells
    if cells[-1]:
        told, loose = _spelled_cells(_Cells(column, (~cells).tobytes()))
        name = _name(column)
        for yes, no in ((f"{name} == ", f"{name} != "), (f"{name} in ", f"{name} not in ")):
            if told.startswith(yes) and not loose:
                return no + told.removeprefix(yes), False
        return f"~({told})", False
    chosen = np.flatnonzero(cells[:-1])
    if column.kind in ("text", "truth"):
        return _listed(column, [column.levels[k] for k in chosen]), False
    order = np.arange(len(column.levels)) if column.edges else np.argsort(column.values[:-1])
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    runs = np.split(ranks := np.sort(rank[chosen]), np.flatnonzero(np.diff(ranks) > 1) + 1)
    lone = [] if column.edges else [run for run in runs if len(run) < 3 and len(run) < len(order)]
    wide = [run for run in runs if len(run) >= 3 or column.edges or len(run) == len(order)]
    if len(runs) == 1 and len(runs[0]) > 1:
        lone, wide = [], runs
    parts = [_run(column, order, run) for run in wide]
    parts += [_listed(column, [column.levels[order[k]] for run in lone for k in run])] if lone else []
    return " | ".join(parts), len(parts) > 1


def _run(column: Column, order: np.ndarray, run: np.ndarray) -> str:
    """Neighbouring levels as a range: from the first, up to what comes after the last."""

    def mark(rank: int) -> str:
        return repr_of_edge(column.edges[rank]) if column.edges else str(column.levels[order[rank]])

    first, after, name = int(run[0]), int(run[-1]) + 1, _name(column)
    if after == len(order):
        return f"{name} >= {mark(first)}"
    return f"{name} < {mark(after)}" if first == 0 else f"{mark(first)} <= {name} < {mark(after)}"


def _listed(column: Column, levels: list) -> str:
    if len(levels) == 1:
        return f"{_name(column)} == {_literal(levels[0])}"
    return f"{_name(column)} in [{', '.join(map(_literal, levels))}]"


def _name(column: Column) -> str:
    plain = column.name.isidentifier() and column.name not in RESERVED
    return column.name if plain else f"`{column.name}`"


def _literal(value: Literal | int) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        shown = value if len(value) <= 200 else value[:197] + "..."
        escaped = "'" + shown.replace("\\", "\\\\").replace("'", "\\'") + "'"
        return escaped if escaped.isprintable() else ascii(shown)
    return _decimal(Fraction(value))


def _decimal(number: Fraction) -> str:
    """A number as a plain decimal, exactly where it has up to 60 digits."""
    quotient = Context(prec=60).divide(Decimal(number.numerator), Decimal(number.denominator))
    told = format(quotient, "f") if -30 < quotient.adjusted() < 30 else str(quotient)
    return told.rstrip("0").rstrip(".") if "." in told and "E" not in told else told
