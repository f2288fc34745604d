"""Planning of projections and filters."""

from __future__ import annotations

from millstream.sql.expressions.nodes import Apply, Expression, Lit, Ref
from millstream.sql.logical import nodes as l
from millstream.sql.operators.calc import CalcSpec
from millstream.sql.physical.nodes import Operation
from millstream.sql.physical.planner import PhysicalPlanner
from millstream.sql.physical.planning.calcs import project_keys
from millstream.sql.physical.planning.contract import Settings
from millstream.sql.types import data_types as t

ROW = t.row_of(["a", "b"], [t.INT, t.INT], null=False)
SOURCE = l.Values(ROW, ())
A, B = SOURCE.refs()
RANDOM = Apply(t.DOUBLE, "RAND", ())


def plan(node: l.Plan) -> Operation:
    def no_table(*_: object) -> Operation:
        raise AssertionError("the plan has no tables")

    return PhysicalPlanner(Settings(), no_table, no_table, no_table).plan(node)


def project(source: l.Plan, *exprs: Expression) -> l.Plan:
    return l.project(source, list(exprs), [f"c{i}" for i in range(len(exprs))])


def keep_positive(source: l.Plan, index: int) -> l.Plan:
    condition = Apply(t.BOOLEAN, ">", (Ref(source.schema.types[index], index), Lit(t.INT, 0)))
    return l.Filter(source.schema, source, condition)


def add(left: Expression, right: Expression) -> Expression:
    return Apply(t.INT, "+", (left, right))


def calcs(operation: Operation) -> int:
    below = sum(map(calcs, operation.inputs))
    return below + isinstance(operation.spec, CalcSpec)


def test_adjacent_projections_and_filters_are_one_operator() -> None:
    operation = plan(keep_positive(project(keep_positive(SOURCE, 1), B, A), 1))
    assert calcs(operation) == 1
    assert operation.detail == "select=[b AS c0, a AS c1], where=[AND((b > 0), (a > 0))]"


def test_an_expression_that_is_used_twice_is_computed_once() -> None:
    inner = project(SOURCE, add(A, B))
    assert calcs(plan(project(inner, Ref(t.INT, 0)))) == 1
    assert calcs(plan(project(inner, add(Ref(t.INT, 0), Ref(t.INT, 0))))) == 2


def test_a_random_value_in_a_condition_is_the_one_in_the_result() -> None:
    inner = project(SOURCE, RANDOM)
    condition = Apply(t.BOOLEAN, ">", (Ref(t.DOUBLE, 0), Lit(t.DOUBLE, 0.5)))
    assert calcs(plan(l.Filter(inner.schema, inner, condition))) == 2


def test_keys_are_kept_by_a_projection_of_all_their_columns() -> None:
    keys = frozenset(((0,), (0, 1)))
    assert project_keys(keys, (B, A)) == {(1,), (1, 0)}
    assert project_keys(keys, (A, add(A, B))) == {(0,)}
    assert project_keys(keys, (B,)) == frozenset()
