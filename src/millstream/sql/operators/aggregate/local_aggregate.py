"""The local aggregate of a two-phase GROUP BY: aggregates the rows of an epoch before they are partitioned by key.

Promises: one row of partial aggregates for each key of the rows, emitted before the next watermark. If nearly every row
has a key of its own, rows pass as partial aggregates of one row each. No state.
Does not know: the groups of other subtasks; `columnar_groups` and `columnar_distinct` merge the partial aggregates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import pyarrow as pa

from millstream.runtime.memory import MemoryPart
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import arrow_type, combine_columns
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.logical import nodes as l
from millstream.sql.operators.aggregate.distinct_pairs import PairPartials
from millstream.sql.operators.aggregate.partials import Partials
from millstream.sql.operators.epochs import EpochOperator
from millstream.sql.operators.spec import PartialAggregateSpec
from millstream.sql.types import data_types as t

_MAX_BUFFERED = 1 << 18  # rows; a full buffer is aggregated before the epoch ends
_MIN_SAMPLE = 1 << 12  # rows from which the ratio of rows to keys is reliable
_MIN_ROWS_PER_KEY = 1.5  # with fewer, grouping costs more than it saves
_SKIPPED_BATCHES = 20  # before the ratio is measured again


def create_partial_schema(schema: t.RowType, keys: Sequence[int], calls: Sequence[AggregateCall]) -> t.RowType:
    """Return the row type of partial aggregates: the keys, then the partial columns."""
    part_types = _create_partials(calls, keys, schema).part_types()
    names = l.make_names_unique([*(schema.names[i] for i in keys), *(f"part${i}" for i in range(len(part_types)))])
    return t.row_of(names, [*(t.strip_time_attribute(schema.types[i]) for i in keys), *part_types], null=False)


def _create_partials(calls: Sequence[AggregateCall], keys: Sequence[int], schema: t.RowType) -> Partials | PairPartials:
    partials_type = PairPartials if any(call.distinct for call in calls) else Partials
    return partials_type(calls, keys, schema)


@dataclass(frozen=True)
class LocalAggregateSpec(PartialAggregateSpec):
    """Partial aggregates by key columns."""

    input: t.RowType
    output: t.RowType
    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    mini_batch_size: int | None = None

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        partials = _create_partials(self.calls, self.keys, self.input)
        return LocalAggregateOperator(context, self.output, partials, self.mini_batch_size)


class LocalAggregation(Protocol):
    """Aggregates rows locally, or passes each row as a partial aggregate of its own."""

    def chunk(self, array: pa.Array) -> pa.RecordBatch:
        """Aggregate rows to one row for each key."""

    def pass_rows(self, array: pa.Array) -> list[pa.Array]:
        """Return the columns of partial aggregates of one row each."""


@dataclass
class LocalAggregateMemory(MemoryPart):
    """How many batches pass without aggregation, because there are nearly as many keys as rows."""

    part_name: ClassVar[str] = "local_aggregate"
    unversioned_keys: ClassVar[Mapping[str, str]] = {"skipping": "batches_to_skip"}

    batches_to_skip: int = 0


class LocalAggregateOperator(EpochOperator):
    """Stateless: the buffer is empty at the end of an epoch. Memory: how many batches still pass unaggregated."""

    def __init__(
        self,
        context: OperatorContext,
        output: t.RowType,
        partials: LocalAggregation,
        mini_batch_size: int | None = None,
    ) -> None:
        limit = _MAX_BUFFERED if mini_batch_size is None else min(mini_batch_size, _MAX_BUFFERED)
        super().__init__(context, output, limit=limit)
        self._partials = partials
        self._columns = [arrow_type(data_type) for data_type in output.types]

    def _process(self, array: pa.Array) -> None:
        partial_columns = self._partials.pass_rows(array) if self._should_skip_batch() else self._aggregate(array)
        columns = [
            column if column.type == data_type else column.cast(data_type, safe=False)
            for column, data_type in zip(partial_columns, self._columns, strict=True)
        ]
        self.emit_array(combine_columns(columns, None, self.output, len(columns[0])))

    def _aggregate(self, array: pa.Array) -> list[pa.Array]:
        chunk = self._partials.chunk(array)
        if len(array) >= _MIN_SAMPLE and len(array) < _MIN_ROWS_PER_KEY * chunk.num_rows:
            self.context.memory.part(LocalAggregateMemory).batches_to_skip = _SKIPPED_BATCHES
        return list(chunk.columns)

    def _should_skip_batch(self) -> bool:
        """Return whether this batch passes without aggregation, because there were nearly as many keys as rows."""
        memory = self.context.memory.part(LocalAggregateMemory)
        is_skipped = memory.batches_to_skip > 0
        if is_skipped:
            memory.batches_to_skip -= 1
        return is_skipped
