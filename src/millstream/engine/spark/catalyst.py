"""Relations as DataFrames: what Catalyst plans and Spark runs.

Promises: the steps of a relation, in a session of their own, become one lazy DataFrame. Files whose types Spark reads
exactly are read by Spark, all other sources by their own readers in tasks. A query that fails because of its data
raises `QueryFailed` with the reason in one sentence.
Does not know: SQL dialects, plans, blocks."""

from __future__ import annotations

import itertools
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
from millstream.engine.relational import RAISED, LocalTable, Mapped, Query, Read, RelationalSource, Step
from millstream.engine.spark.compatibility import create_frame
from millstream.engine.spark.placement import count_running_slots
from millstream.errors import UserError

_ALL = 1 << 62
_CENTURY = 100 * 365 * 86_400_000  # milliseconds
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
# A JVM that only moves blocks is started with the quick compiler and settings for large blocks. A JVM that computes
# queries needs the optimizing compiler, and Spark's own settings for shuffles of rows.
OPTIMIZING_JVM = {
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.shuffle.sort.bypassMergeThreshold": "200",
}
_BATCH_ROWS = 65536
_MAX_PARQUET_FRAMES = 200
_TRACEBACK = "millstream."
_idle: dict[str, list[QuerySession]] = {}


class QueryFailed(UserError):
    """A query cannot be computed for its data: a division by zero, a string that is not a number."""


def find_relational_sources(deployment: Deployment) -> list[tuple[int, RelationalSource, int]]:
    """Return the relations that a program reads, with the index of their vertex and how many subtasks it has."""
    relations = []
    for index, planned in enumerate(deployment.plan.vertices):
        source = getattr(planned.task.operators[0].spec, "source", None)
        if isinstance(source, RelationalSource):
            relations.append((index, source, planned.task.parallelism))
    return relations


class QuerySession:
    """A Spark session for the queries of one job at a time, with its own temporary views."""

    def __init__(self, context: SparkContext) -> None:
        self.spark = SparkSession(context).newSession()
        for name, value in _SETTINGS.items():
            self.spark.conf.set(name, value)
        if context.getConf().get(_PARTITIONS) is None:
            self.spark.conf.set(_PARTITIONS, str(max(2, count_running_slots(context) or 2)))
        self._parquet_frames: dict[Any, Any] = {}

    def frame_of(self, source: RelationalSource, now: int) -> Any:
        """Return the rows of a relation as a lazy DataFrame."""
        frame: Any = None
        for name, step in source.relation.steps:
            frame = self._create_frame(step, now)
            frame.createOrReplaceTempView(name)
        return frame

    def _create_frame(self, step: Step, now: int) -> Any:
        match step:
            case LocalTable(table=table, columns=columns):
                return create_frame(self.spark, table, columns)
            case Query(text=text):
                return self.spark.sql(text)
            case Mapped(input=name, function=function, columns=columns):
                return self.spark.table(name).mapInArrow(_BoundFunction(function, now), columns)
            case Read():
                return self._read(step, now)
        raise AssertionError(step)

    def _read(self, step: Read, now: int) -> Any:
        """Return the rows of a source. The types of Parquet files are read again only if the files changed."""
        if step.parquet is not None and step.files is not None:
            path = step.parquet.removeprefix("file://")
            files = _list_files(path)
            file_versions = tuple(
                (str(file), status.st_size, status.st_mtime_ns) for file in files for status in [file.stat()]
            )
            key = path, step.columns, str(step.files), file_versions
            if key not in self._parquet_frames:
                if len(self._parquet_frames) >= _MAX_PARQUET_FRAMES:
                    self._parquet_frames.clear()
                self._parquet_frames[key] = (
                    _read_parquet(self.spark, step, path) if _have_declared_types(files, step.files) else None
                )
            if self._parquet_frames[key] is not None:
                return self._parquet_frames[key]
        ranges = _plan_all(step.source, now)
        if not ranges:
            return self.spark.createDataFrame([], step.columns)
        reader = _RangeReader(step, ranges, now)
        return self.spark.range(0, len(ranges), 1, len(ranges)).mapInArrow(reader, step.columns)


@contextmanager
def open_query_session(context: SparkContext) -> Iterator[QuerySession]:
    """Provide a session for one job; the next job reuses it unless this one fails."""
    application = context.applicationId
    idle = _idle.get(application)
    if idle is None:
        _idle.clear()  # sessions of a stopped context
        idle = _idle[application] = []
    session = idle.pop() if idle else QuerySession(context)
    yield session
    idle.append(session)


class _BoundFunction:
    """The function of a step, with the time of the job."""

    def __init__(self, function: Callable[[Iterator[pa.RecordBatch], int], Iterator[pa.RecordBatch]], now: int) -> None:
        self._function, self._now = function, now

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self._function(batches, self._now)


# -------------------------------------------------------------------------------------------------------------- reading


def _read_parquet(session: SparkSession, step: Read, path: str) -> Any:
    """Return Parquet files as a DataFrame that Spark reads."""
    assert step.files is not None
    column_types = [part.split(" ", 1)[1] for part in _split_columns(step.columns)]
    names = [f"`{field.name.replace('`', '``')}`" for field in step.files]
    declared = ", ".join(f"{name} {column_type}" for name, column_type in zip(names, column_types, strict=True))
    frame = session.read.schema(declared).option("recursiveFileLookup", "true").parquet(path)
    return frame.toDF(*(f"c{i}" for i in range(len(names))))


def _split_columns(columns: str) -> list[str]:
    """Split a schema such as `c0 INT, c1 DECIMAL(10,2)` into its columns."""
    return columns.split(", ")


def _list_files(path: str) -> list[Path]:
    """Return a local file, or all data files of a directory."""
    root = Path(path)
    return [root] if root.is_file() else [
        Path(folder) / name
        for folder, _, names in sorted(os.walk(root))
        for name in sorted(names)
        if not name.startswith(("_", "."))
    ]  # fmt: skip


def _have_declared_types(paths: Sequence[Path], declared: pa.Schema) -> bool:
    """Whether Parquet files have exactly the declared types: Spark refuses types that our reader converts."""
    if not paths:
        return False
    for file in paths:
        try:
            file_schema = pq.read_schema(file)
        except (OSError, pa.ArrowException):
            return False
        for field in declared:
            column_index = file_schema.get_field_index(field.name)
            if column_index < 0 or not _is_same_type(file_schema.field(column_index).type, field.type):
                return False
    return True


def _is_same_type(file_type: pa.DataType, declared_type: pa.DataType) -> bool:
    text_types = (pa.string(), pa.large_string(), pa.string_view())
    return file_type == declared_type or (file_type in text_types and declared_type in text_types)


def _plan_all(source: Source, now: int) -> list[SplitRange]:
    """Plan all ranges of a bounded source. A source with a rate plans what has arrived, so the plans after the first
    are made for a time at which everything has arrived."""
    enumerator = source.create_enumerator(1)
    ranges: list[SplitRange] = []
    try:
        for planned_at in itertools.chain((now,), itertools.repeat(now + _CENTURY)):
            planned = enumerator.plan(Budget(_ALL, _ALL, planned_at))
            ranges += planned
            if enumerator.finished() or not (planned or planned_at == now):
                break
        return ranges
    finally:
        enumerator.close()


class _RangeReader:
    """Reads ranges of a source in a Spark task."""

    def __init__(self, step: Read, ranges: list[SplitRange], now: int) -> None:
        self._source, self._to_batch, self._now = step.source, step.to_batch, now
        self._ranges = [split_range.to_json() for split_range in ranges]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = self._source.create_reader(ReaderContext(0, 1, _BATCH_ROWS, job=str(self._now), now=self._now))
        try:
            for batch in batches:
                for range_index in batch.column(0).to_numpy():
                    for records in reader.read(SplitRange.from_json(self._ranges[range_index])):
                        yield self._to_batch(records, self._now)
        finally:
            reader.close()


# -------------------------------------------------------------------------------------------------------------- failing


def create_query_failure(problem: BaseException) -> QueryFailed | None:
    """Return the error of an expression over its data; None if Spark itself failed."""
    text = str(problem.java_exception) if isinstance(problem, Py4JJavaError) else str(problem)
    if not isinstance(problem, Py4JJavaError | PySparkException):
        return None
    for line in _collect_reasons(text.splitlines()):
        return QueryFailed(line)
    return None


def _collect_reasons(lines: Iterable[str]) -> Iterator[str]:
    """Yield the last lines of our own tracebacks, and the arguments of `raise_error`."""
    for line in lines:
        _, raised, reason = line.partition(RAISED)
        if raised:
            yield reason.split(" SQLSTATE")[0].strip()
        _, ours, error = line.strip().partition(_TRACEBACK)
        name, _, reason = error.partition(": ")
        if ours and reason and "Failed" in name:
            yield reason
