"""Differentially private posteriors for ordinary PyMC models, honest about their uncertainty."""

from pymc_dp.accounting import Refusal
from pymc_dp.annotation import annotate
from pymc_dp.audit import Audit, audit
from pymc_dp.boundary import PrivateComputationError, UnaccountedWarning
from pymc_dp.inspection import Inspection, inspect
from pymc_dp.mechanisms import Gaussian, Laplace
from pymc_dp.noisy import Release
from pymc_dp.planning import Individual
from pymc_dp.plots import plot_audit
from pymc_dp.release import release
from pymc_dp.rewrite import rewrite
from pymc_dp.sampling import privatize, sample

__all__ = [
    "Audit",
    "Gaussian",
    "Individual",
    "Inspection",
    "Laplace",
    "PrivateComputationError",
    "Refusal",
    "Release",
    "UnaccountedWarning",
    "annotate",
    "audit",
    "inspect",
    "plot_audit",
    "privatize",
    "release",
    "rewrite",
    "sample",
]
