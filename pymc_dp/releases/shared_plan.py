"""What travels if records are read in parts: the plan of the sums, to whoever reads a part, and the exact sums of the part, back.

A part counts once, however often it was computed: it is known by its number, and of several with one number the first is taken.
"""

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any
from uuid import uuid4

import numpy as np

from pymc_dp.families.values import Labels
from pymc_dp.models.source_lines import dumped_without_lines
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.guard import boundary
from pymc_dp.privacy.layout import counted
from pymc_dp.privacy.mechanisms import LARGEST_SUM
from pymc_dp.releases.cells import PublicCells
from pymc_dp.releases.source import Source
from pymc_dp.releases.spread import Spread

type Sums = Callable[..., dict[str, np.ndarray]]
"""Exact sums of observed variables over the records of a source: see ``from_data.summed``."""


@dataclass(frozen=True, eq=False)
class SharedPlan:
    """What every part is to be summed into. No record is in it; it pickles, and ``partial_statistics`` takes it anywhere.

    Attributes
    ----------
    release : str
        Which release it belongs to.
    parts : int
    columns : dict of str to dict of str to int
        Columns that are read, and of each at which place its labels stand.
    unread : tuple of str
        Names that no column may have.
    sized : bool
        Whether the number of records is public.
    opened : tuple of PublicCells
    person : (str, int) or None
        The column that says whose a row is, and how many rows of a person count, where all rows of a person are protected.
    """

    release: str
    parts: int
    columns: Mapping[str, Labels]
    unread: tuple[str, ...]
    sized: bool
    opened: tuple[PublicCells, ...]
    person: tuple[str, int] | None = None

    def __reduce__(self) -> tuple:
        """Graphs of likelihoods hold functions, which only cloudpickle writes down."""
        import cloudpickle

        return cloudpickle.loads, (dumped_without_lines(_Fields(dict(self.__dict__))),)

    def __repr__(self) -> str:
        return f"SharedPlan({', '.join(self.columns)}; {counted(self.parts, 'part')})"


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


def part_of(plan: SharedPlan, chunk: object, part: int, sums: Sums) -> PartialStatistics:
    """Exact sums over the records of one part: where rows of persons are protected together, of those persons who are in it."""
    key, at_most = plan.person or (None, None)
    source = Source.of(chunk, plan.columns, plan.unread, key)
    if isinstance(source.table, Spread):
        raise Refusal("A part is read where it lies, and this table is in several parts itself. Write release(..., data=...) with it.")
    return PartialStatistics(
        plan.release, part, source.records if plan.sized else None, sums(plan.opened, source, at_most, (part, plan.parts))
    )


def added_up(plan: SharedPlan, parts: Iterable[PartialStatistics], records: int | None) -> dict[str, np.ndarray]:
    """Sums over all parts, each once. It says which parts are missing, and nothing of what is in one.

    Every record is in one part, so a record moves these sums as far as those of its part: as far as the sums of all records at once, which
    they are. That holds whoever computed a part and however often, because a number counts once; and whichever of several is taken, because
    the same records make the same part. Clamping the whole to the integers that noise can be added to moves no two of them further apart.
    """
    by_part: dict[int, PartialStatistics] = {}
    for part in parts:
        if not isinstance(part, PartialStatistics) or part.release != plan.release or not 0 <= part.part < plan.parts:
            raise Refusal("A part is of another release. Write partial_statistics(shared.plan, chunk, part) for every part.")
        by_part.setdefault(part.part, part)
    if missing := sorted(set(range(plan.parts)) - set(by_part)):
        raise Refusal(f"Part {missing[0]} is missing. Write partial_statistics(shared.plan, chunk, {missing[0]}), and add up again.")
    if plan.sized and sum(part.rows or 0 for part in by_part.values()) != records:
        raise Refusal("All parts together have another number of records than was said. Write share_out(..., records=...) with theirs.")
    sums = {}
    for name, shape in ((cells.name, cells.shape) for cells in plan.opened):
        total = sum((part.exact[name].astype(object) for part in by_part.values()), np.zeros(shape, dtype=object))
        sums[name] = np.clip(total, -LARGEST_SUM, LARGEST_SUM).astype(np.int64)
    return sums


# ---------- read by an engine


def sums_of_parts(
    opened: Sequence[PublicCells], source: Source, sized: bool, sums: Sums, at_most: int | None = None
) -> dict[str, np.ndarray]:
    """Exact sums over a table that an engine holds in parts, which ``sums`` makes of a part where it lies.

    What goes to the workers is the plan and where ``sums`` is written, and no record: of the model that its placeholders are none.
    """
    import cloudpickle

    table: Spread = source.table
    person = None if source.key is None or at_most is None else (source.key, at_most)
    plan = SharedPlan(uuid4().hex, table.parts, source.columns, (), sized, tuple(opened), person)
    names = source.names if person is None else (*source.names, person[0])
    parts = [pickle.loads(sent) for sent in table.results(sums_of_part, names, cloudpickle.dumps((plan, sums)))]
    try:
        return added_up(plan, parts, source.records if sized else None)
    except Refusal:
        raise RuntimeError from None  # a part failed, or the table is another than that was paid for: the same words for all


_ONE_AT_A_TIME = Lock()
"""Settings of PyTensor are of the whole process, so that threads of a worker take turns."""


def sums_of_part(chunks: Iterable[object], part: int, written: bytes) -> bytes:
    """On a worker: the pickled sums of one part, whose records are in these tables, or of None where something failed.

    It never fails itself: engines write down what failed with what it was handed, which are records.
    """
    import cloudpickle

    try:
        with _ONE_AT_A_TIME:
            plan, sums = cloudpickle.loads(written)
            return pickle.dumps(_of_chunks(plan, sums, chunks, part))
    except Exception:
        return pickle.dumps(None)


@boundary
def _of_chunks(plan: SharedPlan, sums: Sums, chunks: Iterable[object], part: int) -> PartialStatistics:
    if plan.person is not None:
        [whole] = chunks  # all rows of a person at once: of several tables each would count as many rows as all may
        return part_of(plan, whole, part, sums)
    several = dict(enumerate(part_of(plan, chunk, part, sums) for chunk in chunks))
    chunk_plan = replace(plan, parts=len(several))
    rows = sum(partial.rows or 0 for partial in several.values())
    exact = added_up(chunk_plan, (replace(partial, part=k) for k, partial in several.items()), rows)
    return PartialStatistics(plan.release, part, rows if plan.sized else None, exact)
