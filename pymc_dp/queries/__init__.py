"""Questions about a table, answered from what was answered before, and paid for only where that is not good enough (XX12).

``schema`` and ``language`` say what may be asked, with ``expressions`` and ``grammar``; ``history`` what was answered and what that cost;
``blue`` and ``completion`` what it says about one more question; ``plan`` how a question will be answered, and its price; ``table`` reads
records. ``session`` puts them together: ``account`` is what it has asked and paid, ``inference`` what it says, ``restore`` how it goes on
from its file.
"""

from pymc_dp.queries.answer import Answer, Price
from pymc_dp.queries.expressions import col, count, total
from pymc_dp.queries.schema import Bins, Schema
from pymc_dp.queries.session import QuerySession

__all__ = ["Answer", "Bins", "Price", "QuerySession", "Schema", "col", "count", "total"]
