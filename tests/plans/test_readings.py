"""A call reads its model once: of its graph nothing is used up, so that all that follows shares one reading."""

import sys

import numpy as np
import pymc as pm
import pytest

import pymc_dp as pmdp
from pymc_dp.models import reader


def heights():
    with pm.Model() as model:
        x = pm.Data("x", np.linspace(0, 1, 40))
        pm.Normal("y", pm.Normal("a") + pm.Normal("b") * x, pm.HalfNormal("s"), observed=np.linspace(-1, 1, 40))
    return model


BOUNDS = {"x": (0, 1), "y": (-2, 2)}


@pytest.fixture
def readings(monkeypatch):
    """How often a model was read, as a list that grows."""
    read, seen = reader.read_model, []

    def counting(*arguments, **named):
        seen.append(named)
        return read(*arguments, **named)

    for name, module in list(sys.modules.items()):
        if name.startswith("pymc_dp") and getattr(module, "read_model", None) is read:
            monkeypatch.setattr(module, "read_model", counting)
    return seen


CALLS = {
    "inspect": lambda model: pmdp.inspect(model, bounds=BOUNDS),
    "release": lambda model: pmdp.release(model, epsilon=1.0, bounds=BOUNDS),
    "privatize": lambda model: pmdp.privatize(model, epsilon=1.0, bounds=BOUNDS),
    "sample": lambda model: pmdp.sample(
        2, model=model, epsilon=1.0, bounds=BOUNDS, tune=2, chains=1, nuts_sampler="pymc", progressbar=False,
        compile_kwargs={"mode": "FAST_COMPILE"}, compute_convergence_checks=False, init="adapt_diag",
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_a_call_reads_its_model_once(name, readings):
    CALLS[name](heights())
    assert len(readings) == 1


def test_a_spec_is_not_used_up():
    """Two private models of one reading, and a third of a reading of its own, have the same variables and densities."""
    from pymc_dp.plans.protection import protection_of
    from pymc_dp.private_models.rewrite import rewritten

    model = heights()
    released = pmdp.release(model, epsilon=1.0, bounds=BOUNDS)
    spec = protection_of(bounds=BOUNDS).read(model)
    several = [rewritten(spec, released), rewritten(spec, released), pmdp.rewrite(model, released)]
    assert len({tuple(one.named_vars) for one in several}) == 1
    point = several[0].initial_point()
    densities = [one.compile_logp(mode="FAST_COMPILE")(point) for one in several]
    assert len(set(map(float, densities))) == 1
    assert not set(several[0].free_RVs) & set(several[1].free_RVs)
