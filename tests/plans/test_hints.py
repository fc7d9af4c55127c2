"""What is said before anything is paid for: which noise is narrower, and where cells are about as many as records."""

import warnings
from fractions import Fraction

import numpy as np
import pymc as pm
import pytest
from checks import flat, refused, seam_of

import pymc_dp as pmdp
from pymc_dp.families.family import Sensitivity
from pymc_dp.plans.hints import FEWEST_RECORDS, gaussian_width, is_sparse

N = 24


def by_group(groups, *, public=True, n=N, y=0):
    with pm.Model() as model:
        p, g = pm.Beta("p", 1, 1, shape=groups), pm.Data("g", np.arange(n) % groups)
        pm.Bernoulli("y", p[g], observed=np.full(n, y))
    return model, {"public": ["g"]} if public else {}


def several(k, disjoint):
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1, shape=k)
        for i in range(k):
            pm.Bernoulli(f"y{i}", p[i], observed=np.zeros(N, int))
    return model, {"disjoint": True} if disjoint else {}


def vector(m):
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=m), observed=np.zeros((N, m), int))
    return model, {}


WIDTHS = {"one": several(1, False), "four": several(4, False), "disjoint": several(4, True), "nine columns": vector(9)}


@pytest.mark.parametrize("case", WIDTHS)
def test_inspect_says_how_wide_gaussian_noise_will_be(case):
    model, arguments = WIDTHS[case]
    arguments = arguments | {"missing": {}}
    row = pmdp.inspect(model, **arguments).rows[0]
    widths = [
        pmdp.release(model, epsilon=1, **noise, **arguments)[row.variable].noise.standard_deviation
        for noise in ({"mechanism": "gaussian", "delta": 1e-6}, {})
    ]
    assert row.gaussian == pytest.approx(widths[0] / widths[1], rel=0.05), (
        "Laplace noise on whole numbers is a little less than sqrt(2) scale"
    )
    assert f"{row.gaussian:.2g} for {row.variable}" in flat(pmdp.inspect(model, **arguments))


def test_gaussian_noise_is_even_at_about_ten_numbers():
    assert gaussian_width(Sensitivity(10, 10, 10, "")) < 1.02
    assert gaussian_width(Sensitivity(1, 1, 1, "")) == pytest.approx(3.2, abs=0.01)
    assert gaussian_width(Sensitivity(1, 1, 1, ""), Fraction(1, 4)) == pytest.approx(gaussian_width(Sensitivity(1, 1, 1, "")) / 2)


def test_inspect_counts_what_is_released_of_how_many_records():
    model, arguments = by_group(3)
    assert "1 of y in every public cell (release counts the cells), from 24 records" in flat(pmdp.inspect(model, **arguments))
    shown = flat(pmdp.inspect(by_group(3, public=False)[0]))
    assert "released numbers: 6 of y, from 24 records" in shown
    assert "about as many cells" not in shown
    assert "released numbers: 18 of y, from 24 records: about as many cells as records" in flat(pmdp.inspect(by_group(9, public=False)[0]))
    private = repr(pmdp.inspect(by_group(9, public=False)[0], neighbours="add_remove"))
    assert "released numbers: 18 of y\n" in private, "the number of records is private, and nothing may be said of it"


def test_counts_have_thousands_separators():
    shown = flat(pmdp.inspect(by_group(1200, public=False, n=2000)[0]))
    assert "1,200 private cells" in shown
    assert "2,400 of y, from 2,000 records: about as many cells" in shown


def test_where_cells_are_few_enough():
    assert is_sparse(9, 9 * FEWEST_RECORDS - 1)
    assert not is_sparse(9, 9 * FEWEST_RECORDS)
    assert not is_sparse(1, 1), "one cell is no cell at all"
    assert not is_sparse(0, 0)


@pytest.mark.parametrize("public", [True, False])
def test_release_warns_where_noise_is_on_every_record(public, tmp_path):
    ledger = pmdp.Ledger(tmp_path / "cells.ledger", epsilon=5.0, create=True)
    for groups in (8, 9):
        model, arguments = by_group(groups, public=public)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            pmdp.release(model, epsilon=1, missing={}, ledger=ledger, **arguments)
        told = [str(warning.message) for warning in caught if warning.category is pmdp.SparseCellsWarning]
        assert [f"y has {groups} cells and {N} records" in words for words in told] == ([True] if groups == 9 else [])
        assert all(warning.filename == __file__ for warning in caught)
    left = ledger.remaining().epsilon
    with warnings.catch_warnings():
        warnings.simplefilter("error", pmdp.SparseCellsWarning)
        with pytest.raises(pmdp.SparseCellsWarning):
            pmdp.release(model, epsilon=1, missing={}, ledger=ledger, **arguments)
    assert ledger.remaining().epsilon == left, "it is said before anything is paid for"


def test_the_warning_rests_on_no_record():
    told = []
    for y in (0, 1):
        with warnings.catch_warnings(record=True) as caught, seam_of(0):
            warnings.simplefilter("always")
            pmdp.release(by_group(9, y=y)[0], epsilon=1, missing={}, public=["g"])
        told.append([str(warning.message) for warning in caught])
    assert told[0] == told[1]
    for n in (3, 24):  # nor, where it is private, on the number of records
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            pmdp.release(by_group(9, public=False, n=n)[0], epsilon=1, missing={}, neighbours="add_remove")
        assert not [warning for warning in caught if warning.category is pmdp.SparseCellsWarning]


def test_rows_that_are_totals_are_cells_by_themselves():
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1, shape=3)
        pm.Poisson("calls", rate, observed=[3, 4, 5])
    unit = pmdp.Individual(events=2)
    assert "released numbers: 1 of calls in every row, from 3 rows" in flat(pmdp.inspect(model, unit=unit))
    with warnings.catch_warnings():
        warnings.simplefilter("error", pmdp.SparseCellsWarning)
        assert refused(pmdp.release, model, epsilon=1.0, unit=unit) is None


def by_plain_arrays(named):
    g, x = np.arange(N) % 3, np.linspace(-1, 1, N)
    with pm.Model() as model:
        a, b = pm.Normal("a", shape=3), pm.Normal("b", shape=3)
        g = pm.Data("g", g) if named else g
        pm.Normal("y", a[g] + b[g] * pm.Data("x", x), 1.0, observed=x)
    return model


ONE_BY_ONE = {
    "add_remove": {"neighbours": "add_remove"},
    "persons": {"unit": pmdp.Person(np.arange(N) // 2, at_most=2, name="who")},
    "replace": {},
}


@pytest.mark.parametrize("case", ONE_BY_ONE)
def test_inspect_says_where_an_array_written_twice_counts_as_two(case):
    """And what it says to write makes it one."""
    arguments = {"bounds": {"y": (-4, 4), "x": (-1, 1)}, "missing": {}} | ONE_BY_ONE[case]
    plain, named = (pmdp.inspect(by_plain_arrays(named), **arguments) for named in (False, True))
    twice = case != "replace"
    assert ("y:0 and y:1 count as different ones" in flat(plain)) == twice
    assert sum(use == "index" for _, use, _ in plain.arrays) == 1 + twice
    assert "count as different ones" not in flat(named)
    assert sum(use == "index" for _, use, _ in named.arrays) == 1
