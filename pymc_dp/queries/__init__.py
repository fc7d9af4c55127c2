"""The query room: linear questions answered from what was already released, and paid for only where that is not good enough (XX12).

The rooms: ``schema`` and ``language`` (what may be asked), ``history`` (what was answered, and what that cost), ``blue`` (the best
linear unbiased estimate), ``completion`` (the posterior given every answer). None of these three sees a record.
"""
