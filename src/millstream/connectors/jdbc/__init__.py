"""PostgreSQL under the names of Flink's JDBC connector: scan, lookup, upsert, exactly-once; no jars."""

from millstream.connectors.jdbc.lookup import JdbcAsyncLookupFunction, JdbcLookupFunction
from millstream.connectors.jdbc.options import JdbcConnectionOptions, JdbcExactlyOnceOptions, JdbcExecutionOptions
from millstream.connectors.jdbc.sink import JdbcSink
from millstream.connectors.jdbc.source import JdbcSource

__all__ = [
    "JdbcAsyncLookupFunction",
    "JdbcConnectionOptions",
    "JdbcExactlyOnceOptions",
    "JdbcExecutionOptions",
    "JdbcLookupFunction",
    "JdbcSink",
    "JdbcSource",
]
