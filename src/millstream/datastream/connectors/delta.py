"""Delta tables as sinks and sources, under the names of the Delta connector for Flink."""

from millstream.connectors.lakehouse import DeltaSink, DeltaSource

__all__ = ["DeltaSink", "DeltaSource"]
