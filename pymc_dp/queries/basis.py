"""The distinct questions of a history as sums of a few independent ones, updated as answers come.

A question follows from the answers if it is a sum of the independent rows of a ``Basis``; ``solved`` says whether, and which sum.

Shapes: m answers, R rows (distinct questions), r rows of a basis, G atoms. Everything is in lattice units of the questions.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lu_factor, qr

from pymc_dp.queries.convolution import variances
from pymc_dp.queries.history import History

PUBLIC = -1
"""Stands for the row of a basis that is known exactly: the number of records."""
INSIDE, OUTSIDE = 1e-9, 1e-4
"""What is left of a row of size 1 after subtracting what a basis explains: below the first it is rounding, above the second it is not."""
PRIME = 2**31 - 1
MANY = 32
"""More new answers than these are taken in all at once."""
LEAST_VARIANCE = 1e-6
"""Answers are not weighted as if they had less: of noise that is different from 0 once in a million times."""


@dataclass(frozen=True, eq=False)
class Basis:
    """The answers so far as r independent rows with exact inverse and covariance; updated by one row at a time.

    Attributes
    ----------
    answers : int
        How many were taken in.
    rows : np.ndarray
        int64, (r,): the rows of the history that are independent; PUBLIC first under ``replace``.
    pivots : tuple of tuple of int
        r cells on which they are independent, as levels of the touched columns.
    inverse : np.ndarray
        (r, r): of the rows, each divided by its largest entry, on the pivots.
    dependent, coefficients : np.ndarray
        int64, (R - r,), the other rows; (R - r, r), the same as sums of the basis.
    precision : np.ndarray
        (R,): the sum over a row's answers of 1 / variance, of the row so divided.
    tops : np.ndarray
        (R,): the largest entry of every row.
    covariance : np.ndarray
        (r, r): of the best estimates of the basis, (M' W M)^-1 with M the rows as sums of the basis.
    """

    answers: int
    rows: np.ndarray
    pivots: tuple[tuple[int, ...], ...]
    inverse: np.ndarray
    dependent: np.ndarray
    coefficients: np.ndarray
    precision: np.ndarray
    tops: np.ndarray
    covariance: np.ndarray


def basis_of(history: History) -> Basis:
    """The basis of a history: what is remembered of an earlier one, and the answers since."""
    basis = history.remembered.get("basis")
    if basis is None or basis.answers < len(history):
        basis = history.remembered["basis"] = _grown(history, basis)
    return basis


def _grown(history: History, before: Basis | None) -> Basis:
    """The basis with the answers since: each borders the inverse with a new row, or updates the covariance."""
    if before is None or len(history) - before.answers > MANY:
        return _anew(history)
    new = len(history) - before.answers
    most = min(len(before.rows) + new, len(history.cells))
    r, dependent = len(before.rows), list(before.dependent)
    rows, pivots, tops = list(before.rows), list(before.pivots), _tops(history, before.tops)
    inverse, covariance, precision = np.zeros((most, most)), np.zeros((most, most)), np.zeros(len(tops))
    inverse[:r, :r], covariance[:r, :r], precision[: len(before.precision)] = before.inverse, before.covariance, before.precision
    coefficients = np.zeros((len(dependent) + new, most))
    coefficients[: len(dependent), :r] = before.coefficients
    seen = len(before.precision)
    for k in range(before.answers, len(history)):
        row = history.places[k]
        variance = max(float(variances(history.scales[k])), LEAST_VARIANCE) / tops[row] ** 2
        if row >= seen:
            seen = row + 1
            now = Basis(k, np.array(rows, np.int64), tuple(pivots), inverse[:r, :r], *(np.zeros(0),) * 3, tops, covariance)
            t, inside, left = solved(history, now, history.rows[row], tops[row])
            if inside:
                coefficients[len(dependent), :r] = t
                dependent.append(row)
            else:
                pivot = int(np.abs(left).argmax())
                column = _scaled(history, now, np.array([pivot]))[:, 0]
                towards = inverse[:r, :r] @ column
                inverse[:r, :r] += np.outer(towards / left[pivot], t)
                inverse[:r, r], inverse[r, :r], inverse[r, r] = -towards / left[pivot], -t / left[pivot], 1 / left[pivot]
                covariance[r, r] = variance
                rows.append(row)
                pivots.append(_cell(history, pivot))
                precision[row] = 1 / variance
                r += 1
                continue
        precision[row] += 1 / variance
        inner = covariance[:r, :r]
        by = np.eye(1, r, rows.index(row))[0] if row in rows else coefficients[dependent.index(row), :r]
        to = inner @ by
        gain = to / (by @ to + variance)
        inner -= np.outer(gain, to)
        inner -= np.outer(inner @ by, gain)
        inner += np.outer(gain * variance, gain)  # Joseph's form, which stays positive where precise answers follow noisy ones
    return Basis(
        len(history), np.array(rows, np.int64), tuple(pivots), inverse[:r, :r].copy(), np.array(dependent, np.int64),
        coefficients[: len(dependent), :r].copy(), precision, tops, covariance[:r, :r].copy(),
    )  # fmt: skip


def _anew(history: History) -> Basis:
    """A basis by two pivoted decompositions: which rows are independent, and on which atoms."""
    known = int(history.records is not None)
    tops = _tops(history, np.zeros(0))
    scaled = history.rows / tops[:, None]
    chosen, atoms = np.zeros(0, np.int64), np.zeros(known, np.int64)
    if len(scaled):
        free = scaled - scaled[:, :1] if known else scaled  # a row and the public one: what is left once they agree on an atom
        triangle, order = qr(free.T, mode="r", pivoting=True)
        sizes = np.abs(np.diag(triangle))
        rank = int((sizes > OUTSIDE).sum())
        if (sizes[rank:] > INSIDE).any():
            rank = _rank(np.vstack([np.ones((known, free.shape[1])), history.rows])) - known
        chosen = np.sort(order[:rank])
        if rank:
            swapped = np.arange(free.shape[1])
            for k, other in enumerate(lu_factor(free[chosen].T)[1]):
                swapped[[k, other]] = swapped[[other, k]]
            atoms = np.concatenate([atoms, swapped[:rank]])
    rows = np.concatenate([np.full(known, PUBLIC), chosen]).astype(np.int64)
    basis = np.vstack([np.ones((known, scaled.shape[1])), scaled[chosen]])
    inverse = np.linalg.inv(basis[:, atoms])
    dependent = np.setdiff1d(np.arange(len(scaled)), chosen)
    coefficients = scaled[dependent][:, atoms] @ inverse
    weight = tops[list(history.places)] ** 2 / np.maximum(variances(history.scales), LEAST_VARIANCE)
    precision = np.bincount(np.array(history.places, np.int64), weights=weight, minlength=len(scaled))
    information = np.diag(precision[chosen]) + (coefficients[:, known:].T * precision[dependent]) @ coefficients[:, known:]
    covariance = np.zeros((len(rows), len(rows)))
    covariance[known:, known:] = np.linalg.inv(information)
    pivots = tuple(_cell(history, int(atom)) for atom in atoms)
    return Basis(len(history), rows, pivots, inverse, dependent, coefficients, precision, tops, covariance)


def _tops(history: History, known: np.ndarray) -> np.ndarray:
    """The largest entry of every row, where those of the first rows are known."""
    return np.concatenate([known, np.abs(history.rows[len(known) :]).max(axis=1, initial=0.0)])


def _cell(history: History, atom: int) -> tuple[int, ...]:
    """Levels of the touched columns in the first cell of an atom."""
    place = int(np.argmax(history.labels == atom))
    return tuple(int(level) for level in np.unravel_index(place, history.sizes)) if history.sizes else ()


def _scaled(history: History, basis: Basis, atoms: np.ndarray) -> np.ndarray:
    """The rows of a basis, each divided by its largest entry, on some atoms."""
    answered = basis.rows != PUBLIC
    scaled = np.ones((len(basis.rows), len(atoms)))
    scaled[answered] = history.rows[np.ix_(basis.rows[answered], atoms)] / basis.tops[basis.rows[answered], None]
    return scaled


def solved(history: History, basis: Basis, weights: np.ndarray, top: float) -> tuple[np.ndarray, bool, np.ndarray]:
    """A row of integers (G,) divided by its largest as a sum t (r,) of the basis, whether it is one, and what is left of it."""
    target = weights / top
    if not len(basis.rows):
        return np.zeros(0), not target.any(), target
    cells = np.zeros((len(basis.pivots), len(history.sizes)), np.int64)
    for k, pivot in enumerate(basis.pivots):  # columns touched since have any level
        cells[k, : len(pivot)] = pivot
    atoms = history.labels[np.ravel_multi_index(tuple(cells.T), history.sizes)] if history.sizes else np.zeros(len(cells), np.int64)
    answered = basis.rows != PUBLIC

    def rest(t: np.ndarray) -> np.ndarray:
        by_row = np.zeros(len(history.rows))
        by_row[basis.rows[answered]] = t[answered] / basis.tops[basis.rows[answered]]
        return target - by_row @ history.rows - t[~answered].sum()

    t = target[atoms] @ basis.inverse
    left = rest(t)
    if np.abs(left).max() > 1e-13:
        t = t + left[atoms] @ basis.inverse
        left = rest(t)
    most = float(np.abs(left).max())
    if INSIDE < most < OUTSIDE:
        rows = np.vstack([np.ones((int((~answered).sum()), len(target))), history.rows[basis.rows[answered]], weights])
        return t, _rank(rows) < len(rows), left
    return t, most <= INSIDE, left


def _rank(rows: np.ndarray) -> int:
    """The rank of a matrix of integers, by elimination modulo a prime: wrong only where the prime divides the minors that decide."""
    table = rows.astype(np.int64) % PRIME
    rank = 0
    for column in range(table.shape[1]):
        nonzero = np.flatnonzero(table[rank:, column])
        if nonzero.size:
            table[[rank, rank + nonzero[0]]] = table[[rank + nonzero[0], rank]]
            table[rank] = table[rank] * pow(int(table[rank, column]), -1, PRIME) % PRIME
            below = table[rank + 1 :]
            below -= below[:, column : column + 1] * table[rank] % PRIME
            below %= PRIME
            rank += 1
    return rank
