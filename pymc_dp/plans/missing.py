"""What a missing value counts as: it is left out, or a level of its own. The user says so by name before a record is read.

Whether a value is missing is as private as the value. Left out means that a record without it brings nothing to a likelihood, and how many
bring something is released with the rest. A level means that a missing value is taken for one that the variable can have.
"""

import warnings
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from numbers import Real

import numpy as np

from pymc_dp.models.spec import ModelSpec
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.privacy.guard import PACKAGE

LEFT_OUT = "left out"
UNSAID = "the middle of the bounds"
EXAMPLE = 'missing=["income"] to leave them out, or a level that stands for them: missing={"smoker": 2}'
type Missing = Mapping[str, "str | float"]
"""By name of an observed variable or a private covariate: ``LEFT_OUT``, or the level that a missing value counts as."""


class MissingWarning(UserWarning):
    """Nobody has said what missing values count as, so they count as the middle of the bounds, wherever there are any.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("error", pmdp.MissingWarning)  # stop where nothing is declared
    """


def missing_by_name(spec: ModelSpec, missing: object) -> dict[str, str | float]:
    """What the user declared of missing values, checked against the names that there are.

    Parameters
    ----------
    missing : mapping, list or None
        By name "left out" or a number; a list of names is left out.

    Raises
    ------
    Refusal
        For names of nothing, and for anything else than "left out" or a number.
    """
    if missing is None:
        return {}
    if isinstance(missing, str) or not isinstance(missing, Iterable):
        raise Refusal(f"missing says by name what a missing value counts as. Write for example {EXAMPLE}.")
    rules = dict(missing) if isinstance(missing, Mapping) else dict.fromkeys(missing, LEFT_OUT)
    names = [likelihood.name for likelihood in spec.likelihoods]
    inputs = [placeholder for likelihood in spec.likelihoods for placeholder in likelihood.inputs]
    names += sorted({placeholder.name for placeholder in inputs if placeholder.private} - set(names))
    unread = any(likelihood.refusal for likelihood in spec.likelihoods)  # its covariates are not known: the refusal speaks
    result: dict[str, str | float] = {}
    for name, rule in rules.items():
        if not isinstance(name, str) or (name not in names and not unread):
            raise Refusal(f"missing must name observed variables and private covariates. Write one of {', '.join(map(repr, names))}.")
        number = isinstance(rule, Real) and not isinstance(rule, bool) and np.isfinite(float(rule))
        if rule != LEFT_OUT and not number:
            raise Refusal(
                f"A missing {name} is left out, or counts as one of its levels. Write missing=[{name!r}] to leave them out, or the number"
                f" of a level, counted from 0, that stands for them: missing={{{name!r}: 2}}."
            )
        result[name] = LEFT_OUT if rule == LEFT_OUT else float(rule)
    return result


def no_level(name: str, fill: float, levels: Iterable[float], instead: str, kind: str = "level") -> str:
    """Why a missing value cannot count as this number, and a level that it can; ``instead`` is what to write where columns share none."""
    such = next((level for level in levels if np.isfinite(level)), None)
    share = "" if such is not None else f": the bounds of its columns share no {kind}"
    remedy = f"Write one that it can have, such as {such:g}" if such is not None else instead
    return f"a missing {name} cannot count as {fill:g}, which is no {kind} of {name}{share}. {remedy}"


def leave_out(name: str) -> str:
    """What to write where no level can stand for what is missing."""
    return f"Write missing=[{name!r}] to leave records without it out"


def in_words(missing: Missing, names: Collection[str] = ()) -> str:
    """What missing values of ``names``, or of whatever has any, count as, in words that are the same whatever records hold."""
    left_out = ", ".join(name for name, rule in missing.items() if rule == LEFT_OUT)
    parts = [f"records without {left_out} are left out, and how many remain is private and released with noise"] if left_out else []
    parts += [f"of {name} count as {rule:g}" for name, rule in missing.items() if not isinstance(rule, str)]
    if not names or set(names) - set(missing):
        parts.append(f"{'elsewhere ' if parts else ''}any that there are count as {UNSAID}; intervals do not allow for that")
    return "; ".join(parts)


@cache
def warn_of_missing() -> None:
    """Once per process; it points at the user's line, not at ours."""
    message = (
        f"Missing values, should there be any, count as {UNSAID}, and intervals do not allow for that. Write {EXAMPLE}; or missing={{}} if"
        " there are none."
    )
    warnings.warn(message, MissingWarning, skip_file_prefixes=(PACKAGE,))
