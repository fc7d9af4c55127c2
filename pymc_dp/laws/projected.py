"""The law of sums over all cells with public weights, from that of every cell's own sums.

Given the parameters they are sums of independent terms, so mean and covariance follow exactly, and the law is normal by the central
limit. Shapes: G cells, C columns, K statistics, P weights of a cell.
"""

import numpy as np
import pytensor.tensor as pt

from pymc_dp.laws.kernel import Tensor
from pymc_dp.laws.law import Count, Counts, Joint, Law, Moments


def projected(law: Law, weights: np.ndarray) -> Joint:
    """The law of the sums over g of weights[g, ..., p] t[g, ..., k], in the order (p, k), of what all records of a cell sum up to, t.

    Parameters
    ----------
    law : Law
        Of the sums t (G, *C, K).
    weights : (G, *C, P) ndarray
    """
    batch, P = weights.shape[:-1], weights.shape[-1]
    mean, covariance = _moments_of_cells(law)
    K, by_column = len(mean), np.moveaxis(weights, 0, -2)  # (*C, G, P)
    onto = pt.constant(np.ascontiguousarray(np.moveaxis(weights, 0, -1)))  # (*C, P, G)

    def of_cells(entry: Tensor) -> Tensor:
        return pt.moveaxis(entry + np.zeros(batch), 0, -1)

    means = pt.stack([(onto @ of_cells(entry)[..., None])[..., 0] for entry in mean], axis=-1)
    blocks = {(i, j): (onto * of_cells(covariance[i][j])[..., None, :]) @ by_column for i in range(K) for j in range(i + 1)}
    rows = [pt.stack([blocks[max(i, j), min(i, j)] for j in range(K)], axis=-1) for i in range(K)]  # each (*C, P, P, K)
    whole = pt.stack(rows, axis=-3)  # (*C, P, K, P, K)
    shape = (1, *batch[1:], P * K)
    return Joint(pt.ones(shape[:-1]), means.reshape(shape), whole.reshape((*shape, P * K)))


def _moments_of_cells(law: Law) -> tuple[list[Tensor], list[list[Tensor]]]:
    """Means, and the lower triangle of the covariance, of a cell's K sums."""
    match law:
        case Count():
            return [law.n * law.p], [[law.n * law.p * (1 - law.p)]]
        case Counts():
            n, p = pt.as_tensor(law.n), [law.p[..., k] for k in range(law.p.type.shape[-1])]
            covariance = [[n * (entry * (1 - entry) if i == j else -entry * p[j]) for j in range(i + 1)] for i, entry in enumerate(p)]
            return [n * entry for entry in p], covariance
        case Moments():
            return law.combined()
    raise TypeError(type(law))
