"""The posterior of exact counts given every noisy answer: the law that is claimed, and how well chains find it."""

from itertools import product

import arviz as az
import numpy as np
import pytest
from scipy.special import gammaln
from test_history import of_rows, question

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.queries import blue
from pymc_dp.queries import completion as rooms
from pymc_dp.queries.completion import (
    Completion,
    _nearest_atoms,
    answer_draws,
    answers,
    chains_agree,
    check_told,
    complete,
    fast_enough,
    interval_given_all,
    probability_given_all,
)
from pymc_dp.queries.history import Answered, History
from pymc_dp.queries.moves import EVENEST, MANY_RECORDS, sweeps

ROWS = [[1, 1, 0, 0], [0, 1, 1, 0], [0, 1, 1, 0], [1, 0, 2, -1]]
NOISY = [5, 3, 7, 2]


def few(neighbours):
    """Four answers about four cells, or about three where the number of records is private; and the most records in a cell."""
    known = neighbours == "replace"
    rows = ROWS if known else [row[:3] for row in ROWS]
    return of_rows(rows, ["0.7", "0.4", "0.5", "1.1"], neighbours, NOISY, 9 if known else None), 9 if known else 30


def prior(counts, spread, c):
    """log p(counts (..., G), concentration c (K, 1)), written with other formulas than the sampler's: (K, ...)."""
    total, a = counts.sum(-1), c[:, :, None] * spread
    urn = gammaln(total + 1) + gammaln(c) - gammaln(total + c)
    return urn + (gammaln(counts + a) - gammaln(a) - gammaln(counts + 1)).sum(-1)


def enumerated(history, most):
    """All counts up to ``most`` with their exact posterior probabilities, the concentration integrated by quadrature."""
    spread = history.cells / history.cells.sum()
    counts = np.array(list(product(range(most + 1), repeat=len(spread))))
    if history.records is not None:
        counts = counts[counts.sum(1) == history.records]
    log_c = np.linspace(0, np.log(EVENEST), 61)[:, None]
    shape = np.logaddexp.reduce(prior(counts, spread, np.exp(log_c)), axis=0)
    fit = -(np.abs(counts @ history.matrix.T - history.noisy) / history.scales).sum(1)
    total = shape + fit
    if history.records is None:
        total = total - 2 * np.log1p(counts.sum(1) / MANY_RECORDS)
    weights = np.exp(total - total.max())
    return counts, weights / weights.sum()


def agrees(history, found, most):
    """Probabilities of some events against the sum over all counts; each is 6 standard errors away twice in 10^9 times."""
    counts, weights = enumerated(history, most)
    for name, exact, seen in [
        *((f"atom {g}", counts[:, g], found.counts[:, :, g]) for g in range(counts.shape[1])),
        ("all", counts.sum(1), found.counts.sum(2)),
        ("answered", counts @ history.matrix[3], found.counts @ history.matrix[3]),
    ]:
        for value in np.quantile(seen, [0.05, 0.25, 0.5, 0.75, 0.95]):
            expected, got = weights[exact <= value].sum(), seen <= value
            if 1e-3 < expected < 1 - 1e-3:
                error = np.sqrt(expected * (1 - expected) / float(az.ess(got.astype(float), method="mean")))
                assert error < 0.015
                assert abs(got.mean() - expected) < 6 * error, (name, value)
            else:
                assert abs(got.mean() - expected) < 2e-3


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_draws_have_the_exact_posterior(neighbours):
    history, most = few(neighbours)
    agrees(history, complete(history, draws=4000), most)


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_sweeps_leave_the_joint_law_of_counts_and_answers_alone(neighbours):
    """Counts from the prior, answers from the counts, then five sweeps: the counts still have the law of the prior, whatever it is.

    Means of 20 functions differ by 5.5 standard errors once in 10^6 times. No formula of the posterior is used, so that one which the
    sampler has wrong cannot be wrong here, too."""
    rng, records, rows = np.random.default_rng(3), 60, np.array([[1, 1, 0, 0, 0], [0, 1, 1, 1, 0], [1, 0, 1, 2, -1], [0, 1, 1, 1, 0]])
    known = neighbours == "replace"
    history = of_rows(rows, ["0.7", "0.4", "0.5", "0.2"], neighbours, records=records if known else None)
    spread, columns = history.cells / history.cells.sum(), np.ascontiguousarray(history.matrix.T, dtype=float)
    near, kept = _nearest_atoms(columns, history.scales, rng), np.empty((1, len(spread)), np.int64)
    before, after = [], []
    for _ in range(4000):
        u, c, now = rng.random(), np.exp(rng.uniform(0, np.log(EVENEST))), np.empty(1)
        many = records if known else int(MANY_RECORDS * u / (1 - u))
        x = rng.multinomial(many, rng.dirichlet(c * spread))
        failure = -np.expm1(-1 / history.scales)
        noisy = (history.matrix @ x + rng.geometric(failure) - rng.geometric(failure)).astype(float)
        before.append([*np.log(x + 0.5), np.log(c), np.log(x.max() + 0.5), np.log(x.sum() + 0.5)])
        sweeps(rng, x, c, columns, noisy, 1 / history.scales, spread, *near, known, 4, 1, kept, now)
        assert (kept[0] == x).all()
        after.append([*np.log(x + 0.5), np.log(now[0]), np.log(x.max() + 0.5), np.log(x.sum() + 0.5)])
    before, after = np.array(before), np.array(after)
    before, after = (
        np.hstack([before, before**2, before[:, :4] * before[:, 5:6]]),
        np.hstack([after, after**2, after[:, :4] * after[:, 5:6]]),
    )
    changes = (after - before)[:, (after != before).any(axis=0)]
    assert changes.shape[1] >= 18
    assert np.abs(changes.mean(0) / changes.std(0)).max() * np.sqrt(4000) < 5.5


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_a_question_that_divides_atoms_has_the_posterior_of_its_parts(neighbours):
    """Asked of draws of the atoms before it was answered, and of draws of its own atoms after an answer that says nothing."""
    whole = question(("x",), [1, 1, 0, 0, 0, 0])
    inside = question(("x",), [1, 0, 0, 0, 0, 2])
    history = of_rows([whole.weights], ["0.3"], neighbours, [12], 20 if neighbours == "replace" else None)
    later = history.append(of_rows([inside.weights], ["1/1000000000"], neighbours, [0], history.records).answered[0])
    found, after = complete(history, draws=3000), complete(later, draws=3000)
    assert found.counts.shape[2] == 2 < after.counts.shape[2]
    first, second = answer_draws(found, inside), answer_draws(after, inside)
    for value in (0, 3, 8, 15):
        p, r = (first <= value).mean(), (second <= value).mean()
        error = sum((values <= value).var() / float(az.ess((values <= value).astype(float), method="mean")) for values in (first, second))
        assert abs(p - r) < 6 * np.sqrt(error)


def test_what_is_said_of_a_question_is_what_its_draws_say():
    history, _ = few("replace")
    found, wanted = complete(history), question(("x",), [3, 0, 1, 0], divisor=2)
    values = found.counts.reshape(-1, 4)[:, history.labels] @ [1.5, 0, 0.5, 0]  # cells of x in the order of their atoms
    said = interval_given_all(found, wanted, 0.9)
    assert said.kind == "given every answer"
    assert said.value == np.median(values)
    assert ((values >= said.lower) & (values <= said.upper)).mean() >= 0.9
    assert ((values > said.lower) & (values < said.upper)).mean() <= 0.9
    assert probability_given_all(found, wanted, 2.5) == (values > 2.5).mean()
    tree = answers(found, [wanted, question((), 1)])
    assert tree["posterior"].sizes == {"chain": 4, "draw": 250}
    np.testing.assert_array_equal(tree["posterior"][wanted.text.replace("/", " over ")].to_numpy().ravel(), values)
    assert (tree["posterior"].dataset[":[1] over 1"] == 9).all()
    with pytest.raises(Refusal, match="between 0 and 1"):
        interval_given_all(found, wanted, 95)


def test_the_history_is_the_seed_and_draws_are_remembered():
    history, _ = few("add_remove")
    found = complete(history)
    assert complete(history) is found
    again = few("add_remove")[0]
    np.testing.assert_array_equal(complete(again).counts, found.counts)
    more = again.append(history.answered[0])
    assert complete(more).history is more


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_nothing_answered(neighbours):
    history = History.empty(neighbours, records=7 if neighbours == "replace" else None)
    found = complete(history)
    assert found.counts.shape == (4, 250, 1)
    assert neighbours == "add_remove" or (found.counts == 7).all()
    half = question(("x",), [1, 0])
    if neighbours == "replace":
        assert set(np.unique(answer_draws(found, half))) == set(range(8))


def test_chains_that_do_not_agree_are_told(monkeypatch):
    history, _ = few("replace")
    found = complete(history)
    wanted = question(("x",), [1, 0, 0, 0])
    assert chains_agree(found, wanted)
    assert chains_agree(found, question((), 1))  # the number of records: no draw differs
    stuck = np.repeat(found.counts[:, :1], 250, axis=1)
    assert not chains_agree(Completion(history, stuck, found.concentration), wanted)
    monkeypatch.setattr(rooms, "MOST_WORK", 15)
    assert not fast_enough(history)
    with pytest.raises(Refusal, match="blue"):
        complete(few("replace")[0])


def test_a_confidence_that_draws_do_not_tell_is_refused():
    """Of 1000 draws five lie beyond each end at 99 %; beyond 99.8 % an interval would be their range, whatever it claims."""
    found, asked = complete(few("replace")[0]), question(("x",), [1, 0, 0, 0])
    values = np.sort(answer_draws(found, asked).ravel())
    said = interval_given_all(found, asked, 0.99)
    assert (said.lower, said.upper) == (values[5], values[-6])
    assert chains_agree(found, asked, 0.99)
    check_told(4000, 0.9975)
    for confidence in (0.991, 0.999, 1 - 1e-9):
        assert not chains_agree(found, asked, confidence)
        with pytest.raises(Refusal, match=r'confidence=0\.99 or less, or method="blue"'):
            interval_given_all(found, asked, confidence)
    with pytest.raises(Refusal, match="between 0 and 1"):
        check_told(4000, 1.0)


# ---------- what intervals hold
def ranged(rng, cells):
    while True:
        low, high = np.sort(rng.integers(0, cells + 1, 2))
        if 0 < high - low < cells:
            return ((np.arange(cells) >= low) & (np.arange(cells) < high)).astype(np.int64)


def asked(rng, history, weights, epsilon, x):
    """One more answer, its noise simulated."""
    blank = of_rows([weights], [epsilon], history.neighbours, records=history.records).answered[0]
    failure = -np.expm1(-1 / blank.scale)
    noise = int(rng.geometric(failure)) - int(rng.geometric(failure))
    return history.append(Answered(blank.question, blank.epsilon, blank.scale, int(weights @ x) + noise))


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_posterior_intervals_hold_on_average_over_the_prior(neighbours):
    """Ranges of 16 cells whose counts come from the prior, three questions to each of 400 histories: 90 % intervals of those that
    settled hold .9 of the answers, within 5 standard errors (a false alarm of 1e-6). Of the others, fewer do, and nothing is promised."""
    rng, cells, held, sure = np.random.default_rng(11), 16, [], []
    for _ in range(400):
        c, u = np.exp(rng.uniform(0, np.log(EVENEST))), rng.random()
        records = 2000 if neighbours == "replace" else int(MANY_RECORDS * u / (1 - u))
        x = rng.multinomial(records, rng.dirichlet(np.full(cells, c / cells)))
        history = History.empty(neighbours, records if neighbours == "replace" else None)
        for _ in range(8):
            history = asked(rng, history, ranged(rng, cells), ["0.05", "0.2", "1"][rng.integers(3)], x)
        found = complete(history)
        for _ in range(3):
            one = question(("x",), ranged(rng, cells))
            sure.append(chains_agree(found, one))
            if sure[-1]:
                said = interval_given_all(found, one, 0.9)
                held.append(said.lower <= one.weights @ x <= said.upper)
    assert np.mean(sure) > (0.75 if neighbours == "replace" else 0.4)
    assert abs(np.mean(held) - 0.9) < 5 * np.sqrt(0.09 / len(held))


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_fixed_question_intervals_hold_in_a_workload_of_ranges(neighbours):
    """2,500 histories of 10 ranges of 20 cells each, and a range that they determine: between .935 and .965 of 95 % intervals."""
    rng, cells, held = np.random.default_rng(12), 20, []
    while len(held) < 2500:
        x = rng.multinomial(1000, rng.dirichlet(np.full(cells, 0.5)))
        history = History.empty(neighbours, 1000 if neighbours == "replace" else None)
        for _ in range(10):
            history = asked(rng, history, ranged(rng, cells), ["0.03", "0.1", "0.3", "1"][rng.integers(4)], x)
        for _ in range(4):
            one = question(("x",), ranged(rng, cells))
            found = blue.estimate(history, one)
            if found is not None:
                said = blue.interval_about(found, 0.95)
                held.append(said.lower <= one.weights @ x <= said.upper)
                break
    assert 0.935 < np.mean(held) < 0.965
