"""Which engine holds a table: a table of dask or Spark is wrapped to be read where its parts are. Neither library is imported here."""

from pymc_dp.releases.dask_arrays import of_arrays
from pymc_dp.releases.dask_tables import of_dask
from pymc_dp.releases.spark_tables import of_spark
from pymc_dp.releases.stored import is_one


def readable_in_place(data: object) -> object:
    """A DataFrame of dask as pandas' or as a ``Spread``, one of Spark as a ``Spread``, arrays of dask in a Dataset as a file's or as a
    ``Spread``; anything else as it is.

    Raises
    ------
    Refusal
        For one that is still to be computed, by code that could fail because of one record.
    """
    if is_one(data, "dask.dataframe", "DataFrame"):
        return of_dask(data)
    if is_one(data, "pyspark.sql", "DataFrame") or type(data).__module__.startswith("pyspark.sql.connect."):
        return of_spark(data)
    return of_arrays(data)
