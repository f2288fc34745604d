"""PyFlink's `datastream.connectors.rabbitmq`: a connector written in Java. The import says what to use instead."""

from millstream.datastream.connectors.missing import ConnectorMissing

raise ConnectorMissing(__name__)
