"""The local phase of session aggregates: merges the rows of an epoch into sessions before they are partitioned.

Promises: sessions of rows, merged where they overlap, are the sessions of all rows. If nearly every row is a session of
its own, rows pass as sessions of one row each. No state.
Does not know: the sessions of other subtasks; `session_aggregate` merges them."""

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
from millstream.sql.operators.aggregate.distinct_pairs import CodedRows, aggregate_codes, sort_by_code
from millstream.sql.operators.aggregate.local_aggregate import LocalAggregateOperator
from millstream.sql.operators.aggregate.partials import ROWS
from millstream.sql.operators.row_runs import compute_dense_key_codes
from millstream.sql.operators.spec import PartialAggregateSpec
from millstream.sql.operators.window.slices import compute_row_times
from millstream.sql.types import data_types as t


class Sessions(NamedTuple):
    """Sessions by key: their starts, their ends without further rows, and their partial aggregates."""

    keys: list[pa.Array]
    starts: np.ndarray
    ends: np.ndarray
    parts: list[pa.Array]


class SessionParts:
    """Merges rows into sessions by the columns `partition`, with partial aggregates; the last one is the row count."""

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
        self._partials = aggregate_codes((*calls, ROWS), schema)

    def part_types(self) -> list[t.DataType]:
        """Return the logical types of the partial columns."""
        return self._partials.part_types()

    def assign_sessions(self, array: pa.Array) -> Sessions:
        """Return the sessions of rows."""
        times = self._read_times(array)
        keys = [array.field(i) for i in self._partition]
        return self._merge(
            keys, times, times + self._gap, lambda codes: self._partials.chunk(CodedRows(array, self._width, codes))
        )

    def merge_sessions(self, array: pa.Array) -> Sessions:
        """Merge rows that are sessions: keys, start, end and partial columns."""
        first = len(self._partition)
        keys = [array.field(i) for i in range(first)]
        parts = [array.field(first + 2 + i) for i in range(len(self._partials.parts))]
        starts, ends = (array.field(i).to_numpy() for i in (first, first + 1))
        return self._merge(
            keys, starts, ends, lambda codes: self._partials.merge([self._partials.to_chunk([pa.array(codes), *parts])])
        )

    def chunk(self, array: pa.Array) -> pa.RecordBatch:
        """Return the sessions of rows as rows."""
        sessions = self.assign_sessions(array)
        columns = [*sessions.keys, pa.array(sessions.starts), pa.array(sessions.ends), *sessions.parts]
        return pa.RecordBatch.from_arrays(columns, [str(i) for i in range(len(columns))])

    def pass_rows(self, array: pa.Array) -> list[pa.Array]:
        """Return each row as a session."""
        times = self._read_times(array)
        parts = self._partials.pass_rows(CodedRows(array, self._width, np.zeros(len(array), dtype=np.int64)))[1:]
        keys = [array.field(i) for i in self._partition]
        return [*keys, pa.array(times), pa.array(times + self._gap), *parts]

    def rows(self, sessions: Sessions) -> np.ndarray:
        """Return the number of rows of each session."""
        return self._partials.rows(self._partials.to_chunk([pa.array(sessions.starts), *sessions.parts]))

    def _read_times(self, array: pa.Array) -> np.ndarray:
        return compute_row_times(array.field(self._time), self._name)

    def _merge(
        self,
        keys: list[pa.Array],
        starts: np.ndarray,
        ends: np.ndarray,
        chunk: Callable[[np.ndarray], pa.RecordBatch],
    ) -> Sessions:
        codes, most = compute_dense_key_codes(keys, len(starts)) if keys else (np.zeros(len(starts), dtype=np.int64), 1)
        order = _sort_sessions(codes, most, starts)
        codes, starts, ends = codes[order], starts[order], _compute_running_max_end(codes[order], ends[order])
        is_first = np.append(True, (codes[1:] != codes[:-1]) | (starts[1:] > ends[:-1]))
        begins = np.flatnonzero(is_first)
        session_indexes = np.empty(len(order), dtype=np.int64)
        session_indexes[order] = np.cumsum(is_first) - 1
        parts = [
            part.cast(arrow_type(data_type), safe=False)
            for part, data_type in zip(sort_by_code(chunk(session_indexes)), self.part_types(), strict=True)
        ]
        rows = pa.array(order[begins])
        lasts = np.append(begins[1:], len(order)) - 1
        return Sessions([key.take(rows) for key in keys], starts[begins], ends[lasts], parts)


def _sort_sessions(codes: np.ndarray, most: int, starts: np.ndarray) -> np.ndarray:
    """Return the order of rows by code, which is below `most`, and then by start."""
    short = codes.astype(np.uint16) if most <= 1 << 16 else codes  # numpy uses a radix sort for 16-bit numbers
    if (starts[1:] >= starts[:-1]).all():
        return np.argsort(short, kind="stable")
    by_start = np.argsort(starts, kind="stable")
    return by_start[np.argsort(short[by_start], kind="stable")]


def _compute_running_max_end(codes: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the running maximum of the ends within the rows of a code, which are adjacent."""
    if not ((ends[1:] < ends[:-1]) & (codes[1:] == codes[:-1])).any():
        return ends
    distinct, ranks = np.unique(ends, return_inverse=True)
    base = np.cumsum(np.append(0, codes[1:] != codes[:-1])) * len(distinct)
    return distinct[np.maximum.accumulate(base + ranks) - base]  # type: ignore[no-any-return]


def create_session_schema(schema: t.RowType, partition: Sequence[int], calls: Sequence[AggregateCall]) -> t.RowType:
    """Return the row type of sessions: the keys, the start, the end, then the partial columns."""
    part_types = aggregate_codes((*calls, ROWS), schema).part_types()
    key_names = [schema.names[i] for i in partition]
    names = l.make_names_unique(
        [*key_names, "$session_start", "$session_end", *(f"part${i}" for i in range(len(part_types)))]
    )
    edges = [t.BIGINT.not_null(), t.BIGINT.not_null()]
    return t.row_of(
        names, [*(t.strip_time_attribute(schema.types[i]) for i in partition), *edges, *part_types], null=False
    )


@dataclass(frozen=True)
class LocalSessionAggregateSpec(PartialAggregateSpec):
    """Sessions by the columns `keys`, of the rows of one subtask."""

    input: t.RowType
    output: t.RowType
    keys: tuple[int, ...]
    time: int
    gap: int
    calls: tuple[AggregateCall, ...]

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        parts = SessionParts(context.name, self.input, self.keys, self.time, self.gap, self.calls)
        return LocalAggregateOperator(context, self.output, parts)
