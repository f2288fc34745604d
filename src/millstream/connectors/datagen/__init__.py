"""Generated records: by fields, in columns, or by a function of the index."""

from millstream.connectors.datagen.fields import (
    Choice,
    Computed,
    EventTime,
    Field,
    InvalidField,
    RandomBoolean,
    RandomFloat,
    RandomInt,
    RandomString,
    RandomTimestamp,
    Sequence,
)
from millstream.connectors.datagen.function import DataGeneratorSource, RateLimiterStrategy
from millstream.connectors.datagen.source import DataGenSource

__all__ = [
    "Choice",
    "Computed",
    "DataGenSource",
    "DataGeneratorSource",
    "EventTime",
    "Field",
    "InvalidField",
    "RandomBoolean",
    "RandomFloat",
    "RandomInt",
    "RandomString",
    "RandomTimestamp",
    "RateLimiterStrategy",
    "Sequence",
]
