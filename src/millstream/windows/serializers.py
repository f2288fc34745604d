"""Serializers of windows, in Flink's format: big-endian 64-bit integers.

Promises: `deserialize` reads what `serialize` of the same class has written.
Does not know: where the bytes are stored."""

from __future__ import annotations

import struct
from typing import BinaryIO

from millstream.serialization.serializer import TypeSerializer
from millstream.windows.window import CountWindow, GlobalWindow, TimeWindow

TWO_LONGS = struct.Struct(">qq")
ONE_LONG = struct.Struct(">q")


class TimeWindowSerializer(TypeSerializer[TimeWindow]):
    """Serializes the start and the end of a time window.

    Example:
        >>> from io import BytesIO
        >>> stream = BytesIO()
        >>> TimeWindowSerializer().serialize(TimeWindow(0, 10_000), stream)
        >>> TimeWindowSerializer().deserialize(BytesIO(stream.getvalue()))
        TimeWindow(start=0, end=10000)

    """

    def __init__(self) -> None:
        super().__init__()

    def serialize(self, element: TimeWindow, stream: BinaryIO) -> None:
        """Write 16 bytes."""
        stream.write(TWO_LONGS.pack(element.start, element.end))

    def deserialize(self, stream: BinaryIO) -> TimeWindow:
        """Read 16 bytes."""
        return TimeWindow(*TWO_LONGS.unpack(stream.read(TWO_LONGS.size)))


class CountWindowSerializer(TypeSerializer[CountWindow]):
    """Serializes the number of a count window.

    Example:
        >>> from io import BytesIO
        >>> stream = BytesIO()
        >>> CountWindowSerializer().serialize(CountWindow(3), stream)
        >>> CountWindowSerializer().deserialize(BytesIO(stream.getvalue()))
        CountWindow(id=3)

    """

    def __init__(self) -> None:
        super().__init__()

    def serialize(self, element: CountWindow, stream: BinaryIO) -> None:
        """Write 8 bytes."""
        stream.write(ONE_LONG.pack(element.id))

    def deserialize(self, stream: BinaryIO) -> CountWindow:
        """Read 8 bytes."""
        return CountWindow(*ONE_LONG.unpack(stream.read(ONE_LONG.size)))


class GlobalWindowSerializer(TypeSerializer[GlobalWindow]):
    """Serializes the global window as one zero byte.

    Example:
        >>> from io import BytesIO
        >>> stream = BytesIO()
        >>> GlobalWindowSerializer().serialize(GlobalWindow(), stream)
        >>> GlobalWindowSerializer().deserialize(BytesIO(stream.getvalue()))
        GlobalWindow

    """

    def __init__(self) -> None:
        super().__init__()

    def serialize(self, element: GlobalWindow, stream: BinaryIO) -> None:
        """Write 1 byte."""
        stream.write(b"\0")

    def deserialize(self, stream: BinaryIO) -> GlobalWindow:
        """Read 1 byte."""
        stream.read(1)
        return GlobalWindow.get()
