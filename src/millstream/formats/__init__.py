"""Formats: encodings of records as bytes, one module each."""

from millstream.formats.contract import (
    BadFormat,
    BadRecord,
    Decoded,
    Format,
    MissingLibrary,
    OnError,
    UndecodableRecord,
    UnencodableRecord,
    apply_error_policy,
)
from millstream.formats.format_types import FormatType, TypeRoot
from millstream.formats.registry import format_metadata, format_named, format_names, format_options
from millstream.formats.schemas import FormatDeserializationSchema, FormatSerializationSchema

__all__ = [
    "BadFormat",
    "BadRecord",
    "Decoded",
    "Format",
    "FormatDeserializationSchema",
    "FormatSerializationSchema",
    "FormatType",
    "MissingLibrary",
    "OnError",
    "TypeRoot",
    "UndecodableRecord",
    "UnencodableRecord",
    "apply_error_policy",
    "format_metadata",
    "format_named",
    "format_names",
    "format_options",
]
