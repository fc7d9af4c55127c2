import contextlib
import gc
import os
import warnings
from collections import defaultdict

from environment import COMPILED as COMPILED

import numpy as np
import pytensor
import pytest
from pymc_dp.privacy import mechanisms
from pymc_dp.plans.missing import warn_of_missing
from sampled import cpu
from pymc_dp.releases.prepared import warn_that_nothing_remembers


class Seam:
    """Records what passes the one place where noise is drawn, and answers with frozen answers while there are, then with frozen noise."""

    def __init__(self, noise, frozen=()):
        self.noise, self.frozen = noise, frozen
        self.exact: list[list[int]] = []
        self.answers: list[list[int]] = []
        self.scales: list[float] = []

    def __call__(self, exact, scale):
        noisy = [value + int(offset) for value, offset in zip(exact, np.broadcast_to(self.noise, len(exact)))]
        self.answers.append(self.frozen[len(self.exact)] if len(self.exact) < len(self.frozen) else noisy)
        self.exact.append(list(exact))
        self.scales.append(scale)
        return self.answers[-1]


SAMPLED = "sampled"
"""Why a case of a quick test is slow: it runs there as it would by default."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of long tests only some cases run by default: see ``sampled``."""
    from mutants import MUTANTS
    from sampled import left_out, seconds

    killers, each, cases = {mutant.killer for mutant in MUTANTS}, seconds(), defaultdict(list)
    for item in items:
        if (name := name_of(item)) in each and item.get_closest_marker("slow") is None:
            cases[name].append(item)
    for name, several in cases.items():
        kills = [f"{item.path.name}::{item.name}" in killers for item in several]
        for item, left in zip(several, left_out(name, each[name], kills), strict=True):
            if left:
                item.add_marker(pytest.mark.slow(SAMPLED))


def name_of(item):
    """File and function of a test."""
    return f"{item.path.name}::{item.originalname}" if isinstance(item, pytest.Function) else ""


def pytest_collection_finish():
    """What was imported stays, so that garbage is not looked for in it: a tenth of the time of the suite."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """A quick test has the value of a small graph from Python before Numba has compiled it, unless it is about what is compiled."""
    before = cpu()
    marked = [item.get_closest_marker(name) for name in ("slow", "nightly", "compiled")]
    as_users = any(marker is not None and SAMPLED not in marker.args for marker in marked)
    with contextlib.nullcontext() if as_users else pytensor.config.change_flags(mode="FAST_COMPILE"):
        result = yield
    if "PYMC_DP_SECONDS" in os.environ:
        with open(os.environ["PYMC_DP_SECONDS"], "a") as file:
            file.write(f"{name_of(item)},{cpu() - before}\n")
    return result


@pytest.fixture(autouse=True, scope="session")
def said_before():
    """What is said once per process is said before the first test, so that no two calls differ by it; tests of it clear the cache."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warn_of_missing()
        warn_that_nothing_remembers()


@pytest.fixture
def exact_seam(monkeypatch):
    """The release says the exact statistics: to compare with what they should be."""
    seam = Seam(0)
    monkeypatch.setattr(mechanisms, "_opendp_laplace", seam)
    return seam
