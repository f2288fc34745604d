"""Regular joins: all pairs of matching rows, updated when rows are added or retracted.

Promises: Flink's changelog for inner, outer, semi and anti joins of updating tables: in an outer join, a row is emitted
with NULLs as long as it has no match.
Does not know: time.

State of a side: by key, {row: [occurrences, matches, last change]}; matches are counted on outer sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import DELETE, INSERT, UPDATE_AFTER, create_row_array
from millstream.sql.evaluation.evaluate import Condition, EvaluationFailed
from millstream.sql.expressions.nodes import Expression
from millstream.sql.operators.base import TableOperator, get_key, read_rows_with_kinds
from millstream.sql.operators.expiry import find_expiry
from millstream.sql.operators.join.columnar_join import ColumnarJoinOperator, can_compare_keys
from millstream.sql.operators.join.equi_join import EquiJoinSpec
from millstream.sql.operators.join.inner_join import InnerJoinOperator
from millstream.sql.operators.spec import PlanContext, StateTraits
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types

_SIDES = ("left", "right")


@dataclass(frozen=True)
class JoinSpec(EquiJoinSpec):
    """A join by equal keys, and a condition over both rows. Keys that are NULL match nothing."""

    left: t.RowType
    right: t.RowType
    output: t.RowType
    kind: str
    keys: tuple[tuple[int, ...], tuple[int, ...]]
    condition: Expression | None
    ttl: tuple[int | None, int | None] = (None, None)
    zone: str = "UTC"
    insert_only: bool = False

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        expires = " and ".join(side for side, ttl in zip(("left", "right"), self.ttl, strict=True) if ttl is not None)
        fixed = {**self.key_traits(plan), **self.row_traits(plan), "expires": expires}
        return StateTraits(fixed, {"where": self.condition_text(plan)})

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator; a columnar one for inner joins of insert-only tables."""
        if self.kind == "inner" and self.ttl == (None, None):
            if self.insert_only and can_compare_keys(self.left, self.right, self.keys):
                return ColumnarJoinOperator(context, self)
            return InnerJoinOperator(context, self)
        return JoinOperator(context, self)


class JoinOperator(TableOperator):
    """The join of two updating inputs, row by row."""

    def __init__(self, context: OperatorContext, spec: JoinSpec) -> None:
        super().__init__(context, spec.output, spec.zone, spec)
        self._spec = spec
        self._schemas = (spec.left, spec.right)
        self._tables = [context.state.table(f"join/{side}", Types.PICKLED_BYTE_ARRAY()) for side in _SIDES]
        self._expiries = [find_expiry(context, f"join/{side}", ttl) for side, ttl in zip(_SIDES, spec.ttl, strict=True)]
        self._outer = (spec.kind in ("left", "full"), spec.kind in ("right", "full"))
        self._condition = None if spec.condition is None else Condition(spec.condition)
        self._both = t.row_of(
            [str(i) for i in range(len(spec.left) + len(spec.right))], [*spec.left.types, *spec.right.types], null=False
        )
        self._nulls = tuple((None,) * len(schema) for schema in self._schemas)
        self._semi = spec.kind in ("semi", "anti")

    def begin_epoch(self) -> None:
        """Delete expired rows."""
        super().begin_epoch()
        for expiry, table in zip(self._expiries, self._tables, strict=True):
            if expiry is not None:
                for key in expiry.take_expired():
                    table.delete(None, key)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Join each row with the other side."""
        columns = self._spec.keys[side]
        rows, row_kinds = read_rows_with_kinds(batch, self._schemas[side])
        handle = self._process_semi_join_row if self._semi else self._join_row
        for row, row_kind in zip(rows, row_kinds, strict=True):
            key = get_key(row, columns)
            has_null_key = any(row[i] is None for i in columns)
            try:
                handle(side, key, row, row_kind, has_null_key)
            except EvaluationFailed as problem:
                raise self.fail(problem, row) from None
        self.flush()

    def _read(self, side: int, key: Any) -> dict[tuple[Any, ...], list[int]]:
        stored = self._tables[side].get(None, key)
        if stored is ABSENT:
            return {}
        ttl = self._spec.ttl[side]
        if ttl is None:
            return stored  # type: ignore[no-any-return]
        now = self.context.now
        return {row: entry for row, entry in stored.items() if now - entry[2] < ttl}

    def _store(self, side: int, key: Any, rows: dict[tuple[Any, ...], list[int]]) -> None:
        self._tables[side].put(None, key, rows or ABSENT)
        expiry = self._expiries[side]
        if expiry is not None and rows:
            expiry.touch(key)

    def _find_partners(self, side: int, row: tuple[Any, ...], others: dict[tuple[Any, ...], list[int]]) -> list[Any]:
        """Return the rows of the other side that match."""
        if not others:
            return []
        candidates = list(others)
        if self._condition is None:
            return candidates
        pairs = [(*row, *other) if side == 0 else (*other, *row) for other in candidates]
        array = create_row_array(pairs, None, self._both)
        holds = self._condition.holds(self.create_frame(array, len(self._both)))
        return [other for other, is_match in zip(candidates, holds, strict=True) if is_match]

    def _join_pair(self, side: int, row: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
        return row + other if side == 0 else other + row

    def _fill_with_nulls(self, side: int, row: tuple[Any, ...]) -> tuple[Any, ...]:
        return self._join_pair(side, row, self._nulls[1 - side])

    def _change(self, stored: dict[Any, list[int]], row: tuple[Any, ...], is_insert: bool, partners: int) -> None:
        entry = stored.get(row)
        if entry is None:
            if is_insert or self._spec.ttl == (None, None):  # the row may have expired already
                stored[row] = [1 if is_insert else -1, partners, self.context.now]
        else:
            entry[0] += 1 if is_insert else -1
            entry[1] = partners
            entry[2] = self.context.now
            if not entry[0]:
                del stored[row]

    def _join_row(self, side: int, key: Any, row: tuple[Any, ...], row_kind: int, has_null_key: bool) -> None:
        is_insert = row_kind in (INSERT, UPDATE_AFTER)
        others = {} if has_null_key else self._read(1 - side, key)
        partners = self._find_partners(side, row, others)
        other_outer = self._outer[1 - side]
        output_kind = row_kind if not any(self._outer) else INSERT if is_insert else DELETE
        if is_insert:
            if partners:
                for other in partners:
                    entry = others[other]
                    if other_outer and entry[1] == 0:
                        for _ in range(entry[0]):
                            self.put(DELETE, self._fill_with_nulls(1 - side, other))
                    entry[1] += 1
                    if other_outer:
                        entry[2] = self.context.now
                for other in partners:
                    for _ in range(others[other][0]):
                        self.put(output_kind, self._join_pair(side, row, other))
            elif self._outer[side]:
                self.put(INSERT, self._fill_with_nulls(side, row))
        elif partners:
            for other in partners:
                for _ in range(others[other][0]):
                    self.put(output_kind, self._join_pair(side, row, other))
            for other in partners:
                entry = others[other]
                entry[1] -= 1
                if other_outer:
                    entry[2] = self.context.now
                if other_outer and entry[1] == 0:
                    for _ in range(entry[0]):
                        self.put(INSERT, self._fill_with_nulls(1 - side, other))
        elif self._outer[side]:
            self.put(DELETE, self._fill_with_nulls(side, row))
        if partners:
            self._store(1 - side, key, others)
        if has_null_key and not self._outer[side]:
            return
        if not has_null_key:
            stored = self._read(side, key)
            self._change(stored, row, is_insert, sum(others[other][0] for other in partners))
            self._store(side, key, stored)

    def _process_semi_join_row(
        self, side: int, key: Any, row: tuple[Any, ...], row_kind: int, has_null_key: bool
    ) -> None:
        """Join a row of a SEMI join, which emits left rows with a match, or an ANTI join, which emits those without."""
        is_insert = row_kind in (INSERT, UPDATE_AFTER)
        is_anti = self._spec.kind == "anti"
        if side == 0:
            others = {} if has_null_key else self._read(1, key)
            count = sum(others[other][0] for other in self._find_partners(0, row, others))
            if (count == 0) == is_anti:
                self.put(row_kind, row)
            if not has_null_key:
                stored = self._read(0, key)
                self._change(stored, row, is_insert, count)
                self._store(0, key, stored)
            return
        if has_null_key:
            return
        lefts = self._read(0, key)
        for left in self._find_partners(1, row, lefts):
            entry = lefts[left]
            before = entry[1]
            entry[1] += 1 if is_insert else -1
            if (before == 0) != (entry[1] == 0):
                is_emitted = (entry[1] == 0) == is_anti
                for _ in range(entry[0]):
                    self.put(INSERT if is_emitted else DELETE, left)
        if lefts:
            self._store(0, key, lefts)
        stored = self._read(1, key)
        self._change(stored, row, is_insert, 0)
        self._store(1, key, stored)
