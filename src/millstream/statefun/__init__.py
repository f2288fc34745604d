"""Stateful functions, with the names of StateFun's Python SDK 3: addressable functions that keep values, send messages
to one another, call services and write to egresses.

Promises: state and messages are exactly once, because messages are feedback of an iteration.
Does not know: how feedback is part of checkpoints."""

from millstream.functions.entities.messages import (
    EgressMessage,
    KafkaRecordType,
    Message,
    SdkAddress,
    egress_message_builder,
    kafka_egress_message,
    message_builder,
)
from millstream.functions.entities.registry import (
    Context,
    StatefulFunction,
    StatefulFunctions,
    UnknownFunctionType,
    ValueSpec,
)
from millstream.functions.entities.value_types import (
    BoolType,
    DoubleType,
    FloatType,
    IntType,
    LongType,
    StringType,
    Type,
    TypeSerializer,
    make_json_type,
    make_protobuf_type,
    simple_type,
)
from millstream.statefun.data_stream_builder import StatefulFunctionDataStreamBuilder, StatefulFunctionEgressStreams
from millstream.statefun.kafka import kafka_record_serializer
from millstream.statefun.request_reply import RequestReplyHandler

__all__ = [
    "BoolType",
    "Context",
    "DoubleType",
    "EgressMessage",
    "FloatType",
    "IntType",
    "KafkaRecordType",
    "LongType",
    "Message",
    "RequestReplyHandler",
    "SdkAddress",
    "StatefulFunction",
    "StatefulFunctionDataStreamBuilder",
    "StatefulFunctionEgressStreams",
    "StatefulFunctions",
    "StringType",
    "Type",
    "TypeSerializer",
    "UnknownFunctionType",
    "ValueSpec",
    "egress_message_builder",
    "kafka_egress_message",
    "kafka_record_serializer",
    "make_json_type",
    "make_protobuf_type",
    "message_builder",
    "simple_type",
]
