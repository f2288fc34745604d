"""The first of two phases of Top-N and deduplication: rows that cannot be among the first of their partition are left
out before rows are dealt out by key.

Promises: a row stays out only if its own batch has `limit` rows of its partition before it in the order, so what the
second phase shows is what it would show of all rows; those that go on keep their order; where nearly all go on, they
are let pass unlooked at. No state.
Does not know: partitions beyond its own subtask; `columnar_ranks` and `epoch_ranks` keep them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.operators.base import TableOperator
from millstream.sql.operators.late_rows import LateRows, columns_of
from millstream.sql.operators.rank.columnar_ranks import first_of_each, ranked
from millstream.sql.operators.rank.ordering import Order
from millstream.sql.operators.row_runs import dense_codes
from millstream.sql.operators.spec import STATELESS, PlanContext, RowPassingSpec, StateTraits
from millstream.sql.types import data_types as t

_TELLING = 1 << 9  # rows of which the number that goes on says something
_WORTH = 0.9  # of the rows, above which leaving some out costs more than it saves
_AGAIN_AFTER = 20


@dataclass(frozen=True)
class LocalRankSpec(RowPassingSpec):
    """The first `limit` rows of each partition of a batch; of equal rows the earlier, or with `later_first` the later
    is before the other."""

    schema: t.RowType
    partition: tuple[int, ...]
    order: Order
    limit: int
    later_first: bool = False

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Declare that no state is kept."""
        return STATELESS

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return LocalRankOperator(context, self)


class LocalRankOperator(TableOperator):
    """Stateless. How many batches are still to pass is forgotten with the epoch."""

    def __init__(self, context: OperatorContext, spec: LocalRankSpec) -> None:
        super().__init__(context, spec.schema)
        self._spec = spec
        self._passing = 0

    def begin_epoch(self) -> None:
        """Look at rows again."""
        super().begin_epoch()
        self._passing = 0

    def on_batch(self, batch: Batch, side: int) -> None:
        """Leave rows out."""
        if self._passing:
            self._passing -= 1
        elif len(batch) > 1:
            places = self._firsts(columns_of(batch, len(self._spec.schema)))
            if len(batch) >= _TELLING and len(places) > _WORTH * len(batch):
                self._passing = _AGAIN_AFTER
            if len(places) < len(batch):
                batch = batch.take(places)
        self.out.emit(batch)

    def _firsts(self, columns: LateRows) -> np.ndarray:
        spec = self._spec
        codes, most = dense_codes([columns[i] for i in spec.partition], columns.size)
        if spec.limit == 1:
            found = first_of_each(codes, most, columns, spec.order, later_first=spec.later_first)
        else:
            found, _ = ranked(codes, columns, spec.order, spec.limit, later_first=spec.later_first)
        return np.sort(found)
