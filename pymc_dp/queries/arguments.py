"""What a user hands to a session, checked before any record is read."""

import os
from collections.abc import Iterable, Sequence
from math import isfinite
from pathlib import Path

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.ledger import Ledger, Part
from pymc_dp.queries.language import Question, question
from pymc_dp.queries.plan import number_of
from pymc_dp.queries.schema import Schema


def questions_of(asked: object, schema: Schema) -> list[Question]:
    """One question or a list of them, read before anything is decided: looking at what was given may run somebody's code."""
    several: Iterable[object] = list(asked) if isinstance(asked, list | tuple) else [asked]
    return [question(one, schema) for one in several]


def columns_of(complete: object, schema: Schema) -> tuple[str, ...]:
    """The columns in which every record is promised to have a level, in the order of the schema."""
    if complete is True:
        return schema.names
    if isinstance(complete, Sequence) and not isinstance(complete, str):
        promised = {schema.column(name).name for name in complete}
        return tuple(name for name in schema.names if name in promised)
    raise Refusal("complete must be True or a list of columns in which every record has a level. Write for example complete=['age'].")


def check_protects(ledger: Ledger | Part | None, neighbours: str, unit: str) -> None:
    """Refuse a ledger of other neighbours or another unit."""
    whole = ledger.ledger if isinstance(ledger, Part) else ledger
    for name, value in (("neighbours", neighbours), ("unit", unit)):
        if whole is not None and getattr(whole, name) != value:
            raise Refusal(f"{whole.path.name} has another {name}. Write {name}={getattr(whole, name)!r}.")


def path_of(history: str | os.PathLike[str] | None) -> Path | None:
    """The absolute path of the file of a session, or None."""
    try:
        return None if history is None else Path(os.path.realpath(os.fsdecode(history)))
    except (TypeError, ValueError):
        raise Refusal("history must be the name of a file. Write for example history='survey.session'.") from None


def number_above(above: object) -> float:
    """A finite number that an answer is compared with."""
    if isfinite(number := number_of(above)):
        return number
    raise Refusal('above must be a finite number, in units of the answer. Write for example session.probability("age >= 65", 100).')
