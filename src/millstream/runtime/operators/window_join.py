"""Windows over two streams: a tagged union of their records goes through the window operator.

Promises: Flink's window join: a window has the records of both streams of its key, each stream's in order of arrival;
whatever holds for windows of one stream holds here.
Does not know: what the function does with the groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from millstream.functions.join import CoGroupFunction, FlatJoinFunction, JoinFunction, TaggedUnion
from millstream.runtime.batch import Batch
from millstream.runtime.keys import KeySelection
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.operators.window import WindowOperator, WindowSpec
from millstream.runtime.windows.contexts import WindowCallContext
from millstream.types.composite_types import NamedTupleTypeInfo
from millstream.types.factory import TypeInformation, Types


def union_type(one: TypeInformation, two: TypeInformation) -> TypeInformation:
    """The type of a tagged union of records of these types."""
    return NamedTupleTypeInfo(TaggedUnion, [Types.BOOLEAN(), one, two], list(TaggedUnion._fields))


@dataclass(frozen=True)
class WindowJoinSpec(OperatorSpec):
    """Windows of two inputs, each with a key of its own; `window` describes them over the tagged union."""

    window: WindowSpec
    keys: tuple[KeySelection, KeySelection]

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return WindowJoinOperator(context, self)


class WindowJoinOperator(WindowOperator):
    """Tags each record with its input."""

    def __init__(self, context: OperatorContext, spec: WindowJoinSpec) -> None:
        super().__init__(context, spec.window)
        self._keys = spec.keys

    def on_batch(self, batch: Batch, side: int) -> None:
        """Put every record into its windows, tagged."""
        keys = self._keys[side].keys(batch, self.context.name)
        tagged = batch.with_rows(self.spec.input_type, list(map(_TAGS[side], batch.rows())))
        self._take(tagged, keys)


def _one(value: Any) -> TaggedUnion:
    return TaggedUnion(False, value, None)


def _two(value: Any) -> TaggedUnion:
    return TaggedUnion(True, None, value)


_TAGS = (_one, _two)


@dataclass(frozen=True)
class CallJoin:
    """Calls a function of two groups or of pairs with the content of a window."""

    function: CoGroupFunction | JoinFunction | FlatJoinFunction

    def __call__(self, key: Any, context: WindowCallContext, elements: list[TaggedUnion]) -> Iterable[Any] | None:
        """The results of one firing; pairs come in the order of the first stream, then of the second."""
        first = [each.one for each in elements if not each.second]
        second = [each.two for each in elements if each.second]
        if isinstance(self.function, CoGroupFunction):
            return self.function.co_group(first, second)
        return _pairs(self.function, first, second)


def _pairs(function: JoinFunction | FlatJoinFunction, first: list[Any], second: list[Any]) -> Iterator[Any]:
    flat = isinstance(function, FlatJoinFunction)
    for one in first:
        for two in second:
            result = function.join(one, two)
            if flat:
                yield from result if result is not None else ()
            else:
                yield result
