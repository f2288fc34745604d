"""Formats as the serialization schemas that sources and sinks of messages take.

Promises: PyFlink's interface for one message at a time; callers with many messages use `format` for batches.
Does not know: brokers."""

from __future__ import annotations

from typing import Any

from millstream.connector.serialization_schema import DeserializationSchema, SerializationSchema
from millstream.formats.contract import Format, apply_error_policy
from millstream.types.factory import TypeInformation


class FormatDeserializationSchema(DeserializationSchema):
    """Decodes messages with a format; a bad message fails or is skipped, by the error policy."""

    def __init__(self, message_format: Format) -> None:
        super().__init__()
        self.format = message_format

    def deserialize(self, message: bytes) -> Any:
        """Return the first record of a message; None if there is none."""
        records = self.deserialize_many(message)
        return records[0] if records else None

    def deserialize_many(self, message: bytes) -> list[Any]:
        """Return all records of a message."""
        decoded = self.format.decode([message])
        apply_error_policy(self.format, decoded, lambda _: "the message")
        return decoded.rows(self.format.type_info)

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the records."""
        return self.format.type_info


class FormatSerializationSchema(SerializationSchema):
    """Encodes messages with a format."""

    def __init__(self, message_format: Format) -> None:
        super().__init__()
        self.format = message_format

    def serialize(self, element: Any) -> bytes:
        """Encode a record."""
        return self.format.encode([element])[0]
