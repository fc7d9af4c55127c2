import os
import tempfile
import warnings

# The suite compiles in a directory of its own, so that a canary in a compile cache would be found there.
# Parallel workers inherit the directory, so that the last word in the flags is theirs, too.
COMPILED = os.environ.setdefault("PYMC_DP_TEST_COMPILED", tempfile.mkdtemp(prefix="pymc_dp_compiled_"))
flags = [flag for flag in os.environ.get("PYTENSOR_FLAGS", "").split(",") if flag and not flag.startswith("base_compiledir=")]
# Where a variable was made is not looked up: a fifth of the time of whatever builds graphs.
os.environ["PYTENSOR_FLAGS"] = ",".join([f"base_compiledir={COMPILED}", "traceback__limit=0", *flags])

import numpy as np
import pytest
from pymc_dp.privacy import mechanisms
from pymc_dp.plans.missing import warn_of_missing
from pymc_dp.releases.from_records import warn_that_nothing_remembers


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
