"""Pictures of audits, ledgers, plans, posteriors, networks and states. Matplotlib is imported when a picture is drawn."""

from pymc_dp.plots.budgets import plot_audit, plot_ledger, plot_plan, plot_spending
from pymc_dp.plots.networks import plot_network
from pymc_dp.plots.posteriors import plot_posteriors, plot_privacy_share
from pymc_dp.plots.states import plot_states

__all__ = [
    "plot_audit",
    "plot_ledger",
    "plot_network",
    "plot_plan",
    "plot_posteriors",
    "plot_privacy_share",
    "plot_spending",
    "plot_states",
]
