"""The noun ``Release``: noisy integers on a public lattice and what is publicly known about them. The door makes it.

It stands left of everything that uses a release, so that none of that needs the module that reads records. A release is the
only thing that remembers the data; everything after it is arithmetic on a release.
"""

import json
from dataclasses import dataclass, field
from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from pymc_dp.accounting import Refusal
from pymc_dp.family import Domain, Family, named
from pymc_dp.mechanisms import Noise

if TYPE_CHECKING:
    import xarray as xr

PROMISE = "certified"
"""Integer-exact: sensitivity, noise and accounting are in integers and fractions, never in floating point."""
FORMAT = 1


@dataclass(frozen=True, eq=False)
class NoisyStatistic:
    """The noisy statistics of one observed variable.

    Attributes
    ----------
    variable, distribution, structure : str
    statistics : tuple of str
        Names of the K statistics.
    noisy : (G, *C, K) int64 ndarray
        In lattice units.
    n : (G,) int64 ndarray
        Records per cell: public.
    inputs : tuple of ndarray
        The public inputs of the likelihood, one row per cell, or the whole table.
    domain : Domain
    sensitivity : int
        In lattice units.
    scale : float
        Of the noise, in lattice units.
    epsilon : Fraction
        What this variable cost, in nats.
    """

    variable: str
    distribution: str
    structure: str
    statistics: tuple[str, ...]
    noisy: np.ndarray
    n: np.ndarray
    inputs: tuple[np.ndarray, ...]
    domain: Domain
    sensitivity: int
    scale: float
    epsilon: Fraction

    def __post_init__(self) -> None:
        for array in (self.noisy, self.n, *self.inputs):
            array.setflags(write=False)

    @property
    def family(self) -> Family:
        """The family of its likelihood."""
        return named(self.distribution)

    @property
    def lattice(self) -> float:
        """Size of one lattice unit, in units of the statistics."""
        return self.family.lattice(self.domain)

    @property
    def noise(self) -> Noise:
        """The law of the noise on every entry."""
        return Noise(self.scale, self.lattice)

    @property
    def values(self) -> np.ndarray:
        """The noisy statistics (G, *C, K) in their own units, as float64."""
        return self.noisy.astype(np.float64) * self.lattice


@dataclass(frozen=True, eq=False)
class Release:
    """What left the records, once: frozen, free to use in any way, and all that later steps see.

    Attributes
    ----------
    statistics : tuple of NoisyStatistic
        One per observed variable.
    epsilon : Fraction
        Total cost in nats, exactly.
    delta : Fraction
    mechanism, unit, neighbours : str
    public : tuple of str
        Names of the arrays that were declared public.
    versions : dict of str to str
        Of the libraries that made it.
    """

    statistics: tuple[NoisyStatistic, ...]
    epsilon: Fraction
    delta: Fraction
    mechanism: str
    unit: str
    neighbours: str
    public: tuple[str, ...]
    versions: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        lines = [
            f"Release: epsilon {float(self.epsilon):g}, delta {float(self.delta):g},"
            f" protects one {self.unit} ({self.neighbours}), {self.mechanism} noise"
        ]
        for one in self.statistics:
            cells = "1 cell" if len(one.n) == 1 else f"{len(one.n)} cells"
            lines.append(
                f"  {one.variable}: {', '.join(one.statistics)} in {cells}, epsilon {float(one.epsilon):g},"
                f" noise sd {one.noise.standard_deviation:.4g}"
            )
        return "\n".join(lines)

    def __getitem__(self, variable: str) -> NoisyStatistic:
        for one in self.statistics:
            if one.variable == variable:
                return one
        raise KeyError(variable)

    def to_netcdf(self, path: str | PathLike[str]) -> None:
        """Write the release to a netCDF file: everything ``rewrite`` needs, and nothing else exists."""
        self.to_datatree().to_netcdf(path, engine="h5netcdf")

    @classmethod
    def from_netcdf(cls, path: str | PathLike[str]) -> "Release":
        """Read a release that ``to_netcdf`` wrote."""
        import xarray as xr

        with xr.open_datatree(path, engine="h5netcdf") as tree:
            return cls.from_datatree(tree.load())

    def to_datatree(self) -> "xr.DataTree":
        """The release as an ``xarray.DataTree``, one group per observed variable."""
        import xarray as xr

        groups = {"/": xr.Dataset(attrs={"release": json.dumps(self._public_facts())})}
        for k, one in enumerate(self.statistics):
            columns = [f"column_{axis}" for axis in range(one.noisy.ndim - 2)]
            arrays: dict[str, object] = {"noisy": (("cell", *columns, "statistic"), one.noisy), "n": (("cell",), one.n)}
            for j, given in enumerate(one.inputs):
                arrays[f"input_{j}"] = (tuple(f"input_{j}_axis_{axis}" for axis in range(given.ndim)), given)
            groups[f"/{k}"] = xr.Dataset(arrays, attrs={"statistic": json.dumps(_facts(one))})
        return xr.DataTree.from_dict(groups)

    def _public_facts(self) -> dict[str, object]:
        return {
            "format": FORMAT, "epsilon": str(self.epsilon), "delta": str(self.delta), "mechanism": self.mechanism,
            "unit": self.unit, "neighbours": self.neighbours, "public": list(self.public), "versions": self.versions,
        }  # fmt: skip

    @classmethod
    def from_datatree(cls, tree: "xr.DataTree") -> "Release":
        """The inverse of ``to_datatree``."""
        if "release" not in tree.attrs or json.loads(tree.attrs["release"]).get("format") != FORMAT:
            raise Refusal("This is not a release that this version can read. Write it again with Release.to_netcdf.")
        facts = json.loads(tree.attrs["release"])
        statistics = []
        for k in range(len(tree.children)):
            group = tree[str(k)].to_dataset()
            said = json.loads(group.attrs["statistic"])
            domain = said.pop("domain")
            domain["unknown"] = tuple(domain["unknown"])
            statistics.append(
                NoisyStatistic(
                    **said | {"statistics": tuple(said["statistics"]), "epsilon": Fraction(said["epsilon"]), "domain": Domain(**domain)},
                    noisy=group["noisy"].values.astype(np.int64),
                    n=group["n"].values.astype(np.int64),
                    inputs=tuple(group[f"input_{j}"].values for j in range(sum(str(v).startswith("input_") for v in group.data_vars))),
                )
            )
        return cls(
            tuple(statistics), Fraction(facts["epsilon"]), Fraction(facts["delta"]), facts["mechanism"], facts["unit"],
            facts["neighbours"], tuple(facts["public"]), facts["versions"],
        )  # fmt: skip


def _facts(one: NoisyStatistic) -> dict[str, object]:
    domain = {"lower": one.domain.lower, "upper": one.domain.upper, "levels": one.domain.levels, "unknown": list(one.domain.unknown)}
    return {
        "variable": one.variable, "distribution": one.distribution, "structure": one.structure, "statistics": list(one.statistics),
        "domain": domain, "sensitivity": one.sensitivity, "scale": one.scale, "epsilon": str(one.epsilon),
    }  # fmt: skip
