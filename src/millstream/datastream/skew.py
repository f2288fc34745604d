"""Two-phase aggregation for skewed keys.

Promises: the results are those of the windows without it; the records of one key are first aggregated in several
subtasks.
Does not know: which keys are frequent; all keys are treated in the same way.

An alternative is the option `millstream.pre-aggregation.enabled`, which needs no change to a program."""

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
    """Two-phase aggregation is not possible with these arguments."""


class _Salt(MapFunction, CheckpointedFunction):
    """Adds a bucket number to records, round-robin. The last number is operator state, so that a replay assigns the
    same numbers."""

    def __init__(self, buckets: int) -> None:
        self._buckets, self._bucket = buckets, 0

    def initialize_state(self, context: Any) -> None:
        self._state = context.get_operator_state_store().get_list_state(ListStateDescriptor("turn", Types.LONG()))
        self._bucket = sum(self._state.get()) % self._buckets

    def map(self, value: Any) -> tuple[int, Any]:
        self._bucket = (self._bucket + 1) % self._buckets
        return self._bucket, value

    def snapshot_state(self, context: Any) -> None:
        self._state.update([self._bucket])


def salted(
    stream: DataStream,
    key: Callable[[Any], Any] | KeySelector,
    reduce: Callable[[Any, Any], Any] | ReduceFunction,
    buckets: int,
    window: TumblingEventTimeWindows,
    key_type: TypeInformation | None = None,
) -> DataStream:
    """Compute `stream.key_by(key).window(window).reduce(reduce)` in two phases, for keys that are much more frequent.

    The first phase reduces the records of each key in several buckets, which run in different subtasks. The second
    phase reduces the results of the buckets.

    Args:
        stream: The stream.
        key: A function that returns the key of a record.
        reduce: An associative and commutative function of two records that returns a record with the same key.
        buckets: The number of buckets, a small multiple of the parallelism.
        window: The windows.
        key_type: The type of the key.

    Raises:
        NotSalted: The number of buckets or the windows are not possible.

    """
    if not isinstance(buckets, int) or buckets < 1:
        msg = f"the number of buckets must be an int of at least 1, not {buckets!r}"
        raise NotSalted(msg, hint="use a small multiple of the parallelism")
    if type(window) is not TumblingEventTimeWindows:
        msg = f"results of the first phase would not be in the same windows again with {window!r}"
        raise NotSalted(msg, hint="use TumblingEventTimeWindows, or millstream.pre-aggregation.enabled")
    selector: KeySelector = as_function(key, KeySelector)
    reducer: ReduceFunction = as_function(reduce, ReduceFunction)
    select, function = selector.get_key, reducer.reduce
    record_type, env = stream.get_type(), stream._env
    inputs = tuple(Input(edge.upstream, tag=edge.tag) for edge in stream._inputs)
    salted_type = Types.TUPLE([Types.INT(), record_type])
    salt_id = env._program.add("Salt", ElementwiseSpec(_Salt(buckets)), salted_type, inputs, follows_input=True)
    bucket_results = (
        env._stream(salt_id)
        .key_by(lambda salt_and_value: (select(salt_and_value[1]), salt_and_value[0]))
        .window(window)
        .reduce(lambda first, second: (first[0], function(first[1], second[1])))
        .map(lambda salt_and_value: salt_and_value[1], record_type)
    )
    return bucket_results.key_by(select, key_type).window(window).reduce(reduce)
