"""PyFlink's module of this name: schemas and encoders, from `millstream.model.serialization`."""

from __future__ import annotations

from millstream.model.serialization import (
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
