"""``Spread``: a table whose parts an engine holds. Functions are sent to the parts, and what they return comes back; no record does.

A frame must give the same records whenever it is read: from files, the memory of workers, or a checkpoint. What a user's own code is
still to compute could fail because of one record, which everybody would see, or put a record into another part when it is computed again.
Such tables are refused.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

type Place = Callable[[Any, int], np.ndarray]
"""Of some rows, by the column that says whose they are, in which of so many parts each counts: (rows,) integers."""


class Spread(ABC):
    """A table in parts, each of which is the same records whenever it is read. It says nothing of them, and cannot be copied or pickled.

    Attributes
    ----------
    columns : tuple of str
        Names of its columns, which are public.
    files : tuple of Path
        Its files, where every part is one; none otherwise.
    """

    columns: tuple[str, ...]
    files: tuple[Path, ...] = ()

    @property
    @abstractmethod
    def parts(self) -> int:
        """How many parts the table is in."""

    @abstractmethod
    def check(self, names: Sequence[str], look: Callable[[object, Sequence[str]], tuple[str, str]]) -> None:
        """Refuse what could fail when these columns are read, before anything is paid. No record is read.

        ``look`` says of a part, where it lies, which version of the package is there, and what stands against it.
        """

    @abstractmethod
    def rows(self, count: Callable[[object], int]) -> int:
        """The number of records, which ``count`` says of a part. Public under "replace" only."""

    @abstractmethod
    def results(self, function: Callable[..., bytes], names: Sequence[str], written: bytes) -> list[bytes]:
        """What ``function(chunks, part, written)`` returns for every part, at least once, where it lies; chunks are tables.

        What a lost worker has not handed back is computed again.
        """

    def by_person(self, key: str, place: "Place") -> "Spread | None":
        """The same records where rows of persons are protected together, ``key`` saying whose a row is; None where that is not offered.

        ``place`` says of some values of the key in which of so many parts each counts.

        A part then is one chunk, in which all rows are of those persons whose hash has the number of the part (``person_blocks.of_part``).
        Rows of others may be in it, and do not count.
        """
        return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.columns)})"

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled, because what is in it leads to records."""
        raise TypeError("A table of records cannot be copied or pickled.")


def version_here() -> str:
    """The version of this package in the process that asks."""
    from importlib.metadata import version

    return version("pymc_dp")


UNLIKE = "The workers could not look at their parts. Install pymc_dp {} where they run, and see that they can read what is there."
