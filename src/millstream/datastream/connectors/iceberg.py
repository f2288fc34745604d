"""Iceberg tables as sinks and sources, under the names of the Iceberg connector for Flink."""

from millstream.connectors.lakehouse import IcebergSink, IcebergSource, TableLoader

__all__ = ["IcebergSink", "IcebergSource", "TableLoader"]
