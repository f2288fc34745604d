"""Delta and Iceberg tables: one commit for each checkpoint, and sources."""

from millstream.connectors.lakehouse.delta_sink import DeltaSink
from millstream.connectors.lakehouse.delta_source import DeltaSource
from millstream.connectors.lakehouse.iceberg_catalog import TableLoader
from millstream.connectors.lakehouse.iceberg_sink import IcebergSink
from millstream.connectors.lakehouse.iceberg_source import IcebergSource

__all__ = ["DeltaSink", "DeltaSource", "IcebergSink", "IcebergSource", "TableLoader"]
