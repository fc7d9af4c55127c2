"""Draws from a network's posterior: their exact distribution, the privacy of it, and what is refused."""

import itertools
import sys
import warnings
from fractions import Fraction
from functools import cache

import numpy as np
import pymc as pm
import pytest
from scipy.special import logsumexp
from scipy.stats import beta, chisquare, kstest

import pymc_dp as pmdp
from pymc_dp.models.reader import read_model
from pymc_dp.plans import network as networks
from pymc_dp.plans.network import splits
from pymc_dp.posterior.price import NAT
from pymc_dp.posterior.tables import points
from pymc_dp.privacy import mechanisms

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(12)
ROWS = np.column_stack([RNG.integers(0, 2, 40), RNG.integers(0, 3, 40)])


def network(rows=ROWS, alpha=(1.0, 1.0), concentration=1.0):
    with pm.Model(coords={"side": ["left", "right"]}) as model:
        y = pm.Bernoulli("y", pm.Beta("p", *alpha), observed=rows[:, 0])
        q = pm.Dirichlet("q", np.full(3, concentration), dims=("side", "answer"), shape=(2, 3))
        pm.Categorical("x", q[y], observed=rows[:, 1])
    return model


def one(y):
    """A single variable is a network only beside another that depends on it."""
    with pm.Model() as model:
        y = pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=np.asarray(y))
        pm.Bernoulli("x", pm.Beta("q", 1, 1, shape=2)[y], observed=np.zeros(len(y.eval()), dtype=int))
    return model


class Choices:
    """Stands at the seam: keeps the scores and answers with a fixed place."""

    def __init__(self, place=0):
        self.scores, self.scales, self.place = [], [], place

    def __call__(self, scores, scale):
        self.scores.append(np.array(scores))
        self.scales.append(scale)
        return self.place

    def log_probability(self):
        """Of every place in every row."""
        scaled = [scores / scale for scores, scale in zip(self.scores, self.scales, strict=True)]
        return [row - logsumexp(row) for row in scaled]


@pytest.fixture
def seam(monkeypatch):
    def patch(place=0):
        found = Choices(place)
        monkeypatch.setattr(mechanisms, "_opendp_choice", found)
        return found

    return patch


def drawn(model, epsilon, draws=1, smallest=None, **arguments):
    return pmdp.sample(model=model, epsilon=epsilon, mechanism=pmdp.PosteriorSample(draws, smallest), **arguments)


# ---------- splits
@pytest.mark.parametrize("levels", range(2, 10))
def test_splits_halve_the_levels(levels):
    found = splits(levels)
    assert len(found) == levels - 1
    inside = [sum(k in (*first, *second) for first, second in found) for k in range(levels)]
    assert max(inside) == networks.bits_of([levels]) == int(np.ceil(np.log2(levels)))
    shares = RNG.uniform(size=levels - 1)
    probability = np.ones(levels)
    for share, (first, second) in zip(shares, found, strict=True):
        probability[list(first)] *= 1 - share
        probability[list(second)] *= share
    assert probability.sum() == pytest.approx(1)


# ---------- the distribution
def test_scores_are_the_log_posterior_on_the_grid(seam):
    """Of the first row: log Beta(a + s / T, b + f / T) in logits from .01 on, at integers of 2^-20 nats. T pays for the splits of a
    record, one of y and two of x, each of which may move by the range of a logarithm, up and down.
    """
    found = seam()
    drawn(network(alpha=(2.0, 5.0)), 3.0)
    grid = points(np.log(1 / 0.5 - 1) + 1, 3)  # any: only to say what probability means
    assert (grid.first[-1], grid.second[0]) == (grid.second[0], grid.first[-1])
    s, n = ROWS[:, 0].sum(), len(ROWS)
    width = np.log(99)
    temper = 2 * (1 + 2) * width / 3.0
    p = 1 / (1 + np.exp(-np.linspace(-width, width, len(found.scores[0]))))
    expected = (2 + s / temper) * np.log(p) + (5 + (n - s) / temper) * np.log(1 - p)
    got = found.scores[0] / found.scales[0]
    np.testing.assert_allclose(got - got.max(), expected - expected.max(), atol=1e-3)


def test_draws_have_the_truncated_posterior():
    """Of 4,000 exact draws, against the truncated Beta by Kolmogorov and Smirnov; a false alarm has probability 1e-6.

    A temperature off by 5 % is found with 200,000 draws in the slow suite.
    """
    assert kstest(*sampled(4000)).pvalue > 1e-6


@cache
def many_draws(many):
    with pm.Model() as model:  # by itself, because every table takes its time
        pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=ROWS[:, 0])
    return drawn(model, 20.0 * many, draws=many)


def sampled(many, temper=1.0):
    """The parameter p of many draws, and its distribution function."""
    tree = many_draws(many)
    w, p = tree.privacy.attrs["smallest"], tree.posterior.p.values.ravel()
    s, n = ROWS[:, 0].sum(), len(ROWS)
    law = beta(1 + s / temper, 1 + (n - s) / temper)
    logits = np.log(p / (1 - p))
    step = np.diff(np.unique(logits)).min()
    spread = logits + np.random.default_rng(3).uniform(-0.5, 0.5, len(logits)) * step  # the grid has steps; the law has none
    return 1 / (1 + np.exp(-spread)), lambda x: (law.cdf(x) - law.cdf(w)) / (law.cdf(1 - w) - law.cdf(w))


@pytest.mark.slow
@pytest.mark.parametrize("temper", [1.0, 1.05, 1 / 1.05])
def test_a_wrong_temperature_would_be_found(temper):
    """At 200,000 draws a temperature off by 5 % moves the distribution function by some .006: 12 of its standard deviations."""
    assert (kstest(*sampled(200_000, temper)).pvalue > 1e-6) == (temper == 1)


def test_choices_are_drawn_with_the_probabilities_of_their_scores():
    """OpenDP's noisy maximum, of 30,000; a false alarm has probability 1e-6."""
    scores, scale = np.array([0, 300_000, 1_000_000, 2_000_000]), float(NAT)
    receipt = mechanisms.Receipt([mechanisms.Draw("y", "choice", 1, 1, scale, 4 * 30_000)], pmdp.Cost(1))
    found = np.bincount(mechanisms.exponential_mechanism([scores] * 30_000, scale, receipt), minlength=4)
    p = np.exp(scores / scale)
    assert chisquare(found, p / p.sum() * 30_000).pvalue > 1e-6


# ---------- privacy
def loss(first, second):
    """Largest log-ratio of the probabilities of any result, from the distributions of independent choices."""
    return sum(np.abs(a - b).max() for a, b in zip(first, second, strict=True))


RECORDS = list(itertools.product(range(2), range(3)))


@pytest.mark.parametrize("settings", [{}, {"draws": 3}, {"smallest": 0.2}, {"smallest": 0.001}], ids=str)
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_the_exact_privacy_loss_is_within_epsilon_and_nearly_attained(neighbours, settings, seam):
    """All neighbours of two data sets of up to three records, from the integer scores themselves."""
    epsilon, worst = 2.0, 0.0
    for base in ([(0, 0), (1, 2)], [(1, 1), (1, 1)]):
        laws = {}
        for record in [None, *RECORDS]:
            found = seam()
            drawn(network(np.array([*base, *([] if record is None else [record])])), epsilon, neighbours=neighbours, **settings)
            laws[record] = found.log_probability()
        pairs = itertools.combinations(RECORDS, 2) if neighbours == "replace" else ((None, record) for record in RECORDS)
        worst = max(worst, *(loss(laws[a], laws[b]) for a, b in pairs))
    assert worst <= epsilon * (1 + 1e-9)
    if settings != {"smallest": 0.001}:  # on so wide a grid three records are far from the worst case
        assert worst > 0.5 * epsilon


def test_many_records_attain_the_bound(seam):
    """A record that differs in everything, among many that hold the scores at either end: the loss comes near epsilon."""
    rows = np.array([(1, 2)] * 400 + [(0, 0)] * 400)
    laws = []
    for last in ((0, 0), (1, 2)):
        found = seam()
        drawn(network(np.vstack([rows[:400] if last == (1, 2) else rows[400:], [last]])), 4.0)
        laws.append(found.log_probability())
    found = seam()
    changed = np.vstack([rows[:400], [(0, 0)]])
    drawn(network(changed), 4.0)
    assert 0.7 * 4 < loss(found.log_probability(), laws[1]) <= 4


def test_the_charge_is_the_sum_over_draws_and_families(tmp_path, seam):
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=5, create=True, neighbours="replace")
    seam()
    tree = drawn(network(), 2, draws=4, ledger=ledger)
    assert ledger.remaining().epsilon == 3
    assert tree.privacy.epsilon.sum() == pytest.approx(2, rel=1e-4)
    assert tree.privacy.epsilon.sum() <= 2
    assert tree.privacy.attrs["ledger_head"] == ledger.head
    pmdp.find_MAP(model=network(), epsilon=3, ledger=ledger)
    with pytest.raises(pmdp.Refusal):
        pmdp.find_MAP(model=network(), epsilon=1, ledger=ledger)


def test_choices_need_a_receipt_of_their_own():
    with pytest.raises(pmdp.Refusal, match="cost more"):
        mechanisms.Receipt([mechanisms.Draw("y", "choice", 3, 9, 1.0, 2)], pmdp.Cost(2))
    receipt = mechanisms.Receipt([mechanisms.Draw("y", "laplace", 1, 1, 1.0, 2)], pmdp.Cost(1))
    with pytest.raises(pmdp.Refusal, match="not been paid"):
        mechanisms.exponential_mechanism([np.zeros(2, dtype=np.int64)], 1.0, receipt)
    made, receipt = [], mechanisms.Receipt([mechanisms.Draw("y", "choice", 3, 9, 3.0, 4)], pmdp.Cost(1))
    with pytest.raises(pmdp.Refusal, match="more choices than"):
        mechanisms.exponential_mechanism((np.zeros(2, dtype=np.int64) for _ in range(3)), 3.0, receipt, made, 4)
    assert len(made) == 2
    assert mechanisms.Draw("y", "choice", 3, 9, 1.0, 2).rho == Fraction(9, 8)


# ---------- results
def test_the_tree_has_the_model_s_dims_and_what_was_spent():
    tree = drawn(network(), 6.0, draws=5)
    assert tree.posterior.q.dims == ("chain", "draw", "side", "answer")
    assert tree.posterior.side.values.tolist() == ["left", "right"]
    assert tree.posterior.sizes["draw"] == 5
    np.testing.assert_allclose(tree.posterior.q.sum("answer"), 1)
    assert tree.posterior.attrs["epsilon"] == 6 == tree.attrs["epsilon"]
    assert tree.posterior.q.min() >= tree.privacy.attrs["smallest"] ** 2
    np.testing.assert_allclose(tree.network.x_table.values[0], tree.posterior.q.values[0])
    np.testing.assert_allclose(tree.network.y_table.values[0, :, 0, 1], tree.posterior.p.values[0])
    predicted = pmdp.predict(tree, "y", {"x": [0, 1, 2]})
    assert predicted.probability.shape == (3, 2)


def test_much_epsilon_gives_the_posterior_s_mode():
    """With 1e6 nats the score decides: the modes of Beta(2 + s, 2 + n - s) and Dirichlet(2 + counts), to within the grid's steps."""
    found = pmdp.find_MAP(model=network(alpha=(2.0, 2.0), concentration=2.0), epsilon=1e6, smallest=0.001)
    s, n = ROWS[:, 0].sum(), len(ROWS)
    assert found["p"] == pytest.approx((s + 1) / (n + 2), abs=0.01)
    counts = np.array([np.bincount(ROWS[ROWS[:, 0] == y, 1], minlength=3) for y in range(2)])
    assert found["q"].shape == (2, 3)
    np.testing.assert_allclose(found["q"], (counts + 1) / (counts.sum(axis=1, keepdims=True) + 3), atol=0.01)


@pytest.mark.parametrize(("draws", "smallest", "said"), [(40, 0.1, True), (2, 0.1, False), (40, None, False)])
def test_a_prior_that_is_cut_off_is_said_before_anything_is_paid(draws, smallest, said, tmp_path, seam):
    """Draws from .1 on leave out a fifth of a uniform prior, from .01 on a fiftieth. Of two draws no interval is made."""
    seam()
    ledger = pmdp.Ledger(tmp_path / "ledger", epsilon=5, create=True, neighbours="replace")
    with warnings.catch_warnings():
        warnings.simplefilter("error", pmdp.ClampedWarning)
        if said:
            with pytest.raises(pmdp.ClampedWarning, match=r"0\.1 and 0\.9 only, which cuts off 2\d% .*smallest=0\.01"):
                drawn(network(ROWS), 2.0, draws=draws, smallest=smallest, ledger=ledger)
            assert ledger.remaining().epsilon == 5
        else:
            drawn(network(ROWS), 2.0, draws=draws, smallest=smallest, ledger=ledger)


def test_a_table_of_more_columns_is_drawn_for_each():
    votes = RNG.integers(0, 2, (40, 3))
    with pm.Model() as model:
        y = pm.Bernoulli("y", pm.Uniform("p"), observed=ROWS[:, 0])
        pm.Bernoulli("v", pm.Beta("t", 1, 1, shape=(2, 3))[y], observed=votes)
    tree = drawn(model, 1e4, smallest=0.001)
    shares = np.array([[votes[ROWS[:, 0] == j, c].mean() for c in range(3)] for j in range(2)])
    assert np.abs(tree.posterior.t.values[0, 0] - shares).max() < 6 * 0.5 / np.sqrt(15)
    assert pmdp.predict(tree, "y", {"v": votes}).probability.shape == (40, 2)


# ---------- refusals
def hierarchy(y):
    pm.Bernoulli("x", pm.Beta("q", pm.Gamma("a", 2, 1), 1, shape=2)[y], observed=ROWS[:, 0])


def logistic(y):
    pm.Bernoulli("x", logit_p=pm.Normal("q", shape=2)[y], observed=ROWS[:, 0])


def reversed_table(y):
    pm.Bernoulli("x", 1 - pm.Beta("q", 1, 1, shape=2)[y], observed=ROWS[:, 0])


def shared_row(y):
    pm.Bernoulli("x", pm.Beta("q", 1, 1, shape=1)[y * 0], observed=ROWS[:, 0])


def reordered_levels(y):
    pm.Categorical("x", pm.Dirichlet("q", np.ones(3), shape=(2, 3))[:, ::-1][y], observed=ROWS[:, 1])


def potential(y):
    q = pm.Beta("q", 1, 1, shape=2)
    pm.Potential("more", q.sum())
    pm.Bernoulli("x", q[y], observed=ROWS[:, 0])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (hierarchy, "rests on other variables|no Beta"), (logistic, "no Beta or Dirichlet prior"), (reversed_table, "not entries of q"),
        (shared_row, "share a row|no observed variable"), (reordered_levels, "not those of q in order|not entries"),
        (potential, "Potential"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)  # fmt: skip
def test_what_cannot_be_drawn_exactly_is_refused_before_any_record_is_read(body, words, seam):
    found = seam()
    with pm.Model() as model:
        body(pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=ROWS[:, 0]))
    with pytest.raises(pmdp.Refusal, match=words):
        drawn(model, 1.0)
    assert not found.scores


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"random_seed": 1}, "Leave that out"), ({"weights": {"y": 1, "x": 2}}, "Leave that out"),
        ({"unit": "individual"}, "protect single rows"), ({"epsilon": 1e-9}, "Write a larger epsilon"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)  # fmt: skip
def test_arguments_that_mean_nothing_are_refused(arguments, words):
    with pytest.raises(pmdp.Refusal, match=words):
        drawn(network(), **{"epsilon": 1.0} | arguments)


@pytest.mark.parametrize("odd", [0, -1, True, 1.5])
def test_numbers_of_draws(odd):
    with pytest.raises(pmdp.Refusal, match="an integer from 1 to"):
        pmdp.PosteriorSample(odd)


@pytest.mark.parametrize("odd", [0.0, 0.5, 1, np.nan, "a"])
def test_smallest_probabilities(odd):
    with pytest.raises(pmdp.Refusal, match="between 1e-12"):
        pmdp.PosteriorSample(1, odd)
    with pytest.raises(pmdp.Refusal, match="between 1e-12"):
        pmdp.find_MAP(model=network(), epsilon=1.0, smallest=odd)


# ---------- how often a model is read
GIBBS = pmdp.Gibbs(1, points=5)
READINGS = {
    "advise": (lambda model: pmdp.advise(model, epsilon=1), ["statistics", "records"]),
    "sample": (lambda model: pmdp.sample(model=model, mechanism=pmdp.PosteriorSample(points=5), epsilon=1), ["statistics", "records"]),
    "find_MAP": (lambda model: pmdp.find_MAP(model=model, points=5, epsilon=1), ["statistics", "records"]),
    "ask": (lambda model: pmdp.ask({"t": lambda draw: draw.t}, model=model, epsilon=1), ["statistics", "records"]),
    "network": (lambda model: pmdp.sample(model=network(), mechanism=pmdp.PosteriorSample(), epsilon=1), ["statistics"]),
    "network, advise": (lambda model: pmdp.advise(network(), epsilon=1), ["statistics"]),
    "gibbs": (lambda model: pmdp.sample(model=model, mechanism=GIBBS, epsilon=1), ["latents"]),
    "by update": (lambda model: pmdp.sample(model=model, mechanism=pmdp.Gibbs(1, points=5, epsilon_per_update=1)), ["latents"]),
    "annealing": (lambda model: pmdp.sample(model=model, mechanism=pmdp.Annealing(2, points=5), epsilon=1), ["latents"]),
    "inspect": (lambda model: pmdp.inspect(model, mechanism=GIBBS, epsilon=1), ["statistics", "latents"]),
}
"""Calls, and what each reads a model for."""


@pytest.mark.parametrize(("call", "kinds"), READINGS.values(), ids=READINGS)
def test_a_model_is_read_once_for_each_purpose(call, kinds, monkeypatch):
    """For its statistics, for the density of one record, or for that with latents: wherever it is read, it is counted."""
    read, real = [], read_model

    def counted(model, *arguments, **words):
        read.append("statistics" if not words.get("rowwise") else "records" if words.get("latents") is None else "latents")
        return real(model, *arguments, **words)

    for name, module in list(sys.modules.items()):
        if name.startswith("pymc_dp") and getattr(module, "read_model", None) is real:
            monkeypatch.setattr(module, "read_model", counted)
    with pm.Model() as model:
        pm.Bernoulli("y", pm.Uniform("t", 0.1, 0.9), observed=ROWS[:, 0])
    call(model)
    assert read == kinds


# ---------- what fails inside says nothing
def test_a_failing_draw_carries_nothing(monkeypatch):
    """Neither the words nor the cause nor a frame of what was thrown at the seam, with scores in its hands, leaves."""

    def fails(scores, scale):
        raise ValueError(f"{scores[0]} {scale}")

    monkeypatch.setattr(mechanisms, "_opendp_choice", fails)
    with pytest.raises(pmdp.PrivateComputationError) as caught:
        drawn(network(), 1)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    names = set()
    trace = error.__traceback__
    while trace is not None:
        names |= set(trace.tb_frame.f_locals)
        trace = trace.tb_next
    assert not names & {"exact", "scores", "counts", "paths", "tree"}
    assert not any(character.isdigit() for character in str(error))
