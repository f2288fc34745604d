"""Relations as DataFrames: what Catalyst plans and Spark runs.

Promises: the steps of a relation, in a session of their own, become one lazy DataFrame; files that Spark can read
exactly are read by Spark, all other sources by their own readers in tasks. A query that fails for its data's sake comes
back as `QueryFailed` with the reason in one sentence.
Does not know: SQL dialects, plans, blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from millstream.connector.source import Budget, ReaderContext, Source, SplitRange
from millstream.engine.contract import Deployment
from millstream.engine.relational import LocalTable, Mapped, Query, Read, RelationalSource, Step
from millstream.engine.spark.placement import running_slots
from millstream.errors import UserError

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
# A JVM that only moves blocks is started with the quick compiler, and for large blocks; one that computes queries wants
# the good one, and shuffles rows as Spark does.
OPTIMIZING_JVM = {
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.shuffle.sort.bypassMergeThreshold": "200",
}
_ROWS_TOGETHER = 65536
_MOST_KNOWN = 200
_MARKS = ("millstream.", "[USER_RAISED_EXCEPTION] ")
_idle: dict[str, list[QuerySession]] = {}


class QueryFailed(UserError):
    """A query has no answer for its data: a division by zero, a string that is no number."""


def relational_sources(deployment: Deployment) -> list[tuple[int, RelationalSource, int]]:
    """Return the relations that a program reads, with the index of their vertex and how many subtasks it has."""
    relations = []
    for index, planned in enumerate(deployment.plan.vertices):
        source = getattr(planned.task.operators[0].spec, "source", None)
        if isinstance(source, RelationalSource):
            relations.append((index, source, planned.task.parallelism))
    return relations


class QuerySession:
    """A Spark session for the queries of one job at a time, with names of its own."""

    def __init__(self, context: SparkContext) -> None:
        self.spark = SparkSession(context).newSession()
        for name, value in _SETTINGS.items():
            self.spark.conf.set(name, value)
        if context.getConf().get(_PARTITIONS) is None:
            self.spark.conf.set(_PARTITIONS, str(max(2, running_slots(context) or 2)))
        self._known: dict[Any, Any] = {}

    def frame_of(self, source: RelationalSource, now: int) -> Any:
        """The rows of a relation, not computed yet."""
        frame: Any = None
        for name, step in source.relation.steps:
            frame = self._frame(step, now)
            frame.createOrReplaceTempView(name)
        return frame

    def _frame(self, step: Step, now: int) -> Any:
        match step:
            case LocalTable(table=table):
                return self.spark.createDataFrame(table)
            case Query(text=text):
                return self.spark.sql(text)
            case Mapped(input=name, function=function, columns=columns):
                return self.spark.table(name).mapInArrow(_Applied(function, now), columns)
            case Read():
                return self._read(step, now)
        raise AssertionError(step)

    def _read(self, step: Read, now: int) -> Any:
        """The rows of a source. Parquet files that are as they were are not looked into again."""
        if step.parquet is not None and step.files is not None:
            path = step.parquet.removeprefix("file://")
            files = _files(path)
            looks = tuple((str(file), found.st_size, found.st_mtime_ns) for file in files for found in [file.stat()])
            key = path, step.columns, str(step.files), looks
            if key not in self._known:
                if len(self._known) >= _MOST_KNOWN:
                    self._known.clear()
                self._known[key] = _parquet(self.spark, step, path) if _as_declared(files, step.files) else None
            if self._known[key] is not None:
                return self._known[key]
        ranges = _planned(step.source, now)
        if not ranges:
            return self.spark.createDataFrame([], step.columns)
        reading = _Reading(step, ranges, now)
        return self.spark.range(0, len(ranges), 1, len(ranges)).mapInArrow(reading, step.columns)


@contextmanager
def query_session(context: SparkContext) -> Iterator[QuerySession]:
    """A session for one job; when it is done well, the next one has it."""
    application = context.applicationId
    idle = _idle.get(application)
    if idle is None:
        _idle.clear()  # those of a context that is no more
        idle = _idle[application] = []
    session = idle.pop() if idle else QuerySession(context)
    yield session
    idle.append(session)


class _Applied:
    """A step's function at the time of the job."""

    def __init__(self, function: Callable[[Iterator[pa.RecordBatch], int], Iterator[pa.RecordBatch]], now: int) -> None:
        self._function, self._now = function, now

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self._function(batches, self._now)


# -------------------------------------------------------------------------------------------------------------- reading


def _parquet(session: SparkSession, step: Read, path: str) -> Any:
    """What Spark reads itself."""
    assert step.files is not None
    kinds = [part.split(" ", 1)[1] for part in _split(step.columns)]
    names = [f"`{field.name.replace('`', '``')}`" for field in step.files]
    declared = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
    frame = session.read.schema(declared).option("recursiveFileLookup", "true").parquet(path)
    return frame.toDF(*(f"c{i}" for i in range(len(names))))


def _split(columns: str) -> list[str]:
    """`c0 INT, c1 DECIMAL(10,2)` by column."""
    return columns.split(", ")


def _files(path: str) -> list[Path]:
    """A local file, or all in a folder that are data."""
    found = Path(path)
    return [found] if found.is_file() else [
        Path(folder) / name
        for folder, _, names in sorted(os.walk(found))
        for name in sorted(names)
        if not name.startswith(("_", "."))
    ]  # fmt: skip


def _as_declared(every: Sequence[Path], files: pa.Schema) -> bool:
    """Whether Parquet files have exactly the declared types: Spark would refuse what our reader converts."""
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
