"""What is compiled ahead is found by other models in other processes."""

import os
import subprocess
import sys

import pytest

from pymc_dp.precompile import MODELS

pytestmark = pytest.mark.slow

OTHERS = """
import numpy as np, pymc as pm, pymc_dp as pmdp
from numba.core import event

rng = np.random.default_rng(1)
with pm.Model() as table:
    b = pm.Normal("b", 0, 1, shape=3)
    predictor = b[0] + b[1] * rng.integers(0, 4, 200) + b[2] * rng.integers(0, 2, 200)
    pm.Bernoulli("y", logit_p=predictor, observed=rng.integers(0, 2, 200))
with pm.Model() as regression:
    mean = pm.math.dot(pm.Data("X", rng.uniform(size=(200, 3))), pm.Laplace("b", 0, 1, shape=3))
    pm.Normal("y", mean, pm.Gamma("sigma", 2, 1), observed=rng.normal(size=200))
with pm.Model() as events:
    pm.Poisson("events", pm.Gamma("rate", 2, 1), observed=rng.poisson(2, 200))
    pm.Normal("sizes", pm.Cauchy("mu", 0, 1), pm.HalfNormal("sigma", 1), observed=rng.normal(size=200))
bounds = [{"y:0": (0, 3), "y:1": {0, 1}}, {"X": (0, 1), "y": (-4, 4)}, {"events": (0, 12), "sizes": (-4, 4)}]
with event.install_recorder("numba:compile") as recorded:
    for model, given in zip((table, regression, events), bounds, strict=True):
        pmdp.sample(10, tune=10, chains=1, model=model, epsilon=1, bounds=given, progressbar=False)
started = [each.data["dispatcher"].py_func for _, each in recorded.buffer if each.is_start]
loops = ("pymc_dp.laws.", "pymc_dp.private_models.moment_loops")
print(*{function.__name__ for function in started if (function.__module__ or "").startswith(loops)})
"""


def test_other_models_compile_no_loop_again(tmp_path):
    environment = os.environ | {"PYTENSOR_FLAGS": f"base_compiledir={tmp_path}"}

    def python(*command):
        return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=True).stdout

    said = python("-m", "pymc_dp", "compile").splitlines()
    assert said == [f"[{k + 1}/{len(MODELS)}] {name}" for k, name in enumerate(MODELS)]
    assert python("-c", OTHERS).split() == []
