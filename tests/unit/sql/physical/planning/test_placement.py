"""Which inputs are partitioned already, so that they need no exchange."""

from __future__ import annotations

import pytest

from millstream.sql.expressions.nodes import Expression, Ref
from millstream.sql.operators.calc import CalcSpec
from millstream.sql.physical.nodes import FORWARD, SINGLE, Distribution, Operation, distribute_by_hash
from millstream.sql.physical.planning.placement import Placements
from millstream.sql.types import data_types as t

ROW = t.row_of(["a", "b", "c"], [t.INT, t.STRING, t.DOUBLE], null=False)


def calc(child: Operation, distribution: Distribution, *columns: int) -> Operation:
    """Return a projection to columns; by default, it keeps all columns."""
    indexes = columns or tuple(range(len(child.schema)))
    exprs: tuple[Expression, ...] = tuple(Ref(child.schema.types[i], i) for i in indexes)
    schema = t.row_of([child.schema.names[i] for i in indexes], [expr.type for expr in exprs], null=False)
    spec = CalcSpec(child.schema, schema, None, exprs)
    return Operation("Calc", "", schema, (child,), (distribution,), spec)


SOURCE = Operation("Source", "", ROW)


def is_in_place(operation: Operation) -> bool:
    return Placements().in_place(operation, 0)


def test_rows_of_a_source_are_not_in_place() -> None:
    assert not is_in_place(calc(SOURCE, distribute_by_hash((0,))))


def test_rows_stay_in_place_after_an_exchange_by_the_same_keys() -> None:
    assert is_in_place(calc(calc(SOURCE, distribute_by_hash((0,))), distribute_by_hash((0,))))


def test_a_forward_operator_keeps_the_placement() -> None:
    assert is_in_place(calc(calc(calc(SOURCE, distribute_by_hash((0, 1))), FORWARD), distribute_by_hash((0, 1))))


def test_a_key_is_followed_to_its_new_column() -> None:
    moved = calc(SOURCE, distribute_by_hash((0,)), 1, 0)
    assert is_in_place(calc(moved, distribute_by_hash((1,))))
    assert not is_in_place(calc(moved, distribute_by_hash((0,))))


def test_a_projection_without_the_key_loses_the_placement() -> None:
    assert not is_in_place(calc(calc(SOURCE, distribute_by_hash((0,)), 1), distribute_by_hash((0,))))


@pytest.mark.parametrize("keys", [(1,), (1, 0), (0, 1)])
def test_other_keys_need_an_exchange(keys: tuple[int, ...]) -> None:
    assert not is_in_place(calc(calc(SOURCE, distribute_by_hash((0,))), distribute_by_hash(keys)))


def test_floating_point_keys_are_not_followed() -> None:
    assert not is_in_place(calc(calc(calc(SOURCE, distribute_by_hash((2,))), FORWARD), distribute_by_hash((2,))))


def test_a_single_subtask_is_not_a_placement_by_hash() -> None:
    assert not is_in_place(calc(calc(SOURCE, SINGLE), distribute_by_hash((0,))))
