"""The local phase of Top-N and deduplication: drops rows that cannot be in the result before rows are partitioned by
key.

Promises: a row is dropped only if its own batch, and of it the same mini-batch, has `limit` rows of its partition
before it in the order, so that the result does not change. Rows keep their order. If nearly all rows pass, batches pass
unchecked for a while. No state.
Does not know: the partitions of other subtasks; `columnar_ranks` and `epoch_ranks` keep them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.operators.base import TableOperator
from millstream.sql.operators.lazy_rows import LazyRows, get_batch_columns
from millstream.sql.operators.mini_batch import MiniBatch
from millstream.sql.operators.rank.columnar_ranks import find_first_row_of_codes, rank_rows
from millstream.sql.operators.rank.ordering import Order
from millstream.sql.operators.row_runs import compute_dense_key_codes
from millstream.sql.operators.spec import STATELESS, PlanContext, RowPassingSpec, StateTraits
from millstream.sql.types import data_types as t

_MIN_SAMPLE = 1 << 9  # rows from which the share of passing rows is reliable
_MAX_PASSING = 0.9  # share of passing rows above which checking costs more than it saves
_SKIPPED_BATCHES = 20  # before the share is measured again


@dataclass(frozen=True)
class LocalRankSpec(RowPassingSpec):
    """The first `limit` rows of each partition of a batch.

    Of equal rows the earlier comes first, or with `later_first` the later."""

    schema: t.RowType
    partition: tuple[int, ...]
    order: Order
    limit: int
    later_first: bool = False
    mini_batch_size: int | None = None

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Declare that no state is kept."""
        return STATELESS

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return LocalRankOperator(context, self)


class LocalRankOperator(TableOperator):
    """Stateless. The number of batches that still pass unchecked is reset in each epoch."""

    def __init__(self, context: OperatorContext, spec: LocalRankSpec) -> None:
        super().__init__(context, spec.schema)
        self._spec = spec
        self._unchecked_batches = 0
        self._mini_batch = MiniBatch(spec.mini_batch_size)

    def begin_epoch(self) -> None:
        """Check rows again."""
        super().begin_epoch()
        self._unchecked_batches = 0
        self._mini_batch.restart()

    def on_batch(self, batch: Batch, side: int) -> None:
        """Drop rows that cannot be in the result."""
        for part, _ in self._mini_batch.split(batch):
            self._emit_firsts(part)

    def _emit_firsts(self, batch: Batch) -> None:
        if self._unchecked_batches:
            self._unchecked_batches -= 1
        elif len(batch) > 1:
            row_indexes = self._find_firsts(get_batch_columns(batch, len(self._spec.schema)))
            if len(batch) >= _MIN_SAMPLE and len(row_indexes) > _MAX_PASSING * len(batch):
                self._unchecked_batches = _SKIPPED_BATCHES
            if len(row_indexes) < len(batch):
                batch = batch.take(row_indexes)
        self.out.emit(batch)

    def _find_firsts(self, columns: LazyRows) -> np.ndarray:
        spec = self._spec
        codes, most = compute_dense_key_codes([columns[i] for i in spec.partition], columns.size)
        if spec.limit == 1:
            row_indexes = find_first_row_of_codes(codes, most, columns, spec.order, later_first=spec.later_first)
        else:
            row_indexes, _ = rank_rows(codes, columns, spec.order, spec.limit, later_first=spec.later_first)
        return np.sort(row_indexes)
