"""Draws by nutpie are those of ``pm.sample``, and what is compiled once serves other releases of the same model and no other model."""

import ctypes
import gc
import threading
import weakref

import numpy as np
import nutpie
import pymc as pm
import pytensor.tensor as pt
import pytest
from gallery import GALLERY, N
from pymc.initial_point import make_initial_point_fn
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

import pymc_dp as pmdp
from pymc_dp.private_models.fingerprint import Unkept, fingerprint
from pymc_dp.private_models.nutpie_draws import COMPILED, Compiled, drawn_by_nutpie, nutpie_model

QUICK = {"draws": 30, "tune": 60, "chains": 2, "cores": 1, "progressbar": False, "random_seed": 3, "compute_convergence_checks": False}


def key_of(private, var_names=None):
    start = make_initial_point_fn(model=private)(0)
    return fingerprint(private, start, var_names).key


def groups(
    sd=1.0, x=0.0, epsilon=1.0, name="a", dim="group", labels="abc", transform=None, last=None, dtype="float64", doubled=True, check_bounds=True,
    shift=np.arange(3.0),
):  # fmt: skip
    """A private model, everything of which can be another."""
    g = np.arange(60) % 3
    with pm.Model(coords={dim: labels}, check_bounds=check_bounds) as model:
        a = pm.Normal(name, 0, sd, dims=dim, default_transform=transform)
        if doubled:
            pm.Deterministic("twice", 2 * a)
        shift = pm.Data("shift", shift + x)
        last = last or (lambda value: value)
        pm.Bernoulli("y", logit_p=last(a + shift.astype(dtype))[g], observed=np.arange(60) % 2)
    return pmdp.privatize(model, epsilon=epsilon, public=[dim, "shift"])


OTHERS = {
    "a prior's constant": {"sd": 1.0 + 2**-50},
    "public data": {"x": 2**-50},
    "the noise": {"epsilon": 2.0},
    "a name": {"name": "b"},
    "a dim": {"dim": "team"},
    "labels": {"labels": "abd"},
    "a coordinate of the sampler": {"transform": pm.distributions.transforms.Interval(-10.0, 10.0)},
    "an operation": {"last": pt.tanh},
    "a type": {"dtype": "float32"},
    "what is kept": {"doubled": False},
    "checks": {"check_bounds": False},
}


def test_another_release_of_a_model_has_the_same_key():
    first, second = groups(), groups()
    assert (first["y"].eval() != second["y"].eval()).any() or (first["y_released"].get_value() != second["y_released"].get_value()).any()
    assert key_of(first) == key_of(second)
    assert hash(key_of(first)) == hash(key_of(second))


@pytest.mark.parametrize("other", OTHERS)
def test_a_model_that_differs_in_one_thing_has_another_key(other):
    assert key_of(groups()) != key_of(groups(**OTHERS[other]))


def test_labels_that_are_equal_in_python_are_told_apart():
    keys = [key_of(groups(labels=labels)) for labels in ((0, 1, 2), (0.0, 1.0, 2.0), (False, True, 2), ("0", "1", "2"), (-0.0, 1.0, 2.0))]
    assert all(first != second for k, first in enumerate(keys) for second in keys[:k])
    zeros = [key_of(groups(shift=np.array([zero, 1.0, 2.0]))) for zero in (0.0, -0.0)]
    assert zeros[0] != zeros[1]


def test_what_is_kept_of_every_draw_is_part_of_the_key():
    private = groups()
    keys = [key_of(private, names) for names in (None, ["a"], ["a", "twice"], ["twice", "a"])]
    assert keys[2] == keys[3]
    assert len(set(keys)) == 3


def test_operations_of_the_user_are_compiled_every_time():
    """Whether two of them do the same is not known: these say that they are equal."""

    class Times(Op):
        __props__ = ()

        def __init__(self, factor):
            self.factor = factor

        def make_node(self, value):
            return Apply(self, [value], [value.type()])

        def perform(self, node, inputs, outputs):
            outputs[0][0] = self.factor * inputs[0]

    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("theta", 1, 1), observed=np.arange(60) % 2)
    private = pmdp.privatize(model, epsilon=1)
    with private:
        pm.Deterministic("more", Times(2.0)(private["theta"]))
    with pytest.raises(Unkept):
        key_of(private)
    assert nutpie_model(private, {}) is None


@pytest.mark.parametrize("entry", [entry for entry in GALLERY if entry.aware], ids=lambda entry: entry.name)
def test_every_model_of_the_gallery_has_one_key(entry):
    """Whatever its release and its records are, but for numbers of records; and what is compiled of it can be compared."""
    keys = []
    for seed in (1, 2):
        model, arguments = entry.make(N, seed)
        keys.append(key_of(pmdp.privatize(model, epsilon=1e3, **arguments)))
    assert keys[0] == keys[1]
