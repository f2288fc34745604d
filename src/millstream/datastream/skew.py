"""Help against keys that are much more frequent than others: aggregation in two phases.

Promises: the windows' results without the help; the records of one key are dealt out over several subtasks first.
Does not know: which keys are hot; all are treated alike.

The other help is the option `millstream.pre-aggregation.enabled`, which needs no change to a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream.datastream.data_stream import DataStream
from millstream.errors import UserError
from millstream.functions import CheckpointedFunction, KeySelector, MapFunction, ReduceFunction, as_function
from millstream.graph.transformations import Input
from millstream.runtime.operators.map import ElementwiseSpec
from millstream.state_descriptors.descriptors import ListStateDescriptor
from millstream.types.factory import TypeInformation, Types
from millstream.windows.assigners import TumblingEventTimeWindows


class NotSalted(UserError):
    """Two-phase aggregation was asked for where it would not give the same results."""


class _Salt(MapFunction, CheckpointedFunction):
    """Deals records out in turn; where it stands is state, so that a retry deals them out alike."""

    def __init__(self, buckets: int) -> None:
        self._buckets, self._turn = buckets, 0

    def initialize_state(self, context: Any) -> None:
        self._state = context.get_operator_state_store().get_list_state(ListStateDescriptor("turn", Types.LONG()))
        self._turn = sum(self._state.get()) % self._buckets

    def map(self, value: Any) -> tuple[int, Any]:
        self._turn = (self._turn + 1) % self._buckets
        return self._turn, value

    def snapshot_state(self, context: Any) -> None:
        self._state.update([self._turn])


def salted(
    stream: DataStream,
    key: Callable[[Any], Any] | KeySelector,
    reduce: Callable[[Any, Any], Any] | ReduceFunction,
    buckets: int,
    window: TumblingEventTimeWindows,
    key_type: TypeInformation | None = None,
) -> DataStream:
    """`stream.key_by(key).window(window).reduce(reduce)` in two phases: each key's records in `buckets` parts, then the
    parts together. `reduce` must be associative and commutative, and give a record with the same key."""
    if not isinstance(buckets, int) or buckets < 1:
        msg = f"{buckets!r} buckets are not possible"
        raise NotSalted(msg, hint="give an int of at least 1, a small multiple of the parallelism")
    if type(window) is not TumblingEventTimeWindows:
        msg = f"partial results of {window!r} would not fall into the same windows again"
        raise NotSalted(msg, hint="use TumblingEventTimeWindows, or millstream.pre-aggregation.enabled")
    selector: KeySelector = as_function(key, KeySelector)
    reducer: ReduceFunction = as_function(reduce, ReduceFunction)
    select, function = selector.get_key, reducer.reduce
    kind, env = stream.get_type(), stream._env
    inputs = tuple(Input(each.upstream, tag=each.tag) for each in stream._inputs)
    pair = Types.TUPLE([Types.INT(), kind])
    number = env._program.add("Salt", ElementwiseSpec(_Salt(buckets)), pair, inputs, follows_input=True)
    parts = (
        env._stream(number)
        .key_by(lambda salt_and_value: (select(salt_and_value[1]), salt_and_value[0]))
        .window(window)
        .reduce(lambda one, other: (one[0], function(one[1], other[1])))
        .map(lambda salt_and_value: salt_and_value[1], kind)
    )
    return parts.key_by(select, key_type).window(window).reduce(reduce)
