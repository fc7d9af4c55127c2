"""What tells neighbours apart where a chain asks the records: with the noise held still nothing may, whatever a record holds."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from chains import G, N, X, Y, coins, groups, mixture, normal, product
from checks import mostly_slow, pickled

import pymc_dp as pmdp
from pymc_dp.posterior.paid_gibbs import annealed, sweeps
from pymc_dp.privacy import mechanisms

pytestmark = pytest.mark.filterwarnings("ignore")
REAL = 1.123456789
NAMES = {product: ["a", "b"], coins: "t", groups: "t", normal: ["m", "s"], mixture: "m"}


@pytest.fixture(autouse=True)
def seam(monkeypatch):
    """Whatever is asked, the same is answered; and coins that rest on no record fall the same way."""
    monkeypatch.setattr(mechanisms, "_opendp_choice", lambda scores, scale: len(scores) // 2)
    monkeypatch.setattr(mechanisms, "_opendp_gaussian", lambda exact, scale: [12345] * len(exact))
    monkeypatch.setattr(mechanisms, "_opendp_laplace", lambda exact, scale: [12345] * len(exact))
    for room in (sweeps, annealed):
        monkeypatch.setattr(room, "generator", lambda draws, receipt: np.random.default_rng(5))


def ways(make):
    """Every kind of chain, and its delta."""
    common = {"points": 5, "chains": 2}
    yield pmdp.Gibbs(5, burn_in=1, thin=2, **common), 0
    yield pmdp.Gibbs(3, steps=[pmdp.Barker(NAMES[make], 0.5)], **common), 0
    yield pmdp.Gibbs(3, steps=[pmdp.Penalty(NAMES[make], 0.5)], **common), 1e-6
    yield pmdp.Annealing(3, **common), 0
    yield pmdp.Annealing(2, steps=[pmdp.Penalty(NAMES[make], 0.5)], **common), 1e-6


def moved(array, record):
    array = np.array(array)
    array[4] = record
    return array


def neighbours(make):
    """Data sets that differ in one record, which holds anything."""
    if make in (normal, mixture):
        return [make(moved(X, record)) for record in (0.0, -1e300, np.nan)]
    if make is groups:
        return [groups(moved(Y, y), moved(G, g)) for y in (0, 1) for g in (0, 1)]
    return [make(moved(Y, y)) for y in (0, 1)]


def seen(model, capfd, **arguments):
    """All that leaves: the tree, and what was printed; or an exception in words."""
    try:
        tree = pmdp.sample(model=model, **arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}", capfd.readouterr()
    told = {f"{group.path}/{name}": (v.dims, v.values.tolist()) for group in tree.subtree for name, v in group.variables.items()}
    return told, [group.attrs for group in tree.subtree], capfd.readouterr()


@pytest.mark.parametrize("make", mostly_slow([product, coins, groups, normal, mixture], 1, 4))
def test_neighbours_look_the_same(make, capfd):
    for how, delta in list(ways(make))[:: 4 if make in (normal, mixture) else 1]:
        several = [seen(model, capfd, mechanism=how, epsilon=3, delta=delta, **arguments) for model, arguments in neighbours(make)]
        assert isinstance(several[0][0], dict)
        for other in several[1:]:
            np.testing.assert_equal(other, several[0])


def by_computed_index(x):
    """Three rates, looked up by a real number that is rounded down; the bounds end where the table does."""
    with pm.Model() as model:
        t = pm.Uniform("t", -1, 1, shape=3)
        pm.Normal("y", t[pt.floor(pm.Data("x", x)).astype("int64")], 1.0, observed=X)
    return model


@pytest.mark.parametrize("how", [pmdp.Gibbs(2, points=3), pmdp.Annealing(2, points=3)], ids=["gibbs", "annealing"])
def test_an_expression_that_could_fail_for_one_record_is_refused(how, capfd):
    bounds = {"x": (0, 3), "y": (-2, 2)}
    inside = np.full(N, 1.2)
    several = [seen(by_computed_index(moved(inside, x)), capfd, mechanism=how, epsilon=3, bounds=bounds) for x in (1.5, 3.5)]
    assert several[0] == several[1]
    assert "may lie outside its table" in several[0][0]


@pytest.mark.parametrize("every", mostly_slow([3, 2], 0))
def test_no_record_and_no_latent_is_in_the_pickle(every):
    with pm.Model(coords={"row": np.arange(N)}) as model:
        m = pm.Uniform("m", -1, 1, shape=2)
        z = pm.Bernoulli("z", pm.Uniform("w", 0.1, 0.9), dims="row")
        pm.Normal("x", m[z], 0.8, observed=moved(X, REAL), dims="row")
    assert np.float64(REAL).tobytes() in pickled(model)[0]
    for how, delta in list(ways(mixture))[::every]:
        tree = pmdp.sample(model=model, mechanism=how, epsilon=3, delta=delta, bounds={"x": (-2, 2)})
        inspected = pmdp.inspect(model, mechanism=how, epsilon=3, delta=delta, bounds={"x": (-2, 2)})
        for one in (tree, inspected, tree.posterior):
            file, arrays = pickled(one)
            assert np.float64(REAL).tobytes() not in file
            assert not [array.shape for array in arrays if N in array.shape and array.dtype.kind in "fiub"]
