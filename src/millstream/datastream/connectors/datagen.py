"""Generated records: by fields in columns (ours), or by a function of the index as in Flink's Java API."""

from millstream.connectors.datagen import (
    Choice,
    Computed,
    DataGeneratorSource,
    DataGenSource,
    EventTime,
    Field,
    RandomBoolean,
    RandomFloat,
    RandomInt,
    RandomString,
    RandomTimestamp,
    RateLimiterStrategy,
    Sequence,
)

__all__ = [
    "Choice",
    "Computed",
    "DataGenSource",
    "DataGeneratorSource",
    "EventTime",
    "Field",
    "RandomBoolean",
    "RandomFloat",
    "RandomInt",
    "RandomString",
    "RandomTimestamp",
    "RateLimiterStrategy",
    "Sequence",
]
