"""One update of a chain: the scores of what it may choose, in integers, and the state after it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.random import Generator
from pytensor.graph.basic import Variable

from pymc_dp.plans.ranges import Ranges
from pymc_dp.posterior.densities import NEVER
from pymc_dp.posterior.paid_gibbs.kernel import Block, Held, Kernel, Part, State
from pymc_dp.posterior.paid_gibbs.sensitivity import digits_of, member_of, score_sensitivity, sensitivity_at
from pymc_dp.posterior.price import NAT
from pymc_dp.posterior.records import AT_ONCE, codes_of, log_likelihood
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.mechanisms import LARGEST_SUM
from pymc_dp.releases.statistics import of_type

CLOSE = 1e-6
"""How well the prior of states must agree with what is read of it."""
FORBIDDEN = -(LARGEST_SUM // 2)
"""The score of what the prior does not allow."""


def held_of(kernel: Kernel, exact: Mapping[Variable, np.ndarray]) -> Held:
    """The records, and the log-likelihood of each as a function of the state."""
    by_part = tuple(log_likelihood(part.rows, exact) if part.whole is None else None for part in kernel.parts)
    sites = tuple(None if latent.sites is None else latent.sites.of_records(exact, kernel.public.many) for latent in kernel.latents)
    return Held(exact, by_part, None if kernel.open is None else log_likelihood(kernel.open, exact), sites)


def _of_records(held: Held, latents: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What every record has of the latents: (N,) each."""
    return [values if places is None else values[places] for values, places in zip(latents, held.sites, strict=True)]


def _placeholder_values(kernel: Kernel, held: Held, latents: Sequence[np.ndarray]) -> dict[Variable, np.ndarray]:
    """What stands for the latents, in the types of their placeholders."""
    pairs = zip(kernel.latents, _of_records(held, latents), strict=True)
    return {variable: of_type(value, variable) for latent, value in pairs for variable in latent.inputs}


def rounds_of(kernel: Kernel, block: Block) -> tuple[np.ndarray, ...]:
    """Which choices of a block are independent of each other given all else, and so are made together: places, one array a round."""
    sites = None if block.latent is None else kernel.latents[block.latent].sites
    return (np.arange(block.rows),) if sites is None else sites.rounds


def scores_in_rounds(kernel: Kernel, block: Block, state: State, held: Held, picked: Sequence[int]) -> Iterator[np.ndarray]:
    """The scores (options,) of one choice after the other, round by round; ``picked`` grows as choices are made.

    What the records say of a site rests on no other site, so they are read once: a record is part of one row, or of two where it moves.
    """
    records, before = records_part(kernel, block, state, held), 0
    for places in rounds_of(kernel, block):
        yield from (records + in_units(kernel, prior_part(kernel, block, state, held)))[places]
        state = _in_part(kernel, block, state, places, picked[before : before + len(places)])
        before += len(places)


def _in_part(kernel: Kernel, block: Block, state: State, places: np.ndarray, choices: Sequence[int]) -> State:
    """The state after one round of the choices of a block."""
    if block.latent is None or len(places) == block.rows:
        return state
    latent = state.latents[block.latent].copy()
    latent[places] = choices
    return state_after(kernel, block, state, latent)


def sampled_in_rounds(kernel: Kernel, block: Block, state: State, held: Held, rng: Generator) -> np.ndarray:
    """Options of every choice of a block that rests on no record, round by round."""
    choices = np.zeros(block.rows, dtype=np.int64)
    for places in rounds_of(kernel, block):
        choices[places] = sampled_options(prior_part(kernel, block, state, held)[places], rng)
        state = _in_part(kernel, block, state, places, choices[places])
    return choices


def in_units(kernel: Kernel, log_p: np.ndarray) -> np.ndarray:
    """Log-densities as integers: the largest of a choice is 0, and what has none is all but never chosen."""
    log_p = np.where(np.isfinite(log_p), log_p, -np.inf)
    most = log_p.max(axis=1, keepdims=True)
    apart = np.maximum(log_p - np.where(np.isfinite(most), most, 0.0), -NEVER)
    return np.where(np.isfinite(log_p), np.rint(kernel.temper * NAT * apart), FORBIDDEN).astype(np.int64)


def prior_part(kernel: Kernel, block: Block, state: State, held: Held) -> np.ndarray:
    """Log-densities (rows, options) but for the records' part: of the prior, and of latents given the unknowns."""
    if block.latent is not None:
        return _prior_of_latent(kernel, block, block.latent, state, held)
    several = [block] if block.rows == 1 else [replace(block, places=(place,)) for place in block.places]
    values = _shared(kernel, state).values()
    result = np.stack([kernel.prior(numbers_of(kernel, choice, state), *values) for choice in several])
    if held.open is not None:  # of several places, it rests on none: see ``_blocks``
        opened = held.open(numbers_of(kernel, block, state), _placeholder_values(kernel, held, state.latents))
        result = result + np.broadcast_to(opened, (block.options, kernel.public.many)).sum(axis=1)
    return result if block.shared is None else np.where(_taken_up(kernel, block, state) < 0, -np.inf, result)


def _shared(kernel: Kernel, state: State) -> dict[str, np.ndarray]:
    """The latents that records read by an index, by name and in their own shapes."""
    pairs = zip(kernel.latents, state.latents, strict=True)
    return {latent.name: value.reshape(latent.sites.shape) for latent, value in pairs if latent.sites is not None}


def check_prior(kernel: Kernel, block: Block, before: State, after: State) -> None:
    """Refuse where the prior of a latent that records share does not change, from one state to another, by what is read of it.

    What is read was found out at made-up values, so a prior of another form elsewhere would be drawn from wrongly. It rests on no record
    but through the states, which are released.
    """
    if block.latent is None or (sites := kernel.latents[block.latent].sites) is None:
        return
    point = kernel.point(before.numbers) | _shared(kernel, before)
    read = sites.log_densities(point, [state.latents[block.latent] for state in (before, after)])
    known = [float(kernel.prior(state.numbers[None], *_shared(kernel, state).values())[0]) for state in (before, after)]
    finite = np.isfinite([*read, *known]).all()
    if finite and abs((read[1] - read[0]) - (known[1] - known[0])) > CLOSE * max(1.0, abs(known[0]), abs(known[1])):
        name = kernel.latents[block.latent].name
        raise Refusal(
            f"The prior of {name} has different forms at different values of other unknowns, so its states cannot be drawn one by one."
            " Write it without conditions on them."
        )


def _prior_of_latent(kernel: Kernel, block: Block, latent: int, state: State, held: Held) -> np.ndarray:
    """Log-densities (rows, options) of a latent given all else but the records."""
    sites = kernel.latents[latent].sites
    if sites is not None:
        return sites.given_others(kernel.point(state.numbers) | _shared(kernel, state), state.latents[latent])
    if held.open is None:
        return np.zeros((block.rows, block.options))
    by_level = [
        held.open(state.numbers[None], _placeholder_values(kernel, held, _with(state, latent, level))) for level in range(block.options)
    ]
    return np.stack([np.broadcast_to(level, (1, block.rows))[0] for level in by_level], axis=1)


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


def records_part(kernel: Kernel, block: Block, state: State, held: Held) -> np.ndarray:
    """The records' part of the scores: (rows, options) int64."""
    result = np.zeros((block.rows, block.options), dtype=np.int64)
    scores_of = _scores_of_numbers if block.latent is None else _scores_of_latent
    for k, sensitivity in enumerate(block.sensitivities):
        if sensitivity:
            result += scores_of(kernel, k, block, state, held)
    return result


def _scores_of_latent(kernel: Kernel, k: int, block: Block, state: State, held: Held) -> np.ndarray:
    """What one part of the log-likelihood says of a latent: (rows, options)."""
    assert block.latent is not None
    part, sites = kernel.parts[k], held.sites[block.latent]
    numbers, several = state.numbers[None, part.places], [_with(state, block.latent, level) for level in range(block.options)]
    if part.whole is None:
        part_scores = np.stack([_clipped(kernel, k, held, numbers, latents, part.unreferred)[0] for latents in several], axis=1)
    else:
        table = _checked(kernel, k, block, _table(kernel, part, numbers))
        part_scores = np.stack([table[_codes(kernel, part, held, latents), 0] for latents in several], axis=1)
    if sites is None:
        return part_scores
    result = np.zeros((block.rows, block.options), dtype=np.int64)
    np.add.at(result, sites, part_scores)
    return result


def _scores_of_numbers(kernel: Kernel, k: int, block: Block, state: State, held: Held) -> np.ndarray:
    """What one part of the log-likelihood says of numbers: (rows, options)."""
    part = kernel.parts[k]
    numbers = numbers_of(kernel, block, state)[:, part.places]
    if part.whole is not None:
        table = _checked(kernel, k, block, _table(kernel, part, numbers))
        counts = np.bincount(_codes(kernel, part, held, state.latents), minlength=len(table))
        member = member_of(part, block, digits_of(part))
        return np.stack([np.where(member == row, counts, 0) @ table for row in range(block.rows)])
    parts = _clipped(kernel, k, held, numbers, state.latents, part.bounds)
    if block.index is None:
        return parts.sum(axis=1)[None]
    member = np.rint({**held.exact, **_placeholder_values(kernel, held, state.latents)}[block.index]).astype(int) % block.rows
    return np.stack([parts[:, member == row].sum(axis=1) for row in range(block.rows)])


def total(kernel: Kernel, state: State, held: Held, sensitivities: Sequence[int]) -> int:
    """The log-likelihood of all records at a state, in units of 1 / NAT: one record moves every part of it by its sensitivity at most."""
    result = 0
    for k, (part, sensitivity) in enumerate(zip(kernel.parts, sensitivities, strict=True)):
        numbers = state.numbers[None, part.places]
        if part.whole is None:
            result += int(_clipped(kernel, k, held, numbers, state.latents, part.unreferred).sum())
            continue
        table = _table(kernel, part, numbers)
        if sensitivity_at(kernel, part, table) > sensitivity:
            raise RuntimeError("log-likelihoods differ by more than what was paid for")
        result += int(table[_codes(kernel, part, held, state.latents), 0].sum())
    return result


def _table(kernel: Kernel, part: Part, numbers: np.ndarray) -> np.ndarray:
    """Log-likelihoods (V, G) of all records that can occur, at states (G, Q) on the grid: those that were looked at for the price."""
    assert part.whole is not None
    low, high = kernel.grids[part.places, 0], kernel.grids[part.places, -1]
    at = np.rint((numbers - low) / (high - low) * (kernel.grids.shape[1] - 1)).astype(int)
    return part.whole[(slice(None), *at.T)]


def _checked(kernel: Kernel, k: int, block: Block, table: np.ndarray) -> np.ndarray:
    """The table of all records at a state, whose range is what was paid for: it does not rest on the records that are there."""
    if score_sensitivity(kernel, kernel.parts[k], block, table[:, None, None, :]) > block.sensitivities[k]:
        raise RuntimeError("the range of scores is larger than what was paid for")
    return table


def _codes(kernel: Kernel, part: Part, held: Held, latents: Sequence[np.ndarray]) -> np.ndarray:
    """Which of all records that can occur each is, in the order of a part's table: (N,)."""
    return codes_of(list(part.entries), {**held.exact, **_placeholder_values(kernel, held, latents)}, kernel.public.many)


def _clipped(
    kernel: Kernel, k: int, held: Held, numbers: np.ndarray, latents: Sequence[np.ndarray], bounds: Sequence[Ranges]
) -> np.ndarray:
    """Every record's part (G, N) in integers, clipped to its bounds: what is no number becomes the least."""
    part, likelihood = kernel.parts[k], held.each[k]
    assert likelihood is not None
    N, standing = kernel.public.many, _placeholder_values(kernel, held, latents)
    every = _of_records(held, latents)
    levels, states = [kernel.latents[place].levels for place in part.latents], [every[place] for place in part.latents]
    combined = np.ravel_multi_index(states, levels) if levels else np.zeros(N, dtype=int)
    reference = np.zeros(N)
    for place, state_bounds in enumerate(bounds):
        if state_bounds.reference is not None and (combined == place).any():
            reference = np.where(combined == place, likelihood(state_bounds.reference[None], standing)[0], reference)
    ends = [state_bounds.at(numbers) for state_bounds in bounds]
    low, high = (np.stack([np.rint(NAT * pair[side]) for pair in ends], axis=1) for side in range(2))
    assert np.isfinite([low, high]).all()
    parts, at_once = [], max(AT_ONCE // max(N, 1), 1)
    for start in range(0, len(numbers), at_once):
        some = slice(start, start + at_once)
        computed = NAT * (np.broadcast_to(likelihood(numbers[some], standing), (len(numbers[some]), N)) - reference)
        computed = np.rint(np.nan_to_num(computed, nan=-np.inf, posinf=np.inf, neginf=-np.inf))
        parts.append(np.clip(computed, low[some][:, combined], high[some][:, combined]).astype(np.int64))
    return np.concatenate(parts)


def state_after(kernel: Kernel, block: Block, state: State, choices: np.ndarray) -> State:
    """The state after an update."""
    if block.latent is not None:
        return replace(state, latents=tuple(choices if k == block.latent else value for k, value in enumerate(state.latents)))
    numbers = state.numbers.copy()
    if block.proposed is not None:
        gone = np.broadcast_to(choices == 1, len(block.places))
        return replace(state, numbers=np.where(np.isin(np.arange(len(numbers)), np.array(block.places)[gone]), block.proposed, numbers))
    numbers[list(block.places)] = kernel.grids[list(block.places), choices]
    if block.shared is not None:
        numbers[block.shared] = kernel.grids[block.shared, _taken_up(kernel, block, state)[choices[0]]]
    return replace(state, numbers=numbers)


def sampled_options(log_p: np.ndarray, rng: Generator) -> np.ndarray:
    """One option of every choice, with probabilities in proportion to exp(log_p): for what rests on no record."""
    log_p = np.where(np.isfinite(log_p), log_p, -np.inf)
    most = log_p.max(axis=1, keepdims=True)
    weights = np.where(np.isfinite(most), np.exp(log_p - np.where(np.isfinite(most), most, 0.0)), 1.0)
    sums = np.cumsum(weights, axis=1)
    return (sums <= rng.random((len(log_p), 1)) * sums[:, -1:]).sum(axis=1)
