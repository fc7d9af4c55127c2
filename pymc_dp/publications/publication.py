"""What is known of published numbers: what was done to them, by whom, and the note of it in a tree of draws.

No cost is computed here: what was promised to the people behind the numbers is the publisher's word.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np
import pymc as pm

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.layout import as_written, wrapped
from pymc_dp.private_models.as_made import AsMade
from pymc_dp.publications.noises import Step
from pymc_dp.publications.opendp_laws import from_opendp

if TYPE_CHECKING:
    import xarray as xr

    from pymc_dp.releases.noisy_statistic import NoisyStatistic

PROMISE = "the publisher's: pymc_dp neither made nor checked it, and claims no epsilon"
"""Of what is promised in a tree drawn from published numbers."""


@dataclass(frozen=True, eq=False, repr=False)
class Codebook:
    """What a publisher says was done to a number: the steps, where it is said and when it was read.

    Parameters
    ----------
    steps : Step or list of Step
        In the order in which they were taken: what was suppressed, noise, then rounding or clipping, then a threshold. An OpenDP
        measurement that adds noise, or randomises answers, stands for what it does.
    source : str
        Where it is said.
    promise : str
        What the publisher promises, in its own words.

    Examples
    --------
    >>> survey = pmdp.Codebook([pmdp.DiscreteLaplace(10), pmdp.Clipped(lower=0)], source="codebook of the survey, 2026")
    >>> print(survey)
    discrete Laplace noise of scale 10, then clipped to at least 0 (codebook of the survey, 2026)
    """

    steps: object
    source: str = ""
    promise: str = ""
    __repr__ = as_written

    def __post_init__(self) -> None:
        steps = tuple(from_opendp(step) for step in (self.steps if isinstance(self.steps, list | tuple) else (self.steps,)))
        if not steps or not all(isinstance(step, Step) for step in steps):
            raise Refusal(
                "A law is what was done to a number, or a list of it. Write pymc_dp.DiscreteLaplace(10), or [noise, Clipped(lower=0)]."
            )
        object.__setattr__(self, "steps", steps)

    @property
    def words(self) -> str:
        """What was done, in words."""
        assert isinstance(self.steps, tuple)
        return ", then ".join(step.words for step in self.steps)

    def __str__(self) -> str:
        """What was done, and the source."""
        return self.words + (f" ({self.source})" if self.source else "")


def steps_of(book: Codebook) -> tuple[Step, ...]:
    """What was done, step by step."""
    assert isinstance(book.steps, tuple)
    return book.steps


class Noted(ABC):
    """What is known of the numbers of a model that others made private: the attribute ``publication`` of that model."""

    statistics: "tuple[NoisyStatistic, ...]"
    """What the model observes, where these are statistics of records."""
    terms: AsMade
    """What the model held when it was made. Whatever was added later nobody has published."""

    @property
    def rows(self) -> "Mapping[str, Codebook]":
        """What was done to observed variables that are no sums of records, by name."""
        return {}

    @abstractmethod
    def __str__(self) -> str:
        """What is known, in lines."""

    def __repr__(self) -> str:
        return "\n".join(wrapped(line) for line in str(self).split("\n"))

    @abstractmethod
    def group(self) -> "xr.DataTree":
        """The group ``privacy`` of a tree."""

    @property
    def promise(self) -> str:
        """Whose promise it is: the publisher's, where nothing else is said."""
        return PROMISE

    @abstractmethod
    def remedy(self, added: str) -> str:
        """What to write where something was added to the model."""

    def check_complete(self, model: pm.Model) -> None:
        """Refuse a model that holds more than it did when it was made, or other numbers: records would pass for published ones."""
        if changed := self.terms.changed(model):
            raise Refusal(f"{changed[0]} is no longer what was published. Make the model again, with published.")
        if added := self.terms.added(model):
            raise Refusal(
                f"{added[0]} was added to a model of published numbers, and nothing is said of how it was published."
                f" {self.remedy(added[0])} Records that are private need a model of their own."
            )


@dataclass(frozen=True, eq=False, repr=False)
class Publication(Noted):
    """What was done to the observed variables of a model, by name.

    Attributes
    ----------
    laws : mapping of str to Codebook
    terms : AsMade
    statistics : tuple of NoisyStatistic
        See ``Noted``.
    """

    laws: Mapping[str, Codebook]
    terms: AsMade
    statistics: "tuple[NoisyStatistic, ...]" = ()

    @property
    def rows(self) -> Mapping[str, Codebook]:
        """All of them."""
        return self.laws

    def __str__(self) -> str:
        """A line for every variable."""
        return "\n".join(f"{name}: {law}" for name, law in self.laws.items())

    def group(self) -> "xr.DataTree":
        """The group ``privacy`` of a tree: what was declared of every variable."""
        import xarray as xr

        names = list(self.laws)
        columns = {
            "law": [self.laws[name].words for name in names],
            "source": [self.laws[name].source for name in names],
            "declared": [self.laws[name].promise for name in names],
        }
        return xr.DataTree(
            xr.Dataset(
                {name: (("variable",), np.asarray(values, dtype=str)) for name, values in columns.items()},
                coords={"variable": np.asarray(names, dtype=str)},
            )
        )

    def remedy(self, added: str) -> str:
        """What to write where something was added to the model."""
        return f"Add it to the model of the truth, and write what was done to it: published(truth, {{..., {added!r}: pymc_dp.Exact()}})."


def noted(tree: "xr.DataTree", publication: Noted) -> "xr.DataTree":
    """A copy of a tree with a group ``privacy`` that says what is known of the published numbers, and whose promise it is."""
    result = tree.copy(deep=False)
    attributes = {"promise": publication.promise, "modeling_interface": "pymc_dp", "modeling_interface_version": version("pymc_dp")}
    result["privacy"] = publication.group()
    for node in (result, result["privacy"], *(result[name] for name in ("posterior",) if name in result.children)):
        node.attrs = {**node.attrs, **attributes}
    return result
