"""reduce and the built-in running aggregates of keyed streams.

Promises: emits the new value of its key for every record, the first record unchanged.
Does not know: windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millstream.functions import ReduceFunction
from millstream.runtime import rowwise
from millstream.runtime.batch import Batch
from millstream.runtime.keys import KeySelection
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.operators.map import FunctionOperator
from millstream.state.store import ABSENT


@dataclass(frozen=True)
class ReduceSpec(OperatorSpec):
    """A running reduce by key."""

    function: ReduceFunction
    key: KeySelection

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return ReduceOperator(context, self.function, self.key)


class ReduceOperator(FunctionOperator):
    """Reduces each record with the value of its key."""

    def __init__(self, context: OperatorContext, function: ReduceFunction, key: KeySelection) -> None:
        super().__init__(context, function, keyed=True)
        self._key = key
        self._live, self._dirty = context.state.table("reduced", context.output_type).by_key()

    def on_batch(self, batch: Batch, side: int) -> None:
        """Emit the running value after every record."""
        reduce: Callable[[Any, Any], Any] = self.function.reduce
        keys = self._key.keys(batch, self.context.name)
        rows = rowwise.fold_keyed_rows(
            self.context,
            lambda old, new: new if old is ABSENT else reduce(old, new),
            batch,
            keys,
            self._live.__getitem__,
            self._live.__setitem__,
        )
        self._dirty.update(keys)
        output_type = self.context.output_type
        self.out.emit(batch.with_rows(output_type, rowwise.conform(self.context.name, output_type, rows)))
