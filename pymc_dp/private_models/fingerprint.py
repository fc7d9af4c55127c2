"""A key that stands for all of a private model that is compiled, by which the compiled code is found again.

What is compiled is the log-density and what of the model is kept of every draw: graphs. The key holds them operation by operation, with the
value of everything in them that is not data of the release. Two models whose keys are equal are compiled to the same code, whatever they
are called and wherever they came from; what the code is not made for is no part of the key, and is given to the code when it is called.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from hashlib import sha256

import numpy as np
import pymc as pm
from pytensor import config, function
from pytensor.compile.ops import FromFunctionOp
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors

from pymc_dp.private_models.likelihood import LATENT
from pymc_dp.private_models.sizes import MEAN, SIZE

DATA = ("_released", f"{SIZE}_given", f"{MEAN}_given", f"{LATENT}_given")
"""Endings of the names of data that ``rewrite`` adds to a model: what is released, and what rests on it."""
LIBRARIES = ("pytensor", "pymc", "pymc_dp")
"""Packages whose operations are equal where they do the same; of others' that is not known."""


class Uncacheable(Exception):
    """Says that a model is compiled every time, because something in it cannot be compared."""


@dataclass(frozen=True)
class Fingerprint:
    """What is compiled of a private model.

    Attributes
    ----------
    key : tuple
        Equal for models that are compiled to the same code.
    data : dict of ndarray
        What the code is called with, by name: shared variables of the release.
    """

    key: tuple
    data: dict[str, np.ndarray]


def data_of_release(private: pm.Model) -> dict[Variable, str]:
    """The shared variables of a private model that hold its release, with their names."""
    names = [f"{statistic.variable}{ending}" for statistic in private.released for ending in DATA]
    return {private[name]: name for name in names if name in private.named_vars}


def fingerprint(
    private: pm.Model, start: Mapping[str, np.ndarray], data: Mapping[Variable, str], var_names: Sequence[str] | None = None
) -> Fingerprint:
    """The key of a model, and its data.

    Parameters
    ----------
    private : pm.Model
    start : mapping
        A point: values of its free variables, by their names.
    data : mapping of shared variables to str
        What the code is called with, by name.
    var_names : sequence of str, optional
        What is kept of every draw, where that is not everything.

    Raises
    ------
    Unkept
        Where something in the model cannot be compared.
    """
    outputs = [private.logp(), *private.unobserved_value_vars]
    numbers: dict[Variable, int] = {variable: k for k, variable in enumerate(private.value_vars)}
    steps = _steps(outputs, numbers, data)
    free = [(variable, private.rvs_to_values[variable]) for variable in private.free_RVs]
    key = (
        tuple((variable.name, variable.type, value.name, value.type) for variable, value in free),
        tuple(private.rvs_to_transforms.get(variable) is None for variable, _ in free),
        tuple(np.shape(start[value.name]) for _, value in free),
        _open_shapes(private, outputs, data, start),
        steps,
        tuple((variable.name, numbers[variable]) for variable in outputs),
        None if var_names is None else frozenset(var_names),
        _dims(private),
        private.check_bounds,
        _settings(),
    )
    return Fingerprint(key, {name: variable.get_value() for variable, name in data.items() if variable in numbers})


def _settings() -> tuple:
    """What PyTensor is told to do. With which BLAS C code is linked, which nutpie has none of, counts only where it is known already:
    to find out takes a second, and warns.
    """
    return tuple(
        (name, str(getattr(option, "val", None) if name == "blas__ldflags" else option.__get__(config, type(config))))
        for name, option in config._config_var_dict.items()
    )


def _open_shapes(private: pm.Model, outputs: Sequence[Variable], data: Mapping[Variable, str], start: Mapping[str, np.ndarray]) -> tuple:
    """Shapes of outputs that might rest on what the code is not made for."""
    unsure = [output for output in outputs if None in output.type.shape and not data.keys().isdisjoint(ancestors([output]))]
    if not unsure:
        return ()
    shapes = function(private.value_vars, [output.shape for output in unsure], mode="FAST_COMPILE", on_unused_input="ignore")
    return tuple(
        (output.name, tuple(map(int, shape)))
        for output, shape in zip(unsure, shapes(*(start[v.name] for v in private.value_vars)), strict=True)
    )


def _steps(outputs: Sequence[Variable], numbers: dict[Variable, int], data: Mapping[Variable, str]) -> tuple:
    """Every constant, datum and operation below the outputs, in the order in which they are met, which numbers them in ``numbers``."""
    steps: list[tuple] = []
    waiting = list(reversed(outputs))
    while waiting:
        variable = waiting[-1]
        node = variable.owner
        above = [] if node is None or variable in numbers else [operand for operand in node.inputs if operand not in numbers]
        if above:
            waiting.extend(reversed(above))
            continue
        waiting.pop()
        if variable in numbers:
            continue
        if node is None:
            steps.append(_leaf(variable, data))
            numbers[variable] = len(numbers)
            continue
        if type(node.op).__module__.split(".")[0] not in LIBRARIES or isinstance(node.op, FromFunctionOp):
            raise Uncacheable
        steps.append((node.op, tuple(numbers[operand] for operand in node.inputs), tuple(output.type for output in node.outputs)))
        numbers.update({output: len(numbers) + k for k, output in enumerate(node.outputs)})
    return tuple(steps)


def _leaf(variable: Variable, data: Mapping[Variable, str]) -> tuple:
    """A constant or shared variable with its value; of the release's data, its type and which it is."""
    if variable in data and None not in variable.type.shape:
        return "released", variable.type, data[variable]
    if isinstance(variable, Constant):
        return "constant", variable.type, _bits_of(variable.data)
    if isinstance(variable, SharedVariable) and variable.name not in data.values():  # nutpie finds data by their names
        return "shared", variable.type, _bits_of(variable.get_value(borrow=True))
    raise Uncacheable


def _bits_of(value: object) -> tuple:
    """A key of a value, which equals that of another only where every bit of both is the same."""
    match value:
        case np.ndarray() | np.generic() if value.dtype.kind in "biufc":
            return type(value), value.dtype.str, value.shape, sha256(np.ascontiguousarray(value).tobytes()).digest()
        case slice():
            return slice, *(_bits_of(part) for part in (value.start, value.stop, value.step))
        case tuple():
            return tuple, *(_bits_of(part) for part in value)
        case str() | int() | float() | complex() | None | date() | timedelta() | np.str_() | np.datetime64() | np.timedelta64():
            return type(value), repr(value)
    raise Uncacheable


def _dims(private: pm.Model) -> tuple:
    """Dims with their labels and lengths, and which variables have them."""
    labels = tuple((dim, _bits_of(None if values is None else tuple(values))) for dim, values in private.coords.items())
    lengths = tuple((dim, _length(length)) for dim, length in private.dim_lengths.items())
    return labels, lengths, tuple((name, tuple(dims)) for name, dims in private.named_vars_to_dims.items())


def _length(length: Variable) -> int:
    if isinstance(length, SharedVariable):
        return int(length.get_value(borrow=True))
    return int(length.data if isinstance(length, Constant) else length.eval())
