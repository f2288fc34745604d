"""By which columns the rows of an operation are partitioned, and which inputs therefore need no exchange.

Promises: an input is said to be in place only if each of its rows is in the subtask to which an exchange would send it.
This holds if its keys are the columns of an earlier exchange, in the same order and of the same types, or columns that
always equal them. An operation that does not declare which columns it keeps loses them.
Does not know: parallelism; translation compares it.

Keys whose equal values can have other bytes (floating point), nested keys and time attributes are not followed."""

from __future__ import annotations

from millstream.sql.operators.join.equi_join import EquiJoinSpec
from millstream.sql.operators.spec import PlanContext, SqlOperatorSpec
from millstream.sql.physical.nodes import Operation, PatternOrigin
from millstream.sql.types import data_types as t

Placement = tuple[frozenset[int], ...]
"""For each part of the partition key, the columns that hold it; empty if nothing is known."""

_UNKNOWN: Placement = ()
_EXACT = (
    t.IntegerType, t.DecimalType, t.BooleanType, t.CharType, t.VarCharType, t.BinaryType, t.VarBinaryType, t.DateType,
    t.TimeType, t.TimestampType, t.LocalZonedTimestampType,
)  # fmt: skip


class Placements:
    """The placements of operations that share inputs; each operation is visited once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Operation, Placement]] = {}

    def in_place(self, operation: Operation, side: int) -> bool:
        """Return whether an input that is partitioned by hash is partitioned in that way already."""
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
    """Return the columns of both sides of a join that hold equal keys of the same type."""
    if not left or not right:
        return left or right
    return tuple(
        one | other if all(_alike(schema.types[a], schema.types[b]) for a in one for b in other) else one
        for one, other in zip(left, right, strict=True)
    )


def _alike(one: t.DataType, other: t.DataType) -> bool:
    """Return whether equal values of two types have the same hash, and pass without conversion."""
    return isinstance(one, _EXACT) and t.attribute_of(one) is None and one.nullable() == other.nullable()
