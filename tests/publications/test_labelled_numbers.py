"""Published numbers that bring labels along, and masked ones: nothing is taken for the number of another row, or for one that was shown."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

import pymc_dp as pmdp
from pymc_dp.publications.table_queries import rows_of

AREAS, AGES = ["north", "south"], ["young", "old"]
NUMBERS = np.array([[1.0, 2.0], [30.0, 40.0]])
ORDER = "another order, or along another axis"


def deaths(shape=(2, 2), observed=None):
    with pm.Model(coords={"area": AREAS, "age": AGES}) as truth:
        dims = ("area", "age")[: len(shape)]
        rate = pm.Gamma("rate", 2, 0.1, dims=dims)
        pm.Poisson("deaths", rate, observed=np.ones(shape, dtype=int) if observed is None else observed, dims=dims)
    return truth


def density(model):
    """Log-probability of every published row, at one point."""
    return model.compile_logp(sum=False, vars=model.observed_RVs, mode="FAST_COMPILE")(model.initial_point())


def frame(rows=AREAS, columns=AGES, values=NUMBERS):
    return pd.DataFrame(values, index=rows, columns=columns)


def array(dims=("area", "age"), values=NUMBERS, **coords):
    return xr.DataArray(values, dims=dims, coords={dim: {"area": AREAS, "age": AGES}[dim] for dim in dims} | coords)


WRONG = {
    "rows of a frame": (frame(AREAS[::-1]), ORDER),
    "columns of a frame": (frame(columns=AGES[::-1]), ORDER),
    "a frame turned": (frame(AGES, AREAS), ORDER),
    "named axes of a frame": (frame([0, 7], [0, 7]).rename_axis(index="age", columns="area"), "has the dims"),
    "labels of an array": (array(age=AGES[::-1]), ORDER),
    "an array turned": (array(("age", "area")), "has the dims"),
}
RIGHT = {
    "a frame": frame(),
    "a frame without labels": pd.DataFrame(NUMBERS),
    "other labels": frame(["N", "S"], ["0-40", "41+"]),
    "an array": array(),
    "an array without labels": xr.DataArray(NUMBERS, dims=("area", "age")),
    "an array of other dims": xr.DataArray(NUMBERS, dims=("row", "column")),
}


def of_values(numbers):
    return pmdp.published(deaths(), {"deaths": pmdp.LaplaceNoise(2.0)}, values={"deaths": numbers})


def of_scales(numbers):
    return pmdp.published(deaths(), {"deaths": pmdp.DiscreteLaplace(numbers)})


def of_ends(numbers):
    return pmdp.published(deaths(), {"deaths": [pmdp.DiscreteLaplace(2), pmdp.Clipped(upper=numbers)]})


def of_noisy(numbers):
    with pm.Model(coords={"area": AREAS, "age": AGES}) as public:
        pmdp.Noisy("deaths", pm.Poisson.dist(pm.Gamma("rate", 2, 0.1)), pmdp.LaplaceNoise(2.0), observed=numbers, dims=("area", "age"))
    return public


def of_noisy_scales(numbers):
    with pm.Model(coords={"area": AREAS, "age": AGES}) as public:
        law = pmdp.Codebook([pmdp.DiscreteGaussian(numbers)])
        pmdp.Noisy("deaths", pm.Poisson.dist(pm.Gamma("rate", 2, 0.1)), law, observed=np.ones((2, 2)), dims=("area", "age"))
    return public


WAYS = [of_values, of_scales, of_ends, of_noisy, of_noisy_scales]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", WRONG)
def test_numbers_in_another_order_than_the_model_s_are_refused(kind, way):
    """They were taken by their places: those of the south for those of the north."""
    numbers, words = WRONG[kind]
    with pytest.raises(pmdp.Refusal, match=words):
        way(numbers)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", RIGHT)
def test_labels_that_agree_or_are_none_of_the_model_s_change_nothing(kind, way):
    np.testing.assert_array_equal(density(way(RIGHT[kind])), density(way(NUMBERS)))


@pytest.mark.filterwarnings("ignore")
def test_scales_of_a_series_go_with_their_rows_also_where_some_were_not_published():
    """The row in the middle is below a threshold, and known to be."""
    with pm.Model() as truth:
        pm.Poisson("deaths", pm.Gamma("rate", 2, 0.1), observed=np.ma.masked_array([30, 0, 50], mask=[False, True, False]))
    law = lambda scales: [pmdp.DiscreteLaplace(scales), pmdp.Threshold(20, absent="listed")]  # noqa: E731
    scales = [2.0, 9.0, 30.0]
    plain, series = (pmdp.published(truth, {"deaths": law(given)}) for given in (scales, pd.Series(scales, index=["a", "b", "c"])))
    for one, other in zip(density(plain), density(series), strict=True):
        np.testing.assert_array_equal(one, other)


# ---------- sums by cell


def visits(labelled=True):
    with pm.Model(coords={"area": AREAS} if labelled else None) as one_record:
        rate = pm.Gamma("rate", 2, 1, dims="area" if labelled else None, shape=None if labelled else 2)
        pm.Poisson("visits", rate[pm.Data("of", [0, 1])], observed=[0, 0])
    return one_record


def of_sums(numbers=(412.0, 10.0), scales=30.0, n=(100, 100), labelled=True, cells=None):
    law = {"visits": {"sum visits": (numbers, pmdp.LaplaceNoise(scales))}}
    return pmdp.published(visits(labelled), statistics=law, bounds={"visits": (0, 20)}, n=n, cells=cells)


SERIES = pd.Series([412.0, 10.0], index=AREAS)


@pytest.mark.parametrize("given", ["numbers", "scales", "n", "noisy n"])
def test_sums_in_another_order_than_the_model_s_cells_are_refused(given):
    turned = SERIES[::-1]
    words = {"n": (turned, pmdp.LaplaceNoise(1.0))} if given == "noisy n" else {given: turned}
    with pytest.raises(pmdp.Refusal, match=ORDER):
        of_sums(**words)
    of_sums(**({"n": (SERIES, pmdp.LaplaceNoise(1.0))} if given == "noisy n" else {given: SERIES}))


@pytest.mark.parametrize("turned", ["n", "scales", "cells"])
def test_what_is_said_of_cells_is_in_one_order(turned):
    """Also where the model has no labels: of two series of the same cells both have the same order."""
    plain = {"numbers": SERIES, "n": SERIES, "scales": SERIES, "cells": {"of": pd.Series([0, 1], index=AREAS)}}
    assert len(of_sums(**plain, labelled=False).released) == 1
    wrong = {"of": plain["cells"]["of"][::-1]} if turned == "cells" else plain[turned][::-1]
    with pytest.raises(pmdp.Refusal, match=ORDER):
        of_sums(**plain | {turned: wrong}, labelled=False)


@pytest.mark.parametrize("given", ["numbers", "scales", "n"])
@pytest.mark.parametrize("kind", WRONG)
def test_sums_by_two_indices_have_their_axes_in_the_model_s_order(kind, given):
    with pm.Model(coords={"area": AREAS, "age": AGES}) as one_record:
        rate = pm.Gamma("rate", 2, 1, dims=("area", "age"))
        pm.Poisson("visits", rate[pm.Data("of", [0, 1]), pm.Data("years", [0, 1])], observed=[0, 0])

    def make(numbers=NUMBERS, scales=30.0, n=NUMBERS + 100):
        law = {"visits": {"sum visits": (numbers, pmdp.LaplaceNoise(scales))}}
        return pmdp.published(one_record, statistics=law, bounds={"visits": (0, 20)}, n=n)

    numbers, words = WRONG[kind]
    make(**{given: frame()})
    make(**{given: array()})
    others = frame(["N", "S"], ["0-40", "41+"])  # of which the model knows nothing: numbers are in one order with each other
    make(others, others, others + 100)
    with pytest.raises(pmdp.Refusal, match=ORDER):
        make(others, others, others.T + 100)
    with pytest.raises(pmdp.Refusal, match=words):
        make(**{given: numbers})


# ---------- sums of a table


def table(values=NUMBERS, scales=2.0, impossible=None, groups=None):
    query = pmdp.TableQuery(values, pmdp.GaussianNoise(scales), dims=("area", "age"))
    return pmdp.PublishedTable({"area": AREAS, "age": AGES}, [query], groups=groups or {}, impossible=impossible)


@pytest.mark.parametrize("given", ["values", "scales", "impossible"])
@pytest.mark.parametrize("kind", WRONG)
def test_a_query_in_another_order_than_the_table_s_is_refused(kind, given):
    numbers, words = WRONG[kind]
    with pytest.raises(pmdp.Refusal, match=words):
        table(**{given: numbers > 100 if given == "impossible" else numbers})


def test_groups_in_another_order_than_their_labels_are_refused():
    of = pd.Series(["a", "b"], index=AREAS)
    assert table(groups={"county": ("area", of)}).shape == (2, 2)
    with pytest.raises(pmdp.Refusal, match=ORDER):
        table(groups={"county": ("area", of[::-1])})


def test_sums_by_a_group_have_its_labels():
    series, order = pd.Series([3.0, 70.0], index=["b", "a"]), ["b", "a"]
    make = lambda values: pmdp.PublishedTable(  # noqa: E731
        {"area": AREAS}, [pmdp.TableQuery(values, pmdp.GaussianNoise(1.0), dims=("county",))], groups={"county": ("area", order)}
    )
    assert rows_of(make(series)).values.tolist() == [3.0, 70.0]
    with pytest.raises(pmdp.Refusal, match=ORDER):
        make(series[::-1])


# ---------- what is masked


def test_masked_sums_of_a_table_were_not_published():
    """What lies under a mask was read as a number."""
    masked = np.ma.masked_array([[1.0, -999.0], [30.0, 40.0]], mask=[[False, True], [False, False]])
    rows = rows_of(table(masked))
    assert (rows.values.tolist(), rows.matrix.shape) == ([1.0, 30.0, 40.0], (3, 4))


MASKED = {
    "scale": pmdp.DiscreteLaplace,
    "variance": pmdp.GaussianNoise.from_variance,
    "Skellam": pmdp.Skellam,
    "ends": lambda masked: pmdp.Clipped(upper=masked),
    "threshold": lambda masked: pmdp.Threshold(masked, absent="listed"),
    "n": lambda masked: of_sums(n=masked),
}


@pytest.mark.parametrize("kind", MASKED)
def test_a_setting_under_a_mask_is_none(kind):
    MASKED[kind](np.ma.masked_array([100.0, 999.0], mask=[False, False]))
    with pytest.raises(pmdp.Refusal, match="must be"):
        MASKED[kind](np.ma.masked_array([100.0, 999.0], mask=[False, True]))
