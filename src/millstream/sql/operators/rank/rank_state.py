"""State of Top-N and deduplication: rows by partition, or runs of rows.

Promises: each form has a table of its own, and an operator converts state in the other form, so that
state moves between memory and disk.
Does not know: which rows are emitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from millstream.runtime.operator import OperatorContext
from millstream.sql.columns import create_row_array, create_tuple_type_info, to_tuples
from millstream.sql.operators.base import Rows, get_key
from millstream.sql.operators.rank.ordering import Order, create_sort_key
from millstream.sql.operators.row_runs import RowRuns
from millstream.sql.types import data_types as t
from millstream.types.factory import Types


class RankState:
    """The rows of each partition: by key in order, or in runs in order of arrival; with `single`, one row each."""

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
        row = create_tuple_type_info(schema.types)
        self.runs = RowRuns(context, "rows/runs", schema, partition, newest=True)
        self.by_key = (
            context.state.table("row/shown", row) if single else context.state.table("rows/first", Types.LIST(row))
        )

    def take_from_keys(self) -> pa.Array | None:
        """Remove the rows that are stored by key, and return them as an array of a batch; None if there are none."""
        stored = list(self.by_key.scan(None))
        if not stored:
            return None
        for key, _ in stored:
            self.by_key.delete(None, key)
        rows = [row for _, value in stored for row in ([value] if self._single else value)]
        return create_row_array(rows, None, self._schema)

    def convert_to_keys(self) -> None:
        """Convert rows in runs to rows by key."""
        array = self.runs.rows()
        if array is None:
            return
        self.runs.clear()
        rows_by_key: dict[Any, Rows] = {}
        for row in to_tuples(array, self._schema):
            rows_by_key.setdefault(get_key(row, self._partition), []).append(row)
        if self._order:
            for rows in rows_by_key.values():
                rows.sort(key=create_sort_key(self._order))
        values: list[Any] = [rows[0] for rows in rows_by_key.values()] if self._single else list(rows_by_key.values())
        self.by_key.put_many(None, list(rows_by_key), values)
