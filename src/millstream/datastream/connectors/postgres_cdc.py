"""Changes of PostgreSQL tables as a source, under the names of Flink CDC."""

from millstream.connectors.jdbc.cdc import (
    Change,
    ChangeDeserializer,
    JsonDebeziumDeserializationSchema,
    PostgresSource,
    PostgresSourceBuilder,
    RowDeserializer,
    StartupOptions,
)

__all__ = [
    "Change",
    "ChangeDeserializer",
    "JsonDebeziumDeserializationSchema",
    "PostgresSource",
    "PostgresSourceBuilder",
    "RowDeserializer",
    "StartupOptions",
]
