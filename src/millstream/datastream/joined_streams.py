"""Window joins, co-groups and interval joins of two streams.

Promises: Flink's names and steps; missing steps and invalid arguments are refused while the program is built.
Does not know: the class DataStream; the environment creates the resulting streams."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from millstream.datastream.call_types import result_type
from millstream.datastream.windowed_stream import Windows
from millstream.errors import InvalidArgument, InvalidArgumentType, UserError
from millstream.functions import CoGroupFunction, FlatJoinFunction, JoinFunction, KeySelector, as_function
from millstream.functions.join import ProcessJoinFunction
from millstream.graph.transformations import Input
from millstream.runtime.keys import KeySelection
from millstream.runtime.operators.interval_join import IntervalJoinSpec
from millstream.runtime.operators.window_join import CallJoin, WindowJoinSpec, union_type
from millstream.runtime.partitioners import Hash
from millstream.state_descriptors.output_tag import OutputTag
from millstream.times import Duration, Time, millis
from millstream.types.factory import TypeInformation, Types
from millstream.windows.assigners import WindowAssigner

if TYPE_CHECKING:
    from millstream.datastream.data_stream import DataStream, KeyedStream

Selector = Callable[[Any], Any] | KeySelector | str | int
TimeSpan = int | Duration | Time | timedelta


class JoinIncomplete(UserError):
    """A step of a join is missing."""

    def __init__(self, missing: str, hint: str) -> None:
        super().__init__(f"this join has no {missing}", hint=f"{hint}; or use interval_join for a join without windows")


class KeysDiffer(UserError, TypeError):
    """The two streams of a join have keys of different types."""

    def __init__(self, first: TypeInformation, second: TypeInformation) -> None:
        super().__init__(
            f"the keys of the two streams have the types {first} and {second}",
            hint="use the same key_type for both selectors",
        )


class EmptyInterval(UserError, ValueError):
    """The lower bound of an interval join is above its upper bound."""

    def __init__(self, lower: int, upper: int) -> None:
        super().__init__(
            f"the interval from {lower} ms to {upper} ms is empty",
            hint="use between(lower, upper) with lower <= upper; an exclusive bound moves inward by a millisecond",
        )


class _Steps:
    """The steps of a window join; each subclass has the next step, and the others raise what is missing."""

    _missing = ("key for the first stream", "where(key)")

    def where(self, key_selector: Selector, key_type: TypeInformation | None = None) -> Any:
        """Set the key of the first stream."""
        raise JoinIncomplete(*self._missing)

    def equal_to(self, key_selector: Selector, key_type: TypeInformation | None = None) -> Any:
        """Set the key of the second stream."""
        raise JoinIncomplete(*self._missing)

    def window(self, assigner: WindowAssigner[Any, Any]) -> Any:
        """Set the windows in which records are joined."""
        raise JoinIncomplete(*self._missing)

    def apply(self, function: Any, output_type: TypeInformation | None = None) -> Any:
        """Apply the function of the join."""
        raise JoinIncomplete(*self._missing)


class _TwoStreams(_Steps):
    _pairs: bool

    def __init__(self, input1: DataStream, input2: DataStream) -> None:
        if input1._env is not input2._env:
            msg = "the two streams belong to different environments"
            raise InvalidArgument(msg, hint="build both from one StreamExecutionEnvironment")
        self._input1, self._input2 = input1, input2

    def where(self, key_selector: Selector, key_type: TypeInformation | None = None) -> Where:
        """Set the key of the first stream.

        Args:
            key_selector: A function that returns the key of a record, or the name or index of a field.
            key_type: The type of the key.

        """
        return Where(self._input1.key_by(key_selector, key_type), self._input2, self._pairs)


class JoinedStreams(_TwoStreams):
    """Two streams that are joined in windows: the function gets each pair of records with equal keys."""

    _pairs = True


class CoGroupedStreams(_TwoStreams):
    """Two streams that are co-grouped in windows: the function gets all records of a key of both streams."""

    _pairs = False


class Where(_Steps):
    """A window join after `where`: the key of the second stream is missing."""

    _missing = ("key for the second stream", "where(key).equal_to(key)")

    def __init__(self, input1: KeyedStream, input2: DataStream, pairs: bool) -> None:
        self._input1, self._input2, self._pairs = input1, input2, pairs

    def equal_to(self, key_selector: Selector, key_type: TypeInformation | None = None) -> EqualTo:
        """Set the key of the second stream; for the arguments see `where`."""
        keyed = self._input2.key_by(key_selector, key_type)
        return EqualTo(self._input1, keyed, common_keys(self._input1, keyed), self._pairs)


class EqualTo(_Steps):
    """A window join after `equal_to`: the windows are missing."""

    _missing = ("window", "where(key).equal_to(key).window(assigner)")

    def __init__(
        self, input1: KeyedStream, input2: KeyedStream, keys: tuple[KeySelection, KeySelection], pairs: bool
    ) -> None:
        self._input1, self._input2, self._keys, self._pairs = input1, input2, keys, pairs

    def window(self, assigner: WindowAssigner[Any, Any]) -> WithWindow:
        """Set the windows in which records are joined."""
        return WithWindow(self._input1, self._input2, self._keys, assigner, self._pairs)


class WithWindow(Windows):
    """A window join after `window`. Assigners, triggers, evictors and the late side output get records as
    `TaggedUnion`."""

    _keyed = True

    def __init__(
        self,
        input1: KeyedStream,
        input2: KeyedStream,
        keys: tuple[KeySelection, KeySelection],
        assigner: WindowAssigner[Any, Any],
        pairs: bool,
    ) -> None:
        super().__init__(input1, keys[0], assigner)
        self._first, self._second, self._keys, self._pairs = input1, input2, keys, pairs

    def get_input_type(self) -> TypeInformation:
        """Return the type of the tagged union of both streams' records."""
        return union_type(self._stream.get_type(), self._second.get_type())

    def apply(self, function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Apply a function to each pair of records (join), or to the records of a key of both streams (co_group).

        Args:
            function: A `JoinFunction`, `FlatJoinFunction` or `CoGroupFunction`, or a plain function.
            output_type: The type of the results; see `DataStream.map`.

        """
        if self._pairs:
            is_flat = isinstance(function, FlatJoinFunction)
            join_function: Any = function if is_flat else as_function(function, JoinFunction)
            output_type_info = result_type(output_type, join_function.join, element=is_flat)
        else:
            join_function = as_function(function, CoGroupFunction)
            output_type_info = result_type(output_type, join_function.co_group, element=True)
        return self._apply("Join" if self._pairs else "CoGroup", output_type_info, None, CallJoin(join_function))

    def _add(self, name: str, spec: Any, output_type: TypeInformation) -> DataStream:
        env = self._stream._env
        transformation = env._program.add(
            f"{type(self._assigner).__name__}, {name}",
            WindowJoinSpec(spec, self._keys),
            output_type,
            both_inputs(self._first, self._second, self._keys),
            key_type=self._key.key_type,
        )
        return env._stream(transformation)


class IntervalJoin:
    """An interval join of two keyed streams: joins records whose timestamps differ by a bounded interval."""

    def __init__(self, stream1: KeyedStream, stream2: Any) -> None:
        if getattr(stream2, "_key_selection", lambda: None)() is None:
            msg = "an interval join needs two keyed streams"
            raise InvalidArgumentType(msg, hint="a.key_by(...).interval_join(b.key_by(...))")
        self._streams = (stream1, stream2)
        self._keys = common_keys(stream1, stream2)

    def between(self, lower_bound: TimeSpan, upper_bound: TimeSpan) -> IntervalJoined:
        """Set the bounds of the interval, which are inclusive.

        A record with timestamp t is joined with the records of the second stream whose timestamps are from
        t + `lower_bound` to t + `upper_bound`.

        Args:
            lower_bound: In milliseconds or as a duration; may be negative.
            upper_bound: In milliseconds or as a duration; not below the lower bound.

        """
        return IntervalJoined(self._streams, self._keys, millis(lower_bound), millis(upper_bound))

    def process(self, process_join_function: Any, output_type: TypeInformation | None = None) -> Any:
        """Refuse: the bounds are missing."""
        msg = "this interval join has no bounds"
        raise UserError(msg, hint="interval_join(other).between(lower, upper).process(function)")


class IntervalJoined:
    """An interval join with its bounds, which are inclusive by default."""

    def __init__(
        self,
        streams: tuple[KeyedStream, KeyedStream],
        keys: tuple[KeySelection, KeySelection],
        lower: int,
        upper: int,
    ) -> None:
        if lower > upper:
            raise EmptyInterval(lower, upper)
        self._streams, self._keys = streams, keys
        self._lower, self._upper = lower, upper
        self._exclusive = [False, False]
        self._late: list[OutputTag | None] = [None, None]

    def lower_bound_exclusive(self) -> IntervalJoined:
        """Make the lower bound exclusive."""
        self._exclusive[0] = True
        return self

    def upper_bound_exclusive(self) -> IntervalJoined:
        """Make the upper bound exclusive."""
        self._exclusive[1] = True
        return self

    def side_output_left_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Emit late records of the first stream to a side output; otherwise they are dropped."""
        self._late[0] = output_tag
        return self

    def side_output_right_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Emit late records of the second stream to a side output; otherwise they are dropped."""
        self._late[1] = output_tag
        return self

    def process(
        self, process_join_function: ProcessJoinFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """Apply a function to each pair of records.

        Args:
            process_join_function: The function.
            output_type: The type of the results; see `DataStream.map`.

        """
        function = as_function(process_join_function, ProcessJoinFunction)
        lower, upper = self._lower + self._exclusive[0], self._upper - self._exclusive[1]
        if lower > upper:
            raise EmptyInterval(lower, upper)
        stream1, stream2 = self._streams
        tags = [None if tag is None else tag.tag_id for tag in self._late]
        spec = IntervalJoinSpec(
            function, self._keys, (stream1.get_type(), stream2.get_type()), lower, upper, (tags[0], tags[1])
        )
        env = stream1._env
        transformation = env._program.add(
            "Interval Join",
            spec,
            result_type(output_type, function.process_element, element=True),
            both_inputs(stream1, stream2, self._keys),
            key_type=self._keys[0].key_type,
        )
        return env._stream(transformation)


def common_keys(stream1: KeyedStream, stream2: KeyedStream) -> tuple[KeySelection, KeySelection]:
    """Return the keys of two streams with a common type: an untyped key gets the type of the other one."""
    first, second = stream1._key_selection(), stream2._key_selection()
    untyped = Types.PICKLED_BYTE_ARRAY()
    if untyped in (first.key_type, second.key_type):
        key_type = second.key_type if first.key_type == untyped else first.key_type
        return dataclasses.replace(first, key_type=key_type), dataclasses.replace(second, key_type=key_type)
    if first.key_type != second.key_type:
        raise KeysDiffer(first.key_type, second.key_type)
    return first, second


def both_inputs(
    stream1: KeyedStream, stream2: KeyedStream, keys: tuple[KeySelection, KeySelection]
) -> tuple[Input, ...]:
    """Return the two streams as the inputs of one operator, each partitioned by its key."""
    return tuple(
        Input(
            edge.upstream, side, edge.tag, Hash(keys[side]) if isinstance(edge.partitioner, Hash) else edge.partitioner
        )
        for side, stream in enumerate((stream1, stream2))
        for edge in stream._inputs
    )
