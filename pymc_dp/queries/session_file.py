"""The file of a session: public numbers as JSON, written whole or not at all.

It holds questions, the noise of their answers and the noisy numbers, all of which have left the records; what was spent stands in the
ledger, which the file is compared with when it is read. The ledger knows a session by a digest of all that gives the text of a question its
meaning, so that no charge of its is ever read with another schema than it was made with.
"""

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from math import isfinite
from pathlib import Path

from pymc_dp.plans.person import Person
from pymc_dp.privacy.accounting import ALL_ROWS, Refusal
from pymc_dp.privacy.files import sync_folder, try_to_write
from pymc_dp.privacy.journal import PATIENCE
from pymc_dp.queries.history import Answered
from pymc_dp.queries.language import question
from pymc_dp.queries.schema import Column, Schema

with suppress(ImportError):  # not there where no ledger is offered, either
    import fcntl

FORMAT = 3
"""Also where the same text would mean another question than before."""


@dataclass(frozen=True, eq=False)
class Item:
    """An answer, and where it comes from.

    Attributes
    ----------
    answered : Answered
    number : int or None
        Which of the session's charges paid for it, from 0; None where a release did.
    release : str
        The head of the ledger in that release; empty otherwise.
    """

    answered: Answered
    number: int | None
    release: str = ""


@dataclass(frozen=True, eq=False)
class Saved:
    """What a session is made of, apart from the records and the ledger.

    Attributes
    ----------
    salt : str
        Random, so that no two sessions have one name.
    schema : Schema
    neighbours, unit, part : str
    complete : tuple of str
    records : int or None
        How many there are, where that is public.
    items : tuple of Item
    models : Fraction
        What was paid for questions about models, in nats.
    person : tuple of str and int, or None
        The column that says whose a row is, and how many rows of a person count; None where single rows are protected.
    """

    salt: str
    schema: Schema
    neighbours: str
    unit: str
    part: str
    complete: tuple[str, ...]
    records: int | None
    items: tuple[Item, ...] = ()
    models: Fraction = Fraction(0)
    person: tuple[str, int] | None = None

    @property
    def charged(self) -> str | Person:
        """The unit, as a ledger is told it."""
        return self.unit if self.person is None else Person(*self.person, name=self.unit.removeprefix(ALL_ROWS))

    @cached_property
    def name(self) -> str:
        """The name of the session in the ledger: a digest of everything but the answers.

        What a session has cost follows from the texts of its charges. Had they another meaning than when they were paid for, records
        could be asked about anew for nothing; so whoever changes the file has a session that has paid for nothing yet.
        """
        return sha256(json.dumps(self._meaning, sort_keys=True).encode()).hexdigest()

    @property
    def _meaning(self) -> dict:
        return {
            "format": FORMAT, "salt": self.salt, "neighbours": self.neighbours, "unit": self.unit, "part": self.part,
            "complete": self.complete, "records": self.records, "schema": [_column_facts(column) for column in self.schema.columns],
        } | ({} if self.person is None else {"person": list(self.person)})  # fmt: skip

    @property
    def protects(self) -> str:
        """What is protected, in words; with how many rows of a person count."""
        return self.unit if self.person is None else f"{self.unit}, at most {self.person[1]}"

    @property
    def at_most(self) -> int | None:
        """How many rows of a person count; None where single rows are protected."""
        return None if self.person is None else self.person[1]

    @cached_property
    def text(self) -> str:
        """The content of the file."""
        return sealed(self._meaning | {"models": str(self.models), "items": [_item_facts(item) for item in self.items]})

    def write(self, path: Path, *, new: bool = False) -> None:
        """Replace the file, or make a new one: after a crash it is the old one or the new one.

        Raises
        ------
        FileExistsError
            When a new one is there already.
        Refusal
            When it cannot be written.
        """
        building = path.with_name(f"{path.name}.{os.urandom(8).hex()}.new")
        try:
            with building.open("x", encoding="utf-8") as file:
                file.write(self.text)
                file.flush()
                os.fsync(file.fileno())
            if new:
                os.link(building, path)
                building.unlink()
            else:
                os.replace(building, path)
            sync_folder(path.parent)
        except OSError as error:
            with suppress(OSError):
                building.unlink(missing_ok=True)
            if new and isinstance(error, FileExistsError):
                raise
            raise Refusal(
                f"{path.name} cannot be written. Make room on the disk and its folder writeable; what was answered is kept in this session."
            ) from None

    def check_room(self, path: Path) -> None:
        """See that this could be written there, before it is paid for.

        Raises
        ------
        Refusal
            When it cannot.
        """
        try:
            try_to_write(path, len(self.text.encode()))
        except OSError:
            raise Refusal(
                f"{path.name} cannot be written, so the answer would be lost. Make room on the disk and its folder writeable, then ask."
            ) from None

    @classmethod
    def read(cls, path: Path) -> "Saved":
        """What ``write`` wrote.

        Raises
        ------
        Refusal
            When the file is no session, or damaged.
        """
        try:
            facts = json.loads(path.read_text(encoding="utf-8"))
            if facts["sum"] != _sum(facts) or facts["format"] != FORMAT or not isinstance(facts["items"], list):
                raise ValueError
            schema = Schema(tuple(_column(part) for part in facts["schema"]))
            items = tuple(_item(part, schema) for part in facts["items"])
            numbers = [item.number for item in items if item.number is not None]
            if numbers != sorted(set(numbers)) or min(numbers, default=0) < 0:
                raise ValueError
            words = [facts[name] for name in ("salt", "neighbours", "unit", "part")]
            if not all(isinstance(word, str) for word in words) or not isinstance(facts["records"], int | None):
                raise ValueError
            return cls(
                *(words[0], schema, words[1], words[2], words[3], tuple(facts["complete"]), facts["records"], items),
                *(_exact(facts["models"]), _person(facts.get("person"))),
            )
        except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
            raise damaged(path) from None


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Nobody else holds the file, in this process or another, as long as this block; a process that ends lets go of it.

    Raises
    ------
    Refusal
        When it is gone or cannot be read, or somebody has held it for a minute.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            if not path.is_file():  # of a pipe or a device one would wait for ever
                raise OSError
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            raise Refusal(f"{path.name} is gone or cannot be read. Put it back, or open a session with another name.") from None
        try:
            if _is_held(descriptor, path):
                yield
                return
        finally:
            os.close(descriptor)
        if time.monotonic() > deadline:
            raise Refusal(f"{path.name} has been in use for {PATIENCE:g} seconds. Try again when the other question is answered.")
        time.sleep(0.01)


def _is_held(descriptor: int, path: Path) -> bool:
    """Writing puts another file in the place of the one that was held: whoever waited for that waits again."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except (BlockingIOError, FileNotFoundError):
        return False


def sealed(facts: dict) -> str:
    """Facts with a checksum beside them, by which damage is found. Whoever changes them on purpose can make another: it proves nothing."""
    return json.dumps(facts | {"sum": _sum(facts)})


def _sum(facts: dict) -> str:
    content = {name: value for name, value in facts.items() if name != "sum"}
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def damaged(path: Path) -> Refusal:
    """What is said of a file that no session wrote."""
    return Refusal(
        f"{path.name} is not a session that this version can read, or is damaged. Put the newest copy back, or choose another name."
    )


def _column_facts(column: Column) -> dict:
    return {"name": column.name, "levels": column.levels, "edges": [edge.hex() for edge in column.edges]}


def _column(facts: dict) -> Column:
    levels = tuple(facts["levels"])
    edges = tuple(map(float.fromhex, facts["edges"]))
    return Column(facts["name"], levels, edges, levels if all(type(level) is int for level in levels) else ())


def _item_facts(item: Item) -> dict:
    answer = item.answered
    return {
        "question": answer.question.text, "epsilon": str(answer.epsilon), "scale": answer.scale.hex(), "noisy": answer.noisy,
        "number": item.number, "release": item.release,
    }  # fmt: skip


def _item(facts: dict, schema: Schema) -> Item:
    scale, number = float.fromhex(facts["scale"]), facts["number"]
    if type(facts["noisy"]) is not int or not (number is None or type(number) is int) or not (isfinite(scale) and scale > 0):
        raise ValueError
    if abs(facts["noisy"]) >= 2**63:
        raise ValueError
    asked = question(facts["question"], schema)
    return Item(Answered(asked, _exact(facts["epsilon"]), scale, facts["noisy"]), number, str(facts["release"]))


def _person(facts: object) -> tuple[str, int] | None:
    if facts is None:
        return None
    if not isinstance(facts, list) or list(map(type, facts)) != [str, int] or facts[1] < 1:
        raise ValueError
    return facts[0], facts[1]


def _exact(text: str) -> Fraction:
    if not re.fullmatch(r"[0-9]+(/[0-9]+)?", text):
        raise ValueError
    return Fraction(text)
