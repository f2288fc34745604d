"""The solution set of a delta iteration, joined with the workset of every round.

Promises: a round processes the keys of its workset only, in the order in which they first arrived; the solution set is
keyed state, and is emitted when the iteration terminates.
Does not know: rounds, how the next workset is computed from changed elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.functions.delta import DeltaFunction
from millstream.runtime import rowwise
from millstream.runtime.batch import Batch
from millstream.runtime.keys import KeySelection
from millstream.runtime.loops import LoopWork, Phase
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.operators.map import FunctionOperator
from millstream.state.store import ABSENT
from millstream.types.factory import TypeInformation, Types

SOLUTION = "iteration-solution"
"""The side output with the solution set."""

_EMITTED_ROWS = 8192


@dataclass(frozen=True)
class DeltaSpec(OperatorSpec):
    """A delta iteration; input 0 is the initial solution set, input 1 the workset."""

    function: DeltaFunction[Any, Any, Any]
    keys: tuple[KeySelection, ...]
    solution_type: TypeInformation

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return DeltaOperator(context, self)


class DeltaOperator(FunctionOperator):
    """Buffers the workset of a round, and updates the solution set when the round ends."""

    def __init__(self, context: OperatorContext, spec: DeltaSpec) -> None:
        super().__init__(context, spec.function, keyed=True)
        self._spec = spec
        self._solution = context.state.table("solution", spec.solution_type)
        self._waiting = context.state.table("workset", Types.PICKLED_BYTE_ARRAY())  # of epochs before the round ends
        self._workset: dict[Any, list[Any]] = {}

    def begin_epoch(self) -> None:
        """Begin with an empty workset."""
        self._workset = {}

    def on_batch(self, batch: Batch, side: int) -> None:
        """Add elements to the solution set, or records to the workset."""
        keys = self._spec.keys[side].keys(batch, self.context.name)
        if side == 0:
            self._solution.put_many(None, keys, batch.rows())
        else:
            rowwise.group_rows(keys, batch.rows(), self._workset)

    def end_round(self) -> None:
        """Update the elements whose keys are in the workset; emit what follows from those that changed."""
        super().end_round()
        work = self.context.work
        if not isinstance(work, LoopWork) or not work.ends_round:
            return
        if work.phase is Phase.READ:
            waiting = dict(self._waiting.scan(None))
            rowwise.append_groups(waiting, self._workset)
            self._workset = waiting
            for key in waiting:
                self._waiting.delete(None, key)
        rowwise.update_solution(self.context, self._spec.function, self._workset, self._solution)
        self._workset = {}

    def end_epoch(self) -> None:
        """Keep the workset of a round that has not ended."""
        if self._workset:
            before = {key: rows for key in self._workset if (rows := self._waiting.get(None, key)) is not ABSENT}
            rowwise.append_groups(before, self._workset)
            self._waiting.put_many(None, list(before), list(before.values()))
            self._workset = {}

    def on_watermark(self, watermark: int) -> None:
        """Emit the solution set when the iteration terminates."""
        work = self.context.work
        if watermark == MAX_WATERMARK and isinstance(work, LoopWork) and work.phase is Phase.CLOSE:
            elements = [element for _, element in self._solution.scan(None)]
            for start in range(0, len(elements), _EMITTED_ROWS):
                part = elements[start : start + _EMITTED_ROWS]
                self.out.emit_side(SOLUTION, Batch(self._spec.solution_type, rows=part))
        super().on_watermark(watermark)
