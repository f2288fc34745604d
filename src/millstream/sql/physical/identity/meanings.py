"""What the columns of operations mean, told from the tables they come from.

Promises: a column that only passes an operator keeps its meaning, whatever its place or name is; so a key is the same
key when columns come or go beside it.
Does not know: state."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.sql.logical.nodes import WindowSpec
from millstream.sql.operators.aggregate.group_aggregate import GroupAggregateSpec
from millstream.sql.operators.aggregate.local_aggregate import LocalAggregateSpec
from millstream.sql.operators.calc import CalcSpec
from millstream.sql.operators.expand import CorrelateSpec
from millstream.sql.operators.over.over_aggregate import OverSpec
from millstream.sql.operators.window.local_sessions import LocalSessionAggregateSpec
from millstream.sql.operators.window.local_windows import LocalWindowAggregateSpec
from millstream.sql.operators.window.session_aggregate import SessionAggregateSpec
from millstream.sql.operators.window.sliced_windows import SlicedWindowAggregateSpec
from millstream.sql.operators.window.window_aggregate import WindowAggregateSpec, WindowTableSpec
from millstream.sql.physical.identity.spelling import bounded, called, short, spelled
from millstream.sql.physical.nodes import Operation, Origin, ScanOrigin

Columns = tuple[str, ...]
_EDGES = ("window_start", "window_end", "window_time")
_IN_PART = (LocalAggregateSpec, LocalSessionAggregateSpec, LocalWindowAggregateSpec)


class Meanings:
    """The meanings of operations that share their inputs; each is found once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Operation, Columns]] = {}

    def of(self, operation: Operation) -> Columns:
        """The meaning of each column of an operation's rows."""
        known = self._known.get(id(operation))
        if known is None:
            known = self._known[id(operation)] = (operation, tuple(self._found(operation)))
        return known[1]

    def inputs(self, operation: Operation) -> list[Columns]:
        """The meanings of what an operation reads; of the rows themselves where they come added up in part."""
        return [self.of(each.inputs[0] if isinstance(each.spec, _IN_PART) else each) for each in operation.inputs]

    def _found(self, operation: Operation) -> Sequence[str]:
        names = operation.schema.names
        origin = operation.origin
        if not operation.inputs or isinstance(origin, ScanOrigin):
            table = short(origin.name) if isinstance(origin, Origin) else operation.name
            return [f"{table}.{name}" for name in names]
        first, *others = self.inputs(operation)
        match operation.spec:
            case CalcSpec(exprs=None) if others:
                return [bounded(" | ".join(sorted(set(each)))) for each in zip(first, *others, strict=True)]
            case CalcSpec(exprs=None):
                return first
            case CalcSpec(exprs=exprs):
                return [spelled(each, first) for each in exprs or ()]
            case GroupAggregateSpec(keys=keys, calls=calls):
                return [*(first[i] for i in keys), *(called(each, first) for each in calls)]
            case WindowAggregateSpec(keys=keys, calls=calls):
                return [*(first[i] for i in keys), *(called(each, first) for each in calls)]
            case SlicedWindowAggregateSpec(keys=keys, calls=calls) as sliced:
                whole = windowed(sliced.window, first)
                heads = [first[i] if i < len(first) else f"{whole}.{_EDGES[i - len(first)]}" for i in keys]
                return [*heads, *(called(each, first) for each in calls)]
            case SessionAggregateSpec(keys=keys, calls=calls, gap=gap, time=time):
                window = f"SESSION({first[time]}, {gap})"
                heads = [first[i] if i < len(first) else f"{window}.{i - len(first)}" for i in keys]
                return [*heads, *(called(each, first) for each in calls)]
            case OverSpec(calls=calls):
                return [*first, *(called(each.call, first) for each in calls)]
            case WindowTableSpec(window=window):
                return [*first, *(f"{windowed(window, first)}.{name}" for name in names[len(first) :])]
            case CorrelateSpec(function=function, args=args):
                made = f"{function.name}({', '.join(spelled(each, first) for each in args)})"
                return [*first, *(bounded(f"{made}.{i}") for i in range(len(names) - len(first)))]
        passed = [*first, *(name for each in others for name in each)]
        if len(passed) > len(names):
            passed = list(first)
        if len(passed) > len(names):
            return names
        maker = short(origin.name) if isinstance(origin, Origin) else operation.name
        return [*passed, *(f"{maker}.{i}" for i in range(len(names) - len(passed)))]


def windowed(window: WindowSpec, columns: Sequence[str]) -> str:
    """A window function over columns."""
    sizes = ", ".join(str(each) for each in (window.size, window.slide, window.offset) if each)
    parts = [columns[window.time], sizes, *(columns[i] for i in window.partition)]
    return bounded(f"{window.kind}({', '.join(parts)}){' PROCTIME' if window.processing else ''}")
