"""What inner joins keep of a side: rows by key, or runs of rows.

Promises: both forms have tables of their own, and an operator that finds rows in the other form takes them over, so
that state moves between memory and disk, and between tables that only grow and tables that change.
Does not know: how rows meet."""

from __future__ import annotations

from typing import Any

from millstream.runtime.operator import OperatorContext
from millstream.sql.columns import tuple_type_info
from millstream.sql.operators.row_runs import RowRuns
from millstream.state.table import StateTable
from millstream.types.factory import Types

_SIDES = ("left", "right")


def rows_by_key(context: OperatorContext, spec: Any) -> list[StateTable]:
    """For both sides, by key: how often each row is there."""
    kinds = [Types.MAP(tuple_type_info(schema.types), Types.LONG()) for schema in (spec.left, spec.right)]
    sides = zip(_SIDES, kinds, strict=True)
    return [context.state.table(f"join/rows/{side}", kind, kind="map") for side, kind in sides]


def runs_of_rows(context: OperatorContext, spec: Any) -> list[RowRuns]:
    """For both sides, the rows as columns."""
    sides = zip(_SIDES, (spec.left, spec.right), spec.keys, strict=True)
    return [RowRuns(context, f"join/runs/{side}", schema, keys) for side, schema, keys in sides]
