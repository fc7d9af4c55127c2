"""The posterior of any question given every noisy answer: the default, valid whatever was asked, and whenever asking stopped.

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
from dataclasses import dataclass
from hashlib import sha256
from math import floor, log
from typing import TYPE_CHECKING

import numpy as np

from pymc_dp.accounting import Refusal
from pymc_dp.queries.blue import Interval
from pymc_dp.queries.history import History, divided
from pymc_dp.queries.language import Question

if TYPE_CHECKING:
    import xarray as xr

MOST_WORK = 2_000_000
"""Atoms times answers up to which the posterior is drawn."""
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
    return len(history.cells) * max(len(history), 1) <= MOST_WORK


def complete(history: History, *, draws: int = 250, chains: int = 4, thin: int = 5) -> Completion:
    """Draws of the posterior given all answers, by Gibbs sampling on whole numbers.

    Records move between two atoms, half of the time two that the answers hardly tell apart, and where their number is private in and
    out of single ones; each move is a slice sampler over all numbers that may move, so nothing is tuned. Everything follows from the
    history, which also is the seed.

    Raises
    ------
    Refusal
        When there are too many atoms and answers.
    """
    if not fast_enough(history):
        raise Refusal(
            f"{len(history)} answers that tell {len(history.cells)} groups of records apart are too many for the posterior."
            ' Ask for method="blue", whose intervals are for questions fixed beforehand.'
        )
    known = history.remembered.get("completion")
    if known is not None and known[0] == (len(history), draws, chains, thin):
        return known[1]
    rng = np.random.default_rng(_seed(history))
    spread = history.cells / history.cells.sum()
    columns = np.ascontiguousarray(history.matrix.T, dtype=float)
    near = _near(columns / history.scales, rng)
    from pymc_dp.queries.moves import EVENEST, sweeps

    counts = np.empty((chains, draws, len(spread)), np.int64)
    concentration = np.empty((chains, draws))
    for chain in range(chains):
        start, even = _start(history, spread, rng), float(np.exp(rng.uniform(0, log(EVENEST))))
        own = np.random.default_rng(rng.integers(2**63))
        sweeps(
            own, start, even, columns, history.noisy, 1 / history.scales, spread, near, history.neighbours == "replace",
            100 * thin, thin, counts[chain], concentration[chain],
        )  # fmt: skip
    found = Completion(history, counts, concentration)
    history.remembered["completion"] = ((len(history), draws, chains, thin), found)
    return found


def _seed(history: History) -> int:
    told = sha256(f"{history.neighbours} {history.records}".encode())
    for one in history.answered:
        told.update(f"{one.question.text} {one.scale!r} {one.noisy}\n".encode())
    return int.from_bytes(told.digest()[:8], "big")


def _start(history: History, spread: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(G,): counts to begin with: a draw of the prior, moved as little as makes it agree with the answers less fresh noise."""
    from scipy.optimize import nnls

    scales, atoms = history.scales, len(spread)
    records = history.records
    if records is None:
        records = int((np.abs(history.noisy) / np.abs(history.rows).max(axis=1)[list(history.places)]).max(initial=10.0))
    shares = rng.gamma(np.exp(rng.uniform(0, log(atoms + 1))) * spread) + 1e-3 / atoms
    before = records * shares / shares.sum()
    rows = np.vstack([history.matrix / scales[:, None], np.diag(1 / (before + 1))])
    right = np.concatenate([(history.noisy + rng.laplace(0, scales)) / scales, before / (before + 1)])
    if history.neighbours == "replace":
        rows, right = np.vstack([rows, np.full(atoms, 1e3)]), np.append(right, 1e3 * records)
    found = nnls(rows, right)[0]
    counts = np.diff(np.rint(np.cumsum(found)), prepend=0.0).astype(np.int64)  # sums over neighbouring atoms are off by less than 1
    if history.records is not None:
        extra = int(counts.sum()) - history.records
        for atom in np.argsort(-counts):
            taken = min(extra, int(counts[atom]))
            counts[atom] -= taken
            extra -= taken
    return counts


def _near(columns: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(G, NEAREST): for every atom the atoms that the answers tell least apart, in nats for each record that moves."""
    from scipy.spatial.distance import cdist

    atoms, answers = columns.shape
    if atoms <= NEAREST:
        return np.tile(np.arange(atoms), (atoms, 1))
    some = rng.permutation(answers)[: max(int(3e8 / atoms**2), 20)]
    found = np.empty((atoms, NEAREST), np.int64)
    for start in range(0, atoms, 256):
        apart = cdist(columns[start : start + 256, some], columns[:, some], "cityblock")
        apart[np.arange(len(apart)), start + np.arange(len(apart))] = np.inf
        found[start : start + 256] = np.argpartition(apart, NEAREST, axis=1)[:, :NEAREST]
    return found


# ---------- what they say
def answers(found: Completion, questions: Sequence[Question]) -> "xr.DataTree":
    """Draws of questions, as a DataTree: a variable for each in the group ``posterior``, in units of the answer.

    It is named by the text of the question, with "over" for a slash, which a tree takes for a path.
    """
    import xarray as xr

    data = {one.text.replace("/", " over "): (("chain", "draw"), drawn(found, one)) for one in questions}
    given = {"given": "every noisy answer", "answers": len(found.history), "neighbours": found.history.neighbours}
    coords = {"chain": np.arange(len(found.counts)), "draw": np.arange(found.counts.shape[1])}
    return xr.DataTree.from_dict({"posterior": xr.Dataset(data, coords=coords, attrs=given)})


def settled(found: Completion, question: Question) -> bool:
    """Whether chains agree on a question, so that its interval can be told: r-hat at most 1.05, and bulk and tails of 100 draws' worth."""
    import arviz as az

    values = drawn(found, question)
    if (values == values[0, 0]).all():
        return True
    worth = min(float(az.ess(values, method="bulk")), float(az.ess(values, method="tail", prob=(0.05, 0.95))))
    return float(az.rhat(values)) <= 1.05 and worth >= 100


def interval_given_all(found: Completion, question: Question, confidence: float) -> Interval:
    """The interval with equal tails that holds the answer with this probability, given every noisy answer."""
    if not 0 < confidence < 1:
        raise Refusal("The confidence must lie between 0 and 1. Write for example confidence=0.95.")
    values = np.sort(drawn(found, question).ravel())
    out = floor((1 - confidence) / 2 * len(values))
    return Interval(float(np.median(values)), float(values[out]), float(values[len(values) - 1 - out]), confidence, "given every answer")


def probability_given_all(found: Completion, question: Question, value: float) -> float:
    """P(answer > value), given every noisy answer."""
    return float((drawn(found, question) > value).mean())


def drawn(found: Completion, question: Question) -> np.ndarray:
    """(C, D): draws of a question; where it divides atoms, their records go to parts by the urn of the prior."""
    history = found.history
    parts = divided(history, question)
    if len(parts.parent) == len(history.cells):
        return found.counts @ parts.weights / question.divisor
    rng = np.random.default_rng(int.from_bytes(sha256(f"{_seed(history)} {question.text}".encode()).digest()[:8], "big"))
    cells = np.bincount(parts.labels, minlength=len(parts.parent))
    alone = np.bincount(parts.parent)[parts.parent] == 1
    total = found.counts[:, :, parts.parent[alone]] @ parts.weights[alone]
    left = found.counts.copy()
    uncut = np.bincount(parts.parent, weights=cells)
    for part in np.flatnonzero(~alone):
        atom = parts.parent[part]
        uncut[atom] -= cells[part]
        if uncut[atom] > 0:
            each = found.concentration / len(parts.labels)
            here = rng.binomial(left[:, :, atom], rng.beta(each * cells[part], each * uncut[atom]))
        else:
            here = left[:, :, atom]
        total = total + here * parts.weights[part]
        left[:, :, atom] = left[:, :, atom] - here
    return total / question.divisor
