"""The SQL form of the keyed job: an OVER aggregate and a window aggregate, from Kafka to Kafka exactly once.

Promises: the output depends on the input only; `expected.compute_sql_lines` computes it in plain Python. Both outputs
have lines `stream key sequence ...`, with a sequence that grows within a key.
Does not know: faults."""

from __future__ import annotations

from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.table.table_environment import StreamTableEnvironment

WINDOW = 5_000
_INPUT = """\
CREATE TABLE events (
  k STRING, seq BIGINT, at_ms BIGINT, v BIGINT,
  ts AS TO_TIMESTAMP_LTZ(at_ms, 3),
  WATERMARK FOR ts AS ts - INTERVAL '0.200' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'input', 'properties.bootstrap.servers' = '{servers}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'format' = 'csv', 'csv.field-delimiter' = ' ')"""
_OUTPUT = """\
CREATE TABLE {name} (k STRING, line STRING) WITH (
  'connector' = 'kafka', 'topic' = '{name}', 'properties.bootstrap.servers' = '{servers}',
  'key.format' = 'raw', 'key.fields' = 'k', 'value.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY',
  'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'chaos-sql-{name}')"""
_RUNNING = """\
INSERT INTO running
SELECT k, 'S ' || k || ' ' || CAST(COUNT(*) OVER w AS STRING) || ' ' || CAST(at_ms AS STRING) || ' '
  || CAST(SUM(v) OVER w AS STRING)
FROM events
WINDOW w AS (PARTITION BY k ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"""
_WINDOWED = f"""\
INSERT INTO windowed
SELECT k, 'W ' || k || ' ' || CAST(first_ms - MOD(first_ms, {WINDOW}) AS STRING) || ' ' || CAST(n AS STRING) || ' '
  || CAST(total AS STRING)
FROM (
  SELECT k, MIN(at_ms) AS first_ms, COUNT(*) AS n, SUM(v) AS total
  FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '{WINDOW // 1000}' SECOND))
  GROUP BY k, window_start, window_end)"""


def add_statements(environment: StreamExecutionEnvironment, servers: str) -> None:
    """Add the statements to the program of an environment."""
    tables = StreamTableEnvironment.create(environment)
    tables.execute_sql(_INPUT.format(servers=servers))
    for name in ("running", "windowed"):
        tables.execute_sql(_OUTPUT.format(name=name, servers=servers))
    statements = tables.create_statement_set()
    statements.add_insert_sql(_RUNNING)
    statements.add_insert_sql(_WINDOWED)
    statements.attach_as_datastream()
