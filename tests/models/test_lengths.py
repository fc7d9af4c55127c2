"""No number of a record decides how long something is, or which entry is read: PyTensor works such numbers out while a model is built."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dp as pmdp

N = 40
X = np.arange(N) % 2
Y = np.linspace(-1, 2, N)
BOUNDS = {"y": pmdp.Bins(-4, 8, 12)}


def observed(x, first):
    pm.Normal("y", (x[:, None] * pm.Normal("m") + pt.zeros((1, first + 1))).sum(axis=1), 1.0, observed=Y)


def unknowns(x, first):
    m = pm.Normal("m", shape=(first + 1,))
    pm.Normal("y", (x[:, None] * m).sum(axis=1), 1.0, observed=Y)


def terms(_, first):
    y = pm.Data("y", Y)
    m = pm.Normal("m")
    pm.Potential("like", pt.logsumexp(pm.logp(pm.Normal.dist(m, 1.0), y)[:, None] + pt.zeros((1, first + 1)), axis=1).sum())


def entry(_, first):
    y = pm.Data("y", Y)
    m = pm.Normal("m", shape=3)
    pm.Potential("like", (-0.5 * (y[:, None] - m) ** 2 - 0.5 * np.log(2 * np.pi))[:, first].sum())


MODELS = (observed, unknowns, terms, entry)


def said(write, first):
    """What is said of a model in which the first number of an array is this one."""
    held = X.copy()
    held[0] = first
    with pm.Model() as model:
        write(pm.Data("x", X), pt.as_tensor(held)[0])
    potential = write in (terms, entry)
    with pytest.raises(pmdp.Refusal) as refusal:
        pmdp.release(model, epsilon=1.0, bounds=BOUNDS if potential else {"y": (-4, 8), "x": (0, 1)})
    return str(refusal.value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("write", MODELS)
def test_no_number_of_an_array_is_a_length_or_a_place(write):
    """Refused in the same words whatever the number is; it showed in the private model."""
    words = {said(write, first) for first in (0, 1, 2)}
    assert len(words) == 1
    assert "Write the number itself in its place" in words.pop()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("write", [observed, unknowns])
def test_a_few_records_are_no_tuple_of_lengths(write):
    """Where their number is private, four are refused in the words of five: a plain array of a few whole numbers looks like a shape."""
    words = set()
    for many in (5, 4, 2, 1):
        held = pt.as_tensor(X[:many] + 1)
        with pm.Model() as model:
            m = pm.Normal("m", shape=3)
            pm.Normal("y", held * (m[held[0]] if write is unknowns else pt.zeros((held[0],)).sum()), 1.0, observed=Y[:many])
        with pytest.raises(pmdp.Refusal) as refusal:
            pmdp.release(model, epsilon=1.0, bounds={"y": (-4, 8)}, neighbours="add_remove")
        words.add(str(refusal.value).replace(str((many,)), "(n,)"))
    assert len(words) == 1
    assert "Write the number itself in its place" in words.pop()


@pytest.mark.filterwarnings("ignore")
def test_a_product_that_pytensor_writes_otherwise_for_one_record_needs_their_number_to_be_public():
    """``einsum`` with private rows of one record, which was refused where two were not."""
    for neighbours, several in (("replace", (4,)), ("add_remove", (4, 2, 1))):
        found = set()
        for many in several:
            with pm.Model() as model:
                X, b = pm.Data("X", np.ones((many, 3)) / 2), pm.Normal("b", shape=(2, 3))
                pm.Normal("y", pt.einsum("ij,ij->i", X, b[np.arange(many) % 2]), 1.0, observed=Y[:many])
            try:
                pmdp.release(model, epsilon=1.0, bounds={"y": (-4, 8), "X": (0, 1)}, neighbours=neighbours)
                found.add("released")
            except pmdp.Refusal as refusal:
                found.add(str(refusal).replace(str((many, 3)), "(n, 3)"))
        assert len(found) == 1
        assert ("through Einsum, which may mix them" in found.pop()) == (neighbours == "add_remove")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("write", MODELS)
def test_the_number_itself_may_be_written(write):
    """What the refusal says, written."""
    with pm.Model() as model:
        write(pm.Data("x", X), 1)
    bounds = BOUNDS if write in (terms, entry) else {"y": (-4, 8), "x": {0, 1}}
    assert pmdp.release(model, epsilon=1.0, bounds=bounds).epsilon == 1


@pytest.mark.filterwarnings("ignore")
def test_plain_numbers_and_lengths_of_arrays_are_lengths():
    with pm.Model() as model:
        x = pm.Data("x", X)
        pm.Normal("y", x * pm.Normal("m") + pt.zeros((x.shape[0], 2)).sum(axis=1), 1.0, observed=Y)
    assert pmdp.release(model, epsilon=1.0, bounds={"y": (-4, 8), "x": {0, 1}}).epsilon == 1


@pytest.mark.filterwarnings("ignore")
def test_a_shape_that_may_be_left_out_is_named():
    """Where the number of records is private, an entry of a shape cannot be told from one of a few records."""

    def model_of(**shape):
        with pm.Model() as model:
            mu = pm.Normal("mu", shape=2)
            mixture = pm.Mixture.dist(pm.Dirichlet("w", [1, 1]), pm.Normal.dist(mu, 1.0, **shape))
            pm.Potential("like", pm.logp(mixture, pm.Data("y", Y)).sum())
        return model

    with pytest.raises(pmdp.Refusal, match="leave shape= out where parameters say how many there are"):
        pmdp.release(model_of(shape=2), epsilon=1.0, bounds=BOUNDS, neighbours="add_remove")
    assert pmdp.release(model_of(), epsilon=1.0, bounds=BOUNDS, neighbours="add_remove").epsilon == 1
    assert pmdp.release(model_of(shape=2), epsilon=1.0, bounds=BOUNDS).epsilon == 1
