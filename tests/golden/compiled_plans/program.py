"""The statements whose plans and savepoints are kept: aggregates, windows, joins, ranks, patterns.

They must stay as they are: a plan and a savepoint of every release are run on. Rows come from a feed, go to output that
can be compared, and are never late; so the final tables do not depend on where a job was stopped."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from millstream.connector.sink import SinkWriter, WriterContext
from millstream.sql.columns import create_row_type_info
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSink, TableSource
from millstream.sql.connectors.registry import register
from millstream.sql.types.changelog_mode import ChangelogMode
from millstream.table import EnvironmentSettings, TableEnvironment
from millstream.testing.feed import Feed
from millstream_chaos.outputs.visible_output import VisibleOutput, read_visible_rows
from millstream_chaos.storage.memory_files import MemoryFileSystem, Named

OPENING = datetime(2026, 1, 1)  # noqa: DTZ001  # TIMESTAMP has no zone
FEEDS: dict[str, Feed] = {}
OUTPUT: dict[str, Named] = {}

TABLES = """
CREATE TABLE events (k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'golden-feed');
CREATE TABLE names (k STRING, name STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'golden-feed');
CREATE TABLE groups (k STRING, n BIGINT, total INT, mean INT, kinds BIGINT) WITH ('connector' = 'golden-shown');
CREATE TABLE windows (k STRING, opened TIMESTAMP(3), n BIGINT, best INT) WITH ('connector' = 'golden-shown');
CREATE TABLE sessions (k STRING, closed TIMESTAMP(3), n BIGINT) WITH ('connector' = 'golden-shown');
CREATE TABLE joined (k STRING, v INT, name STRING) WITH ('connector' = 'golden-shown');
CREATE TABLE outer_joined (k STRING, v INT, name STRING) WITH ('connector' = 'golden-shown');
CREATE TABLE near (k STRING, v INT, name STRING) WITH ('connector' = 'golden-shown');
CREATE TABLE latest (k STRING, v INT, ts TIMESTAMP(3)) WITH ('connector' = 'golden-shown');
CREATE TABLE earliest (k STRING, v INT, ts TIMESTAMP(3)) WITH ('connector' = 'golden-shown');
CREATE TABLE top (k STRING, v INT, place BIGINT) WITH ('connector' = 'golden-shown');
CREATE TABLE running (k STRING, v INT, total INT) WITH ('connector' = 'golden-shown');
CREATE TABLE rises (k STRING, low INT, high INT, n BIGINT) WITH ('connector' = 'golden-shown');
"""

STATEMENTS = """
INSERT INTO groups SELECT k, COUNT(*), SUM(v), AVG(v), COUNT(DISTINCT v) FROM events GROUP BY k;
INSERT INTO windows SELECT k, window_start, COUNT(*), MAX(v)
  FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end;
INSERT INTO sessions SELECT k, window_end, COUNT(*)
  FROM TABLE(SESSION(TABLE events PARTITION BY k, DESCRIPTOR(ts), INTERVAL '4' SECOND))
  GROUP BY k, window_start, window_end;
INSERT INTO joined SELECT e.k, e.v, n.name FROM events e JOIN names n ON e.k = n.k;
INSERT INTO outer_joined SELECT e.k, e.v, n.name FROM events e LEFT JOIN names n ON e.k = n.k AND e.v > 2;
INSERT INTO near SELECT e.k, e.v, n.name FROM events e JOIN names n
  ON e.k = n.k AND e.ts BETWEEN n.ts - INTERVAL '5' SECOND AND n.ts + INTERVAL '30' SECOND;
INSERT INTO latest SELECT k, v, ts FROM
  (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS r FROM events) WHERE r = 1;
INSERT INTO earliest SELECT k, v, ts FROM
  (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS r FROM events) WHERE r = 1;
INSERT INTO top SELECT k, v, r FROM
  (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, ts) AS r FROM events) WHERE r <= 2;
INSERT INTO running SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY ts) FROM events;
INSERT INTO rises SELECT * FROM events MATCH_RECOGNIZE (
  PARTITION BY k ORDER BY ts MEASURES FIRST(A.v) AS low, LAST(B.v) AS high, COUNT(B.v) AS n
  ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
  PATTERN (A B+ C) DEFINE B AS B.v > LAST(A.v), C AS C.v < LAST(B.v)) AS T;
"""


def _events(*rows: tuple[str, int, int]) -> list[tuple[str, int, datetime]]:
    return [(k, v, OPENING + timedelta(seconds=s)) for k, v, s in rows]


def _names(*rows: tuple[str, str, int]) -> list[tuple[str, str, datetime]]:
    return [(k, name, OPENING + timedelta(seconds=s)) for k, name, s in rows]


FIRST = {
    "events": _events(("a", 1, 1), ("b", 5, 2), ("a", 3, 3), ("a", 4, 4), ("b", 2, 6), ("c", 7, 11), ("b", 6, 12)),
    "names": _names(("a", "ann", 1), ("b", "bob", 9)),
}
LATER = {
    "events": _events(("a", 2, 13), ("c", 1, 14), ("b", 1, 15), ("c", 9, 22), ("a", 9, 30), ("a", 3, 40)),
    "names": _names(("c", "cid", 16), ("a", "amy", 29)),
}


def _read(context: TableContext) -> TableSource:
    schema = context.schema
    name = context.name[-1]
    return TableSource(Feed(FEEDS[name].name, create_row_type_info(schema)), schema)


class Shown(VisibleOutput):
    """Changes as (kind, columns)."""

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return _Kinds(super().create_writer(context))


class _Kinds(SinkWriter):
    def __init__(self, inner: SinkWriter) -> None:
        self._inner = inner

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        self._inner.write([(str(row.get_row_kind()), tuple(map(str, row))) for row in values], timestamps)

    def prepare_commit(self) -> list[Any]:
        return self._inner.prepare_commit()


def _write(context: TableContext) -> TableSink:
    return TableSink(Shown(OUTPUT["files"], f"/out/{context.name[-1]}"), ChangelogMode.RETRACT)


register(TableConnector("golden-feed", read=_read))
register(TableConnector("golden-shown", write=_write))


def open_world() -> MemoryFileSystem:
    """Empty feeds, and a place for output."""
    FEEDS.update({name: Feed.of() for name in FIRST})
    files = MemoryFileSystem()
    OUTPUT["files"] = Named.of(files)
    return files


def give(rows: dict[str, list[Any]]) -> None:
    """More rows."""
    for name, values in rows.items():
        FEEDS[name].give(*values)


def close() -> None:
    """No more rows."""
    for feed in FEEDS.values():
        feed.close()


def environment(settings: dict[str, str], *, tables: bool = True) -> TableEnvironment:
    """A session, with the tables if they are wanted."""
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {"execution.checkpointing.interval": "5 ms", **settings}.items():
        env.get_config().set(key, value)
    for statement in TABLES.split(";")[:-1] if tables else ():
        env.execute_sql(statement)
    return env


def statement_set(text: str = STATEMENTS) -> str:
    """The statements as one."""
    return f"EXECUTE STATEMENT SET BEGIN {text} END"


def changes(files: MemoryFileSystem) -> dict[str, list[str]]:
    """What each table has been told, in any order."""
    if not files.exists("/out"):
        return {}
    return {name: read_visible_rows(files, f"/out/{name}") for name in sorted(files.list("/out"))}


def final(told: dict[str, list[str]]) -> dict[str, list[str]]:
    """The rows that are left in each table after all changes."""
    made = {}
    for name, rows in told.items():
        counts: Counter[str] = Counter()
        for row in rows:
            kind, cells = ast.literal_eval(row)
            counts[cells] += 1 if kind in ("+I", "+U") else -1
        assert all(count >= 0 for count in counts.values()), (name, counts)
        made[name] = sorted(counts.elements())
    return made
