"""Places where a record can hide in a model: each is refused, or nothing of it is in the private model."""

import contextlib

import cloudpickle
import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from checks import flat
from pytensor.compile.builders import OpFromGraph, SymbolicOp
from pytensor.graph.fg import FunctionGraph

import pymc_dp as pmdp
from pymc_dp.models.structure import arrays_above
from pymc_dp.privacy.guard import boundary

REAL = 7123.456789012345
N = 12
X = np.linspace(0, 1, N)
X[5] = REAL
Y = np.arange(N) % 2
BOUNDS = {"x": (0, 1)}
pytestmark = [pytest.mark.filterwarnings("ignore")]  # PyMC warns of imputation and of Python operations


def refused_or_clean(model, **arguments):
    """Either refused in clear words, or nothing of a record is in the private model."""
    try:
        private = pmdp.privatize(model, epsilon=1.0, **arguments)
    except pmdp.Refusal:
        return
    assert np.float64(REAL).tobytes() not in cloudpickle.dumps(private)


# ---------- 1 shapes
def test_shape_taken_from_observed_data_does_not_carry_the_data():
    with pm.Model() as model:
        data = pm.Data("data", X)
        pm.Normal("z", 0, 1, shape=data.shape[0])
        pm.Normal("x", pm.Normal("mu"), 1, observed=data)
    refused_or_clean(model, bounds=BOUNDS)


def test_shape_computed_from_values_is_refused():
    def model(top):
        with pm.Model() as model:
            data = pm.Data("data", np.array([0, 1, 2, top]))
            b = pm.Normal("b", 0, 1, shape=data.max() + 1)
            pm.Poisson("k", pm.math.exp(b[0]), observed=data)
        return model

    with pytest.raises(pmdp.Refusal):
        pmdp.privatize(model(7), epsilon=1.0, bounds={"k": (0, 9)})


def test_sampled_tree_has_no_records_when_a_shape_rests_on_them():
    with pm.Model() as model:
        data = pm.Data("data", np.arange(N) * 1000 + 7)
        b = pm.Normal("b", 0, 1, shape=data.shape[0])
        pm.Poisson("k", pm.math.exp(b[0]), observed=data)
    try:
        tree = pmdp.sample(
            2, tune=2, chains=1, model=model, epsilon=1.0, bounds={"k": (0, 9)}, progressbar=False, compute_convergence_checks=False
        )
    except pmdp.Refusal:
        return
    assert "constant_data" not in tree.children or "data" not in tree["constant_data"]


def test_reshape_by_a_data_shape():
    with pm.Model() as model:
        data = pm.Data("data", X)
        b = pm.Normal("b", shape=N)
        pm.Normal("x", b.reshape((data.shape[0], 1)).sum(), 1, observed=data)
    refused_or_clean(model, bounds=BOUNDS)


def test_dim_length_taken_from_data():
    with pm.Model() as model:
        data = pm.Data("data", X, dims="obs")
        pm.Normal("z", dims="obs")
        pm.Normal("x", pm.Normal("mu"), 1, observed=data)
    refused_or_clean(model, bounds=BOUNDS)


# ---------- 2 data inside operations
class BlackBox(pytensor.graph.Op):
    itypes = (pt.dscalar,)
    otypes = (pt.dscalar,)

    def __init__(self, data):
        self.data = data

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.asarray(-((inputs[0] - self.data) ** 2).sum())


def scan_over_numpy(mu):
    x = pt.as_tensor(X)
    return pytensor.scan(lambda k: -((x[k] - mu) ** 2), sequences=[pt.arange(N)], return_updates=False).sum()


def from_graph(mu):
    a = pt.dscalar()
    return OpFromGraph([a], [(a * pt.as_tensor(X)).sum()])(mu)


class Symbolic(SymbolicOp):
    """Of the kind that PyTensor's own ``logsumexp`` is, in which no array can be."""

    def build_inner_graph(self, a):
        return [(a * pt.as_tensor(X)).sum()]


@pytest.mark.parametrize("hide", [BlackBox(X), scan_over_numpy, from_graph, Symbolic()], ids=["op", "scan", "opfromgraph", "symbolic"])
@pytest.mark.parametrize("use", [pm.Potential, pm.Deterministic, None], ids=["potential", "deterministic", "parameter"])
def test_data_inside_an_operation(hide, use):
    with pm.Model() as model:
        mu = pm.Normal("mu")
        if use is not None:
            use("hidden", hide(mu))
        pm.Bernoulli("y", logit_p=mu if use is not None else hide(mu), observed=Y)
    refused_or_clean(model)


def test_arrays_inside_symbolic_operations():
    """In PyTensor's own there are constants, too, which hold no record."""
    a = pt.dvector()
    assert [each.data.max() for each in arrays_above([Symbolic()(a)])] == [REAL]
    own = [pt.logsumexp(a[:, None] + a, axis=1), pt.logaddexp(a, 1.0), pt.special.softmax(a, axis=0)]
    assert not arrays_above([*own, pt.diag(a), pt.special.xlogy(a, a)])
    held = own[0].owner.op.clone_with_inner_graph(FunctionGraph([b := pt.dmatrix()], [b.sum(axis=0) * pt.as_tensor(X)], clone=False))
    assert [each.data.max() for each in arrays_above([held.make_node(a[:, None] + a).outputs[0]])] == [REAL]


def test_custom_prior_by_dist():
    with pm.Model() as model:
        mu = pm.CustomDist("mu", dist=lambda size: pm.Normal.dist(pt.as_tensor(X).mean(), 1, size=size))
        pm.Bernoulli("y", logit_p=mu, observed=Y)
    refused_or_clean(model)


@pytest.mark.parametrize("shared", [False, True])
def test_custom_prior_by_logp(shared):
    def log_density(values):
        with pm.Model() as model:
            data = pm.Data("data", values)
            held = data if shared else values
            mu = pm.CustomDist("mu", logp=lambda value: -((value - held) ** 2).sum(), shape=())
            pm.Normal("x", mu, 1, observed=data)
        private = pmdp.privatize(model, epsilon=1.0, bounds=BOUNDS)
        return private.compile_logp(vars=private.free_RVs, mode="FAST_COMPILE")({"mu": np.array(0.0)})

    other = X.copy()
    other[5] = 0.5
    with contextlib.suppress(pmdp.Refusal):
        assert log_density(X) == log_density(other)


def test_custom_prior_that_draws_from_data():
    with pm.Model() as model:
        mu = pm.CustomDist("mu", logp=lambda value: -(value**2), random=lambda rng, size: rng.choice(X, size), shape=())
        pm.Bernoulli("y", logit_p=mu, observed=Y)
    refused_or_clean(model)


def test_a_custom_prior_without_data_goes_through():
    with pm.Model() as model:
        mu = pm.CustomDist("mu", pm.Normal("a"), logp=lambda value, a: -((value - a) ** 2), shape=())
        pm.Bernoulli("y", logit_p=mu, observed=Y)
    assert "mu" in pmdp.privatize(model, epsilon=1.0).named_vars


# ---------- 3 pymc.dims
@pytest.mark.parametrize("use", ["deterministic", "potential", "parameter"])
def test_labelled_tensors(use):
    import pymc.dims as pmd

    with pm.Model(coords={"obs": range(N), "f": ["a", "b"]}) as model:
        data = pmd.Data("X", np.column_stack([np.ones(N), X]), dims=("obs", "f"))
        b = pmd.Normal("b", dims="f")
        eta = 0.0
        if use == "deterministic":
            pmd.Deterministic("fitted", data.dot(b))
        elif use == "potential":
            pmd.Potential("fitted", data.dot(b).sum())
        else:
            eta = data.dot(b).sum().values
        pm.Bernoulli("y", logit_p=pm.Normal("a") + eta, observed=Y)
    refused_or_clean(model)


# ---------- 4 the same numpy array twice
class Offset(pm.distributions.transforms.Transform):
    name = "offset"

    def forward(self, value, *inputs):
        return value - self.offset[0]

    def backward(self, value, *inputs):
        return value + self.offset[0]

    def log_jac_det(self, value, *inputs):
        return pt.zeros_like(value)


def twice_in_initval():
    z = pm.Normal("z", 0, 1, shape=N, initval=X)
    pm.Normal("x", z.sum(), 1, observed=X)


def twice_in_transform():
    transform = Offset()
    transform.offset = X
    pm.Normal("x", pm.Normal("z", transform=transform), 1, observed=X)


def class_attribute_of_transform():
    data = pm.Data("data", X)
    transform = type("Held", (Offset,), {"offset": data})()
    pm.Normal("x", pm.Normal("z", transform=transform), 1, observed=data)


@pytest.mark.parametrize("fill", [twice_in_initval, twice_in_transform, class_attribute_of_transform], ids=lambda f: f.__name__)
def test_the_observed_array_used_again(fill):
    with pm.Model() as model:
        fill()
    refused_or_clean(model, bounds=BOUNDS)


# ---------- 5 scalars
def test_scalar_data_is_an_array_too():
    with pm.Model() as model:
        centre = pm.Data("centre", X[5])
        pm.Normal("x", pm.Normal("mu") + centre, 1, observed=X)
    refused_or_clean(model, bounds=BOUNDS)


# ---------- 6 a missing value is visible
def nan_mixture(x):
    pm.NormalMixture("x", [0.5, 0.5], pm.Normal("a", shape=2), 1, observed=x)


def nan_censored(x):
    pm.Censored("x", pm.Normal.dist(pm.Normal("a"), 1), -1, 1, observed=x)


def nan_mixture_of_two(x):
    pm.Mixture("x", pm.math.stack([w := pm.Beta("w", 2, 2), 1 - w]), [pm.Normal.dist(pm.Normal("a"), 1), pm.Cauchy.dist(0, 1)], observed=x)


def nan_truncated(x):
    pm.Truncated("x", pm.Gamma.dist(pm.HalfNormal("a"), 1), upper=3, observed=x)


def nan_asymmetric(x):
    pm.AsymmetricLaplace("x", b=1, q=0.5, mu=pm.Normal("a"), observed=x)


def nan_mvnormal(x):
    pm.MvNormal("x", pm.Normal("a", shape=2), np.eye(2), observed=np.column_stack([x, x]))


def nan_walk(x):
    pm.GaussianRandomWalk("x", 1, init_dist=pm.Normal.dist(), observed=x)


def nan_parent(x):
    a = pm.Normal("a")
    pm.Bernoulli("y", logit_p=a + pm.Normal("x", a, 1, observed=x), observed=Y)


def nan_parent_shared(x):
    a = pm.Normal("a")
    pm.Bernoulli("y", logit_p=a + pm.Normal("x", a, 1, observed=x).mean(), observed=Y)


@pytest.mark.parametrize(
    "fill",
    [
        nan_mixture,
        nan_censored,
        nan_mixture_of_two,
        nan_truncated,
        nan_asymmetric,
        nan_mvnormal,
        nan_walk,
        nan_parent,
        nan_parent_shared,
    ],
    ids=lambda f: f.__name__,
)
def test_a_refusal_does_not_tell_whether_a_value_is_missing(fill):
    def seen(values):
        with pm.Model() as model:
            fill(values)
        with pytest.raises(pmdp.Refusal) as caught:
            pmdp.release(model, epsilon=1.0)
        return repr(pmdp.inspect(model)), str(caught.value)

    whole = np.linspace(0, 1, N)
    other = whole.copy()
    other[4] = np.nan
    assert seen(whole) == seen(other)


# ---------- 7 the user's numpy error state
@pytest.mark.parametrize("value", [0.25, 5e-324])
def test_numpy_error_state_of_the_user(value):
    values = np.full(6, 0.25)
    values[0] = value
    with pm.Model() as model:
        pm.Normal("x", pm.Normal("mu"), 1, observed=values)
    with np.errstate(all="raise"):
        pmdp.release(model, epsilon=1.0, bounds={"x": (-3, 3)})


def test_the_guard_sets_numpy_s_error_state_itself():
    """Whatever a function inside computes: what a release does today is set apart further in, too."""

    @boundary
    def third(value: float) -> np.ndarray:
        return np.array([value]) / 3

    with np.errstate(all="raise"):
        assert third(5e-324) == 0
        with pytest.raises(FloatingPointError):  # outside the same division raises
            np.array([5e-324]) / 3


# ---------- 8 a dim name opens a covariate
def test_a_dim_opens_the_index_only():
    with pm.Model(coords={"group": ["young", "old"]}) as model:
        age = pm.Data("age", X)
        mu = pm.Normal("mu", dims="group")
        pm.Bernoulli("y", logit_p=mu[(age > 0.5).astype(int)] + pm.Normal("b") * age, observed=Y)
    refused_or_clean(model, public=["group"])


# ---------- 9 fails after the records are paid for
G = np.array([0, 1, 2, 0, 0, 1, 2, 2, 1, 0, 0, 0])
W = np.arange(6.0).reshape(3, 2)


def table_with_dims():
    pm.modelcontext(None).add_coord("group", ["a", "b", "c"])
    eta = pm.Deterministic("eta", pt.dot(W, pm.Normal("b", shape=2)), dims="group")
    pm.Bernoulli("y", logit_p=eta[G], observed=Y)


def table_for_two():
    eta = pm.Deterministic("eta", pt.dot(W, pm.Normal("b", shape=2)))
    pm.Bernoulli("y", logit_p=eta[G], observed=Y)
    pm.Bernoulli("z", logit_p=-eta[G], observed=Y)


def table_for_a_prior_too():
    eta = pm.Deterministic("eta", pt.dot(W, pm.Normal("b", shape=2)))
    pm.Bernoulli("y", logit_p=eta[G] + pm.Normal("c", eta, 1, shape=3)[G], observed=Y)


def stacked_with_a_constant_column():
    a, b = pm.Normal("a", shape=3), pm.Normal("b")
    pm.Categorical("y", logit_p=pt.stack([a[G], b * pt.ones(N)], axis=1), observed=Y)


def name_taken():
    pm.Bernoulli("y", logit_p=pm.Normal("y_released"), observed=Y)


def column_is_record_elsewhere():
    model = pm.modelcontext(None)
    model.add_coords({"person": range(N), "item": [0, 1]})
    th = pm.Beta("th", 1, 1, dims="item")
    pm.Bernoulli("Y", th, observed=np.column_stack([Y, Y]), dims=("person", "item"))
    pm.Bernoulli("q", th[[0, 1]], observed=[0, 1], dims="item")


@pytest.mark.parametrize(
    "fill",
    [table_with_dims, table_for_two, table_for_a_prior_too, stacked_with_a_constant_column, name_taken, column_is_record_elsewhere],
    ids=lambda f: f.__name__,
)
def test_what_is_paid_for_can_be_rewritten(fill, exact_seam):
    with pm.Model() as model:
        fill()
    public = [array for array, _, _ in pmdp.inspect(model).arrays]
    try:
        released = pmdp.release(model, epsilon=1e9, public=public)
    except pmdp.Refusal:
        return
    private = pmdp.rewrite(model, released, noise_aware=False)
    theirs, ours = (m.compile_logp(mode="FAST_COMPILE", jacobian=False) for m in (model, private))
    rng, start = np.random.default_rng(8), model.initial_point(random_seed=1)
    points = [{k: v + 0.4 * rng.normal(size=v.shape) for k, v in start.items()} for _ in range(3)]
    differences = [theirs(p) - ours(p) for p in points]
    np.testing.assert_allclose(differences, differences[0], atol=1e-6)


def test_dropped_variables_are_not_there():
    with pm.Model() as model:
        eta = pm.Deterministic("eta", pt.dot(W, pm.Normal("b", shape=2)))
        pm.Bernoulli("y", logit_p=eta[G], observed=Y)
    public = ["y:0", "y:1"]
    dropped = pmdp.inspect(model, public=public).dropped
    assert not set(dropped) & set(pmdp.privatize(model, epsilon=1.0, public=public).named_vars)


def test_columns_that_do_not_fit_the_likelihood_are_refused():
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=2), observed=Y[:, None])
    with pytest.raises(pmdp.Refusal, match="columns"):
        pmdp.release(model, epsilon=1.0)


# ---------- 10 labels of records, 11 read-only
def test_labels_of_records_without_dims_on_the_observed_variable():
    with pm.Model(coords={"person": [f"zz-{k}" for k in range(N)]}) as model:
        theta = pm.Beta("theta", 1, 1)
        pm.Deterministic("p", theta * pt.ones(N), dims="person")
        pm.Bernoulli("y", theta, observed=Y)
    private = pmdp.privatize(model, epsilon=1.0)
    assert "person" not in private.coords


def test_the_user_s_arrays_stay_writeable():
    table = W.copy()
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=pt.dot(table, pm.Normal("b", shape=2))[G], observed=Y)
    pmdp.release(model, epsilon=1.0, public=["y:0", "y:1"])
    assert table.flags.writeable


def test_person_covariates_in_a_prior_are_at_least_listed():
    with pm.Model() as model:
        data = pm.Data("income", X)
        theta = pm.Normal("theta", pm.Normal("b") * data, 1, shape=N)
        pm.Bernoulli("y", logit_p=theta[np.arange(N)], observed=Y)
    shown = flat(pmdp.inspect(model, public=["y:0"]))
    assert "income" in shown


class VectorBox(pytensor.graph.Op):
    gufunc_signature = "()->()"

    def __init__(self, data):
        self.data = data

    def make_node(self, a):
        a = pt.as_tensor(a)
        return pytensor.graph.Apply(self, [a], [pt.dscalar()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.asarray(inputs[0] * self.data[5])


def blockwise_op(mu):
    from pytensor.tensor.blockwise import Blockwise

    return Blockwise(VectorBox(X))(mu[None] * np.ones(3)).sum()


def blockwise_graph(mu):
    from pytensor.tensor.blockwise import Blockwise

    a = pt.dscalar()
    op = OpFromGraph([a], [(a * pt.as_tensor(X)).sum()])
    return Blockwise(op, signature="()->()")(mu[None] * pt.ones(3)).sum()


@pytest.mark.parametrize("hide", [blockwise_op, blockwise_graph])
@pytest.mark.parametrize("rows", [False, True])
def test_data_inside_a_batched_operation(hide, rows):
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Bernoulli("y", logit_p=hide(mu), observed=Y)
    refused_or_clean(model, public=[a for a, _, _ in pmdp.inspect(model).arrays if hide is blockwise_op])


# ---------- lines of the program, which these tests tell PyTensor to leave out, because it is faster
LINE = b"7123.4567"


def written_out(x, y):
    """A model whose records may be in a line of the program, with operations that hold graphs and transforms that hold constants."""
    with pm.Model(coords={"g": ["a", "b"]}) as model:
        mu = pm.Normal("mu", 0, 1.5, dims="g", transform=pm.distributions.transforms.Interval(-9, 9))
        sd = pm.Truncated("sd", pm.Normal.dist(1, 1), lower=0.1, upper=9)
        mixed = pm.Mixture("mixed", [0.4, 0.6], [pm.Normal.dist(-1, 1), pm.Normal.dist(1, 1)])
        pm.Deterministic("twice", 2 * mu[0] + mixed + 0.25)
        pm.Potential("held", -0.5 * mu[1] ** 2)
        pm.Normal("y", mu[0] + mu[1] * pm.Data("x", np.array(x)), sd, observed=np.array(y))
    return model


def test_no_line_of_the_program_is_in_what_leaves():
    """PyTensor keeps the lines in which something was built, and those of their callers, where small data sets are written out."""
    with pytensor.config.change_flags(traceback__limit=8):
        model = written_out([0.1, 0.4, 0.7, 0.2], [0.5, 7123.4567, 0.25, 0.75])
        bounds = {"x": (0, 1), "y": (-1, 1)}
        assert LINE in cloudpickle.dumps(model), "the line must be in the user's model, or this test could not fail"
        inspected, released = pmdp.inspect(model, bounds=bounds), pmdp.release(model, epsilon=1, bounds=bounds)
        plan = pmdp.share_out(model, epsilon=1, bounds=bounds, parts=1, records=4).plan
        private = pmdp.rewrite(written_out([0.1, 0.4, 0.7, 0.2], [0.5, 7123.4567, 0.25, 0.75]), released)
        anew = pmdp.privatize(model, epsilon=1, bounds=bounds, noise_aware=False)
        with pm.Model() as answered:
            pm.Bernoulli("k", pm.Beta("share", 1, 1), observed=np.zeros(4, dtype=int))
        told = pmdp.published(answered, pmdp.randomise(answered, data=pd.DataFrame({"k": [0, 7123.4567, 1, 0]}), epsilon=2.0, bounds={}))
    written = {name: cloudpickle.dumps(thing) for name, thing in locals().items() if name in ("inspected", "released", "plan", "told")}
    written |= {"rewritten": cloudpickle.dumps(private), "privatized": cloudpickle.dumps(anew)}
    assert [name for name, pickled in written.items() if LINE in pickled or __file__.encode() in pickled] == []


def test_a_line_with_many_numbers_is_not_taken_for_what_a_model_holds():
    with pytensor.config.change_flags(traceback__limit=8):
        model = written_out([0.1] * 36, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9] * 2)
        assert pmdp.inspect(model, bounds={"x": (0, 1), "y": (-1, 1)}).problems == ()
