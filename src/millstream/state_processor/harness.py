"""The state of one operator outside of a job, for bootstrap and reader functions.

Promises: state descriptors have the same meaning as in a job, so a job reads what was written here, and the reverse.
Does not know: savepoints, where records come from."""

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
from millstream.state.evolution import from_timed_type
from millstream.state.key_groups import KeyGrouper, range_of
from millstream.types.factory import TypeInformation, Types


class _NoOutput:
    """An output that drops everything: bootstrap and reader functions emit nothing."""

    def emit(self, batch: Batch) -> None:
        """Drop a batch."""

    def emit_side(self, tag: str, batch: Batch) -> None:
        """Drop a batch of a side output."""

    def emit_watermark(self, watermark: int | None) -> None:
        """Drop a watermark."""


class SingleOperator:
    """An operator with one subtask, which owns all key groups: its state and its timers."""

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
            out=_NoOutput(),
            output_type=Types.PICKLED_BYTE_ARRAY(),
            side_types={},
            memory=OperatorMemory(SubtaskMemory(watermark=MIN_WATERMARK)),
            epoch=1,
        )
        self.timers = KeyedTimerService(self.context, self.context.scope)

    def runtime_context(self, *, keyed: bool) -> StreamingRuntimeContext:
        """Return the context for the `open` method of a function."""
        return StreamingRuntimeContext(self.context, keyed=keyed)

    def set_current_key(self, key: Any) -> None:
        """Set the key whose state functions access."""
        self.context.scope.key = key

    def tables(self) -> list[tuple[Any, Any]]:
        """Return all entries, without timestamps of the time to live.

        They are set when a job starts from the savepoint."""
        return [_remove_times(table.schema, table.entries()) for table in self.state.tables.values()]


def _remove_times(schema: TableSchema, changes: Changes) -> tuple[TableSchema, Changes]:
    if not schema.ttl:
        return schema, changes
    value_type = TypeInformation.type_from_json(dict(from_timed_type(schema.value_type.to_json(), schema.kind)))
    by_kind: dict[str, Callable[[Any], Any]] = {
        "list": lambda stored: [value for value, _ in stored],
        "map": lambda stored: {key: value for key, (value, _) in stored.items()},
    }
    remove_times = by_kind.get(schema.kind, lambda stored: stored[0])
    values = [remove_times(value) for value in changes.values]
    return replace(schema, value_type=value_type, ttl=False), replace(changes, values=values)
