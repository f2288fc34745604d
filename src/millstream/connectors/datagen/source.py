"""A source of generated records, described by fields, generated as columns.

Promises: record i depends on the fields and the seed alone, not on the reader, the time or how records are cut into
ranges. The order of fields does not matter, except for computed ones.
Does not know: epochs, watermarks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.connector.source import (
    Boundedness,
    ReaderContext,
    Records,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitRange,
)
from millstream.connectors.datagen import random_columns
from millstream.connectors.datagen.fields import EventTime, Field, InvalidField
from millstream.connectors.datagen.positions import PositionEnumerator, check_generator
from millstream.types.factory import RowTypeInfo, StructTypeInfo, TypeInformation, Types


@dataclass(frozen=True)
class DataGenSource(Source):
    """Records with these fields: `count` of them or without end, `rate` of them a second or as fast as they are read.

    They are rows with named fields, or instances of `record_type`, a dataclass or NamedTuple class with those fields. A
    record's timestamp is the field `event_time`; without it, the only EventTime field, if there is one. With
    `new_seed_per_job`, other jobs generate other records; a job that restarts from a checkpoint generates the same.

    Example:
        >>> from millstream.datastream.connectors.datagen import EventTime, RandomFloat, Sequence
        >>> fields = {"id": Sequence(1), "price": RandomFloat(1, 100), "at": EventTime(step_ms=10)}
        >>> source = DataGenSource(fields, count=1_000)

    """

    fields: Mapping[str, Field]
    count: int | None = None
    rate: float | None = None
    seed: int = 0
    splits: int | None = None
    record_type: type | None = None
    event_time: str | None = None
    new_seed_per_job: bool = False

    def __post_init__(self) -> None:
        check_generator(self.count, self.rate, self.splits)
        if not self.fields:
            msg = "a record needs at least one field"
            raise InvalidField(msg)
        invalid = {name: field for name, field in self.fields.items() if not isinstance(field, Field)}
        if invalid:
            msg = f"these are not fields: {invalid}"
            raise InvalidField(msg, hint="use RandomInt(1, 9), Sequence(), ...")
        if self.event_time is not None and not isinstance(self.fields.get(self.event_time), EventTime):
            msg = f"{self.event_time!r} is not one of the EventTime fields"
            raise InvalidField(msg)
        record_type_info = self._record_type_info()
        if set(record_type_info.field_names) != set(self.fields):
            msg = f"{self.record_type!r} has fields {record_type_info.field_names}, not {list(self.fields)}"
            raise InvalidField(msg)
        for name, declared_type in zip(record_type_info.field_names, record_type_info.field_types, strict=True):
            generated_type = self.fields[name].value_type
            if generated_type.arrow_type != declared_type.arrow_type:
                msg = f"field {name!r} of {self.record_type!r} has the type {declared_type}, not {generated_type}"
                raise InvalidField(msg)

    def _record_type_info(self) -> StructTypeInfo:
        if self.record_type is None:
            return Types.ROW_NAMED(list(self.fields), [field.value_type for field in self.fields.values()])
        if dataclasses.is_dataclass(self.record_type):
            return Types.DATACLASS(self.record_type)
        return Types.NAMED_TUPLE(self.record_type)

    def type_info(self) -> TypeInformation:
        """Return the type of named rows, or of the record type."""
        return self._record_type_info()

    def boundedness(self) -> Boundedness:
        """Return bounded if there is a count."""
        return Boundedness.CONTINUOUS_UNBOUNDED if self.count is None else Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create an enumerator of one offset, with a split for each reader."""
        return PositionEnumerator(self.splits or parallelism, self.count, self.rate, state)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader that generates columns."""
        return FieldReader(self, self._record_type_info(), context)


class FieldReader(SourceReader):
    """Generates the records of a range, column by column."""

    def __init__(self, source: DataGenSource, record_type: StructTypeInfo, context: ReaderContext) -> None:
        self._fields = {name: field.at_time(context.now) for name, field in source.fields.items()}
        seed = random_columns.derive_key(source.seed, context.job) if source.new_seed_per_job else source.seed
        self._keys = {name: random_columns.derive_key(seed, name) for name in self._fields}
        self._record_type = record_type
        self._block = context.block_records
        times = [name for name, field in self._fields.items() if isinstance(field, EventTime)]
        self._time = source.event_time or (times[0] if len(times) == 1 else None)

    def read(self, part: SplitRange) -> Iterator[Records]:
        """Yield the records of the range."""
        for start in range(part.start, part.end, self._block):
            yield self._records(start, min(part.end, start + self._block))

    def _records(self, start: int, stop: int) -> Records:
        indexes = np.arange(start, stop, dtype=np.uint64)
        columns: dict[str, pa.Array] = {}
        for name, field in self._fields.items():
            columns[name] = field.column(self._keys[name], indexes, columns)
        arrays = [columns[name] for name in self._record_type.field_names]
        if isinstance(self._record_type, RowTypeInfo):
            arrays.append(pa.nulls(len(indexes), pa.int8()))  # row kinds: all inserts
        values = pa.StructArray.from_arrays(arrays, fields=list(self._record_type.arrow_type))
        return Records(values, None if self._time is None else self._times(columns[self._time]))

    @staticmethod
    def _times(column: pa.Array) -> Any:
        return column.cast(pa.int64()).to_numpy(zero_copy_only=False)
