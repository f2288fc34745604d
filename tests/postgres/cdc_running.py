"""Runs a source of changes as a JobMaster does, and applies its rows to a table in memory."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

from millstream.connector.source import Budget, ReaderContext, Source, SplitRange
from millstream.types.row import Row, RowKind


class Mirror:
    """A table built from changes. A change that does not fit the rows is an error: one was lost, repeated, or came too
    early."""

    def __init__(self, keys: Sequence[str], *, full: bool = False) -> None:
        self.rows: dict[tuple[Any, ...], list[Any]] = {}
        self.keys, self.full = keys, full

    def apply(self, row: Row) -> None:
        key = tuple(row[name] for name in self.keys)
        values = list(row)
        match row.get_row_kind():
            case RowKind.INSERT:
                assert key not in self.rows, f"{row} came twice, there is {self.rows[key]}"
                self.rows[key] = values
            case RowKind.UPDATE_BEFORE:
                assert self.rows.pop(key, None) == values, f"{row} was never there"
            case RowKind.UPDATE_AFTER:
                assert (key in self.rows) != self.full, f"{row} updates nothing"
                self.rows[key] = values
            case RowKind.DELETE:
                gone = self.rows.pop(key, None)
                assert gone is not None, f"{row} deletes nothing"
                assert not self.full or gone == values


class Running:
    """A running source: its epochs are planned, logged and read; checkpoints and crashes come on request."""

    def __init__(self, source: Source, mirror: Mirror, records: int = 10) -> None:
        self.source, self.mirror, self.budget = source, mirror, Budget(records, 1 << 30, 0)
        self.saved: tuple[Any, Any] = (None, copy.deepcopy(mirror.rows))
        self.log: list[list[SplitRange]] = []
        self._start(None)

    def _start(self, state: Any) -> None:
        self.enumerator = self.source.create_enumerator(1, state)
        self.reader = self.source.create_reader(ReaderContext(0, 1, 7))

    def epoch(self, replayed: list[SplitRange] | None = None) -> int:
        """Plan and read one epoch; return the number of ranges."""
        planned = replayed
        if planned is None:
            planned = [_copied(part) for part in self.enumerator.plan(self.budget)]
            if planned:
                self.log.append(planned)
        else:
            self.enumerator.replayed(planned)
        for part in planned:
            if part.records == 0:  # no task reads it
                continue
            for read in self.reader.read(part):
                assert len(read.values) == len(read.timestamps)
                for row in read.values:
                    self.mirror.apply(row)
        return len(planned)

    def checkpoint(self) -> None:
        self.saved = (json.loads(json.dumps(self.enumerator.snapshot())), copy.deepcopy(self.mirror.rows))
        self.log = []
        self.enumerator.acknowledge()

    def crash(self) -> None:
        """Restore the checkpoint, and replay the plans that were logged after it."""
        self.close()
        state, rows = self.saved
        self.mirror.rows = copy.deepcopy(rows)
        self._start(state)
        for planned in self.log:
            self.epoch(planned)

    def drain(self, limit: int = 10_000) -> None:
        """Run epochs until two in a row are empty."""
        quiet = 0
        for _ in range(limit):
            quiet = 0 if self.epoch() else quiet + 1
            if quiet == 2 or self.enumerator.finished():
                return
        raise AssertionError(limit)

    def close(self) -> None:
        self.enumerator.close()
        self.reader.close()


def _copied(part: SplitRange) -> SplitRange:
    return SplitRange.from_json(json.loads(json.dumps(part.to_json())))
