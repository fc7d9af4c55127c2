"""DataFrames of Spark that give the same records every time they are read: from Parquet files, a checkpoint, or this process.

Each partition is summed by the Python worker that Spark hands it to, through ``mapInArrow``, and Spark gives back one row for each.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from pymc_dp.families.values import LONGEST_VALUE
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.releases.spread import UNLIKE, Place, Spread, version_here
from pymc_dp.releases.stored import ROWS_AT_ONCE

COMPUTED = (
    "This DataFrame of Spark is still to be computed, by code that could fail because of one record. Write"
    " frame = frame.localCheckpoint(), or frame.write.parquet(path) and data=spark.read.parquet(path)."
)
CONNECTED = "A DataFrame of Spark Connect does not say how it is computed. Write it to Parquet files, and give data= their paths."
UNLIKE_FILES = (
    "The files do not all have the columns and types that Spark reads them with, so that one could fail. Write"
    " frame = frame.localCheckpoint()."
)
_PLANS = "org.apache.spark.sql.catalyst.plans.logical."
_NAMED = ("SubqueryAlias", "View", "Project")
"""Plans that only name and choose columns, where expressions are as plain as these."""
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
_SOURCES = "org.apache.spark.sql.execution."
_NUMBERS = ("ByteType", "ShortType", "IntegerType", "LongType", "FloatType", "DoubleType", "DecimalType", "BooleanType")
_TEXTS = ("StringType", "VarcharType", "CharType")


class SparkTable(Spread):
    """Partitions of a DataFrame.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        ``of_spark`` says which.
    key, place : str and function, optional
        The column that says whose a row is, and to which partition the rows of each person go.
    """

    def __init__(self, frame: Any, key: str | None = None, place: Place | None = None) -> None:
        self.columns, self._frame, self._rows, self._chosen = tuple(frame.columns), frame, -1, frame
        self._key, self._place = key, place

    @property
    def parts(self) -> int:
        """In how many partitions the columns that are read are: ``mapInArrow`` keeps them."""
        several = int(self._chosen._jdf.queryExecution().toRdd().getNumPartitions())
        return several if self._key is None else max(several, 1)

    def by_person(self, key: str, place: Place) -> "SparkTable":
        """Rows that Spark moves to the partition of their person, from worker to worker (a shuffle), before they are summed."""
        kind = type(self._frame.schema[key].dataType).__name__
        if kind not in (*_NUMBERS, *_TEXTS):
            raise Refusal(f"{key} is of a type that names no person. Let it be whole numbers or text.")
        return SparkTable(self._frame, key, place)

    def check(self, names: Sequence[str], look: Callable[[object, Sequence[str]], tuple[str, str]]) -> None:
        """Refuse names that Spark cannot tell apart, files of several kinds, and another version of the package where workers are."""
        alike = [name.lower() for name in self.columns]
        if several := next((name for name in names if alike.count(name.lower()) > 1), None):
            raise Refusal(f"Spark does not tell several columns called {several} apart. Write frame.select(...) with one of them.")
        self._chosen = self._frame.select(*(_column(self._frame, name) for name in names))
        session = self._frame.sparkSession
        try:
            rows = session.range(0, 1, 1, 1).mapInArrow(_versions, "found binary").collect()
            versions = {bytes(row.found).decode() for row in rows}
        except Exception:
            versions = set()
        if versions != {version_here()}:
            raise Refusal(UNLIKE.format(version_here()))

    def rows(self, count: Callable[[object], int]) -> int:
        """The number of records, counted once, by Spark."""
        if self._rows < 0:
            self._rows = int(self._frame.count())
        return self._rows

    def results(self, function: Callable[..., bytes], names: Sequence[str], written: bytes) -> list[bytes]:
        """What the function returns, of every partition once.

        The partitions of one job are the same records in every attempt, because the frame gives the same ones whenever it is read: Spark
        may run a partition again when a worker is lost or slow (speculation), and hands over the row of one attempt. Should two come,
        they have the same number.
        """
        chosen, columns, together = self._chosen, tuple(names), self._key is not None
        if together:
            chosen, columns = self._dealt(), (*names, _PART)
        what = partial(_of_batches, names=columns, function=function, written=written, together=together)
        mapped = chosen.mapInArrow(what, "found binary")
        return [bytes(row.found) for row in mapped.collect()]

    def _dealt(self) -> Any:
        """The columns that are read, and every row in the partition whose number its person's hash gives, whoever computes it."""
        from pyspark.sql import types

        assert self._key is not None
        assert self._place is not None
        parts = self.parts
        fields = [*self._chosen.schema.fields, types.StructField(_PART, types.IntegerType())]
        dealt = partial(_with_parts, key=self._chosen.columns.index(self._key), place=self._place, parts=parts)
        return self._chosen.mapInArrow(dealt, types.StructType(fields)).repartitionById(parts, _PART)


def _column(frame: Any, name: str) -> Any:
    """A column as Spark is to hand it over: nothing of types that hold no levels, and no text that is too long to be one.

    So no value makes a batch too large, and none is converted that could fail.
    """
    from pyspark.sql import functions

    kind = type(frame.schema[name].dataType).__name__
    column = frame["`" + name.replace("`", "``") + "`"]
    if kind in _TEXTS:
        column = functions.when(functions.octet_length(column) <= LONGEST_VALUE, column)
    elif kind not in _NUMBERS:
        column = functions.lit(None).cast("double")
    return column.alias(name)


def _versions(batches: Iterator[Any]) -> Iterator[Any]:
    """Which version of the package is where a worker is."""
    import pyarrow as pa

    for _ in batches:
        pass
    yield pa.record_batch([pa.array([version_here().encode()], pa.binary())], names=["found"])


_PART = "a part of pymc_dp"
"""The column that says in which part a row is counted."""


def _with_parts(batches: Iterator[Any], key: int, place: Place, parts: int) -> Iterator[Any]:
    """On a worker: batches with the number of the part that each row is counted in, by the name of its person and nothing else."""
    import pyarrow as pa

    for batch in batches:
        try:
            numbers = place(batch.column(key), parts).astype(np.int32)
        except Exception:
            numbers = np.zeros(len(batch), dtype=np.int32)  # where it fails in the same way when it is to be counted, in nobody's words
        yield pa.record_batch([*batch.columns, pa.array(numbers, pa.int32())], names=[*batch.schema.names, _PART])


def _of_batches(
    batches: Iterator[Any], names: tuple[str, ...], function: Callable[..., bytes], written: bytes, together: bool = False
) -> Iterator[Any]:
    """On a worker: one row, what the function returns of this partition, whose batches may have to be one table."""
    import pyarrow as pa
    from pyspark import TaskContext

    context = TaskContext.get()
    part = -1 if context is None else int(context.partitionId())
    result = function(_whole(batches, names) if together else _gathered(batches, names), part, written)
    yield pa.record_batch([pa.array([result], pa.binary())], names=["found"])


def _whole(batches: Iterator[Any], names: tuple[str, ...]) -> Iterator[Any]:
    """All batches as one table, also if there is none."""
    import pyarrow as pa

    several = [pa.record_batch(batch.columns, names=list(names)) for batch in batches]
    yield pa.Table.from_batches(several) if several else pa.table({name: pa.nulls(0) for name in names})


def _gathered(batches: Iterator[Any], names: tuple[str, ...]) -> Iterator[Any]:
    """Batches of Spark's as tables of some more rows, at most ``ROWS_AT_ONCE`` and a batch."""
    import pyarrow as pa

    held: list[Any] = []
    for batch in batches:
        held.append(pa.record_batch(batch.columns, names=list(names)))
        if sum(map(len, held)) >= ROWS_AT_ONCE:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


# ---------- what gives the same records whenever it is read


def of_spark(frame: Any) -> SparkTable:
    """A DataFrame of Spark as a table in parts.

    Raises
    ------
    Refusal
        For one that is still to be computed.
    """
    if not hasattr(frame, "_jdf"):
        raise Refusal(CONNECTED)
    try:
        still = _lies_still(frame.sparkSession, frame._jdf.queryExecution().analyzed())
    except Refusal:
        raise
    except Exception:  # of another version of Spark, which is not understood
        still = False
    if not still:
        raise Refusal(COMPUTED)
    return SparkTable(frame)


def _lies_still(session: Any, plan: Any) -> bool:
    """Whether a logical plan only names and chooses columns of files, of a checkpoint, or of what this process handed over."""
    kind = plan.getClass().getName()
    while kind.removeprefix(_PLANS) in _NAMED and plan.children().size() == 1:
        if kind.endswith(".Project") and not all(map(_is_plain, _listed(plan.projectList()))):
            return False
        plan = plan.children().head()
        kind = plan.getClass().getName()
    if kind == _PLANS + "LocalRelation":
        return True
    if kind == _SOURCES + "LogicalRDD":
        return bool(plan.rdd().isCheckpointed())
    return kind == _SOURCES + "datasources.LogicalRelation" and _are_alike(session, plan.relation())


def _is_plain(expression: Any) -> bool:
    """Whether an expression is a column, perhaps by another name."""
    kind = expression.getClass().getName().removeprefix(_EXPRESSIONS)
    return kind == "AttributeReference" or (kind == "Alias" and _is_plain(expression.child()))


def _listed(several: Any) -> list:
    return [several.apply(place) for place in range(several.size())]


def _are_alike(session: Any, relation: Any) -> bool:
    """Whether a relation is of Parquet files; refused where a file has other types than it is read with, and so could fail."""
    parquet = relation.getClass().getName() == _SOURCES + "datasources.HadoopFsRelation"
    if not parquet or relation.fileFormat().getClass().getName() != _SOURCES + "datasources.parquet.ParquetFileFormat":
        return False
    where = relation.location()
    if where.getClass().getName() != _SOURCES + "datasources.InMemoryFileIndex":
        return False
    paths = [path.toString() for path in _listed(where.rootPaths())]
    options = {pair._1(): pair._2() for pair in _listed(relation.options().toSeq())}
    options = {name: value for name, value in options.items() if name.lower() not in ("path", "paths", "mergeschema")}
    reader = session.read.options(**options).option("mergeSchema", "true")
    try:
        merged = reader.parquet(*paths).schema
    except Exception:
        raise Refusal(UNLIKE_FILES) from None
    types = {field.name: json.loads(field.dataType.json()) for field in merged.fields}
    read = {field.name(): json.loads(field.dataType().json()) for field in _listed(relation.schema())}
    if types != read:
        raise Refusal(UNLIKE_FILES)
    return True
