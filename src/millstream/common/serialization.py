"""PyFlink's module of this name: schemas and encoders, from `millstream.connector.serialization_schema`."""

from __future__ import annotations

from millstream.connector.serialization_schema import (
    BulkWriterFactory,
    ByteArraySchema,
    DeserializationSchema,
    Encoder,
    RowDataBulkWriterFactory,
    RowFieldExtractorSchema,
    SerializationSchema,
    SimpleStringSchema,
)

__all__ = [
    "BulkWriterFactory",
    "ByteArraySchema",
    "DeserializationSchema",
    "Encoder",
    "RowDataBulkWriterFactory",
    "RowFieldExtractorSchema",
    "SerializationSchema",
    "SimpleStringSchema",
]
