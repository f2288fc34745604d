"""The first of two phases of GROUP BY: the rows of an epoch are aggregated before they are dealt out by key.

Promises: one row of partial aggregates for each key that came, before the watermark that follows it; where nearly every
row has a key of its own, one for each row. No state.
Does not know: groups beyond its own subtask; `columnar_groups` and `columnar_distinct` add the parts up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import pyarrow as pa

from millstream.runtime.batch import Batch
from millstream.runtime.memory import MemoryPart
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import arrow_type, struct_of
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.logical import nodes as l
from millstream.sql.operators.aggregate.distinct_pairs import PairPartials
from millstream.sql.operators.aggregate.partials import Partials
from millstream.sql.operators.epochs import EpochOperator
from millstream.sql.operators.spec import PartialAggregateSpec
from millstream.sql.types import data_types as t

_AT_ONCE = 1 << 18  # rows that wait; more are aggregated before the epoch ends
_TELLING = 1 << 12  # rows of which the number of keys says something
_WORTH = 1.5  # rows for each key, below which grouping costs more than it saves
_AGAIN_AFTER = 20


def partial_schema(schema: t.RowType, keys: Sequence[int], calls: Sequence[AggregateCall]) -> t.RowType:
    """The columns of partial aggregates: the keys, then the parts."""
    kinds = _partials(calls, keys, schema).part_types()
    names = l.unique([*(schema.names[i] for i in keys), *(f"part${i}" for i in range(len(kinds)))])
    return t.row_of(names, [*(t.plain(schema.types[i]) for i in keys), *kinds], null=False)


def _partials(calls: Sequence[AggregateCall], keys: Sequence[int], schema: t.RowType) -> Partials | PairPartials:
    made = PairPartials if any(call.distinct for call in calls) else Partials
    return made(calls, keys, schema)


@dataclass(frozen=True)
class LocalAggregateSpec(PartialAggregateSpec):
    """Partial aggregates by key columns."""

    input: t.RowType
    output: t.RowType
    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return LocalAggregateOperator(context, self.output, _partials(self.calls, self.keys, self.input))


class Reducing(Protocol):
    """Makes fewer rows of rows: the columns of a chunk, or those of one in which each row stands for itself."""

    def chunk(self, array: pa.Array) -> pa.RecordBatch:
        """As Partials promises."""

    def singly(self, array: pa.Array) -> list[pa.Array]:
        """As Partials promises."""


@dataclass
class LocalAggregateMemory(MemoryPart):
    """How many batches pass without aggregation, because there are nearly as many keys as rows."""

    part_name: ClassVar[str] = "local_aggregate"
    unversioned_keys: ClassVar[Mapping[str, str]] = {"skipping": "batches_to_skip"}

    batches_to_skip: int = 0


class LocalAggregateOperator(EpochOperator):
    """Stateless: nothing waits at the end of an epoch. Memory: how often rows are still to go on ungrouped."""

    def __init__(self, context: OperatorContext, output: t.RowType, partials: Reducing) -> None:
        super().__init__(context, output)
        self._partials = partials
        self._columns = [arrow_type(kind) for kind in output.types]
        self._count = 0

    def begin_epoch(self) -> None:
        """Nothing is waiting."""
        super().begin_epoch()
        self._count = 0

    def on_batch(self, batch: Batch, side: int) -> None:
        """Gather, though not without end."""
        super().on_batch(batch, side)
        self._count += len(batch)
        if self._count >= _AT_ONCE:
            self._take_waiting()

    def _take(self, array: pa.Array) -> None:
        self._count = 0
        made = self._partials.singly(array) if self._skips() else self._grouped(array)
        columns = [
            column if column.type == kind else column.cast(kind, safe=False)
            for column, kind in zip(made, self._columns, strict=True)
        ]
        self.emit_array(struct_of(columns, None, self.output, len(columns[0])))

    def _grouped(self, array: pa.Array) -> list[pa.Array]:
        chunk = self._partials.chunk(array)
        if len(array) >= _TELLING and len(array) < _WORTH * chunk.num_rows:
            self.context.memory.part(LocalAggregateMemory).batches_to_skip = _AGAIN_AFTER
        return list(chunk.columns)

    def _skips(self) -> bool:
        """Whether rows go on as they are: there are nearly as many keys as rows. It is looked at again now and then."""
        memory = self.context.memory.part(LocalAggregateMemory)
        skips = memory.batches_to_skip > 0
        if skips:
            memory.batches_to_skip -= 1
        return skips
