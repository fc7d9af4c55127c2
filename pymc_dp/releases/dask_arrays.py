"""Arrays of dask in an ``xarray.Dataset``: those that come straight from a file are read from the file, those in memory chunk by chunk."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pymc_dp.privacy.accounting import Refusal
from pymc_dp.releases.dask_tables import DaskTable, waiting
from pymc_dp.releases.stored import is_one

COMPUTED = (
    "{} is still to be computed, by code that could fail because of one record. Write dataset = dataset.persist(), or open the file without"
    " chunks, so that it is read in blocks."
)
UNLIKE_CHUNKS = "{} do not have the same chunks along the same dim. Write dataset = dataset.unify_chunks().persist()."


class DaskArrays(DaskTable):
    """Arrays along the records whose chunks are in memory: of this process, or of workers, where each chunk is read.

    Parameters
    ----------
    dataset : xarray.Dataset
    """

    def __init__(self, dataset: Any) -> None:
        super().__init__([*dataset.variables], [], None, lasting=True)
        self._dataset = dataset

    def check(self, names: Sequence[str], look: Callable[[object, Sequence[str]], tuple[str, str]]) -> None:
        """Refuse arrays that are still to be computed, and those whose chunks do not lie beside one another."""
        arrays = {name: self._dataset.variables[name] for name in names}
        held = {name: _chunks_of(array._data) for name, array in arrays.items()}
        for name, chunks in held.items():
            if not chunks:
                raise Refusal(COMPUTED.format(name))
            if arrays[name].dtype.kind not in "biuf":
                raise Refusal(f"{name} holds no numbers, and could fail because of one record. Write dataset = dataset.persist().load().")
        several = ", ".join(names)
        if len({array.dims for array in arrays.values()}) > 1 or len({array.chunks for array in arrays.values()}) > 1:
            raise Refusal(UNLIKE_CHUNKS.format(several))
        flat = [chunk for chunks in held.values() for chunk in chunks]
        apart = [chunk for chunk in flat if not isinstance(chunk, np.ndarray)]
        if apart and (len(apart) < len(flat) or len({id(future.client) for future in apart}) > 1):
            raise Refusal(UNLIKE_CHUNKS.format(several))
        self._chunks = [dict(zip(names, beside)) for beside in zip(*held.values())]
        self._client, self._lasting = (waiting(apart[0].client), False) if apart else (None, True)
        super().check(names, look)


def _chunks_of(array: Any) -> list:
    """Chunks in memory of an array (N,) of dask, in order, each an array or a future of one; none where one is still to be computed."""
    if not is_one(array, "dask.array", "Array") or array.ndim != 1:
        return []
    graph = dict(array.__dask_graph__())
    chunks = [graph.get(key) for key in array.__dask_keys__()]
    known = all(isinstance(chunk, np.ndarray) or is_one(chunk, "distributed", "Future") for chunk in chunks)
    return chunks if known else []


def of_arrays(dataset: Any) -> Any:
    """A Dataset without arrays of dask as it is; one whose arrays are straight from a file as if it was opened without chunks; one with
    arrays in memory as ``DaskArrays``.
    """
    if not is_one(dataset, "xarray", "Dataset"):
        return dataset
    import xarray as xr

    of_dask = {name: array for name, array in dataset.variables.items() if is_one(array._data, "dask.array", "Array") and array.ndim == 1}
    files = {name: stored for name, array in of_dask.items() if (stored := _stored(array._data)) is not None}
    if files:
        dataset = dataset.assign({name: xr.Variable(of_dask[name].dims, stored) for name, stored in files.items()})
    return DaskArrays(dataset) if any(_chunks_of(array._data) for array in of_dask.values()) else dataset


def _stored(array: Any) -> Any:
    """The array of a file of which all chunks are just slices, as xarray opens it; None where it is anything else."""
    graph = dict(array.__dask_graph__())
    chunks = {key: graph.pop(key, None) for key in array.__dask_keys__()}
    if len(graph) != 1 or any(getattr(getattr(task, "func", None), "__name__", "") != "getter" for task in chunks.values()):
        return None
    [original] = graph.values()
    if type(original).__name__ != "ImplicitToExplicitIndexingAdapter" or not type(original).__module__.startswith("xarray."):
        return None
    return original.array if original.array.shape == array.shape else None
