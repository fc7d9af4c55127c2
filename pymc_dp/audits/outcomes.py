"""What the output of any function looks like, and the numbers in it, so that runs can be compared.

Everything that someone who is handed the output can see is in one of the two: types, shapes, names, words, warnings, and an exception
in place of an output. What is printed, logged or written to files is not.
"""

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from sys import intern
from typing import NamedTuple

import numpy as np

from pymc_dp.privacy.accounting import Refusal

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
CONSTANTS = (bool, np.bool_, bytes)
NUMBERS = (int, float, np.number, complex, Fraction, Decimal)


class Outcome(NamedTuple):
    """The outcome of one run.

    Attributes
    ----------
    look : str
        Everything about it but its numbers.
    numbers : (K,) float64 ndarray
        In the order in which they stand in the output.
    raised : bool
    """

    look: str
    numbers: np.ndarray
    raised: bool


def run(mechanism: Callable[[object], object], data: object, warned: list) -> tuple[Outcome, object]:
    """One run: its outcome and its output, which is the exception if it raised one.

    Parameters
    ----------
    mechanism, data
    warned : list
        To which ``warnings.catch_warnings(record=True, action="always")`` appends; emptied here.
    """
    warned.clear()
    try:
        output, raised = mechanism(data), False
    except Exception as error:
        output, raised = error, True
    messages = [f"{warning.category.__name__}: {warning.message}" for warning in warned]
    if messages:
        output = {"warned": ", ".join(messages), "returned": output}
    return _outcome(output, raised), output


def names(output: object) -> list[str]:
    """What each number of an output is called: ``output[2]``, ``output.noisy[0,1]``."""
    parts: list[Piece] = []
    _gather(output, "output", parts)
    return [name for path, part in parts if not isinstance(part, str) for name in _entries(path, part)]


def _entries(path: str, part: float | np.ndarray) -> list[str]:
    return [path + ("[" + ",".join(map(str, index)) + "]" if index else "") for index in np.ndindex(np.shape(part))]


def _outcome(output: object, raised: bool) -> Outcome:
    if type(output) is np.ndarray and output.dtype.kind in "iuf":
        return Outcome(f"{output.dtype}{output.shape}", output.astype(np.float64).ravel(), False)
    parts: list[Piece] = []
    _gather(output, "output", parts)
    looks: list[str] = []  # every array follows a word that tells its shape
    numbers: list[float] = []
    for path, part in parts:
        if isinstance(part, str):
            looks.append(f"{path} {part}" if path != "output" else part)
        elif isinstance(part, float):
            numbers.append(part)
        else:
            numbers += part.ravel().tolist()
    return Outcome(intern("; ".join(looks)), np.array(numbers, dtype=np.float64), raised)


Piece = tuple[str, str | float | np.ndarray]
"""A word, a number or an array of numbers, and where in the output it stands."""


def _gather(output: object, path: str, parts: list[Piece]) -> None:
    """Append the parts of an output to ``parts``."""
    kind = type(output)
    if kind is str:
        _words(output, path, parts)  # type: ignore[arg-type]
    elif output is None or isinstance(output, CONSTANTS):
        parts.append((path, repr(output)))
    elif isinstance(output, NUMBERS):
        parts.append((path, kind.__name__))
        _number(output, path, parts)
    elif isinstance(output, np.ndarray):
        _array(output, path, parts)
    elif is_dataclass(output):
        parts.append((path, kind.__name__))
        for field in fields(output):
            _gather(getattr(output, field.name), f"{path}.{field.name}", parts)
    elif isinstance(output, str | BaseException):
        _words(f"{kind.__name__}: {output}", path, parts)
    elif isinstance(output, Mapping) and kind.__module__.split(".")[0] != "xarray":  # whose attributes are no items
        parts.append((path, kind.__name__))
        for key, value in output.items():
            _gather(value, f"{path}[{key!r}]", parts)
    elif isinstance(output, Sequence | Set):
        parts.append((path, f"{kind.__name__} of {len(output)}"))
        for k, value in enumerate(output if isinstance(output, Sequence) else sorted(output, key=repr)):
            _gather(value, f"{path}[{k}]", parts)
    else:
        parts.append((path, kind.__name__))
        _foreign(output, path, parts)


def _number(output: object, path: str, parts: list[Piece]) -> None:
    if isinstance(output, Fraction):
        _gather([output.numerator, output.denominator], path, parts)
    elif isinstance(output, complex):
        parts.append((path, np.array([output.real, output.imag])))
    else:
        try:
            parts.append((path, float(output)))  # type: ignore[arg-type]
        except (OverflowError, TypeError, ValueError):  # an integer too large, say
            parts.append((path, repr(output)))


def _array(output: np.ndarray, path: str, parts: list[Piece]) -> None:
    parts.append((path, f"{output.dtype}{output.shape}"))
    if output.dtype.kind in "iufb":
        parts.append((path, output))
    elif output.dtype.kind == "c":
        parts.append((path, np.stack([output.real, output.imag], axis=-1)))
    elif output.dtype.kind in "mM":
        parts.append((path, output.astype(np.int64)))
    else:
        for index, value in zip(np.ndindex(output.shape), output.ravel().tolist()):
            _gather(value, f"{path}[{','.join(map(str, index))}]", parts)


def _words(text: str, path: str, parts: list[Piece]) -> None:
    """A text as what stands between its numbers, and its numbers."""
    between, numbers = _split(text)
    parts.append((path, between))
    if len(numbers):
        parts.append((path, numbers))


@lru_cache(10_000)
def _split(text: str) -> tuple[str, np.ndarray]:
    return repr(NUMBER.sub("#", text.replace("#", "##"))), np.array([float(number) for number in NUMBER.findall(text)])


def _foreign(output: object, path: str, parts: list[Piece]) -> None:
    """Tables of pandas and xarray, and whatever says in words what it holds."""
    home = type(output).__module__.split(".")[0]
    if home == "xarray" and hasattr(output, "to_dict"):
        # Of a tree, data sets by path; of a data set or array, nested dicts.
        _gather(output.to_dict() if hasattr(output, "subtree") else output.to_dict(data="array"), path, parts)
    elif home == "pandas" and hasattr(output, "columns"):
        columns = {str(name): column.to_numpy() for name, column in output.items()}  # type: ignore[attr-defined]
        _gather({"columns": columns, "index": output.index.to_numpy()}, path, parts)  # type: ignore[attr-defined]
    elif home == "pandas" and hasattr(output, "index") and hasattr(output, "to_numpy"):
        _gather({"values": output.to_numpy(), "index": getattr(output.index, "to_numpy", list)()}, path, parts)
    elif (text := repr(output)) and " at 0x" not in text and " object at " not in text:
        _words(text, path, parts)
    else:
        raise Refusal(
            f"The mechanism returned a {type(output).__name__}, which does not say what it holds. Return numbers, arrays, tables, text,"
            " or a dict of them."
        )
