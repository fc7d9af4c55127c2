"""The posterior of any question given every noisy answer. It is the default, and valid whatever was asked and whenever asking stopped.

The unknowns are the numbers of records in every cell of the table. Their prior is one law for all histories: given a concentration c,
a record's cells have Dirichlet(c / cells, ..., c / cells) probabilities (a Polya urn that begins with c even pseudo-records), and log c
is uniform between those of 1 and 10,000, so that the answers say whether records are spread evenly or heaped. Merged cells have the
same law with their shares added, so only atoms need be drawn, and a question that divides atoms can be answered from the same draws:
each atom's records go to its parts by the same urn. Where the number of records is private, its prior is flat to about a million
and falls with its square beyond. As neither depends on the questions, the posterior is what any Bayesian who saw the answers believes,
however they were come by. BLUE's intervals are not (``blue``).

Shapes: C chains, D draws, G atoms, m answers.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from math import floor, log
from typing import TYPE_CHECKING

import numpy as np

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.queries.blue import Interval
from pymc_dp.queries.history import History, divided
from pymc_dp.queries.language import Question

if TYPE_CHECKING:
    import xarray as xr

MOST_ATOMS = 600
MOST_WORK = 2_000_000
"""Atoms, and atoms times answers, up to which the posterior is drawn."""
MOST_SWEPT = 200_000_000
"""Atoms times (answers and 100) times sweeps of a chain that takes about a second."""
BEYOND = 5
"""An interval has at least so many draws beyond each end."""
NEAREST = 4
"""Records move between an atom and so many that the answers hardly tell apart from it, besides atoms at random."""


@dataclass(frozen=True, eq=False)
class Completion:
    """Draws of the number of records in every atom, given all answers.

    Attributes
    ----------
    history : History
    counts : np.ndarray
        int64, (C, D, G).
    concentration : np.ndarray
        (C, D).
    """

    history: History
    counts: np.ndarray
    concentration: np.ndarray


# ---------- draws of it
def fast_enough(history: History) -> bool:
    """Whether the posterior is drawn in seconds."""
    return len(history.cells) <= MOST_ATOMS and len(history.cells) * max(len(history), 1) <= MOST_WORK


def complete(history: History, *, draws: int = 250, chains: int = 4, thin: int | None = None) -> Completion:
    """Draws of the posterior given all answers, by Gibbs sampling on whole numbers.

    Records move between two atoms, mostly two that the answers hardly tell apart, and where their number is private in and out of
    single ones; each move is a slice sampler over all numbers that may move, so nothing is tuned. Everything follows from the
    history, which also is the seed.

    Parameters
    ----------
    draws : int
        Kept of every chain; 100 more come before and are not kept.
    thin : int, optional
        Sweeps for each; 10, and fewer where sweeps take long.

    Raises
    ------
    Refusal
        When there are too many atoms and answers.
    """
    if not fast_enough(history):
        raise Refusal(
            f"{len(history):,} answers that tell {len(history.cells):,} groups of records apart are too many for the posterior."
            ' Ask for method="blue", whose intervals are for questions fixed beforehand.'
        )
    atoms = len(history.cells)
    thin = thin or int(min(max(MOST_SWEPT // (atoms * (len(history) + 100) * (draws + 100)), 2), 10))
    known = history.remembered.get("completion")
    if known is not None and known[0] == (len(history), draws, chains, thin):
        return known[1]
    from pymc_dp.queries.moves import EVENEST, sweeps

    rng = np.random.default_rng(_seed(history))
    spread, columns = history.cells / history.cells.sum(), np.ascontiguousarray(history.matrix.T, dtype=float)
    near = _nearest_atoms(columns, history.scales, rng)
    counts, concentration = np.empty((chains, draws, atoms), np.int64), np.empty((chains, draws))

    generators = rng.spawn(chains)
    starts = [_start(history, generator) for generator in generators]

    def drawn_by(chain: int) -> None:
        sweeps(
            generators[chain], starts[chain], float(np.exp(generators[chain].uniform(0, log(EVENEST)))), columns, history.noisy,
            1 / history.scales, spread, *near, history.records is not None, 100 * thin, thin, counts[chain], concentration[chain],
        )  # fmt: skip

    with ThreadPoolExecutor() as pool:  # each chain has its own generator, so that their order does not matter
        list(pool.map(drawn_by, range(chains)))
    completion = Completion(history, counts, concentration)
    history.remembered["completion"] = ((len(history), draws, chains, thin), completion)
    return completion


def _seed(history: History) -> int:
    digest = sha256(f"{history.neighbours} {history.records}".encode())
    for answer in history.answered:
        digest.update(f"{answer.question.text} {answer.scale!r} {answer.noisy}\n".encode())
    return int.from_bytes(digest.digest()[:8], "big")


def _start(history: History, rng: np.random.Generator) -> np.ndarray:
    """(G,): counts to begin with: in the middle of what agrees with the answers less fresh noise, whole, and as many as there are."""
    scales, atoms = history.scales, len(history.cells)
    rows, noisy, weights = history.matrix.astype(float), history.noisy + rng.laplace(0, scales), 0.5 / scales**2
    records = history.records
    if records is None:  # as if there were none, give or take ten times as many as the largest answer tells
        largest = np.abs(history.noisy) / np.abs(history.rows).max(axis=1, initial=1.0)[list(history.places)]
        most, total, sure = float(largest.max(initial=10.0)) + 10, 0.0, 0.1
        sure /= most
    else:
        most, total, sure = records + 0.5 * atoms, records + 0.5 * atoms, 10.0  # to the nearest record
    middle = _middle(
        np.vstack([rows, np.ones(atoms)]), np.append(noisy, total), np.append(weights, sure**2), rng.gamma(2.0, 0.5, atoms) + 0.3, most
    )
    # Sums over neighbouring atoms are off by less than 1.
    counts = np.diff(np.rint(np.cumsum(middle)), prepend=0.0).astype(np.int64)
    if records is not None:
        for atom in np.argsort(-counts):
            moved = max(records - int(counts.sum()), -int(counts[atom]))
            counts[atom] += moved
    return counts


def _middle(rows: np.ndarray, targets: np.ndarray, weights: np.ndarray, shares: np.ndarray, most: float) -> np.ndarray:
    """(G,): where sum shares log(x) - sum weights (given - rows x)^2 / 2 is largest, by Newton steps along a path of growing weights."""
    from scipy.linalg import cho_factor, cho_solve

    x = np.full(len(shares), most / len(shares))
    ease = max(float((weights * (targets - rows @ x) ** 2).max()), 1.0)
    while True:
        for _ in range(30):
            slope = shares / x + rows.T @ (weights / ease * (targets - rows @ x))
            scaled = rows * x
            curve = (scaled.T * (weights / ease)) @ scaled
            curve[np.diag_indices(len(x))] += shares
            step = x * cho_solve(cho_factor(curve, lower=True), x * slope)
            shrinks = step < 0
            x = x + min(1.0, 0.95 * float((-x[shrinks] / step[shrinks]).min(initial=np.inf))) * step
            if step @ slope < 0.1:
                break
        if ease == 1:
            return x
        ease = max(ease / 30, 1.0)


def _nearest_atoms(
    columns: np.ndarray, scales: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """For every atom the atoms that the answers tell least apart, in nats for each record that moves: (G, NEAREST).

    The other three arrays say, pair by pair, where the answers begin that tell them apart, which these are, and by how much.
    """
    from scipy.spatial.distance import cdist

    atoms, answers = columns.shape
    near = np.tile(np.arange(atoms), (atoms, 1))
    if atoms > NEAREST:
        some = rng.permutation(answers)[: max(int(3e8 / atoms**2), 20)]
        scaled = columns[:, some] / scales[some]
        apart = cdist(scaled, scaled, "cityblock")
        apart[np.diag_indices(atoms)] = np.inf
        near = np.argpartition(apart, NEAREST, axis=1)[:, :NEAREST]
    differences = (columns[:, None, :] - columns[near]).reshape(near.size, answers)
    pair, answer = np.nonzero(differences)
    return near, np.searchsorted(pair, np.arange(near.size + 1)), answer, differences[pair, answer]


# ---------- what they say
def answers(completion: Completion, questions: Sequence[Question]) -> "xr.DataTree":
    """Draws of questions, as a DataTree: a variable for each in the group ``posterior``, in units of the answer.

    It is named by the text of the question, with "over" for a slash, which a tree takes for a path.
    """
    import xarray as xr

    data = {question.text.replace("/", " over "): (("chain", "draw"), answer_draws(completion, question)) for question in questions}
    attrs = {"given": "every noisy answer", "answers": len(completion.history), "neighbours": completion.history.neighbours}
    coords = {"chain": np.arange(len(completion.counts)), "draw": np.arange(completion.counts.shape[1])}
    return xr.DataTree.from_dict({"posterior": xr.Dataset(data, coords=coords, attrs=attrs)})


def check_told(draws: int, confidence: float) -> None:
    """Refuse a confidence that so many draws do not tell: to be asked before anything is paid."""
    if not 0 < confidence < 1:
        raise Refusal("The confidence must lie between 0 and 1. Write for example confidence=0.95.")
    if _beyond(draws, confidence) < BEYOND:
        raise Refusal(
            f"{draws} draws of the posterior tell no interval of confidence {confidence:.12g}, with less than {BEYOND} of them beyond"
            f' each end. Write confidence={max(1 - 2 * BEYOND / draws, 0.5):g} or less, or method="blue".'
        )


def _beyond(draws: int, confidence: float) -> int:
    return floor((1 - confidence) / 2 * draws * (1 + 1e-12))


def chains_agree(completion: Completion, question: Question, confidence: float = 0.95) -> bool:
    """Whether chains agree on a question, so that its interval can be told: r-hat at most 1.05, and bulk and tails of 100 draws' worth.

    There must also be draws enough for this confidence, as in ``check_told``.
    """
    import arviz as az

    if _beyond(completion.concentration.size, confidence) < BEYOND:
        return False
    values = answer_draws(completion, question)
    if (values == values[0, 0]).all():
        return True
    with np.errstate(all="ignore"):  # what does not vary within chains has no r-hat, and fails below
        worth = [float(az.ess(values, method="bulk")), float(az.ess(values, method="tail", prob=(0.05, 0.95)))]
        return float(az.rhat(values, method="z_scale")) <= 1.05 and min(worth) >= 100


def interval_given_all(completion: Completion, question: Question, confidence: float) -> Interval:
    """The interval with equal tails that holds the answer with this probability, given every noisy answer.

    Raises
    ------
    Refusal
        When the draws do not tell it: see ``check_told``.
    """
    check_told(completion.concentration.size, confidence)
    values = np.sort(answer_draws(completion, question).ravel())
    out = _beyond(len(values), confidence)
    return Interval(float(np.median(values)), float(values[out]), float(values[len(values) - 1 - out]), confidence, "given every answer")


def probability_given_all(completion: Completion, question: Question, value: float) -> float:
    """P(answer > value), given every noisy answer."""
    return float((answer_draws(completion, question) > value).mean())


def answer_draws(completion: Completion, question: Question) -> np.ndarray:
    """(C, D): draws of a question; where it divides atoms, their records go to parts by the urn of the prior."""
    history = completion.history
    parts = divided(history, question)
    if len(parts.parent) == len(history.cells):
        return completion.counts @ parts.weights / question.divisor
    rng = np.random.default_rng(int.from_bytes(sha256(f"{_seed(history)} {question.text}".encode()).digest()[:8], "big"))
    cells = np.bincount(parts.labels, minlength=len(parts.parent))
    alone = np.bincount(parts.parent)[parts.parent] == 1
    total = completion.counts[:, :, parts.parent[alone]] @ parts.weights[alone]
    left = completion.counts.copy()
    uncut = np.bincount(parts.parent, weights=cells)
    for part in np.flatnonzero(~alone):
        atom = parts.parent[part]
        uncut[atom] -= cells[part]
        if uncut[atom] > 0:
            per_part = completion.concentration / len(parts.labels)
            here = rng.binomial(left[:, :, atom], rng.beta(per_part * cells[part], per_part * uncut[atom]))
        else:
            here = left[:, :, atom]
        total = total + here * parts.weights[part]
        left[:, :, atom] = left[:, :, atom] - here
    return total / question.divisor
