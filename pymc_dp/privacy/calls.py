"""Refusals of calls with wrong arguments, and of attributes that do not exist: they say what to write instead. No value of an argument
is looked at.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, timedelta
from difflib import get_close_matches
from functools import wraps
from inspect import Signature, signature
from typing import Any, NoReturn

MEANT = {
    "eps": "epsilon", "budget": "epsilon", "privacy_budget": "epsilon", "neighbors": "neighbours", "neighbor": "neighbours",
    "adjacency": "neighbours", "privacy_unit": "unit", "limits": "bounds", "clip": "bounds", "clipping": "bounds", "noise": "mechanism",
    "seed": "random_seed", "rng": "random_seed", "observed": "data", "df": "data", "frame": "data", "n_samples": "draws",
    "num_samples": "draws", "samples": "draws", "accountant": "ledger", "na": "missing", "nan": "missing", "max_rows": "at_most",
    "max_contributions": "at_most", "data": "given", "new_data": "given", "newdata": "given",
}  # fmt: skip
"""What other libraries, or other spellings, call an argument."""
SELVES = ("self", "_cls")
"""The first argument of a method, which nobody writes."""
SEEDS = ("random_seed", "seed", "rng", "random_state")
NO_SEED = "Noise has no seed, because noise that can be repeated protects nobody. Leave {} out; random_seed of sample seeds the sampler."


def meant_by(written: str, names: Iterable[str], otherwise: str = "") -> str:
    """A sentence with the name that was probably meant; another sentence where none of the names is like what was written."""
    names = list(names)
    near = [MEANT[written]] if MEANT.get(written) in names else get_close_matches(written, names, 1, 0.7)
    return f"Did you mean {near[0]!r}?" if near else otherwise


def unknown_setting(name: str, names: Iterable[str]) -> str:
    """The words about a setting that neither ``sample`` nor ``pm.sample`` knows."""
    return f"pm.sample does not know {name}. {meant_by(name, names, f'If it is a setting of NUTS, write nuts={{{name!r}: ...}}.')}"


def not_numbers(name: str, bounds: object) -> str | None:
    """What is wrong with bounds that are texts, or a class in the place of what it makes; None where neither is so."""
    if isinstance(bounds, type):
        return f"bounds of {name} are the class {bounds.__name__}. Write for example bounds={{{name!r}: pymc_dp.Bins(0, 100)}}."
    several = bounds if isinstance(bounds, list | tuple | set | frozenset) else (bounds,)
    ends = [end for pair in several for end in (pair if isinstance(pair, list | tuple) else (pair,))]  # or a pair for each column
    if any(isinstance(end, str) for end in ends):
        return (
            f"bounds of {name} are texts. Write numbers, without quotation marks: bounds={{{name!r}: (0, 100)}}; or, if they are labels of"
            f" levels, leave {name} out of bounds, and give the labels to the model as coords."
        )
    if any(isinstance(end, date | timedelta) or getattr(getattr(end, "dtype", None), "kind", "") in ("m", "M") for end in ends):
        return (
            f"bounds of {name} are dates, and a date in a record counts as missing. Write numbers, such as days since a date of your own,"
            f" in the records and in bounds: bounds={{{name!r}: (0, 366)}}."
        )
    return None


def explained[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function so that a call that does not fit its arguments is answered by the example in its docstring."""
    arguments = signature(function)

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        check_call(function, arguments, args, kwargs)
        return function(*args, **kwargs)

    return called


def explained_class[K: type](kind: K) -> K:
    """Wrap a class so that a call that does not fit is answered as that of a function is, by the example in the docstring of the class.

    Named tuples are checked where they are made, as they have no ``__init__`` of their own.
    """
    maker = "__new__" if issubclass(kind, tuple) else "__init__"
    function = getattr(kind, maker)
    function.__qualname__, function.__doc__ = f"{kind.__qualname__}.{maker}", kind.__doc__
    setattr(kind, maker, explained(function))
    return kind


def check_call(function: Callable[..., Any], arguments: Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Whether a call fits.

    Raises
    ------
    TypeError
        As Python does, with what to write instead.
    """
    try:
        arguments.bind(*args, **kwargs)
    except TypeError:
        words = _wrong(function, arguments, len(args), list(kwargs))
    else:
        return
    raise TypeError(words)


def _wrong(function: Callable[..., Any], arguments: Signature, placed: int, named: list[str]) -> str:
    """What is wrong with a call of so many arguments by place and these by name, and what to write."""
    name = function.__qualname__.removesuffix(".__init__").removesuffix(".__new__")
    known = [argument for argument in arguments.parameters if argument not in SELVES]
    by_place = [
        parameter.name
        for parameter in arguments.parameters.values()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and parameter.name not in SELVES
    ]
    placed -= any(one in arguments.parameters for one in SELVES)
    example = _example(function, name)
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in arguments.parameters.values())
    if not takes_any and (unknown := [argument for argument in named if argument not in known]):
        if unknown[0] in SEEDS and "random_seed" not in known:
            return NO_SEED.format(unknown[0])
        return f"{name} has no argument {unknown[0]!r}. {meant_by(unknown[0], known, example)}".strip()
    if placed > len(by_place):
        order = ", ".join(map(repr, by_place)) or "no argument"
        table = ": records beside the model as data=table" if "data" in known and "data" not in [*by_place, *named] else ""
        return f"{name} takes {order} by place, and all else by name{table}. {example}".strip()
    required = [
        parameter.name
        for parameter in arguments.parameters.values()
        if parameter.default is parameter.empty and parameter.kind not in (2, 4)
    ]
    lacking = [argument for argument in required if argument not in named and argument not in [*by_place[:placed], *SELVES]]
    if lacking:
        return f"{name} needs {' and '.join(map(repr, lacking))}. {example}".strip()
    return f"{name} was given an argument twice, by place and by name. {example}".strip()


def _example(function: Callable[..., Any], name: str) -> str:
    """The first call of a function in the examples of its docstring."""
    call = re.search(rf"pmdp\.{re.escape(name)}\(([^()\n]|\([^()\n]*\))*\)", function.__doc__ or "")
    return f"Write for example {call.group()}." if call else ""


def attribute_error(thing: object, name: str, instead: Mapping[str, str]) -> AttributeError:
    """The error of an attribute that is not there, with what to write, by its name or for all."""
    words = f"A {type(thing).__name__} has no attribute {name!r}."
    return AttributeError(f"{words} {instead.get(name) or instead.get('', '')}".strip(), name=name, obj=thing)


def not_opened(instead: str) -> Callable[..., NoReturn]:
    """A method that answers ``with`` of a thing that is never opened and closed, as its ``__enter__`` and ``__exit__``."""

    def refuse(thing: object, *_: object) -> NoReturn:
        raise TypeError(f"A {type(thing).__name__} is not for a with statement. {instead}")

    return refuse
