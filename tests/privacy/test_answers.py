"""Randomised answers cost what is charged, exactly, whatever a record holds, and a record changes its own answer alone."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

import pymc_dp as pmdp
from pymc_dp.privacy import mechanisms
from pymc_dp.privacy.accounting import Cost
from pymc_dp.privacy.mechanisms import Laplace, randomised_responses, truth_probability
from pymc_dp.privacy.receipts import Draw, Receipt
from pymc_dp.releases.answers import levels_of_records
from pymc_dp.releases.source import Source

EPSILONS = ["0.000001", "0.01", "0.3", "1", "2.5", "4", "9", "30", "45", "700"]


def scale_of(epsilon):
    return Laplace().calibrate(1, 1, Cost(Fraction(epsilon)))


def receipt_of(scale, size):
    draw = Draw("y", "answer", 1, 1, scale, size)
    return Receipt([draw], Cost(draw.pure))


def worst(truth, levels):
    """The largest ratio of the probabilities of an answer given two records, as a fraction: over all answers and all pairs."""
    p = Fraction(truth)
    other = (1 - p) / (levels - 1)
    table = [[p if told == true else other for told in range(3)] for true in range(3)] if levels > 2 else [[p, other], [other, p]]
    return max(first / second for column in zip(*table, strict=True) for first in column for second in column)


@pytest.mark.parametrize("levels", [2, 3, 17, 65, 1000])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_answer_tells_more_than_is_paid_for(epsilon, levels):
    """The ratio as a fraction against exp(epsilon) of 80 digits, less a unit of the 78th; 16 doubles more of truth cost more than that."""
    truth = truth_probability(scale_of(epsilon), levels)
    with localcontext() as context:
        context.prec = 80
        least = Fraction(Decimal(epsilon).exp()) * (1 - Fraction(1, 10**78))
    assert worst(truth, levels) <= least
    if Fraction(epsilon) < 30:
        assert worst(truth + 16 * np.spacing(truth), levels) > least


@pytest.mark.parametrize("epsilon", ["1", "4"])
def test_what_is_told_has_the_law_that_is_modelled(epsilon):
    """6,000 answers of each of two levels of four, chi-square with 3 degrees of freedom; false alarm one in a million.

    Power: were the others told with (1 - p) / 4 each and the truth with the rest, the non-centrality would be above 60 at epsilon 1 and
    would not be found at 4, where that is next to nothing; told with epsilon 10 % more, it would be 100 and 70.
    """
    scale = scale_of(epsilon)
    for level in (0, 2):
        told = randomised_responses(np.full(6_000, level), 4, scale, receipt_of(scale, 6_000))
        for share, alike in ((1.0, True), (1.25, False)):
            p = truth_probability(scale_of(Fraction(epsilon) * Fraction(share)), 4)
            expected = 6_000 * np.where(np.arange(4) == level, p, (1 - p) / 3)
            found = chi2(3).sf(((np.bincount(told, minlength=4) - expected) ** 2 / expected).sum())
            assert (found > 1e-6) == alike


def test_answers_are_paid_for_once():
    receipt = receipt_of(1.0, 3)
    with pytest.raises(pmdp.Refusal, match="paid for"):
        randomised_responses(np.zeros(4, dtype=int), 3, 1.0, receipt)
    randomised_responses(np.zeros(3, dtype=int), 3, 1.0, receipt)
    with pytest.raises(pmdp.Refusal, match="paid for"):
        randomised_responses(np.zeros(3, dtype=int), 3, 1.0, receipt)


@pytest.mark.parametrize("places", [[0, 3], [-1, 0], [[0, 1]]])
def test_levels_that_are_none(places):
    with pytest.raises(pmdp.Refusal):
        randomised_responses(np.array(places), 3, 1.0, receipt_of(1.0, 2))


def test_an_epsilon_that_tells_nothing():
    with pytest.raises(pmdp.Refusal, match="larger epsilon"):
        truth_probability(1e18, 65)


VALUES = [0.0, 1.0, 1.5, -1e300, np.inf, -np.inf, np.nan, None, "1.5", "text", True, 10**400, 1j, pd.NaT, (1, 2)]


def test_whatever_a_record_holds_it_has_a_level():
    """A value at an edge is in the bin below; what is not a finite number is incomplete, the last level."""
    edges = {"x": (0.0, 1.0, 2.0, 3.0), "y": (0.0, 1.0, 2.0)}
    table = pd.DataFrame({"x": pd.Series(VALUES, dtype=object), "y": np.zeros(len(VALUES))})
    levels = levels_of_records(Source.of(table, ("x", "y")), edges)
    assert levels.tolist() == [0, 0, 2, 0, 6, 6, 6, 6, 2, 6, 0, 6, 6, 6, 6]


def test_a_record_changes_its_own_answer_alone(monkeypatch):
    """Whatever stands in its place, and with the randomisation taken away: 200 replacements of one of 6 records."""
    monkeypatch.setattr(mechanisms, "_opendp_answers", lambda places, levels, truth: places)
    edges, rng = {"x": (0.0, 1.0, 2.0, 3.0)}, np.random.default_rng(1)
    for _ in range(200):
        first = pd.DataFrame({"x": rng.normal(1.5, 2, 6)}, dtype=object)
        second, row = first.copy(), rng.integers(6)
        second.loc[row, "x"] = VALUES[rng.integers(len(VALUES) - 1)]
        several = [levels_of_records(Source.of(table, ("x",)), edges) for table in (first, second)]
        assert (np.delete(several[0], row) == np.delete(several[1], row)).all()


@pytest.mark.parametrize("levels", [2, 3, 4, 7, 10, 17, 100, 257, 4096])
@pytest.mark.parametrize("epsilon", ["2e-17", "7.4e-17", "1.1e-16", "1.61e-16", "2.3e-16", "3.5e-16", "1e-15"])
def test_epsilons_next_to_rounding_are_refused_or_tell_something(epsilon, levels):
    """The truth is then told more often than each other level, and no more than is paid for; doubles near 1 / K may lie below it."""
    try:
        truth = truth_probability(scale_of(epsilon), levels)
    except pmdp.Refusal:
        return
    assert Fraction(truth) * levels > 1
    assert worst(truth, levels) <= 1 + Fraction(epsilon)
