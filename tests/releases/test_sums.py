"""Sums of whole numbers are those of Python's own integers, whatever way they are taken, up to the largest that doubles hold."""

import numpy as np
import pytest

from pymc_dp.families.family import Domain, all_families, complete
from pymc_dp.families.grid import POINTS, clamps, onto_grid
from pymc_dp.models.tabulated import BINNED, TABLE
from pymc_dp.releases import sums, totals

RNG = np.random.default_rng(5)
EVERY = [(i, j) for i in range(4) for j in range(i, 4)]


def by_hand(columns, entries, codes, cells):
    whole = columns.astype(np.int64).astype(object)
    return np.array([[(whole[i] * whole[j])[codes == cell].sum() for cell in range(cells)] for i, j in entries], dtype=object)


@pytest.mark.parametrize("largest", [sums.EXACT_DOUBLE, POINTS**2 * 7, 1])
@pytest.mark.parametrize("cells", [1, 3, 200])
def test_products_are_summed_exactly_in_any_blocks_and_cells(monkeypatch, largest, cells):
    """200 cells of 300 records are counted in one pass, three are sorted; a cell may have no record."""
    monkeypatch.setattr(sums, "EXACT_DOUBLE", largest)
    columns, codes = RNG.integers(-POINTS, POINTS, (4, 300), endpoint=True).astype(float), RNG.integers(0, cells, 300)
    columns[0], columns[1, 100:] = POINTS, POINTS
    codes[codes == cells // 2] = 0
    for entries in (EVERY, [(0, 3), (3, 3)], [(1, 2)]):
        found = sums.product_totals(columns, entries, codes, cells, POINTS)
        assert found.tolist() == by_hand(columns, entries, codes, cells).tolist()


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("cells", [1, 2, 150])
def test_products_at_the_ends_of_what_doubles_hold(sign, cells):
    """Odd numbers whose products are 2**52: two of them still add up exactly, so blocks are of two records, and three would not."""
    largest = 2**26
    columns = np.full((2, 201), largest - 1.0) * [[1], [sign]]
    columns[:, -1] = 1
    codes = np.zeros(201, dtype=int)
    found = sums.product_totals(columns, [(0, 1)], codes, cells, largest)
    expected = 200 * sign * (largest - 1) ** 2 + 1
    assert found[0, 0] == expected != int(float(expected))
    assert (found[0, 1:] == 0).all()


@pytest.mark.parametrize("cells", [1, 2, 2**sums.MOST_BITS - 3, 2**sums.MOST_BITS, 2**sums.MOST_BITS + 1, 100])
@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int64])
@pytest.mark.parametrize("piece", [7, 1000, 10**6])
def test_counts_are_those_of_bincount(monkeypatch, cells, kind, piece):
    monkeypatch.setattr(sums, "IN_CACHE", piece)
    codes = RNG.integers(0, cells, 1000).astype(kind)
    assert sums.counts(codes, cells).tolist() == np.bincount(codes, minlength=cells).tolist()


def test_whole_numbers_are_seen_to_be_levels_in_any_pieces(monkeypatch):
    """One that is none is seen wherever it is; the others are what they were."""
    monkeypatch.setattr(totals, "IN_CACHE", 7)
    levels = RNG.integers(2, 6, 50)
    found = totals.within(levels, 2, 5)
    assert (found.dtype, found.tolist()) == (np.int8, levels.tolist())
    for place in range(50):
        for odd in (1, 6, -1, 258, 2**32 + 3):
            assert totals.within(np.where(np.arange(50) == place, odd, levels), 2, 5) is None


WILD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308, 0.5, 1.5, 2.5, -0.5])


def test_statistics_of_families_that_count_rest_on_whole_values_alone():
    counting = 0
    cases = [(family, example.domain) for family in all_families() for example in family.EXAMPLES]
    for family, domain in [*cases, (TABLE, Domain(2, 9)), (BINNED, Domain(0, 5, edges=(0, 1.5, 2.5, 5)))]:
        wholes = family.whole_values(domain)
        if wholes is None:
            continue
        counting += 1
        between = np.arange(domain.lower, domain.upper) + 0.5
        around = RNG.uniform(domain.lower - 1, domain.upper + 1, 500)
        values = np.concatenate([WILD, around, between, np.nextafter(between, np.inf), np.arange(domain.lower, domain.upper + 1)])
        inside = complete(values, domain)
        level = np.rint(inside)
        assert set(level.tolist()) == set(map(float, wholes))
        exact, of_each = family.exact(inside, domain), family.exact(np.array(wholes, dtype=float), domain)
        for statistic, by_level in zip(exact, of_each, strict=True):
            assert statistic.tolist() == by_level[(level - wholes.start).astype(int)].tolist()
    assert counting >= 9


@pytest.mark.parametrize(("lower", "upper"), [(-4.1, 4.0), (0.0, 1e-300), (-1e150, 1e150), (1e5, 1e5 + 1), (-1.0, 1.0)])
def test_rounding_to_the_grid_is_one_formula(lower, upper):
    """Written once more as one expression, for values at halves of grid points, far beyond the bounds, and none at all."""
    centre, half = lower / 2 + upper / 2, (upper - lower) / 2
    halves = centre + half * (RNG.integers(-POINTS, POINTS, 500) + 0.5) / POINTS
    values = np.concatenate([WILD, halves, np.nextafter(halves, np.inf), RNG.uniform(lower, upper, 500), [lower, upper, centre]])
    with np.errstate(all="ignore"):
        u = np.rint((values - centre) * (POINTS / half) if half > 1e-290 else (values - centre) / half * POINTS)
        expected = np.clip(np.where(np.isnan(u), 0.0, u), -POINTS, POINTS)
    assert onto_grid(values, centre, half).tolist() == expected.tolist()
    assert [onto_grid(values[k : k + 1], centre, half)[0] for k in range(40)] == expected[:40].tolist()
    assert onto_grid(np.stack([values, values]).T[:, 1], centre, half).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("lower", "upper"), [(-4.1, 4.0), (0.0, 1e-300), (-1e150, 1e150), (1e5, 1e5 + 1), (2.0**60, 2.0**60 + 256), (1e15, 1e15 + 1)]
)
def test_a_grid_clamps_only_where_its_ends_are_the_bounds(lower, upper):
    """Between bounds that are close to each other for their size the middle is rounded, and what is beyond one of them is moved too far."""
    assert clamps(lower, upper) == (lower != 2.0**60)
    if clamps(lower, upper):
        beyond = [np.nextafter(end, way) for end in (lower, upper) for way in (np.inf, -np.inf)]
        values = np.concatenate([WILD, RNG.uniform(lower, upper, 500), beyond, [lower, upper, lower - 1, upper + 1]])
        centre, half = lower / 2 + upper / 2, (upper - lower) / 2
        assert onto_grid(values, centre, half).tolist() == onto_grid(complete(values, Domain(lower, upper)), centre, half).tolist()


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int8, np.int64, np.uint64, bool, object])
@pytest.mark.parametrize("fill", [None, 3.0, 9.0, np.nan])
def test_values_are_completed_by_one_formula_and_stay_as_they_were(kind, fill):
    domain = Domain(-2.5, 4.0, fill=fill)
    with np.errstate(over="ignore"):
        wild = WILD.astype(np.float32).astype(kind) if kind in (np.float32, object) else WILD
    values = wild if kind in (np.float64, np.float32, object) else RNG.integers(0, 2, 40).astype(kind)
    if values.dtype.kind in "iu":
        values[:2] = np.iinfo(kind).max, np.iinfo(kind).min
    before = values.tobytes()
    numbers = values.astype(float)
    expected = np.clip(np.where(np.isnan(numbers), domain.middle, numbers), -2.5, 4.0)
    np.testing.assert_array_equal(complete(values, domain), expected)
    assert values.tobytes() == before
    assert not np.shares_memory(complete(values, domain), values)
