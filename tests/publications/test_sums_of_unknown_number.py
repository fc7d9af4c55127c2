"""Published sums of records whose number is a published number, too: as releases of ours, densities by hand, and what is refused."""

import numpy as np
import pymc as pm
import pytest
from checks import points
from scipy import stats
from test_published_sums import UNITS, assert_same, by_group, clamped_moments, line, shared

import pymc_dp as pmdp

RNG = np.random.default_rng(8)
X = RNG.uniform(-2, 2, 300)
LAPLACE, GAUSSIAN = pmdp.LaplaceNoise, pmdp.GaussianNoise


@pytest.mark.parametrize("mechanism", ["laplace", pmdp.Gaussian(delta=1e-6)])
def test_counts_of_all_levels_are_those_of_a_release_that_hides_their_number(mechanism):
    """One record comes or goes, so the number of records is unknown; every level of every group is counted."""
    noise = pmdp.DiscreteLaplace if mechanism == "laplace" else pmdp.DiscreteGaussian
    group, values = RNG.integers(0, 3, 100), RNG.binomial(1, 0.4, 100)
    how = {"epsilon": 1.0, "mechanism": mechanism, "neighbours": "add_remove"}
    released = pmdp.release(model := by_group(group, values), **how)
    law = {"y": {"table": (released["y"].values, noise(released["y"].scale))}}
    assert_same(pmdp.published(by_group([0], [0]), statistics=law), pmdp.rewrite(model, released), atol=1e-8)
    released = pmdp.release(model := shared(RNG.integers(0, 3, 80), "Categorical"), **how)
    law = {"y": {f"level {k}": (released["y"].values[0, k], noise(released["y"].scale)) for k in range(3)}}
    assert_same(pmdp.published(shared([0], "Categorical"), statistics=law), pmdp.rewrite(model, released), atol=1e-8)


def second_moments(statistic):
    """What was released, as others would publish it: numbers by name, with the law of their noise, in the units of the values."""
    return {
        name: (
            statistic.values[:, k] * UNITS.get(name, 1.0),
            LAPLACE(statistic.scale * statistic.lattice / statistic.times[k] * UNITS.get(name, 1.0)),
        )
        for k, name in enumerate(statistic.statistics)
    }


def test_second_moments_are_those_of_a_release_that_hides_their_number():
    bounds = {"x": (-2, 2), "y": (-5, 5)}
    released = pmdp.release(model := line(X, 1 + 0.5 * X + RNG.normal(0, 1, 300)), epsilon=2.0, bounds=bounds, neighbours="add_remove")
    said = second_moments(released["y"])
    n = said.pop("n")
    ours = pmdp.published(line([0.0], [0.0]), statistics={"y": said}, bounds=bounds, n=n)
    assert_same(ours, pmdp.rewrite(model, released), atol=1e-4)


def lines_by_group(group, x, values):
    with pm.Model() as model:
        mean, slope = pm.Normal("mean", 0, 3, shape=2), pm.Normal("slope")
        at = mean[pm.Data("group", group)] + slope * pm.Data("x", x)
        pm.Normal("y", at, pm.HalfNormal("sd", 3), observed=values)
    return model


def test_second_moments_by_cells_of_unknown_size_are_those_of_a_release():
    bounds, group = {"x": (-2, 2), "y": (-5, 5), "group": {0, 1}}, np.repeat([0, 1], [120, 180])
    model = lines_by_group(group, X, group + 0.5 * X + RNG.normal(0, 1, 300))
    released = pmdp.release(model, epsilon=2.0, bounds=bounds, neighbours="add_remove")
    said = second_moments(released["y"])
    n = said.pop("n")
    assert np.shape(n[0]) == (2,)
    ours = pmdp.published(lines_by_group([0], [0.0], [0.0]), statistics={"y": said}, bounds=bounds, n=n)
    assert_same(ours, pmdp.rewrite(model, released), atol=1e-4)


def of_size(public, size):
    """Log-density of what is observed, as a function of a point of the other unknowns, where so many records are the truth."""
    log_density = pm.do(public, {"y_size": np.asarray(size, dtype=float)}).compile_logp(vars=None, mode="FAST_COMPILE")
    return lambda point: float(log_density({name: value for name, value in point.items() if not name.startswith("y_size")}))


@pytest.mark.parametrize(("noise", "of_number"), [(LAPLACE, stats.laplace), (GAUSSIAN, stats.norm)])
def test_given_their_number_sums_have_their_law_and_the_number_its_noise(noise, of_number):
    """Two cells with noise of different scales: density of sums where the number is known, times that of the noise on the number."""
    sums = {"sum y": ([410.0, 1900.0], noise([12.0, 30.0])), "sum y²": ([1800.0, 4400.0], noise([60.0, 90.0]))}
    told, scales = np.array([103.5, 397.25]), np.array([2.0, 9.0])

    def model():
        with pm.Model() as result:
            mean = pm.Normal("mean", 3, 3, shape=2)
            pm.Normal("y", mean[pm.Data("g", [0, 1])], pm.HalfNormal("sd", 2), observed=[0.0, 0.0])
        return result

    arguments = {"statistics": {"y": sums}, "bounds": {"y": (0.0, 10.0)}}
    unknown = pmdp.published(model(), **arguments, n=(told, noise(scales)))
    assert [variable.name for variable in unknown.free_RVs] == ["mean", "sd", "y_size"]
    differences = []
    for size in ([100, 400], [97, 420], [130, 380]):
        known = pmdp.published(model(), **arguments, n=size)
        with_size, at_size = of_size(unknown, size), known.compile_logp(mode="FAST_COMPILE")
        for point in points(known, 3):
            differences.append(with_size(point) - float(at_size(point)) - of_number.logpdf(told, size, scales).sum())
    np.testing.assert_allclose(differences, differences[0], atol=1e-4)


@pytest.mark.parametrize("law", [LAPLACE(8.0), pmdp.DiscreteLaplace(8.0), GAUSSIAN(8.0)], ids=lambda law: type(law).__name__)
def test_a_number_far_off_loses_what_its_noise_says(law):
    """Of whole noise the law of the same variance is taken."""
    kind = GAUSSIAN if isinstance(law, GAUSSIAN) else LAPLACE
    public = pmdp.published(shared([0], "Poisson"), statistics={"y": {"sum y": (900.0, kind(20.0))}}, bounds={"y": (0, 9)}, n=(300, law))
    log_density, released = of_size(public, [300.0]), public["y_released"].get_value()
    [at] = points(public, 1)
    found = []
    for number in (300.0, 340.0):
        public["y_released"].set_value(released * [[number / 300.0, 1.0]])
        found.append(of_size(public, [300.0])(at))
    assert log_density(at) == pytest.approx(found[0], abs=1e-6)
    assert found[0] - found[1] == pytest.approx(40.0**2 / 128 if kind is GAUSSIAN else 5.0, rel=2e-3)


def test_predicted_numbers_and_sums_are_those_of_records_with_noise():
    """Of 4,000 draws a mean is off by more than 5 standard errors in one of 10^6 runs."""
    law = {"sum y": (900.0, LAPLACE(20.0)), "sum y²": (5000.0, LAPLACE(90.0))}
    public = pmdp.published(shared([0.0], "Normal"), statistics={"y": law}, bounds={"y": (0.0, 10.0)}, n=(300, LAPLACE(4.0)))
    fixed = pm.do(public, {"mean": 3.0, "sd": 2.0, "y_size": np.array([280.0])})
    draws = pm.draw(fixed["y"], 4000, random_seed=1).reshape(4000, 3) * [4.0, 20.0, 90.0]
    mean, covariance = clamped_moments(3.0, 2.0, 0.0, 10.0)
    spread = np.sqrt([2 * 4.0**2, *(280 * np.diag(covariance) + [2 * 20.0**2, 2 * 90.0**2])])
    assert (np.abs(draws.mean(axis=0) - [280, *(280 * mean)]) < 5 * spread / np.sqrt(4000)).all()
    np.testing.assert_allclose(draws.std(axis=0), spread, rtol=0.1)


def two(values):
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1)
        pm.Poisson("y", rate, observed=values)
        pm.Exponential("wait", rate, observed=values)
    return model


def doses():
    with pm.Model() as model:
        pm.Poisson("y", pm.math.exp(pm.Normal("a") + pm.Normal("b") * pm.Data("dose", [0])), observed=[0])
    return model


def ill_by_dose():
    with pm.Model() as model:
        pm.Bernoulli("y", logit_p=pm.Normal("a") + pm.Normal("b") * pm.Data("dose", [0.0]), observed=[0])
    return model


def normal_by_dose():
    with pm.Model() as model:
        mean = pm.Normal("a", 3, 3) + pm.Normal("b") * pm.Data("dose", [0.0])
        pm.Normal("y", mean, pm.HalfNormal("sd", 2), observed=[0.0])
    return model


COUNTED = {"y": {"sum y": ([41.0, 77.0, 30.0], LAPLACE([3.0, 5.0, 3.0]))}}
SQUARED = {"y": COUNTED["y"] | {"sum y²": ([160.0, 410.0, 90.0], LAPLACE(9.0))}}
TOLD, NOISE = np.array([20.5, 29.0, 11.25]), np.array([2.0, 4.0, 2.0])


def test_described_cells_of_unknown_size_are_those_whose_levels_are_listed():
    """A dose of 0, 1 and 2 may be listed in bounds, too, which is another way through the package to the same density."""
    described = pmdp.published(doses(), statistics=COUNTED, bounds=BOUNDS, n=(TOLD, LAPLACE(NOISE)), cells={"dose": [0, 1, 2]})
    listed = pmdp.published(doses(), statistics=COUNTED, bounds=BOUNDS | {"dose": {0, 1, 2}}, n=(TOLD, LAPLACE(NOISE)))
    assert_same(described, listed, atol=1e-8)


def test_described_cells_of_unknown_size_may_hold_sums_of_covariates():
    """Groups that are described, and those of whose index the levels are listed. A cell in the middle of two is as its mean is there."""
    sums = {"sum y": ([90.0, 140.0], LAPLACE(9.0)), "sum y²": ([350.0, 480.0], LAPLACE([40.0, 60.0])), "sum x": ([8.0, -3.0], LAPLACE(3.0)),
            "sum x y": ([60.0, 20.0], LAPLACE(9.0)), "sum x²": ([70.0, 90.0], LAPLACE(5.0))}  # fmt: skip
    bounds = {"x": (-2, 2), "y": (-9, 9)}
    how = {"statistics": {"y": sums}, "n": (TOLD[:2], LAPLACE(NOISE[:2]))}
    described = pmdp.published(lines_by_group([0], [0.0], [0.0]), **how, bounds=bounds, cells={"group": [0, 1]})
    listed = pmdp.published(lines_by_group([0], [0.0], [0.0]), **how, bounds=bounds | {"group": {0, 1}})
    assert_same(described, listed, atol=1e-8)

    def line_at(dose):
        with pm.Model() as model:
            mean = pm.Normal("a", 3, 3) + pm.Normal("b") * (0.75 if dose is None else pm.Data("dose", [0.0]))
            pm.Normal("y", mean + pm.Normal("slope") * pm.Data("x", [0.0]), pm.HalfNormal("sd", 2), observed=[0.0])
        return model

    first = {"y": {name: (numbers[:1], LAPLACE(np.ravel(law.scale)[0])) for name, (numbers, law) in sums.items()}}
    alone = pmdp.published(line_at(None), statistics=first, bounds=bounds, n=(TOLD[0], LAPLACE(2.0)))
    of_cell = pmdp.published(line_at(0.75), statistics=first, bounds=bounds, n=(TOLD[:1], LAPLACE(2.0)), cells={"dose": [0.75]})
    assert_same(of_cell, alone, atol=1e-8)


@pytest.mark.parametrize(("model", "sums"), [(doses, COUNTED), (normal_by_dose, SQUARED)])
def test_given_their_numbers_sums_in_described_cells_have_their_law(model, sums):
    """Doses of no whole number: the density where numbers are known, times that of the noise on them."""
    dose = [0, 1, 4] if model is doses else [0.25, 0.75, 1.5]
    more = {"statistics": sums, "bounds": BOUNDS, "cells": {"dose": dose}}
    unknown = pmdp.published(model(), **more, n=(TOLD, LAPLACE(NOISE)))
    assert unknown["y_size" if "y_size" in unknown.named_vars else "y_1_size"].ndim == 1
    differences = []
    for size in (np.array([20, 30, 11]), np.array([24, 25, 9])):
        known = pmdp.published(model(), **more, n=size)
        names = {str(rv.name): size[[0, 2]] if rv.name.startswith("y_1") else size[[1]] for rv in unknown.free_RVs if "size" in rv.name}
        names = names if len(names) > 1 else dict.fromkeys(names, size)
        fixed = pm.do(unknown, {name: value.astype(float) for name, value in names.items()}).compile_logp(mode="FAST_COMPILE")
        at_size = known.compile_logp(mode="FAST_COMPILE")
        for point in points(known, 3):
            differences.append(float(fixed(point)) - float(at_size(point)) - stats.laplace.logpdf(TOLD, size, NOISE).sum())
    np.testing.assert_allclose(differences, differences[0], atol=1e-4)


SUM = {"sum y": (41.0, LAPLACE(3.0))}
BOUNDS = {"y": (0, 9)}
NUMBER = (20.0, LAPLACE(2.0))
REFUSED = {
    "no number": (shared([0], "Poisson"), {"y": SUM}, {"bounds": BOUNDS}, r"n=\(1012, pymc_dp.LaplaceNoise"),
    "no number of a regression": (
        line([0.0], [0.0]), {"y": SUM}, {"bounds": {"y": (0, 9), "x": (0, 1)}}, "How many records y was summed over is not said",
    ),
    "cells and one number": (
        doses(), {"y": SUM}, {"bounds": BOUNDS, "n": NUMBER, "cells": {"dose": [0, 1]}},
        "needs a number of records for every cell",
    ),
    "cells and no number": (
        doses(), {"y": {"sum y": ([1, 2], LAPLACE(3.0))}}, {"bounds": BOUNDS, "cells": {"dose": [0, 1]}},
        "needs a number of records for every cell",
    ),
    "counts in cells": (
        ill_by_dose(), {"y": {"ones": ([9, 3], LAPLACE(3.0))}}, {"n": ([20, 30], LAPLACE(2.0)), "cells": {"dose": [0, 1]}},
        r"need exact numbers of records. Or write a model of the totals, people = pm.DiscreteUniform.*pm.Binomial.'y', people, p,",
    ),
    "some levels beside their number": (
        shared([0], "Categorical"), {"y": {"level 0": (9, LAPLACE(3.0)), "level 2": (4, LAPLACE(1.0))}}, {"n": NUMBER},
        r"pm.Binomial\('y_1', people, p_1, observed=.....\), and pm.Binomial\('y_2', people - y_1, p_2 / \(1 - p_1\)",
    ),
    "a regression by cells, one number of which is not known": (
        lines_by_group([0], [0.0], [0.0]), {"y": {"sum y": ([9, 3], LAPLACE(3.0)), "sum x": ([9, 3], LAPLACE(3.0))}},
        {"bounds": {"y": (0, 9), "x": (0, 1)}, "n": ([20, np.nan], LAPLACE(2.0)), "cells": {"group": [0, 1]}}, "is NaN",
    ),
    "the number twice": (
        shared([0], "Poisson"), {"y": SUM | {"n": NUMBER}}, {"bounds": BOUNDS, "n": NUMBER}, "The number of records of y is there twice",
    ),
    "counts and their number": (by_group([0], [0]), {"y": {"table": (np.ones((3, 2)), LAPLACE(1.0))}}, {"n": NUMBER}, "Leave n out"),
    "one level": (by_group([0], [0]), {"y": {"ones": ([1, 2, 3], LAPLACE(1.0))}}, {}, "needs each of zeros, ones"),
    "two kinds of noise": (
        shared([0], "Poisson"), {"y": SUM}, {"bounds": BOUNDS, "n": (20.0, GAUSSIAN(2.0))}, "Laplace and Gaussian noise",
    ),
    "a number and no sums": (
        shared([0], "Poisson"), {"y": {"sum y": (np.nan, LAPLACE(3.0))}}, {"bounds": BOUNDS, "n": NUMBER}, "a number and no sums",
    ),
    "sums and no number": (shared([0], "Poisson"), {"y": SUM}, {"bounds": BOUNDS, "n": (np.nan, LAPLACE(2.0))}, "sums and no number"),
    "no number where moments are": (
        line([0.0], [0.0]), {"y": SUM}, {"bounds": {"y": (0, 9), "x": (0, 1)}, "n": (np.nan, LAPLACE(2.0))}, "is NaN",
    ),
    "known of one only": (
        two([1]), {"y": SUM, "wait": {"sum wait": (3.0, LAPLACE(1.0))}},
        {"bounds": {"y": (0, 9), "wait": (0, 5)}, "n": {"y": 20, "wait": NUMBER}},
        "The number of records of y is known and that of wait is not",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    model, statistics, arguments, words = REFUSED[case]
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.published(model, statistics=statistics, **arguments)


def test_two_cells_of_known_size_may_be_a_tuple():
    """A pair is a number and its law only where the second is a law."""
    law = {"y": {"ones": ([9.0, 30.0, 4.0], pmdp.DiscreteLaplace(2.0))}}
    first, second = (pmdp.published(by_group([0], [0]), statistics=law, n=sizes) for sizes in ((30, 50, 20), [30, 50, 20]))
    assert_same(first, second, atol=1e-12)
