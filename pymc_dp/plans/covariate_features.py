"""The features of a linear likelihood, as functions of a record's private covariates.

They are computed by the model's own graphs, at covariates that are made up. No record is looked at.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import get_ident

import numpy as np
import pytensor
from pytensor.graph.basic import Variable

from pymc_dp.models.spec import Likelihood

FEW_VALUES = 12
"""Whole numbers between bounds nearer than this are all listed."""
PROBES, COMPARED = 20, 2**14
"""At how many points it is looked which entries a feature rests on, and over how many features of two models are compared."""
ELSEWHERE = 0.6180339887498949
"""The value of real numbers in all other arrays where features of two models are compared."""
MOST = 1e300
"""What is larger counts as this in means of features, and what is no number as 0."""


@dataclass(frozen=True)
class Entry:
    """One number that a record holds in a covariate, and what it can be."""

    lower: float
    upper: float
    levels: tuple[float, ...]
    whole: bool

    @property
    def values(self) -> np.ndarray | None:
        """All of them, where they are few."""
        if self.levels:
            return np.array(self.levels)
        return np.arange(self.lower, self.upper + 1) if self.whole and self.upper - self.lower < FEW_VALUES else None


class CovariateFeatures:
    """Features as a function of entries.

    Parameters
    ----------
    likelihood : Likelihood
        Linear.
    bounds : mapping
        Of private covariates by name: lower and upper bounds of a record's entries, and all values if they were listed.

    Attributes
    ----------
    entries : list of Entry
        E numbers that a record holds in covariates that make features, in order.
    """

    def __init__(self, likelihood: Likelihood, bounds: Mapping[str, Sequence[tuple[float, ...]]]) -> None:
        assert likelihood.linear is not None
        inputs = [
            covariate for covariate in likelihood.inputs if covariate.name in bounds and covariate.axis is not None and not covariate.index
        ]
        self.entries: list[Entry] = []
        for covariate in inputs:
            lower, upper, levels = bounds[covariate.name]
            self.entries += [Entry(low, high, levels, covariate.whole) for low, high in zip(lower, upper, strict=True)]
        self._inputs, self._columns = inputs, likelihood.columns
        others = [placeholder for placeholder in likelihood.inputs if placeholder not in inputs]
        empty = [np.zeros([1 if k == g.axis else n or 1 for k, n in enumerate(g.variable.type.shape)]) for g in others]
        self._others = [(array, g.axis) for array, g in zip(empty, others, strict=True)]
        self._types = [placeholder.variable.type.dtype for placeholder in (*inputs, *others)]
        variables = [placeholder.variable for placeholder in (*inputs, *others)]
        self._function = _compiled(tuple(likelihood.linear.features), tuple(variables), get_ident())

    def __call__(self, values: np.ndarray, others: float = 0.0) -> np.ndarray:
        """Features (N, columns, F) of entries (N, E), where real numbers in all other inputs are ``others``."""
        arrays, start, N = [], 0, len(values)
        for placeholder in self._inputs:
            shape = [n or 1 for k, n in enumerate(placeholder.variable.type.shape) if k != placeholder.axis]
            many = int(np.prod(shape))
            arrays.append(np.moveaxis(values[:, start : start + many].reshape(N, *shape), 0, placeholder.axis or 0))
            start += many
        besides = [array if axis is None else np.repeat(array, N, axis=axis) for array, axis in self._others]
        dtypes = self._types[len(arrays) :]
        filled = [array + others * (np.dtype(dtype).kind == "f") for array, dtype in zip(besides, dtypes, strict=True)]
        with np.errstate(all="ignore"):
            typed = [array.astype(dtype) for array, dtype in zip([*arrays, *filled], self._types, strict=True)]
            features = [np.broadcast_to(np.asarray(array, dtype=float), (N, *self._columns)) for array in self._function(*typed)]
        return np.stack([array.reshape(N, -1) for array in features], axis=-1)

    def uses(self) -> tuple[list[set[int]], list[bool]]:
        """For every feature which entries it rests on, and whether it is a straight line in a single one."""
        E, at = len(self.entries), self._points(3 * PROBES).reshape(3, PROBES, -1)
        base = self(at[0])
        uses: list[set[int]] = [set() for _ in range(base.shape[-1])]
        for e in range(E):
            moved = at[0].copy()
            moved[:, e] = at[1][:, e]
            for k in np.flatnonzero((self(moved) != base).any(axis=(0, 1))):
                uses[k].add(e)
        # On three points of a line its values lie on a line, too.
        first, second, between = self(at[1]), self(at[2]), self((at[1] + at[2]) / 2)
        bent = np.abs(first + second - 2 * between).max(axis=(0, 1)) > 1e-6 * (1e-300 + np.abs(base).max(axis=(0, 1)))
        return uses, [len(used) == 1 and not bent[k] for k, used in enumerate(uses)]

    def probed(self) -> tuple[tuple[float, ...], ...]:
        """Means of all features over many points, and of their sizes: a release holds them, so that it is not taken for one of others.

        Points have weights of their own, so that two functions that differ at any of them have different means. They are computed from the
        model's graph and from declared bounds alone, at points that are the same for everybody. Nothing, where the graph needs public
        arrays of lengths that their types leave open.
        """
        try:
            values = self(self._points(COMPARED), ELSEWHERE).reshape(COMPARED, -1)
        except (AssertionError, ValueError):  # of PyTensor: arrays made up here have length 1 there
            return ()
        values = np.clip(np.nan_to_num(values, nan=0.0), -MOST, MOST)
        weights = (0.5 + np.arange(1, COMPARED + 1) * 2**0.2 % 1)[:, None] / COMPARED
        return tuple(tuple(map(float, (weights * each).sum(axis=0))) for each in (values, np.abs(values)))

    def _points(self, many: int) -> np.ndarray:
        """Points (many, E) within the bounds: multiples of irrational numbers, less their whole parts.

        They are in no way special, and always the same.
        """
        E = len(self.entries)
        lower, upper = (np.array([getattr(entry, end) for entry in self.entries]) for end in ("lower", "upper"))
        parts = np.arange(1, many + 1)[:, None] * 2.0 ** (np.arange(1, E + 1) / (E + 1)) % 1
        return lower + (upper - lower) * parts


@lru_cache(maxsize=16)
def _compiled(features: tuple[Variable, ...], variables: tuple[Variable, ...], thread: int) -> Callable[..., list]:
    """Features as a function of their inputs: a graph on placeholders, compiled once in every thread."""
    with pytensor.config.change_flags(numba__cache=False):
        return pytensor.function(list(variables), list(features), mode="FAST_COMPILE", on_unused_input="ignore")
