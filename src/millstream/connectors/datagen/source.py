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
    record's timestamp is the field `event_time`; without it, the only EventTime field, if there is one."""

    fields: Mapping[str, Field]
    count: int | None = None
    rate: float | None = None
    seed: int = 0
    splits: int | None = None
    record_type: type | None = None
    event_time: str | None = None

    def __post_init__(self) -> None:
        check_generator(self.count, self.rate, self.splits)
        if not self.fields:
            msg = "a record needs at least one field"
            raise InvalidField(msg)
        strange = {name: made for name, made in self.fields.items() if not isinstance(made, Field)}
        if strange:
            msg = f"these are not fields: {strange}"
            raise InvalidField(msg, hint="use RandomInt(1, 9), Sequence(), ...")
        if self.event_time is not None and not isinstance(self.fields.get(self.event_time), EventTime):
            msg = f"{self.event_time!r} is not one of the EventTime fields"
            raise InvalidField(msg)
        kind = self._kind()
        if set(kind.field_names) != set(self.fields):
            msg = f"{self.record_type!r} has fields {kind.field_names}, not {list(self.fields)}"
            raise InvalidField(msg)
        for name, wanted in zip(kind.field_names, kind.field_types, strict=True):
            made_type = self.fields[name].kind
            if made_type.arrow_type != wanted.arrow_type:
                msg = f"field {name!r} of {self.record_type!r} holds {wanted}, generated is {made_type}"
                raise InvalidField(msg)

    def _kind(self) -> StructTypeInfo:
        if self.record_type is None:
            return Types.ROW_NAMED(list(self.fields), [made.kind for made in self.fields.values()])
        if dataclasses.is_dataclass(self.record_type):
            return Types.DATACLASS(self.record_type)
        return Types.NAMED_TUPLE(self.record_type)

    def type_info(self) -> TypeInformation:
        """Return the type of named rows, or of the record type."""
        return self._kind()

    def boundedness(self) -> Boundedness:
        """Return bounded if there is a count."""
        return Boundedness.CONTINUOUS_UNBOUNDED if self.count is None else Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create an enumerator of one offset, with a split for each reader."""
        return PositionEnumerator(self.splits or parallelism, self.count, self.rate, state)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader that generates columns."""
        return FieldReader(self, self._kind(), context.block_records)


class FieldReader(SourceReader):
    """Generates the records of a range, column by column."""

    def __init__(self, source: DataGenSource, kind: StructTypeInfo, block: int) -> None:
        self._fields = dict(source.fields)
        self._keys = {name: random_columns.derive_key(source.seed, name) for name in self._fields}
        self._kind = kind
        self._block = block
        times = [name for name, made in self._fields.items() if isinstance(made, EventTime)]
        self._time = source.event_time or (times[0] if len(times) == 1 else None)

    def read(self, part: SplitRange) -> Iterator[Records]:
        """Yield the records of the range."""
        for start in range(part.start, part.end, self._block):
            yield self._records(start, min(part.end, start + self._block))

    def _records(self, start: int, stop: int) -> Records:
        indexes = np.arange(start, stop, dtype=np.uint64)
        columns: dict[str, pa.Array] = {}
        for name, made in self._fields.items():
            columns[name] = made.column(self._keys[name], indexes, columns)
        arrays = [columns[name] for name in self._kind.field_names]
        if isinstance(self._kind, RowTypeInfo):
            arrays.append(pa.nulls(len(indexes), pa.int8()))  # the kinds of rows: all inserted
        values = pa.StructArray.from_arrays(arrays, fields=list(self._kind.arrow_type))
        return Records(values, None if self._time is None else self._times(columns[self._time]))

    @staticmethod
    def _times(column: pa.Array) -> Any:
        return column.cast(pa.int64()).to_numpy(zero_copy_only=False)
