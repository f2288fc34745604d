"""PyFlink's `datastream.output_tag`: names of side outputs."""

from millstream.model.output import OutputTag

__all__ = ["OutputTag"]
