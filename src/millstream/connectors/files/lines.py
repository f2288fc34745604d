r"""Lines of a range of bytes: a line belongs to the range that holds its first byte.

Promises: however a file is cut into ranges, each line comes from exactly one of them, whole; a line ends with `\n`,
`\r\n` or `\r`, or with the file. Memory is bounded by the chunk and the longest line.
Does not know: character sets, records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

CHUNK = 8 << 20


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines as they stand in the file, from byte `offset` on."""

    offset: int
    data: bytes

    def lines(self) -> list[bytes]:
        """The lines without their ends."""
        return self.data.splitlines()

    def offset_of(self, line: int) -> int:
        """Where the line with this index begins."""
        return self.offset + sum(map(len, self.data.splitlines(keepends=True)[:line]))


def blocks(file: BinaryIO, start: int, end: int | None, size: int | None, chunk: int = CHUNK) -> Iterator[Block]:
    """The lines of `file` that begin from `start` to before `end`, in order.

    `size` is where the file ends; None for both `end` and `size` reads on to the end, whatever its length."""
    if end is not None and start >= end:
        return
    # The line that holds the byte before `start` began before it: what follows its end is ours.
    base = max(start - 1, 0)
    file.seek(base)
    source = _Chunks(file, base, size)
    data = b""
    ours = start == 0
    step = chunk
    while True:
        more, last = source.read(step)
        data += more
        if not ours:
            first = _after_line_end(data, 0, last)
            if first is None:
                if last:
                    return
                # only a trailing \r may still tell something
                keep = 1 if data.endswith(b"\r") else 0
                base += len(data) - keep
                data = data[len(data) - keep :]
                continue
            base, data, ours = base + first, data[first:], True
        if end is not None and base >= end:
            return
        cut = None if end is None else _after_line_end(data, end - base - 1, last)
        if cut is not None:
            yield from _block(base, data[:cut])
            return
        cut = len(data) if last else _behind_last_line_end(data)
        yield from _block(base, data[:cut])
        if last:
            return
        # a line longer than all that was read: read more at a time, so that it is not copied again and again
        step = chunk if cut else max(chunk, len(data))
        base, data = base + cut, data[cut:]


def _block(offset: int, data: bytes) -> Iterator[Block]:
    if data:
        yield Block(offset, data)


def _after_line_end(data: bytes, index: int, last: bool) -> int | None:
    """Where the line ends that holds the byte at `index`, its end included; None if that is not known yet."""
    feed, back = data.find(b"\n", index), data.find(b"\r", index)
    if back >= 0 and (feed < 0 or back < feed):
        if back + 1 == len(data):
            return len(data) if last else None
        return back + 2 if data[back + 1] == 10 else back + 1
    return feed + 1 if feed >= 0 else None


def _behind_last_line_end(data: bytes) -> int:
    """Behind the last line end that is known to be complete; 0 if there is none."""
    # what follows a final \r may be its \n
    return max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1


class _Chunks:
    """A file in pieces, up to its size."""

    def __init__(self, file: BinaryIO, at: int, size: int | None) -> None:
        self._file, self._at, self._size = file, at, size

    def read(self, count: int) -> tuple[bytes, bool]:
        """The next bytes, and whether they are the last."""
        if self._size is None:
            data = self._file.read(count)
            return data, len(data) < count
        data = self._file.read(min(count, self._size - self._at))
        self._at += len(data)
        return data, self._at >= self._size or not data
