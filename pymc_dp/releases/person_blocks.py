"""Which rows of a table count if all rows of a person are protected, block after block, in memory that does not grow with the table.

Which rows count is decided by a person's rows together, and these may lie anywhere. So rows are first dealt to buckets by the hash of
the person's name, as the numbers that are read of them, and then each bucket is looked at by itself. What is dealt stays in memory up to
``IN_MEMORY`` bytes, and beyond in a file that has no name, which is gone with the process.
"""

from collections.abc import Iterable, Iterator, Mapping
from tempfile import SpooledTemporaryFile, TemporaryFile
from typing import IO

import numpy as np

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.releases.persons import counted_rows
from pymc_dp.releases.stored import ROWS_AT_ONCE

WHOSE = "whose\0"
"""What in a block says whose the rows are, (rows, 2) uint64: no column has this name."""
BUCKETS = 256
"""Persons are dealt to so many, by the first byte of the hash of their names."""
IN_MEMORY = 2**26
"""In bytes."""
ROWS_TOGETHER = 2**19
"""So many rows are looked at together, in whole buckets."""


def check_temporary_folder() -> None:
    """See that a temporary file can be written, before anything is paid: a single row can decide whether one is needed.

    Raises
    ------
    Refusal
        When it cannot.
    """
    try:
        with TemporaryFile() as trial:
            trial.write(b"\0")
    except OSError:
        raise Refusal(
            "Rows of persons beyond 64 MB go to a temporary file, and none can be written. Make room for it, or name a folder on a disk"
            " with room: TMPDIR=/path/of/a/folder in the environment."
        ) from None


def blocks_that_count(blocks: Iterable[Mapping[str, np.ndarray]], at_most: int) -> Iterator[dict[str, np.ndarray]]:
    """Blocks of the rows that count, at most so many of every person: float64 of shape (rows,) for every column but ``WHOSE``.

    Rows, blocks and buckets may come in any order, because ``counted_rows`` looks at the rows of a person only, and a person is in one
    bucket.

    Parameters
    ----------
    blocks : iterable of mappings
        Of columns, (rows,) float64, and ``WHOSE``.
    at_most : int
    """
    with SpooledTemporaryFile(max_size=IN_MEMORY) as dealt:
        places: list[tuple[int, np.ndarray]] = []
        names: list[str] = []
        for block in blocks:
            names = sorted(block.keys() - {WHOSE})
            places.append(_deal(block, names, dealt))
        many = np.sum([counts for _, counts in places], axis=0, dtype=np.int64)
        for first, last in _together(many) if places else ():
            rows = _gathered(dealt, places, first, last, len(names) + 2)
            values = rows[:, 2:].view(np.float64)
            kept = values[counted_rows(np.ascontiguousarray(rows[:, :2]), at_most, [values])]
            for start in range(0, len(kept), ROWS_AT_ONCE):
                yield {name: np.ascontiguousarray(kept[start : start + ROWS_AT_ONCE, k]) for k, name in enumerate(names)}


def of_part(blocks: Iterable[Mapping[str, np.ndarray]], part: int, parts: int) -> Iterator[Mapping[str, np.ndarray]]:
    """Of blocks the rows of those persons who are in one of so many parts, from 0.

    The hash of a person's name decides which, and nothing else: every person is in one part, wherever the rows lie and whoever reads them.
    """
    for block in blocks:
        theirs = parts_of(block[WHOSE], parts) == part
        yield {name: values[theirs] for name, values in block.items()}


def parts_of(whose: np.ndarray, parts: int) -> np.ndarray:
    """In which of so many parts every row is counted: (N,) uint64."""
    return whose[:, 0] % np.uint64(parts)


def _deal(block: Mapping[str, np.ndarray], names: list[str], dealt: IO[bytes]) -> tuple[int, np.ndarray]:
    """Write the rows of somebody, bucket by bucket: where they begin, in bytes, and how many every bucket has."""
    rows = np.column_stack([block[WHOSE], *(block[name].astype(np.float64).view(np.uint64) for name in names)])
    rows = rows[(rows[:, :2] != 0).any(axis=1)]
    buckets = (rows[:, 0] >> np.uint64(56)).astype(np.int64)
    start = dealt.tell()
    dealt.write(rows[np.argsort(buckets, kind="stable")].tobytes())
    return start, np.bincount(buckets, minlength=BUCKETS)


def _together(many: np.ndarray) -> Iterator[tuple[int, int]]:
    """Runs of buckets, as many as have few rows together: the first, and the one after the last."""
    first, held = 0, 0
    for bucket, rows in enumerate(many.tolist()):
        if held and held + rows > ROWS_TOGETHER:
            yield first, bucket
            first, held = bucket, 0
        held += rows
    yield first, len(many)


def _gathered(dealt: IO[bytes], places: list[tuple[int, np.ndarray]], first: int, last: int, columns: int) -> np.ndarray:
    """The rows of a run of buckets, out of all blocks: (rows, columns) uint64."""
    parts = []
    for start, counts in places:
        before, rows = int(counts[:first].sum()), int(counts[first:last].sum())
        dealt.seek(start + 8 * columns * before)
        parts.append(np.frombuffer(dealt.read(8 * columns * rows), dtype=np.uint64).reshape(rows, columns))
    return np.concatenate(parts)
