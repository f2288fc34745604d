"""Functions called once per record: map, flat map, filter, reduce, aggregate, key, partition, sink, source.

Promises: PyFlink's classes with PyFlink's method names.
Does not know: keys, time or state beyond what `open` hands over."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Generic

from millstream.errors import UserError
from millstream.functions.base import Function
from millstream.functions.type_variables import ACC, IN, IN2, OUT, K, T


class NoPythonFunction(UserError, TypeError):
    """A source or sink function was asked for by something that cannot run here, such as a Java class name."""

    hint = "pass a Python callable, or subclass the function and override its method"

    def __init__(self, kind: str, given: object) -> None:
        self.kind, self.given = kind, given
        super().__init__(f"{kind} cannot be made of {given!r}: millstream runs no Java user code")


class MapFunction(Function, Generic[IN, OUT]):
    """One record out for each record in."""

    @abstractmethod
    def map(self, value: IN) -> OUT:
        """The record that takes the place of `value`."""


class FlatMapFunction(Function, Generic[IN, OUT]):
    """Any number of records out for each record in."""

    @abstractmethod
    def flat_map(self, value: IN) -> Iterable[OUT] | None:
        """The records that take the place of `value`; a generator, any iterable, or None for none."""


class FilterFunction(Function, Generic[IN]):
    """Keeps or drops each record."""

    @abstractmethod
    def filter(self, value: IN) -> bool:
        """Whether `value` stays in the stream."""


class CoMapFunction(Function, Generic[IN, IN2, OUT]):
    """A map over two connected streams that share one function object."""

    @abstractmethod
    def map1(self, value: IN) -> OUT:
        """The record for one of the first stream."""

    @abstractmethod
    def map2(self, value: IN2) -> OUT:
        """The record for one of the second stream."""


class CoFlatMapFunction(Function, Generic[IN, IN2, OUT]):
    """A flat map over two connected streams that share one function object."""

    @abstractmethod
    def flat_map1(self, value: IN) -> Iterable[OUT] | None:
        """The records for one of the first stream."""

    @abstractmethod
    def flat_map2(self, value: IN2) -> Iterable[OUT] | None:
        """The records for one of the second stream."""


class ReduceFunction(Function, Generic[T]):
    """Folds two records into one of the same type; must be associative."""

    @abstractmethod
    def reduce(self, value1: T, value2: T) -> T:
        """Both values as one; `value1` came earlier."""


class AggregateFunction(Function, Generic[IN, ACC, OUT]):
    """Folds records into an accumulator, and an accumulator into a result."""

    @abstractmethod
    def create_accumulator(self) -> ACC:
        """An accumulator that has seen no record."""

    @abstractmethod
    def add(self, value: IN, accumulator: ACC) -> ACC:
        """The accumulator after `value`; it may be the one passed in, changed."""

    @abstractmethod
    def get_result(self, accumulator: ACC) -> OUT:
        """What the accumulator amounts to."""

    @abstractmethod
    def merge(self, acc_a: ACC, acc_b: ACC) -> ACC:
        """An accumulator that has seen what both have seen; needed by merging windows."""


class KeySelector(Function, Generic[IN, K]):
    """Takes the key out of a record."""

    @abstractmethod
    def get_key(self, value: IN) -> K:
        """The key of `value`: the same for the same value, in every process."""


class NullByteKeySelector(KeySelector):
    """The same key, 0, for every record: how a stream without keys uses keyed operators."""

    def get_key(self, value: Any) -> Any:
        """Always 0."""
        return 0


class Partitioner(Function, Generic[IN]):
    """Chooses the subtask that a record goes to."""

    @abstractmethod
    def partition(self, key: IN, num_partitions: int) -> int:
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
