"""Stateful functions: calls the functions of the addresses of a subtask for all messages of an epoch.

Messages arrive by the key group of their id. Those to another function with the id of their sender are delivered in the
same epoch, all others are feedback: they are delivered in the next epoch. So what an epoch does does not depend on the
parallelism. All messages of an epoch are processed after the last one has arrived, so that messages from one address to
another keep their order.

Promises: what is processed follows from the messages, the processing time of the plan and the state.
Does not know: ingresses, what egress records become."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from millstream.functions import NO_RETRY_STRATEGY
from millstream.functions.entities.registry import StatefulFunction
from millstream.functions.entities.value_types import BYTES, Type
from millstream.runtime import rowwise
from millstream.runtime.batch import Batch
from millstream.runtime.concurrent_calls import ConcurrentCalls
from millstream.runtime.entity_calls import CallContext, Calls, Group, call_groups
from millstream.runtime.entity_delays import RECORD, Delays, Record
from millstream.runtime.loops import LoopReport, LoopWork, Phase
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.types.factory import TypeInformation, Types

EGRESS = "egress:"
"""The prefix of the tags of side outputs."""

_MOST_LOCAL_ROUNDS = 16  # of an epoch; more would delay checkpoints


def egress_type(value_type: Type | None) -> TypeInformation:
    """Return the type of the records of an egress; without a type of values, pairs of typename and bytes."""
    if value_type is None:
        return Types.TUPLE([Types.STRING(), BYTES])
    return value_type.type_info or Types.PICKLED_BYTE_ARRAY()


@dataclass(frozen=True)
class EntitiesSpec(OperatorSpec):
    """Stateful functions by type; the output are messages to addresses of other subtasks.

    Attributes:
        functions: The functions by type.
        egresses: The type of the values of each egress; None for values of any type.
        capacity: The number of addresses whose coroutine functions run at once.
        timeout: Seconds that a call of a coroutine function may take; 0 for no limit.
        waits: Whether the end of the input waits for delayed messages.

    """

    functions: Mapping[str, StatefulFunction]
    egresses: Mapping[str, Type | None]
    capacity: int = 100
    timeout: float = 60.0
    waits: bool = True

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return EntitiesOperator(context, self)


class EntitiesOperator(Operator):
    """Buffers the messages of an epoch, and processes them when all have arrived."""

    def __init__(self, context: OperatorContext, spec: EntitiesSpec) -> None:
        super().__init__(context)
        self._spec = spec
        self._delays = Delays(context.state)
        self._calls = Calls(context, spec.functions, spec.egresses, self._delays, spec.timeout)
        self._concurrent: ConcurrentCalls | None = None
        self._inbox: list[Record] = []

    @property
    def _phase(self) -> Phase:
        work = self.context.work
        return work.phase if isinstance(work, LoopWork) else Phase.HOLD

    def begin_epoch(self) -> None:
        """Begin with no messages."""
        self._inbox = []

    def on_batch(self, batch: Batch, side: int) -> None:
        """Buffer messages."""
        self._inbox += batch.rows()

    def end_round(self) -> None:
        """Process the messages of the epoch, and those that functions send to the same id meanwhile."""
        local, self._inbox = self._inbox, []
        remote: list[Record] = []
        if self._phase not in (Phase.HOLD, Phase.ENDED):
            due = list(self._delays.take_due(self.context.now))
            remote = [record for sender, record in due if record[0] != sender]
            local = [*(record for sender, record in due if record[0] == sender), *local]
        for _ in range(_MOST_LOCAL_ROUNDS):
            if not local:
                break
            self.context.metrics.count("numMessages", len(local))
            contexts = call_groups(self._calls, local, self._run_async)
            self._emit([message for context in contexts for message in context.egress])
            local = [record for context in contexts for record in context.sent if record[0] == context.id]
            remote += [record for context in contexts for record in context.sent if record[0] != context.id]
        remote += local
        if remote:
            self.out.emit(Batch(RECORD, rows=remote))

    def _emit(self, egress: list[tuple[str, Any]]) -> None:
        rows: dict[str, list[Any]] = {}
        rowwise.group_rows([typename for typename, _ in egress], [value for _, value in egress], rows)
        for typename, values in rows.items():
            side_type = self.context.side_types.get(EGRESS + typename)
            if side_type is not None:
                values = rowwise.conform(self.context.name, side_type, values)
                self.out.emit_side(EGRESS + typename, Batch(side_type, rows=values))

    def _run_async(self, groups: list[Group]) -> list[CallContext]:
        if self._concurrent is None:
            count = self.context.metrics.count
            self._concurrent = ConcurrentCalls(
                self.context.name, self._calls, capacity=self._spec.capacity, retry=NO_RETRY_STRATEGY, count=count
            )
        _, results = self._concurrent.run(groups, None)
        return [result for group_results in results for result in group_results]

    def end_epoch(self) -> None:
        """Report whether delayed messages are waiting."""
        waits = self._spec.waits and self._delays.next_time() is not None
        self.context.memory.part(LoopReport).waiting = int(waits)

    def abandon(self) -> None:
        """Drop the messages: a replay reads them again."""
        self._inbox = []

    def next_timer(self) -> int | None:
        """Return the time of the next delayed message."""
        return None if self._phase is Phase.ENDED else self._delays.next_time()

    def close(self) -> None:
        """Close the event loop of coroutine functions."""
        self.dispose()

    def dispose(self) -> None:
        """Close the event loop of coroutine functions."""
        concurrent, self._concurrent = self._concurrent, None
        if concurrent is not None:
            with contextlib.suppress(Exception):  # the subtask has ended, so a failure is not reported any more
                concurrent.close()
