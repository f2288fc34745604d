"""The columns by which the rows of an operation are partitioned, and the inputs that therefore need no exchange.

Promises: an input is in place only if each of its rows is in the subtask to which an exchange would send it.
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
        self._visited: dict[int, tuple[Operation, Placement]] = {}

    def in_place(self, operation: Operation, side: int) -> bool:
        """Return whether an input that is partitioned by hash is partitioned in that way already."""
        distribution, input_operation = operation.distributions[side], operation.inputs[side]
        if distribution.kind != "hash" or operation.sink is not None or isinstance(operation.origin, PatternOrigin):
            return False
        placement = self._of(input_operation)
        return len(placement) == len(distribution.keys) and all(
            key in part for key, part in zip(distribution.keys, placement, strict=True)
        )

    def _of(self, operation: Operation) -> Placement:
        visited = self._visited.get(id(operation))
        if visited is None:
            visited = self._visited[id(operation)] = (operation, self._compute(operation))
        return visited[1]

    def _compute(self, operation: Operation) -> Placement:
        if isinstance(operation.spec, EquiJoinSpec):
            left, right = (
                self._place_after(operation, operation.spec, 0),
                self._place_after(operation, operation.spec, 1),
            )
            return _merge_placements(left, right, operation.schema)
        if isinstance(operation.spec, SqlOperatorSpec) and len(operation.inputs) == 1:
            return self._place_after(operation, operation.spec, 0)
        return _UNKNOWN

    def _place_after(self, operation: Operation, spec: SqlOperatorSpec, side: int) -> Placement:
        """Return the placement of an input's rows in the output of an operation."""
        distribution, input_schema = operation.distributions[side], operation.inputs[side].schema
        if distribution.kind == "forward" or self.in_place(operation, side):
            placement = self._of(operation.inputs[side])
        elif distribution.kind == "hash":
            placement = tuple(frozenset((key,)) for key in distribution.keys)
        else:
            return _UNKNOWN
        kept = spec.kept_columns(_create_context(operation), side)
        output_placement = tuple(
            frozenset(
                index
                for column in part
                for index in kept.get(column, ())
                if _have_equal_hashes(input_schema.types[column], operation.schema.types[index])
            )
            for part in placement
        )
        return output_placement if all(output_placement) else _UNKNOWN


def _create_context(operation: Operation) -> PlanContext:
    schemas = tuple(input_operation.schema for input_operation in operation.inputs)
    return PlanContext(operation.name, (), schemas, operation.schema, operation.distributions[0].keys)


def _merge_placements(left: Placement, right: Placement, schema: t.RowType) -> Placement:
    """Return the columns of both sides of a join that hold equal keys of the same type."""
    if not left or not right:
        return left or right
    return tuple(
        left_columns | right_columns
        if all(_have_equal_hashes(schema.types[a], schema.types[b]) for a in left_columns for b in right_columns)
        else left_columns
        for left_columns, right_columns in zip(left, right, strict=True)
    )


def _have_equal_hashes(left: t.DataType, right: t.DataType) -> bool:
    """Return whether equal values of two types have the same hash, and pass without conversion."""
    return isinstance(left, _EXACT) and t.get_time_attribute(left) is None and left.nullable() == right.nullable()
