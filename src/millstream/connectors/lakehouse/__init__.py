"""Sources and sinks of Delta and Iceberg tables; sinks make one commit for each checkpoint."""

from millstream.connectors.lakehouse.delta_sink import DeltaSink
from millstream.connectors.lakehouse.delta_source import DeltaSource
from millstream.connectors.lakehouse.iceberg_catalog import TableLoader
from millstream.connectors.lakehouse.iceberg_sink import IcebergSink
from millstream.connectors.lakehouse.iceberg_source import IcebergSource

__all__ = ["DeltaSink", "DeltaSource", "IcebergSink", "IcebergSource", "TableLoader"]
