"""The noun ``NoisyStatistic``: what a release holds of one observed variable, and how it is written to a file."""

import json
from dataclasses import asdict, dataclass, field
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dp.families.by_column import with_columns
from pymc_dp.families.family import Domain, Family, named
from pymc_dp.families.normal import ROW_VALUES
from pymc_dp.families.residuals import Residuals
from pymc_dp.families.second_moments import Regression
from pymc_dp.models.public_inputs import Means
from pymc_dp.models.row_patterns import PATTERNS
from pymc_dp.models.tabulated import BINNED, TABLE
from pymc_dp.plans.bin_nodes import Within
from pymc_dp.privacy.accounting import Cost
from pymc_dp.privacy.entries import cost_facts, cost_in
from pymc_dp.privacy.layout import counted, listed, wrapped
from pymc_dp.privacy.mechanisms import resolve
from pymc_dp.privacy.noise_law import Noise

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class NoisyStatistic:
    """The noisy statistics of one observed variable.

    Attributes
    ----------
    variable, distribution, structure : str
    tabulated : bool
        Whether the statistics are the numbers of records with each value, or in each bin.
    statistics : tuple of str
        Names of the K statistics.
    noisy : (G * V, *C, K) int64 ndarray
        In lattice units: G public cells, each with V private ones.
    sizes : {"public", "simplex", "kept", "free"}
        Whether the numbers of records in cells are public, add up to public ones, are at most public ones, or are unknown.
    n : (G,) int64 ndarray
        Records per public cell; empty where that is private.
    inputs : tuple of ndarray
        The inputs of the likelihood, one row per cell, or the whole table.
    domain : Domain
    regression : Regression or None
        For second moments. By what it multiplies them they are multiplied in ``noisy``, and divided in ``values``.
    known : (G * V, *C, R, R) ndarray
        Second moments of public features, in lattice units; empty otherwise.
    difference, square : int
        L1 and squared L2 sensitivity, in lattice units and their square.
    scale : float
        Of the noise, in lattice units.
    mechanism : str
    cost : Cost
        What this variable cost; of Fourier coefficients, all of them together.
    divisor : int
        A lattice unit is the family's, divided by this: more than 1 where counts were computed from what was released.
    deviation : float
        Standard deviation of the noise on every entry, in units of the statistics, where it is taken as normal; 0 where it is as drawn.
    covariance : (*C, M, M) ndarray
        Of the noise on a table of M counts, where it is not alike everywhere; empty otherwise.
    shift : int
        Then, what makes counts nonnegative, in lattice units, for ``noise_aware=False``.
    covariates : tuple of (str, tuple of float, tuple of float, tuple of float)
        Of second moments, the private covariates: name, lower and upper bounds of a record's entries, and all values if they were listed.
    left_out : tuple of str
        Records in which one of these is missing are not among those that were summed.
    anchor : (G * V, *C, F) ndarray
        Of a regression with a link, the coefficients of scaled features at which scores were taken; empty otherwise.
    weights : (G, *C, P) int64 ndarray
        Where sums by cell were weighted by P public features and added up, these features: then there is one of all K P sums, in the
        order of features, in place of the G * V cells. Empty otherwise. ``divisor`` stands for 1 in them.
    multipliers : (K,) int64 ndarray
        Where sums by cell were released of what differs between cells alone, and all else over all cells (``pooling``), by what each of
        the K numbers was multiplied: then they are one row, in place of the G * V cells. Empty otherwise.
    grid : tuple of int
        Where private covariates are counted in bins, how many levels or bins every private entry has: V is their product. Empty otherwise.
    within : tuple of Within
        Which axes of ``grid`` are bins, and their edges. The inputs then hold a value in each bin.
    binned : tuple of str
        Names of the covariates that are counted in bins.
    told : tuple of tuple of Means
        For every input, if it is public, which function of the model's public arrays it is, or may be. Older versions did not tell.
    labels : tuple of tuple of str
        For every input, then for the variable itself and then for every axis of its columns, what the model calls the levels or entries
        0, 1, 2, ..., as texts.
    named : tuple of str
        For every input what the model calls the array that it comes from. Older versions did not tell.
    residuals : Residuals or None
        Where sums of residuals were released after second moments, where they were taken. They stand last in ``noisy``, in units of their
        own, and ``scale`` and the sensitivities are those of the second moments alone; ``cost`` is that of both.
    combination : (G, *C, K, 1 + R) ndarray
        Of numbers that others published, how each is made of the number of records and the family's R sums, both in units of its noise:
        then these are in ``noisy``, and ``values`` are in units of the noise. Empty otherwise.
    """

    variable: str
    distribution: str
    structure: str
    tabulated: bool
    statistics: tuple[str, ...]
    noisy: np.ndarray
    sizes: str
    n: np.ndarray
    inputs: tuple[np.ndarray, ...]
    domain: Domain
    regression: Regression | None
    known: np.ndarray
    difference: int
    square: int
    scale: float
    mechanism: str
    cost: Cost
    divisor: int = 1
    deviation: float = 0.0
    covariance: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    shift: int = 0
    covariates: tuple[tuple[str, tuple[float, ...], tuple[float, ...], tuple[float, ...]], ...] = ()
    left_out: tuple[str, ...] = ()
    anchor: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    weights: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    multipliers: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    grid: tuple[int, ...] = ()
    within: tuple[Within, ...] = ()
    binned: tuple[str, ...] = ()
    told: tuple[tuple[Means, ...], ...] = ()
    labels: tuple[tuple[str, ...], ...] = ()
    named: tuple[str, ...] = ()
    residuals: Residuals | None = None
    combination: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    def __post_init__(self) -> None:
        for array in self.arrays:
            array.setflags(write=False)

    def __repr__(self) -> str:
        return wrapped(f"NoisyStatistic of {self.variable}: {self.contents}, epsilon {float(self.cost.epsilon):g}, noise sd {self.spread}")

    @property
    def contents(self) -> str:
        """What there is, in words."""
        return f"{listed(self.statistics, 'in all')} in {counted(len(self.noisy), 'cell')}"

    @property
    def spread(self) -> str:
        """Standard deviation of the noise on what is released, in words."""
        several = self.deviations
        if several.min() == several.max():
            return f"{several[0]:.4g}"
        if self.multipliers.size or self.regression is None:
            return f"{several.min():.4g} to {several.max():.4g}"
        if self.residuals is not None:
            K = len(self.regression.entries)
            products, squares = several[K], several[-1]
            residual_words = f", {products:.4g} of sums of residuals and {squares:.4g} of the sum of their squares"
            several = several[:K]
            if several.min() == several.max():
                return f"{several[0]:.4g} of moments{residual_words}"
        else:
            residual_words = ""
        return f"{several.min():.4g} of products with the response, {several.max():.4g} of all others{residual_words}"

    @property
    def family(self) -> Family | None:
        """The family of its likelihood; None for second moments."""
        if self.regression is not None:
            return None
        if self.tabulated:
            return BINNED if self.domain.edges else PATTERNS if self.domain.levels else TABLE
        if self.holds_values:
            return ROW_VALUES
        return with_columns(named(self.distribution), self.domain)

    @property
    def holds_values(self) -> bool:
        """Whether it is the value of every row, not a total."""
        return self.structure == "aggregate" and self.distribution not in ("Binomial", "Multinomial", "Poisson")

    @property
    def unit(self) -> float:
        """What 1 is in the family's own integers, in units of the statistics."""
        if self.regression is not None:
            return self.regression.lattice
        if (self.structure == "aggregate" and not self.holds_values) or self.combination.size:
            return 1.0
        assert self.family is not None
        return self.family.lattice(self.domain)

    @property
    def lattice(self) -> float:
        """Size of one lattice unit, in units of the statistics."""
        return self.unit / self.divisor

    @property
    def sensitivity(self) -> float:
        """How far one record moves what is released, in units of the statistics times their multipliers; Fourier ones all together.

        In L1 for Laplace noise, in L2 for Gaussian.
        """
        return (self.difference if self.mechanism != "gaussian" else sqrt(self.square)) * self.lattice

    @property
    def noise(self) -> Noise:
        """The law of the noise on every entry, before what was multiplied is divided."""
        if self.deviation:
            return Noise(self.deviation / self.unit, self.unit, gaussian=True)
        return resolve(self.mechanism).noise(self.scale, self.lattice)

    @property
    def noise_on_residuals(self) -> Noise:
        """The law of the noise on sums of residuals, in their own units."""
        assert self.residuals is not None
        return resolve(self.mechanism).noise(self.residuals.scale, self.lattice)

    @property
    def whole(self) -> bool:
        """Whether the noise is a law on the lattice of the exact statistics, so that it can be summed over."""
        return self.divisor == 1 or (self.mechanism == "gaussian" and self.deviation > 0)

    @property
    def values(self) -> np.ndarray:
        """The noisy statistics (G * V, *C, K) in their own units, as float64."""
        values = self.noisy.astype(np.float64) * self.lattice
        return values if (times := self.times) is None else values / times

    @property
    def times(self) -> np.ndarray | None:
        """The factor on each of the K statistics before the noise, units of residuals among it; None where there is none."""
        if self.multipliers.size:
            return self.multipliers
        if self.regression is not None and self.residuals is not None:
            return np.concatenate([self.regression.weights, 1 / self.residuals.units])
        if self.regression is None or (self.regression.multipliers == (1, 1) and not self.regression.scales):
            return None
        return np.array(self.regression.weights)

    @property
    def deviations(self) -> np.ndarray:
        """Standard deviation (K,) of the noise on each of the K ``values``, in units of the statistics."""
        sd = np.full(self.noisy.shape[-1], self.noise.standard_deviation)
        if self.residuals is not None:
            sd[-self.residuals.features - 1 :] = self.noise_on_residuals.standard_deviation
        return sd if (times := self.times) is None else sd / times

    @property
    def batch(self) -> tuple[int, ...]:
        """The shape (cells, *C) in which its likelihood has parameters."""
        if self.multipliers.size:
            return self.n.shape
        return self.weights.shape[:-1] if self.weights.size else self.noisy.shape[:-1]

    @property
    def private_cells(self) -> int:
        """V, the number of private cells in each public one."""
        return len(self.noisy) // max(len(self.n), 1)

    @property
    def in_bins(self) -> frozenset[str]:
        """Names of what is counted in bins: the variable itself, and covariates."""
        return frozenset((*self.binned, *((self.variable,) if self.domain.edges else ())))

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """Every array that belongs to it."""
        return (
            self.noisy,
            self.n,
            self.known,
            self.covariance,
            self.anchor,
            self.weights,
            self.multipliers,
            self.combination,
            *self.inputs,
        )

    def facts(self) -> dict[str, object]:
        """All that is no array, as plain values to be written down. What only covariates in bins have is left out where there are none."""
        facts: dict[str, object] = {
            "variable": self.variable, "distribution": self.distribution, "structure": self.structure, "tabulated": self.tabulated,
            "statistics": list(self.statistics), "sizes": self.sizes, "domain": asdict(self.domain),
            "regression": _regression_facts(self.regression), "difference": str(self.difference),
            "square": str(self.square), "scale": self.scale, "mechanism": self.mechanism, "cost": cost_facts(self.cost),
            "divisor": str(self.divisor), "deviation": self.deviation, "shift": str(self.shift),
            "covariates": [list(covariate) for covariate in self.covariates], "left_out": list(self.left_out),
            "told": self.told,
        }  # fmt: skip
        in_bins: dict[str, object] = {"grid": list(self.grid), "within": list(map(list, self.within)), "binned": list(self.binned)}
        residuals: dict[str, object] = {} if self.residuals is None else {"residuals": asdict(self.residuals)}
        called: dict[str, object] = {name: told for name, told in (("labels", self.labels), ("named", self.named)) if told}
        return facts | (in_bins if self.within else {}) | residuals | called

    def to_dataset(self) -> "xr.Dataset":
        """The statistic as an ``xarray.Dataset``."""
        import xarray as xr

        columns = [f"column_{axis}" for axis in range(self.noisy.ndim - 2)]
        arrays: dict[str, object] = {"noisy": (("cell", *columns, "statistic"), self.noisy), "n": (("group",), self.n)}
        arrays["known"] = (tuple(f"known_axis_{axis}" for axis in range(self.known.ndim)), self.known)
        arrays["covariance"] = (tuple(f"covariance_axis_{axis}" for axis in range(self.covariance.ndim)), self.covariance)
        if self.anchor.size:
            arrays["anchor"] = (("cell", *columns, "feature"), self.anchor)
        if self.weights.size:
            arrays["weights"] = (("row", *columns, "feature"), self.weights)
        if self.multipliers.size:
            arrays["multipliers"] = (("statistic",), self.multipliers)
        if self.combination.size:
            arrays["combination"] = (("cell", *columns, "statistic", "sum"), self.combination)
        for j, values in enumerate(self.inputs):
            arrays[f"input_{j}"] = (tuple(f"input_{j}_axis_{axis}" for axis in range(values.ndim)), values)
        return xr.Dataset(arrays, attrs={"statistic": json.dumps(self.facts())})

    @classmethod
    def of_dataset(cls, group: "xr.Dataset") -> "NoisyStatistic":
        """The inverse of ``to_dataset``."""
        facts = json.loads(group.attrs["statistic"])
        regression = facts.pop("regression")
        if regression is not None:
            regression.pop("shaped", None)  # of releases before scores
        return cls(
            **facts
            | {
                "statistics": tuple(facts["statistics"]),
                "cost": cost_in(facts["cost"]),
                "domain": Domain(**_tuples(facts["domain"])),
                "regression": None if regression is None else Regression(**_tuples(regression)),
                **{name: int(facts[name]) for name in ("difference", "square", "shift", "divisor")},
                "left_out": tuple(facts["left_out"]),
                "told": _tuple(facts.get("told", [])),
                "labels": _tuple(facts.get("labels", [])),
                "named": tuple(facts.get("named", ())),
                "grid": tuple(facts.get("grid", ())),
                "within": tuple(Within(*_tuple(within)) for within in facts.get("within", ())),  # type: ignore[misc]
                "binned": tuple(facts.get("binned", ())),
                "residuals": None if facts.get("residuals") is None else Residuals(**_tuples(facts["residuals"])),
                "covariates": tuple((name, *map(tuple, several)) for name, *several in facts["covariates"]),
            },
            noisy=group["noisy"].values.astype(np.int64),
            n=group["n"].values.astype(np.int64),
            known=group["known"].values,
            covariance=group["covariance"].values,
            anchor=group["anchor"].values if "anchor" in group else np.zeros((0, 0)),
            weights=group["weights"].values.astype(np.int64) if "weights" in group else np.zeros((0, 0), dtype=np.int64),
            multipliers=group["multipliers"].values.astype(np.int64) if "multipliers" in group else np.zeros(0, dtype=np.int64),
            combination=group["combination"].values if "combination" in group else np.zeros((0, 0)),
            inputs=tuple(group[f"input_{j}"].values for j in range(sum(str(v).startswith("input_") for v in group.data_vars))),
        )


def _regression_facts(regression: Regression | None) -> dict[str, object] | None:
    """A regression as plain values; ``scales``, which older versions do not know, where there are some."""
    return None if regression is None else {name: value for name, value in asdict(regression).items() if name != "scales" or value}


def _tuples(facts: dict[str, object]) -> dict[str, Any]:
    return {name: _tuple(value) for name, value in facts.items()}


def _tuple(value: object) -> object:
    """A list of lists as a tuple of tuples."""
    return tuple(map(_tuple, value)) if isinstance(value, list) else value
