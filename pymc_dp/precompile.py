"""What private models have in common, compiled before the first is sampled: ``python -m pymc_dp compile``.

Compiled code is kept in PyTensor's compile directory (``base_compiledir``). Whichever model a machine samples first compiles its loops
and much of what is around them, and later ones find both there. Small models of made-up records can go first: when an image is built, or
before a course.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pymc as pm

from pymc_dp.sampling import sample

RECORDS = np.arange(60)
VALUES = np.sin(RECORDS)


def compiled_ahead() -> Iterator[str]:
    """What is compiled next, before it is."""
    for name, (make, arguments) in MODELS.items():
        yield name
        with pm.Model() as model:
            make()
        quietly = {"progressbar": False, "compute_convergence_checks": False}
        sample(10, tune=10, chains=1, model=model, **{"epsilon": 1} | arguments | quietly)


def _count() -> None:
    pm.Bernoulli("y", pm.Beta("theta", 1, 1), observed=RECORDS % 2)


def _normal() -> None:
    pm.Normal("y", pm.Normal("mu", 0, 1), pm.HalfNormal("sigma", 1), observed=VALUES)


def _poisson() -> None:
    pm.Poisson("y", pm.Gamma("rate", 2, 1), observed=RECORDS % 5)


def _categorical() -> None:
    pm.Categorical("y", pm.Dirichlet("p", np.ones(3)), observed=RECORDS % 3)


def _groups() -> None:
    theta = pm.Beta("theta", 1, 1, shape=6)
    pm.Bernoulli("y", theta[RECORDS % 6], observed=RECORDS // 6 % 2)


def _linear() -> None:
    mean = pm.Normal("a", 0, 1) + pm.Normal("b", 0, 1) * pm.Data("x", VALUES)
    pm.Normal("y", mean, pm.HalfNormal("sigma", 1), observed=VALUES**2)


def _logistic() -> None:
    predictor = pm.Normal("a", 0, 1) + pm.math.dot(pm.Data("X", np.stack([VALUES, VALUES**2], axis=1)), pm.Normal("b", 0, 1, shape=2))
    pm.Bernoulli("y", logit_p=predictor, observed=RECORDS % 2)


MODELS: dict[str, tuple[Callable[[], None], dict]] = {
    "one count": (_count, {}),
    "one clamped sum": (_poisson, {"bounds": {"y": (0, 9)}}),
    "two clamped sums": (_normal, {"bounds": {"y": (-3, 3)}}),
    "a few counts": (_categorical, {}),
    "many counts": (_groups, {"epsilon": 2}),
    "many counts under much noise": (_groups, {"epsilon": 0.2}),
    "second moments of a linear predictor": (_linear, {"bounds": {"x": (-3, 3), "y": (-5, 5)}}),
    "scores under a link": (_logistic, {"bounds": {"X": (-3, 3), "logit(y)": (-3, 3)}}),
}
