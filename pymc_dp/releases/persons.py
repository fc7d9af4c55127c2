"""Which rows of every person count: at most so many, chosen by what that person's own rows are, and by nothing else.

A person's name and the place of a row among that person's own rows decide. Another person who comes, goes or is exchanged changes neither,
so it changes nothing of what is counted of this one. Whatever an array holds, nothing raises: a row without a name is nobody's.
"""

import re
from hashlib import blake2b

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dp.releases.statistics import value_of

PURPOSE = b"pymc_dp person"
"""Makes this hash another one than any that a data set's own names may come from."""
DIGITS = re.compile("0|-?[1-9][0-9]{,99}")
"""A whole number as it is written, and no other text that says the same one."""


def counted_rows(key: Variable | np.ndarray | None, at_most: int, records: int) -> np.ndarray:
    """Which of so many rows count: (N,) bool. Rows that the key does not reach are nobody's.

    Of a person with more rows than count, those count that have the smallest hashes of the person's name and the row's place among the
    person's own, in the order of the array. It is the same in every release, so that no release tells of other rows than the one before,
    and it knows nothing of what a row says. To a model in which a person's rows are exchangeable it is a sample of them.

    Parameters
    ----------
    key : Variable or array
        Whose every row is: the name of a person, along the rows.
    at_most : int
    records : int
        N.
    """
    assert key is not None
    names = (value_of(key) if isinstance(key, Variable) else key)[:records]
    codes, persons = _persons(names)
    order = np.argsort(codes, kind="stable")
    many = np.bincount(codes + 1, minlength=len(persons) + 1)  # how many rows are nobody's, and then each person's
    start = np.cumsum(many) - many
    counted = np.zeros(records, dtype=bool)
    counted[: len(names)] = (codes >= 0) & (many[codes + 1] <= at_most)
    for person in np.flatnonzero(many[1:] > at_most):
        own = order[start[person + 1] : start[person + 1] + many[person + 1]]
        counted[own[_first(persons[person], len(own))[:at_most]]] = True
    return counted


def _first(name: str, many: int) -> list[int]:
    """The places of so many rows of a person's own, in the order in which they count."""
    texts = [f"{place} {name}".encode(errors="surrogatepass") for place in range(many)]
    hashes = [blake2b(text, digest_size=16, person=PURPOSE).digest() for text in texts]
    return sorted(range(many), key=hashes.__getitem__)


def _persons(names: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Whose every row is, (N,) integers from 0 or -1 for nobody, and a text for every person that no other person has."""
    if names.dtype.kind in "OT":
        texts = [_name(value) for value in names.astype(object)]
        codes: dict[str, int] = {}
        return np.array([-1 if text is None else codes.setdefault(text, len(codes)) for text in texts], dtype=np.int64), list(codes)
    distinct, places = np.unique(names, return_inverse=True, equal_nan=True)
    texts = [_name(value) for value in distinct]
    known = np.array([text is not None for text in texts], dtype=bool)
    numbers = np.where(known, np.cumsum(known) - 1, -1)
    return numbers[places].astype(np.int64).reshape(len(names)), [text for text in texts if text is not None]


def _name(value: object) -> str | None:
    """A text that equal names have and no others: 3, 3.0, "3" and True's 1 are numbers, "03" is not. None for what is no name.

    Digits are the number that they write, because readers of files make texts of all numbers of a column in which one name is none, or of
    some of them. Whole numbers are written in hexadecimal, which Python does for numbers of any length; of decimal digits it refuses more
    than 4,300, and one person's name would stop the release.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) is str:
        return f"number {int(value):x}" if DIGITS.fullmatch(value) else f"text {value}"
    if type(value) is bytes:
        return f"bytes {value.hex()}"
    if type(value) is float:
        if np.isnan(value):
            return None
        return f"number {int(value):x}" if value.is_integer() else f"number {value!r}"
    return f"number {value:x}" if isinstance(value, int) and type(value) in (int, bool) else None
