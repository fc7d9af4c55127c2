"""Where a record can hide in a model of randomised records: it is refused before anything is paid, or not in the private model."""

import cloudpickle
import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.distributions.transforms import LogTransform as Log

import pymc_dp as pmdp

REAL, N = 7123.456789012345, 12
X = np.linspace(0, 1, N)
X[5] = REAL


class BlackBox(pytensor.graph.Op):
    """An operation of a user's own, which holds records."""

    itypes = (pt.dscalar,)
    otypes = (pt.dscalar,)

    def __init__(self, data):
        self.data = data

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.asarray(-((inputs[0] - self.data) ** 2).sum())


def outcome(mean):
    pm.Normal("y", mean, 1, observed=np.zeros(N))


def starts_at_data():
    outcome(pm.Normal("each", shape=N, initval=pm.Data("d", X)))


def starts_at_shared():
    outcome(pm.Normal("each", shape=N, initval=pytensor.shared(X)))


def starts_at_a_mean():
    outcome(pm.Normal("a", initval=pt.as_tensor(X).mean()))


def starts_in_two_rows():
    outcome(pm.Normal("a", shape=2 * N, initval=np.r_[X, X]).sum())


def behind_each_other():
    outcome(pm.Normal("a") * pt.as_tensor(np.r_[X, X])[:N])


def every_second():
    outcome(pm.Normal("a") * pt.as_tensor(np.c_[X, X].ravel())[::2])


def in_a_potential():
    a = pm.Normal("a")
    pm.Potential("p", BlackBox(X)(a))
    outcome(a)


def in_a_deterministic():
    a = pm.Normal("a")
    pm.Deterministic("p", BlackBox(X)(a))
    outcome(a)


def in_how_a_prior_is_drawn():
    outcome(pm.CustomDist("z", random=lambda rng=None, size=None: X.mean(), logp=lambda v: -(v**2)))


def in_the_density_of_an_outcome():
    def law(of):
        return lambda value, a: of(pm.Normal.dist(a + X, 1), value)

    pm.CustomDist("y", pm.Normal("a"), logp=law(pm.logp), logcdf=law(pm.logcdf), observed=np.zeros(N))


def in_a_note():
    a = pm.Normal("a")
    a.tag.mine = X
    outcome(a)


def in_a_note_on_a_mean():
    mean = pm.Normal("a") * 1.5
    mean.tag.mine = X
    outcome(mean)


def in_two_halves():
    outcome(pm.Normal("a") * pt.concatenate([pt.as_tensor(X[: N // 2]), pt.as_tensor(X[N // 2 :])]))


def in_a_loop():
    a = pm.Normal("a")
    outcome(sum(a * float(x) for x in np.outer(X, range(1, 7)).ravel()))


def in_a_potential_for_each():
    a = pm.Normal("a")
    for k, x in enumerate(np.outer(X, range(1, 7)).ravel()):
        pm.Potential(f"p{k}", -((a - float(x)) ** 2))
    outcome(a)


def in_labels_of_more():
    pm.modelcontext(None).add_coord("g", np.r_[X, X])
    outcome(pm.Normal("a", dims="g").sum())


def in_a_transform():
    class Shifted(Log):
        def __init__(self, by):
            self.by = by

        def forward(self, value, *inputs):
            return pt.log(value + self.by[5] - REAL)

    outcome(pm.HalfNormal("a", default_transform=None, transform=Shifted(X)))


PLACES = [
    starts_at_data, starts_at_shared, starts_at_a_mean, starts_in_two_rows, behind_each_other, every_second, in_a_potential,
    in_a_deterministic, in_a_transform, in_how_a_prior_is_drawn, in_the_density_of_an_outcome, in_a_note, in_labels_of_more,
    in_a_note_on_a_mean, in_two_halves, in_a_loop, in_a_potential_for_each,
]  # fmt: skip


@pytest.mark.parametrize("hide", PLACES, ids=lambda hide: hide.__name__)
def test_no_place_in_a_model_carries_a_record_into_the_private_model(hide, tmp_path):
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=5, create=True)
    with pm.Model() as model:
        hide()
    bins = {"y": pmdp.Bins(-2, 2, 3)}
    try:
        answers = pmdp.randomise(model, data=pd.DataFrame({"y": X}), bounds=bins, epsilon=2.0, ledger=ledger)
    except pmdp.Refusal:
        assert ledger.remaining().epsilon == 5
        return
    private = cloudpickle.dumps(pmdp.published(model, answers))
    assert np.float64(REAL).tobytes() not in private
    assert np.float64(X.mean()).tobytes() not in private


def test_many_unknowns_are_no_loop_over_records():
    with pm.Model() as model:
        outcome(sum(pm.Normal(f"a{k}", 0.0, 1.0) for k in range(70)))
    answers = pmdp.randomise(model, data=pd.DataFrame({"y": X}), bounds={"y": pmdp.Bins(-2, 2, 3)}, epsilon=2.0)
    assert len(pmdp.published(model, answers).free_RVs) == 71


@pytest.mark.parametrize("rests", ["prior", "potential", "start"])
def test_what_is_public_is_not_taken_for_hidden(rests):
    with pm.Model() as model:
        z = pm.Data("z", X / REAL)
        a = pm.Normal("a", z if rests == "prior" else 0, 1, shape=N, initval=np.zeros(N) if rests == "start" else None)
        if rests == "potential":
            pm.Potential("p", (a * z).sum())
        outcome(a + z)
    data = pd.DataFrame({"y": X})
    answers = pmdp.randomise(model, data=data, bounds={"y": pmdp.Bins(-2, 2, 3)}, epsilon=2.0, public=["z"])
    private = pmdp.published(model, answers)
    assert np.isfinite(private.compile_logp(mode="FAST_COMPILE")(private.initial_point()))
