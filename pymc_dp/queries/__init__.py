"""Questions about a table, answered from what was answered before, and paid for only where that is not good enough (XX12).

What may be asked: ``schema``, ``expressions`` and ``grammar`` (questions as objects and as text), ``regions`` and ``conditions`` (sets of
cells), ``language`` (a question as weights of cells). What was answered: ``history``, ``basis`` and ``blue`` (the best linear estimate),
``convolution`` (the law of its error), ``completion`` and ``moves`` (the posterior). How a question will be answered, and its price:
``plan``. Where records are read: ``table``, with ``batches`` and ``sql``. A session: ``session``, with ``account`` (what it has asked and
paid), ``inference`` (what it says), ``session_file`` and ``restore`` (how it goes on), ``from_release``, ``as_likelihood`` and
``model_questions``.
"""

import warnings

from pymc_dp.queries.answer import Answer, Price
from pymc_dp.queries.expressions import col, count, total
from pymc_dp.queries.schema import Brackets, Schema
from pymc_dp.queries.session import QuerySession

__all__ = ["Answer", "Brackets", "Price", "QuerySession", "Schema", "col", "count", "total"]


def __getattr__(name: str) -> object:
    """What ``Brackets`` were called before."""
    if name != "Bins":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn("pymc_dp.queries.Bins are called Brackets now. Write pymc_dp.queries.Brackets.", FutureWarning, stacklevel=2)
    return Brackets
