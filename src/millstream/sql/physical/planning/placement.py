"""Where rows are already: by which columns' hash they were dealt out, and which inputs need no exchange for it.

Promises: an input is said to be in place only if every one of its rows is in the subtask that an exchange would send it
to: its keys are the columns of an exchange before, in the same order and of the same types, or columns that always
equal those; whatever is not known to keep them loses them.
Does not know: parallelism; whoever lays the program out compares it.

Keys that compare as equal without being written alike (floating point numbers), that are nested, or that tell the time
are not followed."""

from __future__ import annotations

from millstream.sql.operators.join.equi_join import EquiJoinSpec
from millstream.sql.operators.spec import PlanContext, SqlOperatorSpec
from millstream.sql.physical.nodes import Operation, PatternOrigin
from millstream.sql.types import data_types as t

Placement = tuple[frozenset[int], ...]
"""For each part of the key by which rows were dealt out, the columns that hold it; empty where nothing is known."""

_UNKNOWN: Placement = ()
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
            known = self._known[id(operation)] = (operation, self._compute(operation))
        return known[1]

    def _compute(self, operation: Operation) -> Placement:
        if isinstance(operation.spec, EquiJoinSpec):
            left, right = self._behind(operation, operation.spec, 0), self._behind(operation, operation.spec, 1)
            return _either(left, right, operation.schema)
        if isinstance(operation.spec, SqlOperatorSpec) and len(operation.inputs) == 1:
            return self._behind(operation, operation.spec, 0)
        return _UNKNOWN

    def _behind(self, operation: Operation, spec: SqlOperatorSpec, side: int) -> Placement:
        """Return the placement of an input's rows in the output of an operation."""
        where, before = operation.distributions[side], operation.inputs[side].schema
        if where.kind == "forward" or self.in_place(operation, side):
            found = self._of(operation.inputs[side])
        elif where.kind == "hash":
            found = tuple(frozenset((key,)) for key in where.keys)
        else:
            return _UNKNOWN
        kept = spec.kept_columns(_context(operation), side)
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


def _context(operation: Operation) -> PlanContext:
    schemas = tuple(each.schema for each in operation.inputs)
    return PlanContext(operation.name, (), schemas, operation.schema, operation.distributions[0].keys)


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
