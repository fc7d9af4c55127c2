"""What is checked of a journal's file before SQLite opens it, and the refusals if a file cannot be written or read."""

import errno
import hashlib
import json
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pymc_dp.privacy.accounting import Refusal

REASONS = {
    "SQLITE_BUSY": "is locked by another program. Try again when it is done.",
    "SQLITE_LOCKED": "is locked by another program. Try again when it is done.",
    "SQLITE_FULL": "cannot be written: the disk is full. Make room first.",
    "SQLITE_IOERR": "cannot be written or read. Make room on the disk, and check it.",
    "SQLITE_READONLY": "cannot be written. Make the file, its .lock and their folder writeable.",
    "SQLITE_CANTOPEN": "cannot be opened. Make the file and its folder readable and writeable.",
    "SQLITE_CORRUPT": "is damaged. Put the newest copy back, and open it with anchor=.",
    "SQLITE_NOTADB": "is not a ledger, or is damaged. Put the newest copy back, and open it with anchor=.",
    "SQLITE_ERROR": "is not a ledger, or is damaged. Put the newest copy back, and open it with anchor=.",
    "SQLITE_CONSTRAINT": "refused the entry, which breaks its rules. Check it with python -m pymc_dp ledger.",
}
BESIDE = ("-journal", "-wal", "-shm")
"""Endings of the files that SQLite keeps beside a database."""
JOURNAL = bytes.fromhex("d9d505f920a163d7")
"""How SQLite's rollback journal begins."""


def check_file(path: Path) -> None:
    """A database with nothing beside it that SQLite would take for its own; it is not shown to SQLite otherwise.

    Nobody else in this process has the file open, because its lock is held: closing a descriptor would drop SQLite's locks.
    """
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        raise Refusal(f"{path.name} must be an ordinary file with one name. Remove links to it.")
    if _beginning(path, 16) != b"SQLite format 3\0":
        raise Refusal(f"{path.name} {REASONS['SQLITE_NOTADB']}")
    journal = Path(f"{path}{BESIDE[0]}")
    if os.path.lexists(journal) and _beginning(journal, 8) not in {b"", bytes(8), JOURNAL}:
        raise Refusal(f"{journal.name} is not {path.name}'s own, and SQLite would take it for that. Put it elsewhere.")
    for end in BESIDE[1:]:
        if os.path.lexists(f"{path}{end}"):
            raise Refusal(f"{path.name}{end} stands beside {path.name}, so another program changed it. Put the newest copy back.")


def _beginning(path: Path, length: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, length)
    finally:
        os.close(descriptor)


def place_of(file: Path, path: Path) -> str:
    """Where a journal stands: its name and its inode, which a copy beside it does not share."""
    return f"{os.stat(file).st_ino}:{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}"


def sync_folder(folder: Path) -> None:
    """Wait until what was written in a folder is on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def try_to_write(path: Path, length: int) -> None:
    """Write as many bytes beside the file as it will hold, to the disk, and take them away again.

    Raises
    ------
    OSError
        When they cannot be written: the folder is gone or closed, the disk is full, the name is too long or that of a folder.
    """
    if path.is_dir():
        raise IsADirectoryError
    trial = path.with_name(f"{path.name}.{os.urandom(8).hex()}.new")
    try:
        with trial.open("xb") as file:
            file.write(bytes(length))
            file.flush()
            os.fsync(file.fileno())
    finally:
        with suppress(OSError):
            trial.unlink(missing_ok=True)


@contextmanager
def refusing(name: str) -> Iterator[None]:
    """Whatever SQLite or the system says becomes a refusal: no ledger, no release."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorname", None) or ""
        words = (reason for beginning, reason in REASONS.items() if code.startswith(beginning))
        raise Refusal(f"{name} {next(words, 'cannot be used. Check the file and its folder.')}") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise Refusal("The name of the ledger is too long, with what stands beside it. Choose a shorter one.") from None
        if error.errno in {errno.ENOENT, errno.ENOTDIR}:
            raise Refusal(f"{name} cannot be written or read: it is gone, or its folder does not exist. Make the folder first.") from None
        full = error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
        raise Refusal(f"{name} {REASONS['SQLITE_FULL' if full else 'SQLITE_READONLY']}") from None
    except (KeyError, UnicodeError, json.JSONDecodeError):
        raise Refusal(f"{name} {REASONS['SQLITE_CORRUPT']}") from None
