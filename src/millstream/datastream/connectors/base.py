"""PyFlink's `datastream.connectors.base`: what connectors are made of."""

from enum import Enum

from millstream.connector.sink import Sink
from millstream.connector.source import Source

__all__ = ["DeliveryGuarantee", "Sink", "Source"]


class DeliveryGuarantee(Enum):
    """What a sink promises about records when something fails."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2
