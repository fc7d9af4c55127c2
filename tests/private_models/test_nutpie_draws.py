"""Draws by nutpie are those of ``pm.sample``, and what is compiled once serves other releases of the same model and no other model."""

import ctypes
import gc
import threading
import weakref
from dataclasses import replace

import numpy as np
import nutpie
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from gallery import GALLERY
from pymc.initial_point import make_initial_point_fn
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

import pymc_dp as pmdp
from pymc_dp.private_models.fingerprint import Uncacheable, data_of_release, fingerprint
from pymc_dp.private_models.nutpie_draws import COMPILED, Compiled, drawn_by_nutpie, nutpie_model

QUICK = {"tune": 60, "chains": 2, "cores": 1, "progressbar": False, "random_seed": 3, "compute_convergence_checks": False}


def key_of(private, var_names=None):
    start = make_initial_point_fn(model=private)(0)
    return fingerprint(private, start, data_of_release(private), var_names).key


def groups(sd=1.5, epsilon=1.0, name="a", dim="group", labels="abc", transform=None, last=None, doubled=True, shift=(0.0, 1.0, 2.0)):
    """A private model, everything of which can be another."""
    g = np.arange(60) % 3
    with pm.Model(coords={dim: labels}) as model:
        a = pm.Normal(name, 0, sd, dims=dim, default_transform=transform)
        if doubled:
            pm.Deterministic("twice", 2 * a)
        predictor = a + pm.Data("shift", np.array(shift))
        pm.Bernoulli("y", logit_p=(last(predictor) if last else predictor)[g], observed=np.arange(60) % 2)
    return pmdp.privatize(model, epsilon=epsilon, public=[dim, "shift"])


OTHERS = {
    "a prior's constant": {"sd": 2.5},
    "public data": {"shift": (2**-50, 1.0, 2.0)},
    "the sign of a zero": {"shift": (-0.0, 1.0, 2.0)},
    "the noise": {"epsilon": 2.0},
    "a name": {"name": "b"},
    "a dim": {"dim": "team"},
    "labels": {"labels": "abd"},
    "a coordinate of the sampler": {"transform": pm.distributions.transforms.Interval(-10.0, 10.0)},
    "an operation": {"last": pt.tanh},
    "what is kept": {"doubled": False},
}


def test_nobody_is_asked_for_the_blas_of_c_code(monkeypatch):
    """PyTensor compiles something to find it out, and warns where there is none, as after any installation by pip."""
    option = pytensor.config._config_var_dict["blas__ldflags"]
    private = groups()
    monkeypatch.delattr(option, "val", raising=False)
    unread = key_of(private)
    assert not hasattr(option, "val")
    monkeypatch.setattr(option, "val", "-lblas", raising=False)
    assert key_of(private) != unread


def test_another_release_of_a_model_has_the_same_key():
    first, second = groups(), groups()
    assert key_of(first) == key_of(second)
    assert hash(key_of(first)) == hash(key_of(second))


@pytest.mark.parametrize("other", OTHERS)
def test_a_model_that_differs_in_one_thing_has_another_key(other):
    assert key_of(groups()) != key_of(groups(**OTHERS[other]))


def test_labels_that_are_equal_in_python_are_told_apart():
    keys = [key_of(groups(labels=labels)) for labels in ((0, 1, 2), (0.0, 1.0, 2.0), (False, True, 2), ("0", "1", "2"), (-0.0, 1.0, 2.0))]
    assert all(first != second for k, first in enumerate(keys) for second in keys[:k])


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
    with pytest.raises(Uncacheable):
        key_of(private)
    assert nutpie_model(private, {}, data_of_release(private)) is None


@pytest.mark.parametrize(
    "entry", [pytest.param(entry, id=entry.name, marks=[pytest.mark.slow] if k % 12 else []) for k, entry in enumerate(GALLERY)]
)
def test_every_model_of_the_gallery_has_one_key(entry):
    """Whatever its release is; and all that is compiled of it can be compared."""
    model, arguments = entry.make()
    first, second = (key_of(pmdp.privatize(model, epsilon=1e3, **arguments)) for _ in range(2))
    assert first == second


# ---------- what is compiled
def value_and_gradient(compiled, x):
    """What nutpie evaluates at a point."""
    double = ctypes.POINTER(ctypes.c_double)
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, double, double, double, ctypes.c_void_p)(compiled.compiled_logp_func.address)
    x, gradient, value = np.ascontiguousarray(x), np.empty(len(x)), np.empty(1)
    arrays = [each.ctypes.data_as(double) for each in (x, gradient, value)]
    assert call(len(x), *arrays, compiled.user_data.ctypes.data) == 0
    return value[0], gradient


def private_index(records):
    theta = pm.Beta("theta", 2, 2, shape=4)
    pm.Bernoulli("y", theta[records.integers(0, 4, 200)], observed=records.integers(0, 2, 200))


def linear(records):
    x = records.uniform(-1, 1, 200)
    mean = pm.Normal("a", 0, 1) + pm.Normal("b", 0, 1) * pm.Data("x", x)
    pm.Normal("y", mean, pm.HalfNormal("sigma", 1), observed=x + records.normal(0, 0.5, 200))


def towns(records):
    theta = pm.Beta("theta", pm.Gamma("a", 2, 0.5), pm.Gamma("b", 2, 0.5), shape=5)
    pm.Binomial("y", pm.Data("n", np.arange(20, 25)), theta, observed=records.integers(3, 9, 5))


STRUCTURES = {
    private_index: {},
    linear: {"bounds": {"x": (-1, 1), "y": (-3, 3)}},
    towns: {"unit": "individual", "public": ["n"]},
}


def two_of(structure):
    """Private models of two releases of one model, the records of the second being others."""
    models = []
    for seed in (1, 2):
        with pm.Model() as model:
            structure(np.random.default_rng(seed))
        models.append(pmdp.privatize(model, epsilon=1.0, **STRUCTURES[structure]))
    return models


@pytest.fixture
def compilations(monkeypatch):
    """Nothing is kept from before; the models that nutpie compiles, by number."""
    COMPILED.clear()
    asked, theirs = [], nutpie.compile_pymc_model

    def compiling(model, **settings):
        asked.append(len(asked))
        return theirs(model, **settings)

    monkeypatch.setattr(nutpie, "compile_pymc_model", compiling)
    return asked


def check_density(private, compiled):
    density, gradient = private.compile_logp(mode="FAST_COMPILE"), private.compile_dlogp(mode="FAST_COMPILE")
    start = private.initial_point(0)
    rng = np.random.default_rng(0)
    for _ in range(3):
        point = {name: value + rng.uniform(-0.5, 0.5, value.shape) for name, value in start.items()}
        value, slopes = value_and_gradient(compiled, np.concatenate([np.ravel(point[v.name]) for v in private.value_vars]))
        assert value == pytest.approx(float(density(point)), rel=1e-9)
        assert slopes == pytest.approx(gradient(point), rel=1e-7, abs=1e-9)


@pytest.mark.compiled
@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda structure: structure.__name__)
def test_one_compilation_serves_both_releases_and_draws_are_those_of_pm_sample(structure, compilations):
    """Density and gradient are the private model's; draws, dims, attributes and groups are PyMC's, bit by bit, from PyMC's start."""
    first, second = two_of(structure)
    for private in (first, second):
        check_density(private, nutpie_model(private, {}, data_of_release(private)).compiled())
    assert len(compilations) == 1
    settings = QUICK | {"target_accept": 0.9, "nuts": {"max_treedepth": 5}}
    kept = {"discard_tuned_samples": False, "idata_kwargs": {"include_transformed": True}}
    from_there = replace(nutpie_model(second, settings, data_of_release(second)), initial=True)
    ours = drawn_by_nutpie(from_there, 30, settings | kept)
    assert len(compilations) == 1
    theirs = pm.sample(30, model=second, **settings | kept | {"nuts": dict(settings["nuts"])})
    assert len(compilations) == 2
    assert ours.groups == theirs.groups
    for group in ours.groups:
        one, other = ours[group].to_dataset(), theirs[group].to_dataset()
        assert one.equals(other), group
        assert list(one.variables) == list(other.variables)
        differ = {name for name in one.attrs.keys() | other.attrs.keys() if one.attrs.get(name) != other.attrs.get(name)}
        assert differ <= {"created_at", "sampling_time"}


@pytest.mark.slow
@pytest.mark.parametrize("entry", GALLERY[::8], ids=lambda entry: entry.name)
def test_the_compiled_density_of_another_release_is_the_model_s_own(entry, compilations):
    model, arguments = entry.make()
    for _ in range(2):
        private = pmdp.privatize(model, epsilon=1e3, **arguments)
        check_density(private, nutpie_model(private, {}, data_of_release(private)).compiled())
    assert len(compilations) == 1


@pytest.mark.slow
def test_a_covariance_is_compiled_once(compilations):
    """What compiling makes of the graphs that its transform holds is not seen by the next private model."""
    with pm.Model() as model:
        chol, *_ = pm.LKJCholeskyCov("chol", n=2, eta=2, sd_dist=pm.HalfNormal.dist(1))
        pm.MvNormal("y", pm.Normal("mu", shape=2), chol=chol, observed=np.zeros((20, 2)))
    for _ in range(2):
        private = pmdp.privatize(model, epsilon=1.0, bounds={"y": (-3, 3)}, missing={})
        nutpie_model(private, {}, data_of_release(private)).compiled()
    assert len(compilations) == 1


@pytest.mark.compiled
def test_the_same_seed_gives_the_same_draws_whether_it_was_compiled_before_or_not(compilations):
    models = two_of(linear)
    draws = [
        drawn_by_nutpie(nutpie_model(private, QUICK, data_of_release(private)), 30, QUICK)["posterior"] for private in (*models, *models)
    ]
    COMPILED.clear()
    again = drawn_by_nutpie(nutpie_model(models[1], QUICK, data_of_release(models[1])), 30, QUICK)["posterior"]
    assert len(compilations) == 2
    assert draws[0].equals(draws[2])
    assert draws[1].equals(draws[3])
    assert draws[1].equals(again)
    assert not draws[0].equals(draws[1])


@pytest.mark.compiled
def test_threads_do_not_get_each_other_s_release():
    models = two_of(towns) + two_of(towns)
    alone = [drawn_by_nutpie(nutpie_model(private, QUICK, data_of_release(private)), 30, QUICK)["posterior"] for private in models]
    found = [None] * len(models)

    def draw(k, ready):
        found[k] = drawn_by_nutpie(ready, 30, QUICK)["posterior"]

    threads = [
        threading.Thread(target=draw, args=(k, nutpie_model(private, QUICK, data_of_release(private)))) for k, private in enumerate(models)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one.equals(other) for one, other in zip(alone, found, strict=True))


@pytest.mark.compiled
def test_neither_the_user_s_model_nor_the_private_one_is_kept_alive(compilations):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("theta", 1, 1), observed=np.arange(60) % 2)
    pmdp.sample(30, model=model, epsilon=1.0, **QUICK)
    private = pmdp.privatize(model, epsilon=1.0)
    assert nutpie_model(private, {}, data_of_release(private)).known
    drawn_by_nutpie(nutpie_model(private, QUICK, data_of_release(private)), 30, QUICK)
    assert len(compilations) == 1
    models = [weakref.ref(model), weakref.ref(private)]
    del model, private
    gc.collect()
    assert [each() for each in models] == [None, None]
    assert COMPILED.models


def test_what_was_not_asked_for_the_longest_goes_first():
    compiled = Compiled(2)
    for name in "ab":
        compiled.put((name,), name)
    assert compiled.get(("a",)) == "a"
    compiled.put(("c",), "c")
    assert [compiled.get((name,)) for name in "abc"] == ["a", None, "c"]


def test_arguments_that_pm_sample_has_to_read_go_to_it():
    private = groups()
    for said in ({"nuts_sampler": "pymc"}, {"initvals": [{"a": 0}]}, {"init": "adapt_diag"}, {"callback": print}, {"backend": "numba"}):
        assert nutpie_model(private, said, data_of_release(private)) is None
