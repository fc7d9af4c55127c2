"""Laws of noise that are read off OpenDP measurements, against what the measurements release."""

from collections.abc import Callable

import numpy as np
import opendp.prelude as dp
import pymc as pm
import pytest

import pymc_dp as pmdp
from pymc_dp.publications.opendp_laws import from_opendp

dp.enable_features("contrib", "honest-but-curious")
WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)
REAL = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
VECTOR = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
QUERY = (
    dp.Context.compositor(
        data=[1, 2, 3],
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
        domain=dp.vector_domain(dp.atom_domain(T=int)),
    )
    .query()
    .count()
    .laplace()
)
DRAWS = 4_000
FAR = 5.0
"""Standard errors: with the 12 numbers compared below a false alarm has a probability below 1e-5."""


@pytest.mark.parametrize(
    ("measurement", "law"),
    [
        (dp.m.make_laplace(*WHOLE, scale=3.0), pmdp.DiscreteLaplace(3.0)),
        (dp.m.make_geometric(*WHOLE, scale=3.0), pmdp.DiscreteLaplace(3.0)),
        (dp.m.make_laplace(*VECTOR, scale=2.5), pmdp.DiscreteLaplace(2.5)),
        (WHOLE >> dp.m.then_gaussian(4.0), pmdp.DiscreteGaussian(4.0)),
        (dp.m.make_laplace(*REAL, scale=0.5), pmdp.LaplaceNoise(0.5)),
        (dp.m.make_gaussian(*REAL, scale=0.5), pmdp.GaussianNoise(0.5)),
        (dp.m.make_randomized_response_bool(0.75), pmdp.RandomisedResponse(0.75, 2)),
        (dp.m.make_randomized_response(["no", "perhaps", "yes"], 0.6), pmdp.RandomisedResponse(0.6, 3)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_law_is_that_of_the_constructor(measurement: dp.Measurement, law: pmdp.DiscreteLaplace) -> None:
    read = from_opendp(measurement)
    assert type(read) is type(law)
    assert (read.words, read.setting) == (law.words, law.setting)


@pytest.mark.parametrize("make", [dp.m.make_laplace, dp.m.make_gaussian])
def test_whole_numbers_are_released_as_the_law_says(make: Callable) -> None:
    """Shares of differences of -3 to 2: a law of twice the scale would be 10 standard errors off at 0."""
    measurement = make(*WHOLE, scale=3.0)
    law = from_opendp(measurement)
    assert isinstance(law, pmdp.DiscreteLaplace | pmdp.DiscreteGaussian)
    differences = np.array([measurement(100) for _ in range(DRAWS)]) - 100
    chances = law.pmf(3.0)
    reach = len(chances) // 2
    for k in range(-3, 3):
        p = chances[reach + k]
        assert abs((differences == k).mean() - p) < FAR * np.sqrt(p * (1 - p) / DRAWS)


def test_answers_are_true_as_often_as_the_law_says() -> None:
    measurement = dp.m.make_randomized_response(["no", "perhaps", "yes"], 0.6)
    law = from_opendp(measurement)
    assert isinstance(law, pmdp.RandomisedResponse)
    answers = np.array([measurement("perhaps") for _ in range(DRAWS)])
    for code, level in enumerate(["no", "perhaps", "yes"]):
        p = law.table(0.6)[1, code]
        assert abs((answers == level).mean() - p) < FAR * np.sqrt(p * (1 - p) / DRAWS)


@pytest.mark.parametrize(
    ("measurement", "words"),
    [
        ((WHOLE >> dp.m.then_laplace(3.0)) >> (lambda x: 2 * x), "chain of several steps"),
        (dp.t.make_count(dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()) >> dp.m.then_laplace(3.0), "chain of several"),
        (dp.m.make_geometric(*WHOLE, scale=3.0, bounds=(0, 10)), "moves into bounds"),
        (dp.m.make_laplace(*REAL, scale=3.0, k=1), r"grid of 2\*\*1"),
        (dp.m.make_noise(*WHOLE, output_measure=dp.max_divergence(), scale=2.0), "make_noise, whose law"),
        (dp.m.make_user_measurement(*WHOLE, dp.max_divergence(), lambda x: x, lambda d: 0.0), "make_user_measurement"),
        (dp.t.make_count(dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()), "make_count"),
        (WHOLE[0], "atom_domain"),
        (QUERY, "Query"),
    ],
    ids=["after", "before", "bounds", "grid", "noise", "user", "transformation", "domain", "query"],
)
def test_what_does_more_than_add_noise_is_refused(measurement: object, words: str) -> None:
    with pytest.raises(pmdp.Refusal, match=words) as refusal:
        pmdp.Codebook(measurement)
    assert "make_laplace(*space, scale=10.0)" in str(refusal.value)


def test_a_grid_finer_than_the_noise_is_continuous() -> None:
    law = from_opendp(dp.m.make_laplace(*REAL, scale=3.0, k=-40))
    assert isinstance(law, pmdp.LaplaceNoise)


def test_a_model_takes_a_measurement_wherever_it_takes_a_law() -> None:
    noisy = dp.m.make_laplace(*WHOLE, scale=10.0)

    def density(law: object) -> float:
        with pm.Model() as model:
            pm.Poisson("visits", pm.Gamma("rate", 2, 0.02), observed=[87, 40])
        public = pmdp.published(model, {"visits": law})
        return float(public.compile_logp()({"rate_log__": 4.0}))

    assert density(noisy) == density(pmdp.DiscreteLaplace(10.0))
    assert density([noisy, pmdp.Clipped(lower=0)]) == density([pmdp.DiscreteLaplace(10.0), pmdp.Clipped(lower=0)])
    with pm.Model() as one:
        pmdp.Noisy("visits", pm.Poisson.dist(pm.Gamma("rate", 2, 0.02)), noisy, observed=[87, 40])
    assert float(one.compile_logp()({"rate_log__": 4.0})) == pytest.approx(density(noisy))
