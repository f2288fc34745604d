"""Windows as bytes, in Flink's layout: big-endian 64-bit integers.

Promises: what `serialize` writes, `deserialize` of the same class reads.
Does not know: who stores the bytes."""

from __future__ import annotations

import struct
from typing import BinaryIO

from millstream.serialization.serializer import TypeSerializer
from millstream.windows.window import CountWindow, GlobalWindow, TimeWindow

TWO_LONGS = struct.Struct(">qq")
ONE_LONG = struct.Struct(">q")


class TimeWindowSerializer(TypeSerializer[TimeWindow]):
    """Start and end."""

    def __init__(self) -> None:
        super().__init__()

    def serialize(self, element: TimeWindow, stream: BinaryIO) -> None:
        """Write 16 bytes."""
        stream.write(TWO_LONGS.pack(element.start, element.end))

    def deserialize(self, stream: BinaryIO) -> TimeWindow:
        """Read 16 bytes."""
        return TimeWindow(*TWO_LONGS.unpack(stream.read(TWO_LONGS.size)))


class CountWindowSerializer(TypeSerializer[CountWindow]):
    """The number."""

    def __init__(self) -> None:
        super().__init__()

    def serialize(self, element: CountWindow, stream: BinaryIO) -> None:
        """Write 8 bytes."""
        stream.write(ONE_LONG.pack(element.id))

    def deserialize(self, stream: BinaryIO) -> CountWindow:
        """Read 8 bytes."""
        return CountWindow(*ONE_LONG.unpack(stream.read(ONE_LONG.size)))


class GlobalWindowSerializer(TypeSerializer[GlobalWindow]):
    """A single zero byte."""

    def __init__(self) -> None:
        super().__init__()

    def serialize(self, element: GlobalWindow, stream: BinaryIO) -> None:
        """Write 1 byte."""
        stream.write(b"\0")

    def deserialize(self, stream: BinaryIO) -> GlobalWindow:
        """Read 1 byte."""
        stream.read(1)
        return GlobalWindow.get()
