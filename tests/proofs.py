"""Proofs that no two records move the integers of a release further apart than is declared: of what the code computes, not of a formula.

Three ways to know how far apart two records can be:

* *all pairs*: every vector of integers that a record can become is listed, or a set that holds them all, and the largest distance of
  two of them is found exactly, whatever the arithmetic before the last rounding did;
* *certified bound*: the statistics are polynomials of integers in a box, and their largest distance is bounded in exact rational
  arithmetic, without trying;
* *argument + tested pairs*: a written argument, and pairs that try to exceed what it says.

All distances are exact integers or fractions. ``docs/proofs.md`` is made from what is here, by ``docs/make_proofs.py``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise, permutations, product
from math import ceil, floor, isqrt, pi

import numpy as np
import pandas as pd
import pytensor.tensor as pt
from scipy.special import expit
from scipy.stats import poisson

from pymc_dp.families.anchors import first_anchor
from pymc_dp.families.family import Domain, Family, Scaled, all_families, complete, named
from pymc_dp.families.grid import POINTS
from pymc_dp.families.scores import Scores, record_scores
from pymc_dp.families.second_moments import Regression
from pymc_dp.models.row_patterns import PATTERNS
from pymc_dp.models.spec import Likelihood, Placeholder
from pymc_dp.models.tabulated import BINNED, TABLE, Table
from pymc_dp.plans.bins import Bins
from pymc_dp.plans.network import Network, Node, record_splits
from pymc_dp.plans.person import Person
from pymc_dp.plans.plan import planned
from pymc_dp.plans.protection import Individual
from pymc_dp.plans.statistic import PlannedStatistic
from pymc_dp.posterior.ball_regression import cost_in_ball
from pymc_dp.posterior.price import NAT
from pymc_dp.posterior.tables import _scores, points
from pymc_dp.privacy.accounting import Cost
from pymc_dp.privacy.mechanisms import Laplace, truth_probability
from pymc_dp.queries.language import Question
from pymc_dp.queries.schema import Schema
from pymc_dp.releases.answers import levels_of_records
from pymc_dp.releases.source import Source
from pymc_dp.releases.statistics import Cells
from pymc_dp.releases.totals import clamped, exact_totals

ROWS = Domain(0, 1, levels=3, unknown=(False, True), known=(1.0, None))
"""Rows of three answers."""
SLACK = Fraction(1, 2**30)
"""By so much of a lattice unit a cosine or sine may be off before it is rounded: 2**-45, where numpy's are off by less than 2**-50."""


@dataclass(frozen=True)
class Verdict:
    """One number that the code declares, beside what is proved of it; in lattice units, or their squares.

    Attributes
    ----------
    what : str
    declared : int
    bound : int or Fraction
        No two records are further apart: proved.
    attained : int
        Two records are so far apart: evaluated by the code.
    """

    what: str
    declared: int
    bound: int | Fraction
    attained: int

    @property
    def holds(self) -> bool:
        """Whether what is declared is no less than what is proved, which is no less than what was found."""
        return self.attained <= self.bound <= self.declared

    @property
    def share(self) -> float:
        """Of what is declared, how much some pair of records attains."""
        return self.attained / self.declared if self.declared else 1.0


@cache
def once(prover: Callable, *given: object) -> object:
    """What a prover says, computed once in a process: for the tests and the page, which ask for the same."""
    return prover(*given)


# ---------- largest distances in a list of integer vectors
def largest_L1(points: np.ndarray) -> int:  # noqa: N802 - the norm's name
    """The largest L1 distance of two of the points (M, K), exactly.

    abs(x) is the largest of x and -x, so the L1 distance of two points is the largest, over signs of the coordinates, of the
    difference of their signed sums; and the largest of that over all pairs is the range of the signed sum. Signs and their
    opposites have the same range.
    """
    points = np.asarray(points)
    signs = (np.array((1, *rest)) for rest in product((1, -1), repeat=points.shape[1] - 1))
    return max(int(np.ptp(points @ sign)) for sign in signs)


def largest_of_pairs(points: np.ndarray) -> tuple[int, int]:
    """The largest L1 distance, and the largest squared L2 distance, of two of the points (M, K), by looking at every pair."""
    several = np.unique(np.asarray(points), axis=0)
    farthest = squared = 0
    for one in several:
        apart = np.abs(several - one)
        farthest, squared = max(farthest, int(apart.sum(axis=1).max())), max(squared, max_square(apart))
    return farthest, squared


def max_square(rows: np.ndarray) -> int:
    """The largest squared L2 norm of integer rows, exactly: in 64 bits where they suffice, otherwise in Python's own integers."""
    rows = np.asarray(rows)
    if int(np.abs(rows).max(initial=0)) ** 2 * max(rows.shape[1], 1) >= 2**63:
        rows = rows.astype(object)
    return int((rows * rows).sum(axis=1).max())


def max_norm(rows: np.ndarray) -> int:
    """The largest L1 norm of integer rows."""
    return int(np.abs(rows).sum(axis=1).max())


# ---------- doubles, in their order
def ordinal(values: np.ndarray) -> np.ndarray:
    """The place of doubles among all doubles, as int64: neighbours differ by 1, and both zeros are 0."""
    bits = np.asarray(values, dtype=np.float64).view(np.int64)
    return np.where(bits >= 0, bits, np.int64(-(2**63)) - bits)


def double_at(places: np.ndarray) -> np.ndarray:
    """The doubles at these places: the inverse of ``ordinal``."""
    places = np.asarray(places, dtype=np.int64)
    return np.where(places >= 0, places, np.int64(-(2**63)) - places).view(np.float64)


def steps_of(function: Callable[[np.ndarray], np.ndarray], low: float, high: float) -> np.ndarray:
    """All doubles of [low, high] next to a place where a monotone integer function changes, and both ends: in increasing order.

    Between two of them it is constant, so what it is at these it is at all doubles. Found by halving the doubles between two points,
    for all values at once. Where the function is not monotone by rounding, each value that lies between those at the ends is still
    passed at two neighbouring doubles, which are found.
    """
    grid = np.unique(np.linspace(low, high, 2**12 + 1).clip(low, high))
    at = function(grid)
    rising = 1 if at[-1] >= at[0] else -1
    wanted = np.arange(rising * at[0] + 1, rising * at[-1] + 1)
    reached = np.maximum.accumulate(rising * at)
    after = np.searchsorted(reached, wanted)
    above, below = ordinal(grid[after]), ordinal(grid[np.maximum(after - 1, 0)])
    while (above - below > 1).any():
        middle = below + (above - below) // 2
        up = rising * function(double_at(middle)) >= wanted
        above, below = np.where(up, middle, above), np.where(up, below, middle)
    return np.unique(np.concatenate([[low, high], double_at(below), double_at(above)]))


# ---------- what one value can become
def examples() -> list[tuple[Family, Domain]]:
    """Every family with the domains it is tried on, and a few more that stretch it."""
    own = [(family, example.domain) for family in all_families() for example in family.EXAMPLES]
    more = [
        (PATTERNS, ROWS), (TABLE, Domain(2, 9)), (TABLE, Domain(0, 60)), (BINNED, Domain(0, 5, edges=(0.0, 0.5, 2.0, 4.5, 5.0))),
        (named("Binomial"), Domain(0, 2.0**31, unknown=(False, True), known=(2.0**31, None))),
        (named("Poisson"), Domain(0, 2.0**40 - 1, unknown=(True,))),
        (named("Poisson"), Domain(2.0**40 - 2, 2.0**40 - 1, unknown=(True,))),
        (named("Categorical"), Domain(0, 6, levels=7, unknown=(True,))),
        (named("Multinomial"), Domain(0, 3, levels=5, unknown=(False, True), known=(3.0, None))),
        (named("Normal"), Domain(1e6, 1e6 + 1, unknown=(True, True))),
        (named("LogNormal"), Domain(1e-300, 1e300, unknown=(True, True))),
        (named("Gamma"), Domain(1e-8, 1e9, unknown=(True, True))),
        (named("Beta"), Domain(1e-12, 1 - 1e-12, unknown=(True, True))),
        (named("Weibull"), Domain(1, 1.001, unknown=(False, True), known=(300.0, None))),
    ]  # fmt: skip
    return own + more


def integers_of(family: Family, domain: Domain, values: object) -> np.ndarray:
    """What the code makes of values, whatever they are: int64 (M, K)."""
    with np.errstate(all="ignore"):
        return np.stack(family.exact(complete(np.asarray(values), domain), domain), axis=-1)


def holding(family: Family, domain: Domain) -> tuple[str, np.ndarray]:
    """Integer vectors (M, K) among which, or between which, is every vector that a value can become; and why.

    Distances and norms are convex in each of two records, so in a box or triangle their largest values are at its corners.
    """
    name, K = family.DISTRIBUTION, len(family.statistics(domain))
    if name == "VonMises":
        return "262,144 lattice points near the circle, all pairs", near_circle(POINTS)
    if name in {"Normal", "LogNormal"}:
        u = np.arange(-POINTS, POINTS + 1)
        return "65,537 vectors, all pairs", u[:, None] if K == 1 else np.stack([u * POINTS, u * u], axis=-1)
    if name == "CensoredExponential":
        return "corners of the triangle of events and of what is none", np.array([(-POINTS, POINTS), (POINTS, POINTS), (0, 0)])
    if isinstance(family, Scaled):
        words = "the ends of one integer" if K == 1 else f"the corners of a box of {K} integers"
        return words, np.array(list(product((-POINTS, POINTS), repeat=K)))
    low, high = int(domain.lower), int(domain.upper)
    if K > 1 or domain.levels:
        values = every_record(family, domain)
        return f"{len(values):,} values, all pairs", integers_of(family, domain, values)
    return f"the ends of {low:,} to {high:,}", np.array([[low], [high]])


def every_record(family: Family, domain: Domain) -> np.ndarray:
    """All values that whole numbers in the bounds make: (M,), or (M, levels) where a value has several entries."""
    inside = np.arange(int(domain.lower), int(domain.upper) + 1).astype(float)
    return np.array(list(product(inside, repeat=domain.levels))) if family.NDIM else inside


@cache
def near_circle(scale: int) -> np.ndarray:
    """All pairs of integers that the cosine and the sine of one angle can become, on a lattice of so many points either way: (M, 2).

    Each is within 1/2 and SLACK of ``scale`` times the true one. So for an integer c the true one is between c - 1/2 - SLACK and
    c + 1/2 + SLACK, that of the other coordinate is between the square roots that belong to these, and its integer is within 1/2 and
    SLACK of that. Square roots are those of integers, rounded outwards: everything is in units of SLACK / 2.
    """
    unit = int(2 / SLACK)
    off = unit // 2 + 2
    radius = scale * unit
    c = np.arange(-scale, scale + 1) * unit
    nearest = np.maximum(np.abs(c) - off, 0)
    farthest = np.minimum(np.abs(c) + off, radius)
    largest = np.array([isqrt(int(radius**2 - x * x)) + 1 for x in nearest.tolist()])
    smallest = np.array([isqrt(int(radius**2 - x * x)) for x in farthest.tolist()])
    top = np.minimum((largest + off) // unit, scale)
    bottom = np.maximum(-((off - smallest) // unit), 0)
    rows = np.repeat(np.arange(len(c)), top - bottom + 1)
    s = np.arange(len(rows)) - np.repeat(np.cumsum(top - bottom + 1) - (top - bottom + 1), top - bottom + 1) + bottom[rows]
    points = np.stack([c[rows] // unit, s], axis=-1)
    return np.unique(np.concatenate([points, points * [1, -1]]), axis=0)


def breaks(family: Family, domain: Domain) -> list[float]:
    """Where statistics of a value stop being monotone, with the bounds."""
    inner: Iterable[float] = ()
    if family.DISTRIBUTION in {"Laplace", "HalfNormal"}:
        inner = [float(domain.known[0] or 0.0)]
    if family.DISTRIBUTION == "VonMises":
        inner = [-pi / 2, 0.0, pi / 2]
    if family.DISTRIBUTION == "CensoredExponential":  # an event just before the end, and what reaches it
        inner = [float(np.nextafter(end, 0.0)) if before else end for end in (domain.known[1], domain.upper) for before in (True, False)]
    return [domain.lower, *sorted(x for x in inner if domain.lower < x < domain.upper), domain.upper]


def reached(family: Family, domain: Domain) -> np.ndarray:
    """Every vector of integers (M, K) that a double can become, in the order of the doubles.

    Each statistic is monotone between two breaks but for the last digits of a logarithm, so its vector changes at ``steps_of`` alone.
    Of (u P, u²) both are functions of the integer u.
    """
    ends, K = breaks(family, domain), len(family.statistics(domain))
    of_u = K == 2 and family.DISTRIBUTION in {"Normal", "LogNormal"}

    def statistic(k: int) -> Callable[[np.ndarray], np.ndarray]:
        return lambda values: integers_of(family, domain, values)[:, k] // (POINTS if of_u else 1)

    several = range(1 if of_u else K)
    doubles = [steps_of(statistic(k), low, high) for low, high in pairwise(ends) for k in several]
    return integers_of(family, domain, np.unique(np.concatenate(doubles)))


def tried(family: Family, domain: Domain) -> np.ndarray:
    """What the code makes of a few hundred values that stretch its statistics: (M, K)."""
    if not isinstance(family, Scaled) and family.DISTRIBUTION not in {"Normal", "LogNormal"}:
        small = domain.upper - domain.lower < 5000
        return integers_of(family, domain, every_record(family, domain) if small else [domain.lower, domain.upper])
    inside = np.linspace(domain.lower, domain.upper, 257)
    if family.DISTRIBUTION == "LogNormal":
        inside = np.exp(np.linspace(np.log(domain.lower), np.log(domain.upper), 257))
    values = np.unique([*inside, *breaks(family, domain)])
    if family.NDIM:
        values = np.array(list(product((domain.lower, domain.upper), repeat=domain.levels)))
    return integers_of(family, domain, values)


def farthest_squared(points: np.ndarray) -> int:
    """The largest squared L2 distance of two of the points (M, K), exactly, by what they are.

    Few points: every pair. Many of them that are their own mirror image about 0: two points are no further apart than their norms
    together, and a point of the largest norm is as far from its image. Of (u P, u²) for all abs(u) <= P: u and v with s = u + v and
    d = u - v, abs(s) + abs(d) <= 2 P, are d² (P² + s²) apart, so for every s the largest abs(d) is worst.
    """
    points = np.asarray(points)
    if len(points) <= 2000:
        return largest_of_pairs(points)[1]
    if np.array_equal(np.unique(points, axis=0), np.unique(-points, axis=0)):
        return 4 * max_square(points)
    u = points[:, 0] // POINTS
    assert np.array_equal(points, np.stack([u * POINTS, u * u], axis=-1))
    assert np.array_equal(u, np.arange(-POINTS, POINTS + 1))
    s = np.arange(-2 * POINTS, 2 * POINTS + 1)
    return int(((2 * POINTS - np.abs(s)) ** 2 * (POINTS**2 + s**2)).max())


def of_one_value(family: Family, domain: Domain) -> tuple[Verdict, ...]:
    """L1, squared L2 and the largest entry of the statistics of one value: ``Sensitivity``."""
    sensitivity = family.sensitivity(domain)
    _, points = holding(family, domain)
    found = tried(family, domain)
    L1, squared = largest_of_pairs(found)
    return (
        Verdict("L1", sensitivity.difference, largest_L1(points) if points.shape[1] <= 12 else largest_of_pairs(points)[0], L1),
        Verdict("squared L2", sensitivity.square, farthest_squared(points), squared),
        Verdict("one entry", sensitivity.largest, int(np.abs(points).max()), int(np.abs(found).max())),
    )


def entries_of(family: Family, domain: Domain, integers: np.ndarray) -> np.ndarray:
    """The same values in the basis of ``CellSensitivity``: (M, L), as Python's integers where their squares may not fit 64 bits."""
    matrix = np.array(family.cell_sensitivity(domain).matrix, dtype=object)
    whole = np.concatenate([np.ones((len(integers), 1), dtype=np.int64), integers], axis=1)
    small = np.abs(matrix).sum() * int(np.abs(whole).max()) < 2**28
    return whole @ matrix.astype(np.int64).T if small else whole.astype(object) @ matrix.T


def in_cells(family: Family, domain: Domain) -> tuple[Verdict, ...]:
    """What a value in a private cell can bring and take away: ``CellSensitivity``.

    Entries are never negative and add up to the total, so that coming or going moves L1 by the total and squared L2 by no more than
    the square. Two values in different cells move by both together. In the same cell they move by no more: entries that are not
    negative are no further apart than their norms together, nor their squares than the squares together.
    """
    spread = family.cell_sensitivity(domain)
    entries = entries_of(family, domain, holding(family, domain)[1])
    found = entries_of(family, domain, tried(family, domain))
    sums = entries.sum(axis=1)
    return (
        Verdict("below 0", 0, -min(int(entries.min()), 0), 0),
        Verdict("L1 of one", spread.total, int(sums.max()), int(found.sum(axis=1).max())),
        Verdict("L1 of one, short of it", 0, spread.total - int(sums.min()), 0),
        Verdict("squared L2 of one", spread.square, max_square(entries), max_square(found)),
    )


# ---------- whole records, through the sums of a release
@dataclass(frozen=True)
class Setting:
    """Which likelihood whole records are tried on.

    Attributes
    ----------
    family : Family
    domain : Domain
    levels : int
        Of a private index; 0 for none.
    neighbours : str
    columns : int
        Of every record.
    """

    family: Family
    domain: Domain
    levels: int
    neighbours: str
    columns: int = 1

    @property
    def title(self) -> str:
        """In words."""
        name, cells = self.family.DISTRIBUTION, f"private index of {self.levels}" if self.levels else "no private index"
        several = "" if self.columns == 1 else f", {self.columns} columns" + (" with bounds of their own" if self.domain.columns else "")
        return f"{name}, {cells}{several}, {self.neighbours}"

    def plan(self, unit: object = "row") -> PlannedStatistic:
        """What would be released."""
        index = Placeholder(pt.tensor("index", dtype="int64", shape=(None,)), 0, "g", private=True, index=True, levels=self.levels)
        domain = self.domain
        likelihood = Likelihood(
            "y", self.family.DISTRIBUTION, self.family, unknown=domain.unknown, known=domain.known, levels=domain.levels,
            inputs=(index,) if self.levels else (), make=(lambda *_: None) if isinstance(self.family, Table) else None,
            between=(lambda *_: None) if self.family is BINNED else None,
            columns=(self.columns,) if self.columns > 1 else (),
        )  # fmt: skip
        natural = self.family.natural(domain.levels, domain.known) is not None
        given = Bins(edges=domain.edges) if domain.edges else list(domain.columns) or (domain.lower, domain.upper)
        return planned(likelihood, {} if natural else {"y": given}, self.neighbours, unit)

    def records(self) -> tuple[np.ndarray, np.ndarray]:
        """All records that can occur: values (M, *C, ...) and cells (M,). Fractions are rounded to these, what is beyond to the ends."""
        ends = self.domain.columns or ((self.domain.lower, self.domain.upper),) * self.columns
        each = [every_record(self.family, replace(self.domain, lower=lower, upper=upper, columns=())) for lower, upper in ends]
        values = np.array(list(product(*each)))
        values = values.reshape(len(values), *([self.columns] if self.columns > 1 else []), *each[0].shape[1:])
        cells = range(max(self.levels, 1))
        return np.concatenate([values for _ in cells]), np.repeat(list(cells), len(values))

    def sums(self, unit: object = "row") -> np.ndarray:
        """What a release would add noise to, had it one record alone, for every record: (M, numbers)."""
        step, (values, codes) = self.plan(unit), self.records()
        M = len(values)
        alone = Cells(np.arange(M), np.ones(M, dtype=int), ())  # every record has a public cell of its own
        private = {"index": codes[:, None].astype(float)} if self.levels else {}
        return clamped(exact_totals(values, step, alone, private, None, None, None)).reshape(M, -1)


def of_records(setting: Setting) -> tuple[Verdict, ...]:
    """L1 and squared L2 of all pairs of records, or of every record by itself where one comes or goes."""
    sensitivity, sums = setting.plan().sensitivity, setting.sums()
    if setting.neighbours == "add_remove":
        L1, squared = max_norm(sums), max_square(sums)
    else:
        L1, squared = largest_of_pairs(sums)
    return Verdict("L1", sensitivity.difference, L1, L1), Verdict("squared L2", sensitivity.square, squared, squared)


def of_persons(setting: Setting, rows: int) -> tuple[Verdict, ...]:
    """L1 and squared L2 of all pairs of people of whom so many rows count.

    A person is so many places, each with a record or nothing, and what is released is the sum over places. So two people are no further
    apart than so many times what any two places are, in both norms, and two whose places all say the same are so far apart.
    """
    unit = Person("patient", at_most=rows)
    sensitivity, places = setting.plan(unit).sensitivity, setting.sums(unit)
    places = np.concatenate([places, np.zeros_like(places[:1])])
    if setting.neighbours == "add_remove":
        L1, squared = max_norm(places), max_square(places)
    else:
        L1, squared = largest_of_pairs(places)
    found = (rows * L1, rows**2 * squared)
    return Verdict("L1", sensitivity.difference, found[0], found[0]), Verdict("squared L2", sensitivity.square, found[1], found[1])


def settings() -> list[Setting]:
    """Every family of whole numbers, with and without a private index, one column and several, under both kinds of neighbours."""
    discrete = [
        (named("Bernoulli"), Domain(0, 1, unknown=(True,))),
        (named("Binomial"), Domain(0, 12, unknown=(False, True), known=(12.0, None))),
        (named("Poisson"), Domain(2, 9, unknown=(True,))),
        (named("Geometric"), Domain(1, 12, unknown=(True,))),
        (named("NegativeBinomial"), Domain(0, 8, unknown=(False, True), known=(3.0, None))),
        (named("Categorical"), Domain(0, 1, levels=2, unknown=(True,))),
        (named("Categorical"), Domain(0, 3, levels=4, unknown=(True,))),
        (named("Multinomial"), Domain(0, 4, levels=2, unknown=(False, True), known=(4.0, None))),
        (named("Multinomial"), Domain(0, 3, levels=3, unknown=(False, True), known=(3.0, None))),
        (TABLE, Domain(2, 9)),
        (PATTERNS, ROWS),
        (BINNED, Domain(0, 5, edges=(0.0, 0.5, 2.0, 4.5, 5.0))),
    ]
    few = [(named("Bernoulli"), Domain(0, 1, unknown=(True,)), 3), (named("Poisson"), Domain(1, 3, unknown=(True,)), 3),
           (named("Categorical"), Domain(0, 2, levels=3, unknown=(True,)), 3), (TABLE, Domain(0, 3), 2),
           (BINNED, Domain(0, 3, edges=(0.0, 0.5, 2.0, 3.0)), 2)]  # fmt: skip
    kinds = ((0, "replace"), (3, "replace"), (0, "add_remove"), (3, "add_remove"))
    one = [Setting(family, domain, levels, how) for family, domain in discrete for levels, how in kinds]
    return one + [Setting(family, domain, levels, how, columns) for family, domain, columns in few for levels, how in kinds]


def settings_by_column() -> list[Setting]:
    """Counts of several columns, each with bounds of its own."""
    three, two = ((1.0, 3.0), (4.0, 7.0), (0.0, 2.0)), ((1.0, 9.0), (2.0, 3.0))
    return [
        Setting(named("Poisson"), Domain(0, 7, unknown=(True,), columns=three), 0, "replace", 3),
        Setting(named("Geometric"), Domain(1, 9, unknown=(True,), columns=two), 0, "replace", 2),
    ]


# ---------- totals over individuals
def of_totals(distribution: str, unit: Individual, neighbours: str, rows: int, columns: int = 1) -> tuple[Verdict, ...]:
    """All pairs of what one individual can add to totals (rows x columns), where all totals are whole numbers.

    Binomial: another outcome, 0 or 1, in each of the rows it is counted in, which stay the same. Multinomial: one of ``columns`` levels in
    each of these rows, and of two levels the second is counted. Poisson: at most ``events`` events
    over all rows; where membership is public, in the same rows as before.
    """
    likelihood = Likelihood(
        "y", distribution, named(distribution), unknown=(True,), aggregate=True,
        columns=(columns,) if columns > 1 and distribution != "Multinomial" else (),
        levels=columns if distribution == "Multinomial" else 0,
    )  # fmt: skip
    sensitivity = planned(likelihood, {}, neighbours, unit).sensitivity
    if distribution == "Multinomial":
        counted = np.eye(columns, dtype=int)[:, -(columns - (columns == 2)) :]
        none = [np.zeros(counted.shape[1], dtype=int)]
        levels = np.array([
            np.concatenate(rows_of)
            for its in combinations(range(rows), unit.rows)
            for rows_of in product(*(counted if row in its else none for row in range(rows)))
        ]).reshape(-1, len(counted) ** unit.rows, rows * counted.shape[1])  # fmt: skip
        pairs = [largest_of_pairs(own) for own in levels]
        L1, L2 = max(pair[0] for pair in pairs), max(pair[1] for pair in pairs)
        return Verdict("L1", sensitivity.difference, L1, L1), Verdict("squared L2", sensitivity.square, L2, L2)
    most = 1 if distribution == "Binomial" else unit.events or 0
    places = rows * columns
    all_of_them = np.array(list(product(range(most + 1), repeat=places)))
    if distribution == "Poisson":
        all_of_them = all_of_them[all_of_them.sum(axis=1) <= most]
    members = [np.repeat(np.isin(np.arange(rows), its), columns) for its in combinations(range(rows), min(unit.rows, rows))]
    anywhere = unit.membership == "private" and distribution == "Poisson"
    farthest = squared = 0
    for group in [np.ones(places, dtype=bool)] if anywhere else members:
        own = all_of_them[(all_of_them[:, ~group] == 0).all(axis=1)]
        L1, L2 = largest_of_pairs(own) if neighbours == "replace" else (max_norm(own), max_square(own))
        farthest, squared = max(farthest, L1), max(squared, L2)
    return Verdict("L1", sensitivity.difference, farthest, farthest), Verdict("squared L2", sensitivity.square, squared, squared)


TOTALS = (
    ("Binomial", Individual(), "replace", 3, 1), ("Binomial", Individual(rows=2), "replace", 4, 1),
    ("Binomial", Individual(rows=2), "replace", 3, 2),
    ("Multinomial", Individual(), "replace", 3, 2), ("Multinomial", Individual(), "replace", 3, 4),
    ("Multinomial", Individual(rows=2), "replace", 4, 2), ("Multinomial", Individual(rows=2), "replace", 3, 3),
    ("Poisson", Individual(events=4), "replace", 4, 1), ("Poisson", Individual(events=4), "add_remove", 4, 1),
    ("Poisson", Individual(events=3, membership="public"), "replace", 3, 1),
    ("Poisson", Individual(events=3, membership="public", rows=2), "replace", 3, 1),
    ("Poisson", Individual(events=3, membership="public"), "replace", 2, 2),
)  # fmt: skip


# ---------- networks
def networks_up_to(nodes: int, levels: Sequence[int]) -> Iterable[Network]:
    """All networks of so many nodes, whose arrows go from earlier nodes to later ones, with all their numbers of levels."""
    possible = list(combinations(range(nodes), 2))
    for arrows in product((False, True), repeat=len(possible)):
        parents = {k: tuple(f"v{a}" for (a, b), there in zip(possible, arrows, strict=True) if there and b == k) for k in range(nodes)}
        for several in product(levels, repeat=nodes):
            yield Network(tuple(Node(f"v{k}", f"v{k}", 0, several[k], parents[k]) for k in range(nodes)))


def coefficients_of_records(network: Network) -> np.ndarray:
    """The Fourier coefficients of every record that can occur, alone, as the release computes them: (M, coefficients)."""
    records = np.array(list(product(*(range(node.levels) for node in network.nodes))))
    found = np.empty((len(records), len(network.coefficients)), dtype=np.int8)
    for m, record in enumerate(records):
        tables = {}
        for node in network.nodes:
            tables[node.name] = np.zeros(network.shape(node), dtype=np.int64)
            tables[node.name][tuple(record[list(network.family(node))])] = 1
        found[m] = network.transformed(tables)
    return found


def of_network(network: Network) -> tuple[Verdict, ...]:
    """L1 and squared L2 distance of the Fourier coefficients of all pairs of records, and the norm of every record.

    All coefficients of a record are 1 or -1, so two records agree in (N + their inner product) / 2 of N, and differ in the others by 2.
    """
    found = coefficients_of_records(network)
    assert (np.abs(found) == 1).all()
    N = found.shape[1]
    inner = found.astype(np.float32) @ found.astype(np.float32).T  # of at most 2**15 terms of size 1: exact
    assert N < 2**23
    differ = (N - int(inner.min())) // 2
    sizes = network.fourier_sensitivity("add_remove"), network.fourier_square("add_remove")
    return (
        Verdict("L1", network.fourier_sensitivity("replace"), 2 * differ, 2 * differ),
        Verdict("squared L2", network.fourier_square("replace"), 4 * differ, 4 * differ),
        Verdict("L1 of one", sizes[0], N, N),
        Verdict("squared L2 of one", sizes[1], N, N),
    )


def of_networks(nodes: int, levels: Sequence[int]) -> tuple[int, int, bool]:
    """How many networks and pairs of records were gone through, and whether all sensitivities are exact."""
    many = pairs = 0
    exact = True
    for network in networks_up_to(nodes, levels):
        verdicts = of_network(network)
        exact &= all(one.declared == one.bound == one.attained for one in verdicts)
        many, pairs = many + 1, pairs + int(np.prod([node.levels for node in network.nodes])) ** 2
    return many, pairs, exact


# ---------- second moments
@dataclass(frozen=True)
class Linear:
    """A linear likelihood with this many private features and responses, whose records have these public features.

    Attributes
    ----------
    private, responses : int
        m and q.
    public : tuple of float
        Public features of every record, beside the constant, on [-1, 1].
    known : bool
        Whether sigma is: then squares and products of responses are not released.
    counted : bool
        Whether a record may leave its cell, or come and go.
    multipliers : (int, int)
        By what products with the response are multiplied, second, and all others, first.
    """

    private: int
    responses: int = 1
    public: tuple[float, ...] = ()
    known: bool = False
    counted: bool = False
    multipliers: tuple[int, int] = (1, 1)

    @property
    def title(self) -> str:
        """In words."""
        shown = f", public ({', '.join(f'{x:g}' for x in self.public)})" if self.public else ""
        many = f"{self.responses} response{'s' * (self.responses > 1)}"
        words = " known" if self.known else " unknown"
        every, response = self.multipliers
        times = f", times {every}, with the response {response}" if self.multipliers != (1, 1) else ""
        return f"{self.private} private{shown}, {many}, sigma{words}{', counted' if self.counted else ''}{times}"

    def regression(self) -> Regression:
        """As the release makes it, once it has seen the public features."""
        m, p, q = self.private, len(self.public), self.responses
        F = 1 + m + p
        names = tuple(f"f{k}" for k in range(F))
        return Regression(
            names, (False, *[True] * m, *[False] * p), (-1.0,) * F, (1.0,) * F, (-1.0,) * q, (1.0,) * q, self.known, self.counted,
            public_norm=1.0 + sum(map(abs, self.public)), public_square=1.0 + sum(x * x for x in self.public),
            multipliers=self.multipliers,
        )  # fmt: skip

    def times(self, i: int, j: int | None = None) -> int:
        """By what the product of two private entries is multiplied, or that of one with what is public."""
        every, response = self.multipliers
        return response if (i >= self.private if j is None else min(i, j) < self.private <= max(i, j)) else every

    @property
    def size(self) -> int:
        """M: how many entries of a record are private."""
        return self.private + self.responses

    def pairs(self) -> list[tuple[int, int]]:
        """Which products of private entries are released: places i <= j."""
        all_of_them = [(i, j) for i in range(self.size) for j in range(i, self.size)]
        return [(i, j) for i, j in all_of_them if not (self.known and i >= self.private)]

    def weights(self) -> tuple[Fraction, Fraction]:
        """Sums of absolute values and of squares of the public features, the constant included: c and c'."""
        public = [Fraction(1), *map(Fraction, map(abs, self.public))]
        return sum(public, Fraction(0)), sum((x * x for x in public), Fraction(0))


def moments_of(case: Linear, private: np.ndarray) -> np.ndarray:
    """The integers that the code makes of records with these private entries (M, size) on [-1, 1]: (M, released)."""
    regression, m = case.regression(), case.private
    public = np.broadcast_to(case.public, (len(private), len(case.public)))
    features = np.concatenate([np.ones((len(private), 1)), private[:, :m], public], axis=1)
    return np.stack(list(regression.exact(regression.scaled(features, private[:, m:]))), axis=-1)


def top_of(linear: Sequence[Fraction], signs: np.ndarray) -> Fraction:
    """The largest value of sum_i linear_i v_i + sum_{i <= j} signs_ij v_i v_j on the box [-1, 1]^M, exactly: signs are any whole numbers.

    It is taken where some entries are at an end and the others, S, at a stationary point. There the matrix of S is negative definite,
    or the value is taken on a smaller face as well: along a direction that does not curve down one can go on to an end. So its diagonal
    is negative. All such faces are looked at.
    """
    M = len(signs)
    hessian = [[Fraction(int(signs[min(i, j), max(i, j)])) * (2 if i == j else 1) for j in range(M)] for i in range(M)]

    def value(v: Sequence[Fraction]) -> Fraction:
        return sum((v[i] * (linear[i] + sum((hessian[i][j] * v[j] for j in range(M)), Fraction(0)) / 2) for i in range(M)), Fraction(0))

    falling = [i for i in range(M) if hessian[i][i] < 0]
    best = None
    for many in range(len(falling) + 1):
        for free in combinations(falling, many):
            others = [i for i in range(M) if i not in free]
            for ends in product((Fraction(1), Fraction(-1)), repeat=len(others)):
                at = dict(zip(others, ends, strict=True))
                right = [-linear[i] - sum((hessian[i][j] * at[j] for j in others), Fraction(0)) for i in free]
                inner = solved([[hessian[i][j] for j in free] for i in free], right)
                if inner is not None and all(abs(x) <= 1 for x in inner):
                    at |= dict(zip(free, inner, strict=True))
                    found = value([at[i] for i in range(M)])
                    best = found if best is None else max(best, found)
    assert best is not None
    return best


def solved(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction] | None:
    """The solution of linear equations in fractions, or None where there is not exactly one."""
    rows = [[*row, last] for row, last in zip(matrix, right, strict=True)]
    n = len(rows)
    for k in range(n):
        pivot = next((r for r in range(k, n) if rows[r][k]), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for r in range(n):
            if r != k and rows[r][k]:
                rows[r] = [x - rows[r][k] * y for x, y in zip(rows[r], rows[k], strict=True)]
    return [row[-1] for row in rows]


def different_signs(case: Linear) -> Iterable[np.ndarray]:
    """Signs (M, M) of all released products, once of those that differ by the order of features, and of responses, alone."""
    pairs, m, M = case.pairs(), case.private, case.size
    place = {pair: k for k, pair in enumerate(pairs)}
    codes = np.arange(2 ** len(pairs))
    least = codes.copy()
    all_alike = not case.known and case.multipliers == (1, 1)
    alike = (permutations(range(M)), [()]) if all_alike else (permutations(range(m)), permutations(range(m, M)))
    for first, second in product(*map(list, alike)):
        order = (*first, *second)
        moved = np.zeros_like(codes)
        for (i, j), k in place.items():
            to = place[tuple(sorted((order[i], order[j])))]
            moved |= (codes >> k & 1) << to
        least = np.minimum(least, moved)
    for code in codes[codes == least]:
        signs = np.zeros((M, M), dtype=int)
        for (i, j), k in place.items():
            signs[i, j] = 1 - 2 * (code >> k & 1)
        yield signs


def in_place_L1(case: Linear) -> Fraction:  # noqa: N802 - the norm's name
    """The largest L1 distance of the second moments of two records on the box that agree in what is public: exactly.

    As in ``largest_L1`` it is, over all signs of the released products, the largest range of one signed sum over single records.
    Products with public features add up to c |v_i - v'_i|, c being the sum of their absolute values. Turning an entry of
    the records around changes the signs of its products, so those with c may all be taken for +.
    """
    c, _ = case.weights()
    linear = [case.times(i) * c for i in range(case.size)]
    times = np.array([[case.times(i, j) for j in range(case.size)] for i in range(case.size)])
    return max(top_of(linear, times * signs) + top_of([-of for of in linear], -times * signs) for signs in different_signs(case))


def in_place_L1_many(case: Linear) -> Fraction:  # noqa: N802 - the norm's name
    """The same for any number of features, from a = (v + v') / 2 and h = (v - v') / 2.

    The distance is at most the sum of 2 c |h_i|, 4 |a_i h_i| and 2 (|a_i h_j| + |a_j h_i|), which grows with every |a_i|, and |a_i| + |h_i|
    is at most 1: so it is at most g(h) with a = 1 - h, h in [0, 1]. Where responses have no squares g is linear in each of theirs, so
    these are 0 or 1. In the others its second derivatives are -8 and, in pairs, -4: concave, so that g(h) <= g(x) + g'(x)(h - x) for any
    x. With x where all are equal and g is largest, the right side is largest at an end of each h_i, which is checked.
    """
    c, _ = case.weights()
    m, q = case.private, case.responses
    bent, flat = (m, q) if case.known else (m + q, 0)
    largest = Fraction(0)
    for T in range(flat + 1):  # so many of the responses at 1, the others at 0
        slope = 2 * c + 4 + 2 * (bent - 1) + 2 * flat - 4 * T  # of g in one bent h_i at 0: products with responses at 1 have 2 (1 - h_i)
        curve = 8 + 4 * (bent - 1)
        x = min(max(slope / Fraction(curve), Fraction(0)), Fraction(1))
        constant = T * (2 * c + 2 * bent)
        at = constant + bent * slope * x - bent * 4 * x**2 - bent * (bent - 1) * 2 * x**2
        gradient = slope - curve * x
        largest = max(largest, at + bent * max(gradient * (0 - x), gradient * (1 - x)))
    return largest


def in_place_L1_multiplied(case: Linear) -> Fraction:  # noqa: N802 - the norm's name
    """The same of one response whose products are multiplied by r and all others by e: g grows with every abs(a_i) as before.

    For a given h of the response, t, all second derivatives of g in the features are -8 e, or -4 e: it is concave, and the same for every
    order of the features, so that g is at most its value where each of the m is their mean, x. That is
    A(t) x - B x² + D(t), A(t) = 2 m (e (c + m + 1) + r (1 - 2 t)), B = 2 m (m + 1) e, D(t) = 2 r (c + m) t + 4 e t (1 - t)
    without e where sigma is known, and its largest x is 0, A / 2B or 1, as t is in one of three intervals. In each of them it is a
    quadratic in t, which is largest at an end or where its slope is 0.
    """
    c, _ = case.weights()
    m, (e, r) = case.private, case.multipliers
    assert case.responses == 1
    bend, square = 2 * m * (m + 1) * e, 0 if case.known else 4 * e
    first, falls = Fraction(2 * m) * (e * (c + m + 1) + r), 4 * m * r  # A(t) = first - falls t
    ends = sorted({Fraction(0), Fraction(1), *(min(max((first - x * 2 * bend) / falls, 0), 1) for x in (0, 1) if falls)})
    best = Fraction(0)
    for low, high in pairwise([*ends, ends[-1]]):
        middle = first - falls * (low + high) / 2
        inner = bool(bend) and 0 < middle < 2 * bend
        x = 0 if middle <= 0 else 1
        # D(t) + A(t) x - B x², or D(t) + A(t)² / 4B: constant, linear and square terms of t.
        constant = first**2 / (4 * bend) if inner else first * x - bend * x
        slope = 2 * r * (c + m) + square - (first * falls / (2 * bend) if inner else falls * x)
        curve = (Fraction(falls**2, 4 * bend) if inner else Fraction(0)) - square
        at = [low, high, *([min(max(-slope / (2 * curve), low), high)] if curve else [])]
        best = max(best, *(constant + slope * t + curve * t * t for t in at))
    return best


def in_place_squared(case: Linear, boxes: int = 2_000_000) -> Fraction:
    """The largest squared L2 distance of two records on the box, by branch and bound in integers.

    As in ``in_place_L1_many`` the squared distance is at most f(h), h in [0, 1]^M: the sum of 4 c' h_i², of 16 (h_i (1 - h_i))² for
    squares, and of 4 ((1 - h_i) h_j + (1 - h_j) h_i)² for products, each times the square of what it is multiplied by.
    A box of h in which some derivative has one sign is cut down to the
    better end; one where f cannot exceed what was found at a corner is dropped; any other is halved. In the end nothing is left.
    """
    _, c = case.weights()
    unit = 2**10
    of = _Squared(int(c.numerator), int(c.denominator), case, unit)
    low, high = np.zeros((1, case.size), dtype=np.int64), np.full((1, case.size), unit, dtype=np.int64)
    corners = np.array(list(product((0, unit), repeat=case.size)))
    best, seen = int(of.bound(corners, corners).max()), 0
    while len(low):
        seen += len(low)
        assert seen <= boxes, "too many boxes"
        low, high = of.cut(low, high)
        best = max(best, int(of.bound(low, low).max()), int(of.bound(high, high).max()))
        open_ = (of.bound(low, high) > best) & (high > low).any(axis=1)
        low, high = low[open_], high[open_]
        rows, side = np.arange(len(low)), np.argmax(high - low, axis=1)
        middle = (low[rows, side] + high[rows, side]) // 2
        left, right = high.copy(), low.copy()
        left[rows, side], right[rows, side] = middle, middle
        assert (high - low >= 2).any(axis=1).all(), "boxes too small"
        low, high = np.concatenate([low, right]), np.concatenate([left, high])
    return Fraction(best, unit**4 * int(c.denominator))


@dataclass(frozen=True)
class _Squared:
    """f of ``in_place_squared`` and its derivatives on boxes (N, M) of integers, in units of 1 / (unit**4 denominator): 64 bits do."""

    numerator: int
    denominator: int
    case: Linear
    unit: int

    @property
    def squared(self) -> np.ndarray:
        """(M,): squares of what products with the public features are multiplied by."""
        return np.array([self.case.times(i) ** 2 for i in range(self.case.size)])

    def bound(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """No less than f in the box; f itself where it is a point."""
        one, a, h = self.unit, self.unit - low, high
        total = 4 * self.numerator * (h * h * self.squared).sum(axis=1) * one**2
        for i, j in self.case.pairs():
            weight = self.case.times(i, j) ** 2 * self.denominator
            total += weight * (16 * (a[:, i] * h[:, i]) ** 2 if i == j else 4 * (a[:, i] * h[:, j] + a[:, j] * h[:, i]) ** 2)
        return total

    def slopes(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Between which values each derivative lies in the box, by interval arithmetic: (N, M) each.

        8 c' h_i, 32 h_i (1 - h_i)(1 - 2 h_i) and 8 ((1 - h_i) h_j + (1 - h_j) h_i)(1 - 2 h_j).
        """
        one = self.unit
        least, most = (8 * self.numerator * end * self.squared * one**2 for end in (low, high))

        def add(i: int, first: tuple, second: tuple, factor: int) -> None:
            ends = [x * y * factor * self.denominator for x in first for y in second]
            least[:, i] += np.minimum.reduce(ends)
            most[:, i] += np.maximum.reduce(ends)

        for i, j in self.case.pairs():
            weight = self.case.times(i, j) ** 2
            turn = {k: (one - 2 * high[:, k], one - 2 * low[:, k]) for k in (i, j)}
            if i == j:
                add(i, ((one - high[:, i]) * low[:, i], (one - low[:, i]) * high[:, i]), turn[i], 32 * weight)
                continue
            both = tuple((one - e[:, i]) * f[:, j] + (one - e[:, j]) * f[:, i] for e, f in ((high, low), (low, high)))
            add(i, both, turn[j], 8 * weight)
            add(j, both, turn[i], 8 * weight)
        return least, most

    def cut(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Boxes down to the face on which f is largest, where a derivative has one sign."""
        for _ in range(2):
            least, most = self.slopes(low, high)
            low, high = np.where(least >= 0, high, low), np.where((most <= 0) & (least < 0), low, high)
        return low, high


def corners_squared(case: Linear) -> Fraction:
    """The same for any number of features: the largest value of f at a corner.

    Between 0 and 1 f is nowhere above its chord in h_i: chord less f is h_i (1 - h_i) times 4 c' + 4 sum_j (1 - 2 h_j)² - 16 h_i (1 - h_i),
    and c' >= 1. So it is largest at a corner, and there it counts how many are 1: k of the bent ones, T of the flat ones. With one response
    whose products are multiplied by r, all others by e <= r, 4 c' and the sum are multiplied by e² or r², the square by e²: as before.
    """
    _, c = case.weights()
    m, q, (e, r) = case.private, case.responses, case.multipliers
    if case.multipliers != (1, 1):
        assert q == 1
        assert 1 <= e <= r
        return max(4 * (e**2 * (c * k + k * (m - k)) + r**2 * (c * t + k * (1 - t) + t * (m - k))) for k in range(m + 1) for t in (0, 1))
    bent, flat = (m, q) if case.known else (m + q, 0)
    counts = product(range(bent + 1), range(flat + 1))
    return max(4 * c * (k + T) + 4 * (k * (bent - k) + k * (flat - T) + T * (bent - k)) for k, T in counts)


def of_moments(case: Linear, small: bool) -> tuple[Verdict, ...]:
    """L1 and squared L2 of a linear likelihood's second moments; ``small`` where all signs and boxes are gone through."""
    sensitivity = case.regression().sensitivity()
    many = in_place_L1_many if case.multipliers == (1, 1) else in_place_L1_multiplied
    L1 = (in_place_L1 if small else many)(case) * POINTS**2
    squared = (in_place_squared(case) if small else corners_squared(case)) * POINTS**4
    found = worst_pairs(case)
    if case.counted:  # entries are products of two integers of at most POINTS, so two cells move by 2 for every entry
        F = 1 + case.private + len(case.public)
        times = [case.multipliers[i < F <= j] for i, j in case.regression().entries]
        entries, squares = sum(times), sum(weight**2 for weight in times)
        L1, squared = max(L1, Fraction(2 * entries * POINTS**2)), max(squared, Fraction(2 * squares * POINTS**4))
        one = moments_of(case, np.ones((1, case.size)))
        found = max(found[0], 2 * max_norm(one)), max(found[1], 2 * max_square(one))
    return Verdict("L1", sensitivity.difference, L1, found[0]), Verdict("squared L2", sensitivity.square, squared, found[1])


def worst_pairs(case: Linear) -> tuple[int, int]:
    """The largest L1 and squared L2 distance of pairs of records that the argument says are worst, computed by the code.

    One record of ones; in the other, bent entries are all the same, or some are -1 and the others 1, and some flat ones are -1.
    """
    m, M = case.private, case.size
    flat = case.responses if case.known else 0
    records = [np.ones(M)]
    for T in range(flat + 1):
        for h in np.linspace(0, 1, 2**9 + 1):
            records.append(np.concatenate([np.full(M - flat, 1 - 2 * h), np.where(np.arange(flat) < T, -1.0, 1.0)]))
        for k in range(M - flat + 1):
            records.append(np.concatenate([np.where(np.arange(M - flat) < k, -1.0, 1.0), np.where(np.arange(flat) < T, -1.0, 1.0)]))
    assert m <= M
    if case.multipliers != (1, 1):
        half = np.linspace(0, 1, 2**6 + 1)
        records += [np.append(np.full(m, 1 - 2 * h), 1 - 2 * t) for h in half for t in half]
    integers = moments_of(case, np.array(records))
    apart = np.abs(integers - integers[0])
    return max_norm(apart), max_square(apart)


def linear_cases() -> list[tuple[Linear, bool]]:
    """Numbers of features and responses, public features, sigma known or not, counted or not; and whether all signs are gone through."""
    both = [
        Linear(0), Linear(0, 2), Linear(1), Linear(2), Linear(1, 2), Linear(3), Linear(2, 2), Linear(0, 1, (1.0, 1.0)),
        Linear(1, 1, (1.0,)), Linear(2, 1, (0.25, -0.5)), Linear(1, 1, (1.0, 1.0, 1.0)),
    ]  # fmt: skip
    many = [Linear(5), Linear(14), Linear(30, 3), Linear(5, 1, (1.0, 0.5)), Linear(30, 3, (1.0, 0.5))]
    counted = [Linear(m, q, (), known, True) for m, q, known in ((1, 1, False), (2, 1, False), (2, 2, True), (8, 1, False))]
    known = [(replace(case, known=True), small) for several, small in ((both, True), (many, False)) for case in several]
    plain = [(case, True) for case in both] + [(case, False) for case in many] + known + [(case, case.size < 4) for case in counted]
    times = [
        Linear(1, multipliers=(2, 3)), Linear(1, multipliers=(1, 3)), Linear(2, multipliers=(2, 3)), Linear(2, multipliers=(1, 2)),
        Linear(2, 1, (0.25, -0.5), multipliers=(1, 3)), Linear(1, 1, (1.0, 1.0, 1.0), multipliers=(1, 2)),
        Linear(2, known=True, multipliers=(1, 2)), Linear(1, 1, (1.0,), True, multipliers=(2, 3)),
    ]  # fmt: skip
    several = [Linear(3, multipliers=(1, 2)), Linear(8, multipliers=(1, 3)), Linear(12, 1, (1.0, 0.5), known=True, multipliers=(1, 3))]
    coming = [Linear(2, counted=True, multipliers=(1, 2)), Linear(8, known=True, counted=True, multipliers=(1, 3))]
    return [*plain, *((case, True) for case in times), *((case, False) for case in several), *((case, case.size < 4) for case in coming)]


# ---------- scores
SCORED = (
    *(Scores(F, "logit", 1.0, (-3.0, 3.0), times=times) for F, times in ((2, 1), (2, 3), (3, 2), (4, 1), (8, 2), (30, 2))),
    Scores(2, "log", 9.0, (-3.0, 3.0)), Scores(3, "log", 60.0, (-3.0, 3.0)), Scores(2, "log", 20.0, (-2.0, 2.0), times=2),
    Scores(2, "log", 60.0, (-2.0, 2.0), times=3), Scores(3, "log", 20.0, (-2.0, 2.0), times=2),
    Scores(3, "log", 9.0, (-3.0, 3.0)),
    *(Scores(F, "logit", 1.0, (low, 3.0), True, times) for F, times in ((2, 3), (3, 1), (5, 2), (30, 2)) for low in (-3.0, -1.0)),
    Scores(3, "log", 9.0, (-1.0, 3.0), without_slopes=True), Scores(2, "log", 2.0, (-9.0, 3.0), without_slopes=True),
)  # fmt: skip
"""Few and many features, links, and responses that may be far larger, or smaller, than their means; and first anchors alone."""
FINE = 2**11
"""Pieces of the means from 0 to 1, for squares."""


def of_scores(case: Scores) -> tuple[Verdict, ...]:
    """L1 and squared L2 of scores and their information: of a record that takes another's place, and of one that comes or goes.

    Entries are rounded by half a unit, and floating point is off by less: two records are further apart by at most one in every entry,
    (d + 1)² is d² + 2 d + 1, and one record alone likewise. Weights are multiplied by t after that: by at most t, and (d + t)².
    """
    (one, square_of_one), t = case.most_added, case.times
    many, squares = (case.features + t**power * (case.released - case.features) for power in (1, 2))
    in_place, alone = case.sensitivity(False), _alone(case)
    bounds = [(L1 * POINTS**2 + many, L2 * POINTS**4 + 2 * t * (L1 * POINTS**2) + squares) for L1, L2 in (_apart(case), alone)]
    found = _tried(case)
    declared = ((in_place.difference, in_place.square), (one, square_of_one))
    return tuple(
        Verdict(name, declared[k][j], bounds[k][j], found[k][j])
        for k, words in enumerate((("L1", "squared L2"), ("norm", "squared norm")))
        for j, name in enumerate(words)
    )


def _apart(case: Scores) -> tuple[Fraction, Fraction]:
    """How far two records with any features are apart, at most, with q = y - mean and w the weight of each.

    What ``Scores.sensitivity`` argues, in finer pieces: with logit q is at most m, the larger of the mean and 1 less it; w = m (1 - m).
    In each pair of pieces all ends are tried, and numbers k of features with different signs.
    """
    F, fine = case.features, FINE // 8
    a = np.arange(fine // 2, fine, dtype=np.int64)
    Q, least, most = (a + 1) * fine, (a + 1) * (fine - a - 1), a * (fine - a)
    if case.without_slopes:
        mean, weight = _at_first(case)
        Q, least, most = (np.array([x]) for x in (ceil(max(mean, 1 - mean) * fine**2), floor(weight * fine**2), ceil(weight * fine**2)))
    elif case.link == "log":
        Q, least, most = (np.array([int(x * fine**2)]) for x in (1, 0, ceil(case.largest_weight * fine**2) / fine**2))
    largest = []
    for power in (1, 2):
        values = []
        for k, q, r in product(range(F + 1), (Q, 0 * Q), (Q, 0 * Q)):
            for w, v in product((least, most), repeat=2):
                q, r, w, v = q.reshape(-1, 1), r.reshape(1, -1), w.reshape(-1, 1), v.reshape(1, -1)
                apart, together = ((case.times * each) ** power for each in (np.abs(w - v), w + v))
                own = k * (q + r) ** power + (F - k) * np.abs(q - r) ** power + apart
                own = own + (F - 1) * (case.times * np.maximum(w, v)) ** power
                values.append((own + k * (F - k) * together + (F * (F - 1) // 2 - k * (F - k)) * apart).max())
        largest.append(Fraction(int(max(values)), fine ** (2 * power)))
    return largest[0], largest[1]


def _at_first(case: Scores) -> tuple[float, float]:
    """The mean of every record and its weight, divided by the largest response, where the predictor is the middle of its bounds."""
    middle = sum(case.predictor) / 2
    if case.link == "logit":
        return float(expit(middle)), float(expit(middle) * expit(-middle))
    k = np.arange(int(case.most) + 1)
    below = poisson.pmf(k[:-1], np.exp(middle))
    return float((k[:-1] * below).sum() / case.most + 1 - below.sum()), float(np.exp(middle) * below.sum() / case.most)


def _alone(case: Scores) -> tuple[Fraction, Fraction]:
    """The same of one record: F q and all weights, F (F + 1) / 2 of them, which are multiplied."""
    F, P, t = case.features, case.features * (case.features + 1) // 2, case.times
    if case.without_slopes:
        mean, w = map(Fraction, _at_first(case))
        q = max(mean, 1 - mean)
        return F * q + t * P * w, F * q**2 + t**2 * P * w**2
    if case.link == "log":
        w = Fraction(case.largest_weight)
        return F + t * P * w, F + t**2 * P * w**2
    top = min(Fraction(1, 2) + Fraction(F, 2 * t * P), Fraction(1))
    a = np.arange(FINE // 2, FINE, dtype=np.int64)
    square = F * ((a + 1) * FINE) ** 2 + t**2 * P * (a * (FINE - a)) ** 2
    return F * top + t * P * top * (1 - top), Fraction(int(square.max()), FINE**4)


def _tried(case: Scores) -> tuple[tuple[int, int], tuple[int, int]]:
    """What the code makes of records whose features are at their ends, or nearly, with the least and the largest response.

    The last feature may be 0, too. At many anchors, of which some are so steep in it that the mean goes from 0 to its largest, or to half
    of that, between nearly 1 and 1.
    """
    F, rng = case.features, np.random.default_rng(0)
    ends = np.array(list(product((-1, 1), repeat=F - 2)) if F < 6 else rng.choice([-1, 1], (16, F - 2)), dtype=float)
    ends[0] = 1.0
    rows = np.array([[1.0, *row, last] for row in ends for last in (-1.0, 0.0, 0.97, 1.0)])
    columns = np.repeat(np.rint(rows * POINTS).astype(np.int64), 2, axis=0)
    responses = np.tile([0.0, case.most], len(columns) // 2)
    best: list[tuple[float, np.ndarray]] = [(0.0, columns)] * 4
    for place in range(200 if F < 6 else 60):
        anchor = rng.uniform(-1, 1, F) * rng.choice([0.3, 1.0, 3.0, 10.0]) * (rng.random(F) < rng.choice([0.2, 1.0]))
        if place % 4 < 2:
            anchor = np.array([-(985.0, 1000.0)[place % 4] * place / 30, *np.zeros(F - 2), 1000.0 * place / 30])
        anchor = first_anchor(case, ()) if case.without_slopes else anchor
        entries = np.stack(list(record_scores(case, columns, responses, np.broadcast_to(anchor, columns.shape))), axis=1)
        apart = np.abs(entries[:, None] - entries[None]).astype(float)
        sizes = apart.sum(axis=-1), (apart**2).sum(axis=-1), np.abs(entries).sum(axis=-1), (entries.astype(float) ** 2).sum(axis=-1)
        best = [(float(size.max()), entries) if size.max() > old[0] else old for old, size in zip(best, sizes, strict=True)]
    pairs = largest_of_pairs(best[0][1])[0], largest_of_pairs(best[1][1])[1]
    return pairs, (max_norm(best[2][1]), max_square(best[3][1]))


# ---------- draws from posteriors
def of_table_draws(network: Network, neighbours: str) -> tuple[Verdict, ...]:
    """By how much a record moves the scores of all splits of a network's tables, added up: all pairs of records.

    Every split of every row is chosen by itself, so that what a record can do to each of them adds up.
    """
    grid = points(1.5, 65)
    records = list(product(*(range(node.levels) for node in network.nodes)))
    scores = []
    for record in records:
        own = []
        for node in network.nodes:
            *parents, level = (record[k] for k in network.family(node))
            shape = network.shape(node)
            counts = np.zeros((int(np.prod(shape[:-1])), shape[-1]), dtype=np.int64)
            counts[int(np.ravel_multi_index(parents, shape[:-1])) if parents else 0, level] = 1
            own += list(_scores(counts, np.zeros(counts.shape), grid, 1.0, False))
        scores.append(np.array(own))
    if neighbours == "add_remove":
        largest = max(int(np.ptp(one, axis=1).sum()) for one in scores)
    else:
        largest = max(int(np.ptp(one - other, axis=1).sum()) for one in scores for other in scores)
    return (Verdict("range of scores", record_splits(network, neighbours) * grid.range, largest, largest),)


def of_ball(size: float, response: float, radius: float, variance: float, neighbours: str) -> tuple[Verdict, ...]:
    """By how much a record can change the log-likelihood of a regression more at one point of a ball than at another, in 1 / NAT.

    A record (x, y) sees the coefficients through s = x'w, abs(s) <= U = size radius. Between two points it changes by
    ((y - s)² - (y - t)²) / 2 variance, which is linear in y, so largest at an end; convex in s, so too; and largest at the t nearest to y.
    What is left is computed in fractions. A record in another's place changes it by no more than both together.

    Attained in a plane: of records that are each other's mirror image where U <= R; else of two whose feature vectors have the angle at
    which the worst points of one are those of the other.
    """
    U, R, V = Fraction(size) * Fraction(radius), Fraction(response), Fraction(variance)
    most = max((y - s) ** 2 - (y - min(max(y, -U), U)) ** 2 for y in (-R, R) for s in (-U, U)) / (2 * V)
    bound = most * (2 if neighbours == "replace" else 1)
    cosine = -1.0 if U <= R else float(-R / U)
    first, second = np.array([1.0, 0.0]), np.array([cosine, np.sqrt(1 - cosine**2)])
    points = radius * np.stack([first, -first, second, -second, R / U * first if R < U else first])
    records = [(size * direction, y) for direction in (first, second) for y in (-response, response)]
    each = np.array([-((y - points @ x) ** 2) / (2 * variance) for x, y in records])
    apart = [one - other for one in each for other in each] if neighbours == "replace" else list(each)
    attained = max(np.ptp(one) for one in apart)
    declared = ceil(cost_in_ball(size, response, radius, variance, neighbours) * NAT)
    return (Verdict("range", declared, bound * NAT, min(floor(attained * NAT), floor(bound * NAT))),)


BALLS = ((1.0, 1.0, 0.25, 1.0), (2.0, 1.0, 0.5, 2.0), (1.0, 1.0, 2.0, 1.0), (2.0, 0.5, 3.0, 0.25), (1.0, 4.0, 3.5, 0.5))


# ---------- questions about a table
def of_question(question: Question, neighbours: str) -> tuple[Verdict, ...]:
    """All pairs of cells, the extra ones included: a record is in one of them and adds its weight."""
    weights = question.weights.reshape(-1, 1)
    largest = largest_of_pairs(weights)[0] if neighbours == "replace" else max_norm(weights)
    return (Verdict("L1", question.sensitivity(neighbours), largest, largest),)


SCHEMA = Schema.of({"age": range(0, 12), "sex": ["f", "m"], "town": ["a", "b", "c"]})
QUESTIONS = (
    "count()", "age >= 6", "age >= 3 & sex == 'f'", "sex == 'f' | town == 'b'", "sum(age)", "sum(age, sex == 'f') - 0.25 * count()",
    "count(town == 'a') - 2 * count(age < 4 & town == 'c')",
)  # fmt: skip


# ---------- randomised answers
EDGES = (
    ("0.1", {"y": (0.0, 1.0, 2.0)}),
    ("1", {"y": (-0.5, 0.5, 1.5)}),
    ("4", {"x": (-1.0, 0.0, 1.0, 2.0), "y": (0.0, 1.0, 2.0)}),
    ("9", {"x": (-1.0, 0.0, 1.0), "y": (0.0, 0.5, 2.0, 3.0), "z": (0.5, 1.5, 2.5)}),
)
"""An epsilon, and the edges of bins of every private value."""
OF_RATIO = 2**64
"""Ratios of probabilities are in units of one part of so many."""


def told(epsilon: str, edges: Mapping[str, Sequence[float]]) -> tuple[int, np.ndarray]:
    """How many records there are, and the distinct laws of their answers (M, K): probabilities of all K levels, as fractions.

    A value is at an edge, between two, beyond all, infinite or missing, so nothing else happens to any double. Records are all
    combinations of these; their levels, and the probability of the truth, are what the code computes.
    """
    values = [
        [-np.inf, -1e308, *ends, *(np.add(ends[1:], ends[:-1]) / 2), *np.nextafter(ends, np.inf), 1e308, np.inf, np.nan]
        for ends in edges.values()
    ]
    table = pd.DataFrame(list(product(*values)), columns=list(edges))
    levels = levels_of_records(Source.of(table, tuple(edges)), edges)
    many = int(levels.max()) + 1
    truth = Fraction(truth_probability(Laplace().calibrate(1, 1, Cost(Fraction(epsilon))), many))
    other = (1 - truth) / (many - 1)
    return len(table), np.array([[truth if k == level else other for k in range(many)] for level in np.unique(levels)], dtype=object)


def of_answers(epsilon: str, edges: Mapping[str, Sequence[float]]) -> tuple[Verdict, ...]:
    """All pairs of records and all answers: how many times as probable one record makes an answer as another, against exp(epsilon).

    Answers of other records do not rest on this one, so these are all pairs of neighbours, however many records there are.
    """
    _, laws = told(epsilon, edges)
    assert all(sum(law) == 1 for law in laws)
    largest = max(max(column) / min(column) for column in laws.T) * OF_RATIO
    with localcontext() as context:
        context.prec = 80
        declared = floor(Fraction(Decimal(epsilon).exp()) * (1 - Fraction(1, 10**78)) * OF_RATIO)
    return (Verdict("ratio", declared, largest, floor(largest)),)


# ---------- all sensitivities of the library
ALL_PAIRS, CERTIFIED_BOUND, ARGUED = "all pairs", "certified bound", "argument + tested pairs"


@dataclass(frozen=True)
class Proved:
    """One place in the library that says how far a record can move something, and how that is known.

    Attributes
    ----------
    where : tuple of str
        Functions, as file and name below ``pymc_dp/``.
    of : str
    kind : str
        One of the three.
    test : str
        Below ``tests/``.
    """

    where: tuple[str, ...]
    of: str
    kind: str
    test: str


HERE = "test_proofs.py::"
SENSITIVITIES = (
    Proved(
        ("families/family.py:Summed.sensitivity",),
        "Poisson, Geometric, NegativeBinomial: a clamped count",
        ALL_PAIRS, f"{HERE}test_one_value",
    ),
    Proved(
        ("families/bernoulli.py:Bernoulli.sensitivity", "families/bernoulli.py:Binomial.sensitivity"),
        "Bernoulli, Binomial",
        ALL_PAIRS, f"{HERE}test_one_value",
    ),
    Proved(
        ("families/categorical.py:Categorical.sensitivity",),
        "Categorical, Multinomial",
        ALL_PAIRS, f"{HERE}test_one_value",
    ),
    Proved(
        ("models/tabulated.py:Table.sensitivity",),
        "counts of each value, of each bin, or of each row of values",
        ALL_PAIRS, f"{HERE}test_one_value",
    ),
    Proved(
        ("families/normal.py:Normal.sensitivity",),
        "Normal, LogNormal: u, or (u, u²)",
        ALL_PAIRS, f"{HERE}test_one_value",
    ),
    Proved(
        ("families/family.py:Scaled.sensitivity",),
        "Exponential, Weibull, Pareto, Laplace, Gamma, InverseGamma, HalfNormal, Beta, Dirichlet",
        ALL_PAIRS, f"{HERE}test_one_value",
    ),
    Proved(
        ("families/exponential.py:CensoredExponential.sensitivity",),
        "CensoredExponential: u and 1 of an event, 0 and 0 of any other time",
        ALL_PAIRS, f"{HERE}test_one_value",
    ),
    Proved(
        ("families/von_mises.py:VonMises.sensitivity",),
        "VonMises, if numpy's cosines and sines are right to 2**-45",
        ALL_PAIRS, f"{HERE}test_one_value",
    ),
    Proved(
        (
            "families/family.py:Summed.cell_sensitivity", "families/family.py:Scaled.cell_sensitivity",
            "families/bernoulli.py:Bernoulli.cell_sensitivity", "families/bernoulli.py:Binomial.cell_sensitivity",
            "families/categorical.py:Categorical.cell_sensitivity", "models/tabulated.py:Table.cell_sensitivity",
            "families/normal.py:Normal.cell_sensitivity", "families/von_mises.py:VonMises.cell_sensitivity",
            "families/exponential.py:CensoredExponential.cell_sensitivity",
        ),
        "all families with the number of records among the statistics: in private cells, or if a record comes or goes",
        ALL_PAIRS, f"{HERE}test_cells",
    ),
    Proved(
        ("plans/cells.py:planned_cells", "plans/statistic.py:over_columns", "families/by_column.py:of_record"),
        "whole records in cells: with a private index, with several columns, under both kinds of neighbours",
        ALL_PAIRS, f"{HERE}test_whole_records",
    ),
    Proved(
        ("families/by_column.py:ByColumn.sensitivity", "families/by_column.py:ByColumn.cell_sensitivity"),
        "one value of several columns with bounds of their own: the sensitivity of the widest column; with the number of records, if it is"
        " the same in all columns",
        ARGUED, "test_by_column.py::test_sums_with_public_weights_move_by_no_more_than_is_paid_for",
    ),
    Proved(
        ("families/family.py:Sensitivity.of_rows",),
        "all rows of a person in cells, of which at most m count: m places, each with a record or nothing",
        ALL_PAIRS, f"{HERE}test_all_rows_of_a_person",
    ),
    Proved(
        ("families/family.py:Sensitivity.of_rows",),
        "second moments and scores of all rows of a person: the triangle inequality over the m places",
        ARGUED, "test_persons.py::test_nobody_climbs_above_what_is_paid_for",
    ),
    Proved(
        ("families/second_moments.py:Regression.sensitivity",),
        "second moments of up to four private entries, L1: all signs, in fractions",
        CERTIFIED_BOUND, f"{HERE}test_second_moments",
    ),
    Proved(
        ("families/second_moments.py:Regression.sensitivity",),
        "second moments of up to four private entries, squared L2: branch and bound, in integers",
        CERTIFIED_BOUND, f"{HERE}test_second_moments",
    ),
    Proved(
        ("families/second_moments.py:Regression.sensitivity",),
        "second moments of any number: a concave bound, and corners, in fractions",
        CERTIFIED_BOUND, f"{HERE}test_second_moments",
    ),
    Proved(
        ("families/second_moments.py:Regression.sensitivity", "plans/moments.py:planned_moments"),
        "second moments that are multiplied before the noise: the same three proofs, with multipliers",
        CERTIFIED_BOUND, f"{HERE}test_second_moments",
    ),
    Proved(
        ("families/residuals.py:sensitivity_of",),
        "sums of residuals, whatever the coefficients and the clamps are",
        ARGUED, "test_residuals.py::test_no_two_records_are_further_apart",
    ),
    Proved(
        (
            "families/scores.py:Scores.sensitivity", "families/scores.py:Scores.most_added",
            "families/second_moments.py:Regression.sensitivity",
        ),
        "scores and their information, of regressions with a link",
        CERTIFIED_BOUND, f"{HERE}test_scores",
    ),
    Proved(
        ("releases/projection.py:Projection.planned",),
        "sums over all records, weighted by public features: all values of all records",
        ALL_PAIRS, "test_projection.py::test_no_record_moves_the_sums_further_than_is_paid_for_and_one_does",
    ),
    Proved(
        ("releases/pooling.py:Pooling.reach",),
        "sums by public cell and second moments over all cells: all pairs on a grid, for two and three private entries",
        ALL_PAIRS, "test_pooling.py::test_no_record_moves_the_numbers_further_than_is_paid_for_and_one_does",
    ),
    Proved(
        ("families/second_moments.py:Regression._counted_reach", "plans/moments.py:planned_moments"),
        "second moments in private cells, or if a record comes or goes",
        CERTIFIED_BOUND, f"{HERE}test_plans_of_linear_likelihoods",
    ),
    Proved(
        ("plans/totals.py:planned_totals",),
        "totals over individuals, in whole numbers: up to four rows and events; the argument for more is the same",
        ALL_PAIRS, f"{HERE}test_totals",
    ),
    Proved(
        ("plans/totals.py:_values",),
        "values of rows, which one individual moves by so much at most: pairs that far apart, at every edge of their grid",
        ARGUED, "test_privacy_routes.py::test_values_of_rows_cost_what_one_individual_can_move",
    ),
    Proved(
        (
            "plans/network.py:Network.fourier_sensitivity", "plans/network.py:Network.fourier_square",
            "releases/network_tables.py:coefficients_draw",
        ),
        "Fourier coefficients of small networks: all networks of up to four variables of two levels, and others",
        ALL_PAIRS, f"{HERE}test_networks",
    ),
    Proved(
        ("plans/network.py:Network.fourier_sensitivity", "plans/network.py:Network.fourier_square"),
        "Fourier coefficients of larger networks",
        ARGUED, "test_networks.py::test_published_networks",
    ),
    Proved(
        ("releases/network_tables.py:from_child",),
        "counts of a variable that are sums of its child's noisy counts: nothing is released for them",
        ARGUED, "test_networks.py::test_noise_of_shared_counts_has_the_variance_it_is_modelled_with",
    ),
    Proved(
        ("releases/cells.py:PublicCells.draws",),
        "noise of one observed variable: it is drawn with the sensitivity of the plan",
        ARGUED, "test_privacy.py::test_the_charge_is_attained_by_some_pair",
    ),
    Proved(
        ("plans/network.py:record_splits",),
        "draws of a network's tables: networks of up to three variables",
        ALL_PAIRS, f"{HERE}test_draws_of_tables",
    ),
    Proved(
        ("posterior/grid.py:_sensitivity_of_pairs",),
        "draws on a grid, if at most 64 different records can occur: all pairs of these",
        ALL_PAIRS, f"{HERE}test_listed_records",
    ),
    Proved(
        ("posterior/grid.py:_sensitivity_of_pairs",),
        "draws on a grid, if at most 4,096 different records can occur: twice the largest difference of two at a point",
        ARGUED, f"{HERE}test_more_listed_records",
    ),
    Proved(
        ("posterior/grid.py:_sensitivity_of_clipped",),
        "draws on a grid, if log-likelihoods of records are clipped between two integers at every point: all pairs of corners, whatever the"
        " integers are",
        ALL_PAIRS, f"{HERE}test_clipped_records",
    ),
    Proved(
        ("releases/quantiles.py:sensitivity", "releases/quantiles.py:_draw"),
        "private choices of bounds: all pairs of data sets of up to nine records on three candidates; the argument for more is the same",
        ALL_PAIRS, "test_private_bounds.py::test_all_pairs_on_a_small_lattice",
    ),
    Proved(
        ("releases/answers.py:_checked", "releases/answers.py:levels_of_records", "privacy/mechanisms.py:truth_probability"),
        "randomised answers: ratios of the probabilities of all answers, in fractions",
        ALL_PAIRS, f"{HERE}test_answers",
    ),
    Proved(
        ("plans/ranges.py:ranges",),
        "draws by Markov chains, whose log-likelihoods of records are clipped to a range",
        ARGUED, "test_rowwise.py::test_no_record_leaves_its_bounds_and_the_constant_is_nearly_attained",
    ),
    Proved(
        ("posterior/ball_regression.py:cost_in_ball",),
        "draws of a regression's coefficients in a ball, in real arithmetic",
        CERTIFIED_BOUND, f"{HERE}test_draws_in_a_ball",
    ),
    Proved(
        ("posterior/concave_laws.py:range_of_energy", "posterior/concave_laws.py:steepest", "posterior/concave.py:_size"),
        "draws where the log-posterior is concave, in real arithmetic",
        ARGUED, "test_concave.py::test_no_two_records_do_more_than_is_paid_for",
    ),
    Proved(
        ("posterior/ball_regression.py:pull_in_ball",),
        "draws in a ball by the slope of what a record changes, in real arithmetic",
        ARGUED, "test_draws.py::test_no_record_pulls_harder_in_a_ball_than_is_said",
    ),
    Proved(
        ("posterior/paid_gibbs/sensitivity.py:sensitivities_of", "posterior/paid_gibbs/costs.py:draw_of"),
        "updates of chains that pay at every update",
        ARGUED, "test_paid_gibbs.py::test_no_update_loses_more_than_its_price_and_some_state_attains_most_of_it",
    ),
    Proved(
        ("posterior/paid_gibbs/sensitivity.py:log_likelihood_sensitivity", "posterior/paid_gibbs/annealed.py:_weight"),
        "weights of annealed chains",
        ARGUED, "test_annealed.py::test_a_record_moves_a_log_likelihood_by_the_height_at_most",
    ),
    Proved(
        ("posterior/price.py:priced",),
        "several draws from a posterior: the sensitivity of one draw, once for every draw",
        ARGUED, "test_draws.py::test_the_exact_loss_never_exceeds_epsilon_and_nearly_attains_it",
    ),
    Proved(
        ("queries/language.py:Question.sensitivity", "queries/account.py:Account.step"),
        "one question about a table: all cells",
        ALL_PAIRS, f"{HERE}test_questions",
    ),
    Proved(
        ("queries/history.py:History.cost",),
        "all questions of a session: the largest sum over any cell, or pair of cells, in random histories",
        ALL_PAIRS, "test_history.py::test_the_cost_is_that_of_the_dearest_record",
    ),
    Proved(
        ("privacy/lipschitz.py",),
        "Lipschitz constants of likelihoods, in real arithmetic",
        ARGUED, "test_lipschitz.py::test_poisson",
    ),
)  # fmt: skip
