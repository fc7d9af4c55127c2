"""What Gibbs updates are made from: everything public about a model, the unknowns on grids, and its log-likelihood in parts.

Some rest on private records, and how far a record can move them is known in integers; the other rests on what is public and
on the records' own unknowns.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.models.unknowns import Unknown, by_name
from pymc_dp.plans.ranges import Ranges
from pymc_dp.plans.rowwise import Entry, Rowwise
from pymc_dp.posterior.paid_gibbs.sites import Sites
from pymc_dp.posterior.price import NAT
from pymc_dp.posterior.records import Public


@dataclass(frozen=True)
class Latent:
    """An unknown that every record has for itself, or the one of which each reads an entry.

    Attributes
    ----------
    name : str
    levels : int
        It is one of 0, ..., levels - 1.
    inputs : tuple of Variable
        The placeholders that stand for it, or for what a record reads of it, records along axis 0.
    sites : Sites or None
        Its entries, where records read it by an index.
    hidden : bool
        Whether that index is private: then a record may leave one entry and come to another.
    """

    name: str
    levels: int
    inputs: tuple[Variable, ...]
    sites: Sites | None = None
    hidden: bool = False


@dataclass(frozen=True)
class Block:
    """What one update draws: numbers, or every record's own unknown, each independent of the others given all the rest.

    Attributes
    ----------
    name : str
    rows, options : int
        So many choices, each among so many values.
    sensitivities : tuple of int
        For every part of the log-likelihood, the largest range by which the scores of neighbours differ, added up over the choices, in
        units of 1 / NAT; 0 where it does not rest on the block.
    places : tuple of int
        Which numbers are drawn.
    index : Variable or None
        The placeholder that says which of several numbers a record reads.
    latent : int or None
        Which latent is drawn, where one is.
    shared : int or None
        The place of the number that takes up what this one loses: their sum stays as it is.
    width : int
        By how many points of its grid each number may go, where a step proposes a move; 0 where it is drawn from all.
    variance : Fraction or None
        Variance of the noise on the logarithm of a ratio, in nats^2, where there is some.
    proposed : (P,) ndarray or None
        The numbers that a step proposes: option 1 of each choice, option 0 is to stay.
    """

    name: str
    rows: int
    options: int
    sensitivities: tuple[int, ...] = ()
    places: tuple[int, ...] = ()
    index: Variable | None = None
    latent: int | None = None
    shared: int | None = None
    width: int = 0
    variance: Fraction | None = None
    proposed: np.ndarray | None = None

    @property
    def sensitivity(self) -> int:
        """How far one record can move it: the range of a sum is no more than the sum of ranges. 0 where no record is asked."""
        return sum(self.sensitivities)


@dataclass(frozen=True)
class State:
    """Where a chain is: numbers (P,), and each latent of int, (N,) or, where records read it by an index, one entry a site."""

    numbers: np.ndarray
    latents: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Part:
    """A summand of the log-likelihood of records: of all of them together where all records can be listed, else of one observed variable.

    Attributes
    ----------
    rows : Rowwise
        Its density, with the unknowns that it rests on.
    places : (Q,) int ndarray
        Which of all unknown numbers these are.
    latents : tuple of int
        On which it rests.
    entries : tuple of Entry
        What it rests on of a record.
    whole : (V, *points) int64 ndarray or None
        Integer log-likelihoods of all records that can occur, where these are few, at all points of the joint grid of ``places``.
    bounds, unreferred : tuple of Ranges
        Otherwise, of a record's part, for every combination of ``latents``; the second with nothing taken away.
    """

    rows: Rowwise
    places: np.ndarray
    latents: tuple[int, ...]
    entries: tuple[Entry, ...]
    whole: np.ndarray | None = None
    bounds: tuple[Ranges, ...] = ()
    unreferred: tuple[Ranges, ...] = ()

    @property
    def largest(self) -> int:
        """A bound in absolute value that no record's part exceeds."""
        if self.whole is not None:
            return int(np.abs(self.whole).max())
        several = (*self.bounds, *self.unreferred)
        return max(int(np.abs(np.rint(NAT * end)).max()) for bounds in several for end in (bounds.least, bounds.most))

    def touches(self, block: Block) -> bool:
        """Whether it rests on what a block draws."""
        return block.latent in self.latents if block.latent is not None else bool(set(block.places) & set(self.places.tolist()))


@dataclass(frozen=True)
class Kernel:
    """Everything public that updates need: scores follow from it, a state and the records.

    Attributes
    ----------
    parts : tuple of Part
        What rests on private records.
    open : Rowwise or None
        The part that rests on nothing of a record but its own unknowns and what is public.
    public : Public
    latents : tuple of Latent
    visible : frozenset of Variable
        Placeholders of latents and of what is public: neighbours have the same.
    grids : (P, points) ndarray
    unknowns : tuple of Unknown
        Whose numbers these are.
    prior : callable
        Log-density (G,) of unknowns (G, P), and of latents that records read by an index.
    temper : float
    start : (P,) ndarray
        The middle of every grid; of probabilities that add up to 1, about equal ones.
    """

    parts: tuple[Part, ...]
    open: Rowwise | None
    public: Public
    latents: tuple[Latent, ...]
    visible: frozenset[Variable]
    grids: np.ndarray
    unknowns: tuple[Unknown, ...]
    prior: Callable[..., np.ndarray]
    temper: float = 1.0
    start: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def point(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """Numbers (P,) by the names of the unknowns."""
        return by_name(self.unknowns, numbers)

    @property
    def largest(self) -> int:
        """A bound in absolute value on what one record adds to a score."""
        return sum(part.largest for part in self.parts)


@dataclass(frozen=True)
class Held:
    """The records, within the functions that draw.

    Attributes
    ----------
    exact : dict of Variable to ndarray
        The records by placeholder, with what all of them share; latents are those of the state instead.
    each : tuple of callable or None
        For every part a function from unknowns, and what stands in for latents, to the log-likelihood of every record (G, N); None where
        all records are listed.
    open : callable or None
        Such a function for what rests on no private record.
    sites : tuple of (N,) ndarray or None
        Which entry each record reads of every latent that records read by an index.
    """

    exact: Mapping[Variable, np.ndarray]
    each: tuple[Callable[..., np.ndarray] | None, ...]
    open: Callable[..., np.ndarray] | None
    sites: tuple[np.ndarray | None, ...]
