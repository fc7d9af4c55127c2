"""Simulated records -> a release of them with noise from a seed, as plans imagine one. It costs nothing, because no real record is read.

Of the user's model only what is public is read here: shapes, and arrays that were declared public. The path to every private array ends in
``public_side``, so that what is imagined rests on no record.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor
from pytensor.graph.basic import Variable

from pymc_dp.models.reader import read_model
from pymc_dp.models.spec import ModelSpec, RecordPath, RecordPaths
from pymc_dp.plans.person import key_of
from pymc_dp.plans.plan import Plan, refuse_problems
from pymc_dp.plans.protection import Protection
from pymc_dp.privacy.accounting import Cost, Weights
from pymc_dp.privacy.guard import boundary
from pymc_dp.privacy.mechanisms import Mechanism
from pymc_dp.privacy.noise_law import Noise
from pymc_dp.privacy.receipts import Receipt
from pymc_dp.releases.from_records import priced_of, released
from pymc_dp.releases.release import Release
from pymc_dp.releases.statistics import evaluate, records_of

type ByInput = Mapping[str, tuple[np.ndarray | None, ...]]
"""For every observed variable, what each of its likelihood's inputs stands for; None where that is not known."""


@dataclass(frozen=True, eq=False)
class PublicSide:
    """All that may be known of a model's records without paying.

    Attributes
    ----------
    spec : ModelSpec
        The model without records, of which nothing is refused.
    protection : Protection
    inputs : mapping of str to tuple of ndarray or None
        For every observed variable the inputs of its likelihood, those that are public.
    records : mapping of str to int
        How many records every observed variable has; empty where that is private.
    """

    spec: ModelSpec
    protection: Protection
    inputs: ByInput
    records: Mapping[str, int]


@boundary
def public_side(model: pm.Model, protection: Protection) -> PublicSide:
    """What is public about a model's records. No record is read.

    Raises
    ------
    Refusal
        Where the model cannot be released, whatever its bounds.
    """
    spec, paths = read_model(model, protection.public, aggregate=protection.aggregate, sized=protection.sized, binned=protection.binned)
    refuse_problems(spec)
    if protection.person is not None:
        key_of(model, spec, protection.person)  # refuses a key that is no column of the rows
    inputs = {
        likelihood.name: tuple(
            None if placeholder.private else evaluate(path.variable)
            for placeholder, path in zip(likelihood.inputs, paths[likelihood.name].inputs, strict=True)
        )
        for likelihood in spec.likelihoods
    }
    records = {name: len(records_of(path.observed)) for name, path in paths.items()} if protection.sized else {}
    return PublicSide(spec, protection, inputs, records)


@dataclass(frozen=True, eq=False)
class Imitation:
    """A noise of the same law as a mechanism's, from a generator with a seed: it protects nothing, and no release of records takes it.

    Attributes
    ----------
    like : Mechanism
    rng : Generator
    """

    like: Mechanism
    rng: np.random.Generator

    def __getattr__(self, name: str) -> Any:
        return getattr(self.like, name)

    def draw(self, totals: np.ndarray, scale: float, receipt: Receipt) -> np.ndarray:
        """Add noise to every entry: int64 of any shape in, int64 of the same shape out."""
        law = Noise(scale, gaussian=self.like.priced_as == "gaussian")
        with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
            noise = pm.draw(law.simulated(totals.shape), random_seed=self.rng)
        return totals + noise.astype(np.int64)


def imagined_release(
    whole: Plan, observed: Mapping[str, np.ndarray], inputs: ByInput, noise: Mechanism, total: Cost, weights: Weights,
    rng: np.random.Generator,
) -> Release:  # fmt: skip
    """A release of simulated records, by the code that releases records; nothing is charged for it.

    Where all rows of a person are protected, the simulated rows are those that count: each is given a name of its own.

    Parameters
    ----------
    whole : Plan
    observed : mapping of str to ndarray
        Simulated values of every observed variable.
    inputs : mapping of str to tuple of ndarray
        Every input of every likelihood, those that are private simulated.
    noise : Mechanism
    total : Cost
    weights : mapping, optional
        See ``release``.
    rng : Generator
        From which the noise is drawn.
    """
    paths = {
        likelihood.name: RecordPaths(
            RecordPath(_as_variable(observed[likelihood.name])),
            tuple(
                RecordPath(_as_variable(array), placeholder.axis)
                for placeholder, array in zip(likelihood.inputs, inputs[likelihood.name], strict=True)
            ),
            None if whole.protection.person is None else np.arange(len(observed[likelihood.name])),
        )
        for likelihood in whole.spec.likelihoods
    }
    priced = priced_of(whole, paths, noise, total, weights)
    return released(priced, paths, Imitation(noise, rng), Receipt(priced.draws, priced.total))


def _as_variable(array: np.ndarray | None) -> Variable:
    assert array is not None
    return pytensor.shared(array, borrow=True)
