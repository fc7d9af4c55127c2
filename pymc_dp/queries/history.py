"""All answers of a session, compressed to the cells that they tell apart, and what they cost together.

Nothing here sees a record: a history holds questions, the noise of their answers and the noisy numbers. Cells that no question tells
apart are one *atom*, so a history of thousands of questions about ranges stays a small matrix, which grows as questions come. The
privacy cost is that of the record that costs most, counted atom by atom, not the sum over questions (XX12, section 5).

Shapes: m answers, R rows (distinct questions), G atoms. Weights, scales and noisy answers are in lattice units of their question.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf, nextafter, prod

import numpy as np

from pymc_dp.privacy.accounting import Refusal, check_neighbours
from pymc_dp.queries.language import Question

MOST_CELLS = 2**24
"""The most combinations of levels of the touched columns."""
MOST_PAIRS = 4096
"""Up to so many atoms the cost under ``replace`` is kept for every pair of them; beyond, it is bounded from above."""
MOST_WEIGHT = 2**52
"""Weights below this are exact as doubles."""
MOST_TICKS = 2**61
"""Costs are counted in 64-bit integers below this."""


@dataclass(frozen=True, eq=False)
class Answered:
    """One question with its noisy answer.

    Attributes
    ----------
    question : Question
    epsilon : Fraction
        What its noise would cost alone, in nats.
    scale : float
        Scale of its discrete Laplace noise, in lattice units of the question.
    noisy : int
        In lattice units.
    """

    question: Question
    epsilon: Fraction
    scale: float
    noisy: int


@dataclass(frozen=True, eq=False)
class Parts:
    """Atoms as one more question divides them.

    Attributes
    ----------
    columns, sizes : tuple
        The touched columns, in the order in which they were first touched, and their numbers of cells.
    labels : np.ndarray
        int32, (cells,): the part that every cell belongs to.
    parent : np.ndarray
        int64, (parts,): the atom that a part was cut from, ascending.
    weights : np.ndarray
        int64, (parts,): what the question gives to a record in that part.
    """

    columns: tuple[str, ...]
    sizes: tuple[int, ...]
    labels: np.ndarray
    parent: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True, eq=False)
class Spent:
    """What the answers cost each record, in ticks.

    Attributes
    ----------
    tick : Fraction
        Nats.
    loads : np.ndarray
        int64, (G,): the sum over answers of abs(weight - common) epsilon / sensitivity, where common is 0 under ``add_remove`` and for
        persons, and the weight of most cells under ``replace``.
    pairs : np.ndarray or None
        int64, (G, G): under ``replace``, the same with abs(weight of one atom - weight of another).
    widest : np.ndarray or None
        int64, (G,): the largest entry of every row of ``pairs``.
    alone : Fraction
        The sum of every answer's own epsilon.
    """

    tick: Fraction
    loads: np.ndarray
    pairs: np.ndarray | None
    widest: np.ndarray | None
    alone: Fraction


@dataclass(frozen=True, eq=False)
class History:
    """Everything that was answered about one table.

    Attributes
    ----------
    neighbours : str
        ``"replace"`` or ``"add_remove"``.
    records : int or None
        How many records there are: public under ``replace``, None under ``add_remove`` and for persons.
    answered : tuple of Answered
    columns, sizes : tuple
        The touched columns, in the order in which they were first touched, and their numbers of cells.
    labels : np.ndarray
        int32, (cells,): the atom of every combination of levels.
    cells : np.ndarray
        int64, (G,): how many combinations belong to an atom.
    rows : np.ndarray
        float64, (R, G): integers, the distinct questions on atoms.
    places : tuple of int
        The row of each answer. Answers to one question share a row and stay separate: the likelihood of several Laplace answers is
        no function of their mean.
    remembered : dict
        What was computed elsewhere from these answers and can carry on from; ``append`` hands it on.
    at_most : int or None
        So many rows of a person count, where all rows of a person are protected; None for single records.
    """

    neighbours: str
    records: int | None
    answered: tuple[Answered, ...]
    columns: tuple[str, ...]
    sizes: tuple[int, ...]
    labels: np.ndarray
    cells: np.ndarray
    rows: np.ndarray
    places: tuple[int, ...]
    spent: Spent
    remembered: dict = field(default_factory=dict, repr=False)
    at_most: int | None = None

    @classmethod
    def empty(cls, neighbours: str, records: int | None = None, at_most: int | None = None) -> "History":
        """Nothing answered yet: one atom, which every record is in.

        Raises
        ------
        Refusal
            When the number of records is missing under ``replace``, or given under ``add_remove`` or for persons, where it is private.
        """
        if (check_neighbours(neighbours) == "replace" and at_most is None) != (type(records) is int and records >= 0):
            raise Refusal(
                'The number of records is public under "replace" and private under "add_remove". Write History.empty("replace", records=N)'
                ' or History.empty("add_remove").'
            )
        loads, pairs, widest = np.zeros(1, np.int64), None, None
        if neighbours == "replace":
            pairs, widest = np.zeros((1, 1), np.int64), np.zeros(1, np.int64)
        spent = Spent(Fraction(1), loads, pairs, widest, Fraction(0))
        labels, cells, rows = np.zeros(1, np.int32), np.ones(1, np.int64), np.zeros((0, 1))
        return cls(neighbours, records, (), (), (), labels, cells, rows, (), spent, at_most=at_most)

    @classmethod
    def of(cls, neighbours: str, answered: Iterable[Answered], records: int | None = None) -> "History":
        """The history of these answers."""
        return cls.empty(neighbours, records).extend(answered)

    def __len__(self) -> int:
        return len(self.answered)

    def sensitivity(self, question: Question) -> int:
        """How far a neighbour moves the exact answer to a question at most, in lattice units."""
        return question.sensitivity(self.neighbours, self.at_most)

    def append(self, answer: Answered) -> "History":
        """A new history with one more answer: see ``extend``."""
        return self.extend([answer])

    def extend(self, answers: Iterable[Answered]) -> "History":
        """A new history with more answers: the same as with one after the other, in one matrix instead of one for each.

        Atoms are divided first. Splitting an atom changes no cost of a record, so the costs of all answers are then added up, in their
        order, on the atoms that are there in the end.

        Raises
        ------
        ValueError
            When the noise is smaller than its epsilon says.
        Refusal
            When the touched columns have more than 2**24 combinations of levels.
        """
        answers = tuple(answers)
        for answer in answers:
            sensitivity = self.sensitivity(answer.question)
            if sensitivity == 0:
                raise ValueError("Every record counts alike in this question, so its answer has no noise and is no part of a history.")
            if not answer.scale > 0 or Fraction(answer.scale) * answer.epsilon < sensitivity:
                raise ValueError("The scale of the noise must be at least sensitivity / epsilon. Calibrate it with mechanisms.Laplace.")
        divisions, now = list[Parts](), self
        for answer in answers:
            parts = divided(now, answer.question)
            divisions.append(replace(parts, labels=parts.labels[:0]))
            cells = now.cells
            if len(parts.parent) > len(cells) or len(parts.labels) > len(now.labels):
                cells = np.bincount(parts.labels, minlength=len(parts.parent))
            now = replace(now, columns=parts.columns, sizes=parts.sizes, labels=parts.labels, cells=cells)
        parent = np.arange(len(now.cells))
        weights = np.empty((len(answers), len(parent)), np.int64)
        for k in reversed(range(len(answers))):
            weights[k], parent = divisions[k].weights[parent], divisions[k].parent[parent]
        refined = len(parent) > len(self.cells)
        rows = self.rows[:, parent] if refined else self.rows
        known, places, new = {row.tobytes(): place for place, row in enumerate(rows)}, list(self.places), list[int]()
        for k, row in enumerate(weights.astype(float)):
            place = known.setdefault(row.tobytes(), len(known))
            if place == len(rows) + len(new):
                new.append(k)
            places.append(place)
        if new:
            rows = np.vstack([rows, weights[new].astype(float)])
        spent = _charged(self, answers, weights, parent, now.cells)
        return replace(
            now, answered=(*self.answered, *answers), rows=rows, places=tuple(places), spent=spent, remembered=dict(self.remembered)
        )

    @property
    def matrix(self) -> np.ndarray:
        """int64, (m, G): H of XX12, what a record in each atom adds to each answer."""
        return self.rows[list(self.places)].astype(np.int64)

    @property
    def scales(self) -> np.ndarray:
        """(m,): of the discrete Laplace noise, in lattice units."""
        return np.array([answer.scale for answer in self.answered], dtype=float)

    @property
    def noisy(self) -> np.ndarray:
        """(m,): y of XX12, in lattice units."""
        return np.array([answer.noisy for answer in self.answered], dtype=float)

    @property
    def cost(self) -> Fraction:
        """The pure epsilon of all answers together, in nats: exact, or rounded up to a tick where exact ticks would not fit 64 bits.

        Fix two neighbouring data sets. Each answer is its own discrete Laplace mechanism whose question is a function of earlier
        *noisy* answers, so given these, its log-probability moves by at most 1/scale <= epsilon / S times by how much its exact
        answer moves. Under ``add_remove`` that is abs(H_kj), j the cell of the record that is more or less; under ``replace``
        abs(H_ki - H_kj). A transcript's log-probability is the sum over its answers, so it moves by at most

            max over j of sum_k abs(H_kj) epsilon_k / S_k,   or   max over (i, j) of sum_k abs(H_ki - H_kj) epsilon_k / S_k,

        with the sums taken along that transcript (XX12, section 5; docs/theory.md). Whoever asks may choose questions, epsilons and
        when to stop by all earlier noisy answers: whatever they choose, a filter that keeps this number within a bound keeps it
        within on every path, because the number is a function of the path alone. Cells of columns that no question touched count
        like the others: an atom is all its cells, so the maximum over atoms is the maximum over cells.

        With more than 4096 atoms under ``replace`` it is bounded by the smaller of the sum of epsilons and the two largest loads
        (abs(a - b) <= abs(a - c) + abs(b - c)), which is not too little.

        A person is up to ``at_most`` records, each in any cell: the sums of H over the person's records are what moves. Such a sum is
        ``at_most`` times a mean over cells, one of which gives 0, and both expressions are convex in that mean: they are largest where
        all records are in one cell, so that they are ``at_most`` times those of single records, or of a record and none.
        """
        return _cost(self.neighbours, self.at_most, self.spent)


def divided(history: History, question: Question) -> Parts:
    """The atoms of a history, divided where a question gives their cells different weights; as they are where it does not.

    Raises
    ------
    Refusal
        When the columns touched now have more than 2**24 combinations of levels.
    """
    columns, sizes, labels = history.columns, history.sizes, history.labels
    touched = dict(zip(columns, sizes, strict=True))
    if abs(int(question.weights.max())) > MOST_WEIGHT or abs(int(question.weights.min())) > MOST_WEIGHT:
        raise Refusal(f"The weights of {question.text!r} are beyond 2**52. Write coefficients with fewer digits.")
    for name, size in zip(question.columns, question.weights.shape, strict=True):
        if touched.setdefault(name, size) != size:
            raise ValueError(f"{name} has {touched[name]} cells in earlier questions.")
    columns, sizes = tuple(touched), tuple(touched.values())
    if prod(sizes) > MOST_CELLS:
        raise Refusal(
            f"Questions about {', '.join(columns)} together tell {prod(sizes)} combinations of levels apart, and 2**24 is the most that are"
            " kept. Ask about fewer columns, or give wider bins."
        )
    if len(sizes) > len(history.sizes):
        labels = np.repeat(labels, prod(sizes[len(history.sizes) :]))
    # The weights with one axis for every touched column, in the order of the history.
    places = [columns.index(name) for name in question.columns]
    values, codes = np.unique(question.weights, return_inverse=True)
    shape = [1] * len(sizes)
    for place in places:
        shape[place] = sizes[place]
    codes = codes.reshape(question.weights.shape).transpose(np.argsort(places)).reshape(shape)
    keys = (labels.reshape(sizes).astype(np.int64) * len(values) + codes).ravel()
    if len(history.cells) * len(values) <= max(8 * len(keys), 2**16):
        held = np.zeros(len(history.cells) * len(values), dtype=bool)
        held[keys] = True
        present = np.flatnonzero(held)
        parts = labels
        if len(present) > len(history.cells):
            parts = (np.cumsum(held, dtype=np.int32) - np.int32(1))[keys]
    else:
        present, parts = np.unique(keys, return_inverse=True)
        parts = parts.astype(np.int32) if len(present) > len(history.cells) else labels
    return Parts(columns, sizes, parts, present // len(values), values[present % len(values)])


def _charged(history: History, answers: Iterable[Answered], weights: np.ndarray, parent: np.ndarray, cells: np.ndarray) -> Spent:
    """What was spent, and these answers' costs: of weights (m, parts) on parts of so many cells, each cut from its parent."""
    spent, same = history.spent, len(parent) == len(history.cells)
    pairs = None
    if spent.pairs is not None and len(parent) <= MOST_PAIRS:
        pairs = spent.pairs.copy() if same else spent.pairs[np.ix_(parent, parent)]
    spent = Spent(spent.tick, spent.loads[parent], pairs, None, spent.alone)
    for answer, row in zip(answers, weights, strict=True):
        tick, prices = _priced(spent, history.sensitivity(answer.question), answer.epsilon)
        spent = _in_ticks(spent, tick, answer.epsilon)
        spent.loads[:] += prices(row - (_common(history.neighbours, row, cells) if history.at_most is None else 0))
        if spent.pairs is not None:  # parts of the most frequent weight are as far from each other as before
            _, codes, times = np.unique(row, return_inverse=True, return_counts=True)
            others, usual = np.flatnonzero(codes != times.argmax()), np.flatnonzero(codes == times.argmax())
            more = prices(row[others][:, None] - row)
            spent.pairs[others] += more
            spent.pairs[np.ix_(usual, others)] += more[:, usual].T
    return spent if spent.pairs is None else replace(spent, widest=spent.pairs.max(axis=1))


def _common(neighbours: str, weights: np.ndarray, cells: np.ndarray) -> int:
    """The weight that loads are counted from."""
    if neighbours == "add_remove":
        return 0
    values, codes = np.unique(weights, return_inverse=True)
    return int(values[np.bincount(codes, weights=cells).argmax()])


def _priced(spent: Spent, sensitivity: int, epsilon: Fraction) -> tuple[Fraction, Callable[[np.ndarray], np.ndarray]]:
    """The tick to count in, and a function: differences of weights (int64) to ticks, never too few."""
    rate = epsilon / sensitivity
    total = spent.alone + epsilon
    tick = spent.tick / (rate / spent.tick).denominator
    if total < MOST_TICKS * tick:  # everything is a whole number of these
        whole = int(rate / tick)
        return tick, lambda differences: np.abs(differences) * whole
    tick = spent.tick
    while total >= MOST_TICKS * tick:
        tick *= 2
    while total < MOST_TICKS * tick / 4:
        tick /= 2
    price = nextafter(float(rate / tick), inf)  # the next double is more than the rounding of the product can take away
    price = nextafter(price, inf)
    return tick, lambda differences: np.ceil(np.abs(differences) * price).astype(np.int64)


def _in_ticks(spent: Spent, tick: Fraction, epsilon: Fraction) -> Spent:
    """What was spent, counted in another tick and rounded up where that is coarser; ``epsilon`` more was charged whole."""
    ratio = spent.tick / tick

    def counted(ticks: np.ndarray | None) -> np.ndarray | None:
        if ticks is None or ratio == 1 or ratio >= 2 * MOST_TICKS:  # costs are below MOST_TICKS, so that these are all 0
            return ticks
        if 1 / ratio >= 2 * MOST_TICKS:  # nothing beside one tick
            return np.minimum(ticks, 1)
        return ticks * ratio.numerator if ratio.denominator == 1 else -(-ticks * ratio.numerator // ratio.denominator)

    loads = counted(spent.loads)
    assert loads is not None
    return Spent(tick, loads, counted(spent.pairs), None, spent.alone + epsilon)


def _cost(neighbours: str, at_most: int | None, spent: Spent) -> Fraction:
    cost_of_load = spent.tick * (at_most or 1)
    alone = 0 if at_most is None else int(spent.loads.max())  # a record and none
    if neighbours == "add_remove":
        return int(spent.loads.max()) * cost_of_load
    if spent.widest is not None:
        return max(int(spent.widest.max()), alone) * cost_of_load
    return min(spent.alone, int(np.partition(spent.loads, -2)[-2:].sum()) * cost_of_load)
