"""Changes of PostgreSQL tables: logical replication (pgoutput), snapshot first, exactly once."""

from millstream.connectors.jdbc.cdc.changes import (
    Change,
    ChangeDeserializer,
    JsonDebeziumDeserializationSchema,
    RowDeserializer,
)
from millstream.connectors.jdbc.cdc.source import PostgresSource, PostgresSourceBuilder, StartupOptions

__all__ = [
    "Change",
    "ChangeDeserializer",
    "JsonDebeziumDeserializationSchema",
    "PostgresSource",
    "PostgresSourceBuilder",
    "RowDeserializer",
    "StartupOptions",
]
