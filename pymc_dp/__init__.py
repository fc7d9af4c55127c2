"""Differentially private posteriors for ordinary PyMC models, honest about their uncertainty.

The examples of all public names go on from these lines.

>>> import numpy as np
>>> import pymc as pm
>>> import pymc_dp as pmdp
>>> votes = np.repeat([0, 1], 100)
>>> with pm.Model() as model:
...     share = pm.Beta("share", 1, 1)
...     vote = pm.Bernoulli("vote", share, observed=votes)
>>> with pm.Model() as network:
...     party = pm.Bernoulli("party", pm.Beta("share", 1, 1), observed=np.tile([0, 1], 100))
...     vote = pm.Bernoulli("vote", pm.Beta("yes", 1, 1, shape=2)[party], observed=votes)
>>> with pm.Model() as bounded:
...     a, b = pm.Uniform("a", -1, 1), pm.Uniform("b", -1, 1)
...     vote = pm.Bernoulli("vote", logit_p=2 * a * b, observed=votes)
>>> idata = pmdp.sample(20, tune=20, chains=1, model=model, epsilon=1.0, progressbar=False)
"""

from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

from pymc_dp.gibbs import gibbs_steps, hidden_markov
from pymc_dp.models.ball_prior import BallNormal
from pymc_dp.models.bounded_priors import TrimmedBeta, TrimmedDirichlet, smallest_probability
from pymc_dp.plans.bins import Bins
from pymc_dp.plans.bounds import Natural, Norm
from pymc_dp.plans.hints import SparseCellsWarning
from pymc_dp.plans.inspection import Inspection
from pymc_dp.plans.missing import MissingWarning
from pymc_dp.plans.person import Person
from pymc_dp.plans.protection import Individual
from pymc_dp.plans.utility import utility
from pymc_dp.plans.widths import PlannedWidths
from pymc_dp.posterior import Advice, advise, ask, find_MAP
from pymc_dp.privacy import lipschitz
from pymc_dp.privacy.accounting import Cost, Refusal, bounded_range, compose
from pymc_dp.privacy.guard import PrivateComputationError, UnaccountedWarning, WeakPrivacyWarning
from pymc_dp.privacy.ledger import Ledger
from pymc_dp.privacy.mechanisms import Fourier, Gaussian, Laplace
from pymc_dp.privacy.requests import Annealing, Barker, Gibbs, Penalty, PosteriorSample
from pymc_dp.private_models.annotation import annotate
from pymc_dp.private_models.checking import marginal_likelihoods, predictive_check
from pymc_dp.private_models.diagnostics import ClampedWarning, ConvergenceWarning
from pymc_dp.private_models.labels import NotSharedWarning, to_share
from pymc_dp.private_models.missed_mass import QuadratureWarning
from pymc_dp.private_models.prediction import predict
from pymc_dp.private_models.predictive import posterior_predictive
from pymc_dp.private_models.rewrite import private_model, rewrite
from pymc_dp.private_models.synthetic import combine, synthesize
from pymc_dp.publications import codebooks
from pymc_dp.publications.cell_prior import CellPrior
from pymc_dp.publications.census import read_census
from pymc_dp.publications.events import Clipped, Rounded, Suppressed, Threshold
from pymc_dp.publications.noises import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exact,
    GaussianNoise,
    LaplaceNoise,
    Skellam,
)
from pymc_dp.publications.noisy import Noisy
from pymc_dp.publications.publication import Codebook
from pymc_dp.publications.published import published
from pymc_dp.publications.randomise import randomise
from pymc_dp.publications.ratios import NoisyRatio
from pymc_dp.publications.table_draws import sample_table
from pymc_dp.publications.table_queries import PublishedTable, TableQuery
from pymc_dp.publications.table_steps import table_steps
from pymc_dp.publications.tables import ForcedResponse, NoiseTable, RandomisedResponse, RoundedToBase, Transitions, UnrelatedQuestion
from pymc_dp.releases.answers import RandomisedAnswers
from pymc_dp.releases.consistency import consistent
from pymc_dp.releases.from_records import release
from pymc_dp.releases.partial import add_up, partial_statistics, share_out
from pymc_dp.releases.release import Release
from pymc_dp.sampling import inspect, privatize, sample

if TYPE_CHECKING:
    from pymc_dp.audits.audit import Audit, audit
    from pymc_dp.planning.bounds import SuggestedBounds, suggest_bounds
    from pymc_dp.planning.plan import plan
    from pymc_dp.planning.private_bounds import PrivateBounds, private_bounds
    from pymc_dp.plots import (
        plot_audit,
        plot_ledger,
        plot_network,
        plot_plan,
        plot_posteriors,
        plot_privacy_share,
        plot_spending,
        plot_states,
    )
    from pymc_dp.queries import QuerySession

__version__ = version("pymc_dp")

__all__ = [
    "Advice",
    "Annealing",
    "Audit",
    "BallNormal",
    "Barker",
    "Bins",
    "CellPrior",
    "ClampedWarning",
    "Clipped",
    "Codebook",
    "ConvergenceWarning",
    "Cost",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exact",
    "ForcedResponse",
    "Fourier",
    "Gaussian",
    "GaussianNoise",
    "Gibbs",
    "Individual",
    "Inspection",
    "Laplace",
    "LaplaceNoise",
    "Ledger",
    "MissingWarning",
    "Natural",
    "NoiseTable",
    "Noisy",
    "NoisyRatio",
    "Norm",
    "NotSharedWarning",
    "Penalty",
    "Person",
    "PlannedWidths",
    "PosteriorSample",
    "PrivateBounds",
    "PrivateComputationError",
    "PublishedTable",
    "QuadratureWarning",
    "QuerySession",
    "RandomisedAnswers",
    "RandomisedResponse",
    "Refusal",
    "Release",
    "Rounded",
    "RoundedToBase",
    "Skellam",
    "SparseCellsWarning",
    "SuggestedBounds",
    "Suppressed",
    "TableQuery",
    "Threshold",
    "Transitions",
    "TrimmedBeta",
    "TrimmedDirichlet",
    "UnaccountedWarning",
    "UnrelatedQuestion",
    "WeakPrivacyWarning",
    "add_up",
    "advise",
    "annotate",
    "ask",
    "audit",
    "bounded_range",
    "codebooks",
    "combine",
    "compose",
    "consistent",
    "find_MAP",
    "gibbs_steps",
    "hidden_markov",
    "inspect",
    "lipschitz",
    "marginal_likelihoods",
    "partial_statistics",
    "plan",
    "plot_audit",
    "plot_ledger",
    "plot_network",
    "plot_plan",
    "plot_posteriors",
    "plot_privacy_share",
    "plot_spending",
    "plot_states",
    "posterior_predictive",
    "predict",
    "predictive_check",
    "private_bounds",
    "private_model",
    "privatize",
    "published",
    "randomise",
    "read_census",
    "release",
    "rewrite",
    "sample",
    "sample_table",
    "share_out",
    "smallest_probability",
    "suggest_bounds",
    "synthesize",
    "table_steps",
    "to_share",
    "utility",
]


OTHERS = {"fit": "sample", "load": "Release", "Budget": "Ledger", "Accountant": "Ledger", "summary": "inspect", "loo": "predictive_check"}
"""What functions are called elsewhere, and here."""


LATER = {
    "QuerySession": "queries",
    "audit": "audits.audit",
    "Audit": "audits.audit",
    "plan": "planning.plan",
    "private_bounds": "planning.private_bounds",
    "PrivateBounds": "planning.private_bounds",
    "suggest_bounds": "planning.bounds",
    "SuggestedBounds": "planning.bounds",
} | {name: "plots" for name in __all__ if name.startswith("plot_")}
"""Names whose modules are loaded when they are first used, so that ``import pymc_dp`` is quick."""


def __getattr__(name: str) -> object:
    """What is loaded when it is first named, or what a name that is not here may have meant."""
    if name == "queries":
        return import_module("pymc_dp.queries")
    if name in LATER:
        return getattr(import_module(f"pymc_dp.{LATER[name]}"), name)
    meant = OTHERS.get(name) or next(iter(get_close_matches(name, __all__, 1)), "")
    hint = f". Did you mean {meant!r}?" if meant and not name.startswith("__") else ""
    raise AttributeError(f"module 'pymc_dp' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    """The public names, those among them that are loaded later."""
    return sorted([*__all__, "queries", "__version__"])
