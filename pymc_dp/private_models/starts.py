"""Where chains would start, checked before the records are paid for: initial values, and the density of the priors there.

Only priors are asked, which rest on no record.
"""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import pymc as pm
from pymc.initial_point import convert_str_to_rv_dict, make_initial_point_expression

from pymc_dp.privacy.accounting import Refusal

NO_FOLDER = "PyTensor needs a folder for what it compiles: set PYTENSOR_FLAGS=base_compiledir=/a/writeable/folder in the environment."
JITTERS = 10
"""Points around the start that are tried, as many as ``pm.sample`` tries."""


def check_survives(names: Sequence[str], known: set[str], dropped: Mapping[str, str], where: str) -> None:
    """Refuse names of what the private model does not have, in an argument that is named by ``where``."""
    for name in names:
        if name in dropped:
            raise Refusal(f"{name} does not survive the rewrite: {dropped[name]}. Leave it out of {where}.")
        if name not in known:
            raise Refusal(f"{name} is no unknown of this model. Leave it out of {where}.")


def check_initial_values(
    initvals: object, chains: object, model: pm.Model, variables: Sequence[Any], dropped: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Initial values as one dict for every chain that has its own, by names of unknowns; or refuse them."""
    if initvals is None:
        return [{}]
    by_chain = [initvals] if isinstance(initvals, dict) else initvals
    if (
        not isinstance(by_chain, Sequence)
        or isinstance(by_chain, str)
        or not all(isinstance(initial_values, dict | None) for initial_values in by_chain)
    ):
        raise Refusal("initvals must be a dict by name, or a list with one for every chain. Write for example initvals={'mu': 0.0}.")
    if not isinstance(initvals, dict) and len(by_chain) != chains:
        raise Refusal(f"initvals has {len(by_chain)} entries, one for every chain. Write chains={len(by_chain)} beside it.")
    unknowns: dict[str, Any] = {variable.name: variable for variable in variables}
    transformed = {model.rvs_to_values[variable].name: variable.name for variable in variables}
    for initial_values in by_chain:
        if not all(isinstance(name, str) for name in initial_values or ()):
            raise Refusal("initvals are given by names of unknowns. Write for example initvals={'mu': 0.0}.")
        named = {transformed.get(name, name): value for name, value in (initial_values or {}).items()}
        check_survives([*named], set(unknowns), dropped, "initvals")
        for name, value in named.items():
            _check_value(name, value, unknowns[name])
    return [dict(initial_values or {}) for initial_values in by_chain]


def _check_value(name: str, value: Any, unknown: Any) -> None:
    if isinstance(value, str):
        if value not in ("support_point", "moment", "prior"):
            raise Refusal(f"The initial value of {name} is neither a number nor a strategy. Write a number, 'support_point' or 'prior'.")
    elif not isinstance(value, Real | list | tuple | np.ndarray) or np.asarray(value).dtype.kind not in "biuf":
        raise Refusal(f"The initial value of {name} is no number. Write a number, or an array of numbers of its shape.")
    elif np.asarray(value).ndim > unknown.ndim:
        raise Refusal(f"The initial value of {name} has more axes than {name}. Write an array of its shape.")


def check_start(starts: Sequence[dict[str, Any]], model: pm.Model, unknowns: Sequence[Any], jitters: bool) -> None:
    """Refuse a start where, and around which, a prior has no density: a prior, or initial values, outside its support."""
    inputs, density = [model.rvs_to_values[unknown] for unknown in unknowns], None
    for overrides in starts:
        try:
            strategies = {**model.rvs_to_initial_values, **convert_str_to_rv_dict(model, overrides)}
            values = make_initial_point_expression(
                free_rvs=unknowns,
                rvs_to_transforms=model.rvs_to_transforms,
                initval_strategies={unknown: strategies.get(unknown) for unknown in unknowns},
                return_transformed=True,
            )
            point = pm.compile([], values, mode="FAST_COMPILE")()
            if density is None:
                priors = model.logp(vars=unknowns, sum=False)
                density = pm.compile(inputs, priors, mode="FAST_COMPILE", on_unused_input="ignore")
            outside = _outside_support(density(*point), unknowns)
            for k in range(JITTERS if outside and jitters else 0):
                outside = outside and _outside_support(density(*(_moved_point(value, k) for value in point)), unknowns)
        except Exception as error:
            reason = first_line(error)
            instead = NO_FOLDER if isinstance(error, OSError) or "compiledir" in reason else "Mend the priors or initvals."
            raise Refusal(f"PyMC cannot start from here: {reason}. {instead}") from None
        if outside:
            raise Refusal(
                f"Sampling cannot start: the prior of {outside} has no finite density there. Write initvals={{{outside!r}: ...}} inside its"
                " support, or mend its prior."
            )


def _moved_point(value: np.ndarray, k: int) -> np.ndarray:
    """A point up to 1 away in every direction, another one for every k."""
    return value + np.sin((k + 1) * np.arange(1, value.size + 1)).reshape(value.shape) if value.dtype.kind == "f" else value


def _outside_support(densities: Sequence[np.ndarray], unknowns: Sequence[Any]) -> str | None:
    """The name of the first unknown whose density is not finite; None where all are."""
    return next((unknown.name for unknown, density in zip(unknowns, densities, strict=True) if not np.all(np.isfinite(density))), None)


def first_line(error: BaseException) -> str:
    """The first line of what an error says, without its full stop."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
