"""A PyTensor operation around one loop: the values of every cell, and their derivatives.

As a graph, a quadrature or a convolution and its derivatives are dozens of functions for numba to compile, and most of the time of
a first call goes there. A loop is one function, which numba compiles in a second and Python runs as it stands. Loops are written
entry by entry: an array that is assigned to a slice, or reduced, costs numba another second. What a loop calls is listed in
``PARTS`` of its module.
"""

import sys
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, disconnected_type
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

type Tensor = pt.TensorVariable

# This file is part of the key of every compiled loop, and so are constants that loops of several modules share.
NEGLIGIBLE = -1e6
"""Stands for log 0; finite, so that a sampler turns round instead of stopping."""
LEAST = 1e-150
"""Stands for a probability of 0, whose multiples by the noise's can still be divided by."""
ROOT_2 = sqrt(2)


class Kernel(Op):
    """One or more values of every cell, and their derivatives by some of the inputs, by one loop.

    Parameters
    ----------
    loop : function
        Of a module of loops: arrays to values (B,), then the derivatives of the first one, of the second one, ...
    by : tuple of int
        The inputs, (B,) or (B, K), that these are derivatives by. There are no second derivatives.
    values : int
        How many values there are. With none, what the loop gives is an array like the input ``by``.
    back : function, optional
        Where there are none: a loop of the inputs and of what is multiplied by the derivatives of that array. It gives the derivatives by
        the first input.
    """

    __props__ = ("loop", "by", "values", "back")

    def __init__(self, loop: Callable, by: tuple[int, ...], values: int = 1, back: Callable | None = None) -> None:
        self.loop, self.by, self.values, self.back = loop, by, values, back
        _register_numba()
        _register_parts(loop.__module__)
        if find_spec("jax"):
            _register_jax()

    def __reduce__(self) -> tuple:
        """Make the operation anew where it is unpickled, so that it is registered there, too."""
        return Kernel, (self.loop, self.by, self.values, self.back)

    def make_node(self, *inputs: Tensor) -> Apply:
        """A node with values and slopes for every cell; the first axis of the first input is that of the cells."""
        arrays = [pt.as_tensor(entry).astype("float64") for entry in inputs]
        value = pt.TensorType("float64", shape=arrays[0].type.shape[:1])
        slopes = [arrays[k].type() for _ in range(max(self.values, 1)) for k in self.by]
        return Apply(self, arrays, [*(value() for _ in range(self.values)), *slopes])

    def perform(self, node: Apply, inputs: list[np.ndarray], output_storage: list[list]) -> None:
        """Run the loop in Python."""
        with np.errstate(all="ignore"):
            results = self.loop(*inputs)
        for storage, result in zip(output_storage, results if isinstance(results, tuple) else (results,), strict=True):
            storage[0] = result

    def infer_shape(self, node: Apply, shapes: list) -> list:
        """Values have the shape of the cells, and derivatives that of what they are by."""
        return [shapes[0][:1]] * self.values + [shapes[k] for k in self.by] * max(self.values, 1)

    def pullback(self, inputs: list[Tensor], outputs: list[Tensor], cotangents: list[Tensor]) -> list[Tensor]:
        """The derivatives that the loop gave."""
        if self.back is not None:
            return [Kernel(self.back, (0,), 0)(*inputs, cotangents[0]), *(disconnected_type() for _ in inputs[1:])]
        used = [not isinstance(cotangent.type, DisconnectedType) for cotangent in cotangents]
        if any(used[self.values :]):
            raise NotImplementedError("A noisy likelihood has first derivatives only. Use a sampler or an optimiser that needs no Hessian.")
        gradients = [disconnected_type() for _ in inputs]
        for place, k in enumerate(self.by):
            slopes = outputs[self.values + place :: len(self.by)]
            parts = [
                slope * (cotangent if slope.type.ndim == 1 else cotangent[:, None])
                for slope, cotangent, is_used in zip(slopes, cotangents, used, strict=False)
                if is_used
            ]
            gradients[k] = sum(parts[1:], parts[0])
        return gradients

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Which inputs outputs are connected to: only those by which there are derivatives."""
        by = self.by if self.back is None else (0,)
        return [[k in by] * len(node.outputs) for k in range(len(node.inputs))]


def by_cell(
    kernel: Kernel, batch: tuple[Any, ...], arrays: Sequence[Tensor], *settings: float | Sequence[float] | np.ndarray
) -> list[Tensor]:
    """The values (*batch) of a kernel, of arrays (*batch, ...) or such as broadcast to (*batch)."""
    flat = []
    for array in arrays:
        full = array if array.type.ndim > len(batch) or array.type.shape == batch else array + np.zeros(batch)
        rest = [full.shape[k] if full.type.shape[k] is None else full.type.shape[k] for k in range(len(batch), full.type.ndim)]
        flat.append(full if len(batch) == 1 else full.reshape((-1, *rest)))
    values = kernel(*flat, *map(np.asarray, settings), return_list=True)[: kernel.values]
    return values if len(batch) == 1 else [value.reshape(batch) for value in values]


@cache
def _register_numba() -> None:
    """Register the operation, when the first is used: numba takes half a second to import."""
    from pytensor.link.numba.dispatch.basic import register_funcify_and_cache_key

    from pymc_dp.laws import compiled

    @register_funcify_and_cache_key(Kernel)
    def funcified(op: Kernel, node: Apply, **_: object) -> tuple[Callable, str]:
        if op.loop.__closure__:
            raise TypeError(f"{op.loop.__qualname__} is no loop of a module: what it closes over would not be told from another's.")
        called = {part.__code__.co_filename for part in sys.modules[op.loop.__module__].PARTS} | {op.loop.__code__.co_filename}
        written = [Path(file).read_bytes() for file in (__file__, compiled.__file__, *sorted(called))]
        ranks = [operand.type.ndim for operand in node.inputs]
        like = [None] * op.values + list(op.by) * max(op.values, 1)
        key = sha256(f"{op.loop.__module__}.{op.loop.__qualname__} {ranks} {like} ".encode() + b"".join(written)).hexdigest()
        return compiled.by_address(op.loop, ranks, like, key), key


@cache
def _register_parts(module: str) -> None:
    """Register what the loops of a module call, each once: what is of another module with all that the loops of that one call."""
    from numba.extending import register_jitable

    for part in sys.modules[module].PARTS:
        if part.__module__ == module:
            register_jitable(error_model="numpy")(part)
        else:
            _register_parts(part.__module__)


@cache
def _register_jax() -> None:
    """Where JAX is installed, for NumPyro: the loops that numba has compiled are called from it, with their derivatives."""
    import jax
    from numba import njit
    from pytensor.link.jax.dispatch.basic import jax_funcify

    @jax_funcify.register(Kernel)
    def funcified(op: Kernel, node: Apply, **_: object) -> Callable:
        loop, many = njit(op.loop, error_model="numpy"), len(op.by)
        by_first = None if op.back is None else njit(op.back, error_model="numpy")

        def called(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
            results = loop(*(np.asarray(array, dtype=np.float64) for array in arrays))
            return results if isinstance(results, tuple) else (results,)

        @jax.custom_vjp
        def run(*arrays: jax.Array) -> tuple[jax.Array, ...]:
            shapes = [arrays[0].shape[:1]] * op.values + [arrays[k].shape for k in op.by] * max(op.values, 1)
            results = tuple(jax.ShapeDtypeStruct(shape, np.float64) for shape in shapes)
            return jax.pure_callback(called, results, *arrays, vmap_method="sequential")

        def forward(*arrays: jax.Array) -> tuple[tuple[jax.Array, ...], tuple]:
            results = run(*arrays)
            return results, (arrays, results[op.values :])

        def backward(kept: tuple, cotangents: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            arrays, slopes = kept
            back = [jax.numpy.zeros_like(array) for array in arrays]
            if by_first is not None:
                shape = jax.ShapeDtypeStruct(arrays[0].shape, np.float64)
                back[0] = jax.pure_callback(by_first, shape, *arrays, cotangents[0], vmap_method="sequential")
            for value in range(op.values):
                for place, k in enumerate(op.by):
                    slope, cotangent = slopes[value * many + place], cotangents[value]
                    back[k] = back[k] + slope * (cotangent if slope.ndim == 1 else cotangent[:, None])
            return tuple(back)

        run.defvjp(forward, backward)
        return lambda *arrays: run(*(jax.numpy.asarray(array, dtype=np.float64) for array in arrays))
