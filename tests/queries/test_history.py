"""Questions answered: what a history costs, what it can tell, and how sure it is. Noisy numbers only, so nothing here is private."""

import tracemalloc
from fractions import Fraction
from itertools import product
from math import factorial, prod
from time import perf_counter

import numpy as np
import pytest

from pymc_dp.privacy.accounting import Cost, Refusal, exact_epsilon
from pymc_dp.privacy.mechanisms import Laplace
from pymc_dp.queries import basis, blue, convolution
from pymc_dp.queries import history as rooms
from pymc_dp.queries.history import Answered, History, divided
from pymc_dp.queries.language import Question

SIZES = {"age": 6, "sex": 3, "town": 4}


def question(columns, weights, divisor=1):
    weights = np.asarray(weights, dtype=np.int64)
    return Question(f"{'+'.join(columns)}:{weights.ravel().tolist()}/{divisor}", tuple(columns), weights, divisor)


def answered(asked, epsilon, neighbours, noisy=0):
    epsilon = Fraction(epsilon)
    scale = Laplace().calibrate(asked.sensitivity(neighbours), 1, Cost(epsilon))
    return Answered(asked, epsilon, scale, noisy)


def of_rows(rows, epsilons, neighbours="add_remove", noisy=None, records=None):
    """A history about one column, of rows (m, cells)."""
    noisy = [0] * len(rows) if noisy is None else noisy
    return History.of(
        neighbours, [answered(question(("x",), row), *rest[:1], neighbours, rest[1]) for row, *rest in zip(rows, epsilons, noisy)], records
    )


def at_random(rng, kind):
    """A question about some columns: a range, any small weights, or a product."""
    columns = [name for name in SIZES if rng.random() < 0.5]
    shape = tuple(SIZES[name] for name in columns)
    weights = np.ones(shape, dtype=np.int64)
    if kind == "range":
        for axis, size in enumerate(shape):
            low, high = sorted(rng.integers(0, size + 1, 2))
            inside = (np.arange(size) >= low) & (np.arange(size) < high)
            weights = weights * inside.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    else:
        weights = rng.integers(-3, 4, shape)
    return question(columns, weights)


def by_brute_force(asked, epsilons, neighbours):
    """The cost over all cells, or all pairs of cells, of the domain as it is."""
    worst = Fraction(0)
    cells = list(product(*map(range, SIZES.values())))
    given = []
    for one, epsilon in zip(asked, epsilons):
        each = [int(one.weights[tuple(cell[list(SIZES).index(name)] for name in one.columns)]) for cell in cells]
        given.append((each, epsilon / one.sensitivity(neighbours)))
    for i in range(len(cells)):
        for j in range(len(cells)) if neighbours == "replace" else [None]:
            worst = max(worst, sum(abs(each[i] - (0 if j is None else each[j])) * rate for each, rate in given))
    return worst


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("kind", ["range", "weights"])
def test_the_cost_is_that_of_the_dearest_record(neighbours, kind):
    """Exactly, after every answer, against all (pairs of) cells of the domain without atoms."""
    rng = np.random.default_rng(1)
    less = 0
    for _ in range(6):
        history, asked, epsilons = History.empty(neighbours, 5 if neighbours == "replace" else None), [], []
        while len(asked) < 7:
            one, epsilon = at_random(rng, kind), Fraction(int(rng.integers(1, 50)), 100)
            if one.sensitivity(neighbours) == 0:
                continue
            asked, epsilons = [*asked, one], [*epsilons, epsilon]
            expected = by_brute_force(asked, epsilons, neighbours) if len(asked) % 3 == 1 else None
            history = history.append(answered(one, epsilon, neighbours))
            assert expected is None or history.cost == expected
        assert np.unique(history.rows, axis=1).shape == history.rows.shape, "atoms differ"
        assert history.cells.sum() == prod(history.sizes) == len(history.labels)
        less += history.cost < sum(epsilons)
    assert less


def test_the_cost_of_six_questions_about_four_cells():
    """.65 where the epsilons add up to .85 (docs/theory.md); .55 of a record exchanged at these rates."""
    rows = [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1], [1, 1, 1, 1], [0, 0, 2, -1]]
    epsilons = [Fraction(k, 100) for k in (10, 20, 5, 10, 30, 10)]
    history = of_rows(rows, epsilons)
    assert history.cost == Fraction(65, 100)
    assert sum(epsilons) == Fraction(85, 100)
    exchanged = of_rows(rows[:4] + rows[5:], [*epsilons[:4], Fraction(15, 100)], "replace", records=9)
    assert exchanged.cost == Fraction(55, 100), "range 3 instead of largest weight 2, so at 3/2 of the epsilon"


def test_disjoint_questions_cost_once_or_twice():
    cells = np.eye(10, dtype=int)
    assert of_rows(cells, [Fraction(1, 10)] * 10).cost == Fraction(1, 10)
    assert of_rows(cells, [Fraction(1, 10)] * 10, "replace", records=3).cost == Fraction(2, 10)
    assert of_rows([[1, 0]] * 10, [Fraction(1, 10)] * 10).cost == 1, "ten tenths are one"


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_costs_that_fit_no_common_tick_are_rounded_up_a_little(neighbours):
    rng = np.random.default_rng(2)
    history, asked, epsilons = History.empty(neighbours, 5 if neighbours == "replace" else None), [], []
    for _ in range(8):
        one, epsilon = at_random(rng, "weights"), Fraction(int(rng.integers(10**13, 2 * 10**14)), 10**15 + int(rng.integers(1000)))
        if one.sensitivity(neighbours) == 0:
            continue
        asked, epsilons = [*asked, one], [*epsilons, epsilon]
        history = history.append(answered(one, epsilon, neighbours))
    expected = by_brute_force(asked, epsilons, neighbours)
    assert expected < history.cost < expected + Fraction(1, 10**14)


def test_many_atoms_under_replace_are_bounded(monkeypatch):
    rng = np.random.default_rng(3)
    monkeypatch.setattr(rooms, "MOST_PAIRS", 4)
    for _ in range(5):
        asked = [one for one in (at_random(rng, "weights") for _ in range(6)) if one.sensitivity("replace")]
        epsilons = [Fraction(int(rng.integers(1, 50)), 100) for _ in asked]
        history = History.empty("replace", 5)
        for one, epsilon in zip(asked, epsilons):
            history = history.append(answered(one, epsilon, "replace"))
        assert by_brute_force(asked, epsilons, "replace") <= history.cost <= sum(epsilons)
    assert of_rows(np.eye(10, dtype=int), [Fraction(1, 10)] * 10, "replace", records=3).cost == Fraction(2, 10)


def test_what_is_no_history_is_refused():
    asked = question(("x",), [1, 0, 0])
    wide = of_rows([[0] * 5000 + [1]], [1])
    for call in (
        lambda: History.empty("replace"),
        lambda: History.empty("add_remove", 5),
        lambda: divided(wide, question(("y",), [0] * 4000 + [1])),
        lambda: divided(History.empty("add_remove"), question(("a",), [2**53, 0])),
    ):
        with pytest.raises(Refusal, match=r"\. "):
            call()
    history = History.empty("replace", 5)
    for bad in (Answered(asked, Fraction(1), 0.9, 0), Answered(question((), 1), Fraction(1), 1.0, 0)):
        with pytest.raises(ValueError, match="noise"):
            history.append(bad)
    with pytest.raises(ValueError, match="cells"):
        history.append(answered(asked, 1, "replace")).append(answered(question(("x",), [1, 0]), 1, "replace"))


def test_equal_questions_share_a_row_and_older_histories_stay():
    asked, other = question(("age",), [1, 1, 0, 0, 0, 0]), question(("sex",), [0, 1, 0])
    first = History.of("add_remove", [answered(asked, "1/2", "add_remove", 4)])
    second = first.append(answered(asked, "1/3", "add_remove", 5)).append(answered(other, "1/3", "add_remove", 9))
    assert len(first) == 1
    assert first.rows.shape == (1, 2)
    assert second.places == (0, 0, 1)
    assert second.rows.shape == (2, 4)
    assert second.noisy.tolist() == [4, 5, 9]
    assert sorted(map(tuple, second.matrix.T)) == [(0, 0, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1)]
    assert sorted(second.cells) == [2, 4, 4, 8]


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_a_thousand_ranges(neighbours):
    """The cost of one more question in some milliseconds; an allowance for busy machines."""
    rng = np.random.default_rng(4)

    def ranges():
        low = int(rng.integers(0, 299))
        return question(("age",), (np.arange(300) >= low) & (np.arange(300) < rng.integers(low + 1, 300)))

    history = History.of(
        neighbours, [answered(ranges(), "1/1000", neighbours) for _ in range(1000)], 9 if neighbours == "replace" else None
    )
    times = []
    for _ in range(9):
        one, start = answered(ranges(), "1/100", neighbours), perf_counter()
        assert history.append(one).cost >= history.cost
        times.append(perf_counter() - start)
    assert np.median(times) < 25e-3, times


# ---------- the best linear unbiased estimate
def noise(rng, scale, size=None):
    """Discrete Laplace noise, simulated."""
    failure = -np.expm1(-1 / np.asarray(scale))
    return rng.geometric(failure, size) - rng.geometric(failure, size)


def exactly_ranked(rows):
    """The rank of an integer matrix, in fractions."""
    table, rank = [[Fraction(int(value)) for value in row] for row in rows], 0
    for column in range(len(table[0]) if table else 0):
        pivot = next((i for i in range(rank, len(table)) if table[i][column]), None)
        if pivot is not None:
            table[rank], table[pivot] = table[pivot], table[rank]
            for i in range(rank + 1, len(table)):
                factor = table[i][column] / table[rank][column]
                table[i] = [a - factor * b for a, b in zip(table[i], table[rank])]
            rank += 1
    return rank


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_the_estimate_is_the_best_linear_unbiased_one(neighbours):
    """Against the pseudo-inverse of the formula, whether or not all is determined; grown answer by answer and all at once."""
    rng = np.random.default_rng(5)
    known, seen = neighbours == "replace", {True: 0, False: 0}
    for trial in range(60):
        cells = int(rng.integers(2, 8))
        x = rng.integers(0, 30, cells)
        history = grown = History.empty(neighbours, int(x.sum()) if known else None)
        for _ in range(int(rng.integers(1, 9))):
            asked = question(("x",), rng.integers(-2, 4, cells) if trial % 2 else rng.integers(0, 2, cells))
            if asked.sensitivity(neighbours):
                one = answered(asked, Fraction(int(rng.integers(5, 200)), 100), neighbours)
                one = Answered(asked, one.epsilon, one.scale, int(asked.weights @ x + noise(rng, one.scale)))
                for _ in range(int(rng.integers(1, 3))):
                    history, grown = history.append(one), grown.append(one)
                basis.basis_of(grown)
        H = np.array([one.question.weights for one in history.answered]).reshape(len(history), cells)
        Q = rng.integers(-1, 3, len(H)) @ H + known * rng.integers(0, 2) if trial % 3 and len(H) else rng.integers(0, 3, cells)
        whole = np.vstack([np.ones((int(known), cells), int), H])
        determined = exactly_ranked([*whole, Q]) == exactly_ranked(whole)
        found, other = (blue.estimate(one, question(("x",), Q, 4)) for one in (history, grown))
        assert (found is not None) == (other is not None) == determined
        seen[determined] += 1
        if found is None or other is None:
            continue
        A = 4 * found.coefficients
        np.testing.assert_allclose(other.coefficients, found.coefficients, rtol=0, atol=1e-9)
        assert other.value == pytest.approx(found.value, abs=1e-8)
        free, target = (H - H[:, :1], Q - Q[0]) if known else (H, Q)  # what is left once a row and the public one agree on a cell
        np.testing.assert_allclose(A @ free, target, atol=1e-10)
        W = np.diag(1 / convolution.variances(history.scales))
        best = target @ np.linalg.pinv(free.T @ W @ free, rcond=1e-11) @ free.T @ W if len(H) else np.zeros(0)
        np.testing.assert_allclose(A, best, atol=1e-6)
        assert 16 * found.variance == pytest.approx((best**2 / np.diag(W)).sum(), rel=1e-6, abs=1e-12)
        if not question(("x",), Q).sensitivity(neighbours):
            assert found.value == pytest.approx(Q[0] * x.sum() / 4)
            assert blue.interval_about(found, 0.95).length == pytest.approx(0, abs=1e-9)
    assert min(seen.values()) > 5


def test_precise_answers_among_noisy_ones_count():
    """Variances 18 orders of magnitude apart, in every order."""
    rows, scales = [[1, 0], [0, 1], [1, 1], [1, 0]], [1e6, 0.05, 1e5, 0.05]
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]):
        history = History.empty("add_remove")
        for k in order:
            history = history.append(Answered(question(("x",), rows[k]), Fraction(20) if scales[k] < 1 else Fraction(1), scales[k], k + 5))
            basis.basis_of(history)
        found = blue.estimate(history, question(("x",), [1, 1]))
        assert found.value == pytest.approx(8 + 6, abs=1e-6)
        assert found.coefficients @ history.matrix == pytest.approx([1, 1], abs=1e-12)


def test_what_rounding_cannot_decide_is_decided_in_integers():
    """Rows that differ from dependent ones by one in ten million."""
    rows = [[10**7, 0, 0, 1, 0], [10**7, 0, 0, 2, 0], [0, 1, 0, 0, 0]]
    assert basis._rank(np.array([[1, 2], [2, 4]])) == 1
    for neighbours, grow in product(["add_remove", "replace"], [False, True]):
        history = History.empty(neighbours, 7 if neighbours == "replace" else None)
        for row in rows:
            history = history.append(answered(question(("x",), row), 1, neighbours))
            if grow:
                basis.basis_of(history)
        assert len(basis.basis_of(history).rows) == 3 + (neighbours == "replace")
        assert blue.estimate(history, question(("x",), [10**7, 0, 0, 0, 0])) is not None
        assert blue.estimate(history, question(("x",), [10**7, 0, 1, 1, 0])) is None


def pmf(scale, half):
    q, k = np.exp(-1 / scale), np.arange(-half, half + 1)
    return (1 - q) / (1 + q) * q ** np.abs(k)


def on_integers(law, half):
    """The mass of a law on a lattice of integers at -half, ..., half."""
    assert law.slack < 1e-12
    middle, every = len(law.mass) // 2, round(1 / law.step)
    assert every == pytest.approx(1 / law.step, rel=1e-12)
    return law.mass[middle - every * half : middle + every * half + 1 : every]


def test_laws_of_sums_in_closed_form():
    """Distinct scales: partial fractions of prod 1 / (1 + v u), the discrete form of Lemma 4.1. Equal ones: repeated sums."""
    scales = np.array([3.0, 5.0, 2.0, 7.0])
    v = convolution.variances(scales)
    shares = [np.prod([v[k] / (v[k] - v[j]) for j in range(4) if j != k]) for k in range(4)]
    mixture = sum(share * pmf(scale, 60) for share, scale in zip(shares, scales))
    np.testing.assert_allclose(on_integers(convolution.convolved(np.array([1, -1, 1, -1.0]), scales), 60), mixture, atol=1e-13)
    equal = pmf(1.5, 80)
    for _ in range(3):
        equal = np.convolve(equal, pmf(1.5, 80))
    law = convolution.convolved(np.full(4, 0.5), np.full(4, 1.5))
    assert law.step == 0.5
    np.testing.assert_allclose(law.mass[len(law.mass) // 2 - 60 : len(law.mass) // 2 + 61], equal[260:381], atol=1e-14)
    # Equation 23 of XX12 for m equal continuous noises of scale b, with scales so large that nothing is discrete.
    m, b = 3, 4000.0
    found, z = convolution.convolved(np.full(m, np.sqrt(2) / b), np.full(m, b)), np.array([0.2, 1.0, 4.0, 20.0])
    each = [factorial(m - 1 + j) / (factorial(j) * factorial(m - 1 - j) * 2**j) for j in range(m)]
    x = np.arange(0, 100, 1e-4) / np.sqrt(2)
    density = np.exp(-x) / (factorial(m - 1) * 2**m) * sum(one * x ** (m - 1 - j) for j, one in enumerate(each))
    reached = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2)]) * 2e-4 / np.sqrt(2)
    said = [found.within(at) for at in z]
    assert 0 < found.slack < 0.02
    assert (said <= np.interp(z, np.arange(0, 100, 1e-4), reached) + 3e-5).all()
    assert (said >= np.interp(z - 2 * found.slack, np.arange(0, 100, 1e-4), reached) - 3e-5).all()


def test_tails_are_right():
    """1 - 1e-9 of one noise, and of a sum with coefficients that share no lattice, whose tail is that of its largest noise."""
    assert convolution.convolved(np.ones(1), np.array([10.0])).distance(1 - 1e-9) == next(
        h for h in range(1000) if 2 * np.exp(-(h + 1) / 10) / (1 + np.exp(-0.1)) <= 1e-9
    )
    a, s = np.array([1.0, np.sqrt(2) / 10, np.pi / 100]), np.array([50.0, 40.0, 90.0])
    law, b = convolution.convolved(a, s), 50.0
    others = [1 / (1 - v * (np.cosh(size / b) - 1)) for size, v in zip(a[1:], convolution.variances(s[1:]))]  # E exp(noise / b)
    for far in (300.0, 900.0):  # P(first + rest > far) is E P(first > far - rest), as long as the rest stays below
        assert (1 - law.within(far)) / (np.exp(-far / b) * np.prod(others)) == pytest.approx(1, rel=0.02)


def test_sums_of_narrow_noises_are_not_widened():
    """Six noises of scale .3: Algorithm 2 of the paper has variance 1.26 for 1.08 where noise is continuous (E14)."""
    for coefficients in (np.ones(6), np.sqrt([1.0, 2, 3, 5, 7, 11]), np.array([1, 1e-3, 1e-9, 1e-13, np.sqrt(2), 0])):
        law = convolution.convolved(coefficients, np.full(6, 0.3))
        at = (np.arange(len(law.mass)) - len(law.mass) // 2) * law.step
        assert law.mass.sum() == pytest.approx(1, abs=1e-9)
        assert (at**2 * law.mass).sum() == pytest.approx((coefficients**2).sum() * convolution.variances(0.3), rel=1e-4)
    near = convolution.convolved(np.append(np.ones(3), np.full(500, 1e-14)), np.full(503, 4.0))
    assert 0 < near.slack < 1e-10, "coefficients of nearly 0 are none, but for where the last atom is"


def covered(coefficients, scales, distance):
    """P(abs(sum_k A_k noise_k) <= distance) to 1e-9 and over all values of all noises but the one with most, which is in closed form."""
    order = np.argsort(scales)
    *small, last = zip(np.abs(coefficients)[order], scales[order])
    at, mass = np.zeros(1), np.ones(1)
    for size, scale in small:
        half = int(30 * scale) + 2
        at = (at[:, None] + size * np.arange(-half, half + 1)).ravel()
        mass = (mass[:, None] * pmf(scale, half)).ravel()
        at, mass = at[mass > 1e-16], mass[mass > 1e-16]

    def cdf(k):
        tail = np.exp(-np.abs(np.where(k < 0, k, k + 1.0)) / last[1]) / (1 + np.exp(-1 / last[1]))
        return np.where(k < 0, tail, 1 - tail)

    low, high = np.ceil((-distance - at) / last[0] - 1e-9), np.floor((distance - at) / last[0] + 1e-9)
    return float(mass @ np.where(high >= low, cdf(high) - cdf(low - 1), 0))


def test_no_interval_is_short():
    """Of 300 histories, with precise answers among noisy ones: what is covered, exactly, and how far from the least it is."""
    rng, asked, longer = np.random.default_rng(11), question(("x",), [1, 0]), []
    rows = [asked, asked, question(("x",), [1, 1]), question(("x",), [0, 1])]
    for trial in range(300):
        history = History.empty("add_remove")
        if trial < 150:  # one question, a few times; large noises only among at most one other of some size
            scales = [*rng.choice([0.05, 0.12, 0.3, 0.5, 0.9, 2.0], rng.integers(0, 3)), rng.choice([0.2, 1.7, 5.0, 20, 1e3, 1e5, 1e9])]
            given = [(asked, scale) for scale in scales]
        else:
            given = list(zip(rows[1:], np.append(rng.uniform(0.05, 0.8, 2), 10 ** rng.uniform(-1, 6))))
        for one, scale in given:
            history = history.append(Answered(one, Fraction(25), float(scale), 0))
        found = blue.estimate(history, asked)
        for confidence in (0.5, *rng.uniform(0.5, 0.99, 3), 0.999, 1 - 1e-6):
            distance = found.law.distance(confidence)
            assert covered(found.coefficients, found.scales, distance) >= confidence - 1e-9
            assert covered(found.coefficients, found.scales, distance) >= found.law.within(distance) - 1e-9 >= confidence - 2e-9
            if distance > 1e-9:
                assert covered(found.coefficients, found.scales, distance - 2.5 * found.law.slack - 1e-6 * distance) < confidence + 1e-9
                longer.append(found.law.slack / max(distance, 1))
    assert max(longer) < 0.03


def test_simulated_laws_agree_with_convolved_ones():
    """Algorithm 1 against Algorithm 2. Its mean squared error is (1 - sum p^2) / draws (Corollary 4.1): over 200 simulations within
    5.5 standard errors, a false alarm of 1e-6 at most; twice the draws would be 40 away."""
    rng = np.random.default_rng(6)
    coefficients, scales, draws = np.array([1.0, 2.0, -3.0, 1.0]), np.array([3.0, 1.0, 2.0, 6.0]), 2000
    law, errors = convolution.convolved(coefficients, scales), []
    for _ in range(200):
        points = (noise(rng, scales, (draws, 4)) @ coefficients).astype(int) + len(law.mass) // 2
        errors.append(((law.mass - np.bincount(points, minlength=len(law.mass)) / draws) ** 2).sum())
    expected = (1 - (law.mass**2).sum()) / draws
    assert abs(np.mean(errors) - expected) < 5.5 * np.std(errors) / np.sqrt(200)
    smooth = rng.normal(size=30)
    half = convolution.convolved(smooth, np.full(30, 4.0)).distance(0.9)
    near = (np.abs(noise(rng, np.full(30, 4.0), (200_000, 30)) @ smooth) <= half).mean()
    assert near == pytest.approx(0.9, abs=5 * 0.3 / np.sqrt(200_000) + 1e-4)


def test_intervals_and_probabilities_count_what_is_in_them():
    """One answer y = 7 with noise of scale 2: the answer is 7 less an integer with probability proportional to q^abs."""
    history = History.of("add_remove", [Answered(question(("x",), [1, 0]), Fraction(1), 2.0, 7)])
    found = blue.estimate(history, question(("x",), [2, 0], 3))  # in units of 2/3
    k, mass = np.arange(-200, 201), pmf(2.0, 200)
    answers = (7 - k) * 2 / 3
    said = blue.interval_about(found, 0.9)
    half = next(h for h in range(100) if mass[np.abs(k) <= h].sum() >= 0.9)
    assert (said.lower, said.upper, said.kind) == (pytest.approx((7 - half) * 2 / 3), pytest.approx((7 + half) * 2 / 3), "fixed question")
    for lower, upper in ((0, 10), (14 / 3, 14 / 3), (4.7, 5.3), (2, 14 / 3), (-5, -4)):
        inside = mass[(answers >= lower - 1e-9) & (answers <= upper + 1e-9)].sum()
        between = blue.probability_above(found, lower - 1e-6) - blue.probability_above(found, upper)
        assert between == pytest.approx(inside, abs=1e-12)
    for value in (-3, 0, 2 / 3, 14 / 3, 5, 16 / 3, 9):
        assert blue.probability_above(found, value) == pytest.approx(mass[answers > value + 1e-9].sum(), abs=1e-12)
    for bad in (lambda: blue.interval_about(found, 1.0), lambda: blue.interval_about(found, 1 - 1e-15)):
        with pytest.raises(Refusal, match=r"\. "):
            bad()


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_fixed_question_intervals_hold_what_they_say(neighbours):
    """4000 histories each: what is covered is what the law says, within 5 standard errors (a false alarm of 1e-6), and at least .95."""
    rng = np.random.default_rng(7)
    x, rows = np.array([10, 20, 15, 30]), [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1], [1, 1, 1, 0], [0, 0, 2, -1]]
    scales = np.array([3.0, 0.7, 5.0, 2.0, 9.0, 4.0])
    asked = question(("x",), [1, 1, 0, 1], 2)

    def history(y):
        given = zip(rows, scales, y)
        return History.of(
            neighbours, [Answered(question(("x",), row), Fraction(20), scale, int(one)) for row, scale, one in given],
            int(x.sum()) if neighbours == "replace" else None,
        )  # fmt: skip

    exact_answer = x @ asked.weights / 2
    first = blue.estimate(history(np.array(rows) @ x), asked)
    assert first.value == pytest.approx(exact_answer)
    noises = np.stack([noise(rng, scale, 4000) for scale in scales], axis=1)
    half = first.law.distance(0.95)
    errors = noises @ first.coefficients
    covered, said = np.mean(np.abs(errors) <= half + 1e-9), first.law.within(half)
    assert said >= 0.95 - 1e-9
    assert abs(covered - said) < 5 * np.sqrt(0.95 * 0.05 / 4000)
    for y in noises[:20] + np.array(rows) @ x:  # and it is these intervals that are said
        found = blue.estimate(history(y), asked)
        interval = blue.interval_about(found, 0.95)
        assert (interval.lower <= exact_answer <= interval.upper) == (abs(found.value - exact_answer) <= half)


def test_the_least_epsilon_of_a_fresh_answer():
    """The least at which the answer +- half the length is right often enough; a little below (2 S / L) log(1 / delta)."""
    for weights, divisor, length, confidence in (
        ([1, 0], 1, 10, 0.95),
        ([2, 0], 1, 20, 0.9),
        ([100, 3], 4, 1000, 0.99),
        ([1, 0], 1, 1, 0.9),
    ):
        asked = question(("x",), weights, divisor)
        epsilon = blue.fresh_epsilon(asked, "add_remove", length, confidence)
        S, half = max(weights), length * divisor // 2
        for share, enough in ((1, True), (1 - 2e-5, False)):
            q = np.exp(-float(epsilon * Fraction(share)) / S)
            assert (1 - 2 * q ** (half + 1) / (1 + q) >= confidence) == enough
        rule = 2 * S / (length * divisor) * np.log(1 / (1 - confidence))
        assert half == 0 or 0.8 * rule < epsilon <= rule
    assert blue.fresh_epsilon(question(("x",), [3, 3]), "replace", 1, 0.9) == 0
    assert 0 < blue.fresh_epsilon(question(("x",), [3, 0], 100), "replace", 1e308, 1e-6) < 1e-20


def test_the_least_epsilon_given_a_history():
    asked, rows, scales = question(("x",), [1, 1, 0]), [[1, 0, 0], [0, 1, 0], [1, 1, 1], [0, 0, 1]], [8.0, 9.0, 12.0, 3.0]
    history = History.of("add_remove", [Answered(question(("x",), row), Fraction(1), scale, 20) for row, scale in zip(rows, scales)])
    before = blue.interval_about(blue.estimate(history, asked), 0.95).length
    length = before * 0.8
    epsilon, fresh = blue.least_epsilon(history, asked, length, 0.95), blue.fresh_epsilon(asked, "add_remove", length, 0.95)
    assert 0 < epsilon < 0.8 * fresh
    lengths = []
    for tried in (epsilon, epsilon * Fraction(97, 100)):
        with_it = history.append(Answered(asked, tried, Laplace().calibrate(1, 1, Cost(tried)), 40))
        lengths.append(blue.interval_about(blue.estimate(with_it, asked), 0.95).length)
    assert lengths[0] <= length < lengths[1]
    assert blue.least_epsilon(history, asked, before * 1.01, 0.95) == 0
    unknown = question(("x",), [1, 2, 3])
    other = question(("y",), [1, 0])
    assert 0 < blue.least_epsilon(history, unknown, 60, 0.95) <= blue.fresh_epsilon(unknown, "add_remove", 60, 0.95)
    assert blue.least_epsilon(history, other, 10, 0.95) == blue.fresh_epsilon(other, "add_remove", 10, 0.95)


def test_a_question_is_answered_from_a_thousand_in_milliseconds():
    rng = np.random.default_rng(8)

    def ranges():
        low = int(rng.integers(0, 149))
        return question(("age",), (np.arange(150) >= low) & (np.arange(150) < rng.integers(low + 1, 150)))

    history = History.of("add_remove", [Answered(ranges(), Fraction(1), float(rng.uniform(1, 20)), 9) for _ in range(1000)])
    basis.basis_of(history)
    times = []
    for _ in range(9):
        asked, start = ranges(), perf_counter()
        found = blue.estimate(history, asked)
        times.append(perf_counter() - start)
        assert found is not None
        assert found.coefficients @ history.matrix == pytest.approx(divided(history, asked).weights, abs=1e-9)
    assert np.median(times) < 0.02, times


def test_a_basis_grows_with_new_columns():
    """Answer by answer, while columns come and atoms divide, as all at once; and other estimates stay what they were."""
    rng = np.random.default_rng(9)
    for neighbours in ("replace", "add_remove"):
        history, asked = History.empty(neighbours, 40 if neighbours == "replace" else None), []
        for _ in range(25):
            one = at_random(rng, "range")
            if one.sensitivity(neighbours):
                history = history.append(answered(one, 1, neighbours, int(rng.integers(0, 40))))
                basis.basis_of(history)
                asked.append(one)
        anew = History.of(neighbours, history.answered, history.records)
        assert history.sizes == anew.sizes
        assert len(history.sizes) == 3
        assert (
            len(basis.basis_of(history).rows)
            == len(basis.basis_of(anew).rows)
            == np.linalg.matrix_rank(np.vstack([history.matrix, np.full((1, len(history.cells)), int(neighbours == "replace"))]))
        )
        for one in [*asked, at_random(rng, "range")]:
            first, second = blue.estimate(history, one), blue.estimate(anew, one)
            if first is not None or second is not None:
                assert first.value == pytest.approx(second.value, abs=1e-8)
                np.testing.assert_allclose(first.coefficients, second.coefficients, atol=1e-9)


def test_many_small_noises_are_summed_by_their_cumulants(monkeypatch):
    rng = np.random.default_rng(10)
    coefficients, scales = np.append(1.0, 2e-4 * rng.normal(size=400)), np.append(2.0, np.full(400, 30.0))
    law = convolution.convolved(coefficients, scales)
    monkeypatch.setattr(convolution, "SMALL", 0.0)
    np.testing.assert_allclose(law.reached, convolution.convolved(coefficients, scales).reached, atol=1e-9)


def test_very_noisy_answers_have_laws():
    """Of one noise, of which nothing is left at the scale of its units; and of thousands of equal ones."""
    for scale in (1e7, 1e9, 1e12, 1e15):
        law = convolution.convolved(np.array([1000.25]), np.array([scale]))
        assert law.distance(0.9) == pytest.approx(1000.25 * scale * np.log(10), rel=1e-6)
        assert law.within(law.distance(0.9)) >= 0.9 > law.within(law.distance(0.9) * (1 - 1e-12) - 1000.25)
        assert law.below(law.distance(0.9)) < law.below(law.distance(0.9) * (1 + 1e-9))
        assert law.below(0) < 0.5 < law.below(1)
    small, large = convolution.convolved(np.full(1, 0.5), np.full(1, 70.0)), convolution.OneNoise(0.5, np.zeros(0), 0.0, 70.0)
    for confidence in (0.01, 0.5, 0.9, 1 - 1e-9):
        assert small.distance(confidence) == large.distance(confidence)
    for at in (-40, -0.5, 0, 0.3, 0.5, 77.7):
        assert small.within(at) == pytest.approx(large.within(at), abs=1e-12)
        assert small.below(at) == pytest.approx(large.below(at), abs=1e-12)
    many = convolution.convolved(np.ones(5000), np.full(5000, 1e6))
    assert many.distance(0.95) == pytest.approx(1.96 * np.sqrt(1e4) * 1e6, rel=5e-3)


def test_a_confidence_that_cannot_be_said_is_refused_by_itself():
    assert convolution.checked_confidence(1 - 1e-9) == 1 - 1e-9
    for confidence in (0.0, 1.0, 1.5, 1 - 1e-12, float("nan")):
        with pytest.raises(Refusal, match=r"confidence.*\. Write"):
            convolution.checked_confidence(confidence)
        with pytest.raises(Refusal, match=r"confidence.*\. Write"):
            convolution.convolved(np.ones(1), np.ones(1)).distance(confidence)


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_many_answers_at_once_are_as_one_after_the_other(neighbours):
    """To the last tick, where costs fit no common tick, too."""
    rng = np.random.default_rng(12)
    for trial in range(6):
        asked = [one for one in (at_random(rng, "weights" if trial % 2 else "range") for _ in range(9)) if one.sensitivity(neighbours)]
        most = 10**15 if trial % 3 else 40
        given = [answered(one, Fraction(int(rng.integers(1, most)), 3 * most + int(rng.integers(99))), neighbours, 5) for one in asked]
        begun = single = History.empty(neighbours, 5 if neighbours == "replace" else None).extend(given[:2])
        before = None if begun.spent.pairs is None else begun.spent.pairs.copy()
        for one in given[2:]:
            single = single.append(one)
        several = begun.extend(given[2:])
        assert several.cost == single.cost
        assert several.answered == single.answered
        for name in ("columns", "sizes", "places"):
            assert getattr(several, name) == getattr(single, name)
        for name in ("labels", "cells", "rows"):
            np.testing.assert_array_equal(getattr(several, name), getattr(single, name))
        for name in ("loads", "pairs", "widest"):
            np.testing.assert_array_equal(getattr(several.spent, name), getattr(single.spent, name))
        np.testing.assert_array_equal(begun.spent.pairs, before)


def test_a_histogram_is_quick_and_small():
    """1100 bars: in seconds and four matrices of 1100 by 1100, where one after the other they were a thousand."""
    bars = [answered(question(("x",), row), "1/10", "replace") for row in np.eye(1100, dtype=int)]
    tracemalloc.start()
    start = perf_counter()
    try:
        history = History.of("replace", bars, 9)
        basis.basis_of(history)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert history.cost == Fraction(2, 10)
    assert peak < 2e8, peak
    assert perf_counter() - start < 60


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_an_epsilon_of_many_digits_is_counted(neighbours):
    """The first cost, in ticks below 2**-63."""
    asked = question(("x",), [0, 1, 2, 3, 4, 5])
    for number in (1 / 300, 1e-4 / 3, 0.05 / 7, 1e-300, 1e300):
        history, epsilon = History.empty(neighbours, 5 if neighbours == "replace" else None), exact_epsilon(number)
        history = history.append(Answered(asked, epsilon, 1.001 * float(5 / epsilon), 0))
        assert epsilon <= history.cost <= epsilon * (1 + Fraction(1, 10**12))
