r"""Lines of a byte range: a line belongs to the range that contains its first byte.

Promises: for any division of a file into ranges, each line is read completely from exactly one of them; a line ends
with `\n`, `\r\n` or `\r`, or with the file. Memory is bounded by the chunk and the longest line.
Does not know: character sets, records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

CHUNK = 8 << 20


@dataclass(frozen=True, slots=True)
class Block:
    """Complete lines of a file, starting at `offset`."""

    offset: int
    data: bytes

    def lines(self) -> list[bytes]:
        """Return the lines without line endings."""
        return self.data.splitlines()

    def offset_of(self, line: int) -> int:
        """Return the offset of the line with this index."""
        return self.offset + sum(map(len, self.data.splitlines(keepends=True)[:line]))


def blocks(file: BinaryIO, start: int, end: int | None, size: int | None, chunk: int = CHUNK) -> Iterator[Block]:
    """Yield the lines of `file` that begin from `start` to before `end`, in order.

    `size` is the size of the file; with None for both `end` and `size`, the file is read to its end."""
    if end is not None and start >= end:
        return
    # The line that contains the byte before `start` belongs to the range before; this range begins after its end.
    base = max(start - 1, 0)
    file.seek(base)
    source = _Chunks(file, base, size)
    data = b""
    is_in_range = start == 0
    step = chunk
    while True:
        more, last = source.read(step)
        data += more
        if not is_in_range:
            first = _after_line_end(data, 0, last)
            if first is None:
                if last:
                    return
                # only a trailing \r can still be part of a line ending
                keep = 1 if data.endswith(b"\r") else 0
                base += len(data) - keep
                data = data[len(data) - keep :]
                continue
            base, data, is_in_range = base + first, data[first:], True
        if end is not None and base >= end:
            return
        cut = None if end is None else _after_line_end(data, end - base - 1, last)
        if cut is not None:
            yield from _block(base, data[:cut])
            return
        cut = len(data) if last else _after_last_line_end(data)
        yield from _block(base, data[:cut])
        if last:
            return
        # the line is longer than all that was read: read more at a time, so that it is not copied repeatedly
        step = chunk if cut else max(chunk, len(data))
        base, data = base + cut, data[cut:]


def _block(offset: int, data: bytes) -> Iterator[Block]:
    if data:
        yield Block(offset, data)


def _after_line_end(data: bytes, index: int, last: bool) -> int | None:
    """Return the end of the line that contains the byte at `index`, line ending included; None if it is unknown yet."""
    feed, back = data.find(b"\n", index), data.find(b"\r", index)
    if back >= 0 and (feed < 0 or back < feed):
        if back + 1 == len(data):
            return len(data) if last else None
        return back + 2 if data[back + 1] == 10 else back + 1
    return feed + 1 if feed >= 0 else None


def _after_last_line_end(data: bytes) -> int:
    """Return the offset after the last complete line ending; 0 if there is none."""
    # a final \r may be followed by its \n
    return max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1


class _Chunks:
    """Reads a file in chunks, up to its size."""

    def __init__(self, file: BinaryIO, at: int, size: int | None) -> None:
        self._file, self._at, self._size = file, at, size

    def read(self, count: int) -> tuple[bytes, bool]:
        """Return the next bytes, and whether they are the last."""
        if self._size is None:
            data = self._file.read(count)
            return data, len(data) < count
        data = self._file.read(min(count, self._size - self._at))
        self._at += len(data)
        return data, self._at >= self._size or not data
