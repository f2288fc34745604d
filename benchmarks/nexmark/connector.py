"""Nexmark's events as a source of millstream, and as the table connector 'nexmark'.

Promises: the events of `generator.py`, made where they are read; splits take turns, so that event time moves on evenly
in all of them. Importing this module makes the connector known.
Does not know: queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks.nexmark.generator import BLOCK, Nexmark

from millstream.connector.source import (
    Budget,
    ReaderContext,
    Records,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitRange,
)
from millstream.sql.columns import arrow_type, create_row_type_info
from millstream.sql.connector.table_connector import TableConnector, TableContext, TableSource
from millstream.sql.connectors.registry import register
from millstream.sql.types import data_types as t
from millstream.types.factory import TypeInformation

_COLUMNS = ("event_type", "person", "auction", "bid")
_OPTIONS = ("events.num", "next-event.rate", "seed")


@dataclass(frozen=True)
class NexmarkSource(Source):
    """Events 0 to `count` - 1; without a count there is no end."""

    nexmark: Nexmark
    schema: t.RowType = field(compare=False)
    count: int

    def type_info(self) -> TypeInformation:
        """Rows of the table."""
        return create_row_type_info(self.schema)

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """As many splits as readers."""
        return _Turns(self.count, parallelism, 0 if state is None else int(state))

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A reader that makes its events."""
        return _Made(self)


class _Turns(SplitEnumerator):
    """Blocks of events, dealt out in turn; a position counts blocks."""

    def __init__(self, count: int, splits: int, position: int) -> None:
        self._count, self._splits, self._at = count, splits, position

    def plan(self, budget: Budget) -> list[SplitRange]:
        end = min(self._at + max(budget.records // BLOCK, 1), -(-self._count // BLOCK))
        parts = [
            SplitRange(str(split), [self._at, split, self._splits], [end, split, self._splits], len(mine) * BLOCK)
            for split in range(self._splits)
            if (mine := _mine(self._at, end, split, self._splits))
        ]
        self._at = end
        return parts

    def snapshot(self) -> Any:
        return self._at

    def finished(self) -> bool:
        return self._at * BLOCK >= self._count

    def splits(self) -> list[str]:
        return [] if self.finished() else [str(split) for split in range(self._splits)]

    def skip(self, done: SplitRange) -> None:
        self._at = max(self._at, int(done.end[0]))


def _mine(start: int, end: int, split: int, splits: int) -> range:
    return range(start + (split - start) % splits, end, splits)


class _Made(SourceReader):
    def __init__(self, source: NexmarkSource) -> None:
        self._source = source
        self._types = [arrow_type(kind) for kind in source.schema.types]
        self._fields = list(source.type_info().arrow_type)

    def read(self, part: SplitRange) -> Iterator[Records]:
        (start, split, splits), (end, _, _) = part.start, part.end
        for number in _mine(start, end, split, splits):
            kinds, *records = self._source.nexmark.block(number)
            columns = [pa.array(kinds)]
            for kind, made, wanted in zip(range(3), records, self._types[1:], strict=True):
                renamed = pa.StructArray.from_arrays(made.flatten(), fields=list(wanted))
                places = np.cumsum(kinds == kind) - 1
                columns.append(renamed.take(pa.array(places, mask=kinds != kind)))
            columns.append(pa.nulls(BLOCK, pa.int8()))  # all of them inserts
            array = pa.StructArray.from_arrays(columns, fields=self._fields)
            yield Records(array.slice(0, min(BLOCK, self._source.count - number * BLOCK)))


def _read(context: TableContext) -> TableSource:
    context.check(_OPTIONS)
    if tuple(context.schema.names) != _COLUMNS:
        message = f"its columns must be {', '.join(_COLUMNS)}"
        raise context.fail(message)
    nexmark = Nexmark(
        seed=context.integer("seed", Nexmark.seed) or 0,
        rate=context.integer("next-event.rate", Nexmark.rate) or Nexmark.rate,
    )
    count = context.integer("events.num") or 1 << 62
    return TableSource(NexmarkSource(nexmark, context.schema, count), context.schema)


register(TableConnector("nexmark", read=_read))
