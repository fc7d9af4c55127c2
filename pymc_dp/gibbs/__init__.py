"""Exact conditional draws given what was released. Nothing here sees a record, so every sweep is free."""

from pymc_dp.gibbs.hidden import hidden_markov

__all__ = ["hidden_markov"]
