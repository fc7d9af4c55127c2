"""What cannot be promised is refused, before a record is read, with the shape that was found and what to write instead."""

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from checks import flat
from models import COORDS, indexed_by_data, records, shared_bernoulli

import pymc_dp as pmdp
from pymc_dp.privacy import mechanisms

N = 30
R = records(N)
X = np.linspace(-1, 1, N)


def build(body):
    with warnings.catch_warnings(), pm.Model(coords=COORDS) as model:
        warnings.simplefilter("ignore")
        body()
    return model


def private_index_of_unknown_length():
    pm.Bernoulli("y", pm.Beta("p", 1, 1, dims="group")[R["g"]][:, None] * pt.ones(2)[pt.as_tensor(R["h"])][None, :], observed=R["Y"])


def private_covariate():
    pm.Bernoulli("y", logit_p=pm.Normal("a") + pm.Normal("b") * pm.Data("X", X), observed=R["y"])


def standardised_in_the_graph():
    x = pm.Data("X", X)
    pm.Bernoulli("y", logit_p=pm.Normal("b") * (x - x.mean()) / x.std(), observed=R["y"])


def same_data_twice():
    y = pm.Data("answers", R["y"].astype(float))
    pm.Bernoulli("y", 0.5 * pm.Beta("p", 1, 1) * y, observed=y)


def prior_from_observed_data():
    x = pm.Data("x_data", R["x"])
    pm.Normal("x", pm.Normal("mu", x.mean(), 1), 1, observed=x)


def prior_from_a_covariate():
    x = pm.Data("X", X)
    pm.Bernoulli("y", logit_p=pm.Normal("b", 0, 2.5 / x.std()) * x, observed=R["y"])


def prior_from_an_observed_variable():
    y = pm.Bernoulli("y", pm.Beta("p", 1, 1), observed=R["y"])
    pm.Bernoulli("z", logit_p=pm.Normal("mu", y.mean(), 1), observed=R["y"][::-1].copy())


def transform_from_data():
    x = pm.Data("X", X)
    interval = pm.distributions.transforms.Interval(bounds_fn=lambda *_: (None, x.max()))
    pm.Bernoulli("y", logit_p=pm.Normal("b", transform=interval) + x * 0, observed=R["y"])


def initial_value_from_data():
    pm.Bernoulli("y", logit_p=pm.Normal("b", shape=N, initval=X).mean() + pt.as_tensor(X), observed=R["y"])


def potential_on_data():
    p = pm.Beta("p", 1, 1)
    pm.Bernoulli("y", p, observed=R["y"])
    pm.Potential("more", pm.logp(pm.Bernoulli.dist(p), R["y"]).sum())


def potential_only():
    pm.Potential("likelihood", pm.logp(pm.Normal.dist(pm.Normal("mu"), 1), X).sum())


def custom():
    pm.CustomDist("y", pm.Normal("mu"), logp=lambda value, mu: -((value - mu) ** 2), observed=X)


def censored():
    pm.Censored("x", pm.Normal.dist(pm.Normal("mu"), 1), lower=None, upper=1.0, observed=np.minimum(X, 1))


def truncated():
    pm.Truncated("x", pm.Normal.dist(pm.Normal("mu"), 1), lower=-2, observed=X)


def mixture():
    pm.Mixture("x", [0.5, 0.5], [pm.Normal.dist(pm.Normal("mu"), 1), pm.Normal.dist(0, 1)], observed=X)


def minibatch():
    pm.Normal("x", pm.Normal("mu"), 1, observed=pm.Minibatch(X, batch_size=5))


def total_size():
    pm.Normal("x", pm.Normal("mu"), 1, observed=X, total_size=300)


def one_parameter_per_record():
    pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=N), observed=R["y"])


def student():
    pm.StudentT("x", nu=4, mu=pm.Normal("mu"), sigma=1, observed=X)


def random_walk():
    walk = pm.Normal("z", shape=N).cumsum()
    pm.Normal("x", walk, 1, observed=X)


def neighbours_of_a_record():
    theta = pm.Normal("t", shape=3)[R["g"]]
    pm.Normal("x", theta + pt.concatenate([theta[1:], theta[:1]]), 1, observed=X)


def softmax_over_records():
    pm.Bernoulli("y", pm.math.softmax(pm.Normal("a", shape=3)[R["g"]], axis=0), observed=R["y"])


def masked_records():
    pm.Normal("x", pm.Normal("t", shape=N)[R["y"].astype(bool)].sum(), 1, observed=X)


def single_number():
    pm.Poisson("k", pm.Gamma("lam", 2, 1), observed=3)


def computed_values():
    pm.Normal("x", pm.Normal("mu"), 1, observed=pt.log(pt.exp(pm.Data("raw", X))))


def scan_over_records():
    steps = pytensor.scan(lambda x, s: s * 0.5 + x, sequences=[pt.as_tensor(X)], outputs_info=pt.zeros(()), return_updates=False)
    pm.Normal("x", pm.Normal("mu") + steps, 1, observed=X)


def nothing_observed():
    pm.Normal("mu")


REFUSED = [
    (private_index_of_unknown_length, "private array|mixes"),
    (private_covariate, "X is private, so it needs bounds|X is a real number.*public=\\['X'\\]"),
    (standardised_in_the_graph, "private array X"),
    (same_data_twice, "answers, which is observed"),
    (prior_from_observed_data, "reach a prior"),
    (prior_from_a_covariate, "X reaches a prior"),
    (prior_from_an_observed_variable, "prior of mu"),
    (transform_from_data, "transform of b"),
    (initial_value_from_data, "initial value of b|The initial value"),
    (potential_on_data, "Potential more"),
    (potential_only, "Potential likelihood"),
    (custom, "no sufficient statistics|not offered"),
    (censored, "x cannot be released"),
    (truncated, "x cannot be released"),
    (mixture, "x cannot be released"),
    (minibatch, "computed in the graph"),
    (total_size, "total_size"),
    (one_parameter_per_record, "one free parameter per record"),
    (student, "StudentT.*not offered"),
    (random_walk, "CumOp|one free parameter|mix"),
    (neighbours_of_a_record, "several arrays|index x:0 is private"),
    (softmax_over_records, "Softmax, which mixes"),
    (masked_records, "private array"),
    (single_number, "single number"),
    (computed_values, "computed in the graph"),
    (scan_over_records, "selects some of the records"),
    (nothing_observed, "observes nothing"),
]


@pytest.mark.parametrize(("body", "words"), REFUSED, ids=[body.__name__ for body, _ in REFUSED])
def test_refused_before_any_record_is_read(body, words, monkeypatch):
    """The seam is never reached, the words name the cause, and ``inspect`` says the same without raising."""
    monkeypatch.setattr(mechanisms, "_opendp_laplace", lambda *_: pytest.fail("noise was asked for"))
    model = build(body)
    bounds = {name: (-1, 2) for name in ("x",) if name in {v.name.removesuffix("_observed") for v in model.observed_RVs}}
    with pytest.raises(pmdp.Refusal, match=words) as caught:
        pmdp.release(model, epsilon=1.0, bounds=bounds)
    assert str(caught.value)[0].isupper() or str(caught.value).startswith(("x", "y", "k", "c"))
    shown = flat(pmdp.inspect(model, bounds=bounds))
    assert "cannot be released" in shown or "model: " in shown


@pytest.mark.parametrize("body", [case[0] for case in REFUSED], ids=[case[0].__name__ for case in REFUSED])
def test_public_does_not_open_what_is_observed(body):
    """Naming every array public never lets observed values through."""
    model = build(body)
    names = [name for name, *_ in pmdp.inspect(model).arrays]
    observed = {"answers", "x_data", "raw"} & set(names)
    if observed:
        with pytest.raises(pmdp.Refusal, match="what is protected"):
            pmdp.inspect(model, public=names)


EPSILONS = [
    0,
    -1,
    0.0,
    float("nan"),
    float("inf"),
    -float("inf"),
    True,
    "1",
    None,
    [1.0],
    1j,
    Decimal("NaN"),
    Fraction(-1, 2),
    np.bool_(True),
    {},
]


@pytest.mark.parametrize("epsilon", EPSILONS, ids=repr)
def test_epsilon_must_be_a_positive_finite_number(epsilon):
    with pytest.raises(pmdp.Refusal, match="positive finite number"):
        pmdp.release(shared_bernoulli()[0], epsilon=epsilon)


@pytest.mark.parametrize("epsilon", [1, 0.1, Decimal("0.1"), Fraction(1, 3), np.float64(0.1), np.int64(2)], ids=repr)
def test_epsilon_is_read_as_it_was_written(epsilon):
    released = pmdp.release(shared_bernoulli()[0], epsilon=epsilon)
    assert released.epsilon == Fraction(str(epsilon)) if not isinstance(epsilon, Fraction) else epsilon


ARGUMENTS = [
    ({"bounds": {"nobody": (0, 1)}}, "must name observed variables"),
    ({"bounds": {"y": (0, 1)}}, "limited by themselves"),
    ({"bounds": [1, 2]}, "bounds are given by name"),
    ({"public": "g"}, "must be a list"),
    ({"public": ["nobody"]}, "not there.*'g'.*'group'"),
    ({"public": [np.arange(3)]}, "does not use as it is"),
    ({"mechanism": "exponential"}, "mechanism must be"),
    ({"mechanism": "gaussian"}, "needs a delta above 0"),
    ({"mechanism": pmdp.Gaussian(delta=1e-6), "delta": 1e-5}, "given twice"),
    ({"delta": 1e-6}, "delta must be 0"),
    ({"delta": True}, "delta must be a number"),
    ({"delta": 1.0}, "delta must be a number"),
    ({"neighbours": "add_remove"}, "g is public and may have an entry for every record"),
    ({"neighbours": "both"}, "must be"),
    ({"unit": "individual"}, "Bernoulli rows are not totals"),
    ({"unit": ""}, "what one row stands for"),
    ({"unit": 3}, "what one row stands for"),
    ({"weights": {"x": 1}}, "every observed variable once"),
    ({"weights": {"y": -1}}, "weight must be a positive"),
    ({"ledger": "file"}, "must be a pymc_dp.Ledger"),
    ({"data": [1]}, "which data= does not offer"),
    ({"epsilon": 1e-30}, "so small"),
]


@pytest.mark.parametrize(("arguments", "words"), ARGUMENTS, ids=[str(arguments) for arguments, _ in ARGUMENTS])
def test_arguments_are_checked_first(arguments, words):
    with pytest.raises(pmdp.Refusal, match=words):
        pmdp.release(indexed_by_data()[0], **{"epsilon": 1.0, "public": ["g"]} | arguments)


@pytest.mark.parametrize("pair", [(0,), (3, 1), (0, float("inf")), "ab", (0, 1, 2), (0.5, 3), (-1, 4), (0, 2**41), None, (1, 1)], ids=repr)
def test_bounds_of_a_count_are_checked(pair):
    model = build(lambda: pm.Poisson("k", pm.Gamma("lam", 2, 1), observed=R["k"]))
    with pytest.raises(pmdp.Refusal, match="bounds"):
        pmdp.release(model, epsilon=1.0, bounds={"k": pair})


@pytest.mark.parametrize("pair", [(1e15, 1e15 + 1), (-1.7e308, 1.7e308), (float("nan"), 1)], ids=repr)
def test_bounds_of_a_number_are_checked(pair):
    model = build(lambda: pm.Normal("x", pm.Normal("mu"), 1, observed=X))
    with pytest.raises(pmdp.Refusal, match="bounds"):
        pmdp.release(model, epsilon=1.0, bounds={"x": pair})


def test_missing_bounds_are_listed_by_inspect_and_refused_by_release():
    model = build(lambda: pm.Poisson("k", pm.Gamma("lam", 2, 1), observed=R["k"]))
    assert "Write bounds={'k': (0, 40)}" in flat(pmdp.inspect(model))
    with pytest.raises(pmdp.Refusal, match="needs bounds before anything is released"):
        pmdp.release(model, epsilon=1.0)


def test_bounds_of_successes_that_are_counted_are_written_out():
    """Where a covariate is in bins successes are counted one by one; of five trials up to five succeed."""

    def successes():
        p = pm.math.sigmoid(pm.Normal("a") + pm.Normal("b") * pm.Data("x", X))
        pm.Binomial("k", n=5, p=p, observed=R["y"])

    bounds = {"x": pmdp.Bins(-3, 3)}
    assert "Write bounds={'k': (0, 5)}" in flat(pmdp.inspect(build(successes), bounds=bounds))
    assert pmdp.inspect(build(successes), bounds=bounds | {"k": (0, 5)}).rows[0].needs is None


def test_everything_is_refused_before_sampling_is_paid_for(monkeypatch):
    monkeypatch.setattr(mechanisms, "_opendp_laplace", lambda *_: pytest.fail("noise was asked for"))
    model, _ = shared_bernoulli()
    for arguments in (
        {"public": "y"},
        {"public": 5},
        {"draws": 0},
        {"draws": True},
        {"return_inferencedata": False},
        {"step": object()},
        {"trace": object()},
        {"max_treedepth": 8},
        {"chain": 4},
        {"nuts": 8},
    ):
        with pytest.raises(pmdp.Refusal):
            pmdp.sample(model=model, epsilon=1.0, **arguments)


def test_refusal_is_the_same_whatever_the_records_say():
    """Accept or refuse, and its words, come from the graph: values of equal shape and type change nothing."""
    for body, _ in REFUSED[:2]:
        words = set()
        for seed in range(3):
            R.update(records(N, seed))
            with pytest.raises(pmdp.Refusal) as caught:
                pmdp.release(build(body), epsilon=1.0)
            words.add(str(caught.value))
        assert len(words) == 1
