"""What may be asked: linear questions as integer weights on cells. The schema stands before, the history of answers after."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Question:
    """A linear question: the sum over records of weights[cell of the record], divided by divisor.

    Attributes
    ----------
    text : str
        Canonical and public: equal questions have equal text.
    columns : tuple of str
        Touched, in the order of the schema; none for a constant question about every record.
    weights : np.ndarray
        int64, (size of each touched column).
    divisor : int
        Answers are sums / divisor.
    """

    text: str
    columns: tuple[str, ...]
    weights: np.ndarray
    divisor: int
