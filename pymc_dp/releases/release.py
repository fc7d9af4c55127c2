"""The noun ``Release``: noisy integers on a public lattice and what is publicly known about them. ``from_records`` makes it.

It is apart from ``from_records``, so that what uses a release needs no module that reads records. A release is the
only thing that remembers the data; everything after it is arithmetic on a release.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from hashlib import sha256
from io import BytesIO
from math import sqrt
from os import PathLike, fsdecode, fsync, urandom
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pymc_dp.families.family import Domain, Family, named
from pymc_dp.families.second_moments import Regression
from pymc_dp.models.tabulated import TABLE
from pymc_dp.plans.missing import in_words
from pymc_dp.plans.network import Network
from pymc_dp.privacy.accounting import Cost, Refusal, protected
from pymc_dp.privacy.mechanisms import resolve
from pymc_dp.privacy.noise import Noise
from pymc_dp.privacy.receipts import UNACCOUNTED

if TYPE_CHECKING:
    import xarray as xr

PROMISE = "certified"
"""Integer-exact: sensitivity, noise and accounting are in integers and fractions, never in floating point."""
FORMAT = 5
SAVED = "saved_release"
"""The group in ``privacy`` that holds the release a tree was drawn from."""


@dataclass(frozen=True, eq=False)
class NoisyStatistic:
    """The noisy statistics of one observed variable.

    Attributes
    ----------
    variable, distribution, structure : str
    tabulated : bool
        Whether the statistics are the numbers of records with each value.
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
        For second moments.
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

    def __post_init__(self) -> None:
        for array in (self.noisy, self.n, self.known, self.covariance, self.anchor, *self.inputs):
            array.setflags(write=False)

    @property
    def family(self) -> Family | None:
        """The family of its likelihood; None for second moments."""
        if self.regression is not None:
            return None
        return TABLE if self.tabulated else named(self.distribution)

    @property
    def unit(self) -> float:
        """What 1 is in the family's own integers, in units of the statistics."""
        if self.regression is not None:
            return self.regression.lattice
        if self.structure == "aggregate":
            return 1.0
        assert self.family is not None
        return self.family.lattice(self.domain)

    @property
    def lattice(self) -> float:
        """Size of one lattice unit, in units of the statistics."""
        return self.unit / self.divisor

    @property
    def sensitivity(self) -> float:
        """Of one record, in units of the statistics: L1 for Laplace noise, L2 for Gaussian noise; of Fourier coefficients, of all."""
        return (self.difference if self.mechanism != "gaussian" else sqrt(self.square)) * self.lattice

    @property
    def noise(self) -> Noise:
        """The law of the noise on every entry."""
        if self.deviation:
            return Noise(self.deviation, gaussian=True)
        return resolve(self.mechanism).noise(self.scale, self.lattice)

    @property
    def values(self) -> np.ndarray:
        """The noisy statistics (G * V, *C, K) in their own units, as float64."""
        return self.noisy.astype(np.float64) * self.lattice

    @property
    def private_cells(self) -> int:
        """V, the number of private cells in each public one."""
        return len(self.noisy) // max(len(self.n), 1)


@dataclass(frozen=True, eq=False)
class Release:
    """What left the records, once: frozen, free to use in any way, and all that later steps see.

    Attributes
    ----------
    statistics : tuple of NoisyStatistic
        One per observed variable.
    cost : Cost
        What it cost altogether, exactly.
    mechanism, unit, neighbours : str
    public : tuple of str
        Names of the arrays that were declared public.
    ledger_head : str
        Of the ledger after it paid, or ``"unaccounted"``.
    versions : dict of str to str
        Of the libraries that made it.
    network : Network or None
        Where the observed variables are a Bayesian network.
    missing : dict of str to (str or float)
        What was declared of missing values, by name: "left out", or the level that they count as.
    """

    statistics: tuple[NoisyStatistic, ...]
    cost: Cost
    mechanism: str
    unit: str
    neighbours: str
    public: tuple[str, ...]
    ledger_head: str = UNACCOUNTED
    versions: dict[str, str] = field(default_factory=dict)
    network: Network | None = None
    missing: Mapping[str, str | float] = field(default_factory=dict)

    @property
    def epsilon(self) -> Fraction:
        """In nats, exactly."""
        return self.cost.epsilon

    @property
    def delta(self) -> Fraction:
        """0 for pure differential privacy."""
        return self.cost.delta

    def __repr__(self) -> str:
        lines = [
            f"Release: epsilon {float(self.epsilon):g}, delta {float(self.delta):g},"
            f" protects {protected(self.unit)} ({self.neighbours}), {self.mechanism} noise"
            + (", unaccounted" if self.ledger_head == UNACCOUNTED else "")
        ]
        together = len(self.statistics) > 1 and all(one.cost == self.cost for one in self.statistics)
        for one in self.statistics:
            cells = "1 cell" if len(one.noisy) == 1 else f"{len(one.noisy)} cells"
            share = "the same coefficients" if together else f"epsilon {float(one.cost.epsilon):g}"
            names = ", ".join(one.statistics[:8]) + (f", ... ({len(one.statistics)})" if len(one.statistics) > 8 else "")
            lines.append(f"  {one.variable}: {names} in {cells}, {share}, noise sd {one.noise.standard_deviation:.4g}")
        if any(one.structure != "aggregate" for one in self.statistics):
            lines.append(f"  missing values {in_words(self.missing)}")
        return "\n".join(lines)

    def __eq__(self, other: object) -> bool:
        """Whether another release says the same: every number and everything that is known about it."""
        if not isinstance(other, Release):
            return NotImplemented
        return self is other or _contents(self) == _contents(other)

    def __hash__(self) -> int:
        return hash(json.dumps(self._public_facts(), sort_keys=True))

    def __getitem__(self, variable: str) -> NoisyStatistic:
        for one in self.statistics:
            if one.variable == variable:
                return one
        raise KeyError(variable)

    def table(self, name: str, *, shifted: bool = False) -> np.ndarray:
        """The noisy counts of a network's family: one axis for every parent, in order, and the node's own as the last.

        With ``shifted``, what makes Fourier coefficients' counts nonnegative is added.
        """
        if self.network is None or name not in self.network.place:
            raise KeyError(name)
        node = self.network.nodes[self.network.place[name]]
        one = self[node.variable]
        added = one.shift * one.lattice if shifted else 0.0
        values = one.values.reshape(len(one.noisy), -1, one.noisy.shape[-1])[:, node.column]
        if values.shape[-1] < node.levels:  # of two levels the second is kept
            values = np.concatenate([one.n.sum() - values, values], axis=-1)
        return values.reshape(self.network.shape(node)) + added

    def to_netcdf(self, path: str | PathLike[str]) -> None:
        """Write the release to a netCDF file: everything ``rewrite`` needs, and nothing else exists.

        After the end of what netCDF reads stands a checksum, by which ``from_netcdf`` finds damage. It is written whole or not at all.
        """
        whole = Path(realpath(fsdecode(path)))
        building = whole.with_name(f"{urandom(8).hex()}.new")
        try:
            self.to_datatree().to_netcdf(building, engine="h5netcdf")
            with building.open("r+b") as file:
                file.write(_seal(file.read()))
                file.flush()
                fsync(file.fileno())
            building.replace(whole)
        finally:
            building.unlink(missing_ok=True)

    @classmethod
    def from_netcdf(cls, path: str | PathLike[str]) -> "Release":
        """Read a release that ``to_netcdf`` wrote.

        Raises
        ------
        Refusal
            When it is not what was written: nothing of a damaged file is shown to the netCDF library.
        """
        import xarray as xr

        where = Path(fsdecode(path))
        if not where.exists():
            raise FileNotFoundError(f"There is no file {where}.")
        if not where.is_file():  # of a pipe or a device one would wait for ever
            raise Refusal("This is no file. Write the path of a file that Release.to_netcdf wrote.")
        content = where.read_bytes()
        content, seal = content[:-SEALED], content[-SEALED:]
        if seal != _seal(content):
            raise Refusal(
                "This file is no release that this version wrote, or it is damaged. Put the newest copy back; or, if another program wrote"
                " it, write Release.from_datatree(xarray.open_datatree(path))."
            )
        with xr.open_datatree(BytesIO(content), engine="h5netcdf") as tree:
            return cls.from_datatree(tree.load())

    def to_datatree(self) -> "xr.DataTree":
        """The release as an ``xarray.DataTree``, one group per observed variable."""
        import xarray as xr

        groups = {"/": xr.Dataset(attrs={"release": json.dumps(self._public_facts())})}
        for k, one in enumerate(self.statistics):
            columns = [f"column_{axis}" for axis in range(one.noisy.ndim - 2)]
            arrays: dict[str, object] = {"noisy": (("cell", *columns, "statistic"), one.noisy), "n": (("group",), one.n)}
            arrays["known"] = (tuple(f"known_axis_{axis}" for axis in range(one.known.ndim)), one.known)
            arrays["covariance"] = (tuple(f"covariance_axis_{axis}" for axis in range(one.covariance.ndim)), one.covariance)
            if one.anchor.size:
                arrays["anchor"] = (("cell", *columns, "feature"), one.anchor)
            for j, given in enumerate(one.inputs):
                arrays[f"input_{j}"] = (tuple(f"input_{j}_axis_{axis}" for axis in range(given.ndim)), given)
            groups[f"/{k}"] = xr.Dataset(arrays, attrs={"statistic": json.dumps(_facts(one))})
        return xr.DataTree.from_dict(groups)

    def _public_facts(self) -> dict[str, object]:
        return {
            "format": FORMAT, "cost": _cost_facts(self.cost), "mechanism": self.mechanism,
            "unit": self.unit, "neighbours": self.neighbours, "public": list(self.public),
            "ledger_head": self.ledger_head, "versions": self.versions, "network": None if self.network is None else self.network.facts(),
            "missing": dict(self.missing),
        }  # fmt: skip

    @classmethod
    def from_datatree(cls, tree: "xr.DataTree") -> "Release":
        """The inverse of ``to_datatree``; also from a tree that ``sample`` or ``annotate`` returned, which holds its release.

        Raises
        ------
        Refusal
            When the tree holds no release that this version can read.

        Examples
        --------
        >>> idata = pmdp.sample(model=model, epsilon=1.0)  # doctest: +SKIP
        >>> private = pmdp.rewrite(model, pmdp.Release.from_datatree(idata))  # doctest: +SKIP
        """
        if "privacy" in tree.children:
            if SAVED not in tree["privacy"].children:
                raise Refusal("This tree holds no release: its draws were paid for one by one, or it was made by an older version.")
            tree = tree["privacy"][SAVED]
        try:
            return cls._of_tree(tree)
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
            raise Refusal("This is not a release that this version can read. Write it again with Release.to_netcdf.") from None

    @classmethod
    def _of_tree(cls, tree: "xr.DataTree") -> "Release":
        if "release" not in tree.attrs or json.loads(tree.attrs["release"]).get("format") != FORMAT:
            raise ValueError
        facts = json.loads(tree.attrs["release"])
        statistics = []
        for k in range(len(tree.children)):
            group = tree[str(k)].to_dataset()
            said = json.loads(group.attrs["statistic"])
            regression = said.pop("regression")
            if regression is not None:
                regression.pop("shaped", None)  # of releases before scores
            statistics.append(
                NoisyStatistic(
                    **said
                    | {
                        "statistics": tuple(said["statistics"]),
                        "cost": _cost(said["cost"]),
                        "domain": Domain(**_tuples(said["domain"])),
                        "regression": None if regression is None else Regression(**_tuples(regression)),
                        "difference": int(said["difference"]),
                        "square": int(said["square"]),
                        "shift": int(said["shift"]),
                        "divisor": int(said["divisor"]),
                        "left_out": tuple(said["left_out"]),
                        "covariates": tuple((name, *map(tuple, several)) for name, *several in said["covariates"]),
                    },
                    noisy=group["noisy"].values.astype(np.int64),
                    n=group["n"].values.astype(np.int64),
                    known=group["known"].values,
                    covariance=group["covariance"].values,
                    anchor=group["anchor"].values if "anchor" in group else np.zeros((0, 0)),
                    inputs=tuple(group[f"input_{j}"].values for j in range(sum(str(v).startswith("input_") for v in group.data_vars))),
                )
            )
        return cls(
            tuple(statistics), _cost(facts["cost"]), facts["mechanism"], facts["unit"], facts["neighbours"], tuple(facts["public"]),
            facts["ledger_head"], facts["versions"], Network.of_facts(facts["network"]), facts["missing"],
        )  # fmt: skip


def _seal(content: bytes) -> bytes:
    """A checksum, as it stands at the end of a file."""
    return b"\npymc_dp release " + sha256(content).hexdigest().encode() + b"\n"


SEALED = len(_seal(b""))
"""Bytes of a checksum."""


def _contents(release: Release) -> list[object]:
    """Everything a release says, as plain values."""
    told: list[object] = [json.dumps(release._public_facts(), sort_keys=True)]
    for one in release.statistics:
        told.append(json.dumps(_facts(one), sort_keys=True))
        told += [(array.shape, array.tolist()) for array in (one.noisy, one.n, one.known, one.covariance, one.anchor, *one.inputs)]
    return told


def _facts(one: NoisyStatistic) -> dict[str, object]:
    return {
        "variable": one.variable, "distribution": one.distribution, "structure": one.structure, "tabulated": one.tabulated,
        "statistics": list(one.statistics),
        "sizes": one.sizes, "domain": asdict(one.domain), "regression": None if one.regression is None else asdict(one.regression),
        "difference": str(one.difference), "square": str(one.square), "scale": one.scale, "mechanism": one.mechanism,
        "cost": _cost_facts(one.cost), "divisor": str(one.divisor), "deviation": one.deviation,
        "shift": str(one.shift), "covariates": [list(covariate) for covariate in one.covariates], "left_out": list(one.left_out),
    }  # fmt: skip


def _cost_facts(cost: Cost) -> dict[str, str | None]:
    return {"epsilon": str(cost.epsilon), "delta": str(cost.delta), "rho": None if cost.rho is None else str(cost.rho)}


def _cost(facts: dict[str, str | None]) -> Cost:
    rho = facts["rho"]
    return Cost(Fraction(str(facts["epsilon"])), Fraction(str(facts["delta"])), None if rho is None else Fraction(rho))


def _tuples(facts: dict[str, object]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()}
