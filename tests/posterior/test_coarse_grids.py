"""Grids whose points are further apart than a posterior is wide: what was drawn tells, and the user is told."""

import warnings

import numpy as np
import pymc as pm
import pytest

import pymc_dp as pmdp

ROWS = np.random.default_rng(2).standard_t(4, size=500) + 0.25


def model(low=-5.0, high=5.0):
    with pm.Model() as made:
        pm.StudentT("y", nu=4, mu=pm.Uniform("mu", low, high), sigma=1.0, observed=ROWS)
    return made


def drawn(points, draws=20, **priors):
    """At an epsilon that leaves the likelihood as it is."""
    how = pmdp.PosteriorSample(draws, points=points)
    return pmdp.sample(model=model(**priors), epsilon=1e5, mechanism=how, bounds={"y": (-30, 30)}, missing={}, ledger=None)


@pytest.mark.filterwarnings("ignore::pymc_dp.UnaccountedWarning", "ignore::pymc_dp.WeakPrivacyWarning")
class TestWarning:
    def test_draws_at_one_or_two_points_are_said_with_what_to_write(self):
        """The posterior's standard deviation is about .055; of 20 draws at points .5 apart a third point is one in many millions."""
        with pytest.warns(pmdp.ConvergenceWarning, match=r"Draws of mu lie at one or two of 21 points .* 0.5 apart.* points=42"):
            drawn(21)

    @pytest.mark.parametrize("fine", [{"points": 2001}, {"points": 61, "low": 0.0, "high": 0.6}], ids=["points", "priors"])
    def test_what_it_says_to_write_ends_it(self, fine):
        """Two points then hold .15 of a posterior at most, and more than 13 of 20 draws with a probability below 1e-7."""
        with warnings.catch_warnings():
            warnings.simplefilter("error", pmdp.ConvergenceWarning)
            drawn(**fine)

    def test_too_few_draws_say_nothing(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error", pmdp.ConvergenceWarning)
            drawn(21, draws=9)

    def test_where_warnings_are_errors_the_draws_are_in_it(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error", pmdp.ConvergenceWarning)
            with pytest.raises(pmdp.ConvergenceWarning) as raised:
                drawn(21)
        assert raised.value.tree.posterior["mu"].sizes["draw"] == 20
