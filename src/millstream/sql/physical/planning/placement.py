"""Where rows are already: by which columns' hash they were dealt out, and which inputs need no exchange for it.

Promises: an input is said to be in place only if every one of its rows is in the subtask that an exchange would send it
to: its keys are the columns of an exchange before, in the same order and of the same types, or columns that always
equal those; whatever is not known to keep them loses them.
Does not know: parallelism; whoever lays the program out compares it.

Keys that compare as equal without being written alike (floating point numbers), that are nested, or that tell the time
are not followed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from millstream.sql.expressions.nodes import Ref
from millstream.sql.operators.aggregate.group_aggregate import GroupAggregateSpec
from millstream.sql.operators.aggregate.local_aggregate import LocalAggregateSpec
from millstream.sql.operators.calc import CalcSpec
from millstream.sql.operators.changelog.changelog_normalize import ChangelogNormalizeSpec
from millstream.sql.operators.expand import CorrelateSpec
from millstream.sql.operators.join.regular_join import JoinSpec
from millstream.sql.operators.join.time_joins import IntervalJoinSpec, TemporalJoinSpec
from millstream.sql.operators.join.window_tables import WindowJoinSpec, WindowRankSpec
from millstream.sql.operators.over.changing_over import ChangingOverSpec
from millstream.sql.operators.over.over_aggregate import OverSpec
from millstream.sql.operators.rank.local_rank import LocalRankSpec
from millstream.sql.operators.rank.top_n import DeduplicateSpec, RankSpec
from millstream.sql.operators.watermark import WatermarkSpec
from millstream.sql.operators.window.local_sessions import LocalSessionAggregateSpec
from millstream.sql.operators.window.local_windows import LocalWindowAggregateSpec
from millstream.sql.operators.window.session_aggregate import SessionAggregateSpec
from millstream.sql.operators.window.sliced_windows import SlicedWindowAggregateSpec
from millstream.sql.operators.window.window_aggregate import WindowAggregateSpec, WindowTableSpec
from millstream.sql.physical.nodes import Operation, PatternOrigin
from millstream.sql.types import data_types as t

Placement = tuple[frozenset[int], ...]
"""For each part of the key by which rows were dealt out, the columns that hold it; empty where nothing is known."""

_UNKNOWN: Placement = ()
_LEFT_KEPT = frozenset(("inner", "left", "semi", "anti"))  # in the others, rows of the right alone have NULL there
_RIGHT_KEPT = frozenset(("inner", "right"))
_EXACT = (
    t.IntegerType, t.DecimalType, t.BooleanType, t.CharType, t.VarCharType, t.BinaryType, t.VarBinaryType, t.DateType,
    t.TimeType, t.TimestampType, t.LocalZonedTimestampType,
)  # fmt: skip


class Placements:
    """Looks at the operations of some plans, each once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Operation, Placement]] = {}

    def in_place(self, operation: Operation, side: int) -> bool:
        """Whether the rows of an input that wants them by hash are where it wants them already."""
        where, before = operation.distributions[side], operation.inputs[side]
        if where.kind != "hash" or operation.sink is not None or isinstance(operation.origin, PatternOrigin):
            return False
        found = self._of(before)
        return len(found) == len(where.keys) and all(key in part for key, part in zip(where.keys, found, strict=True))

    def _of(self, operation: Operation) -> Placement:
        known = self._known.get(id(operation))
        if known is None:
            known = self._known[id(operation)] = (operation, self._found(operation))
        return known[1]

    def _found(self, operation: Operation) -> Placement:
        match operation.spec:
            case JoinSpec() | IntervalJoinSpec() | WindowJoinSpec() | TemporalJoinSpec() as spec:
                left = self._behind(operation, 0, _same(len(spec.left))) if spec.kind in _LEFT_KEPT else _UNKNOWN
                if spec.kind not in _RIGHT_KEPT:
                    return left
                moved = {i: (len(spec.left) + i,) for i in range(len(spec.right))}
                right = self._behind(operation, 1, moved)
                return _either(left, right, operation.schema) if spec.kind == "inner" else right
        return self._behind(operation, 0, _kept_columns(operation)) if len(operation.inputs) == 1 else _UNKNOWN

    def _behind(self, operation: Operation, side: int, kept: Mapping[int, Iterable[int]]) -> Placement:
        """The placement of an input's rows behind an operation that has their columns at the places of `kept`."""
        where, before = operation.distributions[side], operation.inputs[side].schema
        if where.kind == "forward" or self.in_place(operation, side):
            found = self._of(operation.inputs[side])
        elif where.kind == "hash":
            found = tuple(frozenset((key,)) for key in where.keys)
        else:
            return _UNKNOWN
        moved = tuple(
            frozenset(
                place
                for column in part
                for place in kept.get(column, ())
                if _alike(before.types[column], operation.schema.types[place])
            )
            for part in found
        )
        return moved if all(moved) else _UNKNOWN


def _kept_columns(operation: Operation) -> dict[int, tuple[int, ...]]:
    """The places at which an operation with one input hands on a column of it, for each one that it does."""
    before = len(operation.inputs[0].schema)
    match operation.spec:
        case CalcSpec(exprs=None):
            return _same(before)
        case CalcSpec(exprs=exprs) if exprs is not None:
            found: dict[int, tuple[int, ...]] = {}
            for place, each in enumerate(exprs):
                if isinstance(each, Ref):
                    found[each.index] = (*found.get(each.index, ()), place)
            return found
        case GroupAggregateSpec():  # of two phases, the second reads its keys where the first has put them
            return {key: (place,) for place, key in enumerate(operation.distributions[0].keys)}
        case WindowAggregateSpec(keys=keys, partial=True):
            return _same(len(keys))
        case (
            SessionAggregateSpec(keys=keys, partition=partition, partial=True)
            | SlicedWindowAggregateSpec(keys=keys, partition=partition, partial=True)
        ):
            return {partition.index(key): (place,) for place, key in enumerate(keys) if key in partition}
        case (
            LocalAggregateSpec(keys=keys)
            | LocalSessionAggregateSpec(keys=keys)
            | LocalWindowAggregateSpec(keys=keys)
            | SessionAggregateSpec(keys=keys)
            | SlicedWindowAggregateSpec(keys=keys)
            | WindowAggregateSpec(keys=keys)
        ):
            return {key: (place,) for place, key in enumerate(keys)}
        case (
            ChangelogNormalizeSpec()
            | ChangingOverSpec()
            | CorrelateSpec()
            | DeduplicateSpec()
            | LocalRankSpec()
            | OverSpec()
            | RankSpec()
            | WatermarkSpec()
            | WindowRankSpec()
            | WindowTableSpec()
        ):
            return _same(min(before, len(operation.schema)))
    return {}


def _same(width: int) -> dict[int, tuple[int, ...]]:
    return {i: (i,) for i in range(width)}


def _either(left: Placement, right: Placement, schema: t.RowType) -> Placement:
    """Both sides' columns of equal keys, where their types are the same."""
    if not left or not right:
        return left or right
    return tuple(
        one | other if all(_alike(schema.types[a], schema.types[b]) for a in one for b in other) else one
        for one, other in zip(left, right, strict=True)
    )


def _alike(one: t.DataType, other: t.DataType) -> bool:
    """Whether equal values of two types have one hash, and no value is changed on the way."""
    return isinstance(one, _EXACT) and t.attribute_of(one) is None and one.nullable() == other.nullable()
