"""How results are shown: text of 80 columns that wraps, and HTML that reads well on light and on dark pages."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import fields
from fractions import Fraction
from html import escape
from inspect import signature
from textwrap import fill, wrap
from typing import Any

import numpy as np

WIDTH = 80
"""Columns of a terminal."""
GAP = 2
MOST_SHOWN = 12
"""Lists with more entries are cut."""
DATE = re.compile(r"\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d")
NARROW = 8
"""A column is not made narrower by breaking words."""
STYLE = (
    "<style>"
    ".pymc-dp{max-width:60em;overflow-x:auto}"
    ".pymc-dp table{border-collapse:collapse;margin:.4em 0}"
    ".pymc-dp th,.pymc-dp td{text-align:left;vertical-align:top;padding:.25em .9em .25em .4em;background:transparent;"
    "border:0;border-bottom:1px solid rgba(128,128,128,.35)}"
    ".pymc-dp thead th{border-bottom:2px solid rgba(128,128,128,.7)}"
    ".pymc-dp tbody th{white-space:nowrap;font-weight:600}"
    ".pymc-dp .first{border-left:4px solid #e07b00;background:rgba(224,123,0,.14);padding:.4em .8em;margin:.4em 0}"
    ".pymc-dp p{margin:.4em 0}"
    ".pymc-dp .date{white-space:nowrap}"
    "</style>"
)
"""No colour of text and no opaque background, so that those of the page stay: lines and boxes are half transparent."""


def wrapped(text: str, first: str = "", rest: str = "  ") -> str:
    """Lines of at most 80 columns; a word that is longer stays whole."""
    return fill(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False)


def as_written(thing: Any) -> str:
    """How a dataclass is shown: as one would write it, without what is at its default. Long lists are cut in the middle.

    Examples
    --------
    >>> from pymc_dp.privacy.accounting import Cost
    >>> as_written(Cost(Fraction(1, 2), rho=Fraction(1, 8)))
    'Cost(epsilon=0.5, rho=0.125)'
    """
    arguments = signature(type(thing)).parameters
    told = [(field, _value(getattr(thing, field.name))) for field in fields(thing) if field.repr and field.init]
    needed = {name for name, argument in arguments.items() if argument.default is argument.empty}
    parts = [f"{field.name}={value}" for field, value in told if field.name in needed or value != _value(field.default)]
    return wrapped(f"{type(thing).__name__}({', '.join(parts)})")


def _value(value: object) -> str:
    """A value as one would write it."""
    match value:
        case np.ndarray() | np.generic():
            return _value(value.tolist())
        case Fraction() | float():
            number = float(value)
            return str(int(number)) if number.is_integer() and abs(number) < 1e16 else repr(number)
        case list() | tuple():
            entries = [_value(entry) for entry in value]
            if len(entries) > MOST_SHOWN:
                entries[MOST_SHOWN // 2 : -1] = [f"... {len(entries) - MOST_SHOWN // 2 - 1:,} more ..."]
            return f"[{', '.join(entries)}]"
        case dict():
            return "{" + ", ".join(f"{key!r}: {_value(one)}" for key, one in value.items()) + "}"
    return repr(value)


def counted(many: int, what: str) -> str:
    """A number of things: "1 part", "2,000 parts"."""
    return f"{many:,} {what}{'' if many == 1 else 's'}"


def listed(names: Sequence[str], what: str, most: int = 8) -> str:
    """The first of these names, and how many there are if there are more."""
    return ", ".join(names[:most]) + (f", ... ({len(names):,} {what})" if len(names) > most else "")


def sentences(notes: Iterable[tuple[str, str]], first: str = "", rest: str = "  ") -> list[str]:
    """Notes, each with its title, wrapped."""
    return [wrapped(f"{title}: {text}" if title else text, first, rest) for title, text in notes]


def aligned(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A table for people, in columns that fit into 80: those that are too wide wrap.

    Examples
    --------
    >>> print(aligned(("name", "epsilon"), [("a", "1"), ("b", "0.5")]))
    name  epsilon
    ----  -------
    a     1
    b     0.5
    """
    rows = [tuple(header), *(tuple(line) for line in body)]
    widths = _widths(rows)
    lines = [part for row in rows for part in _lines(row, widths)]
    lines.insert(len(_lines(rows[0], widths)), (" " * GAP).join("-" * width for width in widths).rstrip())
    return "\n".join(lines)


def _widths(rows: Sequence[tuple[str, ...]]) -> list[int]:
    """Widths of columns: of their text where all fit. Else titles give way, to two lines or to one word a line: whichever is less high."""
    words = [max((len(word) for cell in column for word in cell.split()), default=1) for column in zip(*rows, strict=True)]
    two = [max(word, _in_two_lines(title)) for word, title in zip(words, rows[0], strict=True)]
    return min(
        (_narrowed(rows, titles, words) for titles in (two, words)), key=lambda widths: sum(len(_lines(row, widths)) for row in rows)
    )


def _narrowed(rows: Sequence[tuple[str, ...]], titles: Sequence[int], words: Sequence[int]) -> list[int]:
    """Widths of columns of which the widest give way: first in titles, as far as these may, then between words, then within words."""
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    whole = [max([least, *map(len, column[1:])]) for least, column in zip(titles, columns, strict=True)]
    for least in (whole, titles, words, [min(word, NARROW) for word in words]):
        while sum(widths) + GAP * (len(widths) - 1) > WIDTH:
            wide = [k for k, width in enumerate(widths) if width > least[k]]
            if not wide:
                break
            widths[max(wide, key=lambda k: widths[k])] -= 1
    return widths


def _in_two_lines(title: str) -> int:
    """The least width at which a title takes two lines."""
    words = title.split()
    return min((max(len(" ".join(words[:k])), len(" ".join(words[k:]))) for k in range(1, len(words))), default=len(title))


def _lines(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """A row of a table in as many lines as its longest cell takes."""
    cells = [wrap(cell, max(width, 1), break_on_hyphens=False) or [""] for cell, width in zip(row, widths, strict=True)]
    return [
        (" " * GAP).join((cell[k] if k < len(cell) else "").ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
        for k in range(max(map(len, cells)))
    ]


def in_html(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A table as HTML, for a notebook."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    rows = "".join("<tr>" + "".join(f"<td>{_whole_dates(escape(cell))}</td>" for cell in line) + "</tr>" for line in body)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _whole_dates(html: str) -> str:
    """Dates and times of the day, which have hyphens and blanks, stay on a line each."""
    return DATE.sub(r"<span class='date'>\g<0></span>", html)


def notes_in_html(notes: Iterable[tuple[str, str]]) -> str:
    """Notes as a table of titles and texts."""
    rows = "".join(f"<tr><th>{escape(title)}</th><td>{escape(text)}</td></tr>" for title, text in notes)
    return f"<table><tbody>{rows}</tbody></table>" if rows else ""


def first_in_html(notes: Iterable[tuple[str, str]]) -> str:
    """What has to be done first, in a box."""
    lines = "".join(f"<p><b>{escape(title)}</b>: {escape(text)}</p>" for title, text in notes)
    return f"<div class='first'>{lines}</div>" if lines else ""


def page(*parts: str) -> str:
    """All of it, with how it looks."""
    return f"{STYLE}<div class='pymc-dp'>{''.join(parts)}</div>"
