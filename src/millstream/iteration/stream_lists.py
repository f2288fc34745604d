"""Lists of streams of different types, as the body of an iteration gets and returns them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from millstream.datastream.data_stream import DataStream
from millstream.errors import InvalidArgumentType


def check_streams(streams: tuple[Any, ...]) -> tuple[DataStream[Any], ...]:
    """Return the streams; raises for anything else."""
    for stream in streams:
        if not isinstance(stream, DataStream):
            msg = f"{stream!r} is not a stream"
            raise InvalidArgumentType(msg, hint="pass DataStreams")
    return streams


class DataStreamList:
    """A list of streams.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> streams = DataStreamList.of(env.from_collection([1]), env.from_collection(["a"]))
        >>> streams.size()
        2

    """

    def __init__(self, *streams: DataStream[Any]) -> None:
        self._streams = check_streams(streams)

    @classmethod
    def of(cls, *streams: DataStream[Any]) -> DataStreamList:
        """Create a list of streams.

        Args:
            *streams: The streams.

        """
        return cls(*streams)

    def get(self, index: int) -> DataStream[Any]:
        """Return the stream at an index.

        Args:
            index: The index, counted from 0.

        """
        return self._streams[index]

    def size(self) -> int:
        """Return the number of streams."""
        return len(self._streams)

    def __getitem__(self, index: int) -> DataStream[Any]:
        return self._streams[index]

    def __len__(self) -> int:
        return len(self._streams)

    def __iter__(self) -> Iterator[DataStream[Any]]:
        return iter(self._streams)


class ReplayableDataStreamList:
    """The constant inputs of a bounded iteration: some are emitted again in every round, the others only in the first.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> inputs = ReplayableDataStreamList.replay(env.from_collection([1])).and_no_replay(env.from_collection([2]))

    """

    def __init__(self, replayed: tuple[DataStream[Any], ...], not_replayed: tuple[DataStream[Any], ...]) -> None:
        self.replayed_streams, self.non_replayed_streams = check_streams(replayed), check_streams(not_replayed)

    @classmethod
    def replay(cls, *streams: DataStream[Any]) -> ReplayableDataStreamList:
        """Create a list of streams that are emitted again in every round.

        Args:
            *streams: The streams.

        """
        return cls(streams, ())

    @classmethod
    def not_replay(cls, *streams: DataStream[Any]) -> ReplayableDataStreamList:
        """Create a list of streams that are emitted in the first round only.

        Args:
            *streams: The streams.

        """
        return cls((), streams)

    def and_not_replay(self, *streams: DataStream[Any]) -> ReplayableDataStreamList:
        """Return a list with more streams that are emitted in the first round only.

        Args:
            *streams: The streams to add.

        """
        return ReplayableDataStreamList(self.replayed_streams, (*self.non_replayed_streams, *streams))

    and_no_replay = and_not_replay
