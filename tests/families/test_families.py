"""Every family is asked the same questions, on two or more cells of different parameters; see ``pymc_dp.families.family``.

False alarms: comparisons of simulated moments allow 6 standard errors (2e-9 each, some 50 of them).
"""

import math
from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from pymc_dp.families.family import Domain, Scaled, all_families, complete, named
from pymc_dp.laws import law

CASES = [(family, example) for family in all_families() for example in family.EXAMPLES]
IDS = [f"{family.DISTRIBUTION}-{k}" for family in all_families() for k, _ in enumerate(family.EXAMPLES)]
every_family = pytest.mark.parametrize(("family", "example"), CASES, ids=IDS)


PATHOLOGICAL = [math.nan, math.inf, -math.inf, -0.0, 1e308, -1e308, 5e-324, 0.5, 1.5, 2**53, -1, None, "x", True, 10**30]


def parameters(example):
    return [np.asarray(cells) for cells in example.cells]


def likelihood(family, given, shape):
    """A variable of the family's distribution, by the parameters of its operation, which need not be those that people write."""
    levels = tuple(given[-1].shape[-1:]) if family.NDIM else ()
    if family.DISTRIBUTION == "CensoredExponential":
        return pm.Censored.dist(pm.Exponential.dist(scale=given[0]), lower=None, upper=given[1], shape=shape)
    return pm.Distribution.dist.__func__(getattr(pm, family.DISTRIBUTION), given, shape=(*shape, *levels))


def cells_of(example):
    return len(example.cells[0])


def law_of(family, example, n, times=1):
    """The law of n records in every cell, all cells standing so many times."""
    given = (np.concatenate([one] * times) for one in parameters(example))
    return family.law(example.domain, pt.constant(np.full(times * cells_of(example), float(n))), *map(pt.constant, given))


def moments(law_):
    """Mean (G, K) and covariance (G, K, K) of the exact sum that a law claims."""
    match law_:
        case law.Count():
            mean = law_.n * law_.p
            parts = [mean[:, None], (mean * (1 - law_.p))[:, None, None]]
        case law.Counts():
            p, n = law_.p, law_.n[:, None, None]
            parts = [law_.n[:, None] * p, n * (pt.eye(p.shape[-1]) * p[:, None, :] - p[:, :, None] * p[:, None, :])]
        case law.Moments():
            K = len(law_.mean)
            full = [[law_.covariance[max(i, j)][min(i, j)] for j in range(K)] for i in range(K)]
            zero = pt.zeros_like(law_.n)
            parts = [
                pt.stack([law_.n * m + zero for m in law_.mean], -1),
                pt.stack([pt.stack([law_.n * c + zero for c in row], -1) for row in full], -2),
            ]
    return pytensor.function([], parts, mode="FAST_COMPILE")()


def values_of(family, example, shape, seed):
    """Values drawn by PyMC itself from the likelihood, for every cell: shape (*shape, G), and (*shape, G, levels) for NDIM = 1."""
    drawn = likelihood(family, parameters(example), (*shape, cells_of(example)))
    return pm.draw(drawn, random_seed=seed, mode="FAST_COMPILE")


def exact(family, domain, values):
    """(..., K) statistics in their own units."""
    values = np.asarray(values)
    return np.stack(family.exact(complete(values, domain), domain), -1) * family.lattice(domain)


def check_law_of_the_sum(family, example, repeats):
    """Mean and covariance of simulated sums of 12 clamped records, within 6 standard errors."""
    n = 12
    sums = exact(family, example.domain, values_of(family, example, (repeats, n), 11)).sum(1)
    mean, covariance = moments(law_of(family, example, n))
    centred = sums - sums.mean(0)
    error = centred.std(0) / np.sqrt(repeats)
    assert (np.abs(sums.mean(0) - mean) <= 6 * error + 1e-6 * n).all()
    products = centred[..., :, None] * centred[..., None, :]
    error = products.std(0) / np.sqrt(repeats)
    if family.DISTRIBUTION == "Dirichlet":  # whose correlations are approximate
        sd = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
        error = error + (1 - np.eye(sd.shape[1])) * (0.12 / 6) * sd[:, :, None] * sd[:, None, :]
    assert (np.abs(products.mean(0) - covariance) <= 6 * error + 1e-5 * n).all()


@every_family
def test_law_of_the_sum_by_simulation(family, example):
    check_law_of_the_sum(family, example, 4_000)


@pytest.mark.slow
@every_family
def test_law_of_the_sum_by_more_simulations(family, example):
    check_law_of_the_sum(family, example, 40_000)


@every_family
def test_predictive_draws_follow_the_law_and_the_noise(family, example):
    n, times, draws = 50, 50, 20_000
    law_ = law_of(family, example, n, times)
    lattice = family.lattice(example.domain)
    noise = law.Noise(7.0 / lattice, lattice)
    K = len(family.statistics(example.domain))
    shape = (cells_of(example), K)
    drawn = pm.draw(law.simulated(law_, noise, (times * shape[0], K)), draws=draws // times, random_seed=3, mode="FAST_COMPILE")
    drawn = drawn.reshape(draws, *shape)
    mean, covariance = moments(law_of(family, example, n))
    sd = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2) + noise.standard_deviation**2)
    assert drawn.shape == (draws, *shape)
    assert (np.abs(drawn.mean(0) - mean) <= 6 * sd / np.sqrt(draws)).all()
    # The fourth moment of a Laplace variable is 24 b^4, so a variance has standard error below sqrt(5) sd^2 / sqrt(draws).
    assert (np.abs(drawn.var(0) - sd**2) <= 6 * np.sqrt(5) * sd**2 / np.sqrt(draws)).all()


def interesting(family, domain):
    """Values that stretch a statistic: bounds and beyond, fractions between, the unthinkable. Of several entries, all mixed."""
    inside = np.linspace(domain.lower, domain.upper, 121)
    values = [*inside, domain.lower - 3, domain.upper + 3, *PATHOLOGICAL, *np.nextafter(inside[[0, -1]], domain.middle)]
    if not family.NDIM:
        return np.array(values, dtype=object)
    mixed = np.random.default_rng(2).choice(np.array(values, dtype=object), (120, domain.levels))
    corners = np.eye(domain.levels) * 1e9
    return np.concatenate([mixed, corners, -corners, 1e9 - corners])


@every_family
def test_reach_is_never_exceeded_and_attained(family, example):
    """All 14,000 or more ordered pairs of 120 values or more: the L1 distance of the integer statistics never exceeds the reach."""
    values = interesting(family, example.domain)
    integers = np.stack(family.exact(complete(values, example.domain), example.domain), -1)
    reach = family.sensitivity(example.domain)
    distances = np.abs(integers[:, None] - integers[None]).sum(-1)
    squares = ((integers[:, None] - integers[None]).astype(float) ** 2).sum(-1)
    largest = np.abs(integers).max()
    assert squares.max() <= reach.square
    assert squares.max() >= 0.98 * reach.square
    assert distances.size >= 10_000
    assert distances.max() <= reach.difference
    assert distances.max() >= 0.99 * reach.difference
    assert largest <= reach.largest
    assert largest >= 0.99 * reach.largest


@every_family
def test_spread_has_one_norm_for_all_values(family, example):
    """Never negative, adding up to the total, so that leaving a cell costs the total and moving costs twice as much.

    Of trials that differ they add up to the most at most, which costs no more.
    """
    spread = family.cell_sensitivity(example.domain)
    values = complete(interesting(family, example.domain), example.domain)
    integers = np.stack([np.ones(len(values), dtype=np.int64), *family.exact(values, example.domain)], -1)
    entries = integers @ np.array(spread.matrix, dtype=np.int64).T
    assert entries.min() >= 0
    differ = family.DISTRIBUTION == "Multinomial" and example.domain.known[0] is None and example.domain.levels > 2
    assert (entries.sum(-1) == spread.total).all() or (differ and entries.sum(-1).max() == spread.total)
    squares = (entries.astype(float) ** 2).sum(-1)
    assert 0.98 * spread.square <= squares.max() <= spread.square
    assert len(spread.names) == len(spread.matrix)


@pytest.mark.parametrize("examples", [100, pytest.param(2000, marks=pytest.mark.slow)])
@every_family
def test_reach_holds_for_any_pair_of_numbers(family, example, examples):
    reach = family.sensitivity(example.domain)
    value = st.lists(st.floats(width=64), min_size=example.domain.levels, max_size=example.domain.levels) if family.NDIM else st.floats()

    @settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    @given(value, value)
    def check(first, second):
        a, b = (np.stack(family.exact(complete(np.array([value]), example.domain), example.domain), -1) for value in (first, second))
        assert a.dtype == b.dtype == np.int64
        assert np.abs(a - b).sum() <= reach.difference

    check()


@every_family
def test_a_record_alone_and_in_a_batch_are_the_same_integers(family, example):
    values = interesting(family, example.domain)
    batch = np.stack(family.exact(complete(values, example.domain), example.domain), -1)
    alone = [np.stack(family.exact(complete(values[k : k + 1], example.domain), example.domain), -1)[0] for k in range(len(values))]
    np.testing.assert_array_equal(batch, alone)
    numbers = np.array([float(v) if isinstance(v, int | float) else math.nan for v in values.ravel().tolist()]).reshape(values.shape)
    fortran = np.asfortranarray(np.stack([numbers, numbers], 1))
    doubled = np.stack(family.exact(complete(fortran, example.domain), example.domain), -1)
    np.testing.assert_array_equal(doubled[:, 1], batch)


@every_family
def test_plug_in_likelihood_is_pymc_s_own_up_to_a_constant(family, example):
    """On sums that nothing was rounded in, of values inside the bounds, at five parameter points: the difference is constant."""
    n, G = 25, cells_of(example)
    if family.DISTRIBUTION == "CensoredExponential":  # censored at the bound, where that comes first
        if (limit := example.domain.known[1]) <= example.domain.lower:
            pytest.skip("no value is possible")
        example = replace(example, cells=(example.cells[0], (min(limit, example.domain.upper),) * G))
    values = complete(values_of(family, example, (n,), 5), example.domain)
    if isinstance(family, Scaled):
        low, high = np.array([limits for _, *limits in family.ranges(example.domain)]).T
        sums = ((np.stack(family.raw(values, example.domain), -1) - (low + high) / 2) / ((high - low) / 2)).sum(0)
    else:
        if family.BOUNDS in {"real", "positive"}:  # Normal and LogNormal, on the lattice
            there, back = (np.asarray, np.asarray) if family.BOUNDS == "real" else (np.log, np.exp)
            low, high = there([example.domain.lower, example.domain.upper])
            middle, step = (low + high) / 2, (high - low) / 2**16
            values = back(middle + np.rint((there(values) - middle) / step) * step)
        sums = exact(family, example.domain, values).sum(0)
    inputs = [pt.tensor(f"p{k}", dtype=str(array.dtype), shape=array.shape) for k, array in enumerate(parameters(example))]
    ours = family.log_likelihood(pt.constant(sums), pt.constant(np.full(G, float(n))), example.domain, *inputs)
    theirs = pm.logp(likelihood(family, inputs, (n, G)), values).sum(0)
    function = pytensor.function(inputs, ours - theirs, mode="FAST_COMPILE", on_unused_input="ignore")
    known = [not unknown for unknown in example.domain.unknown]
    points = []
    for power in (1.0, 0.7, 0.85, 1.2, 1.4):
        point = [array if fixed else np.abs(array) ** power for array, fixed in zip(parameters(example), known)]
        probabilities = not isinstance(family, Scaled)
        points.append([array / array.sum(-1, keepdims=True) if array.ndim == 2 and probabilities else array for array in point])
    differences = np.array([function(*point) for point in points])
    assert np.isfinite(differences).all()
    np.testing.assert_allclose(differences, np.broadcast_to(differences[0], differences.shape), rtol=1e-9, atol=1e-7)


@every_family
def test_projection_is_possible_and_leaves_exact_statistics_alone(family, example):
    n = 25
    sums = exact(family, example.domain, values_of(family, example, (n,), 6)).sum(0)
    np.testing.assert_allclose(family.project(sums, np.full((len(sums), 1), n), 1e-9, example.domain), sums, atol=1e-6)
    wild = np.random.default_rng(1).normal(size=(200, *sums.shape)) * 10 * n
    counts = np.full((len(sums), 1), n)
    projected = family.project(wild, counts, 1.0, example.domain)
    np.testing.assert_allclose(family.project(projected, counts, 1.0, example.domain), projected, atol=1e-9)
    likelihood = family.log_likelihood(
        pt.constant(projected), pt.constant(np.full(len(sums), float(n))), example.domain, *map(pt.constant, parameters(example))
    )
    assert np.isfinite(pytensor.function([], likelihood, mode="FAST_COMPILE")()).all()


@every_family
def test_projected_means_are_those_of_values_of_the_domain(family, example):
    """Whatever the noise did, they are in the convex hull of the statistics of 2,000 values.

    Nor are those values all the same or all at a bound, where the likelihood of a Scaled family may have no bound.
    """
    n, domain = 25, example.domain
    if family.NDIM:
        values = complete(interesting(family, domain), domain)
    else:
        ends = np.sort(np.abs([domain.lower, domain.upper]))
        spaced = np.concatenate([np.linspace(domain.lower, domain.upper, 1001), np.geomspace(max(ends[0], ends[1] * 1e-6), ends[1], 1001)])
        values = complete(spaced, domain)
    produced = np.unique(exact(family, domain, values), axis=0)
    K = produced.shape[-1]
    wild = np.random.default_rng(4).normal(size=(30, K)) * 3 * n
    corners = np.array(np.meshgrid(*[[-9.0 * n, 9.0 * n]] * K)).reshape(K, -1).T
    for mean in family.project(np.concatenate([wild, corners]), np.array([n]), 1.0, domain) / n:
        inside = linprog(
            np.zeros(len(produced)), A_eq=np.vstack([produced.T, np.ones(len(produced))]), b_eq=[*mean, 1], bounds=(0, None), method="highs"
        )
        assert inside.success, mean
        if isinstance(family, Scaled):
            assert np.abs(mean).max() <= 1 - 1e-3, mean
            assert K == 1 or np.abs(produced - mean).max(-1).min() >= 1e-3, mean


def test_projected_geometric_means_of_shares_add_up_to_less_than_1():
    """Else the likelihood of Dirichlet grows without bound as all of its parameters grow together."""
    family = named("Dirichlet")
    for example in family.EXAMPLES:
        lower, upper = np.log([example.domain.lower, example.domain.upper])
        noisy = np.random.default_rng(5).normal(size=(200, example.domain.levels)) * 50
        projected = family.project(noisy, np.array([25]), 1.0, example.domain)
        means = (lower + upper) / 2 + projected / 25 * (upper - lower) / 2
        most, moved = np.exp(-(upper - lower) / 2 / 25), np.abs(projected - np.clip(noisy, -24, 24)).max(-1) > 1e-9
        assert np.exp(means).sum(-1).max() <= most + 1e-9
        assert 20 < moved.sum() < 180
        np.testing.assert_allclose(np.exp(means[moved]).sum(-1), most, rtol=1e-9)


def test_shares_that_all_lie_beyond_a_bound_have_finite_gradients():
    """A variance of 0 has a root, but no slope there: NUTS would have stopped at it."""
    family, a = named("Dirichlet"), pt.matrix("a", shape=(1, 3))
    means, covariance = family.moments(Domain(0.01, 0.95, levels=3, unknown=(True,)), a)
    values = [*means, *(entry for row in covariance for entry in row)]
    compiled = pytensor.function([a], [*values, *(pt.grad(value.sum(), a) for value in values)], mode="FAST_COMPILE")
    for at in ([1e6, 1e6, 1e-6], [1e-20, 5, 5], [1e5, 1, 1], [1e-8, 1e-8, 1e-8], [1e12, 1e12, 1e12]):
        assert all(np.isfinite(found).all() for found in compiled(np.array([at]))), at
