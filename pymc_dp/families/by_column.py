"""A family whose values have several columns, each with bounds of its own: it asks its family column by column.

One record has one value in every column. Shapes: C columns in all, G cells, K statistics.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace

import numpy as np
import pytensor.tensor as pt

from pymc_dp.families.family import CellSensitivity, Domain, Family, Sensitivity
from pymc_dp.laws.events import Events
from pymc_dp.laws.kernel import Tensor
from pymc_dp.laws.law import Law, Moments


def with_columns(family: Family, domain: Domain) -> Family:
    """The family that answers for this domain: itself where all columns have the same bounds."""
    return ByColumn(family) if domain.columns else family


def of_record(family: Family, domain: Domain) -> Sensitivity:
    """How far one record can move the statistics of columns with bounds of their own: L1 distances add up, and so do squared L2 ones.

    Columns are released next to each other, and a record may hold anything in each, so that no two of them can be bounded together.
    """
    each = [family.sensitivity(part) for part in columns_of(domain)]
    why = f"{each[0].why}, in each of {len(each)} columns"
    if len({one.why for one in each}) > 1:
        why = "; ".join(f"column {c}: {one.why}" for c, one in enumerate(each))
    return Sensitivity(sum(one.difference for one in each), sum(one.square for one in each), max(one.largest for one in each), why)


def columns_of(domain: Domain) -> list[Domain]:
    """What is known about the values of every column."""
    return [replace(domain, lower=lower, upper=upper, columns=()) for lower, upper in domain.columns]


class ByColumn(Family):
    """A family of single numbers, for a domain whose columns have bounds of their own."""

    EXAMPLES = ()

    def __init__(self, family: Family) -> None:
        self.family = family
        self.DISTRIBUTION, self.BOUNDS, self.UNCLAMPED = family.DISTRIBUTION, family.BOUNDS, family.UNCLAMPED
        self.KNOWN, self.FIXED, self.NATURAL = family.KNOWN, family.FIXED, family.NATURAL

    def lattice(self, domain: Domain) -> float:
        """The lattice of every column: it does not rest on bounds."""
        return self.family.lattice(columns_of(domain)[0])

    def statistics(self, domain: Domain) -> tuple[str, ...]:
        """The statistics of every column."""
        return self.family.statistics(columns_of(domain)[0])

    def exact(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """The statistics of every value by the bounds of its column; the last axes of ``values`` are those of the columns."""
        return self._of_values(self.family.exact, values, domain)

    def doubles(self, values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        """The same as ``exact``, as float64 where the family has that."""
        return self._of_values(self.family.doubles, values, domain)

    def _of_values(self, of_column: Callable[..., tuple[np.ndarray, ...]], values: np.ndarray, domain: Domain) -> tuple[np.ndarray, ...]:
        flat = values.reshape(-1, len(domain.columns))
        parts = [of_column(flat[:, c], part) for c, part in enumerate(columns_of(domain))]
        return tuple(np.stack(statistic, axis=1).reshape(values.shape) for statistic in zip(*parts, strict=True))

    def completes(self, domain: Domain) -> bool:
        """Whether that is so in every column."""
        return all(map(self.family.completes, columns_of(domain)))

    def sensitivity(self, domain: Domain) -> Sensitivity:
        """How far one value can move its statistics, in whichever column it is."""
        each = [self.family.sensitivity(part) for part in columns_of(domain)]
        difference, square, largest = (max(getattr(one, name) for one in each) for name in ("difference", "square", "largest"))
        return Sensitivity(difference, square, largest, max(each, key=lambda one: one.difference).why)

    def cell_sensitivity(self, domain: Domain) -> CellSensitivity:
        """The statistics with the count among them, which are the same in every column: see ``shares_cells``."""
        return self.family.cell_sensitivity(columns_of(domain)[0])

    def shares_cells(self, domain: Domain) -> bool:
        """Whether counts can stand among the statistics: whether these are put together in the same way whatever the bounds."""
        return len({self.family.cell_sensitivity(part) for part in columns_of(domain)}) == 1

    def law(self, domain: Domain, n: Tensor, *parameters: Tensor) -> Law:
        """The laws of all columns beside each other: parameters have their full shape (G, *C)."""
        parts = [self.family.law(*given) for given in self._columns(domain, n, parameters)]
        moments = [part for part in parts if isinstance(part, Moments)]
        assert len(moments) == len(parts), "what is clamped has a law by mean and covariance"
        shape = _shape(parameters[0])
        means = tuple(_beside(several, shape) for several in zip(*(part.mean for part in moments), strict=True))
        rows = zip(*(part.covariance for part in moments), strict=True)
        covariance = tuple(tuple(_beside(several, shape) for several in zip(*row, strict=True)) for row in rows)
        return Moments(n, means, covariance, squares=moments[0].squares, events=_events([part.events for part in moments], shape))

    def project(self, noisy: np.ndarray, n: np.ndarray, spread: float, domain: Domain) -> np.ndarray:
        """Noisy sums of every column moved into the set that n records can produce there."""
        K, C = noisy.shape[-1], len(domain.columns)
        flat, sizes = noisy.reshape(-1, C, K), np.broadcast_to(n, (*noisy.shape[:-1], 1)).reshape(-1, C, 1)
        parts = [self.family.project(flat[:, c], sizes[:, c], spread, part) for c, part in enumerate(columns_of(domain))]
        return np.stack(parts, axis=1).reshape(noisy.shape)

    def log_likelihood(self, sums: Tensor, n: Tensor, domain: Domain, *parameters: Tensor) -> Tensor:
        """The log-likelihoods of all columns beside each other."""
        flat = sums.reshape((-1, len(domain.columns), sums.shape[-1]))
        given = self._columns(domain, n, parameters)
        parts = [self.family.log_likelihood(flat[:, c : c + 1], size, part, *ps) for c, (part, size, *ps) in enumerate(given)]
        return _beside(parts, _shape(parameters[0]))

    def _columns(self, domain: Domain, n: Tensor, parameters: Sequence[Tensor]) -> list[tuple]:
        """For every column its domain, and sizes and parameters there, each (G, 1)."""
        C = len(domain.columns)
        full = [pt.as_tensor_variable(n) + pt.zeros_like(parameters[0]), *parameters]
        flat = [array.reshape((array.type.shape[0] or -1, C)) for array in full]
        return [(part, *(array[:, c : c + 1] for array in flat)) for c, part in enumerate(columns_of(domain))]


def _shape(parameter: Tensor) -> tuple[int, ...]:
    """The shape (G, *C) of a parameter, G being what is left where it is not fixed."""
    first, *columns = parameter.type.shape
    return (first or -1, *columns)


def _events(parts: Sequence[Events | None], shape: tuple[int, ...]) -> Events | None:
    """The law of events of all columns; None where one has none."""
    of_columns = [part for part in parts if part is not None]
    if len(of_columns) < len(parts):
        return None
    return Events(*(_beside([getattr(part, field.name) for part in of_columns], shape) for field in fields(Events)))


def _beside(parts: Sequence[Tensor], shape: tuple[int, ...]) -> Tensor:
    """Columns (G, 1) beside each other, in the shape (G, *C)."""
    return pt.concatenate(list(parts), axis=1).reshape(shape)
