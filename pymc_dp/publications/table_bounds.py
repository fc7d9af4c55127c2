"""Whether a table can meet all exact sums and bounds that were published of it, and one that does.

Of any two exact rows one holds the other or they have no cell in common (a laminar family). Tables that meet such rows form an M-natural
convex set, so that moves of one record between two cells, or in and out of one, reach each of them from any other (Murota 2003,
Discrete Convex Analysis, section 4.7). Rows that cross need other moves, and are refused.
"""

from dataclasses import dataclass

import numpy as np

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.publications.table_queries import AT_LEAST, AT_MOST, EQUAL, Rows

MOST = 2**40
"""No cell holds more."""


@dataclass(eq=False)
class _Node:
    """One exact row: the cells that no smaller row within it holds, the largest rows within it, and between what its sum may lie."""

    own: np.ndarray
    children: list[int]
    least: float
    most: float


@dataclass(frozen=True, eq=False)
class Hard:
    """The exact rows as a forest.

    Attributes
    ----------
    nodes : list
        Rows, smaller ones first.
    roots : list of int
    free : np.ndarray
        Cells in no exact row.
    classes : np.ndarray
        (n,): cells of one class are in the same sums that are known exactly.
    """

    nodes: list[_Node]
    roots: list[int]
    free: np.ndarray
    classes: np.ndarray


def hard_rows(rows: Rows) -> Hard:
    """The exact rows as a forest, or a refusal where they cross each other or cannot all be met."""
    cells, hard = rows.matrix.shape[1], np.flatnonzero(rows.kinds >= EQUAL)
    matrix = rows.matrix[hard]
    sizes = np.diff(matrix.indptr)
    top, nodes, classes = np.full(cells, -1), [], np.zeros(cells, dtype=np.int64)
    node_sizes: list[int] = []
    for k in np.argsort(sizes, kind="stable"):
        inside = matrix.indices[matrix.indptr[k] : matrix.indptr[k + 1]]
        below, many = np.unique(top[inside], return_counts=True)
        for node, count in zip(below, many):
            if node >= 0 and count != node_sizes[node]:
                raise Refusal(
                    "Two exact sums or bounds share some cells, and neither holds the other. Give one of them a noise of small scale, such"
                    " as GaussianNoise(0.3)."
                )
        kind, value = rows.kinds[hard[k]], rows.values[hard[k]]
        least = value if kind in (EQUAL, AT_LEAST) else 0.0
        most = value if kind in (EQUAL, AT_MOST) else float(MOST)
        nodes.append(_Node(inside[top[inside] < 0], [int(node) for node in below if node >= 0], least, most))
        node_sizes.append(len(inside))
        _tighten(nodes)
        top[inside] = len(nodes) - 1
        if kind == EQUAL:
            fresh = int(classes.max()) + 1
            classes[inside] += fresh * (1 + classes[inside])  # unlike any other class
            classes = np.unique(classes, return_inverse=True)[1]
    roots = sorted(set(top[top >= 0].tolist()) | {k for k, size in enumerate(node_sizes) if size == 0})
    return Hard(nodes, roots, np.flatnonzero(top < 0), classes)


def _tighten(nodes: list[_Node]) -> None:
    """Between what the sum of the last row may lie, given the rows within it."""
    node = nodes[-1]
    below = [nodes[child] for child in node.children]
    node.least = max(node.least, sum(child.least for child in below))
    node.most = min(node.most, sum(child.most for child in below) + (MOST if len(node.own) else 0))
    if node.least > node.most:
        raise Refusal(
            f"No table meets all exact sums and bounds: one sum would have to be at least {node.least:g} and at most {node.most:g}. Correct"
            " them, or give those that are not exact a noise."
        )


def nearest_table(hard: Hard, wanted: np.ndarray) -> np.ndarray:
    """(n,): whole numbers that meet all exact rows, near numbers >= 0 that are wanted."""
    table = np.zeros(len(wanted), dtype=np.int64)
    sums = np.zeros(len(hard.nodes))
    for k, node in enumerate(hard.nodes):
        sums[k] = np.clip(wanted[node.own].sum() + sums[node.children].sum(), node.least, node.most)
    totals = {root: int(np.clip(np.rint(sums[root]), hard.nodes[root].least, hard.nodes[root].most)) for root in hard.roots}
    for k in range(len(hard.nodes) - 1, -1, -1):
        node = hard.nodes[k]
        children = [hard.nodes[child] for child in node.children]
        parts = _shared(
            totals[k],
            np.append(sums[node.children], wanted[node.own].sum()),
            np.append([child.least for child in children], 0.0),
            np.append([child.most for child in children], float(MOST) if len(node.own) else 0.0),
        )
        totals.update(zip(node.children, parts[:-1].tolist()))
        table[node.own] = _apportioned(int(parts[-1]), wanted[node.own])
    table[hard.free] = _apportioned(int(np.rint(wanted[hard.free].sum())), wanted[hard.free])
    return table


def _shared(total: int, wanted: np.ndarray, least: np.ndarray, most: np.ndarray) -> np.ndarray:
    """Whole numbers between bounds that add up to a total, near what is wanted: all moved by one amount, then one by one."""
    low, high = float((least - wanted).min()) - 1, float((most - wanted).max()) + 1
    for _ in range(100):
        middle = 0.5 * (low + high)
        if np.clip(np.floor(wanted + middle), least, most).sum() <= total:
            low = middle
        else:
            high = middle
    parts = np.clip(np.floor(wanted + low), least, most)
    for place in np.argsort(parts - wanted):
        parts[place] += min(total - parts.sum(), most[place] - parts[place])
    return parts.astype(np.int64)


def _apportioned(total: int, wanted: np.ndarray) -> np.ndarray:
    """Whole numbers >= 0 that add up to a total, proportional to what is wanted; sums of neighbours are off by less than 1."""
    if not len(wanted):
        return np.zeros(0, dtype=np.int64)
    shares = wanted + 1e-9
    return np.diff(np.rint(np.cumsum(shares) * (total / shares.sum())), prepend=0.0).astype(np.int64)
