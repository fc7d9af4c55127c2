"""Steps of samplers that suit a private model where the user says nothing of them."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pymc as pm

from pymc_dp.private_models.events import jittered_unknowns
from pymc_dp.private_models.nutpie_draws import takes_nutpie
from pymc_dp.private_models.possible_starts import stopped_at
from pymc_dp.releases.noisy_statistic import NoisyStatistic


class Given(Protocol):
    """A release, or numbers that others published."""

    @property
    def statistics(self) -> Sequence[NoisyStatistic]:
        """What was released of every observed variable."""


SET_BY = ("nuts", "nuts_sampler_kwargs", "init", "callback", "compile_kwargs", "backend")
"""Whoever says one of these chooses how ``pm.sample`` takes steps."""


MOST = 60
"""Unknowns whose correlations are adapted to: of 100 it takes nutpie a second, of 200 two minutes."""


def suited(released: Given, unknowns: int) -> dict[str, Any]:
    """What ``nuts`` of nutpie suits a release's posterior: ``pm.sample(model=private, nuts_sampler="nutpie", nuts=suited(released, 9))``.

    Where several numbers are released of a cell, noise lies across the parameters behind them and leaves ridges. Adapting to
    correlations gives two to ten times the effective draws there. With one number a cell there is nothing to gain, and hierarchies
    lose: scales alone are adapted to, and so where there are many unknowns. Ridges of regressions are curved, too: smaller steps keep
    them from divergent draws. Smaller still are those of single numbers, which leave rates near 0 and scales of hierarchies a long tail:
    of 60 fits of rare events (Beta(.5, 100), 1,000 records, epsilon .3) 18 had divergent draws at nutpie's own .8, 3 at .9, none at .95.
    """
    several = [statistic.noisy.shape[-1] > 1 for statistic in released.statistics]
    adaptation = {"adaptation": "low_rank"} if any(several) and unknowns <= MOST else {}
    if any(statistic.regression is not None for statistic in released.statistics):
        return adaptation | {"target_accept": 0.9}
    return adaptation if any(several) else {"target_accept": 0.95}


def default_steps(private: pm.Model, released: Given, sampler: Mapping[str, Any], known: bool = False) -> dict[str, Any]:
    """How ``pm.sample`` is to take steps where nothing is said; with ``known`` it is known that it would take nutpie.

    PyMC's own sampler jitters every unknown by up to 1, ten times at most: where a likelihood has no density at some values, or some
    unknowns are not to be jittered, chains start without.
    """
    chosen = any(sampler.get(name) not in (None, "auto") for name in SET_BY) or not isinstance(sampler.get("initvals"), dict | None)
    if chosen or sampler.get("nuts_sampler") not in (None, "pymc", "nutpie"):
        return {}
    if sampler.get("nuts_sampler") == "pymc" or not (known or takes_nutpie(private)):
        as_they_are = len(jittered_unknowns(private)) < len(private.free_RVs)
        return {"init": "adapt_diag"} if as_they_are or stopped_at(private) else {}
    shapes = private.eval_rv_shapes()
    unknowns = sum(int(np.prod(shapes[statistic.name])) for statistic in private.value_vars)
    nuts = {name: value for name, value in suited(released, unknowns).items() if sampler.get(name) is None}
    return {"nuts_sampler": "nutpie", "nuts": nuts} if nuts else {}
