"""Window joins of two streams: the window operator processes a tagged union of their records.

Promises: Flink's window join: a window has the records of both streams with its key, each stream's in order of arrival;
triggers, evictors and lateness work as in windows of one stream.
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


def union_type(first_type: TypeInformation, second_type: TypeInformation) -> TypeInformation:
    """Return the type of a tagged union of records of these types."""
    return NamedTupleTypeInfo(TaggedUnion, [Types.BOOLEAN(), first_type, second_type], list(TaggedUnion._fields))


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
        """Add every record, tagged with its input, to its windows."""
        keys = self._keys[side].keys(batch, self.context.name)
        tagged = batch.with_rows(self.spec.input_type, list(map(_TAGS[side], batch.rows())))
        self._take(tagged, keys)


def _tag_first(value: Any) -> TaggedUnion:
    return TaggedUnion(False, value, None)


def _tag_second(value: Any) -> TaggedUnion:
    return TaggedUnion(True, None, value)


_TAGS = (_tag_first, _tag_second)


@dataclass(frozen=True)
class CallJoin:
    """Calls a co-group function with both groups of a window, or a join function with its pairs."""

    function: CoGroupFunction | JoinFunction | FlatJoinFunction

    def __call__(self, key: Any, context: WindowCallContext, elements: list[TaggedUnion]) -> Iterable[Any] | None:
        """Return the results of one firing; pairs are in the order of the first stream, then of the second."""
        first = [element.one for element in elements if not element.second]
        second = [element.two for element in elements if element.second]
        if isinstance(self.function, CoGroupFunction):
            return self.function.co_group(first, second)
        return _pairs(self.function, first, second)


def _pairs(function: JoinFunction | FlatJoinFunction, first: list[Any], second: list[Any]) -> Iterator[Any]:
    is_flat = isinstance(function, FlatJoinFunction)
    for left_value in first:
        for right_value in second:
            result = function.join(left_value, right_value)
            if is_flat:
                yield from result if result is not None else ()
            else:
                yield result
