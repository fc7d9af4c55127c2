"""What a promise costs and how it is kept: accounting, noise, receipts, the ledger, and the guard around functions that see records.

Nothing here knows what a model is. ``mechanisms`` is the one module that imports OpenDP and draws noise; ``noise_law`` is its law, for
models. To pay, ``ledger`` asks ``budget`` and ``charges`` whether a cost still fits; ``journal`` writes the new entry to the file
(``entries`` is its text), and the result is a receipt (``receipts``), without which ``mechanisms`` draws nothing.
"""
