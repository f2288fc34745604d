"""Relations as DataFrames: what Catalyst plans and Spark runs.

Promises: the steps of a relation, in a session of their own, become one lazy DataFrame; files that Spark can read
exactly are read by Spark, all other sources by their own readers in tasks. A query that fails for its data's sake comes
back as `QueryFailed` with the reason in one sentence.
Does not know: SQL dialects, plans, blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from millstream.engine.contract import Deployment
from millstream.engine.relational import LocalTable, Mapped, Query, Read, RelationalSource, Step
from millstream.engine.spark.placement import running_slots
from millstream.errors import UserError
from millstream.model.source import Budget, ReaderContext, Source, SplitRange

_ALL = 1 << 62
_PARTITIONS = "spark.sql.shuffle.partitions"
_SETTINGS = {
    "spark.sql.ansi.enabled": "false",  # whole numbers wrap, decimals that do not fit are NULL: as in Flink
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
}
# A JVM that only moves blocks is started with the quick compiler; one that computes queries wants the good one.
OPTIMIZING_JVM = {"spark.driver.extraJavaOptions": "-XX:+UseParallelGC"}
_ROWS_TOGETHER = 65536
_MARKS = ("millstream.", "[USER_RAISED_EXCEPTION] ")


class QueryFailed(UserError):
    """A query has no answer for its data: a division by zero, a string that is no number."""


def relational_sources(deployment: Deployment) -> list[tuple[int, RelationalSource, int]]:
    """The relations that a program reads: the place of their vertex, and how many subtasks it has."""
    found = []
    for place, planned in enumerate(deployment.plan.vertices):
        source = getattr(planned.task.operators[0].spec, "source", None)
        if isinstance(source, RelationalSource):
            found.append((place, source, planned.task.parallelism))
    return found


def session_for(context: SparkContext) -> SparkSession:
    """A session for queries, with names of its own."""
    session = SparkSession(context).newSession()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    if context.getConf().get(_PARTITIONS) is None:
        session.conf.set(_PARTITIONS, str(max(2, running_slots(context) or 2)))
    return session


def frame_of(session: SparkSession, source: RelationalSource, now: int) -> Any:
    """The rows of a relation, not computed yet."""
    frame: Any = None
    for name, step in source.relation.steps:
        frame = _frame(session, step, now)
        frame.createOrReplaceTempView(name)
    return frame


def _frame(session: SparkSession, step: Step, now: int) -> Any:
    match step:
        case LocalTable(table=table):
            return session.createDataFrame(table)
        case Query(text=text):
            return session.sql(text)
        case Mapped(input=name, function=function, columns=columns):
            return session.table(name).mapInArrow(_Applied(function, now), columns)
        case Read():
            return _read(session, step, now)
    raise AssertionError(step)


class _Applied:
    """A step's function at the time of the job."""

    def __init__(self, function: Callable[[Iterator[pa.RecordBatch], int], Iterator[pa.RecordBatch]], now: int) -> None:
        self._function, self._now = function, now

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self._function(batches, self._now)


# -------------------------------------------------------------------------------------------------------------- reading


def _read(session: SparkSession, step: Read, now: int) -> Any:
    if step.parquet is not None and step.files is not None:
        path = step.parquet.removeprefix("file://")
        if _as_declared(path, step.files):
            kinds = [part.split(" ", 1)[1] for part in _split(step.columns)]
            names = [f"`{field.name.replace('`', '``')}`" for field in step.files]
            declared = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
            frame = session.read.schema(declared).option("recursiveFileLookup", "true").parquet(path)
            return frame.toDF(*(f"c{i}" for i in range(len(names))))
    ranges = _planned(step.source, now)
    if not ranges:
        return session.createDataFrame([], step.columns)
    return session.range(0, len(ranges), 1, len(ranges)).mapInArrow(_Reading(step, ranges, now), step.columns)


def _split(columns: str) -> list[str]:
    """`c0 INT, c1 DECIMAL(10,2)` by column."""
    return columns.split(", ")


def _as_declared(path: str, files: pa.Schema) -> bool:
    """Whether local Parquet files have exactly the declared types: Spark would refuse what our reader converts."""
    found = Path(path)
    every = [found] if found.is_file() else [
        Path(folder) / name for folder, _, names in os.walk(found) for name in names if not name.startswith(("_", "."))
    ]  # fmt: skip
    if not every:
        return False
    for file in every:
        try:
            there = pq.read_schema(file)
        except (OSError, pa.ArrowException):
            return False
        for field in files:
            place = there.get_field_index(field.name)
            if place < 0 or not _alike(there.field(place).type, field.type):
                return False
    return True


def _alike(there: pa.DataType, wanted: pa.DataType) -> bool:
    texts = (pa.string(), pa.large_string(), pa.string_view())
    return there == wanted or (there in texts and wanted in texts)


def _planned(source: Source, now: int) -> list[SplitRange]:
    """All there is to read."""
    enumerator = source.create_enumerator(1)
    made: list[SplitRange] = []
    try:
        while True:
            more = enumerator.plan(Budget(_ALL, _ALL, now))
            made += more
            if enumerator.finished() or not more:
                return made
    finally:
        enumerator.close()


class _Reading:
    """Ranges of a source, read in a task."""

    def __init__(self, step: Read, ranges: list[SplitRange], now: int) -> None:
        self._source, self._made, self._now = step.source, step.made, now
        self._ranges = [each.to_json() for each in ranges]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = self._source.create_reader(ReaderContext(0, 1, _ROWS_TOGETHER))
        try:
            for batch in batches:
                for place in batch.column(0).to_numpy():
                    for records in reader.read(SplitRange.from_json(self._ranges[place])):
                        yield self._made(records, self._now)
        finally:
            reader.close()


# -------------------------------------------------------------------------------------------------------------- failing


def query_failure(problem: BaseException) -> QueryFailed | None:
    """The user's part in a failure: what an expression said of its data; None where it was Spark that failed."""
    text = str(problem.java_exception) if isinstance(problem, Py4JJavaError) else str(problem)
    if not isinstance(problem, Py4JJavaError | PySparkException):
        return None
    for line in _reasons(text.splitlines()):
        return QueryFailed(line)
    return None


def _reasons(lines: Iterable[str]) -> Iterator[str]:
    """Last lines of our own tracebacks, and what `raise_error` was given."""
    for line in lines:
        stripped = line.strip()
        for mark in _MARKS:
            at = stripped.find(mark)
            if at < 0:
                continue
            rest = stripped[at + len(mark) :]
            if mark.startswith("["):
                yield rest.split(" SQLSTATE")[0].strip()
            elif ": " in rest and "Failed" in rest.split(": ", 1)[0]:
                yield rest.split(": ", 1)[1]
