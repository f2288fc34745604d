"""Top-N: the first rows of each partition, kept right while rows come and go.

Promises: a row that enters or leaves the first N is told as +I or -D; with the rank in the result, each place whose row
changes is told as -U and +U. Rows with equal order keep the order in which they came.
Does not know: time; deduplication has its own rule for what counts as an update."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from millstream.sql.expressions.stable_text import columns_text, order_text
from millstream.sql.operators.base import TableOperator, key_of, rows_with_kinds
from millstream.sql.operators.expiry import expiry_of
from millstream.sql.operators.rank.columnar_ranks import ColumnarRankOperator, Ranking, can_rank
from millstream.sql.operators.rank.epoch_ranks import EpochDeduplicateOperator, EpochRankOperator, can_order
from millstream.sql.operators.rank.first_row import FirstRowOperator
from millstream.sql.operators.rank.local_rank import LocalRankSpec
from millstream.sql.operators.rank.ordering import Order, sort_key
from millstream.sql.operators.rank.rank_state import RankState
from millstream.sql.operators.spec import PlanContext, RowPassingSpec, StateTraits, yes
from millstream.sql.types import data_types as t
from millstream.state.store import ABSENT
from millstream.types.factory import Types


@dataclass(frozen=True)
class RankSpec(RowPassingSpec):
    """The rows from place `first` to `last` (None for no end) of each partition."""

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

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        (columns,) = plan.inputs
        return StateTraits(
            {
                "function": self.function,
                "key": columns_text(self.partition, columns, self.input),
                "order": order_text(self.order, columns),
                "range": f"{self.first}..{self.last}",
                "rows": plan.rows(),
                "retracts": yes(self.retracts),
                "mini-batch": yes(self.mini_batch),
                "expires": yes(self.ttl is not None),
            }
        )

    def build(self, context: OperatorContext) -> Operator:
        """The operator; with mini-batches one that tells each partition once an epoch, where that is possible."""
        bounded = self.function == "ROW_NUMBER" and self.last is not None
        plain = self.mini_batch and bounded and not self.retracts and self.ttl is None
        if not plain or not can_order(self.input, self.partition, self.order):
            return RankOperator(context, self)
        if self.last is None or not context.state.is_in_memory or not can_rank(self.input, self.partition, self.order):
            return EpochRankOperator(context, self)
        ranking = Ranking(
            self.input, self.output, self.partition, self.order, self.first, self.last, self.with_rank, self.before
        )
        return ColumnarRankOperator(context, ranking, RankState(context, self.input, self.partition))


class RankOperator(TableOperator):
    """State: by partition, the rows in order; only the first N of them when none is ever taken back."""

    def __init__(self, context: OperatorContext, spec: RankSpec) -> None:
        super().__init__(context, spec.output)
        self._spec = spec
        self._sort_key = sort_key(spec.order)
        self._table = context.state.table("rows", Types.PICKLED_BYTE_ARRAY())
        self._expiry = expiry_of(context, "rows", spec.ttl)

    def begin_epoch(self) -> None:
        """Forget partitions that have lived long enough."""
        super().begin_epoch()
        if self._expiry is not None:
            for key in self._expiry.expired():
                self._table.delete(None, key)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Put rows in their places."""
        spec = self._spec
        rows, kinds = rows_with_kinds(batch, spec.input)
        touched: dict[Any, list[tuple[Any, ...]]] = {}
        for row, kind in zip(rows, kinds, strict=True):
            key = key_of(row, spec.partition)
            listed = touched.get(key)
            if listed is None:
                found = self._table.get(None, key)
                if self._expiry is not None:
                    found = found if self._expiry.alive(key) else ABSENT
                    self._expiry.touch(key)
                listed = touched[key] = [] if found is ABSENT else list(found)
            self._change(listed, row, kind in (INSERT, UPDATE_AFTER))
        for key, listed in touched.items():
            self._table.put(None, key, listed or ABSENT)
        self.flush()

    def _change(self, listed: list[tuple[Any, ...]], row: tuple[Any, ...], adding: bool) -> None:
        spec = self._spec
        if not adding and row not in listed:
            return
        before = self._window(listed)
        if adding:
            place = bisect_right(listed, self._sort_key(row), key=self._sort_key)
            if not spec.retracts and spec.last is not None and spec.function == "ROW_NUMBER" and place >= spec.last:
                return
            listed.insert(place, row)
        else:
            listed.remove(row)
        after = self._window(listed)
        if spec.with_rank or spec.first > 1:
            self._tell_ranked(before, after)
        elif spec.last == 1 and not spec.retracts and before and after and before != after:
            if spec.before:
                self.put(UPDATE_BEFORE, before[0][0])
            self.put(UPDATE_AFTER, after[0][0])
        else:
            self._tell(before, after)
        if not spec.retracts and spec.last is not None and spec.function == "ROW_NUMBER":
            del listed[spec.last :]

    def _window(self, listed: list[tuple[Any, ...]]) -> list[tuple[tuple[Any, ...], int]]:
        """The rows shown, with their ranks."""
        spec = self._spec
        if spec.function == "ROW_NUMBER":
            stop = spec.last if spec.last is not None else len(listed)
            return [(row, spec.first + i) for i, row in enumerate(listed[spec.first - 1 : stop])]
        shown: list[tuple[tuple[Any, ...], int]] = []
        rank = dense = 0
        previous: Any = None
        for place, row in enumerate(listed, 1):
            key = self._sort_key(row)
            if place == 1 or key != previous:
                rank, dense, previous = place, dense + 1, key
            number = rank if spec.function == "RANK" else dense
            if spec.last is not None and number > spec.last:
                break
            if number >= spec.first:
                shown.append((row, number))
        return shown

    def _tell(self, before: list[Any], after: list[Any]) -> None:
        left = [row for row, _ in before]
        new: list[Any] = []
        for row, _ in after:
            if row in left:
                left.remove(row)
            else:
                new.append(row)
        for row in left:
            self.put(DELETE, row)
        for row in new:
            self.put(INSERT, row)

    def _tell_ranked(self, before: list[Any], after: list[Any]) -> None:
        shown = self._with_rank if self._spec.with_rank else self._without_rank
        if self._spec.function != "ROW_NUMBER":
            self._tell(
                [(shown(row, rank), rank) for row, rank in before], [(shown(row, rank), rank) for row, rank in after]
            )
            return
        for (old, rank), (new, _) in zip(before, after, strict=False):
            if old != new:
                if self._spec.before:
                    self.put(UPDATE_BEFORE, shown(old, rank))
                self.put(UPDATE_AFTER, shown(new, rank))
        for row, rank in before[len(after) :]:
            self.put(DELETE, shown(row, rank))
        for row, rank in after[len(before) :]:
            self.put(INSERT, shown(row, rank))

    @staticmethod
    def _with_rank(row: tuple[Any, ...], rank: int) -> tuple[Any, ...]:
        return (*row, rank)

    @staticmethod
    def _without_rank(row: tuple[Any, ...], _rank: int) -> tuple[Any, ...]:
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

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        (columns,) = plan.inputs
        return StateTraits(
            {
                "key": columns_text(self.keys, columns, self.schema),
                "order": "PROCTIME" if self.processing else columns[self.time],
                "keeps": "last" if self.last else "first",
                "rows": plan.rows(),
                "mini-batch": yes(self.mini_batch),
                "expires": yes(self.ttl is not None),
            }
        )

    def build(self, context: OperatorContext) -> Operator:
        """The operator; with mini-batches one that tells each key once an epoch, where that is possible."""
        if not self.last and not self.processing:
            return FirstRowOperator(context, self)
        order = ((self.time, True, True),)
        if not self.mini_batch or self.ttl is not None or not can_order(self.schema, self.keys, order):
            return DeduplicateOperator(context, self)
        if not context.state.is_in_memory or not can_rank(self.schema, self.keys, order):
            return EpochDeduplicateOperator(context, self)
        by: Order = () if self.processing else ((self.time, not self.last, True),)
        ranking = Ranking(self.schema, self.schema, self.keys, by, 1, 1, False, self.before, later_first=self.last)
        return ColumnarRankOperator(context, ranking, RankState(context, self.schema, self.keys, single=True))


class DeduplicateOperator(TableOperator):
    """State: by key, the row that is shown."""

    def __init__(self, context: OperatorContext, spec: DeduplicateSpec) -> None:
        super().__init__(context, spec.schema)
        self._spec = spec
        self._table = context.state.table("row", Types.PICKLED_BYTE_ARRAY())
        self._expiry = expiry_of(context, "row", spec.ttl)

    def begin_epoch(self) -> None:
        """Forget rows that have lived long enough."""
        super().begin_epoch()
        if self._expiry is not None:
            for key in self._expiry.expired():
                self._table.delete(None, key)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Keep or replace."""
        spec = self._spec
        live, dirty = self._table.by_key()
        rows, kinds = rows_with_kinds(batch, spec.schema)
        for row, _ in zip(rows, kinds, strict=True):
            key = key_of(row, spec.keys)
            old = live[key]
            if old is not ABSENT and self._expiry is not None and not self._expiry.alive(key):
                old = ABSENT
            if old is ABSENT:
                self.put(INSERT, row)
            elif self._stays(old, row):
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

    def _stays(self, old: tuple[Any, ...], new: tuple[Any, ...]) -> bool:
        spec = self._spec
        if spec.processing:
            return not spec.last or tuple(old) == new
        one, other = old[spec.time], new[spec.time]
        return bool(other < one) if spec.last else bool(other >= one)


def first_phase(spec: object) -> LocalRankSpec | None:
    """What leaves out rows that Top-N or deduplication will not show, before they are dealt out; None where what every
    row does is told, or rows are taken back."""
    match spec:
        case RankSpec(function="ROW_NUMBER", last=int(last), retracts=False, ttl=None, mini_batch=True):
            found = LocalRankSpec(spec.input, spec.partition, spec.order, last)
        case DeduplicateSpec(ttl=None, mini_batch=True) if spec.last or spec.processing:
            order: Order = () if spec.processing else ((spec.time, not spec.last, True),)
            found = LocalRankSpec(spec.schema, spec.keys, order, 1, spec.last)
        case _:
            return None
    return found if found.partition and can_rank(found.schema, found.partition, found.order) else None
