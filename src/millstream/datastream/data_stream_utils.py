"""Flink's `DataStreamUtils`: operations on streams that rely on what the user knows about their partitioning.

Promises: a stream that is reinterpreted as keyed has the same records in the same subtasks.
Does not know: how keys are checked; an operator does that while the job runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream.datastream.data_stream import DataStream, KeyedStream
from millstream.functions import KeySelector
from millstream.graph.transformations import Input
from millstream.runtime.operators.reinterpret import ReinterpretSpec
from millstream.runtime.partitioners import Forward
from millstream.types.factory import TypeInformation


class DataStreamUtils:
    """Static methods on streams."""

    @staticmethod
    def reinterpret_as_keyed_stream(
        stream: DataStream,
        key_selector: Callable[[Any], Any] | KeySelector | str | int,
        key_type: TypeInformation | None = None,
    ) -> KeyedStream:
        """Return a stream as a keyed stream without an exchange: it is already partitioned as `key_by` would do it.

        The job fails, and names the key and the record, if a record is in the wrong subtask. Operators on the keyed
        stream must have the parallelism of the stream.

        Args:
            stream: The stream.
            key_selector: A function that returns the key of a record, or the name or index of a field.
            key_type: The type of the key.

        """
        key = stream.key_by(key_selector, key_type)._key_selection()
        inputs = tuple(Input(edge.upstream, tag=edge.tag, partitioner=Forward()) for edge in stream._inputs)
        transformation = stream._env._program.add(
            "Reinterpreted", ReinterpretSpec(key), stream.get_type(), inputs, key_type=key.key_type, follows_input=True
        )
        return KeyedStream(stream._env._stream(transformation), key, Forward())
