"""Joins of two streams, in windows or in intervals of time, said step by step.

Promises: Flink's names and steps; what is missing or cannot be is refused while the program is built.
Does not know: DataStream's class; results are made by the streams it is given."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from millstream.datastream.call_types import result_type
from millstream.datastream.windowed_stream import Windows
from millstream.errors import UserError
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


class KeysDiffer(UserError):
    """The two streams of a join have keys that can never be equal."""

    def __init__(self, one: TypeInformation, other: TypeInformation) -> None:
        super().__init__(
            f"the keys of the two streams are {one} and {other}", hint="give both selectors the same key_type"
        )


class EmptyInterval(UserError):
    """The bounds of an interval join leave nothing between them."""

    def __init__(self, lower: int, upper: int) -> None:
        super().__init__(
            f"there is no time from {lower} ms to {upper} ms, both included",
            hint="between(lower, upper) with lower <= upper; an exclusive bound is a millisecond further in",
        )


class _Steps:
    """The steps of a window join; each class has the one that is next."""

    _missing = ("key for the first stream", "where(key)")

    def where(self, key_selector: Selector, key_type: TypeInformation | None = None) -> Any:
        """The key of the first stream."""
        raise JoinIncomplete(*self._missing)

    def equal_to(self, key_selector: Selector, key_type: TypeInformation | None = None) -> Any:
        """The key of the second stream."""
        raise JoinIncomplete(*self._missing)

    def window(self, assigner: WindowAssigner[Any, Any]) -> Any:
        """The windows in which records meet."""
        raise JoinIncomplete(*self._missing)

    def apply(self, function: Any, output_type: TypeInformation | None = None) -> Any:
        """The function of what meets."""
        raise JoinIncomplete(*self._missing)


class _TwoStreams(_Steps):
    _pairs: bool

    def __init__(self, input1: DataStream, input2: DataStream) -> None:
        if input1._env is not input2._env:
            msg = "the two streams belong to different environments"
            raise UserError(msg, hint="build both from one StreamExecutionEnvironment")
        self._input1, self._input2 = input1, input2

    def where(self, key_selector: Selector, key_type: TypeInformation | None = None) -> Where:
        """The key of the first stream, by a function of the record or the name or position of a field."""
        return Where(self._input1.key_by(key_selector, key_type), self._input2, self._pairs)


class JoinedStreams(_TwoStreams):
    """Two streams whose pairs are joined in windows."""

    _pairs = True


class CoGroupedStreams(_TwoStreams):
    """Two streams whose records are grouped together in windows."""

    _pairs = False


class Where(_Steps):
    """A join whose first stream has a key."""

    _missing = ("key for the second stream", "where(key).equal_to(key)")

    def __init__(self, input1: KeyedStream, input2: DataStream, pairs: bool) -> None:
        self._input1, self._input2, self._pairs = input1, input2, pairs

    def equal_to(self, key_selector: Selector, key_type: TypeInformation | None = None) -> EqualTo:
        """The key of the second stream."""
        keyed = self._input2.key_by(key_selector, key_type)
        return EqualTo(self._input1, keyed, common_keys(self._input1, keyed), self._pairs)


class EqualTo(_Steps):
    """A join whose streams have keys."""

    _missing = ("window", "where(key).equal_to(key).window(assigner)")

    def __init__(
        self, input1: KeyedStream, input2: KeyedStream, keys: tuple[KeySelection, KeySelection], pairs: bool
    ) -> None:
        self._input1, self._input2, self._keys, self._pairs = input1, input2, keys, pairs

    def window(self, assigner: WindowAssigner[Any, Any]) -> WithWindow:
        """The windows in which records meet."""
        return WithWindow(self._input1, self._input2, self._keys, assigner, self._pairs)


class WithWindow(Windows):
    """A join in windows. Assigners, triggers and evictors see records as `TaggedUnion`; so does a late output."""

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
        """The tagged union of both streams' records."""
        return union_type(self._stream.get_type(), self._second.get_type())

    def apply(self, function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """The result of a function of each pair (join) or of both groups (co_group)."""
        if self._pairs:
            flat = isinstance(function, FlatJoinFunction)
            called: Any = function if flat else as_function(function, JoinFunction)
            kind = result_type(output_type, called.join, element=flat)
        else:
            called = as_function(function, CoGroupFunction)
            kind = result_type(output_type, called.co_group, element=True)
        return self._apply("Join" if self._pairs else "CoGroup", kind, None, CallJoin(called))

    def _add(self, name: str, spec: Any, kind: TypeInformation) -> DataStream:
        env = self._stream._env
        number = env._program.add(
            f"{type(self._assigner).__name__}, {name}",
            WindowJoinSpec(spec, self._keys),
            kind,
            both_inputs(self._first, self._second, self._keys),
            key_type=self._key.key_type,
        )
        return env._stream(number)


class IntervalJoin:
    """Two keyed streams whose records meet when their times are near."""

    def __init__(self, stream1: KeyedStream, stream2: Any) -> None:
        if getattr(stream2, "_key_selection", lambda: None)() is None:
            msg = "an interval join needs two keyed streams"
            raise UserError(msg, hint="a.key_by(...).interval_join(b.key_by(...))")
        self._streams = (stream1, stream2)
        self._keys = common_keys(stream1, stream2)

    def between(self, lower_bound: TimeSpan, upper_bound: TimeSpan) -> IntervalJoined:
        """A record at time t meets those of the second stream from t + lower_bound to t + upper_bound."""
        return IntervalJoined(self._streams, self._keys, millis(lower_bound), millis(upper_bound))

    def process(self, process_join_function: Any, output_type: TypeInformation | None = None) -> Any:
        """Not before its bounds are said."""
        msg = "this interval join has no bounds"
        raise UserError(msg, hint="interval_join(other).between(lower, upper).process(function)")


class IntervalJoined:
    """An interval join with its bounds, both included unless it is said otherwise."""

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
        """The lower bound itself is out."""
        self._exclusive[0] = True
        return self

    def upper_bound_exclusive(self) -> IntervalJoined:
        """The upper bound itself is out."""
        self._exclusive[1] = True
        return self

    def side_output_left_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Send late records of the first stream to a side output."""
        self._late[0] = output_tag
        return self

    def side_output_right_late_data(self, output_tag: OutputTag) -> IntervalJoined:
        """Send late records of the second stream to a side output."""
        self._late[1] = output_tag
        return self

    def process(
        self, process_join_function: ProcessJoinFunction, output_type: TypeInformation | None = None
    ) -> DataStream:
        """The results of a function of each pair."""
        function = as_function(process_join_function, ProcessJoinFunction)
        lower, upper = self._lower + self._exclusive[0], self._upper - self._exclusive[1]
        if lower > upper:
            raise EmptyInterval(lower, upper)
        one, two = self._streams
        tags = [None if tag is None else tag.tag_id for tag in self._late]
        spec = IntervalJoinSpec(
            function, self._keys, (one.get_type(), two.get_type()), lower, upper, (tags[0], tags[1])
        )
        env = one._env
        number = env._program.add(
            "Interval Join",
            spec,
            result_type(output_type, function.process_element, element=True),
            both_inputs(one, two, self._keys),
            key_type=self._keys[0].key_type,
        )
        return env._stream(number)


def common_keys(one: KeyedStream, two: KeyedStream) -> tuple[KeySelection, KeySelection]:
    """The keys of two streams, if equal keys can meet: an untyped key takes the type of the other one."""
    first, second = one._key_selection(), two._key_selection()
    untyped = Types.PICKLED_BYTE_ARRAY()
    if untyped in (first.key_type, second.key_type):
        kind = second.key_type if first.key_type == untyped else first.key_type
        return dataclasses.replace(first, key_type=kind), dataclasses.replace(second, key_type=kind)
    if first.key_type != second.key_type:
        raise KeysDiffer(first.key_type, second.key_type)
    return first, second


def both_inputs(one: KeyedStream, two: KeyedStream, keys: tuple[KeySelection, KeySelection]) -> tuple[Input, ...]:
    """The two streams as the inputs of one operator, each dealt out by its key."""
    return tuple(
        Input(
            each.upstream, side, each.tag, Hash(keys[side]) if isinstance(each.partitioner, Hash) else each.partitioner
        )
        for side, stream in enumerate((one, two))
        for each in stream._inputs
    )
