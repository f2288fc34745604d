"""reinterpret_as_keyed_stream: a stream that is already partitioned by key becomes keyed without an exchange.

Promises: records pass unchanged, with their keys; one whose key belongs to another subtask is refused, because its
state would be lost when the parallelism changes.
Does not know: what comes after."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from millstream.errors import UserError
from millstream.runtime.batch import Batch
from millstream.runtime.keys import KeySelection
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.rowwise import UserFunctionFailed, shorten
from millstream.state.key_groups import range_of


class KeyOfAnotherSubtask(UserError):
    """A record is in a subtask that does not own its key."""

    def __init__(self, key: object, group: int, subtask: int, parallelism: int) -> None:
        super().__init__(
            f"key {shorten(key)} is of key group {group}, which subtask {subtask + 1} of {parallelism} does not own: "
            "the stream is not partitioned as key_by would do it",
            hint="use key_by(...), or partition the stream by this key before",
        )


@dataclass(frozen=True)
class ReinterpretSpec(OperatorSpec):
    """The key by which the stream is partitioned, according to the program."""

    key: KeySelection

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return ReinterpretOperator(context, self.key)


class ReinterpretOperator(Operator):
    """Checks that every key belongs to this subtask."""

    def __init__(self, context: OperatorContext, key: KeySelection) -> None:
        super().__init__(context)
        self._key = key
        self._range = range_of(context.subtask, context.parallelism, context.max_parallelism)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Pass the records on with their keys."""
        name = self.context.name
        batch_with_keys, groups = self._key.compute_keys(batch.without_keys(), self.context.state.grouper, name)
        wrong = np.flatnonzero((groups < self._range.start) | (groups > self._range.end))
        if len(wrong):
            first = batch_with_keys.take(wrong[:1])
            key, group = self._key.keys(first, name)[0], int(groups[wrong[0]])
            problem = KeyOfAnotherSubtask(key, group, self.context.subtask, self.context.parallelism)
            record = shorten(first.rows()[0])
            raise UserFunctionFailed(name, problem.message, "", key=shorten(key), record=record, hint=problem.hint)
        self.out.emit(batch_with_keys)
