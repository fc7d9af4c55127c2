"""No pair of neighbours moves the exact integers by more than what noise is calibrated to, and some pair attains it.

Statistics are sums over records, so what replacing a record moves is the distance between the sums of two data sets of one record,
and what one record more or less moves is the size of such a sum. Every structure is tried over all pairs of records from a list
that stretches values, levels and features, or by climbing hills.
"""

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_families import interesting

from pymc_dp.families.family import Domain, all_families
from pymc_dp.families.grid import POINTS
from pymc_dp.families.second_moments import Regression
from pymc_dp.models.spec import Likelihood, Placeholder
from pymc_dp.models.tabulated import BINNED, TABLE, Table
from pymc_dp.plans.bins import Bins
from pymc_dp.plans.bounds import Bounded
from pymc_dp.plans.plan import planned
from pymc_dp.plans.statistic import Grid, PlannedStatistic
from pymc_dp.releases.statistics import Cells, completed
from pymc_dp.releases.totals import clamped, exact_totals

CASES = [(family, example.domain) for family in all_families() for example in family.EXAMPLES] + [
    (TABLE, Domain(2, 9)),
    (BINNED, Domain(-1, 4, edges=(-1.0, -0.5, 0.0, 2.5, 4.0))),
]
IDS = [f"{family.DISTRIBUTION}-{k}" for family in all_families() for k, _ in enumerate(family.EXAMPLES)] + ["table of values", "bins"]


def likelihood_of(family, domain, inputs):
    levels = domain.levels
    return Likelihood(
        "y", family.DISTRIBUTION, family, unknown=domain.unknown, known=domain.known, levels=levels, inputs=inputs,
        make=(lambda *_: None) if isinstance(family, Table) else None, between=(lambda *_: None) if family is BINNED else None,
    )  # fmt: skip


def plan_of(family, domain, inputs, neighbours):
    given = Bins(edges=domain.edges) if domain.edges else (domain.lower, domain.upper)
    bounds = {} if family.natural(domain.levels, domain.known) is not None else {"y": given}
    return planned(likelihood_of(family, domain, inputs), bounds, neighbours)


def values_for(family, domain):
    """Values (M, ...) that stretch a family's statistics; of several entries each where it needs them."""
    ends = [domain.lower, domain.upper]
    known = [number for number in domain.known if number is not None]
    values = [
        *interesting(family, domain)[::4],
        *ends,
        *np.nextafter(ends, domain.middle),
        *np.nextafter(known, domain.lower),
        domain.middle,
    ]
    if not family.NDIM:
        return np.array(values, dtype=object)
    rng = np.random.default_rng(3)
    corners = np.eye(domain.levels) * domain.upper
    return np.concatenate([corners, rng.uniform(domain.lower - 1, domain.upper + 1, size=(40, domain.levels))])


def sums_of_one_record(step, values, codes):
    """Integers (records, ...) of every record by itself, in its private cell."""
    V = step.grid.size
    result = []
    for value, code in zip(values, codes, strict=True):
        private = {"index": np.array([[float(code)]])} if V > 1 else {}
        cells = Cells(np.zeros(1, dtype=int), np.array([1]), ())
        result.append(clamped(exact_totals(np.array([value], dtype=values.dtype), step, cells, private, None, None, None)).ravel())
    return np.array(result, dtype=np.int64)


@pytest.mark.parametrize("setting", ["public cells", "private cells", "add or remove", "private cells, add or remove"])
@pytest.mark.parametrize(("family", "domain"), CASES, ids=IDS)
def test_sums_in_cells_move_by_no_more_than_is_paid_for(family, domain, setting):
    """More than 10,000 pairs; at least 99 % of the L1 and of the L2 sensitivity attained."""
    index = Placeholder(pt.tensor("index", dtype="int64", shape=(None,)), 0, "g", private=True, index=True, levels=3)
    step = plan_of(family, domain, (index,) if "private" in setting else (), "add_remove" if "add" in setting else "replace")
    values = values_for(family, domain)
    cells = range(step.grid.size)
    values, codes = np.concatenate([values for _ in cells]), np.repeat(list(cells), len(values))
    sums = sums_of_one_record(step, values, codes)
    if "add" in setting:
        moves = sums
    else:
        pairs = np.random.default_rng(5).integers(0, len(sums), size=(2, 12_000))
        extremes = np.unique([*np.argsort(np.abs(sums).sum(-1))[[0, -1]], *sums.argmin(axis=0), *sums.argmax(axis=0)])
        pairs = np.concatenate([pairs, np.array(np.meshgrid(range(len(sums)), extremes)).reshape(2, -1)], axis=1)
        moves = sums[pairs[0]] - sums[pairs[1]]
    L1 = np.array([sum(abs(int(entry)) for entry in move) for move in moves])
    L2 = np.array([float(sum(int(entry) ** 2 for entry in move)) for move in moves])
    assert L1.max() <= step.sensitivity.difference
    assert L2.max() <= step.sensitivity.square
    assert L1.max() >= 0.99 * step.sensitivity.difference
    assert L2.max() >= 0.98 * step.sensitivity.square


REGRESSIONS = [
    (0, 0, 1, True, False), (0, 0, 1, False, False), (0, 0, 2, False, False), (0, 2, 1, True, False), (0, 2, 1, False, False),
    (1, 0, 1, False, False), (1, 0, 1, True, False), (3, 0, 1, False, False), (3, 2, 1, True, False), (2, 3, 1, False, False),
    (2, 0, 3, False, False), (2, 1, 2, True, False), (5, 0, 1, False, False), (1, 0, 1, False, True), (2, 0, 2, True, True),
    (1, 0, 1, False, False, (2, 3)), (3, 1, 1, True, False, (1, 3)), (2, 0, 1, False, True, (1, 2)),
]  # fmt: skip


def regression_of(m, p, q, known, counted, multipliers=(1, 1)):
    F = 1 + m + p
    private = (False, *[True] * m, *[counted] * p)
    return Regression(
        tuple(f"f{k}" for k in range(F)), private, (-1.0,) * F, (1.0,) * F, (-1.0,) * q, (1.0,) * q, known, counted,
        public_norm=1.0 + (0 if counted else p), public_square=1.0 + (0 if counted else p),
        multipliers=multipliers,
    )  # fmt: skip


def moved(regression, first, second):
    """L1 and squared L2 distance of the moments of records (M, size) on [-1, 1]."""
    F = len(regression.names)
    entries = []
    for rows in (first, second):
        columns = regression.scaled(rows[:, :F], rows[:, F:])
        entries.append(np.stack(list(regression.exact(columns)), axis=-1))
    difference = np.abs(entries[0] - entries[1])
    return difference.sum(-1), (difference.astype(float) ** 2).sum(-1)


@pytest.mark.parametrize("case", REGRESSIONS, ids=str)
def test_second_moments_move_by_no_more_than_is_paid_for(case):
    """20,000 pairs of random and extreme records, then climbing: 99 % of both sensitivities attained."""
    m, p, _, _, counted, *_ = case
    regression = regression_of(*case)
    sensitivity, size = regression.sensitivity(), regression.size
    rng = np.random.default_rng(1)
    if counted:  # another cell: both records count in full
        rows = np.concatenate([rng.uniform(-1, 1, (10_000, size)), rng.choice([-1.0, 1.0], (10_000, size))])
        F = len(regression.names)
        entries = np.stack(list(regression.exact(regression.scaled(rows[:, :F], rows[:, F:]))), axis=-1)
        norm = np.abs(entries).sum(-1).max()
        assert np.abs(entries).max() == sensitivity.largest
        assert 0.99 * sensitivity.difference <= 2 * norm <= sensitivity.difference
        turned = rows * np.where(np.arange(size) < F, 1.0, -1.0)  # in its cell: signs of products change
        square = max(2 * (entries.astype(float) ** 2).sum(-1).max(), moved(regression, rows, turned)[1].max())
        assert 0.99 * sensitivity.square <= square <= sensitivity.square
        return
    first = np.concatenate([rng.uniform(-1, 1, (10_000, size)), rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], (10_000, size))])
    second = rng.permutation(first)
    public = [0, *range(1 + m, 1 + m + p)]  # the same in both: public covariates stay with their record
    second[:, public] = first[:, public]
    L1, L2 = moved(regression, first, second)
    assert L1.max() <= sensitivity.difference
    assert L2.max() <= sensitivity.square
    entries = np.stack(list(regression.exact(regression.scaled(first[:, : 1 + m + p], first[:, 1 + m + p :]))), axis=-1)
    assert 0.99 * sensitivity.largest / (1 + p) <= np.abs(entries).max() <= sensitivity.largest
    best = []
    for kind in range(2):
        top = np.argsort((L1, L2)[kind])[-40:]
        a, b = first[top], second[top]
        value = moved(regression, a, b)[kind]
        for step in np.geomspace(0.5, 1e-3, 60):
            for _ in range(6):
                c, d = (np.clip(x + rng.normal(scale=step, size=x.shape) * (rng.random(x.shape) < 0.5), -1, 1) for x in (a, b))
                d[:, public] = c[:, public]
                new = moved(regression, c, d)[kind]
                better = new > value
                a[better], b[better], value[better] = c[better], d[better], new[better]
        best.append(value.max())
    assert 0.99 * sensitivity.difference <= best[0] <= sensitivity.difference
    assert 0.99 * sensitivity.square <= best[1] <= sensitivity.square


def test_the_public_features_decide_the_sensitivity_and_nothing_private_does():
    tight = regression_of(1, 2, 1, False, False)
    loose = Regression(**{**tight.__dict__, "public_norm": 1.2, "public_square": 1.1})
    assert loose.sensitivity().difference < tight.sensitivity().difference
    assert loose.sensitivity().square < tight.sensitivity().square


@settings(max_examples=1500, deadline=None, derandomize=True, database=None)
@given(st.lists(st.floats(width=64), min_size=3, max_size=3), st.lists(st.floats(width=64), min_size=3, max_size=3))
def test_any_two_records_of_doubles_stay_within_the_sensitivity(first, second):
    regression = regression_of(1, 0, 1, False, False)
    L1, L2 = moved(regression, np.array([first]), np.array([second]))
    assert L1[0] <= regression.sensitivity().difference
    assert L2[0] <= regression.sensitivity().square


@pytest.mark.parametrize("dtype", ["int64", "float64", "bool", "int8"])
def test_private_covariates_are_mapped_into_their_levels_whatever_they_hold(dtype):
    given = Placeholder(pt.tensor("index", dtype=dtype, shape=(None,)), 0, "z", private=True)
    bounded = Bounded(np.array([0.0]), np.array([2.0]))
    step = PlannedStatistic(
        likelihood_of(TABLE, Domain(0, 2), (given,)), "table", Domain(0, 2), "simplex", Grid((0,), (((0.0, 1.0, 2.0),),)), None,
        {"z": bounded}, (), TABLE.sensitivity(Domain(0, 2)),
    )  # fmt: skip
    wild = np.array([np.nan, np.inf, -np.inf, 1e308, -7, 0.4, 1.6, 2.0, None, "x"], dtype=object)
    done = completed(step.bounds, given, wild, 0)
    assert done.shape == (10, 1)
    assert ((done >= 0) & (done <= 2)).all()
    assert POINTS == 2**15
