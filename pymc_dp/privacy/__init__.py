"""What a promise costs and how it is kept: accounting, noise, receipts, the ledger, and the guard around functions that see records.

Nothing here knows what a model is. ``mechanisms`` is the one module that imports OpenDP and draws noise.
"""
