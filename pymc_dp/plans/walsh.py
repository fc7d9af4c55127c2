"""The transform between a table of counts and its Fourier coefficients, and what depends on the shape of the table only.

A level of a variable with K levels is written in ceil(log2 K) bits; where K is no power of two, some codes are unused.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from math import prod

import numpy as np

MOST_ENTRIES = 2**22
"""The largest table that is made to find the exact sensitivity; beyond it an upper bound takes its place."""


def bits_of(shape: Sequence[int]) -> int:
    """How many bits tell the entries of a table of this shape apart."""
    return sum((levels - 1).bit_length() for levels in shape)


def weight_of(shape: Sequence[int]) -> int:
    """The growth of every entry of a table with the empty coefficient: the number of codes of variables that leave some unused."""
    return prod(2 ** bits_of([levels]) for levels in shape if levels < 2 ** bits_of([levels]))


def divisor_of(shape: Sequence[int]) -> int:
    """One count, in units of a table made of coefficients: all codes, times the levels of variables that leave some unused."""
    return 2 ** bits_of(shape) * prod(levels for levels in shape if levels < 2 ** bits_of([levels]))


def inflation_of(shape: Sequence[int]) -> float:
    """Variance of the noise on a count, beside 2^-bits times that on a coefficient: what unused codes add to it.

    Of a table of one variable they add to all counts alike, which moves their sum only, and that is known.
    """
    return _of_unused(shape) if len(shape) > 1 else 1.0


def variance_of(shape: Sequence[int], known: bool) -> float:
    """The exact variance of the noise on a count over that on a coefficient; ``known`` if the empty coefficient is, and has none."""
    empty = 1 / prod(shape)
    return _of_unused(shape) / 2 ** bits_of(shape) - known * empty**2


def _of_unused(shape: Sequence[int]) -> float:
    """The factor on the variance of noise on coefficients when the counts of unused codes are given to the used ones."""
    return prod(1 + (2 ** bits_of([levels]) - levels) / levels**2 for levels in shape)


def walsh(table: np.ndarray) -> np.ndarray:
    """The Walsh-Hadamard transform along every axis, of lengths that are powers of two: its own inverse times the size."""
    for axis, length in enumerate(table.shape):
        for step in (2**k for k in range(length.bit_length() - 1)):
            pairs = np.moveaxis(table, axis, -1).reshape(*np.delete(table.shape, axis), length // (2 * step), 2, step)
            first, second = pairs[..., 0, :], pairs[..., 1, :]
            turned = np.stack([first + second, first - second], axis=-2)
            table = np.moveaxis(turned.reshape(*np.delete(table.shape, axis), length), -1, axis)
    return table


def largest_sum(factors: list[tuple[tuple[int, ...], np.ndarray]], lengths: Mapping[int, int]) -> int | None:
    """The largest value of a sum of tables over variables they share, by eliminating one variable after another.

    None where a table of more than MOST_ENTRIES entries would be needed.
    """
    left = set(lengths)
    while left:
        scopes = {k: sorted(set().union({k}, *(scope for scope, _ in factors if k in scope))) for k in left}
        sizes = {k: prod(lengths[other] for other in scopes[k]) for k in left}
        _, variable = min((sizes[k], k) for k in left)
        if sizes[variable] > MOST_ENTRIES:
            return None
        wanted = tuple(scopes[variable])
        mine = [_spread(scope, table, wanted, lengths) for scope, table in factors if variable in scope]
        total = reduce(np.add, mine, np.zeros([lengths[k] for k in wanted], dtype=np.int64))
        factors = [(scope, table) for scope, table in factors if variable not in scope]
        factors.append((tuple(k for k in wanted if k != variable), total.max(axis=wanted.index(variable))))
        left.remove(variable)
    return sum(int(table) for _, table in factors)


def _spread(scope: tuple[int, ...], table: np.ndarray, wanted: tuple[int, ...], lengths: Mapping[int, int]) -> np.ndarray:
    """A table over some variables, as one over more: both in increasing order."""
    return np.broadcast_to(table.reshape([lengths[k] if k in scope else 1 for k in wanted]), [lengths[k] for k in wanted])
