"""DataFrames of Spark that give the same records whenever they are read: from Parquet files, a checkpoint, or this process.

Each partition is summed by the Python worker that Spark hands it to, through ``mapInArrow``, and Spark gives back one row for each.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from pymc_dp.families.values import LONGEST_VALUE
from pymc_dp.privacy.accounting import Refusal
from pymc_dp.releases.spread import UNLIKE, Spread, version_here
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
    """

    def __init__(self, frame: Any) -> None:
        self.columns, self._frame, self._rows, self._chosen = tuple(frame.columns), frame, -1, frame

    @property
    def parts(self) -> int:
        """In how many partitions the columns that are read are: ``mapInArrow`` keeps them."""
        return int(self._chosen._jdf.queryExecution().toRdd().getNumPartitions())

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
        mapped = self._chosen.mapInArrow(partial(_of_batches, names=tuple(names), function=function, written=written), "found binary")
        return [bytes(row.found) for row in mapped.collect()]


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


def _of_batches(batches: Iterator[Any], names: tuple[str, ...], function: Callable[..., bytes], written: bytes) -> Iterator[Any]:
    """On a worker: one row, what the function returns of this partition."""
    import pyarrow as pa
    from pyspark import TaskContext

    context = TaskContext.get()
    part = -1 if context is None else int(context.partitionId())
    result = function(_gathered(batches, names), part, written)
    yield pa.record_batch([pa.array([result], pa.binary())], names=["found"])


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
