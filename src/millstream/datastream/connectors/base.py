"""PyFlink's `datastream.connectors.base`: base classes of sources and sinks, and delivery guarantees."""

from enum import Enum

from millstream.connector.sink import Sink
from millstream.connector.source import Source

__all__ = ["DeliveryGuarantee", "Sink", "Source"]


class DeliveryGuarantee(Enum):
    """What a sink guarantees for records when a job fails and restarts.

    Example:
        >>> from millstream.datastream.connectors.kafka import KafkaSink
        >>> builder = KafkaSink.builder().set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)

    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2
