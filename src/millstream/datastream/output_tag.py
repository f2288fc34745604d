"""PyFlink's `datastream.output_tag`: names of side outputs."""

from millstream.state_descriptors.output_tag import OutputTag

__all__ = ["OutputTag"]
