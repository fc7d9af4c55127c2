"""What is public about a table: its columns and their cells. The language of questions stands after."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One public column; a value that is in no level counts in one extra cell, the last."""

    name: str
    levels: tuple
    edges: tuple[float, ...] = ()
    numbers: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """How many cells the column has."""
        return len(self.levels) + 1


@dataclass(frozen=True)
class Schema:
    """The public columns of a table."""

    columns: tuple[Column, ...]
