"""A release whose records are read in parts, by whoever holds them: exact sums of every part travel, and noise is added to all together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np
import pymc as pm

from pymc_dp.plans.person import Person
from pymc_dp.plans.protection import in_context, protection_of
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.guard import boundary
from pymc_dp.privacy.mechanisms import LARGEST_SUM
from pymc_dp.privacy.receipts import Receipt
from pymc_dp.releases.cells import PublicCells
from pymc_dp.releases.from_data import summed, unread_in
from pymc_dp.releases.from_records import prepared
from pymc_dp.releases.prepared import PreparedRelease
from pymc_dp.releases.release import Release
from pymc_dp.releases.source import Elsewhere, Source

MOST_PARTS = 10**6


@dataclass(frozen=True, eq=False)
class SharedPlan:
    """What every part is to be summed into. No record is in it; it pickles, and ``partial_statistics`` takes it anywhere.

    Attributes
    ----------
    release : str
        Which release it belongs to.
    parts : int
    names, unread : tuple of str
        Columns that are read, and names that no column may have.
    sized : bool
        Whether the number of records is public.
    opened : tuple of PublicCells
    """

    release: str
    parts: int
    names: tuple[str, ...]
    unread: tuple[str, ...]
    sized: bool
    opened: tuple[PublicCells, ...]

    def __reduce__(self) -> tuple:
        """Graphs of likelihoods hold functions, which only cloudpickle writes down."""
        import cloudpickle

        return cloudpickle.loads, (cloudpickle.dumps(_Fields(dict(self.__dict__))),)

    def __repr__(self) -> str:
        return f"SharedPlan({', '.join(self.names)}; {self.parts} parts)"


class _Fields(dict):
    """What a plan is made of, as it travels."""

    def __reduce__(self) -> tuple:
        return _plan_of, (dict(self),)


def _plan_of(fields: Mapping[str, Any]) -> SharedPlan:
    return SharedPlan(**fields)


@dataclass(frozen=True, eq=False, repr=False)
class PartialStatistics:
    """Exact sums over one part of the records. They are private data: keep them where the records may be, and give them to ``add_up``.

    Attributes
    ----------
    release : str
    part : int
        Which part, from 0.
    rows : int or None
        Its number of records, where that is public.
    exact : dict of str to int64 ndarray
    """

    release: str
    part: int
    rows: int | None
    exact: Mapping[str, np.ndarray]

    def __repr__(self) -> str:
        return f"PartialStatistics(part {self.part})"


@dataclass(eq=False, repr=False)
class SharedRelease:
    """A release that is paid for, and whose records are still to be read: ``share_out`` makes it, and it stays where it was made.

    Attributes
    ----------
    plan : SharedPlan
        For ``partial_statistics``.
    """

    plan: SharedPlan
    _ready: PreparedRelease
    _receipt: Receipt
    _records: int | None

    def __repr__(self) -> str:
        return f"SharedRelease({', '.join(self.plan.names)}; {self.plan.parts} parts)"

    def __reduce__(self) -> tuple:
        """The right to draw noise is there once."""
        raise TypeError("A shared release cannot be copied or pickled. Its plan can.")


def share_out(model: pm.Model | None = None, *, parts: int, records: int | None = None, **arguments: Any) -> SharedRelease:
    """Pay for a release whose records are read in parts, by processes, machines or an engine of your own.

    The ledger is charged here, before a record is read. A worker then calls ``partial_statistics(shared.plan, chunk, part)`` for its part
    of the records, and ``add_up`` makes one release of all parts. Which records are in which part is yours to say: every record is in one,
    and in the same if that is computed again. A record then moves the sums of all parts as far as those of its own part, and so as far as
    those of ``release``: the noise is the same.

    Parameters
    ----------
    model : pm.Model, optional
        Built on a few placeholder rows, as for ``release(data=...)``.
    parts : int
        In how many parts the records are.
    records : int, optional
        The number of all records, which is public under "replace". Leave it out with neighbours="add_remove".
    **arguments
        The arguments of ``release`` without ``data``; ``epsilon`` is required.

    Returns
    -------
    SharedRelease

    Raises
    ------
    Refusal
        What ``release(data=...)`` refuses; ``Person``, because the rows of one may lie in several parts.

    Examples
    --------
    >>> import pandas as pd
    >>> with pm.Model() as votes:
    ...     _ = pm.Bernoulli("vote", pm.Beta("share", 1, 1), observed=np.zeros(2, dtype=int))
    >>> shared = pmdp.share_out(votes, parts=2, records=5, epsilon=1.0)
    >>> chunks = [pd.DataFrame({"vote": [0, 1, 1]}), pd.DataFrame({"vote": [1, 0]})]
    >>> parts = [pmdp.partial_statistics(shared.plan, chunk, k) for k, chunk in enumerate(chunks)]
    >>> int(pmdp.add_up(shared, parts)["vote"].n[0])
    5
    """
    if "epsilon" not in arguments or "data" in arguments:
        raise Refusal("share_out needs epsilon and no data. Write for example share_out(model, parts=8, records=10**6, epsilon=1.0).")
    if type(parts) is not int or not 1 <= parts <= MOST_PARTS:
        raise Refusal(f"parts must be a whole number from 1 to {MOST_PARTS}. Write in how many parts the records are.")
    kinds = ("bounds", "public", "unit", "neighbours", "missing", "disjoint")
    protection = protection_of(**{name: arguments.pop(name) for name in kinds if name in arguments}, persons=True)
    if isinstance(protection.unit, Person):
        raise Refusal(f"Rows of one {protection.unit.name} may lie in several parts. Write release(..., data=...), which reads all.")
    if protection.sized != (type(records) is int and records > 0):
        raise Refusal(
            'Write records=, how many records all parts have together, which is public under "replace".'
            if protection.sized
            else "The number of records is private here. Leave records out."
        )
    ready = prepared(model, protection, data=Elsewhere(records or 0), **arguments)
    ready.warn()
    unread = unread_in(in_context(model), ready.columns)
    plan = SharedPlan(uuid4().hex, parts, ready.columns, unread, protection.sized, ready.opened)
    return SharedRelease(plan, ready, ready.pay(), records)


@boundary
def partial_statistics(plan: SharedPlan, chunk: object, part: int) -> PartialStatistics:
    """Exact sums over one part of the records of a shared release: private data, which only ``add_up`` is to see.

    Parameters
    ----------
    plan : SharedPlan
        ``shared.plan``; it pickles.
    chunk : object
        The records of this part, as ``release`` takes them as ``data``.
    part : int
        Which part it is, from 0.

    Returns
    -------
    PartialStatistics
        It pickles. Computed again it is the same.

    Raises
    ------
    Refusal
        For a chunk that is no table or lacks a column, and a part that there is not. Nothing that a record holds is in the message.
    PrivateComputationError
        When something fails inside; always the same words.

    Examples
    --------
    >>> import pandas as pd
    >>> with pm.Model() as votes:
    ...     _ = pm.Bernoulli("vote", pm.Beta("share", 1, 1), observed=np.zeros(2, dtype=int))
    >>> shared = pmdp.share_out(votes, parts=1, records=3, epsilon=1.0)
    >>> pmdp.partial_statistics(shared.plan, pd.DataFrame({"vote": [0, 1, 1]}), 0)
    PartialStatistics(part 0)
    """
    if not isinstance(plan, SharedPlan):
        raise Refusal("The plan is none of a shared release. Write partial_statistics(shared.plan, chunk, part).")
    if type(part) is not int or not 0 <= part < plan.parts:
        raise Refusal(f"There are parts 0 to {plan.parts - 1}. Write which of them this is.")
    source = Source.of(chunk, plan.names, plan.unread)
    return PartialStatistics(plan.release, part, source.records if plan.sized else None, summed(plan.opened, source))


def add_up(shared: SharedRelease, parts: Iterable[PartialStatistics]) -> Release:
    """The release of all parts together: noise is added to the sums of all, once.

    Every part counts once, however often it was computed and in whatever order parts come. Of a part that comes several times the first
    is taken.

    Parameters
    ----------
    shared : SharedRelease
    parts : iterable of PartialStatistics

    Returns
    -------
    Release
        Before noise, bit by bit that of ``release`` of all records.

    Raises
    ------
    Refusal
        When a part is missing or of another release, when parts have another number of records than was said, and the second time.

    Examples
    --------
    >>> import pandas as pd
    >>> with pm.Model() as votes:
    ...     _ = pm.Bernoulli("vote", pm.Beta("share", 1, 1), observed=np.zeros(2, dtype=int))
    >>> shared = pmdp.share_out(votes, parts=1, records=3, epsilon=1.0)
    >>> part = pmdp.partial_statistics(shared.plan, pd.DataFrame({"vote": [0, 1, 1]}), 0)
    >>> pmdp.add_up(shared, [part, part])["vote"].noisy.shape
    (1, 1)
    """
    if not isinstance(shared, SharedRelease):
        raise Refusal("This is no shared release. Write shared = pymc_dp.share_out(...), and add_up(shared, parts).")
    return shared._ready.finish(shared._receipt, _together(shared, parts))


@boundary
def _together(shared: SharedRelease, parts: Iterable[PartialStatistics]) -> dict[str, np.ndarray]:
    """Sums over all parts, each once. It says which parts are missing, and nothing of what is in one."""
    found: dict[int, PartialStatistics] = {}
    for part in parts:
        if not isinstance(part, PartialStatistics) or part.release != shared.plan.release:
            raise Refusal("A part is of another release. Write partial_statistics(shared.plan, chunk, part) for every part.")
        found.setdefault(part.part, part)
    if missing := sorted(set(range(shared.plan.parts)) - set(found)):
        raise Refusal(f"Part {missing[0]} is missing. Write partial_statistics(shared.plan, chunk, {missing[0]}), and add up again.")
    if shared.plan.sized and sum(part.rows or 0 for part in found.values()) != shared._records:
        raise Refusal("All parts together have another number of records than was said. Write share_out(..., records=...) with theirs.")
    sums = {}
    for name in found[0].exact:
        total = sum(part.exact[name].astype(object) for part in found.values())
        sums[name] = np.clip(total, -LARGEST_SUM, LARGEST_SUM).astype(np.int64)  # which moves no two of them further apart
    return sums
