"""Sets of GTIDs, which say which transactions were read.

Promises: the notation of MySQL (`uuid:1-5:7, uuid:1-3`) and that of MariaDB (`0-1-42,1-1-7`).
Does not know: logs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from millstream.connectors.jdbc.mysql.binlog import Event
from millstream.connectors.jdbc.options import InvalidJdbcOption

_MARIADB = re.compile(r"(\d+)-(\d+)-(\d+)")
_MYSQL = re.compile(r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})((?::\d+(?:-\d+)?)+)")


@dataclass(frozen=True)
class GtidSet:
    """Transaction numbers by source: a domain in MariaDB, a server in MySQL."""

    intervals: tuple[tuple[str, int, int], ...]

    def contains(self, event: Event) -> bool:
        """Return whether the set contains the transaction that starts with an event."""
        assert event.gtid is not None
        source, number = event.gtid
        return any(name == source and first <= number <= last for name, first, last in self.intervals)


def parse_gtids(text: str) -> GtidSet:
    """Parse a set of GTIDs."""
    intervals: list[tuple[str, int, int]] = []
    for part in re.sub(r"\s", "", text).split(","):
        if mariadb := _MARIADB.fullmatch(part):
            intervals.append((mariadb[1], 0, int(mariadb[3])))
        elif mysql := _MYSQL.fullmatch(part):
            for interval in mysql[2].strip(":").split(":"):
                first, _, last = interval.partition("-")
                intervals.append((mysql[1].lower(), int(first), int(last or first)))
        elif part:
            message = f"{part!r} is not a GTID set"
            raise InvalidJdbcOption(message, hint="write uuid:1-5 as MySQL does, or 0-1-42 as MariaDB does")
    return GtidSet(tuple(intervals))
