"""The error for connectors of PyFlink that do not exist here.

Promises: the import of such a connector fails with a sentence that names what to use instead.
Does not know: connectors."""

from __future__ import annotations

_SINK = "write it as a sink of your own (docs/howto/write-a-sink.md), or write to Kafka or PostgreSQL"
_STREAM = "use Kafka, a receiver (docs/howto/receive-what-cannot-be-replayed.md), or write a source of your own"
_INSTEAD = {
    "cassandra": ("Cassandra", _SINK),
    "kinesis": ("Kinesis", _STREAM),
    "pulsar": ("Pulsar", _STREAM),
    "rabbitmq": ("RabbitMQ", _STREAM),
}


class ConnectorMissing(ModuleNotFoundError):
    """A connector of PyFlink that does not exist here."""

    def __init__(self, module: str) -> None:
        system, instead = _INSTEAD[module.rpartition(".")[2]]
        super().__init__(f"there is no connector for {system}, PyFlink's wraps a Java program; {instead}", name=module)
