"""Iceberg tables as sinks and sources, under the names of the Iceberg connector for Flink."""

from millstream.connectors.lakehouse import IcebergSink, IcebergSource, TableLoader
from millstream.connectors.lakehouse.iceberg_source import StreamingStartingStrategy

__all__ = ["IcebergSink", "IcebergSource", "StreamingStartingStrategy", "TableLoader"]
