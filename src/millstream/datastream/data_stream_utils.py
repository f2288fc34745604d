"""Flink's `DataStreamUtils`: what is done to streams by those who know more about them than the program says.

Promises: a stream taken as keyed has the same records in the same subtasks.
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
        """A stream that is partitioned as `key_by` would do it, as a keyed stream without an exchange.

        The job fails with the key and the record if that is not so. The operators that follow need the parallelism of
        the stream."""
        key = stream.key_by(key_selector, key_type)._key_selection()
        inputs = tuple(Input(each.upstream, tag=each.tag, partitioner=Forward()) for each in stream._inputs)
        number = stream._env._program.add(
            "Reinterpreted", ReinterpretSpec(key), stream.get_type(), inputs, key_type=key.key_type, follows_input=True
        )
        return KeyedStream(stream._env._stream(number), key, Forward())
