"""The first of two phases of session aggregates: the rows of an epoch are put into sessions before they are dealt out.

Promises: sessions of rows, or of sessions that touch one another, are those of all rows; where nearly every row is a
session of its own, rows go on as they are. No state.
Does not know: sessions beyond its own subtask; `session_aggregate` puts them together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import arrow_type
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.logical import nodes as l
from millstream.sql.operators.aggregate.distinct_pairs import Coded, by_code, coded_partials
from millstream.sql.operators.aggregate.local_aggregate import LocalAggregateOperator
from millstream.sql.operators.aggregate.partials import ROWS
from millstream.sql.operators.row_runs import dense_codes
from millstream.sql.operators.spec import PartialAggregateSpec
from millstream.sql.operators.window.slices import row_times
from millstream.sql.types import data_types as t


class Sessions(NamedTuple):
    """Sessions of keys: where each begins, when it is over if nothing more comes, and what is added up of its rows."""

    keys: list[pa.Array]
    starts: np.ndarray
    ends: np.ndarray
    parts: list[pa.Array]


class SessionParts:
    """Rows as sessions of the columns `partition`; the last part counts rows, or stands where others do."""

    def __init__(
        self,
        name: str,
        schema: t.RowType,
        partition: Sequence[int],
        time: int,
        gap: int,
        calls: Sequence[AggregateCall],
    ) -> None:
        self._name, self._partition, self._time, self._gap = name, partition, time, gap
        self._width = len(schema)
        self._partials = coded_partials((*calls, ROWS), schema)

    def part_types(self) -> list[t.DataType]:
        """The types of the parts."""
        return self._partials.part_types()

    def of_rows(self, array: pa.Array) -> Sessions:
        """The sessions of rows."""
        times = self._times(array)
        keys = [array.field(i) for i in self._partition]
        return self._together(
            keys, times, times + self._gap, lambda codes: self._partials.chunk(Coded(array, self._width, codes))
        )

    def of_sessions(self, array: pa.Array) -> Sessions:
        """The sessions of rows that are sessions: keys, start, end and parts."""
        first = len(self._partition)
        keys = [array.field(i) for i in range(first)]
        parts = [array.field(first + 2 + i) for i in range(len(self._partials.parts))]
        starts, ends = (array.field(i).to_numpy() for i in (first, first + 1))
        return self._together(
            keys, starts, ends, lambda codes: self._partials.merged([self._partials.named([pa.array(codes), *parts])])
        )

    def chunk(self, array: pa.Array) -> pa.RecordBatch:
        """The sessions of rows as rows."""
        made = self.of_rows(array)
        columns = [*made.keys, pa.array(made.starts), pa.array(made.ends), *made.parts]
        return pa.RecordBatch.from_arrays(columns, [str(i) for i in range(len(columns))])

    def singly(self, array: pa.Array) -> list[pa.Array]:
        """Each row as a session."""
        times = self._times(array)
        parts = self._partials.singly(Coded(array, self._width, np.zeros(len(array), dtype=np.int64)))[1:]
        keys = [array.field(i) for i in self._partition]
        return [*keys, pa.array(times), pa.array(times + self._gap), *parts]

    def rows(self, sessions: Sessions) -> np.ndarray:
        """How many rows each session is made of."""
        return self._partials.rows(self._partials.named([pa.array(sessions.starts), *sessions.parts]))

    def _times(self, array: pa.Array) -> np.ndarray:
        return row_times(array.field(self._time), self._name)

    def _together(
        self,
        keys: list[pa.Array],
        starts: np.ndarray,
        ends: np.ndarray,
        chunk: Callable[[np.ndarray], pa.RecordBatch],
    ) -> Sessions:
        codes, most = dense_codes(keys, len(starts)) if keys else (np.zeros(len(starts), dtype=np.int64), 1)
        order = _order(codes, most, starts)
        codes, starts, ends = codes[order], starts[order], _furthest(codes[order], ends[order])
        apart = np.append(True, (codes[1:] != codes[:-1]) | (starts[1:] > ends[:-1]))
        begins = np.flatnonzero(apart)
        numbers = np.empty(len(order), dtype=np.int64)
        numbers[order] = np.cumsum(apart) - 1
        parts = [
            part.cast(arrow_type(kind), safe=False)
            for part, kind in zip(by_code(chunk(numbers)), self.part_types(), strict=True)
        ]
        rows = pa.array(order[begins])
        lasts = np.append(begins[1:], len(order)) - 1
        return Sessions([key.take(rows) for key in keys], starts[begins], ends[lasts], parts)


def _order(codes: np.ndarray, most: int, starts: np.ndarray) -> np.ndarray:
    """The rows by code, which is below `most`, and those of a code by their start."""
    short = codes.astype(np.uint16) if most <= 1 << 16 else codes  # short numbers are sorted without comparing them
    if (starts[1:] >= starts[:-1]).all():
        return np.argsort(short, kind="stable")
    by_start = np.argsort(starts, kind="stable")
    return by_start[np.argsort(short[by_start], kind="stable")]


def _furthest(codes: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The greatest end up to each row, of the rows of its code, which stand together."""
    if not ((ends[1:] < ends[:-1]) & (codes[1:] == codes[:-1])).any():
        return ends
    distinct, ranks = np.unique(ends, return_inverse=True)
    base = np.cumsum(np.append(0, codes[1:] != codes[:-1])) * len(distinct)
    return distinct[np.maximum.accumulate(base + ranks) - base]  # type: ignore[no-any-return]


def session_schema(schema: t.RowType, partition: Sequence[int], calls: Sequence[AggregateCall]) -> t.RowType:
    """The columns of sessions as rows: the keys, the start, the end, then the parts."""
    kinds = coded_partials((*calls, ROWS), schema).part_types()
    heads = [schema.names[i] for i in partition]
    names = l.unique([*heads, "$session_start", "$session_end", *(f"part${i}" for i in range(len(kinds)))])
    edges = [t.BIGINT.not_null(), t.BIGINT.not_null()]
    return t.row_of(names, [*(t.plain(schema.types[i]) for i in partition), *edges, *kinds], null=False)


@dataclass(frozen=True)
class LocalSessionAggregateSpec(PartialAggregateSpec):
    """Sessions of the columns `keys` as far as a subtask sees them."""

    input: t.RowType
    output: t.RowType
    keys: tuple[int, ...]
    time: int
    gap: int
    calls: tuple[AggregateCall, ...]

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        parts = SessionParts(context.name, self.input, self.keys, self.time, self.gap, self.calls)
        return LocalAggregateOperator(context, self.output, parts)
