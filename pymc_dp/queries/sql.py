"""The cell of a value, as SQL: the type of a column and its schema decide how it is read, and never its values."""

from itertools import pairwise

from pymc_dp.queries.schema import Column
from pymc_dp.releases.duck import number_of, spelled_in, text_of


def number_and_text(column: Column, name: str, kind: str) -> tuple[str, str]:
    """A stored value as SQL, twice: as the nearest double, and as the bytes of its text, which no collation compares in its own way.

    Either is NULL where the value is none or where it is not asked for; a value that is neither is in the extra cell.
    """
    number, text = number_of(name, kind), text_of(name, kind)
    if text is None:
        return number or "NULL", "NULL"
    if column.kind != "text":
        return spelled_in(text), "NULL"
    return spelled_in(text) if column.points else "NULL", text


def cell_of(column: Column, number: str, text: str | None, starts: list[int]) -> str:
    """The cell of a value that was read, as SQL."""
    other = str(column.size - 1)
    if column.kind == "bins":
        return _binned(column, number, starts)
    if column.kind == "numbers" and all(low + 1 == high for low, high in pairwise(column.numbers)):
        low, high = (_double(end) for end in (column.numbers[0], column.numbers[-1]))
        inside = f"{number} >= {low} AND {number} <= {high} AND {number} = trunc({number})"
        return f"CASE WHEN {inside} THEN coalesce(TRY_CAST({number} - {low} AS INTEGER), {other}) ELSE {other} END"
    cell = _looked_up(number, {repr(point): k for point, k in column.points.items()}, "CAST({} AS DOUBLE)", other)
    if text is None:
        return cell
    numbers = set(column.points.values())
    words = {_bytes(level): k for k, level in enumerate(column.levels) if k not in numbers}
    return _looked_up(text, words, "from_hex({})", cell)


def _looked_up(value: str, cells: dict[str, int], spelled: str, otherwise: str) -> str:
    """The cell of a value among those listed; by a hash join with one long text, so that a list may be long."""
    if not cells:
        return otherwise
    listed, places = (f"unnest(string_split('{','.join(map(str, entries))}', ','))" for entries in (cells, cells.values()))
    return (
        f"coalesce((SELECT l.k FROM (SELECT {spelled.format(listed)} AS v, CAST({places} AS INTEGER) AS k) AS l WHERE l.v = {value}), "
        f"{otherwise})"
    )


def _binned(column: Column, number: str, starts: list[int]) -> str:
    """The bin of a number, by halving; bins between which no question tells are taken for the first of them."""

    def halved(low: int, high: int) -> str:
        if low == high:
            return str(starts[low])
        middle = (low + high + 1) // 2
        edge = _double(column.edges[starts[middle]])
        return f"CASE WHEN {number} < {edge} THEN {halved(low, middle - 1)} ELSE {halved(middle, high)} END"

    inside = f"{number} >= {_double(column.edges[0])} AND {number} < {_double(column.edges[-1])}"
    return f"CASE WHEN {inside} THEN {halved(0, len(starts) - 1)} ELSE {column.size - 1} END"


def _bytes(text: object) -> str:
    """Text as the digits of its bytes, which are compared as they are, whatever the collation."""
    return str(text).encode().hex()


def _double(number: float) -> str:
    """A number as SQL: text, because a decimal literal would have a type of its own."""
    return f"CAST('{number!r}' AS DOUBLE)"
