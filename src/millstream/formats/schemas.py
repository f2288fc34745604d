"""Formats as the schemas that sources and sinks of messages take.

Promises: one message at a time as PyFlink's contract has it; who has many asks `format` for whole batches.
Does not know: brokers."""

from __future__ import annotations

from typing import Any

from millstream.connector.serialization_schema import DeserializationSchema, SerializationSchema
from millstream.formats.contract import Format, settle
from millstream.types.factory import TypeInformation


class FormatDeserializationSchema(DeserializationSchema):
    """Reads messages with a format; a bad message fails, or gives nothing where the format says so."""

    def __init__(self, message_format: Format) -> None:
        super().__init__()
        self.format = message_format

    def deserialize(self, message: bytes) -> Any:
        """The first record in a message; None if there is none."""
        found = self.deserialize_many(message)
        return found[0] if found else None

    def deserialize_many(self, message: bytes) -> list[Any]:
        """All records in a message."""
        decoded = self.format.decode([message])
        settle(self.format, decoded, lambda _: "the message")
        return decoded.rows(self.format.type_info)

    def get_produced_type(self) -> TypeInformation:
        """The type of the format's records."""
        return self.format.type_info


class FormatSerializationSchema(SerializationSchema):
    """Writes messages with a format."""

    def __init__(self, message_format: Format) -> None:
        super().__init__()
        self.format = message_format

    def serialize(self, element: Any) -> bytes:
        """The bytes of a record."""
        return self.format.encode([element])[0]
