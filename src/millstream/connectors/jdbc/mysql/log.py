"""Inspects the binary log of one server by SQL statements: where it starts and ends, and the number of events in
between.

Promises: positions are ends of events, never between a table map and its row events. This module does not register as a
replica, so it does not interfere with the connection of the reader.
Does not know: values, snapshots."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from millstream.connectors.jdbc.cdc.captured import CannotCapture
from millstream.connectors.jdbc.driver import DatabaseRefused
from millstream.connectors.jdbc.mysql.binlog import (
    Event,
    LogDecoder,
    PositionGone,
    file_of,
    offset_of,
    position_of,
)
from millstream.connectors.jdbc.mysql.driver import MysqlSession, dump_binlog

_PAGE = 1000  # the number of events that one statement lists
_BYTES_A_ROW = 40  # the estimated size of a row in the log, in bytes
_TABLE_ID = re.compile(r"table_id: (\d+)(?: \((.*)\))?")


@dataclass(frozen=True, slots=True)
class Scanned:
    """The end of a part of the log, and the approximate number of rows of captured tables in it."""

    end: int
    rows: int


class BinaryLog:
    """One server's log, through one session."""

    def __init__(self, session: MysqlSession, url: str, server_id: int) -> None:
        self._session, self._url, self._server_id = session, url, server_id
        self._base: str | None = None
        self._status = "SHOW MASTER STATUS"

    def current(self) -> int:
        """Return the position at which the log ends now."""
        rows = self._show_status()
        if not rows:
            message = "the server writes no binary log, or the user is not allowed to read it"
            raise CannotCapture(message, hint="set log_bin, and GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.*")
        file, offset = rows[0][:2]
        self._base = file.rpartition(".")[0]
        return position_of(file, int(offset))

    def _show_status(self) -> list[tuple[str, ...]]:
        try:
            return self._session.query("cannot read the position of the binary log", self._status)
        except DatabaseRefused:
            if self._status != "SHOW MASTER STATUS":
                raise
            self._status = "SHOW BINARY LOG STATUS"  # the name of the statement since MySQL 8.4
            return self._session.query("cannot read the position of the binary log", self._status)

    def file(self, position: int) -> str:
        """Return the name of the file of a position."""
        if self._base is None:
            self.current()
        return file_of(position, self._base or "")

    def first(self) -> int:
        """Return the start of the oldest file."""
        files = self._session.query("cannot list the binary logs", "SHOW BINARY LOGS")
        return position_of(files[0][0], 4)

    def check_available(self, position: int) -> None:
        """Raise `PositionGone` unless the log still has this position."""
        if not self.first() <= position <= self.current():
            begin = self.describe(self.first())
            message = f"the server's binary log has no {self.describe(position)}: it begins with {begin}"
            raise PositionGone(
                message,
                hint="start a new job with a snapshot, and keep binary logs longer: binlog_expire_logs_seconds",
            )

    def describe(self, position: int) -> str:
        """Return a position as text, such as `mysql-bin.000003/154`."""
        return f"{self.file(position)}:{offset_of(position)}"

    def scan(self, start: int, stop: int, tables: Collection[str], max_rows: int, max_bytes: int) -> Scanned:
        """Return the end of a part of the log that has about this many rows or bytes."""
        position, rows, size = start, 0, 0
        captured: dict[str, bool] = {}
        inside = False
        for kind, info, begin, end in self._list_events(start):
            if begin >= stop:
                break
            position = end
            if kind == "table_map":
                match = _TABLE_ID.search(info)
                if match is not None:
                    captured[match[1]] = match[2] in tables
                inside = True
            elif "_rows" in kind:
                match = _TABLE_ID.search(info)
                if match is not None and captured.get(match[1], True):
                    rows += max((end - begin) // _BYTES_A_ROW, 1)
                    size += end - begin
                inside = True
            else:
                inside = False
            is_transaction_open = inside or kind in ("gtid", "annotate_rows", "rows_query") or info == "BEGIN"
            if (rows >= max_rows or size >= max_bytes) and not is_transaction_open:
                break
        return Scanned(max(min(position, stop), start), rows)

    def _list_events(self, start: int) -> Iterator[tuple[str, str, int, int]]:
        """Yield type, description, begin and end of the events from a position on."""
        position = start
        while True:
            file = self.file(position)
            events = self._session.query(
                "cannot list the events of the binary log",
                f"SHOW BINLOG EVENTS IN '{file}' FROM {offset_of(position)} LIMIT {_PAGE}",
            )
            for _, begin, kind, _, end, info in events:
                if kind == "Rotate":
                    position = position_of(info.partition(";")[0], 4)
                    break
                position = position_of(file, int(end))
                yield kind.lower(), info, position_of(file, int(begin)), position
            else:
                if len(events) < _PAGE:
                    if position >> 40 == self.current() >> 40:
                        return
                    # after a crash of the server, a file does not end with a rotate event
                    position = ((position >> 40) + 1) << 40 | 4

    def events(self, start: int, stop: int) -> Iterator[Event]:
        """Yield the decoded events between two positions; `PositionGone` if the log ends before."""
        decoder = LogDecoder(start)
        packets = dump_binlog(self._url, self.file(start), offset_of(start), self._server_id)
        try:
            yield from decoder.events(packets, stop)
        finally:
            packets.close()
        if decoder.position < stop:
            message = f"the binary log ends at {self.describe(decoder.position)}, before {self.describe(stop)}"
            raise PositionGone(message, hint="if the server's log was reset, start a new job with a snapshot")

    def find(self, wanted: Callable[[Event], bool], start: int | None = None) -> int:
        """Return the start of the first transaction that satisfies `wanted`; the end of the log if there is none."""
        stop = self.current()
        for event in self.events(self.first() if start is None else start, stop):
            if event.op == "G" and wanted(event):
                return event.begin
        return stop
