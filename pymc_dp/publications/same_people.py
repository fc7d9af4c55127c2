"""Several noisy statistics of the same records: they are readings of one true statistic, which the likelihood must count once.

Given the records the noises are independent, so the likelihood is the sum over the true statistic S of p(S) times the product of the
noises' laws at z_k - S. Of discrete Gaussian noises that product is, as a function of S,

    prod_k exp(-(z_k - S)^2 / 2 s_k^2)  =  constant * exp(-(z - S)^2 / 2 s^2),   1/s^2 = sum_k 1/s_k^2,   z = s^2 sum_k z_k / s_k^2,

exactly and on any lattice: one statistic with Gaussian noise of scale s, at a z that need not be whole. The constant rests on no unknown.
Of Laplace noises no single noise does the same.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

import numpy as np

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.releases.noisy_statistic import NoisyStatistic

FINER = 2**20
"""Parts of a lattice unit to which the combined number is rounded, at most."""
BITS = 62
"""Of whole numbers as they are held, besides the sign."""
APART = "If they are of different people, leave them out of same_people."


def combined(holders: Sequence[str], statistics: Sequence[NoisyStatistic]) -> NoisyStatistic:
    """One statistic that says what these say together of one true statistic.

    Parameters
    ----------
    holders : sequence of str
    statistics : sequence of NoisyStatistic
        Of the same records, one of each holder.

    Raises
    ------
    Refusal
        Where they are of different statistics, or their noises have no single one that does the same.
    """
    first = statistics[0]
    if len(statistics) == 1:
        return first
    for holder, other in zip(holders[1:], statistics[1:], strict=True):
        if words := _unlike(first, other):
            raise Refusal(
                f"{holders[0]} and {holder} are said to hold the same people, but {words}, so what they released is not one true"
                f" statistic with two noises. {APART} Otherwise use one of them."
            )
    if any(noisy.mechanism != "gaussian" for noisy in statistics):
        raise Refusal(
            f"{' and '.join(holders)} are said to hold the same people. Their true statistic is one, and only Gaussian noises on one number"
            f" are together one noise; these are {', '.join(noisy.mechanism for noisy in statistics)}. {APART} Otherwise use the one with"
            " less noise, or release with mechanism=pymc_dp.Gaussian(delta=...)."
        )
    if any(
        noisy.weights.size or noisy.multipliers.size or noisy.covariance.size or noisy.anchor.size or noisy.residuals
        for noisy in statistics
    ):
        raise Refusal(
            f"{' and '.join(holders)} are said to hold the same people. What they released of {first.variable} are sums with weights that"
            f" differ from release to release, which are not combined. {APART} Otherwise use one of them."
        )
    precision = np.array([noisy.scale**-2.0 for noisy in statistics])
    share = precision / precision.sum()
    # Large sums have lattice units that are small beside their noise, and are held in 64 bits: their units are divided by less.
    largest = max(abs(int(value)) for noisy in statistics for value in noisy.noisy.ravel())
    finer = min(FINER, 2 ** max(BITS - 1 - largest.bit_length(), 0))
    # Differences are small numbers, so that nothing is lost of large sums before it is rounded.
    more = sum(np.rint(w * finer * (noisy.noisy - first.noisy)) for w, noisy in zip(share, statistics, strict=True))
    return replace(
        first,
        noisy=first.noisy * finer + np.asarray(more).astype(np.int64),
        known=first.known * finer,
        divisor=finer,
        scale=finer / sqrt(precision.sum()),
        deviation=first.lattice / sqrt(precision.sum()),
    )


def _unlike(first: NoisyStatistic, other: NoisyStatistic) -> str | None:
    """Why two statistics are not of one true number, in words; None where they are."""
    facts, others = first.facts(), other.facts()
    if facts["domain"] != others["domain"] or facts["covariates"] != others["covariates"]:
        return "they have different bounds or levels"
    if first.divisor != 1 or other.divisor != 1:
        return "theirs are computed from other numbers that were released"
    if first.sizes != other.sizes or not np.array_equal(first.n, other.n):
        return "they have different numbers of records"
    alike = ("distribution", "structure", "tabulated", "statistics", "regression", "left_out")
    if any(json.dumps(facts[name]) != json.dumps(others[name]) for name in alike) or first.noisy.shape != other.noisy.shape:
        return "they released different statistics"
    arrays = (*zip(first.inputs, other.inputs, strict=True), (first.known, other.known))
    if not all(np.array_equal(first_array, other_array) for first_array, other_array in arrays):
        return "their public arrays differ"
    return None
