"""Top-N: the first rows of each partition, updated when rows are added or retracted.

Promises: a row that enters or leaves the first N is emitted as +I or -D; with the rank in the result, each rank whose
row changes is emitted as -U and +U. Rows of equal order keep the order of their arrival.
Does not know: time; deduplication has an operator of its own."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from millstream.sql.expressions.stable_text import format_columns, format_order
from millstream.sql.operators.base import TableOperator, get_key, read_rows_with_kinds
from millstream.sql.operators.expiry import find_expiry
from millstream.sql.operators.rank.columnar_ranks import ColumnarRankOperator, Ranking, can_rank
from millstream.sql.operators.rank.epoch_ranks import EpochDeduplicateOperator, EpochRankOperator, can_order
from millstream.sql.operators.rank.first_row import FirstRowOperator
from millstream.sql.operators.rank.local_rank import LocalRankSpec
from millstream.sql.operators.rank.ordering import Order, create_sort_key
from millstream.sql.operators.rank.rank_state import RankState
from millstream.sql.operators.spec import PlanContext, RowPassingSpec, StateTraits, format_flag
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types


@dataclass(frozen=True)
class RankSpec(RowPassingSpec):
    """The rows with ranks from `first` to `last` (None for no limit) of each partition."""

    input: t.RowType
    output: t.RowType
    function: str
    partition: tuple[int, ...]
    order: Order
    first: int
    last: int | None
    with_rank: bool
    retracts: bool
    before: bool = True
    ttl: int | None = None
    mini_batch: bool = False
    mini_batch_size: int | None = None

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        (columns,) = plan.inputs
        return StateTraits(
            {
                "function": self.function,
                "key": format_columns(self.partition, columns, self.input),
                "order": format_order(self.order, columns),
                "range": f"{self.first}..{self.last}",
                "rows": plan.rows(),
                "retracts": format_flag(self.retracts),
                "mini-batch": format_flag(self.mini_batch),
                "expires": format_flag(self.ttl is not None),
            }
        )

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator; with mini-batches one that emits each partition once an epoch, if possible."""
        bounded = self.function == "ROW_NUMBER" and self.last is not None
        is_append_only = self.mini_batch and bounded and not self.retracts and self.ttl is None
        if not is_append_only or not can_order(self.input, self.partition, self.order):
            return RankOperator(context, self)
        if self.last is None or not context.state.is_in_memory or not can_rank(self.input, self.partition, self.order):
            return EpochRankOperator(context, self)
        ranking = Ranking(
            self.input, self.output, self.partition, self.order, self.first, self.last, self.with_rank, self.before
        )
        state = RankState(context, self.input, self.partition)
        return ColumnarRankOperator(context, ranking, state, self.mini_batch_size)


class RankOperator(TableOperator):
    """State: by partition, the rows in order; only the first N of them if the input is insert-only."""

    def __init__(self, context: OperatorContext, spec: RankSpec) -> None:
        super().__init__(context, spec.output)
        self._spec = spec
        self._sort_key = create_sort_key(spec.order)
        self._table = context.state.table("rows", Types.PICKLED_BYTE_ARRAY())
        self._expiry = find_expiry(context, "rows", spec.ttl)

    def begin_epoch(self) -> None:
        """Delete expired partitions."""
        super().begin_epoch()
        if self._expiry is not None:
            for key in self._expiry.take_expired():
                self._table.delete(None, key)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Add and remove rows, and emit the changes."""
        spec = self._spec
        rows, row_kinds = read_rows_with_kinds(batch, spec.input)
        changed: dict[Any, list[tuple[Any, ...]]] = {}
        for row, row_kind in zip(rows, row_kinds, strict=True):
            key = get_key(row, spec.partition)
            ordered = changed.get(key)
            if ordered is None:
                stored = self._table.get(None, key)
                if self._expiry is not None:
                    stored = stored if self._expiry.is_alive(key) else ABSENT
                    self._expiry.touch(key)
                ordered = changed[key] = [] if stored is ABSENT else list(stored)
            self._change(ordered, row, row_kind in (INSERT, UPDATE_AFTER))
        for key, ordered in changed.items():
            self._table.put(None, key, ordered or ABSENT)
        self.flush()

    def _change(self, ordered: list[tuple[Any, ...]], row: tuple[Any, ...], is_insert: bool) -> None:
        spec = self._spec
        if not is_insert and row not in ordered:
            return
        before = self._list_ranked_rows(ordered)
        if is_insert:
            position = bisect_right(ordered, self._sort_key(row), key=self._sort_key)
            if not spec.retracts and spec.last is not None and spec.function == "ROW_NUMBER" and position >= spec.last:
                return
            ordered.insert(position, row)
        else:
            ordered.remove(row)
        after = self._list_ranked_rows(ordered)
        if spec.with_rank or spec.first > 1:
            self._emit_ranked(before, after)
        elif spec.last == 1 and not spec.retracts and before and after and before != after:
            if spec.before:
                self.put(UPDATE_BEFORE, before[0][0])
            self.put(UPDATE_AFTER, after[0][0])
        else:
            self._emit_changes(before, after)
        if not spec.retracts and spec.last is not None and spec.function == "ROW_NUMBER":
            del ordered[spec.last :]

    def _list_ranked_rows(self, ordered: list[tuple[Any, ...]]) -> list[tuple[tuple[Any, ...], int]]:
        """Return the rows of the result with their ranks."""
        spec = self._spec
        if spec.function == "ROW_NUMBER":
            stop = spec.last if spec.last is not None else len(ordered)
            return [(row, spec.first + i) for i, row in enumerate(ordered[spec.first - 1 : stop])]
        ranked_rows: list[tuple[tuple[Any, ...], int]] = []
        rank = dense = 0
        previous: Any = None
        for position, row in enumerate(ordered, 1):
            key = self._sort_key(row)
            if position == 1 or key != previous:
                rank, dense, previous = position, dense + 1, key
            number = rank if spec.function == "RANK" else dense
            if spec.last is not None and number > spec.last:
                break
            if number >= spec.first:
                ranked_rows.append((row, number))
        return ranked_rows

    def _emit_changes(self, before: list[Any], after: list[Any]) -> None:
        removed = [row for row, _ in before]
        new: list[Any] = []
        for row, _ in after:
            if row in removed:
                removed.remove(row)
            else:
                new.append(row)
        for row in removed:
            self.put(DELETE, row)
        for row in new:
            self.put(INSERT, row)

    def _emit_ranked(self, before: list[Any], after: list[Any]) -> None:
        to_output = self._append_rank if self._spec.with_rank else self._strip_rank
        if self._spec.function != "ROW_NUMBER":
            self._emit_changes(
                [(to_output(row, rank), rank) for row, rank in before],
                [(to_output(row, rank), rank) for row, rank in after],
            )
            return
        for (old, rank), (new, _) in zip(before, after, strict=False):
            if old != new:
                if self._spec.before:
                    self.put(UPDATE_BEFORE, to_output(old, rank))
                self.put(UPDATE_AFTER, to_output(new, rank))
        for row, rank in before[len(after) :]:
            self.put(DELETE, to_output(row, rank))
        for row, rank in after[len(before) :]:
            self.put(INSERT, to_output(row, rank))

    @staticmethod
    def _append_rank(row: tuple[Any, ...], rank: int) -> tuple[Any, ...]:
        return (*row, rank)

    @staticmethod
    def _strip_rank(row: tuple[Any, ...], _rank: int) -> tuple[Any, ...]:
        return row


@dataclass(frozen=True)
class DeduplicateSpec(RowPassingSpec):
    """The first or last row of each key by a time attribute."""

    schema: t.RowType
    keys: tuple[int, ...]
    time: int
    last: bool
    processing: bool
    before: bool = True
    ttl: int | None = None
    mini_batch: bool = False
    mini_batch_size: int | None = None

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        (columns,) = plan.inputs
        return StateTraits(
            {
                "key": format_columns(self.keys, columns, self.schema),
                "order": "PROCTIME" if self.processing else columns[self.time],
                "keeps": "last" if self.last else "first",
                "rows": plan.rows(),
                "mini-batch": format_flag(self.mini_batch),
                "expires": format_flag(self.ttl is not None),
            }
        )

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator; with mini-batches one that emits each key once an epoch, if possible."""
        if not self.last and not self.processing:
            return FirstRowOperator(context, self)
        order = ((self.time, True, True),)
        if not self.mini_batch or self.ttl is not None or not can_order(self.schema, self.keys, order):
            return DeduplicateOperator(context, self)
        if not context.state.is_in_memory or not can_rank(self.schema, self.keys, order):
            return EpochDeduplicateOperator(context, self)
        by: Order = () if self.processing else ((self.time, not self.last, True),)
        ranking = Ranking(self.schema, self.schema, self.keys, by, 1, 1, False, self.before, later_first=self.last)
        state = RankState(context, self.schema, self.keys, single=True)
        return ColumnarRankOperator(context, ranking, state, self.mini_batch_size)


class DeduplicateOperator(TableOperator):
    """State: by key, the emitted row."""

    def __init__(self, context: OperatorContext, spec: DeduplicateSpec) -> None:
        super().__init__(context, spec.schema)
        self._spec = spec
        self._table = context.state.table("row", Types.PICKLED_BYTE_ARRAY())
        self._expiry = find_expiry(context, "row", spec.ttl)

    def begin_epoch(self) -> None:
        """Delete expired rows."""
        super().begin_epoch()
        if self._expiry is not None:
            for key in self._expiry.take_expired():
                self._table.delete(None, key)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Emit the first row of each key, or replace it."""
        spec = self._spec
        live, dirty = self._table.by_key()
        rows, kinds = read_rows_with_kinds(batch, spec.schema)
        for row, _ in zip(rows, kinds, strict=True):
            key = get_key(row, spec.keys)
            old = live[key]
            if old is not ABSENT and self._expiry is not None and not self._expiry.is_alive(key):
                old = ABSENT
            if old is ABSENT:
                self.put(INSERT, row)
            elif self._keeps_old(old, row):
                continue
            else:
                if spec.before:
                    self.put(UPDATE_BEFORE, tuple(old))
                self.put(UPDATE_AFTER, row)
            live[key] = row
            dirty.add(key)
            if self._expiry is not None:
                self._expiry.touch(key)
        self.flush()

    def _keeps_old(self, old: tuple[Any, ...], new: tuple[Any, ...]) -> bool:
        spec = self._spec
        if spec.processing:
            return not spec.last or tuple(old) == new
        old_time, new_time = old[spec.time], new[spec.time]
        return bool(new_time < old_time) if spec.last else bool(new_time >= old_time)


def create_local_phase(spec: object) -> LocalRankSpec | None:
    """Return the local phase of a Top-N or deduplication, which drops rows that cannot be in the result.

    None if every change of the result is emitted, or if the input has retractions."""
    match spec:
        case RankSpec(function="ROW_NUMBER", last=int(last), retracts=False, ttl=None, mini_batch=True):
            local_rank = LocalRankSpec(
                spec.input, spec.partition, spec.order, last, mini_batch_size=spec.mini_batch_size
            )
        case DeduplicateSpec(ttl=None, mini_batch=True) if spec.last or spec.processing:
            order: Order = () if spec.processing else ((spec.time, not spec.last, True),)
            local_rank = LocalRankSpec(spec.schema, spec.keys, order, 1, spec.last, spec.mini_batch_size)
        case _:
            return None
    return (
        local_rank
        if local_rank.partition and can_rank(local_rank.schema, local_rank.partition, local_rank.order)
        else None
    )
