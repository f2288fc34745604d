"""A query of tables as an engine with an optimizer of its own can run it.

Promises: a relation is a list of named steps, each made of earlier ones: a table, a file, a source, a query as text, or
a function over Arrow batches. As the source of a program its rows are those of the last step.
Does not know: Spark; how a query became text."""

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


@dataclass(frozen=True)
class LocalTable:
    """Rows that travel with the program."""

    table: pa.Table


@dataclass(frozen=True)
class Read:
    """Rows of a source. `made` turns what its reader gives into a batch of `columns`, given the time of the job.

    Where `parquet` names files whose columns have the Arrow types of `files`, the engine may read them itself."""

    source: Source
    columns: str
    made: Callable[[Records, int], pa.RecordBatch]
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
        """The sources that are read."""
        return [step.source for _, step in self.steps if isinstance(step, Read)]


class NoOptimizer(UserError):
    """An engine without an optimizer was given a relation."""

    hint = "set millstream.sql.batch-engine to operators"

    def __init__(self) -> None:
        super().__init__("this engine cannot run queries of tables as a whole")


@dataclass(frozen=True)
class RelationalSource(Source):
    """The rows of a relation, in order where `single` says that there is one reader."""

    name: str
    relation: Relation
    kind: TypeInformation
    single: bool = False

    def __deepcopy__(self, memo: dict[int, Any]) -> RelationalSource:
        """It is only read: every subtask may share it."""
        return self

    def type_info(self) -> TypeInformation:
        """The type of the rows."""
        return self.kind

    def max_parallelism(self) -> int | None:
        """One where order counts."""
        return 1 if self.single else None

    def check(self) -> None:
        """As the sources inside."""
        for source in self.relation.sources():
            source.check()

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """One range for each reader."""
        return _Parts(parallelism, bool(state))

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A reader of what the engine computed."""
        return _Fed(self.name, self.kind)


class _Parts(SplitEnumerator):
    """Each reader reads once what it is fed."""

    def __init__(self, parallelism: int, planned: bool) -> None:
        self._parallelism, self._planned = parallelism, planned

    def plan(self, budget: Budget) -> list[SplitRange]:
        """All there is."""
        if self._planned:
            return []
        self._planned = True
        return [SplitRange(str(part), 0, 1) for part in range(self._parallelism)]

    def snapshot(self) -> bool:
        """Whether all was planned."""
        return self._planned

    def finished(self) -> bool:
        """Whether all was planned."""
        return self._planned

    def skip(self, done: SplitRange) -> None:
        """All of it."""
        self._planned = True


class _Fed(SourceReader):
    def __init__(self, name: str, kind: TypeInformation) -> None:
        self._name, self._kind = name, kind

    def read(self, part: SplitRange) -> Iterator[Records]:
        """What the engine computed, as rows of the program."""
        for batch in _feed().get(self._name, iter(())):
            yield Records(as_rows(batch, self._kind.arrow_type))


def as_rows(batch: pa.RecordBatch, wanted: pa.StructType) -> pa.Array:
    """A batch of columns as rows of a table, whose last field is the kind of change."""
    fields = [wanted.field(i) for i in range(wanted.num_fields)]
    columns = [
        column if column.type == field.type else column.cast(field.type, safe=False)
        for column, field in zip(batch.columns, fields[:-1], strict=False)
    ]
    return pa.StructArray.from_arrays([*columns, pa.nulls(batch.num_rows, fields[-1].type)], fields=fields)


_local = threading.local()


def _feed() -> Mapping[str, Batches]:
    found: Mapping[str, Batches] | None = getattr(_local, "feed", None)
    if found is None:
        raise NoOptimizer
    return found


@contextmanager
def feeding(feed: Mapping[str, Batches]) -> Iterator[None]:
    """Have the readers of this thread read these batches, by the name of their source."""
    _local.feed = feed
    try:
        yield
    finally:
        _local.feed = None
