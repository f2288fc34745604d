"""PyFlink's `datastream.connectors.jdbc`: PostgreSQL as a sink; the source, exactly-once and lookups are ours."""

from millstream.connectors.jdbc import (
    JdbcAsyncLookupFunction,
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
    JdbcLookupFunction,
    JdbcSink,
    JdbcSource,
)

__all__ = [
    "JdbcAsyncLookupFunction",
    "JdbcConnectionOptions",
    "JdbcExactlyOnceOptions",
    "JdbcExecutionOptions",
    "JdbcLookupFunction",
    "JdbcSink",
    "JdbcSource",
]
