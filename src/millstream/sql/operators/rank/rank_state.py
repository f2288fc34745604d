"""What Top-N and deduplication keep: rows by partition, or runs of rows.

Promises: both forms have tables of their own, and an operator that finds rows in the other form takes them over, so
that state moves between memory and disk.
Does not know: what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from millstream.runtime.operator import OperatorContext
from millstream.sql.columns import array_of, tuple_type_info, tuples_of
from millstream.sql.operators.base import Rows, key_of
from millstream.sql.operators.rank.ordering import Order, sort_key
from millstream.sql.operators.row_runs import RowRuns
from millstream.sql.types import data_types as t
from millstream.types.factory import Types


class RankState:
    """The rows that are kept of each partition: many, by key in an order and in runs as they came; or with `single`
    one."""

    def __init__(
        self,
        context: OperatorContext,
        schema: t.RowType,
        partition: Sequence[int],
        order: Order = (),
        *,
        single: bool = False,
    ) -> None:
        self._schema, self._partition, self._single = schema, tuple(partition), single
        self._order = order
        row = tuple_type_info(schema.types)
        self.runs = RowRuns(context, "rows/runs", schema, partition, newest=True)
        self.by_key = (
            context.state.table("row/shown", row) if single else context.state.table("rows/first", Types.LIST(row))
        )

    def taken_from_keys(self) -> pa.Array | None:
        """The rows that are kept by key, as an array of a batch; they are there no longer. None for none."""
        stored = list(self.by_key.scan(None))
        if not stored:
            return None
        for key, _ in stored:
            self.by_key.delete(None, key)
        rows = [row for _, value in stored for row in ([value] if self._single else value)]
        return array_of(rows, None, self._schema)

    def keep_by_key(self) -> None:
        """Rows that are in runs are kept by key instead."""
        array = self.runs.rows()
        if array is None:
            return
        self.runs.clear()
        found: dict[Any, Rows] = {}
        for row in tuples_of(array, self._schema):
            found.setdefault(key_of(row, self._partition), []).append(row)
        if self._order:
            for rows in found.values():
                rows.sort(key=sort_key(self._order))
        values: list[Any] = [rows[0] for rows in found.values()] if self._single else list(found.values())
        self.by_key.put_many(None, list(found), values)
