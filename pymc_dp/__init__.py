"""Differentially private posteriors for ordinary PyMC models, honest about their uncertainty."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

from pymc_dp import lipschitz
from pymc_dp.accounting import Cost, Refusal, bounded_range, compose
from pymc_dp.annotation import annotate
from pymc_dp.audit import Audit, audit
from pymc_dp.boundary import PrivateComputationError, UnaccountedWarning, WeakPrivacyWarning
from pymc_dp.consistency import consistent
from pymc_dp.diagnosed import ClampedWarning, ConvergenceWarning
from pymc_dp.gibbs import gibbs_steps, hidden_markov
from pymc_dp.inspection import Inspection
from pymc_dp.labels import NotSharedWarning, to_share
from pymc_dp.ledger import Ledger
from pymc_dp.mechanisms import Annealing, Barker, Fourier, Gaussian, Gibbs, Laplace, Penalty, PosteriorSample
from pymc_dp.missing import MissingWarning
from pymc_dp.noisy import Release
from pymc_dp.planning import Individual, Natural, Norm
from pymc_dp.plots import plot_audit, plot_ledger
from pymc_dp.posterior import Advice, advise, ask, find_MAP
from pymc_dp.prediction import predict
from pymc_dp.predictive import posterior_predictive
from pymc_dp.release import release
from pymc_dp.rewrite import rewrite
from pymc_dp.sampling import inspect, privatize, sample
from pymc_dp.truncation import BallNormal, TrimmedBeta, TrimmedDirichlet, smallest_probability
from pymc_dp.utility import utility

if TYPE_CHECKING:
    from pymc_dp.queries import QuerySession

__version__ = version("pymc_dp")

__all__ = [
    "Advice",
    "Annealing",
    "Audit",
    "BallNormal",
    "Barker",
    "ClampedWarning",
    "ConvergenceWarning",
    "Cost",
    "Fourier",
    "Gaussian",
    "Gibbs",
    "Individual",
    "Inspection",
    "Laplace",
    "Ledger",
    "MissingWarning",
    "Natural",
    "Norm",
    "NotSharedWarning",
    "Penalty",
    "PosteriorSample",
    "PrivateComputationError",
    "QuerySession",
    "Refusal",
    "Release",
    "TrimmedBeta",
    "TrimmedDirichlet",
    "UnaccountedWarning",
    "WeakPrivacyWarning",
    "advise",
    "annotate",
    "ask",
    "audit",
    "bounded_range",
    "compose",
    "consistent",
    "find_MAP",
    "gibbs_steps",
    "hidden_markov",
    "inspect",
    "lipschitz",
    "plot_audit",
    "plot_ledger",
    "posterior_predictive",
    "predict",
    "privatize",
    "release",
    "rewrite",
    "sample",
    "smallest_probability",
    "to_share",
    "utility",
]


def __getattr__(name: str) -> object:
    """The room of questions is loaded when it is first named."""
    if name not in ("queries", "QuerySession"):
        raise AttributeError(f"module 'pymc_dp' has no attribute {name!r}")
    queries = import_module("pymc_dp.queries")
    return queries if name == "queries" else queries.QuerySession
