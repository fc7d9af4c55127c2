"""One update of a chain: the scores of what it may choose, in integers, and the state after it. Prices stand beside, sweeps after."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.random import Generator
from pytensor.graph.basic import Variable

from pymc_dp.mechanisms import LARGEST_SUM
from pymc_dp.posterior.drawn import NAT
from pymc_dp.posterior.grid import NEVER
from pymc_dp.posterior.kernel import Block, Held, Kernel, State
from pymc_dp.posterior.reach import height_in, member_of, range_of
from pymc_dp.posterior.records import AT_ONCE, codes_of, log_likelihood
from pymc_dp.rowwise import Ranges
from pymc_dp.statistics import of_type

FORBIDDEN = -(LARGEST_SUM // 2)
"""The score of what the prior does not allow."""


def held_of(kernel: Kernel, exact: Mapping[Variable, np.ndarray]) -> Held:
    """The records, and the log-likelihood of each as a function of the state."""
    each = None if kernel.whole is not None else log_likelihood(kernel.rows, exact)
    return Held(exact, each, None if kernel.open is None else log_likelihood(kernel.open, exact))


def _standing(kernel: Kernel, latents: Sequence[np.ndarray]) -> dict[Variable, np.ndarray]:
    """What stands for the latents, in the types of their placeholders."""
    pairs = zip(kernel.latents, latents, strict=True)
    return {variable: of_type(value, variable) for one, value in pairs for variable in one.inputs}


def scores(kernel: Kernel, block: Block, state: State, held: Held) -> np.ndarray:
    """Of every option of every choice of a block, at a state: (rows, options) int64.

    The records' part is a sum of integers, each within its bounds; the rest, which rests on no record, is rounded as a whole.
    """
    return asked(kernel, block, state, held) + _in_units(kernel, free(kernel, block, state, held))


def _in_units(kernel: Kernel, own: np.ndarray) -> np.ndarray:
    """Log-densities as integers: the largest of a choice is 0, and what has none is all but never chosen."""
    own = np.where(np.isfinite(own), own, -np.inf)
    most = own.max(axis=1, keepdims=True)
    apart = np.maximum(own - np.where(np.isfinite(most), most, 0.0), -NEVER)
    return np.where(np.isfinite(own), np.rint(kernel.temper * NAT * apart), FORBIDDEN).astype(np.int64)


def free(kernel: Kernel, block: Block, state: State, held: Held) -> np.ndarray:
    """Log-densities (rows, options) but for the records' part: of the prior, and of latents given the unknowns."""
    if block.latent is not None:
        if held.open is None:
            return np.zeros((block.rows, block.options))
        return np.stack([
            np.broadcast_to(held.open(state.numbers[None], _standing(kernel, _with(state, block.latent, level))), (1, block.rows))[0]
            for level in range(block.options)
        ], axis=1)  # fmt: skip
    several = [block] if block.rows == 1 else [replace(block, places=(place,)) for place in block.places]
    result = np.stack([kernel.prior(numbers_of(kernel, one, state)) for one in several])
    if held.open is not None:  # of several places, it rests on none: see ``_blocks``
        told = held.open(numbers_of(kernel, block, state), _standing(kernel, state.latents))
        result = result + np.broadcast_to(told, (block.options, kernel.public.many)).sum(axis=1)
    return result if block.shared is None else np.where(_taken_up(kernel, block, state) < 0, -np.inf, result)


def _with(state: State, latent: int, level: int) -> list[np.ndarray]:
    """All latents, one of them at this level for all records."""
    return [np.full_like(value, level) if k == latent else value for k, value in enumerate(state.latents)]


def numbers_of(kernel: Kernel, block: Block, state: State) -> np.ndarray:
    """The state (G, P) with a block's numbers at each point of their grids, or as they are and as proposed."""
    if block.proposed is not None:
        numbers = np.tile(state.numbers, (2, 1))
        numbers[1, list(block.places)] = block.proposed[list(block.places)]
        return numbers
    numbers = np.tile(state.numbers, (kernel.grids.shape[1], 1))
    numbers[:, block.places] = kernel.grids[list(block.places)].T
    if block.shared is not None:
        left = _taken_up(kernel, block, state)
        numbers[:, block.shared] = kernel.grids[block.shared, left]
        numbers[left < 0] = state.numbers
    return numbers


def _taken_up(kernel: Kernel, block: Block, state: State) -> np.ndarray:
    """Where on its grid the number is that takes up what another loses, for each point (G,) of that one's; -1 where there is none."""
    assert block.shared is not None
    pair, points = [block.places[0], block.shared], kernel.grids.shape[1]
    at = [int(np.abs(kernel.grids[place] - state.numbers[place]).argmin()) for place in pair]
    return np.maximum(sum(at) - np.arange(points), -1)


def asked(kernel: Kernel, block: Block, state: State, held: Held) -> np.ndarray:
    """The records' part of the scores: (rows, options) int64."""
    if not block.eta:
        return np.zeros((block.rows, block.options), dtype=np.int64)
    if block.latent is not None:
        numbers = state.numbers[None, kernel.own]
        several = [_with(state, block.latent, level) for level in range(block.options)]
        if kernel.whole is None:
            return np.stack([_clipped(kernel, held, numbers, latents, kernel.unreferred)[0] for latents in several], axis=1)
        table = _checked(kernel, block, _table(kernel, numbers))
        return np.stack([table[_codes(kernel, held, latents), 0] for latents in several], axis=1)
    numbers = numbers_of(kernel, block, state)[:, kernel.own]
    if kernel.whole is not None:
        table = _checked(kernel, block, _table(kernel, numbers))
        counts = np.bincount(_codes(kernel, held, state.latents), minlength=len(table))
        member = member_of(kernel, block, np.indices([len(one.levels or ()) for one in kernel.entries]).reshape(len(kernel.entries), -1))
        return np.stack([np.where(member == k, counts, 0) @ table for k in range(block.rows)])
    parts = _clipped(kernel, held, numbers, state.latents, kernel.bounds)
    if block.index is None:
        return parts.sum(axis=1)[None]
    member = np.rint({**held.exact, **_standing(kernel, state.latents)}[block.index]).astype(int) % block.rows
    return np.stack([parts[:, member == k].sum(axis=1) for k in range(block.rows)])


def total(kernel: Kernel, state: State, held: Held, height: int) -> int:
    """The log-likelihood of all records at a state, in units of 1 / NAT: one record moves it by ``height`` at most."""
    numbers = state.numbers[None, kernel.own]
    if kernel.whole is None:
        return int(_clipped(kernel, held, numbers, state.latents, kernel.unreferred).sum())
    table = _table(kernel, numbers)
    if height_in(kernel, table) > height:
        raise RuntimeError("log-likelihoods differ by more than what was paid for")
    return int(table[_codes(kernel, held, state.latents), 0].sum())


def _table(kernel: Kernel, numbers: np.ndarray) -> np.ndarray:
    """Log-likelihoods (V, G) of all records that can occur, at states (G, Q) on the grid: those that were looked at for the price."""
    assert kernel.whole is not None
    low, high = kernel.grids[kernel.own, 0], kernel.grids[kernel.own, -1]
    at = np.rint((numbers - low) / (high - low) * (kernel.grids.shape[1] - 1)).astype(int)
    return kernel.whole[(slice(None), *at.T)]


def _checked(kernel: Kernel, block: Block, table: np.ndarray) -> np.ndarray:
    """The table of all records at a state, whose range is what was paid for: it does not rest on the records that are there."""
    if range_of(kernel, block, table[:, None, None, :]) > block.eta:
        raise RuntimeError("the range of scores is larger than what was paid for")
    return table


def _codes(kernel: Kernel, held: Held, latents: Sequence[np.ndarray]) -> np.ndarray:
    return codes_of(list(kernel.entries), {**held.exact, **_standing(kernel, latents)}, kernel.public.many)


def _clipped(kernel: Kernel, held: Held, numbers: np.ndarray, latents: Sequence[np.ndarray], bounds: Sequence[Ranges]) -> np.ndarray:
    """Every record's part (G, N) in integers, clipped to its bounds: what is no number becomes the least."""
    assert held.each is not None
    N, standing = kernel.public.many, _standing(kernel, latents)
    levels = [one.levels for one in kernel.latents]
    combined = np.ravel_multi_index(latents, levels) if levels else np.zeros(N, dtype=int)
    reference = np.zeros(N)
    for k, one in enumerate(bounds):
        if one.reference is not None and (combined == k).any():
            reference = np.where(combined == k, held.each(one.reference[None], standing)[0], reference)
    ends = [one.at(numbers) for one in bounds]
    low, high = (np.stack([np.rint(NAT * pair[side]) for pair in ends], axis=1) for side in range(2))
    assert np.isfinite([low, high]).all()
    parts, each = [], max(AT_ONCE // max(N, 1), 1)
    for start in range(0, len(numbers), each):
        part = slice(start, start + each)
        found = NAT * (np.broadcast_to(held.each(numbers[part], standing), (len(numbers[part]), N)) - reference)
        found = np.rint(np.nan_to_num(found, nan=-np.inf, posinf=np.inf, neginf=-np.inf))
        parts.append(np.clip(found, low[part][:, combined], high[part][:, combined]).astype(np.int64))
    return np.concatenate(parts)


def moved(kernel: Kernel, block: Block, state: State, choices: np.ndarray) -> State:
    """The state after an update."""
    if block.latent is not None:
        return replace(state, latents=tuple(choices if k == block.latent else one for k, one in enumerate(state.latents)))
    numbers = state.numbers.copy()
    if block.proposed is not None:
        gone = np.broadcast_to(choices == 1, len(block.places))
        return replace(state, numbers=np.where(np.isin(np.arange(len(numbers)), np.array(block.places)[gone]), block.proposed, numbers))
    numbers[list(block.places)] = kernel.grids[list(block.places), choices]
    if block.shared is not None:
        numbers[block.shared] = kernel.grids[block.shared, _taken_up(kernel, block, state)[choices[0]]]
    return replace(state, numbers=numbers)


def tossed(own: np.ndarray, rng: Generator) -> np.ndarray:
    """One option of every choice, with probabilities in proportion to exp(own): for what rests on no record."""
    own = np.where(np.isfinite(own), own, -np.inf)
    most = own.max(axis=1, keepdims=True)
    weights = np.where(np.isfinite(most), np.exp(own - np.where(np.isfinite(most), most, 0.0)), 1.0)
    sums = np.cumsum(weights, axis=1)
    return (sums <= rng.random((len(own), 1)) * sums[:, -1:]).sum(axis=1)
