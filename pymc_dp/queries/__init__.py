"""Questions about a table, answered from what was answered before, and paid for only where that is not good enough (XX12).

From left to right: ``schema`` and ``language`` (what may be asked) with ``expressions`` and ``grammar``, ``history`` (what was answered,
and what that cost), ``blue`` and ``completion`` (what it says about one more question), ``table`` (where records are read), ``session``.
"""
