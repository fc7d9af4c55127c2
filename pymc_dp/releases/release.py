"""The noun ``Release``: noisy integers on a public lattice and what is publicly known about them. ``from_records`` makes it.

It is apart from ``from_records``, so that what uses a release needs no module that reads records. A release is the
only thing that remembers the data; everything after it is arithmetic on a release.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from importlib.metadata import version
from os import PathLike
from re import fullmatch
from typing import TYPE_CHECKING

import numpy as np

from pymc_dp.plans.missing import in_words
from pymc_dp.plans.network import Network
from pymc_dp.privacy.accounting import Cost, Refusal, protected
from pymc_dp.privacy.calls import attribute_error
from pymc_dp.privacy.entries import cost_facts, cost_in
from pymc_dp.privacy.layout import notes_in_html, page, sentences, wrapped
from pymc_dp.privacy.receipts import UNACCOUNTED
from pymc_dp.releases.noisy_statistic import NoisyStatistic
from pymc_dp.releases.sealed import read_sealed, write_sealed

if TYPE_CHECKING:
    import xarray as xr

PROMISE = "certified"
"""Integer-exact: sensitivity, noise and accounting are in integers and fractions, never in floating point."""
FORMAT = 7
READABLE = (5, 6, FORMAT)
"""Formats that are read: 5 knew nothing of disjoint variables."""
MODEL = "A release is not a model. Write pm.sample(model=pymc_dp.rewrite(model, release))."
INSTEAD = {
    **dict.fromkeys(("free_RVs", "basic_RVs", "value_vars", "observed_RVs", "rvs_to_values", "logp", "compile_logp", "sample"), MODEL),
    **dict.fromkeys(("posterior", "sample_stats"), "It holds no draws. Write pm.sample(model=pymc_dp.rewrite(model, release))."),
    **dict.fromkeys(("save", "to_json", "to_dict", "to_dataframe", "to_zarr"), "Write release.to_netcdf(path) or release.to_datatree()."),
    **dict.fromkeys(("values", "noisy", "scale"), 'Write release["y"], the name of an observed variable, which has it.'),
}
"""What to write where an attribute is asked for that a release does not have."""
SAVED = "saved_release"
"""The group in ``privacy`` that holds the release a tree was drawn from."""
SEVERAL = "releases"
"""The group in ``privacy`` that holds those of several holders, by name, where a tree was drawn from all of them."""


@dataclass(frozen=True, eq=False)
class Release:
    """The noisy statistics of a model's records. They are drawn once, are free to use in any way, and are all that later steps see.

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
        The head of the ledger after it paid, or ``"unaccounted"``.
    versions : dict of str to str
        Versions of the libraries that made it.
    network : Network or None
        The network, where the observed variables are a Bayesian network.
    missing : dict of str to (str or float)
        What was declared of missing values, by name: "left out", or the level that they count as.
    disjoint : tuple of tuples of str
        Groups of observed variables of which the user says that each person has records in only one: of their costs the largest counts.

    Examples
    --------
    >>> released = pmdp.release(model, epsilon=1.0)
    >>> released["vote"].noisy.shape
    (1, 1)
    >>> released.to_netcdf("vote.release")
    >>> pmdp.Release.from_netcdf("vote.release") == released
    True
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
    disjoint: tuple[tuple[str, ...], ...] = ()

    @property
    def epsilon(self) -> Fraction:
        """What the release cost, in nats, exactly."""
        return self.cost.epsilon

    @property
    def delta(self) -> Fraction:
        """0 for pure differential privacy."""
        return self.cost.delta

    def __repr__(self) -> str:
        return "\n".join([wrapped(f"Release: {self._promise()}"), *sentences(self._notes(), "  ", "    ")])

    def _repr_html_(self) -> str:
        return page(f"<p><b>Release</b>: {escape(self._promise())}</p>", notes_in_html(self._notes()))

    def _promise(self) -> str:
        """What it cost, and what that protects."""
        return (
            f"epsilon {float(self.epsilon):g}, delta {float(self.delta):g},"
            f" protects {protected(self.unit, self.disjoint)} ({self.neighbours}), {self.mechanism} noise"
            + (", charged to no ledger" if self.ledger_head == UNACCOUNTED else "")
        )

    def _notes(self) -> Iterator[tuple[str, str]]:
        """What is in it, by observed variable."""
        apart = {name for group in self.disjoint for name in group}
        together = len(self.statistics) > 1 and not apart and all(statistic.cost == self.cost for statistic in self.statistics)
        for statistic in self.statistics:
            share = "from coefficients that all variables share" if together else f"epsilon {float(statistic.cost.epsilon):g}"
            share += " in parallel" if statistic.variable in apart else ""
            yield statistic.variable, f"{statistic.contents}, {share}, noise sd {statistic.spread}"
        if any(statistic.structure != "aggregate" for statistic in self.statistics):
            yield "missing values", in_words(self.missing)

    def __eq__(self, other: object) -> bool:
        """Whether another release says the same: every number and everything that is known about it."""
        if not isinstance(other, Release):
            return NotImplemented
        return self is other or _contents(self) == _contents(other)

    def __hash__(self) -> int:
        return hash(json.dumps(self._public_facts(), sort_keys=True))

    def __getitem__(self, variable: str) -> NoisyStatistic:
        for statistic in self.statistics:
            if statistic.variable == variable:
                return statistic
        raise KeyError(f"{variable!r} was not released. There is {', '.join(repr(statistic.variable) for statistic in self.statistics)}.")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            raise attribute_error(self, name, INSTEAD)

    def table(self, name: str, *, shifted: bool = False) -> np.ndarray:
        """The noisy counts of a network's family: one axis for every parent, in order, and the node's own as the last.

        With ``shifted``, what makes Fourier coefficients' counts nonnegative is added.
        """
        if self.network is None or name not in self.network.place:
            raise KeyError(name)
        node = self.network.nodes[self.network.place[name]]
        statistic = self[node.variable]
        added = statistic.shift * statistic.lattice if shifted else 0.0
        values = statistic.values.reshape(len(statistic.noisy), -1, statistic.noisy.shape[-1])[:, node.column]
        if values.shape[-1] < node.levels:  # of two levels the second is kept
            values = np.concatenate([statistic.n.sum() - values, values], axis=-1)
        return values.reshape(self.network.shape(node)) + added

    def to_netcdf(self, path: str | PathLike[str]) -> None:
        """Write the release to a netCDF file: everything ``rewrite`` needs, and nothing else exists.

        After the end of what netCDF reads stands a checksum, by which ``from_netcdf`` finds damage. It is written whole or not at all.
        """
        write_sealed(self.to_datatree(), path, "release")

    @classmethod
    def from_netcdf(cls, path: str | PathLike[str]) -> "Release":
        """Read a release that ``to_netcdf`` wrote.

        Raises
        ------
        Refusal
            When it is not what was written: nothing of a damaged file is shown to the netCDF library.
        """
        return cls.from_datatree(read_sealed(path, "release", "Release"))

    def to_datatree(self) -> "xr.DataTree":
        """The release as an ``xarray.DataTree``, one group per observed variable."""
        import xarray as xr

        groups = {"/": xr.Dataset(attrs={"release": json.dumps(self._public_facts())})}
        groups |= {f"/{k}": statistic.to_dataset() for k, statistic in enumerate(self.statistics)}
        return xr.DataTree.from_dict(groups)

    def _public_facts(self) -> dict[str, object]:
        return {
            "format": FORMAT, "cost": cost_facts(self.cost), "mechanism": self.mechanism,
            "unit": self.unit, "neighbours": self.neighbours, "public": list(self.public),
            "ledger_head": self.ledger_head, "versions": self.versions, "network": None if self.network is None else self.network.facts(),
            "missing": dict(self.missing), "disjoint": [list(group) for group in self.disjoint],
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
            if SEVERAL in tree["privacy"].children:
                name = next(iter(tree["privacy"][SEVERAL].children), "")
                raise Refusal(
                    "This tree holds the releases of several holders. Write pymc_dp.published(model, tree) for the private model, or"
                    f" Release.from_datatree(tree['privacy/{SEVERAL}/{name}']) for one of them."
                )
            if SAVED not in tree["privacy"].children:
                raise Refusal(
                    "This tree holds no release. Draws that were paid for one by one have none; where records were randomised, or numbers"
                    " published by others, write pymc_dp.published again."
                )
            tree = tree["privacy"][SAVED]
        try:
            return cls._of_tree(tree)
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
            raise Refusal(f"This is not a release that this version can read{_why_not(tree)}") from None

    @classmethod
    def _of_tree(cls, tree: "xr.DataTree") -> "Release":
        if "release" not in tree.attrs or json.loads(tree.attrs["release"]).get("format") not in READABLE:
            raise ValueError
        facts = json.loads(tree.attrs["release"])
        statistics = tuple(NoisyStatistic.of_dataset(tree[str(k)].to_dataset()) for k in range(len(tree.children)))
        return cls(
            statistics, cost_in(facts["cost"]), facts["mechanism"], facts["unit"], facts["neighbours"], tuple(facts["public"]),
            facts["ledger_head"], facts["versions"], Network.of_facts(facts["network"]), facts["missing"],
            tuple(map(tuple, facts.get("disjoint", []))),
        )  # fmt: skip


def _why_not(tree: "xr.DataTree") -> str:
    """The end of a sentence: which version wrote a release of another format, and what to install; or what to write."""
    try:
        facts = json.loads(tree.attrs["release"])
        written, writer = facts["format"], facts["versions"]["pymc_dp"]
        if type(written) is int and written not in READABLE and fullmatch(r"[0-9][0-9a-z.+]{0,29}", writer):
            return (
                f": it has format {written}, of pymc_dp {writer}, and pymc_dp {version('pymc_dp')} reads formats {READABLE[0]} to {FORMAT}."
                f" Install pymc_dp {writer}{' or later' if written > FORMAT else ''} to read it."
            )
    except (ValueError, LookupError, TypeError):
        pass
    return ". Write it again with Release.to_netcdf."


def _contents(release: Release) -> list[object]:
    """Everything a release says, as plain values."""
    contents: list[object] = [json.dumps(release._public_facts(), sort_keys=True)]
    for statistic in release.statistics:
        contents.append(json.dumps(statistic.facts(), sort_keys=True))
        contents += [(array.shape, array.tolist()) for array in statistic.arrays]
    return contents
