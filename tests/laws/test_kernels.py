"""The loops: derivatives are those of the value, numba says what Python says, and models with them can be pickled."""

import os
import pickle
import subprocess
import sys
from dataclasses import replace

import cloudpickle
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from checks import mostly_slow

from pymc_dp.families.second_moments import Regression
from pymc_dp.laws import central_limit, counts, event_loops, limited, recursions, shares, squares, sums
from pymc_dp.laws.kernel import Kernel
from pymc_dp.privacy.noise_law import Noise
from pymc_dp.private_models import moment_loops
from pymc_dp.private_models.moment_law import Related, scatter

RNG = np.random.default_rng(3)
NOISE = [np.array(Noise(2.0, gaussian=gaussian).kernel) for gaussian in (False, True)]
N, P = np.array([60.0, 400.0]), RNG.dirichlet(np.full(4, 3.0), 2)
X = RNG.normal(size=P.shape)
MANY = RNG.dirichlet(np.full(9, 3.0), 2)
ONE = np.array([3.0, -1.0]), np.array([4.0, 2.0]), np.array([9.0, 4.0])
PAIR = np.array([[3.0, 1.0], [-2.0, 4.0]]), *(np.array(column) for column in ([1.0, 1], [2.0, 0], [9.0, 4], [3.0, -1], [4.0, 3]))
FEW = (
    np.array([[1.0, 1.5], [-0.4, 0.9], [2.0, 3.0], [3.0, 3.0]]),
    *map(np.array, ([5.0, 8, 3, 12], [0.3, -0.1, 0.6, 0.1], [0.1, 0.2, 0.3, 0.2], [0.1, -0.2, 0.0, 0.05])),
    *map(np.array, ([1.0, 0.7, 1.0, 0.9], [2.0, 3.3, 1.0, 5.5], [0.2, 0.4, 0.5, 0.3])),
)
"""Four cells of 3 to 12 records."""
EVENTS = (
    np.array([[1.0, 2.5], [-4.0, 30.3], [0.2, -1.0]]), np.array([9.0, 50.0, 4.0]),
    *map(np.array, ([-1.2, -0.5, -3.0], [-0.4, -0.9, -0.05], [0.1, -0.3, 0.0], [0.3, 0.2, 0.33])),
)  # fmt: skip
"""Three cells of 4 to 50 records, of which a share are events."""
UNKNOWN = (
    np.array([[1.6, 3.4, 14.0], [34.0, 26.7, 40.1], [-0.6, -0.3, 7.0], [0.2, 0.9, -0.5]]), np.array([9.3, 50.8, 4.4, 0.3]),
    *map(np.array, ([-1.2, -0.5, -3.0, -0.1], [-0.4, -0.9, -0.05, -2.3], [0.1, -0.3, 0.0, 0.2], [0.3, 0.2, 0.33, 0.1])),
)  # fmt: skip
"""Four cells of an unknown number of records."""
FAR = (
    np.array([[1000.0, 500.0], [5000.0, -3000.0], [5000.0, 0.0], [15_000.0, 3000.0], [-200.0, 9000.0]]), np.zeros(5), np.zeros(5),
    np.full(5, 4900.0), np.array([-4400.0, 4400.0, 4400.0, -4400.0, 500.0]), np.full(5, 4900.0),
)  # fmt: skip
"""Parameters with which the sums that were released are far out, as those that a chain starts with."""

SUMS = (
    np.array([[30.0, 12.0, 9.0, 70.0], [20.0, 25.0, 4.0, 50.0]]), np.array([25.0, 18.0]), RNG.uniform(0.2, 1, (2, 3)),
    np.array([[0.3, 0.1, 0.4, -0.1, 0.05, 0.2], [0.2, -0.1, 0.5, 0.02, 0.1, 0.3]]), RNG.normal(size=(2, 3)),
    np.column_stack([np.ones(4), RNG.normal(size=(4, 3))]),
)  # fmt: skip

WINDOWS = [
    np.array(entries)
    for entries in (
        [4.0, 5.0, 2.0, 7.0, 0.0], [0.0, -0.4, 0.7, 0.0, 0.3], [5.2, 0.4 * 13, -0.2, 9.0, 0.6], [2.0, 3.0, -2.0, 3.0, 0.0],
        [0.0, 1.0, 0.0, 0.0, 2.0], [5.0, 4.0, 5.0, 5.0, 3.0], [0.0, 0.0, 1.0, 2.0, 1.0], [0.3, 0.9, 1.0, 0.5, 0.1],
    )
]  # fmt: skip
"""Poisson, binomial and negative binomial counts in closed, open and contrary windows."""


NEAR = np.array([[[0.1, 1.5], [2.0, 0.3], [-1.0, 0.7]], [[0.0, 1.0]] * 3])
"""Middles and standard deviations of logits."""


def released(shares):
    return np.round(N[:, None] * shares + RNG.normal(size=shares.shape) * 3)


def moments(link, gaussian, cells=2, squares=()):
    """Inputs of the loop over second moments, of a public feature and a private one: the first of two cells is centred on released values.

    With a link all features are private, and the mean of one may be told by the square of the other.
    """
    ends = (-1.0, -1.0, -2.0), (1.0, 1.0, 3.0), (0.0,), (1.0 if link == "logit" else 8.0,)
    private = (False, bool(link), True)
    regression = Regression(("1", "a", "b"), private, *ends, bool(link), bool(link), link=link, predictor=(-4.0, 4.0))
    known = np.zeros((cells, 4, 4))
    known[:, :2, :2] = 0.0 if link else [[40.0, 8.0], [8.0, 30.0]]
    some = [40.0, 8.0, 12.0, 3.0, 30.0, 5.0, 6.0, 20.0, 4.0] if link else [12.0, 3.0, 15.0, 9.0, 5.0, 4.0, 30.0]
    noisy = np.array(some)[: len(regression.entries)] + RNG.normal(size=(cells, 1))
    anchor = RNG.normal(0, 0.3, (cells, 3)) if link else None
    together = [Related((1, 2), np.full(5, -0.1), np.tril(np.full((5, 5), 0.3)), squares)] if squares else []
    law = scatter(regression, Noise(2.0, gaussian=gaussian), noisy, known, np.full(cells, 40.0), together, anchor=anchor)
    near = [[True] * 3, [False] * 3] if cells > 1 else [[True, False, True]]
    law = replace(law, near=np.array(near), near_squares=np.array([True, False][:cells]))
    latent = 0.3 * RNG.normal(size=(cells, law.latents))
    given = [np.full(cells, 40.0), RNG.normal(0, 0.3, (cells, 3)), np.array([5.0, 0.7])[:cells], latent]
    shared = np.array([0.3] * law.shared)
    node = law.log_density(*map(pt.constant, (noisy, *given, shared, law.given()))).owner
    return [entry.eval(mode="FAST_COMPILE") for entry in node.inputs]


EXAMPLES = [
    *((moment_loops.normal_moments, (1, 2, 3, 4, 5), moments("", gaussian)) for gaussian in (False, True)),
    *((moment_loops.normal_moments, (1, 2, 3, 4, 5), moments(link, gaussian)) for link, gaussian in (("logit", False), ("log", True))),
    (moment_loops.normal_moments, (1, 2, 3, 4, 5), moments("logit", True, 1)),
    *((moment_loops.normal_moments, (1, 2, 3, 4, 5), moments("log", False, cells, ((1, 0, 0.5, 0.5),))) for cells in (1, 2)),
    (sums.normal_plus_laplace, (1, 2), [*ONE, np.array(0.7)]),
    (sums.normal_plus_laplace, (1, 2), [*ONE, np.array(1e-5)]),
    (sums.pair_plus_laplace, (1, 2, 3, 4, 5), [*PAIR, np.array(0.7)]),
    (sums.pair_plus_laplace, (1, 2, 3, 4, 5), [*FAR, np.array(0.4)]),
    *(
        (squares.squares_plus_noise, (2, 3, 4, 5, 6, 7), [*FEW, np.array(b), np.array(gaussian)])
        for b, gaussian in ((0.2, 0.0), (0.3, 1.0))
    ),
    (sums.clamped_moments, (0, 1), [np.array([-3.0, -0.7, 0.0, 0.2, 1.4, 5.0]), np.array([0.4, 0.1, 2.0, 4.0, 0.6, 9.0])]),
    *((central_limit.latent_counts, (2, 3), [released(P), N, P, X, np.array(0.7 * b), np.array(b)]) for b in (1.0, 30.0)),
    *((central_limit.latent_sums, (1, 2, 3, 4), [*SUMS, np.array(0.7 * b), np.array(b)]) for b in (0.3, 30.0)),
    *((counts.rate_window, (1,), [np.array([30.0, 2.0]), np.array([25.0, 4.0]), np.array(81), noise]) for noise in NOISE),
    *((counts.count_window, (2,), [released(P)[:, 0], N, P[:, 0], np.array(81), noise]) for noise in NOISE),
    *((counts.counts_convolution, (2,), [released(P), N, P, np.array(61), noise]) for noise in NOISE),
    (shares.shares_volume, (0,), [np.array([[0.0, 0.3, -2.0], [30.0, -40.0, 1.0]]), NEAR]),
    *((counts.counts_saddle, (2,), [released(MANY), N, MANY, np.array(61), noise]) for noise in NOISE),
    (recursions.window_sum, (1, 2), WINDOWS),
    *(
        (event_loops.events_plus_noise, (2, 3, 4, 5), [*EVENTS, np.array(61), noise, np.array(0.7), np.array(float(gaussian))])
        for gaussian, noise in enumerate(NOISE)
    ),
    *(
        (event_loops.events_of_unknown, (1, 2, 3, 4, 5), [*UNKNOWN, np.array(61), noise, np.array(0.7), np.array(float(gaussian))])
        for gaussian, noise in enumerate(NOISE)
    ),
    *((limited.counts_at_most, (1,), [released(P), 1.1 * N[:, None] * P, N, np.array(61), noise]) for noise in NOISE),
]
VALUES = {sums.clamped_moments: 5}
"""Where it is not 1."""
IDS = [f"{loop.__name__}-{k}" for k, (loop, _, _) in enumerate(EXAMPLES)]


@pytest.mark.parametrize(("loop", "by", "given"), EXAMPLES, ids=IDS)
def test_derivatives_are_those_of_the_values(loop, by, given):
    """Against central differences, one entry of every cell at a time."""
    many = VALUES.get(loop, 1)
    slopes = loop(*given)[many:]
    for place, k in enumerate(by):
        for entry in np.ndindex(given[k].shape[1:]):
            step = np.zeros_like(given[k])
            step[:, *entry] = 1e-5 * np.abs(given[k][:, *entry]) + 1e-7
            ends = [loop(*given[:k], given[k] + sign * step, *given[k + 1 :])[:many] for sign in (1, -1)]
            for value, (high, low) in enumerate(zip(*ends, strict=True)):
                found = slopes[value * len(by) + place][:, *entry]
                np.testing.assert_allclose(found, (high - low) / (2 * step[:, *entry]), rtol=1e-5, atol=1e-6)


def test_loops_leave_their_arguments_alone():
    """They may be constants of compiled code, which numba would not keep them from writing to."""
    for loop, _, given in EXAMPLES:
        for entry in given:
            entry.flags.writeable = False
        try:
            loop(*given)
        finally:
            for entry in given:
                entry.flags.writeable = True


def test_a_loop_that_closes_over_something_is_refused():
    def scaled(z):
        return z * factor

    factor, z = 3.0, pt.vector("z")
    with pytest.raises(TypeError, match="no loop of a module"):
        pytensor.function([z], Kernel(scaled, ())(z), mode="NUMBA")


@pytest.mark.slow
def test_numba_says_what_python_says():
    inputs = [[pt.tensor(dtype="float64", shape=entry.shape) for entry in given] for _, _, given in EXAMPLES]
    outputs = [
        found for (loop, by, _), given in zip(EXAMPLES, inputs, strict=True) for found in Kernel(loop, by, VALUES.get(loop, 1))(*given)
    ]
    function = pytensor.function([entry for given in inputs for entry in given], outputs, mode="NUMBA")
    wanted = [found for loop, _, given in EXAMPLES for found in loop(*given)]
    for one, other in zip(function(*[entry for _, _, given in EXAMPLES for entry in given]), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kept", mostly_slow([True, False], 0))
def test_arrays_of_any_layout_go_by_pointer(kept):
    """Transposed, every other, without entries; with and without a directory for what was compiled."""
    z, p, n = pt.matrix("z"), pt.matrix("p"), pt.vector("n")
    values = Kernel(counts.counts_convolution, (2,))(z.T, n[::2], p[::-1], np.array(9), NOISE[0])
    with pytensor.config.change_flags(numba__cache=kept):
        function = pytensor.function([z, n, p], values, mode="NUMBA")
        for cells in 2, 0:
            given = released(P)[:cells].T, np.repeat(N[:cells], 2), P[:cells][::-1]
            wanted = counts.counts_convolution(given[0].T, given[1][::2], given[2][::-1], np.array(9), NOISE[0])
            for one, other in zip(function(*given), wanted, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-9)


PARTS = ()
"""What the loop below calls, as Kernel wants to know of the module of a loop."""


def failing(z, length):
    """As many ones as it is told, or an exception."""
    many = int(length[()])
    if many < 0:
        raise ValueError
    return np.ones(many)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("length", "found"), [(2, [1, 1]), (3, [np.nan, np.nan]), (-1, [np.nan, np.nan])])
def test_a_loop_that_fails_leaves_no_numbers(length, found):
    z = pt.vector("z")
    function = pytensor.function([z], Kernel(failing, ())(z, np.array(length)), mode="NUMBA")
    np.testing.assert_array_equal(function(np.zeros(2)), found)


@pytest.mark.slow
def test_the_next_process_reads_a_loop_from_disk(tmp_path):
    program = """
import numpy as np, pytensor, pytensor.tensor as pt
from numba.core import event
from pymc_dp.laws import sums
from pymc_dp.laws.kernel import Kernel

rate = pt.vector("rate", shape=(2,))
value = Kernel(sums.normal_plus_laplace, (1, 2))(np.array([3.0, 1.0]), rate, np.ones(2), np.array(0.7))
with event.install_recorder("numba:compile") as recorded:
    print(*pytensor.function([rate], value, mode="NUMBA")(np.array([2.0, 4.0])))
print(sum(event.data["dispatcher"].py_func.__module__.startswith("pymc_dp") for _, event in recorded.buffer if event.is_start))
"""
    environment = os.environ | {"PYTENSOR_FLAGS": f"base_compiledir={tmp_path}"}
    runs = [subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True) for _ in range(2)]
    (first, compiled), (again, none) = (run.stdout.rsplit("\n", 2)[:2] for run in runs)
    assert first == again
    assert int(compiled) > 0 == int(none)


def test_two_sums_have_the_same_density_whichever_is_integrated_first():
    """Far out, too, where the noise carries what is missing of one sum or of both; and without any variance."""
    z, mean_1, mean_2, variance_1, covariance, variance_2 = FAR
    exchanged = z[:, ::-1], mean_2, mean_1, variance_2, covariance, variance_1
    ends = [sums.pair_plus_laplace(*given, np.array(0.4))[0] for given in (FAR, exchanged)]
    np.testing.assert_allclose(*ends, rtol=1e-6)
    covariance = 0.9999991917 * np.sqrt(26733.8852901 * 1593516.5762546)
    columns = (np.array([each]) for each in (0.0, 0.0, 26733.8852901, covariance, 1593516.5762546))
    nearly = np.array([[-6512.42179515, 83562.17737635]]), *columns
    [value, by_1, *_] = sums.pair_plus_laplace(*nearly, np.array(0.0583903198))
    [moved, *_] = sums.pair_plus_laplace(nearly[0], np.array([1e-4]), *nearly[2:], np.array(0.0583903198))
    assert (moved - value) / 1e-4 == pytest.approx(by_1, rel=1e-3)  # correlated but for a millionth
    none = [np.zeros(5)] * 5
    [value, *slopes] = sums.pair_plus_laplace(z, *none, np.array(0.4))
    np.testing.assert_allclose(value, -np.abs(z).sum(axis=1) / 0.4 - 2 * np.log(0.8), rtol=1e-6)
    assert np.isfinite(slopes).all()


SAME = pytest.mark.parametrize(
    ("variances", "z"),
    [((4.0, 23_600.0), (-4.4, 340.0)), ((170.0, 3.6e4), (15.0, 41.0)), ((9.0, 8.0), (6.0, 2.0)), ((9.0, 9.0), (-20.0, -16.0))],
)


@SAME
@pytest.mark.parametrize("b", [0.15, 1.2, 6.0])
@pytest.mark.parametrize("correlation", [1 - 1e-9, 1.0, -1.0])
def test_two_sums_that_say_the_same_but_for_a_billionth(variances, z, b, correlation):
    """One normal x behind both, each plus Laplace noise: an integral over x, by trapezoids."""
    roots, sign = np.sqrt(variances), np.sign(correlation)
    x = np.linspace(-12, 12, 2_000_001)
    terms = -0.5 * x**2 - abs(z[0] - roots[0] * x) / b - abs(z[1] - sign * roots[1] * x) / b
    brute = terms.max() + np.log(np.trapezoid(np.exp(terms - terms.max()), x)) - 0.5 * np.log(2 * np.pi) - 2 * np.log(2 * b)
    columns = (np.array([each]) for each in (0.0, 0.0, variances[0], correlation * roots.prod(), variances[1]))
    [found] = sums.pair_plus_laplace(np.array([z]), *columns, np.array(b))[0]
    assert found == pytest.approx(brute, abs=1e-3 if abs(correlation) < 1 else 1e-5)


@SAME
@pytest.mark.parametrize("b", [0.15, 6.0, 300.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_derivatives_of_two_sums_that_say_the_same(variances, z, b, sign):
    """By their means, and along what keeps them so: one standard deviation, or both."""

    def at(mean_1, mean_2, stretched):
        roots = np.sqrt(variances) * stretched
        given = (np.array([float(each)]) for each in (mean_1, mean_2, roots[0] ** 2, sign * roots.prod(), roots[1] ** 2))
        return np.concatenate(sums.pair_plus_laplace(np.array([z]), *given, np.array(b)))

    roots, step = np.sqrt(variances), 1e-5
    _, by_1, by_2, by_11, by_21, by_22 = at(0.0, 0.0, np.ones(2))
    covariance = sign * roots.prod()
    expected = [by_1, by_2, 2 * by_11 * variances[0] + by_21 * covariance, 2 * by_22 * variances[1] + by_21 * covariance]
    ways = [(step, 0, [0, 0]), (0, step, [0, 0]), (0, 0, [step, 0]), (0, 0, [0, step])]
    found = [(at(a, b, 1 + np.array(c))[0] - at(-a, -b, 1 - np.array(c))[0]) / (2 * step) for a, b, c in ways]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("times", [1e6, 3e8, 1e10])
@pytest.mark.parametrize("sign", [1, -1])
def test_two_sums_that_are_far_wider_than_their_noise(times, sign):
    """What is left of the normal law then is its height where the sums were released: the noise alone is integrated."""
    sd, b, x, apart = times * 0.2, 0.2, 0.7, 0.9
    z = [x * sd, sign * (x * sd + apart * b)]
    columns = (np.array([each]) for each in (0.0, 0.0, sd**2, sign * sd**2, sd**2))
    value, by_1, by_2, by_11, by_21, by_22 = np.concatenate(sums.pair_plus_laplace(np.array([z]), *columns, np.array(b)))
    height = -0.5 * x**2 - 0.5 * np.log(2 * np.pi)
    assert value == pytest.approx(height + np.log((1 + apart) / times) - apart - 2 * np.log(2 * b), abs=1e-5)
    assert (by_1 + sign * by_2) * sd == pytest.approx(x, abs=1e-3 * times * 1e-8 + 1e-4)
    assert 2 * (by_11 + sign * by_21 + by_22) * sd**2 == pytest.approx(x**2 - 1, abs=1e-2)


def test_one_sum_that_is_far_wider_than_what_it_tells():
    """The first fixes x, whose law and whose other sum are read there."""
    columns = (np.array([each]) for each in (0.0, 0.0, 1e12, 1e6, 1.0))
    value, by_1, by_2, *_ = np.concatenate(sums.pair_plus_laplace(np.array([[0.5e6, 0.2]]), *columns, np.array(1.0)))
    assert value == pytest.approx(np.log(2e-6) - 0.125 - 0.5 * np.log(2 * np.pi) - 0.3 - 2 * np.log(2), abs=1e-5)
    assert by_1 * 1e6 == pytest.approx(0.5 + 1, abs=1e-4)
    assert by_2 == pytest.approx(-1, abs=1e-4)


@pytest.mark.parametrize("noise", [0.1, 10.0, 1000.0])
def test_derivatives_of_latent_sums_of_which_others_tell_one(noise):
    """Votes of all parties add up: their covariance has no inverse, and its last pivot is rounding. Along what keeps it so."""
    rng, lower, trials, many = np.random.default_rng(5), np.tril_indices(3), 20, 100
    p, n, latent = rng.dirichlet([2, 2, 2], many), rng.uniform(20, 300, many), rng.normal(size=(many, 3))
    z = n[:, None] * trials * p + rng.laplace(size=(many, 3)) * noise / np.sqrt(2) + 2 * noise * rng.normal(size=(many, 3))
    way = rng.normal(size=(many, 3))
    way -= way.mean(axis=1, keepdims=True)
    way *= (p.min(axis=1) / abs(way).max(axis=1))[:, None]
    basis = np.c_[np.zeros(3), np.eye(3)]

    def at(t):
        q = p + t * way
        covariance = trials * (q[:, :, None] * np.eye(3) - q[:, :, None] * q[:, None])
        return central_limit.latent_sums(z, n, trials * q, covariance[:, *lower], latent, basis, np.array(noise / 2**0.5), np.array(noise))

    _, _, by_mean, by_covariance, _ = at(0.0)
    moved = trials * (way[:, :, None] * np.eye(3) - way[:, :, None] * p[:, None] - p[:, :, None] * way[:, None])
    said = (by_mean * trials * way).sum(axis=1) + (by_covariance * moved[:, *lower]).sum(axis=1)
    steps = (1e-4, 1e-5, 1e-6)
    off = [abs((at(h)[0] - at(-h)[0]) / (2 * h) - said) / (1 + abs(said)) for h in steps]
    assert np.min(off, axis=0).max() < 1e-5


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "NUMBA"])
def test_the_derivatives_of_shares(mode):
    """Against central differences of a weighted sum; extreme shares among them."""
    at, weight = np.array([[0.0, 0.3, -2.0], [3.0, -4.0, 1.0], [30.0, 2.0, -40.0]]), RNG.normal(size=(3, 4))
    near, like, value = np.concatenate([NEAR, NEAR[1:]]), np.zeros((3, 4)), pt.matrix("value", shape=(3, 3))
    kernel = Kernel(shares.shares, (2,), 0, shares.shares_back)
    [slope] = pytensor.grad((weight * kernel(value, near, like)).sum(), [value])
    found = pytensor.function([value], slope, mode=mode)(at)
    for entry in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[entry] = 1e-5
        high, low = (shares.shares(at + sign * step, near, like) for sign in (1, -1))
        np.testing.assert_allclose(found[entry], (weight * (high - low)).sum() / 2e-5, atol=1e-9)
    np.testing.assert_allclose(shares.shares(at, near, like).sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("pickler", [pickle, cloudpickle])
def test_a_kernel_comes_back_from_a_pickle(pickler):
    for kernel in Kernel(counts.rate_window, (1,)), Kernel(shares.shares, (2,), 0, shares.shares_back):
        assert pickle.loads(pickler.dumps(kernel)) == kernel


def test_second_derivatives_are_refused():
    z, rate = pt.constant([3.0]), pt.vector("rate", shape=(1,))
    slope = pytensor.grad(Kernel(counts.rate_window, (1,))(z, rate, np.array(9), NOISE[0])[0].sum(), rate)
    with pytest.raises(NotImplementedError, match="first derivatives only"):
        pytensor.grad(slope.sum(), rate)
