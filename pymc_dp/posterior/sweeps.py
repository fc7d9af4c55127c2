"""Gibbs sampling that asks the records at every update, each a private choice with a price of its own (FGWC16, section 4).

Every unknown number is drawn on a public grid given all others, and every record's own unknown among its levels, by the exponential
mechanism. How far one record can move an update's scores is known, in integers, before the first is made, whatever
the state will be; so is the price of the whole schedule. What is released is the chain of the unknowns, and it would cost no more with
all states that led to it. The grid's room stands before, the door after.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from itertools import combinations
from math import prod
from operator import add

import numpy as np
import pymc as pm
from numpy.random import Generator
from pymc.model.fgraph import ModelFreeRV, ModelPotential
from pytensor.graph.basic import Variable
from pytensor.tensor.subtensor import AdvancedSubtensor

from pymc_dp.accounting import Cost, Refusal, epsilon_of, exact_epsilon
from pymc_dp.blank import Blank, Leaves
from pymc_dp.inspection import aligned
from pymc_dp.mechanisms import LARGEST_SUM, Draw, Gibbs, Laplace, Receipt, chosen, generator
from pymc_dp.posterior.drawn import CERTIFIED, NAT, Asked, Drawn, Prepared, Price, left, priced
from pymc_dp.posterior.grid import MOST_PAIRS, NEVER, log_prior, tabulated
from pymc_dp.posterior.records import AT_ONCE, Public, codes_of, exact_records, log_likelihood, public_part
from pymc_dp.rewrite import without_likelihoods
from pymc_dp.rowwise import Entry, Pieces, Ranges, Rowwise, check_finite, entries_of, norms_of, pieces, ranges
from pymc_dp.statistics import of_type
from pymc_dp.structure import above, is_cast
from pymc_dp.truncation import TrimmedDirichletRV

POINTS = 101
"""Of every unknown's grid."""
MOST_LISTED = 2**22
"""Up to so many log-likelihoods, of all records that can occur at all points of the joint grid, are looked at one by one."""
MOST_COMBINED = 64
"""So many combinations of the levels of a record's own unknowns have bounds of their own."""
FORBIDDEN = -(LARGEST_SUM // 2)
"""The score of what the prior does not allow."""
SLACK = 4
"""In units of 1 / NAT: by how much the range of a difference of two rounded log-likelihoods can change if they are computed again."""
SIMPLICES = (pm.Dirichlet.rv_type, TrimmedDirichletRV)
"""Probabilities that add up to 1, as units of a grid: two at a time are drawn, given their sum."""
START = 25
"""Sweeps of the prior alone, before the first that is paid for: where a chain starts."""


# ---------- the nouns
@dataclass(frozen=True)
class Latent:
    """An unknown that every record has for itself.

    Attributes
    ----------
    name : str
    levels : int
        It is one of 0, ..., levels - 1.
    inputs : tuple of Variable
        The placeholders that stand for it, records along axis 0.
    """

    name: str
    levels: int
    inputs: tuple[Variable, ...]


@dataclass(frozen=True)
class Block:
    """What one update draws: numbers, or every record's own unknown, each independent of the others given all the rest.

    Attributes
    ----------
    name : str
    rows, options : int
        So many choices, each among so many values.
    eta : int
        The largest range by which the scores of neighbours differ, added up over the choices, in units of 1 / NAT; 0 where no record
        is asked.
    places : tuple of int
        Of numbers, which.
    index : Variable or None
        Of several numbers, the placeholder that says which of them a record reads.
    latent : int or None
        Of the records' own unknown, which.
    shared : int or None
        The place of the number that takes up what this one loses: their sum stays as it is.
    """

    name: str
    rows: int
    options: int
    eta: int
    places: tuple[int, ...] = ()
    index: Variable | None = None
    latent: int | None = None
    shared: int | None = None


@dataclass(frozen=True)
class Update:
    """One line of a schedule.

    Attributes
    ----------
    name : str
    choices, options : int
        How many things are drawn at once, and from how many values each.
    range : float
        eta, in nats.
    epsilon : Fraction
        What one such update costs, exactly; 0 where no record is asked.
    """

    name: str
    choices: int
    options: int
    range: float
    epsilon: Fraction


@dataclass(frozen=True)
class Schedule:
    """Every update that will ask the records, and what all of them cost together: known before the first. Free: no record was read.

    Attributes
    ----------
    updates : tuple of Update
        Of one sweep, in order.
    mechanism : Gibbs
    temperature : float
        The likelihood is taken to the power of its inverse.
    cost : Cost
        Of all updates of all sweeps of all chains, burn-in included.
    """

    updates: tuple[Update, ...]
    mechanism: Gibbs
    temperature: float
    cost: Cost

    @property
    def asks(self) -> int:
        """How many updates ask the records."""
        return self.mechanism.rounds * sum(one.epsilon > 0 for one in self.updates)

    @property
    def pure(self) -> Fraction:
        """The exact sum of what they cost."""
        return self.mechanism.rounds * sum((one.epsilon for one in self.updates), Fraction(0))

    def __repr__(self) -> str:
        how = self.mechanism
        body = [
            (one.name, str(one.choices), str(one.options), f"{one.range:.6g}", f"{float(one.epsilon):.6g}" if one.epsilon else "free",
             f"{float(one.epsilon * how.rounds):.6g}" if one.epsilon else "")
            for one in self.updates
        ]  # fmt: skip
        header = ("update", "choices", "options", "one record moves it by", "epsilon", f"of all {how.rounds}")
        total = f"epsilon {float(self.cost.epsilon):.6g}" + (f", delta {float(self.cost.delta):g}" if self.cost.delta else "")
        return "\n".join([
            aligned(header, body),
            f"{how.chains} x {how.sweeps} sweeps, {how.burn_in} of each chain burn-in; {how.draws} states of each chain are kept, and the"
            " others cost as much",
            f"{self.asks} updates ask the records and cost {total}, paid before the first; T = {self.temperature:.4g}",
        ])  # fmt: skip


@dataclass(frozen=True)
class State:
    """Where a chain is: numbers (P,), and each latent (N,) of int."""

    numbers: np.ndarray
    latents: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Kernel:
    """Everything public that updates need: scores follow from it, a state and the records.

    Attributes
    ----------
    rows : Rowwise
        The part of the log-likelihood that rests on private records, with the unknowns that it rests on.
    own : (Q,) int ndarray
        Which of all unknown numbers these are.
    open : Rowwise or None
        The part that rests on nothing of a record but its own unknowns and what is public.
    entries : tuple of Entry
        Of a record in ``rows``.
    public : Public
    latents : tuple of Latent
    visible : frozenset of Variable
        Placeholders of latents and of what is public: neighbours have the same.
    grids : (P, points) ndarray
    prior : callable
        Log-density (G,) of unknowns (G, P).
    table : callable or None
        Integer log-likelihoods (V, G) of all records that can occur, where these are few, of unknowns (G, Q).
    whole : (V, *points) int64 ndarray or None
        The same at all points of the joint grid.
    bounds, unreferred : tuple of Ranges
        Otherwise, of a record's part, for every combination of latents; the second with nothing taken away.
    largest : int
        No record's part is larger, in absolute value.
    temper : float
    start : (P,) ndarray
        The middle of every grid; of probabilities that add up to 1, about equal ones.
    """

    rows: Rowwise
    own: np.ndarray
    open: Rowwise | None
    entries: tuple[Entry, ...]
    public: Public
    latents: tuple[Latent, ...]
    visible: frozenset[Variable]
    grids: np.ndarray
    prior: Callable[[np.ndarray], np.ndarray]
    table: Callable[[np.ndarray], np.ndarray] | None
    whole: np.ndarray | None = None
    bounds: tuple[Ranges, ...] = ()
    unreferred: tuple[Ranges, ...] = ()
    largest: int = 0
    temper: float = 1.0
    start: np.ndarray = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True)
class Held:
    """The records, within the door.

    Attributes
    ----------
    exact : dict of Variable to ndarray
        By placeholder; latents are those of the state instead.
    each, open : callable or None
        The two parts of the log-likelihood of every record (G, N), of unknowns and of what stands in for latents.
    """

    exact: Mapping[Variable, np.ndarray]
    each: Callable[..., np.ndarray] | None
    open: Callable[..., np.ndarray] | None


# ---------- the plan
def latents_of(model: pm.Model) -> tuple[str, ...]:
    """Names of the free variables that are arrays of integers: each record may have an entry of its own."""
    return tuple(one.name for one in model.free_RVs if str(one.type.dtype).startswith(("int", "uint", "bool")) and one.type.ndim)


@dataclass(frozen=True)
class Plan:
    """What will be done, and what it costs: no record has been read.

    Attributes
    ----------
    kernel : Kernel
    blocks : tuple of Block
        Of one sweep, in order.
    price : Price
    schedule : Schedule
        The same for people.
    """

    kernel: Kernel
    blocks: tuple[Block, ...]
    price: Price
    schedule: Schedule


def by_gibbs(asked: Asked, found: Blank, leaves: Mapping[str, Leaves], rows: Rowwise, latents: Sequence[str]) -> Prepared:
    """Sweeps that are ready to be paid for."""
    how = asked.mechanism
    assert isinstance(how, Gibbs)
    alone = {one.name for one in rows.unknowns if not _under(found, one.variable)}
    prior, _ = without_likelihoods(found, {})
    planned = plan(asked, rows, public_part(rows, leaves), latents, alone, prior)
    kernel, price = planned.kernel, planned.price

    def draw(receipt: Receipt) -> Drawn:
        held = held_of(kernel, exact_records(rows, leaves, kernel.public))
        walked = [walk(planned, how, held, receipt) for _ in range(how.chains)]
        values = {one.name: part for one, part in zip(rows.unknowns, rows.split(np.concatenate(walked)), strict=True)}
        facts = {
            "sweeps": how.sweeps, "chains": how.chains, "burn_in": how.burn_in, "thin": how.thin, "asks": planned.schedule.asks,
            "points": kernel.grids.shape[1],
        }  # fmt: skip
        return left(asked, found, prior, values, price, CERTIFIED, facts=facts, running=_running(asked, price))

    return Prepared(found, price, CERTIFIED, draw, kernel.public.many, schedule=planned.schedule)


def plan(asked: Asked, rows: Rowwise, public: Public, latents: Sequence[str], alone: Collection[str], prior: pm.Model) -> Plan:
    """A schedule of updates, priced as a whole.

    Parameters
    ----------
    asked : Asked
    rows : Rowwise
    public : Public
    latents : sequence of str
        Names of what every record has for itself.
    alone : collection of str
        Names of unknowns on which the prior of nothing else rests.
    prior : pm.Model
        The model without its likelihoods.

    Raises
    ------
    Refusal
    """
    how = asked.mechanism
    assert isinstance(how, Gibbs)
    if asked.neighbours != "replace":
        raise Refusal(
            'Gibbs sweeps show how many records there are, because each is asked at every update. Write neighbours="replace", or draw with'
            " PosteriorSample."
        )
    check_finite(rows)
    kernel = _kernel(rows, public, latents, log_prior(prior, rows), how.points or POINTS)
    touching = set(above([kernel.rows.density]))
    for one, stand_in in zip(rows.unknowns, rows.stand_ins, strict=True):
        operation = one.variable.owner.inputs[0].owner.op
        if operation.ndim_supp and (type(operation) not in SIMPLICES or stand_in in touching):
            raise Refusal(
                f"The entries of {one.name} depend on each other, so they have no grid of their own. Write numbers in its place; a"
                " pm.Dirichlet may say how frequent the levels of latents are."
            )
    blocks = _blocks(kernel, rows, alone)
    price = _price(asked, {one.name: (one.eta, one.rows * one.options) for one in blocks if one.eta})
    kernel = replace(kernel, temper=price.temperature)
    if public.many * kernel.largest + NEVER * kernel.temper * NAT > LARGEST_SUM / 8:
        raise Refusal("epsilon is so small, or a log-likelihood so large, that scores do not fit 64-bit integers. Narrow the priors.")
    costs = {one.variable: one.pure or Fraction(0) for one in price.draws}
    updates = tuple(Update(one.name, one.rows, one.options, one.eta / NAT, costs.get(one.name, Fraction(0))) for one in blocks)
    return Plan(kernel, blocks, price, Schedule(updates, how, price.temperature, price.cost))


def _under(found: Blank, unknown: Variable) -> bool:
    """Whether the prior of another variable rests on this one, or a Potential does."""
    others = [v for v in found.kept if isinstance(v.owner.op, ModelFreeRV | ModelPotential) and v is not unknown]
    return any(unknown in above([other.owner.inputs[0]]) for other in others)


def _kernel(rows: Rowwise, public: Public, names: Sequence[str], prior: Callable[[np.ndarray], np.ndarray], points: int) -> Kernel:
    """The log-likelihood in its two parts, and how far a record's can vary."""
    latents: list[Latent] = []
    touching: list[Variable] = []
    opened: list[Variable] = []
    for one, value, domain, each in zip(rows.likelihoods, rows.values, rows.domains, rows.each, strict=True):
        if one.name in names:
            if one.natural is None or one.columns:
                raise Refusal(f"{one.name} must have one level a record. Write pm.Categorical or pm.Bernoulli, of the records' shape.")
            again = (given.variable for given, _ in rows.inputs if given.parent and given.name == one.name)
            latents.append(Latent(one.name, int(domain.upper) + 1, (value, *dict.fromkeys(again))))
        private = any(given.private and not (given.parent and given.name in names) for given in one.inputs)
        (touching if one.name not in names or private else opened).append(each)
    part, own = _part(rows, touching)
    entries = tuple(one for one in entries_of(rows, public.arrays) if one.variable in set(above([part.density])))
    standing = {variable for one in latents for variable in one.inputs}
    visible = frozenset(standing | {given.variable for given, _ in rows.inputs if not given.private})
    grids = np.linspace(rows.lower, rows.upper, points, axis=1)
    told = replace(rows, density=reduce(add, opened)) if opened else None
    kernel = Kernel(part, own, told, entries, public, tuple(latents), visible, grids, prior, None, start=_start(rows, grids))
    cut = pieces(part, entries, public.shared, norms_of(part))
    many = prod(len(entry.levels or ()) for entry in entries)
    if cut.listed and many * points ** len(own) <= MOST_LISTED:
        of = log_likelihood(part, {variable: low for variable, (low, _) in cut.given.items()})
        mesh = np.stack(np.meshgrid(*grids[own], indexing="ij"), axis=-1)
        whole = tabulated(of, mesh.reshape(-1, len(own)), many).reshape(many, *mesh.shape[:-1])
        return replace(kernel, table=lambda numbers: tabulated(of, numbers, many), whole=whole, largest=int(np.abs(whole).max()))
    relevant = [one for one in latents if set(one.inputs) & set(above([part.density]))]
    if prod(one.levels for one in relevant) > MOST_COMBINED:
        raise Refusal(f"The levels of {', '.join(one.name for one in relevant)} are too many. Write fewer levels.")
    bounds, unreferred = [], []
    for levels in np.ndindex(*[one.levels for one in latents]):
        given = dict(cut.given)
        for latent, level in zip(latents, levels, strict=True):
            for variable in set(latent.inputs) & set(given):
                given[variable] = (np.full_like(given[variable][0], level),) * 2
        bounds.append(ranges(part, Pieces(given, cut.norms)))
        if relevant:
            unreferred.append(ranges(part, Pieces(given, cut.norms), referred=False))
    largest = max(int(np.abs(np.rint(NAT * end)).max()) for one in (*bounds, *unreferred) for end in (one.least, one.most))
    return replace(kernel, bounds=tuple(bounds), unreferred=tuple(unreferred), largest=largest)


def _start(rows: Rowwise, grids: np.ndarray) -> np.ndarray:
    """A state to begin with, before the sweeps of the prior."""
    points, places = grids.shape[1], []
    for one in rows.unknowns:
        if one.variable.owner.inputs[0].owner.op.ndim_supp:
            K = one.shape[-1]
            each = [(points - 1) // K + (k < (points - 1) % K) for k in range(K)]
            places += each * (one.size // K)
        else:
            places += [points // 2] * one.size
    return grids[np.arange(len(places)), places]


def _part(rows: Rowwise, densities: Sequence[Variable]) -> tuple[Rowwise, np.ndarray]:
    """The log-likelihood of some of what is observed, with the unknowns that it rests on, and which of all numbers these are."""
    density = reduce(add, densities)
    found = set(above([density]))
    used = [k for k, stand_in in enumerate(rows.stand_ins) if stand_in in found] or [0]
    places = np.split(np.arange(rows.size), np.cumsum([one.size for one in rows.unknowns])[:-1])
    part = replace(rows, density=density, unknowns=tuple(rows.unknowns[k] for k in used), stand_ins=tuple(rows.stand_ins[k] for k in used))
    return part, np.concatenate([places[k] for k in used])


def _blocks(kernel: Kernel, rows: Rowwise, alone: Collection[str]) -> tuple[Block, ...]:
    """What is updated in one sweep, in order, and how far a record can move each."""
    touching = set(above([kernel.rows.density]))
    of = _by_listing(kernel) if kernel.table is not None else _by_bounds(kernel)
    blocks = []
    for k, latent in enumerate(kernel.latents):
        block = Block(latent.name, kernel.public.many, latent.levels, 0, latent=k)
        blocks.append(replace(block, eta=of(block)) if touching & set(latent.inputs) else block)
    points, start = kernel.grids.shape[1], 0
    for one, stand_in in zip(rows.unknowns, rows.stand_ins, strict=True):
        places = tuple(range(start, start + one.size))
        start += one.size
        if one.variable.owner.inputs[0].owner.op.ndim_supp:
            pairs = zip(np.ndindex(*one.shape), places, strict=True)
            blocks += [Block(f"{one.name}{list(at)}", 1, points, 0, (k,), shared=k + 1) for at, k in pairs if at[-1] < one.shape[-1] - 1]
            continue
        index = reads_one_entry(kernel.rows.density, stand_in) if stand_in in touching else None
        told = kernel.open is not None and stand_in in set(above([kernel.open.density]))
        if index is not None and one.name in alone and not told:
            several = [Block(one.name, one.size, points, 0, places, index)]
        else:
            labels = [f"[{', '.join(map(str, where))}]" for where in np.ndindex(*one.shape)] if one.shape else [""]
            several = [Block(f"{one.name}{label}", 1, points, 0, (place,)) for label, place in zip(labels, places, strict=True)]
        blocks += [replace(block, eta=of(block)) for block in several] if stand_in in touching else several
    return tuple(blocks)


def reads_one_entry(density: Variable, stand_in: Variable) -> Variable | None:
    """Of a vector of unknowns of which every record reads one entry: the placeholder that says which.

    Given everything else its entries are then independent, if their prior is, and an update draws them together.
    """
    found: set[Variable] = set()
    for variable in above([density]):
        if variable.owner is None or stand_in not in variable.owner.inputs:
            continue
        operation, inputs = variable.owner.op, variable.owner.inputs
        if not isinstance(operation, AdvancedSubtensor) or operation.idx_list != (0,) or inputs[0] is not stand_in or len(inputs) != 2:
            return None
        index = inputs[1]
        while is_cast(index):
            index = index.owner.inputs[0]
        if index is stand_in or index.owner is not None or index.type.ndim != 1:
            return None
        found.add(index)
    return found.pop() if len(found) == 1 and stand_in.type.ndim == 1 else None


# ---------- how far a record can move an update
def _by_bounds(kernel: Kernel) -> Callable[[Block], int]:
    """Of records whose parts are clipped: at any state two differ by at most the widest bounds, of either sign, so the range of their
    difference is at most twice that. Where a record may leave one number and come to another, each of the two adds its own range.
    """

    def widest(several: Sequence[Ranges]) -> int:
        return max(int((np.rint(NAT * one.most) - np.rint(NAT * one.least)).max()) for one in several)

    def of(block: Block) -> int:
        if block.latent is not None:
            return max(2 * widest(kernel.unreferred), 1)
        if block.index is not None and block.index not in kernel.visible:
            least = min(int(np.rint(NAT * one.least).min()) for one in kernel.bounds)
            return max(2 * (max(int(np.rint(NAT * one.most).max()) for one in kernel.bounds) - least), 1)
        return max(2 * widest(kernel.bounds), 1)

    return of


def _by_listing(kernel: Kernel) -> Callable[[Block], int]:
    """Of all pairs of records that can occur and agree in what is visible, at all states: see ``_range``."""
    assert kernel.whole is not None
    whole, points, Q = kernel.whole, kernel.grids.shape[1], len(kernel.own)

    def of(block: Block) -> int:
        inside = [k for k in range(Q) if kernel.own[k] in block.places]
        axes = [0, *(k + 1 for k in range(Q) if k not in inside), *(k + 1 for k in inside)]
        shaped = np.transpose(whole, axes).reshape(len(whole), -1, *[points] * len(inside))
        # Of several numbers a record reads one: all are given the same place.
        same = (np.arange(points),) * len(inside) if inside else (None,)
        shaped = shaped[(slice(None), slice(None), *same)]
        return max(_range(kernel, block, shaped) + SLACK * min(max(len(block.places), 1), 2), 1)

    return of


def _table(kernel: Kernel, numbers: np.ndarray) -> np.ndarray:
    assert kernel.table is not None
    return kernel.table(numbers)


def _range(kernel: Kernel, block: Block, table: np.ndarray) -> int:
    """By how much the scores of neighbours can differ more at one option of a block than at another, from what all records add.

    The largest over pairs of records that agree in what is visible. Of several numbers, a record that is replaced by one that reads
    another adds its own range to that of the other; as do all, at most, where there are too many pairs to look at.

    Parameters
    ----------
    kernel : Kernel
    block : Block
    table : (V, R, G) int64 ndarray
        Of all records, at some states of the rest, over the options; (V, R, 1) where the options are a latent's levels.
    """
    lengths = [len(entry.levels or ()) for entry in kernel.entries]
    digits = np.indices(lengths).reshape(len(lengths), -1)
    if block.latent is not None:
        latent = kernel.latents[block.latent]
        its = [k for k, entry in enumerate(kernel.entries) if entry.variable in latent.inputs]
        same = [np.flatnonzero((digits[its] == level).all(axis=0)) for level in range(latent.levels)]
        table, digits = np.stack([table[codes, :, 0] for codes in same], axis=-1), digits[:, same[0]]
    seen = [k for k, entry in enumerate(kernel.entries) if entry.variable in kernel.visible]
    groups = np.unique(digits[seen], axis=1, return_inverse=True)[1].ravel() if seen else np.zeros(len(table), dtype=int)
    member = _member(kernel, block, digits)
    moves = block.index is not None and block.index not in kernel.visible
    largest = 0
    for group in np.unique(groups):
        own, which = table[groups == group], member[groups == group]
        ranges_of = np.ptp(own, axis=-1)
        if len(own) > MOST_PAIRS:
            twice = 2 * int(ranges_of.max())
            largest = max(largest, twice if moves else min(twice, 2 * int(np.ptp(own, axis=0).max())))
            continue
        for i, j in combinations(range(len(own)), 2):
            found = ranges_of[i] + ranges_of[j] if moves and which[i] != which[j] else np.ptp(own[i] - own[j], axis=-1)
            largest = max(largest, int(found.max()))
    return largest


def _member(kernel: Kernel, block: Block, digits: np.ndarray) -> np.ndarray:
    """Of all records that can occur, which of the block's numbers each reads."""
    for k, entry in enumerate(kernel.entries):
        if entry.variable is block.index:
            assert entry.levels is not None
            return np.array(entry.levels, dtype=int)[digits[k]] % len(block.places)
    return np.zeros(digits.shape[1], dtype=int)


# ---------- the price
def _price(asked: Asked, own: Mapping[str, tuple[int, int]]) -> Price:
    """The least flattening at which all updates together cost no more than is asked for; or each, where that is what is asked for.

    What is charged is the exact sum of what the updates cost.
    """
    how = asked.mechanism
    assert isinstance(how, Gibbs)
    if how.epsilon_per_update is None:
        found = priced(asked, own)
        if found.cost.delta:
            return found
        return replace(found, cost=_sum(found.draws))
    least = Laplace().calibrate(max(eta for eta, _ in own.values()), 0, Cost(exact_epsilon(how.epsilon_per_update)))
    scale = max(least, float(NAT))
    draws = tuple(Draw(name, "choice", eta, eta**2, scale, size) for name, (eta, size) in own.items()) * how.rounds
    pure = _sum(draws)
    if not asked.delta:
        return Price(scale, pure, draws)
    assert pure.rho is not None
    together = epsilon_of(pure.rho, asked.delta)
    return Price(scale, Cost(together, asked.delta, pure.rho) if together < pure.epsilon else pure, draws)


def _sum(draws: Sequence[Draw]) -> Cost:
    pure = sum((one.pure or Fraction(0) for one in draws), Fraction(0))
    return Cost(pure, rho=sum((one.rho for one in draws), Fraction(0)))


def _running(asked: Asked, price: Price) -> np.ndarray:
    """What was spent, in nats, when each state that is kept was reached: (chains, draws)."""
    how = asked.mechanism
    assert isinstance(how, Gibbs)
    sweep = _sum(price.draws[: len(price.draws) // how.rounds])
    result = []
    for k in range(how.rounds):
        if how.kept(k % how.sweeps):
            spent = sweep.epsilon * (k + 1)
            if price.cost.delta:
                spent = min(spent, epsilon_of(sweep.concentrated * (k + 1), price.cost.delta))
            result.append(float(spent))
    return np.array(result).reshape(how.chains, how.draws)


# ---------- updates
def held_of(kernel: Kernel, exact: Mapping[Variable, np.ndarray]) -> Held:
    """The records, and the log-likelihood of each as a function of the state."""
    each = None if kernel.table is not None else log_likelihood(kernel.rows, exact)
    return Held(exact, each, None if kernel.open is None else log_likelihood(kernel.open, exact))


def _standing(kernel: Kernel, latents: Sequence[np.ndarray]) -> dict[Variable, np.ndarray]:
    """What stands for the latents, in the types of their placeholders."""
    pairs = zip(kernel.latents, latents, strict=True)
    return {variable: of_type(value, variable) for one, value in pairs for variable in one.inputs}


def scores(kernel: Kernel, block: Block, state: State, held: Held) -> np.ndarray:
    """Of every option of every choice of a block, at a state: (rows, options) int64.

    The records' part is a sum of integers, each within its bounds; the rest, which rests on no record, is rounded as a whole.
    """
    return _asked(kernel, block, state, held) + _in_units(kernel, free(kernel, block, state, held))


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
    several = [replace(block, places=(place,)) for place in block.places]
    result = np.stack([kernel.prior(_numbers(kernel, one, state)) for one in several])
    if held.open is not None:  # of several places, it rests on none: see ``_blocks``
        told = held.open(_numbers(kernel, block, state), _standing(kernel, state.latents))
        result = result + np.broadcast_to(told, (block.options, kernel.public.many)).sum(axis=1)
    return result if block.shared is None else np.where(_taken_up(kernel, block, state) < 0, -np.inf, result)


def _with(state: State, latent: int, level: int) -> list[np.ndarray]:
    """All latents, one of them at this level for all records."""
    return [np.full_like(value, level) if k == latent else value for k, value in enumerate(state.latents)]


def _numbers(kernel: Kernel, block: Block, state: State) -> np.ndarray:
    """The state (G, P) with a block's numbers at each point of their grids."""
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


def _asked(kernel: Kernel, block: Block, state: State, held: Held) -> np.ndarray:
    """The records' part of the scores: (rows, options) int64."""
    if not block.eta:
        return np.zeros((block.rows, block.options), dtype=np.int64)
    if block.latent is not None:
        numbers = state.numbers[None, kernel.own]
        several = [_with(state, block.latent, level) for level in range(block.options)]
        if kernel.table is None:
            return np.stack([_clipped(kernel, held, numbers, latents, kernel.unreferred)[0] for latents in several], axis=1)
        table = _checked(kernel, block, _table(kernel, numbers))
        return np.stack([table[_codes(kernel, held, latents), 0] for latents in several], axis=1)
    numbers = _numbers(kernel, block, state)[:, kernel.own]
    if kernel.table is not None:
        table = _checked(kernel, block, _table(kernel, numbers))
        counts = np.bincount(_codes(kernel, held, state.latents), minlength=len(table))
        member = _member(kernel, block, np.indices([len(one.levels or ()) for one in kernel.entries]).reshape(len(kernel.entries), -1))
        return np.stack([np.where(member == k, counts, 0) @ table for k in range(block.rows)])
    parts = _clipped(kernel, held, numbers, state.latents, kernel.bounds)
    if block.index is None:
        return parts.sum(axis=1)[None]
    member = np.rint({**held.exact, **_standing(kernel, state.latents)}[block.index]).astype(int) % block.rows
    return np.stack([parts[:, member == k].sum(axis=1) for k in range(block.rows)])


def _checked(kernel: Kernel, block: Block, table: np.ndarray) -> np.ndarray:
    """The table of all records at a state, whose range is what was paid for: it does not rest on the records that are there."""
    if _range(kernel, block, table[:, None, :]) > block.eta:
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
    numbers[list(block.places)] = kernel.grids[list(block.places), choices]
    if block.shared is not None:
        numbers[block.shared] = kernel.grids[block.shared, _taken_up(kernel, block, state)[choices[0]]]
    return replace(state, numbers=numbers)


def _tossed(own: np.ndarray, rng: Generator) -> np.ndarray:
    """One option of every choice, with probabilities in proportion to exp(own): for what rests on no record."""
    own = np.where(np.isfinite(own), own, -np.inf)
    most = own.max(axis=1, keepdims=True)
    weights = np.where(np.isfinite(most), np.exp(own - np.where(np.isfinite(most), most, 0.0)), 1.0)
    sums = np.cumsum(weights, axis=1)
    return (sums <= rng.random((len(own), 1)) * sums[:, -1:]).sum(axis=1)


def walk(planned: Plan, how: Gibbs, held: Held, receipt: Receipt) -> np.ndarray:
    """The states of one chain that are kept: (draws, P). It starts where sweeps of the prior alone lead, which rests on no record."""
    kernel, rng = planned.kernel, generator((), receipt)
    nothing = np.zeros(kernel.public.many, dtype=np.int64)
    state = State(kernel.start, tuple(nothing for _ in kernel.latents))
    for block in planned.blocks * START:
        state = moved(kernel, block, state, _tossed(free(kernel, block, state, held), rng))
    kept = []
    for sweep in range(how.sweeps):
        for block in planned.blocks:
            if block.eta:
                choices = np.array(chosen(list(scores(kernel, block, state, held)), planned.price.scale, receipt))
            else:
                choices = _tossed(free(kernel, block, state, held), rng)
            state = moved(kernel, block, state, choices)
        if how.kept(sweep):
            kept.append(state.numbers)
    return np.array(kept)
