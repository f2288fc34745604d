"""The limit of rows of a mini-batch.

Promises: a mini-batch that has a limit ends with exactly the row that reaches it, wherever batches begin and end.
Does not know: what ends a mini-batch otherwise: the end of the epoch, or a watermark."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.runtime.batch import Batch


class MiniBatch:
    """Counts the rows of the current mini-batch. `limit` is the maximum number of rows, None for no limit."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._count = 0

    def restart(self) -> None:
        """Begin a new mini-batch."""
        self._count = 0

    def split(self, batch: Batch) -> Iterator[tuple[Batch, bool]]:
        """Yield the parts of a batch in order, each with whether it completes the mini-batch; then a new one begins."""
        start, size = 0, len(batch)
        while self._limit is not None and size - start >= self._limit - self._count:
            stop = start + self._limit - self._count
            self._count = 0
            yield batch if stop - start == size else batch.slice(start, stop), True
            start = stop
        if start < size:
            self._count += size - start
            yield batch.slice(start, size) if start else batch, False
