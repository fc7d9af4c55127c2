"""Private quantiles of single arrays of records, by the exponential mechanism on public candidates. ``private_bounds`` uses them.

A candidate's score counts the values below it and above it in integers, so that what one record can do is known exactly. Everything is
priced and checked first, then paid for, and then the records are read.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil, exp, floor, log, prod
from typing import NamedTuple

import numpy as np
import pymc as pm

from pymc_dp.families.family import Domain, complete
from pymc_dp.families.limits import check_bounds, check_spelling
from pymc_dp.models.reader import read_model
from pymc_dp.models.spec import Likelihood, ModelSpec, RecordPath, RecordPaths
from pymc_dp.models.structure import Unreduced
from pymc_dp.plans.bounds import ends_of, kind_of, private_covariates, shape_of_record
from pymc_dp.plans.plan import refuse_problems
from pymc_dp.plans.protection import Protection
from pymc_dp.privacy.accounting import Cost, Refusal, exact_epsilon
from pymc_dp.privacy.guard import boundary
from pymc_dp.privacy.ledger import Ledger, Part, check_ledger, receipt_for
from pymc_dp.privacy.mechanisms import LARGEST_SUM, Laplace, exponential_mechanism
from pymc_dp.privacy.receipts import Draw, Receipt
from pymc_dp.releases.statistics import records_of

MOST_CANDIDATES = 10_000
LOGARITHMIC = 10
"""Candidates between positive ends that are so many times as large are evenly spaced in logarithms."""
LARGEST_DENOMINATOR = 10**6
MISLED = Fraction(1, 20)
"""Ranks are said with this probability of being further off."""
WIDENED, WIDENED_AS_IS = 0.25, 1.0
"""Where nobody says how far bounds are moved apart: where the private model knows what was moved to a bound, and where it does not."""
NEAREST, FURTHEST, UNKNOWN = Fraction(1, 4), Fraction(1, 200), Fraction(1, 20)
"""Where nobody says which quantiles: as far out as can be told, between these; the last where the number of records is private."""


@dataclass(frozen=True, eq=False)
class Column:
    """The values for which one pair of bounds is chosen, and the candidates. It holds no record, but where they are.

    Attributes
    ----------
    name : str
    label : str
        The name, with the place of the column where there are several.
    candidates : (G,) ndarray
        Ascending.
    logarithmic : bool
        Whether they are evenly spaced in logarithms.
    whole : bool
        Whether bounds must be whole numbers.
    places : tuple of int
        Which of a record's numbers count: all of them together.
    path : RecordPath
    records : int or None
        Their number, where that is public.
    taken_as_is : bool
        Whether the private model takes values at a bound for what they are: those of a covariate, of a response with covariates, and
        of a likelihood that can be drawn from, but not released.
    """

    name: str
    label: str
    candidates: np.ndarray
    logarithmic: bool
    whole: bool
    places: tuple[int, ...]
    path: RecordPath
    records: int | None
    taken_as_is: bool = False

    def counts(self) -> np.ndarray:
        """How many values (G,) lie at every candidate or between it and the one before: exact, for ``released_ends`` alone.

        Values beyond the candidates are moved to the nearest, and missing ones are not counted, whatever they are.
        """
        array = records_of(self.path)
        by_row = np.moveaxis(array, self.path.axis or 0, 0)
        flat = by_row.reshape(len(by_row), prod(by_row.shape[1:]))[:, list(self.places)]
        ends = Domain(float(self.candidates[0]), float(self.candidates[-1]), fill=np.nan)
        places = np.searchsorted(self.candidates, complete(flat, ends).ravel())  # of what is missing: beyond the last
        return np.bincount(places, minlength=len(self.candidates) + 1)[: len(self.candidates)]

    def between(self, low: int, high: int, widen: float) -> tuple[float, float]:
        """Bounds from two candidates, in either order: moved apart by a share of their distance, by one step at least, and never equal."""
        grid = np.log(self.candidates) if self.logarithmic else self.candidates
        low, high = min(low, high), max(low, high)
        pad = max(widen * (grid[high] - grid[low]), (grid[-1] - grid[0]) / (len(grid) - 1))
        lower, upper = float(grid[low] - pad), float(grid[high] + pad)
        if self.logarithmic:
            lower, upper = exp(lower), exp(upper)
        if self.whole:
            lower, upper = floor(lower), ceil(upper)
        first, last = (int(end) if self.whole else float(end) for end in self.candidates[[0, -1]])
        return max(lower, first), min(upper, last)


class Quantiles(NamedTuple):
    """A choice of quantiles of which nothing is refused any more and nothing has been paid."""

    columns: tuple[Column, ...]
    quantiles: tuple[tuple[Fraction, Fraction], ...]
    ranks: tuple[float, ...]
    """For every column how far off the share of values may be, in numbers of values, but for a probability of 1/20."""
    cost: Cost
    unit: str
    pay_and_choose: Callable[[], tuple[list[tuple[float, float]], str]]
    """The bounds of every column, and the head of the ledger."""


def sensitivity(quantile: Fraction, values: int, neighbours: str) -> int:
    """The range over candidates of the difference of neighbours' scores, where a record has so many values.

    Let the quantile be a/b, L(c) and R(c) the numbers of values at or below c and above it, and D = (b - a) L - a R; the score is -|D|.
    A value that moves changes D at a candidate by b, -b or 0, and one that comes or goes changes it by b - a or by -a. |D| moves by no
    more than D, up or down: the difference of neighbours' scores lies within [-b, b], or [-m, m] with m = max(a, b - a), and its range
    is at most 2 b, or 2 m. (D grows along the candidates, so both ends occur, for a value that passes all candidates.) A value that turns
    missing goes. The values of a record add up.
    """
    a, b = quantile.numerator, quantile.denominator
    return 2 * values * (b if neighbours == "replace" else max(a, b - a))


def scores(counts: np.ndarray, quantile: Fraction) -> np.ndarray:
    """The score of every candidate (G,), which is the integer -|(b - a) L - a R|; see ``sensitivity``.

    Unbounded integers, then moved into those of 64 bits, which brings no two of them further apart.
    """
    a, b = quantile.numerator, quantile.denominator
    below = np.cumsum(counts.astype(object))
    return np.array([max(-abs(b * int(total) - a * int(below[-1])), -LARGEST_SUM) for total in below], dtype=np.int64)


@boundary
def prepared_quantiles(
    model: pm.Model, protection: Protection, within: Mapping[str, object], *, epsilon: object, quantiles: object, candidates: object,
    widen: object, ledger: Ledger | Part | None,
) -> Quantiles:  # fmt: skip
    """Read the model, price every choice, and refuse whatever can be refused. No record is read, and nothing is paid."""
    ledger, total, widen = check_ledger(ledger), exact_epsilon(epsilon), _checked_widening(widen)
    if protection.aggregate:
        raise Refusal('Bounds are chosen for rows that are records. Write unit="row", or bounds of your own.')
    if type(candidates) is not int or not 3 <= candidates <= MOST_CANDIDATES:
        raise Refusal(f"candidates must be an integer from 3 to {MOST_CANDIDATES:,}. Write for example candidates=1000.")
    spec, paths = _read(model, protection)
    columns = tuple(column for name, pair in within.items() for column in _columns(spec, paths, name, pair, candidates, protection.sized))
    share = total / (2 * len(columns))
    ranks = tuple(_rank(column, share) for column in columns)
    asked = _checked_quantiles(quantiles)
    pairs = tuple(asked or _furthest(column, rank) for column, rank in zip(columns, ranks, strict=True))
    draws = [
        _draw(column, end, quantile, share, protection.neighbours)
        for column, pair in zip(columns, pairs, strict=True)
        for end, quantile in zip(("lower", "upper"), pair, strict=True)
    ]
    cost = Cost(total, rho=sum((draw.rho for draw in draws), Fraction(0)))

    @boundary
    def pay_and_choose() -> tuple[list[tuple[float, float]], str]:
        receipt = receipt_for(ledger, cost, draws, neighbours=protection.neighbours, unit=protection.unit, public=spec.public)
        return released_ends(columns, pairs, draws, widen, receipt), receipt.head

    return Quantiles(columns, pairs, ranks, cost, str(protection.unit), pay_and_choose)


def _read(model: pm.Model, protection: Protection) -> tuple[ModelSpec, dict[str, RecordPaths]]:
    """The model as a release reads it, or, where that is refused, as draws from its posterior do; there nothing is known to be clamped."""
    spec, paths = read_model(model, protection.public, sized=protection.sized)
    try:
        refuse_problems(spec)
    except Refusal as reason:
        spec, paths = read_model(model, protection.public, sized=protection.sized, rowwise=True)
        if spec.problems or any(likelihood.refusal for likelihood in spec.likelihoods):
            raise reason from None
    return spec, paths


def released_ends(
    columns: Sequence[Column], pairs: Sequence[tuple[Fraction, Fraction]], draws: Sequence[Draw], widen: float | None, receipt: Receipt
) -> list[tuple[float, float]]:
    """Read the records of every column, once, and choose two candidates: nothing else leaves."""
    left, ends = iter(draws), []
    for column, pair in zip(columns, pairs, strict=True):
        counts = column.counts()
        low, high = (exponential_mechanism([scores(counts, quantile)], next(left).scale, receipt)[0] for quantile in pair)
        share = widen if widen is not None else WIDENED_AS_IS if column.taken_as_is else WIDENED
        ends.append(column.between(low, high, share))
    return ends


def _draw(column: Column, end: str, quantile: Fraction, share: Fraction, neighbours: str) -> Draw:
    """One choice, with its price."""
    eta = sensitivity(quantile, len(column.places), neighbours)
    scale = Laplace().calibrate(eta, eta**2, Cost(share))
    return Draw(f"{end} bound of {column.label}", "choice", eta, eta**2, scale, len(column.candidates))


def _rank(column: Column, share: Fraction) -> float:
    """The number of values by which a chosen candidate's share is further off than the best one's, but for a probability of 1/20.

    A candidate that is r values worse than the best has at most exp(-r share / (2 K)) of its probability, K values a record: with G
    candidates, all that are worse than r have at most G times that together (McSherry, Talwar 2007).
    """
    return 2 * len(column.places) / float(share) * log(len(column.candidates) / float(MISLED))


def _furthest(column: Column, rank: float) -> tuple[Fraction, Fraction]:
    """The furthest quantiles that can be told from the ends of the data, in thousandths: they rest on public numbers alone."""
    if column.records is None:
        return UNKNOWN, 1 - UNKNOWN
    values = max(column.records * len(column.places), 1)
    quantile = min(max(Fraction(ceil(min(rank / values, 1.0) * 1000), 1000), FURTHEST), NEAREST)
    return quantile, 1 - quantile


def _columns(spec: ModelSpec, paths: Mapping[str, RecordPaths], name: str, pair: object, candidates: int, sized: bool) -> list[Column]:
    """The columns of an observed variable or a private covariate, one for every pair of bounds that it has."""
    for likelihood in spec.likelihoods:
        if likelihood.name == name:
            return _of_observed(likelihood, paths[name].observed, pair, candidates, sized)
    inputs = [
        (placeholder, path)
        for likelihood in spec.likelihoods
        for placeholder, path in zip(likelihood.inputs, paths[likelihood.name].inputs, strict=True)
    ]
    covariates = {covariate.variable for likelihood in spec.likelihoods for covariate in private_covariates(likelihood)}
    for placeholder, path in inputs:
        if placeholder.name == name and placeholder.variable in covariates and placeholder.variable.type.dtype != "bool":
            if path.axis is None:
                raise Refusal(f"{name} has no axis of records. Give every private array one row per record.")
            try:
                shape = shape_of_record(placeholder)
                check_spelling(name, pair, prod(shape))
                ends = [end.ravel() for end in ends_of(name, pair, shape, whole=placeholder.whole)]
            except Unreduced as reason:
                raise Refusal(f"within is not what it must be: {reason}.") from None
            records = records_of(path).shape[path.axis] if sized else None
            kind = "whole" if placeholder.whole else "real"
            columns = [
                _column(name, (k,), prod(shape), float(lower), float(upper), kind, candidates, path, records)
                for k, (lower, upper) in enumerate(zip(*ends, strict=True))
            ]
            return [replace(column, taken_as_is=True) for column in columns]
    raise Refusal(_none_needed(spec, name))


def _of_observed(likelihood: Likelihood, path: RecordPath, pair: object, candidates: int, sized: bool) -> list[Column]:
    """The columns of an observed variable: all its values together, or of vectors every entry by itself."""
    name, entries = likelihood.name, likelihood.levels if likelihood.distribution == "MvNormal" else 1
    if likelihood.natural is not None:
        raise Refusal(f"{name} is {likelihood.distribution}, whose values are limited by themselves. Leave {name} out of names.")
    shape = records_of(path).shape
    if shape[1:] != (*likelihood.columns, *((entries,) if entries > 1 else ())):
        raise Refusal(f"{name} has other columns than its likelihood. Give it the shape of its likelihood.")
    check_spelling(name, pair, entries)
    try:
        ends = ends_of(name, pair, (entries,), whole=False)
    except Unreduced as reason:
        raise Refusal(f"within is not what it must be: {reason}.") from None
    several, result = prod(likelihood.columns), []
    for k, (lower, upper) in enumerate(zip(*ends, strict=True)):
        if likelihood.family is not None:
            check_bounds(likelihood.family, name, (lower, upper))
        places = tuple(range(k, several * entries, entries))
        ends_and_kind = float(lower), float(upper), kind_of(likelihood)
        column = _column(name, places, entries, *ends_and_kind, candidates, path, shape[0] if sized else None, k)
        result.append(replace(column, taken_as_is=likelihood.linear is not None or likelihood.family is None))
    return result


def _column(
    name: str, places: tuple[int, ...], many: int, lower: float, upper: float, kind: str, candidates: int, path: RecordPath,
    records: int | None, place: int | None = None,
) -> Column:  # fmt: skip
    """One column with its candidates, between public ends."""
    if kind == "positive" and not lower > 0:
        raise Refusal(f"Values of {name} are positive, so within must be. Write for example within={{{name!r}: (0.1, 1e6)}}.")
    logarithmic = in_logarithms(lower, upper)
    grid = np.geomspace(lower, upper, candidates) if logarithmic else np.linspace(lower, upper, candidates)
    grid[[0, -1]] = lower, upper
    whole = kind in ("integer", "whole")
    grid = np.unique(np.rint(grid)) if whole else grid
    sizes = np.maximum(np.abs(grid[1:]), np.abs(grid[:-1]))
    if not whole and not (np.diff(grid) > np.spacing(sizes) * 2**22).all():
        raise Refusal(f"within puts the candidates for {name} too close for double precision. Write fewer candidates, or wider ends.")
    label = name if many == 1 else f"{name}[{places[0] if place is None else place}]"
    return Column(name, label, grid, logarithmic, whole, places, path, records)


def in_logarithms(lower: float, upper: float) -> bool:
    """Whether candidates between these ends are evenly spaced in logarithms."""
    return lower > 0 and upper >= LOGARITHMIC * lower


def _none_needed(spec: ModelSpec, name: str) -> str:
    """Why there are no bounds to be chosen for a name, in words."""
    inputs = [placeholder for likelihood in spec.likelihoods for placeholder in likelihood.inputs if placeholder.name == name]
    if any(placeholder.private for placeholder in inputs):
        return f"{name} is an index or a truth value, whose values are limited by themselves. Leave {name} out of names."
    wanted = [likelihood.name for likelihood in spec.likelihoods if likelihood.natural is None]
    wanted += [p.name for likelihood in spec.likelihoods for p in private_covariates(likelihood) if p.variable.type.dtype != "bool"]
    listed = ", ".join(map(repr, dict.fromkeys(wanted))) or "none, for none needs bounds"
    return f"names must name observed variables and private covariates that need bounds. Write one of {listed}."


def _checked_quantiles(quantiles: object) -> tuple[Fraction, Fraction] | None:
    """A lower and an upper quantile as the decimals that were written."""
    if quantiles is None:
        return None
    example = "Write for example quantiles=(0.005, 0.995)"
    try:
        low, high = (value if isinstance(value, Fraction) else Fraction(Decimal(repr(float(value)))) for value in quantiles)  # type: ignore[attr-defined]
    except (TypeError, ValueError, ArithmeticError):
        raise Refusal(f"quantiles must be two numbers. {example}.") from None
    if not 0 < low < high < 1:
        raise Refusal(f"quantiles must lie between 0 and 1, the lower one first. {example}.")
    if max(low.denominator, high.denominator) > LARGEST_DENOMINATOR:
        raise Refusal(f"quantiles have six decimals at most. {example}.")
    return low, high


def _checked_widening(widen: object) -> float | None:
    """The share of their distance by which bounds are moved apart, on either side; None where that is left to us."""
    if widen is None:
        return None
    if isinstance(widen, bool) or not isinstance(widen, int | float) or not 0 <= widen <= 10:
        raise Refusal("widen is the share of their distance by which bounds are moved apart, from 0 to 10. Write for example widen=0.25.")
    return float(widen)
