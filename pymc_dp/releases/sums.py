"""Sums of whole numbers over records, per cell: exact, and so the same in any order and in blocks of any size.

Doubles hold every whole number up to 2**53 in size. Where the absolute values of all terms of a sum add up to no more than that, every
partial sum, of any of the terms in any order, is such a number, and no addition rounds: not in BLAS either, whatever order it adds in,
and whether or not it multiplies and adds in one step. Longer sums go through doubles in blocks, and the blocks add up as Python's integers.
"""

from collections.abc import Sequence

import numpy as np

EXACT_DOUBLE = 2**53
IN_CACHE = 2**15
"""Records that are looked at together, so that what is computed on the way stays in the cache, and calls do not count."""

MOST_BITS = 4
"""What takes so many bits is counted faster by bits, of 64 records at once, than record by record."""


def totals(codes: np.ndarray, statistic: np.ndarray, cells: int, norm: int) -> np.ndarray:
    """Sums (cells,) of a statistic of every record, as Python integers.

    Parameters
    ----------
    codes : (N,) int ndarray
        The cell of every record.
    statistic : (N,) ndarray
        Whole numbers as int64 or float64, each at most ``norm`` in size.
    cells : int
    norm : int
    """
    block = max(EXACT_DOUBLE // max(norm, 1), 1)
    total = np.zeros(cells, dtype=object)
    for start in range(0, len(codes), block):
        part = slice(start, start + block)
        # Whole numbers whose sum is below 2**53 in size: the same by integers and by doubles.
        sums = [statistic[part].sum()] if cells == 1 else np.bincount(codes[part], weights=statistic[part], minlength=cells)
        total = total + whole(sums)
    return total


def counts(codes: np.ndarray, cells: int) -> np.ndarray:
    """How often every code from 0 to ``cells`` - 1 occurs: int64 of shape (cells,). No other may occur."""
    if bits_of(cells) > MOST_BITS:
        return np.bincount(codes, minlength=cells)
    bits = Bits([cells], len(codes), IN_CACHE)
    for start in range(0, len(codes), IN_CACHE):
        bits.put(0, start, codes[start : start + IN_CACHE].astype(np.int8, copy=False))
    return bits.counts()


class Bits:
    """Bits of several columns of levels from 0 on, those of eight records in a byte: how often levels occur together is read off them.

    Parameters
    ----------
    levels : sequence of int
        How many levels every column has: at most 2**7.
    records : int
    piece : int
        So many records are put here at once, except the last of them.
    """

    def __init__(self, levels: Sequence[int], records: int, piece: int) -> None:
        self.levels, self.records, self.piece = tuple(levels), records, piece
        self._many = [bits_of(many) for many in levels]
        width = -(-records // piece) * -(-piece // 8) if records > piece else -(-records // 8)
        self._planes = np.zeros((sum(self._many), -(-width // 8) * 8), dtype=np.uint8)

    def put(self, column: int, start: int, places: np.ndarray) -> None:
        """The levels of a piece of records, int8, that begins at ``start``; a byte that is not filled up holds zeros."""
        lowest, at = sum(self._many[column + 1 :]), start // self.piece * -(-self.piece // 8)
        for bit in range(self._many[column]):
            packed = np.packbits(places if self._many[column] == 1 else places & np.int8(1 << bit))
            self._planes[lowest + bit, at : at + len(packed)] = packed

    def counts(self) -> np.ndarray:
        """How often all combinations of levels occur, int64, those of the last column next to each other.

        Of any bits it is counted how many records have all of them. Of these, those that lack another bit are the ones that do not have it
        as well, one bit after the other.
        """
        words, every = self._planes.view(np.uint64), len(self._planes)
        found = np.full(2**every, self.records, dtype=np.int64)
        having: dict[int, np.ndarray] = {}
        for pattern in range(1, 2**every):
            last = pattern.bit_length() - 1
            rest = pattern ^ (1 << last)
            having[pattern] = words[last] & having[rest] if rest else words[last]
            found[pattern] = np.bitwise_count(having[pattern]).sum(dtype=np.int64)
        for bit in range(every):
            by_bit = found.reshape(-1, 2, 2**bit)
            by_bit[:, 0] -= by_bit[:, 1]
        table = found.reshape([2**many for many in self._many])
        return table[tuple(slice(many) for many in self.levels)].ravel()


def bits_of(levels: int) -> int:
    """How many bits tell so many levels apart."""
    return (levels - 1).bit_length()


def product_totals(columns: np.ndarray, entries: Sequence[tuple[int, int]], codes: np.ndarray, cells: int, largest: int) -> np.ndarray:
    """Sums (K, cells) of products of two columns, as Python integers.

    A product is at most ``largest``**2 in size, so that a block of 2**53 // largest**2 records adds up exactly, by BLAS too; for columns of
    up to 2**15 these are 2**23 records. Blocks are long and cells are few, or the other way round: which way is taken decides on time only.

    Parameters
    ----------
    columns : (P, N) float64 ndarray
        Whole numbers, each at most ``largest`` in size.
    entries : sequence of (int, int)
        K places (i, j), i <= j.
    codes : (N,) int ndarray
    cells : int
    largest : int
    """
    block = max(EXACT_DOUBLE // largest**2, 1)
    rows, at = [i for i, _ in entries], [j for _, j in entries]
    total = np.zeros((len(entries), cells), dtype=object)
    for start in range(0, columns.shape[1], block):
        part, of = columns[:, start : start + block], codes[start : start + block]
        if cells == 1:
            total[:, 0] = total[:, 0] + whole(_products(part, entries)[rows, at])
        elif cells * len(columns) * _CALL < len(entries) * len(of):
            for cell, members in _by_cell(of, cells):
                total[:, cell] = total[:, cell] + whole(_products(np.take(part, members, axis=1), entries)[rows, at])
        else:
            for k, (i, j) in enumerate(entries):
                total[k] = total[k] + whole(np.bincount(of, weights=part[i] * part[j], minlength=cells))
    return total


FEW_COLUMNS = 5
"""So many columns are multiplied faster one after the other than all at once."""

_CALL = 400
"""How many records ``np.bincount`` adds up while one product of a matrix with a vector is asked for."""


def _by_cell(codes: np.ndarray, cells: int) -> list[tuple[int, np.ndarray]]:
    """The cells that have records, and which they are."""
    order = np.argsort(codes.astype(np.int16) if cells <= 2**15 else codes, kind="stable")  # of 16 bits by counting, not by comparing
    ends = np.cumsum(np.bincount(codes, minlength=cells))
    return [(cell, order[end - many : end]) for cell, (end, many) in enumerate(zip(ends, np.diff(ends, prepend=0))) if many]


def _products(columns: np.ndarray, entries: Sequence[tuple[int, int]]) -> np.ndarray:
    """Sums (P, P) of products of columns (P, N), as doubles; of what is none of the entries some may be 0."""
    if len(columns) > FEW_COLUMNS:
        return columns @ columns.T
    first = {i: min(j for k, j in entries if k == i) for i in {i for i, _ in entries}}
    products = np.zeros((len(columns), len(columns)))
    for i, j in first.items():
        products[i, j:] = columns[j:] @ columns[i]
    return products


def whole(sums: object) -> np.ndarray:
    """Python's integers, of whole numbers that are below 2**63 in size."""
    return np.asarray(sums).astype(np.int64).astype(object)
