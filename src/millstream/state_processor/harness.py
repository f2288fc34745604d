"""State of one operator without a job: what bootstrap and reader functions are given.

Promises: descriptors mean what they mean in a job, so what is put here a job finds, and the other way round.
Does not know: snapshots, where records come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from millstream.event_time.watermarks import MIN_WATERMARK
from millstream.runtime.batch import Batch
from millstream.runtime.context import KeyedTimerService, StreamingRuntimeContext
from millstream.runtime.memory import OperatorMemory, SubtaskMemory
from millstream.runtime.operator import OperatorContext
from millstream.state.backend import OperatorState
from millstream.state.deltas import Changes, TableSchema
from millstream.state.evolution import unstamped
from millstream.state.key_groups import KeyGrouper, range_of
from millstream.types.factory import TypeInformation, Types


class _Nowhere:
    """The output of an operator that emits nothing."""

    def emit(self, batch: Batch) -> None:
        """Nothing."""

    def emit_side(self, tag: str, batch: Batch) -> None:
        """Nothing."""

    def emit_watermark(self, watermark: int | None) -> None:
        """Nothing."""


class LoneOperator:
    """One subtask that owns every key group, its state and its timers."""

    def __init__(self, name: str, max_parallelism: int, key_type: TypeInformation | None = None) -> None:
        self.state = OperatorState(
            range_of(0, 1, max_parallelism), 0, 1, KeyGrouper(max_parallelism), key_type or Types.PICKLED_BYTE_ARRAY()
        )
        self.state.operator = name
        self.context = OperatorContext(
            operator=name,
            name=name,
            subtask=0,
            parallelism=1,
            max_parallelism=max_parallelism,
            state=self.state,
            out=_Nowhere(),
            output_type=Types.PICKLED_BYTE_ARRAY(),
            side_types={},
            memory=OperatorMemory(SubtaskMemory(watermark=MIN_WATERMARK)),
            epoch=1,
        )
        self.timers = KeyedTimerService(self.context, self.context.scope)

    def runtime(self, *, keyed: bool) -> StreamingRuntimeContext:
        """What a function's `open` is given."""
        return StreamingRuntimeContext(self.context, keyed=keyed)

    def at(self, key: Any) -> None:
        """From now on, state is that of this key."""
        self.context.scope.key = key

    def tables(self) -> list[tuple[Any, Any]]:
        """All that was put into state; what is to expire has no time yet, and gets the one at which a job starts."""
        return [_untimed(table.schema, table.everything()) for table in self.state.tables.values()]


def _untimed(schema: TableSchema, changes: Changes) -> tuple[TableSchema, Changes]:
    if not schema.ttl:
        return schema, changes
    kind = TypeInformation.type_from_json(dict(unstamped(schema.value_type.to_json(), schema.kind)))
    plain: dict[str, Callable[[Any], Any]] = {
        "list": lambda stored: [value for value, _ in stored],
        "map": lambda stored: {key: value for key, (value, _) in stored.items()},
    }
    strip = plain.get(schema.kind, lambda stored: stored[0])
    values = [strip(value) for value in changes.values]
    return replace(schema, value_type=kind, ttl=False), replace(changes, values=values)
