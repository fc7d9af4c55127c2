"""The noise is the discrete Laplace or Gaussian law it claims to be, calibrated exactly, and nobody can seed it."""

import os
import random
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from multiprocessing import get_context

import numpy as np
import pymc as pm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import SPELLINGS, shared_bernoulli
from scipy.stats import chi2, norm

import pymc_dp as pmdp
from pymc_dp.privacy import mechanisms
from pymc_dp.privacy.accounting import Cost
from pymc_dp.privacy.mechanisms import LARGEST_SCALE, Gaussian, Laplace
from pymc_dp.privacy.noise_law import Noise
from pymc_dp.privacy.receipts import Draw, Receipt

LAWS = {"laplace": Laplace(), "gaussian": Gaussian()}
every_law = pytest.mark.parametrize("law", LAWS)


def paid(scale, size, law="laplace"):
    """The right to one draw, at whatever it costs."""
    draw = Draw("y", law, 1, 1, scale, size)
    cost = Cost(draw.pure) if law == "laplace" else Cost(Fraction(1), Fraction(1, 100), draw.rho)
    return Receipt([draw], cost)


def noise_of(scale, size, exact=0, law="laplace"):
    return LAWS[law].draw(np.full(size, exact), scale, paid(scale, size, law)) - exact


def below(k, scale, law):
    """P(noise <= k), exactly: 1 - q^(k + 1) / (1 + q) for k >= 0 and q^-k / (1 + q) below; for the Gaussian law by adding up.

    Sums over more than a million integers are integrals, by the midpoint rule, which errs by less than 1e-12 there.
    """
    q = np.exp(-1 / scale)
    if law == "laplace":
        return np.where(k >= 0, 1 - q ** (np.maximum(k, 0) + 1) / (1 + q), q ** -np.minimum(k, 0) / (1 + q))
    if scale > 2**16:
        return norm.cdf((k + 0.5) / scale)
    integers = np.arange(-int(12 * scale) - 20, int(12 * scale) + 21)
    mass = np.exp(-(integers**2) / (2 * scale**2))
    return (np.cumsum(mass) / mass.sum())[np.searchsorted(integers, k)]


def cells_of(scale):
    """Ends of up to 50 cells, narrower near 0."""
    return np.unique(np.rint(scale * np.concatenate([-np.geomspace(8, 0.01, 25), [0], np.geomspace(0.01, 8, 25)])).astype(int))


def p_value(draws, scale, law="laplace"):
    """Chi-square of draws against the exact pmf, in cells of at least 50 expected draws."""
    edges = cells_of(scale)
    expected = np.diff(np.concatenate([[0], below(edges, scale, law), [1]])) * len(draws)
    observed = np.bincount(np.searchsorted(edges, draws), minlength=len(edges) + 1)
    keep = expected >= 50
    statistic = ((observed - expected)[keep] ** 2 / expected[keep]).sum()
    return chi2(keep.sum() - 1).sf(statistic)


slow = pytest.mark.slow


@pytest.mark.parametrize(
    ("law", "scale"),
    [
        pytest.param(law, scale, marks=[] if (law, scale) in {("laplace", 3.0), ("laplace", 2.0**20), ("gaussian", 3.0)} else slow)
        for law in LAWS
        for scale in (0.7, 3.0, 40.0, 777.7, 2.0**20)
    ],
)
def test_goodness_of_fit(law, scale):
    """200,000 draws; false alarm one in a million; a scale 5 % off either way is rejected (checked below).

    Power: a scale off by a share d has a non-centrality of about n d^2 = 500 for the Laplace and twice that for the Gaussian law, against
    a threshold of about 110 with 50 cells and less with fewer: all but certain.
    """
    draws = noise_of(scale, 200_000, law=law)
    assert p_value(draws, scale, law) > 1e-6
    assert p_value(draws, scale * 0.95, law) < 1e-6
    assert p_value(draws, scale * 1.05, law) < 1e-6


def bernoulli_exp(x, rng):
    """True with probability exp(-x), for a fraction x >= 0: Canonne, Kamath and Steinke 2020, Algorithm 1."""
    while x > 1:
        if not bernoulli_exp(Fraction(1), rng):
            return False
        x -= 1
    k = 1
    while rng.randrange(x.denominator * k) < x.numerator:  # with probability x / k
        k += 1
    return k % 2 == 1


def oracle(scale, rng):
    """Discrete Laplace noise of a fraction t / s as scale, in integer arithmetic alone: their Algorithm 2."""
    t, s = scale.numerator, scale.denominator
    while True:
        u, v = rng.randrange(t), 0
        if not bernoulli_exp(Fraction(u, t), rng):
            continue
        while bernoulli_exp(Fraction(1), rng):
            v += 1
        size, negative = (u + t * v) // s, rng.random() < 0.5
        if not (negative and size == 0):
            return -size if negative else size


@pytest.mark.parametrize("scale", [pytest.param(Fraction(3, 4), marks=slow), Fraction(7), pytest.param(Fraction(81, 2), marks=slow)])
def test_an_independent_sampler_agrees(scale):
    """20,000 draws of an exact sampler of our own against 200,000 of OpenDP's, chi-square of the two; false alarm one in a million.

    A scale 12 % off would be found with probability .999: the non-centrality is n d^2 = 260 for the smaller of the two samples.
    """
    rng = random.Random(11)
    ours = np.array([oracle(scale, rng) for _ in range(20_000)])
    theirs = noise_of(float(scale), 200_000)
    assert p_value(ours, float(scale)) > 1e-6
    assert two_samples(ours, theirs, float(scale)) > 1e-6
    assert two_samples(ours, noise_of(float(scale) * 1.12, 200_000), float(scale)) < 1e-6


def two_samples(first, second, scale):
    edges = cells_of(scale)
    counts = np.array([np.bincount(np.searchsorted(edges, draws), minlength=len(edges) + 1) for draws in (first, second)], dtype=float)
    counts = counts[:, counts.sum(0) >= 100]
    expected = counts.sum(0) * counts.sum(1, keepdims=True) / counts.sum()
    return chi2(counts.shape[1] - 1).sf(((counts - expected) ** 2 / expected).sum())


def test_simulated_noise_has_the_same_law():
    draws = pm.draw(Noise(6.0, 0.5).simulated((200_000,)), random_seed=4, mode="FAST_COMPILE") / 0.5
    assert (draws == np.rint(draws)).all()
    assert p_value(draws.astype(int), 6.0) > 1e-6


@pytest.mark.parametrize("scale", [0.7, 6.0, 40.0])
@every_law
def test_what_a_model_is_told_of_the_noise_is_what_is_drawn(law, scale):
    """Probabilities and variance against the formula, summed term by term, and the variance against 100,000 draws: six errors."""
    step, k = 0.5, np.arange(-int(60 * scale), int(60 * scale) + 1.0)
    noise = LAWS[law].noise(scale, step)
    wanted = np.exp(-np.abs(k) / scale if law == "laplace" else -(k**2) / (2 * scale**2))
    wanted /= wanted.sum()
    by_distance, by_square, constant = noise.kernel
    np.testing.assert_allclose(
        np.exp(by_distance * np.abs(step * k) + by_square * (step * k) ** 2 + constant), wanted, rtol=1e-9, atol=1e-300
    )
    variance, fourth = ((k**power * wanted).sum() for power in (2, 4))
    assert noise.standard_deviation == pytest.approx(step * np.sqrt(variance), rel=1e-9)
    draws = noise_of(scale, 100_000, law=law)
    assert abs(draws.var() - variance) < 6 * np.sqrt((fourth - variance**2) / len(draws))


@given(
    st.integers(1, 2**40),
    st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(1000)),
)
@settings(max_examples=500, deadline=None, derandomize=True, database=None)
def test_calibration_is_exact_and_tight(sensitivity, epsilon):
    scale = Laplace().calibrate(sensitivity, sensitivity**2, Cost(epsilon))
    assert Fraction(sensitivity) / Fraction(scale) <= epsilon
    assert Fraction(sensitivity) / Fraction(np.nextafter(scale, 0)) > epsilon


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf"), LARGEST_SCALE])
def test_no_noise_is_no_release(scale):
    with pytest.raises(pmdp.Refusal):
        Laplace().draw(np.zeros(3, dtype=int), scale, paid(1.0, 3))


def test_large_statistics_are_carried_exactly():
    assert (np.abs(noise_of(1.0, 100, exact=2**62 - 1)) < 60).all()
    assert (np.abs(noise_of(1.0, 100, exact=-(2**62) + 1)) < 60).all()


@every_law
def test_every_entry_has_its_own_noise(law):
    """Correlations of three entries over 2,000 draws, and of the entries of one long draw with those after them: 0 within 6 errors."""
    draws = np.array([noise_of(5.0, 3, law=law) for _ in range(2_000)])
    one = noise_of(5.0, 40_000, law=law).astype(float)
    found = np.corrcoef(draws.T)
    assert np.abs(found[np.triu_indices(3, 1)]).max() < 6 / np.sqrt(2_000)
    for lag in (1, 2, 3, 7):
        assert abs(np.corrcoef(one[lag:], one[:-lag])[0, 1]) < 6 / np.sqrt(len(one) - lag)
    wide = noise_of(2.0**50, 1000, law=law)
    assert len(np.unique(np.abs(wide))) == 1000, "two of them agree by chance once in a billion times"


@every_law
def test_observed_variables_share_no_noise(law, monkeypatch):
    """Two observed variables of 2,000 cells each in one release: their noises are uncorrelated within 6 standard errors, in any order."""
    n, exact = 2000, []
    with pm.Model() as model:
        g = pm.Data("g", np.arange(n))
        for name in ("y", "z"):
            pm.Bernoulli(name, pm.Beta(f"p{name}", 1, 1, shape=n)[g], observed=np.zeros(n, dtype=int))
    draw = mechanisms._noised
    monkeypatch.setattr(mechanisms, "_noised", lambda values, scale, mechanism: exact.append(values) or draw(values, scale, mechanism))
    delta = 1e-6 if law == "gaussian" else 0
    released = pmdp.release(model, epsilon=0.1, mechanism=law, delta=delta, public=["g"])
    first, second = ((one.noisy - values).ravel() for one, values in zip(released.statistics, exact, strict=True))
    assert len(first) == n
    assert not (first == second).all()
    assert abs(np.corrcoef(first, second)[0, 1]) < 6 / np.sqrt(n)
    assert sorted(first) != sorted(second)


@pytest.mark.parametrize("make", SPELLINGS, ids=lambda make: make.__name__)
@every_law
def test_nothing_is_off_the_lattice(law, make):
    """Released numbers are integers, and in their units exact multiples of a public power of two or of 1: no low-order bits to read."""
    model, arguments = make()
    released = pmdp.release(model, epsilon=1.0, mechanism=law, delta=1e-6 if law == "gaussian" else 0, **arguments)
    for one in released.statistics:
        assert one.noisy.dtype == np.int64
        assert np.log2(one.lattice) % 1 == 0
        assert (np.abs(one.noisy) < 2**53).all()
        assert all(Fraction(v) / Fraction(one.lattice) == k for v, k in zip(one.values.flat, one.noisy.flat, strict=True))


def test_no_seed_reaches_the_noise():
    model, _ = shared_bernoulli()

    def release():
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        return pmdp.release(model, epsilon=1e-3).statistics[0].noisy.item()

    assert len({release() for _ in range(20)}) > 10


def some_draws(_):
    return [int(noise_of(2.0**40, 1, law=law)[0]) for law in LAWS], os.getpid()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # a fork of a process with threads is what is tested
@pytest.mark.parametrize("start", ["fork", pytest.param("spawn", marks=slow), pytest.param("forkserver", marks=slow)])
def test_children_draw_different_noise(start):
    """After the parent has drawn; 68 numbers of scale 2**40, of which two agree by chance once in a billion times."""
    before, _ = some_draws(0)
    with ProcessPoolExecutor(2 if start == "spawn" else 4, mp_context=get_context(start)) as pool:
        draws = list(pool.map(some_draws, range(32)))
    after, parent = some_draws(0)
    assert parent not in {process for _, process in draws}
    everything = [value for values in (*(values for values, _ in draws), before, after) for value in values]
    assert len(set(everything)) == len(everything) == 68


@dataclass(frozen=True)
class Rounded(pmdp.Laplace):
    """Noise whose law rests on a parameter."""

    to: int = 5
    name = "rounded"

    def noise(self, scale, step):
        return Noise(scale * self.to, step)


@dataclass(frozen=True)
class Nameless(pmdp.Laplace):
    """Another law under Laplace's name."""


@dataclass(frozen=True)
class AsChoice(pmdp.Gaussian):
    """Gaussian noise at the price of a private choice."""

    name, priced_as = "cheap", "choice"


@pytest.mark.parametrize(
    ("noise", "names", "words"),
    [(Rounded(), {}, "by a name"), (Rounded(to=7), {"rounded": Rounded}, "rests on its parameters"), (Nameless(), {}, "by a name"),
     (AsChoice(), {"cheap": AsChoice}, "priced_as")],
    ids=["unknown", "parameters", "another's name", "another price"],
)  # fmt: skip
def test_a_noise_that_a_release_would_not_remember_is_refused_before_it_is_paid_for(noise, names, words, tmp_path, monkeypatch):
    """It keeps a noise's name alone: its law when it is read is that of the class of this name, with its defaults."""
    for name, kind in names.items():
        monkeypatch.setitem(mechanisms.MECHANISMS, name, kind)
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=5, create=True)
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.arange(30) % 2)
    delta = 1e-6 if isinstance(noise, pmdp.Gaussian) else 0
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.release(model, epsilon=1.0, delta=delta, mechanism=noise, ledger=None if delta else ledger)
    assert ledger.remaining().epsilon == 5


@dataclass(frozen=True)
class Bent(pmdp.Fourier):
    """Noise on Fourier coefficients whose law rests on a parameter."""

    to: int = 5
    name = "bent"

    def noise(self, scale, step):
        return Noise(scale * self.to, step)


def test_noise_on_coefficients_is_what_its_name_stands_for(tmp_path, monkeypatch):
    monkeypatch.setitem(mechanisms.MECHANISMS, "bent", Bent)
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=5, create=True)
    with pm.Model() as model:
        a = pm.Bernoulli("a", pm.Beta("p", 1, 1), observed=np.arange(30) % 2)
        pm.Bernoulli("b", pm.Beta("q", 1, 1, shape=2)[a], observed=np.arange(30) % 3 % 2)
    with pytest.raises(pmdp.Refusal, match="rests on its parameters"):
        pmdp.release(model, epsilon=1.0, mechanism=Bent(to=7), ledger=ledger)
    assert ledger.remaining().epsilon == 5
    pmdp.release(model, epsilon=1.0, mechanism=Bent(), ledger=ledger)
