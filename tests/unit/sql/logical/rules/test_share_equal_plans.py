"""Equal subplans are computed once."""

from __future__ import annotations

from millstream.sql.catalog.catalog import TableDefinition
from millstream.sql.expressions.nodes import Apply, Expression, Lit, Ref
from millstream.sql.logical import nodes as l
from millstream.sql.logical.rules.share_equal_plans import share_equal_plans
from millstream.sql.types import data_types as t

ROW = t.row_of(["a"], [t.INT], null=False)
TABLE = TableDefinition(())


def scan(table: object = TABLE) -> l.Plan:
    return l.Scan(ROW, table, ("t",))


def increment(source: l.Plan) -> l.Plan:
    return l.Project(ROW, source, (Apply(t.INT, "+", (Ref(t.INT, 0), Lit(t.INT, 1))),))


def share(left: l.Plan, right: l.Plan) -> tuple[l.Plan, l.Plan]:
    union = share_equal_plans(l.SetOperation(ROW, "UNION", True, (left, right)))
    assert isinstance(union, l.SetOperation)
    first, second = union.parts
    return first, second


def test_equal_subplans_become_one() -> None:
    first, second = share(increment(scan()), increment(scan()))
    assert first is second


def test_scans_of_two_tables_stay_two() -> None:
    first, second = share(scan(), scan(TableDefinition((), {"connector": "print"})))
    assert first is not second


def test_random_values_are_not_shared_but_their_input_is() -> None:
    random: tuple[Expression, ...] = (Apply(t.DOUBLE, "RAND", ()),)
    row = t.row_of(["a"], [t.DOUBLE], null=False)
    first, second = share(l.Project(row, scan(), random), l.Project(row, scan(), random))
    assert first is not second
    assert first.inputs()[0] is second.inputs()[0]


def test_plans_above_random_values_are_not_shared() -> None:
    random: tuple[Expression, ...] = (Apply(t.INT, "RAND_INTEGER", (Lit(t.INT, 9),)),)
    first, second = share(increment(l.Project(ROW, scan(), random)), increment(l.Project(ROW, scan(), random)))
    assert first is not second
