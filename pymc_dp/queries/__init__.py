"""Questions about a table, answered from what was answered before, and paid for only where that is not good enough (XX12).

From left to right: ``schema`` and ``language`` (what may be asked) with ``expressions`` and ``grammar``, ``history`` (what was answered,
and what that cost), ``blue`` and ``completion`` (what it says about one more question), ``table`` (where records are read), ``plan``
(how a question will be answered, and its price), ``session``.
"""

from pymc_dp.queries.answer import Answer, Price
from pymc_dp.queries.expressions import col, count, total
from pymc_dp.queries.schema import Bins, Schema
from pymc_dp.queries.session import QuerySession

__all__ = ["Answer", "Bins", "Price", "QuerySession", "Schema", "col", "count", "total"]
