"""Functions called once per record: map, flat map, filter, reduce, aggregate, key, partition, sink, source.

Promises: PyFlink's classes with PyFlink's method names.
Does not know: keys, time or state beyond what `open` hands over."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from millstream.errors import UserError
from millstream.functions.base import Function


class NoPythonFunction(UserError, TypeError):
    """A source or sink function was asked for by something that cannot run here, such as a Java class name."""

    hint = "pass a Python callable, or subclass the function and override its method"

    def __init__(self, kind: str, given: object) -> None:
        self.kind, self.given = kind, given
        super().__init__(f"{kind} cannot be made of {given!r}: millstream runs no Java user code")


class MapFunction(Function):
    """One record out for each record in."""

    @abstractmethod
    def map(self, value: Any) -> Any:
        """The record that takes the place of `value`."""


class FlatMapFunction(Function):
    """Any number of records out for each record in."""

    @abstractmethod
    def flat_map(self, value: Any) -> Iterable[Any] | None:
        """The records that take the place of `value`; a generator, any iterable, or None for none."""


class FilterFunction(Function):
    """Keeps or drops each record."""

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Whether `value` stays in the stream."""


class CoMapFunction(Function):
    """A map over two connected streams that share one function object."""

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """The record for one of the first stream."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """The record for one of the second stream."""


class CoFlatMapFunction(Function):
    """A flat map over two connected streams that share one function object."""

    @abstractmethod
    def flat_map1(self, value: Any) -> Iterable[Any] | None:
        """The records for one of the first stream."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Iterable[Any] | None:
        """The records for one of the second stream."""


class ReduceFunction(Function):
    """Folds two records into one of the same type; must be associative."""

    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """Both values as one; `value1` came earlier."""


class AggregateFunction(Function):
    """Folds records into an accumulator, and an accumulator into a result."""

    @abstractmethod
    def create_accumulator(self) -> Any:
        """An accumulator that has seen no record."""

    @abstractmethod
    def add(self, value: Any, accumulator: Any) -> Any:
        """The accumulator after `value`; it may be the one passed in, changed."""

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any:
        """What the accumulator amounts to."""

    @abstractmethod
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """An accumulator that has seen what both have seen; needed by merging windows."""


class KeySelector(Function):
    """Takes the key out of a record."""

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """The key of `value`: the same for the same value, in every process."""


class NullByteKeySelector(KeySelector):
    """The same key, 0, for every record: how a stream without keys uses keyed operators."""

    def get_key(self, value: Any) -> Any:
        """Always 0."""
        return 0


class Partitioner(Function):
    """Chooses the subtask that a record goes to."""

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """The subtask for a key, from 0 to `num_partitions` - 1."""


class SinkFunction(Function):
    """Takes each record out of the program: a callable of one argument, or a subclass with its own `invoke`."""

    def __init__(self, sink_func: Callable[[Any], Any] | None = None) -> None:
        if sink_func is not None and not callable(sink_func):
            raise NoPythonFunction(kind="a sink function", given=sink_func)
        self._sink_func = sink_func

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        """Take one record."""
        if self._sink_func is None:
            raise NoPythonFunction(kind="a sink function", given=None)
        self._sink_func(value)

    class Context(ABC):
        """Time as a sink sees it."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Processing time, in milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The watermark the sink has seen."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """Timestamp of the record, or None."""


class SourceFunction(Function):
    """Brings records into the program: a callable that takes a `SourceContext`, or a subclass with its own `run`."""

    def __init__(self, source_func: Callable[[SourceFunction.SourceContext], Any] | None = None) -> None:
        if source_func is not None and not callable(source_func):
            raise NoPythonFunction(kind="a source function", given=source_func)
        self._source_func = source_func

    def run(self, ctx: SourceFunction.SourceContext) -> None:
        """Collect records until the source ends or is cancelled."""
        if self._source_func is None:
            raise NoPythonFunction(kind="a source function", given=None)
        self._source_func(ctx)

    def cancel(self) -> None:
        """Ask `run`, from another thread, to return soon."""

    class SourceContext(ABC):
        """Where a source function puts its records."""

        @abstractmethod
        def collect(self, element: Any) -> None:
            """Emit a record without a timestamp."""

        @abstractmethod
        def collect_with_timestamp(self, element: Any, timestamp: int) -> None:
            """Emit a record with its event time."""

        @abstractmethod
        def emit_watermark(self, timestamp: int) -> None:
            """Promise that no record at or before `timestamp` follows."""
