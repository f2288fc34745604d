"""The Kafka sink.

Promises: PyFlink's builder. With EXACTLY_ONCE, messages appear with their checkpoint, once, for readers of committed
data; with AT_LEAST_ONCE (and NONE) they appear immediately, and again when an epoch is repeated.
Does not know: how messages are serialized, staged and sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from millstream.connector.sink import Committer, Sink, SinkWriter, WriterContext
from millstream.connectors.kafka.client import DEADLINE, admin_library, create_client, library, metadata
from millstream.connectors.kafka.cluster import partitions_of
from millstream.connectors.kafka.commit import KafkaCommitter, transactional_id
from millstream.connectors.kafka.properties import BadKafkaProperty, translate_properties
from millstream.connectors.kafka.serializer import KafkaRecordSerializationSchema
from millstream.connectors.kafka.staging import Staging
from millstream.connectors.kafka.writer import SendingWriter, StagingWriter
from millstream.errors import UserError
from millstream.files.locations import absolute_location, is_uri
from millstream.files.remote import ObjectStore

_TIMEOUT = "transaction.timeout.ms"
_DEFAULT_TIMEOUT = 120_000
_MAX_PREFIX = 64_000


class IncompleteKafkaSink(UserError):
    """A builder with a missing setting."""

    def __init__(self, setting: str, call: str) -> None:
        super().__init__(f"the Kafka sink has no {setting}", hint=f"call {call} on the builder")


class Delivery(Enum):
    """The guarantee for messages after failures; the members of `DeliveryGuarantee`."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


@dataclass(frozen=True)
class KafkaSink(Sink):
    """Writes messages. Created by `KafkaSink.builder()`.

    Example:
        >>> from millstream.datastream.connectors.base import DeliveryGuarantee
        >>> from millstream.datastream.connectors.kafka import KafkaRecordSerializationSchema
        >>> from millstream.common import SimpleStringSchema
        >>> serializer = KafkaRecordSerializationSchema.builder().set_topic("totals")
        >>> serializer = serializer.set_value_serialization_schema(SimpleStringSchema()).build()
        >>> builder = KafkaSink.builder().set_bootstrap_servers("localhost:9092").set_record_serializer(serializer)
        >>> builder = builder.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        >>> sink = builder.set_transactional_id_prefix("totals").build()

    """

    servers: str
    serializer: KafkaRecordSerializationSchema
    delivery: Delivery = Delivery.NONE
    prefix: str = "kafka-sink"
    staging: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        """Return a new builder."""
        return KafkaSinkBuilder()

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Create a writer for one epoch."""
        settings = self._settings()
        if self.delivery is Delivery.EXACTLY_ONCE:
            settings.pop(_TIMEOUT)
            transaction = transactional_id(self.prefix, context.sink, context.subtask)
            return StagingWriter(self.serializer, Staging(self.staging).create(context, transaction), settings)
        return SendingWriter(self.serializer, settings)

    def create_committer(self) -> Committer | None:
        """Create the committer of staged output; None if messages are sent at once."""
        if self.delivery is not Delivery.EXACTLY_ONCE:
            return None
        return KafkaCommitter(self.prefix, self.staging, self._settings())

    def _settings(self) -> dict[str, Any]:
        defaults: dict[str, Any] = {"acks": "all", "enable.idempotence": True}
        if self.delivery is Delivery.NONE:
            defaults = {"acks": 1}
        if self.delivery is Delivery.EXACTLY_ONCE:
            defaults[_TIMEOUT] = _DEFAULT_TIMEOUT
        return {**defaults, **translate_properties(self.properties), "bootstrap.servers": self.servers}

    def check(self) -> None:
        """Check that the brokers answer, have the topic and allow the transaction timeout, and that output can be
        staged."""
        if is_uri(self.staging):
            ObjectStore.of(self.staging)
        settings = self._settings()
        timeout = settings.pop(_TIMEOUT, None)
        client = create_client("Producer", settings)
        if self.serializer.topic is not None:
            partitions_of(client, self.serializer.topic, self.servers)
        brokers = metadata(client, self.servers, "requesting brokers").brokers
        if timeout is not None and brokers:
            self._check_timeout(int(timeout), next(iter(brokers)))

    def _check_timeout(self, timeout: int, broker: int) -> None:
        """Check the timeout against the limit of the brokers. A transaction lasts as long as one commit, not one
        checkpoint."""
        kafka, admin_classes = library(), admin_library()
        admin = create_client("AdminClient", {**self._connection(), "bootstrap.servers": self.servers})
        resource = admin_classes.ConfigResource(admin_classes.ConfigResource.Type.BROKER, str(broker))
        try:
            configs = admin.describe_configs([resource], request_timeout=DEADLINE)[resource].result(DEADLINE)
        except kafka.KafkaException:
            return  # without permission to read settings; the broker then refuses a longer timeout itself
        entry = configs.get("transaction.max.timeout.ms")
        if entry is not None and entry.value is not None and timeout > int(entry.value):
            reason = f"{timeout} is more than the brokers' transaction.max.timeout.ms of {entry.value}"
            raise BadKafkaProperty(_TIMEOUT, reason, hint="lower it, or raise the brokers' limit")

    def _connection(self) -> dict[str, Any]:
        properties = translate_properties(self.properties)
        return {name: value for name, value in properties.items() if name.startswith(("sasl.", "ssl.", "security."))}


class KafkaSinkBuilder:
    """Builds a KafkaSink. Bootstrap servers and a record serializer are needed.

    Example:
        >>> from millstream.common import SimpleStringSchema
        >>> from millstream.datastream.connectors.kafka import KafkaRecordSerializationSchema
        >>> serializer = KafkaRecordSerializationSchema.builder().set_topic("totals")
        >>> serializer = serializer.set_value_serialization_schema(SimpleStringSchema()).build()
        >>> builder = KafkaSinkBuilder().set_bootstrap_servers("localhost:9092").set_property("linger.ms", "20")
        >>> sink = builder.set_record_serializer(serializer).build()

    """

    def __init__(self) -> None:
        self._servers: str | None = None
        self._serializer: KafkaRecordSerializationSchema | None = None
        self._delivery = Delivery.NONE
        self._prefix = "kafka-sink"
        self._staging = ""
        self._properties: dict[str, Any] = {}

    def build(self) -> KafkaSink:
        """Build the sink."""
        servers = self._servers or self._properties.pop("bootstrap.servers", None)
        if servers is None:
            raise IncompleteKafkaSink(setting="bootstrap servers", call="set_bootstrap_servers")
        if self._serializer is None:
            raise IncompleteKafkaSink(setting="record serializer", call="set_record_serializer")
        return KafkaSink(
            str(servers), self._serializer, self._delivery, self._prefix, self._staging, dict(self._properties)
        )

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSinkBuilder:
        """Set the addresses of the brokers as `host:port`, separated by commas.

        Args:
            bootstrap_servers: The addresses, such as `broker1:9092,broker2:9092`.

        """
        self._servers = bootstrap_servers
        return self

    def set_delivery_guarantee(self, delivery_guarantee: Enum) -> KafkaSinkBuilder:
        """Set the delivery guarantee; the default is NONE.

        Args:
            delivery_guarantee: A member of `DeliveryGuarantee`.

        """
        self._delivery = Delivery[delivery_guarantee.name]
        return self

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> KafkaSinkBuilder:
        """Set the prefix of transactional ids: the same in every run of a job, and in no other job at the same
        brokers.

        Args:
            transactional_id_prefix: The prefix, of 1 to 64,000 bytes.

        """
        if not 0 < len(transactional_id_prefix.encode()) <= _MAX_PREFIX:
            msg = f"a transactional id prefix has 1 to {_MAX_PREFIX} bytes"
            raise UserError(msg, hint="give the job a short name of its own")
        self._prefix = transactional_id_prefix
        return self

    def set_record_serializer(self, record_serializer: KafkaRecordSerializationSchema) -> KafkaSinkBuilder:
        """Set the serializer that turns records into messages.

        Args:
            record_serializer: The serializer.

        """
        self._serializer = record_serializer
        return self

    def set_staging_directory(self, directory: str) -> KafkaSinkBuilder:
        """Set where EXACTLY_ONCE stages messages until their checkpoint; by default beside the job's checkpoints.

        Args:
            directory: A directory that the driver and all executors access under the same name and that outlives them,
                or a location on an object store.

        """
        self._staging = absolute_location(directory)
        return self

    def set_property(self, key: str, value: str) -> KafkaSinkBuilder:
        """Set a property of Kafka's producer.

        Args:
            key: The name of the property.
            value: The value of the property.

        """
        self._properties[key] = value
        return self
