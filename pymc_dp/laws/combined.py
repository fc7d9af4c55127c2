"""The law of linear combinations of the number of records and their sums, each in units of the noise that is on it.

Shapes: G cells, C columns, R statistics of a record, K numbers.
"""

import numpy as np
import pytensor.tensor as pt

from pymc_dp.laws.kernel import Tensor
from pymc_dp.laws.law import Moments


def combined(law: Moments, rows: np.ndarray) -> Moments:
    """The law of rows[..., k, 0] n + sum_i rows[..., k, 1 + i] t_i, k < K, where ``law`` is that of the sums t_i of n records.

    Mean and covariance of one record's numbers are linear in those of its statistics, so they follow exactly.

    Parameters
    ----------
    law : Moments
        Without a basis.
    rows : (G, *C, K, 1 + R) ndarray
    """
    assert law.basis is None
    R, K = len(law.mean), rows.shape[-2]

    def total(parts: list[Tensor]) -> Tensor:
        return sum(parts[1:], parts[0]) if parts else pt.zeros(rows.shape[:-2])

    mean = [
        total([pt.constant(rows[..., k, 0]), *(rows[..., k, 1 + i] * law.mean[i] for i in range(R) if rows[..., k, 1 + i].any())])
        for k in range(K)
    ]
    covariance = [
        tuple(
            total(
                [
                    (rows[..., k, 1 + i] * rows[..., m, 1 + j]) * law.covariance[max(i, j)][min(i, j)]
                    for i in range(R)
                    for j in range(R)
                    if (rows[..., k, 1 + i] * rows[..., m, 1 + j]).any()
                ]
            )
            for m in range(k + 1)
        )
        for k in range(K)
    ]
    return Moments(law.n, tuple(mean), tuple(covariance))
