"""Corrects changes for a sink whose primary key is not the upsert key of its input.

Promises: Flink's SinkUpsertMaterializer. Several rows may have the same primary key; the sink gets the latest of those
that still exist, in whichever order their changes arrive.
Does not know: the sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, combine_columns, to_internal_values
from millstream.sql.expressions.stable_text import format_columns
from millstream.sql.operators.base import TableOperator, get_key, read_rows_with_kinds
from millstream.sql.operators.spec import STATELESS, PlanContext, SqlOperatorSpec, StateTraits
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types


@dataclass(frozen=True)
class UpsertMaterializeSpec(SqlOperatorSpec):
    """`keys` are those of the sink; `upsert_key` identifies rows with the same primary key, None for the whole row."""

    schema: t.RowType
    keys: tuple[int, ...]
    upsert_key: tuple[int, ...] | None = None
    ttl: int | None = None

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        (columns,) = plan.inputs
        upsert_key = "" if self.upsert_key is None else format_columns(self.upsert_key, columns, self.schema)
        key = format_columns(self.keys, columns, self.schema)
        return StateTraits({"key": key, "upsert key": upsert_key, "rows": plan.rows()})

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return UpsertMaterializeOperator(context, self)


class UpsertMaterializeOperator(TableOperator):
    """State: by primary key, [time of the last change, its rows in order of arrival]."""

    def __init__(self, context: OperatorContext, spec: UpsertMaterializeSpec) -> None:
        super().__init__(context, spec.schema)
        self._spec = spec
        self._table = context.state.table("claims", Types.PICKLED_BYTE_ARRAY())

    def on_batch(self, batch: Batch, side: int) -> None:
        """Add and retract rows of primary keys."""
        spec, now = self._spec, self.context.now
        live, dirty = self._table.by_key()
        rows, row_kinds = read_rows_with_kinds(batch, spec.schema)
        for row, row_kind in zip(rows, row_kinds, strict=True):
            key = get_key(row, spec.keys)
            entry = live[key]
            if entry is not ABSENT and spec.ttl is not None and now - entry[0] >= spec.ttl:
                entry = ABSENT
            candidates: list[Any] = [] if entry is ABSENT else list(entry[1])
            if row_kind in (INSERT, UPDATE_AFTER):
                self._add(candidates, row)
            else:
                self._retract(candidates, row)
            live[key] = [now, candidates] if candidates else ABSENT
            dirty.add(key)
        self.flush()

    def _find(self, candidates: list[Any], row: tuple[Any, ...]) -> int | None:
        key = self._spec.upsert_key
        for index, candidate in enumerate(candidates):
            is_equal = tuple(candidate) == row if key is None else all(candidate[i] == row[i] for i in key)
            if is_equal:
                return index
        return None

    def _add(self, candidates: list[Any], row: tuple[Any, ...]) -> None:
        self.put(UPDATE_AFTER if candidates else INSERT, row)
        index = None if self._spec.upsert_key is None else self._find(candidates, row)
        if index is None:
            candidates.append(row)
        else:
            candidates[index] = row

    def _retract(self, candidates: list[Any], row: tuple[Any, ...]) -> None:
        index = self._find(candidates, row)
        if index is None:  # its insert has expired
            return
        del candidates[index]
        if not candidates:
            self.put(DELETE, row)
        elif index == len(candidates):
            self.put(UPDATE_AFTER, tuple(candidates[-1]))


@dataclass(frozen=True)
class UpsertsSpec(SqlOperatorSpec):
    """Converts a changelog to upserts and deletes by key.

    UPDATE_BEFORE is dropped if the next row is its UPDATE_AFTER with the same key; otherwise it becomes a delete."""

    schema: t.RowType
    keys: tuple[int, ...]

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Declare that no state is kept."""
        return STATELESS

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return UpsertsOperator(context, self)


class UpsertsOperator(TableOperator):
    """Drops UPDATE_BEFORE rows, or converts them to deletes."""

    def __init__(self, context: OperatorContext, spec: UpsertsSpec) -> None:
        super().__init__(context, spec.schema)
        self._keys = spec.keys

    def on_batch(self, batch: Batch, side: int) -> None:
        """Convert the changes to upserts and deletes."""
        array, width = batch.array(), len(self.output)
        row_kinds = array.field(width).fill_null(INSERT).to_numpy()
        before = np.flatnonzero(row_kinds == UPDATE_BEFORE)
        if len(before):
            replaced = before[before + 1 < len(row_kinds)]
            replaced = replaced[row_kinds[replaced + 1] == UPDATE_AFTER]
            for key in self._keys:
                values = to_internal_values(array.field(key), self.output.types[key])
                replaced = np.array([i for i in replaced.tolist() if values[i] == values[i + 1]], np.int64)
            row_kinds = np.where(row_kinds == UPDATE_BEFORE, DELETE, row_kinds).astype(np.int8)
            columns = [array.field(i) for i in range(width)]
            array = combine_columns(columns, pa.array(row_kinds), self.output, len(array))
            array = array.take(pa.array(np.setdiff1d(np.arange(len(row_kinds)), replaced)))
        self.emit_array(array)
