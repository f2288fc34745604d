"""What a sink with a primary key must be told when changes come under other keys than its own.

Promises: Flink's SinkUpsertMaterializer. Several rows may claim one primary key; the sink is shown the one that came
last among those that are still there, whatever order their changes arrive in.
Does not know: the sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, internal_values, struct_of
from millstream.sql.expressions.stable_text import columns_text
from millstream.sql.operators.base import TableOperator, key_of, rows_with_kinds
from millstream.sql.operators.spec import STATELESS, PlanContext, SqlOperatorSpec, StateTraits
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types


@dataclass(frozen=True)
class UpsertMaterializeSpec(SqlOperatorSpec):
    """`keys` are the sink's; `upsert_key` tells rows of one primary key apart, the whole row where it is None."""

    schema: t.RowType
    keys: tuple[int, ...]
    upsert_key: tuple[int, ...] | None = None
    ttl: int | None = None

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        (columns,) = plan.inputs
        upsert_key = "" if self.upsert_key is None else columns_text(self.upsert_key, columns, self.schema)
        key = columns_text(self.keys, columns, self.schema)
        return StateTraits({"key": key, "upsert key": upsert_key, "rows": plan.rows()})

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return UpsertMaterializeOperator(context, self)


class UpsertMaterializeOperator(TableOperator):
    """State: by primary key, [when it changed last, the rows that claim it in the order in which they came]."""

    def __init__(self, context: OperatorContext, spec: UpsertMaterializeSpec) -> None:
        super().__init__(context, spec.schema)
        self._spec = spec
        self._table = context.state.table("claims", Types.PICKLED_BYTE_ARRAY())

    def on_batch(self, batch: Batch, side: int) -> None:
        """Add and take back claims."""
        spec, now = self._spec, self.context.now
        live, dirty = self._table.by_key()
        rows, kinds = rows_with_kinds(batch, spec.schema)
        for row, kind in zip(rows, kinds, strict=True):
            key = key_of(row, spec.keys)
            entry = live[key]
            if entry is not ABSENT and spec.ttl is not None and now - entry[0] >= spec.ttl:
                entry = ABSENT
            claims: list[Any] = [] if entry is ABSENT else list(entry[1])
            if kind in (INSERT, UPDATE_AFTER):
                self._add(claims, row)
            else:
                self._retract(claims, row)
            live[key] = [now, claims] if claims else ABSENT
            dirty.add(key)
        self.flush()

    def _place(self, claims: list[Any], row: tuple[Any, ...]) -> int | None:
        key = self._spec.upsert_key
        for place, claim in enumerate(claims):
            same = tuple(claim) == row if key is None else all(claim[i] == row[i] for i in key)
            if same:
                return place
        return None

    def _add(self, claims: list[Any], row: tuple[Any, ...]) -> None:
        self.put(UPDATE_AFTER if claims else INSERT, row)
        place = None if self._spec.upsert_key is None else self._place(claims, row)
        if place is None:
            claims.append(row)
        else:
            claims[place] = row

    def _retract(self, claims: list[Any], row: tuple[Any, ...]) -> None:
        place = self._place(claims, row)
        if place is None:  # its insert has been forgotten after the state's time to live
            return
        del claims[place]
        if not claims:
            self.put(DELETE, row)
        elif place == len(claims):
            self.put(UPDATE_AFTER, tuple(claims[-1]))


@dataclass(frozen=True)
class UpsertsSpec(SqlOperatorSpec):
    """All changes as upserts and deletions by key: a row as it was before an update is of no use to whoever replaces
    rows, if the row after it has the same key and follows; otherwise it is a deletion."""

    schema: t.RowType
    keys: tuple[int, ...]

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Declare that no state is kept."""
        return STATELESS

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return UpsertsOperator(context, self)


class UpsertsOperator(TableOperator):
    """Stateless."""

    def __init__(self, context: OperatorContext, spec: UpsertsSpec) -> None:
        super().__init__(context, spec.schema)
        self._keys = spec.keys

    def on_batch(self, batch: Batch, side: int) -> None:
        """Leave out rows that are replaced at once."""
        array, width = batch.array(), len(self.output)
        kinds = array.field(width).fill_null(INSERT).to_numpy()
        before = np.flatnonzero(kinds == UPDATE_BEFORE)
        if len(before):
            replaced = before[before + 1 < len(kinds)]
            replaced = replaced[kinds[replaced + 1] == UPDATE_AFTER]
            for place in self._keys:
                values = internal_values(array.field(place), self.output.types[place])
                replaced = np.array([i for i in replaced.tolist() if values[i] == values[i + 1]], np.int64)
            kinds = np.where(kinds == UPDATE_BEFORE, DELETE, kinds).astype(np.int8)
            columns = [array.field(i) for i in range(width)]
            array = struct_of(columns, pa.array(kinds), self.output, len(array))
            array = array.take(pa.array(np.setdiff1d(np.arange(len(kinds)), replaced)))
        self.emit_array(array)
