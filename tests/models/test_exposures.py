"""Rates times private exposures: read as the exponential of a sum of logarithms, however they are written."""

import numpy as np
import pymc as pm
import pytest
from checks import log_density, points, refused, seam_of

import pymc_dp as pmdp

pytestmark = pytest.mark.filterwarnings("ignore")

N = 60
RNG = np.random.default_rng(1)
W, Z, G = RNG.uniform(0.5, 5, N), RNG.normal(size=N).clip(-2, 2), RNG.integers(0, 3, N)
CASES = RNG.poisson(W * np.exp(0.3 * Z))
BOUNDS = {"w": (0.5, 5), "z": (-2, 2), "cases": (0, 20), "log(cases)": (-2, 3)}


def model(mean, *, grouped=False, n=N):
    with pm.Model() as built:
        w, z = pm.Data("w", W[:n]), pm.Data("z", Z[:n])
        rate = pm.Gamma("rate", 2, 2, shape=3)[pm.Data("g", G[:n])] if grouped else pm.Gamma("rate", 2, 2)
        pm.Poisson("cases", mean(rate, w, pm.math.exp(pm.Normal("b", 0, 0.5) * z)), observed=CASES[:n])
    return built


SPELLED = {
    "first": lambda rate, w, relative: w * rate * relative,
    "last": lambda rate, w, relative: relative * (rate * w),
    "divided": lambda rate, w, relative: rate * relative / (1 / w),
    "log": lambda rate, w, relative: pm.math.exp(pm.math.log(w)) * rate * relative,
}


def sums(written):
    """The exact sums of its release, by name, in whatever order covariates come."""
    with seam_of(0):
        statistic = pmdp.release(written, epsilon=1, bounds=BOUNDS)["cases"]
    return {tuple(sorted(name.split())): statistic.values[:, k] for k, name in enumerate(statistic.facts()["statistics"])}


@pytest.mark.parametrize("grouped", [False, True], ids=["one rate", "rates of groups"])
def test_a_rate_times_an_exposure_is_an_offset(grouped):
    """What is released of it before noise is what is released of the model with the logarithm of the exposure as an offset."""
    offset = model(lambda rate, w, relative: pm.math.exp(pm.math.log(rate) + pm.math.log(w) + relative.owner.inputs[0]), grouped=grouped)
    expected = sums(offset)
    assert len(expected) == 9
    for written in SPELLED.values():
        found = sums(model(written, grouped=grouped))
        assert found.keys() == expected.keys()
        for name, values in expected.items():
            np.testing.assert_allclose(abs(found[name]), abs(values), atol=1e-6)  # of 1 / w the logarithm has the other sign


@pytest.mark.parametrize("spelling", sorted(SPELLED.keys() - {"divided"}))
def test_the_posterior_is_that_of_the_offset(spelling):
    """Of the same release, as far as a log-density may differ by a constant that its features' order moves a little."""
    offset = model(lambda rate, w, relative: pm.math.exp(pm.math.log(rate) + pm.math.log(w) + relative.owner.inputs[0]))
    written = model(SPELLED[spelling])
    with seam_of(0):
        private = [pmdp.rewrite(m, pmdp.release(m, epsilon=20, bounds=BOUNDS)) for m in (written, offset)]
    ours, theirs = map(log_density, private)
    apart = [ours(point) - theirs(point) for point in points(private[1])]
    assert np.ptp(apart) < 1e-3


NEGATIVE = {
    "each": lambda a, c, w: (a * w) * (c * pm.math.sqrt(w)),
    "turned": lambda a, c, w: -a * w * -1,
    "above": lambda a, c, w: a * (w / c),
}


@pytest.mark.parametrize("spelling", NEGATIVE)
@pytest.mark.parametrize(("a", "c"), [(-0.8, -0.5), (0.8, 0.5)])
def test_unknown_factors_may_be_negative_where_the_mean_is_not(spelling, a, c):
    """The private model is defined wherever the model is, and nowhere else."""
    with pm.Model() as built:
        pm.Poisson("cases", NEGATIVE[spelling](pm.Normal("a"), pm.Normal("c"), pm.Data("w", W)), observed=CASES)
    with seam_of(0):
        private = pmdp.rewrite(built, pmdp.release(built, epsilon=20, bounds={k: v for k, v in BOUNDS.items() if k != "z"}))
    point = {"a": np.array(a), "c": np.array(c)}
    expected = np.isfinite(built.compile_logp()(point))
    assert expected or spelling == "turned"
    assert np.isfinite(private.compile_logp()({**private.initial_point(), **point})) == expected


def test_a_private_exposure_of_a_rate_alone_is_one():
    with pm.Model() as built:
        pm.Poisson("cases", pm.Gamma("rate", 2, 2) * pm.Data("w", W), observed=CASES)
    assert pmdp.inspect(built, bounds={k: v for k, v in BOUNDS.items() if k != "z"}).rows[0].structure == "linear"


def test_an_exposure_that_may_be_zero_is_refused():
    words = refused(pmdp.release, model(SPELLED["first"]), epsilon=1, bounds=BOUNDS | {"w": (0, 5)})
    assert "becomes infinite" in words
    assert "must be above 0" in words


def test_the_ways_that_an_exposure_without_bounds_of_the_rate_is_shown_are_taken():
    """Bounds of the logarithm, or bins of the exposure, of the words of the refusal themselves."""
    with pm.Model() as built:
        pm.Poisson("cases", pm.Gamma("rate", 2, 2) * pm.Data("w", W), observed=CASES)
    bounds = {"w": (0.5, 5), "cases": (0, 20)}
    words = refused(pmdp.release, built, epsilon=1, bounds=bounds)
    for shown, structure in ({"log(cases)": (-3, 3)}, "linear"), ({"w": pmdp.Bins(0.5, 5)}, "table"):
        [(name, _)] = shown.items()
        assert f"bounds={{{name!r}: " in words
        assert pmdp.inspect(built, bounds=bounds | shown).rows[0].structure == structure


def test_a_public_exposure_is_read_as_before():
    """Sums of it are exact where all is public."""
    with pm.Model() as built:
        pm.Poisson("cases", pm.Gamma("rate", 2, 2) * pm.Data("w", np.repeat([1.0, 2.0], 30)), observed=CASES)
    assert pmdp.inspect(built, bounds={"cases": (0, 20)}, public=["w"]).rows[0].structure == "indexed"
