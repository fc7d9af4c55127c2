"""How epsilon, or rho, is divided among several observed variables unless the user says it: so that expected posteriors are narrowest.

Neighbouring data sets may differ in every observed variable at once, and in each by as much as it can move: nothing binds one column to
another. So in L1, and in squared L2, what one record moves adds up over observed variables, whatever scale each has its noise at, and a
division decides all. Shares of rho are the joint Gaussian mechanism: with scales s_i the cost of all is sum_i D_i² / (2 s_i²), which is
what shares of rho add up to, so there is no second, better way to release the variables together (docs/theory.md).

Everything here rests on what is public: numbers of records, cells, sensitivities and priors. Shapes: D draws of the priors, K statistics,
S cells or sums.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log

import numpy as np

STEPS = 20
"""An equal share is so many steps: all shares are whole numbers of steps."""
LEAST = 10
"""So many steps each has at least, half an equal share: no noise is more than twice as wide as with equal shares."""
WORSE = 1.1
"""By so much wider than with equal shares no variable's posterior is expected to be, as a geometric mean over its statistics."""


@dataclass(frozen=True)
class Divided:
    """What one observed variable has of a release.

    Attributes
    ----------
    variable : str
    share : Fraction
        Of epsilon, or of rho with Gaussian noise.
    noise : float
        Standard deviation of the noise on one of its numbers, in units of the statistic; of several rounds, the last.
    """

    variable: str
    share: Fraction
    noise: float


@dataclass(frozen=True, eq=False)
class Expectation:
    """What a release is expected to tell of one observed variable.

    A released sum of ``signal`` times a mean has the variance ``signal`` times ``within``, and noise. The mean itself has the variance
    ``between`` by the priors.

    Attributes
    ----------
    name : str
    signal : (S,) ndarray
        Records in a cell, or what stands for them where sums are weighted.
    within : (D, K) ndarray
        Variance of a statistic of one record, given the unknowns, at every draw of the priors.
    between : (K, S) ndarray
        Variance of its mean by the priors.
    noise : float
        Variance of the noise at all of epsilon, or of rho.
    power : int
        By which power of the share the noise falls: 2 of epsilon, 1 of rho.
    """

    name: str
    signal: np.ndarray
    within: np.ndarray
    between: np.ndarray
    noise: float
    power: int

    def width(self, shares: np.ndarray) -> np.ndarray:
        """Mean logarithm of a posterior's expected standard deviation, at each of these shares."""
        informative = self.between > 0
        if not informative.any():
            return np.zeros(len(shares))
        result = []
        for share in shares:
            variance = self.signal * self.within[:, :, None] + self.noise / share**self.power
            result.append(-0.5 * np.log(1 / np.where(informative, self.between, 1.0) + self.signal**2 / variance)[:, informative].mean())
        return np.array(result)


def divided(expectations: Sequence[Expectation], disjoint: Sequence[Sequence[str]] = ()) -> dict[str, Fraction]:
    """The shares that make the geometric mean of expected posterior standard deviations least, over all observed variables.

    Every observed variable counts as one, however many numbers it is released as; those of a disjoint group have one share. All shares are
    tried that are whole numbers of steps (one variable after the other, with the best for what is left), but for those with which a
    variable is expected to be wider than with equal shares by more than ``WORSE``. Equal shares are among them.
    """
    group_of = {name: tuple(group) for group in disjoint for name in group}
    groups = list(dict.fromkeys(group_of.get(expectation.name, (expectation.name,)) for expectation in expectations))
    by_name = {expectation.name: expectation for expectation in expectations}
    total, spare = STEPS * len(groups), (STEPS - LEAST) * len(groups)
    steps = np.arange(LEAST, LEAST + spare + 1) / total
    best, chosen = np.where(np.arange(spare + 1) == 0, 0.0, np.inf), []
    for group in groups:
        several = np.array([by_name[name].width(steps) for name in group])
        worse = (several > several[:, [STEPS - LEAST]] + log(WORSE)).any(axis=0)
        width = np.where(worse, np.inf, several.sum(axis=0))
        candidates = [best[s::-1] + width[: s + 1] for s in range(spare + 1)]  # of s steps in all, how many go to this group
        chosen.append([int(np.argmin(candidate)) for candidate in candidates])
        best = np.array([candidate.min() for candidate in candidates])
    held, left = [], spare
    for steps_of_group in reversed(chosen):
        held.append(steps_of_group[left])
        left -= steps_of_group[left]
    return {name: Fraction(LEAST + k, total) for group, k in zip(reversed(groups), held, strict=True) for name in group}
