"""Functions that are called for each record: map, flat map, filter, reduce, aggregate, key, partition, sink, source.

Promises: PyFlink's classes with PyFlink's method names.
Does not know: keys, time or state, except through the context of `open`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Generic

from millstream.errors import UserError
from millstream.functions.base import Function
from millstream.functions.type_variables import ACC, IN, IN2, OUT, K, T


class NoPythonFunction(UserError, TypeError):
    """The argument of a source or sink function cannot run here, such as the name of a Java class."""

    hint = "pass a Python callable, or subclass the function and override its method"

    def __init__(self, function_type: str, argument: object) -> None:
        self.function_type, self.argument = function_type, argument
        super().__init__(f"{function_type} cannot be created from {argument!r}: millstream runs no Java user code")


class MapFunction(Function, Generic[IN, OUT]):
    """A function that returns one record for each record.

    Example:
        >>> from millstream.testing import harness_for
        >>> class Double(MapFunction):
        ...     def map(self, value):
        ...         return 2 * value
        >>> with harness_for(Double()) as harness:
        ...     harness.process(21)
        ...     harness.values()
        [42]

    """

    @abstractmethod
    def map(self, value: IN) -> OUT:
        """Return the record that replaces `value`.

        Args:
            value: The record.

        """


class FlatMapFunction(Function, Generic[IN, OUT]):
    """A function that returns any number of records for each record.

    Example:
        >>> from millstream.testing import harness_for
        >>> class Words(FlatMapFunction):
        ...     def flat_map(self, value):
        ...         yield from value.split()
        >>> with harness_for(Words()) as harness:
        ...     harness.process("to be")
        ...     harness.values()
        ['to', 'be']

    """

    @abstractmethod
    def flat_map(self, value: IN) -> Iterable[OUT] | None:
        """Return or yield the records that replace `value`; None stands for no record.

        Args:
            value: The record.

        """


class FilterFunction(Function, Generic[IN]):
    """A function that decides whether a record stays in the stream.

    Example:
        >>> from millstream.testing import harness_for
        >>> class Positive(FilterFunction):
        ...     def filter(self, value):
        ...         return value > 0
        >>> with harness_for(Positive()) as harness:
        ...     harness.process_all([-1, 1])
        ...     harness.values()
        [1]

    """

    @abstractmethod
    def filter(self, value: IN) -> bool:
        """Return whether `value` stays in the stream.

        Args:
            value: The record.

        """


class CoMapFunction(Function, Generic[IN, IN2, OUT]):
    """A map function over two connected streams.

    Example:
        >>> from millstream.testing import harness_for
        >>> class Labels(CoMapFunction):
        ...     def map1(self, value):
        ...         return "first", value
        ...     def map2(self, value):
        ...         return "second", value
        >>> with harness_for(Labels()) as harness:
        ...     harness.process(1, side=0)
        ...     harness.process(2, side=1)
        ...     harness.values()
        [('first', 1), ('second', 2)]

    """

    @abstractmethod
    def map1(self, value: IN) -> OUT:
        """Return the record that replaces a record of the first stream.

        Args:
            value: The record.

        """

    @abstractmethod
    def map2(self, value: IN2) -> OUT:
        """Return the record that replaces a record of the second stream.

        Args:
            value: The record.

        """


class CoFlatMapFunction(Function, Generic[IN, IN2, OUT]):
    """A flat map function over two connected streams.

    Example:
        >>> from millstream.testing import harness_for
        >>> class OnlyFirst(CoFlatMapFunction):
        ...     def flat_map1(self, value):
        ...         yield value
        ...     def flat_map2(self, value):
        ...         return []
        >>> with harness_for(OnlyFirst()) as harness:
        ...     harness.process(1, side=0)
        ...     harness.process(2, side=1)
        ...     harness.values()
        [1]

    """

    @abstractmethod
    def flat_map1(self, value: IN) -> Iterable[OUT] | None:
        """Return or yield the records that replace a record of the first stream.

        Args:
            value: The record.

        """

    @abstractmethod
    def flat_map2(self, value: IN2) -> Iterable[OUT] | None:
        """Return or yield the records that replace a record of the second stream.

        Args:
            value: The record.

        """


class ReduceFunction(Function, Generic[T]):
    """A function that combines two records into one of the same type. It must be associative.

    Example:
        >>> from millstream.testing import harness_for
        >>> class Sum(ReduceFunction):
        ...     def reduce(self, value1, value2):
        ...         return value1[0], value1[1] + value2[1]
        >>> with harness_for(Sum(), key=lambda pair: pair[0]) as harness:
        ...     harness.process_all([("a", 1), ("a", 2)])
        ...     harness.values()
        [('a', 1), ('a', 3)]

    """

    @abstractmethod
    def reduce(self, value1: T, value2: T) -> T:
        """Combine two values; `value1` arrived earlier.

        Args:
            value1: The value so far.
            value2: The next value.

        """


class AggregateFunction(Function, Generic[IN, ACC, OUT]):
    """A function that adds records to an accumulator, and computes a result from it.

    Example:
        >>> class Average(AggregateFunction):
        ...     def create_accumulator(self):
        ...         return 0, 0
        ...     def add(self, value, accumulator):
        ...         return accumulator[0] + value, accumulator[1] + 1
        ...     def get_result(self, accumulator):
        ...         return accumulator[0] / accumulator[1]
        ...     def merge(self, acc_a, acc_b):
        ...         return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]
        >>> average = Average()
        >>> average.get_result(average.add(4, average.add(2, average.create_accumulator())))
        3.0

    """

    @abstractmethod
    def create_accumulator(self) -> ACC:
        """Create an empty accumulator."""

    @abstractmethod
    def add(self, value: IN, accumulator: ACC) -> ACC:
        """Add a record, and return the accumulator, which may be the same object.

        Args:
            value: The record.
            accumulator: The accumulator so far; it may be changed.

        """

    @abstractmethod
    def get_result(self, accumulator: ACC) -> OUT:
        """Return the result of an accumulator.

        Args:
            accumulator: The accumulator.

        """

    @abstractmethod
    def merge(self, acc_a: ACC, acc_b: ACC) -> ACC:
        """Merge two accumulators; merging windows, such as sessions, call it.

        Args:
            acc_a: One accumulator; it may be changed.
            acc_b: The other accumulator.

        """


class KeySelector(Function, Generic[IN, K]):
    """A function that extracts the key of a record.

    Example:
        >>> class ByName(KeySelector):
        ...     def get_key(self, value):
        ...         return value["name"]
        >>> ByName().get_key({"name": "ann"})
        'ann'

    """

    @abstractmethod
    def get_key(self, value: IN) -> K:
        """Return the key of `value`. It must be the same for equal records, in every process.

        Args:
            value: The record.

        """


class NullByteKeySelector(KeySelector):
    """A key selector that returns 0 for every record, for keyed operators on a stream without keys.

    Example:
        >>> NullByteKeySelector().get_key("any record")
        0

    """

    def get_key(self, value: Any) -> Any:
        """Return 0."""
        return 0


class Partitioner(Function, Generic[IN]):
    """A function that chooses the subtask to which a record is sent.

    Example:
        >>> class ByCountry(Partitioner):
        ...     def partition(self, key, num_partitions):
        ...         return 0 if key == "ch" else 1 % num_partitions
        >>> ByCountry().partition("ch", 4)
        0

    """

    @abstractmethod
    def partition(self, key: IN, num_partitions: int) -> int:
        """Return the index of the subtask for a key, from 0 to `num_partitions` - 1.

        Args:
            key: The key of the record.
            num_partitions: The number of subtasks.

        """


class SinkFunction(Function):
    """A function that is called for each record: a callable, or a subclass that overrides `invoke`.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> sink = env.from_collection([1, 2]).add_sink(SinkFunction(lambda value: print(value)))

    """

    def __init__(self, sink_func: Callable[[Any], Any] | None = None) -> None:
        if sink_func is not None and not callable(sink_func):
            raise NoPythonFunction(function_type="a sink function", argument=sink_func)
        self._sink_func = sink_func

    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        """Process one record.

        Args:
            value: The record.
            context: The timestamp, the watermark and the processing time.

        """
        if self._sink_func is None:
            raise NoPythonFunction(function_type="a sink function", argument=None)
        self._sink_func(value)

    class Context(ABC):
        """The context of a sink function."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the processing time in milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """Return the current watermark of the sink."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """Return the timestamp of the record; None if it has none."""


class SourceFunction(Function):
    """A function that emits records: a callable of a `SourceContext`, or a subclass that overrides `run`.

    Example:
        >>> class Countdown(SourceFunction):
        ...     def run(self, ctx):
        ...         for number in (3, 2, 1):
        ...             ctx.collect(number)

    """

    def __init__(self, source_func: Callable[[SourceFunction.SourceContext], Any] | None = None) -> None:
        if source_func is not None and not callable(source_func):
            raise NoPythonFunction(function_type="a source function", argument=source_func)
        self._source_func = source_func

    def run(self, ctx: SourceFunction.SourceContext) -> None:
        """Emit records until the source ends or is cancelled.

        Args:
            ctx: Emits records and watermarks.

        """
        if self._source_func is None:
            raise NoPythonFunction(function_type="a source function", argument=None)
        self._source_func(ctx)

    def cancel(self) -> None:
        """Request, from another thread, that `run` returns soon."""

    class SourceContext(ABC):
        """The output of a source function."""

        @abstractmethod
        def collect(self, element: Any) -> None:
            """Emit a record without a timestamp.

            Args:
                element: The record.

            """

        @abstractmethod
        def collect_with_timestamp(self, element: Any, timestamp: int) -> None:
            """Emit a record with its event-time timestamp.

            Args:
                element: The record.
                timestamp: Milliseconds since the epoch.

            """

        @abstractmethod
        def emit_watermark(self, timestamp: int) -> None:
            """Emit a watermark: no record with a timestamp at or before `timestamp` follows.

            Args:
                timestamp: Milliseconds since the epoch.

            """
