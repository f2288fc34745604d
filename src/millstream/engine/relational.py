"""Relations: queries of tables that an engine with an optimizer runs as a whole.

Promises: a relation is a list of named steps, each computed from earlier ones: a table, a file, a source, a query as
text, or a function over Arrow batches. As the source of a program, its rows are those of the last step.
Does not know: Spark; how the text of a query is created."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from millstream.connector.source import (
    Budget,
    ReaderContext,
    Records,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitRange,
)
from millstream.errors import UserError
from millstream.types.factory import TypeInformation

Batches = Iterator[pa.RecordBatch]
#: What the text of an error begins with that a query itself raises for its data.
RAISED = "query failed: "


@dataclass(frozen=True)
class LocalTable:
    """Rows that are part of the program; `columns` is their schema in Spark's DDL."""

    table: pa.Table
    columns: str


@dataclass(frozen=True)
class Read:
    """Rows of a source. `to_batch` converts records of its reader to a batch of `columns`, given the time of the job.

    Where `parquet` names files whose columns have the Arrow types of `files`, the engine may read them itself."""

    source: Source
    columns: str
    to_batch: Callable[[Records, int], pa.RecordBatch]
    parquet: str | None = None
    files: pa.Schema | None = None


@dataclass(frozen=True)
class Query:
    """A query in Spark's SQL over the names of earlier steps."""

    text: str


@dataclass(frozen=True)
class Mapped:
    """A function over the batches of an earlier step, given the time of the job."""

    input: str
    function: Callable[[Batches, int], Batches]
    columns: str


Step = LocalTable | Read | Query | Mapped


@dataclass(frozen=True)
class Relation:
    """Steps by name; the rows are those of the last."""

    steps: tuple[tuple[str, Step], ...]

    def sources(self) -> list[Source]:
        """Return the sources that are read."""
        return [step.source for _, step in self.steps if isinstance(step, Read)]


class NoOptimizer(UserError):
    """A relation was sent to an engine without an optimizer."""

    hint = "set millstream.sql.batch-engine to operators"

    def __init__(self) -> None:
        super().__init__("this engine cannot run queries of tables as a whole")


@dataclass(frozen=True)
class RelationalSource(Source):
    """The rows of a relation; with `single` there is one reader, which reads them in order."""

    name: str
    relation: Relation
    row_type: TypeInformation
    single: bool = False

    def __deepcopy__(self, memo: dict[int, Any]) -> RelationalSource:
        """Return the source itself: it is immutable, so all subtasks share it."""
        return self

    def type_info(self) -> TypeInformation:
        """Return the type of the rows."""
        return self.row_type

    def max_parallelism(self) -> int | None:
        """Return 1 if the order of the rows matters."""
        return 1 if self.single else None

    def check(self) -> None:
        """Check the sources that the relation reads."""
        for source in self.relation.sources():
            source.check()

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create an enumerator that plans one range for each reader."""
        return _OneRangePerReader(parallelism, bool(state))

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader of the batches that the engine computed."""
        return _FeedReader(self.name, self.row_type)


class _OneRangePerReader(SplitEnumerator):
    """Plans one range for each reader, once."""

    def __init__(self, parallelism: int, planned: bool) -> None:
        self._parallelism, self._planned = parallelism, planned

    def plan(self, budget: Budget) -> list[SplitRange]:
        """Return all ranges on the first call."""
        if self._planned:
            return []
        self._planned = True
        return [SplitRange(str(part), 0, 1) for part in range(self._parallelism)]

    def snapshot(self) -> bool:
        """Return whether the ranges were planned."""
        return self._planned

    def finished(self) -> bool:
        """Return whether the ranges were planned."""
        return self._planned

    def skip(self, done: SplitRange) -> None:
        """Skip all ranges."""
        self._planned = True


class _FeedReader(SourceReader):
    def __init__(self, name: str, row_type: TypeInformation) -> None:
        self._name, self._row_type = name, row_type

    def read(self, part: SplitRange) -> Iterator[Records]:
        """Read the batches that the engine computed, as rows of the program."""
        for batch in _feed().get(self._name, iter(())):
            yield Records(to_rows(batch, self._row_type.arrow_type))


def to_rows(batch: pa.RecordBatch, row_type: pa.StructType) -> pa.Array:
    """Convert a batch to rows of a table, whose last field is the row kind."""
    fields = [row_type.field(i) for i in range(row_type.num_fields)]
    columns = [
        column if column.type == field.type else column.cast(field.type, safe=False)
        for column, field in zip(batch.columns, fields[:-1], strict=False)
    ]
    return pa.StructArray.from_arrays([*columns, pa.nulls(batch.num_rows, fields[-1].type)], fields=fields)


_local = threading.local()


def _feed() -> Mapping[str, Batches]:
    feed: Mapping[str, Batches] | None = getattr(_local, "feed", None)
    if feed is None:
        raise NoOptimizer
    return feed


@contextmanager
def feed_readers(feed: Mapping[str, Batches]) -> Iterator[None]:
    """Let readers of this thread read these batches, by the name of their source."""
    _local.feed = feed
    try:
        yield
    finally:
        _local.feed = None
