"""How far one record can move the scores of an update. Everything that reads the records is priced by it.

Where all records that can occur are few, all pairs of them are compared at all states; where they are not, their parts are
clipped to bounds. Nothing here reads a record.
"""

from collections.abc import Sequence
from itertools import combinations, product
from math import prod

import numpy as np

from pymc_dp.plans.ranges import Ranges
from pymc_dp.posterior.densities import MOST_PAIRS
from pymc_dp.posterior.paid_gibbs.kernel import Block, Kernel, Part
from pymc_dp.posterior.price import NAT

MOST_COMPARED = 2**26
"""Up to so many pairs of records, at two states each, are looked at one by one."""


def sensitivities_of(kernel: Kernel, block: Block) -> tuple[int, ...]:
    """How far a record can move a block's scores, for every part, in units of 1 / NAT: ``Block.sensitivities``."""
    return tuple(
        0 if not part.touches(block) else (_by_bounds if part.whole is None else _by_listing)(kernel, part, block) for part in kernel.parts
    )


def _ends(bounds: Ranges) -> list[tuple[int, int]]:
    """To which integers parts are clipped, in every box: exact ones, because differences of large doubles are rounded."""
    return [(int(least), int(most)) for least, most in zip(np.rint(NAT * bounds.least), np.rint(NAT * bounds.most), strict=True)]


def _widest(several: Sequence[Ranges]) -> int:
    """The largest distance between the ends of any of them."""
    return max(most - least for bounds in several for least, most in _ends(bounds))


def _by_bounds(kernel: Kernel, part: Part, block: Block) -> int:
    """The sensitivity where records' parts are clipped.

    At any state two records differ by at most the widest bounds, of either sign, so the range of their difference is at most twice that.
    Where a record may leave one number and come to another, each of the two adds its own range; and where it may leave one site and come to
    another, or read another state there, the bounds of all states are taken together.
    """
    bounds = part.unreferred if block.latent is not None else part.bounds
    moves = block.index is not None and block.index not in kernel.visible
    if moves or any(kernel.latents[k].hidden for k in part.latents):
        ends = [end for state_bounds in bounds for end in _ends(state_bounds)]
        return max(2 * (max(most for _, most in ends) - min(least for least, _ in ends)), 1)
    return max(2 * _widest(bounds), 1)


def _by_listing(kernel: Kernel, part: Part, block: Block) -> int:
    """The sensitivity over all pairs of records that can occur and agree in what is visible, at all states: see ``score_sensitivity``."""
    assert part.whole is not None
    whole, points, Q = part.whole, kernel.grids.shape[1], len(part.places)
    inside = [k for k in range(Q) if part.places[k] in block.places]
    axes = [0, *(k + 1 for k in range(Q) if k not in inside), *(k + 1 for k in inside)]
    shaped = np.transpose(whole, axes).reshape(len(whole), -1, *[points] * len(inside))
    if len(inside) > 1 and block.index is not None:  # a record reads one of several numbers: all are given the same place
        shaped = shaped[(slice(None), slice(None), *(np.arange(points),) * len(inside))]  # type: ignore[arg-type]
    if block.width:
        return max(_of_moves(kernel, part, block, shaped), 1)
    return max(score_sensitivity(kernel, part, block, shaped.reshape(*shaped.shape[:2], 1, -1)), 1)


def _of_moves(kernel: Kernel, part: Part, block: Block, table: np.ndarray) -> int:
    """The range of a choice between two states that a step can lie between.

    A move and the move back have the same range, so half of them are looked at. Where there are too many, all states are taken for
    options of one choice: no two of them are further apart.

    Parameters
    ----------
    table : (V, R, *points) int64 ndarray
        Log-likelihoods of all records that can occur, at all states of the rest, over the grids of what moves.
    """
    V, R, *grid = table.shape
    moves = [h for h in product(*[range(-block.width, block.width + 1)] * len(grid)) if h > (0,) * len(grid)]
    if min(V, MOST_PAIRS) * table.size * len(moves) > MOST_COMPARED:
        return score_sensitivity(kernel, part, block, table.reshape(V, R, 1, -1))

    def choices(some: np.ndarray, move: tuple[int, ...]) -> np.ndarray:
        before = tuple(slice(max(-h, 0), length - max(h, 0)) for h, length in zip(move, grid, strict=True))
        after = tuple(slice(max(h, 0), length - max(-h, 0)) for h, length in zip(move, grid, strict=True))
        ends = [some[(slice(None), slice(None), *place)] for place in (before, after)]
        return np.stack([end.reshape(V, some.shape[1], -1) for end in ends], axis=-1)

    if block.index is None:
        return max(score_sensitivity(kernel, part, block, choices(table, move)) for move in moves)
    # A record that comes to another number meets another move there: all are looked at together, for some states of the rest at a time.
    at_once = max(2**22 // (V * grid[0] * len(moves)), 1)
    several = [table[:, start : start + at_once] for start in range(0, R, at_once)]
    return max(score_sensitivity(kernel, part, block, np.concatenate([choices(some, move) for move in moves], axis=2)) for some in several)


def score_sensitivity(kernel: Kernel, part: Part, block: Block, table: np.ndarray) -> int:
    """The largest range, over the options of a block, of the difference of neighbours' scores, from what all records add.

    The largest over pairs of records that agree in what is visible. Of several numbers, a record that is replaced by one that reads
    another adds its own range to that of the other, and so does one that may leave a site and come to another, be it the same otherwise;
    as do all, at most, where there are too many pairs to look at.

    Parameters
    ----------
    kernel : Kernel
    part : Part
        It has a table of all records.
    block : Block
    table : (V, R, M, G) int64 ndarray
        Log-likelihoods of all records that can occur, at some states of the rest, over M choices and the options of each; (V, R, 1, 1)
        where the options are a latent's levels.
    """
    digits = digits_of(part)
    if block.latent is not None:
        latent = kernel.latents[block.latent]
        its = [k for k, entry in enumerate(part.entries) if entry.variable in latent.inputs]
        same = [np.flatnonzero((digits[its] == level).all(axis=0)) for level in range(latent.levels)]
        table, digits = np.stack([table[codes, ..., 0] for codes in same], axis=-1), digits[:, same[0]]
        if latent.hidden:
            return 2 * int(np.ptp(table, axis=-1).max())
    groups = _groups(kernel, part, digits)
    member = member_of(part, block, digits)
    moves = block.index is not None and block.index not in kernel.visible
    largest = 0
    for group in np.unique(groups):
        records, which = table[groups == group], member[groups == group]
        ranges_of = np.ptp(records, axis=-1).max(axis=-1)
        if len(records) > MOST_PAIRS:
            twice = 2 * int(ranges_of.max())
            largest = max(largest, twice if moves else min(twice, 2 * int(np.ptp(records, axis=0).max())))
            continue
        for i, j in combinations(range(len(records)), 2):
            apart = moves and which[i] != which[j]
            moved = ranges_of[i] + ranges_of[j] if apart else np.ptp(records[i] - records[j], axis=-1).max(axis=-1)
            largest = max(largest, int(moved.max()))
    return largest


def log_likelihood_sensitivity(kernel: Kernel, part: Part) -> int:
    """How far a record can move a part of the log-likelihood of all records at a state: C, in units of 1 / NAT."""
    if part.whole is None:
        return _widest(part.unreferred)
    return sensitivity_at(kernel, part, part.whole)


def sensitivity_at(kernel: Kernel, part: Part, table: np.ndarray) -> int:
    """How far a record can move a part at the states of a table (V, ...) of all records: the largest difference of two of them that
    agree in what is visible.
    """
    groups = _groups(kernel, part, digits_of(part))
    return max(int(np.ptp(table[groups == group], axis=0).max()) for group in np.unique(groups))


def digits_of(part: Part) -> np.ndarray:
    """Which level each entry has in each record that can occur: (entries, V)."""
    lengths = [len(entry.levels or ()) for entry in part.entries]
    return np.indices(lengths).reshape(len(lengths), prod(lengths))


def _groups(kernel: Kernel, part: Part, digits: np.ndarray) -> np.ndarray:
    """Which records that can occur agree in what is visible, as neighbours do: (V,), the same number where they do."""
    seen = [k for k, entry in enumerate(part.entries) if entry.variable in kernel.visible]
    return np.unique(digits[seen], axis=1, return_inverse=True)[1].ravel() if seen else np.zeros(digits.shape[1], dtype=int)


def member_of(part: Part, block: Block, digits: np.ndarray) -> np.ndarray:
    """Which of the block's numbers each record that can occur reads: (V,)."""
    for k, entry in enumerate(part.entries):
        if entry.variable is block.index:
            assert entry.levels is not None
            return np.array(entry.levels, dtype=int)[digits[k]] % len(block.places)
    assert block.index is None
    return np.zeros(digits.shape[1], dtype=int)
