"""Records lie along one axis of every array: what is read along another is refused at every door, before anything is paid for."""

import numpy as np
import pymc as pm
import pymc.dims as pmd
import pytensor.tensor as pt
import pytest
from checks import mostly_slow
from test_leaks import neighbours_look_alike, observe

import pymc_dp as pmdp
from pymc_dp.models.structure import row_axis_before

PEOPLE, ITEMS = 6, 8
pytestmark = [pytest.mark.filterwarnings("ignore")]


def table(row, people=PEOPLE, items=ITEMS):
    """People by items, one of whom answers ``row`` everywhere: neighbours differ in that person."""
    answers = np.random.default_rng(1).integers(0, 2, (people, items))
    answers[3] = row
    return answers


def observed_parent(combine):
    """People's answers, and items whose mean rests on what all people answered."""

    def make(row):
        with pm.Model() as model:
            answered = pm.Bernoulli("R", pm.Beta("p", 1, 1, shape=ITEMS), observed=table(row))
            a, b = pm.Uniform("a", -1, 1), pm.Uniform("b", -1, 1)
            pm.Normal("z", a + b * combine(answered), 1, observed=np.linspace(-1, 1, ITEMS))
        return model, {"bounds": {"z": (-1, 1)}}

    return make


def parent_as_index(row):
    with pm.Model() as model:
        answered = pm.Bernoulli("R", 0.5, observed=table(row))
        pm.Bernoulli("z", pm.Uniform("t", 0.1, 0.9, shape=2)[answered[0]], observed=np.zeros(ITEMS, int))
    return model, {}


def parent_transposed(row):
    with pm.Model() as model:
        answered = pm.Bernoulli("R", 0.5, observed=table(row, 6, 6))
        pm.Bernoulli("z", pm.Uniform("t", 0.1, 0.9, shape=2)[answered.T], observed=np.ones((6, 6), int))
    return model, {}


def parent_by_weights(row):
    """One unknown weight a person: people are no features, because they are the records of what they answered."""
    with pm.Model() as model:
        answered = pm.Bernoulli("R", 0.5, observed=table(row))
        pm.Normal("z", pm.math.dot(pm.Normal("b", shape=PEOPLE), answered), 1, observed=np.zeros(ITEMS))
    return model, {"bounds": {"z": (-1, 1)}}


def data(read):
    """One private array that only items' values rest on."""

    def make(row):
        with pm.Model() as model:
            array = pm.Data("D", table(row).astype(float))
            a, b = pm.Uniform("a", -1, 1), pm.Uniform("b", -1, 1)
            pm.Normal("z", a + b * read(array), 1, observed=np.zeros(ITEMS))
        return model, {"bounds": {"D": (0, 1), "z": (-1, 1)}}

    return make


def data_as_index(row):
    with pm.Model() as model:
        array = pm.Data("D", table(row))
        pm.Bernoulli("z", pm.Uniform("t", 0.1, 0.9, shape=2)[array[0]], observed=np.zeros(ITEMS, int))
    return model, {}


def along_both(row):
    with pm.Model() as model:
        array = pm.Data("D", table(row).astype(float))
        a, b = pm.Normal("a", shape=2), pm.Normal("b", shape=2)
        pm.Normal("y", a[0] + a[1] * array.max(axis=1), 1, observed=np.zeros(PEOPLE))
        pm.Normal("z", b[0] + b[1] * array.max(axis=0), 1, observed=np.zeros(ITEMS))
    return model, {"bounds": {"D": (0, 1), "y": (-1, 1), "z": (-1, 1)}}


def views_of_one_array(row):
    """NumPy's own transposition makes a second array over the same memory, whose first axis runs over the items."""
    array = table(row).astype(float)
    with pm.Model() as model:
        a, b = pm.Normal("a", shape=2), pm.Normal("b", shape=2)
        pm.Normal("y", a[0] + a[1] * pt.as_tensor(array).max(axis=1), 1, observed=np.zeros(PEOPLE))
        pm.Normal("z", b[0] + b[1] * pt.as_tensor(array.T).max(axis=1), 1, observed=np.zeros(ITEMS))
    return model, {"bounds": {"y:0": (0, 1), "z:0": (0, 1), "y": (-1, 1), "z": (-1, 1)}}


def features_here_and_records_there(row):
    """``b @ D`` takes the first axis for features, ``D.max(axis=1)`` for records."""
    with pm.Model() as model:
        array = pm.Data("D", table(row, 6, 6).astype(float))
        pm.Normal("y", pm.math.dot(pm.Normal("b", shape=6), array) + array.max(axis=1), 1, observed=np.zeros(6))
    return model, {"bounds": {"D": (0, 1), "y": (-1, 1)}}


def named(combine):
    def make(row):
        with pm.Model(coords={"person": range(PEOPLE), "item": range(ITEMS)}) as model:
            a, b = pmd.Normal("a"), pmd.Normal("b")
            answered = pmd.Normal("R", 0, 1, observed=pmd.as_xtensor(table(row).astype(float), dims=("person", "item")))
            pmd.Normal("z", a + b * combine(answered), 1, observed=pmd.as_xtensor(np.zeros(ITEMS), dims=("item",)))
        return model, {"bounds": {"R": (0, 1), "z": (-1, 1)}}

    return make


def named_along_both(row):
    with pm.Model(coords={"person": range(PEOPLE), "item": range(ITEMS)}) as model:
        a, b = pmd.Normal("a"), pmd.Normal("b")
        array = pmd.Data("D", table(row).astype(float), dims=("person", "item"))
        pmd.Normal("y", a + b * array.max("item"), 1, observed=pmd.as_xtensor(np.zeros(PEOPLE), dims=("person",)))
        pmd.Normal("z", a + b * array.max("person"), 1, observed=pmd.as_xtensor(np.zeros(ITEMS), dims=("item",)))
    return model, {"bounds": {"D": (0, 1), "y": (-1, 1), "z": (-1, 1)}}


ANOTHER_AXIS = {
    "sum": observed_parent(lambda R: R.sum(axis=0) / PEOPLE), "max": observed_parent(lambda R: R.max(axis=0)),
    "mean": observed_parent(lambda R: R.mean(axis=0)), "transposed and summed": observed_parent(lambda R: R.T.sum(axis=1) / PEOPLE),
    "dot": observed_parent(lambda R: pm.math.dot(np.ones(PEOPLE) / PEOPLE, R)), "one person": observed_parent(lambda R: R[3]),
    "index": parent_as_index, "transposed index": parent_transposed, "weights": parent_by_weights,
    "data max": data(lambda D: D.max(axis=0)), "data one person": data(lambda D: D[3]), "data sum": data(lambda D: D.sum(axis=0) / PEOPLE),
    "data even weights": data(lambda D: pm.math.dot(pt.ones(PEOPLE), D) / PEOPLE), "data index": data_as_index,
    "data one weight": data(lambda D: pm.math.dot(pm.Normal("w", shape=1) * pt.ones(PEOPLE), D)),
    "data one weight in a row": data(lambda D: ((pm.Normal("w", shape=(1, 1)) * pt.ones((1, PEOPLE))) @ D)[0]),
    "data no weight": data(lambda D: pm.math.dot(pm.DiracDelta("w", 1.0, shape=PEOPLE) * pm.Normal("c"), D)),
    "along both": along_both, "views": views_of_one_array, "features and records": features_here_and_records_there,
    "named max": named(lambda R: R.max("person")), "named transposed": named(lambda R: R.transpose("item", "person").max("person")),
    "named along both": named_along_both,
}  # fmt: skip


@pytest.mark.parametrize("neighbours", mostly_slow(["replace", "add_remove"], 0))
@pytest.mark.parametrize("name", ANOTHER_AXIS)
def test_what_is_read_along_another_axis_is_refused(name, neighbours):
    """One person moves the value of every item: up to 160 times what is charged. Neighbours are refused alike."""
    (model, arguments), (other, _) = (ANOTHER_AXIS[name](row) for row in (0, 1))
    neighbours_look_alike(model, other, **arguments, neighbours=neighbours, rewrite=False)
    with pytest.raises(pmdp.Refusal, match=r"axis|two axes|mixes records|some of the records"):
        pmdp.release(model, epsilon=1, **arguments, neighbours=neighbours)


DOORS = {
    "release": lambda model, **more: pmdp.release(model, epsilon=1, **more),
    "gaussian": lambda model, **more: pmdp.release(model, epsilon=1, delta=1e-6, mechanism="gaussian", **more),
    "grid": lambda model, **more: pmdp.sample(model=model, epsilon=1, mechanism=pmdp.PosteriorSample(draws=1), **more),
    "chains": lambda model, **more: pmdp.sample(model=model, epsilon=1, mechanism=pmdp.PosteriorSample(draws=1, method="mcmc"), **more),
    "mode": lambda model, **more: pmdp.find_MAP(model=model, epsilon=1, **more),
    "gibbs": lambda model, **more: pmdp.sample(model=model, epsilon=1, mechanism=pmdp.Gibbs(sweeps=1), **more),
    "annealing": lambda model, **more: pmdp.sample(model=model, epsilon=1, mechanism=pmdp.Annealing(2), **more),
    "bounds": lambda model, bounds=None, **more: pmdp.private_bounds(
        model, names=list(bounds or "y"), within=bounds or {"y": (0, 1)}, epsilon=1, **more
    ),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", ["max", "transposed index", "data max"])
def test_every_door_refuses_it(name, door, tmp_path):
    model, arguments = ANOTHER_AXIS[name](1)
    ledger = pmdp.Ledger(tmp_path / "budget", epsilon=10, delta=1e-3, create=True)
    head = ledger.head
    with pytest.raises(pmdp.Refusal, match=r"axis"):
        DOORS[door](model, **arguments, ledger=ledger)
    assert ledger.head == head


def test_the_axis_is_called_by_its_dim():
    model, arguments = named(lambda R: R.max("person"))(1)
    with pytest.raises(pmdp.Refusal, match=r"axis 1 \('item'\), but .* first axis \('person'\)"):
        pmdp.release(model, epsilon=1, **arguments)


def test_features_may_come_first_where_each_has_a_coefficient():
    """``coefficients @ X.T``: the first axis of ``X.T`` has one unknown an entry, so that it is no axis of records. Neighbours differ in
    a column."""

    def model(value):
        X = np.random.default_rng(2).random((PEOPLE, 3))
        X[3] = value
        with pm.Model() as model:
            pm.Normal("y", pm.Normal("a") + pm.math.dot(pm.Normal("s") * pm.Normal("b", shape=3), X.T), 1, observed=np.zeros(PEOPLE))
        return model

    told, _, released = observe(model(0.0), bounds={"y": (-1, 1), "y:0": (0, 1)})
    assert released is not None, told
    neighbours_look_alike(model(0.0), model(1.0), bounds={"y": (-1, 1), "y:0": (0, 1)})


def test_columns_of_one_array_may_be_used_apart():
    """Columns, rows and slices of an array lie in its memory alike."""
    whole = np.random.default_rng(3).random((3, PEOPLE))
    for x, z, y in (whole, np.ascontiguousarray(whole.T).T, whole[:, ::-1]):
        with pm.Model() as model:
            pm.Normal("y", pm.Normal("a") + x * pm.Normal("b") + z * pm.Normal("c"), 1, observed=y)
        assert pmdp.release(model, epsilon=1, bounds={"y": (0, 1), "y:0": (0, 1), "y:1": (0, 1)}).statistics


def test_arrays_of_other_lengths_show_nothing_where_their_number_is_private():
    """Under add_remove a posterior draw of 20 and 19 records was refused, of 19 and 19 made."""

    def model(y, z, x):
        with pm.Model() as model:
            p, x = pm.Uniform("p", 0.1, 0.9, shape=2), pm.Data("x", np.ones(x, int))  # which says that both have the same records
            pm.Bernoulli("y", 1 - p[x], observed=np.ones(y, int))
            pm.Bernoulli("z", p[x], observed=np.ones(z, int))
        return model

    for lengths in [(20, 20, 20), (20, 19, 20), (19, 20, 19), (20, 20, 19), (19, 19, 19)]:
        for door in ("release", "grid", "mode"):
            assert DOORS[door](model(*lengths), neighbours="add_remove") is not None


LONG = {
    "parameter": lambda n: pm.Normal("b", shape=n), "repeated": lambda n: pt.repeat(pm.Normal("b", shape=1), n),
    "counted": lambda n: pm.Normal("b") * pt.arange(n), "identity": lambda n: pt.eye(n) @ pm.Normal("b", shape=n),
    "walk": lambda n: pm.GaussianRandomWalk("b", init_dist=pm.Normal.dist(), shape=n), "full": lambda n: pt.full((n,), pm.Normal("b")),
    "zeros": lambda n: (pt.zeros((n, 1)) + pm.Normal("b"))[:, 0], "tiled": lambda n: pt.tile(pm.Normal("b", shape=1), n),
    "tiled rows": lambda n: pt.tile(pm.Normal("b", shape=(1, 2)), (n, 1)).sum(axis=1),
}  # fmt: skip


@pytest.mark.parametrize("how", LONG)
def test_one_record_looks_like_two(how):
    """Of a single record everything has length one: what has one entry a record was released for one record, and refused for others."""

    def model(n):
        with pm.Model() as model:
            pm.Normal("y", LONG[how](n), 1, observed=np.linspace(-1, 1, n))
        return model

    wanted, seam, released = observe(model(1), neighbours="add_remove", bounds={"y": (-2, 2)})
    assert (released is not None) == (how in ("full", "zeros"))
    for n in (2, 3):
        told, _, other = observe(model(n), seam.exact, neighbours="add_remove", bounds={"y": (-2, 2)})
        assert (other is None) == (released is None)
        assert released is None or told == wanted


def test_data_of_the_records_above_a_prior_are_refused():
    """The dim says that they are records, and they would be published with the prior."""

    def model(n):
        with pm.Model(coords={"obs": range(n)}) as model:
            pm.Normal("y", pm.Normal("a", pm.Data("D", np.linspace(0, 1, n), dims="obs").mean(), 1), 1, observed=np.zeros(n), dims="obs")
        return model

    for neighbours, public in [("replace", []), ("add_remove", []), ("add_remove", ["D"])]:
        words = set()
        for n in (12, 11):
            with pytest.raises(pmdp.Refusal) as refusal:
                pmdp.release(model(n), epsilon=1, bounds={"y": (-2, 2)}, neighbours=neighbours, public=public)
            words.add(str(refusal.value))
        assert len(words) == 1


INDEXED = {
    "once": lambda t, g: t[g], "short": lambda t, g: t[g.astype("int8")], "twice": lambda t, g: t[g] + t[g],
    "in two places": lambda t, g: t[g] * t[:1] + t[g],
}  # fmt: skip


@pytest.mark.parametrize("how", INDEXED)
def test_no_record_looks_like_one(how):
    """PyTensor makes an index without entries one of small integers, and copies it."""

    def model(n):
        with pm.Model() as model:
            pm.Normal("y", INDEXED[how](pm.Normal("t", shape=2), np.arange(n) % 2), 1, observed=np.zeros(n))
        return model

    def seen(n, frozen=()):
        bounds = {"y": (-1, 1)}
        told, seam, released = observe(model(n), frozen, neighbours="add_remove", bounds=bounds)
        kinds = [] if released is None else [
            (one.noisy.dtype, one.n.dtype, one.known.dtype, [(given.dtype, given.shape, given.strides) for given in one.inputs])
            for one in released.statistics
        ]  # fmt: skip
        return told, kinds, seam

    told, kinds, seam = seen(0)
    for n in (1, 2, 3):
        assert seen(n, seam.exact)[:2] == (told, kinds)


# ---------- reshaping
R = None
"""The number of records, in the shapes below."""
RESHAPED = [(R, 12), (12, R), (2, R, 6), (4, R, 3), (R, 2, 6), (6, (2, R)), ((6, R), 2), ((2, R), 3, 2)]


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("place", range(5))
def test_an_axis_that_is_kept_by_reshaping_holds_the_same_entries(rows, known, place):
    """Whichever axis is said to become another one: entry i of both is made of the same numbers, for every number of records."""
    old = [1, 2, 3, 2]
    old.insert(place, R)
    source = pt.tensor(shape=[rows if length is R and known else length for length in old])
    values = np.arange(12 * rows).reshape([rows if length is R else length for length in old])
    kept = set()
    for new in RESHAPED:
        length = rows if known else source.shape[place]
        reshaped = source.reshape([length if part is R else part[0] * length if isinstance(part, tuple) else part for part in new])
        result = values.reshape([rows if part is R else part[0] * rows if isinstance(part, tuple) else part for part in new])
        for axis in range(len(new)):
            before = row_axis_before(reshaped.owner, axis, sized=True)
            if before is not None:
                kept.add((new, axis))
                assert values.shape[before] == result.shape[axis]
                for i in range(result.shape[axis]):
                    assert set(values.take(i, before).ravel()) == set(result.take(i, axis).ravel())
    one_of_records = {(new, new.index(R)) for new in RESHAPED if R in new and np.prod(new[: new.index(R)]) == np.prod([*old[:place], 1])}
    assert kept >= one_of_records or rows == 1


@pytest.mark.parametrize("named", [True, False])
def test_records_that_reshaping_mixes_are_refused(named):
    """Of six records of two numbers, row by row: the first numbers of all, and then the second."""
    with pm.Model() as model:
        x = np.linspace(-1, 1, 12).reshape(6, 2)
        x = pm.Data("x", x) if named else pt.constant(x, name="x")
        pm.Normal("y", x.T.reshape((6, 2)).sum(axis=1) * pm.Normal("b"), 1, observed=np.zeros(6))
    with pytest.raises(pmdp.Refusal, match="Reshape, which may mix them"):
        pmdp.release(model, epsilon=1.0, bounds={"x" if named else "y:0": (-1, 1), "y": (-1, 1)}, missing={})


@pytest.mark.parametrize("form", ["alloc", "reshape"])
def test_a_private_number_of_records_is_in_no_length(form):
    """A mean that is multiplied by how many records there are, by repeating each of them so often: with add_remove it is refused."""
    for people in (6, 7):
        with pm.Model() as model:
            x = pt.constant(np.linspace(-1, 1, people), name="x")
            repeated = pt.alloc(x[:, None], x.shape[0], x.shape[0]) if form == "alloc" else pt.tile(x[:, None], (1, x.shape[0]))
            pm.Normal("y", pm.Normal("b") * repeated.sum(axis=1), 1, observed=np.zeros(people))
        with pytest.raises(pmdp.Refusal, match="y cannot be released"):
            pmdp.release(model, epsilon=1.0, bounds={"y:0": (-1, 1), "y": (-1, 1)}, neighbours="add_remove", missing={})
