"""Plain arrays in Potentials: one array that is written twice is one, whatever it holds; any other two are two, even if they are equal."""

import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import flat, refused
from test_potentials import SURVIVAL, E, N, T, law, model_of

import pymc_dp as pmdp
from pymc_dp.models.reader import read_spec
from pymc_dp.models.same_arrays import first_of_each

pytestmark = pytest.mark.filterwarnings("ignore")
FLAGS = E.astype(int)
BINS = {"like": pmdp.Bins(0, 12, 6)}


def log_hazard(t, a, s):
    return pt.log(a / s) + (a - 1) * pt.log(t / s)


def log_survival(t, a, s):
    return -((t / s) ** a)


def model_with(write):
    """A model whose Potential, the sum of what ``write(a, s)`` says of every record, holds plain arrays."""
    with pm.Model() as model:
        pm.Potential("like", write(pm.Gamma("a", 2, 1), pm.Gamma("s", 2, 1)).sum())
    return model


def by_hazard(t, e, again=None):
    return lambda a, s: e * log_hazard(t, a, s) + log_survival(t if again is None else again, a, s)


def by_events(events, others):
    """Density where there were events, survival of the others."""
    return lambda a, s: events * (log_hazard(T, a, s) + log_survival(T, a, s)) + others * log_survival(T, a, s)


TWICE = {
    "hazard": by_hazard(T, FLAGS),
    "a flag of real numbers": by_hazard(T, E.astype(float)),
    "views of one memory": by_hazard(T[:], FLAGS, T.view()),
    "switch": lambda a, s: pt.switch(E, log_hazard(T, a, s) + log_survival(T, a, s), log_survival(T, a, s)),
    "two switches": lambda a, s: pt.switch(E, log_hazard(T, a, s) + log_survival(T, a, s), 0) + pt.switch(E, 0, log_survival(T, a, s)),
    "1 - e in the graph": by_events(FLAGS, 1 - pt.as_tensor(FLAGS)),
}


@pytest.mark.parametrize("name", TWICE)
def test_an_array_that_is_written_twice_is_one(name):
    model = model_with(TWICE[name])
    spec = read_spec(model, binned={"like"})
    assert not spec.problems
    (likelihood,) = spec.likelihoods
    assert likelihood.events is not None
    assert [(i.private, i.event) for i in likelihood.inputs] == [(True, True)]
    assert pmdp.release(model, epsilon=1.0, bounds=BINS)["like"].noisy.shape == (2, 6)


OTHERS = {
    "times": [by_hazard(T, FLAGS, T.copy()), by_hazard(T, FLAGS, T[::-1].copy()), by_hazard(T, FLAGS, T[::-1])],
    "events": [by_events(FLAGS, 1 - pt.as_tensor(again)) for again in (FLAGS.copy(), FLAGS[::-1].copy())],
    "complements": [by_events(FLAGS, others) for others in (1 - FLAGS, (1 - FLAGS)[::-1].copy())],
}
"""Models that differ in whether two arrays hold the same, or one of them the complement of the other."""


@pytest.mark.parametrize("name", OTHERS)
def test_whether_two_arrays_hold_the_same_does_not_show(name):
    words = {refused(pmdp.release, model_with(write), epsilon=1.0, bounds=BINS) for write in OTHERS[name]}
    assert len(words) == 1
    assert "what NumPy computes from one, such as 1 - e, is another array" in words.pop()


def test_only_memory_tells_what_is_one():
    arrays = [pt.constant(array) for array in (T, T, T.copy(), T[:], T[::-1], T[: N // 2], T.view("int64"))]
    found = first_of_each(arrays, sized=True)
    assert [arrays.index(found[array]) for array in arrays] == [0, 0, 2, 0, 4, 5, 6]
    assert list(first_of_each(arrays, sized=False).values()) == arrays


@pytest.mark.parametrize("n", [0, 1, 2, N])
def test_plain_arrays_are_two_where_their_number_is_private(n):
    """PyTensor may copy one without entries, and whether there are any would show."""
    model = model_with(by_hazard(T[:n], FLAGS[:n]))
    words = refused(pmdp.release, model, epsilon=1.0, bounds=BINS, neighbours="add_remove")
    assert "is another array" in words
    assert words == refused(pmdp.release, model_with(TWICE["hazard"]), epsilon=1.0, bounds=BINS, neighbours="add_remove")


@pytest.mark.parametrize("write", [
    lambda dist: FLAGS * pm.logp(dist, T) + (1 - FLAGS) * pm.logccdf(dist, T),
    lambda dist: pt.switch(E, pm.logp(dist, T), pm.logccdf(dist, T)),
    lambda dist: pt.switch(E.astype(float), pm.logp(dist, T), pt.log1mexp(pm.logcdf(dist, T))),
])  # fmt: skip
def test_what_is_said_of_plain_arrays_can_be_written(write):
    """``pm.logp`` makes a copy each time: to find that both hold the same they would have to be read."""
    model = model_with(lambda a, s: write(pm.Weibull.dist(2, s)))
    words = refused(pmdp.release, model, epsilon=1.0, bounds=BINS)
    data, formula = "t = pm.Data('t', times) and e = pm.Data('e', events)", "e * pm.logp(dist, t) + (1 - e) * pm.logccdf(dist, t)"
    assert data in words
    assert '1 - e of this e, and bounds={"t": ...}' in words
    assert formula in words
    with pm.Model() as instead:
        names = {"pm": pm, "times": T, "events": FLAGS, "dist": law(pm.Gamma("a", 2, 1), pm.Gamma("s", 2, 1))}
        exec(data.replace(" and ", "; "), names)
        pm.Potential("like", eval(formula, names).sum())
    assert pmdp.release(instead, epsilon=1.0, bounds={"t": BINS["like"]})["t"].noisy.shape == (2, 6)


@pytest.mark.parametrize("form", [pt.logaddexp, lambda *of: pt.log(sum(map(pt.exp, of)))], ids=["logaddexp", "log of sums"])
def test_a_model_that_was_read_can_be_read_again(form):
    """What a formula says of made-up numbers was compiled, which left its traces on the user's own operations."""
    with pm.Model() as model:
        t, w, s = pm.Data("t", T), pm.Beta("w", 2, 2), pm.Gamma("s", 2, 1)
        pm.Potential("like", form(pt.log(w) + pm.logp(law(2, s), t), pt.log(1 - w) + pm.logp(law(3, s), t)).sum())
    first = flat(pmdp.inspect(model, bounds={"t": BINS["like"]}))
    assert "not released" not in first
    assert flat(pmdp.inspect(model, bounds={"t": BINS["like"]})) == first


def test_a_refusal_of_named_arrays_says_nothing_of_plain_ones():
    model = model_of(lambda t, e, a, s: pm.Potential("like", (e * pm.logp(law(a, s), t)).sum()))
    assert "NumPy" not in refused(pmdp.release, model, epsilon=1.0, bounds={"t": BINS["like"], "x": (0, 1)})
    assert pmdp.release(model_of(SURVIVAL["product"]), epsilon=1.0, bounds={"t": BINS["like"], "x": (0, 1)})["t"].noisy.size
