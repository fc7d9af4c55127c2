"""A value of a DuckDB table as SQL: as the nearest floating-point number, or as bytes of text. Only its type and the value itself
decide, and nothing fails.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from pymc_dp.families.values import LONGEST_SPELLED, LONGEST_VALUE, OF_BITS, READ, TRUTHS
from pymc_dp.releases.headers import check_database
from pymc_dp.releases.stored import ROWS_AT_ONCE

_SHORT = {"tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint", "float", "double", "boolean"}
"""Types that DuckDB turns into the nearest double."""

_WHOLE = _SHORT - {"float", "double"}
"""Types of which a database counts equal values: whole numbers and truth values."""

MOST_COMBINATIONS = 2**16
"""Combinations of values, from the least to the largest of every column, up to which a database counts rows."""

ROOM = 64 * 2**20
"""Bytes that have to be free for every thread of a database before it counts rows: several times what so many groups take."""

_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}

_LONG = {"decimal", "hugeint", "uhugeint"}
"""Types that DuckDB turns into the nearest double by way of text only."""


def number_of(name: str, kind: str) -> str | None:
    """A stored number as the nearest double, NULL where it is none; None where the type holds no numbers."""
    if kind in _SHORT:
        return f"CAST({name} AS DOUBLE)"
    if kind == "bignum":  # a long one takes the square of its digits to be written; beyond these it is no double
        ends = (f"CAST('{sign}1{'0' * 309}' AS BIGNUM)" for sign in ("-", ""))
        return f"CASE WHEN {name} BETWEEN {' AND '.join(ends)} THEN TRY_CAST(CAST({name} AS VARCHAR) AS DOUBLE) END"
    return f"TRY_CAST(CAST({name} AS VARCHAR) AS DOUBLE)" if kind in _LONG else None


def text_of(name: str, kind: str) -> str | None:
    """The bytes of a stored text, NULL where it is too long to be a level or a number; None where the type holds no text."""
    if kind not in ("varchar", "enum", "blob"):
        return None
    # Bytes need not be text; of those that are not plain ASCII, and so spell no number, the cast makes escapes.
    stored = name if kind == "blob" else f"encode(CAST({name} AS VARCHAR))"
    size = f"octet_length({name})" if kind == "blob" else f"strlen(CAST({name} AS VARCHAR))"
    return f"CASE WHEN {size} <= {LONGEST_VALUE} THEN {stored} END"


def spelled_in(text: str) -> str:
    """The number that the bytes of a text are to those who read files of text (``number_in``), as a double; NULL where they are none.

    A cast of bytes to text writes what is no plain character by its code, and so a tab, which is a blank here.
    """
    written, several = f"CAST({text} AS VARCHAR)", "|".join([READ, OF_BITS, *TRUTHS])
    shown = rf"lower(trim(replace({written}, '\x09', ' ')))"
    said = [(truth, ", ".join(as_text(word) for word in TRUTHS if TRUTHS[word] == truth)) for truth in (0.0, 1.0)]
    words = " ".join(f"WHEN {shown} IN ({those}) THEN {truth}" for truth, those in said)
    bits = f"WHEN starts_with({shown}, '0x') OR starts_with({shown}, '0b') THEN CAST(TRY_CAST({shown} AS BIGINT) AS DOUBLE)"
    any_of_them = f"regexp_full_match({written}, {as_text(rf'{BLANKS}({several}){BLANKS}')}, 'i')"
    return (
        f"CASE WHEN octet_length({text}) > {LONGEST_SPELLED} THEN NULL"
        f" WHEN regexp_full_match({written}, {as_text(MOSTLY)}) THEN TRY_CAST({written} AS DOUBLE)"
        f" WHEN {any_of_them} THEN CASE {words} {bits} ELSE coalesce(TRY_CAST({shown} AS DOUBLE), {_TOO_SMALL.format(shown)}) END END"
    )


MOSTLY = r"-?[0-9]+(\.[0-9]*)?"
"""As most numbers are spelled, which are looked for first: that takes a fifth of the time."""
BLANKS = r"( |\\x09)*"
"""Around what is read, as a database writes bytes."""
_TOO_SMALL = "CASE WHEN contains({}, 'e-') THEN 0.0 END"
"""What no double is because it is too small; what is too large is NULL, or infinite, which is no level either."""


def quoted(name: str) -> str:
    """The name of a column, as SQL."""
    return '"' + name.replace('"', '""') + '"'


def as_text(text: str) -> str:
    """Text, as SQL."""
    return "'" + text.replace("'", "''") + "'"


def counted_in(relation: Any, names: Sequence[str]) -> Any | None:
    """Distinct rows of columns, as a table of Arrow like the batches of ``columns_in``, with how many there are of each in ``times``.

    None where a column holds others than whole numbers and truth values, where these lie so far apart that there could be more than
    ``MOST_COMBINATIONS`` rows, where there may be no room for these (``_has_room``), and where DuckDB shows a bar or writes down what it is
    asked (``_tells``): rows are then read one by one, with the same sums. Which it is can rest on one record, and so can how long it takes,
    as with any release; nothing else does. So many groups fit into memory, and none is written to a disk.
    """
    kinds = {name: kind.id for name, kind in zip(relation.columns, relation.types, strict=True)}
    if not {kinds[name] for name in names} <= _WHOLE:
        return None
    check_database(relation)
    if _tells(relation) or not _has_room(relation):
        return None
    ends = relation.aggregate(", ".join(f"min({quoted(name)}), max({quoted(name)})" for name in names)).fetchall()[0]
    if prod(2 if least is None else int(most) - int(least) + 2 for least, most in zip(ends[::2], ends[1::2])) > MOST_COMBINATIONS:
        return None
    read = ", ".join(f"{number_of(quoted(name), kinds[name])} AS value{axis}" for axis, name in enumerate(names))
    return relation.aggregate(f"{read}, count(*) AS times", ", ".join(map(quoted, names))).to_arrow_table()


def _tells(relation: Any) -> bool:
    """Whether a database shows a bar while it answers, or writes down what it is asked."""
    query = "SELECT current_setting('enable_progress_bar') OR coalesce(current_setting('log_query_path'), '') <> ''"
    return bool(relation.query("records_of_pymc_dp", query).fetchall()[0][0])


def _has_room(relation: Any) -> bool:
    """Whether a database has the memory for ``MOST_COMBINATIONS`` groups in every thread, besides what it cannot let go of.

    Where it has not, counting could fail, or write to a disk, which reading row by row does not.
    """
    asked = (
        "SELECT current_setting('memory_limit'), current_setting('threads'), (SELECT sum(memory_usage_bytes) FROM duckdb_memory()"
        " WHERE tag <> 'BASE_TABLE'), (SELECT count(*) FROM duckdb_settings() WHERE name = 'operator_memory_limit' AND value <> '')"
    )
    [[limit, threads, taken, limited]] = relation.query("records_of_pymc_dp", asked).fetchall()
    number, unit = limit.split()
    return not limited and float(number) * _UNITS.get(unit, 0) - int(taken) >= ROOM * int(threads)


def columns_in(relation: Any, names: Sequence[str], key: str | None = None) -> Iterator[Any]:
    """Columns of a table as record batches of doubles, null where there is no number, or of the bytes of texts; and one of names."""
    check_database(relation)
    kinds = {name: kind.id for name, kind in zip(relation.columns, relation.types, strict=True)}
    read = [f"{_read(quoted(name), kinds[name])} AS value{axis}" for axis, name in enumerate(names)]
    read += [] if key is None else [f"{name_of(key, kinds[key])} AS whose"]
    yield from batches_from(relation.project(", ".join(read)))


def batches_from(relation: Any) -> Iterator[Any]:
    """The rows of a relation as record batches of Arrow, which a database makes one after the other."""
    stream = relation.to_arrow_reader if hasattr(relation, "to_arrow_reader") else relation.fetch_record_batch  # its name before DuckDB 2
    yield from stream(ROWS_AT_ONCE)


def _read(name: str, kind: str) -> str:
    return number_of(name, kind) or text_of(name, kind) or "CAST(NULL AS DOUBLE)"


def name_of(key: str, kind: str) -> str:
    """The name of whose a row is, as SQL: a number, or the bytes of a text. Whole numbers that Arrow does not have are their digits."""
    name = quoted(key)
    if kind in ("uuid", "hugeint", "uhugeint"):
        return f"encode(CAST({name} AS VARCHAR))"
    return text_of(name, kind) or (name if kind in _SHORT | {"decimal"} else "CAST(NULL AS INTEGER)")
