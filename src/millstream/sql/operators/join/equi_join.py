"""The base class of joins by equal keys: their keys, and which columns of the sides the output keeps.

Promises: in an outer join, columns of a side that may be NULL in the output are not declared as kept.
Does not know: how rows are joined."""

from __future__ import annotations

from collections.abc import Mapping

from millstream.sql.expressions.nodes import Expression
from millstream.sql.expressions.stable_text import format_columns, format_expression
from millstream.sql.operators.spec import PlanContext, SqlOperatorSpec, map_same_columns
from millstream.sql.types import data_types as t

_NEVER_NULL = (
    {"inner", "left", "semi", "anti"},
    {"inner", "right"},
)  # join types in which a side is never filled with NULL


class EquiJoinSpec(SqlOperatorSpec):
    """A join of two inputs by equal keys, and a condition over both rows."""

    left: t.RowType
    right: t.RowType
    kind: str
    keys: tuple[tuple[int, ...], tuple[int, ...]]
    condition: Expression | None

    def kept_columns(self, plan: PlanContext, side: int) -> Mapping[int, tuple[int, ...]]:
        """Return the indexes of a side's columns in the output: the left columns are first, then the right columns."""
        if self.kind not in _NEVER_NULL[side]:
            return {}
        if side == 0:
            return map_same_columns(len(self.left))
        return {i: (len(self.left) + i,) for i in range(len(self.right))}

    def key_traits(self, plan: PlanContext) -> dict[str, str]:
        """Return the type of the join and its keys as traits."""
        sides = zip(("left key", "right key"), self.keys, plan.inputs, plan.schemas, strict=True)
        return {"join": self.kind, **{name: format_columns(keys, texts, schema) for name, keys, texts, schema in sides}}

    def row_traits(self, plan: PlanContext) -> dict[str, str]:
        """Return the columns of both sides, which are in state, as traits."""
        return {"left rows": plan.rows(0), "right rows": plan.rows(1)}

    def condition_text(self, plan: PlanContext) -> str:
        """Return the condition as text."""
        left, right = plan.inputs
        return "" if self.condition is None else format_expression(self.condition, (*left, *right))
