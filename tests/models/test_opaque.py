"""What a model may hold beside its graph: allow-lists of operations and of what functions hold, and one look at all that a pickle has."""

import functools
import importlib
import sys
import types
from collections import UserList

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
import xarray as xr
from pymc.logprob.transforms import Transform
from pytensor.graph import Apply, Op
from pytensor.printing import Print
from pytensor.tensor.elemwise import Elemwise
from pytensor.typed_list import make_list

import pymc_dp as pmdp
from pymc_dp import families
from pymc_dp.models.reader import read_spec

N = 40
X = np.random.default_rng(0).normal(size=N)
RECORDS = [float(x) for x in X]
Y = np.arange(N) % 2
SETTINGS = (1.0, 2.0)
pytestmark = [pytest.mark.filterwarnings("ignore")]


class Bag(dict):
    """An empty dict with an attribute."""

    def __init__(self, records):
        self.records = records


class Slotted:
    """A callable whose records stand in a slot."""

    __slots__ = ("records",)

    def __init__(self, records):
        self.records = records

    def __call__(self, value, mu):
        return -((value - mu - self.records[0]) ** 2)


def holding(thing):
    """A density whose closure holds a thing."""
    return lambda value, mu: -((value - mu) ** 2) * (1 if thing is None else 2)


def deep(thing, depth):
    if depth == 0:
        return holding(thing)
    inner = deep(thing, depth - 1)
    return lambda value, mu: inner(value, mu)


def by_default(value, mu, records=tuple(RECORDS)):
    return -((value - mu - records[0]) ** 2)


def by_global(value, mu):
    return -((value - mu - RECORDS[0]) ** 2)


def by_module(value, mu):
    return -((value - mu - OWN_MODULE.records[0]) ** 2)


def by_builtin(value, mu):
    return -((value - mu - globals()["RECORDS"][0]) ** 2)


def by_file(value, mu):
    return -((value - mu - np.loadtxt("records.txt")[0]) ** 2)


def by_import(value, mu):
    import test_opaque

    return -((value - mu - test_opaque.RECORDS[0]) ** 2)


def annotated(value: X, mu):
    return -((value - mu) ** 2)


def plain(value, mu):
    return pm.logp(pm.Normal.dist(mu, SETTINGS[0]), value) + by_helper(value)


def by_helper(value):
    return np.float64(0.5) * pt.zeros_like(value)


OWN_MODULE = types.ModuleType("somebodys")
OWN_MODULE.records = RECORDS
with_attribute = holding(None)
with_attribute = types.FunctionType(with_attribute.__code__, globals(), closure=with_attribute.__closure__)
with_attribute.records = RECORDS

HOLDING = {
    "partial": functools.partial(lambda records, value, mu: -((value - mu - records[0]) ** 2), X),
    "frame": holding(pd.DataFrame({"x": X})), "series": holding(pd.Series(X)), "xarray": holding(xr.DataArray(X)),
    "list": holding(RECORDS), "tuple": holding(tuple(RECORDS)), "dict": holding(dict(enumerate(RECORDS))), "set": holding(set(RECORDS)),
    "own list": holding(UserList(RECORDS)), "slots": Slotted(X), "bound builtin": holding(X.copy),
    "bound method": holding(Slotted(X).__call__), "memoryview": holding(memoryview(X)), "bytes": holding(X.tobytes()),
    "text": holding(str(RECORDS)), "short text": holding("".join(str(int(9 * abs(x))) + " " for x in RECORDS)),
    "integer": holding(int.from_bytes(X.tobytes(), "big")), "deep": deep(X, 12), "iterator": holding(iter(RECORDS)),
    "ufunc": holding(np.frompyfunc(lambda z: z + RECORDS[0], 1, 1)), "constant": holding(pt.constant(X)),
    "default": by_default, "global": by_global, "module": by_module, "builtin": by_builtin, "import": by_import, "annotation": annotated,
    "attribute": with_attribute, "object array": holding(np.array([X, None], dtype=object)[:1]),
    "texts": holding([str(x) for x in RECORDS]), "truth values": holding([x > 0 for x in RECORDS]), "own dict": holding(Bag(X)),
    "file": by_file, "generator": holding(np.random.default_rng(0)), "class": holding(Slotted), "model": holding(pm.Model()),
}  # fmt: skip


def custom(logp):
    with pm.Model() as model:
        prior = pm.CustomDist("prior", 0.0, logp=logp)
        pm.Bernoulli("y", logit_p=prior, observed=Y)
    return model


@pytest.mark.parametrize("name", HOLDING)
def test_what_a_density_holds_is_refused(name):
    """A list of floats gave the exact posterior at an epsilon of 1e-4."""
    model = custom(HOLDING[name])
    for door in (
        pmdp.release,
        pmdp.privatize,
        lambda model, epsilon: pmdp.sample(model=model, epsilon=epsilon, mechanism=pmdp.PosteriorSample(draws=1)),
    ):
        with pytest.raises(pmdp.Refusal, match=r"prior is a CustomDist whose functions hold|public=\['prior'\]"):
            door(model, epsilon=1)


def test_a_refusal_does_not_tell_how_long_a_text_or_how_full_a_set_is():
    """Twenty records written out were a long text, and nineteen were many numbers."""
    things = [str(RECORDS[:12]), str([0.5] * 20), str([0.5] * 15), "1 " * 30, "1 " * 200, 10**30, RECORDS, tuple(RECORDS[:9]), [1] * 9]
    assert len({tuple(pmdp.inspect(custom(holding(thing))).problems) for thing in things}) == 1
    several = [{0.5}, set(RECORDS)]
    assert len({tuple(pmdp.inspect(custom(holding(thing))).problems) for thing in several}) == 1
    assert pmdp.inspect(custom(holding(frozenset({0.5})))).problems


@pytest.mark.parametrize("density", [plain, holding(0.5), holding((1, 2.0, np.float64(3))), holding("name"), holding(np.exp), deep(2.0, 5)])
def test_plain_numbers_names_and_functions_may_be_held(density):
    assert not pmdp.inspect(custom(density)).problems


def test_a_variable_may_be_declared_public_with_all_that_it_holds():
    told = pmdp.inspect(custom(by_global), public=["prior"])
    assert not told.problems
    assert "what the functions of prior hold" in told.stays
    assert pmdp.release(custom(by_global), epsilon=1, public=["prior"]).public == ("prior",)


class Shifted(Transform):
    name = "by"

    def __init__(self, by):
        self.by = by

    def forward(self, value, *inputs):
        return value - self.by[0]

    def backward(self, value, *inputs):
        return value + self.by[0]

    def log_jac_det(self, value, *inputs):
        return pt.zeros_like(value)


class SlottedShift(Shifted):
    __slots__ = ("records",)


@pytest.mark.parametrize("by", [X, RECORDS, tuple(RECORDS), pd.Series(X)])
@pytest.mark.parametrize("kind", [Shifted, SlottedShift])
def test_what_a_transform_holds_is_refused(by, kind):
    transform = kind(by if kind is Shifted else (1.0,))
    if kind is SlottedShift:
        transform.records = by
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=pm.Normal("a", transform=transform), observed=Y)
    with pytest.raises(pmdp.Refusal, match="transform of a holds"):
        pmdp.release(model, epsilon=1)
    assert not pmdp.inspect(model, public=["a"]).problems


def test_plain_transforms_pass():
    with pm.Model() as model:
        a = pm.Normal("a", transform=Shifted((1.0, 2)))
        b = pm.Normal("b", shape=3, transform=pm.distributions.transforms.ordered, initval=[0, 1, 2])
        c = pm.Normal("c", transform=pm.distributions.transforms.Interval(-1, 5))
        d = pm.Normal("d", transform=pm.distributions.transforms.Chain([pm.distributions.transforms.Interval(0, 1)]))
        pm.Bernoulli("y", logit_p=a + b[0] + c + d, observed=Y)
    assert not pmdp.inspect(model).problems


@pytest.mark.parametrize("value", [RECORDS, pd.Series(X), X])
def test_initial_values_of_records_are_refused(value):
    with pm.Model() as model:
        a = pm.Normal("a", shape=N)
        pm.Bernoulli("y", logit_p=a[0], observed=Y)
    model.rvs_to_initial_values[a] = value
    with pytest.raises(pmdp.Refusal, match="initial value of a"):
        pmdp.release(model, epsilon=1)


# ---------- operations
class Double(Op):
    """An operation of one's own."""

    def make_node(self, given):
        given = pt.as_tensor(given)
        return Apply(self, [given], [given.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.asarray(2 * inputs[0] + X[0])


Disguised = type("Exp", (Double,), {"__module__": "pytensor.tensor.math"})
Disguised.__qualname__ = "Exp"


@pytensor.wrap_py(itypes=[pt.dscalar], otypes=[pt.dscalar])
def wrapped(given):
    return np.asarray(given + X[0])


def spline(given):
    from pymc.distributions.dist_math import SplineWrapper
    from scipy.interpolate import InterpolatedUnivariateSpline

    return SplineWrapper(InterpolatedUnivariateSpline(np.arange(N), X))(given)


def typed_list(given):
    held = make_list([pt.constant(X), pt.constant(X)])
    return given + held[0][0]


def typed_constant(given):
    from pytensor.typed_list import TypedListType

    return given + TypedListType(pt.dvector).make_constant([X])[pt.constant(0)][0]


OPERATIONS = {
    "own": Double(),
    "disguised": Disguised(),
    "wrapped": wrapped,
    "spline": spline,
    "list": typed_list,
    "constant": typed_constant,
    "print": Print("while it runs"),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("where", ["prior", "deterministic", "potential", "likelihood"])
def test_an_operation_that_is_not_known_is_refused(name, where):
    """Such operations were trusted because their module is PyTensor's or PyMC's; so was whoever gave a class that name."""
    try:
        given = OPERATIONS[name](pt.constant(0.5, dtype="float64"))
    except Exception as error:  # not in this version of PyTensor
        pytest.skip(str(error)[:80])
    with pm.Model() as model:
        a = pm.Normal("a", given if where == "prior" else 0.0)
        if where == "deterministic":
            pm.Deterministic("d", a + given)
        if where == "potential":
            pm.Potential("p", a * given)
        pm.Normal("y", a + (given if where == "likelihood" else 0), 1, observed=Y.astype(float))
    with pytest.raises(pmdp.Refusal, match=r"passes through|rests on a constant that is no array"):
        pmdp.release(model, epsilon=1, bounds={"y": (0, 1)})


def test_jax_functions_are_refused():
    pytest.importorskip("jax")
    moved = pytensor.wrap_jax(lambda given: given + X[0])
    with pm.Model() as model:
        a = pm.Normal("a")
        pm.Potential("p", moved(a))
        pm.Bernoulli("y", logit_p=a, observed=Y)
    for public in ([], ["p"]):
        with pytest.raises(pmdp.Refusal, match="JAX"):
            pmdp.release(model, epsilon=1, public=public)


# ---------- random variables without a name
MADE = {
    "mean of records": lambda: pm.Normal.dist(pt.as_tensor(X).mean(), 1), "by index": lambda: pm.Normal.dist(X)[0],
    "by data": lambda: pm.Normal.dist(pm.Data("x", X)[0], 1), "plain": lambda: pm.Normal.dist(0, 1),
    "in an operation": lambda: pt.exp(pm.Normal.dist(pt.as_tensor(X).max(), 1)), "vector": lambda: pm.Normal.dist(X, 1).sum(),
    "mixture": lambda: pm.Mixture.dist([0.5, 0.5], [pm.Normal.dist(0, 1), pm.Normal.dist(pt.as_tensor(X).mean(), 1)]),
}  # fmt: skip


@pytest.mark.parametrize("where", ["parameter", "prior", "deterministic", "potential"])
@pytest.mark.parametrize("name", MADE)
def test_random_variables_without_a_name_are_refused(name, where):
    """Arrays above them were never seen, and stood in the private model bit for bit."""
    with pm.Model() as model:
        a = pm.Normal("a", MADE[name]() if where == "prior" else 0)
        if where == "deterministic":
            pm.Deterministic("d", a + MADE[name]())
        if where == "potential":
            pm.Potential("p", a + MADE[name]())
        pm.Normal("y", a + (MADE[name]() if where == "parameter" else 0), 1, observed=Y.astype(float))
    with pytest.raises(pmdp.Refusal, match=r"random variable that is no part of the model|public"):
        pmdp.release(model, epsilon=1, bounds={"y": (0, 1)})


def test_distributions_made_of_others_pass():
    with pm.Model() as model:
        first = pm.AR("ar", [0.1, 0.2], sigma=1, init_dist=pm.Normal.dist(0, 1), steps=5)
        second = pm.Mixture("mixture", [0.3, 0.7], [pm.Normal.dist(0, 1), pm.Normal.dist(2, 1)])
        third = pm.Truncated("truncated", pm.Normal.dist(0, 1), lower=0)
        walk = pm.MvGaussianRandomWalk("walk", mu=[0, 0], cov=np.eye(2), init_dist=pm.MvNormal.dist([0, 0], np.eye(2)), steps=3)
        fourth = pm.CustomDist("custom", 0.0, dist=lambda mu, size: pm.Normal.dist(mu, 1, size=size))
        fifth = pm.Censored("censored", pm.Normal.dist(0, 1), lower=-1, upper=None)
        pm.LKJCholeskyCov("covariance", eta=1, n=3, sd_dist=pm.Exponential.dist(1.0))
        pm.Bernoulli("y", logit_p=first[0] + second + third + walk[0, 0] + fourth + fifth, observed=Y)
    assert not pmdp.inspect(model).problems


# ---------- single numbers, and what hangs on a graph
def test_a_loop_over_records_is_refused_and_fewer_numbers_are_told():
    def model(many):
        with pm.Model() as model:
            a = pm.Normal("a")
            pm.Potential("p", sum(pm.logp(pm.Normal.dist(a, 1), x) for x in RECORDS[:many]))
            pm.Bernoulli("y", logit_p=a, observed=Y)
        return model

    with pytest.raises(pmdp.Refusal, match="Many single numbers stand in p"):
        pmdp.release(model(N), epsilon=1)
    assert "single numbers in p" in pmdp.inspect(model(3)).stays
    assert "single numbers in p" in pmdp.inspect(model(N), public=["p"]).stays


LOOPS = {
    "likelihood": lambda a: pm.Bernoulli("z", logit_p=sum(pt.tanh(a - x) for x in 2 * RECORDS), observed=Y),
    "potentials": lambda a: [pm.Potential(f"p{k}", pm.logp(pm.Normal.dist(a, 1), x)) for k, x in enumerate(RECORDS)],
    "deterministic": lambda a: pm.Deterministic("d", sum(pt.tanh(a - x) for x in 2 * RECORDS)),
    "one operation": lambda a: pm.Deterministic("d", Elemwise(composite())(a)),
}  # fmt: skip


def composite():
    """A scalar operation put together by hand, with a number of every record in it."""
    given = ps.float64("given")
    return ps.Composite([given], [sum((ps.sub(given, ps.constant(x)) for x in [*RECORDS, *(1 + x for x in RECORDS)]), ps.constant(0.0))])


@pytest.mark.parametrize("where", LOOPS)
def test_loops_over_records_are_refused_wherever_they_stand(where):
    with pm.Model() as model:
        a = pm.Normal("a")
        LOOPS[where](a)
        pm.Bernoulli("y", logit_p=a, observed=Y)
    with pytest.raises(pmdp.Refusal, match="Many single numbers"):
        pmdp.release(model, epsilon=1)


def test_a_model_may_be_read_again_after_it_was_sampled():
    """PyTensor computes a part of the transform of a Cholesky factor beforehand, and leaves an array in its place."""
    with pm.Model() as model:
        factor, *_ = pm.LKJCholeskyCov("c", n=2, eta=1, sd_dist=pm.Exponential.dist(1))
        pm.LKJCorr("r", n=2, eta=1)
        pm.Bernoulli("y", logit_p=(factor @ pm.Normal("z", shape=2))[pm.Data("group", Y)], observed=Y)
    assert not pmdp.inspect(model).problems
    pm.sample(
        2, tune=2, chains=1, model=model, nuts_sampler="pymc", progressbar=False, compute_convergence_checks=False,
        compile_kwargs={"mode": "FAST_COMPILE"},
    )  # fmt: skip
    assert not pmdp.inspect(model).problems


@pytest.mark.parametrize(
    "secret", [X, [str(x) for x in RECORDS], RECORDS, X.tobytes(), pd.Series(X), lambda: RECORDS, int.from_bytes(X.tobytes(), "big")]
)
@pytest.mark.parametrize("place", ["note", "property"])
def test_notes_on_a_graph_are_looked_at(secret, place):
    """No rule of the graph looks at what hangs on a variable or on an operation: a pickle of it would hold that."""
    with pm.Model() as model:
        a = pm.Normal("a")
        grown = pt.exp(a)
        pm.Deterministic("d", grown)
        pm.Bernoulli("y", logit_p=a, observed=Y)
    if place == "note":
        grown.tag.secret = secret
    else:
        a.owner.op.secret = secret
    with pytest.raises(pmdp.Refusal, match=r"The model holds|whose property secret holds"):
        pmdp.release(model, epsilon=1)


def test_an_array_hidden_from_the_graph_s_rules_is_found(monkeypatch):
    """The look at the pickle finds an array even where the rule that should have found it is gone."""
    from pymc_dp.models import problems

    monkeypatch.setattr(problems, "opaque", lambda variable, known, sized: None)
    with pm.Model() as model:
        a = pm.Normal("a")
        pm.Bernoulli("y", logit_p=a, observed=Y)
    a.owner.op.secret = X
    assert any("The model holds an array" in problem for problem in read_spec(model).problems)


# ---------- what stands beside functions
SEEN = np.array([0.1, 0.2, 7123.456789012345, 0.3, 0.5, 0.25, 0.7, 0.9, 1.0, 0.11, 0.12])


def nothing(*given, rng=None, size=None):
    return np.zeros(() if size is None else size)


def noted_partial():
    held = functools.partial(nothing)
    held.source = SEEN
    return held


def wrapping_partial():
    """``__wrapped__`` is another function."""

    def empirical(*given, rng=None, size=None):
        return SEEN.mean()

    return functools.update_wrapper(functools.partial(nothing), empirical)


def documented_function():
    def draw(*given, rng=None, size=None):
        return np.zeros(() if size is None else size)

    draw.__doc__ = f"Seen: {SEEN.tolist()}"
    return draw


@pytest.mark.parametrize("make", [noted_partial, wrapping_partial, documented_function])
def test_what_stands_beside_a_function_is_looked_at(make):
    with pm.Model() as model:
        mu = pm.CustomDist("mu", 0.0, random=make(), logp=lambda value, mu: -((value - mu) ** 2))
        pm.Normal("y", mu, 1, observed=SEEN)
    with pytest.raises(pmdp.Refusal, match=r"public=\['mu'\]"):
        pmdp.release(model, epsilon=1.0, bounds={"y": (0, 2)})


@pytest.mark.parametrize("text", [SEEN, f"Seen: {SEEN.tolist()}"], ids=["an array", "numbers"])
def test_a_transform_s_docstring_is_looked_at(text):
    transform = pm.distributions.transforms.Interval(-1e4, 1e4)
    transform.__doc__ = text
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", transform=transform), 1, observed=SEEN)
    with pytest.raises(pmdp.Refusal, match="transform of mu"):
        pmdp.release(model, epsilon=1.0, bounds={"y": (0, 2)})


def test_a_module_in_a_folder_of_one_s_own_is_no_part_of_the_library(tmp_path, monkeypatch):
    """Such as one beside the families: its functions may hold records as any of the user's may."""
    (tmp_path / "mine.py").write_text(
        "import numpy as np, pytensor.tensor as pt\nfrom pymc.logprob.transforms import Transform\nDATA = np.arange(40.0)\n"
        "class Shifted(Transform):\n    name = 'shifted'\n    def forward(self, v, *_): return v - DATA.mean()\n"
        "    def backward(self, v, *_): return v + DATA.mean()\n    def log_jac_det(self, v, *_): return pt.zeros_like(v)\n"
    )
    monkeypatch.setattr(families, "__path__", [*families.__path__, str(tmp_path)])
    mine = importlib.import_module("pymc_dp.families.mine")
    monkeypatch.delitem(sys.modules, "pymc_dp.families.mine", raising=False)
    sys.modules["pymc_dp.families.mine"] = mine
    try:
        with pm.Model() as model:
            pm.Normal("y", pm.Normal("mu", transform=mine.Shifted()), 1.0, observed=mine.DATA)
        with pytest.raises(pmdp.Refusal, match="transform"):
            pmdp.release(model, epsilon=1.0, bounds={"y": (0, 40)})
    finally:
        del sys.modules["pymc_dp.families.mine"]


def test_a_model_that_python_has_evaluated_is_to_be_built_again():
    """An operation keeps the function that it was compiled into, with what that was given; the same model is released as it is built."""

    def built():
        with pm.Model() as model:
            pm.Categorical("y", pm.math.softmax(pm.Normal("a", shape=(2, 3)), axis=-1)[Y], observed=Y)
        return model

    model = built()
    model.compile_logp(mode="FAST_COMPILE")(model.initial_point())
    with pytest.raises(pmdp.Refusal, match=r"y passes through Softmax as it was compiled .* Build the model again"):
        pmdp.release(model, epsilon=1.0)
    pmdp.release(built(), epsilon=1.0)
