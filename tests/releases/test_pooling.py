"""Sums by cell of what differs between cells alone, and second moments over all of them: when, which, how far a record moves them, and
their law.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from checks import flat
from pymc.pytensorf import compile as compile_graph
from scipy.stats import norm

import pymc_dp as pmdp
from pymc_dp.families.grid import POINTS
from pymc_dp.models.reader import read_model
from pymc_dp.plans.plan import planned_release
from pymc_dp.plans.protection import protection_of
from pymc_dp.private_models.pooled_law import PooledLaw, pooled_law
from pymc_dp.private_models.rewrite import rewrite
from pymc_dp.releases.cells import public_cells_of
from pymc_dp.releases.pooling import MULTIPLIERS, Pooling, _deviations, apart, pooling_of
from pymc_dp.releases.release import Release
from pymc_dp.releases.rounds import _totals

N, G = 240, 20
RNG = np.random.default_rng(5)
CELL = np.sort(np.concatenate([np.arange(G), RNG.integers(0, G, N - G)]))
X, Z = RNG.uniform(-1, 3, N), RNG.normal(size=N)
Y = RNG.normal(0.5 + 0.2 * X, 0.7)
BOUNDS = {"y": (-3, 4), "x": (-1, 3), "z": (-4, 4)}


def intercepts(cell, x, z, y):
    a = pm.Normal("a", pm.Normal("mu"), pm.HalfNormal("tau"), shape=G)
    pm.Normal("y", a[cell] + pm.Normal("b") * x, pm.HalfNormal("sigma"), observed=y)


def two_slopes(cell, x, z, y):
    pm.Normal("y", pm.Normal("a", shape=G)[cell] + pm.Normal("b") * x + pm.Normal("c") * z, pm.HalfNormal("sigma"), observed=y)


def slopes_by_cell(cell, x, z, y):
    pm.Normal("y", pm.Normal("a", shape=G)[cell] + pm.Normal("b", shape=G)[cell] * x, pm.HalfNormal("sigma"), observed=y)


def sigma_by_cell(cell, x, z, y):
    pm.Normal("y", pm.Normal("a", shape=G)[cell] + pm.Normal("b") * x, pm.HalfNormal("sigma", shape=G)[cell], observed=y)


def known_sigma(cell, x, z, y):
    pm.Normal("y", pm.Normal("a", shape=G)[cell] + pm.Normal("b") * x, 1.0, observed=y)


def a_square(cell, x, z, y):
    pm.Normal("y", pm.Normal("a", shape=G)[cell] + pm.Normal("b") * x + pm.Normal("c") * x**2, pm.HalfNormal("sigma"), observed=y)


def few_cells(cell, x, z, y):
    pm.Normal("y", pm.Normal("a", shape=3)[cell % 3] + pm.Normal("b") * x, pm.HalfNormal("sigma"), observed=y)


def made(write, y=Y):
    with pm.Model() as model:
        write(pm.Data("cell", CELL), pm.Data("x", X), pm.Data("z", Z), pm.Data("outcome", y))
    return model


def bounds_of(write, public=("cell",)):
    return {name: ends for name, ends in BOUNDS.items() if name not in public and (name != "z" or write is two_slopes)}


def opened(write, public=("cell",), **declared):
    protection = protection_of(bounds=bounds_of(write, public), public=public, **declared)
    spec, paths = read_model(made(write), protection.public)
    return public_cells_of(planned_release(spec, protection).statistics[0], paths["y"]), paths["y"]


def release_of(write, epsilon, **arguments):
    return pmdp.release(made(write), epsilon=epsilon, public=["cell"], bounds=bounds_of(write), **arguments)


# ---------- when
@pytest.mark.parametrize("write", [intercepts, two_slopes], ids=lambda write: write.__name__)
def test_intercepts_alone_are_released_by_cell(write):
    """Of every cell the sums, and over all cells everything; the plan says it before anything is spent."""
    cells, _ = opened(write)
    names = ["x", "y"] if write is intercepts else ["x", "z", "y"]
    F = len(names)
    assert cells.shape == (1, G * F + F + F * (F + 1) // 2)
    assert cells.planned.statistics[:F] == tuple(f"sum {name} · cell 0" for name in names)
    assert cells.planned.statistics[G * F : (G + 1) * F] == tuple(f"sum {name}" for name in names)
    assert len(cells.multipliers) == cells.shape[-1]
    assert f"{F} numbers are released of each" in flat(pmdp.inspect(made(write), public=["cell"], bounds=bounds_of(write)))


@pytest.mark.parametrize(
    ("write", "declared"),
    [
        (slopes_by_cell, {}),
        (sigma_by_cell, {}),
        (known_sigma, {}),
        (a_square, {}),
        (few_cells, {}),
        (intercepts, {"public": ["cell", "x"]}),
        (intercepts, {"public": []}),
        (intercepts, {"missing": ["y"]}),
    ],
    ids=lambda value: getattr(value, "__name__", None) or "-".join(value) or "plain",
)
def test_all_else_is_released_by_cell(write, declared):
    """Where a slope, or sigma, differs between cells, where moments are public or tell each other, and where numbers of records are not."""
    public = declared.get("public", ["cell"])
    cells, _ = opened(write, **{"public": public} | {name: value for name, value in declared.items() if name != "public"})
    assert cells.pooling is None
    assert not cells.multipliers.size


def test_records_that_vary_within_no_cell_are_not_pooled():
    """Of one record in every cell nothing is left within cells, whose law would mean nothing."""
    planned = opened(intercepts)[0].planned
    planned = replace(planned, statistics=planned.statistics[-5:])
    assert pooling_of(planned, np.ones(G)) is None
    assert pooling_of(planned, np.append(np.ones(G - 5), np.full(5, 2))) is None
    assert pooling_of(planned, np.append(np.ones(G - 6), np.full(6, 2))) is not None


def test_no_expected_posterior_is_much_wider_than_by_cell():
    """By the rule's own numbers, whatever the sizes: at most a tenth; and pooled sums are taken where there are many cells."""
    cells, _ = opened(intercepts)
    by_cell = pooling = None
    noise = np.sqrt(2) / np.array([0.5, 1.0, 4.0])
    for one in MULTIPLIERS:
        candidate = Pooling(*one, 2)
        reach = candidate.reach(cells.planned).difference / POINTS**2
        n = cells.cells.n
        ratios = [
            _deviations(reach * sd, n, one[1], one[0], 1 / one[0]) / _deviations(16 / 3 * sd, n, 1.0, 0.0, np.sqrt(G)) for sd in noise
        ]
        if candidate == cells.pooling:
            pooling, by_cell = candidate, np.max(ratios)
    assert pooling is not None
    assert by_cell <= 1.1


MECHANISMS = {"laplace": {}, "gaussian": {"mechanism": "gaussian", "delta": 1e-6}}


@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 2, 10, 1e4])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_multipliers_are_those_that_are_best_at_this_noise(mechanism, epsilon):
    """By the rule's own numbers, at the noise that was drawn: of those that leave what is known as it is, none is better on the whole."""
    released = release_of(intercepts, epsilon, **MECHANISMS[mechanism])["y"]
    cells, _ = opened(intercepts)
    n, noise = cells.cells.n, released.noise.standard_deviation
    sensitivity = "square" if mechanism == "gaussian" else "difference"
    power = 0.5 if mechanism == "gaussian" else 1.0

    def expected(whole, cell):
        """The ratios to what second moments by cell would say, which are known where they say much."""
        reach = getattr(Pooling(whole, cell, 2).reach(cells.planned), sensitivity)
        plain = cells.planned.with_regression(cells.planned.regression).of_row
        here, there = (noise * (r / getattr(released, sensitivity)) ** power for r in (reach, getattr(plain, sensitivity)))
        by_cell = _deviations(there, n, 1.0, 0.0, np.sqrt(G))
        return _deviations(here, n, cell, whole, 1 / whole) / by_cell, by_cell < [np.inf, np.inf, 0.125**2 / 2, 0.125 / 2]

    found = {}
    for pair in MULTIPLIERS:
        ratios, known = expected(*pair)
        if (ratios[known] <= 1.1).all():
            found[pair] = np.log(ratios).sum()
    assert tuple(released.multipliers[[-1, 0]]) == min(found, key=found.get)


@pytest.mark.parametrize(("records", "epsilon", "chosen"), [(60, 4, (1, 2)), (300, 1, (1, 2)), (300, 16, (1, 1)), (12, 1, (4, 1))])
def test_what_single_cells_would_tell_is_kept(records, epsilon, chosen):
    """Cells of many records tell their intercepts: as much of them is told as by all second moments by cell, or a tenth less."""
    cells, _ = opened(intercepts)
    n = np.full(G, records)

    def deviation(reach):
        return np.sqrt(2) * reach.difference * cells.planned.lattice / epsilon

    pooling, planned = cells.pooling.at_noise(cells.planned, n, deviation)
    assert (pooling.whole, pooling.cell) == chosen
    assert planned.of_row == pooling.reach(cells.planned)
    plain = cells.planned.with_regression(cells.planned.regression).of_row
    by_cell = _deviations(deviation(plain), n, 1.0, 0.0, np.sqrt(G))
    known = by_cell < [np.inf, np.inf, 0.125**2 / 2, 0.125 / 2]
    assert (_deviations(deviation(planned.of_row), n, chosen[1], chosen[0], 1 / chosen[0]) / by_cell)[known].max() <= 1.1


def test_little_epsilon_is_spent_on_all_cells_together():
    """Where single cells remain unknown in any case, the numbers over all cells get more of it, and slopes are narrower."""
    chosen = {epsilon: tuple(map(int, release_of(intercepts, epsilon)["y"].multipliers[[-1, 0]])) for epsilon in (0.1, 1e4)}
    assert chosen == {0.1: (4, 1), 1e4: (1, 2)}


def test_noise_that_would_not_fit_is_not_chosen():
    """At an epsilon at which noise on numbers that are multiplied more does not fit 64-bit integers, others are released."""
    cells, _ = opened(intercepts)
    epsilon, laplace = 1.5e-7, pmdp.Laplace()
    with pytest.raises(pmdp.Refusal):
        laplace.calibrate(Pooling(4, 1, 2).reach(cells.planned).difference, 1, laplace.total(Fraction(epsilon), Fraction(0)))
    released = release_of(intercepts, epsilon)["y"]
    assert np.abs(released.values).max() > 0
    assert tuple(released.multipliers[[-1, 0]]) != (4, 1)


@pytest.mark.parametrize("epsilon", [0.1, 2, 1e4])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_noise_is_that_of_the_multipliers_that_were_used(mechanism, epsilon):
    """What is charged, and what noise is calibrated to, is how far a record moves what is multiplied so."""
    released = release_of(intercepts, epsilon, **MECHANISMS[mechanism])["y"]
    cells, _ = opened(intercepts)
    whole, cell = (int(released.multipliers[place]) for place in (-1, 0))
    reach = Pooling(whole, cell, 2).reach(cells.planned)
    assert (released.difference, released.square) == (reach.difference, reach.square)
    if mechanism == "laplace":
        assert released.scale == pytest.approx(reach.difference / epsilon)
    exact = apart(release_of(intercepts, 1e9)["y"])
    off = apart(released).moments - exact.moments
    assert np.abs(off).max() < 30 * released.noise.standard_deviation / whole + 1e-3, "one false alarm in 10^12"


# ---------- which numbers, and how far a record moves them
@pytest.mark.parametrize("write", [intercepts, two_slopes], ids=lambda write: write.__name__)
def test_exact_numbers_are_sums_of_scaled_values(write):
    """To the lattice: every value rounded to a point in POINTS of half its range."""
    cells, paths = opened(write)
    names, values = (["x", "y"], [X, Y]) if write is intercepts else (["x", "z", "y"], [X, Z, Y])
    u = np.stack([np.clip((v - sum(BOUNDS[k]) / 2) / ((BOUNDS[k][1] - BOUNDS[k][0]) / 2), -1, 1) for k, v in zip(names, values)], axis=1)
    points = np.rint(u * POINTS).astype(np.int64)
    by_cell = np.stack([np.bincount(CELL, points[:, k], minlength=G) for k in range(len(names))], axis=1).astype(np.int64) * POINTS
    pairs = [(points[:, i] * points[:, j]).sum() for i in range(len(names)) for j in range(i, len(names))]
    expected = np.concatenate([by_cell.ravel(), by_cell.sum(axis=0), pairs])
    assert (_totals(cells, paths)[0] == expected * cells.multipliers).all()


@pytest.mark.parametrize("multipliers", MULTIPLIERS, ids=lambda pair: f"{pair[0]}:{pair[1]}")
@pytest.mark.parametrize("write", [intercepts, two_slopes], ids=lambda write: write.__name__)
def test_no_record_moves_the_numbers_further_than_is_paid_for_and_one_does(write, multipliers):
    """All pairs of records on a grid of values, in L1 and L2, against what noise is calibrated to; the furthest within one in a hundred."""
    planned = opened(write)[0].planned
    regression, F = planned.regression, len(planned.regression.names)
    pooling, steps = Pooling(*multipliers, F), 24 if F == 2 else 8
    grid = np.array(list(product(np.linspace(-1, 1, steps + 1), repeat=F)))
    grid = np.rint(grid * POINTS).astype(np.int64)
    columns = np.concatenate([np.full((len(grid), 1), POINTS), grid], axis=1)
    released = np.array([pooling.totals(np.stack([row, 0 * row]))[0] for row in np.stack(list(regression.exact(columns)), axis=1)])
    reach = pooling.reach(planned)
    L1 = max(int(np.abs(released - one).sum(axis=1).max()) for one in released)
    L2 = max(float(((released - one).astype(float) ** 2).sum(axis=1).max()) for one in released)
    assert 0.99 * reach.difference <= L1 <= reach.difference
    assert 0.99 * reach.square <= L2 <= reach.square


# ---------- their law
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_a_release_is_saved_as_it_is(tmp_path, mechanism):
    released = release_of(intercepts, 1, mechanism=mechanism, delta=1e-6 if mechanism == "gaussian" else 0)
    again = Release.from_datatree(released.to_datatree())["y"]
    assert (again.multipliers == released["y"].multipliers).all()
    assert (again.values == released["y"].values).all()
    private = rewrite(made(intercepts), released)
    assert np.isfinite(private.compile_logp(mode="FAST_COMPILE")(private.initial_point()))


def inside(law: PooledLaw, x: np.ndarray) -> np.ndarray:
    """The latents at which sums and squares of one scaled feature are those of ``x``, with nothing else about it."""
    n = law.n
    sums = np.bincount(CELL, x)
    freedom = n.sum() - G
    share = ((x**2).sum() - (sums**2 / n).sum()) / freedom / law.given[4]
    latent = np.zeros(law.latents)
    latent[1] = (np.log(share / (1 - share)) - law.given[1]) / law.given[3]
    latent[2] = -40.0  # nothing between cells, but what is within
    mean = sums.sum() / n.sum()
    off = sums - n * mean
    latent[0] = (np.arcsinh(mean / np.sqrt(1 - mean**2) / 0.15) - law.given[0]) / law.given[2]
    latent[3 : 3 + G] = off / np.sqrt(n) / np.sqrt(share * law.given[4])
    return latent


def test_the_law_is_that_of_normal_records():
    """Means and covariances of 4,000 draws of the numbers that rest on responses, against as many of records with these features.

    At 5.5 standard errors of a mean, and a fifth of two standard deviations for a covariance, which 4,000 draws miss once in a million.
    """
    law = pooled_law(release_of(intercepts, 1e9)["y"])
    x, a, b, s = (X - 1) / 2, RNG.normal(0, 0.3, G), 0.4, 0.25
    phi, sigma = np.stack([0.5 + 3.5 * (a - 0.5 * b), np.full(G, 3.5 * b / 2)], axis=1), np.full(G, 3.5 * s)
    drawn = law.simulated(pt.constant(phi), pt.constant(sigma), pt.constant(inside(law, x)), pt.constant(law.given))
    function = compile_graph([], drawn, random_seed=3, mode="FAST_COMPILE")
    found = np.array([function() for _ in range(4000)])
    rng, expected = np.random.default_rng(4), []
    for _ in range(4000):
        y = rng.normal(a[CELL] + b * x, s)
        by_cell = np.stack([np.bincount(CELL, x), np.bincount(CELL, y)], axis=1)
        expected.append(np.concatenate([by_cell.ravel(), by_cell.sum(axis=0), [(x * x).sum(), (x * y).sum(), (y * y).sum()]]))
    expected = np.array(expected)
    features = expected.std(axis=0) < 1e-9
    np.testing.assert_allclose(found.mean(axis=0)[features], expected.mean(axis=0)[features], atol=2e-3)
    found, expected = found[:, ~features], expected[:, ~features]
    sd = expected.std(axis=0)
    assert (np.abs(found.mean(axis=0) - expected.mean(axis=0)) < 5.5 * sd * np.sqrt(2 / 4000)).all()
    difference = (np.cov(found.T) - np.cov(expected.T)) / np.outer(sd, sd)
    assert np.abs(difference).max() < 0.2


def test_latents_change_nothing_but_coordinates():
    """Whether sums of responses are centred on released ones, or their total is, or none: at the same exact numbers the density of these
    is the same, which is that of latents over the volume that they take up.
    """
    law = pooled_law(release_of(intercepts, 2)["y"])
    phi, sigma, latent, given = pt.dmatrix(), pt.dvector(), pt.dvector(), pt.dvector()
    function = pytensor.function([phi, sigma, latent, given], list(law._true(phi, sigma, latent, given, drawn=False)), mode="FAST_COMPILE")
    of_sum, of_total = law.noise.standard_deviation / law.given[-2:]
    rng, here, direction = np.random.default_rng(0), slice(3 + G, 3 + 2 * G), np.sqrt(law.n / law.n.sum())
    for _ in range(3):
        values = np.column_stack([rng.normal(0.5, 0.5, G), np.full(G, rng.normal())]), np.full(G, rng.uniform(0.5, 2))
        latents, spread = rng.normal(size=law.latents), values[1] / 3.5 * np.sqrt(law.n)
        standard, none, all_of_them, total = (
            latents[here],
            *(np.concatenate([law.given[:-5], ends, law.given[-3:]]) for ends in ([0, 0], [1, 0], [0, 1])),
        )
        numbers, density = function(*values, latents, none)
        expected = density + norm.logpdf(standard).sum() - np.log(spread).sum()
        sums = numbers[1 : 2 * G : 2]
        # Where the same sums are in the other coordinates, and the volume of these.
        own = (sums - law.given[6 : 6 + G]) / of_sum
        own += (np.sqrt(1 + G * (of_sum / of_total) ** 2) - 1) * own.mean()
        along = (sums.sum() - law.given[6 + G]) / of_total
        only_total = standard + direction * (along - direction @ standard)
        root = values[1][0] / 3.5 * np.sqrt(law.n.sum())
        # Up to a constant: ``own`` would take up a little less.
        volumes = G * np.log(of_sum), np.log(spread).sum() - np.log(root / of_total)
        for mode, other, volume in zip((all_of_them, total), (own, only_total), volumes, strict=True):
            moved = latents.copy()
            moved[here] = other
            again, there = function(*values, moved, mode)
            np.testing.assert_allclose(again, numbers, atol=1e-8)
            np.testing.assert_allclose(there + norm.logpdf(other).sum() - volume, expected, atol=1e-8)


def test_the_graph_holds_nothing_of_one_release():
    """What was compiled for one release is right for another, of another epsilon: all that differs is handed in."""
    first, second = (pooled_law(release_of(intercepts, epsilon)["y"]) for epsilon in (0.1, 1e4))
    assert (first.given[-2:] != second.given[-2:]).all(), "other multipliers, too"
    rng = np.random.default_rng(0)
    values = rng.normal(size=first.numbers), np.tile(rng.normal(size=2), (G, 1)), np.ones(G), rng.normal(size=first.latents)
    densities = [law.log_density(*map(pt.constant, (*values, second.given))).eval(mode="FAST_COMPILE") for law in (first, second)]
    np.testing.assert_allclose(densities[0], densities[1], rtol=1e-12)


def test_without_noise_the_likelihood_is_that_of_the_records():
    """``noise_aware=False`` at an epsilon at which noise is nothing: differences of the log-likelihood are those of all records."""
    released = release_of(intercepts, 1e9)
    private = rewrite(made(intercepts), released, noise_aware=False)
    logp = private.compile_logp(vars=private.observed_RVs, mode="FAST_COMPILE")
    rng, off = np.random.default_rng(1), []
    for _ in range(4):
        point = private.initial_point() | {
            "a": rng.normal(0.5, 0.3, G),
            "b": np.array(rng.normal(0.2, 0.1)),
            "sigma_log__": np.array(rng.normal(0, 0.1)),
        }
        records = norm.logpdf(np.clip(Y, -3, 4), point["a"][CELL] + point["b"] * X, np.exp(point["sigma_log__"])).sum()
        off.append(float(logp(point)) - records)
    np.testing.assert_allclose(off, off[0], atol=0.05)
    drawn = pm.draw(private["y"], random_seed=1)
    assert drawn.shape == private["y_released"].get_value().shape


def test_intercepts_of_which_little_is_told_get_standard_coordinates():
    """Of sums that are pooled, too: a standard normal prior."""
    hidden = rewrite(made(intercepts), release_of(intercepts, 0.5))
    assert type(hidden.rvs_to_transforms[hidden["a"]]).__name__ == "Standardised"
    point = hidden.initial_point() | {"mu": np.array(0.3), "tau_log__": np.array(-1.0), "a_standardised__": np.linspace(-1, 2, G)}
    prior = hidden.compile_logp(vars=hidden["a"], mode="FAST_COMPILE")
    np.testing.assert_allclose(prior(point), norm.logpdf(np.linspace(-1, 2, G)).sum(), rtol=1e-10)


def test_sums_of_responses_are_those_that_were_released():
    """At next to no noise, in the units of the scale on which values are released."""
    released = apart(release_of(intercepts, 1e9)["y"])
    np.testing.assert_allclose(released.cells[:, 1], np.bincount(CELL, (np.clip(Y, -3, 4) - 0.5) / 3.5), atol=1e-2)
    np.testing.assert_allclose(released.totals, released.cells.sum(axis=0), atol=1e-2)
