"""Sets of cells of several columns, and the one text that stands for each of them."""

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np

from pymc_dp.queries.expressions import Literal
from pymc_dp.queries.grammar import RESERVED
from pymc_dp.queries.schema import Column, repr_of_edge


@dataclass(frozen=True)
class Cells:
    """Some cells of one column, neither none nor all: one byte each, 1 for those that are meant."""

    column: Column
    mask: bytes

    @property
    def cells(self) -> np.ndarray:
        """Whether each cell of the column is meant: bool, (size of the column,)."""
        return np.frombuffer(self.mask, dtype=bool)


@dataclass(frozen=True)
class Joined:
    """The intersection of several regions if ``every``, their union otherwise.

    Each column has at most one part that is ``Cells``, and these come first, in the order of the schema.
    """

    every: bool
    parts: "tuple[Cells | Joined, ...]"


Region = Cells | Joined | bool
"""Cells of several columns; True is all of them and False none."""


def region_of_column(column: Column, cells: np.ndarray) -> Region:
    """Cells of one column as a region: bool, (size of the column,)."""
    return bool(cells[0]) if (cells == cells[0]).all() else Cells(column, cells.tobytes())


# ---------- text


def region_text(region: Region) -> str:
    """The canonical text of a region."""
    if isinstance(region, bool):
        return str(region)
    if isinstance(region, Cells):
        return _cells_text(region)[0]
    if not region.every:
        return " | ".join(map(region_text, region.parts))
    return " & ".join(f"({region_text(part)})" if _is_disjunction(part) else region_text(part) for part in region.parts)


def _is_disjunction(region: Cells | Joined) -> bool:
    return _cells_text(region)[1] if isinstance(region, Cells) else not region.every


def _cells_text(region: Cells) -> tuple[str, bool]:
    """Cells of one column as text, and whether that is a disjunction."""
    column, cells = region.column, region.cells
    if cells[-1]:
        opposite, disjunction = _cells_text(Cells(column, (~cells).tobytes()))
        name = name_text(column)
        for yes, no in ((f"{name} == ", f"{name} != "), (f"{name} in ", f"{name} not in ")):
            if opposite.startswith(yes) and not disjunction:
                return no + opposite.removeprefix(yes), False
        return f"~({opposite})", False
    chosen = np.flatnonzero(cells[:-1])
    if column.kind in ("text", "truth"):
        return _list_text(column, [column.levels[k] for k in chosen]), False
    order = np.arange(len(column.levels)) if column.edges else np.argsort(column.values[:-1])
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    runs = np.split(ranks := np.sort(rank[chosen]), np.flatnonzero(np.diff(ranks) > 1) + 1)
    lone = [] if column.edges else [run for run in runs if len(run) < 3 and len(run) < len(order)]
    wide = [run for run in runs if len(run) >= 3 or column.edges or len(run) == len(order)]
    if len(runs) == 1 and len(runs[0]) > 1:
        lone, wide = [], runs
    parts = [_range_text(column, order, run) for run in wide]
    parts += [_list_text(column, [column.levels[order[k]] for run in lone for k in run])] if lone else []
    return " | ".join(parts), len(parts) > 1


def _range_text(column: Column, order: np.ndarray, run: np.ndarray) -> str:
    """Neighbouring levels as a range: from the first, up to what comes after the last."""

    def mark(rank: int) -> str:
        return repr_of_edge(column.edges[rank]) if column.edges else str(column.levels[order[rank]])

    first, after, name = int(run[0]), int(run[-1]) + 1, name_text(column)
    if after == len(order):
        return f"{name} >= {mark(first)}"
    return f"{name} < {mark(after)}" if first == 0 else f"{mark(first)} <= {name} < {mark(after)}"


def _list_text(column: Column, levels: list) -> str:
    if len(levels) == 1:
        return f"{name_text(column)} == {literal_text(levels[0])}"
    return f"{name_text(column)} in [{', '.join(map(literal_text, levels))}]"


def name_text(column: Column) -> str:
    """The name of a column as questions write it, between backticks where it is no plain word."""
    plain = column.name.isidentifier() and column.name not in RESERVED
    return column.name if plain else f"`{column.name}`"


def literal_text(value: Literal | int) -> str:
    """A literal as questions write it; long text is cut short."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        shown = value if len(value) <= 200 else value[:197] + "..."
        escaped = "'" + shown.replace("\\", "\\\\").replace("'", "\\'") + "'"
        return escaped if escaped.isprintable() else ascii(shown)
    return decimal_text(Fraction(value))


def decimal_text(number: Fraction) -> str:
    """A number as a plain decimal, exactly where it has up to 60 digits."""
    quotient = Context(prec=60).divide(Decimal(number.numerator), Decimal(number.denominator))
    text = format(quotient, "f") if -30 < quotient.adjusted() < 30 else str(quotient)
    return text.rstrip("0").rstrip(".") if "." in text and "E" not in text else text
