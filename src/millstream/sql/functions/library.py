"""All built-in functions, loaded."""

from millstream.sql.functions import (
    arithmetic,
    collections,
    construction,
    current_time,
    encodings,
    hashes,
    json_reading,
    json_writing,
    logic,
    regexes,
    splitting,
    strings,
    temporal_arithmetic,
    temporal_parts,
    temporal_text,
)
from millstream.sql.functions.registry import function_named

__all__ = [
    "arithmetic",
    "collections",
    "construction",
    "current_time",
    "encodings",
    "function_named",
    "hashes",
    "json_reading",
    "json_writing",
    "logic",
    "regexes",
    "splitting",
    "strings",
    "temporal_arithmetic",
    "temporal_parts",
    "temporal_text",
]
