"""Formats: how records are written as bytes, one module each."""

from millstream.formats.contract import (
    BadFormat,
    BadRecord,
    Decoded,
    Format,
    MissingLibrary,
    OnError,
    UndecodableRecord,
    UnencodableRecord,
    settle,
)
from millstream.formats.registry import format_metadata, format_named, format_names, format_options
from millstream.formats.schemas import FormatDeserializationSchema, FormatSerializationSchema
from millstream.formats.shapes import Kind, Shape

__all__ = [
    "BadFormat",
    "BadRecord",
    "Decoded",
    "Format",
    "FormatDeserializationSchema",
    "FormatSerializationSchema",
    "Kind",
    "MissingLibrary",
    "OnError",
    "Shape",
    "UndecodableRecord",
    "UnencodableRecord",
    "format_metadata",
    "format_named",
    "format_names",
    "format_options",
    "settle",
]
