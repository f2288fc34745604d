"""ON CONFLICT DO ERROR and DO NOTHING: rows with equal primary keys are detected when the watermark advances.

Promises: Flink's WatermarkCompactingSinkMaterializer. Changes wait for the next watermark; an addition and the
retraction of an equal row cancel each other, in whichever order they arrive. If several rows with one primary key
remain, DO ERROR fails the job, and DO NOTHING keeps the row that was emitted first.
Does not know: the sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.errors import UserError
from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import DELETE, INSERT, UPDATE_AFTER
from millstream.sql.expressions.stable_text import format_columns
from millstream.sql.operators.base import TableOperator, get_key, read_rows_with_kinds
from millstream.sql.operators.expiry import find_expiry
from millstream.sql.operators.spec import PlanContext, SqlOperatorSpec, StateTraits
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types

Change = tuple[bool, tuple[Any, ...]]  # whether the row is added, and the row


class PrimaryKeyConflict(UserError):
    """Several rows have the same primary key."""

    hint = "ON CONFLICT DO NOTHING keeps the first row, ON CONFLICT DO DEDUPLICATE the last one"

    def __init__(self, names: tuple[str, ...], key: tuple[Any, ...], rows: int) -> None:
        self.names, self.key, self.rows = names, key, rows
        key_text = ", ".join(f"{name}={value}" for name, value in zip(names, key, strict=True))
        super().__init__(f"{rows} rows with different upsert keys have the same primary key [{key_text}]")


@dataclass(frozen=True)
class ConflictSpec(SqlOperatorSpec):
    """`keys` are those of the sink; `upsert_key` identifies rows with the same primary key, None for the whole row.

    With `keep_first`, the first row is kept (DO NOTHING); otherwise a conflict is an error."""

    schema: t.RowType
    keys: tuple[int, ...]
    upsert_key: tuple[int, ...] | None = None
    keep_first: bool = False
    ttl: int | None = None

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        (columns,) = plan.inputs
        upsert_key = "" if self.upsert_key is None else format_columns(self.upsert_key, columns, self.schema)
        key = format_columns(self.keys, columns, self.schema)
        action = "NOTHING" if self.keep_first else "ERROR"
        return StateTraits({"key": key, "upsert key": upsert_key, "rows": plan.rows()}, {"on conflict": action})

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return ConflictOperator(context, self)


class ConflictOperator(TableOperator):
    """State: by primary key, the emitted row, and the changes that wait for the watermark."""

    def __init__(self, context: OperatorContext, spec: ConflictSpec) -> None:
        super().__init__(context, spec.schema)
        self._spec = spec
        self._emitted = context.state.table("conflict/emitted", Types.PICKLED_BYTE_ARRAY())
        self._waiting = context.state.table("conflict/waiting", Types.PICKLED_BYTE_ARRAY())
        self._expiry = find_expiry(context, "conflict", spec.ttl)

    def begin_epoch(self) -> None:
        """Delete expired keys."""
        super().begin_epoch()
        if self._expiry is not None:
            for key in self._expiry.take_expired():
                self._emitted.delete(None, key)
                self._waiting.delete(None, key)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Add the changes to those that wait, without pairs that cancel each other."""
        live, dirty = self._waiting.by_key()
        rows, row_kinds = read_rows_with_kinds(batch, self._spec.schema)
        for row, row_kind in zip(rows, row_kinds, strict=True):
            key = get_key(row, self._spec.keys)
            if self._expiry is not None:
                self._expiry.touch(key)
            waiting = live[key]
            changes: list[Change] = [] if waiting is ABSENT else [(added, tuple(values)) for added, values in waiting]
            is_added = row_kind in (INSERT, UPDATE_AFTER)
            if (not is_added, row) in changes:
                changes.remove((not is_added, row))
            else:
                changes.append((is_added, row))
            live[key] = changes or ABSENT
            dirty.add(key)

    def on_watermark(self, watermark: int) -> None:
        """Apply the changes that wait, and emit what changed for each primary key."""
        for key, changes in list(self._waiting.scan(None)):
            self._waiting.delete(None, key)
            self._apply(key, [(added, tuple(row)) for added, row in changes])
        self.flush()
        super().on_watermark(watermark)

    def _apply(self, key: Any, changes: list[Change]) -> None:
        stored = self._emitted.get(None, key)
        previous = None if stored is ABSENT else tuple(stored)
        rows = [] if previous is None else [previous]
        for is_added, row in changes:
            index = self._find(rows, row)
            if not is_added:
                if index is not None:  # otherwise its insert was dropped, or has expired
                    del rows[index]
            elif index is None or self._spec.upsert_key is None:
                rows.append(row)
            else:
                rows[index] = row
        if len(rows) > 1:
            if not self._spec.keep_first:
                names = tuple(self._spec.schema.names[i] for i in self._spec.keys)
                raise PrimaryKeyConflict(names, tuple(rows[0][i] for i in self._spec.keys), len(rows))
            if previous is not None:
                return
        if not rows:
            if previous is not None:
                self.put(DELETE, previous)
                self._emitted.delete(None, key)
        elif rows[0] != previous:
            self.put(INSERT if previous is None else UPDATE_AFTER, rows[0])
            self._emitted.put(None, key, rows[0])

    def _find(self, rows: list[tuple[Any, ...]], row: tuple[Any, ...]) -> int | None:
        key = self._spec.upsert_key
        for index, candidate in enumerate(rows):
            if candidate == row if key is None else all(candidate[i] == row[i] for i in key):
                return index
        return None
