"""Changes of MySQL and MariaDB tables as a source, under the names of Flink CDC."""

from millstream.connectors.jdbc.cdc import (
    Change,
    ChangeDeserializer,
    JsonDebeziumDeserializationSchema,
    RowDeserializer,
)
from millstream.connectors.jdbc.mysql import MySqlSource, MySqlSourceBuilder, StartupOptions

__all__ = [
    "Change",
    "ChangeDeserializer",
    "JsonDebeziumDeserializationSchema",
    "MySqlSource",
    "MySqlSourceBuilder",
    "RowDeserializer",
    "StartupOptions",
]
