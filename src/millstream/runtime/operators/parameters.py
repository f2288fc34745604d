"""An iteration with shared parameters: workers that compute updates, and parameters that apply them.

Promises: the number of rounds between two exchanges comes from the plan of the epoch, so a replay gives the same
parameters. A worker is a group of records, and there are as many at every parallelism: the parallelism changes nothing.
Does not know: what is computed, when the iteration terminates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.functions.parameters import ParameterFunction
from millstream.runtime import rowwise
from millstream.runtime.batch import Batch
from millstream.runtime.keys import KeySelection
from millstream.runtime.loops import LoopWork, Phase
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.operators.map import FunctionOperator
from millstream.runtime.parameter_calls import Update, apply_updates, run_rounds
from millstream.state.deltas import Redistribution
from millstream.state.key_groups import KeyGroupRange
from millstream.state.store import ABSENT
from millstream.types.copies import find_copier
from millstream.types.factory import TypeInformation, Types

PARAMETERS = "parameters"
"""The side output with the parameters at the end."""

RECORDS, EXCHANGED = range(2)
"""The inputs of workers: records by worker, and parameters that changed."""

INITIAL, UPDATES = range(2)
"""The inputs of parameters: initial ones, and updates."""

_EMITTED_ROWS = 8192


@dataclass(frozen=True)
class WorkerSpec(OperatorSpec):
    """Workers; `worker` says which of them a record belongs to, `parameter_type` is the type of (key, value)."""

    function: ParameterFunction[Any, Any, Any, Any]
    worker: KeySelection
    numbers: tuple[int, ...]
    parameter_type: TypeInformation

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return WorkerOperator(context, self)


@dataclass(frozen=True)
class ParameterSpec(OperatorSpec):
    """Parameters by key; the output are those that changed."""

    function: ParameterFunction[Any, Any, Any, Any]
    key: KeySelection
    parameter_type: TypeInformation

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return ParameterOperator(context, self)


class WorkerOperator(FunctionOperator):
    """State: chunks of records by worker, and a copy of all parameters."""

    def __init__(self, context: OperatorContext, spec: WorkerSpec) -> None:
        super().__init__(context, spec.function, keyed=False)
        self._spec = spec
        self._worker_of = dict(zip(spec.numbers, range(len(spec.numbers)), strict=True))
        untyped, text = Types.PICKLED_BYTE_ARRAY(), Types.STRING()
        self._records = context.state.table("records", untyped, Redistribution.CUT, key_type=text, restrict=self._cut)
        self._table = context.state.table("parameters", spec.parameter_type, Redistribution.BROADCAST, key_type=untyped)
        self._copy = find_copier(untyped)
        self._chunks = 0
        self._workers: dict[int, list[Any]] | None = None
        self._parameters: dict[Any, Any] | None = None

    def begin_epoch(self) -> None:
        """Number the chunks of a new epoch."""
        self._chunks = 0

    def _cut(self, groups: dict[int, list[Any]], key_groups: KeyGroupRange) -> Any:
        """Return the records of the workers in some key groups."""
        numbers = list(groups)
        kept = [
            number
            for number, group in zip(numbers, self.context.state.grouper.of_many(numbers), strict=True)
            if key_groups.start <= group <= key_groups.end
        ]
        return {number: groups[number] for number in kept} if kept else ABSENT

    def on_batch(self, batch: Batch, side: int) -> None:
        """Keep records and parameters."""
        if side == RECORDS:
            groups: dict[int, list[Any]] = {}
            rowwise.group_rows(self._spec.worker.keys(batch, self.context.name), batch.rows(), groups)
            self._records.put(None, f"{self.context.epoch:012d}-{self._chunks:06d}", groups)
            self._chunks += 1
            self._workers = None
            return
        rows = batch.rows()
        self._table.put_many(None, [row[0] for row in rows], rows)
        if self._parameters is not None:
            self._parameters.update(rows)

    def end_round(self) -> None:
        """Run the rounds until the next exchange, and emit the updates."""
        work = self.context.work
        if not isinstance(work, LoopWork) or not work.ends_round:
            return
        if self._workers is None:
            self._workers = {}
            for _, groups in sorted(self._records.scan(None)):
                for number, rows in groups.items():
                    self._workers.setdefault(self._worker_of[number], []).extend(rows)
        if self._parameters is None:
            self._parameters = dict(row for _, row in self._table.scan(None))
        updates = run_rounds(
            self.context, self._spec.function, self._workers, self._parameters, work.numbers, self._copy
        )
        self.out.emit(Batch(self.context.output_type, rows=updates))


class ParameterOperator(FunctionOperator):
    """State: (key, value) of each parameter by its key."""

    def __init__(self, context: OperatorContext, spec: ParameterSpec) -> None:
        super().__init__(context, spec.function, keyed=False)
        self._spec = spec
        self._table = context.state.table("parameters", spec.parameter_type)
        self._updates: list[Update] = []

    def begin_epoch(self) -> None:
        """Begin without updates."""
        self._updates = []

    def on_batch(self, batch: Batch, side: int) -> None:
        """Take initial parameters, and collect updates."""
        if side == INITIAL:
            self._table.put_many(None, self._spec.key.keys(batch, self.context.name), batch.rows())
        else:
            self._updates += batch.rows()

    def end_round(self) -> None:
        """Apply the updates, and emit the parameters that changed."""
        work = self.context.work
        if not isinstance(work, LoopWork) or not work.ends_round or not self._updates:
            return
        before = (self._table.get(None, update[0]) for update in self._updates)
        parameters = dict(row for row in before if row is not ABSENT)
        changed = apply_updates(self.context, self._spec.function, self._updates, parameters)
        rows = rowwise.conform(self.context.name, self._spec.parameter_type, list(changed.items()))
        self._table.put_many(None, list(changed), rows)
        self.out.emit(Batch(self._spec.parameter_type, rows=rows))

    def on_watermark(self, watermark: int) -> None:
        """Emit all parameters when the iteration terminates."""
        work = self.context.work
        if watermark == MAX_WATERMARK and isinstance(work, LoopWork) and work.phase is Phase.CLOSE:
            rows = [row for _, row in self._table.scan(None)]
            for start in range(0, len(rows), _EMITTED_ROWS):
                part = rows[start : start + _EMITTED_ROWS]
                self.out.emit_side(PARAMETERS, Batch(self._spec.parameter_type, rows=part))
        super().on_watermark(watermark)
