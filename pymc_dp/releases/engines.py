"""Which engine holds a table: what is of dask becomes something to be read where it lies. It is not imported here."""

from pymc_dp.releases.dask_tables import of_dask
from pymc_dp.releases.stored import is_one


def lying_still(data: object) -> object:
    """A DataFrame of dask as pandas' or as a ``Spread``; anything else as it is.

    Raises
    ------
    Refusal
        For one that is still to be computed, by code that could fail because of one record.
    """
    if is_one(data, "dask.dataframe", "DataFrame"):
        return of_dask(data)
    return data
