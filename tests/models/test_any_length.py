"""Potentials of plain arrays, whose lengths PyTensor knows: where the number of records is private nothing rests on them."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from checks import refused
from test_leaks import neighbours_look_alike

import pymc_dp as pmdp

pytestmark = pytest.mark.filterwarnings("ignore")
T = np.linspace(0.1, 11, 6)
BINS = {"like": pmdp.Bins(0, 12, 3)}


def of(write):
    """A model with a Potential that ``write`` makes of two unknowns."""
    with pm.Model() as model:
        pm.Potential("like", write(pm.Normal("a"), pm.HalfNormal("s")))
    return model


def summed(n):
    return of(lambda a, s: pm.logp(pm.Normal.dist(a, s), T[:n]).sum())


def by_record(n):
    return of(lambda a, s: pm.logp(pm.Normal.dist(a, s), T[:n]))


def fixed(n):
    """A ``pm.Data`` whose length was given."""
    return of(lambda a, s: pm.logp(pm.StudentT.dist(4, mu=a, sigma=s), pm.Data("t", T[:n], shape=(n,))).sum())


def of_column(n):
    return of(lambda a, s: pm.logp(pm.Normal.dist(a, s), pt.constant(np.column_stack([T, T])[:n])[:, 0]).sum())


@pytest.mark.parametrize("records", [0, 1, 2])
@pytest.mark.parametrize("make", [summed, by_record, fixed, of_column])
def test_a_single_record_is_read_as_several_are(make, records):
    """A sum over one record was taken for a number that stands beside a sum over records, and refused."""
    bounds = {"t": BINS["like"]} if make is fixed else BINS
    neighbours_look_alike(make(records), make(records + 1), bounds=bounds, neighbours="add_remove")


def selected(seen, lost):
    """Two arrays, the one as long as there were events and the other as there were losses."""
    t, c = np.linspace(0.1, 11, seen), np.linspace(0.2, 9, lost)
    return of(lambda a, s: pm.logp(pm.Normal.dist(a, s), t).sum() + pm.logccdf(pm.Normal.dist(a, s), c).sum())


def weighed(seen, lost):
    """The other one says nothing of an unknown: of as many records it was a part of the density, and else refused."""
    t, c = np.linspace(0.1, 11, seen), np.linspace(0.2, 9, lost)
    return of(lambda a, s: pm.logp(pm.Normal.dist(a, s), t).sum() + pm.logp(pm.Normal.dist(0, 1), c).sum())


@pytest.mark.parametrize("make", [selected, weighed])
@pytest.mark.parametrize("others", [4, 5, 1])
def test_whether_two_arrays_are_as_long_as_each_other_does_not_show(make, others):
    words = {refused(pmdp.release, make(seen, others), epsilon=1, bounds=BINS, neighbours="add_remove") for seen in (1, 4, 5)}
    assert len(words) == 1


def test_an_array_as_long_as_the_records_is_refused_whatever_its_length():
    words = {
        refused(pmdp.release, of(lambda a, s, n=n: pm.logp(pm.Normal.dist(a, s), T[:n]) + pt.ones(n)), epsilon=1, bounds=BINS,
                neighbours="add_remove")
        for n in (1, 5)
    }  # fmt: skip
    assert len(words) == 1
    assert "as long as the records" in words.pop()
