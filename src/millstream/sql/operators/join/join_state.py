"""State of inner joins: the rows of each side, by key or in runs.

Promises: each form has tables of its own, and an operator converts state in the other form, so that state
moves between memory and disk, and between insert-only and updating tables.
Does not know: how rows are joined."""

from __future__ import annotations

from typing import Any

from millstream.runtime.operator import OperatorContext
from millstream.sql.columns import create_tuple_type_info
from millstream.sql.operators.row_runs import RowRuns
from millstream.state.table import StateTable
from millstream.types.factory import Types

_SIDES = ("left", "right")


def get_row_tables(context: OperatorContext, spec: Any) -> list[StateTable]:
    """Return the tables of both sides: by key, the number of occurrences of each row."""
    type_infos = [Types.MAP(create_tuple_type_info(schema.types), Types.LONG()) for schema in (spec.left, spec.right)]
    sides = zip(_SIDES, type_infos, strict=True)
    return [context.state.table(f"join/rows/{side}", type_info, kind="map") for side, type_info in sides]


def create_runs(context: OperatorContext, spec: Any) -> list[RowRuns]:
    """Return the runs of rows of both sides."""
    sides = zip(_SIDES, (spec.left, spec.right), spec.keys, strict=True)
    return [RowRuns(context, f"join/runs/{side}", schema, keys) for side, schema, keys in sides]
