"""Simulated records -> how wide the posterior is, without privacy and after a release: fits by the functions that ``sample`` uses."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pymc as pm
import pytensor
from pytensor.graph.basic import Variable

from pymc_dp.models.simulated_values import distribution_on
from pymc_dp.models.spec import Likelihood
from pymc_dp.models.structure import substitute
from pymc_dp.planning.records import Simulated
from pymc_dp.plans.naming import drawn_of
from pymc_dp.plans.widths import QUANTILES
from pymc_dp.privacy.guard import quiet
from pymc_dp.private_models.diagnostics import problems_of_chains
from pymc_dp.private_models.nutpie_draws import drawn_by_nutpie, nutpie_model
from pymc_dp.private_models.rewrite import rewritten, without_likelihoods
from pymc_dp.releases.release import Release
from pymc_dp.releases.simulated import PublicSide
from pymc_dp.sampling import chains_of


@dataclass(frozen=True)
class Sampler:
    """How posteriors are drawn: widths need fewer draws than a result."""

    draws: int = 500
    tune: int = 500
    chains: int = 2

    def settings(self, seed: int) -> dict[str, Any]:
        """Arguments of ``pm.sample``."""
        chains = {"tune": self.tune, "chains": self.chains, "random_seed": seed}
        return chains | {"progressbar": False, "quiet": True, "compute_convergence_checks": False}


@dataclass(frozen=True, eq=False)
class Fit:
    """The widths of one fit.

    Attributes
    ----------
    widths : mapping of str to ndarray
        For every variable (measures, *its shape).
    settled : bool
        Whether the chains can be trusted.
    """

    widths: Mapping[str, np.ndarray]
    settled: bool


def private_fit(side: PublicSide, released: Release, sampler: Sampler, seed: int) -> Fit:
    """The posterior given a release of simulated records, with its noise in the likelihood."""
    private = rewritten(side.spec, released)
    with quiet():  # of dozens of fits it is said in the end how many are not to be trusted
        tree = chains_of(sampler.draws, private, released, sampler.settings(seed))
    return _fit_of(side, tree)


def fit_without_privacy(side: PublicSide, records: Simulated, sampler: Sampler, seed: int) -> Fit:
    """The posterior given the simulated records as they are."""
    ordinary, data = ordinary_model(side, records)
    settings = sampler.settings(seed)
    with ordinary, quiet():
        by_nutpie = nutpie_model(ordinary, settings, data)
        if by_nutpie is None:
            tree = pm.sample(sampler.draws, model=ordinary, **settings)
        else:
            tree = drawn_by_nutpie(by_nutpie, sampler.draws, settings)
    return _fit_of(side, tree)


def ordinary_model(side: PublicSide, records: Simulated) -> tuple[pm.Model, dict[Variable, str]]:
    """The user's model of simulated records: its priors and likelihoods, as what was read of it says them; and where the records are."""
    spec = side.spec
    data: dict[Variable, str] = {}
    parameters = {likelihood.name: _on_records(likelihood, records, data) for likelihood in spec.likelihoods}
    ordinary, parameters = without_likelihoods(spec, parameters)
    with ordinary:
        for likelihood in spec.likelihoods:
            values = records.observed[likelihood.name]
            random = distribution_on(_standing_on(likelihood, parameters[likelihood.name]), {}, len(values))
            name = f"{likelihood.name}_simulated"
            observed = pm.Data(name, values, shape=values.shape)
            data[observed] = name
            ordinary.register_rv(random, likelihood.name, observed=observed)
    for name, value in spec.initial.items():
        ordinary.set_initval(ordinary[name], value)
    return ordinary, data


def _on_records(likelihood: Likelihood, records: Simulated, data: dict[Variable, str]) -> list[Variable]:
    """The parameters on the simulated records, which are added to ``data``."""
    rows = {}
    for k, (placeholder, array) in enumerate(zip(likelihood.inputs, records.inputs[likelihood.name], strict=True)):
        assert array is not None
        name = f"{likelihood.name}_simulated_{k}"
        rows[placeholder.variable] = pytensor.shared(array, name=name, shape=array.shape, borrow=True)
        data[rows[placeholder.variable]] = name
    return [substitute(parameter, rows) for parameter in likelihood.parameters]


def _standing_on(likelihood: Likelihood, parameters: list[Variable]) -> Likelihood:
    return replace(likelihood, parameters=tuple(parameters))


def _fit_of(side: PublicSide, tree: Any) -> Fit:
    """Widths from draws."""
    widths = {}
    for drawn in drawn_of(side.spec):
        values = tree["posterior"][drawn.name].transpose("chain", "draw", ...).values
        values = values.reshape(-1, *values.shape[2:]).astype(float)
        lower, upper = np.quantile(values, QUANTILES, axis=0)
        widths[drawn.name] = np.stack([values.std(axis=0, ddof=1), upper - lower])  # in the order of MEASURES
    with quiet():
        return Fit(widths, not problems_of_chains(tree))
