"""PyFlink's `datastream.connectors.number_seq`."""

from millstream.connectors.sequence import NumberSequenceSource

__all__ = ["NumberSequenceSource"]
